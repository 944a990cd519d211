use serde_json::json;

use super::*;

fn second(seconds: i64) -> Time {
    Time::from_seconds(seconds)
}

fn training(phase: &str, message: &str) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": { "name": "training", "namespace": "default", "uid": "u1" },
        "spec": { "minAvailable": 2, "tasks": [{ "name": "master", "replicas": 1 }, { "name": "worker", "replicas": 1 }] },
        "status": { "state": { "phase": phase, "message": message } },
    })
}

fn pod(name: &str, phase: &str, state: Value, restarts: u64) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "uid": format!("p-{name}"),
            "ownerReferences": [{ "uid": "u1", "controller": true }] },
        "spec": { "nodeName": "node-1", "containers": [{ "name": "main" }] },
        "status": { "phase": phase, "containerStatuses": [{ "name": "main", "restartCount": restarts, "state": state }] },
    })
}

fn group(phase: &str, message: &str) -> Value {
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": { "name": "training-u1", "namespace": "default", "uid": "g1",
            "ownerReferences": [{ "uid": "u1", "controller": true }] },
        "status": { "phase": phase, "conditions": [{ "type": "Unschedulable", "status": "True", "message": message }] },
    })
}

fn following() -> View {
    let mut view = View::default();
    view.follow(&training("", ""), second(0));
    view
}

fn said(effects: &[Effect]) -> String {
    effects
        .iter()
        .map(|effect| match effect {
            Effect::Say(event) => event.to_string(),
            Effect::Log(source) => format!(
                "[{:?} log of {} as {}]",
                source.instance, source.pod, source.label
            ),
        })
        .collect::<Vec<_>>()
        .join("\n")
}

fn passed(view: &mut View, seconds: i64) -> String {
    let events = view.pass(second(seconds));
    let effects: Vec<Effect> = events.into_iter().map(Effect::Say).collect();
    said(&effects)
}

#[test]
fn a_gang_that_runs_to_its_end_is_told_from_pending_to_summary() {
    let mut view = following();
    let mut story = Vec::new();
    story.extend(view.see(&training("Pending", ""), second(1)));
    for name in ["training-master-0", "training-worker-0"] {
        story.extend(view.see(&pod(name, "Pending", json!({}), 0), second(1)));
        story.extend(view.see(
            &pod(name, "Running", json!({ "running": {} }), 0),
            second(2),
        ));
    }
    story.extend(view.see(&training("Running", ""), second(2)));
    assert_eq!(view.verdict(), None);
    for name in ["training-worker-0", "training-master-0"] {
        story.extend(view.see(
            &pod(
                name,
                "Succeeded",
                json!({ "terminated": { "exitCode": 0 } }),
                0,
            ),
            second(4),
        ));
    }
    story.extend(view.see(&training("Completed", ""), second(5)));
    insta::assert_snapshot!(said(&story), @r"
    vcjob/training: Pending
    master-0: Pending
    master-0: Running on node-1
    [Current log of training-master-0 as master-0]
    vcjob/training: Pending (1 running of 2)
    worker-0: Pending
    worker-0: Running on node-1
    [Current log of training-worker-0 as worker-0]
    vcjob/training: Pending (2 running of 2)
    vcjob/training: Running (2 running of 2)
    worker-0: Succeeded
    vcjob/training: Running (1 running, 1 succeeded of 2)
    master-0: Succeeded
    vcjob/training: Running (2 succeeded of 2)
    vcjob/training: Completed (2 succeeded of 2)
    ");
    assert_eq!(view.verdict(), Some(Verdict::Completed));
    let summary = Event::Summary {
        workloads: view.summary(second(9)),
        exit_code: 0,
    };
    insta::assert_snapshot!(summary.to_string().trim(), @r"
    vcjob/training  Completed  after 5.0s (waited 2.0s)
      master-0  Succeeded    2.0s  node-1
      worker-0  Succeeded    2.0s  node-1
    ");
}

#[test]
fn a_gang_without_room_says_the_missing_room_once_and_on_the_screen() {
    let mut view = following();
    let reason = "4 of 5 tasks fit: worker-3 needs 100m cpu, node-1 has 50m left";
    let message = format!("5/5 tasks in gang unschedulable. In plain words: {reason}");
    let reason = message.as_str();
    let first = view.see(&training("Pending", reason), second(1));
    insta::assert_snapshot!(said(&first), @"vcjob/training: Pending");
    assert_eq!(view.see(&group("Inqueue", "passing"), second(1)), []);
    assert_eq!(view.see(&group("Inqueue", reason), second(1)), []);
    assert_eq!(view.pass(second(1)), [], "a reason that just came may pass");
    // The job says it after its group.
    assert_eq!(view.see(&training("Pending", reason), second(1)), []);
    insta::assert_snapshot!(passed(&mut view, 2), @"vcjob/training waits: 4 of 5 tasks fit: worker-3 needs 100m cpu, node-1 has 50m left");
    assert_eq!(view.see(&group("Inqueue", reason), second(2)), []);
    assert_eq!(view.pass(second(3)), []);
    insta::assert_snapshot!(view.screen(second(3)).join("\n"), @r"
    vcjob/training  Pending  3.0s
      waits: 4 of 5 tasks fit: worker-3 needs 100m cpu, node-1 has 50m left
    ");
}

#[test]
fn a_job_blocked_by_a_missing_claim_says_which() {
    let mut view = following();
    view.see(&training("Pending", "waits for claim \"data\""), second(1));
    assert_eq!(
        passed(&mut view, 2),
        "vcjob/training waits: waits for claim \"data\""
    );
}

#[test]
fn a_restarted_container_has_both_logs_opened_even_if_the_first_was_missed() {
    let mut view = following();
    view.see(&training("Running", ""), second(1));
    let effects = view.see(
        &pod("training-worker-0", "Running", json!({ "running": {} }), 1),
        second(1),
    );
    let logs: Vec<_> = effects
        .iter()
        .filter(|effect| matches!(effect, Effect::Log(_)))
        .cloned()
        .collect();
    insta::assert_snapshot!(said(&logs), @r"
    [Previous log of training-worker-0 as worker-0]
    [Current log of training-worker-0 as worker-0]
    ");
}

#[test]
fn the_worst_verdict_wins_and_none_to_follow_is_complete() {
    assert_eq!(View::default().verdict(), Some(Verdict::Completed));
    let mut view = following();
    view.follow(
        &json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "uid": "u2" } }),
        second(0),
    );
    view.see(&training("Aborted", ""), second(1));
    assert_eq!(view.verdict(), None, "the pod has not ended");
    view.see(
        &json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "uid": "u2" }, "status": { "phase": "Succeeded" } }),
        second(2),
    );
    assert_eq!(view.verdict(), Some(Verdict::Failed));
}

#[test]
fn a_workload_deleted_before_its_end_has_failed() {
    let mut view = following();
    view.see(&training("Running", ""), second(1));
    insta::assert_snapshot!(said(&view.gone(&training("Running", ""), second(2))), @"vcjob/training: Deleted: deleted before its end");
    assert_eq!(view.verdict(), Some(Verdict::Failed));
}

#[test]
fn what_had_ended_before_is_told_with_its_own_times() {
    let mut view = View::default();
    view.follow(&training("Completed", ""), second(100));
    view.see(&training("Completed", ""), second(100));
    let ended = json!({ "terminated": { "exitCode": 0,
        "startedAt": "1970-01-01T00:00:10Z", "finishedAt": "1970-01-01T00:00:13Z" } });
    view.see(
        &pod("training-master-0", "Succeeded", ended, 0),
        second(100),
    );
    let summary = Event::Summary {
        workloads: view.summary(second(101)),
        exit_code: 0,
    };
    insta::assert_snapshot!(summary.to_string().trim(), @r"
    vcjob/training  Completed  before this run
      master-0  Succeeded    3.0s  node-1
    ");
}

#[test]
fn a_task_that_cannot_start_says_why() {
    let mut view = following();
    let why = json!({ "terminated": { "exitCode": 128, "reason": "StartError",
        "message": "failed to start the container: cannot mount /results" } });
    let effects = view.see(&pod("training-worker-0", "Failed", why, 0), second(1));
    assert!(
        said(&effects).starts_with(
            "worker-0: Failed (exit code 128): failed to start the container: cannot mount /results"
        ),
        "{}",
        said(&effects)
    );
}
