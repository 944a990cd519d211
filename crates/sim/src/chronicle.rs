//! The life of each vcjob by revisions of the store: when it was made, came into each phase, left and
//! went, and which of its pods were ready when. What came before what can be asked at the end of a story,
//! when most of it has gone.

use std::collections::{BTreeMap, BTreeSet};

use api::kind::Kind;
use api::volcano::{CRONJOB_TIMESTAMP, JOB_VERSION, TASK_SPEC};
use serde_json::Value;

use crate::stored::{controller, list, text, uid};

/// One job's life; moments are revisions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    pub(crate) uid: String,
    pub(crate) name: String,
    pub(crate) made: u64,
    /// When it was in a phase for the first time, by phase.
    pub(crate) phases: BTreeMap<String, u64>,
    /// Since when it is being deleted.
    pub(crate) leaving: Option<u64>,
    pub(crate) gone: Option<u64>,
    /// Its creation was told to be lost, or asked for by somebody who decides no longer: that it comes
    /// beside another one, or again, is nobody's doing.
    pub(crate) is_overdue: bool,
    /// For which time of a schedule it was made, as it says itself; empty where it does not.
    pub(crate) planned: String,
    /// Its pods that were ready at any time, by task and uid.
    pub(crate) ready: BTreeMap<String, BTreeMap<String, Ready>>,
}

/// A pod that runs and is ready, or was, or has succeeded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) since: u64,
    /// The version of its job that it was made for.
    version: i64,
    /// It has gone, or is going.
    has_left: bool,
}

/// Phases of a job that is over.
const OVER: [&str; 4] = ["Aborted", "Completed", "Failed", "Terminated"];

impl Life {
    /// When it was over in some way for the first time.
    pub(crate) fn over(&self) -> Option<u64> {
        let moments = OVER.iter().filter_map(|phase| self.phases.get(*phase));
        moments.copied().min()
    }

    pub(crate) fn completed(&self) -> Option<u64> {
        self.phases.get("Completed").copied()
    }

    /// When so many of its pods had been ready.
    pub(crate) fn ready(&self, count: usize) -> Option<u64> {
        let pods = self.ready.values().flat_map(BTreeMap::values);
        let mut moments: Vec<u64> = pods.map(|pod| pod.since).collect();
        moments.sort_unstable();
        moments.get(count.checked_sub(1)?).copied()
    }
}

/// The lives of all jobs.
#[derive(Debug, Default)]
pub(crate) struct Chronicle {
    /// By uid.
    lives: BTreeMap<String, Life>,
    /// Names of jobs whose creation arrives though nobody awaits it.
    overdue: BTreeSet<String>,
}

impl Chronicle {
    /// The lives of jobs whose names begin so, in the order in which they were made.
    pub(crate) fn lives(&self, stem: &str) -> Vec<&Life> {
        let lives = self.lives.values();
        let mut lives: Vec<&Life> = lives.filter(|life| life.name.starts_with(stem)).collect();
        lives.sort_by_key(|life| life.made);
        lives
    }

    /// A creation that nobody awaits has come true.
    pub(crate) fn note_overdue(&mut self, name: &str) {
        self.overdue.insert(name.to_owned());
    }

    /// A job or a pod has changed, or gone: `object` is what it is, or was at last.
    pub(crate) fn take(&mut self, kind: Kind, object: &Value, at: Moment) {
        match kind {
            Kind::VcJob => self.job(object, at),
            Kind::Pod => self.pod(object, at),
            _ => {}
        }
    }

    fn job(&mut self, job: &Value, at: Moment) {
        let is_new = !self.lives.contains_key(uid(job));
        let life = self.lives.entry(uid(job).to_owned()).or_default();
        let meta = &job["metadata"];
        if is_new {
            life.uid = uid(job).to_owned();
            life.name = text(&meta["name"]).to_owned();
            life.made = at.revision();
            life.is_overdue = self.overdue.remove(&life.name);
            life.planned = text(&meta["annotations"][CRONJOB_TIMESTAMP]).to_owned();
        }
        if meta["deletionTimestamp"].is_string() {
            life.leaving.get_or_insert(at.revision());
        }
        if let Moment::Gone(revision) = at {
            life.gone.get_or_insert(revision);
        }
        let phase = text(&job["status"]["state"]["phase"]);
        if !life.phases.contains_key(phase) {
            life.phases.insert(phase.to_owned(), at.revision());
        }
    }

    fn pod(&mut self, pod: &Value, at: Moment) {
        let life = controller(pod).and_then(|owner| self.lives.get_mut(owner));
        let Some(life) = life else { return };
        let task = text(&pod["metadata"]["annotations"][TASK_SPEC]);
        let has_left =
            matches!(at, Moment::Gone(_)) || pod["metadata"]["deletionTimestamp"].is_string();
        let known = life.ready.get_mut(task).and_then(|it| it.get_mut(uid(pod)));
        match known {
            Some(known) => known.has_left |= has_left,
            None if is_ready(pod) => {
                let ready = Ready {
                    since: at.revision(),
                    version: version(pod),
                    has_left,
                };
                let of_task = life.ready.entry(task.to_owned()).or_default();
                of_task.insert(uid(pod).to_owned(), ready);
            }
            None => {}
        }
    }

    /// Which task a new pod of a job should have waited for, if any: too few pods of it were ready that
    /// the pod's own version of the job has not taken away.
    pub(crate) fn too_early<'a>(&self, job: &'a Value, pod: &Value) -> Option<&'a str> {
        let life = self.lives.get(uid(job))?;
        let task = text(&pod["metadata"]["annotations"][TASK_SPEC]);
        let tasks = list(&job["spec"]["tasks"]);
        let named = |name: &str| tasks.iter().find(|it| it["name"] == *name);
        let depends = &named(task)?["dependsOn"];
        let version = version(pod);
        let is_short = |name: &&str| {
            let least = named(name).map_or(0, |it| it["minAvailable"].as_u64().unwrap_or(0));
            let counts = |it: &&Ready| it.version >= version || !it.has_left;
            let ready = life.ready.get(*name).into_iter().flatten();
            (ready.map(|(_, it)| it).filter(counts).count() as u64) < least
        };
        let mut names = list(&depends["name"]).iter().map(text);
        let first_short = names.clone().find(is_short)?;
        let any = depends["iteration"] == "any" && names.clone().count() > 1;
        (!any || names.all(|name| is_short(&name))).then_some(first_short)
    }
}

/// When something is seen, and whether it is there then.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment {
    /// It was written at this revision.
    Written(u64),
    /// It went at this revision.
    Gone(u64),
}

impl Moment {
    fn revision(self) -> u64 {
        match self {
            Moment::Written(revision) | Moment::Gone(revision) => revision,
        }
    }
}

/// The version of its job that a pod was made for.
fn version(pod: &Value) -> i64 {
    let written = text(&pod["metadata"]["annotations"][JOB_VERSION]);
    written.parse().unwrap_or(0)
}

fn is_ready(pod: &Value) -> bool {
    let containers = list(&pod["status"]["containerStatuses"]);
    match text(&pod["status"]["phase"]) {
        "Succeeded" => true,
        "Running" => !containers.is_empty() && containers.iter().all(|it| it["ready"] == true),
        _ => false,
    }
}
