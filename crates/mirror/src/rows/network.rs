//! Hyper-nodes as rows, and how close together the pods of a gang must be.

use std::collections::BTreeSet;

use api::core::Node;
use api::kind::Kind;
use api::volcano::{
    HyperNode, HyperNodeMember, HyperNodeSelector, MEMBER_PATTERN_BYTES_MAX, NetworkTopology,
    SubGroupPolicy, member_pattern,
};
use model::{Closeness, Highest, HyperNodeSpec, Member, Pattern, Selector, SubGroups};

use super::{constraints, count};
use crate::held::Mirror;
use crate::object::Typed;

/// The row of a hyper-node.
pub(super) fn hyper_node(hyper_node: &HyperNode) -> HyperNodeSpec {
    let patterns = hyper_node.spec.members.iter().filter_map(pattern);
    let unreadable = patterns.filter(|pattern| compiled(pattern).is_none());
    HyperNodeSpec {
        unreadable: unreadable.map(Into::into).collect(),
        name: (&*hyper_node.metadata.name).into(),
        tier: tier(hyper_node.spec.tier.unwrap_or(0)),
        tier_name: (&*hyper_node.spec.tier_name).into(),
        members: hyper_node.spec.members.iter().filter_map(member).collect(),
    }
}

fn tier(number: i64) -> u32 {
    // One tier is left for the whole cluster.
    u32::try_from(number.max(0)).map_or(u32::MAX - 1, |tier| tier.min(u32::MAX - 1))
}

/// A member that says nothing, or nothing that can be read, selects nothing.
fn member(member: &HyperNodeMember) -> Option<Member> {
    let selector = selector(member.selector.as_ref()?)?;
    match &*member.kind {
        "Node" => Some(Member::Nodes(selector)),
        "HyperNode" => Some(Member::HyperNodes(selector)),
        _ => None,
    }
}

fn selector(selector: &HyperNodeSelector) -> Option<Selector> {
    if let Some(exact) = &selector.exact_match {
        return Some(Selector::Name((&*exact.name).into()));
    }
    if let Some(matched) = &selector.regex_match {
        let compiled = compiled(&matched.pattern)?;
        let pattern = Pattern::new(&*matched.pattern, move |name| compiled.is_match(name));
        return Some(Selector::Pattern(pattern));
    }
    let labels = selector.label_match.as_ref()?;
    Some(Selector::Labels(constraints::selector(Some(labels))))
}

/// The pattern of a member, if it is selected by one.
fn pattern(member: &HyperNodeMember) -> Option<&str> {
    let selector = member.selector.as_ref()?;
    let matched = selector.regex_match.as_ref();
    let matched = matched.filter(|_| selector.exact_match.is_none())?;
    Some(&matched.pattern)
}

fn compiled(pattern: &str) -> Option<regex::Regex> {
    let pattern = member_pattern(pattern).ok()?;
    let mut builder = regex::RegexBuilder::new(&pattern);
    let compiled = builder
        .size_limit(MEMBER_PATTERN_BYTES_MAX)
        .dfa_size_limit(MEMBER_PATTERN_BYTES_MAX)
        .build();
    compiled.ok()
}

/// Names of the nodes and of the hyper-nodes that the members of one stand for, as far as they are
/// there. A member that cannot be read stands for nothing.
pub fn hyper_node_members<'a>(
    mirror: &'a Mirror,
    hyper_node: &HyperNode,
) -> (BTreeSet<&'a str>, BTreeSet<&'a str>) {
    let (mut nodes, mut hyper_nodes) = (BTreeSet::new(), BTreeSet::new());
    for member in &hyper_node.spec.members {
        let Some(selector) = &member.selector else {
            continue;
        };
        match &*member.kind {
            "Node" => nodes.extend(selected::<Node>(mirror, selector)),
            "HyperNode" => hyper_nodes.extend(selected::<HyperNode>(mirror, selector)),
            _ => {}
        }
    }
    (nodes, hyper_nodes)
}

/// Names of the objects of a type that a selector stands for; labels speak of nodes only.
fn selected<'a, T: Typed>(mirror: &'a Mirror, selector: &HyperNodeSelector) -> Vec<&'a str> {
    if let Some(exact) = &selector.exact_match {
        let found = mirror.get::<T>("", &exact.name);
        return found.map(|it| &*it.meta().name).into_iter().collect();
    }
    let all = mirror.list::<T>().map(|it| it.meta());
    if let Some(matched) = &selector.regex_match {
        let Some(pattern) = compiled(&matched.pattern) else {
            return Vec::new();
        };
        let accepted = all.filter(|meta| pattern.is_match(&meta.name));
        return accepted.map(|meta| &*meta.name).collect();
    }
    let labels = selector.label_match.as_ref();
    let Some(labels) = labels.filter(|_| T::KIND == Kind::Node) else {
        return Vec::new();
    };
    let accepted = all.filter(|meta| labels.matches(&meta.labels));
    accepted.map(|meta| &*meta.name).collect()
}

/// How close together pods must be. In soft mode any tier will do, the lower the better; the same holds
/// where no tier is named.
pub(super) fn closeness(topology: &NetworkTopology) -> Closeness {
    let is_soft = &*topology.mode == "soft";
    let highest = match (topology.highest_tier_allowed, &*topology.highest_tier_name) {
        _ if is_soft => Highest::Any,
        (Some(number), _) => Highest::Tier(tier(number)),
        (None, "") => Highest::Any,
        (None, name) => Highest::Named(name.into()),
    };
    Closeness::HyperNode(highest)
}

/// Gangs within a gang.
pub(super) fn sub_groups(policy: &SubGroupPolicy) -> SubGroups {
    let selector = policy.label_selector.as_ref();
    SubGroups {
        name: (&*policy.name).into(),
        closeness: policy.network_topology.as_ref().map(closeness),
        size: count(policy.sub_group_size.unwrap_or(1)),
        min: count(policy.min_sub_groups.unwrap_or(0)),
        selector: selector.map_or_else(Vec::new, |labels| constraints::selector(Some(labels))),
        keys: policy
            .match_label_keys
            .iter()
            .map(|key| (&**key).into())
            .collect(),
    }
}
