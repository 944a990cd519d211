//! How an imitation of somebody beside the drivers follows a kind: by a watch that begins with all there
//! is, and is begun anew when it has ended.

use api::call::{Call, WatchLine};
use api::kind::Kind;
use api::time::Time;
use store::Watch;

use crate::wire::{Answered, Next, Server};

/// Who follows; by default whoever has yet to look.
#[derive(Default)]
pub(crate) struct Follower {
    stream: Option<Box<Watch>>,
    seen: u64,
}

/// Whether lines begin with all there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    Anew,
    Not,
}

impl Follower {
    /// What the server says since the last look; `None` where nothing was written since, or it does not
    /// answer.
    pub(crate) fn look(
        &mut self,
        server: &mut Server,
        kind: Kind,
        now: Time,
    ) -> Option<(Begins, Vec<WatchLine>)> {
        if server.revision() == self.seen {
            return None;
        }
        self.seen = server.revision();
        let mut begins = self.begin(server, kind, now);
        let (mut lines, mut next) = server.lines(self.stream.as_mut()?, now);
        if next == Next::End {
            // What was written last may not be among its lines.
            self.stream = None;
            begins = self.begin(server, kind, now);
            (lines, next) = server.lines(self.stream.as_mut()?, now);
        }
        if next == Next::End {
            self.stream = None;
        }
        Some((begins, lines))
    }

    fn begin(&mut self, server: &mut Server, kind: Kind, now: Time) -> Begins {
        if self.stream.is_some() {
            return Begins::Not;
        }
        let call = Call {
            method: "GET",
            target: format!("{}?watch=true", kind.path("", "")),
            content_type: "",
            body: Vec::new(),
        };
        match server.answer(&call, now) {
            Answered::Stream(watch) => {
                self.stream = Some(watch);
                Begins::Anew
            }
            Answered::Whole(_) => Begins::Not,
        }
    }
}
