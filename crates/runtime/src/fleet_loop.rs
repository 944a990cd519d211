//! Tokio around the imitation nodes: feeds them the pods of the cluster, performs what they want.

use std::sync::Arc;

use api::core::Pod;
use api::intent::Intent;
use api::kind::Kind;
use client::Cluster;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use nodes::Fleet;
use tokio::sync::mpsc;

use crate::clock::{now, sleep_until};
use crate::follow::{Followed, Wish, follow};
use crate::heartbeat::{self, Whose};
use crate::node_api::ClusterNodeApi;

/// Writes of the nodes under way at one time.
const WRITES_MAX: usize = 32;

/// Pods and outcomes that may wait for the loop.
const WAITING_MAX: usize = 4_096;

/// Lets imitation nodes live in `cluster` until the task that runs this is dropped.
pub async fn run(mut fleet: Fleet, cluster: Cluster) {
    let (tell, mut told) = mpsc::channel(WAITING_MAX);
    let pods = Wish {
        kind: Kind::Pod,
        field_selector: None,
    };
    let watcher = tokio::spawn(follow::<Pod>(cluster.clone(), pods, tell));
    let names = (0..fleet.n_nodes()).map(nodes::name).collect();
    let api = Arc::new(ClusterNodeApi::new(cluster.clone()));
    let heart = tokio::spawn(heartbeat::beat(api, Whose::Fleet(names)));
    // Neither may outlive the nodes.
    let _end_with_us = [watcher, heart].map(|task| AbortOnDrop(task.abort_handle()));
    let write = async |intent: Intent| {
        let outcome = cluster.write(&intent).await;
        (intent, outcome)
    };
    let mut under_way = FuturesUnordered::new();
    loop {
        while under_way.len() < WRITES_MAX
            && let Some(intent) = fleet.poll_intent(now())
        {
            under_way.push(write(intent));
        }
        tokio::select! {
            biased;
            Some((intent, outcome)) = under_way.next() => {
                fleet.handle_written(&intent, &outcome, now());
            }
            said = told.recv() => {
                let Some(said) = said else { return };
                take(&mut fleet, said);
                while let Ok(said) = told.try_recv() {
                    take(&mut fleet, said);
                }
            }
            () = sleep_until(fleet.poll_wake()) => fleet.handle_time(now()),
        }
    }
}

fn take(fleet: &mut Fleet, said: Followed<Pod>) {
    match said {
        Followed::Listed(pods) => fleet.handle_listed(&pods, now()),
        Followed::Applied(pod) => fleet.handle_pod(&pod, now()),
        Followed::Deleted(pod) => fleet.handle_deleted(&pod, now()),
    }
}

struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
