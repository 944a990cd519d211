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
        let mut begins = Begins::Not;
        if self.stream.is_none() {
            let call = Call {
                method: "GET",
                target: format!("{}?watch=true", kind.path("", "")),
                content_type: "",
                body: Vec::new(),
            };
            if let Answered::Stream(watch) = server.answer(&call, now) {
                self.stream = Some(watch);
                begins = Begins::Anew;
            }
        }
        let (lines, next) = server.lines(self.stream.as_mut()?, now);
        if next == Next::End {
            self.stream = None;
        }
        Some((begins, lines))
    }
}
