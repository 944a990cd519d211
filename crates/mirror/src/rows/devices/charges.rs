//! Claims of a pod → what they count for in its queue.
//!
//! A claim counts for the devices that it has. One that has none yet counts for the most that its
//! requests could come to, as Kubernetes' own quotas count it.

use std::collections::{BTreeMap, BTreeSet};

use api::core::Pod;
use api::resource::{AllocatedDevice, ExactRequest, ResourceClaim};
use model::{CLAIM_DEVICES_MAX, Charge, Counted, DEVICE_CLASS, Key, Tables};

use super::claim_name;
use crate::held::Mirror;

/// Thousandths by the names of their kinds.
pub(crate) type Amounts = BTreeMap<String, i64>;

/// What the claims of a pod count for, each of them once. One that is not there yet counts for nothing;
/// the pod waits for it.
pub(in crate::rows) fn charges(
    mirror: &Mirror,
    pod: &Pod,
    counted: Counted,
    tables: &mut Tables,
) -> Vec<Charge> {
    let namespace = &pod.metadata.namespace;
    let mut charges = Vec::new();
    for (name, amounts) in claimed(mirror, pod, counted) {
        let amounts: Vec<_> = amounts
            .into_iter()
            .map(|(name, amount)| (tables.kind(&name), amount))
            .collect();
        if !amounts.is_empty() {
            let claim = Key::new(&**namespace, &*name);
            charges.push(Charge {
                claim,
                amounts,
                is_own: false,
            });
        }
    }
    charges
}

/// The claims of a pod that are there, by their names, and what each counts for: thousandths by the names of
/// their kinds.
pub(crate) fn claimed(mirror: &Mirror, pod: &Pod, counted: Counted) -> Vec<(Box<str>, Amounts)> {
    let named = pod.spec.resource_claims.iter();
    let names: BTreeSet<Box<str>> = named
        .filter_map(|named| claim_name(mirror, pod, named))
        .collect();
    let claim = |name: &str| mirror.get::<ResourceClaim>(&pod.metadata.namespace, name);
    let told = names.into_iter().filter_map(|name| {
        let amounts = amounts(claim(&name)?, counted);
        Some((name, amounts))
    });
    told.collect()
}

/// What a claim counts for.
fn amounts(claim: &ResourceClaim, counted: Counted) -> Amounts {
    let mut sum = Amounts::new();
    if claim.status.allocation.is_some() {
        for device in claim.allocated().iter().filter(|it| !it.is_admin()) {
            if let Some(way) = claim.way(&device.request) {
                let mut amounts = of_devices(way, 1, counted);
                if counted == Counted::DevicesAndCapacity {
                    amounts.extend(consumed(way, device));
                }
                add(&mut sum, &amounts);
            }
        }
        return sum;
    }
    for request in &claim.spec.devices.requests {
        let mut most = Amounts::new();
        for way in request.exactly.iter().chain(&request.first_available) {
            for (name, amount) in of_devices(way, count(way), counted) {
                let most = most.entry(name).or_default();
                *most = amount.max(*most);
            }
        }
        add(&mut sum, &most);
    }
    sum
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = sum.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*amount);
    }
}

/// How many devices a way may come to.
fn count(way: &ExactRequest) -> i64 {
    match &*way.allocation_mode {
        "All" => CLAIM_DEVICES_MAX as i64,
        _ => way.count.max(1),
    }
}

/// So many devices of a way, and what is taken of their capacity. Who only looks after them takes nothing.
fn of_devices(way: &ExactRequest, count: i64, counted: Counted) -> Amounts {
    let mut amounts = Amounts::new();
    if way.admin_access == Some(true) {
        return amounts;
    }
    let kind = format!("{DEVICE_CLASS}{}", way.device_class_name);
    if counted == Counted::DevicesAndCapacity {
        for (dimension, amount) in dimensions(way) {
            let all = amount.saturating_mul(count);
            amounts.insert(format!("{dimension}.{kind}"), all);
        }
    }
    amounts.insert(kind, count.saturating_mul(1_000));
    amounts
}

/// What a device gives of its capacity where it is given in parts: what was asked for, rounded up.
fn consumed(way: &ExactRequest, device: &AllocatedDevice) -> Amounts {
    let consumed = device.consumed_capacity.iter();
    let consumed = consumed.map(|(dimension, amount)| {
        let kind = format!("{dimension}.{DEVICE_CLASS}{}", way.device_class_name);
        (kind, amount.milli_value().max(0))
    });
    consumed.collect()
}

/// What is asked for of each device's capacity; what is no amount counts for nothing.
fn dimensions(way: &ExactRequest) -> Vec<(Box<str>, i64)> {
    let asked = way.amounts().into_iter();
    asked
        .filter_map(|(name, amount)| Some((name, amount?.milli_value().max(0))))
        .collect()
}
