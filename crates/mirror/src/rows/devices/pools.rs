//! Slices → the devices of a node.
//!
//! Source: Kubernetes' dynamic resource allocation. Only slices of a pool's newest generation count; a
//! pool of which not all slices are there yet offers what it has, but nobody may have all of it; one in
//! which two devices have one name offers nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::core::NodeSelector;
use api::resource::{Device as WireDevice, ResourceClaim, ResourceSlice};
use cel::Trait;
use model::{Device, Devices, Labels, Standing, Taint};

use super::judge::{Answers, Judge, value_of};
use super::{ANY_NODE, Index, holder};
use crate::held::Mirror;
use crate::rows::{constraints, effect};

/// What the node offers.
pub(super) fn of_node(mirror: &Mirror, judge: &mut Judge, name: &str, labels: &Labels) -> Devices {
    let place = Place { name, labels };
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
        for slice in slices.into_iter().filter(|_| is_valid) {
            offer(mirror, judge, &place, slice, &mut list, &mut devices);
        }
    }
    devices.list = list.into();
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
    judge: &mut Judge,
    place: &Place<'_>,
    slice: &ResourceSlice,
    list: &mut Vec<Device>,
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
            list.push(row(mirror, slice, device, answers));
        }
    }
}

fn row(mirror: &Mirror, slice: &ResourceSlice, device: &WireDevice, answers: &Answers) -> Device {
    let spec = &slice.spec;
    let id = format!("{}/{}/{}", spec.driver, spec.pool.name, device.name);
    let taints = device.taints.iter().filter_map(|taint| {
        Some(Taint {
            key: (&*taint.key).into(),
            value: (&*taint.value).into(),
            effect: effect(&taint.effect)?,
        })
    });
    Device {
        passes: answers.passes.clone(),
        unjudged: answers.unjudged.clone(),
        standing: standing(mirror, device, &id),
        is_shared: spec.node_name.is_none() && device.node_name.is_none(),
        attributes: attributes(&spec.driver, device),
        taints: taints.collect(),
        id: id.into(),
    }
}

fn standing(mirror: &Mirror, device: &WireDevice, id: &str) -> Standing {
    let is_counted = device.consumes_counters.is_empty()
        && device.binding_conditions.is_empty()
        && device.binds_to_node != Some(true)
        && device.allow_multiple_allocations != Some(true);
    if !is_counted {
        return Standing::Uncounted;
    }
    let mut claims = mirror.indexed::<ResourceClaim>(Index::ClaimDevice, "", id);
    match claims.any(|claim| holder(mirror, claim).is_none()) {
        true => Standing::Held,
        false => Standing::Free,
    }
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
