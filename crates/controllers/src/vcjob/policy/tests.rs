//! However much a status tells, no more of it is looked at than something can come of.

use serde_json::{Value, json};

use super::*;

const TASKS: usize = 300;

/// A job without any pod whose status counts a hundred thousand running ones of each of its many tasks.
fn job(policies: &Value, replicas: usize, of_status: Value) -> Job {
    let names = || (0..TASKS).map(|at| format!("t{at}"));
    let task = |name: String| json!({ "name": name, "replicas": replicas });
    let count = json!({ "phase": { "Running": LOST_MAX } });
    let counts: BTreeMap<String, Value> = names().map(|name| (name, count.clone())).collect();
    let mut status = json!({ "state": { "phase": "Running" }, "taskStatusCount": counts });
    if let (Some(status), Value::Object(more)) = (status.as_object_mut(), of_status) {
        status.extend(more);
    }
    let tasks: Vec<Value> = names().map(task).collect();
    let job = json!({
        "metadata": { "namespace": "ml", "name": "train", "uid": "job" },
        "spec": { "tasks": tasks, "policies": policies },
        "status": status,
    });
    serde_json::from_value(job).expect("a job")
}

/// What the policies of a job say, and how many indices were looked at for it.
fn asked(job: &Job) -> (Advice, usize) {
    let (mirror, roster) = (Mirror::new(), Roster::default());
    let tasks: Vec<Ruled<'_>> = job.spec.tasks.iter().map(Ruled::of).collect();
    let now = Time::from_seconds(1_800_000_000);
    let mut asking = Asking::of(&mirror, job, &roster, now);
    asking.ask(&tasks, None);
    (asking.advice, asking.looked_at)
}

#[test]
fn nobody_is_looked_for_whom_no_policy_asks_for() {
    let policies = [
        json!([]),
        json!([{ "event": "PodFailed", "action": "AbortJob" }]),
        json!([{ "events": ["PodPending", "Unknown"], "action": "AbortJob", "timeout": "1h" }]),
        json!([{ "exitCode": 1, "action": "RestartTask" }]),
        json!([{ "event": "PodEvicted", "action": "ResumeJob" }]),
        // The tasks have no partitions.
        json!([{ "event": "PodEvicted", "action": "RestartPartition" }]),
    ];
    for policies in policies {
        let (advice, looked_at) = asked(&job(&policies, LOST_MAX, json!({})));
        assert_eq!(advice, Advice::default(), "{policies}");
        assert_eq!(looked_at, 0, "{policies}");
    }
}

#[test]
fn no_more_are_looked_for_than_can_be_noted() {
    for action in ["RestartPod", "RestartTask", "AbortJob"] {
        let policies = json!([{ "event": "PodEvicted", "action": action, "timeout": "1h" }]);
        let (advice, looked_at) = asked(&job(&policies, LOST_MAX, json!({})));
        assert!(advice.notes.is_full() && advice.due.is_none(), "{action}");
        // All of the first task to tell who they are, those that are noted, and the first that is too many.
        let noted = advice.notes.evictions().count();
        assert_eq!(looked_at, LOST_MAX + noted + 1, "{action}");

        let policies = json!([{ "event": "*", "action": action }]);
        let (advice, looked_at) = asked(&job(&policies, LOST_MAX, json!({})));
        let due = advice.due.expect("an action");
        assert_eq!(due.subject, "pod train-t0-0");
        assert!(advice.notes.is_full(), "{action}");
        assert_eq!(looked_at, LOST_MAX + noted + 2, "{action}");
    }
}

#[test]
fn what_one_task_uses_up_is_none_of_the_others() {
    let policies = json!([{ "event": "PodEvicted", "action": "AbortJob", "timeout": "1h" }]);
    let marked = (0..TASKS).map(|at| (format!("katmai.dev/marked/t{at}"), json!("0-99998")));
    let listed = (0..TASKS).map(|at| (format!("katmai.dev/counted/t{at}"), json!("5-4294967295")));
    let resources: [BTreeMap<String, Value>; 3] =
        [BTreeMap::new(), marked.collect(), listed.collect()];
    for resources in resources {
        let status = json!({ "controlledResources": resources });
        // Of tasks that are empty by now nobody can be named, and one note each is all that comes of them.
        let (advice, looked_at) = asked(&job(&policies, 0, status));
        assert_eq!(looked_at, LOST_MAX);
        assert_eq!(advice.notes.evictions().count(), 1);
    }
}
