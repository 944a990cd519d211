//! A cluster as a list of objects shows it, before the real store and a real driver, with nobody else
//! in it: no wire takes time, no node runs anything. What the driver would do next is carried out at
//! once, so that "what if" is answered by doing it.
//!
//! A list may be a part of what there is: whatever names an owner that is not in it is left alone, and
//! only what is asked to go takes with it what it owns.
//!
//! Invariants: nothing is decided before [`Rehearsal::settle`]; a pod that is told to go has gone, one that
//! has a node runs and is ready; the same objects give the same answers.

mod change;
mod deletion;
mod limits;
mod outcome;
mod owners;
mod taints;
mod unsaid;

use std::collections::{BTreeMap, BTreeSet};

use api::ask::{Report, Subject};
use api::call::{self, Call, WatchLine};
use api::core::{Pod, PodPhase};
use api::dialect;
use api::intent::{Intent, Refusal, WriteOutcome};
use api::kind::Kind;
use api::time::Time;
use api::volcano::{ASCEND_REAL, NPU_CORE};
use driver::explain::Unanswered;
use driver::{Door, Driver, Request, RequestId};
use serde_json::{Value, json};
use store::{LoadError, Response, User, Watch};

use crate::calls;
use crate::random::Random;
use crate::wire::{Answered, Listed, Next, Server, refusal_of, told};

pub use change::{Change, Named, Refused, WHAT_IF};
pub use outcome::{Before, Fate, Gone, Leaves, Outcome};
pub use owners::Owner;

/// Rounds in one settling; a rehearsal that needs more is taken to run for ever.
const ROUNDS_MAX: u64 = 5_000_000;
/// How long the driver is given to come to rest: longer than any gap between two cycles, shorter than
/// any patience with a node.
const REST_MS: i64 = 20_000;

/// A cluster in which a question is tried out.
pub struct Rehearsal {
    server: Server,
    driver: Driver,
    /// Whose pods the driver places, by the scheduler that they name.
    schedulers: BTreeSet<Box<str>>,
    watches: BTreeMap<RequestId, Box<Watch>>,
    now: Time,
    /// When something was changed last.
    changed_at: Time,
    left_out: BTreeMap<String, usize>,
    unreadable: Vec<LoadError>,
    /// Whether it was not said which namespaces there are.
    makes_namespaces: bool,
    /// What APIs say that the store does not serve, by target.
    answers: BTreeMap<String, Vec<u8>>,
    /// Those of them that nobody has asked for yet.
    untold: BTreeSet<String>,
    /// How often all objects of a kind were listed.
    #[cfg(test)]
    lists: usize,
}

impl std::fmt::Debug for Rehearsal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rehearsal").finish_non_exhaustive()
    }
}

impl Rehearsal {
    /// A cluster of these objects, whole as an API shows them, at `now`. Objects of kinds that no
    /// decision reads are left out. What every plane has (queues `default` and `root`, namespaces) is
    /// made where it is missing, and rules that taint devices can be made. The driver's controllers are those
    /// that make pods and groups; one that takes away what nobody seems to own would take away what is not in
    /// the list. Where no namespace is among the objects each that is named is there.
    pub fn of(objects: Vec<Value>, drivers: driver::Settings, now: Time) -> Rehearsal {
        let mut all = Vec::new();
        let mut left_out = BTreeMap::new();
        let mut namespaces = BTreeSet::new();
        let mut random = Random::new(1);
        let mut makes_namespaces = true;
        for mut object in objects {
            dialect::hear(&mut object);
            change::with_one_applier(&mut object);
            let kind = Kind::find(said(&object, "apiVersion"), said(&object, "kind"));
            let resource = match kind.map(Kind::row) {
                Some(row) => format!("{}/{}", row.group, row.plural),
                None if limits::is_one(&object) => limits::RESOURCE.to_owned(),
                None => {
                    let kind = said(&object, "kind").to_owned();
                    *left_out.entry(kind).or_default() += 1;
                    continue;
                }
            };
            makes_namespaces &= kind != Some(Kind::Namespace);
            let (namespace, _) = place(&object);
            if !namespace.is_empty() {
                namespaces.insert(namespace.to_owned());
            }
            all.push(listed(resource, object, now, &mut random));
        }
        let namespaces: Vec<Value> = namespaces
            .into_iter()
            .map(|name| namespace(&name))
            .collect();
        let engine = drivers.engine.iter();
        let schedulers = engine.flat_map(|engine| {
            let alone = engine.lone_scheduler_names.iter();
            let names = engine.scheduler_names.iter().chain(alone);
            names.chain(&engine.agent_scheduler_names).cloned()
        });
        let schedulers = schedulers.collect();
        let (server, unreadable) = Server::of_list(random, all, &drivers, now);
        let mut rehearsal = Rehearsal {
            server,
            driver: Driver::new(drivers),
            schedulers,
            watches: BTreeMap::new(),
            now,
            changed_at: now,
            left_out,
            unreadable,
            makes_namespaces,
            answers: BTreeMap::new(),
            untold: BTreeSet::new(),
            #[cfg(test)]
            lists: 0,
        };
        let defined = rehearsal.call(&taints::defined());
        assert_eq!(defined.code, 201, "the definition of taint rules is valid");
        for namespace in namespaces {
            // It is there already, where it was listed.
            rehearsal.call(&calls::post(&Kind::Namespace.path("", ""), &namespace));
        }
        rehearsal
    }

    /// What the cluster says at a target of an API that it serves beside its objects (`metrics.k8s.io`), where
    /// the rules ask there: it says so whenever it is asked.
    pub fn answers(&mut self, target: &str, body: Vec<u8>) {
        self.untold.insert(target.to_owned());
        self.answers.insert(target.to_owned(), body);
    }

    /// How many objects of which kinds were left out.
    pub fn left_out(&self) -> &BTreeMap<String, usize> {
        &self.left_out
    }

    /// Objects that cannot be read: nobody sees them here.
    pub fn unreadable(&self) -> &[LoadError] {
        &self.unreadable
    }

    /// Says why a workload waits, on what was given and nothing else: nothing is decided before.
    ///
    /// # Errors
    /// There is nothing to explain.
    pub fn explain(&mut self, subject: &Subject) -> Result<Report, Unanswered> {
        // Rules ask before they decide.
        while !self.driver.is_informed() || !self.untold.is_empty() {
            let Some((id, request)) = self.driver.poll_request(self.now) else {
                break;
            };
            self.serve(id, request);
        }
        // Whoever could list the objects may see them.
        let found = self.driver.explain(subject, self.now)?;
        Ok(found.told(&|_| true))
    }

    /// Lets the driver do everything that it would do now; it may be left waiting for somebody who is not
    /// here, such as one who makes volumes. False where it does not come to rest.
    pub fn settle(&mut self) -> bool {
        let end = self.now.plus_ms(REST_MS);
        for _ in 0..ROUNDS_MAX {
            if self.turn() {
                continue;
            }
            match self.driver.poll_wake().filter(|at| *at <= end) {
                Some(at) => self.now = at.max(self.now),
                None => {
                    self.now = end;
                    self.driver.handle_time(end);
                    return true;
                }
            }
            self.driver.handle_time(self.now);
        }
        false
    }

    /// One round at this instant; whether anything happened.
    fn turn(&mut self) -> bool {
        let mut is_busy = false;
        while let Some((id, request)) = self.driver.poll_request(self.now) {
            is_busy = true;
            self.serve(id, request);
        }
        is_busy |= self.stand_in();
        let ids: Vec<RequestId> = self.watches.keys().copied().collect();
        for id in ids {
            is_busy |= self.tell(id);
        }
        is_busy
    }

    /// No kubelet is there to say that a pod has ended that was told to go, nor that one runs that has a
    /// node: only then may it be evicted for others, and do those start that wait for it. Nor is there a
    /// device plugin that tells of chips which they really are: until then its node gives out no part of
    /// another size.
    fn stand_in(&mut self) -> bool {
        let (mut going, mut bound) = (Vec::new(), Vec::new());
        let mut made: Vec<(&str, String)> = Vec::new();
        for pod in self.driver.mirror().list::<Pod>() {
            let meta = &pod.metadata;
            let is_new = matches!(pod.status.phase, PodPhase::Unset | PodPhase::Pending);
            let target = || Kind::Pod.path(&meta.namespace, &meta.name);
            if pod.is_terminating() {
                going.extend(meta.finalizers.is_empty().then(target));
            } else if is_new && !pod.spec.node_name.is_empty() {
                bound.push(runs(&target(), pod, self.now));
            } else if let Some(real) = self.real_chips(pod, &made) {
                let patch = json!({ "metadata": { "annotations": { ASCEND_REAL: &*real } } });
                // As it lets its status be told, whatever defaults its spec is without.
                bound.push(calls::merge(&format!("{}/status", target()), &patch));
                made.push((&*pod.spec.node_name, real));
            }
        }
        let mut calls = Vec::new();
        for target in going {
            calls.push(calls::delete(format!("{target}?gracePeriodSeconds=0")));
        }
        calls.extend(bound);
        let mut is_any = false;
        for call in calls {
            is_any |= self.call(&call).code == 200;
        }
        is_any
    }

    /// What a device plugin would say of the chips that a pod got and of which nothing is said yet. `made` is
    /// what it has just said of others, by their nodes.
    fn real_chips(&self, pod: &Pod, made: &[(&str, String)]) -> Option<String> {
        let node = &*pod.spec.node_name;
        let said = |pod: &Pod| pod.metadata.annotations.get(ASCEND_REAL).cloned();
        let is_told = said(pod).is_some_and(|real| !real.is_empty());
        if is_told || node.is_empty() || pod.is_finished() {
            return None;
        }
        let chips = pod.metadata.annotations.get(NPU_CORE)?;
        let there = self.driver.mirror().pods_on(node);
        let there = there.filter(|other| !other.is_finished());
        let said: Vec<_> = there.filter_map(|other| said(other)).collect();
        let now = made.iter().filter(|(on, _)| *on == node);
        let beside = said.iter().map(|real| &**real);
        nodes::real_chips(chips, beside.chain(now.map(|(_, real)| real.as_str())))
    }

    fn tell(&mut self, id: RequestId) -> bool {
        let Some(watch) = self.watches.get_mut(&id) else {
            return false;
        };
        let (lines, next) = self.server.lines(watch, self.now);
        let mut is_any = false;
        for line in lines {
            // Bookmarks come for ever.
            is_any |= !matches!(line, WatchLine::Bookmark(_));
            self.driver.handle_watch(id, line, self.now);
        }
        if next == Next::End {
            self.watches.remove(&id);
            self.driver.handle_closed(id, None, self.now);
            return true;
        }
        is_any
    }

    fn serve(&mut self, id: RequestId, request: Request) {
        match request {
            Request::Ask(ask) => {
                let answer = match ask.door {
                    Door::Cluster => match self.answers.get(&ask.call.target) {
                        Some(body) => {
                            self.untold.remove(&ask.call.target);
                            Ok(body.clone())
                        }
                        None => told(self.call(&ask.call)),
                    },
                    // What is used of nodes is unknown here, and so it is there after a while without answers.
                    _ => Err("nobody is asked in a rehearsal".to_owned()),
                };
                self.driver.handle_answer(id, answer, self.now);
            }
            Request::Get { key } => {
                let response = self.call(&call::get(key.kind, &key.namespace, &key.name));
                let answer = match response.code {
                    200 => raw(response.body),
                    _ => Err(refusal_of(&response)),
                };
                self.driver.handle_got(id, answer, self.now);
            }
            Request::List {
                kind,
                limit,
                continue_token,
            } => {
                let response = self.call(&call::list(kind, limit, &continue_token));
                let page = match response.code {
                    200 => call::page(&response.body).map_err(|error| unreadable(&error)),
                    _ => Err(refusal_of(&response)),
                };
                self.driver.handle_page(id, page, self.now);
            }
            Request::Watch {
                kind,
                revision,
                timeout_seconds,
            } => match self
                .server
                .answer(&call::watch(kind, revision, timeout_seconds), self.now)
            {
                Answered::Stream(watch) => drop(self.watches.insert(id, watch)),
                Answered::Whole(response) => {
                    self.driver
                        .handle_closed(id, Some(refusal_of(&response)), self.now);
                }
            },
            Request::Write(intent) => {
                let outcome = self.write(&intent);
                self.driver.handle_written(id, outcome, self.now);
            }
        }
    }

    /// As a client does it: a create that meets its own child is done.
    fn write(&mut self, intent: &Intent) -> WriteOutcome {
        let response = self.call(&calls::write(intent));
        let outcome = call::outcome(response.code, response.retry_after_seconds, &response.body);
        let Some(read) = call::read_of_existing(intent, &outcome) else {
            return outcome;
        };
        let found = self.call(&read);
        call::outcome_of_existing(intent, found.code, &found.body).unwrap_or(outcome)
    }

    fn call(&mut self, call: &Call) -> Response {
        match self.server.answer_to(User::admin(), call, self.now) {
            Answered::Whole(response) => response,
            Answered::Stream(_) => Response::text(400, "a watch is no call"),
        }
    }

    fn objects(&mut self, kind: Kind) -> Vec<Value> {
        #[cfg(test)]
        {
            self.lists += 1;
        }
        self.server.objects(kind, self.now)
    }
}

/// The object with what only an API gives it.
fn listed(resource: String, mut object: Value, now: Time, random: &mut Random) -> Listed {
    let uid = format!("00000000-0000-4000-8000-{:012x}", random.draw() >> 16);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.entry("uid").or_insert_with(|| json!(uid));
        metadata
            .entry("creationTimestamp")
            .or_insert_with(|| json!(now));
    }
    let (namespace, name) = place(&object);
    let key = match namespace {
        "" => name.to_owned(),
        _ => format!("{namespace}/{name}"),
    };
    Listed {
        resource,
        key,
        object,
    }
}

/// What a kubelet says of a pod that runs: whoever waits for one asks each of its containers.
fn runs(target: &str, pod: &Pod, now: Time) -> Call {
    let now = now.seconds_text();
    let containers = pod.spec.containers.iter().map(|container| {
        json!({
            "name": container.name, "image": container.image, "imageID": "", "restartCount": 0,
            "ready": true, "started": true, "state": { "running": { "startedAt": now } },
        })
    });
    let containers: Vec<Value> = containers.collect();
    let ready = ["Initialized", "ContainersReady", "Ready"];
    let ready = ready.map(|it| json!({ "type": it, "status": "True", "lastTransitionTime": now }));
    let patch = json!({
        "metadata": { "uid": pod.metadata.uid },
        "status": {
            "phase": "Running", "startTime": now,
            "conditions": ready, "containerStatuses": containers,
        },
    });
    Call {
        content_type: "application/strategic-merge-patch+json",
        ..calls::merge(&format!("{target}/status"), &patch)
    }
}

fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

fn said<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}

/// Namespace and name.
fn place(object: &Value) -> (&str, &str) {
    let metadata = &object["metadata"];
    (said(metadata, "namespace"), said(metadata, "name"))
}

fn raw(body: Vec<u8>) -> Result<Option<Box<serde_json::value::RawValue>>, Refusal> {
    serde_json::from_slice(&body)
        .map(Some)
        .map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> Refusal {
    Refusal {
        code: 500,
        reason: "InternalError".into(),
        message: error.to_string().into(),
        retry_after_seconds: None,
    }
}
