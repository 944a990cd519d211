//! Rows of examples: deciding and reconciling in process, without an API.
//! What is to be reached stands beside what measures it; an example prints both.

use anyhow::Context;
use serde_json::Value;

use super::rows::{Bench, Figure, Measure, Row, When};

/// All of them, in the order of their names.
pub const ROWS: &[Row] = &[
    of("katmai-engine", "crowds", "crowd-"),
    of("katmai-engine", "explain", "explain"),
    of("katmai-engine", "numa", "N1-"),
    of("katmai-sim", "jobs", "S0.4-wake-p99"),
    of("katmai-sim", "jobs", "S10-10000x1-"),
    of("katmai-sim", "unified", "S1.10-"),
    of("katmai-engine", "s2", "S2-10000x1-proc"),
    of("katmai-engine", "s2", "S2-1x10000-proc"),
    of("katmai-engine", "s2", "S2-20x500-proc"),
    of("katmai-engine", "s2", "S2-500x20-proc"),
    of("katmai-engine", "s2", "S3-1000x16-"),
    of("katmai-engine", "s2", "S3-100k-from-empty-proc"),
    of("katmai-engine", "growth", "S3-affinity-"),
    of("katmai-engine", "growth", "S3-alone-"),
    of("katmai-engine", "growth", "S3-cooling-"),
    of("katmai-engine", "s2", "S3-forced-cycle-10k-100k-proc"),
    of("katmai-engine", "s2", "S3-idle-cycle-10k-100k-proc"),
    of("katmai-engine", "s2", "S3-one-pod-10k-100k-proc"),
    of("katmai-engine", "growth", "S3-plain-"),
    of("katmai-engine", "growth", "S3-spread-"),
    of("katmai-sim", "memory", "S4-10k-220k"),
    of("katmai-engine", "growth", "S4-tables-"),
    of("katmai-engine", "victims", "S5-"),
    of("katmai-engine", "victims", "S6-"),
    of("katmai-engine", "topology", "S7-"),
    of("katmai-sim", "memory", "restart-5k-150k"),
    of("katmai-engine", "vast", "vast-"),
];

/// Figures whose names begin so, of that example.
const fn of(package: &'static str, example: &'static str, name: &'static str) -> Row {
    Row {
        name,
        when: When::Always,
        measure: Measure::Example(package, example),
    }
}

/// Runs the example, which builds it first.
pub fn run(bench: &Bench, of: (&str, &str), row: &str) -> anyhow::Result<Vec<Figure>> {
    let (package, example) = of;
    let words = [
        "run",
        "--release",
        "--quiet",
        "--package",
        package,
        "--example",
        example,
        "--",
        row,
    ];
    let text = bench.tree.cargo(&words)?;
    let figures = text.lines().map(|line| {
        let read = || {
            let line: Value = serde_json::from_str(line).ok()?;
            let (row, unit) = (line["row"].as_str()?, line["unit"].as_str()?);
            let (value, reach) = (line["value"].as_f64()?, line["reach"].as_f64()?);
            Some(match line["good"] == "high" {
                true => Figure::high(row, value, unit, reach),
                false => Figure::new(row, value, unit, reach),
            })
        };
        read().with_context(|| format!("the example {example} says {line:?}"))
    });
    let figures: Vec<Figure> = figures.collect::<anyhow::Result<_>>()?;
    anyhow::ensure!(!figures.is_empty(), "the example {example} has no such row");
    Ok(figures)
}
