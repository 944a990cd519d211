//! The rules of one version's schema, and how they run over an object and what it was before.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use kube_cel::cel::Value as Cel;
use kube_cel::cel::parser::Expression;
use serde_json::Value;

use super::check::{Mistake, check};
use super::declared::{Declared, REQUEST_BYTES_MAX, Whole};
use super::estimate::estimate;
use super::kinds::Type;
use super::literals;
use super::parse::{parse, told};
use super::path::field_path;
use super::run::{Halt, Run};
use super::value::{Converter, Form, optional};
use api::field::{self, FieldError};

/// What one rule may cost at most.
const RULE_COST_MAX: u64 = 1_000_000;
/// What all rules of an object may cost together.
const OBJECT_COST_MAX: i64 = 10_000_000;
/// Deepest schema whose rules are read.
const DEPTH_MAX: usize = 60;
/// What one expression may be estimated to cost, all its places together.
const EXPRESSION_ESTIMATE_MAX: u64 = 10_000_000;
/// What all expressions of a schema may be estimated to cost.
const SCHEMA_ESTIMATE_MAX: u64 = 100_000_000;
/// How many of the most expensive expressions are named.
const MOST_EXPENSIVE: usize = 4;
/// Longest text that a message expression may make.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// The compiled rules of one custom resource version.
#[derive(Debug)]
pub struct Rules {
    root: Node,
}

/// What rules had to say.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What is wrong, each at its place.
    pub errors: Vec<FieldError>,
    /// About values that were wrong before and have not changed.
    pub warnings: Vec<String>,
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

fn failed_to_compile(key: &str) -> &'static str {
    match key {
        "rule" => "compilation failed",
        _ => "messageExpression compilation failed",
    }
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
    pub fn compile(
        schema: &Value,
        path: &str,
        trust: Trust,
    ) -> Result<Option<Rules>, Vec<FieldError>> {
        let mut reading = Reading {
            trust,
            errors: Vec::new(),
            costs: Vec::new(),
            total: 0,
        };
        let root = Node::of(schema, &Place::root(path), &mut reading);
        reading.check_total(path);
        if !reading.errors.is_empty() {
            return Err(reading.errors);
        }
        Ok(root.map(|root| Rules { root }))
    }

    /// What the rules have to say of an object, for whoever has no store.
    pub fn complaints(&self, value: &Value, old: Option<&Value>) -> Vec<String> {
        let verdict = self.validate(value, old);
        let errors = verdict.errors.iter().map(FieldError::to_string);
        errors.chain(verdict.warnings).collect()
    }

    /// Runs every rule on an object; transition rules only where `old` has the value too.
    pub fn validate(&self, value: &Value, old: Option<&Value>) -> Verdict {
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

/// Whether the rules of a schema are doubted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// They are new: types and estimated costs are checked.
    Doubted,
    /// They were accepted before, or came with the program.
    Accepted,
}

/// A place in a schema on the way down.
#[derive(Clone)]
struct Place {
    path: String,
    depth: usize,
    /// How many values there may be here; `None` if nothing bounds them.
    count: Option<u64>,
    /// The highest place whose values cannot be told from those before.
    lost_at: Option<String>,
}

impl Place {
    fn root(path: &str) -> Place {
        Place {
            path: path.to_owned(),
            depth: 0,
            count: Some(1),
            lost_at: None,
        }
    }

    /// What rules at this place see of a schema.
    fn declared(&self, schema: &Value) -> Option<Rc<Declared>> {
        let is_whole = self.depth == 0 || schema["x-kubernetes-embedded-resource"] == true;
        let is_whole = match is_whole {
            true => Whole::Yes,
            false => Whole::No,
        };
        Declared::of(schema, is_whole)
    }

    fn property(&self, name: &str) -> Place {
        Place {
            path: field::key(&field::child(&self.path, "properties"), name),
            depth: self.depth + 1,
            ..self.clone()
        }
    }

    /// Where each of at most `most` values stands.
    fn each(&self, name: &str, most: Option<u64>) -> Place {
        Place {
            path: field::child(&self.path, name),
            depth: self.depth + 1,
            count: self
                .count
                .zip(most)
                .map(|(count, most)| count.saturating_mul(most)),
            ..self.clone()
        }
    }
}

/// What reading a schema's rules found out.
struct Reading {
    trust: Trust,
    errors: Vec<FieldError>,
    /// Estimated costs of the expensive ones, by place.
    costs: Vec<(u64, String)>,
    total: u64,
}

impl Reading {
    fn spend(&mut self, cost: u64, path: String, what: &str) {
        if cost > EXPRESSION_ESTIMATE_MAX {
            let text = over(what, cost, EXPRESSION_ESTIMATE_MAX);
            self.errors.push(FieldError::forbidden(&path, text));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= SCHEMA_ESTIMATE_MAX / 100 {
            self.costs.push((cost, path));
        }
    }

    fn check_total(&mut self, path: &str) {
        let total = self.total;
        if total <= SCHEMA_ESTIMATE_MAX {
            return;
        }
        self.costs.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        for (_, path) in self.costs.iter().take(MOST_EXPENSIVE) {
            let text = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            self.errors.push(FieldError::forbidden(path, text));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let text = over(what, total, SCHEMA_ESTIMATE_MAX);
        self.errors.push(FieldError::forbidden(path, text));
    }
}

fn over(what: &str, cost: u64, most: u64) -> String {
    let factor = cost as f64 / most as f64;
    let factor = match factor {
        factor if factor > 100.0 => "more than 100x".to_owned(),
        factor if factor < 1.5 => format!("{factor:.6}x"),
        factor => format!("{factor:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

impl Node {
    fn of(schema: &Value, place: &Place, reading: &mut Reading) -> Option<Node> {
        if place.depth > DEPTH_MAX || !schema.is_object() {
            return None;
        }
        let mut properties = BTreeMap::new();
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            if let Some(node) = Node::of(inner, &place.property(name), reading) {
                properties.insert(name.as_str().into(), node);
            }
        }
        let most = schema["maxProperties"].as_u64();
        let at = place.each("additionalProperties", most);
        let values = Node::of(&schema["additionalProperties"], &at, reading).map(Box::new);
        let mut at = place.each("items", schema["maxItems"].as_u64());
        if schema["x-kubernetes-list-type"] != "map" {
            at.lost_at.get_or_insert_with(|| place.path.clone());
        }
        let items = Node::of(&schema["items"], &at, reading).map(Box::new);
        let rules = Rule::all(schema, place, reading);
        if rules.is_empty() && properties.is_empty() && values.is_none() && items.is_none() {
            return None;
        }
        let form = match rules.is_empty() {
            true => Form::default(),
            false => Form::of(schema, place.depth),
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
    fn all(schema: &Value, place: &Place, reading: &mut Reading) -> Vec<Rule> {
        let rows = schema["x-kubernetes-validations"].as_array();
        let mut rules = Vec::new();
        let declared = match (rows, reading.trust) {
            (Some(_), Trust::Doubted) => place.declared(schema),
            _ => None,
        };
        for (position, row) in rows.into_iter().flatten().enumerate() {
            let all = field::child(&place.path, "x-kubernetes-validations");
            let at = field::index(&all, position);
            match Rule::of(schema, row, &at) {
                Ok(rule) => {
                    if let Some(declared) = &declared {
                        rule.doubt(row, place, declared, &at, reading);
                    }
                    rules.push(rule);
                }
                Err(error) => reading.errors.push(error),
            }
        }
        rules
    }

    fn of(schema: &Value, row: &Value, at: &str) -> Result<Rule, FieldError> {
        let text = |key: &str| row[key].as_str().unwrap_or_default();
        let compiled = |key: &str| {
            parse(text(key)).map_err(|why| {
                let detail = format!("{}: {why}", failed_to_compile(key));
                FieldError::raw(&field::child(at, key), &super::shown_rule(row), detail)
            })
        };
        let expression = compiled("rule")?;
        let message_expression = match text("messageExpression").trim() {
            "" => None,
            _ => Some(compiled("messageExpression")?),
        };
        Ok(Rule {
            uses_old: expression.references().has_variable("oldSelf"),
            takes_no_old: row["optionalOldSelf"] == true,
            text: text("rule").into(),
            message: text("message").into(),
            reason: text("reason").into(),
            path: field_path(schema, text("fieldPath")),
            expression,
            message_expression,
        })
    }

    /// Checks the types of the rule's expressions and what they may cost.
    fn doubt(
        &self,
        row: &Value,
        place: &Place,
        declared: &Rc<Declared>,
        at: &str,
        reading: &mut Reading,
    ) {
        let kind = declared.kind.clone();
        let before = match self.takes_no_old {
            true => Type::optional(kind.clone()),
            false => kind.clone(),
        };
        let doubter = Doubter {
            row,
            declared,
            at,
            names: [("self", kind), ("oldSelf", before)],
        };
        let at_rule = field::child(at, "rule");
        let found = doubter.look("rule", &self.expression, Wanted::Truth);
        let is_sound = found.is_ok();
        match found {
            Ok(cost) => {
                let count = place
                    .count
                    .unwrap_or(REQUEST_BYTES_MAX / (declared.least + 1));
                reading.spend(
                    cost.saturating_mul(count),
                    at_rule.clone(),
                    "estimated rule cost",
                );
            }
            Err(error) => reading.errors.push(error),
        }
        // Of a rule that makes no sense nothing more is asked.
        if let (Some(expression), true) = (&self.message_expression, is_sound) {
            match doubter.look("messageExpression", expression, Wanted::Text) {
                Ok(cost) => {
                    let at = field::child(at, "messageExpression");
                    reading.spend(cost, at, "estimated messageExpression cost");
                }
                Err(error) => reading.errors.push(error),
            }
        }
        let uses_old = self.uses_old && is_sound;
        if let Some(lost_at) = place.lost_at.as_ref().filter(|_| uses_old) {
            let detail = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within {lost_at}"
            );
            let error = FieldError::invalid(&at_rule, &*self.text, detail);
            reading.errors.push(error);
        } else if !uses_old && !row["optionalOldSelf"].is_null() {
            let detail = "may not be set if oldSelf is not used in rule";
            let at = field::child(at, "optionalOldSelf");
            let given = row["optionalOldSelf"].clone();
            reading.errors.push(FieldError::invalid(&at, given, detail));
        }
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

/// Who looks at the expressions of one rule before they are believed.
struct Doubter<'a> {
    row: &'a Value,
    declared: &'a Rc<Declared>,
    /// Where the rule is.
    at: &'a str,
    names: [(&'static str, Type); 2],
}

/// What an expression is to come to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Text,
    Truth,
}

impl Doubter<'_> {
    /// What an expression may cost, or why it cannot be.
    fn look(&self, key: &str, tree: &Expression, wanted: Wanted) -> Result<u64, FieldError> {
        let text = self.row[key].as_str().unwrap_or_default();
        let wrong = |detail: String| {
            let at = field::child(self.at, key);
            FieldError::raw(&at, &super::shown_rule(self.row), detail)
        };
        let told = |mistakes: &[Mistake], more| {
            let told = told(text, mistakes, more);
            wrong(format!("{}: {told}", failed_to_compile(key)))
        };
        let checked = check(tree, &self.names).map_err(|(mistakes, more)| told(&mistakes, more))?;
        let mistakes = literals::look(tree, &checked);
        if !mistakes.is_empty() {
            return Err(told(&mistakes, 0));
        }
        match (wanted, checked.kind(tree)) {
            (Wanted::Text, Type::String) | (Wanted::Truth, Type::Bool) => {
                Ok(estimate(tree, &checked, self.declared))
            }
            (Wanted::Text, _) => Err(wrong(
                "messageExpression must evaluate to a string".to_owned(),
            )),
            (Wanted::Truth, _) => Err(wrong("cel expression must evaluate to a bool".to_owned())),
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
