//! One API-time question: may this request pass, and as what?
//!
//! `store` asks between decoding and writing; `review` answers with the rules of each kind.

use serde_json::Value;

use crate::kind::Kind;

/// What the request wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A changed object (update or patch).
    Update,
    /// A deletion.
    Delete,
}

/// The question.
#[derive(Clone, Debug)]
pub struct Review<'a> {
    /// What is wanted.
    pub operation: Operation,
    /// The object's kind.
    pub kind: Kind,
    /// Subresource, empty for the object itself.
    pub subresource: &'a str,
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: &'a str,
    /// Name; may be empty on create with generateName.
    pub name: &'a str,
    /// The object as it would be stored (create, update).
    pub object: Option<&'a Value>,
    /// The object as it is stored (update, delete).
    pub old: Option<&'a Value>,
    /// The authenticated user's name.
    pub user: &'a str,
    /// Nothing will be written.
    pub dry_run: bool,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Passes; `object` is the mutated object where a rule changed it.
    Allowed {
        /// The object after defaulting, if it changed.
        object: Option<Value>,
        /// Texts for `Warning` headers.
        warnings: Vec<String>,
    },
    /// Refused with an HTTP code and upstream's text.
    Denied {
        /// HTTP status code; an API server answers 400 where a webhook gives none.
        code: u16,
        /// What the user reads.
        message: String,
    },
}

/// Facts about live objects that a rule may need.
///
/// Implemented by the caller over its own objects; a rule never sees a client.
pub trait Facts {
    /// The stored object of this kind, namespace and name.
    fn object(&self, kind: Kind, namespace: &str, name: &str) -> Option<Value>;
    /// All stored objects of this kind (in all namespaces for an empty one).
    fn list(&self, kind: Kind, namespace: &str) -> Vec<Value>;
    /// Shows all stored objects of this kind, where nobody needs a copy of them.
    fn visit(&self, kind: Kind, namespace: &str, see: &mut dyn FnMut(&Value)) {
        for object in self.list(kind, namespace) {
            see(&object);
        }
    }
    /// What Kubernetes would refuse of this pod template once its defaults are set: complaints whose
    /// paths begin at `template`.
    fn template_faults(&self, template: &Value) -> Vec<String>;
}
