//! What an extender is told of decisions: in which order and words, and what becomes of them where it does
//! not hear, or does not want to.

mod world;

use std::cell::RefCell;
use std::rc::Rc;

use api::kind::Kind;
use driver::Ask;
use serde_json::{Value, json};
use world::planes::{self, asks, hears, node_of, plane, says};
use world::segments::all_played;
use world::{Teller, World, refusal};

const CONF: &str = "
actions: \"enqueue, allocate, backfill\"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - name: predicates
  - name: nodeorder
  - name: extender
    arguments:
      extender.urlPrefix: http://extender:8713/v1
      extender.httpTimeout: 2s
      extender.predicateVerb: predicate";

/// A pod that wants a core.
fn pod(world: &mut World, name: &str) {
    planes::pod(world, name, 1, None);
}

const TOLD: &str = "jobEnqueuedVerb: enqueued
      extender.allocateFuncVerb: allocated
      extender.deallocateFuncVerb: deallocated";

const SESSIONS: &str = "onSessionOpenVerb: open
      extender.onSessionCloseVerb: close
      extender.allocateFuncVerb: allocated";

/// Heeds all that it is told.
fn heeds() -> Teller {
    says(|_| Some(Ok(json!({}))))
}

#[test]
fn what_was_decided_is_told_one_after_the_other() {
    let mut world = plane(&CONF.replace("predicateVerb: predicate", TOLD), 2);
    world.teller = Some(heeds());
    pod(&mut world, "a");
    world.pass_ms(1_000);
    assert_eq!(node_of(&world, "a"), "node-1");
    let told = [
        "ask extender jobEnqueued ns/a",
        "ask extender allocateFunc ns/a node-1",
    ];
    assert_eq!(asks(&mut world), told);
    // Who hears nothing is told the next thing only when its time is over.
    world.teller = Some(Box::new(|_| None));
    pod(&mut world, "b");
    world.pass_ms(1_000);
    assert_eq!(asks(&mut world), ["ask extender jobEnqueued ns/b"]);
    world.pass_ms(7_000);
    assert_eq!(asks(&mut world), ["ask extender allocateFunc ns/b node-2"]);
    assert_eq!(node_of(&world, "b"), Value::Null, "its place is not taken");
    world.teller = Some(heeds());
    world.pass_ms(20_000);
    assert_eq!(node_of(&world, "b"), "node-2");
}

#[test]
fn news_have_upstreams_words() {
    let mut world = plane(&CONF.replace("predicateVerb: predicate", TOLD), 1);
    let heard = hears(&mut world);
    pod(&mut world, "a");
    world.pass_ms(20_000);
    let told = heard.borrow();
    let [enqueued, allocated, ..] = &told[..] else {
        panic!("two things are told: {told:?}");
    };
    assert_eq!(
        (&*enqueued.call.target, &*allocated.call.target),
        ("/enqueued", "/allocated")
    );
    assert_eq!(
        (allocated.call.method, allocated.within_ms),
        ("POST", 2_000)
    );
    let body = |ask: &Ask| serde_json::from_slice::<Value>(&ask.call.body).expect("it is JSON");
    assert_eq!(body(enqueued)["job"]["UID"], "ns/a");
    let task = &body(allocated)["task"];
    // Upstream's number of a task that is bound next is 8.
    assert_eq!(
        json!([
            task["UID"],
            task["NodeName"],
            task["Status"],
            task["Pod"]["metadata"]["name"]
        ]),
        json!(["uid-a", "node-1", 8, "a"])
    );
}

#[test]
fn a_place_that_is_taken_back_is_told_so() {
    let mut world = plane(&CONF.replace("predicateVerb: predicate", TOLD), 1);
    world.teller = Some(heeds());
    pod(&mut world, "a");
    let inqueue = json!({ "status": { "phase": "Inqueue" } });
    world.put_object(Kind::PodGroup, "a", &inqueue);
    let refusals = [(); 2].map(|()| refusal(409, "Conflict"));
    world.refusals.extend(refusals);
    world.pass_ms(60_000);
    assert_eq!(node_of(&world, "a"), "node-1");
    let told = [
        "ask extender allocateFunc ns/a node-1",
        "ask extender deallocateFunc ns/a node-1",
        "ask extender allocateFunc ns/a node-1",
    ];
    assert_eq!(asks(&mut world), told);
}

#[test]
fn a_victim_is_told_before_who_gets_its_room() {
    let conf = CONF.replace("predicateVerb: predicate", TOLD);
    let conf = conf.replace("enqueue, allocate, backfill", "enqueue, allocate, preempt");
    let conf = conf.replace("{name: gang}", "{name: gang, enablePreemptable: false}");
    let mut world = plane(&conf, 1);
    world.teller = Some(heeds());
    planes::pod(&mut world, "lesser", 4, Some("node-1"));
    planes::pod(&mut world, "greater", 4, None);
    let class = json!({ "value": 10 });
    world.put_object(Kind::PriorityClass, "high", &class);
    world.put_object(
        Kind::PodGroup,
        "greater",
        &json!({ "spec": { "priorityClassName": "high" } }),
    );
    world.pass_ms(1_000);
    let told = [
        "ask extender jobEnqueued ns/greater",
        "ask extender deallocateFunc ns/lesser node-1",
        "ask extender allocateFunc ns/greater node-1",
    ];
    // And then that the victim's gang waits to be made whole again.
    assert_eq!(asks(&mut world)[..3], told);
}

#[test]
fn a_session_tells_everything_before_it_is_decided() {
    let mut world = plane(&CONF.replace("predicateVerb: predicate", SESSIONS), 2);
    let bodies: Rc<RefCell<Vec<Value>>> = Rc::default();
    let seen = bodies.clone();
    world.teller = Some(Box::new(move |ask| {
        let body = serde_json::from_slice(&ask.call.body).expect("it is JSON");
        seen.borrow_mut().push(body);
        Some(Ok(b"{}".to_vec()))
    }));
    pod(&mut world, "a");
    let says = |annotations: Value| json!({ "metadata": { "annotations": annotations } });
    let group = says(json!({
        "volcano.sh/sla-waiting-time": "2s",
        "volcano.sh/revocable-zone": "*",
        "volcano.sh/jdb-min-available": "50%",
    }));
    world.put_object(Kind::PodGroup, "a", &group);
    let branch = json!({ "volcano.sh/hierarchy": "root/x", "volcano.sh/hierarchy-weights": "1/2" });
    world.put_object(Kind::Queue, "default", &says(branch));
    let holds = json!({ "status": { "capacity": { "cpu": "5", "memory": "1Ki", "x/y": "2" } } });
    world.put_object(Kind::Node, "node-1", &holds);
    world.pass_ms(10_000);
    let told = [
        "ask extender onSessionOpen",
        "ask extender allocateFunc ns/a node-1",
        "ask extender onSessionClose",
    ];
    assert_eq!(asks(&mut world)[..3], told);
    let everything = &bodies.borrow()[0];
    let task = &everything["Jobs"]["ns/a"]["Tasks"]["uid-a"];
    assert_eq!(json!([task["Status"], task["NodeName"]]), json!([1, ""]));
    assert_eq!(everything["Nodes"]["node-2"]["Idle"]["MilliCPU"], 4000);
    assert_eq!(everything["NodeList"], json!(["node-1", "node-2"]));
    assert_eq!(everything["Queues"]["default"]["Name"], "default");
    assert_eq!(everything["RevocableNodes"], json!({}));
    let gang = &everything["Jobs"]["ns/a"];
    let said = [
        &gang["WaitingTime"],
        &gang["RevocableZone"],
        &gang["Budget"],
    ];
    let budget = json!({ "MinAvailable": "50%", "MaxUnavilable": "" });
    assert_eq!(json!(said), json!([2_000_000_000_i64, "*", budget]));
    let queue = &everything["Queues"]["default"];
    assert_eq!(
        json!([queue["Hierarchy"], queue["Weights"]]),
        json!(["root/x", "1/2"])
    );
    let capacity = json!({
        "MilliCPU": 5000, "Memory": 1024, "ScalarResources": { "x/y": 2000 }, "MaxTaskNum": 0,
    });
    assert_eq!(everything["Nodes"]["node-1"]["Capacity"], capacity);
}

#[test]
fn of_a_session_that_cannot_be_opened_nothing_is_told_unless_that_may_be_ignored() {
    let conf = CONF.replace("predicateVerb: predicate", SESSIONS);
    let ignorable = format!("{conf}\n      extender.ignorable: true");
    for (conf, told) in [
        (&conf, &["onSessionOpen", "onSessionClose"][..]),
        (
            &ignorable,
            &[
                "onSessionOpen",
                "allocateFunc ns/a node-1",
                "onSessionClose",
            ][..],
        ),
    ] {
        let mut world = plane(conf, 1);
        world.teller = Some(says(|topic| {
            Some(match topic {
                "onSessionOpen" => Err("it answered 503".to_owned()),
                _ => Ok(json!({})),
            })
        }));
        pod(&mut world, "a");
        world.pass_ms(1_001);
        assert_eq!(node_of(&world, "a"), "node-1");
        let asked = asks(&mut world);
        let asked: Vec<&str> = asked
            .iter()
            .filter_map(|it| it.strip_prefix("ask extender "))
            .collect();
        assert_eq!(asked, told);
    }
}

#[test]
fn who_never_hears_is_not_told_the_rest() {
    let conf = CONF.replace("predicateVerb: predicate", TOLD);
    let conf = format!("{conf}\n      extender.ignorable: true");
    let mut world = plane(&conf, 10);
    world.teller = Some(Box::new(|_| None));
    for at in 0..20 {
        pod(&mut world, &format!("p-{at}"));
    }
    world.pass_ms(120_000);
    for at in 0..20 {
        assert_ne!(node_of(&world, &format!("p-{at}")), Value::Null);
    }
    assert_eq!(asks(&mut world).len(), 8);
    assert_eq!(
        world.driver.metrics().asks_failed,
        40,
        "what was given up counts"
    );
    // Once it hears again it is told what comes.
    world.teller = Some(heeds());
    pod(&mut world, "late");
    world.pass_ms(1_000);
    assert_eq!(asks(&mut world).len(), 2);
}

/// Takes no place of these pods.
fn refuses(names: &'static [&'static str]) -> Teller {
    says(move |topic| {
        let is_one = |name: &&str| topic.starts_with(&format!("allocateFunc ns/{name} "));
        Some(Ok(match names.iter().any(is_one) {
            true => json!({ "errorMessage": "no chip is left" }),
            false => json!({}),
        }))
    })
}

#[test]
fn a_place_that_is_not_taken_is_taken_back_and_tried_again() {
    let mut world = plane(&CONF.replace("predicateVerb: predicate", TOLD), 1);
    world.teller = Some(refuses(&["a"]));
    pod(&mut world, "a");
    world.pass_ms(1_500);
    assert_eq!(node_of(&world, "a"), Value::Null);
    let notices: Vec<String> = std::iter::from_fn(|| world.driver.poll_notice())
        .map(|it| it.text)
        .collect();
    assert_eq!(
        notices,
        ["the extender does not take allocateFunc: no chip is left"]
    );
    let condition = &world.object(Kind::Pod, "a")["status"]["conditions"][0];
    assert_eq!(condition["reason"], "SchedulerError");
    assert_eq!(
        condition["message"],
        "failed to bind to node node-1: the extender does not take allocateFunc: no chip is left"
    );
    assert_eq!(
        asks(&mut world)[..3],
        [
            "ask extender jobEnqueued ns/a",
            "ask extender allocateFunc ns/a node-1",
            "ask extender deallocateFunc ns/a node-1",
        ]
    );
    world.teller = Some(heeds());
    world.pass_ms(3_000);
    assert_eq!(node_of(&world, "a"), "node-1");
}

#[test]
fn of_a_gang_all_places_are_taken_or_none() {
    let mut world = plane(&CONF.replace("predicateVerb: predicate", TOLD), 3);
    world.teller = Some(refuses(&["g-1"]));
    let group = json!({ "spec": { "minMember": 3, "queue": "default" } });
    world.put_object(Kind::PodGroup, "g", &group);
    for name in ["g-0", "g-1", "g-2"] {
        world.put_member("g", name);
    }
    for _ in 0..50 {
        world.pass_ms(100);
        for name in ["g-0", "g-1", "g-2"] {
            assert_eq!(node_of(&world, name), Value::Null, "half a gang");
        }
    }
    world.teller = Some(heeds());
    world.pass_ms(3_000);
    for name in ["g-0", "g-1", "g-2"] {
        assert!(node_of(&world, name).is_string());
    }
}

#[test]
fn only_pods_with_what_it_manages_are_told() {
    let conf = CONF.replace("predicateVerb: predicate", TOLD);
    let conf = format!("{conf}\n      extender.managedResources: [example.com/chip]");
    let mut world = plane(&conf, 1);
    world.teller = Some(heeds());
    pod(&mut world, "a");
    world.pass_ms(1_000);
    assert_eq!(node_of(&world, "a"), "node-1");
    assert_eq!(asks(&mut world), ["ask extender jobEnqueued ns/a"]);
}

#[test]
fn a_log_of_news_plays_again() {
    let verbs =
        format!("{TOLD}\n      extender.onSessionOpenVerb: o\n      extender.predicateVerb: p");
    let mut world = plane(&CONF.replace("predicateVerb: predicate", &verbs), 3);
    let now = world.now;
    world.driver.record(now);
    for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
        world.teller = Some(says(move |topic| match (topic.split(' ').next(), at) {
            (Some("allocateFunc"), 1) => None,
            (Some("allocateFunc"), 2) => Some(Err("gone".to_owned())),
            _ => Some(Ok(json!({}))),
        }));
        pod(&mut world, name);
        world.pass_ms(10_000);
        assert_eq!(node_of(&world, name).is_string(), at == 0);
        let now = world.now;
        world.driver.handle_checkpoint(now);
        world.pass_ms(1_000);
    }
    world.teller = Some(heeds());
    world.pass_ms(30_000);
    for name in ["a", "b", "c"] {
        assert!(node_of(&world, name).is_string());
    }
    all_played(&mut world);
}
