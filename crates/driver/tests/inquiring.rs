//! Questions of steps to somebody beside the API: a step asks, and the next one has the answers.

mod world;

use api::core::ConfigMap;
use api::intent::{Action, Intent, ObjectKey, Part};
use api::kind::Kind;
use api::time::Time;
use controllers::{Controller, Inputs, Inquiry, Step, Whom};
use driver::{Credentials, Door};
use mirror::{Change, Mirror};
use serde_json::json;
use world::{World, settings};

/// For a ConfigMap with `asks: HOST`, asks there and writes down what of the answer counts.
const ASKER: Controller = Controller {
    name: "asker",
    component: "vc-controller-manager",
    tells_refused: &[],
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

/// So long an answer may take.
const WITHIN_MS: i64 = 1_000;

fn server(host: &str) -> Whom {
    Whom::Server {
        address: format!("https://{host}"),
        path: "/ports".to_owned(),
        insecure_skip_verify: false,
        credentials: Some(ObjectKey::new(Kind::Secret, "ns", "password")),
    }
}

/// For a host that begins with `names`, DNS is asked.
fn question(host: &str) -> Inquiry {
    Inquiry {
        topic: host.to_owned(),
        whom: match host.strip_prefix("names ") {
            Some(name) => Whom::Names {
                name: name.to_owned(),
            },
            None => server(host),
        },
        within_ms: WITHIN_MS,
        bytes_max: 10,
        stands_ms: stands_ms(host),
        fails_ms: stands_ms(host),
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

/// ConfigMaps that ask DNS, by numbers.
fn put_askers(world: &mut World, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let asked = format!("names {number}");
        world.put(&format!("dns-{number}"), json!({ "asks": asked }));
    }
}

/// What these askers were told, where it begins so.
fn told(world: &World, numbers: std::ops::Range<usize>, begin: &str) -> usize {
    let answers = numbers.map(|number| answer(world, &format!("dns-{number}")));
    answers.filter(|it| it.starts_with(begin)).count()
}

/// Time goes on until no question waits; each that nobody answers fails when its time is over.
fn time_out(world: &mut World) {
    world.settle();
    while let Some((id, since)) = world.unanswered.pop_front() {
        world.now = world.now.max(since.plus_ms(WITHIN_MS));
        let why = format!("no answer came within {WITHIN_MS} ms");
        world.driver.handle_answer(id, Err(why), world.now);
        world.settle();
    }
}

fn since_ms(world: &World, began: Time) -> i64 {
    (world.now.micros() - began.micros()) / 1_000
}

#[test]
fn s2_3_a_dns_that_is_dead_costs_nobody_more_than_a_question_of_its_own() {
    let mut world = world();
    let began = world.now;
    put_askers(&mut world, 0..2_000);
    world.settle();
    // Nobody else waits for it.
    world.teller = Some(Box::new(|ask| match ask.door {
        Door::Names => None,
        _ => Some(Ok(b"1234".to_vec())),
    }));
    world.put("other", json!({ "asks": "here" }));
    world.settle();
    assert_eq!(answer(&world, "other"), "4 bytes");
    time_out(&mut world);
    assert_eq!(told(&world, 0..2_000, "none: no answer came"), 2_000);
    assert_eq!(since_ms(&world, began), WITHIN_MS);
    // Who comes later is told by the one question that is still tried.
    let asks = world.driver.metrics().asks;
    put_askers(&mut world, 2_000..4_000);
    time_out(&mut world);
    assert_eq!(told(&world, 2_000..4_000, "none: no answer came"), 2_000);
    assert_eq!(since_ms(&world, began), 2 * WITHIN_MS);
    assert_eq!(world.driver.metrics().asks, asks + 1);
    // Once it answers, everybody has an answer of his own.
    world.teller = Some(Box::new(|_| Some(Ok(b"1234".to_vec()))));
    put_askers(&mut world, 4_000..5_000);
    world.settle();
    assert_eq!(told(&world, 4_000..5_000, "4 bytes"), 1_000);
    assert!(world.driver.is_quiet());
}

#[test]
fn an_answer_that_is_lost_says_nothing_of_the_others() {
    let mut world = world();
    // Answers of the first two are lost; those of the others come while these wait.
    let lost = |topic: &str| matches!(topic, "names 0" | "names 1");
    world.teller = Some(Box::new(move |ask| {
        (!lost(&ask.topic.0)).then(|| Ok(b"1234".to_vec()))
    }));
    put_askers(&mut world, 0..500);
    time_out(&mut world);
    assert_eq!(told(&world, 0..500, "4 bytes"), 498);
    assert_eq!(told(&world, 0..2, "none: no answer came"), 2);
    // What is refused at once keeps nobody waiting, and is said to who asked.
    world.teller = Some(Box::new(|ask| match &*ask.topic.0 {
        "names 500" => Some(Err("nobody is there".to_owned())),
        _ => Some(Ok(b"1234".to_vec())),
    }));
    put_askers(&mut world, 500..1_000);
    world.settle();
    assert_eq!(told(&world, 500..1_000, "4 bytes"), 499);
}
