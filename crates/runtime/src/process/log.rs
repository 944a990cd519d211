//! Container logs: a file in the form of the container runtime interface, turned over at a bound,
//! read with Kubernetes' options.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use api::time::Time;
use bytes::Bytes;
use client::kubelet::{ByteStream, LogRequest};
use futures::{StreamExt, stream};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;

/// A line longer than this is kept in parts.
const LINE_BYTES_MAX: usize = 16 << 10;

/// How far a log has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    turns: u64,
    bytes: u64,
    closed: bool,
}

/// A log that is being written or was.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    path: PathBuf,
    progress: watch::Receiver<Progress>,
}

/// The writing end.
struct Writer {
    path: PathBuf,
    file: File,
    bytes_max: u64,
    progress: watch::Sender<Progress>,
    line: Vec<u8>,
}

impl Log {
    /// Writes what comes from a container into a file until it ends.
    pub(crate) fn record(
        path: PathBuf,
        bytes_max: u64,
        mut output: impl AsyncRead + Unpin + Send + 'static,
    ) -> io::Result<(Log, tokio::task::JoinHandle<()>)> {
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        let (sender, progress) = watch::channel(Progress::default());
        let mut writer = Writer {
            path: path.clone(),
            file,
            bytes_max,
            progress: sender,
            line: Vec::new(),
        };
        let task = tokio::spawn(async move {
            let mut buffer = vec![0; 64 << 10];
            loop {
                match output.read(&mut buffer).await {
                    Ok(0) | Err(_) => break,
                    Ok(count) => writer.take(&buffer[..count]),
                }
            }
            writer.close();
        });
        Ok((Log { path, progress }, task))
    }

    /// A log whose writer is gone.
    pub(crate) fn finished(path: PathBuf) -> Log {
        let closed = Progress {
            closed: true,
            ..Progress::default()
        };
        Log {
            path,
            progress: watch::channel(closed).1,
        }
    }

    /// The last part of what was written, for a termination message.
    pub(crate) fn tail(&self, lines: usize, bytes: usize) -> String {
        let wanted = Wanted {
            since: None,
            timestamps: false,
        };
        let mut kept = VecDeque::new();
        let Ok(file) = File::open(&self.path) else {
            return String::new();
        };
        each_line(&mut BufReader::new(file), &wanted, |line| {
            if kept.len() == lines {
                kept.pop_front();
            }
            kept.push_back(line);
        });
        let all: Vec<u8> = kept.into_iter().flatten().collect();
        let from = all.len().saturating_sub(bytes);
        String::from_utf8_lossy(&all[from..]).into_owned()
    }

    /// Streams the log.
    pub(crate) fn read(&self, request: &LogRequest) -> ByteStream {
        let reading = Reading {
            log: self.clone(),
            wanted: Wanted {
                since: request.since_micros,
                timestamps: request.timestamps,
            },
            tail: request.tail_lines,
            follow: request.follow,
            left: request.limit_bytes.unwrap_or(u64::MAX),
            turns: 0,
            file: None,
            begun: false,
        };
        stream::unfold(reading, |mut reading| async move {
            let chunk = reading.next().await?;
            Some((Ok(Bytes::from(chunk)), reading))
        })
        .boxed()
    }
}

impl Writer {
    fn take(&mut self, mut bytes: &[u8]) {
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&bytes[..at]);
            bytes = &bytes[at + 1..];
            self.put("F");
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() >= LINE_BYTES_MAX {
            self.put("P");
        }
    }

    fn put(&mut self, tag: &str) {
        let now = crate::process::now().micro();
        let mut record = format!("{}000Z stdout {tag} ", now.trim_end_matches('Z')).into_bytes();
        record.append(&mut self.line);
        record.push(b'\n');
        if let Err(error) = self.file.write_all(&record) {
            tracing::warn!(path = %self.path.display(), %error, "a container's log line is lost");
            return;
        }
        let length = record.len() as u64;
        let full = self.progress.borrow().bytes + length >= self.bytes_max;
        if full && self.turn_over().is_ok() {
            self.progress.send_modify(|progress| {
                progress.turns += 1;
                progress.bytes = 0;
            });
        } else {
            self.progress
                .send_modify(|progress| progress.bytes += length);
        }
    }

    fn turn_over(&mut self) -> io::Result<()> {
        fs::rename(&self.path, older(&self.path))?;
        self.file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path)?;
        Ok(())
    }

    fn close(mut self) {
        if !self.line.is_empty() {
            self.put("P");
        }
        self.progress.send_modify(|progress| progress.closed = true);
    }
}

fn older(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

#[derive(Clone, Copy)]
struct Wanted {
    since: Option<i64>,
    timestamps: bool,
}

struct Reading {
    log: Log,
    wanted: Wanted,
    tail: Option<u64>,
    follow: bool,
    left: u64,
    turns: u64,
    file: Option<BufReader<File>>,
    begun: bool,
}

impl Reading {
    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if self.left == 0 {
                return None;
            }
            let progress = *self.log.progress.borrow_and_update();
            let mut chunk = if self.begun {
                self.more(progress)
            } else {
                self.begun = true;
                self.turns = progress.turns;
                self.first()
            };
            if !chunk.is_empty() {
                chunk.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
                self.left -= chunk.len() as u64;
                return Some(chunk);
            }
            if progress.closed || !self.follow {
                return None;
            }
            if self.log.progress.changed().await.is_err() {
                self.follow = false;
            }
        }
    }

    fn first(&mut self) -> Vec<u8> {
        let mut kept: VecDeque<Vec<u8>> = VecDeque::new();
        let most = self
            .tail
            .map(|tail| usize::try_from(tail).unwrap_or(usize::MAX));
        let mut keep = |line: Vec<u8>| {
            if most == Some(kept.len()) {
                kept.pop_front();
            }
            if most != Some(0) {
                kept.push_back(line);
            }
        };
        if let Ok(file) = File::open(older(&self.log.path)) {
            each_line(&mut BufReader::new(file), &self.wanted, &mut keep);
        }
        if let Ok(file) = File::open(&self.log.path) {
            let mut reader = BufReader::new(file);
            each_line(&mut reader, &self.wanted, &mut keep);
            self.file = Some(reader);
        }
        kept.into_iter().flatten().collect()
    }

    fn more(&mut self, progress: Progress) -> Vec<u8> {
        let mut chunk = Vec::new();
        if let Some(reader) = &mut self.file {
            each_line(reader, &self.wanted, |line| chunk.extend(line));
        }
        if progress.turns != self.turns || self.file.is_none() {
            self.turns = progress.turns;
            if let Ok(file) = File::open(&self.log.path) {
                let mut reader = BufReader::new(file);
                each_line(&mut reader, &self.wanted, |line| chunk.extend(line));
                self.file = Some(reader);
            }
        }
        chunk
    }
}

/// Reads whole records to the present end of a file; a record in the making stays for later.
fn each_line(reader: &mut BufReader<File>, wanted: &Wanted, mut each: impl FnMut(Vec<u8>)) {
    let mut record = Vec::new();
    loop {
        record.clear();
        match reader.by_ref().take(1 << 20).read_until(b'\n', &mut record) {
            Ok(count) if record.ends_with(b"\n") => {
                debug_assert!(count > 0);
                if let Some(line) = render(&record, wanted) {
                    each(line);
                }
            }
            Ok(count) => {
                let back = i64::try_from(count).unwrap_or(0);
                // The record's beginning is read again once its end is there.
                let _kept = reader.seek(SeekFrom::Current(-back));
                return;
            }
            Err(_) => return,
        }
    }
}

fn render(record: &[u8], wanted: &Wanted) -> Option<Vec<u8>> {
    let mut parts = record.splitn(4, |byte| *byte == b' ');
    let stamp = std::str::from_utf8(parts.next()?).ok()?;
    let (_stream, tag, text) = (parts.next()?, parts.next()?, parts.next()?);
    if let Some(since) = wanted.since
        && Time::parse(stamp).is_some_and(|at| at.micros() < since)
    {
        return None;
    }
    let mut line = Vec::with_capacity(record.len());
    if wanted.timestamps {
        line.extend_from_slice(stamp.as_bytes());
        line.push(b' ');
    }
    let text = if tag == b"P" {
        text.strip_suffix(b"\n").unwrap_or(text)
    } else {
        text
    };
    line.extend_from_slice(text);
    Some(line)
}
