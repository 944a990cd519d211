//! Cards of nodes, and what pods want and have of them, as their annotations and resources say it.
//!
//! Source: `specs/volcano.md`, sections 3.7 and A.7. What cannot be understood is no card and no grant:
//! a node that tells of cards in another form is garbled, which its refusal says.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::core::{Container, Node, Pod, ResourceList};
use api::volcano::chip_devices::ChipDevices;
use api::volcano::device_config::{DeviceConfig, GpuResources, NpuConfig, Way};
use api::volcano::{
    GPU_INDEX, GPU_MEMORY, GPU_NUMBER, GPU_UNHEALTHY_IDS, NOUSE_GPU_TYPE, NOUSE_GPU_UUID,
    USE_GPU_TYPE, USE_GPU_UUID, VGPU_IDS, VGPU_MODE, VGPU_MODE_HAMI_CORE, VGPU_MODE_MIG,
    VGPU_MODE_MPS, VGPU_POD_GROUP_POLICY, VGPU_REGISTER,
};
use model::{
    CARDS_MAX, CORES_WHOLE, Card, CardAsk, CardFamily, Cards, Division, DivisionAsk, GPU, Geometry,
    Grant, Memory, Part, Slice,
};

use crate::held::Mirror;

mod chips;
mod npus;
mod queues;

pub(super) use queues::Models;

/// No card has more MiB: what lies beyond is a slip of the pen.
const MEMORY_MAX: i64 = 1 << 40;

/// Which cards are read, and what is known of them.
#[derive(Clone, Debug, Default)]
pub(super) struct CardRules {
    families: Vec<CardFamily>,
    config: DeviceConfig,
    chips: Arc<ChipDevices>,
    /// Whether chips of which only their node itself tells do not count.
    takes_listed_chips: bool,
}

/// What is there cannot be understood.
struct Garbled;

impl CardRules {
    /// Cards of these families.
    pub(super) fn of(families: Vec<CardFamily>) -> CardRules {
        CardRules {
            families,
            ..CardRules::default()
        }
    }

    /// The same with what a ConfigMap says of them.
    pub(super) fn with_config(&self, config: DeviceConfig) -> CardRules {
        CardRules {
            config,
            ..self.clone()
        }
    }

    /// The same with what is known of nodes' chips.
    pub(super) fn with_chips(&self, chips: Arc<ChipDevices>) -> CardRules {
        CardRules {
            chips,
            ..self.clone()
        }
    }

    /// The same where only those chips count that are listed.
    pub(super) fn with_listed_chips(&self) -> CardRules {
        CardRules {
            takes_listed_chips: true,
            ..self.clone()
        }
    }

    /// Whether no cards are read.
    pub(super) fn is_empty(&self) -> bool {
        self.families.is_empty()
    }

    /// The cards that a node tells of.
    pub(super) fn of_node(&self, mirror: &Mirror, node: &Node) -> Cards {
        let mut cards = Cards::default();
        for family in &self.families {
            let read = match family {
                CardFamily::Shared => shared(node),
                CardFamily::Virtual => self.registered(node),
                CardFamily::Chip => {
                    let pods = mirror.pods_on(&node.metadata.name).map(|pod| &**pod);
                    chips::add(self, node, pods, &mut cards);
                    continue;
                }
                CardFamily::Npu => {
                    npus::add(&self.config, node, &mut cards);
                    continue;
                }
            };
            match read {
                Ok(read) => cards = read,
                Err(Garbled) => cards.garbled.push(GPU.into()),
            }
        }
        cards
    }

    /// What a pod wants of cards, if anything.
    pub(super) fn of_pod(&self, pod: &Pod) -> Option<Arc<CardAsk>> {
        let mut ask = CardAsk::default();
        for family in &self.families {
            match family {
                CardFamily::Shared => {
                    ask.memory = most(pod, GPU_MEMORY);
                    ask.number = most(pod, GPU_NUMBER);
                }
                CardFamily::Virtual => {
                    ask.parts = {
                        let names = &self.config.gpu_resources;
                        let containers = pod.spec.containers.iter();
                        containers.filter_map(|it| part(names, it)).collect()
                    };
                    if !ask.parts.is_empty() {
                        choose(&mut ask, pod);
                    }
                }
                CardFamily::Chip => ask.chips = chips::ask(pod),
                CardFamily::Npu => npus::want(&self.config.npus, pod, &mut ask),
            }
        }
        (!ask.is_nothing()).then(|| Arc::new(ask))
    }

    /// What is counted card by card and not in sums: of several cards each has so much.
    fn by_card(&self) -> impl Iterator<Item = &str> {
        let families = self.families.iter();
        families.flat_map(|family| -> Vec<&str> {
            match family {
                CardFamily::Shared => Vec::new(),
                CardFamily::Virtual => self.config.gpu_resources.by_card().into(),
                CardFamily::Npu => {
                    let npus = self.config.npus.iter();
                    npus.flat_map(NpuConfig::by_card).collect()
                }
                CardFamily::Chip => Vec::new(),
            }
        })
    }

    /// Takes what is counted card by card out of what is asked for: [`CardRules::charge`] says what of a pod's
    /// requests counts in its queue.
    pub(super) fn leave_out(&self, requests: &mut ResourceList) {
        for name in self.by_card() {
            requests.remove(name);
        }
    }

    /// What a bound pod has of its node's cards.
    pub(super) fn held_by(&self, pod: &Pod) -> Vec<Grant> {
        let annotation = |key: &str| pod.metadata.annotations.get(key);
        let mut grants = Vec::new();
        for family in &self.families {
            match family {
                CardFamily::Shared => {
                    grants.extend(annotation(GPU_INDEX).map(|text| by_place(pod, text)));
                }
                CardFamily::Virtual => grants.extend(annotation(VGPU_IDS).map(|text| by_id(text))),
                CardFamily::Chip => grants.push(chips::held_by(pod)),
                CardFamily::Npu => {
                    let ask = self.of_pod(pod).unwrap_or_default();
                    grants.push(npus::held_by(&self.config.npus, pod, &ask.parts));
                }
            }
        }
        grants.into_iter().flatten().take(CARDS_MAX).collect()
    }

    /// `UUID,users,MiB,model,healthy,mode:` for each card.
    fn registered(&self, node: &Node) -> Result<Cards, Garbled> {
        let Some(text) = node.metadata.annotations.get(VGPU_REGISTER) else {
            return Ok(Cards::default());
        };
        let has = |name: &str| amount(&node.status.allocatable, name).is_some_and(|it| it > 0);
        let names = &self.config.gpu_resources;
        let mut wanted = [&names.count, &names.cores, &names.memory].into_iter();
        if !wanted.all(|name| has(name)) {
            return Ok(Cards::default());
        }
        let mut list = Vec::new();
        let mut ids = BTreeSet::new();
        let mut division = Division::Soft;
        for entry in text.split(':').filter(|entry| !entry.trim().is_empty()) {
            let fields: Vec<&str> = entry.split(',').map(str::trim).collect();
            let &[id, users, memory, model, healthy, mode, ..] = fields.as_slice() else {
                return Err(Garbled);
            };
            if id.is_empty() || !ids.insert(id) || list.len() == CARDS_MAX {
                return Err(Garbled);
            }
            list.push(Card {
                id: id.into(),
                model: model.into(),
                memory: bounded(memory, MEMORY_MAX).ok_or(Garbled)?,
                users_max: bounded(users, i64::MAX).ok_or(Garbled)?,
                is_healthy: matches!(healthy, "1" | "t" | "T" | "true" | "TRUE" | "True"),
                ..Card::default()
            });
            // The last one speaks for all of them. A model that nobody knows how to slice is divided by
            // whoever runs on it, whatever it tells.
            division = match division_of(mode) {
                Some(Division::Slices) if self.geometries(model).is_empty() => Division::Soft,
                said => said.unwrap_or_default(),
            };
        }
        if division == Division::Slices {
            list.iter_mut()
                .for_each(|card| card.geometries = self.geometries(&card.model));
        }
        Ok(Cards {
            list: list.into(),
            division,
            ..Cards::default()
        })
    }

    /// The ways in which GPUs of a model divide themselves; none if nobody knows.
    fn geometries(&self, model: &str) -> Arc<[Geometry]> {
        let is_it = |word: &String| model.contains(word.as_str());
        let mut rows = self.config.gpus.iter();
        let row = rows.find(|row| row.models.iter().any(is_it));
        let geometry = |way: &Way| {
            // What is asked for and registered is in units, a slice's size is not.
            let unit = self.config.gpu_memory_factor.max(1);
            let sizes = way
                .sizes
                .iter()
                .map(|size| (size.memory / unit, size.count));
            Geometry {
                group: way.group.as_str().into(),
                sizes: sizes.collect(),
            }
        };
        row.map_or_else(Arc::default, |row| row.ways.iter().map(geometry).collect())
    }
}

/// What a mode is, in a register and in a pod's annotation.
fn division_of(mode: &str) -> Option<Division> {
    match mode {
        VGPU_MODE_HAMI_CORE => Some(Division::Soft),
        VGPU_MODE_MIG => Some(Division::Slices),
        VGPU_MODE_MPS => Some(Division::Served),
        _ => None,
    }
}

fn amount(list: &ResourceList, name: &str) -> Option<i64> {
    list.get(name).map(api::quantity::Quantity::value)
}

/// Shared cards are alike and have no name but their place.
fn shared(node: &Node) -> Result<Cards, Garbled> {
    let capacity = &node.status.capacity;
    let (Some(memory), Some(number)) = (amount(capacity, GPU_MEMORY), amount(capacity, GPU_NUMBER))
    else {
        return Ok(Cards::default());
    };
    let number = usize::try_from(number).map_err(|_| Garbled)?;
    if number > CARDS_MAX || memory < 0 {
        return Err(Garbled);
    }
    let broken = node.metadata.annotations.get(GPU_UNHEALTHY_IDS);
    let broken: BTreeSet<&str> =
        broken.map_or_else(BTreeSet::new, |ids| ids.split(',').map(str::trim).collect());
    let each = memory / i64::try_from(number.max(1)).unwrap_or(1);
    let card = |at: usize| {
        let id = at.to_string();
        Card {
            is_healthy: !broken.contains(&*id),
            id: id.into(),
            memory: each,
            users_max: i64::MAX,
            ..Card::default()
        }
    };
    Ok(Cards {
        list: (0..number).map(card).collect(),
        ..Cards::default()
    })
}

fn bounded(text: &str, most: i64) -> Option<i64> {
    let number: i64 = text.parse().ok()?;
    (0..=most).contains(&number).then_some(number)
}

/// Which GPUs a pod may have.
fn choose(ask: &mut CardAsk, pod: &Pod) {
    let annotations = &pod.metadata.annotations;
    let words = |key: &str| -> Vec<Arc<str>> {
        let text = annotations.get(key).map_or("", |text| text);
        let words = text.split(',').map(str::trim);
        words.filter(|w| !w.is_empty()).map(Arc::from).collect()
    };
    let models = |key: &str| {
        let words = words(key).into_iter();
        words.map(|word| word.to_uppercase().into()).collect()
    };
    ask.models = models(USE_GPU_TYPE);
    ask.models_not = models(NOUSE_GPU_TYPE);
    ask.ids = words(USE_GPU_UUID);
    ask.ids_not = words(NOUSE_GPU_UUID);
    let is = |key: &str, value: &str| annotations.get(key).is_some_and(|it| **it == *value);
    ask.division = match annotations.get(VGPU_MODE).map(|mode| mode.trim()) {
        None | Some("") => DivisionAsk::Any,
        Some(mode) => division_of(mode).map_or(DivisionAsk::Unknown, DivisionAsk::Only),
    };
    ask.apart = is(VGPU_POD_GROUP_POLICY, "spread");
}

/// The containers' limits together, or the greatest of an init container if that is more.
fn most(pod: &Pod, name: &str) -> i64 {
    let of = |container: &Container| limit(container, name).unwrap_or(0).max(0);
    let all = pod.spec.containers.iter().map(of);
    let all = all.fold(0_i64, i64::saturating_add);
    let first = pod.spec.init_containers.iter().map(of).max();
    all.max(first.unwrap_or(0))
}

/// Its limit, else its request.
fn limit(container: &Container, name: &str) -> Option<i64> {
    let resources = &container.resources;
    amount(&resources.limits, name).or_else(|| amount(&resources.requests, name))
}

/// What one container wants of virtual cards.
fn part(names: &GpuResources, container: &Container) -> Option<Part> {
    let memory = limit(container, &names.memory);
    let cards = limit(container, &names.count).or_else(|| memory.map(|_| 1))?;
    if cards <= 0 {
        return None;
    }
    let percent = limit(container, &names.memory_percentage);
    let memory = match (percent, memory) {
        (Some(percent), _) => Memory::Percent(percent.max(0)),
        (None, Some(mib)) if mib > 0 => Memory::Mib(mib),
        (None, _) => Memory::Percent(100),
    };
    let cores = limit(container, &names.cores).unwrap_or(0).max(0);
    Some(Part::of_gpus(cards, memory, cores))
}

fn by_place(pod: &Pod, text: &str) -> Vec<Grant> {
    let (memory, number) = (most(pod, GPU_MEMORY), most(pod, GPU_NUMBER));
    let places: BTreeSet<usize> = text
        .split(',')
        .filter_map(|place| place.trim().parse().ok())
        .filter(|place| *place < CARDS_MAX)
        .collect();
    let grant = |place: usize| Grant {
        part: 0,
        card: place.to_string().into(),
        slice: None,
        memory,
        cores: 0,
        is_whole: memory == 0 && number > 0,
        ..Grant::default()
    };
    places.into_iter().map(grant).collect()
}

/// `UUID,NVIDIA,MiB,cores:` for each card, `;` between containers. What is not of this form is left out.
fn by_id(text: &str) -> Vec<Grant> {
    let containers = text.split(';').enumerate();
    let entries = containers.flat_map(|(at, part)| part.split(':').map(move |entry| (at, entry)));
    let grants = entries.filter_map(|(at, entry)| {
        let fields: Vec<&str> = entry.split(',').map(str::trim).collect();
        let &[id, _, memory, cores, ..] = fields.as_slice() else {
            return None;
        };
        let (card, slice) = id.split_once('[').unwrap_or((id, ""));
        let cores = bounded(cores, CORES_WHOLE)?;
        Some(Grant {
            part: u32::try_from(at).ok()?,
            card: card.into(),
            slice: slice.strip_suffix(']').and_then(slice_of),
            memory: bounded(memory, MEMORY_MAX)?,
            cores,
            is_whole: cores >= CORES_WHOLE,
            ..Grant::default()
        })
    });
    grants.take(CARDS_MAX).collect()
}

fn slice_of(text: &str) -> Option<Slice> {
    let (group, place) = text.split_once('-')?;
    Some(Slice {
        group: group.into(),
        place: place.parse().ok()?,
    })
}
