//! Directories: copied whole or not at all, and removed.
//!
//! Sources are walked from open directory to open directory without following a link, so that
//! whoever writes in a volume meanwhile cannot lead a copy out of it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, readlinkat, statat};

/// Deeper directories are refused: each level holds an open file.
const DEPTH_MAX: usize = 256;
/// Bytes that are copied at a time; a block of zeroes becomes a hole.
const CHUNK_BYTES: usize = 1 << 18;
const PARTIAL: &str = ".partial";

/// What ends a copy early.
#[derive(Debug)]
pub(super) struct Brake {
    stop: Arc<AtomicBool>,
    until: Instant,
}

impl Brake {
    pub(super) fn new(stop: Arc<AtomicBool>, until: Instant) -> Brake {
        Brake { stop, until }
    }

    fn check(&self) -> io::Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::Error::other("the plane is ending"));
        }
        if Instant::now() > self.until {
            return Err(io::Error::other("the copy takes too long"));
        }
        Ok(())
    }
}

/// Makes `to` hold what `from` holds (nothing, if it is not there); the bytes of its files.
/// A directory that is there already under its own name was made whole, and stays.
pub(super) fn tree(from: &Path, to: &Path, brake: &Brake) -> io::Result<u64> {
    if to.symlink_metadata().is_ok() {
        return Ok(0);
    }
    let partial = partial(to)?;
    remove(&partial)?;
    fs::create_dir_all(&partial)?;
    let mut copy = Copy {
        brake,
        links: HashMap::new(),
        bytes: 0,
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::open(from, flags, Mode::empty()) {
        Ok(source) => copy.directory(source, &partial, 0)?,
        Err(rustix::io::Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    fs::rename(&partial, to)?;
    Ok(copy.bytes)
}

fn partial(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut hidden = OsStr::new(".").to_owned();
    hidden.push(name);
    hidden.push(PARTIAL);
    Ok(path.with_file_name(hidden))
}

/// Removes a directory, if it is there.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes what an earlier process has left half done.
pub(super) fn sweep(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.as_bytes();
        if name.starts_with(b".") && name.ends_with(PARTIAL.as_bytes()) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

struct Copy<'a> {
    brake: &'a Brake,
    /// Files that have several names, by device and inode.
    links: HashMap<(u64, u64), PathBuf>,
    bytes: u64,
}

impl Copy<'_> {
    fn directory(&mut self, source: OwnedFd, target: &Path, depth: usize) -> io::Result<()> {
        if depth > DEPTH_MAX {
            return Err(io::Error::other(format!(
                "directories are nested more than {DEPTH_MAX} deep"
            )));
        }
        for entry in Dir::read_from(&source)? {
            self.brake.check()?;
            let entry = entry?;
            let name = entry.file_name();
            if [&b"."[..], b".."].contains(&name.to_bytes()) {
                continue;
            }
            let below = target.join(OsStr::from_bytes(name.to_bytes()));
            let seen = match statat(&source, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(seen) => seen,
                // It went while we looked.
                Err(rustix::io::Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            };
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            match FileType::from_raw_mode(seen.st_mode) {
                FileType::Directory => {
                    let flags = flags | OFlags::DIRECTORY;
                    let within = openat(&source, name, flags, Mode::empty())?;
                    fs::create_dir(&below)?;
                    self.directory(within, &below, depth + 1)?;
                }
                FileType::RegularFile => {
                    let file = openat(&source, name, flags, Mode::empty())?;
                    self.file(&File::from(file), &below)?;
                }
                FileType::Symlink => {
                    let leads = readlinkat(&source, name, Vec::new())?;
                    symlink(OsStr::from_bytes(leads.to_bytes()), &below)?;
                    own(&below, seen.st_uid, seen.st_gid)?;
                }
                FileType::Fifo => {
                    let mode = nix::sys::stat::Mode::from_bits_truncate(seen.st_mode & 0o7777);
                    nix::unistd::mkfifo(&below, mode)?;
                    own(&below, seen.st_uid, seen.st_gid)?;
                }
                // Sockets and devices are nothing that a volume keeps.
                _ => {}
            }
        }
        // Last: a directory that nobody may write to is written to until here.
        dress(
            &File::open(target)?,
            target,
            &File::from(source).metadata()?,
        )
    }

    fn file(&mut self, source: &File, target: &Path) -> io::Result<()> {
        let meta = source.metadata()?;
        if !meta.is_file() {
            return Ok(());
        }
        let place = (meta.dev(), meta.ino());
        if meta.nlink() > 1 {
            if let Some(known) = self.links.get(&place) {
                return fs::hard_link(known, target);
            }
            self.links.insert(place, target.to_owned());
        }
        let file = File::create_new(target)?;
        // The same blocks on disk, until one of both is written to.
        if rustix::fs::ioctl_ficlone(&file, source).is_err() {
            self.blocks(source, &file)?;
        }
        self.bytes += file.metadata()?.len();
        dress(&file, target, &meta)
    }

    fn blocks(&mut self, mut source: &File, mut target: &File) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut length = 0;
        loop {
            self.brake.check()?;
            let count = source.read(&mut chunk)?;
            if count == 0 {
                break;
            }
            length += count as u64;
            let read = &chunk[..count];
            match read.iter().all(|byte| *byte == 0) {
                true => drop(target.seek(SeekFrom::Start(length))?),
                false => target.write_all(read)?,
            }
        }
        target.set_len(length)
    }
}

/// Gives a copy the owner, permissions and time of what it is a copy of.
fn dress(file: &File, path: &Path, like: &fs::Metadata) -> io::Result<()> {
    own(path, like.uid(), like.gid())?;
    file.set_permissions(Permissions::from_mode(like.mode() & 0o7777))?;
    file.set_times(FileTimes::new().set_modified(like.modified()?))
}

/// Only root may give files away; for others they are all their own anyway.
fn own(path: &Path, user: u32, group: u32) -> io::Result<()> {
    match lchown(path, Some(user), Some(group)) {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("katmai-copy-{name}-{}", std::process::id()));
        remove(&path).unwrap();
        fs::create_dir_all(path.join("from")).unwrap();
        path
    }

    fn brake() -> Brake {
        let until = Instant::now() + Duration::from_secs(60);
        Brake::new(Arc::new(AtomicBool::new(false)), until)
    }

    #[test]
    fn a_copy_is_as_its_source_was_and_follows_no_link() {
        let place = scratch("same");
        let (from, to) = (place.join("from"), place.join("to"));
        fs::write(place.join("secret"), "outside").unwrap();
        fs::create_dir_all(from.join("a/b")).unwrap();
        fs::write(from.join("a/b/file"), "hello").unwrap();
        fs::hard_link(from.join("a/b/file"), from.join("same")).unwrap();
        symlink("../secret", from.join("link")).unwrap();
        symlink("/", from.join("root")).unwrap();
        let mut sparse = File::create(from.join("sparse")).unwrap();
        sparse.seek(SeekFrom::Start(64 << 20)).unwrap();
        sparse.write_all(b"end").unwrap();
        fs::set_permissions(from.join("a"), Permissions::from_mode(0o555)).unwrap();

        let bytes = tree(&from, &to, &brake()).unwrap();
        assert_eq!(bytes, 5 + (64 << 20) + 3, "a second name costs nothing");
        assert_eq!(fs::read_to_string(to.join("a/b/file")).unwrap(), "hello");
        assert_eq!(
            fs::read_link(to.join("link")).unwrap(),
            Path::new("../secret")
        );
        assert_eq!(fs::read_link(to.join("root")).unwrap(), Path::new("/"));
        let meta = |name: &str| fs::metadata(to.join(name)).unwrap();
        assert_eq!(meta("same").ino(), meta("a/b/file").ino());
        assert_eq!(meta("a").mode() & 0o777, 0o555);
        assert!(meta("sparse").blocks() * 512 < 1 << 20, "holes stay holes");
        fs::write(from.join("same"), "other").unwrap();
        assert_eq!(fs::read_to_string(to.join("same")).unwrap(), "hello");
        fs::set_permissions(from.join("a"), Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(to.join("a"), Permissions::from_mode(0o755)).unwrap();
        remove(&place).unwrap();
    }

    #[test]
    fn a_copy_is_whole_or_not_there() {
        let place = scratch("whole");
        let (from, to) = (place.join("from"), place.join("to"));
        fs::write(from.join("file"), "hello").unwrap();
        let stopped = Brake::new(Arc::new(AtomicBool::new(true)), Instant::now());
        assert!(tree(&from, &to, &stopped).is_err());
        assert!(!to.exists());
        sweep(&place).unwrap();
        assert_eq!(
            fs::read_dir(&place).unwrap().count(),
            1,
            "nothing is left of it"
        );
        tree(&from, &to, &brake()).unwrap();
        fs::write(from.join("file"), "other").unwrap();
        tree(&from, &to, &brake()).unwrap();
        assert_eq!(fs::read_to_string(to.join("file")).unwrap(), "hello");
        tree(&place.join("nowhere"), &place.join("empty"), &brake()).unwrap();
        assert_eq!(fs::read_dir(place.join("empty")).unwrap().count(), 0);
        remove(&place).unwrap();
    }
}
