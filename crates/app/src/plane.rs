//! The embedded plane: store, server, controllers, scheduler and nodes in this process.

use std::sync::Arc;

use cli::Plane;
use cli::cluster::Cluster;

/// A plane that is up.
pub(crate) struct Running {
    cluster: Arc<dyn Cluster>,
}

/// Builds a plane and waits until it is ready.
pub(crate) async fn start(shape: Plane) -> anyhow::Result<Running> {
    anyhow::bail!("this build has no embedded plane (wanted: {shape:?})")
}

/// Builds a plane, announces it and serves until a signal comes.
pub(crate) async fn serve(shape: Plane) -> anyhow::Result<u8> {
    let plane = start(shape).await?;
    plane.stop().await?;
    Ok(0)
}

impl Running {
    /// A way to ask this plane without a socket.
    pub(crate) fn cluster(&self) -> Arc<dyn Cluster> {
        self.cluster.clone()
    }

    /// Ends the plane: containers first, the journal last.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        Ok(())
    }
}
