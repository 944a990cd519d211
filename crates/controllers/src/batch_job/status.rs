//! The status of a batch Job as it should be.

use std::collections::BTreeSet;

use api::core::{DatedCondition, Pod, PodPhase};
use api::intent::Intent;
use api::kind::Kind;
use api::time::Time;
use serde_json::{Value, json};

use super::count::{Uids, has_place, index_of, int, is_failed};
use super::ending::Ending;
use super::policy::{self, Verdict};
use super::{View, is_tracked};
use crate::conditions::{self, Wanted, whole_seconds};
use crate::write;

/// How many pods one status names at most.
const UNCOUNTED_MAX: usize = 500;

/// As what a pod is counted.
pub(super) enum Account {
    /// One more success, under its uid.
    Succeeded,
    /// Its index has succeeded.
    Index(u32),
    /// One more failure, under its uid.
    Failed,
    /// It does not count.
    Nothing,
}

/// The parts of a status that a write may change.
struct Draft {
    conditions: Vec<DatedCondition>,
    start_time: Option<Time>,
    completion_time: Option<Time>,
    succeeded: i32,
    failed: i32,
    uncounted: [Uids; 2],
    /// Whether there is more to count than one status takes.
    is_full: bool,
    notes: Vec<Intent>,
}

impl View<'_> {
    /// The write of the status, with what is to be told about it; empty if nothing changes.
    pub(super) fn status(&self, ending: Option<&Ending>) -> Vec<Intent> {
        let now = whole_seconds(self.inputs.now);
        let status = &self.job.status;
        let is_leaving = self.job.metadata.deletion_timestamp.is_some();
        let mut draft = Draft {
            conditions: status.conditions.clone(),
            start_time: status.start_time,
            completion_time: status.completion_time,
            succeeded: status.succeeded,
            failed: status.failed,
            uncounted: Default::default(),
            is_full: false,
            notes: Vec::new(),
        };
        if draft.start_time.is_none() && !self.is_suspended() {
            draft.start_time = Some(now);
        }
        let completed = match ending {
            None if !is_leaving || self.count.active.is_empty() => self.completed(),
            _ => None,
        };
        let ending = ending.or(completed.as_ref());
        if ending.is_none() && !is_leaving {
            self.suspension(&mut draft, now);
        }
        self.tally(&mut draft, ending);
        if let Some(ending) = ending {
            self.end(&mut draft, ending, now);
        }
        let old = self.stored();
        let new = self.wire(&draft, ending);
        match write::status_difference(Kind::BatchJob, &self.job.metadata, &old, &new) {
            Some(patch) => [patch].into_iter().chain(draft.notes).collect(),
            None => Vec::new(),
        }
    }

    fn suspension(&self, draft: &mut Draft, now: Time) {
        let was = conditions::is_true(&draft.conditions, "Suspended");
        let is = self.is_suspended();
        let exists = conditions::find(&draft.conditions, "Suspended").is_some();
        if was == is && (exists || !is) {
            return;
        }
        let (status, reason, event, message) = match is {
            true => ("True", "JobSuspended", "Suspended", "Job suspended"),
            false => ("False", "JobResumed", "Resumed", "Job resumed"),
        };
        let wanted = Wanted {
            kind: "Suspended",
            status,
            reason,
            message,
        };
        set(&mut draft.conditions, wanted, now);
        draft.start_time = (!is).then_some(now);
        let id = now.seconds_text();
        draft
            .notes
            .push(self.occasion(&id).normal(event, message, now));
    }

    /// Turns names of pods that were let go into numbers, and names those that have ended.
    fn tally(&self, draft: &mut Draft, ending: Option<&Ending>) {
        let held = self.pods.iter().filter(|pod| is_tracked(pod));
        let held: BTreeSet<&str> = held.map(|pod| &*pod.metadata.uid).collect();
        for (side, stored) in self.count.uncounted.iter().enumerate() {
            let kept = stored.list.iter().filter(|uid| held.contains(&***uid));
            let kept: Vec<Box<str>> = kept.cloned().collect();
            let gone = int(stored.list.len() - kept.len());
            match side {
                0 => draft.succeeded = draft.succeeded.saturating_add(gone),
                _ => draft.failed = draft.failed.saturating_add(gone),
            }
            draft.uncounted[side] = Uids::of(kept);
        }
        let mut indexes = 0;
        for pod in self.pods.iter().filter(|pod| is_tracked(pod)) {
            if !self.may_leave(pod, ending) {
                continue;
            }
            let uid = &pod.metadata.uid;
            let side = match self.account(pod, ending) {
                Account::Nothing => continue,
                Account::Index(_) => {
                    indexes += 1;
                    continue;
                }
                Account::Succeeded => 0,
                Account::Failed => 1,
            };
            if draft.uncounted[side].contains(uid) {
                continue;
            }
            let named = draft.uncounted.iter().map(|uids| uids.list.len());
            if indexes + named.sum::<usize>() >= UNCOUNTED_MAX {
                draft.is_full = true;
                break;
            }
            draft.uncounted[side].push(uid);
        }
        if self.is_indexed() {
            draft.succeeded = self.count.succeeded;
        }
    }

    /// Whether a pod may lose its finalizer once it is counted.
    pub(super) fn may_leave(&self, pod: &Pod, ending: Option<&Ending>) -> bool {
        let is_over = self.job.metadata.deletion_timestamp.is_some() || ending.is_some();
        if is_over || pod.status.phase == PodPhase::Succeeded {
            return true;
        }
        let is_awaited = index_of(pod).is_some_and(|index| {
            let last = self.count.awaiting.get(&index);
            last.is_some_and(|last| last.metadata.uid == pod.metadata.uid)
        });
        is_failed(self.job, pod) && !is_awaited
    }

    /// As what a pod is counted that may leave.
    pub(super) fn account(&self, pod: &Pod, ending: Option<&Ending>) -> Account {
        let is_counted_failed = self.count.uncounted[1].contains(&pod.metadata.uid);
        if pod.status.phase == PodPhase::Succeeded && !is_counted_failed {
            return match (self.is_indexed(), index_of(pod)) {
                (false, _) => Account::Succeeded,
                (true, Some(index)) if has_place(self.job, pod) => Account::Index(index),
                (true, _) => Account::Nothing,
            };
        }
        // Of a job that fails, every pod that has not succeeded counts as failed.
        let is_lost = is_failed(self.job, pod) || ending.is_some_and(|it| !it.is_success());
        if is_counted_failed {
            return Account::Failed;
        }
        let is_ignored = || matches!(policy::verdict(self.job, pod), Verdict::Ignore);
        match is_lost && has_place(self.job, pod) && !is_ignored() {
            true => Account::Failed,
            false => Account::Nothing,
        }
    }

    fn is_indexed(&self) -> bool {
        self.job.spec.completion_mode.as_deref() == Some("Indexed")
    }

    fn end(&self, draft: &mut Draft, ending: &Ending, now: Time) {
        let condition = |kind| Wanted {
            kind,
            status: "True",
            reason: &ending.reason,
            message: &ending.message,
        };
        if !ending.is_heralded {
            set(&mut draft.conditions, condition(ending.herald), now);
            return;
        }
        let is_held = self.pods.iter().any(|pod| is_tracked(pod));
        let is_counted = draft.uncounted.iter().all(|uids| uids.list.is_empty()) && !draft.is_full;
        if is_held || !is_counted || self.count.terminating > 0 || !self.count.active.is_empty() {
            return;
        }
        set(&mut draft.conditions, condition(ending.condition), now);
        let occasion = self.occasion("end");
        if !ending.is_success() {
            let note = occasion.warning(&ending.reason, &ending.message, now);
            draft.notes.push(note);
            return;
        }
        draft.completion_time = Some(now);
        let wanted = self.job.spec.completions;
        if wanted.is_some_and(|wanted| draft.succeeded > wanted) {
            let message = "Too many succeeded pods running after completion count reached";
            draft
                .notes
                .push(occasion.warning("TooManySucceededPods", message, now));
        }
        draft
            .notes
            .push(occasion.normal("Completed", "Job completed", now));
    }

    /// The stored status, as JSON.
    fn stored(&self) -> Value {
        let status = &self.job.status;
        let mut value = json!({
            "ready": status.ready,
            "terminating": status.terminating,
        });
        let draft = Draft {
            conditions: status.conditions.clone(),
            start_time: status.start_time,
            completion_time: status.completion_time,
            succeeded: status.succeeded,
            failed: status.failed,
            uncounted: self.count.uncounted.clone(),
            is_full: false,
            notes: Vec::new(),
        };
        fill(&mut value, &draft, status.active);
        if status.uncounted_terminated_pods.is_none() {
            value["uncountedTerminatedPods"] = Value::Null;
        }
        if !status.completed_indexes.is_empty() {
            value["completedIndexes"] = json!(status.completed_indexes);
        }
        if let Some(failed) = &status.failed_indexes {
            value["failedIndexes"] = json!(failed);
        }
        value
    }

    fn wire(&self, draft: &Draft, ending: Option<&Ending>) -> Value {
        let active = &self.count.active;
        // Pods of a job that ends are deleted by the same step.
        let is_ending = ending.is_some() && !active.is_empty();
        let (ready, working, terminating) = match is_ending {
            true => (0, 0, self.count.terminating + active.len()),
            false => {
                let ready = active.iter().filter(|pod| pod.is_ready()).count();
                (ready, active.len(), self.count.terminating)
            }
        };
        let mut value = json!({ "ready": int(ready), "terminating": int(terminating) });
        fill(&mut value, draft, int(working));
        if self.is_indexed() {
            let text = self.count.succeeded_indexes.to_string();
            if !text.is_empty() {
                value["completedIndexes"] = json!(text);
            }
            if let Some(failed) = &self.count.failed_indexes {
                value["failedIndexes"] = json!(failed.to_string());
            }
        }
        value
    }
}

/// Fills in what is not empty.
fn fill(value: &mut Value, draft: &Draft, active: i32) {
    value["uncountedTerminatedPods"] = json!({});
    let numbers = [
        ("active", active),
        ("succeeded", draft.succeeded),
        ("failed", draft.failed),
    ];
    for (field, number) in numbers.into_iter().filter(|(_, number)| *number != 0) {
        value[field] = json!(number);
    }
    let times = [
        ("startTime", draft.start_time),
        ("completionTime", draft.completion_time),
    ];
    for (field, time) in times {
        if let Some(time) = time {
            value[field] = json!(time);
        }
    }
    if !draft.conditions.is_empty() {
        value["conditions"] = conditions::wire(&draft.conditions);
    }
    for (field, uids) in ["succeeded", "failed"].iter().zip(&draft.uncounted) {
        if !uids.list.is_empty() {
            value["uncountedTerminatedPods"][*field] = json!(uids.list);
        }
    }
}

/// Sets a condition, in its place or at the end.
fn set(list: &mut Vec<DatedCondition>, wanted: Wanted<'_>, now: Time) {
    let condition = DatedCondition {
        last_probe_time: Some(now),
        ..wanted.at(now)
    };
    match list.iter_mut().find(|it| it.kind == condition.kind) {
        Some(known) => *known = condition,
        None => list.push(condition),
    }
}
