//! ResourceQuota: no gang is let in whose pods a quota of its namespace would refuse.

use model::{GangId, GangPhase, Kind, Reason, Vector};

use crate::plugin::{Plugin, View, Vote};
use crate::plugins::insufficient;

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "resourcequota",
    enqueueable: Some(enqueueable),
    ..Plugin::NONE
};

/// What a gang's first pods ask of a quota, with their number.
fn wanted(view: View<'_>, id: GangId) -> Option<Vector> {
    let spec = &view.tables.gang(id).spec;
    let mut wanted = spec.min_resources.clone()?;
    wanted.set(Kind::PODS, i64::from(spec.min_member));
    Some(wanted)
}

/// used + what was let in and has no pods yet + the gang's minimum ≤ hard, in what all of them name.
fn enqueueable(view: View<'_>, id: GangId) -> Vote {
    let tables = view.tables;
    let namespace = &tables.gang(id).spec.key.namespace;
    let mut quotas = tables.quotas(namespace).peekable();
    let (Some(min), Some(_)) = (wanted(view, id), quotas.peek()) else {
        return Vote::Abstain;
    };
    let mut promised = Vector::ZERO;
    for (other, gang) in tables.gangs() {
        let is_awaited = gang.phase() == GangPhase::Inqueue && gang.tasks.is_empty();
        if is_awaited && other != id && gang.spec.key.namespace == *namespace {
            promised.add(&wanted(view, other).unwrap_or_default());
        }
    }
    for quota in quotas {
        let all = min.plus(&quota.used).plus(&promised);
        let short = insufficient(tables, &min, |kind| {
            quota
                .hard
                .get(kind)
                .is_some_and(|hard| all.get(kind) > hard)
        });
        if !short.is_empty() {
            let quota = quota.key.to_string().as_str().into();
            return Vote::Reject(Reason::NamespaceQuota { quota, short });
        }
    }
    Vote::Abstain
}
