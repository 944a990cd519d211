//! What is tried out: an object that is applied, one that goes, nodes that are drained.

use std::collections::{BTreeMap, BTreeSet};

use api::call::Call;
use api::core::Pod;
use api::dialect;
use api::intent::ObjectKey;
use api::kind::Kind;
use api::time::Time;
use serde::Deserialize;
use serde_json::{Value, json};
use store::Response;

use super::{Rehearsal, limits, place, said};
use crate::{calls, stored};

/// `apiVersion` of the kinds that are no manifests: `Delete` and `Drain`.
pub const WHAT_IF: &str = "whatif.katmai.dev/v1";

/// Who applies manifests, by the name under which he has done so before.
const APPLIER: &str = "kubectl";
/// Who did so where what a manifest says is kept in an annotation.
const APPLIER_BEFORE: &str = "kubectl-client-side-apply";

/// An object that a change names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Named {
    /// One of a kind that somebody decides on.
    Known(ObjectKey),
    /// A LimitRange, which only the API goes by.
    LimitRange {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

impl Named {
    /// Its kind, if it is one that somebody decides on.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Named::Known(key) => Some(key.kind),
            Named::LimitRange { .. } => None,
        }
    }

    /// Where an API serves it.
    pub fn path(&self) -> String {
        match self {
            Named::Known(key) => key.kind.path(&key.namespace, &key.name),
            Named::LimitRange { namespace, name } => limits::path(namespace, name),
        }
    }

    /// Its kind, namespace and name, for people.
    pub fn title(&self) -> String {
        let kind = self.kind().map_or(limits::KIND, |kind| kind.row().name);
        match (self.namespace(), self.name()) {
            ("", name) => format!("{kind} {name}"),
            (namespace, name) => format!("{kind} {namespace}/{name}"),
        }
    }

    fn namespace(&self) -> &str {
        match self {
            Named::Known(key) => &key.namespace,
            Named::LimitRange { namespace, .. } => namespace,
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Named::Known(key) => &key.name,
            Named::LimitRange { name, .. } => name,
        }
    }
}

/// One change of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A manifest, as by `kubectl apply --server-side --force-conflicts`.
    Apply(Named, Value),
    /// Objects go.
    Delete(Vec<Named>),
    /// Nodes are cordoned and what runs there is evicted, as by `kubectl drain --ignore-daemonsets
    /// --force --delete-emptydir-data`: not pods that a node shows of its own files.
    Drain {
        /// These nodes.
        nodes: Vec<String>,
        /// And those that bear all of these labels, where there are any.
        labels: BTreeMap<String, String>,
    },
}

/// A change, or a part of one, that the API would refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What was to be done: `apply`, `delete`, `cordon` or `evict`, and to what.
    pub what: String,
    /// HTTP code.
    pub code: u16,
    /// What the API says.
    pub message: String,
}

impl Change {
    /// Understands a document. `namespace` is for objects that name none.
    ///
    /// # Errors
    /// The field that is wrong and what is wrong with it.
    pub fn read(document: &Value, namespace: &str) -> Result<Change, (String, String)> {
        if !Change::is_question(document) {
            let mut object = document.clone();
            let key = key_of(document, "", namespace)?;
            dialect::hear(&mut object);
            if !key.namespace().is_empty() {
                object["metadata"]["namespace"] = json!(key.namespace());
            }
            return Ok(Change::Apply(key, object));
        }
        if said(document, "apiVersion") != WHAT_IF {
            return Err(wrong("apiVersion", &format!("is {WHAT_IF}")));
        }
        match said(document, "kind") {
            "Delete" => delete(document, namespace),
            "Drain" => drain(document),
            other => Err(wrong(
                "kind",
                &format!("{other:?} is none of {WHAT_IF}: it has Delete and Drain"),
            )),
        }
    }
}

impl Change {
    /// Whether a document is no manifest, but one of the group of [`WHAT_IF`], whatever it says there.
    pub fn is_question(document: &Value) -> bool {
        let group = |version: &str| version.split('/').next().map(str::to_owned);
        group(said(document, "apiVersion")) == group(WHAT_IF)
    }

    /// The objects that it names.
    pub fn keys(&self) -> &[Named] {
        match self {
            Change::Apply(key, _) => std::slice::from_ref(key),
            Change::Delete(keys) => keys,
            Change::Drain { .. } => &[],
        }
    }

    /// Whether a ConfigMap may be another afterwards.
    fn touches_maps(&self) -> bool {
        let mut kinds = self.keys().iter().filter_map(Named::kind);
        kinds.any(|kind| matches!(kind, Kind::ConfigMap | Kind::Namespace))
    }
}

fn wrong(field: &str, text: &str) -> (String, String) {
    (field.to_owned(), text.to_owned())
}

/// Refuses a field that is none: it would seem to have been heeded. `within` is the path of the fields.
fn only(object: &Value, within: &str, fields: &[&str]) -> Result<(), (String, String)> {
    let mut there = object.as_object().into_iter().flat_map(|it| it.keys());
    match there.find(|field| !fields.contains(&field.as_str())) {
        Some(field) => Err(wrong(
            &format!("{within}{field}"),
            &format!("is no field here: there are {}", fields.join(", ")),
        )),
        None => Ok(()),
    }
}

/// Refuses a field that is no text: it would seem not to be there.
fn texts(object: &Value, within: &str) -> Result<(), (String, String)> {
    let mut fields = object.as_object().into_iter().flatten();
    match fields.find(|(_, value)| !value.is_string()) {
        Some((field, _)) => Err(wrong(&format!("{within}{field}"), "is a text")),
        None => Ok(()),
    }
}

fn delete(document: &Value, namespace: &str) -> Result<Change, (String, String)> {
    const FIELDS: &[&str] = &["apiVersion", "kind", "namespace", "name"];
    only(document, "", &["apiVersion", "kind", "objects"])?;
    let objects = document["objects"].as_array().filter(|it| !it.is_empty());
    let Some(objects) = objects else {
        let text = format!("names what goes: {}", FIELDS.join(", "));
        return Err(wrong("objects", &text));
    };
    let keys = objects.iter().enumerate().map(|(at, object)| {
        let within = format!("objects[{at}]");
        if !object.is_object() {
            let text = format!("is one object: {}", FIELDS.join(", "));
            return Err(wrong(&within, &text));
        }
        let within = format!("{within}.");
        only(object, &within, FIELDS)?;
        texts(object, &within)?;
        let whole = json!({
            "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": object,
        });
        key_of(&whole, &within, namespace)
    });
    Ok(Change::Delete(keys.collect::<Result<_, _>>()?))
}

fn drain(document: &Value) -> Result<Change, (String, String)> {
    only(
        document,
        "",
        &["apiVersion", "kind", "nodes", "nodeSelector"],
    )?;
    let nodes: Vec<String> = match &document["nodes"] {
        Value::Null => Vec::new(),
        names => serde_json::from_value(names.clone())
            .map_err(|_| wrong("nodes", "is a list of names"))?,
    };
    let labels: BTreeMap<String, String> = match &document["nodeSelector"] {
        Value::Null => BTreeMap::new(),
        labels => serde_json::from_value(labels.clone())
            .map_err(|_| wrong("nodeSelector", "is a map of labels and their values"))?,
    };
    if nodes.is_empty() && labels.is_empty() {
        return Err(wrong(
            "nodes",
            "or nodeSelector says which nodes are drained",
        ));
    }
    Ok(Change::Drain { nodes, labels })
}

/// `within` is the path of the fields.
fn key_of(object: &Value, within: &str, namespace: &str) -> Result<Named, (String, String)> {
    let (version, name) = (said(object, "apiVersion"), said(object, "kind"));
    let kind = Kind::find(version, name);
    for (field, text) in [("apiVersion", version), ("kind", name)] {
        if text.is_empty() {
            return Err(wrong(&format!("{within}{field}"), "is missing"));
        }
    }
    if kind.is_none() && !limits::is_one(object) {
        let text = format!("{name} of {version:?} has no part in decisions");
        return Err(wrong(&format!("{within}kind"), &text));
    }
    let (given, name) = place(object);
    if name.is_empty() {
        let field = if within.is_empty() {
            "metadata."
        } else {
            within
        };
        return Err(wrong(&format!("{field}name"), "is missing"));
    }
    let is_namespaced = kind.is_none_or(|kind| kind.row().namespaced);
    let namespace = match (is_namespaced, given) {
        (false, _) => "",
        (true, "") => namespace,
        (true, given) => given,
    };
    Ok(match kind {
        Some(kind) => Named::Known(ObjectKey::new(kind, namespace, name)),
        None => Named::LimitRange {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        },
    })
}

impl Rehearsal {
    /// Makes a change, and says what of it would be refused. Nothing is decided yet.
    pub fn change(&mut self, change: &Change) -> Vec<Refused> {
        self.changed_at = self.now;
        let refused = match change {
            Change::Apply(key, object) => self.apply(key, object).into_iter().collect(),
            Change::Delete(keys) => self.delete_all(keys),
            Change::Drain { nodes, labels } => self.drain(nodes, labels),
        };
        if change.touches_maps() {
            // Nobody watches these: they are read when it is time. To whoever waits it is time now, as if
            // the clock had been set, and only a rehearsal that goes on for a minute would see it else.
            self.driver.handle_leap(self.now);
        }
        refused
    }

    fn apply(&mut self, key: &Named, object: &Value) -> Option<Refused> {
        if !key.namespace().is_empty() && self.makes_namespaces {
            // Whoever submits something has a namespace for it.
            let namespace = super::namespace(key.namespace());
            self.call(&calls::post(&Kind::Namespace.path("", ""), &namespace));
        }
        let target = key.path();
        let apply = |target: &str| Call {
            method: "PATCH",
            target: format!("{target}?fieldManager={APPLIER}&force=true"),
            content_type: "application/apply-patch+yaml",
            body: object.to_string().into_bytes(),
        };
        let what = format!("apply {}", key.title());
        let found = self.call(&calls::get(&target));
        let is_new = found.code == 404;
        let stood: Value = serde_json::from_slice(&found.body).unwrap_or_default();
        let refused = self.tried(what.clone(), &apply(&target));
        if key.kind() != Some(Kind::Node) || refused.is_some() {
            return refused;
        }
        // What a kubelet would say of a node is said here; and no taint is left of its beginning.
        let taints = object["spec"]["taints"].as_array();
        let refused = (is_new || taints.is_some()).then(|| {
            let taints = taints.cloned().unwrap_or_default().into_iter();
            let taints: Vec<Value> = taints.map(|taint| since(taint, &stood, self.now)).collect();
            let taints = json!({ "spec": { "taints": taints } });
            self.tried(what.clone(), &calls::merge(&target, &taints))
        });
        let refused = refused.flatten();
        refused.or_else(|| self.tried(what, &apply(&format!("{target}/status"))))
    }

    fn drain(&mut self, names: &[String], labels: &BTreeMap<String, String>) -> Vec<Refused> {
        let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let is_selected = |node: &Value| {
            let has = |(key, value): (&String, &String)| node["metadata"]["labels"][key] == **value;
            !labels.is_empty() && labels.iter().all(has)
        };
        let is_meant = |node: &Value| {
            let (_, name) = place(node);
            names.contains(name) || is_selected(node)
        };
        let nodes = self.objects(Kind::Node);
        let is_idle = !labels.is_empty() && !nodes.iter().any(is_selected);
        let nodes: BTreeSet<String> = (nodes.iter().filter(|node| is_meant(node)))
            .map(|node| place(node).1.to_owned())
            .collect();
        let mut refused = Vec::new();
        for missing in names.iter().filter(|name| !nodes.contains(**name)) {
            refused.push(Refused {
                what: format!("cordon Node {missing}"),
                code: 404,
                message: "there is no such node".to_owned(),
            });
        }
        if is_idle {
            let labels: Vec<String> = (labels.iter())
                .map(|(key, value)| format!("{key}={value}"))
                .collect();
            refused.push(Refused {
                what: format!("cordon Nodes with {}", labels.join(",")),
                code: 404,
                message: "there is no such node".to_owned(),
            });
        }
        for node in &nodes {
            let cordon = calls::merge(
                &Kind::Node.path("", node),
                &json!({ "spec": { "unschedulable": true } }),
            );
            refused.extend(self.tried(format!("cordon Node {node}"), &cordon));
        }
        let pods = self.objects(Kind::Pod);
        let there = pods.iter().filter(|pod| {
            nodes.contains(said(&pod["spec"], "nodeName"))
                && !stored::is_over(pod)
                && !is_of_node(pod)
        });
        for pod in there {
            let (namespace, name) = place(pod);
            let eviction = json!({
                "apiVersion": "policy/v1", "kind": "Eviction",
                "metadata": { "namespace": namespace, "name": name },
            });
            let target = format!("{}/eviction", Kind::Pod.path(namespace, name));
            let call = calls::post(&target, &eviction);
            refused.extend(self.tried(format!("evict Pod {namespace}/{name}"), &call));
        }
        refused
    }

    pub(super) fn tried(&mut self, what: String, call: &Call) -> Option<Refused> {
        let response: Response = self.call(call);
        if (200..300).contains(&response.code) {
            return None;
        }
        Some(Refused {
            what,
            code: response.code,
            message: crate::wire::refusal_of(&response).message.into(),
        })
    }
}

/// A taint that comes now drives pods away from now on: those that bear it for a while have all of that.
fn since(mut taint: Value, node: &Value, now: Time) -> Value {
    let is_same = |it: &Value| {
        ["key", "value", "effect"]
            .iter()
            .all(|at| it[at] == taint[at])
    };
    let stood = node["spec"]["taints"].as_array();
    let is_known = stood.is_some_and(|taints| taints.iter().any(is_same));
    if !is_known && taint["effect"] == "NoExecute" && taint["timeAdded"].is_null() {
        taint["timeAdded"] = json!(now);
    }
    taint
}

/// Whoever has applied manifests and now applies them in the server owns what he set before, as if he had
/// always done so there: `kubectl apply --server-side` sees to it.
pub(super) fn with_one_applier(object: &mut Value) {
    let Some(owners) = object["metadata"]["managedFields"].as_array_mut() else {
        return;
    };
    if owners
        .iter()
        .any(|it| it["manager"] == APPLIER && it["operation"] == "Apply")
    {
        return;
    }
    let is_whole = |it: &Value| it["subresource"].as_str().unwrap_or_default().is_empty();
    let before = owners.iter_mut();
    for owner in before.filter(|it| it["manager"] == APPLIER_BEFORE && is_whole(it)) {
        owner["manager"] = json!(APPLIER);
        owner["operation"] = json!("Apply");
    }
}

/// Whether it would only be there again: a drain leaves it out.
fn is_of_node(pod: &Value) -> bool {
    Pod::deserialize(pod).is_ok_and(|pod| pod.is_of_node())
}
