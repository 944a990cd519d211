//! What plugins count of gangs that were let in, kept while others are.

use model::{GangId, Tables};

use super::{Rules, State};
use crate::plugin::Plugin;

impl Rules {
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
