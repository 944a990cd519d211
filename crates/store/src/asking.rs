//! `ask.katmai.dev`: questions to the scheduler. They are read like objects and stored nowhere; who may ask
//! is a matter of roles, as with objects.

use api::ask::{self, Report, Subject};
use api::time::Time;
use serde_json::json;

use crate::access::Asked;
use crate::catalogue::discovery_rows;
use crate::discovery::{self, Half};
use crate::documents::{aggregated, form_of};
use crate::path::{Query, Route, Target, asks_to_watch};
use crate::read::{Reading, include_of, partial_of};
use crate::registry::{Resource, Scope, Source, Version};
use crate::request::{Begin, Method, Request, Response, User};
use crate::status::{About, Outcome, Refused};
use crate::store::Store;
use crate::table::{self, Form, Headers, Include, Printer, PrinterColumn};
use crate::view::{Shape, View, choices};

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
        let Reading { target, query, .. } = reading;
        let explain = Explain::begin(target, query, reading.view.clone(), reading.now)?;
        Ok(Begin::Explain(Box::new(explain)))
    }

    /// Whether somebody may be told of what lies in a namespace: who may list pods there may.
    pub fn sees(&self, user: &User, namespace: &str) -> bool {
        self.authorise(user, &seeing(namespace)).is_ok()
    }

    /// Whether somebody may be told of nodes' taints: who may list nodes may.
    pub fn sees_nodes(&self, user: &User) -> bool {
        self.authorise(user, &seeing_nodes()).is_ok()
    }
}

/// What somebody may do who may be told of what lies in a namespace, or in all of them where none is named.
pub fn seeing(namespace: &str) -> Asked {
    listing("pods", namespace)
}

/// What somebody may do who may be told of nodes' taints.
pub fn seeing_nodes() -> Asked {
    listing("nodes", "")
}

fn listing(plural: &str, namespace: &str) -> Asked {
    Asked {
        verb: "list".to_owned(),
        path: String::new(),
        target: Some(Target {
            version: "v1".to_owned(),
            namespace: namespace.to_owned(),
            plural: plural.to_owned(),
            ..Target::default()
        }),
    }
}

/// Begins an answer where there is no store behind: only `ask.katmai.dev` is served, as behind an APIService
/// of somebody else's API server. Whoever calls sees to it that the user may ask.
pub fn ask_alone(request: &Request, now: Time) -> Begin {
    begun_alone(request, now).unwrap_or_else(|refused| Begin::Done(refused.response()))
}

fn begun_alone(request: &Request, now: Time) -> Outcome<Begin> {
    if request.method != Method::Get {
        return Err(Refused::no_method());
    }
    let query = Query::parse(&request.query)?;
    let target = match Route::parse(&request.path)? {
        Route::Objects(target) => target,
        Route::Document(segments) => return document_alone(&segments, &request.accept),
    };
    let is_served = target.group == ask::GROUP
        && target.version == ask::VERSION
        && target.plural == ask::EXPLANATIONS
        && target.subresource.is_empty();
    if !is_served || asks_to_watch(&request.path) {
        return Err(Refused::no_page());
    }
    if target.namespace.is_empty() || target.name.is_empty() {
        let about = About {
            group: ask::GROUP,
            plural: ask::EXPLANATIONS,
            name: "",
        };
        return Err(Refused::not_allowed(about, "list"));
    }
    let view = View::parse(&request.accept).map_err(|_| Refused::not_acceptable())?;
    let explain = Explain::begin(&target, &query, view, now)?;
    Ok(Begin::Explain(Box::new(explain)))
}

/// What is served, in both forms.
fn document_alone(segments: &[String], accept: &str) -> Outcome<Begin> {
    let rows = discovery_rows(&resource());
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let document = match segments[..] {
        ["apis"] => match choices(accept).iter().find_map(form_of).flatten() {
            Some(form) => return Ok(Begin::Done(aggregated(&rows, Half::Groups, form))),
            None => Some(discovery::groups(&rows)),
        },
        ["apis", group] => discovery::group(&rows, group),
        ["apis", group, version] => discovery::legacy(&rows, group, version),
        _ => None,
    };
    let document = document.ok_or_else(Refused::no_page)?;
    Ok(Begin::Done(Response::json(200, &document)))
}

impl Explain {
    fn begin(target: &Target, query: &Query, view: View, now: Time) -> Outcome<Explain> {
        let subject = Subject::parse(&target.namespace, &target.name).ok_or_else(|| {
            Refused::bad_request(format!(
                "{:?} names no explanation: it is KIND.NAME, as in podgroup.train, with one of the kinds {}",
                target.name,
                ask::subjects()
            ))
        })?;
        view.shows_one("unstructured.Unstructured")?;
        Ok(Explain {
            subject,
            view,
            include: include_of(query)?,
            now,
        })
    }

    /// What somebody does who asks this, as roles speak of it.
    pub fn asked(&self) -> Asked {
        Asked {
            verb: "get".to_owned(),
            path: String::new(),
            target: Some(Target {
                group: ask::GROUP.to_owned(),
                version: ask::VERSION.to_owned(),
                namespace: self.subject.namespace.clone(),
                plural: ask::EXPLANATIONS.to_owned(),
                name: self.subject.explanation(),
                subresource: String::new(),
            }),
        }
    }

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
