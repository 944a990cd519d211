//! Gangs whose tasks keep others at a distance, or are kept at one: room is kept for them as if the gangs that
//! they may not be near had gone. Those go at last, and no other comes near what is promised.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    GangId, Key, Labels, Phase, PodTerm, ShapeId, ShapeSpec, Spread, Tables, Task, TaskId,
    matches_all,
};

use crate::coupling::is_meant_by_all;
use crate::cycle::Cycle;
use crate::plugin::View;
use crate::plugins::deviceshare;

/// Gangs whose tasks have more different labels are left out.
const FACES_MAX: usize = 64;

/// What others see of a task: its shape and its labels.
type Face = (ShapeId, Labels);

/// Whether nobody knows where the task may run once others have gone.
pub(super) fn is_unforeseeable(view: View<'_>, task: TaskId) -> bool {
    deviceshare::concerns(view, task) || is_withheld(view, task)
}

/// Whether a pod of no gang, which may stay for ever, has a claim of the task that one pod may use at a time.
fn is_withheld(view: View<'_>, task: TaskId) -> bool {
    let row = view.tables.task(task);
    let claims = row.sole.iter();
    let mut users = claims.flat_map(|claim| {
        let claim = Key::new(row.key.namespace.clone(), claim.clone());
        view.tables.sole_users(&claim)
    });
    users.any(|user| {
        let user = view.tables.task(user);
        user.gang.is_none() && user.phase != Phase::Releasing
    })
}

/// Who names the claims without a place that tasks of a gang come with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claims {
    /// Each of them one task.
    Own,
    /// One of them all tasks of the gang, which go to one node with it.
    Together,
    /// Others, or only some of the gang: whoever gets a place first takes the claim along, and a node for that
    /// one is no node for all of them.
    Shared,
}

/// Who names the claims of the gang's tasks.
pub(super) fn claims(view: View<'_>, gang: GangId) -> Claims {
    let tasks = view.tables.gang(gang).tasks.iter();
    let tasks: Vec<&Task> = tasks.map(|id| view.tables.task(*id)).collect();
    let tasks: Vec<&Task> = tasks.into_iter().filter(|task| !is_over(task)).collect();
    let mut users: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for task in &tasks {
        for claim in &task.claims {
            *users.entry((&task.key.namespace, claim)).or_default() += 1;
        }
    }
    if users.is_empty() {
        return Claims::Own;
    }
    let others = view.tables.tasks().map(|(_, task)| task);
    let mut others = others.filter(|task| task.gang != Some(gang) && !is_over(task));
    let is_others = others.any(|task| {
        let mut claims = task.claims.iter();
        claims.any(|claim| users.contains_key(&(&*task.key.namespace, &**claim)))
    });
    match users.values().max() {
        _ if is_others => Claims::Shared,
        Some(most) if *most == tasks.len() && *most > 1 => Claims::Together,
        Some(most) if *most > 1 => Claims::Shared,
        _ => Claims::Own,
    }
}

/// Whether tasks of the gang must be near others than its own, or be spread evenly with them: these may go
/// as well, and what is even now is not then. What it asks of its own tasks only stays as it is.
pub(super) fn looks_at_others(view: View<'_>, gang: GangId) -> bool {
    let specs = waiting_specs(view, gang);
    let near = specs.iter().map(|spec| &spec.pod_affinity);
    let near: BTreeSet<&Vec<PodTerm>> = near.filter(|terms| !terms.is_empty()).collect();
    let even = specs.iter().flat_map(|spec| &spec.spread);
    let even: BTreeSet<&Spread> = even.filter(|spread| spread.required).collect();
    if near.is_empty() && even.is_empty() {
        return false;
    }
    let is_meant = |task: &Task| {
        let (namespace, labels) = (&*task.key.namespace, &task.labels);
        near.iter().any(|terms| is_meant_by_all(terms, task))
            || even.iter().any(|spread| {
                *spread.namespace == *namespace && matches_all(&spread.selector, labels)
            })
    };
    let others = view.tables.tasks().map(|(_, task)| task);
    let mut others = others.filter(|task| task.gang != Some(gang) && !is_over(task));
    others.any(is_meant)
}

fn is_over(task: &Task) -> bool {
    matches!(task.phase, Phase::Succeeded | Phase::Failed)
}

/// The keys by whose values tasks of the gang must be near one another.
pub(super) fn keys_of_nearness(view: View<'_>, gang: GangId) -> BTreeSet<Arc<str>> {
    let specs = waiting_specs(view, gang);
    let terms = specs.iter().flat_map(|spec| &spec.pod_affinity);
    terms.map(|term| term.topology_key.clone()).collect()
}

/// What those of the gang's tasks ask for that wait.
fn waiting_specs(view: View<'_>, gang: GangId) -> Vec<&ShapeSpec> {
    let tasks = view.tables.gang(gang).tasks.iter();
    let tasks = tasks.map(|id| view.tables.task(*id));
    let waiting = tasks.filter(|task| task.phase.is_waiting());
    let shapes: BTreeSet<ShapeId> = waiting.map(|task| task.shape).collect();
    let specs = shapes.into_iter().map(|id| &*view.tables.shape(id).spec);
    specs.collect()
}

/// Sends away, in the trial, the tasks of other gangs that may not be near tasks of this one; whether it could
/// be found out who they are.
pub(super) fn send_away(cycle: &mut Cycle<'_, '_>, gang: GangId) -> bool {
    let tables = cycle.trial.tables();
    let row = tables.gang(gang);
    let own = row.tasks.iter().map(|task| tables.task(*task).shape);
    let own: BTreeSet<ShapeId> = own.collect();
    let is_free = |shape: &ShapeId| tables.shape(*shape).spec.pod_anti_affinity.is_empty();
    if tables.coupled_shapes().is_empty() && own.iter().all(is_free) {
        return true;
    }
    let mut faces: BTreeSet<Face> = BTreeSet::new();
    for task in &row.tasks {
        let task = tables.task(*task);
        if task.phase.is_waiting() {
            faces.insert((task.shape, task.labels.clone()));
        }
        if faces.len() > FACES_MAX {
            return false;
        }
    }
    let namespace = row.spec.key.namespace.clone();
    let rivals = rivals(tables, &namespace, &own, &faces);
    let rivals = rivals.into_iter().filter(|id| {
        let task = tables.task(*id);
        task.phase.is_allocated() && task.gang.is_some_and(|other| other != gang)
    });
    let rivals: Vec<TaskId> = rivals.collect();
    for task in rivals {
        cycle.trial.evict(task, gang, "");
    }
    true
}

/// Tasks that those with these faces may not be near, or that say so of them.
fn rivals(
    tables: &Tables,
    namespace: &str,
    own: &BTreeSet<ShapeId>,
    faces: &BTreeSet<Face>,
) -> BTreeSet<TaskId> {
    let mut rivals = BTreeSet::new();
    for (shape, tasks) in tables.coupled_shapes() {
        let terms = &tables.shape(*shape).spec.pod_anti_affinity;
        let refuses = |(_, labels): &Face| terms.iter().any(|it| it.selects(namespace, labels));
        if faces.iter().any(refuses) {
            rivals.extend(tasks);
        }
    }
    let terms = own
        .iter()
        .flat_map(|shape| &tables.shape(*shape).spec.pod_anti_affinity);
    let terms: Vec<&PodTerm> = terms.collect();
    if !terms.is_empty() {
        let refused = tables.tasks().filter(|(_, task)| {
            let selected = |term: &&PodTerm| term.selects(&task.key.namespace, &task.labels);
            terms.iter().any(selected)
        });
        rivals.extend(refused.map(|(id, _)| id));
    }
    rivals
}
