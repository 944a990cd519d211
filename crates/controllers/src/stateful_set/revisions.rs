//! Templates that were wanted, kept as ControllerRevisions: each a patch that brings it back.

use std::sync::Arc;

use api::core::{ControllerRevision, StatefulSet};
use api::intent::{Intent, Part};
use api::kind::Kind;
use serde_json::{Value, json};

use super::{View, pods};
use crate::template_hash::{canonical, word};
use crate::{Settings, write};

pub(crate) const HASH: &str = "controller.kubernetes.io/hash";

/// The revisions of a set.
pub(super) struct Revisions {
    /// All, the oldest first.
    all: Vec<Arc<ControllerRevision>>,
    /// The one before the update under way.
    pub(super) current: Arc<ControllerRevision>,
    /// The one that is wanted.
    pub(super) update: Arc<ControllerRevision>,
}

impl Revisions {
    /// The template of the current revision.
    pub(super) fn current_template(&self) -> Value {
        let mut template = self.current.data.value()["spec"]["template"].take();
        if let Some(map) = template.as_object_mut() {
            map.remove("$patch");
        }
        template
    }
}

/// The revisions; or the write that has to be seen before anything else: one is to be made, or
/// becomes the newest again.
pub(super) fn sorted_out(
    set: &StatefulSet,
    mut all: Vec<Arc<ControllerRevision>>,
    settings: &Settings,
) -> Result<Revisions, Intent> {
    all.sort_by_key(|it| {
        let meta = &it.metadata;
        (it.revision, meta.creation_timestamp, meta.name.clone())
    });
    let data = data(set);
    let text = canonical(&data);
    let next = all.last().map_or(1, |last| last.revision.saturating_add(1));
    let equal = all
        .iter()
        .rposition(|it| canonical(&it.data.value()) == text);
    let Some(at) = equal else {
        return Err(create(set, &all, data, next, settings));
    };
    let update = Arc::clone(&all[at]);
    // Where numbers end, the last one is as new as it gets.
    if at + 1 != all.len() && update.revision != next {
        let patch = json!({ "revision": next });
        let meta = &update.metadata;
        return Err(write::patch(
            Kind::ControllerRevision,
            meta,
            Part::Whole,
            patch,
        ));
    }
    let current = &set.status.current_revision;
    let current = all.iter().find(|it| it.metadata.name == *current);
    Ok(Revisions {
        current: Arc::clone(current.unwrap_or(&update)),
        update,
        all,
    })
}

/// The patch that brings the wanted template back.
fn data(set: &StatefulSet) -> Value {
    let mut template = set.spec.template.value();
    template["$patch"] = json!("replace");
    json!({ "spec": { "template": template } })
}

fn create(
    set: &StatefulSet,
    all: &[Arc<ControllerRevision>],
    data: Value,
    number: i64,
    settings: &Settings,
) -> Intent {
    let meta = &set.metadata;
    let collisions = set.status.collision_count.unwrap_or(0);
    let hash = settings.word(hash(&data, collisions));
    let stem = crate::child::cut(&meta.name, 223);
    let name = format!("{stem}-{hash}");
    if all.iter().any(|it| *it.metadata.name == *name) {
        let status = json!({ "collisionCount": collisions.saturating_add(1) });
        return write::patch_status(Kind::StatefulSet, meta, status);
    }
    let template = set.spec.template.value();
    let mut labels = crate::child::map(&template["metadata"]["labels"]);
    labels.insert(HASH.to_owned(), json!(hash));
    let mut metadata = json!({
        "name": name,
        "namespace": meta.namespace,
        "labels": labels,
        "ownerReferences": [write::controller_ref(Kind::StatefulSet, meta)],
    });
    if !meta.annotations.is_empty() {
        metadata["annotations"] = json!(meta.annotations);
    }
    let body = json!({ "metadata": metadata, "data": data, "revision": number });
    write::create(Kind::ControllerRevision, body)
}

/// A word for what is kept of a template.
pub(crate) fn hash(data: &Value, collisions: i32) -> String {
    word(&[&canonical(data), &collisions.to_string()])
}

impl View<'_> {
    /// Removes the oldest revisions beyond the limit that no pod was made from.
    pub(super) fn forget_revisions(&self) -> Vec<Intent> {
        let limit = self.set.spec.revision_history_limit.unwrap_or(10);
        let Ok(limit) = usize::try_from(limit) else {
            return Vec::new();
        };
        let is_live = |name: &str| {
            *self.revisions.current.metadata.name == *name
                || *self.revisions.update.metadata.name == *name
                || self.pods.iter().any(|(_, pod)| pods::revision(pod) == name)
        };
        let all = self.revisions.all.iter();
        let dead: Vec<_> = all.filter(|it| !is_live(&it.metadata.name)).collect();
        let surplus = dead.len().saturating_sub(limit);
        dead.into_iter()
            .take(surplus)
            .filter(|it| it.metadata.deletion_timestamp.is_none())
            .map(|it| write::delete(Kind::ControllerRevision, &it.metadata))
            .collect()
    }
}
