//! Limits by control group, where this user may write them; without, containers run unlimited.

use std::fs;
use std::path::{Path, PathBuf};

const BASE: &str = "/sys/fs/cgroup";
/// What limits are held by.
const CONTROLLERS: [&str; 2] = ["cpu", "memory"];
/// Period of cpu limits in microseconds.
const PERIOD: i64 = 100_000;

/// Which kind of control groups can be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Groups {
    /// None, and why.
    Absent(String),
    /// Version 1: one tree per controller; the directory has a copy below each.
    Split { base: PathBuf, own: PathBuf },
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
        Groups::below(Path::new(BASE))
    }

    fn below(base: &Path) -> Groups {
        let name = format!("katmai-{}", std::process::id());
        if base.join("cgroup.controllers").exists() {
            clear(base);
            let own = base.join(name);
            return match make_unified(base, &own) {
                Ok(()) => Groups::Unified(own),
                Err(why) => {
                    // A group that nobody can use; it holds nothing.
                    let _empty = fs::remove_dir(&own);
                    Groups::Absent(why)
                }
            };
        }
        let memory = base.join("memory");
        if !memory.is_dir() {
            return Groups::Absent("no control groups are mounted".to_owned());
        }
        for controller in CONTROLLERS {
            clear(&base.join(controller));
            if let Err(error) = fs::create_dir_all(base.join(controller).join(&name)) {
                return Groups::Absent(format!("cannot write {}: {error}", memory.display()));
            }
        }
        Groups::Split {
            base: base.to_owned(),
            own: name.into(),
        }
    }

    /// Makes the groups of one container.
    pub(crate) fn make(&self, container: &str, limits: &Limits) -> Group {
        let mut directories = Vec::new();
        if limits.cpu_milli.is_some() || limits.memory_bytes.is_some() {
            let written = match self {
                Groups::Absent(_) => Ok(()),
                Groups::Unified(own) => unified(&own.join(container), limits, &mut directories),
                Groups::Split { base, own } => {
                    let place = |controller: &str| base.join(controller).join(own).join(container);
                    split(place, limits, &mut directories)
                }
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
            Groups::Split { base, own } => CONTROLLERS
                .map(|controller| base.join(controller).join(&*own))
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

/// Makes the plane's own group and hands the controllers down to its containers. The plane itself
/// stays where it is: a group that hands controllers down may hold no process.
fn make_unified(base: &Path, own: &Path) -> Result<(), String> {
    let failed =
        |path: &Path, error: std::io::Error| format!("cannot write {}: {error}", path.display());
    fs::create_dir_all(own).map_err(|error| failed(own, error))?;
    for directory in [base, own] {
        let file = directory.join("cgroup.subtree_control");
        for controller in CONTROLLERS {
            let handed_down = fs::read_to_string(&file).unwrap_or_default();
            if handed_down.split_whitespace().any(|one| one == controller) {
                continue;
            }
            fs::write(&file, format!("+{controller}")).map_err(|error| failed(&file, error))?;
        }
    }
    Ok(())
}

fn unified(own: &Path, limits: &Limits, made: &mut Vec<PathBuf>) -> std::io::Result<()> {
    fs::create_dir_all(own)?;
    made.push(own.to_owned());
    if let Some(bytes) = limits.memory_bytes {
        fs::write(own.join("memory.max"), bytes.to_string())?;
        // As under Kubernetes: who runs out of memory ends whole, not in parts.
        let _old_kernel = fs::write(own.join("memory.oom.group"), "1");
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
    place: impl Fn(&str) -> PathBuf,
    limits: &Limits,
    made: &mut Vec<PathBuf>,
) -> std::io::Result<()> {
    let mut make = |controller: &str| {
        let directory = place(controller);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with the files of a mount of that kind. Writes are seen, effects are not.
    fn imitation(name: &str, files: &[&str]) -> PathBuf {
        let base = std::env::temp_dir().join(format!("katmai-{}-{name}", std::process::id()));
        for file in files {
            let path = base.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        base
    }

    const LIMITS: Limits = Limits {
        cpu_milli: Some(1_500),
        memory_bytes: Some(64 << 20),
    };

    #[test]
    fn version_2_takes_both_limits_in_one_group_and_tells_of_memory() {
        let base = imitation("v2", &["cgroup.controllers", "cgroup.subtree_control"]);
        let groups = Groups::below(&base);
        let own = base.join(format!("katmai-{}", std::process::id()));
        assert_eq!(groups, Groups::Unified(own.clone()));
        let group = groups.make("uid-c", &LIMITS);
        let directory = own.join("uid-c");
        assert_eq!(group.entrances(), [directory.join("cgroup.procs")]);
        let text = |file: &str| fs::read_to_string(directory.join(file)).unwrap();
        assert_eq!(text("memory.max"), "67108864");
        assert_eq!(text("memory.oom.group"), "1");
        assert_eq!(text("cpu.max"), "150000 100000");
        assert!(!group.ran_out_of_memory());
        fs::write(directory.join("memory.events"), "oom 1\noom_kill 0\n").unwrap();
        assert!(!group.ran_out_of_memory());
        fs::write(directory.join("memory.events"), "oom 1\noom_kill 2\n").unwrap();
        assert!(group.ran_out_of_memory());
        assert!(
            groups
                .make("free", &Limits::default())
                .entrances()
                .is_empty()
        );
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn version_1_takes_each_limit_in_its_tree() {
        let base = imitation("v1", &["memory/tasks", "cpu/tasks"]);
        let groups = Groups::below(&base);
        let group = groups.make("c", &LIMITS);
        let name = format!("katmai-{}/c", std::process::id());
        let text = |file: &str| fs::read_to_string(base.join(file)).unwrap();
        let bytes = text(&format!("memory/{name}/memory.limit_in_bytes"));
        let quota = text(&format!("cpu/{name}/cpu.cfs_quota_us"));
        assert_eq!((&*bytes, &*quota), ("67108864", "150000"));
        assert_eq!(group.entrances().len(), 2);
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_mount_that_hands_nothing_down_says_so() {
        let base = imitation("none", &["cgroup.controllers"]);
        fs::create_dir(base.join("cgroup.subtree_control")).unwrap();
        let Groups::Absent(why) = &Groups::below(&base) else {
            panic!("nothing can be written there");
        };
        assert!(why.contains("cgroup.subtree_control"), "{why}");
        fs::remove_dir_all(&base).unwrap();
        let nothing = Groups::below(&base);
        assert_eq!(
            nothing,
            Groups::Absent("no control groups are mounted".to_owned())
        );
    }

    #[test]
    fn groups_of_planes_that_are_gone_are_cleared() {
        let base = imitation("left", &["cgroup.controllers", "cgroup.subtree_control"]);
        let old = base.join("katmai-4194305");
        fs::create_dir_all(old.join("uid-c")).unwrap();
        drop(Groups::below(&base));
        assert!(!old.exists());
        fs::remove_dir_all(base).unwrap();
    }
}
