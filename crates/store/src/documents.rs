//! Answers that are about the API itself: discovery, OpenAPI, version.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use api::ask;
use serde_json::{Value, json};

use crate::begin::SHOWN;
use crate::catalogue::discovery_rows;
use crate::discovery::{self, Aggregated, Half};
use crate::openapi::{self, v2};
use crate::path::Query;
use crate::registry::Resource;
use crate::request::{Cache, Method, Request, Response};
use crate::status::{Outcome, Refused};
use crate::store::{NativeGroups, Store};
use crate::view::{Choice, choices};
use crate::wire::{NATIVE_GROUP, ResourceRow};

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
        let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
        let page = Page::of(&parts);
        if request.method != Method::Get && self.is_only_read(&page) {
            return Err(Refused::no_method());
        }
        let form = self.wanted(&page, &request.accept)?;
        match &page {
            Page::Schemas(path) => return self.schemas(request, path),
            Page::AllSchemas => return Ok(self.all_schemas(&request.accept)),
            _ => {}
        }
        let key = format!("{segments:?} {}", form.map_or("", Aggregated::media_type));
        if let Some(made) = self.documents.get(&key) {
            return Ok(made);
        }
        let mut response = self.make_document(&page, form)?;
        if form.is_some() {
            response.cache = Cache::Tagged(crate::digest::hex(&response.body));
        }
        self.documents.keep(key, &response);
        Ok(response)
    }

    /// Whether a page answers to nothing but being read. The others do not look at the method, as
    /// upstream's do not.
    fn is_only_read(&self, page: &Page<'_>) -> bool {
        match page {
            Page::Core | Page::Program => true,
            Page::Version(group, version) => {
                let mut built_in = self.wire.resources().iter();
                built_in.any(|row| row.group == *group && row.version == *version)
            }
            _ => false,
        }
    }

    /// The form of discovery that the client wants.
    fn wanted(&self, page: &Page<'_>, accept: &str) -> Outcome<Option<Aggregated>> {
        let choices = choices(accept);
        let is_spoken = accept.trim().is_empty() || choices.iter().any(Choice::is_spoken);
        match page {
            Page::Program if !choices.iter().any(Choice::is_json) && !accept.trim().is_empty() => {
                Err(Refused::not_represented(&SHOWN[..1]))
            }
            Page::Group(_) | Page::Version(..) if !is_spoken => {
                Err(Refused::not_represented(SHOWN))
            }
            Page::Core | Page::Groups => {
                let first = choices.iter().find_map(form_of);
                match (first, accept.trim()) {
                    (Some(form), _) => Ok(form),
                    (None, "") => Ok(None),
                    (None, _) => Err(Refused::not_acceptable()),
                }
            }
            _ => Ok(None),
        }
    }

    fn make_document(&self, page: &Page<'_>, form: Option<Aggregated>) -> Outcome<Response> {
        let rows = self.rows();
        let found = |document: Option<Value>, group: &str| {
            document
                .map(|document| Response::json(200, &document))
                .ok_or_else(|| self.nothing_there(group))
        };
        match (page, form) {
            (Page::Root, _) => Ok(Response::json(200, &self.paths())),
            (Page::Program, _) => Ok(program(&self.settings.kubernetes_version)),
            (Page::Core, None) => {
                let address = &self.settings.address;
                Ok(Response::json(200, &discovery::core_versions(address)))
            }
            (Page::Groups, None) => {
                let rows = self.by_service(rows);
                Ok(Response::json(200, &discovery::groups(&rows)))
            }
            (Page::Core, Some(form)) => Ok(aggregated(&rows, Half::Core, form)),
            (Page::Groups, Some(form)) => Ok(aggregated(&rows, Half::Groups, form)),
            (Page::Group(group), _) => found(discovery::group(&rows, group), group),
            (Page::Version(group, version), _) => {
                found(discovery::legacy(&rows, group, version), group)
            }
            (Page::Schemas(_) | Page::AllSchemas, _) => Err(Refused::nothing()),
            (Page::Nothing(first), _) => Err(match *first {
                "api" | "version" => Refused::no_resource(),
                _ => Refused::no_page(),
            }),
        }
    }

    /// `/openapi/v3…`: the index names each document's address together with its tag.
    fn schemas(&self, request: &Request, path: &[&str]) -> Outcome<Response> {
        let revision = self.definitions_revision();
        let (group, version) = match path {
            [] => {
                return Ok(Response {
                    content_type: "text/plain; charset=utf-8".to_owned(),
                    ..Response::json(200, &openapi::index(&self.rows(), revision))
                });
            }
            ["api", version] => ("", *version),
            ["apis", group, version] => (*group, *version),
            _ => return Err(Refused::nothing()),
        };
        let key = path.join("/");
        let made = match self.documents.get(&key) {
            Some(made) => made,
            None => {
                let document = self.openapi(group, version).ok_or_else(Refused::nothing)?;
                let made = Response::json(200, &document);
                self.documents.keep(key.clone(), &made);
                made
            }
        };
        let tag = openapi::tag(&key, revision);
        match Query::parse(&request.query)?.text("hash") {
            "" => Ok(Response {
                cache: Cache::Own(tag),
                ..made
            }),
            known if known == tag => Ok(Response {
                cache: Cache::Forever(tag),
                ..made
            }),
            // An address of an older state leads to that of the new one.
            _ => Ok(Response {
                location: Some(format!("/openapi/v3/{key}?hash={tag}")),
                cache: Cache::Own(tag),
                ..Response::bytes(301, Vec::new())
            }),
        }
    }

    /// `/openapi/v2`, in the form that the client likes best.
    fn all_schemas(&self, accept: &str) -> Response {
        let wants_protobuf = choices(accept)
            .iter()
            .find(|choice| choice.is_json() || choice.is(v2::PROTOBUF))
            .is_some_and(|choice| choice.is(v2::PROTOBUF));
        let (key, media) = match wants_protobuf {
            true => ("openapi/v2 protobuf", v2::PROTOBUF_SENT),
            false => ("openapi/v2", "application/json"),
        };
        if let Some(made) = self.documents.get(key) {
            return made;
        }
        let mut versions: BTreeSet<(String, String)> = BTreeSet::new();
        for row in self.rows() {
            versions.insert((row.group, row.version));
        }
        let documents = versions
            .iter()
            .filter_map(|(group, version)| self.openapi(group, version));
        let whole = v2::whole(documents, &self.settings.kubernetes_version);
        let mut response = match wants_protobuf {
            true => Response::bytes(200, v2::protobuf(&whole)),
            false => Response::json(200, &whole),
        };
        media.clone_into(&mut response.content_type);
        response.cache = Cache::Tagged(crate::digest::hex(&response.body));
        self.documents.keep(key.to_owned(), &response);
        response
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
        let mut document = openapi::document(&self.wire, &self.rows(), served, group, version)?;
        openapi::describe(&mut document, self.settings.prose);
        Some(document)
    }

    /// Everything served, as discovery tells it.
    fn rows(&self) -> Vec<ResourceRow> {
        let mut rows = self.wire.resources().to_vec();
        let served = self.registry.served();
        let mut defined: Vec<&Resource> = served
            .filter(|(id, row)| self.definitions.contains_key(id) || &*row.group == ask::GROUP)
            .map(|(_, row)| &**row)
            .collect();
        // Groups of definitions are all of one rank, and then names decide.
        defined.sort_by(|a, b| a.group.cmp(&b.group));
        rows.extend(defined.into_iter().flat_map(discovery_rows));
        // `podgroups` alone stays Volcano's: clients take the group that comes first.
        if self.settings.native_groups == NativeGroups::Served {
            rows.sort_by_key(|row| row.group == NATIVE_GROUP);
        }
        rows
    }

    /// In the old form of discovery, the names of their services decide in which order defined
    /// groups come: `v1.b.dev` is before `v1beta1.a.dev`.
    fn by_service(&self, mut rows: Vec<ResourceRow>) -> Vec<ResourceRow> {
        let asking = self.registry.find(ask::GROUP, ask::EXPLANATIONS);
        let defined = self.definitions.keys().copied().chain(asking);
        let defined = defined.map(|id| self.registry.row(id));
        let mut services = BTreeMap::new();
        for row in defined {
            let versions = discovery::versions_of(&rows, &row.group);
            let service = versions
                .first()
                .map(|first| format!("{first}.{}", row.group));
            services.insert(row.group.to_string(), service);
        }
        let has_native = self.settings.native_groups == NativeGroups::Served;
        rows.sort_by_cached_key(|row| {
            let is_last = has_native && row.group == NATIVE_GROUP;
            (is_last, services.get(&row.group).cloned())
        });
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
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/readyz",
    "/version",
];

/// The form of discovery that a choice asks for: `None` if it asks for none that there is, the old
/// one where it asks for nothing more than JSON.
pub(crate) fn form_of(choice: &Choice<'_>) -> Option<Option<Aggregated>> {
    if !choice.is_spoken() {
        return None;
    }
    let asked = ["as", "g", "v"].map(|key| choice.parameter(key));
    match asked {
        ["APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2"] => Some(Some(Aggregated::V2)),
        ["APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2beta1"] => {
            Some(Some(Aggregated::V2Beta1))
        }
        ["", ..] => Some(None),
        _ => None,
    }
}

/// `/api` or `/apis` in the aggregated form, as an answer.
pub(crate) fn aggregated(rows: &[ResourceRow], half: Half, form: Aggregated) -> Response {
    Response {
        content_type: form.media_type().to_owned(),
        ..Response::json(200, &discovery::aggregated(rows, half, form))
    }
}

/// A page that is not about objects.
enum Page<'a> {
    /// `/`.
    Root,
    /// `/version`.
    Program,
    /// `/api`.
    Core,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(&'a str),
    /// `/api/v1`, `/apis/GROUP/VERSION`.
    Version(&'a str, &'a str),
    /// `/openapi/v3…`: what stands behind.
    Schemas(&'a [&'a str]),
    /// `/openapi/v2`.
    AllSchemas,
    /// Anything else: its first word.
    Nothing(&'a str),
}

impl<'a> Page<'a> {
    fn of(parts: &'a [&'a str]) -> Page<'a> {
        match parts {
            [] => Page::Root,
            ["version"] => Page::Program,
            ["api"] => Page::Core,
            ["apis"] => Page::Groups,
            ["api", version] => Page::Version("", version),
            ["apis", group] => Page::Group(group),
            ["apis", group, version] => Page::Version(group, version),
            ["openapi", "v3", path @ ..] => Page::Schemas(path),
            ["openapi", "v2"] => Page::AllSchemas,
            [first, ..] => Page::Nothing(first),
        }
    }
}

/// `/version`.
fn program(kubernetes_version: &str) -> Response {
    let mut parts = kubernetes_version.split('.');
    let major = parts.next().unwrap_or("1");
    let minor = parts.next().unwrap_or("0");
    let before = minor
        .parse::<u32>()
        .map_or(0, |minor| minor.saturating_sub(1));
    Response::json(
        200,
        &json!({
            "major": major,
            "minor": minor,
            "emulationMajor": major,
            "emulationMinor": minor,
            "minCompatibilityMajor": major,
            "minCompatibilityMinor": before.to_string(),
            "gitVersion": format!("v{kubernetes_version}+katmai"),
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "rust",
            "compiler": "rustc",
            "platform": "linux/amd64",
        }),
    )
}
