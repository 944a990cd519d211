//! Priorities of requests, and the servers of other groups. Both are kept and checked; requests are
//! served in the order in which they come, and groups are served here alone.

use api::names;
use serde_json::{Value, json};

use super::spot::{Faults, Spot};
use super::{list, meta, text};

const PRECEDENCE_MAX: i64 = 10_000;
const QUEUES_MAX: i64 = 10_000_000;
/// Bits of a hash by which requests are dealt to queues.
const HASH_BITS_MAX: i64 = 60;
const DISTINGUISHERS: &[&str] = &["ByNamespace", "ByUser"];
const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];

/// Checks how urgent requests are dealt with.
pub(super) fn level(level: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(level, names::check_subdomain, faults);
    let spec = level.at("spec");
    let kind = spec.at("type");
    let is_exempt = text(&level.value["metadata"]["name"]) == "exempt";
    if is_exempt != (kind.text() == "Exempt") {
        faults.invalid_text(&kind, "must be 'Exempt' if and only if `name` is 'exempt'");
    }
    let (exempt, limited) = (spec.at("exempt"), spec.at("limited"));
    match kind.text() {
        "Exempt" => {
            if limited.is_there() {
                faults.forbidden(&limited, "must be nil if the type is not Limited");
            }
            shares(&exempt, faults);
            lendable(&exempt, faults);
        }
        "Limited" => {
            if exempt.is_there() {
                faults.forbidden(&exempt, "must be nil if the type is Limited");
            }
            if limited.is_there() {
                limits(&limited, faults);
            } else {
                faults.required(&limited, "must not be empty when type is Limited");
            }
        }
        _ => faults.one_of(&kind, &["Exempt", "Limited"]),
    }
    level_status(level, &Value::Null, faults);
}

/// The same of a changed one.
pub(super) fn level_update(changed: &Spot<'_, '_>, _old: &Value, faults: &mut Faults) {
    level(changed, faults);
}

/// Checks what is said of a level or a schema.
pub(super) fn level_status(level: &Spot<'_, '_>, _old: &Value, faults: &mut Faults) {
    let mut seen = std::collections::BTreeSet::new();
    for condition in level.at("status").at("conditions").items() {
        let kind = condition.at("type");
        if !seen.insert(kind.text()) {
            faults.duplicate(&kind, kind.text());
        }
        faults.need(&kind);
    }
}

fn shares(of: &Spot<'_, '_>, faults: &mut Faults) {
    let shares = of.at("nominalConcurrencyShares");
    if shares.number() < 0 {
        faults.invalid(&shares, "must be a non-negative integer");
    }
}

fn lendable(of: &Spot<'_, '_>, faults: &mut Faults) {
    faults.within(&of.at("lendablePercent"), 0, 100);
}

fn limits(limited: &Spot<'_, '_>, faults: &mut Faults) {
    shares(limited, faults);
    let response = limited.at("limitResponse");
    let (kind, queuing) = (response.at("type"), response.at("queuing"));
    match kind.text() {
        "Reject" if queuing.is_there() => {
            let detail = "must be nil if limited.limitResponse.type is not Limited";
            faults.forbidden(&queuing, detail);
        }
        "Queue" if queuing.is_there() => queues(&queuing, faults),
        "Queue" => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            faults.required(&queuing, detail);
        }
        _ => faults.one_of(&kind, &["Queue", "Reject"]),
    }
    lendable(limited, faults);
    let borrowing = limited.at("borrowingLimitPercent");
    if borrowing.number() < 0 {
        faults.invalid(&borrowing, "if specified, must be a non-negative integer");
    }
}

fn queues(queuing: &Spot<'_, '_>, faults: &mut Faults) {
    let (limit, queues, hand) = (
        queuing.at("queueLengthLimit"),
        queuing.at("queues"),
        queuing.at("handSize"),
    );
    if limit.number() <= 0 {
        faults.invalid(&limit, "must be positive");
    }
    let count = queues.number();
    if count <= 0 {
        faults.invalid(&queues, "must be positive");
    } else if count > QUEUES_MAX {
        faults.invalid(&queues, &format!("must not be greater than {QUEUES_MAX}"));
    }
    let size = hand.number();
    if size <= 0 {
        faults.invalid(&hand, "must be positive");
    } else if size > count {
        let detail = format!("should not be greater than queues ({count})");
        faults.invalid(&hand, &detail);
    } else if (count as f64).log2() * size as f64 > HASH_BITS_MAX as f64 {
        let detail = format!(
            "required entropy bits of deckSize {count} and handSize {size} should not be greater than {HASH_BITS_MAX}"
        );
        faults.invalid(&hand, &detail);
    }
}

/// Checks which requests are of which level.
pub(super) fn schema(schema: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(schema, names::check_subdomain, faults);
    let spec = schema.at("spec");
    let precedence = spec.at("matchingPrecedence");
    let number = precedence.number();
    if number <= 0 {
        faults.invalid(&precedence, "must be a positive value");
    }
    if number > PRECEDENCE_MAX {
        let detail = format!("must not be greater than {PRECEDENCE_MAX}");
        faults.invalid(&precedence, &detail);
    }
    if number == 1 && text(&schema.value["metadata"]["name"]) != "exempt" {
        let detail = "only the schema named 'exempt' may have matchingPrecedence 1";
        faults.invalid(&precedence, detail);
    }
    let method = spec.at("distinguisherMethod");
    let kind = method.at("type");
    if method.is_there() && !DISTINGUISHERS.contains(&kind.text()) {
        let shown = json!({ "Type": kind.text() });
        faults.push(crate::field::FieldError::not_supported(
            &kind.path(),
            shown,
            DISTINGUISHERS,
        ));
    }
    let level = spec.at("priorityLevelConfiguration");
    let name = level.at("name");
    if name.is_empty() {
        faults.required(&name, "must reference a priority level");
    } else {
        faults.name(&name, names::check_subdomain);
    }
    for rule in spec.at("rules").items() {
        one_rule(&rule, faults);
    }
    level_status(schema, &Value::Null, faults);
}

/// The same of a changed one.
pub(super) fn schema_update(changed: &Spot<'_, '_>, _old: &Value, faults: &mut Faults) {
    schema(changed, faults);
}

fn one_rule(rule: &Spot<'_, '_>, faults: &mut Faults) {
    let subjects = rule.at("subjects");
    if subjects.is_empty() {
        faults.required(&subjects, "subjects must contain at least one value");
    }
    for subject in subjects.items() {
        one_subject(&subject, faults);
    }
    let (resources, paths) = (rule.at("resourceRules"), rule.at("nonResourceRules"));
    if resources.is_empty() && paths.is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        faults.required(rule, detail);
    }
    for rule in resources.items() {
        resource_rule(&rule, faults);
    }
    for rule in paths.items() {
        path_rule(&rule, faults);
    }
}

/// Kinds of subjects, with their fields.
const SUBJECTS: &[(&str, &str)] = &[
    ("ServiceAccount", "serviceAccount"),
    ("User", "user"),
    ("Group", "group"),
];

fn one_subject(subject: &Spot<'_, '_>, faults: &mut Faults) {
    let kind = subject.at("kind");
    let known = SUBJECTS.iter().find(|(name, _)| *name == kind.text());
    let Some((_, field)) = known else {
        return faults.not_supported(&kind, &["Group", "ServiceAccount", "User"]);
    };
    let named = subject.at(field);
    let name = named.at("name");
    if !named.is_there() {
        let detail = format!("{field} is required when subject kind is '{}'", kind.text());
        faults.required(&named, &detail);
    } else if name.is_empty() {
        faults.required(&name, "");
    } else if *field == "serviceAccount" && name.text() != "*" {
        faults.name(&name, names::check_subdomain);
    }
    if named.is_there() && *field == "serviceAccount" {
        let namespace = named.at("namespace");
        if namespace.is_empty() {
            faults.required(&namespace, "must specify namespace for service account");
        } else {
            faults.name(&namespace, names::check_label);
        }
    }
    // Upstream tells of accounts first, then of users and groups.
    for (name, other) in SUBJECTS.iter().filter(|(_, other)| other != field) {
        let unwanted = subject.at(other);
        if unwanted.is_there() {
            let detail = format!("{other} is forbidden when subject kind is not '{name}'");
            faults.forbidden(&unwanted, &detail);
        }
    }
}

fn has_all(list: &Spot<'_, '_>) -> bool {
    list.items().any(|one| one.text() == "*")
}

/// A list that is not empty, in which `*` stands alone.
fn alone(list: &Spot<'_, '_>, needed: &str, others: &str, faults: &mut Faults) {
    if list.is_empty() {
        faults.required(list, needed);
    } else if has_all(list) && list.len() > 1 {
        let detail = format!("if '*' is present, must not specify other {others}");
        faults.invalid(list, &detail);
    }
}

fn verbs(verbs: &Spot<'_, '_>, faults: &mut Faults) {
    alone(
        verbs,
        "verbs must contain at least one value",
        "verbs",
        faults,
    );
    if !has_all(verbs) && verbs.items().any(|verb| !VERBS.contains(&verb.text())) {
        let shown = verbs.value.clone();
        let fault = crate::field::FieldError::not_supported(&verbs.path(), shown, VERBS);
        faults.push(fault);
    }
}

fn resource_rule(rule: &Spot<'_, '_>, faults: &mut Faults) {
    verbs(&rule.at("verbs"), faults);
    let needed = "resource rules must supply at least one api group";
    alone(&rule.at("apiGroups"), needed, "api groups", faults);
    let needed = "resource rules must supply at least one resource";
    alone(&rule.at("resources"), needed, "resources", faults);
    let namespaces = rule.at("namespaces");
    if !(namespaces.is_empty() && rule.at("clusterScope").is_true()) {
        let needed =
            "resource rules that are not cluster scoped must supply at least one namespace";
        alone(&namespaces, needed, "namespaces", faults);
    }
    if has_all(&namespaces) {
        return;
    }
    for namespace in namespaces.items() {
        for detail in names::check_label(namespace.text()) {
            let detail =
                format!("each member of this list must be '*' or a DNS-1123 label; {detail}");
            faults.invalid(&namespace, &detail);
        }
    }
}

fn path_rule(rule: &Spot<'_, '_>, faults: &mut Faults) {
    verbs(&rule.at("verbs"), faults);
    let paths = rule.at("nonResourceURLs");
    let needed = "nonResourceURLs must contain at least one value";
    alone(&paths, needed, "non-resource URLs", faults);
    if has_all(&paths) {
        return;
    }
    for path in paths.items() {
        if let Some(detail) = wrong_path(path.text()) {
            faults.invalid(&path, detail);
        }
    }
}

fn wrong_path(path: &str) -> Option<&'static str> {
    let stars = path.matches('*').count();
    Some(match path {
        "" => "must not be empty",
        "/" => return None,
        _ if !path.starts_with('/') => "must start with slash",
        _ if path.contains(' ') => "must not contain white-space",
        _ if path.contains("//") => "must not contain double slash",
        _ if stars > 1 || (stars == 1 && !path.ends_with("/*")) => {
            "wildcard can only do suffix matching"
        }
        _ => return None,
    })
}

/// Checks which server a group is said to have.
pub(super) fn service(service: &Spot<'_, '_>, faults: &mut Faults) {
    meta::generic(service, |_| Vec::new(), faults);
    let spec = service.at("spec");
    let (group, version) = (spec.at("group"), spec.at("version"));
    let wanted = format!("{}.{}", version.text(), group.text());
    let metadata = service.at("metadata");
    let name = metadata.at("name");
    if !name.is_empty() && name.text() != wanted {
        let wanted = crate::field::go_quoted(&wanted);
        let detail = format!("must be `spec.version+\".\"+spec.group`: {wanted}");
        faults.invalid(&name, &detail);
    }
    if group.is_empty() && version.text() != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        faults.required(&group, detail);
    }
    faults.name_if(&group, names::check_subdomain);
    faults.name(&version, names::check_label_1035);
    for (field, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let at = spec.at(field);
        if !(1..=most).contains(&at.number()) {
            let detail = format!("must be positive and less than {most}");
            faults.invalid_as(&at, at.number(), detail);
        }
    }
    let (unsafe_tls, bundle) = (spec.at("insecureSkipTLSVerify"), spec.at("caBundle"));
    let server = spec.at("service");
    if !server.is_there() {
        if !bundle.is_empty() {
            let bytes = bundle.text().trim_end_matches('=').len() * 3 / 4;
            let detail = "local APIServices may not have a caBundle";
            faults.invalid_as(&bundle, format!("{bytes} bytes"), detail);
        }
        if unsafe_tls.is_true() {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            faults.invalid(&unsafe_tls, detail);
        }
        return;
    }
    for part in ["namespace", "name"] {
        faults.need(&server.at(part));
    }
    let port = server.at("port");
    if !(1..=65_535).contains(&port.maybe().unwrap_or(443)) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        faults.invalid(&port, detail);
    }
    if unsafe_tls.is_true() && !bundle.is_empty() {
        faults.invalid(&unsafe_tls, "may not be true if caBundle is present");
    }
}

/// The same of a changed one.
pub(super) fn service_update(changed: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(changed, old, faults);
    service(changed, faults);
}

/// Checks what is said of such a server.
pub(super) fn service_status(changed: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(changed, old, faults);
    let known = ["True", "False", "Unknown"];
    let status = changed.at("status");
    let conditions = status.at("conditions");
    for (index, condition) in list(conditions.value).iter().enumerate() {
        if !known.contains(&text(&condition["status"])) {
            let one = conditions.item(index);
            faults.not_supported(&one.at("status"), &known);
        }
    }
}
