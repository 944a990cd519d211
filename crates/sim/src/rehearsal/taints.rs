//! Rules that taint devices, put where the devices are: the store of a rehearsal serves no rules, as
//! Kubernetes' own does not unless it is told to, and what devices say themselves counts the same.

use api::kind::Kind;
use api::resource::{DeviceTaintRule, DeviceTaintSelector};
use serde::Deserialize;
use serde_json::{Value, json};

/// The objects without rules, whose taints stand on the devices that they select; and how many rules could
/// not be put anywhere, for they ask about more than names.
pub(super) fn on_devices(objects: Vec<Value>) -> (Vec<Value>, usize) {
    let (rules, mut objects): (Vec<Value>, Vec<Value>) = objects
        .into_iter()
        .partition(|object| is_a(object, Kind::DeviceTaintRule));
    let mut left_out = 0;
    for rule in &rules {
        match DeviceTaintRule::deserialize(rule) {
            Ok(DeviceTaintRule { spec, .. }) if spec.device_selector.is_none() => {}
            Ok(DeviceTaintRule { spec, .. }) => {
                let selector = spec.device_selector.unwrap_or_default();
                if selector.device_class_name.is_some() || !selector.selectors.is_empty() {
                    left_out += 1;
                    continue;
                }
                for slice in objects
                    .iter_mut()
                    .filter(|it| is_a(it, Kind::ResourceSlice))
                {
                    taint(slice, &selector, &rule["spec"]["taint"]);
                }
            }
            Err(_) => left_out += 1,
        }
    }
    (objects, left_out)
}

fn is_a(object: &Value, kind: Kind) -> bool {
    Kind::find(
        super::said(object, "apiVersion"),
        super::said(object, "kind"),
    ) == Some(kind)
}

fn taint(slice: &mut Value, selector: &DeviceTaintSelector, taint: &Value) {
    let spec = &mut slice["spec"];
    let is_meant = |wanted: &Option<Box<str>>, name: &Value| {
        wanted.as_ref().is_none_or(|wanted| *name == **wanted)
    };
    if !is_meant(&selector.driver, &spec["driver"])
        || !is_meant(&selector.pool, &spec["pool"]["name"])
    {
        return;
    }
    let devices = spec["devices"].as_array_mut().into_iter().flatten();
    for device in devices.filter(|device| is_meant(&selector.device, &device["name"])) {
        match device["taints"].as_array_mut() {
            Some(taints) => taints.push(taint.clone()),
            None => device["taints"] = json!([taint]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(driver: &str, pool: &str, devices: &[&str]) -> Value {
        let devices: Vec<Value> = devices.iter().map(|name| json!({ "name": name })).collect();
        let spec = json!({ "driver": driver, "pool": { "name": pool }, "devices": devices });
        json!({ "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "spec": spec })
    }

    fn rule(selector: &Value) -> Value {
        let taint = json!({ "key": "repair", "effect": "NoSchedule" });
        let spec = json!({ "deviceSelector": selector, "taint": taint });
        json!({ "apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "spec": spec })
    }

    /// Which devices have the taint, and how many rules were left out.
    fn tainted(selector: &Value) -> (Vec<String>, usize) {
        let objects = vec![
            rule(selector),
            slice("gpu", "n1", &["a", "b"]),
            slice("gpu", "n2", &["a"]),
            slice("nic", "n1", &["a"]),
        ];
        let (objects, left_out) = on_devices(objects);
        let mut names = Vec::new();
        for spec in objects.iter().map(|it| &it["spec"]) {
            for device in spec["devices"].as_array().expect("a list") {
                if device["taints"][0]["key"] == "repair" {
                    let place = [&spec["driver"], &spec["pool"]["name"], &device["name"]];
                    let place = place.map(|it| it.as_str().unwrap_or_default());
                    names.push(place.join("/"));
                }
            }
        }
        (names, left_out)
    }

    #[test]
    fn a_rule_stands_on_the_devices_that_it_selects() {
        for (selector, expected, left_out) in [
            (json!({}), "gpu/n1/a gpu/n1/b gpu/n2/a nic/n1/a", 0),
            (
                json!({ "driver": "gpu", "device": "a" }),
                "gpu/n1/a gpu/n2/a",
                0,
            ),
            (json!({ "pool": "n1" }), "gpu/n1/a gpu/n1/b nic/n1/a", 0),
            (Value::Null, "", 0),
            (json!({ "deviceClassName": "gpu" }), "", 1),
        ] {
            let (names, out) = tainted(&selector);
            assert_eq!(
                (names.join(" ").as_str(), out),
                (expected, left_out),
                "{selector}"
            );
        }
    }
}
