//! Hyper-nodes by labels of nodes: nodes with equal values of a tier's label, and of those of the
//! tiers above it, are one.

use std::collections::{BTreeMap, BTreeSet};

use api::core::ConfigMap;
use api::core::Node;
use api::intent::ObjectKey;
use api::kind::Kind;
use api::volcano::{HyperNode, LabelledNetwork, LabelledNetworks};
use mirror::{Change, Mirror};

use super::{COMPONENT, Found, HYPER_NODES_MAX};
use crate::write::stable_suffix;
use crate::{Controller, Inputs, Step};

const SOURCE: &str = "label";

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "hyper_node_label",
    component: COMPONENT,
    tells_refused: &[],
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
    let label = conf.label;
    let mut step = match label.map(|it| it.and_then(|it| labelled(inputs, map, &it))) {
        None => Step::idle(),
        Some(Ok(step)) => step,
        Some(Err(why)) => Step::write(vec![super::warn(inputs, map, SOURCE, &why)]),
    };
    // One of the sources tells of those that there are not.
    let unknown = conf.unknown.iter();
    step.intents.extend(unknown.map(|source| {
        let why = "there is no such source, there are label and ufm";
        super::warn(inputs, map, source, why)
    }));
    let unreadable = conf.unreadable.iter();
    let unreadable = unreadable.map(|(source, why)| {
        let source = if source.is_empty() {
            "without a name"
        } else {
            source
        };
        super::warn(inputs, map, source, why)
    });
    step.intents.extend(unreadable);
    step
}

/// What becomes of the networks that can be meant; of one that cannot, its hyper-nodes are kept.
fn labelled(
    inputs: &Inputs<'_>,
    map: &ConfigMap,
    label: &LabelledNetworks,
) -> Result<Step, String> {
    let found = found(inputs.mirror, &label.networks)?;
    let kept: Vec<String> = (label.wrong.iter())
        .flat_map(|(name, _)| beginnings(name))
        .collect();
    let is_kept = |name: &str| kept.iter().any(|it| tier_after(it, name).is_some());
    let mut step = super::reconcile(inputs, SOURCE, &found, is_kept);
    let wrong = label.wrong.iter();
    let told = wrong.map(|(_, why)| super::warn(inputs, map, SOURCE, why));
    step.intents.extend(told);
    Ok(step)
}

fn found(mirror: &Mirror, networks: &[LabelledNetwork]) -> Result<Vec<Found>, String> {
    let all: Vec<(&LabelledNetwork, Places<'_>)> = networks
        .iter()
        .map(|network| (network, places(mirror, network)))
        .collect();
    if all.iter().map(|(_, places)| places.len()).sum::<usize>() > HYPER_NODES_MAX {
        return Err(format!(
            "more than {HYPER_NODES_MAX} hyper-nodes cannot be meant"
        ));
    }
    let own = |(network, places): &(&LabelledNetwork, Places<'_>)| {
        let names = places.keys().map(|place| own_name(network, place));
        names.collect::<Vec<_>>()
    };
    let mut names = Names {
        before: super::found_before(mirror, SOURCE),
        taken: all.iter().flat_map(own).collect(),
        others: BTreeMap::new(),
    };
    names.sort_others();
    let mut found = Vec::new();
    for (network, places) in &all {
        // From the lowest tier up, so that what a tier is made of is named already.
        let mut named: BTreeMap<&Place<'_>, String> = BTreeMap::new();
        for (place, below) in places {
            let name = names.of(network, place);
            let members = below.iter().map(|it| match it {
                Below::Node(node) => super::member("Node", node),
                Below::Place(place) => {
                    super::member("HyperNode", named.get(place).map_or("", |name| name))
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
            named.insert(place, name);
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
type Places<'a> = BTreeMap<Place<'a>, BTreeSet<Below<'a>>>;

fn places<'a>(mirror: &'a Mirror, network: &LabelledNetwork) -> Places<'a> {
    let mut places = Places::new();
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

/// What hyper-nodes of a network begin with: ours, and those that upstream has found.
fn beginnings(network: &str) -> [String; 2] {
    [plain(network), cleaned(network)].map(|name| format!("hypernode-{name}-tier"))
}

/// The tier that a hyper-node's name tells behind such a beginning; `None` for those of other networks, also where
/// the name of one goes on like a hyper-node's: behind the tier stand letters and digits only.
fn tier_after(beginning: &str, name: &str) -> Option<usize> {
    let (tier, suffix) = name.strip_prefix(beginning)?.split_once('-')?;
    let is_suffix = !suffix.is_empty() && suffix.bytes().all(|it| it.is_ascii_alphanumeric());
    tier.parse().ok().filter(|_| is_suffix)
}

/// The name that follows from a place.
fn own_name(network: &LabelledNetwork, place: &Place<'_>) -> String {
    let parts: Vec<&str> = [&*network.name]
        .into_iter()
        .chain(place.values.iter().copied())
        .collect();
    let [beginning, _] = beginnings(&network.name);
    let tier = place.tier + 1;
    format!("{beginning}{tier}-{}", stable_suffix(&parts))
}

/// Gives each place a name of its own.
struct Names<'a> {
    /// The hyper-nodes that there are.
    before: BTreeMap<&'a str, &'a HyperNode>,
    /// Names that no other place gets: those that follow from places, whether or not they are there yet,
    /// and those that were taken over. Racks of one name in two zones bear the same label, so that one of
    /// them would take the other's hyper-node, and both would write to it for ever.
    taken: BTreeSet<String>,
    /// Names of the others that there are, by each label that they bear and its value.
    others: BTreeMap<(&'a str, &'a str), BTreeSet<&'a str>>,
}

impl<'a> Names<'a> {
    /// Looks once at all that there are, so that a place need look only at those with its label.
    fn sort_others(&mut self) {
        for (name, it) in &self.before {
            if self.taken.contains(*name) {
                continue;
            }
            for (key, value) in &it.metadata.labels {
                let names = self.others.entry((&**key, &**value)).or_default();
                names.insert(name);
            }
        }
    }

    /// The name of a place: of the hyper-node that stands for it already, else the one that follows from it.
    fn of(&mut self, network: &'a LabelledNetwork, place: &'a Place<'a>) -> String {
        let own = own_name(network, place);
        if self.before.contains_key(&*own) {
            return own;
        }
        let label = (&*network.tiers[place.tier], place.value());
        let Some(others) = self.others.get_mut(&label) else {
            return own;
        };
        let beginnings = beginnings(&network.name);
        let may_stand = |name: &&str| {
            let tiers = beginnings.iter().filter_map(|it| tier_after(it, name));
            let is_of_tier = tiers.into_iter().any(|tier| tier == place.tier + 1);
            is_of_tier && !self.taken.contains(*name)
        };
        let Some(name) = others.iter().copied().find(may_stand) else {
            return own;
        };
        others.remove(name);
        self.taken.insert(name.to_owned());
        name.to_owned()
    }
}

/// A name as part of another: small letters, digits and dashes.
fn plain(name: &str) -> String {
    let text = cleaned(name).replace('.', "-");
    text.trim_matches('-').to_owned()
}

/// The same as upstream has it, with dots, and with dashes at its ends.
fn cleaned(name: &str) -> String {
    let clean = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_alphanumeric() || c == '.' => c,
        _ => '-',
    };
    name.chars().map(clean).collect()
}
