//! Cluster addresses and node ports of Services.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Map, Value, json};

use crate::field::FieldError;
use crate::status::Outcome;
use crate::store::Store;
use crate::validation;
use crate::write::{Writing, text};

/// The first address of the service network, 10.96.0.0/16.
const NETWORK: u32 = 0x0a60_0000;
/// Addresses in it.
const NETWORK_SIZE: u32 = 1 << 16;
/// The first address that is given out unasked; those before are for the plane itself.
const FIRST_FREE: u32 = 16;
/// Node ports.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

impl Store {
    /// Gives a Service its addresses, or keeps those that it has.
    pub(crate) fn allocate(
        &self,
        writing: &Writing<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Outcome<()> {
        if writing.row.shelf.as_ref() != "/services" {
            return Ok(());
        }
        let name = text(&object["metadata"]["name"]);
        if old.is_some() {
            settle(object, old);
            // Fields that do not fit each other are refused before anything else is looked at.
            let errors = validation::validate_addresses(object);
            if !errors.is_empty() {
                return Err(writing.invalid(&name, &errors));
            }
        }
        let own = crate::read::key_of(&writing.target.namespace, &name);
        self.give_address(&own, object, old)
            .and_then(|()| self.give_ports(&own, object, old))
            .map_err(|error| writing.invalid(&name, &[error]))
    }

    fn give_address(
        &self,
        own: &str,
        service: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), FieldError> {
        let spec = &mut service["spec"];
        if spec["type"] == "ExternalName" || !spec.is_object() {
            return Ok(());
        }
        let held = old
            .map(|old| text(&old["spec"]["clusterIP"]))
            .unwrap_or_default();
        let mut wanted = text(&spec["clusterIP"]);
        if wanted.is_empty() {
            wanted = text(&spec["clusterIPs"][0]);
        }
        if wanted.is_empty() && !held.is_empty() {
            wanted.clone_from(&held);
        }
        if !held.is_empty() && wanted != held {
            // The checks that follow say so.
            return Ok(());
        }
        if wanted.is_empty() {
            let used = self.used_addresses(own);
            let free = (FIRST_FREE..NETWORK_SIZE - 1).find(|at| !used.contains(at));
            let at = free.ok_or_else(|| {
                FieldError::internal(
                    "spec.clusterIP",
                    "failed to allocate a serviceIP: range is full",
                )
            })?;
            wanted = Ipv4Addr::from(NETWORK + at).to_string();
        } else if wanted != "None" && held.is_empty() {
            let at = offset(&wanted).ok_or_else(|| {
                FieldError::invalid(
                    "spec.clusterIPs",
                    json!([wanted]),
                    format!("failed to allocate IP {wanted}: the provided network does not match the current range"),
                )
            })?;
            if self.used_addresses(own).contains(&at) {
                return Err(FieldError::invalid(
                    "spec.clusterIPs",
                    json!([wanted]),
                    format!("failed to allocate IP {wanted}: provided IP is already allocated"),
                ));
            }
        }
        spec["clusterIP"] = json!(wanted);
        spec["clusterIPs"] = json!([wanted]);
        Ok(())
    }

    fn used_addresses(&self, own: &str) -> BTreeSet<u32> {
        let Some(id) = self.registry.known(api::kind::Kind::Service) else {
            return BTreeSet::new();
        };
        let column = self
            .registry
            .row(id)
            .selectable
            .iter()
            .position(|field| &**field == "spec.clusterIP");
        self.shelf(id)
            .latest_range("")
            .iter()
            .filter(|(key, _)| &**key != own)
            .filter_map(|(_, entry)| offset(entry.field(column?)))
            .collect()
    }

    fn give_ports(
        &self,
        own: &str,
        service: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), FieldError> {
        if !matches!(
            service["spec"]["type"].as_str(),
            Some("NodePort" | "LoadBalancer")
        ) {
            if let Some(old) = old {
                drop_ports(service, old);
            }
            return Ok(());
        }
        let taken = self.used_ports(own);
        let mut used = taken.clone();
        let Some(ports) = service["spec"]["ports"].as_array_mut() else {
            return Ok(());
        };
        used.extend(ports.iter().filter_map(|port| port["nodePort"].as_i64()));
        for (index, port) in ports.iter_mut().enumerate() {
            match port["nodePort"].as_i64().unwrap_or(0) {
                0 => {
                    let held = old
                        .and_then(|old| old["spec"]["ports"][index]["nodePort"].as_i64())
                        .filter(|held| *held != 0);
                    let given =
                        held.or_else(|| NODE_PORTS.into_iter().find(|at| !used.contains(at)));
                    let at = given.ok_or_else(|| {
                        FieldError::internal(
                            "spec.ports",
                            "failed to allocate a nodePort: range is full",
                        )
                    })?;
                    used.insert(at);
                    port["nodePort"] = json!(at);
                }
                asked if !NODE_PORTS.contains(&asked) => {
                    return Err(FieldError::invalid(
                        &format!("spec.ports[{index}].nodePort"),
                        asked,
                        "provided port is not in the valid range. The range of valid ports is 30000-32767",
                    ));
                }
                asked if taken.contains(&asked) => {
                    return Err(FieldError::invalid(
                        &format!("spec.ports[{index}].nodePort"),
                        asked,
                        "provided port is already allocated",
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn used_ports(&self, own: &str) -> BTreeSet<i64> {
        let Some(id) = self.registry.known(api::kind::Kind::Service) else {
            return BTreeSet::new();
        };
        self.shelf(id)
            .latest_range("")
            .iter()
            .filter(|(key, _)| &**key != own)
            .flat_map(|(_, entry)| {
                let service = entry.value();
                let ports = service["spec"]["ports"].as_array().cloned();
                ports.unwrap_or_default()
            })
            .filter_map(|port| port["nodePort"].as_i64())
            .collect()
    }
}

/// Fills in what of a Service's address fields follows from others, and from how they were: no
/// client comes to own it.
pub(crate) fn settle(service: &mut Value, old: Option<&Value>) {
    let spec = &mut service["spec"];
    if spec["type"] == "ExternalName" || !spec.is_object() {
        return;
    }
    let was = old.map_or(&Value::Null, |old| &old["spec"]);
    let is_bare = |value: &Value| match value {
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        other => other.is_null(),
    };
    for field in ["clusterIP", "clusterIPs"] {
        if is_bare(&spec[field]) && !is_bare(&was[field]) && was["type"] != "ExternalName" {
            spec[field] = was[field].clone();
        }
    }
    // Whoever knows only the one field means the other, too.
    let one = spec["clusterIP"].clone();
    let is_left = is_bare(&spec["clusterIPs"]) || spec["clusterIPs"] == was["clusterIPs"];
    if !is_bare(&one) && is_left && one != was["clusterIP"] {
        spec["clusterIPs"] = json!([one]);
    }
    // Somebody else says where a Service without selector and address leads, in both families.
    let is_bodiless = one == "None" && spec["selector"].as_object().is_none_or(Map::is_empty);
    if is_bare(&spec["ipFamilyPolicy"]) {
        spec["ipFamilyPolicy"] = match (&was["ipFamilyPolicy"], is_bodiless) {
            (Value::String(policy), _) => json!(policy),
            (_, true) => json!("RequireDualStack"),
            (_, false) => json!("SingleStack"),
        };
    }
    if is_bare(&spec["ipFamilies"]) {
        spec["ipFamilies"] = json!(["IPv4"]);
    }
    let families = spec["ipFamilies"].as_array().map_or(0, Vec::len);
    if is_bodiless && families == 1 && spec["ipFamilyPolicy"] != "SingleStack" {
        let other = match spec["ipFamilies"][0] == "IPv4" {
            true => "IPv6",
            false => "IPv4",
        };
        if let Some(list) = spec["ipFamilies"].as_array_mut() {
            list.push(json!(other));
        }
    }
    for field in ["clusterIP", "clusterIPs", "selector"] {
        if spec[field].is_null()
            && let Some(map) = spec.as_object_mut()
        {
            map.remove(field);
        }
    }
}

/// A Service that becomes a plain one loses the node ports that it was given before.
fn drop_ports(service: &mut Value, old: &Value) {
    let held = |port: &Value| {
        let ports = old["spec"]["ports"].as_array();
        ports.is_some_and(|ports| ports.iter().any(|one| one["nodePort"] == *port))
    };
    let ports = service["spec"]["ports"].as_array_mut();
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        if port.get("nodePort").is_some_and(held) {
            port.remove("nodePort");
        }
    }
}

/// The place of an address in the service network.
fn offset(address: &str) -> Option<u32> {
    let address: Ipv4Addr = address.parse().ok()?;
    u32::from(address)
        .checked_sub(NETWORK)
        .filter(|at| *at < NETWORK_SIZE)
}
