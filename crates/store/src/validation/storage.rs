//! Claims, volumes and their classes.

use api::names;
use api::quantity::Quantity;
use serde_json::Value;

use super::container::amount_not_negative;
use super::{list, one_of, text, texts, unchanged};
use crate::field::{self, FieldError};

pub(super) fn claim(claim: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &claim["spec"];
    check_modes(&spec["accessModes"], "spec.accessModes", &mut errors);
    if spec["resources"]["requests"].get("storage").is_none() {
        errors.push(FieldError::required("spec.resources[storage]", ""));
    }
    if let Some(amount) = spec["resources"]["requests"].get("storage") {
        let is_positive = storage(spec).is_none_or(|quantity| quantity.nanos() > 0);
        if !is_positive {
            let detail = "must be greater than zero";
            errors.push(FieldError::invalid(
                "spec.resources[storage]",
                amount.clone(),
                detail,
            ));
        }
    }
    let class = text(&spec["storageClassName"]);
    if !class.is_empty() {
        texts(
            names::check_subdomain(class),
            class,
            "spec.storageClassName",
            &mut errors,
        );
    }
    errors
}

/// The amount that a claim's spec asks for.
fn storage(spec: &Value) -> Option<Quantity> {
    let amount = text(&spec["resources"]["requests"]["storage"]);
    Quantity::parse(amount).ok()
}

fn check_modes(modes: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let known = [
        "ReadOnlyMany",
        "ReadWriteMany",
        "ReadWriteOnce",
        "ReadWriteOncePod",
    ];
    let modes = list(modes);
    if modes.is_empty() {
        errors.push(FieldError::required(
            path,
            "at least 1 access mode is required",
        ));
    }
    for mode in modes.iter().filter(|mode| !known.contains(&text(mode))) {
        errors.push(FieldError::not_supported(path, mode.clone(), &known));
    }
    if modes.len() > 1 && modes.iter().any(|mode| mode == "ReadWriteOncePod") {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(path, detail));
    }
}

/// A claim keeps its spec, but for binding it and asking for more.
pub(super) fn claim_update(claim: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let mut new = claim["spec"].clone();
    let was = &old["spec"];
    let Some(map) = new.as_object_mut() else {
        return;
    };
    let mut keep = |name: &str| match was.get(name) {
        Some(value) => {
            map.insert(name.to_owned(), value.clone());
        }
        None => {
            map.remove(name);
        }
    };
    if old["status"]["phase"] == "Bound" {
        keep("resources");
        keep("volumeAttributesClassName");
    }
    if text(&was["volumeName"]).is_empty() {
        keep("volumeName");
        if was.get("storageClassName").is_none() {
            keep("storageClassName");
        }
    }
    if new != *was {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n";
        errors.push(FieldError::forbidden("spec", detail));
    }
    if let (Some(asked), Some(had)) = (storage(&claim["spec"]), storage(was))
        && asked.nanos() < had.nanos()
    {
        let held = Quantity::parse(text(&old["status"]["capacity"]["storage"])).ok();
        // Less may be asked for while more was not yet given.
        if held.is_none_or(|held| asked.nanos() <= held.nanos()) {
            let detail = "field can not be less than status.capacity";
            let at = "spec.resources.requests.storage";
            errors.push(FieldError::forbidden(at, detail));
        }
    }
}

/// Fields of a volume that are not its source.
const VOLUME_FIELDS: &[&str] = &[
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

pub(super) fn volume(volume: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &volume["spec"];
    check_modes(&spec["accessModes"], "spec.accessModes", &mut errors);
    match spec["capacity"].get("storage") {
        None => errors.push(FieldError::required("spec.capacity", "")),
        Some(amount) => amount_not_negative(amount, "spec.capacity[storage]", &mut errors),
    }
    let source = |name: &&String| !VOLUME_FIELDS.contains(&name.as_str());
    let sources = spec
        .as_object()
        .into_iter()
        .flat_map(|map| map.keys())
        .filter(source);
    let sources: Vec<&String> = sources.collect();
    if sources.is_empty() {
        errors.push(FieldError::required("spec", "must specify a volume type"));
    }
    for extra in sources.iter().skip(1) {
        let detail = "may not specify more than 1 volume type";
        errors.push(FieldError::forbidden(&field::child("spec", extra), detail));
    }
    let policies = ["Delete", "Recycle", "Retain"];
    let policy_at = "spec.persistentVolumeReclaimPolicy";
    one_of(
        &spec["persistentVolumeReclaimPolicy"],
        policy_at,
        &policies,
        &mut errors,
    );
    errors
}

pub(super) fn volume_update(volume: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let source = |spec: &Value| -> Vec<(String, Value)> {
        let fields = spec.as_object().into_iter().flatten();
        fields
            .filter(|(name, _)| !VOLUME_FIELDS.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    if source(&volume["spec"]) != source(&old["spec"]) {
        let detail = "spec.persistentvolumesource is immutable after creation\n";
        errors.push(FieldError::forbidden("spec.persistentvolumesource", detail));
    }
    unchanged(
        &volume["spec"]["volumeMode"],
        &old["spec"]["volumeMode"],
        "spec.volumeMode",
        errors,
    );
}

pub(super) fn storage_class(class: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let provisioner = text(&class["provisioner"]);
    if provisioner.is_empty() {
        errors.push(FieldError::required("provisioner", ""));
    } else {
        let lower = provisioner.to_lowercase();
        texts(
            names::check_qualified(&lower),
            provisioner,
            "provisioner",
            &mut errors,
        );
    }
    one_of(
        &class["reclaimPolicy"],
        "reclaimPolicy",
        &["Delete", "Retain"],
        &mut errors,
    );
    let modes = ["Immediate", "WaitForFirstConsumer"];
    one_of(
        &class["volumeBindingMode"],
        "volumeBindingMode",
        &modes,
        &mut errors,
    );
    errors
}

pub(super) fn storage_class_update(class: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    for name in ["parameters", "provisioner", "reclaimPolicy"] {
        if class[name] != old[name] {
            let detail = format!("updates to {name} are forbidden.");
            errors.push(FieldError::forbidden(name, detail));
        }
    }
    let mode = "volumeBindingMode";
    unchanged(&class[mode], &old[mode], mode, errors);
}
