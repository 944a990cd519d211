//! Volcano's feature gates: which there are, and what becomes of each here.

use anyhow::bail;
use api::kind::Kind;

use crate::console;

/// What a gate guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guards {
    /// A look at these kinds: where it is off they are not looked at.
    Kinds(&'static [Kind]),
    /// A controller, by the name of its row: where it is off it does not run.
    Controller(&'static str),
    /// Queues open the gates of pods that ask for it.
    QueueAdmission,
    /// Nothing that could be switched: why.
    Nothing(&'static str),
}

/// One gate.
struct Gate {
    name: &'static str,
    default: bool,
    guards: Guards,
}

const fn gate(name: &'static str, default: bool, guards: Guards) -> Gate {
    Gate {
        name,
        default,
        guards,
    }
}

const OF_THE_API: &str = "what the API server serves is looked at";

/// Every gate that upstream's parsers know, Volcano's before Kubernetes'.
const GATES: &[Gate] = &[
    gate(
        "WorkLoadSupport",
        true,
        Guards::Controller("workload_group"),
    ),
    gate("VolcanoJobSupport", true, Guards::Controller("vcjob")),
    gate(
        "CronVolcanoJobSupport",
        true,
        Guards::Controller("vc_cron_job"),
    ),
    gate(
        "PodDisruptionBudgetsSupport",
        true,
        Guards::Kinds(&[Kind::PodDisruptionBudget]),
    ),
    gate("QueueCommandSync", true, Guards::Kinds(&[Kind::Command])),
    gate("PriorityClass", true, Guards::Kinds(&[Kind::PriorityClass])),
    gate(
        "CSIStorage",
        false,
        Guards::Nothing("the room of storage is always looked at"),
    ),
    gate(
        "ResourceTopology",
        true,
        Guards::Kinds(&[Kind::Numatopology]),
    ),
    gate(
        "SchedulingGatesQueueAdmission",
        false,
        Guards::QueueAdmission,
    ),
    gate("DRAConsumableCapacity", true, Guards::Nothing(OF_THE_API)),
    gate("DRAPrioritizedList", true, Guards::Nothing(OF_THE_API)),
    gate(
        "DynamicResourceAllocation",
        true,
        Guards::Nothing(OF_THE_API),
    ),
    gate(
        "MatchLabelKeysInPodTopologySpread",
        true,
        Guards::Nothing(OF_THE_API),
    ),
    gate(
        "NodeInclusionPolicyInPodTopologySpread",
        true,
        Guards::Nothing(OF_THE_API),
    ),
    gate("PodLevelResources", true, Guards::Nothing(OF_THE_API)),
    gate("SidecarContainers", true, Guards::Nothing(OF_THE_API)),
    gate("StorageCapacityScoring", false, Guards::Nothing(OF_THE_API)),
    gate("VolumeAttributesClass", true, Guards::Nothing(OF_THE_API)),
];

/// What gates that were given come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gates {
    /// Kinds that are not looked at.
    pub(crate) unwatched: Vec<Kind>,
    /// Rows of controllers that do not run.
    pub(crate) without: Vec<&'static str>,
    /// Whether queues open the gates of pods that ask for it.
    pub(crate) opens_queue_gates: bool,
}

impl Gates {
    /// Gates as `NAME=true` or `NAME=false`; of one that is given twice the last counts. What has no effect
    /// is said.
    ///
    /// # Errors
    /// There is no such gate, or it is given no value.
    pub(crate) fn read(given: &[impl AsRef<str>]) -> anyhow::Result<Gates> {
        let mut set: Vec<bool> = GATES.iter().map(|gate| gate.default).collect();
        for text in given.iter().map(|text| text.as_ref().trim()) {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            let (Some(at), Ok(is_on)) = (find(name), value.parse()) else {
                bail!(
                    "--feature-gates: expected NAME=true or NAME=false, got {text:?}; there are {}",
                    names()
                );
            };
            set[at] = is_on;
        }
        let mut gates = Gates::default();
        for (gate, is_on) in GATES.iter().zip(set) {
            match gate.guards {
                Guards::Kinds(kinds) if !is_on => gates.unwatched.extend(kinds),
                Guards::Controller(row) if !is_on => gates.without.push(row),
                Guards::QueueAdmission => gates.opens_queue_gates = is_on,
                Guards::Nothing(why) if is_on != gate.default => {
                    console::complain(&format!(
                        "warning: --feature-gates {}={is_on} has no effect: {why}",
                        gate.name
                    ));
                }
                Guards::Kinds(_) | Guards::Controller(_) | Guards::Nothing(_) => {}
            }
        }
        Ok(gates)
    }
}

fn find(name: &str) -> Option<usize> {
    GATES.iter().position(|gate| gate.name == name)
}

fn names() -> String {
    let names: Vec<&str> = GATES.iter().map(|gate| gate.name).collect();
    names.join(", ")
}

/// Rows of a table in Markdown: gate, default, what it does.
#[cfg(test)]
pub(crate) fn table() -> String {
    let row = |gate: &Gate| {
        let does = match gate.guards {
            Guards::Kinds(kinds) => {
                let names: Vec<String> = kinds.iter().map(|kind| format!("{kind:?}")).collect();
                format!("off: no {} is looked at", names.join(", "))
            }
            Guards::Controller(row) => format!("off: the controller {row} does not run"),
            Guards::QueueAdmission => {
                "on: queues open the gates of pods that ask for it".to_owned()
            }
            Guards::Nothing(why) => format!("no effect: {why}"),
        };
        format!("| {} | {} | {does} |\n", gate.name, gate.default)
    };
    GATES.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_switch_what_they_guard() {
        assert_eq!(
            Gates::read(&[] as &[&str]).expect("nothing is wrong"),
            Gates::default()
        );
        let given = [
            "QueueCommandSync=false",
            "SchedulingGatesQueueAdmission=true",
            "VolcanoJobSupport=true",
            "VolcanoJobSupport=false",
            "DynamicResourceAllocation=true",
        ];
        let gates = Gates::read(&given).expect("nothing is wrong");
        let wanted = Gates {
            unwatched: vec![Kind::Command],
            without: vec!["vcjob"],
            opens_queue_gates: true,
        };
        assert_eq!(gates, wanted);
    }

    #[test]
    fn a_gate_that_there_is_not_is_refused_with_those_that_there_are() {
        for wrong in ["Nonsense=true", "PriorityClass", "PriorityClass=maybe"] {
            let error = Gates::read(&[wrong]).expect_err(wrong).to_string();
            assert!(
                error.contains(wrong) && error.contains("QueueCommandSync"),
                "{error}"
            );
        }
    }
}
