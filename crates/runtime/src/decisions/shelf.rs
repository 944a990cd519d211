//! Where segments lie: a directory, or for tests something that fills up or stands still.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{KEY, SUFFIX};

/// Holds segments under names that sort by age.
pub(super) trait Shelf: Send + 'static {
    /// A new segment.
    fn begin(&mut self, name: &str) -> io::Result<Box<dyn Sink>>;
    /// Names and lengths, the oldest first.
    fn all(&self) -> io::Result<Vec<(String, u64)>>;
    /// Takes one away.
    fn remove(&mut self, name: &str) -> io::Result<()>;
}

/// A segment that is being written.
pub(super) trait Sink: Send {
    /// Writes all of it, or fails after a part of it.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Leaves only so many bytes.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

/// A directory.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Made where it is missing, for this user only.
    pub(super) fn open(path: &Path) -> io::Result<Directory> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Ok(Directory {
            path: path.to_owned(),
        })
    }

    /// The key of its tokens, drawn where there is none.
    pub(super) fn key(&self) -> io::Result<[u8; 16]> {
        let path = self.path.join(KEY);
        let mut key = [0; 16];
        match File::open(&path) {
            Ok(mut file) => file.read_exact(&mut key)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                File::open("/dev/urandom")?.read_exact(&mut key)?;
                // A key that was written by half would be the end of every later start.
                let draft = self.path.join("key.draft");
                private(&draft)?.write_all(&key)?;
                fs::rename(&draft, &path)?;
            }
            Err(error) => return Err(error),
        }
        Ok(key)
    }
}

impl Shelf for Directory {
    fn begin(&mut self, name: &str) -> io::Result<Box<dyn Sink>> {
        Ok(Box::new(private(&self.path.join(name))?))
    }

    fn all(&self) -> io::Result<Vec<(String, u64)>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(SUFFIX) {
                all.push((name, entry.metadata()?.len()));
            }
        }
        all.sort();
        Ok(all)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }
}

impl Sink for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(path)
}
