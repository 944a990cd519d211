//! Metadata of every object.

use std::collections::BTreeSet;

use api::meta::{FOREGROUND_DELETION, ORPHAN_DEPENDANTS};
use api::names;
use serde_json::Value;

use super::spot::{Faults, Spot};
use super::{IMMUTABLE, list, text};

/// Most bytes of all annotations together.
const ANNOTATION_BYTES_MAX: usize = 256 * 1024;

/// A rule about names.
pub(crate) type NameRule = fn(&str) -> Vec<String>;

/// Finalizers of Kubernetes itself.
const FINALIZERS: &[&str] = &[FOREGROUND_DELETION, "kubernetes", ORPHAN_DEPENDANTS];

/// Checks the metadata of a new object of the core kinds: a finalizer without a domain must be one
/// of Kubernetes itself.
pub(crate) fn create(object: &Spot<'_, '_>, rule: NameRule, faults: &mut Faults) {
    generic(object, rule, faults);
    let meta = object.at("metadata");
    for finalizer in meta.at("finalizers").items() {
        known_finalizer(&finalizer, finalizer.text(), faults);
    }
}

/// A finalizer is one of Kubernetes itself or has a domain.
pub(crate) fn known_finalizer(at: &Spot<'_, '_>, name: &str, faults: &mut Faults) {
    if !name.contains('/') && !FINALIZERS.contains(&name) {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        faults.invalid_as(at, name, detail);
    }
}

/// Checks the metadata of any new object; the namespace is the address's business.
pub(crate) fn generic(object: &Spot<'_, '_>, rule: NameRule, faults: &mut Faults) {
    let meta = object.at("metadata");
    let (name, prefix) = (meta.at("name"), meta.at("generateName"));
    if !prefix.is_empty() {
        // A prefix may end in a dash: letters follow.
        let text = prefix.text();
        let masked = match text.strip_suffix('-') {
            Some(start) if !start.is_empty() => format!("{start}a"),
            _ => text.to_owned(),
        };
        for detail in rule(&masked) {
            faults.invalid_as(&prefix, text, detail);
        }
    }
    if name.is_empty() {
        faults.required(&name, "name or generateName is required");
    } else {
        faults.name(&name, rule);
    }
    common(&meta, faults);
    let finalizers = meta.at("finalizers");
    for finalizer in finalizers.items() {
        faults.name_as(&finalizers, finalizer.text(), names::check_qualified);
    }
    let has = |name: &str| list(finalizers.value).iter().any(|one| one == name);
    if has(ORPHAN_DEPENDANTS) && has(FOREGROUND_DELETION) {
        let detail =
            format!("finalizer {ORPHAN_DEPENDANTS} and {FOREGROUND_DELETION} cannot be both set");
        faults.invalid(&finalizers, &detail);
    }
}

fn common(meta: &Spot<'_, '_>, faults: &mut Faults) {
    faults.labels(&meta.at("labels"));
    annotations(&meta.at("annotations"), faults);
    owners(&meta.at("ownerReferences"), faults);
}

/// Checks what of the metadata of a changed object the kind's own rules look at again.
pub(crate) fn update(object: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    let meta = object.at("metadata");
    let was = &old["metadata"];
    if !was["deletionTimestamp"].is_null() {
        let had: BTreeSet<&str> = list(&was["finalizers"]).iter().map(text).collect();
        let news = list(&meta.value["finalizers"]).iter();
        let mut news: Vec<String> = news
            .filter(|one| !had.contains(text(one)))
            .map(Value::to_string)
            .collect();
        news.sort();
        if !news.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                news.join(", ")
            );
            faults.forbidden(&meta.at("finalizers"), &detail);
        }
    }
    for name in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        let at = meta.at(name);
        if *at.value != was[name] {
            faults.invalid(&at, IMMUTABLE);
        }
    }
    common(&meta, faults);
}

/// Checks a map of annotations.
pub(crate) fn annotations(annotations: &Spot<'_, '_>, faults: &mut Faults) {
    let mut bytes = 0;
    for (key, value) in annotations.value.as_object().into_iter().flatten() {
        // Annotations may be written in capitals.
        let wrong = if key.bytes().any(|byte| byte.is_ascii_uppercase()) {
            names::check_qualified(&key.to_lowercase())
        } else {
            names::check_qualified(key)
        };
        for detail in wrong {
            faults.invalid_as(annotations, key.as_str(), detail);
        }
        bytes += key.len() + text(value).len();
    }
    if bytes > ANNOTATION_BYTES_MAX {
        faults.too_long(annotations, ANNOTATION_BYTES_MAX as i64);
    }
}

fn owners(owners: &Spot<'_, '_>, faults: &mut Faults) {
    let mut first: Option<String> = None;
    for owner in list(owners.value) {
        let missing = [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ];
        for (part, detail) in missing {
            if text(&owner[part]).is_empty() {
                faults.invalid_as(&owners.called("", part), "", detail);
            }
        }
        if owner["apiVersion"] == "v1" && owner["kind"] == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            faults.invalid_as(owners, owner.clone(), detail);
        }
        if owner["controller"] == true {
            let this = format!("{}/{}", text(&owner["kind"]), text(&owner["name"]));
            match &first {
                None => first = Some(this),
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    );
                    faults.invalid(owners, &detail);
                }
            }
        }
    }
}
