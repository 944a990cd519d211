//! The node's agent: it registers the Node, follows the pods bound to it and the Services, and
//! gives each pod a worker.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use api::intent::{Action, Intent, ObjectKey, Part, WriteOutcome};
use api::kind::Kind;
use client::kubelet::Duplex;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::cgroup::Groups;
use super::worker::{self, Shared, Update};
use super::{Followed, NodeApi, Settings, StartError, now};
use crate::heartbeat::{self, Whose};
use crate::network::feed::Feed;
use crate::network::{Level, Network};

/// The pause before a registration is tried again.
const REGISTER_AGAIN: Duration = Duration::from_millis(500);

/// A running process node. Dropping it stops the agent and, with the plane, every process.
pub struct ProcessNode {
    pub(super) shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

/// Opens connections to pods of a node, as long as that is up.
#[derive(Clone)]
pub(crate) struct PodDoor(Weak<Shared>);

impl PodDoor {
    pub(crate) async fn dial(&self, to: SocketAddr) -> std::io::Result<Box<dyn Duplex>> {
        match self.0.upgrade() {
            Some(shared) => shared.network.dial(to).await,
            None => Err(std::io::Error::other("the node is down")),
        }
    }
}

impl ProcessNode {
    /// Starts the node: finds out what the host allows, then registers and follows pods in the
    /// background. It needs a tokio runtime around it.
    pub async fn start(
        settings: Settings,
        api: Arc<dyn NodeApi>,
    ) -> Result<Arc<ProcessNode>, StartError> {
        let pods = settings.state_dir.join("pods");
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::create_dir_all(&pods)
            .and_then(|()| std::fs::set_permissions(&pods, private))
            .map_err(|error| StartError::new(format!("make {}", pods.display()), error))?;
        let network = Network::start(&settings).await;
        let shared = Arc::new(Shared {
            network,
            api,
            feed: Mutex::new(Feed::new(api_address(&settings))),
            groups: Groups::find(),
            host_address: host_address().to_string(),
            cpu_milli: settings.cpu_milli.unwrap_or_else(host_cpu_milli),
            memory_bytes: settings.memory_bytes.unwrap_or_else(host_memory_bytes),
            pods: Mutex::new(BTreeMap::new()),
            settings,
        });
        let own = Whose::One(shared.settings.node_name.clone());
        let tasks = vec![
            tokio::spawn(heartbeat::beat(shared.api.clone(), own)),
            tokio::spawn(register(shared.clone())),
            tokio::spawn(follow_pods(shared.clone())),
            tokio::spawn(follow_names(shared.clone())),
        ];
        Ok(Arc::new(ProcessNode { shared, tasks }))
    }

    /// A way to pods' addresses, for others than the node.
    pub(crate) fn pod_door(&self) -> PodDoor {
        PodDoor(Arc::downgrade(&self.shared))
    }

    /// How far pods are kept apart, and why not further.
    pub fn level(&self) -> &Level {
        self.shared.network.level()
    }

    /// Whether limits are enforced: `None` if so, else why not.
    pub fn limits_absent(&self) -> Option<&str> {
        match &self.shared.groups {
            Groups::Absent(why) => Some(why),
            Groups::Split { .. } | Groups::Unified(_) => None,
        }
    }
}

/// Where the API server listens, as a backend of its Service: any address that is no pod's leads
/// out of the pod network and to it.
fn api_address(settings: &Settings) -> Option<(Ipv4Addr, u16)> {
    match settings.api_server? {
        SocketAddr::V4(address) => Some((*address.ip(), address.port())),
        SocketAddr::V6(address) => Some((Ipv4Addr::LOCALHOST, address.port())),
    }
}

impl Drop for ProcessNode {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn follow_pods(shared: Arc<Shared>) {
    let selector = format!("spec.nodeName={}", shared.settings.node_name);
    let mut news = shared.api.follow(Kind::Pod, Some(selector));
    while let Some(news) = news.next().await {
        match news {
            Followed::Listed(all) => {
                let uids: Vec<String> = all.iter().map(|pod| text(pod, "uid").to_owned()).collect();
                each_absent(&shared, &uids);
                for pod in all {
                    seen(&shared, pod);
                }
            }
            Followed::Applied(pod) => seen(&shared, pod),
            Followed::Deleted(pod) => {
                let pods = shared.pods.lock().unwrap_or_else(PoisonError::into_inner);
                let key = (
                    text(&pod, "namespace").to_owned(),
                    text(&pod, "name").to_owned(),
                );
                if let Some(handle) = pods.get(&key).filter(|own| own.uid == text(&pod, "uid")) {
                    // A worker that has ended has nothing left.
                    let _ended = handle.updates.send(Update::Gone);
                }
            }
        }
    }
}

fn each_absent(shared: &Shared, uids: &[String]) {
    let pods = shared.pods.lock().unwrap_or_else(PoisonError::into_inner);
    for handle in pods.values().filter(|handle| !uids.contains(&handle.uid)) {
        // A worker that has ended has nothing left.
        let _ended = handle.updates.send(Update::Gone);
    }
    drop(pods);
    // Directories of pods that went while no plane was up.
    let directory = shared.settings.state_dir.join("pods");
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let stays = entry
            .file_name()
            .to_str()
            .is_some_and(|name| uids.iter().any(|uid| uid == name));
        if !stays && let Err(error) = std::fs::remove_dir_all(entry.path()) {
            tracing::warn!(path = %entry.path().display(), %error, "a pod's directory stays");
        }
    }
}

fn seen(shared: &Arc<Shared>, pod: Value) {
    let key = (
        text(&pod, "namespace").to_owned(),
        text(&pod, "name").to_owned(),
    );
    let uid = text(&pod, "uid").to_owned();
    let mut pods = shared.pods.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = pods.get(&key) {
        if handle.uid == uid {
            // A worker that has ended has nothing left.
            let _ended = handle.updates.send(Update::Seen(Box::new(pod)));
            return;
        }
        let _ended = handle.updates.send(Update::Gone);
    }
    if let Some(handle) = worker::spawn(shared.clone(), pod) {
        pods.insert(key, handle);
    }
}

async fn follow_names(shared: Arc<Shared>) {
    let mut services = shared.api.follow(Kind::Service, None);
    let mut slices = shared.api.follow(Kind::EndpointSlice, None);
    loop {
        let (service, news) = tokio::select! {
            Some(news) = services.next() => (true, news),
            Some(news) = slices.next() => (false, news),
            else => return,
        };
        let mut feed = shared.feed.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = if service {
            feed.services(news)
        } else {
            feed.slices(news)
        };
        shared.network.update(rows);
    }
}

async fn register(shared: Arc<Shared>) {
    while let Err(message) = try_register(&shared).await {
        tracing::warn!(%message, "the node cannot be registered yet");
        tokio::time::sleep(REGISTER_AGAIN).await;
    }
}

async fn try_register(shared: &Shared) -> Result<(), String> {
    let key = ObjectKey::new(Kind::Node, "", &shared.settings.node_name);
    let read = shared.api.read(key.clone());
    if read.await.map_err(|error| error.to_string())?.is_none() {
        let create = Intent {
            target: key.clone(),
            action: Action::Create { body: node(shared) },
        };
        settled(shared.api.write(create).await)?;
    }
    let read = shared.api.read(key.clone()).await;
    let found = read
        .map_err(|error| error.to_string())?
        .ok_or("it vanished at once")?;
    let before = found["status"]["conditions"].as_array();
    let before = before.map(Vec::as_slice).unwrap_or_default();
    let patch = Intent {
        target: key,
        action: Action::Patch {
            uid: text(&found, "uid").into(),
            resource_version: text(&found, "resourceVersion").into(),
            part: Part::Status,
            patch: json!({"status": node_status(shared, before)}),
        },
    };
    settled(shared.api.write(patch).await)
}

fn settled(outcome: WriteOutcome) -> Result<(), String> {
    match outcome {
        WriteOutcome::Done { .. } => Ok(()),
        WriteOutcome::Refused(refusal) => Err(refusal.message.into()),
        WriteOutcome::Unknown { message } => Err(message.into()),
    }
}

fn node(shared: &Shared) -> Value {
    let name = &shared.settings.node_name;
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "beta.kubernetes.io/arch": architecture(),
                "beta.kubernetes.io/os": std::env::consts::OS,
                "kubernetes.io/arch": architecture(),
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": std::env::consts::OS,
            },
        },
        "spec": {},
        "status": node_status(shared, &[]),
    })
}

fn node_status(shared: &Shared, before: &[Value]) -> Value {
    let settings = &shared.settings;
    let cpu = if shared.cpu_milli % 1_000 == 0 {
        (shared.cpu_milli / 1_000).to_string()
    } else {
        format!("{}m", shared.cpu_milli)
    };
    let room = json!({
        "cpu": cpu,
        "memory": format!("{}Ki", shared.memory_bytes / 1_024),
        "pods": settings.pods_max.to_string(),
        "ephemeral-storage": "100Gi",
    });
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    json!({
        "capacity": room,
        "allocatable": room,
        "conditions": nodes::conditions(before, now()),
        "addresses": [
            {"type": "InternalIP", "address": shared.host_address},
            {"type": "Hostname", "address": settings.node_name},
        ],
        "nodeInfo": {
            "architecture": architecture(),
            "bootID": "", "machineID": "", "systemUUID": "",
            "containerRuntimeVersion": format!("katmai://{}", env!("CARGO_PKG_VERSION")),
            "kernelVersion": release.trim(),
            "kubeProxyVersion": "",
            "kubeletVersion": settings.version,
            "operatingSystem": std::env::consts::OS,
            "osImage": "host",
        },
    })
}

/// The architecture as Go names it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The address by which this host goes out; nothing is sent to find it.
fn host_address() -> Ipv4Addr {
    let found = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
        socket.local_addr()
    });
    match found.map(|address| address.ip()) {
        Ok(IpAddr::V4(address)) if !address.is_unspecified() => address,
        _ => Ipv4Addr::LOCALHOST,
    }
}

fn host_cpu_milli() -> i64 {
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    i64::try_from(count).unwrap_or(1).saturating_mul(1_000)
}

fn host_memory_bytes() -> i64 {
    let table = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = table
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = total.and_then(|text| text.trim().strip_suffix(" kB")?.parse::<i64>().ok());
    kilobytes.unwrap_or(1 << 20).saturating_mul(1_024)
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}
