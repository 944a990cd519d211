//! The journal on disk: fjall holds one row an object; every append is one atomic batch, written
//! through to the operating system or to the disk before it is done.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, SyncSender};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use store::journal::{Change, ChangeRef, FORMAT, Record, State};

use crate::journal::{Journal, JournalError};

/// Row of the newest revision and of the format.
const REVISION: &[u8] = b"revision";
const FORMAT_ROW: &[u8] = b"format";

/// Holds a data directory for this process alone.
#[derive(Debug)]
pub struct DataLock {
    _file: File,
}

impl DataLock {
    /// Takes the lock of a data directory, which is made if it is missing.
    pub fn take(directory: &Path) -> Result<DataLock, JournalError> {
        let action = || format!("lock the data directory {}", directory.display());
        std::fs::create_dir_all(directory).map_err(|cause| JournalError::new(action(), cause))?;
        let path = directory.join("lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|cause| JournalError::new(action(), cause))?;
        file.try_lock().map_err(|cause| match cause {
            std::fs::TryLockError::WouldBlock => {
                JournalError::new(action(), "another katmai uses it")
            }
            std::fs::TryLockError::Error(cause) => JournalError::new(action(), cause),
        })?;
        Ok(DataLock { _file: file })
    }
}

/// What acknowledged writes outlive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The process: records are with the operating system.
    #[default]
    Process,
    /// A loss of power: records are on the disk.
    Power,
}

/// The journal in a directory.
pub struct DiskJournal {
    path: PathBuf,
    durability: Durability,
    open: Option<Open>,
}

/// Rows are read once, one after the other, when a plane starts: there is nothing to keep at hand.
const CACHE_BYTES: u64 = 4 << 20;
/// Rows in memory before they go to their own file; they are in the log, and in the store, anyway.
const TABLE_BYTES_MAX: u64 = 16 << 20;

/// Rows that are handed on together when a plane starts, and how many such chunks may wait.
const CHUNK_ROWS: usize = 1_024;
const CHUNKS_AHEAD: usize = 4;

struct Open {
    database: Database,
    objects: Keyspace,
    meta: Keyspace,
}

impl DiskJournal {
    /// Opens the journal in `directory/journal`, or begins it.
    pub fn open(directory: &Path, durability: Durability) -> Result<DiskJournal, JournalError> {
        let path = directory.join("journal");
        let open = Some(open(&path)?);
        let journal = DiskJournal {
            path,
            durability,
            open,
        };
        journal.check_format()?;
        Ok(journal)
    }

    fn check_format(&self) -> Result<(), JournalError> {
        let open = self.opened()?;
        let failed = |cause: fjall::Error| JournalError::new("read the journal's format", cause);
        match open.meta.get(FORMAT_ROW).map_err(failed)? {
            None => open.meta.insert(FORMAT_ROW, [FORMAT]).map_err(failed),
            Some(found) if found.first().is_some_and(|version| *version <= FORMAT) => Ok(()),
            Some(found) => Err(JournalError::new(
                format!("read the journal {}", self.path.display()),
                format!("it was written by a newer katmai (format {found:?})"),
            )),
        }
    }

    fn opened(&self) -> Result<&Open, JournalError> {
        self.open
            .as_ref()
            .ok_or_else(|| JournalError::new("write the journal", "it is closed after a failure"))
    }
}

fn open(path: &Path) -> Result<Open, JournalError> {
    let failed = |cause: fjall::Error| {
        JournalError::new(format!("open the journal {}", path.display()), cause)
    };
    let database = Database::builder(path)
        .worker_threads(1)
        .cache_size(CACHE_BYTES)
        .open()
        .map_err(failed)?;
    let objects = database
        .keyspace("objects", || {
            KeyspaceCreateOptions::default().max_memtable_size(TABLE_BYTES_MAX)
        })
        .map_err(failed)?;
    let meta = database
        .keyspace("meta", KeyspaceCreateOptions::default)
        .map_err(failed)?;
    Ok(Open {
        database,
        objects,
        meta,
    })
}

impl Journal for DiskJournal {
    fn load(
        &mut self,
        each: &mut dyn FnMut(u64, Option<Change>) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        let open = self.opened()?;
        let failed = |cause: fjall::Error| JournalError::new("read the journal", cause);
        let damaged = |what: &str| JournalError::new("read the journal", what.to_owned());
        let revision = match open.meta.get(REVISION).map_err(failed)? {
            None => 0,
            Some(bytes) => fixed(&bytes).ok_or_else(|| damaged("its revision is cut short"))?,
        };
        each(revision, None)?;
        let (chunks, read) = mpsc::sync_channel(CHUNKS_AHEAD);
        std::thread::scope(|scope| {
            scope.spawn(move || read_objects(&open.objects, &chunks));
            for chunk in read {
                for change in chunk? {
                    each(revision, Some(change))?;
                }
            }
            Ok(())
        })
    }

    fn append(&mut self, records: &[Vec<u8>]) -> Result<(), JournalError> {
        let open = self.opened()?;
        let mode = match self.durability {
            Durability::Process => PersistMode::Buffer,
            Durability::Power => PersistMode::SyncData,
        };
        let mut batch = open.database.batch().durability(Some(mode));
        let mut newest = 0;
        for record in records {
            let mut each = |change: ChangeRef<'_>| {
                let key = join(change.resource, change.key);
                match change.state {
                    None => batch.remove(&open.objects, key),
                    Some((revision, bytes)) => {
                        let mut value = Vec::with_capacity(bytes.len() + 8);
                        value.extend_from_slice(&revision.to_le_bytes());
                        value.extend_from_slice(bytes);
                        batch.insert(&open.objects, key, value);
                    }
                }
            };
            let revision = Record::each(record, &mut each)
                .map_err(|cause| JournalError::new("write the journal", cause))?;
            newest = revision.max(newest);
        }
        batch.insert(&open.meta, REVISION, newest.to_le_bytes());
        batch
            .commit()
            .map_err(|cause| JournalError::new("write the journal", cause))
    }

    fn recover(&mut self) -> Result<(), JournalError> {
        // The old handle must be gone before its directory can be opened again.
        self.open = None;
        self.open = Some(open(&self.path)?);
        Ok(())
    }
}

/// Reads all rows, chunk by chunk, beside whoever makes objects of them: each is half of the time
/// that a start takes.
fn read_objects(objects: &Keyspace, chunks: &SyncSender<Result<Vec<Change>, JournalError>>) {
    let mut rows = objects.iter();
    loop {
        let chunk: Result<Vec<Change>, JournalError> = rows
            .by_ref()
            .take(CHUNK_ROWS)
            .map(|row| {
                let (key, value) = row
                    .into_inner()
                    .map_err(|cause| JournalError::new("read the journal", cause))?;
                change(&key, &value)
                    .map_err(|what| JournalError::new("read the journal", what.to_owned()))
            })
            .collect();
        let is_last = chunk
            .as_ref()
            .map_or(true, |chunk| chunk.len() < CHUNK_ROWS);
        // Who no longer listens has failed, and says so itself.
        if chunks.send(chunk).is_err() || is_last {
            return;
        }
    }
}

/// An object of a row; the error says what is wrong with it.
fn change(key: &[u8], value: &[u8]) -> Result<Change, &'static str> {
    let (resource, name) = split(key).ok_or("a row's name is damaged")?;
    let (head, bytes) = value.split_at_checked(8).ok_or("a row is cut short")?;
    Ok(Change {
        resource: resource.into(),
        key: name.into(),
        state: Some(State {
            revision: fixed(head).unwrap_or(0),
            bytes: bytes.to_vec(),
        }),
    })
}

fn join(resource: &str, key: &str) -> Vec<u8> {
    let mut row = Vec::with_capacity(resource.len() + key.len() + 1);
    row.extend_from_slice(resource.as_bytes());
    row.push(0);
    row.extend_from_slice(key.as_bytes());
    row
}

fn split(row: &[u8]) -> Option<(&str, &str)> {
    std::str::from_utf8(row).ok()?.split_once('\0')
}

fn fixed(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_le_bytes)
}
