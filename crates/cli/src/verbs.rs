//! The verbs, one row and one file each.

mod completion;
mod crds;
mod down;
mod explain;
mod get_kubeconfig;
mod logs;
mod man;
mod replay;
mod run;
mod simulate;
mod status;
mod up;
mod vcctl;
pub(crate) mod version;
mod whatif;

mod meeting;
mod rehearsing;
pub(crate) mod serving;
mod shape;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use clap::{ArgMatches, Command};

use crate::cluster::Cluster;
use crate::console::{self, Console};
use crate::processes::{self, PROCESSES, Row};
use crate::start::{Outcome, Question};
use crate::vcctl::tools::{TOOLS, Tool};
use crate::{EXIT_BAD_INPUT, EXIT_FAILED};

/// One verb: its name and arguments for help and completion, and what it begins.
pub struct Verb {
    /// What is typed.
    pub name: &'static str,
    /// Describes name, help and arguments.
    pub command: fn() -> Command,
    /// Turns what was typed into an outcome. The first look at the world happens here.
    pub begin: fn(&ArgMatches) -> anyhow::Result<Outcome>,
}

/// Every verb, alphabetical.
pub const VERBS: &[Verb] = &[
    completion::VERB,
    crds::VERB,
    down::VERB,
    explain::VERB,
    get_kubeconfig::VERB,
    logs::VERB,
    man::VERB,
    replay::VERB,
    run::VERB,
    simulate::VERB,
    status::VERB,
    up::VERB,
    vcctl::VERB,
    version::VERB,
    whatif::VERB,
];

/// The whole command, made from the rows of verbs and of processes.
pub fn command() -> Command {
    let root = Command::new("katmai")
        .about("The batch platform for Kubernetes, embedded: gangs, queues and jobs on one machine")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true);
    let mut commands: Vec<Command> = VERBS.iter().map(|verb| (verb.command)()).collect();
    commands.extend(PROCESSES.iter().map(Row::command));
    commands.sort_by(|one, other| one.get_name().cmp(other.get_name()));
    root.subcommands(commands)
}

/// Understands a command line; speaks and gives an exit code where nothing is left to be done.
/// Called by the name `vcctl` or of a tool such as `vsub`, it is that; called by the name of one of upstream's processes, it is
/// that process.
pub fn parse(arguments: Vec<OsString>) -> Outcome {
    let called = arguments
        .first()
        .and_then(|first| Path::new(first).file_name())
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    if called == "vcctl" {
        return crate::vcctl::parse(arguments.iter().skip(1).cloned().collect());
    }
    if let Some(tool) = Tool::called(called) {
        return tool.parse(arguments.iter().skip(1).cloned().collect());
    }
    if let Some(process) = processes::called(called) {
        let arguments = arguments.into_iter().map(processes::normal);
        return match called_upstreams(process).try_get_matches_from(arguments) {
            Ok(matches) => process.begin(&matches),
            Err(error) => refuse(&error),
        };
    }
    let verb = arguments.get(1).and_then(|verb| verb.to_str());
    if let Some(tool) = verb.and_then(Tool::called) {
        return tool.parse(arguments.iter().skip(2).cloned().collect());
    }
    let arguments = match verb.is_some_and(|verb| processes::find(verb).is_some()) {
        true => arguments.into_iter().map(processes::normal).collect(),
        false => arguments,
    };
    let matches = match command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => return refuse(&error),
    };
    let Some((name, matches)) = matches.subcommand() else {
        return Outcome::Exit(EXIT_BAD_INPUT);
    };
    if let Some(process) = processes::find(name) {
        return process.begin(matches);
    }
    let verb = VERBS
        .iter()
        .find(|verb| verb.name == name)
        .expect("subcommands are made from these rows");
    (verb.begin)(matches).unwrap_or_else(|error| {
        console::complain(&format!("error: {error:#}"));
        Outcome::Exit(EXIT_FAILED)
    })
}

/// A process as a program of its own, under upstream's name.
fn called_upstreams(process: &Row) -> Command {
    process.command().name(process.upstream)
}

/// What [`program`] knows, tools first.
pub(crate) fn programs() -> impl Iterator<Item = &'static str> {
    let tools = TOOLS.iter().map(|tool| tool.name);
    tools.chain(PROCESSES.iter().map(|process| process.upstream))
}

/// The program of that name beside `katmai` itself: a tool of upstream's, or a process under upstream's name.
pub(crate) fn program(name: &str) -> Option<Command> {
    let tool = Tool::called(name).map(Tool::whole);
    tool.or_else(|| processes::called(name).map(called_upstreams))
}

/// Asks a cluster what a verb wants to know and gives the exit code.
pub async fn answer(question: Question, cluster: Arc<dyn Cluster>, console: Console) -> u8 {
    let told = match question {
        Question::Run(request) => crate::run::answer(request, cluster, console).await,
        Question::Logs(request) => crate::logs::answer(request, cluster, console).await,
        Question::Status(request) => status::answer(&request, cluster).await,
        Question::Vcctl(request) => crate::vcctl::answer(request, cluster).await,
    };
    told.unwrap_or_else(|error| {
        console::complain(&format!("error: {error:#}"));
        EXIT_FAILED
    })
}

/// Says that nobody can be asked, in the words of who asked, and gives the exit code.
pub fn unasked(question: &Question, error: &anyhow::Error) -> u8 {
    if let Question::Vcctl(request) = question {
        return request.unasked(error);
    }
    console::complain(&format!("error: {error:#}"));
    EXIT_FAILED
}

/// Help and version go to standard output with 0, mistakes to standard error with 2.
pub(crate) fn refuse(error: &clap::Error) -> Outcome {
    // A closed standard output or error leaves nobody to tell.
    drop(error.print());
    Outcome::Exit(if error.use_stderr() {
        EXIT_BAD_INPUT
    } else {
        0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_each_verb_with_what_it_does() {
        insta::assert_snapshot!(command().render_help().to_string(), @r"
        The batch platform for Kubernetes, embedded: gangs, queues and jobs on one machine

        Usage: katmai <COMMAND>

        Commands:
          agent-scheduler       Decide for a cluster where single pods go, without gangs and queues
          completion            Print a completion script for a shell
          controllers           Keep jobs, queues and groups of a cluster as they should be
          crds                  Print definitions of kinds, for kubectl apply --server-side -f - on a
                                cluster
          down                  End the plane that is up; its objects stay
          explain               Say why a workload waits, who holds what it needs, and what would help
          get-kubeconfig        Print the kubeconfig of the plane that is up
          hypernode-controller  Find hyper-nodes of a cluster, and count their nodes
          logs                  Print the logs of a workload's tasks, or without a name the plane's own
          man                   Print a manual page, for man -l -
          replay                Decide again what a decision log holds, and compare
          run                   Apply manifests and follow their workloads to the end
          scheduler             Decide for a cluster where pods go, or check a configuration with
                                --check-config
          simulate              Play a workload on a simulated cluster, and say how it went
          status                Say whether a plane is up, where, and what it holds
          up                    Start a plane and serve until interrupted: API, controllers, scheduler,
                                nodes
          vcctl                 Volcano's command line: jobs, queues and pods
          version               Print the version
          webhooks              Review what is written to a cluster, as its webhooks
          whatif                Say what would start, wait or be evicted if a cluster were changed so

        Options:
          -h, --help     Print help
          -V, --version  Print version
        ");
    }

    #[test]
    fn wrong_amounts_are_refused() {
        for wrong in ["abc", "0", "-1", ""] {
            let typed = ["katmai", "up", "--node-cpu", wrong].map(OsString::from);
            assert!(
                matches!(parse(typed.to_vec()), Outcome::Exit(EXIT_BAD_INPUT)),
                "{wrong}"
            );
        }
    }

    #[test]
    fn verbs_stand_in_alphabetical_order_under_their_own_names() {
        assert!(VERBS.is_sorted_by_key(|verb| verb.name));
        for verb in VERBS {
            assert_eq!((verb.command)().get_name(), verb.name);
        }
        command().debug_assert();
    }
}
