//! Questions to a node: logs as a stream, exec, attach and port-forward over a websocket.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use client::kubelet::{ExecRequest, ExecSession, Kubelet, KubeletError, LogRequest, PodRef};
use futures::{SinkExt, StreamExt};
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use store::{Ask, Connect, ExecOptions, LogOptions, PodAddress, Refused};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use crate::api::{Body, full, reply};

/// Channels of `v4.channel.k8s.io` and `v5.channel.k8s.io`.
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// Of v5 only: the channel named by the next byte is closed.
const CLOSE: u8 = 255;
/// Subprotocols that we speak, best first.
const PROTOCOLS: &[&str] = &["v5.channel.k8s.io", "v4.channel.k8s.io"];
/// Bytes that are read from a forwarded port at once.
const FORWARD_BYTES: usize = 32 << 10;

type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

/// A client's wish to leave HTTP for a websocket.
pub(crate) struct Upgrade {
    on: OnUpgrade,
    key: String,
    protocols: Vec<String>,
}

impl Upgrade {
    /// Takes the wish out of a request, if there is one.
    pub(crate) fn take<B>(request: &mut http::Request<B>) -> Option<Upgrade> {
        let header = |name: &str| {
            request
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned()
        };
        if !header("upgrade").eq_ignore_ascii_case("websocket") {
            return None;
        }
        let key = header("sec-websocket-key");
        let protocols = header("sec-websocket-protocol")
            .split(',')
            .map(|one| one.trim().to_owned())
            .collect();
        Some(Upgrade {
            on: request.extensions_mut().remove::<OnUpgrade>()?,
            key,
            protocols,
        })
    }

    fn protocol(&self) -> Option<&'static str> {
        PROTOCOLS
            .iter()
            .find(|known| self.protocols.iter().any(|asked| asked == *known))
            .copied()
    }

    fn response(&self, protocol: &'static str) -> http::Response<Body> {
        let mut response = http::Response::new(full(Bytes::new()));
        *response.status_mut() = http::StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert("connection", HeaderValue::from_static("Upgrade"));
        headers.insert("upgrade", HeaderValue::from_static("websocket"));
        headers.insert("sec-websocket-protocol", HeaderValue::from_static(protocol));
        if let Ok(value) = HeaderValue::from_str(&derive_accept_key(self.key.as_bytes())) {
            headers.insert("sec-websocket-accept", value);
        }
        response
    }

    async fn socket(self) -> Result<Socket, hyper::Error> {
        let io = TokioIo::new(self.on.await?);
        Ok(WebSocketStream::from_raw_socket(io, Role::Server, None).await)
    }
}

/// Asks the node and answers the client.
pub(crate) async fn answer(
    kubelet: Option<Arc<dyn Kubelet>>,
    connect: Connect,
    upgrade: Option<Upgrade>,
) -> http::Response<Body> {
    let Some(kubelet) = kubelet else {
        return reply(
            Refused::unavailable("no node of this plane runs containers that can be asked")
                .response(),
        );
    };
    let pod = pod_ref(&connect.pod);
    match connect.ask {
        Ask::Log(options) => logs(&*kubelet, pod, options).await,
        Ask::Exec(options) => match upgrade {
            Some(upgrade) => exec(&*kubelet, pod, options, upgrade).await,
            None => refuse_spdy(),
        },
        Ask::PortForward { ports } => match upgrade {
            Some(upgrade) if upgrade.protocol().is_some() && !ports.is_empty() => {
                forward(kubelet, pod, ports, upgrade)
            }
            _ => refuse_spdy(),
        },
    }
}

fn pod_ref(pod: &PodAddress) -> PodRef {
    PodRef {
        node: pod.node.clone(),
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        uid: pod.uid.clone(),
    }
}

fn refuse_spdy() -> http::Response<Body> {
    reply(
        Refused::bad_request(
            "unable to upgrade: this server streams over websockets (v5.channel.k8s.io, v4.channel.k8s.io), not SPDY",
        )
        .response(),
    )
}

fn refuse(error: &KubeletError) -> http::Response<Body> {
    let refused = match error {
        KubeletError::NotFound(text) | KubeletError::BadRequest(text) => {
            Refused::bad_request(text.clone())
        }
        KubeletError::Io { cause, .. } => Refused::internal(&format!("{error}: {cause}")),
    };
    reply(refused.response())
}

async fn logs(kubelet: &dyn Kubelet, pod: PodRef, options: LogOptions) -> http::Response<Body> {
    let request = LogRequest {
        pod,
        container: options.container,
        follow: options.follow,
        previous: options.previous,
        timestamps: options.timestamps,
        tail_lines: options.tail_lines,
        since_micros: options.since_micros,
        limit_bytes: options.limit_bytes,
    };
    match kubelet.logs(request).await {
        Err(error) => refuse(&error),
        Ok(bytes) => {
            let frames = bytes.map(|chunk| chunk.map(Frame::data));
            let mut response = http::Response::new(StreamBody::new(frames).boxed_unsync());
            response
                .headers_mut()
                .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
            response
        }
    }
}

async fn exec(
    kubelet: &dyn Kubelet,
    pod: PodRef,
    options: ExecOptions,
    upgrade: Upgrade,
) -> http::Response<Body> {
    let Some(protocol) = upgrade.protocol() else {
        return refuse_spdy();
    };
    let request = ExecRequest {
        pod,
        container: options.container.clone(),
        command: options.command.clone(),
        stdin: options.stdin,
        tty: options.tty,
    };
    let session = match kubelet.exec(request).await {
        Ok(session) => session,
        Err(error) => return refuse(&error),
    };
    let response = upgrade.response(protocol);
    tokio::spawn(async move {
        match upgrade.socket().await {
            Ok(socket) => converse(socket, session, &options).await,
            Err(error) => tracing::debug!("a websocket did not open: {error}"),
        }
    });
    response
}

/// Carries a session's streams over the socket until the command has ended or the client has gone.
async fn converse(socket: Socket, session: ExecSession, options: &ExecOptions) {
    let ExecSession {
        stdin,
        mut output,
        resize,
        exit,
    } = session;
    let (mut sink, mut source) = socket.split();
    let mut stdin = options.stdin.then_some(stdin);
    let mut exit = exit;
    let mut open = true;
    loop {
        tokio::select! {
            chunk = output.recv(), if open => match chunk {
                Some((is_error, bytes)) => {
                    let (channel, wanted) = if is_error && !options.tty {
                        (STDERR, options.stderr)
                    } else {
                        (STDOUT, options.stdout)
                    };
                    if wanted && sink.send(framed(channel, &bytes)).await.is_err() {
                        return;
                    }
                }
                None => open = false,
            },
            code = &mut exit, if !open => {
                let status = exit_status(code);
                // The client may have gone with its answer: there is nobody left to tell.
                let _ = sink.send(framed(ERROR, status.to_string().as_bytes())).await;
                let _ = sink.send(farewell()).await;
                return;
            }
            message = source.next() => match message {
                Some(Ok(Message::Binary(bytes))) => take(&bytes, &mut stdin, &resize).await,
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            },
        }
    }
}

/// What the client sent on one channel.
async fn take(
    bytes: &[u8],
    stdin: &mut Option<tokio::sync::mpsc::Sender<Bytes>>,
    resize: &tokio::sync::mpsc::Sender<(u16, u16)>,
) {
    match bytes.split_first() {
        Some((&STDIN, data)) => {
            if let Some(sender) = stdin
                && sender.send(Bytes::copy_from_slice(data)).await.is_err()
            {
                *stdin = None;
            }
        }
        Some((&CLOSE, [STDIN])) => *stdin = None,
        Some((&RESIZE, data)) => {
            let size: Value = serde_json::from_slice(data).unwrap_or_default();
            let side = |key: &str| size[key].as_u64().and_then(|side| u16::try_from(side).ok());
            if let (Some(width), Some(height)) = (side("Width"), side("Height")) {
                // A command that has ended needs no size.
                let _ = resize.send((width, height)).await;
            }
        }
        _ => {}
    }
}

/// The end that clients take for one: any other code reads as a broken stream.
fn farewell() -> Message {
    Message::Close(Some(CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    }))
}

fn framed(channel: u8, bytes: &[u8]) -> Message {
    let mut frame = BytesMut::with_capacity(bytes.len() + 1);
    frame.put_u8(channel);
    frame.extend_from_slice(bytes);
    Message::Binary(frame.freeze())
}

fn exit_status(code: Result<i32, KubeletError>) -> Value {
    match code {
        Ok(0) => json!({ "metadata": {}, "status": "Success" }),
        Ok(code) => json!({
            "metadata": {},
            "status": "Failure",
            "message": format!("command terminated with non-zero exit code: exit status {code}"),
            "reason": "NonZeroExitCode",
            "details": { "causes": [{ "reason": "ExitCode", "message": code.to_string() }] },
        }),
        Err(error) => json!({
            "metadata": {},
            "status": "Failure",
            "message": error.to_string(),
            "reason": "InternalError",
        }),
    }
}

/// Forwards ports: two channels each, data and errors, opened by the port's number.
fn forward(
    kubelet: Arc<dyn Kubelet>,
    pod: PodRef,
    ports: Vec<u16>,
    upgrade: Upgrade,
) -> http::Response<Body> {
    let Some(protocol) = upgrade.protocol() else {
        return refuse_spdy();
    };
    let response = upgrade.response(protocol);
    tokio::spawn(async move {
        match upgrade.socket().await {
            Ok(socket) => relay(&*kubelet, pod, ports, socket).await,
            Err(error) => tracing::debug!("a websocket did not open: {error}"),
        }
    });
    response
}

async fn relay(kubelet: &dyn Kubelet, pod: PodRef, ports: Vec<u16>, socket: Socket) {
    let (mut sink, mut source) = socket.split();
    let (out, mut outgoing) = tokio::sync::mpsc::channel::<Message>(16);
    let mut writers = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let Ok(channel) = u8::try_from(index * 2) else {
            return;
        };
        for one in [channel, channel + 1] {
            if sink.send(framed(one, &port.to_le_bytes())).await.is_err() {
                return;
            }
        }
        match kubelet.dial(pod.clone(), *port).await {
            Ok(stream) => {
                let (mut reader, writer) = tokio::io::split(stream);
                writers.push(Some(writer));
                let out = out.clone();
                tokio::spawn(async move {
                    let mut buffer = vec![0; FORWARD_BYTES];
                    while let Ok(count) = reader.read(&mut buffer).await {
                        if count == 0 || out.send(framed(channel, &buffer[..count])).await.is_err()
                        {
                            return;
                        }
                    }
                });
            }
            Err(error) => {
                writers.push(None);
                let told = framed(channel + 1, error.to_string().as_bytes());
                if sink.send(told).await.is_err() {
                    return;
                }
            }
        }
    }
    drop(out);
    loop {
        tokio::select! {
            message = outgoing.recv() => match message {
                Some(message) => if sink.send(message).await.is_err() { return; },
                None => {
                    let _ = sink.send(farewell()).await;
                    return;
                }
            },
            message = source.next() => match message {
                Some(Ok(Message::Binary(bytes))) => {
                    let Some((channel, data)) = bytes.split_first() else { continue };
                    if let Some(Some(writer)) = writers.get_mut(usize::from(channel / 2))
                        && writer.write_all(data).await.is_err()
                    {
                        return;
                    }
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            },
        }
    }
}
