//! The pod network: an address per pod, names for Services, and a way in from the host.
//!
//! At the *pod* level a child process holds one network namespace for the plane (and a user
//! namespace, unless the plane runs as root). In it stand a bridge, a namespace and a 10.244.x.y
//! address per pod, the cluster DNS at 10.96.0.10:53 ([`dns`]), a proxy for ClusterIPs ([`proxy`])
//! and a relay for probes and port-forward. At the *host* level, where that is impossible or not
//! wanted, pods share the host's network and there is none of it.
//!
//! What it refuses to know: pods' processes and the API. It is told rows ([`table::ServiceRow`]) by
//! [`feed`], which derives them from Services, EndpointSlices and the pods of this node.
//!
//! Invariants: nothing listens on the host; the child ends with the plane; a headless Service that
//! publishes addresses before readiness answers with a pod's address before its commands start.
//!
//! The door: [`Network::start`].

mod addresses;
mod dns;
pub(crate) mod feed;
mod holder;
mod link;
mod proxy;
mod relay;
pub(crate) mod table;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};

use crate::process::{Settings, frame};
use addresses::Addresses;
use table::RowChange;

pub(crate) use holder::child;

/// Where the cluster DNS answers.
pub const DNS_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 10);
/// The domain of Services.
pub const CLUSTER_DOMAIN: &str = "cluster.local";
/// The bridge's own address: where pods send what is not for a pod.
pub(crate) const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 1);
/// Prefix length of the pods' network.
pub(crate) const POD_PREFIX: u8 = 16;

/// Longest path of a socket that every system takes.
const SOCKET_PATH_BYTES_MAX: usize = 90;

/// How far pods are kept apart, and why not further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Which one.
    pub kind: LevelKind,
    /// Why this one.
    pub why: String,
}

/// The network levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelKind {
    /// Pods share the host's network and see the host's files.
    Host,
    /// An address, names and mounts per pod.
    Pod,
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = match self.kind {
            LevelKind::Host => "host",
            LevelKind::Pod => "pod",
        };
        write!(f, "pod network: {word} level ({})", self.why)
    }
}

/// What the plane tells the holder of the network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ToHolder {
    /// The first message.
    Setup {
        /// Whether a user namespace is made around the network.
        user_namespace: bool,
        /// Where the holder listens for the plane's connections into pods.
        relay: PathBuf,
        /// Where the plane listens for connections from pods to the API server.
        outward: PathBuf,
    },
    /// A pod's namespace is wanted.
    AddPod { uid: String, address: Ipv4Addr },
    /// A pod's namespace is not needed any more.
    RemovePod { uid: String },
    /// Services have changed.
    Rows(Vec<RowChange>),
}

/// What the holder answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum FromHolder {
    /// The network stands.
    Ready,
    /// It cannot be made.
    Failed { why: String },
    /// A pod's namespace stands and is held open under this descriptor number.
    PodReady { uid: String, descriptor: i32 },
    /// A pod's namespace cannot be made.
    PodFailed { uid: String, why: String },
}

/// A pod's place in the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its address.
    pub address: Ipv4Addr,
    /// Its namespace; `None` where pods share the host's.
    pub namespace: Option<PathBuf>,
}

/// The plane's side of the pod network.
pub(crate) struct Network {
    level: Level,
    held: Option<Held>,
}

struct Held {
    process: u32,
    user_namespace: bool,
    relay: PathBuf,
    _sockets: Sockets,
    orders: mpsc::UnboundedSender<ToHolder>,
    waiting: Waiting,
    addresses: Mutex<Addresses>,
}

type Waiting = Arc<Mutex<Vec<(String, oneshot::Sender<Result<i32, String>>)>>>;

impl Network {
    /// Makes the best network that is wanted and possible.
    pub(crate) async fn start(settings: &Settings) -> Network {
        if settings.network == crate::process::NetworkWish::Host {
            return Network::host("asked for".to_owned());
        }
        match Held::start(settings).await {
            Ok(held) => Network {
                level: Level {
                    kind: LevelKind::Pod,
                    why: if held.user_namespace {
                        "in a user namespace".to_owned()
                    } else {
                        "as root".to_owned()
                    },
                },
                held: Some(held),
            },
            Err(why) => Network::host(why),
        }
    }

    fn host(why: String) -> Network {
        Network {
            level: Level {
                kind: LevelKind::Host,
                why,
            },
            held: None,
        }
    }

    /// The level reached.
    pub(crate) fn level(&self) -> &Level {
        &self.level
    }

    /// The user namespace that containers enter, if there is one.
    pub(crate) fn user_namespace(&self) -> Option<PathBuf> {
        let held = self.held.as_ref().filter(|held| held.user_namespace)?;
        Some(PathBuf::from(format!("/proc/{}/ns/user", held.process)))
    }

    /// Whether containers get mount and process namespaces of their own.
    pub(crate) fn isolates(&self) -> bool {
        self.held.is_some()
    }

    /// An address for a pod, given back by [`Network::remove`].
    pub(crate) fn reserve(&self, uid: &str) -> Option<Ipv4Addr> {
        let Some(held) = &self.held else {
            return Some(Ipv4Addr::LOCALHOST);
        };
        let mut addresses = held
            .addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        addresses.take(uid)
    }

    /// A namespace for a pod whose address is reserved.
    pub(crate) async fn add(&self, uid: &str) -> Result<Place, String> {
        let address = self
            .reserve(uid)
            .ok_or("no pod address is free in 10.244.0.0/16")?;
        let Some(held) = &self.held else {
            return Ok(Place {
                address,
                namespace: None,
            });
        };
        let (answer, answered) = oneshot::channel();
        held.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((uid.to_owned(), answer));
        let order = ToHolder::AddPod {
            uid: uid.to_owned(),
            address,
        };
        let gone = || "the pod network has ended".to_owned();
        held.orders.send(order).map_err(|_| gone())?;
        let descriptor = answered.await.map_err(|_| gone())??;
        Ok(Place {
            address,
            namespace: Some(PathBuf::from(format!(
                "/proc/{}/fd/{descriptor}",
                held.process
            ))),
        })
    }

    /// Gives a pod's namespace and address back.
    pub(crate) fn remove(&self, uid: &str) {
        let Some(held) = &self.held else {
            return;
        };
        held.addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .give_back(uid);
        let order = ToHolder::RemovePod {
            uid: uid.to_owned(),
        };
        // A holder that is gone has no namespaces left.
        let _gone = held.orders.send(order);
    }

    /// Tells the DNS and the proxy what has changed.
    pub(crate) fn update(&self, rows: Vec<RowChange>) {
        if let Some(held) = &self.held
            && !rows.is_empty()
        {
            // A holder that is gone answers nothing any more.
            let _gone = held.orders.send(ToHolder::Rows(rows));
        }
    }

    /// Opens a connection to an address of a pod.
    pub(crate) async fn dial(
        &self,
        to: SocketAddr,
    ) -> io::Result<Box<dyn client::kubelet::Duplex>> {
        match &self.held {
            Some(held) if !to.ip().is_loopback() => {
                relay::dial(&held.relay, relay::Way::Address(to)).await
            }
            _ => Ok(Box::new(tokio::net::TcpStream::connect(to).await?)),
        }
    }

    /// Opens a connection to a port of a pod's own loopback, as port-forward does: what listens
    /// for the pod only is reached, too. `place` is the pod's.
    pub(crate) async fn dial_inside(
        &self,
        uid: &str,
        place: &Place,
        port: u16,
    ) -> io::Result<Box<dyn client::kubelet::Duplex>> {
        match (&self.held, &place.namespace) {
            (Some(held), Some(_)) => {
                let uid = uid.to_owned();
                relay::dial(&held.relay, relay::Way::Inside { uid, port }).await
            }
            _ => self.dial((Ipv4Addr::LOCALHOST, port).into()).await,
        }
    }
}

impl Held {
    async fn start(settings: &Settings) -> Result<Held, String> {
        if !cfg!(target_os = "linux") {
            return Err("namespaces exist on Linux only".to_owned());
        }
        let sockets = Sockets::place(&settings.state_dir)
            .map_err(|error| format!("no place for sockets: {error}"))?;
        let (relay, outward) = (sockets.join("in.sock"), sockets.join("out.sock"));
        for path in [&relay, &outward] {
            // Left over from a plane that was killed.
            let _absent = std::fs::remove_file(path);
        }
        let listener = UnixListener::bind(&outward)
            .map_err(|error| format!("cannot listen at {}: {error}", outward.display()))?;
        tokio::spawn(relay::outward(listener, settings.api_server));

        let user_namespace = !nix::unistd::geteuid().is_root();
        let setup = ToHolder::Setup {
            user_namespace,
            relay: relay.clone(),
            outward,
        };
        let (mut stream, process) = spawn(settings).await?;
        let failed = |error: io::Error| format!("the network's process failed: {error}");
        stream
            .write_all(&frame::encode(&setup).map_err(failed)?)
            .await
            .map_err(failed)?;
        match frame::read(&mut stream).await.map_err(failed)? {
            Some(FromHolder::Ready) => {}
            Some(FromHolder::Failed { why }) => return Err(why),
            _ => return Err("the network's process ended at once".to_owned()),
        }
        let (orders, waiting_orders) = mpsc::unbounded_channel();
        let waiting = Waiting::default();
        tokio::spawn(converse(stream, waiting_orders, waiting.clone()));
        Ok(Held {
            process,
            user_namespace,
            relay,
            _sockets: sockets,
            orders,
            waiting,
            addresses: Mutex::default(),
        })
    }
}

/// A directory of our own whose path is short enough for a socket. One that is not among what the plane keeps goes
/// with the network.
struct Sockets {
    directory: PathBuf,
    is_apart: bool,
}

impl Sockets {
    fn place(state_dir: &Path) -> io::Result<Sockets> {
        let near = state_dir.join("network");
        let is_apart = near.as_os_str().len() > SOCKET_PATH_BYTES_MAX;
        let directory = if is_apart {
            std::env::temp_dir().join(format!("katmai-{}", std::process::id()))
        } else {
            near
        };
        std::fs::create_dir_all(&directory)?;
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&directory, private)?;
        Ok(Sockets {
            directory,
            is_apart,
        })
    }

    fn join(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        if self.is_apart {
            // Nobody is left who could be told.
            let _left = std::fs::remove_dir_all(&self.directory);
        }
    }
}

async fn spawn(settings: &Settings) -> Result<(UnixStream, u32), String> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()
        .map_err(|error| format!("cannot make a socket: {error}"))?;
    let mut child = tokio::process::Command::new(&settings.executable)
        .arg(crate::process::NETWORK_VERB)
        // What is in the plane's environment is not for pods to read.
        .env_clear()
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot start {}: {error}", settings.executable.display()))?;
    let process = child.id().ok_or("the network's process ended at once")?;
    // Its socket tells everything; this only collects its exit status.
    tokio::spawn(async move { child.wait().await });
    ours.set_nonblocking(true)
        .and_then(|()| UnixStream::from_std(ours))
        .map(|stream| (stream, process))
        .map_err(|error| format!("cannot use a socket: {error}"))
}

/// Carries orders to the holder and its answers back.
async fn converse(
    stream: UnixStream,
    mut orders: mpsc::UnboundedReceiver<ToHolder>,
    waiting: Waiting,
) {
    let (mut reading, mut writing) = stream.into_split();
    let writer = async move {
        while let Some(order) = orders.recv().await {
            let Ok(bytes) = frame::encode(&order) else {
                tracing::error!("an order to the pod network is too long");
                continue;
            };
            if writing.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    let reader = async {
        while let Ok(Some(answer)) = frame::read(&mut reading).await {
            let (uid, answer) = match answer {
                FromHolder::PodReady { uid, descriptor } => (uid, Ok(descriptor)),
                FromHolder::PodFailed { uid, why } => (uid, Err(why)),
                FromHolder::Ready | FromHolder::Failed { .. } => continue,
            };
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = waiting.iter().position(|(wanted, _)| *wanted == uid) {
                let (_, asker) = waiting.swap_remove(at);
                // An asker that is gone needs no answer.
                let _gone = asker.send(answer);
            }
        }
    };
    tokio::select! {
        () = writer => {}
        () = reader => tracing::error!("the pod network's process has ended"),
    }
    waiting
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_apart_from_a_plane_go_with_its_network() {
        let long = std::env::temp_dir().join("x".repeat(SOCKET_PATH_BYTES_MAX));
        let sockets = Sockets::place(&long).unwrap();
        let directory = sockets.directory.clone();
        std::fs::write(sockets.join("in.sock"), "").unwrap();
        assert!(directory.is_dir() && !long.exists());
        drop(sockets);
        assert!(!directory.exists());
    }
}
