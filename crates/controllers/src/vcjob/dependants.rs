//! What names a vcjob among its owners, found at once: one step looks for most of it.

use std::sync::Arc;

use api::core::Pod;
use api::kind::Kind;
use api::volcano::Job;
use mirror::{Mirror, Object};

/// Objects that name the job among their owners.
pub(super) struct Dependants<'a> {
    mirror: &'a Mirror,
    /// In the order of their keys.
    objects: Vec<&'a Object>,
}

impl<'a> Dependants<'a> {
    /// Finds them.
    pub(super) fn of(mirror: &'a Mirror, job: &Job) -> Dependants<'a> {
        Dependants {
            mirror,
            objects: mirror.dependants_of(&job.metadata.uid).collect(),
        }
    }

    /// The pods among them, by name.
    pub(super) fn pods(&self) -> impl Iterator<Item = &'a Arc<Pod>> {
        self.objects.iter().filter_map(|object| object.typed())
    }

    /// The object of that key, whosesoever it is. Mostly it is one of the job's, of which there are few
    /// beside the many of all jobs.
    pub(super) fn find(&self, kind: Kind, namespace: &str, name: &str) -> Option<&'a Object> {
        let order = |object: &&Object| {
            let kinds = object.kind().cmp(&kind);
            let namespaces = || object.namespace().cmp(namespace);
            kinds
                .then_with(namespaces)
                .then_with(|| object.name().cmp(name))
        };
        match self.objects.binary_search_by(order) {
            Ok(at) => Some(self.objects[at]),
            Err(_) => self.mirror.find(kind, namespace, name),
        }
    }
}
