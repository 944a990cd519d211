//! Calls of somebody who is neither a driver nor a node, and names no version.

use api::call::{self, Call};
use api::intent::{DrawnKey, Intent, KeyMaterial};
use serde_json::Value;

/// What performs an intent. In the place of a key that it wants is a word that follows from the
/// Secret's name: stories are the same each time.
pub(crate) fn write(intent: &Intent) -> Call {
    let imitation = |key| -> Result<DrawnKey, std::convert::Infallible> {
        let (namespace, name) = (&intent.target.namespace, &intent.target.name);
        let pair = |what: &str| DrawnKey {
            private: format!("imitation of a private {what}: {key:?} {namespace}/{name}\n"),
            public: format!("imitation of a public {what}: {key:?} {namespace}/{name}\n"),
            host: None,
        };
        let host = (key == KeyMaterial::SshEd25519AndHost).then(|| Box::new(pair("host key")));
        Ok(DrawnKey {
            host,
            ..pair("key")
        })
    };
    let Ok(intent) = intent.drawn(imitation);
    call::write(&intent)
}

/// Reads an object.
pub(crate) fn get(target: &str) -> Call {
    Call {
        method: "GET",
        target: target.to_owned(),
        content_type: "",
        body: Vec::new(),
    }
}

/// Makes an object.
pub(crate) fn post(target: &str, body: &Value) -> Call {
    Call {
        method: "POST",
        target: target.to_owned(),
        content_type: "application/json",
        body: body.to_string().into_bytes(),
    }
}

/// Changes some fields.
pub(crate) fn merge(target: &str, patch: &Value) -> Call {
    Call {
        method: "PATCH",
        target: target.to_owned(),
        content_type: "application/merge-patch+json",
        body: patch.to_string().into_bytes(),
    }
}

/// Deletes an object as its kind is deleted by default.
pub(crate) fn delete(target: String) -> Call {
    Call {
        method: "DELETE",
        target,
        content_type: "",
        body: Vec::new(),
    }
}
