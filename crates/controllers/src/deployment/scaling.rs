//! Another number of pods, in the middle of a roll-out too: every ReplicaSet gets its share.

use std::cmp::Reverse;
use std::sync::Arc;

use api::core::{ReplicaSet, TextMap};
use api::intent::{Intent, Part};
use api::kind::Kind;
use serde_json::json;

use super::revisions::{DESIRED, MAX, age_key};
use super::rolling::bounded;
use super::{View, replicas};
use crate::write;

impl View<'_> {
    /// Whether the number of pods was changed since the ReplicaSets were sized.
    pub(super) fn is_scaling(&self) -> bool {
        self.active().into_iter().any(|set| {
            let desired = number(set, DESIRED);
            desired.is_some_and(|desired| desired != self.wanted())
        })
    }

    /// What the ReplicaSets remember of the Deployment's size.
    pub(super) fn size_annotations(&self) -> TextMap {
        let wanted = self.wanted();
        let max = wanted.saturating_add(self.max_surge());
        [(DESIRED, wanted), (MAX, max)]
            .into_iter()
            .map(|(key, number)| (key.into(), number.to_string().into()))
            .collect()
    }

    /// Gives a ReplicaSet another size; nothing if it has it.
    pub(super) fn resize(&self, set: &ReplicaSet, size: i32) -> Vec<Intent> {
        match replicas(set) == size {
            true => Vec::new(),
            false => self.resize_or_mark(set, size),
        }
    }

    /// Gives a ReplicaSet a size and tells it the Deployment's; nothing if it has both.
    fn resize_or_mark(&self, set: &ReplicaSet, size: i32) -> Vec<Intent> {
        let annotations = self.size_annotations();
        let before = replicas(set);
        let known = &set.metadata.annotations;
        let is_marked = annotations
            .iter()
            .all(|(key, value)| known.get(key) == Some(value));
        if before == size && is_marked {
            return Vec::new();
        }
        let mut patch = json!({ "metadata": { "annotations": annotations } });
        if before != size {
            patch["spec"] = json!({ "replicas": size });
        }
        let meta = &set.metadata;
        let mut intents = vec![write::patch(Kind::ReplicaSet, meta, Part::Whole, patch)];
        if before != size {
            let way = if before < size { "up" } else { "down" };
            let name = &meta.name;
            let message = format!("Scaled {way} replica set {name} from {before} to {size}");
            let occasion = self.occasion(&meta.resource_version);
            intents.push(occasion.normal("ScalingReplicaSet", &message, self.inputs.now));
        }
        intents
    }

    /// Sizes the ReplicaSets after a change of the Deployment's size, without rolling out.
    pub(super) fn scale(&self) -> Vec<Intent> {
        let active = self.active();
        let newest = self.new.as_ref().or(self.old.last());
        match (active.as_slice(), newest) {
            ([], Some(only)) => return self.resize(only, self.wanted()),
            ([only], _) => return self.resize_or_mark(only, self.wanted()),
            _ => {}
        }
        if self.is_saturated() {
            let old = self.old.iter().filter(|set| replicas(set) > 0);
            return old.flat_map(|set| self.resize(set, 0)).collect();
        }
        match self.is_rolling() {
            true => self.scale_by_share(active),
            false => Vec::new(),
        }
    }

    /// Whether the new ReplicaSet has all pods that are wanted, and they can work.
    fn is_saturated(&self) -> bool {
        self.new.as_ref().is_some_and(|new| {
            let wanted = self.wanted();
            replicas(new) == wanted
                && number(new, DESIRED) == Some(wanted)
                && new.status.available_replicas == wanted
        })
    }

    fn scale_by_share(&self, mut sets: Vec<&Arc<ReplicaSet>>) -> Vec<Intent> {
        let total: i64 = sets.iter().map(|set| i64::from(replicas(set))).sum();
        let allowed = match self.wanted() {
            0 => 0,
            wanted => i64::from(wanted) + i64::from(self.max_surge()),
        };
        let to_add = allowed - total;
        let by_age = |set: &&Arc<ReplicaSet>| age_key(&set.metadata);
        match to_add {
            1.. => sets.sort_by_key(|set| Reverse((replicas(set), by_age(set)))),
            _ => sets.sort_by_key(|set| (Reverse(replicas(set)), by_age(set))),
        }
        let mut added = 0;
        let mut sizes = Vec::new();
        for set in &sets {
            let left = to_add - added;
            let share = match left {
                0 => 0,
                1.. => self.share(set).min(left),
                _ => self.share(set).max(left),
            };
            added += share;
            sizes.push(i64::from(replicas(set)) + share);
        }
        // What rounding has left over goes to the largest.
        if let Some(first) = sizes.first_mut() {
            *first = (*first + to_add - added).max(0);
        }
        let resized = sets.iter().zip(sizes);
        resized
            .flat_map(|(set, size)| self.resize_or_mark(set, bounded(size)))
            .collect()
    }

    /// By how much a ReplicaSet changes if it keeps its share of the whole.
    fn share(&self, set: &ReplicaSet) -> i64 {
        let size = i64::from(replicas(set));
        if self.wanted() == 0 {
            return -size;
        }
        let known = number(set, MAX).filter(|max| *max != 0);
        let before = i64::from(known.unwrap_or(self.it.status.replicas));
        if before == 0 {
            return 0;
        }
        let now = i64::from(self.wanted()) + i64::from(self.max_surge());
        let twice = (2 * size).saturating_mul(now);
        let rounded = twice.saturating_add(before).div_euclid(2 * before);
        i64::from(bounded(rounded)) - size
    }
}

fn number(set: &ReplicaSet, annotation: &str) -> Option<i32> {
    let text = set.metadata.annotations.get(annotation)?;
    text.parse().ok().filter(|number| *number >= 0)
}
