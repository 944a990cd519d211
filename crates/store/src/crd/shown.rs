//! Versions of a definition as the real server shows them in an error: field by field, with all that
//! is not set.

use serde_json::Value;

use super::check::list;
use super::is_shared;
use crate::field::go_json;

/// The field of a schema in the real server's program, its name in JSON, and its form.
type Row = (&'static str, &'static str, Form);

/// How a field of a schema is shown.
#[derive(Clone, Copy)]
enum Form {
    /// As it is, or null.
    Any,
    Flag,
    Items,
    List,
    Map,
    Schema,
    SchemaOrFlag,
    SchemaOrNames,
    Rules,
    Docs,
    Text,
}

const ROWS: &[Row] = &[
    ("ID", "id", Form::Text),
    ("Schema", "$schema", Form::Text),
    ("Ref", "$ref", Form::Any),
    ("Description", "description", Form::Text),
    ("Type", "type", Form::Text),
    ("Nullable", "nullable", Form::Flag),
    ("Format", "format", Form::Text),
    ("Title", "title", Form::Text),
    ("Default", "default", Form::Any),
    ("Maximum", "maximum", Form::Any),
    ("ExclusiveMaximum", "exclusiveMaximum", Form::Flag),
    ("Minimum", "minimum", Form::Any),
    ("ExclusiveMinimum", "exclusiveMinimum", Form::Flag),
    ("MaxLength", "maxLength", Form::Any),
    ("MinLength", "minLength", Form::Any),
    ("Pattern", "pattern", Form::Text),
    ("MaxItems", "maxItems", Form::Any),
    ("MinItems", "minItems", Form::Any),
    ("UniqueItems", "uniqueItems", Form::Flag),
    ("MultipleOf", "multipleOf", Form::Any),
    ("Enum", "enum", Form::Any),
    ("MaxProperties", "maxProperties", Form::Any),
    ("MinProperties", "minProperties", Form::Any),
    ("Required", "required", Form::Any),
    ("Items", "items", Form::Items),
    ("AllOf", "allOf", Form::List),
    ("OneOf", "oneOf", Form::List),
    ("AnyOf", "anyOf", Form::List),
    ("Not", "not", Form::Schema),
    ("Properties", "properties", Form::Map),
    (
        "AdditionalProperties",
        "additionalProperties",
        Form::SchemaOrFlag,
    ),
    ("PatternProperties", "patternProperties", Form::Map),
    ("Dependencies", "dependencies", Form::SchemaOrNames),
    ("AdditionalItems", "additionalItems", Form::SchemaOrFlag),
    ("Definitions", "definitions", Form::Map),
    ("ExternalDocs", "externalDocs", Form::Docs),
    ("Example", "example", Form::Any),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
        Form::Any,
    ),
    (
        "XEmbeddedResource",
        "x-kubernetes-embedded-resource",
        Form::Flag,
    ),
    ("XIntOrString", "x-kubernetes-int-or-string", Form::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Form::Any),
    ("XListType", "x-kubernetes-list-type", Form::Any),
    ("XMapType", "x-kubernetes-map-type", Form::Any),
    ("XValidations", "x-kubernetes-validations", Form::Rules),
];

/// All versions; what they have alike stands beside them, and is not shown.
pub(super) fn versions(spec: &Value) -> String {
    if spec["versions"].is_null() {
        return "null".to_owned();
    }
    let rows = list(&spec["versions"]).iter();
    let rows: Vec<String> = rows.map(|version| of_version(spec, version)).collect();
    format!("[{}]", rows.join(","))
}

fn of_version(spec: &Value, version: &Value) -> String {
    let flag = |key: &str| (version[key] == true).to_string();
    let own = |part: &str| match is_shared(spec, part) {
        true => &Value::Null,
        false => &version[part],
    };
    let whole = |value: &Value, show: &dyn Fn(&Value) -> String| match value.is_null() {
        true => "null".to_owned(),
        false => show(value),
    };
    fields([
        ("Name", text(&version["name"])),
        ("Served", flag("served")),
        ("Storage", flag("storage")),
        ("Deprecated", flag("deprecated")),
        (
            "DeprecationWarning",
            go_json(&version["deprecationWarning"]),
        ),
        (
            "Schema",
            whole(own("schema"), &|value| {
                fields([("OpenAPIV3Schema", schema(&value["openAPIV3Schema"]))])
            }),
        ),
        ("Subresources", whole(own("subresources"), &subresources)),
        (
            "AdditionalPrinterColumns",
            each(own("additionalPrinterColumns"), column),
        ),
        (
            "SelectableFields",
            each(own("selectableFields"), |row| {
                fields([("JSONPath", text(&row["jsonPath"]))])
            }),
        ),
    ])
}

fn subresources(value: &Value) -> String {
    let scale = &value["scale"];
    let scale = match scale.is_null() {
        true => "null".to_owned(),
        false => fields([
            ("SpecReplicasPath", text(&scale["specReplicasPath"])),
            ("StatusReplicasPath", text(&scale["statusReplicasPath"])),
            ("LabelSelectorPath", go_json(&scale["labelSelectorPath"])),
        ]),
    };
    let status = match value["status"].is_null() {
        true => "null",
        false => "{}",
    };
    fields([("Status", status.to_owned()), ("Scale", scale)])
}

fn column(row: &Value) -> String {
    fields([
        ("Name", text(&row["name"])),
        ("Type", text(&row["type"])),
        ("Format", text(&row["format"])),
        ("Description", text(&row["description"])),
        (
            "Priority",
            row["priority"].as_i64().unwrap_or(0).to_string(),
        ),
        ("JSONPath", text(&row["jsonPath"])),
    ])
}

fn schema(value: &Value) -> String {
    if !value.is_object() {
        return "null".to_owned();
    }
    fields(ROWS.iter().map(|(name, key, form)| {
        let value = &value[*key];
        let shown = match form {
            Form::Any => go_json(value),
            Form::Flag => (*value == true).to_string(),
            Form::Items if value.is_null() => "null".to_owned(),
            Form::Items => fields([
                ("Schema", schema(value)),
                ("JSONSchemas", each(value, schema)),
            ]),
            Form::List => each(value, schema),
            Form::Map => map(value, schema),
            Form::Schema => schema(value),
            Form::SchemaOrFlag if value.is_null() => "null".to_owned(),
            Form::SchemaOrFlag => fields([
                ("Allows", (*value != false).to_string()),
                ("Schema", schema(value)),
            ]),
            Form::SchemaOrNames => map(value, |value| {
                let names = match value.is_array() {
                    true => go_json(value),
                    false => "null".to_owned(),
                };
                fields([("Schema", schema(value)), ("Property", names)])
            }),
            Form::Rules => each(value, cel::shown_rule),
            Form::Docs if value.is_null() => "null".to_owned(),
            Form::Docs => fields([
                ("Description", text(&value["description"])),
                ("URL", text(&value["url"])),
            ]),
            Form::Text => text(value),
        };
        (*name, shown)
    }))
}

fn fields<'a>(rows: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let rows = rows.into_iter();
    let rows: Vec<String> = rows
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    format!("{{{}}}", rows.join(","))
}

fn each(value: &Value, show: impl Fn(&Value) -> String) -> String {
    match value.as_array() {
        Some(list) => format!("[{}]", list.iter().map(show).collect::<Vec<_>>().join(",")),
        None => "null".to_owned(),
    }
}

fn map(value: &Value, show: impl Fn(&Value) -> String) -> String {
    let Some(map) = value.as_object() else {
        return "null".to_owned();
    };
    let rows = map
        .iter()
        .map(|(name, value)| format!("{}:{}", go_json(&Value::from(name.as_str())), show(value)));
    format!("{{{}}}", rows.collect::<Vec<_>>().join(","))
}

/// A text that is empty where there is none.
fn text(value: &Value) -> String {
    go_json(&Value::from(value.as_str().unwrap_or_default()))
}
