//! What a webhook's answer means: allowed, with a patch and warnings, denied, or no answer at all.

use base64::Engine;
use serde_json::{Value, json};

use super::Hook;
use crate::status::Refused;
use crate::talk::Answer;

/// A webhook that answered and did not object.
#[derive(Debug, Default)]
pub(super) struct Allowed {
    /// RFC 6902; `None` if nothing is to change.
    pub(super) patch: Option<Value>,
    pub(super) warnings: Vec<String>,
    /// `webhook/key` and text, for the audit log.
    pub(super) notes: Vec<(String, String)>,
}

/// Why a webhook did not let a request pass.
#[derive(Debug)]
pub(super) enum Stop {
    /// It said no.
    Denied(Refused),
    /// It could not be asked, or made no sense: its failure policy decides.
    Failed(String),
}

/// Whether the webhook may change objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Mutating,
    Validating,
}

/// Reads an answer.
pub(super) fn read(hook: &Hook, sort: Sort, uid: &str, answer: &Answer) -> Result<Allowed, Stop> {
    let body = match answer {
        Ok(body) => body,
        Err(why) => return Err(Stop::Failed(format!("failed to call webhook: {why}"))),
    };
    // Upstream takes what does not begin as an object for YAML.
    let is_json = body.trim_ascii_start().starts_with(b"{");
    let read = if is_json {
        crate::json::read
    } else {
        crate::json::read_yaml
    };
    let review = read(body).map_err(|why| {
        let why = format!("couldn't get version/kind; json parse error: {why}");
        Stop::Failed(format!("failed to call webhook: {why}"))
    })?;
    let review = review.value;
    let unreadable = |why: String| Stop::Failed(format!("failed to call webhook: {why}"));
    if !review.is_object() {
        return Err(unreadable(crate::json::not_an_object(&review)));
    }
    let encoded = review["response"]["patch"].as_str().unwrap_or_default();
    if let Some(why) = crate::schema::base64_error(encoded) {
        return Err(unreadable(why));
    }
    let invalid = |why: String| Stop::Failed(format!("received invalid webhook response: {why}"));
    let response = &review["response"];
    if response.is_null() {
        return Err(invalid("webhook response was absent".to_owned()));
    }
    let is_v1 = hook.review_version == Some("v1");
    if is_v1 {
        check_identity(&review, uid).map_err(invalid)?;
    }
    let patch = patch_of(response, sort, is_v1).map_err(invalid)?;
    let allowed = Allowed {
        warnings: texts(&response["warnings"]),
        notes: response["auditAnnotations"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| {
                let text = value.as_str().unwrap_or_default().to_owned();
                (format!("{}/{key}", hook.name), text)
            })
            .collect(),
        patch: None,
    };
    if response["allowed"] != true {
        let status = denial(&hook.name, &response["status"]);
        return Err(Stop::Denied(Refused::verbatim(status, allowed.warnings)));
    }
    let Some(patch) = patch else {
        return Ok(allowed);
    };
    let patch = crate::json::read(&patch).map_err(|why| {
        Stop::Failed(format!(
            "received undecodable patch in webhook response: {why}"
        ))
    })?;
    let patch = patch.value;
    let is_empty = patch.as_array().is_some_and(Vec::is_empty);
    Ok(Allowed {
        patch: (!is_empty).then_some(patch),
        ..allowed
    })
}

fn check_identity(review: &Value, uid: &str) -> Result<(), String> {
    let told = review["response"]["uid"].as_str().unwrap_or_default();
    if told != uid {
        return Err(format!("expected response.uid={uid:?}, got {told:?}"));
    }
    let version = review["apiVersion"].as_str().unwrap_or_default();
    let kind = review["kind"].as_str().unwrap_or_default();
    if version != "admission.k8s.io/v1" || kind != "AdmissionReview" {
        let shown = if version.is_empty() { "/" } else { version };
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {shown}, Kind={kind}"
        ));
    }
    Ok(())
}

fn patch_of(response: &Value, sort: Sort, is_v1: bool) -> Result<Option<Vec<u8>>, String> {
    let encoded = response["patch"].as_str().unwrap_or_default();
    let patch_type = response["patchType"].as_str();
    let decode = || {
        base64::engine::general_purpose::STANDARD
            .decode(encoded)
            .map(Some)
            .map_err(|cause| cause.to_string())
    };
    if sort == Sort::Validating {
        if !is_v1 {
            return Ok(None);
        }
        return match (encoded.is_empty(), patch_type) {
            (false, _) => Err("validating webhook may not return response.patch".to_owned()),
            (true, Some(_)) => {
                Err("validating webhook may not return response.patchType".to_owned())
            }
            (true, None) => Ok(None),
        };
    }
    match (encoded.is_empty(), patch_type) {
        (true, None) => Ok(None),
        (false, _) if !is_v1 => decode(),
        (true, Some(_)) if !is_v1 => Ok(None),
        (false, None) => {
            Err("webhook returned response.patch but not response.patchType".to_owned())
        }
        (true, Some(_)) => {
            Err("webhook returned response.patchType but not response.patch".to_owned())
        }
        (false, Some("JSONPatch")) => decode(),
        (false, Some("")) => Err("webhook returned invalid response.patchType of \"\"".to_owned()),
        (false, Some(other)) => Err(format!("unsupported patch type {other:?}")),
    }
}

/// The Status of a refusal: what the webhook gave, in the words that say who refused.
fn denial(name: &str, given: &Value) -> Value {
    let mut status = match given {
        Value::Object(_) => given.clone(),
        _ => json!({}),
    };
    let denied = format!("admission webhook {name:?} denied the request");
    let part = |key: &str| given[key].as_str().unwrap_or_default();
    status["message"] = json!(match (part("message"), part("reason")) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    });
    let code = given["code"]
        .as_u64()
        .filter(|code| (400..600).contains(code));
    status["code"] = json!(code.unwrap_or(400));
    status["status"] = json!("Failure");
    status["kind"] = json!("Status");
    status["apiVersion"] = json!("v1");
    if !status["metadata"].is_object() {
        status["metadata"] = json!({});
    }
    status
}

fn texts(list: &Value) -> Vec<String> {
    let all = list.as_array().into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}
