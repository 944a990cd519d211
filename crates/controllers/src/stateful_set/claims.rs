//! Claims of a StatefulSet's pods: made before the pod, and owned by whoever's end is to be theirs.

use api::core::{PersistentVolumeClaim, StatefulSet};
use api::intent::{Intent, Part};
use api::kind::Kind;
use api::meta::{ObjectMeta, OwnerReference};
use serde_json::{Value, json};

use super::View;
use crate::{child, write};

/// Names and bodies of the claim templates.
pub(super) fn templates(set: &StatefulSet) -> Vec<(Box<str>, Value)> {
    let raw = set.spec.volume_claim_templates.iter();
    raw.map(|raw| {
        let body = raw.value();
        let name = body["metadata"]["name"].as_str().unwrap_or("").into();
        (name, body)
    })
    .collect()
}

impl View<'_> {
    pub(super) fn claim_name(&self, template: &str, ordinal: i32) -> String {
        format!("{template}-{}-{ordinal}", self.set.metadata.name)
    }

    /// Makes the claims of a pod that are not there.
    pub(super) fn missing_claims(&self, ordinal: i32) -> Vec<Intent> {
        let mut intents = Vec::new();
        for (template, body) in &self.claims {
            let name = self.claim_name(template, ordinal);
            if self.claim(&name).is_some() {
                continue;
            }
            let mut labels = child::map(&body["metadata"]["labels"]);
            for (key, value) in &self.set.spec.selector.match_labels {
                labels.insert(key.to_string(), json!(value));
            }
            let mut metadata = json!({
                "name": name,
                "namespace": self.set.metadata.namespace,
                "labels": labels,
            });
            if body["metadata"]["annotations"].is_object() {
                metadata["annotations"] = body["metadata"]["annotations"].clone();
            }
            let claim = json!({ "metadata": metadata, "spec": body["spec"] });
            intents.push(write::create(Kind::PersistentVolumeClaim, claim));
            let (pod, set) = (self.name(ordinal), &self.set.metadata.name);
            let message = format!("Create Claim {name} Pod {pod} in StatefulSet {set} success");
            let occasion = self.occasion(&self.set.metadata.resource_version);
            intents.push(occasion.normal("SuccessfulCreate", &message, self.inputs.now));
        }
        intents
    }

    /// Whether a claim of a pod that is to be made is on its way out, or belongs to a former pod.
    pub(super) fn has_stale_claim(&self, ordinal: i32) -> bool {
        let pod = self.name(ordinal);
        let deletes = self.deletes_when_scaled();
        self.claims.iter().any(|(template, _)| {
            let claim = self.claim(&self.claim_name(template, ordinal));
            claim.is_some_and(|claim| {
                let mut owners = claim.metadata.owner_references.iter();
                let is_owned = owners.any(|it| &*it.kind == "Pod" && *it.name == *pod);
                claim.metadata.deletion_timestamp.is_some() || (deletes && is_owned)
            })
        })
    }

    fn deletes_when_scaled(&self) -> bool {
        let policy = &self.set.spec.persistent_volume_claim_retention_policy;
        policy
            .as_ref()
            .is_some_and(|it| &*it.when_scaled == "Delete")
    }

    fn deletes_when_deleted(&self) -> bool {
        let policy = &self.set.spec.persistent_volume_claim_retention_policy;
        policy
            .as_ref()
            .is_some_and(|it| &*it.when_deleted == "Delete")
    }

    /// Gives the claims of a pod the owner that the policy asks for.
    pub(super) fn retain_claims(&self, ordinal: i32) -> Vec<Intent> {
        let Some(pod) = self.pod(ordinal) else {
            return Vec::new();
        };
        let templates = self.claims.iter();
        templates
            .filter_map(|(template, _)| {
                let claim = self.claim(&self.claim_name(template, ordinal))?;
                self.own_claim(claim, ordinal, &pod.metadata)
            })
            .collect()
    }

    fn own_claim(
        &self,
        claim: &PersistentVolumeClaim,
        ordinal: i32,
        pod: &ObjectMeta,
    ) -> Option<Intent> {
        let set = &self.set.metadata;
        let is_set = |it: &OwnerReference| &*it.kind == "StatefulSet" && set.name == it.name;
        let is_pod = |it: &OwnerReference| &*it.kind == "Pod" && pod.name == it.name;
        let owners = &claim.metadata.owner_references;
        // A former set's or pod's claim is not touched.
        let is_stale = owners
            .iter()
            .any(|it| (is_set(it) && it.uid != set.uid) || (is_pod(it) && it.uid != pod.uid));
        let is_kept = !self.deletes_when_scaled() && !self.deletes_when_deleted();
        let has_other = owners
            .iter()
            .any(|it| !is_set(it) && !is_pod(it) && it.controller == Some(true));
        if is_stale {
            return None;
        }
        let is_condemned = !self.ordinals().contains(&ordinal);
        let owner = match is_condemned && self.deletes_when_scaled() {
            true => Some(write::controller_ref(Kind::Pod, pod)),
            false if self.deletes_when_deleted() => {
                Some(write::controller_ref(Kind::StatefulSet, set))
            }
            false => None,
        };
        let owner = owner.filter(|_| !has_other || is_kept);
        let others = owners.iter().filter(|it| !is_set(it) && !is_pod(it));
        let mut wanted: Vec<Value> = others.map(|it| json!(it)).collect();
        wanted.extend(owner);
        let has: Vec<Value> = owners.iter().map(|it| json!(it)).collect();
        if wanted == has {
            return None;
        }
        let wanted = (!wanted.is_empty()).then_some(wanted);
        let patch = json!({ "metadata": { "ownerReferences": wanted } });
        let kind = Kind::PersistentVolumeClaim;
        Some(write::patch(kind, &claim.metadata, Part::Whole, patch))
    }
}
