//! Random workloads: what a user does from one seed, and what must have become of it in the end.
//!
//! Every part is small and every gang fits the cluster alone (but those that are made too large on
//! purpose), so that in the end each part stands as its fate says, whatever went wrong meanwhile.

mod cron;
mod edit;
mod flow;
mod manifest;
mod part;
mod series;
mod shape;
mod tree;
mod verdict;

use api::call::{self, Call};
use api::intent::{Action, Intent, ObjectKey, Propagation};
use api::kind::Kind;
use api::quantity::{Format, Quantity};
use serde_json::{Value, json};

use crate::calls::merge;
use crate::coverage::Phase;
use crate::fault::{FAULTS, Fault, Strikes};
use crate::judge::Finding;
use crate::random::Random;
use crate::settings::{Faults, Settings};
use crate::world::World;
use edit::Edit;
use part::{Fate, Ground, Part};
use series::Series;
use tree::Tree;

/// How far apart the things of a story are.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Faults end after so long.
    faults_ms: i64,
    /// Parts come within so long.
    parts_ms: i64,
    /// What happens to a part happens within so long.
    after_ms: i64,
    /// A pod runs so long at most.
    runs_ms: i64,
}

/// A few parts in a hurry.
const SHORT: Pace = Pace {
    faults_ms: 20_000,
    parts_ms: 8_000,
    after_ms: 6_000,
    runs_ms: 6_000,
};

/// What a cluster sees in an hour, over half an hour to an hour.
const LONG: Pace = Pace {
    faults_ms: 0,
    parts_ms: 0,
    after_ms: 120_000,
    runs_ms: 240_000,
};

/// Nodes of a long story, and parts an hour.
const NODES: u32 = 20;
const PARTS_AN_HOUR: i64 = 50;
/// Claims that nobody mounts, in a story that is keen on a phase without jobs.
const CLAIMS: usize = 30;
const HOUR_MS: i64 = 3_600_000;

/// A workload with its world.
#[derive(Clone, Debug)]
pub struct Story {
    settings: Settings,
    tree: Tree,
    has_priorities: bool,
    parts: Vec<Part>,
    edits: Vec<Edit>,
    series: Vec<Series>,
}

impl Story {
    /// The story of a seed.
    pub fn draw(seed: u64) -> Story {
        let mut random = Random::new(seed);
        let mut settings = Settings::new(seed);
        settings.faults = faults(&mut random, SHORT.faults_ms);
        settings.latency_ms_max = [2, 20, 200, 2_000][pick(&mut random, 4)];
        settings.log_every_ms = Some([5_000, 60_000, 600_000][(seed % 3) as usize]);
        settings.nodes.nodes = 1 + u32::try_from(pick(&mut random, 4)).unwrap_or(0);
        let cores = random.between(2, 6);
        settings.nodes.cpu = Quantity::from_value(cores, Format::DecimalSi);
        let room = cores * i64::from(settings.nodes.nodes);
        let count = 1 + pick(&mut random, 6);
        let people = People::draw(seed, room);
        let ground = people.ground(cores, room, &SHORT);
        let parts = (0..count)
            .map(|index| Part::draw(&mut random, index, &ground))
            .collect();
        let story = people.story(settings, parts, &SHORT);
        story.with_shapes().with_series(&SHORT)
    }

    /// The long story of a seed: twenty nodes, fifty parts an hour, and faults from its beginning
    /// until everybody has come. One in three has every fault there is.
    pub fn draw_long(seed: u64) -> Story {
        let mut random = Random::new(seed);
        let mut settings = Settings::new(seed);
        let parts_ms = random.between(HOUR_MS / 2, HOUR_MS);
        let pace = Pace {
            faults_ms: parts_ms,
            parts_ms,
            ..LONG
        };
        settings.faults = long_faults(&mut random, parts_ms);
        // A log costs a tenth of a story, and playing it again as much as the drivers did.
        settings.log_every_ms = seed.is_multiple_of(4).then_some(600_000);
        settings.latency_ms_max = [2, 20, 200][pick(&mut random, 3)];
        settings.replicas = 1 + u32::try_from(pick(&mut random, 3)).unwrap_or(0);
        settings.nodes.nodes = NODES;
        let cores = [4, 8, 16][pick(&mut random, 3)];
        settings.nodes.cpu = Quantity::from_value(cores, Format::DecimalSi);
        let room = cores * i64::from(NODES);
        let count = usize::try_from(parts_ms * PARTS_AN_HOUR / HOUR_MS).unwrap_or(1);
        let people = People::draw(seed, room);
        let mut ground = people.ground(cores, room, &pace);
        ground.has_lull = settings.faults.keen_on == Some(Phase::Idle);
        ground.has_sidecars = settings.faults.keen_on.is_some();
        let parts = (0..count)
            .map(|index| Part::draw(&mut random, index, &ground))
            .collect();
        let keen_on = settings.faults.keen_on;
        let mut story = people.story(settings, parts, &pace);
        story.stores(seed, keen_on, parts_ms);
        story.with_shapes().with_series(&pace)
    }

    /// Where a story is keen on a phase in which no job would want a volume, somebody does.
    fn stores(&mut self, seed: u64, keen_on: Option<Phase>, until_ms: i64) {
        let times = match keen_on {
            Some(Phase::Idle) => (until_ms / 4, until_ms),
            Some(Phase::LeaderChange) => (0, until_ms),
            _ => return,
        };
        let mut random = Random::new(seed ^ 0x7374_6f72_6573_0001);
        let from = self.parts.len() + self.edits.len();
        let claims = (from..from + CLAIMS).map(|index| Edit::stores(&mut random, index, times));
        self.edits.extend(claims);
    }

    /// The same without a fault.
    pub fn without(&self, fault: Fault) -> Story {
        let mut story = self.clone();
        story.settings.faults.set(fault, 0);
        story
    }

    /// The same with these faults only.
    pub fn with_faults(&self, kept: &[Fault]) -> Story {
        let mut story = self.clone();
        story
            .settings
            .faults
            .rates
            .retain(|fault, _| kept.contains(fault));
        story
    }

    /// The same with these parts only, by their numbers.
    pub fn with_parts(&self, kept: &[usize]) -> Story {
        let mut story = self.clone();
        story.parts.retain(|part| kept.contains(&part.index));
        story.edits.retain(|edit| kept.contains(&edit.index));
        story.series.retain(|series| kept.contains(&series.index()));
        story
    }

    /// The same with so many drivers.
    pub fn with_replicas(&self, replicas: u32) -> Story {
        let mut story = self.clone();
        story.settings.replicas = replicas;
        story
    }

    /// The numbers of its parts, and after them those of what somebody changes, and of series.
    pub fn parts(&self) -> Vec<usize> {
        let parts = self.parts.iter().map(|part| part.index);
        let edits = self.edits.iter().map(|edit| edit.index);
        let series = self.series.iter().map(Series::index);
        parts.chain(edits).chain(series).collect()
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
        if self.has_priorities {
            for class in manifest::priorities() {
                world.insist(0, create(Kind::PriorityClass, class));
            }
        }
        if !self.tree.queues.is_empty() {
            world.note(&self.tree.told());
        }
        for at in 0..self.tree.queues.len() {
            world.insist(0, create(Kind::Queue, self.tree.manifest(at)));
        }
        let has_copies = self.parts.iter().any(Part::is_copy);
        if has_copies || self.edits.iter().any(Edit::needs_class) {
            world.insist(0, create(Kind::StorageClass, manifest::class_at_once()));
        }
        if has_copies {
            world.insist(0, create(Kind::PersistentVolumeClaim, manifest::source()));
        }
        for part in &self.parts {
            world.note(&part.told());
            self.schedule(part, world);
        }
        for edit in &self.edits {
            world.note(&edit.told());
            edit.schedule(&self.tree, world);
        }
        for series in &self.series {
            world.note(&series.told());
            series.schedule(world);
        }
    }

    /// What is not as it must be once the world is quiet.
    pub fn verdict(&self, world: &mut World) -> Vec<Finding> {
        let rest = verdict::AtRest::of(world);
        let mut findings = Vec::new();
        for part in &self.parts {
            findings.extend(verdict::of(part, &rest));
        }
        for queue in &self.tree.queues {
            findings.extend(verdict::of_queue(&queue.name, &rest));
        }
        let sound_ms = self.sound_ms();
        for series in &self.series {
            findings.extend(verdict::of_series(series, sound_ms, &rest));
        }
        findings
    }

    /// So many milliseconds after the beginning, nobody waits any more for what went wrong before: waits
    /// grow with the time for which it did, and the clock of a driver may have been ahead.
    fn sound_ms(&self) -> i64 {
        const LONG_WAIT_MS: i64 = 480_000;
        const LEAP_MS: i64 = 600_000;
        let faults = &self.settings.faults;
        let leap_ms = match faults.has(Fault::ClockJump) {
            true => LEAP_MS,
            false => 0,
        };
        faults.until_ms + (3 * faults.until_ms).min(LONG_WAIT_MS) + leap_ms
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
            Fate::BatchSuspended {
                parallelism,
                after_ms,
                for_ms,
            } => {
                world.insist(at, create(Kind::BatchJob, manifest::batch_job(part)));
                let target = Kind::BatchJob.path("default", &name);
                let fewer = json!({ "spec": { "parallelism": parallelism } });
                let resumed = json!({ "spec": { "suspend": false } });
                world.insist(at + after_ms, merge(&target, &fewer));
                world.insist(at + after_ms + for_ms, merge(&target, &resumed));
                return;
            }
            _ => {}
        }
        world.insist(at, create(Kind::VcJob, manifest::job(part)));
        match &part.fate {
            Fate::Eased { after_ms } => {
                let steps = manifest::resized(part, part.workers, 1);
                world.insist(at + after_ms, steps_on(Kind::VcJob, &name, &steps));
            }
            Fate::Scaled { after_ms, workers } => {
                let steps = manifest::resized(part, *workers, workers + part.helpers);
                world.insist(at + after_ms, steps_on(Kind::VcJob, &name, &steps));
            }
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

/// What a story has of queues, priorities and changes: each seed has some of it. It is drawn apart,
/// so that a story without any is what it was before there were such things.
struct People {
    random: Random,
    tree: Tree,
    has_priorities: bool,
    has_edits: bool,
}

impl People {
    fn draw(seed: u64, room: i64) -> People {
        let mut random = Random::new(seed ^ 0x7065_6f70_6c65_0001);
        let tree = match random.once_in(2) {
            true => Tree::draw(&mut random, room * 1_000),
            false => Tree::default(),
        };
        People {
            has_priorities: random.once_in(3),
            has_edits: random.once_in(2),
            random,
            tree,
        }
    }

    fn ground<'a>(&'a self, cores: i64, room: i64, pace: &'a Pace) -> Ground<'a> {
        Ground {
            cores,
            room,
            pace,
            tree: &self.tree,
            has_priorities: self.has_priorities,
            has_edits: self.has_edits,
            has_lull: false,
            has_sidecars: false,
        }
    }

    fn story(mut self, settings: Settings, parts: Vec<Part>, pace: &Pace) -> Story {
        let most = i64::try_from(parts.len() / 4).unwrap_or(0) + 2;
        let count = match self.has_edits {
            true => 1 + pick(&mut self.random, most),
            false => 0,
        };
        let (nodes, n_parts) = (settings.nodes.nodes, parts.len());
        let edits = (0..count).map(|at| {
            let index = n_parts + at;
            Edit::draw(&mut self.random, index, &self.tree, nodes, n_parts, pace)
        });
        Story {
            edits: edits.collect(),
            series: Vec::new(),
            settings,
            has_priorities: self.has_priorities,
            parts,
            tree: self.tree,
        }
    }
}

/// What goes wrong: of each seed, some.
fn faults(random: &mut Random, until_ms: i64) -> Faults {
    let mut faults = Faults {
        until_ms,
        down_ms_max: [0, 100, 5_000][pick(random, 3)],
        ..Faults::NONE
    };
    for row in FAULTS {
        let rates: [u64; 3] = match row.strikes {
            Strikes::OnceIn => [100, 20, 5],
            Strikes::OnceInFew => [20, 5, 2],
            Strikes::Every => [30, 10, 4],
        };
        let rate = rates[pick(random, 3)];
        if random.once_in(4) {
            faults.set(row.fault, rate);
        }
    }
    faults
}

/// What goes wrong in a long story: everything in one of three, else of each seed, some.
fn long_faults(random: &mut Random, until_ms: i64) -> Faults {
    let mut faults = Faults {
        until_ms,
        down_ms_max: [100, 5_000, 60_000][pick(random, 3)],
        // Most is seldom tried while nobody works, in the moment of a start, and between two leaders.
        keen_on: match pick(random, 9) {
            0 => Some(Phase::Idle),
            1 => Some(Phase::Binding),
            2 => Some(Phase::LeaderChange),
            _ => None,
        },
        ..Faults::NONE
    };
    let is_everything = random.once_in(3);
    for row in FAULTS {
        let rates: [u64; 3] = match row.strikes {
            Strikes::OnceIn => [1_000, 200, 50],
            Strikes::OnceInFew => [50, 10, 3],
            Strikes::Every => [600, 240, 90],
        };
        let rate = rates[pick(random, 3)];
        if random.once_in(3) || is_everything {
            faults.set(row.fault, rate);
        }
    }
    faults
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

/// A user's change step by step, which names no version.
fn steps_on(kind: Kind, name: &str, steps: &Value) -> Call {
    Call {
        content_type: "application/json-patch+json",
        ..merge(&kind.path("default", name), steps)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every queue, edit and edited fate is drawn by some seeds, and none of them by others.
    #[test]
    fn each_seed_has_some_of_what_people_do() {
        let words = [
            "Closes",
            "Cordons",
            "Deletes",
            "Notes",
            "Recaps",
            "Reweighs",
            "BatchSuspended",
            "Eased",
            "Scaled",
            " in queue-",
            " as high",
            "Partitions",
            "Stages",
            "flow-",
            "Listening",
            "Answering",
            "GoesByFlow",
            "cron-",
            "Forbid",
            "Asia/Kolkata",
        ];
        let stories: Vec<String> = (0..200)
            .map(|seed| {
                let story = Story::draw_long(seed);
                let parts = story.parts.iter().map(Part::told);
                let edits = story.edits.iter().map(Edit::told);
                let series = story.series.iter().map(Series::told);
                let all = parts.chain(edits).chain(series);
                all.collect::<Vec<_>>().join("\n")
            })
            .collect();
        for word in words {
            let count = stories.iter().filter(|told| told.contains(word)).count();
            assert!((10..190).contains(&count), "{word}: {count} of 200 stories");
        }
    }
}
