//! Questions of keys to somebody beside the API, one request each. An answer is for the key's next
//! step, and for all others of the key while it stands.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use api::call::Call;
use api::time::Time;
use controllers::{Heard, Inquiry, Whom};

use crate::request::{Ask, Credentials, Door, RequestId, Topic};
use crate::work::WorkKey;

/// Most questions of a lane that are on their way at once.
const IN_FLIGHT_MAX: usize = 64;
/// The same of a DNS that is silent.
const IN_FLIGHT_SILENT_MAX: usize = 1;

/// Answers by topic, each until its end.
type Standing = BTreeMap<String, (Result<String, String>, Time)>;

/// Questions that wait for those before them only where the same is asked: whoever does not answer
/// holds up nobody else.
#[derive(Debug, Default)]
struct Lane {
    queue: VecDeque<(WorkKey, Inquiry)>,
    in_flight: usize,
}

/// A question on its way.
#[derive(Debug)]
struct Sent {
    work: WorkKey,
    inquiry: Inquiry,
    at: Time,
    /// How many were sent with it and before it.
    number: u64,
}

/// The DNS of pods is one, whatever it is asked: where it leaves a question without an answer for all
/// the time that this has, and has answered nobody since, all that wait are told so, and until it
/// answers it is tried by one question at a time. So nobody waits longer than for a question of his own.
#[derive(Debug, Default)]
pub(crate) struct Inquiries {
    names: Lane,
    others: Lane,
    sent: BTreeMap<RequestId, Sent>,
    /// Whether DNS is believed to be silent.
    is_silent: bool,
    /// How many questions had been sent when it last spoke.
    spoke_at: u64,
    heard: BTreeMap<WorkKey, Heard>,
    /// Answers that stand, by key.
    standing: BTreeMap<WorkKey, Standing>,
    ends: BTreeSet<(Time, WorkKey)>,
    asked: u64,
}

impl Inquiries {
    /// Wants these asked for a key; how many answers it will have.
    pub(crate) fn ask(&mut self, work: &WorkKey, questions: Vec<Inquiry>) -> u32 {
        let count = u32::try_from(questions.len()).unwrap_or(u32::MAX);
        for question in questions {
            let lane = self.lane_of(&question);
            lane.queue.push_back((work.clone(), question));
        }
        count
    }

    fn lane_of(&mut self, question: &Inquiry) -> &mut Lane {
        match is_of_names(question) {
            true => &mut self.names,
            false => &mut self.others,
        }
    }

    /// The next question; `id` is what it will be called.
    pub(crate) fn poll(&mut self, id: RequestId, now: Time) -> Option<Ask> {
        let names_max = match self.is_silent {
            true => IN_FLIGHT_SILENT_MAX,
            false => IN_FLIGHT_MAX,
        };
        let next = self.others.next(IN_FLIGHT_MAX);
        let (work, inquiry) = next.or_else(|| self.names.next(names_max))?;
        self.asked += 1;
        let ask = request(&inquiry);
        let sent = Sent {
            work,
            inquiry,
            at: now,
            number: self.asked,
        };
        self.sent.insert(id, sent);
        Some(ask)
    }

    /// Whether a question of this id waits for its answer.
    pub(crate) fn asked(&self, id: RequestId) -> bool {
        self.sent.contains_key(&id)
    }

    /// What counts of an answer.
    pub(crate) fn read(
        &self,
        id: RequestId,
        answer: Result<Vec<u8>, String>,
    ) -> Result<String, String> {
        let body = answer?;
        match self.sent.get(&id) {
            Some(sent) => (sent.inquiry.read)(&body),
            None => Err("it was not asked".to_owned()),
        }
    }

    /// Takes an answer; whose question it was, and who else is told by it.
    pub(crate) fn answered(
        &mut self,
        id: RequestId,
        answer: Result<String, String>,
        now: Time,
    ) -> Vec<WorkKey> {
        let Some(sent) = self.sent.remove(&id) else {
            return Vec::new();
        };
        self.lane_of(&sent.inquiry).in_flight -= 1;
        let mut told = vec![(sent.work.clone(), sent.inquiry.clone())];
        if is_of_names(&sent.inquiry) {
            if answer.is_ok() || !sent.was_long(now) {
                self.is_silent = false;
                self.spoke_at = self.asked;
            } else if self.spoke_at < sent.number {
                self.is_silent = true;
                told.extend(std::mem::take(&mut self.names.queue));
            }
        }
        for (work, inquiry) in &told {
            self.tell(work, inquiry, answer.clone(), now);
        }
        told.into_iter().map(|(work, _)| work).collect()
    }

    fn tell(
        &mut self,
        work: &WorkKey,
        inquiry: &Inquiry,
        answer: Result<String, String>,
        now: Time,
    ) {
        let stands_ms = inquiry.stands_for_ms(&answer);
        if stands_ms > 0 {
            let until = now.plus_ms(stands_ms);
            let of_key = self.standing.entry(work.clone()).or_default();
            of_key.insert(inquiry.topic.clone(), (answer.clone(), until));
            self.ends.insert((until, work.clone()));
        }
        let heard = self.heard.entry(work.clone()).or_default();
        heard.tell(&inquiry.topic, answer);
    }

    /// What was told to a key since its last step, and what stands of what it was told before.
    pub(crate) fn take(&mut self, work: &WorkKey, now: Time) -> Heard {
        self.forget(now);
        let mut heard = self.heard.remove(work).unwrap_or_default();
        for (topic, (answer, until)) in self.standing.get(work).into_iter().flatten() {
            heard.tell_until(topic, answer.clone(), *until);
        }
        heard
    }

    /// Forgets answers that stand no longer.
    fn forget(&mut self, now: Time) {
        while let Some((end, _)) = self.ends.first()
            && *end <= now
        {
            let Some((_, work)) = self.ends.pop_first() else {
                return;
            };
            let Some(of_key) = self.standing.get_mut(&work) else {
                continue;
            };
            of_key.retain(|_, (_, until)| *until > now);
            if of_key.is_empty() {
                self.standing.remove(&work);
            }
        }
    }

    /// Questions that have no answer yet.
    pub(crate) fn open(&self) -> usize {
        self.names.queue.len() + self.others.queue.len() + self.sent.len()
    }

    /// How many were asked.
    pub(crate) fn asked_count(&self) -> u64 {
        self.asked
    }
}

impl Lane {
    /// The next question, if no more than so many are on their way with it.
    fn next(&mut self, in_flight_max: usize) -> Option<(WorkKey, Inquiry)> {
        if self.in_flight >= in_flight_max {
            return None;
        }
        let next = self.queue.pop_front()?;
        self.in_flight += 1;
        Some(next)
    }
}

impl Sent {
    /// Whether its answer took its whole time, as far as two clocks agree: what is refused comes at once.
    fn was_long(&self, now: Time) -> bool {
        (now.micros() - self.at.micros()) / 1_000 >= self.inquiry.within_ms / 2
    }
}

fn is_of_names(inquiry: &Inquiry) -> bool {
    matches!(inquiry.whom, Whom::Names { .. })
}

fn request(inquiry: &Inquiry) -> Ask {
    let (door, target) = match &inquiry.whom {
        Whom::Pod {
            address,
            port,
            request,
        } => {
            let (path, headers) = request.clone().unwrap_or_default();
            let door = Door::Pod {
                address: address.clone(),
                port: *port,
                headers,
            };
            (door, path)
        }
        Whom::Server {
            address,
            path,
            insecure_skip_verify,
            credentials,
        } => {
            let door = Door::Address {
                address: address.clone(),
                insecure_skip_verify: *insecure_skip_verify,
                credentials: credentials.clone().map(Credentials::Secret),
            };
            (door, path.clone())
        }
        Whom::Names { name } => (Door::Names, name.clone()),
    };
    Ask {
        topic: Topic(inquiry.topic.clone()),
        door,
        call: Call {
            method: "GET",
            target,
            content_type: "",
            body: Vec::new(),
        },
        within_ms: inquiry.within_ms,
        bytes_max: inquiry.bytes_max,
    }
}
