//! Disruption budgets and quotas as rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::core::{PodDisruptionBudget, ResourceList, ResourceQuota};
use api::meta::ObjectMeta;
use api::volcano::{
    JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE, TASK_TOPOLOGY_AFFINITY, TASK_TOPOLOGY_ANTI_AFFINITY,
    TASK_TOPOLOGY_ORDER,
};
use model::{
    Amount, Budget, Disruption, Key, Kind, Limits, Portion, Quota, Tables, TaskTopology, Vector,
};

use super::amounts::{amount, is_limit, is_number_of_objects};
use super::constraints;

/// The row of a disruption budget.
pub(super) fn budget(budget: &PodDisruptionBudget) -> Budget {
    let meta = &budget.metadata;
    let selector = budget.spec.selector.as_ref();
    let disrupted = budget.status.disrupted_pods.keys();
    Budget {
        key: Key::new(&*meta.namespace, &*meta.name),
        selector: selector.map(|selector| constraints::selector(Some(selector))),
        allowed: budget.status.disruptions_allowed,
        disrupted: disrupted.map(|name| Arc::from(&**name)).collect(),
    }
}

/// What a gang's annotations say of how many tasks may be missing; the minimum wins. What is neither a
/// number above zero nor a percentage from 1 to 99 says nothing.
pub(super) fn disruption(meta: &ObjectMeta) -> Option<Disruption> {
    let said = |key| meta.annotations.get(key).and_then(|text| portion(text));
    let min = said(JDB_MIN_AVAILABLE).map(Disruption::MinAvailable);
    min.or_else(|| said(JDB_MAX_UNAVAILABLE).map(Disruption::MaxUnavailable))
}

fn portion(text: &str) -> Option<Portion> {
    match text.strip_suffix('%') {
        Some(percent) => {
            let percent = percent.parse().ok()?;
            matches!(percent, 1..=99).then_some(Portion::Percent(percent))
        }
        None => text.parse().ok().filter(|n| *n > 0).map(Portion::Count),
    }
}

/// What a gang's annotations say of which of its tasks are to be together. Whether the tasks that they
/// name are there is not known here.
pub(super) fn task_topology(meta: &ObjectMeta) -> Option<Arc<TaskTopology>> {
    let groups = |key| -> Vec<Vec<Arc<str>>> {
        let text = meta.annotations.get(key).map_or("", |text| &**text);
        let groups = text.split(';').map(|group| names(group).collect());
        groups.filter(|group: &Vec<_>| !group.is_empty()).collect()
    };
    let order = meta.annotations.get(TASK_TOPOLOGY_ORDER);
    let topology = TaskTopology {
        together: groups(TASK_TOPOLOGY_AFFINITY),
        apart: groups(TASK_TOPOLOGY_ANTI_AFFINITY),
        order: order.map(|text| names(text).collect()).unwrap_or_default(),
    };
    (!topology.is_empty()).then(|| Arc::new(topology))
}

fn names(list: &str) -> impl Iterator<Item = Arc<str>> {
    let names = list.split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).map(Arc::from)
}

/// The row of a quota, by what pods request: `requests.cpu` is `cpu`; limits keep their names. A quota for some
/// pods only says nothing about a gang whose pods do not exist yet, nor does one of other objects.
pub(super) fn quota(quota: &ResourceQuota, tables: &mut Tables) -> Option<Quota> {
    if !quota.spec.scopes.is_empty() || quota.spec.scope_selector.is_some() {
        return None;
    }
    let meta = &quota.metadata;
    let written = requested(&quota.spec.hard, tables);
    let hard = by_kind(&written, i64::min);
    let used = by_kind(&requested(&quota.status.used, tables), i64::max);
    Some(Quota {
        key: Key::new(&*meta.namespace, &*meta.name),
        // What is not named has no limit; a limit of nothing is one all the same.
        hard: Limits::of(hard),
        written,
        used: Vector::of(used),
    })
}

/// What a quota's list says of what pods request, and of their limits, by the list's own names.
fn requested(list: &ResourceList, tables: &mut Tables) -> Vec<Amount> {
    let mut amounts = Vec::new();
    for (name, quantity) in list {
        let is_unknown = name.starts_with("limits.") && !is_limit(name);
        if is_unknown || is_number_of_objects(name) {
            continue;
        }
        let resource = name.strip_prefix("requests.").unwrap_or(name);
        let Some(kind) = tables.offered_kind(resource) else {
            continue;
        };
        amounts.push(Amount {
            kind,
            name: Arc::from(&**name),
            value: amount(kind, quantity),
        });
    }
    amounts
}

/// Where a list calls a resource by both of its names `counts` says which amount it is.
fn by_kind(amounts: &[Amount], counts: fn(i64, i64) -> i64) -> BTreeMap<Kind, i64> {
    let mut by_kind = BTreeMap::new();
    for amount in amounts {
        let known = by_kind.entry(amount.kind).or_insert(amount.value);
        *known = counts(*known, amount.value);
    }
    by_kind
}
