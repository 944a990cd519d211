use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::*;
use crate::wire::Wire;

fn amount() -> impl Strategy<Value = Value> {
    prop_oneof![Just("5"), Just("500m"), Just("1Gi"), Just("1k")].prop_map(Value::from)
}

fn selector() -> impl Strategy<Value = Option<Value>> {
    let labels = json!({ "matchLabels": { "kind": "<a&b>", "b": "\"q\"" } });
    let terms = json!({ "matchExpressions": [
        { "key": "k", "operator": "In", "values": ["b", "a"] },
        { "key": "l", "operator": "Exists" },
    ] });
    prop_oneof![
        Just(None),
        Just(Some(labels)),
        Just(Some(terms)),
        Just(Some(json!({})))
    ]
}

fn named_metric() -> impl Strategy<Value = Value> {
    selector().prop_map(|selector| {
        let mut metric = json!({ "name": "m" });
        if let Some(selector) = selector {
            metric["selector"] = selector;
        }
        metric
    })
}

/// A metric that is not told by the number of the older shape.
fn metric() -> impl Strategy<Value = Value> {
    let percent = |percent: i64| json!({ "type": "Utilization", "averageUtilization": percent });
    let average = |amount: Value| json!({ "type": "AverageValue", "averageValue": amount });
    let value = |amount: Value| json!({ "type": "Value", "value": amount });
    let wanted = prop_oneof![amount().prop_map(average), amount().prop_map(value)];
    let described = json!({ "kind": "Service", "name": "s", "apiVersion": "v1" });
    prop_oneof![
        (named_metric(), amount()).prop_map(move |(metric, amount)| {
            json!({ "type": "Pods", "pods": { "metric": metric, "target": average(amount) } })
        }),
        (named_metric(), wanted.clone()).prop_map(move |(metric, target)| {
            let object =
                json!({ "describedObject": described, "metric": metric, "target": target });
            json!({ "type": "Object", "object": object })
        }),
        (named_metric(), wanted).prop_map(|(metric, target)| {
            json!({ "type": "External", "external": { "metric": metric, "target": target } })
        }),
        amount().prop_map(move |amount| {
            json!({ "type": "Resource", "resource": { "name": "cpu", "target": average(amount) } })
        }),
        (1..200i64).prop_map(move |number| {
            let resource = json!({ "name": "memory", "target": percent(number) });
            json!({ "type": "Resource", "resource": resource })
        }),
        (1..200i64).prop_map(move |number| {
            let source = json!({ "name": "cpu", "container": "c", "target": percent(number) });
            json!({ "type": "ContainerResource", "containerResource": source })
        }),
    ]
}

fn scaler(metrics: Vec<Value>, percent: Option<i64>, behavior: Option<Value>) -> Value {
    let mut metrics = metrics;
    metrics.extend(percent.map(|percent| cpu_target(&json!(percent))));
    if metrics.is_empty() {
        metrics.push(cpu_target(&json!(CPU_PERCENT)));
    }
    let mut scaler = json!({
        "apiVersion": NEW,
        "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": "a", "annotations": { "mine": "stays" } },
        "spec": {
            "scaleTargetRef": { "kind": "Deployment", "name": "d", "apiVersion": "apps/v1" },
            "minReplicas": 2,
            "maxReplicas": 5,
            "metrics": metrics,
        },
        "status": {
            "desiredReplicas": 3,
            "currentMetrics": [{ "type": "Pods", "pods": {
                "metric": { "name": "m" }, "current": { "averageValue": "12" },
            } }],
            "conditions": [{ "type": "A", "status": "True", "lastTransitionTime": null }],
        },
    });
    if let Some(behavior) = behavior {
        scaler["spec"]["behavior"] = behavior;
    }
    scaler
}

/// What `law` says of every draw; the schemas are read once.
fn always<S: Strategy>(drawn: S, law: impl Fn(&Schema, S::Value) -> Result<(), TestCaseError>) {
    let wire = Wire::load();
    let schema = wire
        .schema("autoscaling", "v2", "HorizontalPodAutoscaler")
        .unwrap();
    let outcome = TestRunner::default().run(&drawn, |drawn| law(schema, drawn));
    outcome.unwrap();
}

#[test]
fn nothing_is_lost_on_the_way_through_the_older_shape() {
    let metrics = proptest::collection::vec(metric(), 0..4);
    let percent = proptest::option::of(1..200i64);
    always(
        (metrics, percent, 0..3i64),
        |schema, (metrics, percent, steps)| {
            let policies = json!([{ "type": "Pods", "value": steps, "periodSeconds": 60 }]);
            let rule = json!({ "policies": policies, "tolerance": "100m", "selectPolicy": "Min" });
            let behavior = (steps > 0).then(|| json!({ "scaleUp": rule }));
            let before = scaler(metrics, percent, behavior);
            let mut object = before.clone();
            to_old(&mut object);
            prop_assert_eq!(&object["apiVersion"], OLD);
            prop_assert!(object["spec"]["metrics"].is_null());
            to_new(&mut object, schema);
            prop_assert_eq!(object, before);
            Ok(())
        },
    );
}

#[test]
fn whatever_stands_in_the_annotations_there_is_an_object() {
    always((".{0,40}", 0..300usize), |schema, (text, deep)| {
        let nested = format!("{}{}", "[".repeat(deep), "]".repeat(deep));
        for note in [text, nested] {
            let notes = NOTES.iter().map(|name| ((*name).to_owned(), json!(note)));
            let annotations: Map<String, Value> = notes.collect();
            let mut object = json!({
                "apiVersion": OLD,
                "kind": "HorizontalPodAutoscaler",
                "metadata": { "name": "a", "annotations": annotations },
                "spec": { "maxReplicas": 3 },
            });
            to_new(&mut object, schema);
            prop_assert!(object["metadata"]["annotations"].is_null());
            prop_assert!(schema.coerce(&mut object).is_ok());
        }
        Ok(())
    });
}
