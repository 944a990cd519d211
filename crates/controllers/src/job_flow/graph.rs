//! Whether the jobs of a flow can come one after the other at all.

use std::collections::BTreeMap;

use api::volcano::Flow;

/// So many names are told at most.
const TOLD_MAX: usize = 10;

/// Says what is wrong: a target that is no flow, or flows that wait for each other in a circle.
///
/// Flows whose targets have all been passed are passed, until none is left or none can be (Kahn
/// 1962); takes as long as there are flows and targets.
pub(super) fn check<'a>(flows: impl Iterator<Item = &'a Flow> + Clone) -> Result<(), String> {
    let mut open: BTreeMap<&str, usize> = (flows.clone())
        .map(|flow| (&*flow.name, flow.targets().len()))
        .collect();
    let mut waiting: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for flow in flows {
        for target in flow.targets() {
            if !open.contains_key(&**target) {
                let name = &flow.name;
                return Err(format!(
                    "flow {name} depends on {target}, which is not defined"
                ));
            }
            waiting.entry(target).or_default().push(&flow.name);
        }
    }
    let free = open.iter().filter(|(_, targets)| **targets == 0);
    let mut passed: Vec<&str> = free.map(|(name, _)| *name).collect();
    while let Some(name) = passed.pop() {
        open.remove(name);
        for waiter in waiting.remove(name).unwrap_or_default() {
            if let Some(targets) = open.get_mut(waiter) {
                *targets -= 1;
                if *targets == 0 {
                    passed.push(waiter);
                }
            }
        }
    }
    if open.is_empty() {
        return Ok(());
    }
    Err(format!(
        "flows wait for each other in a circle, or for such ones: {}",
        listed(open.keys().copied())
    ))
}

/// Some of the names, and how many more there are.
pub(super) fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let rest = match names.len().saturating_sub(TOLD_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names: Vec<&str> = names.take(TOLD_MAX).collect();
    format!("{}{rest}", names.join(", "))
}
