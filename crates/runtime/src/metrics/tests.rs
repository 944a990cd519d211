//! The tables of `docs/metrics.md`, which are written from upstream's, against what is told; the dashboard
//! and the alerts against the tables.

mod expressions;
mod golden;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use driver::census::Census;
use driver::timings::{Scale, Timed};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::{Described, MetricsPage, PREFIX, Scrape, described};
use crate::engine_loop::{Came, Counted};
use expressions::Sample;

const PAGE: &str = include_str!("../../../../docs/metrics.md");
const DASHBOARD: &str = include_str!("../../../../deploy/grafana/katmai.json");
const ALERTS: &str = include_str!("../../../../deploy/prometheus/katmai.yaml");

/// A row of a table: its cells.
fn rows(after: &str) -> Vec<Vec<String>> {
    let (_, text) = PAGE.split_once(after).expect("the heading is there");
    let lines = text
        .lines()
        .skip(1)
        .take_while(|line| !line.starts_with("## "));
    let cells = lines.filter(|line| line.starts_with("| `")).map(|line| {
        let cells = line.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().replace('`', "")).collect()
    });
    cells.collect()
}

/// Upstream's metrics that are told, as the table has them: type, labels, buckets.
fn wanted() -> BTreeMap<String, (String, String, String)> {
    let told = rows("## Volcano's").into_iter().filter(|row| {
        let is_absent = row[4].starts_with("absent: ");
        assert!(!is_absent || row[4].len() > "absent: ".len(), "{row:?}");
        !is_absent
    });
    told.map(|row| {
        (
            row[0].clone(),
            (row[1].clone(), row[2].clone(), row[3].clone()),
        )
    })
    .collect()
}

fn timed(name: &str) -> Option<Timed> {
    Some(match name {
        "e2e_scheduling_latency_milliseconds" => Timed::Cycle,
        "open_session_duration_milliseconds" => Timed::Opening,
        "plugin_scheduling_latency_milliseconds" => Timed::Plugin,
        "action_scheduling_latency_milliseconds" => Timed::Action,
        "e2e_job_scheduling_latency_milliseconds" => Timed::Gang,
        "task_scheduling_latency_milliseconds" => Timed::Pod,
        "scheduling_stage_duration_milliseconds" => Timed::Stage,
        "worker_scheduling_cycle_duration_milliseconds" => Timed::WorkerCycle,
        "controller_job_to_pod_creation_latency_milliseconds" => Timed::PodMade,
        _ => return None,
    })
}

fn buckets(row: &Described) -> String {
    match timed(row.name).map(Timed::scale) {
        None => String::new(),
        Some(Scale::Between { first, last, count }) => format!("{first}..{last} x{count}"),
        Some(Scale::Doubling { first, count }) => format!("{first}*2^n x{count}"),
    }
}

#[test]
fn what_is_told_of_volcanos_metrics_is_what_its_table_says() {
    let told: BTreeMap<_, _> = described()
        .map(|row| {
            let facts = (
                row.kind.word().to_owned(),
                row.labels.join(", "),
                buckets(&row),
            );
            (row.name.to_owned(), facts)
        })
        .collect();
    assert_eq!(told.len(), described().count(), "no name is told twice");
    assert_eq!(told, wanted());
    assert!(described().all(|row| !row.help.is_empty()));
}

/// Metrics of a page: type and labels by name, as its samples have them.
fn metrics_of(page: &str) -> BTreeMap<String, (String, String)> {
    let mut found = BTreeMap::new();
    for part in page.split("# TYPE ").skip(1) {
        let mut lines = part.lines().filter(|line| !line.starts_with('#'));
        let head = lines.next().expect("a head has a line");
        let (name, kind) = head.split_once(' ').expect("it has a type");
        let labels: BTreeSet<String> = lines.map(label_names).collect();
        assert_eq!(labels.len(), 1, "{name}: {labels:?}");
        let labels = labels.into_iter().collect();
        found.insert(name.to_owned(), (kind.to_owned(), labels));
    }
    found
}

/// Names of a sample's labels, but not of the end of a bucket.
fn label_names(sample: &str) -> String {
    let inner = sample
        .split_once('{')
        .and_then(|(_, it)| it.split_once('}'));
    let pairs = inner.map_or("", |(labels, _)| labels).split("\",");
    let names = pairs.filter_map(|pair| Some(pair.split_once('=')?.0));
    let names: Vec<&str> = names.filter(|name| *name != "le").collect();
    names.join(", ")
}

#[test]
fn samples_have_the_labels_of_the_tables() {
    let told = metrics_of(&golden::full_page());
    let ours = rows("## Ours").into_iter();
    let ours = ours.map(|row| (row[0].clone(), (row[1].clone(), row[2].clone())));
    let volcanos = wanted().into_iter();
    let volcanos =
        volcanos.map(|(name, (kind, labels, _))| (PREFIX.to_owned() + &name, (kind, labels)));
    assert_eq!(told, ours.chain(volcanos).collect());
}

/// What the tables say of samples, by their names.
fn samples_of_tables() -> BTreeMap<String, Sample> {
    let ours = rows("## Ours").into_iter();
    let ours = ours.map(|row| (row[0].clone(), row));
    let volcanos = rows("## Volcano's").into_iter();
    let volcanos = volcanos
        .filter(|row| !row[4].starts_with("absent: "))
        .map(|row| (PREFIX.to_owned() + &row[0], row));
    let mut found = BTreeMap::new();
    for (name, row) in ours.chain(volcanos) {
        let ends: &[&str] = match &*row[1] {
            "histogram" => &["_bucket", "_count", "_sum"],
            _ => &[""],
        };
        for end in ends {
            let labels = row[2]
                .split(", ")
                .chain((*end == "_bucket").then_some("le"));
            let labels = labels.filter(|label| !label.is_empty());
            let sample = Sample {
                labels: labels.map(ToOwned::to_owned).collect(),
                text: row[row.len() - 1].clone(),
            };
            found.insert(format!("{name}{end}"), sample);
        }
    }
    found
}

/// Expressions of the dashboard and the alerts, each with the text that shows what it comes to.
fn asked() -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("it has panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array());
    let text = |value: &Value| value.as_str().expect("it is a text").to_owned();
    let mut found: Vec<(String, String)> = targets
        .flatten()
        .map(|target| (text(&target["expr"]), text(&target["legendFormat"])))
        .collect();
    let limits = api::yaml::Limits::MANIFESTS;
    let alerts = api::yaml::documents(ALERTS, limits).expect("it is YAML");
    let alerts = alerts[0].json().expect("it is plain");
    let rules = alerts["groups"][0]["rules"]
        .as_array()
        .expect("it has rules");
    for rule in rules {
        assert!(rule["alert"].is_string());
        let told = &rule["annotations"];
        let told = format!("{} {}", text(&told["summary"]), text(&told["description"]));
        found.push((text(&rule["expr"]), told));
    }
    assert!(found.len() > rules.len(), "both ask");
    found
}

fn a_page() -> (MetricsPage, mpsc::Receiver<Came>) {
    let (came, questions) = mpsc::channel(1);
    // The sender may go: what was counted last is still there.
    let (_, counted) = watch::channel(Counted::default());
    (MetricsPage::new(counted, came), questions)
}

#[tokio::test]
async fn who_asks_at_once_gets_one_answer() {
    let (page, mut questions) = a_page();
    let answers = async {
        let Some(Came::Scrape(Scrape(answer))) = questions.recv().await else {
            panic!("figures were asked for");
        };
        let census = Census::default();
        assert!(answer.send((census, Duration::from_secs(60))).is_ok());
        questions
    };
    let (one, two, mut questions) = tokio::join!(page.text(), page.text(), answers);
    assert_eq!(one, two);
    // It took a minute, so that it serves for four.
    assert_eq!(page.text().await, one);
    assert!(questions.try_recv().is_err(), "the loop was asked once");
    assert!(one.contains("\nkatmai_metrics_complete 1\n"), "{one}");
}

#[tokio::test]
async fn without_the_loop_there_are_the_counters() {
    let (page, questions) = a_page();
    drop(questions);
    let text = page.text().await;
    assert!(text.contains("\nkatmai_metrics_complete 0\n"), "{text}");
    assert!(text.contains("\nkatmai_engine_cycles_total 0\n"), "{text}");
}
