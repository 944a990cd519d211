//! Dominant resource fairness: the gang with the smaller share of the cluster comes first, and may take
//! room of one that stays at least as large. With `enableHierarchy` queues share by a tree, too.

mod tree;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use model::{GangId, Kind, Share, Tables, TaskId, Vector};

use crate::plugin::{Claimant, Plugin, View};

pub(crate) use tree::Tree;

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "drf",
    hierarchy: Some(tree::in_tree),
    job_order: Some(job_order),
    gang_share: Some(of_gang),
    preemptable: Some(preemptable),
    counts_refused: true,
    preempts_like: Some(share_of_its_own),
    ..Plugin::NONE
};

/// How large its share is decides. Of gangs that hold nothing it is the same; no two others need have the same.
fn share_of_its_own(view: View<'_>, gang: GangId) -> u64 {
    match held(view, gang).is_zero() {
        true => 0,
        false => 1 + u64::from(gang.0),
    }
}

fn job_order(view: View<'_>, a: GangId, b: GangId) -> Ordering {
    of_gang(view, a).cmp(&of_gang(view, b))
}

/// A gang's share.
fn of_gang(view: View<'_>, gang: GangId) -> Share {
    changed(view, gang, |_| 0)
}

/// What a gang's share would be with so much more of each kind, added up where it is looked at: it is asked
/// for very often.
fn changed(view: View<'_>, gang: GangId, by: impl Fn(Kind) -> i64) -> Share {
    let gang = view.tables.gang(gang);
    let of_kinds = view.tables.total().entries();
    let shares = of_kinds.map(|(kind, whole)| {
        let promised = gang.promised.get(kind);
        let held = gang.allocated.get(kind).saturating_add(promised);
        Share::of(held.saturating_add(by(kind)), whole)
    });
    shares.max().unwrap_or(Share::NONE)
}

/// What a gang holds, with what it is promised.
fn held(view: View<'_>, gang: GangId) -> Vector {
    of_tables(view.tables, gang)
}

fn of_tables(tables: &Tables, gang: GangId) -> Vector {
    let gang = tables.gang(gang);
    gang.allocated.plus(&gang.promised)
}

/// The largest part of any resource of the cluster (A.5).
fn share(view: View<'_>, held: &Vector) -> Share {
    Share::dominant(held, view.tables.total())
}

/// A.5: a candidate is a victim if its gang's share without it is at least the claimant's with the
/// task. Each candidate lowers its gang's balance, whether or not it becomes a victim. Upstream takes
/// shares within a millionth for equal; ours are exact.
fn preemptable(view: View<'_>, claimant: Claimant, tasks: &[TaskId], allowed: &mut [bool]) {
    let requests = |task: TaskId| &view.tables.shape_of(task).spec.requests;
    let wanted = requests(claimant.task);
    let wanted = changed(view, claimant.gang, |kind| wanted.get(kind));
    // Mostly it is asked of one alone.
    if let ([task], [allowed]) = (tasks, &mut *allowed) {
        let given = requests(*task);
        let gang = view.tables.task(*task).gang;
        let left = gang.map(|gang| changed(view, gang, |kind| given.get(kind).saturating_neg()));
        *allowed &= left.is_some_and(|left| wanted <= left);
        return;
    }
    let mut left: BTreeMap<GangId, Vector> = BTreeMap::new();
    for (task, allowed) in tasks.iter().zip(allowed) {
        let Some(gang) = view.tables.task(*task).gang else {
            *allowed = false;
            continue;
        };
        let balance = left.entry(gang).or_insert_with(|| held(view, gang));
        balance.sub(requests(*task));
        *allowed &= wanted <= share(view, balance);
    }
}
