//! Whatever happens to nodes and pods, what is kept of where they are says the same as a count from
//! nothing. A failure prints its seed.

mod counted_anew;

use std::sync::Arc;

use model::{
    GangPhase, GangSpec, GangStatus, Inclusion, Key, Kind, Labels, NodeSpec, NodeTerm, Phase,
    PodTerm, Preferred, QueueSpec, Requirement, ShapeSpec, Spread, Tables, Taint, TaintEffect,
    TaskId, TaskSpec, Time, Trial, Vector,
};

use super::refuses;
use crate::dice::Dice;
use crate::feasibility::Indexes;
use crate::plugin::Room;
use crate::rules::{Rules, State};
use crate::settings::Settings;
use counted_anew::Anew;

impl Dice {
    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.place(words.len())]
    }

    fn some<T>(&mut self, one: impl Fn(&mut Dice) -> T) -> Vec<T> {
        let count = self.place(3).saturating_sub(1);
        (0..count).map(|_| one(self)).collect()
    }

    fn key(&mut self) -> Arc<str> {
        self.pick(&["zone", "zone", "rack", "host"]).into()
    }

    fn selector(&mut self) -> Vec<Requirement> {
        vec![Requirement::equals("app", self.pick(&["a", "b"]))]
    }

    fn term(&mut self) -> PodTerm {
        PodTerm {
            topology_key: self.key(),
            selector: self.selector(),
            namespaces: match self.place(3) {
                0 => None,
                _ => Some(vec![self.pick(&["x", "y"]).into()]),
            },
        }
    }

    /// Mostly none or one; of several, by keys and selectors that may well be the same.
    fn near(&mut self) -> Vec<PodTerm> {
        let count = [0, 0, 0, 1, 1, 2, 3][self.place(7)];
        (0..count).map(|_| self.term()).collect()
    }

    fn weight(&mut self) -> i32 {
        [1, 7, 100, -50][self.place(4)]
    }

    fn spread(&mut self) -> Spread {
        Spread {
            topology_key: self.key(),
            max_skew: [1, 1, 2][self.place(3)],
            min_domains: [1, 1, 3][self.place(3)],
            required: self.place(2) == 0,
            selector: self.selector(),
            namespace: self.pick(&["x", "y"]).into(),
            affinity: self.inclusion(),
            taints: self.inclusion(),
        }
    }

    fn inclusion(&mut self) -> Inclusion {
        [Inclusion::Honor, Inclusion::Ignore][self.place(2)]
    }

    fn shape(&mut self) -> ShapeSpec {
        let zone = |dice: &mut Dice| NodeTerm {
            labels: vec![Requirement::equals("zone", dice.pick(&["z1", "z2"]))],
            names: Vec::new(),
        };
        ShapeSpec {
            requests: Vector::of([(Kind::CPU, 1_000)]),
            pod_affinity: self.near(),
            pod_anti_affinity: self.some(Dice::term),
            preferred_pods: self.some(|dice| Preferred {
                weight: dice.weight(),
                term: dice.term(),
            }),
            spread: (0..self.place(3)).map(|_| self.spread()).collect(),
            preferred_nodes: self.some(|dice| Preferred {
                weight: dice.weight().abs(),
                term: zone(dice),
            }),
            node_affinity: (self.place(6) == 0).then(|| vec![zone(self)]),
            ..ShapeSpec::default()
        }
    }
}

/// A cluster, and what is kept of it from question to question.
struct World {
    seed: u64,
    dice: Dice,
    tables: Tables,
    rules: Rules,
    indexes: Indexes,
    shapes: Vec<ShapeSpec>,
    nodes: usize,
    /// How many nodes were found, and refused, for tasks.
    found: [u32; 2],
}

impl World {
    fn new(seed: u64) -> World {
        let (rules, _) = Rules::compile(&Settings::default()).expect("the defaults are known");
        let mut dice = Dice(seed);
        let mut tables = Tables::new();
        tables.put_queue(QueueSpec {
            name: "default".into(),
            weight: 1,
            ..QueueSpec::default()
        });
        let mut world = World {
            seed,
            nodes: 3 + dice.place(12),
            shapes: (0..4).map(|_| dice.shape()).collect(),
            dice,
            tables,
            rules,
            indexes: Indexes::default(),
            found: [0; 2],
        };
        (0..world.nodes).for_each(|at| world.put_node(at));
        (0..12).for_each(|_| world.put_task());
        world
    }

    fn put_node(&mut self, at: usize) {
        let name = format!("n{at}");
        let mut labels = vec![("host", name.clone())];
        for (key, values) in [("zone", ["z1", "z2", "z3"]), ("rack", ["r1", "r2", "r3"])] {
            if self.dice.place(8) > 0 {
                labels.push((key, self.dice.pick(&values).to_owned()));
            }
        }
        let taint = |_: &mut Dice| Taint {
            key: "soft".into(),
            value: "".into(),
            effect: TaintEffect::PreferNoSchedule,
        };
        self.tables.put_node(NodeSpec {
            name: name.as_str().into(),
            labels: Labels::of(labels),
            taints: self.dice.some(taint),
            allocatable: Vector::of([(Kind::CPU, 8_000), (Kind::PODS, 10)]),
            ..NodeSpec::default()
        });
    }

    /// A task comes, or the one of that name changes in some way.
    fn put_task(&mut self) {
        let namespace = self.dice.pick(&["x", "y"]);
        let name = format!("t{}", self.dice.place(20));
        let key = Key::new(namespace, name.as_str());
        let gang = Key::new(namespace, "gang");
        self.tables.put_gang(GangSpec {
            key: gang.clone(),
            uid: format!("{namespace}/gang").as_str().into(),
            queue: "default".into(),
            min_member: 1,
            status: GangStatus {
                phase: GangPhase::Inqueue,
                ..GangStatus::default()
            },
            ..GangSpec::default()
        });
        // A node that nobody knows may be one that has gone.
        let node = format!("n{}", self.dice.place(self.nodes + 1));
        let phase = [
            Phase::Pending,
            Phase::Pending,
            Phase::Bound,
            Phase::Running,
            Phase::Releasing,
            Phase::Succeeded,
        ][self.dice.place(6)];
        let shape = self.shapes[self.dice.place(self.shapes.len())].clone();
        self.tables.put_task(TaskSpec {
            key,
            uid: name.as_str().into(),
            gang: Some(gang),
            shape,
            labels: Labels::of([("app", self.dice.pick(&["a", "b", "c"]))]),
            phase,
            node: (phase != Phase::Pending).then(|| node.as_str().into()),
            ..TaskSpec::default()
        });
    }

    fn happen(&mut self) {
        let at = self.dice.place(self.nodes);
        match self.dice.place(10) {
            0 | 1 => self.put_node(at),
            2 => self.tables.remove_node(&format!("n{at}")),
            3 => {
                let namespace = self.dice.pick(&["x", "y"]);
                let name = format!("t{}", self.dice.place(20));
                self.tables.remove_task(&Key::new(namespace, name));
            }
            4 => self.shapes[at % 4] = self.dice.shape(),
            5 => self.nodes += 1,
            6 if at == 0 => self.indexes.census().forget(0),
            _ => self.put_task(),
        }
    }

    /// Compares every answer with one that is found from nothing.
    fn ask(&mut self) {
        let tables = std::mem::take(&mut self.tables);
        self.compare(&tables);
        self.tables = tables;
    }

    fn compare(&mut self, tables: &Tables) {
        let state = State::default();
        let (rules, seed) = (&self.rules, self.seed);
        let view = rules.view(tables, &state);
        for (task, row) in tables.tasks() {
            if !row.phase.is_waiting() {
                continue;
            }
            let best = self.indexes.best(rules, view, task);
            let mut fresh = Indexes::default();
            let asker = rules.asker(view, task);
            let candidates = fresh.synced(rules, view, &asker).candidates();
            let anew = Anew::of(view, task, Room::Now);
            let name = &row.key;
            assert_eq!(best, anew.best(view, candidates), "seed {seed}: {name}");
            self.found[usize::from(best.is_none())] += 1;
            for room in [Room::Now, Room::Later] {
                let anew = Anew::of(view, task, room);
                for (node, _) in tables.nodes() {
                    let census = self.indexes.census();
                    let kept = refuses(census, view, task, node, room);
                    let told = format!("seed {seed}: {name} on {node:?}, {room:?}");
                    assert_eq!(kept, anew.refuses(tables, node), "{told}");
                }
            }
        }
    }

    /// What is tried is seen, and forgotten with the trial.
    fn try_out(&mut self) {
        let mut tables = std::mem::take(&mut self.tables);
        let nodes: Vec<_> = tables.nodes().map(|(id, _)| id).collect();
        let tasks: Vec<TaskId> = tables.tasks().map(|(id, _)| id).collect();
        let mut trial = Trial::begin(&mut tables);
        for task in tasks {
            let phase = trial.tables().task(task).phase;
            let node = nodes.get(self.dice.place(nodes.len() + 1)).copied();
            match (phase, node) {
                (Phase::Pending, Some(node)) if self.dice.place(3) == 0 => trial.place(task, node),
                (Phase::Pending, Some(node)) if self.dice.place(2) == 0 => {
                    trial.promise(task, node)
                }
                (phase, Some(_)) if phase.is_allocated() => {
                    let gang = trial.tables().task(task).gang;
                    let gang = gang.expect("every task has a gang here");
                    trial.evict(task, gang, "test");
                }
                _ => {}
            }
        }
        self.compare(trial.tables());
        match self.dice.place(4) {
            0 => drop(trial.finish(Time::from_micros(0))),
            _ => drop(trial),
        }
        self.tables = tables;
    }
}

#[test]
fn what_is_kept_says_what_a_count_from_nothing_says() {
    let mut found = [0; 2];
    for seed in 0..100 {
        let mut world = World::new(seed);
        for _ in 0..40 {
            for _ in 0..world.dice.place(4) {
                world.happen();
            }
            match world.dice.place(4) {
                0 => world.try_out(),
                _ => world.ask(),
            }
        }
        found[0] += world.found[0];
        found[1] += world.found[1];
    }
    assert!(
        found.iter().all(|count| *count > 2_000),
        "{found:?} nodes found and refused are too few to prove anything"
    );
}
