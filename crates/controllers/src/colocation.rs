//! ColocationConfigurations (`specs/volcano.md` 2.10): what a pod may use beside others on its node
//! stands in its annotations, where the agent of the node reads it.
//!
//! Of several configurations that select a pod the newest holds. Where there is none, and never was
//! one, nothing is read and nothing written.

use std::cmp::Ordering;

use api::core::Pod;
use api::intent::{ObjectKey, Part};
use api::kind::Kind;
use api::volcano::{COLOCATION_CONFIG, COLOCATION_CONFIG_NAME, ColocationConfiguration};
use mirror::{Change, Mirror};
use serde_json::{Value, json};

use crate::ranking::is_active;
use crate::{Controller, Inputs, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "colocation",
    component: "vc-controller-manager",
    tells_refused: &[],
    watches: &[Kind::ColocationConfiguration, Kind::Pod],
    keys,
    step,
};

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    if change.kind() == Kind::ColocationConfiguration {
        let pods = mirror.list_in::<Pod>(&change.key.namespace);
        let pods = pods.filter(|pod| is_active(pod)).map(|pod| &pod.metadata);
        keys.extend(pods.map(|meta| ObjectKey::new(Kind::Pod, &meta.namespace, &meta.name)));
        return;
    }
    let Some(pod) = change.after::<Pod>() else {
        return;
    };
    let mut rules = mirror.list_in::<ColocationConfiguration>(&change.key.namespace);
    let is_configured = (pod.metadata.annotations).contains_key(COLOCATION_CONFIG_NAME);
    if is_active(pod) && (is_configured || rules.next().is_some()) {
        keys.push((*change.key).clone());
    }
}

fn step(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    let Some(pod) = inputs.mirror.get::<Pod>(namespace, name) else {
        return Step::idle();
    };
    if !is_active(pod) {
        return Step::idle();
    }
    let there = &pod.metadata.annotations;
    let old_name = there.get(COLOCATION_CONFIG_NAME);
    let said = match (holding(inputs.mirror, pod), old_name) {
        (Some(rule), _) => json!({
            COLOCATION_CONFIG_NAME: rule.metadata.name,
            COLOCATION_CONFIG: configuration(rule),
        }),
        // An empty one tells the agent to take back what it did.
        (None, Some(_)) => json!({ COLOCATION_CONFIG_NAME: Value::Null, COLOCATION_CONFIG: "{}" }),
        (None, None) => return Step::idle(),
    };
    let is_said =
        |(key, value): (&String, &Value)| there.get(key).map(|text| &**text) == value.as_str();
    if said
        .as_object()
        .is_some_and(|said| said.iter().all(is_said))
    {
        return Step::idle();
    }
    let patch = json!({ "metadata": { "annotations": said } });
    Step::write(vec![write::patch(
        Kind::Pod,
        &pod.metadata,
        Part::Whole,
        patch,
    )])
}

/// The newest configuration that selects a pod; of those of one second the last by name.
fn holding<'a>(mirror: &'a Mirror, pod: &Pod) -> Option<&'a ColocationConfiguration> {
    let meta = &pod.metadata;
    let rules = mirror.list_in::<ColocationConfiguration>(&meta.namespace);
    let selects = |rule: &&ColocationConfiguration| {
        let selector = rule.spec.selector.as_ref();
        let is_leaving = rule.metadata.deletion_timestamp.is_some();
        !is_leaving && selector.is_some_and(|it| it.matches(&meta.labels))
    };
    let age = |one: &&ColocationConfiguration, other: &&ColocationConfiguration| -> Ordering {
        let of = |it: &&ColocationConfiguration| it.metadata.creation_timestamp;
        of(one)
            .cmp(&of(other))
            .then_with(|| one.metadata.name.cmp(&other.metadata.name))
    };
    rules.map(|rule| &**rule).filter(selects).max_by(age)
}

/// What a configuration says, without for whom.
fn configuration(rule: &ColocationConfiguration) -> String {
    match &rule.spec.memory_qos {
        Some(memory_qos) => json!({ "memoryQos": memory_qos }).to_string(),
        None => "{}".to_owned(),
    }
}
