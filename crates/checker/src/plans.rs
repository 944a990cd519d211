//! I1, I2, I3, I4, I5, I6, I14, I20, I23, I24, I25: what a committed plan may not be. Only what it touches
//! is looked at.

use std::collections::{BTreeMap, BTreeSet};

use model::{Eviction, Gang, GangId, Phase, Plan, Sake, Tables, Task, WriteId};

use crate::{Violation, cards, claims, close, counters, joint, npus, rooms, volumes};

/// What no rule is configured to keep: it is only written down then, and no plan breaks it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waived {
    /// That a queue is within its ceiling.
    pub ceilings: bool,
    /// That queues above it are within theirs: only a tree of queues has such.
    pub ceilings_above: bool,
    /// That tasks which must be close together are in one hyper-node.
    pub hyper_nodes: bool,
    /// That gangs within a gang are whole.
    pub parts: bool,
    /// That no disruption budget is exceeded by who has to leave a node.
    pub budgets: bool,
}

/// Everything that is wrong with a plan that was just committed to the tables, where all holds.
pub fn check_plan(tables: &Tables, plan: &Plan) -> Vec<Violation> {
    check_plan_by(Waived::default(), tables, plan)
}

/// The same by rules of which is said what they do not keep.
pub fn check_plan_by(waived: Waived, tables: &Tables, plan: &Plan) -> Vec<Violation> {
    let mut found = Vec::new();
    let gangs: BTreeSet<GangId> = plan
        .places
        .iter()
        .filter_map(|place| tables.task(place.task).gang)
        .collect();
    for id in gangs {
        let gang = tables.gang(id);
        let placed = gang.tasks.iter().filter(|task| {
            let phase = tables.task(**task).phase;
            matches!(
                phase,
                Phase::Binding | Phase::Bound | Phase::Running | Phase::Succeeded
            )
        });
        let (placed, min) = (placed.count(), gang.spec.min_member as usize);
        if placed < min && !is_the_rest(tables, gang, min) {
            let what = format!(
                "gang {} is left with {placed} of {min} tasks placed",
                gang.spec.key
            );
            found.push(Violation {
                invariant: "I4",
                what,
                writes: writes_of(tables, plan, id),
            });
        }
    }
    for place in &plan.places {
        let task = tables.task(place.task);
        if task.phase != Phase::Binding
            || task.node != Some(place.node)
            || task.write != Some(place.write)
        {
            let what = format!("task {} is planned but not pending", task.key);
            found.push(Violation {
                invariant: "I6",
                what,
                writes: vec![place.write],
            });
        }
    }
    joint::plan(tables, plan, &mut found);
    rooms::rooms(tables, plan, &mut found);
    cards::plan(tables, plan, &mut found);
    npus::plan(tables, plan, &mut found);
    counters::plan(tables, plan, &mut found);
    volumes::plan(tables, plan, &mut found);
    claims::plan(tables, plan, &mut found);
    if !waived.ceilings {
        rooms::ceilings(tables, plan, &mut found);
    }
    if !waived.ceilings_above {
        rooms::ceilings_above(tables, plan, &mut found);
    }
    evictions(waived, tables, plan, &mut found);
    whole(tables, plan, &mut found);
    close::together(waived, tables, plan, &mut found);
    found
}

/// I5: a victim goes by a committed plan, for a gang that gets something, or because it has to leave its
/// node. I8: no two gangs drive out each other.
fn evictions(waived: Waived, tables: &Tables, plan: &Plan, found: &mut Vec<Violation>) {
    let mut driven: BTreeMap<GangId, BTreeSet<GangId>> = BTreeMap::new();
    for eviction in &plan.evictions {
        let task = tables.task(eviction.task);
        let is_of_the_plan = task.phase == Phase::Releasing && task.write == Some(eviction.write);
        let strayed = (!is_of_the_plan).then_some("by no committed plan");
        for how in unfounded(waived, tables, eviction)
            .into_iter()
            .chain(strayed)
        {
            found.push(Violation {
                invariant: "I5",
                what: format!("task {} is evicted {how}", task.key),
                writes: vec![eviction.write],
            });
        }
        let Some(winner) = eviction.sake.gang() else {
            continue;
        };
        if let Some(loser) = task.gang.filter(|gang| *gang != winner) {
            driven.entry(winner).or_default().insert(loser);
        }
    }
    for eviction in &plan.evictions {
        let loser = tables.task(eviction.task).gang;
        let (Some(loser), Some(winner)) = (loser, eviction.sake.gang()) else {
            continue;
        };
        if loser != winner && reaches(&driven, loser, winner) {
            found.push(Violation {
                invariant: "I8",
                what: format!(
                    "task {} is evicted for a gang that makes room for its own",
                    tables.task(eviction.task).key
                ),
                writes: vec![eviction.write],
            });
        }
    }
}

/// I5: who goes as a whole does not go in part: nobody of the gang stays on a node when one is evicted.
fn whole(tables: &Tables, plan: &Plan, found: &mut Vec<Violation>) {
    for eviction in &plan.evictions {
        let task = tables.task(eviction.task);
        let gang = task.gang.map(|gang| tables.gang(gang));
        let Some(gang) = gang.filter(|gang| gang.spec.goes_whole) else {
            continue;
        };
        let stays = gang.tasks.iter().any(|other| {
            let phase = tables.task(*other).phase;
            matches!(phase, Phase::Binding | Phase::Bound | Phase::Running)
        });
        if stays {
            found.push(Violation {
                invariant: "I5",
                what: format!("task {} is evicted without all of its gang", task.key),
                writes: vec![eviction.write],
            });
        }
    }
}

/// What is wrong with whose or what sake a victim goes for.
fn unfounded(waived: Waived, tables: &Tables, eviction: &Eviction) -> Option<&'static str> {
    match &eviction.sake {
        Sake::Gang(gang) => {
            let Some(gang) = tables.find_gang(*gang).filter(|gang| gang.known) else {
                return Some("for nobody");
            };
            let got = gang.allocated_count() + gang.count(Phase::Pipelined);
            (got == 0).then_some("for a gang that gets nothing")
        }
        Sake::Leaving(_) => {
            let task = tables.task(eviction.task);
            let is_ours = task.gang.is_some_and(|gang| tables.gang(gang).known);
            match () {
                () if eviction.cause != "shuffle" => Some("for no gang, though it is no shuffle"),
                () if !task.preemptable => Some("though it may not be"),
                () if !is_ours => Some("though it is of no gang"),
                () if !waived.budgets && is_beyond_a_budget(tables, task) => {
                    Some("beyond a disruption budget")
                }
                () => None,
            }
        }
    }
}

/// Whether a budget covers the task, and fewer may go than are on their way out by a plan.
fn is_beyond_a_budget(tables: &Tables, task: &Task) -> bool {
    tables.budgets(&task.key.namespace).any(|budget| {
        let covers = |task: &Task| {
            let selector = budget.selector.as_ref();
            selector.is_some_and(|it| model::matches_all(it, &task.labels))
                && !budget.disrupted.contains(&task.key.name)
        };
        let going = tables.tasks().filter(|(_, other)| {
            other.phase == Phase::Releasing
                && other.write.is_some()
                && other.key.namespace == task.key.namespace
                && covers(other)
        });
        covers(task) && going.count() > usize::try_from(budget.allowed).unwrap_or(0)
    })
}

/// Whether one gang drives out another, or drives out one that does.
fn reaches(driven: &BTreeMap<GangId, BTreeSet<GangId>>, from: GangId, to: GangId) -> bool {
    let mut seen = BTreeSet::new();
    let mut next = vec![from];
    while let Some(at) = next.pop() {
        if at == to {
            return true;
        }
        if seen.insert(at) {
            next.extend(driven.get(&at).into_iter().flatten());
        }
    }
    false
}

/// The plan's binds of a gang: all of them are kept back, or none.
pub(crate) fn writes_of(tables: &Tables, plan: &Plan, gang: GangId) -> Vec<WriteId> {
    let places = plan.places.iter();
    let ours = places.filter(|place| tables.task(place.task).gang == Some(gang));
    ours.map(|place| place.write).collect()
}

/// Whether a gang that is short of its minimum has all that is left of it placed: members that have
/// failed make up the rest.
fn is_the_rest(tables: &Tables, gang: &Gang, min: usize) -> bool {
    let is_waiting = |phase| matches!(phase, Phase::Pending | Phase::Pipelined | Phase::Releasing);
    let tasks = || gang.tasks.iter().map(|task| tables.task(*task));
    let had_a_start = |task: &Task| task.phase == Phase::Failed && task.started.is_some();
    tasks()
        .all(|task| !is_waiting(task.phase) && (task.phase != Phase::Failed || had_a_start(task)))
        && tasks().count() >= min
}

/// I20: whether the plan writes nothing.
pub fn is_quiet(plan: &Plan) -> bool {
    plan.places.is_empty()
        && plan.evictions.is_empty()
        && plan.openings.is_empty()
        && plan.nominations.is_empty()
        && plan.statuses.is_empty()
        && plan.waits.is_empty()
        && plan.remarks.is_empty()
        && plan.queues.is_empty()
}
