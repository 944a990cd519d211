//! Events: notes for people about an object.

use serde_json::{Value, json};

use crate::intent::{Action, Intent, ObjectKey};
use crate::kind::Kind;
use crate::sum::Sum;
use crate::time::Time;

/// Longest message that the API server takes.
const MESSAGE_BYTES_MAX: usize = 1024;

/// Good news or bad news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Normal,
    /// Something that a person may want to look at.
    Warning,
}

impl Tone {
    /// The text on the wire.
    pub const fn text(self) -> &'static str {
        match self {
            Tone::Normal => "Normal",
            Tone::Warning => "Warning",
        }
    }
}

/// Whom an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Involved<'a> {
    /// Kind.
    pub kind: Kind,
    /// Empty for cluster-scoped kinds.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
    /// Identity.
    pub uid: &'a str,
    /// Version that was seen.
    pub resource_version: &'a str,
}

/// What an event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note<'a> {
    /// Good or bad.
    pub tone: Tone,
    /// One word, `FailedScheduling`.
    pub reason: &'a str,
    /// A sentence.
    pub message: &'a str,
    /// Who says so, `vc-controller-manager`.
    pub component: &'a str,
}

/// The whole `v1` Event object.
///
/// Its name is a function of what it says and when (`<object>.<hex>`), so that saying the same
/// twice after a crash makes one event. A long message is cut.
pub fn event(involved: &Involved<'_>, note: &Note<'_>, now: Time) -> Value {
    event_of(involved, note, now.micros(), now)
}

/// The same with the number that tells it from others that say the same.
fn event_of(involved: &Involved<'_>, note: &Note<'_>, number: i64, now: Time) -> Value {
    let row = involved.kind.row();
    let namespace = match involved.namespace {
        "" => "default",
        namespace => namespace,
    };
    let stamp = now.seconds_text();
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": name(involved, note, number), "namespace": namespace },
        "involvedObject": {
            "apiVersion": involved.kind.api_version(),
            "kind": row.name,
            "name": involved.name,
            "namespace": involved.namespace,
            "uid": involved.uid,
            "resourceVersion": involved.resource_version,
        },
        "reason": note.reason,
        "message": cut(note.message),
        "type": note.tone.text(),
        "source": { "component": note.component },
        "reportingComponent": note.component,
        "reportingInstance": "",
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    })
}

/// The write that makes the event.
pub fn intent(involved: &Involved<'_>, note: &Note<'_>, now: Time) -> Intent {
    made(event(involved, note, now))
}

fn made(body: Value) -> Intent {
    let text = |field: &str| body["metadata"][field].as_str().unwrap_or_default();
    Intent {
        target: ObjectKey::new(Kind::Event, text("namespace"), text("name")),
        action: Action::Create { body },
    }
}

/// The same for what may be told again by whoever has forgotten that it was: the event's name says nothing
/// of when, but of which generation of the object, so that an API takes it once for as long as it keeps it.
pub fn standing(involved: &Involved<'_>, note: &Note<'_>, generation: i64, now: Time) -> Intent {
    made(event_of(involved, note, generation, now))
}

/// `<object>.<16 hex digits>`, the object's name cut so that the whole is a valid name.
fn name(involved: &Involved<'_>, note: &Note<'_>, number: i64) -> String {
    let mut hash = Sum::default();
    for text in [involved.uid, note.reason, note.message, note.component] {
        hash.text(text);
    }
    hash.text(&number.to_string());
    let mut end = involved.name.len().min(236);
    while !involved.name.is_char_boundary(end) {
        end -= 1;
    }
    let stem = involved.name[..end].trim_end_matches(['-', '.']);
    format!("{stem}.{:016x}", hash.value())
}

fn cut(message: &str) -> &str {
    let mut end = message.len().min(MESSAGE_BYTES_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    const INVOLVED: Involved<'_> = Involved {
        kind: Kind::VcJob,
        namespace: "ml",
        name: "training",
        uid: "u1",
        resource_version: "7",
    };

    fn note(message: &str) -> Note<'_> {
        Note {
            tone: Tone::Warning,
            reason: "PVCError",
            message,
            component: "vc-controller-manager",
        }
    }

    #[test]
    fn the_same_note_at_the_same_time_has_the_same_name() {
        let now = Time::from_seconds(1_000);
        let first = event(&INVOLVED, &note("missing"), now);
        assert_eq!(first, event(&INVOLVED, &note("missing"), now));
        assert_ne!(
            first["metadata"],
            event(&INVOLVED, &note("other"), now)["metadata"]
        );
        assert_ne!(
            first["metadata"],
            event(&INVOLVED, &note("missing"), now.plus_ms(1))["metadata"]
        );
        assert_eq!(
            first["involvedObject"]["apiVersion"],
            "batch.volcano.sh/v1alpha1"
        );
        assert_eq!(first["firstTimestamp"], "1970-01-01T00:16:40Z");
    }

    #[test]
    fn an_event_about_a_cluster_scoped_object_lies_in_the_default_namespace() {
        let queue = Involved {
            kind: Kind::Queue,
            namespace: "",
            ..INVOLVED
        };
        let intent = intent(&queue, &note("x"), Time::default());
        assert_eq!(&*intent.target.namespace, "default");
    }

    #[test]
    fn a_long_message_is_cut_at_a_whole_character() {
        let text = "ä".repeat(1_000);
        let body = event(&INVOLVED, &note(&text), Time::default());
        assert_eq!(body["message"].as_str().unwrap().len(), 1_024);
    }
}
