//! Where a request goes: documents, reads, writes, subresources.

use std::cell::Cell;

use api::time::Time;

use crate::access::Asked;
use crate::ahead::Ahead;
use crate::applying;
use crate::path::{OptionsKind, Query, Route, Target, WriteOptions, asks_to_watch, verb};
use crate::read::Reading;
use crate::registry::{Resource, ResourceId, Source};
use crate::request::{Begin, Method, Request, Response};
use crate::status::{About, Outcome, Refused};
use crate::store::{Admit, Store};
use crate::strategy::Part;
use crate::talk::{Calls, ROUNDS_MAX, Talk};
use crate::view::{Unfit, View};
use crate::wire::ResourceRow;
use crate::write::Writing;

/// An object request whose resource was found.
struct Found {
    target: Target,
    query: Query,
    id: ResourceId,
}

/// Built-in kinds that are old, by shelf.
const OLD_KINDS: &[(&str, &str)] = &[
    (
        "/componentstatuses",
        "v1 ComponentStatus is deprecated in v1.19+",
    ),
    (
        "/endpoints",
        "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ),
];

/// The forms of an object, as upstream's router lists them.
pub(crate) const SHOWN: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];
/// … and those of a list.
const LISTED: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

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
        let ahead = talk.ahead.take();
        match self.try_write(request, &talk, ahead, admit) {
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
            .ok_or_else(|| self.nothing_there(&target.group))?;
        let row = self.registry.row(id);
        let version = row
            .version(&target.version)
            .ok_or_else(|| self.nothing_there(&target.group))?;
        let about = About {
            group: &row.group,
            plural: &row.plural,
            name: &target.name,
        };
        let verb = verb(request.method, &target, &query);
        if !target.subresource.is_empty() {
            let subresource = version
                .subresource(&target.subresource)
                .ok_or_else(|| match row.source {
                    Source::BuiltIn => Refused::no_resource(),
                    Source::Custom => Refused::not_found(about),
                })?;
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
            view: self.view(request, &found)?,
            talk,
            now: talk.at,
        };
        if &*reading.row.group == api::ask::GROUP {
            return self.explain(&reading);
        }
        let begun = match &*found.target.subresource {
            "" | "status" | "ephemeralcontainers" | "resize" | "approval" => {
                self.read_objects(&reading)
            }
            "scale" => self.read_scale(&reading).map(Begin::Done),
            "log" | "exec" | "attach" | "portforward" => self.connect(&reading),
            _ => Err(Refused::no_resource()),
        };
        warned(begun, self.deprecation(found.id, &found.target.version))
    }

    /// What is said of something that is not served: groups of Kubernetes itself answer, and a
    /// page stands where nobody is responsible.
    pub(crate) fn nothing_there(&self, group: &str) -> Refused {
        let is_built_in = |row: &ResourceRow| row.group == group;
        match self.wire.resources().iter().any(is_built_in) {
            true => Refused::no_resource(),
            false => Refused::no_page(),
        }
    }

    /// The form in which the client wants objects.
    fn view(&self, request: &Request, found: &Found) -> Outcome<View> {
        View::parse(&request.accept).map_err(|unfit| {
            let row = self.registry.row(found.id);
            let is_listed = request.method == Method::Get
                && found.target.name.is_empty()
                && found.target.subresource.is_empty();
            match (unfit, row.source) {
                (Unfit::Shape, _) | (_, Source::Custom) => Refused::not_acceptable(),
                // A list may be watched, too, and then comes in pieces.
                (Unfit::Media, Source::BuiltIn) if is_listed => Refused::not_represented(LISTED),
                (Unfit::Media, Source::BuiltIn) => Refused::not_represented(SHOWN),
            }
        })
    }

    /// The warning that a deprecated version deserves.
    fn deprecation(&self, id: ResourceId, version: &str) -> Option<String> {
        let row = self.registry.row(id);
        let old = OLD_KINDS
            .iter()
            .find(|(shelf, _)| *shelf == row.shelf.as_ref());
        if let Some((_, warning)) = old {
            return Some((*warning).to_owned());
        }
        let versions = &self.definition(id)?.versions;
        let version = versions.iter().find(|known| known.name == version)?;
        version.deprecation.clone()
    }

    /// Says so of whatever comes of a request to a deprecated version.
    fn warn_of_version(
        &mut self,
        begun: Outcome<Begin>,
        warning: Option<String>,
    ) -> Outcome<Begin> {
        let Some(warning) = warning else { return begun };
        if let (Ok(Begin::Commit(_)), Some(waiting)) = (&begun, self.waiting.back_mut()) {
            waiting.response.warnings.push(warning);
            return begun;
        }
        warned(begun, Some(warning))
    }

    fn try_write(
        &mut self,
        request: &Request,
        talk: &Talk,
        ahead: Option<Ahead>,
        admit: &mut Admit<'_>,
    ) -> Outcome<Begin> {
        if request.body.len() > self.settings.body_bytes_max {
            return Err(Refused::too_large(self.settings.body_bytes_max));
        }
        let found = match self.way(request)? {
            Way::Document(response) => return Ok(Begin::Done(response)),
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
            view: self.view(request, &found)?,
            part,
            talk,
            ahead: Cell::new(ahead),
            now: talk.at,
        };
        let begun = self.carry_out(&writing, admit);
        let warning = self.deprecation(found.id, &found.target.version);
        self.warn_of_version(begun, warning)
    }

    fn carry_out(&mut self, writing: &Writing<'_>, admit: &mut Admit<'_>) -> Outcome<Begin> {
        match (writing.request.method, &*writing.target.subresource) {
            (Method::Post, "") if &*writing.row.shelf == "/bindings" => self.bind_named(writing),
            (Method::Post, "") => match self.virtual_create(writing)? {
                Some(answer) => Ok(answer),
                None => self.create(writing, admit),
            },
            (Method::Put, "" | "status" | "finalize" | "approval") => self.update(writing, admit),
            (Method::Patch, "" | "status" | "finalize" | "approval") => self.patch(writing, admit),
            (Method::Delete, "") if writing.target.name.is_empty() => {
                self.delete_collection(writing, admit)
            }
            (Method::Delete, "") => self.delete(writing, admit),
            _ => self.write_subresource(writing, admit),
        }
    }
}

/// Adds a warning to an answer that is there at once.
fn warned(begun: Outcome<Begin>, warning: Option<String>) -> Outcome<Begin> {
    let Some(warning) = warning else { return begun };
    match begun {
        Ok(Begin::Done(mut response)) => {
            response.warnings.push(warning);
            Ok(Begin::Done(response))
        }
        Ok(begin) => Ok(begin),
        Err(refused) => Err(refused.warn(warning)),
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
