//! Conformance: what the cluster itself needs is never a victim, whatever the tiers below say.

use model::TaskId;

use crate::plugin::{Plugin, View};

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "conformance",
    never_preempted: Some(is_the_clusters),
    never_reclaimed: Some(is_the_clusters),
    ..Plugin::NONE
};

/// The value of system-cluster-critical; system-node-critical lies above it, users' classes below.
const SYSTEM_CRITICAL: i32 = 2_000_000_000;

fn is_the_clusters(view: View<'_>, task: TaskId) -> bool {
    let task = view.tables.task(task);
    &*task.key.namespace == "kube-system" || task.priority >= SYSTEM_CRITICAL
}
