//! HorizontalPodAutoscalers have two shapes: `autoscaling/v1` and `autoscaling/v2`. The newer one is
//! stored; what the older one has no fields for stands in annotations there.

mod metrics;

use serde_json::{Map, Value, json};

use crate::field::go_json;
use crate::schema::Schema;
use metrics::{SPECS, STATUSES};

/// The shelf of autoscalers.
pub(crate) const SHELF: &str = "autoscaling/horizontalpodautoscalers";

const OLD: &str = "autoscaling/v1";
const NEW: &str = "autoscaling/v2";
/// How much of the cpu that is asked for pods should use where nothing else is said, in percent.
const CPU_PERCENT: i64 = 80;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
/// Annotations that belong to a conversion: nobody else can set them.
const NOTES: &[&str] = &[
    METRICS,
    CURRENT_METRICS,
    BEHAVIOR,
    CONDITIONS,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// Fields of a rule of behaviour, as the annotation has them: upstream writes its inner type there,
/// whose fields have no names for the wire.
const RULE: &[(&str, &str)] = &[
    ("StabilizationWindowSeconds", "stabilizationWindowSeconds"),
    ("SelectPolicy", "selectPolicy"),
    ("Policies", "policies"),
    ("Tolerance", "tolerance"),
];
const POLICY: &[(&str, &str)] = &[
    ("Type", "type"),
    ("Value", "value"),
    ("PeriodSeconds", "periodSeconds"),
];
const CONDITION: &[(&str, &str)] = &[
    ("type", "type"),
    ("status", "status"),
    ("lastTransitionTime", "lastTransitionTime"),
    ("reason", "reason"),
    ("message", "message"),
];

/// The object in the shape that is stored. `new` is the schema of that shape.
///
/// An annotation that cannot be read counts as none, as upstream.
pub(crate) fn to_new(object: &mut Value, new: &Schema) {
    let is_old = object["apiVersion"] == OLD;
    let notes = take_notes(object);
    object["apiVersion"] = json!(NEW);
    if !is_old {
        return;
    }
    let note =
        |name: &str| -> Option<Value> { serde_json::from_str(notes.get(name)?.as_str()?).ok() };
    let fitting = |part: &str, field: &str, value: Value| -> Option<Value> {
        let mut probe = json!({ "apiVersion": NEW, "kind": object["kind"] });
        probe[part] = json!({ field: value });
        new.coerce(&mut probe).ok()?;
        Some(probe[part][field].take())
    };
    let list = |note: Option<Value>, read: fn(&Value) -> Value| -> Option<Value> {
        let list = note?;
        Some(list.as_array()?.iter().map(read).collect())
    };
    let told = list(note(METRICS), metrics::spec);
    let told = told.and_then(|told| fitting("spec", "metrics", told));
    let behavior = note(BEHAVIOR).map(|note| read_behavior(&note));
    let behavior = behavior.and_then(|behavior| fitting("spec", "behavior", behavior));
    let current = list(note(CURRENT_METRICS), metrics::status);
    let current = current.and_then(|current| fitting("status", "currentMetrics", current));
    let conditions = list(note(CONDITIONS), read_condition);
    let conditions = conditions.and_then(|list| fitting("status", "conditions", list));
    spec_to_new(object, told, behavior);
    if object["status"].is_object() {
        status_to_new(object, current, conditions);
    }
}

/// The object in the older shape.
pub(crate) fn to_old(object: &mut Value) {
    take_notes(object);
    object["apiVersion"] = json!(OLD);
    let mut notes = Map::new();
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec_to_old(spec, &mut notes);
    }
    let mut told = object
        .get_mut("status")
        .map(Value::take)
        .unwrap_or_default();
    if let Some(status) = told.as_object_mut() {
        status_to_old(status, &mut notes);
    }
    if told.is_object() {
        object["status"] = told;
    }
    if notes.is_empty() {
        return;
    }
    let annotations = &mut object["metadata"]["annotations"];
    match annotations.as_object_mut() {
        Some(map) => map.extend(notes),
        None => *annotations = Value::Object(notes),
    }
}

/// Takes the annotations of a conversion from an object.
fn take_notes(object: &mut Value) -> Map<String, Value> {
    let mut notes = Map::new();
    let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return notes;
    };
    let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) else {
        return notes;
    };
    for name in NOTES {
        notes.extend(annotations.remove_entry(*name));
    }
    if annotations.is_empty() {
        meta.remove("annotations");
    }
    notes
}

/// A metric of the cpu, as the older shape tells it by one number.
fn cpu_target(percent: &Value) -> Value {
    let target = json!({ "type": "Utilization", "averageUtilization": percent });
    json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } })
}

fn spec_to_new(object: &mut Value, told: Option<Value>, behavior: Option<Value>) {
    if !object["spec"].is_object() {
        object["spec"] = json!({});
    }
    let spec = &mut object["spec"];
    let percent = spec
        .as_object_mut()
        .and_then(|spec| spec.remove("targetCPUUtilizationPercentage"));
    let mut all = match told {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    all.extend(percent.as_ref().map(cpu_target));
    if all.is_empty() {
        all.push(cpu_target(&json!(CPU_PERCENT)));
    }
    spec["metrics"] = Value::Array(all);
    if let Some(behavior) = behavior.filter(|it| it.as_object().is_some_and(|it| !it.is_empty())) {
        spec["behavior"] = behavior;
    }
}

fn status_to_new(object: &mut Value, current: Option<Value>, conditions: Option<Value>) {
    let Some(status) = object["status"].as_object_mut() else {
        return;
    };
    let percent = status.remove("currentCPUUtilizationPercentage");
    let by_percent = percent.map(|percent| {
        let current = json!({ "averageUtilization": percent });
        json!([{ "type": "Resource", "resource": { "name": "cpu", "current": current } }])
    });
    let current = current.or(by_percent);
    status.insert("currentMetrics".to_owned(), current.unwrap_or_default());
    if status
        .get("currentReplicas")
        .is_some_and(|number| number == 0)
    {
        status.remove("currentReplicas");
    }
    status.entry("desiredReplicas").or_insert_with(|| json!(0));
    let conditions = conditions.filter(|list| list.as_array().is_some_and(|list| !list.is_empty()));
    if let Some(conditions) = conditions {
        status.insert("conditions".to_owned(), conditions);
    }
}

/// Whether the older shape tells of a metric by a number of its own; then that number.
fn cpu_percent<'m>(metric: &'m Value, place: &str) -> Option<&'m Value> {
    let is_cpu = metric["type"] == "Resource" && metric["resource"]["name"] == "cpu";
    let percent = &metric["resource"][place]["averageUtilization"];
    (is_cpu && !percent.is_null()).then_some(percent)
}

fn spec_to_old(spec: &mut Map<String, Value>, notes: &mut Map<String, Value>) {
    let all = spec.remove("metrics").unwrap_or_default();
    let all = all.as_array().map(Vec::as_slice).unwrap_or_default();
    let (by_percent, others): (Vec<&Value>, Vec<&Value>) = all
        .iter()
        .partition(|metric| cpu_percent(metric, "target").is_some());
    let first = by_percent
        .first()
        .and_then(|metric| cpu_percent(metric, "target"));
    if let Some(percent) = first {
        spec.insert("targetCPUUtilizationPercentage".to_owned(), percent.clone());
    }
    if !others.is_empty() {
        let texts = others
            .into_iter()
            .map(|metric| metrics::text(metric, SPECS));
        notes.insert(METRICS.to_owned(), json!(list_text(texts)));
    }
    if let Some(behavior) = spec.remove("behavior").filter(Value::is_object) {
        notes.insert(BEHAVIOR.to_owned(), json!(behavior_text(&behavior)));
    }
}

fn status_to_old(status: &mut Map<String, Value>, notes: &mut Map<String, Value>) {
    let current = status.remove("currentMetrics").unwrap_or_default();
    let current = current.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut percents = current
        .iter()
        .filter_map(|metric| cpu_percent(metric, "current"));
    if let Some(percent) = percents.next_back() {
        status.insert(
            "currentCPUUtilizationPercentage".to_owned(),
            percent.clone(),
        );
    }
    if !current.is_empty() {
        let texts = current.iter().map(|metric| metrics::text(metric, STATUSES));
        notes.insert(CURRENT_METRICS.to_owned(), json!(list_text(texts)));
    }
    for count in ["currentReplicas", "desiredReplicas"] {
        status.entry(count).or_insert_with(|| json!(0));
    }
    let conditions = status.remove("conditions").unwrap_or_default();
    let conditions = conditions.as_array().map(Vec::as_slice).unwrap_or_default();
    if !conditions.is_empty() {
        let texts = conditions.iter().map(condition_text);
        notes.insert(CONDITIONS.to_owned(), json!(list_text(texts)));
    }
}

/// A field as Go's decoder finds it: by its name, or by its name in other letters.
fn named<'v>(value: &'v Value, name: &str) -> &'v Value {
    const NOTHING: &Value = &Value::Null;
    let Some(map) = value.as_object() else {
        return NOTHING;
    };
    let in_other_letters = || map.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
    map.get(name)
        .or_else(|| in_other_letters().map(|(_, value)| value))
        .unwrap_or(NOTHING)
}

/// An object of those fields that are there; something else than an object stays what it is, for
/// the schema to refuse.
fn picked(value: &Value, fields: &[(&str, &str)]) -> Value {
    if !value.is_object() {
        return value.clone();
    }
    let pairs = fields.iter().filter_map(|(from, to)| {
        let found = named(value, from);
        (!found.is_null()).then(|| ((*to).to_owned(), found.clone()))
    });
    Value::Object(pairs.collect())
}

fn read_behavior(note: &Value) -> Value {
    let mut behavior = picked(note, &[("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")]);
    for rule in behavior
        .as_object_mut()
        .into_iter()
        .flat_map(Map::values_mut)
    {
        *rule = picked(rule, RULE);
        let policies = rule.get_mut("policies").and_then(Value::as_array_mut);
        for policy in policies.into_iter().flatten() {
            *policy = picked(policy, POLICY);
            // Numbers that are left out are zero.
            for number in ["value", "periodSeconds"] {
                if policy.is_object() && policy[number].is_null() {
                    policy[number] = json!(0);
                }
            }
        }
    }
    behavior
}

fn read_condition(note: &Value) -> Value {
    let mut condition = picked(note, CONDITION);
    if let Some(map) = condition.as_object_mut() {
        map.entry("lastTransitionTime").or_insert(Value::Null);
    }
    condition
}

fn behavior_text(behavior: &Value) -> String {
    let policy = |policy: &Value| {
        object_text(
            POLICY
                .iter()
                .map(|(name, from)| (*name, go_json(&policy[*from]))),
        )
    };
    let rule = |rule: &Value| {
        if rule.is_null() {
            return "null".to_owned();
        }
        object_text(RULE.iter().map(|(name, from)| {
            let text = match rule[*from].as_array() {
                Some(policies) => list_text(policies.iter().map(policy)),
                None => go_json(&rule[*from]),
            };
            (*name, text)
        }))
    };
    let rules = [("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")];
    object_text(
        rules
            .iter()
            .map(|(name, from)| (*name, rule(&behavior[*from]))),
    )
}

fn condition_text(condition: &Value) -> String {
    // A time that is left out is written, texts that are empty are not.
    let is_told = |name: &&str| match *name {
        "reason" | "message" => condition[*name]
            .as_str()
            .is_some_and(|text| !text.is_empty()),
        _ => true,
    };
    let fields = CONDITION.iter().map(|(name, _)| *name).filter(is_told);
    object_text(fields.map(|name| (name, go_json(&condition[name]))))
}

/// An object as Go writes a struct: its fields in their order.
fn object_text<'n>(fields: impl Iterator<Item = (&'n str, String)>) -> String {
    let fields: Vec<String> = fields
        .map(|(name, text)| format!("\"{name}\":{text}"))
        .collect();
    format!("{{{}}}", fields.join(","))
}

fn list_text(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<String>>().join(","))
}

#[cfg(test)]
mod tests;
