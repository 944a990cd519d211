//! Resources of pods that classes of devices serve: what is asked of devices for them, and for which
//! container.
//!
//! Source: Kubernetes' dynamic resource allocation (KEP-5004). A class says by which resource its devices
//! can be asked for; one whose name is made of the class's own asks for them in any case. Where a node
//! does not have the resource itself, one claim for all such resources of the pod is made and allocated.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::core::{Container, ContainerExtendedRequest, Pod};
use api::resource::{DeviceClass, ResourceClaim};

use crate::held::Mirror;
use crate::index::Index;

/// What the claim is called among those that a pod names: none of these can be called so.
pub(crate) const EXTENDED: &str = "<extended-resources>";

/// A request of the claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Its name.
    pub(crate) name: String,
    /// The resource that it serves.
    pub(crate) resource: Box<str>,
    /// How many devices it is for.
    pub(crate) count: i64,
}

/// What a pod asks of devices by its resources.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// The requests, by their names.
    pub(crate) requests: Vec<Request>,
    /// Which of them each container has for which resource.
    pub(crate) mappings: Vec<ContainerExtendedRequest>,
}

/// The class that serves a resource: of several the newest, of those made at one time the first by name.
pub(crate) fn class_of<'a>(mirror: &'a Mirror, resource: &str) -> Option<&'a Arc<DeviceClass>> {
    // They come by their names.
    let mut classes = mirror.indexed::<DeviceClass>(Index::ClassResource, "", resource);
    let first = classes.next()?;
    let is_newer = |class: &DeviceClass, than: &DeviceClass| {
        class.metadata.creation_timestamp > than.metadata.creation_timestamp
    };
    Some(
        classes.fold(first, |newest, class| match is_newer(class, newest) {
            true => class,
            false => newest,
        }),
    )
}

/// The claim that was made for such resources of a pod.
pub fn extended_claim<'a>(mirror: &'a Mirror, pod: &Pod) -> Option<&'a Arc<ResourceClaim>> {
    let uid = &pod.metadata.uid;
    let mut owned = mirror.owned_by::<ResourceClaim>(uid);
    owned.find(|claim| claim.is_extended(uid))
}

/// The resources of a pod that a class serves, in order.
pub(crate) fn resources<'a>(mirror: &Mirror, pod: &'a Pod) -> BTreeSet<&'a str> {
    let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    let names = containers.flat_map(|it| it.resources.requests.iter());
    // A resource of nobody's domain is Kubernetes' own.
    let names = names.filter(|(name, amount)| name.contains('/') && amount.value() > 0);
    let names: BTreeSet<&str> = names.map(|(name, _)| &**name).collect();
    let is_served = |name: &&str| class_of(mirror, name).is_some();
    names.into_iter().filter(is_served).collect()
}

/// What is asked for these resources of the pod.
pub(crate) fn requests<'a>(pod: &Pod, resources: impl IntoIterator<Item = &'a str>) -> Requests {
    let mut all = Requests::default();
    for resource in resources {
        Served { pod, resource }.ask(&mut all);
    }
    all.requests.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// A pod, and one of its resources.
struct Served<'a> {
    pod: &'a Pod,
    resource: &'a str,
}

impl<'a> Served<'a> {
    /// Whoever runs on has devices of his own. An init container uses those of them who come after it; what
    /// it lacks then is asked for once, for the one that lacks most.
    fn ask(&self, all: &mut Requests) {
        let containers = self.containers();
        let lasting = containers.iter().map(|(at, container, lasts)| {
            let wanted = self.wanted(container).filter(|_| *lasts)?;
            Some(self.request(*at, container, wanted))
        });
        let lasting: Vec<Option<Request>> = lasting.collect();
        let mut passing: Option<Request> = None;
        let mut uses = Vec::new();
        for (at, container, _) in containers.iter().filter(|(.., lasts)| !lasts) {
            let Some(wanted) = self.wanted(container) else {
                continue;
            };
            let mut lacks = wanted;
            for later in lasting[*at..].iter().flatten() {
                if lacks <= 0 {
                    break;
                }
                lacks -= later.count;
                uses.push((*container, Some(later.name.clone())));
            }
            if lacks > 0 {
                uses.push((*container, None));
                if passing.as_ref().is_none_or(|most| most.count < lacks) {
                    passing = Some(self.request(*at, container, lacks));
                }
            }
        }
        for ((_, container, _), request) in containers.iter().zip(&lasting) {
            let mapping = request.as_ref().map(|it| self.mapping(container, &it.name));
            all.mappings.extend(mapping);
        }
        let extra = passing.as_ref().map(|it| it.name.as_str());
        for (container, request) in &uses {
            let request = request.as_deref().or(extra);
            all.mappings
                .extend(request.map(|name| self.mapping(container, name)));
        }
        all.requests.extend(passing);
        all.requests.extend(lasting.into_iter().flatten());
    }

    /// All containers, init containers first, with their numbers, and whether they run on.
    fn containers(&self) -> Vec<(usize, &'a Container, bool)> {
        let spec = &self.pod.spec;
        let init = spec.init_containers.iter();
        let init = init.map(|it| (it, it.restart_policy.as_deref() == Some("Always")));
        let all = init.chain(spec.containers.iter().map(|it| (it, true)));
        let all = all.enumerate();
        all.map(|(at, (container, lasts))| (at, container, lasts))
            .collect()
    }

    fn wanted(&self, container: &Container) -> Option<i64> {
        let wanted = container.resources.requests.get(self.resource)?;
        Some(wanted.value()).filter(|wanted| *wanted > 0)
    }

    /// Named after the container's place, and that of the resource among all that it requests.
    fn request(&self, at: usize, container: &Container, count: i64) -> Request {
        let names = container.resources.requests.keys();
        let place = names.take_while(|name| ***name < *self.resource).count();
        Request {
            name: format!("container-{at}-request-{place}"),
            resource: self.resource.into(),
            count,
        }
    }

    fn mapping(&self, container: &Container, request: &str) -> ContainerExtendedRequest {
        ContainerExtendedRequest {
            container_name: container.name.clone(),
            resource_name: self.resource.into(),
            request_name: request.into(),
        }
    }
}

#[cfg(test)]
mod tests;
