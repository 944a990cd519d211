//! Directories of planes that keep nothing: they go when nobody is left who could write into them.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::Context;

/// A directory that goes with its holder.
pub(crate) struct Scratch {
    pub(crate) path: PathBuf,
}

impl Scratch {
    /// Makes one that nobody else may look into, among the system's directories of that kind.
    pub(crate) fn make(seed: u64) -> anyhow::Result<Scratch> {
        let name = format!("katmai-{}-{seed:016x}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Scratch { path })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!("cannot remove {}: {error}", self.path.display());
        }
    }
}

/// Those of a process, held until its tasks have ended: one that is only told to end may be making a
/// directory in there.
#[derive(Default)]
pub(crate) struct Scratches(Mutex<Vec<Scratch>>);

impl Scratches {
    /// Holds one; where it lies.
    pub(crate) fn hold(&self, scratch: Scratch) -> PathBuf {
        let path = scratch.path.clone();
        self.held().push(scratch);
        path
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held().is_empty()
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Vec<Scratch>> {
        // Who panicked with it in hand had pushed or had not.
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
