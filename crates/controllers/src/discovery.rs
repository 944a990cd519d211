//! Hyper-nodes that are found, not written by hand (`specs/volcano.md` 2.7): those of a source, which
//! bear its name as a label, become what the source tells.
//!
//! A source that is switched off, that cannot be asked, or whose word cannot be meant changes
//! nothing; neither does a configuration that cannot be read, or the part of it that cannot. A network that has not changed costs no
//! write. Names follow from what is found, so that nothing is made twice, and hyper-nodes that are
//! there under other names, made by others for the same place, are kept under theirs.

use std::collections::{BTreeMap, BTreeSet};

use api::core::ConfigMap;
use api::intent::{Intent, ObjectKey, Part};
use api::kind::Kind;
use api::meta::ObjectMeta;
use api::volcano::{
    DISCOVERY_CONF, DiscoveryConf, ExactMatch, HyperNode, HyperNodeMember, HyperNodeSelector,
    TOPOLOGY_SOURCE,
};
use mirror::{Change, Mirror};
use serde_json::{Value, json};

use crate::note::Occasion;
use crate::{Inputs, Step, write};

mod count;
mod label;
mod ufm;

pub use count::CONTROLLER as COUNT;
pub use label::CONTROLLER as LABEL;
pub use ufm::CONTROLLER as UFM;

const COMPONENT: &str = "vc-controller-manager";
/// Most hyper-nodes of one source: more cannot be meant.
const HYPER_NODES_MAX: usize = 20_000;

/// The one key of a source: all that it has found.
fn key_of(source: &str) -> ObjectKey {
    ObjectKey::new(Kind::HyperNode, "", source)
}

/// Wakes a source where its configuration or one of its hyper-nodes has changed.
fn wake(source: &str, change: &Change, keys: &mut Vec<ObjectKey>) {
    let concerns = match change.kind() {
        Kind::ConfigMap => {
            let said = |it: &ConfigMap| it.data.get(DISCOVERY_CONF).cloned();
            let before = change.before::<ConfigMap>().and_then(|it| said(it));
            before != change.after::<ConfigMap>().and_then(|it| said(it))
        }
        // Whatever goes may have been its own, and have lost the label before; or it frees a name.
        Kind::HyperNode => {
            change.after.is_none() || change.sides().any(|it| is_of(source, it.meta()))
        }
        _ => false,
    };
    if concerns {
        keys.push(key_of(source));
    }
}

/// Whether a hyper-node was found by this source.
fn is_of(source: &str, hyper_node: &ObjectMeta) -> bool {
    let label = hyper_node.labels.get(TOPOLOGY_SOURCE);
    label.is_some_and(|label| **label == *source)
}

/// Whether a node came, went, or got other labels.
pub(crate) fn relabels(change: &Change) -> bool {
    let [before, after] =
        [&change.before, &change.after].map(|side| side.as_ref().map(|node| &node.meta().labels));
    before != after
}

/// The configuration, and the object that it lies in; `None` where there is none.
type Configured<'a> = Option<(&'a ConfigMap, Result<DiscoveryConf, String>)>;

fn configured<'a>(inputs: &Inputs<'a>) -> Configured<'a> {
    let (namespace, name) = &inputs.settings.discovery;
    let map = inputs.mirror.get::<ConfigMap>(namespace, name)?;
    let text = map.data.get(DISCOVERY_CONF)?;
    Some((map, DiscoveryConf::read(text)))
}

/// Says at the configuration why a source finds nothing; once for each reason.
fn warn(inputs: &Inputs<'_>, map: &ConfigMap, source: &str, why: &str) -> Intent {
    let message = format!("source {source}: {why}; its hyper-nodes stay as they are");
    occasion(map, source).warning("DiscoveryFailed", &message, inputs.now)
}

fn occasion<'a>(map: &'a ConfigMap, source: &'a str) -> Occasion<'a> {
    Occasion {
        kind: Kind::ConfigMap,
        meta: &map.metadata,
        component: COMPONENT,
        id: source,
    }
}

/// A hyper-node as it is found.
struct Found {
    name: String,
    tier: i64,
    tier_name: String,
    members: Vec<HyperNodeMember>,
    /// Labels beside its source's.
    labels: BTreeMap<String, String>,
}

/// A member by name.
fn member(kind: &str, name: &str) -> HyperNodeMember {
    HyperNodeMember {
        kind: kind.into(),
        selector: Some(HyperNodeSelector {
            exact_match: Some(ExactMatch {
                name: name.into(),
                ..ExactMatch::default()
            }),
            ..HyperNodeSelector::default()
        }),
        ..HyperNodeMember::default()
    }
}

/// The hyper-nodes of a source that there are, by name.
fn found_before<'a>(mirror: &'a Mirror, source: &str) -> BTreeMap<&'a str, &'a HyperNode> {
    let all = mirror.list::<HyperNode>();
    let own = all.filter(|it| is_of(source, &it.metadata));
    own.map(|it| (&*it.metadata.name, &**it)).collect()
}

/// The writes after which the hyper-nodes of a source are those that were found, and those whose names are
/// kept; where they are many, the next ones follow when these are seen.
fn reconcile(
    inputs: &Inputs<'_>,
    source: &str,
    found: &[Found],
    is_kept: impl Fn(&str) -> bool,
) -> Step {
    let before = found_before(inputs.mirror, source);
    let mut names = BTreeSet::new();
    // Two that strive for one name would undo each other's writes for ever.
    let (found, doubled): (Vec<&Found>, Vec<&Found>) =
        found.iter().partition(|it| names.insert(it.name.as_str()));
    let mut intents = Vec::new();
    for it in found {
        intents.extend(match inputs.mirror.get::<HyperNode>("", &it.name) {
            None => Some(create(source, it)),
            // Somebody else's: it is left alone, whatever it is called.
            Some(_) if !before.contains_key(&*it.name) => None,
            Some(there) => change(there, it),
        });
    }
    let is_gone = |name: &str| !names.contains(name) && !is_kept(name);
    let gone = before.iter().filter(|(name, _)| is_gone(name));
    for (_, there) in gone {
        if there.metadata.deletion_timestamp.is_none() {
            intents.push(write::delete(Kind::HyperNode, &there.metadata));
        }
    }
    intents.truncate(inputs.settings.writes_per_step_max);
    if let Some(second) = doubled.first()
        && let Some((map, _)) = configured(inputs)
    {
        let name = &second.name;
        let message = format!("source {source}: two places come to {name}, which is the first's");
        intents.push(occasion(map, source).warning("DiscoveryFailed", &message, inputs.now));
    }
    Step::write(intents)
}

fn spec(it: &Found) -> Value {
    let mut spec = json!({ "tier": it.tier, "members": it.members });
    if !it.tier_name.is_empty() {
        spec["tierName"] = json!(it.tier_name);
    }
    spec
}

fn create(source: &str, it: &Found) -> Intent {
    let mut labels = json!(it.labels);
    labels[TOPOLOGY_SOURCE] = json!(source);
    let body = json!({ "metadata": { "name": it.name, "labels": labels }, "spec": spec(it) });
    write::create(Kind::HyperNode, body)
}

/// Labels of others stay.
fn change(there: &HyperNode, it: &Found) -> Option<Intent> {
    let own = |(key, value): (&String, &String)| {
        let held = there.metadata.labels.get(key);
        held.is_none_or(|held| **held != **value)
            .then(|| (key.clone(), json!(value)))
    };
    let labels: serde_json::Map<String, Value> = it.labels.iter().filter_map(own).collect();
    let held = json!({
        "tier": there.spec.tier,
        "members": there.spec.members,
        "tierName": there.spec.tier_name,
    });
    let mut wanted = spec(it);
    if it.tier_name.is_empty() {
        wanted["tierName"] = json!("");
    }
    let mut patch = json!({});
    if !labels.is_empty() {
        patch["metadata"]["labels"] = Value::Object(labels);
    }
    if let Some(spec) = write::merge_difference(&held, &wanted) {
        patch["spec"] = spec;
    }
    let is_nothing = patch.as_object().is_some_and(serde_json::Map::is_empty);
    (!is_nothing).then(|| write::patch(Kind::HyperNode, &there.metadata, Part::Whole, patch))
}
