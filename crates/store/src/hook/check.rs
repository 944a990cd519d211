//! Defaults and checks of the two webhook configurations, with the real server's texts.

use std::collections::BTreeSet;

use api::names;
use serde_json::{Value, json};

use super::conditions::CONDITIONS_MAX;
use crate::field::{FieldError, child, index};
use cel::{Answer, Scene};

/// Versions of a review that may be asked for.
const REVIEW_VERSIONS: &[&str] = &["v1", "v1beta1"];
const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: &[&str] = &["*", "Cluster", "Namespaced"];
const SIDE_EFFECTS: &[&str] = &["None", "NoneOnDryRun"];
/// What follows every complaint about a URL.
const URL_FORM: &str = "; desired format: https://host[/path]";

/// Fills in the defaults of a configuration.
pub(crate) fn default(kind: &str, object: &mut Value) {
    let hooks = object.get_mut("webhooks").and_then(Value::as_array_mut);
    for hook in hooks.into_iter().flatten() {
        let Some(map) = hook.as_object_mut() else {
            continue;
        };
        let mut put = |key: &str, value: Value| {
            let slot = map.entry(key).or_insert(Value::Null);
            if slot.is_null() {
                *slot = value;
            }
        };
        put("failurePolicy", json!("Fail"));
        put("matchPolicy", json!("Equivalent"));
        put("namespaceSelector", json!({}));
        put("objectSelector", json!({}));
        put("timeoutSeconds", json!(10));
        if kind == "MutatingWebhookConfiguration" {
            put("reinvocationPolicy", json!("Never"));
        }
        let rules = hook.get_mut("rules").and_then(Value::as_array_mut);
        for rule in rules.into_iter().flatten() {
            if rule["scope"].is_null() {
                rule["scope"] = json!("*");
            }
        }
        if hook["clientConfig"]["service"].is_object()
            && hook["clientConfig"]["service"]["port"].is_null()
        {
            hook["clientConfig"]["service"]["port"] = json!(443);
        }
    }
}

/// Checks a configuration, apart from its metadata.
pub(crate) fn validate(kind: &str, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut names = BTreeSet::new();
    let hooks = list(&object["webhooks"]);
    for (position, hook) in hooks.iter().enumerate() {
        let at = index("webhooks", position);
        check_hook(kind, hook, &at, &mut errors);
        check_versions(hook, &child(&at, "admissionReviewVersions"), &mut errors);
        let name = text(&hook["name"]);
        if !name.is_empty() && !names.insert(name) {
            errors.push(FieldError::duplicate(&child(&at, "name"), name));
        }
    }
    errors
}

fn check_hook(kind: &str, hook: &Value, at: &str, errors: &mut Vec<FieldError>) {
    check_name(text(&hook["name"]), &child(at, "name"), errors);
    for (position, rule) in list(&hook["rules"]).iter().enumerate() {
        check_rule(rule, &index(&child(at, "rules"), position), errors);
    }
    one_of(hook, at, "failurePolicy", &["Fail", "Ignore"], errors);
    one_of(hook, at, "matchPolicy", &["Equivalent", "Exact"], errors);
    if hook["sideEffects"].is_null() {
        let detail = format!("must specify one of {}", SIDE_EFFECTS.join(", "));
        errors.push(FieldError::required(&child(at, "sideEffects"), detail));
    }
    one_of(hook, at, "sideEffects", SIDE_EFFECTS, errors);
    if let Some(seconds) = hook["timeoutSeconds"].as_i64()
        && !(1..=30).contains(&seconds)
    {
        let detail = "the timeout value must be between 1 and 30 seconds";
        let at = child(at, "timeoutSeconds");
        errors.push(FieldError::invalid(&at, seconds, detail));
    }
    for key in ["namespaceSelector", "objectSelector"] {
        check_selector(&hook[key], &child(at, key), errors);
    }
    if kind == "MutatingWebhookConfiguration" {
        let known = ["IfNeeded", "Never"];
        one_of(hook, at, "reinvocationPolicy", &known, errors);
    }
    check_client(&hook["clientConfig"], &child(at, "clientConfig"), errors);
    check_conditions(
        &hook["matchConditions"],
        &child(at, "matchConditions"),
        &Scene::WEBHOOK,
        errors,
    );
}

fn check_name(name: &str, at: &str, errors: &mut Vec<FieldError>) {
    if name.is_empty() {
        errors.push(FieldError::required(at, ""));
        return;
    }
    let found = names::check_subdomain(name);
    if !found.is_empty() {
        errors.push(FieldError::invalid(at, name, found.join(",")));
    } else if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::invalid(at, name, detail));
    }
}

/// Checks what a webhook or a policy is asked about.
pub(crate) fn check_rule(rule: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let many = |key: &str, what: &str, errors: &mut Vec<FieldError>| {
        let all = list(&rule[key]);
        let at = child(at, key);
        if all.is_empty() {
            errors.push(FieldError::required(&at, ""));
        }
        if all.len() > 1 && all.iter().any(|one| one == "*") {
            let detail = format!("if '*' is present, must not specify other {what}");
            errors.push(FieldError::invalid(&at, rule[key].clone(), detail));
        }
    };
    many("operations", "operations", errors);
    for (position, operation) in list(&rule["operations"]).iter().enumerate() {
        if !OPERATIONS.contains(&text(operation)) {
            let at = index(&child(at, "operations"), position);
            errors.push(FieldError::not_supported(&at, text(operation), OPERATIONS));
        }
    }
    many("apiGroups", "API groups", errors);
    many("apiVersions", "API versions", errors);
    for (position, version) in list(&rule["apiVersions"]).iter().enumerate() {
        if text(version).is_empty() {
            let at = index(&child(at, "apiVersions"), position);
            errors.push(FieldError::required(&at, ""));
        }
    }
    check_resources(&rule["resources"], &child(at, "resources"), errors);
    if !rule["scope"].is_null() && !SCOPES.contains(&text(&rule["scope"])) {
        let scope = text(&rule["scope"]);
        errors.push(FieldError::not_supported(
            &child(at, "scope"),
            scope,
            SCOPES,
        ));
    }
}

fn check_resources(resources: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let all = list(resources);
    if all.is_empty() {
        errors.push(FieldError::required(at, ""));
    }
    let (mut of_resource, mut of_sub) = (BTreeSet::new(), BTreeSet::new());
    let mut names_whole = false;
    for (position, one) in all.iter().enumerate() {
        let (one, at) = (text(one), index(at, position));
        let Some((resource, sub)) = one.split_once('/') else {
            if one.is_empty() {
                errors.push(FieldError::required(&at, ""));
            } else {
                names_whole = one != "*";
            }
            continue;
        };
        if of_resource.contains(resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {one}");
            errors.push(FieldError::invalid(&at, one, detail));
        }
        if of_sub.contains(sub) {
            let detail = format!("if '*/{sub}' is present, must not specify {one}");
            errors.push(FieldError::invalid(&at, one, detail));
        }
        if sub == "*" {
            of_resource.insert(resource);
        }
        if resource == "*" {
            of_sub.insert(sub);
        }
    }
    let has = |wanted: &str| all.iter().any(|one| one == wanted);
    if all.len() > 1 && has("*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(at, resources.clone(), detail));
    }
    if has("*") && names_whole {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(at, resources.clone(), detail));
    }
}

fn check_selector(selector: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let labels_at = child(at, "matchLabels");
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        told(names::check_qualified(key), key, &labels_at, errors);
        let value = text(value);
        told(names::check_label_value(value), value, &labels_at, errors);
    }
    for (position, rule) in list(&selector["matchExpressions"]).iter().enumerate() {
        let at = index(&child(at, "matchExpressions"), position);
        let values = list(&rule["values"]);
        let values_at = child(&at, "values");
        match text(&rule["operator"]) {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(&values_at, detail));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(&values_at, detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let detail = "not a valid selector operator";
                errors.push(FieldError::invalid(&child(&at, "operator"), other, detail));
            }
        }
        let key = text(&rule["key"]);
        told(names::check_qualified(key), key, &child(&at, "key"), errors);
        for (position, value) in values.iter().enumerate() {
            let value = text(value);
            let at = index(&values_at, position);
            told(names::check_label_value(value), value, &at, errors);
        }
    }
}

/// Checks a `clientConfig`: of an admission webhook, or of a conversion webhook.
pub(crate) fn check_client(config: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let (url, service) = (&config["url"], &config["service"]);
    if url.is_null() == service.is_null() {
        let detail = "exactly one of url or service is required";
        errors.push(FieldError::required(at, detail));
    } else if let Some(url) = url.as_str() {
        check_url(url, &child(at, "url"), errors);
    } else {
        check_service(service, &child(at, "service"), errors);
    }
}

fn check_url(url: &str, at: &str, errors: &mut Vec<FieldError>) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{URL_FORM}");
        errors.push(FieldError::invalid(at, scheme, detail));
    }
    let rest = if scheme.is_empty() { "" } else { rest };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let (user, host) = match host.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, host),
    };
    if host.is_empty() {
        let detail = format!("host must be specified{URL_FORM}");
        errors.push(FieldError::invalid(at, host, detail));
    }
    if let Some(user) = user {
        let detail = "user information is not permitted in the URL";
        errors.push(FieldError::invalid(at, user, detail));
    }
    let (path, fragment) = path.split_once('#').unwrap_or((path, ""));
    if !fragment.is_empty() {
        let detail = "fragments are not permitted in the URL";
        errors.push(FieldError::invalid(at, fragment, detail));
    }
    let query = path.split_once('?').map_or("", |(_, query)| query);
    if !query.is_empty() {
        let detail = "query parameters are not permitted in the URL";
        errors.push(FieldError::invalid(at, query, detail));
    }
}

fn check_service(service: &Value, at: &str, errors: &mut Vec<FieldError>) {
    for key in ["name", "namespace"] {
        if text(&service[key]).is_empty() {
            errors.push(FieldError::required(&child(at, key), ""));
        }
    }
    let port = service["port"].as_i64().unwrap_or(443);
    if !(1..=65_535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(&child(at, "port"), port, detail));
    }
    let (path, at) = (text(&service["path"]), child(at, "path"));
    let mut wrong = |detail: String| errors.push(FieldError::invalid(&at, path, detail));
    match path {
        "" | "/" => return,
        "//" => return wrong("segment[0] may not be empty".to_owned()),
        _ => {}
    }
    if !path.starts_with('/') {
        wrong("must start with a '/'".to_owned());
    }
    let inner: String = path.chars().skip(1).collect();
    let inner = inner.strip_suffix('/').unwrap_or(&inner);
    for (position, step) in inner.split('/').enumerate() {
        if step.is_empty() {
            wrong(format!("segment[{position}] may not be empty"));
            continue;
        }
        for found in names::check_subdomain(step) {
            wrong(format!("segment[{position}]: {found}"));
        }
    }
}

/// Checks the conditions of a webhook or a policy, which may speak of what is in `scene`.
pub(crate) fn check_conditions(
    conditions: &Value,
    at: &str,
    scene: &Scene,
    errors: &mut Vec<FieldError>,
) {
    let conditions = list(conditions);
    if conditions.len() > CONDITIONS_MAX {
        let most = CONDITIONS_MAX as i64;
        errors.push(FieldError::too_many(at, conditions.len(), most));
    }
    let mut seen = BTreeSet::new();
    for (position, condition) in conditions.iter().enumerate() {
        let at = index(at, position);
        let expression = text(&condition["expression"]).trim();
        let expression_at = child(&at, "expression");
        if expression.is_empty() {
            errors.push(FieldError::required(&expression_at, ""));
        } else if let Err(detail) = scene.check(expression, Answer::Bool) {
            errors.push(FieldError::invalid(&expression_at, expression, detail));
        }
        let (name, name_at) = (text(&condition["name"]), child(&at, "name"));
        if name.is_empty() {
            errors.push(FieldError::required(&name_at, ""));
            continue;
        }
        told(names::check_qualified(name), name, &name_at, errors);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&name_at, name));
        }
    }
}

/// Checks the versions of reviews that a webhook takes.
pub(crate) fn check_versions(hook: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let key = at.rsplit('.').next().unwrap_or(at);
    let versions = list(&hook[key]);
    if versions.is_empty() {
        let detail = format!("must specify one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(FieldError::required(at, detail));
        return;
    }
    let mut seen = BTreeSet::new();
    for (position, version) in versions.iter().enumerate() {
        let (version, at) = (text(version), index(at, position));
        if !seen.insert(version) {
            errors.push(FieldError::invalid(&at, version, "duplicate version"));
            continue;
        }
        told(names::check_label_1035(version), version, &at, errors);
    }
    if !versions
        .iter()
        .any(|version| REVIEW_VERSIONS.contains(&text(version)))
    {
        let detail = format!(
            "must include at least one of {}",
            REVIEW_VERSIONS.join(", ")
        );
        errors.push(FieldError::invalid(at, hook[key].clone(), detail));
    }
}

fn one_of(hook: &Value, at: &str, key: &str, known: &[&str], errors: &mut Vec<FieldError>) {
    if let Some(given) = hook[key].as_str().filter(|given| !known.contains(given)) {
        errors.push(FieldError::not_supported(&child(at, key), given, known));
    }
}

fn told(found: Vec<String>, value: &str, at: &str, errors: &mut Vec<FieldError>) {
    let all = found.into_iter();
    errors.extend(all.map(|detail| FieldError::invalid(at, value, detail)));
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
