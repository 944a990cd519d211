//! Deletions: at once, gracefully, or held by finalizers.

use std::sync::Arc;

use api::admission::Operation;
use api::core::system_priority;
use api::meta::{FOREGROUND_DELETION, ORPHAN_DEPENDANTS};
use api::time::Time;
use serde_json::{Value, json};

use crate::draft::Draft;
use crate::entry::Entry;
use crate::field::FieldError;
use crate::hook::{Passing, Round};
use crate::path::Effect;
use crate::read::{Reading, key_of};
use crate::registry::{Resource, Source};
use crate::request::{Begin, Response};
use crate::status::{About, Outcome, Refused, success};
use crate::store::{Admit, DEFINITIONS, Store};
use crate::strategy;
use crate::subresource::{Granted, set_condition};
use crate::write::{Writing, text};

/// Namespaces that may not be deleted.
const IMMORTAL: &[&str] = &["default", "kube-public", "kube-system"];
/// The shelf of Jobs, whose Pods stay unless somebody says otherwise.
const JOBS: &str = "batch/jobs";
const CHILDREN_STAY: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";
/// Resources that answer a deletion with the object, by `group/plural`; others give a Status.
const RETURNS_OBJECT: &[&str] = &[
    "/persistentvolumeclaims",
    "/persistentvolumes",
    "/pods",
    "/podtemplates",
    "/resourcequotas",
    "/serviceaccounts",
    "/services",
    "resource.k8s.io/deviceclasses",
    "resource.k8s.io/resourceclaims",
    "resource.k8s.io/resourceclaimtemplates",
    "resource.k8s.io/resourceslices",
    "storage.k8s.io/csidrivers",
    "storage.k8s.io/csinodes",
    "storage.k8s.io/storageclasses",
    "storage.k8s.io/volumeattachments",
    "storage.k8s.io/volumeattributesclasses",
];

/// `metav1.DeleteOptions`.
#[derive(Clone, Debug)]
pub(crate) struct DeleteOptions {
    pub(crate) effect: Effect,
    pub(crate) grace_seconds: Option<i64>,
    uid: Option<String>,
    version: Option<String>,
    propagation: Option<Propagation>,
}

/// Who wants an object gone.
pub(crate) enum Deletion {
    /// A client.
    Plain,
    /// The eviction of a pod, with what a budget gives for it.
    Evicted(Option<Granted>),
}

fn evicted() -> Value {
    json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Propagation {
    Background,
    Foreground,
    Orphan,
}

impl Store {
    pub(crate) fn delete_options(&self, writing: &Writing<'_>) -> Outcome<DeleteOptions> {
        let body = &writing.request.body;
        let options = if body.iter().all(u8::is_ascii_whitespace) {
            json!({})
        } else {
            self.decode(writing)?.value
        };
        let query = writing.query;
        let mut effect = writing.options.effect;
        let mut errors = Vec::new();
        for value in options["dryRun"].as_array().into_iter().flatten() {
            match value.as_str() {
                Some("All") => effect = Effect::DryRun,
                _ => errors.push(unknown_dry_run(&options["dryRun"])),
            }
        }
        let grace_seconds = match options["gracePeriodSeconds"].as_i64() {
            Some(grace) => Some(grace),
            None => query.number("gracePeriodSeconds")?,
        };
        let policy = match options["propagationPolicy"].as_str() {
            Some(policy) => policy,
            None => query.text("propagationPolicy"),
        };
        let orphans = match options["orphanDependents"].as_bool() {
            None if query.text("orphanDependents").is_empty() => None,
            None => Some(query.is_on("orphanDependents")),
            some => some,
        };
        if !policy.is_empty() && orphans.is_some() {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid("propagationPolicy", policy, detail));
        }
        let propagation = match policy {
            "" => match orphans {
                Some(true) => Some(Propagation::Orphan),
                Some(false) => Some(Propagation::Background),
                None => None,
            },
            "Background" => Some(Propagation::Background),
            "Foreground" => Some(Propagation::Foreground),
            "Orphan" => Some(Propagation::Orphan),
            other => {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(
                    "propagationPolicy",
                    other,
                    &known,
                ));
                None
            }
        };
        if !errors.is_empty() {
            return Err(Refused::invalid(
                "meta.k8s.io",
                "DeleteOptions",
                "",
                &errors,
            ));
        }
        let wanted = |key: &str| options["preconditions"][key].as_str().map(str::to_owned);
        Ok(DeleteOptions {
            effect,
            grace_seconds,
            uid: wanted("uid"),
            version: wanted("resourceVersion"),
            propagation,
        })
    }

    pub(crate) fn delete(
        &mut self,
        writing: &Writing<'_>,
        admit: &mut Admit<'_>,
    ) -> Outcome<Begin> {
        self.delete_for(writing, Deletion::Plain, admit)
    }

    /// Deletes together with what else an eviction comes to.
    pub(crate) fn delete_for(
        &mut self,
        writing: &Writing<'_>,
        deletion: Deletion,
        admit: &mut Admit<'_>,
    ) -> Outcome<Begin> {
        let options = self.delete_options(writing)?;
        let is_said = options.propagation.is_none() && writing.row.shelf.as_ref() == JOBS;
        let mut old = self.current(writing).map_err(|refused| match is_said {
            true => refused.warn(CHILDREN_STAY.to_owned()),
            false => refused,
        })?;
        let name = writing.target.name.clone();
        check_preconditions(&writing.row, &name, &options, &old)?;
        if &*writing.row.shelf == "/namespaces" && IMMORTAL.contains(&&*name) {
            return Err(Refused::forbidden(
                writing.about(&name),
                "this namespace may not be deleted",
            ));
        }
        let is_priority = &*writing.row.shelf == "scheduling.k8s.io/priorityclasses";
        if is_priority && system_priority(&name).is_some() {
            let why = "this is a system priority class and cannot be deleted";
            return Err(Refused::forbidden(writing.about(&name), why));
        }
        let mut draft = Draft::with(options.effect);
        draft.at = Some(writing.now);
        let old_object = old.value();
        let mut unused = old_object.clone();
        self.review(
            writing,
            Operation::Delete,
            &mut unused,
            Some(&old_object),
            &mut draft,
            admit,
        )?;
        self.ask_deletion(writing, &name, &old, &mut draft)?;
        let key = key_of(&writing.target.namespace, &name);
        if matches!(deletion, Deletion::Evicted(_)) && options.effect == Effect::Real {
            // Whoever looks at the pod while it ends sees why.
            let mut told = old_object.clone();
            set_condition(&mut told, evicted(), writing.now);
            if told != old_object {
                draft.put(self, writing.id, &key, told);
            }
            old = draft.shown().cloned().unwrap_or(old);
        }
        let fate = self.let_go(writing, &key, &old, &options, &mut draft)?;
        if let Deletion::Evicted(Some(granted)) = deletion {
            draft.put(self, granted.id, &granted.key, granted.budget);
        }
        if fate == Fate::Gone && !RETURNS_OBJECT.contains(&&*writing.row.shelf) {
            let status = success(writing.about(&name), old.uid());
            return Ok(self.commit(draft, Response::json(200, &status)));
        }
        Ok(self.commit_object(writing, draft, 200))
    }

    pub(crate) fn delete_collection(
        &mut self,
        writing: &Writing<'_>,
        admit: &mut Admit<'_>,
    ) -> Outcome<Begin> {
        let options = self.delete_options(writing)?;
        let reading = Reading {
            id: writing.id,
            row: &writing.row,
            target: writing.target,
            query: writing.query,
            view: writing.view.clone(),
            talk: writing.talk,
            now: writing.now,
        };
        let selection = self.selection(&reading)?;
        let mut draft = Draft::with(options.effect);
        draft.at = Some(writing.now);
        let mut items = Vec::new();
        for (key, entry) in self.shelf(writing.id).latest_range(&selection.prefix()) {
            if !selection.matches(&key, &entry) {
                continue;
            }
            let old = entry.value();
            let mut unused = old.clone();
            self.review(
                writing,
                Operation::Delete,
                &mut unused,
                Some(&old),
                &mut draft,
                admit,
            )?;
            let name = text(&old["metadata"]["name"]);
            self.ask_deletion(writing, &name, &entry, &mut draft)?;
            self.let_go(writing, &key, &entry, &options, &mut draft)?;
            let mut item = old;
            entry.name_owners(&mut item);
            if let Some(map) = item.as_object_mut()
                && writing.row.source == Source::BuiltIn
            {
                map.remove("apiVersion");
                map.remove("kind");
            }
            items.push(item);
        }
        let list = json!({
            "kind": writing.row.list_kind,
            "apiVersion": writing.row.api_version(&writing.target.version),
            "metadata": { "resourceVersion": self.revision.to_string() },
            "items": items,
        });
        let mut list = list;
        if writing.row.source == Source::Custom {
            list["metadata"]["continue"] = json!("");
        }
        Ok(self.commit(draft, Response::json(200, &list)))
    }

    /// Asks the webhooks about a deletion.
    fn ask_deletion(
        &self,
        writing: &Writing<'_>,
        name: &str,
        old: &Arc<Entry>,
        draft: &mut Draft,
    ) -> Outcome<()> {
        if self.hooks.is_empty() {
            return Ok(());
        }
        draft.owners.1 = old.owners.clone();
        let old = self.old_object(writing, old)?;
        let mut unused = old.clone();
        let mut round = Round::default();
        self.mutate(
            writing,
            "DELETE",
            &mut unused,
            Some(&old),
            draft,
            &mut round,
        )?;
        let passing = Passing {
            operation: "DELETE",
            name,
            object: None,
            old: Some(&old),
        };
        self.judge(writing, &passing, draft)
    }

    /// Deletes one object, or notes that it is to be deleted.
    fn let_go(
        &mut self,
        writing: &Writing<'_>,
        key: &str,
        old: &Arc<Entry>,
        options: &DeleteOptions,
        draft: &mut Draft,
    ) -> Outcome<Fate> {
        let row = &writing.row;
        let mut object = old.value();
        let was_deleted = !object["metadata"]["deletionTimestamp"].is_null();
        if row.shelf.as_ref() == DEFINITIONS && !was_deleted {
            self.end_definition(writing, key, object, draft);
            return Ok(Fate::Waits);
        }
        let grace = grace_of(row, &object, options);
        if row.shelf.as_ref() == "/namespaces" && was_deleted && holds_content(&object) {
            draft.unchanged(old.clone());
            return Ok(Fate::Waits);
        }
        propagate(row, &mut object, options, draft);
        let held = object["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|list| !list.is_empty())
            || (row.shelf.as_ref() == "/namespaces" && holds_content(&object));
        if grace == 0 && !held {
            self.gather_roles(writing.id, key, None, draft);
            if row.shelf.as_ref() == "/pods" {
                // What is deleted with grace is told that it goes, be there no time left.
                mark_deleted(&mut object, grace, writing.now);
                if object != old.value() {
                    draft.put(self, writing.id, key, object.clone());
                }
            }
            draft.remove(self, writing.id, key, object);
            return Ok(Fate::Gone);
        }
        mark_deleted(&mut object, grace, writing.now);
        if row.shelf.as_ref() == "/namespaces" {
            object["status"]["phase"] = json!("Terminating");
            if let Some(meta) = object["metadata"].as_object_mut() {
                meta.remove("deletionGracePeriodSeconds");
            }
        }
        if object == old.value() {
            draft.unchanged(old.clone());
        } else {
            draft.put(self, writing.id, key, object);
        }
        Ok(Fate::Waits)
    }
}

/// `dryRun` can only be `All`; what was given is shown as a whole.
fn unknown_dry_run(given: &Value) -> FieldError {
    FieldError::not_supported("dryRun", given.clone(), &["All"])
}

/// What a deletion came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Gone,
    Waits,
}

fn holds_content(namespace: &Value) -> bool {
    namespace["spec"]["finalizers"]
        .as_array()
        .is_some_and(|list| !list.is_empty())
}

/// Seconds that the object is given. Only pods on a node get any: their kubelet ends the
/// containers and then deletes with 0.
fn grace_of(row: &Resource, object: &Value, options: &DeleteOptions) -> i64 {
    if row.shelf.as_ref() != "/pods" || text(&object["spec"]["nodeName"]).is_empty() {
        return 0;
    }
    if matches!(
        object["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed")
    ) {
        return 0;
    }
    let grace = options
        .grace_seconds
        .or_else(|| object["spec"]["terminationGracePeriodSeconds"].as_i64())
        .unwrap_or(30);
    // Upstream reads a negative grace as one second.
    if grace < 0 { 1 } else { grace }
}

pub(crate) fn mark_deleted(object: &mut Value, grace: i64, now: Time) {
    let meta = &mut object["metadata"];
    let ends = now.plus_ms(grace.saturating_mul(1_000));
    if !meta["deletionTimestamp"].is_null() {
        // A second deletion can only shorten the grace.
        let left = meta["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
        if grace < left {
            meta["deletionTimestamp"] = json!(ends.seconds_text());
            meta["deletionGracePeriodSeconds"] = json!(grace);
        }
        return;
    }
    meta["deletionTimestamp"] = json!(ends.seconds_text());
    meta["deletionGracePeriodSeconds"] = json!(grace);
    strategy::add_generation(object);
}

/// Writes the wanted fate of dependants into the finalizers, where the collector reads it.
fn propagate(row: &Resource, object: &mut Value, options: &DeleteOptions, draft: &mut Draft) {
    let propagation = match options.propagation {
        Some(propagation) => propagation,
        None if row.shelf.as_ref() == JOBS => {
            draft.warnings.push(CHILDREN_STAY.to_owned());
            Propagation::Orphan
        }
        None => return,
    };
    let wanted = match propagation {
        Propagation::Background => None,
        Propagation::Foreground => Some(FOREGROUND_DELETION),
        Propagation::Orphan => Some(ORPHAN_DEPENDANTS),
    };
    let mut finalizers: Vec<Value> = object["metadata"]["finalizers"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    finalizers.retain(|one| one != FOREGROUND_DELETION && one != ORPHAN_DEPENDANTS);
    finalizers.extend(wanted.map(|one| json!(one)));
    if finalizers.is_empty() {
        if let Some(meta) = object["metadata"].as_object_mut() {
            meta.remove("finalizers");
        }
    } else {
        object["metadata"]["finalizers"] = Value::Array(finalizers);
    }
}

fn check_preconditions(
    row: &Resource,
    name: &str,
    options: &DeleteOptions,
    old: &Entry,
) -> Outcome<()> {
    // Upstream names the kind here, not the resource.
    let about = About {
        group: &row.group,
        plural: &row.kind,
        name,
    };
    let stored = old.revision.to_string();
    for (what, wanted, found, since) in [
        ("UID", &options.uid, old.uid(), "deleted and then recreated"),
        ("ResourceVersion", &options.version, &*stored, "modified"),
    ] {
        let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != found) else {
            continue;
        };
        // Namespaces are looked at in a place of their own.
        let (about, why) = if row.shelf.as_ref() == "/namespaces" {
            let about = About {
                plural: &row.plural,
                ..about
            };
            let why = format!(
                "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
            );
            (about, why)
        } else {
            let why = format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). The object might have been {since}"
            );
            (about, why)
        };
        return Err(Refused::conflict(about, &why));
    }
    Ok(())
}
