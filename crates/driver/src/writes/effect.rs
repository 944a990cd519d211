//! What the world looks like once a write has happened, and whether it does.

use api::intent::{Action, Intent, ObjectKey};
use api::shared::Word;
use mirror::{Mirror, Object};

/// What the world looks like once the write has happened.
#[derive(Debug)]
pub(super) enum Effect {
    Create {
        controller: Option<Box<str>>,
    },
    Patch {
        uid: Box<str>,
        resource_version: Word,
    },
    Delete {
        uid: Box<str>,
        resource_version: Option<Word>,
        is_forced: bool,
    },
    Bind {
        uid: Box<str>,
        node: Box<str>,
    },
}

impl Effect {
    /// The effect of an intent.
    pub(super) fn of(intent: &Intent) -> Effect {
        match &intent.action {
            Action::Create { body } | Action::CreateSecret { body, .. } => Effect::Create {
                controller: controller_in(body),
            },
            Action::Patch {
                uid,
                resource_version,
                ..
            } => Effect::Patch {
                uid: uid.clone(),
                resource_version: resource_version.clone(),
            },
            Action::Delete {
                uid,
                resource_version,
                grace_seconds,
                ..
            } => Effect::Delete {
                uid: uid.clone(),
                resource_version: resource_version.clone(),
                is_forced: *grace_seconds == Some(0),
            },
            Action::Bind { uid, node, .. } => Effect::Bind {
                uid: uid.clone(),
                node: node.clone(),
            },
        }
    }

    /// The one version of its object that it is for, with the object's uid; `None` where any will do.
    pub(super) fn version(&self) -> Option<(&str, &Word)> {
        match self {
            Effect::Patch {
                uid,
                resource_version,
            } => Some((uid, resource_version)),
            Effect::Delete {
                uid,
                resource_version,
                ..
            } => resource_version.as_ref().map(|version| (&**uid, version)),
            Effect::Create { .. } | Effect::Bind { .. } => None,
        }
    }

    pub(super) fn verb(&self) -> &'static str {
        match self {
            Effect::Bind { .. } => "bind",
            Effect::Create { .. } => "create",
            Effect::Delete { .. } => "delete",
            Effect::Patch { .. } => "patch",
        }
    }
}
fn controller_in(body: &serde_json::Value) -> Option<Box<str>> {
    let owners = body["metadata"]["ownerReferences"].as_array()?;
    let controller = owners
        .iter()
        .find(|owner| owner["controller"] == serde_json::Value::Bool(true))?;
    controller["uid"].as_str().map(Into::into)
}

/// Whether an existing object is the one that a create wanted: made for the same controller.
pub(super) fn has_controller(object: &Object, controller: Option<&str>) -> bool {
    object.meta().controller().map(|owner| &*owner.uid) == controller
}

/// Whether the mirror shows the effect on `target`. `revision` is the answer's, 0 where it had none.
pub(super) fn is_seen(effect: &Effect, target: &ObjectKey, revision: u64, mirror: &Mirror) -> bool {
    let held = || mirror.object(target);
    match effect {
        Effect::Create { .. } | Effect::Patch { .. } => {
            revision == 0 || mirror.seen(target.kind) >= revision
        }
        Effect::Delete { uid, is_forced, .. } => held().is_none_or(|object| {
            let meta = object.meta();
            let is_going = meta.deletion_timestamp.is_some();
            // A forced deletion leaves the object only while a finalizer holds it.
            meta.uid != *uid || (is_going && (!is_forced || !meta.finalizers.is_empty()))
        }),
        Effect::Bind { uid, .. } => held().is_none_or(|object| {
            object.uid() != &**uid || node_of(object).is_some_and(|node| !node.is_empty())
        }),
    }
}

/// Whether a patch was taken and left its object as it was: the answer's revision is the one that it was for.
pub(super) fn changed_nothing(effect: &Effect, revision: u64) -> bool {
    match effect {
        Effect::Patch {
            resource_version, ..
        } => resource_version.parse::<u64>() == Ok(revision),
        Effect::Create { .. } | Effect::Delete { .. } | Effect::Bind { .. } => false,
    }
}

/// Whether the mirror still shows what a write was based on, if that is one version of its object.
pub(super) fn is_based_on(effect: &Effect, target: &ObjectKey, mirror: &Mirror) -> bool {
    is_version(effect, mirror.object(target))
}

/// The same for an object that was read.
pub(super) fn is_version(effect: &Effect, object: Option<&Object>) -> bool {
    let Some((uid, version)) = effect.version() else {
        return false;
    };
    object.is_some_and(|it| it.uid() == uid && it.meta().resource_version == *version)
}

fn node_of(object: &Object) -> Option<&str> {
    match object {
        Object::Pod(pod) => Some(&pod.spec.node_name),
        _ => None,
    }
}

/// Whether nothing on a pod that is on no node speaks against one.
fn may_be_bound(object: &Object) -> bool {
    match object {
        Object::Pod(pod) => !pod.is_terminating() && pod.spec.scheduling_gates.is_empty(),
        _ => false,
    }
}

/// What a read-back says about a write.
pub(super) enum ReadBack {
    Happened { revision: u64 },
    Outdated,
    DidNot,
}

/// What an object read after a lost answer says about the write. Trying again is safe in any case,
/// because every write is fenced; this only tells whether it is needed.
pub(super) fn read_back(effect: &Effect, object: Option<&Object>) -> ReadBack {
    let happened = |object: &Object| ReadBack::Happened {
        revision: object.meta().revision(),
    };
    match (effect, object) {
        (Effect::Create { .. }, None) => ReadBack::DidNot,
        (Effect::Create { controller }, Some(object)) => {
            if has_controller(object, controller.as_deref()) {
                happened(object)
            } else {
                ReadBack::DidNot
            }
        }
        (Effect::Delete { .. }, None) => ReadBack::Happened { revision: 0 },
        (Effect::Delete { uid, .. }, Some(object)) => {
            if object.uid() != &**uid || object.meta().deletion_timestamp.is_some() {
                happened(object)
            } else {
                ReadBack::DidNot
            }
        }
        (Effect::Patch { .. } | Effect::Bind { .. }, None) => ReadBack::Outdated,
        (
            Effect::Patch {
                uid,
                resource_version,
            },
            Some(object),
        ) => {
            if object.uid() != &**uid {
                ReadBack::Outdated
            } else if object.meta().resource_version == *resource_version {
                ReadBack::DidNot
            } else {
                happened(object)
            }
        }
        (Effect::Bind { uid, node }, Some(object)) => match node_of(object) {
            Some(bound) if object.uid() == &**uid && bound == &**node => happened(object),
            Some("") if object.uid() == &**uid && may_be_bound(object) => ReadBack::DidNot,
            _ => ReadBack::Outdated,
        },
    }
}
