//! What is in the cluster that transcripts ask.

use std::sync::Arc;

use serde_json::{Value, json};

use super::world::World;

const BATCH: &str = "batch.volcano.sh/v1alpha1";
const FLOW: &str = "flow.volcano.sh/v1alpha1";
const SCHEDULING: &str = "scheduling.volcano.sh/v1beta1";

/// A cluster that is in use.
pub(super) fn busy() -> Arc<World> {
    let mut objects = vec![training(), nightly()];
    objects.extend(queues());
    objects.extend(groups());
    objects.extend(pods());
    objects.extend(events());
    objects.extend(flows());
    World::of(objects)
}

/// A cluster without anything.
pub(super) fn empty() -> Arc<World> {
    World::of(Vec::new())
}

fn named(name: &str, namespace: &str, created: &str) -> Value {
    json!({ "name": name, "namespace": namespace, "creationTimestamp": created })
}

pub(super) fn training() -> Value {
    json!({
        "apiVersion": BATCH, "kind": "Job",
        "metadata": {
            "name": "training", "namespace": "default", "uid": "u-1", "resourceVersion": "42", "generation": 2,
            "creationTimestamp": "2026-11-21T15:30:00Z",
            "labels": { "team": "vision", "volcano.sh/job-type": "PyTorch" },
            "annotations": { "note": "night run, <1h & cheap" },
        },
        "spec": {
            "minAvailable": 3, "queue": "research", "schedulerName": "volcano", "maxRetry": 3,
            "priorityClassName": "high",
            "plugins": { "env": [], "ssh": ["--no-root"], "svc": [] },
            "tasks": [
                { "name": "ps", "replicas": 1, "minAvailable": 1, "template": { "spec": {
                    "containers": [{ "name": "main", "image": "ps:1", "command": ["serve", "--port=2222"],
                        "ports": [{ "name": "ps", "containerPort": 2222 }],
                        "resources": { "requests": { "cpu": "1" }, "limits": { "cpu": "2", "memory": "1Gi" } } }],
                    "restartPolicy": "Never" } } },
                { "name": "worker", "replicas": 4, "minAvailable": 2,
                    "dependsOn": { "name": ["ps"], "iteration": "any" },
                    "template": {
                        "metadata": { "annotations": { "kubernetes.io/availablezone": "z1" } },
                        "spec": {
                            "initContainers": [{ "name": "fetch", "image": "fetch:1" }],
                            "containers": [{ "name": "main", "image": "worker:1", "args": ["--fast"], "workingDir": "/work",
                                "ports": [{ "name": "dns", "containerPort": 53, "protocol": "UDP" }],
                                "resources": { "limits": { "cpu": "1500m", "memory": "1024Mi", "nvidia.com/gpu": 2 } } }],
                            "imagePullSecrets": [{ "name": "registry" }] } } },
            ],
        },
        "status": {
            "state": { "phase": "Running", "lastTransitionTime": "2026-11-21T15:31:00Z" },
            "minAvailable": 3, "running": 4, "pending": 1, "failed": 0, "retryCount": 1, "version": 2,
            "controlledResources": { "plugin-env": "env", "plugin-svc": "svc" },
            "conditions": [
                { "status": "Pending", "lastTransitionTime": "2026-11-21T15:30:01Z" },
                { "status": "Running", "lastTransitionTime": "2026-11-21T15:31:00Z" },
            ],
        },
    })
}

fn nightly() -> Value {
    json!({
        "apiVersion": BATCH, "kind": "Job",
        "metadata": named("nightly", "batch", "2026-11-20T00:00:00Z"),
        "spec": { "minAvailable": 1, "schedulerName": "other", "tasks": [{ "name": "t", "replicas": 2 }] },
        "status": { "state": { "phase": "Completed" }, "minAvailable": 1, "succeeded": 2 },
    })
}

fn queues() -> Vec<Value> {
    let queue = |name: &str, weight: i64, spec: Value, state: &str| {
        let mut queue = json!({ "apiVersion": SCHEDULING, "kind": "Queue",
            "metadata": { "name": name, "uid": format!("q-{name}") }, "spec": spec, "status": { "state": state } });
        queue["spec"]["weight"] = weight.into();
        queue
    };
    vec![
        queue(
            "default",
            1,
            json!({ "parent": "root", "reclaimable": false }),
            "Open",
        ),
        queue(
            "research",
            4,
            json!({ "parent": "root", "priority": 7 }),
            "Closing",
        ),
    ]
}

fn groups() -> Vec<Value> {
    let group = |name: &str, queue: &str, phase: &str| {
        json!({ "apiVersion": SCHEDULING, "kind": "PodGroup", "metadata": { "name": name, "namespace": "default" },
            "spec": { "queue": queue }, "status": { "phase": phase } })
    };
    vec![
        group("a", "default", "Inqueue"),
        group("b", "", "Pending"),
        group("c", "research", "Running"),
        group("d", "research", "Running"),
        group("e", "research", "Unknown"),
        group("f", "research", "Completed"),
    ]
}

fn pods() -> Vec<Value> {
    let pod = |name: &str, job: &str, status: Value| {
        let namespace = if job == "nightly" { "batch" } else { "default" };
        let mut meta = named(name, namespace, "2026-11-21T17:58:30Z");
        meta["labels"] = json!({ "volcano.sh/job-name": job });
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": meta,
            "spec": { "nodeName": "node-1", "containers": [{ "name": "main" }] }, "status": status })
    };
    let mut ps = pod(
        "training-ps-0",
        "training",
        json!({ "phase": "Running", "podIP": "10.244.0.7", "containerStatuses": [
            { "name": "main", "ready": true, "restartCount": 2, "state": { "running": {} },
                "lastState": { "terminated": { "finishedAt": "2026-11-21T17:55:00Z" } } }] }),
    );
    ps["metadata"]["labels"]["volcano.sh/queue-name"] = "research".into();
    let mut worker = pod(
        "training-worker-0",
        "training",
        json!({ "phase": "Pending" }),
    );
    worker["metadata"]["annotations"] = json!({ "scheduling.volcano.sh/queue-name": "research" });
    worker["spec"]["nodeName"] = Value::Null;
    let done = json!({ "phase": "Succeeded", "containerStatuses": [
        { "name": "main", "ready": false, "restartCount": 0, "state": { "terminated": { "reason": "Completed", "exitCode": 0 } } }] });
    let mut alone = pod("alone", "", json!({ "phase": "Running" }));
    alone["metadata"]["labels"] = json!({ "app": "none-of-a-job" });
    vec![worker, ps, pod("nightly-t-0", "nightly", done), alone]
}

pub(super) fn events() -> Vec<Value> {
    let event = |name: &str, reason: &str, body: Value| {
        let mut event = json!({ "apiVersion": "v1", "kind": "Event", "type": "Normal", "reason": reason,
            "metadata": { "name": name, "namespace": "default" },
            "source": { "component": "vc-controller-manager" } });
        for (field, value) in body.as_object().into_iter().flatten() {
            event[field] = value.clone();
        }
        event
    };
    vec![
        event(
            "training.2",
            "PodGroupPending",
            json!({ "type": "Warning", "message": "PodGroup default:training unschedule, reason: 1/3 tasks in gang unschedulable\n",
                "count": 3, "firstTimestamp": "2026-11-21T15:30:02Z", "lastTimestamp": "2026-11-21T17:59:50Z" }),
        ),
        event(
            "training.1",
            "ExecuteAction",
            json!({ "message": "Start to execute action AbortJob", "count": 1,
                "source": { "component": "vc-controller-manager", "host": "node-1" },
                "firstTimestamp": "2026-11-21T17:00:00Z", "lastTimestamp": "2026-11-21T17:00:00Z" }),
        ),
        event(
            "training.3",
            "CommandIssued",
            json!({ "message": "told by the newer API", "source": {}, "reportingComponent": "vc-scheduler",
                "eventTime": "2026-11-21T17:30:00.000000Z" }),
        ),
        event(
            "training-2.1",
            "ExecuteAction",
            json!({ "message": "of another job" }),
        ),
    ]
}

fn flows() -> Vec<Value> {
    let flow = |kind: &str, name: &str, spec: Value, status: Value| {
        json!({ "apiVersion": FLOW, "kind": kind, "metadata": named(name, "default", "2026-11-21T12:30:00Z"),
            "spec": spec, "status": status })
    };
    vec![
        flow(
            "JobFlow",
            "two-steps",
            json!({ "jobRetainPolicy": "retain", "flows": [{ "name": "first" }, { "name": "second", "dependsOn": { "targets": ["first"] } }] }),
            json!({ "state": { "phase": "Running" }, "completedJobs": ["two-steps-first"], "runningJobs": ["two-steps-second"] }),
        ),
        flow(
            "JobFlow",
            "one",
            json!({ "flows": [{ "name": "first" }] }),
            json!({}),
        ),
        flow(
            "JobTemplate",
            "first",
            json!({ "minAvailable": 1, "tasks": [{ "name": "t", "replicas": 3 }, { "name": "none" }] }),
            json!({}),
        ),
        flow(
            "JobTemplate",
            "second",
            json!({ "minAvailable": 2 }),
            json!({}),
        ),
    ]
}
