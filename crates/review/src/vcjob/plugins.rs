//! Plugins of jobs: which there are, what they need of one another, and their arguments.
//!
//! Source: `specs/volcano.md`, sections 2.1.7, 4.1 and 4.2.

use std::collections::BTreeMap;

use api::names::go_quote;
use api::volcano::JobSpec;
use serde_json::{Map, Value, json};

use crate::{PluginKeys, Settings};

/// One plugin.
struct Plugin {
    name: &'static str,
    /// Plugins without which its pods do not find one another.
    implies: &'static [&'static str],
    /// Its arguments.
    arguments: &'static [Argument],
}

/// One argument, as Go's `flag` reads it.
struct Argument {
    name: &'static str,
    form: Form,
}

/// What an argument's value is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Number,
    /// `true` where nothing is said.
    Switch,
    /// The same, or after `=` a text.
    SwitchOrText,
}

const fn text(name: &'static str) -> Argument {
    let form = Form::Text;
    Argument { name, form }
}

const fn number(name: &'static str) -> Argument {
    let form = Form::Number;
    Argument { name, form }
}

const fn switch(name: &'static str) -> Argument {
    let form = Form::Switch;
    Argument { name, form }
}

const fn switch_or_text(name: &'static str) -> Argument {
    let form = Form::SwitchOrText;
    Argument { name, form }
}

const fn row(
    name: &'static str,
    implies: &'static [&'static str],
    arguments: &'static [Argument],
) -> Plugin {
    Plugin {
        name,
        implies,
        arguments,
    }
}

const PRIVATE_KEY: &str = "ssh-private-key";
/// How a key begins that somebody gives to another argument.
const PEM: &str = "PRIVATE KEY-----";

/// All of them, by name.
const PLUGINS: &[Plugin] = &[
    row("env", &[], &[]),
    row("hcclrank", &[], &[text("master"), text("worker")]),
    row(
        "mpi",
        &["svc", "ssh"],
        &[text("master"), text("worker"), number("port")],
    ),
    row(
        "pytorch",
        &["svc"],
        &[
            text("master"),
            text("worker"),
            number("port"),
            switch("wait-master-enabled"),
            number("wait-master-timeout"),
            text("wait-master-image"),
        ],
    ),
    row(
        "ray",
        &["svc"],
        &[
            text("head"),
            text("headContainer"),
            text("worker"),
            text("workerContainer"),
            number("port"),
            number("dashboardPort"),
            number("clientPort"),
        ],
    ),
    row(
        "ssh",
        &[],
        &[
            text("ssh-key-file-path"),
            text(PRIVATE_KEY),
            text("ssh-public-key"),
            number("ssh-port"),
            switch("disable-network-policy"),
            switch("host-keys"),
        ],
    ),
    row(
        "svc",
        &[],
        &[
            switch("publish-not-ready-addresses"),
            switch("disable-network-policy"),
            switch("inject-hosts-env"),
            switch("addresses"),
            switch_or_text("wait-for-peers"),
        ],
    ),
    row(
        "tensorflow",
        &["svc"],
        &[
            text("ps"),
            text("worker"),
            text("chief"),
            text("evaluator"),
            number("port"),
        ],
    ),
];

fn find(name: &str) -> Option<&'static Plugin> {
    PLUGINS.iter().find(|plugin| plugin.name == name)
}

/// Each plugin that another cannot do without, by name, with those who cannot.
pub(crate) fn implied() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut implied: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in PLUGINS {
        for name in row.implies {
            implied.entry(name).or_default().push(row.name);
        }
    }
    implied
}

/// Adds the plugins that those named cannot do without.
pub(super) fn imply(plugins: &mut Map<String, Value>) {
    for (name, by) in implied() {
        if by.iter().any(|it| plugins.contains_key(*it)) {
            plugins.entry(name).or_insert_with(|| json!([]));
        }
    }
}

/// Whether the task that MPI starts from is there.
pub(super) fn has_master(spec: &JobSpec) -> bool {
    let Some((_, arguments)) = spec.plugins().find(|(name, _)| *name == "mpi") else {
        return true;
    };
    let given = read(arguments)
        .filter_map(Result::ok)
        .filter(|(flag, _)| *flag == "master");
    let master = given.last().and_then(|(_, value)| value);
    let master = master.unwrap_or("master");
    spec.tasks.iter().any(|task| &*task.name == master)
}

/// Plugins that do not exist, and keys that everybody could read.
pub(super) fn check(settings: &Settings, spec: &JobSpec, message: &mut String) {
    for (name, arguments) in spec.plugins() {
        if find(name).is_none() {
            message.push_str(&format!(" unable to find job plugin: {name};"));
        }
        if settings.plugin_keys == PluginKeys::Refused && has_key(arguments) {
            message.push_str(&format!(
                " arguments of job plugin {name} must not hold a private key: whoever may read the job could read it;"
            ));
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
            let plugin = find(name)?;
            let fault = read(arguments).find_map(|argument| match argument {
                Ok((flag, value)) => fault(plugin, flag, value),
                Err(word) => Some(format!("{} is no argument", go_quote(word))),
            })?;
            Some(format!(
                "job plugin {name}: {fault}; neither it nor what follows it counts"
            ))
        })
        .collect()
}

fn fault(plugin: &Plugin, flag: &str, value: Option<&str>) -> Option<String> {
    let mut rows = plugin.arguments.iter();
    let Some(row) = rows.find(|row| row.name == flag) else {
        return Some(format!("there is no argument {}", go_quote(flag)));
    };
    let value = value.unwrap_or_default();
    let fits = match row.form {
        Form::Text | Form::SwitchOrText => true,
        Form::Number => value.parse::<i64>().is_ok(),
        Form::Switch => matches!(
            value,
            "" | "1"
                | "t"
                | "T"
                | "true"
                | "TRUE"
                | "True"
                | "0"
                | "f"
                | "F"
                | "false"
                | "FALSE"
                | "False"
        ),
    };
    (!fits).then(|| format!("{flag} cannot be {}", go_quote(value)))
}

/// Whether a flag of this name takes the next word where it has no `=`.
fn takes_word(flag: &str) -> bool {
    let mut all = PLUGINS.iter().flat_map(|plugin| plugin.arguments);
    !all.any(|row| row.name == flag && matches!(row.form, Form::Switch | Form::SwitchOrText))
}

/// `--name=value`, `--name value` or `--switch`, with one dash or two; what is none of these ends
/// the reading, as with Go's `flag`.
fn read(arguments: &[Box<str>]) -> impl Iterator<Item = Result<(&str, Option<&str>), &str>> {
    let mut words = arguments.iter().map(|word| &**word);
    let mut has_ended = false;
    std::iter::from_fn(move || {
        let word = words.next().filter(|_| !has_ended)?;
        let flag = word.strip_prefix("--").or(word.strip_prefix('-'));
        let Some(flag) = flag.filter(|flag| !flag.is_empty()) else {
            has_ended = true;
            return Some(Err(word));
        };
        Some(Ok(match flag.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None if takes_word(flag) => (flag, words.next()),
            None => (flag, None),
        }))
    })
}
