//! The list of invariants, and which of them can be asked today.

/// Whether an invariant is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applies {
    /// By this room.
    Here(&'static str),
    /// By another, named one.
    Elsewhere(&'static str),
    /// Not yet: what it speaks of does not exist.
    Later(&'static str),
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invariant {
    /// Its number.
    pub id: &'static str,
    /// What must hold.
    pub rule: &'static str,
    /// Where it is asked.
    pub applies: Applies,
}

const fn row(id: &'static str, rule: &'static str, applies: Applies) -> Invariant {
    Invariant { id, rule, applies }
}

/// All of them, by number.
pub const INVARIANTS: &[Invariant] = &[
    row(
        "I1",
        "a node's bound requests are within its allocatable",
        Applies::Here("check"),
    ),
    row(
        "I2",
        "a device has one exclusive holder, or sharers within its capacity",
        Applies::Later("no devices"),
    ),
    row(
        "I3",
        "a queue's use is the sum of its own and its children's",
        Applies::Here("check"),
    ),
    row(
        "I4",
        "no plan leaves a gang placed in part",
        Applies::Here("check_plan"),
    ),
    row(
        "I5",
        "every victim has a committed plan and a beneficiary",
        Applies::Here("check_plan"),
    ),
    row(
        "I6",
        "each task is in exactly one state and in every list of that state",
        Applies::Here("check"),
    ),
    row(
        "I7",
        "nobody waits beyond the starvation bound",
        Applies::Later("no bound is promised"),
    ),
    row(
        "I8",
        "no circle of preemptions",
        Applies::Later("no preemption"),
    ),
    row(
        "I9",
        "a bind of a deposed leader changes nothing",
        Applies::Elsewhere("driver; digest"),
    ),
    row(
        "I10",
        "duplicate and reordered events leave the same state",
        Applies::Here("digest"),
    ),
    row(
        "I11",
        "the charged queue is one the creator may use",
        Applies::Later("no queue authorisation"),
    ),
    row(
        "I12",
        "an explanation is what a re-run finds",
        Applies::Elsewhere("engine::explain"),
    ),
    row(
        "I13",
        "start-time estimates are calibrated",
        Applies::Later("no estimates"),
    ),
    row(
        "I14",
        "a kept promise is not taken by others",
        Applies::Here("check"),
    ),
    row(
        "I15",
        "a restore's target has one writer and a feasible node",
        Applies::Later("no restores"),
    ),
    row(
        "I16",
        "no backup is deleted while it is needed",
        Applies::Later("no backups"),
    ),
    row(
        "I17",
        "what is decoded and encoded again is the same",
        Applies::Elsewhere("api"),
    ),
    row(
        "I18",
        "memory and queue lengths are bounded by the input",
        Applies::Elsewhere("driver"),
    ),
    row(
        "I19",
        "a replay decides the same",
        Applies::Elsewhere("engine::Record"),
    ),
    row(
        "I20",
        "at rest there are no writes",
        Applies::Here("is_quiet"),
    ),
    row(
        "I21",
        "no finalizer is left behind",
        Applies::Elsewhere("sim"),
    ),
    row(
        "I22",
        "statuses move one way where the API says so",
        Applies::Elsewhere("sim"),
    ),
];
