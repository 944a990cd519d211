//! What the operator chooses about the loop, and its named limits, with the defaults in one place.

use std::collections::BTreeSet;

use api::kind::Kind;
use api::volcano::ShardingMode;
use api::volcano::chip_devices::ChipSource;
use api::volcano::scheduler_conf::MetricsConf;
use controllers::Controller;
use engine::Engine;
use mirror::ROW_KINDS;

use crate::election::ElectionSettings;

/// Everything that a driver is made of. Decided in `app`.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The rows that run here; empty where only the engine runs.
    pub controllers: &'static [Controller],
    /// What the rows may look up.
    pub controller_settings: controllers::Settings,
    /// The engine, where it runs here.
    pub engine: Option<EngineSettings>,
    /// Kinds that are not looked at, whatever runs here: as if there were no object of them.
    pub unwatched: Vec<Kind>,
    /// Bounds of queues, rates and waits.
    pub limits: Limits,
    /// What must be held before anything is decided; `None` where nobody else decides.
    pub election: Option<ElectionSettings>,
    /// Where jitter comes from: the same seed gives the same run.
    pub seed: u64,
}

impl Settings {
    /// The kinds of which objects are listed and watched; nothing is decided before all of them were
    /// listed. What the API does not serve would be waited for for ever, so it is none of them.
    pub(crate) fn watched_kinds(&self) -> BTreeSet<Kind> {
        let of_rows = self.controllers.iter().flat_map(|row| row.watches);
        let engine = self.engine.as_ref();
        let of_engine = engine.into_iter().flat_map(|_| ROW_KINDS);
        let mut kinds: BTreeSet<Kind> = of_rows.chain(of_engine).copied().collect();
        let native = self.controller_settings.native_groups
            || engine.is_some_and(|engine| engine.native_groups);
        if !native {
            kinds.remove(&Kind::NativeGroup);
        } else if engine.is_some() {
            kinds.insert(Kind::NativeGroup);
        }
        if engine.is_some_and(|engine| engine.reach.sharding != ShardingMode::None) {
            kinds.insert(Kind::NodeShard);
        }
        kinds.retain(|kind| !self.unwatched.contains(kind));
        kinds
    }

    /// The places of controllers whose keys are never given up.
    pub(crate) fn tried_on(&self) -> impl Iterator<Item = u16> {
        let rows = (0..).zip(self.controllers);
        let tried_on = rows.filter(|(_, row)| controllers::TRIED_ON.contains(&row.name));
        tried_on.map(|(at, _)| at)
    }
}

/// The engine and whom it serves.
#[derive(Clone)]
pub struct EngineSettings {
    /// The engine, with its rule books compiled.
    pub engine: Engine,
    /// Pods that name one of these are ours to place.
    pub scheduler_names: Vec<Box<str>>,
    /// Pods that name one of these and no group are placed one by one, without a PodGroup.
    pub lone_scheduler_names: Vec<Box<str>>,
    /// Pods that name one of these are placed one by one, whatever group they name, and in no queue: what
    /// Volcano's agent scheduler does.
    pub agent_scheduler_names: Vec<Box<str>>,
    /// Whom its rules ask what is really used of nodes.
    pub metrics: MetricsConf,
    /// Which nodes and pods are ours; all of them by default.
    pub reach: mirror::Reach,
    /// Whether the API serves groups of Kubernetes' own: they are watched then, and placed.
    pub native_groups: bool,
    /// Whether queues open the gates of pods that ask for it.
    pub queue_gates: bool,
    /// Of what pods say this counts.
    pub features: mirror::Features,
    /// Whose events are written.
    pub events: mirror::Events,
    /// The name under which its events are written.
    pub component: Box<str>,
    /// Microseconds of any steady clock, read around each cycle for [`crate::Metrics`] only: no
    /// decision sees it. Stands still unless a shell gives one.
    pub stopwatch: fn() -> u64,
    /// Set where a log is played again: another engine, which is asked what it would decide.
    pub other: Option<Engine>,
}

impl std::fmt::Debug for EngineSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineSettings")
            .field("scheduler_names", &self.scheduler_names)
            .field("lone_scheduler_names", &self.lone_scheduler_names)
            .field("agent_scheduler_names", &self.agent_scheduler_names)
            .field("metrics", &self.metrics)
            .field("reach", &self.reach)
            .field("queue_gates", &self.queue_gates)
            .field("features", &self.features)
            .field("events", &self.events)
            .field("native_groups", &self.native_groups)
            .field("component", &self.component)
            .finish_non_exhaustive()
    }
}

impl EngineSettings {
    /// The engine under Volcano's names.
    pub fn new(engine: Engine) -> EngineSettings {
        EngineSettings {
            engine,
            scheduler_names: vec![api::volcano::SCHEDULER_NAME.into()],
            lone_scheduler_names: Vec::new(),
            agent_scheduler_names: Vec::new(),
            metrics: MetricsConf::default(),
            reach: mirror::Reach::default(),
            queue_gates: false,
            features: mirror::Features::default(),
            events: mirror::Events::default(),
            native_groups: false,
            component: api::volcano::SCHEDULER_NAME.into(),
            stopwatch: || 0,
            other: None,
        }
    }

    /// Whose ConfigMaps say which chips nodes have; `None` where no rule wants to know.
    pub fn chip_source(&self) -> Option<ChipSource> {
        let teller = self.engine.chip_teller()?;
        Some(match teller.is_cluster {
            true => ChipSource::Cluster,
            false => ChipSource::Plugins,
        })
    }
}

/// Bounds. Each is counted in [`crate::Metrics`] when it is hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Objects per page of a list.
    pub list_page: u32,
    /// How long the server is asked to keep a watch open, in seconds.
    pub watch_seconds: u32,
    /// Writes and read-backs handed out and not yet answered.
    pub writes_in_flight_max: usize,
    /// Writes decided and not yet handed out; beyond it nothing is stepped.
    pub writes_queued_max: usize,
    /// Notes for people that wait to be written; more are dropped.
    pub notes_queued_max: usize,
    /// A write whose effect is not seen after this many milliseconds is read back.
    pub unseen_max_ms: i64,
    /// A key that fails more often in a row waits its longest back-off, or for an event, and is told of.
    /// With `None` it just backs off, and no event hurries it.
    pub failures_max: Option<u32>,
    /// Whether such a key waits for an event alone, where what fails will not pass by itself: what a limit of
    /// S0.10 means, so that whoever sets one should say so. Keys of [`controllers::TRIED_ON`] are tried on.
    pub gives_up: bool,
    /// Steps without a request before the shell gets the turn, so that it can hand in events.
    pub steps_per_turn_max: u32,
    /// Between two cycles at least, in milliseconds; the first after a calm runs at once.
    pub cycle_gap_ms: i64,
    /// How long a bind may wait for its pod's volumes, in milliseconds.
    pub volumes_wait_max_ms: i64,
    /// Log lines kept for the shell; older ones are dropped.
    pub notices_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            list_page: 500,
            watch_seconds: 300,
            writes_in_flight_max: 64,
            writes_queued_max: 512,
            notes_queued_max: 10_000,
            unseen_max_ms: 30_000,
            failures_max: None,
            gives_up: false,
            steps_per_turn_max: 256,
            cycle_gap_ms: 2,
            volumes_wait_max_ms: 600_000,
            notices_max: 1_024,
        }
    }
}
