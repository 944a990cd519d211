//! Label and field selectors, JSONPath, and lists that are asked for by them.
#![no_main]

use api::selector::{FieldSelector, LabelQuery};
use katmai_fuzz::send;
use store::jsonpath::JsonPath;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(query) = LabelQuery::parse(text) {
        query.matches(|key| (key.len() > 2).then_some("v"));
    }
    if let Ok(selector) = FieldSelector::parse(text) {
        selector.matches(|field| field.to_owned().into());
    }
    if let Ok(path) = JsonPath::parse(text) {
        path.find(&serde_json::json!({"a": [{"b": 1}, {"b": [2, 3]}], "spec": {"x": "y"}}));
    }
    let encoded: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
    send("GET", "/api/v1/namespaces/default/pods", &format!("labelSelector={encoded}"), "", b"");
    send("GET", "/api/v1/pods", &format!("fieldSelector={encoded}"), "", b"");
});
