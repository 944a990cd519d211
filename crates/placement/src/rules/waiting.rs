//! Which tasks of a gang wait for room.

use model::{GangId, Phase, Task, TaskId};

use super::Rules;
use crate::plugin::View;

impl Rules {
    /// Tasks of the gang that wait for room and are wanted, in the order in which they are placed.
    pub(crate) fn waiting(
        &self,
        view: View<'_>,
        gang: GangId,
        is_wanted: impl Fn(&Task) -> bool,
    ) -> Vec<TaskId> {
        let mut tasks: Vec<TaskId> = view.tables.gang(gang).tasks.iter().copied().collect();
        tasks.retain(|id| {
            let task = view.tables.task(*id);
            task.phase == Phase::Pending && !task.gated && is_wanted(task)
        });
        tasks.sort_by(|a, b| self.task_order(view, *a, *b));
        tasks
    }
}
