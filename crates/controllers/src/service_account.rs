//! What every namespace has from the start: the `default` ServiceAccount and the certificates
//! that pods trust. And what an account leaves behind: Secrets with tokens of it.

use api::core::{ConfigMap, Namespace, Secret, ServiceAccount};
use api::intent::{ObjectKey, Part};
use api::kind::Kind;
use mirror::{Change, Mirror};
use serde_json::json;

use crate::{Controller, Inputs, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "service_account",
    component: "serviceaccount-controller",
    tells_refused: &[],
    watches: &[
        Kind::ConfigMap,
        Kind::Namespace,
        Kind::Secret,
        Kind::ServiceAccount,
    ],
    keys,
    step,
};

const ACCOUNT: &str = "default";
const CERTIFICATES: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/// The annotation of a Secret that is to hold a token: whose.
const OF_ACCOUNT: &str = "kubernetes.io/service-account.name";
const OF_ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    let (namespace, name) = (&change.key.namespace, &change.key.name);
    if change.kind() == Kind::Secret && change.after.is_some() {
        keys.push((*change.key).clone());
    }
    if change.kind() == Kind::ServiceAccount && (change.after.is_none() || change.is_recreation()) {
        let tokens = mirror.list_in::<Secret>(namespace);
        let tokens = tokens.filter(|secret| account_of(secret) == Some(name));
        let key = |secret: &Secret| ObjectKey::new(Kind::Secret, namespace, &secret.metadata.name);
        keys.extend(tokens.map(|secret| key(secret)));
    }
    match (change.kind(), &**name) {
        (Kind::Namespace, name) => keys.push(ObjectKey::new(Kind::Namespace, "", name)),
        (Kind::ServiceAccount, ACCOUNT) | (Kind::ConfigMap, CERTIFICATES) => {
            keys.push(ObjectKey::new(Kind::Namespace, "", namespace));
        }
        _ => {}
    }
}

/// The account whose token a Secret is to hold.
fn account_of(secret: &Secret) -> Option<&str> {
    let is_token = &*secret.kind == "kubernetes.io/service-account-token";
    let account = secret.metadata.annotations.get(OF_ACCOUNT);
    account.filter(|_| is_token).map(|name| &**name)
}

/// A Secret with the token of an account that is there no more goes after it.
fn of_token(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    let Some(secret) = inputs.mirror.get::<Secret>(namespace, name) else {
        return Step::idle();
    };
    let Some(account) = account_of(secret) else {
        return Step::idle();
    };
    let meta = &secret.metadata;
    // A finalizer may hold it for long: deleted again it would go no sooner.
    if meta.deletion_timestamp.is_some() {
        return Step::idle();
    }
    let found = inputs.mirror.get::<ServiceAccount>(namespace, account);
    let uid = meta.annotations.get(OF_ACCOUNT_UID);
    if found.is_some_and(|it| uid.is_none_or(|uid| **uid == *it.metadata.uid)) {
        return Step::idle();
    }
    let key = ObjectKey::new(Kind::ServiceAccount, namespace, account);
    let named = std::iter::once((key, uid.map_or("", |uid| &**uid)));
    let first = inputs.before_presence(named, meta.revision());
    first.unwrap_or_else(|| Step::write(vec![write::delete(Kind::Secret, meta)]))
}

fn step(inputs: &Inputs<'_>) -> Step {
    if inputs.key.kind == Kind::Secret {
        return of_token(inputs);
    }
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
    let data = inputs.settings.shown(data);
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
