//! Volcano's Job: phases, pods, claims, plugins and its PodGroup.
//!
//! One step looks at everything that the job has, writes the status that follows from it, and only
//! then acts on it: what is to be deleted has left the counts before it is deleted, so a pod that
//! is missing without our doing is seen as evicted, after a restart of ours, too.
//! Preconditions (claims, classes, queue, names of others) come before the first side effect.

use std::sync::Arc;

use api::core::{EndpointSlice, PersistentVolumeClaim, Pod, Service};
use api::intent::{Intent, ObjectKey, Part};
use api::kind::Kind;
use api::volcano::{Command, DEFAULT_QUEUE, JOB_FORWARDING, Job, JobStatus, PodGroup, Queue};
use mirror::{Change, Index, Mirror, Object};
use serde_json::json;

mod circle;
mod counted;
mod delay;
mod dependants;
mod gate;
mod group;
mod kept;
mod marked;
mod obstacle;
mod phase;
mod plugins;
mod pods;
mod policy;
mod ranges;
mod restart;
mod roster;
mod status;
mod upkeep;
mod volumes;

pub(crate) use group::{add_times, pod_requests};
pub use obstacle::blocked_reasons;

use crate::{Controller, Inputs, Outcome, Step, command, write};
use dependants::Dependants;
use gate::Gate;
use obstacle::{Obstacle, Word};
use plugins::Equipment;
use restart::is_killing;
use roster::Roster;

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "vcjob",
    component: "vc-controller-manager",
    tells_refused: &[],
    watches: &[
        Kind::Command,
        Kind::ConfigMap,
        Kind::EndpointSlice,
        Kind::NetworkPolicy,
        Kind::Node,
        Kind::PersistentVolume,
        Kind::PersistentVolumeClaim,
        Kind::Pod,
        Kind::PodGroup,
        Kind::PriorityClass,
        Kind::Queue,
        Kind::Secret,
        Kind::Service,
        Kind::StorageClass,
        Kind::VcJob,
    ],
    keys,
    step,
};

/// Everything that one step looks at.
struct View<'a> {
    inputs: &'a Inputs<'a>,
    job: &'a Job,
    dependants: Dependants<'a>,
    roster: Roster,
    group: Option<&'a PodGroup>,
    /// Somebody else's PodGroup bears the name.
    group_obstacle: Option<Obstacle>,
    commands: Vec<Arc<Command>>,
    /// What the plugins come to, or why they cannot work.
    equipment: Result<Equipment<'a>, String>,
    /// What is there under the names of what the plugins need.
    held: Vec<Option<&'a Object>>,
    /// What pods wait for, once the Service is there.
    gate: Gate,
}

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    match change.kind() {
        Kind::VcJob => keys.push((*change.key).clone()),
        Kind::Command => {
            let sides = [change.before::<Command>(), change.after::<Command>()];
            let targets = sides.into_iter().flatten();
            let targets = targets.filter_map(|side| side.addressee());
            keys.extend(targets.filter(|target| target.kind == Kind::VcJob));
        }
        Kind::StorageClass => keys.extend(volumes::waiting_for_class(mirror)),
        Kind::PersistentVolume if volumes::makes_class(mirror, change) => {
            keys.extend(volumes::waiting_for_class(mirror));
        }
        // Nodes are counted when a job is warned, which is nothing that changes with them. Queues are waited for
        // by name, by those who lack them and those whose writes were refused for them.
        Kind::Node | Kind::PersistentVolume | Kind::Queue => {}
        Kind::PriorityClass => keys.extend(group::of_priority(mirror, change)),
        Kind::PersistentVolumeClaim => {
            crate::keys::of_owner(change, Kind::VcJob, keys);
            let sides = [change.before(), change.after::<PersistentVolumeClaim>()];
            let [before, after] =
                sides.map(|side| side.map(|claim| claim.metadata.deletion_timestamp.is_some()));
            // Those who name it hear of its coming, of its deletion, and of its end.
            if before != after || change.is_recreation() {
                let (namespace, name) = (&change.key.namespace, &change.key.name);
                let jobs = mirror.keys(Index::VcJobClaim, namespace, name);
                keys.extend(jobs);
            }
        }
        Kind::Pod => {
            let sides = [change.before::<Pod>(), change.after::<Pod>()];
            let [before, after] = sides.map(|side| side.map(|pod| roster::facts(pod)));
            if before != after || change.is_recreation() {
                crate::keys::of_owner(change, Kind::VcJob, keys);
            }
            volumes::given_up(mirror, change, keys);
            keys.extend(pods::freed(mirror, change));
        }
        Kind::PodGroup => {
            let sides = [change.before::<PodGroup>(), change.after::<PodGroup>()];
            let [before, after] = sides.map(|side| side.map(|group| group::facts(group)));
            if before != after || change.is_recreation() {
                crate::keys::of_owner(change, Kind::VcJob, keys);
            }
        }
        Kind::EndpointSlice => keys.extend(of_slice(mirror, change)),
        _ => crate::keys::of_owner(change, Kind::VcJob, keys),
    }
}

/// A gate may wait for the first slice of a job's Service.
fn of_slice(mirror: &Mirror, change: &Change) -> Option<ObjectKey> {
    if change.before.is_some() {
        return None;
    }
    let namespace = &change.key.namespace;
    let slice = change.after::<EndpointSlice>()?;
    let service = slice.metadata.controller()?;
    let service = mirror.get::<Service>(namespace, &service.name)?;
    let owner = service.metadata.controller()?;
    let is_job = Kind::find(&owner.api_version, &owner.kind) == Some(Kind::VcJob);
    is_job.then(|| ObjectKey::new(Kind::VcJob, namespace, &owner.name))
}

pub(crate) fn key_of(job: &Job) -> ObjectKey {
    ObjectKey::new(Kind::VcJob, &job.metadata.namespace, &job.metadata.name)
}

fn step(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    let Some(job) = inputs.mirror.get::<Job>(namespace, name) else {
        return command::clear(inputs);
    };
    // Its dependants are the garbage collector's.
    if job.metadata.deletion_timestamp.is_some() {
        return Step::idle();
    }
    let view = View::read(inputs, job);
    if let Some(first) = command::before_strays(inputs, &view.commands) {
        return first;
    }
    if let Some(mark) = view.forwarding() {
        return Step::write(vec![mark]);
    }
    if let Some(question) = gate::question(&view) {
        return Step::inquire(vec![question]);
    }
    let obstacle = view.obstacle();
    let next = status::next(&view, obstacle.as_ref());
    let is_active = !is_killing(next.status.state.phase) && !next.is_moved;
    let obstructs = |obstacle: &Obstacle| !obstacle.word.lets_go_on();
    let goes_on = is_active && !obstacle.as_ref().is_some_and(obstructs);
    let upkeep = match goes_on {
        true => upkeep::intents(&view),
        false => Vec::new(),
    };
    let held = status::held(&view, &next, obstacle.as_ref(), &upkeep);
    let is_told = held.is_some() || job.status == next.status;
    let rest = status::resting(&view, &next, obstacle.as_ref()).filter(|_| !is_told);
    let mut step = Step::idle().or_wake_at(next.wake_at);
    step = step.or_wake_at(held).or_wake_at(rest);
    step.rests = rest.is_some();
    let difference = match is_told || step.rests {
        true => None,
        false => write::merge_difference(&json!(job.status), &json!(next.status)),
    };
    // What rests has not been told. Why something cannot be done is told with the next try: told by itself it would
    // count as done, and the try as the first one.
    let is_told_of_all =
        difference.is_none() || status::differ_in_why_alone(&job.status, &next.status);
    let is_settled = is_told_of_all && !step.rests;
    if let Some(patch) = difference {
        let patch = write::patch_status(Kind::VcJob, &job.metadata, patch);
        step.intents.push(patch);
        step.intents.extend(next.notes);
    }
    step.intents.extend(view.spent_commands());
    if is_settled {
        step.intents.extend(view.removals());
    }
    step.intents.extend(upkeep);
    if goes_on {
        step = step.or_wake_at(view.gate.wake_at());
    }
    if let Some(obstacle) = obstacle.filter(|_| is_active) {
        step.outcome = Outcome::Blocked {
            reason: obstacle.word.reason().into(),
            waits_for: obstacle.waits_for,
        };
    }
    step
}

impl<'a> View<'a> {
    fn read(inputs: &'a Inputs<'a>, job: &'a Job) -> View<'a> {
        let commands = command::of(inputs.mirror, inputs.key);
        let dependants = Dependants::of(inputs.mirror, job);
        let (group, group_obstacle) = match group::of(&dependants, job) {
            Ok(group) => (group, None),
            Err(obstacle) => (None, Some(obstacle)),
        };
        let equipment = plugins::equipment(job, inputs.settings);
        let children = equipment.iter().flat_map(|it| &it.children);
        let namespace = &job.metadata.namespace;
        let held = children.map(|it| dependants.find(it.kind, namespace, &it.name));
        let held = held.collect();
        let mut view = View {
            inputs,
            job,
            roster: Roster::read(&dependants, job, &job.status),
            dependants,
            group,
            group_obstacle,
            commands,
            equipment,
            held,
            gate: Gate::default(),
        };
        view.gate = Gate::read(&view);
        view
    }

    /// Whether its queue reaches into other clusters.
    fn is_forwarded(&self) -> bool {
        let queue = self.inputs.mirror.get::<Queue>("", self.queue());
        queue.is_some_and(|queue| !queue.spec.extend_clusters.is_empty())
    }

    /// Marks a job whose queue reaches into other clusters, for whoever forwards it there. Its pods are marked, too.
    fn forwarding(&self) -> Option<Intent> {
        let meta = &self.job.metadata;
        let is_marked = meta.annotations.contains_key(JOB_FORWARDING);
        let is_due = !is_marked && self.is_forwarded();
        let patch = json!({ "metadata": { "annotations": { JOB_FORWARDING: "true" } } });
        is_due.then(|| write::patch(Kind::VcJob, meta, Part::Whole, patch))
    }

    /// What the plugins need beside pods, each with what is there under its name.
    fn children(&self) -> impl Iterator<Item = (&plugins::Child, Option<&'a Object>)> {
        let children = self.equipment.iter().flat_map(|it| &it.children);
        children.zip(self.held.iter().copied())
    }

    /// Whether the job has fewer pods than it is to have.
    fn lacks_pods(&self) -> bool {
        let made = i64::try_from(self.roster.members.len()).unwrap_or(i64::MAX);
        made < self.job.spec.replicas()
    }

    /// The name of the job's queue.
    fn queue(&self) -> &'a str {
        match &*self.job.spec.queue {
            "" => DEFAULT_QUEUE,
            queue => queue,
        }
    }

    /// Why nothing may be created for the job now.
    fn obstacle(&self) -> Option<Obstacle> {
        let (mirror, job) = (self.inputs.mirror, self.job);
        if is_killing(job.status.state.phase) {
            return None;
        }
        if let Some(obstacle) = volumes::obstacle(mirror, job) {
            return Some(obstacle);
        }
        if let Some(obstacle) = &self.group_obstacle {
            return Some(obstacle.clone());
        }
        let queue = self.queue();
        if mirror.get::<Queue>("", queue).is_none() {
            return Some(Obstacle {
                word: Word::QueueNotFound,
                message: format!("queue {queue} is not found"),
                waits_for: vec![ObjectKey::new(Kind::Queue, "", queue)],
            });
        }
        let plugin = upkeep::plugin_obstacle(self);
        let gate = || self.gate.obstacle();
        let taken = || pods::taken(self);
        let circle = || circle::obstacle(self);
        plugin.or_else(gate).or_else(taken).or_else(circle)
    }

    /// Commands that have been carried out, or mean nothing.
    fn spent_commands(&self) -> Vec<Intent> {
        let turn = status::turn(self.job, &self.commands);
        let spent = turn.spent.into_iter();
        spent
            .flat_map(|command| {
                let note = status::without_effect(self, command);
                let gone = command::spend(command);
                note.into_iter().chain([gone])
            })
            .collect()
    }

    /// Deletes that the status already tells of.
    fn removals(&self) -> Vec<Intent> {
        let mut intents: Vec<Intent> = self
            .roster
            .victims()
            .take(self.inputs.settings.writes_per_step_max)
            .map(|member| write::delete(Kind::Pod, &member.pod.metadata))
            .collect();
        let phase = self.job.status.state.phase;
        // A finalizer may hold it for long: deleted again it would go no sooner.
        if let Some(group) = self.group
            && group.metadata.deletion_timestamp.is_none()
            && (is_killing(phase) || group::is_former(self.job, group))
        {
            intents.push(write::delete(Kind::PodGroup, &group.metadata));
        }
        if phase.is_over() {
            intents.extend(upkeep::clear(self));
        }
        intents
    }

    /// Lists in the job's status its plugins and its claims, those that it only names, too.
    fn hold(&self, status: &mut JobStatus) {
        let held = &mut status.controlled_resources;
        let mut hold = |key: String, name: &str| {
            if held.get(&key).is_none_or(|known| **known != *name) {
                held.insert(key.into(), name.into());
            }
        };
        for (name, _) in self.job.spec.plugins() {
            hold(format!("plugin-{name}"), name);
        }
        for name in volumes::claims(self.job) {
            hold(format!("volume-pvc-{name}"), &name);
        }
    }
}
