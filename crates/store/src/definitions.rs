//! CustomResourceDefinitions as objects: what creating, changing and deleting one leads to.
//!
//! The steps that controllers of a real server take one after the other (names accepted,
//! established, instances removed) are taken here in the same write, each with its own revision
//! and event, so that a watch sees the same sequence.

use api::time::Time;
use serde_json::{Value, json};

use crate::crd::{self, Crd};
use crate::draft::{Draft, Serving};
use crate::read::key_of;
use crate::registry::{ResourceId, Source};
use crate::status::{Outcome, Refused};
use crate::store::{DEFINITIONS, Store};
use crate::strategy::Part;
use crate::write::{Writing, text};

/// Holds a definition until its instances are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// A condition to be written.
struct Condition<'a> {
    kind: &'a str,
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

impl Store {
    /// The last word on an object about to be created.
    pub(crate) fn finish_create(
        &mut self,
        writing: &Writing<'_>,
        object: &mut Value,
        draft: &mut Draft,
    ) -> Outcome<()> {
        if writing.row.shelf.as_ref() != DEFINITIONS {
            return Ok(());
        }
        let storage = storage_version(object);
        let stored: Vec<Value> = Some(storage)
            .filter(|one| !one.is_null())
            .into_iter()
            .collect();
        object["status"] = json!({
            "acceptedNames": { "kind": "", "plural": "" },
            "conditions": null,
            "storedVersions": stored,
        });
        let crd = Crd::check_new(object, &self.wire)
            .map_err(|errors| writing.invalid(&text(&object["metadata"]["name"]), &errors))?;
        draft.warnings.extend(crd::odd_formats(object, None));
        draft.definition = Some(Box::new(crd));
        Ok(())
    }

    /// The last word on an object about to be changed.
    pub(crate) fn finish_update(
        &mut self,
        writing: &Writing<'_>,
        object: &mut Value,
        old: &Value,
        draft: &mut Draft,
    ) -> Outcome<()> {
        if writing.row.shelf.as_ref() != DEFINITIONS || writing.part != Part::Whole {
            return Ok(());
        }
        let storage = storage_version(object);
        if let Some(stored) = object["status"]["storedVersions"].as_array_mut()
            && !stored.contains(&storage)
        {
            stored.push(storage);
        }
        let crd = Crd::check_change(object, old, &self.wire)
            .map_err(|errors| writing.invalid(&text(&object["metadata"]["name"]), &errors))?;
        draft.warnings.extend(crd::odd_formats(object, Some(old)));
        if object["spec"] != old["spec"] {
            draft.definition = Some(Box::new(crd));
        }
        Ok(())
    }

    /// No instance is made of a definition that is going away.
    pub(crate) fn may_create(&self, writing: &Writing<'_>, name: &str) -> Outcome<()> {
        if writing.row.source == Source::Custom
            && self.definition(writing.id).is_some_and(|crd| crd.is_ending)
        {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Refused::forbidden(writing.about(name), why));
        }
        Ok(())
    }

    /// What follows of itself from a definition that was just put into the draft.
    pub(crate) fn follow_definition(
        &mut self,
        writing: &Writing<'_>,
        draft: &mut Draft,
        object: &Value,
    ) {
        if writing.row.shelf.as_ref() != DEFINITIONS {
            return;
        }
        let shown = draft.shown().cloned();
        let (id, now) = (writing.id, writing.now);
        let mut taken = self.accepted_names(id, object);
        let mut object = object.clone();
        let crd = draft.definition.take();
        self.settle(draft, id, &mut object, &taken, now);
        taken.push(object["status"]["acceptedNames"].clone());
        if crd::is_true(&object, "Established") {
            let crd = match crd {
                Some(crd) => Some(*crd),
                None => Crd::compile(&object, &self.wire).ok(),
            };
            if let Some(mut crd) = crd {
                crd.take_status(&object);
                draft.servings.push(Serving::Begin(Box::new(crd)));
            }
        }
        self.settle_others(draft, id, &object, now);
        draft.show_entry(shown);
    }

    /// Gives definitions of the same group that wait for names another chance.
    fn settle_others(&mut self, draft: &mut Draft, id: ResourceId, changed: &Value, now: Time) {
        let name = text(&changed["metadata"]["name"]);
        for (key, entry) in self.shelf(id).latest_range("") {
            let mut other = entry.value();
            if *key == *name
                || other["spec"]["group"] != changed["spec"]["group"]
                || crd::is_true(&other, "NamesAccepted")
            {
                continue;
            }
            let mut taken = self.accepted_names(id, &other);
            // The changed one is not stored yet: what it holds is in the draft.
            taken.retain(|names| names["plural"] != changed["spec"]["names"]["plural"]);
            if changed["metadata"]["name"] != Value::Null {
                taken.push(changed["status"]["acceptedNames"].clone());
            }
            let was_served = crd::is_true(&other, "Established");
            self.settle(draft, id, &mut other, &taken, now);
            let is_served = crd::is_true(&other, "Established");
            if (is_served || was_served)
                && let Ok(mut crd) = Crd::compile(&other, &self.wire)
            {
                crd.take_status(&other);
                draft.servings.push(Serving::Begin(Box::new(crd)));
            }
        }
    }

    /// Accepts the names of a definition as far as they are free, and establishes it.
    fn settle(
        &mut self,
        draft: &mut Draft,
        id: ResourceId,
        object: &mut Value,
        taken: &[Value],
        now: Time,
    ) {
        let key = key_of("", &text(&object["metadata"]["name"]));
        if let Some((status, reason, message)) = crd::approval(object) {
            let before = object.clone();
            let kind = "KubernetesAPIApprovalPolicyConformant";
            set(
                object,
                &Condition {
                    kind,
                    status,
                    reason,
                    message: &message,
                },
                now,
            );
            if *object != before {
                let change = (&before, object.clone());
                draft.put_by_server(self, id, &key, change, "status", now);
            }
        }
        if object["spec"]["names"] == object["status"]["acceptedNames"] {
            return;
        }
        let before = object.clone();
        let conflict = accept(object, taken);
        let (status, reason, message) = match &conflict {
            Some((reason, message)) => ("False", *reason, message.as_str()),
            None => ("True", "NoConflicts", "no conflicts found"),
        };
        set(
            object,
            &Condition {
                kind: "NamesAccepted",
                status,
                reason,
                message,
            },
            now,
        );
        if !crd::is_true(object, "Established") {
            let (reason, message) = match conflict {
                Some(_) => ("NotAccepted", "not all names are accepted"),
                None => ("Installing", "the initial names have been accepted"),
            };
            let kind = "Established";
            set(
                object,
                &Condition {
                    kind,
                    status: "False",
                    reason,
                    message,
                },
                now,
            );
        }
        if *object != before {
            draft.put_by_server(self, id, &key, (&before, object.clone()), "status", now);
        }
        if crd::is_true(object, "NamesAccepted") && !crd::is_true(object, "Established") {
            let condition = Condition {
                kind: "Established",
                status: "True",
                reason: "InitialNamesAccepted",
                message: "the initial names have been accepted",
            };
            let before = object.clone();
            set(object, &condition, now);
            draft.put_by_server(self, id, &key, (&before, object.clone()), "status", now);
        }
    }

    /// The names that the other definitions of the same group hold.
    fn accepted_names(&self, id: ResourceId, of: &Value) -> Vec<Value> {
        let name = text(&of["metadata"]["name"]);
        self.shelf(id)
            .latest_range("")
            .into_iter()
            .filter(|(key, _)| **key != *name)
            .map(|(_, entry)| entry.value())
            .filter(|other| other["spec"]["group"] == of["spec"]["group"])
            .map(|mut other| other["status"]["acceptedNames"].take())
            .collect()
    }

    /// Begins to remove a definition: first its instances, then itself.
    pub(crate) fn end_definition(
        &mut self,
        writing: &Writing<'_>,
        key: &str,
        mut object: Value,
        draft: &mut Draft,
    ) {
        let (id, now) = (writing.id, writing.now);
        object["metadata"]["deletionTimestamp"] = json!(now.seconds_text());
        let mut finalizers = list(&object["metadata"]["finalizers"]).to_vec();
        if !finalizers.iter().any(|one| one == CLEANUP) {
            finalizers.push(json!(CLEANUP));
        }
        object["metadata"]["finalizers"] = Value::Array(finalizers);
        let terminating = |reason: &'static str, message: &'static str| Condition {
            kind: "Terminating",
            status: "True",
            reason,
            message,
        };
        let pending = terminating(
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        );
        set(&mut object, &pending, now);
        draft.put(self, id, key, object.clone());
        let shown = draft.shown().cloned();
        let progress = terminating(
            "InstanceDeletionInProgress",
            "CustomResource deletion is in progress",
        );
        let before = object.clone();
        set(&mut object, &progress, now);
        draft.put_by_server(self, id, key, (&before, object.clone()), "status", now);
        let is_established = crd::is_true(&object, "Established");
        let left = if is_established {
            self.end_instances(draft, &object, now)
        } else {
            0
        };
        if left == 0 {
            self.release_definition(draft, id, key, object, now);
        } else if let Ok(mut crd) = Crd::compile(&object, &self.wire) {
            crd.take_status(&object);
            draft.servings.push(Serving::Begin(Box::new(crd)));
        }
        draft.show_entry(shown);
    }

    /// Removes the instances of a definition; says how many are still held by finalizers.
    fn end_instances(&mut self, draft: &mut Draft, object: &Value, now: Time) -> usize {
        let group = text(&object["spec"]["group"]);
        let plural = text(&object["spec"]["names"]["plural"]);
        let Some(id) = self.registry.find(&group, &plural) else {
            return 0;
        };
        let mut left = 0;
        for (key, entry) in self.shelf(id).latest_range("") {
            let mut instance = entry.value();
            if list(&instance["metadata"]["finalizers"]).is_empty() {
                draft.remove(self, id, &key, instance);
                continue;
            }
            left += 1;
            if instance["metadata"]["deletionTimestamp"].is_null() {
                crate::delete::mark_deleted(&mut instance, 0, now);
                draft.put(self, id, &key, instance);
            }
        }
        left
    }

    /// Ends a definition whose instances are gone, unless others hold it.
    fn release_definition(
        &mut self,
        draft: &mut Draft,
        id: ResourceId,
        key: &str,
        mut object: Value,
        now: Time,
    ) {
        let last = object.clone();
        let (reason, message) = match crd::is_true(&object, "Established") {
            true => ("InstanceDeletionCompleted", "removed all instances"),
            false => ("NeverEstablished", "resource was never established"),
        };
        let kind = "Terminating";
        set(
            &mut object,
            &Condition {
                kind,
                status: "False",
                reason,
                message,
            },
            now,
        );
        let mut finalizers = list(&object["metadata"]["finalizers"]).to_vec();
        finalizers.retain(|one| one != CLEANUP);
        if !finalizers.is_empty() {
            object["metadata"]["finalizers"] = Value::Array(finalizers);
            draft.put(self, id, key, object);
            return;
        }
        let group = text(&object["spec"]["group"]);
        let plural = text(&object["spec"]["names"]["plural"]);
        // The event shows the state before: removing the last finalizer is the removal.
        draft.remove(self, id, key, last);
        draft.servings.push(Serving::End { group, plural });
        let gone = json!({
            "metadata": { "name": object["metadata"]["name"] },
            "spec": object["spec"],
            "status": { "acceptedNames": {} },
        });
        self.settle_others(draft, id, &gone, now);
    }

    /// Where a draft takes away the last instance of a definition that is going away, that goes
    /// with it.
    pub(crate) fn release_definitions(&mut self, draft: &mut Draft, now: Time) {
        let Some(definitions) = self
            .registry
            .find("apiextensions.k8s.io", "customresourcedefinitions")
        else {
            return;
        };
        for (id, removed) in draft.removed() {
            let Some(crd) = self.definition(id).filter(|crd| crd.is_ending) else {
                continue;
            };
            let key = crd.name();
            let left = self.shelf(id).latest_range("");
            if left.iter().any(|(key, _)| !removed.contains(key)) {
                continue;
            }
            let found = self.shelf(definitions).latest(&key).cloned();
            if let Some(entry) = found
                && !draft.touches(definitions, &key)
            {
                let shown = draft.shown().cloned();
                self.release_definition(draft, definitions, &key, entry.value(), now);
                draft.show_entry(shown);
            }
        }
    }
}

/// Takes the free names of a spec into the status; tells the last conflict.
fn accept(object: &mut Value, taken: &[Value]) -> Option<(&'static str, String)> {
    let wanted = object["spec"]["names"].clone();
    let before = object["status"]["acceptedNames"].clone();
    let mut after = before.clone();
    let mut conflict = None;
    let is_taken = |name: &str, keys: &[&str]| {
        !name.is_empty()
            && taken.iter().any(|names| {
                keys.iter().any(|key| names[*key] == name)
                    || (keys.contains(&"plural")
                        && list(&names["shortNames"]).iter().any(|one| one == name))
            })
    };
    let resources = ["plural", "singular"];
    let kinds = ["kind", "listKind"];
    let one = |key: &str, keys: &[&str], reason: &'static str, after: &mut Value| {
        let name = text(&wanted[key]);
        if wanted[key] != before[key] && is_taken(&name, keys) {
            return Some((reason, format!("{name:?} is already in use")));
        }
        if !wanted[key].is_null() {
            after[key] = wanted[key].clone();
        }
        None
    };
    conflict = one("plural", &resources, "PluralConflict", &mut after).or(conflict);
    conflict = one("singular", &resources, "SingularConflict", &mut after).or(conflict);
    let mut short = None;
    if wanted["shortNames"] != before["shortNames"] {
        let held = list(&before["shortNames"]);
        let clashes: Vec<String> = list(&wanted["shortNames"])
            .iter()
            .filter(|name| !held.contains(name) && is_taken(&text(name), &resources))
            .map(|name| format!("{:?} is already in use", text(name)))
            .collect();
        match &clashes[..] {
            [] => put(&mut after, "shortNames", &wanted["shortNames"]),
            [only] => short = Some(only.clone()),
            several => short = Some(format!("[{}]", several.join(", "))),
        }
    }
    if let Some(message) = short {
        conflict = Some(("ShortNamesConflict", message));
    }
    conflict = one("kind", &kinds, "KindConflict", &mut after).or(conflict);
    conflict = one("listKind", &kinds, "ListKindConflict", &mut after).or(conflict);
    put(&mut after, "categories", &wanted["categories"]);
    object["status"]["acceptedNames"] = after;
    conflict
}

fn put(object: &mut Value, key: &str, value: &Value) {
    let Some(map) = object.as_object_mut() else {
        return;
    };
    if value.is_null() {
        map.remove(key);
    } else {
        map.insert(key.to_owned(), value.clone());
    }
}

/// Writes a condition; its time moves when its status does.
fn set(object: &mut Value, condition: &Condition<'_>, now: Time) {
    let status = &mut object["status"];
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(all) = status["conditions"].as_array_mut() else {
        return;
    };
    let mut written = json!({
        "type": condition.kind,
        "status": condition.status,
        "lastTransitionTime": now.seconds_text(),
        "reason": condition.reason,
        "message": condition.message,
    });
    match all.iter_mut().find(|one| one["type"] == condition.kind) {
        Some(known) => {
            if known["status"] == written["status"] {
                written["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = written;
        }
        None => all.push(written),
    }
}

fn storage_version(object: &Value) -> Value {
    list(&object["spec"]["versions"])
        .iter()
        .find(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Writes the status of a definition that the program brings: its names are its own.
pub(crate) fn establish(object: &mut Value, now: Time) {
    let names = object["spec"]["names"].clone();
    let storage = storage_version(object);
    let status = &mut object["status"];
    status["acceptedNames"] = names;
    let mut stored = list(&status["storedVersions"]).to_vec();
    if !stored.contains(&storage) {
        stored.push(storage);
    }
    status["storedVersions"] = Value::Array(stored);
    if let Some((status, reason, message)) = crd::approval(object) {
        let approved = Condition {
            kind: "KubernetesAPIApprovalPolicyConformant",
            status,
            reason,
            message: &message,
        };
        set(object, &approved, now);
    }
    let accepted = Condition {
        kind: "NamesAccepted",
        status: "True",
        reason: "NoConflicts",
        message: "no conflicts found",
    };
    set(object, &accepted, now);
    let established = Condition {
        kind: "Established",
        status: "True",
        reason: "InitialNamesAccepted",
        message: "the initial names have been accepted",
    };
    set(object, &established, now);
}
