mod fixture;
mod flags;
mod page;
mod statuses;
mod texts;
mod world;

use serde_json::json;

use super::*;

fn listed(arguments: &[&str]) -> job::List {
    let typed = Typed::try_parse_from(["vcctl", "job", "list"].iter().chain(arguments)).unwrap();
    match typed.request {
        Group::Job(job::Request::List(list)) => list,
        _ => panic!("not a list"),
    }
}

fn training() -> serde_json::Value {
    json!({
        "metadata": { "name": "training", "namespace": "default", "creationTimestamp": "2026-11-21T18:00:00Z" },
        "spec": { "queue": "research", "schedulerName": "volcano", "tasks": [{ "replicas": 1 }, { "replicas": 4 }] },
        "status": { "state": { "phase": "Running" }, "minAvailable": 5, "running": 5, "retryCount": 1 },
    })
}

#[test]
fn job_list_has_upstreams_columns() {
    let table = job::table(&listed(&[]), &[training()]);
    insta::assert_snapshot!(table.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"), @r"
    Name       Creation       Phase       JobType     Replicas    Min   Pending   Running   Succeeded   Failed    Unknown     RetryCount
    training   2026-11-21     Running     Batch       5           5     0         5         0           0         0           1
    ");
    let all = job::table(&listed(&["--all-namespaces"]), &[training()]);
    assert!(all.starts_with("Namespace   Name       Creation"), "{all}");
}

#[test]
fn job_list_chooses_by_queue_scheduler_and_part_of_the_name() {
    for none in [["-q", "other"], ["-S", "default"], ["--selector", "x"]] {
        assert_eq!(
            job::table(
                &listed(&none),
                &job::chosen(&listed(&none), vec![training()])
            ),
            "No resources found"
        );
    }
    for one in [
        ["-q", "research"],
        ["-S", "volcano"],
        ["--selector", "rain"],
    ] {
        assert_eq!(
            job::table(&listed(&one), &job::chosen(&listed(&one), vec![training()]))
                .lines()
                .count(),
            2
        );
    }
}

#[test]
fn queue_list_counts_pod_groups() {
    let queue = json!({ "metadata": { "name": "default" }, "spec": { "weight": 1, "parent": "root" }, "status": { "state": "Open" } });
    let group = json!({ "spec": { "queue": "default" }, "status": { "phase": "Running" } });
    let fresh = json!({ "spec": {}, "status": {} });
    let table = queue::table(&[queue], &[group, fresh]);
    insta::assert_snapshot!(table.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"), @r"
    Name                     Weight  State   Parent  Inqueue Pending Running Unknown Completed
    default                  1       Open    root    0       1       1       0       0
    ");
}

#[test]
fn ages_are_written_as_kubectl_writes_them() {
    let now = Time::parse("2026-11-21T18:00:00Z").unwrap();
    for (created, age_text) in [
        ("2026-11-21T17:59:30Z", "30s"),
        ("2026-11-21T17:55:30Z", "4m30s"),
        ("2026-11-21T17:00:00Z", "60m"),
        ("2026-11-21T12:30:00Z", "5h30m"),
        ("2026-11-18T17:00:00Z", "3d1h"),
        ("2026-10-18T17:00:00Z", "34d"),
        ("2024-11-22T18:00:00Z", "729d"),
        ("2024-11-21T18:00:00Z", "2y"),
        ("2024-09-12T18:00:00Z", "2y70d"),
        ("2018-11-21T18:00:00Z", "8y"),
        ("2026-11-21T18:00:01Z", "0s"),
        ("2026-11-21T18:00:02Z", "<invalid>"),
        ("", "<unknown>"),
    ] {
        assert_eq!(age(created, now), age_text, "{created}");
    }
}
