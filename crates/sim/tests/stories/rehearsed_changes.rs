//! What a change does to a copy of a cluster: as much as it would do to the cluster, and no more.

use api::ask::Subject;
use api::intent::ObjectKey;
use api::kind::Kind;
use driver::explain::Unanswered;
use serde_json::{Value, json};
use sim::{Change, Outcome, Rehearsal, WHAT_IF};

use crate::drivers::drivers_by;
use crate::rehearsed::{NOW, group, job, node, only_makers, pod, queue, rehearsal, tried};

/// A pod of a gang of one waits where there is such a node.
pub(super) fn one_waits(node: Value) -> Vec<Value> {
    vec![
        node,
        queue("default", None),
        group("team-a", "train", "default", 1),
        pod("team-a", "train", 0, "1", None),
    ]
}

fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

#[test]
fn more_pods_of_a_job_that_runs_are_told_to_wait() {
    let mut rehearsal = rehearsal(vec![node("n1", "3"), queue("default", None)]);
    let change = |replicas: u32, rehearsal: &mut Rehearsal| {
        let document = job("train", (1, replicas), "1");
        let change = Change::read(&document, "team-a").expect("it is understood");
        assert_eq!(rehearsal.change(&change), []);
        assert!(rehearsal.settle());
    };
    change(2, &mut rehearsal);
    let two_run = rehearsal.look();
    change(4, &mut rehearsal);
    let outcome = rehearsal.outcome(&two_run);
    let [start] = &outcome.starts[..] else {
        panic!("one of them starts: {outcome:?}");
    };
    assert_eq!((start.placed, start.pods), (3, 4));
    let why = start.reason.as_deref().expect("the rest waits");
    assert!(why.contains("cpu"), "{why}");

    let three_run = rehearsal.look();
    change(6, &mut rehearsal);
    let outcome = rehearsal.outcome(&three_run);
    assert_eq!(outcome.starts, []);
    let [wait] = &outcome.waits[..] else {
        panic!("its rest waits: {outcome:?}");
    };
    assert_eq!((wait.placed, wait.waiting()), (3, 3));
    let six = rehearsal.look();
    assert_eq!(rehearsal.outcome(&six), Outcome::default());
}

#[test]
fn a_pod_without_its_group_is_no_news() {
    let objects = vec![
        node("n1", "4"),
        queue("default", None),
        pod("team-a", "ghost", 0, "1", None),
    ];
    assert_eq!(tried(objects, &[]), Outcome::default());
}

#[test]
fn a_node_that_is_mentioned_keeps_its_taints() {
    let mut tainted = node("n1", "4");
    tainted["spec"]["taints"] =
        json!([{ "key": "for", "value": "others", "effect": "NoSchedule" }]);
    let mut labelled = node("n1", "4");
    labelled["metadata"]["labels"]["zone"] = json!("a");
    labelled["spec"] = json!({});
    let outcome = tried(one_waits(tainted.clone()), &[labelled.clone()]);
    assert_eq!(outcome.starts, []);
    labelled["spec"]["taints"] = json!([]);
    let outcome = tried(one_waits(tainted), &[labelled]);
    assert_eq!(outcome.starts.len(), 1, "{outcome:?}");
}

#[test]
fn what_a_manifest_no_longer_says_goes() {
    for (manager, operation) in [
        ("kubectl", "Apply"),
        ("kubectl-client-side-apply", "Update"),
    ] {
        let mut small = queue("default", Some("500m"));
        small["metadata"]["managedFields"] = json!([{
            "manager": manager, "operation": operation, "time": "2026-01-01T00:00:00Z",
            "apiVersion": "scheduling.volcano.sh/v1beta1", "fieldsType": "FieldsV1",
            "fieldsV1": { "f:spec": { "f:capability": { ".": {}, "f:cpu": {} } } },
        }]);
        let mut cluster = one_waits(node("n1", "4"));
        cluster[1] = small;
        let mut free = queue("default", None);
        let spec = free["spec"].as_object_mut().expect("it has one");
        spec.remove("capability");
        let outcome = tried(cluster, &[free]);
        assert_eq!(outcome.starts.len(), 1, "{manager}: {outcome:?}");
    }
}

#[test]
fn a_namespace_goes_with_what_lies_in_it() {
    let objects = vec![
        node("n1", "4"),
        queue("default", None),
        namespace("team-a"),
        namespace("team-b"),
        pod("team-a", "train", 0, "1", Some("n1")),
        pod("team-b", "train", 0, "1", Some("n1")),
    ];
    let delete = json!({ "apiVersion": WHAT_IF, "kind": "Delete", "objects": [{
        "apiVersion": "v1", "kind": "Namespace", "name": "team-a",
    }] });
    let gone = tried(objects, &[delete]).gone;
    let gone: Vec<&str> = gone.iter().map(|it| &*it.namespace).collect();
    assert_eq!(gone, ["team-a"]);
}

#[test]
fn a_node_goes_with_its_pods_and_their_jobs_begin_again_elsewhere() {
    let mut rehearsal = rehearsal(vec![node("n1", "2"), queue("default", None)]);
    let mut change = |document: &Value| {
        let change = Change::read(document, "team-a").expect("it is understood");
        assert_eq!(rehearsal.change(&change), []);
        assert!(rehearsal.settle());
        rehearsal.look()
    };
    let mut train = job("train", (1, 1), "1");
    train["spec"]["policies"] = json!([{ "event": "PodEvicted", "action": "RestartJob" }]);
    let mut template = train["spec"]["tasks"][0]["template"].clone();
    template["spec"]["schedulerName"] = json!("volcano");
    let batch = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "sum" },
        "spec": { "backoffLimit": 0, "template": template, "podFailurePolicy": { "rules": [{
            "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }],
        }] } },
    });
    change(&train);
    change(&batch);
    let before = change(&node("n2", "2"));
    let objects = json!([{ "apiVersion": "v1", "kind": "Node", "name": "n1" }]);
    change(&json!({ "apiVersion": WHAT_IF, "kind": "Delete", "objects": objects }));
    let outcome = rehearsal.outcome(&before);
    let gone = outcome.gone.iter();
    let gone: Vec<(&str, &str, Option<&str>)> = gone
        .map(|it| {
            let name = it.name.split('-').next().unwrap_or_default();
            (name, &*it.node, it.again_on.as_deref())
        })
        .collect();
    assert_eq!(
        gone,
        [("sum", "n1", Some("n2")), ("train", "n1", Some("n2"))]
    );
    let starts = outcome.starts.iter().map(|it| it.nodes.clone());
    let on_n2 = [("n2".to_owned(), 1)].into();
    assert_eq!(
        starts.collect::<Vec<_>>(),
        [on_n2, [("n2".to_owned(), 1)].into()]
    );
}

#[test]
fn a_node_that_comes_stands_in_the_hyper_node_of_its_label() {
    let racked = |name: &str| {
        let mut node = node(name, "2");
        node["metadata"]["labels"]["rack"] = json!("r1");
        node
    };
    let conf = "networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      racks: [{nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]
";
    let mut gang = group("team-a", "train", "default", 2);
    gang["spec"]["networkTopology"] = json!({ "mode": "hard", "highestTierAllowed": 1 });
    let objects = vec![
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "volcano-controller-configmap", "namespace": "volcano-system" },
            "data": { "volcano-controller.conf": conf },
        }),
        racked("n1"),
        queue("default", None),
        gang,
        pod("team-a", "train", 0, "2", None),
        pod("team-a", "train", 1, "2", None),
    ];
    let rules = "actions: \"enqueue, allocate\"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: network-topology-aware}]
";
    let rules = driver::scheduler_conf::read(rules.as_bytes()).accepted();
    let rules = engine::Settings {
        placement: rules.expect("it is understood").placement,
        ..engine::Settings::default()
    };
    let mut rehearsal = Rehearsal::of(objects, only_makers(drivers_by(1, rules)), NOW);
    assert!(rehearsal.settle());
    let before = rehearsal.look();
    let change = Change::read(&racked("n2"), "team-a").expect("it is understood");
    assert_eq!(rehearsal.change(&change), []);
    assert!(rehearsal.settle());
    let outcome = rehearsal.outcome(&before);
    assert_eq!(outcome.starts.len(), 1, "{outcome:?}");
}

#[test]
fn a_namespace_that_does_not_exist_is_none() {
    let objects = vec![node("n1", "4"), queue("default", None), namespace("team-a")];
    let mut rehearsal = rehearsal(objects);
    let document = job("train", (1, 1), "1");
    let mut refused = |namespace: &str| {
        let change = Change::read(&document, namespace).expect("it is understood");
        let refused = rehearsal.change(&change);
        refused.iter().map(|it| it.code).collect::<Vec<_>>()
    };
    assert_eq!(refused("team-a"), Vec::<u16>::new());
    assert_eq!(refused("team-c"), [404]);
}

#[test]
fn a_flow_makes_its_jobs() {
    let template = json!({
        "apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobTemplate",
        "metadata": { "name": "a" }, "spec": job("a", (1, 1), "1")["spec"],
    });
    let flow = json!({
        "apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow",
        "metadata": { "name": "f" },
        "spec": { "jobRetainPolicy": "retain", "flows": [{ "name": "a" }] },
    });
    let cluster = vec![node("n1", "4"), queue("default", None)];
    let outcome = tried(cluster, &[template, flow]);
    assert_eq!(outcome.starts.len(), 1, "{outcome:?}");
}

#[test]
fn a_raise_is_told_to_the_last_byte() {
    let mut cluster = one_waits(node("n1", "4"));
    cluster[1]["spec"]["capability"] = json!({ "memory": "1Gi" });
    let requests = json!({ "requests": { "cpu": "1", "memory": "2999999999" } });
    cluster[3]["spec"]["containers"][0]["resources"] = requests;
    let subject = Subject {
        kind: Kind::PodGroup,
        namespace: "team-a".to_owned(),
        name: "train".to_owned(),
    };
    let found = rehearsal(cluster.clone()).explain(&subject);
    let found = found.expect("it is there");
    let raise = found.fixes.iter().find(|fix| fix.remedy == "RaiseQueue");
    let raise = raise.unwrap_or_else(|| panic!("a raise helps: {found:?}"));
    assert_eq!(
        raise.words,
        "raise capability of queue default by 1838Mi memory"
    );
    assert_eq!(raise.by["memory"], "1838Mi");
    let told = |mebibytes: u32| {
        let mut queue = queue("default", None);
        queue["spec"]["capability"] = json!({ "memory": format!("{}Mi", 1_024 + mebibytes) });
        tried(cluster.clone(), &[queue]).starts.len()
    };
    assert_eq!((told(1_837), told(1_838)), (0, 1));
}

#[test]
fn a_job_of_volcano_is_not_taken_for_one_of_kubernetes() {
    let mut cluster = one_waits(node("n1", "4"));
    let owner = &mut cluster[2]["metadata"]["ownerReferences"][0];
    owner["apiVersion"] = json!("batch/v1");
    let ask = |cluster: Vec<Value>| {
        let key = ObjectKey::new(Kind::VcJob, "team-a", "train");
        let subject = Subject {
            kind: key.kind,
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
        };
        rehearsal(cluster).explain(&subject).map(|_| ())
    };
    assert_eq!(ask(cluster.clone()), Err(Unanswered::NoGroupOfJob));
    let mut suspended = job("train", (1, 1), "1");
    suspended["metadata"]["namespace"] = json!("team-a");
    suspended["status"] = json!({ "state": { "phase": "Aborted" } });
    cluster.push(suspended);
    assert_eq!(ask(cluster), Err(Unanswered::Suspended));
}

#[test]
fn a_limit_range_says_what_pods_ask_for_that_come_later() {
    let mut silent = job("train", (1, 1), "1");
    let template = &mut silent["spec"]["tasks"][0]["template"];
    template["spec"]["containers"][0]["resources"] = json!({});
    let range = json!({
        "apiVersion": "v1", "kind": "LimitRange",
        "metadata": { "name": "amounts", "namespace": "team-a" },
        "spec": { "limits": [{ "type": "Container", "defaultRequest": { "cpu": "3" } }] },
    });
    let cluster = || vec![node("n1", "2"), queue("default", None)];
    let is_large = |outcome: Outcome| {
        assert_eq!(outcome.starts, []);
        let reason = outcome.waits[0].reason.clone().unwrap_or_default();
        assert!(reason.contains("cpu"), "{reason}");
    };
    let ranged = || cluster().into_iter().chain([range.clone()]).collect();
    is_large(tried(ranged(), &[silent.clone()]));
    is_large(tried(cluster(), &[range.clone(), silent.clone()]));

    let delete = json!({ "apiVersion": WHAT_IF, "kind": "Delete", "objects": [{
        "apiVersion": "v1", "kind": "LimitRange", "namespace": "team-a", "name": "amounts",
    }] });
    let outcome = tried(ranged(), &[delete, silent]);
    assert_eq!(outcome.starts.len(), 1, "{outcome:?}");
}

#[test]
fn what_is_left_out_is_counted_by_kind() {
    let mut objects = one_waits(node("n1", "4"));
    for name in ["a", "b"] {
        objects
            .push(json!({ "apiVersion": "v1", "kind": "Endpoints", "metadata": { "name": name } }));
    }
    let rehearsal = rehearsal(objects);
    let left_out: Vec<(&str, usize)> = (rehearsal.left_out().iter())
        .map(|(kind, count)| (&**kind, *count))
        .collect();
    assert_eq!(left_out, [("Endpoints", 2)]);
}

#[test]
fn who_bears_a_taint_for_a_while_is_told_to_leave_later() {
    let bears = |name: &str, seconds: Option<i64>| {
        let mut pod = pod("team-a", name, 0, "100m", Some("n1"));
        pod["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
        pod["spec"]["tolerations"] = json!([
            { "key": "out", "operator": "Exists", "tolerationSeconds": seconds },
        ]);
        pod
    };
    let objects = vec![
        node("n1", "4"),
        queue("default", None),
        bears("awhile", Some(300)),
        bears("ever", None),
        pod("team-a", "never", 0, "100m", Some("n1")),
    ];
    let mut tainted = node("n1", "4");
    tainted["spec"]["taints"] = json!([{ "key": "out", "effect": "NoExecute" }]);
    let outcome = tried(objects, &[tainted]);
    let gone: Vec<&str> = outcome.gone.iter().map(|gone| &*gone.name).collect();
    assert_eq!(gone, ["never-0"]);
    let later = outcome.leave_later.iter();
    let later: Vec<(&str, i64)> = later.map(|it| (&*it.name, it.seconds)).collect();
    assert_eq!(later, [("awhile-0", 300)]);
}

#[test]
fn a_taint_without_a_time_counts_from_when_it_is_seen() {
    let mut old = pod("team-a", "awhile", 0, "100m", Some("n1"));
    old["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
    old["spec"]["tolerations"] = json!([
        { "key": "out", "operator": "Exists", "tolerationSeconds": 300 },
    ]);
    let mut tainted = node("n1", "4");
    tainted["spec"]["taints"] = json!([{ "key": "out", "effect": "NoExecute" }]);
    let objects = vec![tainted, queue("default", None), old];
    let outcome = tried(objects, &[node("n2", "4")]);
    assert_eq!(outcome.gone.len(), 0);
    assert_eq!(outcome.leave_later.len(), 0, "it had to leave before");
}

#[test]
fn a_group_is_told_by_whoever_stands_above_it() {
    let template = json!({
        "metadata": { "labels": { "app": "a" } },
        "spec": { "schedulerName": "volcano", "containers": [{
            "name": "c", "image": "i", "resources": { "requests": { "cpu": "100m" } },
        }] },
    });
    let workload = |kind: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": "service" },
            "spec": {
                "replicas": 1,
                "selector": { "matchLabels": { "app": "a" } }, "template": template,
            },
        })
    };
    let mut once = template.clone();
    once["spec"]["restartPolicy"] = json!("Never");
    let batch = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "service" },
        "spec": { "template": once },
    });
    let vcjob = job("service", (1, 1), "100m");
    for document in [
        workload("Deployment"),
        workload("StatefulSet"),
        batch,
        vcjob,
    ] {
        let cluster = vec![node("n1", "4"), queue("default", None)];
        let outcome = tried(cluster, std::slice::from_ref(&document));
        let [start] = &outcome.starts[..] else {
            panic!("it starts: {outcome:?}");
        };
        let owner = start.owner.as_ref().expect("somebody's");
        let wanted = ["apiVersion", "kind"].map(|field| document[field].as_str().expect("text"));
        assert_eq!([&*owner.api_version, &*owner.kind], wanted);
        assert_eq!(owner.name, "service");
    }
}

#[test]
fn a_command_is_followed() {
    let mut runs = job("train", (1, 1), "1");
    runs["metadata"]["namespace"] = json!("team-a");
    runs["metadata"]["uid"] = json!("uid-of-train");
    let command = json!({
        "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command",
        "metadata": { "name": "end" }, "action": "AbortJob",
        "target": { "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "uid-of-train" },
    });
    let gone = tried(
        vec![node("n1", "4"), queue("default", None), runs],
        &[command],
    )
    .gone;
    let gone: Vec<&str> = gone.iter().map(|gone| &*gone.name).collect();
    assert_eq!(gone, ["train-work-0"]);
}

#[test]
fn a_field_that_is_none_is_refused() {
    let wrong = |document: Value| Change::read(&document, "default").expect_err("it is wrong");
    let (field, text) =
        wrong(json!({ "apiVersion": WHAT_IF, "kind": "Drain", "nodes": ["n1"], "force": true }));
    assert_eq!(field, "force");
    assert!(text.contains("nodeSelector"), "{text}");
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "name": "a", "labels": {} });
    let deleted = json!([pod]);
    let (field, _) = wrong(json!({ "apiVersion": WHAT_IF, "kind": "Delete", "objects": deleted }));
    assert_eq!(field, "objects[0].labels");
    let (field, _) =
        wrong(json!({ "apiVersion": WHAT_IF, "kind": "Delete", "objects": [], "nodes": [] }));
    assert_eq!(field, "nodes");
}

#[test]
fn a_selector_that_selects_no_node_is_told() {
    let mut rehearsal = rehearsal(vec![node("n1", "4"), queue("default", None)]);
    let drain = json!({
        "apiVersion": WHAT_IF, "kind": "Drain",
        "nodes": ["n1"], "nodeSelector": { "rack": "r7", "row": "2" },
    });
    let drain = Change::read(&drain, "team-a").expect("it is understood");
    let refused = rehearsal.change(&drain);
    let told: Vec<(u16, &str)> = refused.iter().map(|it| (it.code, &*it.what)).collect();
    assert_eq!(told, [(404, "cordon Nodes with rack=r7,row=2")]);
}

#[test]
fn a_manifest_of_another_version_is_one_of_ours() {
    for version in api::dialect::versions(Kind::NativeGroup) {
        let mut drivers = only_makers(crate::drivers::drivers(1));
        drivers.controller_settings.native_groups = true;
        drivers.engine.as_mut().expect("it has one").native_groups = true;
        let objects = vec![node("n1", "4"), queue("default", None)];
        let mut rehearsal = Rehearsal::of(objects, drivers, NOW);
        assert!(rehearsal.settle());
        let before = rehearsal.look();
        let group = json!({
            "apiVersion": format!("scheduling.k8s.io/{version}"), "kind": "PodGroup",
            "metadata": { "name": "gang" },
            "spec": { "schedulingPolicy": { "gang": { "minCount": 1 } } },
        });
        let mut member = pod("team-a", "gang", 0, "1", None);
        member["metadata"]["annotations"] = json!({});
        member["spec"]["schedulingGroup"] = json!({ "podGroupName": "gang" });
        for document in [group, member] {
            let change = Change::read(&document, "team-a").expect("it is understood");
            assert_eq!(rehearsal.change(&change), [], "{version}");
        }
        assert!(rehearsal.settle());
        let outcome = rehearsal.outcome(&before);
        assert_eq!(outcome.starts.len(), 1, "{version}: {outcome:?}");
    }
}
