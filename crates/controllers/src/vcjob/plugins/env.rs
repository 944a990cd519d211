//! `env`: tells every container the index of its pod within the task.

use api::volcano::Job;
use serde_json::{Value, json};

use super::{Arguments, Place, Plugin, append, each_container};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "env",
    children: None,
    pod,
};

fn pod(_job: &Job, _arguments: &Arguments, place: &Place<'_>, pod: &mut Value) {
    each_container(pod, |container| {
        for name in ["VK_TASK_INDEX", "VC_TASK_INDEX"] {
            let variable = json!({ "name": name, "value": place.index.to_string() });
            append(container, "env", variable);
        }
    });
}
