use serde_json::{Value, json};

use super::*;
use crate::field::{aggregate, invalid_message};
use crate::wire::Wire;

/// The object as it would be stored, and what is wrong with it.
fn create(wire: &Wire, object: Value) -> (Value, Vec<FieldError>) {
    let mut object = object;
    let (group, version) = match object["apiVersion"].as_str().unwrap().split_once('/') {
        Some((group, version)) => (group.to_owned(), version.to_owned()),
        None => (String::new(), "v1".to_owned()),
    };
    let kind = object["kind"].as_str().unwrap().to_owned();
    wire.schema(&group, &version, &kind)
        .unwrap()
        .coerce(&mut object)
        .unwrap();
    default(&group, &kind, &mut object);
    if kind == "Job" {
        object["metadata"]["uid"] = json!("u");
        label_job(&mut object);
    }
    let errors = validate(&group, &kind, &object);
    (object, errors)
}

#[test]
fn wrong_objects_are_refused_in_the_real_servers_words() {
    let wire = Wire::load();
    let pod = |spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec});
    let one = |container: Value| pod(json!({"containers": [container]}));
    let rows = [
        (pod(json!({})), "spec.containers: Required value"),
        (
            one(json!({"name": "a"})),
            "spec.containers[0].image: Required value",
        ),
        (
            one(json!({"name": "a", "image": "i", "imagePullPolicy": "x"})),
            "spec.containers[0].imagePullPolicy: Unsupported value: \"x\": supported values: \"Always\", \"IfNotPresent\", \"Never\"",
        ),
        (
            one(json!({"name": "a", "image": "i", "ports": [{"containerPort": 70000}]})),
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        (
            one(
                json!({"name": "a", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}),
            ),
            "spec.containers[0].volumeMounts[0].name: Not found: \"v\"",
        ),
        (
            one(json!({"name": "a", "image": "i", "resources": {"requests": {"cpu": "-1"}}})),
            "spec.containers[0].resources.requests[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
        ),
        (
            one(
                json!({"name": "a", "image": "i", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}),
            ),
            "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
        ),
        (
            pod(json!({"restartPolicy": "x", "containers": [{"name": "a", "image": "i"}]})),
            "spec.restartPolicy: Unsupported value: \"x\": supported values: \"Always\", \"OnFailure\", \"Never\"",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {}}),
            "spec.ports: Required value",
        ),
        (
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}),
            "spec.accessModes: Required value: at least 1 access mode is required",
        ),
        (
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {"spec": {"containers": [{"name": "a", "image": "i"}]}}}}),
            "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
        ),
        (
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "s"}}),
            "provisioner: Required value",
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}),
            "metadata.name: Required value: name or generateName is required",
        ),
        (
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "c"}}, "spec": {"containers": [{"name": "a", "image": "i"}]}}}}),
            "spec.template.metadata.labels: Invalid value: {\"a\":\"c\"}: `selector` does not match template `labels`",
        ),
    ];
    for (object, wanted) in rows {
        let (_, errors) = create(&wire, object.clone());
        assert_eq!(aggregate(&errors), wanted, "{object}");
    }
    let (_, errors) = create(&wire, pod(json!({})));
    assert_eq!(
        invalid_message("", "Pod", "x", &errors),
        "Pod \"x\" is invalid: spec.containers: Required value"
    );
}

#[test]
fn limits_and_ports_of_the_host_are_filled_in_for_pods_and_not_for_their_templates() {
    let wire = Wire::load();
    let spec = json!({"hostNetwork": true, "containers": [{
        "name": "a", "image": "i", "ports": [{"containerPort": 80}],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}},
    }]});
    let seen = |spec: &Value| {
        let container = &spec["containers"][0];
        let port = container["ports"][0]["hostPort"].as_i64();
        (container["resources"]["requests"].clone(), port)
    };
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec});
    let (pod, errors) = create(&wire, pod);
    assert_eq!(errors, []);
    let filled = json!({"cpu": "100m", "memory": "1Gi"});
    assert_eq!(seen(&pod["spec"]), (filled, Some(80)));
    let template = json!({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"}, "template": {"spec": spec}});
    let (template, errors) = create(&wire, template);
    assert_eq!(errors, []);
    assert_eq!(
        seen(&template["template"]["spec"]),
        (json!({"cpu": "100m"}), None)
    );
}

#[test]
fn a_small_pod_gets_the_defaults_of_a_real_server() {
    let wire = Wire::load();
    let (pod, errors) = create(
        &wire,
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"},
            "spec": {
                "containers": [{
                    "name": "a", "image": "nginx", "ports": [{"containerPort": 80}],
                    "resources": {"limits": {"cpu": "1000m"}},
                }],
                "volumes": [{"name": "v"}, {"name": "s", "secret": {"secretName": "s"}}],
            },
        }),
    );
    assert_eq!(errors, []);
    assert_eq!(
        pod["spec"],
        json!({
            "containers": [{
                "name": "a", "image": "nginx", "imagePullPolicy": "Always",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }],
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": true,
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
            "volumes": [
                {"name": "v", "emptyDir": {}},
                {"name": "s", "secret": {"secretName": "s", "defaultMode": 420}},
            ],
        })
    );
    let mut twice = pod.clone();
    default("", "Pod", &mut twice);
    assert_eq!(twice, pod, "defaults are filled in once");
}

#[test]
fn defaults_of_other_kinds_leave_no_nulls_behind() {
    let wire = Wire::load();
    for object in [
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}),
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "i:1"}]}}}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "i:1"}]}}}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "s"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "i:1"}]}}}}),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "s"}, "spec": {"podSelector": {}}}),
    ] {
        let (stored, errors) = create(&wire, object);
        assert_eq!(errors, [], "{stored}");
        assert!(!stored.to_string().contains("null"), "{stored}");
    }
}

#[test]
fn a_running_pod_keeps_its_spec_but_for_images() {
    let wire = Wire::load();
    let pod = |image: &str, node: &str| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"nodeName": node, "containers": [{"name": "a", "image": image}]}});
    let (old, _) = create(&wire, pod("i:1", "n"));
    let (image, _) = create(&wire, pod("i:1", "n"));
    assert_eq!(validate_update("", "Pod", &image, &old), []);
    let mut image = old.clone();
    image["spec"]["containers"][0]["image"] = "i:2".into();
    assert_eq!(validate_update("", "Pod", &image, &old), []);
    let mut moved = old.clone();
    moved["spec"]["nodeName"] = "m".into();
    let text = aggregate(&validate_update("", "Pod", &moved, &old));
    assert!(
        text.starts_with("spec: Forbidden: pod updates may not change fields other than"),
        "{text}"
    );
}
