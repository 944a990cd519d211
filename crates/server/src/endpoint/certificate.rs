//! The certificate that the endpoint shows: it changes while connections are served.

use std::sync::{Arc, PoisonError, RwLock};

use api::time::Time;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// How long a certificate of ours is good, in days.
const LIFE_DAYS: i64 = 90;
const DAY_MS: i64 = 86_400_000;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}")]
pub struct CertificateError {
    /// What was being attempted.
    pub action: String,
    /// Why it failed.
    #[source]
    pub cause: Box<dyn std::error::Error + Send + Sync>,
}

pub(super) fn failed<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    action: impl Into<String>,
) -> impl FnOnce(E) -> CertificateError {
    let action = action.into();
    move |cause| CertificateError {
        action,
        cause: cause.into(),
    }
}

/// What is shown to who connects. Cheap to clone; all clones show the same.
#[derive(Clone, Debug, Default)]
pub struct ServedCertificate(Arc<Shown>);

#[derive(Debug, Default)]
struct Shown(RwLock<Option<Arc<CertifiedKey>>>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let shown = self.0.read().unwrap_or_else(PoisonError::into_inner);
        shown.clone()
    }
}

impl ServedCertificate {
    /// Shows this PEM chain from now on; connections that are open keep theirs.
    pub fn show(&self, chain: &str, key: &str) -> Result<(), CertificateError> {
        let read = "read the certificate to serve with";
        let chain = CertificateDer::pem_slice_iter(chain.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed(read))?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(failed(read))?;
        let key = any_supported_type(&key).map_err(failed(read))?;
        let certified = CertifiedKey::new(chain, key);
        certified.keys_match().map_err(failed(read))?;
        let mut shown = self.0.0.write().unwrap_or_else(PoisonError::into_inner);
        *shown = Some(Arc::new(certified));
        Ok(())
    }

    pub(crate) fn server_config(
        &self,
        callers: Option<Arc<dyn ClientCertVerifier>>,
    ) -> Result<ServerConfig, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let builder = match callers {
            Some(callers) => builder.with_client_cert_verifier(callers),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(self.0.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// A certificate with an authority of its own, whose key nobody keeps. PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Generation {
    pub(super) authority: String,
    pub(super) chain: String,
    pub(super) key: String,
    pub(super) made: Time,
}

impl Generation {
    /// A new one for a server of these names, good for 90 days.
    pub(super) fn make(names: &[String], now: Time) -> Result<Generation, CertificateError> {
        let action = "make a certificate to serve with";
        Generation::signed(names, now).map_err(failed(action))
    }

    fn signed(names: &[String], now: Time) -> Result<Generation, rcgen::Error> {
        let authority_key = KeyPair::generate()?;
        let mut params = params(Vec::new(), "katmai-authority", now)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let authority = params.self_signed(&authority_key)?;
        let issuer = Issuer::new(params, authority_key);
        let mut params = self::params(names.to_vec(), "katmai-server", now)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let chain = params.signed_by(&key, &issuer)?;
        Ok(Generation {
            authority: authority.pem(),
            chain: chain.pem(),
            key: key.serialize_pem(),
            made: now,
        })
    }
}

fn params(names: Vec<String>, called: &str, now: Time) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    let mut distinguished = DistinguishedName::new();
    // Authorities of one name and several keys would be taken for one another.
    let called = format!("{called}-{}", now.micros());
    distinguished.push(DnType::CommonName, called);
    params.distinguished_name = distinguished;
    // Clocks differ.
    let (year, month, day) = date(now.plus_ms(-DAY_MS));
    params.not_before = rcgen::date_time_ymd(year, month, day);
    let (year, month, day) = date(now.plus_ms(LIFE_DAYS * DAY_MS));
    params.not_after = rcgen::date_time_ymd(year, month, day);
    Ok(params)
}

/// Year, month and day of an instant.
fn date(at: Time) -> (i32, u8, u8) {
    let text = at.seconds_text();
    let mut parts = text.split(['-', 'T']);
    let mut part = || parts.next().unwrap_or_default();
    let year = part().parse().unwrap_or(1970);
    let month = part().parse().unwrap_or(1);
    let day = part().parse().unwrap_or(1);
    (year, month, day)
}
