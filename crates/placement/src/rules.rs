//! The configuration compiled: for each hook the functions to ask, in tier order.

use std::cmp::Ordering;

use model::{GangId, NodeId, QueueId, Reason, Refusal, Shape, Tables, TaskId};

use crate::plugin::{Action, Plugin, Score, View, Vote};
use crate::plugins::{self, PLUGINS};
use crate::settings::Settings;

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is no such action: the whole configuration is rejected.
    UnknownAction(String),
    /// There is no such plugin: it is left out.
    UnknownPlugin(String),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Problem::UnknownAction(name) => write!(f, "failed to find Action {name}, ignore it"),
            Problem::UnknownPlugin(name) => write!(f, "Failed to get plugin {name}."),
        }
    }
}

/// The plugins' arguments, read once.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub(crate) binpack: plugins::binpack::Weights,
    pub(crate) nodeorder: plugins::nodeorder::Weights,
    pub(crate) overcommit: plugins::overcommit::Factor,
    pub(crate) predicates: plugins::predicates::Checks,
}

/// What the plugins compute at the start of a cycle.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(crate) proportion: plugins::proportion::Shares,
}

/// A compiled configuration.
#[derive(Clone)]
pub struct Rules {
    pub(crate) actions: Vec<Action>,
    tiers: Vec<Vec<Plugin>>,
    flat: Vec<Plugin>,
    config: Config,
}

impl Rules {
    /// Compiles a configuration. An unknown action refuses all of it; an unknown plugin is left out
    /// and reported.
    pub fn compile(settings: &Settings) -> Result<(Rules, Vec<Problem>), Problem> {
        let Settings { actions, tiers } = settings;
        let mut problems = Vec::new();
        let mut rules = Rules {
            actions: Vec::new(),
            tiers: Vec::new(),
            flat: Vec::new(),
            config: Config::default(),
        };
        for name in actions {
            match crate::ACTIONS
                .iter()
                .find(|action| action.name == name.trim())
            {
                Some(action) => rules.actions.push(*action),
                None => return Err(Problem::UnknownAction(name.clone())),
            }
        }
        for tier in tiers {
            let mut rows = Vec::new();
            for wanted in tier {
                let Some(plugin) = PLUGINS.iter().find(|plugin| plugin.name == wanted.name) else {
                    problems.push(Problem::UnknownPlugin(wanted.name.clone()));
                    continue;
                };
                if let Some(configure) = plugin.configure {
                    configure(&wanted.arguments, &mut rules.config);
                }
                rows.push(plugin.without(wanted.off.iter().copied()));
            }
            rules.flat.extend(rows.iter().copied());
            rules.tiers.push(rows);
        }
        Ok((rules, problems))
    }

    /// Whether an action of this name runs.
    pub fn has_action(&self, name: &str) -> bool {
        self.actions.iter().any(|action| action.name == name)
    }

    /// What the plugins see, with the state of a cycle that begins now.
    pub(crate) fn open(&self, tables: &Tables) -> State {
        let mut state = State::default();
        for plugin in &self.flat {
            if let Some(open) = plugin.open {
                open(tables, &self.config, &mut state);
            }
        }
        state
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

    /// Which queue comes first: the plugins in tier order, then the lower id.
    pub(crate) fn queue_order(&self, view: View<'_>, a: QueueId, b: QueueId) -> Ordering {
        first_decided(
            self.flat
                .iter()
                .filter_map(|p| p.queue_order)
                .map(|f| f(view, a, b)),
        )
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

    pub(crate) fn overused(&self, view: View<'_>, queue: QueueId) -> bool {
        self.flat
            .iter()
            .filter_map(|p| p.overused)
            .any(|f| f(view, queue))
    }

    pub(crate) fn allocatable(
        &self,
        view: View<'_>,
        queue: QueueId,
        task: TaskId,
    ) -> Option<Reason> {
        self.flat
            .iter()
            .filter_map(|p| p.allocatable)
            .find_map(|f| f(view, queue, task))
    }

    pub(crate) fn suits(&self, view: View<'_>, shape: &Shape, node: NodeId) -> Option<Refusal> {
        self.flat
            .iter()
            .filter_map(|p| p.suits)
            .find_map(|f| f(view, shape, node))
    }

    pub(crate) fn has_room(&self, view: View<'_>, shape: &Shape, node: NodeId) -> Option<Refusal> {
        self.flat
            .iter()
            .filter_map(|p| p.has_room)
            .find_map(|f| f(view, shape, node))
    }

    pub(crate) fn score(&self, view: View<'_>, shape: &Shape, node: NodeId) -> Score {
        self.flat
            .iter()
            .filter_map(|p| p.score)
            .fold(0, |sum, f| sum.saturating_add(f(view, shape, node)))
    }

    pub(crate) fn has_plugin(&self, name: &str) -> bool {
        self.flat.iter().any(|plugin| plugin.name == name)
    }
}

fn first_decided(mut orders: impl Iterator<Item = Ordering>) -> Ordering {
    orders
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}
