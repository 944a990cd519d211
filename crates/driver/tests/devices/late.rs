//! Slices that are told of after the claims that have their devices: after a start, or when a driver
//! withdraws them and tells of them anew.

use super::*;

fn network(world: &mut World) {
    let all = json!({ "allNodes": true });
    slice(world, "network", ("network", 1, 1), all, &["nic"]);
}

/// A claim of a device of the node and one that all nodes reach.
fn claim_of_both(world: &mut World, name: &str) {
    let of = |model: &str| {
        let expression = format!("device.attributes['gpu.example.com'].model == '{model}'");
        let selectors = json!([{ "cel": { "expression": expression } }]);
        json!({ "name": model, "exactly": { "deviceClassName": "gpu", "selectors": selectors } })
    };
    let requests = json!([of("a100"), of("nic")]);
    claim_of(world, name, json!({ "requests": requests }));
}

/// What another process gave, which is no more.
fn was_given(world: &mut World, claim: &str, user: &str) {
    let device = |request: &str, pool: &str| json!({ "request": request, "driver": "gpu.example.com", "pool": pool, "device": "gpu-0" });
    let field = json!({ "key": "metadata.name", "operator": "In", "values": ["n1"] });
    let status = json!({
        "allocation": {
            "devices": { "results": [device("a100", "n1"), device("nic", "network")] },
            "nodeSelector": { "nodeSelectorTerms": [{ "matchFields": [field] }] },
        },
        "reservedFor": [{ "resource": "pods", "name": user, "uid": format!("uid-{user}") }],
    });
    world.put_object(Kind::ResourceClaim, claim, &json!({ "status": status }));
    let there = json!({ "spec": { "nodeName": "n1" }, "status": { "phase": "Running" } });
    world.put_object(Kind::Pod, user, &there);
}

#[test]
fn what_is_held_of_devices_that_all_nodes_reach_is_held_whenever_they_are_told_of() {
    let mut world = plane();
    claim_of_both(&mut world, "first");
    pod(&mut world, "p", "first");
    was_given(&mut world, "first", "p");
    node(&mut world, "n1", &["a100"]);
    node(&mut world, "n2", &["a100"]);
    network(&mut world);
    claim_of_both(&mut world, "second");
    pod(&mut world, "q", "second");
    world.pass_ms(2_000);
    let taken = "0 of 1 tasks fit: q is refused by 2 nodes: 2 whose devices are taken";
    assert_eq!(why(&world, "q"), taken);
    // The driver takes its slice back for a while; the pod is told of meanwhile.
    world.delete_object(Kind::ResourceSlice, "network");
    let label = json!({ "metadata": { "labels": { "seen": "yes" } } });
    world.put_object(Kind::Pod, "p", &label);
    world.pass_ms(2_000);
    network(&mut world);
    world.pass_ms(2_000);
    assert_eq!(why(&world, "q"), taken);
    world.delete_object(Kind::Pod, "p");
    world.delete_object(Kind::ResourceClaim, "first");
    world.pass_ms(2_000);
    assert_eq!(
        devices(&world, "second"),
        ["a100=n1/gpu-0", "nic=network/gpu-0"]
    );
}
