//! A small API server and the loop around the rows, for tests only.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use api::admission::{Facts, Operation, Review, Verdict};
use api::intent::{Action, Intent, ObjectKey, Part, Propagation};
use api::kind::Kind;
use api::time::Time;
use api::volcano::ShardingConf;
use mirror::{Change, Mirror, Object};
use serde_json::{Value, json};

use crate::{
    CONTROLLERS, Controller, Heard, Inputs, Inquiry, Last, Looked, ON_REQUEST, Outcome, Refused,
    Settings, Sharding, Step,
};

const STEPS_MAX: usize = 2_000;
/// So many refused writes of a step are remembered, as in the driver.
const REFUSED_MAX: usize = 3;

/// What is there, what has been printed, what is to be looked at.
pub(crate) struct World {
    /// What each row sees: its mirror holds the kinds that it watches, and nothing else, as if no
    /// other row ran beside it.
    mirrors: Vec<Mirror>,
    /// The only row that hears of anything, where the others are not run: they would cost time for nothing.
    only: Option<&'static str>,
    pub(crate) settings: Settings,
    pub(crate) now: Time,
    objects: BTreeMap<ObjectKey, Value>,
    revision: u64,
    uids: u64,
    printed: Vec<String>,
    queue: BTreeSet<(usize, ObjectKey)>,
    wakes: BTreeMap<(usize, ObjectKey), Time>,
    waits: BTreeMap<(usize, ObjectKey), Vec<ObjectKey>>,
    /// What was looked up for keys that asked.
    looked: BTreeMap<(usize, ObjectKey), Looked>,
    /// What was answered to keys that asked, and until when it stands.
    heard: BTreeMap<(usize, ObjectKey), (Heard, Time)>,
    /// What whoever is asked says, by topic; who is not here does not answer.
    answers: BTreeMap<String, String>,
    /// Commands, each of which is performed while the next questions are on their way.
    meanwhile: VecDeque<String>,
    /// A kind of which nothing is heard.
    unheard: Option<Kind>,
    /// A kind of which nothing can be made, and why.
    /// Which writes are refused, of which kind, and why.
    barred: Option<(&'static str, Kind, Box<str>)>,
    /// What became of the last writes of keys of which some were refused.
    refusals: BTreeMap<(usize, ObjectKey), Last>,
    /// Since when keys let rest what there is to tell.
    rests: BTreeMap<(usize, ObjectKey), Time>,
    /// Whether much else waits to be done.
    is_busy: bool,
    /// Every write that was accepted, in order.
    pub(crate) writes: Vec<ObjectKey>,
    /// Whether accepted writes are to be printed.
    pub(crate) is_quiet: bool,
    /// Whether news of one kind says nothing of others, as it is between bookmarks.
    is_apart: bool,
    /// Events that the mirror has not seen yet; `None` while it keeps up.
    pub(crate) backlog: Option<Vec<(Kind, String)>>,
    /// After so many more writes every write is lost, as if the process had died.
    pub(crate) writes_left: Option<usize>,
}

impl World {
    pub(crate) fn new() -> World {
        World {
            mirrors: rows()
                .map(|row| listed(row, &BTreeMap::new(), 0).0)
                .collect(),
            only: None,
            settings: Settings {
                service_accounts: false,
                volumes_directory: "/volumes".into(),
                // What scenarios show is what is decided, at once.
                first_status_ms: 0,
                sharding: Sharding {
                    config_map: ("volcano-system".into(), "sharding".into()),
                    ..Sharding::default()
                },
                ..Settings::default()
            },
            now: Time::from_seconds(1_800_000_000),
            objects: BTreeMap::new(),
            revision: 0,
            uids: 0,
            printed: Vec::new(),
            queue: BTreeSet::new(),
            wakes: BTreeMap::new(),
            waits: BTreeMap::new(),
            looked: BTreeMap::new(),
            heard: BTreeMap::new(),
            answers: BTreeMap::new(),
            meanwhile: VecDeque::new(),
            unheard: None,
            barred: None,
            refusals: BTreeMap::new(),
            rests: BTreeMap::new(),
            is_busy: false,
            writes: Vec::new(),
            is_quiet: false,
            is_apart: false,
            writes_left: None,
            backlog: None,
        }
    }

    /// A world in which nobody but this row hears of anything.
    pub(crate) fn of(row: &'static str) -> World {
        World {
            only: Some(row),
            ..World::new()
        }
    }

    /// Whether a row hears of anything.
    fn hearing(&self) -> impl Fn(&Controller) -> bool + use<> {
        let only = self.only;
        move |row| only.is_none_or(|name| name == row.name)
    }

    pub(crate) fn take_printed(&mut self) -> Vec<String> {
        std::mem::take(&mut self.printed)
    }

    /// `apart`, `busy`, `calm`, `answer=topic: words`, `meanwhile=command` (is performed while questions are on their way), `shard=flag`, `unheard=Job`, `heard`, `barred=Job why` (none is made), `kept=Job why` (none is deleted), `fixed=Job why` (none is patched, but in its status), `open`, `lifted` (which nobody hears of), `service_accounts`, `native_groups`, `first_status_waits`, `gate=slice`, `gate=dns`, `inherit=false`.
    pub(crate) fn set(&mut self, setting: &str) {
        match setting {
            "apart" => self.is_apart = true,
            "busy" => self.is_busy = true,
            "calm" => self.is_busy = false,
            "heard" => self.hear(),
            "open" => {
                self.barred = None;
                self.queue.extend(self.refusals.keys().cloned());
            }
            "lifted" => self.barred = None,
            "service_accounts" => self.settings.service_accounts = true,
            "native_groups" => self.settings.native_groups = true,
            "ssh=upstream" => self.settings.ssh = crate::SshRules::Upstream,
            "first_status_waits" => {
                self.settings.first_status_ms = Settings::default().first_status_ms;
            }
            "gate=slice" => self.settings.service_gate = crate::ServiceGate::EndpointSlice,
            "inherit=false" => self.settings.inherit_owner_annotations = false,
            "peers" => self.settings.peers.is_usual = true,
            "gate=dns" => self.settings.service_gate = crate::ServiceGate::DnsAnswer,
            other => match other.split_once('=') {
                Some(("terminated_pods_max", count)) => {
                    self.settings.terminated_pods_max = count.parse().unwrap();
                }
                Some(("answer", words)) => {
                    let (topic, answer) = words.split_once(": ").unwrap();
                    self.answers.insert(topic.to_owned(), answer.to_owned());
                }
                Some(("shard", flag)) => {
                    let conf = ShardingConf::of_flags(&[flag]).unwrap();
                    self.settings.sharding.conf = conf;
                }
                Some(("meanwhile", command)) => self.meanwhile.push_back(command.to_owned()),
                Some(("unheard", kind)) => self.unheard = Some(super::kind(kind)),
                Some((verb @ ("barred" | "fixed" | "kept"), words)) => {
                    let (kind, why) = words.split_once(' ').unwrap();
                    let verb = match verb {
                        "fixed" => "patch",
                        "kept" => "delete",
                        _ => "create",
                    };
                    self.barred = Some((verb, super::kind(kind), why.into()));
                }
                _ => panic!("no such setting: {other}"),
            },
        }
    }

    /// Lets time pass: `+30s`.
    pub(crate) fn pass(&mut self, amount: &str) {
        let seconds = amount.trim_start_matches('+').trim_end_matches('s');
        self.now = self.now.plus_ms(seconds.parse::<i64>().unwrap() * 1_000);
        let now = self.now;
        self.heard.retain(|_, (_, until)| *until > now);
        let due: Vec<_> = self
            .wakes
            .iter()
            .filter(|(_, at)| **at <= self.now)
            .map(|(key, _)| key.clone())
            .collect();
        for key in due {
            self.wakes.remove(&key);
            self.queue.insert(key);
        }
    }

    pub(crate) fn appear(&mut self, kind: Kind, namespace: &str, name: &str, mut body: Value) {
        body["metadata"]["name"] = json!(name);
        if !namespace.is_empty() {
            body["metadata"]["namespace"] = json!(namespace);
        }
        self.create(kind, body);
    }

    pub(crate) fn change(&mut self, kind: Kind, namespace: &str, name: &str, patch: &Value) {
        let key = ObjectKey::new(kind, namespace, name);
        let Some(mut object) = self.objects.get(&key).cloned() else {
            return self.say("no such object".to_owned());
        };
        merge(&mut object, patch);
        self.store(key, object);
    }

    pub(crate) fn remove(&mut self, kind: Kind, namespace: &str, name: &str) {
        self.delete(
            &ObjectKey::new(kind, namespace, name),
            None,
            Propagation::Background,
        );
    }

    pub(crate) fn vanish(&mut self, kind: Kind, namespace: &str, name: &str) {
        self.erase(&ObjectKey::new(kind, namespace, name));
    }

    pub(crate) fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Value> {
        self.objects.get(&ObjectKey::new(kind, namespace, name))
    }

    /// `train-*` is the oldest object of that name that lives, `train-*2` the second oldest.
    pub(crate) fn resolve(&self, kind: Kind, namespace: &str, name: &str) -> String {
        let Some((stem, place)) = name.split_once('*') else {
            return name.to_owned();
        };
        let lives = |object: &Value| {
            let phase = object["status"]["phase"].as_str();
            object["metadata"]["deletionTimestamp"].is_null()
                && !matches!(phase, Some("Succeeded" | "Failed"))
        };
        let mut found: Vec<(u64, &str)> = self
            .objects
            .iter()
            .filter(|(key, object)| {
                key.kind == kind
                    && &*key.namespace == namespace
                    && key.name.starts_with(stem)
                    && lives(object)
            })
            .map(|(key, object)| {
                let uid = object["metadata"]["uid"].as_str().unwrap_or("");
                (uid.trim_start_matches('u').parse().unwrap_or(0), &*key.name)
            })
            .collect();
        found.sort_unstable();
        let place: usize = if place.is_empty() {
            1
        } else {
            place.parse().unwrap()
        };
        match found.get(place - 1) {
            Some((_, name)) => (*name).to_owned(),
            None => name.to_owned(),
        }
    }

    pub(crate) fn keys(&self, kind: Kind) -> Vec<ObjectKey> {
        let keys = self.objects.keys();
        keys.filter(|key| key.kind == kind).cloned().collect()
    }

    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.objects.keys().filter(|key| key.kind == kind).count()
    }

    pub(crate) fn show(&mut self, kind: Kind, namespace: &str, name: &str, path: &str) {
        let key = ObjectKey::new(kind, namespace, name);
        let line = match self.objects.get(&key) {
            None => "nothing".to_owned(),
            Some(object) => {
                let mut part = object;
                for field in path.split('.').filter(|field| !field.is_empty()) {
                    part = match field.parse::<usize>() {
                        Ok(index) => &part[index],
                        Err(_) => &part[field],
                    };
                }
                part.to_string()
            }
        };
        self.printed.push(line);
    }

    /// Runs rows (all, if none is named) until nothing moves. Then every key that was stepped is
    /// asked once more: at rest, nobody may want to write.
    pub(crate) fn run(&mut self, names: &[&str]) {
        let mut stepped = BTreeSet::new();
        for steps in 0.. {
            let is_wanted = |index: usize| names.is_empty() || names.contains(&row(index).name);
            let Some(next) = self
                .queue
                .iter()
                .find(|(index, _)| is_wanted(*index))
                .cloned()
            else {
                break;
            };
            assert!(
                steps < STEPS_MAX,
                "does not come to rest: {:#?} {:#?}",
                self.printed,
                self.decide(next.0, &next.1)
            );
            self.queue.remove(&next);
            stepped.insert(next.clone());
            self.step(next);
        }
        for (index, key) in stepped.iter().filter(|_| self.writes_left.is_none()) {
            let step = self.decide(*index, key);
            let name = row(*index).name;
            // Saying once more what was said already changes nothing.
            let is_news = |intent: &&Intent| {
                let is_told =
                    intent.target.kind == Kind::Event && self.objects.contains_key(&intent.target);
                !is_told && self.refusal(intent).is_none()
            };
            let news: Vec<&Intent> = step.intents.iter().filter(is_news).collect();
            assert!(news.is_empty(), "{name} never rests: {news:?}");
        }
    }

    fn decide(&self, index: usize, key: &ObjectKey) -> Step {
        let asker = (index, key.clone());
        let last = Last {
            rests_since: self.rests.get(&asker).copied(),
            ..self.refusals.get(&asker).cloned().unwrap_or_default()
        };
        (row(index).step)(&Inputs {
            mirror: &self.mirrors[index],
            key,
            now: self.now,
            settings: &self.settings,
            last: &last,
            looked: (self.looked.get(&asker)).unwrap_or(&Looked::default()),
            heard: (self.heard.get(&asker)).map_or(&Heard::default(), |(heard, _)| heard),
            is_busy: self.is_busy,
        })
    }

    fn step(&mut self, (index, key): (usize, ObjectKey)) {
        let row = row(index);
        let step = self.decide(index, &key);
        let asker = (index, key.clone());
        match step.wake_at {
            Some(at) => self.wakes.insert((index, key.clone()), at),
            None => self.wakes.remove(&(index, key.clone())),
        };
        match step.rests {
            true => _ = self.rests.entry(asker.clone()).or_insert(self.now),
            false => _ = self.rests.remove(&asker),
        }
        self.waits.remove(&(index, key.clone()));
        self.looked.remove(&(index, key.clone()));
        let now = self.now;
        self.heard
            .retain(|at, (_, until)| *at != asker || *until > now);
        let lifted_by = |it| crate::lifted_by(&self.mirrors[index], it);
        let mut waits: Vec<ObjectKey> = step.intents.iter().filter_map(lifted_by).collect();
        match step.outcome {
            // Who asks has not decided, and knows of its last writes still.
            Outcome::Asks { keys } => return self.look_up((index, key), keys),
            Outcome::Inquires { questions } => return self.inquire((index, key), &questions),
            Outcome::Idle => {}
            Outcome::Blocked { waits_for, .. } => waits.extend(waits_for),
            Outcome::Retry { reason } => self.say(format!("{} retries: {reason}", row.name)),
            Outcome::Fatal { reason } => self.say(format!("{} gives up: {reason}", row.name)),
        }
        if !waits.is_empty() {
            self.waits.insert(asker.clone(), waits);
        }
        let mut last = Last::default();
        for intent in step.intents {
            match self.refusal(&intent) {
                Some((verb, why)) => last.refused.push(self.refuse(verb, why, intent)),
                None => self.perform(intent),
            }
        }
        last.refused.truncate(REFUSED_MAX);
        last.pace = last.refused.first().map(|_| 1);
        // A step whose writes are refused is made again, and knows of it.
        let is_news = !last.refused.is_empty() && self.refusals.get(&asker) != Some(&last);
        self.refusals.remove(&asker);
        if !last.refused.is_empty() {
            self.refusals.insert(asker.clone(), last);
        }
        if is_news {
            self.queue.insert(asker);
        }
    }

    /// Which write it is and why it is refused, if it is: by what was set, or by the webhooks of queues.
    fn refusal(&self, intent: &Intent) -> Option<(&'static str, Box<str>)> {
        let verb = match intent.action {
            Action::Create { .. } => "create",
            Action::Delete { .. } => "delete",
            Action::Patch {
                part: Part::Whole, ..
            } => "patch",
            _ => return None,
        };
        let barred = self.barred.iter();
        let mut barred = barred.filter(|(of, kind, _)| *of == verb && *kind == intent.target.kind);
        let why = barred.next().map(|(_, _, why)| why.clone());
        Some((verb, why.or_else(|| self.denial(intent))?))
    }

    /// What the webhooks say against a change of a queue. They are not asked about its status.
    fn denial(&self, intent: &Intent) -> Option<Box<str>> {
        let old = self.objects.get(&intent.target);
        let old = old.filter(|_| intent.target.kind == Kind::Queue)?;
        let Action::Patch { patch, .. } = &intent.action else {
            return None;
        };
        let mut new = old.clone();
        merge(&mut new, patch);
        let question = Review {
            operation: Operation::Update,
            kind: Kind::Queue,
            subresource: "",
            namespace: "",
            name: &intent.target.name,
            object: Some(&new),
            old: Some(old),
            user: "controller",
            dry_run: false,
        };
        match review::review(&question, self) {
            Verdict::Denied { message, .. } => Some(message.into()),
            Verdict::Allowed { .. } => None,
        }
    }

    fn refuse(&mut self, verb: &'static str, message: Box<str>, intent: Intent) -> Refused {
        let (kind, name) = (intent.target.kind.row().name, &intent.target.name);
        self.say(format!("{verb} {kind} {name} refused"));
        Refused {
            verb,
            target: intent.target,
            message,
        }
    }

    fn look_up(&mut self, asker: (usize, ObjectKey), keys: Vec<ObjectKey>) {
        let mut looked = Looked::default();
        for key in keys {
            let found = self.objects.get(&key);
            let uid = found.and_then(|object| object["metadata"]["uid"].as_str());
            let there = if uid.is_some() { "there" } else { "gone" };
            let line = format!("look up {}: {there}", key.name);
            looked.tell(key, uid);
            self.say(line);
        }
        self.queue.insert(asker.clone());
        self.looked.insert(asker, looked);
    }

    fn inquire(&mut self, asker: (usize, ObjectKey), questions: &[Inquiry]) {
        let mut heard = Heard::default();
        let mut ends = Vec::new();
        for question in questions {
            // What follows a comma tells one configuration from another.
            let (about, _) = question
                .topic
                .split_once(", ")
                .unwrap_or((&question.topic, ""));
            let answer = self.answers.get(about);
            let answer = answer.ok_or_else(|| "nobody is there".to_owned());
            let answer = answer.and_then(|text| (question.read)(text.as_bytes()));
            let what = answer.as_ref().err().map_or("answered", String::as_str);
            self.say(format!("ask {}: {what}", question.topic));
            let until = self.now.plus_ms(question.stands_for_ms(&answer));
            heard.tell_until(&question.topic, answer, until);
            ends.push(until);
        }
        let until = ends.into_iter().min().unwrap_or(self.now);
        self.queue.insert(asker.clone());
        self.heard.insert(asker, (heard, until));
        if let Some(command) = self.meanwhile.pop_front() {
            super::perform(self, &command);
        }
    }

    /// Lets the mirror hear of a kind again.
    fn hear(&mut self) {
        let kind = self.unheard.take().expect("a kind is unheard of");
        for key in self.keys(kind) {
            let text = self.objects[&key].to_string();
            self.tell(kind, &text);
        }
    }

    fn say(&mut self, line: String) {
        if !self.is_quiet {
            self.printed.push(line);
        }
    }

    fn perform(&mut self, intent: Intent) {
        match &mut self.writes_left {
            Some(0) => return,
            Some(left) => *left -= 1,
            None => {}
        }
        let key = intent.target;
        let name = match &*key.namespace {
            "" => key.name.to_string(),
            namespace => format!("{namespace}/{}", key.name),
        };
        let kind = match key.kind {
            Kind::VcJob => "VcJob",
            Kind::BatchJob => "BatchJob",
            Kind::NativeGroup => "NativeGroup",
            kind => kind.row().name,
        };
        match intent.action {
            Action::Create { body } if key.kind == Kind::Event => {
                let text = |field: &str| body[field].as_str().unwrap_or("").to_owned();
                let about = body["involvedObject"]["name"]
                    .as_str()
                    .unwrap_or("")
                    .to_owned();
                if self.create(key.kind, body.clone()) {
                    self.say(format!(
                        "event {} {} {about}: {}",
                        text("type"),
                        text("reason"),
                        text("message")
                    ));
                }
            }
            Action::Create { body } => self.make(key.kind, body, &format!("{kind} {name}")),
            Action::CreateSecret { body, key: drawn } => {
                self.make(key.kind, body, &format!("{kind} {name} with {drawn:?}"));
            }
            Action::Patch {
                uid,
                resource_version,
                part,
                patch,
            } => {
                let sub = match part {
                    Part::Whole => "",
                    Part::Status => "/status",
                    Part::Finalize => "/finalize",
                };
                let is_current = self.objects.get(&key).is_some_and(|object| {
                    object["metadata"]["uid"] == json!(uid)
                        && object["metadata"]["resourceVersion"] == json!(resource_version)
                });
                let note = if is_current { "" } else { " (conflict)" };
                let shown = brief(&patch);
                self.say(format!("patch {kind}{sub} {name} {shown}{note}"));
                if is_current {
                    let mut object = self.objects[&key].clone();
                    merge(&mut object, &patch);
                    self.writes.push(key.clone());
                    self.store(key, object);
                }
            }
            Action::Delete {
                uid,
                resource_version,
                grace_seconds,
                propagation,
            } => {
                let version =
                    resource_version.expect("a controller deletes what it has seen (S1.7)");
                let held = self.objects.get(&key).map(|object| &object["metadata"]);
                let held = held.filter(|meta| meta["uid"] == json!(uid));
                let is_current = held.is_some_and(|meta| meta["resourceVersion"] == json!(version));
                let note = match (held, is_current) {
                    (None, _) => " (not found)",
                    (Some(_), false) => " (conflict)",
                    (Some(_), true) => "",
                };
                self.say(format!("delete {kind} {name}{note}"));
                if is_current {
                    self.writes.push(key.clone());
                    self.delete(&key, grace_seconds, propagation);
                }
            }
            Action::Bind { node, .. } => self.say(format!("bind {name} to {node}")),
        }
    }

    fn make(&mut self, kind: Kind, body: Value, what: &str) {
        let created = self.create(kind, body);
        let note = if created { "" } else { " (exists)" };
        self.say(format!("create {what}{note}"));
    }

    fn create(&mut self, kind: Kind, mut body: Value) -> bool {
        let text = |field: &str| body["metadata"][field].as_str().unwrap_or("").to_owned();
        let key = ObjectKey::new(kind, &text("namespace"), &text("name"));
        if self.objects.contains_key(&key) {
            return false;
        }
        self.uids += 1;
        if body["metadata"]["uid"].is_null() {
            body["metadata"]["uid"] = json!(format!("u{}", self.uids));
        }
        if body["metadata"]["creationTimestamp"].is_null() {
            body["metadata"]["creationTimestamp"] = json!(self.now);
        }
        // As the API server does: controllers tell what is new from what has a volume, or a node, by this.
        let is_phased = matches!(kind, Kind::Pod | Kind::PersistentVolumeClaim);
        if is_phased && body["status"]["phase"].is_null() {
            body["status"]["phase"] = json!("Pending");
        }
        self.writes.push(key.clone());
        self.store(key, body);
        true
    }

    fn delete(&mut self, key: &ObjectKey, grace: Option<i64>, propagation: Propagation) {
        let Some(object) = self.objects.get(key) else {
            return;
        };
        let mut object = object.clone();
        let finalizer = match propagation {
            Propagation::Background => None,
            Propagation::Foreground => Some("foregroundDeletion"),
            Propagation::Orphan => Some("orphan"),
        };
        if let Some(finalizer) = finalizer {
            match object["metadata"]["finalizers"].as_array_mut() {
                Some(finalizers) => finalizers.push(json!(finalizer)),
                None => object["metadata"]["finalizers"] = json!([finalizer]),
            }
        }
        let is_bound_pod = key.kind == Kind::Pod
            && object["spec"]["nodeName"]
                .as_str()
                .is_some_and(|node| !node.is_empty())
            && !matches!(
                object["status"]["phase"].as_str(),
                Some("Succeeded" | "Failed")
            )
            && grace != Some(0);
        let is_held = is_bound_pod || has_finalizer(&object);
        if is_held {
            object["metadata"]["deletionTimestamp"] = json!(self.now);
            if key.kind == Kind::Namespace {
                object["status"]["phase"] = json!("Terminating");
            }
            self.store(key.clone(), object);
        } else {
            self.erase(key);
        }
    }

    fn store(&mut self, key: ObjectKey, mut object: Value) {
        let is_leaving = !object["metadata"]["deletionTimestamp"].is_null();
        let is_bound_pod = key.kind == Kind::Pod && object["spec"]["nodeName"].is_string();
        if is_leaving && !has_finalizer(&object) && !is_bound_pod {
            return self.erase(&key);
        }
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        self.objects.insert(key.clone(), object.clone());
        if self.unheard == Some(key.kind) {
            return;
        }
        if let Some(backlog) = &mut self.backlog {
            return backlog.push((key.kind, object.to_string()));
        }
        self.tell(key.kind, &object.to_string());
    }

    fn erase(&mut self, key: &ObjectKey) {
        let Some(mut object) = self.objects.remove(key) else {
            return self.say("no such object".to_owned());
        };
        self.revision += 1;
        if self.unheard == Some(key.kind) {
            return;
        }
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let object = Object::decode(key.kind, &object.to_string()).unwrap();
        let news = self.heed(key.kind, |mirror| mirror.delete_object(&object));
        self.wake(news);
    }

    /// Tells an object as it is now to whoever watches its kind.
    fn tell(&mut self, kind: Kind, text: &str) {
        let news = self.news(kind, text);
        self.wake(news);
    }

    fn news(&mut self, kind: Kind, text: &str) -> Vec<(usize, Change)> {
        let object = Object::decode(kind, text).unwrap_or_else(|problem| panic!("{problem}"));
        self.heed(kind, |mirror| mirror.apply_object(object.clone()))
    }

    /// What an event of a kind is to each row that watches it.
    fn heed(
        &mut self,
        kind: Kind,
        mut take: impl FnMut(&mut Mirror) -> Option<Change>,
    ) -> Vec<(usize, Change)> {
        let hears = self.hearing();
        let mirrors = rows().zip(&mut self.mirrors).enumerate();
        let watching = mirrors.filter(|(_, (row, _))| hears(row) && row.watches.contains(&kind));
        let news = watching.filter_map(|(index, (_, mirror))| Some((index, take(mirror)?)));
        news.collect()
    }

    fn wake(&mut self, news: Vec<(usize, Change)>) {
        let (hears, is_apart) = (self.hearing(), self.is_apart);
        let mirrors = rows().zip(&mut self.mirrors);
        for (row, mirror) in mirrors.filter(|(row, _)| !is_apart && hears(row)) {
            for kind in row.watches {
                mirror.bookmark(*kind, self.revision);
            }
        }
        for (index, change) in news {
            let mut keys = Vec::new();
            (row(index).keys)(&self.mirrors[index], &change, &mut keys);
            self.queue.extend(keys.into_iter().map(|key| (index, key)));
            let waits = self.waits.iter();
            let ends =
                |keys: &[ObjectKey]| crate::waits_ended(&change).any(|it| keys.contains(&it));
            let ended = waits.filter(|((at, _), keys)| *at == index && ends(keys));
            self.queue.extend(ended.map(|(waiter, _)| waiter.clone()));
        }
    }

    /// Lets the mirror see what it has missed.
    pub(crate) fn catch_up(&mut self) {
        let backlog = self.backlog.take().unwrap_or_default();
        let news = backlog.iter().map(|(kind, text)| self.news(*kind, text));
        let news: Vec<_> = news.collect();
        news.into_iter().for_each(|news| self.wake(news));
    }

    /// Steps one row for one key, whether anything happened or not.
    pub(crate) fn step_now(&mut self, name: &str, key: &ObjectKey) {
        let index = rows().position(|row| row.name == name).unwrap();
        self.step((index, key.clone()));
    }

    /// The same objects before a process that has seen none of them yet.
    pub(crate) fn retold(&self) -> World {
        let mut world = World::new();
        world.only = self.only;
        world.settings = self.settings.clone();
        world.now = self.now;
        world.objects = self.objects.clone();
        (world.revision, world.uids) = (self.revision, self.uids);
        world.is_quiet = true;
        world.restart();
        world
    }

    /// Forgets everything that a process keeps in memory and looks at everything anew.
    pub(crate) fn restart(&mut self) {
        self.queue.clear();
        self.heard.clear();
        self.wakes.clear();
        self.waits.clear();
        self.writes_left = None;
        let hears = self.hearing();
        for (index, row) in rows().enumerate().filter(|(_, row)| hears(row)) {
            let (mirror, changes) = listed(row, &self.objects, self.revision);
            self.mirrors[index] = mirror;
            self.wake(changes.into_iter().map(|change| (index, change)).collect());
        }
    }
}

impl Facts for World {
    fn object(&self, kind: Kind, namespace: &str, name: &str) -> Option<Value> {
        self.get(kind, namespace, name).cloned()
    }

    fn list(&self, kind: Kind, namespace: &str) -> Vec<Value> {
        let all = self.objects.iter();
        let all =
            all.filter(|(key, _)| key.kind == kind && [&*key.namespace, ""].contains(&namespace));
        all.map(|(_, object)| object.clone()).collect()
    }

    /// Of queues nobody asks for it.
    fn template_faults(&self, _: &Value) -> Vec<String> {
        Vec::new()
    }
}

fn rows() -> impl Iterator<Item = &'static Controller> {
    CONTROLLERS.iter().chain(ON_REQUEST)
}

fn row(index: usize) -> &'static Controller {
    let on_request = index.checked_sub(CONTROLLERS.len());
    on_request.map_or_else(|| &CONTROLLERS[index], |at| &ON_REQUEST[at])
}

/// A mirror that has listed every kind that a row watches.
fn listed(
    row: &Controller,
    objects: &BTreeMap<ObjectKey, Value>,
    revision: u64,
) -> (Mirror, Vec<Change>) {
    let mut mirror = Mirror::new();
    let mut changes = Vec::new();
    for kind in row.watches {
        let listing = mirror.begin_list(*kind);
        for (key, object) in objects.iter().filter(|(key, _)| key.kind == *kind) {
            let change = mirror.list_item(&listing, &object.to_string());
            changes.extend(change.unwrap_or_else(|problem| panic!("{key:?}: {problem}")));
        }
        changes.extend(mirror.end_list(listing, revision));
    }
    (mirror, changes)
}

/// A patch as it is printed: a condition is one line of text.
fn brief(patch: &Value) -> Value {
    let mut patch = patch.clone();
    let list = patch.pointer_mut("/status/conditions");
    for condition in list.and_then(Value::as_array_mut).into_iter().flatten() {
        let text = |field: &str| condition[field].as_str().unwrap_or("").to_owned();
        let (kind, status) = (text("type"), text("status"));
        if kind.is_empty() {
            continue;
        }
        let words = [text("reason"), text("message")].join(": ");
        *condition = json!(format!("{kind}={status} {words}"));
    }
    patch
}

fn has_finalizer(object: &Value) -> bool {
    let of_meta = &object["metadata"]["finalizers"];
    let of_spec = &object["spec"]["finalizers"];
    [of_meta, of_spec]
        .iter()
        .any(|list| list.as_array().is_some_and(|list| !list.is_empty()))
}

/// RFC 7396.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut target[name], value);
        }
    }
}
