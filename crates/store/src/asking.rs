//! `ask.katmai.dev`: questions to the scheduler. They are read like objects and stored nowhere; who may ask
//! is a matter of roles, as with objects.

use api::ask::{self, Report, Subject};
use api::time::Time;
use serde_json::json;

use crate::access::Asked;
use crate::path::Target;
use crate::read::{Reading, include_of, partial_of};
use crate::registry::{Resource, Scope, Source, Version};
use crate::request::{Begin, Response, User};
use crate::status::{About, Outcome, Refused};
use crate::store::Store;
use crate::table::{self, Form, Headers, Include, Printer, PrinterColumn};
use crate::view::{Shape, View};

/// What `kubectl get` shows of an explanation beside its name: title, where it is found, priority.
const COLUMNS: &[(&str, &str, i32)] = &[
    ("Phase", ".status.phase", 0),
    ("Reason", ".status.reason", 0),
    ("Message", ".status.message", 0),
    ("Remedy", ".status.fixes[0].words", 1),
];

/// The row of `explanations`.
pub(crate) fn resource() -> Resource {
    Resource {
        group: ask::GROUP.into(),
        plural: ask::EXPLANATIONS.into(),
        singular: "explanation".into(),
        kind: ask::EXPLANATION.into(),
        list_kind: format!("{}List", ask::EXPLANATION).into(),
        scope: Scope::Namespaced,
        versions: vec![Version {
            name: ask::VERSION.into(),
            verbs: vec!["get".into()],
            subresources: Vec::new(),
        }],
        storage_version: ask::VERSION.into(),
        short_names: vec!["why".into()],
        categories: Vec::new(),
        source: Source::Custom,
        known: None,
        selectable: Vec::new(),
        shelf: format!("{}/{}", ask::GROUP, ask::EXPLANATIONS).into(),
        served: true,
    }
}

/// A question to the scheduler.
#[derive(Clone, Debug)]
pub struct Explain {
    /// What is asked about. The asker may ask about it.
    pub subject: Subject,
    view: View,
    include: Include,
    now: Time,
}

impl Store {
    /// What the scheduler must answer.
    pub(crate) fn explain(&self, reading: &Reading<'_>) -> Outcome<Begin> {
        let target = reading.target;
        let subject = Subject::parse(&target.namespace, &target.name).ok_or_else(|| {
            Refused::bad_request(format!(
                "{:?} names no explanation: it is KIND.NAME, as in podgroup.train, with one of the kinds {}",
                target.name,
                ask::subjects()
            ))
        })?;
        reading.view.shows_one("unstructured.Unstructured")?;
        Ok(Begin::Explain(Box::new(Explain {
            subject,
            view: reading.view.clone(),
            include: include_of(reading.query)?,
            now: reading.now,
        })))
    }

    /// Whether somebody may be told of what lies in a namespace: who may list pods there may.
    pub fn sees(&self, user: &User, namespace: &str) -> bool {
        let asked = Asked {
            verb: "list".to_owned(),
            path: String::new(),
            target: Some(Target {
                version: "v1".to_owned(),
                namespace: namespace.to_owned(),
                plural: "pods".to_owned(),
                ..Target::default()
            }),
        };
        self.authorise(user, &asked).is_ok()
    }
}

impl Explain {
    /// The answer, in the form in which it was asked for.
    pub fn answered(&self, report: &Report) -> Response {
        let object = self.subject.explained(report);
        let shown = match self.view.shape {
            Shape::Whole => object,
            Shape::Partial => partial_of(object["metadata"].clone(), self.view.version),
            Shape::Table => {
                let columns: Vec<PrinterColumn> = COLUMNS.iter().map(column).collect();
                let form = Form {
                    include: self.include,
                    headers: Headers::Shown,
                    version: self.view.version,
                };
                let printer = Printer::custom(&columns);
                table::render(&printer, &[&object], self.now, form, json!({}))
            }
        };
        Response {
            content_type: self.view.content_type(),
            ..Response::json(200, &shown)
        }
    }

    /// The answer where there is nothing to explain, and why.
    pub fn nothing(&self, why: &str) -> Refused {
        Refused::unexplained(
            About {
                group: ask::GROUP,
                plural: ask::EXPLANATIONS,
                name: &self.subject.explanation(),
            },
            why,
        )
    }
}

fn column((name, path, priority): &(&str, &str, i32)) -> PrinterColumn {
    PrinterColumn {
        name: (*name).to_owned(),
        kind: "string".to_owned(),
        json_path: (*path).to_owned(),
        format: String::new(),
        description: String::new(),
        priority: *priority,
    }
}
