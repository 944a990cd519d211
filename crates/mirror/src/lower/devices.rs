//! What becomes of claims of devices before a pod is bound: they get what the plan gave, and are kept for
//! the pod; and what is given back where nothing came of it.
//!
//! Source: Kubernetes' dynamic resource allocation: the scheduler writes `status.allocation` and
//! `status.reservedFor`, and puts a finalizer on the claim first.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::core::{NodeSelector, NodeSelectorTerm, Pod};
use api::intent::{Intent, Part};
use api::kind::Kind;
use api::quantity::Quantity;
use api::resource::{
    AllocatedDevice, Consumer, Device, DeviceCapacity, DeviceClass, DeviceConfiguration, FINALIZER,
    ResourceClaim, share_id,
};
use api::time::Time;
use model::{CLAIM_USERS_MAX, DeviceAsk, Devices, Grant, Key, Purpose, Tables, Taking, Task};
use serde_json::{Value, json};

use super::{Bind, patched};
use crate::held::Mirror;
use crate::index::Index;
use crate::rows::{
    Claims, claim_name, claim_user, extended_claim, failure, find_device, node_labels, node_terms,
    shared_claim,
};

mod extended;

pub use extended::extended_claim_key;

/// What must be true of a device before its pod is bound.
const CONDITIONS: &str = "bindingConditions";

/// A device that a plan gave to a claim of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// What the pod calls the claim.
    pub claim: Box<str>,
    /// For which request, or `request/way`.
    pub request: Box<str>,
    /// `driver/pool/name`.
    pub device: Box<str>,
    /// Only to look after it.
    pub is_admin: bool,
    /// How much of its capacity, if it is a part of it.
    pub portion: Option<Arc<[Taking]>>,
}

/// What a task was given of the node's devices. Its cards and units are grants, too, but of nothing that
/// the node lists here.
pub(super) fn given(ask: &DeviceAsk, devices: &Devices, grants: &[Grant]) -> Vec<Given> {
    let of = |grant: &Grant| {
        devices.list.iter().find(|device| device.id == grant.card)?;
        let purpose = Purpose::of(grant.part);
        let claim = ask.claims.get(usize::from(purpose.claim))?;
        let request = claim.requests.get(usize::from(purpose.request))?;
        let way = request.ways.get(usize::from(purpose.way))?;
        let name = match &*way.name {
            "" => request.name.to_string(),
            way => format!("{}/{way}", request.name),
        };
        Some(Given {
            claim: (&*claim.name).into(),
            request: name.into(),
            device: (&*grant.card).into(),
            is_admin: way.is_admin,
            portion: grant.portion.clone(),
        })
    };
    grants.iter().filter_map(of).collect()
}

/// Claims of a task that get their devices with another one.
pub(super) fn joins(tables: &Tables, task: &Task, ask: &DeviceAsk) -> Vec<Box<str>> {
    let gets_none = |at: u8| !task.grants.iter().any(|grant| grant.is_for_claim(at));
    let joined = ask
        .shared()
        .filter(|(at, claim)| gets_none(*at) && tables.device_holder(claim).is_some());
    joined
        .map(|(at, _)| (&*ask.claims[usize::from(at)].name).into())
        .collect()
}

/// How the claims of devices of `pod` stand for a bind with what it was given on its node.
pub fn device_claims_of(
    mirror: &Mirror,
    tables: &Tables,
    pod: &Pod,
    bind: &Bind,
    now: Time,
) -> Claims {
    let mut tell = Vec::new();
    let mut waits = None;
    for named in &pod.spec.resource_claims {
        let Some(name) = claim_name(mirror, pod, named) else {
            continue;
        };
        let Some(claim) = mirror.get::<ResourceClaim>(&pod.metadata.namespace, &name) else {
            return Claims::Conflict(format!("resourceclaim \"{name}\" not found"));
        };
        let given = bind.devices.iter();
        let given: Vec<&Given> = given.filter(|it| it.claim == named.name).collect();
        let user = claim_user(mirror, pod, named);
        let key = shared_claim(claim);
        if claim.status.allocation.is_none()
            && bind.joins.contains(&named.name)
            && tables.device_holder(&key).is_none()
        {
            let why = format!("nobody gets claim {name} its devices any more");
            return Claims::Conflict(why);
        }
        match stands(mirror, (&bind.node, &user), claim, &given, now) {
            Ok(Standing::Kept) => {}
            Ok(Standing::Waits) => {
                waits.get_or_insert_with(|| format!("resourceclaim \"{name}\" is not ready"));
            }
            Ok(Standing::Tell(intent)) => tell.push(intent),
            Err(why) => return Claims::Conflict(why),
        }
    }
    match extended::stands(mirror, pod, &bind.node, &bind.devices, now) {
        Ok(Standing::Kept) => {}
        Ok(Standing::Waits) => {
            waits.get_or_insert_with(|| "its claim for extended resources is not ready".to_owned());
        }
        Ok(Standing::Tell(intent)) => tell.push(intent),
        Err(why) => return Claims::Conflict(why),
    }
    if tell.is_empty() && waits.is_none() {
        // The last word: the pod may be bound once it knows what it has for its resources.
        tell.extend(extended::told(mirror, pod));
    }
    match (tell.is_empty(), waits) {
        (false, _) => Claims::Tell(tell),
        (true, Some(what)) => Claims::Wait(what),
        (true, None) => Claims::Ready,
    }
}

/// How one claim stands.
enum Standing {
    /// It has devices and is kept for the pod.
    Kept,
    /// Another pod is getting it its devices, or drivers prepare them.
    Waits,
    /// This is to be written.
    Tell(Intent),
}

fn stands(
    mirror: &Mirror,
    (node, user): (&str, &Consumer),
    claim: &ResourceClaim,
    given: &[&Given],
    now: Time,
) -> Result<Standing, String> {
    let meta = &claim.metadata;
    let name = &meta.name;
    if meta.deletion_timestamp.is_some() {
        return Err(format!("claim {name} is being deleted"));
    }
    if claim.status.allocation.is_some() {
        if !reaches(mirror, claim, node) {
            return Err(format!(
                "devices of claim {name} cannot be reached from node {node}"
            ));
        }
        if claim.is_reserved_for(&user.uid) {
            return readiness(claim);
        }
        if claim.status.reserved_for.len() >= CLAIM_USERS_MAX {
            return Err(format!(
                "claim {name} is used by {CLAIM_USERS_MAX} pods already"
            ));
        }
        let status = json!({ "reservedFor": claim.users_with(user) });
        return Ok(Standing::Tell(told(
            claim,
            Part::Status,
            json!({ "status": status }),
        )));
    }
    if given.is_empty() {
        return Ok(Standing::Waits);
    }
    let mut devices = given.iter().filter(|it| !it.is_admin);
    if let Some(why) = devices.find_map(|it| taken(mirror, it, given)) {
        return Err(why);
    }
    if !meta.finalizers.iter().any(|it| **it == *FINALIZER) {
        let mut finalizers: Vec<&str> = meta.finalizers.iter().map(|it| &**it).collect();
        finalizers.push(FINALIZER);
        let patch = json!({ "metadata": { "finalizers": finalizers } });
        return Ok(Standing::Tell(told(claim, Part::Whole, patch)));
    }
    let status = json!({
        "allocation": allocation(mirror, claim, node, given, now),
        "reservedFor": claim.users_with(user),
    });
    Ok(Standing::Tell(told(
        claim,
        Part::Status,
        json!({ "status": status }),
    )))
}

fn told(claim: &ResourceClaim, part: Part, patch: Value) -> Intent {
    patched(&claim.metadata, Kind::ResourceClaim, part, patch)
}

fn reaches(mirror: &Mirror, claim: &ResourceClaim, node: &str) -> bool {
    let allocation = claim.status.allocation.as_ref();
    let Some(selector) = allocation.and_then(|it| it.node_selector.as_ref()) else {
        return true;
    };
    let labels = node_labels(mirror, node);
    let mut terms = node_terms(selector).into_iter();
    terms.any(|term| term.accepts(node, &labels))
}

fn allocation(
    mirror: &Mirror,
    claim: &ResourceClaim,
    node: &str,
    given: &[&Given],
    now: Time,
) -> Value {
    let results = given.iter().enumerate();
    let results = results.filter_map(|(at, it)| result(mirror, claim, (at, it)));
    let results: Vec<Value> = results.collect();
    let waits = results.iter().any(|it| it.get(CONDITIONS).is_some());
    let mut devices = json!({ "results": results });
    let config = config(mirror, claim, given);
    if !config.is_empty() {
        devices["config"] = json!(config);
    }
    let mut allocation = json!({ "devices": devices });
    if waits {
        allocation["allocationTimestamp"] = json!(now.seconds_text());
    }
    if let Some(selector) = node_selector(mirror, node, given) {
        allocation["nodeSelector"] = json!(selector);
    }
    allocation
}

fn result(mirror: &Mirror, claim: &ResourceClaim, (at, given): (usize, &Given)) -> Option<Value> {
    let device = split(&given.device)?;
    let offered = find_device(mirror, &device).map(|(_, device)| device);
    let mut result = json!({
        "request": given.request,
        "driver": device.driver,
        "pool": device.pool,
        "device": device.device,
    });
    if given.is_admin {
        result["adminAccess"] = json!(true);
    }
    let way = claim.way(&given.request);
    if let Some(way) = way.filter(|way| !way.tolerations.is_empty()) {
        result["tolerations"] = json!(way.tolerations);
    }
    if let Some(portion) = &given.portion {
        let meta = &claim.metadata;
        let one_of = format!("{}/{}/{at}", meta.uid, meta.resource_version);
        result["shareID"] = json!(share_id(&one_of));
        result["consumedCapacity"] = json!(consumed(offered, portion));
    }
    if let Some(offered) = offered.filter(|it| !it.binding_conditions.is_empty()) {
        result[CONDITIONS] = json!(offered.binding_conditions);
        result["bindingFailureConditions"] = json!(offered.binding_failure_conditions);
    }
    Some(result)
}

/// How much is taken of the device's capacity, in the family of suffixes in which it tells what it has.
fn consumed(offered: Option<&Device>, portion: &[Taking]) -> BTreeMap<String, String> {
    let amount = |taking: &Taking| {
        let told = offered.and_then(|device| device.capacity.get(&*taking.dimension));
        let format = told.map(|it| it.value.format()).unwrap_or_default();
        let amount = match taking.amount % 1_000 {
            0 => Quantity::from_value(taking.amount / 1_000, format),
            _ => Quantity::from_milli(taking.amount),
        };
        (taking.dimension.to_string(), amount.canonical())
    };
    portion.iter().map(amount).collect()
}

/// Why a device can be given no more: another claim has it by now, or too much of it.
fn taken(mirror: &Mirror, given: &Given, all: &[&Given]) -> Option<String> {
    let others = mirror.indexed::<ResourceClaim>(Index::ClaimDevice, "", &given.device);
    let others: Vec<_> = others.collect();
    let parts = others.iter().flat_map(|other| other.allocated());
    let parts: Vec<_> = parts.filter(|it| it.id() == *given.device).collect();
    let is_part = |it: &&AllocatedDevice| it.is_admin() || it.share_id.is_some();
    let is_free = others.is_empty() || given.portion.is_some() && parts.iter().all(is_part);
    if !is_free {
        let other = &others[0].metadata;
        let other = format!("{}/{}", other.namespace, other.name);
        return Some(format!("claim {other} has device {} by now", given.device));
    }
    let (_, device) = split(&given.device).and_then(|it| find_device(mirror, &it))?;
    let ours = all.iter().filter(|it| it.device == given.device);
    let ours: Vec<&Taking> = ours
        .flat_map(|it| it.portion.iter().flat_map(|it| &**it))
        .collect();
    let is_short = |name: &str, capacity: &DeviceCapacity| {
        let theirs = parts.iter().filter_map(|it| it.consumed_capacity.get(name));
        let theirs = theirs.map(Quantity::milli_value);
        let ours = ours.iter().filter(|it| *it.dimension == *name);
        let ours = ours.map(|it| it.amount);
        let sum = theirs.chain(ours).fold(0, i64::saturating_add);
        sum > capacity.value.milli_value()
    };
    let mut capacity = device.capacity.iter();
    let is_full =
        given.portion.is_some() && capacity.any(|(name, capacity)| is_short(name, capacity));
    is_full.then(|| format!("others have too much of device {} by now", given.device))
}

/// Whether drivers have made the devices of an allocated claim ready (`bindingConditions`).
///
/// Source: Kubernetes' dynamic resource allocation. A pod is bound once all conditions of all of its
/// claims' devices are true; one of those that mean a failure gives the devices back.
fn readiness(claim: &ResourceClaim) -> Result<Standing, String> {
    if let Some(why) = failure(claim) {
        return Err(format!(
            "claim {} gives device {why} back",
            claim.metadata.name
        ));
    }
    let is_ready = |device: &AllocatedDevice| {
        let mut wanted = device.binding_conditions.iter();
        wanted.all(|condition| claim.is_true_of(device, condition))
    };
    Ok(match claim.allocated().iter().all(is_ready) {
        true => Standing::Kept,
        false => Standing::Waits,
    })
}

/// A device from its id: neither a driver nor a device has a `/` in its name.
fn split(id: &str) -> Option<AllocatedDevice> {
    let (driver, rest) = id.split_once('/')?;
    let (pool, device) = rest.rsplit_once('/')?;
    Some(AllocatedDevice {
        driver: driver.into(),
        pool: pool.into(),
        device: device.into(),
        ..AllocatedDevice::default()
    })
}

/// What drivers are told: by classes first, each class once, then by the claim. What is for all requests
/// names none.
fn config(mirror: &Mirror, claim: &ResourceClaim, given: &[&Given]) -> Vec<Value> {
    let mut served: Vec<&str> = given.iter().map(|it| &*it.request).collect();
    served.dedup();
    let count = claim.spec.devices.requests.len();
    let told = |source: &str, requests: &[&str], config: &DeviceConfiguration| {
        let mut row = json!({ "source": source, "opaque": config.opaque });
        if !requests.is_empty() && requests.len() != count {
            row["requests"] = json!(requests);
        }
        row
    };
    let mut classes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    for name in &served {
        let Some(way) = claim.way(name) else {
            continue;
        };
        let class = &*way.device_class_name;
        if !classes.contains_key(class) {
            order.push(class);
        }
        classes.entry(class).or_default().push(name);
    }
    let mut rows = Vec::new();
    for name in order {
        let class = mirror.get::<DeviceClass>("", name);
        for config in class.into_iter().flat_map(|class| &class.spec.config) {
            rows.push(told("FromClass", &classes[name], config));
        }
    }
    for config in &claim.spec.devices.config {
        let requests: Vec<&str> = config.requests.iter().map(|it| &**it).collect();
        let is_served = |wanted: &&str| {
            let mut served = served.iter();
            served.any(|it| it == wanted || it.split('/').next() == Some(*wanted))
        };
        if requests.is_empty() || requests.iter().any(is_served) {
            rows.push(told("FromClaim", &requests, config));
        }
    }
    rows
}

/// From which nodes the devices can be reached: from this one only if one of them is its own, else from
/// those that all their slices select.
fn node_selector(mirror: &Mirror, node: &str, given: &[&Given]) -> Option<NodeSelector> {
    let mut together = NodeSelectorTerm::default();
    for device in given {
        let found = split(&device.device).and_then(|device| find_device(mirror, &device));
        let Some((slice, device)) = found else {
            continue;
        };
        let is_own = slice.spec.node_name.is_some() || device.node_name.is_some();
        if is_own || device.binds_to_node == Some(true) {
            let term = serde_json::from_value(json!({ "matchFields": [
                { "key": "metadata.name", "operator": "In", "values": [node] },
            ] }));
            return Some(NodeSelector {
                node_selector_terms: term.into_iter().collect(),
            });
        }
        let selector = slice
            .spec
            .node_selector
            .as_ref()
            .or(device.node_selector.as_ref());
        for term in selector.into_iter().flat_map(|it| &it.node_selector_terms) {
            for one in &term.match_expressions {
                if !together.match_expressions.contains(one) {
                    together.match_expressions.push(one.clone());
                }
            }
            for one in &term.match_fields {
                if !together.match_fields.contains(one) {
                    together.match_fields.push(one.clone());
                }
            }
        }
    }
    (together != NodeSelectorTerm::default()).then(|| NodeSelector {
        node_selector_terms: vec![together],
    })
}

/// What is to be written so that claims are free again which nobody uses but pods that wait, this one
/// among them. Whoever is being bound keeps what it has.
pub fn claims_given_back(mirror: &Mirror, tables: &Tables, pod: &Pod) -> Vec<Intent> {
    let waits = |name: &str, uid: &str| {
        let key = Key::new(&*pod.metadata.namespace, name);
        let task = tables.task_keyed(&key).and_then(|id| tables.find_task(id));
        task.is_some_and(|task| task.uid.is(uid) && task.phase.is_waiting())
    };
    // Of a group those use the claim who name it.
    let pods_wait = |claim: &ResourceClaim| {
        let meta = &claim.metadata;
        let mut pods = mirror.indexed::<Pod>(Index::PodDeviceClaim, &meta.namespace, &meta.name);
        pods.all(|pod| pod.is_finished() || waits(&pod.metadata.name, &pod.metadata.uid))
    };
    let mut intents = Vec::new();
    let named = pod.spec.resource_claims.iter().filter_map(|named| {
        let name = claim_name(mirror, pod, named)?;
        mirror.get::<ResourceClaim>(&pod.metadata.namespace, &name)
    });
    for claim in named.chain(extended_claim(mirror, pod)) {
        if claim.status.allocation.is_none() {
            continue;
        }
        let is_idle = |user: &Consumer| match user.is_group() {
            true => pods_wait(claim),
            false => waits(&user.name, &user.uid),
        };
        if claim.status.reserved_for.iter().all(is_idle) {
            let nothing = json!({ "allocation": null, "reservedFor": null, "devices": null });
            let nothing = json!({ "status": nothing });
            intents.push(told(claim, Part::Status, nothing));
        }
    }
    intents
}
