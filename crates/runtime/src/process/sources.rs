//! Where a container's environment and volumes ([`volumes`]) come from: the pod's own fields,
//! ConfigMaps, Secrets, claims. It reads objects through the node's API.

pub(crate) mod volumes;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

use api::core::TextMap;
use api::intent::ObjectKey;
use api::kind::Kind;
use api::quantity::Quantity;
use base64::Engine;
use serde_json::Value;

use super::NodeApi;
use super::env::{Variables, expand, is_name};
use super::pod::{Container, FieldRef, Pod, ResourceFieldRef};

/// What the sources are read from and for.
pub(crate) struct Sources<'a> {
    pub api: &'a dyn NodeApi,
    pub pod: &'a Pod,
    pub address: Ipv4Addr,
    pub host_address: &'a str,
    pub cpu_milli: i64,
    pub memory_bytes: i64,
    /// The pod's own directory.
    pub directory: &'a Path,
}

type Data = BTreeMap<String, Vec<u8>>;

impl Sources<'_> {
    /// The variables that the manifest names, over those given. The text of an error is kubelet's.
    pub(crate) async fn variables(
        &self,
        container: &Container,
        mut variables: Variables,
    ) -> Result<Variables, String> {
        for from in &container.env_from {
            let (kind, object) = match (&from.config_map_ref, &from.secret_ref) {
                (Some(object), _) => (Kind::ConfigMap, object),
                (None, Some(object)) => (Kind::Secret, object),
                (None, None) => continue,
            };
            let data = self.data(kind, &object.name, object.optional).await?;
            for (key, value) in data {
                let name = format!("{}{key}", from.prefix);
                if is_name(&name) {
                    variables.set(&name, String::from_utf8_lossy(&value).into_owned());
                }
            }
        }
        for variable in &container.env {
            let value = match (&variable.value, &variable.value_from) {
                (_, Some(source)) => {
                    if let Some(field) = &source.field_ref {
                        Some(self.field(field)?)
                    } else if let Some(resource) = &source.resource_field_ref {
                        Some(self.resource(resource, container)?)
                    } else if let Some(key) = &source.config_map_key_ref {
                        self.key(Kind::ConfigMap, key).await?
                    } else if let Some(key) = &source.secret_key_ref {
                        self.key(Kind::Secret, key).await?
                    } else {
                        None
                    }
                }
                (Some(value), None) => Some(expand(value, variables.known())),
                (None, None) => Some(String::new()),
            };
            if let Some(value) = value {
                variables.set(&variable.name, value);
            }
        }
        Ok(variables)
    }

    async fn key(&self, kind: Kind, wanted: &super::pod::KeyRef) -> Result<Option<String>, String> {
        let data = self.data(kind, &wanted.name, wanted.optional).await?;
        match data.get(&wanted.key) {
            Some(value) => Ok(Some(String::from_utf8_lossy(value).into_owned())),
            None if wanted.optional => Ok(None),
            None => Err(format!(
                "couldn't find key {} in {} {}/{}",
                wanted.key,
                kind.row().name,
                self.pod.metadata.namespace,
                wanted.name
            )),
        }
    }

    async fn object(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, String> {
        let key = ObjectKey::new(kind, namespace, name);
        self.api.read(key).await.map_err(|error| error.to_string())
    }

    async fn data(&self, kind: Kind, name: &str, optional: bool) -> Result<Data, String> {
        let found = self
            .object(kind, &self.pod.metadata.namespace, name)
            .await?;
        let Some(object) = found else {
            let word = kind.row().name.to_lowercase();
            return if optional {
                Ok(Data::new())
            } else {
                Err(format!("{word} {name:?} not found"))
            };
        };
        let mut data = Data::new();
        let coded = if kind == Kind::Secret {
            "data"
        } else {
            "binaryData"
        };
        for (key, value) in object[coded].as_object().into_iter().flatten() {
            let text = value.as_str().unwrap_or_default();
            let bytes = base64::engine::general_purpose::STANDARD
                .decode(text)
                .map_err(|error| format!("key {key} of {name} is not base64: {error}"))?;
            data.insert(key.clone(), bytes);
        }
        if kind == Kind::ConfigMap {
            for (key, value) in object["data"].as_object().into_iter().flatten() {
                let text = value.as_str().unwrap_or_default();
                data.insert(key.clone(), text.as_bytes().to_vec());
            }
        }
        Ok(data)
    }

    fn field(&self, field: &FieldRef) -> Result<String, String> {
        let meta = &self.pod.metadata;
        let path = field.field_path.as_str();
        let lines = |map: &TextMap| {
            let lines = map.iter().map(|(key, value)| format!("{key}={value:?}"));
            lines.collect::<Vec<_>>().join("\n")
        };
        let text = match path {
            "metadata.name" => meta.name.to_string(),
            "metadata.namespace" => meta.namespace.to_string(),
            "metadata.uid" => meta.uid.to_string(),
            "metadata.labels" => lines(&meta.labels),
            "metadata.annotations" => lines(&meta.annotations),
            "spec.nodeName" => self.pod.spec.node_name.clone(),
            "spec.serviceAccountName" => self.pod.spec.service_account_name.clone(),
            "status.hostIP" | "status.hostIPs" => self.host_address.to_owned(),
            "status.podIP" | "status.podIPs" => self.address.to_string(),
            _ => {
                let one = |prefix: &str| path.strip_prefix(prefix)?.strip_suffix("']");
                let found = if let Some(key) = one("metadata.labels['") {
                    meta.labels.get(key)
                } else if let Some(key) = one("metadata.annotations['") {
                    meta.annotations.get(key)
                } else {
                    return Err(format!("unsupported fieldPath: {path}"));
                };
                found.map(|value| value.to_string()).unwrap_or_default()
            }
        };
        Ok(text)
    }

    fn resource(&self, wanted: &ResourceFieldRef, own: &Container) -> Result<String, String> {
        let container = if wanted.container_name.is_empty() {
            Some(own)
        } else {
            self.pod.container(&wanted.container_name)
        };
        let container =
            container.ok_or_else(|| format!("container {} not found", wanted.container_name))?;
        let (list, name) = wanted
            .resource
            .split_once('.')
            .ok_or_else(|| format!("unsupported resource {}", wanted.resource))?;
        let resources = &container.resources;
        let set = match list {
            "limits" => resources.limits.get(name),
            "requests" => resources.requests.get(name),
            _ => return Err(format!("unsupported resource {}", wanted.resource)),
        };
        let amount = set.and_then(quantity);
        let divisor = quantity(&wanted.divisor);
        let share = |amount: i64, divisor: i64| {
            let divisor = i128::from(divisor.max(1));
            ((i128::from(amount) + divisor - 1) / divisor).to_string()
        };
        if name == "cpu" {
            let amount = amount.map_or(self.default_of(list, self.cpu_milli), |q| q.milli_value());
            return Ok(share(
                amount,
                divisor.map_or(1_000, |q| unit(q.milli_value(), 1_000)),
            ));
        }
        let amount = amount.map_or(self.default_of(list, self.memory_bytes), |q| q.value());
        Ok(share(amount, divisor.map_or(1, |q| unit(q.value(), 1))))
    }

    fn default_of(&self, list: &str, allocatable: i64) -> i64 {
        if list == "limits" { allocatable } else { 0 }
    }
}

fn unit(divisor: i64, one: i64) -> i64 {
    if divisor == 0 { one } else { divisor }
}

pub(crate) fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::parse(text).ok(),
        Value::Number(number) => Quantity::parse(&number.to_string()).ok(),
        _ => None,
    }
}
