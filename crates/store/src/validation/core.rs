//! Data, namespaces, nodes, accounts, priorities, leases and other kinds of few rules.

use std::collections::BTreeSet;

use api::core::system_priority;
use api::names;
use serde_json::{Value, json};

use super::pod::{affinity, resources};
use super::spot::{Faults, Spot};
use super::{format, list, meta, text};

/// Most bytes of a ConfigMap or Secret.
const DATA_BYTES_MAX: usize = 1024 * 1024;
/// Highest priority that a user's class may have.
const PRIORITY_MAX: i64 = 1_000_000_000;

pub(super) fn config_map(map: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(map, names::check_subdomain, faults);
    let mut bytes = 0;
    let binary = map.at("binaryData");
    for (key, at) in map.at("data").entries() {
        faults.name_as(&at, key, names::check_config_key);
        if binary.value.get(key).is_some() {
            faults.invalid_as(&at, key, "duplicate of key present in binaryData");
        }
        bytes += at.text().len();
    }
    for (key, at) in binary.entries() {
        faults.name_as(&at, key, names::check_config_key);
        bytes += decoded_bytes(at.text());
    }
    if bytes > DATA_BYTES_MAX {
        faults.push(crate::field::FieldError::too_long(
            "[]",
            DATA_BYTES_MAX as i64,
        ));
    }
}

/// How many bytes a base64 text stands for.
fn decoded_bytes(text: &str) -> usize {
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

pub(super) fn config_map_update(map: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(map, old, faults);
    immutable_data(map, old, &["data", "binaryData"], faults);
    config_map(map, faults);
}

/// Data that was once declared immutable stays.
fn immutable_data(object: &Spot<'_, '_>, old: &Value, parts: &[&str], faults: &mut Faults) {
    if old["immutable"] != true {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    if !object.at("immutable").is_true() {
        faults.forbidden(&object.at("immutable"), detail);
    }
    for part in parts {
        if *object.at(part).value != old[part] {
            faults.forbidden(&object.at(part), detail);
        }
    }
}

pub(super) fn secret(secret: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(secret, names::check_subdomain, faults);
    let data = secret.at("data");
    let mut bytes = 0;
    for (key, at) in data.entries() {
        faults.name_as(&at, key, names::check_config_key);
        bytes += decoded_bytes(at.text());
    }
    if bytes > DATA_BYTES_MAX {
        faults.too_long(&data, DATA_BYTES_MAX as i64);
    }
    let missing = |key: &str| data.value.get(key).is_none();
    match secret.at("type").text() {
        "kubernetes.io/service-account-token" => {
            let metadata = secret.at("metadata");
            let notes = metadata.at("annotations");
            faults.need(&notes.key("kubernetes.io/service-account.name"));
        }
        "kubernetes.io/dockercfg" => docker(&data, ".dockercfg", faults),
        "kubernetes.io/dockerconfigjson" => docker(&data, ".dockerconfigjson", faults),
        "kubernetes.io/basic-auth" if missing("username") && missing("password") => {
            faults.required(&data.key("username"), "");
            faults.required(&data.key("password"), "");
        }
        "kubernetes.io/ssh-auth" => faults.need(&data.key("ssh-privatekey")),
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"]
                .into_iter()
                .filter(|key| missing(key))
            {
                faults.required(&data.key(key), "");
            }
        }
        _ => {}
    }
}

fn docker(data: &Spot<'_, '_>, key: &str, faults: &mut Faults) {
    use base64::Engine as _;
    let at = data.key(key);
    if !at.is_there() {
        return faults.required(&at, "");
    }
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(at.text())
        .unwrap_or_default();
    let parsed: Result<serde_json::Map<String, Value>, _> = serde_json::from_slice(&bytes);
    if parsed.is_err() && bytes != b"null" {
        let detail = match bytes.first() {
            None => "unexpected end of JSON input".to_owned(),
            Some(byte) => format!(
                "invalid character {:?} looking for beginning of value",
                char::from(*byte)
            ),
        };
        faults.invalid_as(&at, "<secret contents redacted>", detail);
    }
}

pub(super) fn secret_update(changed: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(changed, old, faults);
    faults.unchanged(&changed.at("type"), &old["type"]);
    immutable_data(changed, old, &["data"], faults);
    secret(changed, faults);
}

pub(super) fn namespace(namespace: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(namespace, names::check_label, faults);
    let at = namespace.at("spec");
    let at = at.at("finalizers");
    for finalizer in at.items() {
        finalizer_name(&at, finalizer.text(), faults);
    }
}

/// The real server looks at a changed namespace as at a new one first.
pub(super) fn namespace_update(changed: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    namespace(changed, faults);
    meta::update(changed, old, faults);
}

fn finalizer_name(at: &Spot<'_, '_>, name: &str, faults: &mut Faults) {
    faults.name_as(at, name, names::check_qualified);
    meta::known_finalizer(at, name, faults);
}

/// Checks the finalizers that a namespace is left with.
pub(super) fn namespace_finalize(namespace: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(namespace, old, faults);
    for finalizer in namespace.at("spec").at("finalizers").items() {
        finalizer_name(&finalizer, finalizer.text(), faults);
    }
}

pub(super) fn namespace_status(namespace: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(namespace, old, faults);
    let status = namespace.at("status");
    let phase = status.called("phase", "Phase");
    let (wanted, when) = match namespace.at("metadata").at("deletionTimestamp").is_there() {
        false => ("Active", "is empty"),
        true => ("Terminating", "is not empty"),
    };
    if phase.text() != wanted {
        let detail = format!("may only be '{wanted}' if `deletionTimestamp` {when}");
        faults.invalid_text(&phase, &detail);
    }
}

pub(super) fn node(node: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(node, names::check_subdomain, faults);
    let (spec, metadata) = (node.at("spec"), node.at("metadata"));
    // The real server looks for taints below the metadata.
    let path = metadata.called("", "taints").path();
    affinity::taints(&Spot::new(&spec.value["taints"], &path), faults);
    node_resources(node, faults);
    let networks = spec.at("podCIDRs");
    for network in networks.items() {
        faults.name(&network, format::network);
    }
    let sixes = networks
        .items()
        .filter(|one| one.text().contains(':'))
        .count();
    if networks.len() > 2 || (networks.len() == 2 && sixes != 1) {
        let detail = "may specify no more than one CIDR for each IP family";
        faults.invalid(&networks, detail);
    }
}

fn node_resources(node: &Spot<'_, '_>, faults: &mut Faults) {
    let status = node.at("status");
    for part in ["capacity", "allocatable"] {
        let part = status.at(part);
        for (name, _) in part.entries() {
            resources::amount(&part.at(name), name, faults);
        }
    }
}

/// The real server looks at a changed node as at a new one first.
pub(super) fn node_update(node: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    self::node(node, faults);
    node_status(node, old, faults);
}

pub(super) fn node_status(node: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(node, old, faults);
    node_resources(node, faults);
    let status = node.at("status");
    let mut seen = BTreeSet::new();
    for address in status.at("addresses").items() {
        let (kind, text) = (address.at("type").text(), address.at("address").text());
        if !seen.insert((kind, text)) {
            faults.duplicate(&address, json!({"Type": kind, "Address": text}));
        }
    }
    let (spec, was) = (node.at("spec"), &old["spec"]);
    let (networks, had) = (spec.at("podCIDRs"), list(&was["podCIDRs"]));
    if !had.is_empty() && list(networks.value) != had {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        faults.forbidden(&networks, detail);
    }
    let provider = spec.at("providerID");
    if !text(&was["providerID"]).is_empty() && *provider.value != was["providerID"] {
        let detail = "node updates may not change providerID except from \"\" to valid";
        faults.forbidden(&provider, detail);
    }
    let metadata = node.at("metadata");
    let path = metadata.called("", "taints").path();
    affinity::taints(&Spot::new(&spec.value["taints"], &path), faults);
}

/// Checks an object that has no rules beyond its metadata.
pub(super) fn plain(object: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(object, names::check_subdomain, faults);
}

pub(super) fn plain_update(object: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(object, old, faults);
    plain(object, faults);
}

pub(super) fn priority_class(class: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(class, names::check_subdomain, faults);
    let metadata = class.at("metadata");
    let (name, value) = (metadata.at("name"), class.at("value"));
    if name.text().starts_with("system-") {
        let known = system_priority(name.text()).map(i64::from);
        let error = match known {
            None => format!("{} is not a known system priority class", name.text()),
            Some(known) if known != value.number() => {
                format!("value of {} PriorityClass must be {known}", name.text())
            }
            Some(_) if class.at("globalDefault").is_true() => {
                format!(
                    "globalDefault of {} PriorityClass must be false",
                    name.text()
                )
            }
            Some(_) => String::new(),
        };
        if !error.is_empty() {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {error}"
            );
            faults.forbidden(&name, &detail);
        }
    } else if value.number() > PRIORITY_MAX {
        let detail = format!("maximum allowed value of a user defined priority is {PRIORITY_MAX}");
        faults.forbidden(&value, &detail);
    }
    let policy = class.at("preemptionPolicy");
    if policy.is_there() {
        faults.one_of(&policy, &["PreemptLowerPriority", "Never"]);
    }
}

pub(super) fn priority_class_update(class: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(class, old, faults);
    if class.at("value").number() != old["value"].as_i64().unwrap_or(0) {
        faults.forbidden(&class.at("value"), "may not be changed in an update.");
    }
    faults.unchanged(&class.at("preemptionPolicy"), &old["preemptionPolicy"]);
}

pub(super) fn lease(lease: &Spot<'_, '_>, faults: &mut Faults) {
    meta::generic(lease, names::check_subdomain, faults);
    lease_spec(&lease.at("spec"), faults);
}

pub(super) fn lease_update(lease: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(lease, old, faults);
    lease_spec(&lease.at("spec"), faults);
}

fn lease_spec(spec: &Spot<'_, '_>, faults: &mut Faults) {
    let lasts = spec.at("leaseDurationSeconds");
    if lasts.maybe().is_some_and(|seconds| seconds <= 0) {
        faults.invalid(&lasts, "must be greater than 0");
    }
    faults.not_negative(&spec.at("leaseTransitions"));
    let strategy = spec.at("strategy");
    if strategy.is_there() {
        // The real server names the field twice.
        let at = strategy.called("", "strategy");
        let path = at.path();
        let at = Spot::new(strategy.value, &path);
        if strategy.text().contains('/') {
            faults.name(&at, names::check_qualified);
        } else {
            faults.known(&at, &["OldestEmulationVersion"]);
        }
    }
    if !spec.at("preferredHolder").is_empty() && strategy.is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        faults.forbidden(&spec.at("preferredHolder"), detail);
    }
}

pub(super) fn runtime_class(class: &Spot<'_, '_>, faults: &mut Faults) {
    meta::generic(class, names::check_subdomain, faults);
    faults.need_name(&class.at("handler"), names::check_label);
    let overhead = class.at("overhead");
    let limits = overhead.called("podFixed", "limits");
    for (name, at) in limits.entries() {
        resources::container_resource_name(&at, name, faults);
        resources::amount(&at, name, faults);
    }
    let scheduling = class.at("scheduling");
    faults.labels(&scheduling.at("nodeSelector"));
    let tolerations = scheduling.at("tolerations");
    affinity::tolerations(&tolerations, faults);
    let mut seen = BTreeSet::new();
    for one in tolerations.items() {
        let part = |name: &str| text(&one.value[name]).to_owned();
        let key = [part("key"), part("operator"), part("value"), part("effect")];
        if !seen.insert(key.clone()) {
            let [key, operator, value, effect] = key;
            let shown = json!({
                "Key": key, "Operator": operator, "Value": value, "Effect": effect,
                "TolerationSeconds": one.value["tolerationSeconds"],
            });
            faults.duplicate(&one, shown);
        }
    }
}

pub(super) fn runtime_class_update(class: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(class, old, faults);
    faults.unchanged(&class.at("handler"), &old["handler"]);
}

pub(super) fn revision(revision: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(revision, names::check_subdomain, faults);
    faults.not_negative(&revision.at("revision"));
    let data = revision.at("data");
    if !data.is_there() {
        faults.required(&data, "data is mandatory");
    } else if !data.value.is_object() {
        faults.required(&data, "data must be a valid JSON object");
    }
}

pub(super) fn revision_update(revision: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(revision, old, faults);
    meta::create(revision, names::check_subdomain, faults);
    faults.not_negative(&revision.at("revision"));
    faults.unchanged(&revision.at("data"), &old["data"]);
}
