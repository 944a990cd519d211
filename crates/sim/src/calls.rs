//! Calls of somebody who is neither a driver nor a node, and names no version.

use api::call::Call;
use serde_json::Value;

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
