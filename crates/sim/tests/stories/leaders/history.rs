//! What several processes did to one Lease and one object, as they themselves saw it, and whether it can
//! have happened in some order: the search of Wing and Gong (1993) with Lowe's memory of where it has
//! been (2017), over a register whose writers hold a lock.
//!
//! The register's rule is the fence: a write changes it only if it rests on what stands there, and never
//! once a later term has written.

use std::collections::BTreeSet;

/// Who holds a Lease that was let go.
pub const NOBODY: u32 = u32::MAX;
/// Places in the search beyond which a history counts as too wide to be searched.
const PLACES_MAX: usize = 200_000;

/// What somebody asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// The Lease is this life's, in this term: taken or renewed; or [`NOBODY`]'s from now on.
    Hold { holder: u32, term: i32 },
    /// The leader of this term writes the object, on the ground of this revision of it.
    Write { term: i32, basis: u64 },
    /// A user writes it, whatever stands there.
    Edit,
    /// Somebody reads it.
    Read,
}

/// What whoever asked was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It is done, or was read, at this revision.
    Done(u64),
    /// It rests on what does not stand there any more.
    Conflict,
    /// Nothing that says whether it was done; it may be done later.
    Nothing,
}

/// One deed; its times are places in the one order in which all was sent and told.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// The life of a process, or [`NOBODY`] for a user.
    pub who: u32,
    pub deed: Deed,
    pub sent: u64,
    /// `u64::MAX` where nothing was told.
    pub told_at: u64,
    pub told: Told,
}

/// The lock and the register.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    /// Its holder and term.
    lock: Option<(u32, i32)>,
    /// The last revision of the object that somebody was told of.
    known: u64,
    /// It has been written since, at a revision that nobody was told of.
    is_moved: bool,
    /// The last term that has written.
    writer: i32,
}

impl State {
    /// What it is after a deed that was done, at this revision where somebody was told; none where it
    /// cannot be done here.
    fn after(&self, op: &Op, revision: Option<u64>) -> Option<State> {
        let mut state = self.clone();
        match op.deed {
            Deed::Hold { holder, term } => {
                let may_hold = match self.lock {
                    None => term == 0,
                    Some((by, at)) => term == at + 1 || (term == at && by == op.who),
                };
                state.lock = may_hold.then_some((holder, term));
                return may_hold.then_some(state);
            }
            Deed::Write { term, basis } => {
                let has_term = self.lock.is_some_and(|(_, at)| term <= at);
                if !self.may_be(basis) || !has_term || term < self.writer {
                    return None;
                }
                state.known = basis;
                state.writer = term;
            }
            Deed::Edit => {}
            Deed::Read => {
                state.known = revision.filter(|it| self.may_be(*it))?;
                state.is_moved = false;
                return Some(state);
            }
        }
        state.is_moved = revision.is_none();
        if let Some(revision) = revision {
            if revision <= state.known {
                return None;
            }
            state.known = revision;
        }
        Some(state)
    }

    /// Whether the object may stand at this revision.
    fn may_be(&self, revision: u64) -> bool {
        match self.is_moved {
            true => revision > self.known,
            false => revision == self.known,
        }
    }

    /// What it is after a deed whose asker was told this.
    fn told(&self, op: &Op) -> Option<State> {
        match (op.told, op.deed) {
            (Told::Done(revision), _) => self.after(op, Some(revision)),
            (Told::Conflict, Deed::Write { basis, .. }) => {
                (self.is_moved || basis != self.known).then(|| self.clone())
            }
            // Of a Lease it is not known which version a candidate went by.
            (Told::Conflict, _) => Some(self.clone()),
            (Told::Nothing, _) => self.after(op, None),
        }
    }
}

/// A place in the search: everything before `open` has its place in the order already.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    open: usize,
    beyond: BTreeSet<usize>,
    /// Deeds that nobody was told of and that are taken to be done.
    guessed: BTreeSet<usize>,
    state: State,
}

impl Place {
    fn has(&self, at: usize) -> bool {
        at < self.open || self.beyond.contains(&at)
    }

    /// The place behind the deed `at`.
    fn behind(&self, at: usize, state: State) -> Place {
        let mut next = self.clone();
        next.beyond.insert(at);
        while next.beyond.remove(&next.open) {
            next.open += 1;
        }
        Place { state, ..next }
    }
}

/// Whether everything that was told can have happened, in an order that keeps what was over before
/// something else was sent; the object stood at `revision` first. Else the deed that has no place.
pub fn explain(ops: &[Op], revision: u64) -> Result<(), String> {
    let (mut told, guesses): (Vec<Op>, Vec<Op>) =
        ops.iter().partition(|op| op.told != Told::Nothing);
    told.sort_by_key(|op| op.sent);
    let begin = Place {
        open: 0,
        beyond: BTreeSet::new(),
        guessed: BTreeSet::new(),
        state: State {
            lock: None,
            known: revision,
            is_moved: false,
            writer: -1,
        },
    };
    let mut been = BTreeSet::from([begin.clone()]);
    let mut ahead = vec![begin];
    let mut furthest = 0;
    while let Some(place) = ahead.pop() {
        if place.open == told.len() {
            return Ok(());
        }
        furthest = furthest.max(place.open);
        for next in following(&place, &told, &guesses) {
            if been.insert(next.clone()) {
                ahead.push(next);
            }
        }
        if been.len() > PLACES_MAX {
            return Err("there are too many orders".to_owned());
        }
    }
    Err(format!("{:?} has no place", told[furthest]))
}

/// The places behind each deed that may be the next: one that was sent before any that is open was told.
fn following(place: &Place, told: &[Op], guesses: &[Op]) -> Vec<Place> {
    let open = || (place.open..told.len()).filter(|at| !place.has(*at));
    let until = open().map(|at| told[at].told_at).min().unwrap_or(u64::MAX);
    let mut next = Vec::new();
    for (at, op) in guesses.iter().enumerate() {
        if op.sent > until || place.guessed.contains(&at) {
            continue;
        }
        // What would change nothing may as well not have been done.
        let state = (place.state.told(op)).filter(|state| *state != place.state);
        if let Some(state) = state {
            let mut behind = Place {
                state,
                ..place.clone()
            };
            behind.guessed.insert(at);
            next.push(behind);
        }
    }
    // The last one is tried first: those that were told before those that are guessed.
    for at in open().take_while(|at| told[*at].sent < until) {
        let state = place.state.told(&told[at]);
        next.extend(state.map(|state| place.behind(at, state)));
    }
    next
}
