//! Numbered channels in the messages of a websocket: the first byte of each names its channel.

use bytes::{BufMut, Bytes, BytesMut};
use client::kubelet::{ExecSession, Kubelet, PodRef};
use futures::{Sink, SinkExt, StreamExt};
use store::ExecOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use super::upgrade::Io;
use super::{FORWARD_BYTES, exit_status, terminal_size, whole};

/// Channels of `v4.channel.k8s.io` and `v5.channel.k8s.io`.
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// Of v5 only: the channel named by the next byte is closed.
const CLOSE: u8 = 255;

pub(super) type Socket = WebSocketStream<Io>;

/// Speaks websocket on a connection that has left HTTP.
pub(super) async fn socket(io: Io) -> Socket {
    WebSocketStream::from_raw_socket(io, Role::Server, None).await
}

/// Carries a session's streams until the command has ended or the client has gone.
pub(super) async fn exec(io: Io, session: ExecSession, options: &ExecOptions) {
    let ExecSession {
        stdin,
        mut output,
        resize,
        exit,
    } = session;
    let (mut sink, mut source) = socket(io).await.split();
    // Each direction goes on while the other waits: a command that prints what it reads would
    // otherwise stand still, and we with it.
    let inward = async {
        let mut stdin = options.stdin.then_some(stdin);
        while let Some(Ok(message)) = source.next().await {
            match message {
                Message::Binary(bytes) => take(&bytes, &mut stdin, &resize).await,
                Message::Close(_) => return,
                _ => {}
            }
        }
    };
    let outward = async {
        while let Some((is_error, bytes)) = output.recv().await {
            let (channel, wanted) = if is_error && !options.tty {
                (STDERR, options.stderr)
            } else {
                (STDOUT, options.stdout)
            };
            if wanted && sink.send(framed(channel, &bytes)).await.is_err() {
                return;
            }
        }
        let status = exit_status(exit.await).to_string();
        // The client may have gone with its answer: there is nobody left to tell.
        let _gone = sink.send(framed(ERROR, status.as_bytes())).await;
        farewell(&mut sink).await;
    };
    tokio::select! {
        () = inward => {}
        () = outward => {}
    }
}

/// What the client sent on one channel.
async fn take(
    bytes: &[u8],
    stdin: &mut Option<mpsc::Sender<Bytes>>,
    resize: &mpsc::Sender<(u16, u16)>,
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
            if let Some(size) = terminal_size(data) {
                // A command that has ended needs no size.
                let _ended = resize.send(size).await;
            }
        }
        _ => {}
    }
}

/// The end that clients take for one: any other code reads as a broken stream.
pub(super) async fn farewell(sink: &mut (impl Sink<Message> + Unpin)) {
    let close = Message::Close(Some(CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    }));
    // Who has gone already needs no farewell.
    let _gone = sink.send(close).await;
}

fn framed(channel: u8, bytes: &[u8]) -> Message {
    let mut frame = BytesMut::with_capacity(bytes.len() + 1);
    frame.put_u8(channel);
    frame.extend_from_slice(bytes);
    Message::Binary(frame.freeze())
}

/// Forwards ports: two channels each, data and errors, opened by the port's number.
pub(super) async fn forward(kubelet: &dyn Kubelet, pod: PodRef, ports: Vec<u16>, io: Io) {
    let (mut sink, mut source) = socket(io).await.split();
    let (out, mut outgoing) = mpsc::channel::<Message>(16);
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
                let told = framed(channel + 1, whole(&error).as_bytes());
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
                    farewell(&mut sink).await;
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
