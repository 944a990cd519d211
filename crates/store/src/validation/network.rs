//! Network policies, ingresses and their classes.

use std::net::IpAddr;

use api::names;
use serde_json::Value;

use super::pod::affinity::label_selector;
use super::spot::{Faults, Spot};
use super::{format, meta};
use crate::annotations::INGRESS_CLASS;

pub(super) fn policy(policy: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(policy, names::check_subdomain, faults);
    policy_spec(&policy.at("spec"), faults);
}

pub(super) fn policy_update(policy: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(policy, old, faults);
    policy_spec(&policy.at("spec"), faults);
}

fn policy_spec(spec: &Spot<'_, '_>, faults: &mut Faults) {
    label_selector(&spec.at("podSelector"), faults);
    for (direction, who) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.at(direction).items() {
            for port in rule.at("ports").items() {
                check_port(&port, faults);
            }
            for peer in rule.at(who).items() {
                check_peer(&peer, faults);
            }
        }
    }
    let kinds = spec.at("policyTypes");
    if kinds.len() > 2 {
        return faults.invalid(&kinds, "may not specify more than two policyTypes");
    }
    for kind in kinds.items() {
        faults.known(&kind, &["Ingress", "Egress"]);
    }
}

fn check_port(at: &Spot<'_, '_>, faults: &mut Faults) {
    faults.known(&at.at("protocol"), &["TCP", "UDP", "SCTP"]);
    let (first, last) = (at.at("port"), at.at("endPort"));
    if first.value.is_string() {
        if last.is_there() {
            let detail = "may not be specified when `port` is non-numeric";
            faults.invalid(&last, detail);
        }
        faults.name(&first, names::check_port_name);
    } else if first.is_there() {
        faults.port(&first);
        if last.is_there() {
            if last.number() < first.number() {
                let detail = "must be greater than or equal to `port`";
                faults.invalid_as(&last, first.number(), detail);
            }
            faults.port(&last);
        }
    } else if last.is_there() {
        let detail = "may not be specified when `port` is not specified";
        faults.invalid(&last, detail);
    }
}

fn check_peer(peer: &Spot<'_, '_>, faults: &mut Faults) {
    let mut count = 0;
    for selector in ["podSelector", "namespaceSelector"] {
        let at = peer.at(selector);
        if at.is_there() {
            count += 1;
            label_selector(&at, faults);
        }
    }
    let block = peer.at("ipBlock");
    if block.is_there() {
        count += 1;
        check_block(&block, faults);
    }
    if count == 0 {
        faults.required(peer, "must specify a peer");
    } else if count > 1 && block.is_there() {
        faults.forbidden(peer, "may not specify both ipBlock and another peer");
    }
}

/// The address and prefix length of a network.
fn parse(network: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = network.split_once('/')?;
    Some((address.parse().ok()?, bits.parse().ok()?))
}

fn is_inside(outer: (IpAddr, u32), inner: (IpAddr, u32)) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(four) => (u128::from(u32::from(four)) << 96, 4),
        IpAddr::V6(six) => (u128::from(six), 6),
    };
    let ((a, a_kind), (b, b_kind)) = (bits(outer.0), bits(inner.0));
    let mask = u128::MAX.checked_shl(128 - outer.1.min(128)).unwrap_or(0);
    a_kind == b_kind && a & mask == b & mask && inner.1 > outer.1
}

fn check_block(block: &Spot<'_, '_>, faults: &mut Faults) {
    let network = block.at("cidr");
    if network.is_empty() {
        return faults.required(&network, "");
    }
    faults.name(&network, format::network);
    let Some(outer) = parse(network.text()) else {
        return;
    };
    for except in block.at("except").items() {
        faults.name(&except, format::network);
        if let Some(inner) = parse(except.text())
            && !is_inside(outer, inner)
        {
            faults.invalid_text(&except, "must be a strict subset of `cidr`");
        }
    }
}

pub(super) fn ingress(ingress: &Spot<'_, '_>, faults: &mut Faults) {
    whole_ingress(ingress, faults);
    let metadata = ingress.at("metadata");
    let annotation = &metadata.value["annotations"][INGRESS_CLASS];
    let spec = ingress.at("spec");
    let class = spec.at("ingressClassName");
    if !annotation.is_null() && class.is_there() && annotation != class.value {
        let detail = "must match `ingressClassName` when both are specified";
        let at = "annotations.kubernetes.io/ingress.class";
        faults.push(crate::field::FieldError::invalid(
            at,
            annotation.clone(),
            detail,
        ));
    }
}

pub(super) fn ingress_update(changed: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(changed, old, faults);
    whole_ingress(changed, faults);
}

fn whole_ingress(ingress: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(ingress, names::check_subdomain, faults);
    let spec = ingress.at("spec");
    let (backend, rules) = (spec.at("defaultBackend"), spec.at("rules"));
    if rules.is_empty() && !backend.is_there() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        faults.invalid_as(&spec, rules.value.clone(), detail);
    }
    if backend.is_there() {
        check_backend(&backend, faults);
    }
    for rule in rules.items() {
        let host = rule.at("host");
        if !host.is_empty() {
            if host.text().parse::<IpAddr>().is_ok() {
                faults.invalid_text(&host, "must be a DNS name, not an IP address");
            }
            faults.name(&host, host_rule(host.text()));
        }
        let http = rule.at("http");
        if http.is_there() {
            faults.need(&http.at("paths"));
        }
        for path in http.at("paths").items() {
            check_path(&path, faults);
        }
    }
    for secured in spec.at("tls").items() {
        for host in secured.at("hosts").items() {
            faults.name(&host, host_rule(host.text()));
        }
        faults.name_if(&secured.at("secretName"), names::check_subdomain);
    }
    if spec.at("ingressClassName").is_there() {
        faults.name(&spec.at("ingressClassName"), names::check_subdomain);
    }
}

fn host_rule(host: &str) -> meta::NameRule {
    if host.contains('*') {
        wildcard
    } else {
        names::check_subdomain
    }
}

fn wildcard(text: &str) -> Vec<String> {
    let is_host = text
        .strip_prefix("*.")
        .is_some_and(|rest| names::check_subdomain(rest).is_empty());
    if is_host {
        return Vec::new();
    }
    vec![
        r"a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            .to_owned(),
    ]
}

fn check_path(path: &Spot<'_, '_>, faults: &mut Faults) {
    let (kind, at) = (path.at("pathType"), path.at("path"));
    if !kind.is_there() {
        return faults.required(&kind, "pathType must be specified");
    }
    let text = at.text();
    match kind.text() {
        "Exact" | "Prefix" => {
            if !text.starts_with('/') {
                faults.invalid_text(&at, "must be an absolute path");
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"] {
                if text.contains(part) {
                    faults.invalid_text(&at, &format!("must not contain '{part}'"));
                }
            }
            for end in ["/..", "/."] {
                if text.ends_with(end) {
                    faults.invalid_text(&at, &format!("cannot end with '{end}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !text.starts_with('/') {
                faults.invalid_text(&at, "must be an absolute path");
            }
        }
        _ => faults.not_supported(&kind, &["Exact", "ImplementationSpecific", "Prefix"]),
    }
    check_backend(&path.at("backend"), faults);
}

fn check_backend(backend: &Spot<'_, '_>, faults: &mut Faults) {
    let (resource, service) = (backend.at("resource"), backend.at("service"));
    match (resource.is_there(), service.is_there()) {
        (true, true) => {
            let detail = "cannot set both resource and service backends";
            faults.invalid_as(backend, "", detail);
        }
        (true, false) => {
            faults.need(&resource.at("kind"));
            faults.need(&resource.at("name"));
        }
        (false, true) => {
            faults.need_name(&service.at("name"), names::check_label);
            let port = service.at("port");
            let (name, number) = (port.at("name"), port.at("number"));
            match (!name.is_empty(), number.number() != 0) {
                (true, true) => {
                    faults.invalid_as(backend, "", "cannot set both port name & port number");
                }
                (true, false) => faults.name(&name, names::check_port_name),
                (false, true) => faults.port(&number),
                (false, false) => {
                    faults.required(backend, "port name or number is required");
                }
            }
        }
        (false, false) => {
            faults.invalid_as(backend, "", "resource or service backend is required");
        }
    }
}

pub(super) fn ingress_status(ingress: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(ingress, old, faults);
    let status = ingress.at("status");
    let balancer = status.at("loadBalancer");
    for one in balancer.at("ingress").items() {
        faults.name_if(&one.at("ip"), format::address);
        super::service::host(&one.at("hostname"), faults);
    }
}

/// Longest name of a controller.
const CONTROLLER_BYTES_MAX: usize = 250;

pub(super) fn class(class: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(class, names::check_subdomain, faults);
    let spec = class.at("spec");
    let controller = spec.at("controller");
    if controller.text().len() > CONTROLLER_BYTES_MAX {
        faults.too_long(&controller, CONTROLLER_BYTES_MAX as i64);
    }
    super::job::domain_path(&controller, faults);
    let parameters = spec.at("parameters");
    if !parameters.is_there() {
        return;
    }
    faults.name_if(&parameters.at("apiGroup"), names::check_subdomain);
    faults.need_name(&parameters.at("kind"), names::check_path_segment);
    faults.need_name(&parameters.at("name"), names::check_path_segment);
    let (scope, namespace) = (parameters.at("scope"), parameters.at("namespace"));
    if !scope.is_there() {
        return faults.required(&scope, "");
    }
    faults.known(&scope, &["Cluster", "Namespace"]);
    match scope.text() {
        "Namespace" if !namespace.is_there() => {
            faults.required(&namespace, "`parameters.scope` is set to 'Namespace'");
        }
        "Namespace" => faults.name(&namespace, names::check_label),
        "Cluster" if namespace.is_there() => {
            faults.forbidden(&namespace, "`parameters.scope` is set to 'Cluster'");
        }
        _ => {}
    }
}

pub(super) fn class_update(changed: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(changed, old, faults);
    let spec = changed.at("spec");
    faults.unchanged(&spec.at("controller"), &old["spec"]["controller"]);
    class(changed, faults);
}
