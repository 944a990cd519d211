//! Jobs and cron jobs.

pub(super) mod status;

use std::collections::BTreeSet;

use api::names;
use api::selector::LabelSelector;
use serde_json::{Value, json};

use super::pod::affinity::label_selector;
use super::spot::{Faults, Spot};
use super::{IMMUTABLE, format, list, meta, pod, same, schedule, text};

/// Most pods at a time, and most failed indexes, of an indexed job.
const INDEXED_MAX: i64 = 100_000;
/// The same where there are more completions than that.
const MANY_MAX: i64 = 10_000;
/// Most rules of a policy.
const RULES_MAX: i64 = 20;
/// Most exit codes of a rule.
const CODES_MAX: i64 = 255;
/// Longest name of a job's controller.
const MANAGER_BYTES_MAX: i64 = 63;
/// Longest list of succeeded indexes.
const INDEXES_BYTES_MAX: i64 = 64 * 1024;
/// Longest name of a cron job: its jobs' names get eleven letters more.
const CRON_NAME_MAX: usize = 52;

/// Checks a new job.
pub(super) fn create(job: &Spot<'_, '_>, faults: &mut Faults) {
    whole(job, faults);
}

fn whole(job: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(job, names::check_subdomain, faults);
    generated_selector(job, faults);
    let spec = job.at("spec");
    with_selector(&spec, faults);
    let metadata = job.at("metadata");
    let name = metadata.at("name");
    if spec.at("completionMode").text() == "Indexed"
        && let Some(last) = spec.at("completions").maybe().filter(|count| *count > 0)
    {
        // The last pod's host name is the longest.
        let host = format!("{}-{}", name.text(), last - 1);
        if !names::check_label(&host).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {host}");
            faults.invalid_text(&name, &detail);
        }
    }
}

/// Labels that a job gives its pods, with where their values are.
const LABELS: &[(&str, &str)] = &[
    ("controller-uid", "uid"),
    ("job-name", "name"),
    ("batch.kubernetes.io/controller-uid", "uid"),
    ("batch.kubernetes.io/job-name", "name"),
];

fn generated_selector(job: &Spot<'_, '_>, faults: &mut Faults) {
    let spec = job.at("spec");
    let selector = spec.at("selector");
    if spec.at("manualSelector").is_true() || !selector.is_there() {
        return;
    }
    let meta = &job.value["metadata"];
    let template = spec.at("template");
    let metadata = template.at("metadata");
    let labels = metadata.at("labels");
    for (key, from) in LABELS {
        let (found, wanted) = (labels.value.get(*key), text(&meta[from]));
        match found.and_then(Value::as_str) {
            None => {
                let detail = format!("must be '{wanted}'");
                faults.required(&labels.key(key), &detail);
            }
            Some(found) if found != wanted => {
                let detail = format!("must be '{wanted}'");
                let shown = labels.value.clone();
                faults.invalid_as(&labels.key(key), shown, detail);
            }
            Some(_) => {}
        }
    }
    let expected: serde_json::Map<String, Value> = LABELS
        .iter()
        .map(|(key, from)| ((*key).to_owned(), meta[from].clone()))
        .collect();
    if selects(selector.value, &Value::Object(expected)) == Some(false) {
        faults.invalid(&selector, "`selector` not auto-generated");
    }
}

/// Whether a selector chooses these labels; nothing where it is no selector.
pub(super) fn selects(selector: &Value, labels: &Value) -> Option<bool> {
    let labels = match labels {
        Value::Null => json!({}),
        other => other.clone(),
    };
    let selector: LabelSelector = serde_json::from_value(selector.clone()).ok()?;
    selector.query().ok()?;
    Some(selector.matches(&serde_json::from_value(labels).ok()?))
}

fn with_selector(spec: &Spot<'_, '_>, faults: &mut Faults) {
    of_spec(spec, faults);
    let selector = spec.at("selector");
    if selector.is_there() {
        label_selector(&selector, faults);
    } else {
        faults.required(&selector, "");
    }
    let template = spec.at("template");
    let metadata = template.at("metadata");
    let labels = metadata.at("labels");
    // Without a selector nothing is chosen.
    let chosen = if selector.is_there() {
        selects(selector.value, labels.value)
    } else {
        Some(false)
    };
    if chosen == Some(false) {
        faults.invalid(&labels, "`selector` does not match template `labels`");
    }
}

fn of_spec(spec: &Spot<'_, '_>, faults: &mut Faults) {
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    faults.none_negative(spec, &counts);
    let (per_index, failed) = (spec.at("backoffLimitPerIndex"), spec.at("maxFailedIndexes"));
    if failed.is_there() && !per_index.is_there() {
        faults.required(&per_index, "when maxFailedIndexes is specified");
    }
    let manager = spec.at("managedBy");
    if manager.is_there() {
        domain_path(&manager, faults);
        if manager.text().len() as i64 > MANAGER_BYTES_MAX {
            faults.too_long(&manager, MANAGER_BYTES_MAX);
        }
    }
    let mode = spec.at("completionMode");
    faults.known(&mode, &["NonIndexed", "Indexed"]);
    let is_indexed = mode.text() == "Indexed";
    if is_indexed {
        indexed(spec, faults);
    } else if !mode.is_there() || mode.text() == "NonIndexed" {
        for at in [&per_index, &failed].into_iter().filter(|at| at.is_there()) {
            faults.invalid(at, "requires indexed completion mode");
        }
    }
    let failure = spec.at("podFailurePolicy");
    if failure.is_there() {
        failure_policy(spec, &failure.at("rules"), faults);
    }
    let success = spec.at("successPolicy");
    if success.is_there() {
        if is_indexed {
            success_policy(spec, &success.at("rules"), faults);
        } else {
            let shown = success_in_go(success.value);
            faults.invalid_as(&success, shown, "requires indexed completion mode");
        }
    }
    let replacement = spec.at("podReplacementPolicy");
    let policies: &[&str] = match failure.is_there() {
        true => &["Failed"],
        false => &["Failed", "TerminatingOrFailed"],
    };
    faults.known(&replacement, policies);
    let template = spec.at("template");
    pod::template(&template, faults);
    let inner = template.at("spec");
    let restart = inner.at("restartPolicy");
    match restart.text() {
        "" | "Always" => {
            let detail = "valid values: \"OnFailure\", \"Never\"";
            faults.required(&restart, detail);
        }
        "Never" => {}
        "OnFailure" if failure.is_there() => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            faults.invalid_text(&restart, detail);
        }
        "OnFailure" => {}
        _ => faults.not_supported(&restart, &["OnFailure", "Never"]),
    }
}

/// `example.com/path`: a domain and a path behind it.
pub(super) fn domain_path(at: &Spot<'_, '_>, faults: &mut Faults) {
    if at.is_empty() {
        return faults.required(at, "");
    }
    match at.text().split_once('/') {
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
            faults.name_as(at, domain, names::check_subdomain);
            faults.name_as(at, path, format::http_path);
        }
        _ => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            faults.invalid_text(at, detail);
        }
    }
}

fn indexed(spec: &Spot<'_, '_>, faults: &mut Faults) {
    let (parallel, completions) = (spec.at("parallelism"), spec.at("completions"));
    let failed = spec.at("maxFailedIndexes");
    if !completions.is_there() {
        faults.required(&completions, "when completion mode is Indexed");
    }
    if parallel.number() > INDEXED_MAX {
        let detail =
            format!("must be less than or equal to {INDEXED_MAX} when completion mode is Indexed");
        faults.invalid(&parallel, &detail);
    }
    if let (Some(all), Some(most)) = (completions.maybe(), failed.maybe())
        && most > all
    {
        faults.invalid(&failed, "must be less than or equal to completions");
    }
    if failed.number() > INDEXED_MAX {
        let detail = format!("must be less than or equal to {INDEXED_MAX}");
        faults.invalid(&failed, &detail);
    }
    if completions.number() <= INDEXED_MAX || !spec.at("backoffLimitPerIndex").is_there() {
        return;
    }
    if !failed.is_there() {
        let detail = format!("must be specified when completions is above {INDEXED_MAX}");
        faults.required(&failed, &detail);
    }
    let detail = format!(
        "must be less than or equal to {MANY_MAX} when completions are above {INDEXED_MAX} and used with backoff limit per index"
    );
    for at in [&parallel, &failed]
        .into_iter()
        .filter(|at| at.number() > MANY_MAX)
    {
        faults.invalid(at, &detail);
    }
}

fn failure_policy(spec: &Spot<'_, '_>, rules: &Spot<'_, '_>, faults: &mut Faults) {
    if rules.len() as i64 > RULES_MAX {
        faults.too_many(rules, RULES_MAX);
    }
    let template = &spec.value["template"]["spec"];
    let lists = ["containers", "initContainers"];
    let names: BTreeSet<&str> = lists
        .iter()
        .flat_map(|kind| list(&template[kind]))
        .map(|one| text(&one["name"]))
        .collect();
    for rule in rules.items() {
        let action = rule.at("action");
        let actions = ["Count", "FailIndex", "FailJob", "Ignore"];
        if action.is_empty() {
            faults.required(
                &action,
                &format!("valid values: {actions:?}").replace(", ", " "),
            );
        } else if action.text() == "FailIndex" {
            if !spec.at("backoffLimitPerIndex").is_there() {
                let detail = "requires the backoffLimitPerIndex to be set";
                faults.invalid_text(&action, detail);
            }
        } else {
            faults.known(&action, &actions);
        }
        let (codes, conditions) = (rule.at("onExitCodes"), rule.at("onPodConditions"));
        if codes.is_there() {
            exit_codes(&codes, &names, faults);
        }
        pod_conditions(&conditions, faults);
        match (codes.is_there(), !conditions.is_empty()) {
            (true, true) => {
                let detail = "specifying both OnExitCodes and OnPodConditions is not supported";
                faults.wrong(&rule, detail);
            }
            (false, false) => {
                let detail = "specifying one of OnExitCodes and OnPodConditions is required";
                faults.wrong(&rule, detail);
            }
            _ => {}
        }
    }
}

fn exit_codes(codes: &Spot<'_, '_>, names: &BTreeSet<&str>, faults: &mut Faults) {
    let operator = codes.at("operator");
    if operator.is_empty() {
        faults.required(&operator, "valid values: [\"In\" \"NotIn\"]");
    } else {
        faults.known(&operator, &["In", "NotIn"]);
    }
    let container = codes.at("containerName");
    if container.is_there() && !names.contains(container.text()) {
        let detail = "must be one of the container or initContainer names in the pod template";
        faults.invalid(&container, detail);
    }
    let values = codes.at("values");
    if values.is_empty() {
        faults.invalid(&values, "at least one value is required");
    } else if values.len() as i64 > CODES_MAX {
        faults.too_many(&values, CODES_MAX);
    }
    let (mut seen, mut last, mut is_ordered) = (BTreeSet::new(), i64::MIN, true);
    for value in values.items() {
        let number = value.number();
        if operator.text() == "In" && number == 0 {
            faults.invalid_as(&value, number, "must not be 0 for the In operator");
        }
        if !seen.insert(number) {
            faults.duplicate(&value, number);
        }
        is_ordered &= last <= number;
        last = number;
    }
    if !is_ordered {
        faults.invalid(&values, "must be ordered");
    }
}

fn pod_conditions(conditions: &Spot<'_, '_>, faults: &mut Faults) {
    if conditions.len() as i64 > RULES_MAX {
        faults.too_many(conditions, RULES_MAX);
    }
    for condition in conditions.items() {
        faults.name(&condition.at("type"), names::check_qualified);
        let status = condition.at("status");
        if status.is_empty() {
            faults.required(&status, "valid values: [\"False\" \"True\" \"Unknown\"]");
        } else {
            faults.known(&status, &["False", "True", "Unknown"]);
        }
    }
}

fn success_policy(spec: &Spot<'_, '_>, rules: &Spot<'_, '_>, faults: &mut Faults) {
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        faults.required(rules, detail);
    }
    if rules.len() as i64 > RULES_MAX {
        faults.too_many(rules, RULES_MAX);
    }
    let all = spec.at("completions").number();
    for rule in rules.items() {
        let (count, indexes) = (rule.at("succeededCount"), rule.at("succeededIndexes"));
        if !count.is_there() && !indexes.is_there() {
            let detail = "at least one of succeededCount or succeededIndexes must be specified";
            faults.required(&rule, detail);
        }
        let mut total = 0;
        if indexes.is_there() {
            if indexes.text().len() as i64 > INDEXES_BYTES_MAX {
                faults.too_long(&indexes, INDEXES_BYTES_MAX);
            }
            match count_indexes(indexes.text(), all) {
                Ok(found) => total = found,
                Err(why) => {
                    let detail = format!("error parsing succeededIndexes: {why}");
                    faults.invalid(&indexes, &detail);
                }
            }
        }
        faults.not_negative(&count);
        if count.number() > all {
            let detail = format!(
                "must be less than or equal to {all} (the number of specified completions)"
            );
            faults.invalid(&count, &detail);
        }
        if indexes.is_there() && count.number() > total {
            let detail = format!(
                "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            );
            faults.invalid(&count, &detail);
        }
    }
}

/// How many indexes `1-3,5` stands for.
fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let (mut last, mut total) = (None, 0);
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, end) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!(
                "non-increasing order, previous: {last}, current: {first}"
            ));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

fn interval(part: &str, completions: i64) -> Result<(i64, i64), String> {
    let limits: Vec<&str> = part.split('-').collect();
    if limits.len() > 2 {
        return Err(format!(
            "the fragment {part:?} violates the requirement that an index interval can have at most two parts separated by '-'"
        ));
    }
    let number = |text: &str| -> Result<i64, String> {
        let number: i64 = text
            .parse()
            .map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
        if number >= completions {
            return Err(format!("too large index: {text:?}"));
        }
        Ok(number)
    };
    let first = number(limits[0])?;
    let Some(end) = limits.get(1) else {
        return Ok((first, first));
    };
    let end = number(end)?;
    if first >= end {
        return Err(format!(
            "non-increasing order, previous: {first}, current: {end}"
        ));
    }
    Ok((first, end))
}

/// Checks a changed job: as a new one, and once more with what may not change.
pub(super) fn update(job: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    whole(job, faults);
    meta::update(job, old, faults);
    let (spec, was) = (job.at("spec"), &old["spec"]);
    with_selector(&spec, faults);
    let completions = spec.at("completions");
    if spec.at("completionMode").text() != "Indexed" {
        faults.unchanged(&completions, &was["completions"]);
    } else if *completions.value != was["completions"]
        && completions.is_there()
        && completions.value != spec.at("parallelism").value
    {
        faults.invalid(
            &completions,
            "can only be modified in tandem with spec.parallelism",
        );
    }
    faults.unchanged(&spec.at("selector"), &was["selector"]);
    template_update(job, old, faults);
    let plain: fn(&Value) -> Value = Value::clone;
    for (name, in_go) in [
        ("completionMode", plain),
        ("podFailurePolicy", failure_in_go),
        ("backoffLimitPerIndex", plain),
        ("managedBy", plain),
        ("successPolicy", success_in_go),
    ] {
        let at = spec.at(name);
        if *at.value != was[name] {
            faults.invalid_as(&at, in_go(at.value), IMMUTABLE);
        }
    }
}

/// A policy as Go prints its own form of it, which has names of its own.
fn success_in_go(policy: &Value) -> Value {
    in_go(policy, |rule| {
        json!({
            "SucceededIndexes": rule["succeededIndexes"],
            "SucceededCount": rule["succeededCount"],
        })
    })
}

fn failure_in_go(policy: &Value) -> Value {
    let codes = |codes: &Value| match codes {
        Value::Null => Value::Null,
        codes => json!({
            "ContainerName": codes["containerName"],
            "Operator": codes["operator"],
            "Values": codes["values"],
        }),
    };
    let conditions = |all: &Value| match all.as_array() {
        None => Value::Null,
        Some(all) => all
            .iter()
            .map(|one| json!({ "Type": one["type"], "Status": one["status"] }))
            .collect(),
    };
    in_go(policy, |rule| {
        json!({
            "Action": rule["action"],
            "OnExitCodes": codes(&rule["onExitCodes"]),
            "OnPodConditions": conditions(&rule["onPodConditions"]),
        })
    })
}

fn in_go(policy: &Value, rule: impl Fn(&Value) -> Value) -> Value {
    match policy {
        Value::Null => Value::Null,
        policy => {
            let rules: Vec<Value> = list(&policy["rules"]).iter().map(rule).collect();
            json!({ "Rules": rules })
        }
    }
}

/// A suspended job none of whose pods runs may still be told where its pods go and what they need.
fn template_update(job: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    let spec = job.at("spec");
    let template = spec.at("template");
    let mut was = old["spec"]["template"].clone();
    let is_suspended = old["spec"]["suspend"] == true;
    let is_free = is_suspended && may_still_change(old);
    if is_free {
        let new = template.value;
        for part in ["annotations", "labels"] {
            copy(&mut was["metadata"], &new["metadata"], part);
        }
        for part in ["nodeSelector", "schedulingGates", "tolerations"] {
            copy(&mut was["spec"], &new["spec"], part);
        }
        let node = &new["spec"]["affinity"]["nodeAffinity"];
        if !node.is_null() || was["spec"]["affinity"].is_object() {
            if !was["spec"]["affinity"].is_object() {
                was["spec"]["affinity"] = json!({});
            }
            copy(
                &mut was["spec"]["affinity"],
                &new["spec"]["affinity"],
                "nodeAffinity",
            );
            if new["spec"]["affinity"].is_null() && was["spec"]["affinity"] == json!({}) {
                copy(&mut was["spec"], &new["spec"], "affinity");
            }
        }
        for kind in ["containers", "initContainers"] {
            let news = list(&new["spec"][kind]);
            let olds = was["spec"][kind].as_array_mut();
            for (old, new) in olds.into_iter().flatten().zip(news) {
                if old["name"] == new["name"] {
                    old["resources"] = new["resources"].clone();
                }
            }
        }
        let inner = template.at("spec");
        if !same(inner.value, &was["spec"]) {
            let path = "spec.template.spec";
            faults.invalid(&Spot::new(inner.value, path), IMMUTABLE);
        }
        return;
    }
    if !same(template.value, &was) {
        faults.invalid(&template, IMMUTABLE);
    }
}

fn may_still_change(job: &Value) -> bool {
    let conditions = list(&job["status"]["conditions"]);
    let is_suspended = conditions
        .iter()
        .any(|one| one["type"] == "Suspended" && one["status"] == "True");
    let never_started = job["status"]["startTime"].is_null();
    job["status"]["active"].as_i64().unwrap_or(0) == 0 && (never_started || is_suspended)
}

fn copy(to: &mut Value, from: &Value, name: &str) {
    if let Some(map) = to.as_object_mut() {
        match from.get(name) {
            Some(value) => map.insert(name.to_owned(), value.clone()),
            None => map.remove(name),
        };
    }
}

/// Checks a new cron job.
pub(super) fn cron(cron: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(cron, names::check_subdomain, faults);
    cron_spec(&cron.at("spec"), &Value::Null, faults);
    let metadata = cron.at("metadata");
    let name = metadata.at("name");
    if name.text().len() > CRON_NAME_MAX {
        let detail = format!("must be no more than {CRON_NAME_MAX} characters");
        faults.invalid_text(&name, &detail);
    }
}

pub(super) fn cron_update(cron: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(cron, old, faults);
    cron_spec(&cron.at("spec"), &old["spec"], faults);
}

fn cron_spec(spec: &Spot<'_, '_>, was: &Value, faults: &mut Faults) {
    let (at, zone) = (spec.at("schedule"), spec.at("timeZone"));
    if at.is_empty() {
        faults.required(&at, "");
    } else {
        if let Err(why) = schedule::check(at.text()) {
            faults.invalid_text(&at, &why);
        }
        let had_zone = text(&was["schedule"]).contains("TZ");
        if at.text().contains("TZ") && !had_zone {
            let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            faults.invalid_text(&at, detail);
        } else if at.text().contains("TZ") && zone.is_there() {
            let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
            faults.invalid_text(&at, detail);
        }
    }
    faults.not_negative(&spec.at("startingDeadlineSeconds"));
    if zone.is_there() && (was.is_null() || was["timeZone"] != *zone.value) {
        for why in schedule::check_zone(zone.text()) {
            faults.invalid_text(&zone, &why);
        }
    }
    let policies = ["Allow", "Forbid", "Replace"];
    faults.one_of(&spec.at("concurrencyPolicy"), &policies);
    let template = spec.at("jobTemplate");
    let inner = template.at("spec");
    of_spec(&inner, faults);
    let selector = inner.at("selector");
    if selector.is_there() {
        faults.invalid(&selector, "`selector` will be auto-generated");
    }
    let manual = inner.at("manualSelector");
    if manual.is_true() {
        let path = manual.path();
        let fault = crate::field::FieldError::not_supported(&path, true, &["nil", "false"]);
        faults.push(fault);
    }
    faults.not_negative(&spec.at("successfulJobsHistoryLimit"));
    faults.not_negative(&spec.at("failedJobsHistoryLimit"));
}
