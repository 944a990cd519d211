//! Which endpoint goes into which slice: those that are in one stay there, new ones fill the gaps.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::core::EndpointSlice;
use serde_json::{Value, json};

/// How many endpoints are put into one slice.
const ENDPOINTS_MAX: usize = 100;

/// The slices as they should be.
pub(super) struct Shared<'a> {
    /// Slices that stay, with their content.
    pub(super) kept: Vec<(&'a Arc<EndpointSlice>, Value)>,
    /// Content of slices to be made.
    pub(super) new: Vec<Value>,
    /// Slices without content.
    pub(super) idle: Vec<&'a Arc<EndpointSlice>>,
}

/// Shares endpoints, grouped by their ports, out to slices. A service without endpoints has one
/// empty slice.
pub(super) fn shared_out(
    known: Vec<&Arc<EndpointSlice>>,
    groups: Vec<(Value, Vec<Value>)>,
) -> Shared<'_> {
    let mut shared = Shared {
        kept: Vec::new(),
        new: Vec::new(),
        idle: Vec::new(),
    };
    let mut left = known;
    for (ports, endpoints) in groups {
        let (own, others): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|slice| has_ports(slice, &ports));
        left = others;
        share(&mut shared, own, &ports, endpoints);
    }
    if shared.kept.is_empty() && shared.new.is_empty() {
        let empty = json!({ "endpoints": [], "ports": [] });
        match left.is_empty() {
            true => shared.new.push(empty),
            false => shared.kept.push((left.remove(0), empty)),
        }
    }
    shared.idle.extend(left);
    // A slice that would go takes what would be put into a new one.
    let reused = shared.idle.len().min(shared.new.len());
    shared
        .kept
        .extend(shared.idle.drain(..reused).zip(shared.new.drain(..reused)));
    shared
}

fn share<'a>(
    shared: &mut Shared<'a>,
    own: Vec<&'a Arc<EndpointSlice>>,
    ports: &Value,
    endpoints: Vec<Value>,
) {
    let mut wanted: BTreeMap<String, Value> = endpoints
        .into_iter()
        .map(|endpoint| (pod_of(&endpoint["targetRef"]["uid"]), endpoint))
        .collect();
    let mut slices: Vec<(&Arc<EndpointSlice>, Vec<Value>)> = Vec::new();
    for slice in own {
        let uids = slice
            .endpoints
            .iter()
            .filter_map(|it| it.target_ref.as_ref());
        let stay = uids.filter_map(|target| wanted.remove(&*target.uid));
        slices.push((slice, stay.collect()));
    }
    let mut new = wanted.into_values();
    // The fullest first, so that slices that run empty can go.
    slices
        .sort_by_key(|(slice, stay)| (std::cmp::Reverse(stay.len()), slice.metadata.name.clone()));
    for (slice, mut endpoints) in slices {
        let room = ENDPOINTS_MAX.saturating_sub(endpoints.len());
        endpoints.extend(new.by_ref().take(room));
        match endpoints.is_empty() {
            true => shared.idle.push(slice),
            false => {
                let body = json!({ "endpoints": endpoints, "ports": ports });
                shared.kept.push((slice, body));
            }
        }
    }
    loop {
        let endpoints: Vec<Value> = new.by_ref().take(ENDPOINTS_MAX).collect();
        if endpoints.is_empty() {
            return;
        }
        let body = json!({ "endpoints": endpoints, "ports": ports });
        shared.new.push(body);
    }
}

fn pod_of(uid: &Value) -> String {
    uid.as_str().unwrap_or("").to_owned()
}

fn has_ports(slice: &EndpointSlice, ports: &Value) -> bool {
    let port = |port: &api::core::EndpointPort| {
        let mut value = json!({
            "name": port.name.as_deref().unwrap_or(""),
            "protocol": port.protocol(),
            "port": port.port,
        });
        if let Some(application) = &port.app_protocol {
            value["appProtocol"] = json!(application);
        }
        value
    };
    let known: Vec<Value> = slice.ports.iter().map(port).collect();
    json!(known) == *ports
}
