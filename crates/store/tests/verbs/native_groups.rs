//! Kubernetes' own groups of pods, served where that is wished for.

use serde_json::{Value, json};
use store::{NativeGroups, Settings, Store};

use super::{Counting, NOW, Plane};

fn native() -> Plane {
    let settings = Settings {
        native_groups: NativeGroups::Served,
        ..Settings::default()
    };
    let mut store = Store::new(settings, Box::new(Counting(0)));
    let commit = store.start(NOW).expect("a new plane has objects to make");
    store.finish(commit.ticket, NOW);
    Plane(store)
}

const GROUPS: &str = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups";
const WORKLOADS: &str = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/workloads";

fn group(spec: Value) -> Value {
    let version = "scheduling.k8s.io/v1beta1";
    json!({ "apiVersion": version, "kind": "PodGroup", "metadata": { "name": "g" }, "spec": spec })
}

fn workload(templates: &Value) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": { "name": "w" },
        "spec": { "podGroupTemplates": templates },
    })
}

#[test]
fn they_are_there_only_when_wished_for_and_after_volcanos() {
    let names = |plane: &mut Plane| -> Vec<String> {
        let (_, list) = plane.ask("GET", "/apis", &Value::Null);
        let groups = list["groups"].as_array().expect("groups").iter();
        groups
            .map(|it| it["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    let mut without = Plane::new();
    assert_eq!(without.ask("GET", GROUPS, &Value::Null).0, 404);
    assert_ne!(
        names(&mut without).last().expect("groups"),
        "scheduling.k8s.io"
    );
    let mut with = native();
    assert_eq!(with.ask("GET", GROUPS, &Value::Null).0, 200);
    assert_eq!(
        names(&mut with).last().expect("groups"),
        "scheduling.k8s.io"
    );
    let (_, document) = with.ask("GET", "/apis/scheduling.k8s.io", &Value::Null);
    let versions = document["versions"].as_array().expect("versions").iter();
    let versions: Vec<&Value> = versions.map(|it| &it["version"]).collect();
    assert_eq!(versions, ["v1", "v1beta1", "v1alpha3"]);
}

#[test]
fn a_group_gets_its_default_and_only_its_count_may_change() {
    let mut plane = native();
    let (code, made) = plane.ask(
        "POST",
        GROUPS,
        &group(json!({ "schedulingPolicy": { "gang": { "minCount": 3 } } })),
    );
    assert_eq!(code, 201, "{made}");
    assert_eq!(
        made["spec"],
        json!({ "disruptionMode": { "single": {} }, "schedulingPolicy": { "gang": { "minCount": 3 } } })
    );
    let one = format!("{GROUPS}/g");
    let (code, changed) = plane.ask(
        "PATCH",
        &one,
        &json!({ "spec": { "schedulingPolicy": { "gang": { "minCount": 4 } } } }),
    );
    assert_eq!(
        (
            code,
            &changed["spec"]["schedulingPolicy"]["gang"]["minCount"]
        ),
        (200, &json!(4))
    );
    for patch in [
        json!({ "spec": { "priority": 7 } }),
        json!({ "spec": { "disruptionMode": { "single": null, "all": {} } } }),
        json!({ "spec": { "schedulingPolicy": { "gang": null, "basic": {} } } }),
        json!({ "spec": { "workloadRef": { "workloadName": "w", "templateName": "t" } } }),
    ] {
        let (code, refused) = plane.ask("PATCH", &one, &patch);
        assert_eq!(code, 422, "{patch}: {refused}");
    }
    let alpha = one.replace("v1beta1", "v1alpha3");
    let (code, same) = plane.ask("GET", &alpha, &Value::Null);
    assert_eq!(
        (code, &same["apiVersion"]),
        (200, &json!("scheduling.k8s.io/v1alpha3"))
    );
}

#[test]
fn what_is_no_group_or_workload_is_refused_by_field() {
    let mut plane = native();
    let policy = json!({ "basic": {} });
    for (spec, field) in [
        (json!({}), "spec.schedulingPolicy"),
        (json!({ "schedulingPolicy": {} }), "spec.schedulingPolicy"),
        (
            json!({ "schedulingPolicy": { "gang": { "minCount": 0 } } }),
            "minCount",
        ),
        (
            json!({ "schedulingPolicy": { "gang": {}, "basic": {} } }),
            "schedulingPolicy",
        ),
        (
            json!({ "schedulingPolicy": policy, "priority": 1_000_000_001 }),
            "spec.priority",
        ),
        (
            json!({ "schedulingPolicy": policy, "schedulingConstraints": { "topology": [{ "key": "a" }, { "key": "b" }] } }),
            "spec.schedulingConstraints.topology",
        ),
        (
            json!({ "schedulingPolicy": policy, "resourceClaims": [{ "name": "a" }] }),
            "spec.resourceClaims",
        ),
    ] {
        let (code, refused) = plane.ask("POST", GROUPS, &group(spec.clone()));
        assert_eq!(code, 422, "{spec}: {refused}");
        let message = refused["message"].as_str().expect("a message");
        assert!(message.contains(field), "{spec}: {message}");
    }
    let template = |name: &str| json!({ "name": name, "schedulingPolicy": { "basic": {} } });
    let nine: Vec<Value> = (0..9).map(|at| template(&format!("t{at}"))).collect();
    for templates in [json!([]), json!(nine), json!([template("Not-A-Label")])] {
        let body = workload(&templates);
        assert_eq!(plane.ask("POST", WORKLOADS, &body).0, 422, "{body}");
    }
    let body = workload(&json!([template("a")]));
    assert_eq!(plane.ask("POST", WORKLOADS, &body).0, 201);
    let more = json!({ "spec": { "podGroupTemplates": [template("a"), template("b")] } });
    assert_eq!(plane.ask("PATCH", &format!("{WORKLOADS}/w"), &more).0, 422);
}
