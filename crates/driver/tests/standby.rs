//! Two drivers over one API: one decides, the other waits for its silence.

mod world;

use api::intent::{Refusal, WriteOutcome};
use api::kind::Kind;
use api::time::Time;
use driver::{ElectionSettings, Request, Served};
use mirror::Reach;
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

/// S1.8: no write of any kind happens before leadership.
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

/// S1.3: a clean end costs others one retry period, also while the API is slow.
#[test]
fn a_driver_that_ends_while_it_renews_lets_its_lease_go_all_the_same() {
    let mut world = candidate("me");
    world.pass_ms(1_000);
    world.is_answer_slow = true;
    let renewed = world.object(Kind::Lease, "volcano")["spec"]["renewTime"].clone();
    world.pass_ms(1_500);
    let spec = &world.object(Kind::Lease, "volcano")["spec"];
    assert_ne!(spec["renewTime"], renewed, "the answer to it is on its way");
    world.driver.release(world.now);
    world.is_answer_slow = false;
    world.pass_ms(0);
    let spec = &world.object(Kind::Lease, "volcano")["spec"];
    assert_eq!(spec["holderIdentity"], "");
}

/// S1.11: what metrics tell of a lease is what was asked for and granted, and stands still where it is not.
#[test]
fn a_driver_tells_when_its_lease_was_renewed_last() {
    let mut world = candidate("me");
    world.put_object(
        Kind::Lease,
        "volcano",
        &lease("", "2020-01-01T00:00:00.000000Z"),
    );
    let standing = world.driver.leases(world.now);
    assert_eq!((standing[0].is_held, standing[0].renewed), (false, None));
    world.settle();
    let taken = world.now;
    for renewals in 0..5 {
        let standing = world.driver.leases(world.now);
        assert_eq!(standing.len(), 1);
        assert_eq!(&*standing[0].lease.name, "volcano");
        assert!(standing[0].is_held && standing[0].holder.is_empty());
        assert_eq!(standing[0].transitions, 2, "one who had it, and us");
        assert_eq!(standing[0].renewed, Some(taken.plus_ms(2_000 * renewals)));
        let spec = &world.object(Kind::Lease, "volcano")["spec"];
        let told = spec["renewTime"].as_str().and_then(Time::parse);
        assert_eq!(standing[0].renewed, told);
        world.pass_ms(2_000);
    }

    // What is refused is no renewal, however often it is asked for.
    let granted = world.driver.leases(world.now)[0].renewed;
    world.refusals = vec![world::refusal(500, "InternalError"); 64].into();
    world.pass_ms(7_000);
    let standing = world.driver.leases(world.now);
    assert!(standing[0].is_held && world.refusals.len() < 63);
    assert_eq!(standing[0].renewed, granted);
    world.pass_ms(13_000);
    assert!(!world.driver.leases(world.now)[0].is_held);
}

fn said(world: &mut World) -> Vec<String> {
    std::iter::from_fn(|| world.driver.poll_notice())
        .map(|notice| notice.text)
        .collect()
}

/// S1.6: a lease that somebody holds for something else is told, and taken over with what it is for.
#[test]
fn a_lease_that_is_held_for_something_else_is_told() {
    let mut settings = settings(controllers::CONTROLLERS);
    let served = Served {
        scheduler_names: &["b".into(), "a".into()],
        agent_scheduler_names: &["c".into()],
        reach: &Reach::default(),
    };
    settings.election = Some(ElectionSettings {
        serves: served.to_string().into(),
        ..ElectionSettings::new("ns", "volcano", "me")
    });
    let mut world = World::new(settings);
    let mut held = lease("other", "2020-01-01T00:00:00.000000Z");
    held["metadata"] = json!({ "annotations": { "katmai.dev/serves": "pods of c" } });
    world.put_object(Kind::Lease, "volcano", &held);
    world.pass_ms(3_000);
    let standing = world.driver.leases(world.now);
    assert_eq!(standing.len(), 1);
    assert_eq!(standing[0].foreign.as_deref(), Some("pods of c"));
    assert_eq!(&*standing[0].holder, "other");
    assert!(!standing[0].is_held);

    world.pass_ms(20_000);
    let lease = world.object(Kind::Lease, "volcano");
    assert_eq!(
        lease["metadata"]["annotations"]["katmai.dev/serves"],
        "pods of a, b; pods of c one by one"
    );
    let standing = world.driver.leases(world.now);
    assert!(standing[0].is_held && standing[0].foreign.is_none());
    assert_eq!(standing[0].transitions, 2);

    // One who does the same is a rival like any other.
    let mut same = lease.clone();
    same["spec"]["holderIdentity"] = json!("twin");
    world.put_object(Kind::Lease, "volcano", &same);
    world.pass_ms(3_000);
    let standing = world.driver.leases(world.now);
    assert_eq!(
        (&*standing[0].holder, &standing[0].foreign),
        ("twin", &None)
    );
}

/// S1.9: a missing right is said once, and tried again for as long as it takes.
#[test]
fn a_lease_that_may_not_be_read_is_told_once_and_asked_for_again() {
    let mut world = candidate("me");
    let refusal = Refusal {
        code: 403,
        reason: "Forbidden".into(),
        message: "leases.coordination.k8s.io \"volcano\" is forbidden".into(),
        retry_after_seconds: None,
    };
    world.get_refusals = vec![refusal; 64].into();
    world.pass_ms(10_000);
    let told = said(&mut world);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("cannot read the lease") && told[0].contains("is forbidden"));
    assert!(world.asked().len() > 3);
    assert!(!world.driver.may_write(world.now));
    world.get_refusals.clear();
    world.pass_ms(3_000);
    assert!(world.driver.may_write(world.now));
}
