//! Questions of steps to somebody beside the API: a step asks, and the next one has the answers.

mod world;

use api::core::ConfigMap;
use api::intent::{Action, Intent, ObjectKey, Part};
use api::kind::Kind;
use controllers::{Controller, Inputs, Inquiry, Step, Whom};
use driver::{Credentials, Door};
use mirror::{Change, Mirror};
use serde_json::json;
use world::{World, settings};

/// For a ConfigMap with `asks: HOST`, asks there and writes down what of the answer counts.
const ASKER: Controller = Controller {
    name: "asker",
    component: "vc-controller-manager",
    watches: &[Kind::ConfigMap],
    keys,
    step,
};

fn keys(_: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    keys.push((*change.key).clone());
}

fn step(inputs: &Inputs<'_>) -> Step {
    let Some(map) = inputs.mirror.get::<ConfigMap>("ns", &inputs.key.name) else {
        return Step::idle();
    };
    let (Some(host), None) = (map.data.get("asks"), map.data.get("answer")) else {
        return Step::idle();
    };
    let Some(told) = inputs.heard.told(host) else {
        return Step::inquire(vec![question(host)]);
    };
    let words = match told {
        Ok(words) => words.to_owned(),
        Err(why) => format!("none: {why}, after {} failures", inputs.last.failures),
    };
    Step::write(vec![Intent {
        target: inputs.key.clone(),
        action: Action::Patch {
            uid: map.metadata.uid.clone(),
            resource_version: map.metadata.resource_version.clone(),
            part: Part::Whole,
            patch: json!({ "data": { "answer": words } }),
        },
    }])
}

fn question(host: &str) -> Inquiry {
    Inquiry {
        topic: host.to_owned(),
        whom: Whom::Server {
            address: format!("https://{host}"),
            path: "/ports".to_owned(),
            insecure_skip_verify: false,
            credentials: Some(ObjectKey::new(Kind::Secret, "ns", "password")),
        },
        within_ms: 1_000,
        bytes_max: 10,
        stands_ms: stands_ms(host),
        read: |body| match body {
            b"" => Err("it says nothing".to_owned()),
            _ => Ok(format!("{} bytes", body.len())),
        },
    }
}

/// The answer of a host whose name begins with `stands` stands for a minute.
fn stands_ms(host: &str) -> i64 {
    match host.starts_with("stands") {
        true => 60_000,
        false => 0,
    }
}

fn world() -> World {
    let mut world = World::new(settings(&[ASKER]));
    world.settle();
    world.asked();
    world
}

fn answer(world: &World, name: &str) -> String {
    let answer = &world.object(Kind::ConfigMap, name)["data"]["answer"];
    answer.as_str().unwrap_or("none").to_owned()
}

#[test]
fn who_asks_is_stepped_again_with_what_counts_of_the_answer() {
    let mut world = world();
    world.teller = Some(Box::new(|ask| {
        let Door::Address {
            address,
            credentials,
            ..
        } = &ask.door
        else {
            panic!("a server is asked");
        };
        assert_eq!(*address, format!("https://{}", ask.topic.0));
        assert_eq!((ask.call.method, &*ask.call.target), ("GET", "/ports"));
        assert!(matches!(credentials, Some(Credentials::Secret(key)) if &*key.name == "password"));
        Some(match &*ask.topic.0 {
            "away" => Err("nobody is there".to_owned()),
            "silent" => Ok(Vec::new()),
            _ => Ok(b"1234".to_vec()),
        })
    }));
    for name in ["here", "away", "silent"] {
        world.put(name, json!({ "asks": name }));
    }
    world.settle();
    assert_eq!(answer(&world, "here"), "4 bytes");
    // That nobody answers is an answer, and no failure of the step.
    assert_eq!(
        answer(&world, "away"),
        "none: nobody is there, after 0 failures"
    );
    assert_eq!(
        answer(&world, "silent"),
        "none: it says nothing, after 0 failures"
    );
    assert!(world.driver.is_quiet());
    assert_eq!(world.driver.metrics().asks, 3);
}

#[test]
fn nothing_is_decided_while_a_question_is_open_and_no_answer_counts_twice() {
    let mut world = world();
    world.put("a", json!({ "asks": "slow" }));
    world.deliver();
    let (id, _) = world.driver.poll_request(world.now).expect("a question");
    world.put("a", json!({ "asks": "slow", "again": "yes" }));
    world.settle();
    assert_eq!(world.writes(), [""; 0]);
    assert!(!world.driver.is_quiet());
    world
        .driver
        .handle_answer(id, Ok(b"12".to_vec()), world.now);
    world
        .driver
        .handle_answer(id, Ok(b"123".to_vec()), world.now);
    world.settle();
    assert_eq!(answer(&world, "a"), "2 bytes");
    assert!(world.driver.is_quiet());
}

#[test]
fn an_answer_that_stands_is_not_asked_for_again_before_its_time() {
    let mut world = world();
    world.teller = Some(Box::new(|_| Some(Ok(b"1234".to_vec()))));
    let asks = |world: &World| world.driver.metrics().asks;
    world.put("a", json!({ "asks": "stands" }));
    world.settle();
    assert_eq!(
        (answer(&world, "a"), asks(&world)),
        ("4 bytes".to_owned(), 1)
    );
    // What was written is taken away: the step is made again, and knows still.
    world.pass_ms(59_000);
    world.put("a", json!({ "asks": "stands" }));
    world.settle();
    assert_eq!(
        (answer(&world, "a"), asks(&world)),
        ("4 bytes".to_owned(), 1)
    );
    world.pass_ms(1_001);
    world.put("a", json!({ "asks": "stands" }));
    world.settle();
    assert_eq!(
        (answer(&world, "a"), asks(&world)),
        ("4 bytes".to_owned(), 2)
    );
    // It is the answer of one key.
    world.put("b", json!({ "asks": "stands" }));
    world.settle();
    assert_eq!(
        (answer(&world, "b"), asks(&world)),
        ("4 bytes".to_owned(), 3)
    );
}
