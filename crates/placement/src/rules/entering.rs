//! What plugins count of gangs that were let in, kept while others are.

use model::{GangId, Tables};

use super::State;
use crate::plugins::resourcequota::Unmade;

impl State {
    /// Gangs are about to be let in: what was found out when others were, before tasks got their places, may
    /// hold no more.
    pub(crate) fn begin_letting_in(&mut self) {
        self.capacity.begin_letting_in();
        self.resourcequota = Unmade::default();
    }

    /// A gang was let in.
    pub(crate) fn let_in(&mut self, tables: &Tables, gang: GangId) {
        self.capacity.let_in(tables, gang);
        self.resourcequota.let_in(tables, gang);
    }
}
