//! The process that holds the pod network: it lives in the plane's namespace, makes one for each
//! pod, and runs DNS, proxy and relay there. It ends when its standard input does.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::rc::Rc;

use nix::sched::{CloneFlags, unshare};
use rtnetlink::Handle;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, UdpSocket, UnixListener, UnixStream};
use tokio::sync::watch;

use super::table::Table;
use super::{DNS_ADDRESS, FromHolder, ToHolder, dns, link, proxy, relay};
use crate::process::frame;

/// The child's whole life; the exit code.
pub(crate) fn child() -> i32 {
    let control = io::stdin();
    let setup = match frame::read_blocking(&control) {
        Ok(Some(ToHolder::Setup {
            user_namespace,
            relay,
            outward,
        })) => (user_namespace, relay, outward),
        _ => return 1,
    };
    let (user_namespace, relay, outward) = setup;
    let lived = enter(user_namespace).and_then(|plane| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("cannot start: {error}"))?;
        let tasks = tokio::task::LocalSet::new();
        tasks.block_on(&runtime, serve(plane, &relay, &outward))
    });
    match lived {
        Ok(()) => 0,
        Err(why) => {
            // When the plane is gone there is nobody left to tell.
            let _told = frame::write_blocking(&control, &FromHolder::Failed { why });
            1
        }
    }
}

/// Makes the plane's namespaces, while this process has one thread.
fn enter(user_namespace: bool) -> Result<File, String> {
    if user_namespace {
        let (user, group) = (nix::unistd::getuid(), nix::unistd::getgid());
        unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| {
            format!("user namespaces are not allowed to this user on this host: {error}")
        })?;
        let map = |file: &str, text: String| {
            std::fs::write(file, text).map_err(|error| {
                format!("user namespaces are restricted on this host ({file}: {error})")
            })
        };
        map("/proc/self/setgroups", "deny".to_owned())?;
        map("/proc/self/uid_map", format!("0 {user} 1"))?;
        map("/proc/self/gid_map", format!("0 {group} 1"))?;
    }
    // Mounts are tried too: a host that allows networks but no mounts gives no pod level.
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)
        .map_err(|error| format!("namespaces are not allowed on this host: {error}"))?;
    File::open("/proc/self/ns/net").map_err(|error| format!("cannot open the namespace: {error}"))
}

async fn serve(plane: File, relay_path: &Path, outward: &Path) -> Result<(), String> {
    let handle = link::handle()?;
    let bridge = link::make_bridge(&handle).await?;
    let (table, seen) = watch::channel(Rc::new(Table::default()));
    let at = (DNS_ADDRESS, 53);
    let listening = |error: io::Error| format!("cannot listen for names: {error}");
    let datagrams = UdpSocket::bind(at).await.map_err(listening)?;
    let streams = TcpListener::bind(at).await.map_err(listening)?;
    let inward = UnixListener::bind(relay_path)
        .map_err(|error| format!("cannot listen at {}: {error}", relay_path.display()))?;
    tokio::task::spawn_local(dns::serve_datagrams(datagrams, seen.clone()));
    tokio::task::spawn_local(dns::serve_streams(streams, seen.clone()));
    let pods = relay::Namespaces::default();
    tokio::task::spawn_local(relay::inward(inward, pods.clone()));
    tokio::task::spawn_local(proxy::serve(seen, outward.to_owned()));

    let mut control = control()?;
    let mut holder = Holder {
        plane: Rc::new(plane),
        handle,
        bridge,
        pods,
        next_link: 0,
    };
    say(&mut control, &FromHolder::Ready).await?;
    while let Ok(Some(order)) = frame::read::<ToHolder>(&mut control).await {
        match order {
            ToHolder::Setup { .. } => {}
            ToHolder::AddPod { uid, address } => {
                let answer = match holder.add(&uid, address).await {
                    Ok(descriptor) => FromHolder::PodReady { uid, descriptor },
                    Err(why) => FromHolder::PodFailed { uid, why },
                };
                say(&mut control, &answer).await?;
            }
            ToHolder::RemovePod { uid } => {
                // The last descriptor closes the namespace, and the link goes with it.
                holder.pods.borrow_mut().remove(&uid);
            }
            ToHolder::Rows(rows) => {
                table.send_modify(|table| Rc::make_mut(table).apply(rows));
            }
        }
    }
    Ok(())
}

/// Standard input as a socket.
fn control() -> Result<UnixStream, String> {
    use std::os::fd::AsFd;
    io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map(std::os::unix::net::UnixStream::from)
        .and_then(|stream| {
            stream.set_nonblocking(true)?;
            UnixStream::from_std(stream)
        })
        .map_err(|error| format!("cannot talk to the plane: {error}"))
}

async fn say(control: &mut UnixStream, message: &FromHolder) -> Result<(), String> {
    let lost = |error: io::Error| format!("the plane is gone: {error}");
    let bytes = frame::encode(message).map_err(lost)?;
    control.write_all(&bytes).await.map_err(lost)
}

struct Holder {
    plane: Rc<File>,
    handle: Handle,
    bridge: u32,
    pods: relay::Namespaces,
    next_link: u32,
}

impl Holder {
    async fn add(&mut self, uid: &str, address: Ipv4Addr) -> Result<i32, String> {
        if let Some(standing) = self.pods.borrow().get(uid) {
            return Ok(standing.as_raw_fd());
        }
        self.next_link += 1;
        let name = format!("k{}", self.next_link);
        let plane = self
            .plane
            .try_clone()
            .map_err(|error| format!("cannot hold the namespace: {error}"))?;
        let (answer, answered) = tokio::sync::oneshot::channel();
        let link_name = name.clone();
        // A thread of its own: it leaves the plane's namespace for ever.
        std::thread::spawn(move || {
            // An asker that is gone needs no answer.
            let _gone = answer.send(make_namespace(&plane, &link_name, address));
        });
        let namespace = answered
            .await
            .map_err(|_| "the pod's namespace was not made".to_owned())??;
        link::attach(&self.handle, &name, self.bridge).await?;
        let descriptor = namespace.as_raw_fd();
        self.pods.borrow_mut().insert(uid.to_owned(), namespace);
        Ok(descriptor)
    }
}

fn make_namespace(plane: &File, link_name: &str, address: Ipv4Addr) -> Result<File, String> {
    unshare(CloneFlags::CLONE_NEWNET)
        .map_err(|error| format!("cannot make a network namespace: {error}"))?;
    let namespace = File::open("/proc/thread-self/ns/net")
        .map_err(|error| format!("cannot open the namespace: {error}"))?;
    // As container runtimes do: ports below 1024 need no privilege in a pod. An old kernel has
    // no such setting.
    let _old_kernel = std::fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?
        .block_on(link::furnish(plane, link_name, address))?;
    Ok(namespace)
}
