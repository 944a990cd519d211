//! Volcano's rule book: actions × plugins on a trial.
//!
//! What is here: the scheduler configuration as typed [`Settings`] (tiers of plugins, a row of
//! actions) with Volcano's defaults, the plugins' exact mathematics, the actions, and one incremental
//! feasibility index per task shape.
//!
//! What this room refuses to know: Kueue's pools, the API, events, when a cycle runs, and which gangs
//! changed. It is given gangs to look at and answers for each with an [`Outcome`].
//!
//! Its lists: [`ACTIONS`] and [`PLUGINS`], const rows of optional function pointers. A plugin that is
//! not in a row here does not exist; a name in the configuration without a row is a [`Problem`].
//!
//! Its door: [`Rules::compile`], then [`Cycle`] per cycle.
//!
//! Invariants:
//! - a plugin sees the tables read-only and its own state; nothing else is in scope;
//! - every node is searched and ties go to the lowest id: upstream samples nodes and draws lots;
//! - a gang below its minimum ends a cycle with all of it placed or none of it;
//! - scores are integers (millionths of a point); no floating point is compared.

mod actions;
mod arguments;
mod bonds;
mod clearing;
mod coupling;
mod cycle;
mod diagnosis;
#[cfg(test)]
mod dice;
mod domains;
mod feasibility;
mod footing;
mod ledger;
mod order;
mod parts;
mod plugin;
mod plugins;
mod regard;
mod rules;
mod settings;
mod shuffling;
mod switches;
mod together;
mod turns;
mod victims;
mod widths;

pub use actions::ACTIONS;
pub use arguments::{Argument, Arguments, Asked, Complaint, Decimal, Switched, WEIGHT_MAX};
pub use coupling::is_kept_away;
pub use cycle::{Cycle, Lacks, Milestone, Outcome, Placed, Tried, Work};
pub use domains::DomainSums;
pub use feasibility::{Indexes, may_fit};
pub use ledger::{Account, Ledger};
pub use plugin::{
    Action, AskRule, Asks, CardChoice, ClaimCheck, Claimant, CoupledScore, DomainScore, FullCheck,
    GangCheck, HyperNodeOrder, LeaveCheck, Leaver, NodeCheck, NodePoints, Plugin, Room, RoomCheck,
    Score, ShareCheck, VictimCheck, VictimQueueOrder, View, Vote,
};
pub use plugins::PLUGINS;
pub use plugins::deviceshare::ChipTeller;
pub use plugins::extender::{COUNTS_MS, Extender, Verb};
pub use regard::{Regard, places_on};
pub use rules::{Problem, Rules, Seat};
pub use settings::{Difference, PARAMETERS, PluginSettings, Settings, Switch};
pub use shuffling::Protection;
