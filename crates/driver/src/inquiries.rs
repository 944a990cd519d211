//! Questions of keys to somebody beside the API, one request each. An answer is for the key's next
//! step, and for all others of the key while it stands.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use api::call::Call;
use api::time::Time;
use controllers::{Heard, Inquiry, Whom};

use crate::request::{Ask, Credentials, Door, RequestId, Topic};
use crate::work::WorkKey;

/// Most questions that are on their way at once.
const IN_FLIGHT_MAX: usize = 64;

/// Answers by topic, each until its end.
type Standing = BTreeMap<String, (Result<String, String>, Time)>;

#[derive(Debug, Default)]
pub(crate) struct Inquiries {
    queue: VecDeque<(WorkKey, Inquiry)>,
    sent: BTreeMap<RequestId, (WorkKey, Inquiry)>,
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
        let questions = questions.into_iter().map(|it| (work.clone(), it));
        self.queue.extend(questions);
        count
    }

    /// The next question; `id` is what it will be called.
    pub(crate) fn poll(&mut self, id: RequestId) -> Option<Ask> {
        if self.sent.len() >= IN_FLIGHT_MAX {
            return None;
        }
        let (work, inquiry) = self.queue.pop_front()?;
        let ask = request(&inquiry);
        self.sent.insert(id, (work, inquiry));
        self.asked += 1;
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
            Some((_, inquiry)) => (inquiry.read)(&body),
            None => Err("it was not asked".to_owned()),
        }
    }

    /// Takes an answer; whose question it was.
    pub(crate) fn answered(
        &mut self,
        id: RequestId,
        answer: Result<String, String>,
        now: Time,
    ) -> Option<WorkKey> {
        let (work, inquiry) = self.sent.remove(&id)?;
        if inquiry.stands_ms > 0 {
            let until = now.plus_ms(inquiry.stands_ms);
            let of_key = self.standing.entry(work.clone()).or_default();
            of_key.insert(inquiry.topic.clone(), (answer.clone(), until));
            self.ends.insert((until, work.clone()));
        }
        let heard = self.heard.entry(work.clone()).or_default();
        heard.tell(&inquiry.topic, answer);
        Some(work)
    }

    /// What was told to a key since its last step, and what stands of what it was told before.
    pub(crate) fn take(&mut self, work: &WorkKey, now: Time) -> Heard {
        self.forget(now);
        let mut heard = self.heard.remove(work).unwrap_or_default();
        for (topic, (answer, _)) in self.standing.get(work).into_iter().flatten() {
            heard.tell(topic, answer.clone());
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
        self.queue.len() + self.sent.len()
    }

    /// How many were asked.
    pub(crate) fn asked_count(&self) -> u64 {
        self.asked
    }
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
