//! Reads: one object, a list in pages, the opening of a watch.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::time::Time;
use base64::Engine;
use serde_json::{Value, json};

use crate::entry::{Entry, unkinded};
use crate::options;
use crate::path::{Query, Target};
use crate::registry::{Resource, ResourceId, Source};
use crate::request::{Begin, Response};
use crate::select::Selection;
use crate::sheet::Sheet;
use crate::shelf::Shelf;
use crate::status::{About, Outcome, Refused};
use crate::store::Store;
use crate::table::{Headers, Include, MetaVersion};
use crate::talk::Talk;
use crate::view::{Shape, View};
use crate::watch::{BOOKMARK_MS, InitialEnd, Watch};

/// Longest that a watch may last, in seconds, where the client asks for none (upstream draws
/// between 30 and 60 minutes).
const WATCH_SECONDS_DEFAULT: i64 = 1_800;

const BASE64: base64::engine::GeneralPurpose = base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// What the query says about the wanted revision.
enum At {
    /// The newest.
    Newest,
    /// Exactly this one.
    Exactly(u64),
}

/// One read, understood.
pub(crate) struct Reading<'a> {
    pub(crate) id: ResourceId,
    pub(crate) row: &'a Arc<Resource>,
    pub(crate) target: &'a Target,
    pub(crate) query: &'a Query,
    pub(crate) view: View,
    pub(crate) talk: &'a Talk,
    pub(crate) now: Time,
}

impl Reading<'_> {
    fn sheet(&self) -> Outcome<Sheet<'_>> {
        Ok(Sheet {
            id: self.id,
            row: self.row,
            version: &self.target.version,
            include: include_of(self.query)?,
            headers: Headers::Shown,
            form: self.view.version,
            talk: self.talk,
            now: self.now,
        })
    }
}

impl Store {
    pub(crate) fn read_objects(&self, reading: &Reading<'_>) -> Outcome<Begin> {
        if reading.query.is_on("watch") {
            return self.open_watch(reading);
        }
        if reading.target.name.is_empty() {
            return self.list(reading).map(Begin::Done);
        }
        self.get(reading).map(Begin::Done)
    }

    fn get(&self, reading: &Reading<'_>) -> Outcome<Response> {
        let wanted = options::version_of(reading.query)?;
        if wanted > self.revision {
            return Err(Refused::too_new(wanted, self.revision));
        }
        let key = key_of(&reading.target.namespace, &reading.target.name);
        let entry = self.shelf(reading.id).get(&key).ok_or_else(|| {
            Refused::not_found(About {
                group: &reading.row.group,
                plural: &reading.row.plural,
                name: &reading.target.name,
            })
        })?;
        reading.view.shows_one(&reading.row.go_kind())?;
        self.ready(reading, std::iter::once(entry))?;
        let body = match reading.view.shape {
            Shape::Whole => self.shown(reading.id, &reading.target.version, entry, reading.talk),
            Shape::Partial => {
                let shown = partial(entry, reading.view.version);
                shown.to_string().into_bytes()
            }
            Shape::Table => {
                let revision = entry.revision.to_string();
                let rows = [entry.clone()];
                let meta = json!({ "resourceVersion": revision });
                self.table(&reading.sheet()?, &rows, meta)
                    .to_string()
                    .into_bytes()
            }
        };
        Ok(self.answer(&reading.view, body))
    }

    pub(crate) fn answer(&self, view: &View, body: Vec<u8>) -> Response {
        Response {
            content_type: view.content_type(),
            ..Response::bytes(200, body)
        }
    }

    fn list(&self, reading: &Reading<'_>) -> Outcome<Response> {
        let selection = self.selection(reading)?;
        options::check_list(reading.query)?;
        // A negative limit is none.
        let limit = reading.query.number("limit")?.unwrap_or(0);
        let limit = usize::try_from(limit).unwrap_or(0);
        let token = reading.query.text("continue");
        let (at, after) = if token.is_empty() {
            (self.list_revision(reading.query, limit)?, None)
        } else {
            self.continued(token)?
        };
        let shelf = self.shelf(reading.id);
        let revision = match at {
            At::Newest => self.revision,
            At::Exactly(revision) => revision,
        };
        let prefix = selection.prefix();
        let is_now = !matches!(at, At::Exactly(revision) if revision < self.revision);
        let past;
        let found: Box<dyn Iterator<Item = (&Arc<str>, &Arc<Entry>)>> = match at {
            At::Exactly(revision) if revision < self.revision => {
                past = self.past(shelf, &prefix, after.as_deref(), revision, token)?;
                Box::new(past.iter())
            }
            _ => Box::new(shelf.range_after(&prefix, after.as_deref())),
        };
        let mut found = found.filter(|(key, entry)| selection.matches(key, entry));
        let (mut page, mut last): (Vec<Arc<Entry>>, Option<Arc<str>>) = (Vec::new(), None);
        while limit == 0 || page.len() < limit {
            let Some((key, entry)) = found.next() else {
                break;
            };
            page.push(entry.clone());
            last = Some(key.clone());
        }
        let mut meta = json!({ "resourceVersion": revision.to_string() });
        if reading.row.source == Source::Custom && reading.view.shape == Shape::Whole {
            meta["continue"] = json!("");
        }
        let remaining = match selection.is_everything() {
            _ if limit == 0 => 0,
            // How many they are is told only where all are meant.
            false => usize::from(found.next().is_some()),
            // Of a first page it need not be counted.
            true if is_now && prefix.is_empty() && after.is_none() => shelf.len() - page.len(),
            true => found.count(),
        };
        if remaining > 0
            && let Some(last) = last
        {
            meta["continue"] = json!(continue_token(revision, &last));
            if selection.is_everything() {
                meta["remainingItemCount"] = json!(remaining);
            }
        }
        reading.view.shows_list(&reading.row.go_list_kind())?;
        self.ready(reading, page.iter())?;
        let body = match reading.view.shape {
            Shape::Table => self
                .table(&reading.sheet()?, &page, meta)
                .to_string()
                .into_bytes(),
            Shape::Partial => {
                let version = reading.view.version;
                let items = page.iter().map(|entry| partial(entry, version));
                let items: Vec<Value> = items.collect();
                json!({
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": version.group_version(),
                    "metadata": meta,
                    "items": items,
                })
                .to_string()
                .into_bytes()
            }
            Shape::Whole => self.list_body(reading, &page, &meta),
        };
        Ok(self.answer(&reading.view, body))
    }

    /// Everything that is to be shown can be shown, or webhooks must be asked first. Metadata is
    /// the same in every version.
    fn ready<'a>(
        &self,
        reading: &Reading<'_>,
        entries: impl Iterator<Item = &'a Arc<Entry>>,
    ) -> Outcome<()> {
        if reading.view.shape == Shape::Partial {
            return Ok(());
        }
        let version = &reading.target.version;
        self.ready_to_show(reading.id, version, entries, reading.talk)
    }

    fn list_body(&self, reading: &Reading<'_>, page: &[Arc<Entry>], meta: &Value) -> Vec<u8> {
        let size: usize = page.iter().map(|entry| entry.shown_size() + 1).sum();
        let mut body = Vec::with_capacity(size + 256);
        let head = format!(
            "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{meta},\"items\":[",
            json!(reading.row.list_kind),
            json!(reading.row.api_version(&reading.target.version)),
        );
        body.extend_from_slice(head.as_bytes());
        let version = &reading.target.version;
        let api_version = reading.row.api_version(version);
        for (index, entry) in page.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            let start = body.len();
            self.show(reading.id, version, entry, reading.talk, &mut body);
            if reading.row.source == Source::BuiltIn {
                unkinded(&mut body, start, &api_version, &reading.row.kind);
            }
        }
        body.extend_from_slice(b"]}\n");
        body
    }

    fn past(
        &self,
        shelf: &Shelf,
        prefix: &str,
        after: Option<&str>,
        revision: u64,
        token: &str,
    ) -> Outcome<BTreeMap<Arc<str>, Arc<Entry>>> {
        shelf
            .range_at(prefix, after, revision)
            .ok_or_else(|| match (token.is_empty(), after) {
                (false, Some(after)) => Refused::page_expired(continue_token(0, after)),
                _ => Refused::version_expired(revision),
            })
    }

    /// What `resourceVersion` and its match mean for a first page.
    fn list_revision(&self, query: &Query, limit: usize) -> Outcome<At> {
        let wanted = options::version_of(query)?;
        let exactly = match query.text("resourceVersionMatch") {
            "" => limit > 0 && wanted > 0,
            matching => matching == "Exact",
        };
        if wanted > self.revision {
            return Err(Refused::too_new(wanted, self.revision));
        }
        Ok(if exactly {
            At::Exactly(wanted)
        } else {
            At::Newest
        })
    }

    fn continued(&self, token: &str) -> Outcome<(At, Option<String>)> {
        let because = |why: &str| {
            Refused::bad_request(format!(
                "invalid continue token: continue key is not valid: {why}"
            ))
        };
        let invalid = || because("it names no place");
        let bytes = BASE64
            .decode(token)
            .map_err(|_| because(&crate::schema::base64_error(token).unwrap_or_default()))?;
        let token = crate::json::read(&bytes)
            .map_err(|why| because(&why))?
            .value;
        let revision = token["rv"].as_u64().ok_or_else(invalid)?;
        let start = token["start"].as_str().ok_or_else(invalid)?.to_owned();
        // Revision 0 marks the inconsistent continuation that a 410 handed out.
        let at = match revision {
            0 => At::Newest,
            revision if revision > self.revision => return Err(invalid()),
            revision => At::Exactly(revision),
        };
        Ok((at, Some(start)))
    }

    pub(crate) fn selection(&self, reading: &Reading<'_>) -> Outcome<Selection> {
        let mut selection = Selection::parse(
            (&reading.row.shelf, &reading.row.group),
            &reading.row.selectable,
            reading.query.text("labelSelector"),
            reading.query.text("fieldSelector"),
        )?;
        selection.namespace.clone_from(&reading.target.namespace);
        if !reading.target.name.is_empty() {
            selection.name = Some(reading.target.name.clone());
        }
        Ok(selection)
    }

    fn open_watch(&self, reading: &Reading<'_>) -> Outcome<Begin> {
        let query = reading.query;
        let selection = self.selection(reading)?;
        options::check_watch(query)?;
        let wanted = options::watch_version(query)?;
        let bookmarks = query.is_on("allowWatchBookmarks");
        let initial = query.is_on("sendInitialEvents");
        let shelf = self.shelf(reading.id);
        let silent = query.text("sendInitialEvents") == "false";
        let tells_state = initial || (wanted == 0 && !silent);
        let mut watch = Watch {
            topic: self.topic(reading.id),
            resource: reading.id,
            version: reading.target.version.as_str().into(),
            view: reading.view.clone(),
            include: include_of(query)?,
            selection,
            cursor: if tells_state || wanted == 0 {
                self.revision
            } else {
                wanted
            },
            initial: Default::default(),
            ends_initial: InitialEnd::Silent,
            bookmark_at: bookmarks.then(|| reading.now.plus_ms(BOOKMARK_MS)),
            deadline: Some(deadline(query, reading.now)?),
            headers: Headers::Shown,
            talk: Talk::new(reading.now),
            calls: Vec::new(),
        };
        if tells_state {
            if wanted > self.revision {
                return Err(Refused::too_new(wanted, self.revision));
            }
            let prefix = watch.selection.prefix();
            watch.initial = shelf
                .range(&prefix)
                .filter(|(key, entry)| watch.selection.matches(key, entry))
                .map(|(_, entry)| entry.clone())
                .collect();
            if initial && bookmarks {
                watch.ends_initial = InitialEnd::Owed;
            }
        }
        Ok(Begin::Watch(Box::new(watch)))
    }
}

/// `namespace/name`, or `name` for cluster-scoped objects.
pub(crate) fn key_of(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    }
}

/// The metadata of an object as `PartialObjectMetadata`.
pub(crate) fn partial(entry: &Entry, version: MetaVersion) -> Value {
    let mut meta = entry.value()["metadata"].take();
    if !entry.owners.is_empty() {
        meta["managedFields"] = entry.owners.to_value();
    }
    partial_of(meta, version)
}

/// `PartialObjectMetadata` of this metadata.
pub(crate) fn partial_of(meta: Value, version: MetaVersion) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": version.group_version(),
        "metadata": meta,
    })
}

pub(crate) fn include_of(query: &Query) -> Outcome<Include> {
    let text = query.text("includeObject");
    Include::parse(text).ok_or_else(|| {
        Refused::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {text:?}: must be 'Metadata', 'Object', 'None', or empty"
        ))
    })
}

fn continue_token(revision: u64, last: &str) -> String {
    BASE64.encode(json!({ "v": "meta.k8s.io/v1", "rv": revision, "start": last }).to_string())
}

fn deadline(query: &Query, now: Time) -> Outcome<Time> {
    let seconds = match query.number("timeoutSeconds")? {
        None | Some(0) => WATCH_SECONDS_DEFAULT,
        Some(seconds) if seconds < 0 => {
            return Err(Refused::bad_request("timeoutSeconds: must not be negative"));
        }
        Some(seconds) => seconds,
    };
    Ok(now.plus_ms(seconds.saturating_mul(1_000)))
}
