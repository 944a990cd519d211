//! What happened, a line an accepted or refused write, as a person would tell it.

use api::call::Call;
use api::time::Time;
use serde_json::Value;
use store::Response;

/// The story of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    lines: Vec<String>,
}

impl Transcript {
    /// The lines in order, each with its line end.
    pub fn text(&self) -> String {
        let mut text = self.lines.join("\n");
        text.push('\n');
        text
    }

    /// The lines in order.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    pub(crate) fn note(&mut self, begins: Time, now: Time, what: &str) {
        let since = now.micros() - begins.micros();
        self.lines.push(format!(
            "+{}.{:03}s {what}",
            since / 1_000_000,
            since / 1_000 % 1_000
        ));
    }

    pub(crate) fn write(
        &mut self,
        begins: Time,
        now: Time,
        who: &str,
        call: &Call,
        answer: &Response,
    ) {
        let path = call.target.split('?').next().unwrap_or_default();
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let place = path
            .rsplit_once("/namespaces/")
            .map_or(path, |(_, rest)| rest);
        let mut line = format!("{who} {} {place}", call.method.to_lowercase());
        if call.method == "POST"
            && !path.ends_with("/binding")
            && let Some(name) = body["metadata"]["name"].as_str()
        {
            line.push_str(&format!("/{name}"));
        }
        if (200..300).contains(&answer.code) {
            line.push_str(&told(call, &body));
        } else {
            let reason = body["reason"].as_str().unwrap_or("");
            line.push_str(&format!(" refused {} {reason}", answer.code));
        }
        self.note(begins, now, &line);
    }
}

/// The part of an accepted write that tells the story: a phase, a node.
fn told(call: &Call, body: &Value) -> String {
    let mut told = String::new();
    if call.target.contains("/binding") {
        let wanted: Value = serde_json::from_slice(&call.body).unwrap_or_default();
        if let Some(node) = wanted["target"]["name"].as_str() {
            told.push_str(&format!(" node={node}"));
        }
    }
    for phase in [
        &body["status"]["phase"],
        &body["status"]["state"]["phase"],
        &body["status"]["state"],
    ] {
        if let Some(phase) = phase.as_str() {
            told.push_str(&format!(" phase={phase}"));
        }
    }
    told
}
