//! Directories behind volumes and snapshots: filled, copied and removed as their objects say.
//!
//! What is wanted is read from a volume or a snapshot's content by [`deed`]; what came of it is
//! written there, and the rules below the line (`controllers::claim`, `controllers::snapshot`) go
//! on from it. A copy shares its blocks with what it is a copy of where the file system can.
//!
//! What it refuses to know: claims, classes, who may have what.
//!
//! Invariants: nothing outside of the two directories is read or written, whatever an object names
//! and wherever a link in a volume leads; a directory under its own name is whole; what a crash
//! left half done is done again; a copy that takes too long is an error in the status.

mod copy;
mod deed;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use api::call;
use api::core::PersistentVolume;
use api::disk::{DIRECTORY, FILL_FAILED, FILLED};
use api::intent::{Action, Intent, ObjectKey, Part, WriteOutcome};
use api::kind::Kind;
use api::snapshot::VolumeSnapshotContent;
use client::Cluster;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use crate::clock::now;
use crate::follow::{Followed, Wish, follow};
use copy::Brake;
use deed::{Deed, Place, Shelf};

/// Copies that are made at one time.
const ABREAST: usize = 2;
/// Changes and outcomes that may wait for the loop.
const WAITING_MAX: usize = 1_024;
/// How long one copy may take.
const PATIENCE: Duration = Duration::from_secs(3_600);
/// How long to wait after a failure; it doubles with each further one.
const AGAIN: Duration = Duration::from_secs(2);
const AGAIN_DOUBLINGS_MAX: u32 = 6;
/// How often a report is written anew when somebody else was faster.
const REPORTS_MAX: usize = 20;

/// Where directories lie.
#[derive(Clone, Debug)]
pub struct Directories {
    /// One for each volume, under the volume's name.
    pub volumes: PathBuf,
    /// One for each snapshot, under its handle.
    pub snapshots: PathBuf,
}

impl Directories {
    fn path(&self, place: &Place) -> PathBuf {
        match place.shelf {
            Shelf::Snapshots => self.snapshots.join(&*place.name),
            Shelf::Volumes => self.volumes.join(&*place.name),
        }
    }
}

/// Tends the directories of a cluster until the task that runs this is dropped.
pub async fn run(cluster: Cluster, directories: Directories) {
    for directory in [&directories.volumes, &directories.snapshots] {
        if let Err(error) = copy::sweep(directory) {
            tracing::warn!("cannot tidy {}: {error}", directory.display());
        }
    }
    let stop = Stop(Arc::new(AtomicBool::new(false)));
    let (done, mut ended) = mpsc::channel(WAITING_MAX);
    let (tell_content, mut contents) = mpsc::channel(WAITING_MAX);
    let (tell_volume, mut volumes) = mpsc::channel(WAITING_MAX);
    let wish = |kind| Wish {
        kind,
        field_selector: None,
    };
    let of_contents = wish(Kind::VolumeSnapshotContent);
    let of_volumes = wish(Kind::PersistentVolume);
    let _followers = [
        AbortOnDrop(tokio::spawn(follow::<VolumeSnapshotContent>(
            cluster.clone(),
            of_contents,
            tell_content,
        ))),
        AbortOnDrop(tokio::spawn(follow::<PersistentVolume>(
            cluster.clone(),
            of_volumes,
            tell_volume,
        ))),
    ];
    let mut desk = Desk {
        hand: Hand {
            cluster,
            directories,
            stop: Arc::clone(&stop.0),
            room: Arc::new(Semaphore::new(ABREAST)),
            done,
        },
        contents: BTreeMap::new(),
        volumes: BTreeMap::new(),
        busy: BTreeSet::new(),
        failures: BTreeMap::new(),
    };
    loop {
        tokio::select! {
            said = contents.recv() => match said {
                Some(said) => desk.hear_content(said),
                None => return,
            },
            said = volumes.recv() => match said {
                Some(said) => desk.hear_volume(said),
                None => return,
            },
            Some(done) = ended.recv() => desk.take(done),
        }
    }
}

/// What is wanted of an object, by its kind and name.
type Key = (Kind, Box<str>);

/// A deed that has ended, well or not.
struct Done {
    key: Key,
    is_well: bool,
}

/// What is known and under way.
struct Desk {
    hand: Hand,
    contents: BTreeMap<Box<str>, VolumeSnapshotContent>,
    volumes: BTreeMap<Box<str>, PersistentVolume>,
    busy: BTreeSet<Key>,
    failures: BTreeMap<Key, u32>,
}

/// Keeps what is told of one kind; the names of those to look at.
fn heard<T>(
    all: &mut BTreeMap<Box<str>, T>,
    said: Followed<T>,
    name: fn(&T) -> &str,
) -> Vec<Box<str>> {
    match said {
        Followed::Listed(list) => {
            let named = list.into_iter().map(|one| (name(&one).into(), one));
            *all = named.collect();
            all.keys().cloned().collect()
        }
        Followed::Applied(one) => {
            let changed: Box<str> = name(&one).into();
            all.insert(changed.clone(), one);
            vec![changed]
        }
        Followed::Deleted(one) => {
            all.remove(name(&one));
            Vec::new()
        }
    }
}

impl Desk {
    fn hear_content(&mut self, said: Followed<VolumeSnapshotContent>) {
        for name in heard(&mut self.contents, said, |one| &one.metadata.name) {
            self.begin((Kind::VolumeSnapshotContent, name));
        }
    }

    fn hear_volume(&mut self, said: Followed<PersistentVolume>) {
        for name in heard(&mut self.volumes, said, |one| &one.metadata.name) {
            self.begin((Kind::PersistentVolume, name));
        }
    }

    /// Begins what an object wants, unless something is under way for it.
    fn begin(&mut self, key: Key) {
        if self.busy.contains(&key) {
            return;
        }
        let root = &self.hand.directories.volumes;
        let (found, uid) = match key.0 {
            Kind::VolumeSnapshotContent => match self.contents.get(&key.1) {
                Some(content) => (deed::of_content(content), &content.metadata.uid),
                None => return,
            },
            _ => match self.volumes.get(&key.1) {
                Some(volume) => (deed::of_volume(volume, root), &volume.metadata.uid),
                None => return,
            },
        };
        let Some(deed) = found else {
            self.failures.remove(&key);
            return;
        };
        let task = Task {
            key: key.clone(),
            uid: uid.clone(),
            size: self.size_of(&deed),
            failures: self.failures.get(&key).copied().unwrap_or(0),
            deed,
        };
        self.busy.insert(key);
        tokio::spawn(self.hand.clone().perform(task));
    }

    /// How large the volume is that is copied.
    fn size_of(&self, deed: &Deed) -> Option<i64> {
        let Deed::Copy { from, .. } = deed else {
            return None;
        };
        let volume = self.volumes.get(&from.name)?;
        Some(volume.spec.capacity.get("storage")?.value())
    }

    fn take(&mut self, done: Done) {
        self.busy.remove(&done.key);
        match done.is_well {
            true => drop(self.failures.remove(&done.key)),
            false => *self.failures.entry(done.key.clone()).or_default() += 1,
        }
        self.begin(done.key);
    }
}

/// A deed for an object.
struct Task {
    key: Key,
    uid: Box<str>,
    deed: Deed,
    size: Option<i64>,
    failures: u32,
}

/// What performs deeds.
#[derive(Clone)]
struct Hand {
    cluster: Cluster,
    directories: Directories,
    stop: Arc<AtomicBool>,
    room: Arc<Semaphore>,
    done: mpsc::Sender<Done>,
}

impl Hand {
    async fn perform(self, task: Task) {
        let outcome = match self.room.acquire().await {
            Ok(_permit) => self.act(&task).await,
            Err(closed) => Err(closed.to_string()),
        };
        let is_well = outcome.is_ok();
        if let Err(message) = outcome {
            tracing::warn!("{:?} {}: {message}", task.key.0, task.key.1);
            let told = self.report(&task, failed(task.key.0, &message)).await;
            if let Err(error) = told {
                tracing::warn!("{:?} {}: {error}", task.key.0, task.key.1);
            }
            let wait = AGAIN * 2u32.pow(task.failures.min(AGAIN_DOUBLINGS_MAX));
            tokio::time::sleep(wait).await;
        } else {
            // What was written has to be heard before the object is looked at again; until then
            // the same deed would be begun, find itself done, and write the same.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let key = task.key;
        // A loop that has ended wants no more answers.
        let _ended = self.done.send(Done { key, is_well }).await;
    }

    async fn act(&self, task: &Task) -> Result<(), String> {
        match &task.deed {
            Deed::Complain(message) => Err(message.clone()),
            Deed::Copy { from, to } => self.copy(task, from, to).await,
            Deed::LetGo => self.report(task, Report::LetGo).await,
            Deed::Look(place) => {
                let path = self.directories.path(place);
                if !path.is_dir() {
                    return Err(format!("there is no snapshot {}", place.name));
                }
                let status = ready(&place.name, task.size, Some(now().micros()));
                self.report(task, Report::Status(status)).await
            }
            Deed::Remove(place) => {
                let path = self.directories.path(place);
                blocking(move || copy::remove(&path)).await?;
                let report = match task.key.0 {
                    Kind::VolumeSnapshotContent => Report::Status(json!({
                        "snapshotHandle": null,
                        "readyToUse": false,
                        "creationTime": null,
                        "restoreSize": null,
                    })),
                    _ => Report::LetGo,
                };
                self.report(task, report).await
            }
        }
    }

    /// Says that it began, copies, and says that it is done.
    async fn copy(&self, task: &Task, from: &Place, to: &Place) -> Result<(), String> {
        let is_snapshot = task.key.0 == Kind::VolumeSnapshotContent;
        let began = now().micros();
        if is_snapshot {
            let status = json!({
                "snapshotHandle": to.name,
                "creationTime": began.saturating_mul(1_000),
                "readyToUse": false,
            });
            self.report(task, Report::Status(status)).await?;
        }
        let (source, target) = (self.directories.path(from), self.directories.path(to));
        let brake = Brake::new(Arc::clone(&self.stop), Instant::now() + PATIENCE);
        let is_needed = from.shelf == Shelf::Snapshots;
        let bytes = blocking(move || {
            if is_needed && !source.is_dir() {
                return Err(std::io::Error::other("the snapshot is not there"));
            }
            copy::tree(&source, &target, &brake)
        })
        .await?;
        if is_snapshot {
            let size = task.size.or(i64::try_from(bytes).ok());
            return self
                .report(task, Report::Status(ready(&to.name, size, None)))
                .await;
        }
        let done = json!({ FILLED: "yes", FILL_FAILED: null });
        self.report(task, Report::Annotations(done)).await
    }

    /// Writes a report into the object as it is now, as long as it is the same one.
    async fn report(&self, task: &Task, report: Report) -> Result<(), String> {
        let (kind, name) = (task.key.0, &task.key.1);
        for _ in 0..REPORTS_MAX {
            let answer = self.cluster.send(&call::get(kind, "", name)).await;
            let answer = answer.map_err(|error| error.to_string())?;
            if answer.code == 404 {
                return Ok(());
            }
            let answer = answer.accepted().map_err(|error| error.to_string())?;
            let object: Value =
                serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or("");
            let uid: Box<str> = text("uid").into();
            if uid != task.uid {
                return Ok(());
            }
            let (part, patch) = report.patch(&object);
            let intent = Intent {
                target: ObjectKey::new(kind, "", name),
                action: Action::Patch {
                    uid,
                    resource_version: text("resourceVersion").into(),
                    part,
                    patch,
                },
            };
            match self.cluster.write(&intent).await {
                WriteOutcome::Done { .. } => return Ok(()),
                WriteOutcome::Refused(why) if [404, 409].contains(&why.code) => {}
                WriteOutcome::Refused(why) => return Err(why.message.to_string()),
                WriteOutcome::Unknown { message } => return Err(message.to_string()),
            }
        }
        Err("others write to it all the time".to_owned())
    }
}

/// What is to be written about a deed.
enum Report {
    Annotations(Value),
    LetGo,
    Status(Value),
}

impl Report {
    fn patch(&self, object: &Value) -> (Part, Value) {
        match self {
            Report::Annotations(marks) => {
                (Part::Whole, json!({ "metadata": { "annotations": marks } }))
            }
            Report::LetGo => {
                let all = object["metadata"]["finalizers"].as_array();
                let kept: Vec<&Value> = all
                    .into_iter()
                    .flatten()
                    .filter(|it| **it != DIRECTORY)
                    .collect();
                let kept = (!kept.is_empty()).then_some(kept);
                (Part::Whole, json!({ "metadata": { "finalizers": kept } }))
            }
            Report::Status(status) => (Part::Status, json!({ "status": status })),
        }
    }
}

fn ready(handle: &str, size: Option<i64>, taken_micros: Option<i64>) -> Value {
    let mut status = json!({ "snapshotHandle": handle, "readyToUse": true, "error": null });
    if let Some(bytes) = size {
        status["restoreSize"] = json!(bytes);
    }
    if let Some(micros) = taken_micros {
        status["creationTime"] = json!(micros.saturating_mul(1_000));
    }
    status
}

fn failed(kind: Kind, message: &str) -> Report {
    match kind {
        Kind::VolumeSnapshotContent => Report::Status(json!({
            "readyToUse": false,
            "error": {
                "message": format!("Failed to check and update snapshot content: failed to take snapshot of the volume: {message}"),
                "time": now(),
            },
        })),
        _ => Report::Annotations(json!({ FILL_FAILED: message })),
    }
}

/// Work on files, off the threads of the shells.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, String> {
    let outcome = tokio::task::spawn_blocking(work).await;
    let outcome = outcome.map_err(|error| error.to_string())?;
    outcome.map_err(|error| error.to_string())
}

/// Ends copies that are under way.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
