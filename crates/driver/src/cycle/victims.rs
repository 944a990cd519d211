//! Victims on their way out: first they are told why, then they are deleted.
//!
//! A deletion is of its pod as it was when that was decided, as every write is. A pod changes for many
//! reasons, and goes all the same: whoever decided it sends the deletion once more, on what it knows then.

use std::collections::BTreeMap;

use api::core::Pod;
use api::intent::{Action, Intent};
use mirror::{Evict, Mirror};
use model::WriteId;

use crate::writes::{Lane, Origin, Writes};

/// Deletions that are not over.
#[derive(Debug, Default)]
pub(super) struct Victims {
    deletions: BTreeMap<WriteId, Intent>,
}

impl Victims {
    /// Tells a victim why, or deletes one that was told.
    pub(super) fn begin(&mut self, evict: Evict, writes: &mut Writes) {
        self.deletions.insert(evict.write, evict.delete.clone());
        match evict.mark {
            None => writes.submit(evict.delete, Origin::Plan(evict.write), Lane::Write),
            Some(mark) => writes.submit(mark, Origin::Mark(evict.write), Lane::Write),
        }
    }

    /// A victim was told, or cannot be: it goes in any case.
    pub(super) fn marked(&mut self, write: WriteId, mirror: &Mirror, writes: &mut Writes) {
        if let Some(delete) = self.deletions.get(&write) {
            let delete = of_now(delete, mirror).unwrap_or_else(|| delete.clone());
            writes.submit(delete, Origin::Plan(write), Lane::Write);
        }
    }

    /// Sends the deletion of a victim that has changed meanwhile once more, if it is one and is there.
    pub(super) fn go_again(&self, write: WriteId, mirror: &Mirror, writes: &mut Writes) -> bool {
        let delete = self.deletions.get(&write);
        let Some(again) = delete.and_then(|delete| of_now(delete, mirror)) else {
            return false;
        };
        writes.submit(again, Origin::Plan(write), Lane::Write);
        true
    }

    /// It has gone, or stays.
    pub(super) fn ended(&mut self, write: WriteId) {
        self.deletions.remove(&write);
    }
}

/// A deletion of the pod as the mirror shows it now; `None` where that is another one, or on its way out.
fn of_now(delete: &Intent, mirror: &Mirror) -> Option<Intent> {
    let pod = mirror.get::<Pod>(&delete.target.namespace, &delete.target.name)?;
    let mut again = delete.clone();
    let Action::Delete {
        uid,
        resource_version,
        ..
    } = &mut again.action
    else {
        return None;
    };
    *resource_version = Some(pod.metadata.resource_version.clone());
    (pod.metadata.uid == *uid && !pod.is_terminating()).then_some(again)
}
