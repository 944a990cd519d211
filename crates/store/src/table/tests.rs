use serde_json::json;

use super::*;
use crate::wire::Wire;

fn now() -> Time {
    Time::parse("2026-01-01T01:00:00Z").unwrap()
}

/// One row of a built-in table, cells joined by `|`.
fn row(group: &str, version: &str, resource: &str, mut object: Value) -> String {
    let wire = Wire::load();
    object["metadata"]["name"] = "x".into();
    object["metadata"]["creationTimestamp"] = "2026-01-01T00:55:00Z".into();
    let columns = wire.columns(group, version, resource).unwrap();
    let cells = Printer::built_in(resource, columns).cells(&object, now());
    assert_eq!(cells.len(), columns.len(), "{resource}");
    let texts: Vec<String> = cells
        .iter()
        .map(|cell| {
            cell.as_str()
                .map_or_else(|| cell.to_string(), ToOwned::to_owned)
        })
        .collect();
    texts.join("|")
}

#[test]
fn ages_read_as_kubectls() {
    let rows = [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (599, "9m59s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (10_860, "3h1m"),
        (28_800, "8h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (176_400, "2d1h"),
        (691_200, "8d"),
        (63_071_999, "729d"),
        (63_072_000, "2y"),
        (63_158_400, "2y1d"),
        (252_288_000, "8y"),
    ];
    for (seconds, text) in rows {
        assert_eq!(cells::span(seconds * 1_000_000), text, "{seconds}");
    }
}

#[test]
fn pods_tell_how_they_are() {
    let spec =
        json!({"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]});
    let rows = [
        (
            json!({"spec": spec, "status": {"phase": "Pending"}}),
            "x|0/2|Pending|0|5m|<none>|<none>|<none>|<none>",
        ),
        (
            json!({"spec": spec, "status": {"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}}),
            "x|0/2|Init:0/1|0|5m|<none>|<none>|<none>|<none>",
        ),
        (
            json!({"spec": spec, "status": {"phase": "Pending", "initContainerStatuses": [{"name": "i", "restartCount": 2, "state": {"terminated": {"exitCode": 1}}}]}}),
            "x|0/2|Init:ExitCode:1|2|5m|<none>|<none>|<none>|<none>",
        ),
        (
            json!({"spec": spec, "status": {"phase": "Running", "podIP": "10.0.0.1", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 0}}}], "containerStatuses": [
            {"name": "a", "ready": true, "state": {"running": {}}},
            {"name": "b", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"finishedAt": "2026-01-01T00:59:30Z"}}}]}}),
            "x|1/2|CrashLoopBackOff|3 (30s ago)|5m|10.0.0.1|<none>|<none>|<none>",
        ),
        (
            json!({"spec": {"nodeName": "n", "containers": [{"name": "a"}]}, "status": {"phase": "Succeeded", "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]}}),
            "x|0/1|Completed|0|5m|<none>|n|<none>|<none>",
        ),
        (
            json!({"spec": {"containers": [{"name": "a"}]}, "status": {"phase": "Failed", "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 137, "reason": "NodeRestarted"}}}]}}),
            "x|0/1|NodeRestarted|0|5m|<none>|<none>|<none>|<none>",
        ),
        (
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:59:00Z"}, "spec": {"containers": [{"name": "a"}]}, "status": {"phase": "Running", "containerStatuses": [{"name": "a", "ready": true, "state": {"running": {}}}]}}),
            "x|1/1|Terminating|0|5m|<none>|<none>|<none>|<none>",
        ),
        (
            json!({"spec": {"containers": [{"name": "a"}]}, "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}}),
            "x|0/1|SchedulingGated|0|5m|<none>|<none>|<none>|<none>",
        ),
    ];
    for (pod, wanted) in rows {
        assert_eq!(row("", "v1", "pods", pod), wanted);
    }
}

#[test]
fn other_built_ins_have_the_cells_of_a_real_server() {
    let rows = [
        (
            "",
            "v1",
            "nodes",
            json!({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}, "spec": {"unschedulable": true}, "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1"}}}),
            "x|Ready,SchedulingDisabled|control-plane|5m|v1|<none>|<none>|<unknown>|<unknown>|<unknown>",
        ),
        (
            "",
            "v1",
            "services",
            json!({"spec": {"type": "NodePort", "clusterIP": "10.96.0.1", "ports": [{"port": 80, "nodePort": 30000, "protocol": "TCP"}], "selector": {"a": "b"}}}),
            "x|NodePort|10.96.0.1|<none>|80:30000/TCP|5m|a=b",
        ),
        (
            "",
            "v1",
            "services",
            json!({"spec": {"type": "ClusterIP", "clusterIP": "None"}}),
            "x|ClusterIP|None|<none>|<none>|5m|<none>",
        ),
        (
            "",
            "v1",
            "configmaps",
            json!({"data": {"a": "b"}, "binaryData": {"c": ""}}),
            "x|2|5m",
        ),
        (
            "",
            "v1",
            "secrets",
            json!({"type": "Opaque", "data": {"a": "b"}}),
            "x|Opaque|1|5m",
        ),
        (
            "",
            "v1",
            "namespaces",
            json!({"status": {"phase": "Active"}}),
            "x|Active|5m",
        ),
        (
            "",
            "v1",
            "persistentvolumeclaims",
            json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "s", "volumeName": "v", "volumeMode": "Filesystem"}, "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}}),
            "x|Bound|v|1Gi|RWO|s|<unset>|5m|Filesystem",
        ),
        (
            "",
            "v1",
            "persistentvolumeclaims",
            json!({"spec": {"storageClassName": "s"}, "status": {"phase": "Pending"}}),
            "x|Pending||||s|<unset>|5m|<unset>",
        ),
        (
            "batch",
            "v1",
            "jobs",
            json!({"spec": {"completions": 3, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}, "selector": {"matchLabels": {"a": "b"}}}, "status": {"succeeded": 1, "startTime": "2026-01-01T00:59:00Z"}}),
            "x|Running|1/3|60s|5m|c|i|a=b",
        ),
        (
            "apps",
            "v1",
            "deployments",
            json!({"spec": {"replicas": 2}, "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1}}),
            "x|1/2|2|1|5m|||<none>",
        ),
        (
            "",
            "v1",
            "events",
            json!({"type": "Normal", "reason": "Pulled", "message": " hi ", "involvedObject": {"kind": "Pod", "name": "p"}, "firstTimestamp": "2026-01-01T00:58:00Z", "lastTimestamp": "2026-01-01T00:59:00Z", "count": 2, "source": {"component": "kubelet", "host": "n"}}),
            "60s|Normal|Pulled|pod/p||kubelet, n|hi|2m|2|x",
        ),
        (
            "storage.k8s.io",
            "v1",
            "storageclasses",
            json!({"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "p"}),
            "x (default)|p|Delete|Immediate|false|5m",
        ),
        (
            "scheduling.k8s.io",
            "v1",
            "priorityclasses",
            json!({"value": 10}),
            "x|10|false|5m|PreemptLowerPriority",
        ),
    ];
    for (group, version, resource, object, wanted) in rows {
        assert_eq!(row(group, version, resource, object), wanted, "{resource}");
    }
}

#[test]
fn custom_objects_follow_their_printer_columns() {
    let wire = Wire::load();
    let jobs = wire
        .crds()
        .iter()
        .find(|crd| crd.names.plural == "jobs")
        .unwrap();
    let printer = Printer::custom(&jobs.versions[0].columns);
    let job = json!({
        "metadata": {"name": "x", "namespace": "n", "creationTimestamp": "2026-01-01T00:55:00Z"},
        "spec": {"queue": "q", "minAvailable": 3}, "status": {"state": {"phase": "Running"}, "running": 2},
    });
    let form = Form {
        include: Include::Metadata,
        headers: Headers::Shown,
        version: MetaVersion::V1,
    };
    let table = render(&printer, &[&job], now(), form, json!({}));
    let names: Vec<&str> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["Name", "STATUS", "minAvailable", "RUNNINGS", "AGE", "QUEUE"]
    );
    let first = &table["rows"][0];
    assert_eq!(first["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(first["cells"][0], "x");
    assert_eq!(first["cells"][1], "Running");
    assert_eq!(first["cells"][5], "q");
    let form = Form {
        include: Include::Nothing,
        headers: Headers::Hidden,
        version: MetaVersion::V1,
    };
    let table = render(&printer, &[&job], now(), form, json!({}));
    assert!(table["columnDefinitions"].is_null());
    assert!(table["rows"][0]["object"].is_null());
}

#[test]
fn every_built_in_table_has_one_cell_a_column_for_an_empty_object() {
    let wire = Wire::load();
    for resource in wire
        .resources()
        .iter()
        .filter(|row| row.subresource().is_none())
    {
        let Some(columns) = wire.columns(&resource.group, &resource.version, &resource.name) else {
            continue;
        };
        let cells = Printer::built_in(&resource.name, columns).cells(&json!({}), now());
        assert_eq!(cells.len(), columns.len(), "{}", resource.name);
    }
}

#[test]
fn claims_of_devices_tell_how_far_they_are() {
    let state = |object: Value| row("resource.k8s.io", "v1", "resourceclaims", object);
    assert_eq!(state(json!({})), "x|pending|5m");
    let given = json!({ "allocation": {}, "reservedFor": [{ "name": "p" }] });
    assert_eq!(
        state(json!({ "status": { "allocation": {} } })),
        "x|allocated|5m"
    );
    assert_eq!(state(json!({ "status": given })), "x|allocated,reserved|5m");
    let leaving = json!({ "deletionTimestamp": "2026-01-01T00:59:00Z" });
    assert_eq!(
        state(json!({ "metadata": leaving, "status": given })),
        "x|deleted,allocated,reserved|5m"
    );
    assert_eq!(state(json!({ "metadata": leaving })), "x|deleted|5m");
}

#[test]
fn every_column_of_a_built_in_kind_is_told() {
    let wire = Wire::load();
    let mut missing = Vec::new();
    for (resource, columns) in wire.tables() {
        let (_, name) = resource
            .rsplit_once('/')
            .expect("group, version and resource");
        let object = json!({
            "metadata": { "name": "x", "creationTimestamp": "2026-01-01T00:55:00Z" },
            "addressType": "IPv4", "driverName": "d", "handler": "h", "provisioner": "p",
            "spec": { "attacher": "a", "nodeName": "n", "policyName": "p", "schedule": "s" },
        });
        let cells = Printer::built_in(name, columns).cells(&object, now());
        let told = columns.iter().zip(cells);
        missing.extend(
            told.filter(|(_, cell)| cell.is_null())
                .map(|(column, _)| format!("{resource}: {}", column.name)),
        );
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn native_groups_tell_their_policy_and_how_far_they_are() {
    let told = |policy: Value, conditions: Value| {
        let object = json!({
            "spec": { "schedulingPolicy": policy }, "status": { "conditions": conditions },
        });
        row("scheduling.k8s.io", "v1alpha2", "podgroups", object)
    };
    let gang = || json!({ "gang": { "minCount": 2 } });
    let scheduled = |is: &str| json!([{ "type": "PodGroupScheduled", "status": is }]);
    let disrupted = json!([
        { "type": "PodGroupScheduled", "status": "True" },
        { "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler" },
    ]);
    assert_eq!(
        told(json!({ "basic": {} }), json!([])),
        "x|Basic|<none>|Pending|5m"
    );
    assert_eq!(
        told(gang(), scheduled("True")),
        "x|Gang|<none>|Scheduled|5m"
    );
    assert_eq!(
        told(gang(), scheduled("False")),
        "x|Gang|<none>|Unschedulable|5m"
    );
    assert_eq!(
        told(gang(), disrupted),
        "x|Gang|<none>|PreemptionByScheduler|5m"
    );
}
