//! What somebody changes besides what parts say themselves: of queues, nodes, and nothing that
//! matters. Whatever it is, it is undone or bearable, so that no part may end otherwise for it.

use api::intent::Propagation;
use api::kind::Kind;
use serde_json::{Value, json};

use super::tree::Tree;
use super::{Pace, create, delete, manifest, merge, pick};
use crate::random::Random;
use crate::world::World;

/// One change.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    /// Counted on from the parts.
    pub(super) index: usize,
    pub(super) at_ms: i64,
    pub(super) what: What,
}

/// What is changed.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// A queue is closed and opened again.
    Closes { queue: String, for_ms: i64 },
    /// A node is cordoned, and uncordoned.
    Cordons { node: u32, for_ms: i64 },
    /// A queue is deleted, which is refused while it is in use, and made again if it was not.
    Deletes { at: usize, for_ms: i64 },
    /// Something gets a label and an annotation that mean nothing.
    Notes { kind: Kind, name: String },
    /// A queue gets another ceiling.
    Recaps { queue: String, milli: i64 },
    /// A queue gets another weight.
    Reweighs { queue: String, weight: i64 },
    /// A claim is made whose volume waits for no pod, and deleted.
    Stores { for_ms: i64 },
}

impl Edit {
    pub(super) fn draw(
        random: &mut Random,
        index: usize,
        tree: &Tree,
        nodes: u32,
        parts: usize,
        pace: &Pace,
    ) -> Edit {
        let at_ms = random.between(0, pace.parts_ms + pace.after_ms);
        let for_ms = random.between(0, pace.after_ms);
        Edit {
            index,
            at_ms,
            what: What::draw(random, tree, nodes, parts, for_ms),
        }
    }

    /// A claim that nobody mounts, at some time between two.
    pub(super) fn stores(random: &mut Random, index: usize, (from_ms, to_ms): (i64, i64)) -> Edit {
        Edit {
            index,
            at_ms: random.between(from_ms, to_ms),
            what: What::Stores {
                for_ms: random.between(1_000, 120_000),
            },
        }
    }

    /// Whether it needs the class whose volumes wait for no pod.
    pub(super) fn needs_class(&self) -> bool {
        matches!(self.what, What::Stores { .. })
    }

    /// Hands it to a world. Whatever is to be in the end is insisted on.
    pub(super) fn schedule(&self, tree: &Tree, world: &mut World) {
        let at = self.at_ms;
        match &self.what {
            What::Closes { queue, for_ms } => {
                world.command_queue(at, queue, "CloseQueue");
                world.command_queue(at + for_ms, queue, "OpenQueue");
            }
            What::Cordons { node, for_ms } => {
                let target = Kind::Node.path("", &nodes::name(*node));
                let spec = |is_on: Value| json!({ "spec": { "unschedulable": is_on } });
                world.call(at, merge(&target, &spec(true.into())));
                world.insist(at + for_ms, merge(&target, &spec(Value::Null)));
            }
            What::Deletes { at: queue, for_ms } => {
                let manifest = tree.manifest(*queue);
                let target = Kind::Queue.path("", &tree.queues[*queue].name);
                world.call(at, delete(target, Propagation::Background));
                world.insist(at + for_ms, create(Kind::Queue, manifest));
            }
            What::Notes { kind, name } => {
                let namespace = if kind.row().namespaced { "default" } else { "" };
                let note = self.index.to_string();
                let patch = json!({ "metadata": {
                    "annotations": { "somebody/note": note },
                    "labels": { "somebody": note },
                }});
                world.call(at, merge(&kind.path(namespace, name), &patch));
            }
            What::Recaps { queue, milli } => {
                let cpu = json!({ "cpu": format!("{milli}m") });
                let patch = json!({ "spec": { "capability": cpu } });
                world.insist(at, merge(&Kind::Queue.path("", queue), &patch));
            }
            What::Reweighs { queue, weight } => {
                let patch = json!({ "spec": { "weight": weight } });
                world.insist(at, merge(&Kind::Queue.path("", queue), &patch));
            }
            What::Stores { for_ms } => {
                let name = format!("stored-{}", self.index);
                let claim = manifest::claim_at_once(&name);
                let target = Kind::PersistentVolumeClaim.path("default", &name);
                world.insist(at, create(Kind::PersistentVolumeClaim, claim));
                world.insist(at + for_ms, delete(target, Propagation::Background));
            }
        }
    }

    /// For the transcript.
    pub(super) fn told(&self) -> String {
        format!("edit {} at {} ms: {:?}", self.index, self.at_ms, self.what)
    }
}

impl What {
    fn draw(random: &mut Random, tree: &Tree, nodes: u32, parts: usize, for_ms: i64) -> What {
        let cordons = |random: &mut Random| {
            let node = random.between(0, i64::from(nodes) - 1);
            let node = u32::try_from(node).unwrap_or(0);
            What::Cordons { node, for_ms }
        };
        let count = i64::try_from(tree.queues.len()).unwrap_or(0);
        let kinds = if count == 0 { 3 } else { 8 };
        let at = pick(random, count.max(1));
        let queue = tree.queues.get(at);
        match (pick(random, kinds), queue) {
            (3 | 4, Some(queue)) => What::Closes {
                queue: queue.name.clone(),
                for_ms,
            },
            (5, Some(_)) => What::Deletes { at, for_ms },
            (6, Some(queue)) => What::Reweighs {
                queue: queue.name.clone(),
                weight: queue.weight_later,
            },
            (7, Some(queue)) => match queue.ceiling_later_milli {
                Some(milli) => What::Recaps {
                    queue: queue.name.clone(),
                    milli,
                },
                None => cordons(random),
            },
            (0, _) => cordons(random),
            _ => {
                let part = random.between(0, i64::try_from(parts).unwrap_or(1) - 1);
                let kinds = [Kind::VcJob, Kind::Pod, Kind::Node, Kind::Queue];
                let kind = kinds[pick(random, 4)];
                let name = match kind {
                    Kind::VcJob => format!("part-{part}"),
                    Kind::Pod => format!("part-{part}-work-0"),
                    Kind::Queue => "default".to_owned(),
                    _ => nodes::name(0),
                };
                What::Notes { kind, name }
            }
        }
    }
}
