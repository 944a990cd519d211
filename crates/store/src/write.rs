//! Creates, updates and patches: one way through for every kind.

use std::cell::Cell;
use std::sync::Arc;

use api::admission::{Facts, Operation, Review, Verdict};
use api::kind::Kind;
use api::time::Time;
use serde_json::{Value, json};

use crate::ahead::Ahead;
use crate::draft::Draft;
use crate::entry::Entry;
use crate::field::FieldError;
use crate::hook::{Passing, Round};
use crate::options;
use crate::owners::Owners;
use crate::owning;
use crate::path::{Effect, Query, Target, WriteOptions};
use crate::read::key_of;
use crate::registry::{Resource, ResourceId, Source};
use crate::request::{Begin, Request};
use crate::status::{About, Outcome, Refused};
use crate::store::{Admit, Store};
use crate::strategy::{self, Part};
use crate::talk::Talk;
use crate::view::View;

/// What a new object has from the server alone.
const NOT_THE_CLIENTS: &[&str] = &[
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "resourceVersion",
    "selfLink",
];
/// How often a generated name is drawn before giving up.
const NAME_DRAWS_MAX: u32 = 8;
/// Letters of generated names: no vowels, no look-alikes.
const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Longest prefix of a generated name that is kept.
const NAME_PREFIX_MAX: usize = 58;

/// One write, understood.
pub(crate) struct Writing<'a> {
    pub(crate) request: &'a Request,
    pub(crate) target: &'a Target,
    pub(crate) query: &'a Query,
    pub(crate) options: WriteOptions,
    pub(crate) id: ResourceId,
    pub(crate) row: Arc<Resource>,
    pub(crate) view: View,
    pub(crate) part: Part,
    pub(crate) talk: &'a Talk,
    /// The body, if it was read ahead: for whoever reads it first.
    pub(crate) ahead: Cell<Option<Ahead>>,
    pub(crate) now: Time,
}

/// What a write changes: as it is stored, and as the request sees it.
#[derive(Clone, Copy)]
pub(crate) struct Before<'a> {
    pub(crate) entry: &'a Arc<Entry>,
    pub(crate) object: &'a Value,
}

impl Writing<'_> {
    pub(crate) fn about<'b>(&'b self, name: &'b str) -> About<'b> {
        About {
            group: &self.row.group,
            plural: &self.row.plural,
            name,
        }
    }

    /// Whether the body is the resource's own kind, not one of a subresource.
    pub(crate) fn is_about_object(&self) -> bool {
        !matches!(
            &*self.target.subresource,
            "attach"
                | "binding"
                | "eviction"
                | "exec"
                | "portforward"
                | "proxy"
                | "scale"
                | "token"
        )
    }

    pub(crate) fn invalid(&self, name: &str, errors: &[FieldError]) -> Refused {
        // Events of both groups are one kind to the real server.
        Refused::invalid(self.row.shelf_group(), &self.row.kind, name, errors)
    }
}

impl Store {
    pub(crate) fn create(
        &mut self,
        writing: &Writing<'_>,
        admit: &mut Admit<'_>,
    ) -> Outcome<Begin> {
        let mut draft = Draft::new(writing);
        let object = self.body(writing, &mut draft)?;
        let said = draft.warnings.clone();
        let done = self.create_read(writing, object, draft, admit);
        done.map_err(|refused| refused.after(said))
    }

    /// Creates an object whose body has been read.
    fn create_read(
        &mut self,
        writing: &Writing<'_>,
        mut object: Value,
        mut draft: Draft,
        admit: &mut Admit<'_>,
    ) -> Outcome<Begin> {
        let meta = metadata(&mut object);
        let version = meta.get("resourceVersion").and_then(Value::as_str);
        if !matches!(version, None | Some("")) {
            // Upstream takes this for a failure of its own.
            let why = "resourceVersion should not be set on objects to be created";
            return Err(Refused::plain(why.to_owned()));
        }
        place(writing, meta)?;
        for key in NOT_THE_CLIENTS {
            meta.remove(*key);
        }
        name_owners_once(&mut object, &mut draft);
        let given = owning::take_given(&mut object);
        let owners = self.own_created(writing, given, &object)?;
        self.store_new(writing, object, owners, draft, admit)
    }

    /// Stores an object that was not there.
    pub(crate) fn store_new(
        &mut self,
        writing: &Writing<'_>,
        mut object: Value,
        owners: Owners,
        mut draft: Draft,
        admit: &mut Admit<'_>,
    ) -> Outcome<Begin> {
        let target = writing.target;
        let meta = metadata(&mut object);
        for key in NOT_THE_CLIENTS {
            meta.remove(*key);
        }
        let prefix = text(&object["metadata"]["generateName"]);
        let generates = text(&object["metadata"]["name"]).is_empty() && !prefix.is_empty();
        if generates {
            let name = self.draw_name(writing, &prefix)?;
            object["metadata"]["name"] = json!(name);
        }
        strategy::prepare_create(&writing.row, &mut object);
        self.may_create(writing, &text(&object["metadata"]["name"]))?;
        self.enter_namespace(writing, &object)?;
        draft.owners.0 = owners.clone();
        self.admit_object(
            writing,
            Operation::Create,
            &mut object,
            None,
            &mut draft,
            admit,
        )?;
        self.check_escalation(writing, &object, None)?;
        let meta = metadata(&mut object);
        meta.insert("uid".into(), json!(self.draw_uid()));
        meta.insert(
            "creationTimestamp".into(),
            json!(writing.now.seconds_text()),
        );
        if strategy::counts_generations(&writing.row) {
            meta.insert("generation".into(), json!(1));
        }
        strategy::generate(&writing.row, &mut object);
        self.check(writing, &object, None, &mut draft)?;
        strategy::complete(&writing.row, &mut object, None);
        self.allocate(writing, &mut object, None)?;
        let name = text(&object["metadata"]["name"]);
        let key = key_of(&target.namespace, &name);
        self.finish_create(writing, &mut object, &mut draft)?;
        self.within_limits(writing, &object, true)?;
        self.secure(writing, &object, None, &mut draft)?;
        let passing = Passing {
            operation: "CREATE",
            name: if generates { "" } else { &name },
            object: Some(&object),
            old: None,
        };
        self.judge(writing, &passing, &mut draft)?;
        let charges = self.charge(writing, &object, None)?;
        if self.shelf(writing.id).latest(&key).is_some() {
            return Err(Refused::already_exists(writing.about(&name)));
        }
        self.sweep_events(&mut draft, writing.id, writing.now);
        self.gather_roles(writing.id, &key, Some(&mut object), &mut draft);
        let mut apart = self.stored_apart(writing.id, &writing.row, &object, writing.talk)?;
        self.put_charges(charges, &mut draft);
        let stored = apart.as_mut().unwrap_or(&mut object);
        draft.put_owned(self, writing.id, &key, stored, owners);
        self.follow_definition(writing, &mut draft, &object);
        draft.show(writing, object);
        Ok(self.commit_object(writing, draft, 201))
    }

    pub(crate) fn update(
        &mut self,
        writing: &Writing<'_>,
        admit: &mut Admit<'_>,
    ) -> Outcome<Begin> {
        let mut draft = Draft::new(writing);
        let object = self.body(writing, &mut draft)?;
        let said = draft.warnings.clone();
        let done = self.update_read(writing, object, draft, admit);
        done.map_err(|refused| refused.after(said))
    }

    /// Replaces an object by a body that has been read.
    fn update_read(
        &mut self,
        writing: &Writing<'_>,
        mut object: Value,
        draft: Draft,
        admit: &mut Admit<'_>,
    ) -> Outcome<Begin> {
        self.same_place(writing, &mut object)?;
        let old = match self.current(writing) {
            Err(_) if writing.part == Part::Whole && strategy::is_made_by_put(&writing.row) => {
                let given = owning::take_given(&mut object);
                let owners = self.own_created(writing, given, &object)?;
                return self.store_new(writing, object, owners, draft, admit);
            }
            old => old?,
        };
        let before = self.old_object(writing, &old)?;
        let before = Before {
            entry: &old,
            object: &before,
        };
        self.replace(writing, object, before, draft, admit)
    }

    /// A changed object has the name and the namespace of the URL.
    pub(crate) fn same_place(&self, writing: &Writing<'_>, object: &mut Value) -> Outcome<()> {
        let wanted = &writing.target.name;
        let name = text(&object["metadata"]["name"]);
        if name.is_empty() {
            return Err(Refused::bad_request(format!(
                "the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
            )));
        }
        if name != *wanted {
            return Err(Refused::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({wanted})"
            )));
        }
        place(writing, metadata(object))
    }

    /// The object that a write is about.
    pub(crate) fn current(&self, writing: &Writing<'_>) -> Outcome<Arc<Entry>> {
        let target = writing.target;
        self.shelf(writing.id)
            .latest(&key_of(&target.namespace, &target.name))
            .cloned()
            .ok_or_else(|| Refused::not_found(writing.about(&target.name)))
    }

    /// Writes `object` over what was there.
    pub(crate) fn replace(
        &mut self,
        writing: &Writing<'_>,
        mut object: Value,
        before: Before<'_>,
        draft: Draft,
        admit: &mut Admit<'_>,
    ) -> Outcome<Begin> {
        strategy::tell_lists(&writing.row, &mut object);
        let given = owning::take_given(&mut object);
        let owners = self.own_updated(writing, given, before, &object)?;
        self.replace_owned(writing, (object, owners), before, draft, admit)
    }

    /// Writes an object whose owners are known over what was there.
    pub(crate) fn replace_owned(
        &mut self,
        writing: &Writing<'_>,
        (mut object, owners): (Value, Owners),
        before: Before<'_>,
        mut draft: Draft,
        admit: &mut Admit<'_>,
    ) -> Outcome<Begin> {
        let name = &writing.target.name;
        let (old, old_object) = (before.entry, before.object);
        self.same_object(writing, &object, old_object)?;
        strategy::prepare_update(&writing.row, writing.part, &mut object, old_object);
        if writing.part == Part::Status {
            strategy::date_phase(&writing.row, &mut object, old_object, writing.now);
            if &*writing.row.shelf == strategy::CERTIFICATES {
                let part = &writing.target.subresource;
                strategy::answer(part, &mut object, old_object, writing.now);
            }
        }
        draft.owners = (owners.clone(), old.owners.clone());
        self.admit_object(
            writing,
            Operation::Update,
            &mut object,
            Some(old_object),
            &mut draft,
            admit,
        )?;
        if writing.part == Part::Whole {
            self.allocate(writing, &mut object, Some(old_object))?;
        }
        self.check_escalation(writing, &object, Some(old_object))?;
        self.check(writing, &object, Some(old_object), &mut draft)?;
        strategy::complete(&writing.row, &mut object, Some(old_object));
        self.finish_update(writing, &mut object, old_object, &mut draft)?;
        let is_whole = writing.part == Part::Whole;
        if is_whole {
            self.may_grow(writing, &object, old_object)?;
            self.within_limits(writing, &object, false)?;
        }
        if is_whole || writing.target.subresource == "ephemeralcontainers" {
            self.secure(writing, &object, Some(old_object), &mut draft)?;
        }
        if writing.target.subresource != "scale" {
            let passing = Passing {
                operation: "UPDATE",
                name,
                object: Some(&object),
                old: Some(old_object),
            };
            self.judge(writing, &passing, &mut draft)?;
        }
        let key = key_of(&writing.target.namespace, name);
        let charges = match is_whole {
            true => self.charge(writing, &object, Some(old_object))?,
            false => Vec::new(),
        };
        let is_unchanged = object == *old_object;
        if !is_unchanged {
            strategy::count_generation(&writing.row, &mut object, old_object);
        }
        let is_released = strategy::is_released(&writing.row, &object, old_object);
        let mut apart = self.stored_apart(writing.id, &writing.row, &object, writing.talk)?;
        let stored = apart.as_mut().unwrap_or(&mut object);
        // A time alone is no change.
        let is_same = is_unchanged && owners.is_same_but_times(&old.owners);
        if is_same && (writing.row.source == Source::BuiltIn || *stored == old.value()) {
            draft.unchanged(old.clone());
        } else if is_released {
            self.gather_roles(writing.id, &key, None, &mut draft);
            draft.release(self, writing.id, &key, before.entry, (stored, owners));
            draft.show(writing, object);
        } else {
            self.gather_roles(writing.id, &key, Some(stored), &mut draft);
            self.put_charges(charges, &mut draft);
            draft.put_owned(self, writing.id, &key, stored, owners);
            self.follow_definition(writing, &mut draft, &object);
            draft.show(writing, object);
        }
        Ok(self.commit_object(writing, draft, 200))
    }

    /// A stored object as the request that changes it sees it.
    pub(crate) fn old_object(&self, writing: &Writing<'_>, old: &Arc<Entry>) -> Outcome<Value> {
        if writing.row.source == Source::BuiltIn {
            return Ok(old.value());
        }
        let version = &writing.target.version;
        self.ready_to_show(writing.id, version, std::iter::once(old), writing.talk)?;
        Ok(self.shown_value(writing.id, version, old, writing.talk))
    }

    /// The half of admission that may change an object: the plane's own rules, then webhooks;
    /// both once more where a webhook changed something.
    fn admit_object(
        &mut self,
        writing: &Writing<'_>,
        operation: Operation,
        object: &mut Value,
        old: Option<&Value>,
        draft: &mut Draft,
        admit: &mut Admit<'_>,
    ) -> Outcome<()> {
        self.admit_by_rules(writing, operation, object, old, draft, admit)?;
        if self.hooks.is_empty() || writing.target.subresource == "scale" {
            return Ok(());
        }
        let mut round = Round::default();
        if self.mutate_named(writing, object, old, draft, &mut round)? {
            self.admit_by_rules(writing, operation, object, old, draft, admit)?;
            let mut round = round.second(object);
            self.mutate_named(writing, object, old, draft, &mut round)?;
        }
        match old {
            None => strategy::prepare_create(&writing.row, object),
            Some(old) => strategy::prepare_update(&writing.row, writing.part, object, old),
        }
        Ok(())
    }

    fn admit_by_rules(
        &mut self,
        writing: &Writing<'_>,
        operation: Operation,
        object: &mut Value,
        old: Option<&Value>,
        draft: &mut Draft,
        admit: &mut Admit<'_>,
    ) -> Outcome<()> {
        match old {
            None => self.admit_create(writing, object)?,
            Some(old) if writing.part == Part::Whole => self.admit_update(writing, object, old)?,
            Some(_) => return Ok(()),
        }
        self.review(writing, operation, object, old, draft, admit)
    }

    /// Asks the mutating webhooks; they do not see a name that was generated.
    fn mutate_named(
        &self,
        writing: &Writing<'_>,
        object: &mut Value,
        old: Option<&Value>,
        draft: &mut Draft,
        round: &mut Round,
    ) -> Outcome<bool> {
        let Some(old) = old else {
            let is_generated = !text(&object["metadata"]["generateName"]).is_empty();
            let name = is_generated
                .then(|| metadata(object).remove("name"))
                .flatten();
            let has_changed = self.mutate(writing, "CREATE", object, None, draft, round)?;
            if let Some(name) = name {
                metadata(object).entry("name").or_insert(name);
            }
            return Ok(has_changed);
        };
        self.mutate(writing, "UPDATE", object, Some(old), draft, round)
    }

    /// The preconditions that an object itself carries.
    fn same_object(&self, writing: &Writing<'_>, object: &Value, old: &Value) -> Outcome<()> {
        let name = &writing.target.name;
        let wanted = object["metadata"]["uid"].as_str().unwrap_or_default();
        let stored = old["metadata"]["uid"].as_str().unwrap_or_default();
        if !wanted.is_empty() && wanted != stored && writing.is_apply() {
            let error = FieldError::invalid("metadata.uid", wanted, "field is immutable");
            // Found by the rules of the kind and by those of all kinds.
            return Err(writing.invalid(name, &[error.clone(), error]));
        }
        if !wanted.is_empty() && wanted != stored {
            return Err(Refused::conflict(
                writing.about(name),
                &format!(
                    "StorageError: invalid object, Code: 4, Key: /registry/{}{}/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {stored}",
                    if writing.row.group.is_empty() || !writing.row.group.contains('.') {
                        String::new()
                    } else {
                        format!("{}/", writing.row.group)
                    },
                    writing.row.plural,
                    key_of(&writing.target.namespace, name),
                ),
            ));
        }
        match object["metadata"]["resourceVersion"].as_str() {
            None | Some("") => {
                if strategy::needs_version(&writing.row, writing.request.method) {
                    let error = FieldError::invalid(
                        "metadata.resourceVersion",
                        json!(0),
                        "must be specified for an update",
                    );
                    // The real server names the resource here, not the kind.
                    let (group, plural) = (&writing.row.group, &writing.row.plural);
                    return Err(Refused::invalid(group, plural, name, &[error]));
                }
                Ok(())
            }
            version if version == old["metadata"]["resourceVersion"].as_str() => Ok(()),
            Some(version) if version.parse::<u64>().is_err() => {
                // Upstream takes this for a failure of its own.
                Err(Refused::plain(options::no_number(version)))
            }
            _ => Err(Refused::modified(writing.about(name))),
        }
    }

    /// Asks our own rules about a kind that they know.
    pub(crate) fn review(
        &mut self,
        writing: &Writing<'_>,
        operation: Operation,
        object: &mut Value,
        old: Option<&Value>,
        draft: &mut Draft,
        admit: &mut Admit<'_>,
    ) -> Outcome<()> {
        let Some(kind) = writing.row.known else {
            return Ok(());
        };
        let name = text(&object["metadata"]["name"]);
        let review = Review {
            operation,
            kind,
            subresource: "",
            namespace: &writing.target.namespace,
            name: &name,
            object: (operation != Operation::Delete).then_some(object),
            old,
            user: &writing.request.user.name,
            dry_run: writing.options.effect == Effect::DryRun,
        };
        match admit(&review, &Live(self)) {
            Verdict::Allowed {
                object: changed,
                warnings,
            } => {
                draft.warnings.extend(warnings);
                if let Some(changed) = changed {
                    *object = changed;
                    self.normalise(writing, object)?;
                }
                Ok(())
            }
            Verdict::Denied { code, message } => {
                // An object that does not fit its schema is told so with the field's path; the
                // real server looks at the schema between mutating and judging.
                if operation != Operation::Delete {
                    self.check(writing, object, old, draft)?;
                }
                Err(Refused::denied(code, message))
            }
        }
    }

    fn draw_name(&mut self, writing: &Writing<'_>, prefix: &str) -> Outcome<String> {
        let mut kept = prefix;
        while kept.len() > NAME_PREFIX_MAX {
            let end = kept.char_indices().next_back().map_or(0, |(at, _)| at);
            kept = &kept[..end];
        }
        let mut name = String::new();
        for _ in 0..NAME_DRAWS_MAX {
            name = format!("{kept}{}", self.draw_suffix());
            let key = key_of(&writing.target.namespace, &name);
            if self.shelf(writing.id).latest(&key).is_none() {
                return Ok(name);
            }
        }
        Err(Refused::generate_name_conflict(writing.about(&name)))
    }

    /// Five letters that end a name.
    pub(crate) fn draw_suffix(&mut self) -> String {
        let mut bytes = [0; 5];
        self.draw(&mut bytes);
        bytes
            .iter()
            .map(|byte| NAME_LETTERS[*byte as usize % NAME_LETTERS.len()] as char)
            .collect()
    }

    pub(crate) fn draw_uid(&mut self) -> String {
        let mut bytes = [0u8; 16];
        self.draw(&mut bytes);
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let number = u128::from_be_bytes(bytes);
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            (number >> 96) as u32,
            (number >> 80) as u16,
            (number >> 64) as u16,
            (number >> 48) as u16,
            number & 0xffff_ffff_ffff
        )
    }
}

/// The objects of a store as rules see them: begun writes count.
pub(crate) struct Live<'a>(pub(crate) &'a Store);

impl Facts for Live<'_> {
    fn object(&self, kind: Kind, namespace: &str, name: &str) -> Option<Value> {
        self.0.latest_of(kind, namespace, name)
    }

    fn list(&self, kind: Kind, namespace: &str) -> Vec<Value> {
        let Some(id) = self.0.registry.known(kind) else {
            return Vec::new();
        };
        let prefix = if namespace.is_empty() {
            String::new()
        } else {
            format!("{namespace}/")
        };
        self.0
            .shelf(id)
            .latest_range(&prefix)
            .into_iter()
            .map(|(_, entry)| entry.value())
            .collect()
    }

    fn template_faults(&self, template: &Value) -> Vec<String> {
        crate::validation::template_faults(template)
    }
}

/// The text of a value; empty if it is none.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The metadata map of an object, made where it is missing.
pub(crate) fn metadata(object: &mut Value) -> &mut serde_json::Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    object["metadata"]
        .as_object_mut()
        .expect("it was made an object above")
}

/// An owner that is named twice in the same words is named once.
pub(crate) fn name_owners_once(object: &mut Value, draft: &mut Draft) {
    let owners = object.pointer_mut("/metadata/ownerReferences");
    let Some(owners) = owners.and_then(Value::as_array_mut) else {
        return;
    };
    let mut kept: Vec<Value> = Vec::with_capacity(owners.len());
    let mut twice: Vec<String> = Vec::new();
    for owner in owners.drain(..) {
        if kept.contains(&owner) {
            twice.push(text(&owner["uid"]));
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    if !twice.is_empty() {
        twice.dedup();
        draft.warnings.push(format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        ));
    }
}

/// Puts the object where the URL says; another place in the body is refused.
fn place(writing: &Writing<'_>, meta: &mut serde_json::Map<String, Value>) -> Outcome<()> {
    if !writing.row.is_namespaced() {
        meta.remove("namespace");
        return Ok(());
    }
    let wanted = &writing.target.namespace;
    match meta.get("namespace").and_then(Value::as_str) {
        None | Some("") => {
            meta.insert("namespace".into(), json!(wanted));
        }
        Some(namespace) if namespace == wanted => {}
        Some(_) => {
            let why = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Refused::bad_request(why));
        }
    }
    Ok(())
}
