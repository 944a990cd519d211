//! I25: a claim that one pod may use at a time is used by one, and whoever goes for it makes it free.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{GangId, Phase, Plan, Tables, Task, TaskId, WriteId};

use crate::Violation;
use crate::rooms::with_their_gangs;

/// A claim, by namespace and name.
type Claim = (Arc<str>, Arc<str>);

fn claims(task: &Task) -> impl Iterator<Item = Claim> {
    let space = &task.key.namespace;
    task.sole.iter().map(|name| (space.clone(), name.clone()))
}

/// Of a plan: nobody is placed while another uses a claim of his, and where somebody is evicted for a gang its
/// promised tasks have theirs as soon as whoever leaves has left.
pub(crate) fn plan(tables: &Tables, plan: &Plan, found: &mut Vec<Violation>) {
    let placed: BTreeSet<TaskId> = plan.places.iter().map(|place| place.task).collect();
    let served = served(tables, plan);
    let asked = placed.iter().chain(served.keys());
    let wanted: BTreeSet<Claim> = asked.flat_map(|task| claims(tables.task(*task))).collect();
    if wanted.is_empty() {
        return;
    }
    let users = users(tables, &wanted);
    let first_of = |task: TaskId, counts: fn(Phase) -> bool| {
        let mut users = claims(tables.task(task)).filter_map(|claim| users.get(&claim));
        users.find_map(|users| {
            let mut others = users.iter().filter(|user| **user != task);
            let other = others.find(|user| counts(tables.task(**user).phase));
            other.copied()
        })
    };
    for place in plan.places.iter() {
        if let Some(other) = first_of(place.task, |_| true) {
            let (task, other) = (&tables.task(place.task).key, &tables.task(other).key);
            found.push(Violation {
                invariant: "I25",
                what: format!("task {task} is placed with a claim that {other} uses"),
                writes: with_their_gangs(tables, plan, std::iter::once(place)),
            });
        }
    }
    for (task, writes) in served {
        if let Some(other) = first_of(task, |phase| phase != Phase::Releasing) {
            let (task, other) = (&tables.task(task).key, &tables.task(other).key);
            found.push(Violation {
                invariant: "I25",
                what: format!("tasks are evicted for {task}, and {other} keeps its claim"),
                writes,
            });
        }
    }
}

/// Tasks that are promised room, of gangs for which somebody is evicted, with the writes that do so.
fn served(tables: &Tables, plan: &Plan) -> BTreeMap<TaskId, Vec<WriteId>> {
    let mut gangs: BTreeMap<GangId, Vec<WriteId>> = BTreeMap::new();
    for eviction in &plan.evictions {
        if let Some(gang) = eviction.sake.gang() {
            gangs.entry(gang).or_default().push(eviction.write);
        }
    }
    let tasks = gangs.into_iter().flat_map(|(gang, writes)| {
        let gang = tables.find_gang(gang).into_iter();
        let tasks = gang.flat_map(|gang| gang.tasks.iter().copied());
        let promised = tasks.filter(|task| tables.task(*task).phase == Phase::Pipelined);
        promised.map(move |task| (task, writes.clone()))
    });
    tasks.collect()
}

/// Who is on a node with these claims, or is promised one.
fn users(tables: &Tables, wanted: &BTreeSet<Claim>) -> BTreeMap<Claim, Vec<TaskId>> {
    let mut users: BTreeMap<Claim, Vec<TaskId>> = BTreeMap::new();
    for (id, task) in tables.tasks() {
        let is_over = matches!(task.phase, Phase::Succeeded | Phase::Failed);
        if task.node.is_none() || is_over {
            continue;
        }
        for claim in claims(task).filter(|claim| wanted.contains(claim)) {
            users.entry(claim).or_default().push(id);
        }
    }
    users
}

#[cfg(test)]
mod tests {
    use model::{NodeId, Phase, Tables, TaskId, TaskSpec, Time, Trial};

    use crate::check_plan;
    use crate::planted::{cluster, said, task};

    const N1: NodeId = NodeId(0);
    const N2: NodeId = NodeId(1);

    /// Three tasks of the gang with the claim; the last one is on a node in this phase, if any.
    fn with_a_claim(phase: Option<Phase>) -> Tables {
        let mut tables = cluster();
        for name in ["t0", "t1", "t2"] {
            let mut spec = TaskSpec {
                sole: vec!["data".into()],
                ..task(name, 1_000)
            };
            if let Some(phase) = phase.filter(|_| name == "t2") {
                (spec.phase, spec.node) = (phase, Some("n2".into()));
            }
            tables.put_task(spec);
        }
        tables
    }

    #[test]
    fn i25_two_tasks_with_one_claim_are_found() {
        let mut tables = with_a_claim(None);
        let mut trial = Trial::begin(&mut tables);
        trial.place(TaskId(0), N1);
        trial.place(TaskId(1), N2);
        let plan = trial.finish(Time::from_micros(0));
        let found = check_plan(&tables, &plan);
        assert_eq!(said(&found), ["I25", "I25"]);
        assert_eq!(found[0].writes.len(), 2, "all of the gang is named");
    }

    #[test]
    fn i25_who_leaves_has_the_claim_until_it_has_left() {
        for (phase, expected) in [
            (Phase::Releasing, vec!["I25"]),
            (Phase::Running, vec!["I25"]),
            (Phase::Succeeded, vec![]),
        ] {
            let mut tables = with_a_claim(Some(phase));
            let mut other = task("t1", 1_000);
            (other.phase, other.node) = (Phase::Running, Some("n1".into()));
            tables.put_task(other);
            let mut trial = Trial::begin(&mut tables);
            trial.place(TaskId(0), N1);
            let plan = trial.finish(Time::from_micros(0));
            assert_eq!(said(&check_plan(&tables, &plan)), expected, "{phase:?}");
        }
    }

    #[test]
    fn i25_nobody_goes_for_who_does_not_get_its_claim() {
        for (victim, expected) in [(1, vec!["I25"]), (2, vec![])] {
            let mut tables = with_a_claim(Some(Phase::Running));
            let mut other = task("t1", 1_000);
            (other.phase, other.node) = (Phase::Running, Some("n1".into()));
            tables.put_task(other);
            let gang = tables.task(TaskId(0)).gang.unwrap();
            let mut trial = Trial::begin(&mut tables);
            trial.evict(TaskId(victim), gang, "preempt");
            trial.promise(TaskId(0), N1);
            let plan = trial.finish(Time::from_micros(0));
            assert_eq!(said(&check_plan(&tables, &plan)), expected, "{victim}");
        }
    }
}
