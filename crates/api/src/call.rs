//! Requests to a Kubernetes API as values, and its answers read back, without a socket.
//!
//! `client` sends a [`Call`] over HTTPS or in process, `sim` hands it to a store on the same
//! thread: both speak exactly the same bytes.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::intent::{Action, Intent, Part, Propagation, Refusal, WriteOutcome};
use crate::kind::Kind;

/// Name of our writes in `managedFields`.
pub const FIELD_MANAGER: &str = "katmai";

/// One HTTP request without host and credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: &'static str,
    /// Path and query.
    pub target: String,
    /// Empty where there is no body.
    pub content_type: &'static str,
    /// JSON, or empty.
    pub body: Vec<u8>,
}

/// Lists one kind in all namespaces. `limit` 0 means no paging.
pub fn list(kind: Kind, limit: u32, continue_token: &str) -> Call {
    let mut target = format!("{}?limit={limit}", kind.path("", ""));
    if !continue_token.is_empty() {
        target.push_str("&continue=");
        target.push_str(&query_escape(continue_token));
    }
    Call {
        method: "GET",
        target,
        content_type: "",
        body: Vec::new(),
    }
}

/// Watches one kind in all namespaces from just after `revision`, with bookmarks.
pub fn watch(kind: Kind, revision: u64, timeout_seconds: u32) -> Call {
    Call {
        method: "GET",
        target: format!(
            "{}?watch=true&allowWatchBookmarks=true&resourceVersion={revision}&timeoutSeconds={timeout_seconds}",
            kind.path("", "")
        ),
        content_type: "",
        body: Vec::new(),
    }
}

/// Reads one object.
pub fn get(kind: Kind, namespace: &str, name: &str) -> Call {
    Call {
        method: "GET",
        target: kind.path(namespace, name),
        content_type: "",
        body: Vec::new(),
    }
}

/// The request that performs an intent. `CreateSecret` must have had its key filled in before:
/// it is sent as the plain create of its body.
pub fn write(intent: &Intent) -> Call {
    let key = &intent.target;
    let object = key.kind.path(&key.namespace, &key.name);
    match &intent.action {
        Action::Create { body } | Action::CreateSecret { body, .. } => Call {
            method: "POST",
            target: format!(
                "{}?fieldManager={FIELD_MANAGER}",
                key.kind.path(&key.namespace, "")
            ),
            content_type: "application/json",
            body: bytes(body),
        },
        Action::Patch {
            uid,
            resource_version,
            part,
            patch,
        } => {
            let sub = match part {
                Part::Whole => "",
                Part::Status => "/status",
                Part::Finalize => "/finalize",
            };
            let mut patch = patch.clone();
            let meta = &mut patch["metadata"];
            meta["uid"] = json!(uid);
            meta["resourceVersion"] = json!(resource_version);
            Call {
                method: "PATCH",
                target: format!("{object}{sub}?fieldManager={FIELD_MANAGER}"),
                content_type: "application/merge-patch+json",
                body: bytes(&patch),
            }
        }
        Action::Delete {
            uid,
            resource_version,
            grace_seconds,
            propagation,
        } => {
            let mut preconditions = json!({ "uid": uid });
            if let Some(version) = resource_version {
                preconditions["resourceVersion"] = json!(version);
            }
            let mut options = json!({
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": preconditions,
                "propagationPolicy": match propagation {
                    Propagation::Background => "Background",
                    Propagation::Foreground => "Foreground",
                    Propagation::Orphan => "Orphan",
                },
            });
            if let Some(grace) = grace_seconds {
                options["gracePeriodSeconds"] = json!(grace);
            }
            Call {
                method: "DELETE",
                target: object,
                content_type: "application/json",
                body: bytes(&options),
            }
        }
        Action::Bind {
            uid,
            node,
            annotations,
        } => {
            let mut metadata = json!({ "name": key.name, "namespace": key.namespace, "uid": uid });
            if !annotations.is_empty() {
                metadata["annotations"] = json!(annotations);
            }
            Call {
                method: "POST",
                target: format!("{object}/binding?fieldManager={FIELD_MANAGER}"),
                content_type: "application/json",
                body: bytes(&json!({
                    "apiVersion": "v1",
                    "kind": "Binding",
                    "metadata": metadata,
                    "target": { "apiVersion": "v1", "kind": "Node", "name": node },
                })),
            }
        }
    }
}

/// What a status code and body of a write's answer mean.
pub fn outcome(code: u16, retry_after_seconds: Option<u32>, body: &[u8]) -> WriteOutcome {
    if (200..300).contains(&code) {
        let answer: Answer = serde_json::from_slice(body).unwrap_or_default();
        return WriteOutcome::Done {
            revision: answer.metadata.resource_version.parse().unwrap_or(0),
            uid: answer.metadata.uid,
        };
    }
    WriteOutcome::Refused(refusal(code, retry_after_seconds, body))
}

/// The read that tells what a refused create came upon, if its refusal leaves that open: an object of
/// its name. Names are deterministic, so that this may be its own child, made before.
pub fn read_of_existing(intent: &Intent, outcome: &WriteOutcome) -> Option<Call> {
    let (
        WriteOutcome::Refused(refusal),
        Action::Create { body } | Action::CreateSecret { body, .. },
    ) = (outcome, &intent.action)
    else {
        return None;
    };
    let is_open = &*refusal.reason == "AlreadyExists" && controller_uid(body).is_some();
    let key = &intent.target;
    is_open.then(|| get(key.kind, &key.namespace, &key.name))
}

/// What the answer to [`read_of_existing`] makes of the create: it is done if the object has the
/// controller that the create names. `None` where the refusal stands.
pub fn outcome_of_existing(intent: &Intent, code: u16, body: &[u8]) -> Option<WriteOutcome> {
    let (Action::Create { body: wanted } | Action::CreateSecret { body: wanted, .. }) =
        &intent.action
    else {
        return None;
    };
    let found: Value = serde_json::from_slice(body).ok()?;
    let is_own = code == 200 && controller_uid(&found)? == controller_uid(wanted)?;
    is_own.then(|| outcome(code, None, body))
}

/// Reads a `metav1.Status`; where the body is none, the code speaks.
pub fn refusal(code: u16, retry_after_seconds: Option<u32>, body: &[u8]) -> Refusal {
    let status: Status = serde_json::from_slice(body).unwrap_or_default();
    Refusal {
        code,
        reason: status.reason,
        message: if status.message.is_empty() {
            format!("the server answered {code}").into()
        } else {
            status.message
        },
        retry_after_seconds,
    }
}

/// One page of a list.
#[derive(Debug)]
pub struct Page {
    /// The objects as they came, each without its own `apiVersion` and `kind` at times.
    pub items: Vec<Box<RawValue>>,
    /// The list's resourceVersion.
    pub revision: u64,
    /// Empty on the last page.
    pub continue_token: String,
}

/// Reads a list's body.
pub fn page(body: &[u8]) -> Result<Page, serde_json::Error> {
    let list: List = serde_json::from_slice(body)?;
    Ok(Page {
        items: list.items.unwrap_or_default(),
        revision: list.metadata.resource_version.parse().unwrap_or(0),
        continue_token: list.metadata.continue_token,
    })
}

/// One line of a watch stream.
#[derive(Debug)]
pub enum WatchLine {
    /// The object is there now (added or modified).
    Applied(Box<RawValue>),
    /// The object has gone; this is its last state.
    Deleted(Box<RawValue>),
    /// Nothing older than this revision will come.
    Bookmark(u64),
    /// The stream ends: 410 asks for a new list.
    Failed(Refusal),
}

/// Reads one line of a watch stream.
pub fn watch_line(line: &[u8]) -> Result<WatchLine, serde_json::Error> {
    #[derive(Deserialize)]
    struct Event {
        #[serde(rename = "type")]
        kind: Box<str>,
        object: Box<RawValue>,
    }
    let event: Event = serde_json::from_slice(line)?;
    Ok(match &*event.kind {
        "ADDED" | "MODIFIED" => WatchLine::Applied(event.object),
        "DELETED" => WatchLine::Deleted(event.object),
        "BOOKMARK" => {
            let answer: Answer = serde_json::from_str(event.object.get())?;
            WatchLine::Bookmark(answer.metadata.resource_version.parse().unwrap_or(0))
        }
        _ => {
            let status: Status = serde_json::from_str(event.object.get())?;
            WatchLine::Failed(refusal(status.code, None, event.object.get().as_bytes()))
        }
    })
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    metadata: AnswerMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AnswerMeta {
    resource_version: String,
    uid: Box<str>,
    #[serde(rename = "continue")]
    continue_token: String,
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    metadata: AnswerMeta,
    items: Option<Vec<Box<RawValue>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    code: u16,
    reason: Box<str>,
    message: Box<str>,
}

/// The uid of the owner that manages an object, if it has one.
pub fn controller_uid(object: &Value) -> Option<&str> {
    object["metadata"]["ownerReferences"]
        .as_array()?
        .iter()
        .find(|owner| owner["controller"] == true)?["uid"]
        .as_str()
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// Percent-encodes everything but unreserved characters.
pub fn query_escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(byte as char);
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(owner: Option<&str>) -> Intent {
        let owners = owner.map(|uid| json!([{ "uid": uid, "controller": true }]));
        Intent {
            target: crate::intent::ObjectKey::new(Kind::Pod, "a", "p"),
            action: Action::Create {
                body: json!({ "metadata": { "name": "p", "ownerReferences": owners } }),
            },
        }
    }

    fn refused(reason: &str) -> WriteOutcome {
        let status = json!({ "reason": reason, "message": "no" }).to_string();
        outcome(409, None, status.as_bytes())
    }

    #[test]
    fn a_kind_that_is_not_served_says_nothing_of_an_object() {
        let status = json!({ "kind": "Status", "reason": "NotFound", "code": 404 }).to_string();
        assert!(refusal(404, None, status.as_bytes()).is_absence());
        assert!(!refusal(404, None, b"404 page not found\n").is_absence());
        assert!(!refusal(403, None, status.as_bytes()).is_absence());
    }

    #[test]
    fn a_create_that_meets_its_own_child_is_done_and_another_owners_refuses() {
        let intent = create(Some("u1"));
        let read = read_of_existing(&intent, &refused("AlreadyExists")).expect("a read");
        assert_eq!(read.target, "/api/v1/namespaces/a/pods/p");
        let found = |uid: &str| {
            json!({ "metadata": {
                "uid": "p1", "resourceVersion": "7",
                "ownerReferences": [{ "uid": uid, "controller": true }],
            }})
            .to_string()
        };
        assert_eq!(
            outcome_of_existing(&intent, 200, found("u1").as_bytes()),
            Some(WriteOutcome::Done {
                revision: 7,
                uid: "p1".into()
            })
        );
        assert_eq!(
            outcome_of_existing(&intent, 200, found("u2").as_bytes()),
            None
        );
        assert_eq!(outcome_of_existing(&intent, 404, b"{}"), None);
    }

    #[test]
    fn nothing_is_read_where_the_refusal_is_an_answer() {
        assert_eq!(
            read_of_existing(&create(None), &refused("AlreadyExists")),
            None
        );
        assert_eq!(
            read_of_existing(&create(Some("u1")), &refused("Conflict")),
            None
        );
    }
}
