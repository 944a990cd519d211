//! What the binds of one plan may not do to the nodes and queues that they touch: the part of I1, I3
//! and I14 that is cheap enough to be asked after every cycle.

use std::collections::{BTreeMap, BTreeSet};

use model::{Kind, NodeId, Phase, Place, Plan, Queue, QueueId, Tables, TaskId, Vector, WriteId};

use crate::Violation;
use crate::plans::writes_of;

/// Amounts by kind, added up from tasks.
type Amounts = BTreeMap<Kind, i128>;

fn add(sum: &mut Amounts, tables: &Tables, task: TaskId) {
    for (kind, value) in tables.shape_of(task).spec.requests.entries() {
        *sum.entry(kind).or_default() += i128::from(value);
    }
}

fn add_pods(tables: &Tables, tasks: impl Iterator<Item = TaskId>) -> Amounts {
    let mut sum = Amounts::new();
    for task in tasks {
        add(&mut sum, tables, task);
        *sum.entry(Kind::PODS).or_default() += 1;
    }
    sum
}

/// All binds of the gangs whose binds these are: a gang is kept back whole.
pub(crate) fn with_their_gangs<'a>(
    tables: &Tables,
    plan: &Plan,
    places: impl Iterator<Item = &'a Place>,
) -> Vec<WriteId> {
    let gangs: BTreeSet<_> = places
        .filter_map(|place| tables.task(place.task).gang)
        .collect();
    let writes = gangs
        .into_iter()
        .flat_map(|gang| writes_of(tables, plan, gang));
    writes.collect()
}

/// Room that is kept for a gang because it has waited for long is used by others still, and the more
/// important may take it.
fn is_of_one_that_gives_way(tables: &Tables, task: TaskId) -> bool {
    let gang = tables.task(task).gang;
    gang.is_some_and(|gang| tables.is_kept_room(gang))
}

/// I1, I14: no bind takes more than its node has, nor what is kept there for others.
pub(crate) fn rooms(tables: &Tables, plan: &Plan, found: &mut Vec<Violation>) {
    let mut by_node: BTreeMap<NodeId, Vec<&Place>> = BTreeMap::new();
    for place in &plan.places {
        by_node.entry(place.node).or_default().push(place);
    }
    for (id, places) in by_node {
        let Some(node) = tables.find_node(id).filter(|node| node.known) else {
            continue;
        };
        let used = add_pods(tables, node.tasks.iter().copied());
        let promised = node.promised.iter().copied();
        let promised = promised.filter(|task| !is_of_one_that_gives_way(tables, *task));
        let promised = add_pods(tables, promised);
        let leaving = node.tasks.iter().copied();
        let leaving = leaving.filter(|task| tables.task(*task).phase == Phase::Releasing);
        let leaving = add_pods(tables, leaving);
        for (kind, used) in &used {
            let at = |sum: &Amounts| sum.get(kind).copied().unwrap_or(0);
            let asks = |place: &&&Place| {
                let requests = &tables.shape_of(place.task).spec.requests;
                *kind == Kind::PODS || requests.get(*kind) > 0
            };
            let askers = || places.iter().copied().filter(|place| asks(&place));
            if askers().next().is_none() {
                continue;
            }
            let all = i128::from(node.spec.allocatable.get(*kind));
            let (name, kind_name) = (&node.spec.name, tables.kinds().name(*kind));
            let kept = (at(&promised) - at(&leaving)).max(0);
            let (invariant, what) = if *used > all {
                (
                    "I1",
                    format!("node {name} has {used} of {all} {kind_name} bound"),
                )
            } else if used + kept > all {
                let what = format!(
                    "node {name} has {used} of {all} {kind_name} bound and keeps {kept} for others"
                );
                ("I14", what)
            } else {
                continue;
            };
            found.push(Violation {
                invariant,
                what,
                writes: with_their_gangs(tables, plan, askers()),
            });
        }
    }
}

/// I3: no bind takes its queue beyond its ceiling. What is guaranteed to it is its own all the same.
pub(crate) fn ceilings(tables: &Tables, plan: &Plan, found: &mut Vec<Violation>) {
    let mut uses = Uses::default();
    for (id, places) in &places_by_queue(tables, plan) {
        let queue = tables.queue(*id);
        if !queue.spec.capability.is_empty() {
            let used = uses.own(tables, *id);
            beyond(tables, plan, (queue, used), places, found);
        }
    }
}

/// I3: nor any queue above that one, of which what is used below it is a part, at whatever height.
pub(crate) fn ceilings_above(tables: &Tables, plan: &Plan, found: &mut Vec<Violation>) {
    let mut below: BTreeMap<QueueId, Vec<&Place>> = BTreeMap::new();
    for (id, places) in places_by_queue(tables, plan) {
        let mut way = BTreeSet::from([id]);
        let mut next = tables.queue(id).parent;
        // A way that leads back to where it was has come to its end.
        while let Some(at) = next.filter(|at| way.insert(*at)) {
            if !tables.queue(at).spec.capability.is_empty() {
                below.entry(at).or_default().extend(&places);
            }
            next = tables.queue(at).parent;
        }
    }
    let mut uses = Uses::default();
    for (id, places) in below {
        let used = uses.tree(tables, id);
        beyond(tables, plan, (tables.queue(id), &used), &places, found);
    }
}

/// So many tasks, gangs and queues are added up for one plan. Beyond that rows are believed, which `check`
/// adds up from their tasks (I3): a plan is looked at while somebody waits for it.
const ADDED_UP_MAX: usize = 2_000;

/// What queues use, as far as it was asked for.
struct Uses {
    own: BTreeMap<QueueId, Amounts>,
    left: usize,
}

impl Default for Uses {
    fn default() -> Self {
        Uses {
            own: BTreeMap::new(),
            left: ADDED_UP_MAX,
        }
    }
}

impl Uses {
    /// What the queue's own tasks use.
    fn own(&mut self, tables: &Tables, id: QueueId) -> &Amounts {
        let left = &mut self.left;
        self.own.entry(id).or_insert_with(|| {
            let queue = tables.queue(id);
            match used_by(tables, queue, left) {
                Some(used) => used,
                None => amounts(&queue.used_own),
            }
        })
    }

    /// What tasks of the queue use, and of all below it.
    fn tree(&mut self, tables: &Tables, id: QueueId) -> Amounts {
        let mut used = Amounts::new();
        let mut add = |row: &Amounts| {
            for (kind, value) in row {
                *used.entry(*kind).or_default() += *value;
            }
        };
        let (mut tree, mut next) = (BTreeSet::from([id]), vec![id]);
        while let Some(at) = next.pop() {
            if self.left == 0 {
                add(&amounts(&tables.queue(at).used));
                continue;
            }
            self.left -= 1;
            add(self.own(tables, at));
            let children = tables.queue(at).children.iter();
            next.extend(children.filter(|child| tree.insert(**child)));
        }
        used
    }
}

fn amounts(vector: &Vector) -> Amounts {
    let entries = vector.entries();
    entries
        .map(|(kind, value)| (kind, i128::from(value)))
        .collect()
}

/// The plan's binds by the queue of their gang.
fn places_by_queue<'a>(tables: &Tables, plan: &'a Plan) -> BTreeMap<QueueId, Vec<&'a Place>> {
    let queue_of = |task: TaskId| tables.gang(tables.task(task).gang?).queue;
    let mut by_queue: BTreeMap<QueueId, Vec<&Place>> = BTreeMap::new();
    for place in &plan.places {
        if let Some(queue) = queue_of(place.task) {
            by_queue.entry(queue).or_default().push(place);
        }
    }
    by_queue
}

/// What the queue's own tasks use, added up from them, unless that is more than may be.
fn used_by(tables: &Tables, queue: &Queue, left: &mut usize) -> Option<Amounts> {
    let mut cost = 0;
    for gang in &queue.gangs {
        cost += 1 + tables.gang(*gang).tasks.len();
        if cost > *left {
            return None;
        }
    }
    *left -= cost;
    let mut used = Amounts::new();
    for gang in queue.gangs.iter().map(|gang| tables.gang(*gang)) {
        for task in &gang.tasks {
            let phase = tables.task(*task).phase;
            if matches!(phase, Phase::Binding | Phase::Bound | Phase::Running) {
                add(&mut used, tables, *task);
            }
        }
    }
    Some(used)
}

/// The kinds of which a queue uses more than its ceiling, where one of these binds asks for some.
fn beyond(
    tables: &Tables,
    plan: &Plan,
    (queue, used): (&Queue, &Amounts),
    places: &[&Place],
    found: &mut Vec<Violation>,
) {
    for (kind, ceiling) in queue.spec.capability.entries() {
        let asks = |place: &&&Place| tables.shape_of(place.task).spec.requests.get(kind) > 0;
        let askers = || places.iter().copied().filter(|place| asks(&place));
        let ceiling = i128::from(ceiling.max(queue.spec.guarantee.get(kind)));
        let used = used.get(&kind).copied().unwrap_or(0);
        // Upstream: a ceiling of zero or less on cpu or memory means none.
        let is_none = ceiling <= 0 && (kind == Kind::CPU || kind == Kind::MEMORY);
        if used <= ceiling || is_none || askers().next().is_none() {
            continue;
        }
        let (name, kind_name) = (&queue.spec.name, tables.kinds().name(kind));
        found.push(Violation {
            invariant: "I3",
            what: format!("queue {name} uses {used} {kind_name} with a ceiling of {ceiling}"),
            writes: with_their_gangs(tables, plan, askers()),
        });
    }
}

#[cfg(test)]
mod tests {
    use model::{
        Kind, Limits, NodeId, Plan, QueueId, QueueSpec, QueueState, Tables, TaskId, Time, Trial,
        Vector,
    };

    use crate::planted::{cluster, said, task};
    use crate::{Waived, check_plan, check_plan_by};

    /// The cluster with `q` two steps below `top`, and a sibling of its parent in which nobody is.
    fn tree() -> Tables {
        let mut tables = cluster();
        let (_, q) = tables.queues().next().expect("there is a queue");
        let own = q.spec.clone();
        for (name, parent) in [("top", None), ("team", Some("top")), ("other", Some("top"))] {
            tables.put_queue(QueueSpec {
                name: name.into(),
                parent: parent.map(Into::into),
                state: QueueState::Open,
                weight: 1,
                ..QueueSpec::default()
            });
        }
        tables.put_queue(QueueSpec {
            parent: Some("team".into()),
            ..own
        });
        tables
    }

    fn named(tables: &Tables, name: &str) -> QueueId {
        tables.queue_named(name).expect("it was put there")
    }

    fn alter(tables: &mut Tables, name: &str, alter: fn(&mut QueueSpec)) {
        let mut spec = tables.queue(named(tables, name)).spec.clone();
        alter(&mut spec);
        tables.put_queue(spec);
    }

    /// All three tasks of the gang are bound, whatever any rule says.
    fn bind(tables: &mut Tables) -> Plan {
        let mut trial = Trial::begin(tables);
        for (task, node) in [(0, 0), (1, 0), (2, 1)] {
            trial.place(TaskId(task), NodeId(node));
        }
        trial.finish(Time::from_micros(0))
    }

    #[test]
    fn i3_a_queue_beyond_the_ceiling_of_one_above_it_is_found_at_whatever_height() {
        for name in ["team", "top"] {
            for (ceiling, says) in [(2_999, &["I3"] as &[&str]), (3_000, &[])] {
                let mut tables = tree();
                alter(
                    &mut tables,
                    name,
                    match ceiling {
                        3_000 => |spec| spec.capability = Limits::of([(Kind::CPU, 3_000)]),
                        _ => |spec| spec.capability = Limits::of([(Kind::CPU, 2_999)]),
                    },
                );
                let plan = bind(&mut tables);
                let found = check_plan(&tables, &plan);
                assert_eq!(said(&found), says, "{name} {ceiling}");
                for violation in &found {
                    assert!(violation.what.contains(&format!("queue {name} uses 3000 ")));
                    assert_eq!(violation.writes.len(), 3, "all of the gang is named");
                }
            }
        }
    }

    #[test]
    fn i3_what_siblings_use_counts_above_them_and_not_beside_them() {
        for (name, says) in [("top", &["I3"] as &[&str]), ("team", &[]), ("other", &[])] {
            let mut tables = tree();
            tables.put_gang(model::GangSpec {
                key: model::Key::new("a", "there"),
                queue: "other".into(),
                ..model::GangSpec::default()
            });
            tables.put_task(model::TaskSpec {
                gang: Some(model::Key::new("a", "there")),
                phase: model::Phase::Running,
                node: Some("n2".into()),
                ..task("runs", 1_000)
            });
            alter(&mut tables, name, |spec| {
                spec.capability = Limits::of([(Kind::CPU, 3_000)]);
            });
            let plan = bind(&mut tables);
            assert_eq!(said(&check_plan(&tables, &plan)), says, "{name}");
        }
    }

    #[test]
    fn i3_above_what_is_guaranteed_is_no_excess_and_who_asks_for_none_of_it_is_no_matter() {
        let full: fn(&mut QueueSpec) = |spec| {
            spec.capability = Limits::of([(Kind::CPU, 1_000)]);
            spec.guarantee = Vector::of([(Kind::CPU, 3_000)]);
        };
        let of_memory: fn(&mut QueueSpec) = |spec| {
            spec.capability = Limits::of([(Kind::MEMORY, 1)]);
        };
        for change in [full, of_memory] {
            let mut tables = tree();
            alter(&mut tables, "top", change);
            let plan = bind(&mut tables);
            assert_eq!(check_plan(&tables, &plan), []);
        }
    }

    #[test]
    fn i3_ceilings_above_are_waived_apart_from_a_queues_own() {
        let waive = |ceilings, ceilings_above| Waived {
            ceilings,
            ceilings_above,
            ..Waived::default()
        };
        let mut tables = tree();
        for name in ["q", "top"] {
            alter(&mut tables, name, |spec| {
                spec.capability = Limits::of([(Kind::CPU, 2_000)]);
            });
        }
        let plan = bind(&mut tables);
        let named = |own, above| {
            let found = check_plan_by(waive(own, above), &tables, &plan);
            let names = found
                .iter()
                .map(|it| it.what.split(' ').nth(1).map(str::to_owned));
            names.flatten().collect::<Vec<_>>()
        };
        assert_eq!(named(false, false), ["q", "top"]);
        assert_eq!(named(false, true), ["q"], "a flat rule book");
        assert_eq!(named(true, false), ["top"]);
        assert!(named(true, true).is_empty());
    }

    #[test]
    fn i3_of_more_tasks_than_are_added_up_the_rows_are_believed() {
        for many in [10, super::ADDED_UP_MAX] {
            let mut tables = tree();
            tables.put_gang(model::GangSpec {
                key: model::Key::new("a", "many"),
                queue: "other".into(),
                ..model::GangSpec::default()
            });
            for at in 0..many {
                tables.put_task(model::TaskSpec {
                    gang: Some(model::Key::new("a", "many")),
                    phase: model::Phase::Running,
                    node: Some("n2".into()),
                    ..task(&format!("runs-{at}"), 1)
                });
            }
            let all = i64::try_from(many).expect("not that many") + 3_000;
            for (ceiling, says) in [(all - 1, &["I3"] as &[&str]), (all, &[])] {
                let mut spec = tables.queue(named(&tables, "top")).spec.clone();
                spec.capability = Limits::of([(Kind::CPU, ceiling)]);
                tables.put_queue(spec);
                let mut tables = tables.clone();
                let plan = bind(&mut tables);
                let found = check_plan(&tables, &plan);
                let found: Vec<&str> = said(&found).into_iter().filter(|it| *it == "I3").collect();
                assert_eq!(found, says, "{many} {ceiling}");
            }
        }
    }

    #[test]
    fn i3_queues_in_a_circle_are_walked_once() {
        let mut tables = tree();
        alter(&mut tables, "top", |spec| {
            spec.parent = Some("team".into());
            spec.capability = Limits::of([(Kind::CPU, 2_000)]);
        });
        let plan = bind(&mut tables);
        assert!(
            check_plan(&tables, &plan)
                .iter()
                .all(|it| it.invariant == "I3")
        );
    }
}
