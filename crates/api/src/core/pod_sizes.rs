//! What a pod has on its node, which may be another amount than it requests while it is being resized in
//! place (KEP-1287).

use super::{ResourceList, ResourceRequirements};

/// What a pod's node tells of what the pod has. Pods of one template mostly have the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodSizes {
    /// Of containers of which it tells something.
    pub containers: Vec<ContainerSize>,
    /// What is set aside for the pod as a whole (`status.allocatedResources`).
    pub allocated: ResourceList,
    /// What holds for the pod as a whole now (`status.resources`).
    pub actual: Option<Box<ResourceRequirements>>,
    /// How its resizing fares, as nodes said it until Kubernetes 1.32.
    pub resize: Box<str>,
}

/// What a container has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContainerSize {
    /// Its name.
    pub name: Box<str>,
    /// What its node has set aside for it (`allocatedResources`).
    pub allocated: ResourceList,
    /// What holds for it now (`resources`).
    pub actual: Option<Box<ResourceRequirements>>,
}

impl PodSizes {
    /// What is told of a container.
    pub fn container(&self, name: &str) -> Option<&ContainerSize> {
        self.containers.iter().find(|it| *it.name == *name)
    }

    /// All amounts that are in it.
    pub(super) fn amounts(&self) -> impl Iterator<Item = &ResourceList> {
        let containers = self.containers.iter();
        let of_containers = containers.flat_map(|it| sides(&it.allocated, it.actual.as_deref()));
        of_containers.chain(sides(&self.allocated, self.actual.as_deref()))
    }
}

fn sides<'a>(
    allocated: &'a ResourceList,
    actual: Option<&'a ResourceRequirements>,
) -> impl Iterator<Item = &'a ResourceList> {
    let actual = actual.into_iter();
    let actual = actual.flat_map(|it| [&it.requests, &it.limits]);
    actual.chain([allocated])
}
