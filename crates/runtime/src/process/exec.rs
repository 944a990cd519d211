//! Commands beside a running container's own: `exec` sessions and probes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use client::kubelet::{ExecSession, KubeletError};
use nix::fcntl::OFlag;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use super::child::{EXEC, exit_code};
use super::frame::{self, ExecPlan};

/// Chunks that may wait on either side.
const WAITING_MAX: usize = 32;

/// Longest output of a probe that is kept.
const PROBE_OUTPUT_BYTES: u64 = 10 << 10;

/// Starts a session without a terminal.
pub(crate) async fn session(
    executable: &Path,
    plan: ExecPlan,
) -> Result<ExecSession, KubeletError> {
    if plan.terminal.is_some() {
        return Err(KubeletError::BadRequest("no terminal expected".to_owned()));
    }
    let started = async {
        let mut child = spawn(executable)?;
        let mut input = child.stdin.take().ok_or_else(lost)?;
        input.write_all(&frame::encode(&plan)?).await?;
        Ok::<_, io::Error>((child, input))
    };
    let (mut child, input) = started.await.map_err(io_error("start the command"))?;
    let (stdin, incoming) = mpsc::channel(WAITING_MAX);
    let (outgoing, output) = mpsc::channel(WAITING_MAX);
    let (resize, _sizes) = mpsc::channel(1);
    tokio::spawn(feed(incoming, input));
    let mut readers = tokio::task::JoinSet::new();
    if let Some(stdout) = child.stdout.take() {
        readers.spawn(drain(stdout, false, outgoing.clone()));
    }
    if let Some(stderr) = child.stderr.take() {
        readers.spawn(drain(stderr, true, outgoing));
    }
    let end = tokio::spawn(async move {
        while readers.join_next().await.is_some() {}
        child.wait().await
    });
    Ok(ExecSession {
        stdin,
        output,
        resize,
        exit: Box::pin(finish(end)),
    })
}

/// Starts a session on a new terminal.
pub(crate) async fn terminal_session(
    executable: &Path,
    mut plan: ExecPlan,
) -> Result<ExecSession, KubeletError> {
    let started = async {
        // No child may inherit the master: it would keep the terminal from hanging up.
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let master = nix::pty::posix_openpt(flags)?;
        nix::pty::grantpt(&master)?;
        nix::pty::unlockpt(&master)?;
        let name = nix::pty::ptsname_r(&master)?;
        let slave = std::fs::File::options()
            .read(true)
            .write(true)
            .custom_flags(OFlag::O_NOCTTY.bits())
            .open(&name)?;
        plan.terminal = Some(name.into());
        let master = OwnedFd::from(master);
        let mut child = spawn(executable)?;
        let mut input = child.stdin.take().ok_or_else(lost)?;
        input.write_all(&frame::encode(&plan)?).await?;
        // A terminal is read and written like a pipe: bytes, readiness, an end.
        let screen = pipe::Receiver::from_owned_fd_unchecked(master.try_clone()?)?;
        let keyboard = pipe::Sender::from_owned_fd_unchecked(master.try_clone()?)?;
        Ok::<_, io::Error>((child, (master, slave), screen, keyboard))
    };
    let (mut child, (master, slave), screen, keyboard) =
        started.await.map_err(io_error("start the command"))?;
    let (stdin, incoming) = mpsc::channel(WAITING_MAX);
    let (outgoing, output) = mpsc::channel(WAITING_MAX);
    let (resize, mut sizes) = mpsc::channel::<(u16, u16)>(4);
    tokio::spawn(feed(incoming, keyboard));
    tokio::spawn(async move {
        while let Some((columns, rows)) = sizes.recv().await {
            set_size(&master, columns, rows);
        }
    });
    if let Some(stderr) = child.stderr.take() {
        tokio::spawn(drain(stderr, true, outgoing.clone()));
    }
    let drained = tokio::spawn(show(screen, outgoing));
    let end = tokio::spawn(async move {
        let status = child.wait().await;
        // With the last holder of this end the other one reads its end.
        drop(slave);
        // A background process may hold the terminal open for ever.
        let _late = tokio::time::timeout(Duration::from_millis(500), drained).await;
        status
    });
    Ok(ExecSession {
        stdin,
        output,
        resize,
        exit: Box::pin(finish(end)),
    })
}

/// Carries what the terminal shows, until it closes or nobody looks. When this and the session's
/// other ends are gone, the terminal hangs up and so does whatever runs on it.
async fn show(screen: pipe::Receiver, outgoing: mpsc::Sender<(bool, Bytes)>) {
    let watched = outgoing.clone();
    tokio::select! {
        () = drain(screen, false, outgoing) => {}
        () = watched.closed() => {}
    }
}

fn set_size(master: &OwnedFd, columns: u16, rows: u16) {
    let size = rustix::termios::Winsize {
        ws_col: columns,
        ws_row: rows,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    if let Err(error) = rustix::termios::tcsetwinsize(master.as_fd(), size) {
        tracing::debug!(%error, "a terminal keeps its size");
    }
}

async fn finish(
    end: tokio::task::JoinHandle<io::Result<std::process::ExitStatus>>,
) -> Result<i32, KubeletError> {
    let status = end
        .await
        .map_err(io::Error::other)
        .and_then(|status| status);
    status
        .map(exit_code)
        .map_err(io_error("wait for the command"))
}

/// Runs a command to its end; its exit code and the beginning of what it says on both streams.
pub(crate) async fn run(executable: &Path, plan: &ExecPlan) -> io::Result<(i32, String)> {
    let mut child = spawn(executable)?;
    let mut input = child.stdin.take().ok_or_else(lost)?;
    input.write_all(&frame::encode(plan)?).await?;
    drop(input);
    let stdout = child.stdout.take().ok_or_else(lost)?;
    let stderr = child.stderr.take().ok_or_else(lost)?;
    let (mut text, errors) = tokio::try_join!(beginning(stdout), beginning(stderr))?;
    text.extend_from_slice(&errors);
    let status = child.wait().await?;
    Ok((
        exit_code(status),
        String::from_utf8_lossy(&text).into_owned(),
    ))
}

/// The first bytes of a stream that is read to its end, so that its writer never waits for us.
async fn beginning(mut output: impl AsyncRead + Unpin) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    (&mut output)
        .take(PROBE_OUTPUT_BYTES)
        .read_to_end(&mut text)
        .await?;
    tokio::io::copy(&mut output, &mut tokio::io::sink()).await?;
    Ok(text)
}

fn spawn(executable: &Path) -> io::Result<Child> {
    Command::new(executable)
        .arg(EXEC)
        // What is in the plane's environment is not for pods to read.
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

async fn feed(mut incoming: mpsc::Receiver<Bytes>, mut input: impl AsyncWrite + Unpin) {
    while let Some(bytes) = incoming.recv().await {
        if input.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn drain(
    mut output: impl AsyncRead + Unpin,
    is_error: bool,
    outgoing: mpsc::Sender<(bool, Bytes)>,
) {
    let mut buffer = vec![0; 32 << 10];
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        let chunk = Bytes::copy_from_slice(&buffer[..count]);
        if outgoing.send((is_error, chunk)).await.is_err() {
            return;
        }
    }
}

fn lost() -> io::Error {
    io::Error::other("the command has no pipes")
}

fn io_error(action: &str) -> impl Fn(io::Error) -> KubeletError {
    move |cause| KubeletError::Io {
        action: action.to_owned(),
        cause,
    }
}
