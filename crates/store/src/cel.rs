//! CEL rules of custom resources (`x-kubernetes-validations`), through `kube-cel`.
//!
//! The library does not count cost, so the work is bounded beforehand: by the size of the object
//! and by how deep a rule nests its loops. A panic inside the library refuses the object.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::cel::{Context, Program};
use kube_cel::{CompiledSchema, ErrorKind, KubeCelExt, ValidationError, Validator};
use serde_json::{Map, Value, json};

use crate::field::{self, FieldError};

/// Most loop steps that one rule may take on one object.
const STEPS_MAX: u128 = 10_000_000;
/// Longest rule.
const RULE_BYTES_MAX: usize = 64 * 1024;
/// Loops of the language.
const LOOPS: &[&str] = &[
    "all",
    "exists",
    "exists_one",
    "existsOne",
    "filter",
    "map",
    "sortBy",
    "transformList",
    "transformMap",
];

/// The compiled rules of one custom resource version.
pub struct Rules {
    compiled: CompiledSchema,
    /// How deep the worst rule nests its loops.
    loop_depth: u32,
    types: Value,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules")
            .field("loop_depth", &self.loop_depth)
            .finish_non_exhaustive()
    }
}

impl Rules {
    /// Compiles the rules of a schema; `None` if it has none.
    ///
    /// # Errors
    /// A rule that cannot be compiled, at its place below `path`.
    pub fn compile(schema: &Value, path: &str) -> Result<Option<Rules>, Vec<FieldError>> {
        let mut texts = Vec::new();
        collect_rules(schema, path, 0, &mut texts);
        if texts.is_empty() {
            return Ok(None);
        }
        let mut errors = Vec::new();
        let mut loop_depth = 0;
        for (at, rule) in &texts {
            if rule.len() > RULE_BYTES_MAX {
                errors.push(FieldError::too_long(at, RULE_BYTES_MAX as i64));
                continue;
            }
            if let Err(cause) = compiles(rule) {
                let detail = format!("compilation failed: {cause}");
                errors.push(FieldError::invalid(at, rule.as_str(), detail));
            }
            loop_depth = loop_depth.max(loops_nested(rule));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let reduced = reduce(schema, 0).unwrap_or_else(|| json!({"type": "object"}));
        let compiled = catch_unwind(|| kube_cel::compile_schema(&reduced)).map_err(|_| {
            vec![FieldError::internal(
                path,
                "the validation rules cannot be compiled",
            )]
        })?;
        Ok(Some(Rules {
            compiled,
            loop_depth,
            types: reduced,
        }))
    }

    /// Runs every rule on an object; transition rules only where `old` has the value too.
    pub fn validate(&self, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let widest = u128::from(widest(value, 0).max(1));
        if widest.saturating_pow(self.loop_depth) > STEPS_MAX {
            return vec![FieldError::invalid(
                "",
                type_name(value),
                "validation failed due to running out of cost budget, no further validation rules will be run",
            )];
        }
        let ran = catch_unwind(AssertUnwindSafe(|| {
            Validator::new().validate_compiled(&self.compiled, value, old)
        }));
        match ran {
            Ok(Ok(())) => Vec::new(),
            Ok(Err(errors)) => errors
                .into_vec()
                .into_iter()
                .map(|error| self.field_error(error))
                .collect(),
            Err(_) => vec![FieldError::internal("", "a validation rule failed to run")],
        }
    }

    fn field_error(&self, error: ValidationError) -> FieldError {
        let path = error.field_path.as_str();
        let found = self.type_at(path);
        let message = match error.kind {
            ErrorKind::ValidationFailure if is_default_message(&error) => {
                format!("failed rule: {}", error.rule.trim())
            }
            ErrorKind::ValidationFailure => error.message.clone(),
            _ => format!("{} evaluating rule: {}", error.message, error.rule.trim()),
        };
        match error.reason.as_deref() {
            Some("FieldValueForbidden") => FieldError::forbidden(path, message),
            Some("FieldValueRequired") => FieldError::required(path, message),
            Some("FieldValueDuplicate") => {
                let mut duplicate = FieldError::duplicate(path, found);
                duplicate.detail = message;
                duplicate
            }
            _ => FieldError::invalid(path, found, message),
        }
    }

    /// The schema type at a path: what the real server shows as the bad value.
    fn type_at(&self, path: &str) -> &str {
        let mut place = &self.types;
        for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
            place = if step.ends_with(']') {
                &place["items"]
            } else if place["properties"][step].is_object() {
                &place["properties"][step]
            } else {
                &place["additionalProperties"]
            };
        }
        place["type"].as_str().unwrap_or("object")
    }
}

/// An expression over named values that answers yes or no.
pub(crate) struct Expression {
    text: Box<str>,
    program: Program,
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Expression {
    /// Compiles it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn compile(text: &str) -> Result<Expression, String> {
        if text.len() > RULE_BYTES_MAX {
            return Err(format!(
                "the expression is longer than {RULE_BYTES_MAX} bytes"
            ));
        }
        match catch_unwind(|| Program::compile(text)) {
            Ok(Ok(program)) => Ok(Expression {
                text: text.into(),
                program,
            }),
            Ok(Err(cause)) => Err(cause.to_string()),
            Err(_) => Err("the expression cannot be parsed".to_owned()),
        }
    }

    /// Its answer for these values.
    ///
    /// # Errors
    /// Why it has none.
    pub(crate) fn truth(&self, values: &[(&str, &Value)]) -> Result<bool, String> {
        let failed = |why: String| {
            let text = &self.text;
            Err(format!("expression '{text}' resulted in error: {why}"))
        };
        let widest = values.iter().map(|(_, value)| widest(value, 0)).max();
        let steps = u128::from(widest.unwrap_or(0).max(1)).saturating_pow(loops_nested(&self.text));
        if steps > STEPS_MAX {
            return failed("operation cancelled: actual cost limit exceeded".to_owned());
        }
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let mut context = Context::default().with_all();
            for (name, value) in values {
                let value = kube_cel::cel::to_value(value).map_err(|cause| cause.to_string())?;
                context.add_variable_from_value(*name, value);
            }
            self.program
                .execute(&context)
                .map_err(|cause| cause.to_string())
        }));
        match ran {
            Ok(Ok(kube_cel::cel::Value::Bool(truth))) => Ok(truth),
            Ok(Ok(_)) => failed("must evaluate to bool".to_owned()),
            Ok(Err(why)) => failed(why),
            Err(_) => failed("the expression failed to run".to_owned()),
        }
    }
}

fn is_default_message(error: &ValidationError) -> bool {
    let message = error.message.trim();
    message.is_empty() || message.contains(error.rule.trim())
}

fn compiles(rule: &str) -> Result<(), String> {
    match catch_unwind(|| Program::compile(rule).map(|_| ())) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(cause)) => Err(cause.to_string()),
        Err(_) => Err("the expression cannot be parsed".to_owned()),
    }
}

fn collect_rules(schema: &Value, path: &str, depth: usize, out: &mut Vec<(String, String)>) {
    if depth > 60 {
        return;
    }
    let rules = schema["x-kubernetes-validations"].as_array();
    for (position, rule) in rules.into_iter().flatten().enumerate() {
        let at = field::index(&field::child(path, "x-kubernetes-validations"), position);
        let text = rule["rule"].as_str().unwrap_or_default().to_owned();
        out.push((field::child(&at, "rule"), text));
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let at = field::key(&field::child(path, "properties"), name);
        collect_rules(inner, &at, depth + 1, out);
    }
    for name in ["additionalProperties", "items"] {
        if schema[name].is_object() {
            collect_rules(&schema[name], &field::child(path, name), depth + 1, out);
        }
    }
}

/// The schema with only the branches that lead to rules; below a rule everything stays, because
/// the rule may read it.
fn reduce(schema: &Value, depth: usize) -> Option<Value> {
    if depth > 60 || !schema.is_object() {
        return None;
    }
    let has_rules = schema["x-kubernetes-validations"]
        .as_array()
        .is_some_and(|rules| !rules.is_empty());
    if has_rules {
        return Some(opened(schema, depth));
    }
    let mut out = Map::new();
    let properties: Map<String, Value> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, inner)| Some((name.clone(), reduce(inner, depth + 1)?)))
        .collect();
    if !properties.is_empty() {
        out.insert("properties".into(), properties.into());
    }
    for name in ["additionalProperties", "items"] {
        if let Some(inner) = reduce(&schema[name], depth + 1) {
            out.insert(name.into(), inner);
        }
    }
    if out.is_empty() {
        return None;
    }
    out.insert("type".into(), schema["type"].clone());
    Some(Value::Object(out))
}

/// The schema with built-in types left open, and without defaults: they are filled in already.
fn opened(schema: &Value, depth: usize) -> Value {
    match schema {
        Value::Object(map) if map.contains_key("$kubernetes") => {
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
        }
        Value::Object(map) if depth < 60 => map
            .iter()
            .filter(|(name, inner)| name.as_str() != "default" || inner.is_object())
            .map(|(name, inner)| (name.clone(), opened(inner, depth + 1)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(list) if depth < 60 => {
            list.iter().map(|inner| opened(inner, depth + 1)).collect()
        }
        other => other.clone(),
    }
}

/// How deep the rule nests loops, read from its text: strings are skipped, brackets are counted.
fn loops_nested(rule: &str) -> u32 {
    let mut brackets: Vec<bool> = Vec::new();
    let mut deepest = 0;
    let mut quote = None;
    let mut word = String::new();
    let mut after_dot = false;
    let mut letters = rule.chars();
    while let Some(letter) = letters.next() {
        if let Some(end) = quote {
            if letter == '\\' {
                letters.next();
            } else if letter == end {
                quote = None;
            }
            continue;
        }
        match letter {
            '"' | '\'' => quote = Some(letter),
            '(' => {
                brackets.push(after_dot && LOOPS.contains(&word.as_str()));
                let open = brackets.iter().filter(|is_loop| **is_loop).count();
                deepest = deepest.max(open);
            }
            ')' => {
                brackets.pop();
            }
            _ => {}
        }
        if letter.is_alphanumeric() || letter == '_' {
            word.push(letter);
        } else if !letter.is_whitespace() {
            after_dot = letter == '.';
            word.clear();
        }
    }
    u32::try_from(deepest).unwrap_or(u32::MAX)
}

/// The longest list or map anywhere in the value.
fn widest(value: &Value, depth: usize) -> u64 {
    if depth > 120 {
        return 0;
    }
    match value {
        Value::Array(list) => list
            .iter()
            .map(|inner| widest(inner, depth + 1))
            .fold(list.len() as u64, u64::max),
        Value::Object(map) => map
            .values()
            .map(|inner| widest(inner, depth + 1))
            .fold(map.len() as u64, u64::max),
        _ => 0,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::String(_) => "string",
        Value::Number(_) => "integer",
        Value::Bool(_) => "boolean",
        Value::Null => "null",
    }
}
