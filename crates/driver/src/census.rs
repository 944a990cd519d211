//! What a driver says of itself and of what it holds when it is asked for figures: plain rows, built when
//! they are asked for and kept nowhere. `runtime` gives them their names.
//!
//! Rows are bounded: what is beyond a bound is counted in [`Untold`], and never a row.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::intent::ObjectKey;
use api::time::Time;
use api::volcano::{PodGroup, PodGroupPhase};
use engine::{Engine, Ledger};
use mirror::Mirror;
use model::{
    CardFamily, GPU, Gang, GangId, Key, Kind, Limits, Queue, QueueId, Tables, Vector, Verdict,
};

use crate::chronicle::{Attempts, Chronicle};
use crate::election::LeaseStanding;
use crate::metrics::Metrics;
use crate::timings::Timings;

/// Jobs that are told one by one: first those that wait, of these the oldest.
pub const JOBS_MAX: usize = 1_000;
/// Queues that are told, in the order of their names.
pub const QUEUES_MAX: usize = 1_000;
/// Cards that are told, in the order of their nodes, and of each kind what pods hold of them.
pub const CARDS_MAX: usize = 10_000;

/// All figures at one moment.
#[derive(Clone, Debug, Default)]
pub struct Census {
    /// Counters of the loop.
    pub metrics: Metrics,
    /// The Leases of its election; none without one.
    pub leases: Vec<LeaseStanding>,
    /// How long things took.
    pub timings: Timings,
    /// What the engine says, where it runs here and has seen everything.
    pub figures: Option<Figures>,
    /// By queue: how many groups are in each phase, in the order of [`GROUP_PHASES`]; where queues are
    /// looked after here.
    pub groups: Vec<(Box<str>, [u64; GROUP_PHASES.len()])>,
    /// By reason: how many jobs are blocked now, where jobs are looked after here, and how often one
    /// came to be.
    pub blocked: Vec<(&'static str, Option<u64>, u64)>,
    /// By job: how often it ended.
    pub job_ends: Vec<(ObjectKey, JobEnds)>,
    /// By namespace: how many flows have succeeded, and how many failed.
    pub flow_ends: Vec<(Box<str>, (u64, u64))>,
    /// What is not told for want of room.
    pub untold: Untold,
}

/// The phases of a group, in the order in which they are counted.
pub const GROUP_PHASES: [PodGroupPhase; 5] = [
    PodGroupPhase::Completed,
    PodGroupPhase::Inqueue,
    PodGroupPhase::Pending,
    PodGroupPhase::Running,
    PodGroupPhase::Unknown,
];

/// How often a job has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobEnds {
    /// Its queue.
    pub queue: Box<str>,
    /// How often well.
    pub completed: u64,
    /// How often badly.
    pub failed: u64,
}

/// How many rows there are beside those that are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Untold {
    /// Jobs beyond [`JOBS_MAX`].
    pub jobs: u64,
    /// Queues beyond [`QUEUES_MAX`].
    pub queues: u64,
    /// Cards, and parts of cards that pods hold, beyond [`CARDS_MAX`].
    pub cards: u64,
    /// Ends of jobs and flows that were counted and are forgotten.
    pub ends: u64,
}

/// What the engine says.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// What its cycles attempted.
    pub attempts: Attempts,
    /// How many gangs wait.
    pub waiting: u64,
    /// Gangs one by one.
    pub jobs: Vec<JobFigures>,
    /// Queues, where a plugin shares among them.
    pub queues: Vec<QueueFigures>,
    /// Virtual cards.
    pub cards: Vec<CardFigures>,
    /// What pods hold of them.
    pub grants: Vec<GrantFigures>,
    untold: Untold,
}

/// One gang.
#[derive(Clone, Debug)]
pub struct JobFigures {
    /// Namespace and name of its PodGroup.
    pub key: Key,
    /// Its queue.
    pub queue: Arc<str>,
    /// When it was made.
    pub created: Time,
    /// When a task of it was placed last, as far as that is known here.
    pub placed: Option<Time>,
    /// How many tasks it lacks to start; `None` where it does not wait.
    pub lacks: Option<u32>,
    /// How often it was looked at in vain.
    pub in_vain: u64,
    /// Its share of the cluster in millionths, where a plugin looks at that.
    pub share: Option<i64>,
}

/// Amounts: thousandths of a core, bytes, and others in thousandths, but pods in pieces.
#[derive(Clone, Debug, Default)]
pub struct Amounts {
    /// Thousandths of a core, where there is any amount.
    pub cpu: i64,
    /// Bytes.
    pub memory: i64,
    /// Others by name.
    pub others: Vec<(Arc<str>, i64)>,
}

/// The most of each resource, where there is a limit; in the units of [`Amounts`].
#[derive(Clone, Debug, Default)]
pub struct Ceilings {
    /// Thousandths of a core.
    pub cpu: Option<i64>,
    /// Bytes.
    pub memory: Option<i64>,
    /// Others by name.
    pub others: Vec<(Arc<str>, i64)>,
}

/// One queue.
#[derive(Clone, Debug)]
pub struct QueueFigures {
    /// Its name.
    pub name: Arc<str>,
    /// What its tasks hold.
    pub allocated: Amounts,
    /// What they hold and want.
    pub request: Amounts,
    /// What it should have.
    pub deserved: Amounts,
    /// What its gangs have been let in for and do not hold yet.
    pub inqueue: Amounts,
    /// Its ceilings, its own and those that others' guarantees leave, where there are any.
    pub ceilings: Option<(Ceilings, Ceilings)>,
    /// Its share in millionths.
    pub share: i64,
    /// Its weight, where weights count.
    pub weight: Option<i32>,
    /// Whether it has more than it should.
    pub is_overused: bool,
}

/// One virtual card.
#[derive(Clone, Debug)]
pub struct CardFigures {
    /// Its id.
    pub card: Arc<str>,
    /// Its node.
    pub node: Arc<str>,
    /// How many hold a part of it.
    pub users: i64,
    /// How many MiB of it are held.
    pub memory: i64,
    /// How many percent of its cores are.
    pub cores: i64,
    /// How many MiB it has.
    pub memory_whole: i64,
}

/// What one pod holds of a virtual card.
#[derive(Clone, Debug)]
pub struct GrantFigures {
    /// The card's id.
    pub card: Arc<str>,
    /// Its node.
    pub node: Arc<str>,
    /// The pod.
    pub pod: Key,
    /// How many MiB.
    pub memory: i64,
    /// How many percent of its cores.
    pub cores: i64,
}

impl Figures {
    /// What is not told.
    pub(crate) fn untold(&self) -> Untold {
        self.untold
    }
}

/// How many groups of a queue are in each phase.
type Phases = [u64; GROUP_PHASES.len()];

/// Counts groups by queue and phase; and how many queues there are beyond the bound.
pub(crate) fn groups(mirror: &Mirror) -> (Vec<(Box<str>, Phases)>, u64) {
    let queues = mirror.list::<api::volcano::Queue>();
    let mut counts: BTreeMap<&str, Phases> = queues
        .map(|queue| (&*queue.metadata.name, Default::default()))
        .collect();
    for group in mirror.list::<PodGroup>() {
        let phase = group.status.phase;
        let at = GROUP_PHASES.iter().position(|it| *it == phase);
        // A queue that is not there has no row.
        if let (Some(at), Some(row)) = (at, counts.get_mut(&*group.spec.queue)) {
            row[at] += 1;
        }
    }
    let untold = counts.len().saturating_sub(QUEUES_MAX) as u64;
    let told = counts.into_iter().take(QUEUES_MAX);
    let told = told.map(|(queue, row)| (queue.into(), row)).collect();
    (told, untold)
}

/// What there is to say of settled tables.
pub(crate) fn figures(
    (tables, engine, chronicle): (&Tables, &Engine, &Chronicle),
    now: model::Time,
) -> Figures {
    let ledger = engine.ledger(tables, now);
    let mut figures = Figures {
        attempts: chronicle.attempts().clone(),
        ..Figures::default()
    };
    tell_queues(tables, &ledger, &mut figures);
    tell_jobs((tables, chronicle), &ledger, &mut figures);
    if engine.card_families().contains(&CardFamily::Virtual) {
        tell_cards(tables, &mut figures);
    }
    figures
}

fn tell_queues(tables: &Tables, ledger: &Ledger<'_>, figures: &mut Figures) {
    let known = tables.queues().filter(|(_, queue)| queue.known);
    let mut queues: Vec<(QueueId, &Queue)> = known.collect();
    queues.sort_by(|(_, a), (_, b)| a.spec.name.cmp(&b.spec.name));
    let amounts = |vector: &Vector| amounts_of(tables, vector);
    for (id, queue) in queues {
        let Some(account) = ledger.account(id) else {
            continue;
        };
        if figures.queues.len() == QUEUES_MAX {
            figures.untold.queues += 1;
            continue;
        }
        figures.queues.push(QueueFigures {
            name: queue.spec.name.clone(),
            allocated: amounts(&account.allocated),
            request: amounts(&account.request),
            deserved: amounts(&account.deserved),
            inqueue: amounts(&account.inqueue),
            ceilings: (account.ceilings.as_ref())
                .map(|(own, real)| (ceilings_of(tables, own), ceilings_of(tables, real))),
            share: account.share.millionths(),
            weight: account.weight,
            is_overused: account.is_overused,
        });
    }
}

fn amounts_of(tables: &Tables, vector: &Vector) -> Amounts {
    let others = vector.entries().filter(|(kind, _)| *kind > Kind::MEMORY);
    Amounts {
        cpu: vector.get(Kind::CPU),
        memory: vector.get(Kind::MEMORY),
        others: others
            .map(|(kind, value)| (tables.kinds().name(kind).clone(), value))
            .collect(),
    }
}

fn ceilings_of(tables: &Tables, limits: &Limits) -> Ceilings {
    let others = limits.entries().filter(|(kind, _)| *kind > Kind::MEMORY);
    let name = |kind: Kind| tables.kinds().name(kind).clone();
    Ceilings {
        cpu: limits.get(Kind::CPU),
        memory: limits.get(Kind::MEMORY),
        others: others.map(|(kind, value)| (name(kind), value)).collect(),
    }
}

fn waits(gang: &Gang) -> bool {
    let verdict = gang.wanted.as_ref().map_or(&gang.said, |it| &it.verdict);
    matches!(verdict, Verdict::Waits(_))
}

fn tell_jobs(
    (tables, chronicle): (&Tables, &Chronicle),
    ledger: &Ledger<'_>,
    figures: &mut Figures,
) {
    let known = tables
        .gangs()
        .filter(|(_, gang)| gang.known && !gang.spec.lone);
    let mut gangs: Vec<(bool, model::Time, GangId)> = known
        .map(|(id, gang)| (!waits(gang), gang.spec.created, id))
        .collect();
    figures.waiting = gangs.iter().filter(|(is_well, ..)| !is_well).count() as u64;
    if gangs.len() > JOBS_MAX {
        figures.untold.jobs = (gangs.len() - JOBS_MAX) as u64;
        gangs.select_nth_unstable(JOBS_MAX);
        gangs.truncate(JOBS_MAX);
    }
    gangs.sort_unstable();
    figures.jobs = gangs
        .into_iter()
        .map(|(is_well, created, id)| {
            let gang = tables.gang(id);
            let looks = chronicle.looks(id);
            let lacks = gang.spec.min_member.saturating_sub(tables.ready(id));
            JobFigures {
                key: gang.spec.key.clone(),
                queue: gang.spec.queue.clone(),
                created: Time(created.micros),
                placed: looks.placed,
                lacks: (!is_well).then_some(lacks),
                in_vain: looks.in_vain,
                share: ledger.share(id).map(model::Share::millionths),
            }
        })
        .collect();
}

fn tell_cards(tables: &Tables, figures: &mut Figures) {
    for (_, node) in tables.nodes() {
        for card in node.spec.cards.list.iter().filter(|it| *it.kind == *GPU) {
            if figures.cards.len() == CARDS_MAX {
                figures.untold.cards += 1;
                continue;
            }
            let load = node.cards.of(&card.id);
            figures.cards.push(CardFigures {
                card: card.id.clone(),
                node: node.spec.name.clone(),
                users: load.map_or(0, |it| it.users),
                memory: load.map_or(0, |it| it.memory),
                cores: load.map_or(0, |it| it.cores),
                memory_whole: card.memory,
            });
        }
    }
    for (_, task) in tables.tasks().filter(|(_, task)| !task.grants.is_empty()) {
        let Some(node) = task.node.and_then(|id| tables.find_node(id)) else {
            continue;
        };
        // Containers of a pod may have parts of one card: the pod has the sum.
        let mut held: BTreeMap<&Arc<str>, (i64, i64)> = BTreeMap::new();
        for grant in task.grants.iter().filter(|it| *it.kind == *GPU) {
            let (memory, cores) = held.entry(&grant.card).or_default();
            *memory = memory.saturating_add(grant.memory);
            *cores = cores.saturating_add(grant.cores);
        }
        for (card, (memory, cores)) in held {
            if figures.grants.len() == CARDS_MAX {
                figures.untold.cards += 1;
                continue;
            }
            figures.grants.push(GrantFigures {
                card: card.clone(),
                node: node.spec.name.clone(),
                pod: task.key.clone(),
                memory,
                cores,
            });
        }
    }
}
