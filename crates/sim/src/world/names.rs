//! When the name server hears of what, and pods whose first container waits until it knows their peers.

use std::collections::{BTreeMap, BTreeSet};

use api::call;
use api::intent::{Action, Intent, WriteOutcome};
use api::kind::Kind;
use api::time::Time;
use serde_json::{Value, json};

use super::{Event, World};
use crate::fault::Fault;
use crate::names::{Names, News};
use crate::stored::{controller, is_over, list, text};

/// A name server that is deaf is so for so long at most.
const DEAF_MS: i64 = 30_000;
/// The init container of a pod that waits for its peers.
const WAITS: &str = "wait-for-peers";

/// What a pod that is to know its peers found when its own containers started: they ask once for every
/// name that their job has by its spec. What the pod was told to wait for has no part in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// The job's name.
    pub job: String,
    /// How many names DNS knew, the pod's own among them.
    pub found: usize,
    /// How many there were to be known for certain: those of as many pods as start together, less those
    /// of pods that have ended, whose names are gone.
    pub certain: usize,
    /// Whether its first container had given up waiting.
    pub in_vain: bool,
}

impl Meeting {
    /// Whether no first question failed that could not fail in a gang that is whole.
    pub fn is_whole(&self) -> bool {
        self.found >= self.certain
    }
}

/// Pods whose first container waits until names are known, by uid.
#[derive(Debug, Default)]
pub(super) struct Peers {
    waiting: BTreeMap<String, Seen>,
    /// Those whose time was over before.
    in_vain: BTreeSet<String>,
    /// What those that have started found.
    met: BTreeMap<String, Meeting>,
}

/// What the first container of a pod has seen so far: it asks once a second for each name that it has not seen
/// known, and what it has seen it does not ask for again.
#[derive(Debug)]
struct Seen {
    names: usize,
    unknown: Vec<String>,
    /// How many pods had ended when its files were mounted.
    ended: i64,
}

impl Seen {
    fn ask(&mut self, server: &Names) {
        self.unknown.retain(|name| !server.knows(name));
    }
}

impl Peers {
    /// A pod waits for names, once its files say which.
    fn wait(&mut self, uid: &str, unknown: Vec<String>, ended: i64) {
        let names = unknown.len();
        if names > 0 {
            let seen = Seen {
                names,
                unknown,
                ended,
            };
            self.waiting.insert(uid.to_owned(), seen);
        }
    }

    fn ask(&mut self, server: &Names) {
        let waiting = self.waiting.values_mut();
        waiting.for_each(|seen| seen.ask(server));
    }

    /// Whether the pod has seen so many of its names known, less those of pods that had ended and no more
    /// than `most`, or all of them.
    fn knows(&mut self, uid: &str, least: i64, most: i64, server: &Names) -> bool {
        let Some(seen) = self.waiting.get_mut(uid) else {
            return false;
        };
        seen.ask(server);
        let known = i64::try_from(seen.names - seen.unknown.len()).unwrap_or(0);
        known >= (least - seen.ended).min(most) || seen.unknown.is_empty()
    }
}

impl World {
    /// What pods that are to know their peers found when they started, so far.
    pub fn meetings(&self) -> impl Iterator<Item = &Meeting> {
        self.peers.met.values()
    }

    /// The name server is told what is new of EndpointSlices, a little later.
    pub(super) fn tell_names(&mut self) {
        let Some(news) = self.names.look(&mut self.server, self.now) else {
            return;
        };
        let (low, high) = (self.settings.names_ms_min, self.settings.names_ms_max);
        let ms = self.draw_ms(Fault::DnsDelay, low, high);
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

    /// What becomes of the start of a pod that waits for its peers first; `None` where it starts.
    pub(super) fn wait_for_peers(&mut self, intent: &Intent) -> Option<WriteOutcome> {
        let outcome = self.first_container(intent);
        if outcome.is_none() {
            self.meet(intent);
        }
        outcome
    }

    /// A kubelet tells a waiting pod's address at once, and comes again with the start until that is
    /// due.
    fn first_container(&mut self, intent: &Intent) -> Option<WriteOutcome> {
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
            let read = call::get(Kind::ConfigMap, &target.namespace, &format!("{job}-svc"));
            let map: Value =
                serde_json::from_slice(&self.read_as_node(&read).body).unwrap_or_default();
            let file = |path: &str| text(&map["data"][path.rsplit('/').next().unwrap_or_default()]);
            let domain = value("KATMAI_PEERS_DOMAIN");
            let paths = value("KATMAI_PEERS").split_whitespace();
            let names = paths.flat_map(|path| file(path).lines());
            let names = names.map(|name| format!("{name}.{domain}")).collect();
            let ended = file(value("KATMAI_PEERS_ENDED")).parse().unwrap_or(0);
            self.peers.wait(&uid, names, ended);
        }
        let (least, most) = (number("KATMAI_PEERS_LEAST"), number("KATMAI_PEERS_MOST"));
        let knows = self.peers.knows(&uid, least, most, &self.names);
        let until = since.map(|since| since.plus_ms(number("KATMAI_PEERS_SECONDS") * 1_000));
        if !knows && until.is_some_and(|until| self.now < until) {
            // Nothing went wrong, so nobody backs off: the kubelet looks again in half a second.
            return Some(WriteOutcome::Done {
                revision: 0,
                uid: uid.into(),
            });
        }
        self.peers.waiting.remove(&uid);
        if !knows {
            self.peers.in_vain.insert(uid);
        }
        None
    }

    /// A pod's own containers start where pods are to know their peers, and ask.
    fn meet(&mut self, intent: &Intent) {
        let rules = &self.drivers.controller_settings;
        let target = &intent.target;
        let pod = self.witness.pod(&target.namespace, &target.name);
        let Some(pod) = pod.filter(|_| rules.peers.is_usual) else {
            return;
        };
        let owner = controller(pod);
        let mut jobs = self.witness.all(Kind::VcJob);
        let job = jobs.find(|job| owner == job["metadata"]["uid"].as_str());
        let Some(job) = job.filter(|job| job["spec"]["plugins"]["svc"].is_array()) else {
            return;
        };
        let uid = text(&pod["metadata"]["uid"]).to_owned();
        let names = names_of(job);
        let domain = format!("{}.svc.{}", target.namespace, rules.cluster_domain);
        let is_known = |name: &&String| self.names.knows(&format!("{name}.{domain}"));
        let together = job["spec"]["minAvailable"].as_u64();
        let together = together.and_then(|count| usize::try_from(count).ok());
        let pods = self.witness.all(Kind::Pod);
        let ended = pods.filter(|it| controller(it) == owner && is_over(it));
        let meeting = Meeting {
            job: text(&job["metadata"]["name"]).to_owned(),
            found: names.iter().filter(is_known).count(),
            certain: together
                .map_or(names.len(), |count| count.min(names.len()))
                .saturating_sub(ended.count()),
            in_vain: self.peers.in_vain.contains(&uid),
        };
        // What a start that is told again finds is not the first answer.
        self.peers.met.entry(uid).or_insert(meeting);
    }
}

/// Under which names the pods of a job find each other, by its spec alone.
fn names_of(job: &Value) -> Vec<String> {
    let name = text(&job["metadata"]["name"]);
    let of_task = |task: &Value| {
        let task_name = text(&task["name"]).to_owned();
        let count = task["replicas"].as_u64().unwrap_or(1);
        (0..count).map(move |index| format!("{name}-{task_name}-{index}.{name}"))
    };
    list(&job["spec"]["tasks"])
        .iter()
        .flat_map(of_task)
        .collect()
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
