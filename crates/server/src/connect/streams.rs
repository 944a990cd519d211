//! Streams of SPDY: one for each channel of exec, two for each forwarded connection.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client::kubelet::{ExecSession, Kubelet, PodRef};
use store::ExecOptions;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::{FORWARD_BYTES, exit_status, terminal_size};
use crate::spdy::{Session, Stream};

/// How long a client may take to open the streams that belong together.
const OPEN_MAX: Duration = Duration::from_secs(30);
/// How long a client may take to read the end of what it asked for.
const LEAVE_MAX: Duration = Duration::from_secs(10);
/// Forwarded connections of which only one stream is open.
const HALVES_MAX: usize = 256;
/// Longest message about a terminal's size.
const SIZE_BYTES_MAX: usize = 1_024;

/// The streams of one exec.
#[derive(Default)]
struct Channels {
    error: Option<Stream>,
    resize: Option<Stream>,
    stderr: Option<Stream>,
    stdin: Option<Stream>,
    stdout: Option<Stream>,
}

impl Channels {
    /// Where a stream of this type belongs.
    fn place(&mut self, kind: &str) -> Option<&mut Option<Stream>> {
        match kind {
            "error" => Some(&mut self.error),
            "resize" => Some(&mut self.resize),
            "stderr" => Some(&mut self.stderr),
            "stdin" => Some(&mut self.stdin),
            "stdout" => Some(&mut self.stdout),
            _ => None,
        }
    }

    fn are_open(&self, options: &ExecOptions) -> bool {
        self.error.is_some()
            && (self.stdin.is_some() || !options.stdin)
            && (self.stdout.is_some() || !options.stdout)
            && (self.stderr.is_some() || !options.stderr || options.tty)
            && (self.resize.is_some() || !options.tty)
    }
}

fn kind(stream: &Stream) -> &str {
    stream.headers.get("streamtype").map_or("", String::as_str)
}

/// Carries a session's streams until the command has ended or the client has gone.
pub(super) async fn exec(
    io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    session: ExecSession,
    options: &ExecOptions,
) {
    let mut connection = Session::start(io);
    let mut channels = Channels::default();
    let opened = timeout(OPEN_MAX, async {
        while !channels.are_open(options) {
            let stream = connection.next().await?;
            let kind = kind(&stream).to_owned();
            match channels.place(&kind) {
                Some(place) => *place = Some(stream),
                None => stream.output.cancel().await,
            }
        }
        Some(())
    });
    if !matches!(opened.await, Ok(Some(()))) {
        return;
    }
    converse(channels, session, options).await;
    // What was said last must be read before the connection goes.
    let _late = timeout(LEAVE_MAX, async {
        while connection.next().await.is_some() {}
    })
    .await;
}

async fn converse(channels: Channels, session: ExecSession, options: &ExecOptions) {
    let ExecSession {
        stdin,
        mut output,
        resize,
        exit,
    } = session;
    let Some(mut errors) = channels.error else {
        return;
    };
    let (stdout, stderr) = (channels.stdout, channels.stderr);
    let input = async {
        if let Some(mut stream) = channels.stdin {
            while let Some(bytes) = stream.input.recv().await {
                if stdin.send(bytes).await.is_err() {
                    break;
                }
            }
        }
        drop(stdin);
    };
    let sizes = async {
        if let Some(stream) = channels.resize {
            follow_sizes(stream, &resize).await;
        }
    };
    let outward = async {
        while let Some((is_error, bytes)) = output.recv().await {
            let stream = if is_error && !options.tty {
                &stderr
            } else {
                &stdout
            };
            if let Some(stream) = stream
                && !stream.output.send(bytes).await
            {
                return;
            }
        }
        for stream in [&stdout, &stderr].into_iter().flatten() {
            stream.output.finish().await;
        }
        let status = exit_status(exit.await).to_string();
        errors.output.send(status.into()).await;
        errors.output.finish().await;
    };
    let inward = async {
        tokio::join!(input, sizes);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = outward => {}
        () = inward => {}
        // The client has gone.
        _ = errors.alive.changed() => {}
    }
}

/// Sizes come as one JSON object after another.
async fn follow_sizes(mut stream: Stream, resize: &mpsc::Sender<(u16, u16)>) {
    let mut text = Vec::new();
    while let Some(bytes) = stream.input.recv().await {
        for byte in bytes {
            text.push(byte);
            if byte != b'}' {
                continue;
            }
            if let Some(size) = terminal_size(&text)
                && resize.send(size).await.is_err()
            {
                return;
            }
            text.clear();
        }
        if text.len() > SIZE_BYTES_MAX {
            return;
        }
    }
}

/// One of the two streams of a forwarded connection, waiting for the other.
struct Half {
    stream: Stream,
    since: Instant,
}

/// Forwards the connections that a client opens, until it goes.
pub(super) async fn forward(
    kubelet: Arc<dyn Kubelet>,
    pod: PodRef,
    io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) {
    let mut connection = Session::start(io);
    let mut halves: BTreeMap<String, Half> = BTreeMap::new();
    while let Some(stream) = connection.next().await {
        halves.retain(|_, half| half.since.elapsed() < OPEN_MAX);
        let is_known = matches!(kind(&stream), "data" | "error");
        if !is_known || halves.len() >= HALVES_MAX {
            stream.output.cancel().await;
            continue;
        }
        let request = stream.headers.get("requestid").cloned().unwrap_or_default();
        match halves.remove(&request) {
            Some(half) if kind(&half.stream) != kind(&stream) => {
                let (data, errors) = if kind(&stream) == "data" {
                    (stream, half.stream)
                } else {
                    (half.stream, stream)
                };
                tokio::spawn(carry(kubelet.clone(), pod.clone(), data, errors));
            }
            _ => {
                let since = Instant::now();
                halves.insert(request, Half { stream, since });
            }
        }
    }
}

/// Carries one connection; what goes wrong is told on its second stream.
async fn carry(kubelet: Arc<dyn Kubelet>, pod: PodRef, mut data: Stream, errors: Stream) {
    let text = data.headers.get("port").cloned().unwrap_or_default();
    let port = text.parse().ok().filter(|port: &u16| *port > 0);
    let dialled = match port {
        Some(port) => kubelet.dial(pod.clone(), port).await.map_err(said),
        None => Err(format!("invalid port {text:?}")),
    };
    match dialled {
        Ok(stream) => {
            let (reading, writing) = tokio::io::split(stream);
            let (input, output) = (&mut data.input, &data.output);
            let inward = async {
                upload(input, writing).await;
                std::future::pending::<()>().await;
            };
            let outward = async {
                let mut reading = reading;
                let mut buffer = vec![0; FORWARD_BYTES];
                while let Ok(count @ 1..) = reading.read(&mut buffer).await {
                    if !output.send(Bytes::copy_from_slice(&buffer[..count])).await {
                        return;
                    }
                }
            };
            tokio::select! {
                () = outward => {}
                () = inward => {}
                _ = data.alive.changed() => {}
            }
        }
        Err(why) => {
            let message = format!(
                "error forwarding port {text} to pod {}, uid {}: {why}",
                pod.name, pod.uid
            );
            errors.output.send(message.into()).await;
        }
    }
    data.output.finish().await;
    errors.output.finish().await;
}

/// What the client sends, to its end, which the pod hears of.
async fn upload(input: &mut mpsc::Receiver<Bytes>, mut writing: impl AsyncWrite + Unpin) {
    while let Some(bytes) = input.recv().await {
        if writing.write_all(&bytes).await.is_err() {
            return;
        }
    }
    // A pod that has closed needs no end.
    let _closed = writing.shutdown().await;
}

fn said(error: client::kubelet::KubeletError) -> String {
    match error {
        client::kubelet::KubeletError::Io { action, cause } => format!("{action}: {cause}"),
        other => other.to_string(),
    }
}
