//! A queue among its parents, siblings and children.

use std::collections::{BTreeMap, BTreeSet};

use api::core::ResourceList;
use api::kind::Kind;
use api::quantity::{Format, Quantity};
use api::volcano::{Queue, ROOT_QUEUE};
use serde::Deserialize;
use serde_json::Value;

use super::{amounts::guarantee, children_of, not_found, pods_held};
use crate::Case;
use crate::denials::queues as denied;
use crate::fields::text;

/// Whether this queue may hang below the parent that it names.
pub(super) fn check_parent(case: &Case<'_>, queue: &Queue) -> Result<(), String> {
    let (name, parent) = (&*queue.metadata.name, &*queue.spec.parent);
    if parent.is_empty() || parent == ROOT_QUEUE {
        return Ok(());
    }
    if parent == name {
        return Err(denied::OWN_PARENT.with(&[("queue", &name)]));
    }
    let stored = parent_in_depth(case, queue)?;
    let held = pods_held(&stored);
    if held > 0 && children_of(case, parent).is_empty() {
        return Err(denied::PARENT_WITH_PODS.with(&[
            ("parent", &parent),
            ("queue", &name),
            ("pods", &held),
        ]));
    }
    Ok(())
}

/// The parent, if all queues above are there and not too many. The bound on depth also ends the walk where
/// stored parents form a ring.
fn parent_in_depth(case: &Case<'_>, queue: &Queue) -> Result<Value, String> {
    let name = &queue.metadata.name;
    let mut parent = queue.spec.parent.to_string();
    let mut nearest = None;
    let mut depth = 1;
    while !parent.is_empty() && parent != ROOT_QUEUE {
        // Upstream closes the ring, and then looks up and down it for ever.
        if parent == **name {
            let above = &queue.spec.parent;
            return Err(denied::PARENT_BELOW.with(&[("queue", name), ("parent", above)]));
        }
        depth += 1;
        if depth > case.settings.queue_depth_max {
            let most = case.settings.queue_depth_max;
            return Err(denied::TOO_DEEP.with(&[("queue", name), ("depth", &most)]));
        }
        let Some(stored) = case.facts.object(Kind::Queue, "", &parent) else {
            return Err(denied::NO_PARENT.with(&[
                ("parent", &parent),
                ("queue", name),
                ("error", &not_found(&parent)),
            ]));
        };
        parent = text(&stored["spec"], "parent").to_owned();
        nearest.get_or_insert(stored);
    }
    Ok(nearest.unwrap_or_default())
}

/// Whether the amounts fit those above, beside and below.
pub(super) fn check_amounts(case: &Case<'_>, queue: &Queue) -> Result<(), String> {
    let tree = Tree::read(case);
    let parent = &*queue.spec.parent;
    if !parent.is_empty() && parent != ROOT_QUEUE {
        let Some(above) = tree.queues.get(parent) else {
            let error = not_found(parent);
            return Err(denied::PARENT_UNKNOWN.with(&[("parent", &parent), ("error", &error)]));
        };
        tree.check_ancestors(queue)?;
        let siblings = tree
            .below(parent)
            .filter(|sibling| sibling.metadata.name != queue.metadata.name)
            .chain([queue]);
        check_sums(&format!("parent queue {parent}"), above, siblings)?;
    }
    let mut children = tree.below(&queue.metadata.name).peekable();
    if children.peek().is_some() {
        tree.check_descendants(queue)?;
        check_sums(&format!("queue {}", queue.metadata.name), queue, children)?;
    }
    Ok(())
}

/// Upstream adds one by one and stops at the first that goes over, so the sum in the message is
/// the sum so far.
fn check_sums<'a>(
    who: &str,
    above: &Queue,
    below: impl Iterator<Item = &'a Queue>,
) -> Result<(), String> {
    let limits = [
        ("guarantee", guarantee(&above.spec)),
        ("deserved", above.spec.deserved.clone().unwrap_or_default()),
    ];
    let mut sums = [ResourceList::new(), ResourceList::new()];
    for queue in below {
        let more = [
            guarantee(&queue.spec),
            queue.spec.deserved.clone().unwrap_or_default(),
        ];
        for ((sum, more), (what, limit)) in sums.iter_mut().zip(more).zip(&limits) {
            for (name, amount) in &more {
                sum.entry(name.clone()).or_default().add(amount);
            }
            // A dimension that the parent does not name counts as zero here.
            let over = sum
                .iter()
                .any(|(name, sum)| limit.get(name).unwrap_or(&Quantity::ZERO) < sum);
            if over {
                return Err(denied::MORE_THAN_SHARED.with(&[
                    ("who", &who),
                    ("what", what),
                    ("sum", &go_resource(sum)),
                    ("limit", &go_resource(limit)),
                ]));
            }
        }
    }
    Ok(())
}

struct Tree {
    queues: BTreeMap<String, Queue>,
    below: BTreeMap<String, Vec<String>>,
}

impl Tree {
    fn read(case: &Case<'_>) -> Tree {
        let mut tree = Tree {
            queues: BTreeMap::new(),
            below: BTreeMap::new(),
        };
        for stored in case.facts.list(Kind::Queue, "") {
            // A stored queue that cannot be read has no amounts to compare with.
            let Ok(queue) = Queue::deserialize(&stored) else {
                continue;
            };
            let name = queue.metadata.name.to_string();
            tree.below
                .entry(queue.spec.parent.to_string())
                .or_default()
                .push(name.clone());
            tree.queues.insert(name, queue);
        }
        for names in tree.below.values_mut() {
            names.sort();
        }
        tree
    }

    fn below(&self, name: &str) -> impl Iterator<Item = &Queue> {
        self.below
            .get(name)
            .into_iter()
            .flatten()
            .filter_map(|child| self.queues.get(child))
    }

    fn check_ancestors(&self, queue: &Queue) -> Result<(), String> {
        for (name, amount) in queue.spec.capability.iter().flatten() {
            if let Some(limit) = self.nearest_limit(&queue.spec.parent, name)
                && amount > limit
            {
                return Err(denied::MORE_THAN_ABOVE.with(&[
                    ("queue", &queue.metadata.name),
                    ("resource", name),
                    ("amount", &go_amount(name, amount)),
                    ("limit", &go_amount(name, limit)),
                ]));
            }
        }
        Ok(())
    }

    /// The capability of the nearest queue above that sets this dimension.
    fn nearest_limit(&self, parent: &str, dimension: &str) -> Option<&Quantity> {
        let mut seen = BTreeSet::new();
        let mut parent = parent;
        while !parent.is_empty() && parent != ROOT_QUEUE && seen.insert(parent) {
            let queue = self.queues.get(parent)?;
            if let Some(limit) = limit_of(queue, dimension) {
                return Some(limit);
            }
            parent = &queue.spec.parent;
        }
        None
    }

    fn check_descendants(&self, queue: &Queue) -> Result<(), String> {
        for name in queue.spec.capability.iter().flatten().map(|row| row.0) {
            let Some(amount) = limit_of(queue, name) else {
                continue;
            };
            let greatest = self.greatest_below(&queue.metadata.name, name);
            if amount < &greatest {
                return Err(denied::LESS_THAN_BELOW.with(&[
                    ("queue", &queue.metadata.name),
                    ("resource", name),
                    ("amount", &go_amount(name, amount)),
                    ("limit", &go_amount(name, &greatest)),
                ]));
            }
        }
        Ok(())
    }

    /// The greatest capability below; a queue that sets one speaks for those under it.
    fn greatest_below(&self, name: &str, dimension: &str) -> Quantity {
        let mut greatest = Quantity::ZERO;
        let mut seen = BTreeSet::new();
        let mut open: Vec<&Queue> = self.below(name).collect();
        while let Some(queue) = open.pop() {
            if !seen.insert(&queue.metadata.name) {
                continue;
            }
            match limit_of(queue, dimension) {
                Some(limit) => greatest = greatest.max(limit.clone()),
                None => open.extend(self.below(&queue.metadata.name)),
            }
        }
        greatest
    }
}

/// What a queue may have at most of a dimension, if it sets that. 0 is not set, to upstream too,
/// whatever looks up or down the tree.
fn limit_of<'a>(queue: &'a Queue, dimension: &str) -> Option<&'a Quantity> {
    let limit = queue.spec.capability.as_ref()?.get(dimension)?;
    (!limit.is_zero() && !limit.is_negative()).then_some(limit)
}

/// How upstream prints one amount: cpu and memory as quantities, others in milli-units.
fn go_amount(name: &str, amount: &Quantity) -> String {
    match name {
        "cpu" => Quantity::from_milli(amount.milli_value()).to_string(),
        "memory" => Quantity::from_value(amount.value(), Format::BinarySi).to_string(),
        "pods" => format!("{}.00", amount.value()),
        _ => format!("{}.00", amount.milli_value()),
    }
}

/// How upstream prints a list of amounts.
fn go_resource(amounts: &ResourceList) -> String {
    let of = |name: &str| amounts.get(name).cloned().unwrap_or_default();
    let mut text = format!(
        "cpu {}.00, memory {}.00",
        of("cpu").milli_value(),
        of("memory").value()
    );
    for (name, amount) in amounts {
        if !matches!(&**name, "cpu" | "memory") {
            text.push_str(&format!(", {name} {}", go_amount(name, amount)));
        }
    }
    text
}
