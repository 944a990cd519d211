//! The page about one job, with the blanks and tabs that scripts cut it at: `→` is a tab, `|` the end of a line.

use api::time::Time;
use serde_json::{Value, json};

use super::fixture::{events, training};
use crate::vcctl::view::view;

fn page(job: &Value, events: &[Value]) -> String {
    let now = Time::parse("2026-11-21T18:00:00Z").expect("it is a time");
    let page = view(job, events, now);
    page.replace('\t', "→").replace('\n', "|\n")
}

#[test]
fn a_page_has_upstreams_lines_and_ours_behind_them() {
    insta::assert_snapshot!(page(&training(), &events()));
}

#[test]
fn a_page_about_little_has_upstreams_lines_only() {
    let job = json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": { "name": "bare", "namespace": "default" },
        "spec": { "tasks": [{ "name": "t", "template": { "spec": { "containers": [{ "name": "c" }] } } }] },
        "status": {
            "succeeded": 1, "pending": 2, "running": 3, "failed": 4, "terminating": 5, "unknown": 6,
            "retryCount": 7, "minAvailable": 8, "version": 9, "conditions": [{ "status": "Pending" }],
        },
    });
    insta::assert_snapshot!(page(&job, &[]));
}
