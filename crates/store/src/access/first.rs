//! The roles and bindings that every plane has, as a real server makes them for itself.

use std::collections::{BTreeMap, BTreeSet};

use api::ask;
use api::time::Time;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{GROUP, gather};
use crate::draft::Draft;
use crate::owners::Owners;
use crate::read::key_of;
use crate::store::Store;

/// `"true"`: what is missing is put back at every start.
const UPDATES: &str = "rbac.authorization.kubernetes.io/autoupdate";
const GATHERED: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// `wire/kubernetes/access.yaml`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FirstAccess {
    cluster_roles: Vec<FirstRole>,
    cluster_role_bindings: Vec<FirstBinding>,
    roles: Vec<FirstRole>,
    role_bindings: Vec<FirstBinding>,
}

#[derive(Debug, Deserialize)]
struct FirstRole {
    name: String,
    #[serde(default)]
    namespace: String,
    feeds: Option<String>,
    gathers: Option<String>,
    #[serde(default)]
    rules: Vec<Value>,
    /// One of this plane's own, which a real server does not have.
    #[serde(skip)]
    is_own: bool,
}

#[derive(Debug, Deserialize)]
struct FirstBinding {
    name: String,
    #[serde(default)]
    namespace: String,
    role: String,
    subjects: Vec<String>,
}

/// Kinds of this plane that users of a namespace have there, by group.
const USERS_KINDS: &[(&str, &[&str])] = &[
    ("batch.volcano.sh", &["cronjobs", "jobs"]),
    ("bus.volcano.sh", &["commands"]),
    ("flow.volcano.sh", &["jobflows", "jobtemplates"]),
    ("scheduling.volcano.sh", &["podgroups"]),
];

/// Who may read, or edit, what is in a namespace may do so with what this plane's work is made of, as with
/// Kubernetes' own Jobs. `admin` gathers what `edit` has.
fn batch_roles() -> [FirstRole; 2] {
    let role = |feeds: &str, verbs: &[&str]| {
        let rules = USERS_KINDS.iter().map(
            |(group, kinds)| json!({ "verbs": verbs, "apiGroups": [group], "resources": kinds }),
        );
        FirstRole {
            name: format!("katmai:aggregate-volcano-to-{feeds}"),
            namespace: String::new(),
            feeds: Some(feeds.to_owned()),
            gathers: None,
            rules: rules.collect(),
            is_own: true,
        }
    };
    let writes = ["create", "delete", "deletecollection", "patch", "update"];
    [
        role("view", &["get", "list", "watch"]),
        role("edit", &writes),
    ]
}

/// Who may read what is in a namespace may ask there why something waits.
fn explaining() -> FirstRole {
    FirstRole {
        name: "katmai:aggregate-explanations-to-view".to_owned(),
        namespace: String::new(),
        feeds: Some("view".to_owned()),
        gathers: None,
        rules: vec![json!({
            "verbs": ["get"], "apiGroups": [ask::GROUP], "resources": [ask::EXPLANATIONS],
        })],
        is_own: true,
    }
}

impl Store {
    /// Makes the roles and bindings that this plane lacks, and gives those that it has what they
    /// lack, unless somebody turned that off.
    pub(crate) fn provide_access(&mut self, draft: &mut Draft, now: Time) {
        let wire = self.wire.clone();
        let first = wire.first_access();
        let mut roles: Vec<Value> = first.cluster_roles.iter().map(FirstRole::object).collect();
        roles.extend(batch_roles().iter().map(FirstRole::object));
        if self.settings.explains {
            roles.push(explaining().object());
        }
        self.provide_kind(draft, "clusterroles", roles, now);
        let bindings = first.cluster_role_bindings.iter();
        let bindings = bindings.map(FirstBinding::object).collect();
        self.provide_kind(draft, "clusterrolebindings", bindings, now);
        let roles: Vec<Value> = first.roles.iter().map(FirstRole::object).collect();
        self.provide_kind(draft, "roles", roles, now);
        let bindings = first.role_bindings.iter();
        let bindings = bindings.map(FirstBinding::object).collect();
        self.provide_kind(draft, "rolebindings", bindings, now);
    }

    fn provide_kind(&mut self, draft: &mut Draft, plural: &str, first: Vec<Value>, now: Time) {
        let Some(id) = self.registry.find(GROUP, plural) else {
            return;
        };
        let row = self.registry.row(id).clone();
        let mut wanted: BTreeMap<String, Value> = self
            .shelf(id)
            .latest_range("")
            .into_iter()
            .map(|(key, entry)| (key.to_string(), entry.value()))
            .collect();
        let mut changed = BTreeSet::new();
        // In the order of the list, as a real server makes them; what others made comes last.
        let mut order = Vec::new();
        let mut new = BTreeMap::new();
        for mut object in first {
            let meta = &object["metadata"];
            let part = |key: &str| meta[key].as_str().unwrap_or_default();
            let key = key_of(part("namespace"), part("name"));
            order.push(key.clone());
            match wanted.get_mut(&key) {
                Some(kept) => {
                    if complete(kept, &object) {
                        changed.insert(key);
                    }
                }
                None => {
                    let zero = self.zero_object(&row);
                    let nobody = (&zero, &Owners::default());
                    let mut said = object.clone();
                    if let Some(said) = said.as_object_mut() {
                        // Rules that are none are nobody's.
                        said.retain(|_, value| !value.is_null());
                    }
                    let owners = self.own_as_server(&row, "", nobody, &said, now);
                    new.insert(key.clone(), owners);
                    object["metadata"]["uid"] = json!(self.draw_uid());
                    object["metadata"]["creationTimestamp"] = json!(now.seconds_text());
                    changed.insert(key.clone());
                    wanted.insert(key, object);
                }
            }
        }
        if plural == "clusterroles" {
            changed.extend(gather::fill(&mut wanted));
        }
        let others = changed.iter().filter(|key| !order.contains(key)).cloned();
        let others: Vec<String> = others.collect();
        for key in order.into_iter().chain(others) {
            if !changed.contains(&key) {
                continue;
            }
            let Some(mut object) = wanted.remove(&key) else {
                continue;
            };
            match new.remove(&key) {
                Some(owners) => draft.put_owned(self, id, &key, &mut object, owners),
                None => draft.put(self, id, &key, object),
            }
        }
    }
}

/// Adds the rules and subjects that a kept object lacks; says whether it lacked any.
fn complete(kept: &mut Value, first: &Value) -> bool {
    if kept["metadata"]["annotations"][UPDATES] != "true" {
        return false;
    }
    let mut has_changed = false;
    for part in ["rules", "subjects"] {
        let Some(wanted) = first[part].as_array() else {
            continue;
        };
        let list = kept[part].as_array().map_or(&[][..], Vec::as_slice);
        let lacking = wanted.iter().filter(|one| !list.contains(one)).cloned();
        let lacking: Vec<Value> = lacking.collect();
        if lacking.is_empty() {
            continue;
        }
        has_changed = true;
        match kept[part].as_array_mut() {
            Some(list) => list.extend(lacking),
            None => kept[part] = Value::Array(lacking),
        }
    }
    has_changed
}

impl FirstRole {
    fn object(&self) -> Value {
        let kind = if self.namespace.is_empty() {
            "ClusterRole"
        } else {
            "Role"
        };
        let mut role = object(kind, &self.namespace, &self.name);
        if self.is_own {
            // Who selects by this label means Kubernetes' own.
            role["metadata"]["labels"] = json!({});
        }
        if let Some(feeds) = &self.feeds {
            role["metadata"]["labels"][format!("{GATHERED}{feeds}")] = json!("true");
        }
        if let Some(gathers) = &self.gathers {
            let label = format!("{GATHERED}{gathers}");
            role["aggregationRule"] =
                json!({ "clusterRoleSelectors": [{ "matchLabels": { label: "true" } }] });
        }
        // One that gathers has none of its own.
        role["rules"] = match self.gathers {
            Some(_) => Value::Null,
            None => json!(self.rules),
        };
        role
    }
}

impl FirstBinding {
    fn object(&self) -> Value {
        let (kind, role_kind) = if self.namespace.is_empty() {
            ("ClusterRoleBinding", "ClusterRole")
        } else {
            ("RoleBinding", "Role")
        };
        let mut binding = object(kind, &self.namespace, &self.name);
        binding["roleRef"] = json!({ "apiGroup": GROUP, "kind": role_kind, "name": self.role });
        let subjects: Vec<Value> = self
            .subjects
            .iter()
            .filter_map(|subject| subject.split_once(':'))
            .map(|(kind, name)| match name.split_once('/') {
                Some((namespace, name)) if kind == "ServiceAccount" => {
                    json!({ "kind": kind, "name": name, "namespace": namespace })
                }
                _ => json!({ "apiGroup": GROUP, "kind": kind, "name": name }),
            })
            .collect();
        if !subjects.is_empty() {
            binding["subjects"] = json!(subjects);
        }
        binding
    }
}

fn object(kind: &str, namespace: &str, name: &str) -> Value {
    let mut object = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": kind,
        "metadata": {
            "name": name,
            "annotations": { UPDATES: "true" },
            "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" },
        },
    });
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}
