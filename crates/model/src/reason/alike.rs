//! Nodes that are refused for reasons which are told alike are counted together.

use std::cmp::Reverse;

use super::Refusal;

/// What is told of refusals, and of how many nodes, most common first; what is told alike is one.
pub fn told_alike<T: PartialEq>(
    refusals: &[(Refusal, u32)],
    told: impl Fn(&Refusal) -> T,
) -> Vec<(T, u32)> {
    let mut all: Vec<(T, u32)> = Vec::new();
    for (refusal, nodes) in refusals {
        let text = told(refusal);
        match all.iter_mut().find(|(before, _)| *before == text) {
            Some((_, sum)) => *sum += nodes,
            None => all.push((text, *nodes)),
        }
    }
    all.sort_by_key(|(_, nodes)| Reverse(*nodes));
    all
}
