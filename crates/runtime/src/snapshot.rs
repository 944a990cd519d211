//! What a running scheduler knows, as a list of objects: the form in which `katmai explain` and `katmai
//! whatif` read a cluster (`--dump`), written to a file when somebody asks.
//!
//! The objects are handed out between two cycles, as pointers; whoever asked writes them, so that no decision
//! waits for a disk. A file is whole or not there, and its owner's alone: labels and annotations tell a lot.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use api::kind::KINDS;
use api::time::Time;
use api::volcano::PodGroup;
use mirror::{Mirror, Object};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::engine_loop::Came;

/// A way to ask a running [`EngineLoop`](crate::engine_loop::EngineLoop) what it knows.
#[derive(Clone, Debug)]
pub struct Snapshots(pub(crate) mpsc::Sender<Came>);

impl Snapshots {
    /// What is known now; `None` where the loop has ended.
    pub async fn take(&self) -> Option<Snapshot> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Came::Snapshot(answer)).await.ok()?;
        answered.await.ok()
    }
}

/// All objects that a scheduler held at one time.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    objects: Vec<Object>,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct SnapshotError {
    /// What was to be written.
    pub path: PathBuf,
    /// Why not.
    #[source]
    pub cause: std::io::Error,
}

impl Snapshot {
    pub(crate) fn of(mirror: &Mirror) -> Snapshot {
        let objects = KINDS.iter().flat_map(|row| mirror.objects(row.kind));
        Snapshot {
            objects: objects.cloned().collect(),
        }
    }

    /// How many objects of each kind there are, and in which phases PodGroups are: `3 nodes, 12 pods, …`.
    pub fn summary(&self) -> String {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        let mut phases: BTreeMap<&str, usize> = BTreeMap::new();
        for object in &self.objects {
            *kinds.entry(object.kind().row().plural).or_default() += 1;
            if let Some(group) = object.typed::<PodGroup>() {
                let phase = match group.status.phase.text() {
                    "" => "without a phase",
                    some => some,
                };
                *phases.entry(phase).or_default() += 1;
            }
        }
        let listed = |counts: &BTreeMap<&str, usize>| {
            let counts = counts.iter().map(|(what, count)| format!("{count} {what}"));
            Vec::from_iter(counts).join(", ")
        };
        match (kinds.is_empty(), phases.is_empty()) {
            (true, _) => "nothing".to_owned(),
            (false, true) => listed(&kinds),
            (false, false) => format!("{}; podgroups: {}", listed(&kinds), listed(&phases)),
        }
    }

    /// Writes `snapshot-<seconds since 1970>.json`, as upstream calls it, into a directory.
    ///
    /// # Errors
    /// It cannot be written; then there is no such file, nor a part of one.
    pub fn write(&self, directory: &Path, at: Time) -> Result<PathBuf, SnapshotError> {
        let path = directory.join(format!("snapshot-{}.json", at.micros() / 1_000_000));
        // The directory may be everybody's: a name that is taken, by whatever, is refused.
        let begun = directory.join(format!(
            ".snapshot-{}-{}.part",
            std::process::id(),
            at.micros()
        ));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&begun)
            .and_then(|file| {
                let done = self.put(file).and_then(|()| std::fs::rename(&begun, &path));
                if done.is_err() {
                    // What could not be written is worth more than what could not be removed.
                    let _ = std::fs::remove_file(&begun);
                }
                done
            });
        match written {
            Ok(()) => Ok(path),
            Err(cause) => Err(SnapshotError { path, cause }),
        }
    }

    fn put(&self, file: File) -> std::io::Result<()> {
        let mut to = BufWriter::new(file);
        to.write_all(b"{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[")?;
        for (index, object) in self.objects.iter().enumerate() {
            let separator: &[u8] = if index == 0 { b"\n" } else { b",\n" };
            to.write_all(separator)?;
            serde_json::to_writer(&mut to, &told(object)?)?;
        }
        to.write_all(b"\n]}\n")?;
        to.into_inner()?.sync_all()
    }
}

/// An object with what its list says of it: which kind it is.
fn told(object: &Object) -> serde_json::Result<Value> {
    let row = object.kind().row();
    let mut value = serde_json::to_value(object)?;
    value["apiVersion"] = object.kind().api_version().into();
    value["kind"] = row.name.into();
    Ok(value)
}

#[cfg(test)]
mod tests {
    use api::kind::Kind;
    use serde_json::json;

    use super::*;

    fn known() -> Snapshot {
        let mut mirror = Mirror::new();
        for (kind, object) in [
            (Kind::Node, json!({"metadata": {"name": "n1", "uid": "u1"}})),
            (
                Kind::PodGroup,
                json!({"metadata": {"namespace": "a", "name": "g", "uid": "u2"}, "spec": {"minMember": 2},
                    "status": {"phase": "Pending"}}),
            ),
        ] {
            let taken = mirror.apply(kind, &object.to_string());
            assert!(taken.expect("it can be read").is_some());
        }
        Snapshot::of(&mirror)
    }

    fn directory(name: &str) -> PathBuf {
        let name = format!("katmai-snapshot-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).expect("a directory can be made");
        directory
    }

    #[test]
    fn a_snapshot_is_a_list_of_whole_objects_in_a_file_of_its_owner() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = directory("whole");
        let path = known().write(&directory, Time(7_900_000)).expect("written");
        assert_eq!(path, directory.join("snapshot-7.json"));
        let mode = std::fs::metadata(&path).expect("it is there").permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let list: Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(list["kind"], "List");
        let said = |at: usize| {
            let item = &list["items"][at];
            (
                item["apiVersion"].clone(),
                item["kind"].clone(),
                item["metadata"]["name"].clone(),
            )
        };
        let mut all = [said(0), said(1)];
        all.sort_by_key(|(_, kind, _)| kind.to_string());
        assert_eq!(all[0], (json!("v1"), json!("Node"), json!("n1")));
        let group = json!("scheduling.volcano.sh/v1beta1");
        assert_eq!(all[1], (group, json!("PodGroup"), json!("g")));
        let left = std::fs::read_dir(&directory).expect("it is there").count();
        assert_eq!(left, 1, "nothing lies beside it");
        std::fs::remove_dir_all(directory).expect("it can go");
    }

    #[test]
    fn what_cannot_be_written_is_told_and_leaves_nothing() {
        let directory = directory("none");
        // Where the file is to be there is a directory with something in it.
        let taken = directory.join("snapshot-7.json/x");
        std::fs::create_dir_all(taken).expect("a directory can be made");
        let error = known().write(&directory, Time(7_000_000));
        let error = error.expect_err("its name is taken").to_string();
        assert!(error.ends_with("snapshot-7.json"), "{error}");
        let left = std::fs::read_dir(&directory).expect("it is there").count();
        assert_eq!(left, 1, "only what was there");
        let missing = known().write(&directory.join("no"), Time(0));
        assert!(missing.is_err(), "there is no such directory");
        std::fs::remove_dir_all(directory).expect("it can go");
    }

    #[test]
    fn a_summary_counts_kinds_and_phases() {
        assert_eq!(
            known().summary(),
            "1 nodes, 1 podgroups; podgroups: 1 Pending"
        );
        assert_eq!(Snapshot::default().summary(), "nothing");
    }
}
