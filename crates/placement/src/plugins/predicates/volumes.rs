//! Claims that wait for their first consumer: which free volumes they get on a node, and whether the
//! others can have theirs made there.
//!
//! Source: Kubernetes' volume binding. The smallest claims choose first, and each gets the smallest volume
//! that serves it; what no free volume serves is made, where the class has somebody to make it.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Making, NodeId, Refusal, Shape, TakenVolume, VolumeAsk, VolumeNeed};

use crate::arguments::{Asked, Complaint};
use crate::plugin::{Score, View};
use crate::plugins::nodeorder::POINT;
use crate::rules::Rules;

/// How long claims are waited for before a place is given up, in seconds, if nothing else is said.
const WAIT_SECONDS: i64 = 600;
/// No longer, whatever is said.
const WAIT_SECONDS_MAX: i64 = 86_400;

/// What is configured of volumes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setup {
    /// How long claims are waited for, if that is said.
    wait_seconds: Option<i64>,
    weight: i64,
    /// Points for how much of a volume, or of storage, is used: per cent of it with 0 to 10 points, in
    /// order. Between two of them points lie on the line.
    shape: Vec<(i64, i64)>,
}

impl Setup {
    pub(super) fn read(arguments: &mut Asked<'_>) -> Setup {
        let wait = "volumebinding.bindTimeoutSeconds";
        let is_said = arguments.has(wait);
        let wait_seconds = arguments.whole(wait, WAIT_SECONDS, 1, WAIT_SECONDS_MAX);
        let key = "volumebinding.shape";
        let shape = arguments.maps(key, |point| {
            let used = point.whole("utilization", 0, 0, 100);
            (used, point.whole("score", 0, 0, 10))
        });
        let mut shape = shape.unwrap_or_default();
        if !shape.is_sorted_by(|one, next| one.0 < next.0) {
            let why =
                "utilization has to grow from point to point: there are no points for volumes";
            arguments.complain(key, Complaint::Unserved(why));
            shape.clear();
        }
        let setup = Setup {
            wait_seconds: is_said.then_some(wait_seconds),
            weight: arguments.weight("volumebinding.weight", 1),
            shape,
        };
        if !setup.has_points() {
            // Without a shape no node is better for its volumes, as in Kubernetes.
            arguments.without_effect(&["volumebinding.weight"]);
        }
        setup
    }

    /// Whether a node may be better than another for its volumes.
    pub(super) fn has_points(&self) -> bool {
        !self.shape.is_empty() && self.weight > 0
    }

    /// Points, 0 to 100, where so much of so much is used.
    fn points(&self, used: i64, whole: i64) -> i64 {
        let percent = match whole > 0 && used <= whole {
            true => i64::try_from(i128::from(used) * 100 / i128::from(whole)).unwrap_or(100),
            false => 100,
        };
        let after = self.shape.iter().position(|(at, _)| percent <= *at);
        let points = match after {
            None => self.shape.last().map_or(0, |(_, points)| points * 10),
            Some(0) => self.shape[0].1 * 10,
            Some(next) => {
                let ((from, low), (to, high)) = (self.shape[next - 1], self.shape[next]);
                low * 10 + (high - low) * 10 * (percent - from) / (to - from)
            }
        };
        points.clamp(0, 100)
    }
}

impl Rules {
    /// How long claims of a place are waited for before it is given up, in milliseconds, if that is
    /// configured.
    pub fn volumes_wait_ms(&self) -> Option<i64> {
        let seconds = self.config.volumes.wait_seconds?;
        Some(seconds.saturating_mul(1_000))
    }
}

/// Points for a node by how much of free volumes claims would use there, or, where they get none, of the
/// storage from which theirs are made; class by class.
///
/// Source: Kubernetes' VolumeBinding with storage capacity scoring.
pub(super) fn score(view: View<'_>, shape: &Shape, node: NodeId) -> Score {
    let setup = &view.config.volumes;
    if shape.spec.volumes.is_empty() {
        return 0;
    }
    let Ok(chosen) = choose(view, shape, node) else {
        return 0;
    };
    let mut classes: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    let mut add = |ask: &'_ VolumeAsk, class, whole: i64| {
        let (used, all) = classes.entry(class).or_default();
        *used = used.saturating_add(ask.size);
        *all = all.saturating_add(whole);
    };
    match &chosen {
        Some(chosen) => {
            for taken in chosen.iter() {
                let ask = shape.spec.volumes.get(taken.need as usize);
                let ask = ask.and_then(VolumeNeed::ask);
                let volume = view.tables.free_volume(&taken.volume);
                if let (Some(ask), Some(volume)) = (ask, volume) {
                    add(ask, &*ask.class, volume.size);
                }
            }
        }
        None => {
            for ask in shape.spec.volumes.iter().filter_map(VolumeNeed::ask) {
                let largest = view.tables.largest_storage(node, &ask.class);
                if let (Making::WhereRoom, Some(largest)) = (ask.making, largest) {
                    add(ask, &*ask.class, largest);
                }
            }
        }
    }
    let count = i64::try_from(classes.len()).unwrap_or(i64::MAX).max(1);
    let points = classes
        .values()
        .map(|(used, all)| setup.points(*used, *all));
    let points = points.sum::<i64>() / count;
    points.saturating_mul(setup.weight).saturating_mul(POINT)
}

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
    let taken = |volume: &Arc<str>, attach: &Option<(Arc<str>, Arc<str>)>| TakenVolume {
        need: u32::try_from(at).expect("a pod has few volumes"),
        claim: ask.claim.clone(),
        volume: Arc::clone(volume),
        attach: attach.clone(),
    };
    if let Some(claim) = &ask.claim {
        // Another task has gone before: what it took, or is to be made for it, serves this one as well.
        if let Some(before) = tables.volume_for(claim) {
            let row = &tables.node(node).spec;
            let reaches = tables
                .free_volume(&before.volume)
                .is_none_or(|it| it.whence.accepts(&row.name, &row.labels));
            chosen.extend(reaches.then(|| taken(&before.volume, &before.attach)));
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
            chosen.push(taken(&volume.name, &volume.attach));
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
