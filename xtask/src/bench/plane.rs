//! A plane started for a measurement, and what the operating system says about it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::rows::Bench;

/// A `katmai up` of ours; dropping it ends it.
pub struct Plane {
    child: Child,
    folder: PathBuf,
    /// From start to the line that says where to connect.
    pub ready: Duration,
}

/// A folder for one measurement.
pub fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("katmai-bench-{name}-{}", std::process::id()))
}

impl Plane {
    /// Starts a plane in a folder and waits until it says that it is ready.
    pub fn up(bench: &Bench, folder: &Path, arguments: &[&str]) -> anyhow::Result<Plane> {
        let began = Instant::now();
        let mut child = Command::new(&bench.binary)
            .arg("up")
            .arg("--data-dir")
            .arg(folder)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", bench.binary.display()))?;
        let output = child.stdout.take().context("no standard output")?;
        let mut plane = Plane {
            child,
            folder: folder.to_owned(),
            ready: Duration::ZERO,
        };
        for line in BufReader::new(output).lines() {
            if line?.contains("KUBECONFIG=") {
                plane.ready = began.elapsed();
                return Ok(plane);
            }
        }
        bail!("the plane ended before it was ready")
    }

    /// The kubeconfig that it wrote.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// CPU time of the plane and all its children so far, in seconds.
    pub fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let mut ticks = 0.0;
        for pid in self.family() {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
            let fields: Vec<&str> = stat
                .rsplit_once(')')
                .context("no process name")?
                .1
                .split_whitespace()
                .collect();
            // utime and stime are fields 14 and 15; the two before the name are cut off.
            for field in [11, 12] {
                ticks += fields[field].parse::<f64>()?;
            }
        }
        // USER_HZ is 100 on every Linux that we know.
        Ok(ticks / 100.0)
    }

    /// Resident memory of the plane and all its children, in MB.
    pub fn rss_mb(&self) -> anyhow::Result<f64> {
        let mut kilobytes = 0.0;
        for pid in self.family() {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
            let line = status.lines().find(|line| line.starts_with("VmRSS:"));
            if let Some(number) = line.and_then(|line| line.split_whitespace().nth(1)) {
                kilobytes += number.parse::<f64>()?;
            }
        }
        Ok(kilobytes / 1000.0)
    }

    fn family(&self) -> Vec<u32> {
        let mut found = vec![self.child.id()];
        let mut at = 0;
        while at < found.len() {
            let pid = found[at];
            at += 1;
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            found.extend(
                children
                    .unwrap_or_default()
                    .split_whitespace()
                    .filter_map(|child| child.parse::<u32>().ok()),
            );
        }
        found
    }

    /// Ends the plane and waits for its end; the folder stays.
    pub fn down(mut self, bench: &Bench) -> anyhow::Result<()> {
        let status = Command::new(&bench.binary)
            .args(["down", "--data-dir"])
            .arg(&self.folder)
            .stdout(Stdio::null())
            .status()?;
        if !status.success() {
            bail!("katmai down failed");
        }
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        // It may have ended before; then there is nothing to end.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The median of some figures.
pub fn median(mut values: Vec<f64>) -> f64 {
    percentile(&mut values, 50)
}

/// The value that so many percent do not exceed.
pub fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (values.len() * percent).div_ceil(100).max(1) - 1;
    values.get(at).copied().unwrap_or(f64::NAN)
}
