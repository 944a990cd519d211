//! Names of Go's types and embedded structs: decoding errors speak of them, schemas do not.

/// Type of a field that is more than its schema says: struct, field, type of the value or item.
const NAMED: &[(&str, &str, &str)] = &[
    ("Capabilities", "drop", "v1.Capability"),
    ("Container", "imagePullPolicy", "v1.PullPolicy"),
    ("Container", "restartPolicy", "v1.ContainerRestartPolicy"),
    (
        "Container",
        "terminationMessagePolicy",
        "v1.TerminationMessagePolicy",
    ),
    ("ContainerPort", "protocol", "v1.Protocol"),
    ("ContainerResizePolicy", "resourceName", "v1.ResourceName"),
    (
        "ContainerResizePolicy",
        "restartPolicy",
        "v1.ResourceResizeRestartPolicy",
    ),
    ("CronJobSpec", "concurrencyPolicy", "v1.ConcurrencyPolicy"),
    (
        "DaemonSetUpdateStrategy",
        "type",
        "v1.DaemonSetUpdateStrategyType",
    ),
    ("DeploymentStrategy", "type", "v1.DeploymentStrategyType"),
    (
        "Device",
        "attributes",
        "map[v1.QualifiedName]v1.DeviceAttribute",
    ),
    (
        "Device",
        "capacity",
        "map[v1.QualifiedName]v1.DeviceCapacity",
    ),
    (
        "DeviceConstraint",
        "matchAttribute",
        "v1.FullyQualifiedName",
    ),
    ("EmptyDirVolumeSource", "medium", "v1.StorageMedium"),
    ("EndpointPort", "protocol", "v1.Protocol"),
    ("EndpointSlice", "addressType", "v1.AddressType"),
    (
        "ExactDeviceRequest",
        "allocationMode",
        "v1.DeviceAllocationMode",
    ),
    ("HTTPGetAction", "scheme", "v1.URIScheme"),
    ("HTTPIngressPath", "pathType", "v1.PathType"),
    ("HostPathVolumeSource", "type", "v1.HostPathType"),
    ("JobCondition", "status", "v1.ConditionStatus"),
    ("JobCondition", "type", "v1.JobConditionType"),
    ("JobSpec", "completionMode", "v1.CompletionMode"),
    ("JobSpec", "podReplacementPolicy", "v1.PodReplacementPolicy"),
    (
        "LabelSelectorRequirement",
        "operator",
        "v1.LabelSelectorOperator",
    ),
    ("LimitRangeItem", "default", "v1.ResourceList"),
    ("LimitRangeItem", "defaultRequest", "v1.ResourceList"),
    ("LimitRangeItem", "max", "v1.ResourceList"),
    ("LimitRangeItem", "maxLimitRequestRatio", "v1.ResourceList"),
    ("LimitRangeItem", "min", "v1.ResourceList"),
    ("LimitRangeItem", "type", "v1.LimitType"),
    ("MutatingWebhook", "failurePolicy", "v1.FailurePolicyType"),
    ("MutatingWebhook", "matchPolicy", "v1.MatchPolicyType"),
    (
        "MutatingWebhook",
        "reinvocationPolicy",
        "v1.ReinvocationPolicyType",
    ),
    ("MutatingWebhook", "sideEffects", "v1.SideEffectClass"),
    ("NamespaceSpec", "finalizers", "v1.FinalizerName"),
    ("NamespaceStatus", "phase", "v1.NamespacePhase"),
    ("NetworkPolicyPort", "protocol", "v1.Protocol"),
    ("NetworkPolicySpec", "policyTypes", "v1.PolicyType"),
    ("NodeAddress", "type", "v1.NodeAddressType"),
    ("NodeCondition", "status", "v1.ConditionStatus"),
    ("NodeCondition", "type", "v1.NodeConditionType"),
    (
        "NodeSelectorRequirement",
        "operator",
        "v1.NodeSelectorOperator",
    ),
    ("NodeStatus", "allocatable", "v1.ResourceList"),
    ("NodeStatus", "capacity", "v1.ResourceList"),
    ("ObjectReference", "uid", "types.UID"),
    ("Overhead", "podFixed", "v1.ResourceList"),
    ("OwnerReference", "uid", "types.UID"),
    (
        "PersistentVolumeClaimSpec",
        "accessModes",
        "v1.PersistentVolumeAccessMode",
    ),
    (
        "PersistentVolumeClaimSpec",
        "volumeMode",
        "v1.PersistentVolumeMode",
    ),
    ("PersistentVolumeClaimStatus", "capacity", "v1.ResourceList"),
    (
        "PersistentVolumeClaimStatus",
        "phase",
        "v1.PersistentVolumeClaimPhase",
    ),
    (
        "PersistentVolumeSpec",
        "accessModes",
        "v1.PersistentVolumeAccessMode",
    ),
    ("PersistentVolumeSpec", "capacity", "v1.ResourceList"),
    (
        "PersistentVolumeSpec",
        "persistentVolumeReclaimPolicy",
        "v1.PersistentVolumeReclaimPolicy",
    ),
    (
        "PersistentVolumeSpec",
        "volumeMode",
        "v1.PersistentVolumeMode",
    ),
    (
        "PersistentVolumeStatus",
        "phase",
        "v1.PersistentVolumePhase",
    ),
    ("PodCondition", "status", "v1.ConditionStatus"),
    ("PodCondition", "type", "v1.PodConditionType"),
    (
        "PodDisruptionBudgetSpec",
        "unhealthyPodEvictionPolicy",
        "v1.UnhealthyPodEvictionPolicyType",
    ),
    (
        "PodFailurePolicyOnExitCodesRequirement",
        "operator",
        "v1.PodFailurePolicyOnExitCodesOperator",
    ),
    (
        "PodFailurePolicyOnPodConditionsPattern",
        "status",
        "v1.ConditionStatus",
    ),
    (
        "PodFailurePolicyOnPodConditionsPattern",
        "type",
        "v1.PodConditionType",
    ),
    (
        "PodFailurePolicyRule",
        "action",
        "v1.PodFailurePolicyAction",
    ),
    ("PodReadinessGate", "conditionType", "v1.PodConditionType"),
    (
        "PodSecurityContext",
        "fsGroupChangePolicy",
        "v1.PodFSGroupChangePolicy",
    ),
    ("PodSpec", "dnsPolicy", "v1.DNSPolicy"),
    ("PodSpec", "overhead", "v1.ResourceList"),
    ("PodSpec", "preemptionPolicy", "v1.PreemptionPolicy"),
    ("PodSpec", "restartPolicy", "v1.RestartPolicy"),
    ("PodStatus", "phase", "v1.PodPhase"),
    ("PodStatus", "qosClass", "v1.PodQOSClass"),
    ("PriorityClass", "preemptionPolicy", "v1.PreemptionPolicy"),
    ("ResourceQuotaSpec", "hard", "v1.ResourceList"),
    ("ResourceQuotaSpec", "scopes", "v1.ResourceQuotaScope"),
    ("ResourceQuotaStatus", "hard", "v1.ResourceList"),
    ("ResourceQuotaStatus", "used", "v1.ResourceList"),
    ("ResourceRequirements", "limits", "v1.ResourceList"),
    ("ResourceRequirements", "requests", "v1.ResourceList"),
    ("RuleWithOperations", "operations", "v1.OperationType"),
    ("RuleWithOperations", "scope", "v1.ScopeType"),
    (
        "ScopedResourceSelectorRequirement",
        "operator",
        "v1.ScopeSelectorOperator",
    ),
    (
        "ScopedResourceSelectorRequirement",
        "scopeName",
        "v1.ResourceQuotaScope",
    ),
    ("SeccompProfile", "type", "v1.SeccompProfileType"),
    ("Secret", "type", "v1.SecretType"),
    ("ServicePort", "protocol", "v1.Protocol"),
    (
        "ServiceSpec",
        "externalTrafficPolicy",
        "v1.ServiceExternalTrafficPolicy",
    ),
    (
        "ServiceSpec",
        "internalTrafficPolicy",
        "v1.ServiceInternalTrafficPolicy",
    ),
    ("ServiceSpec", "ipFamilies", "v1.IPFamily"),
    ("ServiceSpec", "ipFamilyPolicy", "v1.IPFamilyPolicy"),
    ("ServiceSpec", "sessionAffinity", "v1.ServiceAffinity"),
    ("ServiceSpec", "type", "v1.ServiceType"),
    (
        "StatefulSetPersistentVolumeClaimRetentionPolicy",
        "whenDeleted",
        "v1.PersistentVolumeClaimRetentionPolicyType",
    ),
    (
        "StatefulSetPersistentVolumeClaimRetentionPolicy",
        "whenScaled",
        "v1.PersistentVolumeClaimRetentionPolicyType",
    ),
    (
        "StatefulSetSpec",
        "podManagementPolicy",
        "v1.PodManagementPolicyType",
    ),
    (
        "StatefulSetUpdateStrategy",
        "type",
        "v1.StatefulSetUpdateStrategyType",
    ),
    (
        "StorageClass",
        "reclaimPolicy",
        "v1.PersistentVolumeReclaimPolicy",
    ),
    ("StorageClass", "volumeBindingMode", "v1.VolumeBindingMode"),
    ("Taint", "effect", "v1.TaintEffect"),
    ("Toleration", "effect", "v1.TaintEffect"),
    ("Toleration", "operator", "v1.TolerationOperator"),
    (
        "TopologySpreadConstraint",
        "whenUnsatisfiable",
        "v1.UnsatisfiableConstraintAction",
    ),
    ("ValidatingWebhook", "failurePolicy", "v1.FailurePolicyType"),
    ("ValidatingWebhook", "matchPolicy", "v1.MatchPolicyType"),
    ("ValidatingWebhook", "sideEffects", "v1.SideEffectClass"),
    ("VolumeResourceRequirements", "limits", "v1.ResourceList"),
    ("VolumeResourceRequirements", "requests", "v1.ResourceList"),
];

/// Structs whose fields lie in another: outer, inner, fields of the inner (all but these if the
/// first is empty).
const EMBEDDED: &[(&str, &str, &[&str])] = &[
    ("ConfigMapEnvSource", "LocalObjectReference", &["name"]),
    ("ConfigMapKeySelector", "LocalObjectReference", &["name"]),
    ("ConfigMapProjection", "LocalObjectReference", &["name"]),
    ("ConfigMapVolumeSource", "LocalObjectReference", &["name"]),
    (
        "DeviceAllocationConfiguration",
        "DeviceConfiguration",
        &["opaque"],
    ),
    (
        "DeviceClaimConfiguration",
        "DeviceConfiguration",
        &["opaque"],
    ),
    (
        "DeviceClassConfiguration",
        "DeviceConfiguration",
        &["opaque"],
    ),
    ("IngressRule", "IngressRuleValue", &["http"]),
    (
        "PersistentVolumeSpec",
        "PersistentVolumeSource",
        &[
            "",
            "accessModes",
            "capacity",
            "claimRef",
            "mountOptions",
            "nodeAffinity",
            "persistentVolumeReclaimPolicy",
            "storageClassName",
            "volumeAttributesClassName",
            "volumeMode",
        ],
    ),
    (
        "Probe",
        "ProbeHandler",
        &["exec", "grpc", "httpGet", "tcpSocket"],
    ),
    (
        "RuleWithOperations",
        "Rule",
        &["apiGroups", "apiVersions", "resources", "scope"],
    ),
    ("SecretEnvSource", "LocalObjectReference", &["name"]),
    ("SecretKeySelector", "LocalObjectReference", &["name"]),
    ("SecretProjection", "LocalObjectReference", &["name"]),
    ("Volume", "VolumeSource", &["", "name"]),
];

/// The named type of a field's value or item.
pub(super) fn named(in_struct: &str, field: &str) -> Option<&'static str> {
    NAMED
        .iter()
        .find(|(outer, name, _)| *outer == in_struct && *name == field)
        .map(|(_, _, named)| *named)
}

/// The struct between an outer one and its field.
pub(super) fn embedded(in_struct: &str, field: &str) -> Option<&'static str> {
    EMBEDDED
        .iter()
        .find(|(outer, _, fields)| {
            let is_listed = fields.contains(&field);
            *outer == in_struct && is_listed != fields[0].is_empty()
        })
        .map(|(_, inner, _)| *inner)
}
