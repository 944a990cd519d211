//! What an object wants of the disk: a pure function of the object.

use std::path::Path;

use api::core::PersistentVolume;
use api::disk::{DIRECTORY, DRIVER, FILLED, FROM_SNAPSHOT, FROM_VOLUME};
use api::snapshot::{BEING_DELETED, VolumeSnapshotContent};

/// Names longer than this are no names of objects.
const NAME_BYTES_MAX: usize = 253;
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// Nothing can be done, and that is to be said.
    Complain(String),
    /// A new directory is to hold what another one holds.
    Copy {
        /// What is copied; of a volume that nobody has used yet there is nothing.
        from: Place,
        /// What is made.
        to: Place,
    },
    /// The directory is to stay, and the object may go.
    LetGo,
    /// A snapshot should be there.
    Look(Place),
    /// A directory is to go.
    Remove(Place),
}

/// A directory of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Among which.
    pub(super) shelf: Shelf,
    /// Its own name: never a path.
    pub(super) name: Box<str>,
}

/// Where directories lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shelf {
    Snapshots,
    Volumes,
}

impl Place {
    /// The directory of that name; others are none of ours.
    fn find(shelf: Shelf, name: &str) -> Result<Place, Deed> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_name = name.bytes().all(is_plain)
            && name.bytes().next().is_some_and(|first| first != b'.')
            && name.len() <= NAME_BYTES_MAX;
        match is_name {
            true => Ok(Place {
                shelf,
                name: name.into(),
            }),
            false => Err(Deed::Complain(format!(
                "{name:?} names no volume or snapshot"
            ))),
        }
    }
}

/// What a snapshot's content wants.
pub(super) fn of_content(content: &VolumeSnapshotContent) -> Option<Deed> {
    let (meta, spec, status) = (&content.metadata, &content.spec, &content.status);
    if &*spec.driver != DRIVER {
        return None;
    }
    let deed = if meta.deletion_timestamp.is_some() {
        let may_go = meta.annotations.contains_key(BEING_DELETED);
        let handle = status.snapshot_handle.as_ref()?;
        if !may_go || &*spec.deletion_policy != "Delete" {
            return None;
        }
        Place::find(Shelf::Snapshots, handle).map(Deed::Remove)
    } else if status.ready_to_use == Some(true) {
        return None;
    } else if let Some(handle) = &spec.source.snapshot_handle {
        Place::find(Shelf::Snapshots, handle).map(Deed::Look)
    } else {
        let handle = spec.source.volume_handle.as_deref().unwrap_or("");
        copy(
            Place::find(Shelf::Volumes, handle),
            Place::find(Shelf::Snapshots, &meta.name),
        )
    };
    Some(deed.unwrap_or_else(|complaint| complaint))
}

/// What a volume wants whose directories lie under `root`.
pub(super) fn of_volume(volume: &PersistentVolume, root: &Path) -> Option<Deed> {
    let meta = &volume.metadata;
    let path = Path::new(&*volume.spec.host_path.as_ref()?.path);
    let is_ours = meta
        .annotations
        .get(PROVISIONED_BY)
        .is_some_and(|it| &**it == DRIVER)
        && path == root.join(&*meta.name);
    let here = Place::find(Shelf::Volumes, &meta.name)
        .ok()
        .filter(|_| is_ours)?;
    if meta.deletion_timestamp.is_some() {
        let [last] = &*meta.finalizers else {
            // Somebody else keeps it.
            return None;
        };
        if &**last != DIRECTORY {
            return None;
        }
        return Some(match &*volume.spec.persistent_volume_reclaim_policy {
            "Delete" => Deed::Remove(here),
            _ => Deed::LetGo,
        });
    }
    if meta.annotations.contains_key(FILLED) {
        return None;
    }
    let from = match (
        meta.annotations.get(FROM_SNAPSHOT),
        meta.annotations.get(FROM_VOLUME),
    ) {
        (Some(handle), _) => Place::find(Shelf::Snapshots, handle),
        (None, Some(name)) => Place::find(Shelf::Volumes, name),
        (None, None) => return None,
    };
    Some(copy(from, Ok(here)).unwrap_or_else(|complaint| complaint))
}

fn copy(from: Result<Place, Deed>, to: Result<Place, Deed>) -> Result<Deed, Deed> {
    Ok(Deed::Copy {
        from: from?,
        to: to?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn content(source: Value, status: Value, meta: Value) -> Option<Deed> {
        let mut object = json!({
            "metadata": { "name": "snapcontent-1" },
            "spec": { "driver": DRIVER, "deletionPolicy": "Delete", "source": source },
            "status": status,
        });
        for (key, value) in meta.as_object().unwrap() {
            object["metadata"][key] = value.clone();
        }
        of_content(&serde_json::from_value(object).unwrap())
    }

    fn place(shelf: Shelf, name: &str) -> Place {
        Place {
            shelf,
            name: name.into(),
        }
    }

    #[test]
    fn a_content_is_copied_until_it_is_ready_and_removed_when_its_snapshot_has_gone() {
        let from = json!({ "volumeHandle": "pvc-1" });
        let copy = Deed::Copy {
            from: place(Shelf::Volumes, "pvc-1"),
            to: place(Shelf::Snapshots, "snapcontent-1"),
        };
        assert_eq!(content(from.clone(), json!({}), json!({})), Some(copy));
        let ready = json!({ "readyToUse": true, "snapshotHandle": "snapcontent-1" });
        assert_eq!(content(from.clone(), ready.clone(), json!({})), None);
        let leaves = json!({ "deletionTimestamp": "2026-11-22T00:00:00Z" });
        assert_eq!(content(from.clone(), ready.clone(), leaves.clone()), None);
        let mut may_go = leaves;
        may_go["annotations"] = json!({ BEING_DELETED: "yes" });
        let remove = Deed::Remove(place(Shelf::Snapshots, "snapcontent-1"));
        assert_eq!(content(from, ready, may_go), Some(remove));
    }

    #[test]
    fn what_is_no_plain_name_is_complained_of() {
        for name in ["", ".", "..", "../x", "/etc", "a/b", ".hidden", "a\0b", "ä"] {
            for source in ["volumeHandle", "snapshotHandle"] {
                let found = content(json!({ source: name }), json!({}), json!({}));
                assert!(
                    matches!(found, Some(Deed::Complain(_))),
                    "{name:?}: {found:?}"
                );
            }
        }
    }

    #[test]
    fn only_directories_of_the_provisioner_are_touched() {
        let volume = |path: &str, finalizers: Value, more: Value| {
            let mut object = json!({
                "metadata": {
                    "name": "pvc-1",
                    "annotations": { PROVISIONED_BY: DRIVER },
                    "finalizers": finalizers,
                },
                "spec": {
                    "hostPath": { "path": path },
                    "persistentVolumeReclaimPolicy": "Delete",
                },
            });
            for (key, value) in more.as_object().unwrap() {
                object["metadata"][key] = value.clone();
            }
            of_volume(&serde_json::from_value(object).unwrap(), Path::new("/v"))
        };
        let leaves = || json!({ "deletionTimestamp": "2026-11-22T00:00:00Z" });
        let remove = Some(Deed::Remove(place(Shelf::Volumes, "pvc-1")));
        assert_eq!(volume("/v/pvc-1", json!([DIRECTORY]), leaves()), remove);
        assert_eq!(volume("/v/pvc-2", json!([DIRECTORY]), leaves()), None);
        assert_eq!(volume("/etc", json!([DIRECTORY]), leaves()), None);
        assert_eq!(volume("/v/pvc-1", json!([DIRECTORY, "x"]), leaves()), None);
        assert_eq!(volume("/v/pvc-1", json!([DIRECTORY]), json!({})), None);
    }
}
