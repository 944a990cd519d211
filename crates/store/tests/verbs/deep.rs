//! Whatever is nested is answered on a stack of two megabytes, as threads have it: bodies, patches,
//! schemas, columns, selectors and protobuf messages.

use super::*;

const STACK_BYTES: usize = 2 << 20;
/// Below the limit of bodies, at it, and far beyond.
const DEPTHS: [usize; 6] = [10, 57, 90, 96, 110, 9_000];

const JSON: &str = "application/json";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const BOXES: &str = "/apis/pets.dev/v1/boxes";

/// Runs with a plane that knows a kind `Box`, in which anything may be.
fn on_a_small_stack(work: fn(&mut Plane)) {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let ended = thread.spawn(move || {
        let mut plane = Plane::new();
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}},
                    "x-kubernetes-preserve-unknown-fields": true}},
        }});
        let made = asked(&mut plane, "POST", CRDS, JSON, &definition("boxes", "Box", &schema, &json!([])));
        assert_eq!(made, 201);
        work(&mut plane);
    });
    ended.expect("a thread").join().expect("it ends well");
}

fn definition(plural: &str, kind: &str, schema: &Value, columns: &Value) -> String {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.pets.dev")},
        "spec": {"group": "pets.dev", "scope": "Cluster", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "additionalPrinterColumns": columns,
                "schema": {"openAPIV3Schema": schema}}]},
    })
    .to_string()
}

/// Asks and takes any answer but a mistake of ours.
fn asked(plane: &mut Plane, method: &str, target: &str, content: &str, body: &str) -> u16 {
    let answer = match plane.begin_bytes(method, target, content, body.as_bytes().to_vec()) {
        Begin::Done(response) => response,
        Begin::Commit(commit) => plane.0.finish(commit.ticket, NOW),
        other => panic!("{method} {target}: {other:?}"),
    };
    let told = String::from_utf8_lossy(&answer.body);
    // Some patches that make no sense are the real server's own mistakes, in these words.
    let is_known = told.contains("unknown patch type: merge");
    let start: String = body.chars().take(90).collect();
    assert!(
        answer.code != 500 || is_known,
        "{method} {target} {start}: {told}"
    );
    answer.code
}

fn nested(open: &str, middle: &str, close: &str, depth: usize) -> String {
    format!("{}{middle}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn nested_objects_are_made_changed_applied_and_deleted() {
    on_a_small_stack(|plane| {
        for depth in DEPTHS {
            for (open, middle, close) in [
                (r#"{"a":"#, "1", "}"),
                (r#"{"a":["#, r#"{"k":1}"#, "]}"),
                (r#"{"list":[{"k":"x","a":"#, "1", "}]}"),
            ] {
                let deep = nested(open, middle, close, depth);
                let (other, null) = (deep.replace('1', "2"), deep.replace('1', "null"));
                let head = r#""apiVersion":"pets.dev/v1","kind":"Box","metadata":{"name":"x"}"#;
                let one = format!("{BOXES}/x");
                asked(
                    plane,
                    "POST",
                    BOXES,
                    JSON,
                    &format!("{{{head},\"spec\":{{\"b\":{deep}}}}}"),
                );
                for (content, body) in [
                    (
                        "application/merge-patch+json",
                        format!("{{\"spec\":{{\"b\":{other}}}}}"),
                    ),
                    (
                        "application/merge-patch+json",
                        format!("{{\"spec\":{{\"b\":{null}}}}}"),
                    ),
                    (
                        "application/json-patch+json",
                        format!(r#"[{{"op":"add","path":"/spec/c","value":{deep}}}]"#),
                    ),
                    (
                        "application/json-patch+json",
                        format!(
                            r#"[{{"op":"copy","from":"/spec/c","path":"/spec/c{}"}}]"#,
                            "/a".repeat(depth)
                        ),
                    ),
                    (
                        "application/json-patch+json",
                        format!(
                            r#"[{{"op":"test","path":"/spec/c{}","value":1}}]"#,
                            "/a".repeat(depth)
                        ),
                    ),
                    (
                        "application/strategic-merge-patch+json",
                        format!("{{\"spec\":{{\"b\":{deep}}}}}"),
                    ),
                    (
                        "application/apply-patch+yaml",
                        format!("{{{head},\"spec\":{{\"d\":{deep}}}}}"),
                    ),
                    (
                        "application/apply-patch+yaml",
                        format!("{{{head},\"list\":[{{\"k\":\"x\",\"b\":{deep}}}]}}"),
                    ),
                    (
                        "application/apply-patch+yaml",
                        format!("{{{head},\"spec\":{{\"d\":{other}}}}}"),
                    ),
                    ("application/apply-patch+yaml", format!("{{{head}}}")),
                ] {
                    let target = format!("{one}?fieldManager=deep&force=true");
                    let target = if content.contains("apply") {
                        &target
                    } else {
                        &one
                    };
                    asked(plane, "PATCH", target, content, &body);
                }
                asked(
                    plane,
                    "PUT",
                    &one,
                    JSON,
                    &format!("{{{head},\"spec\":{other}}}"),
                );
                for table in ["", "?labelSelector=a"] {
                    asked(plane, "GET", &format!("{BOXES}{table}"), "", "");
                }
                asked(plane, "DELETE", &one, JSON, &deep);
                asked(plane, "DELETE", &one, "", "");
            }
        }
    });
}

#[test]
fn nested_yaml_is_read_or_refused() {
    on_a_small_stack(|plane| {
        for depth in DEPTHS {
            for deep in [
                nested("[", "x", "]", depth),
                nested("{a: ", "x", "}", depth),
                "- ".repeat(depth) + "x",
                (0..depth.min(900))
                    .map(|at| format!("{}a:\n", " ".repeat(at)))
                    .collect::<String>(),
                nested("[", "x", "", depth),
                nested("!!str ", "x", "", depth),
                nested("? ", "x", "", depth),
            ] {
                asked(
                    plane,
                    "POST",
                    BOXES,
                    "application/yaml",
                    &format!("spec:\n  {deep}"),
                );
                asked(plane, "POST", BOXES, "application/yaml", &deep);
                let one = format!("{BOXES}/x?fieldManager=deep");
                asked(plane, "PATCH", &one, "application/apply-patch+yaml", &deep);
            }
        }
    });
}

#[test]
fn nested_patches_of_built_in_kinds_are_answered() {
    on_a_small_stack(|plane| {
        let pod = r#"{"metadata":{"name":"x"},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}}"#;
        assert_eq!(asked(plane, "POST", PODS, JSON, pod), 201);
        let one = format!("{PODS}/x");
        for depth in DEPTHS {
            for (open, close) in [
                (r#"{"spec":"#, "}"),
                (r#"{"containers":[{"name":"c","env":"#, "}]}"),
                (r#"{"$patch":"merge","labels":"#, "}"),
                (r#"{"$retainKeys":["a"],"a":"#, "}"),
            ] {
                for before in [
                    "",
                    r#"{"spec":"#,
                    r#"{"metadata":"#,
                    r#"{"spec":{"affinity":"#,
                ] {
                    let close_before = "}".repeat(before.matches('{').count());
                    let body = format!("{before}{}{close_before}", nested(open, "1", close, depth));
                    for content in [
                        "application/strategic-merge-patch+json",
                        "application/merge-patch+json",
                    ] {
                        asked(plane, "PATCH", &one, content, &body);
                    }
                    asked(plane, "POST", PODS, JSON, &body);
                }
            }
        }
    });
}

#[test]
fn nested_schemas_are_answered_and_so_are_their_objects_and_documents() {
    on_a_small_stack(|plane| {
        for depth in [5, 20, 29, 45, 60, 9_000] {
            for (open, close) in [
                (r#"{"type":"object","properties":{"a":"#, "}}"),
                (r#"{"type":"object","default":{},"properties":{"a":"#, "}}"),
                (r#"{"type":"object","additionalProperties":"#, "}"),
                (r#"{"type":"array","items":"#, "}"),
                (
                    r#"{"type":"object","x-kubernetes-validations":[{"rule":"has(self.a)"}],"properties":{"a":"#,
                    "}}",
                ),
                (r#"{"allOf":["#, "]}"),
                (r#"{"not":"#, "}"),
                (
                    r#"{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"properties":{"a":"#,
                    "}}",
                ),
            ] {
                let schema = nested(open, r#"{"type":"string"}"#, close, depth);
                let outer = if open.contains("\"type\":\"object\"") {
                    ""
                } else {
                    r#"{"type":"object","properties":{"spec":"#
                };
                let outer_end = if outer.is_empty() { "" } else { "}}" };
                let whole = format!("{outer}{schema}{outer_end}");
                let body = definition("cats", "Cat", &json!("SCHEMA"), &json!([]))
                    .replace("\"SCHEMA\"", &whole);
                let made = asked(plane, "POST", CRDS, JSON, &body);
                for object in [
                    nested(r#"{"a":"#, "\"x\"", "}", depth),
                    nested("[", "\"x\"", "]", depth),
                ] {
                    for body in [
                        format!("{{\"metadata\":{{\"name\":\"x\"}},\"spec\":{object}}}"),
                        object,
                    ] {
                        asked(plane, "POST", "/apis/pets.dev/v1/cats", JSON, &body);
                    }
                }
                asked(plane, "GET", "/openapi/v3/apis/pets.dev/v1", "", "");
                if made == 201 {
                    asked(plane, "DELETE", &format!("{CRDS}/cats.pets.dev"), "", "");
                }
            }
        }
    });
}

#[test]
fn long_columns_selectors_and_messages_are_answered() {
    on_a_small_stack(|plane| {
        for depth in DEPTHS {
            for path in [
                ".a".repeat(depth),
                format!(".a{}", "[0]".repeat(depth)),
                format!(".a{}", nested("[?(@.b", "==1", ")]", depth)),
                format!(".a{}", "..a".repeat(depth)),
                nested("{", ".a", "}", depth),
            ] {
                let columns = json!([{"name": "C", "type": "string", "jsonPath": path}]);
                let schema =
                    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
                let body = definition("cats", "Cat", &schema, &columns);
                if asked(plane, "POST", CRDS, JSON, &body) == 201 {
                    asked(plane, "DELETE", &format!("{CRDS}/cats.pets.dev"), "", "");
                }
            }
            for selector in [
                nested("(", "a", ")", depth),
                nested("a%20in%20(", "b", ")", depth),
                "a%3Db,".repeat(depth),
                "!".repeat(depth),
                "a%20in%20(".to_owned() + &"b,".repeat(depth),
            ] {
                for name in ["labelSelector", "fieldSelector"] {
                    asked(plane, "GET", &format!("{PODS}?{name}={selector}"), "", "");
                }
            }
        }
        // A schema as a protobuf message: `not` in `not` in `not`.
        for depth in [10, 59, 60, 2_000] {
            let mut schema = Vec::new();
            for _ in 0..depth {
                schema = field(27, &schema);
            }
            let version = [field(1, b"v1"), field(4, &field(1, &schema))].concat();
            let spec = [field(1, b"pets.dev"), field(7, &version)].concat();
            let object = field(2, &spec);
            let kind = [
                field(1, b"apiextensions.k8s.io/v1"),
                field(2, b"CustomResourceDefinition"),
            ]
            .concat();
            let unknown = [field(1, &kind), field(2, &object)].concat();
            let body = [b"k8s\0".as_slice(), &unknown].concat();
            let begin =
                plane.begin_bytes("POST", CRDS, "application/vnd.kubernetes.protobuf", body);
            assert!(matches!(begin, Begin::Done(response) if response.code != 500));
        }
    });
}

/// A field of a protobuf message that holds bytes.
fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
    let varint = |mut value: u64| {
        let mut out = Vec::new();
        while value > 127 {
            out.push(value as u8 | 128);
            value >>= 7;
        }
        out.push(value as u8);
        out
    };
    [
        varint(number << 3 | 2),
        varint(bytes.len() as u64),
        bytes.to_vec(),
    ]
    .concat()
}
