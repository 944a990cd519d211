//! Limits by control group, where this user may write them; without, containers run unlimited.

use std::fs;
use std::path::{Path, PathBuf};

const BASE: &str = "/sys/fs/cgroup";
/// Period of cpu limits in microseconds.
const PERIOD: i64 = 100_000;

/// Which kind of control groups can be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Groups {
    /// None, and why.
    Absent(String),
    /// Version 1: one tree per controller.
    Split(PathBuf),
    /// Version 2: one tree.
    Unified(PathBuf),
}

/// The limits of one container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub cpu_milli: Option<i64>,
    pub memory_bytes: Option<i64>,
}

/// A container's groups; removed when dropped.
#[derive(Debug)]
pub(crate) struct Group {
    directories: Vec<PathBuf>,
}

impl Groups {
    /// Finds out what can be written, and clears what earlier planes left.
    pub(crate) fn find() -> Groups {
        let name = format!("katmai-{}", std::process::id());
        let base = Path::new(BASE);
        if base.join("cgroup.controllers").exists() {
            clear(base);
            let own = base.join(name);
            let made = fs::create_dir_all(&own).and_then(|()| {
                fs::write(base.join("cgroup.subtree_control"), "+cpu +memory +pids")?;
                fs::write(own.join("cgroup.subtree_control"), "+cpu +memory +pids")
            });
            return match made {
                Ok(()) => Groups::Unified(own),
                Err(error) => Groups::Absent(format!("cannot write {}: {error}", own.display())),
            };
        }
        let memory = base.join("memory");
        if !memory.is_dir() {
            return Groups::Absent("no control groups are mounted".to_owned());
        }
        for controller in ["memory", "cpu"] {
            clear(&base.join(controller));
            if let Err(error) = fs::create_dir_all(base.join(controller).join(&name)) {
                return Groups::Absent(format!("cannot write {}: {error}", memory.display()));
            }
        }
        Groups::Split(name.into())
    }

    /// Makes the groups of one container.
    pub(crate) fn make(&self, container: &str, limits: &Limits) -> Group {
        let mut directories = Vec::new();
        if limits.cpu_milli.is_some() || limits.memory_bytes.is_some() {
            let written = match self {
                Groups::Absent(_) => Ok(()),
                Groups::Unified(own) => unified(&own.join(container), limits, &mut directories),
                Groups::Split(own) => split(own, container, limits, &mut directories),
            };
            if let Err(error) = written {
                tracing::warn!(%container, %error, "limits cannot be written");
            }
        }
        Group { directories }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        let directories = match self {
            Groups::Absent(_) => Vec::new(),
            Groups::Unified(own) => vec![own.clone()],
            Groups::Split(own) => ["memory", "cpu"]
                .map(|controller| Path::new(BASE).join(controller).join(&*own))
                .to_vec(),
        };
        for directory in directories {
            // A group that still holds processes is cleared by the next plane.
            let _busy = fs::remove_dir(directory);
        }
    }
}

impl Group {
    /// The files through which a process enters.
    pub(crate) fn entrances(&self) -> Vec<PathBuf> {
        let file = |directory: &PathBuf| directory.join("cgroup.procs");
        self.directories.iter().map(file).collect()
    }

    /// Whether the kernel ended something here for want of memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.directories.iter().any(|directory| {
            ["memory.events", "memory.oom_control"].iter().any(|file| {
                let text = fs::read_to_string(directory.join(file)).unwrap_or_default();
                text.lines()
                    .filter_map(|line| line.strip_prefix("oom_kill "))
                    .any(|count| count.trim() != "0")
            })
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for directory in &self.directories {
            // A group that still holds processes is cleared by the next plane.
            let _busy = fs::remove_dir(directory);
        }
    }
}

fn unified(own: &Path, limits: &Limits, made: &mut Vec<PathBuf>) -> std::io::Result<()> {
    fs::create_dir_all(own)?;
    made.push(own.to_owned());
    if let Some(bytes) = limits.memory_bytes {
        fs::write(own.join("memory.max"), bytes.to_string())?;
        // Without this swap would stand in for memory; a kernel without swap has no such file.
        let _no_swap = fs::write(own.join("memory.swap.max"), "0");
    }
    if let Some(milli) = limits.cpu_milli {
        let quota = milli.saturating_mul(PERIOD / 1_000).max(1_000);
        fs::write(own.join("cpu.max"), format!("{quota} {PERIOD}"))?;
    }
    Ok(())
}

fn split(
    own: &Path,
    container: &str,
    limits: &Limits,
    made: &mut Vec<PathBuf>,
) -> std::io::Result<()> {
    let mut make = |controller: &str| {
        let directory = Path::new(BASE).join(controller).join(own).join(container);
        fs::create_dir_all(&directory)?;
        made.push(directory.clone());
        Ok::<_, std::io::Error>(directory)
    };
    if let Some(bytes) = limits.memory_bytes {
        fs::write(
            make("memory")?.join("memory.limit_in_bytes"),
            bytes.to_string(),
        )?;
    }
    if let Some(milli) = limits.cpu_milli {
        let directory = make("cpu")?;
        let quota = milli.saturating_mul(PERIOD / 1_000).max(1_000);
        fs::write(directory.join("cpu.cfs_period_us"), PERIOD.to_string())?;
        fs::write(directory.join("cpu.cfs_quota_us"), quota.to_string())?;
    }
    Ok(())
}

/// Removes groups of planes that are gone. Groups that hold processes cannot be removed.
fn clear(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix("katmai-"));
        let Some(process) = process else {
            continue;
        };
        if Path::new("/proc").join(process).exists() {
            continue;
        }
        for inner in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
            // Plain files of the group are not directories and stay.
            let _busy = fs::remove_dir(inner.path());
        }
        let _busy = fs::remove_dir(entry.path());
    }
}
