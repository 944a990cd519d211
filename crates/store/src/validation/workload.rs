//! What makes pods: jobs and replicated workloads.

use api::names;
use api::selector::LabelSelector;
use serde_json::Value;

use super::{list, not_negative, one_of, pod, text, unchanged};
use crate::field::FieldError;

/// Most pods at a time of an indexed job.
const INDEXED_PARALLEL_MAX: i64 = 100_000;
/// Longest name of a cron job: its jobs' names get eleven letters more.
const CRON_NAME_MAX: usize = 52;
/// Schedules with a name.
const DESCRIPTORS: &[&str] = &[
    "@annually",
    "@daily",
    "@hourly",
    "@midnight",
    "@monthly",
    "@weekly",
    "@yearly",
];

pub(super) fn job(job: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &job["spec"];
    job_spec(spec, "spec", &mut errors);
    if spec["completionMode"] == "Indexed"
        && let Some(last) = spec["completions"].as_i64().filter(|count| *count > 0)
    {
        let name = text(&job["metadata"]["name"]);
        // The last pod's host name is the longest.
        let host = format!("{name}-{}", last - 1);
        if !names::check_label(&host).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {host}");
            errors.push(FieldError::invalid("metadata.name", name, detail));
        }
    }
    errors
}

fn job_spec(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let at = |name: &str| format!("{path}.{name}");
    for name in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        not_negative(&spec[name], &at(name), errors);
    }
    let mode = text(&spec["completionMode"]);
    one_of(
        &spec["completionMode"],
        &at("completionMode"),
        &["NonIndexed", "Indexed"],
        errors,
    );
    if mode == "Indexed" {
        if spec["completions"].is_null() {
            let detail = "when completion mode is Indexed";
            errors.push(FieldError::required(&at("completions"), detail));
        }
        if let Some(parallel) = spec["parallelism"]
            .as_i64()
            .filter(|parallel| *parallel > INDEXED_PARALLEL_MAX)
        {
            let detail = format!(
                "must be less than or equal to {INDEXED_PARALLEL_MAX} when completion mode is Indexed"
            );
            errors.push(FieldError::invalid(&at("parallelism"), parallel, detail));
        }
    } else {
        for name in ["backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"] {
            if let Some(value) = spec.get(name) {
                let detail = "requires indexed completion mode";
                errors.push(FieldError::invalid(&at(name), value.clone(), detail));
            }
        }
    }
    let template = at("template");
    errors.extend(pod::spec(
        &spec["template"]["spec"],
        &format!("{template}.spec"),
    ));
    let restart_at = format!("{template}.spec.restartPolicy");
    match text(&spec["template"]["spec"]["restartPolicy"]) {
        "OnFailure" | "Never" => {}
        "" => {
            let detail = "valid values: \"OnFailure\", \"Never\"";
            errors.push(FieldError::required(&restart_at, detail));
        }
        other => {
            let known = ["OnFailure", "Never"];
            errors.push(FieldError::not_supported(&restart_at, other, &known));
        }
    }
}

pub(super) fn job_update(job: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let (new, was) = (&job["spec"], &old["spec"]);
    let mode = text(&was["completionMode"]);
    // An indexed job may grow and shrink with its parallelism.
    let scales = mode == "Indexed" && new["completions"] == new["parallelism"];
    if !scales {
        unchanged(
            &new["completions"],
            &was["completions"],
            "spec.completions",
            errors,
        );
    }
    unchanged(
        &new["completionMode"],
        &was["completionMode"],
        "spec.completionMode",
        errors,
    );
    unchanged(&new["selector"], &was["selector"], "spec.selector", errors);
    // A suspended job that never started may still be told where its pods go.
    let may_move = was["suspend"] == true && old["status"]["startTime"].is_null();
    let mut template = new["template"].clone();
    if may_move {
        for (part, fields) in [
            ("metadata", &["annotations", "labels"][..]),
            (
                "spec",
                &["affinity", "nodeSelector", "schedulingGates", "tolerations"][..],
            ),
        ] {
            let before = &was["template"][part];
            if let Some(map) = template.get_mut(part).and_then(Value::as_object_mut) {
                for name in fields {
                    match before.get(name) {
                        Some(value) => map.insert((*name).to_owned(), value.clone()),
                        None => map.remove(*name),
                    };
                }
            }
        }
    }
    if template != was["template"] {
        let shown = new["template"].clone();
        errors.push(FieldError::invalid(
            "spec.template",
            shown,
            super::IMMUTABLE,
        ));
    }
}

pub(super) fn cron_job(cron: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &cron["spec"];
    check_schedule(text(&spec["schedule"]), &mut errors);
    let name = text(&cron["metadata"]["name"]);
    if name.len() > CRON_NAME_MAX {
        let detail = format!("must be no more than {CRON_NAME_MAX} characters");
        errors.push(FieldError::invalid("metadata.name", name, detail));
    }
    let policies = ["Allow", "Forbid", "Replace"];
    one_of(
        &spec["concurrencyPolicy"],
        "spec.concurrencyPolicy",
        &policies,
        &mut errors,
    );
    let mut inner = spec["jobTemplate"]["spec"].clone();
    if inner.is_object() && inner["completionMode"].is_null() {
        inner["completionMode"] = "NonIndexed".into();
    }
    job_spec(&inner, "spec.jobTemplate.spec", &mut errors);
    errors
}

fn check_schedule(schedule: &str, errors: &mut Vec<FieldError>) {
    let at = "spec.schedule";
    if schedule.is_empty() {
        errors.push(FieldError::required(at, ""));
        return;
    }
    if schedule.contains("TZ") {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.push(FieldError::invalid(at, schedule, detail));
        return;
    }
    if schedule.starts_with('@') {
        let is_known = DESCRIPTORS.contains(&schedule) || schedule.starts_with("@every ");
        if !is_known {
            let detail = format!("unrecognized descriptor: {schedule}");
            errors.push(FieldError::invalid(at, schedule, detail));
        }
        return;
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != 5 {
        let detail = format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        );
        errors.push(FieldError::invalid(at, schedule, detail));
    }
}

/// How a deployment's pods are replaced.
pub(super) fn strategy(strategy: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let path = "spec.strategy";
    let kinds = ["Recreate", "RollingUpdate"];
    let rolling_at = "spec.strategy.rollingUpdate";
    one_of(
        &strategy["type"],
        &format!("{path}.type"),
        &kinds,
        &mut errors,
    );
    let rolling = &strategy["rollingUpdate"];
    if strategy["type"] == "Recreate" && rolling.is_object() {
        let detail = "may not be specified when strategy `type` is 'Recreate'";
        errors.push(FieldError::forbidden(rolling_at, detail));
    }
    let is_none = |value: &Value| *value == 0 || *value == "0%";
    if is_none(&rolling["maxUnavailable"]) && is_none(&rolling["maxSurge"]) {
        let shown = rolling["maxUnavailable"].clone();
        errors.push(FieldError::invalid(
            &format!("{rolling_at}.maxUnavailable"),
            shown,
            "may not be 0 when `maxSurge` is 0",
        ));
    }
    errors
}

/// Deployments, replica sets, stateful sets and daemon sets.
pub(super) fn replicated(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &object["spec"];
    not_negative(&spec["replicas"], "spec.replicas", &mut errors);
    let labels = &spec["template"]["metadata"]["labels"];
    if !spec["selector"].is_object() {
        errors.push(FieldError::required("spec.selector", ""));
    } else if is_empty(&spec["selector"]) {
        // A replica set is told the same as a deployment.
        let kind = match text(&object["kind"]) {
            "DaemonSet" => "daemonset",
            "StatefulSet" => "statefulset",
            _ => "deployment",
        };
        let detail = format!("empty selector is invalid for {kind}");
        let shown = spec["selector"].clone();
        errors.push(FieldError::invalid("spec.selector", shown, detail));
    } else if !selects(&spec["selector"], labels) {
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(
            "spec.template.metadata.labels",
            labels.clone(),
            detail,
        ));
    }
    errors.extend(pod::spec(&spec["template"]["spec"], "spec.template.spec"));
    let restart = text(&spec["template"]["spec"]["restartPolicy"]);
    if !matches!(restart, "Always" | "") {
        let at = "spec.template.spec.restartPolicy";
        errors.push(FieldError::not_supported(at, restart, &["Always"]));
    }
    errors
}

fn is_empty(selector: &Value) -> bool {
    list(&selector["matchExpressions"]).is_empty()
        && selector["matchLabels"]
            .as_object()
            .is_none_or(|map| map.is_empty())
}

fn selects(selector: &Value, labels: &Value) -> bool {
    let labels = match labels {
        Value::Null => Value::Object(serde_json::Map::new()),
        other => other.clone(),
    };
    match (
        serde_json::from_value::<LabelSelector>(selector.clone()),
        serde_json::from_value(labels),
    ) {
        (Ok(selector), Ok(labels)) => selector.matches(&labels),
        _ => false,
    }
}

pub(super) fn replicated_update(
    kind: &str,
    object: &Value,
    old: &Value,
    errors: &mut Vec<FieldError>,
) {
    let (new, was) = (&object["spec"], &old["spec"]);
    unchanged(&new["selector"], &was["selector"], "spec.selector", errors);
    if kind == "StatefulSet" {
        for name in ["podManagementPolicy", "serviceName", "volumeClaimTemplates"] {
            if new[name] != was[name] {
                let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
                errors.push(FieldError::forbidden("spec", detail));
                return;
            }
        }
    }
}
