//! Gangs whose places are counted are told what they would be told if their tasks were tried.

use model::Verdict;

use crate::dice::Dice;
use crate::fixture::World;

/// Who tells how many tasks have room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    /// A count of places, where it may.
    ByCounting,
    /// A try: each gang has one task more, which is another than the rest and waits behind a gate.
    ByTrying,
}

/// What gangs of equal tasks are told that want more places than there are nodes, cycle by cycle, and where
/// their tasks are.
fn told(seed: u64, how: Told) -> Vec<String> {
    let mut dice = Dice(seed);
    let mut world = World::new();
    let mut told = Vec::new();
    for node in 0..1 + dice.roll(4) {
        let extra = dice.pick(&[
            "",
            "taint=k:v:NoSchedule",
            "pods=3",
            "cordoned",
            "label=zone:a",
        ]);
        let (cpu, mem) = (1 + dice.roll(9), 1 + dice.roll(9));
        world.perform(&format!("node n{node} cpu={cpu} mem={mem}Gi {extra}"));
    }
    for at in 0..1 + dice.roll(5) {
        let wish = dice.pick(&["", "", "tolerate=k", "select=zone:a"]);
        let (min, cpu, mem) = (1 + dice.roll(12), 1 + dice.roll(2), dice.roll(3));
        let count = min + dice.roll(3);
        let other = match how {
            Told::ByCounting => "",
            Told::ByTrying => "+ 1 x cpu=7 gated",
        };
        world.perform(&format!(
            "gang a/g{at} min={min} minres=none : {count} x cpu={cpu} mem={mem}Gi {wish} {other}"
        ));
        if dice.roll(3) == 0 && world.has_pod_on_a_node("a/g0-") {
            world.perform("run a/g0-");
            world.perform("end a/g0-");
        }
        world.perform("wait 5s");
        world.perform("cycle");
        let gangs = world.tables.gangs().map(|(_, gang)| match &gang.said {
            Verdict::Waits(why) => format!("{}  {}", gang.spec.key, why.sentence()),
            other => format!("{}  {other:?}", gang.spec.key),
        });
        told.extend(gangs);
        let places = world.tables.tasks().filter_map(|(_, task)| {
            Some(format!(
                "{} -> {}",
                task.key,
                world.tables.node(task.node?).spec.name
            ))
        });
        told.extend(places);
    }
    told
}

#[test]
fn who_is_counted_is_told_what_who_is_tried_is_told() {
    let mut waiting = 0;
    for seed in 0..500 {
        let counted = told(seed, Told::ByCounting);
        waiting += counted.iter().filter(|line| line.contains("fit")).count();
        assert_eq!(counted, told(seed, Told::ByTrying), "seed {seed}");
    }
    assert!(waiting > 500, "{waiting} times a gang waits for room");
}

#[test]
fn a_gang_of_very_many_tasks_that_cannot_start_is_not_tried() {
    let mut world = World::new();
    world.perform("node n1 n2 cpu=100 pods=1000");
    world.perform("gang a/vast min=1500 minres=none : 1500 x cpu=1");
    world.perform("cycle");
    world.perform("gang a/small minres=none : 1 x cpu=1");
    world.perform("cycle");
    world.perform("node n1 cpu=101 pods=1000");
    world.perform("cycle");
    assert_eq!(
        world.engine.work().tasks,
        1,
        "a node is sought for the small one alone"
    );
    assert!(
        world.said.contains("200 of 1500 tasks fit"),
        "{}",
        world.said
    );
}

#[test]
fn nor_is_one_of_several_shapes_until_there_may_be_room() {
    let mut world = World::new();
    world.perform("node n1 n2 cpu=500 pods=9000");
    // The fifth shape is one more than is told apart.
    let tasks = "1 x cpu=2 + 1990 x cpu=1 + 1 x cpu=3 + 1 x cpu=4 + 200 x cpu=100m priority=5";
    world.perform(&format!("gang a/vast min=2100 minres=none : {tasks}"));
    world.perform("cycle");
    world.perform("gang a/small minres=none : 1 x cpu=1");
    world.perform("cycle");
    assert_eq!(world.engine.work().tasks, 1, "{}", world.said);
    let told = "1000 of 2100 tasks fit: vast-1001 needs 1 cpu";
    assert!(world.said.contains(told), "{}", world.said);
    // 200 tasks with 20 cpu come first, then there is room for the one with 2 and 1,962 of the others.
    world.perform("node n1 cpu=993 pods=9000");
    world.perform("node n2 cpu=992 pods=9000");
    world.perform("cycle");
    assert!(world.has_pod_on_a_node("a/vast-2100"), "{}", world.said);
}
