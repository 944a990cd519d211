//! Gangpreempt: gangs that lack tasks take room that lies together from less important gangs of their
//! queue.

use crate::actions::bundles::{self, Reach};
use crate::plugin::Action;
use crate::victims::Against;

/// The row.
pub const ACTION: Action = Action {
    name: "gangpreempt",
    evicts: true,
    configure: Some(|asked, config| config.gangpreempt = Reach::read(asked)),
    run: |cycle| {
        let reach = |config: &crate::rules::Config| config.gangpreempt;
        bundles::run(cycle, Against::OtherGangs, "gangpreempt", reach);
    },
};
