//! Lists a kind and watches it, for ever: whoever listens hears all that is, then what changes.

use std::time::Duration;

use api::call::{self, WatchLine};
use api::kind::Kind;
use client::{ClientError, Cluster};
use futures::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How long to wait after a kind could not be listed or watched.
const AGAIN: Duration = Duration::from_millis(500);
/// Objects of one page of a list.
const PAGE: u32 = 500;
/// How long a watch is asked for.
const WATCH_SECONDS: u32 = 300;
/// The server has forgotten the revision that a watch was to begin at.
const GONE: u16 = 410;

/// What a followed kind tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Followed<T = serde_json::Value> {
    /// All objects that exist now; whatever is not among them is gone.
    Listed(Vec<T>),
    /// One object is new or has changed.
    Applied(T),
    /// One object is gone; this was its last state.
    Deleted(T),
}

/// What is followed.
pub struct Wish {
    /// Objects of this kind.
    pub kind: Kind,
    /// Kubernetes' form (`spec.nodeName=node-1`).
    pub field_selector: Option<String>,
}

/// Tells what becomes of a kind until nobody listens. After an interruption changes may be told
/// twice, and where some were missed everything is told again.
pub async fn follow<T: DeserializeOwned + Send>(
    cluster: Cluster,
    wish: Wish,
    tell: mpsc::Sender<Followed<T>>,
) {
    let selector = wish
        .field_selector
        .map(|selector| format!("&fieldSelector={}", call::query_escape(&selector)))
        .unwrap_or_default();
    let mut following = Following {
        cluster,
        kind: wish.kind,
        selector,
        revision: None,
        tell,
    };
    loop {
        let tell = following.tell.clone();
        let began = Instant::now();
        let end = tokio::select! {
            () = tell.closed() => return,
            end = following.once() => end,
        };
        match end {
            // The server ends long watches by and by; that is no trouble. One that stops ends them at once.
            Ok(()) if began.elapsed() >= AGAIN => continue,
            Ok(()) => {}
            Err(ClientError::Refused(refusal)) if refusal.code == GONE => {
                following.revision = None;
                continue;
            }
            Err(error) => {
                tracing::warn!("following {:?} was interrupted: {error}", following.kind);
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

struct Following<T> {
    cluster: Cluster,
    kind: Kind,
    selector: String,
    /// Everything up to here was told.
    revision: Option<u64>,
    tell: mpsc::Sender<Followed<T>>,
}

impl<T: DeserializeOwned + Send> Following<T> {
    async fn once(&mut self) -> Result<(), ClientError> {
        let revision = match self.revision {
            Some(revision) => revision,
            None => self.list().await?,
        };
        self.revision = Some(revision);
        let mut watch = call::watch(self.kind, revision, WATCH_SECONDS);
        watch.target.push_str(&self.selector);
        let mut lines = self.cluster.watch_call(watch, WATCH_SECONDS).await?;
        while let Some(line) = lines.next().await {
            match line? {
                WatchLine::Applied(object) => self.say(&object, Followed::Applied).await,
                WatchLine::Deleted(object) => self.say(&object, Followed::Deleted).await,
                WatchLine::Bookmark(revision) => self.revision = Some(revision),
                WatchLine::Failed(refusal) => return Err(ClientError::Refused(refusal)),
            }
        }
        Ok(())
    }

    /// Tells all objects; the revision at which that was true.
    async fn list(&self) -> Result<u64, ClientError> {
        let mut all = Vec::new();
        let mut continue_token = String::new();
        loop {
            let mut list = call::list(self.kind, PAGE, &continue_token);
            list.target.push_str(&self.selector);
            let answer = self.cluster.send(&list).await?.accepted()?;
            let page = call::page(&answer.body).map_err(|cause| ClientError::Malformed {
                target: list.target.clone(),
                cause,
            })?;
            all.extend(page.items.iter().filter_map(|item| read(item)));
            if page.continue_token.is_empty() {
                // A reader that has gone wants nothing more.
                let _gone = self.tell.send(Followed::Listed(all)).await;
                return Ok(page.revision);
            }
            continue_token = page.continue_token;
        }
    }

    async fn say(&self, object: &RawValue, how: fn(T) -> Followed<T>) {
        if let Some(object) = read(object) {
            // A reader that has gone wants nothing more.
            let _gone = self.tell.send(how(object)).await;
        }
    }
}

fn read<T: DeserializeOwned>(object: &RawValue) -> Option<T> {
    match serde_json::from_str(object.get()) {
        Ok(object) => Some(object),
        Err(error) => {
            tracing::warn!("cannot read an object: {error}");
            None
        }
    }
}
