//! Which keys an event wakes, where the answer is the same for many kinds.

use api::core::Pod;
use api::intent::ObjectKey;
use api::kind::Kind;
use mirror::Change;

/// A pod's own.
pub(crate) fn of_pod(pod: &Pod) -> ObjectKey {
    ObjectKey::new(Kind::Pod, &pod.metadata.namespace, &pod.metadata.name)
}

/// The managing owner, if it is of that kind.
pub(crate) fn of_owner(change: &Change, kind: Kind, keys: &mut Vec<ObjectKey>) {
    for side in change.sides() {
        let Some(owner) = side.meta().controller() else {
            continue;
        };
        // The name tells most of them apart.
        let is_it = *owner.kind == *kind.row().name;
        if is_it && Kind::find(&owner.api_version, &owner.kind) == Some(kind) {
            keys.push(ObjectKey::new(kind, side.namespace(), &owner.name));
        }
    }
}
