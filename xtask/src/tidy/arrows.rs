//! Which room may know which.

use anyhow::Context;
use serde_json::Value;

use crate::tree::Tree;

/// The drawing of docs/architecture.md. What is not here is forbidden.
pub const ARROWS: &[(&str, &[&str])] = &[
    ("api", &[]),
    (
        "app",
        &[
            "api",
            "checker",
            "cli",
            "client",
            "controllers",
            "dashboard",
            "driver",
            "engine",
            "mirror",
            "model",
            "nodes",
            "placement",
            "quota",
            "review",
            "runtime",
            "server",
            "sim",
            "store",
        ],
    ),
    ("cel", &["api"]),
    ("checker", &["model"]),
    (
        "cli",
        &[
            "api", "client", "driver", "engine", "mirror", "model", "sim",
        ],
    ),
    ("client", &["api"]),
    ("controllers", &["api", "mirror", "model"]),
    ("dashboard", &["api", "client", "engine", "mirror", "model"]),
    (
        "driver",
        &["api", "checker", "controllers", "engine", "mirror", "model"],
    ),
    ("engine", &["model", "placement", "quota"]),
    ("mirror", &["api", "cel", "model"]),
    ("model", &[]),
    ("nodes", &["api"]),
    ("placement", &["model"]),
    ("quota", &["model"]),
    ("review", &["api", "model"]),
    (
        "runtime",
        &[
            "api", "client", "driver", "engine", "mirror", "model", "nodes",
        ],
    ),
    (
        "server",
        &["api", "client", "mirror", "model", "review", "store"],
    ),
    (
        "sim",
        &[
            "api", "checker", "driver", "engine", "mirror", "model", "nodes", "review", "store",
        ],
    ),
    ("store", &["api", "cel"]),
];

/// Arrows that only tests need: a decider's tests ask the checker, the simulation's the controllers,
/// those of controllers whether webhooks take what is written, those of policies evaluate them, and those
/// of jobs ask what Kubernetes says of a pod template.
const TEST_ARROWS: &[(&str, &str)] = &[
    ("controllers", "review"),
    ("engine", "checker"),
    ("review", "cel"),
    ("review", "store"),
    ("sim", "controllers"),
];

/// Rooms below the line: pure, synchronous, deterministic.
pub const PURE: &[&str] = &[
    "api",
    "cel",
    "checker",
    "controllers",
    "driver",
    "engine",
    "mirror",
    "model",
    "nodes",
    "placement",
    "quota",
    "review",
    "sim",
    "store",
];

/// Compares what the manifests say with the drawing.
pub fn find(tree: &Tree) -> anyhow::Result<Vec<String>> {
    let text = tree.cargo(&[
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--offline",
    ])?;
    let metadata: Value = serde_json::from_str(&text)?;
    let mut findings = Vec::new();
    let packages = metadata["packages"].as_array().context("no packages")?;
    for package in packages {
        let Some(room) = room(&package["name"]) else {
            continue;
        };
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == room) else {
            findings.push(format!("crates/{room} is not in the drawing"));
            continue;
        };
        let folder = package["manifest_path"].as_str().unwrap_or_default();
        if !folder.ends_with(&format!("crates/{room}/Cargo.toml")) {
            findings.push(format!("katmai-{room} does not stand in crates/{room}"));
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            if let Some(other) = self::room(&dependency["name"])
                && !allowed.contains(&other)
                && !(dependency["kind"] == "dev" && TEST_ARROWS.contains(&(room, other)))
            {
                findings.push(format!("{room} → {other} is not drawn"));
            }
        }
    }
    Ok(findings)
}

fn room(name: &Value) -> Option<&str> {
    name.as_str()?.strip_prefix("katmai-")
}
