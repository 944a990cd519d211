//! What a pod asks of its node in all.

use std::borrow::Cow;

use super::{
    Container, Pod, PodSizes, PodSpec, PodStatus, ResourceList, ResourceRequirements, Volume,
};
use crate::quantity::{Format, Quantity};

/// The resources of whose limits a quota keeps count, with what it calls those.
pub const QUOTA_LIMITS: [(&str, &str); 3] = [
    ("cpu", "limits.cpu"),
    ("memory", "limits.memory"),
    ("ephemeral-storage", "limits.ephemeral-storage"),
];

/// What a scheduler sets aside for a pod that is to come, as Kubernetes computes it.
///
/// The sum of its containers and sidecars, or the greatest need of an init container together
/// with the sidecars that were started before it, whichever is more; replaced per resource by the
/// pod's own requests where it states any; plus overhead.
pub fn requests_of(spec: &PodSpec) -> ResourceList {
    requested(spec, None)
}

/// What a pod may reach of its node in all, by the same rules; overhead counts where there is a
/// limit.
pub fn limits_of(spec: &PodSpec) -> ResourceList {
    limited(spec, None)
}

/// What is set aside for a pod, wherever it is: of each container the most of what it requests, what its
/// node has set aside for it and what it has (KEP-1287). What its node can never give it does not count.
pub fn requests_held(pod: &Pod) -> ResourceList {
    requested(&pod.spec, Held::of(&pod.status))
}

/// What a pod may reach of its node in all, by the same rules.
pub fn limits_held(pod: &Pod) -> ResourceList {
    limited(&pod.spec, Held::of(&pod.status))
}

/// How much more cpu, in thousandths of a core, and memory, in bytes, a pod counts for where nodes are compared
/// by what is requested there: something stands in for each container that requests none of it, as in
/// kube-scheduler.
pub fn stand_ins(pod: &Pod) -> [i64; 2] {
    let mut containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    let lacks = |it: &Container| {
        let requests = &it.resources.requests;
        STAND_INS
            .iter()
            .any(|(name, _)| !requests.contains_key(*name))
    };
    // Mostly each of them requests both.
    if !containers.any(lacks) {
        return [0; 2];
    }
    let held = Held::of(&pod.status);
    let [requests, counted] = [Side::Requests, Side::Counted].map(|it| all_of(&pod.spec, held, it));
    STAND_INS.map(|(name, _)| {
        let amount = |list: &ResourceList| {
            list.get(name).map_or(0, |it| match name {
                "cpu" => it.milli_value(),
                _ => it.value(),
            })
        };
        amount(&counted).saturating_sub(amount(&requests)).max(0)
    })
}

/// What stands in for a request of a container (kube-scheduler's `DefaultMilliCPURequest` and
/// `DefaultMemoryRequest`).
const STAND_INS: [(&str, Quantity); 2] = [
    ("cpu", Quantity::from_milli(100)),
    ("memory", Quantity::from_value(200 << 20, Format::BinarySi)),
];

fn requested(spec: &PodSpec, held: Option<Held<'_>>) -> ResourceList {
    let mut total = all_of(spec, held, Side::Requests);
    add(&mut total, &spec.overhead);
    total
}

fn limited(spec: &PodSpec, held: Option<Held<'_>>) -> ResourceList {
    let mut total = all_of(spec, held, Side::Limits);
    for (name, amount) in &spec.overhead {
        if let Some(sum) = total.get_mut(name) {
            sum.add(amount);
        }
    }
    total
}

#[derive(Clone, Copy)]
enum Side {
    Requests,
    /// Requests, with what stands in for those that containers do not make.
    Counted,
    Limits,
}

impl Side {
    fn of(self, resources: &ResourceRequirements) -> &ResourceList {
        match self {
            Side::Requests | Side::Counted => &resources.requests,
            Side::Limits => &resources.limits,
        }
    }
}

/// What its node tells of a pod that is there.
#[derive(Clone, Copy)]
struct Held<'a> {
    sizes: &'a PodSizes,
    /// What the pod wants by now can never be had.
    is_infeasible: bool,
}

impl<'a> Held<'a> {
    fn of(status: &'a PodStatus) -> Option<Held<'a>> {
        Some(Held {
            sizes: status.sizes.as_deref()?,
            is_infeasible: status.is_resize_infeasible(),
        })
    }

    /// What counts where so much is wanted, and this is set aside and had.
    fn counted(
        self,
        side: Side,
        wanted: &ResourceList,
        (allocated, actual): (&ResourceList, Option<&ResourceRequirements>),
    ) -> ResourceList {
        let mut counted = match self.is_infeasible {
            true => ResourceList::new(),
            false => wanted.clone(),
        };
        if let Some(actual) = actual {
            raise(&mut counted, side.of(actual));
        }
        if let Side::Requests | Side::Counted = side {
            raise(&mut counted, allocated);
        }
        counted
    }
}

fn of_container<'a>(
    container: &'a Container,
    held: Option<Held<'_>>,
    side: Side,
) -> Cow<'a, ResourceList> {
    let wanted = side.of(&container.resources);
    let size = held.and_then(|held| Some((held, held.sizes.container(&container.name)?)));
    let mut amounts = match size {
        Some((held, size)) => {
            let told = (&size.allocated, size.actual.as_deref());
            Cow::Owned(held.counted(side, wanted, told))
        }
        None => Cow::Borrowed(wanted),
    };
    if let Side::Counted = side {
        for (name, amount) in STAND_INS {
            if !amounts.contains_key(name) {
                amounts.to_mut().insert(name.into(), amount);
            }
        }
    }
    amounts
}

fn all_of(spec: &PodSpec, held: Option<Held<'_>>, side: Side) -> ResourceList {
    let mut total = ResourceList::new();
    for container in &spec.containers {
        add(&mut total, &of_container(container, held, side));
    }
    let mut sidecars = ResourceList::new();
    let mut greatest = ResourceList::new();
    for container in &spec.init_containers {
        let amounts = of_container(container, held, side);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut total, &amounts);
            add(&mut sidecars, &amounts);
            raise(&mut greatest, &sidecars);
        } else {
            let mut together = amounts.into_owned();
            add(&mut together, &sidecars);
            raise(&mut greatest, &together);
        }
    }
    raise(&mut total, &greatest);
    if let Some(resources) = &spec.resources {
        let wanted = side.of(resources);
        let counted = match held.filter(|held| held.sizes.actual.is_some()) {
            Some(held) if wanted.keys().any(|name| is_pod_level(name)) => {
                let told = (&held.sizes.allocated, held.sizes.actual.as_deref());
                &held.counted(side, wanted, told)
            }
            _ => wanted,
        };
        for (name, amount) in counted {
            if is_pod_level(name) {
                total.insert(name.clone(), amount.clone());
            }
        }
    }
    total
}

/// The claims that a pod of this name mounts: those named and those made for it.
pub fn claims_named<'a>(
    pod_name: &'a str,
    volumes: &'a [Volume],
) -> impl Iterator<Item = Cow<'a, str>> {
    volumes.iter().filter_map(move |volume| {
        if let Some(claim) = &volume.persistent_volume_claim {
            return Some((&*claim.claim_name).into());
        }
        volume
            .ephemeral
            .as_ref()
            .map(|_| format!("{pod_name}-{}", volume.name).into())
    })
}

/// Whether a claim of this name is to be made for a pod of this name (a generic ephemeral volume). One that
/// the pod does not control is not it.
pub fn makes_claim(pod_name: &str, volumes: &[Volume], claim: &str) -> bool {
    let rest = claim.strip_prefix(pod_name);
    let Some(volume) = rest.and_then(|rest| rest.strip_prefix('-')) else {
        return false;
    };
    let mut made = volumes.iter().filter(|it| it.ephemeral.is_some());
    made.any(|it| *it.name == *volume)
}

fn is_pod_level(name: &str) -> bool {
    name == "cpu" || name == "memory" || name.starts_with("hugepages-")
}

fn add(total: &mut ResourceList, more: &ResourceList) {
    for (name, amount) in more {
        match total.get_mut(name) {
            Some(sum) => sum.add(amount),
            None => {
                total.insert(name.clone(), amount.clone());
            }
        }
    }
}

fn raise(total: &mut ResourceList, other: &ResourceList) {
    for (name, amount) in other {
        if total.get(name).is_none_or(|known| known < amount) {
            total.insert(name.clone(), amount.clone());
        }
    }
}
