//! CEL: rules of custom resources (`x-kubernetes-validations`) and conditions of webhooks.
//!
//! Parsing and functions are `kube-cel`'s; control flow, cost, types and estimates are here, as the
//! real server has them. A panic inside the library refuses the object.

mod path;
mod rules;
mod run;
mod types;
mod value;

use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::cel::Value as Cel;
use kube_cel::cel::parser::{Expression as Tree, Parser};
use serde_json::Value;

pub(crate) use path::field_path;
pub use rules::{Rules, Trust};
use run::{Halt, Run};
use value::Converter;

/// Longest expression in bytes.
const TEXT_BYTES_MAX: usize = 64 * 1024;
/// Most letters in an expression that nest it or make a chain longer; each level takes a piece of
/// the stack wherever the tree is walked, down to where it is dropped.
const NESTING_MAX: usize = 500;
/// Deepest nesting: the parser calls itself a dozen times for each level.
const DEPTH_MAX: u16 = 40;
/// What the conditions of one webhook may cost.
const CONDITION_COST_MAX: u64 = 2_500_000;

/// Parses an expression.
fn parse(text: &str) -> Result<Tree, String> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!(
            "the expression is longer than {TEXT_BYTES_MAX} bytes"
        ));
    }
    let nests = |letter: &char| "([{.?:!-+*/%<>=&|".contains(*letter);
    let nesting = text.chars().filter(nests).count() + text.matches("in").count();
    if nesting > NESTING_MAX {
        return Err(format!(
            "the expression has more than {NESTING_MAX} operators, brackets and dots"
        ));
    }
    let parsed = catch_unwind(|| {
        Parser::new()
            .max_recursion_depth(DEPTH_MAX)
            .enable_optional_syntax(true)
            .parse(text)
    });
    match parsed {
        Ok(Ok(tree)) => Ok(tree),
        Ok(Err(cause)) => Err(cause.to_string().replace("\n|", "\n |")),
        Err(_) => Err("the expression cannot be parsed".to_owned()),
    }
}

/// A rule as the real server shows it in an error.
fn shown_rule(row: &Value) -> String {
    let text = |key: &str| crate::field::go_json(&Value::from(row[key].as_str().unwrap_or("")));
    let or_null = |key: &str| match &row[key] {
        Value::Null => "null".to_owned(),
        value => crate::field::go_json(value),
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
pub(crate) struct Expression {
    text: Box<str>,
    tree: Tree,
}

impl Expression {
    /// Compiles it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn compile(text: &str) -> Result<Expression, String> {
        Ok(Expression {
            text: text.into(),
            tree: parse(text)?,
        })
    }

    /// Its answer for these values.
    ///
    /// # Errors
    /// Why it has none.
    pub(crate) fn truth(&self, values: &[(&str, &Value)]) -> Result<bool, String> {
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
