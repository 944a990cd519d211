//! `matchConditions`: CEL expressions that say whether a webhook is asked at all.

use serde_json::Value;

use cel::Expression;

/// Most conditions of one webhook.
pub(super) const CONDITIONS_MAX: usize = 64;

/// One condition.
#[derive(Debug)]
pub(crate) struct Condition {
    expression: Result<Expression, String>,
}

impl Condition {
    pub(super) fn read(list: &Value) -> Vec<Condition> {
        let all = list.as_array().into_iter().flatten();
        all.take(CONDITIONS_MAX)
            .map(|condition| Condition {
                expression: Expression::compile(
                    condition["expression"].as_str().unwrap_or_default(),
                ),
            })
            .collect()
    }
}

/// What all conditions of a webhook come to.
#[derive(Debug, PartialEq)]
pub(super) enum Fit {
    Asked,
    Skipped,
    /// None was false, and some could not be said.
    Unknown(String),
}

/// Tries every condition on a request.
pub(super) fn fit(conditions: &[Condition], request: &Value, object: &Value, old: &Value) -> Fit {
    let mut unknown: Vec<String> = Vec::new();
    for condition in conditions {
        let answer = match &condition.expression {
            Ok(expression) => {
                expression.truth(&[("request", request), ("object", object), ("oldObject", old)])
            }
            Err(why) => Err(why.clone()),
        };
        match answer {
            Ok(true) => {}
            Ok(false) => return Fit::Skipped,
            Err(why) => unknown.push(why),
        }
    }
    match unknown.len() {
        0 => Fit::Asked,
        1 => Fit::Unknown(unknown.remove(0)),
        _ => Fit::Unknown(format!("[{}]", unknown.join(", "))),
    }
}
