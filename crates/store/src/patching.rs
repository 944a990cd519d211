//! The three patch types over one object.

use serde_json::Value;

use crate::applying::APPLY_TYPE;
use crate::draft::Draft;
use crate::forms::Form;
use crate::json;
use crate::patch::{self, PatchError};
use crate::request::Begin;
use crate::schema::Schema;
use crate::status::{Outcome, Refused};
use crate::store::{Admit, Store};
use crate::write::Writing;

/// Patches of custom resources.
pub(crate) const CUSTOM_TYPES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    APPLY_TYPE,
];
/// Patches of built-in resources.
pub(crate) const BUILT_IN_TYPES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    APPLY_TYPE,
];

impl Store {
    pub(crate) fn patch(&mut self, writing: &Writing<'_>, admit: &mut Admit<'_>) -> Outcome<Begin> {
        let mut draft = Draft::new(writing);
        // Before the object is looked for: server-side apply creates it.
        self.patch_media(writing)?;
        if writing.is_apply() {
            return self.apply(writing, admit);
        }
        let old = self.current(writing)?;
        let version = &writing.target.version;
        self.ready_to_show(writing.id, version, std::iter::once(&old), writing.talk)?;
        let before = self.shown_value(writing.id, version, &old, writing.talk);
        let mut object = self.patched(writing, &before)?;
        let name = &writing.target.name;
        if object["metadata"]["name"].as_str() != Some(name) {
            return Err(Refused::bad_request(format!(
                "the name of the object ({}) does not match the name on the URL ({name})",
                object["metadata"]["name"].as_str().unwrap_or_default()
            )));
        }
        self.name_type(writing, &mut object)?;
        self.complain(writing, &object, &[], &mut draft)?;
        self.normalise(writing, &mut object)?;
        self.replace(writing, object, &old, draft, admit)
    }

    /// The patch type of the request, if this resource takes it, and the schema that guides it.
    fn patch_media<'a>(
        &'a self,
        writing: &'a Writing<'_>,
    ) -> Outcome<(&'a str, Option<&'a Schema>)> {
        let media = writing
            .request
            .content_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim();
        let schema = match self.form(writing.id, &writing.target.version) {
            Form::BuiltIn(schema) => schema,
            Form::Custom(_) => None,
        };
        let accepted = if schema.is_some() {
            BUILT_IN_TYPES
        } else {
            CUSTOM_TYPES
        };
        if accepted.contains(&media) {
            Ok((media, schema))
        } else {
            Err(Refused::media_type(accepted))
        }
    }

    /// `before` as the body of the request patches it.
    pub(crate) fn patched(&self, writing: &Writing<'_>, before: &Value) -> Outcome<Value> {
        let request = writing.request;
        let (media, schema) = self.patch_media(writing)?;
        let patch = json::read(&request.body)
            .map_err(|why| Refused::bad_request(format!("error decoding patch: {why}")))?
            .value;
        let mut object = before.clone();
        let done = match media {
            "application/json-patch+json" => patch::json(&mut object, &patch),
            "application/merge-patch+json" => {
                patch::merge(&mut object, &patch);
                Ok(())
            }
            _ => match schema {
                Some(schema) => patch::strategic(&mut object, &patch, schema.root()),
                None => Ok(()),
            },
        };
        done.map_err(|error| match error {
            PatchError::Malformed(text) => Refused::bad_request(text),
            PatchError::TooLarge(text) => Refused::too_large_because(text),
            PatchError::Unprocessable(text) => Refused::unprocessable(format!(
                "the server rejected our request due to an error in our request: {text}"
            )),
        })?;
        Ok(object)
    }
}
