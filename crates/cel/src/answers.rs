//! Rules and what the real server says of each, when it is defined: nothing, the factor by which it
//! is too expensive, or its mistakes.

use serde_json::{Value, json};

use super::{Rules, Trust};

/// A rule, and below it, indented, the answer of kube-apiserver 1.36.3.
const ANSWERS: &str = include_str!("answers.txt");

fn schema(rule: &str) -> Value {
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {"spec": {
            "type": "object",
            "x-kubernetes-validations": [{"rule": rule}],
            "properties": {
                "s": text,
                "t": {"type": "string", "maxLength": 1000},
                "e": {"type": "string", "enum": ["a", "bbb"]},
                "l": {"type": "array", "items": text},
                "lb": {"type": "array", "maxItems": 1000, "items": {"type": "string", "maxLength": 100}},
                "li": {"type": "array", "items": {"type": "integer"}},
                "m": {"type": "object", "additionalProperties": text},
                "mb": {"type": "object", "maxProperties": 100, "additionalProperties": {"type": "integer"}},
                "lo": {"type": "array", "items": {
                    "type": "object", "required": ["k"], "properties": {"k": text, "v": text},
                }},
                "n": {"type": "integer"},
                "d": {"type": "string", "format": "date-time"},
                "u": {"type": "string", "format": "duration"},
                "b": {"type": "string", "format": "byte"},
                "f": {"type": "number"},
                "x": {"type": "boolean"},
                "i": {"x-kubernetes-int-or-string": true},
                "p": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "q": {"x-kubernetes-preserve-unknown-fields": true},
                "o": {"type": "object", "properties": {"a-b": text, "c": {"type": "integer"}}},
            },
        }},
    })
}

/// What is said here: a factor, the mistakes, or nothing.
fn answer(rule: &str) -> String {
    let Err(errors) = Rules::compile(&schema(rule), "spec", Trust::Doubted) else {
        return String::new();
    };
    let told = errors.iter().map(ToString::to_string);
    // What the whole schema costs is no answer to one rule.
    let told = told.filter(|text| !text.contains("entire OpenAPIv3 schema"));
    let told: Vec<String> = told.collect();
    let lines = told
        .iter()
        .flat_map(|text| text.lines())
        .filter_map(|line| {
            if let Some((_, rest)) = line.split_once("ERROR: <input>:") {
                return Some(format!("    {rest}\n"));
            }
            if let Some((_, rest)) = line.split_once("exceeds budget by factor of ") {
                let factor = rest.split(" (try").next();
                return factor.map(|factor| format!("    {factor}\n"));
            }
            let plain = line.rsplit("}: ").next().unwrap_or(line);
            (!line.starts_with(" |")).then(|| format!("    {plain}\n"))
        });
    lines.collect()
}

#[test]
fn rules_are_accepted_and_refused_as_by_the_real_server() {
    let mut ours = String::new();
    for rule in ANSWERS.lines().filter(|line| !line.starts_with(' ')) {
        ours.push_str(&format!("{rule}\n{}", answer(rule)));
    }
    let differ = ANSWERS
        .lines()
        .zip(ours.lines())
        .find(|(theirs, ours)| theirs != ours);
    assert!(ours == ANSWERS, "{differ:?}\n{}", differences(&ours));
}

/// Rules of which something else is said.
fn differences(ours: &str) -> String {
    let split = |text: &str| {
        let mut rows: Vec<(String, String)> = Vec::new();
        for line in text.lines() {
            match (line.starts_with(' '), rows.last_mut()) {
                (true, Some((_, answer))) => answer.push_str(&format!("{line}\n")),
                _ => rows.push((line.to_owned(), String::new())),
            }
        }
        rows
    };
    let rows = split(ANSWERS).into_iter().zip(split(ours));
    let rows = rows.filter(|(theirs, ours)| theirs != ours);
    let rows =
        rows.map(|((rule, theirs), (_, ours))| format!("{rule}\n  theirs\n{theirs}  ours\n{ours}"));
    rows.collect::<Vec<_>>().join("\n")
}
