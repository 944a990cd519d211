//! The annotations that place a queue in a tree of weights.

use api::kind::Kind;
use api::names::go_quote;
use api::volcano::{HIERARCHY, HIERARCHY_WEIGHTS, Queue};

use crate::Case;
use crate::fields::{invalid, text};

const PATH: &str = "requestBody.metadata.annotations";

pub(super) fn check(case: &Case<'_>, queue: &Queue, complaints: &mut Vec<String>) {
    let annotation = |key: &str| {
        queue
            .metadata
            .annotations
            .get(key)
            .map_or("", |value| &**value)
    };
    let (path, weights) = (annotation(HIERARCHY), annotation(HIERARCHY_WEIGHTS));
    if path.is_empty() && weights.is_empty() {
        return;
    }
    if path.split('/').count() != weights.split('/').count() {
        complaints.push(invalid(
            PATH,
            path,
            &format!("{HIERARCHY} must have the same length with {HIERARCHY_WEIGHTS}"),
        ));
        return;
    }
    if let Some(complaint) = weights.split('/').find_map(weight_complaint) {
        let detail = complaint.replace("{weights}", weights);
        complaints.push(invalid(PATH, weights, &detail));
        return;
    }
    let below = format!("{path}/");
    let other = case.facts.list(Kind::Queue, "").into_iter().find(|other| {
        text(&other["metadata"], "name") != &*queue.metadata.name
            && text(&other["metadata"]["annotations"], HIERARCHY).starts_with(&below)
    });
    if let Some(other) = other {
        complaints.push(invalid(
            PATH,
            path,
            &format!(
                "{path} is not allowed to be in the sub path of {} of queue {}",
                text(&other["metadata"]["annotations"], HIERARCHY),
                text(&other["metadata"], "name")
            ),
        ));
    }
}

fn weight_complaint(weight: &str) -> Option<String> {
    match weight.parse::<f64>() {
        Err(_) => Some(format!(
            "{weight} in the {{weights}} is invalid number: strconv.ParseFloat: parsing {}: invalid syntax",
            go_quote(weight)
        )),
        Ok(number) if number <= 0.0 => {
            Some(format!("{weight} in the {{weights}} must be larger than 0"))
        }
        Ok(_) => None,
    }
}
