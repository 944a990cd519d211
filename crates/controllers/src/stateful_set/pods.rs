//! Pods of a StatefulSet: their names, what they are made from, how they stand.

use api::core::{Pod, PodPhase};
use api::kind::Kind;
use serde_json::{Value, json};

use super::View;
use crate::child;

const NAME: &str = "statefulset.kubernetes.io/pod-name";
const INDEX: &str = "apps.kubernetes.io/pod-index";
const REVISION: &str = "controller-revision-hash";

/// The number of a pod, if its name is one of the set's.
pub(super) fn ordinal(set: &str, pod: &str) -> Option<i32> {
    let number = pod.strip_prefix(set)?.strip_prefix('-')?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| is_number)
}

/// The revision that a pod was made from.
pub(crate) fn revision(pod: &Pod) -> &str {
    let label = pod.metadata.labels.get(REVISION);
    label.map_or("", |label| &**label)
}

pub(super) fn is_running_and_ready(pod: &Pod) -> bool {
    pod.status.phase == PodPhase::Running && pod.is_ready()
}

impl View<'_> {
    pub(super) fn name(&self, ordinal: i32) -> String {
        format!("{}-{ordinal}", self.set.metadata.name)
    }

    /// Whether a missing pod is made from the current revision, not from the new one.
    fn is_current(&self, ordinal: i32) -> bool {
        let spec = &self.set.spec;
        let start = spec.start();
        match (
            &*spec.update_strategy.kind,
            &spec.update_strategy.rolling_update,
        ) {
            (_, Some(rolling)) => ordinal < start.saturating_add(rolling.partition.unwrap_or(0)),
            ("OnDelete", None) => false,
            (_, None) => {
                // As many pods as are left of the current revision, counted as they are: a stored
                // number would bring back the pod that was deleted for the update.
                let name = &self.revisions.current.metadata.name;
                let left = self
                    .pods
                    .iter()
                    .filter(|(_, pod)| !pod.is_terminating() && revision(pod) == &**name);
                ordinal < start.saturating_add(i32::try_from(left.count()).unwrap_or(i32::MAX))
            }
        }
    }

    /// The pod of a number, as it is to be.
    pub(super) fn body(&self, ordinal: i32) -> Value {
        let meta = &self.set.metadata;
        let (template, revision) = match self.is_current(ordinal) {
            true => (self.revisions.current_template(), &self.revisions.current),
            false => (self.set.spec.template.value(), &self.revisions.update),
        };
        let name = self.name(ordinal);
        let stem = format!("{}-", meta.name);
        let mut body = child::pod(&template, (Kind::StatefulSet, meta), &stem, &name);
        let labels = &mut body["metadata"]["labels"];
        labels[NAME] = json!(name);
        labels[INDEX] = json!(ordinal.to_string());
        labels[REVISION] = json!(revision.metadata.name);
        let spec = &mut body["spec"];
        spec["hostname"] = json!(name);
        if !self.set.spec.service_name.is_empty() {
            spec["subdomain"] = json!(self.set.spec.service_name);
        }
        self.mount(spec, ordinal);
        body
    }

    /// Puts the pod's claims in place of volumes of the same names.
    fn mount(&self, spec: &mut Value, ordinal: i32) {
        if self.claims.is_empty() {
            return;
        }
        let mut volumes: Vec<Value> = self
            .claims
            .iter()
            .map(|(name, _)| {
                let claim = self.claim_name(name, ordinal);
                json!({ "name": name, "persistentVolumeClaim": { "claimName": claim } })
            })
            .collect();
        let others = spec["volumes"].as_array().cloned().unwrap_or_default();
        let is_claim =
            |volume: &Value| self.claims.iter().any(|(name, _)| volume["name"] == **name);
        volumes.extend(others.into_iter().filter(|volume| !is_claim(volume)));
        spec["volumes"] = Value::Array(volumes);
    }

    /// The labels that tell a pod's name and number, where it lacks them.
    pub(super) fn missing_identity(&self, ordinal: i32, pod: &Pod) -> Option<Value> {
        let name = self.name(ordinal);
        let has = |key: &str, value: &str| {
            let label = pod.metadata.labels.get(key);
            label.is_some_and(|label| **label == *value)
        };
        if has(NAME, &name) && has(INDEX, &ordinal.to_string()) {
            return None;
        }
        let labels = json!({ NAME: name, INDEX: ordinal.to_string() });
        Some(json!({ "metadata": { "labels": labels } }))
    }
}
