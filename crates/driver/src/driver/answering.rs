//! Questions to others than the API: what came of them.

use api::time::Time;

use super::Driver;
use crate::log::Record;
use crate::measures::{Measures, Reading};
use crate::metrics::Level;
use crate::request::{Ask, RequestId};
use crate::settings::Settings;

impl Driver {
    /// Answers [`Request::Ask`](crate::Request::Ask): with a body, or with why none came. One that comes
    /// too late, or twice, changes nothing.
    pub fn handle_answer(&mut self, id: RequestId, answer: Result<Vec<u8>, String>, now: Time) {
        let (Some(measures), Some(cycles)) = (&self.measures, &self.cycles) else {
            return;
        };
        if !measures.asked(id) {
            return;
        }
        let room = |node: &str| cycles.room_of(node);
        let reading = measures.read(answer, &room);
        self.answered(id, reading, now);
    }

    /// The same of an answer as it was logged.
    pub(crate) fn handle_answered(
        &mut self,
        id: RequestId,
        answer: Result<String, String>,
        now: Time,
    ) -> Result<(), String> {
        let reading = match answer {
            Ok(text) => Ok(Reading::of_text(&text).ok_or("an answer cannot be read")?),
            Err(why) => Err(why),
        };
        self.answered(id, reading, now);
        Ok(())
    }

    fn answered(&mut self, id: RequestId, reading: Result<Reading, String>, now: Time) {
        self.note(|| Record::Answered {
            now,
            id,
            answer: reading.as_ref().map(Reading::text).map_err(Clone::clone),
        });
        let Some(measures) = self.measures.as_mut().filter(|it| it.asked(id)) else {
            return;
        };
        let is_over = measures.answered(reading, now);
        if is_over {
            self.put_measured();
        }
        self.say_measures();
    }

    /// The next question, once there are nodes to ask about.
    pub(super) fn ask(&mut self, id: RequestId, now: Time) -> Option<Ask> {
        let is_synced = self.is_synced();
        let measures = self.measures.as_mut().filter(|_| is_synced)?;
        measures.poll(id, now)
    }

    /// When the next question is due, or given up.
    pub(super) fn measures_wake(&self) -> Option<Time> {
        let may_ask = self.is_synced() && !self.is_held_back;
        let measures = self.measures.as_ref().filter(|_| may_ask);
        measures.and_then(Measures::wake)
    }

    /// What is known of nodes is in the tables from now on.
    pub(super) fn put_measured(&mut self) {
        if let (Some(measures), Some(cycles)) = (&self.measures, &mut self.cycles) {
            cycles.measured(measures.rows());
        }
    }

    /// Whoever has not answered in time does not.
    pub(super) fn advance_measures(&mut self, now: Time) {
        if let Some(measures) = &mut self.measures {
            measures.advance(now);
        }
        self.say_measures();
    }

    fn say_measures(&mut self) {
        let notices = self.measures.as_mut().map(|it| it.take_notices());
        for text in notices.into_iter().flatten() {
            self.notice(Level::Warning, text);
        }
    }
}

/// Nobody is asked what no rule wants to know.
pub(super) fn measures_of(settings: &Settings) -> Option<Measures> {
    let engine = settings.engine.as_ref()?;
    let is_wanted = engine.engine.wants_measures();
    Measures::new(&engine.metrics).filter(|_| is_wanted)
}
