//! A job made from a template, as a flow wants it.

use std::collections::BTreeSet;

use api::kind::Kind;
use api::names::check_label_value;
use api::volcano::{CREATED_BY_FLOW, CREATED_BY_TEMPLATE, JobFlow, JobTemplate};
use serde_json::{Map, Value, json};

use super::{Member, filled};
use crate::write;

/// The job. Marks that are too long for a label are annotations only; upstream's job is refused then.
pub(super) fn of(flow: &JobFlow, member: &Member<'_>, template: &JobTemplate) -> Value {
    let meta = &flow.metadata;
    let marks = [
        (CREATED_BY_TEMPLATE, &template.metadata.name),
        (CREATED_BY_FLOW, &meta.name),
    ];
    let marks = marks.map(|(key, name)| (key, format!("{}.{name}", meta.namespace)));
    let annotations: Map<String, Value> = (marks.iter())
        .map(|(key, mark)| ((*key).to_owned(), json!(mark)))
        .collect();
    let short = marks
        .iter()
        .filter(|(_, it)| check_label_value(it).is_empty());
    let labels: Map<String, Value> = short
        .map(|(key, mark)| ((*key).to_owned(), json!(mark)))
        .collect();
    let mut spec = template.spec.value();
    if let Some(patch) = &member.flow.patch {
        let mut patch = patch.job_spec.value();
        filled::take_away(&mut patch);
        lay_over(&mut spec, patch);
    }
    json!({
        "metadata": {
            "name": member.name,
            "namespace": meta.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [write::controller_ref(Kind::JobFlow, meta)],
        },
        "spec": spec,
    })
}

/// Lays a patch over a value: fields one by one, lists of named things name by name, everything
/// else as a whole. What the patch does not name stays; `null` takes a field away.
fn lay_over(base: &mut Value, patch: Value) {
    match (base, patch) {
        (Value::Object(base), Value::Object(patch)) => {
            for (field, value) in patch {
                match value {
                    Value::Null => drop(base.remove(&field)),
                    value => lay_over(base.entry(field).or_insert(Value::Null), value),
                }
            }
        }
        (Value::Array(base), Value::Array(patch)) if is_named(base) && is_named(&patch) => {
            for value in patch {
                match base.iter_mut().find(|it| it["name"] == value["name"]) {
                    Some(same) => lay_over(same, value),
                    None => base.push(value),
                }
            }
        }
        (base, patch) => *base = patch,
    }
}

/// Whether every element has a name of its own.
fn is_named(list: &[Value]) -> bool {
    let mut names = BTreeSet::new();
    let is_new = |value: &Value| {
        let name = value["name"].as_str();
        name.is_some_and(|name| names.insert(name.to_owned()))
    };
    !list.is_empty() && list.iter().all(is_new)
}
