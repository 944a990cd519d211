//! Writes that have to wait long for their turn.

use api::intent::{Action, Intent};
use serde_json::Value;

/// A wanted write. Where it is packed its body is held as JSON text, which takes a fifth of the memory, and
/// is read again when its turn comes.
#[derive(Debug)]
pub(super) struct Packed {
    intent: Intent,
    /// What stands for `null` in the intent.
    body: Option<Box<str>>,
}

impl Packed {
    /// As it is, for one whose turn is near.
    pub(super) fn loosely(intent: Intent) -> Packed {
        Packed { intent, body: None }
    }

    /// For one that waits among many.
    pub(super) fn tightly(mut intent: Intent) -> Packed {
        // A fraction may not be read as the one that was written.
        let body = body(&mut intent).filter(|body| !has_fractions(body));
        let body = body.map(|body| std::mem::take(body).to_string().into());
        Packed { intent, body }
    }

    /// The write as it was.
    pub(super) fn unpacked(self) -> Intent {
        let Packed {
            mut intent,
            body: text,
        } = self;
        if let (Some(body), Some(text)) = (body(&mut intent), text) {
            *body = serde_json::from_str(&text).expect("a value that was written is read");
        }
        intent
    }
}

fn body(intent: &mut Intent) -> Option<&mut Value> {
    match &mut intent.action {
        Action::Create { body } | Action::CreateSecret { body, .. } => Some(body),
        Action::Patch { patch, .. } => Some(patch),
        Action::Delete { .. } | Action::Bind { .. } => None,
    }
}

fn has_fractions(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_fractions),
        Value::Object(fields) => fields.values().any(has_fractions),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use api::intent::{ObjectKey, Part};
    use api::kind::Kind;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_packed_comes_out_as_it_was() {
        let target = ObjectKey::new(Kind::Pod, "ns", "a");
        let patched = |number: Value| Action::Patch {
            uid: "u".into(),
            resource_version: "7".into(),
            part: Part::Status,
            patch: json!({ "status": { "note": "\u{1}é\"", "n": [1, -2, number, null] } }),
        };
        let bound = Action::Bind {
            uid: "u".into(),
            node: "n".into(),
            annotations: api::core::TextMap::new(),
        };
        for action in [patched(json!(u64::MAX)), patched(json!(0.1 + 0.2)), bound] {
            let target = target.clone();
            let intent = Intent { target, action };
            assert_eq!(Packed::tightly(intent.clone()).unpacked(), intent);
            assert_eq!(Packed::loosely(intent.clone()).unpacked(), intent);
        }
    }
}
