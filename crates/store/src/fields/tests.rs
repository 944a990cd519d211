use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn read(value: &Value) -> FieldSet<'static> {
    FieldSet::from_value(value).expect("a set of fields")
}

#[test]
fn a_set_reads_back_as_it_was_written() {
    let value = json!({
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        "f:spec": {
            "f:containers": {"k:{\"name\":\"main\"}": {".": {}, "f:image": {}}},
            "f:finalizers": {"v:\"x\"": {}},
        },
    });
    let set = read(&value);
    let text = set.to_text();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    assert_eq!(FieldSet::read(&text).unwrap(), set);
}

#[test]
fn keys_written_in_another_way_are_the_same_keys() {
    let a = read(&json!({"f:ports": {"k:{\"protocol\":\"TCP\", \"port\": 80}": {}}}));
    let b = read(&json!({"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {}}}));
    assert_eq!(a, b);
    assert_eq!(
        a.paths()[0]
            .iter()
            .map(Element::to_string)
            .collect::<String>(),
        ".ports[port=80,protocol=\"TCP\"]"
    );
}

#[test]
fn what_is_no_set_of_fields_is_refused() {
    for value in [
        json!([]),
        json!({"spec": {}}),
        json!({"f:spec": 1}),
        json!({"k:{": {}}),
        json!({"x:spec": {}}),
        json!({"i:a": {}}),
    ] {
        assert!(FieldSet::from_value(&value).is_none(), "{value}");
    }
}

#[test]
fn taking_a_field_away_may_take_what_is_below_it() {
    let set = read(&json!({"f:spec": {"f:a": {}, "f:b": {".": {}, "f:c": {}}}}));
    let spec = FieldSet::of_names(&[&["spec", "b"]]);
    assert_eq!(
        set.difference(&spec),
        read(&json!({"f:spec": {"f:a": {}, "f:b": {"f:c": {}}}}))
    );
    assert_eq!(set.without(&spec), read(&json!({"f:spec": {"f:a": {}}})));
    assert!(set.without(&FieldSet::of_names(&[&["spec"]])).is_empty());
}

#[test]
fn patterns_keep_only_what_begins_with_them() {
    let set = read(&json!({"f:spec": {
        "f:containers": {"k:{\"name\":\"a\"}": {"f:image": {}, "f:resources": {"f:limits": {}}}},
        "f:nodeName": {},
    }}));
    assert_eq!(
        set.only(&[&["spec", "containers", "*", "resources"]]),
        read(&json!({"f:spec": {"f:containers": {
            "k:{\"name\":\"a\"}": {"f:resources": {"f:limits": {}}},
        }}}))
    );
}

/// Any set of a few short paths, as `fieldsV1`.
fn any_set() -> impl Strategy<Value = Value> {
    let leaf = Just(json!({}));
    leaf.prop_recursive(4, 24, 4, |inner| {
        let name = prop_oneof![
            "f:[a-c\"\\\\é]{1,2}",
            "[a-b]".prop_map(|name| format!("k:{}", json!({ "name": name }))),
            "[a-b]".prop_map(|name| format!("v:{}", json!(name))),
            (0..3).prop_map(|place| format!("i:{place}")),
            Just(".".to_owned()),
        ];
        prop::collection::btree_map(name, inner, 0..4).prop_map(|map| map.into_iter().collect())
    })
}

proptest! {
    #[test]
    fn sets_obey_the_laws_of_sets(a in any_set(), b in any_set(), c in any_set()) {
        let (a, b, c) = (read(&a), read(&b), read(&c));
        let empty = FieldSet::default();
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.union(&a), a.clone());
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.union(&b).union(&c), a.union(&b.union(&c)));
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert_eq!(a.difference(&a), empty.clone());
        prop_assert_eq!(a.without(&a), empty);
        prop_assert!(!a.difference(&b).meets(&b));
        prop_assert_eq!(a.meets(&b), a.paths().iter().any(|path| b.contains(path)));
        for path in a.paths() {
            prop_assert!(a.contains(&path));
            prop_assert!(a.union(&b).contains(&path));
            prop_assert_eq!(a.difference(&b).contains(&path), !b.contains(&path));
        }
    }

    #[test]
    fn sets_survive_being_written(a in any_set()) {
        let a = read(&a);
        let text = a.to_text();
        prop_assert_eq!(&FieldSet::read(&text).unwrap(), &a);
        prop_assert_eq!(read(&serde_json::from_str(&text).unwrap()), a);
    }

    #[test]
    fn names_are_escaped_as_json_is(text in "[a-c\"\\\\é\n\u{1}\u{7f}]{0,12}") {
        let mut out = "\"".to_owned();
        escape(&text, &mut out);
        out.push('"');
        prop_assert_eq!(out, json!(text).to_string());
    }

    #[test]
    fn no_text_makes_reading_fall_over(text in ".{0,60}") {
        let _ = FieldSet::read(&text);
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            let _ = FieldSet::from_value(&value);
        }
    }
}
