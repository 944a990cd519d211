//! Field errors: what is wrong with an object, where, in the words of a real API server.

use std::fmt;

use serde_json::{Value, json};

/// Most errors reported for one object; the rest would only repeat themselves.
pub const ERRORS_MAX: usize = 100;

/// The sort of problem. Decides text and machine-readable reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Two values that must differ are equal.
    Duplicate,
    /// Well formed, but not allowed here.
    Forbidden,
    /// The server itself failed.
    Internal,
    /// Malformed or out of bounds.
    Invalid,
    /// Names something that does not exist.
    NotFound,
    /// Not one of the listed values.
    NotSupported,
    /// Missing or empty.
    Required,
    /// Longer than allowed.
    TooLong,
    /// More entries than allowed.
    TooMany,
    /// Of another JSON type than the schema says.
    TypeInvalid,
}

impl Problem {
    fn text(self) -> &'static str {
        match self {
            Problem::Duplicate => "Duplicate value",
            Problem::Forbidden => "Forbidden",
            Problem::Internal => "Internal error",
            Problem::Invalid | Problem::TypeInvalid => "Invalid value",
            Problem::NotFound => "Not found",
            Problem::NotSupported => "Unsupported value",
            Problem::Required => "Required value",
            Problem::TooLong => "Too long",
            Problem::TooMany => "Too many",
        }
    }

    /// The `reason` of a cause in a Status.
    pub fn reason(self) -> &'static str {
        match self {
            Problem::Duplicate => "FieldValueDuplicate",
            Problem::Forbidden => "FieldValueForbidden",
            Problem::Internal => "InternalError",
            Problem::Invalid => "FieldValueInvalid",
            Problem::NotFound => "FieldValueNotFound",
            Problem::NotSupported => "FieldValueNotSupported",
            Problem::Required => "FieldValueRequired",
            Problem::TooLong => "FieldValueTooLong",
            Problem::TooMany => "FieldValueTooMany",
            Problem::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    fn shows_value(self) -> bool {
        !matches!(
            self,
            Problem::Required | Problem::Forbidden | Problem::TooLong | Problem::Internal
        )
    }
}

/// One problem of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// The sort of problem.
    pub problem: Problem,
    /// Path of the field: `spec.containers[0].name`.
    pub field: String,
    /// The offending value, where the text shows it.
    pub value: Option<Value>,
    /// The value as the text shows it, where that is not its JSON.
    pub shown: Option<String>,
    /// What would have been right; may be empty.
    pub detail: String,
}

impl FieldError {
    fn new(problem: Problem, field: &str, value: Option<Value>, detail: impl Into<String>) -> Self {
        FieldError {
            problem,
            field: field.to_owned(),
            value,
            shown: None,
            detail: detail.into(),
        }
    }

    /// Malformed or out of bounds, without the value.
    pub fn bare(field: &str, detail: impl Into<String>) -> Self {
        Self::new(Problem::Invalid, field, None, detail)
    }

    /// Malformed or out of bounds; `shown` is the value as the text has it.
    pub fn raw(field: &str, shown: &str, detail: impl Into<String>) -> Self {
        FieldError {
            shown: Some(shown.to_owned()),
            ..Self::new(Problem::Invalid, field, Some(Value::Null), detail)
        }
    }

    /// Two values that must differ are equal.
    pub fn duplicate(field: &str, value: impl Into<Value>) -> Self {
        Self::new(Problem::Duplicate, field, Some(value.into()), "")
    }

    /// Well formed, but not allowed here.
    pub fn forbidden(field: &str, detail: impl Into<String>) -> Self {
        Self::new(Problem::Forbidden, field, None, detail)
    }

    /// The server failed while checking the field.
    pub fn internal(field: &str, detail: impl Into<String>) -> Self {
        Self::new(Problem::Internal, field, None, detail)
    }

    /// Malformed or out of bounds.
    pub fn invalid(field: &str, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(Problem::Invalid, field, Some(value.into()), detail)
    }

    /// Names something that does not exist.
    pub fn not_found(field: &str, value: impl Into<Value>) -> Self {
        Self::new(Problem::NotFound, field, Some(value.into()), "")
    }

    /// Not one of `supported`.
    pub fn not_supported<S: AsRef<str>>(
        field: &str,
        value: impl Into<Value>,
        supported: &[S],
    ) -> Self {
        let mut detail = String::new();
        for (index, text) in supported.iter().enumerate() {
            detail.push_str(if index == 0 {
                "supported values: "
            } else {
                ", "
            });
            detail.push_str(&go_quoted(text.as_ref()));
        }
        Self::new(Problem::NotSupported, field, Some(value.into()), detail)
    }

    /// Missing or empty.
    pub fn required(field: &str, detail: impl Into<String>) -> Self {
        Self::new(Problem::Required, field, None, detail)
    }

    /// Longer than `bytes_max`.
    pub fn too_long(field: &str, bytes_max: i64) -> Self {
        let detail = match bytes_max {
            i64::MIN..=-1 => "value is too long".to_owned(),
            1 => "may not be more than 1 byte".to_owned(),
            _ => format!("may not be more than {bytes_max} bytes"),
        };
        Self::new(Problem::TooLong, field, None, detail)
    }

    /// More than `most` entries.
    pub fn too_many(field: &str, count: usize, most: i64) -> Self {
        let detail = match most {
            i64::MIN..=-1 => "has too many items".to_owned(),
            1 => "must have at most 1 item".to_owned(),
            _ => format!("must have at most {most} items"),
        };
        Self::new(Problem::TooMany, field, Some(json!(count)), detail)
    }

    /// Of another JSON type than the schema says.
    pub fn type_invalid(field: &str, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(Problem::TypeInvalid, field, Some(value.into()), detail)
    }

    /// The text without the field's path: a cause's `message`.
    pub fn body(&self) -> String {
        let mut text = self.problem.text().to_owned();
        if self.problem.shows_value()
            && let Some(value) = &self.value
        {
            text.push_str(": ");
            match value {
                _ if self.shown.is_some() => text.push_str(self.shown.as_deref().unwrap_or("")),
                Value::String(inner) => text.push_str(&go_quoted(inner)),
                other => text.push_str(&go_json(other)),
            }
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// Several errors as one text: alone as it is, together in brackets, equal ones once.
pub fn aggregate(errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for error in errors.iter().take(ERRORS_MAX) {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.len() {
        1 => texts.remove(0),
        _ => format!("[{}]", texts.join(", ")),
    }
}

/// The message of an `Invalid` Status: `Pod "x" is invalid: spec.containers: Required value`.
pub fn invalid_message(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> String {
    let kind = if group.is_empty() {
        kind.to_owned()
    } else {
        format!("{kind}.{group}")
    };
    format!(
        "{kind} {} is invalid: {}",
        go_quoted(name),
        aggregate(errors)
    )
}

/// The `details.causes` of an `Invalid` Status.
pub fn causes(errors: &[FieldError]) -> Vec<Value> {
    errors
        .iter()
        .take(ERRORS_MAX)
        .map(|error| {
            json!({
                "reason": error.problem.reason(),
                "message": error.body(),
                "field": error.field,
            })
        })
        .collect()
}

/// `parent.child`, or `child` at the root.
pub fn child(parent: &str, name: &str) -> String {
    if parent.is_empty() {
        name.to_owned()
    } else {
        format!("{parent}.{name}")
    }
}

/// `parent[key]`.
pub fn key(parent: &str, name: &str) -> String {
    format!("{parent}[{name}]")
}

/// `parent[3]`.
pub fn index(parent: &str, position: usize) -> String {
    format!("{parent}[{position}]")
}

/// A way into an object, spelled only where somebody is told of it.
#[derive(Clone, Copy, Debug)]
pub enum Way<'a> {
    /// The object itself.
    Root,
    /// A field of what lies there.
    Field(&'a Way<'a>, &'a str),
    /// An item of the list that lies there.
    Item(&'a Way<'a>, usize),
}

impl Way<'_> {
    /// `spec.containers[0].name`; empty at the root.
    pub fn text(&self) -> String {
        match self {
            Way::Root => String::new(),
            Way::Field(above, name) => child(&above.text(), name),
            Way::Item(above, position) => index(&above.text(), *position),
        }
    }
}

/// A string as Go's `%q` prints it.
pub fn go_quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            control if (control as u32) < 0x20 || control as u32 == 0x7f => {
                out.push_str(&format!("\\x{:02x}", control as u32));
            }
            // No letters that Go would print.
            '\u{80}'..='\u{a0}' | '\u{ad}' => {
                out.push_str(&format!("\\u{:04x}", letter as u32));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// Fields in the order of their Go struct, where that is not the alphabet's.
const STRUCTS: &[&[&str]] = &[
    &["APIGroup", "Kind", "Name"],
    &["Attacher", "Source", "NodeName"],
    &["Group", "Resource", "Namespace", "Name"],
    &["Key", "Operator", "Value", "Effect", "TolerationSeconds"],
    &["Key", "Value", "Effect", "TimeAdded"],
    &[
        "MinAvailable",
        "Selector",
        "MaxUnavailable",
        "UnhealthyPodEvictionPolicy",
    ],
    &[
        "Name",
        "Protocol",
        "AppProtocol",
        "Port",
        "TargetPort",
        "NodePort",
    ],
    &["Partition", "MaxUnavailable"],
    &["PersistentVolumeName", "InlineVolumeSpec"],
    &["MaxUnavailable", "MaxSurge"],
    &["SucceededIndexes", "SucceededCount"],
    &["Type", "Address"],
    &["Type", "RollingUpdate"],
    &[
        "apiVersion",
        "kind",
        "name",
        "uid",
        "controller",
        "blockOwnerDeletion",
    ],
    &["matchLabels", "matchExpressions"],
];

/// A value as Go's `json.Marshal` prints it (with `<`, `>` and `&` escaped).
pub fn go_json(value: &Value) -> String {
    let mut out = String::new();
    write_json(value, &mut out);
    out.replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
}

/// What Go calls the type of a value that was read as anything.
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go prints it plainly.
pub fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            let items: Vec<String> = list.iter().map(go_value).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let items: Vec<String> = map
                .iter()
                .map(|(name, value)| format!("{name}:{}", go_value(value)))
                .collect();
            format!("map[{}]", items.join(" "))
        }
        other => other.to_string(),
    }
}

fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Array(list) => {
            out.push('[');
            for (index, inner) in list.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(inner, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let known = STRUCTS
                .iter()
                .find(|fields| map.keys().all(|key| fields.contains(&key.as_str())));
            let mut fields: Vec<(&String, &Value)> = map.iter().collect();
            if let Some(order) = known {
                fields.sort_by_key(|(key, _)| order.iter().position(|name| name == key));
            }
            out.push('{');
            for (index, (key, inner)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_json(inner, out);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_error_reads_like_the_real_servers() {
        let rows = [
            (
                FieldError::required("spec.containers", ""),
                "spec.containers: Required value",
            ),
            (
                FieldError::invalid("metadata.name", "A b", "a lowercase RFC 1123 label"),
                "metadata.name: Invalid value: \"A b\": a lowercase RFC 1123 label",
            ),
            (
                FieldError::not_supported("spec.restartPolicy", "x", &["Always", "Never"]),
                "spec.restartPolicy: Unsupported value: \"x\": supported values: \"Always\", \"Never\"",
            ),
            (
                FieldError::too_long("metadata.name", 63),
                "metadata.name: Too long: may not be more than 63 bytes",
            ),
            (
                FieldError::too_many("spec.tasks", 3, 1),
                "spec.tasks: Too many: 3: must have at most 1 item",
            ),
            (
                FieldError::duplicate("spec.ports[1]", json!({"port": 80})),
                "spec.ports[1]: Duplicate value: {\"port\":80}",
            ),
            (
                FieldError::invalid("spec.parallelism", -1, "must be greater than or equal to 0"),
                "spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
            ),
        ];
        for (error, text) in rows {
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn equal_errors_are_told_once_and_several_stand_in_brackets() {
        let a = FieldError::required("a", "");
        let b = FieldError::required("b", "");
        assert_eq!(
            invalid_message("batch", "Job", "x", &[a.clone(), a.clone(), b]),
            "Job.batch \"x\" is invalid: [a: Required value, b: Required value]"
        );
        assert_eq!(aggregate(&[a.clone(), a]), "a: Required value");
    }
}
