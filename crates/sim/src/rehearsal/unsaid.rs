//! Why a pod waits about which its scheduler says nothing: whoever would have to act is not in the copy.

use api::core::{PersistentVolumeClaim, StorageClass};
use serde_json::Value;

use super::{Rehearsal, place, said};

impl Rehearsal {
    /// What a pod without a place waits for, in plain words, if it is for somebody who is not here; none where
    /// nothing is known of that.
    pub(super) fn unsaid(&self, pod: &Value) -> Option<String> {
        let spec = &pod["spec"];
        let scheduler = said(spec, "schedulerName");
        if !self.schedulers.contains(scheduler) {
            return Some(format!(
                "scheduler {scheduler} places it, who is not asked here"
            ));
        }
        let (namespace, name) = place(pod);
        let volumes = spec["volumes"].as_array().into_iter().flatten();
        let mut claims = volumes.filter_map(|volume| {
            let named = said(&volume["persistentVolumeClaim"], "claimName");
            match (named, volume["ephemeral"].is_null()) {
                ("", true) => None,
                ("", false) => Some(format!("{name}-{}", said(volume, "name"))),
                (named, _) => Some(named.to_owned()),
            }
        });
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
