//! A pod as the node reads it: the parts of its spec that decide how its containers run.

use std::collections::BTreeMap;

use api::meta::{ObjectMeta, null_as_default};
use serde::Deserialize;
use serde_json::Value;

macro_rules! wire {
    ($($(#[$doc:meta])* struct $name:ident { $($(#[$meta:meta])* $field:ident : $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
            #[serde(rename_all = "camelCase", default)]
            pub(crate) struct $name {
                $(
                    #[serde(deserialize_with = "null_as_default")]
                    $(#[$meta])*
                    pub(crate) $field: $type,
                )*
            }
        )*
    };
}

wire! {
    /// The pod.
    struct Pod {
        metadata: ObjectMeta,
        spec: Spec,
    }
    /// `PodSpec`.
    struct Spec {
        containers: Vec<Container>,
        init_containers: Vec<Container>,
        volumes: Vec<Volume>,
        restart_policy: Option<String>,
        termination_grace_period_seconds: Option<i64>,
        active_deadline_seconds: Option<i64>,
        hostname: String,
        subdomain: String,
        host_network: bool,
        host_aliases: Vec<HostAlias>,
        node_name: String,
        service_account_name: String,
        security_context: SecurityContext,
        dns_config: DnsConfig,
        dns_policy: String,
        enable_service_links: Option<bool>,
    }
    /// Extra names in `/etc/hosts`.
    struct HostAlias {
        ip: String,
        hostnames: Vec<String>,
    }
    /// Extra settings of name resolution.
    struct DnsConfig {
        nameservers: Vec<String>,
        searches: Vec<String>,
        options: Vec<NamedValue>,
    }
    /// A name with a value.
    struct NamedValue {
        name: String,
        value: Option<String>,
    }
    /// Of a pod or a container.
    struct SecurityContext {
        run_as_user: Option<u32>,
        run_as_group: Option<u32>,
        fs_group: Option<u32>,
    }
    /// `Container`.
    struct Container {
        name: String,
        image: String,
        command: Vec<String>,
        args: Vec<String>,
        working_dir: String,
        env: Vec<EnvVar>,
        env_from: Vec<EnvFrom>,
        resources: Resources,
        volume_mounts: Vec<VolumeMount>,
        ports: Vec<ContainerPort>,
        restart_policy: Option<String>,
        liveness_probe: Option<Probe>,
        readiness_probe: Option<Probe>,
        startup_probe: Option<Probe>,
        lifecycle: Lifecycle,
        security_context: SecurityContext,
        termination_message_path: String,
        termination_message_policy: String,
    }
    /// `ResourceRequirements`.
    struct Resources {
        limits: BTreeMap<String, Value>,
        requests: BTreeMap<String, Value>,
    }
    /// A named port.
    struct ContainerPort {
        name: String,
        container_port: u16,
    }
    /// Where a volume appears.
    struct VolumeMount {
        name: String,
        mount_path: String,
        sub_path: String,
        sub_path_expr: String,
        read_only: bool,
    }
    /// A variable.
    struct EnvVar {
        name: String,
        value: Option<String>,
        value_from: Option<EnvSource>,
    }
    /// Where a variable's value comes from.
    struct EnvSource {
        field_ref: Option<FieldRef>,
        resource_field_ref: Option<ResourceFieldRef>,
        config_map_key_ref: Option<KeyRef>,
        secret_key_ref: Option<KeyRef>,
    }
    /// A field of the pod.
    struct FieldRef {
        field_path: String,
    }
    /// A container's request or limit.
    struct ResourceFieldRef {
        container_name: String,
        resource: String,
        divisor: Value,
    }
    /// A key of a ConfigMap or Secret.
    struct KeyRef {
        name: String,
        key: String,
        optional: bool,
    }
    /// All keys of a ConfigMap or Secret as variables.
    struct EnvFrom {
        prefix: String,
        config_map_ref: Option<ObjectRef>,
        secret_ref: Option<ObjectRef>,
    }
    /// A ConfigMap or Secret.
    struct ObjectRef {
        name: String,
        optional: bool,
    }
    /// Hooks.
    struct Lifecycle {
        post_start: Option<Handler>,
        pre_stop: Option<Handler>,
    }
    /// What a hook does, or a probe asks.
    struct Handler {
        exec: Option<ExecAction>,
        http_get: Option<HttpGet>,
        tcp_socket: Option<TcpSocket>,
        sleep: Option<SleepAction>,
    }
    /// A command inside the container.
    struct ExecAction {
        command: Vec<String>,
    }
    /// A request.
    struct HttpGet {
        path: String,
        port: Value,
        host: String,
        scheme: String,
        http_headers: Vec<NamedValue>,
    }
    /// A connection.
    struct TcpSocket {
        port: Value,
        host: String,
    }
    /// A pause.
    struct SleepAction {
        seconds: u64,
    }
    /// A probe.
    struct Probe {
        exec: Option<ExecAction>,
        http_get: Option<HttpGet>,
        tcp_socket: Option<TcpSocket>,
        grpc: Option<Grpc>,
        initial_delay_seconds: u64,
        period_seconds: u64,
        timeout_seconds: u64,
        success_threshold: u32,
        failure_threshold: u32,
        termination_grace_period_seconds: Option<i64>,
    }
    /// A health service.
    struct Grpc {
        port: u16,
    }
    /// A volume.
    struct Volume {
        name: String,
        empty_dir: Option<EmptyDir>,
        host_path: Option<HostPath>,
        config_map: Option<ConfigMapVolume>,
        secret: Option<SecretVolume>,
        projected: Option<Projected>,
        #[serde(rename = "downwardAPI")]
        downward_api: Option<DownwardVolume>,
        persistent_volume_claim: Option<ClaimVolume>,
        ephemeral: Option<Value>,
    }
    /// An empty directory.
    struct EmptyDir {
        medium: String,
    }
    /// A directory of the host.
    struct HostPath {
        path: String,
        #[serde(rename = "type")]
        kind: String,
    }
    /// Files from a ConfigMap.
    struct ConfigMapVolume {
        name: String,
        items: Vec<KeyPath>,
        default_mode: Option<u32>,
        optional: bool,
    }
    /// Files from a Secret.
    struct SecretVolume {
        secret_name: String,
        items: Vec<KeyPath>,
        default_mode: Option<u32>,
        optional: bool,
    }
    /// A key that becomes a file.
    struct KeyPath {
        key: String,
        path: String,
        mode: Option<u32>,
    }
    /// Several sources in one directory.
    struct Projected {
        sources: Vec<ProjectedSource>,
        default_mode: Option<u32>,
    }
    /// One of them.
    struct ProjectedSource {
        config_map: Option<ProjectedObject>,
        secret: Option<ProjectedObject>,
        #[serde(rename = "downwardAPI")]
        downward_api: Option<DownwardVolume>,
        service_account_token: Option<TokenSource>,
    }
    /// A ConfigMap or Secret among them.
    struct ProjectedObject {
        name: String,
        items: Vec<KeyPath>,
        optional: bool,
    }
    /// A token among them.
    struct TokenSource {
        audience: String,
        expiration_seconds: Option<i64>,
        path: String,
    }
    /// The pod's own fields as files.
    struct DownwardVolume {
        items: Vec<DownwardFile>,
        default_mode: Option<u32>,
    }
    /// One of them.
    struct DownwardFile {
        path: String,
        field_ref: Option<FieldRef>,
        resource_field_ref: Option<ResourceFieldRef>,
        mode: Option<u32>,
    }
    /// A claim.
    struct ClaimVolume {
        claim_name: String,
        read_only: bool,
    }
}

impl Pod {
    /// Reads a pod; the text of an error names the field.
    pub(crate) fn read(object: &Value) -> Result<Pod, String> {
        Pod::deserialize(object).map_err(|error| error.to_string())
    }

    /// The host name inside: `spec.hostname`, else the pod's name, cut to 63 letters.
    pub(crate) fn hostname(&self) -> String {
        let name = if self.spec.hostname.is_empty() {
            &*self.metadata.name
        } else {
            &self.spec.hostname
        };
        let cut = name.char_indices().nth(63).map_or(name.len(), |(at, _)| at);
        name[..cut].trim_end_matches(['-', '.']).to_owned()
    }

    /// A container or init container by name.
    pub(crate) fn container(&self, name: &str) -> Option<&Container> {
        let all = self
            .spec
            .init_containers
            .iter()
            .chain(&self.spec.containers);
        all.into_iter().find(|container| container.name == name)
    }

    /// Seconds between the wish to end and the end.
    pub(crate) fn grace_seconds(&self) -> i64 {
        self.metadata
            .deletion_grace_period_seconds
            .or(self.spec.termination_grace_period_seconds)
            .unwrap_or(30)
            .max(0)
    }
}

impl Container {
    /// Whether it is an init container that keeps running beside the others.
    pub(crate) fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }

    /// A port by number or by name.
    pub(crate) fn port(&self, wanted: &Value) -> Option<u16> {
        match wanted {
            Value::Number(number) => number.as_u64().and_then(|port| u16::try_from(port).ok()),
            Value::String(name) => name.parse().ok().or_else(|| {
                let named = self.ports.iter().find(|port| port.name == *name);
                named.map(|port| port.container_port)
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_is_read_with_its_nulls_and_unknown_fields() {
        let pod = Pod::read(&json!({
            "metadata": {"name": "a.b", "uid": "u"},
            "spec": {"containers": [{"name": "c", "env": null, "ports": [{"name": "web", "containerPort": 80}]}],
                     "new": 1, "volumes": [{"name": "v", "downwardAPI": {"items": []}}]},
        }))
        .unwrap();
        assert_eq!(pod.hostname(), "a.b");
        assert_eq!(pod.spec.containers[0].port(&json!("web")), Some(80));
        assert_eq!(pod.spec.containers[0].port(&json!(70000)), None);
        assert!(pod.spec.volumes[0].downward_api.is_some());
        assert!(Pod::read(&json!({"spec": {"containers": 3}})).is_err());
    }
}
