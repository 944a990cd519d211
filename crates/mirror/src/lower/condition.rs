//! Reasons → upstream's words (`specs/volcano.md` 3.3 and A.4), followed by the plain sentence.

use std::fmt::Write as _;

use api::core::Pod;
use model::{
    Amount, CardFamily, CardLack, DeviceLack, Gang, GroupLack, Key, Missing, NoFit, NumaLack,
    Phase, QuotaGap, Reason, Refusal, Tables, TaskId, TaskWait, VolumeLack, Within, told_alike,
};

/// What stands before the plain sentence in a condition's message.
const PLAIN: &str = "In plain words: ";

/// The plain sentence of a PodGroup's or pod's condition message: `4 of 5 tasks fit: worker-3 needs
/// 100m cpu, node-1 has 50m left`. The whole message where it has none.
pub fn plain_words(message: &str) -> &str {
    message
        .split_once(PLAIN)
        .map_or(message, |(_, plain)| plain)
}

/// The reason of the condition Unschedulable of a PodGroup.
pub(super) fn reason_word(reason: &Reason) -> &'static str {
    match reason {
        Reason::NotEnoughPodsOfTask { .. } => "NotEnoughPodsOfTask",
        Reason::NotEnoughSubGroups { .. } | Reason::NotEnoughTasks { .. } => "NotEnoughTasks",
        // Only tasks are told these two.
        Reason::HasPlace(gang) | Reason::HasPromise { gang, .. } => reason_word(gang),
        Reason::ExtenderRefuses { .. }
        | Reason::Gated { .. }
        | Reason::GroupMissing { .. }
        | Reason::NoFit(_)
        | Reason::NoHyperNode { .. }
        | Reason::Overcommitted { .. }
        | Reason::QueueFull { .. }
        | Reason::NamespaceQuota { .. }
        | Reason::QueueMisplaced { .. }
        | Reason::QueueMissing { .. }
        | Reason::QueueNotOpen { .. }
        | Reason::QueueOverused { .. }
        | Reason::QueueQuota { .. }
        | Reason::SeveralSchedulers
        | Reason::TaskTopologyIgnored { .. }
        | Reason::WaitsForAnswer { .. }
        | Reason::WaitsForDrain { .. }
        | Reason::WaitsForRelease { .. }
        | Reason::NodeOverused { .. }
        | Reason::ZoneClosed { .. } => "NotEnoughResources",
    }
}

/// The message of the condition Unschedulable of a PodGroup.
pub(super) fn gang_message(tables: &Tables, gang: &Gang, reason: &Reason) -> String {
    let text = match reason {
        Reason::NotEnoughPodsOfTask { .. } => {
            "Not enough valid pods of each task for gang-scheduling".to_owned()
        }
        Reason::NotEnoughTasks { have, min, .. } => {
            format!("Not enough valid tasks for gang-scheduling, valid: {have}, min: {min}")
        }
        Reason::Overcommitted { .. }
        | Reason::NamespaceQuota { .. }
        | Reason::QueueQuota { .. } => match veto(reason) {
            // There is no task yet of which more could be said.
            Some(veto) if gang.tasks.is_empty() => veto,
            _ => not_ready(tables, gang, reason),
        },
        Reason::ExtenderRefuses { .. }
        | Reason::Gated { .. }
        | Reason::GroupMissing { .. }
        | Reason::HasPlace(_)
        | Reason::HasPromise { .. }
        | Reason::NoFit(_)
        | Reason::NoHyperNode { .. }
        | Reason::NotEnoughSubGroups { .. }
        | Reason::QueueFull { .. }
        | Reason::QueueMisplaced { .. }
        | Reason::QueueMissing { .. }
        | Reason::QueueNotOpen { .. }
        | Reason::QueueOverused { .. }
        | Reason::SeveralSchedulers
        | Reason::TaskTopologyIgnored { .. }
        | Reason::WaitsForAnswer { .. }
        | Reason::WaitsForDrain { .. }
        | Reason::WaitsForRelease { .. }
        | Reason::NodeOverused { .. }
        | Reason::ZoneClosed { .. } => not_ready(tables, gang, reason),
    };
    in_both(&text, &reason.sentence())
}

/// The message of the event that tells of a veto, for a reason that is one.
pub(super) fn veto_message(reason: &Reason) -> Option<String> {
    let text = veto(reason)?;
    Some(in_both(&text, &reason.sentence()))
}

/// Upstream's words, and the plain ones.
fn in_both(text: &str, plain: &str) -> String {
    let end = if text.ends_with('.') { "" } else { "." };
    format!("{text}{end} {PLAIN}{plain}")
}

/// Upstream's words of what keeps a gang from being let in; none of other reasons.
fn veto(reason: &Reason) -> Option<String> {
    Some(match reason {
        Reason::Overcommitted { short, .. } => {
            format!("resource in cluster is overused: overused {}", list(short))
        }
        Reason::NamespaceQuota { short, .. } => {
            let all = |of: fn(&QuotaGap) -> &Amount| -> String {
                let each = short.iter().map(of);
                let each = each.map(|amount| format!("{}={}", amount.name, amount.number()));
                each.collect::<Vec<_>>().join(",")
            };
            format!(
                "resource quota insufficient, requested: {}, used: {}, limited: {}",
                all(|gap| &gap.requested),
                all(|gap| &gap.used),
                all(|gap| &gap.limited)
            )
        }
        Reason::QueueQuota { short, .. } => queue_quota(&list(short)),
        _ => return None,
    })
}

fn queue_quota(names: &str) -> String {
    format!("queue resource quota insufficient: insufficient {names}")
}

/// Upstream's text of a gang that is not ready: how much of it does not fit, and why.
fn not_ready(tables: &Tables, gang: &Gang, reason: &Reason) -> String {
    let total = gang.tasks.len();
    let ready = ready(tables, gang);
    // How many tasks have no place.
    let missing = match reason {
        Reason::NoFit(no_fit) => no_fit.wanted.saturating_sub(no_fit.fits),
        _ => gang.spec.min_member.saturating_sub(ready),
    };
    let why = gang_error(tables, (gang, "not ready"), reason);
    format!("{missing}/{total} tasks in gang unschedulable: {why}")
}

fn ready(tables: &Tables, gang: &Gang) -> u32 {
    let id = tables.gang_keyed(&gang.spec.key);
    id.map_or(0, |id| tables.ready(id))
}

/// Upstream's error of a gang, which is also that of those of its pods that have none of their own: what it
/// is, in which states its tasks are, and the error of the task that was looked at last.
fn gang_error(tables: &Tables, (gang, is): (&Gang, &str), reason: &Reason) -> String {
    let mut text = format!("pod group is {is}, ");
    let mut states: Vec<String> = Phase::ALL
        .into_iter()
        .filter(|phase| gang.count(*phase) > 0)
        .map(|phase| format!("{} {phase:?}", gang.count(phase)))
        .collect();
    states.push(format!("{} minAvailable", gang.spec.min_member));
    states.sort();
    text.push_str(&states.join(", "));
    let pending = gang.count(Phase::Pending);
    // How many tasks would have a place for now.
    let placed = match reason {
        Reason::NoFit(no_fit) => no_fit.fits.saturating_sub(ready(tables, gang)),
        _ => 0,
    };
    if pending > 0 {
        let _ = write!(text, "; Pending: {}", pending_reasons(pending, placed));
    }
    if let Some(origin) = origin(tables, gang, reason) {
        let _ = write!(text, ". Origin reason is{origin}");
    }
    text
}

/// Upstream's histogram: whoever found a place when the gang was tried is `Schedulable`, the others are not.
fn pending_reasons(pending: u32, placed: u32) -> String {
    let schedulable = placed.min(pending);
    let mut reasons = Vec::new();
    if schedulable > 0 {
        reasons.push(format!("{schedulable} Schedulable"));
    }
    if pending > schedulable {
        reasons.push(format!("{} Unschedulable", pending - schedulable));
    }
    reasons.sort();
    reasons.join(", ")
}

fn origin(tables: &Tables, gang: &Gang, reason: &Reason) -> Option<String> {
    match reason {
        Reason::NoFit(no_fit) => {
            let pod = no_fit.pod.rsplit('/').next().unwrap_or_default();
            let within = match &no_fit.within {
                Some(Within::HyperNode(name)) => format!("In hyperNode {name}: "),
                _ => String::new(),
            };
            Some(format!(" {pod}: {within}{}", fit_error(no_fit)))
        }
        Reason::ExtenderRefuses { .. }
        | Reason::NoHyperNode { .. }
        | Reason::NotEnoughSubGroups { .. }
        | Reason::QueueMisplaced { .. }
        | Reason::WaitsForAnswer { .. } => Some(format!(": {}", reason.sentence())),
        Reason::QueueMissing { queue } => Some(format!(": queue {queue} is not found")),
        Reason::QueueNotOpen { queue, state } => {
            Some(format!(": queue {queue} is {}", state.word()))
        }
        Reason::QueueOverused { queue } => Some(format!(": queue {queue} is overused")),
        Reason::QueueFull { need, .. } => Some(format!(": {}", queue_quota(&need.name))),
        Reason::WaitsForDrain { .. } | Reason::WaitsForRelease { .. } => {
            let promised = gang
                .tasks
                .iter()
                .filter_map(|task| tables.find_task(*task))
                .find(|task| task.phase == Phase::Pipelined)?;
            let node = tables.find_node(promised.node?)?;
            Some(format!(
                " {}: Pod {} can possibly be assigned to {}, once resource is released and minAvailable is satisfied",
                promised.key.name, promised.key, node.spec.name
            ))
        }
        _ => veto(reason).map(|veto| format!(": {veto}")),
    }
}

/// kube-scheduler's and Volcano's text of a task that fits no node.
fn fit_error(no_fit: &NoFit) -> String {
    if let Missing::Volume { claim, why } = &no_fit.missing {
        return claim_text(&no_fit.pod, claim, *why);
    }
    // Upstream has one text for several of our reasons, and counts by text.
    let told = told_alike(&no_fit.refusals, refusal_text).into_iter();
    let mut reasons: Vec<String> = told
        .map(|(text, nodes)| format!("{nodes} {text}"))
        .collect();
    reasons.sort();
    let mut text = format!("0/{} nodes are unavailable", no_fit.nodes);
    if !reasons.is_empty() {
        let _ = write!(text, ": {}", reasons.join(", "));
    }
    text.push('.');
    text
}

/// What keeps the claim of a pod (`namespace/name`) from being used.
fn claim_text(pod: &str, claim: &str, why: VolumeLack) -> String {
    match why {
        VolumeLack::Missing => format!("persistentvolumeclaim \"{claim}\" not found"),
        VolumeLack::Awaited => format!(
            "waiting for ephemeral volume controller to create the persistentvolumeclaim \"{claim}\""
        ),
        VolumeLack::Unbound => "pod has unbound immediate PersistentVolumeClaims".to_owned(),
        VolumeLack::Leaving => format!("persistentvolumeclaim \"{claim}\" is being deleted"),
        VolumeLack::Foreign => {
            let namespace = pod.split_once('/').map_or("", |(namespace, _)| namespace);
            format!("PVC {namespace}/{claim} was not created for pod {pod} (pod is not owner)")
        }
    }
}

fn refusal_text(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Unschedulable => "node(s) were unschedulable".to_owned(),
        Refusal::ZoneClosed {
            zone,
            window: Some(window),
        } => format!("current time beyond revocable zone {zone}:{window}"),
        Refusal::ZoneClosed { zone, window: None } => {
            format!("revocable zone {zone} not support")
        }
        Refusal::Overused { resource } => {
            // Upstream's text, with its capitals.
            let name = if &**resource == "cpu" {
                "CPU"
            } else {
                resource
            };
            format!("the {name} load of the node exceeds the upper limit.")
        }
        Refusal::Revocable => "not allow to dispatch to revocable node".to_owned(),
        Refusal::NodeAffinity => "node(s) didn't match Pod's node affinity/selector".to_owned(),
        Refusal::NodeGroup { why } => match why {
            GroupLack::Bare => "node group label not found".to_owned(),
            GroupLack::Unnamed => "node group affinity not specified".to_owned(),
            GroupLack::Unwanted => "node does not satisfy the node group affinity".to_owned(),
        },
        Refusal::NodeGroupFull | Refusal::NodeGroupLimitsUnreadable => {
            format!("node(s) were {}", refusal.words())
        }
        Refusal::Ports => "node(s) didn't have free ports for the requested pod ports".to_owned(),
        // Which ones is nothing that tenants should read (kubernetes#134740).
        Refusal::Taint { .. } => "node(s) had untolerated taint(s)".to_owned(),
        Refusal::PodAffinity => "node(s) didn't match pod affinity rules".to_owned(),
        Refusal::PodAntiAffinity => "node(s) didn't match pod anti-affinity rules".to_owned(),
        Refusal::ExistingAntiAffinity => {
            "node(s) didn't satisfy existing pods anti-affinity rules".to_owned()
        }
        Refusal::VolumeLimit => "node(s) exceed max volume count".to_owned(),
        Refusal::VolumeTopology => "node(s) had volume node affinity conflict".to_owned(),
        Refusal::VolumeInUse => "node has pod using PersistentVolumeClaim with the same name and \
             ReadWriteOncePod access mode"
            .to_owned(),
        Refusal::VolumeZone => "node(s) had no available volume zone".to_owned(),
        Refusal::VolumeWaits | Refusal::VolumeElsewhere | Refusal::NoFreeVolume => {
            "node(s) didn't find available persistent volumes to bind".to_owned()
        }
        Refusal::LittleStorage => "node(s) did not have enough free storage".to_owned(),
        Refusal::Devices {
            why: DeviceLack::Elsewhere,
        } => "resourceclaim not available on the node".to_owned(),
        Refusal::Devices { .. } => "cannot allocate all claims".to_owned(),
        Refusal::Spread => "node(s) didn't match pod topology spread constraints".to_owned(),
        Refusal::SpreadLabel => "node(s) didn't match pod topology spread constraints (missing \
             required label)"
            .to_owned(),
        Refusal::OfOthers => "node(s) belong to other schedulers".to_owned(),
        Refusal::OutOfShard => "node isn't in scheduler node shard".to_owned(),
        Refusal::Cards { family, why } => match (family, why) {
            (CardFamily::Shared, _) => "GpuShare no enough gpu".to_owned(),
            (CardFamily::Virtual, _) => "hami-vgpuDeviceSharing error".to_owned(),
            (CardFamily::Npu, _) => "no ascend device available".to_owned(),
            // What upstream finds at its first look at a node.
            (CardFamily::Chip, CardLack::Few | CardLack::SetApart | CardLack::Taken) => {
                "preCheckNodePredicate failure".to_owned()
            }
            // Of what comes after it upstream's text is empty.
            (CardFamily::Chip, _) => format!("node(s) {}", refusal.words()),
        },
        Refusal::Extender { why, .. } => why.to_string(),
        Refusal::Unanswered => "node(s) were not yet answered for by the extender".to_owned(),
        Refusal::Numa { why } => numa_text(why),
        Refusal::TooManyPods => "node(s) pod number exceeded".to_owned(),
        Refusal::OutOfProportion { resource } => {
            format!("proportional of resource {resource} check failed")
        }
        Refusal::Insufficient { resource } => format!("Insufficient {resource}"),
    }
}

fn numa_text(why: &NumaLack) -> String {
    match why {
        NumaLack::Untold => "numa info is empty".to_owned(),
        NumaLack::Garbled | NumaLack::Unlaid => "no topo information".to_owned(),
        NumaLack::Unpinned => "cpu manager policy isn't static".to_owned(),
        NumaLack::OtherPolicy { wanted, has } => {
            format!("task topology policy[{wanted}] is different with node[{has}]")
        }
        NumaLack::NoCpus => "cpu allocatable map is empty".to_owned(),
        NumaLack::Few { container } | NumaLack::Taken { container } => {
            format!("container {container} cannot be assigned by numa")
        }
    }
}

/// The reason of a pod's condition `PodScheduled=False`.
pub(super) fn pod_reason_word(reason: &Reason) -> &'static str {
    match reason {
        Reason::HasPlace(_) => "Schedulable",
        _ => "Unschedulable",
    }
}

/// The message of a pod's condition `PodScheduled=False`.
pub(super) fn pod_message(tables: &Tables, pod: &Pod, wait: &TaskWait) -> String {
    let sentence = wait.reason.sentence();
    let meta = &pod.metadata;
    let text = match &*wait.reason {
        Reason::HasPlace(gang) => {
            let enough = match gang.of_gang() {
                Reason::NoFit(no_fit) => {
                    let (fits, wanted) = (no_fit.fits, no_fit.wanted);
                    format!(": {fits} tasks of the gang fit, {wanted} must.")
                }
                _ => ".".to_owned(),
            };
            format!(
                "Pod {}/{} can possibly be assigned, once minAvailable is satisfied{enough}",
                meta.namespace, meta.name
            )
        }
        Reason::HasPromise { node, .. } => format!(
            "Pod {}/{} can possibly be assigned to {node}, once resource is released and minAvailable is satisfied.",
            meta.namespace, meta.name
        ),
        // What one task of a shape does not find, no other one does.
        Reason::NoFit(no_fit) if is_like(tables, wait.task, no_fit) => fit_error(no_fit),
        Reason::NotEnoughTasks { have, min, .. } => {
            format!("Not enough valid tasks for gang-scheduling, valid: {have}, min: {min}.")
        }
        reason => match group_of(tables, wait.task) {
            Some(gang) => {
                let is_ready = ready(tables, gang) >= gang.spec.min_member;
                let is = if is_ready { "ready" } else { "not ready" };
                gang_error(tables, (gang, is), reason)
            }
            None => return sentence,
        },
    };
    in_both(&text, &sentence)
}

/// The group of a task, of which its pod can be told; none of a pod by itself, or whose group is not there.
fn group_of(tables: &Tables, task: TaskId) -> Option<&Gang> {
    let gang = tables.find_task(task)?.gang?;
    let gang = tables.find_gang(gang)?;
    (gang.known && !gang.spec.lone).then_some(gang)
}

/// Whether the task is the one of which it is told what it lacks, or of the same shape.
fn is_like(tables: &Tables, task: TaskId, no_fit: &NoFit) -> bool {
    let told = (no_fit.pod.split_once('/'))
        .and_then(|(namespace, name)| tables.task_keyed(&Key::new(namespace, name)));
    let shape = |task: TaskId| tables.find_task(task).map(|row| row.shape);
    told.is_some_and(|told| told == task || shape(told) == shape(task))
}

fn list(names: &[std::sync::Arc<str>]) -> String {
    names
        .iter()
        .map(|name| &**name)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests;
