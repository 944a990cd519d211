//! The API server on this thread: calls in, answers and watch lines out; its journal and its end.

use std::collections::BTreeSet;

use api::admission::{Facts, Review, Verdict};
use api::call::{self, Call, WatchLine};
use api::intent::Refusal;
use api::kind::Kind;
use api::time::Time;
use serde_json::{Value, json};
use store::journal::{Change, Record, State, Torn};
use store::{
    Begin, Calls, Commit, LoadError, NativeGroups, Records, Request, Response, Store, User, Watch,
    WatchStep,
};

use crate::fault::Fault;
use crate::random::Random;
use crate::settings::Settings;

/// Records beyond which the journal begins anew from what is there.
const RECORDS_MAX: usize = 20_000;

/// The real store with the real review rules, without a socket. Its journal is a list of records,
/// kept where something can happen to it.
pub(crate) struct Server {
    store: Store,
    settings: store::Settings,
    random: Random,
    records: Vec<Vec<u8>>,
    /// With more records than these they begin anew with what is there.
    rebase_at: usize,
    /// Nothing can be written to the journal before this.
    full_until: Option<Time>,
    /// The next record is not taken.
    refuses_next: bool,
    /// The last record was not taken because of that.
    has_refused: bool,
    /// The next record is cut short, by the server's end.
    tears_next: bool,
    /// Webhooks do not answer before this.
    hooks_down_until: Option<Time>,
    /// What reached the webhooks.
    pub(crate) hook_calls: u64,
    /// How often it has ended.
    pub(crate) ends: u64,
}

/// What a call came to.
pub(crate) enum Answered {
    Whole(Response),
    Stream(Box<Watch>),
}

/// What a server is made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    object_bytes_max: usize,
    records: Records,
    native_groups: NativeGroups,
}

/// The largest object of a world in which objects become too large: small, so that they cost little.
const SMALL_OBJECT: usize = 64 << 10;

impl Shape {
    /// Records are kept where something can happen to them; groups of Kubernetes' own are served where
    /// drivers know them.
    pub(crate) fn of(settings: &Settings, drivers: &driver::Settings) -> Shape {
        let faults = &settings.faults;
        let ends = faults.has(Fault::ApiRestart) || faults.has(Fault::TornTail);
        let max = settings.object_bytes_max;
        Shape {
            object_bytes_max: match faults.has(Fault::ObjectTooLarge) {
                true => max.min(SMALL_OBJECT),
                false => max,
            },
            records: if ends {
                Records::Kept
            } else {
                Records::Unwanted
            },
            native_groups: native_groups(drivers),
        }
    }
}

/// An object of a list from elsewhere.
pub(crate) struct Listed {
    /// How the store calls its kind.
    pub(crate) resource: String,
    /// Its name there: behind its namespace, if it is in one.
    pub(crate) key: String,
    /// The object, with a uid.
    pub(crate) object: Value,
}

fn native_groups(drivers: &driver::Settings) -> NativeGroups {
    let engine = drivers.engine.as_ref();
    match engine.is_some_and(|engine| engine.native_groups) {
        true => NativeGroups::Served,
        false => NativeGroups::Absent,
    }
}

impl Server {
    /// A server that has just started for the first time.
    pub(crate) fn start(mut random: Random, shape: Shape, now: Time) -> Server {
        // The first life's bytes are those of the generator itself.
        let first = random.clone();
        let random = Random::new(random.draw());
        let mut server = Server::unstarted(first, random, (shape.records, shape.native_groups));
        if let Some(commit) = server.store.start(now) {
            server.keep(&commit);
            server.store.finish(commit.ticket, now);
        }
        if shape.object_bytes_max < server.settings.object_bytes_max {
            // What every plane has is larger than what its users may store here.
            server.settings.object_bytes_max = shape.object_bytes_max;
            server.rebase();
            server.restart(now);
            server.ends = 0;
        }
        server
    }

    /// A server that starts on what is stored already, and keeps no journal; and what of it cannot be
    /// read, and is not there.
    pub(crate) fn of_list(
        mut random: Random,
        listed: Vec<Listed>,
        drivers: &driver::Settings,
        now: Time,
    ) -> (Server, Vec<LoadError>) {
        let first = random.fork();
        let kept = (Records::Unwanted, native_groups(drivers));
        let mut server = Server::unstarted(first, random, kept);
        let mut unreadable = Vec::new();
        for (at, one) in (1..).zip(listed) {
            let loaded = server.store.load_change(at, server.stored(at, one));
            unreadable.extend(loaded.err());
            server.store.load_revision(at);
        }
        if let Some(commit) = server.store.start(now) {
            server.store.finish(commit.ticket, now);
        }
        (server, unreadable)
    }

    /// An object of a list as it is stored. Revisions are counted anew: those of a list are not comparable with
    /// those that will be.
    fn stored(&self, revision: u64, listed: Listed) -> Change {
        let Listed {
            resource,
            key,
            mut object,
        } = listed;
        // By hand a manifest says less than an API shows.
        self.store.fill_in(&resource, &mut object);
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.insert("resourceVersion".to_owned(), json!(revision.to_string()));
        }
        Change {
            resource: resource.into(),
            key: key.into(),
            state: Some(State {
                revision,
                bytes: object.to_string().into_bytes(),
            }),
        }
    }

    fn unstarted(
        first: Random,
        random: Random,
        (records, native_groups): (Records, NativeGroups),
    ) -> Server {
        let settings = store::Settings {
            records,
            native_groups,
            ..store::Settings::default()
        };
        Server {
            store: Store::new(settings.clone(), Box::new(first)),
            settings,
            random,
            records: Vec::new(),
            rebase_at: RECORDS_MAX,
            full_until: None,
            refuses_next: false,
            has_refused: false,
            tears_next: false,
            hooks_down_until: None,
            hook_calls: 0,
            ends: 0,
        }
    }

    /// Answers one call as the plane's own identity.
    pub(crate) fn answer(&mut self, call: &Call, now: Time) -> Answered {
        self.answer_to(User::admin(), call, now)
    }

    /// Answers one call of somebody.
    pub(crate) fn answer_to(&mut self, user: User, call: &Call, now: Time) -> Answered {
        let request = Request::from_call(call, user);
        let mut begin = self.store.begin(&request, now, &mut admit);
        loop {
            match begin {
                Begin::Done(response) => return Answered::Whole(response),
                Begin::Commit(commit) => return Answered::Whole(self.commit(&commit, now)),
                Begin::Watch(watch) => return Answered::Stream(watch),
                Begin::Call(calls) => {
                    let talk = self.ask_hooks(*calls, now);
                    begin = self.store.resume(&request, talk, &mut admit);
                }
                Begin::Check(_) | Begin::Connect(_) | Begin::Explain(_) | Begin::Mint(_) => {
                    return Answered::Whole(Response::text(
                        501,
                        "no kubelet and no keys in a simulated world",
                    ));
                }
            }
        }
    }

    /// The lines that a watch has to say now; the flag tells whether it has ended.
    pub(crate) fn lines(&self, watch: &mut Watch, now: Time) -> (Vec<WatchLine>, Next) {
        let mut bytes = Vec::new();
        let next = loop {
            match self.store.poll_watch(watch, now, &mut bytes) {
                WatchStep::More => {}
                WatchStep::Wait { until } => break Next::At(until),
                // Nobody registers converters in a simulated world.
                WatchStep::Call | WatchStep::End => break Next::End,
            }
        };
        let lines = bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| call::watch_line(line).expect("the store writes watch lines"))
            .collect();
        (lines, next)
    }

    /// All stored objects of a kind.
    pub(crate) fn objects(&mut self, kind: Kind, now: Time) -> Vec<Value> {
        let mut list: Value = serde_json::from_slice(&self.listed(kind, now)).unwrap_or_default();
        match list["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        }
    }

    /// The list of all stored objects of a kind, as it is answered.
    pub(crate) fn listed(&mut self, kind: Kind, now: Time) -> Vec<u8> {
        match self.answer(&call::list(kind, 0, ""), now) {
            Answered::Whole(response) => response.body,
            Answered::Stream(_) => Vec::new(),
        }
    }

    /// The largest object that is stored.
    pub(crate) fn object_bytes_max(&self) -> usize {
        self.settings.object_bytes_max
    }

    /// The newest revision.
    pub(crate) fn revision(&self) -> u64 {
        self.store.revision()
    }

    /// The next record is not taken by the journal.
    pub(crate) fn refuse_next(&mut self) {
        self.refuses_next = true;
    }

    /// The next record is cut short, and the server ends with it.
    pub(crate) fn tear_next(&mut self) {
        self.tears_next = true;
    }

    /// Whether a record was not taken since the last call.
    pub(crate) fn refused(&mut self) -> bool {
        std::mem::take(&mut self.has_refused)
    }

    /// The next record is taken whole, whatever was to happen to it.
    pub(crate) fn spare_next(&mut self) {
        self.refuses_next = false;
        self.tears_next = false;
    }

    /// Nothing can be written before then.
    pub(crate) fn fill_disk(&mut self, until: Time) {
        self.full_until = Some(until);
    }

    /// Webhooks do not answer before then.
    pub(crate) fn stop_hooks(&mut self, until: Time) {
        self.hooks_down_until = Some(until);
    }

    /// The server ends and starts again from its journal. What is wrong with what it has read.
    pub(crate) fn restart(&mut self, now: Time) -> Vec<String> {
        self.ends += 1;
        let before = snapshot(&self.store);
        let mut store = self
            .store
            .again(self.settings.clone(), Box::new(self.random.fork()));
        let mut problems = Vec::new();
        for (at, record) in self.records.iter().enumerate() {
            match store.load(record) {
                Ok(()) => {}
                // Everything before a torn tail is whole.
                Err(Torn::Tail) if at + 1 == self.records.len() => {}
                Err(torn) => problems.push(format!("record {at} of the journal: {torn}")),
            }
        }
        self.store = store;
        self.records = snapshot(&self.store);
        if self.records != before {
            problems.extend(differing(&before, &self.records));
        }
        match self.store.start(now) {
            Some(commit) => {
                self.store.finish(commit.ticket, now);
                self.rebase();
            }
            None => self.mark_revision(),
        }
        problems
    }

    fn commit(&mut self, commit: &Commit, now: Time) -> Response {
        if self.full_until.is_some_and(|until| now < until) {
            return self.abandon("no space left on device");
        }
        if std::mem::take(&mut self.refuses_next) {
            self.has_refused = true;
            return self.abandon("the record was not taken");
        }
        if std::mem::take(&mut self.tears_next) {
            let whole = commit.record.len();
            self.records.push(commit.record[..whole / 2].to_vec());
            return Response::text(0, "the server ended");
        }
        self.keep(commit);
        self.store.finish(commit.ticket, now)
    }

    fn abandon(&mut self, why: &str) -> Response {
        let answers = self.store.abandon(why);
        let last = answers.into_iter().next_back();
        last.map_or_else(|| Response::text(503, why), |(_, response)| response)
    }

    fn keep(&mut self, commit: &Commit) {
        if self.settings.records == Records::Unwanted {
            return;
        }
        self.records.push(commit.record.clone());
        if self.records.len() > self.rebase_at {
            // This write is not visible yet, so that its record comes after what is.
            self.rebase();
            self.records.push(commit.record.clone());
        }
    }

    fn rebase(&mut self) {
        self.records = snapshot(&self.store);
        self.mark_revision();
        // There may be more objects than that.
        self.rebase_at = RECORDS_MAX.max(2 * self.records.len());
    }

    /// The newest revision may be that of an object that has gone.
    fn mark_revision(&mut self) {
        let nothing = Record {
            revision: self.store.revision(),
            changes: Vec::new(),
        };
        self.records.push(nothing.encode());
    }

    fn ask_hooks(&mut self, calls: Calls, now: Time) -> store::Talk {
        let is_down = self.hooks_down_until.is_some_and(|until| now < until);
        self.hook_calls += calls.calls.len() as u64;
        let answers = calls
            .calls
            .iter()
            .map(|call| match is_down {
                true => Err(format!(
                    "dial tcp {}: connect: connection refused",
                    call.address.authority
                )),
                false => Ok(agreed(&call.body)),
            })
            .collect();
        calls.answer(answers)
    }
}

/// A webhook that agrees to everything.
fn agreed(review: &[u8]) -> Vec<u8> {
    let review: Value = serde_json::from_slice(review).unwrap_or_default();
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": { "uid": review["request"]["uid"], "allowed": true },
    })
    .to_string()
    .into_bytes()
}

/// Everything that is stored: a record for each object, in order.
fn snapshot(store: &Store) -> Vec<Vec<u8>> {
    store.snapshot().map(|record| record.encode()).collect()
}

/// What is said of each object that differs between two snapshots.
fn differing(before: &[Vec<u8>], after: &[Vec<u8>]) -> Vec<String> {
    let [before, after]: [BTreeSet<&Vec<u8>>; 2] = [before, after].map(|all| all.iter().collect());
    let records = before.symmetric_difference(&after);
    let changes = records
        .filter_map(|record| Record::decode(record).ok())
        .flat_map(|record| record.changes);
    let named = changes.map(|change| format!("{} {}", change.resource, change.key));
    let named: BTreeSet<String> = named.collect();
    let told = named.iter().map(|key| format!("{key} is not what it was"));
    told.collect()
}

/// When a watch has more to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Once the store changes, or at this time.
    At(Option<Time>),
    /// Never.
    End,
}

fn admit(question: &Review<'_>, facts: &dyn Facts) -> Verdict {
    review::review(question, facts)
}

/// What an answer refuses, and why.
pub(crate) fn refusal_of(response: &Response) -> Refusal {
    call::refusal(response.code, response.retry_after_seconds, &response.body)
}

/// What somebody hears who asks the cluster's API.
pub(crate) fn told(response: Response) -> Result<Vec<u8>, String> {
    match response.code {
        200 => Ok(response.body),
        _ => Err(refusal_of(&response).message.into()),
    }
}
