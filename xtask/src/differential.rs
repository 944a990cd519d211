//! `cargo xtask differential [SCRIPT…]`: our answers beside those of the real API server.
//!
//! Starts an instance of the real one, unless one is named, and runs `tests/differential` on it.
//! `cargo xtask differential controllers [STORY…]` plays the stories of `tests/controllers`, with the
//! real controller manager beside our controllers.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};

use crate::tree::cargo;

/// Starts what is needed, runs the suite and ends what was started.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    if let Some(("controllers", stories)) = arguments
        .split_first()
        .map(|(it, more)| (it.as_str(), more))
    {
        let mut command = Command::new("tests/controllers/run");
        return finish(command.args(stories), "the stories of controllers");
    }
    let stranger = ["--theirs", "--ours-only"];
    if arguments
        .iter()
        .any(|argument| stranger.contains(&argument.as_str()))
    {
        return suite(arguments);
    }
    let directory = std::env::temp_dir().join(format!("katmai-realkube-{}", std::process::id()));
    realkube("up", &directory)?;
    let mut with = vec!["--theirs".to_owned(), directory.display().to_string()];
    with.extend_from_slice(arguments);
    let outcome = suite(&with);
    realkube("down", &directory)?;
    outcome
}

fn realkube(deed: &str, directory: &PathBuf) -> anyhow::Result<()> {
    let words = [
        "run",
        "--quiet",
        "--package",
        "xtask",
        "--",
        "realkube",
        deed,
        "--dir",
    ];
    finish(cargo().args(words).arg(directory), "the real API server")
}

fn suite(arguments: &[String]) -> anyhow::Result<()> {
    let words = ["run", "--quiet", "--package", "differential", "--"];
    finish(
        cargo().args(words).args(arguments),
        "the differential suite",
    )
}

fn finish(command: &mut Command, what: &str) -> anyhow::Result<()> {
    let status = command.status().context("cannot run cargo")?;
    if !status.success() {
        bail!("{what} failed");
    }
    Ok(())
}
