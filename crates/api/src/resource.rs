//! `resource.k8s.io/v1`: devices, where they are, and claims for them.
//!
//! They are only read: what a room writes is a patch. What drivers are told (`opaque`) is passed on as
//! it was written.

use std::collections::BTreeMap;

use serde_json::Value;
use siphasher::sip::SipHasher24;

use crate::core::{Condition, NodeSelector, Toleration};
use crate::meta::ObjectMeta;
use crate::quantity::Quantity;
use crate::raw::RawJson;
use crate::time::Time;

/// The API group.
pub const GROUP: &str = "resource.k8s.io";
/// On a claim that was made for a pod: what the pod calls it.
pub const POD_CLAIM_NAME: &str = "resource.kubernetes.io/pod-claim-name";
/// On a claim that was made for a group of Kubernetes' own: what the group calls it (KEP-5729).
pub const GROUP_CLAIM_NAME: &str = "resource.kubernetes.io/podgroup-claim-name";
/// On a claim that was made for the resources of a pod which a class serves: `true` (KEP-5004).
pub const EXTENDED_CLAIM: &str = "resource.kubernetes.io/extended-resource-claim";
/// Before the name of a class: the resource by which pods can ask for its devices, whatever else it says.
pub const CLASS_RESOURCE: &str = "deviceclass.resource.kubernetes.io/";
/// Keeps a claim that is allocated from vanishing.
pub const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
/// The label of a namespace whose claims may look after devices that others hold.
pub const ADMIN_ACCESS: &str = "resource.kubernetes.io/admin-access";

read_only! {
    /// A sort of devices.
    pub struct DeviceClass {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What it says.
        pub spec: DeviceClassSpec,
    }

    /// What a class says of its devices.
    pub struct DeviceClassSpec {
        /// All must take a device.
        pub selectors: Vec<DeviceSelector>,
        /// What drivers are told of devices that are given by it.
        pub config: Vec<DeviceConfiguration>,
        /// The resource by which pods can ask for its devices without a claim.
        pub extended_resource_name: Option<Box<str>>,
    }

    /// A question about a device.
    pub struct DeviceSelector {
        /// As an expression.
        pub cel: Option<CelSelector>,
    }

    /// An expression over one device.
    pub struct CelSelector {
        /// The expression.
        pub expression: Box<str>,
    }

    /// What a driver is told.
    pub struct DeviceConfiguration {
        /// For which requests; for all where there is none. Classes have none.
        pub requests: Vec<Box<str>>,
        /// In the driver's own words.
        pub opaque: RawJson,
    }

    /// Some devices of a pool.
    pub struct ResourceSlice {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What it says.
        pub spec: ResourceSliceSpec,
    }

    /// Which devices there are, and for which nodes: exactly one of `node_name`, `node_selector`,
    /// `all_nodes` and `per_device_node_selection`.
    pub struct ResourceSliceSpec {
        /// Whose they are.
        pub driver: Box<str>,
        /// Of which pool.
        pub pool: ResourcePool,
        /// For one node.
        pub node_name: Option<Box<str>>,
        /// For the nodes that it selects.
        pub node_selector: Option<NodeSelector>,
        /// For all nodes.
        pub all_nodes: Option<bool>,
        /// Each device says for itself.
        pub per_device_node_selection: Option<bool>,
        /// The devices.
        pub devices: Vec<Device>,
        /// Of what devices of the pool are made, whichever slice they are in.
        pub shared_counters: Vec<CounterSet>,
    }

    /// Counters with one name.
    pub struct CounterSet {
        /// Its name in the pool.
        pub name: Box<str>,
        /// How much there is.
        pub counters: BTreeMap<Box<str>, Counter>,
    }

    /// An amount.
    pub struct Counter {
        /// So much.
        pub value: Quantity,
    }

    /// What a device takes while somebody has it.
    pub struct CounterUse {
        /// Of which counters.
        pub counter_set: Box<str>,
        /// How much of each.
        pub counters: BTreeMap<Box<str>, Counter>,
    }

    /// A pool, which its slices make up.
    pub struct ResourcePool {
        /// Its name.
        pub name: Box<str>,
        /// Slices of an older generation do not count.
        pub generation: i64,
        /// How many slices of this generation there are to be.
        pub resource_slice_count: i64,
    }

    /// One device.
    pub struct Device {
        /// Its name in the pool.
        pub name: Box<str>,
        /// By `domain/name`, or by `name` in the driver's domain.
        pub attributes: BTreeMap<Box<str>, DeviceAttribute>,
        /// By the same sort of names.
        pub capacity: BTreeMap<Box<str>, DeviceCapacity>,
        /// Counters of the pool out of which it is made.
        pub consumes_counters: Vec<CounterUse>,
        /// For one node.
        pub node_name: Option<Box<str>>,
        /// For the nodes that it selects.
        pub node_selector: Option<NodeSelector>,
        /// For all nodes.
        pub all_nodes: Option<bool>,
        /// Keep claims off that do not bear them.
        pub taints: Vec<DeviceTaint>,
        /// Claims of it are to be bound to the node.
        pub binds_to_node: Option<bool>,
        /// What must be true before a pod is bound.
        pub binding_conditions: Vec<Box<str>>,
        /// What being true before a pod is bound means that it never will be.
        pub binding_failure_conditions: Vec<Box<str>>,
        /// Whether several claims may have it at a time.
        pub allow_multiple_allocations: Option<bool>,
    }

    /// One of four.
    pub struct DeviceAttribute {
        /// A whole number.
        pub int: Option<i64>,
        /// Yes or no.
        pub bool: Option<bool>,
        /// A text.
        pub string: Option<Box<str>>,
        /// A semantic version.
        pub version: Option<Box<str>>,
    }

    /// How much there is of something.
    pub struct DeviceCapacity {
        /// So much.
        pub value: Quantity,
        /// In which amounts it is given.
        pub request_policy: Option<CapacityPolicy>,
    }

    /// In which amounts a capacity is given: some, a range, or any.
    pub struct CapacityPolicy {
        /// To whom does not ask for any.
        pub default: Option<Quantity>,
        /// In these, which go up.
        pub valid_values: Vec<Quantity>,
        /// From a least one on.
        pub valid_range: Option<CapacityRange>,
    }

    /// A range of amounts.
    pub struct CapacityRange {
        /// The least.
        pub min: Option<Quantity>,
        /// The most.
        pub max: Option<Quantity>,
        /// What is between one amount and the next.
        pub step: Option<Quantity>,
    }

    /// Keeps claims off a device.
    pub struct DeviceTaint {
        /// Its key.
        pub key: Box<str>,
        /// Its value.
        pub value: Box<str>,
        /// `NoSchedule`, `NoExecute` or `None`.
        pub effect: Box<str>,
    }

    /// One taint for some devices, by whoever looks after the cluster.
    pub struct DeviceTaintRule {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What it says.
        pub spec: DeviceTaintRuleSpec,
    }

    /// What is tainted, and how.
    pub struct DeviceTaintRuleSpec {
        /// Which devices; none where there is none.
        pub device_selector: Option<DeviceTaintSelector>,
        /// The taint.
        pub taint: DeviceTaint,
    }

    /// Chooses devices: all that it says must be so.
    pub struct DeviceTaintSelector {
        /// Of this class (until Kubernetes 1.34).
        pub device_class_name: Option<Box<str>>,
        /// Of this driver.
        pub driver: Option<Box<str>>,
        /// Of this pool, whichever driver's.
        pub pool: Option<Box<str>>,
        /// Of this name, in whichever pool.
        pub device: Option<Box<str>>,
        /// All must take a device (until Kubernetes 1.34).
        pub selectors: Vec<DeviceSelector>,
    }

    /// A wish for devices.
    pub struct ResourceClaim {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: ResourceClaimSpec,
        /// What is.
        pub status: ResourceClaimStatus,
    }

    /// What a claim wants.
    pub struct ResourceClaimSpec {
        /// Devices.
        pub devices: DeviceClaim,
    }

    /// Devices that are wanted together.
    pub struct DeviceClaim {
        /// Each to be served.
        pub requests: Vec<DeviceRequest>,
        /// What they have to do with one another.
        pub constraints: Vec<DeviceConstraint>,
        /// What drivers are told.
        pub config: Vec<DeviceConfiguration>,
    }

    /// One of two.
    pub struct DeviceRequest {
        /// Its name.
        pub name: Box<str>,
        /// In one way.
        pub exactly: Option<ExactRequest>,
        /// In the first way that is possible.
        pub first_available: Vec<ExactRequest>,
    }

    /// Devices of one sort.
    pub struct ExactRequest {
        /// Its name among several ways.
        pub name: Box<str>,
        /// The class.
        pub device_class_name: Box<str>,
        /// All must take a device.
        pub selectors: Vec<DeviceSelector>,
        /// `ExactCount` (default) or `All`.
        pub allocation_mode: Box<str>,
        /// How many.
        pub count: i64,
        /// For looking after devices that others hold.
        pub admin_access: Option<bool>,
        /// Taints of devices that it bears.
        pub tolerations: Vec<Toleration>,
        /// How much of each device; see [`ExactRequest::amounts`].
        pub capacity: Option<RawJson>,
    }

    /// One of two.
    pub struct DeviceConstraint {
        /// For which requests; for all where there is none.
        pub requests: Vec<Box<str>>,
        /// All devices have this attribute with one value.
        pub match_attribute: Option<Box<str>>,
        /// All devices have this attribute, each with another value.
        pub distinct_attribute: Option<Box<str>>,
    }

    /// What a claim is.
    pub struct ResourceClaimStatus {
        /// What it has.
        pub allocation: Option<Allocation>,
        /// Who uses it.
        pub reserved_for: Vec<Consumer>,
        /// What drivers say of the devices that it has.
        pub devices: Vec<DeviceStatus>,
    }

    /// What a driver says of a device that a claim has.
    pub struct DeviceStatus {
        /// Whose it is.
        pub driver: Box<str>,
        /// Of which pool.
        pub pool: Box<str>,
        /// Which one.
        pub device: Box<str>,
        /// Which part of it, if it is given in parts.
        #[serde(rename = "shareID")]
        pub share_id: Option<Box<str>>,
        /// What is true of it.
        pub conditions: Vec<Condition>,
    }

    /// What a claim has.
    pub struct Allocation {
        /// Devices.
        pub devices: AllocatedDevices,
        /// From which nodes they can be reached; from all where there is none.
        pub node_selector: Option<NodeSelector>,
        /// When it got them.
        pub allocation_timestamp: Option<Time>,
    }

    /// Devices that a claim has.
    pub struct AllocatedDevices {
        /// Each.
        pub results: Vec<AllocatedDevice>,
    }

    /// A device that a claim has.
    pub struct AllocatedDevice {
        /// For which request, or `request/way`.
        pub request: Box<str>,
        /// Whose it is.
        pub driver: Box<str>,
        /// Of which pool.
        pub pool: Box<str>,
        /// Which one.
        pub device: Box<str>,
        /// Only to look after it.
        pub admin_access: Option<bool>,
        /// Which part of it, if it is given in parts.
        #[serde(rename = "shareID")]
        pub share_id: Option<Box<str>>,
        /// How much of its capacity that is.
        pub consumed_capacity: BTreeMap<Box<str>, Quantity>,
        /// What must be true of it before a pod is bound.
        pub binding_conditions: Vec<Box<str>>,
        /// What being true means that it never will be.
        pub binding_failure_conditions: Vec<Box<str>>,
    }

    /// Who uses a claim.
    pub struct Consumer {
        /// Group of its kind.
        pub api_group: Box<str>,
        /// `pods`, or `podgroups` of Kubernetes' own.
        pub resource: Box<str>,
        /// Its name.
        pub name: Box<str>,
        /// Its identity.
        pub uid: Box<str>,
    }

    /// What claims for pods are made from.
    pub struct ResourceClaimTemplate {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What a claim becomes.
        pub spec: ResourceClaimTemplateSpec,
    }

    /// What a claim becomes.
    pub struct ResourceClaimTemplateSpec {
        /// Its labels and annotations.
        pub metadata: ObjectMeta,
        /// Its spec, as it is written.
        pub spec: RawJson,
    }
}

/// An id for one part of a device (`shareID`), in the shape of a UUID: the same for the same text, and
/// with two texts hardly ever.
pub fn share_id(one_of: &str) -> String {
    let half = |key: u8| SipHasher24::new_with_key(&[key; 16]).hash(one_of.as_bytes());
    let bits = u128::from(half(1)) << 64 | u128::from(half(2));
    // Version 8 (our own way to make one) and the variant of RFC 9562.
    let bits = bits & !(0xf << 76 | 0x3 << 62) | 0x8 << 76 | 0x2 << 62;
    let text = format!("{bits:032x}");
    let parts = [
        &text[..8],
        &text[8..12],
        &text[12..16],
        &text[16..20],
        &text[20..],
    ];
    parts.join("-")
}

impl DeviceStatus {
    /// Whether it is said of this device, or this part of one.
    pub fn is_of(&self, device: &AllocatedDevice) -> bool {
        let (own, other) = (&self.share_id, &device.share_id);
        (&self.driver, &self.pool, &self.device) == (&device.driver, &device.pool, &device.device)
            && own == other
    }
}

impl DeviceClass {
    /// The resources by which pods can ask for its devices.
    pub fn resources(&self) -> impl Iterator<Item = Box<str>> {
        let named = self.spec.extended_resource_name.iter().cloned();
        let own = format!("{CLASS_RESOURCE}{}", self.metadata.name);
        named.filter(|name| !name.is_empty()).chain([own.into()])
    }
}

impl DeviceTaintRule {
    /// Whether which devices it means depends on that class.
    pub fn names_class(&self, class: &str) -> bool {
        let selector = self.spec.device_selector.as_ref();
        let named = selector.and_then(|it| it.device_class_name.as_deref());
        named == Some(class)
    }
}

impl ExactRequest {
    /// How much is wanted of each device's capacity, by the names that the device has for it; `None` where
    /// what is written is no amount.
    pub fn amounts(&self) -> Vec<(Box<str>, Option<Quantity>)> {
        let asked = self.capacity.as_ref().map(RawJson::value);
        let asked = asked.as_ref().and_then(|it| it["requests"].as_object());
        let amount = |value: &Value| Quantity::parse(value.as_str()?).ok();
        let asked = asked.into_iter().flatten();
        asked
            .map(|(name, value)| (name.as_str().into(), amount(value)))
            .collect()
    }
}

impl AllocatedDevice {
    /// `driver/pool/name`, which no other device has.
    pub fn id(&self) -> String {
        format!("{}/{}/{}", self.driver, self.pool, self.device)
    }

    /// Whether it is only looked after.
    pub fn is_admin(&self) -> bool {
        self.admin_access == Some(true)
    }
}

impl Consumer {
    /// A pod.
    pub fn pod(pod: &ObjectMeta) -> Consumer {
        Consumer {
            resource: "pods".into(),
            name: (&pod.name).into(),
            uid: pod.uid.clone(),
            ..Consumer::default()
        }
    }

    /// A group of Kubernetes' own, for all its pods.
    pub fn group(group: &ObjectMeta) -> Consumer {
        Consumer {
            api_group: crate::native::GROUP.into(),
            resource: "podgroups".into(),
            name: (&group.name).into(),
            uid: group.uid.clone(),
        }
    }

    /// Whether it is a group of Kubernetes' own.
    pub fn is_group(&self) -> bool {
        &*self.api_group == crate::native::GROUP && &*self.resource == "podgroups"
    }

    /// Whether it is a pod.
    pub fn is_pod(&self) -> bool {
        self.api_group.is_empty() && &*self.resource == "pods"
    }
}

impl ResourceClaim {
    /// The devices that it has.
    pub fn allocated(&self) -> &[AllocatedDevice] {
        let allocation = self.status.allocation.as_ref();
        allocation.map_or(&[], |it| &it.devices.results)
    }

    /// Whether a driver says that this is true of a device that it has.
    pub fn is_true_of(&self, device: &AllocatedDevice, condition: &str) -> bool {
        let told = self.status.devices.iter().filter(|it| it.is_of(device));
        let mut told = told.flat_map(|it| &it.conditions);
        told.any(|it| *it.kind == *condition && &*it.status == "True")
    }

    /// Whether it was made for resources of this pod.
    pub fn is_extended(&self, pod: &str) -> bool {
        let mark = self.metadata.annotations.get(EXTENDED_CLAIM);
        mark.is_some_and(|mark| &**mark == "true") && self.is_made_for(pod)
    }

    /// Whether it was made for the pod or group of this uid.
    pub fn is_made_for(&self, uid: &str) -> bool {
        self.metadata.is_controlled_by(uid)
    }

    /// How one of its requests is served that is called `request`, or `request/way`.
    pub fn way(&self, name: &str) -> Option<&ExactRequest> {
        let (main, sub) = name.split_once('/').unwrap_or((name, ""));
        let mut requests = self.spec.devices.requests.iter();
        let request = requests.find(|request| &*request.name == main)?;
        match sub {
            "" => request.exactly.as_ref(),
            sub => request.first_available.iter().find(|way| &*way.name == sub),
        }
    }

    /// Who uses it, and this one.
    pub fn users_with(&self, user: &Consumer) -> Vec<Consumer> {
        let users = self.status.reserved_for.iter().chain([user]);
        users.cloned().collect()
    }

    /// Whether a group of this name uses it: pods name their group so, which may have gone before them.
    pub fn is_reserved_for_group(&self, name: &str) -> bool {
        let mut users = self.status.reserved_for.iter();
        users.any(|user| user.is_group() && &*user.name == name)
    }

    /// Whether a pod or group of this uid uses it.
    pub fn is_reserved_for(&self, uid: &str) -> bool {
        let mut users = self.status.reserved_for.iter();
        users.any(|user| &*user.uid == uid)
    }
}
