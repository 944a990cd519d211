//! LimitRanges: nobody decides on them, so that they are none of our kinds, but the API goes by them: a pod
//! that is made asks for what they say where it says nothing, and is refused where it asks for too much.

use serde_json::Value;

use super::said;

/// The kind.
pub(super) const KIND: &str = "LimitRange";
/// How the store calls what it keeps of them.
pub(super) const RESOURCE: &str = "/limitranges";

pub(super) fn is_one(object: &Value) -> bool {
    said(object, "apiVersion") == "v1" && said(object, "kind") == KIND
}

/// Where an API serves one.
pub(super) fn path(namespace: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}{RESOURCE}/{name}")
}
