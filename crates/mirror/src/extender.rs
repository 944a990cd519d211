//! Questions to an extender, and news for it, in Volcano's form: JSON of its scheduler's own structures, whose fields have
//! their names in Go (`specs/volcano.md`, A.8). The rows are written as they are read, without a tree of
//! values between: before every cycle all there is may be told.
//!
//! Pods stand in the task that a question is about, as far as they are held here; the tasks of a node or of
//! a gang come without theirs, so that a question stays small.

mod form;

use std::collections::BTreeMap;

use api::core::{Node, Pod, ResourceList, ResourceQuota};
use api::volcano::{
    HIERARCHY, HIERARCHY_WEIGHTS, JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE, NUMA_TOPOLOGY_POLICY,
    PodGroup, Queue, REVOCABLE_ZONE, TOPOLOGY_DECISION,
};
use model::{
    Charge, Counted, GangId, Kind, NodeId, Phase, Question, QueueId, Tables, TaskId, Vector,
    device_class,
};
use serde_json::Value;

use crate::held::Mirror;
use crate::rows::claimed;
use form::{
    Amounts, Body, Budget, DeviceAmounts, Everything, GangRow, Namespace, NodeRow, NumaInfo,
    QueueRow, TaskRow,
};

/// What is sent: JSON.
pub fn extender_body(mirror: &Mirror, tables: &Tables, question: &Question) -> Vec<u8> {
    let wire = Wire { mirror, tables };
    let body = match question {
        Question::Enters(gang) => Body::Gang {
            job: wire.gang(*gang, &[]),
        },
        Question::Overused(queue) => Body::Queue {
            queue: wire.queue(*queue),
        },
        Question::Ready(gang, ready) => Body::Gang {
            job: wire.gang(*gang, ready),
        },
        Question::Fits(task, node) => Body::Fits {
            task: wire.task_with_pod(*task),
            node: wire.node_with_tasks(*node),
        },
        Question::Points(task, nodes) => Body::Points {
            task: wire.task_with_pod(*task),
            nodes: nodes.iter().map(|node| wire.node(*node)).collect(),
        },
        Question::Gives(task, _, givers) => Body::Gives {
            evictor: wire.task_with_pod(*task),
            evictees: givers.iter().map(|task| wire.task(*task)).collect(),
        },
    };
    written(&body)
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

/// What is sent with news: JSON.
pub fn extender_news(mirror: &Mirror, tables: &Tables, news: ExtenderNews) -> Vec<u8> {
    let wire = Wire { mirror, tables };
    let body = match news {
        ExtenderNews::Opened => Body::Everything(wire.everything()),
        ExtenderNews::Closed => Body::Nothing {},
        ExtenderNews::Enqueued(gang) => Body::Gang {
            job: wire.gang(gang, &[]),
        },
        ExtenderNews::Allocated(task) => Body::Task {
            task: wire.task_with_pod(task),
        },
        ExtenderNews::Deallocated(task, node) => Body::Task {
            task: TaskRow {
                node_name: &tables.node(node).spec.name,
                ..wire.task_with_pod(task)
            },
        },
    };
    written(&body)
}

fn written(body: &Body<'_>) -> Vec<u8> {
    serde_json::to_vec(body).expect("every key of a row is a string")
}

/// So many thousandths as an amount is written.
fn thousandths(amount: i64) -> String {
    match amount % 1_000 {
        0 => (amount / 1_000).to_string(),
        _ => format!("{amount}m"),
    }
}

#[derive(Clone, Copy)]
struct Wire<'a> {
    mirror: &'a Mirror,
    tables: &'a Tables,
}

impl<'a> Wire<'a> {
    fn task_with_pod(self, id: TaskId) -> TaskRow<'a> {
        TaskRow {
            pod: self.pod(id),
            ..self.task(id)
        }
    }

    fn pod(self, id: TaskId) -> Option<&'a Pod> {
        let key = &self.tables.task(id).key;
        let pod = self.mirror.get::<Pod>(&key.namespace, &key.name);
        pod.map(|pod| &**pod)
    }

    fn task(self, id: TaskId) -> TaskRow<'a> {
        let row = self.tables.task(id);
        let pod = self.pod(id);
        let spec = &self.tables.shape(row.shape).spec;
        let request = self.amounts(&spec.requests);
        let gang = row.gang.map(|gang| self.tables.gang(gang));
        let node = row.node.map(|node| &self.tables.node(node).spec.name);
        let stays = |pod: &Pod| {
            let mut containers = pod.spec.init_containers.iter();
            containers.any(|it| it.restart_policy.as_deref() == Some("Always"))
        };
        let (dra_resreq, resource_claim_keys) = pod
            .map(|pod| self.claims(pod, &row.charges))
            .unwrap_or_default();
        TaskRow {
            uid: row.uid.to_string(),
            job: gang
                .map(|gang| gang.spec.key.to_string())
                .unwrap_or_default(),
            name: &row.key.name,
            namespace: &row.key.namespace,
            task_role: &row.role,
            resreq: request.clone(),
            init_resreq: request,
            dra_resreq,
            resource_claim_keys,
            node_name: node.map(|name| &**name).unwrap_or_default(),
            status: status(row.phase),
            last_transaction: (),
            priority: row.priority,
            volume_ready: row.claims.is_empty(),
            preemptable: row.preemptable,
            best_effort: row.best_effort,
            has_restartable_init_container: pod.is_some_and(stays),
            sch_gated: row.gated,
            revocable_zone: if spec.revocable { "*" } else { "" },
            numa_info: pod.map(numa_info),
            pod: None,
            pod_annotations: pod.map(|pod| &pod.metadata.annotations),
        }
    }

    /// What a pod asks for by its claims of devices, by their class, and which claims these are; nothing where
    /// it has none. A claim that counts for more in the pod's queue, since devices round up what it asks for,
    /// is told as that.
    fn claims(
        self,
        pod: &Pod,
        charges: &[Charge],
    ) -> (Option<BTreeMap<String, DeviceAmounts>>, Option<Vec<String>>) {
        let claims = claimed(self.mirror, pod, Counted::DevicesAndCapacity);
        if claims.is_empty() {
            return (None, None);
        }
        let mut sums = BTreeMap::new();
        let mut keys = Vec::new();
        for (name, mut amounts) in claims {
            let charge = charges
                .iter()
                .find(|it| !it.is_own && *it.claim.name == *name);
            for (kind, counts) in charge.into_iter().flat_map(|charge| &charge.amounts) {
                let amount = amounts.entry(self.tables.kinds().name(*kind).to_string());
                let amount = amount.or_default();
                *amount = (*counts).max(*amount);
            }
            keys.push(format!("{}/{name}", pod.metadata.namespace));
            for (kind, amount) in amounts {
                let sum: &mut i64 = sums.entry(kind).or_default();
                *sum = sum.saturating_add(amount);
            }
        }
        let mut classes: BTreeMap<String, DeviceAmounts> = BTreeMap::new();
        for (kind, amount) in sums {
            let Some((dimension, class)) = device_class(&kind) else {
                continue;
            };
            let row = classes.entry(class.to_owned()).or_default();
            if dimension.is_empty() {
                row.count = amount / 1_000;
            } else {
                let dimension = dimension.to_owned();
                row.capacity.insert(dimension, thousandths(amount));
            }
        }
        (Some(classes), Some(keys))
    }

    /// All gangs, nodes, queues and quotas. The list of nodes has their names.
    fn everything(self) -> Everything<'a> {
        let tables = self.tables;
        let gangs = tables.gangs().filter(|(_, gang)| gang.known);
        let nodes = || tables.nodes().filter(|(_, node)| node.known);
        let queues = tables.queues().filter(|(_, queue)| queue.known);
        let named = |(id, node): (NodeId, &'a model::Node)| -> (&'a str, NodeRow<'a>) {
            (&node.spec.name, self.node_with_tasks(id))
        };
        let is_lent =
            |(_, node): &(NodeId, &'a model::Node)| node.spec.labels.get(REVOCABLE_ZONE).is_some();
        Everything {
            jobs: gangs
                .map(|(id, gang)| (gang.spec.key.to_string(), self.gang(id, &[])))
                .collect(),
            nodes: nodes().map(named).collect(),
            queues: queues
                .map(|(id, queue)| (&*queue.spec.name, self.queue(id)))
                .collect(),
            namespace_info: self.namespaces(),
            revocable_nodes: nodes().filter(is_lent).map(named).collect(),
            node_list: nodes().map(|(_, node)| &*node.spec.name).collect(),
        }
    }

    /// Quotas by namespace, as far as they are held here.
    fn namespaces(self) -> BTreeMap<&'a str, Namespace<'a>> {
        let mut namespaces = BTreeMap::new();
        for quota in self.mirror.list::<ResourceQuota>() {
            let name: &str = &quota.metadata.namespace;
            let of = namespaces.entry(name).or_insert_with(|| Namespace {
                name,
                quota_status: BTreeMap::new(),
            });
            of.quota_status.insert(&quota.metadata.name, &quota.status);
        }
        namespaces
    }

    /// A gang, in which some tasks count as placed.
    fn gang(self, id: GangId, placed: &[TaskId]) -> GangRow<'a> {
        let row = self.tables.gang(id);
        let key = &row.spec.key;
        let group = self.mirror.get::<PodGroup>(&key.namespace, &key.name);
        let mut tasks = BTreeMap::new();
        let mut total = Vector::ZERO;
        for id in &row.tasks {
            let of = self.tables.task(*id);
            total.add(&self.tables.shape(of.shape).spec.requests);
            let mut task = self.task(*id);
            if placed.contains(id) && of.phase.is_waiting() {
                task.status = status(Phase::Allocated);
            }
            tasks.insert(of.uid.to_string(), task);
        }
        let minima = row.spec.min_task_member.iter();
        let minima = minima.map(|(role, min)| (&**role, *min));
        let all_minima = row.spec.min_task_member.values();
        let says = |key: &str| {
            let text = group?.metadata.annotations.get(key)?;
            Some(&**text)
        };
        GangRow {
            uid: key.to_string(),
            pg_uid: &row.spec.uid,
            name: &key.name,
            namespace: &key.namespace,
            queue: &row.spec.queue,
            priority: row.priority,
            min_available: row.spec.min_member,
            waiting_time: (row.spec.waits_at_most_ms).map(|ms| ms.saturating_mul(1_000_000)),
            job_fit_errors: "",
            nodes_fit_errors: BTreeMap::new(),
            tasks,
            task_min_available: minima.collect(),
            task_min_available_total: all_minima.map(|min| u64::from(*min)).sum(),
            allocated: self.amounts(&row.allocated),
            total_request: self.amounts(&total),
            creation_timestamp: group.map(|group| group.metadata.creation_timestamp),
            pod_group: group.map(|group| &**group),
            preemptable: row.spec.preemptable == Some(true),
            revocable_zone: match says(REVOCABLE_ZONE) {
                Some("*") => "*",
                _ => "",
            },
            budget: match (says(JDB_MIN_AVAILABLE), says(JDB_MAX_UNAVAILABLE)) {
                (None, None) => None,
                (min_available, max_unavailable) => Some(Budget {
                    min_available: min_available.unwrap_or_default(),
                    max_unavailable: max_unavailable.unwrap_or_default(),
                }),
            },
        }
    }

    fn queue(self, id: QueueId) -> QueueRow<'a> {
        let row = self.tables.queue(id);
        let name = &row.spec.name;
        let queue = self.mirror.get::<Queue>("", name);
        let says = |key: &str| {
            let text = queue.and_then(|queue| queue.metadata.annotations.get(key));
            text.map_or("", |text| &**text)
        };
        QueueRow {
            uid: name,
            name,
            weight: row.spec.weight,
            weights: says(HIERARCHY_WEIGHTS),
            hierarchy: says(HIERARCHY),
            queue: queue.map(|queue| &**queue),
        }
    }

    fn node_with_tasks(self, id: NodeId) -> NodeRow<'a> {
        let held = self.tables.node(id).tasks.iter();
        let tasks = held.map(|task| (self.tables.task(*task).uid.to_string(), self.task(*task)));
        NodeRow {
            tasks: tasks.collect(),
            ..self.node(id)
        }
    }

    fn node(self, id: NodeId) -> NodeRow<'a> {
        let row = self.tables.node(id);
        let name = &row.spec.name;
        let node = self.mirror.get::<Node>("", name);
        let room = &row.spec.allocatable;
        NodeRow {
            name,
            node: node.map(|node| &**node),
            releasing: self.amounts(&row.releasing),
            pipelined: self.amounts(&row.pipelined),
            idle: self.amounts(&room.minus(&row.used)),
            used: self.amounts(&row.used),
            allocatable: self.amounts(room),
            // A node that says nothing of it has what it gives.
            capacity: match node.filter(|node| !node.status.capacity.is_empty()) {
                Some(node) => listed(&node.status.capacity),
                None => self.amounts(room),
            },
            tasks: BTreeMap::new(),
        }
    }

    /// Thousandths of a core, bytes, and thousandths of anything else.
    fn amounts(self, vector: &Vector) -> Amounts<'a> {
        let kinds = self.tables.kinds();
        let others = vector
            .entries()
            .filter(|(kind, _)| ![Kind::CPU, Kind::MEMORY, Kind::PODS].contains(kind));
        Amounts {
            milli_cpu: vector.get(Kind::CPU),
            memory: vector.get(Kind::MEMORY),
            scalar_resources: others
                .map(|(kind, value)| (&**kinds.name(kind), value))
                .collect(),
            max_task_num: vector.get(Kind::PODS),
        }
    }
}

/// Amounts as an object lists them, in the same units.
fn listed(list: &ResourceList) -> Amounts<'_> {
    let has = |name: &str| list.get(name);
    let others = list
        .iter()
        .filter(|(name, _)| !["cpu", "memory", "pods"].contains(&&***name));
    Amounts {
        milli_cpu: has("cpu").map_or(0, |it| it.milli_value()),
        memory: has("memory").map_or(0, |it| it.value()),
        scalar_resources: others
            .map(|(name, it)| (&**name, it.milli_value()))
            .collect(),
        max_task_num: has("pods").map_or(0, |it| it.value()),
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
fn numa_info(pod: &Pod) -> NumaInfo<'_> {
    let says = |key: &str| pod.metadata.annotations.get(key).map(|text| &**text);
    let decision: Value = says(TOPOLOGY_DECISION)
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let by_node = decision.get("numa").and_then(Value::as_object);
    NumaInfo {
        policy: says(NUMA_TOPOLOGY_POLICY).unwrap_or_default(),
        res_map: by_node.cloned().unwrap_or_default(),
    }
}
