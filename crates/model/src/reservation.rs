//! Room that is held for work which has no pod yet, or no longer has one.
//!
//! Every kind of reservation is written down somewhere in the API in the same write as the decision,
//! so that a restart can rebuild it before the first cycle. This list names the homes; a reservation
//! without a row here may not be made.

/// A kind of reservation, where it is written down and how it is rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// What is held.
    pub name: &'static str,
    /// Where it is written down.
    pub home: &'static str,
    /// How it is rebuilt after a restart.
    pub rebuild: &'static str,
}

/// All kinds of reservations, sorted by name.
pub const HOMES: &[Home] = &[
    Home {
        name: "admitted-without-pods",
        home: "the Workload's topology assignment, else a bounded annotation on the Workload",
        rebuild: "from the Workload, minus the pods that have taken over their part",
    },
    Home {
        name: "pipelined-gang",
        home: "status.nominatedNodeName of each promised pod",
        rebuild: "promised again before the first cycle, as far as it still holds",
    },
    Home {
        name: "restore",
        home: "the Restore's status and the volume's node affinity",
        rebuild: "from the Restore; it asks for no resources once its pod is done",
    },
    Home {
        name: "room-being-cleared",
        home: "the plan id in the victims' DisruptionTarget condition",
        rebuild: "from the victims that are still there",
    },
];

#[cfg(test)]
mod tests {
    use super::HOMES;

    #[test]
    fn homes_are_sorted() {
        assert!(HOMES.is_sorted_by_key(|home| home.name));
    }
}
