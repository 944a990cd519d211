//! Selectors, affinities, tolerations, ports and spreads of a pod.

use std::sync::Arc;

use api::core::{
    Affinity, NodeRequirement, NodeSelector, NodeSelectorTerm, Pod, PodAffinityTerm, PodSpec,
    TextMap, TopologySpreadConstraint,
};
use api::selector::LabelSelector;
use model::{
    HostPort, Inclusion, Labels, NodeTerm, Operator, PodTerm, Preferred, Requirement, ShapeSpec,
    Spread, Toleration, TolerationEffect, Values,
};

use super::Features;
use crate::held::Mirror;

pub(super) fn labels(map: &TextMap) -> Labels {
    Labels::of(map.iter().map(|(key, value)| (&**key, &**value)))
}

/// The labels of a node; none where it has gone.
pub(crate) fn node_labels(mirror: &Mirror, name: &str) -> Labels {
    let node = mirror.get::<api::core::Node>("", name);
    node.map_or_else(Labels::default, |node| labels(&node.metadata.labels))
}

/// Fills everything of a shape but requests and volumes.
pub(super) fn constrain(shape: &mut ShapeSpec, mirror: &Mirror, pod: &Pod, features: Features) {
    let spec = &pod.spec;
    shape.node_selector = spec
        .node_selector
        .iter()
        .map(|(key, value)| Requirement::equals(&**key, &**value))
        .collect();
    shape.tolerations = spec.tolerations.iter().filter_map(toleration).collect();
    shape.ports = ports(spec);
    shape.spread = spec
        .topology_spread_constraints
        .iter()
        .map(|constraint| spread(constraint, pod, features))
        .collect();
    if let Some(affinity) = &spec.affinity {
        constrain_by_affinity(shape, mirror, pod, affinity);
    }
}

fn constrain_by_affinity(shape: &mut ShapeSpec, mirror: &Mirror, pod: &Pod, affinity: &Affinity) {
    if let Some(nodes) = &affinity.node_affinity {
        shape.node_affinity = nodes.required.as_ref().map(node_terms);
        shape.preferred_nodes = nodes
            .preferred
            .iter()
            .map(|preferred| Preferred {
                weight: preferred.weight,
                term: node_term(&preferred.preference),
            })
            .collect();
    }
    let term = |term: &PodAffinityTerm| pod_term(term, mirror, pod);
    if let Some(near) = &affinity.pod_affinity {
        shape.pod_affinity = near.required.iter().map(term).collect();
        shape
            .preferred_pods
            .extend(near.preferred.iter().map(|p| Preferred {
                weight: p.weight,
                term: term(&p.pod_affinity_term),
            }));
    }
    if let Some(apart) = &affinity.pod_anti_affinity {
        shape.pod_anti_affinity = apart.required.iter().map(term).collect();
        shape
            .preferred_pods
            .extend(apart.preferred.iter().map(|p| Preferred {
                weight: p.weight.saturating_neg(),
                term: term(&p.pod_affinity_term),
            }));
    }
}

pub(crate) fn node_terms(selector: &NodeSelector) -> Vec<NodeTerm> {
    selector.node_selector_terms.iter().map(node_term).collect()
}

fn node_term(term: &NodeSelectorTerm) -> NodeTerm {
    NodeTerm {
        labels: term
            .match_expressions
            .iter()
            .map(node_requirement)
            .collect(),
        // Kubernetes allows `metadata.name` only.
        names: term.match_fields.iter().map(node_requirement).collect(),
    }
}

fn node_requirement(requirement: &NodeRequirement) -> Requirement {
    requirement_of(&requirement.key, &requirement.operator, &requirement.values)
}

fn requirement_of(key: &str, operator: &str, values: &[Box<str>]) -> Requirement {
    let operator = match operator {
        "DoesNotExist" => Operator::DoesNotExist,
        "Exists" => Operator::Exists,
        "Gt" => Operator::Gt,
        "In" => Operator::In,
        "Lt" => Operator::Lt,
        "NotIn" => Operator::NotIn,
        _ => return nothing(),
    };
    Requirement {
        key: key.into(),
        operator,
        values: values.iter().map(|value| &**value).collect(),
    }
}

/// A requirement that nothing meets.
fn nothing() -> Requirement {
    Requirement {
        key: "".into(),
        operator: Operator::In,
        values: Values::default(),
    }
}

/// Kubernetes: an absent selector selects nothing, an empty one everything.
pub(super) fn selector(selector: Option<&LabelSelector>) -> Vec<Requirement> {
    let Some(selector) = selector else {
        return vec![nothing()];
    };
    let equal = selector
        .match_labels
        .iter()
        .map(|(key, value)| Requirement::equals(&**key, &**value));
    let others = selector
        .match_expressions
        .iter()
        .map(|e| requirement_of(&e.key, &e.operator, &e.values));
    equal.chain(others).collect()
}

fn pod_term(term: &PodAffinityTerm, mirror: &Mirror, pod: &Pod) -> PodTerm {
    let mut wanted = selector(term.label_selector.as_ref());
    for key in &term.match_label_keys {
        if let Some(value) = pod.metadata.labels.get(key) {
            wanted.push(Requirement::equals(&**key, &**value));
        }
    }
    for key in &term.mismatch_label_keys {
        if let Some(value) = pod.metadata.labels.get(key) {
            wanted.push(Requirement {
                key: (&**key).into(),
                operator: Operator::NotIn,
                values: Values::from_iter([&**value]),
            });
        }
    }
    PodTerm {
        topology_key: (&*term.topology_key).into(),
        selector: wanted,
        namespaces: namespaces(term, mirror, pod),
    }
}

fn namespaces(term: &PodAffinityTerm, mirror: &Mirror, pod: &Pod) -> Option<Vec<Arc<str>>> {
    let mut names: Vec<Arc<str>> = term.namespaces.iter().map(|n| (&**n).into()).collect();
    match &term.namespace_selector {
        Some(selector) if selector.is_empty() => return None,
        Some(selector) => names.extend(
            mirror
                .list::<api::core::Namespace>()
                .filter(|namespace| selector.matches(&namespace.metadata.labels))
                .map(|namespace| Arc::from(&*namespace.metadata.name)),
        ),
        None if names.is_empty() => names.push((&*pod.metadata.namespace).into()),
        None => {}
    }
    names.sort();
    names.dedup();
    Some(names)
}

pub(super) fn toleration(toleration: &api::core::Toleration) -> Option<Toleration> {
    let value = match &*toleration.operator {
        "Exists" => None,
        "" | "Equal" => Some((&*toleration.value).into()),
        _ => return None,
    };
    Some(Toleration {
        key: Some(&*toleration.key)
            .filter(|key| !key.is_empty())
            .map(Into::into),
        value,
        effect: match &*toleration.effect {
            "" => TolerationEffect::Any,
            effect => TolerationEffect::Only(super::effect(effect)?),
        },
    })
}

fn ports(spec: &PodSpec) -> Vec<HostPort> {
    let mut ports: Vec<HostPort> = spec
        .containers
        .iter()
        .chain(
            spec.init_containers
                .iter()
                .filter(|container| container.restart_policy.as_deref() == Some("Always")),
        )
        .flat_map(|container| &container.ports)
        .filter_map(|port| {
            Some(HostPort {
                protocol: match &*port.protocol {
                    "" => "TCP".into(),
                    protocol => protocol.into(),
                },
                address: match &*port.host_ip {
                    "" => "0.0.0.0".into(),
                    address => address.into(),
                },
                port: u16::try_from(port.host_port)
                    .ok()
                    .filter(|port| *port > 0)?,
            })
        })
        .collect();
    ports.sort();
    ports.dedup();
    ports
}

fn spread(constraint: &TopologySpreadConstraint, pod: &Pod, features: Features) -> Spread {
    let mut wanted = selector(constraint.label_selector.as_ref());
    let keys = constraint.match_label_keys.iter();
    for key in keys.filter(|_| features.spread_label_keys) {
        if let Some(value) = pod.metadata.labels.get(key) {
            wanted.push(Requirement::equals(&**key, &**value));
        }
    }
    let said = |policy: &Option<Box<str>>, default: Inclusion| match features.spread_inclusion {
        true => inclusion(policy.as_deref(), default),
        false => default,
    };
    Spread {
        topology_key: (&*constraint.topology_key).into(),
        max_skew: constraint.max_skew,
        min_domains: constraint
            .min_domains
            .and_then(|domains| u32::try_from(domains).ok())
            .unwrap_or(1),
        required: &*constraint.when_unsatisfiable != "ScheduleAnyway",
        selector: wanted,
        namespace: (&*pod.metadata.namespace).into(),
        affinity: said(&constraint.node_affinity_policy, Inclusion::Honor),
        taints: said(&constraint.node_taints_policy, Inclusion::Ignore),
    }
}

fn inclusion(policy: Option<&str>, default: Inclusion) -> Inclusion {
    match policy {
        Some("Honor") => Inclusion::Honor,
        Some("Ignore") => Inclusion::Ignore,
        _ => default,
    }
}
