//! Where a process can be asked about itself.

use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};

use anyhow::{Context, bail};

use super::typed::Typed;
use crate::console;
use crate::start::{AskService, Doors, Questions, TlsFiles};

/// The port of a Service that names none.
const HTTPS: u16 = 443;

/// What can be asked of a process, by its flags.
pub(super) fn doors(typed: &Typed<'_>) -> anyhow::Result<Doors> {
    let doors = Doors {
        metrics: open(typed, "enable-metrics", "listen-address")?,
        health: health(typed)?,
        tls: certificates_if_whole(typed),
    };
    if let (Some(metrics), Some(health)) = (doors.metrics, doors.health)
        && overlap(metrics, health)
    {
        bail!(
            "--listen-address and --healthz-address are the same, or one is all addresses at the other's port; \
             each needs a port of its own"
        );
    }
    Ok(doors)
}

/// Whether only one of the two can be listened on.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    let is_all = |address: SocketAddr| address.ip().is_unspecified();
    a.port() == b.port() && a.port() != 0 && (a.ip() == b.ip() || is_all(a) || is_all(b))
}

/// Where health is told.
pub(super) fn health(typed: &Typed<'_>) -> anyhow::Result<Option<SocketAddr>> {
    open(typed, "enable-healthz", "healthz-address")
}

/// Certificates; the three files belong together.
///
/// # Errors
/// Which flags are missing beside those that were given.
pub(super) fn certificates(typed: &Typed<'_>) -> anyhow::Result<Option<TlsFiles>> {
    let names = ["tls-cert-file", "tls-private-key-file", "ca-cert-file"];
    let flags = |is_given: bool| {
        let flags = names
            .iter()
            .filter(|name| typed.text(name).is_empty() != is_given);
        let flags: Vec<String> = flags.map(|name| format!("--{name}")).collect();
        flags.join(" and ")
    };
    match names.map(|name| typed.text(name)) {
        ["", "", ""] => Ok(None),
        ["", ..] | [_, "", _] | [_, _, ""] => bail!(
            "{}: {} must be given with it, or none of the three",
            flags(true),
            flags(false)
        ),
        [chain, key, authority] => Ok(Some(TlsFiles {
            chain: chain.into(),
            key: key.into(),
            authority: authority.into(),
        })),
    }
}

/// Those of metrics and health, which upstream serves without if a file is missing.
fn certificates_if_whole(typed: &Typed<'_>) -> Option<TlsFiles> {
    certificates(typed).unwrap_or_else(|error| {
        console::complain(&format!(
            "warning: {error}: metrics and health are served without TLS"
        ));
        None
    })
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
        tls: certificates(typed)?,
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
