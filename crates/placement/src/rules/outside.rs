//! The rules that ask somebody outside.

use model::{GangId, Giving, Query, Question, Reason, Tables, Time};

use super::{Rules, State};
use crate::plugin::{Asks, View};
use crate::plugins::extender::Extender;

impl Rules {
    /// Whom the extender's rules ask, if they do.
    pub fn extender(&self) -> Option<&Extender> {
        let extender = self.config.extender.as_ref();
        extender.filter(|_| self.flat.iter().any(|row| row.asks.is_some()))
    }

    /// What is to be asked for gangs that wait, each for its reason.
    pub fn asks<'a>(
        &self,
        tables: &Tables,
        waiting: impl IntoIterator<Item = (GangId, &'a Reason)>,
        now: Time,
    ) -> Vec<(Query, Question)> {
        if self.extender().is_none() {
            return Vec::new();
        }
        let state = State::at(now);
        let view = self.view(tables, &state);
        let mut asks = Asks::default();
        for (gang, reason) in waiting {
            for rule in self.flat.iter().filter_map(|row| row.asks) {
                rule(self, view, gang, reason, &mut asks);
            }
        }
        asks.into_questions()
    }

    /// Why a gang does not start although enough of it is placed.
    pub(crate) fn unready(&self, view: View<'_>, gang: GangId) -> Option<Reason> {
        let mut said = self.flat.iter().filter_map(|p| p.unready);
        said.find_map(|f| f(view, gang))
    }

    /// Whether an action runs that takes room for others of a queue, or for other queues.
    pub(crate) fn takes_room_for(&self, giving: Giving) -> bool {
        let names = match giving {
            Giving::WithinQueue => ["preempt", "gangpreempt"],
            Giving::AcrossQueues => ["reclaim", "gangreclaim"],
        };
        names.into_iter().any(|name| self.has_action(name))
    }
}
