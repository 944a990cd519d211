//! Custom resource definitions: the ones we bring and the ones that users register.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::cel::Rules;
use crate::field::{self, FieldError};
use crate::schema::{self, Compiler, Schema};
use crate::table::PrinterColumn;
use crate::wire::Wire;

/// A custom resource definition, ready to serve.
#[derive(Clone, Debug)]
pub struct Crd {
    /// API group.
    pub group: String,
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

/// A definition as the wire folder spells it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CrdRow {
    /// API group.
    pub group: String,
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
            let rules = Rules::compile(&version.schema, "").expect("a test compiles every rule");
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
        let versions = row
            .versions
            .into_iter()
            .zip(schemas)
            .map(|(version, schema)| CrdVersion {
                deprecation: version.deprecated.then(|| {
                    version.deprecation_warning.unwrap_or_else(|| {
                        format!("{group}/{} {} is deprecated", version.name, names.kind)
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
            names,
            namespaced: row.scope == "Namespaced",
            versions,
            conversion,
            since: 0,
        }
    }

    /// Reads a user's CustomResourceDefinition object, already defaulted by [`default`].
    ///
    /// # Errors
    /// What is wrong with it, by field.
    pub fn from_object(object: &Value, wire: &Wire) -> Result<Crd, Vec<FieldError>> {
        let mut errors = validate(object);
        if !errors.is_empty() {
            return Err(errors);
        }
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
            let at = format!("spec.versions[{position}].schema.openAPIV3Schema");
            let root = compiler.custom_root(&source);
            errors.extend(compiler.take_errors().into_iter().map(|mut error| {
                error.field = field::child(&at, &error.field);
                error
            }));
            match Rules::compile(&source, &at) {
                Ok(rules) => roots.push((root, rules)),
                Err(more) => errors.extend(more),
            }
            version["schema"] = source;
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let (_, schemas) = compiler.finish_with(roots);
        let row: CrdRow = serde_json::from_value(spec)
            .map_err(|cause| vec![FieldError::invalid("spec", "", cause.to_string())])?;
        Ok(Crd::from_row(row, &mut schemas.into_iter()))
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
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{}.{}", names.plural, self.group)},
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
    if is_empty(names.get("listKind")) {
        names.insert("listKind".into(), format!("{kind}List").into());
    }
}

/// Checks a CustomResourceDefinition's own fields (its schemas are checked when compiled).
pub fn validate(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &object["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    let wanted = format!("{plural}.{group}");
    let name = text(&object["metadata"]["name"]);
    if name != wanted {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", name, detail));
    }
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push(FieldError::invalid("spec.group", group, detail));
    }
    for part in ["plural", "kind"] {
        if text(&spec["names"][part]).is_empty() {
            errors.push(FieldError::required(&format!("spec.names.{part}"), ""));
        }
    }
    match spec["scope"].as_str() {
        None | Some("") => errors.push(FieldError::required("spec.scope", "")),
        Some("Cluster" | "Namespaced") => {}
        Some(other) => {
            let known = ["Cluster", "Namespaced"];
            errors.push(FieldError::not_supported("spec.scope", other, &known));
        }
    }
    let versions = spec["versions"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let stored = versions
        .iter()
        .filter(|version| version["storage"] == true)
        .count();
    if stored != 1 {
        errors.push(FieldError::invalid(
            "spec.versions",
            Value::Array(
                versions
                    .iter()
                    .map(|version| version["name"].clone())
                    .collect(),
            ),
            "must have exactly one version marked as storage version",
        ));
    }
    for (position, version) in versions.iter().enumerate() {
        let at = format!("spec.versions[{position}]");
        if text(&version["name"]).is_empty() {
            errors.push(FieldError::required(&field::child(&at, "name"), ""));
        }
        let schema = &version["schema"]["openAPIV3Schema"];
        let schema_at = field::child(&at, "schema.openAPIV3Schema");
        if !schema.is_object() {
            errors.push(FieldError::required(&schema_at, "schemas are required"));
        } else if schema["type"] != "object" {
            let type_at = field::child(&schema_at, "type");
            let detail = "must be object at the root";
            errors.push(FieldError::required(&type_at, detail));
        }
    }
    errors
}
