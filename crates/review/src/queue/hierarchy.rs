//! The annotations that place a queue in a tree of weights.

use std::fmt::Display;

use api::kind::Kind;
use api::names::go_quote;
use api::volcano::{HIERARCHY, HIERARCHY_WEIGHTS, Queue};

use crate::Case;
use crate::denials::queues;
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
        complaints.push(invalid(PATH, path, queues::OTHER_LENGTH.text));
        return;
    }
    let complaint = |weight| weight_complaint(weight, weights);
    if let Some(detail) = weights.split('/').find_map(complaint) {
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
            &queues::ABOVE_ANOTHER.with(&[
                ("path", &path),
                ("other", &text(&other["metadata"]["annotations"], HIERARCHY)),
                ("queue", &text(&other["metadata"], "name")),
            ]),
        ));
    }
}

fn weight_complaint(weight: &str, weights: &str) -> Option<String> {
    let values: [(&str, &dyn Display); 3] = [
        ("weight", &weight),
        ("weights", &weights),
        ("quoted", &go_quote(weight)),
    ];
    let row = match weight.parse::<f64>() {
        Err(_) => &queues::NO_WEIGHT,
        Ok(number) if number <= 0.0 => &queues::LITTLE_WEIGHT,
        Ok(number) if number.is_finite() => return None,
        // A number in digits that no float holds, which upstream's reader refuses, too.
        Ok(_) if weight.contains(|letter: char| letter.is_ascii_digit()) => &queues::HUGE_WEIGHT,
        Ok(_) => &queues::ENDLESS_WEIGHT,
    };
    Some(row.with(&values))
}
