//! Whose a group is: groups that a controller makes are named after a uid, which is drawn in the rehearsal.

use std::collections::BTreeMap;

use api::kind::Kind;
use mirror::NATIVE;
use serde_json::Value;

use super::{Rehearsal, place, said};
use crate::stored;

/// What owns a group and may itself be owned by what people know: they know a vcjob and a batch job by name.
const BETWEEN: &[Kind] = &[
    Kind::Deployment,
    Kind::Pod,
    Kind::ReplicaSet,
    Kind::StatefulSet,
];
/// So many owners above each other are followed; some own themselves.
const DEPTH_MAX: usize = 8;

/// Whoever stands above a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its `apiVersion`.
    pub api_version: String,
    /// Its kind, as it is written in a reference.
    pub kind: String,
    /// Its name, in the group's namespace.
    pub name: String,
}

impl Owner {
    /// Its kind, if it is one that we know.
    pub fn known(&self) -> Option<Kind> {
        Kind::find(&self.api_version, &self.kind)
    }
}

impl Rehearsal {
    /// Who stands above which group: the vcjob or batch job, else whoever is not owned himself.
    pub(super) fn owners(&mut self) -> BTreeMap<(String, String), Owner> {
        let mut above = BTreeMap::new();
        for kind in BETWEEN {
            for object in self.objects(*kind) {
                if let Some(owner) = owner_of(&object) {
                    above.insert(stored::uid(&object).to_owned(), owner.clone());
                }
            }
        }
        let mut owners = BTreeMap::new();
        for (kind, prefix) in [(Kind::PodGroup, ""), (Kind::NativeGroup, NATIVE)] {
            for group in self.objects(kind) {
                let Some(mut owner) = owner_of(&group) else {
                    continue;
                };
                for _ in 0..DEPTH_MAX {
                    match above.get(said(owner, "uid")) {
                        Some(next) => owner = next,
                        None => break,
                    }
                }
                let (namespace, name) = place(&group);
                let of = Owner {
                    api_version: said(owner, "apiVersion").to_owned(),
                    kind: said(owner, "kind").to_owned(),
                    name: said(owner, "name").to_owned(),
                };
                owners.insert((namespace.to_owned(), format!("{prefix}{name}")), of);
            }
        }
        owners
    }
}

/// The reference to the controller, else to any owner.
fn owner_of(object: &Value) -> Option<&Value> {
    let owners = stored::list(&object["metadata"]["ownerReferences"]);
    let controller = owners.iter().find(|owner| owner["controller"] == true);
    controller.or(owners.first())
}
