//! Whether an object has the form of its type, in structured-merge-diff's words.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{DEPTH_MAX, item};
use crate::field::{self, go_type, go_value};
use crate::fields::Element;
use crate::schema::{ListShape, Scalar, Spot, Way};

/// Most problems that are told.
const PROBLEMS_MAX: usize = 50;

/// Checks an object.
///
/// # Errors
/// All that is wrong, as one text.
pub(crate) fn check(object: &Value, spot: Spot<'_>) -> Result<(), String> {
    let mut walk = Walk {
        path: String::new(),
        depth: 0,
        problems: Vec::new(),
    };
    walk.at(object, spot);
    match &walk.problems[..] {
        [] => Ok(()),
        [one] => Err(one.clone()),
        several => Err(format!("errors:\n  {}", several.join("\n  "))),
    }
}

struct Walk {
    path: String,
    depth: usize,
    problems: Vec<String>,
}

impl Walk {
    fn problem(&mut self, text: impl std::fmt::Display) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(if self.path.is_empty() {
                text.to_string()
            } else {
                format!("{}: {text}", self.path)
            });
        }
    }

    fn inside(&mut self, element: &str, value: &Value, spot: Spot<'_>) {
        let at = self.path.len();
        self.path.push_str(element);
        self.depth += 1;
        self.at(value, spot);
        self.depth -= 1;
        self.path.truncate(at);
    }

    fn at(&mut self, value: &Value, spot: Spot<'_>) {
        if self.depth > DEPTH_MAX || self.problems.len() >= PROBLEMS_MAX {
            return;
        }
        match spot.way(Some(value)) {
            _ if value.is_null() => {}
            Way::Scalar(kind) => self.scalar(value, kind),
            Way::Map(_) => match value {
                Value::Object(map) => {
                    for (name, inner) in map {
                        let Some(below) = spot.field(name) else {
                            let at = self.path.len();
                            self.path.push('.');
                            self.path.push_str(name);
                            self.problem("field not declared in schema");
                            self.path.truncate(at);
                            return;
                        };
                        self.inside(&format!(".{name}"), inner, below);
                    }
                }
                other => self.problem(format!("expected map, got &{{{}}}", go_value(other))),
            },
            Way::List(shape) => match value {
                Value::Array(list) => self.items(list, shape, spot.item()),
                other => self.problem(format!("expected list, got &{{{}}}", go_value(other))),
            },
        }
    }

    fn items(&mut self, list: &[Value], shape: ListShape<'_>, spot: Spot<'_>) {
        let mut seen: BTreeSet<Element<'_>> = BTreeSet::new();
        for (place, inner) in list.iter().enumerate() {
            if shape == ListShape::Atomic {
                self.inside(&format!("[{place}]"), inner, spot);
                continue;
            }
            match item::element(inner, shape, spot) {
                Err(why) => {
                    self.problem(format!("element {place}: {why}"));
                    return;
                }
                Ok(element) => {
                    let shown = element.to_string();
                    if !seen.insert(element) {
                        self.problem(format!("duplicate entries for key {shown}"));
                    }
                    self.inside(&shown, inner, spot);
                }
            }
        }
    }

    fn scalar(&mut self, value: &Value, kind: Scalar) {
        let fits = match kind {
            Scalar::Any => !value.is_array() && !value.is_object(),
            Scalar::Boolean => value.is_boolean(),
            Scalar::Numeric => value.is_number(),
            Scalar::String => value.is_string(),
        };
        if fits {
            return;
        }
        self.problem(match kind {
            Scalar::Any => format!("expected any scalar, got &{{{}}}", go_value(value)),
            Scalar::Boolean => format!("expected boolean, got &{{{}}}", go_value(value)),
            Scalar::Numeric => {
                format!("expected numeric (int or float), got {}", go_type(value))
            }
            Scalar::String => format!(
                "expected string, got &value.valueUnstructured{{Value:{}}}",
                go_syntax(value)
            ),
        });
    }
}

/// A value as it would stand in Go's source.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => field::go_quoted(text),
        Value::Array(list) => {
            let items: Vec<String> = list.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let items: Vec<String> = map
                .iter()
                .map(|(name, value)| format!("{}:{}", field::go_quoted(name), go_syntax(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", items.join(", "))
        }
        other => other.to_string(),
    }
}
