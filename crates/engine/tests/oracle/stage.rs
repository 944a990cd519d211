//! The same events for both: they change the plain cluster, and the engine's tables are fed with it.
//! Each of the engine's plans is judged and then carried out.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::Engine;
use model::{
    GangPhase, GangSpec, GangStatus, HostPort, Key, Kind, Labels, Limits, NodeSpec, Phase, Plan,
    PodTerm, Priority, QueueSpec, QueueState, Requirement, ShapeSpec, Tables, Taint, TaintEffect,
    TaskSpec, Time, Toleration, TolerationEffect, Vector, Verdict, VolumeNeed,
};

use crate::instance::{Amounts, Ask, Event, Gang, Node, Queue};
use crate::slow::{Cluster, Member, Place, Pod, Round, Stand};

/// How a plan is spoiled before it is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoil {
    /// Nothing of it is left.
    Nothing,
    /// Its last placement is missing.
    Part,
    /// Its first placement goes to the other node.
    Node,
}

pub struct Stage {
    pub placed: u32,
    pub spoil: Option<Spoil>,
    cluster: Cluster,
    tables: Tables,
    engine: Engine,
    now: Time,
    next_pod: usize,
    refused: BTreeSet<usize>,
    running: BTreeSet<usize>,
}

const GPU: &str = "nvidia.com/gpu";
const MEBI: i64 = 1 << 20;
const ROUNDS_MAX: usize = 60;

/// In the tables' units.
fn units([cpu, memory, gpu]: Amounts) -> Amounts {
    [cpu, memory * MEBI, gpu * 1_000]
}

impl Stage {
    pub fn new() -> Stage {
        let mut tables = Tables::new();
        // Whoever comes before the first node may want one, too.
        tables.kind(GPU);
        tables.put_priority(Priority {
            name: "high".into(),
            value: 1_000,
            global_default: false,
        });
        Stage {
            placed: 0,
            spoil: None,
            cluster: Cluster::default(),
            tables,
            engine: Engine::with_defaults(),
            now: Time::from_micros(0),
            next_pod: 0,
            refused: BTreeSet::new(),
            running: BTreeSet::new(),
        }
    }

    pub fn happen(&mut self, event: &Event) {
        self.now = self.now.plus_millis(5_000);
        match event {
            Event::Node(at, node) => {
                let mut node = node.clone();
                node.room = units(node.room);
                let spec = self.node_spec(*at, &node);
                self.tables.put_node(spec);
                self.cluster.nodes.insert(*at, node);
            }
            Event::Queue(at, queue) => {
                self.tables.put_queue(queue_spec(*at, queue));
                self.cluster.queues.insert(*at, queue.clone());
            }
            // A shrunk list of events may speak of what is no more.
            Event::Gang(_, gang) if !self.cluster.queues.contains_key(&gang.queue) => {}
            Event::Gang(at, gang) => {
                let mut gang = gang.clone();
                gang.tasks
                    .iter_mut()
                    .for_each(|(_, ask)| ask.wants = units(ask.wants));
                let member = Member {
                    gang,
                    stand: Stand::Outside,
                    pods: Vec::new(),
                };
                self.cluster.gangs.insert(*at, member);
                self.put_gang(*at, GangStatus::default());
            }
            Event::End(at) => self.end(*at),
            Event::Run(at) => {
                for pod in self.pods_of(*at) {
                    if self.cluster.pods[&pod].node.is_some() {
                        self.running.insert(pod);
                        self.put_pod(pod);
                    }
                }
            }
            Event::Refuse(at) => drop(self.refused.insert(*at)),
            Event::Foreign(at, _) if !self.cluster.nodes.contains_key(at) => {}
            Event::Foreign(at, cpu) => {
                let ask = Ask {
                    wants: units([*cpu, 128, 0]),
                    ..Ask::default()
                };
                let pod = self.new_pod(Pod {
                    gang: None,
                    ask,
                    node: Some(*at),
                });
                self.running.insert(pod);
                self.put_pod(pod);
            }
            Event::Open(at) => {
                for pod in self.pods_of(*at) {
                    self.cluster
                        .pods
                        .get_mut(&pod)
                        .expect("pods of gangs are there")
                        .ask
                        .gated = false;
                    self.put_pod(pod);
                }
            }
        }
    }

    fn pods_of(&self, gang: usize) -> Vec<usize> {
        self.cluster
            .gangs
            .get(&gang)
            .map_or(Vec::new(), |member| member.pods.clone())
    }

    fn end(&mut self, at: usize) {
        for pod in self.pods_of(at) {
            self.cluster.pods.remove(&pod);
            self.tables.remove_task(&pod_key(pod));
        }
        self.cluster.gangs.remove(&at);
        self.tables.remove_gang(&gang_key(at));
    }

    /// Lets the engine decide until it wants nothing more, and judges each plan.
    pub fn decide_until_quiet(&mut self) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            let plan = self.engine.cycle(&mut self.tables, self.now);
            self.judge(&plan)?;
            if plan.is_empty() {
                return Ok(());
            }
            self.carry_out(&plan);
        }
        Err("the engine does not come to rest".to_owned())
    }

    fn judge(&mut self, plan: &Plan) -> Result<(), String> {
        let entered = self.entered(plan);
        let expected = self.cluster.entrants();
        if entered != expected {
            return Err(format!(
                "gangs {entered:?} are let in, it should be {expected:?}"
            ));
        }
        let mut places: Vec<Place> = plan
            .places
            .iter()
            .map(|place| (self.pod_of(place.task), self.node_of(place.node)))
            .collect();
        match self.spoil {
            Some(Spoil::Nothing) => places.clear(),
            Some(Spoil::Part) => drop(places.pop()),
            Some(Spoil::Node) => places
                .iter_mut()
                .take(1)
                .for_each(|(_, node)| *node = 1 - *node),
            None => {}
        }
        Round::begin(&self.cluster).judge(&places)
    }

    fn entered(&self, plan: &Plan) -> BTreeSet<usize> {
        let news = plan
            .statuses
            .iter()
            .filter(|row| row.status.phase == GangPhase::Inqueue);
        let gangs = news.map(|row| number(&self.tables.gang(row.gang).spec.key.name));
        gangs
            .filter(|at| self.cluster.gangs[at].stand == Stand::Outside)
            .collect()
    }

    fn pod_of(&self, task: model::TaskId) -> usize {
        number(&self.tables.task(task).key.name)
    }

    fn node_of(&self, node: model::NodeId) -> usize {
        number(&self.tables.node(node).spec.name)
    }

    fn carry_out(&mut self, plan: &Plan) {
        for place in &plan.places {
            let (pod, node) = (self.pod_of(place.task), self.node_of(place.node));
            let gang = self.cluster.pods[&pod]
                .gang
                .expect("only pods of gangs are placed");
            if self.refused.remove(&gang) {
                self.tables.refuse(place.write);
                continue;
            }
            self.placed += 1;
            self.cluster
                .pods
                .get_mut(&pod)
                .expect("it was just looked at")
                .node = Some(node);
            self.put_pod(pod);
            self.tables.confirm(place.write);
        }
        for row in &plan.statuses {
            let at = number(&self.tables.gang(row.gang).spec.key.name);
            let status = GangStatus {
                verdict: Verdict::Undecided,
                ..row.status.clone()
            };
            let stand = match status.phase {
                GangPhase::Pending => Stand::Outside,
                GangPhase::Inqueue => Stand::Inside,
                GangPhase::Running => Stand::Running,
                GangPhase::Unknown | GangPhase::Completed => Stand::Other,
            };
            self.put_gang(at, status);
            self.tables.confirm(row.write);
            let member = self
                .cluster
                .gangs
                .get_mut(&at)
                .expect("statuses are of gangs that are there");
            member.stand = stand;
            if stand == Stand::Inside && member.pods.is_empty() {
                self.make_pods(at);
            }
        }
        for row in &plan.queues {
            self.tables.confirm(row.write);
        }
    }

    fn make_pods(&mut self, at: usize) {
        let tasks = self.cluster.gangs[&at].gang.tasks.clone();
        let asks = tasks
            .into_iter()
            .flat_map(|(count, ask)| std::iter::repeat_n(ask, count as usize));
        for ask in asks {
            let pod = self.new_pod(Pod {
                gang: Some(at),
                ask,
                node: None,
            });
            self.cluster
                .gangs
                .get_mut(&at)
                .expect("it was just looked at")
                .pods
                .push(pod);
            self.put_pod(pod);
        }
    }

    fn new_pod(&mut self, pod: Pod) -> usize {
        self.next_pod += 1;
        self.cluster.pods.insert(self.next_pod, pod);
        self.next_pod
    }

    fn put_pod(&mut self, number: usize) {
        let pod = &self.cluster.pods[&number];
        let gang = pod.gang.map(gang_key);
        let label = pod.gang.map_or(String::new(), |gang| format!("g{gang}"));
        let spec = TaskSpec {
            key: pod_key(number),
            uid: format!("{number:06}").into(),
            gang,
            index: u32::try_from(number).expect("few pods"),
            shape: self.shape(&pod.ask, &label),
            claims: pod
                .ask
                .claim
                .iter()
                .map(|claim| Arc::from(claim.to_string()))
                .collect(),
            labels: Labels::of([("gang", label.as_str())]),
            phase: if self.running.contains(&number) {
                Phase::Running
            } else {
                Phase::Pending
            },
            node: pod.node.map(node_name),
            gated: pod.ask.gated,
            created: Time::from_micros(i64::try_from(number).expect("few pods")),
            ..TaskSpec::default()
        };
        self.tables.put_task(spec);
    }

    fn shape(&self, ask: &Ask, label: &str) -> ShapeSpec {
        let mut shape = ShapeSpec {
            requests: vector(&self.tables, ask.wants),
            ..ShapeSpec::default()
        };
        if let Some(zone) = ask.zone {
            shape
                .node_selector
                .push(Requirement::equals("zone", zone.to_string()));
        }
        if ask.tolerates {
            shape.tolerations.push(Toleration {
                key: Some("k".into()),
                value: None,
                effect: TolerationEffect::Any,
            });
        }
        if ask.port {
            shape.ports.push(HostPort {
                protocol: "TCP".into(),
                address: "".into(),
                port: 80,
            });
        }
        if ask.apart {
            shape.pod_anti_affinity.push(PodTerm {
                topology_key: "host".into(),
                selector: vec![Requirement::equals("gang", label)],
                namespaces: None,
            });
        }
        if ask.claim.is_some() {
            shape.volumes.push(VolumeNeed::FirstConsumer {
                topology: None,
                unmade: None,
                ask: None,
            });
        }
        shape
    }

    fn put_gang(&mut self, at: usize, status: GangStatus) {
        let gang = &self.cluster.gangs[&at].gang;
        let spec = GangSpec {
            key: gang_key(at),
            uid: format!("{at:06}").into(),
            queue: queue_name(gang.queue),
            min_member: gang.min,
            min_resources: gang
                .states_minimum
                .then(|| vector(&self.tables, minimum(gang))),
            priority_class: gang.high.then(|| "high".into()),
            created: Time::from_micros(i64::try_from(at).expect("few gangs")),
            status,
            ..GangSpec::default()
        };
        self.tables.put_gang(spec);
    }

    fn node_spec(&self, at: usize, node: &Node) -> NodeSpec {
        let mut allocatable = vector(&self.tables, node.room);
        allocatable.set(Kind::PODS, node.pods);
        let name = node_name(at);
        let host = [("host".to_owned(), name.to_string())].into_iter();
        let zone = node.zone.map(|zone| ("zone".to_owned(), zone.to_string()));
        let taint = Taint {
            key: "k".into(),
            value: "v".into(),
            effect: TaintEffect::NoSchedule,
        };
        NodeSpec {
            labels: Labels::of(host.chain(zone)),
            name,
            taints: node.tainted.then_some(taint).into_iter().collect(),
            allocatable,
            unschedulable: node.cordoned,
            ..NodeSpec::default()
        }
    }
}

fn minimum(gang: &Gang) -> Amounts {
    let all = gang
        .tasks
        .iter()
        .flat_map(|(count, ask)| std::iter::repeat_n(ask.wants, *count as usize));
    all.take(gang.min as usize)
        .fold([0; 3], |sum, wants| [0, 1, 2].map(|k| sum[k] + wants[k]))
}

fn vector(tables: &Tables, [cpu, memory, gpu]: Amounts) -> Vector {
    let mut all = Vector::of([(Kind::CPU, cpu), (Kind::MEMORY, memory)]);
    let kind = tables.kinds().find(GPU);
    all.set(kind.expect("every stage knows of it"), gpu);
    all
}

fn queue_spec(at: usize, queue: &Queue) -> QueueSpec {
    QueueSpec {
        name: queue_name(at),
        weight: i32::try_from(queue.weight).expect("a small weight"),
        capability: Limits::of(queue.cap_cpu.map(|cap| (Kind::CPU, cap))),
        guarantee: Vector::of([(Kind::CPU, queue.guarantee_cpu)]),
        reclaimable: true,
        priority: queue.priority,
        state: if queue.is_closed {
            QueueState::Closed
        } else {
            QueueState::Open
        },
        ..QueueSpec::default()
    }
}

/// The number at the end of a name.
fn number(name: &str) -> usize {
    name[1..].parse().expect("names end in numbers")
}

fn node_name(at: usize) -> Arc<str> {
    format!("n{at}").into()
}

fn queue_name(at: usize) -> Arc<str> {
    format!("q{at}").into()
}

fn gang_key(at: usize) -> Key {
    Key::new("a", format!("g{at}"))
}

fn pod_key(number: usize) -> Key {
    Key::new("a", format!("p{number}"))
}
