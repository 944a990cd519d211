//! Keeps the mirror's copy of one kind up to date: list in pages, then watch, resume where the
//! watch ended, list again where the server has forgotten.

use api::dialect::versions_text;
use api::intent::Refusal;
use api::kind::Kind;
use api::time::Time;
use mirror::{Change, Listing, Mirror, Problem};

use crate::backoff::{Backoff, Draws};
use crate::log::{StreamAt, StreamState};
use crate::read::{ReadLine, ReadPage};
use crate::request::{Request, RequestId};

/// A watch that lived this long without a line counts as healthy when it ends.
const HEALTHY_WATCH_MS: i64 = 1_000;
/// How often a list that is older than what was seen is refused before it is believed (a cluster
/// that was restored from a backup really has gone back).
const STALE_LISTS_MAX: u32 = 5;

/// Kinds that a cluster need not have: where the API does not serve one, it is as if there were no object of
/// it. All others are waited for.
const DISPENSABLE: &[Kind] = &[
    Kind::ColocationConfiguration,
    Kind::CsiDriver,
    Kind::CsiStorageCapacity,
    Kind::DeviceClass,
    Kind::DeviceTaintRule,
    Kind::HyperNode,
    Kind::JobFlow,
    Kind::JobTemplate,
    Kind::NativeGroup,
    Kind::NodeShard,
    Kind::Numatopology,
    Kind::ResourceClaim,
    Kind::ResourceSlice,
    Kind::VcCronJob,
];
/// Those that Kubernetes itself serves only where somebody has asked for it: that one is not there is no news.
const ASKED_FOR: &[Kind] = &[Kind::DeviceTaintRule, Kind::NativeGroup];
/// How long until it is looked again whether such a kind is served.
const ABSENT_MS: i64 = 60_000;

/// One kind's reflector.
#[derive(Debug)]
pub(crate) struct Reflector {
    kind: Kind,
    state: State,
    /// Where a watch resumes; 0 before the first list has ended.
    revision: u64,
    failures: u32,
    stale_lists: u32,
    draws: Draws,
}

#[derive(Debug)]
enum State {
    /// The next page of a list is wanted at that time.
    ListDue { at: Time, part: Option<Part> },
    /// A page is under way.
    Listing { id: RequestId, part: Part },
    /// A watch from `revision` is wanted at that time.
    WatchDue { at: Time },
    /// A watch is open since then.
    Watching { id: RequestId, since: Time },
}

/// A list, after its first page was asked for.
#[derive(Debug)]
struct Part {
    listing: Listing,
    continue_token: String,
    revision: u64,
}

/// What an answer did.
#[derive(Debug, Default)]
pub(crate) struct Reflected {
    pub(crate) changes: Vec<Change>,
    pub(crate) problems: Vec<Problem>,
    /// Words for the log when something went wrong.
    pub(crate) trouble: Option<String>,
    /// The server has forgotten where we were: everything is listed again.
    pub(crate) is_relist: bool,
}

/// The reflector's limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) page: u32,
    pub(crate) watch_seconds: u32,
}

impl Reflector {
    pub(crate) fn new(kind: Kind, seed: u64) -> Reflector {
        Reflector {
            kind,
            state: State::ListDue {
                at: Time(i64::MIN),
                part: None,
            },
            revision: 0,
            failures: 0,
            stale_lists: 0,
            draws: Draws::new(seed ^ (kind as u64).wrapping_mul(0x9e37_79b9)),
        }
    }

    /// Where it stands; `None` in the middle of a list.
    pub(crate) fn state(&self, mirror: &Mirror) -> Option<StreamState> {
        let at = match &self.state {
            State::ListDue { at, part: None } => StreamAt::ListDue(*at),
            State::WatchDue { at } => StreamAt::WatchDue(*at),
            State::Watching { id, since } => StreamAt::Watching(*id, *since),
            State::ListDue { part: Some(_), .. } | State::Listing { .. } => return None,
        };
        Some(StreamState {
            kind: self.kind,
            at,
            revision: self.revision,
            failures: self.failures,
            stale_lists: self.stale_lists,
            draws: self.draws.state(),
            seen: mirror.seen(self.kind),
            is_listed: mirror.is_listed(self.kind),
        })
    }

    /// Goes on from where it stood.
    pub(crate) fn resume(&mut self, state: &StreamState) {
        self.state = match state.at {
            StreamAt::ListDue(at) => State::ListDue { at, part: None },
            StreamAt::WatchDue(at) => State::WatchDue { at },
            StreamAt::Watching(id, since) => State::Watching { id, since },
        };
        self.revision = state.revision;
        self.failures = state.failures;
        self.stale_lists = state.stale_lists;
        self.draws = Draws::new(state.draws);
    }

    /// What is to be asked now, if anything. The caller tells the id under which it is asked.
    pub(crate) fn poll(
        &mut self,
        mirror: &mut Mirror,
        limits: Limits,
        id: RequestId,
        now: Time,
    ) -> Option<Request> {
        match &mut self.state {
            State::ListDue { at, part } if *at <= now => {
                let part = part.take().unwrap_or_else(|| Part {
                    listing: mirror.begin_list(self.kind),
                    continue_token: String::new(),
                    revision: 0,
                });
                let request = Request::List {
                    kind: self.kind,
                    limit: limits.page,
                    continue_token: part.continue_token.clone(),
                };
                self.state = State::Listing { id, part };
                Some(request)
            }
            State::WatchDue { at } if *at <= now => {
                self.state = State::Watching { id, since: now };
                Some(Request::Watch {
                    kind: self.kind,
                    revision: self.revision,
                    timeout_seconds: limits.watch_seconds,
                })
            }
            _ => None,
        }
    }

    /// When [`Reflector::poll`] will have something to ask.
    pub(crate) fn wake(&self) -> Option<Time> {
        match &self.state {
            State::ListDue { at, .. } | State::WatchDue { at } => Some(*at),
            State::Listing { .. } | State::Watching { .. } => None,
        }
    }

    /// Whatever it waits for is due now.
    pub(crate) fn hurry(&mut self, now: Time) {
        if let State::ListDue { at, .. } | State::WatchDue { at } = &mut self.state {
            *at = now.min(*at);
        }
    }

    pub(crate) fn page(
        &mut self,
        mirror: &mut Mirror,
        id: RequestId,
        answer: Result<ReadPage, Refusal>,
        now: Time,
    ) -> Reflected {
        let mut reflected = Reflected::default();
        let due = State::ListDue {
            at: now,
            part: None,
        };
        let mut part = match std::mem::replace(&mut self.state, due) {
            State::Listing { id: open, part } if open == id => part,
            other => {
                self.state = other;
                return reflected;
            }
        };
        let page = match answer {
            Ok(page) => page,
            Err(refusal) if self.is_absent(&refusal) => {
                self.do_without(mirror, now, &mut reflected);
                return reflected;
            }
            Err(refusal) => {
                // A refused later page cannot be resumed: its revision may have been compacted.
                self.list_again(&refusal, now, &mut reflected);
                return reflected;
            }
        };
        if self.is_stale(mirror, &page) {
            reflected.trouble = Some(format!(
                "list of {} is at revision {}, but {} was seen already",
                self.kind.row().plural,
                page.revision,
                mirror.seen(self.kind)
            ));
            self.fail(now, None, Next::List);
            return reflected;
        }
        part.revision = page.revision;
        for item in page.items {
            match mirror.list_read(&part.listing, item) {
                Ok(change) => reflected.changes.extend(change),
                Err(problem) => reflected.problems.push(problem),
            }
        }
        if page.continue_token.is_empty() {
            reflected
                .changes
                .extend(mirror.end_list(part.listing, part.revision));
            // Failures count on: a server that lists well and forgets at once must not be listed in
            // a circle. A watch that lives clears them.
            self.revision = part.revision;
            self.stale_lists = 0;
            self.state = State::WatchDue { at: now };
        } else {
            part.continue_token = page.continue_token;
            self.state = State::ListDue {
                at: now,
                part: Some(part),
            };
        }
        reflected
    }

    pub(crate) fn line(
        &mut self,
        mirror: &mut Mirror,
        id: RequestId,
        line: ReadLine,
        now: Time,
    ) -> Reflected {
        let mut reflected = Reflected::default();
        if !matches!(self.state, State::Watching { id: open, .. } if open == id) {
            return reflected;
        }
        let (read, is_there) = match line {
            ReadLine::Applied(read) => (read, true),
            ReadLine::Deleted(read) => (read, false),
            ReadLine::Bookmark(revision) => {
                mirror.bookmark(self.kind, revision);
                self.goes_well(mirror);
                return reflected;
            }
            ReadLine::Failed(refusal) => {
                self.watch_failed(&refusal, now, &mut reflected);
                return reflected;
            }
        };
        match read {
            Ok(object) if mirror.is_behind(&object) => {
                return self.doubt("a line came out of order", now);
            }
            Ok(object) if is_there => reflected.changes.extend(mirror.apply_object(object)),
            Ok(object) => reflected.changes.extend(mirror.delete_object(&object)),
            Err(problem) => reflected.problems.push(problem),
        }
        self.goes_well(mirror);
        reflected
    }

    fn goes_well(&mut self, mirror: &Mirror) {
        self.failures = 0;
        self.revision = self.revision.max(mirror.seen(self.kind));
    }

    /// A list or watch has ended without a further word, or could not be opened.
    pub(crate) fn closed(
        &mut self,
        id: RequestId,
        refusal: Option<Refusal>,
        now: Time,
    ) -> Reflected {
        let mut reflected = Reflected::default();
        let State::Watching { id: open, since } = self.state else {
            return reflected;
        };
        if open != id {
            return reflected;
        }
        match refusal {
            Some(refusal) => self.watch_failed(&refusal, now, &mut reflected),
            None if now >= since.plus_ms(HEALTHY_WATCH_MS) => {
                self.failures = 0;
                self.state = State::WatchDue { at: now };
            }
            // A server that closes at once must not be asked again at once.
            None => self.fail(now, None, Next::Watch),
        }
        reflected
    }

    /// What was seen is proved to lack something: everything is listed again, unless it is being.
    pub(crate) fn doubt(&mut self, why: &str, now: Time) -> Reflected {
        let mut reflected = Reflected::default();
        if matches!(self.state, State::Watching { .. } | State::WatchDue { .. }) {
            let plural = self.kind.row().plural;
            reflected.trouble = Some(format!("{plural} must be listed again: {why}"));
            reflected.is_relist = true;
            self.fail(now, None, Next::List);
        }
        reflected
    }

    /// Whether the API does not serve the kind, which need not be there.
    fn is_absent(&self, refusal: &Refusal) -> bool {
        refusal.code == 404 && DISPENSABLE.contains(&self.kind)
    }

    /// There is no object of the kind, and its definition may come any time.
    fn do_without(&mut self, mirror: &mut Mirror, now: Time, reflected: &mut Reflected) {
        let row = self.kind.row();
        let (plural, group, versions) = (row.plural, row.group, versions_text(self.kind));
        let is_missed = !mirror.is_listed(self.kind) && !ASKED_FOR.contains(&self.kind);
        let is_news = self.revision > 0 || is_missed;
        reflected.trouble = is_news.then(|| {
            format!("the API serves no {plural} of {group}/{versions}: it is as if there were none, and looked again every minute")
        });
        // Nothing was seen of it either: what somebody names of the kind may come back with it, and whoever
        // wants to know whether it has gone looks it up.
        let nothing = mirror.begin_list(self.kind);
        reflected.changes.extend(mirror.end_list(nothing, 0));
        self.revision = 0;
        self.failures = 0;
        self.state = State::ListDue {
            at: now.plus_ms(ABSENT_MS),
            part: None,
        };
    }

    fn is_stale(&mut self, mirror: &Mirror, page: &ReadPage) -> bool {
        if page.revision == 0 || page.revision >= mirror.seen(self.kind) {
            return false;
        }
        self.stale_lists += 1;
        self.stale_lists <= STALE_LISTS_MAX
    }

    fn watch_failed(&mut self, refusal: &Refusal, now: Time, reflected: &mut Reflected) {
        if refusal.code == 410 || self.is_absent(refusal) {
            self.list_again(refusal, now, reflected);
            return;
        }
        reflected.trouble = Some(format!(
            "watch of {} failed: {}",
            self.kind.row().plural,
            refusal.message
        ));
        self.fail(now, refusal.retry_after_seconds, Next::Watch);
    }

    fn list_again(&mut self, refusal: &Refusal, now: Time, reflected: &mut Reflected) {
        reflected.trouble = Some(format!(
            "{} must be listed again: {}",
            self.kind.row().plural,
            refusal.message
        ));
        reflected.is_relist = refusal.code == 410;
        self.fail(now, refusal.retry_after_seconds, Next::List);
    }

    fn fail(&mut self, now: Time, retry_after_seconds: Option<u32>, next: Next) {
        self.failures = self.failures.saturating_add(1);
        let draw = self.draws.next();
        let wanted = i64::from(retry_after_seconds.unwrap_or(0)) * 1_000;
        let delay = Backoff::REFLECTOR.jittered_ms(self.failures, draw);
        let at = now.plus_ms(delay.max(wanted));
        self.state = match next {
            Next::List => State::ListDue { at, part: None },
            Next::Watch => State::WatchDue { at },
        };
    }
}

enum Next {
    List,
    Watch,
}
