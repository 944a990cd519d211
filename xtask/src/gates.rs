//! `cargo xtask gates [--renew]`: how many instructions the engine's benchmarks take, beside how many
//! they took when `tests/gates.txt` was written.
//!
//! Instructions are counted by valgrind, in the measured cycles alone. Unlike time they are the same on
//! a machine that has other things to do, so that a slow change is seen on the day on which it lands.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::say;
use crate::tree::Tree;

/// What is counted: a row of an example of the engine.
struct Gate {
    row: &'static str,
    example: &'static str,
}

const GATES: &[Gate] = &[
    Gate {
        row: "S2-10000x1-proc",
        example: "s2",
    },
    Gate {
        row: "S2-500x20-proc",
        example: "s2",
    },
    Gate {
        row: "S3-affinity-1k-proc",
        example: "growth",
    },
    Gate {
        row: "S3-plain-1k-proc",
        example: "growth",
    },
    Gate {
        row: "S3-spread-1k-proc",
        example: "growth",
    },
    Gate {
        row: "S5-reclaim-4000-proc",
        example: "victims",
    },
];

const TABLE: &str = "tests/gates.txt";

/// Where counting begins and ends, in every example.
const MEASURED: &str = "*run::measured*";

/// How far a count may be from the table's, in hundredths.
const LEEWAY: u64 = 5;

const HEAD: &str = "\
# How many instructions the engine's benchmarks take, in thousands.
# `cargo xtask gates` counts again and refuses what is more than 5 % off, to either side.
# A change that is meant to cost more, or that costs less, renews the table: `cargo xtask gates --renew`;
# the commit says why.
";

/// Counts every row and compares it with the table, or writes the table.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    let renew = match arguments {
        [] => false,
        [only] if only == "--renew" => true,
        _ => bail!("there is only --renew"),
    };
    let tree = Tree::read()?;
    let examples = build(&tree)?;
    let known = table(tree.files.get(TABLE).map_or("", String::as_str))?;
    let mut text = HEAD.to_owned();
    let mut wrong = Vec::new();
    for gate in GATES {
        let count = count(&examples, gate)?;
        writeln!(text, "{:<24}{count:>12}", gate.row)?;
        let before = known.get(gate.row).copied();
        say(&format!(
            "{:<24}{count:>12} thousand instructions, {}",
            gate.row,
            before.map_or("not in the table".to_owned(), |before| beside(
                count, before
            ))
        ));
        if before.is_none_or(|before| is_off(count, before)) {
            wrong.push(gate.row);
        }
    }
    if renew {
        std::fs::write(tree.root.join(TABLE), text).context("cannot write the table")?;
        say(&format!("wrote {TABLE}"));
        return Ok(());
    }
    if !wrong.is_empty() {
        bail!(
            "not as in {TABLE}: {}; find out why, or renew the table with --renew and say why",
            wrong.join(", ")
        );
    }
    Ok(())
}

fn is_off(count: u64, before: u64) -> bool {
    count.abs_diff(before) * 100 > before * LEEWAY
}

fn beside(count: u64, before: u64) -> String {
    let sign = if count < before { '-' } else { '+' };
    let parts = count.abs_diff(before) * 1_000 / before.max(1);
    format!("{sign}{}.{} %", parts / 10, parts % 10)
}

/// Row → thousands of instructions.
fn table(text: &str) -> anyhow::Result<BTreeMap<&str, u64>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (row, count) = line
                .split_once(' ')
                .with_context(|| format!("{TABLE} has a line without a count: {line}"))?;
            let count = count.trim().parse();
            Ok((row, count.with_context(|| format!("{TABLE}: {line}"))?))
        })
        .collect()
}

/// Builds the examples, so that no count is of yesterday's; where they lie.
fn build(tree: &Tree) -> anyhow::Result<PathBuf> {
    let mut build = vec![
        "build",
        "--release",
        "--quiet",
        "--package",
        "katmai-engine",
    ];
    let examples: BTreeSet<&str> = GATES.iter().map(|gate| gate.example).collect();
    build.extend(examples.iter().flat_map(|example| ["--example", example]));
    tree.cargo(&build)?;
    let asked = [
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--offline",
    ];
    let metadata: Value = serde_json::from_str(&tree.cargo(&asked)?)?;
    let target = metadata["target_directory"]
        .as_str()
        .context("cargo names no target directory")?;
    Ok(Path::new(target).join("release/examples"))
}

/// Thousands of instructions in the measured cycles of the row.
fn count(examples: &Path, gate: &Gate) -> anyhow::Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--collect-atstart=no")
        .arg(format!("--toggle-collect={MEASURED}"))
        .arg(examples.join(gate.example))
        .args([gate.row, "--once"])
        .output()
        .context("cannot run valgrind: is it installed?")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{} failed: {said}", gate.row);
    }
    let collected = said.lines().find_map(|line| {
        let (_, count) = line.split_once("Collected : ")?;
        count.trim().parse::<u64>().ok()
    });
    let count = collected.with_context(|| format!("valgrind says no count: {said}"))?;
    if count == 0 {
        bail!("{} measures nothing: {MEASURED} was never called", gate.row);
    }
    Ok(count / 1_000)
}

#[cfg(test)]
mod tests {
    #[test]
    fn five_hundredths_are_let_pass_to_either_side() {
        assert!(!super::is_off(1_050, 1_000));
        assert!(super::is_off(1_051, 1_000));
        assert!(!super::is_off(950, 1_000));
        assert!(super::is_off(949, 1_000));
    }

    #[test]
    fn the_table_names_each_row_once() {
        let table = super::table("# a word\nS2  12\nS5 7\n").expect("two rows");
        assert_eq!(table["S2"], 12);
        assert_eq!(table["S5"], 7);
        assert!(super::table("S2\n").is_err());
        let rows: Vec<_> = super::GATES.iter().map(|gate| gate.row).collect();
        assert!(rows.is_sorted(), "{rows:?}");
    }
}
