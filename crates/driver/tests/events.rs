//! Who is told what: one event for a gang, or one for each of its pods where that is wished.

mod world;

use api::kind::Kind;
use driver::{ElectionSettings, EngineSettings};
use engine::{Engine, Settings};
use mirror::Events;
use serde_json::{Value, json};
use world::{Lost, World, refusal, settings};

fn plane(events: Events, actions: &[&str]) -> World {
    plane_of(placing(events, actions))
}

fn placing(events: Events, actions: &[&str]) -> driver::Settings {
    let mut rules = Settings::default();
    rules.placement.actions = actions.iter().map(|name| (*name).to_owned()).collect();
    let (engine, _) = Engine::new(rules).expect("the actions are known");
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings {
        events,
        ..EngineSettings::new(engine)
    });
    settings
}

fn plane_of(settings: driver::Settings) -> World {
    let mut world = World::new(settings);
    let node =
        json!({ "status": { "allocatable": { "cpu": "2", "memory": "8Gi", "pods": "110" } } });
    world.put_object(Kind::Node, "node-1", &node);
    world.put_queues();
    world
}

const PLAIN: &[&str] = &["enqueue", "allocate", "backfill"];
const PREEMPTING: &[&str] = &["enqueue", "allocate", "backfill", "preempt"];

fn gang(world: &mut World, name: &str, class: &str, tasks: u32) {
    gang_in(world, "ns", name, (class, tasks));
}

fn gang_in(world: &mut World, namespace: &str, name: &str, (class, tasks): (&str, u32)) {
    let group = json!({
        "metadata": { "namespace": namespace },
        "spec": { "minMember": tasks, "queue": "default", "priorityClassName": class },
        "status": { "phase": "Inqueue" },
    });
    world.put_object(Kind::PodGroup, name, &group);
    for index in 0..tasks {
        let pod = json!({
            "metadata": {
                "namespace": namespace,
                "annotations": { "scheduling.k8s.io/group-name": name },
            },
            "spec": {
                "schedulerName": "volcano",
                "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1" } } }],
            },
            "status": { "phase": "Pending" },
        });
        world.put_object(Kind::Pod, &format!("{name}-{index}"), &pod);
    }
}

fn of_pods(world: &World) -> Vec<String> {
    let events = world.events().into_iter();
    events.filter(|it| it.starts_with("Pod ")).collect()
}

#[test]
fn pods_of_a_gang_are_told_each_only_where_that_is_wished() {
    let mut world = plane(Events::PerGang, PLAIN);
    gang(&mut world, "g", "", 2);
    world.pass_ms(2_000);
    assert_eq!(of_pods(&world), Vec::<String>::new());

    let mut world = plane(Events::PerPod, PLAIN);
    gang(&mut world, "g", "", 2);
    world.pass_ms(2_000);
    assert_eq!(
        of_pods(&world),
        [
            "Pod Normal Scheduled: Successfully assigned ns/g-0 to node-1",
            "Pod Normal Scheduled: Successfully assigned ns/g-1 to node-1",
        ]
    );
}

#[test]
fn a_pod_that_finds_no_node_is_told_once() {
    let mut world = plane(Events::PerPod, PLAIN);
    gang(&mut world, "g", "", 3);
    world.pass_ms(2_000);
    let told = of_pods(&world);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(
        told[0].starts_with("Pod Warning FailedScheduling: "),
        "{}",
        told[0]
    );
    world.pass_ms(3_600_000);
    assert_eq!(of_pods(&world), told, "nothing has changed");
}

#[test]
fn a_pod_whose_node_is_refused_says_why_and_one_that_lost_a_race_does_not() {
    for (code, reason, is_told) in [(403, "Forbidden", true), (409, "Conflict", false)] {
        let mut world = plane(Events::PerGang, PLAIN);
        world.pass_ms(100);
        gang(&mut world, "g", "", 1);
        world.refusals.push_back(refusal(code, reason));
        world.pass_ms(10);
        let shown = &world.object(Kind::Pod, "g-0")["status"]["conditions"];
        let shown = shown.as_array().and_then(|all| all.first()).cloned();
        let shown = shown.unwrap_or(Value::Null);
        if is_told {
            assert_eq!(shown["reason"], "SchedulerError");
            let message = format!("failed to bind to node node-1: the test says {code}");
            assert_eq!(shown["message"], message.as_str());
        } else {
            assert_eq!(shown, Value::Null);
        }
        world.pass_ms(10_000);
        let node = &world.object(Kind::Pod, "g-0")["spec"]["nodeName"];
        assert_eq!(node, "node-1", "it is tried again");
    }
}

/// Two tasks that run, and a gang of higher priority in this namespace that needs the room of both.
fn room_is_wanted(namespace: &str) -> World {
    room_is_wanted_in(plane(Events::PerGang, PREEMPTING), namespace)
}

fn room_is_wanted_in(mut world: World, namespace: &str) -> World {
    for (name, value) in [("low", 1), ("high", 1_000)] {
        world.put_object(Kind::PriorityClass, name, &json!({ "value": value }));
    }
    // One at a time is enough for it, so that it may lose the other.
    let lesser = json!({ "spec": { "minMember": 0 } });
    gang(&mut world, "lesser", "low", 2);
    world.put_object(Kind::PodGroup, "lesser", &lesser);
    world.pass_ms(2_000);
    for index in 0..2 {
        let ready = json!({ "type": "Ready", "status": "True" });
        let running = json!({ "status": { "phase": "Running", "conditions": [ready] } });
        world.put_object(Kind::Pod, &format!("lesser-{index}"), &running);
    }
    gang_in(&mut world, namespace, "greater", ("high", 2));
    world
}

#[test]
fn the_group_of_victims_is_told_once_for_whom_they_go() {
    // What somebody in another namespace calls theirs is not told to everybody.
    for (namespace, whom) in [
        ("ns", "ns/greater"),
        ("elsewhere", "a gang of another namespace (queue default)"),
    ] {
        let mut world = room_is_wanted(namespace);
        world.pass_ms(2_000);
        let told: Vec<String> = world
            .events()
            .into_iter()
            .filter(|it| it.starts_with("PodGroup Normal Evict"))
            .collect();
        let text = format!("2 pods are evicted for {whom}, because of preempt");
        assert_eq!(told, [format!("PodGroup Normal Evict: {text}")]);
    }
}

#[test]
fn a_victim_says_why_it_goes_before_it_goes() {
    let mut world = room_is_wanted("ns");
    world.is_answer_slow = true;
    world.pass_ms(100);
    for name in ["lesser-0", "lesser-1"] {
        let shown = world.object(Kind::Pod, name)["status"]["conditions"].clone();
        let shown: Vec<Value> = (shown.as_array().into_iter().flatten())
            .map(|it| json!([it["type"], it["status"], it["reason"], it["message"]]))
            .collect();
        let why = "Pod is evicted, because of preempt";
        let target = json!(["DisruptionTarget", "True", "PreemptionByScheduler", why]);
        let ready = json!(["Ready", "False", "Evict", why]);
        assert_eq!(shown, [target, ready], "{name}");
    }
    world.is_answer_slow = false;
    world.pass_ms(2_000);
    for name in ["greater-0", "greater-1"] {
        let node = &world.object(Kind::Pod, name)["spec"]["nodeName"];
        assert_eq!(node, "node-1", "{name}");
    }
}

#[test]
fn a_victim_that_cannot_be_told_goes_all_the_same() {
    let mut world = room_is_wanted("ns");
    world.log.clear();
    world.refusals.push_back(refusal(403, "Forbidden"));
    world.pass_ms(2_000);
    assert_eq!(
        world.log[0], "patch Pod lesser-1",
        "that is what was refused"
    );
    for name in ["greater-0", "greater-1"] {
        let node = &world.object(Kind::Pod, name)["spec"]["nodeName"];
        assert_eq!(node, "node-1", "{name}");
    }
}

/// S1.7: a deletion is of the pod as it was when that was decided, and sent again once there is news of it.
#[test]
fn a_victim_that_has_changed_goes_as_it_is_then() {
    let mut world = room_is_wanted("ns");
    world.is_answer_slow = true;
    world.pass_ms(100);
    world.log.clear();
    let conflicts = [(); 2].map(|()| refusal(409, "Conflict"));
    world.refusals_of.insert(Kind::Pod, conflicts.into());
    world.is_answer_slow = false;
    world.is_watch_slow = true;
    let deletions = |world: &World| {
        let of_pods = world.log.iter().filter(|it| it.starts_with("delete Pod"));
        of_pods.cloned().collect::<Vec<String>>()
    };
    // The marks were heard of before.
    world.deliver();
    world.settle();
    let once = ["delete Pod lesser-1", "delete Pod lesser-0"];
    assert_eq!(
        deletions(&world),
        once,
        "nothing is known that would change it"
    );
    world.is_watch_slow = false;
    world.settle();
    assert_eq!(deletions(&world), [once, once].concat(), "at once");
    world.pass_ms(2_000);
    for name in ["greater-0", "greater-1"] {
        let node = &world.object(Kind::Pod, name)["spec"]["nodeName"];
        assert_eq!(node, "node-1", "{name}");
    }
}

/// A scheduler that holds its lease, has decided to evict two pods, and has written so much of that: first it
/// tells each of them why, then it deletes each.
fn evicting(written: usize) -> World {
    let mut settings = placing(Events::PerGang, PREEMPTING);
    settings.election = Some(ElectionSettings::new("ns", "volcano", "me"));
    let mut world = room_is_wanted_in(plane_of(settings), "ns");
    world.log.clear();
    for _ in 0..1_000 {
        if written_to_victims(&world).len() == written {
            return world;
        }
        if !(world.perform_next() || world.deliver() || world.answer()) {
            let wake = world.driver.poll_wake().expect("there is more to do");
            world.now = world.now.max(wake);
            world.driver.handle_time(world.now);
        }
    }
    panic!("it evicts nobody");
}

fn written_to_victims(world: &World) -> Vec<&str> {
    let log = world.log.iter().map(String::as_str);
    log.filter(|it| it.contains(" Pod lesser")).collect()
}

/// Somebody else takes the lease while the scheduler stands still for so long.
fn lose_the_lease(world: &mut World, pause_ms: i64) {
    let mut lease = world.object(Kind::Lease, "volcano").clone();
    lease["spec"]["holderIdentity"] = json!("other");
    world.put_object(Kind::Lease, "volcano", &lease);
    world.now = world.now.plus_ms(pause_ms);
    while world.answer() || world.perform_next() || world.deliver() {}
}

/// S1.7: what is not written of an eviction when the lease is lost is not written after it, be it lost by the next
/// renewal or by a minute's pause.
#[test]
fn s1_7_who_loses_its_lease_writes_no_eviction_that_it_had_decided() {
    let evicted = [
        "patch Pod lesser-1",
        "patch Pod lesser-0",
        "delete Pod lesser-1",
        "delete Pod lesser-0",
    ];
    for (written, pause_ms) in [
        (1, 2_000),
        (1, 60_000),
        (2, 2_000),
        (2, 60_000),
        (3, 2_000),
        (3, 60_000),
    ] {
        let mut world = evicting(written);
        lose_the_lease(&mut world, pause_ms);
        world.pass_ms(10_000);
        assert!(!world.driver.may_write(world.now), "{written} {pause_ms}");
        assert_eq!(written_to_victims(&world), evicted[..written], "{pause_ms}");

        // Nobody wants the room any more. Who leads again after the other's silence decides on that.
        for pod in ["greater-0", "greater-1"] {
            world.delete_object(Kind::Pod, pod);
        }
        world.pass_ms(20_000);
        assert!(world.driver.may_write(world.now), "{written} {pause_ms}");
        assert_eq!(written_to_victims(&world), evicted[..written], "{pause_ms}");
    }
}

/// Nobody can see of an object that has changed whether it was by the write whose answer was lost.
#[test]
fn what_a_group_should_say_is_said_though_somebody_wrote_to_it_when_the_answer_was_lost() {
    let mut world = plane(Events::PerGang, PLAIN);
    gang(&mut world, "large", "", 3);
    world.is_get_slow = true;
    world
        .lost
        .extend(std::iter::repeat_n(Lost::BeforeCommit, 100));
    world.pass_ms(5_000);
    assert!(world.object(Kind::PodGroup, "large")["status"]["conditions"].is_null());
    let mut changed = world.object(Kind::PodGroup, "large").clone();
    changed["metadata"]["annotations"] = json!({ "somebody": "else" });
    world.put_object(Kind::PodGroup, "large", &changed);
    world.lost.clear();
    world.is_get_slow = false;
    world.answer_gets();
    world.pass_ms(60_000);
    let group = world.object(Kind::PodGroup, "large");
    assert!(group["status"]["conditions"].is_array(), "{group}");
    assert!(world.driver.is_quiet());
}

#[test]
fn pods_beyond_the_minimum_of_a_gang_that_find_no_node_are_told_together() {
    let mut world = plane(Events::PerGang, PLAIN);
    gang(&mut world, "g", "", 4);
    let lesser = json!({ "spec": { "minMember": 1 } });
    world.put_object(Kind::PodGroup, "g", &lesser);
    world.pass_ms(5_000);
    let told = |world: &World| -> Vec<String> {
        let told = world.events().into_iter();
        told.filter(|it| it.contains("FailedScheduling")).collect()
    };
    assert_eq!(
        told(&world),
        [
            "PodGroup Warning FailedScheduling: tasks beyond the minimum wait: 2 of 4 tasks fit: \
             g-2 needs 1 cpu, node-1 has 0 left"
        ]
    );
    world.pass_ms(600_000);
    assert_eq!(told(&world).len(), 1, "nothing has changed");
}
