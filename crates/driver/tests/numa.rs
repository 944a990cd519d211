//! NUMA nodes in the loop: from a job's policy to what its pods are told, until their node has told.

#[path = "../../engine/tests/shared/dice.rs"]
mod dice;
mod world;

use api::kind::Kind;
use dice::Dice;
use driver::{EngineSettings, Settings, scheduler_conf};
use engine::Engine;
use serde_json::{Value, json};
use world::segments::{played, segments};
use world::{World, settings};

fn engine() -> Engine {
    let conf = "actions: \"enqueue, allocate, backfill\"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: numa-aware, arguments: {weight: 2}}]
";
    let read = scheduler_conf::read(conf.as_bytes());
    let settings = engine::Settings {
        placement: read.accepted().expect("it is understood").placement,
        ..engine::Settings::default()
    };
    Engine::new(settings).expect("its actions are known").0
}

fn placing(numa_nodes: bool) -> Settings {
    let mut settings = settings(controllers::CONTROLLERS);
    settings.engine = Some(EngineSettings::new(engine()));
    if !numa_nodes {
        settings.unwatched.push(Kind::Numatopology);
    }
    settings
}

fn plane(settings: Settings) -> World {
    let mut world = World::new(settings);
    let active =
        json!({ "spec": { "finalizers": ["kubernetes"] }, "status": { "phase": "Active" } });
    world.put_object(Kind::Namespace, "ns", &active);
    world.put_queues();
    let node = json!({
        "metadata": { "labels": { "kubernetes.io/hostname": "node-1" } },
        "status": { "allocatable": { "cpu": "16", "memory": "8Gi", "pods": "110" } },
    });
    world.put_object(Kind::Node, "node-1", &node);
    world
}

/// Two NUMA nodes of four cpus; free are these, and these pods have these.
fn tell(world: &mut World, free: &str, given: &[(&str, &str)]) {
    let cpu = |at: u32| json!({ "numa": at / 4, "socket": at / 4, "core": at });
    let detail: serde_json::Map<String, Value> =
        (0..8).map(|at| (at.to_string(), cpu(at))).collect();
    let allocation = |(pod, cpus): &(&str, &str)| {
        json!({
            "name": pod, "namespace": "ns",
            "containerAllocations": [{ "name": "main", "allocations": { "cpu": cpus } }],
        })
    };
    let given: Vec<Value> = given.iter().map(allocation).collect();
    let topology = json!({ "spec": {
        "policies": {
            "CPUManagerPolicy": "static", "TopologyManagerPolicy": "single-numa-node",
        },
        "numares": { "cpu": { "allocatable": free, "capacity": 8 } },
        "cpuDetail": detail,
        "podAllocations": given,
    }});
    world.put_object(Kind::Numatopology, "node-1", &topology);
}

fn job(world: &mut World, name: &str, cpus: u32) {
    let amounts = json!({ "cpu": cpus.to_string(), "memory": "64Mi" });
    let job = json!({ "spec": {
        "schedulerName": "volcano", "minAvailable": 1, "queue": "default", "maxRetry": 3,
        "tasks": [{
            "name": "w", "replicas": 1, "topologyPolicy": "single-numa-node",
            "template": { "spec": { "containers": [{
                "name": "main", "image": "sh",
                "resources": { "requests": amounts, "limits": amounts },
            }]}},
        }],
    }});
    world.put_object(Kind::VcJob, name, &job);
    world.pass_ms(5_000);
}

fn told(world: &World, pod: &str) -> [Value; 2] {
    let annotations = &world.object(Kind::Pod, pod)["metadata"]["annotations"];
    ["volcano.sh/topology-decision", "katmai.dev/numa-units"].map(|key| annotations[key].clone())
}

fn message(world: &World, pod: &str) -> String {
    let conditions = &world.object(Kind::Pod, pod)["status"]["conditions"];
    conditions[0]["message"].as_str().unwrap_or("").to_owned()
}

#[test]
fn a_job_is_told_of_its_numa_node_and_holds_it_until_its_node_has_told() {
    let mut world = plane(placing(true));
    job(&mut world, "one", 3);
    let said = message(&world, "one-w-0");
    assert!(said.contains("numa info is empty"), "{said}");

    tell(&mut world, "0-7", &[]);
    world.pass_ms(5_000);
    assert_eq!(
        told(&world, "one-w-0"),
        [r#"{"numa":{"0":{"cpu":"3"}}}"#, r#"{"cpu":"0-2"}"#]
    );
    job(&mut world, "two", 3);
    assert_eq!(told(&world, "two-w-0")[1], r#"{"cpu":"4-6"}"#);
    job(&mut world, "three", 2);
    let said = message(&world, "three-w-0");
    assert!(
        said.contains("container main cannot be assigned by numa"),
        "{said}"
    );

    // The node gave others than were chosen, and two cpus together are left.
    let given = [("one-w-0", "0-1,7"), ("two-w-0", "4-6")];
    tell(&mut world, "2-3", &given);
    world.pass_ms(5_000);
    assert_eq!(told(&world, "three-w-0")[1], r#"{"cpu":"2-3"}"#);

    // Who is gone has nothing, whether the node has told or not.
    world.delete_object(Kind::VcJob, "two");
    world.delete_object(Kind::Pod, "two-w-0");
    job(&mut world, "four", 3);
    assert_eq!(told(&world, "four-w-0")[1], r#"{"cpu":"4-6"}"#);
}

#[test]
fn whoever_begins_anew_keeps_what_nobody_has_told_yet() {
    let mut world = plane(placing(true));
    let now = world.now;
    world.driver.record(now);
    tell(&mut world, "0-7", &[]);
    job(&mut world, "one", 3);
    assert_eq!(told(&world, "one-w-0")[1], r#"{"cpu":"0-2"}"#);

    // Another configuration begins with tables that are read anew from the objects.
    let mut conf = engine().settings().clone();
    conf.placement.actions.pop();
    let other = Engine::new(conf).expect("its actions are known").0;
    let now = world.now;
    world
        .driver
        .handle_rules(other, scheduler_conf::MetricsConf::default(), now);
    world.pass_ms(5_000);
    job(&mut world, "two", 3);
    assert_eq!(told(&world, "two-w-0")[1], r#"{"cpu":"4-6"}"#);
    let files = segments(&mut world);
    assert_eq!(files.len(), 2);
    for file in files {
        assert!(
            played(&file).places > 0,
            "what was decided is decided again"
        );
    }
}

#[test]
fn with_its_gate_closed_nothing_is_told_and_nothing_asked() {
    let mut world = plane(placing(false));
    tell(&mut world, "0-7", &[]);
    job(&mut world, "one", 3);
    let said = message(&world, "one-w-0");
    assert!(said.contains("numa info is empty"), "{said}");
    assert!(!world.log.iter().any(|line| line.contains("Numatopology")));
}

/// One of these.
fn of<'a, T>(dice: &mut Dice, all: &'a [T]) -> &'a T {
    &all[dice.roll(all.len() as u64) as usize]
}

/// A Numatopology of which anything may be wrong.
fn odd(dice: &mut Dice) -> Value {
    let lists = [
        "0-7",
        "0-3",
        "4-7",
        "",
        "0,2,4",
        "3-1",
        "0-4294967295",
        "-1",
        "x",
        "4090-4096",
        "0-4095",
        ",",
    ];
    let mut numbers = vec![
        json!(0),
        json!(1),
        json!(1),
        json!(2),
        json!(7),
        Value::Null,
    ];
    if dice.roll(3) == 0 {
        numbers.extend([json!(-1), json!(4_095), json!(i64::MAX), json!(i64::MIN)]);
    }
    let keys = [
        "0", "1", "2", "3", "4", "5", "6", "7", "07", "4095", "4096", "-1", "", "1e3",
    ];
    let count = if dice.roll(3) == 0 { keys.len() } else { 8 };
    let mut detail = serde_json::Map::new();
    for key in &keys[..count] {
        let [numa, socket, core] = [0; 3].map(|_| of(dice, &numbers).clone());
        let place = json!({ "numa": numa, "socket": socket, "core": core });
        detail.insert((*key).to_owned(), place);
    }
    let gpus: serde_json::Map<String, Value> = (0..dice.roll(4))
        .map(|at| (at.to_string(), json!({ "numa": of(dice, &numbers) })))
        .collect();
    let pods = ["one-w-0", "two-w-0", "three-w-0", "nobody", ""];
    let given: Vec<Value> = (0..dice.roll(4))
        .map(|_| {
            let lists = [of(dice, &lists), of(dice, &lists)];
            let given = lists.map(|list| json!({ "allocations": { "cpu": list } }));
            json!({ "name": of(dice, &pods), "namespace": "ns", "containerAllocations": given })
        })
        .collect();
    let policies = [
        "best-effort",
        "restricted",
        "single-numa-node",
        "none",
        "odd",
    ];
    let reserved = ["0", "1", "1500m", "9999999999", "-3", "k"];
    json!({ "spec": {
        "policies": {
            "CPUManagerPolicy": of(dice, &["static", "static", "none"]),
            "TopologyManagerPolicy": of(dice, &policies),
        },
        "resReserved": { "cpu": of(dice, &reserved[..]) },
        "numares": {
            "cpu": { "allocatable": of(dice, &lists), "capacity": of(dice, &numbers) },
            "nvidia.com/gpu": { "allocatable": of(dice, &lists) },
        },
        "cpuDetail": detail,
        "gpuDetail": gpus,
        "podAllocations": given,
    }})
}

#[test]
fn whatever_is_told_of_a_node_no_cpu_is_given_twice_and_nothing_ends() {
    let mut placed = 0;
    for seed in 0..60 {
        let mut world = plane(placing(true));
        let mut dice = Dice(seed);
        for name in ["one", "two", "three"] {
            if dice.roll(3) == 0 {
                tell(&mut world, "0-7", &[("two-w-0", "3-5")]);
            } else {
                let topology = odd(&mut dice);
                world.put_object(Kind::Numatopology, "node-1", &topology);
            }
            job(
                &mut world,
                name,
                1 + u32::try_from(dice.roll(4)).unwrap_or(0),
            );
            if dice.roll(4) == 0 {
                world.delete_object(Kind::Numatopology, "node-1");
            }
        }
        world.pass_ms(5_000);
        assert_eq!(world.driver.metrics().violations, 0, "seed {seed}");
        let pods = ["one-w-0", "two-w-0", "three-w-0"];
        let told = pods.iter().filter(|pod| !told(&world, pod)[1].is_null());
        placed += told.count();
    }
    assert!(placed > 20, "only {placed} pods were given cpus");
}
