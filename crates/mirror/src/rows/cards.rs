//! Cards of nodes, and what pods want and have of them, as their annotations and resources say it.
//!
//! Source: `specs/volcano.md`, sections 3.7 and A.7. What cannot be understood is no card and no grant:
//! a node that tells of cards in another form is garbled, which its refusal says.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::core::{Container, Node, Pod, ResourceList};
use api::volcano::{
    GPU_INDEX, GPU_MEMORY, GPU_NUMBER, GPU_UNHEALTHY_IDS, NOUSE_GPU_TYPE, NOUSE_GPU_UUID,
    USE_GPU_TYPE, USE_GPU_UUID, VGPU_CORES, VGPU_IDS, VGPU_MEMORY, VGPU_MEMORY_PERCENTAGE,
    VGPU_MODE, VGPU_MODE_MIG, VGPU_NUMBER, VGPU_POD_GROUP_POLICY, VGPU_REGISTER,
};
use model::{
    CARDS_MAX, CORES_WHOLE, Card, CardAsk, CardFamily, Cards, Division, Grant, Memory, Part, Slice,
    Tables, Vector,
};

/// No card has more MiB: what lies beyond is a slip of the pen.
const MEMORY_MAX: i64 = 1 << 40;

/// The cards that a node tells of.
pub(super) fn of_node(family: CardFamily, node: &Node) -> Cards {
    let read = match family {
        CardFamily::Shared => shared(node),
        CardFamily::Virtual => registered(node),
    };
    read.unwrap_or_else(|Garbled| Cards {
        is_garbled: true,
        ..Cards::default()
    })
}

/// What is there cannot be understood.
struct Garbled;

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
            model: Arc::default(),
            memory: each,
            users_max: i64::MAX,
        }
    };
    Ok(Cards {
        list: (0..number).map(card).collect(),
        ..Cards::default()
    })
}

/// `UUID,users,MiB,model,healthy,mode:` for each card.
fn registered(node: &Node) -> Result<Cards, Garbled> {
    let Some(text) = node.metadata.annotations.get(VGPU_REGISTER) else {
        return Ok(Cards::default());
    };
    let has = |name: &str| amount(&node.status.allocatable, name).is_some_and(|value| value > 0);
    if ![VGPU_NUMBER, VGPU_CORES, VGPU_MEMORY].into_iter().all(has) {
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
        });
        // The last one speaks for all of them.
        division = match mode {
            VGPU_MODE_MIG => Division::Slices,
            _ => Division::Soft,
        };
    }
    Ok(Cards {
        list: list.into(),
        division,
        is_garbled: false,
    })
}

fn bounded(text: &str, most: i64) -> Option<i64> {
    let number: i64 = text.parse().ok()?;
    (0..=most).contains(&number).then_some(number)
}

/// What a pod wants of cards, if anything.
pub(super) fn of_pod(family: CardFamily, pod: &Pod) -> Option<Arc<CardAsk>> {
    let mut ask = match family {
        CardFamily::Shared => CardAsk {
            memory: most(pod, GPU_MEMORY),
            number: most(pod, GPU_NUMBER),
            ..CardAsk::default()
        },
        CardFamily::Virtual => CardAsk {
            parts: pod.spec.containers.iter().filter_map(part).collect(),
            ..CardAsk::default()
        },
    };
    if ask.is_nothing() {
        return None;
    }
    if family == CardFamily::Virtual {
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
        ask.only_slices = is(VGPU_MODE, VGPU_MODE_MIG);
        ask.apart = is(VGPU_POD_GROUP_POLICY, "spread");
    }
    Some(Arc::new(ask))
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
fn part(container: &Container) -> Option<Part> {
    let memory = limit(container, VGPU_MEMORY);
    let cards = limit(container, VGPU_NUMBER).or_else(|| memory.map(|_| 1))?;
    if cards <= 0 {
        return None;
    }
    let percent = limit(container, VGPU_MEMORY_PERCENTAGE);
    Some(Part {
        cards,
        memory: match (percent, memory) {
            (Some(percent), _) => Memory::Percent(percent.max(0)),
            (None, Some(mib)) if mib > 0 => Memory::Mib(mib),
            (None, _) => Memory::Percent(100),
        },
        cores: limit(container, VGPU_CORES).unwrap_or(0).max(0),
    })
}

/// What is counted card by card and not in sums: of several cards each has so much.
const BY_CARD: [&str; 3] = [VGPU_CORES, VGPU_MEMORY, VGPU_MEMORY_PERCENTAGE];

/// Takes what is counted card by card out of a pod's requests.
pub(super) fn leave_out(family: CardFamily, requests: &mut ResourceList) {
    if family == CardFamily::Virtual {
        for name in BY_CARD {
            requests.remove(name);
        }
    }
}

/// The same of what a gang needs at least: no sum of the cluster could tell whether there is so much.
pub(super) fn leave_out_of(family: CardFamily, amounts: &mut Vector, tables: &mut Tables) {
    if family == CardFamily::Virtual {
        for name in BY_CARD {
            amounts.set(tables.kind(name), 0);
        }
    }
}

/// What a bound pod has of its node's cards.
pub(super) fn held_by(family: CardFamily, pod: &Pod) -> Vec<Grant> {
    let key = match family {
        CardFamily::Shared => GPU_INDEX,
        CardFamily::Virtual => VGPU_IDS,
    };
    let Some(text) = pod.metadata.annotations.get(key) else {
        return Vec::new();
    };
    match family {
        CardFamily::Shared => by_place(pod, text),
        CardFamily::Virtual => by_id(text),
    }
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
