//! Requests of the driver, the nodes and the user, and their answers, right or wrong.

use api::call::{self, Call};
use api::intent::{Action, Intent, ObjectKey, Refusal, WriteOutcome};
use api::kind::Kind;
use driver::{Request, RequestId};
use serde_json::json;
use serde_json::value::RawValue;
use store::Response;

use super::{Answer, Event, Owner, World};
use crate::wire::Answered;

impl World {
    pub(super) fn serve(&mut self, life: u32, id: RequestId, request: Request) {
        match request {
            Request::Get { key } => {
                let response = self.whole(&call::get(key.kind, &key.namespace, &key.name));
                let got = match response.code {
                    200 => Ok(raw(response.body)),
                    404 => Ok(None),
                    code => Err(call::refusal(
                        code,
                        response.retry_after_seconds,
                        &response.body,
                    )),
                };
                self.reply(life, id, Answer::Got(got));
            }
            Request::List {
                kind,
                limit,
                continue_token,
            } => {
                let response = self.whole(&call::list(kind, limit, &continue_token));
                let page = match response.code {
                    200 => Ok(call::page(&response.body).expect("the store writes lists")),
                    code => Err(call::refusal(
                        code,
                        response.retry_after_seconds,
                        &response.body,
                    )),
                };
                self.reply(life, id, Answer::Page(page));
            }
            Request::Watch {
                kind,
                revision,
                timeout_seconds,
            } => {
                if self.strikes(self.settings.faults.watch_expiry_once_in) {
                    self.reply(life, id, Answer::Closed(Some(expired())));
                    return;
                }
                let owner = Owner::Driver(life, id);
                if let Err(refusal) =
                    self.open(owner, &call::watch(kind, revision, timeout_seconds))
                {
                    self.reply(life, id, Answer::Closed(Some(refusal)));
                }
            }
            Request::Write(intent) => self.serve_write(life, id, &intent),
        }
    }

    /// Performs a write of the driver, or lets it fail in one of the ways in which writes fail.
    fn serve_write(&mut self, life: u32, id: RequestId, intent: &Intent) {
        let faults = self.settings.faults;
        if self.strikes(faults.request_loss_once_in) {
            self.note("a request of the driver is lost");
            self.reply(life, id, Answer::Written(lost()));
            return;
        }
        if self.strikes(faults.refusal_once_in) {
            let refusal = self.refusal(intent);
            self.note(&format!("the driver is refused with {}", refusal.code));
            self.reply(life, id, Answer::Written(WriteOutcome::Refused(refusal)));
            return;
        }
        let pods_from = self.settings.begins.plus_ms(faults.no_pods_until_ms);
        let is_pod = intent.target.kind == Kind::Pod;
        if self.now < pods_from && is_pod && matches!(intent.action, Action::Create { .. }) {
            self.note("the driver may not create a pod");
            self.reply(life, id, Answer::Written(WriteOutcome::Refused(quota())));
            return;
        }
        let outcome = self.perform("driver", intent);
        self.driver_writes += 1;
        if self.driver_writes == faults.crash_at_write || self.strikes(faults.crash_once_in) {
            if let Some(at) = self.living(life) {
                self.restart(at);
            }
            return;
        }
        if self.strikes(faults.pause_once_in)
            && let Some(at) = self.living(life)
        {
            let for_ms = self.random.between(0, faults.pause_ms_max);
            self.stand_still(at, for_ms);
        }
        if self.strikes(faults.answer_loss_once_in) {
            self.note("an answer to the driver is lost");
            self.reply(life, id, Answer::Written(lost()));
            return;
        }
        self.reply(life, id, Answer::Written(outcome));
    }

    /// A conflict where the write can have one, else a server that cannot cope.
    fn refusal(&mut self, intent: &Intent) -> Refusal {
        let has_version = match &intent.action {
            Action::Patch { .. } => true,
            Action::Delete {
                resource_version, ..
            } => resource_version.is_some(),
            Action::Bind { .. } | Action::Create { .. } | Action::CreateSecret { .. } => false,
        };
        let (code, reason, retry_after_seconds) = match self.random.between(0, 2) {
            0 if has_version => (409, "Conflict", None),
            1 => (429, "TooManyRequests", Some(1)),
            _ => (500, "InternalError", None),
        };
        Refusal {
            code,
            reason: reason.into(),
            message: "it went wrong on purpose".into(),
            retry_after_seconds,
        }
    }

    /// Whether a fault that happens once in so many times happens now.
    pub(super) fn strikes(&mut self, once_in: u64) -> bool {
        let until = self.settings.begins.plus_ms(self.settings.faults.until_ms);
        self.now < until && self.random.once_in(once_in)
    }

    /// What `vcctl job suspend` and `resume` send.
    pub(super) fn send_command(&mut self, job: &str, action: &str) {
        let jobs = self.objects(Kind::VcJob);
        let Some(job) = jobs.iter().find(|it| it["metadata"]["name"] == job) else {
            return;
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
        self.written("user", &call::write(&Intent { target, action }));
    }

    fn reply(&mut self, life: u32, id: RequestId, answer: Answer) {
        let at = self.later();
        self.push(at, Event::Answer(life, id, answer));
    }

    pub(super) fn answer(&mut self, at: usize, id: RequestId, answer: Answer) {
        let driver = &mut self.replicas[at].driver;
        match answer {
            Answer::Page(page) => driver.handle_page(id, page, self.now),
            Answer::Line(line) => driver.handle_watch(id, line, self.now),
            Answer::Closed(why) => driver.handle_closed(id, why, self.now),
            Answer::Got(object) => driver.handle_got(id, object, self.now),
            Answer::Written(outcome) => driver.handle_written(id, outcome, self.now),
        }
    }

    /// Performs an intent as a client does: a create that meets its own child is done.
    pub(super) fn perform(&mut self, who: &str, intent: &Intent) -> WriteOutcome {
        let response = self.written(who, &call::write(intent));
        let outcome = call::outcome(response.code, response.retry_after_seconds, &response.body);
        let Some(read) = call::read_of_existing(intent, &outcome) else {
            return outcome;
        };
        let found = self.whole(&read);
        call::outcome_of_existing(intent, found.code, &found.body).unwrap_or(outcome)
    }

    pub(super) fn written(&mut self, who: &str, call: &Call) -> Response {
        let response = self.whole(call);
        if call.target.contains("/leases") {
            // Signs of life are no part of the story.
            self.lease_writes += u64::from((200..300).contains(&response.code));
            return response;
        }
        self.counts.add(who, call);
        self.transcript
            .write(self.settings.begins, self.now, who, call, &response);
        response
    }

    fn whole(&mut self, call: &Call) -> Response {
        match self.server.answer(call, self.now) {
            Answered::Whole(response) => response,
            Answered::Stream(_) => Response::text(500, "a watch was answered where none was asked"),
        }
    }
}

fn lost() -> WriteOutcome {
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

fn expired() -> Refusal {
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
