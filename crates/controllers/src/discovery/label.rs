//! Hyper-nodes by labels of nodes: nodes with equal values of a tier's label, and of those of the
//! tiers above it, are one.

use std::collections::{BTreeMap, BTreeSet};

use api::core::Node;
use api::intent::ObjectKey;
use api::kind::Kind;
use api::volcano::{HyperNode, LabelledNetwork};
use mirror::{Change, Mirror};

use super::{COMPONENT, Found, HYPER_NODES_MAX};
use crate::write::stable_suffix;
use crate::{Controller, Inputs, Step};

const SOURCE: &str = "label";

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "hyper_node_label",
    component: COMPONENT,
    watches: &[Kind::ConfigMap, Kind::HyperNode, Kind::Node],
    keys,
    step,
};

fn keys(_mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    if change.kind() != Kind::Node {
        return super::wake(SOURCE, change, keys);
    }
    if super::relabels(change) {
        keys.push(super::key_of(SOURCE));
    }
}

fn step(inputs: &Inputs<'_>) -> Step {
    let Some((map, conf)) = super::configured(inputs) else {
        return Step::idle();
    };
    let conf = match conf {
        Ok(conf) => conf,
        Err(why) => return Step::write(vec![super::warn(inputs, map, SOURCE, &why)]),
    };
    let mut step = match conf.label.map(|networks| found(inputs.mirror, &networks)) {
        None => Step::idle(),
        Some(Ok(found)) => super::reconcile(inputs, SOURCE, &found),
        Some(Err(why)) => Step::write(vec![super::warn(inputs, map, SOURCE, &why)]),
    };
    // One of the sources tells of those that there are not.
    let unknown = conf.unknown.iter();
    step.intents.extend(unknown.map(|source| {
        let why = "there is no such source, there are label and ufm";
        super::warn(inputs, map, source, why)
    }));
    step
}

fn found(mirror: &Mirror, networks: &[LabelledNetwork]) -> Result<Vec<Found>, String> {
    let before = super::found_before(mirror, SOURCE);
    let mut claimed = BTreeSet::new();
    let mut found = Vec::new();
    for network in networks {
        let places = places(mirror, network);
        if found.len() + places.len() > HYPER_NODES_MAX {
            return Err(format!(
                "more than {HYPER_NODES_MAX} hyper-nodes cannot be meant"
            ));
        }
        // From the lowest tier up, so that what a tier is made of is named already.
        let mut names: BTreeMap<&Place<'_>, String> = BTreeMap::new();
        for (place, below) in &places {
            let name = name_of(network, place, &before, &mut claimed);
            let members = below.iter().map(|it| match it {
                Below::Node(node) => super::member("Node", node),
                Below::Place(place) => {
                    super::member("HyperNode", names.get(place).map_or("", |name| name))
                }
            });
            let label = network.tiers[place.tier].clone();
            found.push(Found {
                name: name.clone(),
                tier: i64::try_from(place.tier + 1).unwrap_or(i64::MAX),
                members: members.collect(),
                labels: BTreeMap::from([(label.clone(), place.value().to_owned())]),
                tier_name: label,
            });
            names.insert(place, name);
        }
    }
    Ok(found)
}

/// A place of a network, in the order of tiers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place<'a> {
    /// Its tier, the lowest is 0.
    tier: usize,
    /// Values of its own label and of those of the tiers above it. One that a node lacks ends them:
    /// the node hangs below nothing there.
    values: Vec<&'a str>,
}

impl Place<'_> {
    fn value(&self) -> &str {
        self.values.first().copied().unwrap_or_default()
    }
}

/// What a place is made of.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Below<'a> {
    Node(&'a str),
    Place(Place<'a>),
}

/// All places of a network, and what each is made of.
fn places<'a>(
    mirror: &'a Mirror,
    network: &LabelledNetwork,
) -> BTreeMap<Place<'a>, BTreeSet<Below<'a>>> {
    let mut places: BTreeMap<Place<'_>, BTreeSet<Below<'_>>> = BTreeMap::new();
    for node in mirror.list::<Node>() {
        let labels = &node.metadata.labels;
        let value = |tier: &String| labels.get(tier).map(|it| &**it);
        let value = |tier| value(tier).filter(|it| !it.is_empty());
        let values: Vec<&str> = network.tiers.iter().map_while(value).collect();
        let mut below = Below::Node(&node.metadata.name);
        for tier in 0..values.len() {
            let place = Place {
                tier,
                values: values[tier..].to_vec(),
            };
            let members = places.entry(place.clone()).or_default();
            members.insert(below);
            below = Below::Place(place);
        }
    }
    places
}

/// The name of a place: of the hyper-node that stands for it already, else one that follows from it.
fn name_of<'a>(
    network: &LabelledNetwork,
    place: &Place<'_>,
    before: &BTreeMap<&'a str, &'a HyperNode>,
    claimed: &mut BTreeSet<String>,
) -> String {
    let stem = format!("hypernode-{}-tier{}-", plain(&network.name), place.tier + 1);
    let parts: Vec<&str> = [&*network.name]
        .into_iter()
        .chain(place.values.iter().copied())
        .collect();
    let own = format!("{stem}{}", stable_suffix(&parts));
    let stands_for = |it: &HyperNode| {
        let label = it.metadata.labels.get(&network.tiers[place.tier]);
        label.is_some_and(|value| **value == *place.value())
    };
    let name = match before.contains_key(&*own) {
        true => own,
        false => {
            let mut others = before.range(&*stem..);
            let other = others
                .by_ref()
                .take_while(|(name, _)| name.starts_with(&*stem))
                .find(|(name, it)| stands_for(it) && !claimed.contains(**name));
            other.map_or(own, |(name, _)| (*name).to_owned())
        }
    };
    claimed.insert(name.clone());
    name
}

/// A name as part of another: small letters, digits and dashes.
fn plain(name: &str) -> String {
    let plain = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_alphanumeric() => c,
        _ => '-',
    };
    let text: String = name.chars().map(plain).collect();
    text.trim_matches('-').to_owned()
}
