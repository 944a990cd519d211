//! Random workloads: what a user does from one seed, and what must have become of it in the end.
//!
//! Every part is small and every gang fits the cluster alone (but those that are made too large on
//! purpose), so that in the end each part stands as its fate says, whatever went wrong meanwhile.

mod manifest;
mod part;
mod verdict;

use api::call::{self, Call};
use api::intent::{Action, Intent, ObjectKey, Propagation};
use api::kind::Kind;
use api::quantity::{Format, Quantity};
use serde_json::{Value, json};

use crate::judge::Finding;
use crate::random::Random;
use crate::settings::{Faults, Settings};
use crate::world::World;
use part::{Fate, Part};

/// Faults end after so long.
const FAULTS_MS: i64 = 20_000;

/// A workload with its world.
#[derive(Clone, Debug)]
pub struct Story {
    settings: Settings,
    parts: Vec<Part>,
}

impl Story {
    /// The story of a seed.
    pub fn draw(seed: u64) -> Story {
        let mut random = Random::new(seed);
        let mut settings = Settings::new(seed);
        settings.faults = faults(&mut random);
        settings.latency_ms_max = [2, 20, 200, 2_000][pick(&mut random, 4)];
        settings.nodes.nodes = 1 + u32::try_from(pick(&mut random, 4)).unwrap_or(0);
        let cores = random.between(2, 6);
        settings.nodes.cpu = Quantity::from_value(cores, Format::DecimalSi);
        let room = cores * i64::from(settings.nodes.nodes);
        let count = 1 + pick(&mut random, 6);
        let parts = (0..count)
            .map(|index| Part::draw(&mut random, index, cores, room))
            .collect();
        Story { settings, parts }
    }

    /// The world that it is played in.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Hands everything that the user does to a world.
    pub fn tell(&self, world: &mut World) {
        world.note(&format!(
            "{} nodes of {} cpu, {} ms at most on the wire",
            self.settings.nodes.nodes, self.settings.nodes.cpu, self.settings.latency_ms_max
        ));
        for part in &self.parts {
            world.note(&part.told());
            self.schedule(part, world);
        }
    }

    /// What is not as it must be once the world is quiet.
    pub fn verdict(&self, world: &mut World) -> Vec<Finding> {
        let mut findings = Vec::new();
        for part in &self.parts {
            findings.extend(verdict::of(part, world));
        }
        findings
    }

    fn schedule(&self, part: &Part, world: &mut World) {
        let name = part.name();
        let at = part.at_ms;
        match &part.fate {
            Fate::Bare => {
                for pod in manifest::bare_pods(part) {
                    world.insist(at, create(Kind::Pod, pod));
                }
                return;
            }
            Fate::Batch => {
                world.insist(at, create(Kind::BatchJob, manifest::batch_job(part)));
                return;
            }
            _ => {}
        }
        world.insist(at, create(Kind::VcJob, manifest::job(part)));
        match &part.fate {
            Fate::LateClaim { after_ms } => {
                let claim = manifest::claim(&format!("{name}-data"));
                world.insist(at + after_ms, create(Kind::PersistentVolumeClaim, claim));
            }
            Fate::LateQueue { after_ms } => {
                let queue = json!({
                    "apiVersion": "scheduling.volcano.sh/v1beta1",
                    "kind": "Queue",
                    "metadata": { "name": manifest::LATE_QUEUE },
                    "spec": { "weight": 1 },
                });
                world.insist(at + after_ms, create(Kind::Queue, queue));
            }
            Fate::Deleted {
                after_ms,
                propagation,
            } => {
                let target = Kind::VcJob.path("default", &name);
                world.insist(at + after_ms, delete(target, *propagation));
            }
            Fate::Suspended { after_ms, for_ms } => {
                world.command(at + after_ms, &name, "AbortJob");
                world.command(at + after_ms + for_ms, &name, "ResumeJob");
            }
            Fate::LosesPod { after_ms } | Fate::RestartsForPod { after_ms } => {
                let target = Kind::Pod.path("default", &format!("{name}-work-0"));
                world.call(at + after_ms, delete(target, Propagation::Background));
            }
            _ => {}
        }
    }
}

fn faults(random: &mut Random) -> Faults {
    let mut often = |values: [u64; 4]| values[pick(random, 4)];
    Faults {
        until_ms: FAULTS_MS,
        watch_drop_once_in: often([0, 200, 40, 10]),
        watch_expiry_once_in: often([0, 0, 10, 3]),
        answer_loss_once_in: often([0, 100, 20, 5]),
        request_loss_once_in: often([0, 100, 20, 5]),
        refusal_once_in: often([0, 100, 10, 3]),
        no_pods_until_ms: 0,
        crash_once_in: often([0, 0, 100, 20]),
        pause_once_in: 0,
        pause_ms_max: 0,
        down_ms_max: [0, 100, 5_000][pick(random, 3)],
        crash_at_write: 0,
    }
}

fn pick(random: &mut Random, count: i64) -> usize {
    usize::try_from(random.between(0, count - 1)).unwrap_or(0)
}

fn create(kind: Kind, body: Value) -> Call {
    let meta = &body["metadata"];
    let namespace = meta["namespace"].as_str().unwrap_or("");
    let name = meta["name"].as_str().unwrap_or("");
    call::write(&Intent {
        target: ObjectKey::new(kind, namespace, name),
        action: Action::Create { body },
    })
}

/// A user's delete, which has no precondition.
fn delete(target: String, propagation: Propagation) -> Call {
    let policy = match propagation {
        Propagation::Background => "Background",
        Propagation::Foreground => "Foreground",
        Propagation::Orphan => "Orphan",
    };
    let options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": policy,
    });
    Call {
        method: "DELETE",
        target,
        content_type: "application/json",
        body: options.to_string().into_bytes(),
    }
}
