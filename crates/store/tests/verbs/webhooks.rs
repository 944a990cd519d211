//! External admission webhooks: who is asked, what an answer does, and that nobody waits for it.

use base64::Engine;
use store::{Answer, Talk};

use super::*;

const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// A configuration of one webhook at `https://hooks.example/<name>`, with these fields changed.
fn configuration(name: &str, changes: Value) -> Value {
    let mut hook = json!({
        "name": format!("{name}.hooks.example"),
        "admissionReviewVersions": ["v1"],
        "clientConfig": { "url": format!("https://hooks.example/{name}") },
        "sideEffects": "None",
        "rules": [{
            "operations": ["*"],
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["configmaps"],
        }],
    });
    for (key, value) in changes.as_object().into_iter().flatten() {
        hook[key] = value.clone();
    }
    json!({ "metadata": { "name": name }, "webhooks": [hook] })
}

fn allowed(request: &Value) -> Value {
    json!({ "uid": request["uid"], "allowed": true })
}

fn patched(request: &Value, patch: &Value) -> Value {
    let patch = base64::engine::general_purpose::STANDARD.encode(patch.to_string());
    json!({ "uid": request["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch })
}

fn reviewed(response: &Value) -> Answer {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": response,
    });
    Ok(review.to_string().into_bytes())
}

impl Plane {
    /// Carries a request through, letting `hook` answer each call: its path and its request.
    fn through(
        &mut self,
        method: &str,
        target: &str,
        body: &Value,
        hook: &mut dyn FnMut(&str, &Value) -> Answer,
    ) -> (Response, Value) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let request = Request {
            method: Method::parse(method).expect("a method"),
            path: path.to_owned(),
            query: query.to_owned(),
            accept: String::new(),
            user_agent: String::new(),
            content_type: match method {
                "PATCH" => "application/merge-patch+json".to_owned(),
                _ => "application/json".to_owned(),
            },
            body: match body {
                Value::Null => Vec::new(),
                body => body.to_string().into_bytes(),
            },
            user: User::admin(),
        };
        let mut talk = Talk::new(NOW);
        loop {
            let begin = self.0.resume(&request, talk, &mut |_, _| Verdict::Allowed {
                object: None,
                warnings: Vec::new(),
            });
            let Begin::Call(calls) = begin else {
                let response = self.end(begin);
                let value = serde_json::from_slice(&response.body).unwrap_or_default();
                return (response, value);
            };
            let answers = calls
                .calls
                .iter()
                .map(|call| {
                    let review: Value = serde_json::from_slice(&call.body).expect("JSON");
                    hook(&call.address.path, &review["request"])
                })
                .collect();
            talk = calls.answer(answers);
        }
    }

    fn register(&mut self, target: &str, name: &str, changes: Value) {
        let (code, answer) = self.ask("POST", target, &configuration(name, changes));
        assert_eq!(code, 201, "{answer}");
    }
}

#[test]
fn mutating_webhooks_change_an_object_in_the_order_of_their_names() {
    let mut plane = Plane::new();
    plane.register(MUTATING, "b", json!({}));
    plane.register(MUTATING, "a", json!({}));
    let mut paths = Vec::new();
    let (response, object) = plane.through("POST", MAPS, &map("m"), &mut |path, request| {
        paths.push(path.to_owned());
        let seen = request["object"]["data"]["said"].as_str().unwrap_or("");
        let said = format!("{seen}{}", &path[1..2]);
        let patch = json!([{ "op": "add", "path": "/data/said", "value": said }]);
        reviewed(&patched(request, &patch))
    });
    assert_eq!(response.code, 201, "{object}");
    assert_eq!(object["data"]["said"], "ab");
    assert_eq!(paths, ["/a?timeout=10s", "/b?timeout=10s"]);
}

#[test]
fn a_webhook_is_told_who_wants_what() {
    let mut plane = Plane::new();
    plane.register(VALIDATING, "a", json!({}));
    let mut told = Vec::new();
    let mut answer = |_: &str, request: &Value| {
        told.push(request.clone());
        reviewed(&allowed(request))
    };
    plane.through(
        "POST",
        &format!("{MAPS}?fieldManager=me"),
        &map("m"),
        &mut answer,
    );
    let change = json!({ "data": { "a": "2" } });
    plane.through("PATCH", &format!("{MAPS}/m"), &change, &mut answer);
    plane.through("DELETE", &format!("{MAPS}/m"), &Value::Null, &mut answer);
    let seen: Vec<Value> = told
        .iter()
        .map(|request| {
            json!([
                request["operation"],
                request["name"],
                request["namespace"],
                request["object"]["data"]["a"],
                request["oldObject"]["data"]["a"],
                request["options"]["kind"],
                request["options"]["fieldManager"],
            ])
        })
        .collect();
    let rows = json!([
        ["CREATE", "m", "default", "1", null, "CreateOptions", "me"],
        ["UPDATE", "m", "default", "2", "1", "UpdateOptions", null],
        ["DELETE", "m", "default", null, "2", "DeleteOptions", null],
    ]);
    assert_eq!(json!(seen), rows);
    assert_eq!(told[0]["userInfo"]["username"], "katmai-admin");
    assert_eq!(
        told[0]["resource"],
        json!({ "group": "", "version": "v1", "resource": "configmaps" })
    );
    assert!(told[0]["object"]["metadata"]["uid"].is_string());
}

#[test]
fn a_denial_is_answered_in_the_words_of_the_webhook() {
    let rows = [
        (json!(null), 400, "denied the request without explanation"),
        (
            json!({ "message": "not on my watch" }),
            400,
            "denied the request: not on my watch",
        ),
        (
            json!({ "reason": "Because", "code": 418 }),
            418,
            "denied the request: Because",
        ),
        (
            json!({ "message": "x", "code": 200 }),
            400,
            "denied the request: x",
        ),
    ];
    for (status, code, text) in rows {
        for target in [MUTATING, VALIDATING] {
            let mut plane = Plane::new();
            plane.register(target, "a", json!({}));
            let (response, body) = plane.through("POST", MAPS, &map("m"), &mut |_, request| {
                let mut answer = json!({ "uid": request["uid"], "allowed": false });
                answer["status"] = status.clone();
                answer["warnings"] = json!(["careful"]);
                reviewed(&answer)
            });
            assert_eq!(response.code, code);
            let wanted = format!("admission webhook \"a.hooks.example\" {text}");
            assert_eq!(body["message"], wanted.as_str());
            assert_eq!(response.warnings, ["careful"]);
            assert_eq!(plane.ask("GET", &format!("{MAPS}/m"), &Value::Null).0, 404);
        }
    }
}

#[test]
fn a_failure_stops_the_request_or_is_passed_over_as_the_policy_says() {
    for (policy, code) in [("Fail", 500), ("Ignore", 201)] {
        let mut plane = Plane::new();
        plane.register(MUTATING, "a", json!({ "failurePolicy": policy }));
        plane.register(VALIDATING, "b", json!({ "failurePolicy": policy }));
        let refused = "Post \"https://hooks.example/a?timeout=10s\": connection refused";
        let (response, body) =
            plane.through("POST", MAPS, &map("m"), &mut |_, _| Err(refused.to_owned()));
        assert_eq!(response.code, code, "{body}");
        if code == 500 {
            let text = format!(
                "Internal error occurred: failed calling webhook \"a.hooks.example\": failed to call webhook: {refused}"
            );
            assert_eq!(body["message"], text.as_str());
        }
    }
}

#[test]
fn an_answer_that_makes_no_sense_is_a_failure_with_its_reason() {
    let wrong_uid = json!({ "uid": "other", "allowed": true });
    let rows: [(Answer, &str); 4] = [
        (Ok(b"{}".to_vec()), "webhook response was absent"),
        (reviewed(&wrong_uid), "expected response.uid="),
        (Ok(b"nonsense".to_vec()), "json: cannot unmarshal string"),
        (
            Ok(br#"{"response":{"uid":"?","allowed":true}}"#.to_vec()),
            "expected response.uid=",
        ),
    ];
    for (answer, text) in rows {
        let mut plane = Plane::new();
        plane.register(VALIDATING, "a", json!({}));
        let (response, body) = plane.through("POST", MAPS, &map("m"), &mut |_, _| answer.clone());
        assert_eq!(response.code, 500);
        let message = body["message"].as_str().expect("a message");
        assert!(message.contains(text), "{message}");
    }
}

#[test]
fn who_is_asked_follows_from_rules_selectors_and_conditions() {
    let labelled = json!({ "metadata": { "name": "m", "labels": { "team": "a" } } });
    let rule = |key: &str, value: Value| {
        let mut rule = json!({
            "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps"],
        });
        rule[key] = value;
        json!({ "rules": [rule] })
    };
    let chosen = |team: &str| json!({ "matchLabels": { "team": team } });
    let when = |expression: &str| json!({ "matchConditions": [{ "name": "c", "expression": expression }] });
    let rows = [
        (json!({}), true),
        (rule("operations", json!(["CREATE"])), true),
        (rule("operations", json!(["UPDATE", "DELETE"])), false),
        (rule("apiGroups", json!(["apps"])), false),
        (rule("apiVersions", json!(["v2"])), false),
        (rule("resources", json!(["*"])), true),
        (rule("resources", json!(["*/*"])), true),
        (rule("resources", json!(["configmaps/status"])), false),
        (rule("scope", json!("Cluster")), false),
        (rule("scope", json!("Namespaced")), true),
        (json!({ "objectSelector": chosen("a") }), true),
        (json!({ "objectSelector": chosen("b") }), false),
        (
            json!({ "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": "default" } } }),
            true,
        ),
        (json!({ "namespaceSelector": chosen("a") }), false),
        (when("object.metadata.name == 'm'"), true),
        (when("request.operation == 'DELETE'"), false),
        (when("request.userInfo.username.startsWith('katmai')"), true),
    ];
    for (changes, is_asked) in rows {
        let mut plane = Plane::new();
        plane.register(VALIDATING, "a", changes.clone());
        let mut calls = 0;
        let (response, body) = plane.through("POST", MAPS, &labelled, &mut |_, request| {
            calls += 1;
            reviewed(&allowed(request))
        });
        assert_eq!(response.code, 201, "{body}");
        assert_eq!(calls > 0, is_asked, "{changes}");
    }
}

#[test]
fn a_webhook_is_asked_again_when_a_later_one_changed_the_object() {
    for (policy, expected) in [("IfNeeded", "/a /b /a"), ("Never", "/a /b")] {
        let mut plane = Plane::new();
        plane.register(MUTATING, "a", json!({ "reinvocationPolicy": policy }));
        plane.register(MUTATING, "b", json!({}));
        let mut asked = Vec::new();
        plane.through("POST", MAPS, &map("m"), &mut |path, request| {
            asked.push(path.trim_end_matches("?timeout=10s").to_owned());
            if !path.starts_with("/b") {
                return reviewed(&allowed(request));
            }
            let patch = json!([{ "op": "add", "path": "/data/b", "value": "x" }]);
            reviewed(&patched(request, &patch))
        });
        assert_eq!(asked.join(" "), expected, "{policy}");
    }
}

#[test]
fn a_dry_run_is_refused_where_a_webhook_has_side_effects() {
    let mut plane = Plane::new();
    let mut loud = configuration("a", json!({}));
    loud["webhooks"][0]["sideEffects"] = json!("Some");
    let (code, body) = plane.ask("POST", VALIDATING, &loud);
    assert_eq!(code, 422, "{body}");
    plane.register(VALIDATING, "a", json!({ "sideEffects": "NoneOnDryRun" }));
    let mut dry = false;
    let target = format!("{MAPS}?dryRun=All");
    let (response, _) = plane.through("POST", &target, &map("m"), &mut |_, request| {
        dry = request["dryRun"] == true;
        reviewed(&allowed(request))
    });
    assert_eq!((response.code, dry), (201, true));
    assert_eq!(plane.ask("GET", &format!("{MAPS}/m"), &Value::Null).0, 404);
}

#[test]
fn others_write_while_a_webhook_is_asked_and_the_answer_is_asked_for_anew() {
    let mut plane = Plane::new();
    plane.ask("POST", MAPS, &map("m"));
    plane.register(VALIDATING, "a", json!({}));
    let change = json!({ "data": { "mine": "1" } });
    let request = Request {
        method: Method::Patch,
        path: format!("{MAPS}/m"),
        query: String::new(),
        accept: String::new(),
        user_agent: String::new(),
        content_type: "application/merge-patch+json".to_owned(),
        body: change.to_string().into_bytes(),
        user: User::admin(),
    };
    let mut admit =
        |_: &api::admission::Review<'_>, _: &dyn api::admission::Facts| Verdict::Allowed {
            object: None,
            warnings: Vec::new(),
        };
    let Begin::Call(first) = plane.0.resume(&request, Talk::new(NOW), &mut admit) else {
        panic!("a webhook is asked");
    };
    // Nobody holds anything meanwhile: a webhook that is not registered for secrets is not asked.
    let secret = json!({ "metadata": { "name": "s" } });
    assert_eq!(
        plane
            .ask("POST", "/api/v1/namespaces/default/secrets", &secret)
            .0,
        201
    );
    let (response, _) = plane.through(
        "PATCH",
        &format!("{MAPS}/m"),
        &json!({ "data": { "theirs": "1" } }),
        &mut |_, request| reviewed(&allowed(request)),
    );
    assert_eq!(response.code, 200);
    let uid = |calls: &store::Calls| {
        let review: Value = serde_json::from_slice(&calls.calls[0].body).expect("JSON");
        review["request"]["uid"].clone()
    };
    let answer = reviewed(&allowed(&json!({ "uid": uid(&first) })));
    let talk = first.answer(vec![answer]);
    let Begin::Call(second) = plane.0.resume(&request, talk, &mut admit) else {
        panic!("the object has changed: the answer was about another one");
    };
    let answer = reviewed(&allowed(&json!({ "uid": uid(&second) })));
    let talk = second.answer(vec![answer]);
    let begin = plane.0.resume(&request, talk, &mut admit);
    let response = plane.end(begin);
    let object: Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!(
        object["data"],
        json!({ "a": "1", "mine": "1", "theirs": "1" })
    );
}

#[test]
fn a_generated_name_stays_what_it_was_between_questions() {
    let mut plane = Plane::new();
    plane.register(MUTATING, "a", json!({}));
    plane.register(VALIDATING, "b", json!({}));
    let body = json!({ "metadata": { "generateName": "g-" } });
    let mut seen = Vec::new();
    let (response, object) = plane.through("POST", MAPS, &body, &mut |_, request| {
        seen.push((
            request["name"].clone(),
            request["object"]["metadata"]["name"].clone(),
        ));
        reviewed(&allowed(request))
    });
    assert_eq!(response.code, 201);
    let name = object["metadata"]["name"].clone();
    assert!(name.as_str().expect("a name").starts_with("g-"));
    assert_eq!(seen, [(Value::Null, Value::Null), (Value::Null, name)]);
}

#[test]
fn a_service_is_found_by_its_endpoints() {
    let mut plane = Plane::new();
    let config = json!({ "service": { "namespace": "default", "name": "hook", "path": "/x" } });
    plane.register(VALIDATING, "a", json!({ "clientConfig": config }));
    let mut never = |_: &str, _: &Value| -> Answer { panic!("there is no address yet") };
    let (response, body) = plane.through("POST", MAPS, &map("m"), &mut never);
    assert_eq!(response.code, 500);
    assert_eq!(
        body["message"],
        "Internal error occurred: failed calling webhook \"a.hooks.example\": failed to call webhook: Post \"https://hook.default.svc:443/x?timeout=10s\": service \"hook\" not found"
    );
    let service = json!({ "metadata": { "name": "hook" }, "spec": { "ports": [{ "port": 443, "targetPort": 8443 }] } });
    let (code, body) = plane.ask("POST", "/api/v1/namespaces/default/services", &service);
    assert_eq!(code, 201, "{body}");
    let (_, body) = plane.through("POST", MAPS, &map("m"), &mut never);
    let message = body["message"].as_str().expect("a message").to_owned();
    assert!(
        message.ends_with("no endpoints available for service \"hook\""),
        "{message}"
    );
    let slice = json!({
        "metadata": { "name": "hook-1", "labels": { "kubernetes.io/service-name": "hook" } },
        "addressType": "IPv4",
        "ports": [{ "port": 8443 }],
        "endpoints": [{ "addresses": ["10.244.0.9"], "conditions": { "ready": true } }],
    });
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let (code, body) = plane.ask("POST", slices, &slice);
    assert_eq!(code, 201, "{body}");
    let Begin::Call(calls) = plane.begin("POST", MAPS, "application/json", &map("m")) else {
        panic!("a webhook is asked");
    };
    let at = &calls.calls[0].address;
    assert_eq!((&*at.host, at.port), ("10.244.0.9", 8443));
    assert_eq!(at.server_name, "hook.default.svc");
}

#[test]
fn a_configuration_is_checked_in_the_words_of_the_real_server() {
    let mut plane = Plane::new();
    let rows = [
        (
            json!({ "name": "short" }),
            "webhooks[0].name: Invalid value: \"short\": should be a domain with at least three segments separated by dots",
        ),
        (
            json!({ "sideEffects": null }),
            "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
        ),
        (
            json!({ "timeoutSeconds": 31 }),
            "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
        ),
        (
            json!({ "admissionReviewVersions": [] }),
            "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
        ),
        (
            json!({ "admissionReviewVersions": ["v2"] }),
            "webhooks[0].admissionReviewVersions: Invalid value: [\"v2\"]: must include at least one of v1, v1beta1",
        ),
        (
            json!({ "clientConfig": {} }),
            "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
        ),
        (
            json!({ "clientConfig": { "url": "http://a.b/c" } }),
            "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
        ),
        (
            json!({ "clientConfig": { "url": "https://a.b/c?d=e" } }),
            "webhooks[0].clientConfig.url: Invalid value: \"d=e\": query parameters are not permitted in the URL",
        ),
        (
            json!({ "rules": [{ "operations": [], "apiGroups": ["*", "a"], "apiVersions": ["v1"], "resources": ["pods/*", "pods/log"] }] }),
            "webhooks[0].rules[0].operations: Required value",
        ),
        (
            json!({ "failurePolicy": "Maybe" }),
            "webhooks[0].failurePolicy: Unsupported value: \"Maybe\": supported values: \"Fail\", \"Ignore\"",
        ),
    ];
    for (changes, text) in rows {
        let (code, body) = plane.ask("POST", VALIDATING, &configuration("a", changes));
        let message = body["message"].as_str().unwrap_or_default();
        assert_eq!(code, 422, "{message}");
        assert!(message.contains(text), "{message}\n  lacks {text}");
    }
}
