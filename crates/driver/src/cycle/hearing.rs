//! Who listens to a cycle: the chronicle, and who tells of a log that is played again.

use api::core::Pod;
use api::intent::ObjectKey;
use api::kind::Kind;
use api::time::Time;
use engine::{Listener, Milestone, Outcome};
use mirror::{Change, Mirror};
use model::{GangId, Key, Plan};

use super::Cycles;
use super::verdicts::Verdicts;
use crate::census::{self, Figures};
use crate::chronicle::Chronicle;
use crate::timings::Timings;

struct Hearing<'a> {
    chronicle: &'a mut Chronicle,
    verdicts: Option<&'a mut Verdicts>,
}

impl Listener for Hearing<'_> {
    fn passed(&mut self, milestone: Milestone) {
        self.chronicle.passed(milestone);
    }

    fn found(&mut self, gang: GangId, outcome: Option<&Outcome>) {
        self.chronicle.found(gang, outcome);
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.hear(gang, outcome);
        }
    }
}

impl Cycles {
    /// Has the engine decide, and takes down how that went.
    pub(super) fn decide(&mut self, mirror: &Mirror, now: Time) -> Plan {
        let at = model::Time::from_micros(now.micros());
        let began = (self.stopwatch)();
        let mut hearing = Hearing {
            chronicle: &mut self.chronicle,
            verdicts: self.verdicts.as_mut(),
        };
        let plan = (self.engine).cycle_heard(&mut self.tables, at, &mut hearing);
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.tell(mirror, &self.tables, &plan);
        }
        let took = (self.stopwatch)().saturating_sub(began);
        self.chronicle.planned((&self.tables, &plan), took, now);
        self.counts.cycle_micros += took;
        self.counts.cycles += 1;
        self.counts.places += plan.places.len() as u64;
        plan
    }

    /// The tables learn of a change, and the chronicle of what it means: gangs that go are forgotten, pods
    /// that come are seen.
    pub(super) fn feed(&mut self, mirror: &Mirror, change: &Change, now: Time) {
        let key = || Key::new(&*change.key.namespace, &*change.key.name);
        if change.kind() == Kind::PodGroup && change.after.is_none() {
            let gang = self.tables.gang_keyed(&key());
            gang.into_iter().for_each(|gang| self.chronicle.gone(gang));
        }
        self.rows.feed(mirror, change, &mut self.tables);
        let pod = change.after::<Pod>().filter(|_| change.before.is_none());
        if pod.is_none_or(|pod| !pod.spec.node_name.is_empty()) {
            return;
        }
        let task = self.tables.task_keyed(&key());
        let task = task.and_then(|id| self.tables.find_task(id));
        if let Some(task) = task.filter(|task| task.gang.is_some()) {
            self.chronicle.watched(Time(task.created.micros), now);
        }
    }

    /// Tells from now on what cycles find for the gangs of this object.
    pub(crate) fn explain(&mut self, key: ObjectKey) {
        self.verdicts = Some(Verdicts::of(key));
    }

    /// What was found for them since the last call.
    pub(crate) fn take_verdicts(&mut self) -> Vec<String> {
        let verdicts = self.verdicts.as_mut();
        verdicts.map_or_else(Vec::new, Verdicts::take)
    }

    pub(crate) fn timings(&self) -> &Timings {
        self.chronicle.timings()
    }

    /// What there is to say of cycles and of the tables; these are as before when it returns.
    pub(crate) fn figures(&mut self, now: Time) -> Figures {
        let at = model::Time::from_micros(now.micros());
        let (engine, chronicle) = (&self.engine, &self.chronicle);
        self.tables.aside(|tables| {
            tables.settle();
            census::figures((tables, engine, chronicle), at)
        })
    }

    /// What was counted so far is kept over a new beginning.
    pub(crate) fn continue_from(&mut self, before: Cycles) {
        self.chronicle.continue_from(before.chronicle);
    }
}
