//! What keeps a number of pods: deployments, replica sets, stateful sets, daemon sets.

use std::collections::BTreeSet;

use api::names;
use serde_json::{Value, json};

use super::job::selects;
use super::pod::affinity::label_selector;
use super::spot::{Faults, Spot};
use super::{format, list, meta, pod, same, storage, text};

/// An integer that is not negative, or a percentage.
pub(super) fn count_or_percent(at: &Spot<'_, '_>, faults: &mut Faults) {
    if at.value.is_string() {
        for detail in format::percent(at.text()) {
            faults.invalid_as(at, at.text(), detail);
        }
    } else {
        faults.not_negative(at);
    }
}

/// The number of a count or percentage.
fn number_of(value: &Value) -> i64 {
    match value {
        Value::String(text) => text
            .strip_suffix('%')
            .and_then(|n| n.parse().ok())
            .unwrap_or(0),
        other => other.as_i64().unwrap_or(0),
    }
}

/// A percentage is at most the whole.
pub(super) fn not_above_all(at: &Spot<'_, '_>, faults: &mut Faults) {
    let is_percent = at.value.is_string() && format::percent(at.text()).is_empty();
    if is_percent && number_of(at.value) > 100 {
        faults.invalid_text(at, "must not be greater than 100%");
    }
}

/// Checks a selector that must choose something and fit the template.
fn selected_template(spec: &Spot<'_, '_>, kind: &str, faults: &mut Faults) {
    let selector = spec.at("selector");
    if !selector.is_there() {
        faults.required(&selector, "");
    } else {
        label_selector(&selector, faults);
        refuse_empty(&selector, kind, faults);
    }
    if selector.is_there() && selects(selector.value, &json!({})).is_none() {
        faults.invalid(&selector, "invalid label selector");
        return;
    }
    let template = spec.at("template");
    fits(spec, &template, faults);
    pod::template(&template, faults);
    let kind = if kind == "deployment" {
        "ReplicaSet"
    } else {
        kind
    };
    runs_for_ever(&template, kind, faults);
}

fn refuse_empty(selector: &Spot<'_, '_>, kind: &str, faults: &mut Faults) {
    let parts = ["matchLabels", "matchExpressions"];
    if selector.is_there() && parts.iter().all(|part| selector.at(part).is_empty()) {
        let detail = format!("empty selector is invalid for {kind}");
        faults.invalid_as(selector, json!({}), detail);
    }
}

fn fits(spec: &Spot<'_, '_>, template: &Spot<'_, '_>, faults: &mut Faults) {
    let selector = spec.at("selector");
    let metadata = template.at("metadata");
    let labels = metadata.at("labels");
    // No selector chooses nothing.
    let chosen = match selector.is_there() {
        true => selects(selector.value, labels.value),
        false => Some(false),
    };
    if chosen == Some(false) {
        faults.invalid(&labels, "`selector` does not match template `labels`");
    }
}

/// Pods of a set are started again when they end.
fn runs_for_ever(template: &Spot<'_, '_>, kind: &str, faults: &mut Faults) {
    let spec = template.at("spec");
    let restart = spec.at("restartPolicy");
    if restart.text() != "Always" {
        faults.not_supported(&restart, &["Always"]);
    }
    let deadline = spec.at("activeDeadlineSeconds");
    if deadline.is_there() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        faults.forbidden(&deadline, &detail);
    }
}

pub(super) fn deployment(deployment: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(deployment, names::check_subdomain, faults);
    deployment_spec(&deployment.at("spec"), faults);
}

pub(super) fn deployment_update(deployment: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(deployment, old, faults);
    let spec = deployment.at("spec");
    deployment_spec(&spec, faults);
    faults.unchanged(&spec.at("selector"), &old["spec"]["selector"]);
}

fn deployment_spec(spec: &Spot<'_, '_>, faults: &mut Faults) {
    faults.not_negative(&spec.at("replicas"));
    selected_template(spec, "deployment", faults);
    strategy(&spec.at("strategy"), faults);
    faults.not_negative(&spec.at("minReadySeconds"));
    faults.not_negative(&spec.at("revisionHistoryLimit"));
    let deadline = spec.at("progressDeadlineSeconds");
    faults.not_negative(&deadline);
    let ready = spec.at("minReadySeconds").number();
    if deadline.maybe().is_some_and(|seconds| seconds <= ready) {
        faults.invalid(&deadline, "must be greater than minReadySeconds");
    }
}

/// How a rolling update is shown.
fn counts(rolling: &Spot<'_, '_>) -> Value {
    let count = |name: &str| match &rolling.value[name] {
        Value::Null => json!(0),
        other => other.clone(),
    };
    match rolling.is_there() {
        true => json!({ "MaxUnavailable": count("maxUnavailable"), "MaxSurge": count("maxSurge") }),
        false => Value::Null,
    }
}

/// How a rolling update of a stateful set is shown.
fn partition(rolling: &Spot<'_, '_>) -> Value {
    match rolling.is_there() {
        true => json!({
            "Partition": rolling.at("partition").number(),
            "MaxUnavailable": rolling.value["maxUnavailable"],
        }),
        false => Value::Null,
    }
}

fn strategy(strategy: &Spot<'_, '_>, faults: &mut Faults) {
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "Recreate" => {
            if rolling.is_there() {
                let detail = "may not be specified when strategy `type` is 'Recreate'";
                faults.forbidden(&rolling, detail);
            }
        }
        "RollingUpdate" => {
            let (missing, extra) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
            count_or_percent(&missing, faults);
            count_or_percent(&extra, faults);
            if number_of(missing.value) == 0 && number_of(extra.value) == 0 {
                faults.invalid(&missing, "may not be 0 when `maxSurge` is 0");
            }
            not_above_all(&missing, faults);
        }
        _ => {
            let shown = json!({
                "Type": strategy.at("type").text(),
                "RollingUpdate": counts(&rolling),
            });
            let known = ["Recreate", "RollingUpdate"];
            let path = strategy.path();
            faults.push(crate::field::FieldError::not_supported(
                &path, shown, &known,
            ));
        }
    }
}

pub(super) fn replica_set(set: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(set, names::check_subdomain, faults);
    replica_set_spec(&set.at("spec"), faults);
}

pub(super) fn replica_set_update(set: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(set, old, faults);
    let spec = set.at("spec");
    replica_set_spec(&spec, faults);
    faults.unchanged(&spec.at("selector"), &old["spec"]["selector"]);
}

fn replica_set_spec(spec: &Spot<'_, '_>, faults: &mut Faults) {
    faults.not_negative(&spec.at("replicas"));
    faults.not_negative(&spec.at("minReadySeconds"));
    // The real server calls a replica set a deployment here.
    selected_template(spec, "deployment", faults);
}

pub(super) fn controller(controller: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(controller, names::check_subdomain, faults);
    controller_spec(&controller.at("spec"), faults);
}

pub(super) fn controller_update(controller: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(controller, old, faults);
    controller_spec(&controller.at("spec"), faults);
}

fn controller_spec(spec: &Spot<'_, '_>, faults: &mut Faults) {
    faults.not_negative(&spec.at("minReadySeconds"));
    let selector = spec.at("selector");
    faults.need(&selector);
    if spec.at("replicas").is_there() {
        faults.not_negative(&spec.at("replicas"));
    } else {
        faults.required(&spec.at("replicas"), "");
    }
    let template = spec.at("template");
    if !template.is_there() {
        return faults.required(&template, "");
    }
    let metadata = template.at("metadata");
    let labels = metadata.at("labels");
    let is_chosen = selector
        .entries()
        .all(|(key, at)| labels.value.get(key) == Some(at.value));
    if !is_chosen {
        faults.invalid(&labels, "`selector` does not match template `labels`");
    }
    pod::template(&template, faults);
    runs_for_ever(&template, "ReplicationController", faults);
}

pub(super) fn daemon_set(set: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(set, names::check_subdomain, faults);
    daemon_set_spec(&set.at("spec"), faults);
}

pub(super) fn daemon_set_update(set: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(set, old, faults);
    let spec = set.at("spec");
    faults.unchanged(&spec.at("selector"), &old["spec"]["selector"]);
    daemon_set_spec(&spec, faults);
}

fn daemon_set_spec(spec: &Spot<'_, '_>, faults: &mut Faults) {
    let (selector, template) = (spec.at("selector"), spec.at("template"));
    label_selector(&selector, faults);
    fits(spec, &template, faults);
    refuse_empty(&selector, "daemonset", faults);
    pod::template(&template, faults);
    runs_for_ever(&template, "DaemonSet", faults);
    faults.not_negative(&spec.at("minReadySeconds"));
    let strategy = spec.at("updateStrategy");
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "OnDelete" => {}
        "RollingUpdate" if rolling.is_there() => {
            let (missing, extra) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
            for at in [&missing, &extra] {
                count_or_percent(at, faults);
            }
            for at in [&missing, &extra] {
                not_above_all(at, faults);
            }
            match (number_of(missing.value) != 0, number_of(extra.value) != 0) {
                (true, true) => {
                    let detail = "may not be set when maxUnavailable is non-zero";
                    faults.invalid(&extra, detail);
                }
                (false, false) => {
                    faults.required(&missing, "cannot be 0 when maxSurge is 0");
                }
                _ => {}
            }
        }
        "RollingUpdate" => faults.required(&rolling, ""),
        _ => {
            let shown = json!({
                "Type": strategy.at("type").text(),
                "RollingUpdate": counts(&rolling),
            });
            let known = ["RollingUpdate", "OnDelete"];
            let path = strategy.path();
            faults.push(crate::field::FieldError::not_supported(
                &path, shown, &known,
            ));
        }
    }
    faults.not_negative(&spec.at("revisionHistoryLimit"));
}

/// Whether a stateful set is new.
#[derive(Clone, Copy, PartialEq)]
enum Age {
    New,
    Known,
}

pub(super) fn stateful_set(set: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(set, names::check_label, faults);
    stateful_set_spec(&set.at("spec"), Age::New, faults);
}

/// Fields of a stateful set that may change.
const STATEFUL_FREE: &[&str] = &[
    "minReadySeconds",
    "ordinals",
    "persistentVolumeClaimRetentionPolicy",
    "replicas",
    "revisionHistoryLimit",
    "template",
    "updateStrategy",
];

pub(super) fn stateful_set_update(set: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(set, old, faults);
    let spec = set.at("spec");
    stateful_set_spec(&spec, Age::Known, faults);
    let rest = |spec: &Value| -> Value {
        let mut rest = spec.clone();
        if let Some(map) = rest.as_object_mut() {
            map.retain(|name, _| !STATEFUL_FREE.contains(&name.as_str()));
        }
        rest
    };
    if !same(&rest(spec.value), &rest(&old["spec"])) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        faults.forbidden(&spec, detail);
    }
}

fn stateful_set_spec(spec: &Spot<'_, '_>, age: Age, faults: &mut Faults) {
    let management = spec.at("podManagementPolicy");
    match management.text() {
        "" => faults.required(&management, ""),
        "OrderedReady" | "Parallel" => {}
        _ => faults.invalid_text(&management, "must be 'OrderedReady' or 'Parallel'"),
    }
    stateful_strategy(&spec.at("updateStrategy"), faults);
    let retention = spec.at("persistentVolumeClaimRetentionPolicy");
    if retention.is_there() {
        for field in ["whenDeleted", "whenScaled"] {
            let at = retention.at(field);
            if !matches!(at.text(), "Retain" | "Delete") {
                faults.not_supported(&at, &["Retain", "Delete"]);
            }
        }
    }
    let claims = spec.at("volumeClaimTemplates");
    if age == Age::New {
        for claim in claims.items() {
            storage::claim_spec(&claim.at("spec"), faults);
        }
    }
    faults.none_negative(spec, &["replicas", "minReadySeconds"]);
    let ordinals = spec.at("ordinals");
    faults.not_negative(&ordinals.at("start"));
    if age == Age::New {
        faults.name_if(&spec.at("serviceName"), names::check_label);
    }
    let selector = spec.at("selector");
    if selector.is_there() {
        label_selector(&selector, faults);
        refuse_empty(&selector, "statefulset", faults);
    } else {
        faults.required(&selector, "");
    }
    let template = spec.at("template");
    if selector.is_there() && selects(selector.value, &json!({})).is_none() {
        faults.invalid(&selector, "");
    } else {
        fits(spec, &template, faults);
        let path = template.path();
        let whole = with_claims(template.value, claims.value);
        let whole = Spot::new(&whole, &path);
        pod::template(&whole, faults);
        let metadata = template.at("metadata");
        let labels = template.called("", "labels").path();
        faults.labels(&Spot::new(&metadata.value["labels"], &labels));
        let notes = template.called("", "annotations").path();
        meta::annotations(&Spot::new(&metadata.value["annotations"], &notes), faults);
    }
    runs_for_ever(&template, "StatefulSet", faults);
}

/// The template as its pods will be: with the volumes of their claims, and names of their own.
fn with_claims(template: &Value, claims: &Value) -> Value {
    let mut whole = template.clone();
    let Some(spec) = whole.get_mut("spec").and_then(Value::as_object_mut) else {
        return whole;
    };
    spec.remove("subdomain");
    spec.remove("hostname");
    let names: BTreeSet<&str> = list(claims)
        .iter()
        .map(|claim| text(&claim["metadata"]["name"]))
        .collect();
    if names.is_empty() {
        return whole;
    }
    let mut volumes: Vec<Value> = names
        .iter()
        .map(|name| json!({ "name": name, "persistentVolumeClaim": { "claimName": name } }))
        .collect();
    let own = spec.get("volumes").map(list).unwrap_or_default();
    volumes.extend(
        own.iter()
            .filter(|one| !names.contains(text(&one["name"])))
            .cloned(),
    );
    spec.insert("volumes".to_owned(), Value::Array(volumes));
    whole
}

fn stateful_strategy(strategy: &Spot<'_, '_>, faults: &mut Faults) {
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "" => faults.required(strategy, ""),
        "OnDelete" => {
            if rolling.is_there() {
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                faults.invalid_as(&rolling, partition(&rolling), detail);
            }
        }
        "RollingUpdate" => {
            faults.not_negative(&rolling.at("partition"));
            let missing = rolling.at("maxUnavailable");
            if missing.is_there() {
                count_or_percent(&missing, faults);
                if number_of(missing.value) == 0 {
                    faults.invalid(&missing, "cannot be 0");
                }
                not_above_all(&missing, faults);
            }
        }
        _ => {
            let shown = json!({
                "Type": strategy.at("type").text(),
                "RollingUpdate": partition(&rolling),
            });
            faults.invalid_as(strategy, shown, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

/// Counts of a status, of which each but the first is at most the first.
type Counts = (
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
);

/// Checks the counts of a replicated kind's status.
pub(super) fn status(object: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(object, old, faults);
    let (counts, bounded, last): Counts = match object.at("kind").text() {
        "DaemonSet" => (
            &[
                "currentNumberScheduled",
                "numberMisscheduled",
                "desiredNumberScheduled",
                "numberReady",
                "observedGeneration",
                "updatedNumberScheduled",
                "numberAvailable",
                "numberUnavailable",
                "collisionCount",
            ],
            &[],
            "",
        ),
        "Deployment" => (
            &[
                "observedGeneration",
                "replicas",
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "unavailableReplicas",
                "terminatingReplicas",
                "collisionCount",
            ],
            &["updatedReplicas", "readyReplicas", "availableReplicas"],
            "cannot be greater than readyReplicas",
        ),
        "StatefulSet" => (
            &[
                "replicas",
                "readyReplicas",
                "currentReplicas",
                "updatedReplicas",
                "availableReplicas",
                "observedGeneration",
                "collisionCount",
            ],
            &[
                "readyReplicas",
                "currentReplicas",
                "updatedReplicas",
                "availableReplicas",
            ],
            "cannot be greater than status.readyReplicas",
        ),
        _ => (
            &[
                "replicas",
                "fullyLabeledReplicas",
                "readyReplicas",
                "availableReplicas",
                "observedGeneration",
                "terminatingReplicas",
            ],
            &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
            "cannot be greater than readyReplicas",
        ),
    };
    let status = object.at("status");
    faults.none_negative(&status, counts);
    let all = status.at("replicas").number();
    for name in bounded {
        let at = status.at(name);
        if at.number() > all {
            faults.invalid_as(&at, at.number(), "cannot be greater than status.replicas");
        }
    }
    let available = status.at("availableReplicas");
    if !last.is_empty() && available.number() > status.at("readyReplicas").number() {
        faults.invalid_as(&available, available.number(), last);
    }
    let collisions = status.at("collisionCount");
    let had = old["status"]["collisionCount"].as_i64();
    if counts.contains(&"collisionCount") && had.is_some_and(|had| collisions.number() < had) {
        faults.invalid_as(&collisions, collisions.number(), "cannot be decremented");
    }
}

/// Checks a disruption budget; its metadata is checked as everybody's.
pub(super) fn budget(budget: &Spot<'_, '_>, faults: &mut Faults) {
    let spec = budget.at("spec");
    let (least, most) = (spec.at("minAvailable"), spec.at("maxUnavailable"));
    if least.is_there() && most.is_there() {
        let shown = json!({
            "MinAvailable": least.value,
            "Selector": spec.value["selector"],
            "MaxUnavailable": most.value,
            "UnhealthyPodEvictionPolicy": spec.value["unhealthyPodEvictionPolicy"],
        });
        faults.invalid_as(
            &spec,
            shown,
            "minAvailable and maxUnavailable cannot be both set",
        );
    }
    for at in [&least, &most].into_iter().filter(|at| at.is_there()) {
        count_or_percent(at, faults);
        not_above_all(at, faults);
    }
    label_selector(&spec.at("selector"), faults);
    let policies = ["AlwaysAllow", "IfHealthyBudget"];
    faults.known(&spec.at("unhealthyPodEvictionPolicy"), &policies);
}

pub(super) fn budget_update(changed: &Spot<'_, '_>, _old: &Value, faults: &mut Faults) {
    budget(changed, faults);
}

pub(super) fn budget_status(budget: &Spot<'_, '_>, _old: &Value, faults: &mut Faults) {
    let status = budget.at("status");
    meta_conditions(&status.at("conditions"), faults);
    let counts = [
        "disruptionsAllowed",
        "currentHealthy",
        "desiredHealthy",
        "expectedPods",
    ];
    faults.none_negative(&status, &counts);
}

/// Most bytes of a condition's message.
const MESSAGE_BYTES_MAX: i64 = 32 * 1024;
/// Most bytes of a condition's reason.
const REASON_BYTES_MAX: i64 = 1_024;

/// Checks conditions of the common form.
pub(super) fn meta_conditions(conditions: &Spot<'_, '_>, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for condition in conditions.items() {
        let kind = condition.at("type");
        if !seen.insert(kind.text()) {
            faults.duplicate(&kind, kind.text());
        }
        faults.name(&kind, names::check_qualified);
        let status = condition.at("status");
        let known = ["False", "True", "Unknown"];
        if !known.contains(&status.text()) {
            faults.not_supported(&status, &known);
        }
        let generation = condition.at("observedGeneration");
        if generation.number() < 0 {
            let detail = "must be greater than or equal to zero";
            faults.invalid_as(&generation, generation.number(), detail);
        }
        if condition.at("lastTransitionTime").is_empty() {
            faults.required(&condition.at("lastTransitionTime"), "must be set");
        }
        let (reason, message) = (condition.at("reason"), condition.at("message"));
        if reason.is_empty() {
            faults.required(&reason, "must be set");
        } else {
            faults.name(&reason, reason_word);
            if reason.text().len() as i64 > REASON_BYTES_MAX {
                faults.too_long(&reason, REASON_BYTES_MAX);
            }
        }
        if message.text().len() as i64 > MESSAGE_BYTES_MAX {
            faults.too_long(&message, MESSAGE_BYTES_MAX);
        }
    }
}

fn reason_word(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b',' | b':');
    let is_word = bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.iter().all(|b| inner(*b))
        && bytes
            .last()
            .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    if is_word {
        return Vec::new();
    }
    vec![
        "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
            .to_owned(),
    ]
}
