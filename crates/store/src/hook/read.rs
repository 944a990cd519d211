//! Webhook configurations as they are stored → webhooks.

use std::sync::Arc;

use api::selector::LabelSelector;
use base64::Engine;
use serde_json::Value;

use super::{Condition, Hook, Hooks, Rule};
use crate::store::Store;

/// The shelves of the two configurations.
pub(crate) const MUTATING: &str = "admissionregistration.k8s.io/mutatingwebhookconfigurations";
pub(crate) const VALIDATING: &str = "admissionregistration.k8s.io/validatingwebhookconfigurations";
/// Timeout of a webhook whose configuration names none, in seconds.
const TIMEOUT_SECONDS: u64 = 10;

/// How a webhook is reached.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Client {
    /// Its address; empty where a service is named.
    pub(crate) url: String,
    pub(crate) service: Option<Service>,
    /// Certificates in PEM; empty for the system's.
    pub(crate) authority: Vec<u8>,
}

/// A service that a webhook stands behind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Service {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) port: u16,
}

impl Client {
    /// Reads a `clientConfig`.
    pub(crate) fn read(config: &Value) -> Client {
        let bundle = config["caBundle"].as_str().unwrap_or_default();
        let authority = base64::engine::general_purpose::STANDARD
            .decode(bundle)
            .unwrap_or_default();
        let service = &config["service"];
        Client {
            url: text(&config["url"]),
            service: service.is_object().then(|| Service {
                namespace: text(&service["namespace"]),
                name: text(&service["name"]),
                path: text(&service["path"]),
                port: service["port"]
                    .as_u64()
                    .and_then(|port| u16::try_from(port).ok())
                    .unwrap_or(443),
            }),
            authority: if authority.iter().all(u8::is_ascii_whitespace) {
                Vec::new()
            } else {
                authority
            },
        }
    }
}

impl Store {
    /// Reads the visible configurations anew.
    pub(crate) fn read_hooks(&mut self) {
        self.hooks = Hooks {
            mutating: Arc::new(self.hooks_of("mutatingwebhookconfigurations")),
            validating: Arc::new(self.hooks_of("validatingwebhookconfigurations")),
        };
    }

    fn hooks_of(&self, plural: &str) -> Vec<Hook> {
        let Some(id) = self.registry.find("admissionregistration.k8s.io", plural) else {
            return Vec::new();
        };
        let mut hooks = Vec::new();
        for (name, entry) in self.shelf(id).range("") {
            let object = entry.value();
            let list = object["webhooks"].as_array();
            for (position, hook) in list.into_iter().flatten().enumerate() {
                hooks.push(Hook::read(name, position, hook));
            }
        }
        hooks
    }
}

impl Hook {
    fn read(configuration: &str, position: usize, hook: &Value) -> Hook {
        let selector = |key: &str| -> LabelSelector {
            serde_json::from_value(hook[key].clone()).unwrap_or_default()
        };
        let review_version = list(&hook["admissionReviewVersions"])
            .iter()
            .find_map(|version| match &**version {
                "v1" => Some("v1"),
                "v1beta1" => Some("v1beta1"),
                _ => None,
            });
        Hook {
            configuration: configuration.into(),
            name: text(&hook["name"]).into(),
            position,
            rules: hook["rules"]
                .as_array()
                .into_iter()
                .flatten()
                .map(Rule::read)
                .collect(),
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            conditions: Condition::read(&hook["matchConditions"]),
            takes_equivalents: hook["matchPolicy"] != "Exact",
            fails_open: hook["failurePolicy"] == "Ignore",
            takes_dry_runs: matches!(hook["sideEffects"].as_str(), Some("None" | "NoneOnDryRun")),
            is_asked_again: hook["reinvocationPolicy"] == "IfNeeded",
            timeout_seconds: hook["timeoutSeconds"].as_u64().unwrap_or(TIMEOUT_SECONDS),
            client: Client::read(&hook["clientConfig"]),
            review_version,
        }
    }
}

impl Rule {
    fn read(rule: &Value) -> Rule {
        Rule {
            operations: list(&rule["operations"]),
            groups: list(&rule["apiGroups"]),
            versions: list(&rule["apiVersions"]),
            resources: list(&rule["resources"]),
            scope: rule["scope"].as_str().unwrap_or("*").into(),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> Vec<Box<str>> {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(Value::as_str).map(Into::into).collect()
}
