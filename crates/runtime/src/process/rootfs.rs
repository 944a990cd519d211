//! A container's root file system and its mounts, made inside its own mount namespace.
//!
//! The root is a private tmpfs in which each top directory of the shown file system appears: as an
//! overlay, so that what the container writes is its own and vanishes with it, or as a bind mount
//! where no overlay is possible. Directories that hold other file systems are shown entry by entry
//! for two levels. Missing mount points are made in that private layer, never on the host.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{AccessFlags, access};

use super::frame::{ContainerPlan, Mount, Root};

/// Levels of directories with file systems below them that are shown entry by entry.
const SPLIT_LEVELS: u32 = 2;

const NONE: Option<&Path> = None;

/// File systems of the kernel: shown as they are.
const KERNEL: &[&str] = &["dev", "sys"];

/// Makes the plan's root and mounts and moves into it. Without a root nothing is done, and mounts
/// are refused.
pub(crate) fn build(plan: &ContainerPlan) -> Result<(), String> {
    let Some(root) = &plan.root else {
        return match plan.mounts.first() {
            None => Ok(()),
            Some(first) => Err(format!(
                "cannot mount {}: this host allows no mount namespace to the plane",
                first.target.display()
            )),
        };
    };
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE)
        .map_err(|error| format!("cannot make mounts private: {error}"))?;
    let mut builder = Builder::new(root)?;
    builder.plan_layers(plan);
    builder.show_all()?;
    for (path, text) in &plan.files {
        builder.put_file(path, text)?;
    }
    for wanted in &plan.mounts {
        builder.bind_volume(wanted)?;
    }
    builder.enter()
}

struct Builder {
    staging: PathBuf,
    lower: PathBuf,
    root: PathBuf,
    /// Mount points of the host, as absolute paths.
    host_mounts: BTreeSet<PathBuf>,
    /// Paths that must exist inside, as absolute paths in the container, symlinks resolved.
    wanted: Vec<(PathBuf, Wanted)>,
    layers: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Directory,
    File,
}

impl Builder {
    fn new(root: &Root) -> Result<Builder, String> {
        let mounted = fs::read_to_string("/proc/self/mountinfo")
            .map_err(|error| format!("cannot read the mount table: {error}"))?;
        let host_mounts = mounted
            .lines()
            .filter_map(|line| line.split(' ').nth(4))
            .map(|path| PathBuf::from(unescape(path)))
            .collect();
        mount(
            Some("tmpfs"),
            &root.staging,
            Some("tmpfs"),
            MsFlags::MS_NOSUID,
            Some("mode=755"),
        )
        .map_err(|error| format!("cannot mount a private root: {error}"))?;
        let inside = root.staging.join("root");
        make_directory(&inside)?;
        // The new root must be a mount of its own to be moved into.
        bind(&inside, &inside, MsFlags::MS_BIND)?;
        Ok(Builder {
            staging: root.staging.clone(),
            lower: root.lower.clone(),
            root: inside,
            host_mounts,
            wanted: Vec::new(),
            layers: 0,
        })
    }

    /// Notes which paths are to exist before layers are closed.
    fn plan_layers(&mut self, plan: &ContainerPlan) {
        for (path, _) in &plan.files {
            self.wanted.push((self.resolve_parent(path), Wanted::File));
        }
        for wanted in &plan.mounts {
            let kind = if wanted.source.is_dir() {
                Wanted::Directory
            } else {
                Wanted::File
            };
            self.wanted.push((self.resolve(&wanted.target), kind));
        }
    }

    /// The path without symlinks, as far as it exists in the shown file system.
    fn resolve(&self, path: &Path) -> PathBuf {
        let mut resolved = PathBuf::from("/");
        let mut open: Vec<PathBuf> = path
            .components()
            .rev()
            .map(|part| PathBuf::from(part.as_os_str()))
            .collect();
        let mut links = 0;
        while let Some(part) = open.pop() {
            match part.components().next() {
                Some(Component::Normal(name)) => {
                    let next = resolved.join(name);
                    match fs::read_link(self.on_host(&next)) {
                        Ok(target) if links < 40 => {
                            links += 1;
                            let parts = target.components().rev();
                            open.extend(parts.map(|part| PathBuf::from(part.as_os_str())));
                        }
                        _ => resolved = next,
                    }
                }
                Some(Component::ParentDir) => {
                    resolved.pop();
                }
                Some(Component::RootDir) => resolved = PathBuf::from("/"),
                _ => {}
            }
        }
        resolved
    }

    fn resolve_parent(&self, path: &Path) -> PathBuf {
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => self.resolve(parent).join(name),
            _ => path.to_owned(),
        }
    }

    fn on_host(&self, path: &Path) -> PathBuf {
        join(&self.lower, path)
    }

    fn inside(&self, path: &Path) -> PathBuf {
        join(&self.root, path)
    }

    fn show_all(&mut self) -> Result<(), String> {
        self.show_entries(Path::new("/"), 0)?;
        let proc = self.inside(Path::new("/proc"));
        make_directory(&proc)?;
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        if mount(Some("proc"), &proc, Some("proc"), flags, NONE).is_err() {
            // Where parts of /proc are hidden, a new one may not be mounted: show the old one.
            bind(
                Path::new("/proc"),
                &proc,
                MsFlags::MS_BIND | MsFlags::MS_REC,
            )?;
        }
        for name in KERNEL {
            let target = self.root.join(name);
            make_directory(&target)?;
            let source = Path::new("/").join(name);
            bind(&source, &target, MsFlags::MS_BIND | MsFlags::MS_REC)?;
        }
        let memory = self.inside(Path::new("/dev/shm"));
        if memory.is_dir() {
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
            mount(
                Some("shm"),
                &memory,
                Some("tmpfs"),
                flags,
                Some("mode=1777"),
            )
            .map_err(|error| format!("cannot mount /dev/shm: {error}"))?;
        }
        let wanted = std::mem::take(&mut self.wanted);
        for (path, kind) in &wanted {
            self.make_point(path, *kind)?;
        }
        Ok(())
    }

    fn show_entries(&mut self, directory: &Path, level: u32) -> Result<(), String> {
        let host = self.on_host(directory);
        let entries = match fs::read_dir(&host) {
            Ok(entries) => entries,
            // What the user may not list, the container does not see.
            Err(_) => return Ok(()),
        };
        let mut names: Vec<_> = entries
            .filter_map(|entry| entry.ok().map(|entry| entry.file_name()))
            .collect();
        names.sort();
        for name in names {
            let path = directory.join(&name);
            let top = level == 0
                && name
                    .to_str()
                    .is_some_and(|name| name == "proc" || KERNEL.contains(&name));
            if !top {
                self.show(&path, level)?;
            }
        }
        Ok(())
    }

    fn show(&mut self, path: &Path, level: u32) -> Result<(), String> {
        let host = self.on_host(path);
        let target = self.inside(path);
        let Ok(seen) = fs::symlink_metadata(&host) else {
            return Ok(());
        };
        if seen.is_symlink() {
            let link =
                fs::read_link(&host).map_err(|error| said("read the link", &host, &error))?;
            return std::os::unix::fs::symlink(link, &target)
                .map_err(|error| said("make the link", &target, &error));
        }
        if seen.is_dir() {
            make_directory(&target)?;
            if !may_enter(&host) {
                // An empty one of the container's own: a shown one would take no mount, as the home
                // of the superuser (`/root/.ssh`) would not in the plane of another user.
                return Ok(());
            }
            copy_owner(&seen, &target);
            if self.holds_mounts(&host) {
                if level < SPLIT_LEVELS {
                    return self.show_entries(path, level + 1);
                }
            } else if self.overlay(path).is_ok() {
                return Ok(());
            }
        } else {
            make_file(&target)?;
        }
        // What the user may not reach cannot be shown; the empty point stays.
        let _hidden = bind(&host, &target, MsFlags::MS_BIND | MsFlags::MS_REC);
        Ok(())
    }

    fn holds_mounts(&self, host: &Path) -> bool {
        self.host_mounts
            .range::<Path, _>((std::ops::Bound::Excluded(host), std::ops::Bound::Unbounded))
            .next()
            .is_some_and(|next| next.starts_with(host))
    }

    /// Shows a directory with a private layer above it, in which wanted paths exist already:
    /// an unprivileged user could not make them in directories of others afterwards.
    fn overlay(&mut self, path: &Path) -> Result<(), String> {
        let layer = self.staging.join(format!("layer{}", self.layers));
        self.layers += 1;
        let (upper, work) = (layer.join("upper"), layer.join("work"));
        for directory in [&layer, &upper, &work] {
            make_directory(directory)?;
        }
        let host = self.on_host(path);
        if let Ok(seen) = fs::metadata(&host) {
            copy_owner(&seen, &upper);
        }
        for (wanted, kind) in &self.wanted {
            let Ok(below) = wanted.strip_prefix(path) else {
                continue;
            };
            if below.as_os_str().is_empty() {
                continue;
            }
            prepare(&host, &upper, below, *kind)?;
        }
        let options = |extra: &str| {
            format!(
                "lowerdir={},upperdir={},workdir={}{extra}",
                host.display(),
                upper.display(),
                work.display()
            )
        };
        let target = self.inside(path);
        let attempt = |text: &str| {
            mount(
                Some("overlay"),
                &target,
                Some("overlay"),
                MsFlags::empty(),
                Some(text),
            )
        };
        attempt(&options(",userxattr"))
            .or_else(|_| attempt(&options("")))
            .map_err(|error| format!("cannot overlay {}: {error}", path.display()))
    }

    fn make_point(&self, path: &Path, kind: Wanted) -> Result<(), String> {
        let inside = self.inside(path);
        if fs::symlink_metadata(&inside).is_ok() {
            return Ok(());
        }
        let made = match kind {
            Wanted::Directory => fs::create_dir_all(&inside),
            Wanted::File => inside
                .parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| fs::File::create(&inside).map(drop)),
        };
        made.map_err(|error| said("make the mount point", path, &error))
    }

    fn put_file(&self, path: &Path, text: &str) -> Result<(), String> {
        let inside = self.inside(&self.resolve_parent(path));
        fs::write(&inside, text).map_err(|error| said("write", path, &error))
    }

    fn bind_volume(&self, wanted: &Mount) -> Result<(), String> {
        let target = self.inside(&self.resolve(&wanted.target));
        if !target.starts_with(&self.root) {
            return Err(format!("{} leaves the root", wanted.target.display()));
        }
        if fs::symlink_metadata(&target).is_err() {
            let kind = if wanted.source.is_dir() {
                fs::create_dir_all(&target)
            } else {
                fs::File::create(&target).map(drop)
            };
            kind.map_err(|error| said("make the mount point", &wanted.target, &error))?;
        }
        bind(&wanted.source, &target, MsFlags::MS_BIND | MsFlags::MS_REC)?;
        if wanted.read_only {
            make_read_only(&target)?;
        }
        Ok(())
    }

    fn enter(self) -> Result<(), String> {
        let step = |action: &str, error: nix::Error| format!("cannot {action}: {error}");
        let old = self.root.join(".old-root");
        make_directory(&old)?;
        nix::unistd::chdir(&self.root).map_err(|error| step("enter the new root", error))?;
        nix::unistd::pivot_root(".", ".old-root")
            .map_err(|error| step("change the root", error))?;
        nix::unistd::chdir("/").map_err(|error| step("enter the new root", error))?;
        umount2("/.old-root", MntFlags::MNT_DETACH)
            .map_err(|error| step("leave the old root", error))?;
        fs::remove_dir("/.old-root").map_err(|error| format!("cannot leave the old root: {error}"))
    }
}

/// Makes `below` in an upper layer, with the modes of directories that exist in the lower one.
fn prepare(host: &Path, upper: &Path, below: &Path, kind: Wanted) -> Result<(), String> {
    let parts: Vec<_> = below.components().collect();
    let (mut from, mut to) = (host.to_owned(), upper.to_owned());
    for (index, part) in parts.iter().enumerate() {
        from.push(part);
        to.push(part);
        let last = index + 1 == parts.len();
        if last && kind == Wanted::File {
            return make_file(&to);
        }
        if last && from.is_dir() {
            return Ok(());
        }
        make_directory(&to)?;
        if let Ok(seen) = fs::metadata(&from) {
            copy_owner(&seen, &to);
        }
    }
    Ok(())
}

/// Whether the user may reach what is in a directory. A plane of the superuser's may always.
fn may_enter(directory: &Path) -> bool {
    access(directory, AccessFlags::X_OK).is_ok()
}

fn copy_owner(seen: &fs::Metadata, target: &Path) {
    // Without privileges owners cannot be given away; then the user owns the private copy.
    let _kept = std::os::unix::fs::chown(target, Some(seen.uid()), Some(seen.gid()));
    let _mode = fs::set_permissions(target, fs::Permissions::from_mode(seen.mode() & 0o7777));
}

fn make_directory(path: &Path) -> Result<(), String> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(said("make", path, &error))
        }
        _ => Ok(()),
    }
}

fn make_file(path: &Path) -> Result<(), String> {
    fs::File::options()
        .create(true)
        .append(true)
        .open(path)
        .map(drop)
        .map_err(|error| said("make", path, &error))
}

fn said(action: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {action} {}: {error}", path.display())
}

fn bind(source: &Path, target: &Path, flags: MsFlags) -> Result<(), String> {
    mount(Some(source), target, NONE, flags, NONE)
        .map_err(|error| format!("cannot mount {}: {error}", source.display()))
}

/// Turns a bind mount read-only. Flags that the source has must stay: a user namespace may not
/// take them away.
fn make_read_only(target: &Path) -> Result<(), String> {
    let failed = |error: nix::Error| format!("cannot make {} read-only: {error}", target.display());
    let now = statvfs(target).map_err(failed)?.flags();
    let mut flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    for (has, keep) in [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_NODIRATIME, MsFlags::MS_NODIRATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ] {
        if now.contains(has) {
            flags |= keep;
        }
    }
    mount(NONE, target, NONE, flags, NONE).map_err(failed)
}

fn join(base: &Path, path: &Path) -> PathBuf {
    base.join(path.strip_prefix("/").unwrap_or(path))
}

/// Octal escapes of the kernel's mount table.
fn unescape(text: &str) -> String {
    let mut plain = text.to_owned();
    for (code, letter) in [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ] {
        plain = plain.replace(code, letter);
    }
    plain
}
