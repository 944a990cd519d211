//! Whose a PodGroup is, where several schedulers serve one cluster.
//!
//! A PodGroup does not say it, its pods do. Before they are there, the annotation of whoever made it
//! does; where it has none, as upstream makes it, it is taken for Volcano's, and a scheduler of another
//! name only lets it in. So no two of them write the same status in turn, for ever.

use std::sync::Arc;

use api::core::Pod;
use api::volcano::{PodGroup, SCHEDULER, SCHEDULER_NAME, group_of_pod};
use model::{Key, Ownership, Tables};

use super::Rows;
use crate::held::{Change, Mirror};
use crate::index::Index;

impl Rows {
    /// Whether a pod is placed here as one of its group.
    pub(super) fn is_ours(&self, pod: &Pod) -> bool {
        self.reach.owns(&pod.metadata) && self.scheduler_names.contains(&pod.spec.scheduler_name)
    }

    /// Whose a PodGroup is. It takes as long as it has pods of others only.
    pub(super) fn ownership(&self, mirror: &Mirror, group: &PodGroup) -> Ownership {
        let meta = &group.metadata;
        if !self.reach.owns(meta) {
            return Ownership::Others;
        }
        let mut pods = mirror
            .indexed::<Pod>(Index::PodGroup, &meta.namespace, &meta.name)
            .peekable();
        if pods.peek().is_some() {
            return match pods.any(|pod| self.is_ours(pod)) {
                true => Ownership::Ours,
                false => Ownership::Others,
            };
        }
        let is_served = |name: &str| self.scheduler_names.iter().any(|own| **own == *name);
        match meta.annotations.get(SCHEDULER) {
            Some(name) if is_served(name) => Ownership::Ours,
            Some(_) => Ownership::Others,
            None if is_served(SCHEDULER_NAME) => Ownership::Ours,
            None => Ownership::Unclaimed,
        }
    }

    /// A pod has come, changed or gone: its group may be another's now.
    pub(super) fn feed_ownership(&mut self, mirror: &Mirror, change: &Change, tables: &mut Tables) {
        fn group_of(pod: Option<&Arc<Pod>>) -> Option<&str> {
            pod.and_then(|pod| group_of_pod(&pod.metadata))
        }
        let (before, after) = (change.before::<Pod>(), change.after::<Pod>());
        let (left, joined) = (group_of(before), group_of(after));
        if let Some(name) = left.filter(|name| joined != Some(*name)) {
            self.look_again(mirror, (&change.key.namespace, name), None, tables);
        }
        if let (Some(pod), Some(name)) = (after, joined) {
            let is_ours = self.is_ours(pod);
            let group = (&*change.key.namespace, name);
            self.look_again(mirror, group, Some(is_ours), tables);
        }
    }

    /// Finds out whose a group is; `joined` says whether one of ours or of others has joined it.
    fn look_again(
        &mut self,
        mirror: &Mirror,
        (namespace, name): (&str, &str),
        joined: Option<bool>,
        tables: &mut Tables,
    ) {
        let Some(group) = mirror.get::<PodGroup>(namespace, name) else {
            return;
        };
        let row = tables.gang_keyed(&Key::new(namespace, name));
        let shown = row.and_then(|id| tables.find_gang(id));
        let shown = shown.map(|gang| gang.spec.ownership);
        // Not all pods of a large group are looked at for each of them that comes or goes.
        let has_pods = || {
            mirror
                .keys(Index::PodGroup, namespace, name)
                .next()
                .is_some()
        };
        if is_settled(shown, joined, has_pods) {
            return;
        }
        let ownership = self.ownership(mirror, group);
        if shown != Some(ownership) {
            self.put_group(group, ownership, tables);
        }
    }
}

/// Whether a group stays whose it is shown to be, whoever else is in it: one of ours or of others has joined it,
/// or one has left.
pub(super) fn is_settled(
    shown: Option<Ownership>,
    joined: Option<bool>,
    has_pods: impl FnOnce() -> bool,
) -> bool {
    match (shown, joined) {
        (Some(Ownership::Ours), Some(is_ours)) => is_ours,
        (Some(Ownership::Shared), Some(_)) => true,
        (Some(Ownership::Others), Some(is_ours)) => !is_ours,
        (Some(Ownership::Others), None) => has_pods(),
        _ => false,
    }
}
