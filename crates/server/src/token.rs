//! Service account tokens: JSON web tokens signed with the plane's own key.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::hmac;
use serde_json::{Value, json};
use store::{Mint, User};

/// Signs the claims of a token and puts it into its answer.
pub(crate) fn sign(key: &hmac::Key, mint: Mint) -> Value {
    let head = BASE64.encode(json!({ "alg": "HS256", "typ": "JWT" }).to_string());
    let body = BASE64.encode(mint.claims.to_string());
    let signed = format!("{head}.{body}");
    let signature = BASE64.encode(hmac::sign(key, signed.as_bytes()));
    let mut answer = mint.answer;
    answer["status"]["token"] = json!(format!("{signed}.{signature}"));
    answer
}

/// The service account that a token speaks for, if it is ours and still valid.
pub(crate) fn verify(key: &hmac::Key, token: &str, now_seconds: i64) -> Option<User> {
    let (signed, signature) = token.rsplit_once('.')?;
    let signature = BASE64.decode(signature).ok()?;
    hmac::verify(key, signed.as_bytes(), &signature).ok()?;
    let (_, body) = signed.split_once('.')?;
    let claims: Value = serde_json::from_slice(&BASE64.decode(body).ok()?).ok()?;
    if claims["exp"].as_i64()? <= now_seconds {
        return None;
    }
    let account = &claims["kubernetes.io"];
    let namespace = account["namespace"].as_str()?;
    Some(User {
        name: claims["sub"].as_str()?.to_owned(),
        groups: vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ],
        uid: account["serviceaccount"]["uid"].as_str()?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_speaks_for_its_account_until_it_ends() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"secret");
        let mint = Mint {
            claims: json!({
                "exp": 100,
                "sub": "system:serviceaccount:a:b",
                "kubernetes.io": { "namespace": "a", "serviceaccount": { "name": "b", "uid": "u" } },
            }),
            answer: json!({ "status": {} }),
        };
        let answer = sign(&key, mint);
        let token = answer["status"]["token"].as_str().expect("a token");
        let user = verify(&key, token, 99).expect("a user");
        assert_eq!(user.name, "system:serviceaccount:a:b");
        assert_eq!(verify(&key, token, 100), None);
        let stranger = hmac::Key::new(hmac::HMAC_SHA256, b"other");
        assert_eq!(verify(&stranger, token, 99), None);
        assert_eq!(verify(&key, "a.b", 99), None);
    }
}
