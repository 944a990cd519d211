use api::kind::{KINDS, Kind};
use api::time::Time;
use api::token::Tokens;
use mirror::Object;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::body::Body;
use super::super::delta::{self, Walker};
use super::super::encode::write;
use super::super::names::Names;
use super::*;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn form_of(value: &Value) -> Form {
    let mut form = Form::default();
    put(value, &mut Names::of_writer(), &mut form).expect("keys of a value are texts");
    form
}

fn value_of(form: &[u8]) -> Result<Value, &'static str> {
    let text = json(form, &Names::of_reader())?;
    Ok(serde_json::from_str(&text).expect("it is JSON"))
}

/// Any JSON, with keys and strings that are special to somebody.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just(LAST_APPLIED.to_owned()),
        "(env|args|command|data|name|value|spec|)",
        "\\PC{0,6}",
        "[a-z\"\\\\\n]{0,200}",
        "[0-9]{1,20}",
    ];
    let number = prop_oneof![
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..2_000_i64).prop_map(|it| Value::from(it - 1_000)),
        // Those that a reader of JSON gives back to the last bit.
        (-1_000_000..1_000_000_i32).prop_map(|it| Value::from(f64::from(it) / 8.0)),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number,
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..8)
                .prop_map(|rows| Value::Object(rows.into_iter().collect())),
        ]
    })
}

/// The same value with some of it otherwise, as objects change.
fn edited(value: &Value, draw: &mut impl FnMut(u32) -> u32) -> Value {
    if draw(12) == 0 {
        let all = [
            json!(null),
            json!(draw(3_000)),
            json!({ "a": ["b", draw(9)] }),
        ];
        return all[draw(3) as usize].clone();
    }
    match value {
        Value::Object(map) => {
            let mut rows = Map::new();
            for (key, value) in map {
                if draw(9) > 0 {
                    rows.insert(key.clone(), edited(value, draw));
                }
            }
            if draw(4) == 0 {
                rows.insert(format!("k{}", draw(90)), json!("new"));
            }
            Value::Object(rows)
        }
        Value::Array(list) => {
            let rows = list.iter().filter_map(|value| {
                let is_kept = draw(7) > 0;
                is_kept.then(|| edited(value, draw))
            });
            Value::Array(rows.collect())
        }
        Value::String(text) if draw(3) == 0 => {
            let mut letters: Vec<char> = text.chars().collect();
            let at = draw(letters.len() as u32 + 1) as usize;
            letters.insert(at.min(letters.len()), 'x');
            letters.into_iter().collect::<String>().into()
        }
        other => other.clone(),
    }
}

fn draws(seed: u64) -> impl FnMut(u32) -> u32 {
    let mut state = seed;
    move |below| {
        state =
            (state.wrapping_mul(6_364_136_223_846_793_005)).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 % below
    }
}

fn delta_of(base: &Form, new: &Form) -> Vec<u8> {
    let mut delta = Vec::new();
    Walker::walk(base, new, &mut delta);
    delta
}

proptest! {
    #[test]
    fn any_json_is_the_same_when_it_is_read_again(value in any_json()) {
        prop_assert_eq!(value_of(&form_of(&value).bytes), Ok(value));
    }

    #[test]
    fn what_is_new_makes_of_any_form_any_other(one in any_json(), other in any_json(), seed: u64) {
        let third = edited(&one, &mut draws(seed));
        for (base, new) in [(&one, &other), (&one, &third), (&third, &one), (&one, &one)] {
            let (base, new) = (form_of(base), form_of(new));
            let delta = delta_of(&base, &new);
            prop_assert_eq!(delta::apply(&base.bytes, &delta, 0), Ok(new.bytes.clone()));
            prop_assert!(delta.len() <= new.bytes.len() + 16);
            prop_assert!(base.bytes != new.bytes || delta.is_empty());
        }
        let new = form_of(&one);
        let delta = delta_of(&Form::default(), &new);
        prop_assert_eq!(delta::apply(&[], &delta, 0), Ok(new.bytes));
    }

    #[test]
    fn damage_is_an_error_or_another_value(value in any_json(), seed: u64) {
        let (base, mut draw) = (form_of(&value), draws(seed));
        let new = form_of(&edited(&value, &mut draw));
        for mut bytes in [new.bytes.clone(), delta_of(&base, &new)] {
            for _ in 0..8 {
                if !bytes.is_empty() {
                    let at = draw(bytes.len() as u32) as usize;
                    bytes[at] ^= 1 << draw(8);
                }
                let read = delta::apply(&base.bytes, &bytes, 7);
                for form in [Ok(bytes.clone()), read].into_iter().flatten() {
                    let _value_or_why = value_of(&form);
                    let mut out = Form::default();
                    told(&form, Kind::Secret, &Tokens::blank(), &Names::of_reader(), &mut out);
                }
                bytes.truncate(bytes.len().saturating_sub(draw(2) as usize));
            }
        }
    }

    #[test]
    fn parts_are_told_as_they_were_put_down(value in any_json()) {
        let form = form_of(&value);
        let mut twice = Form::default();
        told(&form.bytes, Kind::Pod, &Tokens::blank(), &Names::of_reader(), &mut twice);
        let again = form_of(&value_of(&twice.bytes).expect("a form with tokens is one"));
        prop_assert_eq!(&again.bytes, &twice.bytes);
        let ends = |form: &Form| form.parts.iter().map(|it| (it.end, it.next)).collect::<Vec<_>>();
        prop_assert_eq!(ends(&again), ends(&twice));
    }
}

/// An object of some kind by itself: its form, and its JSON as its type gives it.
fn object(kind: Kind, value: &Value) -> (Object, String) {
    let object = Object::decode(kind, &value.to_string()).expect("it is well formed");
    let text = serde_json::to_string(&object).expect("it is JSON");
    (object, text)
}

#[test]
fn objects_of_all_kinds_are_the_json_that_their_types_give() {
    let time = "2026-11-22T10:52:59Z";
    for row in KINDS {
        let seen = json!({ "type": "Ready", "status": "Running", "lastTransitionTime": time });
        let conditions = match row.kind {
            Kind::JobFlow => json!({ "by-name": { "phase": "Running", "createTime": time } }),
            _ => json!([seen]),
        };
        let (object, text) = object(
            row.kind,
            &json!({
                "metadata": {
                    "name": "n", "generation": 3, "creationTimestamp": time,
                    "labels": { "a": "b" }, "annotations": { "quote": "\"\n\u{1F30B}" },
                    "ownerReferences": [{ "kind": "Job", "name": "j", "uid": "u", "controller": true }],
                },
                "spec": {
                    "replicas": 3, "schedulerName": "volcano", "nodeName": "n",
                    "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1500m" } } }],
                    "template": { "spec": { "x": [1.5, -7, null, { "y": "z" }] } },
                    "renewTime": "2026-11-22T10:52:59.123456Z",
                    "acquireTime": "0001-01-01T00:00:00.000001Z",
                    "minAvailable": 2,
                    "volumes": [],
                },
                "status": {
                    "startTime": time, "phase": "Pending",
                    "allocatable": { "cpu": "32", "memory": "123456789Ki" },
                    "conditions": conditions,
                },
            }),
        );
        let (mut names, mut form) = (Names::of_writer(), Form::default());
        put(&object, &mut names, &mut form).expect("keys are texts");
        let told = json(&form.bytes, &names);
        assert_eq!(told.as_deref(), Ok(&*text), "{:?}", row.kind);
        let again = Object::decode(row.kind, &text).expect("it is what was read");
        let mut twice = Form::default();
        put(&again, &mut names, &mut twice).expect("keys are texts");
        assert_eq!(form.bytes, twice.bytes, "{:?}", row.kind);
    }
}

#[test]
fn shapes_that_no_object_has_yet_are_the_json_that_serde_gives() {
    #[derive(serde::Serialize)]
    enum Shape {
        Unit,
        Newtype(i8),
        Tuple(u8, f32),
        Struct { at: Option<Time>, big: u128 },
    }
    let numbers: std::collections::BTreeMap<i64, char> = [(-5, 'a'), (5, '"')].into();
    let flags: std::collections::BTreeMap<bool, ()> = [(true, ()), (false, ())].into();
    let value = (
        [Shape::Unit, Shape::Newtype(-3)],
        [
            Shape::Tuple(255, 0.1),
            Shape::Struct {
                at: Some(Time(-1)),
                big: u128::MAX,
            },
        ],
        (numbers, flags),
        (f64::NAN, i128::MIN, -0.0, i64::MIN, u64::MAX),
        (111, 112, 879, 880, "x".repeat(127), "x".repeat(128)),
    );
    let (mut names, mut form) = (Names::of_writer(), Form::default());
    put(&value, &mut names, &mut form).expect("keys are texts");
    let text = serde_json::to_string(&value).expect("it is JSON");
    assert_eq!(json(&form.bytes, &names), Ok(text));
}

/// The JSON of an object with tokens, as a segment gives it.
fn shown(kind: Kind, value: &Value, tokens: &Tokens) -> String {
    let (object, _) = object(kind, value);
    let (mut names, mut form, mut told) = (Names::of_writer(), Form::default(), Form::default());
    write(&object, tokens, &mut names, &mut form, &mut told);
    json(&form.bytes, &names).expect("it is whole")
}

#[test]
fn values_of_variables_arguments_and_commands_are_tokens_and_names_are_not() {
    let body = json!({
        "metadata": { "labels": { "args": "x", "value": "y" } },
        "spec": { "containers": [{
            "name": "c",
            "env": [
                { "name": "A", "value": "pass\"word" },
                { "name": "B", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } },
            ],
            "args": ["--token=1"],
            "command": ["sh", ""],
        }]},
    });
    let tokens = Tokens::keyed([7; 16]);
    let told = Body::of(&body).told(Kind::Pod, &tokens);
    let text = told.to_string();
    for gone in ["pass", "word", "--token", "\"sh\""] {
        assert!(!text.contains(gone), "{gone} in {text}");
    }
    for there in [
        r#""args":"x""#,
        r#""value":"y""#,
        r#""name":"A""#,
        r#""key":"k""#,
        r#","""#,
    ] {
        assert!(text.contains(there), "{there} in {text}");
    }
    assert_eq!(told.told(Kind::Pod, &tokens), told);
    let job = json!({
        "metadata": { "name": "j" },
        "spec": { "tasks": [{ "name": "t", "template": body }] },
    });
    let text = shown(Kind::VcJob, &job, &tokens);
    assert!(
        !text.contains("pass") && !text.contains("--token"),
        "{text}"
    );
}

#[test]
fn data_of_secrets_and_config_maps_and_what_was_last_applied_are_tokens() {
    let map = json!({
        "metadata": { "name": "s", "annotations": { LAST_APPLIED: r#"{"data":1}"#, "a": "b" } },
        "data": { "password": "aGVsbG8=" },
    });
    let tokens = Tokens::keyed([7; 16]);
    for kind in [Kind::Secret, Kind::ConfigMap] {
        let text = shown(kind, &map, &tokens);
        assert!(
            !text.contains("aGVsbG8") && !text.contains("{\\\"data"),
            "{text}"
        );
        assert!(text.contains(r#""a":"b""#), "{text}");
    }
    let text = shown(Kind::Pod, &map, &tokens);
    assert!(
        !text.contains("{\\\"data") && text.contains(r#""a":"b""#),
        "{text}"
    );
    let body = Body::of(&map);
    let blank = body.told(Kind::ConfigMap, &Tokens::blank()).value();
    assert_eq!(blank["data"], json!({ "password": "tok:" }));
    assert_eq!(
        body.told(Kind::Pod, &Tokens::blank()).value()["data"],
        map["data"]
    );
}

#[test]
fn a_change_here_and_there_is_a_short_delta() {
    let pod = |version: u32, phase: &str, extra: &[&str]| {
        json!({
            "metadata": {
                "name": "training-worker-12", "namespace": "default",
                "annotations": { "note": "x".repeat(500) },
                "finalizers": extra,
                "resourceVersion": version.to_string(),
            },
            "spec": { "containers": [{ "name": "main", "image": "registry.example/a/name:v1" }] },
            "status": { "phase": phase },
        })
    };
    let base = form_of(&pod(123_456, "Pending", &["a/first", "a/second"]));
    for (new, most) in [
        (pod(123_466, "Pending", &["a/first", "a/second"]), 5),
        (pod(123_789, "Running", &["a/first", "a/second"]), 18),
        (pod(123_789, "Running", &["a/second"]), 24),
        (pod(1_000_000, "Pending", &[]), 20),
    ] {
        let delta = delta_of(&base, &form_of(&new));
        assert!(delta.len() <= most, "{} bytes for {new}", delta.len());
    }
}

#[test]
fn an_object_that_ends_where_its_base_goes_on_is_found_to_end() {
    let base = form_of(&json!({ "0": null, "1": { "": null } }));
    let new = form_of(&json!({ "0": null }));
    let delta = delta_of(&base, &new);
    assert_eq!(delta::apply(&base.bytes, &delta, 0), Ok(new.bytes));
}

#[test]
fn what_is_no_form_is_refused_in_words() {
    for (bytes, why) in [
        (&[][..], "an object ends early"),
        (&[OBJECT], "an object ends early"),
        (&[OBJECT, NULL, NULL, CLOSE], "a key is no text"),
        (
            &[OBJECT, WHOLE_1, NULL, CLOSE],
            "a name was never explained",
        ),
        (&[CLOSE], "an end stands where a value is wanted"),
        (&[NULL, NULL], "something stands behind an object"),
        (&[TEXT_1 + 1, 0xff], "a text is not UTF-8"),
        (&[SECONDS, SECONDS, WHOLE_1], "an object ends early"),
        (
            &[BELOW, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
            "a number is too small",
        ),
        (&[LIST; DEPTH_MAX + 1], "an object is too deep"),
    ] {
        assert_eq!(value_of(bytes), Err(why), "{bytes:?}");
    }
}
