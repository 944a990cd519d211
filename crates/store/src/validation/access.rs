//! Roles and their bindings.

use serde_json::Value;

use super::{list, one_of, text};
use crate::field::{self, FieldError};

pub(super) fn role(role: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (position, rule) in list(&role["rules"]).iter().enumerate() {
        let at = field::index("rules", position);
        let mut need = |name: &str, detail: &str| {
            errors.push(FieldError::required(&field::child(&at, name), detail));
        };
        if list(&rule["verbs"]).is_empty() {
            need("verbs", "verbs must contain at least one value");
        }
        if !list(&rule["nonResourceURLs"]).is_empty() {
            continue;
        }
        if list(&rule["apiGroups"]).is_empty() {
            need(
                "apiGroups",
                "resource rules must supply at least one api group",
            );
        }
        if list(&rule["resources"]).is_empty() {
            need(
                "resources",
                "resource rules must supply at least one resource",
            );
        }
    }
    errors
}

pub(super) fn binding(binding: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let role = &binding["roleRef"];
    let kinds: &[&str] = match text(&binding["kind"]) {
        "RoleBinding" => &["Role", "ClusterRole"],
        _ => &["ClusterRole"],
    };
    one_of(&role["kind"], "roleRef.kind", kinds, &mut errors);
    if text(&role["name"]).is_empty() {
        errors.push(FieldError::required("roleRef.name", ""));
    }
    for (position, subject) in list(&binding["subjects"]).iter().enumerate() {
        let at = field::index("subjects", position);
        if text(&subject["name"]).is_empty() {
            errors.push(FieldError::required(&field::child(&at, "name"), ""));
        }
        let kinds = ["ServiceAccount", "User", "Group"];
        let kind = &subject["kind"];
        if !kinds.contains(&text(kind)) {
            let kind_at = field::child(&at, "kind");
            errors.push(FieldError::not_supported(&kind_at, kind.clone(), &kinds));
        }
        if *kind == "ServiceAccount" && text(&subject["namespace"]).is_empty() {
            errors.push(FieldError::required(&field::child(&at, "namespace"), ""));
        }
    }
    errors
}

/// A binding keeps its role: who may make bindings of one role could change another's otherwise.
pub(super) fn binding_update(binding: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    if binding["roleRef"] != old["roleRef"] {
        let shown = binding["roleRef"].clone();
        errors.push(FieldError::invalid(
            "roleRef",
            shown,
            "cannot change roleRef",
        ));
    }
}
