//! Claims, volumes and their classes.

use api::names;
use serde_json::Value;

use super::pod::affinity::{label_selector, node_selector};
use super::pod::{resources, volume as source};
use super::spot::{Faults, Spot};
use super::{list, meta, same, text};
use crate::annotations::STORAGE_CLASS;

/// Longest name of a driver.
const DRIVER_BYTES_MAX: i64 = 63;
/// Most bytes of a class's parameters.
const PARAMETER_BYTES_MAX: i64 = 256 * 1024;
/// Most parameters of a class.
const PARAMETERS_MAX: i64 = 512;
/// Ways to reach a volume.
const MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

/// Checks the name of a storage driver.
pub(super) fn driver_name(at: &Spot<'_, '_>, faults: &mut Faults) {
    let name = at.text();
    if name.is_empty() {
        return faults.required(at, "");
    }
    if name.len() as i64 > DRIVER_BYTES_MAX {
        faults.too_long(at, DRIVER_BYTES_MAX);
    }
    for detail in names::check_subdomain(&name.to_lowercase()) {
        faults.invalid_as(at, name, detail);
    }
}

fn access_modes(modes: &Spot<'_, '_>, faults: &mut Faults) {
    let (mut has_single, mut has_other) = (false, false);
    for mode in modes.items() {
        if !MODES.contains(&mode.text()) {
            let fault = crate::field::FieldError::not_supported(&modes.path(), mode.text(), MODES);
            faults.push(fault);
        } else if mode.text() == "ReadWriteOncePod" {
            has_single = true;
        } else {
            has_other = true;
        }
    }
    if has_single && has_other {
        let detail = "may not use ReadWriteOncePod with other access modes";
        faults.forbidden(modes, detail);
    }
}

/// Checks a new claim.
pub(super) fn claim(claim: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(claim, names::check_subdomain, faults);
    claim_spec(&claim.at("spec"), faults);
}

/// Checks the spec of a claim or of a template of claims.
pub(super) fn claim_spec(spec: &Spot<'_, '_>, faults: &mut Faults) {
    let modes = spec.at("accessModes");
    if modes.is_empty() {
        faults.required(&modes, "at least 1 access mode is required");
    }
    label_selector(&spec.at("selector"), faults);
    access_modes(&modes, faults);
    let resources = spec.at("resources");
    let at = resources.key("storage");
    let asked = resources.at("requests").at("storage").quantity();
    match asked {
        None => faults.required(&at, ""),
        Some(asked) if asked.nanos() <= 0 => {
            faults.invalid_as(&at, asked.canonical(), "must be greater than zero");
        }
        Some(_) => {}
    }
    faults.name_if(&spec.at("storageClassName"), names::check_subdomain);
    faults.known(&spec.at("volumeMode"), &["Block", "Filesystem"]);
    data_sources(spec, faults);
    faults.name_if(
        &spec.at("volumeAttributesClassName"),
        names::check_subdomain,
    );
}

fn data_sources(spec: &Spot<'_, '_>, faults: &mut Faults) {
    let (old, new) = (spec.at("dataSource"), spec.at("dataSourceRef"));
    for at in [&old, &new].into_iter().filter(|at| at.is_there()) {
        faults.need(&at.at("name"));
        faults.need(&at.at("kind"));
        let (group, kind) = (at.at("apiGroup"), at.at("kind"));
        if group.is_empty() && kind.text() != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            faults.invalid_as(at, kind.text(), detail);
        }
        faults.name_if(&group, names::check_subdomain);
    }
    faults.name_if(&new.at("namespace"), names::check_label);
    if !new.at("namespace").is_empty() {
        if old.is_there() {
            let detail = "may not be specified when dataSourceRef.namespace is specified";
            faults.invalid_as(spec, serde_json::json!({}), detail);
        }
    } else if old.is_there() && new.is_there() {
        let parts = ["apiGroup", "kind", "name"];
        if parts.iter().any(|part| old.value[part] != new.value[part]) {
            faults.invalid_as(spec, serde_json::json!({}), "must match dataSourceRef");
        }
    }
}

/// A claim keeps its spec, but for binding it and asking for more.
pub(super) fn claim_update(changed: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(changed, old, faults);
    claim(changed, faults);
    let mut new = changed.value["spec"].clone();
    let mut was = old["spec"].clone();
    let is_bound = changed.value["status"]["phase"] == "Bound";
    if text(&was["volumeName"]).is_empty() {
        set(&mut was, "volumeName", &new["volumeName"]);
    }
    let metadata = changed.at("metadata");
    let class = metadata.called("", STORAGE_CLASS);
    let (new_class, old_class) = (
        &metadata.value["annotations"][STORAGE_CLASS],
        &old["metadata"]["annotations"][STORAGE_CLASS],
    );
    let given = &changed.value["spec"]["storageClassName"];
    let had = &old["spec"]["storageClassName"];
    let moves_in = !old_class.is_null()
        && had.is_null()
        && given == old_class
        && (new_class.is_null() || new_class == old_class);
    if moves_in {
        set(&mut new, "storageClassName", &Value::Null);
    } else {
        if text(new_class) != text(old_class) {
            let notes = metadata.at("annotations");
            let _ = class;
            faults.invalid_as(&notes.at(STORAGE_CLASS), text(new_class), super::IMMUTABLE);
        }
        let fills =
            !given.is_null() && had.is_null() && (old_class.is_null() || given == old_class);
        if fills {
            set(&mut new, "storageClassName", had);
        }
    }
    if is_bound && new["resources"]["requests"].is_object() {
        new["resources"]["requests"]["storage"] = was["resources"]["requests"]["storage"].clone();
    }
    if is_bound {
        set(
            &mut new,
            "volumeAttributesClassName",
            &was["volumeAttributesClassName"],
        );
    }
    let spec = changed.at("spec");
    if !same(&new, &was) {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n";
        faults.forbidden(&spec, detail);
    }
    shrinks(&spec, old, faults);
    let mode = &old["spec"]["volumeMode"];
    if spec.value["volumeMode"] != *mode {
        let shown = spec.value["volumeMode"].clone();
        faults.push(crate::field::FieldError::invalid(
            "volumeMode",
            shown,
            super::IMMUTABLE,
        ));
    }
    attributes_class(&spec, old, faults);
}

fn shrinks(spec: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    let storage = |value: &Value| {
        Spot::new(value, "")
            .quantity()
            .map_or(0, |found| found.nanos())
    };
    let requests = spec.at("resources");
    let requests = requests.at("requests");
    let at = requests.at("storage");
    let (asked, had) = (
        storage(at.value),
        storage(&old["spec"]["resources"]["requests"]["storage"]),
    );
    // Less may be asked for while more was not yet given.
    if asked < had && asked <= storage(&old["status"]["capacity"]["storage"]) {
        faults.forbidden(&at, "field can not be less than status.capacity");
    }
}

fn attributes_class(spec: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    let class = spec.at("volumeAttributesClassName");
    let is_set = !old["status"]["currentVolumeAttributesClassName"].is_null();
    if *class.value == old["spec"]["volumeAttributesClassName"] || !is_set {
        return;
    }
    if !class.is_there() {
        let detail =
            "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil";
        faults.forbidden(&class, detail);
    } else if class.is_empty() {
        let detail = "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil";
        faults.forbidden(&class, detail);
    }
}

fn set(object: &mut Value, name: &str, value: &Value) {
    if let Some(map) = object.as_object_mut() {
        if value.is_null() {
            map.remove(name);
        } else {
            map.insert(name.to_owned(), value.clone());
        }
    }
}

/// States of a claim that grows.
const RESIZE_STATES: &[&str] = &[
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

/// Checks what is said of a claim.
pub(super) fn claim_status(claim: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(claim, old, faults);
    let status = claim.at("status");
    for (name, at) in status.at("capacity").entries() {
        resources::amount(&at, name, faults);
    }
    let states = status.at("allocatedResourceStatuses");
    for (name, at) in states.entries() {
        faults.name_as(&states, name, names::check_qualified);
        if !RESIZE_STATES.contains(&at.text()) {
            let fault =
                crate::field::FieldError::not_supported(&states.path(), name, RESIZE_STATES);
            faults.push(fault);
        }
    }
    for (name, at) in status.at("allocatedResources").entries() {
        resources::amount(&at, name, faults);
    }
}

/// Sources of a volume, as the real server asks for them, with how it calls each.
type VolumeSource = (&'static str, &'static str, fn(&Spot<'_, '_>, &mut Faults));

const SOURCES: &[VolumeSource] = &[
    ("hostPath", "hostPath", source::host_path),
    ("gcePersistentDisk", "persistentDisk", source::gce),
    ("awsElasticBlockStore", "awsElasticBlockStore", source::aws),
    ("glusterfs", "glusterfs", |at, faults| {
        need(at, &["endpoints", "path"], faults)
    }),
    ("flocker", "flocker", |_, _| {}),
    ("nfs", "nfs", source::nfs),
    ("rbd", "rbd", |at, faults| {
        need(at, &["monitors", "image"], faults)
    }),
    ("quobyte", "quobyte", |_, _| {}),
    ("cephfs", "cephfs", |at, faults| {
        need(at, &["monitors"], faults)
    }),
    ("iscsi", "iscsi", source::iscsi),
    ("cinder", "cinder", |at, faults| {
        need(at, &["volumeID"], faults)
    }),
    ("fc", "fc", source::fibre),
    ("flexVolume", "flexVolume", |at, faults| {
        need(at, &["driver"], faults)
    }),
    ("azureFile", "azureFile", |at, faults| {
        need(at, &["secretName", "shareName"], faults)
    }),
    ("vsphereVolume", "vsphereVolume", |at, faults| {
        need(at, &["volumePath"], faults)
    }),
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        |at, faults| need(at, &["pdID"], faults),
    ),
    ("portworxVolume", "portworxVolume", |at, faults| {
        need(at, &["volumeID"], faults)
    }),
    ("azureDisk", "azureDisk", |at, faults| {
        need(at, &["diskName", "diskURI"], faults)
    }),
    ("scaleIO", "scaleIO", |at, faults| {
        need(at, &["gateway", "system", "volumeName"], faults)
    }),
    ("local", "local", local),
    ("storageos", "storageos", |_, _| {}),
    ("csi", "csi", csi),
];

fn need(at: &Spot<'_, '_>, fields: &[&str], faults: &mut Faults) {
    for field in fields {
        faults.need(&at.at(field));
    }
}

fn local(at: &Spot<'_, '_>, faults: &mut Faults) {
    let path = at.at("path");
    if path.is_empty() {
        return faults.required(&path, "");
    }
    if super::format::steps_back(path.text()) {
        faults.invalid_text(&path, "must not contain '..'");
    }
}

fn csi(at: &Spot<'_, '_>, faults: &mut Faults) {
    driver_name(&at.at("driver"), faults);
    faults.need(&at.at("volumeHandle"));
    for secret in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        let secret = at.at(secret);
        if secret.is_there() {
            faults.need_name(&secret.at("name"), names::check_subdomain);
            faults.need_name(&secret.at("namespace"), names::check_label);
        }
    }
}

/// Checks a new volume.
pub(super) fn volume(volume: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(volume, names::check_subdomain, faults);
    let spec = volume.at("spec");
    let modes = spec.at("accessModes");
    if modes.is_empty() {
        faults.required(&modes, "");
    }
    access_modes(&modes, faults);
    let capacity = spec.at("capacity");
    if capacity.is_empty() {
        faults.required(&capacity, "");
    }
    if capacity.value.get("storage").is_none() || capacity.len() > 1 {
        let shown = if capacity.is_there() {
            capacity.value.clone()
        } else {
            Value::Null
        };
        let path = capacity.path();
        faults.push(crate::field::FieldError::not_supported(
            &path,
            shown,
            &["storage"],
        ));
    }
    for (_, at) in capacity.entries() {
        let Some(amount) = at.quantity() else {
            continue;
        };
        if amount.nanos() < 0 {
            let detail = "must be greater than or equal to 0";
            faults.invalid_as(&at, amount.canonical(), detail);
        }
        if amount.nanos() <= 0 {
            faults.invalid_as(&at, amount.canonical(), "must be greater than zero");
        }
    }
    let policy = spec.at("persistentVolumeReclaimPolicy");
    if !policy.is_empty() {
        faults.known(&policy, &["Delete", "Recycle", "Retain"]);
    }
    volume_source(&spec, faults);
    let root = spec.at("hostPath").at("path").text();
    if policy.text() == "Recycle" && !root.is_empty() && root.bytes().all(|byte| byte == b'/') {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        faults.forbidden(&policy, detail);
    }
    faults.name_if(&spec.at("storageClassName"), names::check_subdomain);
    faults.known(&spec.at("volumeMode"), &["Block", "Filesystem"]);
    let class = spec.at("volumeAttributesClassName");
    if class.is_there() {
        if class.is_empty() {
            faults.required(&class, "an empty string is disallowed");
        } else {
            faults.name(&class, names::check_subdomain);
        }
        if !spec.at("csi").is_there() {
            let detail = "has to be specified when using volumeAttributesClassName";
            faults.required(&spec.at("csi"), detail);
        }
    }
}

fn volume_source(spec: &Spot<'_, '_>, faults: &mut Faults) {
    let affinity = spec.at("nodeAffinity");
    if affinity.is_there() {
        let needed = affinity.at("required");
        if needed.is_there() {
            node_selector(&needed, faults);
        } else {
            faults.required(&needed, "must specify required node constraints");
        }
    }
    let mut count = 0;
    for (field, called, rule) in SOURCES {
        if spec.value[field].is_null() {
            continue;
        }
        count += 1;
        if count > 1 {
            let detail = "may not specify more than 1 volume type";
            faults.forbidden(&spec.at(field), detail);
            continue;
        }
        rule(&spec.called(field, called), faults);
        if *field == "local" && !affinity.is_there() {
            faults.required(&affinity, "Local volume requires node affinity");
        }
    }
    if count == 0 {
        faults.required(spec, "must specify a volume type");
    }
}

pub(super) fn volume_update(changed: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(changed, old, faults);
    volume(changed, faults);
    let (spec, was) = (changed.at("spec"), &old["spec"]);
    if SOURCES
        .iter()
        .any(|(field, ..)| !same(&spec.value[field], &was[field]))
    {
        let at = spec.at("persistentvolumesource");
        let detail = "spec.persistentvolumesource is immutable after creation\n";
        faults.forbidden(&at, detail);
    }
    let mode = &spec.value["volumeMode"];
    if *mode != was["volumeMode"] {
        let mode = mode.clone();
        faults.push(crate::field::FieldError::invalid(
            "volumeMode",
            mode,
            super::IMMUTABLE,
        ));
    }
    let affinity = spec.at("nodeAffinity");
    if !was["nodeAffinity"].is_null() && !same(affinity.value, &was["nodeAffinity"]) {
        let detail = "field is immutable, except for updating from beta label to GA";
        let path = affinity.path();
        let path = path.strip_prefix("spec.").unwrap_or(&path);
        faults.push(crate::field::FieldError::invalid(
            path,
            affinity.value.clone(),
            detail,
        ));
    }
}

/// Checks a storage class.
pub(super) fn class(class: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(class, names::check_subdomain, faults);
    provisioner(&class.at("provisioner"), faults);
    parameters(&class.at("parameters"), faults);
    if !class.at("reclaimPolicy").is_empty() {
        faults.known(&class.at("reclaimPolicy"), &["Delete", "Retain"]);
    }
    let mode = class.at("volumeBindingMode");
    if mode.is_there() {
        faults.known(&mode, &["Immediate", "WaitForFirstConsumer"]);
    } else {
        faults.required(&mode, "");
    }
    let topologies = class.at("allowedTopologies");
    for (index, topology) in topologies.items().enumerate() {
        if list(topologies.value)[..index].contains(topology.value) {
            faults.duplicate(&topology.at("matchLabelExpressions"), "");
        }
        let mut keys = std::collections::BTreeSet::new();
        for rule in topology.at("matchLabelExpressions").items() {
            let values = rule.at("values");
            faults.need(&values);
            let mut seen = std::collections::BTreeSet::new();
            for value in values.items().filter(|value| !seen.insert(value.text())) {
                faults.duplicate(&value, value.text());
            }
            let key = rule.at("key");
            faults.name(&key, names::check_qualified);
            if !keys.insert(key.text()) {
                faults.duplicate(&key, key.text());
            }
        }
    }
}

fn provisioner(at: &Spot<'_, '_>, faults: &mut Faults) {
    if at.is_empty() {
        return faults.required(at, "");
    }
    let lower = at.text().to_lowercase();
    faults.name_as(at, &lower, names::check_qualified);
}

fn parameters(at: &Spot<'_, '_>, faults: &mut Faults) {
    if at.len() as i64 > PARAMETERS_MAX {
        return faults.too_long(at, PARAMETERS_MAX);
    }
    let mut bytes = 0;
    for (key, value) in at.entries() {
        if key.is_empty() {
            faults.invalid_as(at, key, "field can not be empty.");
        }
        bytes += (key.len() + value.text().len()) as i64;
    }
    if bytes > PARAMETER_BYTES_MAX {
        faults.too_long(at, PARAMETER_BYTES_MAX);
    }
}

pub(super) fn class_update(class: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(class, old, faults);
    for name in [
        "parameters",
        "provisioner",
        "reclaimPolicy",
        "volumeBindingMode",
    ] {
        faults.unchanged(&class.at(name), &old[name]);
    }
}

/// Checks a class of volume attributes.
pub(super) fn attributes(class: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(class, names::check_subdomain, faults);
    provisioner(&class.at("driverName"), faults);
    let at = class.at("parameters");
    parameters(&at, faults);
    if at.is_empty() {
        faults.required(&at, "must contain at least one key/value pair");
    }
}

pub(super) fn attributes_update(class: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(class, old, faults);
    for name in ["driverName", "parameters"] {
        if *class.at(name).value != old[name] {
            let detail = format!("updates to {name} are forbidden.");
            faults.forbidden(&class.at(name), &detail);
        }
    }
    attributes(class, faults);
}

/// Checks how much storage a place has left.
pub(super) fn capacity(capacity: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(capacity, names::check_subdomain, faults);
    label_selector(&capacity.at("nodeTopology"), faults);
    faults.name(&capacity.at("storageClassName"), names::check_subdomain);
    let amount = capacity.at("capacity");
    if let Some(found) = amount.quantity().filter(|amount| amount.nanos() < 0) {
        let detail = "must be greater than or equal to 0";
        faults.invalid_as(&amount, found.canonical(), detail);
    }
}

pub(super) fn capacity_update(changed: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(changed, old, faults);
    for name in ["nodeTopology", "storageClassName"] {
        faults.unchanged(&changed.at(name), &old[name]);
    }
}

/// Checks the drivers of a node.
pub(super) fn csi_node(node: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(node, names::check_subdomain, faults);
    let mut seen = std::collections::BTreeSet::new();
    for driver in node.at("spec").at("drivers").items() {
        let name = driver.at("name");
        driver_name(&name, faults);
        if !seen.insert(name.text()) {
            faults.duplicate(&name, name.text());
        }
        let id = driver.at("nodeID");
        faults.need(&id);
        if id.text().len() > 256 {
            let detail = format!("must be {} characters or less", 256);
            faults.invalid_text(&id, &detail);
        }
        faults.not_negative(&driver.at("allocatable").at("count"));
        let mut keys = std::collections::BTreeSet::new();
        for key in driver.at("topologyKeys").items() {
            if key.is_empty() {
                faults.required(&driver, "");
            }
            if !keys.insert(key.text()) {
                faults.duplicate(&driver, key.text());
            }
            faults.name_as(&driver, key.text(), names::check_qualified);
        }
    }
}

pub(super) fn csi_node_update(changed: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    csi_node(changed, faults);
    let apart_from_room = |driver: &Value| {
        let mut driver = driver.clone();
        set(&mut driver, "allocatable", &Value::Null);
        driver
    };
    let at = changed.at("spec");
    let drivers = at.at("drivers");
    for driver in drivers.items() {
        let had = list(&old["spec"]["drivers"]);
        let had = had.iter().find(|had| had["name"] == driver.value["name"]);
        if had.is_some_and(|had| apart_from_room(had) != apart_from_room(driver.value)) {
            faults.invalid_as(&drivers, driver.value.clone(), super::IMMUTABLE);
        }
    }
}
