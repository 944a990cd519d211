//! The engine: what it remembers between cycles, and what a cycle does.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    CardFamily, Counted, Gang, GangId, LocalTime, News, Ownership, Phase, Plan, QueueId, Reason,
    Tables, Time, Trial,
};
use placement::{
    ChipTeller, Cycle, Difference, Extender, Indexes, Ledger, Milestone, Outcome, Problem, Rules,
    Work, is_kept_away,
};

use crate::backlog::Backlog;
use crate::status;
use crate::strays::{self, Strays};
use crate::wording::Wordings;

/// Is told what a cycle does while it does it, and has no say in it.
pub trait Listener {
    /// How far the rules are.
    fn passed(&mut self, _: Milestone) {}

    /// What was found for a gang that was looked at; nothing where the rules had nothing to do.
    fn found(&mut self, _: GangId, _: Option<&Outcome>) {}
}

/// Nobody.
impl Listener for () {}

/// What the engine is told once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The placement rules.
    pub placement: placement::Settings,
    /// How long changes of mere counts and wording wait for each other before they are written.
    pub status_interval_ms: i64,
    /// What local clocks show, for rules that speak of times of day.
    pub local: LocalTime,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            placement: placement::Settings::default(),
            status_interval_ms: 1_000,
            local: LocalTime::default(),
        }
    }
}

/// Decides. It owns what makes deciding fast, and nothing that could not be thrown away.
#[derive(Clone)]
pub struct Engine {
    settings: Settings,
    rules: Rules,
    pub(crate) status_interval_ms: i64,
    /// Whether much else waits to be written.
    pub(crate) is_busy: bool,
    indexes: Indexes,
    backlog: Backlog,
    pub(crate) due: BTreeMap<GangId, Time>,
    /// Those of them whose time has come in this cycle.
    pub(crate) ripe: BTreeSet<GangId>,
    pub(crate) queues_due: BTreeMap<QueueId, Time>,
    strays: Strays,
    pub(crate) wordings: Wordings,
    /// As of when rules that look at the clock have judged nodes.
    judged_at: Option<Time>,
    /// When they say something else of one, or somebody may have to leave one.
    stirs_at: Option<Time>,
    work: Work,
    cycles: u64,
}

impl Engine {
    /// An engine for these settings, and what in them is not understood. An unknown action refuses
    /// all of them, as upstream does.
    pub fn new(settings: Settings) -> Result<(Engine, Vec<Problem>), Problem> {
        let (rules, problems) = Rules::compile(&settings.placement)?;
        let engine = Engine {
            rules: rules.in_local_time(settings.local.clone()),
            status_interval_ms: settings.status_interval_ms,
            is_busy: false,
            settings,
            indexes: Indexes::default(),
            backlog: Backlog::default(),
            due: BTreeMap::new(),
            ripe: BTreeSet::new(),
            queues_due: BTreeMap::new(),
            strays: Strays::default(),
            wordings: Wordings::default(),
            judged_at: None,
            stirs_at: None,
            work: Work::default(),
            cycles: 0,
        };
        Ok((engine, problems))
    }

    /// Whether much else waits to be written from now on: what only tells that gangs run rests then.
    pub fn rest(&mut self, is_busy: bool) {
        self.is_busy = is_busy;
    }

    /// The engine of Volcano's built-in configuration.
    pub fn with_defaults() -> Engine {
        let (engine, _) = Engine::new(Settings::default())
            .expect("the built-in configuration names known actions");
        engine
    }

    /// The same engine, which has everything that it kept of nodes yet to look up: it decides the same.
    #[must_use]
    pub fn with_nothing_looked_up(&self) -> Engine {
        Engine {
            indexes: Indexes::default(),
            ..self.clone()
        }
    }

    /// What it was told.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Namespace and name of the ConfigMap that says in which parts cards can be had, if any are.
    pub fn device_config(&self) -> Option<(&str, &str)> {
        self.rules.device_config()
    }

    /// Who says which chips nodes have; nobody where none are given out.
    pub fn chip_teller(&self) -> Option<ChipTeller> {
        self.rules.chip_teller()
    }

    /// Whether a node is locked while a pod that gets cards is bound to it.
    pub fn locks_nodes(&self) -> bool {
        self.rules.locks_nodes()
    }

    /// Which cards it shares out: nodes and pods need to be read for these only.
    pub fn card_families(&self) -> Vec<CardFamily> {
        self.rules.card_families()
    }

    /// Whether its rules keep queues within their ceilings.
    pub fn keeps_ceilings(&self) -> bool {
        self.rules.keeps_ceilings()
    }

    /// Whether its rules keep queues above others within theirs.
    pub fn keeps_ceilings_above(&self) -> bool {
        self.rules.keeps_ceilings_above()
    }

    /// Whether its rules keep tasks that must be close together within their hyper-node.
    pub fn keeps_hyper_nodes(&self) -> bool {
        self.rules.keeps_hyper_nodes()
    }

    /// Whether its rules start gangs within a gang whole.
    pub fn keeps_parts(&self) -> bool {
        self.rules.keeps_parts()
    }

    /// Whether its rules let nobody leave its node beyond a disruption budget.
    pub fn keeps_budgets(&self) -> bool {
        self.rules.keeps_budgets()
    }

    /// Whether its rules look at NUMA nodes: nodes and pods need to be read for that only then.
    pub fn wants_numa(&self) -> bool {
        self.rules.wants_numa()
    }

    /// Whether its rules look at images: nodes and pods need to be read for that only then.
    pub fn wants_images(&self) -> bool {
        self.rules.wants_images()
    }

    /// Whether its rules give devices to claims.
    pub fn gives_devices(&self) -> bool {
        self.rules.gives_devices()
    }

    /// Whether its rules look at limits: pods need to be read for that only then.
    pub fn wants_limits(&self) -> bool {
        self.rules.wants_limits()
    }

    /// How long claims of a place are waited for, in milliseconds, if that is configured.
    pub fn volumes_wait_ms(&self) -> Option<i64> {
        self.rules.volumes_wait_ms()
    }

    /// What of claims of devices counts in queues, if anything does: claims are counted for this only.
    pub fn counted_claims(&self) -> Option<Counted> {
        self.rules.counted_claims()
    }

    /// Whether its rules look at what was measured of nodes.
    pub fn wants_measures(&self) -> bool {
        self.rules.wants_measures()
    }

    /// Whom its rules ask, where they ask somebody outside.
    pub fn extender(&self) -> Option<&Extender> {
        self.rules.extender()
    }

    /// All work ever done.
    pub fn work(&self) -> Work {
        self.work
    }

    /// How many cycles did anything.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// When to call [`Engine::cycle`] although nothing happens.
    pub fn wake_at(&self) -> Option<Time> {
        let gang = self.due.values().min();
        let queue = self.queues_due.values().min();
        let all = gang.into_iter().chain(queue).chain(&self.stirs_at).copied();
        let words = self.wordings.wake_at();
        all.chain(self.strays.wake_at()).chain(words).min()
    }

    /// Whatever waits for its time is due now: somebody has set the clock.
    pub fn hurry(&mut self, now: Time) {
        let due = self.due.values_mut().chain(self.queues_due.values_mut());
        for at in due.chain(&mut self.stirs_at) {
            *at = now.min(*at);
        }
        self.strays.hurry(now);
        self.wordings.hurry(now);
    }

    /// Decides everything that can be decided now. The plan's rows are pending in the tables when it
    /// is returned.
    pub fn cycle(&mut self, tables: &mut Tables, now: Time) -> Plan {
        self.cycle_heard(tables, now, &mut ())
    }

    /// The same, told to somebody while it goes on.
    pub fn cycle_heard(
        &mut self,
        tables: &mut Tables,
        now: Time,
        listener: &mut dyn Listener,
    ) -> Plan {
        let overdue = self.wake_at().is_some_and(|at| at <= now);
        if !tables.has_news() && !overdue {
            return Plan {
                tick: tables.tick(),
                wake_at: self.wake_at(),
                ..Plan::default()
            };
        }
        self.cycles += 1;
        self.judge_anew(tables, now);
        tables.settle();
        let news = tables.take_news();
        let gangs = self.gangs_of_interest(tables, &news, now);
        let mut trial = Trial::begin(tables);
        let gangs = quota::admit(&mut trial, gangs);
        if self.cycles == 1 {
            let (rules, indexes) = (&self.rules, &mut self.indexes);
            Cycle::recall(&mut trial, rules, indexes, gangs.clone(), now);
        }
        let (outcomes, work) = Cycle::run(
            &mut trial,
            &self.rules,
            &mut self.indexes,
            gangs.clone(),
            (now, &mut |milestone| listener.passed(milestone)),
        );
        self.work.gangs += work.gangs;
        self.work.tasks += work.tasks;
        self.work.nodes += work.nodes;
        for gang in &gangs {
            listener.found(*gang, outcomes.get(gang));
            status::settle_gang(self, &mut trial, *gang, outcomes.get(gang), now);
        }
        let may_ask = self.rules.extender().is_some();
        let mut waiting = Vec::new();
        for (gang, outcome) in outcomes {
            let reason = outcome.reason().filter(|_| may_ask);
            waiting.extend(reason.map(|reason| (gang, reason.clone())));
            self.remember(trial.tables(), gang, &outcome);
            if let Some(at) = self.rules.wakes_at(trial.tables(), gang, now) {
                let due = self.due.entry(gang).or_insert(at);
                *due = at.min(*due);
            }
        }
        let strays = self.strays.due(now);
        strays::tell(&mut self.wordings, &mut trial, &strays, now);
        status::settle_queues(self, &mut trial, &gangs, &news, now);
        let mut plan = trial.finish(now);
        self.stirs_at = self.rules.stirs_at(tables, now);
        let waiting = waiting.iter().map(|(gang, reason)| (*gang, &**reason));
        plan.asks = self.rules.asks(tables, waiting, now);
        plan.wake_at = self.wake_at();
        plan
    }

    /// Nodes are judged anew of which rules say something else than the last time, only because time has
    /// passed.
    fn judge_anew(&mut self, tables: &mut Tables, now: Time) {
        tables.forget_old_opinions(now);
        if let Some(before) = self.judged_at {
            for node in self.rules.turned(tables, before, now) {
                tables.judge_anew(node);
            }
        }
        self.judged_at = Some(now);
    }

    /// The gangs that a cycle would look at now. Nothing is remembered.
    pub(crate) fn would_look_at(&self, tables: &Tables, now: Time) -> BTreeSet<GangId> {
        let news = tables.news();
        let mut gangs = self.backlog.woken(&self.rules, tables, news, now);
        gangs.extend(news.gangs.iter().copied());
        let due = self.due.iter().filter(|(_, at)| **at <= now);
        gangs.extend(due.map(|(gang, _)| *gang));
        gangs.extend(self.wordings.due(now));
        if !gangs.is_empty() {
            gangs.extend(self.beside_others(tables));
        }
        gangs.retain(|gang| is_decided(tables, *gang));
        gangs
    }

    /// Those that are looked at whenever anybody is.
    fn beside_others(&self, tables: &Tables) -> BTreeSet<GangId> {
        let mut gangs: BTreeSet<GangId> = self.backlog.beside_others().collect();
        if self.rules.is_as_upstream(Difference::KeptPromises) {
            let promised = |row: &Gang| row.count(Phase::Pipelined) > 0;
            let all = tables.gangs().filter(|(_, row)| promised(row));
            gangs.extend(all.map(|(id, _)| id));
        }
        gangs
    }

    /// What its rules say of queues and gangs now, for people; the tables must be settled
    /// ([`Tables::aside`]).
    pub fn ledger<'a>(&'a self, tables: &'a Tables, now: Time) -> Ledger<'a> {
        self.rules.ledger(tables, now)
    }

    /// All gangs about which it decides: at whom an engine looks that begins.
    pub(crate) fn everybody(&self, tables: &Tables) -> BTreeSet<GangId> {
        let gangs = tables.gangs().map(|(id, _)| id);
        gangs.filter(|gang| is_decided(tables, *gang)).collect()
    }

    /// What it knows of nodes for the tasks of a gang, unless that is not so any more only because time
    /// has passed.
    pub(crate) fn indexes_for(&self, tables: &Tables, gang: GangId, now: Time) -> Indexes {
        let is_turned = |before| !self.rules.turned(tables, before, now).is_empty();
        match self.judged_at.is_none_or(is_turned) {
            true => Indexes::default(),
            false => self.indexes.of_gang(&self.rules, tables, gang, now),
        }
    }

    /// As of when rules that look at the clock have judged nodes.
    pub(crate) fn judged_at(&self) -> Option<Time> {
        self.judged_at
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    fn gangs_of_interest(&mut self, tables: &Tables, news: &News, now: Time) -> BTreeSet<GangId> {
        let mut gangs = self.backlog.woken(&self.rules, tables, news, now);
        gangs.extend(news.gangs.iter().copied());
        let due = self.due.iter().filter(|(_, at)| **at <= now);
        self.ripe = due.map(|(gang, _)| *gang).collect();
        for gang in &self.ripe {
            self.due.remove(gang);
            gangs.insert(*gang);
        }
        gangs.extend(self.wordings.due(now));
        if !gangs.is_empty() {
            gangs.extend(self.beside_others(tables));
        }
        for gang in &gangs {
            self.backlog.forget(*gang);
        }
        self.strays.look(tables, &gangs, now);
        gangs.retain(|gang| is_decided(tables, *gang));
        self.due.retain(|gang, _| is_decided(tables, *gang));
        self.wordings.keep(now, |gang| is_decided(tables, gang));
        gangs
    }

    fn remember(&mut self, tables: &Tables, gang: GangId, outcome: &Outcome) {
        let may_help = matches!(
            outcome,
            Outcome::Extras(..) | Outcome::WaitsForRoom(..) | Outcome::WaitsForShares(_)
        );
        if may_help && self.rules.takes_room() {
            self.backlog.wait_for_victims(gang);
        }
        match outcome {
            Outcome::Entered | Outcome::Whole | Outcome::WaitsForObjects(_) => {}
            Outcome::Extras(_, lacks) | Outcome::WaitsForRoom(_, lacks) => {
                if !lacks.shapes.is_empty() {
                    self.backlog.wait_for_room(gang, &lacks.shapes);
                    if is_kept_away(tables, gang, &lacks.shapes) {
                        self.backlog.wait_for_parting(gang);
                    }
                }
                if lacks.shares || lacks.shapes.is_empty() {
                    self.backlog.wait_for_deserts(gang);
                } else if self.rules.looks_at_queues() {
                    // What its queue may hold in a group of nodes moves with its use.
                    self.backlog.wait_for_shares(gang);
                }
            }
            Outcome::WaitsForPromise(reason) => {
                self.backlog.wait_for_promise(gang);
                if matches!(**reason, Reason::WaitsForDrain { .. }) {
                    self.backlog.wait_beside_others(gang);
                }
            }
            Outcome::WaitsForShares(reason) => match **reason {
                Reason::QueueFull { .. } | Reason::QueueOverused { .. } => {
                    self.backlog.wait_for_deserts(gang);
                }
                _ => self.backlog.wait_for_shares(gang),
            },
        }
    }
}

/// Whether anything is decided about a gang: it is there, and no other scheduler's.
fn is_decided(tables: &Tables, gang: GangId) -> bool {
    tables
        .find_gang(gang)
        .is_some_and(|row| row.known && row.spec.ownership != Ownership::Others)
}
