//! CronJobs, Kubernetes' (`batch/v1`) and Volcano's (`specs/volcano.md` 2.6): a job for each time of
//! a schedule.
//!
//! A job's name follows from the CronJob's and the time that it is for, so that no time gets two, and
//! an annotation tells that time. What is there is read from the jobs; the status remembers the last
//! time served. What the two sorts do not share is a row of [`family`].

use api::batch::CronJobStatus;
use api::core::ObjectReference;
use api::cron::{Schedule, Zone};
use api::intent::{Intent, ObjectKey};
use api::kind::Kind;
use api::time::Time;
use mirror::Change;
use serde_json::{Value, json};

mod edited;
mod family;
mod missed;

use crate::note::Occasion;
use crate::{Controller, Inputs, Outcome, Refused, Step, child, write};
use edited::Edit;
use family::{Child, Family, Parent};
use missed::{Latest, Missed};

/// The row of Kubernetes' own.
pub const BATCH: Controller = Controller {
    name: "cron_job",
    component: family::BATCH.component,
    tells_refused: &[family::BATCH.job],
    watches: &[Kind::BatchCronJob, Kind::BatchJob],
    keys: |_, change, keys| family_keys(&family::BATCH, change, keys),
    step: |inputs| step(&family::BATCH, inputs),
};

/// The row of Volcano's.
pub const VOLCANO: Controller = Controller {
    name: "vc_cron_job",
    component: family::VOLCANO.component,
    tells_refused: &[family::VOLCANO.job],
    watches: &[Kind::Queue, Kind::VcCronJob, Kind::VcJob],
    keys: |_, change, keys| match change.kind() {
        // Whoever's job was refused for its queue waits for it by name.
        Kind::Queue => {}
        _ => family_keys(&family::VOLCANO, change, keys),
    },
    step: |inputs| step(&family::VOLCANO, inputs),
};

/// What to add to a time so that it has certainly come.
const SLACK_MS: i64 = 100;

/// What the number in a job's name counts, in microseconds: minutes, as upstream has it, or seconds
/// where a minute may have several times. A CronJob's name of 52 has room for either.
const MINUTE: i64 = 60_000_000;
/// See [`MINUTE`].
const SECOND: i64 = 1_000_000;

fn family_keys(family: &Family, change: &Change, keys: &mut Vec<ObjectKey>) {
    if change.kind() != family.kind {
        return crate::keys::of_owner(change, family.kind, keys);
    }
    keys.push(match (family.reschedules)(change) {
        true => edited::key(&change.key),
        false => (*change.key).clone(),
    });
}

/// Everything that one step looks at.
struct View<'a> {
    inputs: &'a Inputs<'a>,
    family: &'static Family,
    it: Parent<'a>,
    /// Since when its schedule holds, as far as that is known.
    since: Option<Time>,
    jobs: Vec<Child<'a>>,
}

fn step(family: &'static Family, inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    let (name, is_edit) = match edited::name_in(name) {
        Some(name) => (name, true),
        None => (&**name, false),
    };
    let Some(it) = (family.find)(inputs.mirror, namespace, name) else {
        return Step::idle();
    };
    if !is_edit {
        return look(family, inputs, it, edited::since(&it));
    }
    match edited::judge(family, inputs, &it) {
        Edit::Noted => Step::idle(),
        Edit::New(noting) => Step::write(vec![noting]),
        Edit::Refused { since, noting } => {
            let mut step = look(family, inputs, it, Some(since));
            if !matches!(step.outcome, Outcome::Asks { .. }) {
                step.intents.extend(noting);
            }
            // The driver remembers since when.
            step.rests = true;
            step
        }
    }
}

/// What is to be done about a CronJob whose schedule holds since then.
fn look(family: &'static Family, inputs: &Inputs<'_>, it: Parent<'_>, since: Option<Time>) -> Step {
    let namespace = &it.meta.namespace;
    let named = it.status.active.iter().map(|job| {
        let key = ObjectKey::new(family.job, namespace, &job.name);
        (key, &*job.uid)
    });
    if let Some(first) = inputs.before_presence(named, it.meta.revision()) {
        return first;
    }
    let view = View {
        inputs,
        family,
        it,
        since,
        jobs: (family.jobs)(inputs.mirror, &it.meta.uid),
    };
    view.step()
}

/// What a step decides about starting jobs.
#[derive(Default)]
struct Start {
    intents: Vec<Intent>,
    wake_at: Option<Time>,
    /// Whether the jobs that run are to make room for one that is due.
    replaces: bool,
    /// Somebody else's job that has the name of ours.
    taken: Option<ObjectKey>,
}

impl Start {
    fn only(intent: Intent) -> Start {
        Start {
            intents: vec![intent],
            ..Start::default()
        }
    }
}

impl View<'_> {
    fn step(&self) -> Step {
        let surplus = self.surplus();
        let mut intents: Vec<Intent> = surplus.iter().flat_map(|job| self.delete(job)).collect();
        let (mut status, notes) = self.seen(&surplus);
        intents.extend(notes);
        let gone = self.gone(&mut status);
        let is_leaving = self.it.meta.deletion_timestamp.is_some();
        let mut start = Start::default();
        if !is_leaving && self.it.spec.suspend != Some(true) {
            start = self.schedule(&mut status);
        }
        // Who was to be replaced and has gone is not missed.
        if !start.replaces {
            intents.extend(gone.iter().map(|job| self.note_missing(job)));
        }
        intents.append(&mut start.intents);
        let (old, new) = (wire(self.it.status), wire(&status));
        let (kind, meta) = (self.family.kind, self.it.meta);
        intents.extend(write::status_difference(kind, meta, &old, &new));
        let mut step = Step::write(intents).or_wake_at(start.wake_at);
        if let Some(key) = start.taken {
            step.outcome = Outcome::Blocked {
                reason: "ForeignJob".into(),
                waits_for: vec![key],
            };
        }
        step
    }

    fn occasion<'a>(&'a self, id: &'a str) -> Occasion<'a> {
        Occasion {
            kind: self.family.kind,
            meta: self.it.meta,
            component: self.family.component,
            id,
        }
    }

    /// A note that one sort of CronJob writes as a warning, the other as a piece of news.
    fn note(&self, id: &str, reason: &str, message: &str) -> Intent {
        let occasion = self.occasion(id);
        match self.family.words.warns {
            true => occasion.warning(reason, message, self.inputs.now),
            false => occasion.normal(reason, message, self.inputs.now),
        }
    }

    /// The status after what the jobs say: those that have ended are active no more.
    fn seen(&self, surplus: &[&Child<'_>]) -> (CronJobStatus, Vec<Intent>) {
        let now = self.inputs.now;
        let strange = self.family.words.strange_job;
        let mut status = self.it.status.clone();
        let mut notes = Vec::new();
        for job in &self.jobs {
            let (uid, name) = (&job.meta.uid, &job.meta.name);
            // What was made is taken down whatever comes next: it counts with those that run.
            let new = self.new_time_of(job);
            if let Some(time) = new {
                notes.push(self.note_started(job, time, &mut status));
            }
            let is_active = status.active.iter().any(|it| it.uid == *uid);
            let occasion = self.occasion(uid);
            let Some(ending) = job.ending else {
                let is_new_here = !is_active && new.is_none();
                if self.runs_on(job) && is_new_here {
                    // Its end was asked for, and refused or lost.
                    status.active.push(self.reference(job));
                } else if is_new_here && job.meta.deletion_timestamp.is_none() {
                    let message = (self.family.texts.strange)(name, uid);
                    notes.push(occasion.warning(strange, &message, now));
                }
                continue;
            };
            status.active.retain(|it| it.uid != *uid);
            let is_told = self.family.tells_of_surplus || {
                // What is removed before anybody has seen it complete is not.
                surplus.iter().all(|it| it.meta.uid != *uid)
            };
            if is_active && is_told {
                let message = (self.family.texts.completed)(name, ending.word);
                notes.push(occasion.normal("SawCompletedJob", &message, now));
            }
            if ending.is_success {
                status.last_successful_time = status.last_successful_time.max(ending.at);
            }
        }
        (status, notes)
    }

    /// The active jobs that are not there any more: they are taken out of the status.
    fn gone(&self, status: &mut CronJobStatus) -> Vec<ObjectReference> {
        let is_gone = |it: &mut ObjectReference| self.jobs.iter().all(|job| job.meta.uid != it.uid);
        status.active.extract_if(.., is_gone).collect()
    }

    fn note_missing(&self, job: &ObjectReference) -> Intent {
        let message = (self.family.texts.missing)(&job.name, &job.uid);
        self.note(&job.uid, self.family.words.missing_job, &message)
    }

    /// The time that a job is for, by its annotation. Jobs that somebody else made have none: one that
    /// was made from the template by hand, or is a copy of ours, does not bear the name of its time.
    fn time_of(&self, job: &Child<'_>) -> Option<Time> {
        let time = Time::parse(job.meta.annotations.get(self.family.annotation)?)?;
        let mut names = [MINUTE, SECOND]
            .map(|unit| self.name_of(time, unit))
            .into_iter();
        names.any(|it| *it == *job.meta.name).then_some(time)
    }

    /// The name of the job of a time, with the units since 1970 that had passed.
    fn name_of(&self, time: Time, unit: i64) -> String {
        let number = time.micros().div_euclid(unit);
        format!("{}-{number}", self.it.meta.name)
    }

    /// The same, where nobody has taken down yet that it was made.
    fn new_time_of(&self, job: &Child<'_>) -> Option<Time> {
        let time = self.time_of(job)?;
        let last = self.it.status.last_schedule_time;
        let known = last.or(self.it.meta.creation_timestamp);
        (Some(time) > known).then_some(time)
    }

    fn zone(&self) -> Option<Zone> {
        Zone::find(self.it.spec.time_zone.as_deref().unwrap_or(""))
    }

    /// Starts what is due, and says when the next time is.
    fn schedule(&self, status: &mut CronJobStatus) -> Start {
        let now = self.inputs.now;
        let (text, generation) = (&self.it.spec.schedule, &self.it.meta.generation);
        let id = generation.to_string();
        let words = &self.family.words;
        let complain = |reason: &str, message: &str| {
            Start::only(self.occasion(&id).warning(reason, message, now))
        };
        let Some(zone) = self.zone() else {
            let name = self.it.spec.time_zone.as_deref().unwrap_or("");
            let message = format!("invalid timeZone: \"{name}\": unknown time zone {name}");
            return complain(words.bad_zone, &message);
        };
        let schedule = match Schedule::parse(text) {
            Ok(schedule) => schedule,
            Err(error) => {
                let message = format!("unparseable schedule: \"{text}\" : {error}");
                return complain(words.bad_schedule, &message);
            }
        };
        let mut intents = Vec::new();
        if text.contains("TZ") {
            let message = format!(
                "CRON_TZ or TZ used in schedule \"{text}\" is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            );
            intents.extend(complain("UnsupportedSchedule", &message).intents);
        }
        let missed = Missed {
            it: self.it,
            edited: self.since,
            schedule: &schedule,
            zone: &zone,
            now,
        };
        let latest = match missed.latest() {
            Ok(latest) => latest,
            Err(error) => {
                let message = format!("invalid schedule: {text} : {error}");
                return complain("InvalidSchedule", &message);
            }
        };
        let warning = |time: Time, reason: &str, message: &str| {
            let id = time.seconds_text();
            self.occasion(&id).warning(reason, message, now)
        };
        let mut start = Start::default();
        match latest {
            Latest::Served => {}
            // Its job may be there, and the time only now be taken down.
            Latest::Late(time) if status.last_schedule_time >= Some(time) => {}
            Latest::Late(time) => {
                let shown = time.rfc1123();
                let message = format!("Missed scheduled time to start a job: {shown}");
                intents.push(warning(time, "MissSchedule", &message));
            }
            Latest::Due { time, is_many } => {
                if is_many {
                    let message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
                    intents.push(warning(time, "TooManyMissedTimes", message));
                }
                start = self.start(time, &missed, status);
                start.replaces = *self.it.spec.concurrency_policy == *"Replace";
            }
        }
        intents.append(&mut start.intents);
        start.intents = intents;
        start.wake_at = missed.next().map(|next| next.plus_ms(SLACK_MS));
        start
    }

    /// Makes the job of a time, unless something speaks against it.
    fn start(&self, time: Time, missed: &Missed<'_>, status: &mut CronJobStatus) -> Start {
        let id = time.seconds_text();
        let spec = self.it.spec;
        let unit = match missed.schedule {
            Schedule::Every(seconds) if *seconds < 60 => SECOND,
            _ => MINUTE,
        };
        let name = self.name_of(time, unit);
        if self.jobs.iter().any(|job| *job.meta.name == *name) {
            return Start::default();
        }
        if status.last_schedule_time == Some(time) {
            return Start::default();
        }
        let is_active = !status.active.is_empty();
        match &*spec.concurrency_policy {
            "Forbid" if is_active => {
                let (reason, message) = (self.family.words.forbidden, self.family.texts.forbidden);
                Start::only(self.note(&id, reason, message))
            }
            "Replace" if is_active || self.jobs.iter().any(|job| self.runs_on(job)) => Start {
                intents: self.replace(&id, status),
                ..Start::default()
            },
            _ => self.create(&id, &name, self.body(&name, time, missed.zone)),
        }
    }

    /// Makes a job, and tells why the last try came to nothing, if it did. A name that somebody
    /// else's job has is waited for.
    fn create(&self, id: &str, name: &str, body: Value) -> Start {
        let now = self.inputs.now;
        let occasion = self.occasion(id);
        let key = ObjectKey::new(self.family.job, &self.it.meta.namespace, name);
        if self.inputs.mirror.object(&key).is_some() {
            let message = format!("Job {name} exists, but belongs to another object");
            return Start {
                taken: Some(key),
                ..Start::only(occasion.warning("ForeignJob", &message, now))
            };
        }
        let mut intents = vec![write::create(self.family.job, body)];
        // The job that was refused may be that of a time before.
        let is_job = |it: &&Refused| it.verb == "create" && it.target.kind == self.family.job;
        if let Some(refused) = self.inputs.last.refused.iter().find(is_job) {
            let message = (self.family.texts.refused)(&refused.message);
            let occasion = self.occasion(&refused.target.name);
            intents.push(occasion.warning("FailedCreate", &message, now));
        }
        Start {
            intents,
            ..Start::default()
        }
    }

    /// Takes down that the job of a time was made, and tells it: now it is certain.
    fn note_started(&self, job: &Child<'_>, time: Time, status: &mut CronJobStatus) -> Intent {
        status.last_schedule_time = status.last_schedule_time.max(Some(time));
        let meta = job.meta;
        let is_known = status.active.iter().any(|it| it.uid == meta.uid);
        if job.ending.is_none() && !is_known {
            status.active.push(self.reference(job));
        }
        let (namespace, own) = (&self.it.meta.namespace, &self.it.meta.name);
        let message = (self.family.texts.created)(&meta.name, &format!("{namespace}/{own}"));
        let id = time.seconds_text();
        let occasion = self.occasion(&id);
        occasion.normal("SuccessfulCreate", &message, self.inputs.now)
    }

    fn reference(&self, job: &Child<'_>) -> ObjectReference {
        let (kind, meta) = (self.family.job, job.meta);
        ObjectReference {
            api_version: kind.api_version().into(),
            kind: kind.row().name.into(),
            namespace: meta.namespace.clone(),
            name: (&meta.name).into(),
            uid: meta.uid.clone(),
            resource_version: (&*meta.resource_version).into(),
            field_path: "".into(),
        }
    }

    /// Ends the jobs that still run; the new one is made once they are active no more, and none of ours runs
    /// on: an end that was asked for may have been refused, and then they are active still, or lost. What somebody
    /// made by hand is left to him.
    fn replace(&self, id: &str, status: &mut CronJobStatus) -> Vec<Intent> {
        let is_active = |job: &Child<'_>| status.active.iter().any(|it| it.uid == job.meta.uid);
        let jobs = (self.jobs.iter()).filter(|job| is_active(job) || self.runs_on(job));
        let told = self.family.words.replaced;
        let told = told.map(|(reason, message)| self.note(id, reason, message));
        let ends = jobs.flat_map(|job| self.delete(job));
        let intents = told.into_iter().chain(ends).collect();
        // Only some of what was refused is remembered: one of them speaks for all that are left.
        let is_end = |it: &Refused| it.verb == "delete" && it.target.kind == self.family.job;
        if !self.inputs.last.refused.iter().any(is_end) {
            status.active.clear();
        }
        intents
    }

    /// Whether a job of ours has not ended, and nobody has told it to.
    fn runs_on(&self, job: &Child<'_>) -> bool {
        let is_left = job.ending.is_none() && job.meta.deletion_timestamp.is_none();
        is_left && self.time_of(job).is_some()
    }

    fn delete(&self, job: &Child<'_>) -> [Intent; 2] {
        let message = (self.family.texts.deleted)(&job.meta.name);
        let occasion = self.occasion(&job.meta.uid);
        let note = occasion.normal("SuccessfulDelete", &message, self.inputs.now);
        [write::delete(self.family.job, job.meta), note]
    }

    /// The oldest jobs beyond those that are to be kept. One that went before its time is taken down would
    /// be made again.
    fn surplus(&self) -> Vec<&Child<'_>> {
        let spec = self.it.spec;
        let mut all = Vec::new();
        for (is_success, limit) in [
            (true, spec.successful_jobs_history_limit),
            (false, spec.failed_jobs_history_limit),
        ] {
            let Some(limit) = limit else {
                continue;
            };
            let has_ended = |job: &&Child<'_>| {
                job.ending.is_some_and(|it| it.is_success == is_success)
                    && job.meta.deletion_timestamp.is_none()
                    && self.new_time_of(job).is_none()
            };
            let mut ended: Vec<&Child<'_>> = self.jobs.iter().filter(has_ended).collect();
            ended.sort_by_key(|job| (job.started.is_none(), job.started, &job.meta.name));
            let surplus = ended
                .len()
                .saturating_sub(usize::try_from(limit).unwrap_or(0));
            all.extend(ended.into_iter().take(surplus));
        }
        all
    }

    fn body(&self, name: &str, time: Time, zone: &Zone) -> Value {
        let meta = self.it.meta;
        let template = self.it.spec.job_template.value();
        let mut annotations = child::map(&template["metadata"]["annotations"]);
        annotations.insert(self.family.annotation.to_owned(), json!(zone.text(time)));
        let mut metadata = json!({
            "name": name,
            "namespace": meta.namespace,
            "annotations": annotations,
            "ownerReferences": [write::controller_ref(self.family.kind, meta)],
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
