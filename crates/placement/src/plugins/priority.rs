//! Priority: the more important gang, and the more important task of a gang, comes first.

use std::cmp::Ordering;

use model::{GangId, TaskId};

use crate::plugin::{Plugin, View};

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "priority",
    job_order: Some(job_order),
    task_order: Some(task_order),
    ..Plugin::NONE
};

fn job_order(view: View<'_>, a: GangId, b: GangId) -> Ordering {
    view.tables
        .gang(b)
        .priority
        .cmp(&view.tables.gang(a).priority)
}

fn task_order(view: View<'_>, a: TaskId, b: TaskId) -> Ordering {
    view.tables
        .task(b)
        .priority
        .cmp(&view.tables.task(a).priority)
}
