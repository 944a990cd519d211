//! What the status of a job may become. Most rules look only at what has changed, so that an odd
//! status from before does not stand in the way.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{count_indexes, interval};
use crate::validation::spot::{Faults, Spot};
use crate::validation::{list, meta, same, text};

/// Checks a job whose status has changed.
pub(crate) fn check(job: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(job, old, faults);
    let status = job.at("status");
    counters(&status, faults);
    let change = Change {
        new: State::of(status.value),
        old: State::of(&old["status"]),
        spec: &job.value["spec"],
        was: &old["status"],
    };
    change.ending(&status, faults);
    change.finished(&status, faults);
    change.indexes(&status, faults);
    change.together(&status, faults);
    change.going_back(&status, faults);
}

fn counters(status: &Spot<'_, '_>, faults: &mut Faults) {
    let names = ["active", "succeeded", "failed", "ready", "terminating"];
    faults.none_negative(status, &names);
    let pods = status.at("uncountedTerminatedPods");
    let mut seen = BTreeSet::new();
    for part in ["succeeded", "failed"] {
        for uid in pods.at(part).items() {
            match uid.text() {
                "" => faults.invalid(&uid, "must not be empty"),
                text if !seen.insert(text) => faults.duplicate(&uid, text),
                _ => {}
            }
        }
    }
}

/// Which conditions hold.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    is_complete: bool,
    is_failed: bool,
    is_failing: bool,
    is_succeeding: bool,
}

impl State {
    fn of(status: &Value) -> State {
        let holds = |kind: &str| stands(status, kind) == Some("True");
        State {
            is_complete: holds("Complete"),
            is_failed: holds("Failed"),
            is_failing: holds("FailureTarget"),
            is_succeeding: holds("SuccessCriteriaMet"),
        }
    }

    fn is_finished(self) -> bool {
        self.is_complete || self.is_failed
    }
}

fn stands<'v>(status: &'v Value, kind: &str) -> Option<&'v str> {
    let mut conditions = list(&status["conditions"]).iter();
    let found = conditions.find(|one| one["type"] == kind);
    found.map(|one| text(&one["status"]))
}

struct Change<'v> {
    new: State,
    old: State,
    spec: &'v Value,
    was: &'v Value,
}

impl Change<'_> {
    fn has_changed(&self, status: &Spot<'_, '_>, name: &str) -> bool {
        let number = |value: &Value| value[name].as_i64().unwrap_or(0);
        match name {
            "active" => number(status.value) != number(self.was),
            _ => !same(&status.value[name], &self.was[name]),
        }
    }

    fn has_finished(&self) -> bool {
        self.new.is_finished() != self.old.is_finished()
    }

    fn ending(&self, status: &Spot<'_, '_>, faults: &mut Faults) {
        let (new, old) = (self.new, self.old);
        let conditions = status.at("conditions");
        let completed = new.is_complete != old.is_complete;
        let failed = new.is_failed != old.is_failed;
        if (completed || failed) && new.is_complete && new.is_failed {
            let detail = "cannot set Complete=True and Failed=true conditions";
            faults.wrong(&conditions, detail);
        }
        let aimed = new.is_failing != old.is_failing;
        if (completed || aimed) && new.is_complete && new.is_failing {
            let detail = "cannot set Complete=True and FailureTarget=true conditions";
            faults.wrong(&conditions, detail);
        }
        self.times(status, faults);
        let failed_indexes = self.has_changed(status, "failedIndexes");
        if (failed || failed_indexes) && new.is_failed && !new.is_failing {
            let detail =
                "cannot set Failed=True condition without the FailureTarget=true condition";
            faults.wrong(&conditions, detail);
        }
        let succeeded = new.is_succeeding != old.is_succeeding;
        if (completed || succeeded) && new.is_complete && !new.is_succeeding {
            let detail =
                "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
            faults.wrong(&conditions, detail);
        }
    }

    fn times(&self, status: &Spot<'_, '_>, faults: &mut Faults) {
        let (start, end) = (status.at("startTime"), status.at("completionTime"));
        let ended = self.has_changed(status, "completionTime");
        if ended || self.new.is_complete != self.old.is_complete {
            if end.is_there() && !self.new.is_complete {
                let detail = "cannot set completionTime when there is no Complete=True condition";
                faults.invalid(&end, detail);
            }
            if !end.is_there() && self.new.is_complete {
                faults.required(&end, "completionTime is required for Complete jobs");
            }
        }
        // Both are written alike, so that the earlier one is the smaller text.
        let is_reversed = start.is_there() && end.is_there() && end.text() < start.text();
        if is_reversed && (ended || self.has_changed(status, "startTime")) {
            faults.invalid(&end, "must be equal to or after `startTime`");
        }
    }

    /// Nothing of a finished job still runs.
    fn finished(&self, status: &Spot<'_, '_>, faults: &mut Faults) {
        if !self.new.is_finished() {
            return;
        }
        let looks = |name: &str| self.has_finished() || self.has_changed(status, name);
        let active = status.at("active");
        if active.number() > 0 && looks("active") {
            faults.invalid(&active, "active>0 is invalid for finished job");
        }
        let start = status.at("startTime");
        let is_idle = self.spec["suspend"] == true && self.spec["completions"] == 0;
        if !start.is_there() && looks("startTime") && !is_idle {
            faults.required(&start, "startTime is required for finished job");
        }
        let pods = status.at("uncountedTerminatedPods");
        let count = pods.at("succeeded").len() + pods.at("failed").len();
        if count > 0 && looks("uncountedTerminatedPods") {
            faults.invalid(&pods, "must be empty for finished job");
        }
    }

    fn indexes(&self, status: &Spot<'_, '_>, faults: &mut Faults) {
        let (done, failed) = (status.at("completedIndexes"), status.at("failedIndexes"));
        let has_done = self.has_changed(status, "completedIndexes");
        let has_failed = self.has_changed(status, "failedIndexes");
        let completions = self.spec["completions"].as_i64();
        let per_index = !self.spec["backoffLimitPerIndex"].is_null();
        for (at, name, looks) in [
            (&done, "completedIndexes", has_done),
            (&failed, "failedIndexes", has_failed && per_index),
        ] {
            let count = completions.filter(|_| looks && at.is_there());
            if let Some(why) = count.and_then(|count| count_indexes(at.text(), count).err()) {
                faults.invalid_text(at, &format!("error parsing {name}: {why}"));
            }
        }
        if has_done && !done.text().is_empty() && self.spec["completionMode"] != "Indexed" {
            let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
            faults.invalid(&done, detail);
        }
        if has_failed && failed.is_there() && !per_index {
            let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            faults.invalid(&failed, detail);
        }
        let count = completions.filter(|_| has_done || has_failed);
        let shared = count.and_then(|count| shared_index(done.text(), failed.text(), count));
        if let Some(index) = shared {
            let detail = format!("failedIndexes and completedIndexes overlap at index: {index}");
            faults.invalid(&failed, &detail);
        }
    }

    /// What cannot be true at the same time.
    fn together(&self, status: &Spot<'_, '_>, faults: &mut Faults) {
        let terminating = status.at("terminating");
        let looks = self.has_finished() || self.has_changed(status, "terminating");
        if terminating.number() > 0 && self.new.is_finished() && looks {
            faults.invalid(&terminating, "terminating>0 is invalid for finished job");
        }
        let ready = status.at("ready");
        let looks = self.has_changed(status, "ready") || self.has_changed(status, "active");
        if looks && ready.number() > status.at("active").number() {
            faults.invalid(&ready, "cannot set more ready pods than active");
        }
        let conditions = status.at("conditions");
        let succeeding = self.new.is_succeeding;
        for (other, is_other) in [
            ("Failed", self.new.is_failed),
            ("FailureTarget", self.new.is_failing),
        ] {
            if succeeding && is_other {
                let detail =
                    format!("cannot set SuccessCriteriaMet=True and {other}=true conditions");
                faults.wrong(&conditions, &detail);
            }
        }
        let has_policy = !self.spec["successPolicy"].is_null();
        if has_policy && self.new.is_complete && !succeeding {
            let detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
            faults.wrong(&conditions, detail);
        }
    }

    fn going_back(&self, status: &Spot<'_, '_>, faults: &mut Faults) {
        let (new, old) = (self.new, self.old);
        let conditions = status.at("conditions");
        for (kind, had, has) in [
            ("Failed", old.is_failed, new.is_failed),
            ("Complete", old.is_complete, new.is_complete),
            ("FailureTarget", old.is_failing, new.is_failing),
        ] {
            if had && !has {
                let detail = format!("cannot disable the terminal {kind}=True condition");
                faults.wrong(&conditions, &detail);
            }
        }
        let scales = self.spec["completionMode"] == "Indexed"
            && self.spec["completions"] == self.spec["parallelism"];
        for (name, may_shrink) in [("failed", false), ("succeeded", scales)] {
            let at = status.at(name);
            if !may_shrink && at.number() < self.was[name].as_i64().unwrap_or(0) {
                let detail = format!("cannot decrease the {name} counter");
                faults.invalid_as(&at, at.number(), detail);
            }
        }
        let (end, had) = (status.at("completionTime"), &self.was["completionTime"]);
        if end.is_there() && !had.is_null() && end.value != had {
            faults.invalid(&end, "field is immutable");
        }
        let (start, had) = (status.at("startTime"), &self.was["startTime"]);
        let resumes = stands(self.was, "Suspended") == Some("True")
            && stands(status.value, "Suspended") == Some("False");
        if !had.is_null() && start.value != had && self.spec["suspend"] != true && !resumes {
            let detail = "field is immutable for unsuspended job once set";
            faults.invalid(&start, detail);
        }
        if old.is_succeeding && !new.is_succeeding {
            let detail = "cannot disable the SuccessCriteriaMet=True condition";
            faults.wrong(&conditions, detail);
        }
        if old.is_complete && !old.is_succeeding && new.is_succeeding {
            let detail =
                "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
            faults.wrong(&conditions, detail);
        }
    }
}

/// The first index that both texts name, as upstream finds it.
fn shared_index(done: &str, failed: &str, completions: i64) -> Option<i64> {
    let intervals = |text: &str| -> Vec<(i64, i64)> {
        let parts = text.split(',').filter(|_| !text.is_empty());
        let parsed = parts.filter_map(|part| interval(part, completions).ok());
        parsed.collect()
    };
    let (done, failed) = (intervals(done), intervals(failed));
    let (mut at, mut other) = (0, 0);
    while let (Some(one), Some(two)) = (done.get(at), failed.get(other)) {
        if one.0 <= two.1 && two.0 <= one.1 {
            return Some(one.0.max(two.0));
        }
        match one.0 <= two.0 {
            true => at += 1,
            false => other += 1,
        }
    }
    None
}
