//! Groups of Kubernetes' own → gangs.

use api::core::Pod;
use api::native::PodGroup;
use api::volcano::{DEFAULT_QUEUE, QUEUE_OF_POD};
use model::{Closeness, GangPhase, GangSpec, GangStatus, Key, Ownership, Tables};

use super::ownership::is_settled;
use super::{Rows, count, created, pod};
use crate::held::{Change, Mirror};
use crate::index::Index;

/// What stands before the name of a native group in its gang's: one of Volcano's may have the same name.
pub const NATIVE: &str = "native:";

/// The key of a native group's gang.
pub fn native_gang(namespace: &str, group: &str) -> Key {
    Key::new(namespace, format!("{NATIVE}{group}"))
}

/// The name of a gang's group, native or Volcano's; of a gang that is one pod the pod's.
pub fn group_name(gang: &Key) -> &str {
    let name = gang.name.strip_prefix(NATIVE);
    name.or_else(|| lone_pod(gang)).unwrap_or(&gang.name)
}

/// The pod that a gang is alone, without a group.
pub fn lone_pod(gang: &Key) -> Option<&str> {
    gang.name.strip_prefix(pod::LONE)
}

impl Rows {
    /// A group has come or changed. Whether others are evicted for its pods is for the group to say, so
    /// they are looked at again.
    pub(super) fn put_native(&mut self, mirror: &Mirror, group: &PodGroup, tables: &mut Tables) {
        match self.reach.owns(&group.metadata) {
            true => {
                let ownership = self.ownership_of_native(mirror, group);
                put(group, ownership, tables);
            }
            false => tables.remove_gang(&native_gang(
                &group.metadata.namespace,
                &group.metadata.name,
            )),
        }
        self.put_members(
            mirror,
            &group.metadata.namespace,
            &group.metadata.name,
            tables,
        );
    }

    /// A group has gone; its pods wait for another of that name.
    pub(super) fn remove_native(
        &mut self,
        mirror: &Mirror,
        namespace: &str,
        name: &str,
        tables: &mut Tables,
    ) {
        tables.remove_gang(&native_gang(namespace, name));
        self.put_members(mirror, namespace, name, tables);
    }

    /// Whose a group is: that of whoever places its pods, all of which name one scheduler. Kubernetes says
    /// nothing of one without any.
    fn ownership_of_native(&self, mirror: &Mirror, group: &PodGroup) -> Ownership {
        let meta = &group.metadata;
        let pods = mirror.indexed::<Pod>(Index::PodNativeGroup, &meta.namespace, &meta.name);
        let mut are_ours = pods.map(|pod| self.is_of_native(pod));
        match are_ours.next() {
            None => Ownership::Unclaimed,
            Some(first) if are_ours.any(|is_ours| is_ours != first) => Ownership::Shared,
            Some(true) => Ownership::Ours,
            Some(false) => Ownership::Others,
        }
    }

    /// Whether a pod is placed here as one of its group of Kubernetes' own.
    fn is_of_native(&self, pod: &Pod) -> bool {
        let gang = self.gang_of(pod);
        gang.is_some_and(|gang| gang.name.starts_with(NATIVE))
    }

    /// A pod has come, changed or gone: its group may be another's now.
    pub(super) fn feed_native_ownership(
        &self,
        mirror: &Mirror,
        change: &Change,
        tables: &mut Tables,
    ) {
        if !self.has_native {
            return;
        }
        let (before, after) = (change.before::<Pod>(), change.after::<Pod>());
        let left = before.and_then(|pod| pod.native_group());
        let joined = after.and_then(|pod| Some((pod.native_group()?, self.is_of_native(pod))));
        if let Some(name) = left.filter(|name| joined.is_none_or(|(group, _)| group != *name)) {
            self.look_at_native(mirror, (&change.key.namespace, name), None, tables);
        }
        if let Some((name, is_ours)) = joined {
            let group = (&*change.key.namespace, name);
            self.look_at_native(mirror, group, Some(is_ours), tables);
        }
    }

    /// Finds out whose a group is; `joined` says whether one of ours or of others has joined it.
    fn look_at_native(
        &self,
        mirror: &Mirror,
        (namespace, name): (&str, &str),
        joined: Option<bool>,
        tables: &mut Tables,
    ) {
        let group = mirror.get::<PodGroup>(namespace, name);
        let Some(group) = group.filter(|group| self.reach.owns(&group.metadata)) else {
            return;
        };
        let row = tables.gang_keyed(&native_gang(namespace, name));
        let shown = row.and_then(|id| tables.find_gang(id));
        let shown = shown
            .filter(|gang| gang.known)
            .map(|gang| gang.spec.ownership);
        let mut pods = mirror.indexed::<Pod>(Index::PodNativeGroup, namespace, name);
        // Not all pods of a large group are looked at for each of them that comes or goes.
        let is_settled = match (shown, joined) {
            (Some(Ownership::Ours), None) => pods.any(|pod| self.is_of_native(pod)),
            _ => is_settled(shown, joined, || pods.next().is_some()),
        };
        if is_settled {
            return;
        }
        let ownership = self.ownership_of_native(mirror, group);
        if shown != Some(ownership) {
            put(group, ownership, tables);
        }
    }

    fn put_members(&mut self, mirror: &Mirror, namespace: &str, name: &str, tables: &mut Tables) {
        for pod in mirror.indexed::<Pod>(Index::PodNativeGroup, namespace, name) {
            self.put_pod(mirror, pod, tables);
        }
    }
}

fn put(group: &PodGroup, ownership: Ownership, tables: &mut Tables) {
    tables.put_gang(GangSpec {
        ownership,
        ..gang_spec(group)
    });
}

fn gang_spec(group: &PodGroup) -> GangSpec {
    let meta = &group.metadata;
    let gang = group.spec.scheduling_policy.gang.as_ref();
    GangSpec {
        key: native_gang(&meta.namespace, &meta.name),
        uid: (&*meta.uid).into(),
        queue: match meta.annotations.get(QUEUE_OF_POD) {
            Some(queue) if !queue.is_empty() => (&**queue).into(),
            _ => DEFAULT_QUEUE.into(),
        },
        // Pods of a group that is no gang start one by one: each is enough.
        min_member: gang.map_or(1, |gang| count(gang.min_count)),
        priority: group.spec.priority,
        priority_class: Some(&*group.spec.priority_class_name)
            .filter(|name| !name.is_empty())
            .map(Into::into),
        closeness: group.topology_key().map(|key| Closeness::Label(key.into())),
        preemptable: pod::preemptable(meta),
        goes_whole: group.is_disrupted_whole(),
        created: created(meta),
        status: GangStatus {
            phase: GangPhase::Inqueue,
            ..GangStatus::default()
        },
        native: true,
        ..GangSpec::default()
    }
}

/// What a pod's group says of all its pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Manners {
    /// Nobody is evicted for them.
    pub(super) humble: bool,
}

/// What the pod's group says, if it is there.
pub(super) fn manners(mirror: &Mirror, pod: &Pod) -> Manners {
    let group = pod
        .native_group()
        .and_then(|name| mirror.get::<PodGroup>(&pod.metadata.namespace, name));
    group.map_or_else(Manners::default, |group| Manners {
        humble: group.spec.preemption_policy.as_deref() == Some("Never"),
    })
}
