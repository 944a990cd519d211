//! What the API holds, what the scheduler has seen of it, and what is on its way between the two.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use engine::Engine;
use model::{
    GangPhase, GangSpec, GangStatus, Key, Kind, Limits, NodeSpec, QueueSpec, QueueState, ShapeSpec,
    Tables, TaskSpec, Time, Vector, Verdict, WriteId,
};

/// What may still go wrong, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub crashes: u32,
    pub refusals: u32,
    pub lost_answers: u32,
    pub ends: u32,
}

/// Name, queue, pods (all of which must start together), cpu of each.
const GANGS: [(&str, &str, u32, i64); 3] = [
    ("a", "left", 2, 1),
    ("b", "right", 2, 1),
    ("c", "left", 1, 2),
];
const NODES: [&str; 2] = ["n1", "n2"];
const NODE_CPU: i64 = 2;

/// A pod of a gang: the gang's and its own number.
type Pod = (usize, u32);

/// A bind on its way.
#[derive(Clone, Debug)]
struct Sent {
    write: WriteId,
    node: usize,
}

#[derive(Clone, Debug)]
pub enum Step {
    Decide,
    /// A bind is done and its answer arrives.
    Done(Pod),
    /// A bind is refused.
    Refused(Pod),
    /// A bind is done and nobody hears of it, until the pod's own news come.
    Unanswered(Pod),
    /// News of a pod arrive.
    News(Pod),
    /// A gang that is bound whole ends, and all of it is gone.
    End(usize),
    /// The process dies; what it had sent is done, or never arrived.
    Crash {
        is_done: bool,
    },
}

#[derive(Clone)]
pub struct World {
    pub budget: Budget,
    now: Time,
    /// The API's truth: where each pod is.
    bound: BTreeMap<Pod, Option<usize>>,
    phases: [GangPhase; 3],
    ended: BTreeSet<usize>,
    sent: BTreeMap<Pod, Sent>,
    /// Pods of which the scheduler has old news.
    unseen: BTreeSet<Pod>,
    tables: Tables,
    engine: Engine,
}

fn gang_key(at: usize) -> Key {
    Key::new("x", GANGS[at].0)
}

fn pod_key((gang, at): Pod) -> Key {
    Key::new("x", format!("{}-{at}", GANGS[gang].0))
}

impl World {
    pub fn new(budget: Budget) -> World {
        let pods = (0..GANGS.len()).flat_map(|gang| (0..GANGS[gang].2).map(move |at| (gang, at)));
        let mut world = World {
            budget,
            now: Time::from_micros(0),
            bound: pods.map(|pod| (pod, None)).collect(),
            phases: [GangPhase::Inqueue; 3],
            ended: BTreeSet::new(),
            sent: BTreeMap::new(),
            unseen: BTreeSet::new(),
            tables: Tables::new(),
            engine: Engine::with_defaults(),
        };
        world.start();
        world
    }

    /// A process begins with a list of everything.
    fn start(&mut self) {
        self.tables = Tables::new();
        self.engine = Engine::with_defaults();
        self.unseen.clear();
        let queues = [
            ("top", None, 0),
            ("left", Some("top"), 3),
            ("right", Some("top"), 0),
        ];
        for (name, parent, cap) in queues {
            self.tables.put_queue(QueueSpec {
                name: name.into(),
                parent: parent.map(Arc::from),
                weight: 1,
                state: QueueState::Open,
                capability: Limits::of((cap > 0).then_some((Kind::CPU, cap * 1_000))),
                ..QueueSpec::default()
            });
        }
        for name in NODES {
            let room = [
                (Kind::CPU, NODE_CPU * 1_000),
                (Kind::PODS, 10),
                (Kind::MEMORY, 1 << 30),
            ];
            self.tables.put_node(NodeSpec {
                name: name.into(),
                allocatable: Vector::of(room),
                ..NodeSpec::default()
            });
        }
        for at in (0..GANGS.len()).filter(|at| !self.ended.contains(at)) {
            put_gang(&mut self.tables, at, self.phases[at]);
        }
        for pod in self.bound.keys().copied().collect::<Vec<_>>() {
            self.tell(pod);
        }
    }

    /// The scheduler hears how a pod is.
    fn tell(&mut self, pod: Pod) {
        self.unseen.remove(&pod);
        let key = pod_key(pod);
        let Some(node) = self.bound.get(&pod) else {
            return self.tables.remove_task(&key);
        };
        self.tables.put_task(TaskSpec {
            uid: key.to_string().into(),
            gang: Some(gang_key(pod.0)),
            index: pod.1,
            shape: ShapeSpec {
                requests: Vector::of([(Kind::CPU, GANGS[pod.0].3 * 1_000)]),
                ..ShapeSpec::default()
            },
            node: node.map(|at| NODES[at].into()),
            key,
            ..TaskSpec::default()
        });
    }

    /// Everything that may happen next.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.tables.has_news() {
            steps.push(Step::Decide);
        }
        for pod in self.sent.keys() {
            steps.push(Step::Done(*pod));
            if self.budget.refusals > 0 {
                steps.push(Step::Refused(*pod));
            }
            if self.budget.lost_answers > 0 {
                steps.push(Step::Unanswered(*pod));
            }
        }
        steps.extend(self.unseen.iter().map(|pod| Step::News(*pod)));
        if self.budget.ends > 0 {
            let whole = (0..GANGS.len()).filter(|at| self.bound_of(*at) == GANGS[*at].2);
            let at_rest = whole.filter(|at| self.sent.keys().all(|pod| pod.0 != *at));
            steps.extend(at_rest.map(Step::End));
        }
        if self.budget.crashes > 0 {
            steps.extend([true, false].map(|is_done| Step::Crash { is_done }));
        }
        steps
    }

    fn bound_of(&self, gang: usize) -> u32 {
        let pods = self
            .bound
            .iter()
            .filter(|(pod, node)| pod.0 == gang && node.is_some());
        u32::try_from(pods.count()).expect("few pods")
    }

    pub fn take(&mut self, step: Step) {
        match step {
            Step::Decide => self.decide(),
            Step::Done(pod) => {
                let sent = self.sent.remove(&pod).expect("it was sent");
                self.bind(pod, sent.node);
                // The driver confirms once the pod was seen bound.
                self.tell(pod);
                self.tables.confirm(sent.write);
            }
            Step::Refused(pod) => {
                self.budget.refusals -= 1;
                let sent = self.sent.remove(&pod).expect("it was sent");
                self.tables.refuse(sent.write);
            }
            Step::Unanswered(pod) => {
                self.budget.lost_answers -= 1;
                let sent = self.sent.remove(&pod).expect("it was sent");
                self.tables.unknown(sent.write);
                self.bind(pod, sent.node);
                self.unseen.insert(pod);
            }
            Step::News(pod) => self.tell(pod),
            Step::End(gang) => {
                self.budget.ends -= 1;
                self.ended.insert(gang);
                let gone: Vec<Pod> = self
                    .bound
                    .keys()
                    .copied()
                    .filter(|pod| pod.0 == gang)
                    .collect();
                for pod in gone {
                    self.bound.remove(&pod);
                    self.unseen.insert(pod);
                }
                self.tables.remove_gang(&gang_key(gang));
            }
            Step::Crash { is_done } => {
                self.budget.crashes -= 1;
                for (pod, sent) in std::mem::take(&mut self.sent) {
                    if is_done {
                        self.bind(pod, sent.node);
                    }
                }
                self.start();
            }
        }
    }

    /// The API binds a pod that is not bound.
    fn bind(&mut self, pod: Pod, node: usize) {
        let place = self
            .bound
            .get_mut(&pod)
            .expect("nobody binds a pod that is gone");
        assert_eq!(*place, None, "{} is bound twice", pod_key(pod));
        *place = Some(node);
    }

    fn decide(&mut self) {
        let plan = self.engine.cycle(&mut self.tables, self.now);
        assert_eq!(
            checker::check_plan(&self.tables, &plan),
            [],
            "{}",
            self.describe()
        );
        for place in &plan.places {
            let key = self.tables.task(place.task).key.clone();
            let pod = self.bound.keys().copied().find(|pod| pod_key(*pod) == key);
            let pod = pod.expect("only pods that are there are placed");
            let node = &self.tables.node(place.node).spec.name;
            let node = NODES
                .iter()
                .position(|name| **name == **node)
                .expect("a node of this world");
            let before = self.sent.insert(
                pod,
                Sent {
                    write: place.write,
                    node,
                },
            );
            assert!(
                before.is_none(),
                "{key} is placed while its bind is on its way"
            );
        }
        for row in &plan.statuses {
            let key = &self.tables.gang(row.gang).spec.key;
            let at = (0..GANGS.len())
                .find(|at| gang_key(*at) == *key)
                .expect("a gang of this world");
            self.phases[at] = row.status.phase;
            put_gang(&mut self.tables, at, row.status.phase);
            self.tables.confirm(row.write);
        }
        plan.queues
            .iter()
            .for_each(|row| self.tables.confirm(row.write));
    }

    /// What must hold at every moment.
    pub fn check(&self) {
        assert_eq!(checker::check(&self.tables), [], "{}", self.describe());
        for (at, name) in NODES.iter().enumerate() {
            let text = || self.describe();
            assert!(self.left_on(at) >= 0, "{name} is overfilled: {}", text());
        }
    }

    /// Nothing goes wrong any more: what must have become of the world.
    pub fn calm(mut self) {
        self.budget = Budget {
            crashes: 0,
            refusals: 0,
            lost_answers: 0,
            ends: 0,
        };
        for turn in 0.. {
            assert!(turn < 100, "no rest: {}", self.describe());
            // Whatever was put off comes up again with time.
            self.now = self.now.plus_millis(1_000);
            let step = self.steps().into_iter().next();
            match step {
                Some(step) => self.take(step),
                None if self.engine.wake_at().is_some_and(|at| at <= self.now) => self.decide(),
                None => break,
            }
            self.check();
        }
        let used: i64 = self
            .bound
            .iter()
            .filter(|(_, node)| node.is_some())
            .map(|(pod, _)| GANGS[pod.0].3)
            .sum();
        let left = NODE_CPU * 2 - used;
        for (at, (name, queue, count, cpu)) in GANGS.iter().enumerate() {
            let bound = self.bound_of(at);
            assert!(
                bound == 0 || bound == *count,
                "{name} is bound in part: {}",
                self.describe()
            );
            let room_on_one = NODES
                .iter()
                .enumerate()
                .any(|(at, _)| self.left_on(at) >= *cpu);
            let fits = left >= i64::from(*count) * cpu && (*count > 1 || room_on_one);
            let in_queue: i64 = (self.bound.iter())
                .filter(|(pod, node)| node.is_some() && GANGS[pod.0].1 == *queue)
                .map(|(pod, _)| GANGS[pod.0].3)
                .sum();
            let may = *queue != "left" || in_queue + i64::from(*count) * cpu <= 3;
            let waits = bound == 0 && !self.ended.contains(&at);
            assert!(
                !(waits && fits && may),
                "{name} fits and waits: {}",
                self.describe()
            );
        }
    }

    fn left_on(&self, node: usize) -> i64 {
        let here = self.bound.iter().filter(|(_, at)| **at == Some(node));
        NODE_CPU - here.map(|(pod, _)| GANGS[pod.0].3).sum::<i64>()
    }

    /// All that tells two states apart, but for what the engine keeps to be fast.
    pub fn describe(&self) -> String {
        let mut text = checker::describe(&self.tables);
        let sent: Vec<_> = self
            .sent
            .iter()
            .map(|(pod, sent)| (pod, sent.node))
            .collect();
        let news = self.tables.has_news();
        let _ = writeln!(text, "bound {:?}", self.bound);
        let _ = writeln!(text, "sent {sent:?} unseen {:?} news {news}", self.unseen);
        let _ = writeln!(
            text,
            "ended {:?} phases {:?} {:?}",
            self.ended, self.phases, self.budget
        );
        text
    }
}

fn put_gang(tables: &mut Tables, at: usize, phase: GangPhase) {
    let (name, queue, count, _) = GANGS[at];
    tables.put_gang(GangSpec {
        key: gang_key(at),
        uid: name.into(),
        queue: queue.into(),
        min_member: count,
        created: Time::from_micros(i64::try_from(at).expect("few gangs")),
        status: GangStatus {
            phase,
            verdict: Verdict::Undecided,
            ..GangStatus::default()
        },
        ..GangSpec::default()
    });
}
