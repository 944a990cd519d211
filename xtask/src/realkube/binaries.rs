//! The programs, built once for each state of the module.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::say;
use crate::tree::Tree;

/// The module, from the root of the checkout.
const MODULE: &str = "tests/realkube";
/// Its main packages, which are its programs.
const PROGRAMS: &[&str] = &["etcd", "kube-apiserver", "kube-controller-manager"];
/// What the programs say about themselves. Without it they would call themselves v0.0.0.
const VERSION: &[(&str, &str)] = &[
    ("gitVersion", "v1.36.3"),
    ("gitMajor", "1"),
    ("gitMinor", "36"),
    ("gitCommit", "unknown"),
    ("gitTreeState", "clean"),
    ("buildDate", "2026-07-22T18:07:38Z"),
];

/// Where binaries and instances are kept.
pub fn cache() -> anyhow::Result<PathBuf> {
    let cache = match std::env::var_os("XDG_CACHE_HOME") {
        Some(cache) => PathBuf::from(cache),
        None => PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(".cache"),
    };
    Ok(cache.join("katmai/realkube"))
}

/// The directory with the programs; builds them where they are not kept.
pub fn folder() -> anyhow::Result<PathBuf> {
    let tree = Tree::read()?;
    let folder = cache()?.join(key(&tree));
    if complete(&folder) {
        return Ok(folder);
    }
    let version = Command::new("go")
        .arg("version")
        .stderr(Stdio::null())
        .output();
    let Ok(version) = version else {
        bail!(
            "SKIPPED: there is no Go toolchain on PATH, and {} does not hold the programs; Go 1.26 builds them in five minutes",
            folder.display()
        );
    };
    std::fs::create_dir_all(cache()?)?;
    // Two that begin at once would build twice.
    let lock = File::create(cache()?.join("building"))?;
    lock.lock()?;
    if !complete(&folder) {
        say(&format!(
            "building {} with {}",
            PROGRAMS.join(", "),
            String::from_utf8_lossy(&version.stdout).trim()
        ));
        build(&tree.root.join(MODULE), &folder)?;
    }
    Ok(folder)
}

fn complete(folder: &Path) -> bool {
    PROGRAMS.iter().all(|program| folder.join(program).exists())
}

fn build(module: &Path, folder: &Path) -> anyhow::Result<()> {
    let draft = folder.with_extension("new");
    let status = Command::new("go")
        .args(["build", "-trimpath", "-ldflags", &linker_flags(), "-o"])
        .arg(format!("{}/", draft.display()))
        .args(PROGRAMS.iter().map(|program| format!("./{program}")))
        .current_dir(module)
        .env("CGO_ENABLED", "0")
        .status()
        .context("cannot run go")?;
    if !status.success() {
        bail!("go build failed");
    }
    std::fs::rename(&draft, folder).context("cannot keep the programs")
}

fn linker_flags() -> String {
    let mut flags = "-s -w".to_owned();
    for package in [
        "k8s.io/component-base/version",
        "k8s.io/client-go/pkg/version",
    ] {
        for (name, value) in VERSION {
            flags.push_str(&format!(" -X {package}.{name}={value}"));
        }
    }
    flags
}

/// Names the module's state and how it is linked.
fn key(tree: &Tree) -> String {
    let mut text = linker_flags();
    for (path, file) in &tree.files {
        if path.starts_with(MODULE) {
            text.push_str(path);
            text.push_str(file);
        }
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let bytes = &digest.as_ref()[..8];
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
