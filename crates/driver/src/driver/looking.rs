//! Look-ups and questions on behalf of keys: asked for by a step, answered to the next one. And questions of people:
//! answered at once.

use api::ask::Subject;
use api::time::Time;

use super::{Driver, Named};
use crate::explain::{Found, Unanswered};
use crate::log::Record;
use crate::metrics::Level;
use crate::request::{Got, Request, RequestId, decoded};

impl Driver {
    /// Finds out why a workload waits, who holds what it waits for and what would help. Nothing is changed
    /// by the question.
    ///
    /// # Errors
    /// There is nothing to explain.
    pub fn explain(&mut self, subject: &Subject, now: Time) -> Result<Found, Unanswered> {
        let is_ready = self.is_informed() && !self.is_standby();
        let cycles = self.cycles.as_mut().filter(|_| is_ready);
        let cycles = cycles.ok_or(Unanswered::NotReady)?;
        cycles.ask(&self.mirror, subject, now)
    }

    /// The next look-up or question of a key.
    pub(super) fn look_or_inquire(&mut self, id: RequestId, now: Time) -> Option<Request> {
        let look = self.looks.poll(id);
        look.or_else(|| self.inquiries.poll(id, now).map(Request::Ask))
    }

    /// Takes what counts of an answer to a key's question. One that is refused is an answer, too.
    pub(super) fn inquired(&mut self, id: RequestId, answer: Result<String, String>, now: Time) {
        self.note(|| Record::Answered {
            now,
            id,
            answer: answer.clone(),
        });
        for work in self.inquiries.answered(id, answer, now) {
            if let Some(round) = self.work.look_ended(&work, Ok(()), now) {
                self.round_ended(&work, round);
            }
        }
    }

    /// Takes an answer to a look-up; any other is given back.
    pub(super) fn looked_got(&mut self, id: RequestId, answer: Got, now: Time) -> Option<Got> {
        let Some((key, waiting)) = self.looks.answered(id) else {
            return Some(answer);
        };
        let read = decoded(key.kind, answer);
        self.note(|| Record::Got {
            now,
            id,
            kind: key.kind,
            object: read.clone(),
        });
        let found = read.map(|object| object.map(|object| object.uid().to_owned()));
        if let Err(refusal) = &found {
            let text = format!("cannot look up {}: {}", Named(&key), refusal.message);
            self.notice(Level::Warning, text);
        }
        for work in waiting {
            let ended = match &found {
                Ok(uid) => {
                    self.looks.tell(&work, &key, uid.as_deref());
                    Ok(())
                }
                Err(refusal) => {
                    let seconds = refusal.retry_after_seconds.unwrap_or(0);
                    Err(i64::from(seconds) * 1_000)
                }
            };
            let is_failed = ended.is_err();
            if let Some(round) = self.work.look_ended(&work, ended, now) {
                self.round_ended(&work, round);
            }
            if is_failed {
                self.looks.forget(&work);
            }
        }
        None
    }
}
