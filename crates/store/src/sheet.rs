//! Objects as a Table, for people.

use std::sync::Arc;

use api::time::Time;
use serde_json::Value;

use crate::entry::Entry;
use crate::forms::Form;
use crate::path::Query;
use crate::read::include_of;
use crate::registry::{Resource, ResourceId};
use crate::status::Outcome;
use crate::store::Store;
use crate::table::{self, Headers, Include, MetaVersion, Printer};
use crate::talk::Talk;
use crate::view::Shape;
use crate::write::Writing;

/// Which table is wanted.
pub(crate) struct Sheet<'a> {
    pub(crate) id: ResourceId,
    pub(crate) row: &'a Resource,
    pub(crate) version: &'a str,
    pub(crate) include: Include,
    pub(crate) headers: Headers,
    pub(crate) form: MetaVersion,
    pub(crate) talk: &'a Talk,
    pub(crate) now: Time,
}

impl Store {
    pub(crate) fn table(&self, sheet: &Sheet<'_>, entries: &[Arc<Entry>], meta: Value) -> Value {
        let shown = |entry: &Arc<Entry>, version: &str| {
            let mut object = self.shown_value(sheet.id, version, entry, sheet.talk);
            if sheet.include != Include::Nothing {
                entry.name_owners(&mut object);
            }
            object
        };
        // Cells and metadata of autoscalers are told of the stored shape, whatever version is asked.
        let is_apart = &*sheet.row.shelf == crate::autoscaler::SHELF;
        let told = match is_apart {
            true => &sheet.row.storage_version,
            false => sheet.version,
        };
        let objects: Vec<Value> = entries.iter().map(|entry| shown(entry, told)).collect();
        let objects: Vec<&Value> = objects.iter().collect();
        let form = table::Form {
            include: sheet.include,
            headers: sheet.headers,
            version: sheet.form,
        };
        let mut table = table::render(&self.printer(sheet), &objects, sheet.now, form, meta);
        if is_apart && sheet.include == Include::Object {
            let rows = table["rows"].as_array_mut().into_iter().flatten();
            for (row, entry) in rows.zip(entries) {
                row["object"] = shown(entry, sheet.version);
            }
        }
        table
    }

    fn printer(&self, sheet: &Sheet<'_>) -> Printer {
        let row = sheet.row;
        match self.form(sheet.id, sheet.version) {
            Form::Custom(version) => Printer::custom(&version.columns),
            Form::BuiltIn(_) => {
                let columns = self
                    .wire
                    .columns(&row.group, sheet.version, &row.plural)
                    .unwrap_or_default();
                Printer::built_in(&row.plural, columns)
            }
        }
    }

    /// One object as the client of a write wants to see it.
    pub(crate) fn shown_as(&self, writing: &Writing<'_>, entry: &Arc<Entry>) -> Vec<u8> {
        match writing.view.shape {
            Shape::Whole => self.shown(writing.id, &writing.target.version, entry, writing.talk),
            Shape::Partial => {
                let shown = crate::read::partial(entry, writing.view.version);
                shown.to_string().into_bytes()
            }
            Shape::Table => {
                let sheet = Sheet {
                    id: writing.id,
                    row: &writing.row,
                    version: &writing.target.version,
                    include: include_or_default(writing.query),
                    headers: Headers::Shown,
                    form: writing.view.version,
                    talk: writing.talk,
                    now: writing.now,
                };
                let meta = serde_json::json!({ "resourceVersion": entry.revision.to_string() });
                self.table(&sheet, std::slice::from_ref(entry), meta)
                    .to_string()
                    .into_bytes()
            }
        }
    }
}

/// What rows carry; the write is done, so a strange wish is no reason to refuse any more.
fn include_or_default(query: &Query) -> Include {
    let wanted: Outcome<Include> = include_of(query);
    wanted.unwrap_or(Include::Metadata)
}
