//! The tree against what A.5 says of it, computed branch by branch from the words of the specification
//! in floating point, on random clusters.

use model::{GangSpec, GangStatus, Key, NodeSpec, QueueSpec, ShapeSpec, TaskSpec, Trial};

use super::*;
use crate::dice::Dice;

/// One of what a cluster has 10 or 20 of: so much that rounding makes no difference.
const UNIT: i64 = 1 << 40;
/// Shares that differ by less may be in either order.
const CLOSE: f64 = 1e-6;

type Amounts = [f64; 3];

/// What a branch has below it.
#[derive(Default)]
struct Naive {
    weight: f64,
    branches: BTreeMap<String, Naive>,
    /// What each job holds and what all of its tasks request.
    jobs: Vec<(Amounts, Amounts)>,
}

/// What a branch comes to.
struct Sum {
    allocated: Amounts,
    share: f64,
    saturated: bool,
}

fn share(allocated: &Amounts, total: &Amounts) -> f64 {
    let shares = allocated.iter().zip(total);
    let of = |(part, whole): (&f64, &f64)| match *whole > 0.0 {
        true => part / whole,
        false => f64::from(u8::from(*part > 0.0)),
    };
    shares.map(of).fold(0.0, f64::max)
}

impl Naive {
    fn sum(&self, used: &Amounts, total: &Amounts) -> Sum {
        let jobs = self.jobs.iter().map(|(allocated, request)| {
            // Cpu and memory are named in any allocation.
            let named = |r: &usize| *r < 2 || allocated[*r] > 0.0;
            let is_full = |r: usize| {
                allocated[r] != 0.0 && request[r] <= allocated[r]
                    || request[r] > 0.0 && used[r] >= total[r]
            };
            Sum {
                allocated: *allocated,
                share: share(allocated, total),
                saturated: (0..3).filter(named).any(is_full),
            }
        });
        let branches = self.branches.values().map(|it| it.sum(used, total));
        let below: Vec<Sum> = jobs.chain(branches).collect();
        let wants = |it: &&Sum| !it.saturated && it.share > 0.0;
        let least = below.iter().filter(wants).map(|it| it.share);
        let least = least.fold(1.0, f64::min);
        let mut allocated = [0.0; 3];
        for child in &below {
            let scale = match (child.saturated, child.share > 0.0) {
                (true, _) => 1.0,
                (false, true) => least / child.share,
                (false, false) => 0.0,
            };
            for (sum, of_child) in allocated.iter_mut().zip(child.allocated) {
                *sum += of_child * scale;
            }
        }
        Sum {
            allocated,
            share: share(&allocated, total),
            saturated: below.iter().all(|it| it.saturated),
        }
    }

    /// Which of two ways is first; `None` where that is too close. Whether anybody below wants more
    /// counts where it is asked for.
    fn compare(
        &self,
        (x, y): (&[String], &[String]),
        does_want: Wanting,
        sums: (&Amounts, &Amounts),
    ) -> Option<Ordering> {
        let (Some(a), Some(b)) = (x.first(), y.first()) else {
            return Some(Ordering::Equal);
        };
        let (p, q) = (&self.branches[a], &self.branches[b]);
        if a == b {
            return p.compare((&x[1..], &y[1..]), does_want, sums);
        }
        let (v, w) = (p.sum(sums.0, sums.1), q.sum(sums.0, sums.1));
        if does_want == Wanting::Counts && v.saturated != w.saturated {
            return Some(v.saturated.cmp(&w.saturated));
        }
        let difference = v.share / p.weight - w.share / q.weight;
        match difference {
            // Two branches go on beside one another where nobody has anything.
            _ if v.share == 0.0 && w.share == 0.0 => beside(p, q, (x, y), does_want, sums),
            _ if difference.abs() < CLOSE => None,
            _ => Some(difference.total_cmp(&0.0)),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Wanting {
    Counts,
    CountsNot,
}

/// The rest of two ways below branches that are equal.
fn beside(
    p: &Naive,
    q: &Naive,
    (x, y): (&[String], &[String]),
    does_want: Wanting,
    sums: (&Amounts, &Amounts),
) -> Option<Ordering> {
    let (Some(a), Some(b)) = (x.get(1), y.get(1)) else {
        return Some(Ordering::Equal);
    };
    let (p, q) = (&p.branches[a], &q.branches[b]);
    let (v, w) = (p.sum(sums.0, sums.1), q.sum(sums.0, sums.1));
    if does_want == Wanting::Counts && v.saturated != w.saturated {
        return Some(v.saturated.cmp(&w.saturated));
    }
    beside(p, q, (&x[1..], &y[1..]), does_want, sums)
}

/// A random cluster: its tables, and the same as the specification sees it.
struct Cluster {
    tables: Tables,
    ways: BTreeMap<QueueId, Vec<String>>,
    /// Of each gang its queue, what it holds and what it requests.
    gangs: Vec<(GangId, QueueId, Amounts, Amounts)>,
    weights: BTreeMap<Vec<String>, f64>,
    total: Amounts,
}

fn cluster(dice: &mut Dice) -> Cluster {
    let mut tables = Tables::new();
    let kinds = [Kind::CPU, Kind::MEMORY, tables.kind("gpu")];
    let amounts = |units: [u64; 3]| {
        let units = kinds.iter().zip(units);
        let pairs = units.map(|(kind, it)| (*kind, UNIT * i64::try_from(it).unwrap_or(0)));
        Vector::of(pairs)
    };
    let total = [10, 20, 10].map(|most| most + dice.roll(20));
    tables.put_node(NodeSpec {
        name: "n".into(),
        allocatable: amounts(total),
        ..NodeSpec::default()
    });
    let mut cluster = Cluster {
        tables: Tables::new(),
        ways: BTreeMap::new(),
        gangs: Vec::new(),
        weights: BTreeMap::new(),
        total: total.map(|it| it as f64),
    };
    for at in 0..2 + dice.roll(4) {
        let name = format!("q{at}");
        let way: Vec<String> = match dice.roll(4) {
            0 => vec![name.clone()],
            depth => (0..depth)
                .map(|_| (*dice.of(&["a", "b", "c"])).to_owned())
                .collect(),
        };
        let weights: Vec<i64> = way.iter().map(|_| 1 + dice.roll(4) as i64).collect();
        let is_named = way[0] != name;
        let branch = |(name, weight): (&String, &i64)| Branch {
            name: name.as_str().into(),
            weight: weight * ONE,
        };
        let branches: Vec<Branch> = way.iter().zip(&weights).map(branch).collect();
        let queue = tables.put_queue(QueueSpec {
            name: name.as_str().into(),
            weight: weights[0] as i32,
            branches: if is_named { branches } else { Vec::new() },
            ..QueueSpec::default()
        });
        let jobs = dice.roll(3);
        for job in 0..jobs {
            cluster.add_job(&mut tables, dice, (queue, &name, job), &amounts);
        }
        if jobs > 0 {
            for (end, weight) in (1..=way.len()).zip(&weights) {
                let branch = way[..end].to_vec();
                cluster.weights.entry(branch).or_insert(*weight as f64);
            }
            cluster.ways.insert(queue, way);
        }
    }
    cluster.tables = tables;
    cluster
}

impl Cluster {
    fn add_job(
        &mut self,
        tables: &mut Tables,
        dice: &mut Dice,
        (queue, name, job): (QueueId, &str, u64),
        amounts: &dyn Fn([u64; 3]) -> Vector,
    ) {
        let key = Key::new("a", format!("{name}-{job}"));
        let gang = tables.put_gang(GangSpec {
            key: key.clone(),
            queue: name.into(),
            status: GangStatus {
                phase: GangPhase::Inqueue,
                ..GangStatus::default()
            },
            ..GangSpec::default()
        });
        let (mut held, mut request) = ([0.0; 3], [0.0; 3]);
        for task in 0..dice.roll(4) {
            let units = [dice.roll(4), dice.roll(4), dice.roll(6) / 3];
            let is_bound = dice.one_in(2);
            tables.put_task(TaskSpec {
                key: Key::new("a", format!("{name}-{job}-{task}")),
                gang: Some(key.clone()),
                shape: ShapeSpec {
                    requests: amounts(units),
                    ..ShapeSpec::default()
                },
                phase: if is_bound {
                    Phase::Running
                } else {
                    Phase::Pending
                },
                node: is_bound.then(|| "n".into()),
                ..TaskSpec::default()
            });
            for at in 0..3 {
                request[at] += units[at] as f64;
                held[at] += if is_bound { units[at] as f64 } else { 0.0 };
            }
        }
        self.gangs.push((gang, queue, held, request));
    }

    /// As the specification sees it, if a gang held so much more or less.
    fn naive(&self, changes: &[(GangId, Amounts)]) -> (Naive, Amounts) {
        let mut root = Naive::default();
        let mut used = [0.0; 3];
        for (gang, queue, held, request) in &self.gangs {
            let mut held = *held;
            for (_, change) in changes.iter().filter(|(it, _)| it == gang) {
                held.iter_mut()
                    .zip(change)
                    .for_each(|(it, more)| *it += more);
            }
            used.iter_mut().zip(held).for_each(|(sum, it)| *sum += it);
            let mut branch = &mut root;
            let way = &self.ways[queue];
            for (at, name) in way.iter().enumerate() {
                branch = branch.branches.entry(name.clone()).or_default();
                branch.weight = self.weights[&way[..=at]];
            }
            branch.jobs.push((held, *request));
        }
        (root, used)
    }
}

#[test]
fn queues_are_in_the_order_of_the_specification() {
    let (mut decided, mut by_saturation) = (0, 0);
    for seed in 0..3_000 {
        let cluster = cluster(&mut Dice(seed));
        let tree = Tree::of(&cluster.tables);
        let (root, used) = cluster.naive(&[]);
        let sums = (&used, &cluster.total);
        for (a, x) in &cluster.ways {
            for (b, y) in &cluster.ways {
                let Some(expected) = root.compare((x, y), Wanting::Counts, sums) else {
                    continue;
                };
                let order = tree.compare(|at| tree.now.of(at), *a, *b);
                assert_eq!(order, expected, "seed {seed}: {x:?} and {y:?}");
                let without = root.compare((x, y), Wanting::CountsNot, sums);
                decided += u32::from(expected.is_ne());
                by_saturation += u32::from(without.is_some_and(|it| it != expected));
            }
        }
    }
    assert!(decided > 5_000, "only {decided} orders were looked at");
    assert!(
        by_saturation > 500,
        "only {by_saturation} by who wants more"
    );
}

#[test]
fn who_would_come_first_after_a_task_has_moved_is_the_specifications() {
    let mut decided = 0;
    for seed in 0..3_000 {
        let mut dice = Dice(seed);
        let cluster = cluster(&mut dice);
        let tree = Tree::of(&cluster.tables);
        if cluster.gangs.len() < 2 {
            continue;
        }
        let mut pick = || dice.of(&cluster.gangs);
        let (to, from) = (pick(), pick());
        // A task of one cpu and one unit of memory that one holds and the other waits for.
        let is_held = from.2[..2].iter().all(|held| *held >= 1.0);
        let is_wanted = (0..2).all(|at| to.3[at] - to.2[at] >= 1.0);
        if to.0 == from.0 || !is_held || !is_wanted {
            continue;
        }
        let kinds = [Kind::CPU, Kind::MEMORY].map(|kind| (kind, UNIT));
        let task = Vector::of(kinds);
        let held = |gang| crate::plugins::drf::of_tables(&cluster.tables, gang);
        let instead = BTreeMap::from([
            (to.0, held(to.0).plus(&task)),
            (from.0, held(from.0).minus(&task)),
        ]);
        let stand = tree.stand(&cluster.tables, &instead);
        let order = tree.compare(|at| stand.by_shares_alone(at), to.1, from.1);
        let (root, used) = cluster.naive(&[(to.0, [1.0, 1.0, 0.0]), (from.0, [-1.0, -1.0, 0.0])]);
        let ways = (&*cluster.ways[&to.1], &*cluster.ways[&from.1]);
        let expected = root.compare(ways, Wanting::CountsNot, (&used, &cluster.total));
        if let Some(expected) = expected {
            assert_eq!(order, expected, "seed {seed}");
            decided += u32::from(expected.is_ne());
        }
    }
    assert!(decided > 50, "only {decided} moves were looked at");
}

#[test]
fn who_follows_gangs_that_move_sees_what_who_looks_at_all_sees() {
    let (mut moves, mut last_of_something) = (0, 0);
    for seed in 0..1_000 {
        let mut dice = Dice(seed);
        let mut cluster = cluster(&mut dice);
        let mut tree = Tree::of(&cluster.tables);
        let node = cluster.tables.node_named("n").expect("it is there");
        let tasks: Vec<TaskId> = cluster.tables.tasks().map(|(id, _)| id).collect();
        if tasks.is_empty() {
            continue;
        }
        let mut trial = Trial::begin(&mut cluster.tables);
        trial.watch();
        let mark = trial.mark();
        for _ in 0..dice.roll(12) {
            for _ in 0..=dice.roll(2) {
                let task = *dice.of(&tasks);
                match (trial.tables().task(task).phase, dice.roll(4)) {
                    (_, 0) => trial.rewind(mark),
                    (Phase::Pending, 1) => trial.promise(task, node),
                    (Phase::Pipelined, 1) => trial.unpromise(task),
                    (Phase::Pending | Phase::Pipelined, _) => trial.place(task, node),
                    (Phase::Running | Phase::Allocated, _) => {
                        let gang = cluster.gangs[0].0;
                        trial.evict(task, gang, "preempt");
                    }
                    _ => {}
                }
            }
            let before = tree.now.clone();
            let moved = trial.take_moved();
            tree.follow(trial.tables(), &moved);
            let all = tree.stand(trial.tables(), &BTreeMap::new());
            assert_eq!(tree.now, all, "seed {seed}");
            moves += u32::from(before != all);
            last_of_something += u32::from(before.gone != all.gone);
        }
    }
    assert!(moves > 1_000, "only {moves} moves changed anything");
    assert!(
        last_of_something > 50,
        "only {last_of_something} took the last"
    );
}
