//! Our server: store and sockets of the plane, without controllers, scheduler and nodes.

use anyhow::Context;
use serde_json::Value;
use server::{Api, Identity, Listening, Socket, Start, StaticTokens};

use crate::wire::{Client, Server};

/// The users whom the real server has, too.
const USERS: &str = "\
alice-token,alice,alice,\"developers\"
bob-token,bob,bob,\"developers,testers\"
carol-token,carol,carol
";

/// A server of ours; ends when dropped.
pub struct Ours {
    /// How to reach it.
    pub server: Server,
    api: Api,
    _listening: Listening,
}

impl Ours {
    /// Starts one that keeps nothing.
    pub async fn start() -> anyhow::Result<Ours> {
        let identity = Identity::make()?;
        // Volcano's kinds are compared as their definitions make them, so nothing reviews them here.
        let api = Api::start(Start::default(), identity.token_keys()?)?;
        let socket = Socket {
            tokens: StaticTokens::parse(USERS).map_err(anyhow::Error::msg)?,
            ..Socket::default()
        };
        let listening = server::listen(api.clone(), &identity, socket).await?;
        let kubeconfig: Value = serde_saphyr::from_str(&identity.kubeconfig(&listening.url()))?;
        let user = &kubeconfig["users"][0]["user"];
        let client = Client {
            certificate: decoded(&user["client-certificate-data"])?,
            key: decoded(&user["client-key-data"])?,
        };
        let address = listening.address.to_string();
        Ok(Ours {
            server: Server::new(&address, &identity.authority, Some(&client))?,
            api,
            _listening: listening,
        })
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.api.stop();
    }
}

fn decoded(value: &Value) -> anyhow::Result<String> {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    let text = value
        .as_str()
        .context("the kubeconfig has no client certificate")?;
    Ok(String::from_utf8(STANDARD.decode(text)?)?)
}
