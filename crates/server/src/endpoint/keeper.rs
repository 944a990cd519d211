//! Where the endpoint's certificate comes from: files that somebody renews, or a Secret in which all
//! replicas keep one that they renew themselves.
//!
//! A certificate of ours is followed by the next after 60 of its 90 days. The next one's authority is
//! told first, and the certificate shown only once every API server has had time to hear of it; the
//! authority before stays known until then. So no call fails while it changes.
//!
//! A certificate that lacks one of the names by which we are called is followed by one that has it. Where no
//! caller believes the one that is kept (it has run out, or its clock was wrong, or it has none of their
//! names), there is nothing to wait for: the next one is shown at once.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use api::call::{self, Call};
use api::kind::Kind;
use api::time::Time;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::Cluster;
use serde_json::{Value, json};

use super::certificate::{CertificateError, Generation, ServedCertificate, failed, plain};

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

impl Generation {
    /// Whether we may be called by each of these names.
    fn has_all(&self, names: &[String]) -> bool {
        let own = self.names();
        names.iter().all(|name| own.contains(&plain(name)))
    }

    /// Whether anybody who calls by one of these names believes it, its authority known. Nobody calls from
    /// here itself, unless there is no other name.
    fn is_believed(&self, names: &[String], now: Time) -> bool {
        let own = self.names();
        let mut others = names.iter().filter(|name| !is_here(name)).peekable();
        let is_called = others.peek().is_none() || others.any(|name| own.contains(&plain(name)));
        is_called && self.is_valid(now)
    }
}

fn is_here(name: &str) -> bool {
    let ip: Result<IpAddr, _> = name.parse();
    ip.map_or(name == "localhost", |ip| ip.is_loopback())
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
        let has_all = kept.current.has_all(names);
        let is_believed = kept.current.is_believed(names, now);
        let is_due = now >= kept.current.made.plus_ms(NEXT_AFTER_MS);
        match kept.next.take() {
            Some(next) if next.is_valid(now) && next.has_all(names) => {
                let is_heard = now >= next.made.plus_ms(HEARD_AFTER_MS);
                if is_heard || !is_believed {
                    kept.past = std::mem::replace(&mut kept.current, next).authority;
                    return Ok((kept, true));
                }
                kept.next = Some(next);
                Ok((kept, false))
            }
            None if is_believed && has_all && !is_due => Ok((kept, false)),
            unfit => {
                let mut names = names.to_vec();
                // Replicas that were told other names share it: what each of them wants stays in it, so that
                // they agree. What nobody wants any more goes with the next in its turn.
                let lacking = (!has_all).then_some(&kept.current);
                for other in lacking
                    .into_iter()
                    .chain(&unfit)
                    .flat_map(Generation::names)
                {
                    if !names.iter().any(|name| plain(name) == other) {
                        names.push(other);
                    }
                }
                let made = Generation::make(&names, now)?;
                if is_believed {
                    kept.next = Some(made);
                    kept.past = String::new();
                } else {
                    kept.past = std::mem::replace(&mut kept.current, made).authority;
                }
                Ok((kept, true))
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

    const HERE: &[&str] = &["localhost", "127.0.0.1"];

    fn named(more: &[&str]) -> Vec<String> {
        let all = HERE.iter().chain(more);
        all.map(|name| (*name).to_owned()).collect()
    }

    /// What is kept after a look, and whether it was written.
    fn turn(kept: &Kept, more: &[&str], now: Time) -> (Kept, bool) {
        Kept::turned(Some(kept.clone()), &named(more), now).expect("certificates can be made")
    }

    fn first(more: &[&str]) -> Kept {
        let (kept, _) = Kept::turned(None, &named(more), day(0)).expect("it can be made");
        kept
    }

    #[test]
    fn a_certificate_without_the_name_of_the_service_is_followed_by_one_with_it_at_once() {
        let old = first(&[]);
        assert!(!turn(&old, &[], day(1)).1);
        let (kept, is_new) = turn(&old, &["a.ns.svc"], day(1));
        assert!(is_new && kept.next.is_none());
        assert!(kept.current.has_all(&named(&["a.ns.svc"])));
        assert!(kept.authorities().contains(&old.current.authority));
        // Another Service later, and a replica that knows the first one only: both agree.
        let (kept, is_new) = turn(&kept, &["b.ns.svc"], day(2));
        assert!(is_new);
        assert!(!turn(&kept, &["a.ns.svc"], day(2)).1);
        assert!(!turn(&kept, &["b.ns.svc"], day(2)).1);
        // The next in its turn has what is wanted then.
        let (kept, _) = turn(&kept, &["b.ns.svc"], day(62));
        let next = kept.next.expect("it was made");
        assert!(!next.names().contains(&"a.ns.svc".to_owned()));
    }

    #[test]
    fn a_name_that_comes_beside_one_that_is_called_by_waits_until_its_authority_is_known() {
        let (old, wanted) = (first(&["a.ns.svc"]), &["a.ns.svc", "192.0.2.7"]);
        let (told, is_new) = turn(&old, wanted, day(1));
        assert!(is_new && told.current == old.current);
        let heard = day(1).plus_ms(HEARD_AFTER_MS);
        assert!(!turn(&told, wanted, heard.plus_ms(-1)).1);
        let (kept, _) = turn(&told, wanted, heard);
        assert_eq!(Some(&kept.current), told.next.as_ref());
        // One that waits and lacks a name itself is made anew.
        let (kept, is_new) = turn(&told, &["a.ns.svc", "HOST"], heard);
        let next = kept.next.expect("it was made");
        assert!(is_new && next.has_all(&named(&["192.0.2.7", "host"])));
    }

    #[test]
    fn a_certificate_that_has_run_out_or_is_of_the_future_is_not_shown_any_more() {
        let old = first(&["a.ns.svc"]);
        for now in [day(91), day(-3)] {
            let (kept, is_new) = turn(&old, &["a.ns.svc"], now);
            assert!(is_new && kept.next.is_none());
            assert!(kept.current.is_valid(now) && !old.current.is_valid(now));
        }
        // One that was told and never shown is shown now, without a wait.
        let (told, _) = turn(&old, &["a.ns.svc"], day(89));
        let next = told.next.clone().expect("it was made");
        let late = Kept {
            next: Some(Generation {
                made: day(91),
                ..next
            }),
            ..told
        };
        let (kept, is_new) = turn(&late, &["a.ns.svc"], day(91));
        assert!(is_new && late.next == Some(kept.current));
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
