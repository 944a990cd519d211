//! Whether a webhook wants to hear of a request.

use api::core::TextMap;
use serde_json::Value;

use super::{Hook, Passing, Rule};
use crate::status::{About, Outcome, Refused};
use crate::store::Store;
use crate::strategy::Part;
use crate::write::Writing;

/// Configurations that no webhook is asked about: a wrong one could never be mended.
const EXEMPT: &[&str] = &[
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
];

/// Whether a request is exempt from all webhooks.
pub(super) fn is_exempt(writing: &Writing<'_>) -> bool {
    &*writing.row.group == "admissionregistration.k8s.io" && EXEMPT.contains(&&*writing.row.kind)
}

impl Store {
    /// The version of the resource in which the webhook is to be told of the request, if at all.
    pub(super) fn wants(
        &self,
        hook: &Hook,
        writing: &Writing<'_>,
        passing: &Passing<'_>,
    ) -> Outcome<Option<Box<str>>> {
        let namespaces = self.is_in_namespace(hook, writing, passing);
        if matches!(namespaces, Ok(false)) {
            return Ok(None);
        }
        if !hook.objects.is_empty() {
            let is_chosen = |object: Option<&Value>| {
                object.is_some_and(|object| hook.objects.matches(&labels(object)))
            };
            if !is_chosen(passing.object) && !is_chosen(passing.old) {
                return Ok(None);
            }
        }
        let Some(version) = told_version(hook, writing, passing) else {
            return Ok(None);
        };
        namespaces?;
        Ok(Some(version))
    }

    fn is_in_namespace(
        &self,
        hook: &Hook,
        writing: &Writing<'_>,
        passing: &Passing<'_>,
    ) -> Outcome<bool> {
        let is_namespace = &*writing.row.shelf == "/namespaces";
        let target = writing.target;
        let name = match is_namespace {
            true => &target.name,
            false => &target.namespace,
        };
        if (name.is_empty() && !is_namespace) || hook.namespaces.is_empty() {
            return Ok(true);
        }
        if is_namespace
            && writing.part == Part::Whole
            && let Some(object) = passing.object
        {
            return Ok(hook.namespaces.matches(&labels(object)));
        }
        let found = self.latest_of(api::kind::Kind::Namespace, "", name);
        let found = found.ok_or_else(|| {
            Refused::not_found(About {
                group: "",
                plural: "namespaces",
                name,
            })
        })?;
        Ok(hook.namespaces.matches(&labels(&found)))
    }
}

/// The version that a rule names: the request's own, or an equivalent one.
fn told_version(hook: &Hook, writing: &Writing<'_>, passing: &Passing<'_>) -> Option<Box<str>> {
    let is_meant = |rule: &&Rule, version: &str| rule.is_about(writing, passing, version);
    let own = &*writing.target.version;
    if hook.rules.iter().any(|rule| is_meant(&rule, own)) {
        return Some(own.into());
    }
    if !hook.takes_equivalents {
        return None;
    }
    hook.rules.iter().find_map(|rule| {
        let versions = writing.row.versions.iter();
        let mut others = versions.filter(|version| &*version.name != own);
        others
            .find(|version| is_meant(&rule, &version.name))
            .map(|version| version.name.clone())
    })
}

impl Rule {
    fn is_about(&self, writing: &Writing<'_>, passing: &Passing<'_>, version: &str) -> bool {
        let has = |list: &[Box<str>], wanted: &str| {
            list.iter().any(|one| &**one == "*" || &**one == wanted)
        };
        has(&self.operations, passing.operation)
            && has(&self.groups, &writing.row.group)
            && has(&self.versions, version)
            && self.names_resource(&writing.row.plural, &writing.target.subresource)
            && self.covers_scope(writing)
    }

    fn names_resource(&self, plural: &str, subresource: &str) -> bool {
        self.resources.iter().any(|wanted| {
            let (resource, sub) = wanted.split_once('/').unwrap_or((wanted, ""));
            (resource == "*" || resource == plural) && (sub == "*" || sub == subresource)
        })
    }

    fn covers_scope(&self, writing: &Writing<'_>) -> bool {
        match &*self.scope {
            "Cluster" => !writing.row.is_namespaced(),
            "Namespaced" => writing.row.is_namespaced(),
            _ => true,
        }
    }
}

fn labels(object: &Value) -> TextMap {
    let pairs = object["metadata"]["labels"].as_object();
    pairs
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str().into(), value.as_str().unwrap_or("").into()))
        .collect()
}
