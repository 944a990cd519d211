//! NPUs of nodes, and what pods want and have of them: HAMi's form.
//!
//! Source: Volcano's user guide of Ascend vNPUs and HAMi's protocol of device plugins, also of its soft
//! parts (hami-core). A kind is read from nodes that have some of its resource; registers of other nodes
//! are old.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::core::{Container, Node, Pod};
use api::volcano::device_config::{DeviceConfig, NpuConfig, NpuMode};
use api::volcano::{
    VNPU_MODE, VNPU_MODE_HAMI_CORE, VNPU_MODE_TEMPLATE, VNPU_NODE_ENPU, VNPU_NODE_HAMI_CORE,
    npu_allocated, npu_register, npu_to_allocate,
};
use model::{
    CARDS_MAX, CORES_WHOLE, Card, CardAsk, Cards, Grant, Memory, NpuDivision, NpuDivisionAsk, Part,
};
use serde::Deserialize;

use super::{MEMORY_MAX, amount, by_id, limit};

/// Kinds that begin so have networks within a node.
const WITH_NETWORKS: &str = "Ascend910";

/// An NPU as a register tells it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Registered {
    id: String,
    count: i64,
    devmem: i64,
    r#type: String,
    health: bool,
    custominfo: Option<Custom>,
}

#[derive(Deserialize)]
struct Custom {
    #[serde(rename = "NetworkID")]
    network: Option<f64>,
}

/// Adds a node's NPUs to its other cards.
pub(super) fn add(config: &DeviceConfig, node: &Node, cards: &mut Cards) {
    let mut list = cards.list.to_vec();
    let mut ids: BTreeSet<Arc<str>> = list.iter().map(|card| card.id.clone()).collect();
    for npu in &config.npus {
        let has_some = amount(&node.status.allocatable, &npu.resource_name).unwrap_or(0) > 0;
        let annotations = &node.metadata.annotations;
        let text = annotations.get(npu_register(&npu.common_word).as_str());
        let Some(text) = text.filter(|_| has_some) else {
            continue;
        };
        match registered(npu, text, &ids) {
            Some(read) if list.len() + read.len() <= CARDS_MAX => {
                ids.extend(read.iter().map(|card| card.id.clone()));
                list.extend(read);
            }
            Some(_) | None => cards.garbled.push(npu.common_word.as_str().into()),
        }
    }
    cards.list = list.into();
    cards.npu_division = division(config.npu_mode, node);
}

/// How a node's NPUs are divided: its device plugin says it, else the mode of all nodes.
fn division(of_all: NpuMode, node: &Node) -> NpuDivision {
    let told = |key: &str| {
        let word = node.metadata.annotations.get(key);
        word.map(|word| word.trim() == "true")
    };
    match (told(VNPU_NODE_HAMI_CORE), told(VNPU_NODE_ENPU)) {
        (Some(true), _) => NpuDivision::Soft,
        (_, Some(true)) => NpuDivision::Foreign,
        (Some(false), _) => NpuDivision::Templates,
        (None, _) => match of_all {
            NpuMode::Template => NpuDivision::Templates,
            NpuMode::HamiCore => NpuDivision::Soft,
            NpuMode::Enpu => NpuDivision::Foreign,
        },
    }
}

/// The NPUs of a register; `None` where it cannot be understood.
fn registered(npu: &NpuConfig, text: &str, others: &BTreeSet<Arc<str>>) -> Option<Vec<Card>> {
    let told: Vec<Registered> = serde_json::from_str(text).ok()?;
    let mut ids = BTreeSet::new();
    let mut cards = Vec::new();
    for one in &told {
        let is_new = !others.contains(&*one.id) && ids.insert(&one.id);
        // What separates ids in annotations cannot be in one.
        let is_plain = !one.id.is_empty() && !one.id.contains([',', ':', ';', '[']);
        let is_meant = one.count >= 0 && (0..=MEMORY_MAX).contains(&one.devmem);
        if !is_new || !is_plain || !is_meant || cards.len() == CARDS_MAX {
            return None;
        }
        cards.push(Card {
            id: one.id.as_str().into(),
            kind: npu.common_word.as_str().into(),
            model: one.r#type.as_str().into(),
            memory: one.devmem,
            users_max: one.count,
            network: one.network(),
            is_healthy: one.health,
            ..Card::default()
        });
    }
    let all_have = cards.iter().all(|card| card.network.is_some());
    if !all_have || !npu.common_word.starts_with(WITH_NETWORKS) {
        cards.iter_mut().for_each(|card| card.network = None);
    }
    Some(cards)
}

impl Registered {
    fn network(&self) -> Option<i64> {
        let number = self.custominfo.as_ref()?.network?;
        number.is_finite().then_some(number as i64)
    }
}

/// Adds what a pod's containers want of NPUs, kind by kind.
pub(super) fn want(kinds: &[NpuConfig], pod: &Pod, ask: &mut CardAsk) {
    let asked = asked(kinds, pod);
    let containers = || pod.spec.containers.iter();
    let of_kind = |npu| containers().filter_map(move |container| part(npu, container, asked));
    let parts: Vec<Part> = kinds.iter().flat_map(of_kind).collect();
    if !parts.is_empty() {
        ask.npu_division = asked;
        ask.parts.extend(parts);
    }
}

/// How the NPUs are divided that the pod wants: it says it, or says it by wanting cores, of which there
/// are some only where a library divides them.
fn asked(kinds: &[NpuConfig], pod: &Pod) -> NpuDivisionAsk {
    let mut containers = pod.spec.containers.iter();
    let wants_cores = containers.any(|it| kinds.iter().any(|npu| cores(npu, it) > 0));
    let word = pod.metadata.annotations.get(VNPU_MODE);
    match word.map_or("", |word| word.trim()) {
        "" if !wants_cores => NpuDivisionAsk::Any,
        "" | VNPU_MODE_HAMI_CORE => NpuDivisionAsk::Only(NpuDivision::Soft),
        VNPU_MODE_TEMPLATE if !wants_cores => NpuDivisionAsk::Only(NpuDivision::Templates),
        _ => NpuDivisionAsk::Unknown,
    }
}

/// How many percent of the cores a container wants. Upstream: more than all of them are all.
fn cores(npu: &NpuConfig, container: &Container) -> i64 {
    let wanted = limit(container, &npu.resource_core_name);
    wanted.unwrap_or(0).clamp(0, CORES_WHOLE)
}

fn part(npu: &NpuConfig, container: &Container, asked: NpuDivisionAsk) -> Option<Part> {
    let memory = limit(container, &npu.resource_memory_name);
    let cards = limit(container, &npu.resource_name).or_else(|| memory.map(|_| 1))?;
    if cards <= 0 {
        return None;
    }
    let is_soft = asked == NpuDivisionAsk::Only(NpuDivision::Soft);
    let cores = if is_soft { cores(npu, container) } else { 0 };
    let (memory, template) = match memory.filter(|mib| *mib > 0) {
        None => (npu.memory_allocatable, ""),
        Some(mib) if is_soft => (mib, ""),
        // Upstream gives nothing of it to who wants more than there is, and starts it.
        Some(mib) => npu.part(mib).unwrap_or((i64::MAX, "")),
    };
    let is_partial = match is_soft {
        // A container is held to what it has of its first NPU, and to nothing of the others.
        true => memory < npu.memory_allocatable || (1..CORES_WHOLE).contains(&cores),
        false => !template.is_empty(),
    };
    Some(Part {
        kind: npu.common_word.as_str().into(),
        cards,
        memory: Memory::Mib(memory),
        cores,
        template: template.into(),
        is_partial,
    })
}

/// What a bound pod, which wants these parts, has of NPUs.
pub(super) fn held_by(kinds: &[NpuConfig], pod: &Pod, parts: &[Part]) -> Vec<Grant> {
    let mut grants = Vec::new();
    for npu in kinds {
        let annotation = |key: String| pod.metadata.annotations.get(key.as_str());
        let kind = &npu.common_word;
        let text = annotation(npu_allocated(kind)).or_else(|| annotation(npu_to_allocate(kind)));
        let of_kind = parts.iter().enumerate();
        let of_kind = of_kind.filter(|(_, part)| *part.kind == **kind);
        let places: Vec<usize> = of_kind.map(|(at, _)| at).collect();
        for mut grant in text.map_or_else(Vec::new, |it| by_id(it)) {
            grant.kind = kind.as_str().into();
            let place = places.get(grant.part as usize);
            grant.part = place.map_or(grant.part, |at| u32::try_from(*at).unwrap_or(u32::MAX));
            grants.push(grant);
        }
    }
    grants
}
