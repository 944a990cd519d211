//! Rows about the plane as a process.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;

use super::plane::{Plane, folder, median};
use super::rows::{Bench, Figure, Measure, Row, When};

/// `katmai up --ephemeral` to ready, the median of five.
pub const UP_READY: Row = Row {
    name: "up-ready",
    when: When::Always,
    measure: Measure::Here(|bench| {
        let place = folder("up");
        let mut times = Vec::new();
        for _ in 0..5 {
            let plane = Plane::up(bench, &place, &["--ephemeral"])?;
            times.push(plane.ready.as_secs_f64() * 1000.0);
            plane.down(bench)?;
        }
        std::fs::remove_dir_all(&place)?;
        Ok(vec![Figure::new("up-ready", median(times), "ms", 300.0)])
    }),
};

/// Apply → all five processes of the example running, the median of five.
pub const EXAMPLE_RUNNING: Row = Row {
    name: "example-running",
    when: When::Always,
    measure: Measure::Here(|bench| {
        let place = folder("example");
        let mut times = Vec::new();
        for _ in 0..5 {
            let plane = Plane::up(bench, &place, &["--ephemeral"])?;
            times.push(example(bench, &place)?);
            plane.down(bench)?;
        }
        std::fs::remove_dir_all(&place)?;
        Ok(vec![Figure::new(
            "example-running",
            median(times),
            "ms",
            500.0,
        )])
    }),
};

fn example(bench: &Bench, place: &std::path::Path) -> anyhow::Result<f64> {
    let output = Command::new(&bench.binary)
        .args(["run", "-o", "json", "--timeout", "60s", "--data-dir"])
        .arg(place)
        .arg(bench.tree.root.join("examples/training-gang.yaml"))
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        bail!(
            "the example failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let text = String::from_utf8(output.stdout)?;
    let mut applied = None;
    let mut running = std::collections::BTreeMap::new();
    for line in text.lines() {
        let event: Value = serde_json::from_str(line)?;
        let at = instant(event["at"].as_str().unwrap_or_default())?;
        match event["event"].as_str() {
            Some("applied") if event["object"] == "job.batch.volcano.sh/training" => {
                applied = Some(at)
            }
            Some("task") if event["phase"] == "Running" || event["phase"] == "Succeeded" => {
                running.entry(event["task"].to_string()).or_insert(at);
            }
            _ => {}
        }
    }
    let applied = applied.context("the job was never applied")?;
    if running.len() != 5 {
        bail!("{} of 5 tasks ran", running.len());
    }
    let last = running.values().max().copied().unwrap_or(applied);
    Ok((last - applied) as f64 / 1000.0)
}

fn instant(text: &str) -> anyhow::Result<i64> {
    api::time::Time::parse(text)
        .map(api::time::Time::micros)
        .with_context(|| format!("{text:?} is no time"))
}

/// A plane with 100 imitation nodes and nothing to do, over 60 s.
pub const IDLE_100: Row = Row {
    name: "idle-100",
    when: When::Always,
    measure: Measure::Here(|bench| {
        let place = folder("idle");
        let plane = Plane::up(bench, &place, &["--ephemeral", "--simulated-nodes", "100"])?;
        // What happens at start is not idleness.
        std::thread::sleep(Duration::from_secs(5));
        let before = plane.cpu_seconds()?;
        std::thread::sleep(Duration::from_secs(60));
        let share = (plane.cpu_seconds()? - before) / 60.0 * 100.0;
        let rss = plane.rss_mb()?;
        plane.down(bench)?;
        std::fs::remove_dir_all(&place)?;
        Ok(vec![
            Figure::new("idle-100-cpu", share, "%", 1.0),
            Figure::new("idle-100-rss", rss, "MB", 100.0),
        ])
    }),
};
