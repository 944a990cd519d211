//! Measured use of nodes: whom to ask when, and what of the answers counts.
//!
//! Questions go out like any request, one at a time, each with a deadline that holds even where the shell
//! forgets it. An answer is read in a pure room; what of it cannot be meant is refused, told, and changes
//! nothing about the rest. A round whose questions are not all answered changes nothing.

mod ask;
mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use api::time::Time;
use api::volcano::scheduler_conf::{MetricsConf, MetricsSource};
use model::Measured;

use crate::request::{Ask, RequestId};
pub(crate) use read::Reading;

/// Between two rounds at least, in milliseconds.
const INTERVAL_LEAST_MS: i64 = 1_000;
/// So much later than a question's own deadline the driver waits no longer for it, in milliseconds.
pub(crate) const SLACK_MS: i64 = 5_000;

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Cpu,
    Memory,
    Both,
}

/// What is measured, by the source that it is asked for.
#[derive(Debug)]
pub(crate) struct Measures {
    conf: MetricsConf,
    source: MetricsSource,
    due: Time,
    round: Option<Round>,
    rows: BTreeMap<Arc<str>, Measured>,
    /// What was wrong the last time.
    trouble: String,
    notices: Vec<String>,
    counts: Counts,
}

/// Questions that belong together.
#[derive(Debug)]
struct Round {
    began: Time,
    /// How many were answered.
    answered: usize,
    open: Option<(RequestId, Time)>,
    reading: Reading,
}

/// Counts for the metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) asked: u64,
    pub(crate) failed: u64,
    /// Values that cannot be meant.
    pub(crate) refused: u64,
}

impl Counts {
    /// These and others.
    pub(crate) fn plus(self, other: Counts) -> Counts {
        Counts {
            asked: self.asked + other.asked,
            failed: self.failed + other.failed,
            refused: self.refused + other.refused,
        }
    }
}

/// What is known at a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) due: Time,
    pub(crate) rows: BTreeMap<Arc<str>, Measured>,
}

impl Measures {
    /// Of events about answers that do not count.
    pub(crate) const REASON: &str = "InvalidMetrics";

    /// `None` where nobody is to be asked.
    pub(crate) fn new(conf: &MetricsConf) -> Option<Measures> {
        let source = conf.source?;
        if source.needs_address() && conf.address.is_empty() {
            // The configuration was told so when it was read.
            return None;
        }
        Some(Measures {
            conf: conf.clone(),
            source,
            due: Time(i64::MIN),
            round: None,
            rows: BTreeMap::new(),
            trouble: String::new(),
            notices: Vec::new(),
            counts: Counts::default(),
        })
    }

    fn parts(&self) -> &'static [Part] {
        match self.source {
            MetricsSource::Prometheus | MetricsSource::PrometheusAdaptor => {
                &[Part::Cpu, Part::Memory]
            }
            MetricsSource::Elasticsearch | MetricsSource::MetricsServer => &[Part::Both],
        }
    }

    fn interval_ms(&self) -> i64 {
        (self.conf.interval.0 / 1_000_000).max(INTERVAL_LEAST_MS)
    }

    /// The next question, under this id.
    pub(crate) fn poll(&mut self, id: RequestId, now: Time) -> Option<Ask> {
        if self.round.is_none() && self.due <= now {
            self.round = Some(Round {
                began: now,
                answered: 0,
                open: None,
                reading: Reading::default(),
            });
        }
        let parts = self.parts();
        let round = self.round.as_mut().filter(|round| round.open.is_none())?;
        let ask = ask::of(&self.conf, self.source, parts[round.answered]);
        round.open = Some((id, now.plus_ms(ask.within_ms + SLACK_MS)));
        self.counts.asked += 1;
        Some(ask)
    }

    /// Whether a question of this id waits for its answer.
    pub(crate) fn asked(&self, id: RequestId) -> bool {
        let open = self.round.as_ref().and_then(|round| round.open);
        open.is_some_and(|(open, _)| open == id)
    }

    /// What an answer says; `room` is what a node has of cpu and memory, `None` of nodes that are not
    /// here.
    pub(crate) fn read(
        &self,
        answer: Result<Vec<u8>, String>,
        room: &dyn Fn(&str) -> Option<[i64; 2]>,
    ) -> Result<Reading, String> {
        let part = self.round.as_ref().map(|it| self.parts()[it.answered]);
        read::of(self.source, part.unwrap_or(Part::Both), &answer?, room)
    }

    /// Takes what an answer said; whether the round is over and all of it known.
    pub(crate) fn answered(&mut self, answer: Result<Reading, String>, now: Time) -> bool {
        let parts = self.parts().len();
        let Some(round) = &mut self.round else {
            return false;
        };
        round.open = None;
        match answer {
            Err(why) => {
                self.fail(&why, now);
                false
            }
            Ok(reading) => {
                round.reading.join(reading);
                round.answered += 1;
                if round.answered < parts {
                    return false;
                }
                self.settle(now);
                true
            }
        }
    }

    fn settle(&mut self, now: Time) {
        let Some(round) = self.round.take() else {
            return;
        };
        self.due = self.next(round.began, now);
        let at = model::Time::from_micros(now.micros());
        let since = at.plus_millis(-self.interval_ms());
        self.rows.clear();
        for (node, shares) in round.reading.rows {
            // Half of the truth would make an empty node of a full one.
            if let [Some(cpu), Some(memory)] = shares {
                let measured = Measured {
                    cpu,
                    memory,
                    at,
                    since,
                };
                self.rows.insert(node.into(), measured);
            }
        }
        self.counts.refused += round.reading.refused_count;
        let said = round.reading.refused;
        self.say(match said.is_empty() {
            true => String::new(),
            false => format!(
                "{} measured values are refused: {}",
                round.reading.refused_count,
                said.join("; ")
            ),
        });
    }

    fn next(&self, began: Time, now: Time) -> Time {
        began.plus_ms(self.interval_ms()).max(now)
    }

    fn fail(&mut self, why: &str, now: Time) {
        let Some(round) = self.round.take() else {
            return;
        };
        self.due = self.next(round.began, now);
        self.counts.failed += 1;
        let whom = self.source.name();
        self.say(format!(
            "{whom} does not say how much of nodes is used: {why}"
        ));
    }

    /// What is wrong is told once for as long as it is.
    fn say(&mut self, trouble: String) {
        if !trouble.is_empty() && trouble != self.trouble {
            self.notices.push(trouble.clone());
        }
        self.trouble = trouble;
    }

    /// Time has passed: whoever has not answered by now does not.
    pub(crate) fn advance(&mut self, now: Time) {
        let open = self.round.as_ref().and_then(|round| round.open);
        if open.is_some_and(|(_, deadline)| deadline <= now) {
            self.fail("no answer came", now);
        }
    }

    /// The clock was set: whatever is waited for is due.
    pub(crate) fn hurry(&mut self, now: Time) {
        self.due = self.due.min(now);
        if let Some(round) = &mut self.round {
            round.began = round.began.min(now);
            if let Some((_, deadline)) = &mut round.open {
                *deadline = now.plus_ms(SLACK_MS).min(*deadline);
            }
        }
    }

    pub(crate) fn wake(&self) -> Option<Time> {
        match &self.round {
            None => Some(self.due),
            Some(round) => match round.open {
                Some((_, deadline)) => Some(deadline),
                None => Some(round.began),
            },
        }
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (&str, Measured)> {
        self.rows.iter().map(|(node, row)| (&**node, *row))
    }

    pub(crate) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// What is known; a round that is on its way begins anew.
    pub(crate) fn known(&self) -> Known {
        Known {
            due: match &self.round {
                Some(round) => round.began,
                None => self.due,
            },
            rows: self.rows.clone(),
        }
    }

    pub(crate) fn resume(&mut self, known: &Known) {
        self.due = known.due;
        self.rows = known.rows.clone();
    }
}
