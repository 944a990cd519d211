//! One container of a pod or template.

use std::collections::{BTreeMap, BTreeSet};

use api::names;

use super::volume::descending;
use super::{Pod, environment, handler, resources, security};
use crate::validation::format;
use crate::validation::spot::{Faults, Spot};

/// Most rules about restarts of a container.
const RESTART_RULES_MAX: i64 = 20;
/// Most exit codes of a rule.
const EXIT_CODES_MAX: i64 = 255;
/// Pull policies.
const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];
/// Transport protocols.
pub(crate) const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
/// Fields that an ephemeral container does not have.
const NOT_EPHEMERAL: &[&str] = &[
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// Checks the containers that do a pod's work.
pub(super) fn workers(list: &Spot<'_, '_>, pod: &Pod<'_>, faults: &mut Faults) {
    if list.is_empty() {
        return faults.required(list, "");
    }
    let mut seen = BTreeSet::new();
    for container in list.items() {
        common(&container, pod, faults);
        let name = container.at("name");
        if !seen.insert(name.text()) {
            faults.duplicate(&name, name.text());
        }
        handler::check(&container, pod, faults);
        restart_policy(&container, faults);
    }
    let mut taken = BTreeSet::new();
    for container in list.items() {
        host_ports(&container, &mut taken, faults);
    }
}

/// Checks the containers that run before.
pub(super) fn inits(
    list: &Spot<'_, '_>,
    workers: &Spot<'_, '_>,
    pod: &Pod<'_>,
    faults: &mut Faults,
) {
    let mut seen: BTreeSet<&str> = workers.items().map(|one| one.at("name").text()).collect();
    for container in list.items() {
        common(&container, pod, faults);
        restart_policy(&container, faults);
        let name = container.at("name");
        if seen.contains(name.text()) {
            faults.duplicate(&name, name.text());
        } else if !name.is_empty() {
            seen.insert(name.text());
        }
        // The real server looks at each by itself, as if it were the first.
        let alone = list.item(0);
        host_ports(
            &Spot::new(container.value, &alone.path()),
            &mut BTreeSet::new(),
            faults,
        );
        let stays = container.at("restartPolicy").text() == "Always";
        if stays {
            handler::check(&container, pod, faults);
        } else {
            for field in [
                "lifecycle",
                "livenessProbe",
                "readinessProbe",
                "startupProbe",
            ] {
                if container.at(field).is_there() {
                    let detail = "may not be set for init containers without restartPolicy=Always";
                    faults.forbidden(&container.at(field), detail);
                }
            }
            for policy in container.at("resizePolicy").items() {
                let policy = policy.at("restartPolicy");
                if policy.text() == "RestartContainer" {
                    let detail =
                        "must not be set to 'RestartContainer' for non-sidecar initContainers";
                    faults.invalid_text(&policy, detail);
                }
            }
        }
    }
}

/// Checks the containers that were added to a running pod.
pub(super) fn ephemerals(spec: &Spot<'_, '_>, pod: &Pod<'_>, faults: &mut Faults) {
    let list = spec.at("ephemeralContainers");
    if list.is_empty() {
        return;
    }
    let mut others = BTreeSet::new();
    for kind in ["containers", "initContainers"] {
        others.extend(spec.at(kind).items().map(|one| one.at("name").text()));
    }
    let mut seen = others.clone();
    for container in list.items() {
        common(&container, pod, faults);
        trimmed_image(&container, faults);
        let name = container.at("name");
        if !seen.insert(name.text()) {
            faults.duplicate(&name, name.text());
        }
        let target = container.at("targetContainerName");
        if !target.is_empty() && !others.contains(target.text()) {
            faults.not_found(&target, target.text());
        }
        let detail = "cannot be set for an Ephemeral Container";
        for field in NOT_EPHEMERAL {
            if !container.at(field).is_empty() {
                faults.forbidden(&container.at(field), detail);
            }
        }
        for mount in container.at("volumeMounts").items() {
            for field in ["subPath", "subPathExpr"] {
                if !mount.at(field).is_empty() {
                    faults.forbidden(&mount.at(field), detail);
                }
            }
        }
    }
}

fn common(container: &Spot<'_, '_>, pod: &Pod<'_>, faults: &mut Faults) {
    faults.need_name(&container.at("name"), names::check_label);
    faults.need(&container.at("image"));
    let policies = ["File", "FallbackToLogsOnError"];
    faults.one_of(&container.at("terminationMessagePolicy"), &policies);
    ports(&container.at("ports"), faults);
    environment::variables(&container.at("env"), faults);
    environment::maps(&container.at("envFrom"), faults);
    mounts(container, pod, faults);
    devices(container, pod, faults);
    faults.one_of(&container.at("imagePullPolicy"), PULL_POLICIES);
    resources::of_container(&container.at("resources"), &pod.claims, faults);
    resize_policy(&container.at("resizePolicy"), pod, faults);
    security::of_container(&container.at("securityContext"), pod.host_users, faults);
}

/// An image of a pod, unlike a template's, must not be padded.
pub(crate) fn trimmed_image(container: &Spot<'_, '_>, faults: &mut Faults) {
    let image = container.at("image");
    if image.text().trim() != image.text() {
        faults.invalid_text(&image, "must not have leading or trailing whitespace");
    }
}

fn ports(list: &Spot<'_, '_>, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for port in list.items() {
        let name = port.at("name");
        if !name.is_empty() {
            let before = faults.len();
            faults.name(&name, names::check_port_name);
            if faults.len() == before && !seen.insert(name.text()) {
                faults.duplicate(&name, name.text());
            }
        }
        let number = port.at("containerPort");
        if number.number() == 0 {
            faults.required(&number, "");
        } else {
            faults.port(&number);
        }
        let host = port.at("hostPort");
        if host.number() != 0 {
            faults.port(&host);
        }
        faults.one_of(&port.at("protocol"), PROTOCOLS);
    }
}

fn host_ports(container: &Spot<'_, '_>, taken: &mut BTreeSet<String>, faults: &mut Faults) {
    for port in container.at("ports").items() {
        let host = port.at("hostPort");
        if host.number() == 0 {
            continue;
        }
        let place = format!(
            "{}/{}/{}",
            port.at("protocol").text(),
            port.at("hostIP").text(),
            host.number()
        );
        if taken.contains(&place) {
            faults.duplicate(&host, place);
        } else {
            taken.insert(place);
        }
    }
}

fn mounts(container: &Spot<'_, '_>, pod: &Pod<'_>, faults: &mut Faults) {
    let list = container.at("volumeMounts");
    let devices: BTreeMap<&str, &str> = pairs(&container.at("volumeDevices"), "devicePath");
    let mut places = BTreeSet::new();
    for mount in list.items() {
        let (name, place) = (mount.at("name"), mount.at("mountPath"));
        faults.need(&name);
        if !pod.volumes.contains_key(name.text()) {
            faults.not_found(&name, name.text());
        }
        faults.need(&place);
        if !places.insert(place.text()) {
            faults.invalid_text(&place, "must be unique");
        }
        if devices.contains_key(name.text()) {
            faults.invalid_text(&name, "must not already exist in volumeDevices");
        }
        if devices.values().any(|path| *path == place.text()) {
            faults.invalid_text(&place, "must not already exist as a path in volumeDevices");
        }
        // From here on the real server names the list, not the mount.
        let (inner, expression) = (mount.at("subPath"), mount.at("subPathExpr"));
        if !inner.is_empty() {
            descending(&list.at("subPath"), inner.text(), faults);
        }
        if !expression.is_empty() {
            if !inner.is_empty() {
                let detail = "subPathExpr and subPath are mutually exclusive";
                faults.invalid_text(&expression, detail);
            }
            descending(&list.at("subPathExpr"), expression.text(), faults);
        }
        propagation(container, &list, &mount, faults);
    }
}

fn propagation(
    container: &Spot<'_, '_>,
    list: &Spot<'_, '_>,
    mount: &Spot<'_, '_>,
    faults: &mut Faults,
) {
    let kind = mount.at("mountPropagation");
    let at = list.called("", "mountPropagation");
    if kind.is_there() {
        let kinds = ["Bidirectional", "HostToContainer", "None"];
        if !kinds.contains(&kind.text()) {
            faults.not_supported(&Spot::new(kind.value, &at.path()), &kinds);
        }
        let is_privileged = container.at("securityContext").value["privileged"] == true;
        if kind.text() == "Bidirectional" && !is_privileged {
            let detail =
                "Bidirectional mount propagation is available only to privileged containers";
            faults.forbidden(&at, detail);
        }
    }
    let wholly = mount.at("recursiveReadOnly");
    let at = list.called("", "recursiveReadOnly");
    match wholly.text() {
        "Disabled" => {}
        "Enabled" | "IfPossible" => {
            if !mount.at("readOnly").is_true() {
                faults.forbidden(&at, "may only be specified when readOnly is true");
            }
            if !matches!(kind.text(), "" | "None") {
                let detail = "may only be specified when mountPropagation is None or not specified";
                faults.forbidden(&at, detail);
            }
        }
        _ if wholly.is_there() => {
            let kinds = ["Disabled", "Enabled", "IfPossible"];
            faults.not_supported(&Spot::new(wholly.value, &at.path()), &kinds);
        }
        _ => {}
    }
}

fn pairs<'v>(list: &Spot<'v, '_>, path: &str) -> BTreeMap<&'v str, &'v str> {
    list.items()
        .map(|one| (one.at("name").text(), one.at(path).text()))
        .collect()
}

fn devices(container: &Spot<'_, '_>, pod: &Pod<'_>, faults: &mut Faults) {
    let list = container.at("volumeDevices");
    if list.is_empty() {
        return;
    }
    let mounts = pairs(&container.at("volumeMounts"), "mountPath");
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for device in list.items() {
        let (name, path) = (device.at("name"), device.at("devicePath"));
        faults.need(&name);
        if names.contains(name.text()) {
            faults.invalid_text(&name, "must be unique");
        }
        match pod.volumes.get(name.text()) {
            Some(volume)
                if volume["persistentVolumeClaim"].is_null() && volume["ephemeral"].is_null() =>
            {
                let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                faults.invalid_text(&name, detail);
            }
            Some(_) => {}
            None => faults.not_found(&name, name.text()),
        }
        faults.need(&path);
        if paths.contains(path.text()) {
            faults.invalid_text(&path, "must be unique");
        }
        if format::steps_back(path.text()) {
            faults.invalid_text(&path, "can not contain backsteps ('..')");
        } else {
            paths.insert(path.text());
        }
        if mounts.contains_key(name.text()) {
            faults.invalid_text(&name, "must not already exist in volumeMounts");
        }
        if mounts.values().any(|place| *place == path.text()) {
            faults.invalid_text(&path, "must not already exist as a path in volumeMounts");
        }
        if !name.is_empty() {
            names.insert(name.text());
        }
    }
}

fn resize_policy(list: &Spot<'_, '_>, pod: &Pod<'_>, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for one in list.items() {
        let (resource, policy) = (one.at("resourceName"), one.at("restartPolicy"));
        if !seen.insert(resource.text()) {
            faults.duplicate(&one, resource.text());
        }
        // The real server names the list here.
        let path = list.path();
        match resource.text() {
            "cpu" | "memory" => {}
            "" => faults.required(list, ""),
            _ => faults.not_supported(&Spot::new(resource.value, &path), &["cpu", "memory"]),
        }
        let policies = ["NotRequired", "RestartContainer"];
        match policy.text() {
            "NotRequired" | "RestartContainer" => {}
            "" => faults.required(list, ""),
            _ => faults.not_supported(&Spot::new(policy.value, &path), &policies),
        }
        if pod.restart == "Never" && policy.text() != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            faults.invalid_as(list, policy.text(), detail);
        }
    }
}

fn restart_policy(container: &Spot<'_, '_>, faults: &mut Faults) {
    let (policy, rules) = (
        container.at("restartPolicy"),
        container.at("restartPolicyRules"),
    );
    if !policy.is_there() {
        if rules.is_empty() {
            return;
        }
        faults.required(
            &policy,
            "must specify restartPolicy when restart rules are used",
        );
    }
    faults.known(&policy, &["Always", "Never", "OnFailure"]);
    if rules.len() as i64 > RESTART_RULES_MAX {
        faults.too_many(&rules, RESTART_RULES_MAX);
    }
    for rule in rules.items() {
        let actions = ["Restart", "RestartAllContainers"];
        let action = rule.at("action");
        if !actions.contains(&action.text()) {
            faults.not_supported(&action, &actions);
        }
        let codes = rule.at("exitCodes");
        if !codes.is_there() {
            faults.required(&codes, "must be specified");
            continue;
        }
        let operator = codes.at("operator");
        if !matches!(operator.text(), "In" | "NotIn") {
            faults.not_supported(&operator, &["In", "NotIn"]);
        }
        if codes.at("values").len() as i64 > EXIT_CODES_MAX {
            faults.too_many(&codes.at("values"), EXIT_CODES_MAX);
        }
    }
}
