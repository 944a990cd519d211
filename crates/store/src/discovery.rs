//! Discovery: what is served, in the old form (one document a group version) and the aggregated.
//!
//! Functions of the rows alone, in their order; who is served is the registry's business.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::wire::ResourceRow;

/// A version of `apidiscovery.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregated {
    /// `v2`.
    V2,
    /// `v2beta1`.
    V2Beta1,
}

impl Aggregated {
    /// The media type of the answer; clients look for its parameters.
    pub fn media_type(self) -> &'static str {
        match self {
            Aggregated::V2 => {
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            }
            Aggregated::V2Beta1 => {
                "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
            }
        }
    }

    fn api_version(self) -> &'static str {
        match self {
            Aggregated::V2 => "apidiscovery.k8s.io/v2",
            Aggregated::V2Beta1 => "apidiscovery.k8s.io/v2beta1",
        }
    }
}

/// Which half of the API: `/api` or `/apis`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The core group.
    Core,
    /// Every named group.
    Groups,
}

impl Half {
    fn has(self, row: &ResourceRow) -> bool {
        row.group.is_empty() == (self == Half::Core)
    }
}

/// `/api` or `/apis` in the aggregated form.
pub fn aggregated(rows: &[ResourceRow], half: Half, form: Aggregated) -> Value {
    let rows: Vec<&ResourceRow> = rows.iter().filter(|row| half.has(row)).collect();
    let items: Vec<Value> = groups_of(&rows)
        .into_iter()
        .map(|group| {
            let versions: Vec<Value> = versions_of(rows.iter().copied(), group)
                .into_iter()
                .map(|version| {
                    json!({
                        "version": version,
                        "resources": aggregated_resources(&rows, group, version),
                        "freshness": "Current",
                    })
                })
                .collect();
            let mut metadata = json!({});
            if !group.is_empty() {
                metadata["name"] = group.into();
            }
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": form.api_version(),
        "metadata": {},
        "items": items,
    })
}

fn aggregated_resources(rows: &[&ResourceRow], group: &str, version: &str) -> Vec<Value> {
    let of_version = || {
        rows.iter()
            .filter(|row| row.group == group && row.version == version)
    };
    of_version()
        .filter(|row| row.subresource().is_none())
        .map(|row| {
            let mut out = json!({
                "resource": row.name,
                "responseKind": response_kind(row),
                "scope": if row.namespaced { "Namespaced" } else { "Cluster" },
                "singularResource": row.singular_name,
                "verbs": row.verbs,
            });
            add_lists(row, &mut out);
            let subresources: Vec<Value> = of_version()
                .filter(|sub| sub.resource() == row.name)
                .filter_map(|sub| {
                    Some(json!({
                        "subresource": sub.subresource()?,
                        "responseKind": response_kind(sub),
                        "verbs": sub.verbs,
                    }))
                })
                .collect();
            if !subresources.is_empty() {
                out["subresources"] = subresources.into();
            }
            out
        })
        .collect()
}

fn response_kind(row: &ResourceRow) -> Value {
    let (group, version) = match (&row.object, &row.stored) {
        (Some(object), _) => (&*object.group, &*object.version),
        (None, Some(_)) => (&*row.group, &*row.version),
        // Of a built-in kind it is not said again.
        (None, None) => ("", ""),
    };
    json!({"group": group, "version": version, "kind": row.kind})
}

fn add_lists(row: &ResourceRow, out: &mut Value) {
    if !row.short_names.is_empty() {
        out["shortNames"] = json!(row.short_names);
    }
    if !row.categories.is_empty() {
        out["categories"] = json!(row.categories);
    }
}

/// `/api` in the old form.
pub fn core_versions(server_address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [
            {"clientCIDR": "0.0.0.0/0", "serverAddress": server_address},
        ],
    })
}

/// `/apis` in the old form.
pub fn groups(rows: &[ResourceRow]) -> Value {
    let rows: Vec<&ResourceRow> = rows.iter().filter(|row| Half::Groups.has(row)).collect();
    let groups: Vec<Value> = groups_of(&rows)
        .into_iter()
        .map(|group| group_body(&rows, group).into())
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>` in the old form; `None` for a group that is not served.
pub fn group(rows: &[ResourceRow], name: &str) -> Option<Value> {
    let rows: Vec<&ResourceRow> = rows
        .iter()
        .filter(|row| row.group == name && !name.is_empty())
        .collect();
    if rows.is_empty() {
        return None;
    }
    let mut body = group_body(&rows, name);
    body.insert("kind".into(), "APIGroup".into());
    body.insert("apiVersion".into(), "v1".into());
    Some(body.into())
}

fn group_body(rows: &[&ResourceRow], group: &str) -> Map<String, Value> {
    let versions: Vec<Value> = versions_of(rows.iter().copied(), group)
        .into_iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    let mut body = Map::new();
    body.insert("name".into(), group.into());
    body.insert(
        "preferredVersion".into(),
        versions.first().cloned().unwrap_or_default(),
    );
    body.insert("versions".into(), versions.into());
    body
}

/// `/api/v1` or `/apis/<group>/<version>` in the old form; `None` where nothing is served.
pub fn legacy(rows: &[ResourceRow], group: &str, version: &str) -> Option<Value> {
    let resources: Vec<Value> = rows
        .iter()
        .filter(|row| row.group == group && row.version == version)
        .map(|row| {
            let mut out = json!({
                "name": row.name,
                "singularName": row.singular_name,
                "namespaced": row.namespaced,
                "kind": row.kind,
                "verbs": row.verbs,
            });
            if let Some(object) = &row.object {
                out["group"] = object.group.as_str().into();
                out["version"] = object.version.as_str().into();
            }
            add_lists(row, &mut out);
            if let Some(hash) = storage_hash(row) {
                out["storageVersionHash"] = hash.into();
            }
            out
        })
        .collect();
    if resources.is_empty() {
        return None;
    }
    let group_version = match group {
        "" => version.to_owned(),
        _ => format!("{group}/{version}"),
    };
    let mut list = json!({
        "kind": "APIResourceList",
        "groupVersion": group_version,
        "resources": resources,
    });
    // The core group's list is older than versions of lists.
    if !group.is_empty() {
        list["apiVersion"] = json!("v1");
    }
    Some(list)
}

/// Kinds that are stored as another version or group says, by `group/plural`.
const STORED_AS: &[(&str, &str, &str)] = &[
    (
        "admissionregistration.k8s.io/mutatingadmissionpolicies",
        "admissionregistration.k8s.io",
        "v1beta1",
    ),
    (
        "admissionregistration.k8s.io/mutatingadmissionpolicybindings",
        "admissionregistration.k8s.io",
        "v1beta1",
    ),
    (
        "apiextensions.k8s.io/customresourcedefinitions",
        "apiextensions.k8s.io",
        "v1beta1",
    ),
    ("autoscaling/horizontalpodautoscalers", "autoscaling", "v2"),
    ("events.k8s.io/events", "", "v1"),
];

/// A short name of the form in which objects are stored; `None` where nothing is stored.
fn storage_hash(row: &ResourceRow) -> Option<String> {
    use base64::Engine;
    let is_stored = row.verbs.iter().any(|verb| verb == "update");
    if row.subresource().is_some() || !is_stored {
        return None;
    }
    let name = format!("{}/{}", row.group, row.name);
    let known = STORED_AS.iter().find(|(known, _, _)| *known == name);
    let (group, version) = match (known, &row.stored) {
        (Some((_, group, version)), _) => (*group, *version),
        (None, Some(version)) => (&*row.group, &**version),
        (None, None) => (&*row.group, &*row.version),
    };
    let digest = crate::digest::sha256(format!("{group}/{version}/{}", row.kind).as_bytes());
    Some(base64::engine::general_purpose::STANDARD.encode(&digest[..8]))
}

fn groups_of<'a>(rows: &[&'a ResourceRow]) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    let all = rows.iter().map(|row| row.group.as_str());
    all.filter(|group| seen.insert(*group)).collect()
}

/// The versions of a group, the preferred one first.
pub(crate) fn versions_of<'a>(
    rows: impl IntoIterator<Item = &'a ResourceRow>,
    group: &str,
) -> Vec<&'a str> {
    let mut versions: Vec<&str> = rows
        .into_iter()
        .filter(|row| row.group == group)
        .map(|row| row.version.as_str())
        .collect();
    versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
    versions.dedup();
    versions
}

/// Stable before beta before alpha, higher numbers first, other names last.
pub(crate) fn priority(version: &str) -> (u8, u64, u64, &str) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest
            .find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(rest.len());
        let major = rest[..digits].parse().ok()?;
        let (stage, minor) = match &rest[digits..] {
            "" => (3, "0"),
            beta if beta.starts_with("beta") => (2, &beta[4..]),
            alpha if alpha.starts_with("alpha") => (1, &alpha[5..]),
            _ => return None,
        };
        Some((stage, major, minor.parse().ok()?, ""))
    };
    parse().unwrap_or((0, 0, 0, version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Wire;

    #[test]
    fn stable_versions_come_before_beta_and_alpha() {
        let mut versions = ["v1alpha2", "v1", "v2", "v1beta1", "v10", "v2beta3", "foo"];
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v2beta3", "v1beta1", "v1alpha2", "foo"]
        );
    }

    #[test]
    fn both_forms_tell_of_pods_with_short_names_and_subresources() {
        let wire = Wire::load();
        let old = legacy(wire.resources(), "", "v1").unwrap();
        let all = old["resources"].as_array().unwrap();
        let pods = all.iter().find(|row| row["name"] == "pods").unwrap();
        assert_eq!(pods["shortNames"], json!(["po"]));
        let eviction = all
            .iter()
            .find(|row| row["name"] == "pods/eviction")
            .unwrap();
        assert_eq!(eviction["group"], "policy");
        let new = aggregated(wire.resources(), Half::Core, Aggregated::V2);
        let all = new["items"][0]["versions"][0]["resources"]
            .as_array()
            .unwrap();
        let pods = all.iter().find(|row| row["resource"] == "pods").unwrap();
        assert_eq!(pods["scope"], "Namespaced");
        assert!(
            pods["subresources"]
                .as_array()
                .unwrap()
                .iter()
                .any(|s| s["subresource"] == "log")
        );
        assert!(legacy(wire.resources(), "nothing", "v1").is_none());
    }
}
