//! An extender: which questions of the rules go out when, and what becomes of the answers; and what it is
//! told.
//!
//! Questions go out in rounds, so many at a time, each with a deadline that holds even where the shell
//! forgets it. What was answered counts together, once the round is over: nobody is placed on the first
//! node that was answered for. Whoever fails again and again is not asked the rest of a round.

mod ask;
mod herald;
mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use api::time::Time;
use model::{Opinion, Query, Question};

use crate::measures::{Counts, SLACK_MS};
use crate::request::{Ask, RequestId};
pub(crate) use ask::{Framed, told};
pub(crate) use herald::Herald;
use read::Frame;
pub(crate) use read::Heard;

/// Questions that are on their way at a time.
const IN_FLIGHT_MAX: usize = 16;
/// Questions of a round.
const ROUND_MAX: usize = 1_024;
/// Questions that wait for later rounds; who wants to know more asks again.
const WAITING_MAX: usize = 16_384;
/// After so many failures in a row the rest of a round is not asked.
const FAILURES_MAX: u32 = 8;

/// Whom the rules ask, and how far that is.
#[derive(Debug)]
pub(crate) struct Extending {
    conf: engine::Extender,
    waiting: BTreeMap<Query, Question>,
    round: Option<Round>,
    /// What was wrong the last time.
    trouble: String,
    notices: Vec<String>,
    counts: Counts,
}

/// Questions whose answers count together.
#[derive(Debug, Default)]
struct Round {
    queued: BTreeMap<Query, Question>,
    open: BTreeMap<RequestId, Open>,
    said: Vec<(Query, Opinion)>,
    /// Failures since the last answer.
    failures: u32,
    trouble: String,
}

/// A question that is on its way.
#[derive(Debug)]
struct Open {
    query: Query,
    frame: Frame,
    deadline: Time,
}

impl Extending {
    /// `None` where the rules ask nobody.
    pub(crate) fn new(conf: Option<&engine::Extender>) -> Option<Extending> {
        Some(Extending {
            conf: conf?.clone(),
            waiting: BTreeMap::new(),
            round: None,
            trouble: String::new(),
            notices: Vec::new(),
            counts: Counts::default(),
        })
    }

    /// Somebody waits for these answers.
    pub(crate) fn want(&mut self, asks: Vec<(Query, Question)>) {
        for (query, question) in asks {
            let is_under_way = self.round.as_ref().is_some_and(|round| round.has(&query));
            if is_under_way || self.waiting.len() >= WAITING_MAX {
                continue;
            }
            self.waiting.insert(query, question);
        }
    }

    /// The next question, under this id, in the words that `framed` finds for it: none where its subject
    /// has gone.
    pub(crate) fn poll(
        &mut self,
        id: RequestId,
        framed: &dyn Fn(&Query, &Question) -> Option<Framed>,
        now: Time,
    ) -> Option<Ask> {
        self.begin();
        let round = self.round.as_mut()?;
        while round.open.len() < IN_FLIGHT_MAX {
            let (query, question) = round.queued.pop_first()?;
            let Some(framed) = framed(&query, &question) else {
                continue;
            };
            let ask = ask::of(&self.conf, read::verb(&query), framed.topic, framed.body)?;
            let deadline = now.plus_ms(ask.within_ms + SLACK_MS);
            let frame = framed.frame;
            let open = Open {
                query,
                frame,
                deadline,
            };
            round.open.insert(id, open);
            self.counts.asked += 1;
            return Some(ask);
        }
        None
    }

    /// Begins a round with what waits, if there is none.
    fn begin(&mut self) {
        if self.round.is_some() || self.waiting.is_empty() {
            return;
        }
        let mut queued = std::mem::take(&mut self.waiting);
        if let Some(rest) = queued.keys().nth(ROUND_MAX).cloned() {
            self.waiting = queued.split_off(&rest);
        }
        self.round = Some(Round {
            queued,
            ..Round::default()
        });
    }

    /// Whether a question of this id waits for its answer.
    pub(crate) fn asked(&self, id: RequestId) -> bool {
        let round = self.round.as_ref();
        round.is_some_and(|round| round.open.contains_key(&id))
    }

    /// What an answer says.
    pub(crate) fn read(
        &self,
        id: RequestId,
        answer: Result<Vec<u8>, String>,
    ) -> Result<Heard, String> {
        let open = self.round.as_ref().and_then(|round| round.open.get(&id));
        let open = open.ok_or("nobody asked")?;
        read::of(&open.query, &open.frame, &answer?)
    }

    /// Takes what an answer said.
    pub(crate) fn answered(&mut self, id: RequestId, heard: Result<Heard, String>) {
        let Some(round) = &mut self.round else {
            return;
        };
        let Some(open) = round.open.remove(&id) else {
            return;
        };
        match heard {
            Ok(heard) => {
                round.failures = 0;
                self.counts.refused += heard.refused_count;
                if round.trouble.is_empty() {
                    round.trouble = heard.trouble(&open.query);
                }
                let opinion = open.frame.complete(heard.opinion);
                round.said.push((open.query, opinion));
            }
            Err(why) => {
                self.counts.failed += 1;
                round.fail(open.query, &why);
            }
        }
    }

    /// What counts from now on, once a round is over. To be called after whatever may end one.
    pub(crate) fn settle(&mut self) -> Option<Vec<(Query, Opinion)>> {
        let round = self.round.take_if(|round| round.is_over())?;
        let trouble = round.trouble;
        if !trouble.is_empty() && trouble != self.trouble {
            self.notices.push(trouble.clone());
        }
        self.trouble = trouble;
        Some(round.said)
    }

    /// Time has passed: whoever has not answered by now does not.
    pub(crate) fn advance(&mut self, now: Time) {
        let open = self.round.iter().flat_map(|round| &round.open);
        let late = open.filter(|(_, open)| open.deadline <= now);
        let late: Vec<RequestId> = late.map(|(id, _)| *id).collect();
        for id in late {
            self.answered(id, Err("no answer came".to_owned()));
        }
    }

    /// The clock was set: whatever is waited for is due.
    pub(crate) fn hurry(&mut self, now: Time) {
        let open = self.round.iter_mut().flat_map(|it| it.open.values_mut());
        for open in open {
            open.deadline = now.plus_ms(SLACK_MS).min(open.deadline);
        }
    }

    pub(crate) fn wake(&self) -> Option<Time> {
        let at_once = Some(Time(i64::MIN));
        let Some(round) = &self.round else {
            return at_once.filter(|_| !self.waiting.is_empty());
        };
        if !round.queued.is_empty() && round.open.len() < IN_FLIGHT_MAX {
            return at_once;
        }
        round.open.values().map(|open| open.deadline).min()
    }

    /// Whether nobody waits for an answer.
    pub(crate) fn is_quiet(&self) -> bool {
        self.round.is_none() && self.waiting.is_empty()
    }

    pub(crate) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }
}

impl Round {
    fn has(&self, query: &Query) -> bool {
        self.queued.contains_key(query) || self.open.values().any(|open| open.query == *query)
    }

    fn is_over(&self) -> bool {
        self.queued.is_empty() && self.open.is_empty()
    }

    /// A question failed. Where that is nothing new, those that wait behind it fail with it.
    fn fail(&mut self, query: Query, why: &str) {
        self.failures += 1;
        let why = read::sane(why);
        let verb = read::verb(&query).name();
        self.said
            .push((query, Opinion::Failed(why.as_str().into())));
        self.trouble = format!("the extender does not answer {verb}: {why}");
        if self.failures >= FAILURES_MAX {
            let rest = std::mem::take(&mut self.queued).into_keys();
            let failed = rest.map(|query| (query, Opinion::Failed(why.as_str().into())));
            self.said.extend(failed);
        }
    }
}
