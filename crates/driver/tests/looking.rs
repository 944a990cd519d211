//! Look-ups: a step asks, and the next one has the answer.

mod world;

use api::core::ConfigMap;
use api::intent::{Action, Intent, ObjectKey, Part};
use api::kind::Kind;
use controllers::{Controller, Inputs, Step};
use mirror::{Change, Mirror};
use serde_json::json;
use world::{World, refusal, settings};

/// For a ConfigMap with `names: NAME`, asks what is under that name, and writes down the answer.
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
    let (Some(named), None) = (map.data.get("names"), map.data.get("answer")) else {
        return Step::idle();
    };
    let key = ObjectKey::new(Kind::ConfigMap, "ns", named);
    let Some(told) = inputs.looked.told(&key) else {
        return Step::ask(vec![key.clone(), key]);
    };
    Step::write(vec![Intent {
        target: inputs.key.clone(),
        action: Action::Patch {
            uid: map.metadata.uid.clone(),
            resource_version: map.metadata.resource_version.clone(),
            part: Part::Whole,
            patch: json!({ "data": { "answer": told.unwrap_or("gone") } }),
        },
    }])
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
fn who_asks_is_stepped_again_with_the_answer() {
    let mut world = world();
    world.put("there", json!({}));
    world.put("a", json!({ "names": "there" }));
    world.put("b", json!({ "names": "nobody" }));
    world.settle();
    assert_eq!(
        world.writes(),
        ["get there", "patch a", "get nobody", "patch b"]
    );
    assert_eq!(answer(&world, "a"), "uid-1");
    assert_eq!(answer(&world, "b"), "gone");
    assert!(world.driver.is_quiet());
}

#[test]
fn keys_that_ask_for_the_same_share_one_look_up_and_are_told_in_the_order_of_asking() {
    let mut world = world();
    for name in ["b", "c", "a"] {
        world.put(name, json!({ "names": "nobody" }));
    }
    world.deliver();
    let (id, first) = world.driver.poll_request(world.now).expect("a look-up");
    assert_eq!(format!("{first:?}").matches("nobody").count(), 1);
    // One that asks while it is on its way needs another: this answer may be older than its world.
    world.put("d", json!({ "names": "nobody" }));
    world.deliver();
    world.settle();
    assert_eq!(world.writes(), ["get nobody", "patch d"]);
    world.driver.handle_got(id, Ok(None), world.now);
    world.settle();
    // Who asked first is told first, whatever the names.
    assert_eq!(world.writes(), ["patch b", "patch c", "patch a"]);
}

#[test]
fn an_answer_is_for_one_step() {
    let mut world = world();
    world.put("a", json!({ "names": "nobody" }));
    world.settle();
    world.writes();
    world.put("nobody", json!({}));
    world.put("a", json!({ "names": "nobody", "again": "yes" }));
    world.settle();
    assert_eq!(world.writes(), ["get nobody", "patch a"]);
    assert_eq!(answer(&world, "a"), "uid-3");
}

#[test]
fn a_look_up_that_fails_is_tried_again_with_back_off() {
    let mut world = world();
    world.get_refusals.extend([
        refusal(503, "ServiceUnavailable"),
        refusal(403, "Forbidden"),
    ]);
    world.put("a", json!({ "names": "nobody" }));
    world.settle();
    assert_eq!(world.writes(), ["get nobody"]);
    world.put("a", json!({ "names": "nobody", "more": "news" }));
    world.settle();
    assert_eq!(world.writes(), Vec::<String>::new());
    world.pass_ms(60_000);
    assert_eq!(world.writes(), ["get nobody", "get nobody", "patch a"]);
    assert_eq!(answer(&world, "a"), "gone");
}

/// Where the whole kind is not served nobody can say that an object of it has gone.
#[test]
fn who_is_not_served_a_kind_does_not_take_what_it_looks_up_for_gone() {
    let mut world = world();
    world
        .get_refusals
        .extend([refusal(404, ""), refusal(404, "NotFound")]);
    world.put("a", json!({ "names": "nobody" }));
    world.settle();
    assert_eq!(world.writes(), ["get nobody"]);
    world.pass_ms(60_000);
    assert_eq!(world.writes(), ["get nobody", "patch a"]);
    assert_eq!(answer(&world, "a"), "gone");
}

/// An answer is no success: a write that is refused each time backs off further each time.
#[test]
fn answers_leave_the_failure_counter_as_it_is() {
    let mut world = world();
    let refusals = std::iter::repeat_with(|| refusal(403, "Forbidden"));
    world.refusals.extend(refusals.take(100));
    world.put("a", json!({ "names": "nobody" }));
    world.pass_ms(60_000);
    let tries = world.writes().len() / 2;
    assert!((3..20).contains(&tries), "{tries}");
}
