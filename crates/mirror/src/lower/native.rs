//! What groups of Kubernetes' own are told: once, that they were placed, and until then why not; and
//! that they go, where all their pods do.

use api::core::{DISRUPTION_TARGET, DatedCondition, Pod};
use api::intent::{Intent, ObjectKey, Part};
use api::kind::Kind;
use api::meta::ObjectMeta;
use api::native::{INITIALLY_SCHEDULED, PodGroup, SCHEDULED_REASON, UNSCHEDULABLE_REASON};
use api::time::Time;
use api::volcano;
use model::{Gang, Key, StatusWrite, Tables, Verdict};
use serde_json::{Value, json};

use super::evict::TARGET_REASON;
use super::{Lowered, Voice, condition, note, patched};
use crate::held::Mirror;
use crate::rows::{NATIVE, group_name};

/// A group that goes as a whole: its status is to say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disruption {
    /// The group.
    pub group: ObjectKey,
    /// Its uid: another group of the name has nothing to say of it.
    pub uid: Box<str>,
    /// What its pods are told.
    pub message: Box<str>,
}

impl Mirror {
    /// The object of a gang, Volcano's or of Kubernetes' own, if there is one.
    pub(super) fn group_of(&self, gang: &Key) -> Option<(Kind, &ObjectMeta)> {
        match gang.name.strip_prefix(NATIVE) {
            Some(name) => {
                let group = self.get::<PodGroup>(&gang.namespace, name)?;
                Some((Kind::NativeGroup, &group.metadata))
            }
            None => {
                let group = self.get::<volcano::PodGroup>(&gang.namespace, &gang.name)?;
                Some((Kind::PodGroup, &group.metadata))
            }
        }
    }

    /// What the group of a victim is to say: nothing where the pod may go by itself.
    pub(super) fn disruption(&self, pod: &Pod, message: &str) -> Option<Disruption> {
        let group = self.get::<PodGroup>(&pod.metadata.namespace, pod.native_group()?)?;
        let meta = &group.metadata;
        group.is_disrupted_whole().then(|| Disruption {
            group: ObjectKey::new(Kind::NativeGroup, &meta.namespace, &meta.name),
            uid: meta.uid.clone(),
            message: message.into(),
        })
    }

    /// The same for a pod that says already that it is a victim, where its group says nothing yet: so
    /// that whoever goes on from what is held tells what could not be told before.
    pub fn untold_disruption(&self, pod: &Pod) -> Option<Disruption> {
        pod.native_group()?;
        let target = pod.status.condition(DISRUPTION_TARGET)?;
        if &*target.status != "True" || &*target.reason != TARGET_REASON {
            return None;
        }
        let disruption = self.disruption(pod, &target.message)?;
        let group = self.get::<PodGroup>(&disruption.group.namespace, &disruption.group.name)?;
        (!group.is_disrupted()).then_some(disruption)
    }

    /// The patch by which a group says that it goes; `None` where it says so, or has gone.
    pub fn group_says(&self, disruption: &Disruption, now: Time) -> Option<Intent> {
        let Disruption {
            group,
            uid,
            message,
        } = disruption;
        let group = self.get::<PodGroup>(&group.namespace, &group.name)?;
        if group.metadata.uid != *uid {
            return None;
        }
        let wanted = DatedCondition {
            kind: DISRUPTION_TARGET.into(),
            status: "True".into(),
            reason: TARGET_REASON.into(),
            message: message.clone(),
            observed_generation: group.metadata.generation,
            ..DatedCondition::default()
        };
        let conditions = conditions(group, wanted, now)?;
        let patch = json!({ "status": { "conditions": conditions } });
        Some(patched(
            &group.metadata,
            Kind::NativeGroup,
            Part::Status,
            patch,
        ))
    }

    pub(super) fn lower_native(
        &self,
        tables: &Tables,
        gang: &Gang,
        write: &StatusWrite,
        voice: Voice<'_>,
        lowered: &mut Lowered,
    ) {
        let key = &gang.spec.key;
        let name = group_name(key);
        let group = self.get::<PodGroup>(&key.namespace, name);
        let Some(group) = group.filter(|group| *group.metadata.uid == *gang.spec.uid) else {
            lowered.lost.push(write.write);
            return;
        };
        let reason = match &write.status.verdict {
            Verdict::Undecided => None,
            Verdict::Scheduled => Some(None),
            Verdict::Waits(reason) => Some(Some(&**reason)),
        };
        // The condition never goes back: what a group lacks later its pods tell.
        let Some(reason) = reason.filter(|_| !group.is_scheduled()) else {
            lowered.settled.push(write.write);
            return;
        };
        let (status, word, message) = match reason {
            None => ("True", SCHEDULED_REASON, String::new()),
            Some(reason) => {
                let message = condition::gang_message(tables, gang, reason);
                ("False", UNSCHEDULABLE_REASON, message)
            }
        };
        let wanted = DatedCondition {
            kind: INITIALLY_SCHEDULED.into(),
            status: status.into(),
            reason: word.into(),
            message: message.as_str().into(),
            observed_generation: group.metadata.generation,
            ..DatedCondition::default()
        };
        let Some(conditions) = conditions(group, wanted, voice.now) else {
            lowered.settled.push(write.write);
            return;
        };
        let patch = json!({ "status": { "conditions": conditions } });
        let intent = patched(&group.metadata, Kind::NativeGroup, Part::Status, patch);
        lowered.writes.push((write.write, intent));
        let of = (Kind::NativeGroup, &group.metadata);
        note::gang(of, reason, (&message, None), voice, &mut lowered.notes);
    }
}

/// The whole list, which a merge patch replaces; `None` where it shows the wanted one already.
fn conditions(group: &PodGroup, wanted: DatedCondition, now: Time) -> Option<Vec<Value>> {
    let shown = &group.status.conditions;
    let before = shown.iter().find(|it| it.kind == wanted.kind);
    let says_the_same = |it: &&DatedCondition| {
        it.status == wanted.status && it.reason == wanted.reason && it.message == wanted.message
    };
    if before.filter(says_the_same).is_some() {
        return None;
    }
    let same_status = before.filter(|it| it.status == wanted.status);
    let since = same_status.and_then(|it| it.last_transition_time);
    let wanted = DatedCondition {
        last_transition_time: since.or(Some(now)),
        ..wanted
    };
    let others = shown.iter().filter(|it| it.kind != wanted.kind);
    Some(others.chain([&wanted]).map(written).collect())
}

/// A condition as Kubernetes demands it: reason, message and time are never left out.
fn written(condition: &DatedCondition) -> Value {
    let mut value = json!(condition);
    for (name, text) in [
        ("reason", &condition.reason),
        ("message", &condition.message),
    ] {
        value[name] = json!(text);
    }
    value
}
