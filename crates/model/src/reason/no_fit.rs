//! Tasks that find no node: how many fit, what is missing, and who refuses the first that does not.

use std::fmt::Write as _;
use std::sync::Arc;

use super::{Refusal, count, told_alike};
use crate::claim::UnmetClaim;
use crate::resource::Amount;
use crate::shape::VolumeLack;
use crate::topology::Within;

/// What is known about tasks that find no node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoFit {
    /// How many of the wanted tasks have a place or found one.
    pub fits: u32,
    /// How many must have one together.
    pub wanted: u32,
    /// What a person calls the first task that found none: role and index, else the pod's name.
    pub task: String,
    /// That task's pod, `namespace/name`.
    pub pod: String,
    /// What would help it soonest.
    pub missing: Missing,
    /// How many nodes there are.
    pub nodes: u32,
    /// How many nodes refuse it for what, most common first.
    pub refusals: Vec<(Refusal, u32)>,
    /// Which nodes were looked at, if the tasks must be close together.
    pub within: Option<Within>,
    /// Whether only the tasks of a part of the gang must be there: those that fit may have places elsewhere.
    pub is_of_part: bool,
}

/// The nearest miss of a task that finds no node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// There is no node at all.
    Nodes,
    /// All nodes are other schedulers'.
    OwnNodes {
        /// How many there are.
        others: u32,
    },
    /// The scheduler's shard has no node.
    Shard {
        /// Its name.
        shard: Arc<str>,
        /// Whether there is such a shard.
        exists: bool,
    },
    /// Every node refuses for another reason than room.
    Rules,
    /// A node would do but for this much room.
    Room {
        /// What the task needs.
        need: Amount,
        /// The node with the most of it left among those that only lack room.
        node: Arc<str>,
        /// What it has left.
        left: Amount,
    },
    /// The task shares a claim that waits for its first consumer, and the node where the claim
    /// goes does not take it.
    Together {
        /// The claim.
        claim: Arc<str>,
        /// Where it goes.
        node: Arc<str>,
        /// What the task needs and what that node has left of it, if it is room that lacks.
        room: Option<(Amount, Amount)>,
    },
    /// The task's claim cannot be used yet.
    Volume {
        /// The claim.
        claim: Arc<str>,
        /// What is wrong with it.
        why: VolumeLack,
    },
    /// The task claims devices in a way that no node can serve.
    Devices {
        /// The claim, and what is wrong with it.
        claim: UnmetClaim,
    },
}

impl NoFit {
    pub(super) fn sentence(&self) -> String {
        let NoFit {
            fits, wanted, task, ..
        } = self;
        let place = self.within.as_ref().map_or_else(String::new, Within::words);
        let head = match self.is_of_part && !place.is_empty() {
            true => format!("{fits} of {wanted} tasks fit; {place}{task}"),
            false => format!("{place}{fits} of {wanted} tasks fit: {task}"),
        };
        match &self.missing {
            Missing::Nodes => format!("{head} finds no node, there is none"),
            Missing::OwnNodes { others } => {
                let others = count(*others, "node is", "nodes are");
                format!("{head} finds no node, {others} other schedulers'")
            }
            Missing::Shard {
                shard,
                exists: false,
            } => format!("{head} finds no node, shard {shard} does not exist"),
            Missing::Shard {
                shard,
                exists: true,
            } => format!("{head} finds no node, shard {shard} has none"),
            Missing::Room { need, node, left } => {
                // Nodes that may have room and are out of the question all the same.
                let is_away = |why: &Refusal| {
                    matches!(
                        why,
                        Refusal::VolumeTopology | Refusal::OfOthers | Refusal::OutOfShard
                    )
                };
                let mut away = String::new();
                for (why, nodes) in self.refusals.iter().filter(|(why, _)| is_away(why)) {
                    let nodes = count(*nodes, "node is", "nodes are");
                    let _ = write!(away, ", and {nodes} {}", why.words());
                }
                format!(
                    "{head} needs {need}, {node} has {} left{away}",
                    left.number()
                )
            }
            Missing::Together { claim, node, room } => {
                let must = format!("{head} must go where its claim {claim} goes");
                match room {
                    Some((need, left)) => format!(
                        "{must}, but needs {need} and {node} has {} left",
                        left.number()
                    ),
                    None => format!("{must}, but {node} refuses it"),
                }
            }
            Missing::Volume { claim, why } => {
                format!("{head} needs claim {claim}, which {}", why.words())
            }
            Missing::Devices { claim } => {
                format!(
                    "{head} needs claim {}, which {}",
                    claim.name,
                    claim.why.words()
                )
            }
            Missing::Rules => {
                let mut text = format!(
                    "{head} is refused by {}",
                    count(self.nodes, "node", "nodes")
                );
                let told = told_alike(&self.refusals, Refusal::words);
                for (at, (words, nodes)) in told.iter().enumerate() {
                    let separator = if at == 0 { ": " } else { ", " };
                    let _ = write!(text, "{separator}{nodes} {words}");
                }
                text
            }
        }
    }
}
