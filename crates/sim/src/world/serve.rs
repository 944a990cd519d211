//! Requests of the driver, the nodes and the user, and their answers, right or wrong.

use api::call::{self, Call};
use api::intent::{Action, Intent, ObjectKey, Refusal, WriteOutcome};
use api::kind::Kind;
use driver::{Request, RequestId};
use serde_json::json;
use serde_json::value::RawValue;
use store::{Response, User};

use super::trouble::ACCOUNT;
use super::{Answer, Asked, Event, Owner, World};
use crate::calls;
use crate::fault::Fault;
use crate::wire::{Answered, refusal_of};

/// A write that is told to be lost is done so much later at most.
const OVERDUE_MS: i64 = 5_000;
/// How far back a read may be.
const STALE_REVISIONS_MAX: i64 = 40;

impl World {
    pub(super) fn serve(&mut self, life: u32, id: RequestId, request: Request) {
        let unserved = kind_of(&request).filter(|kind| self.is_withdrawn(*kind));
        if let Some(refusal) = self.trouble_of(life).or(unserved.map(|_| unserved_kind())) {
            self.refuse(life, id, &request, refusal);
            return;
        }
        match request {
            Request::Ask(ask) => self.serve_ask(life, id, &ask),
            Request::Get { key } => {
                let got = self.get(&key);
                self.reply(life, id, Answer::Got(got));
            }
            Request::List {
                kind,
                limit,
                continue_token,
            } => {
                let page = self.list(life, kind, limit, &continue_token);
                self.reply(life, id, Answer::Page(page));
            }
            Request::Watch {
                kind,
                revision,
                timeout_seconds,
            } => {
                if self.strikes(Fault::WatchExpired, kind.row().plural) {
                    self.reply(life, id, Answer::Closed(Some(expired())));
                    return;
                }
                let owner = Owner::Driver(life, id);
                let call = call::watch(kind, revision, timeout_seconds);
                if let Err(refusal) = self.open(owner, kind, &call, self.now) {
                    self.reply(life, id, Answer::Closed(Some(refusal)));
                }
            }
            Request::Write(intent) => self.serve_write(life, id, &intent),
        }
    }

    /// Why a request is not looked at at all.
    fn trouble_of(&mut self, life: u32) -> Option<Refusal> {
        if self.now < self.down_until {
            return Some(unreachable());
        }
        let at = self.living(life)?;
        if self.now < self.replicas[at].expired_until {
            return Some(refused(401, "Unauthorized", None));
        }
        if self.strikes(Fault::TooManyRequests, "") {
            let seconds = self.draw_ms(Fault::TooManyRequests, 1, 10);
            let seconds = u32::try_from(seconds).ok();
            return Some(refused(429, "TooManyRequests", seconds));
        }
        let is_broken = self.strikes(Fault::ServerError, "");
        is_broken.then(|| refused(500, "InternalError", None))
    }

    fn refuse(&mut self, life: u32, id: RequestId, request: &Request, refusal: Refusal) {
        let answer = match request {
            Request::Ask(_) => Answer::Told(Err(refusal.message.to_string())),
            Request::Get { .. } => Answer::Got(Err(refusal)),
            Request::List { .. } => Answer::Page(Err(refusal)),
            Request::Watch { .. } => Answer::Closed(Some(refusal)),
            Request::Write(_) if refusal.code == 0 => Answer::Written(lost()),
            Request::Write(_) => Answer::Written(WriteOutcome::Refused(refusal)),
        };
        self.reply(life, id, answer);
    }

    fn get(&mut self, key: &ObjectKey) -> Result<Option<Box<RawValue>>, Refusal> {
        if let Some(revision) = self.stale_revision(&key.name)
            && let Some(found) = self.get_at(key, revision)
        {
            return Ok(found);
        }
        let response = self.read(&call::get(key.kind, &key.namespace, &key.name));
        match response.code {
            200 => Ok(raw(response.body)),
            _ => Err(refusal_of(&response)),
        }
    }

    /// What a replica of the server that is behind says of an object.
    fn get_at(&mut self, key: &ObjectKey, revision: u64) -> Option<Option<Box<RawValue>>> {
        let target = format!(
            "{}?fieldSelector=metadata.name%3D{}&{}",
            key.kind.path(&key.namespace, ""),
            key.name,
            exactly(revision)
        );
        let response = self.read(&reading(target));
        let page = (response.code == 200).then(|| call::page(&response.body).ok())??;
        Some(page.items.into_iter().next())
    }

    fn list(
        &mut self,
        life: u32,
        kind: Kind,
        limit: u32,
        continue_token: &str,
    ) -> Result<call::Page, Refusal> {
        let plural = kind.row().plural;
        if !continue_token.is_empty() && self.strikes(Fault::PartialList, plural) {
            return Err(expired());
        }
        let first = call::list(kind, limit, continue_token);
        // Whoever has seen nothing yet cannot know how old a list is, and no server that is asked
        // for the newest gives an older one to start with.
        let has_seen = self
            .living(life)
            .is_some_and(|at| self.replicas[at].has_listed(kind));
        if continue_token.is_empty()
            && has_seen
            && let Some(revision) = self.stale_revision(plural)
        {
            let target = format!("{}&{}", first.target, exactly(revision));
            let response = self.read(&reading(target));
            if response.code == 200 {
                return Ok(call::page(&response.body).expect("the store writes lists"));
            }
        }
        let response = self.read(&first);
        match response.code {
            200 => Ok(call::page(&response.body).expect("the store writes lists")),
            _ => Err(refusal_of(&response)),
        }
    }

    /// A write that was told to be lost is done after all. Where its driver has died meanwhile, or lost its
    /// lease and forgotten everything, nobody knows of it: its successor may have given the same room to another pod, and the kubelet of that
    /// node refuses one of them.
    pub(super) fn perform_overdue(&mut self, asked: Asked, intent: &Intent) {
        if self.written("driver", &call::write(intent)).code != 201 {
            return;
        }
        if self.asked(asked.life) == Some(asked) {
            self.witness.note_overdue(intent);
        } else {
            self.note_forgotten(intent);
        }
    }

    /// A write of a driver that was supplanted arrives: nobody awaits it.
    pub(super) fn perform_late(&mut self, intent: &Intent) {
        let before = self.server.revision();
        self.perform("former driver", intent);
        if self.server.revision() > before {
            self.witness.note_overdue(intent);
        }
    }

    /// Who asks now, if that life has not ended.
    fn asked(&self, life: u32) -> Option<Asked> {
        let at = self.living(life)?;
        let term = self.replicas[at].driver.metrics().terms;
        Some(Asked { life, term })
    }

    /// A write of a driver that has died or lost its lease since is done after all.
    fn note_forgotten(&mut self, intent: &Intent) {
        self.witness.note_overdue(intent);
        if let Action::Bind { node, .. } = &intent.action {
            self.excuse(node, OVERDUE_MS);
        }
    }

    fn stale_revision(&mut self, what: &str) -> Option<u64> {
        let newest = self.server.revision();
        if newest < 100 || !self.strikes(Fault::StaleRead, what) {
            return None;
        }
        let back = self.draw_ms(Fault::StaleRead, 1, STALE_REVISIONS_MAX);
        Some(newest.saturating_sub(back.unsigned_abs()))
    }

    /// Performs a write of the driver, or lets it fail in one of the ways in which writes fail.
    fn serve_write(&mut self, life: u32, id: RequestId, intent: &Intent) {
        if let Some(outcome) = self.stopped(life, intent) {
            self.reply(life, id, Answer::Written(outcome));
            return;
        }
        self.meddle(intent);
        let before = self.server.revision();
        let outcome = self.perform("driver", intent);
        let is_done = self.server.revision() > before;
        self.learn_of_record(&outcome);
        let at = self.living(life);
        let is_awaited = at.is_some_and(|at| self.replicas[at].driver.awaits_write(id));
        if is_done && !is_awaited {
            // It was asked for under an earlier lease, and is like one that was told to be lost.
            self.note_forgotten(intent);
        }
        self.driver_writes += 1;
        let is_the_one = self.driver_writes == self.settings.faults.crash_at_write;
        if is_the_one || self.strikes(Fault::Crash, "") {
            if let Some(at) = self.living(life) {
                self.restart(at);
            }
            return;
        }
        if self.strikes(Fault::TimeoutAfterCommit, "") {
            self.reply(life, id, Answer::Written(lost()));
            return;
        }
        self.reply(life, id, Answer::Written(outcome));
    }

    /// What a driver is told of a write that does not get as far as the store now.
    fn stopped(&mut self, life: u32, intent: &Intent) -> Option<WriteOutcome> {
        if self.strikes(Fault::RequestLost, "") {
            return Some(lost());
        }
        if self.strikes(Fault::TimeoutBeforeCommit, "") {
            let ms = self.draw_ms(Fault::TimeoutBeforeCommit, 1, OVERDUE_MS);
            let asked = self.asked(life).unwrap_or(Asked { life, term: 0 });
            self.push(self.now.plus_ms(ms), Event::Overdue(asked, intent.clone()));
            return Some(lost());
        }
        let refusal = match &intent.action {
            Action::Bind { .. } if self.strikes(Fault::BindRefused, &intent.target.name) => {
                // A plugin of the server says no, or a webhook that it must ask is broken.
                let says = [(403, "Forbidden"), (500, "InternalError")];
                let which = self.pick(Fault::BindRefused, says.len());
                refused(says[which].0, says[which].1, None)
            }
            Action::Create { .. } if self.refuses_pods() && intent.target.kind == Kind::Pod => {
                self.note("the driver may not create a pod");
                quota()
            }
            _ => return None,
        };
        Some(WriteOutcome::Refused(refusal))
    }

    /// Whether no driver may create a pod yet.
    fn refuses_pods(&self) -> bool {
        let no_pods_until = self.settings.faults.no_pods_until_ms;
        self.now < self.settings.begins.plus_ms(no_pods_until)
    }

    /// What others do just before a write arrives.
    fn meddle(&mut self, intent: &Intent) {
        let key = &intent.target;
        let target = key.kind.path(&key.namespace, &key.name);
        let rests_on_version = matches!(
            intent.action,
            Action::Patch { .. }
                | Action::Delete {
                    resource_version: Some(_),
                    ..
                }
        );
        if rests_on_version && self.is_due(Fault::Conflict) && self.touch(&target) {
            self.struck(Fault::Conflict, &target);
        }
        if let Action::Bind { node, .. } = &intent.action
            && self.is_due(Fault::Cordon)
        {
            self.cordon(node);
        }
        let grows = matches!(key.kind, Kind::VcJob | Kind::PodGroup | Kind::Pod);
        if grows
            && matches!(intent.action, Action::Patch { .. })
            && self.is_due(Fault::ObjectTooLarge)
        {
            self.bloat(&target);
        }
        if self.is_due(Fault::JournalRefused) {
            self.server.refuse_next();
        } else if self.is_due(Fault::TornTail) {
            self.server.tear_next();
        }
    }

    /// What became of a record that something was to happen to.
    fn learn_of_record(&mut self, outcome: &WriteOutcome) {
        let was_refused = self.server.refused();
        self.server.spare_next();
        if was_refused {
            self.struck(Fault::JournalRefused, "");
        }
        if matches!(outcome, WriteOutcome::Unknown { .. }) {
            self.struck(Fault::TornTail, "");
            self.end_server(Fault::TornTail);
        }
    }

    /// Who the drivers are to the server.
    fn driver_user(&self) -> User {
        if !self.settings.faults.has(Fault::RbacRevoked) {
            return User::admin();
        }
        User {
            name: ACCOUNT.to_owned(),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                "system:authenticated".to_owned(),
            ],
            ..User::default()
        }
    }

    /// What `vcctl job suspend` and `resume` send.
    /// Whether it is done, or nothing is there to be told.
    pub(super) fn send_command(&mut self, job: &str, action: &str) -> bool {
        let jobs = self.objects(Kind::VcJob);
        let Some(job) = jobs.iter().find(|it| it["metadata"]["name"] == job) else {
            return true;
        };
        let reference = json!({
            "apiVersion": Kind::VcJob.api_version(),
            "kind": "Job",
            "name": job["metadata"]["name"],
            "uid": job["metadata"]["uid"],
            "controller": true,
        });
        let name = job["metadata"]["name"].as_str().unwrap_or("");
        let name = format!("{name}-{}", action.to_lowercase());
        let body = json!({
            "apiVersion": Kind::Command.api_version(),
            "kind": "Command",
            "metadata": {
                "name": name,
                "namespace": "default",
                "ownerReferences": [reference],
            },
            "action": action,
            "target": reference,
        });
        let target = ObjectKey::new(Kind::Command, "default", &name);
        let action = Action::Create { body };
        let response = self.written("user", &call::write(&Intent { target, action }));
        (200..300).contains(&response.code)
    }

    pub(super) fn reply(&mut self, life: u32, id: RequestId, answer: Answer) {
        let at = self.wire_time();
        self.push(at, Event::Answer(life, id, answer));
    }

    pub(super) fn answer(&mut self, at: usize, id: RequestId, answer: Answer) {
        let clock = self.replicas[at].clock(self.now);
        let driver = &mut self.replicas[at].driver;
        match answer {
            Answer::Page(page) => driver.handle_page(id, page, clock),
            Answer::Line(line) => driver.handle_watch(id, line, clock),
            Answer::Closed(why) => driver.handle_closed(id, why, clock),
            Answer::Got(object) => driver.handle_got(id, object, clock),
            Answer::Written(outcome) => driver.handle_written(id, outcome, clock),
            Answer::Told(answer) => driver.handle_answer(id, answer, clock),
        }
    }

    /// Performs an intent as a client does: a create that meets its own child is done.
    pub(super) fn perform(&mut self, who: &str, intent: &Intent) -> WriteOutcome {
        let response = self.written(who, &calls::write(intent));
        if response.code == 0 {
            return lost();
        }
        let outcome = call::outcome(response.code, response.retry_after_seconds, &response.body);
        let Some(read) = call::read_of_existing(intent, &outcome) else {
            return outcome;
        };
        let found = self.read(&read);
        call::outcome_of_existing(intent, found.code, &found.body).unwrap_or(outcome)
    }

    pub(super) fn written(&mut self, who: &str, call: &Call) -> Response {
        let user = match who {
            "driver" | "former driver" => self.driver_user(),
            _ => User::admin(),
        };
        let response = match self.now < self.down_until {
            true => Response::text(0, "connection refused"),
            false => self.whole(user, call),
        };
        if call.target.contains("/leases") {
            // Signs of life are no part of the story.
            self.lease_writes += u64::from((200..300).contains(&response.code));
            return response;
        }
        if who == "user" && call.method == "DELETE" && (200..300).contains(&response.code) {
            self.witness.note_deleted(&call.target);
        }
        self.counts.add(who, call);
        self.transcript
            .write(self.settings.begins, self.now, who, call, &response);
        response
    }

    /// A read of a driver.
    pub(super) fn read(&mut self, call: &Call) -> Response {
        let user = self.driver_user();
        self.whole(user, call)
    }

    /// A read of the nodes, who may always.
    pub(super) fn read_as_node(&mut self, call: &Call) -> Response {
        self.whole(User::admin(), call)
    }

    pub(super) fn whole(&mut self, user: User, call: &Call) -> Response {
        match self.server.answer_to(user, call, self.now) {
            Answered::Whole(response) => response,
            Answered::Stream(_) => Response::text(500, "a watch was answered where none was asked"),
        }
    }
}

fn reading(target: String) -> Call {
    Call {
        method: "GET",
        target,
        content_type: "",
        body: Vec::new(),
    }
}

fn exactly(revision: u64) -> String {
    format!("resourceVersion={revision}&resourceVersionMatch=Exact")
}

fn refused(code: u16, reason: &str, retry_after_seconds: Option<u32>) -> Refusal {
    Refusal {
        code,
        reason: reason.into(),
        message: "it went wrong on purpose".into(),
        retry_after_seconds,
    }
}

/// Objects of which kind a request is about, if of any.
fn kind_of(request: &Request) -> Option<Kind> {
    match request {
        Request::Ask(_) => None,
        Request::Get { key } => Some(key.kind),
        Request::List { kind, .. } | Request::Watch { kind, .. } => Some(*kind),
        Request::Write(intent) => Some(intent.target.kind),
    }
}

/// What a server says of a kind that it does not serve: no object of it is named.
pub(super) fn unserved_kind() -> Refusal {
    Refusal {
        message: "404 page not found".into(),
        ..refused(404, "", None)
    }
}

/// The server does not answer at all.
pub(super) fn unreachable() -> Refusal {
    Refusal {
        message: "connection refused".into(),
        ..refused(0, "Unreachable", None)
    }
}

pub(super) fn lost() -> WriteOutcome {
    WriteOutcome::Unknown {
        message: "the answer was lost".into(),
    }
}

fn quota() -> Refusal {
    Refusal {
        code: 403,
        reason: "Forbidden".into(),
        message: "exceeded quota: compute, requested: pods=1, used: pods=9, limited: pods=9".into(),
        retry_after_seconds: None,
    }
}

pub(super) fn expired() -> Refusal {
    Refusal {
        code: 410,
        reason: "Expired".into(),
        message: "The resourceVersion for the provided watch is too old.".into(),
        retry_after_seconds: None,
    }
}

fn raw(body: Vec<u8>) -> Option<Box<RawValue>> {
    let text = String::from_utf8(body).expect("the store writes UTF-8");
    Some(RawValue::from_string(text).expect("the store writes JSON"))
}
