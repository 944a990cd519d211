//! Plans → wanted writes. Nothing is written that is there already.

mod cards;
mod condition;
mod devices;
mod evict;
mod hyper_nodes;
mod native;
mod note;
mod numa;
mod status;

use std::collections::BTreeMap;

use api::core::{Pod, TextMap};
use api::intent::{Action, Intent, ObjectKey, Part};
use api::kind::Kind;
use api::time::Time;
use model::{
    ClaimLack, DeviceLack, Eviction, GangId, Missing, Nomination, Phase, Place, Plan, Reason,
    Refusal, Tables, TaskId, TaskWait, WriteId,
};
use serde_json::{Value, json};

use crate::held::Mirror;
use crate::rows::{Chosen, chosen};

pub use condition::plain_words;
pub use devices::{Given, claims_given_back, device_claims_of, extended_claim_key};
pub use evict::Evict;
pub use hyper_nodes::ToldFaults;
pub use native::Disruption;

/// What a plan comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lowered {
    /// Pods to bind.
    pub binds: Vec<Bind>,
    /// Pods to take away.
    pub evictions: Vec<Evict>,
    /// Writes on which rows of the tables wait.
    pub writes: Vec<(WriteId, Intent)>,
    /// Writes of the plan that show nothing new: confirm them at once.
    pub settled: Vec<WriteId>,
    /// Writes on whose object the plan was mistaken: it has gone, or another has its name.
    pub lost: Vec<WriteId>,
    /// Claims of devices that keep their pods from every node, and are given back. Best effort.
    pub releases: Vec<Intent>,
    /// For people: conditions of pods and events. Best effort.
    pub notes: Vec<Intent>,
}

/// One pod to bind.
#[derive(Clone, Debug, PartialEq)]
pub struct Bind {
    /// The write that the task's row waits for.
    pub write: WriteId,
    /// The gang, whose pods are held back together while volumes are missing.
    pub gang: Option<GangId>,
    /// The pod.
    pub pod: ObjectKey,
    /// The pod's uid.
    pub uid: Box<str>,
    /// The node.
    pub node: Box<str>,
    /// Annotations that the pod gets with it: which cards and units it has.
    pub annotations: TextMap,
    /// The locks of the node that belong to its kinds of cards; none where it gets no cards.
    pub locks: Vec<Box<str>>,
    /// Devices that its claims get before.
    pub devices: Vec<Given>,
    /// Claims, as the pod calls them, that get theirs with another task.
    pub joins: Vec<Box<str>>,
    /// Volumes that its claims get before.
    pub volumes: Vec<Chosen>,
}

impl Bind {
    /// The wanted write.
    pub fn intent(&self) -> Intent {
        Intent {
            target: self.pod.clone(),
            action: Action::Bind {
                uid: self.uid.clone(),
                node: self.node.clone(),
                annotations: self.annotations.clone(),
            },
        }
    }
}

/// Who writes, and when.
#[derive(Clone, Copy, Debug)]
pub struct Voice<'a> {
    /// The name under which events are written.
    pub component: &'a str,
    /// The instant of the decision.
    pub now: Time,
    /// Whose events are written.
    pub events: Events,
}

/// Whose events are written. A pod's condition is told either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Events {
    /// One for a gang and what has changed about it; of pods only where they have no group.
    #[default]
    PerGang,
    /// Beside those one for each pod that is placed or not, as upstream writes them.
    PerPod,
}

impl Voice<'_> {
    /// Whether what happens to a task is told on its own pod.
    fn tells(self, tables: &Tables, task: TaskId) -> bool {
        self.events == Events::PerPod || is_lone(tables, task)
    }
}

impl Mirror {
    /// Turns a plan into writes, each fenced by the state that the mirror holds.
    pub fn lower(&self, tables: &Tables, plan: &Plan, voice: Voice<'_>) -> Lowered {
        let mut lowered = Lowered::default();
        for place in &plan.places {
            self.lower_place(tables, place, voice, &mut lowered);
        }
        for eviction in &plan.evictions {
            self.lower_eviction(tables, eviction, voice, &mut lowered);
        }
        for opening in &plan.openings {
            match self.pod_of(tables, opening.task) {
                Some(pod) => {
                    // Ours is the only one that is left.
                    let patch = json!({ "spec": { "schedulingGates": [] } });
                    let intent = patched(&pod.metadata, Kind::Pod, Part::Whole, patch);
                    lowered.writes.push((opening.write, intent));
                }
                None => lowered.lost.push(opening.write),
            }
        }
        self.lower_victims_groups(tables, plan, voice, &mut lowered);
        for status in &plan.statuses {
            self.lower_status(tables, status, voice, &mut lowered);
        }
        for remark in &plan.remarks {
            self.lower_remark(tables, remark, voice, &mut lowered);
        }
        for queue in &plan.queues {
            self.lower_queue(tables, queue, &mut lowered);
        }
        // A pod that is promised a node and told why it waits is patched once: of two patches of one
        // version the second would be refused.
        let mut nominations: BTreeMap<TaskId, Intent> = BTreeMap::new();
        for nomination in &plan.nominations {
            let intent = self.lower_nomination(tables, nomination);
            nominations.extend(intent.map(|intent| (nomination.task, intent)));
        }
        for wait in &plan.waits {
            if is_held_off(&wait.reason)
                && let Some(pod) = self.pod_of(tables, wait.task)
            {
                lowered
                    .releases
                    .extend(claims_given_back(self, tables, pod));
            }
            let from = lowered.notes.len();
            self.lower_wait(tables, wait, voice, &mut lowered);
            if let Some(nomination) = nominations.remove(&wait.task) {
                let mut notes = lowered.notes[from..].iter_mut();
                if !notes.any(|note| join(note, &nomination)) {
                    lowered.notes.push(nomination);
                }
            }
        }
        lowered.notes.extend(nominations.into_values());
        self.lower_extras(tables, plan, voice, &mut lowered);
        lowered
    }

    fn lower_place(&self, tables: &Tables, place: &Place, voice: Voice<'_>, lowered: &mut Lowered) {
        let (Some(pod), Some(node)) = (
            self.pod_of(tables, place.task),
            tables.find_node(place.node),
        ) else {
            lowered.lost.push(place.write);
            return;
        };
        if voice.tells(tables, place.task) {
            lowered
                .notes
                .push(note::assigned(pod, &node.spec.name, voice));
        }
        let task = tables.task(place.task);
        let shape = &tables.shape_of(place.task).spec;
        let devices = shape.devices.as_deref();
        let ask = shape.cards.as_deref();
        let mut annotations = ask.map_or_else(TextMap::new, |ask| {
            cards::annotations(ask, &task.grants, &node.spec.name, voice.now)
        });
        if let Some(layout) = &node.spec.numa {
            annotations.extend(numa::annotations(&task.grants, layout));
        }
        lowered.binds.push(Bind {
            write: place.write,
            gang: task.gang,
            annotations,
            locks: ask.map_or_else(Vec::new, |ask| cards::locks(ask, &task.grants)),
            joins: devices.map_or_else(Vec::new, |ask| devices::joins(tables, task, ask)),
            devices: devices.map_or_else(Vec::new, |ask| {
                devices::given(ask, &node.spec.devices, &task.grants)
            }),
            volumes: task
                .volumes
                .as_ref()
                .map_or_else(Vec::new, |taken| chosen(self, pod, &shape.volumes, taken)),
            pod: ObjectKey::new(Kind::Pod, &pod.metadata.namespace, &pod.metadata.name),
            uid: pod.metadata.uid.clone(),
            node: (&*node.spec.name).into(),
        });
    }

    fn lower_eviction(
        &self,
        tables: &Tables,
        eviction: &Eviction,
        voice: Voice<'_>,
        lowered: &mut Lowered,
    ) {
        let Some(pod) = self.pod_of(tables, eviction.task) else {
            lowered.lost.push(eviction.write);
            return;
        };
        let message = note::why_evicted(eviction);
        lowered.evictions.push(Evict {
            disruption: self.disruption(pod, &message),
            ..Evict::of(pod, eviction, &message, voice.now)
        });
        lowered.notes.push(note::evicted(pod, &message, voice));
    }

    /// Victims of one group are told on it together: how many go, for whom, and why.
    fn lower_victims_groups(
        &self,
        tables: &Tables,
        plan: &Plan,
        voice: Voice<'_>,
        lowered: &mut Lowered,
    ) {
        let mut groups: BTreeMap<(GangId, GangId, &str), usize> = BTreeMap::new();
        for eviction in &plan.evictions {
            let task = tables.find_task(eviction.task);
            // Who has to leave its node is told why on the pod; it goes for nobody.
            let sides = (task.and_then(|task| task.gang), eviction.sake.gang());
            if let (Some(gang), Some(winner)) = sides {
                *groups.entry((gang, winner, eviction.cause)).or_default() += 1;
            }
        }
        for ((gang, beneficiary, cause), victims) in groups {
            let group = tables.find_gang(gang);
            let group = group.and_then(|gang| self.group_of(&gang.spec.key));
            if let (Some(group), Some(whom)) = (group, tables.find_gang(beneficiary)) {
                let told = note::evicted_group(group, victims, whom, cause, voice);
                lowered.notes.push(told);
            }
        }
    }

    /// What is told of binds of one gang that came to nothing, each with why: nothing of a pod that says so
    /// already. Pods without a group have an event of their own, others one together at their group and its
    /// owner.
    pub fn binds_refused(
        &self,
        tables: &Tables,
        refused: &[(Bind, String)],
        voice: Voice<'_>,
    ) -> Vec<Intent> {
        let mut told = Vec::new();
        let mut in_group: Option<(GangId, String)> = None;
        let mut count = 0_usize;
        for (bind, why) in refused {
            let key = &bind.pod;
            let pod = self.get::<Pod>(&key.namespace, &key.name).filter(|pod| {
                pod.metadata.uid == bind.uid
                    && !pod.is_terminating()
                    && pod.spec.node_name.is_empty()
            });
            let Some(pod) = pod else {
                continue;
            };
            let message = format!("failed to bind to node {}: {why}", bind.node);
            let Some(patch) = status::bind_refused(pod, (&message, why), voice.now) else {
                continue;
            };
            told.push(patch);
            let is_lone = bind.gang.is_none_or(|gang| {
                let gang = tables.find_gang(gang);
                gang.is_none_or(|gang| gang.spec.lone)
            });
            if is_lone || voice.events == Events::PerPod {
                told.push(note::not_placed(pod, &message, voice));
            } else if let Some(gang) = bind.gang {
                count += 1;
                in_group.get_or_insert_with(|| (gang, format!("{}: {message}", key.name)));
            }
        }
        let group = in_group.and_then(|(gang, first)| {
            let group = self.group_of(&tables.find_gang(gang)?.spec.key)?;
            Some((group, first))
        });
        if let Some((group, first)) = group {
            let message = match count {
                1 => first,
                count => format!("{count} pods of the gang come to no node; {first}"),
            };
            note::gang_not_placed(group, &message, voice, &mut told);
        }
        told
    }

    /// What a pod that waits is to say of itself, in one patch of its status: why it waits, as was
    /// last decided, and which node it is promised. `None` where it says so already, or does not
    /// wait.
    pub fn pod_says(&self, tables: &Tables, task: TaskId, now: Time) -> Option<Intent> {
        let row = tables.find_task(task)?;
        if !row.phase.is_waiting() {
            return None;
        }
        let node = row.node.filter(|_| row.phase == Phase::Pipelined);
        let promise = self.lower_nomination(tables, &Nomination { task, node });
        let said = row.said.clone();
        let said = said.filter(|reason| !status::is_anothers(reason));
        let waits = said.and_then(|reason| {
            let pod = self.pod_of(tables, task)?;
            let wait = TaskWait { task, reason };
            let message = condition::pod_message(tables, pod, &wait);
            status::waits(pod, &wait, &message, now)
        });
        let (Some(mut waits), Some(promise)) = (waits.clone(), &promise) else {
            return waits.or(promise);
        };
        join(&mut waits, promise);
        Some(waits)
    }

    fn lower_nomination(&self, tables: &Tables, nomination: &Nomination) -> Option<Intent> {
        let pod = self.pod_of(tables, nomination.task)?;
        let node = nomination
            .node
            .and_then(|node| tables.find_node(node))
            .map_or("", |node| &node.spec.name);
        if *pod.status.nominated_node_name == *node {
            return None;
        }
        let value = if node.is_empty() {
            Value::Null
        } else {
            json!(node)
        };
        let patch = json!({ "status": { "nominatedNodeName": value } });
        Some(patched(&pod.metadata, Kind::Pod, Part::Status, patch))
    }

    /// The pod of a task, if it is still the same one.
    fn pod_of(&self, tables: &Tables, task: TaskId) -> Option<&Pod> {
        let task = tables.find_task(task)?;
        let pod = self.get::<Pod>(&task.key.namespace, &task.key.name)?;
        task.uid.is(&pod.metadata.uid).then_some(&**pod)
    }
}

/// Whether a task finds no node because of devices that its claims have already.
fn is_held_off(reason: &Reason) -> bool {
    let Reason::NoFit(no_fit) = reason else {
        return false;
    };
    if let Missing::Devices { claim } = &no_fit.missing {
        return matches!(claim.why, ClaimLack::Failed { .. });
    }
    let why = DeviceLack::Elsewhere;
    let elsewhere = Refusal::Devices { why };
    no_fit
        .refusals
        .iter()
        .any(|(refusal, _)| *refusal == elsewhere)
}

/// Whether a task is a pod without a group, of which nobody else tells what happens to it.
fn is_lone(tables: &Tables, task: TaskId) -> bool {
    tables
        .find_task(task)
        .and_then(|task| tables.find_gang(task.gang?))
        .is_some_and(|gang| gang.spec.lone)
}

/// Adds what one patch of a status says to another one of the same object; whether that can be.
fn join(patch: &mut Intent, other: &Intent) -> bool {
    let is_of_one = patch.target == other.target;
    let (
        Action::Patch { part, patch, .. },
        Action::Patch {
            part: Part::Status,
            patch: other,
            ..
        },
    ) = (&mut patch.action, &other.action)
    else {
        return false;
    };
    let statuses = (patch.get_mut("status"), other.get("status"));
    let (Some(Value::Object(status)), Some(Value::Object(more))) = statuses else {
        return false;
    };
    if *part != Part::Status || !is_of_one {
        return false;
    }
    status.extend(more.clone());
    true
}

/// A merge patch of the object as it is held.
pub(crate) fn patched(
    meta: &api::meta::ObjectMeta,
    kind: Kind,
    part: Part,
    patch: Value,
) -> Intent {
    Intent {
        target: ObjectKey::new(kind, &meta.namespace, &meta.name),
        action: Action::Patch {
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            part,
            patch,
        },
    }
}
