//! Addresses of Services, and the networks that they are taken from.

use api::names;
use serde_json::{Value, json};

use super::spot::{Faults, Spot};
use super::{IMMUTABLE, format, list, meta, same};

/// Checks a new address.
pub(super) fn address(address: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(address, format::address, faults);
    let spec = address.at("spec");
    let parent = spec.at("parentRef");
    if !parent.is_there() {
        return faults.required(&parent, "");
    }
    faults.name_if(&parent.at("group"), names::check_subdomain);
    for part in ["resource", "name"] {
        faults.need_name(&parent.at(part), names::check_path_segment);
    }
    faults.name_if(&parent.at("namespace"), names::check_path_segment);
}

/// An address keeps whom it belongs to.
pub(super) fn address_update(address: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(address, old, faults);
    let spec = address.at("spec");
    let parent = spec.at("parentRef");
    if !same(parent.value, &old["spec"]["parentRef"]) {
        let part = |name: &str| json!(parent.value[name].as_str().unwrap_or(""));
        let shown = json!({
            "Group": part("group"),
            "Resource": part("resource"),
            "Namespace": part("namespace"),
            "Name": part("name"),
        });
        faults.invalid_as(&parent, shown, IMMUTABLE);
    }
}

/// Checks new networks.
pub(super) fn networks(networks: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(networks, names::check_subdomain, faults);
    blocks(networks, faults);
}

fn blocks(networks: &Spot<'_, '_>, faults: &mut Faults) {
    let spec = networks.at("spec");
    let blocks = spec.at("cidrs");
    if blocks.is_empty() {
        return faults.required(&blocks, "at least one CIDR required");
    }
    if blocks.len() > 2 {
        // Upstream shows the whole spec.
        let shown = json!({ "CIDRs": blocks.value });
        return faults.invalid_as(&blocks, shown, "may only hold up to 2 values");
    }
    for block in blocks.items() {
        faults.name(&block, format::network);
    }
    let is_wide = |block: &Spot<'_, '_>| {
        let (address, _) = block.text().split_once('/')?;
        let address: std::net::IpAddr = address.parse().ok()?;
        Some(address.is_ipv6())
    };
    let families: Vec<Option<bool>> = blocks.items().map(|block| is_wide(&block)).collect();
    if let [Some(one), Some(other)] = families[..]
        && one == other
    {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        faults.invalid(&blocks, detail);
    }
}

/// A second network may be added, nothing else changes.
pub(super) fn networks_update(networks: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(networks, old, faults);
    let spec = networks.at("spec");
    let (now, was) = (spec.at("cidrs"), list(&old["spec"]["cidrs"]));
    match (was.len(), now.len()) {
        (before, after) if before == after || (before, after) == (1, 2) => {
            for (block, was) in now.items().zip(was) {
                faults.unchanged(&block, was);
            }
            if before != after {
                blocks(networks, faults);
            }
        }
        _ => faults.invalid_as(&now, list(now.value).to_vec(), IMMUTABLE),
    }
}
