//! Arguments that say whom a scheduler serves.

use anyhow::bail;
use api::volcano::{SCHEDULER_NAME, ShardingMode};
use clap::{Args, Command, FromArgMatches};
use mirror::{Events, Reach, Slice};

use crate::gates::Gates;
use crate::start::Serving;

// Not a doc comment: clap would take it for the help of the verb.
// Whom the scheduler serves, and how.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Whom the scheduler serves")]
pub(super) struct ServingArguments {
    #[command(flatten)]
    whom: WhomArguments,
    /// Write events for each pod of a gang, not only for the gang
    #[arg(long)]
    events_per_pod: bool,
    /// Whose rules hold for the keys of jobs with the ssh plugin: ours (safe), or Volcano's, with RSA keys, keys in jobs and no host checked (upstream) [default: safe]
    #[arg(long, value_name = "RULES", value_parser = ["safe", "upstream"])]
    ssh_plugin: Option<String>,
}

// What of it decides where pods go.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = "Whom the scheduler serves")]
pub(super) struct WhomArguments {
    /// Name by which pods ask for gangs and queues; may be given several times [default: volcano]
    #[arg(long, value_name = "NAME")]
    scheduler_name: Vec<String>,
    /// Name by which pods ask to be placed one by one, without gangs and queues; may be given several times
    #[arg(long, value_name = "NAME")]
    agent_scheduler_name: Vec<String>,
    /// Label of the nodes to use, as KEY:VALUE; may be given several times, one of them is enough
    #[arg(long, value_name = "KEY:VALUE")]
    node_selector: Vec<String>,
    /// What nodes of other shards are: none (there are no shards), hard (no nodes) or soft (the last choice)
    #[arg(long, value_name = "MODE", value_parser = ["none", "hard", "soft"])]
    scheduler_sharding_mode: Option<String>,
    /// The NodeShard that holds this scheduler's nodes [default: volcano]
    #[arg(long, value_name = "NAME")]
    scheduler_sharding_name: Option<String>,
    /// Volcano's feature gates, as NAME=true or NAME=false; docs/flags.md tells what each does
    #[arg(long, value_name = "NAME=BOOL", value_delimiter = ',')]
    feature_gates: Vec<String>,
}

impl ServingArguments {
    /// Whether any of these was typed. Taken apart field by field, so that a new one is not forgotten.
    pub(super) fn is_given(&self) -> bool {
        let ServingArguments {
            whom,
            events_per_pod,
            ssh_plugin,
        } = self;
        whom.is_given() || *events_per_pod || ssh_plugin.is_some()
    }

    /// What they mean; names that serve two purposes are refused.
    pub(super) fn serving(self) -> anyhow::Result<Serving> {
        let ServingArguments {
            whom,
            events_per_pod,
            ssh_plugin,
        } = self;
        let mut serving = whom.serving()?;
        serving.upstream_ssh = ssh_plugin.as_deref() == Some("upstream");
        if events_per_pod {
            serving.events = Events::PerPod;
        }
        Ok(serving)
    }
}

impl WhomArguments {
    /// Whether any of these was typed.
    pub(super) fn is_given(&self) -> bool {
        !self.words().is_empty()
    }

    /// As they would be typed. Taken apart field by field, so that a new one is not forgotten.
    fn words(&self) -> Vec<String> {
        let WhomArguments {
            scheduler_name,
            agent_scheduler_name,
            node_selector,
            scheduler_sharding_mode,
            scheduler_sharding_name,
            feature_gates,
        } = self;
        let flags: [(&str, &[String]); 6] = [
            ("scheduler-name", scheduler_name),
            ("agent-scheduler-name", agent_scheduler_name),
            ("node-selector", node_selector),
            (
                "scheduler-sharding-mode",
                scheduler_sharding_mode.as_slice(),
            ),
            (
                "scheduler-sharding-name",
                scheduler_sharding_name.as_slice(),
            ),
            ("feature-gates", feature_gates),
        ];
        let typed = flags
            .iter()
            .flat_map(|(flag, values)| values.iter().map(move |value| format!("--{flag}={value}")));
        typed.collect()
    }

    /// What a plane says of its own.
    pub(super) fn of_words(words: &[String]) -> anyhow::Result<WhomArguments> {
        let command = WhomArguments::augment_args(Command::new("up").no_binary_name(true));
        let matches = command.try_get_matches_from(words)?;
        Ok(WhomArguments::from_arg_matches(&matches)?)
    }

    /// What they mean; names that serve two purposes are refused.
    pub(super) fn serving(self) -> anyhow::Result<Serving> {
        let typed = self.words();
        let WhomArguments {
            scheduler_name,
            agent_scheduler_name,
            node_selector,
            scheduler_sharding_mode,
            scheduler_sharding_name,
            feature_gates,
        } = self;
        let mut serving = Serving {
            typed,
            ..Serving::default()
        };
        if !scheduler_name.is_empty() {
            serving.scheduler_names = names("scheduler-name", &scheduler_name)?;
        }
        serving.agent_scheduler_names = names("agent-scheduler-name", &agent_scheduler_name)?;
        let mode = scheduler_sharding_mode.as_deref().unwrap_or_default();
        let name = scheduler_sharding_name.as_deref();
        serving.reach = reach(&node_selector, mode, name.unwrap_or(SCHEDULER_NAME))?;
        let gates = Gates::read(&feature_gates)?;
        if let Some(row) = gates.without.first() {
            bail!("--feature-gates: a plane cannot do without the controller {row}");
        }
        serving.queue_gates = gates.opens_queue_gates;
        serving.passes_pod_level = gates.passes_pod_level;
        serving.features = gates.features;
        serving.unwatched = gates.unwatched;
        serving.unambiguous()
    }
}

/// Which nodes and pods are a scheduler's, by its flags and upstream's environment.
pub(crate) fn reach(
    node_selector: &[impl AsRef<str>],
    mode: &str,
    shard: &str,
) -> anyhow::Result<Reach> {
    let given = node_selector.iter().map(AsRef::as_ref);
    // An empty list is one word without a text.
    let labels = given.filter(|text| !text.is_empty()).map(label);
    Ok(Reach {
        selector: labels.collect::<anyhow::Result<_>>()?,
        slice: slice(|name| std::env::var(name).ok())?,
        sharding: ShardingMode::of_word(mode).unwrap_or_default(),
        shard: shard.into(),
    })
}

/// `key:value`, as upstream writes it.
fn label(text: &str) -> anyhow::Result<(Box<str>, Box<str>)> {
    match text.split_once(':') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().into(), value.trim().into()))
        }
        _ => bail!("--node-selector: expected KEY:VALUE, got {text:?}"),
    }
}

/// This scheduler's part of a ring, by upstream's environment: its pod is `<name>-<number>`.
fn slice(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Option<Slice>> {
    if variable("MULTI_SCHEDULER_ENABLE").as_deref() != Some("true") {
        return Ok(None);
    }
    let pod = variable("SCHEDULER_POD_NAME").unwrap_or_default();
    let number = pod
        .rsplit_once('-')
        .and_then(|(_, number)| number.parse().ok());
    let Some(index) = number else {
        bail!(
            "MULTI_SCHEDULER_ENABLE is set, but SCHEDULER_POD_NAME {pod:?} does not end in -NUMBER"
        );
    };
    let count = variable("SCHEDULER_NUM").unwrap_or_default();
    let of: u32 = count.parse().unwrap_or(0);
    if of <= index {
        bail!(
            "MULTI_SCHEDULER_ENABLE is set, but SCHEDULER_NUM {count:?} is not greater than the {index} of {pod}"
        );
    }
    Ok(Some(Slice { index, of }))
}

/// Each once, in the order in which they were given to a flag; none may be empty.
pub(crate) fn names(flag: &str, given: &[impl AsRef<str>]) -> anyhow::Result<Vec<Box<str>>> {
    let mut names: Vec<Box<str>> = Vec::new();
    for name in given.iter().map(|name| name.as_ref().trim()) {
        if name.is_empty() {
            bail!("--{flag}: a name may not be empty");
        }
        if !names.iter().any(|known| **known == *name) {
            names.push(name.into());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serving(typed: &[&str]) -> anyhow::Result<Serving> {
        let command = ServingArguments::augment_args(Command::new("up"));
        let typed = ["up"].iter().chain(typed);
        let matches = command.try_get_matches_from(typed)?;
        ServingArguments::from_arg_matches(&matches)?.serving()
    }

    #[test]
    fn names_and_nodes_are_as_typed_and_upstreams_by_default() {
        assert_eq!(serving(&[]).expect("nothing is wrong"), Serving::default());
        let typed = [
            "--scheduler-name=a",
            "--scheduler-name=b",
            "--scheduler-name=a",
            "--agent-scheduler-name=agent-scheduler",
            "--node-selector=pool:batch",
            "--scheduler-sharding-mode=hard",
            "--scheduler-sharding-name=s",
            "--events-per-pod",
            "--feature-gates=SchedulingGatesQueueAdmission=true,ResourceTopology=false",
        ];
        let it = serving(&typed).expect("nothing is wrong");
        assert_eq!(it.scheduler_names.join(" "), "a b");
        assert_eq!(it.agent_scheduler_names.join(" "), "agent-scheduler");
        assert_eq!(it.reach.selector, [("pool".into(), "batch".into())]);
        assert_eq!(it.reach.sharding, ShardingMode::Hard);
        assert_eq!(&*it.reach.shard, "s");
        assert_eq!(it.events, Events::PerPod);
        assert!(it.queue_gates);
        // What a plane says of itself, those who ask it understand.
        let heard = WhomArguments::of_words(&it.typed).expect("they are its own");
        let heard = heard.serving().expect("nothing is wrong");
        let events = it.events;
        assert_eq!(Serving { events, ..heard }, it);
        assert_eq!(it.unwatched, [api::kind::Kind::Numatopology]);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_flag() {
        for (typed, part) in [
            (
                ["--scheduler-name=a", "--agent-scheduler-name=a"],
                "one purpose",
            ),
            (
                ["--scheduler-name=", "--scheduler-name=a"],
                "--scheduler-name",
            ),
            (["--node-selector=pool", "--scheduler-name=a"], "KEY:VALUE"),
            (
                ["--scheduler-sharding-mode=half", "--scheduler-name=a"],
                "half",
            ),
        ] {
            let error = serving(&typed).expect_err(part).to_string();
            assert!(error.contains(part), "{typed:?}: {error}");
        }
    }

    #[test]
    fn a_ring_is_told_by_the_environment() {
        let told = |pod: &'static str, count: &'static str| {
            slice(move |name| match name {
                "MULTI_SCHEDULER_ENABLE" => Some("true".to_owned()),
                "SCHEDULER_POD_NAME" => Some(pod.to_owned()),
                "SCHEDULER_NUM" => Some(count.to_owned()),
                _ => None,
            })
        };
        let third = Some(Slice { index: 2, of: 3 });
        assert_eq!(
            told("volcano-scheduler-2", "3").expect("it is whole"),
            third
        );
        assert!(told("volcano-scheduler-3", "3").is_err());
        assert!(told("volcano", "3").is_err());
        assert!(told("volcano-0", "").is_err());
        assert_eq!(slice(|_| None).expect("nothing is asked"), None);
    }
}
