//! Which fault struck in which phase of the system's life, and how often.

use std::collections::BTreeMap;

use crate::fault::{FAULTS, Fault};

/// A phase of the system's life. Several hold at once where several jobs are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Phase {
    /// No job is on its way.
    Idle,
    /// A job is there, and nobody has said anything about it.
    Submitting,
    /// A gang waits whole.
    Waiting,
    /// Pods of a gang are bound and do not run yet.
    Binding,
    /// A job runs.
    Running,
    /// Pods of a job have failed, or it is made anew.
    Failing,
    /// Pods of a job that is not over have succeeded.
    Finishing,
    /// Something is being deleted.
    Deleting,
    /// No driver decides.
    LeaderChange,
}

impl Phase {
    /// What it is called in reports.
    pub fn name(self) -> &'static str {
        PHASES[self as usize].1
    }
}

/// All phases with their names, each at its own number.
pub const PHASES: &[(Phase, &str)] = &[
    (Phase::Idle, "idle"),
    (Phase::Submitting, "submitting"),
    (Phase::Waiting, "waiting"),
    (Phase::Binding, "binding"),
    (Phase::Running, "running"),
    (Phase::Failing, "failing"),
    (Phase::Finishing, "finishing"),
    (Phase::Deleting, "deleting"),
    (Phase::LeaderChange, "no-leader"),
];

/// Phases that hold at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases(u16);

impl Phases {
    /// These and one more, where it holds.
    pub(crate) fn with(self, phase: Phase, holds: Holds) -> Phases {
        match holds {
            Holds::Yes => Phases(self.0 | 1 << phase as usize),
            Holds::No => self,
        }
    }

    pub(crate) fn holds(self, phase: Phase) -> bool {
        self.0 & 1 << phase as usize != 0
    }
}

/// Whether a phase holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    Yes,
    No,
}

impl From<bool> for Holds {
    fn from(holds: bool) -> Holds {
        if holds { Holds::Yes } else { Holds::No }
    }
}

/// What strikes only where a driver decides, and so between two of them by chance alone: when
/// something that one had asked for arrives after its end.
const OF_DECIDERS: &[Fault] = &[
    Fault::AnswerGarbage,
    Fault::AnswerLate,
    Fault::AnswerNever,
    Fault::BindRefused,
    Fault::Cordon,
    Fault::ObjectTooLarge,
    Fault::PartialList,
    Fault::TwoLeaders,
    Fault::WatchExpired,
];

/// Every fault in every phase in which it can be told to strike.
pub fn cells() -> impl Iterator<Item = (Fault, Phase)> {
    let all = FAULTS.iter().flat_map(|row| {
        let fault = row.fault;
        PHASES.iter().map(move |(phase, _)| (fault, *phase))
    });
    all.filter(|(fault, phase)| *phase != Phase::LeaderChange || !OF_DECIDERS.contains(fault))
}

/// Strikes by fault and phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    cells: BTreeMap<(Fault, Phase), u64>,
    strikes: BTreeMap<Fault, u64>,
}

impl Coverage {
    /// How often a fault struck.
    pub fn strikes(&self, fault: Fault) -> u64 {
        self.strikes.get(&fault).copied().unwrap_or(0)
    }

    /// How often a fault struck in a phase.
    pub fn at(&self, fault: Fault, phase: Phase) -> u64 {
        self.cells.get(&(fault, phase)).copied().unwrap_or(0)
    }

    /// Adds what another world has seen.
    pub fn add(&mut self, other: &Coverage) {
        for (cell, count) in &other.cells {
            *self.cells.entry(*cell).or_default() += count;
        }
        for (fault, count) in &other.strikes {
            *self.strikes.entry(*fault).or_default() += count;
        }
    }

    /// Cells that can be hit and were so less often than `wanted`.
    pub fn thin(&self, wanted: u64) -> impl Iterator<Item = (Fault, Phase)> {
        cells().filter(move |(fault, phase)| self.at(*fault, *phase) < wanted)
    }

    /// A line a fault, a column a phase.
    pub fn text(&self) -> String {
        let mut text = format!("{:<22}{:>9}", "fault", "strikes");
        for (_, name) in PHASES {
            text.push_str(&format!("{name:>11}"));
        }
        text.push('\n');
        for row in FAULTS {
            text.push_str(&format!("{:<22}{:>9}", row.name, self.strikes(row.fault)));
            for (phase, _) in PHASES {
                text.push_str(&format!("{:>11}", self.at(row.fault, *phase)));
            }
            text.push('\n');
        }
        text
    }

    pub(crate) fn struck(&mut self, fault: Fault, phases: Phases) {
        *self.strikes.entry(fault).or_default() += 1;
        for (phase, _) in PHASES {
            if phases.holds(*phase) {
                *self.cells.entry((fault, *phase)).or_default() += 1;
            }
        }
    }
}
