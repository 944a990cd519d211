//! ResourceQuotas: what a write uses is charged in that write itself, so that no two writes can
//! share what is left.

use std::collections::{BTreeMap, BTreeSet};

use api::core::{Pod, ResourceList, ResourceQuota, limits_held, requests_held};
use api::kind::Kind;
use api::quantity::Quantity;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::draft::Draft;
use crate::read::key_of;
use crate::status::{Outcome, Refused};
use crate::store::Store;
use crate::write::{Writing, text};

/// Resources of which every container must name its amount once a quota bounds them.
const NAMED: &[&str] = &[
    "cpu",
    "limits.cpu",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.memory",
];
/// Kinds that are also counted under their bare name.
const BARE: &[&str] = &[
    "configmaps",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
];

/// Quotas with what they are charged, by key.
pub(crate) type Charges = Vec<(String, Value)>;

impl Store {
    /// What the quotas of a namespace are charged for a write, or why one of them forbids it.
    pub(crate) fn charge(
        &self,
        writing: &Writing<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Outcome<Charges> {
        let known = writing.row.known;
        let is_measured = matches!(
            known,
            Some(Kind::PersistentVolumeClaim | Kind::Service) // Their updates may use more.
        );
        if !writing.row.is_namespaced() || (old.is_some() && !is_measured) {
            return Ok(Vec::new());
        }
        let quotas = self.all_in("resourcequotas", &writing.target.namespace);
        if quotas.is_empty() {
            return Ok(Vec::new());
        }
        let refuse = |why: &str| {
            let name = text(&object["metadata"]["name"]);
            Err(Refused::forbidden(writing.about(&name), why))
        };
        let pod = match known {
            Some(Kind::Pod) => Pod::deserialize(object).ok(),
            _ => None,
        };
        let mut usage = self.usage(writing, object, pod.as_ref());
        let mut meant = Vec::new();
        for value in quotas {
            let Ok(quota) = ResourceQuota::deserialize(&value) else {
                continue;
            };
            let restricted: BTreeSet<&str> = quota
                .status
                .hard
                .keys()
                .map(|name| &**name)
                .filter(|name| is_of(writing, name))
                .collect();
            if restricted.is_empty() || !is_meant(&quota, pod.as_ref()) {
                continue;
            }
            let name = &quota.metadata.name;
            if let Some(pod) = &pod
                && let Some(missing) = unnamed(pod, &restricted)
            {
                return refuse(&format!("failed quota: {name}: must specify {missing}"));
            }
            let used = &quota.status.used;
            if !restricted.iter().all(|name| used.contains_key(*name)) {
                let names: Vec<&str> = restricted.into_iter().collect();
                return refuse(&format!(
                    "status unknown for quota: {name}, resources: {}",
                    names.join(",")
                ));
            }
            meant.push((value, quota));
        }
        if let Some(old) = old {
            for (name, had) in self.usage(writing, old, None) {
                if let Some(amount) = usage.get_mut(&name) {
                    amount.sub(&had);
                }
            }
        }
        usage.retain(|_, amount| !amount.is_zero() && !amount.is_negative());
        let mut charges = Charges::new();
        for (mut value, quota) in meant {
            let status = &quota.status;
            let mut exceeded = [Vec::new(), Vec::new(), Vec::new()];
            let mut used = Vec::new();
            for (name, asked) in &usage {
                let Some(hard) = status.hard.get(name) else {
                    continue;
                };
                let before = status.used.get(name).cloned().unwrap_or_default();
                let mut after = before.clone();
                after.add(asked);
                if after > *hard {
                    for (list, amount) in exceeded.iter_mut().zip([asked, &before, hard]) {
                        list.push(format!("{name}={amount}"));
                    }
                }
                used.push((name, after));
            }
            let [requested, was_used, limited] = exceeded.map(|list| list.join(","));
            if !requested.is_empty() {
                return refuse(&format!(
                    "exceeded quota: {}, requested: {requested}, used: {was_used}, limited: {limited}",
                    quota.metadata.name
                ));
            }
            if used.is_empty() {
                continue;
            }
            for (name, amount) in used {
                value["status"]["used"][&**name] = json!(amount);
            }
            let key = key_of(&quota.metadata.namespace, &quota.metadata.name);
            charges.push((key, value));
        }
        Ok(charges)
    }

    /// Writes charges together with what they are for.
    pub(crate) fn put_charges(&mut self, charges: Charges, draft: &mut Draft) {
        let Some(id) = self.registry.known(Kind::ResourceQuota) else {
            return;
        };
        for (key, quota) in charges {
            draft.put(self, id, &key, quota);
        }
    }

    /// What an object uses, by the names that quotas have for it.
    fn usage(&self, writing: &Writing<'_>, object: &Value, pod: Option<&Pod>) -> ResourceList {
        let row = &writing.row;
        let mut usage = ResourceList::new();
        let mut add = |name: &str, amount: Quantity| {
            usage.insert(name.into(), amount);
        };
        add(&counter(&row.plural, &row.group), number(1));
        if row.group.is_empty() && BARE.contains(&&*row.plural) {
            add(&row.plural, number(1));
        }
        let spec = &object["spec"];
        match row.known {
            Some(Kind::Pod) => {
                let Some(pod) = pod else { return usage };
                add("pods", number(1));
                of_containers(
                    &requests_held(pod),
                    &limits_held(pod),
                    &mut |name, amount| add(name, amount.clone()),
                );
            }
            Some(Kind::Service) => {
                let ports = spec["ports"].as_array().map_or(&[][..], |it| it);
                let kind = spec["type"].as_str().unwrap_or_default();
                let is_balanced = kind == "LoadBalancer";
                let open = match kind {
                    "NodePort" => ports.len(),
                    "LoadBalancer" if spec["allocateLoadBalancerNodePorts"] == false => {
                        let is_open = |port: &&Value| port["nodePort"].as_i64() > Some(0);
                        ports.iter().filter(is_open).count()
                    }
                    "LoadBalancer" => ports.len(),
                    _ => 0,
                };
                add("services.nodeports", number(open));
                add("services.loadbalancers", number(usize::from(is_balanced)));
            }
            Some(Kind::PersistentVolumeClaim) => {
                let storage = text(&spec["resources"]["requests"]["storage"]);
                let storage = Quantity::parse(&storage).unwrap_or_default();
                if let Some(class) = spec["storageClassName"]
                    .as_str()
                    .filter(|it| !it.is_empty())
                {
                    let prefix = format!("{class}.storageclass.storage.k8s.io/");
                    add(&format!("{prefix}persistentvolumeclaims"), number(1));
                    add(&format!("{prefix}requests.storage"), storage.clone());
                }
                add("requests.storage", storage);
            }
            _ => {}
        }
        usage
    }
}

/// The name under which all objects of a kind are counted.
fn counter(plural: &str, group: &str) -> String {
    match group {
        "" => format!("count/{plural}"),
        group => format!("count/{plural}.{group}"),
    }
}

fn number(count: usize) -> Quantity {
    Quantity::parse(&count.to_string()).unwrap_or_default()
}

/// Tells what requests and limits use, by the names that quotas have for it.
fn of_containers(
    requests: &ResourceList,
    limits: &ResourceList,
    tell: &mut dyn FnMut(&str, &Quantity),
) {
    for (name, amount) in requests {
        if is_plain(name) {
            tell(name, amount);
        }
        tell(&format!("requests.{name}"), amount);
    }
    for (name, amount) in limits {
        if is_plain(name) {
            tell(&format!("limits.{name}"), amount);
        }
    }
}

fn is_plain(name: &str) -> bool {
    matches!(name, "cpu" | "ephemeral-storage" | "memory") || name.starts_with("hugepages-")
}

/// Whether objects of the written kind use a resource.
fn is_of(writing: &Writing<'_>, name: &str) -> bool {
    let row = &writing.row;
    if name == counter(&row.plural, &row.group) {
        return true;
    }
    let is_bare = row.group.is_empty() && name == &*row.plural;
    match row.known {
        Some(Kind::Pod) => {
            let limit = name.strip_prefix("limits.");
            let request = name.strip_prefix("requests.");
            is_bare
                || is_plain(name)
                || limit.is_some_and(is_plain)
                || request.is_some_and(|it| is_plain(it) || it.contains('/'))
        }
        Some(Kind::Service) => {
            is_bare || matches!(name, "services.nodeports" | "services.loadbalancers")
        }
        Some(Kind::PersistentVolumeClaim) => {
            is_bare || name == "requests.storage" || name.contains(".storageclass.storage.k8s.io/")
        }
        _ => is_bare && BARE.contains(&name),
    }
}

/// What containers do not name though a quota bounds it.
fn unnamed(pod: &Pod, restricted: &BTreeSet<&str>) -> Option<String> {
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in pod.spec.containers.iter().chain(&pod.spec.init_containers) {
        let resources = &container.resources;
        let mut named = BTreeSet::new();
        of_containers(&resources.requests, &resources.limits, &mut |name, _| {
            named.insert(name.to_owned());
        });
        for name in restricted.iter().filter(|name| NAMED.contains(name)) {
            if !named.contains(*name) {
                missing.entry(name).or_default().insert(&container.name);
            }
        }
    }
    let texts: Vec<String> = missing
        .into_iter()
        .map(|(name, containers)| {
            let containers: Vec<&str> = containers.into_iter().collect();
            format!("{name} for: {}", containers.join(","))
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Whether all scopes of a quota match; only pods are in any.
fn is_meant(quota: &ResourceQuota, pod: Option<&Pod>) -> bool {
    match pod {
        Some(pod) => quota.is_meant(pod),
        None => !quota.has_scopes(),
    }
}
