//! Gangreclaim: gangs that lack tasks take room that lies together from queues that hold more than their
//! share.

use crate::actions::bundles::{self, Reach};
use crate::plugin::Action;
use crate::victims::Against;

/// The row.
pub const ACTION: Action = Action {
    name: "gangreclaim",
    evicts: true,
    configure: Some(|asked, config| config.gangreclaim = Reach::read(asked)),
    run: |cycle| {
        let reach = |config: &crate::rules::Config| config.gangreclaim;
        bundles::run(cycle, Against::OtherQueues, "gangreclaim", reach);
    },
};
