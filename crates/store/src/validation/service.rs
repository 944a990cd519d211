//! Services and their endpoints.

use std::collections::BTreeSet;
use std::net::IpAddr;

use api::names;
use serde_json::{Value, json};

use super::pod::container::PROTOCOLS;
use super::pod::handler::port;
use super::spot::{Faults, Spot};
use super::{format, list, meta};

/// Longest time that a client stays with its pod, in seconds.
const AFFINITY_SECONDS_MAX: i64 = 86_400;
/// The annotation that was a service's list of source ranges.
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// Checks a new service.
pub(super) fn create(service: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(service, names::check_label, faults);
    whole(service, &Value::Null, faults);
}

/// Checks a changed service.
pub(super) fn update(service: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(service, old, faults);
    let (spec, was) = (service.at("spec"), &old["spec"]);
    keeps_addresses(&spec, was, faults);
    keeps_families(&spec, was, faults);
    let class = spec.at("loadBalancerClass");
    let both = spec.at("type").text() == "LoadBalancer" && was["type"] == "LoadBalancer";
    if both && *class.value != was["loadBalancerClass"] {
        faults.invalid(&class, "may not change once set");
    }
    balancer_class(&spec, faults);
    if checks_health(spec.value) && checks_health(was) {
        let health = spec.at("healthCheckNodePort");
        if health.number() != was["healthCheckNodePort"].as_i64().unwrap_or(0) {
            faults.forbidden(&health, super::IMMUTABLE);
        }
    }
    whole(service, old, faults);
}

fn is_headless(spec: &Value) -> bool {
    let addresses = list(&spec["clusterIPs"]);
    addresses.len() == 1 && addresses[0] == "None"
}

fn checks_health(spec: &Value) -> bool {
    spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local"
}

fn whole(service: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    let spec = service.at("spec");
    let kind = spec.at("type").text();
    let is_headless = is_headless(spec.value);
    let ports = spec.at("ports");
    if ports.is_empty() && !is_headless && kind != "ExternalName" {
        faults.required(&ports, "");
    }
    let addresses = spec.at("clusterIPs");
    match kind {
        "LoadBalancer" | "NodePort" if is_headless => {
            let detail = format!("may not be set to 'None' for {kind} services");
            faults.invalid_text(&addresses.item(0), &detail);
        }
        "ExternalName" => external(&spec, faults),
        _ => {}
    }
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        check_port(&port, ports.len() > 1, &mut seen, faults);
    }
    faults.labels(&spec.at("selector"));
    affinity(&spec, faults);
    cluster_addresses(&spec, faults);
    for address in spec.at("externalIPs").items() {
        let before = faults.len();
        faults.name(&address, format::address);
        if faults.len() == before {
            faults.name(&address, outside);
        }
    }
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    faults.one_of(&spec.at("type"), &kinds);
    node_ports(&ports, kind, faults);
    let mut pairs = BTreeSet::new();
    for port in ports.items() {
        let (protocol, number) = (port.at("protocol").text(), port.at("port").number());
        if !pairs.insert((protocol, number)) {
            let shown = json!({
                "Name": "", "Protocol": protocol, "AppProtocol": null, "Port": number,
                "TargetPort": 0, "NodePort": 0,
            });
            faults.duplicate(&port, shown);
        }
    }
    balancer(service, &spec, old, faults);
    traffic(&spec, faults);
}

fn external(spec: &Spot<'_, '_>, faults: &mut Faults) {
    for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if !spec.at(field).is_empty() {
            let detail = "may not be set for ExternalName services";
            faults.forbidden(&spec.at(field), detail);
        }
    }
    let name = spec.at("externalName");
    let text = name.text().strip_suffix('.').unwrap_or(name.text());
    if text.is_empty() {
        faults.required(&name, "");
    } else {
        faults.name_as(&name, text, names::check_subdomain);
    }
}

fn check_port<'v>(
    at: &Spot<'v, '_>,
    needs_name: bool,
    seen: &mut BTreeSet<&'v str>,
    faults: &mut Faults,
) {
    let name = at.at("name");
    if !name.is_empty() {
        faults.name(&name, names::check_label);
        if !seen.insert(name.text()) {
            faults.duplicate(&name, name.text());
        }
    } else if needs_name {
        faults.required(&name, "");
    }
    faults.port(&at.at("port"));
    faults.one_of(&at.at("protocol"), PROTOCOLS);
    port(&at.at("targetPort"), faults);
    if at.at("appProtocol").is_there() {
        faults.name(&at.at("appProtocol"), names::check_qualified);
    }
}

fn affinity(spec: &Spot<'_, '_>, faults: &mut Faults) {
    let kind = spec.at("sessionAffinity");
    faults.one_of(&kind, &["ClientIP", "None"]);
    let config = spec.at("sessionAffinityConfig");
    if kind.text() == "None" && config.is_there() {
        let detail = "must not be set when session affinity is None";
        return faults.forbidden(&config, detail);
    }
    if kind.text() != "ClientIP" {
        return;
    }
    let client = config.at("clientIP");
    let seconds = client.at("timeoutSeconds");
    for at in [&config, &client, &seconds] {
        if !at.is_there() {
            return faults.required(at, "when session affinity type is ClientIP");
        }
    }
    if !(1..=AFFINITY_SECONDS_MAX).contains(&seconds.number()) {
        let detail = format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}");
        faults.invalid_as(&seconds, seconds.number(), detail);
    }
}

fn is_six(address: &str) -> bool {
    address
        .parse::<IpAddr>()
        .is_ok_and(|address| address.is_ipv6())
}

pub(super) fn cluster_addresses(spec: &Spot<'_, '_>, faults: &mut Faults) {
    if spec.at("type").text() == "ExternalName" {
        return;
    }
    let (one, all) = (spec.at("clusterIP"), spec.at("clusterIPs"));
    if one.is_empty() {
        if !all.is_empty() {
            faults.invalid(&all, "must be empty when `clusterIP` is not specified");
        }
    } else if all.is_empty() {
        faults.required(&all, "");
    } else if all.item(0).text() != one.text() {
        faults.invalid(&all, "first value must match `clusterIP`");
    }
    let families = spec.at("ipFamilies");
    let mut seen = BTreeSet::new();
    for family in families.items() {
        faults.known(&family, &["IPv4", "IPv6"]);
        if !seen.insert(family.text()) {
            faults.duplicate(&family, family.text());
        }
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    faults.known(&spec.at("ipFamilyPolicy"), &policies);
    let before = faults.len();
    for (index, address) in all.items().enumerate() {
        if index == 0 && address.text() == "None" {
            if all.len() > 1 {
                faults.invalid(&all, "'None' must be the first and only value");
            }
            continue;
        }
        faults.name(&address, format::address);
    }
    let is_wrong = faults.len() > before;
    if all.len() > 2 {
        faults.invalid(&all, "may only hold up to 2 values");
    }
    if is_wrong {
        return;
    }
    let sixes = all.items().filter(|one| is_six(one.text())).count();
    if all.len() > 1 && (sixes == 0 || sixes == all.len()) {
        let detail = "may specify no more than one IP for each IP family";
        faults.invalid(&all, detail);
    }
    if is_headless(spec.value) {
        return;
    }
    for (index, (address, family)) in all.items().zip(families.items()).enumerate() {
        let wanted = family.text();
        if (wanted == "IPv4" && is_six(address.text()))
            || (wanted == "IPv6" && !is_six(address.text()))
        {
            let detail =
                format!("expected an {wanted} value as indicated by `ipFamilies[{index}]`");
            faults.invalid_text(&address, &detail);
        }
    }
}

fn node_ports(ports: &Spot<'_, '_>, kind: &str, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    if kind == "ClusterIP" {
        for port in ports
            .items()
            .filter(|port| port.at("nodePort").number() != 0)
        {
            let detail = "may not be used when `type` is 'ClusterIP'";
            faults.forbidden(&port.at("nodePort"), detail);
        }
    }
    for port in ports.items() {
        let node = port.at("nodePort");
        if node.number() != 0 && !seen.insert((port.at("protocol").text(), node.number())) {
            faults.duplicate(&node, node.number());
        }
    }
}

fn balancer(service: &Spot<'_, '_>, spec: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    let is_balanced = spec.at("type").text() == "LoadBalancer";
    let only = "may only be used when `type` is 'LoadBalancer'";
    let ranges = spec.called("loadBalancerSourceRanges", "LoadBalancerSourceRanges");
    let metadata = service.at("metadata");
    let annotations = metadata.at("annotations");
    let annotation = annotations.key(SOURCE_RANGES);
    if !ranges.is_empty() {
        if !is_balanced {
            faults.forbidden(&ranges, only);
        }
        for range in ranges.items() {
            faults.name_as(&range, range.text().trim(), format::network);
        }
    } else if annotation.is_there() {
        if !is_balanced {
            faults.forbidden(&annotation, only);
        }
        let is_new = old["metadata"]["annotations"][SOURCE_RANGES] != *annotation.value;
        if is_new && !annotation.text().trim().is_empty() {
            for range in annotation.text().trim().split(',') {
                faults.name_as(&annotation, range.trim(), format::network);
            }
        }
    }
    let allocates = spec.at("allocateLoadBalancerNodePorts");
    if allocates.is_there() && !is_balanced {
        faults.forbidden(&allocates, only);
    }
    if is_balanced && !allocates.is_there() {
        faults.push(crate::field::FieldError::required(
            "allocateLoadBalancerNodePorts",
            "",
        ));
    }
    balancer_class(spec, faults);
}

fn balancer_class(spec: &Spot<'_, '_>, faults: &mut Faults) {
    let class = spec.at("loadBalancerClass");
    if !class.is_there() {
        return;
    }
    if spec.at("type").text() == "LoadBalancer" {
        faults.name(&class, names::check_qualified);
    } else {
        faults.forbidden(&class, "may only be used when `type` is 'LoadBalancer'");
    }
}

fn traffic(spec: &Spot<'_, '_>, faults: &mut Faults) {
    let kind = spec.at("type").text();
    let is_outside = matches!(kind, "LoadBalancer" | "NodePort")
        || (kind == "ClusterIP" && !spec.at("externalIPs").is_empty());
    let policy = spec.at("externalTrafficPolicy");
    if is_outside {
        faults.one_of(&policy, &["Cluster", "Local"]);
    } else if !policy.is_empty() {
        let detail = "may only be set for externally-accessible services";
        faults.invalid_text(&policy, detail);
    }
    let health = spec.at("healthCheckNodePort");
    if checks_health(spec.value) {
        if health.number() == 0 {
            faults.required(&health, "");
        } else {
            faults.port(&health);
        }
    } else if health.number() != 0 {
        let detail =
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        faults.invalid_as(&health, health.number(), detail);
    }
    let inner = spec.at("internalTrafficPolicy");
    if !inner.is_there() && matches!(kind, "ClusterIP" | "LoadBalancer" | "NodePort") {
        faults.required(&inner, "");
    }
    faults.known(&inner, &["Cluster", "Local"]);
    let ways = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    faults.known(&spec.at("trafficDistribution"), &ways);
}

fn is_external(spec: &Value) -> bool {
    spec["type"] == "ExternalName"
}

fn keeps_addresses(spec: &Spot<'_, '_>, was: &Value, faults: &mut Faults) {
    if is_external(spec.value) || is_external(was) {
        return;
    }
    if is_headless(spec.value) && is_headless(was) {
        return;
    }
    let new = spec.at("clusterIPs");
    let had = list(&was["clusterIPs"]);
    let changed = "may not change once set";
    let first_changed = !had.is_empty() && !new.is_empty() && *new.item(0).value != had[0];
    let policy = spec.at("ipFamilyPolicy");
    match had.len().cmp(&new.len()) {
        std::cmp::Ordering::Equal => {
            for (address, had) in new.items().zip(had) {
                if address.value != had {
                    faults.invalid_as(&address, new.value.clone(), changed);
                }
            }
        }
        std::cmp::Ordering::Greater => {
            if new.is_empty() {
                let detail = "primary clusterIP can not be unset";
                faults.invalid_as(&new.item(0), new.value.clone(), detail);
            }
            if first_changed {
                faults.invalid_as(&new.item(0), new.value.clone(), changed);
            }
            if new.len() == 1 && policy.text() != "SingleStack" {
                let detail = "must be set to 'SingleStack' when releasing the secondary clusterIP";
                faults.invalid(&policy, detail);
            }
        }
        std::cmp::Ordering::Less => {
            if first_changed {
                faults.invalid_as(&new.item(0), new.value.clone(), changed);
            }
        }
    }
}

fn keeps_families(spec: &Spot<'_, '_>, was: &Value, faults: &mut Faults) {
    if is_external(spec.value) || is_external(was) || is_headless(spec.value) || is_headless(was) {
        return;
    }
    let new = spec.at("ipFamilies");
    let had = list(&was["ipFamilies"]);
    let first = new.item(0);
    if had.len() == new.len() {
        for _ in new.items().zip(had).filter(|(new, had)| new.value != *had) {
            faults.invalid_as(&first, new.value.clone(), "may not change once set");
        }
    } else if !new.is_empty() && !had.is_empty() && *first.value != had[0] {
        let shown = spec.at("clusterIPs").value.clone();
        faults.invalid_as(&first, shown, "may not change once set");
    }
}

/// Checks what a load balancer says of itself.
pub(super) fn status(service: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(service, old, faults);
    let status = service.at("status");
    let balancer = status.at("loadBalancer");
    let ingress = balancer.at("ingress");
    if service.at("spec").at("type").text() != "LoadBalancer" && !ingress.is_empty() {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        return faults.forbidden(&ingress, detail);
    }
    for one in ingress.items() {
        let (address, mode) = (one.at("ip"), one.at("ipMode"));
        faults.name_if(&address, format::address);
        if !mode.is_there() {
            if !address.is_empty() {
                faults.required(&mode, "must be specified when `ip` is set");
            }
        } else if address.is_empty() {
            faults.forbidden(&mode, "may not be specified when `ip` is not set");
        } else {
            faults.known(&mode, &["Proxy", "VIP"]);
        }
        host(&one.at("hostname"), faults);
    }
}

/// A host's name, which is no address.
pub(super) fn host(name: &Spot<'_, '_>, faults: &mut Faults) {
    if name.is_empty() {
        return;
    }
    faults.name(name, names::check_subdomain);
    if name.text().parse::<IpAddr>().is_ok() {
        faults.invalid_text(name, "must be a DNS name, not an IP address");
    }
}

/// An address at which others are reached.
pub(super) fn outside(text: &str) -> Vec<String> {
    let Ok(address) = text.parse::<IpAddr>() else {
        return vec!["must be a valid IP address".to_owned()];
    };
    let (is_link_local, is_link_multicast) = match address {
        IpAddr::V4(four) => (four.is_link_local(), four.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(six) => (
            six.is_unicast_link_local(),
            six.segments()[0] & 0xff0f == 0xff02,
        ),
    };
    let rules = [
        (
            address.is_unspecified(),
            format!("may not be unspecified ({text})"),
        ),
        (
            address.is_loopback(),
            "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned(),
        ),
        (
            is_link_local,
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned(),
        ),
        (
            is_link_multicast,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned(),
        ),
    ];
    rules
        .into_iter()
        .filter(|(is_wrong, _)| *is_wrong)
        .map(|(_, detail)| detail)
        .collect()
}

/// Checks endpoints.
pub(super) fn endpoints(endpoints: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(endpoints, names::check_subdomain, faults);
    for subset in endpoints.at("subsets").items() {
        let (ready, waiting) = (subset.at("addresses"), subset.at("notReadyAddresses"));
        if ready.is_empty() && waiting.is_empty() {
            faults.required(&subset, "must specify `addresses` or `notReadyAddresses`");
        }
        for address in ready.items().chain(waiting.items()) {
            let ip = address.at("ip");
            faults.name(&ip, format::address);
            faults.name_if(&address.at("hostname"), names::check_label);
            if address.at("nodeName").is_there() {
                faults.name(&address.at("nodeName"), names::check_subdomain);
            }
            faults.name(&ip, outside);
        }
        let ports = subset.at("ports");
        for port in ports.items() {
            let name = port.at("name");
            if name.is_empty() && ports.len() > 1 {
                faults.required(&name, "");
            }
            faults.name_if(&name, names::check_label);
            faults.port(&port.at("port"));
            faults.one_of(&port.at("protocol"), PROTOCOLS);
            faults.name_if(&port.at("appProtocol"), names::check_qualified);
        }
    }
}

pub(super) fn endpoints_update(changed: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(changed, old, faults);
    endpoints(changed, faults);
}

/// Most endpoints of a slice.
const ENDPOINTS_MAX: i64 = 1_000;
/// Most addresses of an endpoint.
const ADDRESSES_MAX: i64 = 100;
/// Most ports of a slice.
const PORTS_MAX: i64 = 20_000;
/// Most hints of an endpoint.
const HINTS_MAX: i64 = 8;

/// Checks a slice of endpoints.
pub(super) fn slice(slice: &Spot<'_, '_>, faults: &mut Faults) {
    slice_but_endpoints(slice, faults);
    endpoints_of_slice(slice, faults);
}

fn slice_but_endpoints(slice: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(slice, names::check_subdomain, faults);
    let kind = slice.at("addressType");
    faults.one_of(&kind, &["FQDN", "IPv4", "IPv6"]);
    let ports = slice.at("ports");
    if ports.len() as i64 > PORTS_MAX {
        faults.too_many(&ports, PORTS_MAX);
    } else {
        let mut seen = BTreeSet::new();
        for port in ports.items() {
            let name = port.at("name");
            faults.name_if(&name, names::check_label);
            if !seen.insert(name.text()) {
                faults.duplicate(&name, name.text());
            }
            if port.at("protocol").is_there() {
                faults.known(&port.at("protocol"), PROTOCOLS);
            } else {
                faults.required(&port.at("protocol"), "");
            }
            if port.at("appProtocol").is_there() {
                faults.name(&port.at("appProtocol"), names::check_qualified);
            }
        }
    }
}

fn endpoints_of_slice(slice: &Spot<'_, '_>, faults: &mut Faults) {
    let kind = slice.at("addressType");
    let endpoints = slice.at("endpoints");
    if endpoints.len() as i64 > ENDPOINTS_MAX {
        return faults.too_many(&endpoints, ENDPOINTS_MAX);
    }
    for endpoint in endpoints.items() {
        check_endpoint(&endpoint, kind.text(), faults);
    }
}

fn check_endpoint(endpoint: &Spot<'_, '_>, kind: &str, faults: &mut Faults) {
    let addresses = endpoint.at("addresses");
    if addresses.is_empty() {
        faults.required(&addresses, "must contain at least 1 address");
    } else if addresses.len() as i64 > ADDRESSES_MAX {
        faults.too_many(&addresses, ADDRESSES_MAX);
    }
    for address in addresses.items() {
        if kind == "FQDN" {
            faults.name(&address, names::check_subdomain);
            continue;
        }
        let before = faults.len();
        faults.name(&address, format::address);
        if faults.len() > before || !matches!(kind, "IPv4" | "IPv6") {
            continue;
        }
        if is_six(address.text()) != (kind == "IPv6") {
            let detail = format!("must be an {kind} address");
            faults.invalid_as(&addresses, address.text(), detail);
        }
        faults.name(&address, outside);
    }
    if endpoint.at("nodeName").is_there() {
        faults.name(&endpoint.at("nodeName"), names::check_subdomain);
    }
    if endpoint.at("hostname").is_there() {
        faults.name(&endpoint.at("hostname"), names::check_label);
    }
    let hints = endpoint.at("hints");
    let kinds: [(&str, meta::NameRule); 2] = [
        ("forZones", names::check_label_value),
        ("forNodes", names::check_subdomain),
    ];
    for (field, rule) in kinds {
        let hints = hints.at(field);
        if hints.len() as i64 > HINTS_MAX {
            return faults.too_many(&hints, HINTS_MAX);
        }
        let mut seen = BTreeSet::new();
        for hint in hints.items() {
            let name = hint.at("name");
            if !seen.insert(name.text()) {
                faults.duplicate(&name, name.text());
            }
            faults.name(&name, rule);
        }
    }
}

pub(super) fn slice_update(changed: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    slice_but_endpoints(changed, faults);
    // Endpoints that were there before may be wrong.
    if changed.value["endpoints"] != old["endpoints"] {
        endpoints_of_slice(changed, faults);
    }
    faults.unchanged(&changed.at("addressType"), &old["addressType"]);
}
