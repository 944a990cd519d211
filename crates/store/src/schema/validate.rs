//! Validation of custom resources, in the words of the real server's schema validator.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Additional, DEPTH_MAX, Limits, ListType, Node, NodeId, Schema, Type, format};
use crate::field::{self, ERRORS_MAX, FieldError, Problem};

/// What a check of an object came to.
#[derive(Debug, Default)]
pub struct Checked {
    /// What is wrong.
    pub errors: Vec<FieldError>,
    /// What is wrong but was wrong before, and has not changed.
    pub warnings: Vec<String>,
}

/// Where a check is: the value, and what it was before where that is known.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) value: &'a Value,
    pub(super) old: Option<&'a Value>,
    pub(super) path: &'a str,
    pub(super) depth: usize,
}

impl Schema {
    /// Checks a custom resource against its schema and its CEL rules.
    ///
    /// `old` is the stored object on an update: what was wrong before and has not changed is
    /// tolerated, and transition rules compare with it.
    pub fn validate(&self, value: &Value, old: Option<&Value>, more: Vec<FieldError>) -> Checked {
        let mut errors = Vec::new();
        let at = At {
            value,
            old,
            path: "",
            depth: 0,
        };
        self.validate_at(self.root, at, &mut errors);
        self.finish(value, old, errors, more)
    }

    /// Checks the status of a custom resource, whose other parts did not change.
    pub fn validate_status(&self, value: &Value, old: &Value, more: Vec<FieldError>) -> Checked {
        let mut errors = Vec::new();
        if let (Some(edge), Some(status)) = (
            self.node(self.root).properties.get("status"),
            value.get("status"),
        ) {
            let at = At {
                value: status,
                old: old.get("status"),
                path: "",
                depth: 0,
            };
            self.validate_at(edge.to, at, &mut errors);
            place_below("status", &mut errors);
        }
        self.finish(value, Some(old), errors, more)
    }

    fn finish(
        &self,
        value: &Value,
        old: Option<&Value>,
        mut errors: Vec<FieldError>,
        more: Vec<FieldError>,
    ) -> Checked {
        errors.extend(more);
        let mut repeats = Vec::new();
        self.lists_at(self.root, value, "", 0, &mut repeats);
        if let Some(old) = old.filter(|_| !repeats.is_empty()) {
            let mut before = Vec::new();
            self.lists_at(self.root, old, "", 0, &mut before);
            if !before.is_empty() {
                repeats.clear();
            }
        }
        errors.extend(repeats);
        let mut warnings = Vec::new();
        if let Some(rules) = &self.rules {
            if errors.iter().any(is_blocking) {
                let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
                errors.push(FieldError::raw("<nil>", "null", detail));
            } else {
                let verdict = rules.validate(value, old);
                errors.extend(verdict.errors);
                warnings = verdict.warnings;
            }
        }
        errors.truncate(ERRORS_MAX);
        Checked { errors, warnings }
    }

    pub(super) fn validate_at(&self, id: NodeId, at: At<'_>, errors: &mut Vec<FieldError>) {
        let before = errors.len();
        self.validate_anew(id, at, errors);
        if errors.len() > before && at.old == Some(at.value) {
            errors.truncate(before);
        }
    }

    fn validate_anew(&self, id: NodeId, at: At<'_>, errors: &mut Vec<FieldError>) {
        let At { value, path, .. } = at;
        if at.depth > DEPTH_MAX || errors.len() >= ERRORS_MAX {
            return;
        }
        let node = self.node(id);
        if value.is_null() && node.nullable {
            return;
        }
        if let Some(wanted) = wrong_type(node, value) {
            errors.push(type_error(path, wanted, value));
            if node.kind == Type::Integer && value.is_number() {
                errors.push(format_error(node, path));
            }
            let limits = node.limits.as_ref();
            if node.kind == Type::Quantity || limits.is_some_and(|limits| limits.says_type_again) {
                let quoted = field::go_quoted(path);
                errors.push(lost(format!(
                    "{quoted} must validate at least one schema (anyOf)"
                )));
                errors.push(type_error(path, "integer", value));
            }
            return;
        }
        if let Some(limits) = &node.limits {
            self.check_limits(limits, at, errors);
        }
        if let Value::Number(number) = value
            && !is_in_range(node, number)
        {
            errors.push(format_error(node, path));
        }
        if let (Some(format), Value::String(text)) = (&node.format, value)
            && !format::fits(format, text)
        {
            let detail = format!(
                "{} must be of type {format}: {}",
                in_body(path),
                field::go_quoted(text)
            );
            errors.push(FieldError::type_invalid(path, text.as_str(), detail));
        }
        match value {
            Value::Object(map) => self.validate_fields(node, map, at, errors),
            Value::Array(list) => {
                let Some(edge) = &node.items else { return };
                for (position, inner) in list.iter().enumerate() {
                    let inner_at = At {
                        value: inner,
                        old: at.old.and_then(|old| self.same_item(node, inner, old)),
                        path: &field::index(path, position),
                        depth: at.depth + 1,
                    };
                    self.validate_at(edge.to, inner_at, errors);
                }
            }
            _ => {}
        }
    }

    /// The item of `old` that has the same keys; only lists that are maps have any.
    fn same_item<'a>(&self, node: &Node, item: &Value, old: &'a Value) -> Option<&'a Value> {
        let ListType::Map(keys) = &node.list else {
            return None;
        };
        let same = |other: &&Value| {
            let mut keys = keys.iter();
            keys.all(|key| item.get(&**key) == other.get(&**key))
        };
        old.as_array()?.iter().find(same)
    }

    fn validate_fields(
        &self,
        node: &Node,
        map: &Map<String, Value>,
        at: At<'_>,
        errors: &mut Vec<FieldError>,
    ) {
        let path = at.path;
        if node.embedded {
            for name in ["apiVersion", "kind"] {
                if !map.contains_key(name) {
                    errors.push(FieldError::required(&field::child(path, name), ""));
                }
            }
        }
        for (name, inner) in map {
            match (node.properties.get(name.as_str()), &node.additional) {
                (Some(edge), _) | (None, Additional::Each(edge)) => {
                    // The metadata is checked as every object's, elsewhere.
                    if at.depth == 0 && path.is_empty() && name == "metadata" {
                        continue;
                    }
                    let inner_at = At {
                        value: inner,
                        old: at.old.and_then(|old| old.get(name)),
                        path: &field::child(path, name),
                        depth: at.depth + 1,
                    };
                    self.validate_at(edge.to, inner_at, errors);
                }
                _ => {}
            }
        }
        for name in &node.required {
            if !map.contains_key(name.as_ref()) {
                errors.push(FieldError::required(&field::child(path, name), ""));
            }
        }
    }

    fn check_limits(&self, limits: &Limits, at: At<'_>, errors: &mut Vec<FieldError>) {
        let At { value, path, .. } = at;
        match value {
            Value::String(text) => check_string(limits, text, path, errors),
            Value::Number(number) => check_number(limits, number, path, errors),
            Value::Array(list) => check_array(limits, list, path, errors),
            Value::Object(map) => check_object(limits, map, path, errors),
            _ => {}
        }
        if !limits.one_value_of.is_empty() && !limits.one_value_of.contains(value) {
            let shown: Vec<String> = limits.one_value_of.iter().map(shown).collect();
            errors.push(FieldError::not_supported(path, value.clone(), &shown));
        }
        self.check_logic(limits, at, errors);
    }

    fn check_logic(&self, limits: &Limits, at: At<'_>, errors: &mut Vec<FieldError>) {
        let At { value, path, .. } = at;
        let trouble = |id: NodeId| {
            let mut inner = Vec::new();
            let at = At {
                value,
                old: None,
                path,
                depth: at.depth + 1,
            };
            self.validate_at(id, at, &mut inner);
            inner
        };
        let quoted = field::go_quoted(path);
        let all: Vec<_> = limits.all_of.iter().map(|id| trouble(*id)).collect();
        if all.iter().any(|found| !found.is_empty()) {
            errors.extend(all.into_iter().flatten());
            errors.push(lost(format!(
                "{quoted} must validate all the schemas (allOf)"
            )));
        }
        let any: Vec<_> = limits.any_of.iter().map(|id| trouble(*id)).collect();
        if !any.is_empty() && any.iter().all(|found| !found.is_empty()) {
            let detail = format!("{quoted} must validate at least one schema (anyOf)");
            errors.push(lost(detail));
            errors.extend(any.into_iter().next().unwrap_or_default());
        }
        let one: Vec<_> = limits.one_of.iter().map(|id| trouble(*id)).collect();
        let ones = one.iter().filter(|found| found.is_empty()).count();
        if !one.is_empty() && ones != 1 {
            let found = match ones {
                0 => "Found none valid".to_owned(),
                _ => format!("Found {ones} valid alternatives"),
            };
            errors.push(lost(format!(
                "{quoted} must validate one and only one schema (oneOf). {found}"
            )));
            if ones == 0 {
                errors.extend(one.into_iter().next().unwrap_or_default());
            }
        }
        if limits.not.is_some_and(|id| trouble(id).is_empty()) {
            errors.push(lost(format!("{quoted} must not validate the schema (not)")));
        }
    }

    /// Items of sets and maps must be unique.
    fn lists_at(
        &self,
        id: NodeId,
        value: &Value,
        path: &str,
        depth: usize,
        errors: &mut Vec<FieldError>,
    ) {
        if depth > DEPTH_MAX || errors.len() >= ERRORS_MAX {
            return;
        }
        let node = self.node(id);
        match value {
            Value::Object(map) => {
                for (name, inner) in map {
                    if !inner.is_object() && !inner.is_array() {
                        continue;
                    }
                    match (node.properties.get(name.as_str()), &node.additional) {
                        (Some(edge), _) | (None, Additional::Each(edge)) => {
                            let at = field::child(path, name);
                            self.lists_at(edge.to, inner, &at, depth + 1, errors);
                        }
                        _ => {}
                    }
                }
            }
            Value::Array(list) => {
                check_unique(&node.list, list, path, errors);
                let Some(edge) = &node.items else { return };
                for (position, inner) in list.iter().enumerate() {
                    if inner.is_object() || inner.is_array() {
                        let at = field::index(path, position);
                        self.lists_at(edge.to, inner, &at, depth + 1, errors);
                    }
                }
            }
            _ => {}
        }
    }
}

fn wrong_type(node: &Node, value: &Value) -> Option<&'static str> {
    let (wanted, is_right) = match node.kind {
        Type::Any => return None,
        Type::Array => ("array", value.is_array()),
        Type::Boolean => ("boolean", value.is_boolean()),
        Type::IntOrString | Type::Quantity => {
            ("integer,string", is_integer(value) || value.is_string())
        }
        Type::Integer => ("integer", is_integer(value)),
        Type::Number => ("number", value.is_number()),
        Type::Object => ("object", value.is_object()),
        Type::String | Type::MicroTime | Type::Time => ("string", value.is_string()),
    };
    (!is_right).then_some(wanted)
}

/// The real server loses the path of what several schemas say; its text names the field instead.
fn lost(detail: String) -> FieldError {
    FieldError::invalid("<nil>", "", detail)
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
}

fn type_error(path: &str, wanted: &str, value: &Value) -> FieldError {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let detail = format!("{} must be of type {wanted}: \"{found}\"", in_body(path));
    FieldError::type_invalid(path, found, detail)
}

fn in_body(path: &str) -> String {
    format!("{path} in body")
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn check_string(limits: &Limits, text: &str, path: &str, errors: &mut Vec<FieldError>) {
    let letters = text.chars().count() as u64;
    let mut wrong = |detail: String| errors.push(FieldError::invalid(path, text, detail));
    if let Some(least) = limits.min_length.filter(|least| letters < *least) {
        wrong(format!(
            "{} should be at least {least} chars long",
            in_body(path)
        ));
    }
    if let Some(pattern) = limits.pattern.as_deref().filter(|p| !p.is_match(text)) {
        wrong(format!("{} should match '{pattern}'", in_body(path)));
    }
    if let Some(most) = limits.max_length.filter(|most| letters > *most) {
        errors.push(FieldError::too_long(
            path,
            most.try_into().unwrap_or(i64::MAX),
        ));
    }
}

fn check_number(
    limits: &Limits,
    number: &serde_json::Number,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let Some(n) = number.as_f64() else { return };
    let mut wrong = |rule: &str, bound: f64| {
        let detail = format!("{} should be {rule} {bound}", in_body(path));
        errors.push(FieldError::invalid(
            path,
            Value::Number(number.clone()),
            detail,
        ));
    };
    match limits.maximum {
        Some(most) if limits.exclusive_maximum && n >= most => wrong("less than", most),
        Some(most) if n > most => wrong("less than or equal to", most),
        _ => {}
    }
    match limits.minimum {
        Some(least) if limits.exclusive_minimum && n <= least => wrong("greater than", least),
        Some(least) if n < least => wrong("greater than or equal to", least),
        _ => {}
    }
    if let Some(step) = limits.multiple_of.filter(|step| (n / step).fract() != 0.0) {
        wrong("a multiple of", step);
    }
}

fn is_in_range(node: &Node, number: &serde_json::Number) -> bool {
    let Some(n) = number.as_f64() else {
        return true;
    };
    match node.format.as_deref() {
        Some("int32") => n >= f64::from(i32::MIN) && n <= f64::from(i32::MAX),
        Some("int64") => number.is_i64() || n.abs() < 9.3e18,
        _ => true,
    }
}

/// A number that does not fit its format; the real server loses its path.
fn format_error(node: &Node, path: &str) -> FieldError {
    let format = match node.format.as_deref() {
        Some(format) => format!("with format {format}"),
        None => "(default format)".to_owned(),
    };
    let detail = format!("Checked value must be of type integer {format} in {path}");
    FieldError::invalid("<nil>", "", detail)
}

/// Whether rules are not run because of this error.
fn is_blocking(error: &FieldError) -> bool {
    matches!(
        error.problem,
        Problem::NotSupported
            | Problem::Required
            | Problem::TooLong
            | Problem::TooMany
            | Problem::TypeInvalid
    )
}

/// Errors of a part of an object, whose texts know only the part.
pub(super) fn place_below(path: &str, errors: &mut [FieldError]) {
    for error in errors {
        error.field = match &*error.field {
            "" | "<nil>" => path.to_owned(),
            inner => field::child(path, inner),
        };
    }
}

fn check_array(limits: &Limits, list: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let count = list.len() as u64;
    if let Some(least) = limits.min_items.filter(|least| count < *least) {
        let detail = format!("{} should have at least {least} items", in_body(path));
        errors.push(FieldError::invalid(path, json!(count), detail));
    }
    if let Some(most) = limits.max_items.filter(|most| count > *most) {
        let most = most.try_into().unwrap_or(i64::MAX);
        errors.push(FieldError::too_many(path, list.len(), most));
    }
    if limits.unique_items && first_repeat(list.iter().map(Value::to_string)).is_some() {
        let detail = format!("{} shouldn't contain duplicates", in_body(path));
        errors.push(FieldError::invalid(
            path,
            Value::Array(list.to_vec()),
            detail,
        ));
    }
}

fn check_object(
    limits: &Limits,
    map: &Map<String, Value>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let count = map.len() as u64;
    if let Some(least) = limits.min_properties.filter(|least| count < *least) {
        let detail = format!("{} should have at least {least} properties", in_body(path));
        errors.push(FieldError::invalid(path, json!(count), detail));
    }
    if let Some(most) = limits.max_properties.filter(|most| count > *most) {
        let most = most.try_into().unwrap_or(i64::MAX);
        errors.push(FieldError::too_many(path, map.len(), most));
    }
}

fn check_unique(list: &ListType, items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (position, item) in items.iter().enumerate() {
        let identity = match list {
            ListType::Atomic => return,
            ListType::Set => item.clone(),
            ListType::Map(keys) => {
                let Some(map) = item.as_object() else {
                    continue;
                };
                keys.iter()
                    .filter_map(|key| Some((key.to_string(), map.get(key.as_ref())?.clone())))
                    .collect::<Map<_, _>>()
                    .into()
            }
        };
        if !seen.insert(identity.to_string()) {
            errors.push(FieldError::duplicate(
                &field::index(path, position),
                identity,
            ));
            if errors.len() >= ERRORS_MAX {
                return;
            }
        }
    }
}

fn first_repeat(texts: impl Iterator<Item = String>) -> Option<String> {
    let mut seen = BTreeSet::new();
    for text in texts {
        if seen.contains(&text) {
            return Some(text);
        }
        seen.insert(text);
    }
    None
}
