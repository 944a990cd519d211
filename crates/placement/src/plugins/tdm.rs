//! TDM, time division: nodes of a revocable zone are lent out in a window of each day, to tasks that
//! bear it; when the window closes they leave, some at a time (A.6).
//!
//! Upstream begins a window that ends on the next day with today's start: it is closed from midnight to
//! its end. Here it is one window.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Disruption, Gang, GangId, Node, NodeId, Phase, Reason, Refusal, Shape, TaskId, Time};

use crate::arguments::Asked;
use crate::plugin::{Claimant, Leaver, Plugin, Score, View};
use crate::plugins::gang;
use crate::rules::Config;
use crate::shuffling::Protection;

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "tdm",
    configure: Some(configure),
    job_order: Some(job_order),
    job_pipelined: gang::PLUGIN.job_pipelined,
    job_starving: Some(job_starving),
    suits: Some(suits),
    score: Some(score),
    preemptable: Some(preemptable),
    preempted_together: Some(preempted_together),
    preempts_like: Some(preempts_like),
    victim_tasks: Some(victim_tasks),
    victims_at: Some(victims_at),
    spares_shuffled: Some(within_budgets),
    turned: Some(turned),
    turns_at: Some(turns_at),
    ..Plugin::NONE
};

/// The label by which a node is in a zone.
const ZONE: &str = "volcano.sh/revocable-zone";

/// How the zones are called in the arguments.
const PREFIX: &str = "tdm.revocable-zone.";

/// A part of each day, in microseconds since local midnight; the end does not belong to it. One that ends
/// no later than it begins goes on over midnight.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Window {
    from: i64,
    to: i64,
    /// As it is written.
    text: Arc<str>,
}

impl Window {
    /// `22:00-06:00`
    fn read(text: &str) -> Option<Window> {
        let (from, to) = text.split_once('-')?;
        let from = time_of_day(from.trim())?;
        let to = time_of_day(to.trim())?;
        Some(Window {
            from,
            to,
            text: text.into(),
        })
    }

    fn is_open(&self, of_day: i64) -> bool {
        match self.from < self.to {
            true => self.from <= of_day && of_day < self.to,
            false => self.from <= of_day || of_day < self.to,
        }
    }
}

fn time_of_day(text: &str) -> Option<i64> {
    let (hour, minute) = text.split_once(':')?;
    let number = |text: &str, below: i64| {
        let is_plain = matches!(text.len(), 1 | 2) && text.bytes().all(|it| it.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_plain);
        number.filter(|number: &i64| *number < below)
    };
    Some((number(hour, 24)? * 60 + number(minute, 60)?) * 60_000_000)
}

/// When each zone is open, and how long tasks have between one leaving and the next.
#[derive(Clone, Debug)]
pub(crate) struct Zones {
    windows: BTreeMap<String, Window>,
    period_ms: i64,
}

impl Default for Zones {
    fn default() -> Self {
        Zones {
            windows: BTreeMap::new(),
            period_ms: 60_000,
        }
    }
}

impl Zones {
    /// Whether the zone is open then; one without a window is not.
    fn is_open(&self, config: &Config, zone: &str, at: Time) -> bool {
        let window = self.windows.get(zone);
        window.is_some_and(|window| window.is_open(config.local.of_day(at)))
    }

    /// When the zone opens next; never where it has no window.
    pub(crate) fn opens_at(&self, config: &Config, zone: &str, now: Time) -> Option<Time> {
        let window = self.windows.get(zone)?;
        // Where clocks are set before that, it is looked at again from there.
        let sets = config.local.changes().len();
        let next = |at: &Time| Some(config.local.next(window.from, *at));
        let times = std::iter::successors(next(&now), next).take(sets + 1);
        let mut times = times.filter(|at| window.is_open(config.local.of_day(*at)));
        times.next()
    }
}

fn configure(asked: &mut Asked<'_>, config: &mut Config) {
    let mut zones = Zones::default();
    for key in asked.keys() {
        let Some(zone) = key.strip_prefix(PREFIX) else {
            continue;
        };
        if let Some(window) = asked.read(&key, "a window such as 22:00-06:00", Window::read) {
            zones.windows.insert(zone.to_owned(), window);
        }
    }
    let period = asked.lasting_ms("tdm.evict.period");
    zones.period_ms = period.unwrap_or(zones.period_ms);
    config.tdm = zones;
}

fn zone_of(node: &Node) -> Option<&str> {
    node.spec.labels.get(ZONE).filter(|zone| !zone.is_empty())
}

/// Whoever may be evicted comes last.
fn job_order(view: View<'_>, a: GangId, b: GangId) -> std::cmp::Ordering {
    let is_preemptable = |id| view.tables.gang(id).spec.preemptable == Some(true);
    is_preemptable(a).cmp(&is_preemptable(b))
}

/// A gang that may not be evicted itself may take others' room for any task that it lacks.
fn job_starving(view: View<'_>, id: GangId) -> bool {
    let gang = view.tables.gang(id);
    gang.spec.preemptable != Some(true) && gang.count(Phase::Pending) > 0
}

fn suits(view: View<'_>, shape: &Shape, node: NodeId) -> Option<Refusal> {
    let zone = zone_of(view.tables.node(node))?;
    if !view.config.tdm.is_open(view.config, zone, view.state.now) {
        let window = view.config.tdm.windows.get(zone);
        return Some(Refusal::ZoneClosed {
            zone: zone.into(),
            window: window.map(|window| window.text.clone()),
        });
    }
    (!shape.spec.revocable).then_some(Refusal::Revocable)
}

/// Whoever bears it goes to a lent node first.
fn score(view: View<'_>, shape: &Shape, node: NodeId) -> Score {
    let is_lent = zone_of(view.tables.node(node)).is_some();
    match is_lent && shape.spec.revocable {
        true => 100_000_000,
        false => 0,
    }
}

/// Whether the task takes room from nobody: it may be evicted itself, or bears nodes that are lent out.
fn is_humble(view: View<'_>, task: TaskId) -> bool {
    view.tables.task(task).preemptable || view.tables.shape_of(task).spec.revocable
}

/// Who may not be evicted takes room from those who may, on nodes that are nobody else's; for one task, one of
/// each gang that does not say how many it can miss.
fn preemptable(view: View<'_>, claimant: Claimant, tasks: &[TaskId], allowed: &mut [bool]) {
    on_own_nodes(view, claimant, tasks, allowed);
    within(view, 1, tasks, allowed);
}

/// The same where gangs go as a whole: of one that says nothing all may.
fn preempted_together(view: View<'_>, claimant: Claimant, tasks: &[TaskId], allowed: &mut [bool]) {
    on_own_nodes(view, claimant, tasks, allowed);
    within_budgets(view, tasks, allowed);
}

fn on_own_nodes(view: View<'_>, claimant: Claimant, tasks: &[TaskId], allowed: &mut [bool]) {
    let is_humble = is_humble(view, claimant.task);
    for (task, allowed) in tasks.iter().zip(allowed.iter_mut()) {
        let task = view.tables.task(*task);
        let is_lent = task
            .node
            .is_some_and(|node| zone_of(view.tables.node(node)).is_some());
        *allowed &= !is_humble && task.preemptable && task.phase == Phase::Running && !is_lent;
    }
}

fn preempts_like(view: View<'_>, gang: GangId) -> u64 {
    let mut tasks = view.tables.gang(gang).tasks.iter();
    let first = tasks.next().map(|task| is_humble(view, *task));
    let is_like = |task: &TaskId| Some(is_humble(view, *task)) == first;
    match tasks.all(is_like) {
        true => u64::from(first == Some(true)),
        false => 2 + u64::from(gang.0),
    }
}

/// How many more tasks of the gang may go, if it says so.
fn spare(gang: &Gang) -> Option<u32> {
    let total = u32::try_from(gang.tasks.len()).unwrap_or(u32::MAX);
    let running = gang.count(Phase::Running);
    let over = gang.count(Phase::Succeeded) + gang.count(Phase::Failed);
    Some(match gang.spec.disruption? {
        Disruption::MinAvailable(portion) => running.saturating_sub(portion.of(total)),
        Disruption::MaxUnavailable(portion) => {
            let missing = total.saturating_sub(over + running);
            portion.of(total).saturating_sub(missing)
        }
    })
}

/// No gang loses more tasks than it says it can.
fn within_budgets(view: View<'_>, tasks: &[TaskId], allowed: &mut [bool]) {
    within(view, u32::MAX, tasks, allowed);
}

/// The same, and one that says nothing no more than that.
fn within(view: View<'_>, unsaid: u32, tasks: &[TaskId], allowed: &mut [bool]) {
    let mut left: BTreeMap<GangId, u32> = BTreeMap::new();
    for (task, allowed) in tasks.iter().zip(allowed) {
        let Some(gang) = view.tables.task(*task).gang.filter(|_| *allowed) else {
            continue;
        };
        let spare = || spare(view.tables.gang(gang)).unwrap_or(unsaid);
        let left = left.entry(gang).or_insert_with(spare);
        *allowed = *left > 0;
        *left = left.saturating_sub(1);
    }
}

/// Tasks on nodes of zones that are closed now, the least important first.
fn overstaying(view: View<'_>) -> Vec<TaskId> {
    let zones = &view.config.tdm;
    let mut tasks = Vec::new();
    for (_, node) in view.tables.nodes() {
        let Some(zone) = zone_of(node).filter(|zone| zones.windows.contains_key(*zone)) else {
            continue;
        };
        if zones.is_open(view.config, zone, view.state.now) {
            continue;
        }
        let theirs = node.tasks.iter().copied();
        tasks.extend(theirs.filter(|task| {
            let row = view.tables.task(*task);
            row.preemptable && row.phase == Phase::Running && row.gang.is_some()
        }));
    }
    tasks.sort_by_key(|task| {
        let row = view.tables.task(*task);
        let gang = row.gang.map(|gang| view.tables.gang(gang).priority);
        (gang, row.priority, *task)
    });
    tasks
}

/// The last time that tasks were sent away, unless that was before the clock was set back.
fn last(view: View<'_>) -> Option<Time> {
    let at = view.tables.shuffled_at(PLUGIN.name);
    at.filter(|at| *at <= view.state.now)
}

/// Of each gang as many as its budget lets go, one where it has none; nobody within a period.
fn victim_tasks(view: View<'_>, protection: &Protection<'_>) -> Vec<Leaver> {
    let period = view.config.tdm.period_ms;
    if last(view).is_some_and(|at| view.state.now < at.plus_millis(period)) {
        return Vec::new();
    }
    let mut left: BTreeMap<Option<GangId>, u32> = BTreeMap::new();
    let mut going = Vec::new();
    for task in protection.let_go(&overstaying(view)) {
        let row = view.tables.task(task);
        let spare = || row.gang.and_then(|gang| spare(view.tables.gang(gang)));
        let left = left.entry(row.gang).or_insert_with(|| spare().unwrap_or(1));
        let Some(node) = row.node.filter(|_| *left > 0) else {
            continue;
        };
        *left -= 1;
        let node = view.tables.node(node);
        let reason = Reason::ZoneClosed {
            zone: zone_of(node).unwrap_or_default().into(),
            node: node.spec.name.clone(),
        };
        going.push((task, Arc::new(reason)));
    }
    going
}

fn victims_at(view: View<'_>) -> Option<Time> {
    if overstaying(view).is_empty() {
        return None;
    }
    // Whoever is protected now may not be for ever.
    let period = view.config.tdm.period_ms;
    let next = last(view).map(|at| at.plus_millis(period));
    let next = next.filter(|next| *next > view.state.now);
    next.or(Some(view.state.now.plus_millis(period)))
}

fn turned(view: View<'_>, before: Time) -> Vec<NodeId> {
    let zones = &view.config.tdm;
    let is_open = |zone: &str, at| zones.is_open(view.config, zone, at);
    let names = zones.windows.keys();
    let changed: Vec<&String> = names
        .filter(|zone| is_open(zone, before) != is_open(zone, view.state.now))
        .collect();
    if changed.is_empty() {
        return Vec::new();
    }
    let nodes = view.tables.nodes();
    let theirs = nodes.filter(|(_, node)| {
        zone_of(node).is_some_and(|zone| changed.iter().any(|changed| **changed == *zone))
    });
    theirs.map(|(id, _)| id).collect()
}

fn turns_at(view: View<'_>) -> Option<Time> {
    let windows = view.config.tdm.windows.values();
    let edges = windows.flat_map(|window| [window.from, window.to]);
    let next = edges.map(|edge| view.config.local.next(edge, view.state.now));
    let next = next.min()?;
    let has_zone = view.tables.nodes().any(|(_, node)| zone_of(node).is_some());
    has_zone.then_some(next)
}
