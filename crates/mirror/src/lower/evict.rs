//! Victims: first they are told why, then they are deleted, so that whoever owns them does not take
//! it for their own failure.

use api::core::{DISRUPTION_TARGET, Pod, disruption_target};
use api::intent::{Action, Intent, ObjectKey, Part, Propagation};
use api::kind::Kind;
use api::time::Time;
use model::{Eviction, WriteId};
use serde_json::json;

use super::native::Disruption;
use super::patched;

/// The reason of `DisruptionTarget` (kube-scheduler's, as upstream writes it).
pub(super) const TARGET_REASON: &str = "PreemptionByScheduler";
/// The reason of `Ready=False` (upstream's).
const UNREADY_REASON: &str = "Evict";

/// One pod to take away.
#[derive(Clone, Debug, PartialEq)]
pub struct Evict {
    /// The write that the task's row waits for.
    pub write: WriteId,
    /// The pod's conditions `Ready=False` and `DisruptionTarget=True`; `None` where they are shown.
    /// It goes first, and whatever becomes of it the deletion follows, of the pod as it is then.
    pub mark: Option<Intent>,
    /// The deletion, with the grace that the pod asks for; fenced by the version before the mark.
    pub delete: Intent,
    /// What its group is to say, if that goes as a whole.
    pub disruption: Option<Disruption>,
}

impl Evict {
    pub(super) fn of(pod: &Pod, eviction: &Eviction, message: &str, now: Time) -> Evict {
        let meta = &pod.metadata;
        Evict {
            disruption: None,
            write: eviction.write,
            mark: mark(pod, message, now),
            delete: Intent {
                target: ObjectKey::new(Kind::Pod, &meta.namespace, &meta.name),
                action: Action::Delete {
                    uid: meta.uid.clone(),
                    resource_version: Some(meta.resource_version.clone()),
                    grace_seconds: None,
                    propagation: Propagation::Background,
                },
            },
        }
    }
}

fn mark(pod: &Pod, message: &str, now: Time) -> Option<Intent> {
    let shown = pod.status.condition(DISRUPTION_TARGET);
    if shown.is_some_and(|it| &*it.status == "True" && &*it.reason == TARGET_REASON) {
        return None;
    }
    let target = disruption_target(TARGET_REASON, message, now);
    let mut unready = target.clone();
    unready["type"] = json!("Ready");
    unready["status"] = json!("False");
    unready["reason"] = json!(UNREADY_REASON);
    let conditions = pod.status.conditions_with(vec![target, unready]);
    let patch = json!({ "status": { "conditions": conditions } });
    Some(patched(&pod.metadata, Kind::Pod, Part::Status, patch))
}
