//! What is printed and drawn of a report.

use sim::{QueueSum, Report, ResourceSum, Turned, Waits, Workload};

use super::{facts, picture, table, verdict};
use crate::{EXIT_COMPLETE, EXIT_FAILED, EXIT_TIMEOUT};

const MINUTE: i64 = 60_000;

fn workload(name: &str, started: Option<i64>, ended: Option<i64>, phase: &str) -> Workload {
    Workload {
        kind: "vcjob",
        namespace: "default".to_owned(),
        name: name.to_owned(),
        queue: "research".to_owned(),
        arrived_ms: MINUTE,
        started_ms: started.map(|minutes| minutes * MINUTE),
        ended_ms: ended.map(|minutes| minutes * MINUTE),
        phase: phase.to_owned(),
        pods: 2,
        ..Workload::default()
    }
}

fn report() -> Report {
    let waits = Waits {
        count: 2,
        p50_ms: 340,
        p95_ms: 4 * MINUTE,
        max_ms: 4 * MINUTE,
    };
    Report {
        seed: 7,
        lasted_ms: 90 * MINUTE,
        nodes: 20,
        makespan_ms: 89 * MINUTE,
        workloads: vec![
            workload("first", Some(1), Some(11), "Completed"),
            workload("second", Some(5), Some(6), "Failed"),
            Workload {
                reason: "3/5 tasks fit <&\"".to_owned(),
                ..workload("third", None, None, "Pending")
            },
        ],
        turned_away: vec![Turned {
            at_ms: MINUTE,
            name: "pod default/fourth".to_owned(),
            reason: "exceeded quota".to_owned(),
        }],
        waits,
        queues: vec![QueueSum {
            name: "research".to_owned(),
            weight: 2,
            workloads: 3,
            completed: 1,
            waits,
            used_milli_hours: 1_000,
            fair_milli_hours: 1_000,
            share_milli: 875,
            fair_share_milli: 1_000,
        }],
        resources: vec![ResourceSum {
            name: "cpu".to_owned(),
            room_milli: 640_000,
            mean_milli: 512,
            peak_milli: 1_000,
            course_milli: vec![0, 500, 1_000],
        }],
        shared: "cpu".to_owned(),
        fairness_milli: Some(987),
        undated: 1,
        ..Report::default()
    }
}

#[test]
fn a_table_tells_a_run_on_one_screen() {
    insta::assert_snapshot!(table::of(&report()), @r#"
    simulated   1h 30m on 20 nodes, seed 7
    workloads   3: 1 completed, 1 failed, 1 never started, 1 refused
    makespan    1h 29m
    waits       p50 340ms, p95 4m 00s, max 4m 00s
    fairness    0.987 (Jain's index, cpu)
    pods        6, 0 failed, 0 evicted
    note        1 pod templates have no katmai.dev/sim-duration and ran for the default time

    QUEUE      WEIGHT   WORKLOADS   COMPLETED   P50     P95      MAX      CPU SHARE   FAIR SHARE
    research   2        3           1           340ms   4m 00s   4m 00s   87.5 %      100.0 %

    RESOURCE   ROOM   MEAN USE   PEAK USE
    cpu        640    51.2 %     100.0 %

    never started:
      vcjob default/third (queue research): 3/5 tasks fit <&"

    failed:
      vcjob default/second (queue research): Failed

    refused:
      pod default/fourth: exceeded quota
    "#);
}

#[test]
fn a_picture_is_well_formed_whatever_names_and_reasons_hold() {
    let drawn = picture::of(&report());
    assert_eq!(drawn.matches("<g>").count(), 3);
    assert_eq!(drawn.matches("<g>").count(), drawn.matches("</g>").count());
    assert!(drawn.contains("3/5 tasks fit &lt;&amp;&quot;"), "{drawn}");
    assert!(drawn.contains("prefers-color-scheme:dark"));
    for line in drawn.lines().filter(|line| line.starts_with('<')) {
        let opened = line.matches('<').count();
        assert_eq!(opened, line.matches('>').count(), "{line}");
    }
    // A report of nothing is drawn, too.
    assert!(picture::of(&Report::default()).contains("0 workloads"));
}

#[test]
fn times_are_drawn_from_the_left_to_the_right_edge() {
    let drawn = picture::of(&report());
    let first = drawn
        .lines()
        .find(|line| line.contains("class=\"r\" x=\"66\""));
    assert!(
        first.is_some(),
        "the first minute of ninety begins at 66\n{drawn}"
    );
    let never = drawn
        .lines()
        .find(|line| line.contains("class=\"n\" x=\"66\""));
    let never = never.expect("the third one waits to the end");
    assert!(never.contains("width=\"914\""), "{never}");
}

#[test]
fn facts_hold_what_the_table_says() {
    let facts = facts::of(&report());
    assert_eq!(facts["waits"]["p95Ms"], 4 * MINUTE);
    assert_eq!(facts["workloads"][2]["reason"], "3/5 tasks fit <&\"");
    assert_eq!(facts["workloads"][2]["startedMs"], serde_json::Value::Null);
    assert_eq!(facts["refused"][0]["name"], "pod default/fourth");
    assert_eq!(facts["resources"][0]["courseMilli"][2], 1_000);
}

#[test]
fn the_verdict_is_the_worst_that_was_seen() {
    let mut seen = report();
    assert_eq!(verdict(&seen), EXIT_FAILED);
    seen.turned_away.clear();
    seen.workloads.remove(1);
    assert_eq!(verdict(&seen), EXIT_TIMEOUT);
    seen.workloads.pop();
    assert_eq!(verdict(&seen), EXIT_COMPLETE);
}
