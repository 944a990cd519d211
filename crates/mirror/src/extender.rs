//! Questions to an extender, and news for it, in Volcano's form: JSON of its scheduler's own structures, whose fields have
//! their names in Go (`specs/volcano.md`, A.8).
//!
//! Pods stand in the task that a question is about, as far as they are held here; the tasks of a node or of
//! a gang come without theirs, so that a question stays small.

use api::core::{Node, Pod, ResourceQuota};
use api::volcano::{NUMA_TOPOLOGY_POLICY, PodGroup, Queue, REVOCABLE_ZONE, TOPOLOGY_DECISION};
use model::{GangId, Kind, NodeId, Phase, Question, QueueId, Tables, TaskId, Vector};
use serde_json::{Map, Value, json};

use crate::held::Mirror;

/// What is sent.
pub fn extender_body(mirror: &Mirror, tables: &Tables, question: &Question) -> Value {
    let wire = Wire { mirror, tables };
    match question {
        Question::Enters(gang) => json!({ "job": wire.job(*gang, &[]) }),
        Question::Overused(queue) => json!({ "queue": wire.queue(*queue) }),
        Question::Ready(gang, ready) => json!({ "job": wire.job(*gang, ready) }),
        Question::Fits(task, node) => json!({
            "task": wire.task_with_pod(*task),
            "node": wire.node_with_tasks(*node),
        }),
        Question::Points(task, nodes) => json!({
            "task": wire.task_with_pod(*task),
            "nodes": nodes.iter().map(|node| wire.node(*node)).collect::<Vec<_>>(),
        }),
        Question::Gives(task, _, givers) => json!({
            "evictor": wire.task_with_pod(*task),
            "evictees": givers.iter().map(|task| wire.task(*task)).collect::<Vec<_>>(),
        }),
    }
}

/// What an extender is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtenderNews {
    /// Everything there is, before something is decided.
    Opened,
    /// What was decided is told.
    Closed,
    /// The gang was let in.
    Enqueued(GangId),
    /// The task was given its node.
    Allocated(TaskId),
    /// The task has to leave this node, or does not get there.
    Deallocated(TaskId, NodeId),
}

/// What is sent with news.
pub fn extender_news(mirror: &Mirror, tables: &Tables, news: ExtenderNews) -> Value {
    let wire = Wire { mirror, tables };
    match news {
        ExtenderNews::Opened => wire.everything(),
        ExtenderNews::Closed => json!({}),
        ExtenderNews::Enqueued(gang) => json!({ "job": wire.job(gang, &[]) }),
        ExtenderNews::Allocated(task) => json!({ "task": wire.task_with_pod(task) }),
        ExtenderNews::Deallocated(task, node) => {
            let mut body = wire.task_with_pod(task);
            body["NodeName"] = json!(&*tables.node(node).spec.name);
            json!({ "task": body })
        }
    }
}

#[derive(Clone, Copy)]
struct Wire<'a> {
    mirror: &'a Mirror,
    tables: &'a Tables,
}

impl Wire<'_> {
    fn task_with_pod(self, id: TaskId) -> Value {
        let mut task = self.task(id);
        if let Some(pod) = self.pod(id) {
            task["Pod"] = json!(pod);
        }
        task
    }

    fn pod(&self, id: TaskId) -> Option<&Pod> {
        let key = &self.tables.task(id).key;
        let pod = self.mirror.get::<Pod>(&key.namespace, &key.name);
        pod.map(|pod| &**pod)
    }

    fn task(self, id: TaskId) -> Value {
        let row = self.tables.task(id);
        let pod = self.pod(id);
        let request = self.amounts(&self.tables.shape(row.shape).spec.requests);
        let gang = row.gang.map(|gang| self.tables.gang(gang));
        let node = row.node.map(|node| &self.tables.node(node).spec.name);
        let stays = |pod: &Pod| {
            let mut containers = pod.spec.init_containers.iter();
            containers.any(|it| it.restart_policy.as_deref() == Some("Always"))
        };
        json!({
            "UID": &*row.uid,
            "Job": gang.map(|gang| gang.spec.key.to_string()).unwrap_or_default(),
            "Name": &*row.key.name,
            "Namespace": &*row.key.namespace,
            "TaskRole": &*row.role,
            "Resreq": request,
            "InitResreq": request,
            "DRAResreq": null,
            "ResourceClaimKeys": null,
            "NodeName": node.map(|name| &**name).unwrap_or_default(),
            "Status": status(row.phase),
            "LastTransaction": null,
            "Priority": row.priority,
            "VolumeReady": row.claims.is_empty(),
            "Preemptable": row.preemptable,
            "BestEffort": row.best_effort,
            "HasRestartableInitContainer": pod.is_some_and(stays),
            "SchGated": row.gated,
            "RevocableZone": match self.tables.shape(row.shape).spec.revocable {
                true => "*",
                false => "",
            },
            "NumaInfo": pod.map(numa_info),
            "Pod": null,
            "PodAnnotations": pod.map(|pod| &pod.metadata.annotations),
        })
    }

    /// All gangs, nodes, queues and quotas. The list of nodes has them without their tasks, which stand in
    /// the map.
    fn everything(self) -> Value {
        let tables = self.tables;
        let gangs = tables.gangs().filter(|(_, gang)| gang.known);
        let jobs = gangs.map(|(id, gang)| (gang.spec.key.to_string(), self.job(id, &[])));
        let nodes = || tables.nodes().filter(|(_, node)| node.known);
        let queues = tables.queues().filter(|(_, queue)| queue.known);
        let queues = queues.map(|(id, queue)| (queue.spec.name.to_string(), self.queue(id)));
        let named = |(id, node): (NodeId, &model::Node)| {
            (node.spec.name.to_string(), self.node_with_tasks(id))
        };
        let is_lent =
            |(_, node): &(NodeId, &model::Node)| node.spec.labels.get(REVOCABLE_ZONE).is_some();
        json!({
            "Jobs": jobs.collect::<Map<_, _>>(),
            "Nodes": nodes().map(named).collect::<Map<_, _>>(),
            "Queues": queues.collect::<Map<_, _>>(),
            "NamespaceInfo": self.namespaces(),
            "RevocableNodes": nodes().filter(is_lent).map(named).collect::<Map<_, _>>(),
            "NodeList": nodes().map(|(id, _)| self.node(id)).collect::<Vec<_>>(),
        })
    }

    /// Quotas by namespace, as far as they are held here.
    fn namespaces(self) -> Map<String, Value> {
        let mut namespaces = Map::new();
        for quota in self.mirror.list::<ResourceQuota>() {
            let name = &quota.metadata.namespace;
            let none = || json!({ "Name": name, "QuotaStatus": {} });
            let of = namespaces.entry(name.to_string()).or_insert_with(none);
            of["QuotaStatus"][&*quota.metadata.name] = json!(quota.status);
        }
        namespaces
    }

    /// A gang, in which some tasks count as placed.
    fn job(self, id: GangId, placed: &[TaskId]) -> Value {
        let row = self.tables.gang(id);
        let key = &row.spec.key;
        let group = self.mirror.get::<PodGroup>(&key.namespace, &key.name);
        let mut tasks = Map::new();
        let mut total = Vector::ZERO;
        for id in &row.tasks {
            let of = self.tables.task(*id);
            total.add(&self.tables.shape(of.shape).spec.requests);
            let mut task = self.task(*id);
            if placed.contains(id) && of.phase.is_waiting() {
                task["Status"] = json!(status(Phase::Allocated));
            }
            tasks.insert(of.uid.to_string(), task);
        }
        let minima: Map<String, Value> = (row.spec.min_task_member.iter())
            .map(|(role, min)| (role.to_string(), json!(min)))
            .collect();
        json!({
            "UID": key.to_string(),
            "PgUID": &*row.spec.uid,
            "Name": &*key.name,
            "Namespace": &*key.namespace,
            "Queue": &*row.spec.queue,
            "Priority": row.priority,
            "MinAvailable": row.spec.min_member,
            "WaitingTime": null,
            "JobFitErrors": "",
            "NodesFitErrors": {},
            "Tasks": tasks,
            "TaskMinAvailable": minima,
            "TaskMinAvailableTotal": row.spec.min_task_member.values().sum::<u32>(),
            "Allocated": self.amounts(&row.allocated),
            "TotalRequest": self.amounts(&total),
            "CreationTimestamp": group.map(|group| group.metadata.creation_timestamp),
            "PodGroup": group.map(|group| &**group),
            "Preemptable": row.spec.preemptable,
            "RevocableZone": "",
            "Budget": null,
        })
    }

    fn queue(self, id: QueueId) -> Value {
        let row = self.tables.queue(id);
        let name = &row.spec.name;
        let queue = self.mirror.get::<Queue>("", name);
        json!({
            "UID": &**name,
            "Name": &**name,
            "Weight": row.spec.weight,
            "Weights": "",
            "Hierarchy": "",
            "Queue": queue.map(|queue| &**queue),
        })
    }

    fn node_with_tasks(self, id: NodeId) -> Value {
        let mut node = self.node(id);
        let held = self.tables.node(id).tasks.iter();
        let tasks = held.map(|task| (self.tables.task(*task).uid.to_string(), self.task(*task)));
        node["Tasks"] = Value::Object(tasks.collect());
        node
    }

    fn node(self, id: NodeId) -> Value {
        let row = self.tables.node(id);
        let name = &row.spec.name;
        let node = self.mirror.get::<Node>("", name);
        let room = &row.spec.allocatable;
        json!({
            "Name": &**name,
            "Node": node.map(|node| &**node),
            "Releasing": self.amounts(&row.releasing),
            "Pipelined": self.amounts(&row.pipelined),
            "Idle": self.amounts(&room.minus(&row.used)),
            "Used": self.amounts(&row.used),
            "Allocatable": self.amounts(room),
            "Capacity": self.amounts(room),
            "Tasks": {},
        })
    }

    /// Thousandths of a core, bytes, and thousandths of anything else.
    fn amounts(self, vector: &Vector) -> Value {
        let mut scalars = Map::new();
        for (kind, value) in vector.entries() {
            if ![Kind::CPU, Kind::MEMORY, Kind::PODS].contains(&kind) {
                let name = self.tables.kinds().name(kind).to_string();
                scalars.insert(name, json!(value));
            }
        }
        json!({
            "MilliCPU": vector.get(Kind::CPU),
            "Memory": vector.get(Kind::MEMORY),
            "ScalarResources": scalars,
            "MaxTaskNum": vector.get(Kind::PODS),
        })
    }
}

/// Upstream's number of a task's state: one bit each.
fn status(phase: Phase) -> u32 {
    match phase {
        Phase::Pending => 1,
        Phase::Allocated => 1 << 1,
        Phase::Pipelined => 1 << 2,
        Phase::Binding => 1 << 3,
        Phase::Bound => 1 << 4,
        Phase::Running => 1 << 5,
        Phase::Releasing => 1 << 6,
        Phase::Succeeded => 1 << 7,
        Phase::Failed => 1 << 8,
    }
}

/// What a pod says of NUMA nodes: its policy, and how much it should get on which of them.
fn numa_info(pod: &Pod) -> Value {
    let says = |key: &str| pod.metadata.annotations.get(key).map(|text| &**text);
    let decision: Value = says(TOPOLOGY_DECISION)
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let by_node = decision.get("numa").and_then(Value::as_object);
    json!({
        "Policy": says(NUMA_TOPOLOGY_POLICY).unwrap_or_default(),
        "ResMap": by_node.cloned().unwrap_or_default(),
    })
}
