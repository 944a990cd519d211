//! Rules that taint devices, in a copy of a cluster: they are made, checked and deleted as where Kubernetes
//! serves them.

use serde_json::{Value, json};
use sim::{Change, WHAT_IF};

use crate::rehearsed::{node, rehearsal, tried};
use crate::rehearsed_changes::one_waits;

const DEVICES: &str = "resource.k8s.io/v1";
const RULES: &str = "resource.k8s.io/v1beta2";

/// So many devices of one driver on the only node.
fn slice(devices: usize) -> Value {
    let devices = (0..devices).map(|at| json!({ "name": format!("gpu-{at}") }));
    json!({
        "apiVersion": DEVICES, "kind": "ResourceSlice", "metadata": { "name": "n1-gpu" },
        "spec": {
            "driver": "gpu.example.com", "nodeName": "n1",
            "pool": { "name": "n1", "generation": 1, "resourceSliceCount": 1 },
            "devices": devices.collect::<Vec<_>>(),
        },
    })
}

/// A pod waits for a device, where there is none.
fn bare() -> Vec<Value> {
    let class = json!({
        "apiVersion": DEVICES, "kind": "DeviceClass", "metadata": { "name": "gpu" },
        "spec": { "selectors": [{ "cel": { "expression": "device.driver == 'gpu.example.com'" } }] },
    });
    let claim = json!({
        "apiVersion": DEVICES, "kind": "ResourceClaim",
        "metadata": { "name": "mine", "namespace": "team-a" },
        "spec": { "devices": { "requests": [{ "name": "r", "exactly": {
            "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1,
        } }] } },
    });
    let mut waits = one_waits(node("n1", "4"));
    waits[3]["spec"]["resourceClaims"] = json!([{ "name": "gpu", "resourceClaimName": "mine" }]);
    waits[3]["spec"]["containers"][0]["resources"]["claims"] = json!([{ "name": "gpu" }]);
    waits.extend([class, claim]);
    waits
}

fn with(mut cluster: Vec<Value>, more: &[&Value]) -> Vec<Value> {
    cluster.extend(more.iter().map(|it| (*it).clone()));
    cluster
}

fn rule(selector: &Value) -> Value {
    json!({
        "apiVersion": RULES, "kind": "DeviceTaintRule", "metadata": { "name": "repair" },
        "spec": {
            "deviceSelector": selector,
            "taint": { "key": "example.com/repair", "value": "fan", "effect": "NoSchedule" },
        },
    })
}

fn everything() -> Value {
    rule(&json!({ "driver": "gpu.example.com" }))
}

fn delete() -> Value {
    json!({ "apiVersion": WHAT_IF, "kind": "Delete", "objects": [{
        "apiVersion": RULES, "kind": "DeviceTaintRule", "name": "repair",
    }] })
}

fn starts(cluster: Vec<Value>, changes: &[Value]) -> usize {
    tried(cluster, changes).starts.len()
}

#[test]
fn a_rule_taints_the_devices_of_a_copy_whichever_comes_first() {
    let slice = || slice(1);
    assert_eq!(starts(bare(), &[slice()]), 1);
    assert_eq!(starts(bare(), &[everything(), slice()]), 0);
    assert_eq!(starts(bare(), &[slice(), everything()]), 0);
    let other = rule(&json!({ "driver": "nic.example.com" }));
    assert_eq!(starts(bare(), &[everything(), slice(), other]), 1);
}

#[test]
fn a_rule_that_was_there_goes_or_becomes_another() {
    let ruled = || with(bare(), &[&slice(1), &everything()]);
    assert_eq!(starts(ruled(), &[]), 0);
    assert_eq!(starts(ruled(), &[delete()]), 1);
    assert_eq!(starts(ruled(), &[slice(1)]), 0);
    for (selector, expected) in [
        (json!({ "pool": "n1" }), 0),
        (json!({ "driver": "gpu.example.com", "device": "gpu-0" }), 0),
        (json!({ "driver": "gpu.example.com", "device": "gpu-1" }), 1),
        (json!({ "driver": "nic.example.com" }), 1),
        (json!({}), 0),
        // As it could be asked until Kubernetes 1.34.
        (json!({ "deviceClassName": "gpu" }), 0),
        (json!({ "deviceClassName": "nic" }), 1),
        (
            json!({ "selectors": [{ "cel": { "expression": "device.driver == 'nic'" } }] }),
            1,
        ),
    ] {
        let changes = [delete(), rule(&selector)];
        assert_eq!(starts(ruled(), &changes), expected, "{selector}");
    }
}

#[test]
fn a_rule_taints_a_slice_of_as_many_devices_as_there_may_be() {
    // More than 64 may not be in a slice that tells of taints itself.
    let large = || with(bare(), &[&slice(128)]);
    assert_eq!(starts(with(bare(), &[&everything()]), &[slice(128)]), 0);
    assert_eq!(starts(with(large(), &[&everything()]), &[]), 0);
    assert_eq!(starts(with(large(), &[&everything()]), &[delete()]), 1);
    assert_eq!(starts(with(large(), &[&everything()]), &[slice(127)]), 0);
}

#[test]
fn a_rule_that_only_informs_keeps_nobody_off() {
    let with_effect = |effect: &str| {
        let mut rule = everything();
        rule["spec"]["taint"]["effect"] = json!(effect);
        rule
    };
    let told = |effect| starts(bare(), &[with_effect(effect), slice(1)]);
    assert_eq!(["NoSchedule", "NoExecute", "None"].map(told), [0, 0, 1]);
}

#[test]
fn what_is_wrong_with_a_rule_is_told_by_its_field() {
    let mut copy = rehearsal(with(bare(), &[&slice(1)]));
    let mut refused = |document: &Value| {
        let change = Change::read(document, "team-a").expect("it is understood");
        let refused = copy.change(&change);
        let told = refused.into_iter().map(|it| (it.code, it.what, it.message));
        told.collect::<Vec<_>>()
    };
    let missing = refused(&delete());
    assert_eq!(
        (missing[0].0, &*missing[0].1),
        (404, "delete DeviceTaintRule repair")
    );
    for (field, value, expected) in [
        (
            "effect",
            json!(""),
            "spec.taint.effect: Unsupported value: \"\"",
        ),
        (
            "effect",
            json!("Never"),
            "supported values: \"NoExecute\", \"NoSchedule\", \"None\"",
        ),
        ("effect", Value::Null, "spec.taint.effect: Required value"),
        (
            "key",
            json!("a/b/c"),
            "spec.taint.key: Invalid value: \"a/b/c\"",
        ),
        ("key", json!(""), "spec.taint.key: Invalid value"),
        (
            "value",
            json!("not so"),
            "spec.taint.value: Invalid value: \"not so\"",
        ),
    ] {
        let mut wrong = everything();
        wrong["spec"]["taint"][field] = value.clone();
        let told = refused(&wrong);
        assert_eq!(
            (told.len(), told[0].0),
            (1, 422),
            "{field} {value}: {told:?}"
        );
        assert!(told[0].2.contains(expected), "{}", told[0].2);
    }
    let mut none = everything();
    none["spec"]["taint"] = Value::Null;
    assert!(refused(&none)[0].2.contains("spec.taint: Required value"));
    assert_eq!(refused(&everything()), []);
    assert_eq!(refused(&delete()), []);
}
