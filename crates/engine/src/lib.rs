//! One cycle = one trial = one plan.
//!
//! What is here: which gangs a cycle looks at (those that changed, and those that wait for what
//! changed), the composition of quota and placement on one trial, the statuses that follow, and the
//! doors of explain, what-if and the decision log.
//!
//! What this room refuses to know: the rules themselves, wire shapes, who carries a plan out.
//!
//! Its lists: none; actions and plugins are `placement`'s.
//!
//! Its door: [`Engine::new`], then [`Engine::cycle`] whenever something changed or the last plan's
//! `wake_at` has come. What comes back is already pending in the tables.
//!
//! Invariants:
//! - with no news and nothing due there is no work at all ([`Engine::work`] does not move);
//! - the same tables, settings and `now` give the same plan;
//! - a gang whose last status write is unseen gets no further one.

mod backlog;
mod engine;
mod explain;
mod record;
mod status;
mod strays;
mod wording;

pub use engine::{Engine, Listener, Settings};
pub use explain::{
    Explanation, Fix, GroupLimit, HOLDERS_MAX, Holder, Limit, Note, Remedy, explain, fork,
};
pub use placement::{
    ACTIONS, Account, Argument, Arguments, COUNTS_MS, ChipTeller, Complaint, Decimal, Difference,
    Extender, Ledger, Milestone, Outcome, PARAMETERS, PLUGINS, PluginSettings, Problem, Seat,
    Settings as Placement, Switch, Verb, WEIGHT_MAX, Work,
};
pub use record::Record;
