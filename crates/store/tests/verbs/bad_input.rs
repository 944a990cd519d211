//! What is wrong is said with its place, what is merely big is bounded; nothing is half-written.

use api::admission::{Facts, Review};

use super::*;

/// Performs the text's requests on a new plane: a line `METHOD resource {body}`, then a line
/// `=> code message`. The body is YAML on one line; a body in backquotes is sent as it stands.
pub(super) fn check(text: &str) {
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
        text.push_str(body["message"].as_str().unwrap_or_default().trim_end());
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
        ("crons", "/apis/batch/v1/namespaces/default/cronjobs"),
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
fn a_body_that_is_no_json_is_shown_with_what_is_wrong() {
    check(
        r#"
        POST pods `{"metadata":`
        => 400 the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: unexpected end of JSON input ({"metadata":)
        POST pods `metadata: {}`
        => 400 the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: invalid character 'm' looking for beginning of value (6d657461646174613a207b7d)
        POST pods `[]`
        => 400 the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b5d)
        POST pods
        => 400 the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)
        POST vcjobs `{"metadata":{"name":"a-long-name","labels":[}}}`
        => 400 the object provided is unrecognized (must be of type Job): couldn't get version/kind; json parse error: invalid character '}' looking for beginning of value ({"apiVersion":"batch.volcano.s ...)
        POST maps {metadata: {name: x}}
        => 201
        PATCH maps/x `{`
        => 400 error decoding patch: unexpected end of JSON input
        PATCH maps/x `[]`
        => 400 error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}
        PUT maps/x `{`
        => 400 the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input ({)
        DELETE maps/x `{`
        => 400 couldn't get version/kind; json parse error: unexpected end of JSON input
        "#,
    );
}

#[test]
fn unknown_and_duplicate_fields_are_refused_told_or_ignored() {
    check(
        r#"
        POST pods?fieldValidation=Strict `{"metadata":{"name":"x","name":"y"},"spec":{"containers":[{"name":"c","image":"i","image":"j","imagee":"k"}]}}`
        => 400 Pod in version "v1" cannot be handled as a Pod: strict decoding error: duplicate field "metadata.name", duplicate field "spec.containers[0].image", unknown field "spec.containers[0].imagee"
        POST pods `{"metadata":{"name":"x","name":"y"},"spec":{"containers":[{"name":"c","image":"i","image":"j","imagee":"k"}]}}`
        => 201 warning: duplicate field "metadata.name" warning: duplicate field "spec.containers[0].image" warning: unknown field "spec.containers[0].imagee"
        POST pods?fieldValidation=Ignore `{"metadata":{"name":"x","name":"z"},"spec":{"containers":[{"name":"c","image":"i","imagee":"k"}]}}`
        => 201
        POST pods?fieldValidation=Often {metadata: {name: x}}
        => 422 CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Often": supported values: "", "Ignore", "Strict", "Warn"
        POST vcjobs?fieldValidation=Strict `{"metadata":{"name":"x"},"spec":{"tasks":[{"name":"a","name":"b","nam":1,"template":{"spec":{"conainers":[]}}}]}}`
        => 400 Job in version "v1alpha1" cannot be handled as a Job: strict decoding error: duplicate field "spec.tasks[0].name", unknown field "spec.tasks[0].nam", unknown field "spec.tasks[0].template.spec.conainers"
        "#,
    );
}

#[test]
fn values_of_wrong_types_are_named_with_their_path() {
    check(
        r#"
        POST pods {metadata: {name: x}, spec: {containers: many}}
        => 400 Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container
        POST pods {metadata: {name: x, labels: {a: 1}}, spec: {containers: [{name: c, image: i}]}}
        => 400 Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string
        POST pods {metadata: 5}
        => 400 Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number into Go struct field Pod.metadata of type v1.ObjectMeta
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, ports: [{containerPort: "80"}]}]}}
        => 400 Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32
        POST jobs {metadata: {name: x}, spec: {parallelism: 3000000000, template: {}}}
        => 400 Job in version "v1" cannot be handled as a Job: json: cannot unmarshal number 3000000000 into Go struct field JobSpec.spec.parallelism of type int32
        POST maps {metadata: {name: x, creationTimestamp: yesterday}}
        => 400 ConfigMap in version "v1" cannot be handled as a ConfigMap: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"
        POST vcjobs {metadata: {name: x}, spec: {minAvailable: two, tasks: 5}}
        => 422 Job.batch.volcano.sh "x" is invalid: [spec.minAvailable: Invalid value: "string": spec.minAvailable in body must be of type integer: "string", spec.tasks: Invalid value: "integer": spec.tasks in body must be of type array: "integer"]
        POST vcjobs {metadata: {name: x}, spec: {tasks: [{name: a, replicas: 3000000000, template: {spec: {containers: [{name: c, image: i}]}}}]}}
        => 422 Job.batch.volcano.sh "x" is invalid: <nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.tasks[0].replicas
        POST vcjobs {metadata: {name: x, labels: 7}}
        => 400 Job in version "v1alpha1" cannot be handled as a Job: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type map[string]string
        POST queues {metadata: {name: q}, spec: {weight: 1.5}}
        => 422 Queue.scheduling.volcano.sh "q" is invalid: [spec.weight: Invalid value: "number": spec.weight in body must be of type integer: "number", <nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.weight]
        "#,
    );
}

#[test]
fn negative_amounts_and_counts_are_refused_everywhere() {
    check(
        r#"
        POST jobs {metadata: {name: x}, spec: {parallelism: -1, completions: -2, backoffLimit: -1, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
        => 422 Job.batch "x" is invalid: [spec.parallelism: Invalid value: -1: must be greater than or equal to 0, spec.completions: Invalid value: -2: must be greater than or equal to 0, spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0]
        POST deployments {metadata: {name: x}, spec: {replicas: -1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
        => 422 Deployment.apps "x" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0
        POST claims {metadata: {name: x}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "-1Gi"}}}}
        => 422 PersistentVolumeClaim "x" is invalid: spec.resources[storage]: Invalid value: "-1Gi": must be greater than zero
        POST claims {metadata: {name: x}, spec: {accessModes: [Often], resources: {requests: {storage: 0}}}}
        => 422 PersistentVolumeClaim "x" is invalid: [spec.accessModes: Unsupported value: "Often": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod", spec.resources[storage]: Invalid value: "0": must be greater than zero]
        POST services {metadata: {name: x}, spec: {ports: [{port: -80}]}}
        => 422 Service "x" is invalid: [spec.ports[0].port: Invalid value: -80: must be between 1 and 65535, inclusive, spec.ports[0].targetPort: Invalid value: -80: must be between 1 and 65535, inclusive]
        POST vcjobs {metadata: {name: x}, spec: {tasks: [{name: a, replicas: -1, template: {spec: {containers: [{name: c, image: i}]}}}]}}
        => 422 Job.batch.volcano.sh "x" is invalid: spec.tasks[0].replicas: Invalid value: -1: spec.tasks[0].replicas in body should be greater than or equal to 0
        POST queues {metadata: {name: q}, spec: {weight: -1}}
        => 422 Queue.scheduling.volcano.sh "q" is invalid: spec.weight: Invalid value: -1: spec.weight in body should be greater than or equal to 1
        "#,
    );
}

#[test]
fn names_are_well_formed_and_not_too_long() {
    let label = "a".repeat(64);
    let subdomain = "a".repeat(254);
    let text = r#"
        POST namespaces {metadata: {name: LABEL}}
        => 422 Namespace "LABEL" is invalid: [metadata.name: Invalid value: "LABEL": must be no more than 63 characters, metadata.labels: Invalid value: "LABEL": must be no more than 63 bytes]
        POST services {metadata: {name: LABEL}, spec: {ports: [{port: 80}]}}
        => 422 Service "LABEL" is invalid: metadata.name: Invalid value: "LABEL": must be no more than 63 characters
        POST maps {metadata: {name: SUBDOMAIN}}
        => 422 ConfigMap "SUBDOMAIN" is invalid: metadata.name: Invalid value: "SUBDOMAIN": must be no more than 253 characters
        POST vcjobs {metadata: {name: SUBDOMAIN}, spec: {tasks: [{name: t, replicas: 1, template: {spec: {containers: [{name: c, image: i}]}}}]}}
        => 422 Job.batch.volcano.sh "SUBDOMAIN" is invalid: metadata.name: Invalid value: "SUBDOMAIN": must be no more than 253 characters
        POST maps {metadata: {name: x, labels: {a: LABEL}}}
        => 422 ConfigMap "x" is invalid: metadata.labels: Invalid value: "LABEL": must be no more than 63 bytes
        POST maps {metadata: {}}
        => 422 ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required
        POST maps {metadata: {name: x, namespace: other}}
        => 400 the namespace of the provided object does not match the namespace sent on the request
        POST maps {metadata: {name: x, resourceVersion: "5"}}
        => 500 resourceVersion should not be set on objects to be created
        "#;
    let text = text
        .replace("LABEL", &label)
        .replace("SUBDOMAIN", &subdomain);
    check(&text);
}

#[test]
fn owners_are_named_whole_and_may_own_each_other() {
    check(
        r#"
        POST maps {metadata: {name: x, ownerReferences: [{apiVersion: v1, kind: Pod}]}}
        => 422 ConfigMap "x" is invalid: [metadata.ownerReferences.name: Invalid value: "": must not be empty, metadata.ownerReferences.uid: Invalid value: "": must not be empty]
        POST maps {metadata: {name: x, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: z, uid: z}]}}
        => 201
        POST maps {metadata: {name: z, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: x, uid: x}, {apiVersion: v1, kind: ConfigMap, name: z, uid: z}]}}
        => 201
        DELETE maps/x {propagationPolicy: Foreground}
        => 200
        GET maps/x
        => 200
        PATCH maps/x {metadata: {finalizers: null}}
        => 200
        GET maps/x
        => 404 configmaps "x" not found
        "#,
    );
}

#[test]
fn requests_that_fit_no_object_are_refused() {
    check(
        r#"
        POST pods/x {metadata: {name: x}}
        => 405 the server does not allow this method on the requested resource
        PATCH pods {metadata: {name: x}}
        => 405 the server does not allow this method on the requested resource
        PUT pods {metadata: {name: x}}
        => 405 the server does not allow this method on the requested resource
        GET pods?limit=x
        => 400 strconv.ParseInt: parsing "x": invalid syntax
        GET pods?continue=x
        => 400 invalid continue token: continue key is not valid: illegal base64 data at input byte 0
        GET pods?labelSelector=a%3D%3D%3Db
        => 400 unable to parse requirement: found '=', expected: identifier
        GET /api/v1/namespaces/default/pods/..%2Fx
        => 404 pods "../x" not found
        GET /apis/%ff
        => 404 the server could not find the requested resource
        DELETE maps/x {propagationPolicy: Sideways}
        => 422 DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"
        "#,
    );
}

#[test]
fn a_body_over_the_limit_is_refused_by_its_size() {
    let mut plane = Plane::new();
    let body = vec![b' '; (3 << 20) + 1];
    let answer = plane.send("POST", MAPS, "application/json", body);
    assert_eq!(
        said(&answer),
        "413 Request entity too large: limit is 3145728"
    );
}

#[test]
fn what_is_merely_big_is_taken_or_refused_in_bounded_words() {
    let mut plane = Plane::new();
    let vcjobs = target("vcjobs");
    let tasks = |count: usize, image: Value| -> Value {
        (0..count)
            .map(|index| {
                json!({ "name": format!("t{index}"), "replicas": 1_000_000, "template": { "spec": { "containers": [{ "name": "c", "image": image }] } } })
            })
            .collect()
    };
    let job = |name: &str, tasks: Value| json!({ "metadata": { "name": name }, "spec": { "tasks": tasks } });
    let many = job("many", tasks(10_000, json!("i")));
    assert_eq!(plane.ask("POST", &vcjobs, &many).0, 201);
    let wrong = job("wrong", tasks(10_000, json!(5)));
    let (code, answer) = plane.ask("POST", &vcjobs, &wrong);
    let message = answer["message"].as_str().expect("a message");
    assert_eq!(code, 422);
    assert!(
        message.starts_with("Job.batch.volcano.sh \"wrong\" is invalid: [spec.tasks[0].template.spec.containers[0].image: Invalid value"),
        "{message}"
    );
    assert!(message.len() < 64 << 10, "{}", message.len());
    let (code, _) = plane.ask("GET", &format!("{vcjobs}/wrong"), &Value::Null);
    assert_eq!(code, 404);
}

#[test]
fn an_object_does_not_grow_over_the_limit_by_patches() {
    let mut plane = Plane::new();
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
        "metadata": { "name": "heaps.sand.dev" },
        "spec": {
            "group": "sand.dev", "names": { "kind": "Heap", "plural": "heaps" }, "scope": "Cluster",
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": open } }],
        },
    });
    assert_eq!(plane.ask("POST", crds, &definition).0, 201);
    let heaps = "/apis/sand.dev/v1/heaps";
    let grain = "g".repeat(1 << 20);
    let (code, made) = plane.ask(
        "POST",
        heaps,
        &json!({ "metadata": { "name": "x" }, "a": grain }),
    );
    assert_eq!(code, 201);
    let before = plane.0.revision();
    let (code, answer) = plane.ask("PATCH", &format!("{heaps}/x"), &json!({ "b": grain }));
    assert_eq!(
        (code, &answer["message"], &answer["reason"]),
        (
            500,
            &json!("etcdserver: request is too large"),
            &Value::Null
        )
    );
    let heap = json!({ "metadata": { "name": "y" }, "a": "g".repeat(3 << 19) });
    let (code, _) = plane.ask("POST", heaps, &heap);
    assert_eq!(code, 500);
    assert_eq!(plane.0.revision(), before);
    let (_, kept) = plane.ask("GET", &format!("{heaps}/x"), &Value::Null);
    assert_eq!(kept, made);
    let (_, next) = plane.ask("POST", MAPS, &map("next"));
    let revision = (before + 1).to_string();
    assert_eq!(next["metadata"]["resourceVersion"], revision);
}

#[test]
fn a_refusal_by_review_comes_after_what_the_schema_says() {
    let mut plane = Plane::new();
    let mut ask = |replicas: i64| {
        let task = json!({ "name": "t", "replicas": replicas, "template": { "spec": { "containers": [{ "name": "c", "image": "i" }] } } });
        let job = json!({
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": { "name": "x" },
            "spec": { "tasks": [task] },
        });
        let request = Request {
            method: Method::Post,
            path: target("vcjobs"),
            query: String::new(),
            accept: String::new(),
            content_type: String::new(),
            user_agent: String::new(),
            body: job.to_string().into_bytes(),
            user: User::admin(),
        };
        let mut deny = |_: &Review<'_>, _: &dyn Facts| Verdict::Denied {
            code: 400,
            message: "no".to_owned(),
        };
        let begin = plane.0.begin(&request, NOW, &mut deny);
        plane.end(begin)
    };
    let denied = ask(1);
    assert_eq!(said(&denied), "400 no");
    // What a webhook denies with a message alone has no reason.
    let status: Value = serde_json::from_slice(&denied.body).expect("a status");
    assert_eq!(status.get("reason"), None);
    assert_eq!(
        said(&ask(3_000_000_000)),
        "422 Job.batch.volcano.sh \"x\" is invalid: <nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec.tasks[0].replicas"
    );
}

/// Work that grows with the square of a list would hold up every other write for minutes.
#[test]
fn long_lists_are_compared_in_order_of_their_length() {
    let mut plane = Plane::new();
    let finalizers: Vec<String> = (0..30_000).map(|index| format!("a.dev/f{index}")).collect();
    let held = json!({ "metadata": { "name": "x", "finalizers": finalizers } });
    assert_eq!(plane.ask("POST", MAPS, &held).0, 201);
    let one = format!("{MAPS}/x");
    assert_eq!(plane.ask("DELETE", &one, &Value::Null).0, 200);
    let change = json!({ "data": { "a": "b" } });
    assert_eq!(plane.ask("PATCH", &one, &change).0, 200);

    let keys: Value = (0..30_000)
        .map(|index| json!(format!("k{index}")))
        .collect();
    let data: Value = (0..30_000)
        .map(|index| (format!("k{index}"), json!("v")))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let wide = json!({ "metadata": { "name": "wide" }, "data": data });
    assert_eq!(plane.ask("POST", MAPS, &wide).0, 201);
    let retain = json!({ "data": { "$retainKeys": keys } }).to_string();
    let strategic = "application/strategic-merge-patch+json";
    let answer = plane.send(
        "PATCH",
        &format!("{MAPS}/wide"),
        strategic,
        retain.into_bytes(),
    );
    assert_eq!(answer.code, 200);

    let tolerations: Value = (0..20_000)
        .map(|index| json!({ "key": format!("k{index}"), "operator": "Exists" }))
        .collect();
    let pod = json!({ "metadata": { "name": "x" }, "spec": { "tolerations": tolerations, "containers": [{ "name": "c", "image": "i" }] } });
    assert_eq!(plane.ask("POST", PODS, &pod).0, 201);
    let change = json!({ "metadata": { "labels": { "a": "b" } } });
    assert_eq!(plane.ask("PATCH", &format!("{PODS}/x"), &change).0, 200);
}

#[test]
fn a_body_that_was_read_ahead_is_taken_as_one_that_was_not() {
    let crd = json!({"metadata": {"name": "cats.pets.k8s.io", "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}}, "spec": {
        "group": "pets.k8s.io", "names": {"kind": "Cat", "plural": "cats"}, "scope": "Cluster",
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
    }});
    let [mut at_once, mut ahead] = [Plane::new(), Plane::new()];
    for plane in [&mut at_once, &mut ahead] {
        let (code, answer) = plane.ask(
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            &crd,
        );
        assert_eq!(code, 201, "{answer}");
    }
    let maps = "/api/v1/namespaces/default/configmaps";
    // A group like Kubernetes' own that is not: it is guessed wrongly how its bodies are read.
    let cats = "/apis/pets.k8s.io/v1/cats";
    let rows = [
        (
            "POST",
            maps,
            r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#,
        ),
        (
            "POST",
            maps,
            r#"{"metadata":{"name":"b","labels":{"a":"1"}},"metadata":{"labels":{"b":"2"}}}"#,
        ),
        ("POST", maps, r#"{"metadata":{"name":"c"}"#),
        ("POST", maps, "null"),
        ("POST", maps, ""),
        (
            "PUT",
            "/api/v1/namespaces/default/configmaps/a",
            r#"{"metadata":{"name":"a"},"data":{"k":"w"}}"#,
        ),
        (
            "POST",
            cats,
            r#"{"apiVersion":"pets.k8s.io/v1","kind":"Cat","metadata":{"name":"a"},"spec":{"a":1},"spec":{"b":2}}"#,
        ),
        ("POST", "/apis/batch/v1/nothing", "{"),
    ];
    for (method, path, body) in rows {
        let request = Request {
            method: Method::parse(method).expect("a method"),
            path: path.to_owned(),
            query: String::new(),
            accept: String::new(),
            content_type: "application/json; charset=utf-8".to_owned(),
            user_agent: "tests/1.0".to_owned(),
            body: body.as_bytes().to_vec(),
            user: User::admin(),
        };
        let answer = |plane: &mut Plane, talk: Talk| {
            let begun = plane
                .0
                .resume(&request, talk, &mut |_, _| Verdict::Allowed {
                    object: None,
                    warnings: Vec::new(),
                });
            let response = plane.end(begun);
            (
                response.code,
                String::from_utf8_lossy(&response.body).into_owned(),
                response.warnings,
            )
        };
        let wanted = answer(&mut at_once, Talk::new(NOW));
        let talk = Talk::new(NOW).read_ahead(&request);
        assert_eq!(answer(&mut ahead, talk), wanted, "{method} {path} {body}");
    }
}
