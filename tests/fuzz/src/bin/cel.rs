//! CEL rules of a custom resource: compiled alone, run, and compiled with their definition.
#![no_main]

use katmai_fuzz::send;
use serde_json::json;
use cel::{Rules, Trust};

libfuzzer_sys::fuzz_target!(
    init: {
        // The store refuses an object on which the library panics; only what it lets through counts.
        std::panic::set_hook(Box::new(|_| {}));
    },
    |rule: &str| {
        let schema = json!({"type": "object", "x-kubernetes-validations": [{"rule": rule}], "properties": {
            "n": {"type": "integer"}, "s": {"type": "string", "maxLength": 64},
            "l": {"type": "array", "maxItems": 16, "items": {"type": "string", "maxLength": 16}},
        }});
        // A refused rule is an answer, too. One that was accepted before is run whatever it costs.
        drop(Rules::compile(&schema, "spec", Trust::Doubted));
        if let Ok(Some(rules)) = Rules::compile(&schema, "spec", Trust::Accepted) {
            let old = json!({"n": 1, "s": "a", "l": ["a", "b"]});
            let new = json!({"n": -7, "s": "l\u{ef}ne 2", "l": ["b", "a", "2024-01-01T00:00:00Z"]});
            rules.complaints(&old, None);
            rules.complaints(&new, Some(&old));
        }
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.fuzz.dev"},
            "spec": {"group": "fuzz.dev", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
        });
        send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", "application/json",
            definition.to_string().as_bytes());
    }
);
