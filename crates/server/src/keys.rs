//! The keys that sign service account tokens: the newest signs, older ones still verify.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64};
use ring::digest;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use serde_json::{Value, json};
use store::{API_AUDIENCE, Mint};

use crate::identity::IdentityError;

/// Age at which the newest key is followed by another, in seconds: 90 days.
const ROTATE_SECONDS: i64 = 90 * 24 * 3_600;
/// Most keys that are kept: a token signed by an older one is no longer ours. Some tokens live for
/// a year.
const KEYS_MAX: usize = 6;
/// Most tokens whose signature is remembered as good.
const REMEMBERED_MAX: usize = 4_096;

/// The plane's token keys.
pub struct TokenKeys {
    /// The newest first.
    keys: Vec<TokenKey>,
    random: SystemRandom,
    /// Claims of tokens whose signature was found good, by the token's digest. What they claim is
    /// looked at with every request.
    good: Mutex<HashMap<Vec<u8>, Arc<Value>>>,
}

struct TokenKey {
    /// Names the key in a token's head.
    id: String,
    pair: EcdsaKeyPair,
    document: Vec<u8>,
    /// Seconds since the epoch.
    made: i64,
}

impl TokenKeys {
    /// One new key.
    pub fn make(now_seconds: i64) -> Result<TokenKeys, IdentityError> {
        let random = SystemRandom::new();
        let key = TokenKey::make(&random, now_seconds)?;
        Ok(TokenKeys::of(vec![key]))
    }

    fn of(keys: Vec<TokenKey>) -> TokenKeys {
        TokenKeys {
            keys,
            random: SystemRandom::new(),
            good: Mutex::new(HashMap::new()),
        }
    }

    /// The keys that [`TokenKeys::kept`] wrote.
    pub(crate) fn read(kept: &Value) -> Option<TokenKeys> {
        let mut keys = Vec::new();
        for key in kept.as_array()? {
            let document = STANDARD.decode(key["key"].as_str()?).ok()?;
            keys.push(TokenKey::read(document, key["made"].as_i64()?)?);
        }
        (!keys.is_empty()).then(|| TokenKeys::of(keys))
    }

    /// What is kept of the keys.
    pub(crate) fn kept(&self) -> Value {
        self.keys
            .iter()
            .map(|key| json!({ "key": STANDARD.encode(&key.document), "made": key.made }))
            .collect()
    }

    /// Adds a key if the newest is old, and forgets the oldest beyond what is kept; tells whether
    /// anything changed.
    pub(crate) fn rotate(&mut self, now_seconds: i64) -> Result<bool, IdentityError> {
        if self
            .keys
            .first()
            .is_some_and(|newest| now_seconds < newest.made.saturating_add(ROTATE_SECONDS))
        {
            return Ok(false);
        }
        let key = TokenKey::make(&self.random, now_seconds)?;
        self.keys.insert(0, key);
        self.keys.truncate(KEYS_MAX);
        Ok(true)
    }

    /// Signs the claims of a token and puts it into its answer.
    pub(crate) fn sign(&self, mint: Mint) -> Result<Value, String> {
        let key = self.keys.first().ok_or("there is no key")?;
        let head = BASE64.encode(json!({ "alg": "ES256", "kid": key.id }).to_string());
        let body = BASE64.encode(mint.claims.to_string());
        let signed = format!("{head}.{body}");
        let signature = key
            .pair
            .sign(&self.random, signed.as_bytes())
            .map_err(|_| "the system has no random bytes")?;
        let mut answer = mint.answer;
        answer["status"]["token"] = json!(format!("{signed}.{}", BASE64.encode(signature)));
        Ok(answer)
    }

    /// What a token claims, if one of the keys signed it.
    pub(crate) fn claims(&self, token: &str) -> Option<Arc<Value>> {
        let digest = digest::digest(&digest::SHA256, token.as_bytes());
        {
            let good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(claims) = good.get(digest.as_ref()) {
                return Some(claims.clone());
            }
        }
        let claims = Arc::new(self.verified(token)?);
        let mut good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        if good.len() >= REMEMBERED_MAX {
            good.clear();
        }
        good.insert(digest.as_ref().to_vec(), claims.clone());
        Some(claims)
    }

    fn verified(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (head, body) = signed.split_once('.')?;
        let head: Value = serde_json::from_slice(&BASE64.decode(head).ok()?).ok()?;
        if head["alg"] != "ES256" {
            return None;
        }
        let key = self.keys.iter().find(|key| head["kid"] == *key.id)?;
        let signature = BASE64.decode(signature).ok()?;
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.pair.public_key())
            .verify(signed.as_bytes(), &signature)
            .ok()?;
        serde_json::from_slice(&BASE64.decode(body).ok()?).ok()
    }

    /// `/openid/v1/jwks`: the public halves, for whoever checks tokens by themselves.
    pub(crate) fn public(&self) -> Value {
        let keys: Vec<Value> = self
            .keys
            .iter()
            .filter_map(|key| {
                // An uncompressed point: 4, x, y.
                let (_, point) = key.pair.public_key().as_ref().split_first()?;
                let (x, y) = point.split_at_checked(32)?;
                Some(json!({
                    "use": "sig", "kty": "EC", "kid": key.id, "crv": "P-256", "alg": "ES256",
                    "x": BASE64.encode(x), "y": BASE64.encode(y),
                }))
            })
            .collect();
        json!({ "keys": keys })
    }

    /// `/.well-known/openid-configuration` of a server at this address.
    pub(crate) fn discovery(server: &str) -> Value {
        json!({
            "issuer": API_AUDIENCE,
            "jwks_uri": format!("{server}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    }
}

impl TokenKey {
    fn make(random: &SystemRandom, now_seconds: i64) -> Result<TokenKey, IdentityError> {
        let failed = |cause: &str| IdentityError {
            action: "make a token key".to_owned(),
            cause: cause.to_owned().into(),
        };
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, random)
            .map_err(|_| failed("the operating system gave no random bytes"))?;
        TokenKey::read(document.as_ref().to_vec(), now_seconds)
            .ok_or_else(|| failed("a new key cannot be read"))
    }

    fn read(document: Vec<u8>, made: i64) -> Option<TokenKey> {
        let random = SystemRandom::new();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &document, &random).ok()?;
        let digest = digest::digest(&digest::SHA256, pair.public_key().as_ref());
        Some(TokenKey {
            id: BASE64.encode(digest),
            pair,
            document,
            made,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(keys: &TokenKeys) -> String {
        let mint = Mint {
            claims: json!({ "sub": "a" }),
            answer: json!({ "status": {} }),
        };
        let answer = keys.sign(mint).expect("a signature");
        answer["status"]["token"].as_str().expect("text").to_owned()
    }

    #[test]
    fn only_our_own_unchanged_tokens_are_believed() {
        let keys = TokenKeys::make(0).expect("keys");
        let good = token(&keys);
        assert_eq!(keys.claims(&good).expect("claims")["sub"], "a");
        let stranger = TokenKeys::make(0).expect("keys");
        assert_eq!(stranger.claims(&good), None);
        let (signed, signature) = good.rsplit_once('.').expect("parts");
        let (head, _) = signed.split_once('.').expect("parts");
        let other = BASE64.encode(json!({ "sub": "b" }).to_string());
        let none = BASE64.encode(json!({ "alg": "none" }).to_string());
        for forged in [
            format!("{head}.{other}.{signature}"),
            format!("{none}.{other}."),
            format!("{signed}."),
            signed.to_owned(),
            String::new(),
        ] {
            assert_eq!(keys.claims(&forged), None, "{forged}");
        }
    }

    #[test]
    fn a_rotated_key_verifies_until_it_is_forgotten() {
        let mut keys = TokenKeys::make(0).expect("keys");
        let first = token(&keys);
        assert!(!keys.rotate(ROTATE_SECONDS - 1).expect("no change"));
        let kept = i64::try_from(KEYS_MAX).expect("few");
        for round in 1..kept {
            assert!(keys.rotate(ROTATE_SECONDS * round).expect("a new key"));
            let read = TokenKeys::read(&keys.kept()).expect("what was kept");
            assert!(read.claims(&first).is_some(), "{round}");
            assert!(read.claims(&token(&keys)).is_some(), "{round}");
        }
        assert!(keys.rotate(ROTATE_SECONDS * kept).expect("a new key"));
        let read = TokenKeys::read(&keys.kept()).expect("what was kept");
        assert_eq!(read.claims(&first), None);
    }
}
