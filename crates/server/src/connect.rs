//! Questions to a node: logs as a stream; exec, attach and port-forward on a connection that leaves
//! HTTP, in the two ways that clients know ([`channels`] of a websocket, [`streams`] of SPDY).

mod channels;
mod streams;
mod tunnel;
mod upgrade;

use std::sync::Arc;

use client::kubelet::{ExecRequest, Kubelet, KubeletError, LogRequest, PodRef};
use futures::StreamExt;
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use serde_json::{Value, json};
use store::{Ask, Connect, ExecOptions, LogOptions, PodAddress, Refused, Since};

use crate::api::{Body, reply};
use crate::plane::now;

pub(crate) use upgrade::Upgrade;
use upgrade::Way;

/// Bytes that are read from a forwarded port at once.
const FORWARD_BYTES: usize = 32 << 10;

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
    let (ask, upgrade) = match (connect.ask, upgrade) {
        (Ask::Log(options), _) => return logs(&*kubelet, pod, options).await,
        (ask, Some(upgrade)) => (ask, upgrade),
        (_, None) => {
            return reply(Refused::bad_request("Upgrade request required").response());
        }
    };
    match ask {
        Ask::Log(options) => logs(&*kubelet, pod, options).await,
        Ask::Exec(options) => exec(&*kubelet, pod, options, upgrade).await,
        Ask::PortForward { ports } => forward(kubelet, pod, ports, upgrade),
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

fn refuse(error: &KubeletError) -> http::Response<Body> {
    let refused = match error {
        KubeletError::NotFound(text) | KubeletError::BadRequest(text) => {
            Refused::bad_request(text.clone())
        }
        KubeletError::Io { .. } => Refused::internal(&whole(error)),
    };
    reply(refused.response())
}

/// An error with its cause.
fn whole(error: &KubeletError) -> String {
    match error {
        KubeletError::Io { cause, .. } => format!("{error}: {cause}"),
        _ => error.to_string(),
    }
}

async fn logs(kubelet: &dyn Kubelet, pod: PodRef, options: LogOptions) -> http::Response<Body> {
    let request = LogRequest {
        pod,
        container: options.container,
        follow: options.follow,
        previous: options.previous,
        timestamps: options.timestamps,
        tail_lines: options.tail_lines,
        since_micros: options.since.map(|since| match since {
            Since::Ago(seconds) => now().plus_ms(-1_000 * i64::from(seconds)).micros(),
            Since::Instant(instant) => instant.micros(),
        }),
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
    let way = match upgrade.choose(&[Way::CHANNELS_5, Way::CHANNELS_4, Way::STREAMS_4]) {
        Ok(way) => way,
        Err(refused) => return reply(refused.response()),
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
    upgrade.leave(way, move |io| async move {
        match way {
            Way::STREAMS_4 => streams::exec(io, session, &options).await,
            _ => channels::exec(io, session, &options).await,
        }
    })
}

fn forward(
    kubelet: Arc<dyn Kubelet>,
    pod: PodRef,
    ports: Vec<u16>,
    upgrade: Upgrade,
) -> http::Response<Body> {
    let mut ways = vec![Way::TUNNEL, Way::FORWARD];
    if !ports.is_empty() {
        ways.push(Way::CHANNELS_4);
    }
    let way = match upgrade.choose(&ways) {
        Ok(way) => way,
        Err(refused) => return reply(refused.response()),
    };
    upgrade.leave(way, move |io| async move {
        match way {
            Way::TUNNEL => streams::forward(kubelet, pod, tunnel::open(io).await).await,
            Way::FORWARD => streams::forward(kubelet, pod, io).await,
            _ => channels::forward(&*kubelet, pod, ports, io).await,
        }
    })
}

/// What a client sent about the size of its terminal.
fn terminal_size(text: &[u8]) -> Option<(u16, u16)> {
    let size: Value = serde_json::from_slice(text).ok()?;
    let side = |key: &str| u16::try_from(size[key].as_u64()?).ok();
    Some((side("Width")?, side("Height")?))
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
