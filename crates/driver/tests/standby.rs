//! Two drivers over one API: one decides, the other waits for its silence.

mod world;

use api::intent::WriteOutcome;
use api::kind::Kind;
use driver::{ElectionSettings, Request};
use serde_json::json;
use world::{World, settings};

fn candidate(identity: &str) -> World {
    let mut settings = settings(controllers::CONTROLLERS);
    settings.election = Some(ElectionSettings::new("ns", "volcano", identity));
    World::new(settings)
}

fn lease(holder: &str, renewed: &str) -> serde_json::Value {
    json!({ "spec": {
        "holderIdentity": holder,
        "leaseDurationSeconds": 15,
        "acquireTime": "2020-01-01T00:00:00.000000Z",
        "renewTime": renewed,
        "leaseTransitions": 1,
    }})
}

#[test]
fn a_driver_that_waits_for_a_lease_asks_for_nothing_else() {
    let mut world = candidate("me");
    world.put_object(
        Kind::Lease,
        "volcano",
        &lease("other", "2020-01-01T00:00:00.000000Z"),
    );
    world.pass_ms(14_000);
    let asked = world.asked();
    assert!(!asked.is_empty());
    for line in &asked {
        assert_eq!(line, "get volcano");
    }
    assert!(world.driver.is_quiet());
    assert!(!world.driver.metrics().is_leading);

    // Nothing was heard of the other for as long as it said.
    world.pass_ms(6_000);
    assert_eq!(
        world.object(Kind::Lease, "volcano")["spec"]["holderIdentity"],
        "me"
    );
    assert!(world.driver.is_synced());
    assert_eq!(world.driver.metrics().terms, 1);
}

#[test]
fn a_driver_that_loses_its_lease_forgets_everything_and_lists_anew_when_it_is_back() {
    let mut world = candidate("me");
    world.pass_ms(3_000);
    assert!(world.driver.is_synced());
    world.asked();
    world.put_object(
        Kind::Lease,
        "volcano",
        &lease("other", "2020-01-01T00:00:00.000000Z"),
    );
    world.pass_ms(5_000);
    assert!(!world.driver.is_synced());
    assert!(!world.driver.may_write(world.now));
    assert_eq!(world.driver.metrics().terms_lost, 1);
    let notice = std::iter::from_fn(|| world.driver.poll_notice())
        .last()
        .expect("it says so");
    assert_eq!(
        notice.text,
        "decides nothing any more: Lease ns/volcano is held by other"
    );
    world.asked();

    world.put_object(
        Kind::Lease,
        "volcano",
        &lease("", "2020-01-01T00:00:00.000000Z"),
    );
    world.pass_ms(5_000);
    assert!(world.driver.is_synced());
    assert_eq!(world.driver.metrics().terms, 2);
    assert!(world.asked().iter().any(|line| line.starts_with("list")));
}

#[test]
fn after_a_pause_no_write_is_handed_out_before_the_lease_is_proved_again() {
    let mut world = candidate("me");
    world.pass_ms(3_000);
    // Somebody wants something while we stand still.
    world.now = world.now.plus_ms(60_000);
    while let Some((id, request)) = world.driver.poll_request(world.now) {
        assert!(
            matches!(&request, Request::Get { key } if key.kind == Kind::Lease),
            "{request:?}"
        );
        let unknown = WriteOutcome::Unknown { message: "".into() };
        world.driver.handle_written(id, unknown, world.now);
    }
    assert_eq!(world.driver.metrics().terms_lost, 1);
}

#[test]
fn a_driver_that_ends_lets_its_lease_go() {
    let mut world = candidate("me");
    world.pass_ms(3_000);
    world.driver.release(world.now);
    world.pass_ms(20_000);
    let spec = &world.object(Kind::Lease, "volcano")["spec"];
    assert_eq!(spec["holderIdentity"], "");
    assert_eq!(spec["leaseDurationSeconds"], 1);
    assert!(!world.driver.may_write(world.now));
}
