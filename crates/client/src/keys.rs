//! Keys for Secrets, drawn from the operating system's random numbers. They are neither kept nor
//! logged: whoever needs one reads the Secret.
//!
//! Forms: public keys as RFC 4253 (6.6) and RFC 8709 (4) have them, private Ed25519 keys by
//! `PROTOCOL.key` of OpenSSH.

mod form;
mod rsa;

use std::borrow::Cow;

use api::intent::{DrawnKey, Intent, KeyMaterial, Refusal};
use form::{Blob, line, pem};
use rand_core::{OsRng, RngCore};
use ring::signature::{Ed25519KeyPair, KeyPair};

/// What stands behind a public key, where its maker is usually named.
const COMMENT: &str = "katmai";
const ED25519: &str = "ssh-ed25519";
const SEED_BYTES: usize = 32;

/// Why a key could not be drawn.
#[derive(Debug, thiserror::Error)]
enum KeyError {
    #[error("cannot get random numbers: {0}")]
    Random(rand_core::Error),
    #[error("cannot make a key: {0}")]
    Rejected(ring::error::KeyRejected),
    #[error("whoever was drawing the key has ended")]
    Ended(#[from] tokio::task::JoinError),
}

/// The intent with its key in it, if it wants one. Drawing takes up to seconds, and no turn of others.
pub(crate) async fn filled(intent: &Intent) -> Result<Cow<'_, Intent>, Refusal> {
    let Some(key) = intent.wants_key() else {
        return Ok(Cow::Borrowed(intent));
    };
    let drawn = tokio::task::spawn_blocking(move || draw(key)).await;
    let drawn = drawn.map_err(KeyError::from).flatten();
    intent.drawn(|_| drawn).map_err(|error| Refusal {
        code: 500,
        reason: "InternalError".into(),
        message: crate::cluster::chain(&error).into(),
        retry_after_seconds: None,
    })
}

fn draw(key: KeyMaterial) -> Result<DrawnKey, KeyError> {
    match key {
        KeyMaterial::SshEd25519 => draw_ed25519(),
        KeyMaterial::SshEd25519AndHost => Ok(DrawnKey {
            host: Some(Box::new(draw_ed25519()?)),
            ..draw_ed25519()?
        }),
        KeyMaterial::SshRsa2048 => rsa::draw(&mut OsRng),
    }
}

fn draw_ed25519() -> Result<DrawnKey, KeyError> {
    let mut seed = [0; SEED_BYTES];
    OsRng.try_fill_bytes(&mut seed).map_err(KeyError::Random)?;
    let mut check = [0; 4];
    OsRng.try_fill_bytes(&mut check).map_err(KeyError::Random)?;
    ed25519(&seed, check)
}

/// The pair that follows from a seed. `check` stands in the private key twice: whoever reads it sees
/// that it was not encrypted.
fn ed25519(seed: &[u8; SEED_BYTES], check: [u8; 4]) -> Result<DrawnKey, KeyError> {
    let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(KeyError::Rejected)?;
    let key = pair.public_key().as_ref();
    let mut public = Blob::default();
    public.text(ED25519);
    public.bytes(key);

    let mut private = Blob::default();
    private.0.extend([check, check].concat());
    private.0.extend(&public.0);
    private.bytes(&[&seed[..], key].concat());
    private.text(COMMENT);
    private.pad();

    let mut file = Blob(b"openssh-key-v1\0".to_vec());
    file.text("none"); // cipher
    file.text("none"); // how its key follows from a password
    file.text(""); // settings of that
    file.number(1); // keys
    file.bytes(&public.0);
    file.bytes(&private.0);
    Ok(DrawnKey {
        private: pem("OPENSSH PRIVATE KEY", &file.0),
        public: line(ED25519, &public),
        host: None,
    })
}

#[cfg(test)]
mod tests {
    use api::intent::{Action, ObjectKey};
    use api::kind::Kind;
    use serde_json::json;

    use super::*;

    const PRIVATE: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----\n\
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz\n\
c2gtZWQyNTUxOQAAACDqSmxj4pxSCr71UHsTLsX5lUd2rr6+e5JCHuppFEbSLAAA\n\
AJBzYW1lc2FtZQAAAAtzc2gtZWQyNTUxOQAAACDqSmxj4pxSCr71UHsTLsX5lUd2\n\
rr6+e5JCHuppFEbSLAAAAEAHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH\n\
B+pKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIsAAAABmthdG1haQECAwQF\n\
Bgc=\n\
-----END OPENSSH PRIVATE KEY-----\n";

    /// Of this file `ssh-keygen -y` of OpenSSH says that the line below is its public key.
    #[test]
    fn a_key_is_written_as_openssh_reads_it() {
        let key = ed25519(&[7; SEED_BYTES], *b"same").unwrap();
        assert_eq!(key.private, PRIVATE);
        assert_eq!(
            key.public,
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOpKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs katmai\n"
        );
    }

    #[test]
    fn the_key_of_hosts_stands_behind_their_name() {
        let secret = Intent {
            target: ObjectKey::new(Kind::Secret, "ml", "a-ssh"),
            action: Action::CreateSecret {
                body: json!({ "stringData": { "known_hosts": "a.ml" } }),
                key: KeyMaterial::SshEd25519AndHost,
            },
        };
        let filled = secret.drawn(draw).unwrap();
        let Action::CreateSecret { body, .. } = &filled.action else {
            panic!("it is a Secret still");
        };
        let text = |file: &str| body["stringData"][file].as_str().unwrap().to_owned();
        let public = text("ssh_host_ed25519_key.pub");
        assert_eq!(text("known_hosts"), format!("a.ml {public}"));
        assert_ne!(public, text("id_rsa.pub"));
        assert!(text("ssh_host_ed25519_key").starts_with("-----BEGIN OPENSSH PRIVATE KEY-----"));
    }

    #[test]
    fn each_key_is_another_one_and_is_not_printed() {
        let [one, other] = [0, 1].map(|_| draw(KeyMaterial::SshEd25519).unwrap());
        assert_ne!(one.private, other.private);
        assert_ne!(one.public, other.public);
        assert!(!format!("{one:?}").contains(&one.private));
        let both = draw(KeyMaterial::SshEd25519AndHost).unwrap();
        let host = both.host.as_ref().unwrap();
        assert_ne!(both.public, host.public);
        assert!(!format!("{both:?}").contains(&host.private));
    }
}
