//! How many nodes each hyper-node holds (`specs/volcano.md` 2.7), those of the hyper-nodes below it
//! included: nodes that are there, each once.
//!
//! One key for all of them: a node that comes, goes or gets other labels may count anywhere.

use std::collections::{BTreeMap, BTreeSet};

use api::intent::ObjectKey;
use api::kind::Kind;
use api::volcano::HyperNode;
use mirror::{Change, Mirror, hyper_node_members};
use serde_json::json;

use super::{COMPONENT, relabels};
use crate::{Controller, Inputs, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "hyper_node_count",
    component: COMPONENT,
    watches: &[Kind::HyperNode, Kind::Node],
    keys,
    step,
};

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    let concerns = match change.kind() {
        Kind::HyperNode => true,
        _ => relabels(change) && mirror.list::<HyperNode>().next().is_some(),
    };
    if concerns {
        keys.push(super::key_of(""));
    }
}

/// Names of nodes and of hyper-nodes.
type Members<'a> = (BTreeSet<&'a str>, BTreeSet<&'a str>);

fn step(inputs: &Inputs<'_>) -> Step {
    let mirror = inputs.mirror;
    let all = mirror.list::<HyperNode>();
    let members: BTreeMap<&str, Members<'_>> = all
        .map(|it| (&*it.metadata.name, hyper_node_members(mirror, it)))
        .collect();
    let mut intents = Vec::new();
    for it in mirror.list::<HyperNode>() {
        let count = count(&members, &it.metadata.name);
        let is_leaving = it.metadata.deletion_timestamp.is_some();
        if it.status.node_count.unwrap_or(0) != count && !is_leaving {
            let status = json!({ "nodeCount": count });
            intents.push(write::patch_status(Kind::HyperNode, &it.metadata, status));
        }
    }
    intents.truncate(inputs.settings.writes_per_step_max);
    Step::write(intents)
}

/// How many nodes a hyper-node holds; one that holds itself is looked into once.
fn count(members: &BTreeMap<&str, Members<'_>>, name: &str) -> i64 {
    let mut nodes: BTreeSet<&str> = BTreeSet::new();
    let mut seen = BTreeSet::from([name]);
    let mut to_visit = vec![name];
    while let Some(name) = to_visit.pop() {
        let Some((own, below)) = members.get(name) else {
            continue;
        };
        nodes.extend(own);
        to_visit.extend(below.iter().filter(|it| seen.insert(it)));
    }
    i64::try_from(nodes.len()).unwrap_or(i64::MAX)
}
