//! I23: tasks that must be close together are, and gangs within gangs are whole.

use std::collections::{BTreeMap, BTreeSet};

use model::{Closeness, GangId, Highest, Key, NodeId, Phase, Plan, SubGroups, Tables, Task};

use crate::Violation;
use crate::plans::{Waived, writes_of};

/// Looks at the gangs of which the plan places a task.
pub(crate) fn together(waived: Waived, tables: &Tables, plan: &Plan, found: &mut Vec<Violation>) {
    let is_looked_at = |closeness: &Closeness| {
        !(waived.hyper_nodes && matches!(closeness, Closeness::HyperNode(_)))
    };
    let places = plan.places.iter();
    let gangs: BTreeSet<GangId> = places
        .filter_map(|place| tables.task(place.task).gang)
        .collect();
    for id in gangs {
        let gang = tables.gang(id);
        let tasks: Vec<&Task> = gang.tasks.iter().map(|task| tables.task(*task)).collect();
        let mut wrong = Vec::new();
        if let Some(closeness) = &gang.spec.closeness
            && is_looked_at(closeness)
            && !are_close(tables, plan, closeness, &tasks)
        {
            wrong.push(format!("gang {} is scattered", gang.spec.key));
        }
        for (rules, values, part) in parts(&gang.spec.sub_groups, &tasks) {
            let name = || {
                format!(
                    "group {} {} of {}",
                    rules.name,
                    values.join("/"),
                    gang.spec.key
                )
            };
            let count = |is: fn(&Task) -> bool| part.iter().filter(|task| is(task)).count();
            // Where too few are alive, whoever failed after a start makes up the rest.
            let alive = count(|task| task.phase != Phase::Failed);
            let failed = count(|task| task.phase == Phase::Failed && task.started.is_some());
            let rest = failed.min((rules.size as usize).saturating_sub(alive));
            let held = rest + count(|task| task.phase.is_under_way() || holds(task));
            let is_placed = plan.places.iter().any(|place| {
                let placed = tables.task(place.task);
                part.iter().any(|task| task.key == placed.key)
            });
            if is_placed && held < rules.size as usize && !waived.parts {
                let size = rules.size;
                wrong.push(format!(
                    "{} is left with {held} of {size} tasks placed",
                    name()
                ));
            }
            if let Some(closeness) = &rules.closeness
                && is_placed
                && is_looked_at(closeness)
                && !are_close(tables, plan, closeness, &part)
            {
                wrong.push(format!("{} is scattered", name()));
            }
        }
        found.extend(wrong.into_iter().map(|what| Violation {
            invariant: "I23",
            what,
            writes: writes_of(tables, plan, id),
        }));
    }
}

fn holds(task: &Task) -> bool {
    task.phase.is_allocated()
}

/// Whether one hyper-node of an allowed tier has all nodes of the tasks, or the plan has placed its own by one
/// value of the label.
fn are_close(tables: &Tables, plan: &Plan, closeness: &Closeness, tasks: &[&Task]) -> bool {
    let held: Vec<&Task> = tasks.iter().copied().filter(|task| holds(task)).collect();
    let nodes: Vec<NodeId> = held.iter().filter_map(|task| task.node).collect();
    let highest = match closeness {
        Closeness::Label(key) => return have_one_value(tables, plan, key, &held),
        Closeness::HyperNode(highest) => highest,
    };
    let topology = tables.topology();
    let limit = match highest {
        Highest::Any => return true,
        Highest::Tier(tier) => Some(*tier),
        Highest::Named(name) => {
            let mut named = topology.domains().filter(|(_, row)| row.tier_name == *name);
            named.next().map(|(_, row)| row.tier)
        }
    };
    limit.is_some_and(|limit| {
        let mut domains = topology.domains().filter(|(_, row)| row.tier <= limit);
        // What is on a node that is no more is close to nothing.
        let whole = topology.top().map(|top| topology.domain(top));
        let is_gone = |node: &NodeId| whole.is_none_or(|whole| !whole.has(*node));
        domains.any(|(_, row)| nodes.iter().all(|node| is_gone(node) || row.has(*node)))
    })
}

/// Whether all tasks that the plan places have one value, and one of those that stood there before, if these
/// have any: nodes may have been labelled anew since, and then nobody has placed them apart.
fn have_one_value(tables: &Tables, plan: &Plan, key: &str, held: &[&Task]) -> bool {
    let places = plan.places.iter();
    let planned: BTreeSet<&Key> = places.map(|place| &tables.task(place.task).key).collect();
    let is_new = |task: &&Task| planned.contains(&task.key);
    let (new, stood): (Vec<&Task>, Vec<&Task>) = held.iter().copied().partition(is_new);
    let values = |tasks: Vec<&Task>| -> BTreeSet<Option<&str>> {
        let nodes = tasks.into_iter().filter_map(|task| task.node);
        nodes
            .map(|node| tables.node(node).spec.labels.get(key))
            .collect()
    };
    let (new, mut stood) = (values(new), values(stood));
    stood.remove(&None);
    new.len() <= 1 && !new.contains(&None) && (stood.is_empty() || new.is_subset(&stood))
}

type Part<'a> = (&'a SubGroups, Vec<&'a str>, Vec<&'a Task>);

/// The gangs within the gang, by the first rule that takes a task and what its labels say.
fn parts<'a>(rules: &'a [SubGroups], tasks: &[&'a Task]) -> Vec<Part<'a>> {
    let mut parts: BTreeMap<(usize, Vec<&str>), Vec<&Task>> = BTreeMap::new();
    for task in tasks {
        for (at, rule) in rules.iter().enumerate() {
            let takes = rule
                .selector
                .iter()
                .all(|wish| wish.accepts(task.labels.get(&wish.key)));
            let values: Option<Vec<&str>> =
                rule.keys.iter().map(|key| task.labels.get(key)).collect();
            if let Some(values) = values.filter(|_| takes) {
                parts.entry((at, values)).or_default().push(task);
                break;
            }
        }
    }
    let parts = parts.into_iter();
    parts
        .map(|((at, values), tasks)| (&rules[at], values, tasks))
        .collect()
}
