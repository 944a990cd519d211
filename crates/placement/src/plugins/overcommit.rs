//! Overcommit: no more work is let in than the cluster, times a factor, could hold.

use std::borrow::Cow;
use std::sync::Arc;

use model::{Gang, GangId, Reason, Vector};

use crate::arguments::Asked;
use crate::plugin::{Plugin, View, Vote};
use crate::rules::Config;

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "overcommit",
    configure: Some(configure),
    enqueueable: Some(enqueueable),
    ..Plugin::NONE
};

/// By how much the cluster may be promised beyond what it has, in millionths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factor(i64);

impl Default for Factor {
    fn default() -> Self {
        Factor(1_200_000)
    }
}

impl Factor {
    /// So much of what there is may be promised.
    pub(crate) fn times(self, value: i64) -> i64 {
        let wide = i128::from(value) * i128::from(self.0) / 1_000_000;
        i64::try_from(wide).unwrap_or(i64::MAX)
    }
}

/// The largest factor, in millionths: a million.
const FACTOR_MAX: i64 = 1_000_000_000_000;

fn configure(arguments: &mut Asked<'_>, config: &mut Config) {
    let Factor(default) = Factor::default();
    // Upstream: a factor below one is taken for a mistake.
    let factor = arguments.millionths("overcommit-factor", default, 1_000_000, FACTOR_MAX);
    config.overcommit = Factor(factor);
}

fn enqueueable(view: View<'_>, gang: GangId) -> Vote {
    let Some(min) = &view.tables.gang(gang).spec.min_resources else {
        return Vote::Abstain;
    };
    // Where all nodes are in other shards that is the reason, and no gang is too large.
    if view.tables.are_all_left() {
        return Vote::Abstain;
    }
    let factor = view.config.overcommit;
    let total = Vector::of(
        view.tables
            .total()
            .entries()
            .map(|(kind, value)| (kind, factor.times(value))),
    );
    let idle = total.minus(view.tables.used_total());
    let wanted = reserved(view, &total).plus(min);
    let lacks = min
        .entries()
        .filter(|(kind, need)| *need > 0 && wanted.get(*kind) > idle.get(*kind));
    let (mut short, mut beyond) = (Vec::<Arc<str>>::new(), Vec::new());
    for (kind, need) in lacks {
        let name = view.tables.kinds().name(kind).clone();
        beyond.extend((need > total.get(kind)).then(|| name.clone()));
        short.push(name);
    }
    // The plugin never permits by itself: a permit would keep later tiers from being asked.
    if short.is_empty() {
        return Vote::Abstain;
    }
    // What all of the cluster is too little for tells more than what others hold.
    let is_beyond_all = !beyond.is_empty();
    Vote::Reject(Reason::Overcommitted {
        short: if is_beyond_all { beyond } else { short },
        is_beyond_all,
    })
}

/// What gangs have reserved without what cannot help them, since it is more than may be promised of all there is.
fn reserved<'a>(view: View<'a>, total: &Vector) -> Cow<'a, Vector> {
    let tables = view.tables;
    let all = tables.inqueue_whole();
    let is_too_much = |reserved: &Vector| !reserved.fits(total);
    if !is_too_much(all) {
        return Cow::Borrowed(all);
    }
    let queues = tables.queues();
    let gangs = queues.flat_map(|(_, queue)| queue.gangs.iter().copied());
    let in_vain = &view.state.overcommit;
    Cow::Owned(all.minus(in_vain.of(view, gangs, Gang::inqueue_whole, is_too_much)))
}
