//! How many jobs are in which part of their life, counted as they change.

use std::collections::BTreeSet;

use api::kind::Kind;
use serde_json::Value;

use crate::coverage::{Phase, Phases};
use crate::stored::{text, uid};

/// The counts.
#[derive(Debug, Default)]
pub(crate) struct Census {
    /// Jobs that are not over, by uid.
    live: BTreeSet<String>,
    submitted: BTreeSet<String>,
    waiting: BTreeSet<String>,
    running: BTreeSet<String>,
    failing: BTreeSet<String>,
    finishing: BTreeSet<String>,
    /// Pods that are bound and do not run, by uid.
    binding: BTreeSet<String>,
    /// Whatever is being deleted, by uid.
    deleting: BTreeSet<String>,
    ended: u64,
}

impl Census {
    pub(crate) fn ended(&self) -> u64 {
        self.ended
    }

    pub(crate) fn phases(&self) -> Phases {
        let some = |set: &BTreeSet<String>| (!set.is_empty()).into();
        Phases::default()
            .with(Phase::Idle, self.live.is_empty().into())
            .with(Phase::Submitting, some(&self.submitted))
            .with(Phase::Waiting, some(&self.waiting))
            .with(Phase::Binding, some(&self.binding))
            .with(Phase::Running, some(&self.running))
            .with(Phase::Failing, some(&self.failing))
            .with(Phase::Finishing, some(&self.finishing))
            .with(Phase::Deleting, some(&self.deleting))
    }

    pub(crate) fn take(&mut self, kind: Kind, before: Option<&Value>, after: Option<&Value>) {
        if let Some(before) = before {
            self.deleting.remove(uid(before));
        }
        if let Some(after) =
            after.filter(|after| after["metadata"]["deletionTimestamp"].is_string())
        {
            self.deleting.insert(uid(after).to_owned());
        }
        match kind {
            Kind::Pod => self.pod(before, after),
            Kind::BatchJob | Kind::VcJob => self.job(before, after),
            _ => {}
        }
    }

    fn pod(&mut self, before: Option<&Value>, after: Option<&Value>) {
        if let Some(before) = before {
            self.binding.remove(uid(before));
        }
        let Some(after) = after else { return };
        let phase = text(&after["status"]["phase"]);
        if after["spec"]["nodeName"].is_string() && matches!(phase, "" | "Pending") {
            self.binding.insert(uid(after).to_owned());
        }
        let owners = after["metadata"]["ownerReferences"].as_array();
        for owner in owners.into_iter().flatten() {
            let owner = text(&owner["uid"]);
            if !self.live.contains(owner) {
                continue;
            }
            match phase {
                "Failed" => self.failing.insert(owner.to_owned()),
                "Succeeded" => self.finishing.insert(owner.to_owned()),
                _ => false,
            };
        }
    }

    fn job(&mut self, before: Option<&Value>, after: Option<&Value>) {
        let was_live = before.is_some_and(|before| self.live.contains(uid(before)));
        for job in before.into_iter().chain(after) {
            let uid = uid(job);
            for set in [
                &mut self.live,
                &mut self.submitted,
                &mut self.waiting,
                &mut self.running,
            ] {
                set.remove(uid);
            }
        }
        let state = after.map(|job| (job, stage(job)));
        let Some((job, stage)) = state.filter(|(_, stage)| *stage != Stage::Over) else {
            self.ended += u64::from(was_live);
            for job in before.into_iter().chain(after) {
                self.failing.remove(uid(job));
                self.finishing.remove(uid(job));
            }
            return;
        };
        let uid = uid(job).to_owned();
        self.live.insert(uid.clone());
        match stage {
            Stage::New => self.submitted.insert(uid),
            Stage::Waiting => self.waiting.insert(uid),
            Stage::Running => {
                self.failing.remove(&uid);
                self.running.insert(uid)
            }
            Stage::Failing => self.failing.insert(uid),
            Stage::Finishing => self.finishing.insert(uid),
            Stage::Over => false,
        };
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    Waiting,
    Running,
    Failing,
    Finishing,
    Over,
}

fn stage(job: &Value) -> Stage {
    if job["metadata"]["deletionTimestamp"].is_string() {
        return Stage::Over;
    }
    match text(&job["status"]["state"]["phase"]) {
        "" => batch_stage(job),
        "Pending" | "Inqueue" => Stage::Waiting,
        "Running" => Stage::Running,
        "Completing" => Stage::Finishing,
        "Completed" | "Failed" | "Terminated" | "Aborted" => Stage::Over,
        _ => Stage::Failing,
    }
}

fn batch_stage(job: &Value) -> Stage {
    let status = &job["status"];
    let ends = ["Complete", "Failed"];
    let conditions = status["conditions"].as_array();
    let is_over = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["status"] == "True" && ends.contains(&text(&condition["type"])));
    match (is_over, &status["ready"], &status["active"]) {
        (true, ..) => Stage::Over,
        (_, ready, _) if ready.as_i64() > Some(0) => Stage::Running,
        (_, _, active) if active.as_i64() > Some(0) => Stage::Waiting,
        _ => Stage::New,
    }
}
