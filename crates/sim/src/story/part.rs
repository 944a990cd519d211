//! One part of a story: a job, or pods without one, and its fate.

use api::intent::Propagation;

use super::shape::Shape;
use super::tree::{Place, Tree};
use super::{Pace, pick};
use crate::random::Random;

/// Priority classes, with their values.
pub(super) const PRIORITIES: [(&str, i64); 3] = [("low", 1), ("middle", 10), ("high", 100)];

/// Retries that every job of a story has.
pub(super) const RETRIES: i64 = 2;

/// A workload that somebody submits.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) index: usize,
    /// Created so long after the beginning.
    pub(super) at_ms: i64,
    /// Pods of the first task.
    pub(super) workers: i64,
    /// Pods of a second task; 0 for none.
    pub(super) helpers: i64,
    /// What each pod asks of cpu, in thousandths.
    pub(super) milli_cpu: i64,
    /// How long each pod runs.
    pub(super) runs_ms: i64,
    /// Claims that the job makes for itself.
    pub(super) own_claims: i64,
    /// Plugins `env` and `svc`.
    pub(super) has_service: bool,
    pub(super) has_sidecar: bool,
    /// None for the default queue.
    pub(super) queue: Option<String>,
    /// None where the story has no priority classes.
    pub(super) priority: Option<&'static str>,
    pub(super) fate: Fate,
    pub(super) shape: Shape,
}

/// What parts are drawn on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ground<'a> {
    /// What a node has.
    pub(super) cores: i64,
    /// What all nodes have.
    pub(super) room: i64,
    pub(super) pace: &'a Pace,
    pub(super) tree: &'a Tree,
    /// There are priority classes.
    pub(super) has_priorities: bool,
    /// Parts are changed while they live.
    pub(super) has_edits: bool,
    /// No job is there for a long time: all come early and end by themselves, and half of the parts
    /// are pods without one, which come later.
    pub(super) has_lull: bool,
    /// Every pod has a sidecar, not only those of each third part.
    pub(super) has_sidecars: bool,
}

/// What happens to a part, and so what must have become of it in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Runs and completes.
    Completes,
    /// Completes, and is removed after its time to live.
    Expires,
    /// A claim that it names comes later, then it completes.
    LateClaim { after_ms: i64 },
    /// A claim that it names never comes.
    NoClaim,
    /// Its queue comes later; until then it is refused.
    LateQueue { after_ms: i64 },
    /// Asks for more than there is.
    TooLarge,
    /// The first task's pods fail, and this action is the answer; none for the default.
    Fails { action: &'static str },
    /// Is deleted.
    Deleted {
        after_ms: i64,
        propagation: Propagation,
    },
    /// Starts with one pod, and has more than there is room for at once.
    Elastic,
    /// Is suspended, and resumed later.
    Suspended { after_ms: i64, for_ms: i64 },
    /// Somebody deletes its first pod, for which its policy restarts the job.
    RestartsForPod { after_ms: i64 },
    /// Somebody deletes its first pod, which is made good.
    LosesPod { after_ms: i64 },
    /// Pods without a job.
    Bare,
    /// A Job of Kubernetes' own.
    Batch,
    /// The same, suspended at first; so many of its pods may run at a time before it is resumed.
    BatchSuspended {
        parallelism: i64,
        after_ms: i64,
        for_ms: i64,
    },
    /// Asks for more than there is, until somebody lets it start with one pod.
    Eased { after_ms: i64 },
    /// Somebody gives its first task another number of pods, and its minimum with it.
    Scaled { after_ms: i64, workers: i64 },
}

impl Part {
    /// Whether its first own claim is a copy of another one.
    pub(super) fn is_copy(&self) -> bool {
        self.own_claims > 0 && self.index.is_multiple_of(2)
    }

    pub(super) fn draw(random: &mut Random, index: usize, ground: &Ground<'_>) -> Part {
        let Ground {
            cores, room, pace, ..
        } = *ground;
        let is_late = ground.has_lull && index % 4 < 2;
        let fate = match Fate::draw(random, ground) {
            _ if is_late => Fate::Bare,
            fate if ground.has_lull && fate.is_endless() => Fate::Completes,
            fate => fate,
        };
        let place = match fate {
            // Pods of no vcjob and the late queue's are not in the tree.
            Fate::Bare | Fate::Batch | Fate::BatchSuspended { .. } | Fate::LateQueue { .. } => {
                Place {
                    queue: None,
                    sure_milli: ground.tree.sure_of_others(),
                }
            }
            _ => ground.tree.pick(random),
        };
        let milli_cpu = [250, 500, 1_000, 2_000][pick(random, 4)].min(cores * 1_000);
        // What is to be too much for a cluster is so with few pods.
        let is_large = fate.is_large() && room > 50;
        let milli_cpu = if is_large { cores * 1_000 } else { milli_cpu };
        let sure_milli = place.sure_milli.unwrap_or(i64::MAX);
        let milli_cpu = milli_cpu.min(sure_milli).max(1);
        let own_claims = random.between(0, 2);
        // All pods of one directory run on one node, bit by bit.
        let is_eased = matches!(fate, Fate::Eased { .. });
        let own_claims = if is_eased { 0 } else { own_claims };
        let has_claims = own_claims > 0 || matches!(fate, Fate::LateClaim { .. });
        // How many such pods the cluster takes; those that share a directory share its node.
        let nodes = if has_claims { 1 } else { room / cores };
        let per_node = cores * 1_000 / milli_cpu;
        let most = (per_node * nodes).min(sure_milli / milli_cpu).max(1);
        // Two queues of one weight that both want everything get a half each, for good.
        let is_apart = matches!(fate, Fate::LateQueue { .. }) && most > 1;
        let is_halved = is_apart && place.sure_milli.is_none();
        let most = if is_halved { most / 2 } else { most };
        let fate = match fate {
            Fate::LateQueue { .. } if !is_apart => Fate::Completes,
            fate => fate,
        };
        let workers = random.between(1, most.min(8));
        let helpers = random.between(0, (most - workers).min(3));
        let fate = match fate {
            Fate::Scaled { after_ms, .. } => Fate::Scaled {
                after_ms,
                workers: random.between(1, (most - helpers).min(8)),
            },
            fate => fate,
        };
        let workers = match fate {
            Fate::Elastic => workers + most,
            // Well above what the queue lets in by promise (overcommit).
            Fate::Eased { .. } | Fate::TooLarge => 2 * per_node * (room / cores) + 1,
            _ => workers,
        };
        Part {
            index,
            at_ms: match ground.has_lull {
                false => random.between(0, pace.parts_ms),
                true if is_late => random.between(pace.parts_ms / 2, pace.parts_ms),
                true => random.between(0, pace.parts_ms / 4),
            },
            workers,
            helpers,
            milli_cpu,
            runs_ms: random.between(50, fate.runs_ms(pace, &place)),
            own_claims,
            has_service: random.once_in(2),
            has_sidecar: ground.has_sidecars || index % 3 == 2,
            queue: place.queue,
            priority: match ground.has_priorities {
                true => Some(PRIORITIES[pick(random, 3)].0),
                false => None,
            },
            fate,
            shape: Shape::Plain,
        }
    }

    pub(super) fn name(&self) -> String {
        format!("part-{}", self.index)
    }

    /// For the transcript.
    pub(super) fn told(&self) -> String {
        format!(
            "{} at {} ms{}{}: {} workers and {} helpers of {}m cpu for {} ms, {} claims{}: {:?}{}",
            self.name(),
            self.at_ms,
            self.queue
                .as_ref()
                .map_or(String::new(), |queue| format!(" in {queue}")),
            self.priority
                .map_or(String::new(), |priority| format!(" as {priority}")),
            self.workers,
            self.helpers,
            self.milli_cpu,
            self.runs_ms,
            self.own_claims,
            if self.has_service { ", a service" } else { "" },
            self.fate,
            self.shape.told()
        )
    }
}

impl Fate {
    /// How long its pods run at most: whoever runs bit by bit, or shares a small queue with others,
    /// runs for a shorter time, or calm were not long enough.
    fn runs_ms(&self, pace: &Pace, place: &Place) -> i64 {
        let part = match (self, place.sure_milli) {
            (Fate::BatchSuspended { .. } | Fate::Eased { .. }, _) => 8,
            (Fate::Elastic, Some(_)) => 8,
            (_, Some(_)) => 2,
            (_, None) => 1,
        };
        pace.runs_ms / part
    }

    /// Whether it is to be too much for its place.
    fn is_large(&self) -> bool {
        matches!(self, Fate::Eased { .. } | Fate::Elastic | Fate::TooLarge)
    }

    /// Whether its job is never over.
    fn is_endless(&self) -> bool {
        matches!(
            self,
            Fate::NoClaim | Fate::TooLarge | Fate::Fails { action: "AbortJob" }
        )
    }

    fn draw(random: &mut Random, ground: &Ground<'_>) -> Fate {
        let pace = ground.pace;
        let after_ms = random.between(0, pace.after_ms);
        if ground.has_edits && random.once_in(5) {
            return Fate::edited(random, after_ms, pace);
        }
        match pick(random, 21) {
            0 => Fate::Expires,
            1 | 2 => Fate::LateClaim { after_ms },
            3 => Fate::NoClaim,
            4 => Fate::LateQueue { after_ms },
            5 => Fate::TooLarge,
            6..=8 => Fate::Fails {
                action: [
                    "",
                    "AbortJob",
                    "CompleteJob",
                    "RestartJob",
                    "RestartPod",
                    "RestartTask",
                    "TerminateJob",
                ][pick(random, 7)],
            },
            9 | 10 => Fate::Deleted {
                after_ms,
                propagation: [Propagation::Background, Propagation::Foreground][pick(random, 2)],
            },
            11 => Fate::LosesPod { after_ms },
            12 => Fate::Bare,
            13 => Fate::Batch,
            14 | 15 => Fate::Suspended {
                after_ms,
                for_ms: random.between(0, pace.after_ms),
            },
            16 => Fate::RestartsForPod { after_ms },
            17 => Fate::Elastic,
            _ => Fate::Completes,
        }
    }

    fn edited(random: &mut Random, after_ms: i64, pace: &Pace) -> Fate {
        match pick(random, 4) {
            0 => Fate::BatchSuspended {
                parallelism: random.between(1, 3),
                after_ms,
                for_ms: random.between(0, pace.after_ms),
            },
            1 => Fate::Eased { after_ms },
            // How many pods it gets is said once its room is known.
            _ => Fate::Scaled {
                after_ms,
                workers: 1,
            },
        }
    }
}
