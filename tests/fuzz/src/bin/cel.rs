//! CEL rules of a custom resource: compiled alone and with their definition.
#![no_main]

use katmai_fuzz::send;
use serde_json::json;
use store::cel::{Rules, Trust};

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
        // A refused rule is an answer, too.
        drop(Rules::compile(&schema, "spec", Trust::Doubted));
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
