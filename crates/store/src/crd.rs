//! Custom resource definitions: the ones we bring and the ones that users register.

mod check;
mod rules;
mod shown;
mod structure;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::discovery;
use crate::field::{self, FieldError};
use crate::schema::{self, Compiler, Schema};
use crate::strategy::Part;
use crate::table::PrinterColumn;
use crate::wire::Wire;
use cel::{Rules, Trust};

pub(crate) use check::{approval, is_true};
pub use check::{validate, validate_update};

/// A custom resource definition, ready to serve.
#[derive(Clone, Debug)]
pub struct Crd {
    /// API group.
    pub group: String,
    /// Annotations of a definition that we bring.
    pub annotations: Map<String, Value>,
    /// Names.
    pub names: CrdNames,
    /// Lives in a namespace.
    pub namespaced: bool,
    /// Versions, in the order of the definition.
    pub versions: Vec<CrdVersion>,
    /// `None` or `Webhook`.
    pub conversion: Value,
    /// The revision up to which objects may have been stored under an earlier schema.
    pub since: u64,
    /// It is being deleted: nothing is created any more.
    pub is_ending: bool,
}

/// What a custom resource is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CrdNames {
    /// `Job`.
    pub kind: String,
    /// `JobList`.
    #[serde(default)]
    pub list_kind: String,
    /// `jobs`.
    pub plural: String,
    /// `job`.
    #[serde(default)]
    pub singular: String,
    /// `vcjob`.
    #[serde(default)]
    pub short_names: Vec<String>,
    /// `all`.
    #[serde(default)]
    pub categories: Vec<String>,
}

/// One version of a custom resource.
#[derive(Clone, Debug)]
pub struct CrdVersion {
    /// `v1alpha1`.
    pub name: String,
    /// Answers requests.
    pub served: bool,
    /// Is the stored form.
    pub storage: bool,
    /// Has a status subresource.
    pub has_status: bool,
    /// Paths of the scale subresource, if it has one.
    pub scale: Option<Value>,
    /// Table columns besides NAME; AGE if there are none.
    pub columns: Vec<PrinterColumn>,
    /// Paths that field selectors may use.
    pub selectable: Vec<String>,
    /// The text of the Warning header on use of a deprecated version.
    pub deprecation: Option<String>,
    /// The compiled schema.
    pub schema: Schema,
    /// The schema as written, for OpenAPI and for showing the definition.
    source: Value,
}

impl CrdVersion {
    /// The structural schema in JSON, built-in types written out.
    pub fn schema_json(&self, wire: &Wire) -> Value {
        schema::expand(&self.source, wire)
    }
}

impl CrdVersion {
    /// What is wrong with the fields that the scale subresource reads.
    pub(crate) fn check_scale(&self, object: &Value, part: Part) -> Vec<FieldError> {
        let Some(scale) = &self.scale else {
            return Vec::new();
        };
        let mut errors = Vec::new();
        if part != Part::Status {
            check_replicas(object, scale["specReplicasPath"].as_str(), &mut errors);
        }
        check_replicas(object, scale["statusReplicasPath"].as_str(), &mut errors);
        errors
    }
}

/// A count of replicas is a whole number that is not negative.
fn check_replicas(object: &Value, path: Option<&str>, errors: &mut Vec<FieldError>) {
    let Some(path) = path else { return };
    let mut at = object;
    for name in path.trim_start_matches('.').split('.') {
        match at {
            Value::Object(map) => match map.get(name) {
                Some(inner) => at = inner,
                None => return,
            },
            other => {
                let (shown, kind) = go_shown(other);
                let detail = format!(
                    "{path} accessor error: {shown} is of the type {kind}, expected map[string]interface{{}}"
                );
                errors.push(FieldError::invalid(path, 0, detail));
                return;
            }
        }
    }
    if let Some(number) = at.as_i64() {
        if number < 0 {
            let detail = "should be a non-negative integer";
            errors.push(FieldError::invalid(path, number, detail));
        } else if number > i64::from(i32::MAX) {
            let detail = format!("should be less than or equal to {}", i32::MAX);
            errors.push(FieldError::invalid(path, number, detail));
        }
        return;
    }
    let (shown, kind) = go_shown(at);
    let detail = format!("{path} accessor error: {shown} is of the type {kind}, expected int64");
    errors.push(FieldError::invalid(path, 0, detail));
}

/// A value and its type as Go prints them.
fn go_shown(value: &Value) -> (String, &'static str) {
    match value {
        Value::String(text) => (text.clone(), "string"),
        Value::Number(number) => (number.to_string(), "float64"),
        Value::Bool(truth) => (truth.to_string(), "bool"),
        Value::Null => ("<nil>".to_owned(), "<nil>"),
        Value::Array(_) => (value.to_string(), "[]interface {}"),
        Value::Object(_) => (value.to_string(), "map[string]interface {}"),
    }
}

/// A definition as the wire folder spells it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CrdRow {
    /// API group.
    pub group: String,
    #[serde(default)]
    annotations: Map<String, Value>,
    names: CrdNames,
    scope: String,
    #[serde(default)]
    conversion: Value,
    versions: Vec<VersionRow>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct VersionRow {
    name: String,
    served: bool,
    storage: bool,
    #[serde(default)]
    subresources: Value,
    #[serde(default, alias = "additionalPrinterColumns")]
    columns: Vec<PrinterColumn>,
    #[serde(default)]
    selectable_fields: Vec<Value>,
    #[serde(default)]
    deprecated: bool,
    #[serde(default)]
    deprecation_warning: Option<String>,
    #[serde(default)]
    schema: Value,
}

impl Crd {
    /// Compiles the definitions of the wire folder together with the built-in types.
    pub(crate) fn shipped(
        rows: Vec<CrdRow>,
        mut compiler: Compiler,
    ) -> (Vec<Crd>, std::collections::BTreeMap<String, Schema>) {
        let mut roots = Vec::new();
        for version in rows.iter().flat_map(|row| &row.versions) {
            let rules = Rules::compile(&version.schema, "", Trust::Accepted)
                .expect("a test compiles every rule");
            roots.push((compiler.custom_root(&version.schema), rules));
        }
        let (builtin, schemas) = compiler.finish_with(roots);
        let mut schemas = schemas.into_iter();
        let crds = rows
            .into_iter()
            .map(|row| Crd::from_row(row, &mut schemas))
            .collect();
        (crds, builtin)
    }

    fn from_row(row: CrdRow, schemas: &mut impl Iterator<Item = Schema>) -> Crd {
        let group = row.group;
        let mut names = row.names;
        if names.singular.is_empty() {
            names.singular = names.kind.to_lowercase();
        }
        if names.list_kind.is_empty() {
            names.list_kind = format!("{}List", names.kind);
        }
        let others: Vec<String> = row
            .versions
            .iter()
            .filter(|version| version.served && !version.deprecated)
            .map(|version| version.name.clone())
            .collect();
        let versions = row
            .versions
            .into_iter()
            .zip(schemas)
            .map(|(version, schema)| CrdVersion {
                deprecation: version.deprecated.then(|| {
                    version.deprecation_warning.clone().unwrap_or_else(|| {
                        let instead = newest(&others, &version.name);
                        let instead = instead
                            .map(|other| format!("; use {group}/{other} {}", names.kind))
                            .unwrap_or_default();
                        let name = &version.name;
                        format!("{group}/{name} {} is deprecated{instead}", names.kind)
                    })
                }),
                has_status: version.subresources["status"].is_object(),
                scale: Some(&version.subresources["scale"])
                    .filter(|scale| scale.is_object())
                    .cloned(),
                selectable: version
                    .selectable_fields
                    .iter()
                    .filter_map(|row| row["jsonPath"].as_str())
                    .map(|path| path.trim_start_matches('.').to_owned())
                    .collect(),
                name: version.name,
                served: version.served,
                storage: version.storage,
                columns: version.columns,
                schema,
                source: version.schema,
            })
            .collect();
        let conversion = match row.conversion {
            Value::String(strategy) => json!({"strategy": strategy}),
            conversion @ Value::Object(_) => conversion,
            _ => json!({"strategy": "None"}),
        };
        Crd {
            group,
            annotations: row.annotations,
            names,
            namespaced: row.scope == "Namespaced",
            versions,
            conversion,
            since: 0,
            is_ending: false,
        }
    }

    /// Checks and compiles a new CustomResourceDefinition object, already defaulted by [`default`].
    ///
    /// # Errors
    /// What is wrong with it, by field.
    pub fn check_new(object: &Value, wire: &Wire) -> Result<Crd, Vec<FieldError>> {
        Crd::checked(object, wire, |schemas| validate(object, schemas))
    }

    /// Checks and compiles a changed one.
    ///
    /// # Errors
    /// What is wrong with it, by field.
    pub fn check_change(object: &Value, old: &Value, wire: &Wire) -> Result<Crd, Vec<FieldError>> {
        Crd::checked(object, wire, |schemas| {
            validate_update(object, old, schemas)
        })
    }

    fn checked(
        object: &Value,
        wire: &Wire,
        check: impl Fn(&[Vec<FieldError>]) -> Vec<FieldError>,
    ) -> Result<Crd, Vec<FieldError>> {
        let versions = object["spec"]["versions"].as_array();
        let schemas: Vec<Vec<FieldError>> = versions
            .into_iter()
            .flatten()
            .enumerate()
            .map(|(position, version)| {
                let at = schema_at(&object["spec"], position);
                let errors = schema_errors(&at, version);
                if !errors.is_empty() {
                    return errors;
                }
                let source = &version["schema"]["openAPIV3Schema"];
                let rules = Rules::compile(source, &at, Trust::Doubted);
                rules.err().unwrap_or_default()
            })
            .collect();
        let errors = check(&schemas);
        if !errors.is_empty() {
            return Err(errors);
        }
        Crd::compiled(object, wire, Trust::Accepted)
    }

    /// Compiles a CustomResourceDefinition object that was checked before.
    ///
    /// # Errors
    /// What is wrong with its schemas and rules, by field.
    pub fn compile(object: &Value, wire: &Wire) -> Result<Crd, Vec<FieldError>> {
        Crd::compiled(object, wire, Trust::Accepted)
    }

    fn compiled(object: &Value, wire: &Wire, trust: Trust) -> Result<Crd, Vec<FieldError>> {
        let mut errors = Vec::new();
        let mut spec = object["spec"].clone();
        let mut compiler = Compiler::default();
        for name in META_DEFINITIONS {
            if let Some(schema) = wire.definition(name) {
                compiler.define(name, schema);
            }
        }
        let mut roots = Vec::new();
        let versions = spec["versions"].as_array_mut().into_iter().flatten();
        for (position, version) in versions.enumerate() {
            let source = version["schema"]["openAPIV3Schema"].take();
            let at = schema_at(&object["spec"], position);
            let root = compiler.custom_root(&source);
            errors.extend(compiler.take_errors().into_iter().map(|mut error| {
                error.field = field::child(&at, &error.field);
                error
            }));
            match Rules::compile(&source, &at, trust) {
                Ok(rules) => roots.push((root, rules)),
                Err(more) => errors.extend(more),
            }
            version["schema"] = source;
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let (_, schemas) = compiler.finish_with(roots);
        for (position, schema) in schemas.iter().enumerate() {
            errors.extend(schema.check_defaults(&schema_at(&object["spec"], position)));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let row: CrdRow = serde_json::from_value(spec)
            .map_err(|cause| vec![FieldError::invalid("spec", "", cause.to_string())])?;
        Ok(Crd::from_row(row, &mut schemas.into_iter()))
    }

    /// Takes over what the status of a definition says: the accepted names, and whether it ends.
    pub(crate) fn take_status(&mut self, object: &Value) {
        let names = &object["status"]["acceptedNames"];
        if let Ok(names) = serde_json::from_value::<CrdNames>(names.clone())
            && !names.plural.is_empty()
        {
            self.names = names;
        }
        self.is_ending = is_true(object, "Terminating");
        let version = object["metadata"]["resourceVersion"].as_str();
        self.since = version
            .and_then(|version| version.parse().ok())
            .unwrap_or(self.since);
    }

    /// The name of that object.
    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.names.plural, self.group)
    }

    /// The CustomResourceDefinition object that stands for this definition (without uid and times).
    pub fn object(&self, wire: &Wire) -> Value {
        let names = &self.names;
        let mut spelled = json!({
            "kind": names.kind,
            "listKind": names.list_kind,
            "plural": names.plural,
            "singular": names.singular,
        });
        if !names.short_names.is_empty() {
            spelled["shortNames"] = json!(names.short_names);
        }
        if !names.categories.is_empty() {
            spelled["categories"] = json!(names.categories);
        }
        let versions: Vec<Value> = self
            .versions
            .iter()
            .map(|version| self.version_object(version, wire))
            .collect();
        let stored = self.versions.iter().filter(|version| version.storage);
        let stored: Vec<&str> = stored.map(|version| version.name.as_str()).collect();
        let mut metadata = json!({"name": self.name()});
        if !self.annotations.is_empty() {
            metadata["annotations"] = json!(self.annotations);
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": metadata,
            "spec": {
                "conversion": self.conversion,
                "group": self.group,
                "names": spelled,
                "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
                "versions": versions,
            },
            "status": {
                "acceptedNames": spelled,
                "conditions": [],
                "storedVersions": stored,
            },
        })
    }

    fn version_object(&self, version: &CrdVersion, wire: &Wire) -> Value {
        let mut out = json!({
            "name": version.name,
            "served": version.served,
            "storage": version.storage,
            "schema": {"openAPIV3Schema": version.schema_json(wire)},
        });
        let mut subresources = Map::new();
        if version.has_status {
            subresources.insert("status".into(), json!({}));
        }
        if let Some(scale) = &version.scale {
            subresources.insert("scale".into(), scale.clone());
        }
        if !subresources.is_empty() {
            out["subresources"] = subresources.into();
        }
        if !version.columns.is_empty() {
            out["additionalPrinterColumns"] = json!(version.columns);
        }
        out
    }
}

/// Definitions that every custom resource's metadata needs.
const META_DEFINITIONS: &[&str] = &[
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
];

/// Fills in a CustomResourceDefinition's defaults.
pub fn default(object: &mut Value) {
    let Some(spec) = object["spec"].as_object_mut() else {
        return;
    };
    let conversion = spec.entry("conversion").or_insert_with(|| json!({}));
    if let Some(map) = conversion.as_object_mut() {
        map.entry("strategy").or_insert_with(|| json!("None"));
    }
    let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) else {
        return;
    };
    let kind = names
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let is_empty = |value: Option<&Value>| value.and_then(Value::as_str).is_none_or(str::is_empty);
    if is_empty(names.get("singular")) {
        names.insert("singular".into(), kind.to_lowercase().into());
    }
    if is_empty(names.get("listKind")) && !kind.is_empty() {
        names.insert("listKind".into(), format!("{kind}List").into());
    }
}

/// Whether a field of the versions is the same in all of them: the real server then keeps it once,
/// beside them, and speaks of it there.
pub(super) fn is_shared(spec: &Value, field: &str) -> bool {
    let versions = spec["versions"].as_array().map(Vec::as_slice);
    let mut fields = versions.unwrap_or_default().iter().map(|one| &one[field]);
    let Some(first) = fields.next() else {
        return false;
    };
    !first.is_null() && fields.all(|other| other == first)
}

/// Where errors say that the schema of a version is.
fn schema_at(spec: &Value, position: usize) -> String {
    match is_shared(spec, "schema") {
        true => "spec.validation.openAPIV3Schema".to_owned(),
        false => format!("spec.versions[{position}].schema.openAPIV3Schema"),
    }
}

/// The newest of these versions that is newer than `than`.
fn newest<'a>(versions: &'a [String], than: &str) -> Option<&'a str> {
    let newer = versions.iter().map(String::as_str);
    newer
        .filter(|version| discovery::priority(version) > discovery::priority(than))
        .max_by_key(|version| discovery::priority(version))
}

/// What is wrong with the schema of a version.
fn schema_errors(at: &str, version: &Value) -> Vec<FieldError> {
    let schema = &version["schema"]["openAPIV3Schema"];
    if !schema.is_object() {
        return Vec::new();
    }
    let status = match version["subresources"]["status"].is_object() {
        true => structure::Status::Apart,
        false => structure::Status::Within,
    };
    structure::check(schema, at, status)
}

/// Warnings about formats that nobody checks, as far as they are new.
pub(crate) fn odd_formats(object: &Value, old: Option<&Value>) -> Vec<String> {
    let formats = |object: &Value| {
        let mut found = Vec::new();
        for version in object["spec"]["versions"].as_array().into_iter().flatten() {
            collect_formats(&version["schema"]["openAPIV3Schema"], 0, &mut found);
        }
        found
    };
    let known = old.map(formats).unwrap_or_default();
    formats(object)
        .into_iter()
        .filter(|format| !schema::is_known_format(format) && !known.contains(format))
        .map(|format| format!("unrecognized format {format:?}"))
        .collect()
}

fn collect_formats(schema: &Value, depth: usize, found: &mut Vec<String>) {
    if depth > 60 {
        return;
    }
    if let Some(format) = schema["format"].as_str().filter(|one| !one.is_empty()) {
        found.push(format.to_owned());
    }
    for inner in schema["properties"]
        .as_object()
        .into_iter()
        .flat_map(Map::values)
    {
        collect_formats(inner, depth + 1, found);
    }
    for name in ["items", "additionalProperties", "not"] {
        if schema[name].is_object() {
            collect_formats(&schema[name], depth + 1, found);
        }
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        for inner in schema[name].as_array().into_iter().flatten() {
            collect_formats(inner, depth + 1, found);
        }
    }
}
