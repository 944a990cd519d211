//! Roles and their bindings.

use api::names;
use serde_json::Value;

use super::meta;
use super::pod::affinity::label_selector;
use super::spot::{Faults, Spot};

/// The group of roles.
const GROUP: &str = "rbac.authorization.k8s.io";

/// Checks a role of either scope.
pub(super) fn role(role: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(role, names::check_path_segment, faults);
    let is_namespaced = role.at("kind").text() == "Role";
    for rule in role.at("rules").items() {
        check_rule(&rule, is_namespaced, faults);
    }
    let aggregation = role.at("aggregationRule");
    if aggregation.is_there() {
        let selectors = aggregation.at("clusterRoleSelectors");
        if selectors.is_empty() {
            let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
            faults.required(&selectors, detail);
        }
        for selector in selectors.items() {
            label_selector(&selector, faults);
        }
    }
}

pub(super) fn role_update(changed: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    role(changed, faults);
    meta::update(changed, old, faults);
}

fn check_rule(rule: &Spot<'_, '_>, is_namespaced: bool, faults: &mut Faults) {
    if rule.at("verbs").is_empty() {
        faults.required(&rule.at("verbs"), "verbs must contain at least one value");
    }
    let urls = rule.at("nonResourceURLs");
    let has_resources = ["apiGroups", "resources", "resourceNames"]
        .iter()
        .any(|field| !rule.at(field).is_empty());
    if !urls.is_empty() {
        if is_namespaced {
            faults.invalid(&urls, "namespaced rules cannot apply to non-resource URLs");
        }
        if has_resources {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            faults.invalid(&urls, detail);
        }
        return;
    }
    if rule.at("apiGroups").is_empty() {
        let detail = "resource rules must supply at least one api group";
        faults.required(&rule.at("apiGroups"), detail);
    }
    if rule.at("resources").is_empty() {
        let detail = "resource rules must supply at least one resource";
        faults.required(&rule.at("resources"), detail);
    }
}

/// Checks a binding of either scope.
pub(super) fn binding(binding: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(binding, names::check_path_segment, faults);
    let is_namespaced = binding.at("kind").text() == "RoleBinding";
    let role = binding.at("roleRef");
    let group = role.at("apiGroup");
    if group.text() != GROUP {
        faults.not_supported(&group, &[GROUP]);
    }
    let kinds: &[&str] = match is_namespaced {
        true => &["Role", "ClusterRole"],
        false => &["ClusterRole"],
    };
    if !kinds.contains(&role.at("kind").text()) {
        faults.not_supported(&role.at("kind"), kinds);
    }
    faults.need_name(&role.at("name"), names::check_path_segment);
    for subject in binding.at("subjects").items() {
        check_subject(&subject, is_namespaced, faults);
    }
}

fn check_subject(subject: &Spot<'_, '_>, is_namespaced: bool, faults: &mut Faults) {
    let (name, group) = (subject.at("name"), subject.at("apiGroup"));
    faults.need(&name);
    match subject.at("kind").text() {
        "ServiceAccount" => {
            faults.name_if(&name, names::check_subdomain);
            if !group.is_empty() {
                faults.not_supported(&group, &[""]);
            }
            if !is_namespaced && subject.at("namespace").is_empty() {
                faults.required(&subject.at("namespace"), "");
            }
        }
        "User" | "Group" => {
            if group.text() != GROUP {
                faults.not_supported(&group, &[GROUP]);
            }
        }
        _ => faults.not_supported(&subject.at("kind"), &["ServiceAccount", "User", "Group"]),
    }
}

/// A binding keeps its role: who may make bindings of one role could change another's otherwise.
pub(super) fn binding_update(changed: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    binding(changed, faults);
    meta::update(changed, old, faults);
    let role = changed.at("roleRef");
    if *role.value != old["roleRef"] {
        let shown = serde_json::json!({
            "APIGroup": role.value["apiGroup"],
            "Kind": role.value["kind"],
            "Name": role.value["name"],
        });
        faults.invalid_as(&role, shown, "cannot change roleRef");
    }
}
