//! The rules change while a driver runs: those decide from a quiet moment on, and each segment of the
//! log is played by its own.

mod world;

use api::kind::Kind;
use driver::log::Segment;
use driver::scheduler_conf::MetricsConf;
use proptest::prelude::*;
use serde_json::json;
use world::planes::{self, engine, node_of};
use world::segments::{played, segments};
use world::{Lost, World, settings};

const SPREADS: &str = "
actions: \"enqueue, allocate, backfill\"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - name: predicates
  - name: nodeorder
";

const PACKS: &str = "
actions: \"enqueue, allocate, backfill\"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - name: predicates
  - name: binpack
    arguments:
      binpack.cpu: 5
";

/// Two nodes, of which the first is full by half.
fn plane() -> World {
    let mut world = planes::plane(SPREADS, 2);
    planes::pod(&mut world, "first", 2, Some("node-1"));
    world
}

/// A pod that wants half a node.
fn pod(world: &mut World, name: &str) {
    planes::pod(world, name, 2, None);
}

fn change(world: &mut World, conf: &str) {
    let now = world.now;
    world
        .driver
        .handle_rules(engine(conf), MetricsConf::default(), now);
}

#[test]
fn new_rules_decide_what_comes_after_them() {
    let mut world = plane();
    world.pass_ms(1_000);
    pod(&mut world, "spread");
    world.pass_ms(1_000);
    assert_eq!(node_of(&world, "spread"), "node-2");
    world.delete_object(Kind::Pod, "spread");
    world.pass_ms(1_000);

    change(&mut world, PACKS);
    world.pass_ms(1_000);
    pod(&mut world, "packed");
    world.pass_ms(1_000);
    assert_eq!(node_of(&world, "packed"), "node-1");
}

#[test]
fn new_rules_wait_until_nothing_is_on_its_way() {
    let mut world = plane();
    world.pass_ms(1_000);
    world.is_answer_slow = true;
    pod(&mut world, "spread");
    world.pass_ms(1_000);
    change(&mut world, PACKS);
    world.pass_ms(1_000);
    let plugins = |world: &World| {
        let engine = world.driver.settings().engine.as_ref();
        let placement = &engine.expect("an engine runs").engine.settings().placement;
        placement.tiers[1][1].name.clone()
    };
    assert_eq!(plugins(&world), "nodeorder");
    world.is_answer_slow = false;
    while world.answer() {}
    world.pass_ms(1_000);
    assert_eq!(plugins(&world), "binpack");
    assert_eq!(node_of(&world, "spread"), "node-2");
}

#[test]
fn each_segment_is_played_by_the_rules_that_it_was_made_by() {
    let mut world = plane();
    world.driver.record(world.now);
    world.pass_ms(1_000);
    pod(&mut world, "spread");
    world.pass_ms(1_000);
    change(&mut world, PACKS);
    // The same again changes nothing, and no segment begins for it.
    change(&mut world, PACKS);
    world.pass_ms(1_000);
    change(&mut world, PACKS);
    pod(&mut world, "packed");
    world.pass_ms(1_000);

    let files = segments(&mut world);
    assert_eq!(files.len(), 2);
    let plugins = |at: usize| {
        let segment = Segment::read(&files[at]).expect("it was written just now");
        assert!(
            played(&files[at]).places > 0,
            "segment {at} places something"
        );
        let tiers = &segment.header.settings["engine"]["configuration"]["tiers"];
        tiers[1]["plugins"][1].clone()
    };
    assert_eq!(plugins(0), json!({ "name": "nodeorder" }));
    assert_eq!(
        plugins(1),
        json!({ "name": "binpack", "arguments": { "binpack.cpu": 5 } })
    );
}

#[test]
fn where_no_engine_runs_there_are_no_rules_to_change() {
    let mut world = World::new(settings(&[]));
    world.driver.record(world.now);
    change(&mut world, PACKS);
    world.pass_ms(1_000);
    assert_eq!(segments(&mut world).len(), 1);
}

/// What happens to a plane.
#[derive(Clone, Copy, Debug)]
enum Step {
    Rules(&'static str),
    Pod,
    Pass(i64),
    Slow(bool),
    Lose(Lost),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Rules(PACKS)),
        Just(Step::Rules(SPREADS)),
        Just(Step::Pod),
        (0..3_000_i64).prop_map(Step::Pass),
        any::<bool>().prop_map(Step::Slow),
        Just(Step::Lose(Lost::AfterCommit)),
        Just(Step::Lose(Lost::BeforeCommit)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn rules_may_change_at_any_time_and_every_segment_is_played_alike(
        steps in prop::collection::vec(step(), 0..40),
    ) {
        let mut world = plane();
        world.driver.record(world.now);
        let mut pods = 0;
        for step in steps {
            match step {
                Step::Rules(conf) => change(&mut world, conf),
                // More would find no room.
                Step::Pod if pods < 3 => {
                    pods += 1;
                    pod(&mut world, &format!("pod-{pods}"));
                }
                Step::Pod => {}
                Step::Pass(ms) => world.pass_ms(ms),
                Step::Slow(is_slow) => world.is_answer_slow = is_slow,
                Step::Lose(how) => world.lost.push_back(how),
            }
        }
        world.lost.clear();
        world.is_answer_slow = false;
        world.pass_ms(300_000);
        for at in 1..=pods {
            prop_assert!(!node_of(&world, &format!("pod-{at}")).is_null(), "pod-{} waits", at);
        }
        for file in segments(&mut world) {
            played(&file);
        }
    }
}

#[test]
fn a_ceiling_that_no_rule_keeps_holds_nobody_up() {
    for (plugin, runs) in [("capacity", false), ("binpack", true)] {
        let conf = format!(
            "actions: \"enqueue, allocate\"\ntiers: [{{plugins: [{{name: gang}}, {{name: predicates}}, {{name: {plugin}}}]}}]\n"
        );
        let mut world = planes::plane(&conf, 1);
        let queue = json!({ "spec": { "capability": { "cpu": "1" } } });
        world.put_object(Kind::Queue, "default", &queue);
        planes::pod(&mut world, "wide", 2, None);
        world.pass_ms(5_000);
        let node = node_of(&world, "wide");
        assert_eq!(!node.is_null(), runs, "{plugin}");
        assert_eq!(world.driver.metrics().violations, 0, "{plugin}");
    }
}
