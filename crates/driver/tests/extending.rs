//! An extender: what it is asked in which words, what becomes of its answers, also of wrong ones and of
//! none, and that a log of it plays again.

mod world;

use api::kind::Kind;
use serde_json::{Value, json};
use world::planes::{self, asks, hears, node_of, plane, says};
use world::segments::all_played;
use world::{Teller, World};

const CONF: &str = "
actions: \"enqueue, allocate, backfill\"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - name: predicates
  - name: extender
    arguments:
      extender.urlPrefix: http://extender:8713/v1
      extender.httpTimeout: 2s
      extender.predicateVerb: predicate
";

/// A pod that wants a core.
fn pod(world: &mut World, name: &str) {
    planes::pod(world, name, 1, None);
}

/// What is said of a PodGroup that waits.
fn why(world: &World, group: &str) -> String {
    let conditions = &world.object(Kind::PodGroup, group)["status"]["conditions"];
    let last = conditions.as_array().and_then(|all| all.last());
    last.map_or(String::new(), |it| {
        it["message"].as_str().unwrap_or_default().to_owned()
    })
}

/// Takes tasks on this node only.
fn only(node: &'static str) -> Teller {
    says(move |topic| {
        Some(Ok(match topic.ends_with(node) {
            true => json!({}),
            false => json!({ "code": 2, "status": "too hot" }),
        }))
    })
}

#[test]
fn a_pod_goes_where_the_extender_lets_it() {
    let mut world = plane(CONF, 3);
    world.teller = Some(only("node-2"));
    pod(&mut world, "a");
    world.pass_ms(1_000);
    assert_eq!(node_of(&world, "a"), "node-2");
    assert_eq!(
        asks(&mut world),
        [
            "ask extender predicate ns/a node-1",
            "ask extender predicate ns/a node-2",
            "ask extender predicate ns/a node-3"
        ]
    );
    // Another one of the shape is answered for already.
    pod(&mut world, "b");
    world.pass_ms(1_000);
    assert_eq!(node_of(&world, "b"), "node-2");
    assert_eq!(asks(&mut world), [""; 0]);
}

#[test]
fn questions_have_upstreams_words() {
    let mut world = plane(CONF, 1);
    let heard = hears(&mut world);
    pod(&mut world, "a");
    world.settle();
    let asked = heard.borrow();
    let [ask] = &asked[..] else {
        panic!("one question is asked: {asked:?}");
    };
    assert_eq!((ask.call.method, &*ask.call.target), ("POST", "/predicate"));
    assert_eq!((ask.within_ms, ask.bytes_max), (2_000, 10 << 20));
    let body: Value = serde_json::from_slice(&ask.call.body).expect("it is JSON");
    let (task, node) = (&body["task"], &body["node"]);
    let said = json!({
        "UID": task["UID"], "Job": task["Job"], "Name": task["Name"], "Status": task["Status"],
        "MilliCPU": task["Resreq"]["MilliCPU"], "Pod": task["Pod"]["metadata"]["name"],
    });
    let wanted = json!({
        "UID": "uid-a", "Job": "ns/a", "Name": "a", "Status": 1, "MilliCPU": 1000, "Pod": "a",
    });
    assert_eq!(said, wanted);
    assert_eq!(node["Name"], "node-1");
    assert_eq!(node["Idle"]["MilliCPU"], 4000);
    assert_eq!(node["Node"]["metadata"]["name"], "node-1");
}

#[test]
fn what_a_pod_claims_of_devices_is_told_by_class() {
    let verb = "jobEnqueueableVerb: enqueueable";
    let mut world = plane(&CONF.replace("predicateVerb: predicate", verb), 1);
    let heard = hears(&mut world);
    world.put_object(Kind::DeviceClass, "gpu", &json!({ "spec": {} }));
    let of = |class: &str, count: u32, memory: &str| {
        let capacity = json!({ "requests": { "memory": memory } });
        json!({ "deviceClassName": class, "count": count, "capacity": capacity })
    };
    let nic = json!({ "deviceClassName": "nic" });
    for (name, ways) in [
        ("c1", vec![of("gpu", 2, "20Gi"), nic]),
        ("c2", vec![of("gpu", 1, "500m")]),
    ] {
        let named = ways.into_iter().zip(["a", "b"]);
        let requests = named.map(|(way, name)| json!({ "name": name, "exactly": way }));
        let requests: Vec<Value> = requests.collect();
        let claim = json!({ "spec": { "devices": { "requests": requests } } });
        world.put_object(Kind::ResourceClaim, name, &claim);
    }
    pod(&mut world, "a");
    let claims = [("x", "c2"), ("y", "c1"), ("z", "not-there")];
    let claims = claims.map(|(name, claim)| json!({ "name": name, "resourceClaimName": claim }));
    world.put_object(
        Kind::Pod,
        "a",
        &json!({ "spec": { "resourceClaims": claims } }),
    );
    pod(&mut world, "b");
    world.settle();
    let asked = heard.borrow();
    let told = |name: &str| {
        let bodies = asked
            .iter()
            .map(|ask| serde_json::from_slice(&ask.call.body));
        let bodies = bodies.map(|body: Result<Value, _>| body.expect("it is JSON"));
        let uid = format!("uid-{name}");
        let mut tasks = bodies.map(|body| body["job"]["Tasks"][&uid].clone());
        let task = tasks
            .find(Value::is_object)
            .expect("its gang was asked for");
        let fields = ["DRAResreq", "ResourceClaimKeys", "LastTransaction"];
        json!(fields.map(|field| task[field].clone()))
    };
    // 2 · 20 Gi and half a byte.
    let gpu = json!({ "Count": 3, "Capacity": { "memory": "42949672960500m" } });
    let classes = json!({ "gpu": gpu, "nic": { "Count": 1, "Capacity": {} } });
    assert_eq!(told("a"), json!([classes, ["ns/c1", "ns/c2"], null]));
    assert_eq!(told("b"), json!([null, null, null]));
}

#[test]
fn what_a_pod_says_of_numa_nodes_is_told_if_it_can_be_understood() {
    for (decision, told) in [
        (
            r#"{"numa":{"0":{"cpu":"2"}}}"#,
            json!({ "0": { "cpu": "2" } }),
        ),
        (r#"{"numa":[]}"#, json!({})),
        ("[1]", json!({})),
        ("{", json!({})),
    ] {
        let mut world = plane(CONF, 1);
        let heard = hears(&mut world);
        pod(&mut world, "a");
        let annotations = json!({
            "volcano.sh/numa-topology-policy": "restricted",
            "volcano.sh/topology-decision": decision,
        });
        let pod = json!({ "metadata": { "annotations": annotations } });
        world.put_object(Kind::Pod, "a", &pod);
        world.settle();
        let asked = heard.borrow();
        let body: Value = serde_json::from_slice(&asked[0].call.body).expect("it is JSON");
        let wanted = json!({ "Policy": "restricted", "ResMap": told });
        assert_eq!(body["task"]["NumaInfo"], wanted, "{decision}");
    }
}

#[test]
fn who_errs_refuses_and_the_reason_says_who_and_why() {
    let mut world = plane(CONF, 2);
    world.teller = Some(says(|_| Some(Err("it answered 503".to_owned()))));
    pod(&mut world, "a");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "a"), Value::Null);
    let why = why(&world, "a");
    assert!(
        why.contains("refused by the extender (predicate: it answered 503)"),
        "{why}"
    );
    assert_eq!(world.driver.metrics().asks_failed, 2);
    // Not before the failure counts no more it is asked again, and then it is well.
    assert_eq!(asks(&mut world).len(), 2);
    world.teller = Some(only("node-1"));
    world.pass_ms(4_000);
    assert_eq!(node_of(&world, "a"), "node-1");
}

#[test]
fn errors_that_may_be_ignored_are() {
    let conf = CONF.replace(
        "predicateVerb",
        "ignorable: true\n      extender.predicateVerb",
    );
    let mut world = plane(&conf, 1);
    world.teller = Some(says(|_| Some(Ok(json!(["no", "object"])))));
    pod(&mut world, "a");
    world.pass_ms(1_000);
    assert_eq!(node_of(&world, "a"), "node-1");
    assert_eq!(world.driver.metrics().asks_failed, 1);
}

#[test]
fn who_never_answers_is_given_up_and_not_asked_the_rest() {
    let mut world = plane(CONF, 40);
    world.teller = Some(Box::new(|_| None));
    pod(&mut world, "a");
    world.pass_ms(1_000);
    assert_eq!(asks(&mut world).len(), 16, "so many at a time");
    // Two seconds to answer, and five for a shell that forgot to say that none came.
    world.pass_ms(6_500);
    assert_eq!(
        asks(&mut world).len(),
        0,
        "the others of the round fail with them"
    );
    assert!(
        why(&world, "a").contains("predicate: no answer came"),
        "{}",
        why(&world, "a")
    );
    // Next time it answers, and late: what comes after the end is not heard.
    world.teller = Some(only("node-7"));
    world.pass_ms(5_000);
    assert_eq!(node_of(&world, "a"), "node-7");
}

#[test]
fn who_lies_is_believed_only_where_it_can_be_meant() {
    let conf = CONF.replace("predicateVerb: predicate", "prioritizeVerb: /points");
    let mut world = plane(&conf, 3);
    world.teller = Some(says(|_| {
        let score = json!({ "node-1": 1e300, "node-2": "much", "node-3": 0.5, "node-9": 7 });
        Some(Ok(json!({ "NodeScore": score })))
    }));
    pod(&mut world, "a");
    world.pass_ms(1_000);
    assert_eq!(node_of(&world, "a"), "node-3");
    assert_eq!(world.driver.metrics().values_refused, 3);
}

#[test]
fn what_is_too_large_for_a_number_is_no_answer() {
    let conf = CONF.replace("predicateVerb: predicate", "prioritizeVerb: points");
    let mut world = plane(&conf, 1);
    for body in [
        &br#"{"nodeScore":{"node-1":1e999}}"#[..],
        b"NaN",
        b"{\"nodeScore\": NaN}",
    ] {
        world.told.push_back(Ok(body.to_vec()));
        let name = format!("p-{}", world.told.len());
        pod(&mut world, &name);
        world.pass_ms(100);
        assert_eq!(node_of(&world, &name), Value::Null);
        world.pass_ms(10_000);
    }
    assert!(world.driver.metrics().asks_failed >= 3);
}

#[test]
fn a_gang_is_let_in_by_the_extender() {
    let conf = CONF.replace(
        "predicateVerb: predicate",
        "jobEnqueueableVerb: enqueueable",
    );
    let mut world = plane(&conf, 1);
    world.teller = Some(says(|topic| {
        assert_eq!(topic, "jobEnqueueable ns/a");
        Some(Ok(json!({ "status": -1 })))
    }));
    pod(&mut world, "a");
    world.pass_ms(1_000);
    assert!(why(&world, "a").contains("the extender refuses it (jobEnqueueable)"));
    world.teller = Some(says(|_| Some(Ok(json!({ "status": 1 })))));
    world.pass_ms(6_000);
    assert_eq!(node_of(&world, "a"), "node-1");
}

#[test]
fn a_queue_takes_one_gang_an_answer() {
    let conf = CONF.replace("predicateVerb: predicate", "queueOverusedVerb: overused");
    let mut world = plane(&conf, 1);
    world.teller = Some(says(|_| Some(Ok(json!({ "overused": false })))));
    for name in ["a", "b", "c"] {
        pod(&mut world, name);
    }
    world.pass_ms(1_000);
    for name in ["a", "b", "c"] {
        assert_eq!(node_of(&world, name), "node-1");
    }
    assert_eq!(asks(&mut world), ["ask extender queueOverused default"; 3]);
}

#[test]
fn a_gang_starts_when_the_extender_calls_it_ready() {
    let conf = CONF.replace("predicateVerb: predicate", "jobReadyVerb: ready");
    let mut world = plane(&conf, 1);
    world.teller = Some(says(|topic| {
        assert_eq!(topic, "jobReady ns/a 1");
        Some(Ok(json!({ "status": true })))
    }));
    pod(&mut world, "a");
    world.pass_ms(1_000);
    assert_eq!(node_of(&world, "a"), "node-1");
}

#[test]
fn nobody_is_asked_where_the_plugin_is_not_configured() {
    let conf =
        "actions: \"enqueue, allocate\"\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]";
    let mut world = plane(conf, 2);
    pod(&mut world, "a");
    world.pass_ms(60_000);
    assert_eq!(asks(&mut world), [""; 0]);
    assert_eq!(node_of(&world, "a"), "node-1");
}

#[test]
fn a_log_plays_again_without_anybody_to_ask() {
    let verbs = "predicateVerb: p\n      extender.prioritizeVerb: s\n      \
        extender.queueOverusedVerb: o\n      extender.jobEnqueueableVerb: e\n      extender.jobReadyVerb";
    let conf = CONF.replace("predicateVerb", verbs);
    let mut world = plane(&conf, 3);
    let now = world.now;
    world.driver.record(now);
    let answer = |topic: &str| {
        let verb = topic.split(' ').next().unwrap_or_default();
        Some(match verb {
            "predicate" if topic.ends_with("1") => Ok(json!({ "code": 1, "status": "two\nlines" })),
            "predicate" | "queueOverused" => Ok(json!({})),
            "prioritize" => Ok(json!({ "nodeScore": { "node-3": 3, "node-0": 1 } })),
            "jobReady" => Ok(json!({ "status": true })),
            _ => return None,
        })
    };
    for name in ["a", "b", "c"] {
        world.teller = Some(says(answer));
        pod(&mut world, name);
        // The first question about it is given up.
        world.pass_ms(10_000);
        world.teller = Some(says(move |topic| {
            answer(topic).or(Some(Ok(json!({ "status": 0 }))))
        }));
        world.pass_ms(10_000);
        assert_eq!(node_of(&world, name), "node-3");
        let now = world.now;
        world.driver.handle_checkpoint(now);
        world.pass_ms(1_000);
    }
    all_played(&mut world);
}
