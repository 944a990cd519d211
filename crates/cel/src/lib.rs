//! CEL: rules of custom resources (`x-kubernetes-validations`), conditions of webhooks and selectors of
//! devices.
//!
//! Functions are `kube-cel`'s; grammar, control flow, cost, types and estimates are here, as the real
//! server has them. A panic inside the library refuses the object.
//!
//! The doors are [`Rules`], [`Expression`], [`Scene`] and [`Selector`].
//! What it refuses to know: what an object is about, who asks, what follows from an answer.
//!
//! Invariants: no expression takes more than its cost says, whatever it is; the same expression on the
//! same value gives the same answer.

#[cfg(test)]
mod answers;
mod check;
mod declared;
mod device;
mod estimate;
mod formats;
mod kinds;
mod literals;
mod messages;
mod parse;
mod path;
mod request;
mod rules;
mod run;
mod signatures;
#[cfg(test)]
mod tests;
mod value;

use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::cel::Value as Cel;
use kube_cel::cel::parser::Expression as Tree;
use serde_json::Value;

pub use device::{Device, Lens, Seen, Selector, Trait};
pub use path::field_path;
pub use request::{Answer, Authorizer, Scene};
pub use rules::{Rules, Trust, Verdict};
use run::{Halt, Run};
use value::Converter;
pub use value::is_reserved;

/// What the conditions of one webhook may cost.
const CONDITION_COST_MAX: u64 = 2_500_000;

/// A rule as the real server shows it in an error.
pub fn shown_rule(row: &Value) -> String {
    let text = |key: &str| api::field::go_json(&Value::from(row[key].as_str().unwrap_or("")));
    let or_null = |key: &str| match &row[key] {
        Value::Null => "null".to_owned(),
        value => api::field::go_json(value),
    };
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        text("rule"),
        text("message"),
        text("messageExpression"),
        or_null("reason"),
        text("fieldPath"),
        or_null("optionalOldSelf"),
    )
}

/// An expression over named values that answers yes or no.
#[derive(Debug)]
pub struct Expression {
    text: Box<str>,
    tree: Tree,
}

impl Expression {
    /// Compiles it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn compile(text: &str) -> Result<Expression, String> {
        Ok(Expression {
            text: text.into(),
            tree: parse::parse(text)?,
        })
    }

    /// Its answer for these values.
    ///
    /// # Errors
    /// Why it has none.
    pub fn truth(&self, values: &[(&str, &Value)]) -> Result<bool, String> {
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let converter = Converter::new();
            let mut run = Run::new(converter.context(), CONDITION_COST_MAX);
            for (name, value) in values {
                run.name(name, value::dynamic(value));
            }
            run.value(&self.tree)
        }));
        let why = match ran {
            Ok(Ok(Cel::Bool(truth))) => return Ok(truth),
            Ok(Ok(_)) => "must evaluate to bool".to_owned(),
            Ok(Err(Halt::Error(why))) => why,
            Ok(Err(Halt::Limit)) => "operation cancelled: actual cost limit exceeded".to_owned(),
            Err(_) => "the expression failed to run".to_owned(),
        };
        Err(format!(
            "expression '{}' resulted in error: {why}",
            self.text
        ))
    }
}
