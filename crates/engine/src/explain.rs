//! Explain: what a gang waits for, who holds it, and what would help, each remedy proved.
//!
//! A question is asked of the live tables: what it supposes is undone before it returns
//! ([`Tables::aside`]), and it keeps indexes of its own. Nothing here is copied per question but the
//! rows that it supposes otherwise.

mod fixes;
mod groups;
mod holders;
mod notes;
mod probe;
mod queues;
mod room;
mod rules;
mod scarce;
mod tree;
mod turns;
mod volumes;

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{
    Amount, Change, GangId, GangPhase, Key, NpuDivision, Place, Reason, Refusal, Tables, Time,
    Verdict, VolumeLack, WriteId,
};

use crate::engine::{Engine, Settings};
use probe::Asked;

/// What a gang's next look would bring, and what would change that.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Where it stands.
    pub phase: GangPhase,
    /// Why it would wait, if it would: the binding constraint.
    pub reason: Option<Arc<Reason>>,
    /// The places that it would get. Their write ids are of nothing that was planned.
    pub places: Vec<Place>,
    /// Who holds what it waits for, most first.
    pub holders: Vec<Holder>,
    /// How many nodes refuse its tasks for what, most common first, and how many there are.
    pub nodes: Option<(u32, Vec<(Refusal, u32)>)>,
    /// What more is known of some of these refusals.
    pub notes: BTreeMap<Refusal, Note>,
    /// Whether enough of its tasks have a node, or would get one now, so that only further ones wait.
    pub is_whole: bool,
    /// Changes any one of which admits it now, or starts the next of its tasks where it is whole, cheapest first.
    pub fixes: Vec<Fix>,
    /// Whether so many come before it that what would help it alone was not proved.
    pub is_crowded: bool,
}

/// Somebody who holds what a gang waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The gang, or the pod where it is in none.
    pub who: Key,
    /// How many of its tasks hold it.
    pub tasks: u32,
    /// On which node, where it is room on a node.
    pub node: Option<Arc<str>>,
    /// How much, of the resource that is short.
    pub holds: Amount,
}

/// What more is known of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// So many devices of these nodes are held by claims that no pod has alone: nobody's end is sure to
    /// free them.
    HeldByClaims {
        /// How many.
        devices: u32,
    },
    /// What the queue holds in groups of nodes, and how much it may.
    Limits {
        /// In which, of what.
        rows: Vec<GroupLimit>,
    },
    /// When the zone opens next; never where it has no window.
    Opens {
        /// Then.
        at: Option<Time>,
    },
    /// How much of the nodes is used, in millionths; those come first that are used least.
    Used {
        /// The nodes.
        nodes: Vec<(Arc<str>, i64)>,
        /// How much may be.
        most: i64,
    },
}

/// A limit of a queue in a group of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLimit {
    /// The group.
    pub group: Arc<str>,
    /// What the queue's tasks hold.
    pub used: Amount,
    /// What they may.
    pub limit: Amount,
}

/// A change that admits the gang: proved by deciding again with it.
#[derive(Clone, Debug)]
pub struct Fix {
    /// What is to be done.
    pub remedy: Remedy,
    /// How much of it, for the order among remedies of one kind.
    pub size: i64,
    /// The same as rows.
    pub changes: Vec<Change>,
    /// By which settings that is so, where it is they that change: who decides by them begins anew.
    pub settings: Option<Box<Settings>>,
    /// From when on, where it is not now.
    pub at: Option<Time>,
    /// Whether the gang would be let in and its tasks still have to be made, instead of placed.
    pub only_enters: bool,
}

/// What is to be done. The order is that of cost: what one word mends comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// Open a queue, or create it.
    OpenQueue {
        /// The queue.
        queue: Arc<str>,
        /// Those above it that are closed, topmost first: below one of them nothing can be opened.
        above: Vec<Arc<str>>,
    },
    /// Let pods onto nodes again.
    Uncordon {
        /// The nodes.
        nodes: Vec<Arc<str>>,
    },
    /// Take a taint off nodes.
    Untaint {
        /// The taint's key.
        key: Arc<str>,
        /// The taint's value.
        value: Arc<str>,
        /// The nodes.
        nodes: Vec<Arc<str>>,
    },
    /// Take nodes out of a zone that never opens.
    LeaveZone {
        /// The zone.
        zone: Arc<str>,
        /// The nodes.
        nodes: Vec<Arc<str>>,
    },
    /// Take the scheduling gates off tasks of the gang.
    Ungate {
        /// The pods.
        tasks: Vec<Key>,
    },
    /// Put the gang into a queue below its own.
    MoveToQueue {
        /// That queue.
        queue: Arc<str>,
    },
    /// Hang a queue below another one.
    HangQueue {
        /// The queue.
        queue: Arc<str>,
        /// The one above it.
        parent: Arc<str>,
    },
    /// Let a queue use a group of nodes.
    UseGroup {
        /// The queue.
        queue: Arc<str>,
        /// The group.
        group: Arc<str>,
    },
    /// Put nodes that are in no group into one.
    JoinGroup {
        /// The group.
        group: Arc<str>,
        /// The nodes.
        nodes: Vec<Arc<str>>,
    },
    /// Take away limits in groups of nodes that cannot be read.
    DropGroupLimits {
        /// The queue that has them.
        queue: Arc<str>,
    },
    /// Raise what a queue may have in a group of nodes.
    RaiseGroupLimit {
        /// The queue.
        queue: Arc<str>,
        /// The group.
        group: Arc<str>,
        /// By how much.
        by: Vec<Amount>,
    },
    /// Raise how much of a node may be used before it takes nobody more.
    RaiseThreshold {
        /// Of what.
        resource: Arc<str>,
        /// How much it is, in millionths.
        from: i64,
        /// To so many per cent.
        to: i64,
    },
    /// Raise what a queue may have or should get.
    RaiseQueue {
        /// The queue.
        queue: Arc<str>,
        /// Which of its limits.
        limit: Limit,
        /// By how much.
        by: Vec<Amount>,
        /// By how much the same of queues above it is raised before that, topmost first: the API refuses a
        /// queue more than those above it have.
        above: Vec<(Arc<str>, Vec<Amount>)>,
    },
    /// Raise a namespace's quota.
    RaiseQuota {
        /// The quota.
        quota: Key,
        /// By how much.
        by: Vec<Amount>,
    },
    /// Let the gang start with fewer tasks.
    LowerMinimum {
        /// Of one role, or of the gang.
        role: Option<Arc<str>>,
        /// How many it asks for.
        from: u32,
        /// How many would start now.
        to: u32,
        /// How many tasks of all roles it starts with then, where that has to be fewer, too.
        tasks: Option<u32>,
    },
    /// Let the gang start with fewer of the groups within it.
    LowerGroups {
        /// What they are called.
        name: Arc<str>,
        /// How many it asks for.
        from: u32,
        /// How many would start now.
        to: u32,
        /// How many tasks it starts with then, where that has to be fewer, too.
        tasks: Option<u32>,
    },
    /// Let groups within the gang be smaller.
    ShrinkGroups {
        /// What they are called.
        name: Arc<str>,
        /// How many tasks one has.
        from: u32,
        /// How many would do now.
        to: u32,
    },
    /// Let the gang's waiting tasks be on nodes that are lent out only at times.
    BearLending,
    /// Have a claim of the gang's tasks bound to a volume that every node reaches.
    BindClaim {
        /// The claim.
        claim: Arc<str>,
        /// What is wrong with it.
        why: VolumeLack,
    },
    /// Drop the node selector and the required node affinity of the gang's waiting tasks.
    DropSelector,
    /// Drop the host ports of the gang's waiting tasks.
    DropPorts,
    /// Drop the words for models of cards of the gang's waiting tasks.
    DropCardModels {
        /// Those that they want.
        wanted: Vec<Arc<str>>,
        /// Those that they do not.
        refused: Vec<Arc<str>>,
    },
    /// Drop the ids of cards that the gang's waiting tasks name.
    DropCardIds,
    /// Let the gang's waiting tasks have cards in whatever mode they run.
    DropCardMode,
    /// Let the gang's waiting tasks have NPUs however these are divided.
    DropNpuMode,
    /// Let the gang's tasks be together on a card.
    DropCardsApart,
    /// Drop what the devices of a claim of the gang's waiting tasks must have in common, or differ in.
    DropDeviceRules,
    /// Have the claims of the gang's waiting tasks bear the taints of devices.
    BearDeviceTaints,
    /// Drop the NUMA policy of the gang's waiting tasks.
    DropNumaPolicy,
    /// Drop the required topology spread of the gang's waiting tasks.
    DropSpread,
    /// Drop the required pod affinity and anti-affinity of the gang's waiting tasks.
    DropPodAffinity,
    /// Have volumes for the claims of the gang's waiting tasks that every node reaches.
    ReachVolumes,
    /// Have the NPUs of nodes divided otherwise.
    DivideNpus {
        /// How.
        division: NpuDivision,
        /// The nodes.
        nodes: Vec<Arc<str>>,
    },
    /// Let the gang's tasks be far apart.
    DropCloseness,
    /// Wait for a zone to open.
    AwaitZone {
        /// The zone.
        zone: Arc<str>,
        /// Until then.
        until: Time,
    },
    /// Wait for tasks of others to end, or end them.
    EndTasks {
        /// The pods.
        tasks: Vec<Key>,
    },
    /// Add nodes.
    AddNodes {
        /// How many.
        count: u32,
        /// Like which one.
        like: Arc<str>,
    },
}

/// A limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// The most that it may have.
    Capability,
    /// What it should get.
    Deserved,
}

impl Limit {
    /// The field's name in the API.
    pub fn word(self) -> &'static str {
        match self {
            Limit::Capability => "capability",
            Limit::Deserved => "deserved",
        }
    }
}

impl Remedy {
    /// Where it stands in the order of cost.
    fn rank(&self) -> u32 {
        match self {
            Remedy::OpenQueue { .. } | Remedy::HangQueue { .. } | Remedy::MoveToQueue { .. } => 0,
            Remedy::Uncordon { .. } => 1,
            Remedy::Untaint { .. } | Remedy::LeaveZone { .. } | Remedy::JoinGroup { .. } => 2,
            Remedy::Ungate { .. } => 3,
            Remedy::RaiseQueue { .. }
            | Remedy::RaiseQuota { .. }
            | Remedy::RaiseGroupLimit { .. }
            | Remedy::RaiseThreshold { .. }
            | Remedy::DropGroupLimits { .. }
            | Remedy::UseGroup { .. } => 4,
            Remedy::LowerMinimum { .. }
            | Remedy::LowerGroups { .. }
            | Remedy::ShrinkGroups { .. } => 5,
            Remedy::BindClaim { .. } => 6,
            Remedy::BearDeviceTaints
            | Remedy::BearLending
            | Remedy::DropCardIds
            | Remedy::DropCardModels { .. }
            | Remedy::DropCardMode
            | Remedy::DropCardsApart
            | Remedy::DropDeviceRules
            | Remedy::DropNpuMode
            | Remedy::DropNumaPolicy
            | Remedy::DropPodAffinity
            | Remedy::DropPorts
            | Remedy::DropSelector
            | Remedy::DropSpread => 7,
            Remedy::DropCloseness => 8,
            Remedy::DivideNpus { .. } | Remedy::ReachVolumes => 9,
            Remedy::AwaitZone { .. } => 10,
            Remedy::EndTasks { .. } => 11,
            Remedy::AddNodes { .. } => 12,
        }
    }
}

/// A copy of the tables for questions; nothing decided on it reaches the world.
pub fn fork(tables: &Tables) -> Tables {
    tables.clone()
}

/// Looks at one gang alone, says what binds it and who holds that, and proves what would help. The
/// tables, on which the engine decides, are as before when it returns: it goes on from what the engine
/// knows of their nodes.
pub fn explain(engine: &Engine, tables: &mut Tables, gang: GangId, now: Time) -> Explanation {
    tables.aside(|tables| {
        let mut asked = Asked::new(engine, tables, gang, now);
        let mut looked = probe::look(&mut asked, tables);
        if looked.is_admitted() && tables.has_news() {
            // Others whom nobody has looked at yet may come first.
            looked = probe::cycle(&mut asked, tables);
        }
        let mut explanation = Explanation {
            phase: tables.gang(gang).phase(),
            reason: looked.reason.clone(),
            places: looked.places,
            is_whole: looked.is_whole,
            holders: Vec::new(),
            nodes: None,
            notes: BTreeMap::new(),
            fixes: Vec::new(),
            is_crowded: false,
        };
        if let (None, [], Verdict::Waits(said)) = (
            &explanation.reason,
            &explanation.places[..],
            &tables.gang(gang).said,
        ) {
            // The actions have nothing to do for it: what was said last still holds.
            explanation.reason = Some(said.clone());
        }
        let Some(reason) = explanation.reason.clone() else {
            return explanation;
        };
        asked.promised = looked.promised;
        let able = room::able(&mut asked, tables, &reason);
        explanation.holders = holders::of(&asked, tables, &reason, &able);
        if let Reason::NoFit(no_fit) = &*reason {
            explanation.nodes = Some((no_fit.nodes, no_fit.refusals.clone()));
            explanation.notes = notes::of(engine, tables, (gang, no_fit), &able, now);
        }
        asked.hush(&explanation);
        (explanation.fixes, explanation.is_crowded) = fixes::of(&mut asked, tables, &reason, able);
        explanation
    })
}

/// How many tasks of a gang, or of none, hold how much, and on which node.
type Sums = BTreeMap<(Key, Option<Arc<str>>), (u32, Amount)>;

/// The sums, most first, no more than [`HOLDERS_MAX`].
fn most(sums: Sums) -> Vec<Holder> {
    let mut holders: Vec<Holder> = sums
        .into_iter()
        .map(|((who, node), (tasks, holds))| Holder {
            who,
            tasks,
            node,
            holds,
        })
        .collect();
    holders.sort_by(|a, b| {
        let more = b.holds.value.cmp(&a.holds.value);
        more.then_with(|| a.who.cmp(&b.who))
            .then_with(|| a.node.cmp(&b.node))
    });
    holders.truncate(HOLDERS_MAX);
    holders
}

/// The most holders that are told.
pub const HOLDERS_MAX: usize = 32;

/// The write id of a place that nobody planned.
const UNPLANNED: WriteId = WriteId(u64::MAX);
