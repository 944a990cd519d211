//! Events: one per gang and change, not one per pod.

use api::core::Pod;
use api::events::{self, Involved, Note, Tone};
use api::intent::Intent;
use api::kind::Kind;
use api::meta::ObjectMeta;
use model::{Eviction, Gang, Reason, Sake};

use super::{Voice, condition};
use crate::rows::group_name;

/// A gang's condition has changed: said on the PodGroup in upstream's words and, where a job owns
/// it, on the job in plain words, unless `said` (the plain words of the condition up to now) are the same:
/// a reason may have other words upstream and mean what was told already.
pub(super) fn gang(
    (kind, meta): (Kind, &ObjectMeta),
    reason: Option<&Reason>,
    (message, said): (&str, Option<&str>),
    voice: Voice<'_>,
    notes: &mut Vec<Intent>,
) {
    let on_group = involved(kind, meta);
    let Some(reason) = reason else {
        notes.push(say(
            &on_group,
            Tone::Normal,
            "Scheduled",
            "pod group is ready",
            voice,
        ));
        return;
    };
    // Upstream tells a veto by itself, in a Normal event, and beside it that a gang which has pods is not ready.
    let veto = condition::veto_message(reason);
    let is_more = veto.as_deref() != Some(message);
    let veto = veto.as_deref().map(|veto| (Tone::Normal, veto));
    let events = veto
        .into_iter()
        .chain(is_more.then_some((Tone::Warning, message)));
    notes.extend(events.map(|(tone, text)| say(&on_group, tone, "Unschedulable", text, voice)));
    let sentence = reason.sentence();
    let of_owner = owner(meta).filter(|_| said != Some(&*sentence));
    notes.extend(of_owner.map(|on| say(&on, Tone::Warning, "Unschedulable", &sentence, voice)));
}

/// The object that owns a group, where it is of a kind that is known.
fn owner(meta: &ObjectMeta) -> Option<Involved<'_>> {
    let owner = meta.controller()?;
    Some(Involved {
        kind: Kind::find(&owner.api_version, &owner.kind)?,
        namespace: &meta.namespace,
        name: &owner.name,
        uid: &owner.uid,
        resource_version: "",
    })
}

/// What a group's people should know though it does not wait for it: on the group and on its owner.
pub(super) fn remark(
    (kind, group): (Kind, &ObjectMeta),
    reason: &Reason,
    voice: Voice<'_>,
    notes: &mut Vec<Intent>,
) {
    let on = std::iter::once(involved(kind, group)).chain(owner(group));
    let sentence = reason.sentence();
    notes.extend(on.map(|on| say(&on, Tone::Warning, reason.code(), &sentence, voice)));
}

/// kube-scheduler's event of a pod that was placed.
pub(super) fn assigned(pod: &Pod, node: &str, voice: Voice<'_>) -> Intent {
    let meta = &pod.metadata;
    let message = format!(
        "Successfully assigned {}/{} to {node}",
        meta.namespace, meta.name
    );
    say_as_scheduler(pod, Tone::Normal, "Scheduled", &message, voice)
}

/// kube-scheduler's event of a pod that finds no node.
pub(super) fn not_placed(pod: &Pod, message: &str, voice: Voice<'_>) -> Intent {
    say_as_scheduler(pod, Tone::Warning, "FailedScheduling", message, voice)
}

/// The same of pods of a gang, told once for all of them: on the group and on its owner.
pub(super) fn gang_not_placed(
    (kind, group): (Kind, &ObjectMeta),
    message: &str,
    voice: Voice<'_>,
    notes: &mut Vec<Intent>,
) {
    let on = std::iter::once(involved(kind, group)).chain(owner(group));
    notes.extend(on.map(|on| say(&on, Tone::Warning, "FailedScheduling", message, voice)));
}

/// In the name of the scheduler that the pod asks for.
fn say_as_scheduler(
    pod: &Pod,
    tone: Tone,
    reason: &str,
    message: &str,
    voice: Voice<'_>,
) -> Intent {
    let voice = Voice {
        component: &pod.spec.scheduler_name,
        ..voice
    };
    let on_pod = involved(Kind::Pod, &pod.metadata);
    say(&on_pod, tone, reason, message, voice)
}

/// Upstream's words for a victim, and the reason of one that leaves for nobody.
pub(super) fn why_evicted(eviction: &Eviction) -> String {
    let why = match &eviction.sake {
        Sake::Gang(_) => String::new(),
        Sake::Leaving(reason) => format!(": {}", reason.sentence()),
    };
    format!("Pod is evicted, because of {}{why}", eviction.cause)
}

/// Upstream's event of a victim.
pub(super) fn evicted(pod: &Pod, message: &str, voice: Voice<'_>) -> Intent {
    let on_pod = involved(Kind::Pod, &pod.metadata);
    say(&on_pod, Tone::Warning, "Evict", message, voice)
}

/// The victims of one group: how many go, and for whom. What a gang of another namespace is called is
/// nobody's business here; its queue is everybody's.
pub(super) fn evicted_group(
    (kind, group): (Kind, &ObjectMeta),
    victims: usize,
    whom: &Gang,
    cause: &str,
    voice: Voice<'_>,
) -> Intent {
    let pods = if victims == 1 { "pod is" } else { "pods are" };
    let whom = &whom.spec;
    let whom = match *whom.key.namespace == *group.namespace {
        true => format!("{}/{}", whom.key.namespace, group_name(&whom.key)),
        false => format!("a gang of another namespace (queue {})", whom.queue),
    };
    let message = format!("{victims} {pods} evicted for {whom}, because of {cause}");
    let on_group = involved(kind, group);
    say(&on_group, Tone::Normal, "Evict", &message, voice)
}

pub(super) fn involved(kind: Kind, meta: &ObjectMeta) -> Involved<'_> {
    Involved {
        kind,
        namespace: &meta.namespace,
        name: &meta.name,
        uid: &meta.uid,
        resource_version: &meta.resource_version,
    }
}

pub(super) fn say(
    on: &Involved<'_>,
    tone: Tone,
    reason: &str,
    message: &str,
    voice: Voice<'_>,
) -> Intent {
    let note = Note {
        tone,
        reason,
        message,
        component: voice.component,
    };
    events::intent(on, &note, voice.now)
}
