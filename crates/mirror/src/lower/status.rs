//! Statuses of PodGroups and Queues, and conditions of pods that wait.

use std::collections::BTreeMap;

use api::core::{Pod, ResourceList};
use api::intent::{Intent, Part};
use api::kind::Kind;
use api::quantity::Quantity;
use api::sum::Sum;
use api::time::Time;
use api::volcano::{JOB_HYPERNODE, PodGroup, PodGroupCondition, Queue, SCHEDULED, UNSCHEDULABLE};
use model::{
    GangId, GangStatus, Plan, QueueUse, Reason, Remark, StatusWrite, Tables, TaskId, TaskWait,
    Verdict,
};
use serde_json::{Map, Value, json};

use super::{Lowered, Voice, condition, note, patched};
use crate::held::Mirror;
use crate::rows::resource_list;

/// Upstream's reason of the condition Scheduled.
const READY_REASON: &str = "tasks in gang are ready to be scheduled";

impl Mirror {
    pub(super) fn lower_status(
        &self,
        tables: &Tables,
        write: &StatusWrite,
        voice: Voice<'_>,
        lowered: &mut Lowered,
    ) {
        let native = tables.find_gang(write.gang).filter(|gang| gang.spec.native);
        if let Some(gang) = native {
            self.lower_native(tables, gang, write, voice, lowered);
            return;
        }
        let held = tables.find_gang(write.gang).and_then(|gang| {
            let spec = &gang.spec;
            let group = self.get::<PodGroup>(&spec.key.namespace, &spec.key.name)?;
            (*group.metadata.uid == *spec.uid).then_some((gang, group))
        });
        let Some((gang, group)) = held else {
            lowered.lost.push(write.write);
            return;
        };
        let wanted = match &write.status.verdict {
            Verdict::Undecided => None,
            Verdict::Scheduled => Some(Wanted {
                kind: SCHEDULED,
                opposite: UNSCHEDULABLE,
                reason: READY_REASON,
                message: String::new(),
            }),
            Verdict::Waits(reason) => Some(Wanted {
                kind: UNSCHEDULABLE,
                opposite: SCHEDULED,
                reason: condition::reason_word(reason),
                message: condition::gang_message(tables, gang, reason),
            }),
        };
        let is_news = wanted
            .as_ref()
            .is_some_and(|wanted| !wanted.is_shown(&group.status.conditions));
        let mut status = counts_patch(group, &write.status);
        if let Some(wanted) = wanted.as_ref().filter(|_| is_news) {
            let conditions = wanted.conditions(group, voice.now);
            status.insert("conditions".to_owned(), json!(conditions));
        }
        let domain = write.status.hyper_node.as_deref();
        let shown = group.metadata.annotations.get(JOB_HYPERNODE);
        let domain = domain.filter(|name| shown.is_none_or(|shown| **shown != **name));
        if status.is_empty() && domain.is_none() {
            lowered.settled.push(write.write);
            return;
        }
        let mut patch = json!({ "status": status });
        if let Some(name) = domain {
            patch["metadata"] = json!({ "annotations": { JOB_HYPERNODE: name } });
        }
        let intent = patched(&group.metadata, Kind::PodGroup, Part::Whole, patch);
        lowered.writes.push((write.write, intent));
        if let Some(wanted) = wanted.filter(|_| is_news) {
            let reason = match &write.status.verdict {
                Verdict::Waits(reason) => Some(&**reason),
                _ => None,
            };
            let of = (Kind::PodGroup, &group.metadata);
            let said = group
                .status
                .conditions
                .iter()
                .find(|shown| &*shown.kind == UNSCHEDULABLE && &*shown.status == "True");
            let said = said.map(|shown| condition::plain_words(&shown.message));
            let news = (&*wanted.message, said);
            note::gang(of, reason, news, voice, &mut lowered.notes);
        }
    }

    pub(super) fn lower_remark(
        &self,
        tables: &Tables,
        remark: &Remark,
        voice: Voice<'_>,
        lowered: &mut Lowered,
    ) {
        let gang = tables.find_gang(remark.gang);
        if let Some(group) = gang.and_then(|gang| self.group_of(&gang.spec.key)) {
            note::remark(group, &remark.reason, voice, &mut lowered.notes);
        }
    }

    /// Tasks that wait though their gang has all it must have: its condition says nothing of them, so there is
    /// one event for them, unless a pod of the gang says the same already.
    pub(super) fn lower_extras(
        &self,
        tables: &Tables,
        plan: &Plan,
        voice: Voice<'_>,
        lowered: &mut Lowered,
    ) {
        let mut reasons: BTreeMap<GangId, &Reason> = BTreeMap::new();
        for wait in &plan.waits {
            let gang = tables.find_task(wait.task).and_then(|task| task.gang);
            if let Some(gang) = gang
                && !is_anothers(&wait.reason)
                && !voice.tells(tables, wait.task)
            {
                reasons.entry(gang).or_insert(&wait.reason);
            }
        }
        for (id, reason) in reasons {
            let Some(gang) = tables.find_gang(id) else {
                continue;
            };
            let key = &gang.spec.key;
            let group = self.get::<PodGroup>(&key.namespace, &key.name);
            let ready = tables.ready(id);
            let is_whole = ready > 0 && ready >= gang.spec.min_member && !gang.spec.native;
            let Some(group) = group.filter(|_| is_whole) else {
                continue;
            };
            let sentence = reason.sentence();
            if matches!(&gang.said, Verdict::Waits(said) if said.sentence() == sentence) {
                continue;
            }
            let is_said = |task: &TaskId| {
                let pod = self.pod_of(tables, *task);
                let shown = pod.and_then(|pod| pod.status.condition("PodScheduled"));
                shown.is_some_and(|shown| {
                    &*shown.status == "False" && condition::plain_words(&shown.message) == sentence
                })
            };
            if gang.tasks.iter().any(is_said) {
                continue;
            }
            let message = format!("tasks beyond the minimum wait: {sentence}");
            let group = (Kind::PodGroup, &group.metadata);
            note::gang_not_placed(group, &message, voice, &mut lowered.notes);
        }
    }

    pub(super) fn lower_queue(&self, tables: &Tables, use_: &QueueUse, lowered: &mut Lowered) {
        let queue = tables
            .find_queue(use_.queue)
            .and_then(|row| self.get::<Queue>("", &row.spec.name));
        let Some(queue) = queue else {
            lowered.lost.push(use_.write);
            return;
        };
        let wanted = resource_list(&use_.allocated, tables.kinds());
        let none = ResourceList::new();
        let shown = queue.status.allocated.as_ref().unwrap_or(&none);
        let patch = quantities_patch(shown, &wanted);
        if patch.is_empty() {
            lowered.settled.push(use_.write);
            return;
        }
        let patch = json!({ "status": { "allocated": patch } });
        let intent = patched(&queue.metadata, Kind::Queue, Part::Status, patch);
        lowered.writes.push((use_.write, intent));
    }

    pub(super) fn lower_wait(
        &self,
        tables: &Tables,
        wait: &TaskWait,
        voice: Voice<'_>,
        lowered: &mut Lowered,
    ) {
        if is_anothers(&wait.reason) {
            return;
        }
        let Some(pod) = self.pod_of(tables, wait.task) else {
            return;
        };
        let message = condition::pod_message(tables, pod, wait);
        let patch = waits(pod, wait, &message, voice.now);
        if patch.is_some() && voice.tells(tables, wait.task) {
            lowered.notes.push(note::not_placed(pod, &message, voice));
        }
        lowered.notes.extend(patch);
    }
}

/// Whether somebody else says so: upstream leaves gated pods alone, whose condition is the API
/// server's.
pub(super) fn is_anothers(reason: &Reason) -> bool {
    matches!(reason, Reason::Gated { .. })
}

/// What a pod that waits says of it, unless it does so already.
pub(super) fn waits(pod: &Pod, wait: &TaskWait, message: &str, now: Time) -> Option<Intent> {
    let wanted = PodCondition {
        reason: condition::pod_reason_word(&wait.reason),
        message,
    };
    wanted.patch(pod, now)
}

struct Wanted {
    kind: &'static str,
    opposite: &'static str,
    reason: &'static str,
    message: String,
}

impl Wanted {
    fn is_shown(&self, conditions: &[PodGroupCondition]) -> bool {
        conditions.iter().any(|condition| {
            *condition.kind == *self.kind
                && &*condition.status == "True"
                && *condition.reason == *self.reason
                && *condition.message == *self.message
        })
    }

    /// The whole list, which a merge patch replaces. Upstream leaves the opposite condition True
    /// for ever; here it ends.
    fn conditions(&self, group: &PodGroup, now: Time) -> Vec<PodGroupCondition> {
        let mut conditions = group.status.conditions.clone();
        for condition in &mut conditions {
            if *condition.kind == *self.opposite && &*condition.status == "True" {
                condition.status = "False".into();
                condition.last_transition_time = Some(now);
            }
        }
        let at = conditions
            .iter()
            .position(|condition| *condition.kind == *self.kind);
        let mut condition = at.map(|at| conditions.remove(at)).unwrap_or_default();
        if &*condition.status != "True" {
            condition.last_transition_time = Some(now);
        }
        condition.kind = self.kind.into();
        condition.status = "True".into();
        condition.reason = self.reason.into();
        condition.message = self.message.as_str().into();
        condition.transition_id = transition_id(group, self, now);
        conditions.push(condition);
        conditions
    }
}

/// Upstream draws a UUID per session; ours names the transition: the same one, the same id.
fn transition_id(group: &PodGroup, wanted: &Wanted, now: Time) -> Box<str> {
    let mut sums = [Sum::BASIS, Sum::OTHER_BASIS].map(Sum::begun_at);
    let now = now.micros().to_string();
    for text in [&*group.metadata.uid, wanted.kind, &wanted.message, &now] {
        for sum in &mut sums {
            sum.text(text);
        }
    }
    let [high, low] = sums.map(Sum::value);
    format!(
        "{:08x}-{:04x}-8{:03x}-8{:03x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff
    )
    .into()
}

/// Phase and counts, as far as they differ.
fn counts_patch(group: &PodGroup, wanted: &GangStatus) -> Map<String, Value> {
    let mut patch = Map::new();
    let shown = &group.status;
    if shown.phase.text() != wanted.phase.word() {
        patch.insert("phase".to_owned(), json!(wanted.phase.word()));
    }
    for (name, shown, wanted) in [
        ("running", shown.running, wanted.running),
        ("succeeded", shown.succeeded, wanted.succeeded),
        ("failed", shown.failed, wanted.failed),
    ] {
        if u32::try_from(shown).ok() != Some(wanted) {
            // Upstream omits zeros.
            let value = if wanted == 0 {
                Value::Null
            } else {
                json!(wanted)
            };
            patch.insert(name.to_owned(), value);
        }
    }
    patch
}

fn quantities_patch(
    shown: &ResourceList,
    wanted: &BTreeMap<Box<str>, Quantity>,
) -> Map<String, Value> {
    let mut patch = Map::new();
    for (name, quantity) in wanted {
        if shown.get(name) != Some(quantity) {
            patch.insert(name.to_string(), json!(quantity));
        }
    }
    for (name, quantity) in shown {
        if wanted.contains_key(name) || quantity.is_zero() {
            continue;
        }
        // Upstream keeps cpu and memory at zero and drops the rest.
        let gone = match &**name {
            "cpu" | "memory" => json!("0"),
            _ => Value::Null,
        };
        patch.insert(name.to_string(), gone);
    }
    patch
}

/// Upstream's reason of a pod that has a place and cannot be bound to it.
const SCHEDULER_ERROR: &str = "SchedulerError";

/// Upstream's condition of a pod whose bind was refused; `None` where it is shown already, be it of another
/// node: what comes to nothing for the same reason wherever it is tried would be told at each try.
pub(super) fn bind_refused(pod: &Pod, (message, why): (&str, &str), now: Time) -> Option<Intent> {
    let shown = pod.status.condition("PodScheduled");
    let is_said = shown.is_some_and(|shown| {
        &*shown.status == "False"
            && &*shown.reason == SCHEDULER_ERROR
            && shown.message.ends_with(why)
    });
    let wanted = PodCondition {
        reason: SCHEDULER_ERROR,
        message,
    };
    if is_said {
        None
    } else {
        wanted.patch(pod, now)
    }
}

struct PodCondition<'a> {
    reason: &'static str,
    message: &'a str,
}

impl PodCondition<'_> {
    /// The patch of `PodScheduled=False`, or `None` where it is shown already.
    fn patch(&self, pod: &Pod, now: Time) -> Option<Intent> {
        let shown = pod.status.condition("PodScheduled");
        if shown.is_some_and(|shown| {
            &*shown.status == "False"
                && *shown.reason == *self.reason
                && *shown.message == *self.message
        }) {
            return None;
        }
        let since = shown
            .filter(|shown| &*shown.status == "False")
            .and_then(|shown| pod.status.at(shown.last_transition_time))
            .unwrap_or(now);
        let wanted = json!({
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": null,
            "lastTransitionTime": since,
            "reason": self.reason,
            "message": self.message,
        });
        let conditions = pod.status.conditions_with(vec![wanted]);
        let patch = json!({ "status": { "conditions": conditions } });
        Some(patched(&pod.metadata, Kind::Pod, Part::Status, patch))
    }
}
