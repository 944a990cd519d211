//! The admission rules of Kubernetes itself that every plane has on: namespace lifecycle, default
//! service account and its token, pod priority, default tolerations, classes of runtimes, default
//! classes of storage and Ingresses, ranges and quotas.

mod account;
mod classes;
mod limits;
mod quota;
mod runtime;
mod security;

use std::sync::Arc;

use api::kind::Kind;
use api::quantity::Quantity;
use serde_json::{Value, json};

use crate::entry::Entry;
use crate::read::key_of;
use crate::request::User;
use crate::status::{About, Outcome, Refused};
use crate::store::Store;
use crate::strategy;
use crate::write::{Writing, text};

/// Marks the storage class that claims without one get.
pub const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
/// Taints that a pod bears for five minutes unless it says otherwise.
const BORNE_TAINTS: &[&str] = &[
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
];
/// How long, in seconds.
const BORNE_SECONDS: i64 = 300;

impl Store {
    /// The namespace must exist and stay.
    pub(crate) fn enter_namespace(&self, writing: &Writing<'_>, object: &Value) -> Outcome<()> {
        let namespace = &writing.target.namespace;
        if !writing.row.is_namespaced() {
            return Ok(());
        }
        let Some(found) = self.latest_entry(Kind::Namespace, "", namespace) else {
            return Err(Refused::not_found(About {
                group: "",
                plural: "namespaces",
                name: namespace,
            }));
        };
        // Every object that is made asks this.
        if !found.mentions("\"deletionTimestamp\"")
            || found.value()["metadata"]["deletionTimestamp"].is_null()
        {
            return Ok(());
        }
        let name = text(&object["metadata"]["name"]);
        Err(Refused::terminating(writing.about(&name), namespace))
    }

    /// The object that the next write sees.
    pub(crate) fn latest_of(&self, kind: Kind, namespace: &str, name: &str) -> Option<Value> {
        Some(self.latest_entry(kind, namespace, name)?.value())
    }

    /// The same, not read yet.
    pub(crate) fn latest_entry(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
    ) -> Option<&Arc<Entry>> {
        let id = self.registry.known(kind)?;
        self.shelf(id).latest(&key_of(namespace, name))
    }

    pub(crate) fn admit_create(
        &mut self,
        writing: &Writing<'_>,
        object: &mut Value,
    ) -> Outcome<()> {
        match writing.row.known {
            Some(Kind::Pod) => self.admit_pod(writing, object),
            Some(Kind::Node) => {
                taint_new(object);
                Ok(())
            }
            Some(Kind::PersistentVolume) => {
                protect(object, "kubernetes.io/pv-protection");
                Ok(())
            }
            Some(Kind::VolumeAttributesClass) => {
                protect(object, "kubernetes.io/vac-protection");
                Ok(())
            }
            Some(Kind::PersistentVolumeClaim) => {
                protect(object, "kubernetes.io/pvc-protection");
                self.choose_storage_class(object);
                Ok(())
            }
            Some(Kind::PriorityClass) => self.one_default_priority(writing, object),
            _ if &*writing.row.shelf == strategy::CERTIFICATES => {
                name_requester(&writing.request.user, &mut object["spec"]);
                Ok(())
            }
            _ if &*writing.row.shelf == "networking.k8s.io/ingresses" => {
                self.choose_ingress_class(object);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn admit_update(
        &self,
        writing: &Writing<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Outcome<()> {
        if writing.row.known == Some(Kind::PriorityClass) {
            return self.one_default_priority(writing, object);
        }
        if writing.row.known == Some(Kind::Pod) {
            bear_taints(&mut object["spec"]);
            for key in ["priority", "preemptionPolicy"] {
                if object["spec"][key].is_null() && !old["spec"][key].is_null() {
                    object["spec"][key] = old["spec"][key].clone();
                }
            }
        }
        Ok(())
    }

    /// A claim grows only once it is bound, and only where its class says so.
    pub(crate) fn may_grow(
        &self,
        writing: &Writing<'_>,
        claim: &Value,
        old: &Value,
    ) -> Outcome<()> {
        if writing.row.known != Some(Kind::PersistentVolumeClaim) {
            return Ok(());
        }
        let storage = |claim: &Value| {
            let amount = text(&claim["spec"]["resources"]["requests"]["storage"]);
            Quantity::parse(&amount).ok()
        };
        let (Some(asked), Some(had)) = (storage(claim), storage(old)) else {
            return Ok(());
        };
        if asked.nanos() <= had.nanos() {
            return Ok(());
        }
        let class = text(&old["spec"]["storageClassName"]);
        let why = if old["status"]["phase"] != "Bound" {
            "Only bound persistent volume claims can be expanded"
        } else if self
            .latest_of(Kind::StorageClass, "", &class)
            .is_some_and(|class| class["allowVolumeExpansion"] == true)
        {
            return Ok(());
        } else {
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
        };
        let name = text(&old["metadata"]["name"]);
        Err(Refused::forbidden(writing.about(&name), why))
    }

    fn admit_pod(&mut self, writing: &Writing<'_>, pod: &mut Value) -> Outcome<()> {
        let spec = &mut pod["spec"];
        if !spec.is_object() {
            return Ok(());
        }
        bear_taints(spec);
        if self.fill_in_limits(&writing.target.namespace, pod) {
            strategy::prepare_create(&writing.row, pod);
        }
        self.admit_account(writing, pod)?;
        self.set_priority(writing, pod)?;
        self.admit_runtime(writing, pod)
    }

    /// At most one class is that of pods without one.
    fn one_default_priority(&self, writing: &Writing<'_>, class: &Value) -> Outcome<()> {
        let name = &class["metadata"]["name"];
        if class["globalDefault"] != true {
            return Ok(());
        }
        match self.global_default_priority() {
            Some(other) if other["metadata"]["name"] != *name => {
                let other = text(&other["metadata"]["name"]);
                let why = format!(
                    "PriorityClass {other} is already marked as default. Only one default can exist"
                );
                Err(Refused::forbidden(writing.about(&text(name)), &why))
            }
            _ => Ok(()),
        }
    }

    fn set_priority(&self, writing: &Writing<'_>, pod: &mut Value) -> Outcome<()> {
        let name = text(&pod["metadata"]["name"]);
        let wanted = text(&pod["spec"]["priorityClassName"]);
        let class = if wanted.is_empty() {
            self.global_default_priority()
        } else {
            let found = self.latest_of(Kind::PriorityClass, "", &wanted);
            Some(found.ok_or_else(|| {
                Refused::forbidden(
                    writing.about(&name),
                    &format!("no PriorityClass with name {wanted} was found"),
                )
            })?)
        };
        let (value, policy) = match &class {
            Some(class) => {
                pod["spec"]["priorityClassName"] = class["metadata"]["name"].clone();
                (
                    class["value"].as_i64().unwrap_or(0),
                    class["preemptionPolicy"]
                        .as_str()
                        .unwrap_or("PreemptLowerPriority"),
                )
            }
            None => (0, "PreemptLowerPriority"),
        };
        if let Some(given) = pod["spec"]["priority"]
            .as_i64()
            .filter(|given| *given != value)
        {
            return Err(Refused::forbidden(
                writing.about(&name),
                &format!(
                    "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
                ),
            ));
        }
        pod["spec"]["priority"] = json!(value);
        let given = pod["spec"]["preemptionPolicy"].as_str();
        if let Some(given) = given.filter(|given| *given != policy) {
            let why = format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
            );
            return Err(Refused::forbidden(writing.about(&name), &why));
        }
        pod["spec"]["preemptionPolicy"] = json!(policy);
        Ok(())
    }

    fn global_default_priority(&self) -> Option<Value> {
        let id = self.registry.known(Kind::PriorityClass)?;
        self.shelf(id)
            .latest_range("")
            .into_iter()
            // Every pod asks this, and hardly a class says it.
            .filter(|(_, entry)| entry.mentions("\"globalDefault\""))
            .map(|(_, entry)| entry.value())
            .filter(|class| class["globalDefault"] == true)
            .min_by_key(|class| class["value"].as_i64().unwrap_or(0))
    }
}

/// Who asks for a certificate is who sends the request, whatever it says.
fn name_requester(user: &User, spec: &mut Value) {
    let Some(spec) = spec.as_object_mut() else {
        return;
    };
    for part in ["extra", "groups", "uid", "username"] {
        spec.remove(part);
    }
    spec.insert("username".to_owned(), json!(user.name));
    if !user.uid.is_empty() {
        spec.insert("uid".to_owned(), json!(user.uid));
    }
    if !user.groups.is_empty() {
        spec.insert("groups".to_owned(), json!(user.groups));
    }
    if !user.extra.is_empty() {
        spec.insert("extra".to_owned(), json!(user.extra));
    }
}

/// Keeps an object from going while it is in use; a controller takes the finalizer away.
fn protect(object: &mut Value, finalizer: &str) {
    let finalizers = &mut object["metadata"]["finalizers"];
    if !finalizers.is_array() {
        *finalizers = json!([]);
    }
    if let Some(list) = finalizers.as_array_mut()
        && !list.iter().any(|one| one == finalizer)
    {
        list.push(json!(finalizer));
    }
}

/// Keeps pods off a new node until the node controller has read what it says of itself.
fn taint_new(node: &mut Value) {
    const NOT_READY: &str = "node.kubernetes.io/not-ready";
    if !node["spec"].is_object() {
        node["spec"] = json!({});
    }
    let taints = &mut node["spec"]["taints"];
    if !taints.is_array() {
        *taints = json!([]);
    }
    if let Some(list) = taints.as_array_mut() {
        let is_there = |one: &Value| one["key"] == NOT_READY && one["effect"] == "NoSchedule";
        if !list.iter().any(is_there) {
            list.push(json!({ "key": NOT_READY, "effect": "NoSchedule" }));
        }
    }
}

/// Adds the tolerations that every pod has.
fn bear_taints(spec: &mut Value) {
    if !spec["tolerations"].is_array() {
        spec["tolerations"] = json!([]);
    }
    let Some(list) = spec["tolerations"].as_array_mut() else {
        return;
    };
    for taint in BORNE_TAINTS {
        let is_borne = list.iter().any(|one| {
            let key = one["key"].as_str().unwrap_or_default();
            let effect = one["effect"].as_str().unwrap_or_default();
            (key == *taint || key.is_empty()) && matches!(effect, "" | "NoExecute")
        });
        if !is_borne {
            list.push(json!({
                "key": taint,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": BORNE_SECONDS,
            }));
        }
    }
}
