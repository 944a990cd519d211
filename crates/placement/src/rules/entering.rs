//! Who is let in beside what plugins say, and what they count of gangs that were let in, kept while others are.

use model::{GangId, Kind, Reason, Tables};

use super::{Rules, State};
use crate::plugin::{Plugin, View};
use crate::settings::Difference;

/// Gangs of so many tasks are let in without counting pod slots.
const MEMBERS_UNASKED_MAX: i64 = 5_000;

impl Rules {
    /// Why the gang is not let in whatever plugins say: all pod slots of the cluster, times the factor of
    /// `overcommit`, are fewer than the tasks that it starts with.
    ///
    /// Upstream asks its plugins only. The pods of such a gang would be made in vain, a million of them if
    /// somebody says so. Few enough are made, so that the reason tells which of them finds no room; and of a
    /// gang that says nothing about its minimum others make the pods.
    pub(crate) fn beyond_all_slots(&self, view: View<'_>, id: GangId) -> Option<Reason> {
        let spec = &view.tables.gang(id).spec;
        let members = i64::from(spec.min_member);
        if members <= MEMBERS_UNASKED_MAX
            || spec.min_resources.is_none()
            || self.is_as_upstream(Difference::BoundedGangs)
        {
            return None;
        }
        // Where all nodes are in other shards that is the reason, and no gang is too large.
        if view.tables.are_all_left() {
            return None;
        }
        let slots = view.tables.total().get(Kind::PODS);
        (members > self.config.overcommit.times(slots)).then(|| Reason::Overcommitted {
            short: vec![view.tables.kinds().name(Kind::PODS).clone()],
            is_beyond_all: false,
        })
    }

    /// Gangs are about to be let in: what was found out when others were, before tasks got their places, may
    /// hold no more.
    pub(crate) fn begin_letting_in(&self, state: &mut State) {
        let said = self.flat.iter().filter_map(|p| p.begin_letting_in);
        said.for_each(|f| f(state));
    }

    /// A gang was let in.
    pub(crate) fn let_in(&self, tables: &Tables, state: &mut State, gang: GangId) {
        for (at, row) in self.flat.iter().enumerate() {
            // One that stands in two tiers has one state, in which the gang counts once.
            let is_said = |before: &Plugin| before.let_in.is_some() && before.name == row.name;
            if let Some(let_in) = row.let_in
                && !self.flat[..at].iter().any(is_said)
            {
                let_in(tables, state, gang);
            }
        }
    }
}
