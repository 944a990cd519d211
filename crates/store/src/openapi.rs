//! OpenAPI v3: the index and one document a group version, made when they are asked for.
//!
//! Enough for kubectl's validation, `create`, `apply` and `explain`: every schema that the version's
//! kinds reach, and paths whose PATCH names kind and `fieldValidation`.

pub mod v2;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::crd::Crd;
use crate::patching::{BUILT_IN_TYPES, CUSTOM_TYPES};
use crate::wire::{ResourceRow, Wire};

/// `/openapi/v3`: one address a group version. `revision` changes when any definition does.
pub fn index(rows: &[ResourceRow], revision: u64) -> Value {
    let mut paths = BTreeMap::new();
    for row in rows {
        let path = root(&row.group, &row.version);
        let url = format!("/openapi/v3/{path}?hash={}", tag(&path, revision));
        paths.insert(path, json!({ "serverRelativeURL": url }));
    }
    json!({ "paths": paths })
}

/// `api/v1` or `apis/batch/v1`.
fn root(group: &str, version: &str) -> String {
    match group {
        "" => format!("api/{version}"),
        _ => format!("apis/{group}/{version}"),
    }
}

/// What tells one state of a document from another: which document, of which program, with which
/// definitions.
pub(crate) fn tag(path: &str, revision: u64) -> String {
    let program = env!("CARGO_PKG_VERSION");
    crate::digest::hex(format!("{path} {program} {revision}").as_bytes())
}

/// The document of one group version; `None` where nothing is served.
///
/// `rows` are the served resources, `crds` the definitions among them.
pub fn document<'a>(
    wire: &Wire,
    rows: &[ResourceRow],
    crds: impl Iterator<Item = &'a Crd>,
    group: &str,
    version: &str,
) -> Option<Value> {
    let rows: Vec<&ResourceRow> = rows
        .iter()
        .filter(|row| row.group == group && row.version == version)
        .collect();
    if rows.is_empty() {
        return None;
    }
    let mut schemas = Map::new();
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    for row in &rows {
        let (group, version) = match &row.object {
            Some(object) => (object.group.as_str(), object.version.as_str()),
            None => (group, version),
        };
        for kind in [row.kind.clone(), format!("{}List", row.kind)] {
            wanted.extend(
                wire.definition_name(group, version, &kind)
                    .map(str::to_owned),
            );
        }
    }
    for name in SHARED {
        wanted.insert(format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}"));
    }
    for crd in crds.filter(|crd| crd.group == group) {
        for served in crd.versions.iter().filter(|served| served.name == version) {
            let schema = custom_schema(crd, version, served.schema_json(wire));
            schemas.insert(custom_name(&crd.group, version, &crd.names.kind), schema);
        }
    }
    add_reachable(wire, wanted, &mut schemas);
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths(&rows, wire, &schemas),
        "components": {"schemas": schemas},
    }))
}

/// Types that every document has.
const SHARED: &[&str] = &["DeleteOptions", "ObjectMeta", "Status"];

fn add_reachable(wire: &Wire, mut wanted: BTreeSet<String>, schemas: &mut Map<String, Value>) {
    while let Some(name) = wanted.pop_first() {
        if schemas.contains_key(&name) {
            continue;
        }
        if let Some(schema) = wire.definition(&name) {
            let schema = with_component_refs(schema, &mut wanted);
            schemas.insert(name, schema);
        }
    }
}

/// The kind whose words about `apiVersion`, `kind` and `metadata` are everybody's.
const EXEMPLAR: &str = "io.k8s.api.core.v1.Pod";

/// Puts texts (see [`crate::Settings::prose`]) into a document.
///
/// The whole is looked through once a document: documents are kept, and nothing else is.
pub fn describe(document: &mut Value, prose: &str) {
    let Some(schemas) = document
        .pointer_mut("/components/schemas")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    for (name, texts) in prose.lines().filter_map(|line| line.split_once('\t')) {
        if !schemas.contains_key(name) && name != EXEMPLAR {
            continue;
        }
        let texts: Map<String, Value> = serde_json::from_str(texts).unwrap_or_default();
        if let Some(schema) = schemas.get_mut(name) {
            for (field, text) in &texts {
                say(schema, field, text);
            }
        }
        if name == EXEMPLAR {
            let custom = schemas.values_mut().filter(|schema| is_kind(schema));
            for schema in custom {
                for field in ["apiVersion", "kind", "metadata"] {
                    say(schema, field, texts.get(field).unwrap_or(&Value::Null));
                }
            }
        }
    }
}

/// Whether a schema is that of objects, not of their parts or of lists.
fn is_kind(schema: &Value) -> bool {
    let names = &schema["x-kubernetes-group-version-kind"];
    names.is_array() && schema["properties"]["items"].is_null()
}

/// Says something of a field (or, where it has no name, of the whole), unless something is said.
fn say(schema: &mut Value, field: &str, text: &Value) {
    let place = match field {
        "" => Some(schema),
        _ => schema["properties"].get_mut(field),
    };
    let Some(Value::Object(place)) = place else {
        return;
    };
    if text.is_null() || place.contains_key("description") {
        return;
    }
    // A reference has no neighbours.
    if let Some(reference) = place.remove("$ref") {
        place.insert("allOf".into(), json!([{ "$ref": reference }]));
    }
    place.insert("description".into(), text.clone());
}

/// References become component references; those with neighbours stand in an `allOf`.
fn with_component_refs(schema: Value, wanted: &mut BTreeSet<String>) -> Value {
    match schema {
        Value::Array(list) => list
            .into_iter()
            .map(|inner| with_component_refs(inner, wanted))
            .collect(),
        Value::Object(mut map) => {
            let Some(name) = map.get("$ref").and_then(Value::as_str).map(str::to_owned) else {
                return map
                    .into_iter()
                    .map(|(key, inner)| (key, with_component_refs(inner, wanted)))
                    .collect::<Map<_, _>>()
                    .into();
            };
            let reference = json!({"$ref": format!("#/components/schemas/{name}")});
            wanted.insert(name);
            map.remove("$ref");
            if map.is_empty() {
                return reference;
            }
            map.insert("allOf".into(), json!([reference]));
            Value::Object(map)
        }
        other => other,
    }
}

/// `sh.volcano.batch.v1alpha1.Job`: the group's labels backwards.
fn custom_name(group: &str, version: &str, kind: &str) -> String {
    let labels: Vec<&str> = group.split('.').rev().collect();
    format!("{}.{version}.{kind}", labels.join("."))
}

fn custom_schema(crd: &Crd, version: &str, mut schema: Value) -> Value {
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    schema["properties"]["apiVersion"] = json!({"type": "string"});
    schema["properties"]["kind"] = json!({"type": "string"});
    schema["properties"]["metadata"] = json!({"allOf": [
        {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
    ]});
    schema["x-kubernetes-group-version-kind"] = json!([
        {"group": crd.group, "version": version, "kind": crd.names.kind},
    ]);
    schema
}

fn paths(rows: &[&ResourceRow], wire: &Wire, schemas: &Map<String, Value>) -> Map<String, Value> {
    let mut paths = Map::new();
    for row in rows {
        let base = match row.namespaced {
            true => format!(
                "/{}/namespaces/{{namespace}}",
                root(&row.group, &row.version)
            ),
            false => format!("/{}", root(&row.group, &row.version)),
        };
        let (one, all) = match row.subresource() {
            Some(sub) => (format!("{base}/{}/{{name}}/{sub}", row.resource()), None),
            None => (
                format!("{base}/{}/{{name}}", row.name),
                Some(format!("{base}/{}", row.name)),
            ),
        };
        const ONE: &[(&str, &str)] = &[
            ("get", "get"),
            ("put", "update"),
            ("patch", "patch"),
            ("delete", "delete"),
        ];
        const ALL: &[(&str, &str)] = &[
            ("get", "list"),
            ("post", "create"),
            ("delete", "deletecollection"),
        ];
        const SUB: &[(&str, &str)] = &[
            ("get", "get"),
            ("put", "update"),
            ("patch", "patch"),
            ("post", "create"),
        ];
        let methods = if row.subresource().is_some() {
            SUB
        } else {
            ONE
        };
        paths.insert(one, operations(row, wire, schemas, methods));
        if let Some(all) = all {
            paths.insert(all, operations(row, wire, schemas, ALL));
        }
    }
    paths
}

fn operations(
    row: &ResourceRow,
    wire: &Wire,
    schemas: &Map<String, Value>,
    methods: &[(&str, &str)],
) -> Value {
    let (group, version) = match &row.object {
        Some(object) => (&object.group, &object.version),
        None => (&row.group, &row.version),
    };
    let gvk = json!({"group": group, "version": version, "kind": row.kind});
    let name = match wire.definition_name(group, version, &row.kind) {
        Some(name) => name.to_owned(),
        None => custom_name(group, version, &row.kind),
    };
    // Options of subresources (`pods/exec`) have no schema.
    let schema = match schemas.contains_key(&name) {
        true => json!({"$ref": format!("#/components/schemas/{name}")}),
        false => json!({"type": "object"}),
    };
    let mut out = Map::new();
    for (method, verb) in methods {
        if !row.verbs.iter().any(|known| known == verb) {
            continue;
        }
        let action = if *verb == "create" { "post" } else { *verb };
        let action = if *verb == "update" { "put" } else { action };
        let mut operation = json!({
            "responses": {"200": {
                "description": "OK",
                "content": {"application/json": {"schema": schema}},
            }},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk,
        });
        if matches!(*verb, "create" | "patch" | "update") {
            operation["parameters"] = parameters();
        }
        if *verb == "patch" {
            let is_custom = wire.definition_name(group, version, &row.kind).is_none();
            let types = if is_custom {
                CUSTOM_TYPES
            } else {
                BUILT_IN_TYPES
            };
            operation["requestBody"] = patch_body(types);
        }
        out.insert((*method).to_owned(), operation);
    }
    Value::Object(out)
}

/// The media types of a patch: kubectl looks here for whether it may merge lists by their keys.
fn patch_body(types: &[&str]) -> Value {
    let content: Map<String, Value> = types
        .iter()
        .map(|media| ((*media).to_owned(), json!({"schema": {"type": "object"}})))
        .collect();
    json!({"content": content, "required": true})
}

fn parameters() -> Value {
    let parameter = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    json!([
        parameter("dryRun"),
        parameter("fieldManager"),
        parameter("fieldValidation"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_of_a_document_leads_somewhere() {
        let wire = Wire::load();
        let mut rows = wire.resources().to_vec();
        rows.push(ResourceRow {
            group: "batch.volcano.sh".into(),
            version: "v1alpha1".into(),
            name: "jobs".into(),
            kind: "Job".into(),
            namespaced: true,
            verbs: vec!["create".into(), "patch".into()],
            ..wire.resources()[0].clone()
        });
        let versions: BTreeSet<(String, String)> = rows
            .iter()
            .map(|row| (row.group.clone(), row.version.clone()))
            .collect();
        for (group, version) in versions {
            let document = document(&wire, &rows, wire.crds().iter(), &group, &version).unwrap();
            let schemas = document["components"]["schemas"].as_object().unwrap();
            let text = document.to_string();
            for part in text.split("\"#/components/schemas/").skip(1) {
                let name = part.split('"').next().unwrap();
                assert!(schemas.contains_key(name), "{group}/{version}: {name}");
            }
        }
    }

    #[test]
    fn a_document_tells_what_is_known_of_its_kinds_and_keeps_what_definitions_say() {
        let wire = Wire::load();
        let mut document = document(&wire, wire.resources(), wire.crds().iter(), "", "v1").unwrap();
        let schemas = document.pointer_mut("/components/schemas").unwrap();
        let own = json!({
            "description": "own",
            "properties": {"kind": {"type": "string"}, "spec": {"description": "own spec"}},
            "x-kubernetes-group-version-kind": [{}],
        });
        schemas["org.example.v1.Thing"] = own;
        let prose = concat!(
            "io.k8s.api.core.v1.Pod\t{\"\":\"a pod\",\"kind\":\"a kind\",\"spec\":\"its spec\"}\n",
            "io.k8s.api.core.v1.PodOS\t{\"name\":\"a \\\"name\\\"\",\"nothing\":\"x\"}\n",
            "io.k8s.api.unknown.v1.Thing\t{}\n",
        );
        describe(&mut document, prose);
        let at = |path: &str| &document["components"]["schemas"][path];
        let pod = at("io.k8s.api.core.v1.Pod");
        assert_eq!(pod["description"], "a pod");
        let spec = &pod["properties"]["spec"];
        assert_eq!(spec["description"], "its spec");
        assert!(
            spec["$ref"].is_null() && spec["allOf"][0]["$ref"].is_string(),
            "{spec}"
        );
        let os = &at("io.k8s.api.core.v1.PodOS")["properties"];
        assert_eq!(os["name"]["description"], "a \"name\"");
        assert!(os["nothing"].is_null());
        let thing = at("org.example.v1.Thing");
        assert_eq!(thing["description"], "own");
        assert_eq!(thing["properties"]["spec"]["description"], "own spec");
        assert_eq!(thing["properties"]["kind"]["description"], "a kind");
    }

    #[test]
    fn patch_operations_name_kind_and_field_validation() {
        let wire = Wire::load();
        let document = document(&wire, wire.resources(), wire.crds().iter(), "", "v1").unwrap();
        let patch = &document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Pod");
        let parameters = patch["parameters"].as_array().unwrap();
        assert!(
            parameters
                .iter()
                .any(|parameter| parameter["name"] == "fieldValidation")
        );
        let strategic = "application/strategic-merge-patch+json";
        assert!(patch["requestBody"]["content"][strategic].is_object());
    }
}
