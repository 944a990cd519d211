//! Objects of any kind over [`Cluster`]: find a kind's path, create or change, list and watch, delete.

mod definitions;
mod place;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use api::call::Call;
use api::dialect::{self, Dialect};
use api::kind::Kind;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};

use crate::cluster::{Answer, ByteStream, Cluster, ClusterError};
use crate::console;

/// Our name in `managedFields` of what users apply.
const MANAGER: &str = "katmai-run";
/// A watch line longer than this is not an object of any API we know.
const LINE_BYTES_MAX: usize = 64 << 20;
/// Between two attempts to reach an API that went away.
const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// After so many failed attempts in a row a watch is given up.
const RETRIES_MAX: u32 = 40;
/// A server is asked to end a watch after so long; one that has not even ended it so much later is taken for
/// dead, for a connection to a machine that went without a word brings nothing for ever.
const WATCH_SECONDS: u64 = 300;
const WATCH_SLACK_SECONDS: u64 = 30;
/// How often a server that is asked too much is asked again, and how long that is waited for at most.
const BUSY_TRIES_MAX: u32 = 5;
const BUSY_SECONDS_MAX: u64 = 10;

/// Requests about objects, with a memory of which kinds exist.
#[derive(Clone)]
pub(crate) struct Rest {
    cluster: Arc<dyn Cluster>,
    kinds: Arc<Mutex<BTreeMap<String, Vec<Served>>>>,
    /// Kinds that definitions of the same request will serve, with their versions.
    promised: Arc<Mutex<Vec<(String, Served)>>>,
    /// Warnings that were passed on: each is said once.
    warned: Arc<Mutex<BTreeSet<String>>>,
}

pub(crate) use definitions::is_definition;
pub(crate) use place::{Part, Place, checked, collection, listed};

/// A kind as discovery describes it.
#[derive(Clone, Debug)]
struct Served {
    kind: String,
    plural: String,
    namespaced: bool,
}

/// What applying did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    Created,
    Configured,
    Unchanged,
}

impl Applied {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Applied::Created => "created",
            Applied::Configured => "configured",
            Applied::Unchanged => "unchanged",
        }
    }
}

/// A refusal, taken apart.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    pub code: u16,
    pub reason: String,
    pub message: String,
    /// Field path and text of each cause.
    pub causes: Vec<(String, String)>,
}

/// What a watch reports.
#[derive(Debug)]
pub(crate) enum Seen {
    /// It is there, in this state.
    Changed(Value),
    /// It is gone; this was its last state.
    Gone(Value),
    /// The watch was given up.
    Lost(ClusterError),
}

impl Rest {
    pub(crate) fn new(cluster: Arc<dyn Cluster>) -> Rest {
        Rest {
            cluster,
            kinds: Arc::default(),
            promised: Arc::default(),
            warned: Arc::default(),
        }
    }

    /// One request, whose warnings are passed on to the user.
    async fn call(&self, call: Call) -> Result<Answer, ClusterError> {
        let answer = self.cluster.call(call).await?;
        if !answer.warnings.is_empty() {
            let mut warned = self.warned.lock().await;
            for warning in &answer.warnings {
                if warned.insert(warning.clone()) {
                    console::warn(warning);
                }
            }
        }
        Ok(answer)
    }

    /// Where an object of a manifest lives. `namespace` is used if it names none.
    pub(crate) async fn place(&self, object: &Value, namespace: &str) -> anyhow::Result<Place> {
        let api_version = text(object, &["apiVersion"]);
        let kind = text(object, &["kind"]);
        let served = match self.served(api_version, kind).await? {
            Some(served) => Some(served),
            None => self.promised(api_version, kind).await,
        };
        let Some(served) = served else {
            return Err(anyhow!(Refusal {
                code: 404,
                reason: "NotFound".to_owned(),
                message: format!("no matches for kind \"{kind}\" in version \"{api_version}\""),
                causes: Vec::new(),
            }));
        };
        let own = text(object, &["metadata", "namespace"]);
        let namespace = if own.is_empty() { namespace } else { own };
        let root = root_of(api_version);
        let collection = if served.namespaced {
            collection(&root, namespace, &served.plural)?
        } else {
            format!("{root}/{}", served.plural)
        };
        Ok(Place {
            collection,
            name: text(object, &["metadata", "name"]).to_owned(),
        })
    }

    async fn served(&self, api_version: &str, kind: &str) -> anyhow::Result<Option<Served>> {
        let mut kinds = self.kinds.lock().await;
        if !kinds.contains_key(api_version) {
            let answer = self.send("GET", &root_of(api_version), None).await?;
            let found = if answer.code == 404 {
                Vec::new()
            } else {
                served_kinds(&accept(answer)?)
            };
            kinds.insert(api_version.to_owned(), found);
        }
        Ok(kinds[api_version]
            .iter()
            .find(|served| served.kind == kind)
            .cloned())
    }

    /// Asks whether a create would be accepted, without creating.
    pub(crate) async fn rehearse(&self, place: &Place, object: &Value) -> anyhow::Result<()> {
        let target = format!(
            "{}?dryRun=All&fieldManager={MANAGER}&fieldValidation=Strict",
            place.collection
        );
        accept(self.send("POST", &target, Some(object)).await?)?;
        Ok(())
    }

    /// Creates an object, or merges it into the one that is there.
    pub(crate) async fn apply(
        &self,
        place: &Place,
        object: &Value,
    ) -> anyhow::Result<(Applied, Value)> {
        let query = format!("fieldManager={MANAGER}&fieldValidation=Strict");
        let create = format!("{}?{query}", place.collection);
        let answer = self.send("POST", &create, Some(object)).await?;
        if answer.code != 409 || place.name.is_empty() {
            return Ok((Applied::Created, accept(answer)?));
        }
        let before = self.get(place).await?;
        let patch = Call {
            method: "PATCH",
            target: format!("{}?{query}", place.path()?),
            content_type: "application/merge-patch+json",
            body: serde_json::to_vec(object)?,
        };
        let after = accept(self.call(patch).await?)?;
        let version = &["metadata", "resourceVersion"];
        let applied = if text(&before, version) == text(&after, version) {
            Applied::Unchanged
        } else {
            Applied::Configured
        };
        Ok((applied, after))
    }

    /// Creates an object.
    pub(crate) async fn create(&self, collection: &str, object: &Value) -> anyhow::Result<Value> {
        accept(self.send("POST", collection, Some(object)).await?)
    }

    /// Merges a patch into an object.
    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> anyhow::Result<Value> {
        let call = Call {
            method: "PATCH",
            target: path.to_owned(),
            content_type: "application/merge-patch+json",
            body: serde_json::to_vec(patch)?,
        };
        accept(self.call(call).await?)
    }

    pub(crate) async fn get(&self, place: &Place) -> anyhow::Result<Value> {
        self.read(&place.path()?).await
    }

    /// Reads any path.
    pub(crate) async fn read(&self, target: &str) -> anyhow::Result<Value> {
        accept(self.send("GET", target, None).await?)
    }

    /// The answer of an API that is perhaps not served: then there is none. `door` is where it says that it is.
    /// Where it is asked too often, or cannot answer now, it is asked again when it says.
    ///
    /// # Errors
    /// It is served, and refuses: a [`Refusal`] with its words.
    pub(crate) async fn ask(&self, target: &str, door: &str) -> anyhow::Result<Option<Value>> {
        let mut tries = 0;
        loop {
            let answer = self.send("GET", target, None).await?;
            let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            let details = &told["details"];
            match answer.code {
                // Who may ask is looked at first, also by an API server that does not know what is asked.
                403 if self.send("GET", door, None).await?.code != 200 => return Ok(None),
                404 if details["name"].is_null() => return Ok(None),
                429 | 503 if tries < BUSY_TRIES_MAX => {
                    tries += 1;
                    let seconds = details["retryAfterSeconds"].as_u64().unwrap_or(1);
                    tokio::time::sleep(Duration::from_secs(seconds.clamp(1, BUSY_SECONDS_MAX)))
                        .await;
                }
                // A Service behind which nobody is, or nobody who decides.
                503 => return Ok(None),
                _ => return accept(answer).map(Some),
            }
        }
    }

    /// The object at a path, or `None` where there is none.
    pub(crate) async fn find(&self, target: &str) -> anyhow::Result<Option<Value>> {
        let answer = self.send("GET", target, None).await?;
        if answer.code == 404 {
            return Ok(None);
        }
        accept(answer).map(Some)
    }

    /// All items of a collection.
    pub(crate) async fn list(&self, target: &str) -> anyhow::Result<Vec<Value>> {
        let mut items = Vec::new();
        let mut token = String::new();
        loop {
            let mut page = self.read(&paged(target, 500, &token)).await?;
            items.extend(items_of(&mut page));
            token = text(&page, &["metadata", "continue"]).to_owned();
            if token.is_empty() {
                return Ok(items);
            }
        }
    }

    /// All objects of a kind, as our rooms speak of it, whatever version the server does.
    pub(crate) async fn list_kind(&self, kind: Kind) -> anyhow::Result<Vec<Value>> {
        let ours = kind.path("", "");
        let Some(dialect) = self.dialect(kind).await? else {
            return self.list(&ours).await;
        };
        let mut items = self.list(&dialect.path(&ours)).await?;
        for item in &mut items {
            dialect.heard_value(item);
        }
        Ok(items)
    }

    /// The version in which the server speaks of a kind; ours if in none.
    async fn dialect(&self, kind: Kind) -> anyhow::Result<Option<&'static Dialect>> {
        if !dialect::has_several(kind) {
            return Ok(None);
        }
        for version in dialect::versions(kind) {
            let answer = self.call(dialect::asked(kind, version)).await?;
            let serves = dialect::serves(kind, answer.code, &answer.body);
            let refused = |refusal: api::intent::Refusal| ClusterError::Refused {
                code: refusal.code,
                message: refusal.message.into(),
            };
            if serves.map_err(refused)? {
                return Ok(Dialect::find(kind, version));
            }
        }
        Ok(None)
    }

    /// How many items a collection has, reading only one.
    pub(crate) async fn count(&self, collection: &str) -> anyhow::Result<u64> {
        let page = self.read(&paged(collection, 1, "")).await?;
        let here = page["items"].as_array().map_or(0, Vec::len) as u64;
        let more = page["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
        Ok(here + more)
    }

    /// Deletes an object with its dependents; one that is gone already is no error.
    pub(crate) async fn delete(&self, place: &Place) -> anyhow::Result<()> {
        let options = json!({ "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background" });
        let answer = self.send("DELETE", &place.path()?, Some(&options)).await?;
        if answer.code != 404 {
            accept(answer)?;
        }
        Ok(())
    }

    /// Opens a container's log.
    pub(crate) async fn log(&self, target: &str) -> Result<ByteStream, ClusterError> {
        self.cluster.stream(target.to_owned()).await
    }

    /// Reports the items of a collection as they are and as they change, until the receiver is
    /// dropped. Whatever disappeared while no watch was open is reported too.
    pub(crate) async fn watch(self, target: String, seen: mpsc::Sender<Seen>) {
        let mut known: BTreeMap<String, Value> = BTreeMap::new();
        let mut failures = 0;
        loop {
            match self.watch_once(&target, &mut known, &seen).await {
                Ok(Flow::Stop) => return,
                Ok(Flow::Again) => failures = 0,
                Err(error) => {
                    failures += 1;
                    if failures > RETRIES_MAX {
                        // A receiver that is gone has no interest in the loss either.
                        drop(seen.send(Seen::Lost(error)).await);
                        return;
                    }
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
            if seen.is_closed() {
                return;
            }
        }
    }

    async fn watch_once(
        &self,
        target: &str,
        known: &mut BTreeMap<String, Value>,
        seen: &mpsc::Sender<Seen>,
    ) -> Result<Flow, ClusterError> {
        let mut list = refused(self.send("GET", target, None).await?)?;
        let mut fresh = BTreeMap::new();
        for item in items_of(&mut list) {
            fresh.insert(text(&item, &["metadata", "uid"]).to_owned(), item);
        }
        for (_, gone) in known.extract_if(.., |uid, _| !fresh.contains_key(uid)) {
            if seen.send(Seen::Gone(gone)).await.is_err() {
                return Ok(Flow::Stop);
            }
        }
        for (uid, item) in &fresh {
            // What was told before the watch ended is not told again.
            if known.get(uid) == Some(item) {
                continue;
            }
            if seen.send(Seen::Changed(item.clone())).await.is_err() {
                return Ok(Flow::Stop);
            }
        }
        *known = fresh;
        let version = text(&list, &["metadata", "resourceVersion"]);
        let joint = if target.contains('?') { '&' } else { '?' };
        let stream = self
            .cluster
            .stream(format!(
                "{target}{joint}watch=true&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={WATCH_SECONDS}"
            ))
            .await?;
        let end = tokio::time::sleep(Duration::from_secs(WATCH_SECONDS + WATCH_SLACK_SECONDS));
        let mut lines = Lines::new(stream.take_until(end).boxed());
        while let Some(line) = lines.next().await {
            let Ok(event) = serde_json::from_slice::<Value>(&line?) else {
                return Ok(Flow::Again);
            };
            let object = event["object"].clone();
            let uid = text(&object, &["metadata", "uid"]).to_owned();
            let report = match event["type"].as_str() {
                Some("ADDED" | "MODIFIED") => {
                    known.insert(uid, object.clone());
                    Seen::Changed(object)
                }
                Some("DELETED") => {
                    known.remove(&uid);
                    Seen::Gone(object)
                }
                Some("BOOKMARK") => continue,
                // An expired version, or something newer than we: read everything again.
                _ => return Ok(Flow::Again),
            };
            if seen.send(report).await.is_err() {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Again)
    }

    async fn send(
        &self,
        method: &'static str,
        target: &str,
        body: Option<&Value>,
    ) -> Result<Answer, ClusterError> {
        let call = Call {
            method,
            target: target.to_owned(),
            content_type: if body.is_some() {
                "application/json"
            } else {
                ""
            },
            body: body
                .map(|body| body.to_string().into_bytes())
                .unwrap_or_default(),
        };
        self.call(call).await
    }
}

enum Flow {
    Again,
    Stop,
}

/// Cuts a stream of bytes into lines.
pub(crate) struct Lines {
    stream: ByteStream,
    rest: Vec<u8>,
    done: bool,
}

impl Lines {
    pub(crate) fn new(stream: ByteStream) -> Lines {
        Lines {
            stream,
            rest: Vec::new(),
            done: false,
        }
    }

    /// The next line without its end; the last one may have had none.
    pub(crate) async fn next(&mut self) -> Option<Result<Vec<u8>, ClusterError>> {
        let mut searched = 0;
        loop {
            if let Some(at) = self.rest[searched..].iter().position(|byte| *byte == b'\n') {
                let tail = self.rest.split_off(searched + at + 1);
                let mut line = std::mem::replace(&mut self.rest, tail);
                line.pop();
                return Some(Ok(line));
            }
            searched = self.rest.len();
            if self.done {
                let line = std::mem::take(&mut self.rest);
                return (!line.is_empty()).then_some(Ok(line));
            }
            if searched > LINE_BYTES_MAX {
                self.done = true;
                self.rest.clear();
                return Some(Err(ClusterError::Unreachable(
                    "a line of the answer is too long".to_owned(),
                )));
            }
            match self.stream.next().await {
                Some(Ok(bytes)) => self.rest.extend_from_slice(&bytes),
                Some(Err(error)) => return Some(Err(error)),
                None => self.done = true,
            }
        }
    }
}

/// `/api/v1` or `/apis/group/version`.
fn root_of(api_version: &str) -> String {
    if api_version.contains('/') {
        format!("/apis/{api_version}")
    } else {
        format!("/api/{api_version}")
    }
}

fn paged(target: &str, limit: u32, token: &str) -> String {
    let joint = if target.contains('?') { '&' } else { '?' };
    let mut paged = format!("{target}{joint}limit={limit}");
    if !token.is_empty() {
        paged.push_str("&continue=");
        paged.push_str(&api::call::query_escape(token));
    }
    paged
}

fn served_kinds(list: &Value) -> Vec<Served> {
    list["resources"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|row| !text(row, &["name"]).contains('/'))
        .map(|row| Served {
            kind: text(row, &["kind"]).to_owned(),
            plural: text(row, &["name"]).to_owned(),
            namespaced: row["namespaced"].as_bool().unwrap_or(false),
        })
        .collect()
}

/// The items of a list. Built-in kinds leave out what every item is; it is put back here.
fn items_of(list: &mut Value) -> Vec<Value> {
    let api_version = list["apiVersion"].clone();
    let kind = text(list, &["kind"]).strip_suffix("List").map(Value::from);
    let Some(Value::Array(mut items)) = list.get_mut("items").map(Value::take) else {
        return Vec::new();
    };
    for item in &mut items {
        if let (Some(kind), Value::Object(fields)) = (&kind, item) {
            fields
                .entry("apiVersion")
                .or_insert_with(|| api_version.clone());
            fields.entry("kind").or_insert_with(|| kind.clone());
        }
    }
    items
}

/// The text at a path of fields, or nothing.
pub(crate) fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    path.iter()
        .try_fold(object, |value, field| value.get(field))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Whether the API refused with this code.
pub(crate) fn is_refused(error: &anyhow::Error, code: u16) -> bool {
    match error.downcast_ref::<ClusterError>() {
        Some(ClusterError::Refused { code: said, .. }) => *said == code,
        _ => (error.downcast_ref::<Refusal>()).is_some_and(|refusal| refusal.code == code),
    }
}

fn accept(answer: Answer) -> anyhow::Result<Value> {
    if !(200..300).contains(&answer.code) {
        bail!(refusal(&answer));
    }
    serde_json::from_slice(&answer.body).context("the API answered something that is not JSON")
}

fn refused(answer: Answer) -> Result<Value, ClusterError> {
    if !(200..300).contains(&answer.code) {
        let refusal = refusal(&answer);
        return Err(ClusterError::Refused {
            code: refusal.code,
            message: refusal.message,
        });
    }
    serde_json::from_slice(&answer.body)
        .map_err(|error| ClusterError::Unreachable(format!("the answer is not JSON: {error}")))
}

fn refusal(answer: &Answer) -> Refusal {
    let status: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let message = text(&status, &["message"]);
    Refusal {
        code: answer.code,
        reason: text(&status, &["reason"]).to_owned(),
        message: if message.is_empty() {
            format!("the API answered with code {}", answer.code)
        } else {
            message.to_owned()
        },
        causes: status["details"]["causes"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|cause| {
                (
                    text(cause, &["field"]).to_owned(),
                    text(cause, &["message"]).to_owned(),
                )
            })
            .collect(),
    }
}
