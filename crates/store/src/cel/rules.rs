//! The rules of one version's schema, and how they run over an object and what it was before.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::cel::Value as Cel;
use kube_cel::cel::parser::Expression;
use serde_json::Value;

use super::parse;
use super::path::field_path;
use super::run::{Halt, Run};
use super::value::{Converter, Form, optional};
use crate::field::{self, FieldError};

/// What one rule may cost at most.
const RULE_COST_MAX: u64 = 1_000_000;
/// What all rules of an object may cost together.
const OBJECT_COST_MAX: i64 = 10_000_000;
/// Deepest schema whose rules are read.
const DEPTH_MAX: usize = 60;
/// Longest text that a message expression may make.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// The compiled rules of one custom resource version.
#[derive(Debug)]
pub struct Rules {
    root: Node,
}

/// What rules had to say.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) errors: Vec<FieldError>,
    /// About values that were wrong before and have not changed.
    pub(crate) warnings: Vec<String>,
}

/// A place in a schema at or below which there are rules.
#[derive(Debug)]
struct Node {
    /// The type, as errors show it.
    kind: Box<str>,
    rules: Vec<Rule>,
    /// Only where there are rules.
    form: Form,
    properties: BTreeMap<Box<str>, Node>,
    values: Option<Box<Node>>,
    items: Option<Box<Node>>,
    /// The keys by which items of a list are the same as before; `None` if nothing says so.
    keys: Option<Vec<Key>>,
}

/// A key of a list's items, and its value where an item has none.
#[derive(Debug)]
struct Key {
    name: Box<str>,
    default: Value,
}

struct Rule {
    text: Box<str>,
    message: Box<str>,
    expression: Expression,
    message_expression: Option<Expression>,
    uses_old: bool,
    takes_no_old: bool,
    reason: Box<str>,
    path: Option<String>,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Rules {
    /// Compiles the rules of a schema; `None` if it has none.
    ///
    /// # Errors
    /// A rule that cannot be compiled, at its place below `path`.
    pub fn compile(schema: &Value, path: &str) -> Result<Option<Rules>, Vec<FieldError>> {
        let mut errors = Vec::new();
        let root = Node::of(schema, path, 0, &mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(root.map(|root| Rules { root }))
    }

    /// Runs every rule on an object; transition rules only where `old` has the value too.
    pub(crate) fn validate(&self, value: &Value, old: Option<&Value>) -> Verdict {
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let mut walk = Walk {
                converter: Converter::new(),
                budget: OBJECT_COST_MAX,
                verdict: Verdict::default(),
            };
            walk.node(&self.root, value, old, "", 0);
            walk.verdict
        }));
        ran.unwrap_or_else(|_| Verdict {
            errors: vec![FieldError::internal("", "a validation rule failed to run")],
            warnings: Vec::new(),
        })
    }
}

impl Node {
    fn of(schema: &Value, path: &str, depth: usize, errors: &mut Vec<FieldError>) -> Option<Node> {
        if depth > DEPTH_MAX || !schema.is_object() {
            return None;
        }
        let mut rules = Vec::new();
        let rows = schema["x-kubernetes-validations"].as_array();
        for (position, row) in rows.into_iter().flatten().enumerate() {
            let at = field::index(&field::child(path, "x-kubernetes-validations"), position);
            match Rule::of(schema, row, &at) {
                Ok(rule) => rules.push(rule),
                Err(error) => errors.push(error),
            }
        }
        let mut properties = BTreeMap::new();
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            let at = field::key(&field::child(path, "properties"), name);
            if let Some(node) = Node::of(inner, &at, depth + 1, errors) {
                properties.insert(name.as_str().into(), node);
            }
        }
        let mut inner = |name: &str| {
            let at = field::child(path, name);
            Node::of(&schema[name], &at, depth + 1, errors).map(Box::new)
        };
        let (values, items) = (inner("additionalProperties"), inner("items"));
        if rules.is_empty() && properties.is_empty() && values.is_none() && items.is_none() {
            return None;
        }
        let form = match rules.is_empty() {
            true => Form::default(),
            false => Form::of(schema, depth),
        };
        Some(Node {
            kind: schema["type"].as_str().unwrap_or("object").into(),
            rules,
            form,
            properties,
            values,
            items,
            keys: keys(schema),
        })
    }
}

fn keys(schema: &Value) -> Option<Vec<Key>> {
    if schema["x-kubernetes-list-type"] != "map" {
        return None;
    }
    let names = schema["x-kubernetes-list-map-keys"].as_array()?;
    let key = |name: &Value| {
        let name = name.as_str()?;
        Some(Key {
            name: name.into(),
            default: schema["items"]["properties"][name]["default"].clone(),
        })
    };
    names.iter().map(key).collect()
}

impl Rule {
    fn of(schema: &Value, row: &Value, at: &str) -> Result<Rule, FieldError> {
        let text = |key: &str| row[key].as_str().unwrap_or_default();
        let rule = text("rule");
        let shown = super::shown_rule(row);
        let compiled = |source: &str, key: &str| {
            parse(source).map_err(|why| {
                let detail = match key {
                    "rule" => format!("compilation failed: {why}"),
                    _ => format!("messageExpression compilation failed: {why}"),
                };
                FieldError::raw(&field::child(at, key), &shown, detail)
            })
        };
        let expression = compiled(rule, "rule")?;
        let message_expression = match text("messageExpression").trim() {
            "" => None,
            source => Some(compiled(source, "messageExpression")?),
        };
        Ok(Rule {
            uses_old: expression.references().has_variable("oldSelf"),
            takes_no_old: row["optionalOldSelf"] == true,
            text: rule.into(),
            message: text("message").into(),
            reason: text("reason").into(),
            path: field_path(schema, text("fieldPath")),
            expression,
            message_expression,
        })
    }

    /// How errors speak of the rule.
    fn name(&self) -> &str {
        match self.message.trim() {
            "" => self.text.trim(),
            message => message,
        }
    }

    fn usual_message(&self) -> String {
        match self.message.trim() {
            "" => format!("failed rule: {}", self.text.trim()),
            message => message.to_owned(),
        }
    }

    fn error(&self, path: &str, value: &Value, detail: String) -> FieldError {
        match &*self.reason {
            "FieldValueForbidden" => FieldError::forbidden(path, detail),
            "FieldValueRequired" => FieldError::required(path, detail),
            "FieldValueDuplicate" => FieldError::duplicate(path, value.clone()),
            // An object or a list is not repeated.
            _ if value.is_object() || value.is_array() => FieldError::bare(path, detail),
            _ => FieldError::invalid(path, value.clone(), detail),
        }
    }
}

struct Walk {
    converter: Converter,
    /// What is left; negative once it is spent.
    budget: i64,
    verdict: Verdict,
}

impl Walk {
    fn node(&mut self, node: &Node, value: &Value, old: Option<&Value>, path: &str, depth: usize) {
        if depth > DEPTH_MAX || value.is_null() || self.budget < 0 {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        if !node.rules.is_empty() {
            self.rules(node, value, old, path);
        }
        match value {
            Value::Object(map) => {
                for (name, inner) in map {
                    let old = old.and_then(|old| old.get(name));
                    if let Some(found) = node.properties.get(name.as_str()) {
                        self.node(found, inner, old, &field::child(path, name), depth + 1);
                    } else if let Some(found) = &node.values {
                        self.node(found, inner, old, &field::key(path, name), depth + 1);
                    }
                }
            }
            Value::Array(list) => {
                let Some(found) = &node.items else { return };
                for (position, inner) in list.iter().enumerate() {
                    let old = old.and_then(|old| node.same_item(inner, old));
                    self.node(found, inner, old, &field::index(path, position), depth + 1);
                }
            }
            _ => {}
        }
    }

    fn rules(&mut self, node: &Node, value: &Value, old: Option<&Value>, path: &str) {
        let shown_path = if path.is_empty() { "<nil>" } else { path };
        if self.budget <= 0 {
            return self.out_of_budget(node, shown_path);
        }
        let now = self.converter.value(value, &node.form);
        let before = old.map(|old| self.converter.value(old, &node.form));
        let is_unchanged = old == Some(value);
        for rule in &node.rules {
            if rule.uses_old && before.is_none() && !rule.takes_no_old {
                continue;
            }
            let (answer, spent) = self.run(rule, &rule.expression, &now, &before);
            if i64::try_from(spent).unwrap_or(i64::MAX) > self.budget {
                return self.out_of_budget(node, shown_path);
            }
            self.budget -= i64::try_from(spent).unwrap_or(i64::MAX);
            let invalid = |detail: String| FieldError::invalid(shown_path, &*node.kind, detail);
            match answer {
                Ok(Cel::Bool(true)) => continue,
                Ok(_) => {}
                Err(Halt::Limit) => {
                    self.budget = -1;
                    self.verdict.errors.push(invalid(format!(
                        "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                        rule.name()
                    )));
                    return;
                }
                Err(Halt::Error(why)) => {
                    let detail = match why.starts_with("no such overload") {
                        true => format!(
                            "'{why}': call arguments did not match a supported operator, function or macro signature for rule: {}",
                            rule.name()
                        ),
                        false => format!("{why} evaluating rule: {}", rule.name()),
                    };
                    self.verdict.errors.push(invalid(detail));
                    continue;
                }
            }
            let at = match &rule.path {
                Some(inner) => field::child(path, inner),
                None => shown_path.to_owned(),
            };
            let detail = self.message(rule, &now, &before);
            let error = rule.error(&at, value, detail.unwrap_or_else(|| rule.usual_message()));
            if is_unchanged && !rule.uses_old {
                self.verdict.warnings.push(error.to_string());
            } else {
                self.verdict.errors.push(error);
            }
        }
    }

    fn run(
        &self,
        rule: &Rule,
        expression: &Expression,
        now: &Cel,
        before: &Option<Cel>,
    ) -> (Result<Cel, Halt>, u64) {
        let mut run = Run::new(self.converter.context(), RULE_COST_MAX);
        run.name("self", now.clone());
        if rule.takes_no_old {
            run.name("oldSelf", optional(before.clone()));
        } else if let Some(before) = before {
            run.name("oldSelf", before.clone());
        }
        let answer = run.value(expression);
        (answer, run.spent())
    }

    /// What the message expression makes, where it makes something fit to be shown.
    fn message(&mut self, rule: &Rule, now: &Cel, before: &Option<Cel>) -> Option<String> {
        let expression = rule.message_expression.as_ref()?;
        let (answer, spent) = self.run(rule, expression, now, before);
        self.budget -= i64::try_from(spent).unwrap_or(i64::MAX);
        let Ok(Cel::String(text)) = answer else {
            return None;
        };
        let text = text.trim();
        let is_fit = !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n');
        is_fit.then(|| text.to_owned())
    }

    fn out_of_budget(&mut self, node: &Node, path: &str) {
        self.budget = -1;
        let detail = "validation failed due to running out of cost budget, no further validation rules will be run";
        let error = FieldError::invalid(path, &*node.kind, detail);
        self.verdict.errors.push(error);
    }
}

impl Node {
    /// The item of `old` that has the same keys.
    fn same_item<'a>(&self, item: &Value, old: &'a Value) -> Option<&'a Value> {
        let keys = self.keys.as_ref()?;
        let is_same = |other: &&Value| {
            keys.iter().all(|key| {
                let of = |item: &Value| match &item[&*key.name] {
                    Value::Null => key.default.clone(),
                    value => value.clone(),
                };
                of(item) == of(other)
            })
        };
        old.as_array()?.iter().find(is_same)
    }
}
