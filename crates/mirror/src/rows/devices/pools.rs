//! Slices → the devices of a node.
//!
//! Source: Kubernetes' dynamic resource allocation. Only slices of a pool's newest generation count; a
//! pool of which not all slices are there yet offers what it has, but nobody may have all of it; one in
//! which two devices have one name offers nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::core::NodeSelector;
use api::quantity::Quantity;
use api::resource::{
    AllocatedDevice, CapacityPolicy, Device as WireDevice, DeviceCapacity, ResourceClaim,
    ResourceSlice,
};
use cel::Trait;
use model::{Counter, Device, Devices, Dimension, Draw, Drawer, Labels, Standing, Steps};

use super::judge::{Answers, Judge, value_of};
use super::taints::{Rules, taint};
use super::{ANY_NODE, Index, holder};
use crate::held::Mirror;
use crate::rows::constraints;

/// What the node offers.
pub(super) fn of_node(mirror: &Mirror, judge: &mut Judge, name: &str, labels: &Labels) -> Devices {
    let place = Place { name, labels };
    let rules = Rules::of(mirror, judge);
    let mut devices = Devices::default();
    let mut list = Vec::new();
    for pool in pools(mirror, &place) {
        let slices: Vec<&Arc<ResourceSlice>> =
            mirror.indexed(Index::SlicePool, "", &pool).collect();
        let generations = slices.iter().map(|slice| slice.spec.pool.generation);
        let newest = generations.max().unwrap_or(0);
        let is_new = |slice: &&Arc<ResourceSlice>| slice.spec.pool.generation == newest;
        let slices: Vec<&Arc<ResourceSlice>> = slices.into_iter().filter(is_new).collect();
        let wanted = slices
            .first()
            .map_or(0, |it| it.spec.pool.resource_slice_count);
        let is_valid = has_one_of_each_name(&slices);
        devices.is_partial |= !is_valid || i64::try_from(slices.len()) != Ok(wanted);
        if !is_valid {
            continue;
        }
        let from = list.len();
        for slice in &slices {
            offer(
                mirror,
                (judge, &rules),
                &place,
                slice,
                &mut list,
                &mut devices,
            );
        }
        let counters = drawn_on(mirror, &slices, &list[from..]);
        devices.counters.extend(counters);
    }
    // Whoever need not wait for a device to become ready does not.
    list.sort_by_key(|(waits, _)| *waits);
    devices.list = list.into_iter().map(|(_, device)| device).collect();
    devices
}

/// A node, as slices choose it.
struct Place<'a> {
    name: &'a str,
    labels: &'a Labels,
}

impl Place<'_> {
    fn is_for(&self, slice: &ResourceSlice) -> bool {
        let spec = &slice.spec;
        spec.per_device_node_selection == Some(true)
            || self.is_chosen(&spec.node_name, &spec.node_selector, spec.all_nodes)
    }

    fn is_chosen(
        &self,
        name: &Option<Box<str>>,
        selector: &Option<NodeSelector>,
        all: Option<bool>,
    ) -> bool {
        match (name, selector) {
            (Some(name), _) => **name == *self.name,
            (None, Some(selector)) => constraints::node_terms(selector)
                .iter()
                .any(|term| term.accepts(self.name, self.labels)),
            (None, None) => all == Some(true),
        }
    }
}

/// The pools of which some slice is for the node.
fn pools(mirror: &Mirror, place: &Place<'_>) -> BTreeSet<String> {
    let own = mirror.indexed::<ResourceSlice>(Index::SliceNode, "", place.name);
    let any = mirror.indexed::<ResourceSlice>(Index::SliceNode, "", ANY_NODE);
    own.chain(any)
        .filter(|slice| place.is_for(slice))
        .map(|slice| format!("{}/{}", slice.spec.driver, slice.spec.pool.name))
        .collect()
}

fn has_one_of_each_name(slices: &[&Arc<ResourceSlice>]) -> bool {
    let mut names = BTreeSet::new();
    let mut all = slices.iter().flat_map(|slice| &slice.spec.devices);
    all.all(|device| names.insert(&device.name))
}

fn offer(
    mirror: &Mirror,
    (judge, rules): (&mut Judge, &Rules<'_>),
    place: &Place<'_>,
    slice: &ResourceSlice,
    list: &mut Vec<(bool, Device)>,
    devices: &mut Devices,
) {
    if !place.is_for(slice) {
        return;
    }
    let (answers, faults) = judge.answers(slice);
    for (number, why) in faults {
        devices.faults.entry(*number).or_insert_with(|| why.clone());
    }
    let by_device = slice.spec.per_device_node_selection == Some(true);
    for (device, answers) in slice.spec.devices.iter().zip(answers) {
        let is_here =
            || place.is_chosen(&device.node_name, &device.node_selector, device.all_nodes);
        if !by_device || is_here() {
            let waits = !device.binding_conditions.is_empty();
            let mut row = row(mirror, slice, device, answers);
            row.taints
                .extend(rules.taints(slice, &device.name, answers));
            list.push((waits, row));
        }
    }
}

fn row(mirror: &Mirror, slice: &ResourceSlice, device: &WireDevice, answers: &Answers) -> Device {
    let spec = &slice.spec;
    let id = device_id(slice, device);
    let held = held(mirror, &id);
    Device {
        passes: answers.passes.clone(),
        unjudged: answers.unjudged.clone(),
        standing: held.standing,
        is_shared: is_shared(slice, device),
        draws: draws(slice, device).into(),
        attributes: attributes(&spec.driver, device),
        taints: device.taints.iter().filter_map(taint).collect(),
        is_parted: device.allow_multiple_allocations == Some(true),
        dimensions: dimensions(device, &held.amounts),
        id: id.into(),
    }
}

/// What claims have of a device without a task that would give it back.
#[derive(Default)]
struct Held<'a> {
    standing: Standing,
    /// In thousandths, by the names of its dimensions.
    amounts: BTreeMap<&'a str, i64>,
}

fn held<'a>(mirror: &'a Mirror, id: &str) -> Held<'a> {
    let mut held = Held::default();
    let claims = mirror.indexed::<ResourceClaim>(Index::ClaimDevice, "", id);
    for claim in claims.filter(|claim| holder(mirror, claim).is_none()) {
        let own = claim.allocated().iter();
        for device in own.filter(|device| !device.is_admin() && device.id() == id) {
            if device.share_id.is_none() {
                held.standing = Standing::Held;
            } else if held.standing == Standing::Free {
                held.standing = Standing::Parted;
            }
            for (name, amount) in &device.consumed_capacity {
                let sum = held.amounts.entry(&**name).or_default();
                *sum = sum.saturating_add(amount.milli_value().max(0));
            }
        }
    }
    held
}

/// The device's capacity.
pub(super) fn dimensions(device: &WireDevice, held: &BTreeMap<&str, i64>) -> Arc<[Dimension]> {
    let milli = |amount: &Quantity| amount.milli_value().max(0);
    let dimension = |name: &str, capacity: &DeviceCapacity| {
        let policy = capacity.request_policy.as_ref();
        Dimension {
            name: name.into(),
            whole: milli(&capacity.value),
            steps: policy.map(steps).unwrap_or_default(),
            unasked: policy.and_then(|it| it.default.as_ref()).map(milli),
            held: held.get(name).copied().unwrap_or(0),
        }
    };
    let capacity = device.capacity.iter();
    capacity.map(|(name, it)| dimension(name, it)).collect()
}

fn steps(policy: &CapacityPolicy) -> Steps {
    let milli = |amount: &Quantity| amount.milli_value().max(0);
    match &policy.valid_range {
        Some(range) => Steps::Range {
            min: range.min.as_ref().map_or(0, milli),
            max: range.max.as_ref().map(milli),
            step: range.step.as_ref().map(milli),
        },
        None if policy.valid_values.is_empty() => Steps::Any,
        None => Steps::Values(policy.valid_values.iter().map(milli).collect()),
    }
}

/// Whether what is held of a device is counted for all nodes: several reach it, or it draws on counters
/// that devices of other nodes draw on.
pub(super) fn is_shared(slice: &ResourceSlice, device: &WireDevice) -> bool {
    let is_of_one_node = device.node_name.is_some() && device.consumes_counters.is_empty();
    slice.spec.node_name.is_none() && !is_of_one_node
}

/// The device with its slice, of the pool's newest generation.
pub(crate) fn find<'a>(
    mirror: &'a Mirror,
    device: &AllocatedDevice,
) -> Option<(&'a ResourceSlice, &'a WireDevice)> {
    let pool = format!("{}/{}", device.driver, device.pool);
    let slices = mirror.indexed::<ResourceSlice>(Index::SlicePool, "", &pool);
    let with = slices.filter_map(|slice| {
        let mut devices = slice.spec.devices.iter();
        let found = devices.find(|it| it.name == device.device)?;
        Some((&**slice, found))
    });
    with.max_by_key(|(slice, _)| slice.spec.pool.generation)
}

/// What the device takes of its pool's counters.
fn draws(slice: &ResourceSlice, device: &WireDevice) -> Vec<Draw> {
    let mut sums: BTreeMap<Arc<str>, i64> = BTreeMap::new();
    for set in &device.consumes_counters {
        for (name, counter) in &set.counters {
            let sum = sums.entry(counter_id(slice, &set.counter_set, name));
            let sum = sum.or_default();
            *sum = sum.saturating_add(counter.value.milli_value().max(0));
        }
    }
    let draw = |(counter, amount)| Draw { counter, amount };
    sums.into_iter().map(draw).collect()
}

/// `driver/pool/set/name`
fn counter_id(slice: &ResourceSlice, set: &str, name: &str) -> Arc<str> {
    let spec = &slice.spec;
    format!("{}/{}/{set}/{name}", spec.driver, spec.pool.name).into()
}

/// The counters that these devices draw on, with all of the pool's devices that do, whichever nodes have
/// them. One that the pool does not tell of has nothing to give.
fn drawn_on(
    mirror: &Mirror,
    slices: &[&Arc<ResourceSlice>],
    offered: &[(bool, Device)],
) -> BTreeMap<Arc<str>, Counter> {
    let drawn = offered.iter().flat_map(|(_, device)| &*device.draws);
    let drawn = drawn.map(|draw| (draw.counter.clone(), Counter::default()));
    let mut counters: BTreeMap<Arc<str>, Counter> = drawn.collect();
    if counters.is_empty() {
        return counters;
    }
    for slice in slices {
        for set in &slice.spec.shared_counters {
            for (name, told) in &set.counters {
                if let Some(counter) = counters.get_mut(&counter_id(slice, &set.name, name)) {
                    counter.whole = told.value.milli_value();
                }
            }
        }
        for device in &slice.spec.devices {
            let id: Arc<str> = device_id(slice, device).into();
            for draw in draws(slice, device) {
                if let Some(counter) = counters.get_mut(&draw.counter) {
                    counter.drawers.push(Drawer {
                        standing: held(mirror, &id).standing,
                        is_shared: is_shared(slice, device),
                        device: id.clone(),
                        amount: draw.amount,
                    });
                }
            }
        }
    }
    counters
}

/// `driver/pool/name`
pub(super) fn device_id(slice: &ResourceSlice, device: &WireDevice) -> String {
    let spec = &slice.spec;
    format!("{}/{}/{}", spec.driver, spec.pool.name, device.name)
}

/// Attributes by their whole names, each in one spelling: values of different types are different.
fn attributes(driver: &str, device: &WireDevice) -> BTreeMap<Arc<str>, Arc<str>> {
    let whole = |name: &str| match name.contains('/') {
        true => name.into(),
        false => format!("{driver}/{name}").into(),
    };
    let spelled = |value: Trait| match value {
        Trait::Truth(it) => format!("bool {it}"),
        Trait::Number(it) => format!("int {it}"),
        Trait::Text(it) => format!("string {it}"),
        Trait::Version(it) => format!("version {it}"),
    };
    let all = device.attributes.iter();
    all.filter_map(|(name, value)| Some((whole(name), spelled(value_of(value)?).into())))
        .collect()
}
