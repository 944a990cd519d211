//! SLA: whoever waits for too long is let in whatever later tiers say, and who has to be let in sooner
//! comes first.
//!
//! Upstream also lets such a gang hold room in part. Here no gang holds room that it cannot use, unless
//! that is asked for ([`Difference::UsableRoom`]).

use std::cmp::Ordering;

use model::{GangId, GangPhase, Time};

use crate::arguments::Asked;
use crate::plugin::{Plugin, View, Vote};
use crate::rules::Config;
use crate::settings::Difference;

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "sla",
    configure: Some(configure),
    job_order: Some(job_order),
    enqueueable: Some(enqueueable),
    holds_in_part: Some(is_late),
    wakes_at: Some(wakes_at),
    ..Plugin::NONE
};

/// How long gangs wait that say nothing themselves; none, for ever.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Patience(Option<i64>);

fn configure(asked: &mut Asked<'_>, config: &mut Config) {
    config.sla = Patience(asked.lasting_ms("sla-waiting-time"));
}

/// When the gang is to be let in at the latest (A.6).
fn deadline(view: View<'_>, gang: GangId) -> Option<Time> {
    let spec = &view.tables.gang(gang).spec;
    let wait = spec.waits_at_most_ms.or(view.config.sla.0)?;
    Some(spec.created.plus_millis(wait))
}

/// The sooner deadline first; who has none comes last.
fn job_order(view: View<'_>, a: GangId, b: GangId) -> Ordering {
    match (deadline(view, a), deadline(view, b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (None, None) => Ordering::Equal,
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

fn is_late(view: View<'_>, gang: GangId) -> bool {
    deadline(view, gang).is_some_and(|at| at <= view.state.now)
}

fn enqueueable(view: View<'_>, gang: GangId) -> Vote {
    match is_late(view, gang) {
        true => Vote::Permit,
        false => Vote::Abstain,
    }
}

fn wakes_at(view: View<'_>, gang: GangId) -> Option<Time> {
    let waits = match view.tables.gang(gang).phase() {
        GangPhase::Pending => true,
        // Then it holds what it can get.
        GangPhase::Inqueue => view.config.as_upstream.contains(&Difference::UsableRoom),
        _ => false,
    };
    deadline(view, gang).filter(|_| waits)
}
