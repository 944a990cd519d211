//! One part of a story: a job, or pods without one, and its fate.

use api::intent::Propagation;

use super::{Pace, pick};
use crate::random::Random;

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
    pub(super) fate: Fate,
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
}

impl Part {
    pub(super) fn draw(
        random: &mut Random,
        index: usize,
        cores: i64,
        room: i64,
        pace: &Pace,
    ) -> Part {
        let fate = Fate::draw(random, pace);
        let milli_cpu = [250, 500, 1_000, 2_000][pick(random, 4)].min(cores * 1_000);
        // What is to be too much for a cluster is so with few pods.
        let is_large = matches!(fate, Fate::Elastic | Fate::TooLarge) && room > 50;
        let milli_cpu = if is_large { cores * 1_000 } else { milli_cpu };
        let own_claims = random.between(0, 2);
        let has_claims = own_claims > 0 || matches!(fate, Fate::LateClaim { .. });
        // How many such pods the cluster takes; those that share a directory share its node.
        let nodes = if has_claims { 1 } else { room / cores };
        let per_node = cores * 1_000 / milli_cpu;
        let most = per_node * nodes;
        // Two queues of one weight that both want everything get a half each, for good.
        let is_apart = matches!(fate, Fate::LateQueue { .. }) && most > 1;
        let most = if is_apart { most / 2 } else { most };
        let fate = match fate {
            Fate::LateQueue { .. } if !is_apart => Fate::Completes,
            fate => fate,
        };
        let workers = random.between(1, most.min(8));
        let helpers = random.between(0, (most - workers).min(3));
        let workers = match fate {
            Fate::Elastic => workers + most,
            // Well above what the queue lets in by promise (overcommit).
            Fate::TooLarge => 2 * per_node * (room / cores) + 1,
            _ => workers,
        };
        Part {
            index,
            at_ms: random.between(0, pace.parts_ms),
            workers,
            helpers,
            milli_cpu,
            runs_ms: random.between(50, pace.runs_ms),
            own_claims,
            has_service: random.once_in(2),
            fate,
        }
    }

    pub(super) fn name(&self) -> String {
        format!("part-{}", self.index)
    }

    /// For the transcript.
    pub(super) fn told(&self) -> String {
        format!(
            "{} at {} ms: {} workers and {} helpers of {}m cpu for {} ms, {} claims{}: {:?}",
            self.name(),
            self.at_ms,
            self.workers,
            self.helpers,
            self.milli_cpu,
            self.runs_ms,
            self.own_claims,
            if self.has_service { ", a service" } else { "" },
            self.fate
        )
    }
}

impl Fate {
    fn draw(random: &mut Random, pace: &Pace) -> Fate {
        let after_ms = random.between(0, pace.after_ms);
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
}
