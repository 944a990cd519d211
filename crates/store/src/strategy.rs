//! What differs between kinds when they are written: which part a request may change, what counts
//! as a new generation, when a deleted object is free to go.

use api::time::Time;
use serde_json::{Value, json};

use crate::owners::resets;
use crate::registry::{Resource, Source};
use crate::request::Method;

/// Which part of an object a request writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The object without its status.
    Whole,
    /// The status.
    Status,
    /// A namespace's finalizers.
    Finalize,
    /// What a pod's containers may use.
    Size,
    /// Anything: the store itself writes (binding, scale).
    Everything,
}

/// Built-in resources that have a status which only its subresource writes.
pub(crate) fn has_status(row: &Resource) -> bool {
    row.versions
        .iter()
        .any(|version| version.subresource("status").is_some())
}

/// Built-in resources that count generations, by `group/plural`, sorted.
const GENERATIONS: &[&str] = &[
    "/pods",
    "/podtemplates",
    "/replicationcontrollers",
    "admissionregistration.k8s.io/mutatingadmissionpolicies",
    "admissionregistration.k8s.io/mutatingadmissionpolicybindings",
    "admissionregistration.k8s.io/mutatingwebhookconfigurations",
    "admissionregistration.k8s.io/validatingadmissionpolicies",
    "admissionregistration.k8s.io/validatingadmissionpolicybindings",
    "admissionregistration.k8s.io/validatingwebhookconfigurations",
    "apiextensions.k8s.io/customresourcedefinitions",
    "apps/daemonsets",
    "apps/deployments",
    "apps/replicasets",
    "apps/statefulsets",
    "batch/cronjobs",
    "batch/jobs",
    "discovery.k8s.io/endpointslices",
    "flowcontrol.apiserver.k8s.io/flowschemas",
    "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
    "networking.k8s.io/ingressclasses",
    "networking.k8s.io/ingresses",
    "networking.k8s.io/networkpolicies",
    "policy/poddisruptionbudgets",
    "resource.k8s.io/deviceclasses",
    "resource.k8s.io/resourceslices",
    "scheduling.k8s.io/priorityclasses",
];

/// Resources that a replacement may create, by `group/plural`.
const MADE_BY_PUT: &[&str] = &[
    "/endpoints",
    "/events",
    "/limitranges",
    "/services",
    "coordination.k8s.io/leases",
    "node.k8s.io/runtimeclasses",
    "rbac.authorization.k8s.io/clusterrolebindings",
    "rbac.authorization.k8s.io/clusterroles",
    "rbac.authorization.k8s.io/rolebindings",
    "rbac.authorization.k8s.io/roles",
];

/// Whether a replacement creates what is not there.
pub(crate) fn is_made_by_put(row: &Resource) -> bool {
    MADE_BY_PUT.contains(&row.shelf.as_ref())
}

/// Whether objects carry `metadata.generation`.
pub(crate) fn counts_generations(row: &Resource) -> bool {
    row.source == Source::Custom || GENERATIONS.contains(&&*row.shelf)
}

/// Built-in resources that are never updated blindly, by `group/plural`, sorted.
const NEEDS_VERSION: &[&str] = &[
    "admissionregistration.k8s.io/mutatingadmissionpolicies",
    "admissionregistration.k8s.io/mutatingadmissionpolicybindings",
    "admissionregistration.k8s.io/mutatingwebhookconfigurations",
    "admissionregistration.k8s.io/validatingadmissionpolicies",
    "admissionregistration.k8s.io/validatingadmissionpolicybindings",
    "admissionregistration.k8s.io/validatingwebhookconfigurations",
    "apiextensions.k8s.io/customresourcedefinitions",
    "coordination.k8s.io/leases",
    "node.k8s.io/runtimeclasses",
    "policy/poddisruptionbudgets",
    "storage.k8s.io/csidrivers",
    "storage.k8s.io/csinodes",
    "storage.k8s.io/csistoragecapacities",
    "storage.k8s.io/volumeattachments",
];

/// Whether an update must say which version it is based on. Most built-ins allow unconditional
/// updates; custom resources do not, except by patch.
pub(crate) fn needs_version(row: &Resource, method: Method) -> bool {
    let is_strict =
        row.source == Source::Custom || NEEDS_VERSION.binary_search(&&*row.shelf).is_ok();
    is_strict && method == Method::Put
}

/// Numbers of a status that are told even where they are zero, by `group/plural`.
const ZEROES: &[(&str, &[&str])] = &[
    ("/replicationcontrollers", &["replicas"]),
    (
        "apps/daemonsets",
        &[
            "currentNumberScheduled",
            "desiredNumberScheduled",
            "numberMisscheduled",
            "numberReady",
        ],
    ),
    ("apps/replicasets", &["replicas"]),
    ("apps/statefulsets", &["availableReplicas", "replicas"]),
    (
        "policy/poddisruptionbudgets",
        &[
            "currentHealthy",
            "desiredHealthy",
            "disruptionsAllowed",
            "expectedPods",
        ],
    ),
];

/// A status of which nothing is set.
fn zero_status(row: &Resource) -> Value {
    let told = ZEROES.iter().find(|(shelf, _)| *shelf == &*row.shelf);
    let names = told.map_or(&[][..], |(_, names)| names);
    let zero = |name: &&str| ((*name).to_owned(), json!(0));
    Value::Object(names.iter().map(zero).collect())
}

/// Lists that may be empty and are told even then, by `group/plural`.
const TOLD: &[(&str, &str)] = &[
    ("/limitranges", "/spec/limits"),
    (
        "batch/cronjobs",
        "/spec/jobTemplate/spec/podFailurePolicy/rules",
    ),
    ("batch/jobs", "/spec/podFailurePolicy/rules"),
    ("discovery.k8s.io/endpointslices", "/endpoints"),
    ("discovery.k8s.io/endpointslices", "/ports"),
    ("rbac.authorization.k8s.io/clusterroles", "/rules"),
    ("rbac.authorization.k8s.io/roles", "/rules"),
    ("resource.k8s.io/resourceclaims", "/spec/devices/requests"),
    (
        "resource.k8s.io/resourceclaimtemplates",
        "/spec/spec/devices/requests",
    ),
    ("storage.k8s.io/csinodes", "/spec/drivers"),
];

/// A list that is told and was left out is none.
pub(crate) fn tell_lists(row: &Resource, object: &mut Value) {
    for (_, place) in TOLD.iter().filter(|(shelf, _)| *shelf == &*row.shelf) {
        let (parent, name) = place.rsplit_once('/').unwrap_or(("", place));
        let parent = object.pointer_mut(parent).and_then(Value::as_object_mut);
        if let Some(parent) = parent {
            parent.entry(name).or_insert(Value::Null);
        }
    }
}

/// An empty list comes back from upstream's storage as none.
fn no_items(row: &Resource, object: &mut Value) {
    tell_lists(row, object);
    for (_, place) in TOLD.iter().filter(|(shelf, _)| *shelf == &*row.shelf) {
        if let Some(list) = object.pointer_mut(place)
            && list.as_array().is_some_and(Vec::is_empty)
        {
            *list = Value::Null;
        }
    }
}

/// The first status of an object, in place of whatever the client sent.
pub(crate) fn prepare_create(row: &Resource, object: &mut Value) {
    no_items(row, object);
    let Some(map) = object.as_object_mut() else {
        return;
    };
    let first = match &*row.shelf {
        "/namespaces" => Some(json!({ "phase": "Active" })),
        "/persistentvolumeclaims" | "/persistentvolumes" => Some(json!({ "phase": "Pending" })),
        "/pods" => Some(json!({ "phase": "Pending", "qosClass": quality(map.get("spec")) })),
        "autoscaling/horizontalpodautoscalers" => {
            Some(json!({ "currentMetrics": null, "desiredReplicas": 0 }))
        }
        "storage.k8s.io/volumeattachments" => Some(json!({ "attached": false })),
        "/services" | "networking.k8s.io/ingresses" => Some(json!({ "loadBalancer": {} })),
        // A node says of itself what it is.
        "/nodes" => map.get("status").cloned(),
        "apiextensions.k8s.io/customresourcedefinitions" => None,
        _ if has_status(row) && row.source == Source::BuiltIn => Some(zero_status(row)),
        _ if has_status(row) => None,
        _ => map.get("status").cloned(),
    };
    match first {
        Some(status) => map.insert("status".to_owned(), status),
        None => map.remove("status"),
    };
    if &*row.shelf == "/namespaces" {
        if !object["spec"].is_object() {
            object["spec"] = json!({});
        }
        let finalizers = &mut object["spec"]["finalizers"];
        if !finalizers.is_array() {
            *finalizers = json!([]);
        }
        if let Some(list) = finalizers.as_array_mut()
            && !list.iter().any(|one| one == "kubernetes")
        {
            list.push(json!("kubernetes"));
        }
        let name = object["metadata"]["name"].clone();
        if !object["metadata"]["labels"].is_object() {
            object["metadata"]["labels"] = json!({});
        }
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
    }
}

/// What a new object gets once its name and uid are known.
pub(crate) fn generate(row: &Resource, object: &mut Value) {
    match &*row.shelf {
        "/limitranges" if matches!(object["metadata"]["name"].as_str(), None | Some("")) => {
            object["metadata"]["name"] = object["metadata"]["uid"].clone();
        }
        "/persistentvolumeclaims" => pair_data_sources(&mut object["spec"]),
        "/persistentvolumes" => {
            let born = object["metadata"]["creationTimestamp"].clone();
            object["status"]["lastPhaseTransitionTime"] = born;
        }
        "/pods" => tell_gates(object),
        "/services" => crate::addresses::settle(object, None),
        "batch/jobs" => crate::validation::label_job(object),
        _ => {}
    }
}

/// A pod with gates says from the start that nobody looks for a node.
fn tell_gates(pod: &mut Value) {
    let gates = pod.pointer("/spec/schedulingGates");
    if gates.and_then(Value::as_array).is_none_or(Vec::is_empty) {
        return;
    }
    pod["status"]["conditions"] = json!([{
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": null,
        "lastTransitionTime": pod["metadata"]["creationTimestamp"],
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }]);
}

/// What an object gets once it has been found to be right.
pub(crate) fn complete(row: &Resource, object: &mut Value, old: Option<&Value>) {
    match &*row.shelf {
        "batch/jobs" if old.is_none() => crate::validation::share_labels(object),
        // Upstream fills in what the older version left out when it reads what it stored.
        crate::autoscaler::SHELF => {
            crate::validation::default(&row.group, &row.kind, object);
        }
        _ => {}
    }
}

/// Says since when a volume has been in its phase, unless whoever changed it said so.
pub(crate) fn date_phase(row: &Resource, object: &mut Value, old: &Value, now: Time) {
    const SINCE: &str = "lastPhaseTransitionTime";
    let (new, was) = (&object["status"], &old["status"]);
    let is_told = !new[SINCE].is_null() && new[SINCE] != was[SINCE];
    if &*row.shelf == "/persistentvolumes" && new["phase"] != was["phase"] && !is_told {
        object["status"][SINCE] = json!(now.seconds_text());
    }
}

/// A claim names its data source twice, in an old field and a new one.
fn pair_data_sources(spec: &mut Value) {
    let is_known = |source: &Value| {
        let kind = (
            source["apiGroup"].as_str().unwrap_or_default(),
            source["kind"].as_str(),
        );
        matches!(
            kind,
            ("", Some("PersistentVolumeClaim"))
                | ("snapshot.storage.k8s.io", Some("VolumeSnapshot"))
        )
    };
    let Some(map) = spec.as_object_mut() else {
        return;
    };
    if map
        .get("dataSource")
        .is_some_and(|source| !is_known(source))
    {
        map.remove("dataSource");
    }
    match (
        map.get("dataSource").cloned(),
        map.get("dataSourceRef").cloned(),
    ) {
        (Some(old), None) => {
            map.insert("dataSourceRef".to_owned(), old);
        }
        (None, Some(new)) if new["namespace"].is_null() => {
            map.insert("dataSource".to_owned(), new);
        }
        _ => {}
    }
}

/// A pod's quality of service class, from its requests and limits.
pub(crate) fn quality(spec: Option<&Value>) -> &'static str {
    let spec = spec.unwrap_or(&Value::Null);
    let (mut any, mut guaranteed) = (false, true);
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array().into_iter().flatten() {
            let resources = &container["resources"];
            for name in ["cpu", "memory"] {
                let (request, limit) = (&resources["requests"][name], &resources["limits"][name]);
                any |= !request.is_null() || !limit.is_null();
                guaranteed &= !limit.is_null() && (request.is_null() || request == limit);
            }
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Keeps what this request may not change.
pub(crate) fn prepare_update(row: &Resource, part: Part, object: &mut Value, old: &Value) {
    no_items(row, object);
    match part {
        Part::Everything => {}
        Part::Size => keep_but_sizes(object, old),
        Part::Whole => {
            if &*row.shelf == "/services" {
                drop_of_type(&mut object["spec"], &old["spec"]);
            }
            if &*row.shelf == CERTIFICATES {
                keep(object, old, "spec");
            }
            // CustomResourceDefinitions keep their conditions through the store itself.
            if has_status(row) {
                keep(object, old, "status");
            }
            if &*row.shelf == "/namespaces" {
                if !object["spec"].is_object() {
                    object["spec"] = json!({});
                }
                object["spec"]["finalizers"] = old["spec"]["finalizers"].clone();
            }
        }
        Part::Status if row.source == Source::Custom => {
            let status = object["status"].take();
            restore(object, old, &["status"]);
            put(object, "status", status);
        }
        Part::Status => {
            restore(object, old, &["metadata", "status"]);
            let kept = resets(row, "status").kept_meta();
            kept.iter().for_each(|key| keep_meta(object, old, key));
            // Kubelets that do not know the class leave it out.
            if &*row.shelf == "/pods" && object["status"]["qosClass"].is_null() {
                keep_status(object, old, "qosClass");
            }
        }
        Part::Finalize => {
            let finalizers = object["spec"]["finalizers"].take();
            *object = old.clone();
            if finalizers.is_null() {
                if let Some(spec) = object["spec"].as_object_mut() {
                    spec.remove("finalizers");
                }
            } else {
                object["spec"]["finalizers"] = finalizers;
            }
        }
    }
    for key in [
        "creationTimestamp",
        "generateName",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "selfLink",
        "uid",
    ] {
        keep_meta(object, old, key);
    }
    // That an object goes is never taken back; that it is to go, no update can say.
    for key in ["deletionGracePeriodSeconds", "deletionTimestamp"] {
        if !old["metadata"]["deletionTimestamp"].is_null() {
            keep_meta(object, old, key);
        }
    }
}

/// A pod as it was, but for what its containers may use. Where the containers are not the same,
/// the checks that follow say so.
fn keep_but_sizes(object: &mut Value, old: &Value) {
    let names = |pod: &Value, kind: &str| -> Vec<Value> {
        let containers = pod["spec"][kind].as_array().into_iter().flatten();
        containers.map(|one| one["name"].clone()).collect()
    };
    const KINDS: [&str; 2] = ["containers", "initContainers"];
    let has_as_many = |kind: &&str| names(object, kind).len() == names(old, kind).len();
    if !KINDS.iter().all(has_as_many) {
        return;
    }
    let mut spec = old["spec"].clone();
    for kind in KINDS {
        let news = object["spec"].get(kind).and_then(Value::as_array);
        if names(object, kind) != names(old, kind) {
            spec[kind] = json!(news);
            continue;
        }
        let olds = spec.get_mut(kind).and_then(Value::as_array_mut);
        for (old, new) in olds.into_iter().flatten().zip(news.into_iter().flatten()) {
            for part in ["resizePolicy", "resources"] {
                put(old, part, new[part].clone());
            }
        }
    }
    object["spec"] = spec;
    keep(object, old, "status");
    for key in ["annotations", "finalizers", "labels", "ownerReferences"] {
        keep_meta(object, old, key);
    }
}

/// Fields that a service of another type was given, with the types that have them.
const OF_TYPE: &[(&str, &[&str])] = &[
    ("allocateLoadBalancerNodePorts", &["LoadBalancer"]),
    ("clusterIP", &["ClusterIP", "LoadBalancer", "NodePort"]),
    ("clusterIPs", &["ClusterIP", "LoadBalancer", "NodePort"]),
    ("externalTrafficPolicy", &["LoadBalancer", "NodePort"]),
    ("healthCheckNodePort", &["LoadBalancer"]),
    (
        "internalTrafficPolicy",
        &["ClusterIP", "LoadBalancer", "NodePort"],
    ),
    ("ipFamilies", &["ClusterIP", "LoadBalancer", "NodePort"]),
    ("ipFamilyPolicy", &["ClusterIP", "LoadBalancer", "NodePort"]),
    ("loadBalancerClass", &["LoadBalancer"]),
];

/// A service that changes its type loses what only the old type had, unless it was changed too.
fn drop_of_type(spec: &mut Value, was: &Value) {
    let (kind, had) = (spec["type"].clone(), &was["type"]);
    let Some(map) = spec.as_object_mut() else {
        return;
    };
    for (field, types) in OF_TYPE {
        let has = |kind: &Value| types.iter().any(|one| kind == one);
        if has(had) && !has(&kind) && map.get(*field) == was.get(*field) {
            map.remove(*field);
        }
    }
}

fn put(object: &mut Value, key: &str, value: Value) {
    let Some(map) = object.as_object_mut() else {
        return;
    };
    if value.is_null() {
        map.remove(key);
    } else {
        map.insert(key.to_owned(), value);
    }
}

/// Everything but these fields is as it was before. Most of it is already, and is left where it is.
fn restore(object: &mut Value, old: &Value, but: &[&str]) {
    let (Some(map), Some(old)) = (object.as_object_mut(), old.as_object()) else {
        return;
    };
    map.retain(|key, _| but.contains(&key.as_str()) || old.contains_key(key));
    for (key, value) in old {
        if !but.contains(&key.as_str()) && map.get(key) != Some(value) {
            map.insert(key.clone(), value.clone());
        }
    }
}

fn keep(object: &mut Value, old: &Value, key: &str) {
    put(object, key, old[key].clone());
}

fn keep_status(object: &mut Value, old: &Value, key: &str) {
    if !object["status"].is_object() {
        object["status"] = json!({});
    }
    put(&mut object["status"], key, old["status"][key].clone());
}

fn keep_meta(object: &mut Value, old: &Value, key: &str) {
    put(&mut object["metadata"], key, old["metadata"][key].clone());
}

/// Resources whose first generation is also their last.
const STILL: &[&str] = &["scheduling.k8s.io/priorityclasses"];

/// The shelf of requests for certificates.
pub(crate) const CERTIFICATES: &str = "certificates.k8s.io/certificatesigningrequests";

/// Requests for certificates tell since when each of their conditions holds; who answers leaves alone
/// what was approved or denied, who approves leaves alone the rest.
pub(crate) fn answer(subresource: &str, object: &mut Value, old: &Value, now: Time) {
    let conditions = |of: &Value| of["status"]["conditions"].as_array().cloned();
    let (mut all, before) = (
        conditions(object).unwrap_or_default(),
        conditions(old).unwrap_or_default(),
    );
    if subresource == "status" {
        for kind in ["Approved", "Denied"] {
            let is_kind = |one: &&Value| one["type"] == kind;
            let kept: Vec<&Value> = before.iter().filter(is_kind).collect();
            if all.iter().filter(is_kind).count() == kept.len() {
                let news = all.iter_mut().filter(|one| one["type"] == kind);
                news.zip(kept).for_each(|(new, kept)| *new = kept.clone());
            }
        }
    }
    let now = json!(now.seconds_text());
    for condition in &mut all {
        if condition["lastUpdateTime"].is_null() {
            condition["lastUpdateTime"] = now.clone();
        }
        if condition["lastTransitionTime"].is_null() {
            let is_same = |one: &&Value| {
                ["type", "status"]
                    .iter()
                    .all(|part| one[*part] == condition[*part])
            };
            let since = before
                .iter()
                .find(is_same)
                .map(|one| one["lastTransitionTime"].clone());
            condition["lastTransitionTime"] = since
                .filter(|since| !since.is_null())
                .unwrap_or_else(|| now.clone());
        }
    }
    if subresource == "approval" {
        keep(object, old, "status");
    }
    if !all.is_empty() || !object["status"]["conditions"].is_null() {
        if !object["status"].is_object() {
            object["status"] = json!({});
        }
        put(&mut object["status"], "conditions", Value::Array(all));
    }
}

/// Resources that have no generation before their first change.
const LATE: &[&str] = &["storage.k8s.io/csidrivers"];

/// Counts a change of the wanted state.
pub(crate) fn count_generation(row: &Resource, object: &mut Value, old: &Value) {
    if LATE.contains(&&*row.shelf) {
        let before = old["metadata"]["generation"].as_i64().unwrap_or(0);
        if object["spec"] != old["spec"] {
            object["metadata"]["generation"] = json!(before + 1);
        }
        return;
    }
    if !counts_generations(row) || STILL.contains(&&*row.shelf) {
        return;
    }
    // What an EndpointSlice belongs to stands in its labels.
    let is_labelled = &*row.shelf == "discovery.k8s.io/endpointslices"
        && object["metadata"]["labels"] != old["metadata"]["labels"];
    if is_labelled || wanted(row, object).ne(wanted(row, old)) {
        add_generation(object);
    }
}

/// The fields of an object that say what is wanted.
fn wanted<'o>(row: &Resource, object: &'o Value) -> impl Iterator<Item = (&'o String, &'o Value)> {
    let ignores_status = has_status(row);
    let fields = object.as_object().into_iter().flatten();
    fields.filter(move |(key, _)| {
        *key != "metadata" && *key != "apiVersion" && !(ignores_status && *key == "status")
    })
}

/// One more generation, where the object counts them.
pub(crate) fn add_generation(object: &mut Value) {
    if let Some(generation) = object["metadata"]["generation"].as_i64() {
        object["metadata"]["generation"] = json!(generation + 1);
    }
}

/// Whether an object that was to be deleted is now held by nobody.
pub(crate) fn is_released(row: &Resource, object: &Value, old: &Value) -> bool {
    let meta = &object["metadata"];
    let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    !old["metadata"]["deletionTimestamp"].is_null()
        && is_empty(&meta["finalizers"])
        && meta["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && (&*row.shelf != "/namespaces" || is_empty(&object["spec"]["finalizers"]))
}
