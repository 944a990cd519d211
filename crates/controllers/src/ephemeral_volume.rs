//! Claims of volumes that live as long as their pods (generic ephemeral volumes): one for each such volume,
//! made from its template.
//!
//! A key is a pod. It controls its claims, so that they go with it. A claim of such a name that is not the
//! pod's is left alone: the pod waits until the name is free.
//!
//! Source: Kubernetes' ephemeral volume controller; KEP-1698.

use api::core::{PersistentVolumeClaim, Pod, Volume};
use api::intent::{Intent, ObjectKey};
use api::kind::Kind;
use mirror::{Change, Index, Mirror};
use serde_json::{Value, json};

use crate::note::Occasion;
use crate::{Controller, Inputs, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "ephemeral_volume",
    component: "ephemeral_volume",
    tells_refused: &[],
    watches: &[Kind::PersistentVolumeClaim, Kind::Pod],
    keys,
    step,
};

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    if change.kind() == Kind::Pod {
        let pod = change.after::<Pod>();
        if pod.is_some_and(|pod| made(pod).next().is_some()) {
            keys.push((*change.key).clone());
        }
        return;
    }
    // One has gone, or was made by hand: what else has happened to a claim is no matter here.
    if change.before.is_some() && change.after.is_some() {
        return;
    }
    let pods = mirror.indexed::<Pod>(Index::PodClaim, &change.key.namespace, &change.key.name);
    let pods = pods.filter(|pod| made(pod).next().is_some());
    keys.extend(pods.map(|pod| crate::keys::of_pod(pod)));
}

/// The pod's volumes for which claims are made, with their templates.
fn made(pod: &Pod) -> impl Iterator<Item = (&Volume, &Value)> {
    let volumes = pod.spec.volumes.iter();
    volumes.filter_map(|volume| {
        let source = volume.ephemeral.as_ref()?;
        Some((volume, &source.volume_claim_template))
    })
}

fn step(inputs: &Inputs<'_>) -> Step {
    let mirror = inputs.mirror;
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    let pod = mirror.get::<Pod>(namespace, name);
    let Some(pod) = pod.filter(|pod| !pod.is_terminating() && !pod.is_finished()) else {
        return Step::idle();
    };
    let (mut creates, mut notes, mut taken) = (Vec::new(), Vec::new(), Vec::new());
    for (volume, template) in made(pod) {
        let claim = format!("{name}-{}", volume.name);
        match mirror.get::<PersistentVolumeClaim>(namespace, &claim) {
            None => creates.push(create(pod, &claim, template)),
            Some(held) if held.metadata.is_controlled_by(&pod.metadata.uid) => {}
            Some(_) => {
                notes.push(is_taken(inputs, pod, &volume.name, &claim));
                taken.push(ObjectKey::new(
                    Kind::PersistentVolumeClaim,
                    namespace,
                    &claim,
                ));
            }
        }
    }
    if !creates.is_empty() {
        return Step::write(creates);
    }
    if taken.is_empty() {
        return Step::idle();
    }
    Step {
        intents: notes,
        ..Step::blocked("PersistentVolumeClaimConflict", taken)
    }
}

fn create(pod: &Pod, claim: &str, template: &Value) -> Intent {
    let meta = &template["metadata"];
    let mut body = json!({
        "metadata": {
            "name": claim,
            "namespace": pod.metadata.namespace,
            "ownerReferences": [write::controller_ref(Kind::Pod, &pod.metadata)],
        },
        "spec": template["spec"],
    });
    for part in ["labels", "annotations"] {
        if !meta[part].is_null() {
            body["metadata"][part] = meta[part].clone();
        }
    }
    write::create(Kind::PersistentVolumeClaim, body)
}

fn is_taken(inputs: &Inputs<'_>, pod: &Pod, volume: &str, claim: &str) -> Intent {
    let occasion = Occasion {
        kind: Kind::Pod,
        meta: &pod.metadata,
        component: CONTROLLER.component,
        id: volume,
    };
    let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
    let message = format!(
        "ephemeral volume {volume}: PVC {namespace}/{claim} was not created for pod {namespace}/{name} (pod is not owner)"
    );
    occasion.warning("FailedBinding", &message, inputs.now)
}
