//! Buckets: tasks of one gang that are to be on one node.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{GangId, Kind, NodeId, Tables, TaskId, TaskTopology};

/// How strong what is said of a role is.
const AVOIDS_OTHERS: u8 = 1;
const LIKES_ITSELF: u8 = 2;
const LIKES_OTHERS: u8 = 3;
const AVOIDS_ITSELF: u8 = 4;

/// What is said of one role.
#[derive(Clone, Debug, Default)]
struct Role {
    /// Roles with which it likes to be, as numbers.
    likes: BTreeSet<usize>,
    /// Roles that it avoids.
    avoids: BTreeSet<usize>,
    /// The higher, the earlier its tasks choose; none where the gang does not say.
    turn: usize,
    strength: u8,
}

/// Where a task belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    /// Its role, as a number.
    pub(super) role: usize,
    /// Its bucket.
    pub(super) bucket: usize,
}

/// Tasks that are to be on one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Bucket {
    /// Its tasks, in the order in which they were put there.
    pub(super) tasks: Vec<TaskId>,
    /// How many of them had no place then.
    pub(super) waiting: usize,
    /// What these request, in millicores, MiB and units of everything else, all alike.
    load: i64,
}

/// The buckets of one gang.
#[derive(Clone, Debug, Default)]
pub(super) struct Buckets {
    roles: Vec<Role>,
    seats: BTreeMap<TaskId, Seat>,
    /// The older first.
    pub(super) list: Vec<Bucket>,
    /// How many tasks are in the largest.
    pub(super) largest: i64,
}

impl Buckets {
    /// Puts the gang's tasks into buckets; nothing where it says nothing that holds. Tasks of roles of
    /// which nothing is said but their turn are in none.
    pub(super) fn of(tables: &Tables, id: GangId) -> Option<Buckets> {
        let gang = tables.gang(id);
        let topology = gang.spec.task_topology.as_ref()?;
        if topology.fault(gang).is_some() {
            return None;
        }
        let (names, roles) = roles(topology);
        let mut filling = Filling::new(roles);
        let mut bound: BTreeMap<NodeId, usize> = BTreeMap::new();
        for (task, role) in in_turn(tables, id, &names, &filling.all.roles) {
            let bucket = match tables.task(task).node {
                Some(node) if tables.task(task).phase.is_allocated() => {
                    *bound.entry(node).or_insert_with(|| filling.new_bucket())
                }
                _ => filling.bucket_for(role),
            };
            filling.put(tables, task, Seat { role, bucket });
        }
        Some(filling.all)
    }

    /// Where the task belongs, if it is in a bucket.
    pub(super) fn seat(&self, task: TaskId) -> Option<Seat> {
        self.seats.get(&task).copied()
    }

    /// All tasks that are in one.
    pub(super) fn seats(&self) -> impl Iterator<Item = (TaskId, Seat)> {
        self.seats.iter().map(|(task, seat)| (*task, *seat))
    }

    /// The higher, the earlier it chooses among the tasks of its bucket.
    pub(super) fn rank(&self, seat: Seat) -> (usize, u8) {
        let role = &self.roles[seat.role];
        (role.turn, role.strength)
    }

    /// Whether tasks of the one role avoid those of the other.
    pub(super) fn avoids(&self, role: usize, other: usize) -> bool {
        self.roles[role].avoids.contains(&other)
    }

    /// How much one task of `other` draws tasks of `role` to its bucket.
    fn pull(&self, role: usize, other: usize) -> i64 {
        let role = &self.roles[role];
        i64::from(role.likes.contains(&other)) - i64::from(role.avoids.contains(&other))
    }
}

type Names<'a> = BTreeMap<&'a Arc<str>, usize>;

/// What is said of each role, with the numbers by which they are known.
fn roles(topology: &TaskTopology) -> (Names<'_>, Vec<Role>) {
    let said = || topology.together.iter().chain(&topology.apart);
    let named: BTreeSet<&Arc<str>> = said().flatten().collect();
    let names: Names<'_> = named.into_iter().zip(0..).collect();
    let mut roles = vec![Role::default(); names.len()];
    for group in &topology.together {
        relate(
            &mut roles,
            &names,
            group,
            (LIKES_ITSELF, LIKES_OTHERS),
            |role| &mut role.likes,
        );
    }
    for group in &topology.apart {
        relate(
            &mut roles,
            &names,
            group,
            (AVOIDS_ITSELF, AVOIDS_OTHERS),
            |role| &mut role.avoids,
        );
    }
    for (at, name) in topology.order.iter().enumerate() {
        if let Some(role) = names.get(name) {
            roles[*role].turn = topology.order.len() - at;
        }
    }
    (names, roles)
}

/// Each role of a group speaks of all others of it, and one that is alone of its own kind.
fn relate(
    roles: &mut [Role],
    names: &Names<'_>,
    group: &[Arc<str>],
    (of_itself, of_others): (u8, u8),
    kin: fn(&mut Role) -> &mut BTreeSet<usize>,
) {
    let numbers: Vec<usize> = group
        .iter()
        .filter_map(|name| names.get(name).copied())
        .collect();
    let is_alone = numbers.len() == 1;
    let strength = if is_alone { of_itself } else { of_others };
    for one in &numbers {
        let role = &mut roles[*one];
        role.strength = role.strength.max(strength);
        kin(role).extend(numbers.iter().filter(|other| is_alone || *other != one));
    }
}

/// The gang's tasks that belong into buckets, in the order in which they are put there: those that have
/// a node, by node; then by the roles' turns and by how strong what is said of them is.
fn in_turn(tables: &Tables, id: GangId, names: &Names<'_>, roles: &[Role]) -> Vec<(TaskId, usize)> {
    let tasks = tables.gang(id).tasks.iter();
    let mut found: Vec<(TaskId, usize)> = tasks
        .filter_map(|id| {
            let task = tables.task(*id);
            let role = *names.get(&task.role)?;
            // Who is on the way out, or has ended, is nobody's company.
            (task.phase.is_allocated() || task.phase.is_waiting()).then_some((*id, role))
        })
        .collect();
    found.sort_by_cached_key(|(id, role)| {
        let task = tables.task(*id);
        let node = task.node.filter(|_| task.phase.is_allocated());
        let node = node.map(|node| tables.node(node).spec.name.clone());
        let said = (Reverse(roles[*role].turn), Reverse(roles[*role].strength));
        // Of those with a node all come first, whatever their roles.
        let said = if node.is_some() {
            (Reverse(0), Reverse(0))
        } else {
            said
        };
        (
            node.is_none(),
            node,
            said,
            *role,
            task.index,
            task.key.clone(),
        )
    });
    found
}

/// Buckets that are being filled: for each role all of them, the one that draws it the most first, then
/// the one with the least load, then the oldest.
struct Filling {
    all: Buckets,
    lines: Vec<BTreeSet<(Reverse<i64>, i64, usize)>>,
    /// By bucket and role how much the one draws the other.
    pulls: Vec<Vec<i64>>,
}

impl Filling {
    fn new(roles: Vec<Role>) -> Filling {
        Filling {
            lines: vec![BTreeSet::new(); roles.len()],
            pulls: Vec::new(),
            all: Buckets {
                roles,
                ..Buckets::default()
            },
        }
    }

    fn new_bucket(&mut self) -> usize {
        let bucket = self.all.list.len();
        self.all.list.push(Bucket::default());
        self.pulls.push(vec![0; self.lines.len()]);
        for line in &mut self.lines {
            line.insert((Reverse(0), 0, bucket));
        }
        bucket
    }

    /// The bucket that draws the role the most, or a new one where all drive it away.
    fn bucket_for(&mut self, role: usize) -> usize {
        match self.lines[role].first() {
            Some((Reverse(pull), _, bucket)) if *pull >= 0 => *bucket,
            _ => self.new_bucket(),
        }
    }

    fn put(&mut self, tables: &Tables, task: TaskId, seat: Seat) {
        let at = seat.bucket;
        let before = self.all.list[at].load;
        let bucket = &mut self.all.list[at];
        bucket.tasks.push(task);
        if tables.task(task).phase.is_waiting() {
            bucket.waiting += 1;
            bucket.load = before.saturating_add(load(tables, task));
        }
        let after = bucket.load;
        let size = i64::try_from(bucket.tasks.len()).unwrap_or(i64::MAX);
        self.all.largest = self.all.largest.max(size);
        self.all.seats.insert(task, seat);
        for (role, line) in self.lines.iter_mut().enumerate() {
            let pull = &mut self.pulls[at][role];
            line.remove(&(Reverse(*pull), before, at));
            *pull += self.all.pull(role, seat.role);
            line.insert((Reverse(*pull), after, at));
        }
    }
}

/// Millicores, MiB and everything else in its own units, all alike.
fn load(tables: &Tables, task: TaskId) -> i64 {
    let requests = &tables.shape_of(task).spec.requests;
    let amounts = requests.entries().map(|(kind, amount)| match kind {
        Kind::MEMORY => amount >> 20,
        _ => amount,
    });
    amounts.fold(0, i64::saturating_add)
}

#[cfg(test)]
mod tests {
    use model::{GangSpec, Key, NodeSpec, Phase, QueueSpec, ShapeSpec, TaskSpec, Vector};

    use super::*;
    use crate::dice::Dice;

    const ROLES: [&str; 4] = ["a", "b", "c", "d"];

    /// What a cluster is made of at random.
    struct Made(Dice);

    impl Made {
        fn group(&mut self) -> Vec<Arc<str>> {
            let roles = ROLES.into_iter();
            roles.filter(|_| self.0.one_in(2)).map(Arc::from).collect()
        }

        fn task(&mut self, at: u64) -> TaskSpec {
            let is_bound = self.0.one_in(4);
            let mut requests = Vector::ZERO;
            requests.set(Kind::CPU, 500 * i64::try_from(self.0.roll(4)).unwrap_or(0));
            requests.set(
                Kind::MEMORY,
                (i64::try_from(self.0.roll(3)).unwrap_or(0)) << 29,
            );
            TaskSpec {
                key: Key::new("a", format!("t-{at}")),
                uid: at.to_string().into(),
                gang: Some(Key::new("a", "t")),
                role: (*self.0.of(&ROLES)).into(),
                shape: ShapeSpec {
                    requests,
                    ..ShapeSpec::default()
                },
                phase: if is_bound {
                    Phase::Running
                } else {
                    Phase::Pending
                },
                node: is_bound.then(|| format!("n{}", self.0.roll(3)).into()),
                ..TaskSpec::default()
            }
        }

        fn tables(&mut self) -> (Tables, GangId) {
            let mut tables = Tables::new();
            tables.put_queue(QueueSpec::default());
            for at in 0..3 {
                tables.put_node(NodeSpec {
                    name: format!("n{at}").into(),
                    ..NodeSpec::default()
                });
            }
            let topology = TaskTopology {
                together: (0..self.0.roll(3)).map(|_| self.group()).collect(),
                apart: (0..self.0.roll(3)).map(|_| self.group()).collect(),
                order: self.group(),
            };
            let gang = tables.put_gang(GangSpec {
                key: Key::new("a", "t"),
                min_task_member: ROLES.map(|role| (role.into(), 0)).into(),
                task_topology: Some(Arc::new(topology)),
                ..GangSpec::default()
            });
            for at in 0..self.0.roll(14) {
                let task = self.task(at);
                tables.put_task(task);
            }
            (tables, gang)
        }
    }

    /// Where the task goes when all buckets are looked at, as the rule is worded.
    fn by_looking_at_all(
        tables: &Tables,
        all: &Buckets,
        put: &[TaskId],
        role: usize,
    ) -> Option<usize> {
        let mut best: Option<(i64, i64, usize)> = None;
        for (at, bucket) in all.list.iter().enumerate() {
            let there = || bucket.tasks.iter().filter(|task| put.contains(task));
            let pulls = there().map(|task| all.pull(role, all.seats[task].role));
            let waits = |task: &&TaskId| tables.task(**task).phase == Phase::Pending;
            let load: i64 = there().filter(waits).map(|task| load(tables, *task)).sum();
            let (pull, is_old) = (pulls.sum::<i64>(), there().next().is_some());
            let is_better = best.is_none_or(|(most, least, _)| (pull, -load) > (most, -least));
            if is_old && is_better {
                best = Some((pull, load, at));
            }
        }
        best.filter(|(pull, ..)| *pull >= 0).map(|(.., at)| at)
    }

    #[test]
    fn each_task_is_put_where_the_rule_puts_it() {
        let mut chosen = 0;
        for seed in 0..2_000 {
            let (tables, gang) = Made(Dice(seed)).tables();
            let all = Buckets::of(&tables, gang).expect("the setting holds");
            let topology = tables.gang(gang).spec.task_topology.as_ref();
            let (names, _) = roles(topology.expect("it has one"));
            let order = in_turn(&tables, gang, &names, &all.roles);
            let tasks: Vec<TaskId> = order.iter().map(|(task, _)| *task).collect();
            for (at, (task, role)) in order.iter().enumerate() {
                let bucket = all.seats[task].bucket;
                let put = &tasks[..at];
                let is_new = || !all.list[bucket].tasks.iter().any(|task| put.contains(task));
                if let Some(node) = tables.task(*task).node {
                    let others = all.list[bucket]
                        .tasks
                        .iter()
                        .map(|task| tables.task(*task).node);
                    let bound: Vec<_> = others.flatten().collect();
                    assert!(bound.iter().all(|other| *other == node), "seed {seed}");
                    continue;
                }
                match by_looking_at_all(&tables, &all, put, *role) {
                    Some(expected) => assert_eq!(bucket, expected, "seed {seed}, task {at}"),
                    None => assert!(is_new(), "seed {seed}, task {at}"),
                }
                chosen += 1;
            }
        }
        assert!(
            chosen > 5_000,
            "{chosen} choices are too few to prove anything"
        );
    }
}
