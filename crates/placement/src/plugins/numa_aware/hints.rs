//! On which NUMA nodes a container should lie: what each of its resources would like, brought together
//! as the kubelet's topology manager does it.
//!
//! Instead of each way to take one wish per resource, the sets that come out of them are kept: of `n`
//! NUMA nodes at most 2 × 2ⁿ, where n is at most [`model::NUMA_NODES_MAX`].

use model::{NumaPolicy, Units};

/// A set of NUMA nodes, a bit for the place of each in the layout.
pub(super) type Nodes = u16;

/// Where it is possible to lie, and whether it could not be narrower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hint {
    pub(super) nodes: Nodes,
    pub(super) preferred: bool,
}

/// All of so many NUMA nodes.
pub(super) fn all(nodes: usize) -> Nodes {
    (0..nodes).fold(0, |all, at| all | 1 << at)
}

/// The places in a set.
pub(super) fn places(nodes: Nodes) -> impl Iterator<Item = usize> {
    (0..Nodes::BITS as usize).filter(move |at| nodes >> at & 1 == 1)
}

/// Every set of NUMA nodes with enough free units of a resource. It is preferred if no smaller set has
/// as many units, free or not.
fn of_resource(by_node: &[Units], free: &Units, count: u32) -> Vec<Hint> {
    let sizes: Vec<(u32, u32)> = by_node
        .iter()
        .map(|units| (units.len(), units.shared(free)))
        .collect();
    let sum = |nodes: Nodes| {
        let parts = places(nodes).map(|at| sizes[at]);
        parts.fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
    };
    let sums: Vec<(Nodes, (u32, u32))> = (1..=all(by_node.len()))
        .map(|nodes| (nodes, sum(nodes)))
        .collect();
    let large = sums.iter().filter(|(_, (whole, _))| *whole >= count);
    let least = large.map(|(nodes, _)| nodes.count_ones()).min();
    let fitting = sums.iter().filter(|(_, (_, free))| *free >= count);
    fitting
        .map(|(nodes, _)| Hint {
            nodes: *nodes,
            preferred: least == Some(nodes.count_ones()),
        })
        .collect()
}

/// The best that all resources of a container agree on: a preferred one first, then the narrowest,
/// then the one of lower NUMA nodes. Without any it is all NUMA nodes, and not preferred.
pub(super) fn merged<'a>(
    policy: NumaPolicy,
    nodes: usize,
    wants: impl Iterator<Item = (&'a [Units], &'a Units, u32)>,
) -> Hint {
    let anywhere = Hint {
        nodes: all(nodes),
        preferred: true,
    };
    let mut found = vec![anywhere];
    for (by_node, free, count) in wants {
        let mut hints = of_resource(by_node, free, count);
        if policy == NumaPolicy::SingleNumaNode {
            hints.retain(|hint| hint.preferred && hint.nodes.count_ones() == 1);
        } else if hints.is_empty() {
            // No way to have them lie together is no wish to lie anywhere.
            hints.push(Hint {
                preferred: false,
                ..anywhere
            });
        }
        found = both(nodes, &found, &hints);
    }
    let possible = found.into_iter().filter(|hint| hint.nodes != 0);
    let best = possible.min_by_key(|hint| (!hint.preferred, hint.nodes.count_ones(), hint.nodes));
    best.unwrap_or(Hint {
        preferred: false,
        ..anywhere
    })
}

/// What is in one of each, each set once.
fn both(nodes: usize, some: &[Hint], others: &[Hint]) -> Vec<Hint> {
    let mut seen = vec![[false; 2]; usize::from(all(nodes)) + 1];
    for hint in some {
        for other in others {
            let preferred = hint.preferred && other.preferred;
            seen[usize::from(hint.nodes & other.nodes)][usize::from(preferred)] = true;
        }
    }
    let mut found = Vec::new();
    for (nodes, seen) in (0..=all(nodes)).zip(seen) {
        for (preferred, seen) in [false, true].into_iter().zip(seen) {
            if seen {
                found.push(Hint { nodes, preferred });
            }
        }
    }
    found
}

/// Whether the policy lets a container lie there.
pub(super) fn admits(policy: NumaPolicy, hint: Hint) -> bool {
    match policy {
        NumaPolicy::None | NumaPolicy::BestEffort => true,
        NumaPolicy::Restricted | NumaPolicy::SingleNumaNode => hint.preferred,
    }
}
