//! Tells the API server whom to ask: registrations that are there get our authorities, as upstream
//! does; those that are missing are made.
//!
//! One that was made here says as what, and is written anew once that is something else. What is changed in
//! it by hand stays until then; those of others stay as they are. One that was made here, leads here and is not
//! wanted any more is taken away.
//!
//! Each is tended on its own: what becomes of one says nothing about the others.

use api::call::Call;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::{ClientError, Cluster};
use review::registration::{Address, Registration};
use review::{Settings, WEBHOOKS, Webhook};
use serde_json::{Value, json};

/// Where registrations are, before their plural.
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// On a registration that was made here: as what, without authorities.
const REGISTERED_AS: &str = "katmai.dev/registered-as";

/// Registrations that are not as they should be.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Unasked {
    /// Registrations that are missing and could not be made, because nobody said where the webhooks are found.
    pub missing: Vec<String>,
    /// Registrations of others whose conditions are not those that these settings need.
    pub conditional: Vec<String>,
    /// Registrations that could not be seen to, and why: one that is wanted may be missing, or without our
    /// authorities, and one that is not may still be there.
    pub failed: Vec<(String, String)>,
    /// Registrations that are not wanted and stay: others made them, or nobody said where the webhooks are found. What
    /// is asked through one passes.
    pub unwanted: Vec<String>,
}

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
    /// and then: what is as it should be is not written. Gives the names of registrations that are not as they
    /// should be.
    pub async fn register(&self, authorities: &str) -> Unasked {
        let mut unasked = Unasked::default();
        for webhook in WEBHOOKS {
            let is_wanted = self.webhooks.iter().any(|it| it.path == webhook.path);
            let done = match is_wanted {
                true => self.keep(webhook, authorities, &mut unasked).await,
                false => self.withdraw(webhook, &mut unasked).await,
            };
            if let Err(why) = done {
                let name = webhook.configuration_name();
                unasked.failed.push((name, told(&why)));
            }
        }
        unasked
    }

    async fn keep(
        &self,
        webhook: &Webhook,
        authorities: &str,
        unasked: &mut Unasked,
    ) -> Result<(), ClientError> {
        let plural = format!("{GROUP}/{}", webhook.configuration_plural());
        let named = format!("{plural}/{}", webhook.configuration_name());
        let answer = self.cluster.send(&call("GET", &named, None)).await?;
        let body = if answer.code == 404 {
            if self.address.is_none() {
                unasked.missing.push(webhook.configuration_name());
                return Ok(());
            }
            let mut made = self.wanted(webhook);
            mark(&mut made);
            vouch(&mut made, authorities);
            call("POST", &plural, Some(&made))
        } else {
            let mut stored = registration(&named, &answer.accepted()?.body)?;
            let wanted = self.wanted(webhook);
            let has_changed = if is_own(&stored) {
                self.renew(&mut stored, wanted)
            } else {
                if narrows(&stored, &wanted) {
                    unasked.conditional.push(webhook.configuration_name());
                }
                false
            };
            if !vouch(&mut stored, authorities) && !has_changed {
                return Ok(());
            }
            call("PUT", &named, Some(&stored))
        };
        let answer = self.cluster.send(&body).await?;
        // Another replica was here first; the next look shows what it wrote.
        if answer.code != 409 {
            answer.accepted()?;
        }
        Ok(())
    }

    /// Takes away a registration through which there is nothing to ask any more. One that leads elsewhere is that of
    /// other webhooks.
    async fn withdraw(&self, webhook: &Webhook, unasked: &mut Unasked) -> Result<(), ClientError> {
        let plural = format!("{GROUP}/{}", webhook.configuration_plural());
        let named = format!("{plural}/{}", webhook.configuration_name());
        let answer = self.cluster.send(&call("GET", &named, None)).await?;
        if answer.code == 404 {
            return Ok(());
        }
        let stored = registration(&named, &answer.accepted()?.body)?;
        if self.address.is_some() && place(&stored) != place(&self.wanted(webhook)) {
            return Ok(());
        }
        if self.address.is_none() || !is_own(&stored) {
            unasked.unwanted.push(webhook.configuration_name());
            return Ok(());
        }
        let meta = &stored["metadata"];
        let seen = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": { "uid": meta["uid"], "resourceVersion": meta["resourceVersion"] },
        });
        let answer = self
            .cluster
            .send(&call("DELETE", &named, Some(&seen)))
            .await?;
        // Somebody was here first; the next look shows what became of it.
        if !matches!(answer.code, 404 | 409) {
            answer.accepted()?;
        }
        Ok(())
    }

    /// The registration that these settings need, without authorities; nobody is asked where nobody said
    /// where the webhooks are found.
    fn wanted(&self, webhook: &Webhook) -> Value {
        let nowhere = || Address::Url(String::new());
        let registration = Registration {
            address: self.address.clone().unwrap_or_else(nowhere),
            own_namespace: self.own_namespace.clone(),
            authorities: String::new(),
        };
        webhook.configuration(&self.settings, &registration)
    }

    /// Makes a registration of ours what is wanted now; tells whether that changed it. Where nobody says where
    /// the webhooks are found, they are where they were.
    fn renew(&self, stored: &mut Value, mut wanted: Value) -> bool {
        if self.address.is_none() {
            wanted["webhooks"][0]["clientConfig"] = stored["webhooks"][0]["clientConfig"].clone();
            wanted["webhooks"][0]["clientConfig"]["caBundle"] = "".into();
        }
        mark(&mut wanted);
        let was = &stored["metadata"]["annotations"][REGISTERED_AS];
        if *was == wanted["metadata"]["annotations"][REGISTERED_AS] {
            return false;
        }
        stored["webhooks"] = wanted["webhooks"].take();
        stored["metadata"]["annotations"][REGISTERED_AS] =
            wanted["metadata"]["annotations"][REGISTERED_AS].take();
        true
    }
}

fn registration(named: &str, body: &[u8]) -> Result<Value, ClientError> {
    serde_json::from_slice(body).map_err(|cause| ClientError::Malformed {
        target: named.to_owned(),
        cause,
    })
}

/// Where a registration leads, whoever vouches for it.
fn place(registration: &Value) -> Value {
    let mut place = registration["webhooks"][0]["clientConfig"].clone();
    if let Some(place) = place.as_object_mut() {
        place.remove("caBundle");
    }
    place
}

/// An error with its causes, on one line.
fn told(error: &ClientError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Says on a registration what it was made as.
fn mark(made: &mut Value) {
    let webhooks = made["webhooks"].to_string();
    made["metadata"]["annotations"] = json!({ REGISTERED_AS: webhooks });
}

fn is_own(stored: &Value) -> bool {
    stored["metadata"]["annotations"][REGISTERED_AS].is_string()
}

/// Whether a registration of somebody else's keeps back what there is to ask about: it has conditions, and
/// other ones than are wanted.
fn narrows(stored: &Value, wanted: &Value) -> bool {
    let conditions = |registration: &Value| {
        let webhooks = registration["webhooks"].as_array().into_iter().flatten();
        let all = webhooks.filter_map(|it| it["matchConditions"].as_array());
        let all = all.flatten().map(|it| it["expression"].clone());
        all.collect::<Vec<_>>()
    };
    let (stored, wanted) = (conditions(stored), conditions(wanted));
    !stored.is_empty() && stored != wanted
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
