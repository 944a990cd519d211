//! The wire data: built-in schemas, resources, columns, protobuf messages and the CRDs we bring.
//!
//! Parsed once into a [`Wire`] value that the store holds; nothing here is global.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::access::FirstAccess;
use crate::crd::{Crd, CrdRow};
use crate::protobuf::Messages;
use crate::schema::{Compiler, Schema};
use crate::store::NativeGroups;
use crate::table::Column;

const SCHEMAS: &str = include_str!("../wire/kubernetes/schemas.jsonl");
const PROTOBUF: &str = include_str!("../wire/kubernetes/protobuf.jsonl");
const ZEROES: &str = include_str!("../wire/kubernetes/zeroes.jsonl");
const DOCUMENT: &str = include_str!(concat!(env!("OUT_DIR"), "/wire.json"));

/// The API groups of ours whose CRDs are served from the start. The other CRDs in the
/// wire data wait for their features.
pub const SERVED_GROUPS: &[&str] = &[
    "batch.volcano.sh",
    "bus.volcano.sh",
    "config.volcano.sh",
    "flow.volcano.sh",
    "nodeinfo.volcano.sh",
    "scheduling.volcano.sh",
    "shard.volcano.sh",
    "snapshot.storage.k8s.io",
    "topology.volcano.sh",
];

/// Kubernetes' own groups of pods, served where that is wished for.
pub(crate) const NATIVE_GROUP: &str = "scheduling.k8s.io";

/// One line of discovery: a resource or a subresource.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRow {
    /// API group, empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// `pods`, or `pods/status` for a subresource.
    pub name: String,
    /// Kind of the bodies.
    pub kind: String,
    /// Lives in a namespace.
    pub namespaced: bool,
    /// Verbs, sorted.
    pub verbs: Vec<String>,
    /// Singular name; empty for subresources.
    #[serde(default)]
    pub singular_name: String,
    /// Short names.
    #[serde(default)]
    pub short_names: Vec<String>,
    /// Categories such as `all`.
    #[serde(default)]
    pub categories: Vec<String>,
    /// Group and version of the body, where they differ from the resource's.
    #[serde(default)]
    pub object: Option<GroupVersion>,
    /// The version that its objects are stored in, where a definition says so.
    #[serde(default)]
    pub stored: Option<String>,
}

impl ResourceRow {
    /// `pods` of `pods/status`.
    pub fn resource(&self) -> &str {
        self.name
            .split_once('/')
            .map_or(self.name.as_str(), |(resource, _)| resource)
    }

    /// `status` of `pods/status`.
    pub fn subresource(&self) -> Option<&str> {
        self.name
            .split_once('/')
            .map(|(_, subresource)| subresource)
    }
}

/// A group and a version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct GroupVersion {
    /// API group, empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
}

/// Everything that the wire folder says, parsed.
#[derive(Debug)]
pub struct Wire {
    access: FirstAccess,
    resources: Vec<ResourceRow>,
    columns: BTreeMap<String, Vec<Column>>,
    messages: Messages,
    crds: Vec<Crd>,
    /// Kind → its groups and versions: every request asks, and kinds differ in their first letters.
    kinds: BTreeMap<String, Vec<Defined>>,
    /// Definition name → its line, decoded only for OpenAPI documents.
    lines: BTreeMap<&'static str, &'static str>,
    /// Definition name → its place among the compiled schemas.
    places: BTreeMap<String, usize>,
    schemas: Vec<Schema>,
}

/// Where a kind of one group and version is defined.
#[derive(Debug)]
struct Defined {
    group: String,
    version: String,
    name: &'static str,
    /// Its place among the compiled schemas.
    schema: Option<usize>,
}

#[derive(Deserialize)]
struct Document {
    access: FirstAccess,
    columns: BTreeMap<String, Vec<Column>>,
    resources: Vec<ResourceRow>,
    crds: Vec<CrdRow>,
}

/// Alpha versions are off, as they are by default in the real server: its alpha PodGroup would take
/// the name `podgroups` from Volcano's.
fn is_on(row: &ResourceRow) -> bool {
    !row.version.contains("alpha")
}

impl Wire {
    /// Parses the data that came with this build.
    ///
    /// # Panics
    /// Only if the data in the build itself is broken, which a test rules out.
    pub fn load() -> Wire {
        Wire::with(NativeGroups::Absent)
    }

    /// The same, with or without Kubernetes' own groups of pods.
    ///
    /// # Panics
    /// Only if the data in the build itself is broken, which a test rules out.
    pub fn with(native: NativeGroups) -> Wire {
        let document: Document = serde_json::from_str(DOCUMENT).expect("the build wrote it");
        let mut lines = BTreeMap::new();
        let mut kinds: BTreeMap<String, Vec<Defined>> = BTreeMap::new();
        let mut compiler = Compiler::default();
        for line in ZEROES.lines().filter(|line| !line.is_empty()) {
            let (name, fields) = definition(line);
            let fields = fields["zero"].as_array().into_iter().flatten();
            let fields = fields
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            // Messages stand under `k8s.io`, definitions under `io.k8s`.
            compiler.define_zeroes(&name.replacen("k8s.io.", "io.k8s.", 1), fields);
        }
        for line in SCHEMAS.lines().filter(|line| !line.is_empty()) {
            let (name, schema) = definition(line);
            lines.insert(name, line);
            if let Some(rows) = schema["x-kubernetes-group-version-kind"].as_array() {
                for row in rows {
                    let part = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
                    // Types that every group shares (DeleteOptions, WatchEvent) name many.
                    kinds.entry(part("kind")).or_default().push(Defined {
                        group: part("group"),
                        version: part("version"),
                        name,
                        schema: None,
                    });
                }
            }
            compiler.define(name, schema);
        }
        let rows = document.crds.into_iter();
        let rows = rows
            .filter(|row| {
                let is_native = row.group == NATIVE_GROUP && native == NativeGroups::Served;
                SERVED_GROUPS.contains(&row.group.as_str()) || is_native
            })
            .collect();
        let (crds, compiled) = Crd::shipped(rows, compiler);
        let (mut places, mut schemas) = (BTreeMap::new(), Vec::with_capacity(compiled.len()));
        for (name, schema) in compiled {
            places.insert(name, schemas.len());
            schemas.push(schema);
        }
        for defined in kinds.values_mut().flatten() {
            defined.schema = places.get(defined.name).copied();
            if let Some(schema) = defined.schema.and_then(|at| schemas.get_mut(at)) {
                schema.keep_zero();
            }
        }
        Wire {
            access: document.access,
            resources: document.resources.into_iter().filter(is_on).collect(),
            columns: document.columns,
            messages: Messages::parse(PROTOBUF, ZEROES),
            crds,
            kinds,
            lines,
            places,
            schemas,
        }
    }

    /// The specs of the definitions that came with this build, as they are stored, by name.
    pub(crate) fn written_specs(&self) -> BTreeMap<String, String> {
        let specs = self.crds.iter().map(|crd| {
            let spec = crd.object(self)["spec"].to_string();
            (crd.name(), spec)
        });
        specs.collect()
    }

    /// Every built-in resource and subresource, in discovery order.
    pub fn resources(&self) -> &[ResourceRow] {
        &self.resources
    }

    /// The roles and bindings that every plane has.
    pub(crate) fn first_access(&self) -> &FirstAccess {
        &self.access
    }

    /// The CRDs served from the start.
    pub fn crds(&self) -> &[Crd] {
        &self.crds
    }

    /// The Table columns of a built-in resource.
    pub fn columns(&self, group: &str, version: &str, resource: &str) -> Option<&[Column]> {
        let key = if group.is_empty() {
            format!("{version}/{resource}")
        } else {
            format!("{group}/{version}/{resource}")
        };
        self.columns.get(&key).map(Vec::as_slice)
    }

    /// The columns of all built-in tables, by `group/version/resource`.
    #[cfg(test)]
    pub(crate) fn tables(&self) -> impl Iterator<Item = (&str, &[Column])> {
        let all = self.columns.iter();
        all.map(|(resource, columns)| (resource.as_str(), columns.as_slice()))
    }

    /// The protobuf messages.
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// The name of the definition of a built-in kind: `io.k8s.api.core.v1.Pod`.
    pub fn definition_name(&self, group: &str, version: &str, kind: &str) -> Option<&str> {
        self.defined(group, version, kind)
            .map(|defined| defined.name)
    }

    fn defined(&self, group: &str, version: &str, kind: &str) -> Option<&Defined> {
        let all = self.kinds.get(kind)?;
        all.iter()
            .find(|defined| defined.version == version && defined.group == group)
    }

    /// The compiled schema of a built-in kind.
    pub fn schema(&self, group: &str, version: &str, kind: &str) -> Option<&Schema> {
        self.schemas
            .get(self.defined(group, version, kind)?.schema?)
    }

    /// The compiled schema of a definition by its name.
    pub fn schema_named(&self, name: &str) -> Option<&Schema> {
        self.schemas.get(*self.places.get(name)?)
    }

    /// The JSON of a definition, decoded now (OpenAPI documents need it, nothing else does).
    pub fn definition(&self, name: &str) -> Option<Value> {
        self.lines.get(name).map(|line| definition(line).1)
    }
}

fn definition(line: &'static str) -> (&'static str, Value) {
    let rest = line.strip_prefix("{\"").expect("a line is one object");
    let (name, rest) = rest.split_once("\":").expect("a line has one key");
    let body = rest
        .trim_end()
        .strip_suffix('}')
        .expect("a line is one object");
    (
        name,
        serde_json::from_str(body).expect("the build's schemas are JSON"),
    )
}
