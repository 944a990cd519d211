//! `scheduling.volcano.sh/v1beta1` Queue.

use serde_json::{Value, json};

use crate::core::ResourceList;
use crate::meta::ObjectMeta;

texts! {
    /// What a queue lets in.
    pub enum QueueState {
        /// Takes jobs.
        Open = "Open",
        /// Takes none.
        Closed = "Closed",
        /// Takes none, and those in it go on.
        Closing = "Closing",
        /// Something is wrong with it.
        Unknown = "Unknown",
    }
}

round_trip! {
    /// Volcano's queue.
    pub struct Queue {
        /// `scheduling.volcano.sh/v1beta1`.
        pub api_version: Box<str>,
        /// `Queue`.
        pub kind: Box<str>,
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: QueueSpec,
        /// What is.
        pub status: QueueStatus,
    }

    /// What a queue wants.
    pub struct QueueSpec {
        /// Its share against its siblings, 1 to 65535; 1 by schema.
        pub weight: Option<i32>,
        /// Never more than this; a dimension that is not named is unlimited.
        pub capability: Option<ResourceList>,
        /// Whether others may take back what they deserve; absent means yes.
        pub reclaimable: Option<bool>,
        /// Other clusters.
        pub extend_clusters: Vec<ExtendCluster>,
        /// Never less than this is kept for it.
        pub guarantee: Option<Guarantee>,
        /// Which groups of nodes.
        pub affinity: Option<QueueAffinity>,
        /// A free word.
        #[serde(rename = "type")]
        pub type_name: Box<str>,
        /// The queue above; empty means `root`.
        pub parent: Box<str>,
        /// Its share as amounts.
        pub deserved: Option<ResourceList>,
        /// Higher goes first.
        pub priority: Option<i32>,
        /// `traverse` (default) or `fifo`.
        pub dequeue_strategy: Box<str>,
    }

    /// Another cluster.
    pub struct ExtendCluster {
        /// Name.
        pub name: Box<str>,
        /// Weight.
        pub weight: Option<i32>,
        /// What it has.
        pub capacity: Option<ResourceList>,
    }

    /// What is kept for a queue.
    pub struct Guarantee {
        /// Amounts.
        pub resource: Option<ResourceList>,
    }

    /// Which groups of nodes a queue uses.
    pub struct QueueAffinity {
        /// These.
        pub node_group_affinity: Option<NodeGroups>,
        /// Not these.
        pub node_group_anti_affinity: Option<NodeGroups>,
    }

    /// Groups of nodes by name.
    pub struct NodeGroups {
        /// Must.
        #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
        pub required: Vec<Box<str>>,
        /// Should.
        #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
        pub preferred: Vec<Box<str>>,
    }

    /// What a queue is.
    pub struct QueueStatus {
        /// What it lets in.
        pub state: QueueState,
        /// Gangs of which nothing is known.
        pub unknown: i32,
        /// Gangs that wait.
        pub pending: i32,
        /// Gangs that run.
        pub running: i32,
        /// Gangs that may have pods.
        pub inqueue: i32,
        /// Gangs that ended.
        pub completed: i32,
        /// Never written upstream.
        pub reservation: Option<QueueReservation>,
        /// What its pods hold.
        pub allocated: Option<ResourceList>,
    }

    /// What is held for a queue.
    pub struct QueueReservation {
        /// On these nodes.
        pub nodes: Vec<Box<str>>,
        /// So much.
        pub resource: Option<ResourceList>,
    }
}

impl Queue {
    /// The queue above; `None` for the root itself.
    pub fn parent(&self) -> Option<&str> {
        if &*self.metadata.name == super::ROOT_QUEUE {
            return None;
        }
        Some(match &*self.spec.parent {
            "" => super::ROOT_QUEUE,
            parent => parent,
        })
    }
}

/// The queues that are there before any person makes one: `root`, from which nothing is reclaimed, and
/// `default` below it, whole.
pub fn first_queues() -> [Value; 2] {
    first_queues_with(super::DEFAULT_QUEUE)
}

/// The same with another name for the one below `root`.
pub fn first_queues_with(default: &str) -> [Value; 2] {
    let queue = |name: &str, spec: Value| {
        json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": { "name": name },
            "spec": spec,
        })
    };
    let below = json!({ "reclaimable": true, "weight": 1, "parent": super::ROOT_QUEUE });
    [
        queue(
            super::ROOT_QUEUE,
            json!({ "reclaimable": false, "weight": 1 }),
        ),
        queue(default, below),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Volcano's scheduler makes them (`specs/volcano.md` 3.2).
    #[test]
    fn the_root_gives_nothing_away_and_the_queue_below_it_does() {
        let [root, below] = first_queues_with("team");
        assert_eq!(root["metadata"]["name"], "root");
        assert_eq!(root["spec"], json!({ "reclaimable": false, "weight": 1 }));
        assert_eq!(below["metadata"]["name"], "team");
        let spec = json!({ "reclaimable": true, "weight": 1, "parent": "root" });
        assert_eq!(below["spec"], spec);
    }
}
