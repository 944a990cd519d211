//! Answers that are about the API itself: discovery, OpenAPI, version.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::begin::version_document;
use crate::catalogue::discovery_rows;
use crate::discovery::{self, Aggregated, Half};
use crate::openapi;
use crate::request::{Cache, Method, Request, Response};
use crate::status::{Outcome, Refused};
use crate::store::Store;
use crate::wire::ResourceRow;

/// The documents that were asked for since what is served last changed. Reads run side by side,
/// so they fill it behind a lock; each answer is a function of what is served, whoever made it.
///
/// Bounded by the documents that there are: a path without one is refused and not kept.
#[derive(Debug, Default)]
pub(crate) struct Documents(Mutex<BTreeMap<String, Response>>);

impl Documents {
    /// What is served has changed.
    pub(crate) fn forget(&mut self) {
        let made = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        made.clear();
    }

    fn get(&self, key: &str) -> Option<Response> {
        let made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        made.get(key).cloned()
    }

    fn keep(&self, key: String, response: &Response) {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        made.insert(key, response.clone());
    }
}

impl Store {
    pub(crate) fn document(&self, request: &Request, segments: &[String]) -> Outcome<Response> {
        if request.method != Method::Get {
            return Err(Refused::no_page());
        }
        let form = wanted_form(&request.accept).map_or("", Aggregated::media_type);
        let key = format!("{segments:?} {form}");
        if let Some(made) = self.documents.get(&key) {
            return Ok(made);
        }
        let mut response = self.make_document(request, segments)?;
        if segments.first().is_some_and(|first| first == "openapi") && segments.len() > 2 {
            // The index names each document's address together with its tag.
            let tag = openapi::tag(&segments[2..].join("/"), self.definitions_revision());
            response.cache = Cache::Forever(tag);
        } else if !form.is_empty() {
            response.cache = Cache::Tagged(tag_of(&response.body));
        }
        self.documents.keep(key, &response);
        Ok(response)
    }

    fn make_document(&self, request: &Request, segments: &[String]) -> Outcome<Response> {
        let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
        let found = |document: Option<Value>| {
            document
                .map(|document| Response::json(200, &document))
                .ok_or_else(Refused::no_page)
        };
        match &parts[..] {
            ["version"] => Ok(version_document(&self.settings.kubernetes_version)),
            ["api"] => Ok(self.root(request, Half::Core)),
            ["apis"] => Ok(self.root(request, Half::Groups)),
            ["api", version] => found(discovery::legacy(&self.rows(), "", version)),
            ["apis", group] => found(discovery::group(&self.rows(), group)),
            ["apis", group, version] => found(discovery::legacy(&self.rows(), group, version)),
            [] => Ok(Response::json(200, &self.paths())),
            ["openapi", "v3"] => Ok(Response {
                content_type: "text/plain; charset=utf-8".to_owned(),
                ..Response::json(
                    200,
                    &openapi::index(&self.rows(), self.definitions_revision()),
                )
            }),
            ["openapi", "v3", "api", version] => found(self.openapi("", version)),
            ["openapi", "v3", "apis", group, version] => found(self.openapi(group, version)),
            _ => Err(Refused::no_page()),
        }
    }

    /// `/`: the addresses that there are.
    fn paths(&self) -> Value {
        let mut paths: BTreeSet<String> = ROOT_PATHS.iter().map(ToString::to_string).collect();
        for row in self.rows() {
            if row.group.is_empty() {
                paths.insert(format!("/api/{}", row.version));
            } else {
                paths.insert(format!("/apis/{}", row.group));
                paths.insert(format!("/apis/{}/{}", row.group, row.version));
            }
        }
        json!({ "paths": paths })
    }

    fn openapi(&self, group: &str, version: &str) -> Option<Value> {
        let served = self
            .definitions
            .iter()
            .filter(|(id, _)| self.registry.row(**id).served)
            .map(|(_, crd)| crd);
        openapi::document(&self.wire, &self.rows(), served, group, version)
    }

    /// `/api` and `/apis`: aggregated where the client asks for that.
    fn root(&self, request: &Request, half: Half) -> Response {
        let rows = self.rows();
        match (wanted_form(&request.accept), half) {
            (Some(form), _) => Response {
                content_type: form.media_type().to_owned(),
                ..Response::json(200, &discovery::aggregated(&rows, half, form))
            },
            (None, Half::Core) => Response::json(200, &discovery::core_versions("")),
            (None, Half::Groups) => Response::json(200, &discovery::groups(&rows)),
        }
    }

    /// Everything served, as discovery tells it.
    fn rows(&self) -> Vec<ResourceRow> {
        let mut rows = self.wire.resources().to_vec();
        for (id, row) in self.registry.served() {
            if self.definitions.contains_key(&id) {
                rows.extend(discovery_rows(row));
            }
        }
        rows
    }

    /// The revision of the newest change of a definition.
    fn definitions_revision(&self) -> u64 {
        self.registry
            .find("apiextensions.k8s.io", "customresourcedefinitions")
            .and_then(|id| {
                self.shelf(id)
                    .range("")
                    .map(|(_, entry)| entry.revision)
                    .max()
            })
            .unwrap_or(0)
    }
}

/// Addresses beside those of groups.
const ROOT_PATHS: &[&str] = &[
    "/api",
    "/apis",
    "/apis/",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi/v3",
    "/openapi/v3/",
    "/readyz",
    "/version",
];

/// A tag that is the same while the body is.
fn tag_of(body: &[u8]) -> String {
    let digest = crate::digest::sha256(body);
    digest.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// The form of aggregated discovery that a client asks for.
fn wanted_form(accept: &str) -> Option<Aggregated> {
    accept.split(',').find_map(|choice| {
        if !choice.contains("as=APIGroupDiscoveryList") {
            return None;
        }
        if choice.contains("v=v2beta1") {
            Some(Aggregated::V2Beta1)
        } else {
            choice.contains("v=v2").then_some(Aggregated::V2)
        }
    })
}
