use serde_json::{Value, json};

use crate::crd::{self, Crd};
use crate::field::aggregate;
use crate::wire::Wire;

fn strict(wire: &Wire, object: Value) -> Vec<String> {
    wire.schema("", "v1", "Pod")
        .unwrap()
        .unknown_fields(&object)
}

#[test]
fn unknown_fields_of_built_ins_are_named() {
    let wire = Wire::load();
    let object = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "labels": {"any": "thing"}, "nam": 1},
        "spec": {"containers": [{"name": "a", "imag": "x"}], "foo": {"bar": 1}},
    });
    assert_eq!(
        strict(&wire, object),
        ["metadata.nam", "spec.containers[0].imag", "spec.foo"]
    );
}

#[test]
fn wrong_types_of_built_ins_are_gos_decoding_errors() {
    let wire = Wire::load();
    let rows = [
        (
            json!({"spec": {"hostNetwork": "yes"}}),
            "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool",
        ),
        (
            json!({"spec": {"containers": [{"env": [{"name": "a", "value": 1}]}]}}),
            "json: cannot unmarshal number into Go struct field EnvVar.spec.containers.env.value of type string",
        ),
        (
            json!({"spec": {"priority": 5_000_000_000i64}}),
            "json: cannot unmarshal number 5000000000 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            json!({"spec": []}),
            "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec",
        ),
        (
            json!({"metadata": {"labels": {"a": 1}}}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
    ];
    for (mut object, text) in rows {
        let schema = wire.schema("", "v1", "Pod").unwrap();
        assert_eq!(schema.coerce(&mut object).unwrap_err(), text);
    }
    let mut bad =
        json!({"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "x"}}}]}});
    let text = wire
        .schema("", "v1", "Pod")
        .unwrap()
        .coerce(&mut bad)
        .unwrap_err();
    assert!(
        text.contains("quantities must match the regular expression"),
        "{text}"
    );
}

#[test]
fn built_ins_are_stored_as_go_prints_them() {
    let wire = Wire::load();
    let mut object = json!({
        "metadata": {"name": "x", "creationTimestamp": "2026-01-02T03:04:05.678+01:00", "labels": null},
        "spec": {"containers": [{"name": "a", "unknown": 1, "resources": {"limits": {"cpu": "1000m", "memory": 1024}}}]},
    });
    wire.schema("", "v1", "Pod")
        .unwrap()
        .coerce(&mut object)
        .unwrap();
    assert_eq!(
        object,
        json!({
            "metadata": {"name": "x", "creationTimestamp": "2026-01-02T02:04:05Z"},
            "spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "1", "memory": "1024"}}}]},
            "status": {},
        })
    );
}

fn vcjob(wire: &Wire) -> &crate::schema::Schema {
    let jobs = wire
        .crds()
        .iter()
        .find(|crd| crd.names.plural == "jobs")
        .unwrap();
    &jobs.versions[0].schema
}

#[test]
fn a_volcano_job_is_pruned_defaulted_and_checked() {
    let wire = Wire::load();
    let mut job = json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "x"},
        "spec": {
            "junk": 1,
            "minAvailable": null,
            "tasks": [{"name": "a", "replicas": 1, "template": {
                "metadata": {"labels": {"a": "b"}, "uid": "u"},
                "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": 1}}}], "nothing": 1},
            }}],
        },
    });
    let schema = vcjob(&wire);
    assert_eq!(
        schema.unknown_fields(&job),
        [
            "spec.junk",
            "spec.tasks[0].template.metadata.uid",
            "spec.tasks[0].template.spec.nothing"
        ]
    );
    schema.prune(&mut job);
    schema.default(&mut job);
    assert_eq!(schema.validate(&job, None, Vec::new()).errors, []);
    assert_eq!(job["spec"]["queue"], "default");
    assert_eq!(job["spec"]["maxRetry"], 3);
    assert!(job["spec"].get("minAvailable").is_none());
    assert_eq!(
        job["spec"]["tasks"][0]["template"],
        json!({
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": 1}}}]},
        })
    );
}

#[test]
fn wrong_volcano_jobs_are_refused_with_the_field_path() {
    let wire = Wire::load();
    let rows = [
        (
            json!({"minAvailable": "1"}),
            "spec.minAvailable: Invalid value: \"string\": spec.minAvailable in body must be of type integer: \"string\"",
        ),
        (
            json!({"minAvailable": -1}),
            "spec.minAvailable: Invalid value: -1: spec.minAvailable in body should be greater than or equal to 0",
        ),
        (
            json!({"tasks": []}),
            "spec.tasks: Invalid value: 0: spec.tasks in body should have at least 1 items",
        ),
        (
            json!({"tasks": [{"name": "A_b"}]}),
            "spec.tasks[0].name: Invalid value: \"A_b\": spec.tasks[0].name in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'",
        ),
        (
            json!({"tasks": [{"topologyPolicy": "x"}]}),
            "spec.tasks[0].topologyPolicy: Unsupported value: \"x\": supported values: \"none\", \"best-effort\", \"restricted\", \"single-numa-node\"",
        ),
        (
            json!({"volumes": [{}]}),
            "spec.volumes[0].mountPath: Required value",
        ),
        (
            json!({"tasks": [{"template": {"spec": {}}}]}),
            "spec.tasks[0].template.spec.containers: Required value",
        ),
        (
            json!({"queue": "x".repeat(254)}),
            "spec.queue: Too long: may not be more than 253 bytes",
        ),
    ];
    for (spec, text) in rows {
        let job = json!({"metadata": {"name": "x"}, "spec": spec});
        assert_eq!(
            aggregate(&vcjob(&wire).validate(&job, None, Vec::new()).errors),
            text,
            "{job}"
        );
    }
}

#[test]
fn ten_thousand_wrong_tasks_are_refused_in_bounded_space() {
    let wire = Wire::load();
    let tasks: Vec<Value> = (0..10_000)
        .map(|n| json!({"name": "A", "replicas": -n - 1}))
        .collect();
    let job = json!({"metadata": {"name": "x"}, "spec": {"tasks": tasks}});
    let errors = vcjob(&wire).validate(&job, None, Vec::new()).errors;
    assert_eq!(errors.len(), crate::field::ERRORS_MAX);
}

fn widget(schema: Value) -> Value {
    let mut object = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": schema},
            }}}],
        },
    });
    crd::default(&mut object);
    object["status"] = json!({"storedVersions": ["v1"]});
    object
}

#[test]
fn a_users_definition_is_compiled_and_its_rules_run() {
    let wire = Wire::load();
    let schema = json!({
        "type": "object",
        "properties": {
            "min": {"type": "integer"},
            "max": {"type": "integer"},
            "size": {"x-kubernetes-int-or-string": true},
            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "one": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is immutable"}]},
        },
        "x-kubernetes-validations": [{"rule": "self.min <= self.max", "messageExpression": "string(self.min)"}],
    });
    let crd = Crd::check_new(&widget(schema), &wire).unwrap();
    assert_eq!(
        (crd.names.singular.as_str(), crd.names.list_kind.as_str()),
        ("widget", "WidgetList")
    );
    let schema = &crd.versions[0].schema;
    let rows = [
        (json!({"min": 1, "max": 2, "size": "3"}), ""),
        (json!({"min": 3, "max": 2}), "spec: Invalid value: 3"),
        (
            json!({"min": 1, "max": 2, "ports": [{"name": "a"}, {"name": "a"}]}),
            "spec.ports[1]: Duplicate value: {\"name\":\"a\"}",
        ),
        (
            json!({"min": 1, "max": 2, "tags": ["a", "a"]}),
            "spec.tags[1]: Duplicate value: \"a\"",
        ),
        (
            json!({"min": 1, "max": 2, "one": {}}),
            "[<nil>: Invalid value: \"\": \"spec.one\" must validate one and only one schema (oneOf). Found none valid, spec.one.a: Required value, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]",
        ),
        (
            json!({"min": 1, "max": 2, "fixed": "b"}),
            "spec.fixed: Invalid value: \"b\": fixed is immutable",
        ),
    ];
    let old = json!({"metadata": {"name": "x"}, "spec": {"min": 1, "max": 2, "fixed": "a"}});
    for (spec, text) in rows {
        let object = json!({"metadata": {"name": "x"}, "spec": spec});
        let errors = schema.validate(&object, Some(&old), Vec::new()).errors;
        let found = if errors.is_empty() {
            String::new()
        } else {
            aggregate(&errors)
        };
        assert_eq!(found, text, "{object}");
    }
}

#[test]
fn broken_definitions_are_refused_with_the_field_path() {
    let wire = Wire::load();
    let rows = [
        (
            json!({"type": "strin"}),
            "spec.validation.openAPIV3Schema.properties[spec].type",
        ),
        (
            json!({"type": "string", "pattern": "("}),
            "properties[spec].pattern",
        ),
        (
            json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.("}]}),
            "x-kubernetes-validations[0].rule",
        ),
    ];
    for (schema, place) in rows {
        let text = aggregate(&Crd::check_new(&widget(schema), &wire).unwrap_err());
        assert!(text.contains(place), "{text}");
    }
}

#[test]
fn a_rule_that_would_loop_for_ever_is_stopped() {
    let wire = Wire::load();
    let schema = json!({
        "type": "object",
        "properties": {"items": {"type": "array", "items": {"type": "integer"}}},
        "x-kubernetes-validations": [{"rule": "self.items.all(a, self.items.all(b, self.items.all(c, a + b + c > -1)))"}],
    });
    let crd = Crd::compile(&widget(schema), &wire).unwrap();
    let items: Vec<u32> = (0..10_000).collect();
    let errors = crd.versions[0]
        .schema
        .validate(&json!({"spec": {"items": items}}), None, Vec::new())
        .errors;
    assert!(aggregate(&errors).contains("call cost exceeds limit"));
}

#[test]
fn every_definition_we_bring_can_be_shown_and_read_again() {
    let wire = Wire::load();
    assert_eq!(wire.crds().len(), 14);
    for crd in wire.crds() {
        let object = crd.object(&wire);
        let again = Crd::check_new(&object, &wire).unwrap_or_else(|errors| {
            panic!("{}: {}", object["metadata"]["name"], aggregate(&errors))
        });
        assert_eq!(again.names, crd.names);
    }
}
