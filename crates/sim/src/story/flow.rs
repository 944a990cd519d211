//! A flow of a story: jobs that are made from templates, one after the other or in branches.

use std::collections::BTreeMap;

use api::intent::Propagation;
use api::kind::Kind;
use serde_json::{Value, json};

use super::manifest::plain_template;
use super::series::Room;
use super::{create, delete, pick};
use crate::random::Random;
use crate::world::World;

/// A flow that somebody submits with its templates.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) index: usize,
    pub(super) at_ms: i64,
    pub(super) steps: Vec<Step>,
    pub(super) retains: Retains,
    /// Somebody deletes it so much later.
    pub(super) deleted: Option<(i64, Propagation)>,
}

/// What becomes of the jobs of a flow that has succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retains {
    All,
    None,
}

/// One job of a flow, with its template.
#[derive(Clone, Debug)]
pub(super) struct Step {
    letter: char,
    /// By their places in the flow, all of which are smaller.
    pub(super) targets: &'static [usize],
    pub(super) waits: Waits,
    pub(super) pods: i64,
    milli_cpu: i64,
    runs_ms: i64,
    pub(super) ends: Ends,
    /// Its template comes so much later than the flow.
    template_after_ms: i64,
}

/// What has to have become of the targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// They have completed.
    Completed,
    /// As many of their pods as must start together have run.
    Running,
    /// The same, and they take connections.
    Listening,
    /// The same, and they answer requests.
    Answering,
}

/// How the job of a step ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    Well,
    /// Well, and it is removed after its time to live, which its template says.
    AndGoes,
    /// The same, but that it is the flow that says so of a template without.
    GoesByFlow,
    Badly,
}

/// Who waits for whom.
const SHAPES: [&[&[usize]]; 4] = [
    // One after the other.
    &[&[], &[0], &[1]],
    // Two branches that meet.
    &[&[], &[0], &[0], &[1, 2]],
    // Two beginnings, and a branch that goes on alone.
    &[&[], &[], &[0, 1], &[1]],
    &[&[], &[0]],
];

impl Step {
    /// Whether its job is removed after its time to live.
    pub(super) fn goes(&self) -> bool {
        matches!(self.ends, Ends::AndGoes | Ends::GoesByFlow)
    }
}

impl Flow {
    pub(super) fn draw(random: &mut Random, index: usize, room: &Room<'_>) -> Flow {
        let shape = SHAPES[pick(random, 4)];
        let pace = room.pace;
        let failing = random.once_in(4).then(|| pick(random, 4));
        let step = |random: &mut Random, at: usize| {
            let (milli_cpu, pods) = room.pods(random);
            let ends = match (failing == Some(at), random.once_in(4)) {
                (true, _) => Ends::Badly,
                (false, true) => [Ends::AndGoes, Ends::GoesByFlow][pick(random, 2)],
                (false, false) => Ends::Well,
            };
            let is_late = random.once_in(4);
            let after_ms = random.between(0, pace.after_ms);
            Step {
                letter: char::from(b'a' + u8::try_from(at).unwrap_or(0)),
                targets: shape[at],
                waits: [
                    Waits::Completed,
                    Waits::Completed,
                    Waits::Running,
                    Waits::Listening,
                    Waits::Answering,
                ][pick(random, 5)],
                pods,
                milli_cpu,
                runs_ms: random.between(50, pace.runs_ms / 8),
                ends,
                template_after_ms: if is_late { after_ms } else { 0 },
            }
        };
        let steps = (0..shape.len()).map(|at| step(random, at)).collect();
        let ways = [Propagation::Background, Propagation::Foreground];
        let way = ways[pick(random, 2)];
        let after_ms = random.between(0, pace.after_ms);
        Flow {
            index,
            at_ms: random.between(0, pace.parts_ms),
            steps,
            retains: [Retains::All, Retains::None][pick(random, 2)],
            deleted: random.once_in(5).then_some((after_ms, way)),
        }
    }

    pub(super) fn name(&self) -> String {
        format!("flow-{}", self.index)
    }

    /// The name of a step's template.
    pub(super) fn template(&self, step: &Step) -> String {
        format!("template-{}-{}", self.index, step.letter)
    }

    /// The name of a step's job.
    pub(super) fn job(&self, step: &Step) -> String {
        format!("{}-{}", self.name(), self.template(step))
    }

    /// Whether a step cannot be reached, for one fails that it waits for until it has completed, or one
    /// before it cannot be.
    pub(super) fn is_cut_off(&self, step: &Step) -> bool {
        step.targets.iter().any(|target| {
            let target = &self.steps[*target];
            let must_complete = step.waits == Waits::Completed;
            (must_complete && target.ends == Ends::Badly) || self.is_cut_off(target)
        })
    }

    pub(super) fn schedule(&self, world: &mut World) {
        for step in &self.steps {
            let at = self.at_ms + step.template_after_ms;
            let template = json!({
                "apiVersion": Kind::JobTemplate.api_version(),
                "kind": "JobTemplate",
                "metadata": { "name": self.template(step), "namespace": "default" },
                "spec": spec(step),
            });
            world.insist(at, create(Kind::JobTemplate, template));
        }
        let flows: Vec<Value> = self.steps.iter().map(|step| self.entry(step)).collect();
        let retain = match self.retains {
            Retains::All => "retain",
            Retains::None => "delete",
        };
        let flow = json!({
            "apiVersion": Kind::JobFlow.api_version(),
            "kind": "JobFlow",
            "metadata": { "name": self.name(), "namespace": "default" },
            "spec": { "flows": flows, "jobRetainPolicy": retain },
        });
        world.insist(self.at_ms, create(Kind::JobFlow, flow));
        if let Some((after_ms, way)) = self.deleted {
            let target = Kind::JobFlow.path("default", &self.name());
            world.insist(self.at_ms + after_ms, delete(target, way));
        }
    }

    fn entry(&self, step: &Step) -> Value {
        let mut entry = json!({ "name": self.template(step) });
        if step.ends == Ends::GoesByFlow {
            entry["patch"] = json!({ "jobSpec": { "ttlSecondsAfterFinished": 3 } });
        }
        if step.targets.is_empty() {
            return entry;
        }
        let targets = step.targets.iter();
        let targets: Vec<String> = targets
            .map(|target| self.template(&self.steps[*target]))
            .collect();
        entry["dependsOn"] = json!({ "targets": targets });
        let task = "work";
        let probe = match step.waits {
            Waits::Completed => return entry,
            Waits::Running => {
                json!({ "taskStatusList": [{ "taskName": task, "phase": "Running" }] })
            }
            Waits::Listening => json!({ "tcpSocketList": [{ "taskName": task, "port": 80 }] }),
            Waits::Answering => {
                json!({ "httpGetList": [{ "taskName": task, "port": 80, "path": "/ready" }] })
            }
        };
        entry["dependsOn"]["probe"] = probe;
        entry
    }

    /// For the transcript.
    pub(super) fn told(&self) -> String {
        let steps = self.steps.iter().map(|step| {
            format!(
                "{} after {:?} {:?}, {} pods of {}m cpu for {} ms, its template {} ms later: {:?}",
                step.letter,
                step.targets,
                step.waits,
                step.pods,
                step.milli_cpu,
                step.runs_ms,
                step.template_after_ms,
                step.ends
            )
        });
        let steps: Vec<String> = steps.collect();
        format!(
            "{} at {} ms retains {:?}, deleted {:?}: {}",
            self.name(),
            self.at_ms,
            self.retains,
            self.deleted,
            steps.join("; ")
        )
    }

    /// Its steps by the names of their jobs.
    pub(super) fn by_job(&self) -> BTreeMap<String, &Step> {
        let steps = self.steps.iter();
        steps.map(|step| (self.job(step), step)).collect()
    }
}

fn spec(step: &Step) -> Value {
    let exit_code = if step.ends == Ends::Badly { "1" } else { "0" };
    let mut spec = job_spec(step.pods, step.milli_cpu, step.runs_ms, exit_code);
    if step.ends == Ends::AndGoes {
        spec["ttlSecondsAfterFinished"] = json!(3);
    }
    spec
}

/// The spec of a job of one task.
pub(super) fn job_spec(pods: i64, milli_cpu: i64, runs_ms: i64, exit_code: &str) -> Value {
    json!({
        "minAvailable": pods,
        "schedulerName": "volcano",
        "maxRetry": 2,
        "tasks": [{
            "name": "work",
            "replicas": pods,
            "template": plain_template(milli_cpu, runs_ms, exit_code),
        }],
    })
}
