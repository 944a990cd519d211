//! What a pod asks of its node in all.

use super::{PodSpec, ResourceList, Volume};

/// What a scheduler sets aside for a pod, as Kubernetes computes it.
///
/// The sum of its containers and sidecars, or the greatest need of an init container together
/// with the sidecars that were started before it, whichever is more; replaced per resource by the
/// pod's own requests where it states any; plus overhead.
pub fn requests_of(spec: &PodSpec) -> ResourceList {
    let mut total = ResourceList::new();
    for container in &spec.containers {
        add(&mut total, &container.resources.requests);
    }
    let mut sidecars = ResourceList::new();
    let mut greatest = ResourceList::new();
    for container in &spec.init_containers {
        let requests = &container.resources.requests;
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut total, requests);
            add(&mut sidecars, requests);
            raise(&mut greatest, &sidecars);
        } else {
            let mut together = requests.clone();
            add(&mut together, &sidecars);
            raise(&mut greatest, &together);
        }
    }
    raise(&mut total, &greatest);
    if let Some(resources) = &spec.resources {
        for (name, amount) in &resources.requests {
            if is_pod_level(name) {
                total.insert(name.clone(), amount.clone());
            }
        }
    }
    add(&mut total, &spec.overhead);
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
