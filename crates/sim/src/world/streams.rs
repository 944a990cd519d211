//! Watches of the driver and the nodes: lines in order, each after its time on the wire.

use api::call::{self, Call, WatchLine};
use api::intent::Refusal;
use api::kind::Kind;
use api::time::Time;

use super::{Answer, Event, Owner, Stream, World};
use crate::wire::{Answered, Next};

impl World {
    pub(super) fn open(&mut self, owner: Owner, call: &Call) -> Result<(), Refusal> {
        match self.server.answer(call, self.now) {
            Answered::Stream(watch) => {
                let not_before = self.now;
                self.streams.push(Stream {
                    owner,
                    watch,
                    not_before,
                    until: Some(not_before),
                    seen: 0,
                });
                Ok(())
            }
            Answered::Whole(response) => Err(call::refusal(
                response.code,
                response.retry_after_seconds,
                &response.body,
            )),
        }
    }

    pub(super) fn poll_streams(&mut self) {
        let revision = self.server.revision();
        let mut open = std::mem::take(&mut self.streams);
        open.retain_mut(|stream| {
            let is_due = stream.until.is_some_and(|until| until <= self.now);
            if stream.seen == revision && !is_due {
                return true;
            }
            stream.seen = revision;
            let (lines, next) = self.server.lines(&mut stream.watch, self.now);
            for line in lines {
                stream.not_before = self.later().max(stream.not_before);
                self.deliver(stream.owner, stream.not_before, Answer::Line(line));
                if self.strikes(self.settings.faults.watch_drop_once_in) {
                    return self.closed(stream);
                }
            }
            match next {
                Next::At(until) => {
                    stream.until = until;
                    true
                }
                Next::End => self.closed(stream),
            }
        });
        open.append(&mut self.streams);
        self.streams = open;
    }

    /// Tells the owner that its watch has ended; always false, for `retain`.
    fn closed(&mut self, stream: &Stream) -> bool {
        self.deliver(stream.owner, stream.not_before, Answer::Closed(None));
        false
    }

    fn deliver(&mut self, owner: Owner, at: Time, answer: Answer) {
        match (owner, answer) {
            (Owner::Driver(life, id), answer) => self.push(at, Event::Answer(life, id, answer)),
            (Owner::Fleet, Answer::Line(line)) => self.push(at, Event::Pod(line)),
            (Owner::Fleet, _) => self.watch_pods(),
        }
    }

    /// The nodes watch from the first revision on, again and again: their stages are level-triggered.
    pub(super) fn watch_pods(&mut self) {
        let call = Call {
            method: "GET",
            target: format!("{}?watch=true", Kind::Pod.path("", "")),
            content_type: "",
            body: Vec::new(),
        };
        if let Err(refusal) = self.open(Owner::Fleet, &call) {
            let text = format!("the nodes cannot watch pods: {}", refusal.message);
            self.transcript.note(self.settings.begins, self.now, &text);
        }
    }

    pub(super) fn fleet_line(&mut self, line: WatchLine) {
        match line {
            WatchLine::Applied(object) => match serde_json::from_str(object.get()) {
                Ok(pod) => self.fleet.handle_pod(&pod, self.now),
                Err(error) => self.transcript.note(
                    self.settings.begins,
                    self.now,
                    &format!("the nodes cannot read a pod: {error}"),
                ),
            },
            WatchLine::Deleted(object) => {
                if let Ok(pod) = serde_json::from_str(object.get()) {
                    self.fleet.handle_deleted(&pod, self.now);
                }
            }
            WatchLine::Bookmark(_) => {}
            WatchLine::Failed(_) => self.watch_pods(),
        }
    }
}
