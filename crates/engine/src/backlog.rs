//! Who waits for what, so that only those are looked at whom a change may help.

use std::collections::{BTreeMap, BTreeSet};

use model::{GangId, News, ShapeId, Tables, Time, VolumeNeed};
use placement::{Difference, Rules, may_fit};

/// Gangs that wait, by what would wake them. Gangs that wait for their own objects are not here: a
/// change of those is news of the gang itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backlog {
    by_shape: BTreeMap<ShapeId, BTreeSet<GangId>>,
    shapes: BTreeMap<GangId, BTreeSet<ShapeId>>,
    promised: BTreeSet<GangId>,
    shares: BTreeSet<GangId>,
    deserts: BTreeSet<GangId>,
    victims: BTreeSet<GangId>,
    beside: BTreeSet<GangId>,
    kept_away: BTreeSet<GangId>,
}

impl Backlog {
    pub(crate) fn wait_for_room(&mut self, gang: GangId, shapes: &BTreeSet<ShapeId>) {
        for shape in shapes {
            self.by_shape.entry(*shape).or_default().insert(gang);
        }
        self.shapes.insert(gang, shapes.clone());
    }

    pub(crate) fn wait_for_promise(&mut self, gang: GangId) {
        self.promised.insert(gang);
    }

    pub(crate) fn wait_for_shares(&mut self, gang: GangId) {
        self.shares.insert(gang);
    }

    /// Waits for what its queue deserves, which grows also with what is asked for.
    pub(crate) fn wait_for_deserts(&mut self, gang: GangId) {
        self.shares.insert(gang);
        self.deserts.insert(gang);
    }

    /// Waits for somebody whose room it may take.
    pub(crate) fn wait_for_victims(&mut self, gang: GangId) {
        self.victims.insert(gang);
    }

    /// Is looked at whenever anybody is: it is kept room which a more important gang may take.
    pub(crate) fn wait_beside_others(&mut self, gang: GangId) {
        self.beside.insert(gang);
    }

    /// Waits also for others to go that keep it away from them, wherever they are.
    pub(crate) fn wait_for_parting(&mut self, gang: GangId) {
        self.kept_away.insert(gang);
    }

    /// Those that are looked at whenever anybody is: of each queue one at most.
    pub(crate) fn beside_others(&self) -> impl Iterator<Item = GangId> {
        self.beside.iter().copied()
    }

    pub(crate) fn forget(&mut self, gang: GangId) {
        self.promised.remove(&gang);
        self.shares.remove(&gang);
        self.deserts.remove(&gang);
        self.victims.remove(&gang);
        self.beside.remove(&gang);
        self.kept_away.remove(&gang);
        for shape in self.shapes.remove(&gang).unwrap_or_default() {
            if let Some(gangs) = self.by_shape.get_mut(&shape) {
                gangs.remove(&gang);
                if gangs.is_empty() {
                    self.by_shape.remove(&shape);
                }
            }
        }
    }

    /// The gangs that the news may help.
    pub(crate) fn woken(
        &self,
        rules: &Rules,
        tables: &Tables,
        news: &News,
        now: Time,
    ) -> BTreeSet<GangId> {
        let mut woken = BTreeSet::new();
        if news.shares || rules.is_as_upstream(Difference::QueueErrorsApart) {
            woken.extend(self.shares.iter().copied());
        }
        if news.requests {
            woken.extend(self.deserts.iter().copied());
        }
        if news.holders || news.shares {
            woken.extend(self.victims.iter().copied());
        }
        if news.parted {
            woken.extend(self.kept_away.iter().copied());
        }
        let some_left = !news.freed.is_empty();
        // Room is left, or a queue may have less than what somebody below it is promised.
        if some_left || news.shares {
            woken.extend(self.promised.iter().copied());
        }
        for (shape, gangs) in &self.by_shape {
            // A shape id that was given away wakes its gangs, which costs a look and no more.
            let helped = match tables.find_shape(*shape) {
                None => true,
                // Pods elsewhere may have come or gone, which is news of their gangs.
                Some(row) if row.spec.is_coupled() => true,
                // With the last who went to its claim's node the claim may go anywhere again, and one
                // that is for one pod at a time is free.
                Some(row) if some_left && row.spec.volumes.iter().any(goes_with_others) => true,
                Some(_) => news
                    .freed
                    .iter()
                    .any(|node| may_fit(rules, tables, *shape, *node, now)),
            };
            if helped {
                woken.extend(gangs.iter().copied());
            }
        }
        woken
    }
}

fn goes_with_others(volume: &VolumeNeed) -> bool {
    matches!(volume, VolumeNeed::Alone | VolumeNeed::FirstConsumer { .. })
}
