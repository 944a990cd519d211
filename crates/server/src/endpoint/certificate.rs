//! The certificate that the endpoint shows, and whose it believes: both change while connections are served.

use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

use api::time::Time;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::ring::default_provider;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    DigitallySignedStruct, DistinguishedName as Subject, RootCertStore, ServerConfig,
    SignatureScheme,
};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::time::ASN1Time;

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

/// What is shown to who connects, and asked of them. Cheap to clone; all clones show and ask the same.
#[derive(Clone, Debug, Default)]
pub struct ServedCertificate(Arc<Shown>);

#[derive(Debug, Default)]
struct Shown {
    certified: RwLock<Option<Arc<CertifiedKey>>>,
    /// Who looks at certificates of callers; where there is none, they are not asked for any.
    callers: RwLock<Option<Arc<dyn ClientCertVerifier>>>,
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let shown = self
            .certified
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        shown.clone()
    }
}

impl Shown {
    fn callers(&self) -> Option<Arc<dyn ClientCertVerifier>> {
        let callers = self.callers.read().unwrap_or_else(PoisonError::into_inner);
        callers.clone()
    }

    fn asked(&self) -> Result<Arc<dyn ClientCertVerifier>, rustls::Error> {
        let unasked = || rustls::Error::General("no certificate was asked for".to_owned());
        self.callers().ok_or_else(unasked)
    }
}

/// Nobody has to have a certificate; who shows one must have it of the right authority.
impl ClientCertVerifier for Shown {
    fn offer_client_auth(&self) -> bool {
        self.callers().is_some()
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[Subject] {
        // They change while this is borrowed; callers have one certificate or none.
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.asked()?.verify_client_cert(certificate, between, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.asked()?
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.asked()?
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let known = || default_provider().signature_verification_algorithms;
        let callers = self.callers();
        callers.map_or_else(
            || known().supported_schemes(),
            |callers| callers.supported_verify_schemes(),
        )
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
        let shown = self.0.certified.write();
        *shown.unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(certified));
        Ok(())
    }

    /// From now on who shows a certificate must have it of one of these authorities (PEM), as upstream; who
    /// shows none is let in as before.
    pub fn ask(&self, authorities: &str) -> Result<(), CertificateError> {
        let read = "read the authority of callers' certificates";
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
            let authority = authority.map_err(failed(read))?;
            roots.add(authority).map_err(failed(read))?;
        }
        let provider = Arc::new(default_provider());
        let callers = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()
            .map_err(failed(read))?;
        let asked = self.0.callers.write();
        *asked.unwrap_or_else(PoisonError::into_inner) = Some(callers);
        Ok(())
    }

    /// Looks at callers' certificates by what was asked last.
    pub(crate) fn callers(&self) -> Arc<dyn ClientCertVerifier> {
        self.0.clone()
    }

    pub(crate) fn server_config(
        &self,
        callers: Option<Arc<dyn ClientCertVerifier>>,
    ) -> Result<ServerConfig, rustls::Error> {
        let provider = Arc::new(default_provider());
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

    /// Whether it is good at this instant, by its own dates. One that cannot be read never is.
    pub(super) fn is_valid(&self, now: Time) -> bool {
        let seconds = now.micros().div_euclid(1_000_000);
        let at = ASN1Time::from_timestamp(seconds);
        let is_good = |parsed: &X509Certificate<'_>, at| parsed.validity().is_valid_at(at);
        at.is_ok_and(|at| self.parsed(|parsed| is_good(parsed, at)).unwrap_or(false))
    }

    /// The names by which a server may be called that shows it, as [`plain`] writes them; none where it
    /// cannot be read.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.parsed(|parsed| {
            let names = parsed.subject_alternative_name().ok().flatten();
            let names = names.into_iter().flat_map(|it| &it.value.general_names);
            names.filter_map(said).collect()
        });
        names.unwrap_or_default()
    }

    fn parsed<T>(&self, look: impl FnOnce(&X509Certificate<'_>) -> T) -> Option<T> {
        let first = CertificateDer::from_pem_slice(self.chain.as_bytes()).ok()?;
        let (_, parsed) = x509_parser::parse_x509_certificate(&first).ok()?;
        Some(look(&parsed))
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

/// A name as all write it who mean the same.
pub(super) fn plain(name: &str) -> String {
    let ip: Result<IpAddr, _> = name.parse();
    ip.map_or_else(|_| name.to_ascii_lowercase(), |ip| ip.to_string())
}

fn said(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(plain(name)),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let six = <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
            Some(four.or(six).ok()?.to_string())
        }
        _ => None,
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
