//! Proportion: queues share the cluster by weight, within ceilings and up to what they ask for (A.2).

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use model::{
    Gang, GangId, Kind, Queue, QueueId, QueueState, Reason, Share, Tables, TaskId, Vector,
};

use crate::ledger::Account;
use crate::plugin::{Claimant, Plugin, View, Vote};
use crate::plugins::reserved::InVain;
use crate::plugins::{insufficient, limit, named_ceiling, queue_of, requests_of};
use crate::rules::{Config, State};

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "proportion",
    open: Some(open),
    queue_order: Some(queue_order),
    account: Some(account),
    enqueueable: Some(enqueueable),
    overused: Some(overused),
    allocatable: Some(allocatable),
    preemptive: Some(preemptive),
    reclaimable: Some(reclaimable),
    ..Plugin::NONE
};

/// Rounds of sharing at most; each round but the last settles a queue or spends what remains.
const ROUNDS_MAX: usize = 10_000;

/// What each queue with work may have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shares(BTreeMap<QueueId, Row>);

#[derive(Clone, Debug)]
struct Row {
    weight: i64,
    real: Vector,
    request: Vector,
    guarantee: Vector,
    deserved: Vector,
    in_vain: InVain,
}

impl Row {
    /// Whether an amount is more than the queue may have.
    ///
    /// Where the queue has neither a ceiling nor others' guarantees to respect, it is the cluster that is
    /// short, and that is overcommit's to judge: else no gang would be let in that needs a little more
    /// than there is, and its pods would never say what is missing.
    fn is_beyond(&self, tables: &Tables, queue: &Queue, kind: Kind, amount: i64) -> bool {
        limit(tables, queue, kind, self.real.get(kind)).is_some_and(|limit| amount > limit)
    }

    /// Whether the queue has all that it deserves.
    fn is_all_had_by(&self, queue: &Queue) -> bool {
        self.deserved.fits(&charged(queue))
    }

    /// What its gangs have reserved without what cannot help them.
    fn reserved<'a>(&self, view: View<'_>, queue: &'a Queue) -> Cow<'a, Vector> {
        let is_too_much = |amounts: &Vector| {
            let mut amounts = amounts.entries();
            amounts.any(|(kind, amount)| self.is_beyond(view.tables, queue, kind, amount))
        };
        if !is_too_much(&queue.inqueue) {
            return Cow::Borrowed(&queue.inqueue);
        }
        let gangs = queue.gangs.iter().copied();
        let in_vain = self.in_vain.of(view, gangs, Gang::inqueue, is_too_much);
        Cow::Owned(queue.inqueue.minus(in_vain))
    }
}

fn open(tables: &Tables, _: &Config, state: &mut State) {
    let mut guarantees = Vector::ZERO;
    for (_, queue) in tables.queues().filter(|(_, queue)| queue.known) {
        guarantees.add(&queue.spec.guarantee);
    }
    let shared = tables.total().beyond(&guarantees);
    let rows = &mut state.proportion.0;
    for (id, queue) in tables
        .queues()
        .filter(|(_, q)| q.known && !q.gangs.is_empty())
    {
        let mut real = shared.plus(&queue.spec.guarantee);
        for (kind, _) in queue.spec.capability.entries() {
            let ceiling = named_ceiling(queue, kind).filter(|most| *most < real.get(kind));
            if let Some(ceiling) = ceiling {
                real.set(kind, ceiling);
            }
        }
        let row = Row {
            weight: i64::from(queue.spec.weight),
            real,
            request: queue.used_own.plus(&queue.pending),
            guarantee: queue.spec.guarantee.clone(),
            deserved: Vector::ZERO,
            in_vain: InVain::default(),
        };
        rows.insert(id, row);
    }
    share_out(rows, tables.total().clone());
}

fn share_out(rows: &mut BTreeMap<QueueId, Row>, total: Vector) {
    let mut remaining = total;
    let mut unmet: Vec<QueueId> = rows.keys().copied().collect();
    for _ in 0..ROUNDS_MAX {
        let weights: i64 = unmet.iter().map(|id| rows[id].weight).sum();
        if weights == 0 || remaining.is_zero() {
            return;
        }
        let before = remaining.clone();
        let mut next = before.clone();
        unmet.retain(|id| {
            let row = rows.get_mut(id).expect("unmet holds keys of rows");
            let old = row.deserved.clone();
            let part = |value: i64| {
                let wide = i128::from(value) * i128::from(row.weight) / i128::from(weights);
                i64::try_from(wide).unwrap_or(i64::MAX)
            };
            let mut wish = old.clone();
            wish.add(&Vector::of(
                before.entries().map(|(kind, value)| (kind, part(value))),
            ));
            row.deserved = wish
                .lower(&row.real)
                .lower(&row.request)
                .higher(&row.guarantee);
            next.sub(&row.deserved.minus(&old));
            !(row.request.fits(&row.deserved) || row.deserved == old)
        });
        next.floor();
        if next == before {
            return;
        }
        remaining = next;
    }
}

impl Shares {
    fn share(&self, tables: &Tables, queue: QueueId) -> Share {
        match self.0.get(&queue) {
            Some(row) => {
                let queue = tables.queue(queue);
                let shares = row.deserved.entries().map(|(kind, whole)| {
                    let promised = queue.promised.get(kind);
                    Share::of(queue.used_own.get(kind).saturating_add(promised), whole)
                });
                // What is held and not deserved at all is the whole of a share of nothing.
                let held = queue.used_own.entries();
                let beyond = held.filter(|(kind, _)| row.deserved.get(*kind) == 0);
                let beyond = beyond.map(|(_, held)| Share::of(held, 0));
                shares.chain(beyond).max().unwrap_or(Share::NONE)
            }
            None => Share::NONE,
        }
    }
}

fn queue_order(view: View<'_>, a: QueueId, b: QueueId) -> Ordering {
    let (x, y) = (view.tables.queue(a), view.tables.queue(b));
    let shares = &view.state.proportion;
    y.spec.priority.cmp(&x.spec.priority).then_with(|| {
        shares
            .share(view.tables, a)
            .cmp(&shares.share(view.tables, b))
    })
}

fn overused(view: View<'_>, queue: QueueId) -> Option<Reason> {
    let row = view.state.proportion.0.get(&queue)?;
    // A queue whose share is the whole cluster is not short of share but of room, and the search for
    // a node says which. The decision is the same.
    let total = view.tables.total();
    let limited = row
        .request
        .entries()
        .any(|(kind, wish)| row.deserved.get(kind) < wish.min(total.get(kind)));
    let of = view.tables.queue(queue);
    let has_all = limited && row.is_all_had_by(of);
    has_all.then(|| Reason::QueueOverused {
        queue: of.spec.name.clone(),
    })
}

/// A.2: a queue that has all that it deserves is overused, also where it asks for no more.
fn account(view: View<'_>, id: QueueId) -> Option<Account> {
    let row = view.state.proportion.0.get(&id)?;
    let queue = view.tables.queue(id);
    Some(Account {
        allocated: queue.used_own.clone(),
        request: row.request.clone(),
        deserved: row.deserved.clone(),
        inqueue: queue.inqueue.clone(),
        ceilings: None,
        share: view.state.proportion.share(view.tables, id),
        weight: Some(queue.spec.weight),
        is_overused: row.is_all_had_by(queue),
    })
}

/// What counts against a queue's share: what its tasks hold and what they are promised.
fn charged(queue: &Queue) -> Cow<'_, Vector> {
    if queue.promised.is_zero() {
        Cow::Borrowed(&queue.used_own)
    } else {
        Cow::Owned(queue.used_own.plus(&queue.promised))
    }
}

fn allocatable(view: View<'_>, id: QueueId, task: TaskId) -> Option<Reason> {
    let queue = view.tables.queue(id);
    let name = queue.spec.name.clone();
    if queue.spec.state != QueueState::Open {
        return Some(Reason::QueueNotOpen {
            queue: name,
            state: queue.spec.state,
        });
    }
    let row = view.state.proportion.0.get(&id)?;
    let request = &view.tables.shape_of(task).spec.requests;
    let charged = charged(queue);
    let mut asked = request.entries().filter(|(_, need)| *need > 0);
    let (kind, need, share) = asked.find_map(|(kind, need)| {
        let share = limit(view.tables, queue, kind, row.deserved.get(kind))?;
        let held = charged.get(kind).saturating_add(need);
        (held > share).then_some((kind, need, share))
    })?;
    let left = share.saturating_sub(charged.get(kind)).max(0);
    let kinds = view.tables.kinds();
    Some(Reason::QueueFull {
        queue: name,
        need: kinds.amount(kind, need),
        left: kinds.amount(kind, left),
    })
}

/// A queue takes room from others up to its share.
fn preemptive(view: View<'_>, id: QueueId, tasks: &[TaskId]) -> bool {
    let queue = view.tables.queue(id);
    if queue.spec.state != QueueState::Open {
        return false;
    }
    let Some(row) = view.state.proportion.0.get(&id) else {
        return true;
    };
    let charged = charged(queue);
    let request = requests_of(view.tables, tasks);
    let mut asked = request.entries().filter(|(_, need)| *need > 0);
    asked.all(|(kind, need)| {
        let share = limit(view.tables, queue, kind, row.deserved.get(kind));
        share.is_none_or(|share| charged.get(kind).saturating_add(need) <= share)
    })
}

/// A queue gives as long as it holds more than its share of anything (A.2).
fn reclaimable(view: View<'_>, _: Claimant, tasks: &[TaskId], allowed: &mut [bool]) {
    let mut left: BTreeMap<QueueId, Vector> = BTreeMap::new();
    for (task, allowed) in tasks.iter().zip(allowed) {
        let queue = queue_of(view.tables, *task);
        let shares = &view.state.proportion.0;
        let Some((queue, row)) = queue.and_then(|queue| Some((queue, shares.get(&queue)?))) else {
            *allowed = false;
            continue;
        };
        let held = left
            .entry(queue)
            .or_insert_with(|| view.tables.queue(queue).used_own.clone());
        if held.fits(&row.deserved) {
            *allowed = false;
        } else {
            held.sub(&view.tables.shape_of(*task).spec.requests);
        }
    }
}

fn enqueueable(view: View<'_>, id: GangId) -> Vote {
    let gang = view.tables.gang(id);
    let Some(at) = gang.queue else {
        return Vote::Abstain;
    };
    let queue = view.tables.queue(at);
    let name = queue.spec.name.clone();
    if queue.spec.state != QueueState::Open {
        return Vote::Reject(Reason::QueueNotOpen {
            queue: name,
            state: queue.spec.state,
        });
    }
    let (Some(min), Some(row)) = (&gang.spec.min_resources, view.state.proportion.0.get(&at))
    else {
        return Vote::Permit;
    };
    let wanted = min
        .plus(&queue.used_own)
        .plus(&row.reserved(view, queue))
        .minus(&queue.elastic);
    let short = insufficient(view.tables, min, |kind| {
        row.is_beyond(view.tables, queue, kind, wanted.get(kind))
    });
    if short.is_empty() {
        Vote::Permit
    } else {
        Vote::Reject(Reason::QueueQuota { queue: name, short })
    }
}
