//! Devices of which claims get parts, and devices that are made ready before their pods are bound.

use super::*;

/// The only device of n1, and its slice.
fn only_device(world: &mut World, device: &Value) {
    node(world, "n1", &[]);
    let devices = json!({ "spec": { "devices": [device] } });
    world.put_object(Kind::ResourceSlice, "n1", &devices);
}

/// The parts that a claim has: how much of which device, and under which id.
fn parts(world: &World, name: &str) -> Vec<(String, Value)> {
    let status = &world.object(Kind::ResourceClaim, name)["status"];
    let results = status["allocation"]["devices"]["results"].as_array();
    let part = |it: &Value| {
        let id = it["shareID"].as_str().expect("a part has an id");
        (id.to_owned(), it["consumedCapacity"].clone())
    };
    results.into_iter().flatten().map(part).collect()
}

fn wants(memory: &str) -> Value {
    json!({ "capacity": { "requests": { "memory": memory } } })
}

#[test]
fn a_device_is_given_in_parts_while_there_is_enough_of_it() {
    let mut world = plane();
    let policy = json!({
        "default": "1Gi", "validRange": { "min": "1Gi", "step": "4Gi" },
    });
    let memory = json!({ "value": "80Gi", "requestPolicy": policy });
    let device = json!({
        "name": "part", "allowMultipleAllocations": true, "capacity": { "memory": memory },
    });
    only_device(&mut world, &device);
    claim(&mut world, "first", wants("30Gi"));
    claim(&mut world, "second", wants("41Gi"));
    claim(&mut world, "third", wants("6Gi"));
    claim(&mut world, "fourth", json!({}));
    for (name, claim) in [
        ("p", "first"),
        ("q", "second"),
        ("r", "third"),
        ("s", "fourth"),
    ] {
        pod(&mut world, name, claim);
        world.pass_ms(2_000);
    }
    // 33 (1 and eight steps), 41 (1 and ten), 9 of the last 6, and the usual 1.
    let [first, second] = ["first", "second"].map(|name| parts(&world, name));
    let [(first, of_first), (second, of_second)] = [&first[0], &second[0]];
    assert_eq!(of_first["memory"], "33Gi");
    assert_eq!(of_second["memory"], "41Gi");
    assert_ne!(first, second);
    let shape: Vec<usize> = first.split('-').map(str::len).collect();
    assert_eq!(shape, [8, 4, 4, 4, 12]);
    assert_eq!(
        why(&world, "r"),
        "0 of 1 tasks fit: r is refused by 1 node: 1 whose devices are taken"
    );
    assert_eq!(parts(&world, "fourth")[0].1["memory"], "1Gi");
    let back = json!({ "status": { "allocation": null, "reservedFor": null } });
    world.put_object(Kind::ResourceClaim, "first", &back);
    world.delete_object(Kind::Pod, "p");
    world.pass_ms(2_000);
    assert_eq!(parts(&world, "third")[0].1["memory"], "9Gi");
    assert_eq!(node_of(&world, "r"), "n1");
}

#[test]
fn who_loses_a_part_to_another_scheduler_is_placed_again() {
    let mut world = plane();
    let memory = json!({ "value": "80Gi" });
    let device = json!({
        "name": "part", "allowMultipleAllocations": true, "capacity": { "memory": memory },
    });
    only_device(&mut world, &device);
    claim(&mut world, "mine", wants("50Gi"));
    claim(&mut world, "theirs", json!({}));
    world.pass_ms(100);
    world.is_answer_slow = true;
    pod(&mut world, "p", "mine");
    world.settle();
    let theirs = |amount: &str| {
        json!({ "status": { "allocation": { "devices": { "results": [{
            "request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "part",
            "shareID": "a671734a-e8e5-11e4-8fde-42010af09327",
            "consumedCapacity": { "memory": amount },
        }] } } } })
    };
    world.put_object(Kind::ResourceClaim, "theirs", &theirs("31Gi"));
    world.settle();
    world.is_answer_slow = false;
    while world.answer() {}
    world.pass_ms(5_000);
    assert_eq!(
        why(&world, "p"),
        "0 of 1 tasks fit: p is refused by 1 node: 1 whose devices are taken"
    );
    world.put_object(Kind::ResourceClaim, "theirs", &theirs("30Gi"));
    world.pass_ms(5_000);
    assert_eq!(node_of(&world, "p"), "n1");
}

/// A device that is attached first, and its claim's word on it.
fn attached(world: &mut World) {
    let device = json!({
        "name": "far", "bindsToNode": true,
        "bindingConditions": ["Attached"], "bindingFailureConditions": ["Lost"],
    });
    only_device(world, &device);
    claim(world, "mine", json!({}));
    pod(world, "p", "mine");
    world.pass_ms(2_000);
}

fn says(world: &mut World, condition: &str) {
    let condition = json!({ "type": condition, "status": "True" });
    let device = json!({
        "driver": "gpu.example.com", "pool": "n1", "device": "far", "conditions": [condition],
    });
    let status = json!({ "status": { "devices": [device] } });
    world.put_object(Kind::ResourceClaim, "mine", &status);
    world.pass_ms(2_000);
}

#[test]
fn a_pod_is_bound_once_its_device_is_attached() {
    let mut world = plane();
    attached(&mut world);
    let allocation = world.object(Kind::ResourceClaim, "mine")["status"]["allocation"].clone();
    let result = &allocation["devices"]["results"][0];
    assert_eq!(result["bindingConditions"], json!(["Attached"]));
    assert_eq!(result["bindingFailureConditions"], json!(["Lost"]));
    assert!(allocation["allocationTimestamp"].is_string());
    assert_eq!(node_of(&world, "p"), "-", "it is not attached yet");
    says(&mut world, "Warm");
    assert_eq!(node_of(&world, "p"), "-", "that was not asked");
    says(&mut world, "Attached");
    assert_eq!(node_of(&world, "p"), "n1");
}

#[test]
fn a_device_that_fails_to_be_attached_is_given_back_and_looked_for_again() {
    let mut world = plane();
    attached(&mut world);
    about_claims(&mut world);
    says(&mut world, "Lost");
    let status = &world.object(Kind::ResourceClaim, "mine")["status"];
    assert_eq!(status["devices"], Value::Null, "that was of the one before");
    // It was given back, and got again, for there is no other.
    let writes = about_claims(&mut world);
    assert!((2..=3).contains(&writes.len()), "{writes:?}");
    assert_eq!(node_of(&world, "p"), "-");
    says(&mut world, "Attached");
    assert_eq!(node_of(&world, "p"), "n1");
}

#[test]
fn a_device_that_is_never_attached_is_given_back_in_time() {
    let mut world = plane();
    attached(&mut world);
    about_claims(&mut world);
    world.pass_ms(590_000);
    assert_eq!(about_claims(&mut world), Vec::<String>::new());
    world.pass_ms(12_000);
    assert!(!about_claims(&mut world).is_empty());
}

#[test]
fn devices_that_need_no_time_are_given_first() {
    let mut world = plane();
    node(&mut world, "n1", &[]);
    let devices = json!([
        { "name": "far", "bindingConditions": ["Attached"] }, { "name": "near" },
    ]);
    let spec = json!({ "spec": { "devices": devices } });
    world.put_object(Kind::ResourceSlice, "n1", &spec);
    claim(&mut world, "mine", json!({}));
    pod(&mut world, "p", "mine");
    world.pass_ms(2_000);
    assert_eq!(devices_of(&world, "mine"), "near");
    assert_eq!(node_of(&world, "p"), "n1");
}
