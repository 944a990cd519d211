//! Rules that taint devices, put where the devices are: the store of a rehearsal serves no rules, as
//! Kubernetes' own does not unless it is told to, and what devices say themselves counts the same.

use std::collections::BTreeMap;

use api::kind::Kind;
use api::resource::{DeviceTaintRule, DeviceTaintSelector};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Named, Refused, Rehearsal, place, said};
use crate::calls;

/// One rule that asks about nothing but names.
#[derive(Clone, Debug)]
struct Rule {
    /// Which devices; none where there is none.
    selector: Option<DeviceTaintSelector>,
    /// What is put on them, as it is written.
    taint: Value,
}

/// The rules that there are, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules(BTreeMap<String, Rule>);

/// Why a rule does nothing here: an HTTP code and why.
type Refusal = (u16, String);

impl Rules {
    /// Takes the rules out of a list of objects and puts their taints on the devices that they select; and says
    /// how many rules could not be put anywhere.
    pub(super) fn on_devices(objects: Vec<Value>) -> (Rules, Vec<Value>, usize) {
        let (rules, mut objects): (Vec<Value>, Vec<Value>) = objects
            .into_iter()
            .partition(|object| is_a(object, Kind::DeviceTaintRule));
        let mut known = Rules::default();
        let mut left_out = 0;
        for rule in &rules {
            match Rule::read(rule) {
                Ok(read) => drop(known.0.insert(place(rule).1.to_owned(), read)),
                Err(_) => left_out += 1,
            }
        }
        for slice in (objects.iter_mut()).filter(|it| is_a(it, Kind::ResourceSlice)) {
            known.put(slice);
        }
        (known, objects, left_out)
    }

    fn put(&self, slice: &mut Value) {
        self.each(slice, |device, taint| {
            match device["taints"].as_array_mut() {
                Some(taints) => taints.push(taint.clone()),
                None => device["taints"] = json!([taint]),
            }
        });
    }

    /// Leaves what devices say themselves, be it the same.
    fn take_back(&self, slice: &mut Value) {
        self.each(slice, |device, taint| {
            let taints = device.get_mut("taints").and_then(Value::as_array_mut);
            if let Some(taints) = taints
                && let Some(last) = taints.iter().rposition(|it| it == taint)
            {
                taints.remove(last);
            }
        });
    }

    /// Every device of a slice with every taint that rules put on it.
    fn each(&self, slice: &mut Value, alter: impl Fn(&mut Value, &Value)) {
        let Some(spec) = slice.get_mut("spec") else {
            return;
        };
        let (driver, pool) = (spec["driver"].clone(), spec["pool"]["name"].clone());
        let is_meant = |wanted: &Option<Box<str>>, name: &Value| {
            wanted.as_ref().is_none_or(|wanted| *name == **wanted)
        };
        let devices = spec.get_mut("devices").and_then(Value::as_array_mut);
        for device in devices.into_iter().flatten() {
            for rule in self.0.values() {
                let is_selected = rule.selector.as_ref().is_some_and(|selector| {
                    is_meant(&selector.driver, &driver)
                        && is_meant(&selector.pool, &pool)
                        && is_meant(&selector.device, &device["name"])
                });
                if is_selected {
                    alter(device, &rule.taint);
                }
            }
        }
    }
}

impl Rule {
    fn read(object: &Value) -> Result<Rule, Refusal> {
        let rule =
            DeviceTaintRule::deserialize(object).map_err(|error| (400, error.to_string()))?;
        let taint = &rule.spec.taint;
        for (field, text) in [("key", &taint.key), ("effect", &taint.effect)] {
            if text.is_empty() {
                return Err((422, format!("spec.taint.{field}: Required value")));
            }
        }
        let selector = rule.spec.device_selector;
        let asks =
            |it: &DeviceTaintSelector| it.device_class_name.is_some() || !it.selectors.is_empty();
        if selector.as_ref().is_some_and(asks) {
            let why = "a rule that asks about more than driver, pool and name of devices is not tried here";
            return Err((501, why.to_owned()));
        }
        Ok(Rule {
            selector,
            taint: object["spec"]["taint"].clone(),
        })
    }
}

impl Rehearsal {
    /// A rule is made or becomes another one.
    pub(super) fn apply_rule(&mut self, key: &Named, object: &Value) -> Vec<Refused> {
        match Rule::read(object) {
            Ok(rule) => self.untainted(|it| {
                it.rules.0.insert(key.name().to_owned(), rule);
                Vec::new()
            }),
            Err((code, message)) => vec![Refused {
                what: format!("apply {}", key.title()),
                code,
                message,
            }],
        }
    }

    /// A rule goes, and what it put on devices with it.
    pub(super) fn delete_rule(&mut self, key: &Named) -> Option<Refused> {
        if !self.rules.0.contains_key(key.name()) {
            return Some(Refused {
                what: format!("delete {}", key.title()),
                code: 404,
                message: "there is no such rule".to_owned(),
            });
        }
        let refused = self.untainted(|it| {
            it.rules.0.remove(key.name());
            Vec::new()
        });
        refused.into_iter().next()
    }

    /// Makes a change of rules, or of slices, while no rule's taint stands on any slice, and puts those on that
    /// there are then.
    pub(super) fn untainted(
        &mut self,
        change: impl FnOnce(&mut Rehearsal) -> Vec<Refused>,
    ) -> Vec<Refused> {
        let mut refused = self.retaint(Rules::take_back);
        refused.extend(change(self));
        refused.extend(self.retaint(Rules::put));
        refused
    }

    fn retaint(&mut self, alter: fn(&Rules, &mut Value)) -> Vec<Refused> {
        let mut refused = Vec::new();
        for slice in self.objects(Kind::ResourceSlice) {
            let mut altered = slice.clone();
            alter(&self.rules, &mut altered);
            if altered == slice {
                continue;
            }
            let name = place(&slice).1;
            let patch = json!({ "spec": { "devices": altered["spec"]["devices"] } });
            let call = calls::merge(&Kind::ResourceSlice.path("", name), &patch);
            refused.extend(self.tried(format!("taint ResourceSlice {name}"), &call));
        }
        refused
    }
}

fn is_a(object: &Value, kind: Kind) -> bool {
    Kind::find(said(object, "apiVersion"), said(object, "kind")) == Some(kind)
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
        let (_, objects, left_out) = Rules::on_devices(objects);
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
