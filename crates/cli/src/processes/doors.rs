//! Where a process can be asked about itself.

use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};

use anyhow::{Context, bail};

use super::typed::Typed;
use crate::start::{AskService, Doors, Questions, TlsFiles};

/// The port of a Service that names none.
const HTTPS: u16 = 443;

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

/// Where questions to a scheduler are answered.
pub(super) fn questions(typed: &Typed<'_>) -> anyhow::Result<Option<Questions>> {
    let (place, service) = (typed.text("ask-address"), typed.text("ask-service"));
    let service = (!service.is_empty()).then(|| ask_service(service));
    let service = service.transpose()?;
    if place.is_empty() {
        if service.is_some() {
            bail!("--ask-service is about --ask-address, which is not given");
        }
        return Ok(None);
    }
    Ok(Some(Questions {
        address: address("ask-address", place)?,
        service,
        tls: certificates(typed),
    }))
}

/// `NAMESPACE/NAME` or `NAMESPACE/NAME:PORT`.
fn ask_service(text: &str) -> anyhow::Result<AskService> {
    let wrong = || format!("--ask-service: expected NAMESPACE/NAME:PORT, got {text:?}");
    let (namespace, rest) = text.split_once('/').with_context(wrong)?;
    let (name, port) = match rest.split_once(':') {
        Some((name, port)) => (name, port.parse().with_context(wrong)?),
        None => (rest, HTTPS),
    };
    if namespace.is_empty() || name.is_empty() || name.contains('/') || port == 0 {
        bail!(wrong());
    }
    Ok(AskService {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        port,
    })
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
