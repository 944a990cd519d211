//! Who may ask an instance, and how it proves who it is.

use std::path::Path;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// Users with a static token: their name, and their groups. The first is the administrator, the
/// others may do nothing until a binding says so.
pub const USERS: &[(&str, &str)] = &[
    ("admin", "system:masters"),
    ("alice", "developers"),
    ("bob", "developers,testers"),
    ("carol", ""),
];

/// Writes all of it into the directory.
pub fn write(directory: &Path) -> anyhow::Result<()> {
    let authority_key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    params
        .distinguished_name
        .push(DnType::CommonName, "realkube-authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let authority = params.self_signed(&authority_key)?;
    keep(directory, "ca.crt", &authority.pem())?;
    keep(directory, "ca.key", &authority_key.serialize_pem())?;
    let issuer = Issuer::new(params, authority_key);

    let serving_key = KeyPair::generate()?;
    let names = [
        "localhost",
        "127.0.0.1",
        "kubernetes.default.svc",
        "10.96.0.1",
    ];
    let mut params = CertificateParams::new(names.map(str::to_owned))?;
    params
        .distinguished_name
        .push(DnType::CommonName, "kube-apiserver");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let serving = params.signed_by(&serving_key, &issuer)?;
    keep(directory, "serving.crt", &serving.pem())?;
    keep(directory, "serving.key", &serving_key.serialize_pem())?;

    // Service account tokens are signed with one half and checked with the other.
    let signing = KeyPair::generate()?;
    keep(directory, "service-account.key", &signing.serialize_pem())?;
    keep(directory, "service-account.pub", &signing.public_key_pem())?;

    let rows: Vec<String> = USERS
        .iter()
        .map(|(user, groups)| {
            // An empty list would be read as one group without a name.
            let groups = match *groups {
                "" => String::new(),
                groups => format!(",\"{groups}\""),
            };
            format!("{},{user},{user}{groups}", token(user))
        })
        .collect();
    keep(directory, "tokens.csv", &(rows.join("\n") + "\n"))
}

/// A user's token. It opens nothing but a scratch server on loopback, so it may be easy to type.
pub fn token(user: &str) -> String {
    format!("{user}-token")
}

/// A kubeconfig with a context for every user, the administrator's being the current one.
pub fn kubeconfig(directory: &Path, url: &str) -> anyhow::Result<String> {
    let authority = std::fs::read(directory.join("ca.crt")).context("cannot read the authority")?;
    let mut text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: admin\nclusters:\n- name: realkube\n  cluster:\n    server: {url}\n    certificate-authority-data: {}\n",
        STANDARD.encode(authority)
    );
    text.push_str("contexts:\n");
    for (user, _) in USERS {
        text.push_str(&format!(
            "- name: {user}\n  context:\n    cluster: realkube\n    user: {user}\n"
        ));
    }
    text.push_str("users:\n");
    for (user, _) in USERS {
        text.push_str(&format!(
            "- name: {user}\n  user:\n    token: {}\n",
            token(user)
        ));
    }
    Ok(text)
}

/// Writes a file of the instance.
pub fn keep(directory: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let path = directory.join(name);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}
