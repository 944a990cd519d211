//! What the real server fills in for kinds that are seldom written: policies, autoscalers, drivers of
//! storage, priorities.

use serde_json::{Value, json};

use super::{items_of, set_missing, set_number};

/// Fills in the defaults of such a kind.
pub(super) fn default(group: &str, kind: &str, object: &mut Value) {
    match (group, kind) {
        (
            "admissionregistration.k8s.io",
            "MutatingAdmissionPolicy" | "ValidatingAdmissionPolicy",
        ) => {
            set_missing(&mut object["spec"], "failurePolicy", || json!("Fail"));
            matched(object, "matchConstraints");
        }
        (
            "admissionregistration.k8s.io",
            "MutatingAdmissionPolicyBinding" | "ValidatingAdmissionPolicyBinding",
        ) => matched(object, "matchResources"),
        ("autoscaling", "HorizontalPodAutoscaler") => scaling(object),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => {
            for part in ["exempt", "limited"] {
                let shares = if part == "limited" { 30 } else { 0 };
                if let Some(part) = object["spec"].get_mut(part).filter(|part| part.is_object()) {
                    set_missing(part, "lendablePercent", || json!(0));
                    set_missing(part, "nominalConcurrencyShares", || json!(shares));
                }
            }
            let queuing = object.pointer_mut("/spec/limited/limitResponse/queuing");
            if let Some(queuing) = queuing.filter(|it| it.is_object()) {
                for (number, default) in [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)]
                {
                    set_number(queuing, number, default);
                }
            }
        }
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => {
            set_number(&mut object["spec"], "matchingPrecedence", 1_000);
            for rule in items_of(&mut object["spec"], "rules") {
                for rule in items_of(rule, "resourceRules") {
                    // Told also where they are none.
                    set_missing(rule, "namespaces", || Value::Null);
                }
            }
        }
        ("apiregistration.k8s.io", "APIService") => {
            let service = object.pointer_mut("/spec/service");
            if let Some(service) = service.filter(|it| it.is_object()) {
                set_missing(service, "port", || json!(443));
            }
        }
        ("storage.k8s.io", "CSIDriver") => driver(&mut object["spec"]),
        _ => {}
    }
}

/// What a policy is asked about.
fn matched(object: &mut Value, name: &str) {
    let spec = object.get_mut("spec");
    let resources = spec.and_then(|spec| spec.get_mut(name));
    let Some(resources) = resources.filter(|it| it.is_object()) else {
        return;
    };
    set_missing(resources, "matchPolicy", || json!("Equivalent"));
    set_missing(resources, "namespaceSelector", || json!({}));
    set_missing(resources, "objectSelector", || json!({}));
    for rules in ["resourceRules", "excludeResourceRules"] {
        for rule in items_of(resources, rules) {
            set_missing(rule, "scope", || json!("*"));
        }
    }
}

/// One replica at least; in the newer version four fifths of the cpu that is asked for, where nothing
/// else is measured.
fn scaling(object: &mut Value) {
    let is_old = object["apiVersion"] == "autoscaling/v1";
    let spec = &mut object["spec"];
    set_missing(spec, "minReplicas", || json!(1));
    if !is_old && items_of(spec, "metrics").next().is_none() {
        let target = json!({ "type": "Utilization", "averageUtilization": 80 });
        spec["metrics"] =
            json!([{ "type": "Resource", "resource": { "name": "cpu", "target": target } }]);
    }
    // Who says how to scale one way says how to scale both ways.
    if let Some(behavior) = spec.get_mut("behavior").filter(|it| it.is_object()) {
        let policy =
            |kind: &str, value: u32| json!({ "type": kind, "value": value, "periodSeconds": 15 });
        let up = rule(
            behavior,
            "scaleUp",
            vec![policy("Pods", 4), policy("Percent", 100)],
        );
        set_missing(up, "stabilizationWindowSeconds", || json!(0));
        rule(behavior, "scaleDown", vec![policy("Percent", 100)]);
    }
}

/// A rule about scaling in one direction, with what it leaves out.
fn rule<'b>(behavior: &'b mut Value, direction: &str, policies: Vec<Value>) -> &'b mut Value {
    let rule = &mut behavior[direction];
    if !rule.is_object() {
        *rule = json!({});
    }
    set_missing(rule, "selectPolicy", || json!("Max"));
    set_missing(rule, "policies", || json!(policies));
    rule
}

fn driver(spec: &mut Value) {
    set_missing(spec, "attachRequired", || json!(true));
    set_missing(spec, "podInfoOnMount", || json!(false));
    set_missing(spec, "storageCapacity", || json!(false));
    set_missing(spec, "fsGroupPolicy", || json!("ReadWriteOnceWithFSType"));
    set_missing(spec, "volumeLifecycleModes", || json!(["Persistent"]));
    set_missing(spec, "requiresRepublish", || json!(false));
    set_missing(spec, "seLinuxMount", || json!(false));
}
