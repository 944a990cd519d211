//! Shuffle: whoever has to leave its node goes, though nobody is given the room.

use crate::cycle::Cycle;
use crate::plugin::Action;

/// The row.
pub const ACTION: Action = Action {
    name: "shuffle",
    // It takes no room for anybody: who waits for room has nothing to expect of it.
    evicts: false,
    configure: None,
    run,
};

fn run(cycle: &mut Cycle<'_, '_>) {
    let named = cycle.rules.victim_tasks(cycle.view());
    let now = cycle.state.now;
    for (plugin, leavers) in named {
        for (task, reason) in leavers {
            cycle.trial.send_away(task, reason, "shuffle");
            cycle.evictions += 1;
        }
        cycle.trial.shuffled(plugin, now);
    }
}
