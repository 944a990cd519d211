//! Claims of devices that several tasks wait for: who got them their devices.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Key, Tables, TaskId};
use crate::device::Grant;

/// Tasks that have the devices of such claims, until the claims are seen to have them.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceClaims {
    /// One for each claim, but where somebody else gave devices away as well.
    holders: BTreeMap<Key, BTreeSet<TaskId>>,
    /// Moves whenever a claim gets devices or loses them.
    tick: u64,
}

impl Tables {
    /// The task on a node that has the devices of a claim which others wait for, too.
    pub fn device_holder(&self, claim: &Key) -> Option<TaskId> {
        self.device_claims.holders.get(claim)?.first().copied()
    }

    /// What that task has for the claim; `None` while nobody has any.
    pub fn devices_for(&self, claim: &Key) -> Option<impl Iterator<Item = &Grant>> {
        let holder = self.device_holder(claim)?;
        let task = self.task(holder);
        let ask = self.shape(task.shape).spec.devices.as_deref()?;
        let (at, _) = ask.shared().find(|(_, key)| *key == claim)?;
        Some(task.grants.iter().filter(move |it| it.is_for_claim(at)))
    }

    /// As of when it was told who has devices of claims that several wait for.
    pub fn device_claims_tick(&self) -> u64 {
        self.device_claims.tick
    }

    /// A task has devices for such claims from now on.
    pub(super) fn hold_claims(&mut self, id: TaskId) {
        for claim in self.claims_held(id) {
            let holders = self.device_claims.holders.entry(claim).or_default();
            if holders.insert(id) && holders.len() == 1 {
                self.device_claims.tick += 1;
            }
        }
    }

    /// It has them no more.
    pub(super) fn drop_claims(&mut self, id: TaskId) {
        for claim in self.claims_held(id) {
            if let Some(holders) = self.device_claims.holders.get_mut(&claim) {
                holders.remove(&id);
                if holders.is_empty() {
                    self.device_claims.holders.remove(&claim);
                    self.device_claims.tick += 1;
                }
            }
        }
    }

    /// Claims that others wait for, too, and for which the task has devices.
    fn claims_held(&self, id: TaskId) -> Vec<Key> {
        let task = self.task(id);
        if task.grants.is_empty() {
            return Vec::new();
        }
        let ask = self.shape(task.shape).spec.devices.as_ref();
        let Some(ask) = ask.map(Arc::clone) else {
            return Vec::new();
        };
        let has = |at: u8| task.grants.iter().any(|grant| grant.is_for_claim(at));
        let held = ask.shared().filter(|(at, _)| has(*at));
        held.map(|(_, claim)| claim.clone()).collect()
    }
}
