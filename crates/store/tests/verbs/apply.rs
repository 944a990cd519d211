//! Server-side apply and who owns what.

use serde_json::{Value, json};

use store::{Settings, Store};

use super::{Counting, Plane};

/// The path of `pods`, `configmaps/c` and so on.
fn target(rest: &str) -> String {
    format!("/api/v1/namespaces/default/{rest}")
}

const APPLY: &str = "application/apply-patch+yaml";

/// Applies as `manager`; the answer.
fn apply(plane: &mut Plane, manager: &str, rest: &str, path: &str, config: &Value) -> (u16, Value) {
    let url = format!("{path}?fieldManager={manager}{rest}");
    let response = plane.response("PATCH", &url, APPLY, config);
    let value = serde_json::from_slice(&response.body).unwrap_or_default();
    (response.code, value)
}

fn config_map(data: Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c"},
        "data": data,
    })
}

/// `manager operation subresource fields`, a line each.
fn owners(object: &Value) -> Vec<String> {
    object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            let text = |key: &str| entry[key].as_str().unwrap_or("-").to_owned();
            format!(
                "{} {} {} {}",
                text("manager"),
                text("operation"),
                text("subresource"),
                entry["fieldsV1"]
            )
        })
        .collect()
}

#[test]
fn a_creator_owns_what_it_set_and_what_was_filled_in_for_it() {
    let mut plane = Plane::new();
    let pod = json!({
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "main", "image": "i", "ports": [{"containerPort": 80}]}]},
    });
    let (code, made) = plane.ask("POST", &target("pods"), &pod);
    assert_eq!(code, 201, "{made}");
    let main = json!({
        ".": {},
        "f:image": {},
        "f:imagePullPolicy": {},
        "f:name": {},
        "f:ports": {
            ".": {},
            "k:{\"containerPort\":80,\"protocol\":\"TCP\"}":
                {".": {}, "f:containerPort": {}, "f:protocol": {}},
        },
        "f:resources": {},
        "f:terminationMessagePath": {},
        "f:terminationMessagePolicy": {},
    });
    let fields = json!({
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        "f:spec": {
            "f:containers": {"k:{\"name\":\"main\"}": main},
            "f:dnsPolicy": {},
            "f:enableServiceLinks": {},
            "f:restartPolicy": {},
            "f:schedulerName": {},
            "f:securityContext": {},
            "f:terminationGracePeriodSeconds": {},
        },
    });
    let entry = &made["metadata"]["managedFields"][0];
    assert_eq!(entry["fieldsV1"], fields);
    assert_eq!(entry["manager"], "tests");
    assert_eq!(entry["apiVersion"], "v1");
    assert_eq!(entry["operation"], "Update");
    assert_eq!(entry["time"], "2027-01-15T08:00:00Z");
}

#[test]
fn a_configuration_creates_changes_and_takes_back() {
    let mut plane = Plane::new();
    let path = target("configmaps/c");
    let first = config_map(json!({"a": "1", "b": "2"}));
    let (code, made) = apply(&mut plane, "x", "", &path, &first);
    assert_eq!(code, 201, "{made}");
    assert_eq!(
        owners(&made),
        [r#"x Apply - {"f:data":{"f:a":{},"f:b":{}}}"#]
    );
    let (code, again) = apply(&mut plane, "x", "", &path, &first);
    assert_eq!(
        (code, &again),
        (200, &made),
        "the same again changes nothing"
    );
    let (_, less) = apply(&mut plane, "x", "", &path, &config_map(json!({"a": "1"})));
    assert_eq!(less["data"], json!({"a": "1"}));
    assert_eq!(owners(&less), [r#"x Apply - {"f:data":{"f:a":{}}}"#]);
}

#[test]
fn what_another_owns_is_a_conflict_unless_forced() {
    let mut plane = Plane::new();
    let path = target("configmaps/c");
    apply(&mut plane, "x", "", &path, &config_map(json!({"a": "1"})));
    let other = config_map(json!({"a": "2"}));
    let (code, refused) = apply(&mut plane, "y", "", &path, &other);
    assert_eq!(code, 409);
    assert_eq!(
        refused["message"],
        "Apply failed with 1 conflict: conflict with \"x\": .data.a"
    );
    assert_eq!(refused["reason"], "Conflict");
    assert_eq!(
        refused["details"]["causes"],
        json!([{
            "reason": "FieldManagerConflict",
            "message": "conflict with \"x\"",
            "field": ".data.a",
        }])
    );
    let (code, taken) = apply(&mut plane, "y", "&force=true", &path, &other);
    assert_eq!(code, 200, "{taken}");
    assert_eq!(owners(&taken), [r#"y Apply - {"f:data":{"f:a":{}}}"#]);
    let (_, shared) = apply(&mut plane, "x", "", &path, &other);
    assert_eq!(owners(&shared).len(), 2, "equal values are shared");
    let (_, left) = apply(&mut plane, "y", "", &path, &config_map(json!({})));
    assert_eq!(left["data"], json!({"a": "2"}), "x still owns it");
}

#[test]
fn an_update_takes_what_it_changes_and_status_is_an_owner_of_its_own() {
    let mut plane = Plane::new();
    let path = target("configmaps/c");
    apply(
        &mut plane,
        "x",
        "",
        &path,
        &config_map(json!({"a": "1", "b": "2"})),
    );
    let (_, patched) = plane.ask("PATCH", &path, &json!({"data": {"a": "3", "n": "4"}}));
    assert_eq!(
        owners(&patched),
        [
            r#"x Apply - {"f:data":{"f:b":{}}}"#,
            r#"tests Update - {"f:data":{"f:a":{},"f:n":{}}}"#,
        ]
    );
    let pod = json!({
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main", "image": "i"}]},
    });
    plane.ask("POST", &target("pods"), &pod);
    let status = json!({"status": {"phase": "Running"}});
    let (_, pod) = plane.ask("PATCH", &target("pods/p/status"), &status);
    assert_eq!(
        owners(&pod)[1],
        r#"tests Update status {"f:status":{"f:phase":{}}}"#
    );
}

#[test]
fn owners_are_forgotten_on_demand_and_found_again_by_the_next_apply() {
    let mut plane = Plane::new();
    let path = target("configmaps/c");
    plane.ask(
        "POST",
        &target("configmaps"),
        &config_map(json!({"a": "1"})),
    );
    let reset = json!({"metadata": {"managedFields": [{}]}});
    let (_, bare) = plane.ask("PATCH", &path, &reset);
    assert_eq!(bare["metadata"]["managedFields"], Value::Null);
    let (_, found) = apply(&mut plane, "x", "", &path, &config_map(json!({"b": "1"})));
    assert_eq!(
        owners(&found),
        [
            r#"x Apply - {"f:data":{"f:b":{}}}"#,
            r#"before-first-apply Update - {"f:data":{".":{},"f:a":{}}}"#,
        ]
    );
}

#[test]
fn at_most_ten_updaters_are_told_apart() {
    let mut plane = Plane::new();
    let path = target("configmaps/c");
    plane.ask(
        "POST",
        &target("configmaps"),
        &config_map(json!({"a": "1"})),
    );
    let mut last = Value::Null;
    for number in 0..14 {
        let url = format!("{path}?fieldManager=m{number:02}");
        let patch = json!({"data": {format!("k{number}"): "v"}});
        (_, last) = plane.ask("PATCH", &url, &patch);
    }
    let owners = owners(&last);
    assert_eq!(owners.len(), 10);
    assert!(
        owners[0].starts_with("ancient-changes Update"),
        "{owners:?}"
    );
}

#[test]
fn scaling_is_owned_by_who_scales() {
    let mut plane = Plane::new();
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "main", "image": "i"}]},
            },
        },
    });
    let path = "/apis/apps/v1/namespaces/default/deployments/d";
    let (code, made) = apply(&mut plane, "x", "", path, &deployment);
    assert_eq!(code, 201, "{made}");
    let scale = json!({"spec": {"replicas": 3}});
    let (code, answer) = plane.ask("PATCH", &format!("{path}/scale"), &scale);
    assert_eq!(code, 200, "{answer}");
    let (_, scaled) = plane.ask("GET", path, &Value::Null);
    let owners = owners(&scaled);
    assert_eq!(
        owners[1],
        r#"tests Update scale {"f:spec":{"f:replicas":{}}}"#
    );
    assert!(!owners[0].contains("replicas"), "{owners:?}");
}

#[test]
fn owners_survive_the_journal() {
    let mut plane = Plane::new();
    let (_, made) = plane.ask(
        "POST",
        &target("configmaps"),
        &config_map(json!({"a": "\"1\\"})),
    );
    let mut store = Store::new(Settings::default(), Box::new(Counting(9)));
    for record in plane.0.snapshot() {
        store.load(&record.encode()).expect("a whole record");
    }
    let mut again = Plane(store);
    let (_, found) = again.ask("GET", &target("configmaps/c"), &Value::Null);
    assert_eq!(found, made);
}

#[test]
fn a_patch_is_judged_by_what_it_makes() {
    let mut plane = Plane::new();
    plane.ask(
        "POST",
        &target("configmaps"),
        &config_map(json!({"a": "1"})),
    );
    let path = target("configmaps/c?fieldValidation=Strict");
    let (code, refused) = plane.ask("PATCH", &path, &json!({"spec": {"x": 1}}));
    let message = refused["message"].as_str().unwrap_or_default();
    assert_eq!(code, 422);
    assert!(
        message.starts_with(" \"\" is invalid: patch: Invalid value: \"{"),
        "{message}"
    );
    assert!(
        message.ends_with(": strict decoding error: unknown field \"spec\""),
        "{message}"
    );
    let warned = plane.response(
        "PATCH",
        &target("configmaps/c"),
        "application/json-patch+json",
        &json!([{"op": "add", "path": "/data/b", "value": "2", "extra": 1}]),
    );
    assert_eq!(warned.warnings, [r#"json patch unknown field "[0].extra""#]);
    let strategic = "application/strategic-merge-patch+json";
    let wrong = json!({"metadata": {"labels": "none"}});
    let refused = plane.response("PATCH", &target("configmaps/c"), strategic, &wrong);
    let refused: Value = serde_json::from_slice(&refused.body).unwrap_or_default();
    assert_eq!(
        refused["message"],
        " \"\" is invalid: patch: Invalid value: \"map[metadata:map[labels:none]]\": cannot restore map from string"
    );
}

#[test]
fn a_body_may_be_yaml() {
    let mut plane = Plane::new();
    let body = b"metadata:\n  name: one\ndata: {a: \"1\"}\n".to_vec();
    let made = plane.send("POST", &target("configmaps"), "application/yaml", body);
    assert_eq!(made.code, 201);
    let bomb = b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n".to_vec();
    let refused = plane.send("POST", &target("configmaps"), "application/yaml", bomb);
    assert_eq!(refused.code, 422, "it has no name, but could be read");
    let broken = plane.send(
        "POST",
        &target("configmaps"),
        "application/yaml",
        b"a: [".to_vec(),
    );
    assert_eq!(broken.code, 400);
}
