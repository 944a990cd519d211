//! Classes that objects without one get: of storage for claims, of controllers for Ingresses.

use std::cmp::Reverse;

use api::kind::Kind;
use serde_json::Value;

use super::DEFAULT_CLASS;
use crate::annotations::{INGRESS_CLASS, STORAGE_CLASS};
use crate::registry::ResourceId;
use crate::store::Store;
use crate::write::text;

/// Marks the class that Ingresses without one get.
const DEFAULT_INGRESS: &str = "ingressclass.kubernetes.io/is-default-class";

impl Store {
    pub(super) fn choose_storage_class(&self, claim: &mut Value) {
        let id = self.registry.known(Kind::StorageClass);
        self.choose_class(
            id,
            claim,
            ("storageClassName", STORAGE_CLASS),
            DEFAULT_CLASS,
        );
    }

    pub(super) fn choose_ingress_class(&self, ingress: &mut Value) {
        let id = self.registry.find("networking.k8s.io", "ingressclasses");
        let named = ("ingressClassName", INGRESS_CLASS);
        self.choose_class(id, ingress, named, DEFAULT_INGRESS);
    }

    /// The newest of the classes that are marked as default, the first by name of those of one second.
    fn choose_class(
        &self,
        id: Option<ResourceId>,
        object: &mut Value,
        (field, annotation): (&str, &str),
        mark: &str,
    ) {
        let is_named = !object["spec"][field].is_null()
            || !object["metadata"]["annotations"][annotation].is_null();
        let Some(id) = id.filter(|_| !is_named) else {
            return;
        };
        let classes = self.shelf(id).latest_range("").into_iter();
        let newest = classes
            .map(|(_, entry)| entry.value())
            .filter(|class| class["metadata"]["annotations"][mark] == "true")
            .min_by_key(|class| {
                let meta = &class["metadata"];
                (
                    Reverse(text(&meta["creationTimestamp"])),
                    text(&meta["name"]),
                )
            });
        if let Some(class) = newest {
            object["spec"][field] = class["metadata"]["name"].clone();
        }
    }
}
