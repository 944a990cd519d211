//! Chips of nodes, and what pods want and have of them: MindCluster's form.
//!
//! Source: Volcano's plugin `deviceshare` beside MindCluster. A node tells of its kind and the size of a chip by
//! labels; which chips it has, its annotation, a ConfigMap and the pods on it say together, for the
//! ConfigMap leaves out those in use. Where that alone is to count, the annotation is not read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::core::{Node, Pod};
use api::volcano::chip_devices::{chip_name, chip_number};
use api::volcano::{
    ACCELERATOR, ASCEND_310P, ASCEND_REAL, BASE_DEVICES, NPU_CORE, NPU_VENDOR, RING_CONTROLLER,
    RING_CONTROLLER_310P, SERVER_TYPE, VNPU_DVPP, VNPU_LEVEL,
};
use model::{
    CARDS_MAX, CHIP, Card, Cards, ChipAsk, ChipPart, ChipSize, Chips, Dvpp, Grant, Template,
};
use serde::de::IgnoredAny;

use super::{CardRules, Garbled, amount};

/// Cpus of each chip.
const CPUS: i64 = 7;

/// Adds a node's chips to its other cards; `pods` are those on it.
pub(super) fn add<'p>(
    rules: &CardRules,
    node: &Node,
    pods: impl Iterator<Item = &'p Pod>,
    cards: &mut Cards,
) {
    let label = |key: &str| node.metadata.labels.get(key).map_or("", |text| text);
    let kind = label(ACCELERATOR).split_once('-').map(|(_, kind)| kind);
    let cores = amount(&node.status.capacity, NPU_CORE).unwrap_or(0);
    if kind != Some(ASCEND_310P) || cores <= 0 {
        return;
    }
    let name = &*node.metadata.name;
    let Some(told) = rules.chips.devices.get(name) else {
        cards.chips = Chips::Untold;
        return;
    };
    if rules.chips.apart.contains(name) {
        cards.chips = Chips::SetApart;
        return;
    }
    let all = match rules.takes_listed_chips {
        true => Ok(BTreeSet::new()),
        false => all(node),
    };
    let (Ok(size), Ok(mut numbers)) = (size(label(SERVER_TYPE), cores), all) else {
        cards.garbled.push(CHIP.into());
        return;
    };
    numbers.extend(&told.free);
    numbers.extend(&told.unhealthy);
    let held = pods.filter(|pod| !pod.is_finished()).flat_map(held_by);
    numbers.extend(held.filter_map(|grant| chip_number(&grant.card)));
    let mut list = cards.list.to_vec();
    let others: BTreeSet<_> = list.iter().map(|card| card.id.clone()).collect();
    for number in numbers {
        let id = chip_name(number).into();
        if others.contains(&id) || list.len() == CARDS_MAX {
            cards.garbled.push(CHIP.into());
            return;
        }
        list.push(Card {
            id,
            kind: CHIP.into(),
            users_max: i64::MAX,
            is_healthy: !told.unhealthy.contains(&number),
            ..Card::default()
        });
    }
    cards.list = list.into();
    cards.chips = Chips::Of(size);
}

/// What each chip has, from `Ascend310P-8` or `Ascend310P-10-dual`: the node has whole ones of them.
fn size(server: &str, all: i64) -> Result<ChipSize, Garbled> {
    let cores = match server.split('-').nth(1) {
        Some("8") => 8,
        Some("10") => 10,
        _ => return Err(Garbled),
    };
    let size = ChipSize { cores, cpus: CPUS };
    (all % cores == 0).then_some(size).ok_or(Garbled)
}

/// The chips that the node itself tells of; none where it does not. Virtual devices, which have more words
/// in their names (`Ascend310P-2c-100-0`), are on chips, and none of these.
fn all(node: &Node) -> Result<BTreeSet<u32>, Garbled> {
    let Some(text) = node.metadata.annotations.get(BASE_DEVICES) else {
        return Ok(BTreeSet::new());
    };
    let told: BTreeMap<String, IgnoredAny> = serde_json::from_str(text).map_err(|_| Garbled)?;
    let whole = told.keys().filter(|name| name.split('-').count() <= 2);
    let numbers = whole.map(|name| chip_number(name).ok_or(Garbled));
    numbers.collect()
}

/// What a pod wants of chips: the amount of the first container that wants some.
pub(super) fn ask(pod: &Pod) -> Option<ChipAsk> {
    let label = |key: &str| pod.metadata.labels.get(key).map(|text| &**text);
    if label(RING_CONTROLLER) != Some(RING_CONTROLLER_310P) {
        return None;
    }
    let mut containers = pod.spec.containers.iter();
    let cores = containers.find_map(|container| {
        let cores = amount(&container.resources.limits, NPU_CORE);
        cores.filter(|cores| *cores != 0)
    })?;
    Some(ChipAsk {
        cores,
        is_high: label(VNPU_LEVEL) == Some("high"),
        dvpp: match label(VNPU_DVPP) {
            None | Some("null") => Some(Dvpp::Null),
            Some("yes") => Some(Dvpp::Yes),
            Some("no") => Some(Dvpp::No),
            Some(_) => None,
        },
    })
}

/// What a bound pod has: `0,1` whole chips, or `0-vir02` a part. Whole are also those whose names a pod has
/// from when its node's chips were not divided. What is not of this form is left out.
pub(super) fn held_by(pod: &Pod) -> Vec<Grant> {
    let annotation = |key: &str| pod.metadata.annotations.get(key);
    let text = annotation(NPU_CORE).map_or("", |text| text);
    // An empty text says as little as none.
    let real = annotation(ASCEND_REAL).map(|text| &**text);
    let real = real.filter(|text| !text.is_empty());
    let held = text
        .split(',')
        .filter_map(|entry| grant(entry.trim(), real));
    let mut held: Vec<Grant> = held.take(CARDS_MAX).collect();
    let names = annotation(&format!("{NPU_VENDOR}/{ASCEND_310P}"));
    let names = names.map_or("", |text| text).split(',');
    for number in names.filter_map(chip_number) {
        let card = chip_name(number).into();
        if held.len() < CARDS_MAX && held.iter().all(|grant| grant.card != card) {
            held.push(whole(card));
        }
    }
    held
}

fn whole(card: Arc<str>) -> Grant {
    Grant {
        kind: CHIP.into(),
        card,
        is_whole: true,
        ..Grant::default()
    }
}

fn grant(entry: &str, real: Option<&str>) -> Option<Grant> {
    let (number, template) = match entry.split_once('-') {
        Some((number, template)) => (number, Some(Template::named(template)?)),
        None => (entry, None),
    };
    // As the device plugin would name it.
    let card = chip_name(chip_number(&format!("{ASCEND_310P}-{number}"))?);
    Some(Grant {
        kind: CHIP.into(),
        card: card.into(),
        is_whole: template.is_none(),
        chip: template.map(|template| ChipPart {
            template,
            is_settled: real.is_some(),
            group: real.and_then(group),
        }),
        ..Grant::default()
    })
}

/// The virtual group in `Ascend310P-2c.1cpu-105-0_3`.
fn group(real: &str) -> Option<u32> {
    real.rsplit_once('_')?.1.parse().ok()
}
