//! A pod template that stands in an object of another kind, where nobody has read it as a template yet.

use api::quantity::Quantity;
use serde_json::{Value, json};

use super::pod::{self, container};
use super::spot::{Faults, Spot};

/// What is wrong with a pod template, its defaults set, wherever it stands: complaints whose paths begin
/// at `template`. An image with a blank beside it is wrong, too: the real server refuses it in pods only,
/// and no pod could be made. Of what has not the shape of a template, and of amounts that cannot be read,
/// only that is said.
pub fn template_faults(template: &Value) -> Vec<String> {
    for (path, value) in [("template", template), ("template.spec", &template["spec"])] {
        if !value.is_null() && !value.is_object() {
            return vec![format!("{path}: Invalid value: {value}: must be an object")];
        }
    }
    let metadata = &template["metadata"];
    let spec = (template["spec"].as_object()).map_or_else(|| json!({}), |map| json!(map));
    let mut object = json!({ "template": { "metadata": metadata, "spec": spec } });
    let unread = read_amounts(&mut object["template"]["spec"]);
    if !unread.is_empty() {
        return unread;
    }
    super::default("", "PodTemplate", &mut object);
    let spot = Spot::new(&object["template"], "template");
    let mut faults = Faults::default();
    pod::template(&spot, &mut faults);
    for list in ["containers", "initContainers"] {
        for one in spot.at("spec").at(list).items() {
            container::trimmed_image(&one, &mut faults);
        }
    }
    faults.0.iter().map(ToString::to_string).collect()
}

/// Writes amounts as a server reads them, numbers among them; those that are none, with their paths.
fn read_amounts(spec: &mut Value) -> Vec<String> {
    let mut unread = Vec::new();
    let mut read = |path: String, amounts: Option<&mut Value>| {
        for (name, amount) in amounts.and_then(Value::as_object_mut).into_iter().flatten() {
            let text = match &*amount {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            match Quantity::canonical_text(&text) {
                Ok(text) => *amount = json!(text),
                Err(cause) => {
                    unread.push(format!("{path}[{name}]: Invalid value: {text:?}: {cause}"))
                }
            }
        }
    };
    let kinds = ["limits", "requests"];
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for (at, one) in containers.into_iter().flatten().enumerate() {
            for kind in kinds {
                let amounts = one.pointer_mut(&format!("/resources/{kind}"));
                read(
                    format!("template.spec.{list}[{at}].resources.{kind}"),
                    amounts,
                );
            }
        }
    }
    for kind in kinds {
        let amounts = spec.pointer_mut(&format!("/resources/{kind}"));
        read(format!("template.spec.resources.{kind}"), amounts);
    }
    read(
        "template.spec.overhead".to_owned(),
        spec.get_mut("overhead"),
    );
    let volumes = spec.get_mut("volumes").and_then(Value::as_array_mut);
    for (at, volume) in volumes.into_iter().flatten().enumerate() {
        for kind in kinds {
            let place = "ephemeral/volumeClaimTemplate/spec/resources";
            let amounts = volume.pointer_mut(&format!("/{place}/{kind}"));
            let place = place.replace('/', ".");
            read(
                format!("template.spec.volumes[{at}].{place}.{kind}"),
                amounts,
            );
        }
    }
    unread
}
