//! Devices: claims for them, their classes and where they are.

use std::collections::{BTreeMap, BTreeSet};

use api::names;
use serde_json::Value;

use super::pod::affinity::node_selector;
use super::pod::resources;
use super::spot::{Faults, Spot};
use super::storage::driver_name;
use super::{meta, same};

/// Most requests, constraints, selectors, consumers of a claim; most devices of a slice.
const REQUESTS_MAX: i64 = 32;
const ALTERNATIVES_MAX: i64 = 8;
const SELECTORS_MAX: i64 = 32;
const EXPRESSION_BYTES_MAX: i64 = 10 * 1024;
const CONSUMERS_MAX: i64 = 256;
const DEVICES_MAX: i64 = 128;
const DEVICES_MAX_ADVANCED: i64 = 64;
const COUNTERS_MAX: i64 = 8;
const POOL_NAME_BYTES_MAX: i64 = 253;

/// Requests of a claim, with the names of the alternatives of each.
type Requests<'v> = BTreeMap<&'v str, BTreeSet<&'v str>>;

pub(super) fn claim(claim: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(claim, names::check_subdomain, faults);
    claim_spec(&claim.at("spec"), faults);
}

pub(super) fn claim_update(claim: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::create(claim, names::check_subdomain, faults);
    meta::update(claim, old, faults);
    faults.unchanged(&claim.at("spec"), &old["spec"]);
}

pub(super) fn template(template: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(template, names::check_subdomain, faults);
    let spec = template.at("spec");
    let metadata = spec.at("metadata");
    meta::annotations(&metadata.at("annotations"), faults);
    faults.labels(&metadata.at("labels"));
    for field in [
        "name",
        "generateName",
        "namespace",
        "finalizers",
        "ownerReferences",
    ] {
        if !metadata.at(field).is_empty() {
            faults.forbidden(&metadata.at(field), "cannot be set");
        }
    }
    claim_spec(&spec.at("spec"), faults);
}

pub(super) fn template_update(template: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(template, old, faults);
    faults.unchanged(&template.at("spec"), &old["spec"]);
}

/// The names of a claim's requests.
fn request_names<'v>(devices: &Spot<'v, '_>) -> Requests<'v> {
    let requests = devices.at("requests");
    requests
        .items()
        .map(|request| {
            let parts = request.at("firstAvailable");
            let parts = parts.items().map(|part| part.at("name").text()).collect();
            (request.at("name").text(), parts)
        })
        .collect()
}

fn claim_spec(spec: &Spot<'_, '_>, faults: &mut Faults) {
    let devices = spec.at("devices");
    let known = request_names(&devices);
    let requests = devices.at("requests");
    limited(&requests, REQUESTS_MAX, faults);
    let mut seen = BTreeSet::new();
    for request in requests.items() {
        check_request(&request, faults);
        unique(&request, request.at("name").text(), &mut seen, faults);
    }
    let constraints = devices.at("constraints");
    limited(&constraints, REQUESTS_MAX, faults);
    for constraint in constraints.items() {
        references(&constraint.at("requests"), &known, faults);
        let attribute = constraint.at("matchAttribute");
        if attribute.is_there() {
            qualified(&attribute, faults);
        } else if constraint.at("distinctAttribute").is_there() {
            qualified(&constraint.at("distinctAttribute"), faults);
        } else {
            let detail = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
            faults.required(&constraint, detail);
        }
    }
    let configs = devices.at("config");
    limited(&configs, REQUESTS_MAX, faults);
    for config in configs.items() {
        references(&config.at("requests"), &known, faults);
        configuration(&config, faults);
    }
}

fn limited(list: &Spot<'_, '_>, most: i64, faults: &mut Faults) {
    if list.len() as i64 > most {
        faults.too_many(list, most);
    }
}

fn unique<'v>(at: &Spot<'_, '_>, key: &'v str, seen: &mut BTreeSet<&'v str>, faults: &mut Faults) {
    if !seen.insert(key) {
        faults.duplicate(at, key);
    }
}

fn check_request(request: &Spot<'_, '_>, faults: &mut Faults) {
    faults.name(&request.at("name"), names::check_label);
    let (exactly, first) = (request.at("exactly"), request.at("firstAvailable"));
    let which = "exactly one of `exactly` or `firstAvailable` is required";
    match (exactly.is_there(), !first.is_empty()) {
        (false, false) => faults.required(request, which),
        (true, true) => {
            let detail = format!("{which}, but multiple fields are set");
            faults.invalid_as(request, Value::Null, detail);
        }
        (true, false) => wanted_devices(&exactly, faults),
        (false, true) => {
            limited(&first, ALTERNATIVES_MAX, faults);
            let mut seen = BTreeSet::new();
            for part in first.items() {
                faults.name(&part.at("name"), names::check_label);
                wanted_devices(&part, faults);
                unique(&part, part.at("name").text(), &mut seen, faults);
            }
        }
    }
}

fn wanted_devices(at: &Spot<'_, '_>, faults: &mut Faults) {
    faults.need_name(&at.at("deviceClassName"), names::check_subdomain);
    selectors(&at.at("selectors"), faults);
    let (mode, count) = (at.at("allocationMode"), at.at("count"));
    match mode.text() {
        "All" => {
            if count.number() != 0 {
                let detail = "must not be specified when allocationMode is 'All'";
                faults.invalid_as(&count, count.number(), detail);
            }
        }
        "ExactCount" => faults.positive(&count),
        _ => faults.not_supported(&mode, &["All", "ExactCount"]),
    }
    for toleration in at.at("tolerations").items() {
        let (key, operator) = (toleration.at("key"), toleration.at("operator"));
        let value = toleration.at("value");
        faults.name_if(&key, names::check_qualified);
        match operator.text() {
            "Exists" => {
                if !value.is_empty() {
                    faults.invalid_text(&value, "must be empty for operator `Exists`");
                }
            }
            "Equal" => faults.name(&value, names::check_label_value),
            "" => faults.required(&operator, "operator is required"),
            _ => faults.not_supported(&operator, &["Equal", "Exists"]),
        }
        let effect = toleration.at("effect");
        if !effect.is_empty() {
            faults.known(&effect, &["NoExecute", "NoSchedule", "None"]);
        }
    }
}

fn selectors(list: &Spot<'_, '_>, faults: &mut Faults) {
    limited(list, SELECTORS_MAX, faults);
    for selector in list.items() {
        let rule = selector.at("cel");
        if !rule.is_there() {
            faults.required(&rule, "");
            continue;
        }
        let expression = rule.at("expression");
        if expression.text().len() as i64 > EXPRESSION_BYTES_MAX {
            faults.too_long(&expression, EXPRESSION_BYTES_MAX);
        } else if let Err(why) = cel::Selector::compile(expression.text()) {
            faults.invalid_text(&expression, &why);
        }
    }
}

/// A name with a domain before it.
fn qualified(at: &Spot<'_, '_>, faults: &mut Faults) {
    match at.text().split_once('/') {
        Some((domain, name)) if !domain.is_empty() && !name.is_empty() => {
            faults.name_as(at, domain, names::check_subdomain);
        }
        _ if at.is_empty() => faults.required(at, ""),
        _ => faults.invalid_text(at, "must include a domain"),
    }
}

fn references(list: &Spot<'_, '_>, known: &Requests<'_>, faults: &mut Faults) {
    limited(list, REQUESTS_MAX, faults);
    let mut seen = BTreeSet::new();
    for name in list.items() {
        reference(&name, known, faults);
        unique(&name, name.text(), &mut seen, faults);
    }
}

fn reference(at: &Spot<'_, '_>, known: &Requests<'_>, faults: &mut Faults) {
    let parts: Vec<&str> = at.text().split('/').collect();
    if parts.len() > 2 {
        let detail = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
        return faults.invalid_text(at, detail);
    }
    for part in &parts {
        faults.name_as(at, part, names::check_label);
    }
    let found = known
        .get(parts[0])
        .is_some_and(|subs| parts.get(1).is_none_or(|part| subs.contains(part)));
    if !found {
        let detail = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
        faults.invalid_text(at, detail);
    }
}

fn configuration(config: &Spot<'_, '_>, faults: &mut Faults) {
    let opaque = config.at("opaque");
    if !opaque.is_there() {
        return faults.required(&opaque, "");
    }
    driver_name(&opaque.at("driver"), faults);
    let parameters = opaque.at("parameters");
    if !parameters.is_there() {
        faults.required(&parameters, "");
    } else if !parameters.value.is_object() {
        let detail = "must be a valid JSON object";
        faults.invalid_as(&parameters, "<value omitted>", detail);
    }
}

/// Checks a class of devices.
pub(super) fn class(class: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(class, names::check_subdomain, faults);
    let spec = class.at("spec");
    selectors(&spec.at("selectors"), faults);
    let configs = spec.at("config");
    limited(&configs, REQUESTS_MAX, faults);
    for config in configs.items() {
        configuration(&config, faults);
    }
    let resource = spec.at("extendedResourceName");
    if resource.is_there() && !resources::is_extended(resource.text()) {
        faults.invalid_text(&resource, "must be a valid extended resource name");
    }
}

pub(super) fn class_update(changed: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    class(changed, faults);
    meta::update(changed, old, faults);
}

/// Checks a slice of devices.
pub(super) fn slice(slice: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(slice, names::check_subdomain, faults);
    slice_spec(&slice.at("spec"), &Value::Null, faults);
}

pub(super) fn slice_update(slice: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(slice, old, faults);
    slice_spec(&slice.at("spec"), &old["spec"], faults);
}

fn slice_spec(spec: &Spot<'_, '_>, was: &Value, faults: &mut Faults) {
    driver_name(&spec.at("driver"), faults);
    let pool = spec.at("pool");
    pool_name(&pool.at("name"), faults);
    if pool.at("resourceSliceCount").number() <= 0 {
        faults.positive(&pool.at("resourceSliceCount"));
    }
    let generation = pool.at("generation");
    if generation.number() < 0 {
        let detail = "must be greater than or equal to zero";
        faults.invalid_as(&generation, generation.number(), detail);
    }
    if !was.is_null() {
        faults.unchanged(&pool.at("name"), &was["pool"]["name"]);
        faults.unchanged(&spec.at("driver"), &was["driver"]);
        faults.unchanged(&spec.at("nodeName"), &was["nodeName"]);
    }
    placed(spec, faults);
    let (devices, counters) = (spec.at("devices"), spec.at("sharedCounters"));
    if devices.is_there() && counters.is_there() {
        let detail = "only one of `sharedCounters` or `devices` is allowed";
        faults.invalid_as(spec, "", detail);
    }
    let is_advanced = devices
        .items()
        .any(|device| !device.at("taints").is_empty() || !device.at("consumesCounters").is_empty());
    let most = if is_advanced {
        DEVICES_MAX_ADVANCED
    } else {
        DEVICES_MAX
    };
    limited(&devices, most, faults);
    let mut seen = BTreeSet::new();
    for device in devices.items() {
        faults.name(&device.at("name"), names::check_label);
        unique(&device, device.at("name").text(), &mut seen, faults);
    }
    limited(&counters, COUNTERS_MAX, faults);
    let mut seen = BTreeSet::new();
    for set in counters.items() {
        faults.need_name(&set.at("name"), names::check_label);
        faults.need(&set.at("counters"));
        unique(&set, set.at("name").text(), &mut seen, faults);
    }
}

fn pool_name(at: &Spot<'_, '_>, faults: &mut Faults) {
    if at.is_empty() {
        return faults.required(at, "");
    }
    if at.text().len() as i64 > POOL_NAME_BYTES_MAX {
        faults.too_long(at, POOL_NAME_BYTES_MAX);
    }
    for part in at.text().split('/') {
        faults.name_as(at, part, names::check_subdomain);
    }
}

fn placed(spec: &Spot<'_, '_>, faults: &mut Faults) {
    let mut set = Vec::new();
    let node = spec.at("nodeName");
    if node.is_there() {
        if node.is_empty() {
            faults.invalid_text(&node, "must be either unset or set to a non-empty string");
        } else {
            set.push("`nodeName`");
            faults.name(&node, names::check_subdomain);
        }
    }
    let selector = spec.at("nodeSelector");
    if selector.is_there() {
        set.push("`nodeSelector`");
        node_selector(&selector, faults);
        let terms = selector.at("nodeSelectorTerms");
        if terms.len() != 1 {
            faults.invalid(&terms, "must have exactly one node selector term");
        }
    }
    for (field, shown) in [
        ("allNodes", "`allNodes`"),
        ("perDeviceNodeSelection", "`perDeviceNodeSelection`"),
    ] {
        let at = spec.at(field);
        if at.is_true() {
            set.push(shown);
        } else if at.is_there() {
            faults.invalid(&at, "must be either unset or set to true");
        }
    }
    let which = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    match set.len() {
        0 => faults.required(spec, which),
        1 => {}
        _ => {
            let detail = format!("{which}, but multiple fields are set");
            faults.invalid_as(spec, format!("{{{}}}", set.join(", ")), detail);
        }
    }
}

/// Checks what is said of a claim.
pub(super) fn claim_status(claim: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(claim, old, faults);
    let spec = claim.at("spec");
    let known = request_names(&spec.at("devices"));
    let (status, was) = (claim.at("status"), &old["status"]);
    let consumers = status.at("reservedFor");
    limited(&consumers, CONSUMERS_MAX, faults);
    let mut seen = BTreeSet::new();
    for consumer in consumers.items() {
        for field in ["resource", "name", "uid"] {
            faults.need(&consumer.at(field));
        }
        unique(&consumer, consumer.at("uid").text(), &mut seen, faults);
    }
    let allocation = status.at("allocation");
    if !consumers.is_empty() && !allocation.is_there() {
        faults.forbidden(
            &consumers,
            "may not be specified when `allocated` is not set",
        );
    } else if claim.at("metadata").at("deletionTimestamp").is_there() {
        let had = super::list(&was["reservedFor"]);
        if consumers.items().any(|one| !had.contains(one.value)) {
            let detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            faults.forbidden(&consumers, detail);
        }
    }
    if !allocation.is_there() {
        return;
    }
    if !was["allocation"].is_null() {
        if !same(allocation.value, &was["allocation"]) {
            faults.invalid(&allocation, super::IMMUTABLE);
        }
        return;
    }
    let devices = allocation.at("devices");
    let results = devices.at("results");
    limited(&results, REQUESTS_MAX, faults);
    for result in results.items() {
        reference(&result.at("request"), &known, faults);
        driver_name(&result.at("driver"), faults);
        pool_name(&result.at("pool"), faults);
        faults.name(&result.at("device"), names::check_label);
    }
    let selector = allocation.at("nodeSelector");
    if selector.is_there() {
        node_selector(&selector, faults);
    }
}
