//! Capacity: every queue may grow to its ceiling, and gets back what it deserves from those that hold
//! more (A.3). With `enableHierarchy` queues are a tree: a ceiling holds for all below it, and only
//! leaves take work.

mod classes;
mod reclaiming;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use model::{
    Counted, Gang, GangId, Kind, Limits, Misplaced, Queue, QueueId, QueueState, Reason, Share,
    Tables, TaskId, Vector,
};

use crate::arguments::Asked;
use crate::ledger::Account;
use crate::plugin::{Plugin, View, Vote};
use crate::plugins::reserved::InVain;
use crate::plugins::{insufficient, limit, named_ceiling, requests_of};
use crate::rules::{Config, State};
use crate::settings::Difference;

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "capacity",
    configure: Some(configure),
    hierarchy: Some(|_, config| config.capacity.is_tree = true),
    open: Some(open),
    queue_order: Some(queue_order),
    account: Some(account),
    victim_queue_order: Some(victim_queue_order),
    enqueueable: Some(enqueueable),
    begin_letting_in: Some(|state| state.capacity.let_in = classes::LetIn::default()),
    let_in: Some(|tables, state, gang| state.capacity.let_in.let_in(tables, gang)),
    allocatable: Some(allocatable),
    full_above: Some(full_above),
    opens: Some(allocatable),
    preemptive: Some(preemptive),
    reclaimable: Some(reclaiming::reclaimable),
    reclaims_like: Some(reclaiming::reclaims_like),
    ..Plugin::NONE
};

/// The deepest level of ancestors that may be asked to reclaim.
const LEVEL_MAX: i64 = 64;

/// How the plugin is set up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Setup {
    /// How many ancestors of a queue may reclaim for it (`ancestorReclaimLevel`).
    level: usize,
    /// Whether queues are a tree.
    pub(crate) is_tree: bool,
    /// What of tasks' claims of devices is counted, if anything is.
    pub(crate) counted: Option<Counted>,
}

fn configure(asked: &mut Asked<'_>, config: &mut Config) {
    let level = asked.whole("ancestorReclaimLevel", 0, 0, LEVEL_MAX);
    config.capacity.level = usize::try_from(level).unwrap_or(0);
    config.capacity.counted = classes::counted(asked);
}

/// What each queue may have, computed at the start of a cycle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Capacities {
    /// By the number of the queue.
    rows: Vec<Option<Row>>,
    root: Option<QueueId>,
    is_tree: bool,
    /// What is wrong with some queue, where that stops all of them.
    stops_all: Option<Reason>,
    /// Kinds of which nothing is counted.
    uncounted: Vec<Kind>,
    /// What gangs ask for by claims of devices.
    wanted: classes::Wanted,
    /// What those of them wait for that were let in.
    let_in: classes::LetIn,
}

#[derive(Clone, Debug, Default)]
struct Row {
    /// The most that it may have; a kind that is not named has no ceiling.
    real: Ceilings,
    deserved: Vector,
    guarantee: Vector,
    /// The queues above it, the nearest first.
    above: Vec<QueueId>,
    /// The way to it from the top, with itself.
    way: Vec<QueueId>,
    misplaced: Option<Misplaced>,
    in_vain: InVain,
}

/// Ceilings by kind; no entry means none.
type Ceilings = BTreeMap<Kind, i64>;

fn open(tables: &Tables, config: &Config, state: &mut State) {
    let mut found = Capacities {
        is_tree: config.capacity.is_tree,
        root: tables.queue_named("root"),
        uncounted: classes::uncounted(tables, config.capacity.counted),
        ..Capacities::default()
    };
    if found.is_tree {
        found.grow(tables);
        if config.as_upstream.contains(&Difference::QueueErrorsApart) {
            found.stops_all = found.first_wrong(tables);
        }
    } else {
        found.lay_flat(tables);
    }
    state.capacity = found;
}

/// The ceilings that the queue names itself.
fn ceilings(tables: &Tables, queue: &Queue) -> Ceilings {
    let kinds = queue.spec.capability.entries().map(|(kind, _)| kind);
    let is_none = |kind, ceiling| ceiling == 0 && classes::is_count(tables, kind);
    let named = kinds.filter_map(|kind| Some((kind, named_ceiling(queue, kind)?)));
    named.filter(|(kind, it)| !is_none(*kind, *it)).collect()
}

/// The vector, nowhere above a ceiling.
fn under(ceilings: &Ceilings, amounts: &Vector) -> Vector {
    let mut low = amounts.clone();
    for (kind, ceiling) in ceilings {
        if low.get(*kind) > *ceiling {
            low.set(*kind, *ceiling);
        }
    }
    low
}

/// The lower of a queue's own ceiling and of what others' guarantees leave of a whole.
fn real(own: Ceilings, whole: &Ceilings, taken: &Vector, guarantee: &Vector) -> Ceilings {
    let mut real = own;
    for (kind, value) in whole {
        let left = value
            .saturating_sub(taken.get(*kind))
            .max(0)
            .saturating_add(guarantee.get(*kind));
        let ceiling = real.entry(*kind).or_insert(left);
        *ceiling = left.min(*ceiling);
    }
    real
}

impl Capacities {
    fn row(&self, id: QueueId) -> Option<&Row> {
        self.rows.get(id.index())?.as_ref()
    }

    fn put(&mut self, id: QueueId, row: Row) {
        if id.index() >= self.rows.len() {
            self.rows.resize(id.index() + 1, None);
        }
        self.rows[id.index()] = Some(row);
    }

    fn deserved(&self, queue: &Queue) -> Vector {
        classes::without(&self.uncounted, &queue.spec.deserved)
    }

    fn guarantee(&self, queue: &Queue) -> Vector {
        classes::without(&self.uncounted, &queue.spec.guarantee)
    }

    /// Without a tree: the cluster is the whole, and queues with work take part.
    fn lay_flat(&mut self, tables: &Tables) {
        let known = || tables.queues().filter(|(_, queue)| queue.known);
        let mut guarantees = Vector::ZERO;
        known().for_each(|(_, queue)| guarantees.add(&self.guarantee(queue)));
        let total: Ceilings = tables.total().entries().collect();
        for (id, queue) in known().filter(|(_, queue)| !queue.gangs.is_empty()) {
            let guarantee = self.guarantee(queue);
            let real = real(ceilings(tables, queue), &total, &guarantees, &guarantee);
            let row = Row {
                deserved: under(&real, &self.deserved(queue)).higher(&guarantee),
                real,
                guarantee,
                above: Vec::new(),
                way: vec![id],
                misplaced: None,
                in_vain: InVain::default(),
            };
            self.put(id, row);
        }
    }

    /// From the tops of the tree down: what nobody names is inherited, and guarantees of siblings are
    /// kept free.
    fn grow(&mut self, tables: &Tables) {
        let known = tables.queues().filter(|(_, queue)| queue.known);
        let is_top = |queue: &Queue| queue.parent.is_none_or(|above| !tables.queue(above).known);
        for (id, queue) in known.filter(|(_, queue)| is_top(queue)) {
            self.plant(tables, id, queue);
        }
    }

    fn plant(&mut self, tables: &Tables, top: QueueId, queue: &Queue) {
        // A queue that names a parent and hangs on none is astray, and so is all below it.
        let misplaced = queue.spec.parent.as_ref().map(|parent| Misplaced::Astray {
            at: queue.spec.name.clone(),
            parent: parent.clone(),
        });
        let children = || queue.children.iter().map(|child| tables.queue(*child));
        let (mut guarantee, mut deserved) = (Vector::ZERO, Vector::ZERO);
        children().for_each(|child| guarantee.add(&self.guarantee(child)));
        children().for_each(|child| deserved.add(&self.deserved(child)));
        if Some(top) != self.root {
            (guarantee, deserved) = (self.guarantee(queue), self.deserved(queue));
        }
        let row = Row {
            real: ceilings(tables, queue),
            deserved,
            guarantee,
            above: Vec::new(),
            way: vec![top],
            misplaced,
            in_vain: InVain::default(),
        };
        self.put(top, row);
        let mut next = vec![top];
        while let Some(parent) = next.pop() {
            let children = &tables.queue(parent).children;
            let mut guarantees = Vector::ZERO;
            for child in children {
                guarantees.add(&self.guarantee(tables.queue(*child)));
            }
            for child in children {
                self.hang(tables, parent, *child, &guarantees);
                next.push(*child);
            }
        }
    }

    fn hang(&mut self, tables: &Tables, parent: QueueId, id: QueueId, guarantees: &Vector) {
        let Some(above) = self.row(parent) else {
            return;
        };
        let queue = tables.queue(id);
        let guarantee = self.guarantee(queue);
        // A scalar that the cluster does not limit above may still be limited here.
        let row = Row {
            real: real(ceilings(tables, queue), &above.real, guarantees, &guarantee),
            deserved: self.deserved(queue).higher(&guarantee),
            guarantee,
            above: std::iter::once(parent)
                .chain(above.above.iter().copied())
                .collect(),
            way: above.way.iter().copied().chain([id]).collect(),
            misplaced: above.misplaced.clone(),
            in_vain: InVain::default(),
        };
        self.put(id, row);
    }

    /// Why nothing in the queue is let in or placed, if it is not.
    fn misplaced(&self, tables: &Tables, id: QueueId) -> Option<Reason> {
        self.stops_all.clone().or_else(|| self.wrong(tables, id))
    }

    /// The first queue by its number that is wrong, or has work that it may not have.
    fn first_wrong(&self, tables: &Tables) -> Option<Reason> {
        let queues = tables.queues().filter(|(_, queue)| queue.known);
        let is_above = |why: &Reason| matches!(why, Reason::QueueMisplaced { why, .. } if *why == Misplaced::AboveOthers);
        let mut wrong = queues.filter_map(|(id, queue)| {
            let why = self.wrong(tables, id)?;
            (!queue.gangs.is_empty() || !is_above(&why)).then_some(why)
        });
        wrong.next()
    }

    /// What is wrong with the queue itself, or above it.
    fn wrong(&self, tables: &Tables, id: QueueId) -> Option<Reason> {
        if !self.is_tree {
            return None;
        }
        let queue = tables.queue(id);
        let why = match self.row(id) {
            Some(row) if row.misplaced.is_some() => row.misplaced.clone()?,
            Some(_) if !queue.children.is_empty() => Misplaced::AboveOthers,
            _ => return None,
        };
        let queue = queue.spec.name.clone();
        Some(Reason::QueueMisplaced { queue, why })
    }

    /// The queue, and in a tree those above it.
    fn path(&self, id: QueueId) -> impl Iterator<Item = (QueueId, &Row)> {
        let above = self.row(id).into_iter().flat_map(|row| &row.above);
        let ids = std::iter::once(id).chain(above.copied());
        ids.filter_map(|id| Some((id, self.row(id)?)))
    }

    /// What counts against a queue: what it and all below it hold and are promised, of classes of devices by
    /// their claims; of pod slots what they hold, without promises.
    fn held(&self, tables: &Tables, id: QueueId, kind: Kind) -> i64 {
        if kind == Kind::PODS {
            return self.slots(tables, id);
        }
        let queue = tables.queue(id);
        let (used, promised) = match self.is_tree {
            true => (&queue.used, &queue.tree.promised),
            false => (&queue.used_own, &queue.promised),
        };
        let used = used.get(kind).saturating_add(promised.get(kind));
        used.saturating_add(classes::taken(tables, id, kind))
    }

    /// How many pods of a queue hold a slot on their nodes, in a tree with all below it: no task requests one.
    fn slots(&self, tables: &Tables, id: QueueId) -> i64 {
        let queue = tables.queue(id);
        let below = queue.children.iter();
        let below = below.map(|child| tables.queue(*child).used_slots);
        match self.is_tree {
            true => queue.used_slots,
            false => queue.used_slots.saturating_sub(below.sum()),
        }
    }

    /// What counts against a queue without what it keeps for these tasks.
    fn held_by_others(&self, tables: &Tables, id: QueueId, kind: Kind, tasks: &[TaskId]) -> i64 {
        let kept = tasks
            .iter()
            .filter(|task| tables.task(**task).is_kept_for());
        let own = kept.map(|task| tables.shape_of(*task).spec.requests.get(kind));
        let held = self.held(tables, id, kind);
        held.saturating_sub(own.fold(0, i64::saturating_add))
    }

    /// The first queue of the path that the tasks with these requests would take beyond its ceiling.
    fn beyond<'a>(
        &self,
        tables: &Tables,
        mut path: impl Iterator<Item = (QueueId, &'a Row)>,
        request: &Vector,
        tasks: &[TaskId],
    ) -> Option<Beyond> {
        path.find_map(|(at, row)| {
            let mut asked = request.entries().filter(|(_, need)| *need > 0);
            asked.find_map(|(kind, need)| {
                let ceiling = ceiling_of(tables, tables.queue(at), row, kind)?;
                let left = ceiling.saturating_sub(self.held_by_others(tables, at, kind, tasks));
                (need > left).then_some(Beyond {
                    at,
                    kind,
                    need,
                    left,
                })
            })
        })
    }

    fn share(&self, tables: &Tables, id: QueueId) -> Share {
        match self.row(id) {
            // Upstream: a queue that deserves nothing has all of it.
            Some(row) if row.deserved.is_zero() => Share::of(1, 1),
            Some(row) => {
                let of_kinds = row.deserved.entries();
                let shares = of_kinds.map(|(kind, w)| Share::of(self.held(tables, id, kind), w));
                shares.max().unwrap_or(Share::NONE)
            }
            None => Share::NONE,
        }
    }

    /// What a queue uses, what its gangs have reserved and what they hold beyond their minimum, in a tree
    /// with all below it.
    fn sums<'a>(&self, queue: &'a Queue) -> (&'a Vector, &'a Vector, &'a Vector) {
        match self.is_tree {
            true => (&queue.used, &queue.tree.inqueue, &queue.tree.elastic),
            false => (&queue.used_own, &queue.inqueue, &queue.elastic),
        }
    }

    /// A queue, in a tree with all below it.
    fn queues_below<'a>(
        &self,
        tables: &'a Tables,
        id: QueueId,
    ) -> impl Iterator<Item = &'a Queue> + use<'a> {
        let is_tree = self.is_tree;
        let mut queues = vec![id];
        std::iter::from_fn(move || {
            let queue = tables.queue(queues.pop()?);
            if is_tree {
                queues.extend(&queue.children);
            }
            Some(queue)
        })
    }

    /// The gangs of a queue, in a tree with all below it.
    fn gangs_below<'a>(
        &self,
        tables: &'a Tables,
        id: QueueId,
    ) -> impl Iterator<Item = GangId> + use<'a> {
        let queues = self.queues_below(tables, id);
        queues.flat_map(|queue| queue.gangs.iter().copied())
    }

    /// The way to a queue from the top, with itself.
    fn way(&self, id: QueueId) -> &[QueueId] {
        self.row(id).map_or(&[], |row| &row.way)
    }

    /// How many queues from the top the two have in common.
    fn common(&self, a: QueueId, b: QueueId) -> usize {
        let both = self.way(a).iter().zip(self.way(b));
        both.take_while(|(x, y)| x == y).count()
    }
}

fn queue_order(view: View<'_>, a: QueueId, b: QueueId) -> Ordering {
    let (x, y) = (view.tables.queue(a), view.tables.queue(b));
    let all = &view.state.capacity;
    let share = |id| all.share(view.tables, id);
    let by_priority = y.spec.priority.cmp(&x.spec.priority);
    // Who has all of nothing comes after who has all of something.
    let says_nothing = |(kind, _): (Kind, i64)| all.uncounted.contains(&kind);
    let is_of_nothing = |id| (view.tables.queue(id).spec.deserved.entries()).all(says_nothing);
    let by_share = |a, b| (share(a), is_of_nothing(a)).cmp(&(share(b), is_of_nothing(b)));
    if !all.is_tree {
        return by_priority.then_with(|| by_share(a, b));
    }
    let leaf = |queue: &Queue| !queue.children.is_empty();
    by_priority
        .then_with(|| leaf(x).cmp(&leaf(y)))
        .then_with(|| {
            // What counts is where the ways to the two part.
            let depth = all.common(a, b);
            let at_parting = |id: QueueId| all.way(id).get(depth).copied().unwrap_or(id);
            by_share(at_parting(a), at_parting(b))
        })
}

/// The nearest kin gives first.
fn victim_queue_order(view: View<'_>, claimant: QueueId, a: QueueId, b: QueueId) -> Ordering {
    let all = &view.state.capacity;
    if !all.is_tree {
        return Ordering::Equal;
    }
    all.common(claimant, b).cmp(&all.common(claimant, a))
}

/// A.3: a queue that has more than it deserves is overused.
fn account(view: View<'_>, id: QueueId) -> Option<Account> {
    let (tables, all) = (view.tables, &view.state.capacity);
    let row = all.row(id)?;
    let queue = tables.queue(id);
    let (allocated, inqueue, _) = all.sums(queue);
    let share = all.share(view.tables, id);
    // In a tree a queue asks for what all below it do, as it holds what they hold.
    let mut request = Vector::ZERO;
    for below in all.queues_below(tables, id) {
        request.add(&below.used_own);
        request.add(&below.pending);
    }
    let mut allocated = allocated.clone();
    if let Some(held) = tables.classes_held(id) {
        allocated.add(held);
        request.add(held);
    }
    Some(Account {
        allocated,
        request,
        deserved: row.deserved.clone(),
        inqueue: inqueue.clone(),
        ceilings: Some((
            Limits::of(ceilings(tables, queue)),
            Limits::of(row.real.iter().map(|(kind, value)| (*kind, *value))),
        )),
        share,
        weight: None,
        is_overused: share > Share::of(1, 1),
    })
}

fn not_open(queue: &Queue) -> Option<Reason> {
    (queue.spec.state != QueueState::Open).then(|| Reason::QueueNotOpen {
        queue: queue.spec.name.clone(),
        state: queue.spec.state,
    })
}

fn allocatable(view: View<'_>, id: QueueId, task: TaskId) -> Option<Reason> {
    let (tables, all) = (view.tables, &view.state.capacity);
    if let Some(reason) = not_open(tables.queue(id)).or_else(|| all.misplaced(tables, id)) {
        return Some(reason);
    }
    let request = &tables.shape_of(task).spec.requests;
    let said = all.beyond(tables, all.path(id), request, &[task]);
    let beyond = said.or_else(|| classes::beyond(view, all.path(id), task))?;
    let kinds = tables.kinds();
    Some(Reason::QueueFull {
        queue: tables.queue(beyond.at).spec.name.clone(),
        need: kinds.amount(beyond.kind, beyond.need),
        left: kinds.amount(beyond.kind, beyond.left.max(0)),
    })
}

/// The queue above that these tasks together would take beyond its ceiling, and in what.
fn full_above(view: View<'_>, id: QueueId, tasks: &[TaskId]) -> Option<(QueueId, Kind)> {
    let (tables, all) = (view.tables, &view.state.capacity);
    let request = requests_of(tables, tasks);
    let above = || all.path(id).skip(1);
    let of_classes = || {
        let mut tasks = tasks.iter();
        tasks.find_map(|task| classes::beyond(view, above(), *task))
    };
    let beyond = all.beyond(tables, above(), &request, tasks);
    let beyond = beyond.or_else(of_classes)?;
    Some((beyond.at, beyond.kind))
}

/// A queue that is asked for more than its ceiling leaves.
struct Beyond {
    at: QueueId,
    kind: Kind,
    need: i64,
    /// What it has left; less than nothing where its ceiling was lowered.
    left: i64,
}

/// The most that a queue may have of a kind, where there is such a limit: the lower of its ceiling and of
/// what others' guarantees leave.
fn ceiling_of(tables: &Tables, queue: &Queue, row: &Row, kind: Kind) -> Option<i64> {
    limit(tables, queue, kind, row.real.get(&kind).copied()?)
}

fn enqueueable(view: View<'_>, id: GangId) -> Vote {
    let (tables, all) = (view.tables, &view.state.capacity);
    let gang = tables.gang(id);
    let Some(queue) = gang.queue else {
        return Vote::Abstain;
    };
    let refused = not_open(tables.queue(queue)).or_else(|| all.misplaced(tables, queue));
    if let Some(reason) = refused {
        return Vote::Reject(reason);
    }
    if let Some(reason) = classes::enqueueable(view, all.path(queue), id) {
        return Vote::Reject(reason);
    }
    let Some(min) = &gang.spec.min_resources else {
        return Vote::Permit;
    };
    for (at, row) in all.path(queue) {
        let queue = tables.queue(at);
        let (used, inqueue, elastic) = all.sums(queue);
        let is_beyond = |kind, amount| {
            ceiling_of(tables, queue, row, kind).is_some_and(|ceiling| amount > ceiling)
        };
        let is_too_much = |amounts: &Vector| {
            let mut amounts = amounts.entries();
            amounts.any(|(kind, amount)| is_beyond(kind, amount))
        };
        let mut wanted = min.plus(used).plus(inqueue).minus(elastic);
        if is_too_much(inqueue) {
            let gangs = all.gangs_below(tables, at);
            let in_vain = row.in_vain.of(view, gangs, Gang::inqueue, is_too_much);
            wanted.sub(in_vain);
        }
        let short = insufficient(tables, min, |kind| is_beyond(kind, wanted.get(kind)));
        if !short.is_empty() {
            let queue = queue.spec.name.clone();
            return Vote::Reject(Reason::QueueQuota { queue, short });
        }
    }
    Vote::Permit
}

/// Whether the queue, with these tasks, is within its own ceiling, and in something within what it
/// deserves; in a tree the queues above it may answer for the latter. Their ceilings are no question here:
/// who goes for the tasks may bring them within these.
fn preemptive(view: View<'_>, id: QueueId, tasks: &[TaskId]) -> bool {
    let (tables, all) = (view.tables, &view.state.capacity);
    if not_open(tables.queue(id)).is_some() || all.misplaced(tables, id).is_some() {
        return false;
    }
    let request = requests_of(tables, tasks);
    let own = || all.path(id).take(1);
    let of_class = |task| classes::beyond(view, own(), task).is_some();
    if all.beyond(tables, own(), &request, tasks).is_some() || tasks.iter().copied().any(of_class) {
        return false;
    }
    let deserves = |(at, row): (QueueId, &Row)| {
        request.entries().any(|(kind, need)| {
            let future = all.held_by_others(tables, at, kind, tasks);
            let future = future.saturating_add(need);
            let deserved = row.deserved.get(kind);
            // Amounts that are both nothing say nothing.
            need > 0 && future <= deserved && (future > 0 || deserved > 0)
        })
    };
    let level = if all.is_tree {
        view.config.capacity.level
    } else {
        0
    };
    let mut path = all.path(id).filter(|(at, _)| Some(*at) != all.root);
    let in_something = |at| deserves(at) || classes::is_within_deserved(tables, at, tasks);
    path.by_ref().take(level + 1).any(in_something)
}
