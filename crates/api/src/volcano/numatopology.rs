//! `nodeinfo.volcano.sh/v1alpha1` Numatopology.

use std::collections::BTreeMap;

use crate::core::TextMap;
use crate::meta::ObjectMeta;

/// In `policies`: how the kubelet gives out cpus.
pub const CPU_MANAGER_POLICY: &str = "CPUManagerPolicy";
/// In `policies`: how the kubelet brings together what a container gets.
pub const TOPOLOGY_MANAGER_POLICY: &str = "TopologyManagerPolicy";
/// The cpu manager policy that gives whole cpus to containers for their own.
pub const CPU_POLICY_STATIC: &str = "static";
/// The resource of which `gpuDetail` says where its units are.
pub const NVIDIA_GPU: &str = "nvidia.com/gpu";

round_trip! {
    /// How the node of the same name is laid out, as an exporter on it tells.
    pub struct Numatopology {
        /// `nodeinfo.volcano.sh/v1alpha1`.
        pub api_version: Box<str>,
        /// `Numatopology`.
        pub kind: Box<str>,
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is told.
        pub spec: NumatopologySpec,
    }

    /// What is told of a node.
    pub struct NumatopologySpec {
        /// The kubelet's policies.
        pub policies: TextMap,
        /// Amounts that are kept from pods.
        pub res_reserved: TextMap,
        /// Resources whose units have numbers.
        pub numares: BTreeMap<Box<str>, NumaUnits>,
        /// Where each cpu is, by its number.
        pub cpu_detail: BTreeMap<Box<str>, CpuPlace>,
        /// Where each GPU is, by its number. Newer exporters tell of it; the schema that the embedded API
        /// serves does not know it.
        pub gpu_detail: BTreeMap<Box<str>, GpuPlace>,
        /// What pods were given.
        pub pod_allocations: Vec<PodAllocation>,
    }

    /// Units of a resource.
    pub struct NumaUnits {
        /// Those that no container has for its own, such as `0-3,8`.
        pub allocatable: Box<str>,
        /// How many there are.
        pub capacity: Option<i64>,
    }

    /// Where a cpu is; what is absent is zero.
    pub struct CpuPlace {
        /// Its NUMA node.
        pub numa: Option<i64>,
        /// Its socket.
        pub socket: Option<i64>,
        /// Its core, counted on the socket or on the whole node.
        pub core: Option<i64>,
    }

    /// Where a GPU is; what is absent is zero.
    pub struct GpuPlace {
        /// Its NUMA node.
        pub numa: Option<i64>,
    }

    /// What one pod was given. It is known by its uid or by its name.
    pub struct PodAllocation {
        /// Its uid.
        pub uid: Box<str>,
        /// Its name.
        pub name: Box<str>,
        /// Its namespace.
        pub namespace: Box<str>,
        /// What its containers were given.
        pub container_allocations: Vec<ContainerAllocation>,
    }

    /// What one container was given.
    pub struct ContainerAllocation {
        /// Its name.
        pub name: Box<str>,
        /// Units by resource, such as `0-3,8`.
        pub allocations: TextMap,
    }
}
