//! The directory in which a plane that is up can be found: lock, address, kubeconfig, pid, log.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// A log longer than this begins anew with the next plane.
const LOG_BYTES_MAX: u64 = 16 << 20;

/// A plane's state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir {
    root: PathBuf,
}

/// Held for as long as a plane lives; the kernel releases it however the process ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// What a running plane left for others to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// `https://127.0.0.1:6443`.
    pub address: String,
    /// Process id.
    pub pid: i32,
    /// The file that its scheduler follows, if it does.
    pub scheduler_conf: Option<PathBuf>,
    /// The flags that say whom its scheduler serves.
    pub serving: Vec<String>,
}

/// What others need to know of a plane that is up.
#[derive(Clone, Copy, Debug)]
pub struct Announcement<'a> {
    /// `https://127.0.0.1:6443`.
    pub address: &'a str,
    /// The text of its kubeconfig.
    pub kubeconfig: &'a str,
    /// The file that its scheduler follows, if it does.
    pub scheduler_conf: Option<&'a Path>,
    /// The flags that say whom its scheduler serves.
    pub serving: &'a [String],
}

impl StateDir {
    /// A directory that the user named.
    pub fn at(root: impl Into<PathBuf>) -> StateDir {
        StateDir { root: root.into() }
    }

    /// `$XDG_STATE_HOME/katmai`, else `~/.local/state/katmai`.
    pub fn of_user() -> anyhow::Result<StateDir> {
        let base = std::env::var_os("XDG_STATE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| {
                std::env::var_os("HOME")
                    .filter(|home| !home.is_empty())
                    .map(|home| Path::new(&home).join(".local/state"))
            })
            .context("cannot find a state directory: neither XDG_STATE_HOME nor HOME is set; use --data-dir")?;
        Ok(StateDir::at(base.join("katmai")))
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Where objects are kept.
    pub fn data(&self) -> PathBuf {
        self.root.join("data")
    }

    /// The kubeconfig of the plane.
    pub fn kubeconfig(&self) -> PathBuf {
        self.root.join("kubeconfig")
    }

    /// The plane's own log.
    pub fn log(&self) -> PathBuf {
        self.root.join("log")
    }

    fn lock_path(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// Makes the directory, for this user only, and takes its lock.
    pub fn lock(&self) -> anyhow::Result<Lock> {
        fs::create_dir_all(&self.root)
            .with_context(|| format!("cannot make the state directory {}", self.root.display()))?;
        fs::set_permissions(&self.root, fs::Permissions::from_mode(0o700))
            .with_context(|| format!("cannot protect {}", self.root.display()))?;
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(self.lock_path())
            .with_context(|| format!("cannot open {}", self.lock_path().display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock { _file: file }),
            Err(TryLockError::WouldBlock) => match self.running()? {
                Some(running) => bail!(
                    "a plane is up already in {}: {} (pid {})",
                    self.root.display(),
                    running.address,
                    running.pid
                ),
                None => bail!("a plane is starting in {}", self.root.display()),
            },
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock {}", self.lock_path().display()))
            }
        }
    }

    /// Opens the plane's log, behind what earlier planes wrote; a long one begins anew.
    pub fn open_log(&self) -> anyhow::Result<File> {
        let path = self.log();
        let open = || -> io::Result<File> {
            let file = OpenOptions::new()
                .create(true)
                .append(true)
                .mode(0o600)
                .open(&path)?;
            if file.metadata()?.len() > LOG_BYTES_MAX {
                file.set_len(0)?;
            }
            Ok(file)
        };
        open().with_context(|| format!("cannot open the log {}", path.display()))
    }

    /// Whether some process holds the lock.
    pub fn is_held(&self) -> anyhow::Result<bool> {
        let file = match File::open(self.lock_path()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("cannot open {}", self.lock_path().display()));
            }
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot test {}", self.lock_path().display()))
            }
        }
    }

    /// Writes what others need to find this plane. The address comes last: who sees it can connect.
    pub fn announce(&self, _lock: &Lock, plane: Announcement<'_>) -> anyhow::Result<()> {
        self.write("kubeconfig", plane.kubeconfig)?;
        self.write("pid", &format!("{}\n", std::process::id()))?;
        match plane.scheduler_conf {
            Some(path) => self.write("scheduler-conf", &format!("{}\n", path.display()))?,
            None => self.remove("scheduler-conf")?,
        }
        match plane.serving {
            [] => self.remove("serving")?,
            words => self.write("serving", &format!("{}\n", serde_json::to_string(words)?))?,
        }
        self.write("address", &format!("{}\n", plane.address))
    }

    /// Takes back the announcement; the objects stay.
    pub fn withdraw(&self, _lock: &Lock) -> anyhow::Result<()> {
        ["address", "pid", "kubeconfig", "scheduler-conf", "serving"]
            .iter()
            .try_for_each(|name| self.remove(name))
    }

    fn remove(&self, name: &str) -> anyhow::Result<()> {
        match fs::remove_file(self.root.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {name}"))
            }
            _ => Ok(()),
        }
    }

    /// The plane that is up here, if one is: its lock is held and its address is written.
    pub fn running(&self) -> anyhow::Result<Option<Running>> {
        if !self.is_held()? {
            return Ok(None);
        }
        let (Some(address), Some(pid)) = (self.read("address")?, self.read("pid")?) else {
            return Ok(None);
        };
        let pid = pid
            .trim()
            .parse()
            .with_context(|| format!("{} holds no process id", self.root.join("pid").display()))?;
        let scheduler_conf = self.read("scheduler-conf")?;
        let serving = match self.read("serving")? {
            Some(words) => serde_json::from_str(&words).with_context(|| {
                format!("{} holds no flags", self.root.join("serving").display())
            })?,
            None => Vec::new(),
        };
        Ok(Some(Running {
            address: address.trim().to_owned(),
            pid,
            scheduler_conf: scheduler_conf.map(|path| PathBuf::from(path.trim_end_matches('\n'))),
            serving,
        }))
    }

    fn read(&self, name: &str) -> anyhow::Result<Option<String>> {
        let path = self.root.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Whole or not at all: a reader never sees half a kubeconfig, and nobody else may read it.
    fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.root.join(name);
        let fresh = self.root.join(format!("{name}.new"));
        let attempt = || -> io::Result<()> {
            if fresh.exists() {
                fs::remove_file(&fresh)?;
            }
            let mut file = OpenOptions::new()
                .create_new(true)
                .write(true)
                .mode(0o600)
                .open(&fresh)?;
            file.write_all(text.as_bytes())?;
            fs::rename(&fresh, &path)
        };
        attempt().with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> StateDir {
        let path = std::env::temp_dir().join(format!("katmai-cli-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        StateDir::at(path)
    }

    #[test]
    fn a_plane_is_found_while_its_lock_is_held_and_not_after() {
        let state = scratch("found");
        assert_eq!(state.running().unwrap(), None);
        let lock = state.lock().unwrap();
        assert_eq!(state.running().unwrap(), None, "no address yet");
        state
            .announce(
                &lock,
                Announcement {
                    address: "https://127.0.0.1:1",
                    kubeconfig: "apiVersion: v1\n",
                    scheduler_conf: Some(Path::new("/etc/volcano.conf")),
                    serving: &["--scheduler-name=a\n\"b\"".to_owned()],
                },
            )
            .unwrap();
        let running = state.running().unwrap().unwrap();
        assert_eq!(running.address, "https://127.0.0.1:1");
        let conf = running.scheduler_conf.unwrap();
        assert_eq!(conf, Path::new("/etc/volcano.conf"));
        assert_eq!(running.serving, ["--scheduler-name=a\n\"b\""]);
        let mode = fs::metadata(state.kubeconfig())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let second = state.lock().unwrap_err().to_string();
        assert!(second.contains("a plane is up already"), "{second}");
        drop(lock);
        assert_eq!(state.running().unwrap(), None, "a dead plane is not up");
        fs::remove_dir_all(state.path()).unwrap();
    }
}
