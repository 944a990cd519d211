//! Tables that were fed a long history are those that are fed its end, and their sums are what a count
//! of the rows that were put gives.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::dice::Dice;
use super::{CASES, one};
use crate::{
    Charge, GangPhase, GangSpec, Gate, HostPort, HyperNodeSpec, Key, Kind, Labels, Limits, Member,
    NodeId, NodeSpec, NodeTerm, Phase, QueueSpec, QueueState, Requirement, Selector, ShapeSpec,
    Tables, TaskSpec, Vector, VolumeNeed, Whence,
};
use crate::{FreeVolume, PodTerm, STAND_INS, Unmade};

/// What was put and not taken away.
#[derive(Default)]
pub(super) struct Rows {
    nodes: BTreeMap<Arc<str>, NodeSpec>,
    queues: BTreeMap<Arc<str>, QueueSpec>,
    gangs: BTreeMap<Key, GangSpec>,
    tasks: BTreeMap<Key, TaskSpec>,
    volumes: BTreeMap<Arc<str>, FreeVolume>,
    hyper_nodes: BTreeMap<Arc<str>, HyperNodeSpec>,
}

fn amounts(dice: &mut Dice, most: u64) -> Vector {
    let kinds = [Kind::CPU, Kind::MEMORY, Kind(3)];
    Vector::of(kinds.map(|kind| match dice.roll(40) {
        // More than any sum can hold.
        0 => (kind, i64::MAX - dice.roll(most) as i64),
        _ => (kind, dice.roll(most) as i64),
    }))
}

fn some<T>(dice: &mut Dice, of: usize, what: impl FnOnce(&mut Dice) -> T) -> Option<T> {
    (dice.roll(of as u64) == 0).then(|| what(dice))
}

fn node(dice: &mut Dice) -> NodeSpec {
    let images = ["app", "base", "sidecar"];
    let images = images.into_iter().filter(|_| dice.roll(2) == 0);
    let images: Vec<(Arc<str>, i64)> = images.map(|name| (name.into(), 1)).collect();
    let name = *one(dice, &["n0", "n1", "n2", "n3"]);
    NodeSpec {
        name: name.into(),
        labels: Labels::of([
            ("zone", *one(dice, &["x", "y"])),
            ("kubernetes.io/hostname", name),
        ]),
        allocatable: amounts(dice, 20),
        group: some(dice, 2, |dice| (*one(dice, &["a", "b"])).into()),
        images: images.into(),
        ..NodeSpec::default()
    }
}

/// Below a queue of a lower number, or below none.
fn queue(dice: &mut Dice) -> QueueSpec {
    let at = dice.roll(4);
    QueueSpec {
        name: format!("q{at}").into(),
        parent: (at > 0 && dice.roll(3) > 0).then(|| format!("q{}", dice.roll(at)).into()),
        capability: Limits::of([(Kind::CPU, dice.roll(9) as i64)]),
        state: QueueState::Open,
        ..QueueSpec::default()
    }
}

fn gang(dice: &mut Dice) -> GangSpec {
    let name = *one(dice, &["g0", "g1", "g2"]);
    let mut spec = GangSpec {
        key: Key::new("ns", name),
        uid: format!("{name}-{}", dice.roll(2)).into(),
        queue: format!("q{}", dice.roll(4)).into(),
        min_member: dice.roll(4) as u32,
        min_resources: some(dice, 2, |dice| amounts(dice, 20)),
        ..GangSpec::default()
    };
    let phases = [GangPhase::Pending, GangPhase::Inqueue, GangPhase::Running];
    spec.status.phase = *one(dice, &phases);
    spec
}

fn attach(dice: &mut Dice) -> (Arc<str>, Arc<str>) {
    ("disk".into(), (*one(dice, &["v0", "v1"])).into())
}

fn needs(dice: &mut Dice) -> Vec<VolumeNeed> {
    let bound = some(dice, 3, |dice| VolumeNeed::Bound {
        affinity: None,
        zones: Vec::new(),
        attach: Some(attach(dice)),
    });
    let unmade = some(dice, 3, |dice| VolumeNeed::FirstConsumer {
        topology: None,
        unmade: Some(match dice.roll(2) {
            0 => Unmade::Own("disk".into(), 2),
            _ => Unmade::Shared(attach(dice)),
        }),
        ask: None,
    });
    bound.into_iter().chain(unmade).collect()
}

fn shape(dice: &mut Dice) -> ShapeSpec {
    ShapeSpec {
        requests: amounts(dice, 3),
        ports: some(dice, 3, |dice| HostPort {
            protocol: "TCP".into(),
            address: "".into(),
            port: dice.roll(2) as u16,
        })
        .into_iter()
        .collect(),
        volumes: needs(dice),
        pod_affinity: some(dice, 4, |_| PodTerm {
            topology_key: "zone".into(),
            selector: Vec::new(),
            namespaces: None,
        })
        .into_iter()
        .collect(),
        stand_ins: some(dice, 3, |dice| {
            STAND_INS.map(|one| one * dice.roll(3) as i64)
        }),
        ..ShapeSpec::default()
    }
}

fn task(dice: &mut Dice) -> TaskSpec {
    let name = format!("t{}", dice.roll(10));
    let phases = [
        Phase::Pending,
        Phase::Bound,
        Phase::Running,
        Phase::Releasing,
        Phase::Succeeded,
        Phase::Failed,
    ];
    let phase = *one(dice, &phases);
    let is_pending = phase == Phase::Pending;
    TaskSpec {
        uid: format!("{name}-{}", dice.roll(2)).into(),
        key: Key::new("ns", name),
        gang: some(dice, 1, |dice| {
            Key::new("ns", *one(dice, &["g0", "g1", "g2"]))
        }),
        role: (*one(dice, &["", "worker"])).into(),
        shape: shape(dice),
        claims: some(dice, 3, |dice| (*one(dice, &["c0", "c1"])).into())
            .into_iter()
            .collect(),
        sole: some(dice, 3, |dice| (*one(dice, &["s0", "s1"])).into())
            .into_iter()
            .collect(),
        charges: some(dice, 3, |dice| Charge {
            claim: Key::new("ns", *one(dice, &["d0", "d1"])),
            amounts: vec![(Kind(3), 1 + dice.roll(2) as i64)],
            ..Charge::default()
        })
        .into_iter()
        .collect(),
        phase,
        node: (is_pending == (dice.roll(8) == 0))
            .then(|| (*one(dice, &["n0", "n1", "n2", "n3", "n4"])).into()),
        gated: dice.roll(3) == 0,
        gate: *one(dice, &[Gate::None, Gate::Closed, Gate::Opened]),
        ..TaskSpec::default()
    }
}

/// The task as the tables see it: whoever has a node is bound to it, and nobody runs nowhere.
fn seen(task: &TaskSpec) -> TaskSpec {
    TaskSpec {
        phase: match (task.phase, &task.node) {
            (Phase::Pending, Some(_)) => Phase::Bound,
            (Phase::Bound | Phase::Running, None) => Phase::Pending,
            (phase, _) => phase,
        },
        ..task.clone()
    }
}

fn volume(dice: &mut Dice) -> FreeVolume {
    let equals = |key: &str, value: &str| NodeTerm {
        labels: vec![Requirement::equals(key, value)],
        names: Vec::new(),
    };
    let zone = *one(dice, &["x", "y"]);
    FreeVolume {
        name: (*one(dice, &["v0", "v1", "v2"])).into(),
        class: (*one(dice, &["fast", "slow"])).into(),
        size: 1 + dice.roll(3) as i64,
        whence: Whence {
            nodes: match dice.roll(3) {
                0 => None,
                1 => Some(vec![equals("zone", zone)]),
                _ => Some(vec![equals("kubernetes.io/hostname", "n1")]),
            },
            zones: Vec::new(),
        },
        attach: some(dice, 2, attach),
        ..FreeVolume::default()
    }
}

fn hyper_node(dice: &mut Dice) -> HyperNodeSpec {
    let named = |name: &str| Selector::Name(name.into());
    let tier = 1 + dice.roll(2) as u32;
    let (node, below) = (dice.roll(3), dice.roll(2));
    let member = match tier {
        1 => Member::Nodes(named(&format!("n{node}"))),
        _ => Member::HyperNodes(named(&format!("h1-{below}"))),
    };
    let zone = vec![Requirement::equals("zone", *one(dice, &["x", "y"]))];
    let zone = some(dice, 3, |_| Member::Nodes(Selector::Labels(zone)));
    HyperNodeSpec {
        name: format!("h{tier}-{}", dice.roll(2)).into(),
        tier,
        members: std::iter::once(member).chain(zone).collect(),
        ..HyperNodeSpec::default()
    }
}

impl Rows {
    /// Something comes, changes or goes.
    pub(super) fn step(&mut self, dice: &mut Dice, tables: &mut Tables) {
        let goes = dice.roll(4) == 0;
        match dice.roll(12) {
            0 | 1 => {
                let node = node(dice);
                if goes {
                    self.nodes.remove(&node.name);
                    tables.remove_node(&node.name);
                } else {
                    self.nodes.insert(node.name.clone(), node.clone());
                    tables.put_node(node);
                }
            }
            2 => {
                let queue = queue(dice);
                if goes {
                    self.queues.remove(&queue.name);
                    tables.remove_queue(&queue.name);
                } else {
                    self.queues.insert(queue.name.clone(), queue.clone());
                    tables.put_queue(queue);
                }
            }
            3 | 4 => {
                let gang = gang(dice);
                if goes {
                    self.gangs.remove(&gang.key);
                    tables.remove_gang(&gang.key);
                } else {
                    self.gangs.insert(gang.key.clone(), gang.clone());
                    tables.put_gang(gang);
                }
            }
            5 => self.step_of_storage(dice, tables, goes),
            _ => {
                let task = task(dice);
                if goes {
                    self.tasks.remove(&task.key);
                    tables.remove_task(&task.key);
                } else {
                    self.tasks.insert(task.key.clone(), seen(&task));
                    tables.put_task(task);
                }
            }
        }
    }

    fn step_of_storage(&mut self, dice: &mut Dice, tables: &mut Tables, goes: bool) {
        let (volume, hyper_node) = (volume(dice), hyper_node(dice));
        if goes {
            self.volumes.remove(&volume.name);
            tables.remove_volume(&volume.name);
            self.hyper_nodes.remove(&hyper_node.name);
            tables.remove_hyper_node(&hyper_node.name);
        } else {
            self.volumes.insert(volume.name.clone(), volume.clone());
            tables.put_volume(volume);
            self.hyper_nodes
                .insert(hyper_node.name.clone(), hyper_node.clone());
            tables.put_hyper_node(hyper_node);
        }
    }

    /// Tables that are fed these rows and nothing else.
    fn fed(&self) -> Tables {
        let mut tables = Tables::default();
        for task in self.tasks.values() {
            tables.put_task(task.clone());
        }
        for gang in self.gangs.values() {
            tables.put_gang(gang.clone());
        }
        for queue in self.queues.values() {
            tables.put_queue(queue.clone());
        }
        for node in self.nodes.values() {
            tables.put_node(node.clone());
        }
        for volume in self.volumes.values() {
            tables.put_volume(volume.clone());
        }
        for hyper_node in self.hyper_nodes.values() {
            tables.put_hyper_node(hyper_node.clone());
        }
        tables
    }

    /// What tasks request that are meant, with the slot that each takes on a node.
    fn requests(&self, slots: i64, is_meant: impl Fn(&TaskSpec) -> bool) -> Vector {
        let mut sum = Vector::ZERO;
        for task in self.tasks.values().filter(|task| is_meant(task)) {
            sum.add(&task.shape.requests);
            sum.add(&Vector::of([(Kind::PODS, slots)]));
        }
        sum
    }

    fn check_nodes(&self, tables: &Tables) {
        let is_on = |task: &TaskSpec, node: &str| {
            task.phase.holds_node() && task.node.as_deref() == Some(node)
        };
        let (mut total, mut used_total) = (Vector::ZERO, Vector::ZERO);
        for name in ["n0", "n1", "n2", "n3", "n4"] {
            let used = self.requests(1, |task| is_on(task, name));
            let leaving = |task: &TaskSpec| is_on(task, name) && task.phase == Phase::Releasing;
            let spec = self.nodes.get(name);
            if let Some(spec) = spec {
                total.add(&spec.allocatable);
                used_total.add(&used);
            }
            let Some(node) = tables.node_named(name).map(|id| tables.node(id)) else {
                assert!(used.is_zero() && spec.is_none(), "{name}");
                continue;
            };
            assert_eq!(node.known, spec.is_some());
            assert_eq!(node.used, used);
            assert_eq!(node.releasing, self.requests(1, leaving));
            let tasks = self.tasks.values().filter(|task| is_on(task, name));
            let stand_ins = tasks.map(|task| {
                let asked = [Kind::CPU, Kind::MEMORY].map(|kind| task.shape.requests.get(kind));
                let or = |asked, stand_in| if asked == 0 { stand_in } else { asked };
                let counted = match task.shape.stand_ins {
                    Some([cpu, memory]) => [
                        asked[0].saturating_add(cpu),
                        asked[1].saturating_add(memory),
                    ],
                    None => [or(asked[0], STAND_INS[0]), or(asked[1], STAND_INS[1])],
                };
                counted.map(i128::from)
            });
            let id = tables.node_named(name).expect("it was just found");
            self.check_storage(tables, id);
            let nonzero = stand_ins.fold([0, 0], |[a, b], [c, d]| [a + c, b + d]);
            assert_eq!(node.used_nonzero, nonzero);
        }
        assert_eq!((tables.total(), tables.used_total()), (&total, &used_total));
        for claim in ["c0", "c1"] {
            let has = |task: &&TaskSpec| task.claims.iter().any(|it| **it == *claim);
            let users = self.tasks.values().filter(has);
            let users = users.filter(|task| task.phase.is_allocated());
            let homes: Vec<&str> = users.filter_map(|task| task.node.as_deref()).collect();
            let home = tables.claim_home(&Key::new("ns", claim));
            let home = home.map(|id| tables.node(id).spec.name.clone());
            assert_eq!(home.is_some(), !homes.is_empty());
            assert!(home.is_none_or(|home| homes.contains(&&*home)));
        }
        for claim in ["s0", "s1"] {
            let has = |task: &&TaskSpec| task.sole.iter().any(|it| **it == *claim);
            let users = self.tasks.values().filter(has);
            let users = users.filter(|task| task.phase.holds_node() && task.node.is_some());
            let told = tables.sole_users(&Key::new("ns", claim));
            assert_eq!(told.count(), users.count());
        }
        for image in ["app", "base", "sidecar"] {
            let has = |node: &&NodeSpec| node.images.iter().any(|(name, _)| **name == *image);
            let count = self.nodes.values().filter(has).count();
            assert_eq!(tables.nodes_with_image(image) as usize, count);
        }
    }

    /// What of volumes a node is offered is what reading all of them finds.
    fn check_storage(&self, tables: &Tables, id: NodeId) {
        let node = tables.node(id);
        for (class, size) in [("fast", 0), ("fast", 2), ("slow", 3)] {
            let serves = |volume: &&FreeVolume| {
                let is_one = *volume.class == *class && volume.size >= size;
                let spec = &node.spec;
                is_one
                    && (volume.whence.is_everywhere()
                        || node.known && volume.whence.accepts(&spec.name, &spec.labels))
            };
            let all = self.volumes.values().filter(serves);
            let all = sorted(all.map(|it| (it.size, it.name.clone())));
            let found = tables.free_volumes(id, class, size);
            assert!(found.map(|it| (it.size, it.name.clone())).eq(all));
        }
    }

    fn check_gangs(&self, tables: &Tables) {
        for (id, gang) in tables.gangs() {
            assert_eq!(tables.gang_keyed(&gang.spec.key), Some(id));
            let is_of = |task: &TaskSpec| task.gang.as_ref() == Some(&gang.spec.key);
            let mine = || self.tasks.values().filter(|task| is_of(task));
            for phase in Phase::ALL {
                let count = mine().filter(|task| task.phase == phase).count();
                assert_eq!(gang.count(phase) as usize, count);
            }
            let allocated = self.requests(0, |task| is_of(task) && task.phase.is_allocated());
            assert_eq!(gang.allocated, allocated);
            let is_gated =
                |task: &TaskSpec| is_of(task) && task.gated && task.phase == Phase::Pending;
            let is_ours = |task: &TaskSpec| is_gated(task) && task.gate != Gate::None;
            let gated = self.requests(0, |task| is_gated(task) && !is_ours(task));
            assert_eq!(gang.gated, gated);
            let behind = self.tasks.values().filter(|task| is_ours(task)).count();
            assert_eq!(gang.queue_gated as usize, behind);
            let is_free = |task: &&TaskSpec| {
                let is_waiting = task.phase == Phase::Pending && !task.gated;
                is_waiting && task.shape.requests.is_zero()
            };
            let count = mine().filter(is_free).count();
            assert_eq!(gang.census.pending_best_effort as usize, count);
        }
    }

    fn check_queues(&self, tables: &Tables) {
        for (id, queue) in tables.queues() {
            let is_own = |task: &TaskSpec| {
                let gang = task.gang.as_ref().and_then(|key| self.gangs.get(key));
                gang.is_some_and(|gang| gang.queue == queue.spec.name)
            };
            let used = |task: &TaskSpec| is_own(task) && task.phase.is_allocated();
            let pending = |task: &TaskSpec| is_own(task) && task.phase == Phase::Pending;
            let promised = |task: &TaskSpec| pending(task) && task.gate == Gate::Opened;
            assert_eq!(queue.used_own, self.requests(0, used));
            let below = queue.children.iter().map(|it| tables.queue(*it).used_slots);
            let own = queue.used_slots - below.sum::<i64>();
            assert_eq!(
                own,
                self.tasks.values().filter(|it| used(it)).count() as i64
            );
            assert_eq!(queue.pending, self.requests(0, pending));
            assert_eq!(queue.promised, self.requests(0, promised));
            for group in ["a", "b"] {
                // A node that has gone is of the group that it was of.
                let is_in = |task: &TaskSpec| {
                    let node = task.node.as_ref().and_then(|it| tables.node_named(it));
                    let of = node.and_then(|id| tables.node(id).spec.group.as_deref());
                    used(task) && of == Some(group)
                };
                let kept = tables.group_use(id, &group.into());
                assert_eq!(kept.cloned().unwrap_or_default(), self.requests(0, is_in));
            }
            let is_below = |task: &TaskSpec| {
                let gang = task.gang.as_ref().and_then(|key| tables.gang_keyed(key));
                let own = gang.and_then(|gang| tables.gang(gang).queue);
                own.is_some_and(|own| tables.up_from(own).any(|at| at == id))
            };
            // Each claim once, by the most that one of its users says of it.
            let mut claims: BTreeMap<&Key, i64> = BTreeMap::new();
            for task in self.tasks.values().filter(|task| is_below(task)) {
                let is_kept = task.phase == Phase::Pending && task.gate == Gate::Opened;
                let is_taken = task.phase.is_allocated() || is_kept;
                for charge in task.charges.iter().filter(|_| is_taken) {
                    let most = claims.entry(&charge.claim).or_default();
                    *most = charge.amounts[0].1.max(*most);
                }
            }
            let taken = tables.classes_taken(id).map_or(0, |sum| sum.get(Kind(3)));
            assert_eq!(taken, claims.values().sum::<i64>());
            let children = queue.children.iter().map(|id| tables.queue(*id));
            let mut whole = [queue.used_own.clone(), queue.promised.clone()];
            let mut tree = [queue.inqueue.clone(), queue.elastic.clone()];
            for child in children {
                whole[0].add(&child.used);
                whole[1].add(&child.tree.promised);
                tree[0].add(&child.tree.inqueue);
                tree[1].add(&child.tree.elastic);
            }
            assert_eq!([&queue.used, &queue.tree.promised], whole.each_ref());
            assert_eq!([&queue.tree.inqueue, &queue.tree.elastic], tree.each_ref());
        }
    }
}

/// Amounts without the zeros behind them.
fn told<const N: usize>(vectors: [&Vector; N]) -> String {
    let entries = vectors.map(|vector| vector.entries().collect::<Vec<_>>());
    format!("{entries:?}")
}

fn sorted<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort();
    all
}

/// All that the tables keep, by names: ids depend on the history.
fn described(tables: &Tables) -> String {
    let mut lines: Vec<String> = Vec::new();
    describe_nodes(tables, &mut lines);
    describe_queues(tables, &mut lines);
    for (shape, tasks) in tables.coupled_shapes() {
        let requests = told([&tables.shape(*shape).spec.requests]);
        lines.push(format!("coupled {requests} {}", tasks.len()));
    }
    for name in ["c0", "c1", "s0", "s1"] {
        let key = Key::new("ns", name);
        let home = tables.claim_home(&key);
        let users = sorted(
            tables
                .sole_users(&key)
                .map(|id| tables.task(id).key.clone()),
        );
        lines.push(format!("claim {name} {} {users:?}", home.is_some()));
    }
    lines.sort();
    lines.join("\n")
}

fn describe_nodes(tables: &Tables, lines: &mut Vec<String>) {
    let name_of = |id| tables.node(id).spec.name.clone();
    for (id, node) in tables.all_nodes() {
        let tasks = sorted(node.tasks.iter().map(|id| tables.task(*id).key.clone()));
        let kept = (&node.used_nonzero, &node.ports, &node.volumes, &node.unmade);
        let mut line = format!("node {} {} {kept:?} {tasks:?}", node.spec.name, node.known);
        line.push_str(&told([&node.used, &node.releasing, &node.pipelined]));
        for class in ["fast", "slow"] {
            let free = tables.free_volumes(id, class, 0).map(|it| it.name.clone());
            let _ = write!(line, " {class} {:?}", free.collect::<Vec<_>>());
        }
        lines.push(line);
    }
    for (_, domain) in tables.topology().domains() {
        let nodes = sorted(domain.nodes.iter().map(|id| name_of(*id)));
        let own = sorted(domain.own.iter().map(|id| name_of(*id)));
        let parent = domain.parent.map(|id| &tables.topology().domain(id).name);
        let name = &domain.name;
        lines.push(format!(
            "domain {name} {} {parent:?} {nodes:?} {own:?}",
            domain.tier
        ));
    }
}

fn describe_queues(tables: &Tables, lines: &mut Vec<String>) {
    for (_, gang) in tables.gangs() {
        let counts = (&gang.census, &gang.roles);
        let queue = gang.queue.map(|id| &tables.queue(id).spec.name);
        let inqueue = told([&gang.inqueue, &gang.inqueue_whole, &gang.elastic]);
        let (key, known) = (&gang.spec.key, gang.known);
        lines.push(format!("gang {key} {known} {queue:?} {counts:?} {inqueue}"));
    }
    for (id, queue) in tables.queues() {
        let parent = queue.parent.map(|id| &tables.queue(id).spec.name);
        let (name, known) = (&queue.spec.name, queue.known);
        let tree = &queue.tree;
        let tree = told([&tree.promised, &tree.inqueue, &tree.elastic]);
        let none = Vector::ZERO;
        let classes = [tables.classes_taken(id), tables.classes_held(id)];
        let classes = told(classes.map(|sum| sum.unwrap_or(&none)));
        let sums = told([&queue.used, &queue.pending, &queue.promised]);
        lines.push(format!(
            "queue {name} {known} {parent:?} {sums} {tree} {classes}"
        ));
    }
}

#[test]
fn a_long_history_leaves_what_its_end_alone_gives() {
    for seed in 0..CASES / 20 {
        let dice = &mut Dice(seed);
        let (mut rows, mut tables) = (Rows::default(), Tables::default());
        tables.kind("example.com/gpu");
        for step in 0..60 {
            let before = tables.tick();
            rows.step(dice, &mut tables);
            assert!(before < tables.tick(), "seed {seed}, {step}");
            if dice.roll(4) == 0 {
                tables.settle();
            }
            rows.check_nodes(&tables);
            rows.check_gangs(&tables);
            if step % 20 == 19 {
                tables.settle();
                rows.check_queues(&tables);
                let mut fed = rows.fed();
                fed.settle();
                assert_eq!(described(&tables), described(&fed), "seed {seed}, {step}");
            }
        }
    }
}
