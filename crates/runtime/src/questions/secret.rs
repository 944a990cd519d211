//! Names and passwords that lie in a Secret: read when they are needed, kept nowhere.

use api::call;
use api::intent::ObjectKey;
use base64::Engine as _;
use client::Cluster;
use serde_json::Value;

/// `username` and `password` of a Secret.
///
/// # Errors
/// They cannot be had; which Secret, which of its keys, and nothing of what is in it.
pub(super) async fn credentials(
    cluster: &Cluster,
    key: &ObjectKey,
) -> Result<(String, String), String> {
    let secret = title(key);
    let unread = |why: String| format!("{secret} with its credentials cannot be read: {why}");
    let call = call::get(key.kind, &key.namespace, &key.name);
    let answer = cluster.send(&call).await;
    let answer = answer.map_err(|error| unread(error.to_string()))?;
    if answer.code != 200 {
        return Err(unread(answer.code.to_string()));
    }
    let read: Value =
        serde_json::from_slice(&answer.body).map_err(|error| unread(error.to_string()))?;
    Ok((
        text(&read, "username", &secret)?,
        text(&read, "password", &secret)?,
    ))
}

/// What a Secret is called where its credentials are told of.
pub(super) fn title(key: &ObjectKey) -> String {
    format!("the Secret {}/{}", key.namespace, key.name)
}

/// What stands in a Secret under this key.
fn text(read: &Value, key: &str, secret: &str) -> Result<String, String> {
    let encoded = read["data"][key].as_str();
    let encoded = encoded.ok_or_else(|| format!("{secret} has no key {key}"))?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded);
    // What is in it is not repeated, not even where it is broken.
    let bytes = bytes.map_err(|_| format!("the key {key} of {secret} is no base64"))?;
    String::from_utf8(bytes).map_err(|_| format!("the key {key} of {secret} is no text"))
}
