//! Volumes on disk: each becomes a directory, which the process node mounts at its paths.
//!
//! What is here: where a volume's directory lies, and how files of ConfigMaps, Secrets, projected
//! and downward-API volumes are written into it. What it refuses to know: processes and mounts.
//!
//! Invariants: no file is written outside its volume's directory, whatever paths a manifest names;
//! a host path is used, never removed.
//!
//! The doors: [`VolumeFile`] and [`write_files`].

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
}

/// Writes a volume's files, whole or not at all for each one: readers see the old or the new.
pub fn write_files(directory: &Path, files: &[VolumeFile]) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for file in files {
        let target = inside(directory, &file.path)?;
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        let part = directory.join(".part");
        // A part left by a plane that was killed may be unreadable to its owner.
        let _absent = fs::remove_file(&part);
        fs::write(&part, &file.content)?;
        fs::set_permissions(&part, fs::Permissions::from_mode(file.mode & 0o777))?;
        fs::rename(&part, &target)?;
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

    #[test]
    fn files_are_replaced_whole_and_stay_inside() {
        let directory = std::env::temp_dir().join(format!("katmai-volume-{}", std::process::id()));
        let file = |path: &str, content: &str| VolumeFile {
            path: path.to_owned(),
            content: content.as_bytes().to_vec(),
            mode: 0o400,
        };
        write_files(&directory, &[file("a/b", "1"), file("c", "2")]).unwrap();
        write_files(&directory, &[file("a/b", "3")]).unwrap();
        assert_eq!(fs::read_to_string(directory.join("a/b")).unwrap(), "3");
        for path in ["../x", "/etc/x", "a/../../x"] {
            assert!(
                write_files(&directory, &[file(path, "")]).is_err(),
                "{path}"
            );
        }
        fs::remove_dir_all(&directory).unwrap();
    }
}
