//! The three patch types over one object.

use std::borrow::Cow;

use serde_json::Value;

use crate::applying::APPLY_TYPE;
use crate::draft::Draft;
use crate::entry::Entry;
use crate::field::{FieldError, go_quoted, go_type, go_value};
use crate::forms::Form;
use crate::json;
use crate::patch::{self, PatchError};
use crate::path::FieldValidation;
use crate::registry::Source;
use crate::request::Begin;
use crate::schema::Schema;
use crate::status::{Outcome, Refused};
use crate::store::{Admit, Store};
use crate::write::{Before, Writing, text};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// Patches of custom resources.
pub(crate) const CUSTOM_TYPES: &[&str] = &[JSON_PATCH, MERGE_PATCH, APPLY_TYPE];
/// Patches of built-in resources.
pub(crate) const BUILT_IN_TYPES: &[&str] = &[JSON_PATCH, MERGE_PATCH, STRATEGIC, APPLY_TYPE];
/// The fields of an operation of a JSON patch.
const OPERATION_FIELDS: &[&str] = &["from", "op", "path", "value"];

/// An object as a patch made it.
pub(crate) struct Patched {
    pub(crate) object: Value,
    /// What is odd about the patch itself.
    complaints: Vec<String>,
    media: &'static str,
}

impl Store {
    pub(crate) fn patch(&mut self, writing: &Writing<'_>, admit: &mut Admit<'_>) -> Outcome<Begin> {
        let mut draft = Draft::new(writing);
        // Before the object is looked for: server-side apply creates it.
        self.patch_media(writing)?;
        if writing.is_apply() {
            return self.apply(writing, admit);
        }
        let old = self.current(writing)?;
        let old_object = self.old_object(writing, &old)?;
        let before = self.seen(writing, &old, &old_object);
        let before = before.as_ref();
        let Patched {
            mut object,
            mut complaints,
            media,
        } = self.patched(writing, before, Some(&old))?;
        let name = &writing.target.name;
        let unfit = |why: String| {
            let shown = self.shown_patch(writing, before, &old);
            let error = FieldError::invalid("patch", shown, why);
            Refused::invalid("", "", "", &[error])
        };
        if !object.is_object() {
            return Err(Refused::bad_request("Invalid JSON Patch"));
        }
        complaints.extend(self.complaints(writing, &object, &[]));
        if media == STRATEGIC {
            // The object's type is known; what the patch calls it is not looked at.
            for name in ["apiVersion", "kind"] {
                object[name] = before[name].clone();
            }
        }
        if let Some(why) = self.mistyped(writing, &object) {
            return Err(unfit(why));
        }
        self.name_type(writing, &mut object)?;
        self.try_normalise(writing, &mut object).map_err(|why| {
            unfit(if media == STRATEGIC {
                as_converter(&why)
            } else {
                why
            })
        })?;
        match (complaints.is_empty(), writing.options.validation) {
            (true, _) | (_, FieldValidation::Ignore) => {}
            (_, FieldValidation::Warn) => draft.warnings.extend(complaints),
            (_, FieldValidation::Strict) => {
                let all = complaints.join(", ");
                return Err(unfit(format!("strict decoding error: {all}")));
            }
        }
        self.same_place(writing, &mut object)?;
        let uid = text(&object["metadata"]["uid"]);
        if !uid.is_empty() && uid != *old.uid() {
            // Who names an older object and its version as well is told that he comes too late.
            let version = &object["metadata"]["resourceVersion"];
            let is_other = *version != old_object["metadata"]["resourceVersion"];
            if is_other && version.as_str().is_some_and(|it| it.parse::<u64>().is_ok()) {
                return Err(Refused::modified(writing.about(name)));
            }
            let error = FieldError::invalid("metadata.uid", uid, "field is immutable");
            return Err(writing.invalid(name, &[error.clone(), error]));
        }
        let before = Before {
            entry: &old,
            object: &old_object,
        };
        let said = draft.warnings.clone();
        let done = self.replace(writing, object, before, draft, admit);
        done.map_err(|refused| refused.after(said))
    }

    /// The object that a patch is laid over: in the version of the request.
    fn seen<'o>(&self, writing: &Writing<'_>, old: &Entry, object: &'o Value) -> Cow<'o, Value> {
        let (row, version) = (&writing.row, &writing.target.version);
        let is_stored_form = **version == *row.storage_version && row.shelf_group() == &*row.group;
        if row.source == Source::Custom || is_stored_form {
            return Cow::Borrowed(object);
        }
        Cow::Owned(self.shown_value(writing.id, version, old, writing.talk))
    }

    /// The patch type of the request, if this resource takes it, and the schema that guides it.
    fn patch_media<'a>(
        &'a self,
        writing: &'a Writing<'_>,
    ) -> Outcome<(&'static str, Option<&'a Schema>)> {
        let media = writing
            .request
            .content_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim();
        let (accepted, schema) = match self.form(writing.id, &writing.target.version) {
            Form::BuiltIn(schema) => (BUILT_IN_TYPES, schema),
            Form::Custom(_) => (CUSTOM_TYPES, None),
        };
        match accepted.iter().find(|known| **known == media) {
            Some(media) => Ok((media, schema)),
            None if accepted == BUILT_IN_TYPES => Err(Refused::patch_type()),
            None => Err(Refused::media_type(accepted)),
        }
    }

    /// `before` as the body of the request patches it. Its owners are part of it only where the
    /// patch speaks of them.
    pub(crate) fn patched(
        &self,
        writing: &Writing<'_>,
        before: &Value,
        entry: Option<&Entry>,
    ) -> Outcome<Patched> {
        let request = writing.request;
        let (media, schema) = self.patch_media(writing)?;
        let body = json::read(&request.body).map_err(|why| {
            Refused::bad_request(match media {
                STRATEGIC => why,
                _ => format!("error decoding patch: {why}"),
            })
        })?;
        let patch = body.value;
        check_shape(media, &patch)?;
        let mut object = before.clone();
        if let Some(entry) = entry
            && names_owners(media, &patch)
        {
            entry.name_owners(&mut object);
        }
        let mut complaints: Vec<String> = body
            .duplicates
            .iter()
            .map(|path| format!("duplicate field {}", go_quoted(path)))
            .collect();
        if media == JSON_PATCH {
            complaints = complaints
                .into_iter()
                .chain(unknown_operands(&patch))
                .map(|text| format!("json patch {text}"))
                .collect();
        }
        let done = match media {
            JSON_PATCH => patch::json(&mut object, &patch),
            MERGE_PATCH => {
                patch::merge(&mut object, &patch);
                Ok(())
            }
            _ => match schema {
                Some(schema) => patch::strategic(&mut object, &patch, schema.root()),
                None => Ok(()),
            },
        };
        done.map_err(|error| match error {
            PatchError::Failed(text) => Refused::plain(text),
            PatchError::Malformed(text) => Refused::bad_request(text),
            PatchError::TooLarge(text) => Refused::too_large_because(text),
            PatchError::Unprocessable(_) => Refused::unfit_patch(),
        })?;
        Ok(Patched {
            object,
            complaints,
            media,
        })
    }

    /// What a refusal shows of a patch: the patch itself where it was strategic, else the object
    /// that it made.
    fn shown_patch(&self, writing: &Writing<'_>, before: &Value, old: &Entry) -> String {
        match self.patched(writing, before, Some(old)) {
            Ok(patched) if patched.media == STRATEGIC => {
                let patch = json::read(&writing.request.body);
                patch.map(|body| go_value(&body.value)).unwrap_or_default()
            }
            Ok(mut patched) => {
                old.name_owners(&mut patched.object);
                let touches = names_metadata(patched.media, &writing.request.body);
                shown_object(
                    &patched.object,
                    !touches && writing.row.source == Source::BuiltIn,
                )
            }
            Err(refused) => refused.message().to_owned(),
        }
    }
}

/// Fields of metadata in the order of Go's struct.
const METADATA: &[&str] = &[
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// Whether a patch goes into the metadata: that part is then written anew.
fn names_metadata(media: &str, body: &[u8]) -> bool {
    let Ok(body) = json::read(body) else {
        return false;
    };
    match (media, body.value.as_array()) {
        (JSON_PATCH, Some(operations)) => operations.iter().any(|operation| {
            let path = operation["path"].as_str().unwrap_or_default();
            path.is_empty() || path.starts_with("/metadata")
        }),
        _ => body.value.get("metadata").is_some(),
    }
}

/// A patched object as upstream prints it: what the patch did not touch stands as it stood.
fn shown_object(object: &Value, is_metadata_as_stored: bool) -> String {
    let (Some(map), true) = (object.as_object(), is_metadata_as_stored) else {
        return object.to_string();
    };
    let mut parts = Vec::new();
    for (key, value) in map {
        let text = match (key.as_str(), value.as_object()) {
            ("metadata", Some(meta)) => {
                let known = METADATA
                    .iter()
                    .filter_map(|key| Some((*key, meta.get(*key)?)));
                let fields = known.map(|(key, value)| format!("{}:{value}", Value::from(key)));
                format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
            }
            _ => value.to_string(),
        };
        parts.push(format!("{}:{text}", Value::from(key.as_str())));
    }
    format!("{{{}}}", parts.join(","))
}

/// A patch has the form of its type: a list of operations, or an object.
fn check_shape(media: &str, patch: &Value) -> Outcome<()> {
    let (fits, wanted) = match media {
        JSON_PATCH => (patch.is_array(), "[]handlers.jsonPatchOp"),
        _ => (
            patch.is_object() || patch.is_null(),
            "map[string]interface {}",
        ),
    };
    if fits {
        if media == MERGE_PATCH && patch.is_null() {
            return Err(Refused::bad_request("Invalid JSON Patch"));
        }
        return match media {
            JSON_PATCH => check_operations(patch),
            _ => Ok(()),
        };
    }
    let found = found_in_go(patch);
    let why = format!("json: cannot unmarshal {found} into Go value of type {wanted}");
    Err(Refused::bad_request(match media {
        STRATEGIC => why,
        _ => format!("error decoding patch: {why}"),
    }))
}

/// What Go's decoder calls a value of a type that it did not expect.
fn found_in_go(value: &Value) -> &'static str {
    match go_type(value) {
        "map[string]interface {}" => "object",
        "[]interface {}" => "array",
        "int64" | "float64" => "number",
        other => other,
    }
}

/// Operations are objects, and their names and paths are texts.
fn check_operations(patch: &Value) -> Outcome<()> {
    let wrong = |value: &Value, into: String| {
        let found = found_in_go(value);
        let why = format!("error decoding patch: json: cannot unmarshal {found} into Go {into}");
        Err(Refused::bad_request(why))
    };
    for operation in patch.as_array().into_iter().flatten() {
        let Value::Object(fields) = operation else {
            if operation.is_null() {
                continue;
            }
            return wrong(operation, "value of type handlers.jsonPatchOp".to_owned());
        };
        for (name, value) in fields {
            let is_text = matches!(value, Value::Null | Value::String(_));
            if ["from", "op", "path"].contains(&name.as_str()) && !is_text {
                return wrong(
                    value,
                    format!("struct field jsonPatchOp.{name} of type string"),
                );
            }
        }
    }
    Ok(())
}

/// Whether a patch may read or write `metadata.managedFields`.
fn names_owners(media: &str, patch: &Value) -> bool {
    if media != JSON_PATCH {
        return patch["metadata"].get("managedFields").is_some();
    }
    let operations = patch.as_array().map(Vec::as_slice).unwrap_or_default();
    operations.iter().any(|operation| {
        ["from", "path"].iter().any(|key| {
            operation[key].as_str().is_some_and(|path| {
                matches!(path, "" | "/metadata") || path.starts_with("/metadata/managedFields")
            })
        })
    })
}

/// Fields that operations of a JSON patch do not have.
fn unknown_operands(patch: &Value) -> Vec<String> {
    let operations = patch.as_array().map(Vec::as_slice).unwrap_or_default();
    let unknown = operations
        .iter()
        .enumerate()
        .flat_map(|(place, operation)| {
            let names = operation.as_object().into_iter().flatten();
            let names = names.filter(|(name, _)| !OPERATION_FIELDS.contains(&name.as_str()));
            names.map(move |(name, _)| {
                let path = go_quoted(&format!("[{place}].{name}"));
                format!("unknown field {path}")
            })
        });
    unknown.collect()
}

/// A decoding error as upstream's converter words it, which strategic patches go through.
fn as_converter(why: &str) -> String {
    let Some(rest) = why.strip_prefix("json: cannot unmarshal ") else {
        return why.to_owned();
    };
    let Some((found, wanted)) = rest.split_once(" into Go ") else {
        return why.to_owned();
    };
    let wanted = wanted.rsplit(" of type ").next().unwrap_or(wanted);
    let found = match found.split(' ').next().unwrap_or(found) {
        "number" => "int64",
        "object" => "map",
        "array" => "slice",
        other => other,
    };
    if wanted.starts_with("[]") {
        return format!("cannot restore slice from {found}");
    }
    if wanted.starts_with("map[") {
        return format!("cannot restore map from {found}");
    }
    if wanted.contains('.') {
        return format!("cannot restore struct from: {found}");
    }
    format!("unrecognized type: {wanted}")
}
