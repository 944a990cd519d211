//! What a bound pod is told of its cards, in the words of upstream's device plugins.
//!
//! Source: `specs/volcano.md`, section A.7.

use std::fmt::Write as _;

use api::core::TextMap;
use api::time::Time;
use api::volcano::{
    BIND_PHASE, BIND_PHASE_ALLOCATING, BIND_TIME, GPU_INDEX, PREDICATE_TIME, VGPU_IDS, VGPU_NODE,
    VGPU_TIME, VGPU_TO_ALLOCATE, VGPU_VENDOR,
};
use model::{CardAsk, Grant};

/// The annotations of a pod that gets these cards on the node now; none if it gets none.
pub(super) fn annotations(ask: &CardAsk, grants: &[Grant], node: &str, now: Time) -> TextMap {
    if grants.is_empty() {
        return TextMap::new();
    }
    if ask.parts.is_empty() {
        let places: Vec<&str> = grants.iter().map(|grant| &*grant.card).collect();
        let nanos = now.micros().saturating_mul(1_000);
        return TextMap::from([
            (GPU_INDEX.into(), places.join(",").into()),
            (PREDICATE_TIME.into(), nanos.to_string().into()),
        ]);
    }
    let ids: Box<str> = by_container(ask.parts.len(), grants).into();
    let seconds: Box<str> = now.micros().div_euclid(1_000_000).to_string().into();
    TextMap::from([
        (BIND_PHASE.into(), BIND_PHASE_ALLOCATING.into()),
        (BIND_TIME.into(), seconds.clone()),
        (VGPU_TO_ALLOCATE.into(), ids.clone()),
        (VGPU_IDS.into(), ids),
        (VGPU_NODE.into(), node.into()),
        (VGPU_TIME.into(), seconds),
    ])
}

/// `UUID,NVIDIA,MiB,cores:` for each card, `;` between containers.
fn by_container(parts: usize, grants: &[Grant]) -> String {
    let mut text = String::new();
    for part in 0..parts {
        if part > 0 {
            text.push(';');
        }
        for grant in grants.iter().filter(|grant| grant.part as usize == part) {
            text.push_str(&grant.card);
            if let Some(slice) = &grant.slice {
                let _ = write!(text, "[{}-{}]", slice.group, slice.place);
            }
            let _ = write!(text, ",{VGPU_VENDOR},{},{}:", grant.memory, grant.cores);
        }
    }
    text
}
