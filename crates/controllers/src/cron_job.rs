//! `batch/v1` CronJob: a Job for each time of its schedule.
//!
//! A job's name follows from the CronJob's and the minute that it is for, so that no minute gets
//! two. What is there is read from the jobs; the status remembers the last minute served.

use std::sync::Arc;

use api::batch::{CronJob, CronJobStatus, Job};
use api::core::ObjectReference;
use api::cron::{Schedule, Zone};
use api::intent::{Intent, ObjectKey};
use api::kind::Kind;
use api::time::Time;
use mirror::{Change, Mirror};
use serde_json::{Value, json};

mod missed;

use crate::note::Occasion;
use crate::{Controller, Inputs, Step, child, conditions, write};
use missed::Missed;

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "cron_job",
    component: "cronjob-controller",
    watches: &[Kind::BatchCronJob, Kind::BatchJob],
    keys,
    step,
};

/// The annotation of a job with the time that it is for.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
/// What to add to a time so that it has certainly come.
const SLACK_MS: i64 = 100;

fn keys(_mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    match change.kind() {
        Kind::BatchCronJob => keys.push((*change.key).clone()),
        _ => crate::keys::of_owner(change, Kind::BatchCronJob, keys),
    }
}

/// Everything that one step looks at.
struct View<'a> {
    inputs: &'a Inputs<'a>,
    it: &'a CronJob,
    jobs: Vec<Arc<Job>>,
}

fn step(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    let Some(it) = inputs.mirror.get::<CronJob>(namespace, name) else {
        return Step::idle();
    };
    let named = it.status.active.iter().map(|job| {
        let key = ObjectKey::new(Kind::BatchJob, namespace, &job.name);
        (key, &*job.uid)
    });
    if let Some(first) = inputs.before_presence(named, it.metadata.revision()) {
        return first;
    }
    let owned = inputs.mirror.owned_by::<Job>(&it.metadata.uid);
    let is_ours = |job: &&Arc<Job>| {
        let owner = job.metadata.controller();
        owner.is_some_and(|owner| owner.uid == it.metadata.uid)
    };
    let view = View {
        inputs,
        it,
        jobs: owned.filter(is_ours).cloned().collect(),
    };
    view.step()
}

impl View<'_> {
    fn step(&self) -> Step {
        let mut intents = self.clean_up();
        let (mut status, notes) = self.seen();
        intents.extend(notes);
        let is_leaving = self.it.metadata.deletion_timestamp.is_some();
        let mut wake_at = None;
        if !is_leaving && self.it.spec.suspend != Some(true) {
            let (more, wake) = self.schedule(&mut status);
            intents.extend(more);
            wake_at = wake;
        }
        let (old, new) = (wire(&self.it.status), wire(&status));
        let meta = &self.it.metadata;
        intents.extend(write::status_difference(
            Kind::BatchCronJob,
            meta,
            &old,
            &new,
        ));
        Step::write(intents).or_wake_at(wake_at)
    }

    fn occasion<'a>(&'a self, id: &'a str) -> Occasion<'a> {
        Occasion {
            kind: Kind::BatchCronJob,
            meta: &self.it.metadata,
            component: CONTROLLER.component,
            id,
        }
    }

    /// The status after what the jobs say: those that have ended or gone are active no more.
    fn seen(&self) -> (CronJobStatus, Vec<Intent>) {
        let now = self.inputs.now;
        let mut status = self.it.status.clone();
        let mut notes = Vec::new();
        for job in &self.jobs {
            let (uid, name) = (&job.metadata.uid, &job.metadata.name);
            let is_active = status.active.iter().any(|it| it.uid == *uid);
            let occasion = self.occasion(uid);
            if !job.is_finished() {
                let last = status.last_schedule_time;
                let is_new = self.time_of(job).is_some_and(|time| Some(time) > last);
                if !is_active && !is_new {
                    let message =
                        format!("Saw a job that the controller did not create or forgot: {name}");
                    notes.push(occasion.warning("UnexpectedJob", &message, now));
                }
                continue;
            }
            let is_complete = conditions::is_true(&job.status.conditions, "Complete");
            if is_active && self.is_surplus(job) {
                // It is removed before anybody has seen it complete.
                status.active.retain(|it| it.uid != *uid);
            } else if is_active {
                status.active.retain(|it| it.uid != *uid);
                let end = if is_complete { "Complete" } else { "Failed" };
                let message = format!("Saw completed job: {name}, condition: {end}");
                notes.push(occasion.normal("SawCompletedJob", &message, now));
            }
            if is_complete {
                let ended = job.status.completion_time;
                status.last_successful_time = status.last_successful_time.max(ended);
            }
        }
        status.active.retain(|it| {
            let is_here = self.jobs.iter().any(|job| job.metadata.uid == it.uid);
            if !is_here {
                let message = format!("Active job went missing: {}", it.name);
                notes.push(self.occasion(&it.uid).normal("MissingJob", &message, now));
            }
            is_here
        });
        (status, notes)
    }

    /// The time that a job is for, by its name; unexpected jobs have none.
    fn time_of(&self, job: &Job) -> Option<Time> {
        let stem = format!("{}-", self.it.metadata.name);
        let minutes: i64 = job.metadata.name.strip_prefix(&*stem)?.parse().ok()?;
        Some(Time::from_seconds(minutes.checked_mul(60)?))
    }

    fn zone(&self) -> Option<Zone> {
        Zone::find(self.it.spec.time_zone.as_deref().unwrap_or(""))
    }

    /// Starts what is due, and says when the next time is.
    fn schedule(&self, status: &mut CronJobStatus) -> (Vec<Intent>, Option<Time>) {
        let now = self.inputs.now;
        let (text, generation) = (&self.it.spec.schedule, &self.it.metadata.generation);
        let id = generation.to_string();
        let complain = |reason: &str, message: &str| {
            let note = self.occasion(&id).warning(reason, message, now);
            (vec![note], None)
        };
        let Some(zone) = self.zone() else {
            let name = self.it.spec.time_zone.as_deref().unwrap_or("");
            let message = format!("invalid timeZone: \"{name}\": unknown time zone {name}");
            return complain("UnknownTimeZone", &message);
        };
        let schedule = match Schedule::parse(text) {
            Ok(schedule) => schedule,
            Err(error) => {
                let message = format!("unparseable schedule: \"{text}\" : {error}");
                return complain("UnparseableSchedule", &message);
            }
        };
        let mut intents = Vec::new();
        if text.contains("TZ") {
            let message = format!(
                "CRON_TZ or TZ used in schedule \"{text}\" is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            );
            let note = self
                .occasion(&id)
                .warning("UnsupportedSchedule", &message, now);
            intents.push(note);
        }
        let missed = Missed {
            it: self.it,
            schedule: &schedule,
            zone: &zone,
            now,
        };
        match missed.latest() {
            Err(error) => {
                let message = format!("invalid schedule: {text} : {error}");
                return complain("InvalidSchedule", &message);
            }
            Ok(None) => {}
            Ok(Some((time, is_many))) => {
                if is_many {
                    let message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
                    let id = time.seconds_text();
                    let occasion = self.occasion(&id);
                    intents.push(occasion.warning("TooManyMissedTimes", message, now));
                }
                intents.extend(self.start(time, &zone, status));
            }
        }
        let wake_at = missed.next().map(|next| next.plus_ms(SLACK_MS));
        (intents, wake_at)
    }

    /// Makes the job of a time, unless something speaks against it.
    fn start(&self, time: Time, zone: &Zone, status: &mut CronJobStatus) -> Vec<Intent> {
        let now = self.inputs.now;
        let id = time.seconds_text();
        let occasion = self.occasion(&id);
        let spec = &self.it.spec;
        let deadline = spec.starting_deadline_seconds;
        let is_late = |seconds: i64| time.plus_ms(seconds.saturating_mul(1_000)) < now;
        let name = format!("{}-{}", self.it.metadata.name, time.micros() / 60_000_000);
        if let Some(job) = self.jobs.iter().find(|job| *job.metadata.name == *name) {
            self.note_started(job, time, status);
            return Vec::new();
        }
        if deadline.is_some_and(is_late) {
            let shown = time.rfc1123();
            let message = format!("Missed scheduled time to start a job: {shown}");
            return vec![occasion.warning("MissSchedule", &message, now)];
        }
        if status.last_schedule_time == Some(time) {
            return Vec::new();
        }
        let is_active = !status.active.is_empty();
        match &*spec.concurrency_policy {
            "Forbid" if is_active => {
                let message = "Not starting job because prior execution is running and concurrency policy is Forbid";
                return vec![occasion.normal("JobAlreadyActive", message, now)];
            }
            "Replace" if is_active => return self.replace(status),
            _ => {}
        }
        let message = format!("Created job {name}");
        vec![
            write::create(Kind::BatchJob, self.body(&name, time, zone)),
            occasion.normal("SuccessfulCreate", &message, now),
        ]
    }

    /// Takes down that the job of a time was made.
    fn note_started(&self, job: &Job, time: Time, status: &mut CronJobStatus) {
        if status.last_schedule_time >= Some(time) {
            return;
        }
        status.last_schedule_time = Some(time);
        let meta = &job.metadata;
        let is_known = status.active.iter().any(|it| it.uid == meta.uid);
        if !job.is_finished() && !is_known {
            status.active.push(ObjectReference {
                api_version: Kind::BatchJob.api_version().into(),
                kind: Kind::BatchJob.row().name.into(),
                namespace: meta.namespace.clone(),
                name: meta.name.clone(),
                uid: meta.uid.clone(),
                resource_version: meta.resource_version.clone(),
                field_path: "".into(),
            });
        }
    }

    /// Ends the jobs that still run; the new one is made once they are active no more.
    fn replace(&self, status: &mut CronJobStatus) -> Vec<Intent> {
        let active = std::mem::take(&mut status.active);
        let is_active = |job: &&Arc<Job>| active.iter().any(|it| it.uid == job.metadata.uid);
        let jobs = self.jobs.iter().filter(is_active);
        jobs.flat_map(|job| self.delete(job)).collect()
    }

    fn delete(&self, job: &Job) -> [Intent; 2] {
        let message = format!("Deleted job {}", job.metadata.name);
        let occasion = self.occasion(&job.metadata.uid);
        let note = occasion.normal("SuccessfulDelete", &message, self.inputs.now);
        [write::delete(Kind::BatchJob, &job.metadata), note]
    }

    fn is_surplus(&self, job: &Job) -> bool {
        let surplus = self.surplus();
        surplus.iter().any(|it| it.metadata.uid == job.metadata.uid)
    }

    /// Removes the oldest jobs beyond those that are to be kept.
    fn clean_up(&self) -> Vec<Intent> {
        let surplus = self.surplus();
        surplus.iter().flat_map(|job| self.delete(job)).collect()
    }

    /// The oldest jobs beyond those that are to be kept.
    fn surplus(&self) -> Vec<&Arc<Job>> {
        let spec = &self.it.spec;
        let mut all = Vec::new();
        for (kind, limit) in [
            ("Complete", spec.successful_jobs_history_limit),
            ("Failed", spec.failed_jobs_history_limit),
        ] {
            let Some(limit) = limit else {
                continue;
            };
            let has_ended = |job: &&Arc<Job>| {
                conditions::is_true(&job.status.conditions, kind)
                    && job.metadata.deletion_timestamp.is_none()
            };
            let mut ended: Vec<&Arc<Job>> = self.jobs.iter().filter(has_ended).collect();
            ended.sort_by_key(|job| {
                let start = job.status.start_time;
                (start.is_none(), start, job.metadata.name.clone())
            });
            let surplus = ended
                .len()
                .saturating_sub(usize::try_from(limit).unwrap_or(0));
            all.extend(ended.into_iter().take(surplus));
        }
        all
    }

    fn body(&self, name: &str, time: Time, zone: &Zone) -> Value {
        let meta = &self.it.metadata;
        let template = self.it.spec.job_template.value();
        let mut annotations = child::map(&template["metadata"]["annotations"]);
        annotations.insert(SCHEDULED.to_owned(), json!(zone.text(time)));
        let mut metadata = json!({
            "name": name,
            "namespace": meta.namespace,
            "annotations": annotations,
            "ownerReferences": [write::controller_ref(Kind::BatchCronJob, meta)],
        });
        if template["metadata"]["labels"].is_object() {
            metadata["labels"] = template["metadata"]["labels"].clone();
        }
        json!({ "metadata": metadata, "spec": template["spec"] })
    }
}

/// A status as JSON; what is empty is left out.
fn wire(status: &CronJobStatus) -> Value {
    let mut value = json!({});
    if !status.active.is_empty() {
        let list = status.active.iter().map(|it| {
            json!({
                "apiVersion": it.api_version,
                "kind": it.kind,
                "namespace": it.namespace,
                "name": it.name,
                "uid": it.uid,
                "resourceVersion": it.resource_version,
            })
        });
        value["active"] = Value::Array(list.collect());
    }
    for (field, time) in [
        ("lastScheduleTime", status.last_schedule_time),
        ("lastSuccessfulTime", status.last_successful_time),
    ] {
        if let Some(time) = time {
            value[field] = json!(time);
        }
    }
    value
}
