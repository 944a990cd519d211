//! What is asked, and what is answered: text in, text out.
#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot be read has failed"
)]

#[path = "../../api/tests/sweep/odd.rs"]
mod odd;
#[path = "scenarios/pod.rs"]
mod pod;
#[path = "scenarios/pod_group.rs"]
mod pod_group;
#[path = "scenarios/queue.rs"]
mod queue;
#[path = "scenarios/vcjob.rs"]
mod vcjob;

use api::admission::{Facts, Operation, Review, Verdict};
use api::kind::Kind;
use serde_json::Value;

/// The cluster that a request meets: `Kind name  field=value …` lines.
struct World(Vec<(Kind, String, Value)>, review::Settings);

impl Facts for World {
    fn object(&self, kind: Kind, _: &str, name: &str) -> Option<Value> {
        let found = self.0.iter().find(|row| row.0 == kind && row.1 == name);
        found.map(|row| row.2.clone())
    }

    fn list(&self, kind: Kind, _: &str) -> Vec<Value> {
        let found = self.0.iter().filter(|row| row.0 == kind);
        found.map(|row| row.2.clone()).collect()
    }

    fn template_faults(&self, template: &Value) -> Vec<String> {
        store::validation::template_faults(template)
    }
}

/// Reads a world: one YAML object a line.
fn world(text: &str) -> World {
    World(
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(|line| {
                let object: Value = serde_saphyr::from_str(line).unwrap();
                let kind = Kind::find(
                    match object["kind"].as_str().unwrap() {
                        "Queue" => "scheduling.volcano.sh/v1beta1",
                        _ => "v1",
                    },
                    object["kind"].as_str().unwrap(),
                );
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                (kind.unwrap(), name, object)
            })
            .collect(),
        review::Settings::default(),
    )
}

/// Asks, and prints the verdict: `allowed` with every changed field, or the refusal.
fn ask(world: &World, operation: Operation, kind: Kind, old: &Value, object: &Value) -> String {
    let some = |value: &'_ Value| !value.is_null();
    let named = if some(object) { object } else { old };
    let review = Review {
        operation,
        kind,
        subresource: "",
        namespace: "ml",
        name: named["metadata"]["name"].as_str().unwrap_or_default(),
        object: Some(object).filter(|value| some(value)),
        old: Some(old).filter(|value| some(value)),
        user: "ann",
        dry_run: false,
    };
    match review::review_with(&world.1, &review, world) {
        Verdict::Denied { code, message } => format!("{code} {message}"),
        Verdict::Allowed { object: None, .. } => "allowed".to_owned(),
        Verdict::Allowed {
            object: Some(changed),
            ..
        } => {
            let mut lines = vec!["allowed".to_owned()];
            differences("", object, &changed, &mut lines);
            lines.join("\n")
        }
    }
}

fn differences(path: &str, old: &Value, new: &Value, lines: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in b {
                let path = format!("{path}.{key}");
                differences(&path, a.get(key).unwrap_or(&Value::Null), value, lines);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}[{index}]"), a, b, lines);
            }
        }
        _ if old == new => {}
        _ => lines.push(format!("{}={new}", path.trim_start_matches('.'))),
    }
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

/// Left-aligns an expected text.
fn lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().map(str::trim).collect();
    lines.join("\n")
}

#[test]
fn subresources_and_kinds_without_rules_pass() {
    let object = yaml("{metadata: {name: x}}");
    let nothing = World(Vec::new(), review::Settings::default());
    let ask = |kind, subresource| {
        let review = Review {
            operation: Operation::Update,
            kind,
            subresource,
            namespace: "ml",
            name: "x",
            object: Some(&object),
            old: Some(&object),
            user: "ann",
            dry_run: false,
        };
        matches!(
            review::review(&review, &nothing),
            Verdict::Allowed { object: None, .. }
        )
    };
    assert!(ask(Kind::VcJob, "status"));
    assert!(ask(Kind::ConfigMap, ""));
}

#[test]
fn any_json_is_judged_without_a_panic() {
    for text in ["5", "[]", "text", "{}", "{metadata: 5}"] {
        for kind in [Kind::Pod, Kind::PodGroup, Kind::Queue, Kind::VcJob] {
            judge_all(&odd_world(), kind, &yaml(text));
        }
    }
}

/// Every field of real manifests is replaced by every kind of value.
#[test]
fn a_field_that_holds_something_odd_is_judged_without_a_panic() {
    let world = odd_world();
    for (kind, text) in [
        (Kind::VcJob, include_str!("../../api/tests/wire/vcjob.yaml")),
        (Kind::Queue, include_str!("../../api/tests/wire/queue.yaml")),
        (
            Kind::PodGroup,
            include_str!("../../api/tests/wire/podgroup.yaml"),
        ),
    ] {
        let manifest = yaml(text);
        for path in odd::paths(&manifest) {
            for value in odd::values() {
                judge_all(&world, kind, &odd::with(&manifest, &path, value));
            }
        }
    }
}

fn odd_world() -> World {
    world(
        "
        {kind: Queue, metadata: {name: root}, status: {state: Open}}
        {kind: Queue, metadata: {name: research}, status: {state: Open}, spec: {capability: odd}}
        {kind: Queue, metadata: {name: a}, status: 5, spec: {parent: research}}
        ",
    )
}

fn judge_all(world: &World, kind: Kind, object: &Value) {
    for operation in [Operation::Create, Operation::Update, Operation::Delete] {
        ask(world, operation, kind, object, object);
        ask(world, operation, kind, object, &Value::Null);
        ask(world, operation, kind, &Value::Null, object);
    }
}
