//! Volcano's command line, with upstream's flags, columns and texts (`specs/volcano.md`, chapter 5).
//!
//! The list is [`Request`]'s variants; each group has its file, [`tools`] has the commands of one deed.
//! Errors go to standard output with exit status 255, as upstream's do, unless real ones are asked for.
//! What upstream has not: `-o`, `--watch`, `--real-exit-codes` and completion.

mod end;
mod flow;
mod follow;
mod job;
mod pod;
mod pod_state;
mod queue;
mod told;
pub(crate) mod tools;
mod view;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::time::Time;
use clap::builder::BoolishValueParser;
use clap::error::ErrorKind;
use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand,
};
use clap_complete::Shell;
use tokio::sync::mpsc;

use crate::cluster::Cluster;
use crate::console;
use crate::rest::{Rest, Seen};
use crate::run;
use crate::start::{Connection, Outcome, Question, Start};
use crate::state::StateDir;
use crate::verbs::version;
use end::{End, Failures};
use follow::Followed;
use told::{Form, Manner, Told};

/// Between two tables of a watch at least.
const WATCH_REST: Duration = Duration::from_millis(500);
const NEWS_WAITING_MAX: usize = 1_024;

#[derive(Parser)]
#[command(
    name = "vcctl",
    about = "Command line client for vcjobs, queues, pods and flows"
)]
struct Typed {
    #[command(subcommand)]
    request: Group,
    #[command(flatten)]
    common: Common,
}

// What every command takes. A comment only: clap would take documentation as what each tool is about.
#[derive(Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Common {
    /// (optional) absolute path to the kubeconfig file
    #[arg(short, long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// the address of apiserver
    #[arg(short = 's', long, global = true, value_name = "URL")]
    master: Option<String>,
    // Upstream's `describe` calls it --format.
    /// how to write what was found
    #[arg(
        short,
        long,
        alias = "format",
        global = true,
        value_enum,
        default_value_t
    )]
    output: Form,
    /// with list: go on, and print each line that changes
    #[arg(long, global = true)]
    watch: bool,
    /// failures end with 1 and are told on standard error, instead of with 255 on standard output
    #[arg(long, global = true)]
    real_exit_codes: bool,
    /// (Volcano's; has no effect here)
    #[arg(long, global = true, value_name = "DURATION")]
    log_flush_frequency: Option<String>,
    /// (Volcano's; has no effect here)
    #[arg(short = 'v', long = "v", global = true, value_name = "LEVEL")]
    verbosity: Option<String>,
    /// (Volcano's; has no effect here)
    #[arg(long, global = true, value_name = "PATTERN=LEVEL")]
    vmodule: Option<String>,
}

impl Common {
    /// What is to be started for a request, or how that ends which cannot be answered in this form.
    fn ask(self, asked: Asked) -> Result<Outcome, End> {
        if !asked.shows_objects() {
            self.refuse_form()?;
        }
        let failures = self.failures();
        Ok(Outcome::Start(Box::new(Start::Ask(
            connection(self.kubeconfig, self.master),
            Question::Vcctl(Request {
                asked,
                form: self.output,
                watch: self.watch,
                failures,
            }),
        ))))
    }

    /// A command that shows no object has nothing to write in a form. Upstream's own is what it says anyway.
    fn refuse_form(&self) -> Result<(), End> {
        if self.output == Form::Table {
            return Ok(());
        }
        let told = "--output says how objects are written, and this command shows none";
        let error = clap::Error::raw(ErrorKind::ArgumentConflict, told);
        Err(End::of_usage(&error, self.failures()))
    }

    fn failures(&self) -> Failures {
        match self.real_exit_codes {
            true => Failures::Real,
            false => Failures::Upstreams,
        }
    }
}

#[derive(Subcommand)]
enum Group {
    /// vcctl command line operation job
    #[command(subcommand)]
    Job(job::Request),
    /// JobFlow Operations
    #[command(subcommand)]
    Jobflow(flow::Request),
    /// JobTemplate Operations
    #[command(subcommand)]
    Jobtemplate(flow::Request),
    /// vcctl command line operation pod
    #[command(subcommand)]
    Pod(pod::Request),
    /// Queue Operations
    #[command(subcommand)]
    Queue(queue::Request),
    /// Print a completion script for a shell
    Completion {
        /// which shell
        shell: Shell,
    },
    /// Print the version information
    Version,
}

/// What was asked for, and how it is to be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    asked: Asked,
    form: Form,
    watch: bool,
    failures: Failures,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Asked {
    /// About vcjobs.
    Job(job::Request),
    /// About flows or templates.
    Flow(&'static flow::Family, flow::Request),
    /// By a command of one deed.
    Tool(tools::Request),
    /// About pods.
    Pod(pod::Request),
    /// About queues.
    Queue(queue::Request),
}

/// Understands what follows the name `vcctl`; speaks where nothing is left to be done.
pub(crate) fn parse(arguments: Vec<OsString>) -> Outcome {
    understand(arguments).unwrap_or_else(|end| Outcome::Exit(end.say()))
}

fn understand(arguments: Vec<OsString>) -> Result<Outcome, End> {
    let typed = typed(Typed::command(), arguments, Typed::from_arg_matches)?;
    let common = typed.common;
    let asked = match typed.request {
        Group::Job(request) => Asked::Job(request),
        Group::Jobflow(request) => Asked::Flow(&flow::FLOWS, request),
        Group::Jobtemplate(request) => Asked::Flow(&flow::TEMPLATES, request),
        Group::Pod(request) => Asked::Pod(request),
        Group::Queue(request) => Asked::Queue(request),
        Group::Completion { shell } => {
            common.refuse_form()?;
            let mut script = Vec::new();
            let mut command = as_upstream(Typed::command());
            clap_complete::generate(shell, &mut command, "vcctl", &mut script);
            return Err(End::well(String::from_utf8_lossy(&script).into_owned()));
        }
        Group::Version => {
            common.refuse_form()?;
            return Err(End::well(version::upstreams()));
        }
    };
    common.ask(asked)
}

/// What was typed after a command's name, or how that ends which leaves nothing to be done.
fn typed<T>(
    command: Command,
    arguments: Vec<OsString>,
    read: fn(&ArgMatches) -> Result<T, clap::Error>,
) -> Result<T, End> {
    // Asked before the command line is understood, since it may be that which is not.
    let is_real = |it: &OsString| it == "--real-exit-codes" || it == "--real-exit-codes=true";
    let failures = match arguments.iter().any(is_real) {
        true => Failures::Real,
        false => Failures::Upstreams,
    };
    let whole = std::iter::once(command.get_name().into()).chain(arguments);
    as_upstream(command)
        .try_get_matches_from(whole)
        .and_then(|matches| read(&matches))
        .map_err(|error| End::of_usage(&error, failures))
}

/// Reads flags as upstream's parser does: a switch may be given a value (`--all-namespaces=false`), the last of
/// two holds, a number may be negative. Defaults that are nothing stay out of the help.
fn as_upstream(command: Command) -> Command {
    command
        .args_override_self(true)
        .mut_args(|argument| match argument.get_action() {
            ArgAction::SetTrue => switch(argument),
            ArgAction::Set if argument.is_positional() => argument,
            ArgAction::Set if argument.get_default_values() == [""] => {
                argument.hide_default_value(true)
            }
            ArgAction::Set => argument.allow_negative_numbers(true),
            _ => argument,
        })
        .mut_subcommands(as_upstream)
}

fn switch(argument: Arg) -> Arg {
    argument
        .action(ArgAction::Set)
        .value_parser(BoolishValueParser::new())
        .value_name("BOOL")
        .num_args(0..=1)
        .require_equals(true)
        .default_value("false")
        .default_missing_value("true")
        .hide_default_value(true)
        .hide_possible_values(true)
}

/// Upstream's order (flag, `KUBECONFIG`, usual file, in-cluster), with the plane that is up before
/// the usual file.
fn connection(kubeconfig: Option<PathBuf>, master: Option<String>) -> Connection {
    let given = std::env::var_os("KUBECONFIG").is_some_and(|value| !value.is_empty());
    if kubeconfig.is_some() || master.is_some() || given {
        return Connection { kubeconfig, master };
    }
    let up = StateDir::of_user()
        .ok()
        .filter(|state| matches!(state.running(), Ok(Some(_))))
        .map(|state| state.kubeconfig());
    Connection {
        kubeconfig: up,
        master,
    }
}

impl Asked {
    /// What fails where it does, in upstream's words.
    fn failure(&self) -> String {
        let action = match self {
            Asked::Job(request) => request.action().to_owned(),
            Asked::Flow(family, request) => family.action(request),
            Asked::Pod(request) => request.action().to_owned(),
            Asked::Queue(request) => request.action().to_owned(),
            Asked::Tool(_) => return "Failed to".to_owned(),
        };
        format!("Failed to {action}")
    }

    /// Whether it tells of objects, which can be written in several forms.
    fn shows_objects(&self) -> bool {
        match self {
            Asked::Job(request) => request.shows_objects(),
            Asked::Flow(_, request) => request.shows_objects(),
            Asked::Pod(pod::Request::List(_)) => true,
            Asked::Queue(request) => request.shows_objects(),
            Asked::Tool(request) => request.shows_objects(),
        }
    }

    async fn answer(&self, manner: Manner, rest: &Rest) -> anyhow::Result<Told> {
        match self {
            Asked::Job(request) => job::answer(request, manner, rest).await,
            Asked::Flow(family, request) => family.answer(request, manner, rest).await,
            Asked::Pod(request) => pod::answer(request, manner, rest).await,
            Asked::Queue(request) => queue::answer(request, manner.form, rest).await,
            Asked::Tool(request) => tools::answer(request, manner, rest).await,
        }
    }

    /// Where the objects of a list are, and those that it counts; none of what is no list.
    fn listed(&self) -> anyhow::Result<Option<Vec<String>>> {
        Ok(match self {
            Asked::Job(job::Request::List(list)) => Some(vec![job::Request::listed(list)?]),
            Asked::Flow(family, flow::Request::List(list)) => Some(vec![family.listed(list)?]),
            Asked::Pod(pod::Request::List(list)) => Some(vec![pod::listed(list)?]),
            Asked::Queue(queue::Request::List) => Some(queue::listed()),
            Asked::Tool(request) => request.listed()?,
            Asked::Job(_) | Asked::Flow(..) | Asked::Queue(_) => None,
        })
    }
}

/// Performs a request.
pub(crate) async fn answer(request: Request, cluster: Arc<dyn Cluster>) -> anyhow::Result<u8> {
    let rest = Rest::new(cluster);
    let end = match (request.watch, request.asked.listed()) {
        (true, Ok(Some(listed))) => follow(&request, listed, &rest).await,
        (true, Err(error)) => Err(error),
        (true, Ok(None)) => Err(anyhow::anyhow!("--watch is for lists")),
        (false, _) => return Ok(request.perform(run::now(), &rest).await.say()),
    };
    let failed = end.err().map(|error| request.failed(&error));
    Ok(failed.unwrap_or_default().say())
}

impl Request {
    /// Asks once, at this time.
    async fn perform(&self, now: Time, rest: &Rest) -> End {
        let told = match self.asked.answer(self.manner(now), rest).await {
            Ok(Told::OneByOne(deeds)) => return End::one_by_one(deeds, self.failures),
            Ok(told) => told.text(self.form),
            Err(error) => Err(error),
        };
        match told {
            Ok(text) => End::well(text),
            Err(error) => self.failed(&error),
        }
    }

    fn manner(&self, now: Time) -> Manner {
        Manner {
            form: self.form,
            now,
        }
    }

    fn failed(&self, error: &anyhow::Error) -> End {
        End::failed(
            format!("{}: {error:#}", self.asked.failure()),
            self.failures,
        )
    }

    /// Says that nobody could be asked, as any other failure is said, and gives the exit status.
    pub(crate) fn unasked(&self, error: &anyhow::Error) -> u8 {
        self.failed(error).say()
    }
}

/// Prints a list, then each of its objects that changes or goes, until the user has enough. What has changed is
/// read as a whole, now and then.
async fn follow(request: &Request, listed: Vec<String>, rest: &Rest) -> anyhow::Result<()> {
    let (seen, mut news) = mpsc::channel(NEWS_WAITING_MAX);
    for listed in listed {
        tokio::spawn(rest.clone().watch(listed, seen.clone()));
    }
    drop(seen);
    let mut followed = Followed::default();
    loop {
        let told = request.asked.answer(request.manner(run::now()), rest);
        let text = followed.news(told.await?, request.form)?;
        if !text.is_empty() {
            console::say(&text);
        }
        match news.recv().await {
            Some(Seen::Lost(error)) => return Err(error.into()),
            Some(_) => {}
            None => return Ok(()),
        }
        tokio::time::sleep(WATCH_REST).await;
        while let Ok(more) = news.try_recv() {
            if let Seen::Lost(error) = more {
                return Err(error.into());
            }
        }
    }
}

/// How long ago, as kubectl writes it.
fn age(created: &str, now: Time) -> String {
    let Some(created) = Time::parse(created) else {
        return "<unknown>".to_owned();
    };
    let seconds = now.micros().saturating_sub(created.micros()) / 1_000_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let years = days / 365;
    match seconds {
        // Clocks that differ by less than that are forgiven.
        ..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 if seconds % 60 != 0 => format!("{minutes}m{}s", seconds % 60),
        120..10_800 => format!("{minutes}m"),
        10_800..28_800 if minutes % 60 != 0 => format!("{hours}h{}m", minutes % 60),
        10_800..172_800 => format!("{hours}h"),
        172_800..691_200 if hours % 24 != 0 => format!("{days}d{}h", hours % 24),
        _ if years < 2 => format!("{days}d"),
        _ if years < 8 && days % 365 != 0 => format!("{years}y{}d", days % 365),
        _ => format!("{years}y"),
    }
}

/// The widest of some texts and a heading, plus what upstream adds.
fn width<'a>(heading: &str, texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(str::len).max().unwrap_or(0).max(heading.len()) + 3
}

#[cfg(test)]
mod tests;
