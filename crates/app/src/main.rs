//! The binary: what was typed becomes settings, rows are chosen, shells are started.
//!
//! [`dumps`] answers the signals that ask what a scheduler knows, [`plane`] builds the embedded plane, [`process`] one of its parts beside a cluster, [`questions`] what a scheduler there can be
//! asked, [`scratch`] holds directories that go with the process, [`webhooks`] serves those of a cluster. Everything that can be said without one was said by `cli`.

mod dumps;
mod plane;
mod process;
mod questions;
mod scratch;
mod webhooks;

/// Watches and writes make many small objects that live for an instant; the system's allocator
/// spends a quarter of the plane's time on them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use std::fs::File;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use cli::cluster::Cluster;
use cli::console::{self, Console};
use cli::{Outcome, Start};
use scratch::Scratches;
use tracing::Level;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::MakeWriterExt as _;

fn main() -> ExitCode {
    // A container's first process is this program again; nothing else may run before it.
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if runtime::process::is_child(&arguments) {
        runtime::process::child_main(&arguments);
    }
    let code = console::heard(|| match cli::parse(std::env::args_os().collect()) {
        Outcome::Exit(code) => code,
        Outcome::Start(start) => begin(*start).unwrap_or_else(|error| {
            console::complain(&format!("error: {error:#}"));
            cli::EXIT_FAILED
        }),
    });
    ExitCode::from(code.unwrap_or_else(|unheard| unheard))
}

/// Warnings go to standard error; `KATMAI_LOG` asks for more (`info`, `katmai_driver=debug` …).
/// A plane that serves writes to a file as well, which also tells its starts and ends.
pub(crate) fn log(file: Option<File>) {
    let wish = EnvFilter::try_from_env("KATMAI_LOG");
    let loudest = if wish.is_ok() {
        Level::TRACE
    } else {
        Level::WARN
    };
    let filter = wish.unwrap_or_else(|_| usually("warn,katmai=info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(false);
    let to_terminal = std::io::stderr.with_max_level(loudest);
    match file {
        Some(file) => builder
            .with_writer(to_terminal.and(Mutex::new(file)))
            .init(),
        None => builder.with_writer(to_terminal).init(),
    }
}

/// A process beside a cluster tells on standard error what upstream's would at this verbosity; how much that
/// is can be changed while it runs.
fn log_at(verbosity: i64) -> server::SetLevel {
    let usual = move || {
        let asked = EnvFilter::try_from_env("KATMAI_LOG");
        asked.unwrap_or_else(|_| filter_at(verbosity))
    };
    let builder = tracing_subscriber::fmt()
        .with_target(false)
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .with_env_filter(usual())
        .with_filter_reloading();
    let filter = builder.reload_handle();
    builder.init();
    Box::new(move |level| {
        let wanted = level.map_or_else(usual, filter_at);
        filter.reload(wanted).map_err(|error| error.to_string())
    })
}

/// What upstream's logs at this verbosity.
fn filter_at(verbosity: i64) -> EnvFilter {
    match verbosity {
        ..3 => usually("warn,katmai=info"),
        3..6 => usually("info"),
        6.. => EnvFilter::new("debug"),
    }
}

/// Without what the client's library says of each request that fails: who asked says it, and for what.
fn usually(levels: &str) -> EnvFilter {
    EnvFilter::new(format!("{levels},kube_client::client::builder=off"))
}

/// What those who still write into a directory that goes have to end what they are at.
const PATIENCE: Duration = Duration::from_secs(2);

fn begin(start: Start) -> anyhow::Result<u8> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the threads of the shells")?;
    let scratches = Scratches::default();
    let code = console::heard(|| runtime.block_on(perform(start, &scratches)));
    // A reader of standard input, or a stream that nobody ended, may not hold the process.
    if scratches.is_empty() {
        runtime.shutdown_background();
    } else {
        runtime.shutdown_timeout(PATIENCE);
    }
    drop(scratches);
    code.unwrap_or_else(Ok)
}

async fn perform(start: Start, scratches: &Scratches) -> anyhow::Result<u8> {
    // A plane that serves has a log of its own, once the directory is its own; a process says how much it
    // tells.
    match &start {
        Start::Serve(_) | Start::Beside(_) | Start::Webhooks(_) => {}
        _ => log(None),
    }
    match start {
        Start::Serve(shape) => plane::serve(shape, scratches).await,
        Start::Own(shape, question) => {
            let plane = plane::start(shape, scratches).await?;
            let code = cli::answer(question, plane.cluster(), Console::look()).await;
            plane.stop().await?;
            Ok(code)
        }
        Start::Simulate(request) => {
            let conf = request.scheduler_conf.as_ref();
            let drivers = plane::simulated_driver(request.settings.seed, conf)?;
            cli::simulate(&request, drivers)
        }
        Start::Replay(request) => Ok(cli::replay(&request, &plane::simulated_driver(0, None)?)),
        Start::Rehearse(request) => {
            let cluster = match &request.connection {
                Some(connection) => Some(cluster_at(connection).await?),
                None => None,
            };
            cli::rehearse(&request, cluster, plane::rehearsing_driver).await
        }
        Start::Webhooks(request) => {
            // Upstream's have no socket that changes it.
            drop(log_at(request.verbosity));
            webhooks::run(request).await
        }
        Start::Beside(process) => {
            let set_level = log_at(process.verbosity);
            process::run(process, set_level).await
        }
        Start::Definitions(groups) => definitions(&groups),
        Start::Ask(connection, question) => Ok(match cluster_at(&connection).await {
            Ok(cluster) => cli::answer(question, cluster, Console::look()).await,
            Err(error) => cli::unasked(&question, &error),
        }),
    }
}

fn definitions(groups: &[String]) -> anyhow::Result<u8> {
    let items = server::definitions(groups);
    anyhow::ensure!(
        !items.is_empty(),
        "no kinds of {} are known",
        groups.join(", ")
    );
    let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": items });
    console::say(&serde_json::to_string_pretty(&list)?);
    Ok(cli::EXIT_COMPLETE)
}

async fn cluster_at(connection: &cli::start::Connection) -> anyhow::Result<Arc<dyn Cluster>> {
    Ok(Arc::new(client_of(connection).await?))
}

/// Certificates that a command line names.
pub(crate) fn certificate_files(files: &cli::start::TlsFiles) -> server::CertificateFiles {
    server::CertificateFiles {
        chain: files.chain.clone(),
        key: files.key.clone(),
        authority: files.authority.clone(),
    }
}

/// A client of the cluster that a command line names.
pub(crate) async fn client_of(
    connection: &cli::start::Connection,
) -> anyhow::Result<client::Cluster> {
    let kubeconfig = connection.kubeconfig.as_deref();
    let master = connection.master.as_deref();
    Ok(client::Cluster::from_kubeconfig(kubeconfig, master).await?)
}
