//! Schema documents of custom resources, alone and as a whole definition.
#![no_main]

use katmai_fuzz::send;
use serde_json::{Value, json};

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    send("POST", PATH, "", "application/json", bytes);
    let Ok(schema) = serde_json::from_slice::<Value>(bytes) else { return };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.fuzz.dev"},
        "spec": {"group": "fuzz.dev", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    });
    send("POST", PATH, "", "application/json", definition.to_string().as_bytes());
});
