//! A rolling update: the new ReplicaSet grows as far as the surge allows, the old ones shrink as
//! far as enough pods can work.

use std::sync::Arc;

use api::core::ReplicaSet;
use api::int_or_string::{IntOrString, Rounding};
use api::intent::Intent;

use super::{View, replicas};

impl View<'_> {
    pub(super) fn is_rolling(&self) -> bool {
        &*self.it.spec.strategy.kind != "Recreate"
    }

    /// Pods beyond those wanted, and pods that may be missing. Rounding may make both zero; then
    /// one may be missing, or nothing would ever move.
    fn bounds(&self) -> (i32, i32) {
        let quarter = IntOrString::Text("25%".into());
        let rolling = self.it.spec.strategy.rolling_update.as_ref();
        let amount = |value: Option<&IntOrString>, rounding| {
            let value = value.unwrap_or(&quarter);
            let amount = value.of(i64::from(self.wanted()), rounding).unwrap_or(0);
            i32::try_from(amount).unwrap_or(i32::MAX)
        };
        let surge = amount(rolling.and_then(|it| it.max_surge.as_ref()), Rounding::Up);
        let missing = rolling.and_then(|it| it.max_unavailable.as_ref());
        match (surge, amount(missing, Rounding::Down)) {
            (0, 0) => (0, 1),
            bounds => bounds,
        }
    }

    /// Pods beyond those wanted.
    pub(super) fn max_surge(&self) -> i32 {
        match self.is_rolling() {
            true => self.bounds().0,
            false => 0,
        }
    }

    /// Pods that may be missing.
    pub(super) fn max_unavailable(&self) -> i32 {
        match self.is_rolling() && self.wanted() > 0 {
            true => self.bounds().1.min(self.wanted()),
            false => 0,
        }
    }

    /// Pods of all templates. Others may make a ReplicaSet as large as they like, and sums larger still.
    fn total(&self) -> i64 {
        self.all().map(|set| i64::from(replicas(set))).sum()
    }

    /// How large the new ReplicaSet may be made that has `size` now.
    pub(super) fn new_size(&self, size: i32) -> i32 {
        if !self.is_rolling() {
            return self.wanted();
        }
        let wanted = i64::from(self.wanted());
        let room = wanted + i64::from(self.max_surge()) - self.total();
        let size = i64::from(size);
        bounded(size + room.min(wanted - size).max(0))
    }

    /// Makes the new ReplicaSet as large as it may be.
    pub(super) fn grow_new(&self) -> Vec<Intent> {
        let Some(new) = &self.new else {
            return Vec::new();
        };
        let size = replicas(new);
        let target = match size > self.wanted() {
            true => self.wanted(),
            false => self.new_size(size),
        };
        self.resize(new, target)
    }

    /// Makes the old ReplicaSets as small as they may be: first by pods that cannot work anyway.
    pub(super) fn shrink_old(&self) -> Vec<Intent> {
        let Some(new) = &self.new else {
            return Vec::new();
        };
        let wide = |number: i32| i64::from(number);
        let old_total: i64 = self.old.iter().map(|set| wide(replicas(set))).sum();
        let floor = wide(self.wanted()) - wide(self.max_unavailable());
        let new_missing = wide(replicas(new)) - wide(new.status.available_replicas);
        let may_go = self.total() - floor - new_missing;
        if old_total == 0 || may_go <= 0 {
            return Vec::new();
        }
        // A status that lags behind counts pods that are going: they would be taken away twice.
        let lags = |set: &Arc<ReplicaSet>| set.status.observed_generation < set.metadata.generation;
        if self.all().any(lags) {
            return Vec::new();
        }
        let old: Vec<&Arc<ReplicaSet>> = self.old.iter().filter(|it| replicas(it) > 0).collect();
        let mut sizes: Vec<i64> = old.iter().map(|set| wide(replicas(set))).collect();
        let mut left = may_go;
        for (set, size) in old.iter().zip(&mut sizes) {
            let broken = (*size - wide(set.status.available_replicas)).max(0);
            let gone = broken.min(left);
            *size -= gone;
            left -= gone;
        }
        let available = self.all().map(|set| wide(set.status.available_replicas));
        let available: i64 = available.sum();
        let mut spare = available - floor;
        for size in &mut sizes {
            let gone = spare.clamp(0, *size);
            *size -= gone;
            spare -= gone;
        }
        let resized = old.iter().zip(sizes);
        resized
            .flat_map(|(set, size)| self.resize(set, bounded(size)))
            .collect()
    }
}

/// A number of pods as the wire has it.
pub(super) fn bounded(number: i64) -> i32 {
    let end = if number < 0 { i32::MIN } else { i32::MAX };
    i32::try_from(number).unwrap_or(end)
}
