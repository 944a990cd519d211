//! What a fleet remembers of one pod.

use api::core::{Pod, PodCondition, PodPhase};
use api::intent::WriteOutcome;
use api::shared::{List, Word};
use api::time::Time;
use api::volcano::NPU_CORE;

use crate::SIM_EXIT_CODE;
use crate::stage::{Life, Stage, draw};

/// First wait before an ended container is started again; doubled each time.
const RESTART_MS: i64 = 10_000;
/// Longest wait before an ended container is started again.
const RESTART_MS_MAX: i64 = 300_000;
/// Wait before a write that failed is wanted again; doubled each time.
const AGAIN_MS: i64 = 500;
/// Longest such wait: a kubelet goes through what it could not tell every 10 s.
const AGAIN_MS_MAX: i64 = 10_000;
/// Grace of pods that state none.
const GRACE_SECONDS: i64 = 30;

/// A pod of this fleet.
#[derive(Debug)]
pub(crate) struct Resident {
    pub uid: Box<str>,
    /// As last seen.
    pub resource_version: Word,
    pub revision: u64,
    pub node: u32,
    /// Last part of its address.
    pub slot: u8,
    pub life: Life,
    pub restarts: i32,
    /// Since when it has been in this life, finer than the wire tells.
    pub since: Time,
    /// Which stage comes next, and when.
    pub next: Option<(usize, Time)>,
    /// When the fleet will look again.
    pub armed: Option<Time>,
    /// A write is on its way.
    pub writing: bool,
    /// How many writes in a row have failed.
    pub failures: u32,
    /// Nothing is decided before this revision is seen.
    pub wait_for: u64,
    pub exit_code: i32,
    /// Ascend chips that it was given, in its scheduler's words.
    pub chips: Option<Box<str>>,
    pub restart_policy: Box<str>,
    /// Their times count from its start.
    pub conditions: List<PodCondition>,
    pub start_time: Option<Time>,
    pub containers: Vec<Part>,
    pub init_containers: Vec<Part>,
}

/// A container, as far as its status needs it.
#[derive(Debug)]
pub(crate) struct Part {
    pub name: Box<str>,
    pub image: Box<str>,
    /// An init container that stays.
    pub sidecar: bool,
}

impl Resident {
    /// A pod of the node of this number as it is seen; `None` for one that is nothing to this fleet
    /// any more.
    pub(crate) fn of(pod: &Pod, node: u32, now: Time) -> Option<Resident> {
        let deleted = pod.metadata.deletion_timestamp.is_some();
        // A pod that only finalizers hold has been let go already.
        if deleted && pod.metadata.deletion_grace_period_seconds == Some(0) {
            return None;
        }
        let parts = |containers: &[api::core::Container]| {
            let part = |container: &api::core::Container| Part {
                name: container.name.clone(),
                image: container.image.clone(),
                sidecar: container.restart_policy.as_deref() == Some("Always"),
            };
            containers.iter().map(part).collect()
        };
        let annotation = pod.metadata.annotations.get(SIM_EXIT_CODE);
        let main = pod.status.container_statuses.first();
        let running = main.and_then(|status| status.state.running.as_ref());
        let life = Life::of(pod.status.phase, deleted)?;
        let told = match life {
            Life::Running => running
                .and_then(|running| pod.status.at(running.started_at))
                .or(pod.status.start_time),
            Life::Pending | Life::Deleted => None,
        };
        // The wire tells whole seconds, so the truth lies within the second after.
        let since = told.map(|told| told.max(now.min(Time(told.0.saturating_add(999_999)))));
        Some(Resident {
            uid: pod.metadata.uid.clone(),
            resource_version: pod.metadata.resource_version.clone(),
            revision: pod.metadata.revision(),
            node,
            slot: slot_of(&pod.status.pod_ip),
            life,
            restarts: main.map_or(0, |status| status.restart_count),
            since: since.unwrap_or(now),
            next: None,
            armed: None,
            writing: false,
            failures: 0,
            wait_for: 0,
            exit_code: annotation.and_then(|code| code.parse().ok()).unwrap_or(0),
            chips: pod
                .metadata
                .annotations
                .get(NPU_CORE)
                .map(|it| (**it).into()),
            restart_policy: pod.spec.restart_policy.clone(),
            conditions: pod.status.conditions.clone(),
            start_time: pod.status.start_time,
            containers: parts(&pod.spec.containers),
            init_containers: parts(&pod.spec.init_containers),
        })
    }

    /// Which stage comes next, and when.
    pub(crate) fn plan(&self, pod: &Pod, stages: &[Stage], seed: u64) -> Option<(usize, Time)> {
        let annotations = &pod.metadata.annotations;
        let applies = |stage: &Stage| {
            stage.life == self.life
                && stage
                    .annotations
                    .iter()
                    .all(|key| annotations.contains_key(key))
        };
        let index = stages.iter().position(applies)?;
        let stage = &stages[index];
        let stated = annotations.get(stage.delay_from).map(|text| &**text);
        let mut delay = stage.delay_micros(stated, draw(seed, &[&self.uid, stage.name]));
        match self.life {
            Life::Deleted => {
                let grace = pod.metadata.deletion_grace_period_seconds;
                delay = delay.min(grace.unwrap_or(GRACE_SECONDS).saturating_mul(1_000_000));
            }
            Life::Running => delay = delay.saturating_add(self.restart_wait_ms() * 1_000),
            Life::Pending => {}
        }
        Some((index, Time(self.since.0.saturating_add(delay))))
    }

    /// How long it waits after such an answer before it would write again.
    pub(crate) fn wait_after(&mut self, outcome: &WriteOutcome) -> i64 {
        let before = self.failures;
        self.failures = match outcome {
            WriteOutcome::Done { .. } => 0,
            WriteOutcome::Refused(_) | WriteOutcome::Unknown { .. } => before.saturating_add(1),
        };
        (AGAIN_MS << before.min(5)).min(AGAIN_MS_MAX)
    }

    /// How long a container that has been restarted waited for that.
    fn restart_wait_ms(&self) -> i64 {
        match self.restarts {
            ..=0 => 0,
            n => {
                let doublings = u32::try_from(n - 1).unwrap_or(0).min(8);
                (RESTART_MS << doublings).min(RESTART_MS_MAX)
            }
        }
    }

    /// Whether an ended container is started again.
    pub(crate) fn restarts_after_end(&self) -> bool {
        match &*self.restart_policy {
            "Never" => false,
            "OnFailure" => self.exit_code != 0,
            _ => true,
        }
    }

    /// The phase of the pod once its containers have ended for good.
    pub(crate) fn end_phase(&self) -> PodPhase {
        if self.exit_code == 0 {
            PodPhase::Succeeded
        } else {
            PodPhase::Failed
        }
    }
}

fn slot_of(address: &str) -> u8 {
    let last = address.rsplit('.').next().unwrap_or_default();
    last.parse().unwrap_or(0)
}
