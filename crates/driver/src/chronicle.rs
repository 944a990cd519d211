//! What happened in cycles and to what they decided, for those who look at figures. Nothing is decided
//! on it.

use std::collections::BTreeMap;

use api::time::Time;
use engine::{Listener, Milestone, Outcome};
use model::{Gang, GangId, GangPhase, Plan, Tables, WriteId};

use crate::recent::Recent;
use crate::timings::{Stage, Timed, Timings};

/// Gangs of which is known how often they waited and when they were placed last.
const GANGS_MAX: usize = 10_000;
/// Binds on their way whose stages are timed.
const BINDS_MAX: usize = 100_000;

/// When what happened to a bind.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    created: Time,
    decided: Time,
    sent: Option<Time>,
}

/// What was found for a gang.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Looks {
    /// How many looks ended with nothing placed.
    pub(crate) in_vain: u64,
    /// When a task of it was placed last.
    pub(crate) placed: Option<Time>,
}

/// Attempts and evictions, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    /// Tasks for which a node was sought and found.
    pub placed: u64,
    /// Tasks that a look at their gang left without a node, once for each look; none of a gang that was not
    /// let in yet, or that waits for its own objects: for these nobody seeks a node.
    pub refused: u64,
    /// Binds that came to nothing.
    pub failed: u64,
    /// Gangs for which tasks were evicted, by upstream's word for how.
    pub evicted_for: BTreeMap<&'static str, u64>,
    /// How many tasks went for the last gang of `preempt`.
    pub last_victims: u64,
}

/// The chronicle.
#[derive(Debug)]
pub(crate) struct Chronicle {
    stopwatch: fn() -> u64,
    /// Whether pods are placed one by one.
    serves_agents: bool,
    timings: Timings,
    attempts: Attempts,
    gangs: Recent<GangId, Looks>,
    /// Gangs of the cycle that goes on of which tasks wait for a node.
    wanting: Vec<GangId>,
    binds: BTreeMap<WriteId, Moments>,
    /// The stopwatch when the cycle began, and at the last milestone.
    began: u64,
    passed: u64,
}

impl Listener for Chronicle {
    fn passed(&mut self, milestone: Milestone) {
        let at = (self.stopwatch)();
        let took = at.saturating_sub(self.passed);
        match milestone {
            Milestone::Begun => self.began = at,
            Milestone::Opened { plugin } => self.timings.observe(Timed::Plugin, plugin, took),
            Milestone::AllOpened => {
                let took = at.saturating_sub(self.began);
                self.timings.observe(Timed::Opening, "", took);
            }
            Milestone::Acted { action } => self.timings.observe(Timed::Action, action, took),
        }
        self.passed = at;
    }

    fn found(&mut self, gang: GangId, outcome: Option<&Outcome>) {
        let (is_in_vain, wants_nodes) = match outcome {
            None | Some(Outcome::Entered | Outcome::Whole) => return,
            Some(Outcome::Extras(..)) => (false, true),
            Some(Outcome::WaitsForObjects(_)) => (true, false),
            Some(
                Outcome::WaitsForPromise(_)
                | Outcome::WaitsForRoom(..)
                | Outcome::WaitsForShares(_),
            ) => (true, true),
        };
        if is_in_vain {
            self.gangs.touch(&gang).in_vain += 1;
        }
        if wants_nodes {
            self.wanting.push(gang);
        }
    }
}

impl Chronicle {
    pub(crate) fn new(stopwatch: fn() -> u64, serves_agents: bool) -> Chronicle {
        Chronicle {
            stopwatch,
            serves_agents,
            timings: Timings::default(),
            attempts: Attempts::default(),
            gangs: Recent::new(GANGS_MAX),
            wanting: Vec::new(),
            binds: BTreeMap::new(),
            began: 0,
            passed: 0,
        }
    }

    /// Goes on with what another has counted; what it knew by the numbers of rows it forgets.
    pub(crate) fn continue_from(&mut self, before: Chronicle) {
        self.timings = before.timings;
        self.attempts = before.attempts;
    }

    /// A cycle is over that took so long.
    pub(crate) fn planned(&mut self, (tables, plan): (&Tables, &Plan), micros: u64, now: Time) {
        self.timings.observe(Timed::Cycle, "", micros);
        if self.serves_agents {
            self.timings.observe(Timed::WorkerCycle, "", micros);
        }
        self.attempts.placed += plan.places.len() as u64;
        for gang in self.wanting.drain(..) {
            let gang = tables.find_gang(gang);
            self.attempts.refused += gang.map_or(0, |gang| homeless(tables, gang));
        }
        for place in &plan.places {
            let task = tables.task(place.task);
            if let Some(gang) = task.gang {
                self.gangs.touch(&gang).placed = Some(now);
            }
            let created = Time(task.created.micros);
            self.reached(Stage::Assumed, created, now);
            if self.binds.len() < BINDS_MAX {
                let moments = Moments {
                    created,
                    decided: now,
                    sent: None,
                };
                self.binds.insert(place.write, moments);
            }
        }
        for status in &plan.statuses {
            let gang = &tables.gang(status.gang).spec;
            let starts = matches!(gang.status.phase, GangPhase::Pending | GangPhase::Inqueue)
                && status.status.phase == GangPhase::Running;
            if starts {
                let since = Time(gang.created.micros);
                self.timings.observe(Timed::Gang, "", between(since, now));
            }
        }
        self.evicted(plan);
    }

    fn evicted(&mut self, plan: &Plan) {
        let mut victims: BTreeMap<(&'static str, Option<GangId>), u64> = BTreeMap::new();
        for eviction in &plan.evictions {
            let gang = eviction.sake.gang();
            *victims.entry((eviction.cause, gang)).or_default() += 1;
        }
        for ((cause, _), count) in victims {
            *self.attempts.evicted_for.entry(cause).or_default() += 1;
            if cause == "preempt" {
                self.attempts.last_victims = count;
            }
        }
    }

    /// A pod that waits was seen for the first time.
    pub(crate) fn watched(&mut self, created: Time, now: Time) {
        self.reached(Stage::Watched, created, now);
    }

    /// A bind is handed out.
    pub(crate) fn sent(&mut self, write: WriteId, now: Time) {
        let Some(moments) = self.binds.get_mut(&write).filter(|it| it.sent.is_none()) else {
            return;
        };
        moments.sent = Some(now);
        let Moments {
            created, decided, ..
        } = *moments;
        self.reached(Stage::PreBound, created, now);
        self.timings
            .observe(Timed::Stage, "PreBind", between(decided, now));
    }

    /// A bind is done.
    pub(crate) fn bound(&mut self, write: WriteId, now: Time) {
        let Some(Moments { created, sent, .. }) = self.binds.remove(&write) else {
            return;
        };
        self.reached(Stage::Bound, created, now);
        if let Some(sent) = sent {
            self.timings
                .observe(Timed::Stage, "Bind", between(sent, now));
        }
    }

    /// A write comes to nothing.
    pub(crate) fn failed(&mut self, write: WriteId) {
        if self.binds.remove(&write).is_some() {
            self.attempts.failed += 1;
        }
    }

    /// A gang has left.
    pub(crate) fn gone(&mut self, gang: GangId) {
        self.gangs.remove(&gang);
    }

    pub(crate) fn looks(&self, gang: GangId) -> Looks {
        self.gangs.get(&gang).copied().unwrap_or_default()
    }

    pub(crate) fn timings(&self) -> &Timings {
        &self.timings
    }

    pub(crate) fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    fn reached(&mut self, stage: Stage, created: Time, now: Time) {
        let took = between(created, now);
        self.timings.observe(Timed::Pod, stage.word(), took);
    }
}

/// Tasks of a gang that want a node and have none, be it that they are promised one. For those that are gated
/// nobody seeks one: where there are any, which is rare, tasks are looked at one by one.
fn homeless(tables: &Tables, gang: &Gang) -> u64 {
    if gang.phase() == GangPhase::Pending {
        return 0;
    }
    if gang.gated.is_zero() && gang.queue_gated == 0 {
        return u64::from(gang.census.waiting());
    }
    let tasks = gang.tasks.iter().map(|id| tables.task(*id));
    tasks
        .filter(|it| it.phase.is_waiting() && !it.gated)
        .count() as u64
}

/// Microseconds from one to the other; none where a clock goes backwards.
pub(crate) fn between(since: Time, now: Time) -> u64 {
    u64::try_from(now.micros().saturating_sub(since.micros())).unwrap_or(0)
}
