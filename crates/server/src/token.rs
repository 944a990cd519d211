//! Service account tokens: JSON web tokens signed with the plane's own key.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::hmac;
use serde_json::{Value, json};
use store::Mint;

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

/// What a token claims, if it is ours.
pub(crate) fn claims(key: &hmac::Key, token: &str) -> Option<Value> {
    let (signed, signature) = token.rsplit_once('.')?;
    let signature = BASE64.decode(signature).ok()?;
    hmac::verify(key, signed.as_bytes(), &signature).ok()?;
    let (_, body) = signed.split_once('.')?;
    serde_json::from_slice(&BASE64.decode(body).ok()?).ok()
}
