//! Tables: the rows that `kubectl get` prints.
//!
//! A server renders them, because it knows its kinds: built-in columns come from
//! `wire/kubernetes/columns.yaml` with a cell function each, those of custom resources from their
//! printer columns. Every column is always sent; the client shows priority 1 under `-o wide`.

mod cells;
mod core;
mod rare;
mod workload;

use api::time::Time;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::jsonpath::JsonPath;

pub use cells::human_duration;

/// A column of a built-in resource.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "(String, String, String, i32)")]
pub struct Column {
    /// Title.
    pub name: String,
    /// `string`, `integer`, `boolean`, `date`.
    pub kind: String,
    /// `name` for the column that holds the name.
    pub format: String,
    /// 1 for columns of the wide form.
    pub priority: i32,
}

impl From<(String, String, String, i32)> for Column {
    fn from((name, kind, format, priority): (String, String, String, i32)) -> Self {
        Column {
            name,
            kind,
            format,
            priority,
        }
    }
}

/// A column that a custom resource definition asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrinterColumn {
    /// Title.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean`, `date`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where the cell is found.
    pub json_path: String,
    /// Format of the type, for instance `int32`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub format: String,
    /// What it means.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// 1 for columns of the wide form.
    #[serde(default, skip_serializing_if = "is_shown_always")]
    pub priority: i32,
}

impl PrinterColumn {
    /// What the column means; without words of its own, where it comes from.
    fn meaning(&self) -> String {
        match &*self.description {
            "" => format!(
                "Custom resource definition column (in JSONPath format): {}",
                self.json_path
            ),
            given => given.to_owned(),
        }
    }
}

fn is_shown_always(priority: &i32) -> bool {
    *priority == 0
}

/// What a row carries beside its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    /// The object's metadata: the default.
    Metadata,
    /// Nothing.
    Nothing,
    /// The whole object.
    Object,
}

impl Include {
    /// Reads the `includeObject` parameter; empty is the default, `None` is unknown.
    pub fn parse(text: &str) -> Option<Include> {
        match text {
            "" | "Metadata" => Some(Include::Metadata),
            "None" => Some(Include::Nothing),
            "Object" => Some(Include::Object),
            _ => None,
        }
    }
}

/// Whether a table names its columns: later events of a watch do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headers {
    /// Named.
    Shown,
    /// Left out.
    Hidden,
}

/// Renders objects of one resource.
#[derive(Clone, Debug)]
pub struct Printer {
    columns: Vec<Value>,
    cells: Cells,
}

#[derive(Clone, Debug)]
enum Cells {
    BuiltIn {
        resource: Box<str>,
        names: Vec<Box<str>>,
    },
    Custom(Vec<(Option<JsonPath>, Box<str>)>),
}

impl Printer {
    /// For a built-in resource (`pods`); `group` tells `events` of two groups apart.
    pub fn built_in(resource: &str, columns: &[Column]) -> Printer {
        Printer {
            cells: Cells::BuiltIn {
                resource: resource.into(),
                names: columns
                    .iter()
                    .map(|column| column.name.as_str().into())
                    .collect(),
            },
            columns: columns
                .iter()
                .map(|column| {
                    definition(
                        &column.name,
                        &column.kind,
                        &column.format,
                        "",
                        column.priority,
                    )
                })
                .collect(),
        }
    }

    /// For a custom resource; without columns of its own it shows its age.
    pub fn custom(columns: &[PrinterColumn]) -> Printer {
        let mut shown = vec![definition("Name", "string", "name", "", 0)];
        let mut cells = Vec::new();
        let age = [PrinterColumn {
            name: "Age".into(),
            kind: "date".into(),
            json_path: ".metadata.creationTimestamp".into(),
            format: String::new(),
            description: String::new(),
            priority: 0,
        }];
        for column in if columns.is_empty() { &age } else { columns } {
            shown.push(definition(
                &column.name,
                &column.kind,
                &column.format,
                &column.meaning(),
                column.priority,
            ));
            let path = JsonPath::parse(&column.json_path).ok();
            cells.push((path, column.kind.as_str().into()));
        }
        Printer {
            columns: shown,
            cells: Cells::Custom(cells),
        }
    }

    /// Whether no objects are an empty list of rows. Upstream's printer of kinds that have none of
    /// their own makes no list at all then.
    fn lists_nothing(&self) -> bool {
        match &self.cells {
            Cells::BuiltIn { names, .. } => !names.iter().any(|name| &**name == "Created At"),
            Cells::Custom(_) => true,
        }
    }

    /// The cells of one object.
    pub fn cells(&self, object: &Value, now: Time) -> Vec<Value> {
        match &self.cells {
            Cells::BuiltIn { resource, names } => cells::built_in(resource, names, object, now),
            Cells::Custom(columns) => cells::custom(columns, object, now),
        }
    }
}

fn definition(name: &str, kind: &str, format: &str, description: &str, priority: i32) -> Value {
    json!({
        "name": name,
        "type": kind,
        "format": format,
        "description": description,
        "priority": priority,
    })
}

/// A Table of `objects`. `version` is `v1` or `v1beta1`, `metadata` the list's.
pub fn render(
    printer: &Printer,
    objects: &[&Value],
    now: Time,
    form: Form,
    metadata: Value,
) -> Value {
    let api_version = form.version.group_version();
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut row = json!({
                "cells": printer.cells(object, now),
                "object": embedded(object, form, &api_version),
            });
            if let Some(conditions) = workload::row_conditions(object) {
                row["conditions"] = conditions;
            }
            row
        })
        .collect();
    let columns = match form.headers {
        Headers::Hidden => Value::Null,
        Headers::Shown => Value::Array(printer.columns.clone()),
    };
    json!({
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": (!rows.is_empty() || printer.lists_nothing()).then_some(rows),
    })
}

/// The wanted form of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// What rows carry.
    pub include: Include,
    /// Whether columns are named.
    pub headers: Headers,
    /// Version of `meta.k8s.io` that was asked for.
    pub version: MetaVersion,
}

/// A version of the group `meta.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaVersion {
    /// `v1`.
    V1,
    /// `v1beta1`.
    V1Beta1,
}

impl MetaVersion {
    /// `v1`.
    pub fn name(self) -> &'static str {
        match self {
            MetaVersion::V1 => "v1",
            MetaVersion::V1Beta1 => "v1beta1",
        }
    }

    /// `meta.k8s.io/v1`.
    pub(crate) fn group_version(self) -> String {
        format!("meta.k8s.io/{}", self.name())
    }
}

fn embedded(object: &Value, form: Form, api_version: &str) -> Option<Value> {
    match form.include {
        Include::Nothing => None,
        Include::Object => Some(object.clone()),
        Include::Metadata => Some(json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": api_version,
            "metadata": object["metadata"],
        })),
    }
}

#[cfg(test)]
mod tests;
