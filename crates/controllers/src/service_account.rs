//! What every namespace has from the start: the `default` ServiceAccount and the certificates
//! that pods trust.

use api::core::{ConfigMap, Namespace, ServiceAccount};
use api::intent::{ObjectKey, Part};
use api::kind::Kind;
use mirror::{Change, Mirror};
use serde_json::json;

use crate::{Controller, Inputs, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "service_account",
    component: "serviceaccount-controller",
    watches: &[Kind::ConfigMap, Kind::Namespace, Kind::ServiceAccount],
    keys,
    step,
};

const ACCOUNT: &str = "default";
const CERTIFICATES: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

fn keys(_mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    let (namespace, name) = (&change.key.namespace, &change.key.name);
    match (change.kind(), &**name) {
        (Kind::Namespace, name) => keys.push(ObjectKey::new(Kind::Namespace, "", name)),
        (Kind::ServiceAccount, ACCOUNT) | (Kind::ConfigMap, CERTIFICATES) => {
            keys.push(ObjectKey::new(Kind::Namespace, "", namespace));
        }
        _ => {}
    }
}

fn step(inputs: &Inputs<'_>) -> Step {
    let name = &inputs.key.name;
    let Some(namespace) = inputs.mirror.get::<Namespace>("", name) else {
        return Step::idle();
    };
    if namespace.metadata.deletion_timestamp.is_some() || !inputs.settings.service_accounts {
        return Step::idle();
    }
    let mut intents = Vec::new();
    if inputs.mirror.get::<ServiceAccount>(name, ACCOUNT).is_none() {
        let body = json!({ "metadata": { "name": ACCOUNT, "namespace": name } });
        intents.push(write::create(Kind::ServiceAccount, body));
    }
    let data = json!({ "ca.crt": inputs.settings.cluster_ca });
    match inputs.mirror.get::<ConfigMap>(name, CERTIFICATES) {
        None => {
            let body = json!({
                "metadata": {
                    "name": CERTIFICATES,
                    "namespace": name,
                    "annotations": { "kubernetes.io/description": DESCRIPTION },
                },
                "data": data,
            });
            intents.push(write::create(Kind::ConfigMap, body));
        }
        Some(map) if json!(map.data) != data => {
            let patch = json!({ "data": data });
            intents.push(write::patch(
                Kind::ConfigMap,
                &map.metadata,
                Part::Whole,
                patch,
            ));
        }
        Some(_) => {}
    }
    Step::write(intents)
}
