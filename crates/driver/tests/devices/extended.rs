//! Extended resources that classes of devices serve: a pod that requests one gets a claim with its place.

use api::kind::Kind;
use driver::EngineSettings;
use driver::scheduler_conf;
use engine::Engine;
use serde_json::json;

use super::world::{World, settings};
use super::{about_claims, class, devices, has_device_of_n2, node, node_of, plane, why};

const CHIP: &str = "example.com/chip";

/// A plane whose class `gpu` serves chips.
fn chips() -> World {
    let mut world = plane();
    let serves = json!({ "spec": { "extendedResourceName": CHIP } });
    world.put_object(Kind::DeviceClass, "gpu", &serves);
    world
}

fn asks(world: &mut World, name: &str, resource: &str, count: u32) {
    let requests = json!({ "cpu": "100m", resource: count.to_string() });
    let containers = json!([{ "name": "c", "resources": { "requests": requests } }]);
    let spec = json!({ "schedulerName": "volcano", "containers": containers });
    let pod = json!({ "spec": spec, "status": { "phase": "Pending" } });
    world.put_object(Kind::Pod, name, &pod);
}

/// A node that has chips itself, as a device plugin tells.
fn has_chips(world: &mut World, name: &str, count: u32) {
    let allocatable = json!({ CHIP: count.to_string() });
    let status = json!({ "status": { "allocatable": allocatable } });
    world.put_object(Kind::Node, name, &status);
}

/// The claim that was made for a pod, if there is one.
fn claim_of(world: &World, pod: &str) -> Option<String> {
    let uid = &world.object(Kind::Pod, pod)["metadata"]["uid"];
    let mut names = world.names_of(Kind::ResourceClaim);
    let is_its = |name: &&str| {
        let owners = &world.object(Kind::ResourceClaim, name)["metadata"]["ownerReferences"];
        owners[0]["uid"] == *uid
    };
    names.find(is_its).map(str::to_owned)
}

#[test]
fn a_pod_has_a_claim_with_devices_and_knows_of_it_before_it_is_bound() {
    let mut world = chips();
    node(&mut world, "n1", &["a100"]);
    node(&mut world, "n2", &["a100", "h100", "h100"]);
    asks(&mut world, "p", CHIP, 2);
    world.pass_ms(2_000);
    let name = claim_of(&world, "p").expect("it was made");
    assert!(name.starts_with("p-extended-resources-"), "{name}");
    let lines = world
        .writes()
        .into_iter()
        .map(|it| it.replace(&name, "CLAIM"));
    let lines: Vec<String> = lines.filter(|it| !it.contains("Queue")).collect();
    assert_eq!(
        lines,
        [
            "create ResourceClaim CLAIM",
            "patch ResourceClaim CLAIM",
            "patch ResourceClaim CLAIM",
            "patch Pod p",
            "bind Pod p",
        ]
    );
    assert_eq!(node_of(&world, "p"), "n2");
    let claim = world.object(Kind::ResourceClaim, &name);
    let meta = &claim["metadata"];
    assert_eq!(
        meta["annotations"],
        json!({ "resource.kubernetes.io/extended-resource-claim": "true" })
    );
    assert_eq!(
        meta["ownerReferences"],
        json!([{ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": true }])
    );
    let exactly = json!({ "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2 });
    assert_eq!(
        claim["spec"]["devices"]["requests"],
        json!([{ "name": "container-0-request-1", "exactly": exactly }])
    );
    assert_eq!(
        devices(&world, &name),
        [
            "container-0-request-1=n2/gpu-0",
            "container-0-request-1=n2/gpu-1"
        ]
    );
    let user = json!({ "resource": "pods", "name": "p", "uid": "uid-p" });
    assert_eq!(claim["status"]["reservedFor"], json!([user]));
    let mapping = json!({ "containerName": "c", "resourceName": CHIP, "requestName": "container-0-request-1" });
    assert_eq!(
        world.object(Kind::Pod, "p")["status"]["extendedResourceClaimStatus"],
        json!({ "requestMappings": [mapping], "resourceClaimName": name })
    );
}

#[test]
fn a_node_that_has_the_resource_itself_gives_it_without_a_claim() {
    let mut world = chips();
    node(&mut world, "n1", &[]);
    has_chips(&mut world, "n1", 1);
    asks(&mut world, "p", CHIP, 1);
    world.pass_ms(2_000);
    assert_eq!(
        (node_of(&world, "p").as_str(), claim_of(&world, "p")),
        ("n1", None)
    );
    // Its devices are nobody's business then.
    node(&mut world, "n1", &["a100"]);
    has_chips(&mut world, "n1", 1);
    asks(&mut world, "q", CHIP, 1);
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "q"), "-");
    assert!(why(&world, "q").contains(CHIP), "{}", why(&world, "q"));
    // Without its device plugin it has them by its devices.
    run_to_its_end(&mut world, "p");
    has_chips(&mut world, "n1", 0);
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "q"), "n1");
    assert!(claim_of(&world, "q").is_some());
}

fn run_to_its_end(world: &mut World, name: &str) {
    for phase in ["Running", "Succeeded"] {
        world.put_object(Kind::Pod, name, &json!({ "status": { "phase": phase } }));
    }
}

#[test]
fn any_class_serves_a_resource_of_its_own_name() {
    let mut world = plane();
    node(&mut world, "n1", &["a100"]);
    asks(&mut world, "p", "deviceclass.resource.kubernetes.io/gpu", 1);
    asks(&mut world, "q", "deviceclass.resource.kubernetes.io/nic", 1);
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "p"), "n1");
    let claim = claim_of(&world, "p").expect("it was made");
    assert_eq!(devices(&world, &claim), ["container-0-request-1=n1/gpu-0"]);
    assert_eq!(
        (node_of(&world, "q").as_str(), claim_of(&world, "q")),
        ("-", None)
    );
}

#[test]
fn the_newest_class_serves_and_of_those_made_at_a_time_the_first() {
    for (made, expected) in [
        ("2026-02-01", "gpu"),
        ("2026-01-01", "any"),
        ("2025-12-01", "any"),
    ] {
        let mut world = chips();
        node(&mut world, "n1", &["a100"]);
        let serves = json!({ "extendedResourceName": CHIP });
        let gpu = json!({ "metadata": { "creationTimestamp": format!("{made}T00:00:00Z") } });
        world.put_object(Kind::DeviceClass, "gpu", &gpu);
        world.put_object(Kind::DeviceClass, "any", &json!({ "spec": serves }));
        asks(&mut world, "p", CHIP, 1);
        world.pass_ms(2_000);
        let claim = claim_of(&world, "p").expect("it was made");
        let requests = &world.object(Kind::ResourceClaim, &claim)["spec"]["devices"]["requests"];
        assert_eq!(
            requests[0]["exactly"]["deviceClassName"], expected,
            "{made}"
        );
    }
}

#[test]
fn what_pods_and_claims_have_is_given_to_nobody_else() {
    let mut world = chips();
    node(&mut world, "n1", &["a100", "a100"]);
    super::claim(&mut world, "mine", json!({}));
    super::pod(&mut world, "o", "mine");
    asks(&mut world, "p", CHIP, 1);
    world.pass_ms(2_000);
    asks(&mut world, "q", CHIP, 1);
    world.pass_ms(2_000);
    assert_eq!(
        [
            node_of(&world, "o"),
            node_of(&world, "p"),
            node_of(&world, "q")
        ],
        ["n1", "n1", "-"]
    );
    assert!(
        why(&world, "q").contains("devices are taken"),
        "{}",
        why(&world, "q")
    );
    // The claim of a pod that is over goes with it; here nobody is there to see to that but the test.
    run_to_its_end(&mut world, "p");
    let claim = claim_of(&world, "p").expect("it was made");
    world.delete_object(Kind::ResourceClaim, &claim);
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "q"), "n1");
}

#[test]
fn all_pods_of_a_gang_have_their_claims_before_one_is_bound() {
    let mut world = chips();
    node(&mut world, "n1", &["a100"]);
    node(&mut world, "n2", &["a100"]);
    let group = json!({
        "spec": { "minMember": 2, "queue": "default" }, "status": { "phase": "Inqueue" },
    });
    world.put_object(Kind::PodGroup, "together", &group);
    for name in ["p-0", "p-1"] {
        let annotations = json!({ "scheduling.k8s.io/group-name": "together" });
        let of_gang = json!({ "metadata": { "annotations": annotations } });
        world.put_object(Kind::Pod, name, &of_gang);
        asks(&mut world, name, CHIP, 1);
    }
    world.pass_ms(2_000);
    let lines = world.writes();
    let first_bind = lines.iter().position(|it| it.starts_with("bind"));
    let last_claim = lines.iter().rposition(|it| it.contains("ResourceClaim"));
    assert!(last_claim < first_bind, "{lines:?}");
    assert_eq!(
        [node_of(&world, "p-0"), node_of(&world, "p-1")],
        ["n1", "n2"]
    );
}

#[test]
fn a_class_that_comes_later_wakes_who_waits_for_its_resource() {
    let mut world = plane();
    node(&mut world, "n1", &["a100"]);
    asks(&mut world, "p", CHIP, 1);
    world.pass_ms(2_000);
    assert_eq!(
        (node_of(&world, "p").as_str(), claim_of(&world, "p")),
        ("-", None)
    );
    let serves = json!({ "spec": { "extendedResourceName": CHIP } });
    world.put_object(Kind::DeviceClass, "gpu", &serves);
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "p"), "n1");
    // And of whom it serves no more nobody else gets any.
    let other = json!({ "spec": { "extendedResourceName": "example.com/other" } });
    world.put_object(Kind::DeviceClass, "gpu", &other);
    node(&mut world, "n2", &["a100"]);
    asks(&mut world, "q", CHIP, 1);
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "q"), "-");
}

/// A vcjob's pods are made when its gang was let in, for which there must be room.
#[test]
fn a_gang_is_let_in_for_what_devices_could_serve() {
    for is_class_first in [true, false] {
        let mut world = plane();
        node(&mut world, "n1", &["a100", "a100"]);
        let serves = json!({ "spec": { "extendedResourceName": CHIP } });
        if is_class_first {
            world.put_object(Kind::DeviceClass, "gpu", &serves);
        }
        for (name, chips) in [("fits", "2"), ("never", "4")] {
            let least = json!({ "cpu": "1", CHIP: chips });
            let spec = json!({ "minMember": 1, "queue": "default", "minResources": least });
            let group = json!({ "spec": spec, "status": { "phase": "Pending" } });
            world.put_object(Kind::PodGroup, name, &group);
        }
        world.pass_ms(2_000);
        if !is_class_first {
            world.put_object(Kind::DeviceClass, "gpu", &serves);
            world.pass_ms(2_000);
        }
        let phase = |name: &str| world.object(Kind::PodGroup, name)["status"]["phase"].clone();
        assert_eq!(
            (phase("fits"), phase("never")),
            (json!("Inqueue"), json!("Pending"))
        );
    }
}

/// A claim that was made for the pod p before, by somebody who did not come to bind it.
fn was_made(world: &mut World, count: u32) {
    let exactly =
        json!({ "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count });
    let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": true });
    let claim = json!({
        "metadata": {
            "annotations": { "resource.kubernetes.io/extended-resource-claim": "true" },
            "ownerReferences": [owner],
        },
        "spec": { "devices": { "requests": [{ "name": "container-0-request-1", "exactly": exactly }] } },
    });
    world.put_object(Kind::ResourceClaim, "before", &claim);
}

#[test]
fn a_claim_that_was_made_before_is_used_and_takes_its_pod_to_its_devices() {
    let mut world = chips();
    node(&mut world, "n1", &["a100"]);
    node(&mut world, "n2", &["a100"]);
    was_made(&mut world, 1);
    has_device_of_n2(&mut world, "before");
    asks(&mut world, "p", CHIP, 1);
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "p"), "n2");
    assert_eq!(about_claims(&mut world), ["bind Pod p"]);
    let told = &world.object(Kind::Pod, "p")["status"]["extendedResourceClaimStatus"];
    assert_eq!(told["resourceClaimName"], "before");
}

#[test]
fn a_claim_that_asks_for_something_else_is_made_anew() {
    let mut world = chips();
    node(&mut world, "n1", &["a100", "a100"]);
    was_made(&mut world, 2);
    asks(&mut world, "p", CHIP, 1);
    world.pass_ms(4_000);
    assert_eq!(node_of(&world, "p"), "n1");
    assert!(world.try_object(Kind::ResourceClaim, "before").is_none());
    let claim = claim_of(&world, "p").expect("it was made");
    assert_eq!(devices(&world, &claim), ["container-0-request-1=n1/gpu-0"]);
}

#[test]
fn nobody_gets_devices_for_resources_where_nobody_gives_devices() {
    let conf = "
actions: \"allocate\"
tiers:
- plugins:
  - name: gang
  - name: predicates
    arguments: {predicate.DynamicResourceAllocationEnable: false}
";
    let conf = scheduler_conf::read(conf.as_bytes())
        .accepted()
        .expect("it is understood");
    let rules = engine::Settings {
        placement: conf.placement.clone(),
        ..engine::Settings::default()
    };
    let (engine, problems) = Engine::new(rules).expect("its actions are known");
    assert!(problems.is_empty(), "{problems:?}");
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings {
        lone_scheduler_names: vec!["volcano".into()],
        ..EngineSettings::new(engine)
    });
    let mut world = World::new(settings);
    world.put_queues();
    let mut class = class();
    class["spec"]["extendedResourceName"] = json!(CHIP);
    world.put_object(Kind::DeviceClass, "gpu", &class);
    node(&mut world, "n1", &["a100"]);
    asks(&mut world, "p", CHIP, 1);
    world.pass_ms(2_000);
    assert_eq!(
        (node_of(&world, "p").as_str(), claim_of(&world, "p")),
        ("-", None)
    );
}
