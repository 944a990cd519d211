//! What happened, a line an accepted or refused write, as a person would tell it.

use api::call::Call;
use api::time::Time;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use store::Response;

/// As much of an answer as a line may tell.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Told<'a> {
    metadata: Named,
    reason: Option<String>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    name: Option<String>,
}

/// The story of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    lines: Vec<String>,
    /// Nobody wants to read it.
    is_silent: bool,
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

    /// From now on nothing is told.
    pub(crate) fn silence(&mut self) {
        self.is_silent = true;
    }

    pub(crate) fn note(&mut self, begins: Time, now: Time, what: &str) {
        if self.is_silent {
            return;
        }
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
        if self.is_silent {
            return;
        }
        let path = call.target.split('?').next().unwrap_or_default();
        let body: Told<'_> = serde_json::from_slice(&answer.body).unwrap_or_default();
        let place = path
            .rsplit_once("/namespaces/")
            .map_or(path, |(_, rest)| rest);
        let mut line = format!("{who} {} {place}", call.method.to_lowercase());
        if call.method == "POST"
            && !path.ends_with("/binding")
            && let Some(name) = &body.metadata.name
        {
            line.push_str(&format!("/{name}"));
        }
        if (200..300).contains(&answer.code) {
            line.push_str(&told(call, body.status));
        } else {
            let reason = body.reason.unwrap_or_default();
            let refused = format!(" refused {} {reason}", answer.code);
            line.push_str(refused.trim_end());
        }
        self.note(begins, now, &line);
    }
}

/// The part of an accepted write that tells the story: a phase, a node.
fn told(call: &Call, status: Option<&RawValue>) -> String {
    let mut told = String::new();
    if call.target.contains("/binding") {
        let wanted: Value = serde_json::from_slice(&call.body).unwrap_or_default();
        if let Some(node) = wanted["target"]["name"].as_str() {
            told.push_str(&format!(" node={node}"));
        }
    }
    let status = status.map_or("", RawValue::get);
    if !status.contains("\"phase\"") && !status.contains("\"state\"") {
        return told;
    }
    let status: Value = serde_json::from_str(status).unwrap_or_default();
    for phase in [
        &status["phase"],
        &status["state"]["phase"],
        &status["state"],
    ] {
        if let Some(phase) = phase.as_str() {
            told.push_str(&format!(" phase={phase}"));
        }
    }
    told
}
