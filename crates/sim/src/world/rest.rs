//! Worlds that do not come to rest: who keeps them from it.

use super::{Event, World};

impl World {
    /// Says who still had something to do when the time was up.
    pub(super) fn tell_busy(&mut self) {
        let metrics = self.driver().metrics();
        let waiting = self.queue.values().filter(|event| !self.is_upkeep(event));
        let waiting: Vec<String> = waiting.map(Event::told).collect();
        let text = format!(
            "time is up: on the wire {waiting:?}, {} keys ready, {} writes open, the engine {}",
            metrics.keys_ready,
            metrics.writes_open,
            if self.driver().is_quiet() {
                "rests"
            } else {
                "may be busy"
            },
        );
        self.note(&text);
        let waiting = self.witness.waiting();
        waiting.iter().for_each(|text| self.note(text));
    }

    /// Says who does not let time pass.
    pub(super) fn tell_spin(&mut self) {
        let mut text = "time stands still:".to_owned();
        let mut wakes = self.replicas.iter().map(|it| it.wake(self.now));
        if wakes.any(|at| at.is_some_and(|at| at <= self.now)) {
            text.push_str(" a driver");
        }
        if self.fleet.poll_wake().is_some_and(|at| at <= self.now) {
            text.push_str(" the nodes");
        }
        for stream in &self.streams {
            if stream.until.is_some_and(|at| at <= self.now) {
                text.push_str(&format!(" a watch of {:?}", stream.owner));
            }
        }
        if self
            .queue
            .keys()
            .next()
            .is_some_and(|(at, _)| *at <= self.now)
        {
            text.push_str(" an event");
        }
        self.note(&text);
    }
}
