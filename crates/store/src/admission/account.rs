//! The service account of a pod: who it is by default, its token as a volume, its pull secrets.

use api::kind::Kind;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::field;
use crate::status::{Outcome, Refused};
use crate::store::Store;
use crate::write::{Writing, text};

/// Where every container finds the token.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// What the volume's name begins with.
const VOLUME: &str = "kube-api-access-";
/// An hour, and a little more by which upstream tells such tokens apart.
const TOKEN_SECONDS: i64 = 3_607;

/// What a service account says about the pods that run under it. Every pod asks.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Account {
    image_pull_secrets: Vec<Value>,
    automount_service_account_token: Option<bool>,
}

impl Store {
    pub(super) fn admit_account(&mut self, writing: &Writing<'_>, pod: &mut Value) -> Outcome<()> {
        name_account(&mut pod["spec"]);
        let account = self.find_account(writing, pod)?;
        let spec = &mut pod["spec"];
        let pull = account.image_pull_secrets;
        if list(&spec["imagePullSecrets"]).is_empty() && !pull.is_empty() {
            spec["imagePullSecrets"] = Value::Array(pull);
        }
        let said = spec["automountServiceAccountToken"].as_bool();
        if said.or(account.automount_service_account_token) != Some(false) {
            self.mount_token(spec);
        }
        Ok(())
    }

    /// The pod's service account must be there. Each namespace gets its default one a moment after
    /// it was made; pods do not wait for that.
    fn find_account(&self, writing: &Writing<'_>, pod: &Value) -> Outcome<Account> {
        let account = text(&pod["spec"]["serviceAccountName"]);
        let namespace = &writing.target.namespace;
        if let Some(found) = self.latest_entry(Kind::ServiceAccount, namespace, &account) {
            return Ok(found.read());
        }
        if account == "default" {
            return Ok(Account::default());
        }
        Err(Refused::forbidden(
            writing.about(&text(&pod["metadata"]["name"])),
            &format!(
                "error looking up service account {namespace}/{account}: serviceaccount {} not found",
                field::go_quoted(&account)
            ),
        ))
    }

    /// Mounts the token in every container that has nothing else at its place.
    fn mount_token(&mut self, spec: &mut Value) {
        let given = list(&spec["volumes"])
            .iter()
            .map(|volume| text(&volume["name"]))
            .find(|name| name.starts_with(VOLUME));
        let is_new = given.is_none();
        let name = given.unwrap_or_else(|| format!("{VOLUME}{}", self.draw_suffix()));
        let mut is_needed = false;
        for containers in ["initContainers", "containers"] {
            let found = spec.get_mut(containers).and_then(Value::as_array_mut);
            for container in found.into_iter().flatten() {
                let taken = list(&container["volumeMounts"])
                    .iter()
                    .any(|mount| mount["mountPath"] == MOUNT_PATH);
                if !taken && container.is_object() {
                    let mount = json!({ "mountPath": MOUNT_PATH, "name": name, "readOnly": true });
                    append(&mut container["volumeMounts"], mount);
                    is_needed = true;
                }
            }
        }
        if is_new && is_needed {
            append(&mut spec["volumes"], volume(&name));
        }
    }
}

fn name_account(spec: &mut Value) {
    if text(&spec["serviceAccountName"]).is_empty() {
        let account = match text(&spec["serviceAccount"]) {
            none if none.is_empty() => "default".to_owned(),
            account => account,
        };
        spec["serviceAccountName"] = json!(account);
    }
    spec["serviceAccount"] = spec["serviceAccountName"].clone();
}

fn volume(name: &str) -> Value {
    json!({
        "name": name,
        "projected": {
            "defaultMode": 0o644,
            "sources": [
                { "serviceAccountToken": { "expirationSeconds": TOKEN_SECONDS, "path": "token" } },
                { "configMap": {
                    "name": "kube-root-ca.crt",
                    "items": [{ "key": "ca.crt", "path": "ca.crt" }],
                } },
                { "downwardAPI": { "items": [{
                    "path": "namespace",
                    "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" },
                }] } },
            ],
        },
    })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn append(into: &mut Value, one: Value) {
    if !into.is_array() {
        *into = json!([]);
    }
    if let Some(list) = into.as_array_mut() {
        list.push(one);
    }
}
