//! What is wrong is said with its place, what is merely big is bounded; nothing is half-written.

use super::*;

/// Performs the text's requests on a new plane: a line `METHOD resource {body}`, then a line
/// `=> code message`. The body is YAML on one line; a body in backquotes is sent as it stands.
fn check(text: &str) {
    check_on(&mut Plane::new(), text);
}

fn check_on(plane: &mut Plane, text: &str) {
    let mut answer = String::new();
    let mut asked = "";
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.strip_prefix("=> ") {
            Some(expected) => assert_eq!(answer, expected, "{asked}"),
            None => {
                asked = line;
                answer = perform(plane, line);
            }
        }
    }
}

fn perform(plane: &mut Plane, line: &str) -> String {
    let mut words = line.splitn(3, ' ');
    let method = words.next().expect("a method");
    let target = target(words.next().expect("a resource"));
    let body = words.next().unwrap_or_default().trim();
    let body = match body.trim_matches('`') {
        "" => Vec::new(),
        raw if raw.len() < body.len() => raw.as_bytes().to_vec(),
        yaml => {
            let value: Value = serde_saphyr::from_str(yaml).expect("a body");
            value.to_string().into_bytes()
        }
    };
    let content = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    said(&plane.send(method, &target, content, body))
}

/// `code message`, with the warnings behind.
fn said(response: &Response) -> String {
    let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let mut text = response.code.to_string();
    if body["kind"] == "Status" {
        text.push(' ');
        text.push_str(body["message"].as_str().unwrap_or_default());
    }
    for warning in &response.warnings {
        text.push_str(" warning: ");
        text.push_str(warning);
    }
    text
}

/// The path of `pods`, `vcjobs/x` and so on; a path stays one.
fn target(short: &str) -> String {
    let rows = [
        ("accounts", "/api/v1/namespaces/default/serviceaccounts"),
        (
            "claims",
            "/api/v1/namespaces/default/persistentvolumeclaims",
        ),
        (
            "deployments",
            "/apis/apps/v1/namespaces/default/deployments",
        ),
        ("jobs", "/apis/batch/v1/namespaces/default/jobs"),
        ("maps", MAPS),
        ("namespaces", "/api/v1/namespaces"),
        ("pods", PODS),
        ("queues", "/apis/scheduling.volcano.sh/v1beta1/queues"),
        ("services", "/api/v1/namespaces/default/services"),
        (
            "vcjobs",
            "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs",
        ),
    ];
    let end = short.find(['/', '?']).unwrap_or(short.len());
    let (head, tail) = short.split_at(end);
    match rows.iter().find(|row| row.0 == head) {
        Some((_, path)) => format!("{path}{tail}"),
        None => short.to_owned(),
    }
}

#[test]
fn amounts_of_a_pod_are_not_negative_and_no_request_is_above_its_limit() {
    check(
        r#"
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "-1"}}}]}}
        => 422 Pod "x" is invalid: spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: -1}}}]}}
        => 422 Pod "x" is invalid: spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 2, memory: 1Gi}, limits: {cpu: 1500m, memory: 1Gi}}}]}}
        => 422 Pod "x" is invalid: spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1500m
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, resources: {requests: {example.dev/gpu: 1}}}]}}
        => 422 Pod "x" is invalid: spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, resources: {limits: {example.dev/gpu: 1500m}}}]}}
        => 422 Pod "x" is invalid: [spec.containers[0].resources.limits[example.dev/gpu]: Invalid value: "1500m": must be an integer, spec.containers[0].resources.requests[example.dev/gpu]: Invalid value: "1500m": must be an integer]
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, resources: {limits: {example.dev/gpu: 2}, requests: {example.dev/gpu: 1}}}]}}
        => 422 Pod "x" is invalid: spec.containers[0].resources.requests: Invalid value: "1": must be equal to example.dev/gpu limit of 2
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, resources: {requests: {gpu: 1}}}]}}
        => 422 Pod "x" is invalid: [spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified, spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard resource for containers]
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: lots}}}]}}
        => 400 Pod in version "v1" cannot be handled as a Pod: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
        GET pods/x
        => 404 pods "x" not found
        "#,
    );
}

#[test]
fn a_pods_service_account_is_there_or_is_the_default_one() {
    check(
        r#"
        POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}
        => 201
        POST pods {metadata: {name: b}, spec: {serviceAccountName: robot, containers: [{name: c, image: i}]}}
        => 403 pods "b" is forbidden: error looking up service account default/robot: serviceaccount "robot" not found
        POST accounts {metadata: {name: robot}}
        => 201
        POST pods {metadata: {name: b}, spec: {serviceAccountName: robot, containers: [{name: c, image: i}]}}
        => 201
        "#,
    );
}
