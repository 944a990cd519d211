//! A yardstick for shares: what each queue would get of one resource if it were shared by weight
//! among siblings, up to what is asked for and within ceilings (max-min fairness, from the root of
//! the tree down). It is a measure, and shares nothing with the rule book that decides.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::stored::{milli, text};

/// The queues of a cluster and one resource.
#[derive(Debug, Default)]
pub(super) struct Tree {
    queues: BTreeMap<String, Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    weight: i64,
    /// The most that it may have.
    ceiling: Option<i128>,
    parent: Option<String>,
}

/// Queues may lie below one another so deep.
const DEPTH_MAX: usize = 32;
/// The queue that is the whole cluster.
const ROOT: &str = "root";

impl Tree {
    pub(super) fn of(objects: &[Value], resource: &str) -> Tree {
        let row = |object: &Value| {
            let spec = &object["spec"];
            let parent = Some(text(&spec["parent"]));
            let ceiling = Some(milli(&spec["capability"][resource]));
            let queue = Queue {
                weight: spec["weight"].as_i64().unwrap_or(1).max(1),
                ceiling: ceiling.filter(|it| *it > 0),
                parent: parent
                    .filter(|it| !it.is_empty() && *it != ROOT)
                    .map(str::to_owned),
            };
            (text(&object["metadata"]["name"]).to_owned(), queue)
        };
        let rows = objects.iter().map(row).filter(|(name, _)| name != ROOT);
        Tree {
            queues: rows.collect(),
        }
    }

    pub(super) fn weight(&self, queue: &str) -> i64 {
        self.queues.get(queue).map_or(1, |it| it.weight)
    }

    /// What each queue would get of a room, by what is asked for in each.
    pub(super) fn shares(
        &self,
        room: i128,
        asked: &BTreeMap<String, i128>,
    ) -> BTreeMap<String, i128> {
        let mut shares = BTreeMap::new();
        self.share(None, room, asked, DEPTH_MAX, &mut shares);
        shares
    }

    fn share(
        &self,
        parent: Option<&str>,
        room: i128,
        asked: &BTreeMap<String, i128>,
        depth: usize,
        shares: &mut BTreeMap<String, i128>,
    ) {
        let known = self.queues.keys().filter(|name| {
            let queue = &self.queues[*name];
            queue.parent.as_deref() == parent
        });
        let strangers = asked.keys().filter(|name| !self.queues.contains_key(*name));
        let strangers = strangers.filter(|_| parent.is_none());
        let names: Vec<&String> = known.chain(strangers).collect();
        let wants: Vec<(i64, i128)> = names
            .iter()
            .map(|name| (self.weight(name), self.wants(name, asked, depth)))
            .collect();
        for (name, share) in names.iter().zip(poured(room, &wants)) {
            let own = asked.get(*name).copied().unwrap_or(0);
            // What is asked for in a queue itself comes before what is asked for below it.
            let own = own.min(share);
            shares.insert((*name).clone(), own);
            if depth > 0 && share > own {
                self.share(Some(name), share - own, asked, depth - 1, shares);
            }
        }
    }

    /// What is asked for in a queue and below it, as far as its ceiling lets.
    fn wants(&self, name: &str, asked: &BTreeMap<String, i128>, depth: usize) -> i128 {
        let own = asked.get(name).copied().unwrap_or(0);
        let below: i128 = match depth {
            0 => 0,
            _ => self
                .queues
                .iter()
                .filter(|(_, queue)| queue.parent.as_deref() == Some(name))
                .map(|(child, _)| self.wants(child, asked, depth - 1))
                .sum(),
        };
        let ceiling = self.queues.get(name).and_then(|queue| queue.ceiling);
        (own + below).min(ceiling.unwrap_or(i128::MAX))
    }
}

/// Shares a room by weight; nobody gets more than is wanted, and what is left goes to the others.
fn poured(room: i128, wants: &[(i64, i128)]) -> Vec<i128> {
    let mut shares = vec![0; wants.len()];
    let mut left = room.max(0);
    let mut open: Vec<usize> = (0..wants.len()).filter(|at| wants[*at].1 > 0).collect();
    // Each round settles somebody, or all that are left.
    while !open.is_empty() && left > 0 {
        let weights: i128 = open.iter().map(|at| i128::from(wants[*at].0)).sum();
        let part = |at: usize| left * i128::from(wants[at].0) / weights.max(1);
        let (full, thirsty): (Vec<usize>, Vec<usize>) =
            open.iter().partition(|at| wants[**at].1 <= part(**at));
        if full.is_empty() {
            for at in thirsty {
                shares[at] = part(at);
            }
            break;
        }
        for at in full {
            shares[at] = wants[at].1;
            left -= wants[at].1;
        }
        open = thirsty;
    }
    shares
}

/// Jain's index of some ratios, in thousandths (Jain, Chiu and Hawe, 1984): 1000 where all are
/// equal, 1000/n where one has everything.
pub(super) fn jain_milli(ratios_milli: &[i64]) -> Option<i64> {
    let sum: i128 = ratios_milli.iter().map(|it| i128::from(*it)).sum();
    let squares: i128 = ratios_milli.iter().map(|it| i128::from(*it).pow(2)).sum();
    let count = i128::try_from(ratios_milli.len()).ok()?;
    let index = (1_000 * sum * sum).checked_div(count * squares)?;
    i64::try_from(index).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tree(rows: &[(&str, i64, Option<i64>, &str)]) -> Tree {
        let object = |(name, weight, ceiling, parent): &(&str, i64, Option<i64>, &str)| {
            json!({
                "metadata": { "name": name },
                "spec": {
                    "weight": weight,
                    "parent": parent,
                    "capability": ceiling.map(|cpu| json!({ "cpu": cpu })),
                },
            })
        };
        Tree::of(&rows.iter().map(object).collect::<Vec<_>>(), "cpu")
    }

    fn shared(tree: &Tree, room: i128, asked: &[(&str, i128)]) -> String {
        let asked = asked.iter().map(|(name, want)| ((*name).to_owned(), *want));
        let shares = tree.shares(room, &asked.collect());
        let shares = shares.iter().filter(|(_, share)| **share > 0);
        let told: Vec<String> = shares.map(|(name, it)| format!("{name}={it}")).collect();
        told.join(" ")
    }

    #[test]
    fn what_one_does_not_want_goes_to_the_others_by_weight() {
        let flat = tree(&[("a", 1, None, ""), ("b", 3, None, ""), ("c", 1, None, "")]);
        let shares = shared(&flat, 100, &[("a", 100), ("b", 100), ("c", 4)]);
        assert_eq!(shares, "a=24 b=72 c=4");
        assert_eq!(shared(&flat, 100, &[("a", 7)]), "a=7");
    }

    #[test]
    fn a_ceiling_and_a_parents_share_bound_what_is_below() {
        let deep = tree(&[
            ("left", 1, None, "root"),
            ("right", 1, Some(1), "root"),
            ("l1", 1, None, "left"),
            ("l2", 2, None, "left"),
        ]);
        let asked = [("l1", 10_000), ("l2", 10_000), ("right", 10_000)];
        assert_eq!(shared(&deep, 4_000, &asked), "l1=1000 l2=2000 right=1000");
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let circle = tree(&[("a", 1, None, "b"), ("b", 1, None, "a")]);
        assert_eq!(shared(&circle, 100, &[("a", 10), ("b", 10)]), "");
    }

    #[test]
    fn equal_ratios_are_fair_and_one_for_all_is_not() {
        assert_eq!(jain_milli(&[700, 700, 700]), Some(1_000));
        assert_eq!(jain_milli(&[1_000, 0, 0, 0]), Some(250));
        assert_eq!(jain_milli(&[]), None);
    }
}
