//! An `AdmissionReview` (`admission.k8s.io/v1`) in, one with an answer out.

use api::admission::{Facts, Operation, Review};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use review::{Settings, Webhook};
use serde_json::{Value, json};

const VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// Answers a review by one webhook. A request that is not about what it judges passes: a wrong
/// registration stops nobody.
///
/// # Errors
/// The body is no review.
pub(super) fn answer(
    webhook: &Webhook,
    settings: &Settings,
    body: &[u8],
    facts: &dyn Facts,
) -> Result<Vec<u8>, String> {
    answered(body, |request| judged(webhook, settings, request, facts))
}

/// Lets a review pass that nobody is to judge here.
///
/// # Errors
/// The body is no review.
pub(super) fn pass(webhook: &Webhook, body: &[u8]) -> Result<Vec<u8>, String> {
    let text = format!("nobody judges at {}, which is registered", webhook.path);
    answered(body, |_| json!({ "allowed": true, "warnings": [text] }))
}

fn answered(body: &[u8], judge: impl FnOnce(&Value) -> Value) -> Result<Vec<u8>, String> {
    let asked: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    if asked["apiVersion"] != VERSION || asked["kind"] != KIND {
        return Err(format!("expected an {KIND} of {VERSION}"));
    }
    let request = &asked["request"];
    let Some(uid) = request["uid"].as_str() else {
        return Err("the review has no request".to_owned());
    };
    let mut response = judge(request);
    response["uid"] = uid.into();
    let review = json!({ "apiVersion": VERSION, "kind": KIND, "response": response });
    serde_json::to_vec(&review).map_err(|error| error.to_string())
}

fn judged(webhook: &Webhook, settings: &Settings, request: &Value, facts: &dyn Facts) -> Value {
    let row = webhook.kind.row();
    let asked = |part: &str| request["resource"][part].as_str().unwrap_or_default();
    if asked("group") != row.group || asked("resource") != row.plural {
        let text = format!("{} does not judge these objects", webhook.path);
        return json!({ "allowed": true, "warnings": [text] });
    }
    let Some(operation) = operation(&request["operation"]) else {
        return json!({ "allowed": true });
    };
    let text = |field: &str| request[field].as_str().unwrap_or_default();
    let some = |field: &str| Some(&request[field]).filter(|value| !value.is_null());
    let named = some("object").or(some("oldObject")).unwrap_or(&Value::Null);
    let name = match text("name") {
        // A name that is yet to be generated.
        "" => named["metadata"]["name"].as_str().unwrap_or_default(),
        name => name,
    };
    let review = Review {
        operation,
        kind: webhook.kind,
        subresource: text("subResource"),
        namespace: text("namespace"),
        name,
        object: some("object"),
        old: some("oldObject"),
        user: request["userInfo"]["username"].as_str().unwrap_or_default(),
        dry_run: request["dryRun"] == true,
    };
    match webhook.judge(settings, &review, facts) {
        Err(denial) => json!({ "allowed": false, "status": { "message": denial.message } }),
        Ok(passed) => {
            let mut response = json!({ "allowed": true });
            if !passed.warnings.is_empty() {
                response["warnings"] = passed.warnings.into();
            }
            if let (Some(new), Some(old)) = (&passed.object, review.object) {
                let patch = Value::from(review::patch(old, new)).to_string();
                response["patch"] = STANDARD.encode(patch).into();
                response["patchType"] = "JSONPatch".into();
            }
            response
        }
    }
}

/// None for what nothing is judged of (`CONNECT`).
fn operation(word: &Value) -> Option<Operation> {
    match word.as_str()? {
        "CREATE" => Some(Operation::Create),
        "UPDATE" => Some(Operation::Update),
        "DELETE" => Some(Operation::Delete),
        _ => None,
    }
}
