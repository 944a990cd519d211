//! Kinds that a request itself defines: their objects have a place before anybody serves them.

use std::time::Duration;

use anyhow::bail;
use serde_json::Value;

use super::{Rest, Served, text};

/// A definition that was taken is served after so long at the latest.
const SERVED_AFTER_MAX: Duration = Duration::from_secs(10);
/// How often that is asked.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Whether an object is the definition of a kind.
pub(crate) fn is_definition(object: &Value) -> bool {
    text(object, &["kind"]) == "CustomResourceDefinition"
        && text(object, &["apiVersion"]).starts_with("apiextensions.k8s.io/")
}

/// The version and the kind of objects that a definition makes known, once for each served version.
fn defined(definition: &Value) -> Vec<(String, Served)> {
    let spec = &definition["spec"];
    let served = Served {
        kind: text(spec, &["names", "kind"]).to_owned(),
        plural: text(spec, &["names", "plural"]).to_owned(),
        namespaced: text(spec, &["scope"]) == "Namespaced",
    };
    let group = text(spec, &["group"]);
    let versions = spec["versions"].as_array().into_iter().flatten();
    versions
        .filter(|version| version["served"] == true)
        .map(|version| {
            (
                format!("{group}/{}", text(version, &["name"])),
                served.clone(),
            )
        })
        .collect()
}

impl Rest {
    /// From now on objects of the kind that this defines have a place, also while nobody serves it.
    pub(crate) async fn promise(&self, definition: &Value) {
        self.promised.lock().await.extend(defined(definition));
    }

    /// The kind of an object that nobody serves yet, if it was promised.
    pub(super) async fn promised(&self, api_version: &str, kind: &str) -> Option<Served> {
        let promised = self.promised.lock().await;
        let mut named = promised
            .iter()
            .filter(|(version, _)| version == api_version);
        named
            .find(|(_, served)| served.kind == kind)
            .map(|(_, served)| served.clone())
    }

    /// Whether nobody serves the kind of an object, so that it cannot be rehearsed.
    pub(crate) async fn is_to_come(&self, object: &Value) -> anyhow::Result<bool> {
        let (api_version, kind) = (text(object, &["apiVersion"]), text(object, &["kind"]));
        Ok(self.served(api_version, kind).await?.is_none())
    }

    /// Waits until what a definition defines is served.
    pub(crate) async fn until_served(&self, definition: &Value) -> anyhow::Result<()> {
        let until = tokio::time::Instant::now() + SERVED_AFTER_MAX;
        for (api_version, Served { kind, .. }) in defined(definition) {
            loop {
                self.kinds.lock().await.remove(&api_version);
                if self.served(&api_version, &kind).await?.is_some() {
                    break;
                }
                if tokio::time::Instant::now() >= until {
                    let name = text(definition, &["metadata", "name"]);
                    let seconds = SERVED_AFTER_MAX.as_secs();
                    bail!(
                        "the definition {name} was taken, and {kind} of {api_version} is not served \
                         {seconds} s after it: see its status for why"
                    );
                }
                tokio::time::sleep(ASK_EVERY).await;
            }
        }
        Ok(())
    }
}
