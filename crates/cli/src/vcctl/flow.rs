//! `vcctl jobflow …` and `vcctl jobtemplate …`: the same commands for two kinds.

use std::fmt::Write;

use anyhow::bail;
use api::time::Time;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::age;
use super::told::{Column, Form, Manner, NOTHING, Told, widened, written};
use crate::manifest;
use crate::rest::{self, Place, Rest, text};

/// The API of flows and templates.
const FLOW: &str = "/apis/flow.volcano.sh/v1alpha1";

/// One of the commands.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Request {
    /// create what a file holds
    Create(File),
    /// delete one by its name, or what a file holds
    Delete(Chosen),
    /// show one, or all of a namespace, whole
    Describe(Named),
    /// show one in a line
    Get(Named),
    /// list those of a namespace
    List(List),
}

/// A file.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct File {
    /// the yaml file (- for standard input)
    #[arg(short, long = "file", alias = "filename", default_value = "")]
    filename: String,
}

/// One by its name.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct Named {
    /// the namespace
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// the name
    #[arg(short = 'N', long, default_value = "")]
    name: String,
}

/// One by its name, or those of a file.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct Chosen {
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    file: File,
}

/// Which to list.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct List {
    /// the namespace
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// list those of all namespaces
    #[arg(long)]
    all_namespaces: bool,
}

/// What differs between the two kinds.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    kind: &'static str,
    plural: &'static str,
    /// The group of its commands.
    word: &'static str,
    /// As upstream's sentences have it.
    noun: &'static str,
}

/// Flows.
pub static FLOWS: Family = Family {
    kind: "JobFlow",
    plural: "jobflows",
    word: "jobflow",
    noun: "jobflow",
};
/// Templates.
pub static TEMPLATES: Family = Family {
    kind: "JobTemplate",
    plural: "jobtemplates",
    word: "jobtemplate",
    noun: "job template",
};

impl Request {
    pub(super) fn shows_objects(&self) -> bool {
        match self {
            Request::Describe(_) | Request::Get(_) | Request::List(_) => true,
            Request::Create(_) | Request::Delete(_) => false,
        }
    }
}

impl Family {
    fn collection(&self, namespace: &str) -> anyhow::Result<String> {
        Ok(rest::collection(FLOW, namespace, self.plural)?)
    }

    /// What failed, in upstream's words: the command, then the group that it stands in.
    pub(super) fn action(&self, request: &Request) -> String {
        let deed = match request {
            Request::Create(_) => "create",
            Request::Delete(_) => "delete",
            Request::Describe(_) => "describe",
            Request::Get(_) => "get",
            Request::List(_) => "list",
        };
        format!("{deed} {}", self.word)
    }

    /// Where a list's objects are.
    pub(super) fn listed(&self, list: &List) -> anyhow::Result<String> {
        let namespace = match list.all_namespaces {
            true => "",
            false => &list.namespace,
        };
        Ok(rest::listed(FLOW, namespace, self.plural)?)
    }

    pub(super) async fn answer(
        &self,
        request: &Request,
        manner: Manner,
        rest: &Rest,
    ) -> anyhow::Result<Told> {
        match request {
            Request::Create(file) => self.create(file, rest).await,
            Request::Delete(chosen) => self.delete(chosen, rest).await,
            Request::Get(named) => {
                let object = rest.get(&self.place(named)?).await?;
                Ok(self.told(vec![object], manner).of_one())
            }
            Request::Describe(named) if named.name.is_empty() => {
                let objects = rest
                    .list(&rest::listed(FLOW, &named.namespace, self.plural)?)
                    .await?;
                Ok(Told::Text(described(&objects, manner.form)?))
            }
            Request::Describe(named) => {
                let object = rest.get(&self.place(named)?).await?;
                Ok(Told::Text(written(&object, manner.form)?))
            }
            Request::List(list) => {
                let objects = rest.list(&self.listed(list)?).await?;
                Ok(self.told(objects, manner))
            }
        }
    }

    fn place(&self, named: &Named) -> anyhow::Result<Place> {
        if named.name.is_empty() {
            bail!(
                "name is mandatory to get the particular {} details",
                self.noun
            );
        }
        Ok(Place {
            collection: self.collection(&named.namespace)?,
            name: named.name.clone(),
        })
    }

    /// The objects of a file, all of them of this kind.
    fn read(&self, file: &File) -> anyhow::Result<Vec<Value>> {
        if file.filename.is_empty() {
            bail!("a file is mandatory: --file or -f");
        }
        let documents = manifest::read(std::slice::from_ref(&file.filename));
        let documents = documents.map_err(|mistakes| {
            let told: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
            anyhow::anyhow!("{}", told.join("\n"))
        })?;
        if let Some(other) = documents
            .iter()
            .find(|it| text(&it.object, &["kind"]) != self.kind)
        {
            bail!("{} is no {}", other.title(), self.kind);
        }
        Ok(documents
            .into_iter()
            .map(|document| document.object)
            .collect())
    }

    /// Creates one after another, and goes on after a failure.
    async fn create(&self, file: &File, rest: &Rest) -> anyhow::Result<Told> {
        let mut deeds = Vec::new();
        for object in self.read(file)? {
            let made = match self.collection(namespace(&object)) {
                Ok(collection) => rest.create(&collection, &object).await,
                Err(error) => Err(error),
            };
            deeds.push(match made {
                Ok(_) => Ok(format!("Created {}: {}", self.kind, self.title(&object))),
                Err(error) => Err(format!("Failed to create {}: {error:#}", self.kind)),
            });
        }
        Ok(Told::OneByOne(deeds))
    }

    /// Deletes what is named, or one after another of a file, and goes on after a failure.
    async fn delete(&self, chosen: &Chosen, rest: &Rest) -> anyhow::Result<Told> {
        if chosen.file.filename.is_empty() {
            if chosen.named.name.is_empty() {
                bail!("{} name must be specified", self.noun);
            }
            let place = self.place(&chosen.named)?;
            return Ok(Told::Text(self.deleted(&place, rest).await?));
        }
        let mut deeds = Vec::new();
        for object in self.read(&chosen.file)? {
            let deleted = match self.place_of(&object) {
                Ok(place) => self.deleted(&place, rest).await,
                Err(error) => Err(error),
            };
            deeds.push(
                deleted.map_err(|error| format!("Failed to delete {}: {error:#}", self.kind)),
            );
        }
        Ok(Told::OneByOne(deeds))
    }

    /// Deletes one, and says so.
    async fn deleted(&self, place: &Place, rest: &Rest) -> anyhow::Result<String> {
        let object = rest.get(place).await?;
        rest.delete(place).await?;
        Ok(format!("Deleted {}: {}", self.kind, self.title(&object)))
    }

    fn place_of(&self, object: &Value) -> anyhow::Result<Place> {
        Ok(Place {
            collection: self.collection(namespace(object))?,
            name: text(object, &["metadata", "name"]).to_owned(),
        })
    }

    fn title(&self, object: &Value) -> String {
        format!(
            "{}/{}",
            namespace(object),
            text(object, &["metadata", "name"])
        )
    }

    fn told(&self, objects: Vec<Value>, manner: Manner) -> Told {
        let now = (*self == FLOWS).then_some(manner.now);
        let mut table = table(&objects, now);
        if manner.form == Form::Wide {
            let columns: &[Column] = match now {
                Some(_) => &[
                    ("Completed", |flow| count(flow, "completedJobs")),
                    ("Running", |flow| count(flow, "runningJobs")),
                    ("Failed", |flow| count(flow, "failedJobs")),
                ],
                None => &[
                    ("Tasks", |template| tasks(template).count().to_string()),
                    ("Pods", |template| pods(template).to_string()),
                    ("Jobs", |template| count(template, "jobDependsOnList")),
                ],
            };
            table = widened(&table, &objects, columns);
        }
        Told::Objects { objects, table }
    }
}

/// All of them whole, with an empty line between.
fn described(objects: &[Value], form: Form) -> anyhow::Result<String> {
    if objects.is_empty() {
        return Ok(NOTHING.to_owned());
    }
    let mut parts = Vec::new();
    for object in objects {
        parts.push(written(object, form)?.trim_end().to_owned());
    }
    Ok(parts.join("\n\n"))
}

fn tasks(template: &Value) -> impl Iterator<Item = &Value> {
    template["spec"]["tasks"].as_array().into_iter().flatten()
}

/// How many pods a job of this template has; a task that does not say how many has none.
fn pods(template: &Value) -> i64 {
    let replicas = tasks(template).map(|task| task["replicas"].as_i64().unwrap_or(0));
    replicas.fold(0, i64::saturating_add)
}

/// How many names stand in this list of a status.
fn count(flow: &Value, list: &str) -> String {
    let names = flow["status"][list].as_array();
    names.map_or(0, Vec::len).to_string()
}

fn namespace(object: &Value) -> &str {
    match text(object, &["metadata", "namespace"]) {
        "" => "default",
        namespace => namespace,
    }
}

/// The table; a column is as wide as its longest word, and four more. What has a state is told with it and its
/// age at that time.
fn table(objects: &[Value], aged: Option<Time>) -> String {
    if objects.is_empty() {
        return NOTHING.to_owned();
    }
    let heading: &[&str] = match aged {
        Some(_) => &["Name", "Namespace", "Phase", "Age"],
        None => &["Name", "Namespace"],
    };
    let mut rows = vec![
        heading
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>(),
    ];
    for object in objects {
        let mut row = vec![
            text(object, &["metadata", "name"]).to_owned(),
            namespace(object).to_owned(),
        ];
        if let Some(now) = aged {
            row.push(text(object, &["status", "state", "phase"]).to_owned());
            row.push(age(text(object, &["metadata", "creationTimestamp"]), now));
        }
        rows.push(row);
    }
    let widths: Vec<usize> = (0..heading.len())
        .map(|at| rows.iter().map(|row| row[at].len()).max().unwrap_or(0) + 4)
        .collect();
    let mut out = String::new();
    for row in rows {
        for (cell, width) in row.iter().zip(&widths) {
            // Writing to a String cannot fail.
            let _ = write!(out, "{cell:<width$}");
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_one_kind_only() {
        let path = std::env::temp_dir().join(format!("katmai-flows-{}.yaml", std::process::id()));
        let flow = "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {name: a}\n";
        std::fs::write(&path, format!("{flow}---\n{flow}")).expect("a scratch file can be written");
        let file = File {
            filename: path.display().to_string(),
        };
        assert_eq!(FLOWS.read(&file).expect("they are flows").len(), 2);
        let error = TEMPLATES
            .read(&file)
            .expect_err("they are no templates")
            .to_string();
        assert!(error.contains("is no JobTemplate"), "{error}");
        std::fs::remove_file(&path).expect("it was made just now");
        assert!(FLOWS.read(&file).is_err());
    }
}
