//! ResourceQuota: no gang is let in whose pods a quota of its namespace would refuse.

use model::{GangId, GangPhase, Kind, QuotaGap, Reason, Vector};

use crate::plugin::{Plugin, View, Vote};

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
        let used = quota.used.plus(&promised);
        let wanted = min.entries().filter(|(_, need)| *need > 0);
        let short = wanted.filter_map(|(kind, need)| {
            let hard = quota.hard.get(kind)?;
            let amount = |value| tables.kinds().amount(kind, value);
            (need.saturating_add(used.get(kind)) > hard).then(|| QuotaGap {
                requested: amount(need),
                used: amount(used.get(kind)),
                limited: amount(hard),
            })
        });
        let short: Vec<QuotaGap> = short.collect();
        if !short.is_empty() {
            let quota = quota.key.to_string().as_str().into();
            return Vote::Reject(Reason::NamespaceQuota { quota, short });
        }
    }
    Vote::Abstain
}
