//! Fenced writes as values: every intent of this room is built here.

use api::core::Taint;
use api::intent::{Action, Intent, KeyMaterial, ObjectKey, Part, Propagation};
use api::kind::Kind;
use api::meta::ObjectMeta;
use api::sum::Sum;
use serde_json::{Map, Value, json};

/// An object with these fields, whose values are moved into it: `json!` writes out each value that it is given
/// once more, and bodies are made for every pod.
macro_rules! object {
    ({ $($name:expr => $value:expr),* $(,)? }) => {{
        let mut fields = serde_json::Map::new();
        $(fields.insert(String::from($name), serde_json::Value::from($value));)*
        serde_json::Value::Object(fields)
    }};
}
pub(crate) use object;

/// Creates `body` under the name that it carries; apiVersion and kind are filled in.
pub(crate) fn create(kind: Kind, mut body: Value) -> Intent {
    body["apiVersion"] = kind.api_version().into();
    body["kind"] = kind.row().name.into();
    let text = |field: &str| body["metadata"][field].as_str().unwrap_or("").to_owned();
    Intent {
        target: ObjectKey::new(kind, &text("namespace"), &text("name")),
        action: Action::Create { body },
    }
}

/// Creates a Secret for which the shell draws a key.
pub(crate) fn create_secret(body: Value, key: KeyMaterial) -> Intent {
    let mut intent = create(Kind::Secret, body);
    if let Action::Create { body } = intent.action {
        intent.action = Action::CreateSecret { body, key };
    }
    intent
}

/// Patches an object, fenced by its uid and the version that was read.
pub(crate) fn patch(kind: Kind, meta: &ObjectMeta, part: Part, patch: Value) -> Intent {
    Intent {
        target: ObjectKey::new(kind, &meta.namespace, &meta.name),
        action: Action::Patch {
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            part,
            patch,
        },
    }
}

/// Patches the status, through the subresource where the kind has one.
pub(crate) fn patch_status(kind: Kind, meta: &ObjectMeta, status: Value) -> Intent {
    let part = if kind.row().status_subresource {
        Part::Status
    } else {
        Part::Whole
    };
    patch(kind, meta, part, object!({ "status" => status }))
}

/// Gives a node these taints and no others.
pub(crate) fn patch_taints(node: &ObjectMeta, taints: &[Taint]) -> Intent {
    let wire = |taint: &Taint| {
        let mut value = json!({ "key": taint.key, "effect": taint.effect });
        if !taint.value.is_empty() {
            value["value"] = json!(taint.value);
        }
        if let Some(time) = taint.time_added {
            value["timeAdded"] = json!(time);
        }
        value
    };
    let list: Vec<Value> = taints.iter().map(wire).collect();
    let list = (!list.is_empty()).then_some(list);
    let patch_of = json!({ "spec": { "taints": list } });
    patch(Kind::Node, node, Part::Whole, patch_of)
}

/// Deletes an object in the background, as it was when that was decided.
pub(crate) fn delete(kind: Kind, meta: &ObjectMeta) -> Intent {
    delete_with(kind, meta, None, Propagation::Background)
}

/// Deletes an object whatever grace it asks for.
pub(crate) fn delete_now(kind: Kind, meta: &ObjectMeta) -> Intent {
    delete_with(kind, meta, Some(0), Propagation::Background)
}

/// Deletes an object, as it was when that was decided: one that has changed since is decided about again, so
/// that nobody's late write takes away what a successor has found other reasons to keep.
pub(crate) fn delete_with(
    kind: Kind,
    meta: &ObjectMeta,
    grace_seconds: Option<i64>,
    propagation: Propagation,
) -> Intent {
    Intent {
        target: ObjectKey::new(kind, &meta.namespace, &meta.name),
        action: Action::Delete {
            uid: meta.uid.clone(),
            resource_version: Some(meta.resource_version.clone()),
            grace_seconds,
            propagation,
        },
    }
}

/// The reference that makes `kind`/`meta` the managing owner of a child.
pub(crate) fn controller_ref(kind: Kind, meta: &ObjectMeta) -> Value {
    object!({
        "apiVersion" => kind.api_version(),
        "kind" => kind.row().name,
        "name" => &*meta.name,
        "uid" => &*meta.uid,
        "controller" => true,
        "blockOwnerDeletion" => true,
    })
}

/// The merge patch (RFC 7396) that turns `old` into `new`; `None` if they are equal.
pub(crate) fn merge_difference(old: &Value, new: &Value) -> Option<Value> {
    let (Value::Object(old_map), Value::Object(new_map)) = (old, new) else {
        return (old != new).then(|| new.clone());
    };
    let mut difference = Map::new();
    for (name, value) in new_map {
        match old_map.get(name) {
            Some(before) => {
                if let Some(inner) = merge_difference(before, value) {
                    difference.insert(name.clone(), inner);
                }
            }
            None => {
                difference.insert(name.clone(), value.clone());
            }
        }
    }
    for name in old_map.keys().filter(|name| !new_map.contains_key(*name)) {
        difference.insert(name.clone(), Value::Null);
    }
    (!difference.is_empty()).then_some(Value::Object(difference))
}

/// A number that depends on nothing but the parts.
pub(crate) fn stable_sum(parts: &[&str]) -> u64 {
    // Two sums with different beginnings, of which 62 bits are used at most.
    let [mut low, mut high] = [Sum::BASIS, Sum::OTHER_BASIS].map(Sum::begun_at);
    for byte in parts.iter().flat_map(|part| part.bytes().chain([0xff])) {
        low.bytes(&[byte]);
        high.bytes(&[byte.rotate_left(3)]);
    }
    low.value() ^ high.value().rotate_left(17)
}

/// Twelve letters and digits that depend on nothing but the parts, for names of children.
pub(crate) fn stable_suffix(parts: &[&str]) -> String {
    let mut sum = stable_sum(parts);
    let digits = b"0123456789abcdefghijklmnopqrstuvwxyz";
    (0..12)
        .map(|_| {
            let digit = digits[(sum % 36) as usize] as char;
            sum /= 36;
            digit
        })
        .collect()
}

/// The stored status as JSON; an empty one where it was never written, because the fields that
/// upstream always writes are not there yet.
pub(crate) fn stored<T: Default + PartialEq>(
    status: &T,
    meta: &ObjectMeta,
    wire: fn(&T) -> Value,
) -> Value {
    match *status == T::default() && meta.generation != 0 {
        true => json!({}),
        false => wire(status),
    }
}

/// The status patch that turns `old` into `new`; `None` if nothing changes.
pub(crate) fn status_difference(
    kind: Kind,
    meta: &ObjectMeta,
    old: &Value,
    new: &Value,
) -> Option<Intent> {
    let patch = merge_difference(old, new)?;
    Some(patch_status(kind, meta, patch))
}

/// Takes one finalizer off an object.
pub(crate) fn without_finalizer(kind: Kind, meta: &ObjectMeta, name: &str) -> Intent {
    let kept: Vec<&str> = meta
        .finalizers
        .iter()
        .map(|finalizer| &**finalizer)
        .filter(|finalizer| *finalizer != name)
        .collect();
    let kept = (!kept.is_empty()).then_some(kept);
    let finalizers = json!({ "metadata": { "finalizers": kept } });
    patch(kind, meta, Part::Whole, finalizers)
}
