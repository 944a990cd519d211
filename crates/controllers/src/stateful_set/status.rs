//! The status of a StatefulSet as it should be.

use api::core::{Pod, StatefulSetStatus};
use api::intent::Intent;
use api::kind::Kind;
use serde_json::{Value, json};

use super::{View, pods};
use crate::write;

impl View<'_> {
    pub(super) fn status(&self) -> Option<Intent> {
        let count = |test: &dyn Fn(&Pod) -> bool| {
            let pods = self.pods.iter().filter(|(_, pod)| test(pod));
            i32::try_from(pods.count()).unwrap_or(i32::MAX)
        };
        let of =
            |revision: &str| count(&|pod| !pod.is_terminating() && pods::revision(pod) == revision);
        let (current, update) = (&self.revisions.current, &self.revisions.update);
        let mut status = StatefulSetStatus {
            observed_generation: self.set.metadata.generation,
            replicas: count(&|_| true),
            ready_replicas: count(&pods::is_running_and_ready),
            available_replicas: count(&|pod| self.is_available(pod)),
            current_replicas: of(&current.metadata.name),
            updated_replicas: of(&update.metadata.name),
            current_revision: (&current.metadata.name).into(),
            update_revision: (&update.metadata.name).into(),
            collision_count: Some(self.set.status.collision_count.unwrap_or(0)),
        };
        let wanted = self.wanted();
        let is_rolling = &*self.set.spec.update_strategy.kind != "OnDelete";
        let is_updated = status.updated_replicas == wanted
            && status.ready_replicas == wanted
            && status.replicas == wanted;
        if is_rolling && is_updated {
            status.current_replicas = status.updated_replicas;
            status.current_revision = status.update_revision.clone();
        }
        let (old, new) = (
            write::stored(&self.set.status, &self.set.metadata, wire),
            wire(&status),
        );
        write::status_difference(Kind::StatefulSet, &self.set.metadata, &old, &new)
    }
}

/// A status as JSON; what is empty is left out.
fn wire(status: &StatefulSetStatus) -> Value {
    let mut value = json!({
        "availableReplicas": status.available_replicas,
        "replicas": status.replicas,
    });
    let numbers = [
        ("currentReplicas", i64::from(status.current_replicas)),
        ("observedGeneration", status.observed_generation),
        ("readyReplicas", i64::from(status.ready_replicas)),
        ("updatedReplicas", i64::from(status.updated_replicas)),
    ];
    for (field, number) in numbers.into_iter().filter(|(_, number)| *number != 0) {
        value[field] = json!(number);
    }
    let names = [
        ("currentRevision", &status.current_revision),
        ("updateRevision", &status.update_revision),
    ];
    for (field, name) in names.into_iter().filter(|(_, name)| !name.is_empty()) {
        value[field] = json!(name);
    }
    if let Some(collisions) = status.collision_count {
        value["collisionCount"] = json!(collisions);
    }
    value
}
