//! StatefulSets: pods with numbers, each with claims of its own, made, replaced and removed in
//! order.
//!
//! The template that was wanted is kept in ControllerRevisions; a pod's label names the one that
//! it was made from. A step does what comes next in the order and tells the status as it was seen.

use std::sync::Arc;

use api::core::{ControllerRevision, PersistentVolumeClaim, Pod, StatefulSet};
use api::intent::{Intent, ObjectKey};
use api::kind::Kind;
use api::time::Time;
use mirror::{Change, Mirror};
use serde_json::Value;

mod claims;
mod order;
mod pods;
pub(crate) mod revisions;
mod status;

pub(crate) use pods::revision as revision_of;

use crate::adoption::{self, Owner};
use crate::note::Occasion;
use crate::{Controller, Inputs, Step, ranking};
use revisions::Revisions;

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "stateful_set",
    component: "statefulset-controller",
    tells_refused: &[],
    watches: &[
        Kind::ControllerRevision,
        Kind::PersistentVolumeClaim,
        Kind::Pod,
        Kind::StatefulSet,
    ],
    keys,
    step,
};

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    match change.kind() {
        Kind::StatefulSet => keys.push((*change.key).clone()),
        Kind::PersistentVolumeClaim => of_claim(mirror, change, keys),
        _ => {
            crate::keys::of_owner(change, Kind::StatefulSet, keys);
            adoption::keys_of_adopters::<StatefulSet>(
                mirror,
                change,
                |it| Some(&it.spec.selector),
                keys,
            );
        }
    }
}

/// A claim that has come or gone matters to the set whose pod mounts it, or will.
fn of_claim(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    if change.before.is_some() && change.after.is_some() {
        return;
    }
    for set in mirror.list_in::<StatefulSet>(&change.key.namespace) {
        let stem = format!("-{}-", set.metadata.name);
        if change.key.name.contains(&*stem) {
            let meta = &set.metadata;
            keys.push(ObjectKey::new(
                Kind::StatefulSet,
                &meta.namespace,
                &meta.name,
            ));
        }
    }
}

/// Everything that one step looks at.
struct View<'a> {
    inputs: &'a Inputs<'a>,
    set: &'a StatefulSet,
    /// Its pods, by number.
    pods: Vec<(i32, Arc<Pod>)>,
    revisions: Revisions,
    /// Names and bodies of claim templates.
    claims: Vec<(Box<str>, Value)>,
}

fn step(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    let Some(set) = inputs.mirror.get::<StatefulSet>(namespace, name) else {
        return Step::idle();
    };
    let owner = Owner {
        kind: Kind::StatefulSet,
        meta: &set.metadata,
        selector: &set.spec.selector,
    };
    let is_member = |pod: &Pod| pods::ordinal(&set.metadata.name, &pod.metadata.name).is_some();
    let pods = adoption::claim::<Pod>(inputs.mirror, owner, None, is_member);
    let known = adoption::claim::<ControllerRevision>(inputs.mirror, owner, None, |_| true);
    let mut adopted = pods.intents;
    adopted.extend(known.intents);
    if !adopted.is_empty() {
        return Step::write(adopted);
    }
    let revisions = match revisions::sorted_out(set, known.own, inputs.settings) {
        Ok(revisions) => revisions,
        // One that leaves may have let go of its revisions already.
        Err(_) if set.metadata.deletion_timestamp.is_some() => return Step::idle(),
        Err(intent) => return Step::write(vec![intent]),
    };
    let numbered = pods.own.into_iter().filter_map(|pod| {
        let ordinal = pods::ordinal(&set.metadata.name, &pod.metadata.name)?;
        Some((ordinal, pod))
    });
    let mut numbered: Vec<(i32, Arc<Pod>)> = numbered.collect();
    numbered.sort_by_key(|(ordinal, _)| *ordinal);
    let view = View {
        inputs,
        set,
        pods: numbered,
        revisions,
        claims: claims::templates(set),
    };
    view.step()
}

impl View<'_> {
    fn step(&self) -> Step {
        let mut intents: Vec<Intent> = Vec::new();
        if self.set.metadata.deletion_timestamp.is_none() {
            intents.extend(self.in_order());
            intents.truncate(self.inputs.settings.writes_per_step_max * 2);
        }
        intents.extend(self.status());
        intents.extend(self.forget_revisions());
        Step::write(intents).or_wake_at(self.next_available())
    }

    fn wanted(&self) -> i32 {
        self.set.spec.replicas.unwrap_or(1).max(0)
    }

    /// The numbers that are wanted.
    fn ordinals(&self) -> std::ops::Range<i32> {
        let start = self.set.spec.start();
        start..start.saturating_add(self.wanted())
    }

    /// Whether one pod comes after the other.
    fn is_ordered(&self) -> bool {
        &*self.set.spec.pod_management_policy != "Parallel"
    }

    fn pod(&self, ordinal: i32) -> Option<&Arc<Pod>> {
        let mut pods = self.pods.iter();
        pods.find(|(number, _)| *number == ordinal)
            .map(|(_, pod)| pod)
    }

    fn claim(&self, name: &str) -> Option<&Arc<PersistentVolumeClaim>> {
        let namespace = &self.set.metadata.namespace;
        self.inputs
            .mirror
            .get::<PersistentVolumeClaim>(namespace, name)
    }

    fn is_available(&self, pod: &Pod) -> bool {
        let since = ranking::available_at(pod, self.set.spec.min_ready_seconds);
        pods::is_running_and_ready(pod) && since.is_some_and(|since| since <= self.inputs.now)
    }

    fn next_available(&self) -> Option<Time> {
        let seconds = self.set.spec.min_ready_seconds;
        let times = self.pods.iter();
        times
            .filter_map(|(_, pod)| ranking::available_at(pod, seconds))
            .filter(|at| *at > self.inputs.now)
            .min()
    }

    fn occasion<'a>(&'a self, id: &'a str) -> Occasion<'a> {
        Occasion {
            kind: Kind::StatefulSet,
            meta: &self.set.metadata,
            component: CONTROLLER.component,
            id,
        }
    }

    /// What was done to a pod, for people.
    fn pod_note(&self, verb: &str, pod: &str, id: &str) -> Intent {
        let set = &self.set.metadata.name;
        let message = format!("{verb} Pod {pod} in StatefulSet {set} successful");
        let reason = format!("Successful{verb}");
        self.occasion(id).normal(&reason, &message, self.inputs.now)
    }
}
