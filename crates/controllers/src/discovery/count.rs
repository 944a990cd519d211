//! How many nodes each hyper-node holds (`specs/volcano.md` 2.7), those of the hyper-nodes below it
//! included: nodes that are there, each once.
//!
//! One key for all of them: a node that comes, goes or gets other labels may count anywhere.

use std::collections::BTreeMap;

use api::core::Node;
use api::intent::ObjectKey;
use api::kind::Kind;
use api::volcano::HyperNode;
use mirror::{AllMembers, Change, Members, Mirror, hyper_node_members};
use serde_json::json;

use super::{COMPONENT, relabels};
use crate::{Controller, Inputs, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "hyper_node_count",
    component: COMPONENT,
    tells_refused: &[],
    watches: &[Kind::HyperNode, Kind::Node],
    keys,
    step,
};

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    let concerns = match change.kind() {
        Kind::HyperNode => true,
        _ => relabels(change) && mirror.list::<HyperNode>().next().is_some(),
    };
    if concerns {
        keys.push(super::key_of(""));
    }
}

fn step(inputs: &Inputs<'_>) -> Step {
    let mirror = inputs.mirror;
    let counts = counts(&hyper_node_members(mirror), mirror.list::<Node>().count());
    let mut intents = Vec::new();
    for (it, count) in mirror.list::<HyperNode>().zip(counts) {
        let is_leaving = it.metadata.deletion_timestamp.is_some();
        if it.status.node_count.unwrap_or(0) != count && !is_leaving {
            let status = json!({ "nodeCount": count });
            intents.push(write::patch_status(Kind::HyperNode, &it.metadata, status));
        }
    }
    intents.truncate(inputs.settings.writes_per_step_max);
    Step::write(intents)
}

/// How many of so many nodes each hyper-node holds.
///
/// Hyper-nodes that hold one another hold the same: each such circle is looked at once, after all that is
/// below it, so that any number of hyper-nodes that name each other costs no more than what they name.
fn counts(all: &AllMembers, nodes: usize) -> Vec<i64> {
    let vertices: Vec<&Members> = all.of.iter().chain(&all.shared).collect();
    let below: Vec<Vec<usize>> = vertices
        .iter()
        .map(|it| {
            let shared = it.shared.iter().map(|at| all.of.len() + at);
            it.hyper_nodes.iter().copied().chain(shared).collect()
        })
        .collect();
    let circle_of = circles(&below);
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (vertex, circle) in circle_of.iter().enumerate() {
        members.entry(*circle).or_default().push(vertex);
    }
    let mut held: Vec<Vec<u64>> = Vec::with_capacity(members.len());
    for (circle, members) in &members {
        let mut bits = vec![0_u64; nodes.div_ceil(64)];
        for vertex in members {
            for node in &vertices[*vertex].nodes {
                bits[node / 64] |= 1 << (node % 64);
            }
            let others = below[*vertex].iter().map(|other| circle_of[*other]);
            for other in others.filter(|other| other != circle) {
                let pairs = bits.iter_mut().zip(&held[other]);
                pairs.for_each(|(mine, its)| *mine |= its);
            }
        }
        held.push(bits);
    }
    let counts = held
        .iter()
        .map(|bits| bits.iter().map(|it| it.count_ones()).sum::<u32>());
    let counts: Vec<i64> = counts.map(i64::from).collect();
    let of = circle_of.iter().take(all.of.len());
    of.map(|circle| counts[*circle]).collect()
}

/// The circle of each vertex, by number: what is below a circle has lower numbers.
///
/// Source: R. Tarjan, Depth-first search and linear graph algorithms, without recursion.
fn circles(below: &[Vec<usize>]) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let mut found = vec![NONE; below.len()];
    let mut lowest = vec![NONE; below.len()];
    let mut circle_of = vec![NONE; below.len()];
    let (mut open, mut count, mut circles) = (Vec::new(), 0, 0);
    for start in 0..below.len() {
        let mut path: Vec<(usize, usize)> = match found[start] {
            NONE => vec![(start, 0)],
            _ => Vec::new(),
        };
        while let Some((vertex, next)) = path.last_mut() {
            let vertex = *vertex;
            if *next == 0 {
                found[vertex] = count;
                lowest[vertex] = count;
                count += 1;
                open.push(vertex);
            }
            let other = below[vertex].get(*next).copied();
            *next += 1;
            match other {
                Some(other) if found[other] == NONE => path.push((other, 0)),
                Some(other) if circle_of[other] == NONE => {
                    lowest[vertex] = lowest[vertex].min(found[other]);
                }
                Some(_) => {}
                None => {
                    path.pop();
                    if let Some((above, _)) = path.last() {
                        lowest[*above] = lowest[*above].min(lowest[vertex]);
                    }
                    if lowest[vertex] == found[vertex] {
                        while let Some(member) = open.pop() {
                            circle_of[member] = circles;
                            if member == vertex {
                                break;
                            }
                        }
                        circles += 1;
                    }
                }
            }
        }
    }
    circle_of
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::check::Seed;

    fn naming(nodes: Vec<usize>, hyper_nodes: Vec<usize>, shared: Vec<usize>) -> Members {
        Members {
            nodes,
            hyper_nodes,
            shared,
        }
    }

    #[test]
    fn any_number_of_hyper_nodes_that_name_each_other_is_counted_at_once() {
        const MANY: usize = 50_000;
        let of = (0..MANY).map(|at| naming(vec![at % 1_000], Vec::new(), vec![0]));
        let all = AllMembers {
            of: of.collect(),
            shared: vec![naming(Vec::new(), (0..MANY).collect(), Vec::new())],
        };
        assert_eq!(counts(&all, 1_000), vec![1_000; MANY]);
    }

    /// What is reached from a hyper-node, one after the other.
    fn walked(all: &AllMembers, from: usize) -> i64 {
        let (mut seen, mut nodes) = (BTreeSet::from([from]), BTreeSet::<usize>::new());
        let mut to_visit = vec![from];
        while let Some(at) = to_visit.pop() {
            let row = all
                .of
                .get(at)
                .unwrap_or_else(|| &all.shared[at - all.of.len()]);
            nodes.extend(&row.nodes);
            let shared = row.shared.iter().map(|at| all.of.len() + at);
            to_visit.extend(
                row.hyper_nodes
                    .iter()
                    .copied()
                    .chain(shared)
                    .filter(|it| seen.insert(*it)),
            );
        }
        i64::try_from(nodes.len()).expect("few")
    }

    #[test]
    fn each_hyper_node_holds_what_can_be_reached_from_it() {
        for seed in 0..500_u64 {
            let mut dice = Seed(seed);
            let mut roll = |most: usize| dice.below(most as u64) as usize;
            let (rows, shared, nodes) = (1 + roll(12), roll(3), 70);
            let mut some = |most: usize, of: usize| -> Vec<usize> {
                let count = if of == 0 { 0 } else { roll(most) };
                (0..count).map(|_| roll(of)).collect()
            };
            let all = AllMembers {
                of: (0..rows)
                    .map(|_| naming(some(3, nodes), some(3, rows), some(2, shared)))
                    .collect(),
                shared: (0..shared)
                    .map(|_| naming(some(4, nodes), some(4, rows), Vec::new()))
                    .collect(),
            };
            let walked: Vec<i64> = (0..rows).map(|at| walked(&all, at)).collect();
            assert_eq!(counts(&all, nodes), walked, "seed {seed}: {all:?}");
        }
    }
}
