//! One decision on a trial that is rewound.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    Change, GangId, GangPhase, NoFit, NodeId, Phase, Place, Reason, Tables, TaskId, Time, Trial,
};
use placement::{Cycle, Indexes, Outcome, Regard, Tried};

use super::{Explanation, UNPLANNED};
use crate::engine::Engine;

/// What a look found.
pub(super) struct Looked {
    pub(super) reason: Option<Arc<Reason>>,
    pub(super) places: Vec<Place>,
    /// Where its tasks are kept room.
    pub(super) promised: Vec<(TaskId, NodeId)>,
    /// Whether enough of its tasks have a node, and more of them than get one as it is.
    pub(super) starts: bool,
    /// Whether enough of its tasks have a node in any case, or get one as it is.
    pub(super) is_whole: bool,
    /// Whether it is let in, and its tasks have still to be made.
    pub(super) enters: bool,
    /// Whether too many come first for the decision to be made for a question's sake.
    is_crowded: bool,
}

impl Looked {
    pub(super) fn is_admitted(&self) -> bool {
        self.starts || self.enters
    }
}

/// Looks at the gang as if nobody else waited.
pub(super) fn look(asked: &mut Asked<'_>, tables: &mut Tables) -> Looked {
    let gangs = BTreeSet::from([asked.gang]);
    decide(asked, tables, gangs)
}

/// Looks at all gangs at which the engine would look now.
pub(super) fn cycle(asked: &mut Asked<'_>, tables: &mut Tables) -> Looked {
    tables.settle();
    let gangs = asked.engine.would_look_at(tables, asked.now);
    decide(asked, tables, gangs)
}

/// The most gangs that may come first in the queue where so many are at the table that deciding about
/// all of them would hold up the engine.
const AHEAD_MAX: usize = 16;
/// So many.
const CROWD: usize = 256;

/// The same, except that far back in a crowd nothing is proved: it finds that the gang waits.
fn among_others(asked: &mut Asked<'_>, tables: &mut Tables) -> Looked {
    tables.settle();
    let gangs = asked.engine.would_look_at(tables, asked.now);
    among(asked, tables, gangs)
}

fn among(asked: &mut Asked<'_>, tables: &mut Tables, gangs: BTreeSet<GangId>) -> Looked {
    tables.settle();
    let Asked {
        engine, gang, now, ..
    } = *asked;
    let is_crowded = gangs.len() > CROWD;
    let most = AHEAD_MAX + 1;
    if is_crowded && engine.rules().ahead_of(tables, gang, &gangs, most, now) == most {
        return Looked {
            reason: None,
            places: Vec::new(),
            promised: Vec::new(),
            starts: false,
            is_whole: false,
            enters: false,
            is_crowded: true,
        };
    }
    decide(asked, tables, gangs)
}

fn decide(asked: &mut Asked<'_>, tables: &mut Tables, gangs: BTreeSet<GangId>) -> Looked {
    tables.settle();
    let Asked {
        engine, gang, now, ..
    } = *asked;
    let phase = tables.gang(gang).phase();
    let waiting: Vec<_> = tables.gang(gang).tasks.iter().copied().collect();
    let mut trial = Trial::begin(tables);
    let gangs = quota::admit(&mut trial, gangs);
    let tried = Tried {
        gang,
        is_told: asked.is_told,
    };
    let (mut outcomes, _) = Cycle::run_for(
        &mut trial,
        engine.rules(),
        &mut asked.indexes,
        gangs,
        (tried, now),
    );
    let outcome = outcomes.remove(&gang);
    let after = trial.tables();
    let placed = |task: &TaskId| {
        let row = after.task(*task);
        let node = row.node.filter(|_| row.phase == Phase::Allocated)?;
        Some(Place {
            task: *task,
            node,
            write: UNPLANNED,
        })
    };
    let kept = |task: &TaskId| {
        let row = after.task(*task);
        let node = row.node.filter(|_| row.phase == Phase::Pipelined)?;
        Some((*task, node))
    };
    let promised: Vec<(TaskId, NodeId)> = waiting.iter().filter_map(kept).collect();
    let places: Vec<Place> = waiting.iter().filter_map(placed).collect();
    let has_enough = after.ready(gang) >= after.gang(gang).spec.min_member;
    let ends_whole = matches!(outcome, Some(Outcome::Whole | Outcome::Extras(..)));
    Looked {
        reason: outcome.as_ref().and_then(Outcome::reason).cloned(),
        starts: ends_whole && has_enough && places.len() > asked.places_now,
        is_whole: has_enough && (ends_whole || phase == GangPhase::Running),
        enters: phase == GangPhase::Pending && after.gang(gang).phase() != GangPhase::Pending,
        is_crowded: false,
        places,
        promised,
    }
}

/// What is asked, and what is kept from one decision of it to the next.
pub(super) struct Asked<'a> {
    pub(super) engine: &'a Engine,
    pub(super) gang: GangId,
    pub(super) now: Time,
    /// How many places it gets as it is: one that has started is helped by what brings it more.
    places_now: usize,
    /// Whether it has started, or does so as it is.
    is_whole: bool,
    /// Where its tasks are kept room, by the decision that is explained: the tables may not know of it yet.
    pub(super) promised: Vec<(TaskId, NodeId)>,
    /// Whether it is looked at what nodes say; whether a remedy helps is known without that.
    is_told: bool,
    /// They learn of what is supposed and put back as of any other change of a node.
    indexes: Indexes,
}

impl<'a> Asked<'a> {
    /// It goes on from what the engine knows of nodes.
    pub(super) fn new(engine: &'a Engine, tables: &Tables, gang: GangId, now: Time) -> Asked<'a> {
        Asked {
            indexes: engine.indexes_for(tables, gang, now),
            ..Asked::anew(engine, gang, now)
        }
    }

    fn anew(engine: &'a Engine, gang: GangId, now: Time) -> Asked<'a> {
        Asked {
            engine,
            gang,
            now,
            places_now: 0,
            is_whole: false,
            promised: Vec::new(),
            is_told: true,
            indexes: Indexes::default(),
        }
    }

    /// The nodes that would do for the task if nobody held anything, there or in their groups.
    pub(super) fn able(&mut self, tables: &Tables, task: TaskId) -> Vec<NodeId> {
        let (rules, now) = (self.engine.rules(), self.now);
        let known = self.indexes.able(rules, tables, task, now);
        known.unwrap_or_else(|| {
            let regard = Regard::of(rules, tables, task, now);
            let ids = tables.nodes().map(|(id, _)| id);
            ids.filter(|id| regard.stance(*id).is_none()).collect()
        })
    }

    /// Why it waits is known from now on, and how many places it gets; it is only asked what brings more.
    pub(super) fn hush(&mut self, looked: &Explanation) {
        self.is_told = false;
        self.places_now = looked.places.len();
        self.is_whole = looked.is_whole;
    }

    /// Whether, of another engine or at another time.
    fn whether<'b>(&self, engine: &'b Engine, now: Time) -> Asked<'b> {
        Asked {
            is_told: false,
            places_now: self.places_now,
            is_whole: self.is_whole,
            ..Asked::anew(engine, self.gang, now)
        }
    }
}

/// What is being explained, and what every proof needs.
pub(super) struct Case<'a, 'e> {
    pub(super) asked: &'a mut Asked<'e>,
    pub(super) tables: &'a mut Tables,
    /// The nodes that would do if nobody held anything.
    pub(super) able: Vec<NodeId>,
    /// How many more decisions may be tried.
    pub(super) looks_left: u32,
    /// How often it may still be tried what a node would take if some tasks were over.
    pub(super) tries_left: u32,
    /// Whether something would help but for the crowd that comes first.
    pub(super) is_crowded: bool,
}

/// The most decisions that one explanation tries.
pub(super) const LOOKS_MAX: u32 = 160;
/// The most times that it is tried what a node would take.
pub(super) const TRIES_MAX: u32 = 2_048;

impl Case<'_, '_> {
    /// How many more tasks must find a place for a remedy to help: one that has started is helped by the
    /// next, whatever it waits for.
    pub(super) fn missing(&self, no_fit: &NoFit) -> i64 {
        match self.asked.is_whole {
            true => 1,
            false => i64::from(no_fit.wanted.saturating_sub(no_fit.fits)),
        }
    }

    /// Whether the gang is admitted with these changes if nobody else is at the table.
    pub(super) fn helps(&mut self, changes: &[Change]) -> bool {
        self.tried(changes, look)
            .is_some_and(|looked| looked.is_admitted())
    }

    /// Whether the gang is admitted with these changes, with everybody else whom they wake at the
    /// table. Says whether it only enters.
    pub(super) fn proves(&mut self, changes: &[Change]) -> Option<bool> {
        // Looking at it alone is cheap, and mostly refuses what the whole cycle would.
        if !self.helps(changes) {
            return None;
        }
        let looked = self.tried(changes, among_others)?;
        self.is_crowded |= looked.is_crowded;
        looked.is_admitted().then_some(!looked.starts)
    }

    /// The same, with nothing changed but the time. Rules that look at the clock judge nodes anew.
    pub(super) fn proves_at(&mut self, at: Time) -> Option<bool> {
        self.looks_left = self.looks_left.checked_sub(2)?;
        let engine = self.asked.engine;
        let before = engine.judged_at().unwrap_or(self.asked.now);
        let turned = engine.rules().turned(self.tables, before, at);
        let supposed = self.tables.suppose_judged(&turned);
        let mut asked = self.asked.whether(engine, at);
        let looked = look(&mut asked, self.tables);
        let looked = match looked.is_admitted() {
            true => among_others(&mut asked, self.tables),
            false => looked,
        };
        self.tables.put_back(supposed);
        self.is_crowded |= looked.is_crowded;
        looked.is_admitted().then_some(!looked.starts)
    }

    /// Whether another engine would admit the gang if nobody else was at the table.
    pub(super) fn helps_by(&mut self, engine: &Engine) -> bool {
        let Some(left) = self.looks_left.checked_sub(1) else {
            return false;
        };
        self.looks_left = left;
        let mut asked = self.asked.whether(engine, self.asked.now);
        look(&mut asked, self.tables).is_admitted()
    }

    /// Whether another engine would admit the gang with everybody at the table, as one that begins.
    pub(super) fn proves_by(&mut self, engine: &Engine) -> Option<bool> {
        self.looks_left = self.looks_left.checked_sub(1)?;
        let mut asked = self.asked.whether(engine, self.asked.now);
        let everybody = engine.everybody(self.tables);
        let looked = among(&mut asked, self.tables, everybody);
        self.is_crowded |= looked.is_crowded;
        looked.is_admitted().then_some(!looked.starts)
    }

    fn tried(
        &mut self,
        changes: &[Change],
        decide: fn(&mut Asked<'_>, &mut Tables) -> Looked,
    ) -> Option<Looked> {
        self.looks_left = self.looks_left.checked_sub(1)?;
        let supposed = self.tables.suppose(changes)?;
        let looked = decide(self.asked, self.tables);
        self.tables.put_back(supposed);
        Some(looked)
    }
}
