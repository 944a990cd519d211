//! Starts a container: its child process, its log, its end.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};

use super::child::CONTAINER;
use super::frame::{self, ContainerPlan, Enter, FromChild, ToInit};
use super::log::Log;

/// How long output may still come after a container's end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What is to be started.
pub(crate) struct Order<'a> {
    pub executable: &'a Path,
    pub enter: Enter,
    pub plan: ContainerPlan,
    pub log: PathBuf,
    pub log_bytes_max: u64,
}

/// A container that runs.
#[derive(Debug)]
pub(crate) struct Running {
    /// Host process id of its init.
    pub init: u32,
    pub log: Log,
    signals: mpsc::UnboundedSender<i32>,
}

/// How its command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit {
    pub code: i32,
    pub signal: i32,
}

impl Running {
    /// Sends a signal to the command; 9 ends everything in the container.
    pub(crate) fn signal(&self, number: i32) {
        // A container that has ended needs no signal.
        let _ended = self.signals.send(number);
    }

    /// A way to send signals later.
    pub(crate) fn signaller(&self) -> mpsc::UnboundedSender<i32> {
        self.signals.clone()
    }
}

/// Starts a container and waits until its command runs. The text of an error is kubelet's.
pub(crate) async fn start(order: Order<'_>) -> Result<(Running, oneshot::Receiver<Exit>), String> {
    let failed = |error: io::Error| format!("cannot start the container's process: {error}");
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(failed)?;
    let (output, input) = io::pipe().map_err(failed)?;
    let errors = input.try_clone().map_err(failed)?;
    let mut command = tokio::process::Command::new(order.executable);
    command
        .arg(CONTAINER)
        // What is in the plane's environment is not for pods to read.
        .env_clear()
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
        .stdout(Stdio::from(input))
        .stderr(Stdio::from(errors))
        .process_group(0);
    let child = command.spawn().map_err(failed)?;
    // The command holds the other ends of the sockets and pipes; let go of them.
    drop(command);
    let output = tokio::net::unix::pipe::Receiver::from_owned_fd(output.into()).map_err(failed)?;
    let (log, recorder) = Log::record(order.log, order.log_bytes_max, output).map_err(failed)?;
    ours.set_nonblocking(true).map_err(failed)?;
    let mut control = UnixStream::from_std(ours).map_err(failed)?;
    let mut messages = frame::encode(&order.enter).map_err(failed)?;
    messages.extend(frame::encode(&order.plan).map_err(failed)?);
    control.write_all(&messages).await.map_err(failed)?;

    let init = match frame::read(&mut control).await.map_err(failed)? {
        Some(FromChild::Started { init }) => init,
        Some(FromChild::Failed { message }) => return Err(message),
        Some(FromChild::Exited { .. }) | None => {
            let said = log.tail(5, 1_000);
            return Err(format!("the container's process ended early {said}"));
        }
    };
    let (signals, wanted) = mpsc::unbounded_channel();
    let (exited, exit) = oneshot::channel();
    tokio::spawn(follow(Following {
        child,
        control,
        wanted,
        exited,
        recorder,
    }));
    Ok((Running { init, log, signals }, exit))
}

struct Following {
    child: tokio::process::Child,
    control: UnixStream,
    wanted: mpsc::UnboundedReceiver<i32>,
    exited: oneshot::Sender<Exit>,
    recorder: tokio::task::JoinHandle<()>,
}

async fn follow(mut following: Following) {
    let (mut reading, mut writing) = following.control.into_split();
    let signals = async move {
        while let Some(number) = following.wanted.recv().await {
            if let Ok(bytes) = frame::encode(&ToInit::Signal(number)) {
                // A container that has ended needs no signal.
                let _ended = writing.write_all(&bytes).await;
            }
        }
        // The socket stays open: its end would mean that the plane is gone.
        std::future::pending::<()>().await;
        drop(writing);
    };
    let end = async {
        loop {
            match frame::read(&mut reading).await {
                Ok(Some(FromChild::Exited { code, signal })) => break Exit { code, signal },
                Ok(Some(_)) => {}
                // Killed from outside, or told to end everything.
                Ok(None) | Err(_) => {
                    break Exit {
                        code: 137,
                        signal: 9,
                    };
                }
            }
        }
    };
    let exit = tokio::select! {
        exit = end => exit,
        () = signals => return,
    };
    // It ends with its namespace; this collects its exit status.
    if let Err(error) = following.child.wait().await {
        tracing::warn!(%error, "a container's process cannot be waited for");
    }
    // Without a process namespace an escaped process may hold the pipe open for ever.
    let _late = tokio::time::timeout(LAST_WORDS, following.recorder).await;
    // A worker that is gone asks no more.
    let _gone = following.exited.send(exit);
}
