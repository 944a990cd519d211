//! Rows that limit what may be done to the pods of a namespace: disruption budgets and quotas.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Key, Tables};
use crate::labels::Requirement;
use crate::resource::{Amount, Limits, Vector};

/// A PodDisruptionBudget as the wall gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Its namespace and name.
    pub key: Key,
    /// Requirements on the labels of its pods; `None` selects nothing.
    pub selector: Option<Vec<Requirement>>,
    /// How many of them may be disrupted now.
    pub allowed: i32,
    /// Pods whose disruption was granted and is counted already.
    pub disrupted: BTreeSet<Arc<str>>,
}

/// A ResourceQuota as the wall gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Its namespace and name.
    pub key: Key,
    /// The most that pods of the namespace may request together, with their number as *pods*, and the most
    /// that their limits may come to, by names of their own.
    pub hard: Limits,
    /// The same limits as the quota writes them: `requests.cpu` and `cpu` are one kind, and where both stand
    /// the lower one counts. A kind that has no name here is written by its own.
    pub written: Vec<Amount>,
    /// What they have of it.
    pub used: Vector,
}

/// Both, by namespace and name.
#[derive(Clone, Debug, Default)]
pub(super) struct Policies {
    budgets: BTreeMap<Key, Budget>,
    quotas: BTreeMap<Key, Quota>,
}

/// The rows of a namespace: keys are ordered by it first.
fn of<'a, T>(rows: &'a BTreeMap<Key, T>, namespace: &'a str) -> impl Iterator<Item = &'a T> {
    let from = Key::new(namespace, "");
    let rows = rows.range(from..);
    let rows = rows.take_while(move |(key, _)| *key.namespace == *namespace);
    rows.map(|(_, row)| row)
}

impl Tables {
    /// Adds or changes a disruption budget.
    pub fn put_budget(&mut self, budget: Budget) {
        self.tick += 1;
        let key = budget.key.clone();
        let before = self.policies.budgets.insert(key.clone(), budget);
        // Whoever waits for somebody to evict may find somebody now: they wait for shares, too.
        if before.as_ref() != self.policies.budgets.get(&key) {
            self.mark_shares();
        }
    }

    /// Takes a disruption budget away.
    pub fn remove_budget(&mut self, key: &Key) {
        self.tick += 1;
        if self.policies.budgets.remove(key).is_some() {
            self.mark_shares();
        }
    }

    /// The disruption budgets of a namespace.
    pub fn budgets<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Budget> {
        of(&self.policies.budgets, namespace)
    }

    /// Adds or changes a quota.
    pub fn put_quota(&mut self, quota: Quota) {
        self.tick += 1;
        let key = quota.key.clone();
        let before = self.policies.quotas.insert(key.clone(), quota);
        if before.as_ref() != self.policies.quotas.get(&key) {
            self.mark_shares();
        }
    }

    /// Takes a quota away.
    pub fn remove_quota(&mut self, key: &Key) {
        self.tick += 1;
        if self.policies.quotas.remove(key).is_some() {
            self.mark_shares();
        }
    }

    /// The quotas of a namespace.
    pub fn quotas<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Quota> {
        of(&self.policies.quotas, namespace)
    }
}
