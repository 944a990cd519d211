//! What a watch has to say since it last spoke.

use std::borrow::Cow;
use std::sync::Arc;

use api::time::Time;
use serde_json::{Value, json};

use crate::entry::Entry;
use crate::read::partial;
use crate::registry::Resource;
use crate::sheet::Sheet;
use crate::shelf::{After, Event};
use crate::status::Refused;
use crate::store::Store;
use crate::table::Headers;
use crate::view::Shape;
use crate::watch::{BOOKMARK_MS, InitialEnd, POLL_BYTES_MAX, Watch, WatchStep};

impl Store {
    /// Appends what a watch has to say to `out` (one JSON event a line) and says what comes next.
    /// At most [`POLL_BYTES_MAX`] and one object are written at a time.
    pub fn poll_watch(&self, watch: &mut Watch, now: Time, out: &mut Vec<u8>) -> WatchStep {
        let row = self.registry.row(watch.resource).clone();
        let shelf = self.shelf(watch.resource);
        let initial = std::mem::take(&mut watch.initial);
        let asked = self.must_ask(watch, initial.iter(), out);
        watch.initial = initial;
        if let Some(step) = asked {
            return step;
        }
        while let Some(entry) = watch.initial.pop_front() {
            self.tell(&row, watch, "ADDED", &entry, now, out);
            if out.len() > POLL_BYTES_MAX {
                return WatchStep::More;
            }
        }
        if watch.ends_initial == InitialEnd::Owed {
            watch.ends_initial = InitialEnd::Silent;
            bookmark(
                &row,
                watch,
                watch.cursor,
                out,
                &json!({ "k8s.io/initial-events-end": "true" }),
            );
        }
        // One from the future comes from a plane whose objects are gone: it must list again.
        if watch.cursor < shelf.floor() || watch.cursor > self.revision {
            let refused = Refused::watch_expired(watch.cursor, shelf.floor());
            line(out, "ERROR", refused.status().to_string().as_bytes());
            return WatchStep::End;
        }
        for event in shelf.events_after(watch.cursor) {
            if let Some((kind, entry)) = seen(watch, event) {
                if let Some(step) = self.must_ask(watch, std::iter::once(&*entry), out) {
                    return step;
                }
                self.tell(&row, watch, kind, &entry, now, out);
            }
            watch.cursor = event.revision;
            if out.len() > POLL_BYTES_MAX {
                return WatchStep::More;
            }
        }
        watch.cursor = watch.cursor.max(self.revision);
        watch.talk.converted.clear();
        let is_served = row.served && row.version(&watch.version).is_some();
        if watch.deadline.is_some_and(|deadline| deadline <= now) || !is_served {
            if watch.bookmark_at.is_some() {
                bookmark(&row, watch, watch.cursor, out, &Value::Null);
            }
            return WatchStep::End;
        }
        if watch.bookmark_at.is_some_and(|at| at <= now) {
            watch.bookmark_at = Some(now.plus_ms(BOOKMARK_MS));
            bookmark(&row, watch, watch.cursor, out, &Value::Null);
        }
        WatchStep::Wait {
            until: [watch.deadline, watch.bookmark_at]
                .into_iter()
                .flatten()
                .min(),
        }
    }

    /// What comes first where objects cannot be told before webhooks have converted them.
    fn must_ask<'a>(
        &self,
        watch: &mut Watch,
        entries: impl Iterator<Item = &'a Arc<Entry>>,
        out: &mut Vec<u8>,
    ) -> Option<WatchStep> {
        if watch.view.shape == Shape::Partial {
            return None;
        }
        let ready = self.ready_to_show(watch.resource, &watch.version, entries, &watch.talk);
        let mut refused = ready.err()?;
        watch.calls = refused.take_calls();
        if watch.calls.is_empty() {
            line(out, "ERROR", refused.status().to_string().as_bytes());
            return Some(WatchStep::End);
        }
        Some(WatchStep::Call)
    }

    fn tell(
        &self,
        row: &Resource,
        watch: &mut Watch,
        kind: &str,
        entry: &Arc<Entry>,
        now: Time,
        out: &mut Vec<u8>,
    ) {
        match watch.view.shape {
            Shape::Whole => {
                begin_line(out, kind);
                self.show(watch.resource, &watch.version, entry, &watch.talk, out);
                end_line(out);
            }
            Shape::Partial => {
                let shown = partial(entry, watch.view.version);
                line(out, kind, shown.to_string().as_bytes());
            }
            Shape::Table => {
                let headers = std::mem::replace(&mut watch.headers, Headers::Hidden);
                let sheet = Sheet {
                    id: watch.resource,
                    row,
                    version: &watch.version,
                    include: watch.include,
                    headers,
                    form: watch.view.version,
                    talk: &watch.talk,
                    now,
                };
                let meta = json!({ "resourceVersion": entry.revision.to_string() });
                let table = self.table(&sheet, std::slice::from_ref(entry), meta);
                line(out, kind, table.to_string().as_bytes());
            }
        }
    }
}

/// What an event is to this watch: an object that begins or ceases to be selected is added or
/// deleted for it.
fn seen<'a>(watch: &Watch, event: &'a Event) -> Option<(&'static str, Cow<'a, Arc<Entry>>)> {
    let selected = |entry: &Entry| watch.selection.matches(&event.key, entry);
    let before = event.before.as_ref().filter(|entry| selected(entry));
    match &event.after {
        After::Here(entry) => match (before, selected(entry)) {
            (None, true) => Some(("ADDED", Cow::Borrowed(entry))),
            (Some(_), true) => Some(("MODIFIED", Cow::Borrowed(entry))),
            (Some(before), false) => {
                let gone = before.at_revision(event.revision);
                Some(("DELETED", Cow::Owned(Arc::new(gone))))
            }
            (None, false) => None,
        },
        After::Gone(last) => before.map(|_| ("DELETED", Cow::Borrowed(last))),
    }
}

fn bookmark(row: &Resource, watch: &Watch, revision: u64, out: &mut Vec<u8>, notes: &Value) {
    let mut meta = json!({ "resourceVersion": revision.to_string() });
    if !notes.is_null() {
        meta["annotations"] = notes.clone();
    }
    let object = match watch.view.shape {
        Shape::Whole => json!({
            "kind": row.kind,
            "apiVersion": row.api_version(&watch.version),
            "metadata": meta,
        }),
        Shape::Partial => json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": watch.view.version.group_version(),
            "metadata": meta,
        }),
        // kubectl reads the revision of a Table bookmark from its one row.
        Shape::Table => json!({
            "kind": "Table",
            "apiVersion": watch.view.version.group_version(),
            "metadata": meta,
            "columnDefinitions": null,
            "rows": [{
                "cells": [],
                "object": {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": watch.view.version.group_version(),
                    "metadata": meta,
                },
            }],
        }),
    };
    line(out, "BOOKMARK", object.to_string().as_bytes());
}

fn line(out: &mut Vec<u8>, kind: &str, object: &[u8]) {
    begin_line(out, kind);
    out.extend_from_slice(object);
    end_line(out);
}

fn begin_line(out: &mut Vec<u8>, kind: &str) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
}

fn end_line(out: &mut Vec<u8>) {
    out.extend_from_slice(b"}\n");
}
