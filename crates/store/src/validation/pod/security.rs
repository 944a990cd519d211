//! Security contexts of pods and containers.

use std::collections::BTreeSet;

use api::names;
use serde_json::Value;

use super::volume::descending;
use crate::validation::spot::{Faults, Spot};

/// Greatest id of a user or group.
const ID_MAX: i64 = i32::MAX as i64;
/// Longest name of an AppArmor profile: a path without its end.
const PROFILE_BYTES_MAX: i64 = 4_095;

/// Checks a container's security context.
pub(super) fn of_container(context: &Spot<'_, '_>, host_users: bool, faults: &mut Faults) {
    if !context.is_there() {
        return;
    }
    faults.within(&context.at("runAsUser"), 0, ID_MAX);
    faults.within(&context.at("runAsGroup"), 0, ID_MAX);
    let mount = context.at("procMount");
    faults.known(&mount, &["Default", "Unmasked"]);
    if host_users && mount.text() == "Unmasked" {
        faults.invalid(&mount, "`hostUsers` must be false to use `Unmasked`");
    }
    seccomp(&context.at("seccompProfile"), faults);
    if *context.at("allowPrivilegeEscalation").value == Value::Bool(false) {
        if context.at("privileged").is_true() {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            faults.invalid(context, detail);
        }
        let added = context.at("capabilities");
        for _ in added
            .at("add")
            .items()
            .filter(|one| one.text() == "CAP_SYS_ADMIN")
        {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            faults.invalid(context, detail);
        }
    }
    app_armor(&context.at("appArmorProfile"), faults);
}

/// Checks a pod's security context.
pub(super) fn of_pod(spec: &Spot<'_, '_>, faults: &mut Faults) {
    let context = spec.at("securityContext");
    faults.within(&context.at("fsGroup"), 0, ID_MAX);
    faults.within(&context.at("runAsUser"), 0, ID_MAX);
    faults.within(&context.at("runAsGroup"), 0, ID_MAX);
    for group in context.at("supplementalGroups").items() {
        faults.within(&group, 0, ID_MAX);
    }
    if spec.at("shareProcessNamespace").is_true() && spec.at("hostPID").is_true() {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        let at = context.called("shareProcessNamespace", "shareProcessNamespace");
        faults.invalid_as(&at, true, detail);
    }
    sysctls(spec, &context.at("sysctls"), faults);
    let policies = ["Always", "OnRootMismatch"];
    faults.known(&context.at("fsGroupChangePolicy"), &policies);
    seccomp(&context.at("seccompProfile"), faults);
    app_armor(&context.at("appArmorProfile"), faults);
    let policies = ["Merge", "Strict"];
    faults.known(&context.at("supplementalGroupsPolicy"), &policies);
    let policies = ["MountOption", "Recursive"];
    faults.known(&context.at("seLinuxChangePolicy"), &policies);
}

fn sysctls(spec: &Spot<'_, '_>, list: &Spot<'_, '_>, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for one in list.items() {
        let at = one.at("name");
        let name = at.text();
        if name.is_empty() {
            faults.required(&at, "");
        } else if !is_sysctl(name) {
            let detail = r"must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            faults.invalid_text(&at, detail);
        } else if seen.contains(name) {
            faults.duplicate(&at, name);
        }
        let dotted = name.replace('/', ".");
        let is_ipc = dotted.starts_with("kernel.shm")
            || dotted.starts_with("kernel.msg")
            || dotted.starts_with("fs.mqueue.")
            || dotted == "kernel.sem";
        if dotted.starts_with("net.") && spec.at("hostNetwork").is_true() {
            faults.invalid_text(&at, "may not be specified when 'hostNetwork' is true");
        } else if is_ipc && spec.at("hostIPC").is_true() {
            faults.invalid_text(&at, "may not be specified when 'hostIPC' is true");
        }
        seen.insert(name);
    }
}

fn is_sysctl(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    name.len() <= names::SUBDOMAIN_BYTES_MAX
        && name.split(['.', '/']).all(|part| {
            let bytes = part.as_bytes();
            bytes.first().is_some_and(|b| plain(*b))
                && bytes.last().is_some_and(|b| plain(*b))
                && bytes.iter().all(|b| plain(*b) || matches!(b, b'-' | b'_'))
        })
}

/// Kinds of profiles.
const PROFILES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];

fn seccomp(profile: &Spot<'_, '_>, faults: &mut Faults) {
    if !profile.is_there() {
        return;
    }
    let kind = profile.at("type");
    if kind.is_empty() {
        faults.required(&kind, "type is required when seccompProfile is set");
    } else {
        faults.known(&kind, PROFILES);
    }
    let local = profile.at("localhostProfile");
    match (kind.text(), local.is_there()) {
        ("Localhost", false) => {
            faults.required(&local, "must be set when seccomp type is Localhost");
        }
        ("Localhost", true) => descending(&local, local.text(), faults),
        (_, true) => {
            let detail = "can only be set when seccomp type is Localhost";
            faults.invalid_as(&local, profile.value.clone(), detail);
        }
        (_, false) => {}
    }
}

fn app_armor(profile: &Spot<'_, '_>, faults: &mut Faults) {
    if !profile.is_there() {
        return;
    }
    let (kind, local) = (profile.at("type"), profile.at("localhostProfile"));
    match kind.text() {
        "Localhost" => {
            let needed = "must be set when AppArmor type is Localhost";
            let name = local.text();
            if name.trim() != name {
                faults.invalid_text(&local, "must not be padded with whitespace");
            } else if name.is_empty() {
                faults.required(&local, needed);
            }
            if name.len() as i64 > PROFILE_BYTES_MAX {
                faults.too_long(&local, PROFILE_BYTES_MAX);
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if local.is_there() {
                faults.invalid(&local, "can only be set when AppArmor type is Localhost");
            }
        }
        "" => faults.required(&kind, "type is required when appArmorProfile is set"),
        _ => faults.not_supported(&kind, PROFILES),
    }
}

/// Checks what a pod that does not share the host's users may not share either.
pub(super) fn own_users(spec: &Spot<'_, '_>, faults: &mut Faults) {
    if *spec.at("hostUsers").value != Value::Bool(false) {
        return;
    }
    let detail = "when `hostUsers` is false";
    for (field, called) in [
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if spec.at(field).is_true() {
            faults.forbidden(&spec.called(field, called), detail);
        }
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.at(list).items() {
            if !container.at("volumeDevices").is_empty() {
                faults.forbidden(&container.at("volumeDevices"), detail);
            }
        }
    }
}
