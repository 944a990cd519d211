//! Two API servers beside one another: ours, and the real kube-apiserver over its etcd.
//!
//! Ours is the example `serve` of `katmai-server`: store, sockets and journal, as the real one runs
//! without controllers. Neither waits for the disk unless a row says so, and then both do.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::load::Target;
use super::plane::folder;
use super::rows::Bench;

/// Neither side takes longer to be ready.
const PATIENCE: Duration = Duration::from_secs(120);

/// What acknowledged writes outlive, on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The process.
    Process,
    /// A loss of power.
    Power,
}

/// Our server as a process.
pub struct Ours {
    child: Child,
    folder: PathBuf,
    /// How to reach it.
    pub target: Target,
    /// From its start to its first answer.
    pub ready: Duration,
}

impl Ours {
    /// Starts it over the journal in a folder.
    pub fn up(bench: &Bench, folder: &Path, durability: Durability) -> anyhow::Result<Ours> {
        std::fs::create_dir_all(folder)?;
        bench.tree.cargo(&[
            "build",
            "--release",
            "--quiet",
            "--package",
            "katmai-server",
            "--example",
            "serve",
        ])?;
        let program = bench
            .binary
            .parent()
            .context("the binary lies in a folder")?
            .join("examples/serve");
        let kubeconfig = folder.join("kubeconfig");
        drop(std::fs::remove_file(&kubeconfig));
        let began = Instant::now();
        let child = Command::new(&program)
            .arg(&kubeconfig)
            .arg(folder.join("data"))
            .arg(match durability {
                Durability::Process => "process",
                Durability::Power => "power",
            })
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut ours = Started(child);
        while !kubeconfig.exists() {
            if ours.0.try_wait()?.is_some() || began.elapsed() > PATIENCE {
                bail!("our server did not become ready");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let ready = began.elapsed();
        let target = Target::read(&kubeconfig)?;
        Ok(Ours {
            child: ours.into_child()?,
            folder: folder.to_owned(),
            target,
            ready,
        })
    }

    /// Resident memory in MB.
    pub fn rss_mb(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let kilobytes = line
            .and_then(|line| line.split_whitespace().nth(1))
            .context("no VmRSS")?;
        Ok(kilobytes.parse::<f64>()? / 1000.0)
    }

    /// Ends it; its folder stays.
    pub fn end(mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Where its journal lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        // It may have been ended before.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A process that is ended unless it is taken out.
struct Started(Child);

impl Started {
    fn into_child(self) -> anyhow::Result<Child> {
        Ok(self.0)
    }
}

/// The real server, in a directory of `cargo xtask realkube`.
pub struct Theirs<'a> {
    bench: &'a Bench,
    folder: PathBuf,
    /// How to reach it.
    pub target: Target,
}

impl Theirs<'_> {
    /// Starts one.
    pub fn up(bench: &Bench, durability: Durability) -> anyhow::Result<Theirs<'_>> {
        let folder = folder("realkube");
        let directory = folder.display().to_string();
        let mut arguments = vec!["xtask", "realkube", "up", "--dir", &directory];
        if durability == Durability::Power {
            arguments.push("--fsync");
        }
        bench.tree.cargo(&arguments)?;
        let target = Target::read(&folder.join("kubeconfig"))?;
        Ok(Theirs {
            bench,
            folder,
            target,
        })
    }
}

impl Drop for Theirs<'_> {
    fn drop(&mut self) {
        let directory = self.folder.display().to_string();
        let down = ["xtask", "realkube", "down", "--dir", &directory];
        if let Err(error) = self.bench.tree.cargo(&down) {
            crate::say(&format!("the real server was not ended: {error:#}"));
        }
    }
}
