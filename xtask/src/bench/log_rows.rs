//! Rows about the decision log.

use std::time::Duration;

use anyhow::Context;
use serde_json::Value;

use super::api_rows::gangs;
use super::plane::{Plane, folder};
use super::rows::{Bench, Figure, Measure, Row, When};

/// How often each side of S2 is measured.
const TURNS: usize = 4;
/// After the last bind a plane still learns that its pods run, and writes its log.
const SETTLE: Duration = Duration::from_secs(5);

/// Figures of the example, with unit and reach.
const FIGURES: &[(&str, &str, f64)] = &[
    ("log-record", "µs", 2.0),
    ("log-bytes", "B", 200.0),
    ("log-encode", "µs", 2.0),
    // Both of these, for that is what an event costs.
    ("log-event", "µs", 2.0),
    ("replay-1h-1000", "s", 10.0),
];

/// What the log of an hour of 1,000 nodes costs per event, and the time to play it again.
pub const DECISION_LOG: Row = Row {
    name: "decision-log",
    when: When::Named,
    measure: Measure::Here(|bench| {
        let text = bench.tree.cargo(&[
            "run",
            "--release",
            "--quiet",
            "--package",
            "katmai-sim",
            "--example",
            "decisions",
        ])?;
        let lines: Vec<Value> = text
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()?;
        let figure = |(name, unit, reach): &(&str, &'static str, f64)| {
            let line = lines.iter().find(|line| line["row"] == *name);
            let value = line.and_then(|line| line["value"].as_f64());
            let value = value.with_context(|| format!("the example gave no {name}"))?;
            Ok(Figure::new(name, value, unit, *reach))
        };
        FIGURES.iter().map(figure).collect()
    }),
};

/// What the log adds to the CPU time of 500 gangs of 20 pods on 1,000 imitation nodes: the least of
/// several turns with it, against the least without it, in turn.
pub const S2_LOG: Row = Row {
    name: "S2-log-cpu",
    when: When::Named,
    measure: Measure::Here(|bench| {
        let log = folder("s2-log");
        let with = log.to_string_lossy().into_owned();
        let mut least = [f64::INFINITY; 2];
        for _ in 0..TURNS {
            for (arguments, least) in [&[][..], &["--decision-log", &with][..]]
                .into_iter()
                .zip(&mut least)
            {
                *least = least.min(cpu(bench, arguments)?);
            }
        }
        std::fs::remove_dir_all(&log)?;
        let [without, with] = least;
        let share = (with / without - 1.0) * 100.0;
        Ok(vec![Figure::new("S2-log-cpu", share, "%", 5.0)])
    }),
};

/// CPU seconds of a plane that takes the gangs.
fn cpu(bench: &Bench, arguments: &[&str]) -> anyhow::Result<f64> {
    let place = folder("s2-log-plane");
    let shape = [&["--ephemeral", "--simulated-nodes", "1000"], arguments].concat();
    let plane = Plane::up(bench, &place, &shape)?;
    std::thread::sleep(SETTLE);
    let before = plane.cpu_seconds()?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let cluster = client::Cluster::from_kubeconfig(Some(&plane.kubeconfig()), None).await?;
        gangs(&cluster).await
    })?;
    std::thread::sleep(SETTLE);
    let spent = plane.cpu_seconds()? - before;
    plane.down(bench)?;
    std::fs::remove_dir_all(&place)?;
    Ok(spent)
}
