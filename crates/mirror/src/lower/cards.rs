//! What a bound pod is told of its cards, in the words of upstream's device plugins.
//!
//! Source: `specs/volcano.md`, section A.7; of NPUs HAMi's protocol of device plugins, of chips MindCluster's.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use api::core::TextMap;
use api::shared::Word;
use api::time::Time;
use api::volcano::{
    BIND_PHASE, BIND_PHASE_ALLOCATING, BIND_TIME, GPU_INDEX, NPU_BIND_PHASE, NPU_BIND_TIME,
    NPU_CORE, NPU_NODE, NPU_PREDICATE_TIME, NPU_TIME, PREDICATE_TIME, SHARED_LOCK, VGPU_IDS,
    VGPU_LOCK, VGPU_NODE, VGPU_TIME, VGPU_TO_ALLOCATE, VGPU_VENDOR, VNPU_MODE, VNPU_MODE_HAMI_CORE,
    npu_allocated, npu_runtime, npu_to_allocate,
};
use model::{CHIP, CardAsk, GPU, Grant, Part};
use serde::Serialize;

/// The annotations of a pod that gets these cards on the node now; none if it gets none.
pub(super) fn annotations(ask: &CardAsk, grants: &[Grant], node: &str, now: Time) -> TextMap {
    if grants.is_empty() {
        return TextMap::new();
    }
    let mut told = TextMap::new();
    if ask.memory > 0 || ask.number > 0 {
        told.extend(of_shared(grants, now));
    }
    let parts = ask.parts.iter().enumerate();
    let (gpus, npus): (Vec<_>, Vec<_>) = parts.partition(|(_, part)| part.is_of_gpus());
    let seconds: Word = now.micros().div_euclid(1_000_000).to_string().into();
    if !gpus.is_empty() {
        let ids: Word = by_container(&gpus, grants, VGPU_VENDOR).join(";").into();
        told.extend(TextMap::from([
            (BIND_PHASE.into(), BIND_PHASE_ALLOCATING.into()),
            (BIND_TIME.into(), seconds.clone()),
            (VGPU_TO_ALLOCATE.into(), ids.clone()),
            (VGPU_IDS.into(), ids),
            (VGPU_NODE.into(), node.into()),
            (VGPU_TIME.into(), seconds.clone()),
        ]));
    }
    if !npus.is_empty() {
        told.extend(of_all_npus((ask, &npus), grants, node, seconds));
    }
    if ask.chips.is_some() {
        told.extend(of_chips(grants, now));
    }
    told
}

/// What a pod is told of its NPUs, kind by kind.
fn of_all_npus(
    (ask, npus): (&CardAsk, &[Numbered<'_>]),
    grants: &[Grant],
    node: &str,
    seconds: Word,
) -> TextMap {
    let mut told = TextMap::new();
    let kinds: BTreeSet<&str> = npus.iter().map(|(_, part)| &*part.kind).collect();
    for kind in kinds {
        let parts = npus.iter().filter(|(_, part)| *part.kind == *kind);
        let parts: Vec<_> = parts.copied().collect();
        told.extend(of_npus((kind, ask), &parts, grants));
    }
    if ask.has_soft_npus() {
        // Device plugins look for this very word, also where the pod says it by wanting cores.
        told.insert(VNPU_MODE.into(), VNPU_MODE_HAMI_CORE.into());
    }
    told.extend(TextMap::from([
        (NPU_BIND_PHASE.into(), BIND_PHASE_ALLOCATING.into()),
        (NPU_BIND_TIME.into(), seconds.clone()),
        (NPU_NODE.into(), node.into()),
        (NPU_PREDICATE_TIME.into(), seconds.clone()),
        (NPU_TIME.into(), seconds),
    ]));
    told
}

/// The numbers of whole chips, or of one that and which part of it.
fn of_chips(grants: &[Grant], now: Time) -> TextMap {
    let chips = grants.iter().filter(|grant| *grant.kind == *CHIP);
    let chips: Vec<String> = chips
        .map(|grant| {
            let number = grant.card.rsplit('-').next().unwrap_or_default();
            match grant.chip {
                Some(part) => format!("{number}-{}", part.template.name()),
                None => number.to_owned(),
            }
        })
        .collect();
    if chips.is_empty() {
        return TextMap::new();
    }
    let nanos = now.micros().saturating_mul(1_000);
    TextMap::from([
        (NPU_CORE.into(), chips.join(",").into()),
        (NPU_PREDICATE_TIME.into(), nanos.to_string().into()),
    ])
}

/// The locks of a node under which a pod is given these cards: one for each kind, each named after it.
pub(super) fn locks(ask: &CardAsk, grants: &[Grant]) -> Vec<Box<str>> {
    let is_shared = ask.memory > 0 || ask.number > 0;
    // Chips have none.
    let is_locked = |grant: &&Grant| grant.units.is_empty() && *grant.kind != *CHIP;
    let kinds = grants.iter().filter(is_locked);
    let kinds: BTreeSet<&str> = kinds.map(|grant| &*grant.kind).collect();
    let name = |kind: &str| match kind {
        GPU if is_shared => SHARED_LOCK.into(),
        GPU => VGPU_LOCK.into(),
        kind => kind.into(),
    };
    kinds.into_iter().map(name).collect()
}

/// Shared cards are named by their places alone.
fn of_shared(grants: &[Grant], now: Time) -> TextMap {
    let gpus = grants.iter().filter(|grant| *grant.kind == *GPU);
    let places: Vec<&str> = gpus.map(|grant| &*grant.card).collect();
    let nanos = now.micros().saturating_mul(1_000);
    TextMap::from([
        (GPU_INDEX.into(), places.join(",").into()),
        (PREDICATE_TIME.into(), nanos.to_string().into()),
    ])
}

/// What the container runtime makes of one NPU: a part of a fixed size, a soft part, or all of it.
#[derive(Serialize)]
struct Runtime<'a> {
    #[serde(rename = "UUID")]
    id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    temp: &'a str,
    /// MiB to which a library holds it, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<i64>,
    /// Percent of the cores to which the library holds it; nothing where it may use any.
    #[serde(skip_serializing_if = "Option::is_none")]
    core: Option<i64>,
}

/// A part and its number.
type Numbered<'a> = (usize, &'a Part);

fn of_npus((kind, ask): (&str, &CardAsk), parts: &[Numbered<'_>], grants: &[Grant]) -> TextMap {
    let is_soft = ask.has_soft_npus();
    // Each container's list has an end here.
    let ids: Word = by_container(parts, grants, kind)
        .iter()
        .map(|one| format!("{one};"))
        .collect::<String>()
        .into();
    let runtime = parts.iter().flat_map(|part| {
        of_part(part, grants).map(|grant| Runtime {
            id: &grant.card,
            temp: &part.1.template,
            memory: part.1.template.is_empty().then_some(grant.memory),
            core: (is_soft && grant.cores > 0).then_some(grant.cores),
        })
    });
    let runtime: Vec<Runtime<'_>> = runtime.collect();
    let runtime = serde_json::to_string(&runtime).expect("texts become JSON");
    TextMap::from([
        (npu_to_allocate(kind).into(), ids.clone()),
        (npu_allocated(kind).into(), ids),
        (npu_runtime(kind).into(), runtime.into()),
    ])
}

fn of_part<'g>((at, part): &Numbered<'_>, grants: &'g [Grant]) -> impl Iterator<Item = &'g Grant> {
    let (at, kind) = (*at, part.kind.clone());
    let is_it = move |grant: &&Grant| grant.part as usize == at && grant.kind == kind;
    grants.iter().filter(is_it)
}

/// `UUID,VENDOR,MiB,cores:` for each card, of each container.
fn by_container(parts: &[Numbered<'_>], grants: &[Grant], vendor: &str) -> Vec<String> {
    let one = |part: &Numbered<'_>| {
        let mut text = String::new();
        for grant in of_part(part, grants) {
            text.push_str(&grant.card);
            if let Some(slice) = &grant.slice {
                let _ = write!(text, "[{}-{}]", slice.group, slice.place);
            }
            let _ = write!(text, ",{vendor},{},{}:", grant.memory, grant.cores);
        }
        text
    };
    parts.iter().map(one).collect()
}
