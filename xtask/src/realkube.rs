//! `cargo xtask realkube build|up|down|env`: the real API server on loopback, as an oracle.
//!
//! Its binaries come from the Go module in `tests/realkube` and are kept outside the checkout. What
//! starts it needs certificates and a client, so this program builds itself again with the feature
//! `realkube` and hands over.

#[cfg(feature = "realkube")]
mod binaries;
#[cfg(feature = "realkube")]
mod credentials;
#[cfg(feature = "realkube")]
mod instance;
#[cfg(feature = "realkube")]
mod wishes;

#[cfg(feature = "realkube")]
pub use instance::run;

/// Builds the starting program and hands over.
#[cfg(not(feature = "realkube"))]
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    use anyhow::{Context, bail};

    let status = crate::tree::cargo()
        .args(["run", "--quiet", "--package", "xtask"])
        .args(["--features", "realkube", "--", "realkube"])
        .args(arguments)
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("failed");
    }
    Ok(())
}
