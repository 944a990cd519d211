//! What is measured, in the words of both shapes.
//!
//! The older shape has other names and no `target` or `current` inside; what kind of target it is
//! follows from which of its amounts are there.

use serde_json::{Map, Value, json};

use super::{list_text, named, object_text, picked};
use crate::field::go_json;

/// A field of a source of the older shape, in the order in which it writes them.
pub(super) struct Field {
    /// Its name there.
    old: &'static str,
    /// Where it stands in the newer shape.
    new: &'static [&'static str],
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    /// Written even if it is empty.
    Text,
    /// Written even if it is zero.
    Amount,
    /// An amount or a number that may be missing.
    Option,
    /// Which object is measured.
    Reference,
    /// Which metrics of a name are meant.
    Selector,
}

const fn field(old: &'static str, new: &'static [&'static str], what: What) -> Field {
    Field { old, new, what }
}

/// A source: its field, and the fields inside.
pub(super) type Source = (&'static str, &'static [Field]);

const NAME: &[&str] = &["metric", "name"];
const SELECTOR: &[&str] = &["metric", "selector"];

/// Sources of what is wanted.
pub(super) const SPECS: &[Source] = &[
    (
        "object",
        &[
            field("target", &["describedObject"], What::Reference),
            field("metricName", NAME, What::Text),
            field("targetValue", &["target", "value"], What::Amount),
            field("selector", SELECTOR, What::Selector),
            field("averageValue", &["target", "averageValue"], What::Option),
        ],
    ),
    (
        "pods",
        &[
            field("metricName", NAME, What::Text),
            field(
                "targetAverageValue",
                &["target", "averageValue"],
                What::Amount,
            ),
            field("selector", SELECTOR, What::Selector),
        ],
    ),
    ("resource", &[FIELD_NAME, WANTED_PERCENT, WANTED_AVERAGE]),
    (
        "containerResource",
        &[FIELD_NAME, WANTED_PERCENT, WANTED_AVERAGE, FIELD_CONTAINER],
    ),
    (
        "external",
        &[
            field("metricName", NAME, What::Text),
            field("metricSelector", SELECTOR, What::Selector),
            field("targetValue", &["target", "value"], What::Option),
            WANTED_AVERAGE,
        ],
    ),
];

/// Sources of what is.
pub(super) const STATUSES: &[Source] = &[
    (
        "object",
        &[
            field("target", &["describedObject"], What::Reference),
            field("metricName", NAME, What::Text),
            field("currentValue", &["current", "value"], What::Amount),
            field("selector", SELECTOR, What::Selector),
            field("averageValue", &["current", "averageValue"], What::Option),
        ],
    ),
    (
        "pods",
        &[
            field("metricName", NAME, What::Text),
            IS_AVERAGE,
            field("selector", SELECTOR, What::Selector),
        ],
    ),
    ("resource", &[FIELD_NAME, IS_PERCENT, IS_AVERAGE]),
    (
        "containerResource",
        &[FIELD_NAME, IS_PERCENT, IS_AVERAGE, FIELD_CONTAINER],
    ),
    (
        "external",
        &[
            field("metricName", NAME, What::Text),
            field("metricSelector", SELECTOR, What::Selector),
            field("currentValue", &["current", "value"], What::Amount),
            field(
                "currentAverageValue",
                &["current", "averageValue"],
                What::Option,
            ),
        ],
    ),
];

const FIELD_NAME: Field = field("name", &["name"], What::Text);
const FIELD_CONTAINER: Field = field("container", &["container"], What::Text);
const WANTED_PERCENT: Field = field(
    "targetAverageUtilization",
    &["target", "averageUtilization"],
    What::Option,
);
const WANTED_AVERAGE: Field = field(
    "targetAverageValue",
    &["target", "averageValue"],
    What::Option,
);
const IS_PERCENT: Field = field(
    "currentAverageUtilization",
    &["current", "averageUtilization"],
    What::Option,
);
const IS_AVERAGE: Field = field(
    "currentAverageValue",
    &["current", "averageValue"],
    What::Amount,
);

const REFERENCE: &[(&str, &str)] = &[
    ("kind", "kind"),
    ("name", "name"),
    ("apiVersion", "apiVersion"),
];
const SELECTOR_FIELDS: &[(&str, &str)] = &[
    ("matchLabels", "matchLabels"),
    ("matchExpressions", "matchExpressions"),
];
const REQUIREMENT: &[(&str, &str)] = &[
    ("key", "key"),
    ("operator", "operator"),
    ("values", "values"),
];

/// A metric of the newer shape as the annotation of the older one writes it.
pub(super) fn text(metric: &Value, sources: &[Source]) -> String {
    let kind = (
        "type",
        go_json(&json!(metric["type"].as_str().unwrap_or(""))),
    );
    let told = sources.iter().filter(|(name, _)| metric[*name].is_object());
    let told = told.map(|(name, fields)| {
        let written = fields.iter().filter_map(|field| {
            let value = inner(&metric[*name], field.new);
            Some((field.old, field_text(field.what, value)?))
        });
        (*name, object_text(written))
    });
    object_text(std::iter::once(kind).chain(told))
}

fn inner<'v>(value: &'v Value, path: &[&str]) -> &'v Value {
    path.iter().fold(value, |value, name| &value[*name])
}

/// None for a field that is left out.
fn field_text(what: What, value: &Value) -> Option<String> {
    match (what, value) {
        (What::Option | What::Selector, Value::Null) => None,
        (What::Text, Value::Null) => Some("\"\"".to_owned()),
        (What::Amount, Value::Null) => Some("\"0\"".to_owned()),
        (What::Reference, _) => Some(reference_text(value)),
        (What::Selector, _) => Some(selector_text(value)),
        _ => Some(go_json(value)),
    }
}

fn reference_text(reference: &Value) -> String {
    let part = |name: &str| reference[name].as_str().unwrap_or("");
    let is_told = |name: &&str| *name != "apiVersion" || !part(name).is_empty();
    let names = REFERENCE.iter().map(|(name, _)| *name).filter(is_told);
    object_text(names.map(|name| (name, go_json(&json!(part(name))))))
}

fn selector_text(selector: &Value) -> String {
    let there = SELECTOR_FIELDS.iter().map(|(name, _)| *name);
    let there = there.filter(|name| !selector[*name].is_null());
    object_text(there.map(|name| {
        let text = match selector[name].as_array() {
            Some(list) => list_text(list.iter().map(requirement_text)),
            None => go_json(&selector[name]),
        };
        (name, text)
    }))
}

fn requirement_text(requirement: &Value) -> String {
    let is_told = |name: &&str| *name != "values" || !requirement[*name].is_null();
    let names = REQUIREMENT.iter().map(|(name, _)| *name).filter(is_told);
    object_text(names.map(|name| (name, go_json(&requirement[name]))))
}

/// What is wanted, read from the annotation of the older shape.
pub(super) fn spec(note: &Value) -> Value {
    read(note, SPECS, |source, told| {
        let target = &mut told["target"];
        let kind = match source {
            "object" => settle_object(target),
            "external" if target["value"].is_null() => "AverageValue",
            "external" => "Value",
            "pods" => "AverageValue",
            _ if target["averageUtilization"].is_null() => "AverageValue",
            _ => "Utilization",
        };
        target["type"] = json!(kind);
    })
}

/// The older shape cannot leave out the amount of an object; zero beside an average means none.
fn settle_object(target: &mut Value) -> &'static str {
    if target["averageValue"].is_null() {
        return "Value";
    }
    let is_zero = |value: &Value| {
        let text = value.as_str().unwrap_or_default();
        api::quantity::Quantity::parse(text).is_ok_and(|amount| amount.nanos() == 0)
    };
    if let Some(map) = target.as_object_mut()
        && map.get("value").is_some_and(is_zero)
    {
        map.remove("value");
    }
    "AverageValue"
}

/// What is, read from the annotation of the older shape.
pub(super) fn status(note: &Value) -> Value {
    read(note, STATUSES, |_, _| {})
}

fn read(note: &Value, sources: &[Source], settle: fn(&str, &mut Value)) -> Value {
    if !note.is_object() {
        return note.clone();
    }
    let mut metric = Map::new();
    let kind = named(note, "type");
    let kind = if kind.is_null() {
        json!("")
    } else {
        kind.clone()
    };
    metric.insert("type".to_owned(), kind);
    for (name, fields) in sources {
        let source = named(note, name);
        if source.is_null() {
            continue;
        }
        let mut told = source.clone();
        if source.is_object() {
            told = read_source(source, fields);
            settle(name, &mut told);
        }
        metric.insert((*name).to_owned(), told);
    }
    Value::Object(metric)
}

fn read_source(source: &Value, fields: &[Field]) -> Value {
    let mut told = json!({});
    for field in fields {
        let value = named(source, field.old);
        let value = match field.what {
            What::Text if value.is_null() => json!(""),
            What::Amount if value.is_null() => json!("0"),
            What::Reference if value.is_null() => json!({}),
            What::Option | What::Selector if value.is_null() => continue,
            What::Reference => picked(value, REFERENCE),
            What::Selector => read_selector(value),
            _ => value.clone(),
        };
        let place = field
            .new
            .iter()
            .fold(&mut told, |place, name| &mut place[*name]);
        *place = value;
    }
    told
}

fn read_selector(value: &Value) -> Value {
    let mut selector = picked(value, SELECTOR_FIELDS);
    let expressions = selector
        .get_mut("matchExpressions")
        .and_then(Value::as_array_mut);
    for requirement in expressions.into_iter().flatten() {
        *requirement = picked(requirement, REQUIREMENT);
    }
    selector
}
