//! How what a request found is written: as upstream's table, or as users of kubectl expect.

use std::fmt::Write;

use anyhow::Context;
use api::time::Time;
use serde_json::{Value, json};

use crate::rest::text;

/// What a list without anything says.
pub(super) const NOTHING: &str = "No resources found";

/// How to write objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// Upstream's table.
    #[default]
    Table,
    /// The same with more columns.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// `kind/name`, a line each.
    Name,
}

/// How an answer is told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// As what.
    pub(super) form: Form,
    /// From when ages are counted.
    pub(super) now: Time,
}

/// What a request found.
pub(super) enum Told {
    /// A sentence, or nothing.
    Text(String),
    /// What became of each object of a file, in its order; failures are none that upstream counts as one.
    OneByOne(Vec<Result<String, String>>),
    /// Objects, and the table that they make.
    Objects { objects: Vec<Value>, table: String },
    /// One object, and what upstream prints of it.
    Object { object: Value, text: String },
}

impl Told {
    /// What was asked for by its name is one object, and no list of one.
    pub(super) fn of_one(self) -> Told {
        match self {
            Told::Objects { mut objects, table } if objects.len() == 1 => Told::Object {
                object: objects.remove(0),
                text: table,
            },
            told => told,
        }
    }

    /// The text to print.
    pub(super) fn text(self, form: Form) -> anyhow::Result<String> {
        match (self, form) {
            (Told::OneByOne(deeds), _) => {
                let lines = deeds
                    .into_iter()
                    .map(|deed| deed.unwrap_or_else(|line| line));
                Ok(lines.collect::<Vec<_>>().join("\n"))
            }
            (Told::Text(text), _)
            | (Told::Object { text, .. }, Form::Table | Form::Wide)
            | (Told::Objects { table: text, .. }, Form::Table | Form::Wide) => Ok(text),
            (Told::Object { object, .. }, form) => written(&object, form),
            (Told::Objects { objects, .. }, Form::Name) => {
                let names = objects.iter().map(name);
                Ok(names.collect::<Vec<_>>().join("\n"))
            }
            (Told::Objects { objects, .. }, form) => {
                let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
                written(&list, form)
            }
        }
    }
}

/// One object, or a list of some, as JSON, YAML or name. As kubectl writes them: without the fields that say
/// which fields are whose, which are longer than all others.
pub(super) fn written(object: &Value, form: Form) -> anyhow::Result<String> {
    let object = &unmanaged(object.clone());
    match form {
        Form::Name => Ok(name(object)),
        Form::Json => serde_json::to_string_pretty(object).context("cannot write JSON"),
        Form::Table | Form::Wide | Form::Yaml => {
            serde_saphyr::to_string(object).context("cannot write YAML")
        }
    }
}

fn unmanaged(mut object: Value) -> Value {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        metadata.remove("managedFields");
    }
    if let Some(items) = object.get_mut("items").and_then(Value::as_array_mut) {
        for item in items {
            *item = unmanaged(item.take());
        }
    }
    object
}

fn name(object: &Value) -> String {
    let api_version = text(object, &["apiVersion"]);
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let kind = text(object, &["kind"]).to_lowercase();
    let dot = if group.is_empty() { "" } else { "." };
    format!("{kind}{dot}{group}/{}", text(object, &["metadata", "name"]))
}

/// A heading, and what stands below it for an object.
pub(super) type Column = (&'static str, fn(&Value) -> String);

/// A table with more columns on the right: a heading and a cell for each of these objects, which are those
/// of its lines. A table that says that there is nothing stays as it is.
pub(super) fn widened(table: &str, objects: &[Value], columns: &[Column]) -> String {
    let lines: Vec<&str> = table.lines().collect();
    if objects.is_empty() || lines.len() != objects.len() + 1 {
        return table.to_owned();
    }
    let mut out: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    for (heading, cell) in columns {
        let start = out.iter().map(|line| line.trim_end().chars().count()).max();
        let start = start.unwrap_or(0) + 3;
        let cells = std::iter::once((*heading).to_owned()).chain(objects.iter().map(cell));
        for (line, cell) in out.iter_mut().zip(cells) {
            let told = line.trim_end().to_owned();
            line.clear();
            // Writing to a String cannot fail.
            let _ = write!(line, "{told:<start$}{cell}");
        }
    }
    out.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, queue: &str) -> Value {
        json!({ "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
            "metadata": { "name": name }, "spec": { "queue": queue } })
    }

    #[test]
    fn objects_are_written_as_kubectl_would() {
        let objects = || Told::Objects {
            objects: vec![object("a", "q"), object("b", "")],
            table: "Name\na\nb".to_owned(),
        };
        let told = |form| objects().text(form).expect("it can be written");
        assert_eq!(told(Form::Table), "Name\na\nb");
        assert_eq!(
            told(Form::Name),
            "job.batch.volcano.sh/a\njob.batch.volcano.sh/b"
        );
        let json: Value = serde_json::from_str(&told(Form::Json)).expect("it is JSON");
        assert_eq!(json["items"][1]["metadata"]["name"], "b");
        let yaml: Value = serde_saphyr::from_str(&told(Form::Yaml)).expect("it is YAML");
        assert_eq!(yaml, json);
        let one = Told::Objects {
            objects: vec![object("a", "q")],
            table: "Name\na".to_owned(),
        };
        let one = one.of_one().text(Form::Json).expect("it can be written");
        let one: Value = serde_json::from_str(&one).expect("it is JSON");
        assert_eq!(one, object("a", "q"));
    }

    #[test]
    fn whose_which_field_is_is_not_written_as_with_kubectl() {
        let managed = |name: &str| {
            let mut object = object(name, "q");
            object["metadata"]["managedFields"] = json!([{ "manager": "m", "fieldsV1": {} }]);
            object
        };
        for form in [Form::Json, Form::Yaml] {
            let read = |told: Told| -> Value {
                let text = told.text(form).expect("it can be written");
                serde_saphyr::from_str(&text).expect("JSON is YAML, too")
            };
            let one = Told::Object {
                object: managed("a"),
                text: String::new(),
            };
            assert_eq!(read(one), object("a", "q"));
            let all = Told::Objects {
                objects: vec![managed("a"), object("b", "q")],
                table: String::new(),
            };
            let wanted = json!([object("a", "q"), object("b", "q")]);
            assert_eq!(read(all)["items"], wanted);
        }
    }

    #[test]
    fn wide_tables_have_more_columns_and_stay_aligned() {
        let objects = [object("a", "q"), object("long-name", "")];
        let table = "Name        Phase\na           Running\nlong-name   Pending   \n";
        let queue = |object: &Value| text(object, &["spec", "queue"]).to_owned();
        insta::assert_snapshot!(widened(table, &objects, &[("Queue", queue)]), @r"
        Name        Phase     Queue
        a           Running   q
        long-name   Pending   
        ");
        assert_eq!(
            widened("No resources found", &[], &[("Queue", queue)]),
            "No resources found"
        );
    }
}
