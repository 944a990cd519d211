//! What streams have to ask: looked for only when one of them may have something.

use api::kind::Kind;
use api::time::Time;

use super::Driver;
use crate::reflector::{self, Reflector};
use crate::request::{Request, RequestId};

/// When streams are to be looked at, and whether all of them have said what there is. The loop asks for
/// both before each thing that it does.
#[derive(Debug)]
pub(super) struct Streaming {
    /// No stream has anything to ask before this instant.
    due_at: Option<Time>,
    /// Every watched kind was listed, which stays true.
    is_synced: bool,
}

impl Default for Streaming {
    fn default() -> Streaming {
        Streaming {
            due_at: Some(Time(i64::MIN)),
            is_synced: false,
        }
    }
}

impl Streaming {
    /// A stream may have something to ask.
    pub(super) fn stirred(&mut self) {
        self.due_at = Some(Time(i64::MIN));
    }
}

impl Driver {
    /// Whether every watched kind has been listed once; before that nothing is decided.
    pub fn is_synced(&self) -> bool {
        self.streaming.is_synced
            || self
                .reflectors
                .keys()
                .all(|kind| self.mirror.is_listed(*kind))
    }

    /// The kinds of which not everything has been listed yet; nothing is decided before it was.
    pub fn unread(&self) -> impl Iterator<Item = Kind> {
        let kinds = self.reflectors.keys().copied();
        kinds.filter(|kind| !self.mirror.is_listed(*kind))
    }

    /// The next list or watch.
    pub(super) fn next_stream(&mut self, id: RequestId, now: Time) -> Option<Request> {
        if self.streaming.due_at.is_none_or(|at| at > now) {
            return None;
        }
        let limits = reflector::Limits {
            page: self.settings.limits.list_page,
            watch_seconds: self.settings.limits.watch_seconds,
        };
        for (kind, reflector) in &mut self.reflectors {
            if let Some(request) = reflector.poll(&mut self.mirror, limits, id, now) {
                match request {
                    Request::Watch { .. } => self.metrics.watches += 1,
                    _ => self.metrics.list_pages += 1,
                }
                self.streams.insert(id, *kind);
                return Some(request);
            }
        }
        self.streaming = Streaming {
            due_at: self.reflectors.values().filter_map(Reflector::wake).min(),
            is_synced: self.is_synced(),
        };
        None
    }
}
