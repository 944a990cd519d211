//! Signs of life of nodes, as kubelet gives them: a Lease for each, renewed every ten seconds, and
//! a status every five minutes or when somebody has doubted it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::intent::{Action, Intent, ObjectKey, Part, WriteOutcome};
use api::kind::Kind;
use api::time::Time;
use futures::{StreamExt, stream};
use serde_json::{Value, json};

use crate::clock::{now, sleep_until};
use crate::follow::Followed;
use crate::process::NodeApi;

/// Where nodes keep their leases.
const NAMESPACE: &str = "kube-node-lease";
/// How often a lease is renewed, where there are not too many.
const RENEW_MS: i64 = 10_000;
/// A fleet renews so many leases a second at most, and each for a longer time.
const RENEWS_PER_SECOND_MAX: i64 = 50;
/// A lease holds for so many renewals.
const RENEWALS_HELD: i64 = 4;
/// How often a status is told that nobody doubts.
const STATUS_MS: i64 = 300_000;
/// Nodes that come together are looked at together.
const GATHER_MS: i64 = 50;
/// Writes under way at one time.
const WRITES_MAX: usize = 16;
/// Attempts at one lease: it may be there already, or be gone.
const ATTEMPTS_MAX: u32 = 3;

/// For whom signs of life are given.
pub(crate) enum Whose {
    /// One node.
    One(String),
    /// Some of many.
    Fleet(BTreeSet<String>),
}

impl Whose {
    fn are(&self, name: &str) -> bool {
        match self {
            Whose::One(own) => own == name,
            Whose::Fleet(names) => names.contains(name),
        }
    }
}

/// Gives signs of life until the task that runs this is dropped.
pub(crate) async fn beat(api: Arc<dyn NodeApi>, whose: Whose) {
    let selector = match &whose {
        Whose::One(name) => Some(format!("metadata.name={name}")),
        Whose::Fleet(_) => None,
    };
    let mut news = api.follow(Kind::Node, selector);
    let mut heart = Heart {
        api,
        whose,
        nodes: BTreeMap::new(),
    };
    loop {
        let wake = heart.nodes.values().map(|known| known.renew_at).min();
        tokio::select! {
            said = news.next() => match said {
                Some(said) => heart.hear(said),
                None => return,
            },
            () = sleep_until(wake) => heart.beat().await,
        }
    }
}

struct Heart {
    api: Arc<dyn NodeApi>,
    whose: Whose,
    nodes: BTreeMap<String, Known>,
}

/// A node that is spoken for.
struct Known {
    uid: String,
    resource_version: String,
    conditions: Vec<Value>,
    lease: Option<Lease>,
    renew_at: Time,
    status_at: Time,
}

/// A lease as last seen.
#[derive(Clone)]
struct Lease {
    uid: String,
    resource_version: String,
}

impl Heart {
    fn hear(&mut self, said: Followed) {
        match said {
            Followed::Listed(all) => {
                let names: BTreeSet<&str> = all.iter().map(|node| text(node, "name")).collect();
                self.nodes.retain(|name, _| names.contains(&**name));
                for node in &all {
                    self.see(node);
                }
            }
            Followed::Applied(node) => self.see(&node),
            Followed::Deleted(node) => {
                self.nodes.remove(text(&node, "name"));
            }
        }
    }

    fn see(&mut self, node: &Value) {
        let name = text(node, "name");
        if !self.whose.are(name) {
            return;
        }
        let now = now();
        let uid = text(node, "uid");
        let before = self.nodes.remove(name).filter(|known| known.uid == uid);
        let conditions = node["status"]["conditions"].as_array();
        let mut known = Known {
            uid: uid.to_owned(),
            resource_version: text(node, "resourceVersion").to_owned(),
            conditions: conditions.cloned().unwrap_or_default(),
            lease: None,
            renew_at: now.plus_ms(GATHER_MS),
            status_at: now.plus_ms(STATUS_MS),
        };
        if let Some(before) = before {
            known.lease = before.lease;
            known.renew_at = before.renew_at;
            known.status_at = before.status_at;
        }
        if !nodes::are_believed(&known.conditions) {
            known.status_at = now;
            known.renew_at = known.renew_at.min(now.plus_ms(GATHER_MS));
        }
        self.nodes.insert(name.to_owned(), known);
    }

    /// Renews all leases that are due, and tells statuses.
    async fn beat(&mut self) {
        let count = i64::try_from(self.nodes.len()).unwrap_or(i64::MAX);
        let every = RENEW_MS.max(count.saturating_mul(1_000) / RENEWS_PER_SECOND_MAX);
        let seconds = every.saturating_mul(RENEWALS_HELD) / 1_000;
        let began = now();
        let mut work = Vec::new();
        for (name, known) in &mut self.nodes {
            if known.renew_at > began {
                continue;
            }
            known.renew_at = began.plus_ms(every);
            let status = (known.status_at <= began).then(|| known.status(name, began));
            if status.is_some() {
                known.status_at = began.plus_ms(STATUS_MS);
            }
            let renewal = Renewal {
                api: self.api.clone(),
                name: name.clone(),
                node_uid: known.uid.clone(),
                seconds,
            };
            let (lease, api) = (known.lease.clone(), self.api.clone());
            work.push(async move {
                if let Some(status) = status {
                    // A status that is refused is told again when the newer one is seen.
                    let _refused = api.write(status).await;
                }
                let lease = renewal.make(lease).await;
                (renewal.name, lease)
            });
        }
        let mut work = stream::iter(work).buffer_unordered(WRITES_MAX);
        while let Some((name, lease)) = work.next().await {
            if let Some(known) = self.nodes.get_mut(&name) {
                known.lease = lease;
            }
        }
    }
}

impl Known {
    /// What the node says of itself; what others say of it stays.
    fn status(&self, name: &str, now: Time) -> Intent {
        Intent {
            target: ObjectKey::new(Kind::Node, "", name),
            action: Action::Patch {
                uid: self.uid.clone().into(),
                resource_version: self.resource_version.clone().into(),
                part: Part::Status,
                patch: json!({ "status": { "conditions": nodes::conditions(&self.conditions, now) } }),
            },
        }
    }
}

struct Renewal {
    api: Arc<dyn NodeApi>,
    name: String,
    node_uid: String,
    seconds: i64,
}

impl Renewal {
    /// The lease after it was renewed; `None` where that failed and it must be looked at again.
    async fn make(&self, mut held: Option<Lease>) -> Option<Lease> {
        for _ in 0..ATTEMPTS_MAX {
            let target = ObjectKey::new(Kind::Lease, NAMESPACE, &self.name);
            if held.is_none() {
                held = match self.api.read(target.clone()).await {
                    Ok(found) => found.as_ref().map(lease),
                    Err(_) => return None,
                };
            }
            let action = match &held {
                Some(lease) => Action::Patch {
                    uid: lease.uid.clone().into(),
                    resource_version: lease.resource_version.clone().into(),
                    part: Part::Whole,
                    patch: json!({ "spec": self.spec() }),
                },
                None => Action::Create { body: self.body() },
            };
            match self.api.write(Intent { target, action }).await {
                WriteOutcome::Done { revision: 0, .. } => return None,
                WriteOutcome::Done { revision, uid } => {
                    return Some(Lease {
                        uid: uid.into(),
                        resource_version: revision.to_string(),
                    });
                }
                WriteOutcome::Refused(refusal) if matches!(refusal.code, 404 | 409) => held = None,
                WriteOutcome::Refused(_) | WriteOutcome::Unknown { .. } => return None,
            }
        }
        None
    }

    fn spec(&self) -> Value {
        json!({
            "holderIdentity": self.name,
            "leaseDurationSeconds": self.seconds,
            "renewTime": now().micro(),
        })
    }

    fn body(&self) -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": self.name,
                "namespace": NAMESPACE,
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "Node", "name": self.name, "uid": self.node_uid,
                }],
            },
            "spec": self.spec(),
        })
    }
}

fn lease(object: &Value) -> Lease {
    Lease {
        uid: text(object, "uid").to_owned(),
        resource_version: text(object, "resourceVersion").to_owned(),
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}
