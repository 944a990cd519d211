//! The part of kubectl's JSONPath that printer columns and selectable fields use.
//!
//! Fields, quoted fields, escaped dots, indexes (also from the end), wildcards and filters that
//! compare one field with a literal.

use serde_json::Value;

/// Most values that one path may find.
const FOUND_MAX: usize = 10_000;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    Each,
    Filter {
        path: JsonPath,
        comparison: Option<(Comparison, Value)>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
}

impl JsonPath {
    /// Parses `.status.conditions[?(@.type=="Ready")].status`, with or without braces.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn parse(text: &str) -> Result<JsonPath, String> {
        let text = text.trim();
        let text = text
            .strip_prefix('{')
            .and_then(|inner| inner.strip_suffix('}'))
            .unwrap_or(text);
        let mut rest = text.strip_prefix('$').unwrap_or(text);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if steps.len() > 64 {
                return Err("the path has too many steps".into());
            }
            rest = match rest.strip_prefix('[') {
                Some(inner) => bracket(inner, &mut steps)?,
                None => field(rest.strip_prefix('.').unwrap_or(rest), &mut steps)?,
            };
        }
        Ok(JsonPath { steps })
    }

    /// Everything that the path leads to.
    pub fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![value];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in found {
                step.walk(value, &mut next);
            }
            next.truncate(FOUND_MAX);
            found = next;
        }
        found
    }
}

impl Step {
    fn walk<'a>(&self, value: &'a Value, out: &mut Vec<&'a Value>) {
        match (self, value) {
            (Step::Field(name), Value::Object(map)) => out.extend(map.get(name)),
            (Step::Index(at), Value::Array(list)) => {
                let at = if *at < 0 {
                    *at + list.len() as i64
                } else {
                    *at
                };
                out.extend(usize::try_from(at).ok().and_then(|at| list.get(at)));
            }
            (Step::Each, Value::Array(list)) => out.extend(list),
            (Step::Each, Value::Object(map)) => out.extend(map.values()),
            (Step::Filter { path, comparison }, Value::Array(list)) => {
                out.extend(list.iter().filter(|item| {
                    match comparison {
                        None => !path.find(item).is_empty(),
                        Some((how, wanted)) => path
                            .find(item)
                            .first()
                            .is_some_and(|value| how.holds(value, wanted)),
                    }
                }));
            }
            _ => {}
        }
    }
}

impl Comparison {
    fn holds(self, value: &Value, wanted: &Value) -> bool {
        let order = match (value, wanted) {
            (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
            _ => value
                .as_f64()
                .zip(wanted.as_f64())
                .and_then(|(a, b)| a.partial_cmp(&b)),
        };
        match self {
            Comparison::Equal => value == wanted,
            Comparison::Unequal => value != wanted,
            Comparison::Less => order.is_some_and(|order| order.is_lt()),
            Comparison::LessOrEqual => order.is_some_and(|order| order.is_le()),
            Comparison::More => order.is_some_and(|order| order.is_gt()),
            Comparison::MoreOrEqual => order.is_some_and(|order| order.is_ge()),
        }
    }
}

fn field<'a>(text: &'a str, steps: &mut Vec<Step>) -> Result<&'a str, String> {
    let mut name = String::new();
    let mut letters = text.char_indices();
    let mut end = text.len();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.extend(letters.next().map(|(_, escaped)| escaped)),
            '.' | '[' => {
                end = at;
                break;
            }
            _ => name.push(letter),
        }
    }
    match name.as_str() {
        // A lone dot is the value itself.
        "" if end == text.len() => {}
        "" => return Err("recursive descent is not supported".into()),
        "*" => steps.push(Step::Each),
        _ => steps.push(Step::Field(name)),
    }
    Ok(&text[end..])
}

fn bracket<'a>(text: &'a str, steps: &mut Vec<Step>) -> Result<&'a str, String> {
    let unclosed = || "unterminated array".to_owned();
    if let Some(filter) = text.strip_prefix("?(") {
        let end = filter.find(")]").ok_or_else(unclosed)?;
        steps.push(filter_step(&filter[..end])?);
        return Ok(&filter[end + 2..]);
    }
    if let Some(quote) = text
        .chars()
        .next()
        .filter(|letter| matches!(letter, '"' | '\''))
    {
        let end = text[1..].find(quote).ok_or_else(unclosed)? + 1;
        steps.push(Step::Field(text[1..end].replace("\\.", ".")));
        return text[end + 1..].strip_prefix(']').ok_or_else(unclosed);
    }
    let end = text.find(']').ok_or_else(unclosed)?;
    let inner = text[..end].trim();
    match inner {
        "*" => steps.push(Step::Each),
        _ => {
            let at = inner
                .parse()
                .map_err(|_| format!("invalid array index {inner}"))?;
            steps.push(Step::Index(at));
        }
    }
    Ok(&text[end + 1..])
}

fn filter_step(text: &str) -> Result<Step, String> {
    const SIGNS: &[(&str, Comparison)] = &[
        ("==", Comparison::Equal),
        ("!=", Comparison::Unequal),
        ("<=", Comparison::LessOrEqual),
        (">=", Comparison::MoreOrEqual),
        ("<", Comparison::Less),
        (">", Comparison::More),
    ];
    let text = text.trim();
    let inner = text.strip_prefix('@').ok_or("a filter begins with @")?;
    for (sign, comparison) in SIGNS {
        if let Some((left, right)) = inner.split_once(sign) {
            if left.contains("[?") {
                return Err("filters cannot be nested".into());
            }
            return Ok(Step::Filter {
                path: JsonPath::parse(left)?,
                comparison: Some((*comparison, literal(right)?)),
            });
        }
    }
    if inner.contains("[?") {
        return Err("filters cannot be nested".into());
    }
    Ok(Step::Filter {
        path: JsonPath::parse(inner)?,
        comparison: None,
    })
}

fn literal(text: &str) -> Result<Value, String> {
    let text = text.trim();
    let is_single = text.len() >= 2 && text.starts_with('\'') && text.ends_with('\'');
    if is_single {
        return Ok(text[1..text.len() - 1].into());
    }
    serde_json::from_str(text).map_err(|_| format!("{text} is no literal"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_of_printer_columns_find_what_kubectl_finds() {
        let object = json!({
            "metadata": {"annotations": {"a.b/c": "x"}},
            "status": {
                "conditions": [
                    {"type": "Ready", "status": "True", "weight": 3},
                    {"type": "Other", "status": "False", "weight": 1},
                ],
                "names": ["a", "b", "c"],
            },
        });
        let rows = [
            (".status.names[0]", json!(["a"])),
            (".status.names[-1]", json!(["c"])),
            (".status.names[*]", json!(["a", "b", "c"])),
            (
                "{.status.conditions[?(@.type==\"Ready\")].status}",
                json!(["True"]),
            ),
            (
                ".status.conditions[?(@.type=='Other')].status",
                json!(["False"]),
            ),
            (".status.conditions[?(@.weight>2)].type", json!(["Ready"])),
            (".metadata.annotations.a\\.b/c", json!(["x"])),
            (".metadata.annotations['a\\.b/c']", json!(["x"])),
            (".status.nothing.here", json!([])),
        ];
        for (path, found) in rows {
            let parsed = JsonPath::parse(path).unwrap();
            assert_eq!(json!(parsed.find(&object)), found, "{path}");
        }
    }

    #[test]
    fn broken_paths_are_refused() {
        for path in [
            ".a[",
            ".a[x]",
            ".a[?(b)]",
            ".a..b",
            ".a['b",
            &".a".repeat(100),
        ] {
            assert!(JsonPath::parse(path).is_err(), "{path}");
        }
    }
}
