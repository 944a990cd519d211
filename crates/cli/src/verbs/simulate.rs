//! `katmai simulate CLUSTER WORKLOAD`.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Command, FromArgMatches};
use sim::{FAULTS, Fault, Strikes, TraceSettings};

use super::Verb;
use super::run::duration;
use crate::EXIT_BAD_INPUT;
use crate::console;
use crate::manifest;
use crate::scheduler_conf;
use crate::start::{Format, Outcome, SimulateRequest, Start};

/// The row.
pub const VERB: Verb = Verb {
    name: "simulate",
    command: || Arguments::augment_args(command()),
    begin: |matches| Ok(begin(Arguments::from_arg_matches(matches)?)),
};

fn command() -> Command {
    Command::new("simulate")
        .about("Play a workload on a simulated cluster, and say how it went")
        .override_usage("katmai simulate [OPTIONS] <CLUSTER> <WORKLOAD>")
        .after_help(
            "Annotations say when a workload comes and how long its pods run, as durations such as 10m:\n\
             \x20 katmai.dev/sim-arrives          so long after the beginning [default: at once]\n\
             \x20 katmai.dev/sim-arrives-jitter   each arrival up to so much later, by the seed\n\
             \x20 katmai.dev/sim-every            comes again after so long, to the end or\n\
             \x20 katmai.dev/sim-times            so many times in all\n\
             \x20 katmai.dev/sim-duration         on the workload or a pod template: its pods run so long\n\
             \x20 katmai.dev/sim-duration-jitter  each arrival's pods up to so much longer, by the seed\n\
             \x20 katmai.dev/sim-exit-code        on a pod template: its pods end so [default: 0]\n\
             \x20 katmai.dev/sim-count            on a Node: so many like this one\n\n\
             The same files, seed and version give the same output, byte for byte.\n\n\
             Exit codes: 0 all completed, 1 one failed or was refused, 2 a manifest is wrong, 3 the time ran out first.",
        )
}

#[derive(Args)]
struct Arguments {
    /// What is there: Nodes, Queues, PriorityClasses … (file, directory, or - for standard input)
    cluster: Option<String>,
    /// What comes: vcjobs, jobs, pods … with annotations
    workload: Option<String>,
    /// Namespace of objects that name none
    #[arg(long, short, default_value = "default")]
    namespace: String,
    /// Every random choice follows from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Simulate no longer than this
    #[arg(long = "for", value_name = "DURATION", default_value = "24h", value_parser = duration)]
    time: Duration,
    /// How long pods run that say nothing of it
    #[arg(long, default_value = "10m", value_parser = duration)]
    duration: Duration,
    /// What goes wrong: names, each perhaps with =RATE; "list" lists them
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    faults: Vec<String>,
    /// The scheduler's configuration (volcano-scheduler.conf) [default: Volcano's]
    #[arg(long, value_name = "FILE")]
    scheduler_conf: Option<PathBuf>,
    /// Draw who waited and ran when into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write down who wrote what when, a line a write
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
    /// How to write it
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

fn begin(typed: Arguments) -> Outcome {
    let Arguments {
        cluster,
        workload,
        namespace,
        seed,
        time,
        duration,
        faults,
        scheduler_conf,
        svg,
        transcript,
        output,
    } = typed;
    if faults == ["list"] {
        console::say(listed().trim_end());
        return Outcome::Exit(0);
    }
    let (Some(cluster), Some(workload)) = (cluster, workload) else {
        let text = "the files of a cluster and of a workload are needed";
        return wrong(ErrorKind::MissingRequiredArgument, text);
    };
    let faults: Result<Vec<_>, String> = faults.iter().map(|name| fault(name)).collect();
    let faults = match faults {
        Ok(faults) => faults,
        Err(text) => return wrong(ErrorKind::InvalidValue, &text),
    };
    let (for_ms, duration_ms) = (milliseconds(time), milliseconds(duration));
    if !(1_000..=sim::FOR_MS_MAX).contains(&for_ms) || duration_ms > sim::FOR_MS_MAX {
        let text = "--for takes a second to a year, --duration a year at most";
        return wrong(ErrorKind::InvalidValue, text);
    }
    let read = |file: &str| manifest::read(&[file.to_owned()]);
    let (there, comes) = match (read(&cluster), read(&workload)) {
        (Ok(there), Ok(comes)) => (there, comes),
        (there, comes) => {
            let mistakes = [there.err(), comes.err()].into_iter().flatten().flatten();
            let mistakes: Vec<_> = mistakes.collect();
            return Outcome::Exit(crate::run::complain(&mistakes, output));
        }
    };
    let scheduler_conf = scheduler_conf.as_deref().map(scheduler_conf::load);
    let scheduler_conf = match scheduler_conf.transpose() {
        Ok(loaded) => loaded.map(|it| it.conf),
        Err(error) => {
            console::complain(&format!("error: {error:#}"));
            return Outcome::Exit(EXIT_BAD_INPUT);
        }
    };
    Outcome::Start(Box::new(Start::Simulate(SimulateRequest {
        cluster_file: cluster,
        cluster: there,
        workload: comes,
        settings: TraceSettings {
            seed,
            for_ms,
            namespace,
            duration_ms,
            faults,
        },
        scheduler_conf,
        svg,
        transcript,
        format: output,
    })))
}

fn wrong(kind: ErrorKind, text: &str) -> Outcome {
    let mut command = Arguments::augment_args(command());
    super::refuse(&command.error(kind, text))
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// `crash` or `crash=100`.
fn fault(typed: &str) -> Result<(Fault, u64), String> {
    let (name, rate) = match typed.split_once('=') {
        Some((name, rate)) => (name, Some(rate)),
        None => (typed, None),
    };
    let fault = Fault::find(name)
        .ok_or_else(|| format!("there is no fault {name:?}; --faults list names them all"))?;
    let rate = match rate {
        None => usual(fault),
        Some(rate) => rate
            .parse()
            .ok()
            .filter(|rate| (1..=1_000_000_000).contains(rate))
            .ok_or_else(|| format!("{typed}: a rate is a number above 0"))?,
    };
    Ok((fault, rate))
}

/// How often a fault happens unless a rate is given.
fn usual(fault: Fault) -> u64 {
    match fault.row().strikes {
        Strikes::OnceIn => 200,
        Strikes::OnceInFew => 10,
        Strikes::Every => 600,
    }
}

fn listed() -> String {
    let mut text = "what can go wrong; a rate counts\n".to_owned();
    for row in FAULTS {
        let counts = match row.strikes {
            Strikes::OnceIn | Strikes::OnceInFew => "chances between two",
            Strikes::Every => "seconds between two",
        };
        text.push_str(&format!(
            "  {:<24}{counts} [{}]   {}\n",
            row.name,
            usual(row.fault),
            row.asked
        ));
    }
    text
}
