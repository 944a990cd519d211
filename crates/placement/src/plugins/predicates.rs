//! Predicates: which nodes a task may use at all.

pub(crate) mod devices;
mod slots;
pub(crate) mod volumes;

use devices::Holdings;
use model::{
    DeviceAsk, DeviceLack, Grant, HostPort, Kind, Node, NodeId, NodeTerm, Phase, Refusal, Shape,
    TaintEffect, TaskId, UnmetClaim, VolumeNeed,
};

use crate::arguments::{Asked, Switched};
use crate::plugin::{Plugin, Room, View};
use crate::rules::Config;
use slots::Slots;

/// The row. Room itself (cpu, memory, …) is always checked, as upstream's allocate action does;
/// pod affinity and spread look at other pods and live in `coupling`.
pub const PLUGIN: Plugin = Plugin {
    name: "predicates",
    configure: Some(configure),
    suits: Some(suits),
    has_room: Some(has_room),
    hands_out: Some(hands_out),
    score: Some(volumes::score),
    fits_row: Some(fits_row),
    ..Plugin::NONE
};

/// Without points for volumes nothing is asked about them.
fn fits_row(plugin: &mut Plugin, config: &Config) {
    if !config.volumes.has_points() {
        plugin.score = None;
    }
}

/// Which checks are on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checks {
    node_affinity: Switched,
    ports: Switched,
    taints: Switched,
    volume_limits: Switched,
    volume_zone: Switched,
    volume_binding: Switched,
    devices: Switched,
    pub(crate) pod_affinity: Switched,
    pub(crate) spread: Switched,
}

impl Default for Checks {
    fn default() -> Self {
        Checks {
            node_affinity: Switched::On,
            ports: Switched::On,
            taints: Switched::On,
            volume_limits: Switched::On,
            volume_zone: Switched::On,
            volume_binding: Switched::On,
            devices: Switched::On,
            pod_affinity: Switched::On,
            spread: Switched::On,
        }
    }
}

impl Checks {
    /// Whether claims of devices are looked at, and get some.
    pub(crate) fn gives_devices(self) -> bool {
        self.devices == Switched::On
    }

    /// Without those that others ask about, too: what looks at other pods, and claims of devices.
    pub(crate) fn of_the_node_alone(self) -> Checks {
        Checks {
            devices: Switched::Off,
            pod_affinity: Switched::Off,
            spread: Switched::Off,
            ..self
        }
    }
}

fn configure(arguments: &mut Asked<'_>, config: &mut Config) {
    let mut flag = |key: &str| arguments.flag(&format!("predicate.{key}Enable"), Switched::On);
    config.predicates = Checks {
        node_affinity: flag("NodeAffinity"),
        ports: flag("NodePorts"),
        taints: flag("TaintToleration"),
        volume_limits: flag("NodeVolumeLimits"),
        volume_zone: flag("VolumeZone"),
        volume_binding: flag("VolumeBinding"),
        devices: flag("DynamicResourceAllocation"),
        pod_affinity: flag("PodAffinity"),
        spread: flag("PodTopologySpread"),
    };
    config.volumes = volumes::Setup::read(arguments);
    // What is feasible is kept per shape anyway, and a search for devices ends after so many looks.
    arguments.without_effect(&[
        "predicate.CacheEnable",
        "dynamicresources.filterTimeoutSeconds",
    ]);
}

fn suits(view: View<'_>, shape: &Shape, node: NodeId) -> Option<Refusal> {
    if view.tables.glance(node).is_open && asks_nothing(shape) {
        return None;
    }
    let checks = &view.config.predicates;
    let node = &view.tables.node(node).spec;
    let spec = &*shape.spec;
    let any = |terms: &[NodeTerm]| shape.terms.accepts(terms, &node.name, &node.labels);
    let tolerated = |taint: &model::Taint| spec.tolerations.iter().any(|t| t.covers(taint));
    if node.unschedulable {
        // Kubernetes: whoever tolerates the cordon's taint may use a cordoned node.
        let cordon = model::Taint {
            key: "node.kubernetes.io/unschedulable".into(),
            value: "".into(),
            effect: TaintEffect::NoSchedule,
        };
        if !tolerated(&cordon) {
            return Some(Refusal::Unschedulable);
        }
    }
    if checks.node_affinity == Switched::On {
        let selected = model::matches_all(&spec.node_selector, &node.labels);
        if !selected || !spec.node_affinity.as_deref().is_none_or(any) {
            return Some(Refusal::NodeAffinity);
        }
    }
    if checks.taints == Switched::On {
        let hard = |taint: &&model::Taint| taint.effect != TaintEffect::PreferNoSchedule;
        if let Some(taint) = node
            .taints
            .iter()
            .filter(hard)
            .find(|taint| !tolerated(taint))
        {
            return Some(Refusal::Taint {
                key: taint.key.clone(),
                value: taint.value.clone(),
            });
        }
    }
    for volume in &spec.volumes {
        if let VolumeNeed::Bound { zones, .. } = volume
            && checks.volume_zone == Switched::On
            && !model::is_within(zones, &node.labels)
        {
            return Some(Refusal::VolumeZone);
        }
        match volume {
            VolumeNeed::Waits { .. } if checks.volume_binding == Switched::On => {
                return Some(Refusal::VolumeWaits);
            }
            VolumeNeed::Bound {
                affinity: terms, ..
            }
            | VolumeNeed::FirstConsumer {
                topology: terms,
                ask: None,
                ..
            } => {
                if checks.volume_binding == Switched::On && !terms.as_deref().is_none_or(any) {
                    return Some(Refusal::VolumeTopology);
                }
            }
            // Which volumes are free moves with every pod.
            VolumeNeed::Alone | VolumeNeed::FirstConsumer { .. } | VolumeNeed::Waits { .. } => {}
        }
    }
    if unallocated(view, shape).is_some() {
        return Some(refusal(DeviceLack::Unallocated));
    }
    if checks.devices == Switched::On && !spec.device_nodes.iter().all(|terms| any(terms)) {
        return Some(refusal(DeviceLack::Elsewhere));
    }
    let ask = claimed(view, shape)?;
    match devices::allocate(&node.devices, Holdings::None, ask) {
        Err(DeviceLack::Taken) => Some(refusal(DeviceLack::Few)),
        Err(why) => Some(refusal(why)),
        Ok(_) => None,
    }
}

/// Whether the shape takes any node that has no cordon and no taint. It is asked for every node.
fn asks_nothing(shape: &Shape) -> bool {
    let spec = &*shape.spec;
    let of_labels = spec.node_selector.is_empty() && spec.node_affinity.is_none();
    let of_devices =
        spec.device_claims.is_empty() && spec.device_nodes.is_empty() && spec.devices.is_none();
    of_labels && of_devices && spec.volumes.is_empty()
}

fn refusal(why: DeviceLack) -> Refusal {
    Refusal::Devices { why }
}

/// What the shape claims of devices, if that is looked at.
fn claimed<'a>(view: View<'_>, shape: &'a Shape) -> Option<&'a DeviceAsk> {
    let is_on = view.config.predicates.devices == Switched::On;
    shape.spec.devices.as_deref().filter(|_| is_on)
}

fn hands_out(view: View<'_>, task: TaskId, node: NodeId) -> Option<Vec<Grant>> {
    let ask = claimed(view, view.tables.shape_of(task))?;
    devices::choose(view, ask, node, Room::Now).ok()
}

/// A claim of devices that keeps every task of the shape waiting. A pod that is bound before its
/// devices are allocated holds its node and never starts: no kubelet allocates them.
pub(crate) fn unallocated<'a>(view: View<'a>, shape: &'a Shape) -> Option<&'a UnmetClaim> {
    match view.config.predicates.devices {
        Switched::On => shape.spec.device_claims.first(),
        Switched::Off => None,
    }
}

fn has_room(view: View<'_>, shape: &Shape, id: NodeId, room: Room) -> Option<Refusal> {
    let checks = &view.config.predicates;
    if checks.ports == Switched::On && !shape.spec.ports.is_empty() {
        let taken = |port: &HostPort| ports_at(view, id, room).any(|other| other.conflicts(port));
        if shape.spec.ports.iter().any(taken) {
            return Some(Refusal::Ports);
        }
    }
    if let Some(refusal) = lacks_volumes(view, shape, id, room) {
        return Some(refusal);
    }
    let ask = claimed(view, shape)?;
    devices::choose(view, ask, id, room).err().map(refusal)
}

/// Why the node cannot have the shape's volumes: it bears no more of their drivers, or claims get none there.
fn lacks_volumes(view: View<'_>, shape: &Shape, id: NodeId, room: Room) -> Option<Refusal> {
    let (checks, needs) = (&view.config.predicates, &shape.spec.volumes);
    if needs.is_empty() {
        return None;
    }
    let found = volumes::choose(view, shape, id);
    let chosen = found.as_ref().ok().and_then(Option::as_deref);
    let limits = view.tables.node(id).spec.volume_limits.iter();
    for (driver, limit) in limits.filter(|_| checks.volume_limits == Switched::On) {
        let wanted = Slots::of(driver, model::attached(needs, chosen.unwrap_or_default()));
        let taken = || Slots::at(view, id, room, driver);
        if !wanted.is_empty() && wanted.exceed(&taken(), *limit) {
            return Some(Refusal::VolumeLimit);
        }
    }
    found
        .err()
        .filter(|_| checks.volume_binding == Switched::On)
}

/// The tasks that will be on the node once those on their way out are gone and the promised ones in.
fn later_on(view: View<'_>, id: NodeId) -> impl Iterator<Item = TaskId> {
    let node = view.tables.node(id);
    let stays = move |task: &&TaskId| view.tables.task(**task).phase != Phase::Releasing;
    node.tasks
        .iter()
        .filter(stays)
        .chain(&node.promised)
        .copied()
}

/// Host ports that are taken on the node. What is promised there is taken now, too.
fn ports_at(view: View<'_>, id: NodeId, room: Room) -> Box<dyn Iterator<Item = &HostPort> + '_> {
    match room {
        Room::Now => {
            let node = view.tables.node(id);
            let promised = node.promised.iter().copied();
            let promised = promised.flat_map(move |task| &view.tables.shape_of(task).spec.ports);
            Box::new(node.ports.keys().chain(promised))
        }
        Room::Later => {
            let tasks = later_on(view, id);
            Box::new(tasks.flat_map(move |task| &view.tables.shape_of(task).spec.ports))
        }
    }
}

/// How many tasks of the shape have room on the node, by amounts.
pub(crate) fn places_on(node: &Node, shape: &Shape, room: Room) -> u64 {
    times(shape, |kind| match room {
        Room::Now => node.free(kind),
        Room::Later => node.free_later(kind),
    })
}

/// How often the shape's requests go into what is left of each resource.
pub(crate) fn times(shape: &Shape, left: impl Fn(Kind) -> i64) -> u64 {
    let wanted = shape.held.entries().filter(|(_, wanted)| *wanted > 0);
    let times = wanted.map(|(kind, wanted)| u64::try_from(left(kind) / wanted).unwrap_or(0));
    // Every task takes a pod slot: there is always something that is wanted.
    times.min().unwrap_or(0)
}

/// Whether the node has the room that the shape requests, now or once released room is counted.
pub(crate) fn lacks(view: View<'_>, shape: &Shape, node: NodeId, room: Room) -> Option<Kind> {
    let amounts = shape.held.amounts().iter().enumerate();
    let glance = view.tables.glance(node);
    let row = || view.tables.node(node);
    for (at, wanted) in amounts.filter(|(_, wanted)| **wanted > 0) {
        let kind = Kind(u16::try_from(at).expect("kinds fit in 16 bits"));
        let left = match room {
            Room::Now => glance.free(kind).unwrap_or_else(|| row().free(kind)),
            Room::Later => row().free_later(kind),
        };
        if *wanted > left {
            return Some(kind);
        }
    }
    None
}
