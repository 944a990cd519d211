//! What the plane and its children say to each other: length-prefixed JSON on a socket that is the
//! child's standard input. The end of that socket means that the plane is gone.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bound of one message: environment and small files included.
pub(crate) const FRAME_BYTES_MAX: usize = 16 << 20;

/// First message to a container's child: which namespaces it enters or makes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Enter {
    /// User namespace to enter.
    pub user: Option<PathBuf>,
    /// Network namespace to enter.
    pub network: Option<PathBuf>,
    /// `cgroup.procs` files to be written before anything else.
    pub cgroups: Vec<PathBuf>,
    /// Whether mount, process, IPC and host name namespaces are made.
    pub isolate: bool,
    /// Host name inside.
    pub hostname: String,
}

/// Second message: the container itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ContainerPlan {
    /// How the root file system is made; `None` leaves the host's as it is.
    pub root: Option<Root>,
    /// Mounts, shortest target first.
    pub mounts: Vec<Mount>,
    /// Files put into the root file system: path, text.
    pub files: Vec<(PathBuf, String)>,
    /// The command line.
    pub command: Vec<String>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    /// Working directory; made if missing.
    pub working_dir: Option<String>,
    /// User id, where the manifest names one.
    pub user: Option<u32>,
    /// Group id, where the manifest names one.
    pub group: Option<u32>,
}

/// Where a root file system comes from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Root {
    /// An empty directory on the host; a private tmpfs is put over it.
    pub staging: PathBuf,
    /// The directory that is shown, `/` for the host's.
    pub lower: PathBuf,
}

/// One bind mount.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Mount {
    /// Absolute path on the host.
    pub source: PathBuf,
    /// Absolute path in the container.
    pub target: PathBuf,
    /// Whether it is read-only.
    pub read_only: bool,
}

/// The message to a child that runs one command inside a running container.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ExecPlan {
    /// Process of the container whose namespaces are entered, by host id; `None` enters none.
    pub enter: Option<u32>,
    /// Whether a user namespace is among them.
    pub enter_user: bool,
    /// The command line.
    pub command: Vec<String>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    /// Working directory.
    pub working_dir: Option<String>,
    /// User id.
    pub user: Option<u32>,
    /// Group id.
    pub group: Option<u32>,
    /// The terminal to be opened, for a session with one.
    pub terminal: Option<PathBuf>,
}

/// What the plane tells a container's init.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ToInit {
    /// Sends a signal to the command; 9 ends everything in the container.
    Signal(i32),
}

/// What a container's child tells the plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FromChild {
    /// The command runs.
    Started {
        /// The container's init, by its process id on the host.
        init: u32,
    },
    /// The command could not be started.
    Failed {
        /// What kubelet would say.
        message: String,
    },
    /// The command ended.
    Exited {
        /// Exit code; 128 + signal where a signal ended it.
        code: i32,
        /// The signal that ended it, 0 for none.
        signal: i32,
    },
}

/// A message as bytes.
pub(crate) fn encode<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len())
        .ok()
        .filter(|length| *length as usize <= FRAME_BYTES_MAX)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "message too long"))?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

fn body_length(head: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_be_bytes(head) as usize;
    if length > FRAME_BYTES_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "message too long",
        ));
    }
    Ok(length)
}

/// Reads one message; `None` at the end of the stream.
pub(crate) async fn read<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<T>> {
    let mut head = [0; 4];
    match stream.read_exact(&mut head).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut body = vec![0; body_length(head)?];
    stream.read_exact(&mut body).await?;
    Ok(Some(serde_json::from_slice(&body)?))
}

/// Reads one message without buffering beyond it, so that what follows stays for whoever inherits
/// the stream; `None` at the end of the stream.
pub(crate) fn read_blocking<T: DeserializeOwned>(stream: &impl AsFd) -> io::Result<Option<T>> {
    let mut head = [0; 4];
    if !fill(stream, &mut head)? {
        return Ok(None);
    }
    let mut body = vec![0; body_length(head)?];
    if !fill(stream, &mut body)? {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&body)?))
}

fn fill(stream: &impl AsFd, buffer: &mut [u8]) -> io::Result<bool> {
    let mut filled = 0;
    while filled < buffer.len() {
        match nix::unistd::read(stream.as_fd(), &mut buffer[filled..]) {
            Ok(0) => return Ok(false),
            Ok(count) => filled += count,
            Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// Writes one message whole.
pub(crate) fn write_blocking<T: Serialize>(stream: &impl AsFd, message: &T) -> io::Result<()> {
    let bytes = encode(message)?;
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        match nix::unistd::write(stream.as_fd(), rest) {
            Ok(count) => rest = &rest[count..],
            Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
