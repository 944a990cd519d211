//! The plane's credentials: its authority, its serving certificate, the administrator's client
//! certificate and token, the key that signs service account tokens.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use ring::rand::SecureRandom;
use serde_json::Value;

use crate::keys::TokenKeys;

/// Names under which the server may be called.
const SERVING_NAMES: &[&str] = &[
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "127.0.0.1",
    "::1",
    "10.96.0.1",
];
const FILE: &str = "identity.json";

/// Everything that proves who is who. PEM and hexadecimal text.
#[derive(Clone)]
pub struct Identity {
    /// The authority's certificate.
    pub authority: String,
    pub(crate) serving: String,
    pub(crate) serving_key: String,
    pub(crate) client: String,
    pub(crate) client_key: String,
    /// The administrator's bearer token.
    pub(crate) token: String,
    /// What signs service account tokens.
    token_keys: Value,
}

/// Why credentials could not be made or kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}")]
pub struct IdentityError {
    /// What was being attempted.
    pub action: String,
    /// Why it failed.
    #[source]
    pub cause: Box<dyn std::error::Error + Send + Sync>,
}

fn failed<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    action: &str,
) -> impl FnOnce(E) -> IdentityError {
    let action = action.to_owned();
    move |cause| IdentityError {
        action,
        cause: cause.into(),
    }
}

impl Identity {
    /// New credentials.
    pub fn make() -> Result<Identity, IdentityError> {
        let sign = "make the plane's certificates";
        let authority_key = KeyPair::generate().map_err(failed(sign))?;
        let mut params = CertificateParams::new(Vec::new()).map_err(failed(sign))?;
        params.distinguished_name = named("katmai-authority", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let authority = params.self_signed(&authority_key).map_err(failed(sign))?;
        let issuer = Issuer::new(params, authority_key);
        let (serving, serving_key) = {
            let names: Vec<String> = SERVING_NAMES.iter().map(ToString::to_string).collect();
            let mut params = CertificateParams::new(names).map_err(failed(sign))?;
            params.distinguished_name = named("katmai-server", None);
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            issue(params, &issuer).map_err(failed(sign))?
        };
        let (client, client_key) = {
            let mut params = CertificateParams::new(Vec::new()).map_err(failed(sign))?;
            params.distinguished_name = named("katmai-admin", Some("system:masters"));
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            issue(params, &issuer).map_err(failed(sign))?
        };
        Ok(Identity {
            authority: authority.pem(),
            serving,
            serving_key,
            client,
            client_key,
            token: secret()?,
            token_keys: TokenKeys::make(now_seconds())?.kept(),
        })
    }

    /// The credentials kept in `directory`, made there if there are none. Readable by nobody else.
    /// A token key that has grown old is followed by a new one.
    pub fn keep(directory: &Path) -> Result<Identity, IdentityError> {
        let path = directory.join(FILE);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let mut identity = Identity::parse(&text).ok_or_else(|| IdentityError {
                    action: format!("read the credentials {}", path.display()),
                    cause: "the file is damaged; delete it to make new ones".into(),
                })?;
                if identity.renew_token_keys(now_seconds())? {
                    write_private(&path, &identity.text())
                        .map_err(failed("keep the plane's credentials"))?;
                }
                Ok(identity)
            }
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                let identity = Identity::make()?;
                write_private(&path, &identity.text())
                    .map_err(failed("keep the plane's credentials"))?;
                Ok(identity)
            }
            Err(cause) => Err(failed("read the plane's credentials")(cause)),
        }
    }

    /// What signs service account tokens: see [`crate::Api::start`].
    pub fn token_keys(&self) -> Result<TokenKeys, IdentityError> {
        TokenKeys::read(&self.token_keys).ok_or_else(|| IdentityError {
            action: "read the plane's token keys".to_owned(),
            cause: "they are damaged".into(),
        })
    }

    /// Makes sure that there is a token key that is not too old; tells whether one was made.
    fn renew_token_keys(&mut self, now_seconds: i64) -> Result<bool, IdentityError> {
        let changed;
        let keys = match TokenKeys::read(&self.token_keys) {
            Some(mut keys) => {
                changed = keys.rotate(now_seconds)?;
                keys
            }
            None => {
                changed = true;
                TokenKeys::make(now_seconds)?
            }
        };
        self.token_keys = keys.kept();
        Ok(changed)
    }

    /// A kubeconfig for the administrator, for a server at this address.
    pub fn kubeconfig(&self, server: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: katmai\n  cluster:\n    server: {server}\n    certificate-authority-data: {}\ncontexts:\n- name: katmai\n  context:\n    cluster: katmai\n    user: katmai-admin\ncurrent-context: katmai\nusers:\n- name: katmai-admin\n  user:\n    client-certificate-data: {}\n    client-key-data: {}\n",
            STANDARD.encode(&self.authority),
            STANDARD.encode(&self.client),
            STANDARD.encode(&self.client_key),
        )
    }

    fn text(&self) -> String {
        serde_json::json!({
            "authority": self.authority,
            "serving": self.serving,
            "servingKey": self.serving_key,
            "client": self.client,
            "clientKey": self.client_key,
            "token": self.token,
            "tokenKeys": self.token_keys,
        })
        .to_string()
    }

    fn parse(text: &str) -> Option<Identity> {
        let kept: Value = serde_json::from_str(text).ok()?;
        let part = |key: &str| kept[key].as_str().map(str::to_owned);
        Some(Identity {
            authority: part("authority")?,
            serving: part("serving")?,
            serving_key: part("servingKey")?,
            client: part("client")?,
            client_key: part("clientKey")?,
            token: part("token")?,
            // A plane of before had another kind of key; it gets a new one.
            token_keys: kept["tokenKeys"].clone(),
        })
    }
}

fn now_seconds() -> i64 {
    crate::plane::now().micros() / 1_000_000
}

fn named(name: &str, organisation: Option<&str>) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    if let Some(organisation) = organisation {
        distinguished.push(DnType::OrganizationName, organisation);
    }
    distinguished
}

fn issue(
    mut params: CertificateParams,
    issuer: &Issuer<'_, KeyPair>,
) -> Result<(String, String), rcgen::Error> {
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn secret() -> Result<String, IdentityError> {
    let mut bytes = [0u8; 32];
    ring::rand::SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| IdentityError {
            action: "draw a token".to_owned(),
            cause: "the operating system gave no random bytes".into(),
        })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Writes a file that only its owner may read, whole or not at all.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;

    let draft = path.with_extension("new");
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(draft, path)
}
