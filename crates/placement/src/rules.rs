//! The configuration compiled: for each hook the functions to ask, in tier order.

mod company;
mod entering;
mod nodes;
mod outside;
mod queues;
mod tiers;
mod victims;
mod waiting;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use model::{
    CardFamily, Counted, DomainId, GangId, Grant, LocalTime, NodeId, Ownership, QueueId, Reason,
    Shape, Tables, TaskId, Time,
};

use crate::actions::bundles::Reach;
use crate::actions::preempt::Comparison;
use crate::arguments::{Arguments, Asked, Complaint};
use crate::bonds::Bonds;
use crate::domains::DomainSums;
use crate::plugin::{Action, Plugin, Score, View, Vote};
use crate::plugins::{self, PLUGINS};
use crate::settings::{Difference, PluginSettings, Settings, Switch};

pub(crate) use company::Company;
use nodes::OfNodes;
use victims::Keepers;

/// Where a plugin stands in a configuration, both counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seat {
    /// Which tier.
    pub tier: usize,
    /// Which plugin of it.
    pub index: usize,
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is no such action: the whole configuration is rejected.
    UnknownAction {
        /// Which of the actions, from zero.
        index: usize,
        /// Its name.
        name: String,
    },
    /// Two plugins of a tier exclude each other: the whole configuration is rejected.
    HierarchyBesideProportion {
        /// The `drf` that is told to share by a hierarchy of queues.
        drf: Seat,
        /// The `proportion` in the same tier.
        proportion: Seat,
    },
    /// Two switches of a plugin exclude each other: the whole configuration is rejected.
    CardsBesideCards {
        /// The `deviceshare`.
        seat: Seat,
        /// The switches.
        keys: [&'static str; 2],
    },
    /// There is no such plugin: it is left out.
    UnknownPlugin {
        /// Where.
        seat: Seat,
        /// Its name.
        name: String,
    },
    /// An argument of an action does not count as it is written.
    ActionArgument {
        /// Whose.
        action: &'static str,
        /// Which.
        key: String,
        /// What is wrong with it.
        complaint: Complaint,
    },
    /// An argument of a plugin does not count as it is written.
    Argument {
        /// Whose.
        seat: Seat,
        /// Which.
        key: String,
        /// What is wrong with it.
        complaint: Complaint,
    },
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Problem::UnknownAction { name, .. } => {
                write!(f, "failed to find Action {name}, ignore it")
            }
            Problem::HierarchyBesideProportion { drf, .. } => write!(
                f,
                "tier {} has proportion and drf with enableHierarchy, which exclude each other",
                drf.tier + 1
            ),
            Problem::CardsBesideCards { keys: [a, b], .. } => {
                write!(f, "{a} and {b} are both on, which exclude each other")
            }
            Problem::UnknownPlugin { name, .. } => write!(f, "Failed to get plugin {name}."),
            Problem::ActionArgument { key, complaint, .. }
            | Problem::Argument { key, complaint, .. } => write!(f, "{key}: {complaint}"),
        }
    }
}

/// The plugins' arguments, read once.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub(crate) binpack: plugins::binpack::Weights,
    pub(crate) bonds: Bonds,
    pub(crate) capacity: plugins::capacity::Setup,
    pub(crate) devices: plugins::deviceshare::Sharing,
    pub(crate) extender: Option<plugins::extender::Extender>,
    pub(crate) gangpreempt: Reach,
    pub(crate) gangreclaim: Reach,
    pub(crate) fit: plugins::resource_strategy_fit::Fit,
    pub(crate) network: plugins::network_topology_aware::Weights,
    pub(crate) nodegroup: plugins::nodegroup::Setup,
    pub(crate) nodeorder: plugins::nodeorder::Weights,
    pub(crate) numa: plugins::numa_aware::Setup,
    pub(crate) overcommit: plugins::overcommit::Factor,
    pub(crate) predicates: plugins::predicates::Checks,
    pub(crate) preempt: Comparison,
    pub(crate) rescheduling: plugins::rescheduling::Setup,
    pub(crate) sla: plugins::sla::Patience,
    pub(crate) starvation: plugins::gang::Bound,
    pub(crate) task_topology: plugins::task_topology::Weight,
    pub(crate) tdm: plugins::tdm::Zones,
    pub(crate) usage: plugins::usage::Setup,
    pub(crate) volumes: plugins::predicates::volumes::Setup,
    /// What is done as upstream does it.
    pub(crate) as_upstream: BTreeSet<Difference>,
    /// What local clocks show.
    pub(crate) local: LocalTime,
}

/// What the plugins compute at the start of a cycle.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The time that the cycle was told.
    pub(crate) now: Time,
    pub(crate) capacity: plugins::capacity::Capacities,
    pub(crate) drf: plugins::drf::Tree,
    /// What is kept of devices that several nodes reach.
    pub(crate) kept: plugins::predicates::devices::promises::Kept,
    /// What is kept in vain of the whole cluster.
    pub(crate) overcommit: plugins::reserved::InVain,
    pub(crate) proportion: plugins::proportion::Shares,
    pub(crate) resourcequota: plugins::resourcequota::Unmade,
    pub(crate) task_topology: plugins::task_topology::Topologies,
}

impl State {
    /// At a time, with nothing found out yet.
    pub(crate) fn at(now: Time) -> State {
        State {
            now,
            ..State::default()
        }
    }
}

/// A compiled configuration.
#[derive(Clone)]
pub struct Rules {
    pub(crate) actions: Vec<Action>,
    tiers: Vec<Vec<Plugin>>,
    flat: Vec<Plugin>,
    keepers: Keepers,
    of_nodes: OfNodes,
    pub(crate) config: Config,
}

impl Rules {
    /// Compiles a configuration. An unknown action refuses all of it; an unknown plugin is left out
    /// and reported.
    pub fn compile(settings: &Settings) -> Result<(Rules, Vec<Problem>), Problem> {
        let Settings {
            actions,
            tiers,
            action_arguments,
            as_upstream,
        } = settings;
        let mut problems = Vec::new();
        let mut rules = Rules {
            actions: Vec::new(),
            tiers: Vec::new(),
            flat: Vec::new(),
            keepers: Keepers::default(),
            of_nodes: OfNodes::default(),
            config: Config {
                as_upstream: as_upstream.clone(),
                bonds: Bonds::of(tiers),
                ..Config::default()
            },
        };
        for (index, name) in actions.iter().enumerate() {
            let name = name.trim();
            match crate::ACTIONS.iter().find(|action| action.name == name) {
                Some(action) => {
                    rules.actions.push(*action);
                    rules.configure(action, action_arguments, &mut problems);
                }
                None => {
                    let name = name.to_owned();
                    return Err(Problem::UnknownAction { index, name });
                }
            }
        }
        for (at, tier) in tiers.iter().enumerate() {
            refuse_two_orders(at, tier)?;
            refuse_two_families(at, tier)?;
            let mut rows = Vec::new();
            for (index, wanted) in tier.iter().enumerate() {
                let seat = Seat { tier: at, index };
                rows.extend(rules.row(seat, wanted, &mut problems));
            }
            rules.flat.extend(rows.iter().copied());
            rules.tiers.push(rows);
        }
        let parameters = action_arguments.get(crate::PARAMETERS);
        rules.config.devices.hear(parameters);
        rules.couple(tiers);
        rules.hold_together();
        rules.keepers = Keepers::of(&rules.flat);
        rules.of_nodes = OfNodes::of(&rules.flat);
        Ok((rules, problems))
    }

    /// Beyond upstream a gang starts whole also where its plugin is left out, or told not to say when: half
    /// a gang is nobody's wish, and who wants its tasks one by one says so by its minimum.
    fn hold_together(&mut self) {
        let gang = plugins::GANG;
        let there = self.flat.iter().find(|row| row.name == gang.name);
        let lacks = |hook: fn(&Plugin) -> bool| !there.is_some_and(hook);
        let row = Plugin {
            job_valid: gang
                .job_valid
                .filter(|_| lacks(|row| row.job_valid.is_some())),
            job_ready: gang
                .job_ready
                .filter(|_| lacks(|row| row.job_ready.is_some())),
            job_pipelined: gang
                .job_pipelined
                .filter(|_| lacks(|row| row.job_pipelined.is_some())),
            ..Plugin::NONE
        };
        if row.job_valid.is_some() || row.job_ready.is_some() || row.job_pipelined.is_some() {
            self.flat.push(row);
            self.tiers.push(vec![row]);
        }
    }

    /// Reads the arguments of an action, if it asks for any.
    fn configure(
        &mut self,
        action: &Action,
        arguments: &BTreeMap<String, Arguments>,
        problems: &mut Vec<Problem>,
    ) {
        let none = Arguments::default();
        let Some(configure) = action.configure else {
            return;
        };
        let mut asked = Asked::new(arguments.get(action.name).unwrap_or(&none));
        configure(&mut asked, &mut self.config);
        let complaints = asked.complaints().into_iter();
        problems.extend(complaints.map(|(key, complaint)| Problem::ActionArgument {
            action: action.name,
            key,
            complaint,
        }));
    }

    /// The row of a wanted plugin, its arguments read.
    fn row(
        &mut self,
        seat: Seat,
        wanted: &PluginSettings,
        problems: &mut Vec<Problem>,
    ) -> Option<Plugin> {
        let Some(plugin) = PLUGINS.iter().find(|plugin| plugin.name == wanted.name) else {
            let name = wanted.name.clone();
            problems.push(Problem::UnknownPlugin { seat, name });
            return None;
        };
        let mut asked = Asked::new(&wanted.arguments);
        if let Some(configure) = plugin.configure {
            configure(&mut asked, &mut self.config);
        }
        let mut row = *plugin;
        if let Some(hierarchy) = plugin.hierarchy
            && wanted.is_on(Switch::Hierarchy)
        {
            hierarchy(&mut row, &mut self.config);
        }
        if let Some(fits_row) = plugin.fits_row {
            fits_row(&mut row, &self.config);
        }
        let complaints = asked.complaints().into_iter();
        problems.extend(complaints.map(|(key, complaint)| Problem::Argument {
            seat,
            key,
            complaint,
        }));
        Some(row.without(wanted.off.iter().copied()))
    }

    /// Scores and checks that look at other pods or nodes are no hooks of a row: they are taken away
    /// with the hook of their plugin.
    fn couple(&mut self, tiers: &[Vec<PluginSettings>]) {
        let has = |name: &str, hook: fn(&Plugin) -> bool| {
            let mut rows = self.flat.iter();
            rows.any(|row| row.name == name && hook(row))
        };
        if !has("nodeorder", |row| row.score.is_some()) {
            self.config.nodeorder = plugins::nodeorder::Weights::NONE;
        }
        if !has("deviceshare", |row| row.hands_out.is_some()) {
            self.config.devices = plugins::deviceshare::Sharing::default();
        }
        if !has("numa-aware", |row| row.hands_out.is_some()) {
            self.config.numa = plugins::numa_aware::Setup::default();
        }
        let scores = |row: &PluginSettings| {
            row.name == plugins::numa_aware::PLUGIN.name && row.is_on(Switch::NodeOrder)
        };
        if !tiers.iter().flatten().any(scores) {
            self.config.numa = self.config.numa.without_points();
        }
        if let Some(extender) = &mut self.config.extender {
            let rows = || tiers.iter().flatten();
            let rows = || rows().filter(|row| row.name == plugins::extender::PLUGIN.name);
            extender.keep_those_on(|switch| rows().any(|row| row.is_on(switch)));
        }
        if !has("capacity", |row| row.allocatable.is_some()) {
            self.config.capacity.counted = None;
        }
        if !has("predicates", |row| row.suits.is_some()) {
            self.config.predicates = self.config.predicates.of_the_node_alone();
        }
    }

    /// Namespace and name of the ConfigMap that says in which parts cards can be had, if any are.
    pub fn device_config(&self) -> Option<(&str, &str)> {
        self.config.devices.config()
    }

    /// Who says which chips nodes have; nobody where none are given out.
    pub fn chip_teller(&self) -> Option<crate::ChipTeller> {
        self.config.devices.chip_teller()
    }

    /// Whether a node is locked while a pod that gets cards is bound to it.
    pub fn locks_nodes(&self) -> bool {
        self.config.devices.locks
    }

    /// Which cards are shared out: nodes and pods need to be read for these only.
    pub fn card_families(&self) -> Vec<CardFamily> {
        self.config.devices.families()
    }

    /// Whether a rule looks at NUMA nodes: nodes and pods need to be read for that only then.
    pub fn wants_numa(&self) -> bool {
        self.config.numa.is_there
    }

    /// Whether a rule looks at images: nodes and pods need to be read for that only then.
    pub fn wants_images(&self) -> bool {
        self.config.nodeorder.images > 0
    }

    /// Whether a rule gives devices to claims.
    pub fn gives_devices(&self) -> bool {
        self.config.predicates.gives_devices()
    }

    /// Whether a rule looks at limits: pods need to be read for that only then.
    pub fn wants_limits(&self) -> bool {
        let quotas = plugins::resourcequota::PLUGIN.name;
        self.config.usage.wants_limits() || self.flat.iter().any(|row| row.name == quotas)
    }

    /// What of tasks' claims of devices counts in their queues, if anything does: claims need to be counted
    /// for this only.
    pub fn counted_claims(&self) -> Option<Counted> {
        self.config.capacity.counted
    }

    /// Whether a rule looks at what was measured of nodes: nobody needs to be asked otherwise.
    pub fn wants_measures(&self) -> bool {
        self.flat.iter().any(|row| row.looks_at_measures)
    }

    /// The same rules where local clocks show this.
    #[must_use]
    pub fn in_local_time(mut self, local: LocalTime) -> Rules {
        self.config.local = local;
        self
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Plugin> {
        self.flat.iter()
    }

    pub(crate) fn tiers(&self) -> &[Vec<Plugin>] {
        &self.tiers
    }

    /// How many of the gangs come before this one in its queue, as the tables are now; beyond so many they are
    /// not counted.
    pub fn ahead_of(
        &self,
        tables: &Tables,
        gang: GangId,
        gangs: &BTreeSet<GangId>,
        most: usize,
        now: Time,
    ) -> usize {
        let state = self.open(tables, now);
        let view = self.view(tables, &state);
        let queue = tables.gang(gang).queue;
        let rivals = gangs.iter().filter(|id| tables.gang(**id).queue == queue);
        rivals
            .filter(|id| self.job_order(view, **id, gang).is_lt())
            .take(most)
            .count()
    }

    /// Whether an action of this name runs.
    pub fn has_action(&self, name: &str) -> bool {
        self.actions.iter().any(|action| action.name == name)
    }

    /// Whether this is done as upstream does it.
    pub fn is_as_upstream(&self, difference: Difference) -> bool {
        self.config.as_upstream.contains(&difference)
    }

    /// When the rules say something else about a gang although nothing happens, if that is to come.
    pub fn wakes_at(&self, tables: &Tables, gang: GangId, now: Time) -> Option<Time> {
        // Asked for every gang that was looked at, and mostly nobody has a say.
        if self.flat.iter().all(|plugin| plugin.wakes_at.is_none()) {
            return None;
        }
        let state = State::at(now);
        let view = self.view(tables, &state);
        let said = self.flat.iter().filter_map(|p| p.wakes_at);
        let times = said.filter_map(|f| f(view, gang));
        times.filter(|at| *at > now).min()
    }

    /// Whether a gang has as much as it must have to go on, without what it is only promised.
    pub fn is_whole(&self, tables: &Tables, gang: GangId, now: Time) -> bool {
        // Asked for every gang that waits, of which few are.
        if tables.gang(gang).tasks.is_empty() || !plugins::ready_without_promises(tables, gang) {
            return false;
        }
        let state = State::at(now);
        self.job_ready(self.view(tables, &state), gang)
    }

    /// Whether an action runs that evicts.
    pub fn takes_room(&self) -> bool {
        self.actions.iter().any(|action| action.evicts)
    }

    /// What the plugins see, with the state of a cycle that begins now.
    pub(crate) fn open(&self, tables: &Tables, now: Time) -> State {
        self.open_heard(tables, now, &mut |_| {})
    }

    pub(crate) fn view<'a>(&'a self, tables: &'a Tables, state: &'a State) -> View<'a> {
        View {
            tables,
            config: &self.config,
            state,
        }
    }

    /// Which gang comes first: the plugins in tier order, then the older, then the lower uid.
    pub(crate) fn job_order(&self, view: View<'_>, a: GangId, b: GangId) -> Ordering {
        let (x, y) = (view.tables.gang(a), view.tables.gang(b));
        first_decided(
            self.flat
                .iter()
                .filter_map(|p| p.job_order)
                .map(|f| f(view, a, b)),
        )
        .then_with(|| x.spec.created.cmp(&y.spec.created))
        .then_with(|| x.spec.uid.cmp(&y.spec.uid))
        .then_with(|| a.cmp(&b))
    }

    /// Which queue comes first: the plugins in tier order, then the older, then the lower uid.
    pub(crate) fn queue_order(&self, view: View<'_>, a: QueueId, b: QueueId) -> Ordering {
        let (x, y) = (&view.tables.queue(a).spec, &view.tables.queue(b).spec);
        first_decided(
            self.flat
                .iter()
                .filter_map(|p| p.queue_order)
                .map(|f| f(view, a, b)),
        )
        .then_with(|| x.created.cmp(&y.created))
        .then_with(|| x.uid.cmp(&y.uid))
        .then_with(|| a.cmp(&b))
    }

    /// Which task comes first: the plugins, then the pod name's number, the older, the lower uid.
    pub(crate) fn task_order(&self, view: View<'_>, a: TaskId, b: TaskId) -> Ordering {
        let (x, y) = (view.tables.task(a), view.tables.task(b));
        first_decided(
            self.flat
                .iter()
                .filter_map(|p| p.task_order)
                .map(|f| f(view, a, b)),
        )
        .then_with(|| x.index.cmp(&y.index))
        .then_with(|| x.created.cmp(&y.created))
        .then_with(|| x.uid.cmp(&y.uid))
        .then_with(|| a.cmp(&b))
    }

    pub(crate) fn job_valid(&self, view: View<'_>, gang: GangId) -> Option<Reason> {
        if view.tables.gang(gang).spec.ownership == Ownership::Shared {
            return Some(Reason::SeveralSchedulers);
        }
        self.flat
            .iter()
            .filter_map(|p| p.job_valid)
            .find_map(|f| f(view, gang))
    }

    pub(crate) fn job_ready(&self, view: View<'_>, gang: GangId) -> bool {
        self.flat
            .iter()
            .filter_map(|p| p.job_ready)
            .all(|f| f(view, gang))
    }

    /// Points for a hyper-node in which the tasks may be together.
    pub(crate) fn hyper_node_order(
        &self,
        view: View<'_>,
        sums: &DomainSums,
        domain: DomainId,
        tasks: &[TaskId],
    ) -> Score {
        let asked = self.flat.iter().filter_map(|p| p.hyper_node_order);
        asked
            .map(|f| f(view, sums, domain, tasks))
            .fold(0, i64::saturating_add)
    }

    /// Whether nodes are told apart by their hyper-nodes, for tasks that may be anywhere.
    pub(crate) fn scores_domains(&self) -> bool {
        self.flat.iter().any(|p| p.domain_score.is_some())
    }

    /// Points for the nodes of a hyper-node.
    pub(crate) fn domain_score(
        &self,
        view: View<'_>,
        sums: &DomainSums,
        domain: DomainId,
        shape: &Shape,
    ) -> Score {
        let asked = self.flat.iter().filter_map(|p| p.domain_score);
        asked
            .map(|f| f(view, sums, domain, shape))
            .fold(0, i64::saturating_add)
    }

    /// Votes: a rejection in a tier refuses; a permit ends the asking after its tier.
    pub(crate) fn enqueueable(&self, view: View<'_>, gang: GangId) -> Option<Reason> {
        for tier in &self.tiers {
            let mut permitted = false;
            for f in tier.iter().filter_map(|p| p.enqueueable) {
                match f(view, gang) {
                    Vote::Reject(reason) => return Some(reason),
                    Vote::Permit => permitted = true,
                    Vote::Abstain => {}
                }
            }
            if permitted {
                return None;
            }
        }
        None
    }

    pub(crate) fn overused(&self, view: View<'_>, queue: QueueId) -> Option<Reason> {
        if is_free(view, queue) {
            return None;
        }
        self.flat
            .iter()
            .filter_map(|p| p.overused)
            .find_map(|f| f(view, queue))
    }

    pub(crate) fn allocatable(
        &self,
        view: View<'_>,
        queue: QueueId,
        task: TaskId,
    ) -> Option<Reason> {
        if is_free(view, queue) {
            return None;
        }
        self.flat
            .iter()
            .filter_map(|p| p.allocatable)
            .find_map(|f| f(view, queue, task))
    }

    /// Why a task stays behind its queue's gate; `None` where no rule opens any.
    pub(crate) fn opens(
        &self,
        view: View<'_>,
        queue: QueueId,
        task: TaskId,
    ) -> Option<Result<(), Reason>> {
        let mut said = self.flat.iter().filter_map(|p| p.opens).peekable();
        said.peek()?;
        Some(match said.find_map(|f| f(view, queue, task)) {
            Some(reason) => Err(reason),
            None => Ok(()),
        })
    }

    /// What the task takes of the node's cards, devices and units now.
    pub(crate) fn hand_out(&self, view: View<'_>, task: TaskId, node: NodeId) -> Vec<Grant> {
        let spec = &view.tables.shape_of(task).spec;
        if spec.cards.is_none() && spec.devices.is_none() && spec.numa.is_none() {
            return Vec::new();
        }
        let said = self.flat.iter().filter_map(|p| p.hands_out);
        said.filter_map(|f| f(view, task, node)).flatten().collect()
    }
}

/// Whether it is the queue of those that are in none: shares and ceilings say nothing of them.
pub(crate) fn is_free(view: View<'_>, queue: QueueId) -> bool {
    view.tables.queue(queue).spec.name.is_empty()
}

/// Upstream: both order the queues, so one tier may not have both. Of two tiers the earlier decides.
fn refuse_two_orders(at: usize, tier: &[PluginSettings]) -> Result<(), Problem> {
    let seat = |is_it: &dyn Fn(&PluginSettings) -> bool| {
        let index = tier.iter().position(is_it)?;
        Some(Seat { tier: at, index })
    };
    let drf = seat(&|it| it.name == "drf" && it.is_on(Switch::Hierarchy));
    let proportion = seat(&|it| it.name == "proportion");
    match (drf, proportion) {
        (Some(drf), Some(proportion)) => {
            Err(Problem::HierarchyBesideProportion { drf, proportion })
        }
        _ => Ok(()),
    }
}

/// Upstream: cards are counted in one way only.
fn refuse_two_families(at: usize, tier: &[PluginSettings]) -> Result<(), Problem> {
    for (index, row) in tier.iter().enumerate() {
        if row.name == "deviceshare"
            && let Some(keys) = plugins::deviceshare::two_families(&row.arguments)
        {
            let seat = Seat { tier: at, index };
            return Err(Problem::CardsBesideCards { seat, keys });
        }
    }
    Ok(())
}

fn first_decided(mut orders: impl Iterator<Item = Ordering>) -> Ordering {
    orders
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests;
