//! What a pod is, as its node tells it.
//!
//! Times in it count from the pod's start: pods of one template mostly fare alike, and what they say of it
//! is then held once for all of them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use super::{PodExtendedClaim, PodPhase, PodResourceClaimStatus, PodSizes};
use crate::shared::{List, Shared, Word};
use crate::time::Time;
use wire::Wire;

mod wire;

/// The condition of a pod that waits for being resized in place.
const RESIZE_PENDING: &str = "PodResizePending";
/// Its reason, and its word until Kubernetes 1.32, where its node can never give what is wanted.
const INFEASIBLE: &str = "Infeasible";

/// An instant in a pod's status. [`PodStatus::at`] says when that was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodTime(i64);

impl PodTime {
    /// When it was, of a pod that started then.
    pub fn after(self, start: Option<Time>) -> Time {
        Time(self.0.wrapping_add(start.map_or(0, |start| start.0)))
    }
}

impl Serialize for PodTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Time(self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PodTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PodTime, D::Error> {
        Ok(PodTime(Time::deserialize(deserializer)?.0))
    }
}

read_only! {
    /// A condition of a pod.
    #[derive(Hash)]
    pub struct PodCondition {
        /// What it is about.
        #[serde(rename = "type")]
        pub kind: Box<str>,
        /// `True`, `False` or `Unknown`.
        pub status: Box<str>,
        /// One word for machines.
        pub reason: Box<str>,
        /// A sentence for people.
        pub message: Box<str>,
        /// When the status last changed.
        pub last_transition_time: Option<PodTime>,
    }

    /// What a container is.
    #[derive(Hash)]
    pub struct ContainerStatus {
        /// Name.
        pub name: Box<str>,
        /// Now.
        pub state: ContainerState,
        /// Before the last restart.
        pub last_state: ContainerState,
        /// May be sent work.
        pub ready: bool,
        /// Restarts so far.
        pub restart_count: i32,
        /// Passed its start-up probe.
        pub started: Option<bool>,
    }

    /// One of three.
    #[derive(Hash)]
    pub struct ContainerState {
        /// Not yet.
        pub waiting: Option<ContainerWaiting>,
        /// Now.
        pub running: Option<ContainerRunning>,
        /// No more.
        pub terminated: Option<ContainerTerminated>,
    }

    /// Not yet running.
    #[derive(Hash)]
    pub struct ContainerWaiting {
        /// One word.
        pub reason: Box<str>,
        /// A sentence.
        pub message: Box<str>,
    }

    /// Running.
    #[derive(Hash)]
    pub struct ContainerRunning {
        /// Since when.
        pub started_at: Option<PodTime>,
    }

    /// Ended.
    #[derive(Hash)]
    pub struct ContainerTerminated {
        /// Exit code; 128 + signal if killed.
        pub exit_code: i32,
        /// Signal.
        pub signal: i32,
        /// One word.
        pub reason: Box<str>,
        /// A sentence.
        pub message: Box<str>,
        /// From.
        pub started_at: Option<PodTime>,
        /// To.
        pub finished_at: Option<PodTime>,
    }
}

/// What a pod is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodStatus {
    /// Where it is in its life.
    pub phase: PodPhase,
    /// Its address, the first if it has several.
    pub pod_ip: Word,
    /// When the node accepted it.
    pub start_time: Option<Time>,
    /// Conditions.
    pub conditions: List<PodCondition>,
    /// Containers.
    pub container_statuses: List<ContainerStatus>,
    /// What it has in common with others.
    pub common: Shared<PodRemarks>,
}

/// What most pods say alike of what they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodRemarks {
    /// Why it is so, for people.
    pub message: Box<str>,
    /// Why it is so, one word, such as `Evicted`.
    pub reason: Box<str>,
    /// Where preemption makes room for it.
    pub nominated_node_name: Box<str>,
    /// Init containers, in order of the spec.
    pub init_container_statuses: Box<[ContainerStatus]>,
    /// `Guaranteed`, `Burstable` or `BestEffort`.
    pub qos_class: Box<str>,
    /// Claims of devices that were made for it.
    pub resource_claim_statuses: Box<[PodResourceClaimStatus]>,
    /// The claim that was made for its resources that classes of devices serve.
    pub extended_resource_claim_status: Option<Box<PodExtendedClaim>>,
    /// What it has on its node, where that is told.
    pub sizes: Option<Box<PodSizes>>,
}

impl std::ops::Deref for PodStatus {
    type Target = PodRemarks;

    fn deref(&self) -> &PodRemarks {
        &self.common
    }
}

impl std::ops::DerefMut for PodStatus {
    fn deref_mut(&mut self) -> &mut PodRemarks {
        &mut self.common
    }
}

impl<'de> Deserialize<'de> for PodStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PodStatus, D::Error> {
        Ok(Wire::deserialize(deserializer)?.held())
    }
}

impl Serialize for PodStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Wire::of(self).serialize(serializer)
    }
}

impl PodRemarks {
    /// Whether nothing tells the two apart, not even how amounts are written.
    pub(super) fn is_alike(&self, other: &PodRemarks) -> bool {
        let (mine, its) = (self.sizes.iter(), other.sizes.iter());
        let mut amounts = mine
            .flat_map(|it| it.amounts())
            .zip(its.flat_map(|it| it.amounts()));
        self == other && amounts.all(|(mine, its)| mine.is_alike(its))
    }
}

impl PodStatus {
    /// When an instant in it was.
    pub fn at(&self, time: Option<PodTime>) -> Option<Time> {
        Some(time?.after(self.start_time))
    }

    /// The condition of that type.
    pub fn condition(&self, kind: &str) -> Option<&PodCondition> {
        self.conditions.iter().find(|it| &*it.kind == kind)
    }

    /// Since when the condition of that type is as it is.
    pub fn since(&self, kind: &str) -> Option<Time> {
        self.at(self.condition(kind)?.last_transition_time)
    }

    /// Whether its node can never give it what it requests by now.
    pub fn is_resize_infeasible(&self) -> bool {
        let pending = self.condition(RESIZE_PENDING);
        let word = self.sizes.as_ref().map(|sizes| &*sizes.resize);
        pending.is_some_and(|it| &*it.reason == INFEASIBLE) || word == Some(INFEASIBLE)
    }

    /// The conditions as they are written back, which a merge patch replaces as a whole: as they stand but
    /// for those of these types, then `wanted` (each whole, with its `type`).
    pub fn conditions_with(&self, wanted: Vec<Value>) -> Vec<Value> {
        let is_wanted = |it: &PodCondition| wanted.iter().any(|other| other["type"] == *it.kind);
        let others = self.conditions.iter().filter(|it| !is_wanted(it));
        let mut list: Vec<Value> = others.map(|it| it.wire(self.start_time)).collect();
        list.extend(wanted);
        list
    }
}

impl PodCondition {
    /// The condition as it stands, of a pod that started then; what is empty is left out.
    pub fn wire(&self, start: Option<Time>) -> Value {
        let mut value = json!({ "type": self.kind, "status": self.status });
        for (field, text) in [("reason", &self.reason), ("message", &self.message)] {
            if !text.is_empty() {
                value[field] = json!(text);
            }
        }
        if let Some(time) = self.last_transition_time {
            value["lastTransitionTime"] = json!(time.after(start));
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(start: &str, ready: &str, ended: &str) -> Value {
        json!({
            "startTime": start,
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": ready }],
            "containerStatuses": [{
                "name": "c",
                "state": { "running": { "startedAt": ready } },
                "lastState": { "terminated": { "exitCode": 1, "startedAt": start, "finishedAt": ended } },
            }],
            "initContainerStatuses": [{
                "name": "i",
                "state": { "terminated": { "exitCode": 1, "finishedAt": ended } },
            }],
        })
    }

    fn read(value: &Value) -> PodStatus {
        PodStatus::deserialize(value).expect("it is one")
    }

    #[test]
    fn pods_that_fared_alike_say_the_same_and_each_its_own_times() {
        let first = status(
            "2026-11-01T08:00:00Z",
            "2026-11-01T08:00:05Z",
            "2026-11-01T08:00:03Z",
        );
        let second = status(
            "2026-11-02T09:30:10Z",
            "2026-11-02T09:30:15Z",
            "2026-11-02T09:30:13Z",
        );
        let both = [read(&first), read(&second)];
        assert_eq!(both[0].conditions, both[1].conditions);
        assert_eq!(both[0].container_statuses, both[1].container_statuses);
        assert_eq!(both[0].common, both[1].common);
        for (wire, read) in [(&first, &both[0]), (&second, &both[1])] {
            let wanted = wire["conditions"][0]["lastTransitionTime"]
                .as_str()
                .and_then(Time::parse);
            assert_eq!(read.since("Ready"), wanted);
            let written = json!(read);
            let ended = "/containerStatuses/0/lastState/terminated/finishedAt";
            let ended_early = "/initContainerStatuses/0/state/terminated/finishedAt";
            for path in [
                "/startTime",
                "/conditions/0/lastTransitionTime",
                ended,
                ended_early,
            ] {
                let time = |value: &Value| value.pointer(path)?.as_str().and_then(Time::parse);
                assert_eq!(time(&written), time(wire), "{path}");
            }
            assert_eq!(self::read(&written), *read);
        }
    }

    #[test]
    fn what_has_not_started_has_its_times_as_they_are() {
        let mut wire = status("", "2026-11-01T08:00:05Z", "2026-11-01T08:00:03Z");
        wire["startTime"] = Value::Null;
        wire["containerStatuses"] = json!([]);
        let status = read(&wire);
        assert_eq!(status.since("Ready"), Time::parse("2026-11-01T08:00:05Z"));
        let wanted = json!({ "type": "Ready", "status": "False" });
        assert_eq!(status.conditions_with(vec![wanted.clone()]), [wanted]);
        let other = json!({ "type": "Other", "status": "True" });
        let both = status.conditions_with(vec![other.clone()]);
        assert_eq!((&both[0]["type"], &both[1]), (&json!("Ready"), &other));
    }
}
