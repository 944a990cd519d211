//! Fills the registry: built-in resources from the wire data, custom ones from their definitions.

use api::kind::KINDS;

use crate::crd::Crd;
use crate::registry::{Registry, Resource, Scope, Source, Subresource, Version};
use crate::select::SELECTABLE;
use crate::wire::{ResourceRow, Wire};

/// What custom resources can do.
const CUSTOM_VERBS: &[&str] = &[
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];
/// What their `status` and `scale` can do.
const CUSTOM_SUB_VERBS: &[&str] = &["get", "patch", "update"];

/// The registry of everything built in.
pub(crate) fn built_in(wire: &Wire) -> Registry {
    let mut rows: Vec<Resource> = Vec::new();
    for row in wire.resources() {
        if row.subresource().is_none() {
            add_version(&mut rows, row);
        }
    }
    for row in wire.resources() {
        if let Some(name) = row.subresource() {
            add_subresource(&mut rows, row, name);
        }
    }
    Registry::new(rows)
}

fn add_version(rows: &mut Vec<Resource>, row: &ResourceRow) {
    let version = Version {
        name: row.version.as_str().into(),
        verbs: boxed(&row.verbs),
        subresources: Vec::new(),
    };
    if let Some(known) = rows
        .iter_mut()
        .find(|known| *known.group == *row.group && *known.plural == *row.name)
    {
        known.versions.push(version);
        return;
    }
    let shelf = match (&*row.group, &*row.name) {
        ("events.k8s.io", "events") => "/events".to_owned(),
        (group, plural) => format!("{group}/{plural}"),
    };
    rows.push(Resource {
        group: row.group.as_str().into(),
        plural: row.name.as_str().into(),
        singular: row.singular_name.as_str().into(),
        kind: row.kind.as_str().into(),
        list_kind: format!("{}List", row.kind).into(),
        scope: scope(row.namespaced),
        storage_version: row.version.as_str().into(),
        versions: vec![version],
        short_names: boxed(&row.short_names),
        categories: boxed(&row.categories),
        source: Source::BuiltIn,
        known: known(&row.group, &row.kind),
        selectable: SELECTABLE
            .iter()
            .find(|(name, _)| *name == shelf)
            .map(|(_, fields)| fields.iter().map(|field| field.name.into()).collect())
            .unwrap_or_default(),
        shelf: shelf.into(),
        served: true,
    });
}

fn add_subresource(rows: &mut [Resource], row: &ResourceRow, name: &str) {
    let version = rows
        .iter_mut()
        .find(|known| *known.group == *row.group && *known.plural == *row.resource())
        .and_then(|known| {
            known
                .versions
                .iter_mut()
                .find(|version| *version.name == *row.version)
        });
    if let Some(version) = version {
        version.subresources.push(Subresource {
            name: name.into(),
            kind: row.kind.as_str().into(),
            foreign: row
                .object
                .as_ref()
                .map(|object| (object.group.as_str().into(), object.version.as_str().into())),
            verbs: boxed(&row.verbs),
        });
    }
}

/// The row of a definition.
pub(crate) fn custom(crd: &Crd) -> Resource {
    let versions: Vec<Version> = crd
        .versions
        .iter()
        .filter(|version| version.served)
        .map(|version| {
            let mut subresources = Vec::new();
            if version.has_status {
                subresources.push(Subresource {
                    name: "status".into(),
                    kind: crd.names.kind.as_str().into(),
                    foreign: None,
                    verbs: literal(CUSTOM_SUB_VERBS),
                });
            }
            if version.scale.is_some() {
                subresources.push(Subresource {
                    name: "scale".into(),
                    kind: "Scale".into(),
                    foreign: Some(("autoscaling".into(), "v1".into())),
                    verbs: literal(CUSTOM_SUB_VERBS),
                });
            }
            Version {
                name: version.name.as_str().into(),
                verbs: literal(CUSTOM_VERBS),
                subresources,
            }
        })
        .collect();
    let storage = crd.versions.iter().find(|version| version.storage);
    Resource {
        group: crd.group.as_str().into(),
        plural: crd.names.plural.as_str().into(),
        singular: crd.names.singular.as_str().into(),
        kind: crd.names.kind.as_str().into(),
        list_kind: crd.names.list_kind.as_str().into(),
        scope: scope(crd.namespaced),
        versions,
        storage_version: storage.map_or("", |version| &version.name).into(),
        short_names: boxed(&crd.names.short_names),
        categories: boxed(&crd.names.categories),
        source: Source::Custom,
        known: known(&crd.group, &crd.names.kind),
        selectable: storage.map_or_else(Vec::new, |version| boxed(&version.selectable)),
        shelf: format!("{}/{}", crd.group, crd.names.plural).into(),
        served: true,
    }
}

/// Discovery's rows of a custom resource.
pub(crate) fn discovery_rows(resource: &Resource) -> Vec<ResourceRow> {
    let mut rows = Vec::new();
    for version in &resource.versions {
        rows.push(ResourceRow {
            group: resource.group.to_string(),
            version: version.name.to_string(),
            name: resource.plural.to_string(),
            kind: resource.kind.to_string(),
            namespaced: resource.is_namespaced(),
            verbs: owned(&version.verbs),
            singular_name: resource.singular.to_string(),
            short_names: owned(&resource.short_names),
            categories: owned(&resource.categories),
            object: None,
            stored: Some(resource.storage_version.to_string()),
        });
        for sub in &version.subresources {
            rows.push(ResourceRow {
                group: resource.group.to_string(),
                version: version.name.to_string(),
                name: format!("{}/{}", resource.plural, sub.name),
                kind: sub.kind.to_string(),
                namespaced: resource.is_namespaced(),
                verbs: owned(&sub.verbs),
                singular_name: String::new(),
                short_names: Vec::new(),
                categories: Vec::new(),
                object: sub
                    .foreign
                    .as_ref()
                    .map(|(group, version)| crate::wire::GroupVersion {
                        group: group.to_string(),
                        version: version.to_string(),
                    }),
                stored: Some(resource.storage_version.to_string()),
            });
        }
    }
    rows
}

fn scope(namespaced: bool) -> Scope {
    if namespaced {
        Scope::Namespaced
    } else {
        Scope::Cluster
    }
}

fn known(group: &str, kind: &str) -> Option<api::kind::Kind> {
    KINDS
        .iter()
        .find(|row| row.group == group && row.name == kind)
        .map(|row| row.kind)
}

fn boxed(texts: &[String]) -> Vec<Box<str>> {
    texts.iter().map(|text| text.as_str().into()).collect()
}

fn literal(texts: &[&str]) -> Vec<Box<str>> {
    texts.iter().map(|text| (*text).into()).collect()
}

fn owned(texts: &[Box<str>]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}
