//! An imitation of whoever tends the directories behind volumes: what is to be in one is in it at
//! once, and one that leaves is let go. Nothing lies on a disk here, and snapshots are not taken.

use api::call::{Call, WatchLine};
use api::core::PersistentVolume;
use api::disk::{DIRECTORY, FILLED, FROM_SNAPSHOT, FROM_VOLUME};
use api::intent::{Action, Intent, ObjectKey, Part};
use api::kind::Kind;
use api::time::Time;
use serde_json::{Value, json};
use store::Watch;

use crate::wire::{Answered, Next, Server};

/// The imitation: what it has seen of the volumes.
#[derive(Default)]
pub(crate) struct Disk {
    stream: Option<Box<Watch>>,
    seen: u64,
}

impl Disk {
    /// The server has ended: whatever is there is looked at again.
    pub(crate) fn reconnect(&mut self) {
        *self = Disk::default();
    }

    /// What is to be written about the volumes that have changed since the last look.
    pub(crate) fn look(&mut self, server: &mut Server, now: Time) -> Vec<Intent> {
        if server.revision() == self.seen {
            return Vec::new();
        }
        self.seen = server.revision();
        if self.stream.is_none() {
            let target = format!("{}?watch=true", Kind::PersistentVolume.path("", ""));
            let call = Call {
                method: "GET",
                target,
                content_type: "",
                body: Vec::new(),
            };
            if let Answered::Stream(watch) = server.answer(&call, now) {
                self.stream = Some(watch);
            }
        }
        let Some(watch) = &mut self.stream else {
            return Vec::new();
        };
        let (lines, next) = server.lines(watch, now);
        if next == Next::End {
            self.stream = None;
        }
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
    let is_source = |name: &&str| marks.contains_key(*name);
    let is_copy = [FROM_SNAPSHOT, FROM_VOLUME].iter().any(is_source);
    let fill = || json!({ "metadata": { "annotations": { FILLED: "yes" } } });
    (is_copy && !marks.contains_key(FILLED)).then(fill)
}
