//! NUMA nodes: what an exporter tells of a node, and what pods want and have of its units.
//!
//! Source: `specs/volcano.md`, sections 1.8, 1.14 and A.6. What was told of a pod's units takes the place
//! of what was decided for it; until then the decision stands, as the pod's annotation repeats it. So
//! nobody else is given what a pod on its way will have. What cannot be understood, or is beyond all
//! bounds, is told as such by the refusal of the node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::core::{Container, Node, Pod, ResourceList};
use api::quantity::Quantity;
use api::volcano::{
    CPU_MANAGER_POLICY, CPU_POLICY_STATIC, NUMA_TOPOLOGY_POLICY, NUMA_UNITS, NVIDIA_GPU,
    Numatopology, NumatopologySpec, PodAllocation, TOPOLOGY_MANAGER_POLICY,
};
use model::{
    Grant, NUMA_NODES_MAX, NumaAsk, NumaLayout, NumaPart, NumaPolicy, NumaResource, Tables,
    UNITS_MAX, Units,
};

use super::Rows;
use crate::held::Mirror;

/// The resources whose units have places.
const RESOURCES: [&str; 2] = [NumaLayout::CPU, NVIDIA_GPU];

impl Rows {
    /// What is told of NUMA nodes is read, and what pods want and have of them. Without this nodes have
    /// none.
    #[must_use]
    pub fn with_numa(mut self) -> Rows {
        self.has_numa = true;
        self
    }

    /// How the node is laid out, if somebody tells.
    pub(super) fn layout_of(&self, mirror: &Mirror, node: &str) -> Option<Arc<NumaLayout>> {
        let told = mirror.get::<Numatopology>("", node);
        let told = told.filter(|_| self.has_numa)?;
        Some(Arc::new(layout(&told.spec)))
    }

    /// What is told of a node has changed: the node and what its pods hold are looked at anew.
    pub(super) fn feed_numa(&mut self, mirror: &Mirror, name: &str, tables: &mut Tables) {
        if !self.has_numa {
            return;
        }
        if let Some(node) = mirror.get::<Node>("", name) {
            let layout = self.layout_of(mirror, name);
            self.put_node_laid_out(mirror, node, layout, tables);
        }
        for pod in mirror.pods_on(name) {
            if !pod.is_finished() {
                self.put_pod(mirror, pod, tables);
            }
        }
    }

    /// What the pod wants of NUMA nodes, if anything.
    pub(super) fn numa_ask(&self, pod: &Pod) -> Option<Arc<NumaAsk>> {
        if !self.has_numa || !is_guaranteed(pod) {
            return None;
        }
        let policy = pod.metadata.annotations.get(NUMA_TOPOLOGY_POLICY);
        let policy = policy.filter(|policy| ***policy != *NumaPolicy::None.word());
        let ask = NumaAsk {
            policy: policy.map_or("", |policy| policy).into(),
            parts: pod.spec.containers.iter().filter_map(part).collect(),
        };
        let wants = !ask.policy.is_empty() || !ask.parts.is_empty();
        wants.then(|| Arc::new(ask))
    }

    /// What a bound pod has of its node's units: what its node tells, else what was decided.
    pub(super) fn units_of(&self, mirror: &Mirror, pod: &Pod) -> Vec<Grant> {
        if !self.has_numa {
            return Vec::new();
        }
        let told = mirror.get::<Numatopology>("", &pod.spec.node_name);
        let told = told.and_then(|it| told_of(&it.spec, pod));
        let told = told.filter(|units| units.values().any(|it| !it.is_empty()));
        let units = told.or_else(|| decided(pod, self.numa_ask(pod)?.as_ref()));
        let units = units.unwrap_or_default().into_iter();
        let units = units.filter(|(_, units)| !units.is_empty());
        units
            .map(|(resource, units)| Grant {
                card: resource.into(),
                units,
                ..Grant::default()
            })
            .collect()
    }
}

/// Every container has limits of cpu and memory and requests as much (Kubernetes: *Pod Quality of
/// Service Classes*).
fn is_guaranteed(pod: &Pod) -> bool {
    match &*pod.status.qos_class {
        "" => {}
        class => return class == "Guaranteed",
    }
    let is_fixed = |container: &Container| {
        let resources = &container.resources;
        ["cpu", "memory"].into_iter().all(|name| {
            let limit = resources.limits.get(name);
            let request = resources.requests.get(name).or(limit);
            limit.is_some_and(|it| it.milli_value() > 0)
                && request.map(Quantity::milli_value) == limit.map(Quantity::milli_value)
        })
    };
    let spec = &pod.spec;
    let mut all = spec.containers.iter().chain(&spec.init_containers);
    all.all(is_fixed)
}

/// What one container has for its own: whole cpus if it requests no parts of any, and GPUs.
fn part(container: &Container) -> Option<NumaPart> {
    let (requests, limits) = (&container.resources.requests, &container.resources.limits);
    let amount = |name: &str| {
        let of = |list: &ResourceList| list.get(name).map(Quantity::milli_value);
        of(requests).or_else(|| of(limits))
    };
    let units = RESOURCES.iter().filter_map(|name| {
        let milli = amount(name).filter(|milli| *milli > 0 && milli % 1_000 == 0)?;
        let count = u32::try_from(milli / 1_000).map_or(UNITS_MAX, |count| count.min(UNITS_MAX));
        Some(((*name).into(), count))
    });
    let part = NumaPart {
        container: (&*container.name).into(),
        units: units.collect(),
    };
    (!part.units.is_empty()).then_some(part)
}

/// What is told of the pod, by resource; nothing if it is not told of, or cannot be understood.
fn told_of(spec: &NumatopologySpec, pod: &Pod) -> Option<BTreeMap<&'static str, Units>> {
    let meta = &pod.metadata;
    let is_it = |told: &&PodAllocation| {
        let by_uid = !told.uid.is_empty() && told.uid == meta.uid;
        by_uid
            || !told.name.is_empty() && meta.name == told.name && told.namespace == meta.namespace
    };
    let told = spec.pod_allocations.iter().find(is_it)?;
    let units = RESOURCES.map(|name| Some((name, given(told, name)?)));
    units.into_iter().collect()
}

/// What all containers of a pod were given of a resource, if it can be understood.
fn given(told: &PodAllocation, resource: &str) -> Option<Units> {
    let containers = told.container_allocations.iter();
    let lists = containers.filter_map(|it| it.allocations.get(resource));
    lists
        .map(|list| Units::of_list(list))
        .try_fold(Units::default(), |all, units| Some(all.or(&units?)))
}

/// What was decided for the pod, as its annotation says; no more than it wants.
fn decided(pod: &Pod, ask: &NumaAsk) -> Option<BTreeMap<&'static str, Units>> {
    let text = pod.metadata.annotations.get(NUMA_UNITS)?;
    let said: BTreeMap<String, String> = serde_json::from_str(text).ok()?;
    let units = RESOURCES.iter().filter_map(|name| {
        let units = Units::of_list(said.get(*name)?)?;
        (units.len() <= ask.total(name)).then_some((*name, units))
    });
    Some(units.collect())
}

/// What is told cannot be understood.
struct Garbled;

fn layout(spec: &NumatopologySpec) -> NumaLayout {
    let policy = |key| spec.policies.get(key).map_or("", |policy| policy);
    let told = NumaLayout {
        pins_cpus: policy(CPU_MANAGER_POLICY) == CPU_POLICY_STATIC,
        policy: policy(TOPOLOGY_MANAGER_POLICY).into(),
        ..NumaLayout::default()
    };
    match laid_out(spec, told.clone()) {
        Ok(layout) => layout,
        Err(Garbled) => NumaLayout {
            is_garbled: true,
            ..told
        },
    }
}

/// Where a unit is: its number, NUMA node, socket and core.
type Place = (u32, [u32; 3]);

fn laid_out(spec: &NumatopologySpec, told: NumaLayout) -> Result<NumaLayout, Garbled> {
    let cpus = spec.cpu_detail.iter();
    let cpus = places(cpus.map(|(cpu, at)| place(cpu, [at.numa, at.socket, at.core])))?;
    let gpus = spec.gpu_detail.iter();
    let gpus = places(gpus.map(|(gpu, at)| place(gpu, [at.numa, None, None])))?;
    let nodes: BTreeSet<u32> = cpus.iter().chain(&gpus).map(|(_, at)| at[0]).collect();
    if nodes.len() > NUMA_NODES_MAX {
        return Err(Garbled);
    }
    let nodes: Vec<u32> = nodes.into_iter().collect();
    let sockets = grouped(&cpus, |[_, socket, _]| socket);
    let of_socket: Vec<u32> = sockets.keys().copied().collect();
    let cores = grouped(&cpus, |[numa, socket, core]| (socket, numa, core));
    let cores = cores
        .into_iter()
        .filter_map(|((socket, ..), units)| Some((of_socket.binary_search(&socket).ok()?, units)));
    let mut resources = Vec::new();
    for (name, places) in RESOURCES.into_iter().zip([&cpus, &gpus]) {
        resources.extend(resource(spec, name, &nodes, places)?);
    }
    Ok(NumaLayout {
        cores: cores.collect(),
        sockets: sockets.into_values().collect(),
        reserved_cpus: reserved(spec)?,
        resources,
        nodes,
        ..told
    })
}

/// No unit is in two places.
fn places(all: impl Iterator<Item = Result<Place, Garbled>>) -> Result<Vec<Place>, Garbled> {
    let all = all.collect::<Result<Vec<Place>, Garbled>>()?;
    let units: BTreeSet<u32> = all.iter().map(|(unit, _)| *unit).collect();
    match units.len() == all.len() {
        true => Ok(all),
        false => Err(Garbled),
    }
}

/// Numbers that are negative or beyond all bounds are no places.
fn place(unit: &str, at: [Option<i64>; 3]) -> Result<Place, Garbled> {
    let bounded = |number: i64| u32::try_from(number).ok().filter(|it| *it < UNITS_MAX);
    let unit = unit.parse().ok().and_then(bounded).ok_or(Garbled)?;
    let mut place = [0; 3];
    for (place, number) in place.iter_mut().zip(at) {
        *place = bounded(number.unwrap_or(0)).ok_or(Garbled)?;
    }
    Ok((unit, place))
}

fn grouped<K: Ord>(places: &[Place], key: impl Fn([u32; 3]) -> K) -> BTreeMap<K, Units> {
    let mut groups: BTreeMap<K, Units> = BTreeMap::new();
    for (unit, at) in places {
        groups.entry(key(*at)).or_default().insert(*unit);
    }
    groups
}

/// A resource of which it is told which units there are and where; others are brought together with
/// nothing. What pods were given is theirs for as long as they are there, and somebody else's then.
fn resource(
    spec: &NumatopologySpec,
    name: &str,
    nodes: &[u32],
    places: &[Place],
) -> Result<Option<NumaResource>, Garbled> {
    let Some(told) = spec.numares.get(name).filter(|_| !places.is_empty()) else {
        return Ok(None);
    };
    let mut open = Units::of_list(&told.allocatable).ok_or(Garbled)?;
    for told in &spec.pod_allocations {
        open = open.or(&given(told, name).ok_or(Garbled)?);
    }
    let mut by_node = grouped(places, |[numa, ..]| numa);
    let by_node: Vec<Units> = nodes
        .iter()
        .map(|node| by_node.remove(node).unwrap_or_default())
        .collect();
    let all = by_node.iter();
    let all = all.fold(Units::default(), |all, units| all.or(units));
    Ok(Some(NumaResource {
        name: name.into(),
        open: open.and(&all),
        by_node,
    }))
}

/// Part of a cpu cannot be kept from anybody, so it is all of it.
fn reserved(spec: &NumatopologySpec) -> Result<u32, Garbled> {
    let Some(text) = spec.res_reserved.get(NumaLayout::CPU) else {
        return Ok(0);
    };
    let milli = Quantity::parse(text).map_err(|_| Garbled)?.milli_value();
    let cpus = u64::try_from(milli).map_err(|_| Garbled)?.div_ceil(1_000);
    Ok(u32::try_from(cpus).unwrap_or(u32::MAX))
}
