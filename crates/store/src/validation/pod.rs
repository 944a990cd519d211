//! Pods and pod templates.

pub(crate) mod affinity;
pub(crate) mod container;
mod environment;
pub(crate) mod handler;
pub(crate) mod resize;
pub(crate) mod resources;
mod security;
pub(crate) mod status;
pub(crate) mod update;
pub(crate) mod volume;

use std::collections::BTreeSet;

use api::names;
use serde_json::Value;

use super::spot::{Faults, Spot};
use super::{format, meta};
use volume::Volumes;

/// Whose spec it is.
pub(crate) enum Owner<'v> {
    /// A pod's, with this metadata.
    Pod(&'v Value),
    /// A template's.
    Template,
}

/// What the checks of a pod's parts know of the whole.
struct Pod<'v> {
    volumes: Volumes<'v>,
    claims: BTreeSet<&'v str>,
    grace: Option<i64>,
    restart: &'v str,
    system: &'v str,
    host_users: bool,
}

/// Longest override of a host name.
const HOSTNAME_BYTES_MAX: usize = 64;

/// Checks a new pod.
pub(super) fn create(pod: &Spot<'_, '_>, faults: &mut Faults) {
    whole(pod, faults);
    let spec = pod.at("spec");
    if !spec.at("ephemeralContainers").is_empty() {
        faults.forbidden(&spec.at("ephemeralContainers"), "cannot be set on create");
    }
    if !spec.at("nodeName").is_empty() && !spec.at("schedulingGates").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        faults.forbidden(&spec.at("nodeName"), detail);
    }
}

/// Checks a pod's metadata and spec.
fn whole(pod: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(pod, names::check_subdomain, faults);
    let meta = pod.at("metadata");
    annotations(&meta.at("annotations"), faults);
    let at = pod.at("spec");
    spec(&at, &Owner::Pod(meta.value), faults);
    if at.at("serviceAccountName").is_empty() {
        for volume in at.at("volumes").items() {
            let projected = volume.at("projected");
            for source in projected.at("sources").items() {
                let token = source.at("serviceAccountToken");
                if token.is_there() {
                    let detail = "must not be specified when serviceAccountName is not set";
                    faults.forbidden(&token, detail);
                }
            }
        }
    }
    for list in ["containers", "initContainers"] {
        for container in at.at(list).items() {
            container::trimmed_image(&container, faults);
        }
    }
}

/// The annotation by which a controller chooses the pods that it deletes first.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

fn annotations(annotations: &Spot<'_, '_>, faults: &mut Faults) {
    let cost = annotations.key(DELETION_COST);
    let text = cost.text();
    let is_number = text.parse::<i32>().is_ok_and(|number| {
        // Go's rule: no plus sign, no zero before another digit.
        number.to_string() == text
    });
    if cost.is_there() && !is_number {
        faults.invalid_text(&cost, "must be a 32bit integer");
    }
}

/// Checks a pod template.
pub(super) fn template(template: &Spot<'_, '_>, faults: &mut Faults) {
    // The real server leaves `metadata` out of these paths.
    let meta = template.at("metadata");
    faults.labels(&Spot::new(
        &meta.value["labels"],
        &template.called("", "labels").path(),
    ));
    let path = template.called("", "annotations").path();
    let notes = Spot::new(&meta.value["annotations"], &path);
    meta::annotations(&notes, faults);
    annotations(&notes, faults);
    let at = template.at("spec");
    spec(&at, &Owner::Template, faults);
    if !at.at("ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        faults.forbidden(&at.at("ephemeralContainers"), detail);
    }
}

/// Checks a pod's spec, its own or a template's.
fn spec(spec: &Spot<'_, '_>, owner: &Owner<'_>, faults: &mut Faults) {
    let grace = spec.at("terminationGracePeriodSeconds");
    if !grace.is_there() {
        faults.required(&grace, "");
    }
    let claims = spec.at("resourceClaims");
    let pod = Pod {
        volumes: volume::check(&spec.at("volumes"), owner, faults),
        claims: claims
            .items()
            .map(|claim| claim.at("name").text())
            .collect(),
        grace: grace.maybe(),
        restart: spec.at("restartPolicy").text(),
        system: spec.at("os").at("name").text(),
        host_users: *spec.at("hostUsers").value != Value::Bool(false),
    };
    resource_claims(&claims, faults);
    let workers = spec.at("containers");
    container::workers(&workers, &pod, faults);
    container::inits(&spec.at("initContainers"), &workers, &pod, faults);
    container::ephemerals(spec, &pod, faults);
    resources::of_pod(spec, &pod.claims, faults);
    host_network(spec, owner, faults);
    faults.one_of(&spec.at("restartPolicy"), &["Always", "OnFailure", "Never"]);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    faults.one_of(&spec.at("dnsPolicy"), &policies);
    faults.labels(&spec.at("nodeSelector"));
    security::of_pod(spec, faults);
    affinity::check(&spec.at("affinity"), faults);
    dns(spec, faults);
    for gate in spec.at("readinessGates").items() {
        faults.name(&gate.at("conditionType"), names::check_qualified);
    }
    let mut seen = BTreeSet::new();
    for gate in spec.at("schedulingGates").items() {
        let name = gate.at("name").text();
        faults.name_as(&gate, name, names::check_qualified);
        if !seen.insert(name) {
            faults.duplicate(&gate, name);
        }
    }
    affinity::spread(&spec.at("topologySpreadConstraints"), faults);
    security::own_users(spec, faults);
    host_name(spec, faults);
    scalars(spec, faults);
}

/// Checks the fields of a spec that stand alone.
fn scalars(spec: &Spot<'_, '_>, faults: &mut Faults) {
    faults.name_if(&spec.at("serviceAccountName"), names::check_subdomain);
    faults.name_if(&spec.at("nodeName"), names::check_subdomain);
    faults.within(&spec.at("activeDeadlineSeconds"), 1, i64::from(i32::MAX));
    faults.name_if(&spec.at("hostname"), names::check_label);
    faults.name_if(&spec.at("subdomain"), names::check_label);
    affinity::tolerations(&spec.at("tolerations"), faults);
    for alias in spec.at("hostAliases").items() {
        faults.name(&alias.at("ip"), format::address);
        for name in alias.at("hostnames").items() {
            faults.name(&name, names::check_subdomain);
        }
    }
    faults.name_if(&spec.at("priorityClassName"), names::check_subdomain);
    if spec.at("runtimeClassName").is_there() {
        faults.name(&spec.at("runtimeClassName"), names::check_subdomain);
    }
    if spec.at("preemptionPolicy").is_there() {
        let policies = ["PreemptLowerPriority", "Never"];
        faults.one_of(&spec.at("preemptionPolicy"), &policies);
    }
    for (name, at) in spec.at("overhead").entries() {
        resources::container_resource_name(&at, name, faults);
        resources::amount(&at, name, faults);
    }
    let system = spec.at("os");
    if system.is_there() {
        let name = system.at("name");
        match name.text() {
            "" => faults.required(&name, ""),
            "linux" | "windows" => {}
            _ => {
                let path = system.path();
                faults.not_supported(&Spot::new(name.value, &path), &["linux", "windows"]);
            }
        }
    }
    let group = spec.at("schedulingGroup");
    if group.is_there() {
        let name = group.at("podGroupName");
        if name.is_there() {
            faults.name(&name, names::check_subdomain);
        } else {
            faults.invalid(&name, "must specify one of: `podGroupName`");
        }
    }
}

fn resource_claims(claims: &Spot<'_, '_>, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for claim in claims.items() {
        let name = claim.at("name");
        if name.is_empty() {
            faults.required(&name, "");
        } else if seen.insert(name.text()) {
            faults.name(&name, names::check_label);
        } else {
            faults.duplicate(&name, name.text());
        }
        let (one, template) = (
            claim.at("resourceClaimName"),
            claim.at("resourceClaimTemplateName"),
        );
        let wrong = match (one.is_there(), template.is_there()) {
            (true, true) => {
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            }
            (false, false) => {
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            }
            _ => "",
        };
        if !wrong.is_empty() {
            let shown = serde_json::json!({
                "Name": name.text(),
                "ResourceClaimName": one.value,
                "ResourceClaimTemplateName": template.value,
            });
            faults.invalid_as(&claim, shown, wrong);
        }
        for at in [&one, &template] {
            if at.is_there() {
                faults.name(at, names::check_subdomain);
            }
        }
    }
}

fn host_network(spec: &Spot<'_, '_>, owner: &Owner<'_>, faults: &mut Faults) {
    if !spec.at("hostNetwork").is_true() {
        return;
    }
    for container in spec.at("containers").items() {
        for port in container.at("ports").items() {
            let (host, own) = (port.at("hostPort"), port.at("containerPort"));
            let matters = matches!(owner, Owner::Pod(_)) || host.number() != 0;
            if matters && host.number() != own.number() {
                let detail = "must match `containerPort` when `hostNetwork` is true";
                faults.invalid_as(&host, host.number(), detail);
            }
        }
    }
}

/// Most name servers of a pod.
const NAME_SERVERS_MAX: usize = 3;
/// Most search paths.
const SEARCHES_MAX: usize = 32;
/// Most bytes of all search paths, with the blanks between them.
const SEARCH_BYTES_MAX: usize = 2_048;

fn dns(spec: &Spot<'_, '_>, faults: &mut Faults) {
    let config = spec.at("dnsConfig");
    let servers = config.at("nameservers");
    if spec.at("dnsPolicy").text() == "None" {
        if !config.is_there() {
            let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
            return faults.required(&config, detail);
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return faults.required(&servers, detail);
        }
    }
    if servers.len() > NAME_SERVERS_MAX {
        let detail = format!("must not have more than {NAME_SERVERS_MAX} nameservers");
        faults.invalid(&servers, &detail);
    }
    for server in servers.items() {
        faults.name(&server, format::address);
    }
    let searches = config.at("searches");
    if searches.len() > SEARCHES_MAX {
        let detail = format!("must not have more than {SEARCHES_MAX} search paths");
        faults.invalid(&searches, &detail);
    }
    let bytes: usize = searches.items().map(|one| one.text().len() + 1).sum();
    if bytes > SEARCH_BYTES_MAX + 1 {
        let detail = format!(
            "must not have more than {SEARCH_BYTES_MAX} characters (including spaces) in the search list"
        );
        faults.invalid(&searches, &detail);
    }
    for search in searches.items().filter(|search| search.text() != ".") {
        let text = search.text();
        let text = text.strip_suffix('.').unwrap_or(text);
        faults.name_as(&search, text, format::search_path);
    }
    for option in config.at("options").items() {
        if option.at("name").is_empty() {
            faults.required(&option, "must not be empty");
        }
    }
}

fn host_name(spec: &Spot<'_, '_>, faults: &mut Faults) {
    let name = spec.at("hostnameOverride");
    if !name.is_there() {
        return;
    }
    for (field, shown) in [
        ("setHostnameAsFQDN", "setHostnameAsFQDN"),
        ("hostNetwork", "hostNetwork"),
    ] {
        if spec.at(field).is_true() {
            let detail = format!("may not be specified when {shown} is true");
            faults.forbidden(&name, &detail);
        }
    }
    if name.text().len() > HOSTNAME_BYTES_MAX {
        faults.too_long(&name, HOSTNAME_BYTES_MAX as i64);
    }
    faults.name(&name, names::check_subdomain);
}
