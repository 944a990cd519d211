//! `hcclrank`: which of all processes a pod is, for the collective communication of Ascend NPUs.

use api::volcano::Job;
use serde_json::{Value, json};

use super::hosts::task_of;
use super::{Arguments, Place, Plugin, Tells};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "hcclrank",
    children: None,
    tells: |_| Tells::Itself,
    pod,
};

const RANK_INDEX: &str = "hccl/rankIndex";

/// What `RANK` says, which `pytorch` may have set before; else masters are counted first, then
/// workers. A task that is neither has no rank.
fn pod(job: &Job, arguments: &Arguments<'_>, place: &Place<'_>, pod: &mut Value) {
    let told = pod["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|container| container["env"].as_array().into_iter().flatten())
        .find(|variable| variable["name"] == "RANK")
        .and_then(|variable| variable["value"].as_str())
        .filter(|rank| !rank.is_empty())
        .map(str::to_owned);
    let rank = told.or_else(|| counted(job, arguments, place));
    if let Some(rank) = rank {
        pod["metadata"]["annotations"][RANK_INDEX] = json!(rank);
    }
}

fn counted(job: &Job, arguments: &Arguments<'_>, place: &Place<'_>) -> Option<String> {
    let master = arguments.text("master", "master");
    let own = &*place.task.name;
    if own == master {
        return Some(place.index.to_string());
    }
    if own != arguments.text("worker", "worker") {
        return None;
    }
    let masters = task_of(job, master).map_or(0, |task| task.replicas());
    Some((i64::from(masters) + i64::from(place.index)).to_string())
}
