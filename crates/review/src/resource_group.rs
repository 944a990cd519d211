//! Resource groups: what new pods of some namespaces, or with some annotations, get.
//!
//! Source: `specs/volcano.md`, section 4.0 (the file of `--admission-conf`) and 4.4.

use std::collections::{BTreeMap, BTreeSet};

use api::volcano::RESOURCE_GROUP;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::fields::inside;
use crate::registration::quoted;

/// The file of `--admission-conf`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(default)]
    resource_groups: Vec<Row>,
}

/// One group as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    #[serde(default)]
    resource_group: String,
    #[serde(default)]
    object: Members,
    #[serde(default)]
    scheduler_name: String,
    #[serde(default)]
    tolerations: Vec<Value>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    affinity: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Members {
    #[serde(default)]
    key: String,
    #[serde(default)]
    value: Vec<String>,
}

/// Pods that belong together, and what they get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceGroup {
    /// Who belongs to it.
    whose: Whose,
    scheduler_name: String,
    tolerations: Vec<Value>,
    /// Labels of its nodes.
    labels: BTreeMap<String, String>,
    affinity: Option<Value>,
}

/// Which pods belong to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Whose {
    /// Those of these namespaces.
    Namespaces(Vec<String>),
    /// Those with any of these annotations.
    Annotated(Vec<(String, String)>),
}

impl ResourceGroup {
    /// Reads the file, decoded from YAML. One that cannot be meant is refused whole, with the
    /// group: upstream leaves such a part out without a word.
    pub fn read(file: Value) -> Result<Vec<ResourceGroup>, String> {
        let file = File::deserialize(file).map_err(|error| error.to_string())?;
        let groups = file.resource_groups.into_iter().enumerate();
        groups
            .map(|(index, row)| {
                ResourceGroup::of(row).map_err(|why| format!("resourceGroups[{index}]: {why}"))
            })
            .collect()
    }

    fn of(row: Row) -> Result<ResourceGroup, String> {
        let whose = match &*row.object.key {
            "namespace" => Whose::Namespaces(row.object.value),
            key @ ("" | "annotation") => {
                let mut pairs = row
                    .object
                    .value
                    .iter()
                    .map(|pair| annotation(pair))
                    .collect::<Result<Vec<_>, _>>()?;
                if key.is_empty() {
                    pairs.push((RESOURCE_GROUP.to_owned(), row.resource_group));
                }
                Whose::Annotated(pairs)
            }
            other => return Err(format!("object.key cannot be {other:?}")),
        };
        let affinity = match &*row.affinity {
            "" => None,
            text => Some(
                serde_json::from_str::<Map<String, Value>>(text)
                    .map(Value::Object)
                    .map_err(|error| format!("affinity: {error}"))?,
            ),
        };
        Ok(ResourceGroup {
            whose,
            scheduler_name: row.scheduler_name,
            tolerations: row.tolerations,
            labels: row.labels,
            affinity,
        })
    }

    /// Whether a new pod of this namespace belongs to it.
    pub(crate) fn has(&self, namespace: &str, pod: &Value) -> bool {
        match &self.whose {
            Whose::Namespaces(names) => names.iter().any(|name| name == namespace),
            Whose::Annotated(pairs) => {
                let annotations = &pod["metadata"]["annotations"];
                pairs
                    .iter()
                    .any(|(key, value)| annotations[key].as_str() == Some(value))
            }
        }
    }

    /// Whether a new pod belongs to any of them, in CEL over `object` and `request`: what [`ResourceGroup::has`]
    /// says. Cannot fail on any pod.
    pub(crate) fn belongs(groups: &[ResourceGroup]) -> String {
        let mut namespaces = BTreeSet::new();
        let mut annotations: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for group in groups {
            match &group.whose {
                Whose::Namespaces(names) => namespaces.extend(names.iter().map(String::as_str)),
                Whose::Annotated(pairs) => {
                    for (key, value) in pairs {
                        annotations.entry(key).or_default().insert(value);
                    }
                }
            }
        }
        let mut any = Vec::new();
        if !namespaces.is_empty() {
            any.push(format!("request.namespace in {}", list(&namespaces)));
        }
        let pairs = annotations.iter().map(|(key, values)| {
            let (key, values) = (quoted(key), list(values));
            let there = "object.metadata.annotations";
            format!("({key} in {there} && {there}[{key}] in {values})")
        });
        let pairs: Vec<String> = pairs.collect();
        if !pairs.is_empty() {
            let pairs = pairs.join(" || ");
            any.push(format!("(has(object.metadata.annotations) && ({pairs}))"));
        }
        match any.is_empty() {
            true => "false".to_owned(),
            false => any.join(" || "),
        }
    }

    /// Who places its pods, if it says so.
    pub(crate) fn scheduler(&self) -> Option<&str> {
        Some(&*self.scheduler_name).filter(|name| !name.is_empty())
    }

    /// Gives a pod what is the group's: its nodes' labels win over the pod's, its affinity does
    /// not, its scheduler does, as upstream.
    pub(crate) fn give(&self, pod: &mut Value) {
        if !self.labels.is_empty()
            && let Some(selector) = pod
                .get_mut("spec")
                .and_then(|spec| inside(spec, "nodeSelector"))
        {
            for (key, value) in &self.labels {
                selector.insert(key.clone(), value.as_str().into());
            }
        }
        let Some(spec) = inside(pod, "spec") else {
            return;
        };
        if let Some(affinity) = &self.affinity
            && spec.get("affinity").is_none_or(Value::is_null)
        {
            spec.insert("affinity".to_owned(), affinity.clone());
        }
        if !self.tolerations.is_empty() {
            let tolerations = spec.entry("tolerations").or_insert(Value::Null);
            let mut all = tolerations.as_array().cloned().unwrap_or_default();
            for toleration in &self.tolerations {
                // Whoever asks twice gets it once.
                if !all.contains(toleration) {
                    all.push(toleration.clone());
                }
            }
            *tolerations = all.into();
        }
        if let Some(name) = self.scheduler() {
            spec.insert("schedulerName".to_owned(), name.into());
        }
    }
}

/// A list of texts in CEL.
fn list(texts: &BTreeSet<&str>) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

/// `key: value`
fn annotation(pair: &str) -> Result<(String, String), String> {
    let (key, value) = pair
        .split_once(':')
        .ok_or_else(|| format!("object.value: expected \"key: value\", got {pair:?}"))?;
    let bare = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    Ok((bare(key), bare(value)))
}
