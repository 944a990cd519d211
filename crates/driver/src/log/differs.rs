//! Which settings differ between a log and something else, by name.

use std::collections::BTreeMap;

use api::token::Tokens;
use serde_json::{Map, Value};

use super::header::{Header, describe};
use crate::scheduler_conf;
use crate::settings::Settings;

/// Settings that say where and since when a process runs, not how it decides.
const PLACE: &[&str] = &["clusterCa", "heardSince", "seed", "volumesDirectory"];
/// Where the scheduler's configuration stands among the settings.
const CONFIGURATION: &str = "engine.configuration";

/// A setting by which two ways to decide differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Differs {
    /// `limits.cycleGapMs`, `engine.configuration.tiers[1].plugins`.
    pub name: String,
    /// In the log; `None` where it is not known there.
    pub logged: Option<Value>,
    /// In the other; `None` where it is not known there.
    pub other: Option<Value>,
}

impl std::fmt::Display for Differs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |value: &Option<Value>| {
            let text = value.as_ref().map(Value::to_string);
            text.unwrap_or_else(|| "not set".to_owned())
        };
        let (logged, other) = (shown(&self.logged), shown(&self.other));
        write!(f, "{}: {logged} in the log, {other} here", self.name)
    }
}

impl Header {
    /// Where the settings of the log differ from these, save for what says where a process runs.
    pub fn differs_from(&self, settings: &Settings) -> Vec<Differs> {
        let ours = describe(settings, &Tokens::blank());
        let mut all = differences("", &self.settings, &ours);
        all.retain(|one| !PLACE.contains(&&*one.name));
        all
    }

    /// Where the scheduler's configuration of the log differs from this one.
    pub fn differs_from_configuration(&self, other: &engine::Placement) -> Vec<Differs> {
        let logged = &self.settings["engine"]["configuration"];
        differences(CONFIGURATION, logged, &scheduler_conf::shown(other))
    }
}

fn differences(name: &str, logged: &Value, other: &Value) -> Vec<Differs> {
    let (mut left, mut right) = (BTreeMap::new(), BTreeMap::new());
    flatten(name, logged, &mut left);
    flatten(name, other, &mut right);
    let names: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    names
        .into_iter()
        .filter(|name| left.get(*name) != right.get(*name))
        .map(|name| Differs {
            name: name.clone(),
            logged: left.get(name).cloned(),
            other: right.get(name).cloned(),
        })
        .collect()
}

/// One line a setting. Of rows that have names there is a line with these in their order, and one
/// for each thing that a row says.
fn flatten(name: &str, value: &Value, lines: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let dot = if name.is_empty() { "" } else { "." };
                flatten(&format!("{name}{dot}{key}"), value, lines);
            }
        }
        Value::Array(rows) if rows.iter().any(Value::is_object) => {
            let names: Option<Vec<&Value>> = rows.iter().map(|row| row.get("name")).collect();
            for (at, row) in rows.iter().enumerate() {
                let word = row["name"].as_str();
                let word = word.map_or_else(|| at.to_string(), str::to_owned);
                flatten(&format!("{name}[{word}]"), &unnamed(row), lines);
            }
            if let Some(names) = names {
                lines.insert(name.to_owned(), names.into_iter().cloned().collect());
            }
        }
        _ => {
            lines.insert(name.to_owned(), value.clone());
        }
    }
}

fn unnamed(row: &Value) -> Value {
    let fields = row.as_object().cloned().unwrap_or_else(Map::new);
    let rest = fields.into_iter().filter(|(key, _)| key != "name");
    Value::Object(rest.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(logged: &Value, other: &Value) -> Vec<String> {
        let all = differences("", logged, other);
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_differs_is_told_by_its_name() {
        let logged = json!({
            "seed": 1, "controllers": ["a", "b"], "engine": null,
            "limits": { "page": 5, "old": true },
        });
        let other = json!({
            "seed": 1, "controllers": ["b"], "engine": null,
            "limits": { "page": 6, "new": "it" },
        });
        assert_eq!(
            told(&logged, &other),
            [
                r#"controllers: ["a","b"] in the log, ["b"] here"#,
                r#"limits.new: not set in the log, "it" here"#,
                "limits.old: true in the log, not set here",
                "limits.page: 5 in the log, 6 here",
            ]
        );
        assert_eq!(told(&logged, &logged), [""; 0]);
    }

    #[test]
    fn rows_with_names_differ_in_their_order_and_in_what_each_says() {
        let tiers = |first: &Value, second: &Value| {
            json!({ "tiers": [
                { "plugins": [first, second] },
                { "plugins": [{ "name": "drf" }] },
            ]})
        };
        let gang = json!({ "name": "gang", "enableJobOrder": false });
        let binpack = json!({ "name": "binpack", "arguments": { "binpack.weight": "10" } });
        let heavier = json!({ "name": "binpack", "arguments": { "binpack.weight": "20" } });
        assert_eq!(
            told(&tiers(&gang, &binpack), &tiers(&gang, &heavier)),
            [r#"tiers[0].plugins[binpack].arguments.binpack.weight: "10" in the log, "20" here"#]
        );
        assert_eq!(
            told(&tiers(&gang, &binpack), &tiers(&binpack, &gang)),
            [r#"tiers[0].plugins: ["gang","binpack"] in the log, ["binpack","gang"] here"#]
        );
    }
}
