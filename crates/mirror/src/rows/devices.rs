//! Devices, their classes and claims (`resource.k8s.io`) → what nodes offer and what tasks want.
//!
//! A device is held by the task whose claim has it, if that is one task on one node: then it comes free
//! with the task. Else its claim holds it.

mod backing;
mod charges;
mod claims;
mod extended;
mod judge;
mod pools;
mod rounding;
mod taints;

use std::collections::BTreeSet;
use std::sync::Arc;

use api::core::{Node, Pod};
use api::intent::ObjectKey;
use api::kind::Kind;
use api::resource::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice};
use api::volcano::PodGroup;
use model::{NodeSpec, Tables};

pub(super) use backing::Backing;
pub(super) use charges::charges;
pub(crate) use charges::claimed;
pub(super) use claims::{Wants, grants};
pub use claims::{claim_name, claim_user, own_claim, sharing_group};
pub(crate) use claims::{failure, shared_claim};
pub use extended::extended_claim;
pub(crate) use extended::{EXTENDED, class_of, requests, resources};
pub(super) use judge::Judge;
pub(crate) use pools::find as find_device;
pub(super) use rounding::Rounding;

use super::Rows;
use crate::held::{Change, Mirror};
use crate::index::{ANY_NODE, Index};

/// The pod that holds a claim's devices by itself: it alone uses the claim, is on a node, and no other
/// node reaches them.
pub(super) fn holder<'a>(mirror: &'a Mirror, claim: &ResourceClaim) -> Option<&'a Arc<Pod>> {
    let [user] = &claim.status.reserved_for[..] else {
        return None;
    };
    let pod = mirror.get::<Pod>(&claim.metadata.namespace, &user.name)?;
    let is_there = user.is_pod()
        && pod.metadata.uid == user.uid
        && !pod.spec.node_name.is_empty()
        && !pod.is_finished();
    let allocation = claim.status.allocation.as_ref()?;
    let terms = &allocation.node_selector.as_ref()?.node_selector_terms;
    let is_own = terms.iter().flat_map(|term| &term.match_fields).any(|it| {
        &*it.key == "metadata.name"
            && &*it.operator == "In"
            && *it.values == [(&*pod.spec.node_name).into()]
    });
    (is_there && is_own).then_some(pod)
}

impl Rows {
    /// Gives a node, as it tells of itself, what it offers of devices now; what it offered before, where
    /// nothing can have changed about that.
    pub(super) fn put_devices(
        &mut self,
        mirror: &Mirror,
        node: &Node,
        spec: &mut NodeSpec,
        tables: &mut Tables,
    ) {
        let name = &*node.metadata.name;
        let row = tables.node_named(name).and_then(|id| tables.find_node(id));
        spec.devices = match row.filter(|row| row.known && row.spec.labels == spec.labels) {
            Some(row) => row.spec.devices.clone(),
            None => pools::of_node(mirror, &mut self.judge, name, &spec.labels),
        };
        self.backing.give(mirror, &mut self.judge, spec, tables);
    }

    /// A node's devices may be others than before.
    fn renew_devices(&mut self, mirror: &Mirror, name: &str, tables: &mut Tables) {
        let row = tables.node_named(name).and_then(|id| tables.find_node(id));
        let Some(row) = row.filter(|row| row.known) else {
            return;
        };
        let devices = pools::of_node(mirror, &mut self.judge, name, &row.spec.labels);
        let before = &row.spec;
        let mut spec = before.clone();
        backing::own(&mut spec);
        spec.devices = devices;
        self.backing
            .give(mirror, &mut self.judge, &mut spec, tables);
        let row = tables.node_named(name).and_then(|id| tables.find_node(id));
        if row.is_some_and(|row| row.spec != spec) {
            tables.put_node(spec);
        }
    }

    fn renew_all_devices(&mut self, mirror: &Mirror, tables: &mut Tables) {
        let names: Vec<Arc<str>> = tables
            .nodes()
            .map(|(_, row)| row.spec.name.clone())
            .collect();
        for name in names {
            self.renew_devices(mirror, &name, tables);
        }
    }

    /// Questions came up that no device has been asked yet.
    pub(super) fn ask_devices(&mut self, mirror: &Mirror, tables: &mut Tables) {
        let is_asked = self.backing.take_news();
        if self.judge.has_news() || is_asked {
            self.judge.told();
            self.renew_all_devices(mirror, tables);
        }
    }

    /// Slices, claims or classes have changed.
    pub(super) fn feed_devices(&mut self, mirror: &Mirror, change: &Change, tables: &mut Tables) {
        match change.kind() {
            Kind::ResourceSlice => self.feed_slice(mirror, change, tables),
            Kind::ResourceClaim => self.feed_device_claim(mirror, change, tables),
            Kind::DeviceClass => {
                for claim in mirror.keys(Index::ClaimClass, "", &change.key.name) {
                    self.renew_users(mirror, &claim, tables);
                }
                self.feed_resources(mirror, change, tables);
                let mut rules = mirror.list::<DeviceTaintRule>();
                if rules.any(|rule| rule.names_class(&change.key.name)) {
                    self.renew_all_devices(mirror, tables);
                }
            }
            Kind::DeviceTaintRule => self.feed_taint_rule(mirror, change, tables),
            _ => {}
        }
    }

    /// A class serves other resources now, or by other devices: who asks for one of them is looked at again,
    /// and nodes are counted anew.
    fn feed_resources(&mut self, mirror: &Mirror, change: &Change, tables: &mut Tables) {
        let sides = [change.before::<DeviceClass>(), change.after()];
        let sides = sides.into_iter().flatten();
        let served: BTreeSet<Box<str>> = sides.flat_map(|class| class.resources()).collect();
        let asks = |pod: &Pod| {
            let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
            let mut names = containers.flat_map(|it| it.resources.requests.keys());
            names.any(|name| served.contains(name))
        };
        let waiting = mirror.list::<Pod>();
        for pod in waiting.filter(|pod| pod.spec.node_name.is_empty() && !pod.is_finished()) {
            if asks(pod) {
                self.put_pod(mirror, pod, tables);
            }
        }
        for group in mirror.list::<PodGroup>() {
            self.ask_resources(mirror, group);
        }
        if self.backing.knows(&served) {
            self.renew_all_devices(mirror, tables);
        }
    }

    /// Before a gang has pods its minimum says which resources they will ask for: it would not be let in
    /// where nobody has any.
    pub(super) fn ask_resources(&mut self, mirror: &Mirror, group: &PodGroup) {
        let least = group
            .spec
            .min_resources
            .iter()
            .flat_map(|least| least.keys());
        for name in least.filter(|name| class_of(mirror, name).is_some()) {
            self.backing.ask(name);
        }
    }

    fn feed_slice(&mut self, mirror: &Mirror, change: &Change, tables: &mut Tables) {
        if change.after.is_none() {
            self.judge.forget(&change.key.name);
        }
        self.renew_rounding(mirror, change, tables);
        let sides = [change.before::<ResourceSlice>(), change.after()];
        let pools: BTreeSet<String> = sides
            .into_iter()
            .flatten()
            .map(|slice| format!("{}/{}", slice.spec.driver, slice.spec.pool.name))
            .collect();
        let mut slices: Vec<&ResourceSlice> = pools
            .iter()
            .flat_map(|pool| mirror.indexed::<ResourceSlice>(Index::SlicePool, "", pool))
            .map(|slice| &**slice)
            .collect();
        slices.extend(sides.into_iter().flatten().map(|slice| &**slice));
        self.renew_reached(mirror, &slices, tables);
        if slices.iter().any(|slice| slice.spec.node_name.is_none()) {
            self.renew_holders(mirror, &sides, tables);
        }
    }

    /// Whoever has devices of these slices is told whether other nodes reach them: only slices say so.
    fn renew_holders(
        &mut self,
        mirror: &Mirror,
        sides: &[Option<&Arc<ResourceSlice>>],
        tables: &mut Tables,
    ) {
        let slices = sides.iter().copied().flatten();
        let devices = slices.flat_map(|slice| {
            let devices = slice.spec.devices.iter();
            devices.map(|device| pools::device_id(slice, device))
        });
        let devices: BTreeSet<String> = devices.collect();
        for id in devices {
            let claims = mirror.indexed::<ResourceClaim>(Index::ClaimDevice, "", &id);
            for pod in claims.filter_map(|claim| holder(mirror, claim)) {
                self.put_pod(mirror, pod, tables);
            }
        }
    }

    /// A rule puts a taint on other devices now, or another one.
    fn feed_taint_rule(&mut self, mirror: &Mirror, change: &Change, tables: &mut Tables) {
        let sides = [change.before::<DeviceTaintRule>(), change.after()];
        if let [Some(before), Some(after)] = sides
            && before.spec == after.spec
        {
            return;
        }
        let selectors = sides.into_iter().flatten();
        let selectors: Vec<_> = selectors
            .filter_map(|rule| rule.spec.device_selector.as_ref())
            .collect();
        let slices = mirror.list::<ResourceSlice>().map(|slice| &**slice);
        let slices: Vec<&ResourceSlice> = slices
            .filter(|slice| selectors.iter().any(|it| taints::is_of(it, slice)))
            .collect();
        self.renew_reached(mirror, &slices, tables);
    }

    /// The nodes that these slices are for, or were.
    fn renew_reached(&mut self, mirror: &Mirror, slices: &[&ResourceSlice], tables: &mut Tables) {
        let names: BTreeSet<&str> = slices
            .iter()
            .map(|slice| slice.spec.node_name.as_deref().unwrap_or(ANY_NODE))
            .collect();
        if names.contains(ANY_NODE) {
            return self.renew_all_devices(mirror, tables);
        }
        for name in names {
            self.renew_devices(mirror, name, tables);
        }
    }

    fn feed_device_claim(&mut self, mirror: &Mirror, change: &Change, tables: &mut Tables) {
        let sides = [change.before::<ResourceClaim>(), change.after()];
        self.renew_owners(mirror, &sides, tables);
        self.renew_users(mirror, &change.key, tables);
        self.renew_allocated(mirror, &sides, tables);
    }

    /// What the claim asks for counts otherwise now: the pods with it are looked at again.
    pub(super) fn renew_claim(
        &mut self,
        mirror: &Mirror,
        claim: &Arc<ResourceClaim>,
        tables: &mut Tables,
    ) {
        let meta = &claim.metadata;
        let key = ObjectKey::new(Kind::ResourceClaim, &meta.namespace, &meta.name);
        self.renew_owners(mirror, &[Some(claim)], tables);
        self.renew_users(mirror, &key, tables);
    }

    /// The pods that these claims were made for.
    fn renew_owners(
        &mut self,
        mirror: &Mirror,
        sides: &[Option<&Arc<ResourceClaim>>],
        tables: &mut Tables,
    ) {
        let claims = sides.iter().copied().flatten();
        let owners = claims.filter_map(|claim| {
            let owner = claim.metadata.controller()?;
            Some((&*claim.metadata.namespace, &*owner.name))
        });
        let owners: BTreeSet<(&str, &str)> = owners.collect();
        for (namespace, owner) in owners {
            if let Some(pod) = mirror.get::<Pod>(namespace, owner) {
                self.put_pod(mirror, pod, tables);
            }
        }
    }

    /// Nodes whose devices these claims have, or had.
    fn renew_allocated(
        &mut self,
        mirror: &Mirror,
        claims: &[Option<&Arc<ResourceClaim>>],
        tables: &mut Tables,
    ) {
        let pools: BTreeSet<String> = claims
            .iter()
            .flatten()
            .flat_map(|claim| claim.allocated())
            .map(|device| format!("{}/{}", device.driver, device.pool))
            .collect();
        let slices = pools
            .iter()
            .flat_map(|pool| mirror.indexed(Index::SlicePool, "", pool));
        let slices: Vec<&ResourceSlice> =
            slices.map(|slice: &Arc<ResourceSlice>| &**slice).collect();
        self.renew_reached(mirror, &slices, tables);
    }

    /// Pods that name a claim.
    fn renew_users(&mut self, mirror: &Mirror, claim: &ObjectKey, tables: &mut Tables) {
        let users = mirror.indexed::<Pod>(Index::PodDeviceClaim, &claim.namespace, &claim.name);
        for pod in users {
            if !pod.is_finished() {
                self.put_pod(mirror, pod, tables);
            }
        }
    }

    /// A pod with claims has changed or gone: who shares them may get them first now, and who holds their
    /// devices may be another.
    pub(super) fn feed_claimant(&mut self, mirror: &Mirror, change: &Change, tables: &mut Tables) {
        let sides = [change.before::<Pod>(), change.after()];
        let mut names = BTreeSet::new();
        for pod in sides.into_iter().flatten() {
            let claims = pod.spec.resource_claims.iter();
            names.extend(claims.filter_map(|claim| claim_name(mirror, pod, claim)));
        }
        for name in names {
            let key = ObjectKey::new(Kind::ResourceClaim, &change.key.namespace, &name);
            let claim = mirror.get::<ResourceClaim>(&key.namespace, &name);
            match claim.filter(|claim| claim.status.allocation.is_some()) {
                Some(claim) => self.renew_allocated(mirror, &[Some(claim)], tables),
                None => self.renew_users(mirror, &key, tables),
            }
        }
    }
}
