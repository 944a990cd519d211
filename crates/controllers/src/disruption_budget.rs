//! PodDisruptionBudgets: how many evictions are allowed now.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::core::{
    BudgetStatus, DatedCondition, Deployment, Pod, PodDisruptionBudget, ReplicaSet, StatefulSet,
};
use api::int_or_string::{IntOrString, Rounding};
use api::intent::ObjectKey;
use api::kind::Kind;
use api::time::Time;
use mirror::{Change, Mirror};
use serde_json::{Value, json};

use crate::conditions::whole_seconds;
use crate::note::Occasion;
use crate::{Controller, Inputs, Step, conditions, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "disruption_budget",
    component: "controllermanager",
    tells_refused: &[],
    watches: &[
        Kind::Deployment,
        Kind::Pod,
        Kind::PodDisruptionBudget,
        Kind::ReplicaSet,
        Kind::StatefulSet,
    ],
    keys,
    step,
};

const ALLOWED: &str = "DisruptionAllowed";
/// A pod whose eviction was granted should be gone after this time.
const DELETION_MS: i64 = 120_000;

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    let namespace = &change.key.namespace;
    match change.kind() {
        Kind::PodDisruptionBudget => keys.push((*change.key).clone()),
        // Most namespaces have no budget, and pods change often.
        Kind::Pod
            if mirror
                .list_in::<PodDisruptionBudget>(namespace)
                .next()
                .is_none() => {}
        Kind::Pod => {
            let facts = |pod: &Arc<Pod>| {
                let labels = pod.metadata.labels.clone();
                (labels, pod.is_ready(), pod.is_terminating())
            };
            if change.before::<Pod>().map(facts) == change.after::<Pod>().map(facts) {
                return;
            }
            for budget in mirror.list_in::<PodDisruptionBudget>(namespace) {
                if change.sides().any(|side| selects(budget, side.meta())) {
                    keys.push(key_of(budget));
                }
            }
        }
        _ => {
            let sizes = |object: Option<&mirror::Object>| object.map(size);
            if sizes(change.before.as_ref()) != sizes(change.after.as_ref()) {
                let budgets = mirror.list_in::<PodDisruptionBudget>(namespace);
                keys.extend(budgets.map(|budget| key_of(budget)));
            }
        }
    }
}

fn key_of(budget: &PodDisruptionBudget) -> ObjectKey {
    let meta = &budget.metadata;
    ObjectKey::new(Kind::PodDisruptionBudget, &meta.namespace, &meta.name)
}

fn selects(budget: &PodDisruptionBudget, meta: &api::meta::ObjectMeta) -> bool {
    let selector = budget.spec.selector.as_ref();
    selector.is_some_and(|selector| selector.matches(&meta.labels))
}

/// How many pods an owner wants.
fn size(object: &mirror::Object) -> i32 {
    let replicas = match object {
        mirror::Object::Deployment(it) => it.spec.replicas,
        mirror::Object::ReplicaSet(it) => it.spec.replicas,
        mirror::Object::StatefulSet(it) => it.spec.replicas,
        _ => None,
    };
    replicas.unwrap_or(1)
}

struct View<'a> {
    inputs: &'a Inputs<'a>,
    budget: &'a PodDisruptionBudget,
    pods: Vec<&'a Arc<Pod>>,
}

fn step(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    let mirror = inputs.mirror;
    let Some(budget) = mirror.get::<PodDisruptionBudget>(namespace, name) else {
        return Step::idle();
    };
    let pods = mirror.list_in::<Pod>(namespace);
    let view = View {
        inputs,
        budget,
        pods: pods.filter(|pod| selects(budget, &pod.metadata)).collect(),
    };
    view.step()
}

impl View<'_> {
    fn step(&self) -> Step {
        let now = self.inputs.now;
        let mut intents = Vec::new();
        if self.pods.is_empty() {
            let note = self
                .occasion()
                .normal("NoPods", "No matching pods found", now);
            intents.push(note);
        }
        let mut status = self.budget.status.clone();
        let mut wake_at = None;
        match self.expected() {
            Ok((expected, desired, is_unmanaged)) => {
                if is_unmanaged {
                    intents.push(self.unmanaged_note());
                }
                (status.disrupted_pods, wake_at) = self.disrupted();
                status.current_healthy = self.healthy(&status.disrupted_pods);
                status.desired_healthy = desired;
                status.expected_pods = expected;
                let allowed = status.current_healthy.saturating_sub(desired).max(0);
                status.disruptions_allowed = if expected > 0 { allowed } else { 0 };
                status.observed_generation = self.budget.metadata.generation;
                let (state, reason) = match status.disruptions_allowed {
                    1.. => ("True", "SufficientPods"),
                    _ => ("False", "InsufficientPods"),
                };
                self.tell(&mut status, state, reason, "");
            }
            Err(error) => {
                let message = format!("Failed to calculate the number of expected pods: {error}");
                let reason = "CalculateExpectedPodCountFailed";
                intents.push(self.occasion().warning(reason, &message, now));
                // While nothing is known, nothing is allowed.
                status.disruptions_allowed = 0;
                self.tell(&mut status, "False", "SyncFailed", &error);
            }
        }
        let (old, new) = (
            write::stored(&self.budget.status, &self.budget.metadata, wire),
            wire(&status),
        );
        let kind = Kind::PodDisruptionBudget;
        intents.extend(write::status_difference(
            kind,
            &self.budget.metadata,
            &old,
            &new,
        ));
        Step::write(intents).or_wake_at(wake_at)
    }

    fn occasion(&self) -> Occasion<'_> {
        Occasion {
            kind: Kind::PodDisruptionBudget,
            meta: &self.budget.metadata,
            component: CONTROLLER.component,
            id: "",
        }
    }

    fn unmanaged_note(&self) -> api::intent::Intent {
        let selector = self.budget.spec.selector.as_ref();
        let labels = selector.map(|it| &it.match_labels).into_iter().flatten();
        let labels: Vec<String> = labels
            .map(|(key, value)| format!("{key}:{value}"))
            .collect();
        let message = format!(
            "Pods selected by this PodDisruptionBudget (selector: &LabelSelector{{MatchLabels:map[string]string{{{}}},MatchExpressions:[]LabelSelectorRequirement{{}},}}) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value.",
            labels
                .iter()
                .map(|label| format!("{},", label.replacen(':', ": ", 1)))
                .collect::<String>()
        );
        self.occasion()
            .warning("UnmanagedPods", &message, self.inputs.now)
    }

    /// Pods that there should be, pods that must be healthy, and whether some have no owner.
    fn expected(&self) -> Result<(i32, i32, bool), String> {
        let spec = &self.budget.spec;
        if let Some(max) = &spec.max_unavailable {
            let (scale, is_unmanaged) = self.scale()?;
            let missing = amount(max, scale)?;
            return Ok((scale, scale.saturating_sub(missing).max(0), is_unmanaged));
        }
        match &spec.min_available {
            Some(IntOrString::Int(min)) => {
                let count = i32::try_from(self.pods.len()).unwrap_or(i32::MAX);
                Ok((count, *min, false))
            }
            Some(min) => {
                let (scale, is_unmanaged) = self.scale()?;
                Ok((scale, amount(min, scale)?, is_unmanaged))
            }
            None => Ok((0, 0, false)),
        }
    }

    /// The sizes of all owners of the pods together.
    fn scale(&self) -> Result<(i32, bool), String> {
        let mut sizes: BTreeMap<Box<str>, i32> = BTreeMap::new();
        let mut is_unmanaged = false;
        for pod in &self.pods {
            let Some(owner) = pod.metadata.controller() else {
                is_unmanaged = true;
                continue;
            };
            if sizes.contains_key(&owner.uid) {
                continue;
            }
            let (uid, size) = self.size_of(owner, &pod.metadata.name)?;
            sizes.insert(uid, size);
        }
        let sizes = sizes.into_values();
        Ok((sizes.fold(0, i32::saturating_add), is_unmanaged))
    }

    fn size_of(
        &self,
        owner: &api::meta::OwnerReference,
        pod: &str,
    ) -> Result<(Box<str>, i32), String> {
        let mirror = self.inputs.mirror;
        let namespace = &self.budget.metadata.namespace;
        let lost = || format!("found no controllers for pod \"{pod}\"");
        match Kind::find(&owner.api_version, &owner.kind) {
            Some(Kind::ReplicaSet) => {
                let set = mirror.get::<ReplicaSet>(namespace, &owner.name);
                let set = set
                    .filter(|set| set.metadata.uid == owner.uid)
                    .ok_or_else(lost)?;
                let above = set.metadata.controller();
                let above = above.and_then(|it| mirror.get::<Deployment>(namespace, &it.name));
                Ok(match above {
                    Some(it) => (it.metadata.uid.clone(), it.spec.replicas.unwrap_or(1)),
                    None => (owner.uid.clone(), set.spec.replicas.unwrap_or(1)),
                })
            }
            Some(Kind::StatefulSet) => {
                let set = mirror.get::<StatefulSet>(namespace, &owner.name);
                let set = set
                    .filter(|set| set.metadata.uid == owner.uid)
                    .ok_or_else(lost)?;
                Ok((owner.uid.clone(), set.spec.replicas.unwrap_or(1)))
            }
            Some(kind) => {
                let row = kind.row();
                Err(format!(
                    "{}.{} does not implement the scale subresource",
                    row.plural, row.group
                ))
            }
            None => Err(lost()),
        }
    }

    /// Granted evictions whose pods are not gone yet, and when the first should be.
    fn disrupted(&self) -> (BTreeMap<Box<str>, Time>, Option<Time>) {
        let mut left = BTreeMap::new();
        let mut recheck: Option<Time> = None;
        for pod in self.pods.iter().filter(|pod| !pod.is_terminating()) {
            let name = &*pod.metadata.name;
            let Some(granted) = self.budget.status.disrupted_pods.get(name) else {
                continue;
            };
            let due = granted.plus_ms(DELETION_MS);
            if due >= self.inputs.now {
                left.insert(name.into(), *granted);
                recheck = Some(recheck.map_or(due, |known| known.min(due)));
            }
        }
        (left, recheck.map(|due| due.plus_ms(1)))
    }

    fn healthy(&self, disrupted: &BTreeMap<Box<str>, Time>) -> i32 {
        let pods = self.pods.iter();
        let healthy = pods.filter(|pod| {
            let is_leaving = pod.is_terminating() || disrupted.contains_key(&*pod.metadata.name);
            !is_leaving && pod.is_ready()
        });
        i32::try_from(healthy.count()).unwrap_or(i32::MAX)
    }

    fn tell(&self, status: &mut BudgetStatus, state: &str, reason: &str, message: &str) {
        let now = whole_seconds(self.inputs.now);
        let known = conditions::find(&status.conditions, ALLOWED);
        let since = known.filter(|it| &*it.status == state);
        let condition = DatedCondition {
            kind: ALLOWED.into(),
            status: state.into(),
            reason: reason.into(),
            message: message.into(),
            last_transition_time: since.map_or(Some(now), |it| it.last_transition_time),
            observed_generation: status.observed_generation,
            ..DatedCondition::default()
        };
        match status.conditions.iter_mut().find(|it| &*it.kind == ALLOWED) {
            Some(known) => *known = condition,
            None => status.conditions.push(condition),
        }
    }
}

fn amount(value: &IntOrString, total: i32) -> Result<i32, String> {
    let amount = value.of(i64::from(total), Rounding::Up);
    let amount = amount.ok_or_else(|| {
        "invalid value for IntOrString: invalid type: string is not a percentage".to_owned()
    })?;
    Ok(i32::try_from(amount).unwrap_or(i32::MAX))
}

/// A status as JSON.
fn wire(status: &BudgetStatus) -> Value {
    let mut value = json!({
        "currentHealthy": status.current_healthy,
        "desiredHealthy": status.desired_healthy,
        "disruptionsAllowed": status.disruptions_allowed,
        "expectedPods": status.expected_pods,
    });
    if status.observed_generation != 0 {
        value["observedGeneration"] = json!(status.observed_generation);
    }
    if !status.disrupted_pods.is_empty() {
        value["disruptedPods"] = json!(status.disrupted_pods);
    }
    if !status.conditions.is_empty() {
        let mut list = conditions::wire(&status.conditions);
        // This kind's conditions bear their message even where it is empty.
        for condition in list.as_array_mut().into_iter().flatten() {
            if condition["message"].is_null() {
                condition["message"] = json!("");
            }
        }
        value["conditions"] = list;
    }
    value
}
