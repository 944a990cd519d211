//! What tasks that were promised room will take of devices, on their node and, of those that several
//! nodes reach, on all of them.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use model::{CardLoads, DeviceAsk, DeviceLack, Grant, Key, NodeId, Phase, TaskId};

use super::{Holdings, places_of, rest};
use crate::plugin::View;

/// What is held of devices once promises are kept.
pub(super) struct Loads<'a> {
    own: CardLoads,
    shared: Cow<'a, CardLoads>,
}

/// What promised tasks of all nodes will have of devices that several reach, as of an end of the log of
/// changed nodes: nodes are judged one after the other, and for most of them it is the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept(RefCell<Option<(u64, Arc<CardLoads>)>>);

impl<'a> Loads<'a> {
    /// What is held on the node once the tasks on their way out are gone, and this of what others reach, too.
    pub(super) fn later(view: View<'_>, node: NodeId, shared: &'a CardLoads) -> Loads<'a> {
        let row = view.tables.node(node);
        let mut own = row.cards.clone();
        for task in row.tasks.iter().map(|id| view.tables.task(*id)) {
            if task.phase == Phase::Releasing {
                task.grants.iter().for_each(|grant| own.give_back(grant));
            }
        }
        let shared = Cow::Borrowed(shared);
        Loads { own, shared }
    }

    pub(super) fn held(&self) -> Holdings<'_> {
        Holdings::Of(&self.own, &self.shared)
    }

    pub(super) fn take(&mut self, grant: &Grant) {
        match grant.is_shared {
            true => self.shared.to_mut().take(grant),
            false => self.own.take(grant),
        }
    }

    /// Gives each task that was promised room there what it will take, but for claims that get theirs by
    /// others. All shared claims that have devices then.
    pub(super) fn keep<'v>(
        &mut self,
        view: View<'v>,
        node: NodeId,
        mut served: BTreeSet<&'v Key>,
    ) -> Result<BTreeSet<&'v Key>, DeviceLack> {
        for (_, ask) in promised(view, node) {
            self.give(view, (node, ask), &mut served)?;
        }
        Ok(served)
    }

    fn give<'v>(
        &mut self,
        view: View<'v>,
        (node, ask): (NodeId, &'v DeviceAsk),
        served: &mut BTreeSet<&'v Key>,
    ) -> Result<(), DeviceLack> {
        let devices = &view.tables.node(node).spec.devices;
        let keys = ask.shared().map(|(_, claim)| claim);
        served.extend(keys.filter(|claim| view.tables.device_holder(claim).is_some()));
        let grants = rest(devices, self.held(), ask, &places_of(ask, served))?;
        grants.iter().for_each(|grant| self.take(grant));
        served.extend(ask.shared().map(|(_, claim)| claim));
        Ok(())
    }
}

/// The tasks that were promised room there and ask for devices.
pub(super) fn promised(view: View<'_>, node: NodeId) -> impl Iterator<Item = (TaskId, &DeviceAsk)> {
    let promised = view.tables.node(node).promised.iter();
    promised.filter_map(move |id| {
        let shape = view.tables.shape_of(*id);
        Some((*id, shape.spec.devices.as_deref()?))
    })
}

/// What is held of devices that several nodes reach, and what tasks will take of them that were promised
/// room on other nodes than this one. Who asks, gets devices for its shared claims itself.
pub(super) fn elsewhere(view: View<'_>, node: NodeId, ask: &DeviceAsk) -> Arc<CardLoads> {
    let is_here = view.tables.promised_shared().any(|it| it == node);
    if !is_here && ask.shared().next().is_none() {
        return everywhere(view);
    }
    sum(view, Some(node), ask.shared().map(|(_, claim)| claim))
}

fn everywhere(view: View<'_>) -> Arc<CardLoads> {
    let now = view.tables.log_end();
    let mut known = view.state.kept.0.borrow_mut();
    match &*known {
        Some((then, sum)) if *then == now => Arc::clone(sum),
        _ => {
            let sum = sum(view, None, std::iter::empty());
            *known = Some((now, Arc::clone(&sum)));
            sum
        }
    }
}

fn sum<'v>(
    view: View<'v>,
    without: Option<NodeId>,
    served: impl Iterator<Item = &'v Key>,
) -> Arc<CardLoads> {
    let mut shared = view.tables.shared_loads().clone();
    let mut served = served.collect();
    let nodes = view.tables.promised_shared();
    for node in nodes.filter(|node| Some(*node) != without) {
        let mut loads = Loads::later(view, node, &shared);
        for (_, ask) in promised(view, node) {
            // A promise that cannot be kept any more keeps nothing from anybody.
            loads.give(view, (node, ask), &mut served).ok();
        }
        let taken = match loads.shared {
            Cow::Owned(taken) => Some(taken),
            Cow::Borrowed(_) => None,
        };
        shared = taken.unwrap_or(shared);
    }
    Arc::new(shared)
}
