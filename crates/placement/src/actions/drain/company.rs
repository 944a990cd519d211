//! Gangs whose tasks keep others at a distance, or are kept at one: room is kept for them as if the gangs that
//! they may not be near had gone. Those go at last, and no other comes near what is promised.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{GangId, Labels, PodTerm, ShapeId, Tables, TaskId};

use crate::cycle::Cycle;
use crate::plugin::View;
use crate::plugins::deviceshare;

/// Gangs whose tasks have more different labels are left out.
const FACES_MAX: usize = 64;

/// What others see of a task: its shape and its labels.
type Face = (ShapeId, Arc<Labels>);

/// Whether nobody knows where the task may run once others have gone: whom it must be near may go as well,
/// and what is even now is not then.
pub(super) fn is_unforeseeable(view: View<'_>, task: TaskId) -> bool {
    let spec = &view.tables.shape_of(task).spec;
    !spec.pod_affinity.is_empty()
        || spec.spread.iter().any(|spread| spread.required)
        || deviceshare::concerns(view, task)
        || !view.tables.task(task).claims.is_empty()
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
