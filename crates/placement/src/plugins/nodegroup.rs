//! Nodegroup: queues use groups of nodes (A.6).

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    GangId, GroupLack, GroupLimits, Kind, Limits, NodeGroups, QueueId, Refusal, Shape, Vector,
};

use crate::arguments::{Asked, Switched};
use crate::footing::{Footing, Stand};
use crate::plugin::{Plugin, Score, View};
use crate::plugins::nodeorder::POINT;
use crate::rules::Config;

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "nodegroup",
    configure: Some(configure),
    hierarchy: Some(hierarchy),
    footing: Some(admit),
    footing_points: Some(add_points),
    reclaims_like: Some(queue_number),
    ..Plugin::NONE
};

/// How groups are used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// Whether a queue that names no group may use no node at all.
    strict: Switched,
    /// Whether the first of the preferred groups is the best.
    ordered: Switched,
    /// Whether a queue that names no group uses those of the one above it.
    hierarchy: Switched,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            strict: Switched::On,
            ordered: Switched::Off,
            hierarchy: Switched::Off,
        }
    }
}

fn configure(arguments: &mut Asked<'_>, config: &mut Config) {
    config.nodegroup = Setup {
        strict: arguments.flag("strict", Switched::On),
        ordered: arguments.flag("enablePreferredOrder", Switched::Off),
        ..config.nodegroup
    };
}

fn hierarchy(_: &mut Plugin, config: &mut Config) {
    config.nodegroup.hierarchy = Switched::On;
}

/// What holds for the queue: what it says itself, or where it says nothing the nearest above it.
pub(crate) fn groups_of<'a>(view: View<'a>, queue: QueueId) -> &'a NodeGroups {
    let own = &view.tables.queue(queue).spec.groups;
    if view.config.nodegroup.hierarchy == Switched::Off {
        return own;
    }
    let up = |id: &QueueId| view.tables.queue(*id).parent;
    // The tables keep the tree free of circles.
    let line = std::iter::successors(Some(queue), up);
    let mut said = line.map(|id| &view.tables.queue(id).spec.groups);
    said.find(|groups| !groups.is_empty()).unwrap_or(own)
}

fn admit(view: View<'_>, queue: QueueId, shape: &Shape, footing: &mut Footing) {
    let groups = groups_of(view, queue);
    let refused = |why| Err(Refusal::NodeGroup { why });
    footing.others = refused(match groups.is_empty() {
        true => GroupLack::Unnamed,
        false => GroupLack::Unwanted,
    });
    if !(groups.is_empty() && view.config.nodegroup.strict == Switched::Off) {
        footing.bare = refused(GroupLack::Bare);
    } else if view.tables.queue(queue).spec.group_limits == GroupLimits::Unreadable {
        footing.bare = Err(Refusal::NodeGroupLimitsUnreadable);
    }
    let named = [&groups.required, &groups.preferred, &groups.avoided];
    let named: BTreeSet<&Arc<str>> = named.into_iter().flatten().collect();
    // Upstream lets a group in that is both forbidden and avoided. What is forbidden stays so.
    for group in named
        .into_iter()
        .filter(|it| !groups.forbidden.contains(it))
    {
        let stand = stand_in(view, queue, shape, group);
        footing.groups.insert(group.clone(), stand);
    }
}

/// Whether the queue is within its limit in the group with one more task of the shape.
fn stand_in(view: View<'_>, queue: QueueId, shape: &Shape, group: &Arc<str>) -> Stand {
    match &view.tables.queue(queue).spec.group_limits {
        GroupLimits::Unreadable => Err(Refusal::NodeGroupLimitsUnreadable),
        GroupLimits::Known(limits) => {
            let used = view.tables.group_use(queue, group);
            let is_full = limits
                .get(group)
                .is_some_and(|limits| is_beyond(limits, used, shape));
            if is_full {
                Err(Refusal::NodeGroupFull)
            } else {
                Ok(0)
            }
        }
    }
}

fn is_beyond(limits: &Limits, used: Option<&Vector>, shape: &Shape) -> bool {
    let asked = |kind: Kind| shape.spec.requests.get(kind);
    let mut limits = limits.entries().filter(|(kind, _)| asked(*kind) > 0);
    limits.any(|(kind, limit)| {
        let used = used.map_or(0, |used| used.get(kind));
        used.saturating_add(asked(kind)) > limit
    })
}

fn add_points(view: View<'_>, queue: QueueId, _: &Shape, footing: &mut Footing) {
    let groups = groups_of(view, queue);
    let mut add = |group: &Arc<str>, change: &dyn Fn(Score) -> Score| {
        let others = footing.others.clone();
        let stand = footing.groups.entry(group.clone()).or_insert(others);
        if let Ok(points) = stand {
            *points = change(*points);
        }
    };
    for group in distinct(&groups.required) {
        add(group, &|points| points + 100 * POINT);
    }
    let count = Score::try_from(groups.preferred.len()).unwrap_or(Score::MAX);
    for (at, group) in (0..).zip(distinct(&groups.preferred)) {
        let worth = match view.config.nodegroup.ordered {
            Switched::On => 50 * POINT * (count - at) / count,
            Switched::Off => 50 * POINT,
        };
        add(group, &|points| points + worth);
    }
    for group in distinct(&groups.avoided) {
        add(group, &|_| -POINT);
    }
}

/// The names in their order, each where it comes first.
fn distinct(names: &[Arc<str>]) -> impl Iterator<Item = &Arc<str>> {
    let is_first = |at: usize| !names[..at].contains(&names[at]);
    (0..names.len())
        .filter(move |at| is_first(*at))
        .map(|at| &names[at])
}

/// Gangs of one queue are treated alike.
fn queue_number(view: View<'_>, gang: GangId) -> u64 {
    let queue = view.tables.gang(gang).queue;
    queue.map_or(u64::MAX, |queue| u64::from(queue.0))
}
