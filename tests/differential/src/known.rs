//! Differences that are known, each with its reason: rows of a file.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, bail};
use regex::Regex;

use crate::judge::Finding;

/// One row.
struct Row {
    line: usize,
    step: Regex,
    path: Regex,
    text: String,
}

/// The rows of the file, and which of them have been met.
pub struct Known {
    rows: Vec<Row>,
    met: BTreeSet<usize>,
}

impl Known {
    /// Reads `STEP | PATH | REASON` a line; `*` in the first two stands for anything.
    pub fn read(path: &Path) -> anyhow::Result<Known> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
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
                path: pattern(path)?,
                text: line.to_owned(),
            });
        }
        Ok(Known {
            rows,
            met: BTreeSet::new(),
        })
    }

    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// Whether a row explains a finding; the row has then been met.
    pub fn explains(&mut self, step: &str, finding: &Finding) -> bool {
        let mut explained = false;
        for (at, row) in self.rows.iter().enumerate() {
            if row.step.is_match(step) && row.path.is_match(&finding.path) {
                self.met.insert(at);
                explained = true;
            }
        }
        explained
    }

    /// Rows that explain nothing any more.
    pub fn stale(&self) -> Vec<String> {
        let stale = self
            .rows
            .iter()
            .enumerate()
            .filter(|(at, _)| !self.met.contains(at));
        stale
            .map(|(_, row)| format!("line {}: {}", row.line, row.text))
            .collect()
    }
}

fn pattern(text: &str) -> anyhow::Result<Regex> {
    let quoted: Vec<String> = text.split('*').map(regex::escape).collect();
    Ok(Regex::new(&format!("^{}$", quoted.join(".*")))?)
}
