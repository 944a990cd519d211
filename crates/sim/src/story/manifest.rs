//! The objects that a part of a story consists of, as its user writes them.

use serde_json::{Value, json};

use super::part::{Fate, PRIORITIES, Part, RETRIES};

const SOURCE: &str = "source";
const AT_ONCE: &str = "at-once";

/// The queue that comes later than the jobs that name it.
pub(super) const LATE_QUEUE: &str = "late";

/// Volcano's Job.
pub(super) fn job(part: &Part) -> Value {
    let name = part.name();
    let exit_code = match part.fate {
        Fate::Fails { .. } => "1",
        _ => "0",
    };
    let mut tasks = vec![task(part, "work", part.workers, exit_code)];
    if part.helpers > 0 {
        tasks.push(task(part, "help", part.helpers, "0"));
    }
    let mut spec = json!({
        "minAvailable": part.workers + part.helpers,
        "schedulerName": "volcano",
        "maxRetry": RETRIES,
        "tasks": tasks,
        "volumes": volumes(part),
    });
    if let Some(queue) = &part.queue {
        spec["queue"] = json!(queue);
    }
    if let Some(priority) = part.priority {
        spec["priorityClassName"] = json!(priority);
    }
    if part.has_service {
        spec["plugins"] = json!({ "env": [], "svc": [] });
    }
    match &part.fate {
        Fate::Fails { action } if !action.is_empty() => {
            spec["policies"] = json!([{ "event": "PodFailed", "action": action }]);
        }
        Fate::RestartsForPod { .. } => {
            spec["policies"] = json!([{ "event": "PodEvicted", "action": "RestartJob" }]);
        }
        Fate::Elastic => {
            spec["minAvailable"] = json!(1);
            for task in spec["tasks"].as_array_mut().into_iter().flatten() {
                task["minAvailable"] = json!(0);
            }
        }
        Fate::Expires => spec["ttlSecondsAfterFinished"] = json!(3),
        Fate::LateQueue { .. } => spec["queue"] = json!(LATE_QUEUE),
        _ => {}
    }
    part.shape.lay_over(part, &mut spec);
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": { "name": name, "namespace": "default" },
        "spec": spec,
    })
}

/// A claim that the directory provisioner can serve.
pub(super) fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": { "name": name, "namespace": "default" },
        "spec": claim_spec(),
    })
}

/// The claim that others are copies of.
pub(super) fn source() -> Value {
    claim_at_once(SOURCE)
}

/// A claim whose volume waits for no pod.
pub(super) fn claim_at_once(name: &str) -> Value {
    let mut claim = claim(name);
    claim["spec"]["storageClassName"] = json!(AT_ONCE);
    claim
}

/// The class of a claim whose volume waits for no pod.
pub(super) fn class_at_once() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": { "name": AT_ONCE },
        "provisioner": api::disk::DRIVER,
        "volumeBindingMode": "Immediate",
    })
}

/// Pods that name the scheduler and belong to nobody.
pub(super) fn bare_pods(part: &Part) -> Vec<Value> {
    (0..part.workers)
        .map(|index| {
            let mut pod = template(part, "0", true);
            pod["apiVersion"] = json!("v1");
            pod["kind"] = json!("Pod");
            pod["metadata"]["name"] = json!(format!("{}-{index}", part.name()));
            pod["metadata"]["namespace"] = json!("default");
            pod
        })
        .collect()
}

/// What a part's user changes of a vcjob: the pods of its first task, and all minimums.
pub(super) fn resized(part: &Part, workers: i64, least: i64) -> Value {
    let set = |path: &str, value: i64| json!({ "op": "add", "path": path, "value": value });
    let of_tasks = if least > 1 { workers } else { 0 };
    let mut steps = vec![
        set("/spec/tasks/0/replicas", workers),
        set("/spec/tasks/0/minAvailable", of_tasks),
        set("/spec/minAvailable", least),
    ];
    if part.helpers > 0 && least == 1 {
        steps.push(set("/spec/tasks/1/minAvailable", 0));
    }
    steps.into()
}

/// The priority classes of stories that have some.
pub(super) fn priorities() -> impl Iterator<Item = Value> {
    PRIORITIES.iter().map(|(name, value)| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": { "name": name },
            "value": value,
        })
    })
}

/// Kubernetes' own Job.
pub(super) fn batch_job(part: &Part) -> Value {
    let is_suspended = matches!(part.fate, Fate::BatchSuspended { .. });
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": part.name(), "namespace": "default" },
        "spec": {
            "completions": part.workers,
            "parallelism": part.workers,
            "suspend": is_suspended,
            "template": template(part, "0", true),
        },
    })
}

fn task(part: &Part, name: &str, replicas: i64, exit_code: &str) -> Value {
    json!({
        "name": name,
        "replicas": replicas,
        "template": template(part, exit_code, false),
    })
}

/// Pods that ask for so much, run so long and end so, with nothing else about them.
pub(super) fn plain_template(milli_cpu: i64, runs_ms: i64, exit_code: &str) -> Value {
    json!({
        "metadata": { "annotations": {
            "katmai.dev/sim-duration": format!("{runs_ms}ms"),
            "katmai.dev/sim-exit-code": exit_code,
        }},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{
                "name": "main",
                "image": "busybox",
                "resources": { "requests": { "cpu": format!("{milli_cpu}m") } },
            }],
        },
    })
}

fn template(part: &Part, exit_code: &str, names_scheduler: bool) -> Value {
    let mut template = plain_template(part.milli_cpu, part.runs_ms, exit_code);
    if part.has_sidecar {
        template["spec"]["initContainers"] =
            json!([{ "name": "sidecar", "image": "busybox", "restartPolicy": "Always" }]);
    }
    if names_scheduler {
        template["spec"]["schedulerName"] = json!("volcano");
    }
    template
}

fn volumes(part: &Part) -> Vec<Value> {
    let mut volumes: Vec<Value> = (0..part.own_claims)
        .map(|index| json!({ "mountPath": format!("/own-{index}"), "volumeClaim": claim_spec() }))
        .collect();
    if let Some(first) = volumes.first_mut().filter(|_| part.is_copy()) {
        first["volumeClaim"]["dataSource"] =
            json!({ "kind": "PersistentVolumeClaim", "name": SOURCE });
    }
    if matches!(part.fate, Fate::LateClaim { .. } | Fate::NoClaim) {
        let named = json!({
            "mountPath": "/data",
            "volumeClaimName": format!("{}-data", part.name()),
        });
        // Before, between or after the job's own.
        volumes.insert(part.index % (volumes.len() + 1), named);
    }
    volumes
}

fn claim_spec() -> Value {
    json!({
        "accessModes": ["ReadWriteMany"],
        "resources": { "requests": { "storage": "1Gi" } },
    })
}
