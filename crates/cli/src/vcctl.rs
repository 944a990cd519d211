//! Volcano's command line, with upstream's flags, columns and texts (`specs/volcano.md`, chapter 5).
//!
//! The list is [`Request`]'s variants; each group has its file. Errors go to standard output with
//! exit status 255, as upstream's do.

mod job;
mod pod;
mod queue;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::cluster::Cluster;
use crate::console;
use crate::rest::Rest;
use crate::start::{Connection, Outcome, Question, Start};
use crate::state::StateDir;
use crate::verbs;

/// Upstream's exit status for every failure.
const EXIT_ERROR: u8 = 255;

#[derive(Parser)]
#[command(
    name = "vcctl",
    about = "Command line client for vcjobs, queues and pods",
    disable_help_subcommand = true
)]
struct Typed {
    /// (optional) absolute path to the kubeconfig file
    #[arg(short, long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// the address of apiserver
    #[arg(short = 's', long, global = true, value_name = "URL")]
    master: Option<String>,
    #[command(subcommand)]
    request: Group,
}

#[derive(Subcommand)]
enum Group {
    /// vcctl command line operation job
    #[command(subcommand)]
    Job(job::Request),
    /// vcctl command line operation pod
    #[command(subcommand)]
    Pod(pod::Request),
    /// Queue Operations
    #[command(subcommand)]
    Queue(queue::Request),
    /// Print the version information
    Version,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// About vcjobs.
    Job(job::Request),
    /// About pods.
    Pod(pod::Request),
    /// About queues.
    Queue(queue::Request),
}

/// Understands what follows the name `vcctl`.
pub(crate) fn parse(arguments: Vec<OsString>) -> Outcome {
    let whole = std::iter::once(OsString::from("vcctl")).chain(arguments);
    let typed = Typed::command()
        .try_get_matches_from(whole)
        .and_then(|matches| Typed::from_arg_matches(&matches));
    let typed = match typed {
        Ok(typed) => typed,
        Err(error) => return verbs::refuse(&error),
    };
    let request = match typed.request {
        Group::Job(request) => Request::Job(request),
        Group::Pod(request) => Request::Pod(request),
        Group::Queue(request) => Request::Queue(request),
        Group::Version => {
            console::say(&version());
            return Outcome::Exit(0);
        }
    };
    Outcome::Start(Box::new(Start::Ask(
        connection(typed.kubeconfig, typed.master),
        Question::Vcctl(request),
    )))
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

/// Performs a request.
pub(crate) async fn answer(request: Request, cluster: Arc<dyn Cluster>) -> anyhow::Result<u8> {
    let rest = Rest::new(cluster);
    let (action, told) = match &request {
        Request::Job(request) => (request.action(), job::answer(request, &rest).await),
        Request::Pod(request) => (request.action(), pod::answer(request, &rest).await),
        Request::Queue(request) => (request.action(), queue::answer(request, &rest).await),
    };
    match told {
        Ok(text) => {
            if !text.is_empty() {
                console::say(text.trim_end_matches('\n'));
            }
            Ok(0)
        }
        Err(error) => {
            console::say(&format!("Failed to {action}: {error:#}"));
            Ok(EXIT_ERROR)
        }
    }
}

fn version() -> String {
    let given = |value: Option<&str>| value.unwrap_or("Not provided.").to_owned();
    format!(
        "API Version: v1alpha1\nVersion: {}\nGit SHA: {}\nBuilt At: {}\nGo Version: {}\nGo OS/Arch: {}/{}",
        env!("CARGO_PKG_VERSION"),
        given(None),
        given(None),
        given(None),
        std::env::consts::OS,
        std::env::consts::ARCH,
    )
}

/// How long ago, as kubectl writes it.
fn age(created: &str, now: api::time::Time) -> String {
    let Some(created) = api::time::Time::parse(created) else {
        return "<unknown>".to_owned();
    };
    let seconds = (now.micros() - created.micros()).max(0) / 1_000_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 if seconds % 60 != 0 => format!("{minutes}m{}s", seconds % 60),
        120..10_800 => format!("{minutes}m"),
        10_800..28_800 if minutes % 60 != 0 => format!("{hours}h{}m", minutes % 60),
        10_800..172_800 => format!("{hours}h"),
        172_800..691_200 if hours % 24 != 0 => format!("{days}d{}h", hours % 24),
        _ => format!("{days}d"),
    }
}

/// The widest of some texts and a heading, plus what upstream adds.
fn width<'a>(heading: &str, texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(str::len).max().unwrap_or(0).max(heading.len()) + 3
}

#[cfg(test)]
mod tests;
