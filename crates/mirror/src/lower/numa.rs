//! What a bound pod is told of its node's units.
//!
//! Source: `specs/volcano.md`, sections 1.14 and 3.6.

use std::collections::BTreeMap;

use api::core::TextMap;
use api::volcano::{NUMA_UNITS, TOPOLOGY_DECISION};
use model::{Grant, NumaLayout};
use serde_json::json;

/// The annotations of a pod that gets these units; none if it gets none. Upstream's says how many on
/// which NUMA node, ours which ones, so that whoever begins anew keeps them for it.
pub(super) fn annotations(grants: &[Grant], layout: &NumaLayout) -> TextMap {
    let mut by_node: BTreeMap<String, BTreeMap<&str, String>> = BTreeMap::new();
    let mut units: BTreeMap<&str, String> = BTreeMap::new();
    for grant in grants.iter().filter(|grant| !grant.units.is_empty()) {
        units.insert(&grant.card, grant.units.to_string());
        for (node, count) in layout.spread_of(&grant.card, &grant.units) {
            let amounts = by_node.entry(node.to_string()).or_default();
            amounts.insert(&grant.card, count.to_string());
        }
    }
    if units.is_empty() {
        return TextMap::new();
    }
    let decision = json!({ "numa": by_node }).to_string();
    TextMap::from([
        (TOPOLOGY_DECISION.into(), decision.into()),
        (NUMA_UNITS.into(), json!(units).to_string().into()),
    ])
}
