//! Names and passwords that lie in a Secret: read when they are needed, kept nowhere.

use api::call;
use api::intent::ObjectKey;
use base64::Engine as _;
use client::Cluster;
use serde_json::Value;

/// `username` and `password` of a Secret.
pub(super) async fn credentials(
    cluster: &Cluster,
    key: &ObjectKey,
) -> Result<(String, String), String> {
    let call = call::get(key.kind, &key.namespace, &key.name);
    let answer = cluster.send(&call).await;
    let answer = answer.map_err(|error| format!("its Secret cannot be read: {error}"))?;
    if answer.code != 200 {
        return Err(format!("its Secret cannot be read: {}", answer.code));
    }
    let secret: Value = serde_json::from_slice(&answer.body)
        .map_err(|error| format!("its Secret cannot be read: {error}"))?;
    Ok((text(&secret, "username")?, text(&secret, "password")?))
}

fn text(secret: &Value, field: &str) -> Result<String, String> {
    let encoded = secret["data"][field].as_str();
    let encoded = encoded.ok_or_else(|| format!("its Secret has no {field}"))?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded);
    // What is in it is not repeated, not even where it is broken.
    let bytes = bytes.map_err(|_| format!("the {field} of its Secret is no base64"))?;
    String::from_utf8(bytes).map_err(|_| format!("the {field} of its Secret is no text"))
}
