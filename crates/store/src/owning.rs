//! Who owns what after a write: where requests meet `managedFields`.

mod scale;

use std::borrow::Cow;

use api::time::Time;
use serde_json::{Value, json};

use crate::convert::Unconverted;
use crate::forms::{self, Form};
use crate::owners::{
    Change, Held, Operation, Owners, Resets, Untold, Versions, Who, created, resets, update,
};
use crate::registry::{Resource, ResourceId, Source, Version};
use crate::schema::Spot;
use crate::status::Outcome;
use crate::store::Store;
use crate::strategy::Part;
use crate::talk::Talk;
use crate::validation;
use crate::write::{Before, Writing};

/// Longest name of an owner, in bytes.
pub(crate) const MANAGER_BYTES_MAX: usize = 128;

/// The kind of which `endpoints` and `ports` are told though nobody has set them.
const HAS_MORE: &str = "EndpointSlice";

/// What a body says about owners.
pub(crate) enum Given {
    /// Nothing that counts: those known so far stay.
    Nothing,
    /// These are the owners.
    Owners(Vec<Held<'static>>),
}

/// The versions of the kind that a request is about.
pub(crate) struct Typing<'s> {
    store: &'s Store,
    row: &'s Resource,
    id: ResourceId,
    /// The request's version.
    api_version: String,
    resets: Resets,
    is_status: bool,
    talk: &'s Talk,
}

impl<'s> Typing<'s> {
    pub(crate) fn new(store: &'s Store, writing: &'s Writing<'_>) -> Typing<'s> {
        Typing {
            store,
            row: &writing.row,
            id: writing.id,
            api_version: writing.row.api_version(&writing.target.version),
            resets: resets(&writing.row, &writing.target.subresource),
            is_status: writing.part == Part::Status,
            talk: writing.talk,
        }
    }
}

impl Versions for Typing<'_> {
    fn spot(&self, api_version: &str) -> Option<Spot<'_>> {
        let version = self
            .row
            .versions
            .iter()
            .find(|version| self.row.api_version(&version.name) == api_version)?;
        match self.store.form(self.id, &version.name) {
            Form::BuiltIn(schema) => schema.map(|schema| schema.spot()),
            Form::Custom(version) => Some(version.schema.spot()),
        }
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Option<Value>, Untold> {
        if self.row.source == Source::BuiltIn {
            return Ok(self
                .spot(api_version)
                .map(|_| self.store.reshaped(self.row, object, api_version)));
        }
        // Upstream knows two ways only: to the request's version, and from it.
        let from = object["apiVersion"].as_str();
        let home = match from == Some(api_version) || from == Some(&*self.api_version) {
            true => Cow::Borrowed(object),
            false => Cow::Owned(self.converted(object, &self.api_version)?),
        };
        let converted = self.converted(&home, api_version)?;
        if let Some(spot) = self.spot(api_version) {
            crate::typed::check(&converted, spot).map_err(|why| Untold::Failed(why.to_string()))?;
        }
        Ok(Some(converted))
    }

    fn resets(&self, api_version: &str) -> Resets {
        // Upstream knows of a custom resource's other versions only what a status request cannot
        // write, not what a request to the whole cannot.
        let is_told = self.row.source == Source::BuiltIn || self.is_status;
        match is_told || api_version == self.api_version {
            true => self.resets,
            false => Resets::Nothing,
        }
    }
}

impl Typing<'_> {
    fn converted(&self, object: &Value, api_version: &str) -> Result<Value, Untold> {
        let group = |api_version: &str| {
            let named = api_version.split_once('/');
            named.map_or(String::new(), |(group, _)| group.to_owned())
        };
        let row = self.row;
        if group(api_version) != *row.group {
            let from = object["apiVersion"].as_str().unwrap_or_default();
            return Err(Untold::Failed(format!(
                "{from}, Kind={} is unstructured and is not suitable for converting to {}",
                row.kind,
                crate::field::go_quoted(api_version)
            )));
        }
        let is_known = |version: &Version| row.api_version(&version.name) == api_version;
        if !row.versions.iter().any(is_known) {
            return Err(Untold::Failed(format!(
                "request to convert CR to an invalid group/version: {api_version}"
            )));
        }
        let converted = self.store.convert(self.id, object, api_version, self.talk);
        converted.map_err(|why| match why {
            Unconverted::Asks(refused) => Untold::Asks(refused),
            Unconverted::Failed(why) => Untold::Failed(why),
        })
    }
}

impl Writing<'_> {
    /// The owner as whom this request writes.
    pub(crate) fn who(&self, operation: Operation) -> Who {
        let named = self.query.text("fieldManager");
        let mut manager = if named.is_empty() {
            prefix(&self.request.user_agent)
        } else {
            named.to_owned()
        };
        if manager.is_empty() {
            "unknown".clone_into(&mut manager);
        }
        Who {
            operation,
            manager,
            api_version: self.row.api_version(&self.target.version),
            subresource: self.target.subresource.clone(),
        }
    }

    fn seconds(&self) -> i64 {
        self.now.micros().div_euclid(1_000_000)
    }

    pub(crate) fn change<'v>(
        &self,
        operation: Operation,
        versions: &'v dyn Versions,
    ) -> Change<'v> {
        Change {
            who: self.who(operation),
            seconds: self.seconds(),
            versions,
        }
    }
}

/// What a client calls itself before the first slash.
fn prefix(user_agent: &str) -> String {
    let name = user_agent.split('/').next().unwrap_or_default();
    let mut out = String::new();
    for letter in name.chars().filter(|letter| !letter.is_control()) {
        if out.len() + letter.len_utf8() > MANAGER_BYTES_MAX {
            break;
        }
        out.push(letter);
    }
    out
}

/// Takes `managedFields` out of a body and says what it means.
///
/// An empty list, or a list of one empty entry, forgets all owners.
pub(crate) fn take_given(object: &mut Value) -> Given {
    let taken = object
        .get_mut("metadata")
        .and_then(Value::as_object_mut)
        .and_then(|meta| meta.remove("managedFields"));
    let Some(list) = taken else {
        return Given::Nothing;
    };
    match list.as_array().map(Vec::as_slice) {
        Some([]) => return Given::Owners(Vec::new()),
        Some([Value::Object(only)]) if only.is_empty() => return Given::Owners(Vec::new()),
        _ => {}
    }
    match Owners::parse(&list) {
        Some(held) if !held.is_empty() => Given::Owners(held),
        _ => Given::Nothing,
    }
}

impl Store {
    /// The owners of an object about to be created.
    pub(crate) fn own_created(
        &mut self,
        writing: &Writing<'_>,
        given: Given,
        object: &Value,
    ) -> Outcome<Owners> {
        let held = match given {
            Given::Owners(held) => held,
            Given::Nothing => Vec::new(),
        };
        let object = validation::as_labelled(as_asked(writing, object));
        if held.is_empty() {
            let (fields, who, seconds) = {
                let unset = self.unset_object(writing);
                let typing = Typing::new(self, writing);
                let change = writing.change(Operation::Update, &typing);
                let fields = created(&unset, &object, &change);
                (fields, change.who, change.seconds)
            };
            if let Some(fields) = fields {
                return Ok(Owners::of_author(who, seconds, &fields, &mut self.memo));
            }
        }
        let empty = self.empty_object(writing);
        let held = {
            let typing = Typing::new(self, writing);
            let change = writing.change(Operation::Update, &typing);
            told(update(held, &empty, &object, &change))?
        };
        Ok(Owners::of(held, &mut self.memo))
    }

    /// The owners of an object about to be changed.
    pub(crate) fn own_updated(
        &mut self,
        writing: &Writing<'_>,
        given: Given,
        before: Before<'_>,
        object: &Value,
    ) -> Outcome<Owners> {
        let (old, old_object) = (before.entry, before.object);
        let held = match given {
            // Only the object itself says who owns it.
            Given::Owners(held) if writing.target.subresource.is_empty() => held,
            _ if old_object == object => return Ok(old.owners.clone()),
            _ => old.owners.held(),
        };
        // Once forgotten, owners are counted again from the next apply on.
        if held.is_empty() {
            return Ok(Owners::default());
        }
        if !self.is_formed(writing, object) {
            // Nobody can say whose fields these are; upstream then forgets all owners.
            return Ok(Owners::default());
        }
        let (old_object, object) = (as_asked(writing, old_object), as_asked(writing, object));
        let held = {
            let typing = Typing::new(self, writing);
            let change = writing.change(Operation::Update, &typing);
            told(update(held, &old_object, &object, &change))?
        };
        Ok(Owners::of(held, &mut self.memo))
    }

    /// Whether an object that may yet lose what it must not change is of its type.
    fn is_formed(&self, writing: &Writing<'_>, object: &Value) -> bool {
        if writing.row.source == Source::BuiltIn {
            return true;
        }
        let typing = Typing::new(self, writing);
        let api_version = writing.row.api_version(&writing.target.version);
        let spot = typing.spot(&api_version);
        spot.is_none_or(|spot| crate::typed::check(object, spot).is_ok())
    }

    /// As [`Store::empty_object`], for who does not look at its type: most often it is at hand.
    fn unset_object(&self, writing: &Writing<'_>) -> Cow<'_, Value> {
        match self.form(writing.id, &writing.target.version) {
            Form::BuiltIn(Some(schema)) if &*writing.row.kind != HAS_MORE => {
                match schema.kept_zero() {
                    Some(kept) => Cow::Borrowed(kept),
                    None => Cow::Owned(self.empty_object(writing)),
                }
            }
            _ => Cow::Owned(self.empty_object(writing)),
        }
    }

    /// An object of the request's kind of which nothing is set.
    pub(crate) fn empty_object(&self, writing: &Writing<'_>) -> Value {
        let version = &writing.target.version;
        let mut object = match self.form(writing.id, version) {
            Form::BuiltIn(Some(schema)) => schema.zero_object(),
            Form::BuiltIn(None) | Form::Custom(_) => json!({}),
        };
        object["apiVersion"] = json!(writing.row.api_version(version));
        object["kind"] = json!(writing.row.kind);
        if &*writing.row.kind == HAS_MORE {
            object["endpoints"] = Value::Null;
            object["ports"] = Value::Null;
        }
        object
    }
}

/// As what the server itself writes.
const SERVER: &str = "kube-apiserver";

impl Store {
    /// The owners of an answer that is not stored: its author owns what the question says.
    pub(crate) fn name_asker(
        &mut self,
        writing: &Writing<'_>,
        kind: (&str, &str, &str),
        answer: &mut Value,
    ) {
        let (group, version, name) = kind;
        let api_version = format!("{group}/{version}");
        let wire = self.wire.clone();
        let Some(schema) = wire.schema(group, version, name) else {
            return;
        };
        let zero = schema.zero_object();
        let held = {
            let plain = Plain {
                spot: schema.spot(),
                api_version: &api_version,
                resets: Resets::Nothing,
            };
            let mut change = writing.change(Operation::Update, &plain);
            change.who.api_version.clone_from(&api_version);
            // A kind of one version is never converted.
            update(Vec::new(), &zero, answer, &change).unwrap_or_default()
        };
        let owners = Owners::of(held, &mut self.memo);
        if !owners.is_empty() {
            answer["metadata"]["managedFields"] = owners.to_value();
        }
    }

    /// The owners of an object after the server itself has written it.
    pub(crate) fn own_as_server(
        &mut self,
        row: &Resource,
        subresource: &str,
        (before, owners): (&Value, &Owners),
        after: &Value,
        now: Time,
    ) -> Owners {
        let version = &row.storage_version;
        let api_version = row.api_version(version);
        let held = {
            let Some(schema) = self.wire.schema(&row.group, version, &row.kind) else {
                return owners.clone();
            };
            let plain = Plain {
                spot: schema.spot(),
                api_version: &api_version,
                resets: resets(row, subresource),
            };
            let change = Change {
                who: Who {
                    operation: Operation::Update,
                    manager: SERVER.to_owned(),
                    api_version: api_version.clone(),
                    subresource: subresource.to_owned(),
                },
                seconds: now.micros().div_euclid(1_000_000),
                versions: &plain,
            };
            // A kind of one version is never converted.
            update(owners.held(), before, after, &change).unwrap_or_default()
        };
        Owners::of(held, &mut self.memo)
    }

    /// An object of a built-in kind of which nothing is set.
    pub(crate) fn zero_object(&self, row: &Resource) -> Value {
        let schema = self
            .wire
            .schema(&row.group, &row.storage_version, &row.kind);
        schema.map_or_else(|| json!({}), |schema| schema.zero_object())
    }
}

/// A kind that has one version.
struct Plain<'s> {
    spot: Spot<'s>,
    api_version: &'s str,
    resets: Resets,
}

impl Versions for Plain<'_> {
    fn spot(&self, api_version: &str) -> Option<Spot<'_>> {
        (api_version == self.api_version).then_some(self.spot)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Option<Value>, Untold> {
        Ok((api_version == self.api_version).then(|| object.clone()))
    }

    fn resets(&self, _: &str) -> Resets {
        self.resets
    }
}

/// The owners after a write that is not an apply: where nobody can say whose its fields are,
/// upstream carries it out and forgets all owners.
fn told(owners: Result<Vec<Held<'_>>, Untold>) -> Outcome<Vec<Held<'_>>> {
    match owners {
        Ok(held) => Ok(held),
        Err(Untold::Asks(refused)) => Err(refused),
        Err(Untold::Failed(_)) => Ok(Vec::new()),
    }
}

/// A stored object in the shape of the request, where its shelf keeps another.
pub(crate) fn as_asked<'o>(writing: &Writing<'_>, object: &'o Value) -> Cow<'o, Value> {
    let (row, version) = (&writing.row, &writing.target.version);
    let is_as_stored = row.shelf_group() == &*row.group && *version == *row.storage_version;
    if is_as_stored || !forms::has_shapes(row) {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    forms::from_storage(row, version, &mut object);
    Cow::Owned(object)
}
