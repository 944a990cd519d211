//! `cargo xtask bench [ROW…] [--json] [--binary=FILE]`: the figures of docs/performance.md.
//!
//! What measures needs a client, so this program builds itself again, optimised and with the
//! feature `bench`, and hands over.

#[cfg(feature = "bench")]
mod api_rows;
#[cfg(feature = "bench")]
mod example_rows;
#[cfg(feature = "bench")]
mod load;
#[cfg(feature = "bench")]
mod load_rows;
#[cfg(feature = "bench")]
mod log_rows;
#[cfg(feature = "bench")]
mod plane;
#[cfg(feature = "bench")]
mod plane_rows;
#[cfg(feature = "bench")]
mod rows;
#[cfg(feature = "bench")]
mod sides;
#[cfg(feature = "bench")]
mod tree_rows;
#[cfg(feature = "bench")]
mod webhook_rows;

#[cfg(feature = "bench")]
pub use rows::run;

/// Builds the measuring program and hands over.
#[cfg(not(feature = "bench"))]
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    use anyhow::{Context, bail};

    let status = crate::tree::cargo()
        .args(["run", "--release", "--quiet", "--package", "xtask"])
        .args(["--features", "bench", "--", "bench"])
        .args(arguments)
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("measuring failed");
    }
    Ok(())
}
