use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::owners::{Change, Force, Held, Operation, Resets, Untold, Versions, Who, apply, update};
use crate::schema::{Compiler, Schema};

/// A type with every way of sharing.
fn schema() -> Schema {
    let mut compiler = Compiler::default();
    let item = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "port": {"type": "integer"},
            "protocol": {"type": "string", "default": "TCP"},
            "value": {"type": "string"},
            "inner": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    });
    compiler.define(
        "T",
        json!({
            "type": "object",
            "properties": {
                "atomic": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "x-kubernetes-map-type": "atomic",
                },
                "count": {"type": "integer"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "items": {
                    "type": "array",
                    "items": item.clone(),
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                },
                "list": {"type": "array", "items": {"type": "string"}},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "named": {
                    "type": "array",
                    "items": item,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                },
                "set": {
                    "type": "array",
                    "items": {"type": "string"},
                    "x-kubernetes-list-type": "set",
                },
            },
        }),
    );
    compiler.finish().remove("T").expect("it was defined")
}

struct One(Schema);

impl Versions for One {
    fn spot(&self, _: &str) -> Option<Spot<'_>> {
        Some(self.0.spot())
    }

    fn convert(&self, object: &Value, _: &str) -> Result<Option<Value>, Untold> {
        Ok(Some(object.clone()))
    }

    fn resets(&self, _: &str) -> Resets {
        Resets::Nothing
    }
}

fn change<'a>(manager: &str, operation: Operation, versions: &'a One) -> Change<'a> {
    Change {
        who: Who {
            operation,
            manager: manager.to_owned(),
            api_version: "v1".to_owned(),
            subresource: String::new(),
        },
        seconds: 1,
        versions,
    }
}

fn texts() -> impl Strategy<Value = String> {
    "[a-c]{1}"
}

fn map_of_texts() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(texts(), texts(), 0..3).prop_map(|map| json!(map))
}

/// Items whose keys are all different.
fn items() -> impl Strategy<Value = Value> {
    let one = (
        0..3,
        prop::option::of("TCP|UDP"),
        texts(),
        prop::option::of(map_of_texts()),
    );
    prop::collection::vec(one, 0..4).prop_map(|list| {
        let mut seen = std::collections::BTreeSet::new();
        let list = list
            .into_iter()
            .filter_map(|(port, protocol, value, inner)| {
                let key = (port, protocol.clone().unwrap_or("TCP".into()));
                let mut item = json!({"port": port, "value": value});
                if let Some(protocol) = protocol {
                    item["protocol"] = json!(protocol);
                }
                if let Some(inner) = inner {
                    item["inner"] = inner;
                }
                seen.insert(key).then_some(item)
            });
        Value::Array(list.collect())
    })
}

fn named() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(texts(), texts(), 0..3).prop_map(|map| {
        let list = map
            .iter()
            .map(|(name, value)| json!({"name": name, "value": value}));
        Value::Array(list.collect())
    })
}

fn set() -> impl Strategy<Value = Value> {
    prop::collection::btree_set(texts(), 0..3).prop_map(|set| json!(set))
}

/// Any object of the type, without nulls.
fn object() -> impl Strategy<Value = Value> {
    let parts = (
        prop::option::of(map_of_texts()),
        prop::option::of((0..3).prop_map(|count| json!(count))),
        prop::option::of(map_of_texts()),
        prop::option::of(items()),
        prop::option::of(set()),
        prop::option::of(map_of_texts()),
        prop::option::of(named()),
        prop::option::of(set()),
    );
    parts.prop_map(|(atomic, count, free, items, list, map, named, set)| {
        let names = [
            "atomic", "count", "free", "items", "list", "map", "named", "set",
        ];
        let values = [atomic, count, free, items, list, map, named, set];
        let fields = names.into_iter().zip(values);
        let fields = fields.filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(fields.collect())
    })
}

/// An object of which little is set, as Go leaves it.
fn unset() -> impl Strategy<Value = Value> {
    let part = || {
        prop_oneof![
            Just(json!(null)),
            Just(json!({})),
            Just(json!([])),
            Just(json!(0))
        ]
    };
    let names = [
        "atomic", "count", "free", "items", "list", "map", "named", "set",
    ];
    prop::collection::btree_map(prop::sample::select(names.to_vec()), part(), 0..5)
        .prop_map(|map| json!(map))
}

/// Whether two items of a set are one.
fn has_twins(object: &Value) -> bool {
    let lists = [&object["set"], &object["items"], &object["named"]];
    lists.iter().any(|list| {
        let items = list.as_array().map_or(&[][..], Vec::as_slice);
        (1..items.len()).any(|at| items[..at].contains(&items[at]))
    })
}

/// The object without empty parts, which merging cannot tell from absent ones.
fn without_blanks(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(name, value)| (name.clone(), without_blanks(value)))
                .filter(|(_, value)| !is_blank(value))
                .collect(),
        ),
        Value::Array(list) => Value::Array(list.iter().map(without_blanks).collect()),
        other => other.clone(),
    }
}

fn is_blank(value: &Value) -> bool {
    value.is_null()
        || value.as_object().is_some_and(serde_json::Map::is_empty)
        || value.as_array().is_some_and(Vec::is_empty)
}

/// Every owned field is there.
fn names_only_what_is(held: &[Held<'_>], object: &Value, schema: &Schema) -> Result<(), String> {
    let there = with_named(&fields_of(object, schema.spot()), schema.spot());
    for one in held {
        let missing = one.fields.difference(&there);
        for path in missing.paths() {
            let path: String = path.iter().map(ToString::to_string).collect();
            // An empty part may have been owned while it had something in it.
            let at = path
                .trim_start_matches('.')
                .split(['.', '['])
                .next()
                .unwrap_or_default();
            if object.get(at).is_none_or(|value| !is_blank(value)) {
                return Err(format!(
                    "{} owns {path}, which is not in {object}",
                    one.who.manager
                ));
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn an_object_does_not_differ_from_itself(a in object()) {
        let schema = schema();
        prop_assert!(compare(&a, &a.clone(), schema.spot()).is_same());
        prop_assert!(check(&a, schema.spot()).is_ok());
    }

    #[test]
    fn differences_are_seen_from_both_sides(a in object(), b in object()) {
        let schema = schema();
        let there = compare(&a, &b, schema.spot());
        let back = compare(&b, &a, schema.spot());
        prop_assert_eq!(&there.added, &back.removed);
        prop_assert_eq!(&there.removed, &back.added);
        prop_assert_eq!(&there.modified, &back.modified);
        prop_assert_eq!(there.is_same(), a == b || is_same_items(&a, &b));
    }

    #[test]
    fn merging_twice_is_merging_once(a in object(), b in object()) {
        let schema = schema();
        let once = merge(&a, &b, schema.spot());
        let twice = merge(&once, &b, schema.spot());
        prop_assert_eq!(&twice, &once);
    }

    #[test]
    fn merging_brings_every_field_of_the_configuration(a in object(), b in object()) {
        let schema = schema();
        let merged = merge(&a, &b, schema.spot());
        let there = fields_of(&merged, schema.spot());
        let wanted = without_blanks(&b);
        let missing = fields_of(&wanted, schema.spot()).difference(&there);
        prop_assert!(missing.is_empty(), "{:?} in {}", missing.paths(), merged);
    }

    #[test]
    fn what_is_taken_away_is_gone(a in object()) {
        let schema = schema();
        let all = with_named(&fields_of(&a, schema.spot()), schema.spot());
        prop_assert!(is_blank(&without_blanks(&remove(&a, &all, schema.spot()))));
        prop_assert_eq!(remove(&a, &FieldSet::default(), schema.spot()).is_null(), is_blank(&a));
    }

    #[test]
    fn applying_twice_is_applying_once(a in object(), b in object(), c in object()) {
        let one = One(schema());
        let maker = change("maker", Operation::Update, &one);
        let empty = json!({});
        let held = update(Vec::new(), &empty, &a, &maker).expect("one version");
        let mine = change("mine", Operation::Apply, &one);
        let first = apply(held, &a, &b, &mine, Force::On).expect("forced");
        let object = first.object.clone().unwrap_or(a.clone());
        let held: Vec<Held<'_>> = first.held.clone();
        let again = apply(held, &object, &b, &mine, Force::Off).expect("nothing to conflict with");
        prop_assert!(again.object.is_none(), "{:?}", again.object);
        // Then something else, and back: the others' fields are as they were.
        let held: Vec<Held<'_>> = again.held.clone();
        let other = apply(held, &object, &c, &mine, Force::On).expect("forced");
        let object_after = other.object.clone().unwrap_or(object.clone());
        names_only_what_is(&other.held, &object_after, &one.0).map_err(TestCaseError::fail)?;
    }

    /// What one walk tells of a new object is what comparing with the unset one tells.
    #[test]
    fn what_is_new_is_written_in_one_walk(
        unset in prop_oneof![Just(json!({})), object(), unset()],
        new in object(),
        is_cut in any::<bool>(),
    ) {
        let one = One(schema());
        let without: &[&[&str]] = if is_cut { &[&["map"]] } else { &[] };
        let common: &[&[&str]] = &[&["count"], &["free"], &["named"], &["free", "a"]];
        let hidden = Hidden { common, without };
        let told = written(&unset, &new, one.0.spot(), &hidden);
        let seen = compare(&unset, &new, one.0.spot());
        let resets = match is_cut {
            true => Resets::Without(&[&["map"]]),
            false => Resets::Nothing,
        };
        let won = resets.filter(seen.modified).union(&resets.filter(seen.added));
        let won = won.difference(&FieldSet::of_names(common)).to_text();
        let is_usual = unset == json!({}) && !has_twins(&new);
        prop_assert!(told.is_some() || !is_usual, "one walk must do");
        if let Some(told) = told {
            prop_assert_eq!(told, won);
        }
    }

    #[test]
    fn owners_name_only_what_is_there(steps in prop::collection::vec((0..3usize, any::<bool>(), object()), 1..5)) {
        let one = One(schema());
        let mut live = json!({});
        let mut held: Vec<Held<'static>> = Vec::new();
        for (manager, applies, next) in steps {
            let manager = ["a", "b", "c"][manager];
            if applies {
                let who = change(manager, Operation::Apply, &one);
                let applied = apply(held, &live, &next, &who, Force::On).expect("forced");
                held = owned(applied.held);
                live = applied.object.unwrap_or(live);
            } else {
                let who = change(manager, Operation::Update, &one);
                held = owned(update(held, &live, &next, &who).expect("one version"));
                live = next;
            }
            names_only_what_is(&held, &live, &one.0).map_err(TestCaseError::fail)?;
        }
    }

    #[test]
    fn any_configuration_is_refused_or_taken(text in "\\PC{0,80}", odd in any_json()) {
        let schema = schema();
        if let Ok(body) = crate::json::read_yaml(text.as_bytes()) {
            let _ = check(&body.value, schema.spot());
        }
        let _ = check(&odd, schema.spot());
        let _ = compare(&odd, &json!({}), schema.spot());
        let _ = compare(&json!({"items": [{"port": 1}]}), &odd, schema.spot());
        let merged = merge(&odd, &json!({"items": [{"port": 1}], "map": {"a": "b"}}), schema.spot());
        let _ = remove(&merged, &fields_of(&odd, schema.spot()), schema.spot());
    }
}

fn owned(held: Vec<Held<'_>>) -> Vec<Held<'static>> {
    held.into_iter()
        .map(|one| Held {
            fields: one.fields.into_owned(),
            who: one.who,
            seconds: one.seconds,
        })
        .collect()
}

/// Equal but for the order of items and for defaults of keys.
fn is_same_items(a: &Value, b: &Value) -> bool {
    let key = |item: &Value| {
        let protocol = item["protocol"].as_str().unwrap_or("TCP").to_owned();
        (item["name"].to_string(), item["port"].to_string(), protocol)
    };
    let sorted = |value: &Value| {
        let mut value = value.clone();
        for part in ["items", "named"] {
            if let Some(list) = value[part].as_array_mut() {
                list.sort_by_key(key);
            }
        }
        value
    };
    let keeps_keys = |value: &Value| match value {
        Value::Object(map) => map.contains_key("items") || map.contains_key("named"),
        _ => false,
    };
    keeps_keys(a) && keeps_keys(b) && {
        let (mut a, mut b) = (sorted(a), sorted(b));
        for value in [&mut a, &mut b] {
            if let Some(map) = value.as_object_mut() {
                map.retain(|_, inner| !inner.is_null());
            }
        }
        a == b
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        texts().prop_map(Value::from),
    ];
    let name = "atomic|free|items|list|map|named|set|port|name|inner";
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}
