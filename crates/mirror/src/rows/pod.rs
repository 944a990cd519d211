//! Pods → tasks.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::core::{
    Pod, PodPhase, ResourceList, image_name, limits_held, requests_held, stand_ins, system_priority,
};
use api::duration::Duration;
use api::meta::ObjectMeta;
use api::volcano::{
    COOLDOWN_TIME, PREEMPTABLE, QUEUE_GATE, REVOCABLE_ZONE, TASK_SPEC, group_of_pod,
};
use model::{
    GangPhase, GangSpec, GangStatus, Gate, Grant, Key, Kind, Phase, ShapeSpec, Tables, TaskSpec,
    Time, Vector,
};

use super::amounts::{amount, asked, quota_limits};
use super::devices::Wants;
use super::native::native_gang;
use super::{Rows, constraints, created, devices, native, strategy, volume};
use crate::held::Mirror;

/// The annotation by which a pod overrides its priority among the tasks of its gang.
const TASK_PRIORITY: &str = "volcano.sh/task-priority";

impl Rows {
    /// Whether this pod is placed by itself when it names no group.
    fn is_lone(&self, pod: &Pod) -> bool {
        self.lone_scheduler_names.contains(&pod.spec.scheduler_name) || self.is_agents(pod)
    }

    /// Whether this pod is placed by itself whatever it names, and in no queue.
    fn is_agents(&self, pod: &Pod) -> bool {
        let name = &pod.spec.scheduler_name;
        self.agent_scheduler_names.contains(name) && !self.scheduler_names.contains(name)
    }

    /// The gate that the pod's queue opens.
    fn gate(&self, pod: &Pod) -> Gate {
        let asks = pod.metadata.annotations.get(QUEUE_GATE);
        if !self.has_queue_gates || asks.is_none_or(|asks| &**asks != "true") {
            return Gate::None;
        }
        match &pod.spec.scheduling_gates[..] {
            [] => Gate::Opened,
            [gate] if &*gate.name == QUEUE_GATE => Gate::Closed,
            // Others hold it back, too.
            _ => Gate::None,
        }
    }

    /// The gang of a pod that is placed by itself: let in already, since there is nobody to let it in.
    fn lone_gang_spec(&self, pod: &Pod) -> GangSpec {
        let meta = &pod.metadata;
        GangSpec {
            key: lone_gang(&meta.namespace, &meta.name),
            uid: (&*meta.uid).into(),
            queue: match self.is_agents(pod) {
                true => "".into(),
                false => api::volcano::DEFAULT_QUEUE.into(),
            },
            min_member: 1,
            priority_class: Some(&*pod.spec.priority_class_name)
                .filter(|name| !name.is_empty())
                .map(Into::into),
            created: created(meta),
            status: GangStatus {
                phase: GangPhase::Inqueue,
                ..GangStatus::default()
            },
            lone: true,
            ..GangSpec::default()
        }
    }

    /// Ours are tasks of their gang; pods of others, and ours without a gang, only hold room, so
    /// they have no row before they are bound and, without a gang, after they are over.
    pub(super) fn put_pod(&mut self, mirror: &Mirror, pod: &Pod, tables: &mut Tables) {
        let meta = &pod.metadata;
        let key = Key::new(self.words.namespace(&meta.namespace), meta.name.text());
        let takes_lone = self.reach.owns(meta) && self.is_lone(pod);
        let gang = self.gang_of(pod);
        let is_lone = takes_lone && gang.as_ref() == Some(&lone_gang(&meta.namespace, &meta.name));
        let holds_room = !pod.spec.node_name.is_empty() && !pod.is_finished();
        if !holds_room && (gang.is_none() || is_lone && pod.is_finished()) {
            tables.remove_task(&key);
            tables.remove_gang(&lone_gang(&meta.namespace, &meta.name));
            return;
        }
        if is_lone {
            let spec = self.lone_gang_spec(pod);
            tables.put_gang(spec);
        } else if takes_lone {
            // It has joined a group.
            tables.remove_gang(&lone_gang(&meta.namespace, &meta.name));
        }
        let wants = self.wants(mirror, pod, tables);
        let mut claims = volume::unplaced(mirror, pod);
        let sole = volume::sole(mirror, pod);
        claims.extend(wants.tied.iter().cloned());
        let manners = native::manners(mirror, pod);
        let mut charges = match self.counted {
            Some(counted) if gang.is_some() => {
                let asks = (&mut self.judge, &mut self.rounding);
                devices::charges(mirror, asks, pod, counted, tables)
            }
            _ => Vec::new(),
        };
        let shape = self.shape(mirror, pod, (wants, &sole), tables);
        let grants = match holds_room {
            true => self.held_by(mirror, pod),
            false => Vec::new(),
        };
        if let Some(ask) = shape.cards.as_deref().filter(|_| gang.is_some()) {
            let held = holds_room.then_some(&*grants);
            charges.extend((self.cards).charge(pod, ask, (held, &self.models), tables));
        }
        let spec = TaskSpec {
            key,
            uid: (&*meta.uid).into(),
            gang,
            role: self
                .words
                .role(meta.annotations.get(TASK_SPEC).map_or("", |role| role)),
            index: trailing_number(&meta.name),
            shape,
            sole,
            charges,
            claims,
            labels: self.words.labels(&meta.labels),
            priority: priority(pod),
            pod_priority: Some(own_priority(pod)),
            critical: is_critical(pod),
            of_node: pod.is_of_node(),
            phase: phase(pod),
            node: Some(&*pod.spec.node_name)
                .filter(|node| !node.is_empty())
                .map(Into::into),
            grants,
            nominated: Some(&*pod.status.nominated_node_name)
                .filter(|node| !node.is_empty())
                .map(Into::into),
            gated: !pod.spec.scheduling_gates.is_empty(),
            gate: self.gate(pod),
            // Upstream: a pod that says nothing may be evicted. Those of others may not.
            preemptable: preemptable(meta).unwrap_or(true) && (takes_lone || self.is_ours(pod)),
            cooldown_ms: cooldown_ms(meta),
            scheduled: scheduled(pod),
            preempts: pod.spec.preemption_policy.as_deref() != Some("Never") && !manners.humble,
            created: created(meta),
            started: pod
                .status
                .start_time
                .map(|at| Time::from_micros(at.micros())),
        };
        tables.put_task(spec);
    }

    /// The gang whose task a pod is, if it is ours to place; one of others that is on a node counts in
    /// what its gang holds.
    pub(super) fn gang_of(&self, pod: &Pod) -> Option<Key> {
        let meta = &pod.metadata;
        let is_in_reach = self.reach.owns(meta);
        let is_ours = self.is_ours(pod);
        let is_placed = !pod.spec.node_name.is_empty();
        let group = group_of_pod(meta);
        let takes_lone = is_in_reach && self.is_lone(pod);
        // A pod's place is with whoever schedules groups; one that places single pods looks at none.
        let native = pod.native_group().filter(|_| self.has_native);
        match (group, native) {
            (Some(name), _) if is_ours => Some(Key::new(&*meta.namespace, name)),
            (None, Some(name)) if (is_ours || takes_lone) && !self.is_agents(pod) => {
                Some(native_gang(&meta.namespace, name))
            }
            (Some(name), _) if is_placed && !takes_lone => Some(Key::new(&*meta.namespace, name)),
            _ => takes_lone.then(|| lone_gang(&meta.namespace, &meta.name)),
        }
    }

    /// What a pod wants of devices: nothing more once it is on a node.
    fn wants(&mut self, mirror: &Mirror, pod: &Pod, tables: &mut Tables) -> Wants {
        let resources = match self.backing.is_off {
            true => BTreeSet::new(),
            false => devices::resources(mirror, pod),
        };
        // Who is on a node uses them, too.
        resources.iter().for_each(|name| self.backing.ask(name));
        let wants_nothing = pod.spec.resource_claims.is_empty() && resources.is_empty();
        let is_off = !self.features.device_claims;
        if is_off || wants_nothing || !pod.spec.node_name.is_empty() {
            return Wants::default();
        }
        let mut judge = std::mem::take(&mut self.judge);
        let mut wants = Wants::of(mirror, &mut judge, pod);
        if !resources.is_empty() {
            let kinds = resources.iter().map(|name| (*name, tables.kind(name)));
            wants.add_resources(mirror, &mut judge, pod, &kinds.collect());
        }
        self.judge = judge;
        wants
    }

    /// Cards, devices and units that a pod has of its node's.
    fn held_by(&self, mirror: &Mirror, pod: &Pod) -> Vec<Grant> {
        let mut grants = self.cards.held_by(pod);
        grants.extend(devices::grants(mirror, pod));
        grants.extend(self.units_of(mirror, pod));
        grants
    }

    fn shape(
        &self,
        mirror: &Mirror,
        pod: &Pod,
        (wants, sole): (Wants, &[Arc<str>]),
        tables: &mut Tables,
    ) -> ShapeSpec {
        let mut requests = requests_held(pod);
        // The tables add the pod's own slot.
        requests.remove("pods");
        self.cards.leave_out(&mut requests);
        let requests = asked(&requests, tables);
        let mut shape = ShapeSpec {
            strategy: strategy::strategy(&pod.metadata, &requests, tables),
            requests,
            volumes: volume::needs(mirror, pod, sole),
            revocable: is_revocable(&pod.metadata),
            devices: wants.ask,
            device_nodes: wants.nodes,
            device_claims: wants.unmet,
            cards: self.cards.of_pod(pod),
            numa: self.numa_ask(pod),
            stand_ins: Some(stand_ins(pod)),
            ..ShapeSpec::default()
        };
        constraints::constrain(&mut shape, mirror, pod, self.features);
        if self.has_images {
            shape.images = images(pod);
        }
        if self.has_limits {
            let limits = limits_held(pod);
            shape.burst = burst(&limits, &shape.requests);
            shape.limits = quota_limits(&limits, tables);
        }
        shape
    }
}

/// What stands before the name of a pod in that of the gang that it is alone.
pub(super) const LONE: &str = "pod:";

/// The key of the gang that is one pod; no PodGroup can have such a name.
pub(super) fn lone_gang(namespace: &str, pod: &str) -> Key {
    Key::new(namespace, format!("{LONE}{pod}"))
}

/// Whether nothing that a task's row is made of differs.
pub(super) fn is_same_task(before: &Pod, after: &Pod) -> bool {
    before.spec == after.spec
        && before.status.phase == after.status.phase
        && before.status.start_time == after.status.start_time
        && scheduled(before) == scheduled(after)
        && before.status.nominated_node_name == after.status.nominated_node_name
        && before.status.resource_claim_statuses == after.status.resource_claim_statuses
        && before.status.sizes == after.status.sizes
        && before.status.is_resize_infeasible() == after.status.is_resize_infeasible()
        && before.metadata.labels == after.metadata.labels
        && before.metadata.annotations == after.metadata.annotations
        && before.is_terminating() == after.is_terminating()
        && before.is_of_node() == after.is_of_node()
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

/// By which names the images of the pod's containers and volumes are looked up. Who asks for one twice
/// gains twice.
fn images(pod: &Pod) -> Vec<Arc<str>> {
    let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    let volumes = pod.spec.volumes.iter().filter_map(|it| it.image.as_ref());
    let images = containers.map(|it| &it.image);
    let images = images.chain(volumes.map(|it| &it.reference));
    let mut images: Vec<Arc<str>> = images.map(|image| image_name(image)).collect();
    images.sort_unstable();
    images
}

/// How much more cpu and memory its limits let the pod use. Without a limit, or with one below what it
/// requests, that is nothing.
fn burst(limits: &ResourceList, requests: &Vector) -> [i64; 2] {
    [("cpu", Kind::CPU), ("memory", Kind::MEMORY)].map(|(name, kind)| {
        let limit = limits.get(name).map_or(0, |limit| amount(kind, limit));
        limit.saturating_sub(requests.get(kind)).max(0)
    })
}

/// Whether the pod bears nodes that are lent out only at times: it says `*`, or that it may be evicted.
/// Upstream knows no other word for a zone.
fn is_revocable(meta: &ObjectMeta) -> bool {
    let zone = meta.annotations.get(REVOCABLE_ZONE);
    let zone = zone.or_else(|| meta.labels.get(REVOCABLE_ZONE));
    match zone {
        Some(zone) => &**zone == "*",
        None => preemptable(meta) == Some(true),
    }
}

/// When the pod got its node.
fn scheduled(pod: &Pod) -> Option<Time> {
    let condition = pod.status.condition("PodScheduled");
    condition.filter(|it| &*it.status == "True")?;
    let at = pod.status.since("PodScheduled")?;
    Some(Time::from_micros(at.micros()))
}

/// How long its label, or else its annotation, keeps the pod from being evicted; a text that is no duration
/// keeps nothing.
fn cooldown_ms(meta: &ObjectMeta) -> i64 {
    let text = meta
        .labels
        .get(COOLDOWN_TIME)
        .or_else(|| meta.annotations.get(COOLDOWN_TIME));
    let time = text.and_then(|text| Duration::parse(text).ok());
    time.map_or(0, |time| time.milliseconds().max(0))
}

fn priority(pod: &Pod) -> i32 {
    pod.metadata
        .annotations
        .get(TASK_PRIORITY)
        .and_then(|text| text.parse().ok())
        .unwrap_or(own_priority(pod))
}

/// The same whatever the annotation says.
fn own_priority(pod: &Pod) -> i32 {
    pod.spec.priority.unwrap_or(1)
}

/// Whether the pod's class is one of Kubernetes' own.
fn is_critical(pod: &Pod) -> bool {
    system_priority(&pod.spec.priority_class_name).is_some()
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

/// The last part of a pod's name, if that is a number, else 0: a drawn ending that ends in digits is none.
fn trailing_number(name: &str) -> u32 {
    let part = name.rsplit('-').next();
    part.and_then(|part| part.parse().ok()).unwrap_or(0)
}
