//! Katmai's parts as processes of their own, beside a cluster: which flags each understands.
//!
//! Each also answers to upstream's name, and takes every flag that upstream's takes: a flag is kept,
//! means something else that serves the same end, or is taken without effect, with one warning that
//! says why. The list is [`PROCESSES`]; parsing, help, the man page and docs/flags.md come from its
//! rows.

mod controllers;
mod doors;
mod election;
mod flag;
#[cfg(test)]
mod page;
mod rows;
mod scheduler;
mod typed;
mod webhooks;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Arg, ArgMatches, Command};

use crate::console;
use crate::start::{Connection, Deciding, Decisions, Outcome, Process, Start};
use crate::verbs::version;
use flag::{Flag, Group};
use typed::Typed;

/// Words that are no flags.
const WORDS: &str = "words";

/// One process.
pub(crate) struct Row {
    /// The verb of `katmai`.
    pub(crate) verb: &'static str,
    /// Upstream's binary.
    pub(crate) upstream: &'static str,
    /// What it does, in one line.
    about: &'static str,
    /// What more is to be said below its flags.
    after: &'static str,
    /// Its own flags, and those that it shares with others.
    groups: &'static [Group],
    /// What was typed, as something to be started or as said already.
    read: fn(&Typed<'_>) -> anyhow::Result<Outcome>,
}

/// Every process, by its room.
pub(crate) const PROCESSES: &[Row] = &[
    controllers::CONTROLLERS,
    controllers::HYPER_NODES_ALONE,
    scheduler::AGENT,
    scheduler::SCHEDULER,
    webhooks::WEBHOOKS,
];

/// The process of this verb.
pub(crate) fn find(verb: &str) -> Option<&'static Row> {
    PROCESSES.iter().find(|row| row.verb == verb)
}

/// The process that upstream calls so.
pub(crate) fn called(name: &str) -> Option<&'static Row> {
    PROCESSES.iter().find(|row| row.upstream == name)
}

impl Row {
    /// Its flags, in the order of help.
    fn flags(&self) -> impl Iterator<Item = &'static Flag> + use<> {
        self.groups.iter().flat_map(|group| group.flags)
    }

    /// Name, help and arguments.
    pub(crate) fn command(&self) -> Command {
        let command = Command::new(self.verb)
            .about(self.about)
            .after_help(self.after)
            .disable_version_flag(true)
            .arg(Arg::new(WORDS).num_args(0..).hide(true));
        self.groups.iter().fold(command, |command, group| {
            let arguments = group.flags.iter().map(Flag::argument);
            command.next_help_heading(group.title).args(arguments)
        })
    }

    /// What was typed, as something to be started. Each flag that does not do what it does upstream is
    /// told of in a line.
    pub(crate) fn begin(&self, matches: &ArgMatches) -> Outcome {
        let typed = Typed::new(matches, self.flags().collect());
        if typed.switch("version") {
            console::say(&version::upstreams());
            return Outcome::Exit(crate::EXIT_COMPLETE);
        }
        for warning in typed.warnings() {
            console::complain(&format!("warning: {warning}"));
        }
        // Upstream's parser passes over them, and its chart ends with one that was meant for a shell: `2>&1`.
        for word in matches.get_many::<String>(WORDS).into_iter().flatten() {
            console::complain(&format!("warning: {word} is no flag and says nothing here"));
        }
        (self.read)(&typed).unwrap_or_else(|error| {
            console::complain(&format!("error: {error:#}"));
            Outcome::Exit(crate::EXIT_BAD_INPUT)
        })
    }
}

/// Names of flags with `-` where `_` was typed, as upstream's parser takes them.
pub(crate) fn normal(argument: OsString) -> OsString {
    let Some(text) = argument.to_str().filter(|text| text.starts_with("--")) else {
        return argument;
    };
    match text.split_once('=') {
        Some((name, value)) => format!("{}={value}", name.replace('_', "-")).into(),
        None => text.replace('_', "-").into(),
    }
}

/// A process that does this and is known by these Leases, which it says it holds for `serves`.
fn process(
    typed: &Typed<'_>,
    name: &'static str,
    deciding: Deciding,
    leases: &[Box<str>],
    serves: &str,
) -> anyhow::Result<Outcome> {
    let process = Process {
        name,
        deciding,
        connection: connection(typed),
        election: election::election(typed, leases, serves, &identity()?)?,
        doors: doors::doors(typed)?,
        verbosity: typed.whole("v"),
    };
    Ok(Outcome::Start(Box::new(Start::Beside(process))))
}

/// How the API is reached.
fn connection(typed: &Typed<'_>) -> Connection {
    let some = |name: &str| Some(typed.text(name)).filter(|text| !text.is_empty());
    Connection {
        kubeconfig: some("kubeconfig").map(PathBuf::from),
        master: some("master").map(str::to_owned),
    }
}

/// Where decisions are logged, if anywhere.
fn decisions(typed: &Typed<'_>) -> Option<Decisions> {
    let directory = typed.text("decision-log-dir");
    let whole = |name: &str| u32::try_from(typed.whole(name)).unwrap_or(u32::MAX);
    (!directory.is_empty()).then(|| Decisions {
        directory: directory.into(),
        hours: whole("decision-log-hours"),
        mebibytes: whole("decision-log-max"),
    })
}

/// A name that no other process has: this machine's, and a word that the kernel draws.
fn identity() -> anyhow::Result<String> {
    const DRAWN: &str = "/proc/sys/kernel/random/uuid";
    let drawn = std::fs::read_to_string(DRAWN).with_context(|| format!("cannot read {DRAWN}"))?;
    let host = nix::sys::utsname::uname().context("cannot ask for the name of this machine")?;
    let host = host.nodename().to_string_lossy().into_owned();
    Ok(format!("{host}_{}", drawn.trim()))
}

#[cfg(test)]
mod tests;
