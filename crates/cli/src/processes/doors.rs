//! Where a process can be asked about itself.

use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};

use anyhow::{Context, bail};

use super::typed::Typed;
use crate::start::{Doors, TlsFiles};

/// What can be asked of a process, by its flags.
pub(super) fn doors(typed: &Typed<'_>) -> anyhow::Result<Doors> {
    let doors = Doors {
        metrics: open(typed, "enable-metrics", "listen-address")?,
        health: health(typed)?,
        tls: certificates(typed),
    };
    if doors.metrics.is_some() && doors.metrics == doors.health {
        bail!("--listen-address and --healthz-address are the same; each needs a port of its own");
    }
    Ok(doors)
}

/// Where health is told.
pub(super) fn health(typed: &Typed<'_>) -> anyhow::Result<Option<SocketAddr>> {
    open(typed, "enable-healthz", "healthz-address")
}

/// Certificates; all three files are needed, as upstream.
pub(super) fn certificates(typed: &Typed<'_>) -> Option<TlsFiles> {
    let files = ["tls-cert-file", "tls-private-key-file", "ca-cert-file"];
    match files.map(|name| typed.text(name)) {
        ["", ..] | [_, "", _] | [_, _, ""] => None,
        [chain, key, authority] => Some(TlsFiles {
            chain: chain.into(),
            key: key.into(),
            authority: authority.into(),
        }),
    }
}

fn open(typed: &Typed<'_>, switch: &str, flag: &str) -> anyhow::Result<Option<SocketAddr>> {
    let asked = typed.switch(switch);
    asked.then(|| address(flag, typed.text(flag))).transpose()
}

/// `HOST:PORT`, where no host means every address of this machine.
fn address(flag: &str, text: &str) -> anyhow::Result<SocketAddr> {
    if let Some(port) = text.strip_prefix(':') {
        let port = port.parse();
        let port = port.with_context(|| format!("--{flag}: {text:?} has no port"))?;
        return Ok(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
    }
    let found = text.to_socket_addrs();
    let mut found = found.with_context(|| format!("--{flag}: expected HOST:PORT, got {text:?}"))?;
    found
        .next()
        .with_context(|| format!("--{flag}: {text:?} is no address"))
}
