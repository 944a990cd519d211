//! Hyper-nodes by a fabric manager: nodes whose ports lead to the same leaf switches are one, and all
//! of these are one.

use std::collections::{BTreeMap, BTreeSet};

use api::core::Node;
use api::intent::ObjectKey;
use api::kind::Kind;
use api::volcano::Ufm;
use mirror::{Change, Mirror};
use serde::Deserialize;

use super::{COMPONENT, Found, HYPER_NODES_MAX};
use crate::write::stable_suffix;
use crate::{Controller, Inputs, Inquiry, Step, Whom};

const SOURCE: &str = "ufm";
/// How long an answer may take, in milliseconds (`specs/volcano.md` 2.7).
const WITHIN_MS: i64 = 30_000;
/// Most bytes of an answer, as upstream has it.
const BYTES_MAX: usize = 100 << 20;
/// How soon one that did not answer is asked again, in milliseconds.
const AGAIN_MS: i64 = 60_000;
/// The word in the description of a port of a machine.
const MACHINE: &str = "Computer";
/// What stands for the whole fabric.
const SPINE: &str = "spine-hn";

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "hyper_node_ufm",
    component: COMPONENT,
    tells_refused: &[],
    watches: &[Kind::ConfigMap, Kind::HyperNode, Kind::Node],
    keys,
    step,
};

/// Nodes wake nobody: the fabric manager tells of them when it is asked.
fn keys(_mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    super::wake(SOURCE, change, keys);
}

fn step(inputs: &Inputs<'_>) -> Step {
    let Some((map, conf)) = super::configured(inputs) else {
        return Step::idle();
    };
    let ufm = match conf.map(|conf| conf.ufm) {
        Ok(None) => return Step::idle(),
        Ok(Some(Ok(ufm))) => ufm,
        Ok(Some(Err(why))) | Err(why) => {
            return Step::write(vec![super::warn(inputs, map, SOURCE, &why)]);
        }
    };
    let question = question(&ufm);
    // An answer stands until it is asked again, whatever happens to hyper-nodes meanwhile.
    let Some(answer) = inputs.heard.told(&question.topic) else {
        return Step::inquire(vec![question]);
    };
    let until = inputs.heard.until(&question.topic);
    let found = answer
        .map_err(str::to_owned)
        .and_then(|text| found(inputs.mirror, text));
    // What it tells may be meant once other nodes are there.
    let (step, again_ms) = match found {
        Ok(found) => (
            super::reconcile(inputs, SOURCE, &found, |_| false),
            ufm.interval_ms,
        ),
        Err(why) => {
            let warning = super::warn(inputs, map, SOURCE, &why);
            (Step::write(vec![warning]), question.fails_ms)
        }
    };
    step.or_wake_at(until)
        .or_wake_at(Some(inputs.now.plus_ms(again_ms)))
}

fn question(ufm: &Ufm) -> Inquiry {
    let secret = ufm.secret.as_ref();
    Inquiry {
        topic: format!("ufm for ports, {}", mark(ufm)),
        whom: Whom::Server {
            address: ufm.address.clone(),
            path: "/ufmRest/resources/ports".to_owned(),
            insecure_skip_verify: ufm.insecure_skip_verify,
            credentials: secret
                .map(|(namespace, name)| ObjectKey::new(Kind::Secret, namespace, name)),
        },
        within_ms: WITHIN_MS,
        bytes_max: BYTES_MAX,
        stands_ms: ufm.interval_ms,
        fails_ms: ufm.interval_ms.min(AGAIN_MS),
        read,
    }
}

/// What tells one configuration from another: what was answered under another one does not stand.
fn mark(ufm: &Ufm) -> String {
    let Ufm {
        address,
        insecure_skip_verify,
        secret,
        interval_ms,
    } = ufm;
    let (namespace, name) = secret
        .as_ref()
        .map_or(("", ""), |(namespace, name)| (namespace, name));
    let (how, often) = (insecure_skip_verify.to_string(), interval_ms.to_string());
    stable_suffix(&[address, &how, namespace, name, &often])
}

/// A port of the fabric, as the manager lists it.
#[derive(Deserialize)]
struct Port {
    description: Option<String>,
    system_name: Option<String>,
    peer_node_name: Option<String>,
}

/// Machines by the leaf that they hang on.
type Leaves = BTreeMap<String, BTreeSet<String>>;

/// What counts of an answer: which machines hang on which leaf, as JSON.
fn read(body: &[u8]) -> Result<String, String> {
    let ports: Vec<Port> = serde_json::from_slice(body)
        .map_err(|error| format!("its answer is no list of ports: {error}"))?;
    let mut leaves = Leaves::new();
    for port in ports {
        let is_machine = port.description.is_some_and(|it| it.contains(MACHINE));
        let (machine, leaf) = (port.system_name, port.peer_node_name);
        let named = |it: &String| is_machine && !it.is_empty();
        if let (Some(machine), Some(leaf)) = (machine.filter(named), leaf.filter(named)) {
            leaves.entry(leaf).or_default().insert(machine);
        }
    }
    if leaves.is_empty() {
        return Err("it tells of no machine".to_owned());
    }
    serde_json::to_string(&leaves).map_err(|error| error.to_string())
}

/// The hyper-nodes of a fabric. One of which no machine is a node here, or whose machines cannot be
/// nodes, cannot be meant.
fn found(mirror: &Mirror, text: &str) -> Result<Vec<Found>, String> {
    let leaves: Leaves = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut machines = leaves.values().flatten();
    if let Some(bad) = machines.find(|it| !api::names::check_subdomain(it).is_empty()) {
        return Err(format!("{bad:?} cannot be a node's name"));
    }
    let mut machines = leaves.values().flatten();
    if !machines.any(|it| mirror.get::<Node>("", it).is_some()) {
        return Err("none of its machines is a node here".to_owned());
    }
    let groups = groups(&leaves);
    if groups.len() >= HYPER_NODES_MAX {
        return Err(format!(
            "more than {HYPER_NODES_MAX} hyper-nodes cannot be meant"
        ));
    }
    let mut found: Vec<Found> = Vec::new();
    for (leaf, machines) in groups {
        let members = machines.iter().map(|it| super::member("Node", it));
        found.push(Found {
            name: format!("leaf-hn-{}", stable_suffix(&[SOURCE, leaf])),
            tier: 1,
            tier_name: String::new(),
            members: members.collect(),
            labels: BTreeMap::new(),
        });
    }
    let leaves = found.iter().map(|it| super::member("HyperNode", &it.name));
    let members = leaves.collect();
    found.push(Found {
        name: SPINE.to_owned(),
        tier: 2,
        tier_name: String::new(),
        members,
        labels: BTreeMap::new(),
    });
    Ok(found)
}

/// Machines by the first of the leaves that they share with one another, directly or by others.
fn groups(leaves: &Leaves) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut by_machine: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (leaf, machines) in leaves {
        for machine in machines {
            by_machine.entry(machine).or_default().push(leaf);
        }
    }
    let mut groups = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for first in leaves.keys() {
        let mut group = BTreeSet::new();
        let mut to_visit = vec![&**first];
        while let Some(leaf) = to_visit.pop() {
            if !seen.insert(leaf) {
                continue;
            }
            for machine in &leaves[leaf] {
                if group.insert(&**machine) {
                    to_visit.extend(&by_machine[&**machine]);
                }
            }
        }
        if !group.is_empty() {
            groups.insert(&**first, group);
        }
    }
    groups
}
