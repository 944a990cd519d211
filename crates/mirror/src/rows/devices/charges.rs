//! Claims of a pod → what they count for in its queue.
//!
//! A claim counts for the devices that it has. One that has none yet counts for the most that its
//! requests could come to, as Kubernetes' own quotas count it; of capacity that is given in parts for the most
//! that a device would give, which may round up, and gives something by default.

use std::collections::{BTreeMap, BTreeSet};

use api::core::Pod;
use api::resource::{AllocatedDevice, ExactRequest, ResourceClaim};
use model::{CLAIM_DEVICES_MAX, Charge, Counted, DEVICE_CLASS, Key, Tables, Taking, device_class};

use super::rounding::{Most, Rounding};
use super::{Judge, claim_name};
use crate::held::Mirror;

/// Thousandths by the names of their kinds.
pub(crate) type Amounts = BTreeMap<String, i64>;

/// What the claims of a pod count for, each of them once. One that is not there yet counts for nothing;
/// the pod waits for it.
pub(in crate::rows) fn charges(
    mirror: &Mirror,
    (judge, rounding): (&mut Judge, &mut Rounding),
    pod: &Pod,
    counted: Counted,
    tables: &mut Tables,
) -> Vec<Charge> {
    let namespace = &pod.metadata.namespace;
    let mut charges = Vec::new();
    for (name, claim) in claims(mirror, pod) {
        let amounts = amounts(claim, counted, &mut |way| {
            rounding.most(mirror, judge, way, dimensions(way))
        });
        let asked = asked(claim);
        let unasked = amounts.keys().filter(|name| {
            let dimension = device_class(name).map_or("", |(dimension, _)| dimension);
            !dimension.is_empty() && !asked.contains(*name)
        });
        let unasked: Vec<_> = unasked.map(|name| tables.kind(name)).collect();
        // Several of them may be beyond the known kinds, and so of one.
        let mut sums: Vec<(_, i64)> = Vec::new();
        for (name, amount) in amounts {
            let kind = tables.kind(&name);
            match sums.iter_mut().find(|(of, _)| *of == kind) {
                Some((_, sum)) => *sum = sum.saturating_add(amount),
                None => sums.push((kind, amount)),
            }
        }
        if !sums.is_empty() {
            let claim = Key::new(&**namespace, &*name);
            charges.push(Charge {
                claim,
                amounts: sums,
                unasked,
                is_own: false,
            });
        }
    }
    charges
}

/// The claims of a pod that are there, by their names, and what each counts for by what it asks for:
/// thousandths by the names of their kinds.
pub(crate) fn claimed(mirror: &Mirror, pod: &Pod, counted: Counted) -> Vec<(Box<str>, Amounts)> {
    let as_asked = |way: &ExactRequest| {
        let asked = dimensions(way).into_iter();
        asked.map(|it| (it.dimension, it.amount)).collect()
    };
    let told = claims(mirror, pod).map(|(name, claim)| {
        let amounts = amounts(claim, counted, &mut { as_asked });
        (name, amounts)
    });
    told.collect()
}

/// The claims of a pod that are there, each of them once.
fn claims<'a>(
    mirror: &'a Mirror,
    pod: &'a Pod,
) -> impl Iterator<Item = (Box<str>, &'a ResourceClaim)> {
    let named = pod.spec.resource_claims.iter();
    let names: BTreeSet<Box<str>> = named
        .filter_map(|named| claim_name(mirror, pod, named))
        .collect();
    names.into_iter().filter_map(|name| {
        let claim = mirror.get::<ResourceClaim>(&pod.metadata.namespace, &name)?;
        Some((name, &**claim))
    })
}

/// The names of the dimensions that the claim asks for itself.
fn asked(claim: &ResourceClaim) -> BTreeSet<String> {
    let requests = claim.spec.devices.requests.iter();
    let ways = requests.flat_map(|it| it.exactly.iter().chain(&it.first_available));
    let named = ways.flat_map(|way| {
        let asked = dimensions(way).into_iter();
        asked.map(|it| of_class(&it.dimension, way))
    });
    named.collect()
}

/// What a claim counts for, where `given` tells what a device would give of its capacity for a way.
fn amounts(
    claim: &ResourceClaim,
    counted: Counted,
    given: &mut dyn FnMut(&ExactRequest) -> Most,
) -> Amounts {
    let is_whole = counted == Counted::DevicesAndCapacity;
    let mut sum = Amounts::new();
    if claim.status.allocation.is_some() {
        for device in claim.allocated().iter().filter(|it| !it.is_admin()) {
            if let Some(way) = claim.way(&device.request) {
                let mut amounts = of_devices(way, 1);
                if is_whole {
                    let asked = dimensions(way).into_iter();
                    amounts.extend(asked.map(|it| (of_class(&it.dimension, way), it.amount)));
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
            let mut amounts = of_devices(way, count(way));
            if is_whole && way.admin_access != Some(true) {
                let all = |amount: i64| amount.saturating_mul(count(way));
                let given = given(way).into_iter();
                amounts.extend(given.map(|(it, amount)| (of_class(&it, way), all(amount))));
            }
            for (name, amount) in amounts {
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

/// So many devices of a way. Who only looks after them takes nothing.
fn of_devices(way: &ExactRequest, count: i64) -> Amounts {
    let mut amounts = Amounts::new();
    if way.admin_access != Some(true) {
        let kind = format!("{DEVICE_CLASS}{}", way.device_class_name);
        amounts.insert(kind, count.saturating_mul(1_000));
    }
    amounts
}

/// The name of a dimension of the capacity of a way's devices.
fn of_class(dimension: &str, way: &ExactRequest) -> String {
    format!("{dimension}.{DEVICE_CLASS}{}", way.device_class_name)
}

/// What a device gives of its capacity where it is given in parts: what was asked for, rounded up.
fn consumed(way: &ExactRequest, device: &AllocatedDevice) -> Amounts {
    let consumed = device.consumed_capacity.iter();
    let consumed =
        consumed.map(|(dimension, amount)| (of_class(dimension, way), amount.milli_value().max(0)));
    consumed.collect()
}

/// What is asked for of each device's capacity; what is no amount counts for nothing.
fn dimensions(way: &ExactRequest) -> Vec<Taking> {
    let asked = way.amounts().into_iter();
    asked
        .filter_map(|(name, amount)| {
            Some(Taking {
                dimension: (&*name).into(),
                amount: amount?.milli_value().max(0),
            })
        })
        .collect()
}
