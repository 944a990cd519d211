//! The rules of the webhooks, each about whatever object: a refusal is of bounded length, and what a rule
//! filled in stays as it is when it is asked again.
#![no_main]

use api::admission::{Facts, Operation, Review};
use api::kind::Kind;
use katmai_fuzz::choose;
use review::{MESSAGE_BYTES_MAX, Settings, WEBHOOKS};
use serde_json::Value;

/// Queues of which each is the next one's parent, the last that of the first.
struct Ring;

impl Facts for Ring {
    fn object(&self, kind: Kind, namespace: &str, name: &str) -> Option<Value> {
        let all = self.list(kind, namespace);
        all.into_iter().find(|it| it["metadata"]["name"] == name)
    }

    fn list(&self, kind: Kind, _: &str) -> Vec<Value> {
        let queue = |name: &str, parent: &str| {
            serde_json::json!({
                "metadata": { "name": name }, "spec": { "parent": parent },
                "status": { "state": "Open", "allocated": { "cpu": "1" } },
            })
        };
        match kind {
            Kind::Queue => vec![queue("root", ""), queue("default", "root"), queue("a", "b"), queue("b", "a")],
            _ => Vec::new(),
        }
    }

    fn template_faults(&self, _: &Value) -> Vec<String> {
        Vec::new()
    }
}

const OPERATIONS: [Operation; 3] = [Operation::Create, Operation::Update, Operation::Delete];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((webhook, bytes)) = choose(WEBHOOKS, bytes) else { return };
    let Some((operation, bytes)) = choose(&OPERATIONS, bytes) else { return };
    let mut texts = bytes.splitn(2, |byte| *byte == 0);
    let mut read = || serde_json::from_slice::<Value>(texts.next()?).ok();
    let (Some(object), old) = (read(), read()) else { return };
    let settings = Settings::default();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let review = Review {
        operation: *operation,
        kind: webhook.kind,
        subresource: "",
        namespace: "default",
        name,
        object: (*operation != Operation::Delete).then_some(&object),
        old: (*operation != Operation::Create).then_some(old.as_ref().unwrap_or(&object)),
        user: "somebody",
        dry_run: true,
    };
    match webhook.judge(&settings, &review, &Ring) {
        Err(denial) => assert!(denial.message.len() <= MESSAGE_BYTES_MAX + 100, "{}", denial.message.len()),
        Ok(passed) => {
            let Some(filled) = passed.object else { return };
            let again = Review { object: Some(&filled), ..review };
            let again = webhook.judge(&settings, &again, &Ring).expect("what was filled in passes");
            assert!(again.object.is_none_or(|it| it == filled), "it is filled in twice");
        }
    }
});
