//! Binds that wait until an extender has taken the places of their gang (`allocateFunc`), gang by gang: all of
//! a gang's pods are bound, or none.

use std::collections::{BTreeMap, BTreeSet};

use api::time::Time;
use engine::{Extender, Verb};
use mirror::{Bind, Mirror};
use model::{GangId, Plan, Tables, WriteId};

use super::Cycles;
use crate::writes::Writes;

/// When places that an extender does not take are free again: upstream tries them with its next session.
const UNTAKEN_MS: i64 = 1_000;

/// Whom places are told, and whose places are not answered for yet.
#[derive(Debug, Default)]
pub(super) struct Consents {
    /// Nobody where an error changes nothing.
    asked: Option<Extender>,
    waiting: Vec<Waiting>,
}

/// Binds of one gang.
#[derive(Debug)]
struct Waiting {
    binds: Vec<Bind>,
    /// Those that are not answered for.
    open: BTreeSet<WriteId>,
}

/// What became of them.
#[derive(Debug)]
enum Consent {
    /// All places are taken.
    Given(Vec<Bind>),
    /// One is not, and why.
    Refused(Vec<Bind>, String),
}

impl Consents {
    pub(super) fn of(extender: Option<&Extender>) -> Consents {
        let asked = extender.filter(|it| it.asks(Verb::AllocateFunc) && !it.is_ignorable);
        Consents {
            asked: asked.cloned(),
            waiting: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Keeps back the binds of gangs that somebody is told of; the others may go.
    pub(super) fn keep_back(
        &mut self,
        binds: Vec<Bind>,
        tables: &Tables,
        plan: &Plan,
    ) -> Vec<Bind> {
        let Some(asked) = &self.asked else {
            return binds;
        };
        let told = plan.places.iter();
        let told = told.filter(|place| asked.manages(tables, tables.shape_of(place.task)));
        let told: BTreeSet<WriteId> = told.map(|place| place.write).collect();
        let mut by_gang: BTreeMap<Option<GangId>, Vec<Bind>> = BTreeMap::new();
        for bind in binds {
            by_gang.entry(bind.gang).or_default().push(bind);
        }
        let mut free = Vec::new();
        for binds in by_gang.into_values() {
            let open = binds.iter().map(|bind| bind.write);
            let open: BTreeSet<WriteId> = open.filter(|write| told.contains(write)).collect();
            match open.is_empty() {
                true => free.extend(binds),
                false => self.waiting.push(Waiting { binds, open }),
            }
        }
        free
    }

    /// Somebody has taken a place, or has not; what becomes of the gang's binds, once that is known.
    fn answered(&mut self, write: WriteId, said: Result<(), String>) -> Option<Consent> {
        let at = self
            .waiting
            .iter()
            .position(|it| it.open.contains(&write))?;
        if let Err(why) = said {
            return Some(Consent::Refused(self.waiting.remove(at).binds, why));
        }
        let open = &mut self.waiting[at].open;
        open.remove(&write);
        let is_given = open.is_empty();
        is_given.then(|| Consent::Given(self.waiting.remove(at).binds))
    }
}

impl Cycles {
    /// An extender has taken the place that a write stands for, or has not: then all of the gang's are taken
    /// back after a while, for it would be decided the same way again at once.
    pub(crate) fn consented(
        &mut self,
        (write, said): (WriteId, Result<(), String>),
        (mirror, writes): (&Mirror, &mut Writes),
        now: Time,
    ) {
        match self.consents.answered(write, said) {
            None => {}
            Some(Consent::Given(binds)) => self.bind_or_hold(binds, mirror, writes, now),
            Some(Consent::Refused(binds, why)) => {
                let refused = binds.into_iter().map(|bind| (bind, why.clone()));
                let refused: Vec<(Bind, String)> = refused.collect();
                self.tell_refused(&refused, mirror, writes, now);
                for (bind, _) in refused {
                    self.counts.places_refused += 1;
                    self.tables.unknown(bind.write);
                    self.refusals.insert((now.plus_ms(UNTAKEN_MS), bind.write));
                }
            }
        }
    }
}
