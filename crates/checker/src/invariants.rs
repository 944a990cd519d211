//! The list of invariants, and which of them can be asked today.

/// Whether an invariant is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applies {
    /// By this room.
    Here(&'static str),
    /// By the tests of another room, in this file, which names it.
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
        Applies::Here("check, check_plan"),
    ),
    row(
        "I2",
        "a device has one exclusive holder, or sharers within its capacity",
        Applies::Here("check, check_plan"),
    ),
    row(
        "I3",
        "a queue's use is the sum of its own and its children's, and within its ceiling",
        Applies::Here("check, check_plan"),
    ),
    row(
        "I4",
        "no plan leaves a gang placed in part",
        Applies::Here("check_plan"),
    ),
    row(
        "I5",
        "every victim has a committed plan, and a beneficiary or a reason to leave its node",
        Applies::Here("check_plan"),
    ),
    row(
        "I6",
        "each task is in exactly one state and in every list of that state",
        Applies::Here("check, check_plan"),
    ),
    row(
        "I7",
        "nobody waits beyond the starvation bound, but those for whom there is [no sound bound](scheduler.md#nobody-waits-for-ever)",
        Applies::Elsewhere("crates/engine/tests/decisions/fairness.rs"),
    ),
    row(
        "I8",
        "no circle of preemptions",
        Applies::Here("check_plan"),
    ),
    row(
        "I9",
        "a bind of a deposed leader changes nothing",
        Applies::Elsewhere("crates/driver/src/election/elector/model.rs"),
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
        Applies::Elsewhere("crates/engine/tests/decisions/laws.rs"),
    ),
    row(
        "I13",
        "start-time estimates are calibrated",
        Applies::Later("no estimates"),
    ),
    row(
        "I14",
        "a kept promise is not taken by others",
        Applies::Here("check, check_plan"),
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
        Applies::Elsewhere("crates/api/tests/wire_golden.rs"),
    ),
    row(
        "I18",
        "memory and queue lengths are bounded by the input",
        Applies::Elsewhere("crates/driver/tests/writing.rs"),
    ),
    row(
        "I19",
        "a replay decides the same",
        Applies::Elsewhere("crates/sim/src/logbook.rs"),
    ),
    row(
        "I20",
        "at rest there are no writes",
        Applies::Here("is_quiet"),
    ),
    row(
        "I21",
        "no finalizer is left behind",
        Applies::Elsewhere("crates/sim/src/judge.rs"),
    ),
    row(
        "I22",
        "statuses move one way where the API says so",
        Applies::Elsewhere("crates/sim/src/witness.rs"),
    ),
    row(
        "I23",
        "tasks that must be close together are, and a gang within a gang is whole",
        Applies::Here("check_plan"),
    ),
    row(
        "I24",
        "a free volume is given to one claim, which it serves where the claim's node reaches it",
        Applies::Here("check, check_plan"),
    ),
    row(
        "I25",
        "a claim that one pod may use at a time is used by one, and nobody goes for who does not get it",
        Applies::Here("check_plan"),
    ),
];

/// Those that cannot be asked yet, with what they lack.
pub fn not_yet() -> impl Iterator<Item = (&'static Invariant, &'static str)> {
    INVARIANTS.iter().filter_map(|row| match row.applies {
        Applies::Later(lacks) => Some((row, lacks)),
        Applies::Here(_) | Applies::Elsewhere(_) => None,
    })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test reads the house's files")]
mod tests {
    use super::{Applies, INVARIANTS, not_yet};
    use std::fmt::Write as _;
    use std::path::Path;

    const PAGE: &str = "../../docs/invariants.md";
    const HEAD: &str = "# Invariants

What must hold whatever was decided, and where it is asked.
`check` is asked by tests and by the simulator after every cycle; it adds everything up again.
`check_plan` is always on, in production too: it looks at what a plan touches, and what it finds is counted (`katmai_checker_violations_total`), said as an error, and not carried out.
A test of `checker` writes this page (`UPDATE=1 cargo test -p katmai-checker`).

| id | what must hold | asked by |
| --- | --- | --- |
";

    const TAIL: &str = "
Of I3: a ceiling holds where a rule keeps it, which `capacity` and `proportion` do while their `enabledAllocatable` is on; without one it is only a number, as upstream.
A bind is looked at beside the ceiling of its own queue and of each one above it, where a rule takes queues for a tree (`capacity` with `enableHierarchy`); for one plan 2,000 tasks, gangs and queues are added up, and beyond that rows are believed, which `check` adds up.
Of I23: it holds unless a switch says that nobody looks at it (`enabledHyperNodeGradient`, `enabledSubJobReady`, `enabledSubJobPipelined`); one value of a label always does, for what the plan places: pods whose nodes were labelled anew may stand apart, and the rest joins one of them.
Of I5: who says that it goes as a whole (`disruptionMode.all`) does not go in part. Room is taken for somebody, and then its beneficiary gets something (`preempt`, `reclaim`); or a task has to leave its node for a reason that is told with the eviction, and nobody is given the room (`shuffle`).
Of the second kind `check_plan` asks that it is a shuffle, that the task may be evicted and is of a gang, and, where `pdb` keeps them (its `enabledVictim`), that no disruption budget is exceeded.
What else holds for a shuffle:

- A plugin sends tasks away at most once in its period, also across a new segment of the decision log; only a restart of the process forgets when that was.
- Only running tasks of gangs go that may be evicted, and none that `conformance`, `cdp`, `pdb` or a gang's own budget (`jdb-min-available`, `jdb-max-unavailable`) protects.
- Nobody is put back on the node that it left while the reason holds: the plugin that sends away refuses the node for the same reason.

The scenarios of `crates/placement/scenarios/tdm` show it.
";

    #[test]
    fn what_is_asked_elsewhere_is_asked_there() {
        for row in INVARIANTS {
            if let Applies::Elsewhere(file) = row.applies {
                let text = std::fs::read_to_string(Path::new("../..").join(file)).unwrap();
                assert!(text.contains(row.id), "{file} does not speak of {}", row.id);
            }
        }
    }

    #[test]
    fn the_page_lists_them_all_and_says_what_is_not_asked_yet() {
        let mut page = HEAD.to_owned();
        for row in INVARIANTS {
            let place = match row.applies {
                Applies::Here(doors) => {
                    let doors: Vec<String> =
                        doors.split(", ").map(|door| format!("`{door}`")).collect();
                    doors.join(", ")
                }
                Applies::Elsewhere(file) => format!("`{file}`"),
                Applies::Later(lacks) => format!("not yet: {lacks}"),
            };
            let _ = writeln!(page, "| {} | {} | {place} |", row.id, row.rule);
        }
        page.push_str(TAIL);
        for (row, lacks) in not_yet() {
            eprintln!("not yet: {} {}: {lacks}", row.id, row.rule);
        }
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(PAGE, &page).unwrap();
        }
        let written = std::fs::read_to_string(PAGE).unwrap_or_default();
        assert_eq!(written, page, "UPDATE=1 writes it");
    }
}
