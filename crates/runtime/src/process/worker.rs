//! One worker a pod: it brings the pod's containers to where the manifest wants them, one step
//! after another, and reports what they do. It owns everything of the pod, and gives it back.

mod ending;
mod names;
mod probing;
mod refresh;
mod start;
mod status;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::core::TextMap;
use api::events::{Involved, Note, Tone};
use api::kind::Kind;
use api::time::Time;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::cgroup::{Group, Groups};
use super::frame::ExecPlan;
use super::launch::{Exit, Running};
use super::log::Log;
use super::phase::{Ended, State};
use super::pod::Pod;
use super::probe::Purpose;
use super::restart::Policy;
use super::sources::volumes::Shown;
use super::{NodeApi, Settings, now};
use crate::network::feed::{Feed, LocalPod};
use crate::network::{Network, Place};

/// What all workers of a node share.
pub(crate) struct Shared {
    pub settings: Settings,
    pub api: Arc<dyn NodeApi>,
    pub network: Network,
    pub feed: Mutex<Feed>,
    pub groups: Groups,
    pub host_address: String,
    pub cpu_milli: i64,
    pub memory_bytes: i64,
    /// Pods by namespace and name.
    pub pods: Mutex<BTreeMap<(String, String), PodHandle>>,
}

/// The node's hold on a worker.
pub(crate) struct PodHandle {
    pub uid: String,
    pub updates: mpsc::UnboundedSender<Update>,
    pub door: Arc<Mutex<PodDoor>>,
}

/// What the node answers about a pod without asking its worker.
#[derive(Debug, Default)]
pub(crate) struct PodDoor {
    /// Where it is in the network, from when it is ready for connections.
    pub place: Option<Place>,
    /// By container: how a command is run beside it, while it runs.
    pub exec: BTreeMap<String, ExecPlan>,
    /// By container: the present or last log, and the one before.
    pub logs: BTreeMap<String, (Log, Option<Log>)>,
}

/// What a worker hears from the node.
pub(crate) enum Update {
    /// The pod as it is now.
    Seen(Box<Value>),
    /// The pod is gone from the API: everything ends at once.
    Gone,
}

enum Event {
    Ended(usize, u32, Exit),
    Probed(usize, u32, Purpose, bool, String),
    Hooked(usize, u32, Hook, Result<(), String>),
}

/// The two hooks of a container's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hook {
    PostStart,
    PreStop,
}

/// One container and what becomes of it.
struct Unit {
    name: String,
    init: bool,
    sidecar: bool,
    policy: Policy,
    state: State,
    last: Option<Ended>,
    restarts: u32,
    ends_in_a_row: u32,
    /// When it is to be started; `None` when nothing is to happen.
    due: Option<Time>,
    has_run: bool,
    ready: bool,
    started: bool,
    container_id: String,
    /// Counts starts, so that late news of an earlier one is known as such.
    instance: u32,
    running: Option<Running>,
    group: Option<Group>,
    /// When it is ended by force.
    kill_at: Option<Time>,
    /// Whether it was asked to end.
    asked_to_end: bool,
    probes: Vec<JoinHandle<()>>,
}

struct Worker {
    shared: Arc<Shared>,
    pod: Pod,
    seen: Value,
    units: Vec<Unit>,
    place: Option<Place>,
    volumes: BTreeMap<String, PathBuf>,
    shown: Shown,
    /// When the files of volumes are compared with their sources again.
    refresh_at: Option<Time>,
    /// How often they were.
    refreshes: u32,
    /// A failed preparation is tried again then, after so many failures.
    retry: (Option<Time>, u32),
    directory: PathBuf,
    door: Arc<Mutex<PodDoor>>,
    events: mpsc::UnboundedSender<Event>,
    terminating: bool,
    gone: bool,
    overdue: bool,
    start_time: Time,
    told: Option<Value>,
    /// A status that could not be written is tried again then.
    tell_again: Option<Time>,
}

/// Starts a worker; it ends when the pod is gone.
pub(crate) fn spawn(shared: Arc<Shared>, object: Value) -> Option<PodHandle> {
    let pod = match Pod::read(&object) {
        Ok(pod) => pod,
        Err(error) => {
            tracing::error!(%error, "a pod cannot be read");
            return None;
        }
    };
    let (updates, heard) = mpsc::unbounded_channel();
    let (events, news) = mpsc::unbounded_channel();
    let door = Arc::new(Mutex::new(PodDoor::default()));
    let handle = PodHandle {
        uid: pod.metadata.uid.to_string(),
        updates,
        door: door.clone(),
    };
    let mut worker = Worker::new(shared, pod, object, door, events);
    worker.announce();
    tokio::spawn(worker.live(heard, news));
    Some(handle)
}

impl Worker {
    fn new(
        shared: Arc<Shared>,
        pod: Pod,
        seen: Value,
        door: Arc<Mutex<PodDoor>>,
        events: mpsc::UnboundedSender<Event>,
    ) -> Worker {
        let now = now();
        let units = status::units(&pod, &seen, now);
        let start_time = seen["status"]["startTime"].as_str();
        Worker {
            directory: shared
                .settings
                .state_dir
                .join("pods")
                .join(&*pod.metadata.uid),
            start_time: start_time.and_then(Time::parse).unwrap_or(now),
            shared,
            units,
            pod,
            seen,
            place: None,
            volumes: BTreeMap::new(),
            shown: Shown::default(),
            refresh_at: None,
            refreshes: 0,
            retry: (None, 0),
            door,
            events,
            terminating: false,
            gone: false,
            overdue: false,
            told: None,
            tell_again: None,
        }
    }

    async fn live(
        mut self,
        mut updates: mpsc::UnboundedReceiver<Update>,
        mut events: mpsc::UnboundedReceiver<Event>,
    ) {
        self.find_logs();
        loop {
            self.notice();
            let wake = self.step().await;
            let refresh = self.refresh().await;
            self.tell().await;
            if self.is_finished() && self.finish().await {
                return;
            }
            let wake = [wake, refresh, self.tell_again].into_iter().flatten().min();
            let pause = wake.map_or(Duration::from_secs(3_600), |at| {
                let micros = at.micros() - now().micros();
                Duration::from_micros(u64::try_from(micros).unwrap_or(0))
            });
            tokio::select! {
                update = updates.recv() => match update {
                    Some(Update::Seen(object)) => self.see(*object),
                    Some(Update::Gone) | None => self.gone = true,
                },
                Some(event) = events.recv() => self.hear(event),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn see(&mut self, object: Value) {
        match Pod::read(&object) {
            Ok(pod) if pod.metadata.uid == self.pod.metadata.uid => {
                let (old, new) = (&self.pod.metadata, &pod.metadata);
                if old.labels != new.labels || old.annotations != new.annotations {
                    // The downward API shows them.
                    self.refresh_at = self.refresh_at.map(|_| now());
                }
                self.pod = pod;
                self.seen = object;
            }
            Ok(_) => self.gone = true,
            Err(error) => tracing::error!(%error, "a pod cannot be read"),
        }
    }

    /// What the latest sight of the pod and the clock ask for.
    fn notice(&mut self) {
        let deleted = self.pod.metadata.deletion_timestamp.is_some();
        if self.gone {
            self.terminating = true;
            self.end_all(0);
        } else if deleted && !self.terminating {
            self.terminating = true;
            self.end_all(self.pod.grace_seconds());
        } else if deleted && self.pod.grace_seconds() == 0 {
            self.end_all(0);
        }
        if let Some(limit) = self.pod.spec.active_deadline_seconds
            && !self.overdue
            && !self.is_over()
            && now() >= self.start_time.plus_ms(limit.saturating_mul(1_000))
        {
            self.overdue = true;
            self.end_all(self.pod.spec.termination_grace_period_seconds.unwrap_or(30));
        }
    }

    /// Tells names and ports about this pod's address, which it gets here.
    fn announce(&mut self) {
        if self.is_over() || self.pod.spec.host_network {
            return;
        }
        let Some(address) = self.shared.network.reserve(&self.pod.metadata.uid) else {
            return;
        };
        let ports = self
            .pod
            .spec
            .containers
            .iter()
            .flat_map(|container| &container.ports);
        let text = |map: &TextMap| {
            let pairs = map
                .iter()
                .map(|(key, value)| (key.to_string(), value.to_string()));
            pairs.collect()
        };
        let local = LocalPod {
            namespace: self.pod.metadata.namespace.to_string(),
            name: self.pod.metadata.name.to_string(),
            labels: text(&self.pod.metadata.labels),
            hostname: self.pod.hostname(),
            subdomain: self.pod.spec.subdomain.clone(),
            address,
            ready: !self.terminating && self.is_ready(),
            ports: ports
                .map(|port| (port.name.clone(), port.container_port))
                .collect(),
        };
        let mut feed = self
            .shared
            .feed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let changes = feed.pod(&self.pod.metadata.uid, Some(local));
        self.shared.network.update(changes);
    }

    fn door(&self) -> std::sync::MutexGuard<'_, PodDoor> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an Event about the pod, in its own time.
    fn event(&self, tone: Tone, reason: &str, message: &str) {
        let meta = &self.pod.metadata;
        let involved = Involved {
            kind: Kind::Pod,
            namespace: &meta.namespace,
            name: &meta.name,
            uid: &meta.uid,
            resource_version: &meta.resource_version,
        };
        let note = Note {
            tone,
            reason,
            message,
            component: "kubelet",
        };
        let write = self
            .shared
            .api
            .write(api::events::intent(&involved, &note, now()));
        // An event is a note for people; a lost one changes nothing.
        tokio::spawn(async move { drop(write.await) });
    }

    fn is_over(&self) -> bool {
        matches!(
            self.seen["status"]["phase"].as_str(),
            Some("Succeeded" | "Failed")
        ) || matches!(self.phase(), "Succeeded" | "Failed")
    }
}
