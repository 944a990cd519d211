//! What pods are to say of themselves and do not yet, since a write of it failed: why they wait, and
//! which node they are promised. And what groups of Kubernetes' own say that go as a whole.
//!
//! Others write to the status of the same pods (whoever makes their claims, their node), so that such a
//! write may well meet a conflict. A decision says a reason once; nobody would say it again while
//! nothing else changes.

use std::collections::{BTreeMap, BTreeSet};

use api::core::Pod;
use api::intent::{Intent, ObjectKey};
use api::kind::Kind;
use api::time::Time;
use mirror::{Change, Disruption, Index, Mirror};
use model::Key;

use super::Cycles;
use crate::backoff::Backoff;
use crate::timers;
use crate::work::Ended;
use crate::writes::{Lane, Origin, Over, Writes};

/// After so many failures in a row, some half an hour, nobody tries any more.
const TRIES_MAX: u32 = 16;
/// Where too many notes wait already, nobody is told anything for so long. What is to be said is known from
/// the tables at any time, while a write that waits takes memory.
const FULL_MS: i64 = 100;

/// Pods and groups that do not say yet what they are to say.
#[derive(Debug, Default)]
pub(super) struct Unsaid {
    pods: BTreeMap<ObjectKey, Pending>,
    /// What groups are to say, as long as they do not.
    disruptions: BTreeMap<ObjectKey, Disruption>,
    timers: BTreeSet<(Time, ObjectKey)>,
    /// Too many notes wait: whose time has come waits until then.
    full_until: Option<Time>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    failures: u32,
    /// When it is said again; `None` while a write of it is on its way.
    at: Option<Time>,
    /// There was more to say while a write was on its way: a second one beside it would be based on
    /// what the first one changes.
    has_more: bool,
}

impl Unsaid {
    /// Whether every pod says what it is to say, as far as is known.
    pub(super) fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// When somebody is to be told again.
    pub(super) fn next_timer(&self) -> Option<Time> {
        let (at, _) = self.timers.first()?;
        Some(self.full_until.map_or(*at, |until| until.max(*at)))
    }

    /// Whatever is waited for is due now.
    pub(super) fn hurry(&mut self, now: Time) {
        timers::hurry(&mut self.timers, now);
        self.full_until = None;
        for pending in self.pods.values_mut() {
            pending.at = pending.at.map(|at| at.min(now));
        }
    }

    /// Hands out what a plan has to tell, be it of a pod or of something else.
    pub(super) fn note(&mut self, note: Intent, writes: &mut Writes, now: Time) {
        if note.target.kind != Kind::Pod {
            writes.note(note, now);
            return;
        }
        if let Some(pending) = self.pods.get_mut(&note.target)
            && pending.at.is_none()
        {
            pending.has_more = true;
            return;
        }
        // What is newer stands for what could not be said before.
        self.forget(&note.target);
        match writes.has_room_for_words() {
            true => self.submit(note, writes),
            false => {
                self.wait(note.target, 0, now);
                self.full_until.get_or_insert(now.plus_ms(FULL_MS));
            }
        }
    }

    fn submit(&mut self, note: Intent, writes: &mut Writes) {
        self.pods.entry(note.target.clone()).or_default().at = None;
        writes.submit(note, Origin::Said, Lane::Low);
    }

    fn wait(&mut self, pod: ObjectKey, failures: u32, at: Time) {
        self.forget(&pod);
        self.timers.insert((at, pod.clone()));
        let pending = Pending {
            failures,
            at: Some(at),
            has_more: false,
        };
        self.pods.insert(pod, pending);
    }

    fn forget(&mut self, pod: &ObjectKey) -> Pending {
        let Some(pending) = self.pods.remove(pod) else {
            return Pending::default();
        };
        if let Some(at) = pending.at {
            self.timers.remove(&(at, pod.clone()));
        }
        pending
    }

    /// A group is to say that it goes; once for all its pods that do.
    pub(super) fn disrupted(&mut self, disruption: Disruption, now: Time) {
        let group = disruption.group.clone();
        let before = self.disruptions.insert(group.clone(), disruption);
        if before == self.disruptions.get(&group).cloned() {
            return;
        }
        match self.pods.get_mut(&group) {
            Some(pending) if pending.at.is_none() => pending.has_more = true,
            _ => self.wait(group, 0, now),
        }
    }

    /// The next pod whose time has come.
    fn due(&mut self, now: Time) -> Option<ObjectKey> {
        if self.next_timer()? > now {
            return None;
        }
        self.full_until = None;
        let (_, pod) = self.timers.pop_first()?;
        self.pods.entry(pod.clone()).or_default().at = None;
        Some(pod)
    }
}

impl Cycles {
    /// A write of what a pod says is over.
    pub(crate) fn pod_told(&mut self, over: &Over, now: Time) {
        let (law, retry_after_ms) = match over.ended {
            Ended::Done => {
                match self.unsaid.forget(&over.target).has_more {
                    true => self.unsaid.wait(over.target.clone(), 0, now),
                    false => drop(self.unsaid.disruptions.remove(&over.target)),
                }
                return;
            }
            // There is news of it by now.
            Ended::Outdated => (Backoff::KEY, 0),
            Ended::Failed { retry_after_ms } => (Backoff::SAID, retry_after_ms),
        };
        let has_gone = over.refusal.as_ref().is_some_and(|it| it.code == 404);
        let failures = self.unsaid.forget(&over.target).failures.saturating_add(1);
        if has_gone || failures > TRIES_MAX {
            self.unsaid.disruptions.remove(&over.target);
            return;
        }
        let delay = law.delay_ms(failures).max(retry_after_ms);
        let at = now.plus_ms(delay);
        self.unsaid.wait(over.target.clone(), failures, at);
    }

    /// Says again what could not be said, as it is to be said by now.
    pub(super) fn say_again(&mut self, mirror: &Mirror, writes: &mut Writes, now: Time) {
        while let Some(pod) = self.unsaid.due(now) {
            if !writes.has_room_for_words() {
                let failures = self.unsaid.forget(&pod).failures;
                self.unsaid.wait(pod, failures, now);
                self.unsaid.full_until = Some(now.plus_ms(FULL_MS));
                return;
            }
            let says = match pod.kind {
                Kind::NativeGroup => {
                    let disruption = self.unsaid.disruptions.get(&pod);
                    disruption.and_then(|it| mirror.group_says(it, now))
                }
                _ => {
                    let key = Key::new(&*pod.namespace, &*pod.name);
                    let task = self.tables.task_keyed(&key);
                    task.and_then(|task| mirror.pod_says(&self.tables, task, now))
                }
            };
            match says {
                None => {
                    self.unsaid.forget(&pod);
                    self.unsaid.disruptions.remove(&pod);
                }
                Some(intent) => self.unsaid.submit(intent, writes),
            }
        }
    }

    /// A pod or a group of Kubernetes' own has come or changed: what one says of itself its group may
    /// have to say, too.
    pub(super) fn disruption_seen(&mut self, mirror: &Mirror, change: &Change, now: Time) {
        let (namespace, name) = (&change.key.namespace, &change.key.name);
        let untold = match change.kind() {
            Kind::Pod => change
                .after::<Pod>()
                .and_then(|pod| mirror.untold_disruption(pod)),
            Kind::NativeGroup => mirror
                .indexed::<Pod>(Index::PodNativeGroup, namespace, name)
                .find_map(|pod| mirror.untold_disruption(pod)),
            _ => None,
        };
        if let Some(untold) = untold.filter(|it| !self.unsaid.disruptions.contains_key(&it.group)) {
            self.unsaid.disrupted(untold, now);
        }
    }
}
