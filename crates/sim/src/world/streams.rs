//! Watches of the driver and the nodes: lines in order, each after its time on the wire.

use api::call::{self, Call, WatchLine};
use api::core::Pod;
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
            // They learn of the end after the last line, and ask for more then.
            (Owner::Fleet, _) => {
                let wait = self.later().micros() - self.now.micros();
                self.push(Time(at.micros() + wait), Event::WatchPods);
            }
        }
    }

    /// The nodes list pods and then watch them, from where they were when a watch has ended: what
    /// is said twice changes nothing, since their stages are level-triggered.
    pub(super) fn watch_pods(&mut self) {
        if self.fleet_seen == 0 {
            self.fleet_seen = self.server.revision();
            let at = self.later();
            for pod in self.objects(Kind::Pod) {
                let line = serde_json::value::to_raw_value(&pod).expect("JSON can be written");
                self.push(at, Event::Pod(WatchLine::Applied(line)));
            }
        }
        let revision = self.fleet_seen;
        let call = Call {
            method: "GET",
            target: format!(
                "{}?watch=true&resourceVersion={revision}",
                Kind::Pod.path("", "")
            ),
            content_type: "",
            body: Vec::new(),
        };
        if let Err(refusal) = self.open(Owner::Fleet, &call) {
            let text = format!("the nodes cannot watch pods: {}", refusal.message);
            self.transcript.note(self.settings.begins, self.now, &text);
            self.fleet_seen = 0;
            let at = self.later();
            self.push(at, Event::WatchPods);
        }
    }

    pub(super) fn fleet_line(&mut self, line: WatchLine) {
        match line {
            WatchLine::Applied(object) => match serde_json::from_str::<Pod>(object.get()) {
                Ok(pod) => {
                    self.fleet_seen = self.fleet_seen.max(pod.metadata.revision());
                    self.fleet.handle_pod(&pod, self.now);
                }
                Err(error) => self.transcript.note(
                    self.settings.begins,
                    self.now,
                    &format!("the nodes cannot read a pod: {error}"),
                ),
            },
            WatchLine::Deleted(object) => {
                if let Ok(pod) = serde_json::from_str::<Pod>(object.get()) {
                    self.fleet_seen = self.fleet_seen.max(pod.metadata.revision());
                    self.fleet.handle_deleted(&pod, self.now);
                }
            }
            WatchLine::Bookmark(_) => {}
            // What they saw is forgotten there; the stream's end is still to come.
            WatchLine::Failed(_) => self.fleet_seen = 0,
        }
    }
}
