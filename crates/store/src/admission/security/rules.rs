//! The pod security standards, rule by rule, in the real server's words and order.

use std::collections::BTreeSet;

use serde_json::Value;

use super::policy::Level;

/// What a pod does that it may not.
pub(super) struct Wrong {
    pub(super) reason: String,
    pub(super) detail: String,
}

fn wrong(reason: &str, detail: String) -> Option<Wrong> {
    Some(Wrong {
        reason: reason.to_owned(),
        detail,
    })
}

struct Pod<'p> {
    annotations: &'p Value,
    spec: &'p Value,
    containers: Vec<&'p Value>,
    /// The minor version of the rules.
    version: u32,
}

type Rule = fn(&Pod<'_>) -> Option<Wrong>;

/// Everything that is wrong with a pod: the rules of the baseline first, but those that a stricter
/// one says better.
pub(super) fn look(meta: &Value, spec: &Value, level: Level, version: u32) -> Vec<Wrong> {
    let list = |name: &str| spec[name].as_array().into_iter().flatten();
    let containers = list("initContainers").chain(list("containers"));
    let pod = Pod {
        annotations: &meta["annotations"],
        spec,
        containers: containers.chain(list("ephemeralContainers")).collect(),
        version,
    };
    // A rule of the baseline, and the version from which a restricted rule stands for it.
    let baseline: [(Rule, u32); 12] = [
        (app_armor, u32::MAX),
        (added_capabilities, 22),
        (host_namespaces, u32::MAX),
        (host_paths, 0),
        (host_ports, u32::MAX),
        (host_probes, u32::MAX),
        (privileged, u32::MAX),
        (proc_mount, 35),
        (selinux, u32::MAX),
        (seccomp, 19),
        (sysctls, u32::MAX),
        (host_process, u32::MAX),
    ];
    let restricted: [Rule; 7] = [
        escalation,
        capabilities,
        proc_mount_restricted,
        volumes,
        non_root,
        root_user,
        seccomp_restricted,
    ];
    let is_restricted = level == Level::Restricted;
    let kept = baseline.iter().filter(|(_, until)| {
        // Versions go up to the latest, which is greater than all of them.
        !(is_restricted && *until != u32::MAX && version >= *until)
    });
    let rules = kept.map(|(rule, _)| *rule);
    let rules = rules.chain(restricted.into_iter().filter(|_| is_restricted));
    rules.filter_map(|rule| rule(&pod)).collect()
}

impl<'p> Pod<'p> {
    fn context(&self) -> &'p Value {
        &self.spec["securityContext"]
    }

    /// Names of containers of whose security context something holds.
    fn containers_where(&self, holds: impl Fn(&Value) -> bool) -> Vec<String> {
        let found = self
            .containers
            .iter()
            .filter(|one| holds(&one["securityContext"]));
        found.map(|one| name(one)).collect()
    }

    fn is_windows(&self) -> bool {
        self.spec["os"]["name"] == "windows"
    }

    /// Whether root in the pod is nobody on the host.
    fn has_own_users(&self) -> bool {
        self.version >= 35 && self.spec["hostUsers"] == false
    }

    /// Whoever sets something: the pod, containers, or both.
    fn setters(&self, by_pod: bool, by_containers: &[String]) -> Vec<String> {
        let pod = by_pod.then(|| "pod".to_owned());
        let containers = (!by_containers.is_empty()).then(|| named("container", by_containers));
        pod.into_iter().chain(containers).collect()
    }

    /// Types of profiles that are not wanted, with whoever sets them.
    fn profiles(&self, key: &str) -> (Vec<String>, BTreeSet<String>) {
        let mut values = BTreeSet::new();
        let mut is_bad = |context: &Value| {
            let kind = context[key]["type"].as_str().unwrap_or_default();
            let is_bad =
                context[key].is_object() && !["RuntimeDefault", "Localhost"].contains(&kind);
            if is_bad {
                values.insert(kind.to_owned());
            }
            is_bad
        };
        let by_pod = is_bad(self.context());
        let mut by_containers = Vec::new();
        for container in &self.containers {
            if is_bad(&container["securityContext"]) {
                by_containers.push(name(container));
            }
        }
        (self.setters(by_pod, &by_containers), values)
    }
}

fn name(object: &Value) -> String {
    object["name"].as_str().unwrap_or_default().to_owned()
}

fn plural(word: &str, count: usize) -> String {
    match count {
        1 => word.to_owned(),
        _ => format!("{word}s"),
    }
}

fn quoted<'t>(texts: impl IntoIterator<Item = &'t String>) -> String {
    let texts: Vec<String> = texts
        .into_iter()
        .map(|text| format!("\"{text}\""))
        .collect();
    texts.join(", ")
}

fn named(word: &str, names: &[String]) -> String {
    format!("{} {}", plural(word, names.len()), quoted(names))
}

fn uses(names: &[String]) -> &'static str {
    match names.len() {
        1 => "uses",
        _ => "use",
    }
}

fn app_armor(pod: &Pod<'_>) -> Option<Wrong> {
    let (mut setters, values) = pod.profiles("appArmorProfile");
    let mut values: Vec<String> = values.into_iter().collect();
    let annotations = pod.annotations.as_object().into_iter().flatten();
    let mut bad: Vec<String> = annotations
        .filter(|(key, value)| {
            let value = value.as_str().unwrap_or_default();
            key.starts_with("container.apparmor.security.beta.kubernetes.io/")
                && !(value.is_empty()
                    || value == "runtime/default"
                    || value.starts_with("localhost/"))
        })
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    if !bad.is_empty() {
        bad.sort();
        setters.push(plural("annotation", bad.len()));
        values.extend(bad);
    }
    if setters.is_empty() {
        return None;
    }
    wrong(
        &plural("forbidden AppArmor profile", values.len()),
        format!(
            "{} must not set AppArmor profile type to {}",
            setters.join(" and "),
            quoted(&values)
        ),
    )
}

/// Capabilities that are added and not among these, with the containers that add them.
fn added(pod: &Pod<'_>, allowed: &[&str]) -> (Vec<String>, BTreeSet<String>) {
    let mut values = BTreeSet::new();
    let mut names = Vec::new();
    for container in &pod.containers {
        let list = container["securityContext"]["capabilities"]["add"].as_array();
        let list = list.into_iter().flatten().filter_map(Value::as_str);
        let bad: Vec<String> = list
            .filter(|one| !allowed.contains(one))
            .map(str::to_owned)
            .collect();
        if !bad.is_empty() {
            names.push(name(container));
            values.extend(bad);
        }
    }
    (names, values)
}

fn told_added(names: &[String], values: &BTreeSet<String>) -> String {
    format!(
        "{} must not include {} in securityContext.capabilities.add",
        named("container", names),
        quoted(values)
    )
}

fn added_capabilities(pod: &Pod<'_>) -> Option<Wrong> {
    const ALLOWED: &[&str] = &[
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ];
    let (names, values) = added(pod, ALLOWED);
    if names.is_empty() {
        return None;
    }
    wrong("non-default capabilities", told_added(&names, &values))
}

fn host_namespaces(pod: &Pod<'_>) -> Option<Wrong> {
    let flags = ["hostNetwork", "hostPID", "hostIPC"];
    let set = flags.iter().filter(|flag| pod.spec[**flag] == true);
    let set: Vec<String> = set.map(|flag| format!("{flag}=true")).collect();
    if set.is_empty() {
        return None;
    }
    wrong("host namespaces", set.join(", "))
}

fn host_paths(pod: &Pod<'_>) -> Option<Wrong> {
    let volumes = pod.spec["volumes"].as_array().into_iter().flatten();
    let volumes = volumes.filter(|volume| volume["hostPath"].is_object());
    let names: Vec<String> = volumes.map(name).collect();
    if names.is_empty() {
        return None;
    }
    wrong("hostPath volumes", named("volume", &names))
}

fn host_ports(pod: &Pod<'_>) -> Option<Wrong> {
    let mut ports = BTreeSet::new();
    let mut names = Vec::new();
    for container in &pod.containers {
        let list = container["ports"].as_array().into_iter().flatten();
        let bad: Vec<String> = list
            .filter_map(|port| port["hostPort"].as_i64())
            .filter(|port| *port != 0)
            .map(|port| port.to_string())
            .collect();
        if !bad.is_empty() {
            names.push(name(container));
            ports.extend(bad);
        }
    }
    if names.is_empty() {
        return None;
    }
    let shown: Vec<String> = ports.iter().cloned().collect();
    let detail = format!(
        "{} {} {} {}",
        named("container", &names),
        uses(&names),
        plural("hostPort", ports.len()),
        shown.join(", ")
    );
    wrong("hostPort", detail)
}

fn host_probes(pod: &Pod<'_>) -> Option<Wrong> {
    if pod.version < 34 {
        return None;
    }
    let (mut names, mut hosts) = (BTreeSet::new(), BTreeSet::new());
    for container in &pod.containers {
        let lifecycle = &container["lifecycle"];
        let handlers = [
            &container["livenessProbe"],
            &container["readinessProbe"],
            &container["startupProbe"],
            &lifecycle["postStart"],
            &lifecycle["preStop"],
        ];
        for handler in handlers {
            for host in ["httpGet", "tcpSocket"].map(|way| &handler[way]["host"]) {
                if let Some(host) = host.as_str().filter(|host| !host.is_empty()) {
                    names.insert(name(container));
                    hosts.insert(host.to_owned());
                }
            }
        }
    }
    if names.is_empty() {
        return None;
    }
    let names: Vec<String> = names.into_iter().collect();
    let detail = format!(
        "{} {} {} {}",
        named("container", &names),
        uses(&names),
        plural("probe or lifecycle host", hosts.len()),
        quoted(&hosts)
    );
    wrong("probe or lifecycle host", detail)
}

fn privileged(pod: &Pod<'_>) -> Option<Wrong> {
    let names = pod.containers_where(|context| context["privileged"] == true);
    if names.is_empty() {
        return None;
    }
    let names = named("container", &names);
    wrong(
        "privileged",
        format!("{names} must not set securityContext.privileged=true"),
    )
}

fn proc_mount(pod: &Pod<'_>) -> Option<Wrong> {
    match pod.has_own_users() {
        true => None,
        false => unmasked(pod),
    }
}

fn proc_mount_restricted(pod: &Pod<'_>) -> Option<Wrong> {
    match pod.version >= 35 {
        true => unmasked(pod),
        false => None,
    }
}

fn unmasked(pod: &Pod<'_>) -> Option<Wrong> {
    let set = |context: &Value| {
        let kind = context["procMount"].as_str()?;
        (kind != "Default").then(|| kind.to_owned())
    };
    let names = pod.containers_where(|context| set(context).is_some());
    if names.is_empty() {
        return None;
    }
    let kinds = pod
        .containers
        .iter()
        .filter_map(|one| set(&one["securityContext"]));
    let kinds: BTreeSet<String> = kinds.collect();
    let detail = format!(
        "{} must not set securityContext.procMount to {}",
        named("container", &names),
        quoted(&kinds)
    );
    wrong("procMount", detail)
}

fn selinux(pod: &Pod<'_>) -> Option<Wrong> {
    let (mut types, mut user, mut role) = (BTreeSet::new(), false, false);
    let mut is_bad = |context: &Value| {
        let options = &context["seLinuxOptions"];
        let said = |key: &str| options[key].as_str().unwrap_or_default();
        let is_known = match said("type") {
            "" | "container_t" | "container_init_t" | "container_kvm_t" => true,
            "container_engine_t" => pod.version >= 31,
            _ => false,
        };
        if !is_known {
            types.insert(said("type").to_owned());
        }
        let (has_user, has_role) = (!said("user").is_empty(), !said("role").is_empty());
        user |= has_user;
        role |= has_role;
        !is_known || has_user || has_role
    };
    let by_pod = is_bad(pod.context());
    let mut by_containers = Vec::new();
    for container in &pod.containers {
        if is_bad(&container["securityContext"]) {
            by_containers.push(name(container));
        }
    }
    let setters = pod.setters(by_pod, &by_containers);
    if setters.is_empty() {
        return None;
    }
    let mut data = Vec::new();
    if !types.is_empty() {
        data.push(format!(
            "{} {}",
            plural("type", types.len()),
            quoted(&types)
        ));
    }
    data.extend(user.then(|| "user may not be set".to_owned()));
    data.extend(role.then(|| "role may not be set".to_owned()));
    let detail = format!(
        "{} set forbidden securityContext.seLinuxOptions: {}",
        setters.join(" and "),
        data.join("; ")
    );
    wrong("seLinuxOptions", detail)
}

fn seccomp(pod: &Pod<'_>) -> Option<Wrong> {
    if pod.version < 19 {
        return seccomp_annotations(pod);
    }
    let (setters, values) = pod.profiles("seccompProfile");
    if setters.is_empty() {
        return None;
    }
    let detail = format!(
        "{} must not set securityContext.seccompProfile.type to {}",
        setters.join(" and "),
        quoted(&values)
    );
    wrong("seccompProfile", detail)
}

fn seccomp_annotations(pod: &Pod<'_>) -> Option<Wrong> {
    let of_container = |one: &&Value| {
        format!(
            "container.seccomp.security.alpha.kubernetes.io/{}",
            name(one)
        )
    };
    let keys = pod.containers.iter().map(of_container);
    let keys = keys.chain(["seccomp.security.alpha.kubernetes.io/pod".to_owned()]);
    let bad: BTreeSet<String> = keys
        .filter_map(|key| {
            let value = pod.annotations[&key].as_str()?;
            let is_good = matches!(value, "runtime/default" | "docker/default")
                || value.starts_with("localhost/");
            (!is_good).then(|| format!("{key}={value:?}"))
        })
        .collect();
    if bad.is_empty() {
        return None;
    }
    let word = plural("annotation", bad.len());
    let bad: Vec<String> = bad.into_iter().collect();
    wrong(
        "seccompProfile",
        format!("forbidden {word} {}", bad.join(", ")),
    )
}

fn sysctls(pod: &Pod<'_>) -> Option<Wrong> {
    /// Sysctls, and since when they are allowed.
    const ALLOWED: &[(&str, u32)] = &[
        ("kernel.shm_rmid_forced", 0),
        ("net.ipv4.ip_local_port_range", 0),
        ("net.ipv4.tcp_syncookies", 0),
        ("net.ipv4.ping_group_range", 0),
        ("net.ipv4.ip_unprivileged_port_start", 0),
        ("net.ipv4.ip_local_reserved_ports", 27),
        ("net.ipv4.tcp_keepalive_time", 29),
        ("net.ipv4.tcp_fin_timeout", 29),
        ("net.ipv4.tcp_keepalive_intvl", 29),
        ("net.ipv4.tcp_keepalive_probes", 29),
        ("net.ipv4.tcp_rmem", 32),
        ("net.ipv4.tcp_wmem", 32),
    ];
    let is_allowed = |wanted: &str| {
        let mut known = ALLOWED.iter();
        known.any(|(name, since)| *name == wanted && pod.version >= *since)
    };
    let list = pod.context()["sysctls"].as_array().into_iter().flatten();
    let bad: Vec<String> = list.map(name).filter(|name| !is_allowed(name)).collect();
    if bad.is_empty() {
        return None;
    }
    wrong("forbidden sysctls", bad.join(", "))
}

fn host_process(pod: &Pod<'_>) -> Option<Wrong> {
    let is_set = |context: &Value| context["windowsOptions"]["hostProcess"] == true;
    let setters = pod.setters(is_set(pod.context()), &pod.containers_where(is_set));
    if setters.is_empty() {
        return None;
    }
    let setters = setters.join(" and ");
    let detail = format!("{setters} must not set securityContext.windowsOptions.hostProcess=true");
    wrong("hostProcess", detail)
}

fn escalation(pod: &Pod<'_>) -> Option<Wrong> {
    if pod.version < 8 || pod.version >= 25 && pod.is_windows() {
        return None;
    }
    let names = pod.containers_where(|context| context["allowPrivilegeEscalation"] != false);
    if names.is_empty() {
        return None;
    }
    let names = named("container", &names);
    let detail = format!("{names} must set securityContext.allowPrivilegeEscalation=false");
    wrong("allowPrivilegeEscalation != false", detail)
}

fn capabilities(pod: &Pod<'_>) -> Option<Wrong> {
    if pod.version < 22 || pod.version >= 25 && pod.is_windows() {
        return None;
    }
    let drops_all = |context: &Value| {
        let list = context["capabilities"]["drop"].as_array();
        list.is_some_and(|list| list.iter().any(|one| one == "ALL"))
    };
    let keeping = pod.containers_where(|context| !drops_all(context));
    let (adding, values) = added(pod, &["NET_BIND_SERVICE"]);
    let mut details = Vec::new();
    if !keeping.is_empty() {
        let names = named("container", &keeping);
        details.push(format!(
            "{names} must set securityContext.capabilities.drop=[\"ALL\"]"
        ));
    }
    if !adding.is_empty() {
        details.push(told_added(&adding, &values));
    }
    if details.is_empty() {
        return None;
    }
    wrong("unrestricted capabilities", details.join("; "))
}

fn volumes(pod: &Pod<'_>) -> Option<Wrong> {
    const ALLOWED: &[&str] = &[
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    let (mut names, mut kinds) = (Vec::new(), BTreeSet::new());
    for volume in pod.spec["volumes"].as_array().into_iter().flatten() {
        if ALLOWED.iter().any(|kind| volume[*kind].is_object()) {
            continue;
        }
        names.push(name(volume));
        let fields = volume.as_object().into_iter().flatten();
        let mut kind = fields.filter(|(_, source)| source.is_object());
        let kind = kind.next().map_or("unknown", |(kind, _)| kind);
        kinds.insert(kind.to_owned());
    }
    if names.is_empty() {
        return None;
    }
    let detail = format!(
        "{} {} {} {}",
        named("volume", &names),
        uses(&names),
        plural("restricted volume type", kinds.len()),
        quoted(&kinds)
    );
    wrong("restricted volume types", detail)
}

fn non_root(pod: &Pod<'_>) -> Option<Wrong> {
    if pod.has_own_users() {
        return None;
    }
    const REASON: &str = "runAsNonRoot != true";
    let of_pod = &pod.context()["runAsNonRoot"];
    let explicit = pod.containers_where(|context| context["runAsNonRoot"] == false);
    let setters = pod.setters(*of_pod == false, &explicit);
    if !setters.is_empty() {
        let setters = setters.join(" and ");
        return wrong(
            REASON,
            format!("{setters} must not set securityContext.runAsNonRoot=false"),
        );
    }
    let silent = pod.containers_where(|context| context["runAsNonRoot"].is_null());
    if *of_pod == true || silent.is_empty() {
        return None;
    }
    let names = named("container", &silent);
    wrong(
        REASON,
        format!("pod or {names} must set securityContext.runAsNonRoot=true"),
    )
}

fn root_user(pod: &Pod<'_>) -> Option<Wrong> {
    if pod.version < 23 || pod.has_own_users() {
        return None;
    }
    let is_root = |context: &Value| context["runAsUser"] == 0;
    let setters = pod.setters(is_root(pod.context()), &pod.containers_where(is_root));
    if setters.is_empty() {
        return None;
    }
    wrong(
        "runAsUser=0",
        format!("{} must not set runAsUser=0", setters.join(" and ")),
    )
}

fn seccomp_restricted(pod: &Pod<'_>) -> Option<Wrong> {
    if pod.version < 19 || pod.version >= 25 && pod.is_windows() {
        return None;
    }
    if let Some(wrong) = seccomp(pod) {
        return Some(wrong);
    }
    let is_set = |context: &Value| context["seccompProfile"].is_object();
    let silent = pod.containers_where(|context| !is_set(context));
    if is_set(pod.context()) || silent.is_empty() {
        return None;
    }
    let detail = format!(
        "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
        named("container", &silent)
    );
    wrong("seccompProfile", detail)
}
