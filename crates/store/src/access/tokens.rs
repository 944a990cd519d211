//! Service account tokens: what is claimed in one, and whom one speaks for. Signing and the check
//! of a signature are the shell's.

use std::collections::BTreeMap;

use api::time::Time;
use serde_json::{Value, json};

use crate::field::FieldError;
use crate::read::key_of;
use crate::request::{Begin, Mint, User};
use crate::status::{About, Outcome, Refused};
use crate::store::Store;
use crate::write::{Writing, text};

/// Issuer of the plane's tokens, and the audience of those that the API itself accepts.
pub const API_AUDIENCE: &str = "https://kubernetes.default.svc.cluster.local";

/// How long a token lives if nobody says, in seconds.
const SECONDS_DEFAULT: i64 = 3_600;
/// The shortest life of a token, in seconds.
const SECONDS_MIN: i64 = 600;
/// The longest, in seconds.
const SECONDS_MAX: i64 = 1 << 32;
/// What pods ask for that know nothing of an end: their tokens live for [`EXTENDED_SECONDS`] and
/// only say when they would have ended, so that clients which read a token once go on.
const WARN_SECONDS: i64 = 3_607;
const EXTENDED_SECONDS: i64 = 365 * 24 * 3_600;
/// A bound object that is being deleted still counts for so long, as upstream forgives clocks.
const LEEWAY_MS: i64 = 60_000;
const GROUP: &str = "authentication.k8s.io";
/// What a bound token adds to its user.
const EXTRA: &str = "authentication.kubernetes.io/";

/// Whom a token speaks for, and to which of the asked audiences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenUser {
    /// The service account.
    pub user: User,
    /// The audiences that were asked about and are the token's.
    pub audiences: Vec<String>,
}

impl Store {
    /// Whom a token with a good signature speaks for at `now`: it dies with its account and with
    /// whatever it is bound to. The error is upstream's text.
    pub fn token_user(
        &self,
        claims: &Value,
        audiences: &[String],
        now: Time,
    ) -> Result<TokenUser, String> {
        let seconds = now.micros() / 1_000_000;
        if claims["exp"].as_i64().is_none_or(|end| end <= seconds) {
            return Err("service account token has expired".to_owned());
        }
        if claims["nbf"].as_i64().is_some_and(|start| start > seconds) {
            return Err("service account token is not valid yet".to_owned());
        }
        let held: Vec<String> = claims["aud"]
            .as_array()
            .into_iter()
            .flatten()
            .map(text)
            .collect();
        let common: Vec<String> = audiences
            .iter()
            .filter(|audience| held.contains(audience))
            .cloned()
            .collect();
        if common.is_empty() {
            return Err(format!(
                "token audiences {} is invalid for the target audiences {}",
                super::rule::quoted(&held),
                super::rule::quoted(audiences)
            ));
        }
        let own = &claims["kubernetes.io"];
        let (namespace, account) = (text(&own["namespace"]), &own["serviceaccount"]);
        let name = text(&account["name"]);
        let found = self.bound("serviceaccounts", &namespace, account, now);
        match found {
            Found::Alive => {}
            Found::Missing => return Err(format!("serviceaccounts {name:?} not found")),
            Found::Other(uid) => {
                return Err(format!(
                    "service account UID ({uid}) does not match claim ({})",
                    text(&account["uid"])
                ));
            }
            Found::Deleted => {
                return Err(format!(
                    "service account {namespace}/{name} has been deleted"
                ));
            }
        }
        let mut extra = BTreeMap::new();
        for (key, plural, place) in [
            ("secret", "secrets", namespace.as_str()),
            ("pod", "pods", &namespace),
            ("node", "nodes", ""),
        ] {
            let reference = &own[key];
            if reference.is_null() {
                continue;
            }
            // The node beside a pod is told, not watched over.
            let is_bound = key != "node" || own["pod"].is_null();
            if is_bound {
                self.check_bound(key, plural, place, reference, now)?;
            }
            if key != "secret" {
                for part in ["name", "uid"] {
                    let value = text(&reference[part]);
                    if !value.is_empty() {
                        extra.insert(format!("{EXTRA}{key}-{part}"), vec![value]);
                    }
                }
            }
        }
        let id = text(&claims["jti"]);
        if !id.is_empty() {
            extra.insert(format!("{EXTRA}credential-id"), vec![format!("JTI={id}")]);
        }
        let user = User {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ],
            uid: text(&account["uid"]),
            extra,
        };
        Ok(TokenUser {
            user,
            audiences: common,
        })
    }

    fn check_bound(
        &self,
        key: &str,
        plural: &str,
        namespace: &str,
        reference: &Value,
        now: Time,
    ) -> Result<(), String> {
        let kind = match key {
            "pod" => "Pod",
            "node" => "Node",
            _ => "Secret",
        };
        match self.bound(plural, namespace, reference, now) {
            Found::Alive => Ok(()),
            Found::Missing | Found::Deleted => {
                Err("service account token has been invalidated".to_owned())
            }
            Found::Other(uid) => Err(format!(
                "{kind} UID ({uid}) does not match service account {key} ref claim ({})",
                text(&reference["uid"])
            )),
        }
    }

    fn bound(&self, plural: &str, namespace: &str, reference: &Value, now: Time) -> Found {
        let key = key_of(namespace, &text(&reference["name"]));
        let Some(entry) = self
            .registry
            .find("", plural)
            .and_then(|id| self.shelf(id).get(&key))
        else {
            return Found::Missing;
        };
        if text(&reference["uid"]) != *entry.uid() {
            return Found::Other(entry.uid().to_owned());
        }
        let object = entry.value();
        let deleted = object["metadata"]["deletionTimestamp"].as_str();
        match deleted.and_then(Time::parse) {
            Some(at) if at.plus_ms(LEEWAY_MS) < now => Found::Deleted,
            _ => Found::Alive,
        }
    }

    /// Answers a TokenRequest: the claims to be signed.
    pub(crate) fn mint(&mut self, writing: &Writing<'_>) -> Outcome<Begin> {
        let mut request = self.decode(writing)?.value;
        if request["spec"]["expirationSeconds"].is_null() {
            request["spec"]["expirationSeconds"] = json!(SECONDS_DEFAULT);
        }
        let mut asked = crate::draft::Draft::new(writing);
        self.ask_about(writing, "CREATE", &mut request, None, &mut asked)?;
        let (namespace, name) = (&writing.target.namespace, &writing.target.name);
        for (key, wanted, what) in [
            ("name", name, "name"),
            ("namespace", namespace, "namespace"),
        ] {
            let given = text(&request["metadata"][key]);
            if !given.is_empty() && given != *wanted {
                let field = format!("metadata.{key}");
                let detail = format!("must match the service account {what} if specified");
                return Err(invalid(name, FieldError::invalid(&field, given, detail)));
            }
        }
        let account = self.current(writing)?;
        let mut owned = json!({ "spec": request["spec"] });
        self.name_asker(writing, (GROUP, "v1", "TokenRequest"), &mut owned);
        let seconds = request["spec"]["expirationSeconds"]
            .as_i64()
            .unwrap_or(SECONDS_DEFAULT);
        if !(SECONDS_MIN..=SECONDS_MAX).contains(&seconds) {
            let detail = if seconds < SECONDS_MIN {
                "may not specify a duration less than 10 minutes"
            } else {
                "may not specify a duration larger than 2^32 seconds"
            };
            return Err(invalid(
                "",
                FieldError::invalid("spec.expirationSeconds", seconds, detail),
            ));
        }
        if request["spec"]["audiences"]
            .as_array()
            .is_none_or(Vec::is_empty)
        {
            request["spec"]["audiences"] = json!([API_AUDIENCE]);
        }
        let mut own = json!({
            "namespace": namespace,
            "serviceaccount": { "name": name, "uid": account.uid() },
        });
        self.bind_token(writing, &request["spec"]["boundObjectRef"], &mut own)?;
        if request["spec"]["boundObjectRef"].is_null() {
            request["spec"]["boundObjectRef"] = Value::Null;
        }
        let issued = writing.now.micros() / 1_000_000;
        let ends = issued.saturating_add(seconds);
        let is_own = request["spec"]["audiences"] == json!([API_AUDIENCE]);
        let is_extended = !own["pod"].is_null() && seconds == WARN_SECONDS && is_own;
        if is_extended {
            own["warnafter"] = json!(ends);
        }
        let claims = json!({
            "aud": request["spec"]["audiences"],
            "exp": if is_extended { issued.saturating_add(EXTENDED_SECONDS) } else { ends },
            "iat": issued,
            "nbf": issued,
            "iss": API_AUDIENCE,
            "jti": self.draw_uid(),
            "kubernetes.io": own,
            "sub": format!("system:serviceaccount:{namespace}:{name}"),
        });
        request["apiVersion"] = json!("authentication.k8s.io/v1");
        request["kind"] = json!("TokenRequest");
        request["metadata"] = json!({
            "name": name,
            "namespace": namespace,
            "uid": account.uid(),
            "creationTimestamp": writing.now.seconds_text(),
        });
        if let Some(owners) = owned["metadata"].get("managedFields") {
            request["metadata"]["managedFields"] = owners.clone();
        }
        request["spec"]["expirationSeconds"] = json!(seconds);
        let expires = Time::from_seconds(ends);
        request["status"] = json!({ "expirationTimestamp": expires.seconds_text() });
        Ok(Begin::Mint(Box::new(Mint {
            claims,
            answer: request,
        })))
    }

    /// Adds what the token is bound to.
    fn bind_token(&self, writing: &Writing<'_>, bound: &Value, own: &mut Value) -> Outcome<()> {
        if bound.is_null() {
            return Ok(());
        }
        let namespace = &writing.target.namespace;
        let (version, kind) = (text(&bound["apiVersion"]), text(&bound["kind"]));
        let (group, version) = version.rsplit_once('/').unwrap_or(("", &version));
        let (plural, place, key) = match (group, &*kind) {
            ("", "Pod") => ("pods", namespace.as_str(), "pod"),
            ("", "Secret") => ("secrets", namespace.as_str(), "secret"),
            ("", "Node") => ("nodes", "", "node"),
            _ => {
                return Err(Refused::bad_request(format!(
                    "cannot bind token to object of type {group}/{version}, Kind={kind}"
                )));
            }
        };
        let name = text(&bound["name"]);
        let entry = self.token_object(plural, place, &name)?;
        if key == "pod" {
            let pod = entry.value();
            let account = &writing.target.name;
            if text(&pod["spec"]["serviceAccountName"]) != *account {
                return Err(Refused::bad_request(format!(
                    "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
                )));
            }
            let node = text(&pod["spec"]["nodeName"]);
            if !node.is_empty() {
                own["node"] = json!({ "name": node });
                if let Ok(entry) = self.token_object("nodes", "", &node) {
                    own["node"]["uid"] = json!(entry.uid());
                }
            }
        }
        let wanted = text(&bound["uid"]);
        if !wanted.is_empty() && wanted != *entry.uid() {
            return Err(Refused::conflict(
                About {
                    group,
                    plural: &kind,
                    name: &name,
                },
                &format!(
                    "the UID in the bound object reference ({wanted}) does not match the UID in record. The object might have been deleted and then recreated"
                ),
            ));
        }
        own[key] = json!({ "name": name, "uid": entry.uid() });
        Ok(())
    }

    fn token_object(
        &self,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Outcome<&std::sync::Arc<crate::entry::Entry>> {
        self.registry
            .find("", plural)
            .and_then(|id| self.shelf(id).get(&key_of(namespace, name)))
            .ok_or_else(|| {
                Refused::not_found(About {
                    group: "",
                    plural,
                    name,
                })
            })
    }
}

/// What became of the object that a token names.
enum Found {
    Alive,
    Deleted,
    Missing,
    /// One of that name with this uid.
    Other(String),
}

fn invalid(name: &str, error: FieldError) -> Refused {
    Refused::invalid(GROUP, "TokenRequest", name, &[error])
}
