//! Plugins of jobs: those that are not there, those that others need, and arguments that do not count.
//!
//! Source: `specs/volcano.md`, sections 2.1.7, 4.1 and 4.2.

use std::borrow::Cow;
use std::collections::BTreeMap;

use api::names::go_quote;
use api::volcano::{ArgumentFault, JOB_PLUGINS, JobPlugin, JobSpec, Task};
use serde_json::{Map, Value, json};

use crate::denials::jobs;
use crate::fields::{items, text};
use crate::{PluginKeys, Settings};

/// The argument that holds a key.
pub(crate) const PRIVATE_KEY: &str = "ssh-private-key";
/// How a key begins that somebody gives to another argument.
pub(crate) const PEM: &str = "PRIVATE KEY-----";

/// Each plugin that another cannot do without, by name, with those who cannot.
pub(crate) fn implied() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut implied: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in JOB_PLUGINS {
        for name in row.implies {
            implied.entry(name).or_default().push(row.name);
        }
    }
    implied
}

/// Adds the plugins that those named cannot do without.
pub(super) fn imply(plugins: &mut Map<String, Value>, may_be: impl Fn(&str) -> bool) {
    for (name, by) in implied() {
        if may_be(name) && by.iter().any(|it| plugins.contains_key(*it)) {
            plugins.entry(name).or_insert_with(|| json!([]));
        }
    }
}

/// Whether the task that MPI starts from is there.
pub(super) fn has_master(spec: &JobSpec) -> bool {
    let Some((_, arguments)) = spec.plugins().find(|(name, _)| *name == "mpi") else {
        return true;
    };
    let reading = JobPlugin::find("mpi").map(|plugin| plugin.read(arguments));
    let given = reading.unwrap_or_default().given;
    let master = given.iter().rfind(|(name, _)| *name == "master");
    let master = master.map_or("master", |(_, value)| value);
    spec.tasks.iter().any(|task| &*task.name == master)
}

/// Plugins that do not exist, and keys that everybody could read.
pub(super) fn check(settings: &Settings, spec: &JobSpec, message: &mut String) {
    for (name, arguments) in spec.plugins() {
        if JobPlugin::find(name).is_none() {
            super::say(&jobs::NO_PLUGIN, &[("plugin", &name)], message);
        }
        if settings.plugin_keys == PluginKeys::Refused && has_key(arguments) {
            super::say(&jobs::PRIVATE_KEY, &[("plugin", &name)], message);
        }
    }
}

fn has_key(arguments: &[Box<str>]) -> bool {
    arguments.iter().any(|argument| {
        let flag = argument.trim_start_matches('-');
        let flag = flag.split_once('=').map_or(flag, |(flag, _)| flag);
        flag == PRIVATE_KEY || argument.contains(PEM)
    })
}

/// What upstream only logs, if that: arguments that count for nothing, and plugins that find none of their tasks.
pub(super) fn warnings(spec: &JobSpec) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, arguments) in spec.plugins() {
        let Some(plugin) = JobPlugin::find(name) else {
            continue;
        };
        let reading = plugin.read(arguments);
        let fault = reading.fault.as_ref().map(told);
        let lacks = PARTS.iter().find(|it| it.plugin == name);
        let lacks = lacks.map_or_else(Vec::new, |it| it.lacks(spec, &reading.given));
        let all = fault.into_iter().chain(lacks);
        warnings.extend(all.map(|what| format!("job plugin {name}: {what}")));
    }
    warnings
}

/// The tasks of which a plugin tells something.
struct Parts {
    plugin: &'static str,
    /// Arguments that name the tasks, which are also the names of those where nothing is said.
    arguments: &'static [&'static str],
    /// Which of them have to be there.
    needs: Needs,
    /// What becomes of the job where they are not.
    so: &'static str,
}

enum Needs {
    /// One of them, whichever.
    Any,
    /// The first.
    First,
}

const PARTS: &[Parts] = &[
    Parts {
        plugin: "hcclrank",
        arguments: &["master", "worker"],
        needs: Needs::Any,
        so: "no pod is told its rank",
    },
    // Without its master the job is refused.
    Parts {
        plugin: "mpi",
        arguments: &["worker"],
        needs: Needs::First,
        so: "the master is told no hosts",
    },
    Parts {
        plugin: "pytorch",
        arguments: &["master", "worker"],
        needs: Needs::First,
        so: "no pod is told its rank",
    },
    Parts {
        plugin: "ray",
        arguments: &["head", "worker"],
        needs: Needs::First,
        so: "no pod is made",
    },
    Parts {
        plugin: "tensorflow",
        arguments: &["ps", "worker", "chief", "evaluator"],
        needs: Needs::Any,
        so: "no pod is told of the others",
    },
];

impl Parts {
    /// What is missing, a sentence each.
    fn lacks(&self, spec: &JobSpec, given: &[(&str, Cow<'_, str>)]) -> Vec<String> {
        let named = self.arguments.iter().map(|argument| {
            let given = given.iter().rfind(|(name, _)| name == argument);
            (*argument, given.map(|(_, name)| &**name))
        });
        let named: Vec<(&str, Option<&str>)> = named.collect();
        let is_there = |name: &str| spec.tasks.iter().any(|task| &*task.name == name);
        let missing = named
            .iter()
            .map(|(argument, name)| name.unwrap_or(argument));
        let missing: Vec<&str> = missing.filter(|name| !is_there(name)).collect();
        let first = named
            .first()
            .map(|(argument, name)| name.unwrap_or(argument));
        let is_lost = match self.needs {
            Needs::Any => missing.len() == named.len(),
            Needs::First => first.is_some_and(|first| !is_there(first)),
        };
        if is_lost && !self.is_not_needed(spec) {
            let what = match (&self.needs, first) {
                (Needs::First, Some(first)) => format!("there is no task {first}"),
                _ => format!("there is none of the tasks {}", missing.join(", ")),
            };
            return vec![format!("{what}; {}", self.so)];
        }
        // Who names a task means one that is there.
        let slips = named.iter().filter_map(|(argument, name)| {
            let name = name.filter(|name| !is_there(name))?;
            Some(format!("there is no task {name}, which {argument} names"))
        });
        slips.collect()
    }

    /// Whether nothing is lacking without the tasks: one process has no others, and ranks may come from elsewhere.
    fn is_not_needed(&self, spec: &JobSpec) -> bool {
        match self.plugin {
            "hcclrank" => {
                let mut plugins = spec.plugins();
                plugins.any(|(name, _)| name == "pytorch") || spec.tasks.iter().any(says_rank)
            }
            "tensorflow" => matches!(&*spec.tasks, [task] if task.replicas() == 1),
            _ => false,
        }
    }
}

/// Whether a task's own template says the rank of its pods.
fn says_rank(task: &Task) -> bool {
    let containers = items(&task.template["spec"], "containers").iter();
    let mut variables = containers.flat_map(|container| items(container, "env"));
    variables.any(|variable| text(variable, "name") == "RANK")
}

fn told(fault: &ArgumentFault<'_>) -> String {
    let what = match fault {
        ArgumentFault::Word(word) => format!("{} is no argument", go_quote(word)),
        ArgumentFault::Unknown(name) => format!("there is no argument {}", go_quote(name)),
        ArgumentFault::Lacks(name) => format!("{name} lacks its value"),
        ArgumentFault::Value(name, value) => format!("{name} cannot be {}", go_quote(value)),
        ArgumentFault::Port(name, value) => {
            return format!(
                "{name} must be a port from 1 to 65535, not {}; the job makes nothing with it",
                go_quote(value)
            );
        }
    };
    format!("{what}; neither it nor what follows it counts")
}
