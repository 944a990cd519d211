//! `env`: tells every container the index of its pod within the task.

use api::volcano::Job;
use serde_json::Value;

use super::{Arguments, Place, Plugin, Tells, each_container, set_env};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "env",
    children: None,
    tells: |_| Tells::Itself,
    pod,
};

fn pod(_job: &Job, _arguments: &Arguments<'_>, place: &Place<'_>, pod: &mut Value) {
    each_container(pod, |container| {
        for name in ["VK_TASK_INDEX", "VC_TASK_INDEX"] {
            set_env(container, name, place.index.to_string());
        }
    });
}
