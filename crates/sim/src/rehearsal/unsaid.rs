//! Why a pod waits about which its scheduler says nothing: whoever would have to act is not in the copy.

use api::core::{PersistentVolumeClaim, Pod, StorageClass, claims_named};
use serde_json::Value;

use super::{Rehearsal, place, said};

impl Rehearsal {
    /// What a pod without a place waits for, in plain words, if it is for somebody who is not here; none where
    /// nothing is known of that.
    pub(super) fn unsaid(&self, pod: &Value) -> Option<String> {
        let scheduler = said(&pod["spec"], "schedulerName");
        if !self.schedulers.contains(scheduler) {
            return Some(format!(
                "scheduler {scheduler} places it, who is not asked here"
            ));
        }
        let (namespace, name) = place(pod);
        let pod = self.driver.mirror().get::<Pod>(namespace, name)?;
        let mut claims = claims_named(name, &pod.spec.volumes);
        claims.find_map(|claim| self.without_volume(namespace, &claim))
    }

    /// What is told of a claim that is there and has no volume.
    fn without_volume(&self, namespace: &str, name: &str) -> Option<String> {
        let mirror = self.driver.mirror();
        let claim = mirror.get::<PersistentVolumeClaim>(namespace, name)?;
        if !claim.spec.volume_name.is_empty() {
            return None;
        }
        let class = claim.spec.storage_class_name.as_deref().unwrap_or_default();
        let class = mirror.get::<StorageClass>("", class);
        let maker = class.map_or("somebody else", |class| &class.provisioner);
        Some(format!(
            "claim {name} has no volume, which {maker} would have to make"
        ))
    }
}
