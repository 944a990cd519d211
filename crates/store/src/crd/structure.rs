//! Checks of a definition's schema: structural, complete, and free of what structural schemas do
//! not have. Texts are the real server's.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::rules::check_rules;
use crate::field::{FieldError, child, index, key};

/// Deepest schema that is looked at; the compiler refuses deeper ones.
const DEPTH_MAX: usize = 60;
const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];
/// Fields of a schema that structural schemas do not have, by their names in errors.
const UNSUPPORTED: &[&str] = &[
    "id",
    "additionalItems",
    "patternProperties",
    "definitions",
    "dependencies",
    "$ref",
];
/// What may stand at the root of a schema whose status is a subresource.
const AT_ROOT: &[&str] = &[
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "required",
    "items",
    "properties",
    "externalDocs",
    "example",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];
/// The same as the real server lists them.
const AT_ROOT_TEXT: &str = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]";

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Whether a definition's status is a subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Apart,
    Within,
}

/// Checks a version's schema at `at`.
pub(super) fn check(schema: &Value, at: &str, status: Status) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if status == Status::Apart {
        check_root(schema, at, &mut errors);
    }
    if schema["nullable"] == true {
        let detail = "nullable cannot be true at the root";
        errors.push(FieldError::forbidden(&child(at, "nullable"), detail));
    }
    let mut structural = Vec::new();
    invariants(schema, Level::Root, at, 0, &mut structural);
    complete(schema, schema, at, at, 0, &mut structural);
    structural.sort_by_key(ToString::to_string);
    errors.extend(structural);
    let mut inside = Inside::default();
    openapi(schema, at, &mut inside, 0, &mut errors);
    errors
}

fn check_root(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    if schema["type"] != "object" {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        let kind = text(&schema["type"]);
        errors.push(FieldError::invalid(&child(at, "type"), kind, detail));
        return;
    }
    let stranger = object(schema).any(|(name, _)| !AT_ROOT.contains(&name.as_str()));
    if stranger {
        let detail = format!(
            "only {AT_ROOT_TEXT} fields are allowed at the root of the schema if the status subresource is enabled"
        );
        errors.push(FieldError::invalid(at, schema.clone(), detail));
    }
}

/// What a structural schema must and must not say at each place.
fn invariants(schema: &Value, level: Level, at: &str, depth: usize, errors: &mut Vec<FieldError>) {
    if depth > DEPTH_MAX || !schema.is_object() {
        return;
    }
    let flag = |name: &str| schema[name] == true;
    let kind = text(&schema["type"]);
    if kind == "array" && !schema["items"].is_object() {
        errors.push(FieldError::required(
            &child(at, "items"),
            "must be specified",
        ));
    }
    invariants(
        &schema["items"],
        Level::Item,
        &child(at, "items"),
        depth + 1,
        errors,
    );
    for (name, inner) in object(&schema["properties"]) {
        let at = key(&child(at, "properties"), name);
        invariants(inner, Level::Field, &at, depth + 1, errors);
    }
    let additional = &schema["additionalProperties"];
    let additional_at = child(at, "additionalProperties");
    if !additional.is_null() && *additional != false {
        if level == Level::Root {
            let detail = "must not be used at the root";
            errors.push(FieldError::forbidden(&additional_at, detail));
        }
        invariants(additional, Level::Field, &additional_at, depth + 1, errors);
    }
    let (embedded, keeps) = (
        flag("x-kubernetes-embedded-resource"),
        flag("x-kubernetes-preserve-unknown-fields"),
    );
    let int_or_string = flag("x-kubernetes-int-or-string");
    for (name, on) in [
        ("x-kubernetes-preserve-unknown-fields", keeps),
        ("x-kubernetes-embedded-resource", embedded),
    ] {
        if int_or_string && on {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(&child(at, name), true, detail));
        }
    }
    values(
        schema,
        int_or_string_any_of(schema),
        int_or_string_all_of(schema),
        at,
        depth,
        errors,
    );
    check_type(schema, level, kind, at, errors);
    if embedded && !additional.is_null() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(&additional_at, detail));
    }
    check_meta(schema, level, at, errors);
    if embedded && !keeps && object(&schema["properties"]).next().is_none() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&child(at, "properties"), detail));
    }
}

fn check_type(schema: &Value, level: Level, kind: &str, at: &str, errors: &mut Vec<FieldError>) {
    let flag = |name: &str| schema[name] == true;
    let at = child(at, "type");
    if flag("x-kubernetes-embedded-resource") && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => FieldError::required(&at, detail),
            other => FieldError::invalid(&at, other, detail),
        });
    } else if kind.is_empty()
        && !flag("x-kubernetes-int-or-string")
        && !flag("x-kubernetes-preserve-unknown-fields")
    {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&at, detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(&at, kind, "must be object at the root"));
    }
}

/// `kind`, `apiVersion` and `metadata` of the object itself or of an embedded one.
fn check_meta(schema: &Value, level: Level, at: &str, errors: &mut Vec<FieldError>) {
    let properties = child(at, "properties");
    let is_object = level == Level::Root || schema["x-kubernetes-embedded-resource"] == true;
    for name in ["kind", "apiVersion"] {
        let found = &schema["properties"][name];
        if is_object && found.is_object() && found["type"] != "string" {
            let at = child(&key(&properties, name), "type");
            let kind = text(&found["type"]);
            errors.push(FieldError::invalid(&at, kind, "must be string"));
        }
    }
    let meta = &schema["properties"]["metadata"];
    if !meta.is_object() {
        return;
    }
    let at = key(&properties, "metadata");
    if is_object && meta["type"] != "object" {
        let kind = text(&meta["type"]);
        errors.push(FieldError::invalid(
            &child(&at, "type"),
            kind,
            "must be object",
        ));
    }
    if level == Level::Root {
        let named = |name: &str| matches!(name, "name" | "generateName");
        let is_plain = object(meta).all(|(name, inner)| match name.as_str() {
            "type" | "description" => true,
            "properties" => object(inner).all(|(name, _)| named(name)),
            _ => false,
        });
        if !is_plain {
            let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
            errors.push(FieldError::forbidden(&at, detail));
        }
    }
}

fn int_or_string_any_of(schema: &Value) -> bool {
    let any = list(&schema["anyOf"]);
    let is = |inner: &Value, kind: &str| {
        inner["type"] == kind && inner.as_object().is_some_and(|map| map.len() == 1)
    };
    any.len() == 2 && is(&any[0], "integer") && is(&any[1], "string")
}

fn int_or_string_all_of(schema: &Value) -> bool {
    list(&schema["allOf"])
        .first()
        .is_some_and(int_or_string_any_of)
}

/// Checks what stands under logic.
fn values(
    schema: &Value,
    skips_any: bool,
    skips_first_all: bool,
    at: &str,
    depth: usize,
    errors: &mut Vec<FieldError>,
) {
    for name in ["anyOf", "allOf", "oneOf"] {
        if name == "anyOf" && skips_any {
            continue;
        }
        for (position, inner) in list(&schema[name]).iter().enumerate() {
            let at = index(&child(at, name), position);
            let skips = name == "allOf" && position == 0 && skips_first_all;
            nested(inner, skips, &at, depth + 1, errors);
        }
    }
    nested(&schema["not"], false, &child(at, "not"), depth + 1, errors);
    if let Some(pattern) = schema["pattern"].as_str().filter(|one| !one.is_empty())
        && let Err(cause) = regex::RegexBuilder::new(pattern)
            .size_limit(1 << 20)
            .build()
    {
        let detail = format!(
            "must be a valid regular expression, but isn't: {}",
            go_regex_error(pattern, &cause)
        );
        errors.push(FieldError::invalid(&child(at, "pattern"), pattern, detail));
    }
}

/// What Go's parser says of the commonest mistakes.
fn go_regex_error(pattern: &str, cause: &regex::Error) -> String {
    let text = cause.to_string();
    let rows = [
        ("unclosed character class", "missing closing ]"),
        ("unclosed group", "missing closing )"),
        ("unopened group", "unexpected )"),
        (
            "repetition operator missing expression",
            "missing argument to repetition operator",
        ),
        ("look-around", "invalid or unsupported Perl syntax"),
        (
            "incomplete escape",
            "trailing backslash at end of expression",
        ),
    ];
    match rows.iter().find(|(ours, _)| text.contains(ours)) {
        Some((_, gos)) => format!("error parsing regexp: {gos}: `{pattern}`"),
        None => format!("error parsing regexp: {}", text.replace('\n', " ")),
    }
}

/// A schema under `allOf`, `anyOf`, `oneOf` or `not` may only restrict.
fn nested(schema: &Value, skips_any: bool, at: &str, depth: usize, errors: &mut Vec<FieldError>) {
    if depth > DEPTH_MAX || !schema.is_object() {
        return;
    }
    values(schema, skips_any, false, at, depth, errors);
    nested(
        &schema["items"],
        false,
        &child(at, "items"),
        depth + 1,
        errors,
    );
    for (name, inner) in object(&schema["properties"]) {
        let at = key(&child(at, "properties"), name);
        nested(inner, false, &at, depth + 1, errors);
    }
    const EMPTY: &str = "must be empty to be structural";
    const UNDEFINED: &str = "must be undefined to be structural";
    const FALSE: &str = "must be false to be structural";
    let rows = [
        ("type", EMPTY),
        ("additionalProperties", UNDEFINED),
        ("default", UNDEFINED),
        ("title", EMPTY),
        ("description", EMPTY),
        ("nullable", FALSE),
        ("x-kubernetes-preserve-unknown-fields", FALSE),
        ("x-kubernetes-embedded-resource", FALSE),
        ("x-kubernetes-int-or-string", FALSE),
        ("x-kubernetes-list-map-keys", EMPTY),
        ("x-kubernetes-list-type", UNDEFINED),
        ("x-kubernetes-map-type", UNDEFINED),
        ("x-kubernetes-validations", EMPTY),
    ];
    for (name, detail) in rows {
        let is_set = match &schema[name] {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(list) => !list.is_empty(),
            _ => true,
        };
        if is_set {
            errors.push(FieldError::forbidden(&child(at, name), detail));
        }
    }
    if schema["properties"]["metadata"].is_object() {
        let at = key(&child(at, "properties"), "metadata");
        let detail = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(&at, detail));
    }
}

/// Everything that logic names must also be named outside of it.
fn complete(
    logic: &Value,
    schema: &Value,
    schema_at: &str,
    logic_at: &str,
    depth: usize,
    errors: &mut Vec<FieldError>,
) {
    if depth > DEPTH_MAX {
        return;
    }
    let named = |inner: &Value, at: &str, errors: &mut Vec<FieldError>| {
        complete_nested(inner, schema, schema_at, at, depth + 1, errors);
    };
    if logic["not"].is_object() {
        named(&logic["not"], &child(logic_at, "not"), errors);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        for (position, inner) in list(&logic[name]).iter().enumerate() {
            named(inner, &index(&child(logic_at, name), position), errors);
        }
    }
}

fn complete_nested(
    logic: &Value,
    schema: &Value,
    schema_at: &str,
    logic_at: &str,
    depth: usize,
    errors: &mut Vec<FieldError>,
) {
    if depth > DEPTH_MAX || !logic.is_object() {
        return;
    }
    if !schema.is_object() {
        let detail = format!("because it is defined in {logic_at}");
        errors.push(FieldError::required(schema_at, detail));
        return;
    }
    complete(logic, schema, schema_at, logic_at, depth, errors);
    let pair = |name: &str| (child(schema_at, name), child(logic_at, name));
    let (inner_at, logic_inner_at) = pair("items");
    complete_nested(
        &logic["items"],
        &schema["items"],
        &inner_at,
        &logic_inner_at,
        depth + 1,
        errors,
    );
    let (inner_at, logic_inner_at) = pair("properties");
    for (name, inner) in object(&logic["properties"]) {
        let (at, logic_at) = (key(&inner_at, name), key(&logic_inner_at, name));
        complete_nested(
            inner,
            &schema["properties"][name],
            &at,
            &logic_at,
            depth + 1,
            errors,
        );
    }
}

/// What the place of a schema forbids.
#[derive(Clone, Default)]
struct Inside {
    /// Why defaults are forbidden.
    no_default: Option<String>,
    is_meta: bool,
}

/// What no schema of a definition may say, and how lists and maps must be declared.
fn openapi(
    schema: &Value,
    at: &str,
    inside: &mut Inside,
    depth: usize,
    errors: &mut Vec<FieldError>,
) {
    if depth > DEPTH_MAX || !schema.is_object() {
        return;
    }
    standard(schema, at, inside, errors);
    let mut inner_of = inside.clone();
    if object(&schema["properties"]).next().is_some()
        && matches!(
            schema["additionalProperties"],
            Value::Object(_) | Value::Bool(false)
        )
    {
        let at = child(at, "additionalProperties");
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(&at, detail));
    }
    if inside.is_meta {
        let why = "inside additionalProperties applying to object metadata";
        inner_of.no_default = Some(why.to_owned());
    }
    let additional_at = child(at, "additionalProperties");
    openapi(
        &schema["additionalProperties"],
        &additional_at,
        &mut inner_of,
        depth + 1,
        errors,
    );
    let is_root = depth == 0;
    let is_object = is_root || schema["x-kubernetes-embedded-resource"] == true;
    for (name, inner) in object(&schema["properties"]) {
        let mut inner_of = inside.clone();
        if is_object && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
            inner_of.is_meta = true;
            if is_root {
                inner_of.no_default = Some(format!("in top-level {name}"));
            }
        }
        let at = key(&child(at, "properties"), name);
        openapi(inner, &at, &mut inner_of, depth + 1, errors);
    }
    openapi(&schema["not"], &child(at, "not"), inside, depth + 1, errors);
    for name in ["allOf", "oneOf", "anyOf"] {
        for (position, inner) in list(&schema[name]).iter().enumerate() {
            let at = index(&child(at, name), position);
            openapi(inner, &at, inside, depth + 1, errors);
        }
    }
    openapi(
        &schema["items"],
        &child(at, "items"),
        inside,
        depth + 1,
        errors,
    );
    check_map(schema, at, errors);
    check_list(schema, at, errors);
    check_rules(schema, at, errors);
}

fn standard(schema: &Value, at: &str, inside: &Inside, errors: &mut Vec<FieldError>) {
    let kind = text(&schema["type"]);
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&child(at, "type"), kind, TYPES));
    }
    if !schema["default"].is_null()
        && let Some(why) = &inside.no_default
    {
        let detail = format!("must not be set {why}");
        errors.push(FieldError::forbidden(&child(at, "default"), detail));
    }
    for name in UNSUPPORTED {
        let is_set = match &schema[*name] {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Object(map) => !map.is_empty() || *name == "dependencies",
            _ => true,
        };
        if is_set {
            let detail = format!("{name} is not supported");
            errors.push(FieldError::forbidden(&child(at, name), detail));
        }
    }
    if kind == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(&child(at, "type"), detail));
    }
    if schema["items"].is_array() {
        let detail = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(&child(at, "items"), detail));
    }
    if inside.is_meta && schema["x-kubernetes-embedded-resource"] == true {
        let at = child(at, "x-kubernetes-embedded-resource");
        let detail = "must not be used inside of resource meta";
        errors.push(FieldError::forbidden(&at, detail));
    }
    if schema["uniqueItems"] == true {
        let detail =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(&child(at, "uniqueItems"), detail));
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == false {
        let at = child(at, "x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(&at, false, "must be true or undefined"));
    }
}

fn check_map(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let Some(map_type) = schema["x-kubernetes-map-type"].as_str() else {
        return;
    };
    wants_type(schema, at, "object", "x-kubernetes-map-type", errors);
    if !matches!(map_type, "atomic" | "granular") {
        let at = child(at, "x-kubernetes-map-type");
        errors.push(FieldError::not_supported(
            &at,
            map_type,
            &["atomic", "granular"],
        ));
    }
}

fn wants_type(schema: &Value, at: &str, wanted: &str, name: &str, errors: &mut Vec<FieldError>) {
    let kind = text(&schema["type"]);
    if kind == wanted {
        return;
    }
    let detail = format!("must be {wanted} if {name} is specified");
    let at = child(at, "type");
    errors.push(match kind {
        "" => FieldError::required(&at, detail),
        other => FieldError::invalid(&at, other, detail),
    });
}

fn check_list(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let type_at = child(at, "x-kubernetes-list-type");
    let keys_at = child(at, "x-kubernetes-list-map-keys");
    let keys = list(&schema["x-kubernetes-list-map-keys"]);
    let list_type = schema["x-kubernetes-list-type"].as_str();
    if let Some(list_type) = list_type {
        wants_type(schema, at, "array", "x-kubernetes-list-type", errors);
        if list_type == "set" && schema["type"] == "array" {
            check_set(&schema["items"], &child(at, "items"), errors);
        }
        if !matches!(list_type, "atomic" | "map" | "set") {
            let known = ["atomic", "set", "map"];
            errors.push(FieldError::not_supported(&type_at, list_type, &known));
        }
    }
    if !keys.is_empty() && list_type != Some("map") {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => FieldError::required(&type_at, detail),
            Some(other) => FieldError::invalid(&type_at, other, detail),
        });
    }
    if list_type == Some("map") {
        if keys.is_empty() {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            errors.push(FieldError::required(&keys_at, detail));
        }
        check_keys(schema, at, &keys_at, errors);
    }
    if let Some(list_type @ ("map" | "set")) = list_type
        && schema["items"]["nullable"] == true
    {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(&child(at, "items.nullable"), detail));
    }
    if list_type == Some("map") {
        check_key_values(schema, keys, &child(at, "items.properties"), errors);
    }
}

fn check_set(items: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    match text(&items["type"]) {
        "array" => {
            if let Some(inner) = items["x-kubernetes-list-type"].as_str()
                && inner != "atomic"
            {
                let at = child(at, "x-kubernetes-list-type");
                errors.push(FieldError::invalid(&at, inner, detail));
            }
        }
        "object" if items["x-kubernetes-map-type"] != "atomic" => {
            let at = child(at, "x-kubernetes-map-type");
            errors.push(FieldError::invalid(&at, Value::Null, detail));
        }
        _ => {}
    }
}

fn check_keys(schema: &Value, at: &str, keys_at: &str, errors: &mut Vec<FieldError>) {
    let items = &schema["items"];
    let items_at = child(at, "items");
    if !items.is_object() {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(&items_at, detail));
        return;
    }
    if items["type"] != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        let kind = text(&items["type"]);
        errors.push(FieldError::invalid(&child(&items_at, "type"), kind, detail));
        return;
    }
    let keys = &schema["x-kubernetes-list-map-keys"];
    let mut seen = BTreeSet::new();
    for name in list(keys).iter().map(text) {
        let found = &items["properties"][name];
        if !found.is_object() {
            let detail = "entries must all be names of item properties";
            errors.push(FieldError::invalid(keys_at, keys.clone(), detail));
        } else if matches!(text(&found["type"]), "array" | "object") {
            let at = child(&key(&child(&items_at, "properties"), name), "type");
            let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            errors.push(FieldError::invalid(&at, "object", detail));
        }
        if !seen.insert(name) {
            let detail = "must not contain duplicate entries";
            errors.push(FieldError::invalid(keys_at, keys.clone(), detail));
        }
    }
}

fn check_key_values(schema: &Value, keys: &[Value], at: &str, errors: &mut Vec<FieldError>) {
    let items = &schema["items"];
    for name in keys.iter().map(text) {
        let found = &items["properties"][name];
        if !found.is_object() {
            continue;
        }
        let at = key(at, name);
        let is_required = list(&items["required"]).iter().any(|one| one == name);
        if !is_required && found["default"].is_null() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(&child(&at, "default"), detail));
        }
        if found["nullable"] == true {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(&child(&at, "nullable"), detail));
        }
    }
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
