//! Where a pod wants to be: selectors, affinities, tolerations, spreading.

use std::collections::{BTreeMap, BTreeSet};

use api::names;
use serde_json::Value;

use crate::field::FieldError;
use crate::validation::spot::{Faults, Spot};

/// Taints' effects.
const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Checks a label selector.
pub(crate) fn label_selector(selector: &Spot<'_, '_>, faults: &mut Faults) {
    faults.labels(&selector.at("matchLabels"));
    for rule in selector.at("matchExpressions").items() {
        if !is_of_sets(&rule, faults) {
            faults.invalid_text(&rule.at("operator"), "not a valid selector operator");
        }
        faults.name(&rule.at("key"), names::check_qualified);
        for value in rule.at("values").items() {
            faults.name(&value, names::check_label_value);
        }
    }
}

/// Whether a rule's operator is one of sets; one with the wrong number of values is at fault.
fn is_of_sets(rule: &Spot<'_, '_>, faults: &mut Faults) -> bool {
    let values = rule.at("values");
    match rule.at("operator").text() {
        "In" | "NotIn" => {
            if values.is_empty() {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                faults.required(&values, detail);
            }
            true
        }
        "Exists" | "DoesNotExist" => {
            if !values.is_empty() {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                faults.forbidden(&values, detail);
            }
            true
        }
        _ => false,
    }
}

/// Checks a pod's affinities.
pub(super) fn check(affinity: &Spot<'_, '_>, faults: &mut Faults) {
    let node = affinity.at("nodeAffinity");
    let needed = node.at("requiredDuringSchedulingIgnoredDuringExecution");
    if needed.is_there() {
        node_selector(&needed, faults);
    }
    for term in node
        .at("preferredDuringSchedulingIgnoredDuringExecution")
        .items()
    {
        weight(&term.at("weight"), faults);
        node_term(&term.at("preference"), LabelValues::AsTheyAre, faults);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.at(kind);
        for term in pods
            .at("requiredDuringSchedulingIgnoredDuringExecution")
            .items()
        {
            pod_term(&term, faults);
        }
        for term in pods
            .at("preferredDuringSchedulingIgnoredDuringExecution")
            .items()
        {
            weight(&term.at("weight"), faults);
            pod_term(&term.at("podAffinityTerm"), faults);
        }
    }
}

fn weight(at: &Spot<'_, '_>, faults: &mut Faults) {
    if !(1..=100).contains(&at.number()) {
        faults.invalid_as(at, at.number(), "must be in the range 1-100");
    }
}

/// Checks a selector of nodes.
pub(crate) fn node_selector(selector: &Spot<'_, '_>, faults: &mut Faults) {
    let terms = selector.at("nodeSelectorTerms");
    if terms.is_empty() {
        return faults.required(&terms, "must have at least one node selector term");
    }
    for term in terms.items() {
        node_term(&term, LabelValues::Checked, faults);
    }
}

/// Whether the values of a node selector's rules are checked.
#[derive(Clone, Copy, PartialEq)]
enum LabelValues {
    Checked,
    AsTheyAre,
}

fn node_term(term: &Spot<'_, '_>, values: LabelValues, faults: &mut Faults) {
    for rule in term.at("matchExpressions").items() {
        node_rule(&rule, values, faults);
    }
    for rule in term.at("matchFields").items() {
        node_field(&rule, faults);
    }
}

fn node_rule(rule: &Spot<'_, '_>, check: LabelValues, faults: &mut Faults) {
    let values = rule.at("values");
    if matches!(rule.at("operator").text(), "Gt" | "Lt") {
        if values.len() != 1 {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            faults.required(&values, detail);
        }
    } else if !is_of_sets(rule, faults) {
        faults.invalid_text(&rule.at("operator"), "not a valid selector operator");
    }
    faults.name(&rule.at("key"), names::check_qualified);
    if check == LabelValues::Checked {
        for value in values.items() {
            faults.name(&value, names::check_label_value);
        }
    }
}

fn node_field(rule: &Spot<'_, '_>, faults: &mut Faults) {
    let (values, key) = (rule.at("values"), rule.at("key"));
    match rule.at("operator").text() {
        "In" | "NotIn" => {
            if values.len() != 1 {
                let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                faults.required(&values, detail);
            }
        }
        _ => faults.invalid_text(&rule.at("operator"), "not a valid selector operator"),
    }
    if key.text() != "metadata.name" {
        return faults.invalid_text(&key, "not a valid field selector key");
    }
    for value in values.items() {
        faults.name(&value, names::check_subdomain);
    }
}

fn pod_term(term: &Spot<'_, '_>, faults: &mut Faults) {
    label_selector(&term.at("labelSelector"), faults);
    label_selector(&term.at("namespaceSelector"), faults);
    for name in term.at("namespaces").items() {
        faults.name_as(&term.at("namespace"), name.text(), names::check_label);
    }
    label_keys(term, faults);
    let key = term.at("topologyKey");
    if key.is_empty() {
        faults.required(&key, "can not be empty");
    }
    faults.name(&key, names::check_qualified);
}

/// Checks the keys whose values a pod's own labels give.
fn label_keys(term: &Spot<'_, '_>, faults: &mut Faults) {
    let selector = term.at("labelSelector");
    let (same, other) = (term.at("matchLabelKeys"), term.at("mismatchLabelKeys"));
    for keys in [&same, &other] {
        if keys.is_empty() {
            continue;
        }
        if !selector.is_there() {
            faults.forbidden(keys, "must not be specified when labelSelector is not set");
            continue;
        }
        for key in keys.items() {
            faults.name(&key, names::check_qualified);
        }
    }
    let places: BTreeMap<&str, usize> = same
        .items()
        .enumerate()
        .map(|(index, key)| (key.text(), index))
        .collect();
    let labels = selector.at("matchLabels");
    let mut chosen: BTreeSet<&str> = labels.entries().map(|(key, _)| key).collect();
    for rule in selector.at("matchExpressions").items() {
        let key = rule.at("key").text();
        if let Some(index) = places.get(key).filter(|_| chosen.contains(key)) {
            // The real server names the place in the term, not in the list of keys.
            let detail = "exists in both matchLabelKeys and labelSelector";
            faults.invalid_as(&term.item(*index), key, detail);
        }
        chosen.insert(key);
    }
    let others: BTreeSet<&str> = other.items().map(|key| key.text()).collect();
    for key in same.items().filter(|key| others.contains(key.text())) {
        let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
        faults.invalid_text(&key, detail);
    }
}

/// Checks how pods are spread.
pub(super) fn spread(list: &Spot<'_, '_>, faults: &mut Faults) {
    let kind = |one: &Value| (one["topologyKey"].clone(), one["whenUnsatisfiable"].clone());
    let all = list.value.as_array().map_or(&[][..], Vec::as_slice);
    for (index, one) in list.items().enumerate() {
        faults.positive(&one.at("maxSkew"));
        let key = one.at("topologyKey");
        if key.is_empty() {
            faults.required(&key, "can not be empty");
        }
        let action = one.at("whenUnsatisfiable");
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        if !actions.contains(&action.text()) {
            faults.not_supported(&action, &actions);
        }
        if all[index + 1..]
            .iter()
            .any(|later| kind(later) == kind(one.value))
        {
            let shown = format!("{{{}, {}}}", key.text(), action.text());
            faults.duplicate(&one.at("{topologyKey, whenUnsatisfiable}"), shown);
        }
        let domains = one.at("minDomains");
        if domains.is_there() {
            faults.positive(&domains);
            if action.text() != "DoNotSchedule" {
                let detail = format!(
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}",
                    action.text()
                );
                faults.invalid_as(&domains, domains.number(), detail);
            }
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            faults.known(&one.at(policy), &["Honor", "Ignore"]);
        }
        label_keys(&one, faults);
        label_selector(&one.at("labelSelector"), faults);
    }
}

/// Checks a pod's tolerations.
pub(crate) fn tolerations(list: &Spot<'_, '_>, faults: &mut Faults) {
    for one in list.items() {
        let (key, operator) = (one.at("key"), one.at("operator"));
        let (value, effect) = (one.at("value"), one.at("effect"));
        faults.name_if(&key, names::check_qualified);
        if key.is_empty() && operator.text() != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            faults.invalid_text(&operator, detail);
        }
        if one.at("tolerationSeconds").is_there() && effect.text() != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            faults.invalid_text(&effect, detail);
        }
        match operator.text() {
            "Equal" | "" => {
                let wrong = names::check_label_value(value.text());
                if !wrong.is_empty() {
                    faults.invalid_as(&operator, value.text(), wrong.join(";"));
                }
            }
            "Exists" => {
                if !value.is_empty() {
                    let detail = "value must be empty when `operator` is 'Exists'";
                    faults.invalid_as(&operator, value.text(), detail);
                }
            }
            "Lt" | "Gt" => faults.not_supported(&operator, &["Equal", "Exists", "Lt", "Gt"]),
            _ => faults.not_supported(&operator, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            faults.known(&effect, EFFECTS);
        }
    }
}

/// Checks a node's taints.
pub(crate) fn taints(list: &Spot<'_, '_>, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for one in list.items() {
        let (key, effect) = (one.at("key"), one.at("effect"));
        faults.name(&key, names::check_qualified);
        let value = one.at("value");
        let wrong = names::check_label_value(value.text());
        if !wrong.is_empty() {
            faults.invalid_as(&value, value.text(), wrong.join(";"));
        }
        faults.one_of(&effect, EFFECTS);
        if !seen.insert((key.text(), effect.text())) {
            let shown = serde_json::json!({
                "Effect": effect.text(),
                "Key": key.text(),
                "TimeAdded": one.value["timeAdded"],
                "Value": value.text(),
            });
            let mut fault = FieldError::duplicate(&one.path(), shown);
            fault.detail = "taints must be unique by key and effect pair".to_owned();
            faults.push(fault);
        }
    }
}
