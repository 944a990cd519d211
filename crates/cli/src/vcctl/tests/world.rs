//! A cluster of a few objects that answers as an API server does, and the transcript of what is asked of it.

use std::ffi::OsString;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

use api::call::Call;
use api::time::Time;
use serde_json::{Value, json};

use crate::cluster::imitation::Imitation;
use crate::rest::{Rest, text};
use crate::start::{Outcome, Question, Start};
use crate::vcctl::end::End;
use crate::vcctl::tools::Tool;
use crate::vcctl::{Request, understand};

/// When every transcript is written.
const NOW: &str = "2026-11-21T18:00:00Z";

/// Objects, and what was written.
pub(super) struct World {
    objects: Vec<Value>,
    writes: Mutex<Vec<String>>,
}

impl World {
    pub(super) fn of(objects: Vec<Value>) -> Arc<World> {
        Arc::new(World {
            objects,
            writes: Mutex::default(),
        })
    }

    /// What a command line says, and what it writes, as a terminal would show it.
    async fn told(self: &Arc<World>, line: &str) -> String {
        let end = self.end(line).await;
        let mut out = format!("$ {line}\n");
        for (stream, text) in [("", &end.out), ("stderr: ", &end.err)] {
            for line in text.trim_end_matches('\n').lines() {
                // Writing to a String cannot fail.
                let _ = writeln!(out, "{}", format!("{stream}{line}").trim_end());
            }
        }
        for write in self.writes.lock().expect("nobody panicked").drain(..) {
            let _ = writeln!(out, "> {write}");
        }
        if end.code != 0 {
            let _ = writeln!(out, "exit {}", end.code);
        }
        out
    }

    /// How a command line ends.
    pub(super) async fn end(self: &Arc<World>, line: &str) -> End {
        match request(line) {
            Err(end) => end,
            Ok(request) => {
                let now = Time::parse(NOW).expect("it is a time");
                request.perform(now, &Rest::new(self.clone())).await
            }
        }
    }
}

impl Imitation for World {
    fn answer(&self, call: &Call) -> (u16, Value) {
        let (path, query) = call.target.split_once('?').unwrap_or((&call.target, ""));
        // Of what a path has to write in other words, names here have these only.
        let path = &path.replace("%3F", "?").replace("%23", "#");
        let asked = Path::read(path);
        if asked.namespace == Some("broken") {
            return (
                500,
                json!({ "kind": "Status", "message": "the server is out of order" }),
            );
        }
        let sent: Value = serde_json::from_slice(&call.body).unwrap_or_default();
        if call.method != "GET" {
            let mut writes = self.writes.lock().expect("nobody panicked");
            writes.push(format!("{} {path} {sent}", call.method));
        }
        let named = match call.method {
            "POST" => text(&sent, &["metadata", "name"]),
            _ => asked.name,
        };
        let found = (self.objects.iter()).find(|it| asked.holds(it) && named_so(it, named));
        match (call.method, found) {
            ("POST", Some(_)) => refusal(409, &asked, named, "already exists"),
            ("POST", None) => (201, sent),
            ("GET", _) if asked.name.is_empty() => {
                let chosen = |it: &&Value| asked.holds(it) && is_labelled(it, query);
                let items: Vec<&Value> = self.objects.iter().filter(chosen).collect();
                (200, json!({ "metadata": {}, "items": items }))
            }
            (_, Some(object)) => (200, object.clone()),
            (_, None) => refusal(404, &asked, named, "not found"),
        }
    }
}

/// Command lines after one another, with what they say.
pub(super) async fn transcript(world: &Arc<World>, lines: &[&str]) -> String {
    let mut told = Vec::new();
    for line in lines {
        told.push(world.told(line).await);
    }
    told.join("\n")
}

/// What a command line asks for, or how it ends without asking.
fn request(line: &str) -> Result<Request, End> {
    let words = shlex::split(line).expect("quotes are closed");
    let (name, rest) = words.split_first().expect("a command has a name");
    let rest = rest.iter().map(OsString::from).collect();
    let outcome = match Tool::called(name) {
        Some(tool) => tool.understand(rest),
        None => understand(rest),
    };
    let Outcome::Start(start) = outcome? else {
        panic!("{line} asks for nothing");
    };
    match *start {
        Start::Ask(_, Question::Vcctl(request)) => Ok(request),
        other => panic!("{line}: {other:?}"),
    }
}

/// A path of the API, taken apart.
struct Path<'a> {
    api_version: String,
    namespace: Option<&'a str>,
    plural: &'a str,
    name: &'a str,
}

impl Path<'_> {
    fn read(path: &str) -> Path<'_> {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let (api_version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ((*version).to_owned(), rest),
            ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
            _ => panic!("{path} is no path of an API"),
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] => (Some(*namespace), rest),
            rest => (None, rest),
        };
        Path {
            api_version,
            namespace,
            plural: rest.first().copied().unwrap_or_default(),
            name: rest.get(1).copied().unwrap_or_default(),
        }
    }

    fn holds(&self, object: &Value) -> bool {
        let plural = format!("{}s", text(object, &["kind"]).to_lowercase());
        let namespace = text(object, &["metadata", "namespace"]);
        text(object, &["apiVersion"]) == self.api_version
            && plural == self.plural
            && self.namespace.is_none_or(|asked| asked == namespace)
    }
}

fn named_so(object: &Value, name: &str) -> bool {
    text(object, &["metadata", "name"]) == name
}

/// Whether an object has the label that a query asks for, with that value if it names one.
fn is_labelled(object: &Value, query: &str) -> bool {
    let asked = query
        .split('&')
        .find_map(|it| it.strip_prefix("labelSelector="));
    let Some(asked) = asked else {
        return true;
    };
    let asked = asked.replace("%2F", "/").replace("%3D", "=");
    let labels = &object["metadata"]["labels"];
    match asked.split_once('=') {
        Some((label, value)) => labels[label] == value,
        None => !labels[&*asked].is_null(),
    }
}

fn refusal(code: u16, asked: &Path<'_>, name: &str, why: &str) -> (u16, Value) {
    let group = asked.api_version.split_once('/').map_or("", |it| it.0);
    let dot = if group.is_empty() { "" } else { "." };
    let message = format!("{}{dot}{group} {name:?} {why}", asked.plural);
    (
        code,
        json!({ "kind": "Status", "code": code, "message": message }),
    )
}
