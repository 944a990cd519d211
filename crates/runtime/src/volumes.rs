//! Volumes on disk: each becomes a directory, which the process node mounts at its paths.
//!
//! What is here: where a volume's directory lies, and how files of ConfigMaps, Secrets, projected
//! and downward-API volumes are written into it. What it refuses to know: processes and mounts.
//!
//! Invariants: no file is written outside its volume's directory, whatever paths a manifest names;
//! a host path is used, never removed.
//!
//! The doors: [`VolumeFile`] and [`show_files`].

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// A file of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeFile {
    /// Relative path.
    pub path: String,
    /// What it holds.
    pub content: Vec<u8>,
    /// Permission bits.
    pub mode: u32,
    /// The group that owns it, where the pod names one.
    pub group: Option<u32>,
}

/// The link to the files as they are now; each visible name leads through it.
const DATA: &str = "..data";

/// Shows files in a volume: all of them change at one instant, as kubelet does it. They stand in a
/// directory of their own, which a link names; to replace the link is to replace them all.
pub fn show_files(volume: &Path, files: &[VolumeFile]) -> io::Result<()> {
    fs::create_dir_all(volume)?;
    let before = fs::read_link(volume.join(DATA)).ok();
    let fresh = if before.as_deref() == Some(Path::new("..one")) {
        "..two"
    } else {
        "..one"
    };
    clear(&volume.join(fresh))?;
    write_files(&volume.join(fresh), files)?;
    // A link cannot be replaced, but another can be moved over it.
    let coming = volume.join("..data_tmp");
    clear(&coming)?;
    std::os::unix::fs::symlink(fresh, &coming)?;
    fs::rename(&coming, volume.join(DATA))?;

    let mut names = BTreeSet::new();
    for file in files {
        if let Some(Component::Normal(name)) = Path::new(&file.path)
            .components()
            .find(|part| *part != Component::CurDir)
        {
            names.insert(name.to_owned());
        }
    }
    for entry in fs::read_dir(volume)? {
        let entry = entry?;
        let name = entry.file_name();
        let ours = name.as_encoded_bytes().starts_with(b"..");
        if !ours && !names.remove(&name) {
            clear(&entry.path())?;
        }
    }
    for name in names {
        let target = Path::new(DATA).join(&name);
        std::os::unix::fs::symlink(target, volume.join(&name))?;
    }
    if let Some(before) = before {
        clear(&volume.join(before))?;
    }
    Ok(())
}

/// Where a volume's files really stand: what is mounted from there stays as it is.
pub fn shown(volume: &Path) -> PathBuf {
    fs::canonicalize(volume.join(DATA)).unwrap_or_else(|_| volume.to_owned())
}

fn clear(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(seen) if seen.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn write_files(directory: &Path, files: &[VolumeFile]) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
    for file in files {
        if file.path.starts_with("..") {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("path {:?} must not begin with \"..\"", file.path),
            ));
        }
        let target = inside(directory, &file.path)?;
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        clear(&target)?;
        fs::write(&target, &file.content)?;
        if file.group.is_some() {
            std::os::unix::fs::chown(&target, None, file.group)?;
        }
        fs::set_permissions(&target, fs::Permissions::from_mode(file.mode & 0o777))?;
    }
    Ok(())
}

/// A path below a directory; refused where it would leave it.
pub fn inside(directory: &Path, relative: &str) -> io::Result<PathBuf> {
    let parts = Path::new(relative).components();
    let stays = parts
        .clone()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !stays {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("path {relative:?} leaves its volume"),
        ));
    }
    let mut path = directory.to_owned();
    for part in parts {
        path.push(part);
        if path.is_symlink() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("path {relative:?} leads through a link"),
            ));
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, content: &str) -> VolumeFile {
        VolumeFile {
            path: path.to_owned(),
            content: content.as_bytes().to_vec(),
            mode: 0o440,
            group: None,
        }
    }

    fn names(directory: &Path) -> String {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names.join(" ")
    }

    #[test]
    fn files_change_at_one_instant_and_stay_inside() {
        let volume = std::env::temp_dir().join(format!("katmai-volume-{}", std::process::id()));
        show_files(&volume, &[file("a/b", "1"), file("c", "2")]).unwrap();
        assert_eq!(names(&volume), "..data ..one a c");
        let before = fs::File::open(volume.join("c")).unwrap();
        show_files(&volume, &[file("a/b", "3"), file("d", "4")]).unwrap();
        assert_eq!(names(&volume), "..data ..two a d");
        assert_eq!(fs::read_to_string(volume.join("a/b")).unwrap(), "3");
        assert_eq!(io::read_to_string(before).unwrap(), "2", "open files stay");
        assert_eq!(
            shown(&volume),
            fs::canonicalize(volume.join("..two")).unwrap()
        );
        let mode = fs::metadata(volume.join("d")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o440);
        for path in ["../x", "/etc/x", "a/../../x", "..data"] {
            assert!(show_files(&volume, &[file(path, "")]).is_err(), "{path}");
        }
        fs::remove_dir_all(&volume).unwrap();
    }
}
