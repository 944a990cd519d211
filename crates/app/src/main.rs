//! The binary: what was typed becomes settings, rows are chosen, shells are started.
//!
//! [`plane`] builds the embedded plane. Everything that can be said without one was said by `cli`.

mod plane;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use cli::cluster::Cluster;
use cli::console::{self, Console};
use cli::{Outcome, Start};

fn main() -> ExitCode {
    // A container's first process is this program again; nothing else may run before it.
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if runtime::process::is_child(&arguments) {
        runtime::process::child_main(&arguments);
    }
    log();
    let code = match cli::parse(std::env::args_os().collect()) {
        Outcome::Exit(code) => code,
        Outcome::Start(start) => begin(*start).unwrap_or_else(|error| {
            console::complain(&format!("error: {error:#}"));
            cli::EXIT_FAILED
        }),
    };
    ExitCode::from(code)
}

/// Warnings go to standard error; `KATMAI_LOG` asks for more (`info`, `katmai_driver=debug` …).
fn log() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("KATMAI_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .init();
}

fn begin(start: Start) -> anyhow::Result<u8> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the threads of the shells")?;
    let code = runtime.block_on(perform(start));
    // A reader of standard input, or a stream that nobody ended, may not hold the process.
    runtime.shutdown_background();
    code
}

async fn perform(start: Start) -> anyhow::Result<u8> {
    match start {
        Start::Serve(shape) => plane::serve(shape).await,
        Start::Own(shape, question) => {
            let plane = plane::start(shape).await?;
            let code = cli::answer(question, plane.cluster(), Console::look()).await;
            plane.stop().await?;
            Ok(code)
        }
        Start::Ask(connection, question) => {
            let cluster =
                client::Cluster::from_kubeconfig(connection.kubeconfig.as_deref()).await?;
            let cluster: Arc<dyn Cluster> = Arc::new(cluster);
            Ok(cli::answer(question, cluster, Console::look()).await)
        }
    }
}
