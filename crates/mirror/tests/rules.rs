//! What the rules of the scheduler look at beside requests, read from pods and PodGroups.

mod fed;

use std::sync::Arc;

use api::kind::Kind;
use fed::tables;
use model::{
    Disruption, GangId, GroupLimits, Key, NodeGroups, Portion, STAND_INS, Tables, TaskTopology,
};
use serde_json::{Value, json};

/// What is read of a PodGroup with these annotations.
fn group<T>(annotations: Value, read: impl FnOnce(&Tables, GangId) -> T) -> T {
    let group = json!({
        "metadata": {
            "name": "g", "namespace": "a", "uid": "u", "resourceVersion": "1",
            "annotations": annotations,
        },
        "spec": { "minMember": 1 },
    });
    let tables = tables(&[(Kind::PodGroup, group)]);
    let id = tables
        .gang_keyed(&Key::new("a", "g"))
        .expect("the group has a row");
    read(&tables, id)
}

fn pod(annotations: Value, labels: Value, policy: Option<&str>) -> (Kind, Value) {
    let object = json!({
        "metadata": {
            "name": "p", "namespace": "a", "uid": "u", "resourceVersion": "1",
            "annotations": annotations, "labels": labels,
        },
        "spec": { "schedulerName": "volcano", "preemptionPolicy": policy },
    });
    (Kind::Pod, object)
}

#[test]
fn a_pod_says_whether_it_is_evicted_and_for_how_long_it_is_not() {
    let read = |object| {
        let tables = tables(&[object]);
        let id = tables
            .task_keyed(&Key::new("a", "p"))
            .expect("the pod has a row");
        let task = tables.task(id);
        (task.preemptable, task.preempts, task.cooldown_ms)
    };
    assert_eq!(read(pod(json!({}), json!({}), None)), (true, true, 0));
    let cooling = json!({ "volcano.sh/cooldown-time": "1m30s", "volcano.sh/preemptable": "false" });
    let never = Some("Never");
    assert_eq!(read(pod(cooling, json!({}), never)), (false, false, 90_000));
    let label = json!({ "volcano.sh/cooldown-time": "600ms" });
    assert_eq!(read(pod(json!({}), label.clone(), None)), (true, true, 600));
    let other = json!({ "volcano.sh/cooldown-time": "1h" });
    assert_eq!(
        read(pod(other, label, None)),
        (true, true, 600),
        "the label's"
    );
    for text in ["soon", "-5s", ""] {
        let wrong = json!({ "volcano.sh/cooldown-time": text });
        assert_eq!(read(pod(wrong, json!({}), None)), (true, true, 0), "{text}");
    }
}

#[test]
fn a_cooldown_begins_when_the_pod_was_scheduled_or_else_started() {
    let read = |status: Value| {
        let pod = json!({
            "metadata": {
                "name": "p", "namespace": "a", "uid": "u", "resourceVersion": "1",
                "annotations": { "volcano.sh/cooldown-time": "10s" },
            },
            "spec": { "schedulerName": "volcano", "nodeName": "n1" },
            "status": status,
        });
        let tables = tables(&[(Kind::Pod, pod)]);
        let id = tables
            .task_keyed(&Key::new("a", "p"))
            .expect("the pod has a row");
        tables.task(id).left_alone_until()
    };
    let scheduled = |status: &str| json!([{ "type": "PodScheduled", "status": status, "lastTransitionTime": "1970-01-01T00:00:05Z" }]);
    let started = "1970-01-01T00:00:07Z";
    let at = |second: i64| Some(model::Time::from_micros(second * 1_000_000));
    let told = scheduled("True");
    assert_eq!(read(json!({ "conditions": told })), at(15));
    let both = json!({ "conditions": told, "startTime": started });
    assert_eq!(read(both), at(15));
    let refused = json!({ "conditions": scheduled("False"), "startTime": started });
    assert_eq!(read(refused), at(17));
    assert_eq!(read(json!({})), None, "nobody has told yet");
}

#[test]
fn whether_the_cluster_needs_a_pod_its_class_says_and_no_annotation() {
    let read = |class: &str, priority: Value, annotated: Value| {
        let pod = json!({
            "metadata": {
                "name": "p", "namespace": "a", "uid": "u", "resourceVersion": "1",
                "annotations": annotated,
            },
            "spec": {
                "schedulerName": "volcano", "priorityClassName": class, "priority": priority,
            },
        });
        let tables = tables(&[(Kind::Pod, pod)]);
        let id = tables
            .task_keyed(&Key::new("a", "p"))
            .expect("the pod has a row");
        let task = tables.task(id);
        (task.critical, task.priority, task.priority_of_pod())
    };
    let says = |text: &str| json!({ "volcano.sh/task-priority": text });
    let (cluster, node) = ("system-cluster-critical", "system-node-critical");
    let (two_billion, nothing) = (json!(2_000_000_000), json!({}));
    let high = 2_000_000_000;
    assert_eq!(read("", Value::Null, nothing.clone()), (false, 1, 1));
    let class = read(cluster, two_billion.clone(), nothing);
    assert_eq!(class, (true, high, high));
    assert_eq!(read(node, two_billion, says("5")), (true, 5, high));
    let proud = read("mine", json!(7), says("2000000000"));
    assert_eq!(proud, (false, high, 7));
    assert_eq!(read("mine", json!(7), says("high")), (false, 7, 7));
}

/// The two rooms may not know one another.
#[test]
fn a_container_without_requests_counts_as_the_tables_have_it() {
    let pod = json!({
        "metadata": { "name": "p", "namespace": "a", "uid": "u", "resourceVersion": "1" },
        "spec": { "schedulerName": "volcano", "containers": [{ "name": "c" }] },
    });
    let tables = tables(&[(Kind::Pod, pod)]);
    let id = tables.task_keyed(&Key::new("a", "p"));
    let shape = tables.shape_of(id.expect("the pod has a row"));
    assert_eq!(shape.spec.stand_ins, Some(STAND_INS));
}

#[test]
fn a_group_says_that_it_may_be_evicted_that_it_may_not_or_nothing() {
    let read = |annotations| group(annotations, |tables, id| tables.gang(id).spec.preemptable);
    assert_eq!(read(json!({})), None);
    for (text, says) in [
        ("true", true),
        ("false", false),
        ("", false),
        ("perhaps", false),
    ] {
        let told = read(json!({ "volcano.sh/preemptable": text }));
        assert_eq!(told, Some(says), "{text}");
    }
}

#[test]
fn a_pod_says_whether_it_bears_lent_nodes() {
    let read = |annotations: Value, labels: Value| {
        let pod = json!({
            "metadata": {
                "name": "p", "namespace": "a", "uid": "u", "resourceVersion": "1",
                "annotations": annotations, "labels": labels,
            },
            "spec": { "schedulerName": "volcano", "nodeName": "n1" },
        });
        let tables = tables(&[(Kind::Pod, pod)]);
        let id = tables
            .task_keyed(&Key::new("a", "p"))
            .expect("the pod has a row");
        tables.shape_of(id).spec.revocable
    };
    let none = || json!({});
    let (zone, may) = ("volcano.sh/revocable-zone", "volcano.sh/preemptable");
    assert!(!read(none(), none()));
    assert!(read(json!({ zone: "*" }), none()));
    assert!(read(none(), json!({ zone: "*" })));
    assert!(!read(json!({ zone: "z", may: "true" }), none()));
    assert!(read(json!({ may: "true" }), none()));
    assert!(read(none(), json!({ may: "true" })));
    assert!(!read(json!({ may: "false" }), json!({ may: "true" })));
}

#[test]
fn a_pod_names_its_claims_of_devices_in_their_order() {
    let pod = json!({
        "metadata": { "name": "p", "namespace": "a", "uid": "u", "resourceVersion": "1" },
        "spec": { "schedulerName": "volcano", "resourceClaims": [
            { "name": "gpu", "resourceClaimTemplateName": "one-gpu" },
            { "name": "fpga", "resourceClaimName": "shared" },
        ] },
    });
    let tables = tables(&[(Kind::Pod, pod)]);
    let id = tables
        .task_keyed(&Key::new("a", "p"))
        .expect("the pod has a row");
    let claims = &tables.shape_of(id).spec.device_claims;
    let claims: Vec<&str> = claims.iter().map(|claim| &*claim.name).collect();
    // One that is made for the pod may have no name yet.
    assert_eq!(claims, ["gpu", "shared"]);
}

#[test]
fn a_group_says_how_many_of_its_pods_may_be_missing() {
    let read = |annotations| group(annotations, |tables, id| tables.gang(id).spec.disruption);
    let (min, max) = (
        "volcano.sh/jdb-min-available",
        "volcano.sh/jdb-max-unavailable",
    );
    let least = |portion| Some(Disruption::MinAvailable(portion));
    let most = |portion| Some(Disruption::MaxUnavailable(portion));
    assert_eq!(read(json!({})), None);
    assert_eq!(
        read(json!({ min: "3", max: "1" })),
        least(Portion::Count(3))
    );
    assert_eq!(read(json!({ max: "50%" })), most(Portion::Percent(50)));
    for text in ["0", "-1", "0%", "100%", "half", "+"] {
        assert_eq!(read(json!({ max: text })), None, "{text}");
    }
}

#[test]
fn a_group_says_which_of_its_tasks_are_to_be_together() {
    let read = |annotations| {
        group(annotations, |tables, id| {
            let said = tables.task_topologies().contains(&id);
            let topology = tables.gang(id).spec.task_topology.as_deref().cloned();
            assert_eq!(said, topology.is_some());
            topology
        })
    };
    let key = |end: &str| format!("volcano.sh/task-topology-{end}");
    let names = |list: &[&str]| list.iter().map(|name| Arc::from(*name)).collect::<Vec<_>>();
    let all = json!({
        key("affinity"): "ps,worker; chief", key("anti-affinity"): ";ps,", key("task-order"): "worker,ps",
    });
    let expected = TaskTopology {
        together: vec![names(&["ps", "worker"]), names(&["chief"])],
        apart: vec![names(&["ps"])],
        order: names(&["worker", "ps"]),
    };
    assert_eq!(read(all), Some(expected));
    assert_eq!(read(json!({})), None);
    assert_eq!(
        read(json!({ key("affinity"): ";, ;", key("other"): "ps" })),
        None
    );
}

#[test]
fn a_group_says_how_long_it_waits_at_most() {
    let read = |key: &str, value: &str| {
        let annotations = json!({ key: value });
        group(annotations, |tables, id| {
            tables.gang(id).spec.waits_at_most_ms
        })
    };
    assert_eq!(read("sla-waiting-time", "2h"), Some(7_200_000));
    assert_eq!(read("volcano.sh/sla-waiting-time", "10s"), Some(10_000));
    assert_eq!(read("sla-waiting-time", "-1s"), None);
    assert_eq!(read("sla-waiting-time", "a while"), None);
    assert_eq!(read("other", "10s"), None);
}

#[test]
fn budgets_and_quotas_of_a_namespace_are_read_as_far_as_they_speak_of_pods() {
    let budget = json!({
        "metadata": { "name": "b", "namespace": "a", "uid": "b", "resourceVersion": "1" },
        "spec": { "selector": { "matchLabels": { "app": "x" } } },
        "status": { "disruptionsAllowed": 2, "disruptedPods": { "p-1": "2026-01-01T00:00:00Z" } },
    });
    let quota = |name: &str, scopes: Value| {
        let object = json!({
            "metadata": { "name": name, "namespace": "a", "uid": name, "resourceVersion": "1" },
            "spec": {
                "hard": { "requests.cpu": "4", "pods": "0", "limits.cpu": "1", "count/jobs.batch": "1" },
                "scopes": scopes,
            },
            "status": { "used": { "requests.cpu": "500m" } },
        });
        (Kind::ResourceQuota, object)
    };
    let tables = tables(&[
        (Kind::PodDisruptionBudget, budget),
        quota("q", json!([])),
        quota("best-effort", json!(["BestEffort"])),
    ]);
    let budgets: Vec<_> = tables.budgets("a").collect();
    assert_eq!(budgets.len(), 1);
    assert_eq!(budgets[0].allowed, 2);
    assert!(budgets[0].disrupted.contains("p-1"));
    assert!(budgets[0].selector.is_some());
    assert_eq!(tables.budgets("b").count(), 0);
    let quotas: Vec<_> = tables.quotas("a").collect();
    assert_eq!(quotas.len(), 1, "one for some pods only says nothing");
    assert_eq!(quotas[0].hard.get(model::Kind::CPU), Some(4_000));
    assert_eq!(quotas[0].hard.get(model::Kind::PODS), Some(0));
    let limits = tables.kinds().find("limits.cpu").expect("it is known");
    assert_eq!(quotas[0].hard.get(limits), Some(1_000));
    assert_eq!(quotas[0].hard.entries().count(), 3);
    assert_eq!(quotas[0].used.get(model::Kind::CPU), 500);
}

#[test]
fn of_two_names_for_one_resource_a_quota_keeps_the_smaller_limit_and_the_larger_use() {
    let (less, more) = (json!("2"), json!("4"));
    for (plain, prefixed) in [(&less, &more), (&more, &less)] {
        let amounts = json!({ "cpu": plain, "requests.cpu": prefixed });
        let quota = json!({
            "metadata": { "name": "q", "namespace": "a", "uid": "q", "resourceVersion": "1" },
            "spec": { "hard": amounts },
            "status": { "used": amounts },
        });
        let tables = tables(&[(Kind::ResourceQuota, quota)]);
        let quota = tables.quotas("a").next().expect("the quota has a row");
        assert_eq!(quota.hard.get(model::Kind::CPU), Some(2_000));
        assert_eq!(quota.used.get(model::Kind::CPU), 4_000);
    }
}

#[test]
fn what_only_a_quota_counts_is_no_resource() {
    let list = json!({
        "cpu": "1", "count/pods": "1", "count/jobs.batch": "2", "requests.cpu": "1",
        "requests.memory": "1Gi", "requests.nvidia.com/gpu": "1", "limits.cpu": "2",
        "limits.memory": "2Gi", "limits.ephemeral-storage": "1Gi", "requests.storage": "1Gi",
        "persistentvolumeclaims": "3", "services": "1",
    });
    let meta =
        |name: &str| json!({ "name": name, "namespace": "a", "uid": name, "resourceVersion": "1" });
    let group = json!({
        "metadata": meta("g"), "spec": { "minMember": 1, "minResources": list },
    });
    let queue = json!({
        "metadata": { "name": "q", "uid": "q", "resourceVersion": "1" },
        "spec": { "capability": list, "deserved": list, "guarantee": { "resource": list } },
    });
    let pod = json!({
        "metadata": meta("p"),
        "spec": {
            "schedulerName": "volcano",
            "containers": [{ "name": "c", "resources": { "requests": list } }],
        },
    });
    let tables = tables(&[
        (Kind::PodGroup, group),
        (Kind::Queue, queue),
        (Kind::Pod, pod),
    ]);
    let cpu = model::Vector::of([(model::Kind::CPU, 1_000)]);
    let gang = tables.gang_keyed(&Key::new("a", "g"));
    let gang = tables.gang(gang.expect("the group has a row"));
    assert_eq!(gang.spec.min_resources.as_ref(), Some(&cpu));
    let kinds = tables.kinds();
    let limits = gang.spec.min_limits.entries();
    let limits = limits.map(|(kind, value)| (&**kinds.name(kind), value));
    // What is no memory of nodes is counted in thousandths, as everything else.
    let expected = [
        ("limits.cpu", 2_000),
        ("limits.memory", 2_000 << 30),
        ("limits.ephemeral-storage", 1_000 << 30),
    ];
    assert_eq!(limits.collect::<Vec<_>>(), expected);
    let queue = tables.queue_named("q").expect("the queue has a row");
    let queue = &tables.queue(queue).spec;
    assert_eq!((&queue.deserved, &queue.guarantee), (&cpu, &cpu));
    assert_eq!(queue.capability.entries().count(), 1);
    let task = tables.task_keyed(&Key::new("a", "p"));
    let task = task.expect("the pod has a row");
    assert_eq!(tables.shape_of(task).spec.requests, cpu);
}

/// Upstream's controllers write how many pods a gang brings beside what these ask for. A vote, and what a
/// running gang has reserved, would count each of them for ever: no task requests any.
#[test]
fn pods_are_no_part_of_what_a_gang_needs() {
    let group = json!({
        "metadata": { "name": "g", "namespace": "a", "uid": "g", "resourceVersion": "1" },
        "spec": { "minMember": 3, "minResources": { "cpu": "3", "pods": "3", "count/pods": "3" } },
        "status": { "phase": "Running" },
    });
    let tables = tables(&[(Kind::PodGroup, group)]);
    let gang = tables.gang_keyed(&Key::new("a", "g"));
    let gang = tables.gang(gang.expect("the group has a row"));
    let least = gang
        .spec
        .min_resources
        .iter()
        .flat_map(model::Vector::entries);
    assert_eq!(least.collect::<Vec<_>>(), [(model::Kind::CPU, 3_000)]);
}

#[test]
fn what_kubernetes_takes_for_a_scalar_is_a_resource() {
    let names = [
        "ephemeral-storage",
        "hugepages-2Mi",
        "attachable-volumes-aws-ebs",
        "kubernetes.io/batch-cpu",
        "nvidia.com/gpu",
        "example.com/limits.cpu",
    ];
    let list: serde_json::Map<String, Value> = names
        .iter()
        .map(|name| ((*name).to_owned(), json!("3")))
        .collect();
    let node = json!({
        "metadata": { "name": "n", "uid": "n", "resourceVersion": "1" },
        "status": { "allocatable": list },
    });
    let tables = tables(&[(Kind::Node, node)]);
    let id = tables.node_named("n").expect("the node has a row");
    for name in names {
        let kind = tables.kinds().find(name).expect("it is a resource");
        let amount = tables.node(id).spec.allocatable.get(kind);
        assert_eq!(amount, 3_000, "{name}");
    }
}

#[test]
fn the_number_of_a_pod_is_the_last_part_of_its_name() {
    let read = |name: &str| {
        let pod = json!({
            "metadata": { "name": name, "namespace": "a", "uid": "u", "resourceVersion": "1" },
            "spec": { "schedulerName": "volcano" },
        });
        let tables = tables(&[(Kind::Pod, pod)]);
        let id = tables.task_keyed(&Key::new("a", name));
        tables.task(id.expect("the pod has a row")).index
    };
    for (name, index) in [
        ("train-worker-12", 12),
        ("web-7d4-x2k19", 0),
        ("node7", 0),
        ("a-007", 7),
        ("a-99999999999", 0),
    ] {
        assert_eq!(read(name), index, "{name}");
    }
}

#[test]
fn a_queue_says_which_groups_of_nodes_it_uses_and_what_it_may_hold_there() {
    let read = |annotations: Value, affinity: Value| {
        let queue = json!({
            "metadata": {
                "name": "q", "uid": "q", "resourceVersion": "1", "annotations": annotations,
            },
            "spec": { "affinity": affinity },
        });
        let tables = tables(&[(Kind::Queue, queue)]);
        let id = tables.queue_named("q").expect("the queue has a row");
        let spec = tables.queue(id).spec.clone();
        (spec.groups, spec.group_limits)
    };
    let affinity = json!({
        "nodeGroupAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": ["g1"],
            "preferredDuringSchedulingIgnoredDuringExecution": ["g2", "g3"],
        },
        "nodeGroupAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": ["g4"],
            "preferredDuringSchedulingIgnoredDuringExecution": ["g5"],
        },
    });
    let key = "volcano.sh/nodegroup-resource-limits";
    let limits = json!({ key: r#"{"g1": {"cpu": "2500m"}, "g2": {}}"# });
    let (groups, limits) = read(limits, affinity);
    let all = NodeGroups {
        required: vec!["g1".into()],
        preferred: vec!["g2".into(), "g3".into()],
        forbidden: vec!["g4".into()],
        avoided: vec!["g5".into()],
    };
    assert_eq!(groups, all);
    let GroupLimits::Known(limits) = limits else {
        panic!("the limits can be read");
    };
    assert_eq!(limits["g1"].get(model::Kind::CPU), Some(2_500));
    assert!(limits["g2"].is_empty());
    let none = (NodeGroups::default(), GroupLimits::default());
    assert_eq!(read(json!({}), Value::Null), none);
    assert_eq!(read(json!({ key: " " }), json!({})), none);
    for text in ["{", "[]", r#"{"g1": {"cpu": "many"}}"#] {
        let (_, limits) = read(json!({ key: text }), Value::Null);
        assert_eq!(limits, GroupLimits::Unreadable, "{text}");
    }
}

#[test]
fn a_node_is_in_the_group_that_its_label_names() {
    let read = |labels: Value| {
        let node = json!({
            "metadata": { "name": "n", "uid": "n", "resourceVersion": "1", "labels": labels },
        });
        let tables = tables(&[(Kind::Node, node)]);
        let id = tables.node_named("n").expect("the node has a row");
        tables.node(id).spec.group.clone()
    };
    let group = read(json!({ "volcano.sh/nodegroup-name": "g1" }));
    assert_eq!(group.as_deref(), Some("g1"));
    assert_eq!(read(json!({ "volcano.sh/nodegroup-name": "" })), None);
    assert_eq!(read(json!({})), None);
}

#[test]
fn a_queues_weight_is_within_what_is_served() {
    let weight = |weight: Value| {
        let queue = json!({
            "metadata": { "name": "q", "uid": "u", "resourceVersion": "1" },
            "spec": { "weight": weight }, "status": { "state": "Open" },
        });
        let tables = tables(&[(Kind::Queue, queue)]);
        let id = tables.queue_named("q").expect("it has a row");
        tables.queue(id).spec.weight
    };
    for (told, counts) in [
        (json!(null), 1),
        (json!(1), 1),
        (json!(65_535), 65_535),
        (json!(0), 1),
        (json!(-1), 1),
        (json!(i32::MIN), 1),
        (json!(65_536), 65_535),
        (json!(i32::MAX), 65_535),
    ] {
        assert_eq!(weight(told.clone()), counts, "{told}");
    }
}
