//! Probes: asking a container how it is, and counting the answers.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::exec;
use super::frame::ExecPlan;
use super::pod::{Container, ExecAction, Handler, HttpGet, Probe};
use super::worker::Shared;

/// What a probe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Liveness,
    Readiness,
    Startup,
}

/// Answers in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    good: u32,
    bad: u32,
}

impl Tally {
    /// Counts one answer; says what holds from now on, if a threshold is reached.
    pub(crate) fn count(&mut self, good: bool, probe: &Probe) -> Option<bool> {
        if good {
            self.good = self.good.saturating_add(1);
            self.bad = 0;
            (self.good >= probe.success_threshold.max(1)).then_some(true)
        } else {
            self.bad = self.bad.saturating_add(1);
            self.good = 0;
            let limit = if probe.failure_threshold == 0 {
                3
            } else {
                probe.failure_threshold
            };
            (self.bad >= limit).then_some(false)
        }
    }
}

/// What a probe or a hook needs of its container.
pub(crate) struct Target<'a> {
    pub shared: &'a Shared,
    pub container: &'a Container,
    pub address: Ipv4Addr,
    pub exec: ExecPlan,
}

/// The pause between two questions.
pub(crate) fn period(probe: &Probe) -> Duration {
    Duration::from_secs(if probe.period_seconds == 0 {
        10
    } else {
        probe.period_seconds
    })
}

/// Asks once; the text says what was wrong.
pub(crate) async fn ask(target: &Target<'_>, probe: &Probe) -> Result<(), String> {
    let limit = Duration::from_secs(probe.timeout_seconds.max(1));
    let asked = async {
        if let Some(action) = &probe.exec {
            command(target, action).await
        } else if let Some(request) = &probe.http_get {
            get(target, request).await
        } else if let Some(socket) = &probe.tcp_socket {
            connect(target, &socket.host, &socket.port).await
        } else if let Some(grpc) = &probe.grpc {
            connect(target, "", &Value::from(grpc.port)).await
        } else {
            Ok(())
        }
    };
    tokio::time::timeout(limit, asked)
        .await
        .unwrap_or_else(|_| Err(format!("no answer within {limit:?}")))
}

/// Does what a hook says.
pub(crate) async fn hook(target: &Target<'_>, hook: &Handler) -> Result<(), String> {
    if let Some(action) = &hook.exec {
        command(target, action).await
    } else if let Some(request) = &hook.http_get {
        // That it was heard is enough.
        request_page(target, request).await.map(drop)
    } else if let Some(socket) = &hook.tcp_socket {
        connect(target, &socket.host, &socket.port).await
    } else if let Some(pause) = &hook.sleep {
        tokio::time::sleep(Duration::from_secs(pause.seconds)).await;
        Ok(())
    } else {
        Ok(())
    }
}

/// Runs a command inside the container.
pub(crate) async fn command(target: &Target<'_>, action: &ExecAction) -> Result<(), String> {
    let plan = ExecPlan {
        command: action.command.clone(),
        ..target.exec.clone()
    };
    match exec::run(&target.shared.settings.executable, &plan).await {
        Ok((0, _)) => Ok(()),
        Ok((code, text)) => Err(format!(
            "command ended with code {code}: {}",
            text.trim_end()
        )),
        Err(error) => Err(format!("command cannot be run: {error}")),
    }
}

fn address(target: &Target<'_>, host: &str, port: &Value) -> Result<SocketAddr, String> {
    let port = target
        .container
        .port(port)
        .ok_or_else(|| format!("there is no port {port}"))?;
    let host = if host.is_empty() {
        target.address
    } else {
        host.parse().unwrap_or(target.address)
    };
    Ok(SocketAddr::from((host, port)))
}

async fn connect(target: &Target<'_>, host: &str, port: &Value) -> Result<(), String> {
    let to = address(target, host, port)?;
    let dialled = target.shared.network.dial(to).await;
    dialled
        .map(drop)
        .map_err(|error| format!("dial tcp {to}: {error}"))
}

/// Requests a page; 200 to 399 is good.
async fn get(target: &Target<'_>, request: &HttpGet) -> Result<(), String> {
    match request_page(target, request).await? {
        200..=399 => Ok(()),
        code => Err(format!("HTTP probe failed with statuscode: {code}")),
    }
}

/// Requests a page and gives the answer's code. With `https` only the connection is tried.
async fn request_page(target: &Target<'_>, request: &HttpGet) -> Result<u16, String> {
    if request.scheme.eq_ignore_ascii_case("https") {
        return connect(target, &request.host, &request.port)
            .await
            .map(|()| 200);
    }
    let to = address(target, &request.host, &request.port)?;
    let mut stream = target
        .shared
        .network
        .dial(to)
        .await
        .map_err(|error| format!("dial tcp {to}: {error}"))?;
    let path = if request.path.starts_with('/') {
        request.path.clone()
    } else {
        format!("/{}", request.path)
    };
    let mut text = format!("GET {path} HTTP/1.1\r\n");
    let given = |name: &str| {
        request
            .http_headers
            .iter()
            .any(|header| header.name.eq_ignore_ascii_case(name))
    };
    if !given("host") {
        text.push_str(&format!("Host: {to}\r\n"));
    }
    if !given("user-agent") {
        text.push_str("User-Agent: kube-probe/1.36\r\n");
    }
    for header in &request.http_headers {
        let value = header.value.as_deref().unwrap_or("");
        text.push_str(&format!("{}: {value}\r\n", header.name));
    }
    text.push_str("Accept: */*\r\nConnection: close\r\n\r\n");
    let failed = |error: std::io::Error| format!("Get http://{to}{path}: {error}");
    stream.write_all(text.as_bytes()).await.map_err(failed)?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.map_err(failed)?;
    std::str::from_utf8(&head[9..])
        .ok()
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| format!("Get http://{to}{path}: malformed HTTP response"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_count_answers_in_a_row() {
        let probe = Probe {
            success_threshold: 2,
            failure_threshold: 3,
            ..Probe::default()
        };
        let mut tally = Tally::default();
        let said: Vec<_> = "+-++---+-"
            .chars()
            .map(|answer| match tally.count(answer == '+', &probe) {
                None => '.',
                Some(true) => '+',
                Some(false) => '-',
            })
            .collect();
        assert_eq!(said.into_iter().collect::<String>(), "...+..-..");
    }
}
