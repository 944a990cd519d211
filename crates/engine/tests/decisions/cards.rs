//! The words of the fixture language that speak of cards.

use std::sync::Arc;

use model::{
    Card, CardAsk, Cards, Charge, Division, DivisionAsk, GPU, Geometry, Grant, Key, Memory,
    NpuDivision, NpuDivisionAsk, Part, Slice,
};
use placement::{Argument, PluginSettings};

use crate::chips;
use crate::parse::Counts;

/// `vgpu=1:4000:30` or `vgpu=1:50%` for each container, `gpumem=4000`, `gpunum=2`, and what cards it may
/// be; `npu=Ascend310P:1:6144:vir02`, the last word being the part's size; `npu-soft=Ascend310P:1:5000:30`
/// (cores), with `whole` at its end where that is no less than whole ones; `npu-mode=template`. Whether the
/// word speaks of cards.
pub fn wants(cards: &mut CardAsk, word: &str, value: &str) -> bool {
    let number = |text: &str| text.parse().expect("a number");
    let words = || value.split(',').map(Arc::from);
    match word {
        "vgpu" => {
            let mut parts = value.split(':');
            let mut next = || parts.next().unwrap_or("0");
            let count = number(next());
            let memory = next();
            let memory = match memory.strip_suffix('%') {
                Some(percent) => Memory::Percent(number(percent)),
                None => Memory::Mib(number(memory)),
            };
            let cores = number(next());
            cards.parts.push(Part::of_gpus(count, memory, cores));
        }
        "npu" | "npu-soft" => {
            let words: Vec<&str> = value.split(':').collect();
            let fourth = words.get(3).copied().unwrap_or_default();
            let is_soft = word == "npu-soft";
            if is_soft {
                cards.npu_division = NpuDivisionAsk::Only(NpuDivision::Soft);
            }
            cards.parts.push(Part {
                kind: words[0].into(),
                cards: number(words[1]),
                memory: Memory::Mib(number(words[2])),
                cores: if is_soft { number(fourth) } else { 0 },
                template: if is_soft { "" } else { fourth }.into(),
                is_partial: !fourth.is_empty() && words.last() != Some(&"whole"),
            });
        }
        "npu-mode" => {
            let division = npu_division(value);
            cards.npu_division = division.map_or(NpuDivisionAsk::Unknown, NpuDivisionAsk::Only);
        }
        "gpumem" => cards.memory = number(value),
        "gpunum" => cards.number = number(value),
        "use" => cards.models.extend(words()),
        "nouse" => cards.models_not.extend(words()),
        "use-id" => cards.ids.extend(words()),
        "nouse-id" => cards.ids_not.extend(words()),
        "card-mode" => {
            cards.division = division(value).map_or(DivisionAsk::Unknown, DivisionAsk::Only);
        }
        "cards-apart" => cards.apart = true,
        _ => return chips::wants(cards, word, value),
    }
    true
}

/// `CARD:MIB:CORES`, `CARD[group1-0]:MIB:CORES`, or `CARD:all`; `KIND/CARD:MIB` of an NPU
pub fn grant(text: &str) -> Grant {
    if let Some(grant) = chips::grant(text) {
        return grant;
    }
    let (kind, text) = text.split_once('/').unwrap_or((GPU, text));
    let mut parts = text.split(':');
    let mut next = || parts.next().unwrap_or("0");
    let card = next();
    let (card, slice) = card.split_once('[').unwrap_or((card, ""));
    let slice = slice.trim_end_matches(']').split_once('-');
    let memory = next();
    let cores = next().parse().expect("cores");
    Grant {
        kind: kind.into(),
        card: card.into(),
        slice: slice.map(|(group, place)| Slice {
            group: group.into(),
            place: place.parse().expect("a place"),
        }),
        memory: if memory == "all" {
            0
        } else {
            memory.parse().expect("memory")
        },
        cores,
        is_whole: memory == "all" || cores == 100,
        ..Grant::default()
    }
}

/// The word for what a task's virtual GPUs count for in its queue, in place of a claim's name.
pub const CARDS: &str = "cards";

/// What a claim, or the cards, of a task of this name count for.
pub fn charge((named, amounts): &Counts, gang: &Key, task: &str) -> Charge {
    let is_own = named.as_deref() == Some(CARDS);
    let claim = match named {
        _ if is_own => format!("{CARDS}:{task}"),
        Some(name) => name.clone(),
        None => task.to_owned(),
    };
    Charge {
        claim: Key::new(gang.namespace.clone(), claim),
        amounts: amounts.iter().map(|it| (it.0, it.1)).collect(),
        unasked: amounts.iter().filter(|it| it.2).map(|it| it.0).collect(),
        is_own,
    }
}

/// What is held, as the scenarios write it.
pub fn granted(grants: &[Grant]) -> String {
    let one = |grant: &Grant| {
        if !grant.units.is_empty() {
            return format!("{}:{}", grant.card, grant.units);
        }
        let slice = grant.slice.as_ref();
        let slice = slice.map_or(String::new(), |s| format!("[{}-{}]", s.group, s.place));
        if let Some(portion) = &grant.portion {
            let takings = portion.iter();
            let takings = takings.map(|it| format!("{}/{}", it.dimension, it.amount));
            let takings: Vec<String> = takings.collect();
            return format!("{}:{}", grant.card, takings.join(","));
        }
        if let Some(part) = &grant.chip {
            return format!("{}:{}", grant.card, part.template.name());
        }
        let amount = match (grant.is_whole, grant.memory, grant.cores) {
            (true, 0, 0) => "all".to_owned(),
            (_, memory, 0) => memory.to_string(),
            (_, memory, cores) => format!("{memory}:{cores}"),
        };
        format!("{}{slice}:{amount}", grant.card)
    };
    let all: Vec<String> = grants.iter().map(one).collect();
    all.join(" ")
}

/// Which division a mode is, if somebody knows it.
fn division(mode: &str) -> Option<Division> {
    match mode {
        "hami-core" => Some(Division::Soft),
        "mig" => Some(Division::Slices),
        "mps" => Some(Division::Served),
        _ => None,
    }
}

/// Which division of NPUs a mode is, if somebody knows it.
fn npu_division(mode: &str) -> Option<NpuDivision> {
    match mode {
        "template" => Some(NpuDivision::Templates),
        "hami-core" => Some(NpuDivision::Soft),
        _ => None,
    }
}

/// What a node's words say of its cards: `vgpu=COUNT:MIB:USERS`, `gpushare=COUNT:MIB`, `model=A100`,
/// `sick=0,1`, `mig` or `mps`, `garbled`; of each kind of NPUs `npu=KIND:COUNT:MIB:USERS`, how many of them a
/// network has (`network=2`), `npu-garbled=KIND`, and how all are divided (`npu-mode=hami-core`); of chips see
/// [`chips::add`].
#[derive(Default)]
pub struct OfNode {
    listed: Option<(bool, Vec<i64>)>,
    model: String,
    sick: Vec<String>,
    division: Division,
    npus: Vec<String>,
    npu_division: NpuDivision,
    network: Option<i64>,
    garbled: Vec<Arc<str>>,
    chips: String,
}

impl OfNode {
    /// Whether the word speaks of cards.
    pub fn hears(&mut self, word: &str, value: &str) -> bool {
        match word {
            "vgpu" | "gpushare" => {
                let numbers = value.split(':').map(|part| part.parse().expect("a number"));
                self.listed = Some((word == "vgpu", numbers.collect()));
            }
            "model" => self.model = value.to_owned(),
            "sick" => self.sick = value.split(',').map(str::to_owned).collect(),
            "mig" | "mps" => self.division = division(word).expect("a mode"),
            "garbled" => self.garbled.push(GPU.into()),
            "npu" => self.npus.push(value.to_owned()),
            "npu-mode" => {
                self.npu_division = npu_division(value).unwrap_or(NpuDivision::Foreign);
            }
            "network" => self.network = Some(value.parse().expect("a number")),
            "chips" => self.chips = value.to_owned(),
            "npu-garbled" => self.garbled.push(value.into()),
            _ => return false,
        }
        true
    }

    /// The cards of the node of this name; virtual ones have it in theirs.
    pub fn of(&self, node: &str) -> Cards {
        let (is_virtual, numbers) = self.listed.clone().unwrap_or_default();
        let number = |at: usize, or: i64| numbers.get(at).copied().unwrap_or(or);
        let card = |at: i64| Card {
            id: match is_virtual {
                true => format!("{node}-{at}").into(),
                false => at.to_string().into(),
            },
            is_healthy: !self.sick.contains(&at.to_string()),
            model: self.model.as_str().into(),
            memory: number(1, 0),
            users_max: number(2, 10),
            geometries: match self.division {
                Division::Slices => geometries(&self.model),
                Division::Soft | Division::Served => Arc::default(),
            },
            ..Card::default()
        };
        let npus = self.npus.iter().flat_map(|words| self.npus_of(node, words));
        let mut cards = Cards {
            list: (0..number(0, 0)).map(card).chain(npus).collect(),
            division: self.division,
            npu_division: self.npu_division,
            garbled: self.garbled.clone(),
            ..Cards::default()
        };
        if !self.chips.is_empty() {
            chips::add(&mut cards, &self.chips, &self.sick);
        }
        cards
    }

    fn npus_of(&self, node: &str, words: &str) -> Vec<Card> {
        let (kind, numbers) = words.split_once(':').expect("a kind and numbers");
        let numbers = numbers.split(':').map(|it| it.parse().expect("a number"));
        let numbers: Vec<i64> = numbers.collect();
        let card = |at: i64| Card {
            id: format!("{node}-{kind}-{at}").into(),
            kind: kind.into(),
            is_healthy: !self.sick.contains(&at.to_string()),
            memory: numbers[1],
            users_max: numbers[2],
            network: self.network.map(|size| at / size),
            ..Card::default()
        };
        (0..numbers[0]).map(card).collect()
    }
}

/// How some models divide themselves.
fn geometries(model: &str) -> Arc<[Geometry]> {
    let ways: &[&[(i64, u32)]] = match model {
        _ if model.contains("A30") => &[&[(6_144, 4)], &[(12_288, 2)], &[(24_576, 1)]],
        _ if model.contains("A100-SXM4-40GB") => &[
            &[(5_120, 7)],
            &[(10_240, 3), (5_120, 1)],
            &[(20_480, 2)],
            &[(40_960, 1)],
        ],
        _ => &[],
    };
    let geometry = |(at, sizes): (usize, &&[(i64, u32)])| Geometry {
        group: format!("group{}", at + 1).into(),
        sizes: sizes.to_vec(),
    };
    ways.iter().enumerate().map(geometry).collect()
}

/// `VGPUEnable SchedulePolicy=binpack`: the plugin with these arguments
pub fn plugin(text: &str) -> PluginSettings {
    let mut plugin = PluginSettings::named("deviceshare");
    for (word, value) in crate::parse::words(text) {
        let value = match value.parse() {
            Ok(number) => Argument::Whole(number),
            Err(_) if value.is_empty() => Argument::Flag(true),
            Err(_) if value.starts_with('[') => label_maps(value),
            Err(_) => Argument::Text(value.to_owned()),
        };
        let key = format!("deviceshare.{word}");
        plugin.arguments.0.insert(key, value);
    }
    plugin
}

/// `[app:train,tier:gold][app:serve]`
fn label_maps(text: &str) -> Argument {
    let maps = text.split(']').map(|map| map.trim_start_matches('['));
    let map = |map: &str| {
        let pairs = map
            .split(',')
            .map(|pair| pair.split_once(':').expect("key:value"));
        let text = |value: &str| Argument::Text(value.to_owned());
        Argument::Map(
            pairs
                .map(|(key, value)| (key.to_owned(), text(value)))
                .collect(),
        )
    };
    Argument::List(maps.filter(|map| !map.is_empty()).map(map).collect())
}
