//! Rows about the source tree.

use std::time::Instant;

use super::plane::folder;
use super::rows::{Figure, Measure, Row, When};
use crate::tidy;

/// Crates in the dependency tree on Linux.
pub const TREE_CRATES: Row = Row {
    name: "tree-crates",
    when: When::Always,
    measure: Measure::Here(|bench| {
        let count = tidy::crate_count(&bench.tree)?;
        Ok(vec![Figure::new(
            "tree-crates",
            count as f64,
            "crates",
            300.0,
        )])
    }),
};

/// A release build with nothing built before (sources downloaded).
pub const BUILD_RELEASE: Row = Row {
    name: "build-release",
    when: When::Named,
    measure: Measure::Here(|bench| {
        let place = folder("build");
        let began = Instant::now();
        let target = place.to_string_lossy().into_owned();
        bench.tree.cargo(&[
            "build",
            "--release",
            "--quiet",
            "--package",
            "katmai-app",
            "--target-dir",
            &target,
        ])?;
        let seconds = began.elapsed().as_secs_f64();
        std::fs::remove_dir_all(&place)?;
        Ok(vec![Figure::new("build-release", seconds, "s", 600.0)])
    }),
};
