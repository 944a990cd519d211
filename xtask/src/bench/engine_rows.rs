//! Rows of the examples of `katmai-engine`: deciding in process, from rows in the tables to a plan.
//! What is to be reached stands beside what measures it; an example prints both.

use anyhow::Context;
use serde_json::Value;

use super::rows::{Bench, Figure, Measure, Row, When};

/// All of them, in the order of their names.
pub const ROWS: &[Row] = &[
    of("explain", "explain"),
    of("numa", "N1-"),
    of("s2", "S2-10000x1-proc"),
    of("s2", "S2-1x10000-proc"),
    of("s2", "S2-20x500-proc"),
    of("s2", "S2-500x20-proc"),
    of("growth", "S3-affinity-"),
    of("growth", "S3-alone-"),
    of("s2", "S3-idle-cycle-10k-100k-proc"),
    of("s2", "S3-one-pod-10k-100k-proc"),
    of("growth", "S3-plain-"),
    of("growth", "S3-spread-"),
    of("growth", "S4-tables-10k-220k-rss"),
    of("victims", "S5-reclaim-4000-proc"),
    of("victims", "S6-"),
    of("topology", "S7-"),
    of("vast", "vast-"),
];

/// Figures whose names begin so, of that example.
const fn of(example: &'static str, name: &'static str) -> Row {
    Row {
        name,
        when: When::Always,
        measure: Measure::Example(example),
    }
}

/// Runs the example, which builds it first.
pub fn run(bench: &Bench, example: &str, row: &str) -> anyhow::Result<Vec<Figure>> {
    let arguments = ["run", "--release", "--quiet", "--package", "katmai-engine"];
    let words = [&arguments[..], &["--example", example, "--", row]].concat();
    let text = bench.tree.cargo(&words)?;
    let figures = text.lines().map(|line| {
        let read = || {
            let line: Value = serde_json::from_str(line).ok()?;
            let (row, unit) = (line["row"].as_str()?, line["unit"].as_str()?);
            let (value, reach) = (line["value"].as_f64()?, line["reach"].as_f64()?);
            Some(Figure::new(row, value, unit, reach))
        };
        read().with_context(|| format!("the example {example} says {line:?}"))
    });
    let figures: Vec<Figure> = figures.collect::<anyhow::Result<_>>()?;
    anyhow::ensure!(!figures.is_empty(), "the example {example} has no such row");
    Ok(figures)
}
