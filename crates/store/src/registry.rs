//! The one list of what this API serves: built-in kinds from `wire/`, custom ones as their
//! definitions come and go. Everything that differs between kinds is a field of a row here or a
//! function looked up by it; there is one handler for all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::kind::Kind;

/// Names a row of the registry for the life of this store. Rows are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceId(pub u32);

/// Where a row came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Kubernetes itself.
    BuiltIn,
    /// A CustomResourceDefinition.
    Custom,
}

/// Whether objects live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One set for the whole plane.
    Cluster,
    /// One set a namespace.
    Namespaced,
}

/// One resource: a group and a plural name, with its versions.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// API group, empty for the core group.
    pub group: Box<str>,
    /// `pods`.
    pub plural: Box<str>,
    /// `pod`.
    pub singular: Box<str>,
    /// `Pod`.
    pub kind: Box<str>,
    /// `PodList`.
    pub list_kind: Box<str>,
    /// Where objects live.
    pub scope: Scope,
    /// Served versions, the preferred one first.
    pub versions: Vec<Version>,
    /// The version that is stored.
    pub storage_version: Box<str>,
    /// `po`.
    pub short_names: Vec<Box<str>>,
    /// `all`.
    pub categories: Vec<Box<str>>,
    /// Who defined it.
    pub source: Source,
    /// The kind by which our own rooms know it.
    pub known: Option<Kind>,
    /// Fields that a field selector may name, in the order of [`crate::entry::Entry::fields`].
    pub selectable: Vec<Box<str>>,
    /// `group/plural` of the objects: another resource's where two share one storage.
    pub shelf: Box<str>,
    /// Whether it is served now; a removed definition leaves its row behind.
    pub served: bool,
}

/// One served version of a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// `v1`.
    pub name: Box<str>,
    /// What discovery says can be done.
    pub verbs: Vec<Box<str>>,
    /// `status`, `scale`, `binding` …
    pub subresources: Vec<Subresource>,
}

/// One subresource of a version.
#[derive(Clone, Debug, PartialEq)]
pub struct Subresource {
    /// `status`.
    pub name: Box<str>,
    /// Kind of its objects.
    pub kind: Box<str>,
    /// Group and version of that kind where they differ from the resource's.
    pub foreign: Option<(Box<str>, Box<str>)>,
    /// What can be done.
    pub verbs: Vec<Box<str>>,
}

impl Resource {
    /// The version of that name, if it is served.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| &*version.name == name)
    }

    /// `v1` or `group/version`.
    pub fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() {
            version.to_owned()
        } else {
            format!("{}/{version}", self.group)
        }
    }

    /// The group whose shape is stored.
    pub fn shelf_group(&self) -> &str {
        self.shelf.split_once('/').map_or("", |(group, _)| group)
    }

    /// The type of one object in the real server's program, as some of its answers show it.
    pub(crate) fn go_kind(&self) -> String {
        match self.go_package() {
            Some(package) => format!("{package}.{}", self.kind),
            None => "unstructured.Unstructured".to_owned(),
        }
    }

    /// The same of a list.
    pub(crate) fn go_list_kind(&self) -> String {
        match self.go_package() {
            Some(package) => format!("{package}.{}", self.list_kind),
            None => "unstructured.UnstructuredList".to_owned(),
        }
    }

    /// Where the real server's program has the type; none if it knows it from a definition only.
    fn go_package(&self) -> Option<&str> {
        let group = self.shelf_group();
        match group.split_once('.') {
            None if group.is_empty() => Some("core"),
            None => Some(group),
            Some((package, rest)) if rest.ends_with("k8s.io") && self.source == Source::BuiltIn => {
                Some(package)
            }
            Some(_) => None,
        }
    }

    /// Whether objects live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }
}

impl Version {
    /// The subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| &*sub.name == name)
    }

    /// Whether discovery lists the verb.
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|allowed| &**allowed == verb)
    }
}

/// All resources, served or once served.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    rows: Vec<Arc<Resource>>,
    /// Plural name, then group: every request asks, and names differ in their first letters.
    by_name: BTreeMap<Box<str>, Vec<(Box<str>, ResourceId)>>,
}

impl Registry {
    /// A registry of these rows.
    pub fn new(rows: Vec<Resource>) -> Registry {
        let mut registry = Registry::default();
        for row in rows {
            registry.put(row);
        }
        registry
    }

    /// Adds a row or replaces the one of the same group and plural.
    pub fn put(&mut self, row: Resource) -> ResourceId {
        let namesakes = self.by_name.entry(row.plural.clone()).or_default();
        if let Some((_, id)) = namesakes.iter().find(|(group, _)| *group == row.group) {
            self.rows[id.0 as usize] = Arc::new(row);
            return *id;
        }
        let id = ResourceId(u32::try_from(self.rows.len()).expect("fewer than 2^32 definitions"));
        namesakes.push((row.group.clone(), id));
        self.rows.push(Arc::new(row));
        id
    }

    /// Stops serving a row.
    pub fn retire(&mut self, group: &str, plural: &str) {
        if let Some(id) = self.find(group, plural) {
            Arc::make_mut(&mut self.rows[id.0 as usize]).served = false;
        }
    }

    /// The row of an id.
    pub fn row(&self, id: ResourceId) -> &Arc<Resource> {
        &self.rows[id.0 as usize]
    }

    /// The served row of a group and plural.
    pub fn find(&self, group: &str, plural: &str) -> Option<ResourceId> {
        let namesakes = self.by_name.get(plural)?;
        let (_, id) = namesakes.iter().find(|(known, _)| **known == *group)?;
        self.row(*id).served.then_some(*id)
    }

    /// The row of a kind that our own rooms know.
    pub fn known(&self, kind: Kind) -> Option<ResourceId> {
        self.find(kind.row().group, kind.row().plural)
    }

    /// How many rows there are, served or not.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All served rows, in the order in which they were added.
    pub fn served(&self) -> impl Iterator<Item = (ResourceId, &Arc<Resource>)> {
        self.rows
            .iter()
            .enumerate()
            .filter(|(_, row)| row.served)
            .map(|(index, row)| (ResourceId(index as u32), row))
    }

    /// The served resource that is kept under this name.
    pub fn shelved(&self, shelf: &str) -> Option<(ResourceId, &Arc<Resource>)> {
        self.served().find(|(_, row)| *row.shelf == *shelf)
    }
}
