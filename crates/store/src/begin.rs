//! Where a request goes: documents, reads, writes, subresources.

use api::time::Time;
use serde_json::json;

use crate::access::Asked;
use crate::applying;
use crate::path::{OptionsKind, Query, Route, Target, WriteOptions, asks_to_watch, verb};
use crate::read::Reading;
use crate::registry::{Resource, ResourceId, Source};
use crate::request::{Begin, Method, Request, Response};
use crate::status::{About, Outcome, Refused};
use crate::store::{Admit, Store};
use crate::strategy::Part;
use crate::talk::{Calls, ROUNDS_MAX, Talk};
use crate::view::View;
use crate::wire::ResourceRow;
use crate::write::Writing;

/// An object request whose resource was found.
struct Found {
    target: Target,
    query: Query,
    id: ResourceId,
}

/// What a path leads to.
enum Way {
    Document(Response),
    Objects(Found),
}

impl Store {
    /// Answers a read (GET) without changing anything, so that reads may run side by side.
    /// Any other method gives `None`.
    pub fn read(&self, request: &Request, now: Time) -> Option<Begin> {
        self.read_on(request, Talk::new(now))
    }

    /// As [`Store::read`], with what webhooks have answered so far.
    pub fn read_on(&self, request: &Request, talk: Talk) -> Option<Begin> {
        (request.method == Method::Get).then(|| {
            let read = self.try_read(request, &talk);
            read.unwrap_or_else(|refused| stopped(refused, talk))
        })
    }

    /// Begins any request. A write's effect becomes visible in [`Store::finish`].
    pub fn begin(&mut self, request: &Request, now: Time, admit: &mut Admit<'_>) -> Begin {
        self.resume(request, Talk::new(now), admit)
    }

    /// As [`Store::begin`], with what webhooks have answered so far. Everything is decided anew, on
    /// what is stored by now; an answer counts where its question is still the same.
    pub fn resume(&mut self, request: &Request, mut talk: Talk, admit: &mut Admit<'_>) -> Begin {
        if request.method == Method::Get {
            let read = self.try_read(request, &talk);
            return read.unwrap_or_else(|refused| stopped(refused, talk));
        }
        self.redraw = std::mem::take(&mut talk.drawn).into();
        self.drawn.clear();
        if talk.salt.is_empty() && !self.hooks.is_empty() {
            talk.salt = vec![0; 16];
            self.entropy.fill(&mut talk.salt);
        }
        let begun = self.begun;
        match self.try_write(request, &talk, admit) {
            Ok(begin) => begin,
            Err(refused) => {
                // Nothing was staged: the revisions that were drawn are still nobody's.
                self.begun = begun;
                talk.drawn = std::mem::take(&mut self.drawn);
                stopped(refused, talk)
            }
        }
    }

    fn way(&self, request: &Request) -> Outcome<Way> {
        if !request.user.is_master() {
            let method = request.method.name();
            let asked = Asked::read(method, &request.path, &request.query);
            self.authorise(&request.user, &asked)?;
        }
        let mut query = Query::parse(&request.query)?;
        if asks_to_watch(&request.path) {
            query = query.with("watch", "true");
        }
        let target = match Route::parse(&request.path)? {
            Route::Document(segments) => {
                return self.document(request, &segments).map(Way::Document);
            }
            Route::Objects(target) => target,
        };
        let id = self
            .registry
            .find(&target.group, &target.plural)
            .ok_or_else(|| self.nothing_there(&target))?;
        let row = self.registry.row(id);
        let version = row
            .version(&target.version)
            .ok_or_else(|| self.nothing_there(&target))?;
        let about = About {
            group: &row.group,
            plural: &row.plural,
            name: &target.name,
        };
        let verb = verb(request.method, &target, &query);
        if !target.subresource.is_empty() {
            let subresource = version
                .subresource(&target.subresource)
                .ok_or_else(Refused::no_resource)?;
            // Our namespace controller patches what it finalizes, so that nothing else is replaced.
            let ours = verb == "patch" && &*target.subresource == "finalize";
            if !ours && !subresource.verbs.iter().any(|known| &**known == verb) {
                return Err(Refused::no_method());
            }
            return Ok(Way::Objects(Found { target, query, id }));
        }
        check_scope(row, &target, verb)?;
        let is_odd = match request.method {
            Method::Post => !target.name.is_empty(),
            Method::Patch | Method::Put => target.name.is_empty(),
            Method::Delete | Method::Get => false,
        };
        if is_odd {
            return Err(Refused::no_method());
        }
        // A watch of one object is a watch.
        let listed = version.allows(verb) || (verb == "watch" && version.allows("list"));
        if !listed && row.source == Source::BuiltIn {
            return Err(Refused::no_method());
        }
        if !listed {
            return Err(Refused::not_allowed(about, verb));
        }
        Ok(Way::Objects(Found { target, query, id }))
    }

    fn try_read(&self, request: &Request, talk: &Talk) -> Outcome<Begin> {
        let found = match self.way(request)? {
            Way::Document(response) => return Ok(Begin::Done(response)),
            Way::Objects(found) => found,
        };
        let reading = Reading {
            id: found.id,
            row: self.registry.row(found.id),
            target: &found.target,
            query: &found.query,
            view: View::parse(&request.accept)?,
            talk,
            now: talk.at,
        };
        let begin = match &*found.target.subresource {
            "" | "status" | "ephemeralcontainers" | "resize" | "approval" => {
                self.read_objects(&reading)?
            }
            "scale" => Begin::Done(self.read_scale(&reading)?),
            "log" | "exec" | "attach" | "portforward" => self.connect(&reading)?,
            _ => return Err(Refused::no_resource()),
        };
        Ok(self.warn_of_version(begin, found.id, &found.target.version))
    }

    /// What is said of a resource that is not served: groups of Kubernetes itself answer, and a
    /// page stands where nobody is responsible.
    fn nothing_there(&self, target: &Target) -> Refused {
        let is_built_in =
            |row: &ResourceRow| row.group == target.group && row.version == target.version;
        match self.wire.resources().iter().any(is_built_in) {
            true => Refused::no_resource(),
            false => Refused::no_page(),
        }
    }

    /// The warning that a deprecated version deserves.
    fn deprecation(&self, id: ResourceId, version: &str) -> Option<String> {
        let versions = &self.definition(id)?.versions;
        let version = versions.iter().find(|known| known.name == version)?;
        version.deprecation.clone()
    }

    fn warn_of_version(&self, begin: Begin, id: ResourceId, version: &str) -> Begin {
        match (begin, self.deprecation(id, version)) {
            (Begin::Done(mut response), Some(warning)) => {
                response.warnings.push(warning);
                Begin::Done(response)
            }
            (begin, _) => begin,
        }
    }

    fn try_write(
        &mut self,
        request: &Request,
        talk: &Talk,
        admit: &mut Admit<'_>,
    ) -> Outcome<Begin> {
        if request.body.len() > self.settings.body_bytes_max {
            return Err(Refused::too_large(self.settings.body_bytes_max));
        }
        let found = match self.way(request)? {
            Way::Document(_) => return Err(Refused::no_resource()),
            Way::Objects(found) => found,
        };
        let part = match &*found.target.subresource {
            "" => Part::Whole,
            "status" | "approval" => Part::Status,
            "finalize" => Part::Finalize,
            "resize" => Part::Size,
            _ => Part::Everything,
        };
        let writing = Writing {
            request,
            target: &found.target,
            query: &found.query,
            options: WriteOptions::parse(&found.query, kind_of(request))?,
            id: found.id,
            row: self.registry.row(found.id).clone(),
            view: View::parse(&request.accept)?,
            part,
            talk,
            now: talk.at,
        };
        let begin = match (request.method, &*found.target.subresource) {
            (Method::Post, "") if &*writing.row.shelf == "/bindings" => self.bind_named(&writing),
            (Method::Post, "") => match self.virtual_create(&writing)? {
                Some(answer) => Ok(answer),
                None => self.create(&writing, admit),
            },
            (Method::Put, "" | "status" | "finalize" | "approval") => self.update(&writing, admit),
            (Method::Patch, "" | "status" | "finalize" | "approval") => self.patch(&writing, admit),
            (Method::Delete, "") if found.target.name.is_empty() => {
                self.delete_collection(&writing, admit)
            }
            (Method::Delete, "") => self.delete(&writing, admit),
            _ => self.write_subresource(&writing, admit),
        }?;
        if let (Begin::Commit(_), Some(warning)) =
            (&begin, self.deprecation(found.id, &found.target.version))
        {
            if let Some(waiting) = self.waiting.back_mut() {
                waiting.response.warnings.push(warning);
            }
            return Ok(begin);
        }
        Ok(self.warn_of_version(begin, found.id, &found.target.version))
    }
}

/// What a request comes to that was refused, or that must ask somebody first.
fn stopped(mut refused: Refused, talk: Talk) -> Begin {
    let calls = refused.take_calls();
    if calls.is_empty() {
        return Begin::from(refused);
    }
    if talk.rounds >= ROUNDS_MAX {
        let why = "the objects of the request changed whenever its webhooks had answered";
        return Begin::from(Refused::internal(why));
    }
    Begin::Call(Box::new(Calls { calls, talk }))
}

/// Whose options the query of a write holds.
fn kind_of(request: &Request) -> OptionsKind {
    match request.method {
        Method::Patch if applying::is_apply(&request.content_type) => OptionsKind::Apply,
        Method::Patch => OptionsKind::Patch,
        Method::Put => OptionsKind::Update,
        Method::Delete => OptionsKind::Delete,
        Method::Get | Method::Post => OptionsKind::Create,
    }
}

/// Namespaced resources are written in a namespace, others outside.
fn check_scope(row: &Resource, target: &Target, verb: &str) -> Outcome<()> {
    match (row.is_namespaced(), target.namespace.is_empty()) {
        (false, false) => Err(Refused::no_resource()),
        (true, true) if !target.name.is_empty() => Err(Refused::no_resource()),
        // All namespaces together can only be looked at.
        (true, true) if !matches!(verb, "list" | "watch") => Err(Refused::no_method()),
        _ => Ok(()),
    }
}

/// `/version`.
pub(crate) fn version_document(kubernetes_version: &str) -> Response {
    let mut parts = kubernetes_version.split('.');
    let major = parts.next().unwrap_or("1");
    let minor = parts.next().unwrap_or("0");
    Response::json(
        200,
        &json!({
            "major": major,
            "minor": minor,
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
