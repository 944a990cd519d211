//! From a body to an object in the form that is stored: decoded, typed, pruned, defaulted, checked.

use serde_json::{Value, json};

use crate::ahead::media_type;
use crate::autoscaler;
use crate::crd::{Crd, CrdVersion};
use crate::draft::Draft;
use crate::entry::{Entry, kind_first};
use crate::field;
use crate::json::{self, Twice};
use crate::path::FieldValidation;
use crate::registry::{Resource, ResourceId, Source};
use crate::schema::Schema;
use crate::status::{Outcome, Refused};
use crate::store::{DEFINITIONS, Store};
use crate::strategy::Part;
use crate::talk::Talk;
use crate::validation::{self, EventShape};
use crate::write::{Writing, text};

/// Media types of bodies, as a refusal lists them.
const BODY_TYPES: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];

/// The shelf of events of both groups.
const EVENTS: &str = "/events";
/// What upstream calls the registry of its kinds.
const SCHEME: &str = "pkg/runtime/scheme.go:111";
/// Most bytes of a body that a refusal shows.
const SHOWN_BYTES_MAX: usize = 30;

/// The schema of a resource's version.
pub(crate) enum Form<'a> {
    /// Kubernetes' own.
    BuiltIn(Option<&'a Schema>),
    /// A definition's.
    Custom(&'a CrdVersion),
}

impl Store {
    pub(crate) fn form(&self, id: ResourceId, version: &str) -> Form<'_> {
        if let Some(found) = self
            .definition(id)
            .and_then(|crd| crd.versions.iter().find(|one| one.name == version))
        {
            return Form::Custom(found);
        }
        let row = self.registry.row(id);
        Form::BuiltIn(self.wire.schema(&row.group, version, &row.kind))
    }

    pub(crate) fn definition(&self, id: ResourceId) -> Option<&Crd> {
        self.definitions.get(&id)
    }

    /// Reads the body as JSON, whatever its media type.
    pub(crate) fn decode(&self, writing: &Writing<'_>) -> Outcome<json::Body> {
        let request = writing.request;
        match media_type(request) {
            "" | "application/json" | "*/*" => {
                let twice = match writing.row.source {
                    Source::BuiltIn => Twice::Together,
                    Source::Custom => Twice::LastWins,
                };
                let ahead = writing.ahead.take().and_then(|ahead| ahead.taken(twice));
                let read = ahead.unwrap_or_else(|| json::read_as(&request.body, twice));
                read.map_err(|why| {
                    Refused::bad_request(format!(
                        "couldn't get version/kind; json parse error: {why}"
                    ))
                })
            }
            "application/yaml" => json::read_yaml(&request.body).map_err(Refused::bad_request),
            "application/vnd.kubernetes.protobuf" => {
                let decoded = self.wire.messages().decode(&request.body);
                let decoded = decoded.map_err(Refused::bad_request)?;
                json::check_objects(&decoded.value).map_err(Refused::bad_request)?;
                Ok(json::Body::of(decoded.value))
            }
            _ => Err(Refused::media_type(BODY_TYPES)),
        }
    }

    /// The object in a body, in the form that is stored.
    pub(crate) fn body(&self, writing: &Writing<'_>, draft: &mut Draft) -> Outcome<Value> {
        let mut body = self
            .decode(writing)
            .map_err(|refused| unrecognised(writing, refused))?;
        if body.value.is_null() && writing.row.source == Source::BuiltIn {
            body.value = json!({});
        }
        check_identity(writing, &body.value).map_err(|refused| unrecognised(writing, refused))?;
        self.name_type(writing, &mut body.value)?;
        self.complain(writing, &body, draft)?;
        self.normalise(writing, &mut body.value)?;
        Ok(body.value)
    }

    /// Sets or checks `apiVersion` and `kind`.
    pub(crate) fn name_type(&self, writing: &Writing<'_>, object: &mut Value) -> Outcome<()> {
        let row = &writing.row;
        let expected = row.api_version(&writing.target.version);
        if !object.is_object() {
            return Err(Refused::bad_request(json::not_an_object(object)));
        }
        let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        // What a path leaves open counts as said for built-in kinds only.
        let may_be_left_out = row.source == Source::BuiltIn;
        let differs =
            |said: &str, wanted: &str| said != wanted && !(said.is_empty() && may_be_left_out);
        let is_other = differs(&version, &expected) || differs(&kind, &row.kind);
        if is_other {
            return Err(self.of_another_type(writing, object, (&version, &kind), &expected));
        }
        object["apiVersion"] = json!(expected);
        object["kind"] = json!(row.kind);
        Ok(())
    }

    /// Why a body that says what it is cannot be what the path is about.
    pub(crate) fn mistyped(&self, writing: &Writing<'_>, object: &Value) -> Option<String> {
        let row = &writing.row;
        let said = |name: &str, expected: &str| match text(&object[name]) {
            said if said.is_empty() => expected.to_owned(),
            said => said,
        };
        let expected = row.api_version(&writing.target.version);
        let (version, kind) = (said("apiVersion", &expected), said("kind", &row.kind));
        if kind == *row.kind && version == expected {
            return None;
        }
        if row.source == Source::Custom {
            let wanted = format!("{}.{}", writing.target.version, row.kind);
            return (kind != *row.kind)
                .then(|| format!("converting ({kind}) to ({wanted}): unknown conversion"));
        }
        let (group, short) = version.rsplit_once('/').unwrap_or(("", &version));
        if self.wire.schema(group, short, &kind).is_none() {
            return Some(format!(
                "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
            ));
        }
        // Another version of the same kind can be read.
        if kind == *row.kind {
            return None;
        }
        let package = match row.shelf_group().split('.').next() {
            None | Some("") => "core",
            Some(package) => package,
        };
        Some(format!(
            "converting ({short}.{kind}) to ({package}.{}): unknown conversion",
            row.kind
        ))
    }

    /// A body that says to be of another type than its path.
    fn of_another_type(
        &self,
        writing: &Writing<'_>,
        object: &Value,
        (version, kind): (&str, &str),
        expected: &str,
    ) -> Refused {
        let row = &writing.row;
        if row.source == Source::Custom && version == expected {
            let name = text(&object["metadata"]["name"]);
            let why = format!("must be {}", row.kind);
            let error = field::FieldError::invalid("kind", kind, why);
            return Refused::invalid(&row.group, kind, &name, &[error]);
        }
        if row.source == Source::Custom {
            let refused = Refused::bad_request(format!(
                "the API version in the data ({version}) does not match the expected API version ({expected})"
            ));
            if version.is_empty() || writing.options.validation != FieldValidation::Warn {
                return refused;
            }
            // Upstream looks for fields before it looks at the version, and knows none of this one.
            let known = ["apiVersion", "kind", "metadata"];
            let fields = object.as_object().into_iter().flat_map(|map| map.keys());
            return fields
                .filter(|field| !known.contains(&field.as_str()))
                .fold(refused, |refused, field| {
                    refused.warn(format!("unknown field {}", field::go_quoted(field)))
                });
        }
        let version = if version.is_empty() {
            expected
        } else {
            version
        };
        let kind = if kind.is_empty() { &*row.kind } else { kind };
        let (group, short) = version.rsplit_once('/').unwrap_or(("", version));
        let why = if self.wire.schema(group, short, kind).is_some() {
            let package = match row.shelf_group() {
                "" => "core",
                group => group.split('.').next().unwrap_or(group),
            };
            format!(
                "converting ({short}.{kind}) to ({package}.{}): unknown conversion",
                row.kind
            )
        } else {
            format!("no kind {kind:?} is registered for version {version:?} in scheme {SCHEME:?}")
        };
        Refused::bad_request(format!(
            "{kind} in version {short:?} cannot be handled as a {}: {why}",
            row.kind
        ))
    }

    /// Tells of unknown and duplicate fields as strictly as the client asked.
    pub(crate) fn complain(
        &self,
        writing: &Writing<'_>,
        body: &json::Body,
        draft: &mut Draft,
    ) -> Outcome<()> {
        let mut complaints = self.complaints(writing, &body.value, &body.duplicates);
        let lines = match writing.options.validation {
            FieldValidation::Ignore => &[][..],
            _ => &body.lines[..],
        };
        if complaints.is_empty() && lines.is_empty() {
            return Ok(());
        }
        if writing.options.validation == FieldValidation::Warn {
            draft.warnings.extend(lines.iter().cloned());
            draft.warnings.extend(complaints);
            return Ok(());
        }
        if !lines.is_empty() {
            complaints.insert(0, json::unmarshal_errors(lines));
        }
        let kind = &writing.row.kind;
        Err(Refused::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {kind}: strict decoding error: {}",
            writing.target.version,
            complaints.join(", ")
        )))
    }

    /// Unknown and duplicate fields, unless the client does not want to know.
    pub(crate) fn complaints(
        &self,
        writing: &Writing<'_>,
        object: &Value,
        duplicates: &[String],
    ) -> Vec<String> {
        if writing.options.validation == FieldValidation::Ignore {
            return Vec::new();
        }
        let unknown = match self.form(writing.id, &writing.target.version) {
            Form::BuiltIn(Some(schema)) => schema.unknown_fields(object),
            Form::BuiltIn(None) => Vec::new(),
            Form::Custom(version) => version.schema.unknown_fields(object),
        };
        let tell = |what: &str, path: &String| {
            let text = format!("{what} field {}", field::go_quoted(path));
            (path.clone(), text)
        };
        let twice = duplicates.iter().map(|path| tell("duplicate", path));
        let unknown = unknown.iter().map(|path| tell("unknown", path));
        let mut complaints: Vec<(String, String)> = twice.chain(unknown).collect();
        json::in_order(&writing.request.body, &mut complaints);
        complaints.into_iter().map(|(_, text)| text).collect()
    }

    /// Brings an object into the form of its schema: types, pruning, defaults.
    pub(crate) fn normalise(&self, writing: &Writing<'_>, object: &mut Value) -> Outcome<()> {
        self.shape(writing.id, &writing.target.version, object)?;
        self.to_storage(&writing.row, object);
        Ok(())
    }

    pub(crate) fn shape(&self, id: ResourceId, version: &str, object: &mut Value) -> Outcome<()> {
        self.try_shape(id, version, object).map_err(|why| {
            let kind = &self.registry.row(id).kind;
            Refused::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
            ))
        })
    }

    /// As [`Store::normalise`] for a patched object.
    ///
    /// # Errors
    /// What is of a wrong type, in the words of Go's decoder.
    pub(crate) fn try_normalise(
        &self,
        writing: &Writing<'_>,
        object: &mut Value,
    ) -> Result<(), String> {
        self.try_shape(writing.id, &writing.target.version, object)?;
        self.to_storage(&writing.row, object);
        Ok(())
    }

    /// A built-in object as its shelf keeps it.
    pub(crate) fn to_storage(&self, row: &Resource, object: &mut Value) {
        if row.source == Source::Custom {
            return;
        }
        let version = &row.storage_version;
        match (
            &*row.shelf,
            self.wire.schema(&row.group, version, &row.kind),
        ) {
            (EVENTS, _) if row.shelf_group() != &*row.group => crate::events::to_core(object),
            (autoscaler::SHELF, Some(schema)) => autoscaler::to_new(object, schema),
            _ => object["apiVersion"] = json!(row.api_version(version)),
        }
    }

    /// As [`Store::shape`], in the words of Go's decoder alone.
    pub(crate) fn try_shape(
        &self,
        id: ResourceId,
        version: &str,
        object: &mut Value,
    ) -> Result<(), String> {
        match self.form(id, version) {
            Form::BuiltIn(None) => {}
            Form::BuiltIn(Some(schema)) => {
                schema.coerce(object)?;
                let row = self.registry.row(id);
                match row.shelf.as_ref() {
                    DEFINITIONS => crate::crd::default(object),
                    _ => validation::default(&row.group, &row.kind, object),
                }
            }
            Form::Custom(version) => {
                version.schema.coerce_metadata(object)?;
                version.schema.prune(object);
                version.schema.default(object);
            }
        }
        Ok(())
    }

    /// Gives an object of a list from elsewhere the types and defaults that a create would give it: nobody
    /// may have done so before, and what is written later is compared with it. `resource` is how the store
    /// calls its kind, such as `/pods`. One whose fields are of a wrong type is left to whoever loads it, and
    /// so is one of a custom kind.
    pub fn fill_in(&self, resource: &str, object: &mut Value) {
        let Some((id, _)) = self.registry.shelved(resource) else {
            return;
        };
        let api_version = text(&object["apiVersion"]);
        let version = api_version.rsplit('/').next().unwrap_or_default();
        if let Form::BuiltIn(Some(_)) = self.form(id, version) {
            // A wrong type is told when it is loaded.
            let _ = self.try_shape(id, version, object);
        }
    }

    /// Checks an object about to be stored.
    pub(crate) fn check(
        &self,
        writing: &Writing<'_>,
        object: &Value,
        old: Option<&Value>,
        draft: &mut Draft,
    ) -> Outcome<()> {
        let (group, kind) = (&*writing.row.group, &*writing.row.kind);
        let errors = match (self.form(writing.id, &writing.target.version), old) {
            (Form::Custom(version), _) => {
                let mut errors = validation::metadata(object, old);
                let scale = version.check_scale(object, writing.part);
                let checked = match (writing.part, old) {
                    (Part::Status, Some(old)) => version.schema.validate_status(object, old, scale),
                    _ => version.schema.validate(object, old, scale),
                };
                draft.warnings.extend(checked.warnings);
                errors.extend(checked.errors);
                errors
            }
            (Form::BuiltIn(_), _) if &*writing.row.shelf == EVENTS => {
                let shape = match group {
                    "" => EventShape::Core,
                    _ => EventShape::New,
                };
                validation::validate_event(shape, object, old)
            }
            (Form::BuiltIn(_), None) => validation::validate(group, kind, object),
            (Form::BuiltIn(_), Some(old)) => match &*writing.target.subresource {
                "" | "scale" => validation::validate_update(group, kind, object, old),
                "approval" => validation::validate_approval(object, old),
                "ephemeralcontainers" => validation::validate_ephemeral(object, old),
                "finalize" => validation::validate_finalize(object, old),
                "resize" => validation::validate_resize(object, old),
                "status" => validation::validate_status(group, kind, object, old),
                _ => validation::metadata(object, Some(old)),
            },
        };
        if errors.is_empty() {
            if writing.row.source == Source::BuiltIn && writing.target.subresource.is_empty() {
                let said = validation::warnings(group, kind, object, old);
                draft.warnings.extend(said);
            }
            return Ok(());
        }
        Err(writing.invalid(&text(&object["metadata"]["name"]), &errors))
    }

    /// An object's bytes in the version that was asked for. Where a webhook converts, `talk` knows
    /// its answer (see [`Store::ready_to_show`]).
    pub(crate) fn shown(
        &self,
        id: ResourceId,
        version: &str,
        entry: &Entry,
        talk: &Talk,
    ) -> Vec<u8> {
        let mut out = Vec::with_capacity(entry.shown_size());
        self.show(id, version, entry, talk, &mut out);
        out
    }

    /// As [`Store::shown`], appended to `out`.
    pub(crate) fn show(
        &self,
        id: ResourceId,
        version: &str,
        entry: &Entry,
        talk: &Talk,
        out: &mut Vec<u8>,
    ) {
        if self.is_as_stored(id, version, entry) {
            entry.show(out);
            return;
        }
        let mut object = self.shown_value(id, version, entry, talk);
        entry.name_owners(&mut object);
        out.extend_from_slice(&kind_first(&object));
    }

    /// As [`Store::shown`], as a value without its owners.
    pub(crate) fn shown_value(
        &self,
        id: ResourceId,
        version: &str,
        entry: &Entry,
        talk: &Talk,
    ) -> Value {
        let row = self.registry.row(id);
        if row.source == Source::Custom {
            return self.converted(id, version, entry, talk);
        }
        let mut object = entry.value();
        from_storage(row, version, &mut object);
        object
    }
}

/// A body that is no object of any kind, with its beginning: as text where it looks like JSON.
fn unrecognised(writing: &Writing<'_>, refused: Refused) -> Refused {
    if refused.code() != 400 {
        return refused;
    }
    let body = &writing.request.body;
    let cut = &body[..body.len().min(SHOWN_BYTES_MAX)];
    let mut shown = match cut.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(cut).into_owned(),
        Some(_) => cut.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if cut.len() < body.len() {
        shown.push_str(" ...");
    }
    Refused::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {} ({shown})",
        writing.row.kind,
        refused.message()
    ))
}

/// A body is an object whose version has the form of one; a custom one must name its kind.
fn check_identity(writing: &Writing<'_>, value: &Value) -> Outcome<()> {
    let is_custom = writing.row.source == Source::Custom;
    let is_nothing = value.is_null() && is_custom;
    if !(value.is_object() || is_nothing) {
        return Err(Refused::bad_request(json::not_an_object(value)));
    }
    let version = text(&value["apiVersion"]);
    if version.matches('/').count() > 1 {
        let why = format!("unexpected GroupVersion string: {version}");
        return Err(Refused::bad_request(why));
    }
    if is_custom && text(&value["kind"]).is_empty() {
        let body = String::from_utf8_lossy(&writing.request.body);
        let why = format!("Object 'Kind' is missing in '{body}'");
        return Err(Refused::bad_request(why));
    }
    Ok(())
}

/// Whether the versions of a built-in resource differ in more than their name.
pub(crate) fn has_shapes(row: &Resource) -> bool {
    row.shelf_group() != &*row.group || &*row.shelf == autoscaler::SHELF
}

/// The object as a version shows it.
pub(crate) fn from_storage(row: &Resource, version: &str, object: &mut Value) {
    if row.shelf_group() != &*row.group {
        crate::events::from_core(object);
    } else if &*row.shelf == autoscaler::SHELF && version != &*row.storage_version {
        autoscaler::to_old(object);
    } else {
        object["apiVersion"] = json!(row.api_version(version));
    }
}
