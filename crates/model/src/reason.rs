//! Why something waits, refuses or ends: one coded list, with a sentence in plain words for each.
//!
//! `mirror` maps each variant to upstream's condition or event string; `explain`, the command line
//! and the dashboard print [`Reason::sentence`].

mod alike;
mod lacks;
mod misplaced;
mod no_fit;

use std::sync::Arc;

use crate::device::CardFamily;
use crate::numa::NumaLack;
use crate::queue::QueueState;
use crate::resource::Amount;
use crate::roles::{TOPOLOGY_ROLES_MAX, TopologyFault};
use crate::topology::Highest;

pub use alike::told_alike;
pub use lacks::{CardLack, DeviceLack, GroupLack};
pub use misplaced::Misplaced;
pub use no_fit::{Missing, NoFit};

/// Why a gang or a task waits, or has to leave its node. Every variant occurs in a scenario of `placement`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Tasks carry scheduling gates, and without them the minimum is not met.
    Gated {
        /// How many are gated.
        tasks: u32,
    },
    /// Somebody outside whom the rules ask says no, or says nothing that counts.
    ExtenderRefuses {
        /// What was asked.
        verb: &'static str,
        /// What was said.
        why: Arc<str>,
    },
    /// The group that a task names does not exist.
    GroupMissing {
        /// Its name.
        group: Arc<str>,
    },
    /// Some tasks find no node.
    NoFit(Box<NoFit>),
    /// A task would have a place, and its gang does not start: why.
    HasPlace(Arc<Reason>),
    /// A task is promised room, and its gang waits for it.
    HasPromise {
        /// Where.
        node: Arc<str>,
        /// What the gang waits for.
        gang: Arc<Reason>,
    },
    /// There is no hyper-node in which its tasks may be together.
    NoHyperNode {
        /// The greatest tier that may hold them.
        highest: Highest,
        /// Whether there are such hyper-nodes, but some of the tasks have places apart already.
        is_scattered: bool,
    },
    /// The gang has fewer tasks of a role than that role's minimum.
    NotEnoughPodsOfTask {
        /// The role.
        role: Arc<str>,
        /// Tasks there are that have not failed.
        have: u32,
        /// Tasks there must be.
        min: u32,
        /// Tasks that are there still and have failed.
        failed: u32,
    },
    /// The gang has fewer whole groups of tasks than it starts with.
    NotEnoughSubGroups {
        /// What they are called.
        name: Arc<str>,
        /// Groups that have enough tasks.
        have: u32,
        /// Groups there must be.
        min: u32,
    },
    /// The gang has fewer tasks than its minimum.
    NotEnoughTasks {
        /// Tasks there are that have not failed.
        have: u32,
        /// Tasks there must be.
        min: u32,
        /// Tasks that are there still and have failed.
        failed: u32,
    },
    /// The task's node is used more than it should be, and others have room.
    NodeOverused {
        /// The node.
        node: Arc<str>,
        /// Of what it is used too much.
        resource: Arc<str>,
        /// How much of it is used, in per cent.
        percent: u32,
        /// How much of it should be used at most, in per cent.
        most: u32,
    },
    /// Letting the gang in would promise more than the cluster (times the overcommit factor) has.
    Overcommitted {
        /// The resources that are short, by name.
        short: Vec<Arc<str>>,
        /// Whether it would be too much of one of them if nothing were promised to others.
        is_beyond_all: bool,
    },
    /// A task would take its queue beyond its share.
    QueueFull {
        /// The queue.
        queue: Arc<str>,
        /// What the task needs of the scarcest resource.
        need: Amount,
        /// What the queue has left of it.
        left: Amount,
    },
    /// Letting the gang in would take its namespace beyond a quota.
    NamespaceQuota {
        /// The quota, `namespace/name`.
        quota: Arc<str>,
        /// The resources that are short.
        short: Vec<QuotaGap>,
    },
    /// The queue is not where work can be done: nothing below it or in it is let in or placed.
    QueueMisplaced {
        /// The queue.
        queue: Arc<str>,
        /// What is wrong with its place in the tree.
        why: Misplaced,
    },
    /// The queue does not exist.
    QueueMissing {
        /// Its name.
        queue: Arc<str>,
    },
    /// The queue does not take work.
    QueueNotOpen {
        /// The queue.
        queue: Arc<str>,
        /// Its state.
        state: QueueState,
    },
    /// The queue has at least its share of everything.
    QueueOverused {
        /// The queue.
        queue: Arc<str>,
    },
    /// Letting the gang in would take its queue beyond its capability.
    QueueQuota {
        /// The queue.
        queue: Arc<str>,
        /// The resources that are short, by name.
        short: Vec<Arc<str>>,
    },
    /// The gang's pods name several schedulers: none can start it as one.
    SeveralSchedulers,
    /// What the gang says of which roles are to be together is ignored. It does not wait for that.
    TaskTopologyIgnored {
        /// What is wrong with it.
        why: TopologyFault,
    },
    /// Somebody outside is asked, and has not answered yet.
    WaitsForAnswer {
        /// What is asked.
        verb: &'static str,
    },
    /// The gang has waited for too long: it is kept room that others still use.
    WaitsForDrain {
        /// How many of its tasks are promised room.
        tasks: u32,
        /// On how many nodes.
        nodes: u32,
    },
    /// The gang fits once tasks on their way out are gone; their room is kept for it.
    WaitsForRelease {
        /// How many of its tasks are promised room.
        tasks: u32,
    },
    /// The task's node is in a zone that is lent out only at times, and not now.
    ZoneClosed {
        /// The zone.
        zone: Arc<str>,
        /// The node.
        node: Arc<str>,
    },
}

impl Reason {
    /// Why the gang waits, of a reason that is told to one of its tasks.
    pub fn of_gang(&self) -> &Reason {
        match self {
            Reason::HasPlace(gang) | Reason::HasPromise { gang, .. } => gang.of_gang(),
            reason => reason,
        }
    }

    /// The variant's name, for machines and for lists; of a task that is as good as placed its gang's.
    pub fn code(&self) -> &'static str {
        match self {
            Reason::HasPlace(gang) | Reason::HasPromise { gang, .. } => gang.code(),
            Reason::ExtenderRefuses { .. } => "ExtenderRefuses",
            Reason::Gated { .. } => "Gated",
            Reason::NoFit(_) => "NoFit",
            Reason::NoHyperNode { .. } => "NoHyperNode",
            Reason::NotEnoughPodsOfTask { .. } => "NotEnoughPodsOfTask",
            Reason::NotEnoughSubGroups { .. } => "NotEnoughSubGroups",
            Reason::NotEnoughTasks { .. } => "NotEnoughTasks",
            Reason::NodeOverused { .. } => "NodeOverused",
            Reason::Overcommitted { .. } => "Overcommitted",
            Reason::QueueFull { .. } => "QueueFull",
            Reason::NamespaceQuota { .. } => "NamespaceQuota",
            Reason::QueueMisplaced { .. } => "QueueMisplaced",
            Reason::GroupMissing { .. } => "GroupMissing",
            Reason::QueueMissing { .. } => "QueueMissing",
            Reason::QueueNotOpen { .. } => "QueueNotOpen",
            Reason::QueueOverused { .. } => "QueueOverused",
            Reason::QueueQuota { .. } => "QueueQuota",
            Reason::SeveralSchedulers => "SeveralSchedulers",
            Reason::TaskTopologyIgnored { .. } => "TaskTopologyIgnored",
            Reason::WaitsForAnswer { .. } => "WaitsForAnswer",
            Reason::WaitsForDrain { .. } => "WaitsForDrain",
            Reason::WaitsForRelease { .. } => "WaitsForRelease",
            Reason::ZoneClosed { .. } => "ZoneClosed",
        }
    }

    /// Whether a gang with pods that waits for this is told in which states its tasks are, as upstream tells
    /// it; the words of the others have no other numbers than the reason's own.
    pub fn counts_tasks(&self) -> bool {
        !matches!(
            self,
            Reason::NotEnoughPodsOfTask { .. } | Reason::NotEnoughTasks { .. }
        )
    }

    /// The reason in plain words.
    pub fn sentence(&self) -> String {
        match self {
            Reason::Gated { tasks } => {
                format!("{} still gated", count(*tasks, "task is", "tasks are"))
            }
            Reason::HasPlace(gang) | Reason::HasPromise { gang, .. } => gang.sentence(),
            Reason::NoFit(no_fit) => no_fit.sentence(),
            Reason::NoHyperNode {
                highest,
                is_scattered,
            } => {
                let tier = match highest {
                    Highest::Any => "any tier".to_owned(),
                    Highest::Tier(tier) => format!("tier {tier} or lower"),
                    Highest::Named(name) => format!("tier {name} or lower"),
                };
                match is_scattered {
                    true => format!("its placed tasks are not within one hyper-node of {tier}"),
                    false => format!("there is no hyper-node of {tier}"),
                }
            }
            Reason::NotEnoughPodsOfTask {
                role,
                have,
                min,
                failed,
            } => {
                let left = left(*failed);
                format!(
                    "{have} of the {} of {role} {left}",
                    count(*min, "pod", "pods")
                )
            }
            Reason::NotEnoughSubGroups { name, have, min } => {
                format!(
                    "{have} of the {} of {name} have enough pods",
                    count(*min, "group", "groups")
                )
            }
            Reason::NotEnoughTasks { have, min, failed } => {
                let left = left(*failed);
                format!(
                    "{have} of the {} it starts with {left}",
                    count(*min, "task", "tasks")
                )
            }
            Reason::Overcommitted { short, .. } if short.iter().all(|name| &**name == "pods") => {
                "the cluster has fewer pod slots than the gang has tasks".to_owned()
            }
            Reason::Overcommitted {
                short,
                is_beyond_all: true,
            } => format!("it starts with more {} than the cluster has", list(short)),
            Reason::Overcommitted { short, .. } => {
                format!("the cluster has promised too much {} already", list(short))
            }
            Reason::QueueFull { queue, need, left } => {
                format!(
                    "queue {queue} has {} left of its share, a task needs {need}",
                    left.number()
                )
            }
            Reason::NamespaceQuota { quota, short } => {
                let names: Vec<_> = short.iter().map(|it| it.requested.name.clone()).collect();
                format!("quota {quota} has too little {} left", list(&names))
            }
            Reason::QueueMisplaced { queue, why } => why.sentence(queue),
            Reason::GroupMissing { group } => {
                format!("its PodGroup {group} does not exist: it is placed once there is one")
            }
            Reason::QueueMissing { queue } => format!("queue {queue} does not exist"),
            Reason::QueueNotOpen { queue, state } => {
                format!("queue {queue} is {}, not Open", state.word())
            }
            Reason::QueueOverused { queue } => format!("queue {queue} has its whole share in use"),
            Reason::QueueQuota { queue, short } => {
                format!("queue {queue} has too little {} left", list(short))
            }
            Reason::SeveralSchedulers => {
                "its pods name several schedulers, and all of them have to name one".to_owned()
            }
            Reason::TaskTopologyIgnored { why } => match why {
                TopologyFault::Missing { role } => {
                    format!("its task topology is ignored: it has no task {role}")
                }
                TopologyFault::Twice { role } => {
                    format!("its task topology is ignored: it names {role} twice in one group")
                }
                TopologyFault::TooMany => format!(
                    "its task topology is ignored: it names more than {TOPOLOGY_ROLES_MAX} tasks"
                ),
            },
            Reason::ExtenderRefuses { verb, why } => {
                format!("the extender refuses it ({verb}): {why}")
            }
            Reason::WaitsForAnswer { verb } => {
                format!("the extender is asked ({verb}) and has not answered yet")
            }
            Reason::WaitsForDrain { tasks, nodes } => format!(
                "it has waited for long: room for {} on {} is kept for it until what runs there has ended",
                count(*tasks, "task", "tasks"),
                count(*nodes, "node", "nodes")
            ),
            Reason::WaitsForRelease { tasks } => format!(
                "room is kept for {} until pods that are ending have gone",
                count(*tasks, "task", "tasks")
            ),
            Reason::NodeOverused {
                node,
                resource,
                percent,
                most,
            } => format!("{percent} % of the {resource} of {node} is used, more than {most} %"),
            Reason::ZoneClosed { zone, node } => {
                format!("zone {zone}, in which {node} is, is closed now")
            }
        }
    }
}

/// A resource of which a quota has too little left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaGap {
    /// What the gang asks for.
    pub requested: Amount,
    /// What is used, with what was let in and has no pods yet.
    pub used: Amount,
    /// What the quota allows.
    pub limited: Amount,
}

/// Why one node refuses one task, in the order in which the rules are asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// The node is cordoned.
    Unschedulable,
    /// The node is in a zone that is lent out only at times, and not now.
    ZoneClosed {
        /// The zone.
        zone: Arc<str>,
        /// When it is lent out each day, `22:00-06:00`; never where there is none.
        window: Option<Arc<str>>,
    },
    /// The node is lent out only at times, which the task does not bear.
    Revocable,
    /// More of the node is used than it may be for new tasks.
    Overused {
        /// What is used too much.
        resource: Arc<str>,
    },
    /// Node selector or required node affinity.
    NodeAffinity,
    /// The node is in no group that the queue uses, or in none at all.
    NodeGroup {
        /// Which of them.
        why: GroupLack,
    },
    /// The queue's tasks hold what they may in the node's group.
    NodeGroupFull,
    /// What the queue's tasks may hold in groups of nodes cannot be read.
    NodeGroupLimitsUnreadable,
    /// A host port is taken.
    Ports,
    /// A taint that is not tolerated.
    Taint {
        /// Its key.
        key: Arc<str>,
        /// Its value.
        value: Arc<str>,
    },
    /// Required pod affinity.
    PodAffinity,
    /// Required pod anti-affinity of the task itself.
    PodAntiAffinity,
    /// Required pod anti-affinity of a pod that is already there.
    ExistingAntiAffinity,
    /// No attach slot is left.
    VolumeLimit,
    /// A bound volume, or the class's topology, is elsewhere.
    VolumeTopology,
    /// A bound volume is in another zone or region.
    VolumeZone,
    /// A claim that the task shares with others goes to another node.
    VolumeElsewhere,
    /// Another pod uses a claim that one may use at a time.
    VolumeInUse,
    /// A claim does not exist or is not bound.
    VolumeWaits,
    /// A claim that waits for its first consumer finds no free volume, and none is made there.
    NoFreeVolume,
    /// The storage from which a claim's volume would be made has too little left.
    LittleStorage,
    /// The devices that the task claims are not to be had there.
    Devices {
        /// Why not.
        why: DeviceLack,
    },
    /// A topology spread constraint: one more here would be too uneven.
    Spread,
    /// A topology spread constraint over a key that the node has no label of.
    SpreadLabel,
    /// Too little cpu or memory would be left for the idle pieces of a scarce resource.
    OutOfProportion {
        /// The scarce resource's name.
        resource: Arc<str>,
    },
    /// The node is another scheduler's.
    OfOthers,
    /// The node is not in the scheduler's shard.
    OutOfShard,
    /// Its cards do not do.
    Cards {
        /// Of which family they are.
        family: CardFamily,
        /// What lacks.
        why: CardLack,
    },
    /// Somebody outside whom the rules ask says no, or says nothing that counts.
    Extender {
        /// What was asked.
        verb: &'static str,
        /// What was said.
        why: Arc<str>,
    },
    /// Somebody outside is asked, and has not answered yet.
    Unanswered,
    /// Its NUMA nodes do not do.
    Numa {
        /// What lacks.
        why: NumaLack,
    },
    /// No pod slot is left.
    TooManyPods,
    /// Too little of a resource is left.
    Insufficient {
        /// Its name.
        resource: Arc<str>,
    },
}

impl Refusal {
    /// The same as [`Refusal::words`], with what only those are to know who may look at nodes: a taint's key
    /// and value.
    pub fn words_in_full(&self) -> String {
        match self {
            Refusal::Taint { key, value } => format!("tainted {key}={value}"),
            refusal => refusal.words(),
        }
    }

    /// What the nodes are or lack, to follow their number. Of nodes it tells nothing that tenants should not
    /// read, for it stands in the statuses of their pods.
    pub fn words(&self) -> String {
        match self {
            Refusal::Unschedulable => "unschedulable".to_owned(),
            Refusal::ZoneClosed { zone, .. } => format!("in zone {zone}, which is closed now"),
            Refusal::Revocable => "lent out only at times".to_owned(),
            Refusal::Overused { resource } => format!("where too much {resource} is used"),
            Refusal::NodeAffinity => "not selected".to_owned(),
            Refusal::NodeGroup { .. } => "in no group that the queue uses".to_owned(),
            Refusal::NodeGroupFull => "in a group where the queue is at its limit".to_owned(),
            Refusal::NodeGroupLimitsUnreadable => {
                "in groups whose limits for the queue are unreadable".to_owned()
            }
            Refusal::Ports => "with the host port taken".to_owned(),
            Refusal::Taint { .. } => "tainted".to_owned(),
            Refusal::PodAffinity => "away from the pods it must be near".to_owned(),
            Refusal::PodAntiAffinity => "near pods it must avoid".to_owned(),
            Refusal::ExistingAntiAffinity => "near pods that avoid it".to_owned(),
            Refusal::VolumeLimit => "without an attach slot".to_owned(),
            Refusal::VolumeTopology => "away from its volume".to_owned(),
            Refusal::VolumeZone => "in another zone than its volume".to_owned(),
            Refusal::VolumeElsewhere => "away from its claim".to_owned(),
            Refusal::VolumeInUse => "while another pod uses its claim".to_owned(),
            Refusal::VolumeWaits => "waiting for its claim".to_owned(),
            Refusal::NoFreeVolume => "without a free volume for its claim".to_owned(),
            Refusal::LittleStorage => "without enough free storage".to_owned(),
            Refusal::Devices { why } => why.words(),
            Refusal::Spread => "beyond the allowed skew".to_owned(),
            Refusal::SpreadLabel => "without the label to spread over".to_owned(),
            Refusal::OutOfProportion { resource } => {
                format!("that would have too little left beside {resource}")
            }
            Refusal::OfOthers => "of other schedulers".to_owned(),
            Refusal::OutOfShard => "outside this scheduler's shard".to_owned(),
            Refusal::Cards { why, .. } => why.words().to_owned(),
            Refusal::Extender { verb, why } => format!("refused by the extender ({verb}: {why})"),
            Refusal::Unanswered => "of which the extender has not answered yet".to_owned(),
            Refusal::Numa { why } => why.words(),
            Refusal::TooManyPods => "without a pod slot".to_owned(),
            Refusal::Insufficient { resource } => format!("without enough {resource}"),
        }
    }
}

/// What is said of tasks of which there are too few: a failed one is there, but does not count.
fn left(failed: u32) -> String {
    match failed {
        0 => "exist".to_owned(),
        failed => format!("are left, {} failed", count(failed, "has", "have")),
    }
}

fn count(n: u32, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

fn list(names: &[Arc<str>]) -> String {
    names.iter().map(|n| &**n).collect::<Vec<_>>().join(", ")
}
