//! Answers as they come, and as they should not.

use api::duration::Duration;
use api::time::Time;
use api::volcano::scheduler_conf::{MetricsConf, MetricsSource};

use super::{Measures, Part, Reading, read};
use crate::request::{Door, RequestId};

/// `n1` and `n2` have four cores and 8 GiB each; there are no others.
fn room(node: &str) -> Option<[i64; 2]> {
    ["n1", "n2"].contains(&node).then_some([4_000, 8 << 30])
}

fn said(source: MetricsSource, part: Part, answer: &str) -> String {
    match read::of(source, part, answer.as_bytes(), &room) {
        Ok(reading) => {
            let text = reading.text();
            assert_eq!(
                Reading::of_text(&text),
                Some(reading),
                "it is read as it is written"
            );
            text
        }
        Err(why) => why,
    }
}

fn prometheus(values: &[(&str, &str)]) -> String {
    let series = values.iter().map(|(instance, value)| {
        format!(r#"{{"metric":{{"instance":"{instance}"}},"value":[1435781451.781,"{value}"]}}"#)
    });
    let series: Vec<String> = series.collect();
    let series = series.join(",");
    format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{series}]}}}}"#)
}

fn of_prometheus(values: &[(&str, &str)]) -> String {
    said(MetricsSource::Prometheus, Part::Cpu, &prometheus(values))
}

#[test]
fn prometheus_names_nodes_with_and_without_a_port() {
    let values = [("n1", "12.5"), ("n2:9100", "0"), ("elsewhere", "99")];
    assert_eq!(of_prometheus(&values), "n1 125000 -\nn2 0 -\n! 0");
}

#[test]
fn a_value_that_cannot_be_meant_is_refused_alone() {
    let refused = [
        ("NaN", "is no number"),
        ("+Inf", "is no number"),
        ("much", "is no number"),
        ("-1", "is -1 %"),
        ("-1e-300", "is -1e-300 %"),
        ("1e308", "is 1e308 %, more than there is"),
        ("101.5", "is 101.5 %, more than there is"),
    ];
    for (value, why) in refused {
        let expected = format!("n1 - -\nn2 70000 -\n! 1\n! cpu of n1 {why}");
        assert_eq!(of_prometheus(&[("n1", value), ("n2", "7")]), expected);
    }
    assert_eq!(of_prometheus(&[("n1", "100.4")]), "n1 1000000 -\n! 0");
    let twice = [("n1", "5"), ("n1:9100", "6"), ("n1:9101", "7")];
    let expected = "n1 - -\n! 2\n! cpu of n1 is told twice\n! cpu of n1 is told twice";
    assert_eq!(of_prometheus(&twice), expected);
}

#[test]
fn an_answer_of_another_kind_is_refused_whole() {
    let all = MetricsSource::ALL.iter();
    for source in all {
        for answer in [
            "",
            "null",
            "[]",
            "<html>",
            r#"{"items": 3}"#,
            r#"{"status": "error"}"#,
        ] {
            let said = said(*source, Part::Both, answer);
            assert!(said.starts_with("it"), "{source:?} {answer}: {said}");
        }
    }
    let why = said(
        MetricsSource::Prometheus,
        Part::Cpu,
        r#"{"status":"error","errorType":"timeout","error":"query timed out"}"#,
    );
    assert_eq!(why, "it cannot answer: query timed out");
}

#[test]
fn an_answer_has_a_bounded_number_of_values() {
    let values = vec![("n1", "1"); 100_001];
    assert_eq!(
        of_prometheus(&values),
        "its answer has more than 100000 values"
    );
}

#[test]
fn custom_metrics_are_parts_of_one() {
    let answer = r#"{"items": [
        {"describedObject": {"kind": "Node", "name": "n1"}, "value": "532m"},
        {"describedObject": {"kind": "Node", "name": "n2"}, "value": "10"}]}"#;
    let expected = "n1 - 532000\nn2 - -\n! 1\n! memory of n2 is 1000 %, more than there is";
    assert_eq!(
        said(MetricsSource::PrometheusAdaptor, Part::Memory, answer),
        expected
    );
}

#[test]
fn resource_metrics_are_shares_of_what_nodes_have() {
    let answer = r#"{"items": [
        {"metadata": {"name": "n1"}, "usage": {"cpu": "1", "memory": "2Gi"}},
        {"metadata": {"name": "n2"}, "usage": {"cpu": "5", "memory": "17Gi"}}]}"#;
    // 1 of 4 and 2 of 8; 5 of 4 is all of it, 17 of 8 cannot be.
    let expected =
        "n1 250000 250000\nn2 1000000 -\n! 1\n! memory of n2 is 18253611008 of 8589934592";
    assert_eq!(
        said(MetricsSource::MetricsServer, Part::Both, answer),
        expected
    );
}

#[test]
fn elasticsearch_tells_parts_of_one() {
    let answer = r#"{"took": 1, "aggregations": {"nodes": {"buckets": [
        {"key": "n1", "doc_count": 3, "cpu": {"value": 0.25}, "memory": {"value": 0.5}},
        {"key": "n2", "doc_count": 3, "cpu": {"value": null}, "memory": {"value": 1.5}}]}}}"#;
    let expected = "n1 250000 500000\nn2 - -\n! 2\n! cpu of n2 is not told\n! memory of n2 is 150 %, more than there is";
    assert_eq!(
        said(MetricsSource::Elasticsearch, Part::Both, answer),
        expected
    );
}

#[test]
fn elasticsearch_says_where_it_tells_of_some_nodes_only() {
    let answer = r#"{"aggregations": {"nodes": {"sum_other_doc_count": 40, "buckets": [
        {"key": "n1", "doc_count": 3, "cpu": {"value": 0.25}, "memory": {"value": 0.5}}]}}}"#;
    assert_eq!(
        said(MetricsSource::Elasticsearch, Part::Both, answer),
        "n1 250000 500000\n! 1\n! nodes beyond the first 10000 are not told"
    );
}

fn measures() -> Measures {
    let conf = MetricsConf {
        source: Some(MetricsSource::Prometheus),
        address: "http://prometheus:9090".to_owned(),
        interval: Duration::from_seconds(30),
        ..MetricsConf::default()
    };
    Measures::new(&conf).expect("there is somebody to ask")
}

fn at(seconds: i64) -> Time {
    Time::from_seconds(1_000 + seconds)
}

/// Asks and answers at once; how many questions there were.
fn round(measures: &mut Measures, ids: &mut u64, now: Time, values: &[(&str, &str)]) -> u32 {
    let mut asked = 0;
    loop {
        *ids += 1;
        let id = RequestId(*ids);
        if measures.poll(id, now).is_none() {
            return asked;
        }
        asked += 1;
        let reading = measures.read(Ok(prometheus(values).into_bytes()), &room);
        measures.answered(reading, now);
    }
}

fn known(measures: &Measures) -> Vec<String> {
    let rows = measures.rows();
    rows.map(|(node, row)| format!("{node} {} {}", row.cpu, row.memory))
        .collect()
}

#[test]
fn a_round_asks_for_cpu_and_memory_and_the_next_one_waits() {
    let (mut measures, mut ids) = (measures(), 0);
    assert_eq!(
        round(&mut measures, &mut ids, at(0), &[("n1", "10"), ("n2", "x")]),
        2
    );
    // n2 is refused, and not taken for an empty node.
    assert_eq!(known(&measures), ["n1 100000 100000"]);
    assert_eq!(
        measures.take_notices(),
        ["2 measured values are refused: cpu of n2 is no number; memory of n2 is no number"]
    );
    assert_eq!(measures.wake(), Some(at(30)));
    assert_eq!(round(&mut measures, &mut ids, at(29), &[]), 0);
    assert_eq!(
        round(
            &mut measures,
            &mut ids,
            at(30),
            &[("n1", "20"), ("n2", "x")]
        ),
        2
    );
    // What is wrong in the same way is told once.
    assert_eq!(measures.take_notices(), [""; 0]);
    assert_eq!(measures.counts().refused, 4);
}

#[test]
fn nobody_waits_for_ever_for_an_answer() {
    let mut measures = measures();
    let ask = measures.poll(RequestId(1), at(0)).expect("a question");
    assert_eq!(ask.topic.0, "prometheus for cpu of nodes");
    assert!(
        matches!(ask.door, Door::Address { ref address, .. } if address == "http://prometheus:9090")
    );
    assert_eq!(measures.wake(), Some(at(15)));
    measures.advance(at(14));
    assert!(measures.asked(RequestId(1)) && measures.poll(RequestId(2), at(14)).is_none());
    measures.advance(at(15));
    assert!(
        !measures.asked(RequestId(1)),
        "a late answer counts no more"
    );
    let told = measures.take_notices();
    assert_eq!(
        told,
        ["prometheus does not say how much of nodes is used: no answer came"]
    );
    assert_eq!(measures.wake(), Some(at(30)));
}

#[test]
fn a_round_of_which_half_fails_changes_nothing() {
    let (mut measures, mut ids) = (measures(), 0);
    round(&mut measures, &mut ids, at(0), &[("n1", "10")]);
    let half = |measures: &mut Measures, id, answer: Result<Vec<u8>, String>| {
        measures.poll(RequestId(id), at(30)).expect("a question");
        let reading = measures.read(answer, &room);
        measures.answered(reading, at(31))
    };
    assert!(!half(
        &mut measures,
        101,
        Ok(prometheus(&[("n1", "90")]).into_bytes())
    ));
    assert!(!half(&mut measures, 102, Err("it answered 503".to_owned())));
    assert_eq!(known(&measures), ["n1 100000 100000"]);
    assert_eq!(measures.wake(), Some(at(60)));
}
