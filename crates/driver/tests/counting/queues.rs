//! What figures tell of queues.

use std::sync::Arc;

use api::kind::Kind;
use driver::census::{Amounts, Ceilings, QueueFigures};
use serde_json::json;

use crate::world::World;
use crate::world::planes::{plane, pod};
use crate::{census, only};

const GIB: i64 = 1 << 30;

/// A configuration whose plugin for queues is this one.
fn conf(plugin: &str) -> String {
    format!(
        "actions: \"enqueue, allocate\"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}]
- plugins: [{{name: predicates}}, {plugin}]
"
    )
}

/// One node of four cores and four GPUs.
fn plane_with_gpus(plugin: &str) -> World {
    let mut world = plane(&conf(plugin), 1);
    let gpus = json!({ "status": { "allocatable": { "nvidia.com/gpu": "4" } } });
    world.put_object(Kind::Node, "node-1", &gpus);
    world
}

/// A gang of one pod that wants so many cores and GPUs, and 2 GiB.
fn pod_with_gpus(world: &mut World, name: &str, cpu: u32, gpus: u32) {
    pod(world, name, cpu, None);
    let amounts = json!({
        "cpu": cpu.to_string(), "memory": "2Gi", "nvidia.com/gpu": gpus.to_string(),
    });
    let group = json!({ "spec": { "minResources": amounts } });
    world.put_object(Kind::PodGroup, name, &group);
    let container = json!({ "name": "c", "resources": { "requests": amounts, "limits": amounts } });
    let containers = json!({ "spec": { "containers": [container] } });
    world.put_object(Kind::Pod, name, &containers);
    world.pass_ms(2_000);
}

fn queue(world: &mut World, name: &str) -> QueueFigures {
    let figures = census(world).figures.expect("it decides");
    let queue = figures.queues.into_iter().find(|it| &*it.name == name);
    queue.expect("it is told")
}

/// Thousandths of a core, GiB, and others.
fn amounts(told: &Amounts) -> (i64, i64, Vec<(&str, i64)>) {
    (told.cpu, told.memory / GIB, others(&told.others))
}

/// The same of ceilings.
fn ceilings(told: &Ceilings) -> (Option<i64>, Option<i64>, Vec<(&str, i64)>) {
    let memory = told.memory.map(|it| it / GIB);
    (told.cpu, memory, others(&told.others))
}

fn others(told: &[(Arc<str>, i64)]) -> Vec<(&str, i64)> {
    let mut told: Vec<(&str, i64)> = told.iter().map(|(name, value)| (&**name, *value)).collect();
    told.sort_unstable();
    told
}

#[test]
fn a_queue_that_shares_by_weight_is_told_as_it_is() {
    let mut world = plane_with_gpus("{name: proportion}");
    let weight = json!({ "spec": { "weight": 3 } });
    world.put_object(Kind::Queue, "default", &weight);
    pod_with_gpus(&mut world, "first", 3, 2);
    pod_with_gpus(&mut world, "second", 2, 1);
    let told = queue(&mut world, "default");
    let gpus = |count: i64| vec![("nvidia.com/gpu", count * 1_000)];
    assert_eq!(amounts(&told.allocated), (3_000, 2, gpus(2)));
    assert_eq!(amounts(&told.request), (5_000, 4, gpus(3)));
    // All that there is of what it asks for.
    assert_eq!(amounts(&told.deserved), (4_000, 4, gpus(3)));
    assert_eq!(amounts(&told.inqueue), (2_000, 2, gpus(1)));
    assert!(told.ceilings.is_none());
    // Of the cores that it should have it has three quarters, of all else less.
    assert_eq!((told.share, told.weight), (750_000, Some(3)));
    assert!(!told.is_overused);
}

#[test]
fn a_queue_with_a_ceiling_is_told_as_it_is() {
    let mut world = plane_with_gpus("{name: capacity}");
    let limits = json!({ "spec": {
        "capability": { "cpu": "10", "nvidia.com/gpu": "3" },
        "deserved": { "cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1" },
    } });
    world.put_object(Kind::Queue, "default", &limits);
    pod_with_gpus(&mut world, "first", 3, 2);
    pod_with_gpus(&mut world, "second", 2, 1);
    let told = queue(&mut world, "default");
    let gpus = |count: i64| vec![("nvidia.com/gpu", count * 1_000)];
    assert_eq!(amounts(&told.allocated), (3_000, 2, gpus(2)));
    assert_eq!(amounts(&told.request), (5_000, 4, gpus(3)));
    assert_eq!(amounts(&told.deserved), (2_000, 1, gpus(1)));
    assert_eq!(amounts(&told.inqueue), (2_000, 2, gpus(1)));
    let (own, real) = told.ceilings.as_ref().expect("capacity knows ceilings");
    assert_eq!(ceilings(own), (Some(10_000), None, gpus(3)));
    // What the cluster has where that is less; pods are pieces.
    let others = vec![("nvidia.com/gpu", 3_000), ("pods", 110)];
    assert_eq!(ceilings(real), (Some(4_000), Some(8), others));
    // Two GPUs and GiB where it should have one.
    assert_eq!((told.share, told.weight), (2_000_000, None));
    assert!(told.is_overused);
}

/// A.2: what counts is that it has what it deserves, not that it wants more.
#[test]
fn a_queue_that_asks_for_what_it_holds_has_all_that_it_should_have() {
    let mut world = plane(&conf("{name: proportion}"), 1);
    pod(&mut world, "first", 3, None);
    world.pass_ms(2_000);
    let told = queue(&mut world, "default");
    assert_eq!((told.allocated.cpu, told.deserved.cpu), (3_000, 3_000));
    assert!(told.is_overused);
    // Of four cores that it should have now it has three.
    pod(&mut world, "second", 2, None);
    world.pass_ms(2_000);
    assert!(!queue(&mut world, "default").is_overused);
}

/// A.3: in a tree a queue holds, wants and was let in for what all below it do.
#[test]
fn a_queue_above_others_is_told_with_all_below_it() {
    let mut world = plane(&conf("{name: capacity, enableHierarchy: true}"), 1);
    for (name, parent) in [("team", "root"), ("beside", "team"), ("default", "team")] {
        let queue = json!({
            "spec": { "weight": 1, "parent": parent }, "status": { "state": "Open" },
        });
        world.put_object(Kind::Queue, name, &queue);
    }
    for (name, cpu, queue) in [("a", 3, "default"), ("b", 1, "beside"), ("c", 2, "default")] {
        pod(&mut world, name, cpu, None);
        let group = json!({ "spec": { "queue": queue } });
        world.put_object(Kind::PodGroup, name, &group);
        world.pass_ms(2_000);
    }
    let mut told = |name| {
        let it = queue(&mut world, name);
        (it.allocated.cpu, it.request.cpu, it.inqueue.cpu)
    };
    assert_eq!(told("beside"), (1_000, 1_000, 0));
    assert_eq!(told("default"), (3_000, 5_000, 2_000));
    assert_eq!(told("team"), (4_000, 6_000, 2_000));
    assert_eq!(told("root"), (4_000, 6_000, 2_000));
}

/// Where only controllers run they count groups: of queues that are there, in each of their phases.
#[test]
fn groups_are_counted_by_queue_and_phase() {
    let mut world = World::new(crate::settings(only("queue")));
    world.put_queues();
    let phases = [
        ("Completed", 1),
        ("Inqueue", 2),
        ("Pending", 3),
        ("Running", 4),
        ("Unknown", 5),
    ];
    for (phase, count) in phases {
        for at in 0..count {
            let group = json!({
                "spec": { "minMember": 1, "queue": "default" }, "status": { "phase": phase },
            });
            let name = format!("{}-{at}", phase.to_lowercase());
            world.put_object(Kind::PodGroup, &name, &group);
        }
    }
    let astray = json!({ "spec": { "queue": "nowhere" }, "status": { "phase": "Running" } });
    world.put_object(Kind::PodGroup, "astray", &astray);
    world.pass_ms(2_000);
    let rows = |world: &mut World| census(world).groups;
    let default = ("default".into(), [1, 2, 3, 4, 5]);
    assert_eq!(rows(&mut world), [default, ("root".into(), [0; 5])]);
    world.delete_object(Kind::Queue, "default");
    world.pass_ms(2_000);
    assert_eq!(rows(&mut world), [("root".into(), [0; 5])]);
}
