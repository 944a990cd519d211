//! What a pod asks of its node in all.

use super::{PodSpec, ResourceList, ResourceRequirements, Volume};

/// What a scheduler sets aside for a pod, as Kubernetes computes it.
///
/// The sum of its containers and sidecars, or the greatest need of an init container together
/// with the sidecars that were started before it, whichever is more; replaced per resource by the
/// pod's own requests where it states any; plus overhead.
pub fn requests_of(spec: &PodSpec) -> ResourceList {
    let mut total = all_of(spec, |resources| &resources.requests);
    add(&mut total, &spec.overhead);
    total
}

/// What a pod may reach of its node in all, by the same rules; overhead counts where there is a
/// limit.
pub fn limits_of(spec: &PodSpec) -> ResourceList {
    let mut total = all_of(spec, |resources| &resources.limits);
    for (name, amount) in &spec.overhead {
        if let Some(sum) = total.get_mut(name) {
            sum.add(amount);
        }
    }
    total
}

fn all_of(spec: &PodSpec, of: fn(&ResourceRequirements) -> &ResourceList) -> ResourceList {
    let mut total = ResourceList::new();
    for container in &spec.containers {
        add(&mut total, of(&container.resources));
    }
    let mut sidecars = ResourceList::new();
    let mut greatest = ResourceList::new();
    for container in &spec.init_containers {
        let amounts = of(&container.resources);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut total, amounts);
            add(&mut sidecars, amounts);
            raise(&mut greatest, &sidecars);
        } else {
            let mut together = amounts.clone();
            add(&mut together, &sidecars);
            raise(&mut greatest, &together);
        }
    }
    raise(&mut total, &greatest);
    if let Some(resources) = &spec.resources {
        for (name, amount) in of(resources) {
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
) -> impl Iterator<Item = std::borrow::Cow<'a, str>> {
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
