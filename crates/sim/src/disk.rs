//! An imitation of whoever tends the directories behind volumes: what is to be in one is in it at
//! once, and one that leaves is let go. Nothing lies on a disk here, and snapshots are not taken.

use api::call::WatchLine;
use api::core::PersistentVolume;
use api::disk::{DIRECTORY, FILLED, FROM_SNAPSHOT, FROM_VOLUME};
use api::intent::{Action, Intent, ObjectKey, Part};
use api::kind::Kind;
use api::time::Time;
use serde_json::{Value, json};

use crate::follower::Follower;
use crate::wire::Server;

/// The imitation: what it has seen of the volumes.
#[derive(Default)]
pub(crate) struct Disk {
    follower: Follower,
}

impl Disk {
    /// The server has ended: whatever is there is looked at again.
    pub(crate) fn reconnect(&mut self) {
        *self = Disk::default();
    }

    /// What is to be written about the volumes that have changed since the last look.
    pub(crate) fn look(&mut self, server: &mut Server, now: Time) -> Vec<Intent> {
        let looked = self.follower.look(server, Kind::PersistentVolume, now);
        let lines = looked.map(|(_, lines)| lines).unwrap_or_default();
        lines.iter().filter_map(wanted).collect()
    }
}

fn wanted(line: &WatchLine) -> Option<Intent> {
    let WatchLine::Applied(object) = line else {
        return None;
    };
    let volume: PersistentVolume = serde_json::from_str(object.get()).ok()?;
    let meta = &volume.metadata;
    let patch = patch_of(&volume)?;
    Some(Intent {
        target: ObjectKey::new(Kind::PersistentVolume, "", &meta.name),
        action: Action::Patch {
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            part: Part::Whole,
            patch,
        },
    })
}

fn patch_of(volume: &PersistentVolume) -> Option<Value> {
    let meta = &volume.metadata;
    if meta.deletion_timestamp.is_some() {
        let is_last = matches!(&*meta.finalizers, [last] if &**last == DIRECTORY);
        return is_last.then(|| json!({ "metadata": { "finalizers": null } }));
    }
    let marks = &meta.annotations;
    let is_source = |name: &&str| marks.contains_key(name);
    let is_copy = [FROM_SNAPSHOT, FROM_VOLUME].iter().any(is_source);
    let fill = || json!({ "metadata": { "annotations": { FILLED: "yes" } } });
    (is_copy && !marks.contains_key(FILLED)).then(fill)
}
