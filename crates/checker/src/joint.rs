//! I4: claims that tasks share before they have what they ask for. Whoever comes second can never be bound
//! where what the first one got cannot be reached.

use std::collections::{BTreeMap, BTreeSet};

use model::{Key, Phase, Plan, Tables, Task, TaskId};

use crate::Violation;
use crate::plans::writes_of;

fn named(task: &Task) -> impl Iterator<Item = Key> {
    let space = &task.key.namespace;
    let names = task.claims.iter();
    names.map(|name| Key::new(space.clone(), name.clone()))
}

/// The devices that the task has for the claim.
fn devices<'t>(tables: &'t Tables, task: &'t Task, claim: &Key) -> Vec<&'t str> {
    let ask = tables.shape(task.shape).spec.devices.as_deref();
    let claims = ask.into_iter().flat_map(|ask| (0_u8..).zip(&ask.claims));
    let ours = claims.filter(|(_, it)| it.shared.as_ref() == Some(claim));
    let ours: BTreeSet<u8> = ours.map(|(at, _)| at).collect();
    let grants = task.grants.iter();
    let of_it = grants.filter(|grant| ours.iter().any(|at| grant.is_for_claim(*at)));
    of_it.map(|grant| &*grant.card).collect()
}

/// Of a plan: tasks that share a claim are on one node, or on such as reach the devices that one of them got
/// for it; and no two of them got it some.
pub(crate) fn plan(tables: &Tables, plan: &Plan, found: &mut Vec<Violation>) {
    let places = plan.places.iter();
    let planned: BTreeSet<Key> = places
        .flat_map(|place| named(tables.task(place.task)))
        .collect();
    if planned.is_empty() {
        return;
    }
    let mut users: BTreeMap<Key, Vec<TaskId>> = BTreeMap::new();
    for (id, task) in tables.tasks() {
        let is_there = matches!(task.phase, Phase::Binding | Phase::Bound | Phase::Running);
        if !is_there || task.node.is_none() {
            continue;
        }
        for claim in named(task).filter(|claim| planned.contains(claim)) {
            users.entry(claim).or_default().push(id);
        }
    }
    for (claim, users) in users {
        let has = |id: &&TaskId| !devices(tables, tables.task(**id), &claim).is_empty();
        let mut holders = users.iter().filter(has);
        let holder = holders.next().copied();
        if let (Some(first), Some(other)) = (holder, holders.next()) {
            let first = &tables.task(first).key;
            let what = |key: &Key| format!("tasks {first} and {key} both get devices for {claim}");
            found.push(of(tables, plan, *other, what));
        }
        let first = holder.unwrap_or(users[0]);
        let strays = users.iter().filter(|id| **id != first);
        for other in strays.filter(|id| !is_reached(tables, first, **id, &claim)) {
            let first = &tables.task(first).key;
            let what =
                |key: &Key| format!("tasks {first} and {key} share claim {claim}, apart from it");
            found.push(of(tables, plan, *other, what));
        }
    }
}

/// Whether what the first one got can be reached from where the other one is.
fn is_reached(tables: &Tables, first: TaskId, other: TaskId, claim: &Key) -> bool {
    let (first, other) = (tables.task(first), tables.task(other));
    let devices = devices(tables, first, claim);
    let offers = |id: &str| {
        let node = other.node.and_then(|node| tables.find_node(node));
        let list = node.map(|node| &node.spec.devices.list);
        list.is_some_and(|list| list.iter().any(|device| *device.id == *id))
    };
    first.node == other.node || !devices.is_empty() && devices.iter().all(|id| offers(id))
}

fn of(tables: &Tables, plan: &Plan, task: TaskId, what: impl Fn(&Key) -> String) -> Violation {
    let row = tables.task(task);
    Violation {
        invariant: "I4",
        what: what(&row.key),
        writes: row
            .gang
            .map_or(Vec::new(), |id| writes_of(tables, plan, id)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{
        Device, DeviceAsk, DeviceClaim, Devices, Grant, Hands, Key, NodeId, NodeSpec, Purpose,
        Tables, TaskId, TaskSpec, Time, Trial,
    };

    use crate::check_plan;
    use crate::planted::{cluster, said, task};

    const OWN: &str = "own";
    const FABRIC: &str = "fabric";

    /// The cluster, where both nodes reach one device and n1 has another; its tasks share a claim.
    fn sharing() -> Tables {
        let mut tables = cluster();
        for (name, ids) in [("n1", vec![OWN, FABRIC]), ("n2", vec![FABRIC])] {
            let id = tables.node_named(name).expect("it is there");
            let list = ids.into_iter().map(|id| Device {
                id: id.into(),
                is_shared: id == FABRIC,
                ..Device::default()
            });
            tables.put_node(NodeSpec {
                devices: Devices {
                    list: list.collect(),
                    ..Devices::default()
                },
                ..tables.node(id).spec.clone()
            });
        }
        for name in ["t0", "t1"] {
            let mut spec = task(name, 1_000);
            spec.claims.push("one".into());
            spec.shape.devices = Some(Arc::new(DeviceAsk {
                claims: vec![DeviceClaim {
                    shared: Some(Key::new("a", "one")),
                    ..DeviceClaim::default()
                }],
            }));
            tables.put_task(TaskSpec { ..spec });
        }
        tables
    }

    /// Places both tasks, of which these get devices.
    fn said_of(places: [(u32, Option<&str>); 2]) -> Vec<&'static str> {
        let mut tables = sharing();
        let mut trial = Trial::begin(&mut tables);
        for (at, (node, device)) in (0..).zip(places) {
            let purpose = Purpose {
                claim: 0,
                request: 0,
                way: 0,
            };
            let grants = device.map(|id| Grant {
                part: purpose.part(),
                card: id.into(),
                is_claimed: true,
                ..Grant::default()
            });
            let hands = Hands {
                grants: grants.into_iter().collect(),
                volumes: None,
            };
            trial.place_with(TaskId(at), NodeId(node), hands);
        }
        let plan = trial.finish(Time::from_micros(0));
        said(&check_plan(&tables, &plan))
    }

    #[test]
    fn i4_who_shares_a_claim_reaches_what_it_got() {
        assert_eq!(said_of([(0, Some(FABRIC)), (1, None)]), [] as [&str; 0]);
        assert_eq!(said_of([(0, None), (1, Some(FABRIC))]), [] as [&str; 0]);
        assert_eq!(said_of([(0, Some(OWN)), (0, None)]), [] as [&str; 0]);
        assert_eq!(said_of([(0, Some(OWN)), (1, None)]), ["I4"]);
        assert_eq!(said_of([(0, None), (1, None)]), ["I4"], "nobody got it any");
    }

    #[test]
    fn i4_a_claim_that_gets_devices_twice_is_found() {
        assert_eq!(said_of([(0, Some(OWN)), (0, Some(FABRIC))]), ["I4"]);
        assert_eq!(said_of([(0, Some(FABRIC)), (1, Some(FABRIC))]), ["I4"]);
    }
}
