//! Numa-aware: a task that has its cpus to itself goes where they lie near one another.
//!
//! Source: `specs/volcano.md`, sections 3.5, 3.6 and A.6, and Kubernetes' *Control Topology Management
//! Policies on a node*. Which cpus a task will have is its node's to say; what is chosen here, by the
//! same rule, is held by the task's row until the node has told, so that nobody else counts with it: a
//! trial that is rewound gives it back.

mod cpus;
mod hints;
mod standing;

use std::sync::Arc;

use model::{Grant, NodeId, NumaAsk, NumaLack, NumaLayout, NumaPolicy, Refusal, Shape, TaskId};

use crate::arguments::Asked;
use crate::plugin::{Plugin, Room, View};
use crate::rules::Config;

use standing::Standing;

/// The row. Its points are in proportion to the most among all nodes that would do; they are given where
/// these are known (`widths`).
pub const PLUGIN: Plugin = Plugin {
    name: "numa-aware",
    configure: Some(configure),
    suits: Some(suits),
    has_room: Some(has_room),
    hands_out: Some(hands_out),
    ..Plugin::NONE
};

/// How much it counts on how many NUMA nodes a task lies; nothing where the plugin is not there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setup {
    pub(crate) is_there: bool,
    pub(crate) weight: i64,
}

impl Setup {
    /// The same without points.
    pub(crate) fn without_points(&self) -> Setup {
        Setup { weight: 0, ..*self }
    }
}

fn configure(asked: &mut Asked<'_>, config: &mut Config) {
    config.numa = Setup {
        is_there: true,
        weight: asked.weight("weight", 1),
    };
}

fn refusal(why: NumaLack) -> Refusal {
    Refusal::Numa { why }
}

/// The node's layout where the task has to lie by it. A task that names no policy lies by that of its
/// node, and anywhere on a node that has none.
fn layout<'a>(
    ask: &NumaAsk,
    layout: Option<&'a NumaLayout>,
) -> Result<Option<&'a NumaLayout>, NumaLack> {
    if ask.policy.is_empty() {
        return Ok(layout.filter(|it| {
            it.pins_cpus && !it.is_garbled && NumaPolicy::of_word(&it.policy) != NumaPolicy::None
        }));
    }
    let layout = layout.ok_or(NumaLack::Untold)?;
    if !layout.pins_cpus {
        return Err(NumaLack::Unpinned);
    }
    if layout.policy != ask.policy {
        return Err(NumaLack::OtherPolicy {
            wanted: ask.policy.clone(),
            has: layout.policy.clone(),
        });
    }
    if layout.is_garbled {
        return Err(NumaLack::Garbled);
    }
    if layout.sockets.is_empty() {
        return Err(NumaLack::Unlaid);
    }
    if layout.cpus().is_none_or(|cpus| cpus.open.is_empty()) {
        return Err(NumaLack::NoCpus);
    }
    Ok(Some(layout))
}

/// Whether the node would do if nobody held anything of it.
fn suits(view: View<'_>, shape: &Shape, node: NodeId) -> Option<Refusal> {
    let ask = shape.spec.numa.as_deref()?;
    let layout = match layout(ask, view.tables.node(node).spec.numa.as_deref()) {
        Ok(layout) => layout?,
        Err(why) => return Some(refusal(why)),
    };
    let picked = Standing::empty(layout).pick(ask);
    let few = |container| refusal(NumaLack::Few { container });
    picked.err().map(few)
}

fn has_room(view: View<'_>, shape: &Shape, node: NodeId, room: Room) -> Option<Refusal> {
    let ask = shape.spec.numa.as_deref()?;
    choose(view, ask, node, room).err().map(refusal)
}

fn hands_out(view: View<'_>, task: TaskId, node: NodeId) -> Option<Vec<Grant>> {
    let ask = view.tables.shape_of(task).spec.numa.as_deref()?;
    choose(view, ask, node, Room::Now).ok()
}

/// What a task takes on the node now; later, once the tasks on their way out are gone and the promised
/// ones have taken theirs. What is promised to others stays theirs.
fn choose(view: View<'_>, ask: &NumaAsk, node: NodeId, room: Room) -> Result<Vec<Grant>, NumaLack> {
    let row = view.tables.node(node);
    let Some(layout) = layout(ask, row.spec.numa.as_deref())? else {
        return Ok(Vec::new());
    };
    let taken = |container: Arc<str>| NumaLack::Taken { container };
    let asks = row.promised.iter().filter_map(|task| {
        let shape = view.tables.shape_of(*task);
        shape.spec.numa.as_deref()
    });
    let mut promised = asks.peekable();
    if room == Room::Later {
        let mut standing = Standing::of(view, row, layout, room);
        for ask in promised {
            standing.pick(ask).map_err(taken)?;
        }
        return standing.pick(ask).map_err(taken);
    }
    let grants = Standing::of(view, row, layout, room)
        .pick(ask)
        .map_err(taken)?;
    if promised.peek().is_some() {
        let mut later = Standing::of(view, row, layout, Room::Later);
        later.leave_out(&grants);
        for ask in promised {
            later.pick(ask).map_err(taken)?;
        }
    }
    Ok(grants)
}

/// How much it counts on how many NUMA nodes a task of the shape lies; nothing where it does not.
pub(crate) fn weighed(view: View<'_>, shape: &Shape) -> Option<i64> {
    let setup = &view.config.numa;
    let ask = shape.spec.numa.as_ref()?;
    (setup.is_there && setup.weight != 0 && !ask.policy.is_empty()).then_some(setup.weight)
}

/// On how many NUMA nodes the cpus of a task of the shape would lie.
pub(crate) fn width(view: View<'_>, shape: &Shape, node: NodeId) -> usize {
    let layout = view.tables.node(node).spec.numa.as_deref();
    let (Some(ask), Some(layout)) = (shape.spec.numa.as_deref(), layout) else {
        return 0;
    };
    let grants = choose(view, ask, node, Room::Now).unwrap_or_default();
    let cpus = grants.iter().find(|it| *it.card == *NumaLayout::CPU);
    cpus.map_or(0, |it| layout.spread_of(&it.card, &it.units).len())
}

#[cfg(test)]
mod tests;
