//! Which volumes of a job make sense.

use std::collections::BTreeSet;

use api::names::{check_subdomain, go_list};
use api::volcano::JobVolume;

/// The first faulty volume.
pub(super) fn check(volumes: &[JobVolume]) -> Result<(), String> {
    let mut paths = BTreeSet::new();
    for volume in volumes {
        if volume.mount_path.is_empty() {
            return Err(" mountPath is required;".to_owned());
        }
        if !paths.insert(&volume.mount_path) {
            return Err(format!(" duplicated mountPath: {};", volume.mount_path));
        }
        if volume.volume_claim_name.is_empty() {
            if volume.volume_claim.is_none() {
                return Err(" either VolumeClaim or VolumeClaimName must be specified;".to_owned());
            }
            continue;
        }
        if volume.volume_claim.is_some() {
            return Err("conflict: If you want to use an existing PVC, just specify VolumeClaimName.If you want to create a new PVC, you do not need to specify VolumeClaimName".to_owned());
        }
        let complaints = check_subdomain(&volume.volume_claim_name);
        if !complaints.is_empty() {
            return Err(format!(
                "invalid VolumeClaimName {} : {}",
                volume.volume_claim_name,
                go_list(&complaints)
            ));
        }
    }
    Ok(())
}
