//! What comes next: missing pods from the lowest number up, surplus ones from the highest down,
//! then old ones from the highest down.

use std::ops::ControlFlow;

use api::core::{Pod, PodPhase};
use api::intent::{Intent, Part};
use api::kind::Kind;

use super::{View, pods};
use crate::write;

impl View<'_> {
    /// The writes that are next. In order, nothing follows what is not done.
    pub(super) fn in_order(&self) -> Vec<Intent> {
        let mut intents = Vec::new();
        for ordinal in self.ordinals() {
            if self.living(ordinal, &mut intents).is_break() && self.is_ordered() {
                return intents;
            }
            // A huge set is made in bounded steps.
            if intents.len() >= 2 * self.inputs.settings.writes_per_step_max {
                return intents;
            }
        }
        let condemned: Vec<i32> = self
            .pods
            .iter()
            .rev()
            .map(|(ordinal, _)| *ordinal)
            .filter(|ordinal| !self.ordinals().contains(ordinal))
            .collect();
        for ordinal in &condemned {
            intents.extend(self.retain_claims(*ordinal));
        }
        // Who is to own the claims is settled before the pods go.
        if !intents.is_empty() {
            return intents;
        }
        for ordinal in condemned {
            if self.condemned(ordinal, &mut intents).is_break() && self.is_ordered() {
                return intents;
            }
        }
        if &*self.set.spec.update_strategy.kind != "OnDelete" && intents.is_empty() {
            intents.extend(self.outdated());
        }
        intents
    }

    fn living(&self, ordinal: i32, intents: &mut Vec<Intent>) -> ControlFlow<()> {
        let Some(pod) = self.pod(ordinal) else {
            self.create(ordinal, intents);
            return ControlFlow::Break(());
        };
        if pod.is_finished() {
            if !pod.is_terminating() {
                intents.extend(self.delete(pod));
            }
            return ControlFlow::Break(());
        }
        if pod.status.phase == PodPhase::Pending {
            intents.extend(self.missing_claims(ordinal));
        }
        if pod.is_terminating() || !self.is_available(pod) {
            // In parallel, claims are kept in order all the same.
            if !self.is_ordered() {
                intents.extend(self.retain_claims(ordinal));
            }
            return ControlFlow::Break(());
        }
        if let Some(patch) = self.missing_identity(ordinal, pod) {
            let meta = &pod.metadata;
            intents.push(write::patch(Kind::Pod, meta, Part::Whole, patch));
            intents.push(self.pod_note("Update", &meta.name, &meta.resource_version));
        }
        intents.extend(self.retain_claims(ordinal));
        ControlFlow::Continue(())
    }

    fn create(&self, ordinal: i32, intents: &mut Vec<Intent>) {
        if self.has_stale_claim(ordinal) {
            return;
        }
        let claims = self.missing_claims(ordinal);
        if !claims.is_empty() {
            // The pod comes once its claims are seen.
            intents.extend(claims);
            return;
        }
        let name = self.name(ordinal);
        intents.push(write::create(Kind::Pod, self.body(ordinal)));
        let id = &self.set.metadata.resource_version;
        intents.push(self.pod_note("Create", &name, id));
    }

    fn delete(&self, pod: &Pod) -> [Intent; 2] {
        let meta = &pod.metadata;
        let note = self.pod_note("Delete", &meta.name, &meta.uid);
        [write::delete(Kind::Pod, meta), note]
    }

    fn condemned(&self, ordinal: i32, intents: &mut Vec<Intent>) -> ControlFlow<()> {
        let Some(pod) = self.pod(ordinal) else {
            return ControlFlow::Continue(());
        };
        if pod.is_terminating() {
            return ControlFlow::Break(());
        }
        // A pod that cannot work may go, if it is the first that cannot.
        let is_first = self.first_unavailable() == Some(ordinal);
        if self.is_ordered() && !self.is_available(pod) && !is_first {
            return ControlFlow::Break(());
        }
        intents.extend(self.delete(pod));
        ControlFlow::Break(())
    }

    /// The lowest number whose pod cannot work: among those wanted, else among the others.
    fn first_unavailable(&self) -> Option<i32> {
        let is_missing = |ordinal: &i32| {
            let pod = self.pod(*ordinal);
            pod.is_none_or(|pod| pod.is_terminating() || !self.is_available(pod))
        };
        let others = self.pods.iter().map(|(ordinal, _)| *ordinal);
        let others = others.filter(|ordinal| !self.ordinals().contains(ordinal));
        self.ordinals().chain(others).find(is_missing)
    }

    /// Deletes the highest pod of an old revision, once those above it work.
    fn outdated(&self) -> Vec<Intent> {
        let rolling = self.set.spec.update_strategy.rolling_update.as_ref();
        let lowest = rolling.and_then(|it| it.partition).unwrap_or(0);
        let start = self.set.spec.start();
        for ordinal in self.ordinals().rev() {
            if ordinal - start < lowest {
                break;
            }
            let Some(pod) = self.pod(ordinal) else {
                break;
            };
            let is_old = pods::revision(pod) != &*self.revisions.update.metadata.name;
            if is_old && !pod.is_terminating() {
                return self.delete(pod).into();
            }
            if pod.is_terminating() || !self.is_available(pod) {
                break;
            }
        }
        Vec::new()
    }
}
