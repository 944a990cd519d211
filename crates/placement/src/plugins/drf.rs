//! Dominant resource fairness: the gang with the smaller share of the cluster comes first.

use std::cmp::Ordering;

use model::{GangId, Share};

use crate::plugin::{Plugin, View};

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "drf",
    job_order: Some(job_order),
    ..Plugin::NONE
};

fn job_order(view: View<'_>, a: GangId, b: GangId) -> Ordering {
    share(view, a).cmp(&share(view, b))
}

/// A gang's share: the largest part that it has of any resource of the cluster (A.5).
fn share(view: View<'_>, gang: GangId) -> Share {
    Share::dominant(&view.tables.gang(gang).allocated, view.tables.total())
}
