//! The signals by which upstream's scheduler tells what it knows: SIGUSR1 asks for a file, SIGUSR2 for lines in
//! the log. Without a handler either of them ends a process.

use std::path::PathBuf;

use anyhow::Context;
use runtime::snapshot::Snapshots;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Both signals. From now on neither ends this process.
pub(crate) struct Asked {
    file: Signal,
    lines: Signal,
}

/// What a process tells when it is asked.
pub(crate) enum Told {
    /// What it knows; files lie in this directory.
    Known(Snapshots, PathBuf),
    /// Nothing: why.
    Nothing(&'static str),
}

impl Asked {
    pub(crate) fn listen() -> anyhow::Result<Asked> {
        let of = |kind| signal(kind).context("cannot listen for signals");
        Ok(Asked {
            file: of(SignalKind::user_defined1())?,
            lines: of(SignalKind::user_defined2())?,
        })
    }

    /// Answers for as long as it is polled, one at a time.
    pub(crate) async fn answer(mut self, told: Told) {
        loop {
            let wants_file = tokio::select! {
                Some(()) = self.file.recv() => true,
                Some(()) = self.lines.recv() => false,
                else => return,
            };
            match &told {
                Told::Nothing(why) => {
                    let name = if wants_file { "SIGUSR1" } else { "SIGUSR2" };
                    tracing::warn!("{name} is passed over: {why}");
                }
                Told::Known(snapshots, directory) => {
                    tell(snapshots, wants_file.then(|| directory.clone())).await;
                }
            }
        }
    }
}

/// Writes a file into the directory, or lines into the log where there is none.
async fn tell(snapshots: &Snapshots, directory: Option<PathBuf>) {
    let Some(snapshot) = snapshots.take().await else {
        // It has said already why it ended.
        return;
    };
    // Many objects are read through, and perhaps a disk is waited for.
    let done = tokio::task::spawn_blocking(move || match directory {
        Some(directory) => match snapshot.write(&directory, runtime::clock::now()) {
            Ok(path) => tracing::info!(
                "what is known is in {}: katmai explain and whatif read it with --dump",
                path.display()
            ),
            Err(error) => tracing::error!("{:#}", anyhow::Error::from(error)),
        },
        None => {
            tracing::info!("known are {}", snapshot.summary());
            if let Some(usage) = runtime::usage::usage() {
                tracing::info!(
                    "memory in use: {} MiB; time on processors: {} s",
                    usage.resident_bytes >> 20,
                    usage.cpu_micros / 1_000_000
                );
            }
        }
    });
    if let Err(error) = done.await {
        tracing::error!("cannot tell what is known: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without somebody who listens, either would end this test's process.
    #[tokio::test]
    async fn neither_signal_ends_a_process_that_listens() {
        let asked = Asked::listen().expect("signals can be listened for");
        let answering = tokio::spawn(asked.answer(Told::Nothing("this is a test")));
        for signal in ["-USR1", "-USR2"] {
            let own = std::process::id().to_string();
            let mut sent = std::process::Command::new("kill");
            let sent = sent.args([signal, &own]).status();
            assert!(sent.expect("there is a kill").success());
        }
        tokio::task::yield_now().await;
        assert!(!answering.is_finished(), "it goes on listening");
        answering.abort();
    }
}
