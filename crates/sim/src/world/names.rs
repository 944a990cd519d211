//! When the name server hears of what, and pods whose first container waits until it knows their peers.

use std::collections::BTreeMap;

use api::call;
use api::intent::{Action, Intent, WriteOutcome};
use api::kind::Kind;
use api::time::Time;
use serde_json::{Value, json};

use super::{Event, World};
use crate::fault::Fault;
use crate::names::{Names, News};
use crate::stored::{list, text};

/// A name server hears of an EndpointSlice so much later at most: what it watches with sums up for a
/// while, and answers are kept for another.
const HEARS_MS: i64 = 2_000;
/// It is deaf for so long at most.
const DEAF_MS: i64 = 30_000;
/// The init container of a pod that waits for its peers.
const WAITS: &str = "wait-for-peers";

/// How pods came to start that wait for the names of their peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meetings {
    /// Knowing them.
    pub known: u64,
    /// Having waited in vain.
    pub in_vain: u64,
}

/// Pods whose first container waits until names are known, by uid.
#[derive(Debug, Default)]
pub(super) struct Peers {
    waiting: BTreeMap<String, Seen>,
    /// Whether those that have started knew their peers.
    started: BTreeMap<String, bool>,
}

/// What the first container of a pod has seen so far: it asks once a second for each name that it has not seen
/// known, and what it has seen it does not ask for again.
#[derive(Debug)]
struct Seen {
    names: usize,
    unknown: Vec<String>,
}

impl Seen {
    fn ask(&mut self, server: &Names) {
        self.unknown.retain(|name| !server.knows(name));
    }
}

impl Peers {
    /// A pod waits for names, once its files say which.
    fn wait(&mut self, uid: &str, unknown: Vec<String>) {
        let names = unknown.len();
        if names > 0 {
            self.waiting.insert(uid.to_owned(), Seen { names, unknown });
        }
    }

    fn ask(&mut self, server: &Names) {
        let waiting = self.waiting.values_mut();
        waiting.for_each(|seen| seen.ask(server));
    }

    /// Whether the pod has seen so many of its names known, or all of them.
    fn knows(&mut self, uid: &str, least: i64, server: &Names) -> bool {
        let Some(seen) = self.waiting.get_mut(uid) else {
            return false;
        };
        seen.ask(server);
        let known = i64::try_from(seen.names - seen.unknown.len()).unwrap_or(0);
        known >= least || seen.unknown.is_empty()
    }
}

impl World {
    /// How pods that wait for their peers came to start so far.
    pub fn meetings(&self) -> Meetings {
        let started = &self.peers.started;
        let known = started.values().filter(|knows| **knows).count();
        let known = u64::try_from(known).unwrap_or(u64::MAX);
        let all = u64::try_from(started.len()).unwrap_or(u64::MAX);
        Meetings {
            known,
            in_vain: all.saturating_sub(known),
        }
    }

    /// The name server is told what is new of EndpointSlices, a little later.
    pub(super) fn tell_names(&mut self) {
        let Some(news) = self.names.look(&mut self.server, self.now) else {
            return;
        };
        let ms = self.draw_ms(Fault::DnsDelay, 0, HEARS_MS);
        let at = self.names.heard_at(self.now.plus_ms(ms));
        self.push(at, Event::Named(news));
    }

    /// The name server hears nothing for a while; then it hears of everything.
    pub(super) fn deafen(&mut self) {
        let ms = self.draw_ms(Fault::DnsDelay, 1_000, DEAF_MS);
        self.struck(Fault::DnsDelay, &format!("for {ms} ms"));
        self.names.deafen(self.now.plus_ms(ms));
    }

    /// The name server hears what is new; who waits for names has asked before, and asks again.
    pub(super) fn hear_names(&mut self, news: News) {
        self.peers.ask(&self.names);
        self.names.hear(news);
        self.peers.ask(&self.names);
    }

    /// Whether a pod has been taken by its kubelet and waits for its peers.
    pub(super) fn is_waiting(&self, intent: &Intent) -> bool {
        let target = &intent.target;
        let pod = self.witness.pod(&target.namespace, &target.name);
        pod.is_some_and(|pod| waits(pod).is_some() && !text(&pod["status"]["podIP"]).is_empty())
    }

    /// What becomes of the start of a pod that waits for its peers first; `None` where it starts. Its
    /// kubelet tells its address at once, and comes again with the start until that is due.
    pub(super) fn wait_for_peers(&mut self, intent: &Intent) -> Option<WriteOutcome> {
        let target = &intent.target;
        let pod = self.witness.pod(&target.namespace, &target.name)?;
        let container = waits(pod)?.clone();
        let (uid, since) = (&pod["metadata"]["uid"], &pod["status"]["startTime"]);
        let (uid, since) = (text(uid).to_owned(), Time::parse(text(since)));
        let job = text(&pod["metadata"]["labels"][api::volcano::JOB_NAME]).to_owned();
        if !self.is_waiting(intent) {
            return Some(self.perform("node", &address_alone(intent)));
        }
        let env = list(&container["env"]).iter();
        let value = |name: &str| {
            let row = env.clone().find(|row| row["name"] == *name);
            row.map_or("", |row| text(&row["value"]))
        };
        let number = |name: &str| value(name).parse::<i64>().unwrap_or(0);
        if !self.peers.waiting.contains_key(&uid) {
            let names = self.names_in(&target.namespace, &job, value("KATMAI_PEERS"));
            let domain = value("KATMAI_PEERS_DOMAIN");
            let names = names.iter().map(|name| format!("{name}.{domain}"));
            self.peers.wait(&uid, names.collect());
        }
        let least = number("KATMAI_PEERS_LEAST");
        let knows = self.peers.knows(&uid, least, &self.names);
        let until = since.map(|since| since.plus_ms(number("KATMAI_PEERS_SECONDS") * 1_000));
        if !knows && until.is_some_and(|until| self.now < until) {
            return Some(WriteOutcome::Unknown {
                message: "its peers are not known yet".into(),
            });
        }
        self.peers.waiting.remove(&uid);
        self.peers.started.insert(uid, knows);
        None
    }

    /// The names in the files that a job's pods find their peers in.
    fn names_in(&mut self, namespace: &str, job: &str, files: &str) -> Vec<String> {
        let read = call::get(Kind::ConfigMap, namespace, &format!("{job}-svc"));
        let map: Value = serde_json::from_slice(&self.read_as_node(&read).body).unwrap_or_default();
        let file = |path: &str| {
            let file = path.rsplit('/').next().unwrap_or_default();
            let names = text(&map["data"][file]).lines();
            names.map(str::to_owned).collect::<Vec<_>>()
        };
        files.split_whitespace().flat_map(file).collect()
    }
}

fn waits(pod: &Value) -> Option<&Value> {
    let containers = list(&pod["spec"]["initContainers"]);
    containers.iter().find(|it| it["name"] == WAITS)
}

/// A pod whose containers are to start, with its first container instead.
fn address_alone(intent: &Intent) -> Intent {
    let mut intent = intent.clone();
    if let Action::Patch { patch, .. } = &mut intent.action {
        let status = &mut patch["status"];
        let mut conditions = status["conditions"].take();
        for condition in conditions.as_array_mut().into_iter().flatten() {
            let is_whole = matches!(
                condition["type"].as_str(),
                Some("Initialized" | "Ready" | "ContainersReady")
            );
            if is_whole {
                condition["status"] = json!("False");
            }
        }
        let mut waiting = json!({ "phase": "Pending", "conditions": conditions });
        for field in ["hostIP", "hostIPs", "podIP", "podIPs", "startTime"] {
            waiting[field] = status[field].take();
        }
        *status = waiting;
    }
    intent
}
