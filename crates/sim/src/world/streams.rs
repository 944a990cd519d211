//! Watches of the driver and the nodes: lines in order, each after its time on the wire.

use api::call::{self, Call, WatchLine};
use api::core::Pod;
use api::intent::Refusal;
use api::kind::Kind;
use api::time::Time;
use serde_json::value::RawValue;

use super::{Answer, Event, Owner, Stream, World};
use crate::fault::Fault;
use crate::wire::{Answered, Next, refusal_of};

/// How late a line is at most.
const LATE_MS: i64 = 60_000;
/// How long a line may be overtaken.
const OVERTAKEN_MS: i64 = 2_000;
/// How long lines are lost before the server says so.
const LOSSY_MS: i64 = 30_000;
/// How long the nodes wait before they ask again.
const AGAIN_MS: i64 = 500;

impl World {
    /// Opens a watch whose lines arrive no sooner than at a time, or says why there is none.
    pub(super) fn open(
        &mut self,
        owner: Owner,
        kind: Kind,
        call: &Call,
        not_before: Time,
    ) -> Result<(), Refusal> {
        match self.server.answer(call, self.now) {
            Answered::Stream(watch) => {
                self.streams.push(Stream {
                    owner,
                    kind,
                    watch,
                    not_before,
                    until: Some(not_before),
                    seen: 0,
                    last_at: not_before,
                    lossy_until: None,
                });
                Ok(())
            }
            Answered::Whole(response) => Err(refusal_of(&response)),
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
                if !self.send_line(stream, line) {
                    return false;
                }
            }
            match next {
                _ if stream.lossy_until.is_some() => self.lose_on(stream),
                Next::At(until) => {
                    stream.until = until;
                    true
                }
                Next::End => self.closed(stream, None),
            }
        });
        open.append(&mut self.streams);
        self.streams = open;
    }

    /// Puts a line on the wire; false where the watch ends with it.
    fn send_line(&mut self, stream: &mut Stream, line: WatchLine) -> bool {
        if stream.lossy_until.is_some() {
            return true;
        }
        let is_drivers = matches!(stream.owner, Owner::Driver(..));
        if is_drivers && self.strikes(Fault::LostEvent, "") {
            let ms = self.draw_ms(Fault::LostEvent, 0, LOSSY_MS);
            stream.lossy_until = Some(self.now.plus_ms(ms));
            return true;
        }
        stream.not_before = self.later().max(stream.not_before);
        let mut at = stream.not_before;
        if is_drivers && self.strikes(Fault::LateEvent, "") {
            let ms = self.draw_ms(Fault::LateEvent, 1, LATE_MS);
            // One that is late behind one that is late is no later than a late one alone.
            at = at.max(self.now.plus_ms(ms));
            stream.not_before = at;
        }
        // The order of commands is what they mean, and who takes one cannot know of an older one that
        // is on its way: no real server lets lines of one watch overtake each other.
        let may_be_overtaken = is_drivers && stream.kind != Kind::Command;
        if may_be_overtaken && self.strikes(Fault::ReorderedEvent, "") {
            let ms = self.draw_ms(Fault::ReorderedEvent, 1, OVERTAKEN_MS);
            at = at.plus_ms(ms);
        }
        stream.last_at = stream.last_at.max(at);
        if is_drivers
            && self.is_due(Fault::DuplicateEvent)
            && let Some(twin) = twin(&line)
        {
            self.struck(Fault::DuplicateEvent, "");
            self.deliver(stream.owner, at, Answer::Line(twin));
        }
        self.deliver(stream.owner, at, Answer::Line(line));
        if self.strikes(Fault::WatchDrop, "") {
            return self.closed(stream, None);
        }
        true
    }

    /// A watch that has lost lines says nothing more but that it has expired.
    fn lose_on(&mut self, stream: &mut Stream) -> bool {
        let until = stream.lossy_until.unwrap_or(self.now);
        if self.now < until {
            stream.until = Some(until);
            return true;
        }
        self.closed(stream, Some(super::serve::expired()))
    }

    /// Tells the owner that its watch has ended; always false, for `retain`.
    pub(super) fn closed(&mut self, stream: &Stream, why: Option<Refusal>) -> bool {
        let at = stream.last_at.max(stream.not_before);
        self.deliver(stream.owner, at, Answer::Closed(why));
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
        if self.now < self.down_until {
            self.push(self.down_until, Event::WatchPods);
            return;
        }
        // A line that overtook the list would be undone by it: who had ended would run again.
        let mut not_before = self.now;
        if self.fleet_seen == 0 {
            self.fleet_seen = self.server.revision();
            not_before = self.later();
            let response = self.read_as_node(&call::list(Kind::Pod, 0, ""));
            let page = call::page(&response.body).expect("the store writes lists");
            self.push(not_before, Event::PodList(page.items));
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
        if let Err(refusal) = self.open(Owner::Fleet, Kind::Pod, &call, not_before) {
            let text = format!("the nodes cannot watch pods: {}", refusal.message);
            self.transcript.note(self.settings.begins, self.now, &text);
            self.fleet_seen = 0;
            self.push(self.now.plus_ms(AGAIN_MS), Event::WatchPods);
        }
    }

    pub(super) fn fleet_list(&mut self, pods: &[Box<RawValue>]) {
        let pods: Vec<Pod> = pods
            .iter()
            .filter_map(|pod| self.fleet_reads(pod))
            .collect();
        self.fleet.handle_listed(&pods, self.now);
    }

    pub(super) fn fleet_line(&mut self, line: WatchLine) {
        match line {
            WatchLine::Applied(object) => {
                if let Some(pod) = self.fleet_reads(&object) {
                    self.fleet_seen = self.fleet_seen.max(pod.metadata.revision());
                    self.fleet.handle_pod(&pod, self.now);
                }
            }
            WatchLine::Deleted(object) => {
                if let Some(pod) = self.fleet_reads(&object) {
                    self.fleet_seen = self.fleet_seen.max(pod.metadata.revision());
                    self.fleet.handle_deleted(&pod, self.now);
                }
            }
            WatchLine::Bookmark(_) => {}
            // What they saw is forgotten there; the stream's end is still to come.
            WatchLine::Failed(_) => self.fleet_seen = 0,
        }
    }

    fn fleet_reads(&mut self, object: &RawValue) -> Option<Pod> {
        match serde_json::from_str(object.get()) {
            Ok(pod) => Some(pod),
            Err(error) => {
                self.note(&format!("the nodes cannot read a pod: {error}"));
                None
            }
        }
    }
}

fn twin(line: &WatchLine) -> Option<WatchLine> {
    Some(match line {
        WatchLine::Applied(object) => WatchLine::Applied(object.clone()),
        WatchLine::Deleted(object) => WatchLine::Deleted(object.clone()),
        WatchLine::Bookmark(_) | WatchLine::Failed(_) => return None,
    })
}
