//! What somebody outside may do to a world besides telling it a story: ask the server, and leave
//! calls that are told of where they are refused for good.

use api::call::{self, Call};
use api::intent::{Action, Intent, ObjectKey};
use api::kind::Kind;
use serde_json::{Value, json};
use store::{Response, User};

use super::{Event, Patience, World};
use crate::chronicle::Life;
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

impl World {
    /// What `vcctl queue operate` sends, after so many that were taken; whoever has patience looks
    /// from time to time whether the queue is as was asked.
    pub(super) fn tell_queue(
        &mut self,
        name: Box<str>,
        action: &'static str,
        patience: Patience,
        taken: u32,
    ) {
        let queues = self.objects(Kind::Queue);
        let Some(queue) = queues.iter().find(|it| it["metadata"]["name"] == *name) else {
            return;
        };
        let commands = self.objects(Kind::Command);
        let is_told = taken > 0 && commands.iter().any(|it| it["target"]["name"] == *name);
        if taken > 0 && !is_told && queue["status"]["state"] == "Open" {
            return;
        }
        let was_taken = is_told || self.send_queue_command(queue, &name, action);
        let Some((ms, left)) = patience.again() else {
            return;
        };
        let (ms, left, taken) = match was_taken {
            true => (LOOKS_MS, patience, taken + u32::from(!is_told)),
            false => (ms, left, taken),
        };
        let told = Event::QueueCommand(name, action, left, taken);
        self.push(self.now.plus_ms(ms), told);
    }

    fn send_queue_command(&mut self, queue: &Value, name: &str, action: &str) -> bool {
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
        (200..300).contains(&response.code)
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

    /// A user's call reaches the server after `ms` milliseconds from now.
    pub(crate) fn submit(&mut self, ms: i64, call: Call, patience: Patience) {
        self.push(self.now.plus_ms(ms), Event::User(call, patience));
    }

    /// The lives of the vcjobs whose names begin so, in the order in which they were made.
    pub(crate) fn lives(&self, stem: &str) -> Vec<&Life> {
        self.witness.chronicle.lives(stem)
    }

    /// The minutes since 1970 that begin within a time, which is told in milliseconds after the world began.
    pub(crate) fn minutes(&self, from_ms: i64, to_ms: i64) -> std::ops::RangeInclusive<i64> {
        let [from, to] = [from_ms, to_ms].map(|ms| self.settings.begins.plus_ms(ms).micros());
        from.div_euclid(60_000_000) + 1..=to.div_euclid(60_000_000)
    }

    /// All objects of a kind that the witness has seen last.
    pub(crate) fn seen(&self, kind: Kind) -> impl Iterator<Item = &Value> {
        self.witness.all(kind)
    }
}
