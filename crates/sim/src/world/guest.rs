//! What somebody outside may do to a world besides telling it a story: ask the server, and leave
//! calls that are told of where they are refused for good.

use api::call::{self, Call};
use api::intent::{Action, Intent, ObjectKey};
use api::kind::Kind;
use serde_json::{Value, json};
use store::{Response, User};

use super::{Event, World};
use crate::ledger::Ledger;
use crate::stored::text;

/// A call that was refused for good.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    /// Milliseconds after the world began.
    pub(crate) age_ms: i64,
    /// What was to be created.
    pub(crate) object: Value,
    pub(crate) why: String,
}

/// When somebody who has opened a queue looks at it.
const LOOKS_MS: i64 = 60_000;
/// When somebody whose command was refused sends it again.
const AGAIN_MS: i64 = 1_000;

impl World {
    /// What `vcctl queue operate` sends, after so many that were taken. After how many milliseconds
    /// whoever sent it comes again, if at all, and how many were taken then: not where the queue is as
    /// was asked, or there is none.
    pub(super) fn tell_queue(
        &mut self,
        name: &str,
        action: &str,
        taken: u32,
    ) -> Option<(i64, u32)> {
        let queues = self.objects(Kind::Queue);
        let queue = queues.iter().find(|it| it["metadata"]["name"] == name)?;
        let commands = self.objects(Kind::Command);
        if taken > 0 && commands.iter().any(|it| it["target"]["name"] == name) {
            return Some((LOOKS_MS, taken));
        }
        if taken > 0 && queue["status"]["state"] == "Open" {
            return None;
        }
        self.deeds += 1;
        let reference = json!({
            "apiVersion": Kind::Queue.api_version(),
            "kind": "Queue",
            "name": name,
            "uid": queue["metadata"]["uid"],
            "controller": true,
        });
        let command = format!("{name}-{}-{}", action.to_lowercase(), self.deeds);
        let body = json!({
            "apiVersion": Kind::Command.api_version(),
            "kind": "Command",
            "metadata": {
                "name": command,
                "namespace": "default",
                "ownerReferences": [reference],
            },
            "action": action,
            "target": reference,
        });
        let target = ObjectKey::new(Kind::Command, "default", &command);
        let action = Action::Create { body };
        let response = self.written("user", &call::write(&Intent { target, action }));
        let is_taken = (200..300).contains(&response.code);
        Some(match is_taken {
            true => (LOOKS_MS, taken + 1),
            false => (AGAIN_MS, taken),
        })
    }

    /// From now on a ledger is kept of what becomes of each workload.
    pub(crate) fn keep_ledger(&mut self) {
        self.witness.remember();
        self.ledger = Some(Ledger::new(self.settings.begins));
    }

    /// The ledger; empty where none is kept.
    pub(crate) fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    /// Calls that were refused for good.
    pub(crate) fn turned_away(&self) -> &[Refused] {
        &self.turned_away
    }

    pub(super) fn turn_away(&mut self, call: &Call, response: &Response) {
        let answer: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let why = match text(&answer["message"]) {
            "" => String::from_utf8_lossy(&response.body).into_owned(),
            message => message.to_owned(),
        };
        self.turned_away.push(Refused {
            age_ms: self.age_ms(),
            object: serde_json::from_slice(&call.body).unwrap_or_default(),
            why,
        });
    }

    /// The server's answer to a user, at once. What it changes is part of the story.
    pub(crate) fn ask(&mut self, call: &Call) -> Response {
        if call.method != "GET" {
            return self.written("user", call);
        }
        self.whole(User::admin(), call)
    }

    /// A user's call reaches the server after `ms` milliseconds from now; refused, it is tried again
    /// every second, so often.
    pub(crate) fn submit(&mut self, ms: i64, call: Call, tries: u32) {
        self.push(self.now.plus_ms(ms), Event::User(call, tries));
    }

    /// All objects of a kind that the witness has seen last.
    pub(crate) fn seen(&self, kind: Kind) -> impl Iterator<Item = &Value> {
        self.witness.all(kind)
    }
}
