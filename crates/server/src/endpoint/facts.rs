//! Objects that rules ask for, as somebody who follows them tells.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use api::admission::Facts;
use api::kind::Kind;
use serde_json::Value;

type Name = (String, String);

/// Objects by kind, namespace and name. Empty until it is told: nobody is to be judged before.
#[derive(Debug, Default)]
pub struct FactTable {
    objects: RwLock<BTreeMap<Kind, BTreeMap<Name, Value>>>,
}

impl FactTable {
    /// All objects of a kind, instead of those known.
    pub fn replace(&self, kind: Kind, objects: Vec<Value>) {
        let objects = objects.into_iter().map(|object| (name(&object), object));
        self.write().insert(kind, objects.collect());
    }

    /// One that is new or changed.
    pub fn apply(&self, kind: Kind, object: Value) {
        let mut all = self.write();
        all.entry(kind).or_default().insert(name(&object), object);
    }

    /// One that is gone.
    pub fn remove(&self, kind: Kind, object: &Value) {
        let mut all = self.write();
        all.entry(kind).or_default().remove(&name(object));
    }

    fn write(&self) -> impl std::ops::DerefMut<Target = BTreeMap<Kind, BTreeMap<Name, Value>>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(object: &Value) -> Name {
    let part = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    (part("namespace").to_owned(), part("name").to_owned())
}

impl Facts for FactTable {
    fn object(&self, kind: Kind, namespace: &str, name: &str) -> Option<Value> {
        let all = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        let key = (namespace.to_owned(), name.to_owned());
        all.get(&kind)?.get(&key).cloned()
    }

    fn list(&self, kind: Kind, namespace: &str) -> Vec<Value> {
        let mut listed = Vec::new();
        self.visit(kind, namespace, &mut |object| listed.push(object.clone()));
        listed
    }

    fn visit(&self, kind: Kind, namespace: &str, see: &mut dyn FnMut(&Value)) {
        let all = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        for ((place, _), object) in all.get(&kind).into_iter().flatten() {
            if namespace.is_empty() || place == namespace {
                see(object);
            }
        }
    }

    fn template_faults(&self, template: &Value) -> Vec<String> {
        store::validation::template_faults(template)
    }
}
