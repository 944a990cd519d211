//! I2: devices that are made of one thing (`sharedCounters`) take no more of it together than there is.

use std::sync::Arc;

use model::{CardLoad, Counter, Drawer, Grant, Node, Phase, Plan, Standing, Tables, Task};

use crate::Violation;
use crate::rooms::with_their_gangs;

/// What is too much of a counter, in words.
fn excess(tables: &Tables, node: &Node, name: &str, counter: &Counter) -> Option<String> {
    let left = counter.left(|drawer| is_held(tables, node, drawer));
    (left < 0).then(|| {
        let whole = counter.whole;
        format!(
            "counter {name} has {} of {whole} drawn",
            whole.saturating_sub(left)
        )
    })
}

fn is_held(tables: &Tables, node: &Node, drawer: &Drawer) -> bool {
    let loads = match drawer.is_shared {
        true => tables.shared_loads(),
        false => &node.cards,
    };
    let is_had = loads.of(&drawer.device).is_some_and(CardLoad::is_had);
    is_had || drawer.standing != Standing::Free
}

/// Whether the task was given a device that draws on the counter.
fn draws(task: &Task, counter: &Counter) -> bool {
    let has = |grant: &&Grant| grant.is_whole || grant.portion.is_some();
    let grants = task.grants.iter().filter(has);
    let is_given = |device: &Arc<str>| grants.clone().any(|grant| grant.card == *device);
    counter
        .drawers
        .iter()
        .any(|drawer| is_given(&drawer.device))
}

/// The whole of it. What others gave is not ours to answer for.
pub(crate) fn nodes(tables: &Tables, found: &mut Vec<Violation>) {
    for (_, node) in tables.nodes() {
        for (name, counter) in &node.spec.devices.counters {
            let tasks = node.tasks.iter().map(|task| tables.task(*task));
            let mut ours = tasks.filter(|task| task.phase == Phase::Binding);
            if ours.any(|task| draws(task, counter)) {
                let excess = excess(tables, node, name, counter);
                found.extend(excess.map(|what| Violation::of("I2", what)));
            }
        }
    }
}

/// Of a plan: no bind draws too much.
pub(crate) fn plan(tables: &Tables, plan: &Plan, found: &mut Vec<Violation>) {
    for place in &plan.places {
        let task = tables.task(place.task);
        let node = tables.find_node(place.node).filter(|node| node.known);
        let Some(node) = node.filter(|_| !task.grants.is_empty()) else {
            continue;
        };
        let counters = node.spec.devices.counters.iter();
        for (name, counter) in counters.filter(|(_, counter)| draws(task, counter)) {
            if let Some(what) = excess(tables, node, name, counter) {
                found.push(Violation {
                    invariant: "I2",
                    what,
                    writes: with_their_gangs(tables, plan, [place].into_iter()),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::planted::{cluster, said};
    use crate::{check, check_plan};
    use model::{
        Counter, Device, Devices, Draw, Drawer, Grant, NodeId, NodeSpec, Standing, TaskId, Time,
        Trial,
    };

    fn device(id: &str, amount: i64) -> Device {
        let draw = Draw {
            counter: "slots".into(),
            amount,
        };
        Device {
            id: id.into(),
            draws: [draw].into(),
            ..Device::default()
        }
    }

    /// What is found when two tasks get devices that take so much of seven, and a claim has `held`.
    fn found(first: i64, second: i64, held: i64) -> Vec<&'static str> {
        let mut tables = cluster();
        let spec = tables.node(NodeId(0)).spec.clone();
        let list = [device("a", first), device("b", second), device("c", held)];
        let drawer = |device: &Device| Drawer {
            device: device.id.clone(),
            amount: device.draws[0].amount,
            standing: match &*device.id {
                "c" => Standing::Held,
                _ => Standing::Free,
            },
            is_shared: false,
        };
        let counter = Counter {
            whole: 7,
            drawers: list.iter().map(drawer).collect(),
        };
        tables.put_node(NodeSpec {
            devices: Devices {
                list: list.into(),
                counters: [("slots".into(), counter)].into(),
                ..Devices::default()
            },
            ..spec
        });
        let grant = |device: &str| Grant {
            card: device.into(),
            is_whole: true,
            ..Grant::default()
        };
        let mut trial = Trial::begin(&mut tables);
        trial.place_with(TaskId(0), NodeId(0), vec![grant("a")]);
        trial.place_with(TaskId(1), NodeId(0), vec![grant("b")]);
        let plan = trial.finish(Time::from_micros(0));
        let by_plan = said(&check_plan(&tables, &plan));
        assert_eq!(by_plan.is_empty(), check(&tables).is_empty());
        by_plan
    }

    #[test]
    fn i2_devices_that_draw_more_than_there_is_are_found() {
        assert_eq!(found(3, 4, 0), [""; 0]);
        assert_eq!(found(3, 3, 1), [""; 0]);
        assert_eq!(found(4, 4, 0), ["I2", "I2"]);
        assert_eq!(found(3, 3, 2), ["I2", "I2"], "with what a claim has");
    }
}
