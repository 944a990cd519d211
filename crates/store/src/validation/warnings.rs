//! What is said of an object that is taken all the same: fields that are old, or that do not do
//! what they seem to. The texts are upstream's.

use api::quantity::Quantity;
use serde_json::Value;

use crate::annotations::{ENFORCE_SECRETS, INGRESS_CLASS, STORAGE_CLASS};
use crate::field::go_quoted;

/// Labels of nodes that have other names by now.
const OLD_LABELS: &[(&str, &str)] = &[
    (
        "beta.kubernetes.io/arch",
        "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    (
        "beta.kubernetes.io/os",
        "deprecated since v1.14; use \"kubernetes.io/os\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
];

/// Volumes that nothing mounts any more: the field, its name in the text, what is said.
const OLD_VOLUMES: &[(&str, &str, &str)] = &[
    (
        "cephfs",
        "cephfs",
        "deprecated in v1.28, non-functional in v1.31+",
    ),
    (
        "flocker",
        "flocker",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "gitRepo",
        "gitRepo",
        "deprecated in v1.11, and disabled by default in v1.33+",
    ),
    (
        "glusterfs",
        "glusterfs",
        "deprecated in v1.25, non-functional in v1.26+",
    ),
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    (
        "quobyte",
        "quobyte",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "rbd",
        "rbd",
        "deprecated in v1.28, non-functional in v1.31+",
    ),
    (
        "scaleIO",
        "scaleIO",
        "deprecated in v1.16, non-functional in v1.22+",
    ),
    (
        "storageos",
        "storageOS",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
];

/// Jobs beyond both of these are hard to keep count of.
const COMPLETIONS_MANY: i64 = 100_000;
const PARALLELISM_MANY: i64 = 10_000;

/// What is said of a new or changed object of a built-in kind.
pub fn warnings(group: &str, kind: &str, object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut said = Vec::new();
    let note = |object: &Value, name: &str| !object["metadata"]["annotations"][name].is_null();
    if (group, kind) == ("", "ServiceAccount")
        && note(object, ENFORCE_SECRETS)
        && !old.is_some_and(|old| note(old, ENFORCE_SECRETS))
    {
        said.push(format!("metadata.annotations[{ENFORCE_SECRETS}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"));
    }
    // Nobody reads what is told to those who change pods; a template says it when it changes.
    if old.is_some_and(|old| kind == "Pod" || old["spec"] == object["spec"]) {
        return said;
    }
    let spec = &object["spec"];
    match (group, kind) {
        ("", "Pod") => pod(&object["metadata"], spec, "", &mut said),
        ("", "Node") if filled(&spec["externalID"]) => {
            said.push(
                "spec.externalID: this field is deprecated, and is unused by Kubernetes".into(),
            );
        }
        ("", "PersistentVolume") => volume(object, &mut said),
        ("", "PersistentVolumeClaim") => {
            beta_class(object, &mut said);
            claim(spec, "spec", &mut said);
        }
        ("", "Service") => service(object, &mut said),
        ("apps", "DaemonSet" | "Deployment" | "ReplicaSet") | ("", "ReplicationController") => {
            template(&spec["template"], "spec.template", &mut said);
        }
        ("apps", "StatefulSet") => {
            template(&spec["template"], "spec.template", &mut said);
            for (at, one) in list(&spec["volumeClaimTemplates"]).enumerate() {
                claim(
                    &one["spec"],
                    &format!("spec.volumeClaimTemplates[{at}]"),
                    &mut said,
                );
            }
            if spec["revisionHistoryLimit"]
                .as_i64()
                .is_some_and(|limit| limit < 0)
            {
                said.push("spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended".into());
            }
        }
        ("batch", "CronJob") => job(
            &spec["jobTemplate"]["spec"],
            "spec.jobTemplate.spec",
            &mut said,
        ),
        ("batch", "Job") => job(spec, "spec", &mut said),
        ("networking.k8s.io", "Ingress")
            if old.is_none()
                && note(object, INGRESS_CLASS)
                && spec["ingressClassName"].is_null() =>
        {
            said.push(format!("annotation {INGRESS_CLASS:?} is deprecated, please use 'spec.ingressClassName' instead"));
        }
        ("storage.k8s.io", "CSIDriver") => {
            let was = old.map(|old| &old["spec"]["tokenRequests"]);
            let requests = &spec["tokenRequests"];
            if list(requests).next().is_some()
                && was != Some(requests)
                && spec["serviceAccountTokenInSecrets"].is_null()
            {
                said.push("spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes".into());
            }
        }
        ("storage.k8s.io", "StorageClass") => {
            for (term, one) in list(&object["allowedTopologies"]).enumerate() {
                for (at, one) in list(&one["matchLabelExpressions"]).enumerate() {
                    let place =
                        format!("allowedTopologies[{term}].matchLabelExpressions[{at}].key");
                    if let Some(why) = old_label(text(&one["key"])) {
                        said.push(format!("{place}: {why}"));
                    }
                }
            }
        }
        _ => {}
    }
    said
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn filled(value: &Value) -> bool {
    !text(value).is_empty()
}

fn old_label(label: &str) -> Option<&'static str> {
    let known = OLD_LABELS.iter().find(|(known, _)| *known == label);
    known.map(|(_, why)| *why)
}

fn job(spec: &Value, at: &str, said: &mut Vec<String>) {
    let many = |key: &str, most: i64| spec[key].as_i64().is_some_and(|count| count > most);
    if spec["completionMode"] == "Indexed"
        && many("completions", COMPLETIONS_MANY)
        && many("parallelism", PARALLELISM_MANY)
    {
        said.push(format!("{at}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"));
    }
    template(&spec["template"], &format!("{at}.template"), said);
}

fn template(template: &Value, at: &str, said: &mut Vec<String>) {
    let spec = &template["spec"];
    if spec["terminationGracePeriodSeconds"]
        .as_i64()
        .is_some_and(|seconds| seconds < 0)
    {
        said.push(format!("{at}.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"));
    }
    pod(&template["metadata"], spec, &format!("{at}."), said);
}

/// A pod's metadata and spec; `at` is what stands before their paths.
fn pod(meta: &Value, spec: &Value, at: &str, said: &mut Vec<String>) {
    placing(spec, at, said);
    for key in meta["annotations"]
        .as_object()
        .into_iter()
        .flat_map(|all| all.keys())
    {
        let why = match key.as_str() {
            "scheduler.alpha.kubernetes.io/critical-pod" => {
                "non-functional in v1.16+; use the \"priorityClassName\" field instead"
            }
            "seccomp.security.alpha.kubernetes.io/pod" => {
                "non-functional in v1.27+; use the \"seccompProfile\" field instead"
            }
            key if key.starts_with("container.seccomp.security.alpha.kubernetes.io/") => {
                "non-functional in v1.27+; use the \"seccompProfile\" field instead"
            }
            // The field says the same on a pod that came from an older client.
            key if key.starts_with("container.apparmor.security.beta.kubernetes.io/") => {
                "deprecated since v1.30; use the \"appArmorProfile\" field instead"
            }
            _ => continue,
        };
        said.push(format!("{at}metadata.annotations[{key}]: {why}"));
    }
    for (place, one) in list(&spec["volumes"]).enumerate() {
        let place = format!("{at}spec.volumes[{place}]");
        old_volume(one, &place, said);
        let claimed = &one["ephemeral"]["volumeClaimTemplate"]["spec"];
        claim(
            claimed,
            &format!("{place}.ephemeral.volumeClaimTemplate.spec"),
            said,
        );
    }
    twice(
        &spec["hostAliases"],
        "ip",
        |place, ip| {
            format!(
                "{at}spec.hostAliases[{place}].ip: duplicate ip {}",
                go_quoted(ip)
            )
        },
        said,
    );
    twice(
        &spec["imagePullSecrets"],
        "name",
        |place, name| {
            let place = format!("{at}spec.imagePullSecrets[{place}].name");
            match name {
                "" => format!("{place}: invalid empty name \"\""),
                _ => format!("{place}: duplicate name {}", go_quoted(name)),
            }
        },
        said,
    );
    containers(spec, at, said);
}

/// Where a pod wants to be.
fn placing(spec: &Value, at: &str, said: &mut Vec<String>) {
    for key in spec["nodeSelector"]
        .as_object()
        .into_iter()
        .flat_map(|all| all.keys())
    {
        if let Some(why) = old_label(key) {
            said.push(format!("{at}spec.nodeSelector[{key}]: {why}"));
        }
    }
    let affinity = &spec["affinity"]["nodeAffinity"];
    let at_node = format_args!("{at}spec.affinity.nodeAffinity");
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    for (place, term) in list(&affinity[required]["nodeSelectorTerms"]).enumerate() {
        node_term(
            term,
            &format!("{at_node}.{required}.nodeSelectorTerms[{place}]"),
            said,
        );
    }
    for (place, term) in list(&affinity[preferred]).enumerate() {
        node_term(
            &term["preference"],
            &format!("{at_node}.{preferred}[{place}].preference"),
            said,
        );
    }
    let none = "a null labelSelector results in matching no pod";
    for (place, spread) in list(&spec["topologySpreadConstraints"]).enumerate() {
        let place = format!("{at}spec.topologySpreadConstraints[{place}]");
        let key = text(&spread["topologyKey"]);
        if let Some(why) = old_label(key) {
            said.push(format!("{place}.topologyKey: {key} is {why}"));
        }
        if spread["labelSelector"].is_null() {
            said.push(format!("{place}.labelSelector: {none}"));
        }
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let terms = &spec["affinity"][kind];
        for (place, term) in list(&terms[required]).enumerate() {
            if term["labelSelector"].is_null() {
                said.push(format!(
                    "{at}spec.affinity.{kind}.{required}[{place}].labelSelector: {none}"
                ));
            }
        }
        for (place, term) in list(&terms[preferred]).enumerate() {
            if term["podAffinityTerm"]["labelSelector"].is_null() {
                said.push(format!("{at}spec.affinity.{kind}.{preferred}[{place}].podAffinityTerm.labelSelector: {none}"));
            }
        }
    }
}

fn node_term(term: &Value, at: &str, said: &mut Vec<String>) {
    for (place, one) in list(&term["matchExpressions"]).enumerate() {
        let key = text(&one["key"]);
        if let Some(why) = old_label(key) {
            said.push(format!(
                "{at}.matchExpressions[{place}].key: {key} is {why}"
            ));
        }
    }
}

fn old_volume(volume: &Value, at: &str, said: &mut Vec<String>) {
    for (key, name, why) in OLD_VOLUMES {
        if volume[*key].is_object() {
            said.push(format!("{at}.{name}: {why}"));
        }
    }
}

/// Tells of items whose key another had before them, and of empty ones.
fn twice(items: &Value, key: &str, tell: impl Fn(usize, &str) -> String, said: &mut Vec<String>) {
    let mut seen: Vec<&str> = Vec::new();
    for (place, item) in list(items).enumerate() {
        let value = text(&item[key]);
        if value.is_empty() || seen.contains(&value) {
            said.push(tell(place, value));
        }
        seen.push(value);
    }
}

/// A port of a container, and where it stands.
struct Port<'a> {
    number: Option<i64>,
    protocol: &'a str,
    host: i64,
    host_ip: &'a str,
    /// Restartable init containers run beside the others, plain ones do not.
    place: String,
}

fn containers(spec: &Value, at: &str, said: &mut Vec<String>) {
    let mut ports: Vec<Port<'_>> = Vec::new();
    for kind in ["initContainers", "containers"] {
        for (place, container) in list(&spec[kind]).enumerate() {
            let at = format!("{at}spec.{kind}[{place}]");
            for part in ["limits", "requests"] {
                for resource in ["memory", "ephemeral-storage"] {
                    let amount = &container["resources"][part][resource];
                    fraction(
                        amount,
                        format_args!("{at}.resources.{part}[{resource}]"),
                        said,
                    );
                }
            }
            hidden(&container["env"], &at, said);
            let alone = kind == "initContainers" && container["restartPolicy"] != "Always";
            let before = if alone { ports.len() } else { 0 };
            for (place, port) in list(&container["ports"]).enumerate() {
                let port = Port {
                    number: port["containerPort"].as_i64(),
                    protocol: port["protocol"].as_str().unwrap_or("TCP"),
                    host: port["hostPort"].as_i64().unwrap_or(0),
                    host_ip: text(&port["hostIP"]),
                    place: format!("{at}.ports[{place}]"),
                };
                for other in &ports[before..] {
                    said.extend(meeting(&port, other));
                }
                ports.push(port);
            }
            if alone {
                ports.truncate(before);
            }
        }
    }
}

/// Two ports that are one: wholly, or but for the host's.
fn meeting(port: &Port<'_>, other: &Port<'_>) -> Option<String> {
    if port.number != other.number || port.protocol != other.protocol {
        return None;
    }
    let (at, there) = (&port.place, &other.place);
    if port.host == other.host && port.host_ip == other.host_ip {
        return Some(format!("{at}: duplicate port definition with {there}"));
    }
    (port.host == 0 || other.host == 0)
        .then(|| format!("{at}: overlapping port definition with {there}"))
}

/// Variables that a later one of the same name hides.
fn hidden(variables: &Value, at: &str, said: &mut Vec<String>) {
    let mut seen: Vec<&str> = Vec::new();
    for (place, variable) in list(variables).enumerate() {
        let name = text(&variable["name"]);
        // One that is made of its former self is meant so.
        let continues = || text(&variable["value"]).contains(&format!("$({name})"));
        if seen.contains(&name) && !continues() {
            said.push(format!(
                "{at}.env[{place}]: hides previous definition of {}, which may be dropped when using apply",
                go_quoted(name)
            ));
        }
        seen.push(name);
    }
}

fn claim(spec: &Value, at: &str, said: &mut Vec<String>) {
    for part in ["limits", "requests"] {
        let amount = &spec["resources"][part]["storage"];
        fraction(amount, format_args!("{at}.resources.{part}[storage]"), said);
    }
}

/// Bytes are whole.
fn fraction(amount: &Value, at: std::fmt::Arguments<'_>, said: &mut Vec<String>) {
    let Some(amount) = amount.as_str() else {
        return;
    };
    let parts = ['m', 'u', 'n'];
    if Quantity::parse(amount).is_ok_and(|quantity| quantity.canonical().ends_with(parts)) {
        said.push(format!(
            "{at}: fractional byte value {} is invalid, must be an integer",
            go_quoted(amount)
        ));
    }
}

fn beta_class(object: &Value, said: &mut Vec<String>) {
    if object["metadata"]["annotations"][STORAGE_CLASS].is_string() {
        said.push(format!(
            "metadata.annotations[{STORAGE_CLASS}]: deprecated since v1.8; use \"storageClassName\" attribute instead"
        ));
    }
}

fn volume(object: &Value, said: &mut Vec<String>) {
    let spec = &object["spec"];
    beta_class(object, said);
    if spec["persistentVolumeReclaimPolicy"] == "Recycle" {
        said.push("spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.".into());
    }
    for (place, term) in list(&spec["nodeAffinity"]["required"]["nodeSelectorTerms"]).enumerate() {
        node_term(
            term,
            &format!("spec.nodeAffinity.required.nodeSelectorTerms[{place}]"),
            said,
        );
    }
    // Of these two nothing is said here.
    let told = ["flocker", "quobyte"];
    for (key, name, why) in OLD_VOLUMES.iter().filter(|(key, ..)| !told.contains(key)) {
        if spec[*key].is_object() {
            said.push(format!("spec.{name}: {why}"));
        }
    }
}

fn service(object: &Value, said: &mut Vec<String>) {
    let spec = &object["spec"];
    let hints = "service.kubernetes.io/topology-aware-hints";
    if object["metadata"]["annotations"][hints].is_string() {
        said.push(format!("annotation {hints} is deprecated, please use service.kubernetes.io/topology-mode instead"));
    }
    let has_addresses = list(&spec["externalIPs"]).next().is_some();
    if spec["clusterIP"] == "None" {
        for (name, is_set) in [
            ("loadBalancerIP", filled(&spec["loadBalancerIP"])),
            ("externalIPs", has_addresses),
            ("SessionAffinity", spec["sessionAffinity"] == "ClientIP"),
        ] {
            if is_set {
                said.push(format!("spec.{name} is ignored for headless services"));
            }
        }
    } else if has_addresses {
        said.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
                .into(),
        );
    }
    for (place, address) in list(&spec["externalIPs"]).enumerate() {
        let shown = text(address);
        let Ok(address) = shown.parse::<std::net::Ipv6Addr>() else {
            continue;
        };
        let wanted = address.to_string();
        if wanted != shown {
            said.push(format!(
                "spec.externalIPs[{place}]: IPv6 address {} should be in RFC 5952 canonical format ({})",
                go_quoted(shown),
                go_quoted(&wanted)
            ));
        }
    }
}
