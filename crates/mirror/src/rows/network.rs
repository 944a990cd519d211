//! Hyper-nodes as rows, and how close together the pods of a gang must be.

use std::collections::BTreeMap;

use api::core::Node;
use api::kind::Kind;
use api::volcano::{
    HyperNode, HyperNodeMember, HyperNodeSelector, NetworkTopology, SubGroupPolicy,
};
use model::{Closeness, Highest, HyperNodeSpec, Member, Pattern, Selector, SubGroups, Tables};
use regex_automata::meta::Regex;

use super::{Rows, constraints, count};
use crate::held::Mirror;
use crate::member_patterns::{labels, pattern};
use crate::object::Typed;

/// So much of a pattern, or of what is wrong with labels, is repeated, in characters.
const SHOWN_MAX: usize = 100;

impl Rows {
    /// A hyper-node has come or changed, or one has gone: where others' patterns find room now, or none any
    /// more, those are looked at again.
    pub(super) fn feed_hyper_nodes(
        &mut self,
        mirror: &Mirror,
        now: Option<&HyperNode>,
        tables: &mut Tables,
    ) {
        let left_out = mirror.member_patterns().left_out();
        if std::mem::replace(&mut self.patterns_left_out, left_out) == left_out {
            now.into_iter()
                .for_each(|it| tables.put_hyper_node(hyper_node(mirror, it)));
            return;
        }
        for it in mirror.list::<HyperNode>() {
            tables.put_hyper_node(hyper_node(mirror, it));
        }
    }
}

/// The row of a hyper-node.
fn hyper_node(mirror: &Mirror, hyper_node: &HyperNode) -> HyperNodeSpec {
    let name = &*hyper_node.metadata.name;
    let members = hyper_node.spec.members.iter();
    let wrong_labels = (members.clone().filter_map(labels)).filter_map(|it| it.query().err());
    let wrong_labels = wrong_labels.map(|why| {
        let shown = shown(&why);
        format!("the labels of a member cannot be read: {shown}")
    });
    let patterns = members.clone().filter_map(pattern);
    let no_patterns =
        patterns.filter(|pattern| mirror.member_patterns().find(name, pattern).is_none());
    let no_patterns = no_patterns.map(|pattern| {
        let shown = shown(pattern);
        format!(
            "the pattern {shown} of a member accepts no name: it cannot be read or is too large"
        )
    });
    HyperNodeSpec {
        unreadable: wrong_labels.chain(no_patterns).map(Into::into).collect(),
        name: name.into(),
        tier: tier(hyper_node.spec.tier.unwrap_or(0)),
        tier_name: (&*hyper_node.spec.tier_name).into(),
        members: members.filter_map(|it| member(mirror, name, it)).collect(),
    }
}

/// So much of what cannot be read is repeated.
fn shown(text: &str) -> String {
    text.chars().take(SHOWN_MAX).collect()
}

fn tier(number: i64) -> u32 {
    // One tier is left for the whole cluster.
    u32::try_from(number.max(0)).map_or(u32::MAX - 1, |tier| tier.min(u32::MAX - 1))
}

/// A member that says nothing, or nothing that can be read, selects nothing.
fn member(mirror: &Mirror, of: &str, member: &HyperNodeMember) -> Option<Member> {
    let selector = selector(mirror, of, member.selector.as_ref()?)?;
    match &*member.kind {
        "Node" => Some(Member::Nodes(selector)),
        "HyperNode" => Some(Member::HyperNodes(selector)),
        _ => None,
    }
}

fn selector(mirror: &Mirror, of: &str, selector: &HyperNodeSelector) -> Option<Selector> {
    if let Some(exact) = &selector.exact_match {
        return Some(Selector::Name((&*exact.name).into()));
    }
    if let Some(matched) = &selector.regex_match {
        let compiled = mirror.member_patterns().find(of, &matched.pattern)?.clone();
        let pattern = Pattern::new(&*matched.pattern, move |name| compiled.is_match(name));
        return Some(Selector::Pattern(pattern));
    }
    let labels = selector.label_match.as_ref()?;
    Some(Selector::Labels(constraints::selector(Some(labels))))
}

/// What some members of hyper-nodes stand for, as far as it is there. A member that cannot be read stands for
/// nothing.
#[derive(Debug, Default)]
pub struct Members {
    /// Nodes, by their places in the mirror's list.
    pub nodes: Vec<usize>,
    /// Hyper-nodes, by theirs.
    pub hyper_nodes: Vec<usize>,
    /// What is written down once for all that ask for it, by its place in [`AllMembers::shared`].
    pub shared: Vec<usize>,
}

/// What the members of all hyper-nodes stand for.
#[derive(Debug, Default)]
pub struct AllMembers {
    /// Of each hyper-node, in the order of the mirror's list.
    pub of: Vec<Members>,
    /// What patterns stand for, each looked up once: as many hyper-nodes may name one as there are.
    pub shared: Vec<Members>,
}

/// What the members of all hyper-nodes stand for now.
pub fn hyper_node_members(mirror: &Mirror) -> AllMembers {
    let nodes = places::<Node>(mirror);
    let hyper_nodes = places::<HyperNode>(mirror);
    let mut all = AllMembers::default();
    let mut patterns: BTreeMap<(Kind, &str), usize> = BTreeMap::new();
    let known = mirror.member_patterns();
    for hyper_node in mirror.list::<HyperNode>() {
        let of = &*hyper_node.metadata.name;
        let mut own = Members::default();
        for member in &hyper_node.spec.members {
            let (kind, names) = match &*member.kind {
                "Node" => (Kind::Node, &nodes),
                "HyperNode" => (Kind::HyperNode, &hyper_nodes),
                _ => continue,
            };
            if let Some(pattern) = pattern(member) {
                let Some(compiled) = known.find(of, pattern) else {
                    continue;
                };
                let at = *patterns.entry((kind, pattern)).or_insert_with(|| {
                    all.shared
                        .push(Members::of(kind, accepted(compiled, names)));
                    all.shared.len() - 1
                });
                own.shared.push(at);
            } else if let Some(selector) = &member.selector {
                own.add(kind, selected(mirror, selector, kind, names));
            }
        }
        all.of.push(own);
    }
    all
}

impl Members {
    fn of(kind: Kind, places: Vec<usize>) -> Members {
        let mut members = Members::default();
        members.add(kind, places);
        members
    }

    fn add(&mut self, kind: Kind, places: Vec<usize>) {
        match kind {
            Kind::Node => self.nodes.extend(places),
            _ => self.hyper_nodes.extend(places),
        }
    }
}

/// The objects of a type by name, with their places in the mirror's list.
fn places<T: Typed>(mirror: &Mirror) -> BTreeMap<&str, usize> {
    let names = mirror.list::<T>().map(|it| &*it.meta().name);
    names.enumerate().map(|(at, name)| (name, at)).collect()
}

fn accepted(pattern: &Regex, names: &BTreeMap<&str, usize>) -> Vec<usize> {
    let accepted = names.iter().filter(|(name, _)| pattern.is_match(**name));
    accepted.map(|(_, at)| *at).collect()
}

/// Places of the objects that a name or labels stand for; labels speak of nodes only.
fn selected(
    mirror: &Mirror,
    selector: &HyperNodeSelector,
    kind: Kind,
    names: &BTreeMap<&str, usize>,
) -> Vec<usize> {
    if let Some(exact) = &selector.exact_match {
        return names.get(&*exact.name).copied().into_iter().collect();
    }
    let labels = selector.label_match.as_ref();
    let Some(labels) = labels.filter(|_| kind == Kind::Node) else {
        return Vec::new();
    };
    let all = mirror.list::<Node>().enumerate();
    let accepted = all.filter(|(_, node)| labels.matches(&node.metadata.labels));
    accepted.map(|(at, _)| at).collect()
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
