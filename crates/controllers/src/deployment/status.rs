//! The status of a Deployment: numbers, and whether it gets on.

use api::core::{DatedCondition, DeploymentStatus};
use api::intent::Intent;
use api::kind::Kind;
use api::time::Time;
use serde_json::{Value, json};

use super::{View, replicas};
use crate::conditions::{self, whole_seconds};
use crate::write;

const PROGRESSING: &str = "Progressing";
const FAILURE: &str = "ReplicaFailure";
/// What to add to a deadline so that it has certainly passed: times on the wire are whole seconds.
const SLACK_MS: i64 = 1_000;

/// Sets the condition `Progressing`; one that says the same already stays.
pub(super) fn set(
    list: &mut Vec<DatedCondition>,
    status: &str,
    reason: &str,
    text: &str,
    now: Time,
) {
    put(list, condition(PROGRESSING, status, reason, text, now));
}

fn condition(kind: &str, status: &str, reason: &str, text: &str, now: Time) -> DatedCondition {
    DatedCondition {
        last_update_time: Some(now),
        ..conditions::Wanted {
            kind,
            status,
            reason,
            message: text,
        }
        .at(now)
    }
}

fn put(list: &mut Vec<DatedCondition>, mut condition: DatedCondition) {
    let known = conditions::find(list, &condition.kind);
    if let Some(known) = known.filter(|known| known.status == condition.status) {
        if known.reason == condition.reason {
            return;
        }
        condition.last_transition_time = known.last_transition_time;
    }
    list.retain(|it| it.kind != condition.kind);
    list.push(condition);
}

impl View<'_> {
    pub(super) fn has_deadline(&self) -> bool {
        self.deadline_seconds().is_some()
    }

    fn deadline_seconds(&self) -> Option<i32> {
        let seconds = self.it.spec.progress_deadline_seconds;
        seconds.filter(|seconds| *seconds != i32::MAX)
    }

    /// Tells that the Deployment is paused, or no longer.
    pub(super) fn pausing(&self) -> Option<Intent> {
        if !self.has_deadline() {
            return None;
        }
        let list = &self.it.status.conditions;
        let reason = conditions::find(list, PROGRESSING).map_or("", |it| &*it.reason);
        let is_told = reason == "DeploymentPaused";
        if reason == "ProgressDeadlineExceeded" || self.it.spec.paused == is_told {
            return None;
        }
        let (reason, message) = match self.it.spec.paused {
            true => ("DeploymentPaused", "Deployment is paused"),
            false => ("DeploymentResumed", "Deployment is resumed"),
        };
        let mut told = list.clone();
        set(
            &mut told,
            "Unknown",
            reason,
            message,
            whole_seconds(self.inputs.now),
        );
        let status = json!({ "conditions": conditions::wire(&told) });
        let meta = &self.it.metadata;
        Some(write::patch_status(Kind::Deployment, meta, status))
    }

    /// Whether all pods are of the wanted template and can work, and no other is left.
    pub(super) fn is_complete(&self, status: &DeploymentStatus) -> bool {
        let wanted = self.wanted();
        status.updated_replicas == wanted
            && status.replicas == wanted
            && status.available_replicas == wanted
            && status.observed_generation >= self.it.metadata.generation
    }

    /// The numbers as they are, with the condition `Available`.
    fn numbers(&self) -> DeploymentStatus {
        let sum = |of: &dyn Fn(&api::core::ReplicaSet) -> i32| {
            let numbers = self.all().map(|set| of(set));
            numbers.fold(0, i32::saturating_add)
        };
        let available = sum(&|set| set.status.available_replicas);
        let mut terminating = self.all().map(|set| set.status.terminating_replicas);
        let terminating = terminating.try_fold(0, |sum: i32, more| Some(sum.saturating_add(more?)));
        let mut status = DeploymentStatus {
            observed_generation: self.it.metadata.generation,
            replicas: sum(&|set| set.status.replicas),
            updated_replicas: self.new.as_ref().map_or(0, |set| set.status.replicas),
            ready_replicas: sum(&|set| set.status.ready_replicas),
            available_replicas: available,
            unavailable_replicas: sum(&replicas).saturating_sub(available).max(0),
            terminating_replicas: terminating,
            conditions: self.it.status.conditions.clone(),
            collision_count: self.it.status.collision_count,
        };
        let now = whole_seconds(self.inputs.now);
        let told = match available >= self.wanted().saturating_sub(self.max_unavailable()) {
            true => condition(
                "Available",
                "True",
                "MinimumReplicasAvailable",
                "Deployment has minimum availability.",
                now,
            ),
            false => condition(
                "Available",
                "False",
                "MinimumReplicasUnavailable",
                "Deployment does not have minimum availability.",
                now,
            ),
        };
        put(&mut status.conditions, told);
        status
    }

    /// The status where progress is not looked at.
    pub(super) fn settled_status(&self) -> Option<Intent> {
        self.write(&self.numbers())
    }

    fn write(&self, status: &DeploymentStatus) -> Option<Intent> {
        let (old, new) = (wire(&self.it.status), wire(status));
        write::status_difference(Kind::Deployment, &self.it.metadata, &old, &new)
    }

    /// The status of a roll-out, and when it will have taken too long.
    pub(super) fn progress_status(&self) -> (Option<Intent>, Option<Time>) {
        let mut status = self.numbers();
        if !self.has_deadline() {
            status.conditions.retain(|it| &*it.kind != PROGRESSING);
        }
        let before = conditions::find(&self.it.status.conditions, PROGRESSING);
        let is_over = status.replicas == status.updated_replicas
            && before.is_some_and(|it| &*it.reason == "NewReplicaSetAvailable");
        if self.has_deadline() && !is_over {
            self.tell_progress(&mut status);
        }
        let mut failures = self
            .new
            .iter()
            .chain(&self.old)
            .filter_map(|set| conditions::find(&set.status.conditions, FAILURE));
        match failures.next() {
            Some(failure) => {
                let now = whole_seconds(self.inputs.now);
                let (reason, text) = (&failure.reason, &failure.message);
                let told = condition(FAILURE, &failure.status, reason, text, now);
                put(&mut status.conditions, told);
            }
            None => status.conditions.retain(|it| &*it.kind != FAILURE),
        }
        (self.write(&status), self.timeout(&status))
    }

    fn subject(&self) -> String {
        match &self.new {
            Some(set) => format!("ReplicaSet \"{}\"", set.metadata.name),
            None => format!("Deployment \"{}\"", self.it.metadata.name),
        }
    }

    fn tell_progress(&self, status: &mut DeploymentStatus) {
        let now = whole_seconds(self.inputs.now);
        let before = conditions::find(&self.it.status.conditions, PROGRESSING);
        let subject = self.subject();
        if self.is_complete(status) {
            let text = format!("{subject} has successfully progressed.");
            set(
                &mut status.conditions,
                "True",
                "NewReplicaSetAvailable",
                &text,
                now,
            );
        } else if self.gets_on(status) {
            let text = format!("{subject} is progressing.");
            let mut told = condition(PROGRESSING, "True", "ReplicaSetUpdated", &text, now);
            if let Some(before) = before.filter(|it| &*it.status == "True") {
                told.last_transition_time = before.last_transition_time;
            }
            status.conditions.retain(|it| &*it.kind != PROGRESSING);
            status.conditions.push(told);
        } else if self
            .timeout(status)
            .is_some_and(|due| self.inputs.now >= due)
        {
            let text = format!("{subject} has timed out progressing.");
            set(
                &mut status.conditions,
                "False",
                "ProgressDeadlineExceeded",
                &text,
                now,
            );
        }
    }

    /// Whether pods have come or become ready, or old ones have gone.
    fn gets_on(&self, new: &DeploymentStatus) -> bool {
        let old = &self.it.status;
        let former = |it: &DeploymentStatus| it.replicas.saturating_sub(it.updated_replicas);
        new.updated_replicas > old.updated_replicas
            || former(new) < former(old)
            || new.ready_replicas > old.ready_replicas
            || new.available_replicas > old.available_replicas
    }

    /// When a roll-out that does not get on will have failed.
    fn timeout(&self, status: &DeploymentStatus) -> Option<Time> {
        let seconds = self.deadline_seconds()?;
        let told = conditions::find(&status.conditions, PROGRESSING)?;
        let is_settled = matches!(
            &*told.reason,
            "NewReplicaSetAvailable" | "ProgressDeadlineExceeded"
        );
        let since = told.last_update_time.or(told.last_transition_time)?;
        let due = since.plus_ms(i64::from(seconds) * 1_000 + SLACK_MS);
        (!is_settled && !self.is_complete(status)).then_some(due)
    }
}

/// A status as JSON; what is empty is left out.
fn wire(status: &DeploymentStatus) -> Value {
    let mut value = json!({});
    let numbers = [
        ("availableReplicas", i64::from(status.available_replicas)),
        ("observedGeneration", status.observed_generation),
        ("readyReplicas", i64::from(status.ready_replicas)),
        ("replicas", i64::from(status.replicas)),
        (
            "unavailableReplicas",
            i64::from(status.unavailable_replicas),
        ),
        ("updatedReplicas", i64::from(status.updated_replicas)),
    ];
    for (field, number) in numbers.into_iter().filter(|(_, number)| *number != 0) {
        value[field] = json!(number);
    }
    if let Some(terminating) = status.terminating_replicas {
        value["terminatingReplicas"] = json!(terminating);
    }
    if let Some(collisions) = status.collision_count {
        value["collisionCount"] = json!(collisions);
    }
    if !status.conditions.is_empty() {
        value["conditions"] = conditions::wire(&status.conditions);
    }
    value
}
