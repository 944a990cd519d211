//! Room for a gang by evicting bundles: first tasks that their gangs can spare, then gangs as a whole, so
//! that nobody is left with half a gang that holds room for nothing.
//!
//! The room lies together: in one hyper-node, where the gang must be close together. Of those that are
//! looked at, the one where it costs the least is cleared, and no task and no gang goes there without
//! whom the room would do as well. Where no room can be made nothing changes.

mod claims;
mod elsewhere;
mod promises;
mod worth;

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use model::{GangId, NodeId, Phase, QueueId, ShapeId, TaskId};

use crate::actions::reclaim::starving;
use crate::actions::waiting::{Asking, waiting_tasks};
use crate::arguments::{Asked, Switched};
use crate::clearing::alike;
use crate::cycle::{Cycle, Turn};
use crate::domains::{self, Scope};
use crate::plugin::{Claimant, View};
use crate::plugins::{OfRoles, can_be_spared, missing};
use crate::rules::Config;
use crate::settings::Difference;
use crate::victims::{Against, Search};

use worth::Worth;

/// How far an action looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// How many hyper-nodes are tried for a gang; the plugin `network-topology-aware` may say fewer.
    domains: usize,
    /// Whether gangs may go as a whole.
    whole: Switched,
}

impl Default for Reach {
    fn default() -> Self {
        Reach {
            domains: 8,
            whole: Switched::On,
        }
    }
}

/// The most hyper-nodes that may be asked for.
pub(crate) const DOMAINS_MAX: i64 = 1_000;

impl Reach {
    /// Reads an action's arguments.
    pub(crate) fn read(asked: &mut Asked<'_>) -> Reach {
        let domains = asked.whole("maxDomains", 8, 1, DOMAINS_MAX);
        Reach {
            domains: usize::try_from(domains).unwrap_or(1),
            whole: asked.flag("allowWholeBundle", Switched::On),
        }
    }
}

/// Lets one gang look for such room by tasks alone that their gangs can spare.
pub(super) fn clear_one_by_one(
    cycle: &mut Cycle<'_, '_>,
    against: Against,
    queue: QueueId,
    gang: GangId,
) {
    let hunt = Hunt {
        against,
        cause: against.cause(),
        reach: Reach {
            whole: Switched::Off,
            ..Reach::default()
        },
        heeds_gangs: false,
        queue,
        gang,
    };
    hunt.clear(cycle);
}

/// Lets every gang that lacks tasks look for such room.
pub(super) fn run(
    cycle: &mut Cycle<'_, '_>,
    against: Against,
    cause: &'static str,
    reach: fn(&Config) -> Reach,
) {
    let gangs = starving(cycle);
    cycle.take_turns(gangs, |cycle, queue, gang| {
        if against == Against::OtherQueues && cycle.rules.overused(cycle.view(), queue).is_some() {
            return Turn::Done;
        }
        let hunt = Hunt {
            against,
            cause,
            reach: reach(cycle.view().config),
            heeds_gangs: true,
            queue,
            gang,
        };
        hunt.clear(cycle);
        Turn::Done
    });
}

/// One gang's search.
struct Hunt {
    against: Against,
    cause: &'static str,
    reach: Reach,
    /// Whether a gang that says that it may not be evicted loses nothing, whatever its pods say: upstream looks
    /// at this in the two actions only that clear whole places.
    heeds_gangs: bool,
    queue: QueueId,
    gang: GangId,
}

/// What goes together.
#[derive(Clone, Debug)]
struct Bundle {
    gang: GangId,
    tasks: Vec<TaskId>,
    is_whole: bool,
}

/// What clearing one place costs, the cheapest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Price {
    /// The priority of the most important gang that loses a task.
    priority: i32,
    /// Gangs that go as a whole.
    gangs: usize,
    /// Tasks that go.
    tasks: usize,
}

/// What a gang wants: the same however many have gone for it, as long as nothing is promised to it.
struct Wanted {
    /// Its tasks that wait, in their order; those with which it starts first, where these have to be of certain
    /// roles.
    waiting: Vec<TaskId>,
    /// How many of each shape, at most as many as it may start with.
    shapes: BTreeMap<ShapeId, u32>,
    /// With how many more it starts.
    needed: u32,
}

impl Wanted {
    /// The first ones, as many as it starts with.
    fn first(&self) -> &[TaskId] {
        let many = self.waiting.len().min(self.needed as usize);
        &self.waiting[..many]
    }
}

/// Where room is sought.
struct Place {
    nodes: Vec<NodeId>,
    /// The place of each node among them.
    order: BTreeMap<NodeId, usize>,
}

impl Place {
    fn of(nodes: Vec<NodeId>) -> Place {
        let order = nodes.iter().copied().zip(0..).collect();
        Place { nodes, order }
    }
}

/// How far clearing a place has come.
struct Progress {
    wanted: Wanted,
    /// The first of the tasks that wait, for whom rules are asked.
    first: TaskId,
    place: Place,
    gone: Vec<Bundle>,
    /// Whether the place has room for enough of the gang, as far as amounts say.
    has_room: bool,
    /// Whether enough of the gang is promised room.
    is_done: bool,
}

/// For what somebody goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sought {
    /// Amounts that the place lacks.
    Room,
    /// Whatever else it lacks.
    Rest,
}

/// Who goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Going {
    /// Tasks that their gang can spare, one by one.
    Spare,
    /// A gang with all that it holds.
    Whole,
}

/// Who goes, and what room is promised then.
struct Found {
    price: Price,
    victims: Vec<TaskId>,
    promises: Vec<(TaskId, NodeId)>,
}

impl Hunt {
    fn clear(&self, cycle: &mut Cycle<'_, '_>) {
        let mut best: Option<Found> = None;
        for scope in self.scopes(cycle) {
            let mark = cycle.trial.mark();
            let found = cycle.within(scope, |cycle| self.clear_here(cycle));
            cycle.trial.rewind(mark);
            if let Some(found) = found
                && best
                    .as_ref()
                    .is_none_or(|best| self.is_better(cycle, &found, best))
            {
                best = Some(found);
            }
            if best.is_some() && self.is_as_upstream(cycle) {
                break;
            }
        }
        let Some(found) = best.filter(|found| !found.victims.is_empty()) else {
            return;
        };
        for victim in found.victims {
            cycle.trial.evict(victim, self.gang, self.cause);
            cycle.evictions += 1;
        }
        for (task, node) in found.promises {
            cycle.promise(task, node);
        }
        cycle.moved();
        let tasks = cycle.trial.tables().gang(self.gang).count(Phase::Pipelined);
        let outcome = cycle.kept_for(self.gang, tasks);
        cycle.outcomes.insert(self.gang, outcome);
    }

    /// Whether the first place that can be cleared is, with all that was tried on the way.
    fn is_as_upstream(&self, cycle: &Cycle<'_, '_>) -> bool {
        cycle.rules.is_as_upstream(Difference::MinimalVictims)
    }

    /// Of two that cost the same the one whose first gang is served later goes, then the one that lacks
    /// less.
    fn is_better(&self, cycle: &Cycle<'_, '_>, found: &Found, best: &Found) -> bool {
        let view = cycle.view();
        let first = |found: &Found| view.tables.task(*found.victims.first()?).gang;
        found
            .price
            .cmp(&best.price)
            .then_with(|| match (first(found), first(best)) {
                (Some(a), Some(b)) if a != b => cycle.rules.victim_order(view, self.queue, a, b),
                _ => Ordering::Equal,
            })
            == Ordering::Less
    }

    fn wanted(&self, cycle: &Cycle<'_, '_>) -> Wanted {
        let mut waiting = waiting_tasks(cycle, self.gang, Asking::Something);
        waiting.extend(waiting_tasks(cycle, self.gang, Asking::Nothing));
        let tables = cycle.trial.tables();
        let of_roles = OfRoles::of(tables, self.gang);
        let mut shapes: BTreeMap<ShapeId, u32> = BTreeMap::new();
        match &of_roles {
            None => {
                for task in &waiting {
                    *shapes.entry(tables.task(*task).shape).or_default() += 1;
                }
            }
            Some(of_roles) => {
                let mut rows: BTreeMap<(ShapeId, &str), u32> = BTreeMap::new();
                for task in waiting.iter().map(|task| tables.task(*task)) {
                    *rows.entry((task.shape, &task.role)).or_default() += 1;
                }
                for ((shape, role), count) in rows {
                    *shapes.entry(shape).or_default() += count.min(of_roles.most(role));
                }
            }
        }
        if let Some(of_roles) = of_roles {
            of_roles.put_first(tables, &mut waiting);
        }
        Wanted {
            waiting,
            shapes,
            needed: missing(tables, self.gang).max(1),
        }
    }

    /// Where to look, those first that lack the fewest places. Upstream: the widest first.
    fn scopes(&self, cycle: &Cycle<'_, '_>) -> Vec<Option<Scope>> {
        let view = cycle.view();
        let row = view.tables.gang(self.gang);
        let Some(closeness) = &row.spec.closeness else {
            return vec![None];
        };
        let placed = domains::places(view, row.tasks.iter().copied());
        let Ok(allowed) = domains::allowed(view, closeness, &placed, None) else {
            return Vec::new();
        };
        if allowed.is_empty() {
            return vec![None];
        }
        let wanted = self.wanted(cycle);
        let mut scopes: Vec<(u32, u32, Scope)> = allowed
            .into_iter()
            .map(|(tier, scope)| (lacking(view, &wanted, scope.nodes()), tier, scope))
            .collect();
        // Stable: among equals the lower tier, then the first.
        match self.is_as_upstream(cycle) {
            true => scopes.sort_by_key(|(_, _, scope)| Reverse(scope.nodes().len())),
            false => scopes.sort_by_key(|(lacking, tier, _)| (*lacking, *tier)),
        }
        let most = usize::try_from(view.config.network.evicted).unwrap_or(usize::MAX);
        scopes.truncate(self.reach.domains.min(most));
        scopes
            .into_iter()
            .map(|(_, _, scope)| Some(scope))
            .collect()
    }

    fn place_of(&self, cycle: &Cycle<'_, '_>) -> Place {
        match &cycle.scope {
            Some(scope) => Place::of(scope.nodes().to_vec()),
            None => Place::of(cycle.trial.tables().nodes().map(|(id, _)| id).collect()),
        }
    }

    /// Evicts bundles until the gang has room within the scope, and its queue the share; spares whom it does
    /// not need.
    fn clear_here(&self, cycle: &mut Cycle<'_, '_>) -> Option<Found> {
        let wanted = self.wanted(cycle);
        let first = *wanted.waiting.first()?;
        if !self.may_claim(cycle, &wanted) {
            return None;
        }
        let place = self.place_of(cycle);
        let mut here = Progress {
            has_room: lacking(cycle.view(), &wanted, &place.nodes) == 0,
            is_done: self.promise(cycle, &wanted, &place.nodes),
            gone: Vec::new(),
            first,
            wanted,
            place,
        };
        if !here.is_done {
            self.free_claims(cycle, &here.wanted.waiting, &mut here.gone);
            here.is_done =
                !here.gone.is_empty() && self.promise(cycle, &here.wanted, &here.place.nodes);
        }
        for going in [Going::Spare, Going::Whole] {
            if going == Going::Whole && self.reach.whole == Switched::Off {
                break;
            }
            self.take(cycle, &mut here, (Sought::Room, going));
            self.take_elsewhere(cycle, &mut here, going);
            self.take(cycle, &mut here, (Sought::Rest, going));
        }
        let Progress {
            wanted,
            place,
            mut gone,
            is_done,
            ..
        } = here;
        if !is_done {
            return None;
        }
        if !self.is_as_upstream(cycle) {
            self.spare(cycle, &wanted, &place.nodes, &mut gone);
        }
        Some(self.found(cycle, &gone))
    }

    /// Evicts those in the place, in their turn, as long as that is of use.
    fn take(
        &self,
        cycle: &mut Cycle<'_, '_>,
        here: &mut Progress,
        (sought, going): (Sought, Going),
    ) {
        let is_over = |here: &Progress| here.is_done || sought == Sought::Room && here.has_room;
        if is_over(here) {
            return;
        }
        let in_turn = self
            .search(cycle, here.first)
            .who_may_go_on(cycle.view(), &here.place.nodes);
        for gang in self.gangs_in_turn(cycle, &in_turn, (here, going)) {
            if is_over(here) {
                return;
            }
            let helps = !here.has_room || self.makes_share(cycle, &here.wanted, gang);
            let bundles = match going {
                Going::Spare => self.spare_tasks(cycle, here.first, gang, &here.place),
                Going::Whole => self.rest_of(cycle, here.first, gang),
            };
            for bundle in bundles.into_iter().filter(|_| helps) {
                if !is_over(here) {
                    self.try_bundle(cycle, here, bundle);
                }
            }
        }
    }

    /// Evicts the bundle if it may go, and looks whether that is enough.
    fn try_bundle(&self, cycle: &mut Cycle<'_, '_>, here: &mut Progress, bundle: Bundle) {
        if !self.evict(cycle, here.first, &bundle) {
            return;
        }
        here.gone.push(bundle);
        let (wanted, nodes) = (&here.wanted, &here.place.nodes);
        here.has_room |= lacking(cycle.view(), wanted, nodes) == 0;
        here.is_done = here.has_room && self.promise(cycle, wanted, nodes);
    }

    fn found(&self, cycle: &Cycle<'_, '_>, gone: &[Bundle]) -> Found {
        let tables = cycle.trial.tables();
        let priorities = gone.iter().map(|bundle| tables.gang(bundle.gang).priority);
        let victims: Vec<TaskId> = gone
            .iter()
            .flat_map(|bundle| &bundle.tasks)
            .copied()
            .collect();
        let price = Price {
            priority: priorities.max().unwrap_or(i32::MIN),
            gangs: gone.iter().filter(|bundle| bundle.is_whole).count(),
            tasks: victims.len(),
        };
        let tasks = tables.gang(self.gang).tasks.iter().copied();
        let promised = tasks.filter(|id| tables.task(*id).phase == Phase::Pipelined);
        Found {
            price,
            victims,
            promises: promised
                .filter_map(|id| Some((id, tables.task(id).node?)))
                .collect(),
        }
    }

    /// Whether it is worth while to look: each of those who wait may by itself, and where all are alike those
    /// may together with whom the gang starts. Who counts like the one before is not asked again.
    fn may_claim(&self, cycle: &Cycle<'_, '_>, wanted: &Wanted) -> bool {
        let (mut before, mut kinds): (Option<TaskId>, u32) = (None, 0);
        let may = wanted.waiting.iter().all(|task| {
            let last = before.replace(*task);
            let is_known = last.is_some_and(|last| alike(cycle, last, *task));
            kinds += u32::from(!is_known);
            is_known || self.may_have(cycle, &[*task])
        });
        may && (kinds > 1 || self.may_have(cycle, wanted.first()))
    }

    /// Whether these tasks together may take what others have, beside what is promised to others of the gang.
    fn may_have(&self, cycle: &Cycle<'_, '_>, tasks: &[TaskId]) -> bool {
        let view = cycle.view();
        let may = tasks.iter().all(|task| view.tables.task(*task).preempts);
        let asks_the_queue = self.against == Against::OtherQueues;
        may && (!asks_the_queue || cycle.rules.preemptive(view, self.queue, tasks))
    }

    /// Whether a gang that goes is of use where there is room for all: below a queue that is full it is where
    /// it is below it, too.
    fn makes_share(&self, cycle: &Cycle<'_, '_>, wanted: &Wanted, gang: GangId) -> bool {
        let view = cycle.view();
        let full = (self.against == Against::OtherQueues)
            .then(|| cycle.rules.full_above(view, self.queue, wanted.first()))
            .flatten();
        let queue = view.tables.gang(gang).queue;
        let mut way = queue
            .into_iter()
            .flat_map(|queue| view.tables.up_from(queue));
        full.is_none_or(|(full, _)| way.any(|at| at == full))
    }

    fn search<'r>(&self, cycle: &Cycle<'r, '_>, task: TaskId) -> Search<'r> {
        let priority = cycle.trial.tables().gang(self.gang).priority;
        Search {
            rules: cycle.rules,
            against: self.against,
            claimant: self.claimant(task),
            wanting: 1,
            ceiling: match self.against {
                Against::OtherQueues => i32::MAX,
                Against::OtherGangs | Against::OwnTasks => priority.saturating_sub(1),
            },
        }
    }

    fn claimant(&self, task: TaskId) -> Claimant {
        Claimant {
            task,
            gang: self.gang,
            queue: self.queue,
        }
    }

    /// The gangs of these tasks that may lose something, in the order in which they would.
    fn gangs_in_turn(
        &self,
        cycle: &Cycle<'_, '_>,
        in_turn: &[TaskId],
        (here, going): (&Progress, Going),
    ) -> Vec<GangId> {
        let view = cycle.view();
        let mut seen = BTreeSet::new();
        let gangs = in_turn
            .iter()
            .filter_map(|task| view.tables.task(*task).gang);
        let may_lose = |gang: &GangId| {
            !self.heeds_gangs || view.tables.gang(*gang).spec.preemptable != Some(false)
        };
        let mut gangs: Vec<GangId> = gangs
            .filter(|gang| may_lose(gang) && seen.insert(*gang))
            .collect();
        if going == Going::Whole {
            let worth = |gang: &GangId| (*gang, Worth::of(view.tables, *gang, here));
            let worths: BTreeMap<GangId, Worth> = gangs.iter().map(worth).collect();
            gangs.sort_by(|a, b| {
                let more = || worths[b].cmp(&worths[a]);
                cycle
                    .rules
                    .whole_order(view, self.against, self.queue, (*a, *b), more)
            });
        }
        gangs
    }

    /// The gang's tasks on the nodes, one by one: as many as it can spare go.
    fn spare_tasks(
        &self,
        cycle: &Cycle<'_, '_>,
        task: TaskId,
        gang: GangId,
        place: &Place,
    ) -> Vec<Bundle> {
        let search = self.search(cycle, task);
        let tasks = search.in_turn_of(cycle.view(), gang, &place.order);
        let one = |task| Bundle {
            gang,
            tasks: vec![task],
            is_whole: false,
        };
        tasks.into_iter().map(one).collect()
    }

    /// Whatever the gang still holds, wherever it is, if all of that may go.
    fn rest_of(&self, cycle: &Cycle<'_, '_>, task: TaskId, gang: GangId) -> Vec<Bundle> {
        let view = cycle.view();
        let tasks = view.tables.gang(gang).tasks.iter().copied();
        let held: Vec<TaskId> = tasks
            .filter(|task| view.tables.task(*task).phase.is_allocated())
            .collect();
        let search = self.search(cycle, task);
        let may_go = !held.is_empty() && held.iter().all(|task| search.may_go(view, *task));
        let bundle = Bundle {
            gang,
            tasks: held,
            is_whole: true,
        };
        may_go.then_some(bundle).into_iter().collect()
    }

    /// Evicts the bundle if the rules let all of it go now.
    fn evict(&self, cycle: &mut Cycle<'_, '_>, task: TaskId, bundle: &Bundle) -> bool {
        let view = cycle.view();
        let claimant = self.claimant(task);
        let let_go = cycle
            .rules
            .bundle_may_go(view, self.against, claimant, &bundle.tasks);
        let is_spare = || can_be_spared(view, claimant, bundle.tasks[0]);
        if !let_go || !bundle.is_whole && !is_spare() {
            return false;
        }
        for task in &bundle.tasks {
            cycle.trial.evict(*task, self.gang, self.cause);
        }
        true
    }

    /// Lets those go on without whom there is room as well, the last chosen first.
    fn spare(
        &self,
        cycle: &mut Cycle<'_, '_>,
        wanted: &Wanted,
        nodes: &[NodeId],
        gone: &mut Vec<Bundle>,
    ) {
        for at in (0..gone.len()).rev() {
            let bundle = &gone[at];
            let went_whole = |other: &Bundle| other.is_whole && other.gang == bundle.gang;
            // A task goes on only in a gang that does.
            if !bundle.is_whole && gone.iter().any(went_whole) {
                continue;
            }
            let mark = cycle.trial.mark();
            let tables = cycle.trial.tables();
            let tasks = tables.gang(self.gang).tasks.iter().copied();
            let promised: Vec<TaskId> = tasks
                .filter(|id| tables.task(*id).phase == Phase::Pipelined)
                .collect();
            for task in promised {
                cycle.trial.unpromise(task);
            }
            for task in &gone[at].tasks {
                cycle.trial.spare(*task);
            }
            if self.promise(cycle, wanted, nodes) {
                gone.remove(at);
            } else {
                cycle.trial.rewind(mark);
            }
        }
    }
}

/// How many of the needed tasks find no room on these nodes once whoever is leaving has left, each
/// shape counted by itself.
fn lacking(view: View<'_>, wanted: &Wanted, nodes: &[NodeId]) -> u32 {
    let mut found = 0_u32;
    for (shape, count) in &wanted.shapes {
        let held = &view.tables.shape(*shape).held;
        let mut slots = 0_i64;
        for node in nodes {
            let row = view.tables.node(*node);
            let wanted = held.entries().filter(|(_, need)| *need > 0);
            let fits = wanted.map(|(kind, need)| row.free_later(kind).max(0) / need);
            slots = slots.saturating_add(fits.min().unwrap_or(1));
            if slots >= i64::from(*count) {
                break;
            }
        }
        found += u32::try_from(slots).unwrap_or(u32::MAX).min(*count);
    }
    wanted.needed.saturating_sub(found)
}
