//! Limit ranges and resource quotas.

use std::collections::{BTreeMap, BTreeSet};

use api::names;
use api::quantity::Quantity;
use serde_json::Value;

use super::meta;
use super::pod::resources;
use super::spot::{Faults, Spot};

/// Scopes of a quota.
const SCOPES: &[&str] = &[
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
];
/// Resources of pods that a scope can count.
const POD_COMPUTE: &[&str] = &[
    "cpu",
    "limits.cpu",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.memory",
];

fn is_quota_resource(name: &str) -> bool {
    resources::STANDARD.contains(&name)
        || resources::is_huge(name)
        || name.starts_with("requests.hugepages-")
}

/// Checks a new quota.
pub(super) fn quota(quota: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(quota, names::check_subdomain, faults);
    spec(&quota.at("spec"), faults);
    amounts(&quota.at("status"), faults);
}

fn amounts(of: &Spot<'_, '_>, faults: &mut Faults) {
    for part in ["hard", "used"] {
        for (name, at) in of.at(part).entries() {
            resources::resource_name(&at, name, faults);
            if !name.contains('/') && !is_quota_resource(name) {
                faults.invalid_as(&at, name, "must be a standard resource for quota");
            }
            resources::amount(&at, name, faults);
        }
    }
}

fn spec(spec: &Spot<'_, '_>, faults: &mut Faults) {
    amounts(spec, faults);
    let hard: BTreeSet<&str> = spec.at("hard").entries().map(|(name, _)| name).collect();
    let scopes = spec.at("scopes");
    let mut seen = BTreeSet::new();
    for scope in scopes.items() {
        if !SCOPES.contains(&scope.text()) {
            faults.invalid(&scopes, "unsupported scope");
        }
        for _ in hard.iter().filter(|name| !counts(scope.text(), name)) {
            faults.invalid(&scopes, "unsupported scope applied to resource");
        }
        seen.insert(scope.text());
    }
    conflicts(&scopes, scopes.value, &seen, faults);
    let selector = spec.at("scopeSelector");
    if selector.is_there() {
        scope_selector(&selector, scopes.value, &hard, faults);
    }
}

/// Whether a scope can be told of a resource.
fn counts(scope: &str, name: &str) -> bool {
    if !is_quota_resource(name) {
        return true;
    }
    match scope {
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => matches!(name, "persistentvolumeclaims" | "requests.storage"),
        _ if SCOPES.contains(&scope) => name == "pods" || POD_COMPUTE.contains(&name),
        _ => true,
    }
}

fn conflicts(at: &Spot<'_, '_>, shown: &Value, seen: &BTreeSet<&str>, faults: &mut Faults) {
    for pair in [
        ["BestEffort", "NotBestEffort"],
        ["Terminating", "NotTerminating"],
    ] {
        if pair.iter().all(|scope| seen.contains(scope)) {
            faults.invalid_as(at, shown.clone(), "conflicting scopes");
        }
    }
}

fn scope_selector(
    selector: &Spot<'_, '_>,
    scopes: &Value,
    hard: &BTreeSet<&str>,
    faults: &mut Faults,
) {
    let rules = selector.at("matchExpressions");
    let mut seen = BTreeSet::new();
    for rule in rules.items() {
        // The real server names the list, not the rule.
        let (scope, operator) = (rule.at("scopeName"), rule.at("operator").text());
        let values = rule.at("values");
        if !SCOPES.contains(&scope.text()) {
            faults.invalid_as(&rules.at("scopeName"), scope.text(), "unsupported scope");
        }
        for _ in hard.iter().filter(|name| !counts(scope.text(), name)) {
            let detail = "unsupported scope applied to resource";
            faults.invalid_as(&rules, selector.value.clone(), detail);
        }
        let has_values = matches!(scope.text(), "PriorityClass" | "VolumeAttributesClass");
        if SCOPES.contains(&scope.text()) && !has_values && operator != "Exists" {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            faults.invalid_as(&rules.at("operator"), operator, detail);
        }
        match operator {
            "In" | "NotIn" => {
                if values.is_empty() {
                    let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                    faults.required(&rules.at("values"), detail);
                }
            }
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                    faults.invalid_as(&rules.at("values"), values.value.clone(), detail);
                }
            }
            _ => {
                let detail = "not a valid selector operator";
                faults.invalid_as(&rules.at("operator"), operator, detail);
            }
        }
        seen.insert(scope.text());
    }
    conflicts(&rules, scopes, &seen, faults);
}

/// Checks a changed quota.
pub(super) fn quota_update(quota: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(quota, old, faults);
    let at = quota.at("spec");
    spec(&at, faults);
    let set = |spec: &Value| -> BTreeSet<String> {
        super::list(&spec["scopes"])
            .iter()
            .map(Value::to_string)
            .collect()
    };
    if set(at.value) != set(&old["spec"]) {
        faults.invalid(&at.at("scopes"), super::IMMUTABLE);
    }
}

/// Checks what is said of a quota's use.
pub(super) fn quota_status(quota: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(quota, old, faults);
    amounts(&quota.at("status"), faults);
}

/// Checks a limit range.
pub(super) fn limit_range(range: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(range, names::check_subdomain, faults);
    let mut seen = BTreeSet::new();
    for limit in range.at("spec").at("limits").items() {
        let kind = limit.at("type");
        let before = faults.len();
        faults.name(&kind, names::check_qualified);
        let kinds = ["Container", "PersistentVolumeClaim", "Pod"];
        let is_known = kind.text().contains('/') || kinds.contains(&kind.text());
        if faults.len() == before && !is_known {
            let detail = "must be a standard limit type or fully qualified";
            faults.invalid_text(&kind, detail);
        }
        if !seen.insert(kind.text()) {
            faults.duplicate(&kind, kind.text());
        }
        one_limit(&limit, faults);
    }
}

pub(super) fn limit_range_update(range: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    let _ = old;
    limit_range(range, faults);
}

type Amounts<'v> = BTreeMap<&'v str, Quantity>;

fn one_limit(limit: &Spot<'_, '_>, faults: &mut Faults) {
    let kind = limit.at("type").text();
    let mut keys = BTreeSet::new();
    let mut read = |part: &str, faults: &mut Faults| -> Amounts<'_> {
        let mut amounts = Amounts::new();
        for (name, at) in limit.at(part).entries() {
            match kind {
                "Pod" | "Container" => resources::container_resource_name(&at, name, faults),
                _ => resources::resource_name(&at, name, faults),
            }
            keys.insert(name);
            if let Some(quantity) = at.quantity() {
                amounts.insert(name, quantity);
            }
        }
        amounts
    };
    let max = read("max", faults);
    let min = read("min", faults);
    let (mut given, mut asked) = (Amounts::new(), Amounts::new());
    if kind == "Pod" {
        for part in ["default", "defaultRequest"] {
            if !limit.at(part).is_empty() {
                let detail = "may not be specified when `type` is 'Pod'";
                faults.forbidden(&limit.at(part), detail);
            }
        }
    } else {
        given = read("default", faults);
        asked = read("defaultRequest", faults);
    }
    if kind == "PersistentVolumeClaim"
        && !min.contains_key("storage")
        && !max.contains_key("storage")
    {
        let detail =
            "either minimum or maximum storage value is required, but neither was provided";
        faults.required(&limit.at("limits"), detail);
    }
    let ratio = read("maxLimitRequestRatio", faults);
    for key in keys {
        let of = Bounds {
            min: min.get(key),
            max: max.get(key),
            given: given.get(key),
            asked: asked.get(key),
            ratio: ratio.get(key),
        };
        of.check(limit, key, faults);
    }
}

/// What a limit says of one resource.
struct Bounds<'a> {
    min: Option<&'a Quantity>,
    max: Option<&'a Quantity>,
    given: Option<&'a Quantity>,
    asked: Option<&'a Quantity>,
    ratio: Option<&'a Quantity>,
}

impl Bounds<'_> {
    fn check(&self, limit: &Spot<'_, '_>, key: &str, faults: &mut Faults) {
        // Field at fault, smaller and greater side with their names, and which of them is shown.
        let rows = [
            (
                "min",
                "min value",
                self.min,
                "max value",
                self.max,
                self.min,
            ),
            (
                "defaultRequest",
                "min value",
                self.min,
                "default request value",
                self.asked,
                self.asked,
            ),
            (
                "defaultRequest",
                "default request value",
                self.asked,
                "max value",
                self.max,
                self.asked,
            ),
            (
                "defaultRequest",
                "default request value",
                self.asked,
                "default limit value",
                self.given,
                self.asked,
            ),
            (
                "default",
                "min value",
                self.min,
                "default value",
                self.given,
                self.min,
            ),
            (
                "default",
                "default value",
                self.given,
                "max value",
                self.max,
                self.max,
            ),
        ];
        for (field, low_name, low, high_name, high, shown) in rows {
            let (Some(low), Some(high), Some(shown)) = (low, high, shown) else {
                continue;
            };
            if low.nanos() > high.nanos() {
                let detail = format!(
                    "{low_name} {} is greater than {high_name} {}",
                    low.canonical(),
                    high.canonical()
                );
                let at = limit.at(field);
                faults.invalid_as(&at.key(key), shown.canonical(), detail);
            }
        }
        self.check_ratio(limit, key, faults);
        if let (Some(given), Some(asked)) = (self.given, self.asked)
            && !resources::overcommits(key)
            && given.nanos() != asked.nanos()
        {
            let detail = format!(
                "default value {} must equal to defaultRequest value {} in {key}",
                given.canonical(),
                asked.canonical()
            );
            let at = limit.at("defaultRequest");
            faults.invalid_as(&at.key(key), asked.canonical(), detail);
        }
    }

    fn check_ratio(&self, limit: &Spot<'_, '_>, key: &str, faults: &mut Faults) {
        let Some(ratio) = self.ratio else {
            return;
        };
        let at = limit.at("maxLimitRequestRatio");
        let at = at.key(key);
        let shown = ratio.canonical();
        if ratio.nanos() < 1_000_000_000 {
            let detail = format!("ratio {shown} is less than 1");
            faults.invalid_as(&at, shown.as_str(), detail);
        }
        if let (Some(min), Some(max)) = (self.min, self.max) {
            let most = max.milli_value() as f64 / min.milli_value() as f64;
            if ratio.milli_value() as f64 / 1000.0 > most {
                let detail = format!("ratio {shown} is greater than max/min = {most:.6}");
                faults.invalid_as(&at, shown.as_str(), detail);
            }
        }
    }
}
