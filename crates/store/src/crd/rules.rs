//! Checks of the rules that a definition's schema has, before they are compiled.

use serde_json::Value;

use crate::field::{FieldError, child, index};

/// What a rule may name as its reason.
const REASONS: &[&str] = &[
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

pub(super) fn check_rules(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let has_newline = |text: &str| text.contains(['\n', '\r']);
    let rows = schema["x-kubernetes-validations"].as_array();
    for (position, rule) in rows.into_iter().flatten().enumerate() {
        let at = index(&child(at, "x-kubernetes-validations"), position);
        let given = |name: &str| rule[name].as_str().unwrap_or_default();
        let message_at = child(&at, "message");
        let message = given("message");
        if given("rule").trim().is_empty() {
            let detail = "rule is not specified";
            errors.push(FieldError::required(&child(&at, "rule"), detail));
        } else if !message.is_empty() && message.trim().is_empty() {
            let detail = "must be non-empty if specified";
            errors.push(FieldError::invalid(&message_at, message, detail));
        } else if has_newline(message.trim()) {
            let detail = "must not contain line breaks";
            errors.push(FieldError::invalid(&message_at, message, detail));
        } else if has_newline(given("rule").trim()) && message.trim().is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(&message_at, detail));
        }
        let expression = given("messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(
                &child(&at, "messageExpression"),
                detail,
            ));
        }
        let reason = given("reason");
        if !rule["reason"].is_null() && !REASONS.contains(&reason) {
            let at = child(&at, "reason");
            errors.push(FieldError::not_supported(&at, reason, REASONS));
        }
        let (path, path_at) = (given("fieldPath"), child(&at, "fieldPath"));
        if path.is_empty() {
            continue;
        }
        let mut wrong = |detail: &str| errors.push(FieldError::invalid(&path_at, path, detail));
        if path.trim().is_empty() {
            wrong("must be non-empty if specified");
        }
        if has_newline(path) {
            wrong("must not contain line breaks");
        }
        if cel::field_path(schema, path).is_none() {
            wrong("must be a valid path");
        }
    }
}
