//! Resources, annotations and words of Volcano's shared and virtual GPUs.

/// Resource: memory of a shared GPU.
pub const GPU_MEMORY: &str = "volcano.sh/gpu-memory";
/// Resource: whole shared GPUs.
pub const GPU_NUMBER: &str = "volcano.sh/gpu-number";
/// Pod annotation: which shared GPUs it has, `0,1`.
pub const GPU_INDEX: &str = "volcano.sh/gpu-index";
/// Pod annotation: when they were chosen, in nanoseconds.
pub const PREDICATE_TIME: &str = "volcano.sh/predicate-time";
/// Node annotation: shared GPUs that are broken, `0,3`.
pub const GPU_UNHEALTHY_IDS: &str = "volcano.sh/gpu-unhealthy-ids";

/// Resource: how many virtual GPUs.
pub const VGPU_NUMBER: &str = "volcano.sh/vgpu-number";
/// Resource: MiB of each of them.
pub const VGPU_MEMORY: &str = "volcano.sh/vgpu-memory";
/// Resource: percent of the memory of each of them.
pub const VGPU_MEMORY_PERCENTAGE: &str = "volcano.sh/vgpu-memory-percentage";
/// Resource: percent of the cores of each of them.
pub const VGPU_CORES: &str = "volcano.sh/vgpu-cores";
/// Node annotation: its virtual GPUs.
pub const VGPU_REGISTER: &str = "volcano.sh/node-vgpu-register";
/// Pod annotation: which virtual GPUs it has.
pub const VGPU_IDS: &str = "volcano.sh/vgpu-ids-new";
/// Pod annotation: the same, from which the device plugin strikes out what it has handed out.
pub const VGPU_TO_ALLOCATE: &str = "volcano.sh/devices-to-allocate";
/// Pod annotation: on which node they are.
pub const VGPU_NODE: &str = "volcano.sh/vgpu-node";
/// Pod annotation: when they were chosen, in seconds.
pub const VGPU_TIME: &str = "volcano.sh/vgpu-time";
/// Pod annotation: when it was bound, in seconds.
pub const BIND_TIME: &str = "volcano.sh/bind-time";
/// Pod annotation: how far the device plugin is with it.
pub const BIND_PHASE: &str = "volcano.sh/bind-phase";
/// Value of [`BIND_PHASE`] before the device plugin has seen it.
pub const BIND_PHASE_ALLOCATING: &str = "allocating";
/// Pod annotation: words of models, one of which its GPU has.
pub const USE_GPU_TYPE: &str = "nvidia.com/use-gputype";
/// Pod annotation: words of models that its GPU has not.
pub const NOUSE_GPU_TYPE: &str = "nvidia.com/nouse-gputype";
/// Pod annotation: the GPUs that it may have.
pub const USE_GPU_UUID: &str = "volcano.sh/vgpu-use-gpuuuid";
/// Pod annotation: the GPUs that it may not have.
pub const NOUSE_GPU_UUID: &str = "volcano.sh/vgpu-nouse-gpuuuid";
/// Pod annotation: how its GPU is divided, `hami-core`, `mig` or `mps`.
pub const VGPU_MODE: &str = "volcano.sh/vgpu-mode";
/// Value of [`VGPU_MODE`] and of a node's register: a library in each container divides the GPU. A node that
/// tells of any other mode than these three runs in this one.
pub const VGPU_MODE_HAMI_CORE: &str = "hami-core";
/// The same: the GPU divides itself.
pub const VGPU_MODE_MIG: &str = "mig";
/// The same: one process for all who use the GPU divides it.
pub const VGPU_MODE_MPS: &str = "mps";
/// Pod annotation: `spread` keeps it from GPUs of its own gang.
pub const VGPU_POD_GROUP_POLICY: &str = "volcano.sh/vgpu-podgroup-policy";
/// The kind of GPU that a pod's annotation names.
pub const VGPU_VENDOR: &str = "NVIDIA";
/// Node annotation: since when a pod that gets shared GPUs is being bound there.
pub const SHARED_LOCK: &str = "GpuShare";
/// Node annotation: since when a pod that gets virtual GPUs is being bound there.
pub const VGPU_LOCK: &str = "hamivgpu";

/// Pod annotation: on which node its NPUs are.
pub const NPU_NODE: &str = "hami.io/vgpu-node";
/// Pod annotation: when its NPUs were chosen, in seconds.
pub const NPU_TIME: &str = "hami.io/vgpu-time";
/// Pod annotation: when a pod with NPUs was bound, in seconds.
pub const NPU_BIND_TIME: &str = "hami.io/bind-time";
/// Pod annotation: how far the device plugin of NPUs is with it.
pub const NPU_BIND_PHASE: &str = "hami.io/bind-phase";
/// Pod annotation: when its NPUs were chosen, once more.
pub const NPU_PREDICATE_TIME: &str = "predicate-time";
/// Pod annotation: how the NPUs of its node are divided, of which it has some.
pub const VNPU_MODE: &str = "huawei.com/vnpu-mode";
/// Value of [`VNPU_MODE`]: a library in each container divides the NPU.
pub const VNPU_MODE_HAMI_CORE: &str = "hami-core";
/// The same: the NPU divides itself, in parts of fixed sizes.
pub const VNPU_MODE_TEMPLATE: &str = "template";
/// Node annotation: whether a library in each container divides its NPUs, `true` or not.
pub const VNPU_NODE_HAMI_CORE: &str = "hami-vnpu-core";
/// Node annotation: whether its device plugin divides NPUs in its own way (ENPU), `true` or not.
pub const VNPU_NODE_ENPU: &str = "hami.io/enpu";
/// How the names of NPUs' resources begin that are no word of ours.
pub const NPU_VENDOR: &str = "huawei.com";

/// The kind of chips that are given out in MindCluster's way.
pub const ASCEND_310P: &str = "Ascend310P";
/// What a container wants of them, and a node has: cores. Pod annotation: which ones it has.
pub const NPU_CORE: &str = "huawei.com/npu-core";
/// Pod annotation: which parts of chips the device plugin has made for it.
pub const ASCEND_REAL: &str = "huawei.com/AscendReal";
/// Node annotation: all its chips, the keys of a JSON object.
pub const BASE_DEVICES: &str = "baseDeviceInfos";
/// Node label: the kind of its chips, after a vendor.
pub const ACCELERATOR: &str = "accelerator";
/// Node label: how many cores each of its chips has, after their kind.
pub const SERVER_TYPE: &str = "servertype";
/// Pod label: which kind of chips it wants cores of.
pub const RING_CONTROLLER: &str = "ring-controller.atlas";
/// Value of [`RING_CONTROLLER`]: of Ascend 310P.
pub const RING_CONTROLLER_310P: &str = "ascend-310P";
/// Pod label: `high` if it wants more cpus with its part of a chip.
pub const VNPU_LEVEL: &str = "vnpu-level";
/// Pod label: whether it wants all media units of the chip (`yes`), none (`no`), or some (`null`).
pub const VNPU_DVPP: &str = "vnpu-dvpp";

/// Node annotation: its NPUs of a kind, as a JSON list.
pub fn npu_register(kind: &str) -> String {
    format!("hami.io/node-register-{kind}")
}

/// Pod annotation: which NPUs of a kind it has, from which the device plugin strikes out what it has
/// handed out.
pub fn npu_to_allocate(kind: &str) -> String {
    format!("hami.io/{kind}-devices-to-allocate")
}

/// Pod annotation: which NPUs of a kind it has.
pub fn npu_allocated(kind: &str) -> String {
    format!("hami.io/{kind}-devices-allocated")
}

/// Pod annotation: what the container runtime makes of NPUs of a kind, as a JSON list.
pub fn npu_runtime(kind: &str) -> String {
    format!("{NPU_VENDOR}/{kind}")
}
