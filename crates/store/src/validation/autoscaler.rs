//! HorizontalPodAutoscalers, in the shape of `autoscaling/v2`.

use api::names;
use serde_json::{Value, json};

use super::pod::resources::container_resource_name;
use super::spot::{Faults, Spot};
use super::{list, meta, text};

/// Longest period of a policy, in seconds.
const PERIOD_SECONDS_MAX: i64 = 1800;
/// Longest time that is looked back, in seconds.
const WINDOW_SECONDS_MAX: i64 = 3600;

const CHOICES: &[&str] = &["Disabled", "Max", "Min"];
const POLICIES: &[&str] = &["Percent", "Pods"];
const KINDS: &[&str] = &[
    "ContainerResource",
    "External",
    "Object",
    "Pods",
    "Resource",
];
const EMPTY: &str = "must populate information for the given metric source";
const BOTH: &str = "may not set both a target raw value and a target utilization";
const NEITHER: &str = "must set either a target raw value or a target utilization";

/// What checks a source.
type SourceRule = fn(&Spot<'_, '_>, Versions, &mut Faults);

/// Sources in the order in which the real server looks for them, with the type that names each.
const SOURCES: &[(&str, &str, SourceRule)] = &[
    ("object", "Object", object_source),
    ("external", "External", external_source),
    ("pods", "Pods", pods_source),
    ("resource", "Resource", resource_source),
    ("containerResource", "ContainerResource", container_source),
];

/// What may stand in the `apiVersion` of a reference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Versions {
    /// A group must be named.
    Grouped,
    /// The core group, too.
    All,
    /// Anything: it stood there before.
    Unchecked,
}

/// What was there before makes some things bearable.
struct Allowance {
    replicas_min: i64,
    target: Versions,
    measured: Versions,
}

impl Allowance {
    fn of(scaler: &Spot<'_, '_>, old: Option<&Value>) -> Allowance {
        let target = &scaler.value["spec"]["scaleTargetRef"];
        let of_core = match text(&target["kind"]) {
            "ReplicationController" => Versions::All,
            _ => Versions::Grouped,
        };
        let Some(old) = old else {
            return Allowance {
                replicas_min: 1,
                target: of_core,
                measured: Versions::All,
            };
        };
        let spec = &old["spec"];
        let was = &spec["scaleTargetRef"];
        let is_kept = ["apiVersion", "kind"]
            .iter()
            .all(|part| text(&was[*part]) == text(&target[*part]));
        let has_wrong = list(&spec["metrics"]).iter().any(|metric| {
            metric["type"] == "Object"
                && wrong_version(&metric["object"]["describedObject"], Versions::All).is_some()
        });
        Allowance {
            replicas_min: i64::from(spec["minReplicas"] != 0),
            target: if is_kept {
                Versions::Unchecked
            } else {
                of_core
            },
            measured: if has_wrong {
                Versions::Unchecked
            } else {
                Versions::All
            },
        }
    }
}

/// Checks a new autoscaler.
pub(super) fn create(scaler: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(scaler, names::check_subdomain, faults);
    spec(scaler, None, faults);
}

/// Checks a changed autoscaler.
pub(super) fn update(scaler: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(scaler, old, faults);
    spec(scaler, Some(old), faults);
}

/// Checks what is said of an autoscaler.
pub(super) fn status(scaler: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(scaler, old, faults);
    faults.none_negative(
        &scaler.at("status"),
        &["currentReplicas", "desiredReplicas"],
    );
}

fn spec(scaler: &Spot<'_, '_>, old: Option<&Value>, faults: &mut Faults) {
    let allowance = Allowance::of(scaler, old);
    let spec = scaler.at("spec");
    let (least, most) = (spec.at("minReplicas"), spec.at("maxReplicas"));
    if least
        .maybe()
        .is_some_and(|count| count < allowance.replicas_min)
    {
        let detail = format!(
            "must be greater than or equal to {}",
            allowance.replicas_min
        );
        faults.invalid_as(&least, least.number(), detail);
    }
    match most.number() {
        0 => faults.required(&most, "must be set and greater than 0"),
        count if count < 0 => {
            faults.invalid_as(&most, count, "must be greater than or equal to 1");
        }
        _ => {}
    }
    if least.maybe().is_some_and(|count| most.number() < count) {
        let detail = "must be greater than or equal to `minReplicas`";
        faults.invalid_as(&most, most.number(), detail);
    }
    reference(&spec.at("scaleTargetRef"), allowance.target, faults);
    metrics(&spec, allowance.measured, faults);
    let behavior = spec.at("behavior");
    for side in ["scaleUp", "scaleDown"] {
        let rule = behavior.at(side);
        if rule.is_there() {
            scaling_rule(&rule, faults);
        }
    }
}

/// Why a reference's version cannot be.
fn wrong_version(reference: &Value, allowed: Versions) -> Option<String> {
    if allowed == Versions::Unchecked {
        return None;
    }
    let version = text(&reference["apiVersion"]);
    if version.matches('/').count() > 1 {
        return Some(format!("unexpected GroupVersion string: {version}"));
    }
    let has_group = version
        .split_once('/')
        .is_some_and(|(group, _)| !group.is_empty());
    (allowed == Versions::Grouped && !has_group)
        .then(|| "apiVersion must specify API group".to_owned())
}

fn reference(at: &Spot<'_, '_>, allowed: Versions, faults: &mut Faults) {
    for part in ["kind", "name"] {
        faults.need_name(&at.at(part), names::check_path_segment);
    }
    if let Some(detail) = wrong_version(at.value, allowed) {
        let version = at.at("apiVersion");
        faults.invalid_as(&version, version.text(), detail);
    }
}

fn metrics(spec: &Spot<'_, '_>, allowed: Versions, faults: &mut Faults) {
    let all = spec.at("metrics");
    let mut tells_demand = false;
    for metric in all.items() {
        one_metric(&metric, allowed, faults);
        tells_demand |= matches!(metric.at("type").text(), "External" | "Object");
    }
    if spec.at("minReplicas").maybe() == Some(0) && !tells_demand {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        faults.forbidden(&all, detail);
    }
}

fn one_metric(metric: &Spot<'_, '_>, allowed: Versions, faults: &mut Faults) {
    let kind = metric.at("type");
    if kind.is_empty() {
        faults.required(&kind, "must specify a metric source type");
    }
    let source = SOURCES.iter().find(|(_, name, _)| *name == kind.text());
    if source.is_none() {
        faults.not_supported(&kind, KINDS);
    }
    let there: Vec<&str> = SOURCES
        .iter()
        .map(|(field, _, _)| *field)
        .filter(|field| metric.at(field).is_there())
        .collect();
    // Only the first one is looked into.
    if let Some((field, _, rule)) = SOURCES.iter().find(|row| there.first() == Some(&row.0)) {
        rule(&metric.at(field), allowed, faults);
    }
    match source {
        Some((field, _, _)) if !metric.at(field).is_there() => {
            faults.required(&metric.at(field), EMPTY);
        }
        Some(_) => {}
        None => faults.not_supported(&kind, KINDS),
    }
    if there.len() == 1 {
        return;
    }
    let wanted = source.map(|(field, _, _)| *field);
    for field in there.into_iter().filter(|field| Some(*field) != wanted) {
        faults.forbidden(
            &metric.at(field),
            "must populate the given metric source only",
        );
    }
}

fn object_source(source: &Spot<'_, '_>, allowed: Versions, faults: &mut Faults) {
    reference(&source.at("describedObject"), allowed, faults);
    measure(source, faults);
    let target = source.at("target");
    let (value, average) = (target.at("value"), target.at("averageValue"));
    if !value.is_there() && !average.is_there() {
        faults.required(&average, "must set either a target value or averageValue");
    }
}

fn external_source(source: &Spot<'_, '_>, _: Versions, faults: &mut Faults) {
    measure(source, faults);
    let target = source.at("target");
    let (value, average) = (target.at("value"), target.at("averageValue"));
    match (value.is_there(), average.is_there()) {
        (false, false) => {
            let detail = "must set either a target value for metric or a per-pod target";
            faults.required(&average, detail);
        }
        (true, true) => {
            let detail = "may not set both a target value for metric and a per-pod target";
            faults.forbidden(&value, detail);
        }
        _ => {}
    }
}

fn pods_source(source: &Spot<'_, '_>, _: Versions, faults: &mut Faults) {
    measure(source, faults);
    let target = source.at("target");
    let average = target.at("averageValue");
    if !average.is_there() {
        faults.required(&average, "must specify a positive target averageValue");
    }
}

fn resource_source(source: &Spot<'_, '_>, _: Versions, faults: &mut Faults) {
    let name = source.at("name");
    if name.is_empty() {
        faults.required(&name, "must specify a resource name");
    }
    usage(source, faults);
}

fn container_source(source: &Spot<'_, '_>, _: Versions, faults: &mut Faults) {
    let (name, container) = (source.at("name"), source.at("container"));
    if name.is_empty() {
        faults.required(&name, "must specify a resource name");
    } else {
        container_resource_name(&name, name.text(), faults);
    }
    if container.is_empty() {
        faults.required(&container, "must specify a container");
    } else {
        faults.name(&container, names::check_label);
    }
    usage(source, faults);
}

/// A named metric and what is wanted of it.
fn measure(source: &Spot<'_, '_>, faults: &mut Faults) {
    let metric = source.at("metric");
    let name = metric.at("name");
    if name.is_empty() {
        faults.required(&name, "must specify a metric name");
    } else {
        faults.name(&name, names::check_path_segment);
    }
    target(&source.at("target"), faults);
}

/// How much of a resource is to be used.
fn usage(source: &Spot<'_, '_>, faults: &mut Faults) {
    let wanted = source.at("target");
    target(&wanted, faults);
    let (percent, average) = (wanted.at("averageUtilization"), wanted.at("averageValue"));
    match (percent.is_there(), average.is_there()) {
        (false, false) => faults.required(&percent, NEITHER),
        (true, true) => faults.forbidden(&average, BOTH),
        _ => {}
    }
}

fn target(target: &Spot<'_, '_>, faults: &mut Faults) {
    let kind = target.at("type");
    if kind.is_empty() {
        faults.required(&kind, "must specify a metric target type");
    }
    if !matches!(kind.text(), "AverageValue" | "Utilization" | "Value") {
        let detail = "must be either Utilization, Value, or AverageValue";
        faults.invalid_text(&kind, detail);
    }
    for amount in ["value", "averageValue"] {
        let at = target.at(amount);
        if at.quantity().is_some_and(|amount| amount.nanos() <= 0) {
            faults.invalid(&at, "must be positive");
        }
    }
    let percent = target.at("averageUtilization");
    if percent.maybe().is_some_and(|percent| percent < 1) {
        faults.invalid(&percent, "must be greater than 0");
    }
}

fn scaling_rule(rule: &Spot<'_, '_>, faults: &mut Faults) {
    let window = rule.at("stabilizationWindowSeconds");
    if window.number() < 0 {
        faults.invalid(&window, "must be greater than or equal to zero");
    }
    if window.number() > WINDOW_SECONDS_MAX {
        let detail = format!("must be less than or equal to {WINDOW_SECONDS_MAX}");
        faults.invalid_as(&window, window.number(), detail);
    }
    faults.known(&rule.at("selectPolicy"), CHOICES);
    let policies = rule.at("policies");
    if policies.is_empty() {
        faults.required(&policies, "must specify at least one Policy");
    }
    for policy in policies.items() {
        scaling_policy(&policy, faults);
    }
    let tolerance = rule.at("tolerance");
    if tolerance
        .quantity()
        .is_some_and(|amount| amount.is_negative())
    {
        faults.invalid(&tolerance, "must be greater than or equal to 0");
    }
}

fn scaling_policy(policy: &Spot<'_, '_>, faults: &mut Faults) {
    let kind = policy.at("type");
    if !POLICIES.contains(&kind.text()) {
        faults.not_supported(&kind, POLICIES);
    }
    faults.positive(&policy.at("value"));
    let period = policy.at("periodSeconds");
    faults.positive(&period);
    if period.number() > PERIOD_SECONDS_MAX {
        let detail = format!("must be less than or equal to {PERIOD_SECONDS_MAX}");
        faults.invalid_as(&period, json!(period.number()), detail);
    }
}
