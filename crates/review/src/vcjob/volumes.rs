//! Which volumes of a job make sense.

use std::collections::BTreeSet;

use api::names::{check_subdomain, go_list};
use api::volcano::JobVolume;

use crate::denials::jobs;

/// The first faulty volume.
pub(super) fn check(volumes: &[JobVolume]) -> Result<(), String> {
    let mut paths = BTreeSet::new();
    for volume in volumes {
        if volume.mount_path.is_empty() {
            return Err(format!(" {};", jobs::NO_MOUNT_PATH.text));
        }
        if !paths.insert(&volume.mount_path) {
            let path = jobs::MOUNT_PATH_TWICE.with(&[("path", &volume.mount_path)]);
            return Err(format!(" {path};"));
        }
        if volume.volume_claim_name.is_empty() {
            if volume.volume_claim.is_none() {
                return Err(format!(" {};", jobs::NO_CLAIM.text));
            }
            continue;
        }
        if volume.volume_claim.is_some() {
            return Err(jobs::TWO_CLAIMS.plain());
        }
        let complaints = check_subdomain(&volume.volume_claim_name);
        if !complaints.is_empty() {
            return Err(jobs::BAD_CLAIM_NAME.with(&[
                ("name", &volume.volume_claim_name),
                ("complaints", &go_list(&complaints)),
            ]));
        }
    }
    Ok(())
}
