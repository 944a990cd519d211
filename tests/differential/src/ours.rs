//! Our server: store and sockets of the plane, without controllers, scheduler and nodes.

use server::{Api, Identity, Listening, Socket, Start, StaticTokens};

use crate::wire::Server;

/// The users whom the real server has, too.
const USERS: &str = "\
admin-token,admin,admin,\"system:masters\"
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
        let address = listening.address.to_string();
        Ok(Ours {
            server: Server::new(&address, &identity.authority)?,
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
