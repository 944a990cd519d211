//! How pods fared, held once for all that fared alike, wherever they are: their conditions and the states of
//! their containers, whose times count from the pod's start.

use std::collections::BTreeMap;
use std::hash::Hash;

use api::core::{ContainerStatus, PodCondition, PodStatus};
use api::shared::List;
use api::sum::Sum;

/// Of so many different ones each is known at most; then those are forgotten that nobody else has.
const KNOWN_MAX: usize = 4_096;

/// What is known of either kind.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    conditions: Known<PodCondition>,
    containers: Known<ContainerStatus>,
}

impl Patterns {
    /// Whoever says what another one said has it from now on. Nothing of it changes by that.
    pub(crate) fn share(&mut self, status: &mut PodStatus) {
        self.conditions.share(&mut status.conditions);
        self.containers.share(&mut status.container_statuses);
    }
}

/// Lists by a sum of what is in them.
#[derive(Debug)]
struct Known<T>(BTreeMap<u64, List<T>>);

impl<T> Default for Known<T> {
    fn default() -> Known<T> {
        Known(BTreeMap::new())
    }
}

impl<T: Clone + Hash + PartialEq> Known<T> {
    fn share(&mut self, list: &mut List<T>) {
        if list.is_empty() || list.is_shared() {
            return;
        }
        let mut sum = Sum::default();
        list.hash(&mut sum);
        match self.0.get(&sum.value()) {
            // Two that have one sum and are not alike: the first stays.
            Some(known) => list.share(known),
            None => {
                if self.0.len() >= KNOWN_MAX {
                    self.forget();
                }
                self.0.insert(sum.value(), list.clone());
            }
        }
    }

    fn forget(&mut self) {
        self.0.retain(|_, known| known.is_shared());
        if self.0.len() > KNOWN_MAX / 2 {
            // Pods differ too much: those that share go on doing so, and others begin anew.
            self.0.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(start: usize, ready: usize) -> PodStatus {
        let time = |at: usize| {
            format!(
                "2026-11-01T{:02}:{:02}:{:02}Z",
                at / 3_600,
                at / 60 % 60,
                at % 60
            )
        };
        let wire = json!({
            "startTime": time(start),
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": time(start + ready) }],
            "containerStatuses": [{ "name": "c", "state": { "running": { "startedAt": time(start + ready) } } }],
        });
        serde_json::from_value(wire).expect("it is a status")
    }

    #[test]
    fn who_fared_alike_shares_it_and_what_nobody_has_is_forgotten() {
        let mut patterns = Patterns::default();
        let mut held: Vec<PodStatus> = Vec::new();
        for start in 0..100 {
            let mut shared = status(start, 1 + start % 3);
            patterns.share(&mut shared);
            assert_eq!(
                shared,
                status(start, 1 + start % 3),
                "nothing of it changes"
            );
            held.push(shared);
        }
        for (at, status) in held.iter().enumerate() {
            let first = &held[at % 3];
            assert!(status.conditions.shares_with(&first.conditions));
            assert!(
                status
                    .container_statuses
                    .shares_with(&first.container_statuses)
            );
        }
        for ready in 10..KNOWN_MAX * 2 {
            patterns.share(&mut status(0, ready));
            assert!(patterns.conditions.0.len() <= KNOWN_MAX);
        }
        let mut late = status(7, 1);
        patterns.share(&mut late);
        assert!(
            late.conditions.shares_with(&held[0].conditions),
            "who is used is known"
        );
    }
}
