//! What every plane has: namespaces, queues, a storage class, priorities, its own Service.

use std::collections::BTreeMap;

use api::core::system_priority;
use api::time::Time;
use api::volcano::first_queues;
use serde_json::{Value, json};

use crate::crd::Crd;
use crate::draft::Draft;
use crate::path::Effect;
use crate::read::key_of;
use crate::request::{Begin, Commit, Response};
use crate::status::Outcome;
use crate::store::Store;
use crate::strategy;
use crate::wire::NATIVE_GROUP;
use crate::write::text;

/// The provisioner of the default storage class: volumes are directories.
pub const DIRECTORY_PROVISIONER: &str = api::disk::DRIVER;

impl Store {
    /// Ends loading: serves the definitions found, and makes the objects that every plane has and
    /// this one lacks. The commit must be journaled and finished before anything else.
    ///
    /// Definitions that this program brings are its own: what an earlier program stored under
    /// their names is replaced. Users' definitions stay as they are.
    pub fn start(&mut self, now: Time) -> Option<Commit> {
        let wire = self.wire.clone();
        // Those known to be as this build brings them are not even read.
        let specs = self.specs.as_ref();
        let stored = self.stored_definitions().map(|(name, entry)| {
            let spec = specs.and_then(|specs| specs.get(name));
            let is_shipped = spec.is_some_and(|spec| entry.has_spec(spec));
            (name.to_owned(), (!is_shipped).then(|| entry.value()))
        });
        let mut stored: BTreeMap<String, Option<Value>> = stored.collect();
        self.end_history();
        self.age_events(now);
        let mut draft = Draft::with(Effect::Real);
        for crd in wire.crds() {
            match stored.remove(&crd.name()) {
                Some(None) => {}
                Some(Some(old)) => self.renew(&mut draft, crd.object(&wire), old, now),
                None => {
                    let mut object = crd.object(&wire);
                    crate::definitions::establish(&mut object, now);
                    self.provide(&mut draft, object, now);
                }
            }
        }
        for object in stored.values().flatten() {
            // One that was stored compiled then; if a newer program refuses it, its objects stay
            // in the journal and the others are served. Native groups wait for their setting.
            let is_native = object["spec"]["group"] == NATIVE_GROUP;
            if !is_native
                && crate::crd::is_true(object, "Established")
                && let Ok(mut crd) = Crd::compile(object, &wire)
            {
                crd.take_status(object);
                self.serve(crd);
            }
        }
        self.read_hooks();
        for object in first_objects() {
            self.provide(&mut draft, object, now);
        }
        self.index_loaded_access();
        self.provide_access(&mut draft, now);
        match self.commit(draft, Response::text(200, "")) {
            Begin::Commit(commit) => Some(commit),
            _ => None,
        }
    }

    /// Gives a stored definition the spec that this program brings.
    fn renew(&mut self, draft: &mut Draft, shipped: Value, mut stored: Value, now: Time) {
        if stored["spec"] == shipped["spec"] {
            return;
        }
        let Some(id) = self
            .registry
            .find("apiextensions.k8s.io", "customresourcedefinitions")
        else {
            return;
        };
        stored["spec"] = shipped["spec"].clone();
        strategy::add_generation(&mut stored);
        crate::definitions::establish(&mut stored, now);
        let key = key_of("", &text(&stored["metadata"]["name"]));
        draft.put(self, id, &key, stored);
    }

    /// Makes an object unless it is there.
    fn provide(&mut self, draft: &mut Draft, mut object: Value, now: Time) {
        let api_version = text(&object["apiVersion"]);
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let kind = text(&object["kind"]);
        let Some((id, row)) = self
            .registry
            .served()
            .find(|(_, row)| *row.group == *group && *row.kind == kind)
            .map(|(id, row)| (id, row.clone()))
        else {
            return;
        };
        let key = key_of(
            &text(&object["metadata"]["namespace"]),
            &text(&object["metadata"]["name"]),
        );
        if self.shelf(id).latest(&key).is_some() {
            return;
        }
        if group != "apiextensions.k8s.io" {
            strategy::prepare_create(&row, &mut object);
            // The bodies below are in the form of their schemas; a test says so.
            let shaped: Outcome<()> = self.shape(id, &row.storage_version, &mut object);
            debug_assert!(shaped.is_ok(), "{object}");
        }
        object["metadata"]["uid"] = json!(self.draw_uid());
        object["metadata"]["creationTimestamp"] = json!(now.seconds_text());
        if strategy::counts_generations(&row) {
            object["metadata"]["generation"] = json!(1);
        }
        if group == "scheduling.volcano.sh" {
            object["status"] = json!({ "state": "Open" });
        }
        if group.ends_with("volcano.sh") || group == "apiextensions.k8s.io" {
            draft.put(self, id, &key, object);
            return;
        }
        let mut nothing = self.zero_object(&row);
        nothing["apiVersion"] = object["apiVersion"].clone();
        nothing["kind"] = object["kind"].clone();
        // What is handed out is nobody's.
        for field in ["clusterIPs", "ipFamilies"] {
            if !object["spec"][field].is_null() {
                nothing["spec"][field] = object["spec"][field].clone();
            }
        }
        draft.put_by_server(self, id, &key, (&nothing, object), "", now);
    }
}

fn first_objects() -> Vec<Value> {
    let mut objects: Vec<Value> = ["default", "kube-node-lease", "kube-public", "kube-system"]
        .iter()
        .map(
            |name| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }),
        )
        .collect();
    for (name, description) in [
        (
            "system-node-critical",
            "Used for system critical pods that must not be moved from their current node.",
        ),
        (
            "system-cluster-critical",
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
    ] {
        objects.push(json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": { "name": name },
            "value": system_priority(name),
            "description": description,
            "preemptionPolicy": "PreemptLowerPriority",
        }));
    }
    objects.push(json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": "standard",
            "annotations": { crate::admission::DEFAULT_CLASS: "true" },
        },
        "provisioner": DIRECTORY_PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }));
    objects.push(json!({
        "apiVersion": "snapshot.storage.k8s.io/v1",
        "kind": "VolumeSnapshotClass",
        "metadata": {
            "name": "standard",
            "annotations": { api::snapshot::DEFAULT_CLASS: "true" },
        },
        "driver": DIRECTORY_PROVISIONER,
        "deletionPolicy": "Delete",
    }));
    objects.push(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": { "component": "apiserver", "provider": "kubernetes" },
        },
        "spec": {
            "clusterIP": "10.96.0.1",
            "clusterIPs": ["10.96.0.1"],
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{ "name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443 }],
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
    }));
    objects.extend(first_queues());
    objects
}
