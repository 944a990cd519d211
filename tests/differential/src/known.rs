//! Differences that are known: rows of two files.
//!
//! `differences.txt` holds those that stay, each with its reason. `open.txt` holds those that are to
//! go, step by step and place by place; it is written by `--ratchet` and only becomes shorter.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, bail};
use regex::Regex;

use crate::judge::Finding;

/// The differences that are to go.
const OPEN: &str = "open.txt";
const OPEN_HEAD: &str =
    "# Differences that are to go: STEP | PATH. Written by `cargo xtask differential --ratchet`.\n";

/// One row.
struct Row {
    line: usize,
    step: Regex,
    paths: Vec<Regex>,
    text: String,
}

/// The rows of the file, and which of them have been met.
pub struct Known {
    rows: Vec<Row>,
    met: BTreeSet<usize>,
    open: BTreeSet<(String, String)>,
    open_met: BTreeSet<(String, String)>,
}

impl Known {
    /// Reads both files: `STEP | PATH, PATH | REASON` a line in the first, where `*` stands for
    /// anything; `STEP | PATH` in the second.
    pub fn read(folder: &Path) -> anyhow::Result<Known> {
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))
        };
        let open = read(OPEN)?;
        let open = open
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once(" | "))
            .map(|(step, path)| (step.to_owned(), path.to_owned()))
            .collect();
        let text = read("differences.txt")?;
        let mut rows = Vec::new();
        for (at, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let parts: Vec<&str> = line.splitn(3, " | ").map(str::trim).collect();
            let [step, path, reason] = parts.as_slice() else {
                bail!("line {} of the differences: STEP | PATH | REASON", at + 1);
            };
            if reason.is_empty() {
                bail!("line {} of the differences has no reason", at + 1);
            }
            rows.push(Row {
                line: at + 1,
                step: pattern(step)?,
                paths: path
                    .split(", ")
                    .map(pattern)
                    .collect::<anyhow::Result<_>>()?,
                text: line.to_owned(),
            });
        }
        Ok(Known {
            rows,
            met: BTreeSet::new(),
            open,
            open_met: BTreeSet::new(),
        })
    }

    /// Only those that stay.
    pub fn lasting(folder: &Path) -> anyhow::Result<Known> {
        let mut known = Known::read(folder)?;
        known.open.clear();
        Ok(known)
    }

    /// How many rows stay, and how many are to go.
    pub fn count(&self) -> (usize, usize) {
        (self.rows.len(), self.open.len())
    }

    /// Whether a row explains a finding; the row has then been met.
    pub fn explains(&mut self, step: &str, finding: &Finding) -> bool {
        let mut explained = false;
        for (at, row) in self.rows.iter().enumerate() {
            let here = |path: &Regex| path.is_match(&finding.path);
            if row.step.is_match(step) && row.paths.iter().any(here) {
                self.met.insert(at);
                explained = true;
            }
        }
        let place = (step.to_owned(), rough(&finding.path));
        if self.open.contains(&place) {
            self.open_met.insert(place);
            explained = true;
        }
        explained
    }

    /// Rows that explain nothing any more.
    pub fn stale(&self) -> Vec<String> {
        let rows = self.rows.iter().enumerate();
        let stale = rows
            .filter(|(at, _)| !self.met.contains(at))
            .map(|(_, row)| format!("line {}: {}", row.line, row.text));
        let gone = self.open.difference(&self.open_met);
        stale
            .chain(gone.map(|(step, path)| format!("{OPEN}: {step} | {path}")))
            .collect()
    }
}

/// The first two parts of a path: what is to go is mended field by field.
fn rough(path: &str) -> String {
    let ends = path.match_indices(['.', '[']).map(|(at, _)| at);
    let end = ends.filter(|at| !path[*at..].starts_with('[')).nth(1);
    path[..end.unwrap_or(path.len())].to_owned()
}

/// Writes the places that differ and that no lasting row explains.
pub fn ratchet(folder: &Path, places: &[(String, String)]) -> anyhow::Result<()> {
    let mut lines: Vec<String> = places
        .iter()
        .map(|(step, path)| format!("{step} | {}\n", rough(path)))
        .collect();
    lines.sort();
    lines.dedup();
    let text = format!("{OPEN_HEAD}{}", lines.concat());
    std::fs::write(folder.join(OPEN), text).context("cannot write the open differences")
}

fn pattern(text: &str) -> anyhow::Result<Regex> {
    let quoted: Vec<String> = text.split('*').map(regex::escape).collect();
    Ok(Regex::new(&format!("^{}$", quoted.join(".*")))?)
}
