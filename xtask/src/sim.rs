//! `cargo xtask sim`: plays long random stories of the whole system, with faults, and reports.
//!
//! The stories live in the room `sim`, whose example plays them; this builds it, optimised, and
//! hands over.

use anyhow::{Context, bail};

/// Builds the player and hands over.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    let status = crate::tree::cargo()
        .args(["run", "--release", "--quiet", "--package", "katmai-sim"])
        .args(["--example", "seeds", "--"])
        .args(arguments)
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("the stories did not end well");
    }
    Ok(())
}
