//! Whatever is written in a path, a query, a schema or an expression is answered; a test that does not end fails.

use std::cell::RefCell;

use proptest::prelude::*;

use super::*;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Words of a list, put together without regard to any grammar.
fn words(list: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    let word = prop_oneof![
        8 => prop::sample::select(list).prop_map(str::to_owned),
        1 => "\\PC{0,6}",
    ];
    prop::collection::vec(word, 0..most).prop_map(|words| words.concat())
}

/// Expressions that follow the grammar, of wrong and right types.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(
        &[
            "self",
            "oldSelf",
            "self.a",
            "self.list",
            "self.map",
            "self.text",
            "1",
            "-1",
            "2.5",
            "'x'",
            "b'x'",
            "null",
            "true",
            "[]",
            "{}",
            "9223372036854775807",
            "duration('1h')",
            "optional.none()",
        ][..],
    )
    .prop_map(str::to_owned);
    leaf.prop_recursive(5, 40, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        let operator = prop::sample::select(
            &[
                "+", "-", "*", "/", "%", "<", "<=", "==", "!=", "in", "&&", "||",
            ][..],
        );
        let name = prop::sample::select(
            &[
                "size",
                "all",
                "exists",
                "map",
                "filter",
                "matches",
                "split",
                "join",
                "replace",
                "sum",
                "orValue",
                "lowerAscii",
                "indexOf",
                "quantity",
                "isURL",
                "getHours",
                "format",
                "substring",
            ][..],
        );
        prop_oneof![
            (two.clone(), operator).prop_map(|((a, b), op)| format!("({a} {op} {b})")),
            (two.clone(), name.clone()).prop_map(|((a, b), name)| format!("{a}.{name}(x, {b})")),
            (two.clone(), name.clone()).prop_map(|((a, b), name)| format!("{a}.{name}({b})")),
            (inner.clone(), name).prop_map(|(a, name)| format!("{name}({a})")),
            two.clone().prop_map(|(a, b)| format!("{a}[{b}]")),
            two.prop_map(|(a, b)| format!("({a} ? {b} : [{a}])")),
            inner.prop_map(|a| format!("!{a}")),
        ]
    })
}

/// Documents of the words that schemas are made of, and of values that they are not.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(-1)),
        Just(json!(1.5)),
        Just(json!("(")),
        prop::sample::select(
            &[
                "object", "array", "string", "integer", "atomic", "map", "int64"
            ][..]
        )
        .prop_map(|word| json!(word)),
        Just(json!(["a", "a"])),
    ];
    leaf.prop_recursive(5, 60, 4, |inner| {
        let word = prop::sample::select(
            &[
                "type",
                "properties",
                "items",
                "additionalProperties",
                "required",
                "enum",
                "default",
                "format",
                "pattern",
                "maxLength",
                "minItems",
                "allOf",
                "not",
                "nullable",
                "title",
                "x-kubernetes-validations",
                "x-kubernetes-list-type",
                "x-kubernetes-list-map-keys",
                "x-kubernetes-int-or-string",
                "x-kubernetes-embedded-resource",
                "multipleOf",
                "rule",
                "x-kubernetes-preserve-unknown-fields",
                "uniqueItems",
                "maximum",
                "metadata",
                "a",
            ][..],
        );
        let map = prop::collection::vec((word, inner.clone()), 0..5).prop_map(|fields| {
            let fields = fields
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value));
            Value::Object(fields.collect())
        });
        prop_oneof![3 => map, 1 => prop::collection::vec(inner, 0..3).prop_map(Value::Array)]
    })
}

fn definition(schema: &Value, group: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("cats.{group}") },
        "spec": {
            "group": group,
            "names": { "kind": "Cat", "plural": "cats" },
            "scope": "Cluster",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

/// Asks and takes any answer but a mistake of ours. Of some requests upstream's own failure is the answer, which
/// has no reason.
fn answered(plane: &mut Plane, method: &str, target: &str, content: &str, body: &[u8]) -> u16 {
    let begin = plane.begin_bytes(method, target, content, body.to_vec());
    let response = match begin {
        Begin::Done(response) => response,
        Begin::Commit(commit) => plane.0.finish(commit.ticket, NOW),
        Begin::Watch(_) => return 200,
        other => panic!("{method} {target}: {other:?}"),
    };
    if response.code == 500 {
        let status: Value = serde_json::from_slice(&response.body).expect("a status");
        assert_eq!(status["reason"], Value::Null, "{method} {target}: {status}");
    }
    response.code
}

thread_local! {
    /// Making a plane takes longer than hundreds of cases. Each case has a group of its own in it,
    /// and a test its own thread.
    static PLANE: RefCell<Option<(Plane, usize)>> = const { RefCell::new(None) };
}

/// Goes on with this thread's plane, or with a new one if the last case took away what cases need.
fn on_a_plane(work: impl FnOnce(&mut Plane, usize)) {
    PLANE.with_borrow_mut(|kept| {
        // One that a case panicked on is not put back.
        let (mut plane, number) = kept.take().unwrap_or_else(|| (Plane::new(), 0));
        work(&mut plane, number);
        let (_, home) = plane.ask("GET", "/api/v1/namespaces/default", &Value::Null);
        if home["status"]["phase"] == "Active" {
            *kept = Some((plane, number + 1));
        }
    });
}

/// Defines a kind, makes one of it, changes it and asks for its documents.
fn lived(schema: &Value, object: &Value) {
    on_a_plane(|plane, number| {
        let json = "application/json";
        let group = format!("pets{number}.dev");
        let body = definition(schema, &group).to_string();
        if answered(plane, "POST", CRDS, json, body.as_bytes()) != 201 {
            return;
        }
        let cats = format!("/apis/{group}/v1/cats");
        answered(plane, "POST", &cats, json, object.to_string().as_bytes());
        let merge = "application/merge-patch+json";
        let change = br#"{"spec":{"a":2,"text":"other","list":[3,2,1]}}"#;
        answered(plane, "PATCH", &format!("{cats}/x"), merge, change);
        answered(plane, "GET", &cats, "", b"");
        answered(
            plane,
            "GET",
            &format!("/openapi/v3/apis/{group}/v1"),
            "",
            b"",
        );
    });
}

/// A schema with every type and one rule.
fn ruled(rule: &str) -> Value {
    json!({
        "type": "object",
        "properties": { "spec": {
            "type": "object",
            "properties": {
                "a": { "type": "integer" },
                "list": { "type": "array", "maxItems": 20, "items": { "type": "integer" } },
                "map": { "type": "object", "maxProperties": 9, "additionalProperties": { "type": "string", "maxLength": 9 } },
                "text": { "type": "string", "maxLength": 40 },
            },
            "x-kubernetes-validations": [{ "rule": rule, "messageExpression": rule }],
        } },
    })
}

fn cat() -> Value {
    json!({
        "metadata": { "name": "x" },
        "spec": { "a": 1, "list": [1, 2, 3], "map": { "k": "v" }, "text": "lïne" },
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_expression_is_answered(rule in expression()) {
        lived(&ruled(&rule), &cat());
    }

    #[test]
    fn every_text_for_an_expression_is_answered(rule in words(&[
        "self", ".", "a", "(", ")", "[", "]", "{", "}", "'", "\"", "\\", "0x", "1", "e9", " ", "\n",
        "?", ":", "all", "has", ",", "x", "!", "-", "==", "in", "r'", "b'", "/*", "//", "`", "$",
    ], 24)) {
        lived(&ruled(&rule), &cat());
    }

    #[test]
    fn every_schema_is_answered(schema in schema()) {
        lived(&schema, &cat());
        let whole = json!({ "type": "object", "properties": { "spec": schema } });
        lived(&whole, &cat());
    }

    #[test]
    fn every_path_and_query_is_answered(
        path in words(&[
            "/", "api", "apis", "v1", "pods", "namespaces", "default", "status", "watch", "apps",
            "deployments", "openapi", "v3", "%2F", "%", "..", "x", "scale", "discovery",
        ], 12),
        query in words(&[
            "labelSelector=", "fieldSelector=", "limit=", "continue=", "watch=", "resourceVersion=",
            "resourceVersionMatch=", "sendInitialEvents=", "timeoutSeconds=", "fieldManager=", "&",
            "=", "!", "a", "in", "(", ")", ",", "%20", "%", "true", "0", "-1", "metadata.name",
            "spec.nodeName", "NotOlderThan", "Exact", "999999999999999999999", "dryRun=", "All",
        ], 16),
    ) {
        on_a_plane(|plane, _| {
            for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
                let target = format!("/{path}?{query}");
                answered(plane, method, &target, "application/json", b"{}");
            }
            let selected = format!("{PODS}?{query}");
            answered(plane, "GET", &selected, "", b"");
            answered(plane, "DELETE", &selected, "", b"");
        });
    }
}

#[test]
fn deep_bodies_are_answered() {
    let mut plane = Plane::new();
    let deep = format!("{}{}", r#"{"a":"#.repeat(200_000), "}".repeat(200_000));
    for target in [CRDS, PODS] {
        answered(
            &mut plane,
            "POST",
            target,
            "application/json",
            deep.as_bytes(),
        );
    }
}

#[test]
fn deep_selectors_are_answered() {
    let mut plane = Plane::new();
    let selector = "(".repeat(100_000);
    for name in ["labelSelector", "fieldSelector"] {
        answered(
            &mut plane,
            "GET",
            &format!("{PODS}?{name}={selector}"),
            "",
            b"",
        );
    }
}
