//! The objects by which an API server learns whom to ask about what, made from the rows of
//! [`WEBHOOKS`](crate::WEBHOOKS).
//!
//! Invariant: no registration lets a webhook stop a pod that is not ours. About pods only those are
//! asked that name one of our schedulers, or are to be given something, and where nobody answers,
//! pods pass.
//!
//! Source: `specs/volcano.md`, section 4.0.

use api::admission::Operation;
use api::kind::Kind;
use api::volcano::QUEUE_GATE;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::{ResourceGroup, Settings, Webhook};

/// How every registration of upstream's chart is called, before its path.
const PREFIX: &str = "volcano-admission-service";
/// Longest that an API server waits for an answer.
const TIMEOUT_SECONDS: u32 = 10;
/// The same about pods: everything that runs is one, and none of them shall wait for us.
const POD_TIMEOUT_SECONDS: u32 = 2;
/// The namespace of what makes a cluster a cluster.
const SYSTEM_NAMESPACE: &str = "kube-system";

/// The longest condition. CEL takes 100,000 letters; a registration of ours notes what it was made as in an
/// annotation, and annotations have 256 KiB, in which a letter of CEL may take four bytes.
const CONDITION_BYTES_MAX: usize = 50_000;

/// Where an API server finds the webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Behind a Service, at port 443.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// At a URL, before the path.
    Url(String),
}

/// What all registrations have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Where to ask.
    pub address: Address,
    /// Where the webhooks run: objects there are not reviewed, so that they can be mended.
    pub own_namespace: String,
    /// PEM certificates, any of which vouches for the webhooks.
    pub authorities: String,
}

impl Webhook {
    /// The name of its registration: upstream's, so that those of its chart are found and kept.
    pub fn configuration_name(&self) -> String {
        format!("{PREFIX}{}", self.path.replace('/', "-"))
    }

    /// `mutatingwebhookconfigurations` or `validatingwebhookconfigurations`.
    pub const fn configuration_plural(&self) -> &'static str {
        match self.mutates() {
            true => "mutatingwebhookconfigurations",
            false => "validatingwebhookconfigurations",
        }
    }

    /// Whether there is anything to ask it, with these settings.
    pub fn is_wanted(&self, settings: &Settings) -> bool {
        self.path != crate::pod::MUTATE.path
            || settings.queue_gates
            || !settings.resource_groups.is_empty()
    }

    /// Its registration: a MutatingWebhookConfiguration or ValidatingWebhookConfiguration.
    pub fn configuration(&self, settings: &Settings, registration: &Registration) -> Value {
        let row = self.kind.row();
        let mut webhook = json!({
            "name": self.name,
            "admissionReviewVersions": ["v1"],
            "clientConfig": self.client_config(registration),
            "failurePolicy": self.failure_policy(),
            "matchPolicy": "Equivalent",
            "rules": [self.resource_rule()],
            // Nothing is written while an object is reviewed.
            "sideEffects": "None",
            "timeoutSeconds": self.timeout_seconds(),
        });
        if row.namespaced {
            let mut spared = vec![SYSTEM_NAMESPACE];
            if !registration.own_namespace.is_empty() {
                spared.insert(0, &registration.own_namespace);
            }
            webhook["namespaceSelector"] = json!({ "matchExpressions": [{
                "key": "kubernetes.io/metadata.name",
                "operator": "NotIn",
                "values": spared,
            }] });
        }
        if let Some(expression) = self.condition(settings) {
            webhook["matchConditions"] = json!([{ "name": "ours", "expression": expression }]);
        }
        let kind = match self.mutates() {
            true => "MutatingWebhookConfiguration",
            false => "ValidatingWebhookConfiguration",
        };
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": { "name": self.configuration_name() },
            "webhooks": [webhook],
        })
    }

    /// Which requests it is asked about.
    pub(crate) fn resource_rule(&self) -> Value {
        let row = self.kind.row();
        let operations = self.operations.iter().map(|it| word(*it));
        json!({
            "apiGroups": [row.group],
            "apiVersions": [row.version],
            "operations": operations.collect::<Vec<_>>(),
            "resources": [row.plural],
            "scope": if row.namespaced { "Namespaced" } else { "Cluster" },
        })
    }

    fn client_config(&self, registration: &Registration) -> Value {
        let mut config = match &registration.address {
            Address::Service { namespace, name } => json!({ "service": {
                "namespace": namespace, "name": name, "path": self.path, "port": 443,
            } }),
            Address::Url(url) => {
                json!({ "url": format!("{}{}", url.trim_end_matches('/'), self.path) })
            }
        };
        config["caBundle"] = STANDARD.encode(&registration.authorities).into();
        config
    }

    const fn timeout_seconds(&self) -> u32 {
        match self.kind {
            Kind::Pod => POD_TIMEOUT_SECONDS,
            _ => TIMEOUT_SECONDS,
        }
    }

    /// Old API servers do not know conditions and would ask about every pod: none may fail.
    fn failure_policy(&self) -> &'static str {
        match self.kind {
            Kind::Pod => "Ignore",
            _ => "Fail",
        }
    }

    /// Which objects the webhook is asked about, in CEL; `None` for all.
    pub(crate) fn condition(&self, settings: &Settings) -> Option<String> {
        match (self.kind, self.mutates()) {
            (Kind::Pod, false) => Some(names_ours(settings)),
            (Kind::Pod, true) => {
                Some(is_given(settings)).filter(|it| it.len() <= CONDITION_BYTES_MAX)
            }
            _ => None,
        }
    }

    /// Whether it is asked about every pod of the cluster: who belongs to the resource groups is too long for a
    /// condition.
    pub fn is_asked_about_every_pod(&self, settings: &Settings) -> bool {
        self.kind == Kind::Pod && self.condition(settings).is_none()
    }
}

/// Whether a new pod may be given something: it asks for the gate of its queue and names one of our schedulers, or
/// belongs to a resource group, which may also make it ours. In CEL; cannot fail on any pod.
fn is_given(settings: &Settings) -> String {
    let groups = &settings.resource_groups;
    let gate = format!(
        "{} && has(object.metadata.annotations) && '{QUEUE_GATE}' in object.metadata.annotations",
        names_ours(settings)
    );
    if groups.is_empty() {
        return gate;
    }
    let gate = settings.queue_gates.then(|| format!("({gate})"));
    let belongs = ResourceGroup::belongs(groups);
    let any: Vec<String> = gate.into_iter().chain([belongs]).collect();
    any.join(" || ")
}

/// Whether a pod names one of our schedulers, in CEL. Cannot fail on any pod.
fn names_ours(settings: &Settings) -> String {
    let names: Vec<String> = settings
        .scheduler_names
        .iter()
        .map(|name| quoted(name))
        .collect();
    format!(
        "has(object.spec.schedulerName) && object.spec.schedulerName in [{}]",
        names.join(", ")
    )
}

/// A text as it stands in CEL.
pub(crate) fn quoted(text: &str) -> String {
    let mut written = String::from("'");
    for letter in text.chars() {
        match letter {
            '\\' | '\'' => written.extend(['\\', letter]),
            letter if letter.is_control() => {
                written.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            letter => written.push(letter),
        }
    }
    written.push('\'');
    written
}

/// `CREATE`, `UPDATE` or `DELETE`.
pub(crate) fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WEBHOOKS;

    /// `quality/reliability.md` 6.3: where a webhook is about pods, two seconds.
    #[test]
    fn pods_wait_two_seconds_at_most_and_pass_then() {
        let registration = Registration {
            address: Address::Url("https://here".to_owned()),
            own_namespace: String::new(),
            authorities: String::new(),
        };
        for webhook in WEBHOOKS {
            let made = webhook.configuration(&Settings::default(), &registration);
            let made = &made["webhooks"][0];
            let told = (&made["timeoutSeconds"], &made["failurePolicy"]);
            let wanted = match webhook.kind {
                Kind::Pod => (json!(2), json!("Ignore")),
                _ => (json!(10), json!("Fail")),
            };
            assert_eq!(told, (&wanted.0, &wanted.1), "{}", webhook.path);
        }
    }
}
