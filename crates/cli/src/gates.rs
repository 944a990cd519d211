//! Feature gates: which there are, and what becomes of each here.
//!
//! Volcano's processes know their own gates and all of Kubernetes', whose packages they are linked with.

mod kubernetes;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use api::kind::Kind;

use crate::console;
use kubernetes::KUBERNETES;

/// What a gate guards.
#[derive(Clone, Copy, Debug)]
enum Guards {
    /// A look at these kinds: where it is off they are not looked at.
    Kinds(&'static [Kind]),
    /// A controller, by the name of its row: where it is off it does not run.
    Controller(&'static str),
    /// Queues open the gates of pods that ask for it.
    QueueAdmission,
    /// Whether webhooks judge what whole pods ask for.
    PodLevel,
    /// A part of what pods say that counts where they are placed: what is off without it.
    Placing(
        #[cfg_attr(not(test), expect(dead_code, reason = "the page of flags says it"))]
        &'static str,
        fn(&mut mirror::Features),
    ),
    /// Nothing that could be switched: why.
    Nothing(&'static str),
}

/// How far a feature is; what AllAlpha and AllBeta are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Alpha,
    Beta,
    Stable,
    Deprecated,
}

/// One gate.
#[derive(Clone, Copy, Debug)]
struct Gate {
    name: &'static str,
    default: bool,
    stage: Stage,
    /// Kubernetes lets it have no other value.
    is_locked: bool,
    guards: Guards,
}

/// One of Volcano's, which are all alpha.
const fn own(name: &'static str, default: bool, guards: Guards) -> Gate {
    Gate {
        name,
        default,
        stage: Stage::Alpha,
        is_locked: false,
        guards,
    }
}

impl Gate {
    const fn locked(self) -> Gate {
        Gate {
            is_locked: true,
            ..self
        }
    }

    const fn guarding(self, guards: Guards) -> Gate {
        Gate { guards, ..self }
    }
}

const OF_KUBERNETES: &str = "it is about Kubernetes' own code, which is not in here; what the API server serves is looked at";

/// Volcano's own.
const VOLCANOS: &[Gate] = &[
    own(
        "CSIStorage",
        false,
        Guards::Nothing("the room of storage is always looked at"),
    ),
    own(
        "CronVolcanoJobSupport",
        true,
        Guards::Controller("vc_cron_job"),
    ),
    own(
        "PodDisruptionBudgetsSupport",
        true,
        Guards::Kinds(&[Kind::PodDisruptionBudget]),
    ),
    own("PriorityClass", true, Guards::Kinds(&[Kind::PriorityClass])),
    own("QueueCommandSync", true, Guards::Kinds(&[Kind::Command])),
    own(
        "ResourceTopology",
        true,
        Guards::Kinds(&[Kind::Numatopology]),
    ),
    own(
        "SchedulingGatesQueueAdmission",
        false,
        Guards::QueueAdmission,
    ),
    own("VolcanoJobSupport", true, Guards::Controller("vcjob")),
    own(
        "WorkLoadSupport",
        true,
        Guards::Controller("workload_group"),
    ),
];

/// Names that stand for all gates of a stage that are not named themselves.
const WHOLE_STAGES: &[(&str, Stage)] = &[("AllAlpha", Stage::Alpha), ("AllBeta", Stage::Beta)];

fn all() -> impl Iterator<Item = &'static Gate> {
    VOLCANOS.iter().chain(KUBERNETES)
}

/// What gates that were given come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gates {
    /// Kinds that are not looked at.
    pub(crate) unwatched: Vec<Kind>,
    /// Rows of controllers that do not run.
    pub(crate) without: Vec<&'static str>,
    /// Whether queues open the gates of pods that ask for it.
    pub(crate) opens_queue_gates: bool,
    /// Whether what whole pods ask for is not judged.
    pub(crate) passes_pod_level: bool,
    /// What counts of what pods say about where they are placed.
    pub(crate) features: mirror::Features,
}

impl Gates {
    /// Gates as `NAME=true` or `NAME=false`; of one that is given twice the last counts. What has no effect
    /// is said, once for each that is given.
    ///
    /// # Errors
    /// There is no such gate, or it is given no value.
    pub(crate) fn read(given: &[impl AsRef<str>]) -> anyhow::Result<Gates> {
        let given = named(given)?;
        for warning in warnings(&given) {
            console::complain(&format!("warning: --feature-gates {warning}"));
        }
        Ok(settled(&given))
    }

    /// The same for webhooks, which place nothing: there it is said, too, that gates about that have no effect.
    ///
    /// # Errors
    /// There is no such gate, or it is given no value.
    pub(crate) fn of_webhooks(given: &[impl AsRef<str>]) -> anyhow::Result<Gates> {
        let gates = Gates::read(given)?;
        gates.tell_placing();
        Ok(gates)
    }

    /// The same for schedulers, which judge nothing that is written.
    ///
    /// # Errors
    /// There is no such gate, or it is given no value.
    pub(crate) fn of_schedulers(given: &[impl AsRef<str>]) -> anyhow::Result<Gates> {
        let gates = Gates::read(given)?;
        gates.tell_pod_level();
        Ok(gates)
    }

    /// The same for controllers, which do neither.
    ///
    /// # Errors
    /// There is no such gate, or it is given no value.
    pub(crate) fn of_controllers(given: &[impl AsRef<str>]) -> anyhow::Result<Gates> {
        let gates = Gates::read(given)?;
        gates.tell_pod_level();
        gates.tell_placing();
        Ok(gates)
    }

    fn tell_pod_level(&self) {
        if self.passes_pod_level {
            console::complain(
                "warning: --feature-gates PodLevelResources=false has no effect in this process: what whole pods ask for counts; webhooks heed it",
            );
        }
    }

    fn tell_placing(&self) {
        if self.features != mirror::Features::default() {
            console::complain(
                "warning: --feature-gates about where pods are placed have no effect in this process; schedulers heed them",
            );
        }
    }
}

/// What was given, by name.
type Given<'a> = BTreeMap<&'a str, bool>;

fn named(given: &[impl AsRef<str>]) -> anyhow::Result<Given<'_>> {
    let mut named = BTreeMap::new();
    let texts = given.iter().flat_map(|text| text.as_ref().split(','));
    for text in texts.map(str::trim).filter(|text| !text.is_empty()) {
        let Some((name, value)) = text.split_once('=') else {
            bail!("--feature-gates: expected NAME=true or NAME=false, got {text:?}");
        };
        let name = name.trim();
        if all().all(|gate| gate.name != name) && stage_of(name).is_none() {
            let own: Vec<&str> = VOLCANOS.iter().map(|gate| gate.name).collect();
            bail!(
                "--feature-gates: there is no gate {name:?}; there are {}, AllAlpha, AllBeta and those of \
                 Kubernetes 1.36",
                own.join(", ")
            );
        }
        let Some(is_on) = truth(value.trim()) else {
            bail!("--feature-gates: {name}: expected true or false, got {value:?}");
        };
        named.insert(name, is_on);
    }
    Ok(named)
}

/// A truth as Go's parser reads it.
fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn stage_of(name: &str) -> Option<Stage> {
    let mut stages = WHOLE_STAGES.iter();
    stages
        .find(|(all, _)| *all == name)
        .map(|(_, stage)| *stage)
}

/// Whether a gate is on: its own word counts before that about all of its stage, whatever their order.
fn is_on(gate: &Gate, given: &Given<'_>) -> bool {
    let of_stage = WHOLE_STAGES.iter().find(|(_, stage)| *stage == gate.stage);
    let of_stage = of_stage.and_then(|(all, _)| given.get(all));
    *given.get(gate.name).or(of_stage).unwrap_or(&gate.default)
}

fn settled(given: &Given<'_>) -> Gates {
    let mut gates = Gates::default();
    for gate in all() {
        let is_on = is_on(gate, given);
        match gate.guards {
            Guards::Kinds(kinds) if !is_on => gates.unwatched.extend(kinds),
            Guards::Controller(row) if !is_on => gates.without.push(row),
            Guards::QueueAdmission => gates.opens_queue_gates = is_on,
            Guards::PodLevel => gates.passes_pod_level = !is_on,
            Guards::Placing(_, without) if !is_on => without(&mut gates.features),
            Guards::Placing(..) | Guards::Kinds(_) | Guards::Controller(_) | Guards::Nothing(_) => {
            }
        }
    }
    gates
}

/// What is to be said of gates that were given: one line for each that has no effect, or less than its name
/// says.
fn warnings(given: &Given<'_>) -> Vec<String> {
    let whole = given.iter().filter_map(|(name, is_on)| {
        let stage = stage_of(name)?;
        let counts =
            all().filter(|gate| gate.stage == stage && !matches!(gate.guards, Guards::Nothing(_)));
        let names: BTreeSet<&str> = counts.map(|gate| gate.name).collect();
        let names = Vec::from_iter(names).join(", ");
        Some(format!(
            "{name}={is_on} counts for {names} only, as far as they are not named themselves"
        ))
    });
    let single = all().filter_map(|gate| {
        let is_on = given.get(gate.name)?;
        let Guards::Nothing(why) = gate.guards else {
            return None;
        };
        let locked = match gate.is_locked && *is_on != gate.default {
            true => format!("; Kubernetes 1.36 takes no value but {}", gate.default),
            false => String::new(),
        };
        Some(format!(
            "{}={is_on} has no effect: {why}{locked}",
            gate.name
        ))
    });
    whole.chain(single).collect()
}

/// In Markdown: a table of those that mean something (gate, default, what it does), then the names of the others.
#[cfg(test)]
pub(crate) fn page() -> String {
    let mut page = "| gate | default | what it does |\n| --- | --- | --- |\n".to_owned();
    for (name, stage) in WHOLE_STAGES {
        let stage = format!("{stage:?}").to_lowercase();
        page.push_str(&format!(
            "| {name} | false | all {stage} gates that are not named themselves |\n"
        ));
    }
    let mut others = Vec::new();
    for gate in all() {
        let does = match gate.guards {
            Guards::Kinds(kinds) => {
                let names: Vec<String> = kinds.iter().map(|kind| format!("{kind:?}")).collect();
                format!("off: no {} is looked at", names.join(", "))
            }
            Guards::Controller(row) => format!("off: the controller {row} does not run"),
            Guards::QueueAdmission => {
                "on: queues open the gates of pods that ask for it".to_owned()
            }
            Guards::PodLevel => {
                "off: webhooks do not judge `resources` of whole pods in templates".to_owned()
            }
            Guards::Placing(without, _) => format!("off: {without}"),
            Guards::Nothing(why) if VOLCANOS.iter().any(|own| own.name == gate.name) => {
                format!("no effect: {why}")
            }
            Guards::Nothing(_) => {
                others.push(gate.name);
                continue;
            }
        };
        page.push_str(&format!("| {} | {} | {does} |\n", gate.name, gate.default));
    }
    page.push_str(&format!(
        "\nThe other gates of Kubernetes 1.36 are taken without effect, each with a warning ({OF_KUBERNETES}): {}.\n",
        others.join(", ")
    ));
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &[&str]) -> Gates {
        settled(&named(given).expect("nothing is wrong"))
    }

    #[test]
    fn gates_switch_what_they_guard() {
        assert_eq!(read(&[]), Gates::default());
        let given = [
            "QueueCommandSync=false",
            "SchedulingGatesQueueAdmission=true",
            "VolcanoJobSupport=true",
            "VolcanoJobSupport=false",
            "PodLevelResources=0",
            "DynamicResourceAllocation=false",
            "MatchLabelKeysInPodTopologySpread=false",
            "NodeInclusionPolicyInPodTopologySpread=false",
        ];
        let wanted = Gates {
            unwatched: vec![Kind::Command],
            without: vec!["vcjob"],
            opens_queue_gates: true,
            passes_pod_level: true,
            features: mirror::Features {
                device_claims: false,
                spread_inclusion: false,
                spread_label_keys: false,
            },
        };
        assert_eq!(read(&given), wanted);
    }

    /// As in component-base: the word about a gate itself counts before that about its stage.
    #[test]
    fn a_whole_stage_is_switched_but_for_gates_that_are_named() {
        let on = read(&["AllAlpha=true"]);
        assert!(on.opens_queue_gates && on.without.is_empty() && on.unwatched.is_empty());
        for given in [
            [
                "AllAlpha=false",
                "QueueCommandSync=true",
                "CronVolcanoJobSupport=T",
            ],
            [
                "QueueCommandSync=true",
                "CronVolcanoJobSupport=1",
                "AllAlpha=false",
            ],
        ] {
            let off = read(&given);
            assert_eq!(off.without, ["vcjob", "workload_group"]);
            let kinds = [
                Kind::PodDisruptionBudget,
                Kind::PriorityClass,
                Kind::Numatopology,
            ];
            assert_eq!(off.unwatched, kinds);
            assert!(!off.passes_pod_level, "it is beta");
        }
        assert!(!read(&["SchedulingGatesQueueAdmission=false", "AllAlpha=true"]).opens_queue_gates);
        let off = read(&["AllBeta=false"]);
        assert!(off.passes_pod_level && !off.features.spread_label_keys);
        assert!(off.features.device_claims, "it is stable");
        assert!(!read(&["AllBeta=false", "PodLevelResources=true"]).passes_pod_level);
    }

    #[test]
    fn every_gate_of_kubernetes_is_taken_and_told_once_unless_it_counts() {
        assert!(KUBERNETES.is_sorted_by_key(|gate| gate.name));
        assert!(KUBERNETES.len() > 200, "{} gates", KUBERNETES.len());
        for gate in KUBERNETES {
            for value in [true, false] {
                let text = format!("{}={value},{}={value}", gate.name, gate.name);
                let given = [text.as_str()];
                let given = named(&given).expect("it is known");
                let told = warnings(&given);
                let counts = !matches!(gate.guards, Guards::Nothing(_));
                assert_eq!(told.len(), usize::from(!counts), "{text}: {told:?}");
                let refused = gate.is_locked && value != gate.default;
                assert!(
                    counts || told[0].contains("takes no value but") == refused,
                    "{told:?}"
                );
                assert!(counts || settled(&given) == Gates::default(), "{text}");
            }
        }
        let given = named(&["AllAlpha=false", "AllBeta=true"]).expect("they are known");
        let told = warnings(&given);
        assert_eq!(told.len(), 2);
        assert!(
            told[0].contains("QueueCommandSync") && !told[0].contains("CSIStorage"),
            "{told:?}"
        );
        assert!(
            told[1]
                .contains("counts for MatchLabelKeysInPodTopologySpread, PodLevelResources only"),
            "{told:?}"
        );
    }

    #[test]
    fn a_gate_that_there_is_not_is_refused_with_those_that_there_are() {
        for (wrong, why) in [
            ("Nonsense=true", "there is no gate \"Nonsense\"; there are "),
            ("allalpha=true", "there is no gate \"allalpha\"; there are "),
            (
                "PriorityClass",
                "expected NAME=true or NAME=false, got \"PriorityClass\"",
            ),
            (
                "PriorityClass=maybe",
                "PriorityClass: expected true or false, got \"maybe\"",
            ),
        ] {
            let error = named(&[wrong]).expect_err(wrong).to_string();
            assert!(error.contains(why), "{error}");
            let lists = error.contains("QueueCommandSync");
            assert_eq!(lists, why.ends_with("there are "), "{error}");
        }
    }
}
