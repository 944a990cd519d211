//! Pod security: what the labels of a namespace let its pods be (`pod-security.kubernetes.io/…`).

mod policy;
mod rules;

use serde_json::Value;

use crate::draft::Draft;
use crate::status::{Outcome, Refused};
use crate::store::Store;
use crate::write::{Writing, text};
use api::kind::Kind;
use policy::{Level, Policy, Standard};

impl Store {
    /// Refuses a pod that its namespace does not let in, warns of pods that it would not let in,
    /// and refuses a namespace whose labels make no sense.
    pub(crate) fn secure(
        &self,
        writing: &Writing<'_>,
        object: &Value,
        old: Option<&Value>,
        draft: &mut Draft,
    ) -> Outcome<()> {
        if writing.row.known == Some(Kind::Namespace) {
            return self.secure_namespace(writing, object, old, draft);
        }
        let Some((meta, spec)) = template(&writing.row.kind, &writing.row.group, object) else {
            return Ok(());
        };
        let namespace = self.latest_entry(Kind::Namespace, "", &writing.target.namespace);
        // Every pod asks this, and few namespaces say it.
        let Some(namespace) = namespace.filter(|entry| entry.mentions(policy::PREFIX)) else {
            return Ok(());
        };
        let (policy, _) = Policy::of(&namespace.value()["metadata"]["labels"]);
        let is_pod = writing.row.known == Some(Kind::Pod);
        if policy.is_privileged(is_pod) || is_pod && !matters(object, old) {
            return Ok(());
        }
        if is_pod && let Some(why) = policy.enforce.complaint(meta, spec) {
            let name = text(&object["metadata"]["name"]);
            let why = format!("violates PodSecurity \"{}\": {why}", policy.enforce);
            return Err(Refused::forbidden(writing.about(&name), &why));
        }
        if let Some(why) = policy.warn.complaint(meta, spec) {
            let standard = policy.warn;
            let warning = format!("would violate PodSecurity \"{standard}\": {why}");
            draft.warnings.push(warning);
        }
        Ok(())
    }

    fn secure_namespace(
        &self,
        writing: &Writing<'_>,
        object: &Value,
        old: Option<&Value>,
        draft: &mut Draft,
    ) -> Outcome<()> {
        let name = text(&object["metadata"]["name"]);
        let (policy, errors) = Policy::of(&object["metadata"]["labels"]);
        let Some(old) = old else {
            return match errors.is_empty() {
                true => Ok(()),
                false => Err(writing.invalid(&name, &errors)),
            };
        };
        let (before, old_errors) = Policy::of(&old["metadata"]["labels"]);
        if !errors.is_empty() && errors != old_errors {
            return Err(writing.invalid(&name, &errors));
        }
        let (new, was) = (policy.enforce, before.enforce);
        let is_stricter = new.version != was.version || new.level > was.level;
        if new.level != Level::Privileged && is_stricter {
            draft.warnings.extend(self.pods_against(&name, new));
        }
        Ok(())
    }

    /// What is said of pods that are there when a namespace becomes stricter.
    fn pods_against(&self, namespace: &str, standard: Standard) -> Vec<String> {
        /// As many as the real server looks at.
        const PODS_MAX: usize = 3_000;
        let Some(id) = self.registry.known(Kind::Pod) else {
            return Vec::new();
        };
        let mut wrong: std::collections::BTreeMap<String, Vec<String>> = Default::default();
        let mut count = 0;
        for (_, entry) in self.shelf(id).range(&format!("{namespace}/")) {
            count += 1;
            if count > PODS_MAX {
                continue;
            }
            let pod = entry.value();
            if let Some(reasons) = standard.reasons(&pod["metadata"], &pod["spec"]) {
                let name = text(&pod["metadata"]["name"]);
                wrong.entry(reasons).or_default().push(name);
            }
        }
        let mut told = Vec::new();
        if count > PODS_MAX {
            told.push(format!(
                "new PodSecurity enforce level only checked against the first {PODS_MAX} of {count} existing pods"
            ));
        }
        if !wrong.is_empty() {
            told.push(format!(
                "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \"{standard}\""
            ));
        }
        let rows = wrong.into_iter().map(|(reasons, mut names)| {
            names.sort();
            let others = match names.len() - 1 {
                0 => String::new(),
                1 => " (and 1 other pod)".to_owned(),
                many => format!(" (and {many} other pods)"),
            };
            format!("{}{others}: {reasons}", names[0])
        });
        let mut rows: Vec<String> = rows.collect();
        rows.sort();
        told.extend(rows);
        told
    }
}

/// The metadata and spec of an object's pods.
fn template<'o>(kind: &str, group: &str, object: &'o Value) -> Option<(&'o Value, &'o Value)> {
    let holder = match (group, kind) {
        ("", "Pod") => object,
        ("", "PodTemplate") => &object["template"],
        ("", "ReplicationController")
        | ("apps", "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet")
        | ("batch", "Job") => &object["spec"]["template"],
        ("batch", "CronJob") => &object["spec"]["jobTemplate"]["spec"]["template"],
        _ => return None,
    };
    let spec = &holder["spec"];
    spec.is_object().then_some((&holder["metadata"], spec))
}

/// Whether a change of a pod can make it another: only images and containers can.
fn matters(pod: &Value, old: Option<&Value>) -> bool {
    let Some(old) = old else { return true };
    let images = |pod: &Value, list: &str| -> Vec<String> {
        let containers = pod["spec"][list].as_array();
        let containers = containers.into_iter().flatten();
        containers
            .map(|one| format!("{} {}", one["name"], one["image"]))
            .collect()
    };
    ["containers", "initContainers", "ephemeralContainers"]
        .iter()
        .any(|list| images(pod, list) != images(old, list))
}
