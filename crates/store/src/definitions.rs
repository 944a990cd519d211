//! CustomResourceDefinitions as objects: what creating, changing and deleting one does.

use api::time::Time;
use serde_json::{Value, json};

use crate::crd::{self, Crd};
use crate::draft::{Draft, Serving};
use crate::status::Outcome;
use crate::store::{DEFINITIONS, Store};
use crate::strategy::Part;
use crate::write::{Writing, text};

impl Store {
    /// The last word on an object about to be created: a definition begins to be served.
    pub(crate) fn finish_create(
        &mut self,
        writing: &Writing<'_>,
        object: &mut Value,
        draft: &mut Draft,
    ) -> Outcome<()> {
        if writing.row.shelf.as_ref() == "batch/jobs" {
            crate::validation::label_job(object);
        }
        if writing.row.shelf.as_ref() != DEFINITIONS {
            return Ok(());
        }
        let crd = self.compile(writing, object)?;
        object["status"] = json!({});
        establish(object, writing.now);
        draft.servings.push(Serving::Begin(Box::new(crd)));
        Ok(())
    }

    /// The last word on an object about to be changed.
    pub(crate) fn finish_update(
        &mut self,
        writing: &Writing<'_>,
        object: &mut Value,
        old: &Value,
        draft: &mut Draft,
    ) -> Outcome<()> {
        if writing.row.shelf.as_ref() != DEFINITIONS || writing.part != Part::Whole {
            return Ok(());
        }
        if object["spec"] == old["spec"] {
            return Ok(());
        }
        let crd = self.compile(writing, object)?;
        establish(object, writing.now);
        draft.servings.push(Serving::Begin(Box::new(crd)));
        Ok(())
    }

    fn compile(&self, writing: &Writing<'_>, object: &mut Value) -> Outcome<Crd> {
        crd::default(object);
        Crd::from_object(object, &self.wire)
            .map_err(|errors| writing.invalid(&text(&object["metadata"]["name"]), &errors))
    }
}

/// Writes the status of a definition whose names are accepted and which is served.
pub(crate) fn establish(object: &mut Value, now: Time) {
    let names = object["spec"]["names"].clone();
    let storage = object["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .unwrap_or_default();
    let status = &mut object["status"];
    status["acceptedNames"] = names;
    let mut stored: Vec<Value> = status["storedVersions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    if !stored.contains(&storage) {
        stored.push(storage);
    }
    status["storedVersions"] = Value::Array(stored);
    if status["conditions"].as_array().is_none_or(Vec::is_empty) {
        let condition = |kind: &str, reason: &str, message: &str| {
            json!({
                "type": kind,
                "status": "True",
                "lastTransitionTime": now.seconds_text(),
                "reason": reason,
                "message": message,
            })
        };
        status["conditions"] = json!([
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition(
                "Established",
                "InitialNamesAccepted",
                "the initial names have been accepted"
            ),
        ]);
    }
}
