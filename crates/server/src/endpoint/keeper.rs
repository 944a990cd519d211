//! Where the endpoint's certificate comes from: files that somebody renews, or a Secret in which all
//! replicas keep one that they renew themselves.
//!
//! A certificate of ours is followed by the next after 60 of its 90 days. The next one's authority is
//! told first, and the certificate shown only once every API server has had time to hear of it; the
//! authority before stays known until then. So no call fails while it changes.

use std::path::{Path, PathBuf};

use api::call::{self, Call};
use api::kind::Kind;
use api::time::Time;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::Cluster;
use serde_json::{Value, json};

use super::certificate::{CertificateError, Generation, ServedCertificate, failed};

const DAY_MS: i64 = 86_400_000;
/// When the next certificate is made.
const NEXT_AFTER_MS: i64 = 60 * DAY_MS;
/// How long the next certificate's authority is known before the certificate is shown.
const HEARD_AFTER_MS: i64 = 10 * 60_000;
/// How often a write that met another replica's is tried again.
const TRIES_MAX: usize = 5;

/// Upstream's `--tls-cert-file`, `--tls-private-key-file` and `--ca-cert-file`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain, PEM.
    pub chain: PathBuf,
    /// The key, PEM.
    pub key: PathBuf,
    /// Who vouches for the chain, and for callers that show a certificate, PEM.
    pub authority: PathBuf,
}

/// Where a certificate comes from.
pub enum CertificateKeeper {
    /// Files; they are read again each time.
    Files(CertificateFiles),
    /// A Secret of this cluster.
    Secret {
        /// The cluster.
        cluster: Cluster,
        /// The Secret's namespace.
        namespace: String,
        /// The Secret's name.
        name: String,
        /// Names by which the webhooks are called.
        server_names: Vec<String>,
    },
}

impl CertificateKeeper {
    /// Shows the certificate that others keep, and writes nothing; whether there is one.
    pub async fn look(&self, served: &ServedCertificate) -> Result<bool, CertificateError> {
        match self {
            CertificateKeeper::Files(files) => {
                served.show(&read(&files.chain)?, &read(&files.key)?)?;
                Ok(true)
            }
            CertificateKeeper::Secret {
                cluster,
                namespace,
                name,
                ..
            } => {
                let secret = Secret {
                    cluster,
                    namespace,
                    name,
                };
                let stored = secret.get().await?;
                let Some(kept) = stored.and_then(|stored| Kept::read(&stored["data"])) else {
                    return Ok(false);
                };
                served.show(&kept.current.chain, &kept.current.key)?;
                Ok(true)
            }
        }
    }

    /// Shows the certificate that is to be shown now, made or renewed if it is time to; gives the
    /// authorities, any of which may vouch for it. To be called now and then.
    pub async fn keep(
        &self,
        served: &ServedCertificate,
        now: Time,
    ) -> Result<String, CertificateError> {
        match self {
            CertificateKeeper::Files(files) => {
                let chain = read(&files.chain)?;
                served.show(&chain, &read(&files.key)?)?;
                let authority = read(&files.authority)?;
                served.ask(&authority)?;
                Ok(authority)
            }
            CertificateKeeper::Secret {
                cluster,
                namespace,
                name,
                server_names,
            } => {
                let secret = Secret {
                    cluster,
                    namespace,
                    name,
                };
                let kept = secret.turned(server_names, now).await?;
                served.show(&kept.current.chain, &kept.current.key)?;
                Ok(kept.authorities())
            }
        }
    }
}

fn read(path: &Path) -> Result<String, CertificateError> {
    std::fs::read_to_string(path).map_err(failed(format!("read {}", path.display())))
}

/// What the replicas have agreed upon.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    current: Generation,
    /// Its authority is known already.
    next: Option<Generation>,
    /// The authority of the certificate before.
    past: String,
}

impl Kept {
    /// What is kept from now on; the second is whether that is new.
    fn turned(
        kept: Option<Kept>,
        names: &[String],
        now: Time,
    ) -> Result<(Kept, bool), CertificateError> {
        let Some(mut kept) = kept else {
            let first = Kept {
                current: Generation::make(names, now)?,
                next: None,
                past: String::new(),
            };
            return Ok((first, true));
        };
        match kept.next.take() {
            Some(next) if now >= next.made.plus_ms(HEARD_AFTER_MS) => {
                kept.past = std::mem::replace(&mut kept.current, next).authority;
                Ok((kept, true))
            }
            None if now >= kept.current.made.plus_ms(NEXT_AFTER_MS) => {
                kept.next = Some(Generation::make(names, now)?);
                kept.past = String::new();
                Ok((kept, true))
            }
            next => {
                kept.next = next;
                Ok((kept, false))
            }
        }
    }

    fn authorities(&self) -> String {
        let next = self.next.as_ref().map_or("", |next| &next.authority);
        [&self.past, &*self.current.authority, next].concat()
    }

    fn read(data: &Value) -> Option<Kept> {
        let text = |key: &str| {
            let bytes = STANDARD.decode(data[key].as_str()?).ok()?;
            String::from_utf8(bytes).ok()
        };
        let generation = |prefix: &str| {
            Some(Generation {
                authority: text(&format!("{prefix}ca.crt"))?,
                chain: text(&format!("{prefix}tls.crt"))?,
                key: text(&format!("{prefix}tls.key"))?,
                made: Time::parse(&text(&format!("{prefix}made"))?)?,
            })
        };
        Some(Kept {
            current: generation("")?,
            next: generation("next."),
            past: text("past.ca.crt").unwrap_or_default(),
        })
    }

    fn data(&self) -> Value {
        let mut data = json!({});
        let mut put = |key: String, text: &str| data[key] = STANDARD.encode(text).into();
        let both = [("", Some(&self.current)), ("next.", self.next.as_ref())];
        for (prefix, generation) in both {
            if let Some(generation) = generation {
                put(format!("{prefix}ca.crt"), &generation.authority);
                put(format!("{prefix}tls.crt"), &generation.chain);
                put(format!("{prefix}tls.key"), &generation.key);
                put(format!("{prefix}made"), &generation.made.seconds_text());
            }
        }
        put("past.ca.crt".to_owned(), &self.past);
        data
    }
}

struct Secret<'a> {
    cluster: &'a Cluster,
    namespace: &'a str,
    name: &'a str,
}

impl Secret<'_> {
    /// What is kept now: whoever writes first has decided for all.
    async fn turned(&self, names: &[String], now: Time) -> Result<Kept, CertificateError> {
        let action = || format!("keep the certificate in {}/{}", self.namespace, self.name);
        for _ in 0..TRIES_MAX {
            let stored = self.get().await?;
            let had = stored
                .as_ref()
                .and_then(|stored| Kept::read(&stored["data"]));
            let (kept, is_new) = Kept::turned(had, names, now)?;
            if !is_new {
                return Ok(kept);
            }
            let call = self.put(stored.as_ref(), &kept);
            let answer = self.cluster.send(&call).await.map_err(failed(action()))?;
            if answer.code != 409 {
                answer.accepted().map_err(failed(action()))?;
                return Ok(kept);
            }
        }
        Err(failed(action())("others write it all the time"))
    }

    async fn get(&self) -> Result<Option<Value>, CertificateError> {
        let action = || format!("read the secret {}/{}", self.namespace, self.name);
        let call = call::get(Kind::Secret, self.namespace, self.name);
        let answer = self.cluster.send(&call).await.map_err(failed(action()))?;
        if answer.code == 404 {
            return Ok(None);
        }
        let answer = answer.accepted().map_err(failed(action()))?;
        let stored = serde_json::from_slice(&answer.body).map_err(failed(action()))?;
        Ok(Some(stored))
    }

    /// The write; one of a Secret that has changed since it was read is refused.
    fn put(&self, stored: Option<&Value>, kept: &Kept) -> Call {
        let (method, target) = match stored {
            None => ("POST", Kind::Secret.path(self.namespace, "")),
            Some(_) => ("PUT", Kind::Secret.path(self.namespace, self.name)),
        };
        let mut secret = stored.cloned().unwrap_or_else(|| {
            json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": { "namespace": self.namespace, "name": self.name },
                "type": "Opaque",
            })
        });
        secret["data"] = kept.data();
        Call {
            method,
            target,
            content_type: "application/json",
            body: secret.to_string().into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(day: i64) -> Time {
        Time::from_seconds(1_790_000_000).plus_ms(day * DAY_MS)
    }

    #[test]
    fn a_certificate_is_followed_by_one_whose_authority_was_known_before() {
        let names = ["webhooks.ns.svc".to_owned()];
        let turn = |kept, now| Kept::turned(kept, &names, now).expect("certificates can be made");
        let (first, is_new) = turn(None, day(0));
        assert!(is_new);
        assert_eq!(turn(Some(first.clone()), day(59)), (first.clone(), false));
        let (told, is_new) = turn(Some(first.clone()), day(60));
        assert!(is_new && told.current == first.current);
        let next = told.next.clone().expect("it was made");
        assert!(told.authorities().contains(&next.authority));
        assert!(!turn(Some(told.clone()), next.made.plus_ms(HEARD_AFTER_MS - 1)).1);
        let (after, is_new) = turn(Some(told), next.made.plus_ms(HEARD_AFTER_MS));
        assert!(is_new && after.current == next && after.next.is_none());
        assert!(after.authorities().contains(&first.current.authority));
        let (again, _) = turn(Some(after), day(121));
        assert!(!again.authorities().contains(&first.current.authority));
    }

    #[test]
    fn what_is_kept_is_read_again_and_what_is_damaged_is_made_anew() {
        let names = ["a".to_owned()];
        let (mut kept, _) = Kept::turned(None, &names, day(0)).expect("it can be made");
        kept.next = Some(Generation::make(&names, day(60)).expect("it can be made"));
        assert_eq!(Kept::read(&kept.data()), Some(kept.clone()));
        let mut damaged = kept.data();
        damaged["tls.key"] = "?".into();
        assert_eq!(Kept::read(&damaged), None);
    }

    #[test]
    fn a_certificate_of_ours_can_be_shown_and_a_foreign_key_cannot() {
        let made =
            |name: &str| Generation::make(&[name.to_owned()], day(0)).expect("it can be made");
        let (one, other) = (made("a"), made("b"));
        let served = ServedCertificate::default();
        assert!(served.show(&one.chain, &one.key).is_ok());
        assert!(served.show(&one.chain, &other.key).is_err());
        assert!(served.show("", &one.key).is_err());
    }
}
