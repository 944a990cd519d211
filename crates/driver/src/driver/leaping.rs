//! What becomes of the loop when somebody sets the clock.
//!
//! Waits are counted by the clock that everybody in the cluster shows, since most of them end at a
//! time that stands in an object. When that clock is set, what it showed at the beginning of a wait
//! says nothing any more: set back by ten minutes, it would make a watch that broke a moment ago wait
//! ten minutes to be opened again. So whoever waits looks again at once, and waits anew if it must.

use api::time::Time;

use super::Driver;
use crate::log::Record;

impl Driver {
    /// The clock was set, forward or back: what it shows has nothing to do with what has passed. To
    /// be told before anything else is handed in or polled.
    pub fn handle_leap(&mut self, now: Time) {
        self.note(|| Record::Leapt { now });
        if let Some(election) = &mut self.election {
            election.leapt(now);
        }
        for reflector in self.reflectors.values_mut() {
            reflector.hurry(now);
        }
        self.streaming.stirred();
        self.work.hurry(now);
        self.writes.hurry(now);
        self.asking.hurry(now);
        if let Some(cycles) = &mut self.cycles {
            cycles.hurry(now);
        }
        self.advance(now);
    }
}
