//! ResourceQuota: no gang is let in whose pods a quota of its namespace would refuse.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use model::{GangId, GangPhase, Kind, Phase, QuotaGap, Reason, Tables, Vector};

use crate::plugin::{Plugin, View, Vote};

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "resourcequota",
    enqueueable: Some(enqueueable),
    begin_letting_in: Some(|state| state.resourcequota = Unmade::default()),
    let_in: Some(|tables, state, gang| state.resourcequota.let_in(tables, gang)),
    ..Plugin::NONE
};

/// What gangs lack pods for that wait to be let in or for the last of their pods, found out when it is first
/// asked for: no pod comes or fails while gangs are let in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unmade(OnceCell<Lacking>);

#[derive(Clone, Debug, Default)]
struct Lacking {
    of_gangs: BTreeMap<GangId, Vector>,
    /// What those of a namespace that were let in lack together.
    let_in: BTreeMap<Arc<str>, Vector>,
}

impl Unmade {
    fn of(&self, view: View<'_>) -> &Lacking {
        self.0.get_or_init(|| {
            let waits = |phase| matches!(phase, GangPhase::Pending | GangPhase::Inqueue);
            let gangs = view.tables.gangs();
            let waiting = gangs.filter(|(_, gang)| waits(gang.phase()));
            let lacks = waiting.filter_map(|(id, _)| Some((id, missing(view, id)?)));
            let mut lacking = Lacking {
                of_gangs: lacks.collect(),
                ..Lacking::default()
            };
            let let_in = |id: &GangId| view.tables.gang(*id).phase() == GangPhase::Inqueue;
            let ids: Vec<GangId> = lacking.of_gangs.keys().copied().filter(let_in).collect();
            ids.into_iter()
                .for_each(|id| lacking.let_in(view.tables, id));
            lacking
        })
    }

    /// A gang was let in.
    fn let_in(&mut self, tables: &Tables, id: GangId) {
        if let Some(lacking) = self.0.get_mut() {
            lacking.let_in(tables, id);
        }
    }
}

impl Lacking {
    fn let_in(&mut self, tables: &Tables, id: GangId) {
        if let Some(lacks) = self.of_gangs.get(&id) {
            let namespace = tables.gang(id).spec.key.namespace.clone();
            self.let_in.entry(namespace).or_default().add(lacks);
        }
    }
}

/// What of a gang's minimum, with the number of its pods and their limits, has no pod yet: what pods that are
/// there request a quota counts as used. A pod that has failed does not count there, and another one comes for it.
fn missing(view: View<'_>, id: GangId) -> Option<Vector> {
    let gang = view.tables.gang(id);
    let mut missing = gang.spec.min_resources.clone()?;
    missing.add(&gang.spec.min_limits);
    missing.set(Kind::PODS, i64::from(gang.spec.min_member));
    let tasks = gang.tasks.iter();
    for id in tasks.filter(|id| view.tables.task(**id).phase != Phase::Failed) {
        let spec = &view.tables.shape_of(*id).spec;
        missing.sub(&spec.requests);
        missing.sub(&spec.limits);
        missing.set(Kind::PODS, missing.get(Kind::PODS) - 1);
    }
    missing.floor();
    Some(missing)
}

/// used + what gangs that were let in still lack pods for + what this one lacks them for ≤ hard, in what all
/// of them name. Where there is room it never permits by itself: a permit would keep later tiers from being
/// asked.
fn enqueueable(view: View<'_>, id: GangId) -> Vote {
    let tables = view.tables;
    let gang = tables.gang(id);
    let namespace = &gang.spec.key.namespace;
    let mut quotas = tables.quotas(namespace).peekable();
    if quotas.peek().is_none() {
        return Vote::Abstain;
    }
    let lacks = view.state.resourcequota.of(view);
    let Some(min) = lacks.of_gangs.get(&id) else {
        return Vote::Abstain;
    };
    let promised = lacks.let_in.get(namespace);
    let mut promised = promised.cloned().unwrap_or(Vector::ZERO);
    if gang.phase() == GangPhase::Inqueue {
        promised.sub(min);
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
