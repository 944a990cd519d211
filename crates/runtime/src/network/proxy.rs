//! ClusterIPs: a listener for each Service port that has backends, inside the plane's namespace.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UdpSocket, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::relay::CONNECT_TIMEOUT;
use super::table::{Protocol, Table};

/// Ports served at one time; further ones are not reachable by ClusterIP.
const PORTS_MAX: usize = 2_000;
/// Talks by datagram that one port carries at one time.
const TALKS_MAX: usize = 512;
/// A talk that is silent so long is over.
const TALK_IDLE: Duration = Duration::from_secs(60);

type Port = (Ipv4Addr, u16, Protocol);
type Backends = Vec<(Ipv4Addr, u16)>;

struct Serving {
    backends: watch::Sender<Backends>,
    task: JoinHandle<()>,
}

/// Keeps listeners as the table wants them, for ever.
pub(crate) async fn serve(mut seen: watch::Receiver<Rc<Table>>, outward: PathBuf) {
    let outward: Rc<Path> = outward.into();
    let mut serving: BTreeMap<Port, Serving> = BTreeMap::new();
    loop {
        let wanted = wanted(&seen.borrow_and_update());
        serving.retain(|port, serving| {
            let stays = wanted.contains_key(port);
            if !stays {
                serving.task.abort();
            }
            stays
        });
        for (port, backends) in wanted {
            match serving.entry(port) {
                Entry::Occupied(entry) => {
                    // A listener that has ended reads no backends.
                    let _ended = entry.get().backends.send(backends);
                }
                Entry::Vacant(entry) => {
                    let (sender, receiver) = watch::channel(backends);
                    let task = tokio::task::spawn_local(listen(port, receiver, outward.clone()));
                    entry.insert(Serving {
                        backends: sender,
                        task,
                    });
                }
            }
        }
        if seen.changed().await.is_err() {
            return;
        }
    }
}

/// Ports with at least one backend: a Service without any refuses connections.
fn wanted(table: &Table) -> BTreeMap<Port, Backends> {
    let mut wanted = BTreeMap::new();
    for row in table.rows.values() {
        let Some(address) = row
            .cluster_ip
            .filter(|address| *address != super::DNS_ADDRESS)
        else {
            continue;
        };
        for port in &row.ports {
            if !port.backends.is_empty() && wanted.len() < PORTS_MAX {
                let key = (address, port.port, port.protocol);
                wanted.insert(key, port.backends.clone());
            }
        }
    }
    wanted
}

async fn listen(port: Port, backends: watch::Receiver<Backends>, outward: Rc<Path>) {
    let (address, number, protocol) = port;
    // A port that cannot be served is one that nobody reaches; the Service's other ports go on.
    let _ended = match protocol {
        Protocol::Tcp => streams((address, number), backends, outward).await,
        Protocol::Udp => datagrams((address, number), backends).await,
    };
}

async fn streams(
    at: (Ipv4Addr, u16),
    backends: watch::Receiver<Backends>,
    outward: Rc<Path>,
) -> io::Result<()> {
    let listener = TcpListener::bind(at).await?;
    let mut turn = 0_usize;
    loop {
        let (stream, _) = listener.accept().await?;
        let all = backends.borrow().clone();
        turn = turn.wrapping_add(1);
        let outward = outward.clone();
        tokio::task::spawn_local(async move {
            // A broken connection ends both ends; there is nobody else to tell.
            let _ended = carry(stream, &all, turn, &outward).await;
        });
    }
}

/// Tries the backends in turn and carries bytes both ways.
async fn carry(
    mut stream: TcpStream,
    all: &Backends,
    turn: usize,
    outward: &Path,
) -> io::Result<()> {
    for step in 0..all.len() {
        let (address, port) = all[(turn + step) % all.len()];
        if is_pod(address) {
            let connected =
                tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect((address, port))).await;
            if let Ok(Ok(mut backend)) = connected {
                return copy_bidirectional(&mut stream, &mut backend)
                    .await
                    .map(drop);
            }
        } else {
            let mut backend = UnixStream::connect(outward).await?;
            return copy_bidirectional(&mut stream, &mut backend)
                .await
                .map(drop);
        }
    }
    // Like a node without a backend: the connection is reset, not quietly closed.
    stream.set_zero_linger()
}

fn is_pod(address: Ipv4Addr) -> bool {
    address.octets()[..2] == [10, 244]
}

async fn datagrams(at: (Ipv4Addr, u16), backends: watch::Receiver<Backends>) -> io::Result<()> {
    let front = Rc::new(UdpSocket::bind(at).await?);
    let mut talks: BTreeMap<SocketAddr, (Rc<UdpSocket>, JoinHandle<()>)> = BTreeMap::new();
    let mut buffer = vec![0; 65_536];
    let mut turn = 0_usize;
    loop {
        let Ok((length, from)) = front.recv_from(&mut buffer).await else {
            // An earlier answer could not be delivered; the socket stays good.
            tokio::task::yield_now().await;
            continue;
        };
        talks.retain(|_, (_, task)| !task.is_finished());
        let back = match talks.get(&from) {
            Some((back, _)) => back.clone(),
            None if talks.len() >= TALKS_MAX => continue,
            None => {
                let all = backends.borrow().clone();
                if all.is_empty() {
                    continue;
                }
                turn = turn.wrapping_add(1);
                let back = Rc::new(UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?);
                back.connect(all[turn % all.len()]).await?;
                let task = tokio::task::spawn_local(answers(front.clone(), back.clone(), from));
                talks.insert(from, (back.clone(), task));
                back
            }
        };
        // A lost datagram is a lost datagram.
        let _lost = back.send(&buffer[..length]).await;
    }
}

async fn answers(front: Rc<UdpSocket>, back: Rc<UdpSocket>, to: SocketAddr) {
    let mut buffer = vec![0; 65_536];
    while let Ok(Ok(length)) = tokio::time::timeout(TALK_IDLE, back.recv(&mut buffer)).await {
        if front.send_to(&buffer[..length], to).await.is_err() {
            return;
        }
    }
}
