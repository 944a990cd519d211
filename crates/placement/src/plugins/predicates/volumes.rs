//! Claims that wait for their first consumer: which free volumes they get on a node, and whether the
//! others can have theirs made there.
//!
//! Source: Kubernetes' volume binding. The smallest claims choose first, and each gets the smallest volume
//! that serves it; what no free volume serves is made, where the class has somebody to make it.

use std::sync::Arc;

use model::{Making, NodeId, Refusal, Shape, TakenVolume, VolumeAsk, VolumeNeed};

use crate::plugin::View;

/// What claims of the shape get on the node of volumes that nobody has; `None` where nothing.
pub(crate) fn choose(
    view: View<'_>,
    shape: &Shape,
    node: NodeId,
) -> Result<Option<Arc<[TakenVolume]>>, Refusal> {
    let mut asks: Vec<(&VolumeAsk, usize)> = Vec::new();
    for (at, need) in shape.spec.volumes.iter().enumerate() {
        asks.extend(need.ask().map(|ask| (ask, at)));
    }
    asks.sort();
    let mut chosen = Vec::new();
    for (ask, at) in asks {
        let missing = take(view, (ask, at), node, &mut chosen);
        if missing > 0 {
            can_be_made(view, (ask, &shape.spec.volumes[at]), node)?;
        }
    }
    Ok((!chosen.is_empty()).then(|| chosen.into()))
}

/// Takes free volumes for claims that ask so; how many of these get none.
fn take(
    view: View<'_>,
    (ask, at): (&VolumeAsk, usize),
    node: NodeId,
    chosen: &mut Vec<TakenVolume>,
) -> u32 {
    let tables = view.tables;
    let taken = |volume: &Arc<str>| TakenVolume {
        need: u32::try_from(at).expect("a pod has few volumes"),
        claim: ask.claim.clone(),
        volume: Arc::clone(volume),
    };
    if let Some(claim) = &ask.claim {
        // Another task has gone before: what it took, or is to be made for it, serves this one as well.
        if let Some(volume) = tables.volume_for(claim) {
            let row = &tables.node(node).spec;
            let reaches = tables
                .free_volume(volume)
                .is_none_or(|it| it.whence.accepts(&row.name, &row.labels));
            chosen.extend(reaches.then(|| taken(volume)));
            return u32::from(!reaches);
        }
        if tables.claim_home(claim).is_some() {
            return 1;
        }
    }
    let mut missing = ask.count;
    for volume in tables.free_volumes(node, &ask.class, ask.size) {
        if missing == 0 {
            break;
        }
        let is_ours = chosen.iter().any(|it| it.volume == volume.name);
        if !is_ours && ask.accepts(volume) {
            chosen.push(taken(&volume.name));
            missing -= 1;
        }
    }
    missing
}

/// Whether a volume that claims ask for can be made where the node reaches it.
fn can_be_made(
    view: View<'_>,
    (ask, need): (&VolumeAsk, &VolumeNeed),
    node: NodeId,
) -> Result<(), Refusal> {
    let row = &view.tables.node(node).spec;
    let is_inside = match need {
        VolumeNeed::FirstConsumer { topology, .. } => topology.as_ref().is_none_or(|terms| {
            let mut terms = terms.iter();
            terms.any(|term| term.accepts(&row.name, &row.labels))
        }),
        _ => true,
    };
    match ask.making {
        Making::Never => Err(Refusal::NoFreeVolume),
        _ if !is_inside => Err(Refusal::NoFreeVolume),
        Making::Anywhere => Ok(()),
        Making::WhereRoom => {
            let largest = view.tables.largest_storage(node, &ask.class);
            match ask.size <= 0 || largest.is_some_and(|largest| largest >= ask.size) {
                true => Ok(()),
                false => Err(Refusal::LittleStorage),
            }
        }
    }
}
