//! Templates and their ReplicaSets: which is the newest, what number it has, what it is called.

use std::sync::Arc;

use api::core::{Deployment, ReplicaSet, TextMap};
use api::intent::{Intent, Part};
use api::kind::Kind;
use api::meta::ObjectMeta;
use serde_json::{Value, json};

use super::{View, replicas};
use crate::conditions::{self, whole_seconds};
use crate::{Settings, Step, child, template_hash, write};

/// The label that tells pods of one template from those of another.
pub(crate) const HASH: &str = "pod-template-hash";
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAX: &str = "deployment.kubernetes.io/max-replicas";
const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// Annotations of a Deployment that its ReplicaSets do not get.
const NOT_COPIED: &[&str] = &[
    "deprecated.deployment.rollback.to",
    "kubectl.kubernetes.io/last-applied-configuration",
    DESIRED,
    HISTORY,
    MAX,
    REVISION,
];
/// How long the list of former revisions may get.
const HISTORY_BYTES_MAX: usize = 2_000;
/// The longest name of a Deployment that leaves room for a hash.
const STEM_BYTES_MAX: usize = 242;

/// The ReplicaSet of the wanted template, and the others, the oldest first.
pub(super) fn parted(
    it: &Deployment,
    mut sets: Vec<Arc<ReplicaSet>>,
    settings: &Settings,
) -> (Option<Arc<ReplicaSet>>, Vec<Arc<ReplicaSet>>) {
    sets.sort_by_key(|set| age_key(&set.metadata));
    let template = it.spec.template.value();
    let hash = settings.word(hash(&template, it.status.collision_count));
    let is_new = |set: &&Arc<ReplicaSet>| {
        let label = set.metadata.labels.get(HASH);
        label.is_some_and(|label| **label == *hash)
            || without_hash(set.spec.template.value()) == without_hash(template.clone())
    };
    let new = sets.iter().find(is_new).cloned();
    if let Some(new) = &new {
        sets.retain(|set| set.metadata.uid != new.metadata.uid);
    }
    (new, sets)
}

/// Orders ReplicaSets by age.
pub(super) fn age_key(meta: &ObjectMeta) -> (Option<api::time::Time>, Box<str>) {
    (meta.creation_timestamp, (&meta.name).into())
}

fn without_hash(mut template: Value) -> Value {
    if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
        labels.remove(HASH);
    }
    template
}

/// A word for a template, in the form that upstream gives it.
pub(crate) fn hash(template: &Value, collisions: Option<i32>) -> String {
    let text = template_hash::canonical(&without_hash(template.clone()));
    let collisions = collisions.map(|count| count.to_string());
    template_hash::word(&[&text, collisions.as_deref().unwrap_or("")])
}

/// The revision that an annotation names; 0 where there is none.
pub(super) fn revision(meta: &ObjectMeta) -> i64 {
    let text = meta.annotations.get(REVISION);
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

impl View<'_> {
    fn next_revision(&self) -> i64 {
        let known = self.old.iter().map(|set| revision(&set.metadata));
        known.max().unwrap_or(0).saturating_add(1)
    }

    /// Gives the new ReplicaSet its number and the Deployment's annotations, then the Deployment
    /// the number.
    pub(super) fn name_revision(&self) -> Vec<Intent> {
        let Some(new) = &self.new else {
            return Vec::new();
        };
        let wanted = self.annotations(Some(&new.metadata));
        let is_named = wanted == new.metadata.annotations;
        if !is_named || new.spec.min_ready_seconds != self.it.spec.min_ready_seconds {
            let mut patch = json!({ "metadata": { "annotations": wanted } });
            if new.spec.min_ready_seconds != self.it.spec.min_ready_seconds {
                patch["spec"] = json!({ "minReadySeconds": self.it.spec.min_ready_seconds });
            }
            let meta = &new.metadata;
            return vec![write::patch(Kind::ReplicaSet, meta, Part::Whole, patch)];
        }
        let number = revision(&new.metadata);
        let has_number = revision(&self.it.metadata) == number;
        let list = &self.it.status.conditions;
        let mut told = list.clone();
        if self.has_deadline() {
            let is_ours = new.metadata.creation_timestamp >= self.it.metadata.creation_timestamp
                && !new.metadata.annotations.contains_key(HISTORY);
            let now = whole_seconds(self.inputs.now);
            let name = &new.metadata.name;
            if !has_number && is_ours {
                let message = format!("Created new replica set \"{name}\"");
                super::status::set(&mut told, "True", "NewReplicaSetCreated", &message, now);
            } else if conditions::find(list, "Progressing").is_none() {
                let message = format!("Found new replica set \"{name}\"");
                super::status::set(&mut told, "True", "FoundNewReplicaSet", &message, now);
            }
        }
        if has_number && told == *list {
            return Vec::new();
        }
        let mut patch = json!({ "metadata": { "annotations": { REVISION: number.to_string() } } });
        if told != *list {
            patch["status"]["conditions"] = conditions::wire(&told);
        }
        let meta = &self.it.metadata;
        vec![write::patch(Kind::Deployment, meta, Part::Status, patch)]
    }

    /// The annotations of the new ReplicaSet: what it has, the Deployment's, and its number.
    fn annotations(&self, known: Option<&ObjectMeta>) -> TextMap {
        let mut all = known
            .map(|meta| meta.annotations.clone())
            .unwrap_or_default();
        let copied = self.it.metadata.annotations.iter();
        let copied = copied.filter(|(key, _)| !NOT_COPIED.contains(&&***key));
        all.extend(copied.map(|(key, value)| (key.clone(), value.clone())));
        let next = self.next_revision();
        let before = known.and_then(|meta| meta.annotations.get(REVISION));
        let number: i64 = before.and_then(|text| text.parse().ok()).unwrap_or(0);
        if number >= next {
            return all;
        }
        all.insert(REVISION.into(), next.to_string().into());
        if let Some(before) = before {
            let history = all.get(HISTORY).map(|it| &**it).unwrap_or("");
            let mut parts: Vec<&str> = history.split(',').filter(|it| !it.is_empty()).collect();
            parts.push(before);
            let mut text = parts.join(",");
            while text.len() > HISTORY_BYTES_MAX && parts.len() > 1 {
                parts.remove(0);
                text = parts.join(",");
            }
            all.insert(HISTORY.into(), text.into());
        }
        all
    }

    /// Makes the ReplicaSet of the wanted template.
    pub(super) fn create(&self) -> Step {
        let meta = &self.it.metadata;
        let template = self.it.spec.template.value();
        let hash = hash(&template, self.it.status.collision_count);
        let hash = self.inputs.settings.word(hash);
        let name = format!("{}-{hash}", child::cut(&meta.name, STEM_BYTES_MAX));
        if self
            .inputs
            .mirror
            .get::<ReplicaSet>(&meta.namespace, &name)
            .is_some()
        {
            // Another template, or somebody else, has the name.
            let count = self.it.status.collision_count.unwrap_or(0);
            let count = count.saturating_add(1);
            let status = json!({ "collisionCount": count });
            return Step::write(vec![write::patch_status(Kind::Deployment, meta, status)]);
        }
        let size = self.new_size(0);
        let body = self.body(&name, &hash, template, size);
        let mut intents = vec![write::create(Kind::ReplicaSet, body)];
        if let Some(refused) = self.inputs.last.refused.first() {
            intents.extend(self.create_refused(&name, &refused.message));
        } else if size > 0 {
            let message = format!("Scaled up replica set {name} from 0 to {size}");
            let occasion = self.occasion(&meta.resource_version);
            intents.push(occasion.normal("ScalingReplicaSet", &message, self.inputs.now));
        }
        Step::write(intents)
    }

    fn body(&self, name: &str, hash: &str, mut template: Value, size: i32) -> Value {
        let meta = &self.it.metadata;
        template["metadata"]["labels"][HASH] = json!(hash);
        let mut selector = json!(self.it.spec.selector);
        selector["matchLabels"][HASH] = json!(hash);
        let mut annotations = self.annotations(None);
        annotations.extend(self.size_annotations());
        json!({
            "metadata": {
                "name": name,
                "namespace": meta.namespace,
                "labels": template["metadata"]["labels"],
                "annotations": annotations,
                "ownerReferences": [write::controller_ref(Kind::Deployment, meta)],
            },
            "spec": {
                "replicas": size,
                "minReadySeconds": self.it.spec.min_ready_seconds,
                "selector": selector,
                "template": template,
            },
        })
    }

    fn create_refused(&self, name: &str, message: &str) -> Vec<Intent> {
        let now = whole_seconds(self.inputs.now);
        let message = format!("Failed to create new replica set \"{name}\": {message}");
        let reason = "ReplicaSetCreateError";
        let mut intents = vec![self.occasion("").warning(reason, &message, now)];
        let mut told = self.it.status.conditions.clone();
        if self.has_deadline() {
            super::status::set(&mut told, "False", reason, &message, now);
        }
        if told != self.it.status.conditions {
            let status = json!({ "conditions": conditions::wire(&told) });
            let meta = &self.it.metadata;
            intents.push(write::patch_status(Kind::Deployment, meta, status));
        }
        intents
    }

    /// Removes the oldest ReplicaSets beyond the limit that have no pods.
    pub(super) fn clean_up(&self) -> Vec<Intent> {
        let limit = self.it.spec.revision_history_limit.unwrap_or(10);
        if limit == i32::MAX {
            return Vec::new();
        }
        let mut alive: Vec<&Arc<ReplicaSet>> = self
            .old
            .iter()
            .filter(|set| set.metadata.deletion_timestamp.is_none())
            .collect();
        let surplus = alive
            .len()
            .saturating_sub(usize::try_from(limit).unwrap_or(0));
        alive.sort_by_key(|set| (revision(&set.metadata), age_key(&set.metadata)));
        alive
            .into_iter()
            .take(surplus)
            .filter(|set| {
                set.status.replicas == 0
                    && replicas(set) == 0
                    && set.metadata.generation <= set.status.observed_generation
            })
            .map(|set| write::delete(Kind::ReplicaSet, &set.metadata))
            .collect()
    }
}
