//! What a rehearsal foretells is what happens.

use api::call::Call;
use api::kind::{KINDS, Kind};
use serde_json::{Value, json};
use sim::{Change, Fate, Gone, Outcome, Random, Rehearsal, Settings, WHAT_IF, World};

use crate::drivers::drivers_by;
use crate::rehearsed::{NOW, only_makers, queue};

/// Rules by which a world may live: Volcano's built-in ones; with taking from the less important; with
/// taking back what queues deserve; the same in a tree of queues, where gangs that must lie close do.
const RULES: [Option<&str>; 4] = [
    None,
    Some(
        "actions: \"enqueue, allocate, preempt, backfill\"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}, {name: binpack}]
",
    ),
    Some(
        "actions: \"enqueue, allocate, reclaim, backfill\"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
",
    ),
    Some(
        "actions: \"enqueue, allocate, preempt, reclaim, backfill\"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: capacity, enableHierarchy: true}, {name: nodeorder}, {name: network-topology-aware}]
",
    ),
];

/// Drivers by the rules of that number, which know groups of Kubernetes' own.
fn by_rules(seed: u64, rules: Option<&str>) -> driver::Settings {
    let rules = rules.map_or_else(engine::Settings::default, |conf| {
        let conf = driver::scheduler_conf::read(conf.as_bytes()).accepted();
        engine::Settings {
            placement: conf.expect("it is understood").placement,
            ..engine::Settings::default()
        }
    });
    let mut drivers = drivers_by(seed, rules);
    drivers.controller_settings.native_groups = true;
    if let Some(engine) = &mut drivers.engine {
        engine.native_groups = true;
    }
    drivers
}

fn everything(world: &mut World) -> Vec<Value> {
    let mut objects = Vec::new();
    for row in KINDS {
        for mut object in world.objects(row.kind) {
            object["apiVersion"] = json!(row.kind.api_version());
            object["kind"] = json!(row.name);
            objects.push(object);
        }
    }
    objects
}

fn job(random: &mut Random, name: &str, high_of_6: i64) -> Value {
    let cpu = random.between(1, 3);
    let replicas = random.between(1, 6);
    let queue = ["default", "small"][usize::from(random.between(0, 2) == 0)];
    let class = ["low", "high"][usize::from(random.between(0, 5) < high_of_6)];
    let is_close = random.between(0, 3) == 0;
    let close = json!({ "mode": "hard", "highestTierAllowed": 1 });
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "minAvailable": random.between(1, replicas), "schedulerName": "volcano",
            "queue": queue, "priorityClassName": class,
            "networkTopology": is_close.then_some(close),
            "tasks": [{ "name": "work", "replicas": replicas, "template": {
                "metadata": { "annotations": { "katmai.dev/sim-duration": "10h" } },
                "spec": { "restartPolicy": "Never", "containers": [{
                    "name": "c", "image": "i",
                    "resources": { "requests": { "cpu": cpu.to_string() } },
                }] },
            } }],
        },
    })
}

/// A pod that nothing has made; of a group of Kubernetes' own, if it names one.
fn bare_pod(random: &mut Random, name: &str, group: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default",
            "annotations": { "katmai.dev/sim-duration": "10h" },
        },
        "spec": {
            "schedulerName": "volcano", "restartPolicy": "Never",
            "schedulingGroup": group.map(|group| json!({ "podGroupName": group })),
            "containers": [{
                "name": "c", "image": "i",
                "resources": { "requests": { "cpu": random.between(1, 3).to_string() } },
            }],
        },
    })
}

/// A gang of Kubernetes' own.
fn native_gang(random: &mut Random, name: &str) -> Vec<Value> {
    let pods = random.between(1, 5);
    let mut gang = vec![json!({
        "apiVersion": Kind::NativeGroup.api_version(), "kind": "PodGroup",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "schedulingPolicy": { "gang": { "minCount": random.between(1, pods) } } },
    })];
    gang.extend((0..pods).map(|at| bare_pod(random, &format!("{name}-work-{at}"), Some(name))));
    gang
}

/// What somebody may think of: a job, a pod, a ceiling or share, a drain, an end, a node more, a gang.
fn thought(random: &mut Random, at: i64, jobs: i64) -> Vec<Value> {
    let early = format!("early-{}", random.between(0, jobs - 1));
    let one = match random.between(0, 8) {
        0..=2 => job(random, &format!("late-{at}"), 5),
        3 => bare_pod(random, &format!("lone-{at}"), None),
        4 => small_queue(random),
        5 => json!({
            "apiVersion": WHAT_IF, "kind": "Drain",
            "nodes": [format!("sim-node-{}", random.between(0, 3))],
        }),
        6 => json!({ "apiVersion": WHAT_IF, "kind": "Delete", "objects": [{
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
            "namespace": "default", "name": early,
        }] }),
        7 => queue("default", Some(&random.between(8, 40).to_string())),
        _ => return native_gang(random, &format!("native-{at}")),
    };
    vec![one]
}

/// One that may have little, or deserves much, in a tree of its own where there are trees.
fn small_queue(random: &mut Random) -> Value {
    let mut small = queue("small", Some(&random.between(4, 24).to_string()));
    small["spec"]["deserved"] = json!({ "cpu": random.between(1, 4) });
    small
}

/// Does in a world what somebody would do by hand.
fn make(world: &mut World, change: &Change) {
    let call = |method: &'static str, target: String, content_type: &'static str, body: &Value| {
        let body = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        Call {
            method,
            target,
            content_type,
            body,
        }
    };
    match change {
        Change::Apply(key, object) => {
            let target = format!("{}?fieldManager=kubectl&force=true", key.path());
            world.call(
                0,
                call("PATCH", target, "application/apply-patch+yaml", object),
            );
        }
        Change::Delete(keys) => {
            for key in keys {
                world.call(
                    0,
                    call("DELETE", key.path(), "application/json", &Value::Null),
                );
            }
        }
        Change::Drain { nodes, .. } => {
            let pods = world.objects(Kind::Pod);
            for node in nodes {
                let target = Kind::Node.path("", node);
                let cordon = json!({ "spec": { "unschedulable": true } });
                let cordon = call("PATCH", target, "application/merge-patch+json", &cordon);
                world.call(0, cordon);
                for pod in pods.iter().filter(|pod| pod["spec"]["nodeName"] == **node) {
                    let name = pod["metadata"]["name"].as_str().expect("it has a name");
                    let eviction = json!({
                        "apiVersion": "policy/v1", "kind": "Eviction",
                        "metadata": { "namespace": "default", "name": name },
                    });
                    let target = format!("{}/eviction", Kind::Pod.path("default", name));
                    world.call(0, call("POST", target, "application/json", &eviction));
                }
            }
        }
    }
}

/// What there is, as somebody would list it who decides nothing.
fn listed(world: &mut World, drivers: driver::Settings) -> Rehearsal {
    let objects = everything(world);
    Rehearsal::of(objects, drivers, NOW)
}

/// The same without what differs from one making of an object to the next: uids in names of groups.
fn without_uids(outcome: Outcome) -> Outcome {
    let is_uid = |part: &str| {
        let of = |(at, it): (usize, char)| match at {
            8 | 13 | 18 | 23 => it == '-',
            _ => it.is_ascii_hexdigit(),
        };
        part.chars().enumerate().all(of)
    };
    let plain = |mut text: String| {
        while let Some(at) = (0..text.len()).find(|at| text.get(*at..at + 36).is_some_and(is_uid)) {
            text.replace_range(at..at + 36, "UID");
        }
        text
    };
    let fate = |it: Fate| Fate {
        name: plain(it.name),
        reason: it.reason.map(plain),
        ..it
    };
    let gone = |it: Gone| Gone {
        group: it.group.map(plain),
        why: it.why.map(plain),
        ..it
    };
    let fates = |of: Vec<Fate>| {
        let mut fates: Vec<Fate> = of.into_iter().map(fate).collect();
        fates.sort_by(|one, other| {
            (&one.name, &one.reason, &one.nodes).cmp(&(&other.name, &other.reason, &other.nodes))
        });
        fates
    };
    Outcome {
        starts: fates(outcome.starts),
        waits: fates(outcome.waits),
        gone: outcome.gone.into_iter().map(gone).collect(),
        leave_later: outcome.leave_later,
    }
}

/// A world of four small nodes in two places, two classes and two queues, in which some jobs were submitted.
fn lived(
    seed: u64,
    latency_ms: i64,
    random: &mut Random,
    drivers: driver::Settings,
    jobs: i64,
) -> World {
    let mut settings = Settings::new(seed);
    settings.nodes.nodes = 4;
    settings.nodes.cpu = "6".parse().expect("an amount");
    settings.latency_ms_max = latency_ms;
    for stage in &mut settings.nodes.stages {
        (stage.delay_ms, stage.jitter_ms) = (0, stage.jitter_ms * latency_ms.unsigned_abs().min(1));
    }
    let mut world = World::new(settings, drivers);
    for (name, value) in [("low", 10), ("high", 1_000)] {
        let class = json!({ "metadata": { "name": name }, "value": value });
        world.create(500, Kind::PriorityClass, class);
    }
    for place in 0..2 {
        let members: Vec<Value> = (0..2)
            .map(|at| json!({ "type": "Node", "selector": { "exactMatch": { "name": format!("sim-node-{}", place * 2 + at) } } }))
            .collect();
        let place = json!({
            "metadata": { "name": format!("place-{place}") },
            "spec": { "tier": 1, "members": members },
        });
        world.create(500, Kind::HyperNode, place);
    }
    world.create(1_000, Kind::Queue, small_queue(random));
    for at in 0..jobs {
        let job = job(random, &format!("early-{at}"), 1);
        world.create(5_000 + at * 2_000, Kind::VcJob, job);
    }
    world.run(60_000);
    world
}

/// What was told and what then was different, where somebody thought of so many things one after the other.
struct Played {
    told: Outcome,
    is: Outcome,
    thoughts: Vec<Vec<Value>>,
}

/// Somebody's thought: which it is, and how many jobs there were before.
type Thought = fn(&mut Random, i64, i64) -> Vec<Value>;

fn played(seed: u64, latency_ms: i64, rules: Option<&str>, thoughts: i64) -> Played {
    let thoughts = usize::try_from(thoughts).expect("a small number");
    played_by(seed, latency_ms, rules, &vec![thought as Thought; thoughts])
}

fn played_by(seed: u64, latency_ms: i64, rules: Option<&str>, thoughts: &[Thought]) -> Played {
    let mut random = Random::new(seed);
    let jobs = random.between(3, 8);
    let mut world = lived(seed, latency_ms, &mut random, by_rules(seed, rules), jobs);
    let makers = || only_makers(by_rules(seed, rules));
    let mut rehearsal = listed(&mut world, makers());
    assert!(rehearsal.settle(), "seed {seed}: it comes to rest");
    let (before, stood) = (rehearsal.look(), listed(&mut world, makers()).look());
    // A gang is told anew why it waits when something happens to what it waits for, which is sooner in a
    // rehearsal: everything is new there.
    let waiting = waiting(&mut world);
    let mut had = Vec::new();
    for (at, thought) in (0..).zip(thoughts) {
        let thought = thought(&mut random, at, jobs);
        let read = |it: &Value| Change::read(it, "default").expect("a manifest");
        for change in thought.iter().map(read) {
            assert_eq!(rehearsal.change(&change), [], "seed {seed}");
            make(&mut world, &change);
        }
        had.push(thought);
        assert!(rehearsal.settle(), "seed {seed}: and again");
        world.run(60_000);
    }
    let told = rehearsal.outcome(&before);
    let is = listed(&mut world, makers()).outcome(&stood);
    let news = |mut outcome: Outcome| {
        outcome.waits.retain(|fate| !waiting.contains(&fate.name));
        without_uids(outcome)
    };
    Played {
        told: news(told),
        is: news(is),
        thoughts: had,
    }
}

/// Names of groups that are told why they wait.
fn waiting(world: &mut World) -> Vec<String> {
    let groups = world.objects(Kind::PodGroup).into_iter();
    let waiting = groups.filter(|group| {
        let conditions = group["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|it| it["type"] == "Unschedulable" && it["status"] == "True")
    });
    let names = waiting.filter_map(|group| group["metadata"]["name"].as_str().map(str::to_owned));
    names.collect()
}

/// Whatever a rehearsal says of changes is what is different in the world after they were made: who has more
/// places and where, who waits and why, who lost his place, what he is told and where he is again. No wire
/// takes time: where it does, it decides which of two that come at once is first.
#[test]
fn what_would_happen_is_what_happens() {
    let mut seen = [0; 4];
    for seed in 0..64 {
        let rules = RULES[(seed % 4) as usize];
        let changes = 1 + i64::try_from(seed / 4 % 3).expect("a small number");
        let Played { told, is, thoughts } = played(seed, 0, rules, changes);
        assert_eq!(told, is, "seed {seed}: {thoughts:?}");
        let evicted = told.gone.iter().filter(|gone| gone.why.is_some());
        let counts = [
            told.starts.len(),
            told.waits.len(),
            told.gone.len(),
            evicted.count(),
        ];
        for (seen, count) in seen.iter_mut().zip(counts) {
            *seen += usize::from(count > 0);
        }
    }
    let is_varied = seen[0] > 24 && seen[1] > 20 && seen[2] > 12 && seen[3] > 3;
    assert!(is_varied, "starts, waits, losses, evictions: {seen:?}");
}

/// A job whose second task waits for its first to be ready.
fn in_order(_: &mut Random, at: i64, _: i64) -> Vec<Value> {
    let task = |name: &str, after: Option<&str>| {
        json!({
            "name": name, "replicas": 1, "minAvailable": 1,
            "dependsOn": after.map(|after| json!({ "name": [after] })),
            "template": {
                "metadata": { "annotations": { "katmai.dev/sim-duration": "10h" } },
                "spec": { "restartPolicy": "Never", "containers": [{
                    "name": "c", "image": "i",
                    "resources": { "requests": { "cpu": "1m" } },
                }] },
            },
        })
    };
    vec![json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": { "name": format!("ordered-{at}"), "namespace": "default" },
        "spec": {
            "minAvailable": 1, "schedulerName": "volcano", "queue": "default",
            "tasks": [task("first", None), task("then", Some("first"))],
        },
    })]
}

#[test]
fn what_waits_for_a_pod_to_be_ready_starts_as_foretold() {
    let Played { told, is, .. } = played_by(3, 0, None, &[in_order]);
    assert_eq!(told, is);
    let [start] = &told.starts[..] else {
        panic!("the job starts: {told:?}");
    };
    assert_eq!((start.placed, start.pods), (2, 2), "{start:?}");
}

/// A node that drives away whom it has.
fn tainted(random: &mut Random, _: i64, _: i64) -> Vec<Value> {
    vec![json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": format!("sim-node-{}", random.between(0, 3)) },
        "spec": { "taints": [{ "key": "out", "value": "now", "effect": "NoExecute" }] },
    })]
}

#[test]
fn who_is_driven_away_by_a_taint_is_foretold() {
    let mut gone = 0;
    for seed in 200..206 {
        let Played { told, is, .. } = played_by(seed, 0, None, &[tainted]);
        assert_eq!(told, is, "seed {seed}");
        gone += told.gone.len();
    }
    assert!(gone > 3, "{gone} go");
}

/// Also where the wire takes time as many of each start, and as many go.
#[test]
fn who_starts_and_how_many_go_does_not_hang_on_the_wire() {
    let mut seen = [0; 2];
    for seed in 100..132 {
        let Played { told, is, thoughts } = played(seed, 3, None, 1);
        let starts = |outcome: &Outcome| -> Vec<(String, usize)> {
            let rows = outcome.starts.iter();
            rows.map(|fate| (fate.name.clone(), fate.nodes.values().sum()))
                .collect()
        };
        assert_eq!(starts(&told), starts(&is), "seed {seed}: {thoughts:?}");
        assert_eq!(told.gone.len(), is.gone.len(), "seed {seed}: {thoughts:?}");
        seen[0] += usize::from(!told.starts.is_empty());
        seen[1] += usize::from(!told.gone.is_empty());
    }
    assert!(seen[0] > 4 && seen[1] > 4, "starts, losses: {seen:?}");
}
