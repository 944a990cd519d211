//! What must have become of a flow: each of its jobs was made once and after those that it waits for, the
//! flow says rightly how it went, and what it was not to keep has gone.

use std::collections::BTreeMap;

use api::kind::Kind;
use serde_json::Value;

use super::super::flow::{Ends, Flow, Retains, Step, Waits};
use super::{AtRest, finding, left_of};
use crate::chronicle::Life;
use crate::judge::Finding;
use crate::stored::{list, text};

/// A flow with the lives of its jobs.
struct Told<'a> {
    flow: &'a Flow,
    rest: &'a AtRest<'a>,
    /// The first life of each job, by name.
    lives: BTreeMap<&'a str, &'a Life>,
    findings: Vec<Finding>,
}

pub(super) fn of(flow: &Flow, rest: &AtRest<'_>) -> Vec<Finding> {
    let stem = format!("{}-", flow.name());
    let mut lives: BTreeMap<&str, &Life> = BTreeMap::new();
    let mut findings = Vec::new();
    for life in rest.world.lives(&stem) {
        let known = lives.entry(&life.name).or_insert(life);
        if known.uid != life.uid && !life.is_overdue && !known.is_overdue {
            findings.push(finding("flow", format!("{} was made again", life.name)));
        }
    }
    let mut told = Told {
        flow,
        rest,
        lives,
        findings,
    };
    told.order();
    match flow.deleted {
        Some(_) => told.findings.extend(left_of(&flow.name(), rest)),
        None => told.end(),
    }
    told.findings
}

impl Told<'_> {
    fn find(&mut self, text: String) {
        self.findings.push(finding("flow", text));
    }

    /// No job was made before those that it waits for had come far enough.
    fn order(&mut self) {
        for (name, step) in self.flow.by_job() {
            let Some(life) = self.lives.get(&*name).filter(|life| !life.is_overdue) else {
                continue;
            };
            let made = life.made;
            for target in step.targets {
                let target = &self.flow.steps[*target];
                let other = self.flow.job(target);
                let came = self
                    .lives
                    .get(&*other)
                    .and_then(|life| came_far_enough(life, step, target));
                if came.is_none_or(|came| made < came) {
                    self.find(format!(
                        "{name} was made at {made}, and {other}, which it waits for, was ready at {came:?}"
                    ));
                }
            }
        }
    }

    /// A flow that nobody has deleted has come to its end.
    fn end(&mut self) {
        let name = self.flow.name();
        let Some(object) = self.rest.named(Kind::JobFlow, &name) else {
            self.find(format!("{name} is not there"));
            return;
        };
        let phase = text(&object["status"]["state"]["phase"]).to_owned();
        let is_hurt = (self.lives.values()).any(|life| self.rest.world.is_hurt(&life.uid));
        let fails = self.flow.steps.iter().any(|step| step.ends == Ends::Badly);
        match (&*phase, fails) {
            ("Failed", true) => self.failed(),
            ("Succeed", false) => self.succeeded(object),
            ("Failed", false) if is_hurt => self.failed(),
            _ => self.find(format!("{name} is {}", object["status"])),
        }
        for (job, step) in self.flow.by_job() {
            self.listed(&job, step);
        }
    }

    fn succeeded(&mut self, object: &Value) {
        let completed = list(&object["status"]["completedJobs"]);
        for (job, step) in self.flow.by_job() {
            let life = self.lives.get(&*job);
            if life.is_none_or(|life| life.completed().is_none()) {
                self.find(format!(
                    "{job} has not completed, and its flow has succeeded"
                ));
            }
            if !completed.iter().any(|name| *name == job) {
                self.find(format!(
                    "{job} is not among those that have completed: {completed:?}"
                ));
            }
            let is_there = self.rest.named(Kind::VcJob, &job).is_some();
            let is_kept = self.flow.retains == Retains::All && !step.goes();
            if is_there != is_kept {
                let said = if is_there { "still" } else { "no longer" };
                self.find(format!(
                    "{job} is {said} there after its flow has succeeded"
                ));
            }
        }
    }

    /// What was on its way when a job failed has ended, and what waits for the failed one never began.
    fn failed(&mut self) {
        for (job, step) in self.flow.by_job() {
            let Some(life) = self.lives.get(&*job) else {
                continue;
            };
            if life.over().is_none() {
                self.find(format!("{job} is not over, and its flow has failed"));
            } else if self.flow.is_cut_off(step) && !life.is_overdue {
                self.find(format!("{job} was made after what it waits for has failed"));
            }
        }
    }

    /// The template of a job says whether there is one.
    fn listed(&mut self, job: &str, step: &Step) {
        let name = self.flow.template(step);
        let template = self.rest.named(Kind::JobTemplate, &name);
        let said = template.map_or(&Value::Null, |it| &it["status"]["jobDependsOnList"]);
        let said: Vec<&str> = list(said).iter().map(text).collect();
        let is_there = self.rest.named(Kind::VcJob, job).is_some();
        let wanted: &[&str] = if is_there { &[job] } else { &[] };
        if template.is_none() || said != wanted {
            self.find(format!("{name} says {said:?} and should say {wanted:?}"));
        }
    }
}

/// When a job had come as far as a step waits for.
fn came_far_enough(life: &Life, step: &Step, target: &Step) -> Option<u64> {
    let pods = usize::try_from(target.pods).unwrap_or(0);
    let has_run = match step.waits {
        Waits::Completed => None,
        Waits::Running | Waits::Listening | Waits::Answering => life.ready(pods),
    };
    has_run.into_iter().chain(life.completed()).min()
}
