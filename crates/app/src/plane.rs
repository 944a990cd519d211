//! The embedded plane: store, server, controllers, scheduler and nodes in this process.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use cli::Plane;
use cli::cluster::Cluster;
use cli::console;
use tokio::signal::unix::{SignalKind, signal};

/// A plane that is up.
pub(crate) struct Running {
    cluster: Arc<dyn Cluster>,
    /// `https://127.0.0.1:…`.
    address: String,
    /// For others to connect with.
    kubeconfig: String,
    /// The level of the pod network and why it is no better.
    network: String,
}

/// Builds a plane and waits until it is ready.
pub(crate) async fn start(shape: Plane) -> anyhow::Result<Running> {
    anyhow::bail!("this build has no embedded plane (wanted: {shape:?})")
}

/// Builds a plane, announces it and serves until a signal comes.
pub(crate) async fn serve(shape: Plane) -> anyhow::Result<u8> {
    let began = Instant::now();
    let state = shape
        .state
        .clone()
        .context("a plane that serves needs a state directory")?;
    let lock = state.lock()?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let plane = start(shape).await?;
    state.announce(&lock, &plane.address, &plane.kubeconfig)?;
    console::say(&format!(
        "katmai is up at {} after {} ms",
        plane.address,
        began.elapsed().as_millis()
    ));
    console::say(&format!("pod network: {}", plane.network));
    console::say(&export_line(&state.kubeconfig()));
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    plane.stop().await?;
    state.withdraw(&lock)?;
    Ok(cli::EXIT_COMPLETE)
}

/// What a user pastes into a shell; quoted, so that any path survives.
fn export_line(kubeconfig: &Path) -> String {
    let path = kubeconfig.display().to_string();
    let plain = |one: char| one.is_ascii_alphanumeric() || "/._-+".contains(one);
    if path.chars().all(plain) {
        format!("export KUBECONFIG={path}")
    } else {
        format!("export KUBECONFIG='{}'", path.replace('\'', r"'\''"))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_survives_the_shell() {
        assert_eq!(
            export_line(Path::new("/a/b-c/k")),
            "export KUBECONFIG=/a/b-c/k"
        );
        assert_eq!(
            export_line(Path::new("/it's")),
            r"export KUBECONFIG='/it'\''s'"
        );
    }
}
