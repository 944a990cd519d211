//! The tables of `docs/metrics.md`, which are written from upstream's, against what is told; the dashboard
//! and the alerts against the tables.

mod expressions;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api::time::Time;
use driver::census::Census;
use driver::timings::{Scale, Timed};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::{Described, MetricsPage, PREFIX, Scrape, described, page};
use crate::engine_loop::{Came, Counted};

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

/// Heads of a page: the type by name.
fn heads(text: &str) -> BTreeMap<&str, &str> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    lines.filter_map(|line| line.split_once(' ')).collect()
}

#[test]
fn what_is_told_beside_them_is_in_the_table_of_ours() {
    let mut census = Census::default();
    census.metrics.writes.insert(("bind", "done"), 1);
    census.metrics.controllers.entry("vcjob").or_default().steps = 1;
    census.metrics.parts = ["vcjob"].into();
    census.blocked.push(("QueueNotFound", Some(1), 2));
    census.leases.push(driver::LeaseStanding {
        lease: api::intent::ObjectKey::new(api::kind::Kind::Lease, "ns", "a"),
        is_held: true,
        holder: "".into(),
        transitions: 0,
        renewed: None,
        foreign: None,
    });
    let text = page(&census, true, Time(0));
    // Without a sample a histogram has no head.
    let histograms = super::ours::HISTOGRAMS.iter();
    let histograms = histograms.map(|(name, ..)| (*name, super::Type::Histogram.word()));
    let told: BTreeMap<String, String> = heads(&text)
        .into_iter()
        .chain(histograms)
        .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
        .collect();
    let table: BTreeMap<String, String> = rows("## Ours")
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect();
    assert_eq!(told, table);
}

/// Names of metrics in an expression, as their samples are called.
fn names(expression: &str) -> BTreeSet<&str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = expression.split(|letter| !is_part(letter));
    words
        .filter(|word| word.starts_with(PREFIX) || word.starts_with("katmai_"))
        .collect()
}

fn expressions() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("it has panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array());
    let mut found: Vec<String> = targets
        .flatten()
        .map(|target| target["expr"].as_str().expect("it asks").to_owned())
        .collect();
    let limits = api::yaml::Limits::MANIFESTS;
    let alerts = api::yaml::documents(ALERTS, limits).expect("it is YAML");
    let alerts = alerts[0].json().expect("it is plain");
    let rules = alerts["groups"][0]["rules"]
        .as_array()
        .expect("it has rules");
    for rule in rules {
        assert!(rule["alert"].is_string() && rule["annotations"]["summary"].is_string());
        found.push(rule["expr"].as_str().expect("it asks").to_owned());
    }
    assert!(found.len() > rules.len(), "both ask");
    found
}

#[test]
fn dashboard_and_alerts_ask_for_metrics_that_there_are() {
    let mut samples: BTreeSet<String> = rows("## Ours")
        .into_iter()
        .map(|row| row[0].clone())
        .collect();
    for row in described() {
        match row.kind {
            super::Type::Histogram => {
                for end in ["bucket", "count", "sum"] {
                    samples.insert(format!("{PREFIX}{}_{end}", row.name));
                }
            }
            _ => {
                samples.insert(format!("{PREFIX}{}", row.name));
            }
        }
    }
    for expression in expressions() {
        let asked = names(&expression);
        assert!(!asked.is_empty(), "{expression}");
        for name in asked {
            assert!(samples.contains(name), "{name} in {expression}");
        }
        let opened = expression.matches('(').count();
        assert_eq!(opened, expression.matches(')').count(), "{expression}");
    }
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
