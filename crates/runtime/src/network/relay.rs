//! Ways through the wall: from the plane into pods, and from pods to the plane's API server.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpStream, UnixListener, UnixStream};

use crate::process::frame;

/// How long a connection may take to be made.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where a connection into the pod network leads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Way {
    /// To an address of the network.
    Address(SocketAddr),
    /// To a port of a pod's own loopback, where it may listen for itself only.
    Inside {
        /// The pod's uid.
        uid: String,
        /// The port.
        port: u16,
    },
}

/// Pods' network namespaces by uid.
pub(crate) type Namespaces = Rc<RefCell<BTreeMap<String, File>>>;

/// The plane's side of a connection into the pod network.
pub(crate) async fn dial(relay: &Path, way: Way) -> io::Result<Box<dyn client::kubelet::Duplex>> {
    let mut stream = UnixStream::connect(relay).await?;
    stream.write_all(&frame::encode(&way)?).await?;
    match frame::read::<Result<(), String>>(&mut stream).await? {
        Some(Ok(())) => Ok(Box::new(stream)),
        Some(Err(why)) => Err(io::Error::new(io::ErrorKind::ConnectionRefused, why)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// The holder's side.
pub(crate) async fn inward(listener: UnixListener, pods: Namespaces) {
    while let Ok((stream, _)) = listener.accept().await {
        let pods = pods.clone();
        tokio::task::spawn_local(async move {
            // A broken connection ends both ends; there is nobody else to tell.
            let _ended = carry_inward(stream, &pods).await;
        });
    }
}

async fn carry_inward(mut stream: UnixStream, pods: &Namespaces) -> io::Result<()> {
    let Some(way) = frame::read::<Way>(&mut stream).await? else {
        return Ok(());
    };
    let connected = match way {
        Way::Address(to) => {
            let connecting = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(to)).await;
            connecting.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        }
        Way::Inside { uid, port } => {
            let namespace = match pods.borrow().get(&uid) {
                Some(namespace) => namespace.try_clone(),
                None => Err(io::ErrorKind::NotFound.into()),
            };
            connect_inside(namespace?, port).await
        }
    };
    match connected {
        Ok(mut pod) => {
            let good: Result<(), String> = Ok(());
            stream.write_all(&frame::encode(&good)?).await?;
            copy_bidirectional(&mut stream, &mut pod).await.map(drop)
        }
        Err(error) => {
            let bad: Result<(), String> = Err(said(&error));
            stream.write_all(&frame::encode(&bad)?).await
        }
    }
}

/// Connects to a pod's loopback, first by its old address, then by its new one.
async fn connect_inside(namespace: File, port: u16) -> io::Result<TcpStream> {
    let (answer, answered) = tokio::sync::oneshot::channel();
    // A thread of its own: it leaves the plane's namespace for ever.
    std::thread::Builder::new().spawn(move || {
        let connect = |address: IpAddr| {
            std::net::TcpStream::connect_timeout(
                &SocketAddr::from((address, port)),
                CONNECT_TIMEOUT,
            )
        };
        let connected = setns(namespace, CloneFlags::CLONE_NEWNET)
            .map_err(io::Error::from)
            .and_then(|()| {
                connect(Ipv4Addr::LOCALHOST.into())
                    .or_else(|refused| connect(Ipv6Addr::LOCALHOST.into()).map_err(|_| refused))
            });
        // An asker that is gone needs no answer.
        let _gone = answer.send(connected);
    })?;
    let stream = answered
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))??;
    stream.set_nonblocking(true)?;
    TcpStream::from_std(stream)
}

/// A failed connection as the tools of Kubernetes word it.
fn said(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        io::ErrorKind::TimedOut => "i/o timeout".to_owned(),
        _ => error.to_string(),
    }
}

/// Lets pods reach the API server, and nothing else of the host.
pub(crate) async fn outward(listener: UnixListener, api_server: Option<SocketAddr>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let Some(to) = api_server else {
            continue;
        };
        tokio::spawn(async move {
            if let Ok(mut server) = TcpStream::connect(to).await {
                // A broken connection ends both ends; there is nobody else to tell.
                let _ended = copy_bidirectional(&mut stream, &mut server).await;
            }
        });
    }
}
