//! Taints that rules put on devices, whoever drives them.

use api::kind::Kind;
use serde_json::{Value, json};

use super::world::World;
use super::{claim, devices, node, node_of, plane, pod, why};

fn rule(world: &mut World, name: &str, selector: &Value, effect: &str) {
    let taint = json!({ "key": "repair", "value": "fan", "effect": effect });
    let spec = json!({ "deviceSelector": selector, "taint": taint });
    world.put_object(Kind::DeviceTaintRule, name, &json!({ "spec": spec }));
}

/// The device that a claim gets on a node with two while a rule selects so.
fn given(selector: &Value, effect: &str, request: Value) -> String {
    let mut world = plane();
    node(&mut world, "n1", &["a100", "h100"]);
    rule(&mut world, "r", selector, effect);
    claim(&mut world, "mine", request);
    pod(&mut world, "p", "mine");
    world.pass_ms(2_000);
    match devices(&world, "mine").first() {
        Some(device) => device.rsplit('/').next().unwrap_or_default().to_owned(),
        None => "none".to_owned(),
    }
}

#[test]
fn a_rule_keeps_claims_off_the_devices_that_it_selects() {
    let of_model = |model: &str| {
        let expression = format!("device.attributes['gpu.example.com'].model == '{model}'");
        json!([{ "cel": { "expression": expression } }])
    };
    let broken =
        json!([{ "cel": { "expression": "device.attributes['gpu.example.com'].size > 3" } }]);
    for (selector, expected) in [
        (json!({ "device": "gpu-0" }), "gpu-1"),
        (json!({ "device": "gpu-1" }), "gpu-0"),
        (
            json!({ "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0" }),
            "gpu-1",
        ),
        (
            json!({ "driver": "nic.example.com", "device": "gpu-0" }),
            "gpu-0",
        ),
        (json!({ "pool": "n2", "device": "gpu-0" }), "gpu-0"),
        (json!({ "pool": "n1" }), "none"),
        (json!({}), "none"),
        (Value::Null, "gpu-0"),
        // What rules could say until Kubernetes 1.34.
        (json!({ "deviceClassName": "gpu" }), "none"),
        (json!({ "deviceClassName": "nic" }), "gpu-0"),
        (json!({ "selectors": of_model("a100") }), "gpu-1"),
        (json!({ "selectors": of_model("h100") }), "gpu-0"),
        (
            json!({ "deviceClassName": "gpu", "selectors": of_model("a100") }),
            "gpu-1",
        ),
        (json!({ "selectors": broken }), "gpu-0"),
    ] {
        let got = given(&selector, "NoSchedule", json!({}));
        assert_eq!(got, expected, "{selector}");
    }
}

#[test]
fn its_effect_counts_and_whoever_bears_it_has_the_device() {
    let all = json!({});
    let bears = |toleration: Value| json!({ "tolerations": [toleration] });
    for (effect, request, expected) in [
        ("NoSchedule", json!({}), "none"),
        ("NoExecute", json!({}), "none"),
        ("None", json!({}), "gpu-0"),
        (
            "NoSchedule",
            bears(json!({ "operator": "Exists" })),
            "gpu-0",
        ),
        (
            "NoExecute",
            bears(json!({ "key": "repair", "value": "fan" })),
            "gpu-0",
        ),
        (
            "NoExecute",
            bears(json!({ "key": "repair", "value": "fan", "effect": "NoSchedule" })),
            "none",
        ),
        (
            "NoSchedule",
            bears(json!({ "key": "repair", "value": "dust" })),
            "none",
        ),
    ] {
        let got = given(&all, effect, request.clone());
        assert_eq!(got, expected, "{effect} {request}");
    }
}

#[test]
fn a_rule_that_goes_or_changes_wakes_who_waits() {
    let mut world = plane();
    node(&mut world, "n1", &["a100"]);
    rule(
        &mut world,
        "r",
        &json!({ "driver": "gpu.example.com" }),
        "NoExecute",
    );
    claim(&mut world, "mine", json!({}));
    pod(&mut world, "p", "mine");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "p"), "-");
    assert!(why(&world, "p").contains("without the devices that it claims"));
    rule(
        &mut world,
        "r",
        &json!({ "driver": "nic.example.com" }),
        "NoExecute",
    );
    world.pass_ms(2_000);
    assert_eq!(devices(&world, "mine"), ["r=n1/gpu-0"]);
    rule(&mut world, "r", &json!({ "driver": null }), "NoExecute");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "p"), "n1", "who has a device keeps it");
    node(&mut world, "n2", &["a100"]);
    claim(&mut world, "late", json!({}));
    pod(&mut world, "q", "late");
    world.pass_ms(2_000);
    assert_eq!(
        node_of(&world, "q"),
        "-",
        "devices that come later have the taint, too"
    );
    world.delete_object(Kind::DeviceTaintRule, "r");
    world.pass_ms(2_000);
    assert_eq!(devices(&world, "late"), ["r=n2/gpu-0"]);
}

#[test]
fn a_class_that_comes_later_says_which_devices_a_rule_means() {
    let mut world = plane();
    node(&mut world, "n1", &["a100"]);
    rule(
        &mut world,
        "r",
        &json!({ "deviceClassName": "old" }),
        "NoSchedule",
    );
    let expression = "device.attributes['gpu.example.com'].model == 'a100'";
    let class = json!({ "spec": { "selectors": [{ "cel": { "expression": expression } }] } });
    world.put_object(Kind::DeviceClass, "old", &class);
    claim(&mut world, "mine", json!({}));
    pod(&mut world, "p", "mine");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "p"), "-");
    world.delete_object(Kind::DeviceClass, "old");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "p"), "n1");
}
