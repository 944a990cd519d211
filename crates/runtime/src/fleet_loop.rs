//! Tokio around the imitation nodes: feeds them the pods of the cluster, performs what they want.

use std::sync::Arc;
use std::time::Duration;

use api::call::WatchLine;
use api::core::Pod;
use api::intent::{Intent, WriteOutcome};
use api::kind::Kind;
use client::Cluster;
use futures::StreamExt;
use nodes::Fleet;
use tokio::sync::{Semaphore, mpsc};

use crate::engine_loop::{now, sleep_until};

/// Writes of the nodes under way at one time.
const WRITES_MAX: usize = 32;

/// How long to wait after the pods could not be listed or watched.
const AGAIN_MS: u64 = 500;

/// What the loop is told.
enum Heard {
    /// A pod as it is now.
    Pod(Box<Pod>),
    /// A pod has gone.
    Gone(Box<Pod>),
    /// What became of an intent.
    Written(Intent, WriteOutcome),
}

/// Lets imitation nodes live in `cluster` until the task that runs this is dropped.
pub async fn run(mut fleet: Fleet, cluster: Cluster) {
    let (hear, mut heard) = mpsc::channel(4_096);
    let room = Arc::new(Semaphore::new(WRITES_MAX));
    let watcher = tokio::spawn(watch(cluster.clone(), hear.clone()));
    // The watcher must not outlive the nodes that it feeds.
    let _ends_with_us = AbortOnDrop(watcher.abort_handle());
    loop {
        while let Some(intent) = fleet.poll_intent(now()) {
            let permit = Arc::clone(&room).acquire_owned().await;
            let (cluster, hear) = (cluster.clone(), hear.clone());
            tokio::spawn(async move {
                let outcome = cluster.write(&intent).await;
                drop(permit);
                // A loop that has ended wants no more answers.
                let _ = hear.send(Heard::Written(intent, outcome)).await;
            });
        }
        tokio::select! {
            biased;
            said = heard.recv() => {
                let Some(said) = said else { return };
                take(&mut fleet, said);
                while let Ok(said) = heard.try_recv() {
                    take(&mut fleet, said);
                }
            }
            () = sleep_until(fleet.poll_wake()) => fleet.handle_time(now()),
        }
    }
}

fn take(fleet: &mut Fleet, said: Heard) {
    match said {
        Heard::Pod(pod) => fleet.handle_pod(&pod, now()),
        Heard::Gone(pod) => fleet.handle_deleted(&pod, now()),
        Heard::Written(intent, outcome) => fleet.handle_written(&intent, &outcome, now()),
    }
}

/// Lists and watches pods for ever; the stages are level-triggered, so that telling a pod twice is
/// harmless.
async fn watch(cluster: Cluster, hear: mpsc::Sender<Heard>) {
    loop {
        if let Err(error) = watch_once(&cluster, &hear).await {
            tracing::warn!("cannot watch pods for the imitation nodes: {error}");
        }
        if hear.is_closed() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(AGAIN_MS)).await;
    }
}

async fn watch_once(
    cluster: &Cluster,
    hear: &mpsc::Sender<Heard>,
) -> Result<(), client::ClientError> {
    let mut continue_token = String::new();
    let revision = loop {
        let page = cluster.list(Kind::Pod, 500, &continue_token).await?;
        for item in page.items {
            tell(hear, item.get(), Heard::Pod).await;
        }
        if page.continue_token.is_empty() {
            break page.revision;
        }
        continue_token = page.continue_token;
    };
    let mut lines = cluster.watch(Kind::Pod, revision, 300).await?;
    while let Some(line) = lines.next().await {
        match line? {
            WatchLine::Applied(object) => tell(hear, object.get(), Heard::Pod).await,
            WatchLine::Deleted(object) => tell(hear, object.get(), Heard::Gone).await,
            WatchLine::Bookmark(_) => {}
            WatchLine::Failed(refusal) => return Err(client::ClientError::Refused(refusal)),
        }
    }
    Ok(())
}

async fn tell(hear: &mpsc::Sender<Heard>, text: &str, as_what: fn(Box<Pod>) -> Heard) {
    match serde_json::from_str(text) {
        // A loop that has ended hears nothing more.
        Ok(pod) => drop(hear.send(as_what(Box::new(pod))).await),
        Err(error) => tracing::warn!("cannot read a pod: {error}"),
    }
}

struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
