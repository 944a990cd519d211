//! The structures of Volcano's scheduler as they are written, by their names in Go. What is not told here
//! is `null` there.

use std::collections::BTreeMap;

use api::core::{Node, Pod, QuotaStatus, TextMap};
use api::time::Time;
use api::volcano::{PodGroup, Queue};
use serde::Serialize;
use serde_json::{Map, Value};

/// What is sent for one question or piece of news.
#[derive(Serialize)]
#[serde(untagged)]
#[expect(
    clippy::large_enum_variant,
    reason = "one lives at a time, on the stack, until it is text"
)]
pub(super) enum Body<'a> {
    Nothing {},
    Everything(Everything<'a>),
    Gang {
        job: GangRow<'a>,
    },
    Queue {
        queue: QueueRow<'a>,
    },
    Task {
        task: TaskRow<'a>,
    },
    Fits {
        task: TaskRow<'a>,
        node: NodeRow<'a>,
    },
    Points {
        task: TaskRow<'a>,
        nodes: Vec<NodeRow<'a>>,
    },
    Gives {
        evictor: TaskRow<'a>,
        evictees: Vec<TaskRow<'a>>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Everything<'a> {
    pub(super) jobs: BTreeMap<String, GangRow<'a>>,
    pub(super) nodes: BTreeMap<&'a str, NodeRow<'a>>,
    pub(super) queues: BTreeMap<&'a str, QueueRow<'a>>,
    pub(super) namespace_info: BTreeMap<&'a str, Namespace<'a>>,
    pub(super) revocable_nodes: BTreeMap<&'a str, NodeRow<'a>>,
    pub(super) node_list: Vec<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct TaskRow<'a> {
    #[serde(rename = "UID")]
    pub(super) uid: String,
    pub(super) job: String,
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
    pub(super) task_role: &'a str,
    pub(super) resreq: Amounts<'a>,
    pub(super) init_resreq: Amounts<'a>,
    #[serde(rename = "DRAResreq")]
    pub(super) dra_resreq: Option<BTreeMap<String, DeviceAmounts>>,
    pub(super) resource_claim_keys: Option<Vec<String>>,
    pub(super) node_name: &'a str,
    pub(super) status: u32,
    /// What a session did with the task and may take back: here no decision is half done when it is told.
    pub(super) last_transaction: (),
    pub(super) priority: i32,
    pub(super) volume_ready: bool,
    pub(super) preemptable: bool,
    pub(super) best_effort: bool,
    pub(super) has_restartable_init_container: bool,
    pub(super) sch_gated: bool,
    pub(super) revocable_zone: &'static str,
    pub(super) numa_info: Option<NumaInfo<'a>>,
    pub(super) pod: Option<&'a Pod>,
    pub(super) pod_annotations: Option<&'a TextMap>,
}

/// What is asked for of a class of devices: how many, and how much of each dimension of their capacity.
#[derive(Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct DeviceAmounts {
    pub(super) count: i64,
    pub(super) capacity: BTreeMap<String, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct GangRow<'a> {
    #[serde(rename = "UID")]
    pub(super) uid: String,
    #[serde(rename = "PgUID")]
    pub(super) pg_uid: &'a str,
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
    pub(super) queue: &'a str,
    pub(super) priority: i32,
    pub(super) min_available: u32,
    /// Nanoseconds.
    pub(super) waiting_time: Option<i64>,
    pub(super) job_fit_errors: &'static str,
    pub(super) nodes_fit_errors: BTreeMap<&'a str, &'a str>,
    pub(super) tasks: BTreeMap<String, TaskRow<'a>>,
    pub(super) task_min_available: BTreeMap<&'a str, u32>,
    pub(super) task_min_available_total: u64,
    pub(super) allocated: Amounts<'a>,
    pub(super) total_request: Amounts<'a>,
    pub(super) creation_timestamp: Option<Option<Time>>,
    pub(super) pod_group: Option<&'a PodGroup>,
    pub(super) preemptable: bool,
    pub(super) revocable_zone: &'static str,
    pub(super) budget: Option<Budget<'a>>,
}

/// What a gang says of its disruption, in its own words.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Budget<'a> {
    pub(super) min_available: &'a str,
    /// Upstream's own spelling.
    #[serde(rename = "MaxUnavilable")]
    pub(super) max_unavailable: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct QueueRow<'a> {
    #[serde(rename = "UID")]
    pub(super) uid: &'a str,
    pub(super) name: &'a str,
    pub(super) weight: i32,
    pub(super) weights: &'a str,
    pub(super) hierarchy: &'a str,
    pub(super) queue: Option<&'a Queue>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct NodeRow<'a> {
    pub(super) name: &'a str,
    pub(super) node: Option<&'a Node>,
    pub(super) releasing: Amounts<'a>,
    pub(super) pipelined: Amounts<'a>,
    pub(super) idle: Amounts<'a>,
    pub(super) used: Amounts<'a>,
    pub(super) allocatable: Amounts<'a>,
    pub(super) capacity: Amounts<'a>,
    pub(super) tasks: BTreeMap<String, TaskRow<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Namespace<'a> {
    pub(super) name: &'a str,
    pub(super) quota_status: BTreeMap<&'a str, &'a QuotaStatus>,
}

#[derive(Clone, Serialize)]
pub(super) struct Amounts<'a> {
    #[serde(rename = "MilliCPU")]
    pub(super) milli_cpu: i64,
    #[serde(rename = "Memory")]
    pub(super) memory: i64,
    #[serde(rename = "ScalarResources")]
    pub(super) scalar_resources: BTreeMap<&'a str, i64>,
    #[serde(rename = "MaxTaskNum")]
    pub(super) max_task_num: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct NumaInfo<'a> {
    pub(super) policy: &'a str,
    pub(super) res_map: Map<String, Value>,
}
