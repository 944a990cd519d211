//! Claims that a group of Kubernetes' own shares among its pods (KEP-5729): allocated with the gang's
//! places, and kept for the group instead of each pod.

use super::*;

/// A plane that knows such groups, and who makes their claims.
fn plane_with_groups() -> World {
    let mut settings = settings(controllers::CONTROLLERS);
    settings.controller_settings.native_groups = true;
    settings.engine = Some(EngineSettings {
        lone_scheduler_names: vec!["volcano".into()],
        native_groups: true,
        ..EngineSettings::new(Engine::with_defaults())
    });
    let mut world = World::new(settings);
    world.put_queues();
    world.put_object(Kind::DeviceClass, "gpu", &class());
    let request = json!([{ "name": "r", "exactly": { "deviceClassName": "gpu" } }]);
    let template = json!({ "spec": { "spec": { "devices": { "requests": request } } } });
    world.put_object(Kind::ResourceClaimTemplate, "one", &template);
    world
}

fn group(world: &mut World, claims: Value) {
    let spec = json!({
        "schedulingPolicy": { "gang": { "minCount": 2 } },
        "resourceClaims": claims,
    });
    world.put_object(Kind::NativeGroup, "g", &json!({ "spec": spec }));
}

fn member(world: &mut World, name: &str, claims: Value) {
    let pod = json!({
        "spec": {
            "schedulerName": "volcano",
            "schedulingGroup": { "podGroupName": "g" },
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": "100m" } } }],
            "resourceClaims": claims,
        },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::Pod, name, &pod);
}

/// The claim that a pod was told of.
fn told(world: &World, pod: &str) -> String {
    let told = &world.object(Kind::Pod, pod)["status"]["resourceClaimStatuses"][0];
    let name = told["resourceClaimName"].as_str();
    name.unwrap_or("-").to_owned()
}

fn reserved(world: &World, claim: &str) -> Value {
    world.object(Kind::ResourceClaim, claim)["status"]["reservedFor"].clone()
}

#[test]
fn pods_of_a_group_share_what_it_claims_and_it_is_kept_for_the_group() {
    let mut world = plane_with_groups();
    node(&mut world, "n1", &[]);
    node(&mut world, "n2", &["a100", "a100"]);
    let shared = json!([{ "name": "gpus", "resourceClaimTemplateName": "one" }]);
    member(&mut world, "p-0", shared.clone());
    member(&mut world, "p-1", shared.clone());
    world.pass_ms(2_000);
    assert_eq!(told(&world, "p-0"), "-", "whose the claim is nobody knows");
    group(&mut world, shared.clone());
    world.pass_ms(5_000);
    let claim = told(&world, "p-0");
    assert_eq!(told(&world, "p-1"), claim);
    assert_eq!(node_of(&world, "p-0"), "n2");
    assert_eq!(node_of(&world, "p-1"), "n2");
    assert_eq!(devices(&world, &claim), ["r=n2/gpu-0"]);
    let uid = world.object(Kind::NativeGroup, "g")["metadata"]["uid"].clone();
    let for_the_group = json!([{
        "apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": uid,
    }]);
    assert_eq!(reserved(&world, &claim), for_the_group);

    // Who comes later joins, and nothing is written for it; who claims by another name has its own.
    member(&mut world, "p-2", shared);
    let own = json!([{ "name": "mine", "resourceClaimTemplateName": "one" }]);
    member(&mut world, "p-3", own);
    world.pass_ms(5_000);
    assert_eq!(told(&world, "p-2"), claim);
    assert_eq!(node_of(&world, "p-2"), "n2");
    assert_eq!(reserved(&world, &claim), for_the_group);
    let own = told(&world, "p-3");
    assert_eq!(devices(&world, &own), ["r=n2/gpu-1"]);
    assert_eq!(users(&world, &own), ["p-3"]);

    // Its pods may go and others follow: the devices stay with the group, and go with it.
    for name in ["p-0", "p-1", "p-2"] {
        world.delete_object(Kind::Pod, name);
    }
    world.pass_ms(5_000);
    assert_eq!(reserved(&world, &claim), for_the_group);
    world.delete_object(Kind::NativeGroup, "g");
    world.pass_ms(5_000);
    assert!(devices(&world, &own) == ["r=n2/gpu-1"], "p-3 runs");
    let freed = world.try_object(Kind::ResourceClaim, &claim);
    assert_eq!(freed, None, "it was made for the group");
}

#[test]
fn a_group_that_claims_what_is_there_already_is_its_only_user() {
    let mut world = plane_with_groups();
    node(&mut world, "n1", &["a100"]);
    claim(&mut world, "fabric", json!({}));
    let shared = json!([{ "name": "gpus", "resourceClaimName": "fabric" }]);
    group(&mut world, shared.clone());
    for name in ["p-0", "p-1"] {
        member(&mut world, name, shared.clone());
    }
    world.pass_ms(5_000);
    assert_eq!(node_of(&world, "p-0"), "n1");
    assert_eq!(node_of(&world, "p-1"), "n1");
    assert_eq!(users(&world, "fabric"), ["g"]);
    // It is somebody's own: freed with the group, and not taken away.
    world.delete_object(Kind::NativeGroup, "g");
    world.pass_ms(5_000);
    assert_eq!(users(&world, "fabric"), ["g"], "its pods still run");
    for name in ["p-0", "p-1"] {
        world.delete_object(Kind::Pod, name);
    }
    world.pass_ms(5_000);
    assert_eq!(users(&world, "fabric"), Vec::<String>::new());
    assert_eq!(devices(&world, "fabric"), Vec::<String>::new());
}
