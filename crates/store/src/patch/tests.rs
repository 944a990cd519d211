use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::wire::Wire;

fn pod(object: Value, patch: Value) -> Result<Value, PatchError> {
    let wire = Wire::load();
    let schema = wire.schema("", "v1", "Pod").unwrap();
    let mut object = object;
    strategic(&mut object, &patch, schema.root())?;
    Ok(object)
}

#[test]
fn a_failed_test_operation_does_not_fit_the_object() {
    let mut object = json!({"a": 1});
    let patch = json!([{"op": "test", "path": "/a", "value": 2}]);
    let error = json(&mut object, &patch).unwrap_err();
    assert!(matches!(error, PatchError::Unprocessable(_)));
    json(
        &mut object,
        &json!([{"op": "test", "path": "/a", "value": 1}]),
    )
    .unwrap();
}

#[test]
fn a_json_patch_is_bounded_in_operations_and_in_copies() {
    let one = json!({"op": "add", "path": "/a", "value": 1});
    let most = Value::Array(vec![one.clone(); OPERATIONS_MAX]);
    json(&mut json!({}), &most).unwrap();
    let more = Value::Array(vec![one; OPERATIONS_MAX + 1]);
    assert!(matches!(
        json(&mut json!({}), &more),
        Err(PatchError::TooLarge(_))
    ));
    let doubling: Vec<Value> = (0..60)
        .map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"}))
        .collect();
    let error = json(&mut json!({"a": ["x"]}), &Value::Array(doubling)).unwrap_err();
    assert!(error.to_string().contains("accumulated size"), "{error}");
}

#[test]
fn a_malformed_json_patch_is_refused() {
    for patch in [json!({}), json!([1]), json!("x")] {
        assert!(
            matches!(json(&mut json!({}), &patch), Err(PatchError::Malformed(_))),
            "{patch}"
        );
    }
}

#[test]
fn operations_are_read_as_the_real_server_reads_them() {
    let object = json!({"a": {"b": 1}, "l": [1, 2], "n": null, "x/y": {"~": 0}});
    let fits = [
        json!({"op": "add", "path": "/a/c"}),
        json!({"op": "add", "path": "a/x", "value": 1}),
        json!({"op": "add", "path": "/l/-", "value": 3}),
        json!({"op": "add", "path": "/l/2", "value": 3}),
        json!({"op": "add", "path": "/l/-1", "value": 3}),
        json!({"op": "replace", "path": "/a/none", "value": 1}),
        json!({"op": "replace", "path": "/l/-2", "value": 1}),
        json!({"op": "replace", "path": "", "value": {"whole": 1}}),
        json!({"op": "copy", "from": "/a/none", "path": "/c"}),
        json!({"op": "move", "from": "/l/0", "path": "/l/1"}),
        json!({"op": "test", "path": "/none"}),
        json!({"op": "test", "path": "/n", "value": null}),
        json!({"op": "test", "path": "/x~1y/~0", "value": 0}),
    ];
    for operation in fits {
        json(&mut object.clone(), &json!([operation]))
            .unwrap_or_else(|why| panic!("{operation}: {why}"));
    }
    let fits_not = [
        json!({"op": "add", "path": "a", "value": 1}),
        json!({"op": "add", "path": "/a/b/c", "value": 1}),
        json!({"op": "add", "path": "/l/3", "value": 1}),
        json!({"op": "add", "path": "/l/one", "value": 1}),
        json!({"op": "add", "value": 1}),
        json!({"op": "copy", "from": "/l/9", "path": "/c"}),
        json!({"op": "fly", "path": "/a"}),
        json!({"op": "move", "from": "/a/none", "path": "/c"}),
        json!({"op": "remove", "path": "/a/none"}),
        json!({"op": "remove", "path": "/l/-3"}),
        json!({"op": "replace", "path": "/l/2", "value": 1}),
        json!({"op": "replace", "path": "", "value": 1}),
        json!({"op": "test", "path": "/a/b", "value": "1"}),
        json!({"path": "/a"}),
    ];
    for operation in fits_not {
        let error = json(&mut object.clone(), &json!([operation])).unwrap_err();
        assert!(
            matches!(error, PatchError::Unprocessable(_)),
            "{operation}: {error}"
        );
    }
}

#[test]
fn strategic_merge_follows_the_schema_and_its_directives() {
    let rows = [
        (
            "containers merge by name",
            json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}}),
            json!({"spec": {"containers": [{"name": "b", "image": "2"}]}}),
            json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}}),
        ),
        (
            "a deleted element goes",
            json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}),
            json!({"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}),
            json!({"spec": {"containers": [{"name": "b"}]}}),
        ),
        (
            "a list is replaced on demand",
            json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}),
            json!({"spec": {"containers": [{"name": "c"}, {"$patch": "replace"}]}}),
            json!({"spec": {"containers": [{"name": "c"}]}}),
        ),
        (
            "a map is replaced on demand",
            json!({"metadata": {"labels": {"a": "1", "b": "2"}}}),
            json!({"metadata": {"labels": {"$patch": "replace", "c": "3"}}}),
            json!({"metadata": {"labels": {"c": "3"}}}),
        ),
        (
            "a map is emptied on demand",
            json!({"metadata": {"labels": {"a": "1"}}}),
            json!({"metadata": {"labels": {"$patch": "delete"}}}),
            json!({"metadata": {"labels": {}}}),
        ),
        (
            "retained keys push out the others",
            json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}),
            json!({"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "secret"], "secret": {"secretName": "s"}}]}}),
            json!({"spec": {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}}),
        ),
        (
            "an order is set",
            json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}}),
            json!({"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}], "containers": [{"name": "c", "image": "x"}]}}),
            json!({"spec": {"containers": [{"name": "b"}, {"name": "c", "image": "x"}, {"name": "a"}]}}),
        ),
        (
            "finalizers are a set",
            json!({"metadata": {"finalizers": ["a", "b"]}}),
            json!({"metadata": {"finalizers": ["b", "c"]}}),
            json!({"metadata": {"finalizers": ["a", "b", "c"]}}),
        ),
        (
            "a finalizer is taken out",
            json!({"metadata": {"finalizers": ["a", "b", "c"]}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"], "$setElementOrder/finalizers": ["a", "c"]}}),
            json!({"metadata": {"finalizers": ["a", "c"]}}),
        ),
        (
            "tolerations have no key and are replaced",
            json!({"spec": {"tolerations": [{"key": "a"}, {"key": "b"}]}}),
            json!({"spec": {"tolerations": [{"key": "c"}]}}),
            json!({"spec": {"tolerations": [{"key": "c"}]}}),
        ),
        (
            "null takes a field away, also below what is new",
            json!({"spec": {"nodeName": "n", "priority": 1}}),
            json!({"spec": {"nodeName": null, "securityContext": {"fsGroup": null, "runAsUser": 1}}}),
            json!({"spec": {"priority": 1, "securityContext": {"runAsUser": 1}}}),
        ),
        (
            "owner references merge by uid",
            json!({"metadata": {"ownerReferences": [{"uid": "1", "name": "a"}]}}),
            json!({"metadata": {"ownerReferences": [{"uid": "1", "$patch": "delete"}, {"uid": "2", "name": "b"}]}}),
            json!({"metadata": {"ownerReferences": [{"uid": "2", "name": "b"}]}}),
        ),
    ];
    for (what, object, patch, wanted) in rows {
        assert_eq!(pod(object, patch).unwrap(), wanted, "{what}");
    }
}

#[test]
fn broken_strategic_patches_are_refused() {
    let rows = [
        json!([]),
        json!({"metadata": {"$patch": "fly"}}),
        json!({"spec": {"containers": [{"image": "x"}]}}),
        json!({"spec": {"containers": ["x"]}}),
        json!({"spec": {"containers": [["x"]]}}),
        json!({"spec": {"containers": [{"$patch": "delete"}]}}),
        json!({"spec": {"$retainKeys": ["a"], "b": 1}}),
        json!({"spec": {"$setElementOrder/containers": "x"}}),
        json!({"spec": {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]}}),
    ];
    for patch in rows {
        let object = json!({"metadata": {}, "spec": {"containers": [{"name": "a"}]}});
        assert!(pod(object, patch.clone()).is_err(), "{patch}");
    }
}

#[test]
fn ten_thousand_containers_merge_in_bounded_time() {
    let list = |image: &str| -> Vec<Value> {
        (0..10_000)
            .map(|n| json!({"name": format!("c{n}"), "image": image}))
            .collect()
    };
    let merged = pod(
        json!({"spec": {"containers": list("a")}}),
        json!({"spec": {"containers": list("b")}}),
    );
    assert_eq!(merged.unwrap(), json!({"spec": {"containers": list("b")}}));
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..5i64).prop_map(Value::from),
        "[a-c]{1}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn merging_twice_changes_nothing_more(object in value(), patch in value()) {
        let mut once = object;
        merge(&mut once, &patch);
        let mut twice = once.clone();
        merge(&mut twice, &patch);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn merging_the_same_object_changes_nothing(object in value()) {
        // Nulls in a patch delete, so only an object without them is its own patch.
        let mut clean = Value::Null;
        merge(&mut clean, &object);
        let mut same = clean.clone();
        if clean.is_object() {
            merge(&mut same, &clean);
        }
        prop_assert_eq!(same, clean);
    }
}
