//! What an extender is told: one thing after the other, in the order in which it was decided, each with a
//! deadline. Nobody waits for it: what the extender makes of the news changes no decision.
//!
//! Upstream calls at the beginning and the end of each session. Here a session is a while in which cycles
//! ran: its beginning tells everything there is before the first of them.

use std::collections::VecDeque;

use api::time::Time;
use engine::{Extender, Verb};
use model::WriteId;

use super::{ask, read};
use crate::measures::{Counts, SLACK_MS};
use crate::request::{Ask, RequestId};

/// News that wait to be told.
const WAITING_MAX: usize = 4_096;
/// Bytes of them.
const BYTES_MAX: usize = 64 << 20;
/// After so many failures in a row what waits is given up, and told anew with the next session.
const FAILURES_MAX: u32 = 8;
/// A session lasts so long at least, as upstream's period is, in milliseconds.
const SESSION_LEAST_MS: i64 = 1_000;
/// And so long for each row of what is told at its beginning, in microseconds: to put a row into words takes
/// a small part of that.
const SESSION_MICROS_A_ROW: i64 = 1_000;
/// The most rows that are told at the beginning of a session.
pub(crate) const ROWS_MAX: usize = 20_000;

/// Whom to tell, and how far that is.
#[derive(Debug)]
pub(crate) struct Herald {
    conf: Extender,
    waiting: VecDeque<Word>,
    /// Of those that wait.
    bytes: usize,
    open: Option<Open>,
    session: Option<Session>,
    /// Since the last success.
    failures: u32,
    /// What was wrong the last time, and with what, if that is known.
    trouble: String,
    troubled: Option<Verb>,
    /// Places that were answered for, or never will be.
    settled: Vec<(WriteId, Result<(), String>)>,
    notices: Vec<String>,
    counts: Counts,
}

/// Something to be told.
#[derive(Debug)]
struct Word {
    verb: Verb,
    topic: String,
    body: Vec<u8>,
    /// The place that waits for the answer.
    write: Option<WriteId>,
}

/// Something that is being told.
#[derive(Debug)]
struct Open {
    id: RequestId,
    verb: Verb,
    write: Option<WriteId>,
    deadline: Time,
}

#[derive(Debug)]
struct Session {
    until: Time,
    /// Its beginning could not be told, which may not be ignored: as upstream, nothing else of it is.
    is_unheard: bool,
}

impl Herald {
    /// `None` where nobody is told anything.
    pub(crate) fn new(conf: Option<&Extender>) -> Option<Herald> {
        Some(Herald {
            conf: conf.filter(|it| it.is_told())?.clone(),
            waiting: VecDeque::new(),
            bytes: 0,
            open: None,
            session: None,
            failures: 0,
            trouble: String::new(),
            troubled: None,
            settled: Vec::new(),
            notices: Vec::new(),
            counts: Counts::default(),
        })
    }

    pub(crate) fn conf(&self) -> &Extender {
        &self.conf
    }

    /// Whether a session is to begin before the next cycle: the last one is over, and all of it is told.
    pub(crate) fn is_between_sessions(&self) -> bool {
        let verbs = [Verb::OnSessionOpen, Verb::OnSessionClose];
        self.session.is_none() && self.is_quiet() && verbs.iter().any(|it| self.conf.asks(*it))
    }

    /// A session begins; its beginning tells so many rows. Whether they are to be told.
    pub(crate) fn begin(&mut self, rows: usize, now: Time) -> bool {
        let is_told = self.conf.asks(Verb::OnSessionOpen) && rows <= ROWS_MAX;
        if !is_told && self.conf.asks(Verb::OnSessionOpen) {
            self.counts.failed += 1;
            self.tell_trouble(format!(
                "the extender is not told of the whole cluster: there are {rows} nodes and tasks, and \
                 {ROWS_MAX} at most are told"
            ));
        }
        let micros = match is_told {
            true => SESSION_MICROS_A_ROW.saturating_mul(i64::try_from(rows).unwrap_or(i64::MAX)),
            false => 0,
        };
        self.session = Some(Session {
            until: now.plus_ms(SESSION_LEAST_MS.max(micros / 1_000)),
            is_unheard: false,
        });
        is_told
    }

    /// Whether this is to be told now.
    pub(crate) fn wants(&self, verb: Verb) -> bool {
        let is_heard = self.session.as_ref().is_none_or(|it| !it.is_unheard);
        self.conf.asks(verb) && is_heard
    }

    /// Tells something when its turn comes; of a place, for which write.
    pub(crate) fn tell(
        &mut self,
        (verb, topic): (Verb, String),
        body: Vec<u8>,
        write: Option<WriteId>,
    ) {
        if self.waiting.len() >= WAITING_MAX || self.bytes + body.len() > BYTES_MAX {
            self.counts.failed += 1;
            self.tell_trouble("the extender is too slow: it is not told everything".to_owned());
            self.settle(write, Err("the extender is too slow"));
            return;
        }
        self.bytes += body.len();
        self.waiting.push_back(Word {
            verb,
            topic,
            body,
            write,
        });
    }

    /// A place is answered for.
    fn settle(&mut self, write: Option<WriteId>, said: Result<(), &str>) {
        let said = said.map_err(str::to_owned);
        self.settled.extend(write.map(|write| (write, said)));
    }

    /// Places that were answered for since the last call, or never will be.
    pub(crate) fn take_settled(&mut self) -> Vec<(WriteId, Result<(), String>)> {
        std::mem::take(&mut self.settled)
    }

    /// The next thing to be told, under this id.
    pub(crate) fn poll(&mut self, id: RequestId, now: Time) -> Option<Ask> {
        if self.open.is_some() {
            return None;
        }
        let Word {
            verb,
            topic,
            body,
            write,
        } = self.waiting.pop_front()?;
        self.bytes -= body.len();
        let ask = ask::of(&self.conf, verb, topic, body)?;
        let deadline = now.plus_ms(ask.within_ms + SLACK_MS);
        self.open = Some(Open {
            id,
            verb,
            write,
            deadline,
        });
        self.counts.asked += 1;
        Some(ask)
    }

    /// Whether something of this id is being told.
    pub(crate) fn asked(&self, id: RequestId) -> bool {
        self.open.as_ref().is_some_and(|open| open.id == id)
    }

    /// Whether what was told was heard.
    pub(crate) fn read(&self, answer: Result<Vec<u8>, String>) -> Result<(), String> {
        let open = self.open.as_ref().ok_or("nobody was told")?;
        read::heard(open.verb, &answer?)
    }

    /// What was told was heard, or not.
    pub(crate) fn answered(&mut self, heard: Result<(), String>) {
        let Some(Open { verb, write, .. }) = self.open.take() else {
            return;
        };
        let Err(why) = heard else {
            self.failures = 0;
            if self.troubled.is_none_or(|it| it == verb) {
                self.trouble.clear();
            }
            self.settle(write, Ok(()));
            return;
        };
        self.counts.failed += 1;
        self.failures += 1;
        let (name, why) = (verb.name(), read::sane(&why));
        let trouble = format!("the extender does not take {name}: {why}");
        self.settle(write, Err(&trouble));
        self.tell_trouble(trouble);
        self.troubled = Some(verb);
        if verb == Verb::OnSessionOpen && !self.conf.is_ignorable {
            self.session.iter_mut().for_each(|it| it.is_unheard = true);
            self.forget(Ok(()));
        }
        if self.failures >= FAILURES_MAX {
            self.failures = 0;
            self.session = None;
            self.forget(Err("the extender does not answer"));
        }
    }

    /// What waits is not told, which counts so for places.
    fn forget(&mut self, said: Result<(), &str>) {
        self.counts.failed += self.waiting.len() as u64;
        for word in std::mem::take(&mut self.waiting) {
            self.settle(word.write, said);
        }
        self.bytes = 0;
    }

    /// Time has passed: whoever has not answered by now does not, and a session may be over.
    pub(crate) fn advance(&mut self, now: Time) {
        if self.open.as_ref().is_some_and(|it| it.deadline <= now) {
            self.answered(Err("no answer came".to_owned()));
        }
        let is_over = self.session.as_ref().is_some_and(|it| it.until <= now);
        if is_over && self.is_quiet() {
            self.session = None;
            if self.conf.asks(Verb::OnSessionClose) {
                let topic = ask::told(Verb::OnSessionClose, "");
                self.tell((Verb::OnSessionClose, topic), b"{}".to_vec(), None);
            }
        }
    }

    /// The clock was set: whatever is waited for is due.
    pub(crate) fn hurry(&mut self, now: Time) {
        if let Some(open) = &mut self.open {
            open.deadline = now.plus_ms(SLACK_MS).min(open.deadline);
        }
        if let Some(session) = &mut self.session {
            session.until = now.min(session.until);
        }
    }

    pub(crate) fn wake(&self) -> Option<Time> {
        match &self.open {
            Some(open) => Some(open.deadline),
            None if !self.waiting.is_empty() => Some(Time(i64::MIN)),
            None => self.session.as_ref().map(|it| it.until),
        }
    }

    /// Whether all is told.
    pub(crate) fn is_quiet(&self) -> bool {
        self.open.is_none() && self.waiting.is_empty()
    }

    /// How much is not.
    pub(crate) fn untold(&self) -> usize {
        self.waiting.len() + usize::from(self.open.is_some())
    }

    fn tell_trouble(&mut self, trouble: String) {
        if self.trouble != trouble {
            self.notices.push(trouble.clone());
            self.trouble = trouble;
            self.troubled = None;
        }
    }

    pub(crate) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }
}
