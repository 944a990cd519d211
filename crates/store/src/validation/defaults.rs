//! What the real server fills in before it checks an object.

mod rare;

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// Fills in the defaults of a built-in object that [`crate::schema::Schema::coerce`] has typed.
pub fn default(group: &str, kind: &str, object: &mut Value) {
    match (group, kind) {
        ("", "PersistentVolume") => {
            set(&mut object["spec"], "persistentVolumeReclaimPolicy", || {
                json!("Retain")
            });
            set_missing(&mut object["spec"], "volumeMode", || json!("Filesystem"));
            if let Some(path) = object.pointer_mut("/spec/hostPath") {
                set_missing(path, "type", || json!(""));
            }
        }
        ("", "PersistentVolumeClaim") => {
            set_missing(&mut object["spec"], "volumeMode", || json!("Filesystem"));
        }
        ("", "Endpoints") => {
            for subset in items_of(object, "subsets") {
                for port in items_of(subset, "ports") {
                    set(port, "protocol", || json!("TCP"));
                }
            }
        }
        ("", "LimitRange") => {
            if let Some(spec) = object.get_mut("spec") {
                items_of(spec, "limits").for_each(limit);
            }
        }
        ("", "Namespace") => namespace(object),
        ("", "Node") => node(object),
        ("", "Pod") => {
            set(&mut object["spec"], "enableServiceLinks", || json!(true));
            pod_spec(&mut object["spec"]);
            pod(&mut object["spec"]);
        }
        ("", "PodTemplate") => pod_spec(&mut object["template"]["spec"]),
        ("", "ReplicationController") => replication_controller(object),
        ("", "Secret") => secret(object),
        ("", "Service") => service(&mut object["spec"]),
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => crate::hook::default(kind, object),
        ("apps", _) => apps(kind, object),
        ("batch", "CronJob") => cron_job(&mut object["spec"]),
        ("batch", "Job") => job(object),
        ("discovery.k8s.io", "EndpointSlice") => {
            // Both are told also where they are none.
            for list in ["endpoints", "ports"] {
                set_missing(object, list, || Value::Null);
            }
            for port in items(&mut object["ports"]) {
                set(port, "name", || json!(""));
                set_missing(port, "protocol", || json!("TCP"));
            }
        }
        ("networking.k8s.io", "IngressClass") => {
            if let Some(parameters) = object.get_mut("spec").and_then(|s| s.get_mut("parameters")) {
                set_missing(parameters, "scope", || json!("Cluster"));
            }
        }
        ("networking.k8s.io", "NetworkPolicy") => network_policy(&mut object["spec"]),
        (RBAC, "ClusterRoleBinding" | "RoleBinding") => {
            if let Some(role) = object.get_mut("roleRef") {
                set(role, "apiGroup", || json!(RBAC));
            }
            for subject in items_of(object, "subjects") {
                if matches!(subject["kind"].as_str(), Some("Group" | "User")) {
                    set(subject, "apiGroup", || json!(RBAC));
                }
            }
        }
        ("resource.k8s.io", "ResourceClaim") => devices(&mut object["spec"]),
        ("resource.k8s.io", "ResourceClaimTemplate") => {
            if let Some(spec) = object.get_mut("spec").and_then(|spec| spec.get_mut("spec")) {
                devices(spec);
            }
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            set_missing(object, "preemptionPolicy", || json!("PreemptLowerPriority"));
        }
        ("storage.k8s.io", "StorageClass") => {
            set_missing(object, "reclaimPolicy", || json!("Delete"));
            set_missing(object, "volumeBindingMode", || json!("Immediate"));
        }
        _ => rare::default(group, kind, object),
    }
}

/// The group of roles.
const RBAC: &str = "rbac.authorization.k8s.io";

/// What a container may use at most it also gets, and asks for, unless a limit says otherwise.
fn limit(limit: &mut Value) {
    if limit["type"] != "Container" {
        return;
    }
    for (part, from) in [
        ("default", "max"),
        ("defaultRequest", "default"),
        ("defaultRequest", "min"),
    ] {
        let Some(source) = limit.get(from).and_then(Value::as_object).cloned() else {
            continue;
        };
        set(limit, part, || json!({}));
        for (name, amount) in source {
            set(&mut limit[part], &name, || amount);
        }
    }
}

/// A namespace has its name as a label.
fn namespace(namespace: &mut Value) {
    let name = namespace.pointer("/metadata/name");
    let Some(name) = name.filter(|name| **name != "").cloned() else {
        return;
    };
    if !namespace["metadata"]["labels"].is_object() {
        namespace["metadata"]["labels"] = json!({});
    }
    namespace["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
}

/// The first of a node's networks stands alone too, and what a node has pods may use.
fn node(node: &mut Value) {
    if let Some(status) = node.get_mut("status").filter(|status| status.is_object())
        && let Some(capacity) = status.get("capacity").cloned()
    {
        set_missing(status, "allocatable", || capacity);
    }
    let Some(spec) = node.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let one = spec
        .get("podCIDR")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let first = spec
        .get("podCIDRs")
        .and_then(|all| all[0].as_str())
        .map(str::to_owned);
    match first {
        Some(first) if one.is_empty() => {
            spec.insert("podCIDR".into(), json!(first));
        }
        Some(first) if first == one => {}
        _ if one.is_empty() => {}
        _ => {
            spec.insert("podCIDRs".into(), json!([one]));
        }
    }
}

/// One device is asked for unless more are.
fn devices(spec: &mut Value) {
    let one = |request: &mut Value| {
        set(request, "allocationMode", || json!("ExactCount"));
        if request["allocationMode"] == "ExactCount" {
            set_number(request, "count", 1);
        }
        for toleration in items_of(request, "tolerations") {
            set(toleration, "operator", || json!("Equal"));
        }
    };
    let Some(devices) = spec.get_mut("devices") else {
        return;
    };
    for request in items_of(devices, "requests") {
        if let Some(exactly) = request.get_mut("exactly").filter(|one| one.is_object()) {
            one(exactly);
        }
        items_of(request, "firstAvailable").for_each(one);
    }
}

/// Gives a new Job its selector and the labels of its pods; `metadata.uid` must be set.
pub fn label_job(job: &mut Value) {
    let shares = !has_labels(job) && !is_bare(&job["spec"]["template"]["metadata"]["labels"]);
    if job["spec"]["manualSelector"] != true {
        label_template(job);
    }
    if shares {
        share_labels(job);
    }
}

/// A Job without labels has those of its pods: the real server fills them in when it reads one.
pub fn share_labels(job: &mut Value) {
    let labels = job.pointer("/spec/template/metadata/labels");
    if let Some(labels) = labels.filter(|labels| !is_bare(labels)).cloned()
        && !has_labels(job)
    {
        job["metadata"]["labels"] = labels;
    }
}

fn is_bare(labels: &Value) -> bool {
    labels.as_object().is_none_or(Map::is_empty)
}

fn has_labels(object: &Value) -> bool {
    let labels = object.pointer("/metadata/labels");
    labels.is_some_and(|labels| !is_bare(labels))
}

/// A new Job as its maker owns it: with the labels of its pods, where it has none of its own.
pub fn as_labelled(job: Cow<'_, Value>) -> Cow<'_, Value> {
    let shared = job.pointer("/spec/template/metadata/labels");
    let is_meant = job["kind"] == "Job" && job["apiVersion"] == "batch/v1" && !has_labels(&job);
    match shared
        .filter(|labels| is_meant && !is_bare(labels))
        .cloned()
    {
        Some(labels) => {
            let mut job = job.into_owned();
            job["metadata"]["labels"] = labels;
            Cow::Owned(job)
        }
        None => job,
    }
}

fn label_template(job: &mut Value) {
    let uid = job["metadata"]["uid"].clone();
    let name = match job["metadata"]["name"].clone() {
        Value::Null => json!(""),
        name => name,
    };
    let Some(template) = job["spec"]["template"].as_object_mut() else {
        return;
    };
    let meta = template.entry("metadata").or_insert_with(|| json!({}));
    if !meta["labels"].is_object() {
        meta["labels"] = json!({});
    }
    for (key, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ] {
        set_missing(&mut meta["labels"], key, || value.clone());
    }
    if !job["spec"]["selector"].is_object() {
        job["spec"]["selector"] = json!({});
    }
    if !job["spec"]["selector"]["matchLabels"].is_object() {
        job["spec"]["selector"]["matchLabels"] = json!({});
    }
    let labels = &mut job["spec"]["selector"]["matchLabels"];
    set_missing(labels, "batch.kubernetes.io/controller-uid", || uid);
}

/// Sets a field that is missing, null or an empty text.
fn set(value: &mut Value, name: &str, default: impl FnOnce() -> Value) {
    let Some(map) = value.as_object_mut() else {
        return;
    };
    let is_unset = match map.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    if is_unset {
        map.insert(name.to_owned(), default());
    }
}

/// Sets a field that is missing: an empty text there is one that somebody wrote.
fn set_missing(value: &mut Value, name: &str, default: impl FnOnce() -> Value) {
    if let Some(map) = value.as_object_mut()
        && map.get(name).is_none_or(Value::is_null)
    {
        map.insert(name.to_owned(), default());
    }
}

/// Sets a number that is missing or zero.
fn set_number(value: &mut Value, name: &str, default: i64) {
    if value.is_object() && value[name].as_i64().unwrap_or(0) == 0 {
        value[name] = default.into();
    }
}

/// The items of a list that is there. Never creates the field it looks at.
fn items(value: &mut Value) -> impl Iterator<Item = &mut Value> {
    value.as_array_mut().into_iter().flatten()
}

/// A field's items, without making the field.
fn items_of<'a>(value: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    value
        .get_mut(name)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

/// What pods get beyond what templates of pods get.
fn pod(spec: &mut Value) {
    let is_host_network = spec["hostNetwork"] == true;
    for list in ["containers", "initContainers"] {
        for one in items_of(spec, list) {
            request_limits(one);
            if is_host_network {
                for port in items_of(one, "ports") {
                    let number = port["containerPort"].as_i64().unwrap_or(0);
                    set_number(port, "hostPort", number);
                }
            }
        }
    }
    // A negative grace period was once allowed; it means the shortest.
    if spec["terminationGracePeriodSeconds"]
        .as_i64()
        .is_some_and(|grace| grace < 0)
    {
        spec["terminationGracePeriodSeconds"] = json!(1);
    }
}

fn pod_spec(spec: &mut Value) {
    // The old name of the field and the new one are one field.
    let filled = |name: &str| spec[name].as_str().is_some_and(|text| !text.is_empty());
    let account = ["serviceAccountName", "serviceAccount"].into_iter();
    if let Some(name) = account.clone().find(|name| filled(name)) {
        let given = spec[name].clone();
        account.for_each(|name| spec[name] = given.clone());
    }
    set(spec, "dnsPolicy", || json!("ClusterFirst"));
    set(spec, "restartPolicy", || json!("Always"));
    set(spec, "schedulerName", || json!("default-scheduler"));
    set(spec, "securityContext", || json!({}));
    set(spec, "terminationGracePeriodSeconds", || json!(30));
    for list in ["containers", "ephemeralContainers", "initContainers"] {
        items_of(spec, list).for_each(container);
    }
    for volume in items_of(spec, "volumes") {
        default_volume(volume);
    }
}

fn container(container: &mut Value) {
    set(container, "terminationMessagePath", || {
        json!("/dev/termination-log")
    });
    set(container, "terminationMessagePolicy", || json!("File"));
    let policy = pull_policy(container["image"].as_str().unwrap_or_default());
    set(container, "imagePullPolicy", || json!(policy));
    for port in items_of(container, "ports") {
        set(port, "protocol", || json!("TCP"));
    }
    for one in items_of(container, "env") {
        if let Some(reference) = one
            .get_mut("valueFrom")
            .and_then(|from| from.get_mut("fieldRef"))
        {
            set(reference, "apiVersion", || json!("v1"));
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe).filter(|probe| probe.is_object()) {
            for (name, default) in [
                ("timeoutSeconds", 1),
                ("periodSeconds", 10),
                ("successThreshold", 1),
                ("failureThreshold", 3),
            ] {
                set_number(probe, name, default);
            }
            http_get(probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(hook) = container
            .get_mut("lifecycle")
            .and_then(|all| all.get_mut(hook))
        {
            http_get(hook);
        }
    }
}

fn http_get(handler: &mut Value) {
    if let Some(action) = handler.get_mut("httpGet") {
        set(action, "path", || json!("/"));
        set(action, "scheme", || json!("HTTP"));
    }
    if let Some(action) = handler.get_mut("grpc") {
        set(action, "service", || json!(""));
    }
}

/// A limit without a request is also requested.
fn request_limits(container: &mut Value) {
    let Some(limits) = container["resources"]["limits"].as_object().cloned() else {
        return;
    };
    let resources = &mut container["resources"];
    if !resources["requests"].is_object() {
        resources["requests"] = json!({});
    }
    for (name, limit) in limits {
        if resources["requests"][&name].is_null() {
            resources["requests"][&name] = limit;
        }
    }
}

/// Images that name no fixed version are pulled each time.
fn pull_policy(image: &str) -> &'static str {
    if image.contains('@') {
        return "IfNotPresent";
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    match last.split_once(':') {
        None | Some((_, "latest")) => "Always",
        Some(_) => "IfNotPresent",
    }
}

/// References to fields are to fields of the first version.
fn field_references(items: &mut Value) {
    for item in items_of(items, "items") {
        if let Some(reference) = item.get_mut("fieldRef") {
            set(reference, "apiVersion", || json!("v1"));
        }
    }
}

fn default_volume(volume: &mut Value) {
    let Some(map) = volume.as_object_mut() else {
        return;
    };
    if let Some(source) = map.get_mut("downwardAPI") {
        field_references(source);
    }
    if map.keys().all(|key| key == "name") {
        map.insert("emptyDir".into(), json!({}));
    }
    for source in ["configMap", "downwardAPI", "projected", "secret"] {
        if let Some(source) = map.get_mut(source) {
            set(source, "defaultMode", || json!(0o644));
        }
    }
    if let Some(host_path) = map.get_mut("hostPath").and_then(Value::as_object_mut) {
        host_path.entry("type").or_insert_with(|| json!(""));
    }
    if let Some(projected) = map.get_mut("projected") {
        for source in items_of(projected, "sources") {
            if let Some(token) = source.get_mut("serviceAccountToken") {
                set(token, "expirationSeconds", || json!(3600));
            }
            if let Some(fields) = source.get_mut("downwardAPI") {
                field_references(fields);
            }
        }
    }
    if let Some(spec) = map
        .get_mut("ephemeral")
        .and_then(|ephemeral| ephemeral.get_mut("volumeClaimTemplate"))
        .and_then(|template| template.get_mut("spec"))
    {
        set_missing(spec, "volumeMode", || json!("Filesystem"));
    }
}

/// `stringData` is written only: it goes into `data`.
fn secret(secret: &mut Value) {
    set(secret, "type", || json!("Opaque"));
    let Some(map) = secret.as_object_mut() else {
        return;
    };
    let Some(Value::Object(plain)) = map.remove("stringData") else {
        return;
    };
    if plain.is_empty() {
        return;
    }
    let data = map
        .entry("data")
        .or_insert_with(|| Value::Object(Map::new()));
    for (key, value) in plain {
        data[key] = STANDARD.encode(value.as_str().unwrap_or_default()).into();
    }
}

fn service(spec: &mut Value) {
    set(spec, "sessionAffinity", || json!("None"));
    set(spec, "type", || json!("ClusterIP"));
    if spec["sessionAffinity"] == "None"
        && let Some(map) = spec.as_object_mut()
    {
        map.remove("sessionAffinityConfig");
    }
    if spec["sessionAffinity"] == "ClientIP" {
        set(
            spec,
            "sessionAffinityConfig",
            || json!({"clientIP": {"timeoutSeconds": 10800}}),
        );
    }
    for port in items_of(spec, "ports") {
        set(port, "protocol", || json!("TCP"));
        let number = port["port"].clone();
        let target = port.get("targetPort");
        if target.is_none_or(|target| *target == 0 || *target == "") {
            port["targetPort"] = number;
        }
    }
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    if matches!(kind.as_str(), "ClusterIP" | "LoadBalancer" | "NodePort") {
        set_missing(spec, "internalTrafficPolicy", || json!("Cluster"));
    }
    let is_outside = matches!(kind.as_str(), "LoadBalancer" | "NodePort")
        || (kind == "ClusterIP"
            && spec["externalIPs"]
                .as_array()
                .is_some_and(|ips| !ips.is_empty()));
    if is_outside {
        set(spec, "externalTrafficPolicy", || json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", || json!(true));
    }
}

fn network_policy(spec: &mut Value) {
    let has_egress = spec["egress"]
        .as_array()
        .is_some_and(|rules| !rules.is_empty());
    set(spec, "policyTypes", || match has_egress {
        true => json!(["Ingress", "Egress"]),
        false => json!(["Ingress"]),
    });
}

fn job(job: &mut Value) {
    // A new job has the labels of its pods once those are all there.
    if !job["metadata"]["uid"].is_null() {
        share_labels(job);
    }
    job_spec(&mut job["spec"]);
}

fn job_spec(spec: &mut Value) {
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        set(spec, "completions", || json!(1));
    }
    set(spec, "parallelism", || json!(1));
    let per_index = !spec["backoffLimitPerIndex"].is_null();
    set(spec, "backoffLimit", || {
        json!(if per_index { i32::MAX } else { 6 })
    });
    set_missing(spec, "completionMode", || json!("NonIndexed"));
    set(spec, "suspend", || json!(false));
    set(spec, "manualSelector", || json!(false));
    let has_policy = !spec["podFailurePolicy"].is_null();
    set_missing(spec, "podReplacementPolicy", || match has_policy {
        true => json!("Failed"),
        false => json!("TerminatingOrFailed"),
    });
    for rule in spec
        .get_mut("podFailurePolicy")
        .into_iter()
        .flat_map(|policy| items_of(policy, "rules"))
    {
        for condition in items_of(rule, "onPodConditions") {
            set(condition, "status", || json!("True"));
        }
    }
    if spec["template"].is_object() {
        pod_spec(&mut spec["template"]["spec"]);
    }
    tidy(
        spec,
        &["completions", "backoffLimitPerIndex", "podFailurePolicy"],
    );
}

/// Takes away nulls that looking at a field left behind.
fn tidy(value: &mut Value, names: &[&str]) {
    if let Some(map) = value.as_object_mut() {
        map.retain(|name, inner| !(inner.is_null() && names.contains(&name.as_str())));
    }
}

fn cron_job(spec: &mut Value) {
    set(spec, "concurrencyPolicy", || json!("Allow"));
    set(spec, "failedJobsHistoryLimit", || json!(1));
    set(spec, "successfulJobsHistoryLimit", || json!(3));
    set(spec, "suspend", || json!(false));
    if spec["jobTemplate"]["spec"]["template"].is_object() {
        pod_spec(&mut spec["jobTemplate"]["spec"]["template"]["spec"]);
    }
}

fn replication_controller(object: &mut Value) {
    let spec = &mut object["spec"];
    set(spec, "replicas", || json!(1));
    if spec["template"].is_object() {
        let labels = spec["template"]["metadata"]["labels"].clone();
        let is_unset = spec["selector"].as_object().is_none_or(Map::is_empty);
        if labels.is_object() && is_unset {
            spec["selector"] = labels;
        }
        pod_spec(&mut spec["template"]["spec"]);
    }
}

fn apps(kind: &str, object: &mut Value) {
    if kind == "ControllerRevision" {
        return;
    }
    let spec = &mut object["spec"];
    match kind {
        "DaemonSet" => {
            set(spec, "revisionHistoryLimit", || json!(10));
            set(spec, "updateStrategy", || json!({"type": "RollingUpdate"}));
            set(&mut spec["updateStrategy"], "type", || {
                json!("RollingUpdate")
            });
            if spec["updateStrategy"]["type"] == "RollingUpdate" {
                let strategy = &mut spec["updateStrategy"];
                set(strategy, "rollingUpdate", || json!({}));
                let rolling = &mut strategy["rollingUpdate"];
                set_missing(rolling, "maxUnavailable", || json!(1));
                set_missing(rolling, "maxSurge", || json!(0));
            }
        }
        "Deployment" => {
            set(spec, "progressDeadlineSeconds", || json!(600));
            set(spec, "replicas", || json!(1));
            set(spec, "revisionHistoryLimit", || json!(10));
            set(spec, "strategy", || json!({"type": "RollingUpdate"}));
            set(&mut spec["strategy"], "type", || json!("RollingUpdate"));
            if spec["strategy"]["type"] == "RollingUpdate" {
                let strategy = &mut spec["strategy"];
                set(strategy, "rollingUpdate", || json!({}));
                set_missing(&mut strategy["rollingUpdate"], "maxSurge", || json!("25%"));
                set_missing(&mut strategy["rollingUpdate"], "maxUnavailable", || {
                    json!("25%")
                });
            }
        }
        "ReplicaSet" => set(spec, "replicas", || json!(1)),
        "StatefulSet" => {
            set(spec, "podManagementPolicy", || json!("OrderedReady"));
            set(spec, "replicas", || json!(1));
            set(spec, "revisionHistoryLimit", || json!(10));
            set(
                spec,
                "persistentVolumeClaimRetentionPolicy",
                || json!({"whenDeleted": "Retain", "whenScaled": "Retain"}),
            );
            for field in ["whenDeleted", "whenScaled"] {
                let retention = &mut spec["persistentVolumeClaimRetentionPolicy"];
                set(retention, field, || json!("Retain"));
            }
            set(spec, "updateStrategy", || json!({"type": "RollingUpdate"}));
            let strategy = &mut spec["updateStrategy"];
            set(strategy, "type", || json!("RollingUpdate"));
            if strategy["type"] == "RollingUpdate" {
                set(strategy, "rollingUpdate", || json!({}));
                set_missing(&mut strategy["rollingUpdate"], "partition", || json!(0));
            }
            for claim in items_of(spec, "volumeClaimTemplates") {
                set(claim, "apiVersion", || json!("v1"));
                set(claim, "kind", || json!("PersistentVolumeClaim"));
                set_missing(&mut claim["spec"], "volumeMode", || json!("Filesystem"));
                set(claim, "status", || json!({}));
                set(&mut claim["status"], "phase", || json!("Pending"));
            }
        }
        _ => return,
    }
    if spec["template"].is_object() {
        pod_spec(&mut spec["template"]["spec"]);
    }
}
