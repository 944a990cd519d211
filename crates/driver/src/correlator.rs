//! How often people are told of an object: what client-go's event correlator holds back, too.
//!
//! A step that is tried again tells the same again, and a gang that waits in a busy cluster has another
//! reason with each change of it. An event that was posted is not posted again while it may still be
//! read, and of each object a component tells so many at once and then one every few minutes.

use api::intent::{Action, Intent};
use api::time::Time;

use crate::recent::Recent;

/// As many events of one object by one component at once (client-go's burst).
const BURST: u32 = 25;
/// Then one in so many milliseconds (client-go's rate).
const EVERY_MS: i64 = 300_000;
/// An API server keeps an event for so long, unless it is told otherwise.
const KEPT_MS: i64 = 3_600_000;
/// Objects and events that are remembered (client-go's cache).
const REMEMBERED_MAX: usize = 4_096;

/// What was told, of whom.
#[derive(Debug)]
pub(crate) struct Correlator {
    /// When an event of this namespace and name was handed out.
    posted: Recent<(Box<str>, Box<str>), Option<Time>>,
    /// What is left to a component about an object of this uid.
    buckets: Recent<(Box<str>, Box<str>), Bucket>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: u32,
    /// Since when what is left has grown.
    since: Option<Time>,
}

impl Default for Bucket {
    fn default() -> Bucket {
        Bucket {
            left: BURST,
            since: None,
        }
    }
}

impl Bucket {
    fn takes(&mut self, now: Time) -> bool {
        let since = self.since.get_or_insert(now);
        let grown = now.micros().saturating_sub(since.micros()) / (EVERY_MS * 1_000);
        if grown != 0 {
            // A clock that was set back leaves what is left.
            let more = u32::try_from(grown).unwrap_or(0);
            self.left = self.left.saturating_add(more).min(BURST);
            *since = match grown > 0 {
                true => since.plus_ms(grown.saturating_mul(EVERY_MS)),
                false => now,
            };
        }
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_left
    }
}

impl Correlator {
    pub(crate) fn new() -> Correlator {
        Correlator {
            posted: Recent::new(REMEMBERED_MAX),
            buckets: Recent::new(REMEMBERED_MAX),
        }
    }

    /// Whether an event is to be posted now.
    pub(crate) fn takes(&mut self, event: &Intent, now: Time) -> bool {
        let Action::Create { body } = &event.action else {
            return true;
        };
        let name = (event.target.namespace.clone(), event.target.name.clone());
        let posted = self.posted.touch(&name);
        let is_kept = |at: &Time| *at <= now && at.plus_ms(KEPT_MS) > now;
        if posted.as_ref().is_some_and(is_kept) {
            return false;
        }
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().into();
        let about = (
            text(&body["source"]["component"]),
            text(&body["involvedObject"]["uid"]),
        );
        let is_taken = self.buckets.touch(&about).takes(now);
        if is_taken {
            *posted = Some(now);
        }
        is_taken
    }

    /// An event was not taken: it may be posted again.
    pub(crate) fn lost(&mut self, namespace: &str, name: &str) {
        self.posted.remove(&(namespace.into(), name.into()));
    }
}

#[cfg(test)]
mod tests {
    use api::events::{Involved, Note, Tone, intent};
    use api::kind::Kind;

    use super::*;

    fn event(uid: &str, message: &str, now: Time) -> Intent {
        let involved = Involved {
            kind: Kind::PodGroup,
            namespace: "ml",
            name: "training",
            uid,
            resource_version: "7",
        };
        let note = Note {
            tone: Tone::Warning,
            reason: "Unschedulable",
            message,
            component: "volcano",
        };
        intent(&involved, &note, now)
    }

    #[test]
    fn of_an_object_25_events_are_told_at_once_and_then_one_in_five_minutes() {
        let mut correlator = Correlator::new();
        let begins = Time(0);
        let mut told = |uid: &str, seconds: i64| {
            let now = begins.plus_ms(seconds * 1_000);
            let message = format!("{seconds} of 10,000 fit");
            u32::from(correlator.takes(&event(uid, &message, now), now))
        };
        let at_once: u32 = (0..100).map(|seconds| told("u1", seconds)).sum();
        assert_eq!(at_once, 25);
        let in_an_hour: u32 = (100..3_700).map(|seconds| told("u1", seconds)).sum();
        assert_eq!(in_an_hour, 12);
        assert_eq!(told("u2", 3_700), 1, "another object has its own");
    }

    #[test]
    fn an_event_is_posted_once_while_it_may_still_be_read() {
        let mut correlator = Correlator::new();
        let begins = Time(0);
        let same = event("u1", "no room", begins);
        let mut told = |seconds: i64| correlator.takes(&same, begins.plus_ms(seconds * 1_000));
        assert!(told(0));
        assert!(!told(1));
        assert!(!told(3_599));
        assert!(told(3_601));
        correlator.lost("ml", &same.target.name);
        assert!(correlator.takes(&same, begins.plus_ms(3_602_000)));
    }

    #[test]
    fn an_event_that_was_held_back_may_be_posted_when_there_is_room() {
        let mut correlator = Correlator::new();
        for count in 0..25 {
            let other = event("u1", &format!("{count} fit"), Time(0));
            assert!(correlator.takes(&other, Time(0)));
        }
        let same = event("u1", "no room", Time(0));
        assert!(!correlator.takes(&same, Time(0)));
        assert!(correlator.takes(&same, Time(0).plus_ms(300_000)));
        assert!(!correlator.takes(&same, Time(0).plus_ms(600_000)));
    }

    #[test]
    fn a_clock_that_was_set_back_silences_nobody() {
        let mut correlator = Correlator::new();
        let late = Time(0).plus_ms(36_000_000);
        let same = event("u1", "no room", late);
        assert!(correlator.takes(&same, late));
        assert!(correlator.takes(&same, Time(0)));
    }
}
