//! Checks of a CustomResourceDefinition apart from its schemas, with the real server's texts.

use std::collections::BTreeSet;

use api::names;
use serde_json::Value;

use super::is_shared;
use crate::field::{FieldError, child, index};
use crate::hook;

/// Types of printer columns.
const COLUMN_TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
/// Formats of printer columns.
const COLUMN_FORMATS: &[&str] = &[
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];
/// Most selectable fields of one version.
const SELECTABLE_MAX: usize = 8;
/// What may not change once a definition is in use.
const IMMUTABLE: &str = "field is immutable";
/// Groups that belong to the Kubernetes community.
const COMMUNITY: &[&str] = &["k8s.io", "kubernetes.io"];
/// The annotation by which such a group's definition was approved.
pub(super) const APPROVAL: &str = "api-approved.kubernetes.io";

/// Checks a new definition; `schemas` is what is wrong with the schema of each version.
pub fn validate(object: &Value, schemas: &[Vec<FieldError>]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &object["spec"];
    let wanted = format!(
        "{}.{}",
        text(&spec["names"]["plural"]),
        text(&spec["group"])
    );
    let name = text(&object["metadata"]["name"]);
    if name != wanted {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", name, detail));
    }
    check_spec(spec, schemas, &mut errors);
    check_whole(object, &mut errors);
    check_approval(object, None, &mut errors);
    errors
}

/// Checks a changed definition, apart from its schemas.
pub fn validate_update(
    object: &Value,
    old: &Value,
    schemas: &[Vec<FieldError>],
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (spec, before) = (&object["spec"], &old["spec"]);
    check_spec(spec, schemas, &mut errors);
    let mut fixed = |new: &Value, old: &Value, path: &str| {
        if new != old {
            errors.push(FieldError::invalid(path, new.clone(), IMMUTABLE));
        }
    };
    if is_true(old, "Established") {
        fixed(&spec["scope"], &before["scope"], "spec.scope");
        fixed(
            &spec["names"]["kind"],
            &before["names"]["kind"],
            "spec.names.kind",
        );
    }
    fixed(&spec["group"], &before["group"], "spec.group");
    let plurals = (&spec["names"]["plural"], &before["names"]["plural"]);
    fixed(plurals.0, plurals.1, "spec.names.plural");
    check_whole(object, &mut errors);
    check_approval(object, Some(old), &mut errors);
    errors
}

/// Whether a condition of a definition holds.
pub(crate) fn is_true(object: &Value, kind: &str) -> bool {
    list(&object["status"]["conditions"])
        .iter()
        .any(|condition| condition["type"] == kind && condition["status"] == "True")
}

fn check_spec(spec: &Value, schemas: &[Vec<FieldError>], errors: &mut Vec<FieldError>) {
    let group = text(&spec["group"]);
    let found = names::check_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if !found.is_empty() {
        errors.push(FieldError::invalid("spec.group", group, found.join(",")));
    } else if !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push(FieldError::invalid("spec.group", group, detail));
    }
    one_of(
        &spec["scope"],
        "spec.scope",
        &["Cluster", "Namespaced"],
        errors,
    );
    check_versions(spec, schemas, errors);
    for key in ["plural", "singular", "kind", "listKind"] {
        if text(&spec["names"][key]).is_empty() {
            errors.push(FieldError::required(&format!("spec.names.{key}"), ""));
        }
    }
    check_names(&spec["names"], "spec.names", errors);
    check_shared(spec, schemas, errors);
    check_conversion(&spec["conversion"], "spec.conversion", errors);
}

/// What needs the whole definition.
fn check_whole(object: &Value, errors: &mut Vec<FieldError>) {
    let spec = &object["spec"];
    check_stored(object, errors);
    if spec["preserveUnknownFields"] == true {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        let at = "spec.preserveUnknownFields";
        errors.push(FieldError::invalid(at, true, detail));
    }
}

fn check_versions(spec: &Value, schemas: &[Vec<FieldError>], errors: &mut Vec<FieldError>) {
    let versions = list(&spec["versions"]);
    for (position, version) in versions.iter().enumerate() {
        let at = index("spec.versions", position);
        if !version["schema"]["openAPIV3Schema"].is_object() {
            let at = child(&at, "schema.openAPIV3Schema");
            errors.push(FieldError::required(&at, ""));
        }
    }
    let (mut seen, mut is_unique) = (BTreeSet::new(), true);
    for (position, version) in versions.iter().enumerate() {
        let at = index("spec.versions", position);
        let name = text(&version["name"]);
        is_unique &= seen.insert(name);
        let found = names::check_label_1035(name);
        if !found.is_empty() {
            let at = child(&at, "name");
            errors.push(FieldError::invalid(&at, name, found.join(",")));
        }
        check_deprecation(version, &child(&at, "deprecationWarning"), errors);
        if !is_shared(spec, "schema") {
            errors.extend(schemas.get(position).into_iter().flatten().cloned());
        }
        check_version(spec, version, &at, errors);
    }
    if !is_unique {
        let detail = "must contain unique version names";
        errors.push(FieldError::raw(
            "spec.versions",
            &super::shown::versions(spec),
            detail,
        ));
    }
    if versions.iter().filter(|one| one["storage"] == true).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::raw(
            "spec.versions",
            &super::shown::versions(spec),
            detail,
        ));
    }
}

/// What a version says for itself.
fn check_version(spec: &Value, version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let parts = [
        "subresources",
        "additionalPrinterColumns",
        "selectableFields",
    ];
    for part in parts.into_iter().filter(|part| !is_shared(spec, part)) {
        check_part(version, part, at, errors);
    }
}

/// What all versions say alike.
fn check_shared(spec: &Value, schemas: &[Vec<FieldError>], errors: &mut Vec<FieldError>) {
    if is_shared(spec, "schema") {
        errors.extend(schemas.first().into_iter().flatten().cloned());
    }
    let parts = [
        "subresources",
        "additionalPrinterColumns",
        "selectableFields",
    ];
    for part in parts.into_iter().filter(|part| is_shared(spec, part)) {
        check_part(&spec["versions"][0], part, "spec", errors);
    }
}

fn check_part(version: &Value, part: &str, at: &str, errors: &mut Vec<FieldError>) {
    match part {
        "subresources" => {
            let scale = &version["subresources"]["scale"];
            if scale.is_object() {
                check_scale(scale, &child(at, "subresources.scale"), errors);
            }
        }
        "additionalPrinterColumns" => {
            for (position, column) in list(&version[part]).iter().enumerate() {
                check_column(column, &index(&child(at, part), position), errors);
            }
        }
        _ => check_selectable(version, &child(at, part), errors),
    }
}

fn check_deprecation(version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let Some(warning) = version["deprecationWarning"].as_str() else {
        return;
    };
    let mut wrong = |detail: String| errors.push(FieldError::invalid(at, warning, detail));
    if version["deprecated"] != true {
        return wrong("can only be set for deprecated versions".to_owned());
    }
    if warning.len() > 256 {
        wrong("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        wrong("must not be an empty string".to_owned());
    }
    if let Some((at, _)) = warning
        .char_indices()
        .find(|(_, letter)| letter.is_control() || (letter.is_whitespace() && *letter != ' '))
    {
        wrong(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {at}"
        ));
    }
}

fn check_scale(scale: &Value, at: &str, errors: &mut Vec<FieldError>) {
    for (key, prefix) in [
        ("specReplicasPath", ".spec"),
        ("statusReplicasPath", ".status"),
    ] {
        let (path, at) = (text(&scale[key]), child(at, key));
        if path.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if is_simple_path(path, &at, errors) && !path.starts_with(&format!("{prefix}.")) {
            let detail = format!("should be a json path under {prefix}");
            errors.push(FieldError::invalid(&at, path, detail));
        }
    }
    let (path, at) = (
        text(&scale["labelSelectorPath"]),
        child(at, "labelSelectorPath"),
    );
    if !path.is_empty()
        && is_simple_path(path, &at, errors)
        && !path.starts_with(".spec.")
        && !path.starts_with(".status.")
    {
        let detail = "should be a json path under either .spec or .status";
        errors.push(FieldError::invalid(&at, path, detail));
    }
}

fn is_simple_path(path: &str, at: &str, errors: &mut Vec<FieldError>) -> bool {
    if path.starts_with('.') {
        return true;
    }
    let detail = "must be a simple json path starting with .";
    errors.push(FieldError::invalid(at, path, detail));
    false
}

fn check_column(column: &Value, at: &str, errors: &mut Vec<FieldError>) {
    if text(&column["name"]).is_empty() {
        errors.push(FieldError::required(&child(at, "name"), ""));
    }
    let kind = text(&column["type"]);
    let one_of = format!("must be one of {}", COLUMN_TYPES.join(","));
    if kind.is_empty() {
        errors.push(FieldError::required(&child(at, "type"), one_of));
    } else if !COLUMN_TYPES.contains(&kind) {
        errors.push(FieldError::invalid(&child(at, "type"), kind, one_of));
    }
    let format = text(&column["format"]);
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
        errors.push(FieldError::invalid(&child(at, "format"), format, detail));
    }
    let (path, at) = (text(&column["jsonPath"]), child(at, "JSONPath"));
    if path.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else {
        is_simple_path(path, &at, errors);
    }
}

fn check_selectable(version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let fields = list(&version["selectableFields"]);
    let schema = &version["schema"]["openAPIV3Schema"];
    let mut seen = BTreeSet::new();
    for (position, row) in fields.iter().enumerate() {
        let (path, at) = (
            text(&row["jsonPath"]),
            child(&index(at, position), "jsonPath"),
        );
        if path.is_empty() {
            errors.push(FieldError::required(&at, ""));
            continue;
        }
        let found = match field_at(schema, path) {
            Ok(found) => found,
            Err(why) => {
                let detail = format!("is an invalid path: {why}");
                errors.push(FieldError::invalid(&at, path, detail));
                continue;
            }
        };
        let path_text = path.trim_start_matches('.');
        if path_text == "metadata" || path_text.starts_with("metadata.") {
            let detail = "must not point to fields in metadata";
            errors.push(FieldError::invalid(&at, path, detail));
        }
        if !matches!(text(&found["type"]), "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(&at, path, detail));
        }
        if !seen.insert(path) {
            errors.push(FieldError::duplicate(&at, path));
        }
    }
    if seen.len() > SELECTABLE_MAX {
        errors.push(FieldError::too_many(at, seen.len(), SELECTABLE_MAX as i64));
    }
}

/// The schema of the field that a dotted path names.
fn field_at<'a>(schema: &'a Value, path: &str) -> Result<&'a Value, String> {
    let mut at = schema;
    let inner = path.strip_prefix('.').ok_or_else(|| {
        format!(
            "expected [ or . but got: {}",
            path.split('.').next().unwrap_or(path)
        )
    })?;
    for name in inner.split('.') {
        if name.is_empty() {
            return Err("unexpected end of JSON path".to_owned());
        }
        if name.contains('[') {
            return Err("array notation is not allowed".to_owned());
        }
        at = &at["properties"][name];
        if !at.is_object() {
            return Err("does not refer to a valid field".to_owned());
        }
    }
    Ok(at)
}

/// Checks names, of a spec or as they were accepted.
fn check_names(names_of: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let check = |given: &str, at: &str, errors: &mut Vec<FieldError>| {
        let found = names::check_label_1035(given);
        if !given.is_empty() && !found.is_empty() {
            errors.push(FieldError::invalid(at, given, found.join(",")));
        }
    };
    for key in ["plural", "singular"] {
        check(text(&names_of[key]), &child(at, key), errors);
    }
    for key in ["kind", "listKind"] {
        let given = text(&names_of[key]);
        let found = names::check_label_1035(&given.to_lowercase());
        if !given.is_empty() && !found.is_empty() {
            let detail = format!(
                "may have mixed case, but should otherwise match: {}",
                found.join(",")
            );
            errors.push(FieldError::invalid(&child(at, key), given, detail));
        }
    }
    let each = |key: &str, errors: &mut Vec<FieldError>| {
        for (position, name) in list(&names_of[key]).iter().enumerate() {
            let at = index(&child(at, key), position);
            let found = names::check_label_1035(text(name));
            if !found.is_empty() {
                errors.push(FieldError::invalid(&at, text(name), found.join(",")));
            }
        }
    };
    each("shortNames", errors);
    let (kind, list_kind) = (text(&names_of["kind"]), text(&names_of["listKind"]));
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(
            &child(at, "listKind"),
            list_kind,
            detail,
        ));
    }
    each("categories", errors);
}

fn check_conversion(conversion: &Value, at: &str, errors: &mut Vec<FieldError>) {
    if conversion.is_null() {
        return;
    }
    one_of(
        &conversion["strategy"],
        &child(at, "strategy"),
        &["None", "Webhook"],
        errors,
    );
    // The real server speaks of the names that these fields have inside of it.
    let (client_at, versions_at) = (
        child(at, "webhookClientConfig"),
        child(at, "conversionReviewVersions"),
    );
    let webhook = &conversion["webhook"];
    let client = &webhook["clientConfig"];
    if conversion["strategy"] != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if !client.is_null() {
            errors.push(FieldError::forbidden(&client_at, detail));
        }
        if !list(&webhook["conversionReviewVersions"]).is_empty() {
            errors.push(FieldError::forbidden(&versions_at, detail));
        }
        return;
    }
    if client.is_null() {
        let detail = "required when strategy is set to Webhook";
        errors.push(FieldError::required(&client_at, detail));
    } else {
        hook::check_client(client, &client_at, errors);
    }
    if list(&webhook["conversionReviewVersions"]).is_empty() {
        errors.push(FieldError::required(&versions_at, ""));
    } else {
        hook::check_versions(webhook, &versions_at, errors);
    }
}

/// Every version in which objects may be stored must still be there.
fn check_stored(object: &Value, errors: &mut Vec<FieldError>) {
    let at = "status.storedVersions";
    let stored = &object["status"]["storedVersions"];
    if list(stored).is_empty() {
        let detail = "must have at least one stored version";
        errors.push(FieldError::raw(at, "null", detail));
        return;
    }
    let versions = list(&object["spec"]["versions"]);
    let mut seen = BTreeSet::new();
    for version in versions {
        let name = text(&version["name"]);
        let is_stored = list(stored).contains(&version["name"]);
        // One that stands here twice is looked for twice, and found once.
        if !(is_stored && seen.insert(name)) && version["storage"] == true {
            let detail = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(at, stored.clone(), detail));
        }
    }
    for (position, name) in list(stored).iter().enumerate() {
        if !versions.iter().any(|version| version["name"] == *name) {
            let name = text(name);
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            errors.push(FieldError::invalid(&index(at, position), name, detail));
        }
    }
}

/// Where a definition stands with the community's approval; `None` for groups that need none.
pub(crate) fn approval(object: &Value) -> Option<(&'static str, &'static str, String)> {
    let group = text(&object["spec"]["group"]);
    let is_community = COMMUNITY
        .iter()
        .any(|domain| group == *domain || group.ends_with(&format!(".{domain}")));
    if !is_community {
        return None;
    }
    Some(match object["metadata"]["annotations"][APPROVAL].as_str() {
        None | Some("") => (
            "False",
            "MissingAnnotation",
            format!(
                "protected groups must have approval annotation {APPROVAL:?}, see https://github.com/kubernetes/enhancements/pull/1111"
            ),
        ),
        Some(given) if given.starts_with("unapproved") => (
            "False",
            "UnapprovedAnnotation",
            format!("not approved: {given:?}"),
        ),
        Some(given) if given.contains("://") => {
            ("True", "ApprovedAnnotation", format!("approved in {given}"))
        }
        Some(_) => (
            "False",
            "InvalidAnnotation",
            format!(
                "protected groups must have approval annotation {APPROVAL:?} with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111"
            ),
        ),
    })
}

fn check_approval(object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let Some((_, reason, message)) = approval(object) else {
        return;
    };
    if old
        .and_then(approval)
        .is_some_and(|(_, before, _)| before == reason)
    {
        return;
    }
    let at = format!("metadata.annotations[{APPROVAL}]");
    match reason {
        "MissingAnnotation" => errors.push(FieldError::required(&at, message)),
        "InvalidAnnotation" => {
            let given = object["metadata"]["annotations"][APPROVAL].clone();
            errors.push(FieldError::invalid(&at, given, message));
        }
        _ => {}
    }
}

fn one_of(value: &Value, at: &str, known: &[&str], errors: &mut Vec<FieldError>) {
    match text(value) {
        "" => errors.push(FieldError::required(at, "")),
        given if known.contains(&given) => {}
        given => errors.push(FieldError::not_supported(at, given, known)),
    }
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
