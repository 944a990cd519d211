//! What every crate has, and what the whole tree weighs.

use std::collections::BTreeSet;

use super::arrows::{ARROWS, PURE};
use crate::tree::Tree;

/// More crates than this and the cold build is too slow.
const CRATES_MAX: usize = 300;
/// What a pure room may not reach by any road.
const SHELL_CRATES: &[&str] = &["hyper", "k8s-openapi", "kube", "mio", "rustls", "tokio"];

/// Lints, clippy.toml and the first page of each crate.
pub fn shape(tree: &Tree) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    for (room, _) in ARROWS {
        let manifest = format!("crates/{room}/Cargo.toml");
        let Some(text) = tree.files.get(&manifest) else {
            findings.push(format!("{manifest} is missing"));
            continue;
        };
        if !text.contains("[lints]\nworkspace = true") {
            findings.push(format!("{manifest} does not inherit the lints"));
        }
        let top = if *room == "app" { "main" } else { "lib" };
        let page = format!("crates/{room}/src/{top}.rs");
        let lines = tree.files.get(&page).map_or(0, |text| {
            text.lines()
                .take_while(|line| line.starts_with("//!"))
                .count()
        });
        if lines < 3 {
            findings.push(format!("{page} does not open with a page (//!)"));
        }
        if PURE.contains(room) {
            let bans = format!("crates/{room}/clippy.toml");
            let text = tree.files.get(&bans).map_or("", String::as_str);
            for banned in [
                "Instant::now",
                "SystemTime::now",
                "HashMap",
                "std::env",
                "std::fs",
                "std::net",
            ] {
                if !text.contains(banned) {
                    findings.push(format!("{bans} does not ban {banned}"));
                }
            }
        }
    }
    Ok(findings)
}

/// `[workspace.dependencies]`: sorted, and outside crates carry a reason.
pub fn dependencies(tree: &Tree) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    let root = tree.files.get("Cargo.toml").map_or("", String::as_str);
    let section = root
        .split("[workspace.dependencies]")
        .nth(1)
        .and_then(|rest| rest.split("\n[").next())
        .unwrap_or_default();
    let (own, outside): (Vec<&str>, Vec<&str>) = section
        .lines()
        .filter(|line| line.contains('=') && !line.starts_with('#'))
        .partition(|line| line.contains("path ="));
    for list in [&own, &outside] {
        for pair in list.windows(2) {
            if name(pair[0]) >= name(pair[1]) {
                findings.push(format!("{} stands after {}", name(pair[1]), name(pair[0])));
            }
        }
    }
    for line in outside {
        if !line.contains(" # ") {
            findings.push(format!("{} has no reason", name(line)));
        }
    }
    Ok(findings)
}

fn name(line: &str) -> &str {
    line.split(['=', ' ']).next().unwrap_or_default()
}

/// How many crates there are on Linux, and which roads lead from pure rooms to shells.
pub fn tree(tree: &Tree) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    let count = count(tree)?;
    if count > CRATES_MAX {
        findings.push(format!("{count} crates, at most {CRATES_MAX} are allowed"));
    }
    let packages: Vec<String> = PURE.iter().map(|room| format!("katmai-{room}")).collect();
    let mut arguments = vec!["tree", "--edges", "normal", "--prefix", "none"];
    for package in &packages {
        arguments.extend(["--package", package]);
    }
    let below: BTreeSet<String> = tree
        .cargo(&arguments)?
        .lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect();
    for shell in SHELL_CRATES {
        if below.contains(*shell) {
            findings.push(format!("a room below the line depends on {shell}"));
        }
    }
    Ok(findings)
}

/// Crates of the workspace's normal and build dependencies on Linux, ours not counted.
pub fn count(tree: &Tree) -> anyhow::Result<usize> {
    let text = tree.cargo(&[
        "tree",
        "--workspace",
        "--edges",
        "normal,build",
        "--target",
        "x86_64-unknown-linux-gnu",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ])?;
    let crates: BTreeSet<(&str, &str)> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?, words.next()?))
        })
        .filter(|(name, _)| {
            !name.starts_with("katmai-") && !["differential", "xtask"].contains(name)
        })
        .collect();
    Ok(crates.len())
}
