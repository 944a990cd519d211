//! One wanted write, as a value. Pure rooms return intents; shells perform them, at least once.
//!
//! Every mutating intent is fenced: it carries uid *and* resourceVersion, or binds an unbound pod,
//! or creates under a deterministic name (`specs`: law 3 and "Fencing" of the architecture).

use std::borrow::Cow;

use serde_json::Value;

use crate::core::TextMap;
use crate::kind::Kind;
use crate::shared::Word;

/// Names one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Its kind.
    pub kind: Kind,
    /// Empty for cluster-scoped kinds.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

impl ObjectKey {
    /// A key from its parts.
    pub fn new(kind: Kind, namespace: &str, name: &str) -> ObjectKey {
        ObjectKey {
            kind,
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// One wanted write.
#[derive(Clone, Debug, PartialEq)]
pub struct Intent {
    /// The object to be written.
    pub target: ObjectKey,
    /// What is to become of it, with the precondition that fences it.
    pub action: Action,
}

/// The kinds of write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Makes the object `body` (with apiVersion, kind and metadata) under its deterministic name.
    /// "Already exists" counts as success when the existing object has the same controller uid.
    Create {
        /// The whole object.
        body: Value,
    },
    /// JSON merge patch (RFC 7396) of the object or of its `status` subresource.
    Patch {
        /// The object's uid; another uid refuses the write.
        uid: Box<str>,
        /// The version that the decision was based on; another one refuses the write.
        resource_version: Word,
        /// Which part is written.
        part: Part,
        /// The merge patch, without preconditions: the performer adds them under `metadata`.
        patch: Value,
    },
    /// Deletes the object.
    Delete {
        /// The object's uid; another uid refuses the write.
        uid: Box<str>,
        /// The version that the decision was based on; another one refuses the write. `None` for a kubelet
        /// alone: a pod that has ended on its node goes, whatever is said of it meanwhile.
        resource_version: Option<Word>,
        /// Grace in seconds; `None` leaves the kind's own default.
        grace_seconds: Option<i64>,
        /// What becomes of dependants.
        propagation: Propagation,
    },
    /// Binds an unbound pod to a node (`pods/binding`); refused if it is bound already.
    Bind {
        /// The pod's uid.
        uid: Box<str>,
        /// The node's name.
        node: Box<str>,
        /// Annotations that the pod gets with it.
        annotations: TextMap,
    },
    /// Makes a Secret whose key material the shell draws from the operating system.
    /// `body` is the Secret without that material; `key` says what to draw.
    CreateSecret {
        /// The Secret without the drawn part.
        body: Value,
        /// What is to be drawn.
        key: KeyMaterial,
    },
}

/// Which part of an object a patch writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The object itself.
    Whole,
    /// The `status` subresource.
    Status,
    /// The `finalize` subresource (namespaces): an update of `spec.finalizers`.
    Finalize,
}

/// What becomes of dependants of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// The garbage collector removes them later.
    Background,
    /// They go first.
    Foreground,
    /// They stay and lose the owner.
    Orphan,
}

/// Key material that only a shell may draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyMaterial {
    /// An Ed25519 pair in OpenSSH form.
    SshEd25519,
    /// The same, and another pair for the hosts where it is used.
    SshEd25519AndHost,
    /// An RSA 2048 pair, PKCS#1, as upstream makes it.
    SshRsa2048,
}

/// A pair of keys that a shell has drawn.
pub struct DrawnKey {
    /// The private key, as the file that OpenSSH reads.
    pub private: String,
    /// The public one, as a line of `authorized_keys`.
    pub public: String,
    /// The pair by which the hosts show who they are, if one was wanted.
    pub host: Option<Box<DrawnKey>>,
}

impl DrawnKey {
    /// The Secret with this key in it, under the names that Volcano's jobs know; and that of hosts
    /// under the names that OpenSSH gives it. In `known_hosts` their names stand already.
    fn put_into(&self, mut body: Value) -> Value {
        let data = &mut body["stringData"];
        data["id_rsa"] = self.private.as_str().into();
        data["id_rsa.pub"] = self.public.as_str().into();
        data["authorized_keys"] = self.public.as_str().into();
        if let Some(host) = &self.host {
            let names = data["known_hosts"].as_str().unwrap_or("*");
            data["known_hosts"] = format!("{names} {}", host.public).into();
            data["ssh_host_ed25519_key"] = host.private.as_str().into();
            data["ssh_host_ed25519_key.pub"] = host.public.as_str().into();
        }
        body
    }
}

impl Intent {
    /// What is to be drawn before it can be performed.
    pub fn wants_key(&self) -> Option<KeyMaterial> {
        match self.action {
            Action::CreateSecret { key, .. } => Some(key),
            _ => None,
        }
    }

    /// This intent with what it wants to be drawn, by `draw`; itself where nothing is to be drawn.
    pub fn drawn<E>(
        &self,
        draw: impl FnOnce(KeyMaterial) -> Result<DrawnKey, E>,
    ) -> Result<Cow<'_, Intent>, E> {
        let Action::CreateSecret { body, key } = &self.action else {
            return Ok(Cow::Borrowed(self));
        };
        Ok(Cow::Owned(Intent {
            target: self.target.clone(),
            action: Action::CreateSecret {
                body: draw(*key)?.put_into(body.clone()),
                key: *key,
            },
        }))
    }
}

impl std::fmt::Debug for DrawnKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("DrawnKey").field(&self.public).finish()
    }
}

/// What became of a performed intent.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteOutcome {
    /// Accepted. `revision` is the resourceVersion that the server returned (0 where it gave none)
    /// and `uid` the object's uid, empty where the answer does not say.
    Done {
        /// The new resourceVersion as a number.
        revision: u64,
        /// The object's uid.
        uid: Box<str>,
    },
    /// Refused for good or by a conflict: nothing was written.
    Refused(Refusal),
    /// The answer was lost; the write may or may not have happened. Read back before trying again.
    Unknown {
        /// What was seen on the way.
        message: Box<str>,
    },
}

/// A refusal, in Kubernetes' terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// HTTP status code.
    pub code: u16,
    /// `metav1.Status.reason`: `Conflict`, `AlreadyExists`, `NotFound`, `Invalid` …
    pub reason: Box<str>,
    /// `metav1.Status.message`.
    pub message: Box<str>,
    /// `Retry-After` of a 429 or 503, in seconds.
    pub retry_after_seconds: Option<u32>,
}

impl Refusal {
    /// Whether it says that an object is not there. A server that does not serve the kind at all says
    /// 404, too, but gives no reason: nothing is known of the object then.
    pub fn is_absence(&self) -> bool {
        self.code == 404 && &*self.reason == "NotFound"
    }
}
