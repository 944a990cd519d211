//! The list of rows, and how figures are printed.

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::{api_rows, example_rows, load_rows, log_rows, plane_rows, tree_rows, webhook_rows};
use crate::say;
use crate::tree::Tree;

/// One measurement; it may give several figures.
pub struct Row {
    /// Chosen by any beginning of it.
    pub name: &'static str,
    /// Whether it runs when no row is named.
    pub when: When,
    /// Measures.
    pub measure: Measure,
}

/// How a row is measured.
pub enum Measure {
    /// By an example, of which the package and the name stand here; it knows the row by the same name.
    Example(&'static str, &'static str),
    /// Here.
    Here(fn(&Bench) -> anyhow::Result<Vec<Figure>>),
}

/// When a row runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// With all others.
    Always,
    /// Only by its name: it takes many minutes.
    Named,
}

/// Every row but those of examples, in the order of their names.
const ROWS: &[Row] = &[
    load_rows::APPLIES,
    load_rows::CREATES,
    load_rows::CREATES_POWER,
    load_rows::GETS,
    load_rows::LISTS,
    load_rows::MANY_PODS,
    load_rows::PATCHES,
    load_rows::WATCHERS,
    api_rows::S0_4_WAKE_API,
    api_rows::S1_CREATE_BIND,
    api_rows::S1_JOB_CREATE_BIND,
    api_rows::S10_10000X1_API,
    api_rows::S2_500X20_API,
    log_rows::S2_LOG,
    tree_rows::BUILD_RELEASE,
    log_rows::DECISION_LOG,
    plane_rows::EXAMPLE_RUNNING,
    plane_rows::IDLE_100,
    api_rows::RESTART_100K,
    tree_rows::TREE_CRATES,
    plane_rows::UP_READY,
    webhook_rows::REVIEWS,
];

fn all() -> impl Iterator<Item = &'static Row> {
    ROWS.iter().chain(example_rows::ROWS)
}

/// What measurements need to know.
pub struct Bench {
    /// The checkout.
    pub tree: Tree,
    /// The release binary.
    pub binary: std::path::PathBuf,
}

/// One figure.
pub struct Figure {
    /// `S1-create-bind-p50`.
    pub row: String,
    /// Measured.
    pub value: f64,
    /// `ms`, `s`, `MB`, `%`, `crates`.
    pub unit: String,
    /// The goal.
    pub reach: f64,
    /// Which side of the goal is good.
    pub good: Good,
}

/// Which side of a goal is good.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Good {
    /// At least the goal.
    High,
    /// At most the goal.
    Low,
}

impl Figure {
    /// A figure of a row.
    pub fn new(row: &str, value: f64, unit: &str, reach: f64) -> Figure {
        Figure {
            row: row.to_owned(),
            value,
            unit: unit.to_owned(),
            reach,
            good: Good::Low,
        }
    }

    /// A figure that is to be high.
    pub fn high(row: &str, value: f64, unit: &str, reach: f64) -> Figure {
        Figure {
            good: Good::High,
            ..Figure::new(row, value, unit, reach)
        }
    }
}

/// Measures the rows whose name begins with one of the arguments, or all of them.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    let json = arguments.iter().any(|argument| argument == "--json");
    let binary = arguments
        .iter()
        .find_map(|argument| argument.strip_prefix("--binary="));
    let is_known = |argument: &str| argument == "--json" || argument.starts_with("--binary=");
    let strange = arguments
        .iter()
        .find(|argument| argument.starts_with('-') && !is_known(argument));
    if let Some(strange) = strange {
        bail!("no such option: {strange}; there are --json and --binary=FILE");
    }
    let named: Vec<&String> = arguments
        .iter()
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let is_meant = |row: &Row, begin: &str| row.name.starts_with(begin);
    if let Some(unknown) = named
        .iter()
        .find(|begin| !all().any(|row| is_meant(row, begin)))
    {
        let names: Vec<&str> = all().map(|row| row.name).collect();
        bail!(
            "no row begins with {unknown}; there are {}",
            names.join(", ")
        );
    }
    let chosen: Vec<&Row> = all()
        .filter(|row| match named.as_slice() {
            [] => row.when == When::Always,
            some => some.iter().any(|begin| is_meant(row, begin)),
        })
        .collect();
    let bench = prepare(binary.map(std::path::Path::new))?;
    if !json {
        say(&format!(
            "{:<34}{:>12}  {:<7}{:>10}  ok",
            "row", "value", "unit", "reach"
        ));
    }
    let mut failed = 0;
    for row in chosen {
        let measured = match row.measure {
            Measure::Example(package, example) => {
                example_rows::run(&bench, (package, example), row.name)
            }
            Measure::Here(measure) => measure(&bench),
        };
        match measured {
            Ok(figures) => figures.iter().for_each(|figure| print(figure, json)),
            Err(error) => {
                failed += 1;
                let said = format!("{error:#}");
                say(&if json {
                    json!({ "row": row.name, "value": Value::Null, "error": said, "ok": false })
                        .to_string()
                } else {
                    format!("{:<34}could not be measured: {said}", row.name)
                });
            }
        }
    }
    if failed > 0 {
        bail!("{failed} rows could not be measured");
    }
    Ok(())
}

fn print(figure: &Figure, json: bool) {
    let Figure {
        row,
        value,
        unit,
        reach,
        good,
    } = figure;
    let ok = match good {
        Good::High => value >= reach,
        Good::Low => value <= reach,
    };
    let value = (value * 100.0).round() / 100.0;
    say(&if json {
        json!({ "row": row, "value": value, "unit": unit, "reach": reach, "ok": ok }).to_string()
    } else {
        let mark = if ok { "yes" } else { "NO" };
        format!("{row:<34}{value:>12}  {unit:<7}{reach:>10}  {mark}")
    });
}

/// Builds the release binary, so that no figure is of yesterday's; or takes one that was named, for a
/// comparison.
fn prepare(named: Option<&std::path::Path>) -> anyhow::Result<Bench> {
    let tree = Tree::read()?;
    if let Some(binary) = named {
        let binary = binary.to_path_buf();
        return Ok(Bench { tree, binary });
    }
    tree.cargo(&["build", "--release", "--quiet", "--package", "katmai-app"])?;
    let metadata: Value = serde_json::from_str(&tree.cargo(&[
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--offline",
    ])?)?;
    let target = metadata["target_directory"]
        .as_str()
        .context("cargo names no target directory")?;
    let binary = std::path::Path::new(target).join("release/katmai");
    Ok(Bench { tree, binary })
}
