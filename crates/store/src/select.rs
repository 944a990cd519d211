//! Which objects a list, watch or collection delete means: namespace, name, labels, fields.

use api::selector::LabelQuery;

use crate::entry::Entry;
use crate::status::{Outcome, Refused};

/// A selectable field of a built-in resource: its selector name, its path, what absence means.
#[derive(Clone, Copy, Debug)]
pub struct SelectableField {
    /// `spec.nodeName`.
    pub name: &'static str,
    /// The value of an absent field.
    pub absent: &'static str,
}

const fn field(name: &'static str) -> SelectableField {
    SelectableField { name, absent: "" }
}

const fn field_or(name: &'static str, absent: &'static str) -> SelectableField {
    SelectableField { name, absent }
}

/// Selectable fields of built-in resources beyond `metadata.name` and `metadata.namespace`,
/// by `group/plural`, sorted.
pub const SELECTABLE: &[(&str, &[SelectableField])] = &[
    (
        "/events",
        &[
            field("involvedObject.apiVersion"),
            field("involvedObject.fieldPath"),
            field("involvedObject.kind"),
            field("involvedObject.name"),
            field("involvedObject.namespace"),
            field("involvedObject.resourceVersion"),
            field("involvedObject.uid"),
            field("reason"),
            field("reportingComponent"),
            field("source.component"),
            field("type"),
        ],
    ),
    ("/namespaces", &[field("status.phase")]),
    ("/nodes", &[field_or("spec.unschedulable", "false")]),
    (
        "/pods",
        &[
            field_or("spec.hostNetwork", "false"),
            field("spec.nodeName"),
            field("spec.restartPolicy"),
            field("spec.schedulerName"),
            field("spec.serviceAccountName"),
            field("status.nominatedNodeName"),
            field("status.phase"),
            field("status.podIP"),
        ],
    ),
    (
        "/replicationcontrollers",
        &[field_or("status.replicas", "0")],
    ),
    ("/secrets", &[field("type")]),
    ("/services", &[field("spec.clusterIP"), field("spec.type")]),
    ("batch/jobs", &[field_or("status.successful", "0")]),
    (
        "certificates.k8s.io/certificatesigningrequests",
        &[field("spec.signerName")],
    ),
    (
        "resource.k8s.io/resourceslices",
        &[field("spec.driver"), field("spec.nodeName")],
    ),
];

/// Kinds without namespaces of which upstream says so when it is asked to select by them.
const UNPLACED: &[&str] = &[
    "/namespaces",
    "/nodes",
    "certificates.k8s.io/certificatesigningrequests",
    "resource.k8s.io/resourceslices",
];
/// The group in which Events have other names for what they are selected by.
const NEW_EVENTS: &str = "events.k8s.io";

/// Which objects are meant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Empty for all namespaces and for cluster-scoped resources.
    pub namespace: String,
    /// The one object of this name, if given.
    pub name: Option<String>,
    labels: LabelQuery,
    fields: Vec<FieldTerm>,
}

#[derive(Clone, Debug, PartialEq)]
struct FieldTerm {
    source: FieldSource,
    value: String,
    wants: Wants,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Wants {
    Equal,
    Different,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum FieldSource {
    Name,
    Namespace,
    /// Index into the resource's selectable fields, and what absence means.
    Column(usize, &'static str),
    /// Of two such fields the first that says something.
    Either(usize, usize),
    /// Nothing says anything about it.
    Nothing,
}

impl Selection {
    /// Reads both selectors. `selectable` are the resource's fields in the order of
    /// [`Entry::fields`], `shelf` its `group/plural`; `group` is the one that is asked.
    pub fn parse(
        (shelf, group): (&str, &str),
        selectable: &[Box<str>],
        label_selector: &str,
        field_selector: &str,
    ) -> Outcome<Selection> {
        let mut selection = Selection {
            labels: LabelQuery::parse(label_selector).map_err(Refused::bad_request)?,
            ..Selection::default()
        };
        for (key, wants, value) in parse_fields(field_selector)? {
            let source = source_of((shelf, group), selectable, &key)?;
            if source == FieldSource::Name && wants == Wants::Equal {
                selection.name = Some(value);
                continue;
            }
            selection.fields.push(FieldTerm {
                source,
                value,
                wants,
            });
        }
        Ok(selection)
    }

    /// Whether everything in the namespace is meant.
    pub fn is_everything(&self) -> bool {
        self.name.is_none() && self.labels.is_empty() && self.fields.is_empty()
    }

    /// What keys of the meant objects begin with.
    pub fn prefix(&self) -> String {
        match (&*self.namespace, &self.name) {
            ("", _) => String::new(),
            (namespace, None) => format!("{namespace}/"),
            (namespace, Some(name)) => format!("{namespace}/{name}"),
        }
    }

    /// Whether this object is meant.
    pub fn matches(&self, key: &str, entry: &Entry) -> bool {
        let (namespace, name) = key.rsplit_once('/').unwrap_or(("", key));
        (self.namespace.is_empty() || self.namespace == namespace)
            && self.name.as_ref().is_none_or(|wanted| wanted == name)
            && self.labels.matches(|key| entry.label(key))
            && self.fields.iter().all(|term| {
                let value = match term.source {
                    FieldSource::Name => name,
                    FieldSource::Namespace => namespace,
                    FieldSource::Column(index, absent) => match entry.field(index) {
                        "" => absent,
                        value => value,
                    },
                    FieldSource::Either(one, other) => match entry.field(one) {
                        "" => entry.field(other),
                        value => value,
                    },
                    FieldSource::Nothing => "",
                };
                (value == term.value) == (term.wants == Wants::Equal)
            })
    }
}

/// Upstream has one text of kinds without fields of their own, and several of the others.
fn unknown_field(shelf: &str, selectable: &[Box<str>], key: &str) -> Refused {
    Refused::bad_request(match shelf {
        "batch/jobs" => {
            let key = crate::field::go_quoted(key);
            format!("field label {key} not supported for Job")
        }
        "resource.k8s.io/resourceslices" => {
            format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {key}")
        }
        _ if selectable.is_empty() => format!(
            "{key:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        ),
        _ => format!("field label not supported: {key}"),
    })
}

fn source_of(
    (shelf, group): (&str, &str),
    selectable: &[Box<str>],
    key: &str,
) -> Outcome<FieldSource> {
    let unknown = || unknown_field(shelf, selectable, key);
    match (shelf, key) {
        (_, "metadata.name") => return Ok(FieldSource::Name),
        (_, "metadata.namespace") if UNPLACED.contains(&shelf) => return Err(unknown()),
        (_, "metadata.namespace") => return Ok(FieldSource::Namespace),
        ("/pods", "status.podIPs") => return Ok(FieldSource::Nothing),
        _ => {}
    }
    let place = |wanted: &str| selectable.iter().position(|path| &**path == wanted);
    let wanted = match shelf {
        "/events" => core_name(group, key).ok_or_else(unknown)?,
        _ => key.trim_start_matches('.').to_owned(),
    };
    if wanted == "source" {
        let both = place("source.component").zip(place("reportingComponent"));
        let (source, reporting) = both.ok_or_else(unknown)?;
        return Ok(FieldSource::Either(source, reporting));
    }
    let index = place(&wanted).ok_or_else(unknown)?;
    let absent = SELECTABLE
        .iter()
        .find(|(name, _)| *name == shelf)
        .and_then(|(_, fields)| fields.iter().find(|field| field.name == wanted))
        .map_or("", |field| field.absent);
    Ok(FieldSource::Column(index, absent))
}

/// The core name of what an Event is selected by in one of its groups.
fn core_name(group: &str, key: &str) -> Option<String> {
    let own = match key {
        "source.component" => return None,
        "reason" | "type" => return Some(key.to_owned()),
        key => key,
    };
    if group != NEW_EVENTS {
        return Some(own.to_owned());
    }
    match own.strip_prefix("regarding.") {
        Some(field) => Some(format!("involvedObject.{field}")),
        None => (own == "reportingController").then(|| "reportingComponent".to_owned()),
    }
}

fn parse_fields(text: &str) -> Outcome<Vec<(String, Wants, String)>> {
    let mut terms = Vec::new();
    for term in split_unescaped(text) {
        if term.is_empty() {
            continue;
        }
        let invalid = || {
            Refused::bad_request(format!(
                "invalid selector: '{text}'; can't understand '{term}'"
            ))
        };
        let (key, wants, value) = if let Some((key, value)) = term.split_once("!=") {
            (key, Wants::Different, value)
        } else if let Some((key, value)) = term.split_once("==") {
            (key, Wants::Equal, value)
        } else if let Some((key, value)) = term.split_once('=') {
            (key, Wants::Equal, value)
        } else {
            return Err(invalid());
        };
        terms.push((
            key.trim().to_owned(),
            wants,
            unescape(value).ok_or_else(invalid)?,
        ));
    }
    Ok(terms)
}

fn split_unescaped(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next()? {
                escaped @ ('\\' | ',' | '=') => out.push(escaped),
                _ => return None,
            },
            '=' | ',' => return None,
            other => out.push(other),
        }
    }
    Some(out)
}

/// Kubernetes' label selector grammar: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`.
#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn matches(labels: &str, fields: &str) -> Result<bool, String> {
        let selectable: Vec<Box<str>> = vec!["spec.hostNetwork".into(), "spec.nodeName".into()];
        let entry = Entry::of(
            1,
            &json!({
                "metadata": { "labels": { "app": "web", "tier": "3" } },
                "spec": { "nodeName": "n1" },
            }),
            &selectable,
            Default::default(),
        );
        Selection::parse(("/pods", ""), &selectable, labels, fields)
            .map(|selection| selection.matches("a/b", &entry))
            .map_err(|refused| refused.message().to_owned())
    }

    #[test]
    fn selectors_choose_as_kubernetes_does() {
        let rows = [
            ("", "", true),
            ("app=web", "", true),
            ("app==web,tier in (2, 3)", "", true),
            ("app!=web", "", false),
            ("other!=x", "", true),
            ("app notin (db,cache)", "", true),
            ("app,!gone", "", true),
            ("gone", "", false),
            ("tier>2,tier<4", "", true),
            ("", "spec.nodeName=n1,metadata.namespace=a", true),
            ("", "spec.nodeName!=n1", false),
            ("", "metadata.name=b,spec.hostNetwork=false", true),
            ("", "metadata.name=c", false),
        ];
        for (labels, fields, expected) in rows {
            assert_eq!(matches(labels, fields), Ok(expected), "{labels} {fields}");
        }
    }

    #[test]
    fn a_selector_that_makes_no_sense_is_refused() {
        for (labels, fields) in [("a b", ""), ("a in x", ""), ("a=b,", ""), ("=", "")] {
            assert!(matches(labels, fields).is_err(), "{labels} {fields}");
        }
        assert_eq!(
            matches("", "spec.color=red"),
            Err("field label not supported: spec.color".to_owned())
        );
    }
}
