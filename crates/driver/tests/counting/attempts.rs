//! What figures tell of attempts: tasks that were placed, tasks that found no node, and gangs for which
//! others were sent away.

use api::kind::Kind;
use driver::census::Figures;
use serde_json::json;

use crate::world::World;
use crate::world::planes::{node_of, plane, pod};
use crate::{CONF, census, job};

fn figures(world: &mut World) -> Figures {
    census(world).figures.expect("it decides")
}

/// A gang of so many pods of a core each, of which so many start it, in a queue and of a class.
fn gang(world: &mut World, name: &str, (least, pods): (u32, u32), (queue, class): (&str, &str)) {
    let group = json!({
        "spec": { "minMember": least, "queue": queue, "priorityClassName": class },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::PodGroup, name, &group);
    for at in 0..pods {
        world.put_member(name, &format!("{name}-{at}"));
    }
    world.pass_ms(2_000);
    for at in 0..pods {
        let name = format!("{name}-{at}");
        if node_of(world, &name).is_string() {
            let runs = json!({ "status": { "phase": "Running" } });
            world.put_object(Kind::Pod, &name, &runs);
        }
    }
    world.pass_ms(2_000);
}

/// How many pods of a gang are there still.
fn left(world: &World, gang: &str) -> usize {
    let prefix = format!("{gang}-");
    let pods = world.names_of(Kind::Pod);
    pods.filter(|name| name.starts_with(&prefix)).count()
}

#[test]
fn all_tasks_of_a_gang_that_cannot_start_are_refused_in_each_look() {
    let mut world = plane(CONF, 1);
    pod(&mut world, "first", 3, None);
    world.pass_ms(2_000);
    // One of three has room, and of the others only one needs to be tried.
    gang(&mut world, "big", (3, 3), ("default", ""));
    let told = census(&mut world);
    let looks = job(&told, "big").in_vain;
    let attempts = &told.figures.as_ref().expect("it decides").attempts;
    assert!(looks > 0);
    assert_eq!((attempts.placed, attempts.refused), (1, 3 * looks));
}

#[test]
fn tasks_beyond_the_start_are_refused_one_by_one() {
    let mut world = plane(CONF, 1);
    pod(&mut world, "first", 3, None);
    world.pass_ms(2_000);
    let before = figures(&mut world).attempts.refused;
    assert_eq!(before, 0);
    // Three that are alike find no room, which the first of them shows.
    gang(&mut world, "wide", (1, 4), ("default", ""));
    let attempts = figures(&mut world).attempts;
    assert_eq!(attempts.placed, 2);
    assert!(
        attempts.refused > 0 && attempts.refused.is_multiple_of(3),
        "{attempts:?}"
    );
    // Gated, one of them is no attempt any more.
    let gate = json!({ "spec": { "schedulingGates": [{ "name": "later" }] } });
    let homeless = (0..4).map(|at| format!("wide-{at}"));
    let mut homeless = homeless.filter(|name| node_of(&world, name).is_null());
    let gated = homeless.next().expect("three have no node");
    world.put_object(Kind::Pod, &gated, &gate);
    world.pass_ms(2_000);
    let more = figures(&mut world).attempts.refused - attempts.refused;
    assert!(more > 0 && more.is_multiple_of(2), "{more}");
}

/// Neither a gang that is not let in nor one that lacks pods has anybody look for a node.
#[test]
fn who_waits_for_something_else_than_a_node_is_not_refused_one() {
    let mut world = plane(CONF, 1);
    let ceiling = json!({ "spec": { "capability": { "cpu": "1" } } });
    world.put_object(Kind::Queue, "default", &ceiling);
    pod(&mut world, "outside", 2, None);
    gang(&mut world, "short", (2, 1), ("default", ""));
    let told = census(&mut world);
    assert!(job(&told, "outside").in_vain > 0 && job(&told, "short").in_vain > 0);
    let attempts = told.figures.expect("it decides").attempts;
    assert_eq!((attempts.placed, attempts.refused), (0, 0));
}

/// Two racks have room for either task and only the third for both.
#[test]
fn a_gang_that_is_placed_was_not_refused_where_it_was_tried_before() {
    let mut world = plane(CONF, 4);
    for (rack, nodes) in [("r1", &[1][..]), ("r2", &[2]), ("r3", &[3, 4])] {
        let members = nodes.iter().map(|at| {
            let name = format!("node-{at}");
            json!({ "type": "Node", "selector": { "exactMatch": { "name": name } } })
        });
        let spec = json!({ "spec": { "tier": 1, "members": members.collect::<Vec<_>>() } });
        world.put_object(Kind::HyperNode, rack, &spec);
    }
    let close = json!({ "spec": {
        "minMember": 2, "queue": "default",
        "networkTopology": { "mode": "hard", "highestTierAllowed": 1 },
    } });
    world.put_object(Kind::PodGroup, "close", &close);
    for (name, cpu) in [("close-0", "3"), ("close-1", "2")] {
        world.put_member("close", name);
        let amounts = json!({ "requests": { "cpu": cpu } });
        let pod = json!({ "spec": { "containers": [{ "name": "c", "resources": amounts }] } });
        world.put_object(Kind::Pod, name, &pod);
    }
    world.pass_ms(2_000);
    let nodes = ["close-0", "close-1"].map(|name| node_of(&world, name));
    assert_eq!(nodes, ["node-3", "node-4"]);
    let attempts = figures(&mut world).attempts;
    assert_eq!((attempts.placed, attempts.refused), (2, 0));
}

/// Four cores, of which one action takes some from whoever has less right to them.
fn contested(action: &str) -> World {
    let conf = format!(
        "actions: \"enqueue, allocate, backfill, {action}\"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}]
- plugins: [{{name: predicates}}, {{name: proportion}}, {{name: nodeorder}}]
"
    );
    let mut world = plane(&conf, 1);
    let high = json!({ "value": 1_000 });
    world.put_object(Kind::PriorityClass, "high", &high);
    let other = json!({
        "spec": { "weight": 1, "parent": "root" }, "status": { "state": "Open" },
    });
    world.put_object(Kind::Queue, "other", &other);
    world
}

#[test]
fn gangs_for_which_others_are_preempted_are_counted_with_the_last_ones_victims() {
    let mut world = contested("preempt");
    gang(&mut world, "low", (1, 4), ("default", ""));
    let attempts = figures(&mut world).attempts;
    assert_eq!((attempts.evicted_for.len(), attempts.last_victims), (0, 0));
    gang(&mut world, "two", (2, 2), ("default", "high"));
    assert_eq!(left(&world, "low"), 2);
    let attempts = figures(&mut world).attempts;
    assert_eq!(attempts.evicted_for, [("preempt", 1)].into());
    assert_eq!(attempts.last_victims, 2);
    gang(&mut world, "one", (1, 1), ("default", "high"));
    assert_eq!(left(&world, "low"), 1);
    let attempts = figures(&mut world).attempts;
    assert_eq!(attempts.evicted_for, [("preempt", 2)].into());
    assert_eq!((attempts.last_victims, attempts.placed), (1, 4 + 2 + 1));
}

#[test]
fn gangs_that_reclaim_whole_gangs_are_counted_apart() {
    let mut world = contested("gangreclaim");
    gang(&mut world, "first", (2, 2), ("default", ""));
    gang(&mut world, "second", (2, 2), ("default", ""));
    gang(&mut world, "owed", (2, 2), ("other", ""));
    assert_eq!((left(&world, "first"), left(&world, "second")), (2, 0));
    let attempts = figures(&mut world).attempts;
    assert_eq!(attempts.evicted_for, [("gangreclaim", 1)].into());
    // That is told of preempt alone.
    assert_eq!((attempts.last_victims, attempts.placed), (0, 4 + 2));
}
