//! Flags of each command, with their short forms and defaults, as the chapter on command lines lists them.

use clap::{Command, CommandFactory};

use crate::vcctl::tools::TOOLS;
use crate::vcctl::{Typed, as_upstream};

/// What each command takes: its words, and flags as `-s/--long=default` in upstream's order.
const FLAGS: &[(&str, &str)] = &[
    ("vcancel", "-N/--namespace=default -n/--name="),
    ("vcctl job delete", "-n/--namespace=default -N/--name="),
    (
        "vcctl job list",
        "-n/--namespace=default -q/--queue= -S/--scheduler= --all-namespaces=false --selector=",
    ),
    ("vcctl job resume", "-n/--namespace=default -N/--name="),
    (
        "vcctl job run",
        "-i/--image=busybox -n/--namespace=default -N/--name= -m/--min=1 -r/--replicas=1 \
         -R/--requests=cpu=1000m,memory=100Mi -L/--limits=cpu=1000m,memory=100Mi -S/--scheduler=volcano \
         -f/--filename=",
    ),
    ("vcctl job suspend", "-n/--namespace=default -N/--name="),
    ("vcctl job view", "-n/--namespace=default -N/--name="),
    ("vcctl jobflow create", "-f/--file="),
    (
        "vcctl jobflow delete",
        "-N/--name= -n/--namespace=default -f/--file=",
    ),
    (
        "vcctl jobflow describe",
        "-N/--name= -n/--namespace=default",
    ),
    ("vcctl jobflow get", "-N/--name= -n/--namespace=default"),
    (
        "vcctl jobflow list",
        "-n/--namespace=default --all-namespaces=false",
    ),
    ("vcctl jobtemplate create", "-f/--file="),
    (
        "vcctl jobtemplate delete",
        "-N/--name= -n/--namespace=default -f/--file=",
    ),
    (
        "vcctl jobtemplate describe",
        "-N/--name= -n/--namespace=default",
    ),
    ("vcctl jobtemplate get", "-N/--name= -n/--namespace=default"),
    // Upstream's has no --all-namespaces; ours has it, as jobflow list does.
    (
        "vcctl jobtemplate list",
        "-n/--namespace=default --all-namespaces=false",
    ),
    (
        "vcctl pod list",
        "-q/--queue= -j/--job= -n/--namespace=default --all-namespaces=false",
    ),
    (
        "vcctl queue create",
        "-n/--name=test -w/--weight=1 -S/--state=Open",
    ),
    ("vcctl queue delete", "-n/--name="),
    ("vcctl queue get", "-n/--name="),
    ("vcctl queue list", ""),
    (
        "vcctl queue operate",
        "-n/--name= -w/--weight=0 -a/--action=",
    ),
    (
        "vjobs",
        "-N/--namespace=default -n/--name= -S/--scheduler= --all-namespaces=false --selector=",
    ),
    ("vqueues", "-n/--name="),
    ("vresume", "-N/--namespace=default -n/--name="),
    (
        "vsub",
        "-i/--image=busybox -N/--namespace=default -n/--name= -m/--min=1 -r/--replicas=1 \
         -R/--requests=cpu=1000m,memory=100Mi -L/--limits=cpu=1000m,memory=100Mi -S/--scheduler=volcano \
         -c/--command=",
    ),
    ("vsuspend", "-N/--namespace=default -n/--name="),
];

/// What every command takes besides. `-o` (of `describe`, whose long name there, `--format`, is understood, too), `--watch` and `--real-exit-codes` are ours.
const EVERYWHERE: &str = "-k/--kubeconfig -s/--master --log-flush-frequency -v/--v --vmodule \
                          -o/--output=table --watch=false --real-exit-codes=false";

/// Values that `vsub` takes from the environment.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("image", "VOLCANO_DEFAULT_IMAGE"),
    ("namespace", "VOLCANO_DEFAULT_JOB_NAMESPACE"),
    ("scheduler", "VOLCANO_SCHEDULER_NAME"),
];

/// The tool of that name, built.
fn tool(name: &str) -> Command {
    let tool = TOOLS.iter().find(|tool| tool.name == name);
    as_upstream((tool.expect("it is one of the tools").command)())
}

/// Leaves of a tree of commands that take flags of their own, with all of their words.
fn leaves(words: &str, command: &Command, found: &mut Vec<(String, Command)>) {
    if command.get_subcommands().next().is_none() {
        found.push((words.to_owned(), command.clone()));
    }
    for below in command.get_subcommands() {
        leaves(&format!("{words} {}", below.get_name()), below, found);
    }
}

fn commands() -> Vec<(String, Command)> {
    let mut whole = as_upstream(Typed::command());
    whole.build();
    let mut found = Vec::new();
    leaves("vcctl", &whole, &mut found);
    for one in TOOLS {
        let mut command = tool(one.name);
        command.build();
        found.push((one.name.to_owned(), command));
    }
    found.retain(|(words, _)| !matches!(words.as_str(), "vcctl completion" | "vcctl version"));
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

/// Flags of a command as the tables above write them, sorted.
fn flags(command: &Command) -> Vec<String> {
    let mut flags: Vec<String> = command
        .get_arguments()
        .filter(|it| it.get_id() != "help")
        .map(|it| {
            let short = it
                .get_short()
                .map_or(String::new(), |short| format!("-{short}/"));
            let default = match it.get_default_values() {
                [value] => format!("={}", value.to_string_lossy()),
                _ => String::new(),
            };
            format!("{short}--{}{default}", it.get_long().unwrap_or("?"))
        })
        .collect();
    flags.sort();
    flags
}

#[test]
fn each_command_has_upstreams_flags() {
    let commands = commands();
    let names: Vec<&str> = commands.iter().map(|(words, _)| words.as_str()).collect();
    let listed: Vec<&str> = FLAGS.iter().map(|(words, _)| *words).collect();
    assert_eq!(names, listed);
    for ((words, command), (_, own)) in commands.iter().zip(FLAGS) {
        let mut wanted: Vec<String> = own
            .split_whitespace()
            .chain(EVERYWHERE.split_whitespace())
            .map(str::to_owned)
            .collect();
        wanted.sort();
        assert_eq!(flags(command), wanted, "{words}");
    }
}

#[test]
fn what_is_submitted_may_come_from_the_environment() {
    let command = tool("vsub");
    for (name, variable) in ENVIRONMENT {
        let argument = command.get_arguments().find(|it| it.get_id() == *name);
        let argument = argument.expect("it has that flag");
        assert_eq!(argument.get_env(), Some((*variable).as_ref()), "{name}");
    }
}

#[test]
fn flags_are_read_as_upstreams_parser_reads_them() {
    let read = |words: &str| {
        let matches = as_upstream(Typed::command()).try_get_matches_from(words.split(' '));
        let matches = matches.unwrap_or_else(|error| panic!("{words}: {error}"));
        let (_, matches) = matches.subcommand().expect("there is a group");
        matches.subcommand().expect("there is a command").1.clone()
    };
    for (words, wanted) in [
        ("vcctl job list --all-namespaces", true),
        ("vcctl job list --all-namespaces=true", true),
        ("vcctl job list --all-namespaces=1", true),
        ("vcctl job list --all-namespaces=false", false),
        (
            "vcctl job list --all-namespaces --all-namespaces=false",
            false,
        ),
        ("vcctl job list", false),
    ] {
        let told = read(words).get_one::<bool>("all_namespaces").copied();
        assert_eq!(told, Some(wanted), "{words}");
    }
    for words in [
        "vcctl job list -n a -n b",
        "vcctl job list -n=b",
        "vcctl job list -nb",
        "vcctl job list --namespace b -v 4 --log-flush-frequency=5s --vmodule a=1",
        "vcctl -k /k -s http://a job list --namespace=b",
    ] {
        let told = read(words).get_one::<String>("namespace").cloned();
        assert_eq!(told.as_deref(), Some("b"), "{words}");
    }
    let weight = read("vcctl queue operate -w -1")
        .get_one::<i32>("weight")
        .copied();
    assert_eq!(weight, Some(-1));
}
