//! Lists and watches: pages, resuming, forgetting, going back in time.

mod world;

use api::call::WatchLine;
use api::core::ConfigMap;
use api::intent::ObjectKey;
use api::kind::Kind;
use controllers::{Controller, Inputs, Step};
use mirror::{Change, Mirror};
use serde_json::json;
use world::{World, raw, refusal, settings};

/// Looks at every ConfigMap and wants nothing; counts how often it was asked.
const LOOKER: Controller = Controller {
    name: "looker",
    component: "vc-controller-manager",
    tells_refused: &[],
    watches: &[Kind::ConfigMap],
    keys: own_key,
    step: look,
};

fn own_key(_: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    keys.push((*change.key).clone());
}

fn look(_: &Inputs<'_>) -> Step {
    Step::idle()
}

fn steps(world: &World) -> u64 {
    let metrics = world.driver.metrics();
    metrics
        .controllers
        .get("looker")
        .map_or(0, |counts| counts.steps)
}

fn names(world: &World) -> Vec<String> {
    let maps = world.driver.mirror().list::<ConfigMap>();
    maps.map(|map| map.metadata.name.to_string()).collect()
}

#[test]
fn a_kind_is_listed_in_pages_and_then_watched_from_the_lists_revision() {
    let mut settings = settings(&[LOOKER]);
    settings.limits.list_page = 2;
    let mut world = World::new(settings);
    for name in ["a", "b", "c", "d", "e"] {
        world.put(name, json!({}));
    }
    world.settle();
    assert_eq!(
        world.asked(),
        [
            "list configmaps",
            "list configmaps 2",
            "list configmaps 4",
            "watch configmaps 5"
        ]
    );
    assert_eq!(names(&world), ["a", "b", "c", "d", "e"]);
    assert_eq!(steps(&world), 5);
}

#[test]
fn nothing_is_stepped_before_everything_was_listed() {
    let mut world = World::new(settings(&[LOOKER]));
    world.put("a", json!({}));
    world.list_refusals.push_back(refusal(500, "InternalError"));
    world.settle();
    assert_eq!(steps(&world), 0);
    assert!(!world.driver.is_synced());
    world.pass_ms(1_000);
    assert!(world.driver.is_synced());
    assert_eq!(steps(&world), 1);
}

#[test]
fn a_watch_that_drops_is_resumed_where_it_ended() {
    let mut world = World::new(settings(&[LOOKER]));
    world.put("a", json!({}));
    world.settle();
    world.put("b", json!({}));
    world.pass_ms(2_000);
    let bookmark = world.watch().unwrap();
    world
        .driver
        .handle_watch(bookmark, WatchLine::Bookmark(9), world.now);
    world.asked();
    world.close_watch(None);
    world.settle();
    assert_eq!(world.asked(), ["watch configmaps 9"]);
}

#[test]
fn a_watch_that_closes_at_once_is_not_asked_for_again_at_once() {
    let mut world = World::new(settings(&[LOOKER]));
    world.settle();
    world.asked();
    for _ in 0..20 {
        world.close_watch(Some(refusal(500, "InternalError")));
        world.pass_ms(500);
    }
    let asked = world.asked().len();
    assert!((4..=12).contains(&asked), "{asked} watches in 10 s");
}

#[test]
fn a_forgotten_revision_is_answered_by_a_new_list_that_also_shows_what_has_gone() {
    let mut world = World::new(settings(&[LOOKER]));
    world.put("a", json!({}));
    world.put("b", json!({}));
    world.settle();
    world.asked();
    let id = world.watch().unwrap();
    world.close_watch(None);
    world.delete("a");
    world.put("c", json!({}));
    // The watch is open again at this point, and fails with 410.
    world.is_watch_slow = true;
    world.pass_ms(1_000);
    assert_ne!(world.watch(), Some(id));
    let expired = WatchLine::Failed(refusal(410, "Expired"));
    world
        .driver
        .handle_watch(world.watch().unwrap(), expired, world.now);
    world.pass_ms(1_000);
    assert_eq!(
        world.asked(),
        [
            "watch configmaps 2",
            "list configmaps",
            "watch configmaps 4"
        ]
    );
    assert_eq!(names(&world), ["b", "c"]);
    assert_eq!(world.driver.metrics().relists, 1);
}

#[test]
fn a_server_that_lists_well_and_forgets_at_once_is_not_listed_in_a_circle() {
    let mut world = World::new(settings(&[LOOKER]));
    world.settle();
    world.asked();
    for _ in 0..100 {
        world.close_watch(Some(refusal(410, "Expired")));
        world.pass_ms(100);
    }
    let lists = world
        .asked()
        .iter()
        .filter(|line| line.starts_with("list"))
        .count();
    assert!((4..=12).contains(&lists), "{lists} lists in 10 s");
}

#[test]
fn a_list_from_the_past_is_not_believed() {
    let mut world = World::new(settings(&[LOOKER]));
    for name in ["a", "b", "c"] {
        world.put(name, json!({}));
    }
    world.settle();
    world.asked();
    world.list_revision = Some(1);
    world.close_watch(Some(refusal(410, "Expired")));
    world.pass_ms(5_000);
    assert_eq!(
        world.asked(),
        ["list configmaps", "list configmaps", "watch configmaps 3"]
    );
}

#[test]
fn duplicate_and_stale_events_wake_nobody() {
    let mut world = World::new(settings(&[LOOKER]));
    world.put("a", json!({ "v": "1" }));
    world.put("a", json!({ "v": "2" }));
    world.settle();
    let (before, hash) = (steps(&world), world.driver.mirror().state_hash());
    let id = world.watch().unwrap();
    for (revision, value) in [(2, "2"), (1, "1"), (2, "2")] {
        let object = json!({
            "metadata": {
                "name": "a", "namespace": "ns", "uid": "uid-1",
                "resourceVersion": revision.to_string(),
            },
            "data": { "v": value },
        });
        world
            .driver
            .handle_watch(id, WatchLine::Applied(raw(&object)), world.now);
        world.settle();
    }
    assert_eq!(steps(&world), before);
    assert_eq!(world.driver.mirror().state_hash(), hash);
}

#[test]
fn an_unreadable_object_is_named_in_the_log_and_spoils_nothing() {
    let mut world = World::new(settings(&[LOOKER]));
    world.put("a", json!({}));
    world.settle();
    let broken = json!({ "metadata": { "name": "b", "namespace": "ns" }, "data": 5 });
    let id = world.watch().unwrap();
    world
        .driver
        .handle_watch(id, WatchLine::Applied(raw(&broken)), world.now);
    let notice = world.driver.poll_notice().unwrap();
    assert!(
        notice.text.starts_with("cannot read ConfigMap ns/b: "),
        "{}",
        notice.text
    );
    assert_eq!(names(&world), ["a"]);
}
