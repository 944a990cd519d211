//! Ways through the wall: from the plane into pods, and from pods to the plane's API server.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpStream, UnixListener, UnixStream};

use crate::process::frame;

/// How long a connection may take to be made.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The plane's side of a connection into the pod network.
pub(crate) async fn dial(
    relay: &Path,
    to: SocketAddr,
) -> io::Result<Box<dyn client::kubelet::Duplex>> {
    let mut stream = UnixStream::connect(relay).await?;
    stream.write_all(&frame::encode(&to)?).await?;
    match stream.read_u8().await? {
        0 => Ok(Box::new(stream)),
        _ => Err(io::Error::new(
            io::ErrorKind::ConnectionRefused,
            format!("cannot connect to {to}"),
        )),
    }
}

/// The holder's side.
pub(crate) async fn inward(listener: UnixListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::task::spawn_local(async move {
            // A broken connection ends both ends; there is nobody else to tell.
            let _ended = carry_inward(stream).await;
        });
    }
}

async fn carry_inward(mut stream: UnixStream) -> io::Result<()> {
    let Some(to) = frame::read::<SocketAddr>(&mut stream).await? else {
        return Ok(());
    };
    match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(to)).await {
        Ok(Ok(mut pod)) => {
            stream.write_u8(0).await?;
            copy_bidirectional(&mut stream, &mut pod).await.map(drop)
        }
        _ => stream.write_u8(1).await,
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
