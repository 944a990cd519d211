//! Validation of custom resources, in the words of the real server's schema validator.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Additional, DEPTH_MAX, Limits, ListType, Node, NodeId, Schema, Type, format};
use crate::field::{self, ERRORS_MAX, FieldError};

impl Schema {
    /// Checks a custom resource against its schema and its CEL rules.
    ///
    /// `old` is the stored object on an update: transition rules compare with it.
    /// CEL rules run only on objects whose shape is right.
    pub fn validate(&self, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        self.validate_at(self.root, value, "", 0, &mut errors);
        self.lists_at(self.root, value, "", 0, &mut errors);
        if errors.is_empty()
            && let Some(rules) = &self.rules
        {
            errors.extend(rules.validate(value, old));
        }
        errors.truncate(ERRORS_MAX);
        errors
    }

    fn validate_at(
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
        if value.is_null() && node.nullable {
            return;
        }
        if let Some(wanted) = wrong_type(node, value) {
            errors.push(type_error(path, wanted, value));
            return;
        }
        if let Some(limits) = &node.limits {
            self.check_limits(limits, node, value, path, depth, errors);
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
            Value::Object(map) => self.validate_fields(node, map, path, depth, errors),
            Value::Array(list) => {
                if let Some(edge) = &node.items {
                    for (position, inner) in list.iter().enumerate() {
                        let at = field::index(path, position);
                        self.validate_at(edge.to, inner, &at, depth + 1, errors);
                    }
                }
            }
            _ => {}
        }
    }

    fn validate_fields(
        &self,
        node: &Node,
        map: &Map<String, Value>,
        path: &str,
        depth: usize,
        errors: &mut Vec<FieldError>,
    ) {
        for name in &node.required {
            if !map.contains_key(name.as_ref()) {
                errors.push(FieldError::required(&field::child(path, name), ""));
            }
        }
        for (name, inner) in map {
            match (node.properties.get(name.as_str()), &node.additional) {
                (Some(edge), _) | (None, Additional::Each(edge)) => {
                    // The metadata is checked as every object's, elsewhere.
                    if path.is_empty() && name == "metadata" {
                        continue;
                    }
                    let at = field::child(path, name);
                    self.validate_at(edge.to, inner, &at, depth + 1, errors);
                }
                _ => {}
            }
        }
    }

    fn check_limits(
        &self,
        limits: &Limits,
        node: &Node,
        value: &Value,
        path: &str,
        depth: usize,
        errors: &mut Vec<FieldError>,
    ) {
        match value {
            Value::String(text) => check_string(limits, text, path, errors),
            Value::Number(number) => {
                check_number(limits, node, number, path, errors);
            }
            Value::Array(list) => check_array(limits, list, path, errors),
            Value::Object(map) => check_object(limits, map, path, errors),
            _ => {}
        }
        if !limits.one_value_of.is_empty() && !limits.one_value_of.contains(value) {
            let shown: Vec<String> = limits.one_value_of.iter().map(shown).collect();
            errors.push(FieldError::not_supported(path, value.clone(), &shown));
        }
        self.check_logic(limits, value, path, depth, errors);
    }

    fn check_logic(
        &self,
        limits: &Limits,
        value: &Value,
        path: &str,
        depth: usize,
        errors: &mut Vec<FieldError>,
    ) {
        let holds = |id: &NodeId| {
            let mut inner = Vec::new();
            self.validate_at(*id, value, path, depth + 1, &mut inner);
            inner.is_empty()
        };
        let quoted = || field::go_quoted(path);
        // The real server loses the path of these four; its text names the field instead.
        let lost = |detail: String| FieldError::invalid("<nil>", "", detail);
        for id in &limits.all_of {
            self.validate_at(*id, value, path, depth + 1, errors);
        }
        if !limits.all_of.is_empty() && !limits.all_of.iter().all(holds) {
            errors.push(lost(format!(
                "{} must validate all the schemas (allOf)",
                quoted()
            )));
        }
        if !limits.any_of.is_empty() && !limits.any_of.iter().any(holds) {
            errors.push(lost(format!(
                "{} must validate at least one schema (anyOf)",
                quoted()
            )));
        }
        let ones = limits.one_of.iter().filter(|id| holds(id)).count();
        if !limits.one_of.is_empty() && ones != 1 {
            let found = match ones {
                0 => "Found none valid".to_owned(),
                _ => format!("Found {ones} valid alternatives"),
            };
            errors.push(lost(format!(
                "{} must validate one and only one schema (oneOf). {found}",
                quoted()
            )));
        }
        if limits.not.as_ref().is_some_and(holds) {
            errors.push(lost(format!(
                "{} must not validate the schema (not)",
                quoted()
            )));
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
    node: &Node,
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
    let is_in_range = match node.format.as_deref() {
        Some("int32") => n >= f64::from(i32::MIN) && n <= f64::from(i32::MAX),
        Some("int64") => number.is_i64() || n.abs() < 9.3e18,
        _ => true,
    };
    if !is_in_range {
        let format = node.format.as_deref().unwrap_or_default();
        let detail = format!("Checked value must be of type integer with format {format}");
        errors.push(FieldError::invalid(
            path,
            Value::Number(number.clone()),
            detail,
        ));
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
