//! Requests and limits.

use std::collections::{BTreeMap, BTreeSet};

use api::names;
use api::quantity::Quantity;

use crate::validation::spot::{Faults, Spot};

/// Resources that a container may name without a domain.
const CONTAINER: &[&str] = &["cpu", "ephemeral-storage", "memory"];
/// Resources that have a name without a domain at all; those a quota can name so.
pub(crate) const STANDARD: &[&str] = &[
    "configmaps",
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "storage",
];
/// Resources that are counted in whole things.
const WHOLE: &[&str] = &[
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

pub(crate) fn is_huge(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// A resource of Kubernetes itself.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// A resource of somebody else's domain.
pub(crate) fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::check_qualified(&format!("requests.{name}")).is_empty()
}

/// Whether more of it may be promised than there is.
pub(crate) fn overcommits(name: &str) -> bool {
    is_native(name) && !is_huge(name)
}

/// Checks the name of any resource.
pub(crate) fn resource_name(at: &Spot<'_, '_>, name: &str, faults: &mut Faults) {
    let before = faults.len();
    faults.name_as(at, name, names::check_qualified);
    let is_known = name.contains('/')
        || is_huge(name)
        || name.starts_with("requests.hugepages-")
        || STANDARD.contains(&name);
    if faults.len() == before && !is_known {
        faults.invalid_as(
            at,
            name,
            "must be a standard resource type or fully qualified",
        );
    }
}

/// Checks the name of a resource that a container has.
pub(crate) fn container_resource_name(at: &Spot<'_, '_>, name: &str, faults: &mut Faults) {
    resource_name(at, name, faults);
    if name.split('/').count() == 1 {
        if !CONTAINER.contains(&name) && !is_huge(name) {
            faults.invalid_as(at, name, "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        let detail = "doesn't follow extended resource name standard";
        faults.invalid_as(at, name, detail);
    }
}

fn pod_resource_name(at: &Spot<'_, '_>, name: &str, faults: &mut Faults) {
    let before = faults.len();
    resource_name(at, name, faults);
    if faults.len() == before && !matches!(name, "cpu" | "memory") && !is_huge(name) {
        let fault = crate::field::FieldError::not_supported(
            &at.path(),
            name,
            &["cpu", "hugepages-", "memory"],
        );
        faults.push(fault);
    }
}

/// Checks an amount of a resource.
pub(crate) fn amount(at: &Spot<'_, '_>, name: &str, faults: &mut Faults) {
    let Some(quantity) = at.quantity() else {
        return;
    };
    if quantity.nanos() < 0 {
        let detail = "must be greater than or equal to 0";
        faults.invalid_as(at, quantity.canonical(), detail);
    }
    let is_counted = WHOLE.contains(&name) || is_extended(name);
    if is_counted && !quantity.is_whole() {
        faults.invalid_as(at, quantity.canonical(), "must be an integer");
    }
}

/// What checks a name.
type NameRule = fn(&Spot<'_, '_>, &str, &mut Faults);

/// Checks a container's requests and limits.
pub(super) fn of_container(resources: &Spot<'_, '_>, claims: &BTreeSet<&str>, faults: &mut Faults) {
    if resources.is_there() {
        check(resources, container_resource_name, claims, faults);
    }
}

fn check(resources: &Spot<'_, '_>, rule: NameRule, claims: &BTreeSet<&str>, faults: &mut Faults) {
    let (limits, requests) = (resources.at("limits"), resources.at("requests"));
    let (mut has_huge, mut has_compute) = (false, false);
    let mut seen = |name: &str| {
        has_huge |= is_huge(name);
        has_compute |= matches!(name, "cpu" | "memory");
    };
    for (name, at) in limits.entries() {
        rule(&at, name, faults);
        amount(&at, name, faults);
        huge(&at, name, faults);
        seen(name);
    }
    for (name, at) in requests.entries() {
        rule(&at, name, faults);
        amount(&at, name, faults);
        match (at.quantity(), limits.at(name).quantity()) {
            (Some(asked), Some(limit)) => {
                let rule = if asked.nanos() != limit.nanos() && !overcommits(name) {
                    "equal to"
                } else if asked.nanos() > limit.nanos() {
                    "less than or equal to"
                } else {
                    ""
                };
                if !rule.is_empty() {
                    let detail = format!("must be {rule} {name} limit of {}", limit.canonical());
                    faults.invalid_as(&requests, asked.canonical(), detail);
                }
            }
            (Some(_), None) if !overcommits(name) => {
                faults.required(
                    &limits,
                    "Limit must be set for non overcommitable resources",
                );
            }
            _ => {}
        }
        huge(&at, name, faults);
        seen(name);
    }
    if has_huge && !has_compute {
        faults.forbidden(resources, "HugePages require cpu or memory");
    }
    claim_names(&resources.at("claims"), claims, faults);
}

fn huge(at: &Spot<'_, '_>, name: &str, faults: &mut Faults) {
    let (Some(size), Some(amount)) = (name.strip_prefix("hugepages-"), at.quantity()) else {
        return;
    };
    let divides = Quantity::parse(size).is_ok_and(|page| {
        page.value() > 0 && page.is_whole() && amount.value() % page.value() == 0
    });
    if !divides {
        let amount = amount.canonical();
        let detail = format!("{amount} is not positive integer multiple of {name}");
        faults.invalid_as(at, amount, detail);
    }
}

fn claim_names(claims: &Spot<'_, '_>, known: &BTreeSet<&str>, faults: &mut Faults) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for claim in claims.items() {
        let name = claim.at("name").text();
        if name.is_empty() {
            faults.required(&claim, "");
            continue;
        }
        if seen.contains(name) {
            faults.duplicate(&claim, name);
        } else {
            let request = claim.at("request");
            let mut key = name.to_owned();
            if !request.is_empty() {
                faults.name(&request, names::check_label);
                key = format!("{name}/{}", request.text());
            }
            if seen.contains(&key) {
                faults.duplicate(&claim, key.as_str());
            } else if request.is_empty() {
                let parts = format!("{name}/");
                for _ in seen.iter().filter(|one| one.starts_with(&parts)) {
                    faults.duplicate(&claim, name);
                }
            }
            seen.insert(key);
        }
        if !known.contains(name) {
            let mut fault = crate::field::FieldError::not_found(&claim.path(), name);
            fault.detail = "must be one of the names in pod.spec.resourceClaims".to_owned();
            if known.is_empty() {
                fault.detail.push_str(" which is empty");
            } else {
                let known: Vec<&str> = known.iter().copied().collect();
                fault.detail.push_str(&format!(": {}", known.join(", ")));
            }
            faults.push(fault);
        }
    }
}

/// Checks the resources of a whole pod against those of its containers.
pub(super) fn of_pod(spec: &Spot<'_, '_>, claims: &BTreeSet<&str>, faults: &mut Faults) {
    let resources = spec.at("resources");
    if !resources.is_there() {
        return;
    }
    if spec.at("os").at("name").text() == "windows" {
        return faults.forbidden(&resources, "may not be set for a windows pod");
    }
    if resources.at("claims").is_there() {
        let detail = "claims may not be set for Resources at pod-level";
        faults.forbidden(&resources.at("claims"), detail);
    }
    check(&resources, pod_resource_name, claims, faults);
    for (name, asked) in container_requests(spec) {
        let requests = resources.at("requests");
        let at = requests.key(name);
        if let Some(given) = at.quantity().filter(|given| asked.nanos() > given.nanos()) {
            let detail = format!(
                "must be greater than or equal to aggregate container requests of {}",
                asked.canonical()
            );
            faults.invalid_as(&at, given.canonical(), detail);
        }
    }
    let containers = resources.called("", "containers");
    for (index, container) in spec.at("containers").items().enumerate() {
        for (name, at) in container.at("resources").at("limits").entries() {
            let whole = resources.at("limits").at(name).quantity();
            if let (Some(limit), Some(whole)) = (at.quantity(), whole)
                && limit.nanos() > whole.nanos()
            {
                let detail = format!(
                    "must be less than or equal to pod limits of {}",
                    whole.canonical()
                );
                let at = containers.item(index);
                let at = at.key(name);
                faults.invalid_as(&at.at("limits"), limit.canonical(), detail);
            }
        }
    }
}

/// What the containers of a spec request together: those that run side by side are added, an init
/// container counts for its own while.
fn container_requests<'v>(spec: &Spot<'v, '_>) -> BTreeMap<&'v str, Quantity> {
    let mut sum: BTreeMap<&str, Quantity> = BTreeMap::new();
    for container in spec.at("containers").items() {
        for (name, at) in container.at("resources").at("requests").entries() {
            if let Some(asked) = at.quantity() {
                match sum.get_mut(name) {
                    Some(sum) => sum.add(&asked),
                    None => {
                        sum.insert(name, asked);
                    }
                }
            }
        }
    }
    for container in spec.at("initContainers").items() {
        for (name, at) in container.at("resources").at("requests").entries() {
            if let Some(asked) = at.quantity()
                && sum.get(name).is_none_or(|sum| sum.nanos() < asked.nanos())
            {
                sum.insert(name, asked);
            }
        }
    }
    sum
}
