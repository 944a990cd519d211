//! A tiny API of ConfigMaps and Secrets-free kinds on the test's own thread, which answers a
//! driver's requests, can lose answers, and writes down what was asked.

#![expect(dead_code, reason = "each test file uses another part of it")]

pub mod beside;
pub mod planes;
pub mod segments;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use api::call::{Page, WatchLine};
use api::intent::{Action, Intent, ObjectKey, Refusal, WriteOutcome};
use api::kind::Kind;
use api::time::Time;
use driver::{Ask, Driver, Limits, Request, RequestId, Settings};
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub struct World {
    pub driver: Driver,
    pub now: Time,
    objects: BTreeMap<(Kind, String), Value>,
    history: Vec<(u64, Kind, &'static str, Value)>,
    revision: u64,
    watches: BTreeMap<Kind, (RequestId, u64)>,
    /// What was asked, one line each.
    pub log: Vec<String>,
    /// Writes that were carried out and whose answer is not yet given.
    pub answers: VecDeque<(RequestId, WriteOutcome)>,
    /// Whether watch events are handed in as they happen.
    pub is_watch_slow: bool,
    /// Whether answers to writes are given at once.
    pub is_answer_slow: bool,
    /// Refusals for the next writes.
    pub refusals: VecDeque<Refusal>,
    /// Refusals for the next writes of objects of a kind.
    pub refusals_of: BTreeMap<Kind, VecDeque<Refusal>>,
    /// Answers to the next questions to others than the API.
    pub told: VecDeque<Result<Vec<u8>, String>>,
    /// Who answers questions to others than the API, before `told` does.
    pub teller: Option<Teller>,
    /// Questions that nobody has answered, and since when they wait.
    pub unanswered: VecDeque<(RequestId, Time)>,
    /// Refusals for the next reads.
    pub get_refusals: VecDeque<Refusal>,
    /// Whether reads are answered only by [`World::answer_gets`].
    pub is_get_slow: bool,
    gets: VecDeque<(RequestId, ObjectKey)>,
    /// Kinds that the API does not serve.
    pub absent: BTreeSet<Kind>,
    /// Refusals for the next lists.
    pub list_refusals: VecDeque<Refusal>,
    /// Writes whose answer is lost, after they were carried out or before.
    pub lost: VecDeque<Lost>,
    /// The revision that the next list claims, if it lies.
    pub list_revision: Option<u64>,
    /// Whether whatever a patch changes is taken back before it is stored.
    pub is_taking_back: bool,
}

/// Says something to a question, or never does.
pub type Teller = Box<dyn FnMut(&Ask) -> Option<Result<Vec<u8>, String>>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    AfterCommit,
    BeforeCommit,
}

pub fn settings(controllers: &'static [controllers::Controller]) -> Settings {
    Settings {
        controllers,
        controller_settings: controllers::Settings::default(),
        engine: None,
        unwatched: Vec::new(),
        limits: Limits::default(),
        election: None,
        seed: 7,
    }
}

pub fn refusal(code: u16, reason: &str) -> Refusal {
    Refusal {
        code,
        reason: reason.into(),
        message: format!("the test says {code}").into(),
        retry_after_seconds: None,
    }
}

impl World {
    pub fn new(settings: Settings) -> World {
        World {
            driver: Driver::new(settings),
            now: Time::from_seconds(1_000),
            objects: BTreeMap::new(),
            history: Vec::new(),
            revision: 0,
            watches: BTreeMap::new(),
            log: Vec::new(),
            answers: VecDeque::new(),
            is_watch_slow: false,
            is_answer_slow: false,
            refusals: VecDeque::new(),
            refusals_of: BTreeMap::new(),
            told: VecDeque::new(),
            teller: None,
            unanswered: VecDeque::new(),
            get_refusals: VecDeque::new(),
            is_get_slow: false,
            gets: VecDeque::new(),
            absent: BTreeSet::new(),
            list_refusals: VecDeque::new(),
            lost: VecDeque::new(),
            list_revision: None,
            is_taking_back: false,
        }
    }

    /// Somebody else writes a ConfigMap.
    pub fn put(&mut self, name: &str, data: Value) {
        let old = self.objects.get(&(Kind::ConfigMap, name.to_owned()));
        let uid = old.map_or_else(
            || format!("uid-{}", self.revision + 1),
            |old| {
                old["metadata"]["uid"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            },
        );
        let body = json!({
            "metadata": { "name": name, "namespace": "ns", "uid": uid },
            "data": data,
        });
        self.commit(Kind::ConfigMap, name, body);
    }

    /// Somebody else deletes a ConfigMap.
    pub fn delete(&mut self, name: &str) {
        self.remove(Kind::ConfigMap, name);
    }

    /// Somebody else writes an object of any kind; what is there already is merged.
    pub fn put_object(&mut self, kind: Kind, name: &str, body: &Value) {
        let held = self.objects.get(&(kind, name.to_owned())).cloned();
        let namespace = if kind.row().namespaced { "ns" } else { "" };
        let mut object = held.unwrap_or_else(|| {
            json!({ "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": format!("uid-{name}"),
                "creationTimestamp": "2026-01-01T00:00:00Z",
            }})
        });
        merge(&mut object, body);
        self.commit(kind, name, object);
    }

    /// The queues that a plane has.
    pub fn put_queues(&mut self) {
        for (name, parent) in [("root", ""), ("default", "root")] {
            let queue = json!({
                "spec": { "weight": 1, "parent": parent },
                "status": { "state": "Open" },
            });
            self.put_object(Kind::Queue, name, &queue);
        }
    }

    /// A pod of a gang, which asks for one cpu and waits.
    pub fn put_member(&mut self, gang: &str, name: &str) {
        let pod = json!({
            "metadata": { "annotations": { "scheduling.k8s.io/group-name": gang } },
            "spec": {
                "schedulerName": "volcano",
                "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1" } } }],
            },
            "status": { "phase": "Pending" },
        });
        self.put_object(Kind::Pod, name, &pod);
    }

    /// Somebody else deletes an object of any kind.
    pub fn delete_object(&mut self, kind: Kind, name: &str) {
        self.remove(kind, name);
    }

    /// The object, if it is there.
    pub fn try_object(&self, kind: Kind, name: &str) -> Option<&Value> {
        self.objects.get(&(kind, name.to_owned()))
    }

    /// The names of all objects of a kind.
    pub fn names_of(&self, kind: Kind) -> impl Iterator<Item = &str> {
        let keys = self.objects.keys().filter(move |(other, _)| *other == kind);
        keys.map(|(_, name)| name.as_str())
    }

    pub fn object(&self, kind: Kind, name: &str) -> &Value {
        &self.objects[&(kind, name.to_owned())]
    }

    /// `reason: message` of all Events, in order of their making.
    pub fn events(&self) -> Vec<String> {
        let made = self
            .history
            .iter()
            .filter(|(_, kind, ..)| *kind == Kind::Event);
        made.map(|(_, _, _, event)| {
            format!(
                "{} {} {}: {}",
                event["involvedObject"]["kind"].as_str().unwrap_or_default(),
                event["type"].as_str().unwrap_or_default(),
                event["reason"].as_str().unwrap_or_default(),
                event["message"].as_str().unwrap_or_default(),
            )
        })
        .collect()
    }

    /// Performs the next request; whether there was one.
    pub fn perform_next(&mut self) -> bool {
        let Some((id, request)) = self.driver.poll_request(self.now) else {
            return false;
        };
        self.perform(id, request);
        true
    }

    /// Runs requests and events until nothing is left to do at this instant.
    pub fn settle(&mut self) {
        for _ in 0..10_000 {
            let mut is_busy = false;
            while self.perform_next() {
                is_busy = true;
            }
            if !self.is_watch_slow {
                is_busy |= self.deliver();
            }
            if !self.is_answer_slow {
                is_busy |= self.answer();
            }
            if !is_busy && self.driver.poll_wake().is_none_or(|at| at > self.now) {
                return;
            }
        }
        panic!("the loop does not come to rest");
    }

    /// Lets time leap from wake to wake for so long, settling at each.
    pub fn pass_ms(&mut self, ms: i64) {
        let end = self.now.plus_ms(ms);
        self.settle();
        while let Some(at) = self.driver.poll_wake().filter(|at| *at <= end) {
            self.now = at.max(self.now);
            self.driver.handle_time(self.now);
            self.settle();
        }
        self.now = end;
        self.driver.handle_time(end);
        self.settle();
    }

    /// Hands in the events that open watches have not seen.
    pub fn deliver(&mut self) -> bool {
        let lines = self.unseen();
        self.hand_in(lines)
    }

    /// The same with the last one first, which no server does.
    pub fn deliver_backwards(&mut self) -> bool {
        let mut lines = self.unseen();
        lines.reverse();
        self.hand_in(lines)
    }

    fn unseen(&mut self) -> Vec<(RequestId, WatchLine)> {
        let mut lines = Vec::new();
        for (kind, (id, seen)) in &mut self.watches {
            for (revision, of, verb, object) in &self.history {
                if of == kind && revision > seen {
                    *seen = *revision;
                    let line = match *verb {
                        "DELETED" => WatchLine::Deleted(raw(object)),
                        _ => WatchLine::Applied(raw(object)),
                    };
                    lines.push((*id, line));
                }
            }
        }
        lines
    }

    fn hand_in(&mut self, lines: Vec<(RequestId, WatchLine)>) -> bool {
        let is_any = !lines.is_empty();
        for (id, line) in lines {
            self.driver.handle_watch(id, line, self.now);
        }
        is_any
    }

    /// Loses the events that open watches have not seen.
    pub fn lose(&mut self) {
        let newest = self.history.iter().map(|(revision, ..)| *revision).max();
        for (_, seen) in self.watches.values_mut() {
            *seen = newest.unwrap_or(*seen);
        }
    }

    /// Gives the answers that were held back.
    pub fn answer(&mut self) -> bool {
        let is_any = !self.answers.is_empty();
        while let Some((id, outcome)) = self.answers.pop_front() {
            self.driver.handle_written(id, outcome, self.now);
        }
        is_any
    }

    /// Answers the reads that wait.
    pub fn answer_gets(&mut self) {
        while let Some((id, key)) = self.gets.pop_front() {
            let object = self.objects.get(&(key.kind, key.name.to_string()));
            let object = object.filter(|it| {
                it["metadata"]["namespace"].as_str().unwrap_or_default() == &*key.namespace
            });
            let answer = match self.get_refusals.pop_front() {
                Some(refusal) => Err(refusal),
                None => Ok(object.map(raw)),
            };
            self.driver.handle_got(id, answer, self.now);
        }
    }

    /// Ends the watch of ConfigMaps.
    pub fn close_watch(&mut self, refusal: Option<Refusal>) {
        self.close_watch_of(Kind::ConfigMap, refusal);
    }

    /// Ends the open watch of a kind.
    pub fn close_watch_of(&mut self, kind: Kind, refusal: Option<Refusal>) {
        if let Some((id, _)) = self.watches.remove(&kind) {
            self.driver.handle_closed(id, refusal, self.now);
        }
    }

    /// The id of the open watch of ConfigMaps.
    pub fn watch(&self) -> Option<RequestId> {
        self.watches.get(&Kind::ConfigMap).map(|(id, _)| *id)
    }

    /// Whether there is any object of that kind.
    pub fn has(&self, kind: Kind) -> bool {
        self.objects.keys().any(|(other, _)| *other == kind)
    }

    pub fn exists(&self, name: &str) -> bool {
        self.objects
            .contains_key(&(Kind::ConfigMap, name.to_owned()))
    }

    /// What was asked since the last call, without lists and watches.
    pub fn writes(&mut self) -> Vec<String> {
        self.log
            .drain(..)
            .filter(|line| {
                !["ask", "list", "watch", "note"]
                    .iter()
                    .any(|word| line.starts_with(word))
            })
            .collect()
    }

    /// What was asked since the last call.
    pub fn asked(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    fn perform(&mut self, id: RequestId, request: Request) {
        match request {
            Request::Ask(ask) => {
                self.log.push(format!("ask {}", ask.topic.0));
                // Who has nothing to say never answers.
                let teller = self.teller.as_mut();
                let answer = match teller {
                    Some(teller) => teller(&ask),
                    None => self.told.pop_front(),
                };
                match answer {
                    Some(answer) => self.driver.handle_answer(id, answer, self.now),
                    None => self.unanswered.push_back((id, self.now)),
                }
            }
            Request::List {
                kind,
                limit,
                continue_token,
            } => {
                let plural = kind.row().plural;
                self.log.push(
                    format!("list {plural} {continue_token}")
                        .trim_end()
                        .to_owned(),
                );
                let refusal = match self.absent.contains(&kind) {
                    true => Some(refusal(404, "NotFound")),
                    false => self.list_refusals.pop_front(),
                };
                let answer = match refusal {
                    Some(refusal) => Err(refusal),
                    None => Ok(self.page(kind, limit as usize, &continue_token)),
                };
                self.driver.handle_page(id, answer, self.now);
            }
            Request::Watch { kind, revision, .. } => {
                let plural = kind.row().plural;
                self.log.push(format!("watch {plural} {revision}"));
                self.watches.insert(kind, (id, revision));
            }
            Request::Get { key } => {
                self.log.push(format!("get {}", key.name));
                self.gets.push_back((id, key));
                if !self.is_get_slow {
                    self.answer_gets();
                }
            }
            Request::Write(intent) => {
                let verb = match &intent.action {
                    Action::Create { .. } | Action::CreateSecret { .. } => "create",
                    Action::Patch { .. } => "patch",
                    Action::Delete { .. } => "delete",
                    Action::Bind { .. } => "bind",
                };
                let of = intent.target.kind.row().name;
                let name = &intent.target.name;
                self.log.push(match intent.target.kind {
                    Kind::ConfigMap => format!("{verb} {name}"),
                    Kind::Event => "note".to_owned(),
                    _ => format!("{verb} {of} {name}"),
                });
                let outcome = self.write(&intent);
                self.answers.push_back((id, outcome));
            }
        }
    }

    fn page(&mut self, kind: Kind, limit: usize, token: &str) -> Page {
        let from: usize = token.parse().unwrap_or(0);
        let all: Vec<&Value> = self
            .objects
            .iter()
            .filter(|((of, _), _)| *of == kind)
            .map(|(_, object)| object)
            .collect();
        let next = from + limit;
        Page {
            items: all.iter().skip(from).take(limit).map(|o| raw(o)).collect(),
            revision: self.list_revision.take().unwrap_or(self.revision),
            continue_token: if next < all.len() {
                next.to_string()
            } else {
                String::new()
            },
        }
    }

    fn write(&mut self, intent: &Intent) -> WriteOutcome {
        let of_kind = self.refusals_of.get_mut(&intent.target.kind);
        let refusal = of_kind.and_then(VecDeque::pop_front);
        if let Some(refusal) = refusal.or_else(|| self.refusals.pop_front()) {
            if &*refusal.reason == "Conflict" {
                self.touch(&intent.target);
            }
            return WriteOutcome::Refused(refusal);
        }
        let lost = self.lost.pop_front();
        if lost == Some(Lost::BeforeCommit) {
            return WriteOutcome::Unknown {
                message: "lost before".into(),
            };
        }
        let outcome = self.carry_out(intent);
        if lost == Some(Lost::AfterCommit) {
            return WriteOutcome::Unknown {
                message: "lost after".into(),
            };
        }
        outcome
    }

    fn carry_out(&mut self, intent: &Intent) -> WriteOutcome {
        let key = (intent.target.kind, intent.target.name.to_string());
        let held = self.objects.get(&key).cloned();
        match (&intent.action, held) {
            (Action::Create { .. }, Some(_)) => {
                WriteOutcome::Refused(refusal(409, "AlreadyExists"))
            }
            (Action::Create { body }, None) => {
                let mut body = body.clone();
                body["metadata"]["uid"] = json!(format!("uid-{}", self.revision + 1));
                self.commit(key.0, &key.1, body)
            }
            (
                Action::Patch {
                    resource_version,
                    patch,
                    ..
                },
                Some(mut held),
            ) => {
                if held["metadata"]["resourceVersion"] != json!(resource_version) {
                    return WriteOutcome::Refused(refusal(409, "Conflict"));
                }
                if self.is_taking_back {
                    return WriteOutcome::Done {
                        revision: resource_version.parse().expect("it is a number"),
                        uid: held["metadata"]["uid"].as_str().unwrap_or_default().into(),
                    };
                }
                merge(&mut held, patch);
                let meta = &held["metadata"];
                if meta["deletionTimestamp"].is_string() && meta["finalizers"].is_null() {
                    // It goes with its last finalizer; the answer bears the former revision.
                    self.remove(key.0, &key.1);
                    return WriteOutcome::Done {
                        revision: resource_version.parse().expect("it is a number"),
                        uid: "".into(),
                    };
                }
                self.commit(key.0, &key.1, held)
            }
            (
                Action::Bind {
                    node, annotations, ..
                },
                Some(mut held),
            ) => {
                if held["spec"]["nodeName"].is_string() {
                    return WriteOutcome::Refused(refusal(409, "Conflict"));
                }
                held["spec"]["nodeName"] = json!(node);
                for (key, value) in annotations {
                    held["metadata"]["annotations"][&**key] = json!(value);
                }
                self.commit(key.0, &key.1, held);
                WriteOutcome::Done {
                    revision: 0,
                    uid: "".into(),
                }
            }
            (
                Action::Delete {
                    uid,
                    resource_version,
                    ..
                },
                Some(mut held),
            ) => {
                let meta = &held["metadata"];
                let is_version = resource_version
                    .as_ref()
                    .is_none_or(|it| meta["resourceVersion"] == json!(it));
                if meta["uid"] != json!(uid) || !is_version {
                    return WriteOutcome::Refused(refusal(409, "Conflict"));
                }
                let is_held = meta["finalizers"].is_array();
                if is_held && meta["deletionTimestamp"].is_null() {
                    held["metadata"]["deletionTimestamp"] = json!(self.now);
                    self.commit(key.0, &key.1, held);
                } else if !is_held {
                    self.remove(key.0, &key.1);
                }
                WriteOutcome::Done {
                    revision: 0,
                    uid: "".into(),
                }
            }
            _ => WriteOutcome::Refused(refusal(404, "NotFound")),
        }
    }

    /// Somebody else has written to an object, if it is there: a write to it meets a conflict.
    fn touch(&mut self, target: &ObjectKey) {
        let key = (target.kind, target.name.to_string());
        if let Some(held) = self.objects.get(&key).cloned() {
            self.commit(key.0, &key.1, held);
        }
    }

    fn commit(&mut self, kind: Kind, name: &str, mut object: Value) -> WriteOutcome {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        self.objects.insert((kind, name.to_owned()), object.clone());
        self.history
            .push((self.revision, kind, "MODIFIED", object.clone()));
        WriteOutcome::Done {
            revision: self.revision,
            uid: object["metadata"]["uid"]
                .as_str()
                .unwrap_or_default()
                .into(),
        }
    }

    fn remove(&mut self, kind: Kind, name: &str) {
        let Some(mut object) = self.objects.remove(&(kind, name.to_owned())) else {
            return;
        };
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        self.history.push((self.revision, kind, "DELETED", object));
    }
}

pub fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).expect("a value prints as JSON")
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            target.as_object_mut().expect("made above").remove(name);
        } else {
            merge(&mut target[name.as_str()], value);
        }
    }
}
