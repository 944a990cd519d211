//! ReplicaSets: as many equal pods as are wanted, no more and no fewer.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::core::{DatedCondition, Pod, ReplicaSet};
use api::intent::{Intent, ObjectKey};
use api::kind::Kind;
use api::time::Time;
use mirror::{Change, Mirror};
use serde_json::{Value, json};

use crate::adoption::{self, Owner};
use crate::conditions::{self, Wanted, whole_seconds};
use crate::note::Occasion;
use crate::ranking::{self, Ages};
use crate::{Controller, Inputs, Step, child, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "replica_set",
    component: "replicaset-controller",
    tells_refused: &[],
    watches: &[Kind::Pod, Kind::ReplicaSet],
    keys,
    step,
};

/// Annotation with what the loss of a pod would cost.
const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    if change.kind() == Kind::ReplicaSet {
        keys.push((*change.key).clone());
        return;
    }
    crate::keys::of_owner(change, Kind::ReplicaSet, keys);
    adoption::keys_of_adopters::<ReplicaSet>(mirror, change, |it| Some(&it.spec.selector), keys);
}

struct View<'a> {
    inputs: &'a Inputs<'a>,
    set: &'a ReplicaSet,
    /// All of its pods.
    pods: Vec<Arc<Pod>>,
    active: Vec<Arc<Pod>>,
}

fn step(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    let Some(set) = inputs.mirror.get::<ReplicaSet>(namespace, name) else {
        return Step::idle();
    };
    let owner = Owner {
        kind: Kind::ReplicaSet,
        meta: &set.metadata,
        selector: &set.spec.selector,
    };
    let claimed = adoption::claim::<Pod>(inputs.mirror, owner, None, ranking::is_active);
    if !claimed.intents.is_empty() {
        return Step::write(claimed.intents);
    }
    let active = claimed.own.iter().filter(|pod| ranking::is_active(pod));
    let view = View {
        inputs,
        set,
        active: active.cloned().collect(),
        pods: claimed.own,
    };
    view.step()
}

impl View<'_> {
    fn step(&self) -> Step {
        let mut intents = match self.set.metadata.deletion_timestamp {
            Some(_) => Vec::new(),
            None => self.manage(),
        };
        // What is refused must not keep the status from being told.
        if intents.is_empty() || self.inputs.last.failures > 0 {
            intents.extend(self.status());
        }
        Step::write(intents).or_wake_at(self.next_available())
    }

    fn wanted(&self) -> usize {
        usize::try_from(self.set.spec.replicas.unwrap_or(1)).unwrap_or(0)
    }

    fn manage(&self) -> Vec<Intent> {
        let (active, wanted) = (self.active.len(), self.wanted());
        let max = self.inputs.settings.writes_per_step_max;
        if active < wanted {
            return self.create((wanted - active).min(self.inputs.pods_at_once()));
        }
        let surplus = self.ranked();
        let surplus = surplus.iter().take((active - wanted).min(max));
        surplus.flat_map(|pod| self.delete(pod)).collect()
    }

    fn occasion<'a>(&'a self, id: &'a str) -> Occasion<'a> {
        Occasion {
            kind: Kind::ReplicaSet,
            meta: &self.set.metadata,
            component: CONTROLLER.component,
            id,
        }
    }

    fn create(&self, count: usize) -> Vec<Intent> {
        let meta = &self.set.metadata;
        let stem = format!("{}-", meta.name);
        let template = self.set.spec.template.value();
        let free = (0u32..)
            .map(|number| child::name(&stem, &[&meta.uid, &number.to_string()]))
            .filter(|name| {
                self.inputs
                    .mirror
                    .get::<Pod>(&meta.namespace, name)
                    .is_none()
            });
        let creates: Vec<Intent> = free
            .take(count)
            .map(|name| child::pod(&template, (Kind::ReplicaSet, meta), &stem, &name))
            .map(|body| write::create(Kind::Pod, body))
            .collect();
        let notes: Vec<Intent> = creates
            .iter()
            .map(|intent| {
                let message = format!("Created pod: {}", intent.target.name);
                let occasion = self.occasion(&meta.resource_version);
                occasion.normal("SuccessfulCreate", &message, self.inputs.now)
            })
            .collect();
        creates.into_iter().chain(notes).collect()
    }

    fn delete(&self, pod: &Pod) -> [Intent; 2] {
        let message = format!("Deleted pod: {}", pod.metadata.name);
        let occasion = self.occasion(&pod.metadata.uid);
        let note = occasion.normal("SuccessfulDelete", &message, self.inputs.now);
        [write::delete(Kind::Pod, &pod.metadata), note]
    }

    /// Active pods, those to be given up first.
    fn ranked(&self) -> Vec<Arc<Pod>> {
        let by_node = self.neighbours();
        let mut pods = self.active.clone();
        let cost = |pod: &Pod| {
            let text = pod.metadata.annotations.get(COST);
            text.and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        let neighbours = |pod: &Pod| by_node.get(&*pod.spec.node_name).copied().unwrap_or(0);
        ranking::sort(
            &mut pods,
            Ages::Magnitude(self.inputs.now),
            cost,
            neighbours,
        );
        pods
    }

    /// How many active pods of all sets of the same owner run on each node.
    fn neighbours(&self) -> BTreeMap<Box<str>, usize> {
        let mirror = self.inputs.mirror;
        let mut sets: Vec<&str> = vec![&self.set.metadata.uid];
        if let Some(owner) = self.set.metadata.controller() {
            let others = mirror.owned_by::<ReplicaSet>(&owner.uid);
            sets = others.map(|set| &*set.metadata.uid).collect();
        }
        let mut by_node: BTreeMap<Box<str>, usize> = BTreeMap::new();
        for pod in sets.iter().flat_map(|uid| mirror.owned_by::<Pod>(uid)) {
            if ranking::is_active(pod) {
                *by_node.entry((&*pod.spec.node_name).into()).or_default() += 1;
            }
        }
        by_node
    }

    fn is_available(&self, pod: &Pod) -> bool {
        let since = ranking::available_at(pod, self.set.spec.min_ready_seconds);
        since.is_some_and(|since| since <= self.inputs.now)
    }

    /// When the next pod will have been ready for long enough.
    fn next_available(&self) -> Option<Time> {
        let seconds = self.set.spec.min_ready_seconds;
        let times = self.active.iter();
        times
            .filter_map(|pod| ranking::available_at(pod, seconds))
            .filter(|at| *at > self.inputs.now)
            .min()
    }

    fn status(&self) -> Option<Intent> {
        let count = |test: &dyn Fn(&Pod) -> bool| {
            let pods = self.active.iter().filter(|pod| test(pod));
            i32::try_from(pods.count()).unwrap_or(i32::MAX)
        };
        let template = self.set.spec.template.value();
        let labels = child::map(&template["metadata"]["labels"]);
        let has_labels = |pod: &Pod| {
            let mut wanted = labels.iter();
            wanted.all(|(key, value)| {
                let label = pod.metadata.labels.get(key);
                label.map(|label| &**label) == value.as_str()
            })
        };
        let ending = self.pods.iter().filter(|pod| ranking::is_ending(pod));
        let mut new = self.set.status.clone();
        new.replicas = count(&|_| true);
        new.fully_labeled_replicas = count(&has_labels);
        new.ready_replicas = count(&Pod::is_ready);
        new.available_replicas = count(&|pod| self.is_available(pod));
        new.terminating_replicas = Some(i32::try_from(ending.count()).unwrap_or(i32::MAX));
        new.observed_generation = self.set.metadata.generation;
        new.conditions = self.conditions();
        let (old, new) = (
            write::stored(&self.set.status, &self.set.metadata, wire),
            wire(&new),
        );
        write::status_difference(Kind::ReplicaSet, &self.set.metadata, &old, &new)
    }

    /// `ReplicaFailure` while the API refuses pods.
    fn conditions(&self) -> Vec<DatedCondition> {
        const FAILURE: &str = "ReplicaFailure";
        let mut list = self.set.status.conditions.clone();
        let refused = self.inputs.last.refused.first();
        let Some(refused) = refused.filter(|it| it.target.kind == Kind::Pod) else {
            list.retain(|condition| &*condition.kind != FAILURE);
            return list;
        };
        if conditions::find(&list, FAILURE).is_none() {
            let wanted = Wanted {
                kind: FAILURE,
                status: "True",
                reason: match refused.verb {
                    "delete" => "FailedDelete",
                    _ => "FailedCreate",
                },
                message: &refused.message,
            };
            list.push(wanted.at(whole_seconds(self.inputs.now)));
        }
        list
    }
}

/// A status as JSON; what is empty is left out.
fn wire(status: &api::core::ReplicaSetStatus) -> Value {
    let mut value = json!({ "replicas": status.replicas });
    let numbers = [
        ("availableReplicas", i64::from(status.available_replicas)),
        (
            "fullyLabeledReplicas",
            i64::from(status.fully_labeled_replicas),
        ),
        ("observedGeneration", status.observed_generation),
        ("readyReplicas", i64::from(status.ready_replicas)),
    ];
    for (field, number) in numbers.into_iter().filter(|(_, number)| *number != 0) {
        value[field] = json!(number);
    }
    if let Some(terminating) = status.terminating_replicas {
        value["terminatingReplicas"] = json!(terminating);
    }
    if !status.conditions.is_empty() {
        value["conditions"] = conditions::wire(&status.conditions);
    }
    value
}
