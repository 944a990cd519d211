//! The service account of a pod: who it is by default, its token as a volume, its pull secrets.

use std::collections::BTreeMap;

use api::kind::Kind;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::annotations::ENFORCE_SECRETS;
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
    secrets: Vec<Value>,
    metadata: Marks,
}

/// The annotations of a service account.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Marks {
    annotations: BTreeMap<String, String>,
}

/// Marks a pod that a node has made by itself.
const MIRROR: &str = "kubernetes.io/config.mirror";

impl Store {
    pub(super) fn admit_account(&mut self, writing: &Writing<'_>, pod: &mut Value) -> Outcome<()> {
        let name = text(&pod["metadata"]["name"]);
        let refused = |why: String| Err(Refused::forbidden(writing.about(&name), &why));
        if !pod["metadata"]["annotations"][MIRROR].is_null() {
            return mirrors_nothing(&pod["spec"]).or_else(refused);
        }
        name_account(&mut pod["spec"]);
        let account = self.find_account(writing, pod)?;
        let spec = &mut pod["spec"];
        let pull = &account.image_pull_secrets;
        if list(&spec["imagePullSecrets"]).is_empty() && !pull.is_empty() {
            spec["imagePullSecrets"] = json!(pull);
        }
        let said = spec["automountServiceAccountToken"].as_bool();
        if said.or(account.automount_service_account_token) != Some(false) {
            self.mount_token(spec);
        }
        if account
            .metadata
            .annotations
            .get(ENFORCE_SECRETS)
            .is_some_and(|text| is_yes(text))
        {
            return within(&account, &pod["spec"]).or_else(refused);
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

/// As Go reads a truth.
fn is_yes(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

/// What a node has made by itself uses nothing of the API.
fn mirrors_nothing(spec: &Value) -> Result<(), String> {
    if !text(&spec["serviceAccountName"]).is_empty() {
        return Err("a mirror pod may not reference service accounts".to_owned());
    }
    let kinds = ["initContainers", "containers", "ephemeralContainers"];
    let mut containers = kinds.iter().flat_map(|kind| list(&spec[*kind]));
    let volumes = list(&spec["volumes"]);
    let names_secret = !list(&spec["imagePullSecrets"]).is_empty()
        || containers.any(|container| secrets_of(container).next().is_some())
        || volumes.iter().any(|volume| !volume["secret"].is_null());
    if names_secret {
        return Err("a mirror pod may not reference secrets".to_owned());
    }
    let sources = volumes
        .iter()
        .flat_map(|volume| list(&volume["projected"]["sources"]));
    match sources
        .into_iter()
        .any(|source| !source["serviceAccountToken"].is_null())
    {
        true => Err("a mirror pod may not use ServiceAccountToken volume projections".to_owned()),
        false => Ok(()),
    }
}

/// The Secrets of which a container's environment is made, with how it speaks of each.
fn secrets_of(container: &Value) -> impl Iterator<Item = (String, String)> {
    let by_name = list(&container["env"]).iter().filter_map(|one| {
        let secret = one["valueFrom"]["secretKeyRef"]["name"].as_str()?;
        Some((format!("envVar {}", text(&one["name"])), secret.to_owned()))
    });
    let whole = list(&container["envFrom"]).iter().filter_map(|one| {
        let secret = one["secretRef"]["name"].as_str()?;
        Some(("envFrom".to_owned(), secret.to_owned()))
    });
    by_name.chain(whole)
}

/// Whether a pod keeps to the Secrets that its account names.
fn within(account: &Account, spec: &Value) -> Result<(), String> {
    let names = |all: &[Value], name: &str| all.iter().any(|one| one["name"] == name);
    let of_account = |what: &str| {
        let name = text(&spec["serviceAccountName"]);
        format!("is not allowed because service account {name} does not reference that {what}")
    };
    for volume in list(&spec["volumes"]) {
        let secret = volume["secret"]["secretName"].as_str();
        if let Some(name) = secret.filter(|name| !names(&account.secrets, name)) {
            let why = of_account("secret");
            return Err(format!("volume with secret.secretName=\"{name}\" {why}"));
        }
    }
    for (kind, called) in [
        ("initContainers", "init container"),
        ("containers", "container"),
    ] {
        for container in list(&spec[kind]) {
            let mut secrets = secrets_of(container);
            if let Some((by, name)) = secrets.find(|(_, name)| !names(&account.secrets, name)) {
                let (container, why) = (text(&container["name"]), of_account("secret"));
                return Err(format!(
                    "{called} {container} with {by} referencing secret.secretName=\"{name}\" {why}"
                ));
            }
        }
    }
    for (position, pull) in list(&spec["imagePullSecrets"]).iter().enumerate() {
        let name = text(&pull["name"]);
        if !names(&account.image_pull_secrets, &name) {
            let why = of_account("imagePullSecret");
            return Err(format!(
                "imagePullSecrets[{position}].name=\"{name}\" {why}"
            ));
        }
    }
    Ok(())
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
