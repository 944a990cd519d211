//! Plugins of jobs: those that are not there, those that others need, and arguments that do not count.
//!
//! Source: `specs/volcano.md`, sections 2.1.7, 4.1 and 4.2.

use std::collections::BTreeMap;

use api::names::go_quote;
use api::volcano::{ArgumentFault, JOB_PLUGINS, JobPlugin, JobSpec};
use serde_json::{Map, Value, json};

use crate::denials::jobs;
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

/// What upstream only logs: arguments that count for nothing.
pub(super) fn warnings(spec: &JobSpec) -> Vec<String> {
    spec.plugins()
        .filter_map(|(name, arguments)| {
            let fault = JobPlugin::find(name)?.read(arguments).fault?;
            Some(format!("job plugin {name}: {}", told(&fault)))
        })
        .collect()
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
