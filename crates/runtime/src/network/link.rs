//! Links, addresses and routes of the pod network, by netlink. Linux only.

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;

use futures::TryStreamExt;
use rtnetlink::packet_route::link::{InfoData, InfoKind, InfoVeth};
use rtnetlink::packet_route::route::{RouteScope, RouteType};
use rtnetlink::{
    Handle, LinkBridge, LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder,
};

use super::{GATEWAY, POD_PREFIX};

const BRIDGE: &str = "katmai0";
/// A bridge without an address of its own takes that of one of its links, another one whenever a
/// pod comes or goes, and packets to the former one are lost.
const BRIDGE_MAC: [u8; 6] = [0x02, 0, 10, 244, 0, 1];
/// The kernel's table of local addresses.
const LOCAL_TABLE: u32 = 255;
/// ClusterIPs.
const SERVICES: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 96, 0, 0), 16);

/// A netlink handle for the namespace of the calling thread.
pub(crate) fn handle() -> Result<Handle, String> {
    let (connection, handle, _) =
        rtnetlink::new_connection().map_err(|error| format!("cannot use netlink: {error}"))?;
    tokio::spawn(connection);
    Ok(handle)
}

/// Makes the plane's side: loopback, the bridge, and ClusterIPs as addresses of its own.
pub(crate) async fn make_bridge(handle: &Handle) -> Result<u32, String> {
    let loopback = raise(handle, "lo").await?;
    handle
        .link()
        .add(LinkBridge::new(BRIDGE).address(BRIDGE_MAC.to_vec()).build())
        .execute()
        .await
        .map_err(|error| format!("cannot make a bridge: {error}"))?;
    let bridge = raise(handle, BRIDGE).await?;
    handle
        .address()
        .add(bridge, GATEWAY.into(), POD_PREFIX)
        .execute()
        .await
        .map_err(|error| format!("cannot give the bridge its address: {error}"))?;
    // The whole range is local: a listener can be bound to any ClusterIP without adding it.
    let route = RouteMessageBuilder::<Ipv4Addr>::new()
        .destination_prefix(SERVICES.0, SERVICES.1)
        .output_interface(loopback)
        .table_id(LOCAL_TABLE)
        .kind(RouteType::Local)
        .scope(RouteScope::Host)
        .build();
    handle
        .route()
        .add(route)
        .execute()
        .await
        .map_err(|error| format!("cannot route ClusterIPs: {error}"))?;
    Ok(bridge)
}

/// Brings a link up; its index.
async fn raise(handle: &Handle, name: &str) -> Result<u32, String> {
    let index = index(handle, name).await?;
    handle
        .link()
        .set(LinkUnspec::new_with_index(index).up().build())
        .execute()
        .await
        .map_err(|error| format!("cannot bring {name} up: {error}"))?;
    Ok(index)
}

async fn index(handle: &Handle, name: &str) -> Result<u32, String> {
    let found = handle
        .link()
        .get()
        .match_name(name.to_owned())
        .execute()
        .try_next()
        .await
        .map_err(|error| format!("cannot find {name}: {error}"))?;
    found
        .map(|link| link.header.index)
        .ok_or_else(|| format!("cannot find {name}"))
}

/// Attaches the plane's end of a pod's link to the bridge.
pub(crate) async fn attach(handle: &Handle, name: &str, bridge: u32) -> Result<(), String> {
    let index = index(handle, name).await?;
    handle
        .link()
        .set(
            LinkUnspec::new_with_index(index)
                .controller(bridge)
                .up()
                .build(),
        )
        .execute()
        .await
        .map_err(|error| format!("cannot attach {name} to the bridge: {error}"))
}

/// Sets up a pod's side, from inside its namespace: loopback, `eth0` with the pod's address, whose
/// other end `name` stands in the plane's namespace, and the way out.
pub(crate) async fn furnish(plane: &File, name: &str, address: Ipv4Addr) -> Result<(), String> {
    let handle = handle()?;
    raise(&handle, "lo").await?;
    let other_end = LinkMessageBuilder::<LinkUnspec>::new()
        .name(name)
        .setns_by_fd(plane.as_raw_fd())
        .build();
    let pair = LinkMessageBuilder::<LinkVeth>::new_with_info_kind(InfoKind::Veth)
        .name("eth0")
        .set_info_data(InfoData::Veth(InfoVeth::Peer(other_end)))
        .build();
    handle
        .link()
        .add(pair)
        .execute()
        .await
        .map_err(|error| format!("cannot make the pod's link: {error}"))?;
    let own = raise(&handle, "eth0").await?;
    handle
        .address()
        .add(own, address.into(), POD_PREFIX)
        .execute()
        .await
        .map_err(|error| format!("cannot give the pod its address: {error}"))?;
    let out = RouteMessageBuilder::<Ipv4Addr>::new()
        .gateway(GATEWAY)
        .build();
    handle
        .route()
        .add(out)
        .execute()
        .await
        .map_err(|error| format!("cannot route out of the pod: {error}"))
}
