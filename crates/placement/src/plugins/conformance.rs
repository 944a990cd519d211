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

/// By the pod's class, which quotas and webhooks can keep from people; an annotation that says another priority
/// neither makes a pod one of them nor takes it out.
fn is_the_clusters(view: View<'_>, task: TaskId) -> bool {
    let task = view.tables.task(task);
    &*task.key.namespace == "kube-system" || task.critical
}
