//! Steps and their writes: read-your-writes, lost answers, conflicts, blocking, back-off, budgets.

mod world;

use api::core::ConfigMap;
use api::intent::{Action, Intent, ObjectKey, Part, Propagation};
use api::kind::Kind;
use controllers::{Controller, Inputs, Outcome, Step};
use mirror::{Change, Mirror};
use serde_json::json;
use world::{Lost, World, refusal, settings};

/// For a ConfigMap with `want: N`, makes the missing ones of `<name>-0` … one after the other,
/// deletes what `gone` names, waits for what `waits` names, marks itself with `mark`, and with `tells`
/// says in Events what it has made.
const MAKER: Controller = Controller {
    name: "maker",
    component: "vc-controller-manager",
    tells_refused: &[],
    watches: &[Kind::ConfigMap],
    keys,
    step,
};

fn keys(_: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    let name = change.key.name.split('-').next().unwrap_or_default();
    keys.push(ObjectKey::new(Kind::ConfigMap, "ns", name));
}

fn step(inputs: &Inputs<'_>) -> Step {
    let name = &inputs.key.name;
    let Some(map) = inputs.mirror.get::<ConfigMap>("ns", name) else {
        return Step::idle();
    };
    let text = |field: &str| map.data.get(field).map(|text| text.to_string());
    if let Some(waits) = text("waits")
        && inputs.mirror.get::<ConfigMap>("ns", &waits).is_none()
    {
        let key = ObjectKey::new(Kind::ConfigMap, "ns", &waits);
        return Step::blocked("Missing", vec![key]);
    }
    if map.data.contains_key("fails") {
        return Step {
            outcome: Outcome::Retry {
                reason: "it fails".into(),
            },
            ..Step::idle()
        };
    }
    let gone = text("gone");
    let gone = gone.and_then(|gone| inputs.mirror.get::<ConfigMap>("ns", &gone));
    if let Some(gone) = gone {
        let gone = &gone.metadata;
        return Step::write(vec![Intent {
            target: ObjectKey::new(Kind::ConfigMap, "ns", &gone.name),
            action: Action::Delete {
                uid: gone.uid.clone(),
                resource_version: Some(gone.resource_version.clone()),
                grace_seconds: None,
                propagation: Propagation::Background,
            },
        }]);
    }
    let wanted: usize = text("want").and_then(|text| text.parse().ok()).unwrap_or(0);
    let missing: Vec<Intent> = (0..wanted)
        .map(|at| format!("{name}-{at}"))
        .filter(|child| inputs.mirror.get::<ConfigMap>("ns", child).is_none())
        .map(|child| create(&child, &map.metadata.uid))
        .collect();
    let is_staged = map.data.contains_key("staged");
    if !missing.is_empty() {
        let pace = inputs.last.pace.map_or(100, |pace| pace as usize);
        let count = if is_staged { 1 } else { pace };
        let mut intents: Vec<Intent> = missing.into_iter().take(count).collect();
        if map.data.contains_key("tells") {
            let notes: Vec<Intent> = intents.iter().map(|made| tell(&made.target.name)).collect();
            intents.extend(notes);
        }
        let every = text("every").and_then(|ms| ms.parse().ok());
        return Step::write(intents).or_wake_at(every.map(|ms| inputs.now.plus_ms(ms)));
    }
    if let Some(mark) = text("mark")
        && text("marked") != Some(mark.clone())
    {
        return Step::write(vec![Intent {
            target: inputs.key.clone(),
            action: Action::Patch {
                uid: map.metadata.uid.clone(),
                resource_version: map.metadata.resource_version.clone(),
                part: Part::Whole,
                patch: json!({ "data": { "marked": mark } }),
            },
        }]);
    }
    Step::idle()
}

fn create(name: &str, owner: &str) -> Intent {
    Intent {
        target: ObjectKey::new(Kind::ConfigMap, "ns", name),
        action: Action::Create {
            body: json!({ "metadata": {
                "name": name,
                "namespace": "ns",
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner,
                    "controller": true,
                }],
            }}),
        },
    }
}

fn tell(name: &str) -> Intent {
    Intent {
        target: ObjectKey::new(Kind::Event, "ns", &format!("{name}.1")),
        action: Action::Create {
            body: json!({
                "metadata": { "name": format!("{name}.1"), "namespace": "ns" },
                "involvedObject": { "kind": "ConfigMap" },
                "type": "Normal",
                "reason": "SuccessfulCreate",
                "message": format!("Created map: {name}"),
            }),
        },
    }
}

fn world() -> World {
    let mut world = World::new(settings(&[MAKER]));
    world.settle();
    world.asked();
    world
}

fn steps(world: &World) -> u64 {
    world.driver.metrics().controllers["maker"].steps
}

#[test]
fn a_key_is_not_stepped_while_its_last_write_is_unseen() {
    let mut world = world();
    world.put("a", json!({ "want": "2", "staged": "yes" }));
    world.is_watch_slow = true;
    world.deliver();
    world.settle();
    assert_eq!(world.writes(), ["create a-0"]);
    // Accepted, answered, and other events come: still nothing, for the mirror shows no a-0.
    let before = steps(&world);
    world.pass_ms(10_000);
    assert_eq!((world.writes(), steps(&world)), (vec![], before));
    world.deliver();
    world.settle();
    assert_eq!(world.writes(), ["create a-1"]);
}

/// I20: whoever made something that never shows would make it again and again.
#[test]
fn what_a_lost_line_hides_is_listed_again_and_not_made_for_ever() {
    let mut world = world();
    world.put("a", json!({ "want": "1" }));
    world.is_watch_slow = true;
    world.deliver();
    world.settle();
    assert_eq!(world.writes(), ["create a-0"]);
    world.lose();
    world.is_watch_slow = false;
    world.put("b", json!({}));
    world.settle();
    world.pass_ms(60_000);
    let tries = world.writes().len();
    assert!((1..12).contains(&tries), "{tries} tries");
    let mirror = world.driver.mirror();
    assert!(mirror.get::<ConfigMap>("ns", "a-0").is_some());
}

/// I10: the end of an object that is told of before its beginning would leave it there for ever.
#[test]
fn a_line_that_comes_out_of_order_makes_its_kind_be_listed_again() {
    let mut world = world();
    world.settle();
    world.is_watch_slow = true;
    world.put("a", json!({}));
    world.delete("a");
    world.deliver_backwards();
    world.is_watch_slow = false;
    world.asked();
    world.pass_ms(60_000);
    assert!(world.asked().contains(&"list configmaps".to_owned()));
    let mirror = world.driver.mirror();
    assert!(mirror.get::<ConfigMap>("ns", "a").is_none());
}

#[test]
fn a_clock_that_was_set_back_makes_nobody_wait_for_as_long() {
    let mut world = world();
    world.put("a", json!({ "fails": "" }));
    world.settle();
    world.close_watch(Some(refusal(500, "InternalError")));
    assert!(world.watch().is_none());
    world.now = world.now.plus_ms(-600_000);
    world.driver.handle_leap(world.now);
    world.settle();
    assert!(world.watch().is_some(), "it is opened again at once");
    let wake = world.driver.poll_wake().expect("it fails again");
    assert!(wake < world.now.plus_ms(60_000), "{wake:?}");
}

#[test]
fn only_what_was_done_is_told() {
    let mut world = world();
    world.refusals.push_back(refusal(403, "Forbidden"));
    world.put("a", json!({ "want": "2", "tells": "yes" }));
    world.settle();
    let told = "ConfigMap Normal SuccessfulCreate: Created map: ";
    let events = world.events();
    let told = |name: &str| events.contains(&format!("{told}{name}"));
    assert_eq!((told("a-0"), told("a-1")), (false, true), "{events:?}");
}

#[test]
fn s0_12_an_event_that_comes_before_the_answer_makes_no_second_child() {
    let mut world = world();
    world.put("a", json!({ "want": "1" }));
    world.is_answer_slow = true;
    world.settle();
    world.put("a", json!({ "want": "1", "x": "y" }));
    world.pass_ms(1_000);
    assert_eq!(world.writes(), ["create a-0"]);
    world.answer();
    world.pass_ms(1_000);
    assert_eq!(world.writes(), Vec::<String>::new());
    assert!(world.driver.is_quiet());
}

#[test]
fn a_lost_answer_is_read_back_and_the_write_is_not_repeated() {
    let mut world = world();
    world.lost.push_back(Lost::AfterCommit);
    world.put("a", json!({ "want": "1" }));
    world.settle();
    assert_eq!(world.writes(), ["create a-0", "get a-0"]);
    assert!(world.driver.is_quiet());
    assert_eq!(world.driver.metrics().writes_unknown, 1);
}

#[test]
fn a_write_that_was_lost_on_its_way_is_tried_again_after_it_was_read_back() {
    let mut world = world();
    world.lost.push_back(Lost::BeforeCommit);
    world.put("a", json!({ "want": "1" }));
    world.settle();
    assert_eq!(world.writes(), ["create a-0", "get a-0"]);
    assert!(!world.exists("a-0"));
    world.pass_ms(5);
    assert_eq!(world.writes(), ["create a-0"]);
    assert!(world.exists("a-0"));
}

#[test]
fn already_existing_under_the_same_controller_is_success_and_under_another_a_failure() {
    let mut world = world();
    world.is_watch_slow = true;
    world.put("a", json!({ "want": "1" }));
    world.deliver();
    world.put("a-0", json!({}));
    world.settle();
    assert_eq!(world.writes(), ["create a-0", "get a-0"]);
    assert_eq!(
        world.driver.metrics().controllers["maker"].write_failures,
        1
    );
}

#[test]
fn a_conflict_is_only_a_newer_event() {
    let mut world = world();
    world.put("a", json!({ "mark": "1" }));
    world.settle();
    assert_eq!(world.writes(), ["patch a"]);
    world.is_watch_slow = true;
    world.put("a", json!({ "mark": "2" }));
    world.deliver();
    world.put("a", json!({ "mark": "3" }));
    world.settle();
    assert_eq!(world.writes(), ["patch a"], "refused: somebody was faster");
    world.deliver();
    world.settle();
    assert_eq!(
        world.writes(),
        ["patch a"],
        "decided anew on the newer state, at once"
    );
    world.deliver();
    world.settle();
    assert!(world.driver.is_quiet());
}

/// A webhook may set a field back, a schema may not know it.
#[test]
fn a_patch_that_changes_nothing_is_not_made_again_and_again() {
    let mut world = world();
    world.is_taking_back = true;
    world.put("a", json!({ "mark": "1" }));
    world.settle();
    assert_eq!(world.writes(), ["patch a"]);
    world.pass_ms(10_000);
    let tries = world.writes().len();
    assert!((5..15).contains(&tries), "{tries} tries");
    // It hears at once of what may have lifted it.
    world.is_taking_back = false;
    world.put("a", json!({ "mark": "2" }));
    world.settle();
    assert_eq!(world.writes(), ["patch a"]);
    assert!(world.driver.is_quiet());
}

/// A finalizer may keep it for ever.
#[test]
fn what_is_on_its_way_out_is_not_deleted_again_and_again() {
    let mut world = world();
    let held = json!({ "metadata": { "finalizers": ["mine.example.com/x"] } });
    world.put_object(Kind::ConfigMap, "a-held", &held);
    world.put("a", json!({ "gone": "a-held" }));
    world.settle();
    world.writes();
    world.pass_ms(10_000);
    let tries = world.writes().len();
    assert!((5..15).contains(&tries), "{tries} tries");
    world.delete("a-held");
    world.settle();
    world.put("a", json!({ "want": "1" }));
    world.settle();
    assert_eq!(
        world.writes(),
        ["create a-0"],
        "it hears at once that it may go on"
    );
    assert!(world.driver.is_quiet());
}

#[test]
fn s0_3_a_blocked_key_costs_nothing_and_s0_4_the_event_it_waits_for_wakes_it() {
    let mut world = world();
    world.put("a", json!({ "want": "1", "waits": "claim" }));
    world.settle();
    let before = steps(&world);
    world.pass_ms(3_600_000);
    assert_eq!(world.writes(), Vec::<String>::new());
    assert_eq!(steps(&world), before, "it is not even looked at");
    world.put("claim", json!({}));
    world.settle();
    assert_eq!(world.writes(), ["create a-0"]);
}

#[test]
fn s0_10_a_failing_key_backs_off_by_doubling_and_events_do_not_hurry_it() {
    let mut world = world();
    world.put("a", json!({ "fails": "yes" }));
    world.settle();
    assert_eq!(steps(&world), 1);
    // 5 + 10 + 20 + … + 5·2⁹ ms: ten more tries in 5.115 s.
    world.pass_ms(5_115);
    assert_eq!(steps(&world), 11);
    for value in 0..100 {
        world.put("a", json!({ "fails": value.to_string() }));
        world.settle();
    }
    assert_eq!(steps(&world), 11);
    world.put("a", json!({}));
    world.pass_ms(6_000);
    let healed = steps(&world);
    assert_eq!(healed, 12);
    // Success has cleared the counter: the next failure waits 5 ms again.
    world.put("a", json!({ "fails": "again" }));
    world.settle();
    world.pass_ms(5);
    assert_eq!(steps(&world), healed + 2);
}

#[test]
fn s0_10_with_a_limit_a_key_is_tried_seldom_or_by_event_once_it_failed_more_often() {
    let mut settings = settings(&[MAKER]);
    settings.limits.failures_max = Some(3);
    let mut world = World::new(settings);
    let stuck = |world: &World| world.driver.metrics().controllers["maker"].stuck;
    world.put("a", json!({ "fails": "yes" }));
    world.pass_ms(60_000);
    assert_eq!((steps(&world), stuck(&world)), (4, 1));
    // Nothing happens about it, and it is tried all the same: a quota may have been lifted.
    world.pass_ms(3_600_000);
    assert_eq!((steps(&world), stuck(&world)), (7, 1));
    // An event ends the wait, and a hundred of them do so once a second.
    world.put("a", json!({ "fails": "still" }));
    world.settle();
    assert_eq!(steps(&world), 8);
    for value in 0..100 {
        world.put("a", json!({ "fails": value.to_string() }));
        world.settle();
    }
    assert_eq!(steps(&world), 8);
    world.pass_ms(1_000);
    assert_eq!(steps(&world), 9);
    world.put("a", json!({ "want": "0" }));
    world.pass_ms(1_000);
    assert_eq!((steps(&world), stuck(&world)), (10, 0));
    let lines = std::iter::from_fn(|| world.driver.poll_notice());
    let told = lines.filter(|line| line.text.contains("in a row"));
    assert_eq!(told.count(), 1);
}

/// What is refused for half an hour goes on by itself once it is not, where there is no limit.
#[test]
fn s0_10_what_is_lifted_without_an_event_goes_on() {
    let settings = settings(&[MAKER]);
    assert_eq!(settings.limits.failures_max, None);
    let mut world = World::new(settings);
    let quota = || refusal(403, "Forbidden");
    world
        .refusals
        .extend(std::iter::repeat_with(quota).take(20));
    world.put("a", json!({ "want": "1" }));
    world.pass_ms(1_800_000);
    assert!(!world.exists("a-0"));
    world.pass_ms(7_200_000);
    assert!(world.exists("a-0"));
}

/// Who lives by time goes on at a time of its own, as seldom as others are tried, also where the limit is kept.
#[test]
fn s0_10_where_the_limit_is_kept_times_of_ones_own_are_not_lost() {
    const MINUTE_MS: i64 = 60_000;
    let mut settings = settings(&[MAKER]);
    settings.limits.failures_max = Some(3);
    settings.limits.gives_up = true;
    let mut world = World::new(settings);
    let closed = || refusal(403, "Forbidden");
    world
        .refusals
        .extend(std::iter::repeat_with(closed).take(6));
    world.put("a", json!({ "want": "1", "every": "300000" }));
    world.pass_ms(16 * MINUTE_MS);
    assert_eq!(world.writes(), ["create a-0"; 4]);
    world.pass_ms(60 * MINUTE_MS);
    // A thousand seconds apart; one refusal was that of the event which tells of them.
    assert_eq!(world.writes(), ["create a-0"; 2]);
    assert!(world.exists("a-0"));
}

/// To the letter: so many tries, the first included, as the limit and one more, until something happens.
#[test]
fn s0_10_where_the_limit_is_kept_a_key_is_given_up_until_something_about_it_changes() {
    const DAY_MS: i64 = 86_400_000;
    let mut settings = settings(&[MAKER]);
    settings.limits.failures_max = Some(3);
    settings.limits.gives_up = true;
    let mut world = World::new(settings);
    let quota = || refusal(403, "Forbidden");
    world.refusals.extend(std::iter::repeat_with(quota).take(6));
    world.put("a", json!({ "want": "1" }));
    world.pass_ms(DAY_MS);
    assert_eq!(world.writes(), ["create a-0"; 4]);
    assert_eq!(world.driver.metrics().controllers["maker"].stuck, 1);
    // What happens about it is one more try, and no success: the counter stays.
    world.put("a", json!({ "want": "1", "note": "still" }));
    world.pass_ms(DAY_MS);
    assert_eq!(world.writes(), ["create a-0"]);
    world.put("a", json!({ "want": "1", "note": "again" }));
    world.pass_ms(DAY_MS);
    assert_eq!(world.writes(), ["create a-0"]);
    world.put("a", json!({ "want": "1", "note": "now" }));
    world.pass_ms(1_000);
    assert!(world.exists("a-0"));
    assert_eq!(world.driver.metrics().controllers["maker"].stuck, 0);
    let lines = std::iter::from_fn(|| world.driver.poll_notice());
    let told: Vec<_> = lines
        .filter(|line| line.text.contains("in a row"))
        .collect();
    assert_eq!(told.len(), 1);
    assert!(!told[0].text.contains("1000 s"), "{}", told[0].text);
}

/// An API that is away is no reason to give anything up.
#[test]
fn s0_10_what_passes_by_itself_is_tried_on_though_the_limit_is_kept() {
    let mut settings = settings(&[MAKER]);
    settings.limits.failures_max = Some(3);
    settings.limits.gives_up = true;
    let mut world = World::new(settings);
    let away = || refusal(503, "ServiceUnavailable");
    world.refusals.extend(std::iter::repeat_with(away).take(9));
    world.put("a", json!({ "want": "1" }));
    world.pass_ms(3 * 3_600_000);
    assert!(world.exists("a-0"));
}

#[test]
fn a_refused_write_counts_as_a_failure_and_retry_after_is_kept() {
    let mut world = world();
    let mut too_many = refusal(429, "TooManyRequests");
    too_many.retry_after_seconds = Some(2);
    world.refusals.push_back(too_many);
    world.put("a", json!({ "want": "1" }));
    world.pass_ms(1_999);
    assert_eq!(world.writes(), ["create a-0"]);
    world.pass_ms(1);
    assert_eq!(world.writes(), ["create a-0"]);
    let notice = world.driver.poll_notice().unwrap();
    assert_eq!(
        notice.text,
        "cannot create ConfigMap ns/a-0: the test says 429"
    );
}

/// I18
/// Whose writes were refused, by a quota for example, makes one at each try, however many are wanted.
#[test]
fn s0_10_a_key_that_was_refused_makes_few_at_once_until_they_are_taken() {
    let mut world = world();
    let full = (0..40 + 2).map(|_| refusal(403, "Forbidden"));
    world.refusals_of.insert(Kind::ConfigMap, full.collect());
    world.put("a", json!({ "want": "40" }));
    world.settle();
    assert_eq!(world.writes().len(), 40);
    for delay_ms in [5, 10] {
        world.pass_ms(delay_ms);
        assert_eq!(world.writes(), ["create a-0"]);
    }
    world.pass_ms(20);
    assert_eq!(world.writes().len(), 40);
    assert!(world.exists("a-39"));
}

#[test]
fn keys_and_writes_are_bounded_by_the_objects_however_often_these_change() {
    let mut world = world();
    world.is_answer_slow = true;
    for round in 0..100 {
        for at in 0..5 {
            let wish = json!({ "want": "2", "mark": round.to_string() });
            world.put(&format!("a{at}"), wish);
        }
        world.settle();
        let metrics = world.driver.metrics();
        assert!(metrics.keys_known <= 5, "{} keys", metrics.keys_known);
        assert!(metrics.writes_open <= 10, "{} writes", metrics.writes_open);
    }
}

#[test]
fn writes_under_way_never_exceed_the_budget() {
    let mut settings = settings(&[MAKER]);
    settings.limits.writes_in_flight_max = 3;
    let mut world = World::new(settings);
    world.is_answer_slow = true;
    world.put("a", json!({ "want": "10" }));
    world.settle();
    assert_eq!(world.writes().len(), 3);
    assert_eq!(world.driver.metrics().writes_queued, 7);
    world.is_answer_slow = false;
    world.settle();
    assert_eq!(world.writes().len(), 7);
    assert!(world.driver.is_quiet());
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let mut world = world();
        for at in 0..5 {
            world.put(&format!("a{at}"), json!({ "want": "3", "mark": "x" }));
            world.refusals.push_back(refusal(500, "InternalError"));
            world.close_watch(Some(refusal(500, "InternalError")));
            world.pass_ms(700);
        }
        world.asked()
    };
    assert_eq!(run(), run());
}

#[test]
fn s0_10_what_the_api_does_not_let_happen_is_told_once_until_it_does() {
    let mut world = world();
    for _ in 0..4 {
        world.refusals.push_back(refusal(403, "Forbidden"));
    }
    world.put("a", json!({ "want": "1" }));
    world.pass_ms(3);
    let told = world.asked();
    let events = told.iter().filter(|line| *line == "note");
    assert_eq!(events.count(), 1, "{told:?}");
    world.pass_ms(1_000);
    assert!(world.exists("a-0"));
    let told = world.asked();
    assert!(told.iter().all(|line| line != "note"), "{told:?}");
}
