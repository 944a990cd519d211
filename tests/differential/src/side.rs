//! One of the two servers while a script runs against it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::path;
use crate::protobuf;
use crate::script::{Ask, Body, Condition, Until};
use crate::wire::{Answer, Connection, Lines, Server, read};

/// Longest wait for an answer, an event or a condition.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a condition is asked about.
const ASK_EVERY: Duration = Duration::from_millis(40);
/// Marks the one bookmark that is not a matter of time.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// What a step brought to light on one side.
#[derive(Clone, Debug)]
pub enum Seen {
    /// An answer.
    Answer(Answer),
    /// Events of a stream, or what the webhooks were asked.
    Values(Vec<Value>),
}

impl Seen {
    /// The body of an answer as JSON.
    pub fn body(&self) -> Value {
        match self {
            Seen::Answer(answer) => serde_json::from_slice(&answer.body).unwrap_or_default(),
            Seen::Values(_) => Value::Null,
        }
    }

    /// The code of an answer.
    pub fn code(&self) -> u16 {
        match self {
            Seen::Answer(answer) => answer.code,
            Seen::Values(_) => 0,
        }
    }
}

/// One server.
pub struct Side {
    /// How to reach it.
    pub server: Server,
    /// The administrator's token.
    pub admin: String,
    /// Where webhooks for this server listen.
    pub hook: String,
    connection: Option<Connection>,
    streams: BTreeMap<String, Lines>,
    /// What the script took from answers.
    pub variables: BTreeMap<String, String>,
}

impl Side {
    /// A side at the beginning of a script.
    pub fn new(server: Server, admin: &str, hook: &str) -> Side {
        Side {
            server,
            admin: admin.to_owned(),
            hook: hook.to_owned(),
            connection: None,
            streams: BTreeMap::new(),
            variables: BTreeMap::new(),
        }
    }

    /// Forgets streams and variables.
    pub fn begin(&mut self, given: &[(&str, &str)]) {
        self.streams.clear();
        self.variables = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        self.variables.insert("hook".to_owned(), self.hook.clone());
    }

    /// Sends a request, again and again until its conditions hold, and takes its variables.
    pub async fn ask(&mut self, ask: &Ask) -> anyhow::Result<Seen> {
        let until = Instant::now() + PATIENCE;
        let answer = loop {
            let answer = self.send(ask).await?;
            let is_settled =
                ask.until.iter().all(|wish| holds(wish, &answer)) && !is_early(&answer);
            if is_settled || Instant::now() > until {
                break answer;
            }
            tokio::time::sleep(ASK_EVERY).await;
        };
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        for (name, from) in &ask.takes {
            let value = path::find(&body, from).map_or_else(String::new, path::text);
            self.variables.insert(name.clone(), value);
        }
        Ok(Seen::Answer(answer))
    }

    async fn send(&mut self, ask: &Ask) -> anyhow::Result<Answer> {
        let request = self.request(ask)?;
        let kept = self.connection.take();
        let mut connection = match kept.filter(Connection::is_usable) {
            Some(kept) => kept,
            None => self.server.connect().await?,
        };
        let answer = timeout(PATIENCE, async {
            read(connection.open(request).await?).await
        });
        let answer = answer.await.context("no answer in time")??;
        self.connection = Some(connection);
        Ok(answer)
    }

    /// Opens a stream; gives the answer's head, or the whole answer if it is a refusal.
    pub async fn watch(&mut self, name: &str, ask: &Ask) -> anyhow::Result<Seen> {
        let request = self.request(ask)?;
        let mut connection = self.server.connect().await?;
        let opened = timeout(PATIENCE, connection.open(request)).await;
        let mut response = opened.context("no answer in time")??;
        if response.status() != http::StatusCode::OK {
            return Ok(Seen::Answer(timeout(PATIENCE, read(response)).await??));
        }
        let headers = std::mem::take(response.headers_mut());
        self.streams
            .insert(self.expand(name)?, Lines::new(response.into_body()));
        let mut headers: Vec<(String, String)> = headers
            .iter()
            .map(|(name, value)| {
                let value = String::from_utf8_lossy(value.as_bytes());
                (name.to_string(), value.into_owned())
            })
            .collect();
        headers.sort();
        Ok(Seen::Answer(Answer {
            code: 200,
            headers,
            body: Bytes::new(),
        }))
    }

    /// Reads events of a stream.
    pub async fn events(&mut self, name: &str, until: &Until) -> anyhow::Result<Seen> {
        let wanted = match until {
            Until::Event(kind, name) => Some((kind.clone(), self.expand(name)?)),
            _ => None,
        };
        let Some(stream) = self.streams.get_mut(name) else {
            return Ok(Seen::Values(vec![Value::from("the stream is not open")]));
        };
        let mut events = Vec::new();
        while *until != Until::Count(events.len()) {
            let line = match timeout(PATIENCE, stream.next()).await {
                Ok(line) => line?,
                Err(_) => {
                    events.push(Value::from("nothing more came"));
                    break;
                }
            };
            let Some(line) = line else {
                events.push(Value::from("the stream ended"));
                break;
            };
            let event: Value = serde_json::from_slice(&line)
                .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&line).into_owned()));
            if is_heartbeat(&event) {
                continue;
            }
            let done = wanted.as_ref().is_some_and(|(kind, name)| {
                event["type"] == kind.as_str() && object_name(&event) == Some(name)
            });
            events.push(event);
            if done {
                break;
            }
        }
        Ok(Seen::Values(events))
    }

    fn request(&self, ask: &Ask) -> anyhow::Result<http::Request<Full<Bytes>>> {
        let target = self.expand(&ask.target)?;
        let (body, kind) = match &ask.body {
            Body::Empty => (Vec::new(), ""),
            Body::Yaml(text) => {
                let value: Value =
                    serde_saphyr::from_str(&self.expand(text)?).context("the body is no YAML")?;
                (value.to_string().into_bytes(), "application/json")
            }
            Body::Raw(text) => (self.expand(text)?.into_bytes(), "application/json"),
            Body::Protobuf(version, kind, text) => {
                let fields: Value = serde_saphyr::from_str(&self.expand(text)?)
                    .context("the fields are no YAML")?;
                let body = protobuf::envelope(version, kind, &fields)?;
                (body, "application/vnd.kubernetes.protobuf")
            }
        };
        let mut request = http::Request::builder()
            .method(ask.method.as_str())
            .uri(target.as_str())
            .header("host", &self.server.address);
        let mut given = Vec::new();
        for (name, value) in &ask.headers {
            let (name, value) = (name.to_ascii_lowercase(), self.expand(value)?);
            let value = match (name.as_str(), value.as_str()) {
                ("user", "none") => None,
                ("user", user) => {
                    Some(("authorization".to_owned(), format!("Bearer {user}-token")))
                }
                _ => Some((name.clone(), value)),
            };
            given.push(if name == "user" {
                "authorization".to_owned()
            } else {
                name
            });
            if let Some((name, value)) = value {
                request = request.header(name, value);
            }
        }
        let mut default = |name: &str, value: &str| {
            if !value.is_empty() && !given.iter().any(|known| known == name) {
                request = std::mem::take(&mut request).header(name, value);
            }
        };
        default("authorization", &format!("Bearer {}", self.admin));
        default("content-type", kind);
        default("accept", "application/json");
        default("user-agent", "differential/v1");
        request
            .body(Full::new(Bytes::from(body)))
            .with_context(|| format!("{target} cannot be asked"))
    }

    /// Puts variables in: `${name}`; `${x*5}` is `xxxxx`, `${base64:…}` is encoded.
    fn expand(&self, text: &str) -> anyhow::Result<String> {
        let mut whole = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, behind) = closed(after).context("${ without }")?;
            whole.push_str(before);
            if let Some((letter, times)) = name.split_once('*') {
                whole.push_str(&letter.repeat(times.parse().context("how often?")?));
            } else if let Some(plain) = name.strip_prefix("base64:") {
                whole.push_str(&STANDARD.encode(plain));
            } else if let Some(value) = self.variables.get(name) {
                whole.push_str(value);
            } else {
                bail!("nothing is called ${{{name}}}");
            }
            rest = behind;
        }
        whole.push_str(rest);
        Ok(whole)
    }
}

/// A bookmark that comes when it likes.
fn is_heartbeat(event: &Value) -> bool {
    let marks = |object: &Value| object["metadata"]["annotations"][INITIAL_EVENTS_END].is_string();
    let object = &event["object"];
    event["type"] == "BOOKMARK" && !marks(object) && !marks(&object["rows"][0]["object"])
}

/// A variable's name and what follows it; braces within it are its own.
fn closed(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => return Some((&text[..at], &text[at + 1..])),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn object_name(event: &Value) -> Option<&String> {
    let object = &event["object"];
    let name = |object: &'_ Value| object["metadata"]["name"].is_string();
    let object = if name(object) {
        object
    } else {
        &object["rows"][0]["object"]
    };
    match &object["metadata"]["name"] {
        Value::String(name) => Some(name),
        _ => None,
    }
}

fn holds(condition: &Condition, answer: &Answer) -> bool {
    match condition {
        Condition::Code(code) => answer.code == *code,
        Condition::Holds(text) => String::from_utf8_lossy(&answer.body).contains(text.as_str()),
        Condition::Is(at, text) => {
            let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            path::find(&body, at).is_some_and(|value| path::text(value) == *text)
        }
    }
}

/// The real server answers so for a moment after a definition was made.
fn is_early(answer: &Answer) -> bool {
    let early = b"storage is (re)initializing";
    answer.code == 429 && answer.body.windows(early.len()).any(|part| part == early)
}
