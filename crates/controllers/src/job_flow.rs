//! Volcano's JobFlow (`specs/volcano.md` 2.5): jobs made from templates, one after the other.
//!
//! A job's name follows from the flow's and its template's, so that none is made twice. What has
//! ended is taken down in the flow's status: a job that is removed after its end, by its time to
//! live or by hand, counts as ended and is not made again.
//!
//! Nothing is written for a flow whose jobs wait for each other in a circle, or for one that does
//! not exist; a template that is missing is waited for.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::intent::{Intent, ObjectKey};
use api::kind::Kind;
use api::meta::ObjectMeta;
use api::volcano::{
    Flow, FlowJobStatus, FlowPhase, Job, JobFlow, JobPhase, JobTemplate, RetainPolicy,
};
use mirror::{Change, Mirror};

mod body;
mod filled;
mod graph;
mod probe;
mod status;

use crate::note::Occasion;
use crate::{Controller, Inputs, Inquiry, Outcome, Step, write};
use probe::Stands;

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "job_flow",
    component: "vc-controller-manager",
    tells_refused: &[Kind::VcJob],
    watches: &[
        Kind::JobFlow,
        Kind::JobTemplate,
        Kind::Pod,
        Kind::Queue,
        Kind::VcJob,
    ],
    keys,
    step,
};

/// Templates, queues and pods wake nobody by themselves: a flow that lacks a template waits for it by name, one
/// whose job was refused for its queue, and pods are asked in turns.
fn keys(_mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    match change.kind() {
        Kind::JobFlow => keys.push((*change.key).clone()),
        Kind::VcJob => crate::keys::of_owner(change, Kind::JobFlow, keys),
        _ => {}
    }
}

/// One job of a flow: as it is wanted, as it is, as it was taken down.
struct Member<'a> {
    flow: &'a Flow,
    /// The job's name.
    name: String,
    job: Option<&'a Arc<Job>>,
    record: Option<&'a FlowJobStatus>,
}

impl Member<'_> {
    /// The phase of the job, or the one in which it ended; `None` if it is still to be made.
    fn phase(&self) -> Option<JobPhase> {
        match (self.job, self.record) {
            (Some(job), _) => Some(job.status.state.phase),
            (None, Some(record)) => ended(record),
            (None, None) => None,
        }
    }
}

/// The phase in which a job ended, as it was taken down.
fn ended(record: &FlowJobStatus) -> Option<JobPhase> {
    JobPhase::parse(&record.state).filter(|phase| phase.is_over())
}

/// What to do before a job that has ended may go: to wait until its flow has taken down how it ended, or to
/// find out whether a flow is there of which nothing is heard. `None` where it may go.
pub(crate) fn before_going(inputs: &Inputs<'_>, job: &Job) -> Option<Step> {
    let meta = &job.metadata;
    let owner = meta.controller()?;
    if Kind::find(&owner.api_version, &owner.kind) != Some(Kind::JobFlow) {
        return None;
    }
    let key = ObjectKey::new(Kind::JobFlow, &meta.namespace, &owner.name);
    let named = std::iter::once((key, &*owner.uid));
    if let Some(first) = inputs.before_presence(named, meta.revision()) {
        return Some(first);
    }
    let flow = inputs.mirror.get::<JobFlow>(&meta.namespace, &owner.name);
    let awaits = flow.is_some_and(|flow| {
        // Nothing is taken down of a job whose template was taken out of the flow.
        let is_of = |it: &Flow| *meta.name == *name_of(flow, it);
        let mut records = flow.status.job_status_list.iter();
        let is_known = records.any(|it| meta.name == it.name && ended(it).is_some());
        flow.metadata.uid == owner.uid
            && flow.metadata.deletion_timestamp.is_none()
            && !is_over(flow.status.state.phase)
            && flow.spec.flows.iter().any(is_of)
            && !is_known
    });
    awaits.then(Step::idle)
}

/// The name of the job that a flow makes of one of its templates.
fn name_of(flow: &JobFlow, it: &Flow) -> String {
    format!("{}-{}", flow.metadata.name, it.name)
}

/// Whether a flow makes no more jobs.
fn is_over(phase: FlowPhase) -> bool {
    matches!(
        phase,
        FlowPhase::Succeed | FlowPhase::Failed | FlowPhase::Terminating
    )
}

/// A job that is still to be made.
struct Waiting<'v, 'a> {
    member: &'v Member<'a>,
    /// Those that it waits for.
    targets: Vec<&'v Member<'a>>,
    /// How each of them stands.
    stands: Vec<Stands>,
}

/// Everything that one step looks at.
struct View<'a> {
    inputs: &'a Inputs<'a>,
    it: &'a JobFlow,
    members: Vec<Member<'a>>,
}

fn step(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    let Some(it) = inputs.mirror.get::<JobFlow>(namespace, name) else {
        return Step::idle();
    };
    if it.metadata.deletion_timestamp.is_some() {
        return Step::idle();
    }
    let alive = it.status.job_status_list.iter();
    let alive = alive.filter(|record| ended(record).is_none());
    let named = alive.map(|record| (ObjectKey::new(Kind::VcJob, namespace, &record.name), ""));
    if let Some(first) = inputs.before_presence(named, it.metadata.revision()) {
        return first;
    }
    let view = View::read(inputs, it);
    if let Err(message) = graph::check(view.members.iter().map(|member| member.flow)) {
        let note = view.warning("InvalidFlow", &message);
        return Step {
            outcome: Outcome::Fatal {
                reason: message.into(),
            },
            ..Step::write(vec![note])
        };
    }
    let unheard = view.unheard();
    match unheard.is_empty() {
        true => view.step(),
        false => Step::inquire(unheard),
    }
}

impl<'a> View<'a> {
    fn read(inputs: &'a Inputs<'a>, it: &'a JobFlow) -> View<'a> {
        let meta = &it.metadata;
        let records: BTreeMap<&str, &FlowJobStatus> = it
            .status
            .job_status_list
            .iter()
            .map(|record| (&*record.name, record))
            .collect();
        // Of several with one name the last one counts, as upstream has it.
        let last: BTreeMap<&str, usize> = (it.spec.flows.iter().enumerate())
            .map(|(at, flow)| (&*flow.name, at))
            .collect();
        let flows = it.spec.flows.iter().enumerate();
        let flows = flows.filter(|(at, flow)| last.get(&*flow.name) == Some(at));
        let members = flows.map(|(_, flow)| {
            let name = name_of(it, flow);
            let job = inputs.mirror.get::<Job>(&meta.namespace, &name);
            Member {
                flow,
                job: job.filter(|job| job.metadata.is_controlled_by(&meta.uid)),
                record: records.get(&*name).copied(),
                name,
            }
        });
        View {
            inputs,
            it,
            members: members.collect(),
        }
    }

    fn step(&self) -> Step {
        let old = &self.it.status;
        let new = status::next(old, &self.members);
        let meta = &self.it.metadata;
        let mut step = Step::idle();
        let patch = write::status_difference(
            Kind::JobFlow,
            meta,
            &serde_json::json!(old),
            &serde_json::json!(new),
        );
        step.intents.extend(patch);
        step.intents.extend(self.news());
        let (phase, before) = (new.state.phase, old.state.phase);
        // Only once the success is written down: afterwards nothing would tell of it.
        let is_told = phase == FlowPhase::Succeed && phase == before;
        if is_told && self.it.spec.job_retain_policy == RetainPolicy::Delete {
            step.intents.extend(self.removals());
        }
        if !is_over(phase) {
            self.start(&mut step);
        }
        step
    }

    /// Tells of jobs that are seen for the first time.
    fn news(&self) -> impl Iterator<Item = Intent> {
        let new = self.members.iter().filter(|it| it.record.is_none());
        new.filter(|member| member.job.is_some()).map(|member| {
            let message = format!("create a job named {}!", member.name);
            self.occasion(&member.name)
                .normal("Created", &message, self.inputs.now)
        })
    }

    /// Deletes what is left of the jobs, those included whose templates were taken out of the flow.
    fn removals(&self) -> impl Iterator<Item = Intent> {
        let (uid, namespace) = (&self.it.metadata.uid, &self.it.metadata.namespace);
        let jobs = self.inputs.mirror.owned_by::<Job>(uid);
        // Anybody may name the flow as the owner of something elsewhere.
        let is_own = |meta: &ObjectMeta| meta.is_controlled_by(uid) && meta.namespace == *namespace;
        let is_left = move |meta: &ObjectMeta| is_own(meta) && meta.deletion_timestamp.is_none();
        let jobs = jobs.filter(move |job| is_left(&job.metadata));
        jobs.take(self.inputs.settings.writes_per_step_max)
            .map(|job| write::delete(Kind::VcJob, &job.metadata))
    }

    /// The jobs that are still to be made.
    fn waiting(&self) -> Vec<Waiting<'_, 'a>> {
        let by_flow: BTreeMap<&str, &Member<'_>> = (self.members.iter())
            .map(|member| (&*member.flow.name, member))
            .collect();
        let to_make = self.members.iter().filter(|it| it.phase().is_none());
        let waiting = to_make.map(|member| {
            let targets = member.flow.targets().iter();
            let targets = targets.filter_map(|name| by_flow.get(&**name).copied());
            let targets: Vec<&Member<'_>> = targets.collect();
            let stands = |target| probe::of(self.inputs.mirror, member.flow.probe(), target);
            Waiting {
                member,
                stands: targets.iter().copied().map(stands).collect(),
                targets,
            }
        });
        waiting.collect()
    }

    /// Tells of a probe that names tasks which nobody has: whoever wrote it waits for something else than he
    /// thinks.
    fn strange_probe(&self, waiting: &Waiting<'_, '_>) -> Option<Intent> {
        let flow = waiting.member.flow;
        let tasks = probe::strange_tasks(flow.probe()?, &waiting.targets);
        if tasks.is_empty() {
            return None;
        }
        let message = format!(
            "flow {} probes tasks that none of its targets has ({}): a target without a probed task is waited for until it has completed",
            flow.name,
            graph::listed(tasks.into_iter())
        );
        Some(self.warning("InvalidFlow", &message))
    }

    /// What has to be asked before it can be told whose turn it is. Nobody is asked for a job that
    /// waits for something else as well. Where one answer lacks all are asked: those that are there
    /// are for this step alone, and pods that change meanwhile would have it ask for the others for ever.
    fn unheard(&self) -> Vec<Inquiry> {
        let mut questions = BTreeMap::new();
        if is_over(self.it.status.state.phase) {
            return Vec::new();
        }
        for Waiting { stands, .. } in self.waiting() {
            let is_close = |it: &Stands| matches!(it, Stands::Met | Stands::Asks(_));
            if !stands.iter().all(is_close) {
                continue;
            }
            for it in stands {
                if let Stands::Asks(asked) = it {
                    questions.extend(asked.into_iter().map(|it| (it.topic.clone(), it)));
                }
            }
        }
        let is_heard = |topic: &String| self.inputs.heard.told(topic).is_some();
        match questions.keys().all(is_heard) {
            true => Vec::new(),
            false => questions.into_values().collect(),
        }
    }

    /// Makes the jobs whose turn it is.
    fn start(&self, step: &mut Step) {
        let waiting = self.waiting();
        let strange = waiting.iter().filter_map(|it| self.strange_probe(it));
        step.intents.extend(strange);
        let is_met = |it: &Stands| it.is_met(self.inputs.heard);
        let is_due = |it: &Waiting<'_, '_>| it.stands.iter().all(is_met);
        let mut waits_for = Vec::new();
        let due = waiting.iter().filter(|it| is_due(it));
        for Waiting { member, .. } in due.take(self.inputs.settings.writes_per_step_max) {
            let (intents, missing) = self.create(member);
            step.intents.extend(intents);
            waits_for.extend(missing);
        }
        let is_in_turns = |it: &Stands| matches!(it, Stands::Later | Stands::Asks(_));
        let in_turns = |it: &Waiting<'_, '_>| !is_due(it) && it.stands.iter().any(is_in_turns);
        if waiting.iter().any(in_turns) {
            step.wake_at = Some(self.inputs.now.plus_ms(probe::PERIOD_MS));
        }
        if !waits_for.is_empty() {
            step.outcome = Outcome::Blocked {
                reason: "WaitsForObjects".into(),
                waits_for,
            };
        }
    }

    /// Makes one job, or says what it waits for: its template, or its name.
    fn create(&self, member: &Member<'_>) -> (Vec<Intent>, Option<ObjectKey>) {
        let namespace = &self.it.metadata.namespace;
        let job = ObjectKey::new(Kind::VcJob, namespace, &member.name);
        if self.inputs.mirror.object(&job).is_some() {
            let message = format!("Job {} exists, but belongs to another object", member.name);
            return (vec![self.warning("ForeignJob", &message)], Some(job));
        }
        let name = &member.flow.name;
        let Some(template) = self.inputs.mirror.get::<JobTemplate>(namespace, name) else {
            let message = format!("JobTemplate {name} is not found, its job waits for it");
            let key = ObjectKey::new(Kind::JobTemplate, namespace, name);
            return (vec![self.warning("TemplateNotFound", &message)], Some(key));
        };
        let body = body::of(self.it, member, template);
        let mut intents = vec![write::create(Kind::VcJob, body)];
        let mut last = self.inputs.last.refused.iter();
        if let Some(refused) = last.find(|it| it.target == job) {
            let message = format!("Error creating job {}: {}", member.name, refused.message);
            intents.push(self.warning("FailedCreate", &message));
        }
        (intents, None)
    }

    fn warning(&self, reason: &str, message: &str) -> Intent {
        let generation = self.it.metadata.generation.to_string();
        self.occasion(&generation)
            .warning(reason, message, self.inputs.now)
    }

    fn occasion<'b>(&'b self, id: &'b str) -> Occasion<'b> {
        Occasion {
            kind: Kind::JobFlow,
            meta: &self.it.metadata,
            component: CONTROLLER.component,
            id,
        }
    }
}
