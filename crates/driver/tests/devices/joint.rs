//! Claims that several pods name, be they of one gang or of others: who is placed first gets them their devices.

use super::*;

fn group(world: &mut World, name: &str, min: usize) {
    let group = json!({
        "spec": { "minMember": min, "queue": "default" },
        "status": { "phase": "Inqueue" },
    });
    world.put_object(Kind::PodGroup, name, &group);
}

/// A pod of a group that requests so much and names these claims.
fn member(world: &mut World, group: &str, name: &str, cpu: &str, claims: &[&str]) {
    let claims = claims.iter().enumerate();
    let claims = claims.map(|(at, claim)| {
        let name = format!("c{at}");
        json!({ "name": name, "resourceClaimName": claim })
    });
    let pod = json!({
        "metadata": { "annotations": { "scheduling.k8s.io/group-name": group } },
        "spec": {
            "schedulerName": "volcano",
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": cpu } } }],
            "resourceClaims": claims.collect::<Vec<_>>(),
        },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::Pod, name, &pod);
}

fn nodes_of(world: &World, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| node_of(world, name)).collect()
}

#[test]
fn who_never_starts_keeps_a_claim_from_nobody() {
    let mut world = plane();
    node(&mut world, "n1", &["a100"]);
    claim(&mut world, "shared", json!({}));
    // It comes first by name, and lacks a member for ever.
    group(&mut world, "short", 2);
    member(&mut world, "short", "a-0", "1", &["shared"]);
    group(&mut world, "whole", 1);
    member(&mut world, "whole", "b-0", "1", &["shared"]);
    world.pass_ms(2_000);
    assert_eq!(nodes_of(&world, &["a-0", "b-0"]), ["-", "n1"]);
    assert_eq!(devices(&world, "shared"), ["r=n1/gpu-0"]);
    assert_eq!(users(&world, "shared"), ["b-0"]);
    // Who comes later joins.
    member(&mut world, "short", "a-1", "1", &["shared"]);
    world.pass_ms(2_000);
    assert_eq!(nodes_of(&world, &["a-0", "a-1"]), ["n1", "n1"]);
    assert_eq!(users(&world, "shared"), ["b-0", "a-0", "a-1"]);
}

#[test]
fn gangs_that_share_two_claims_crosswise_both_start() {
    let mut world = plane();
    node(&mut world, "n1", &["a100", "a100"]);
    claim(&mut world, "one", json!({}));
    claim(&mut world, "two", json!({}));
    for name in ["a", "b"] {
        group(&mut world, name, 2);
    }
    // Of the first claim a pod of the one gang is first by name, of the other one of the other.
    member(&mut world, "a", "p-1", "1", &["one"]);
    member(&mut world, "b", "p-2", "1", &["two"]);
    member(&mut world, "b", "p-3", "1", &["one"]);
    member(&mut world, "a", "p-4", "1", &["two"]);
    world.pass_ms(2_000);
    let names = ["p-1", "p-2", "p-3", "p-4"];
    assert_eq!(nodes_of(&world, &names), ["n1"; 4]);
    let all = [devices(&world, "one"), devices(&world, "two")].concat();
    assert_eq!(all.len(), 2, "{all:?}");
}

#[test]
fn a_claim_whose_device_all_nodes_reach_serves_a_gang_on_several() {
    let mut world = plane();
    for name in ["n1", "n2", "n3"] {
        node(&mut world, name, &[]);
    }
    let fabric = json!({ "nodeSelector": { "nodeSelectorTerms": [{ "matchFields": [
        { "key": "metadata.name", "operator": "In", "values": ["n1", "n2"] },
    ] }] } });
    slice(
        &mut world,
        "fabric",
        ("fabric", 1, 1),
        fabric.clone(),
        &["link"],
    );
    claim(&mut world, "link", json!({}));
    group(&mut world, "wide", 2);
    member(&mut world, "wide", "w-0", "6", &["link"]);
    member(&mut world, "wide", "w-1", "6", &["link"]);
    world.pass_ms(2_000);
    assert_eq!(nodes_of(&world, &["w-0", "w-1"]), ["n1", "n2"]);
    assert_eq!(devices(&world, "link"), ["r=fabric/gpu-0"]);
    assert_eq!(users(&world, "link"), ["w-0", "w-1"]);
    let status = &world.object(Kind::ResourceClaim, "link")["status"];
    assert_eq!(
        status["allocation"]["nodeSelector"], fabric["nodeSelector"],
        "it is reached from both"
    );
    // n3 has room, and does not reach it.
    member(&mut world, "wide", "w-2", "6", &["link"]);
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "w-2"), "-");
}

#[test]
fn of_a_gang_whoever_is_placed_gets_the_claim_its_devices() {
    let mut world = plane();
    node(&mut world, "n1", &["a100"]);
    claim(&mut world, "shared", json!({}));
    group(&mut world, "some", 1);
    // The first by name never fits.
    member(&mut world, "some", "s-0", "100", &["shared"]);
    member(&mut world, "some", "s-1", "1", &["shared"]);
    world.pass_ms(2_000);
    assert_eq!(nodes_of(&world, &["s-0", "s-1"]), ["-", "n1"]);
    assert_eq!(users(&world, "shared"), ["s-1"]);
}

#[test]
fn who_counted_with_anothers_devices_is_placed_anew_when_they_come_to_nothing() {
    let mut world = plane();
    node(&mut world, "n1", &["a100"]);
    claim(&mut world, "shared", json!({}));
    world.pass_ms(100);
    // The write that gives the claim its device is refused as long as the first pod is there.
    for _ in 0..64 {
        world.refusals.push_back(refusal(500, "InternalError"));
    }
    group(&mut world, "first", 1);
    group(&mut world, "second", 1);
    member(&mut world, "first", "a-0", "1", &["shared"]);
    member(&mut world, "second", "b-0", "1", &["shared"]);
    world.pass_ms(500);
    assert_eq!(nodes_of(&world, &["a-0", "b-0"]), ["-", "-"]);
    world.refusals.clear();
    world.delete_object(Kind::Pod, "a-0");
    world.pass_ms(10_000);
    assert_eq!(node_of(&world, "b-0"), "n1", "it gets them itself");
    assert_eq!(users(&world, "shared"), ["b-0"]);
}
