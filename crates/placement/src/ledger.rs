//! What the rule book says of queues and gangs, for people who look at figures. Nothing is decided on it.

use model::{GangId, Limits, QueueId, Share, Tables, Time, Vector};

use crate::rules::{Rules, State};

/// What a queue has, asks for and should have, as the plugin counts it that shares among queues.
#[derive(Clone, Debug)]
pub struct Account {
    /// What its tasks hold.
    pub allocated: Vector,
    /// What its tasks hold and want.
    pub request: Vector,
    /// What it should have.
    pub deserved: Vector,
    /// What gangs of it have been let in for and do not hold yet.
    pub inqueue: Vector,
    /// Its own ceilings, and those that are left of what others are guaranteed, where the plugin knows
    /// ceilings; a kind that is not named has none.
    pub ceilings: Option<(Limits, Limits)>,
    /// The largest part of a resource that it has of what it should have.
    pub share: Share,
    /// Its weight, where the plugin shares by weight.
    pub weight: Option<i32>,
    /// Whether it has more than it should.
    pub is_overused: bool,
}

/// The rule book as of a moment, to be asked about queues and gangs.
pub struct Ledger<'a> {
    rules: &'a Rules,
    tables: &'a Tables,
    state: State,
}

impl Rules {
    /// Opens it over settled tables. Costs what the opening of a cycle does.
    pub fn ledger<'a>(&'a self, tables: &'a Tables, now: Time) -> Ledger<'a> {
        Ledger {
            rules: self,
            tables,
            state: self.open(tables, now),
        }
    }
}

impl Ledger<'_> {
    /// A queue's account; `None` where no plugin shares among queues, or it takes no part.
    pub fn account(&self, queue: QueueId) -> Option<Account> {
        let view = self.rules.view(self.tables, &self.state);
        let mut hooks = self.rules.rows().filter_map(|row| row.account);
        hooks.find_map(|hook| hook(view, queue))
    }

    /// A gang's share of the cluster; `None` where no plugin looks at that.
    pub fn share(&self, gang: GangId) -> Option<Share> {
        let view = self.rules.view(self.tables, &self.state);
        let hook = self.rules.rows().find_map(|row| row.gang_share)?;
        Some(hook(view, gang))
    }
}
