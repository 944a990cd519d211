//! Tells the API server whom to ask: registrations that are there get our authorities, as upstream
//! does; those that are missing are made.

use api::call::Call;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::{ClientError, Cluster};
use review::registration::{Address, Registration};
use review::{Settings, Webhook};
use serde_json::Value;

/// Where registrations are, before their plural.
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// Keeps the registrations of some webhooks.
pub struct Registrar {
    /// Where they are kept.
    pub cluster: Cluster,
    /// What the webhooks judge by.
    pub settings: Settings,
    /// The webhooks.
    pub webhooks: Vec<&'static Webhook>,
    /// Where the API server finds them; `None` makes no registration, and only tends those there are.
    pub address: Option<Address>,
    /// Where the webhooks run.
    pub own_namespace: String,
}

impl Registrar {
    /// Sees to it that every webhook is registered with these authorities (PEM). To be called now
    /// and then: what is as it should be is not written. Gives the names of registrations that are
    /// missing and could not be made, because nobody said where the webhooks are found.
    pub async fn register(&self, authorities: &str) -> Result<Vec<String>, ClientError> {
        let mut missing = Vec::new();
        for webhook in &self.webhooks {
            if !self.keep(webhook, authorities).await? {
                missing.push(webhook.configuration_name());
            }
        }
        Ok(missing)
    }

    async fn keep(&self, webhook: &Webhook, authorities: &str) -> Result<bool, ClientError> {
        let plural = format!("{GROUP}/{}", webhook.configuration_plural());
        let named = format!("{plural}/{}", webhook.configuration_name());
        let answer = self.cluster.send(&call("GET", &named, None)).await?;
        let body = if answer.code == 404 {
            let Some(address) = &self.address else {
                return Ok(false);
            };
            let registration = Registration {
                address: address.clone(),
                own_namespace: self.own_namespace.clone(),
                authorities: authorities.to_owned(),
            };
            let body = webhook.configuration(&self.settings, &registration);
            call("POST", &plural, Some(&body))
        } else {
            let answer = answer.accepted()?;
            let mut stored: Value =
                serde_json::from_slice(&answer.body).map_err(|cause| ClientError::Malformed {
                    target: named.clone(),
                    cause,
                })?;
            if !vouch(&mut stored, authorities) {
                return Ok(true);
            }
            call("PUT", &named, Some(&stored))
        };
        let answer = self.cluster.send(&body).await?;
        // Another replica was here first; the next look shows what it wrote.
        if answer.code != 409 {
            answer.accepted()?;
        }
        Ok(true)
    }
}

/// Puts the authorities into all webhooks of a registration; tells whether that changed it.
fn vouch(stored: &mut Value, authorities: &str) -> bool {
    let bundle = Value::from(STANDARD.encode(authorities));
    let mut has_changed = false;
    let webhooks = stored["webhooks"].as_array_mut();
    for webhook in webhooks.into_iter().flatten() {
        if let Some(config) = webhook["clientConfig"].as_object_mut()
            && config.get("caBundle") != Some(&bundle)
        {
            config.insert("caBundle".to_owned(), bundle.clone());
            has_changed = true;
        }
    }
    has_changed
}

fn call(method: &'static str, target: &str, body: Option<&Value>) -> Call {
    Call {
        method,
        target: target.to_owned(),
        content_type: if body.is_some() {
            "application/json"
        } else {
            ""
        },
        body: body
            .map(|body| body.to_string().into_bytes())
            .unwrap_or_default(),
    }
}
