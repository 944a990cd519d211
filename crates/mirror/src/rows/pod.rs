//! Pods → tasks.

use std::sync::Arc;

use api::core::{Pod, PodPhase, requests_of};
use api::meta::ObjectMeta;
use api::volcano::{GROUP_NAME, PREEMPTABLE, TASK_SPEC};
use model::{Key, Phase, ShapeSpec, Tables, TaskSpec};

use super::amounts::vector;
use super::{Rows, constraints, created, volume};
use crate::held::Mirror;

/// The annotation by which a pod overrides its priority among the tasks of its gang.
const TASK_PRIORITY: &str = "volcano.sh/task-priority";

impl Rows {
    /// Ours are tasks of their gang; pods of others, and ours without a gang, only hold room, so
    /// they have no row before they are bound and after they are over.
    pub(super) fn put_pod(&self, mirror: &Mirror, pod: &Pod, tables: &mut Tables) {
        let meta = &pod.metadata;
        let key = Key::new(&*meta.namespace, &*meta.name);
        let is_ours = self.scheduler_names.contains(&pod.spec.scheduler_name);
        let group = meta.annotations.get(GROUP_NAME);
        let gang = group
            .filter(|name| is_ours && !name.is_empty())
            .map(|name| Key::new(&*meta.namespace, &**name));
        let holds_room = !pod.spec.node_name.is_empty() && !pod.is_finished();
        if gang.is_none() && !holds_room {
            tables.remove_task(&key);
            return;
        }
        let spec = TaskSpec {
            key,
            uid: (&*meta.uid).into(),
            gang,
            role: meta
                .annotations
                .get(TASK_SPEC)
                .map_or("", |role| role)
                .into(),
            index: trailing_number(&meta.name),
            shape: shape(mirror, pod, tables),
            labels: Arc::new(constraints::labels(&meta.labels)),
            priority: priority(pod),
            phase: phase(pod),
            node: Some(&*pod.spec.node_name)
                .filter(|node| !node.is_empty())
                .map(Into::into),
            gated: !pod.spec.scheduling_gates.is_empty(),
            // Upstream: a pod that says nothing may be evicted.
            preemptable: preemptable(meta).unwrap_or(true),
            created: created(meta),
        };
        tables.put_task(spec);
    }
}

/// Whether nothing that a task's row is made of differs.
pub(super) fn is_same_task(before: &Pod, after: &Pod) -> bool {
    before.spec == after.spec
        && before.status.phase == after.status.phase
        && before.metadata.labels == after.metadata.labels
        && before.metadata.annotations == after.metadata.annotations
        && before.is_terminating() == after.is_terminating()
}

/// What annotation or label say about eviction; a text that is no boolean forbids it.
pub(super) fn preemptable(meta: &ObjectMeta) -> Option<bool> {
    let text = meta
        .annotations
        .get(PREEMPTABLE)
        .or_else(|| meta.labels.get(PREEMPTABLE))?;
    // Go's strconv.ParseBool.
    Some(matches!(
        &**text,
        "1" | "t" | "T" | "true" | "TRUE" | "True"
    ))
}

fn shape(mirror: &Mirror, pod: &Pod, tables: &mut Tables) -> ShapeSpec {
    let mut requests = requests_of(&pod.spec);
    // The tables add the pod's own slot.
    requests.remove("pods");
    let mut shape = ShapeSpec {
        requests: vector(&requests, tables),
        volumes: volume::needs(mirror, pod),
        ..ShapeSpec::default()
    };
    constraints::constrain(&mut shape, mirror, pod);
    shape
}

fn priority(pod: &Pod) -> i32 {
    pod.metadata
        .annotations
        .get(TASK_PRIORITY)
        .and_then(|text| text.parse().ok())
        .or(pod.spec.priority)
        .unwrap_or(1)
}

fn phase(pod: &Pod) -> Phase {
    match pod.status.phase {
        PodPhase::Succeeded => Phase::Succeeded,
        PodPhase::Failed => Phase::Failed,
        _ if pod.is_terminating() => Phase::Releasing,
        PodPhase::Running => Phase::Running,
        // A kubelet that is not heard of still holds the room.
        PodPhase::Unknown => Phase::Running,
        PodPhase::Pending | PodPhase::Unset => Phase::Pending,
    }
}

fn trailing_number(name: &str) -> u32 {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    name[stem.len()..].parse().unwrap_or(0)
}
