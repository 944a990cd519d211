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
    let (tls, warning) = certificates_if_whole(typed);
    if let Some(warning) = warning {
        console::complain(&format!("warning: {warning}"));
    }
    let doors = Doors {
        metrics: open(typed, "enable-metrics", "listen-address")?,
        health: health(typed)?,
        tls,
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

/// Those of health, which upstream serves without if a file is missing; and what is to be said of that.
/// Metrics are served without in any case.
fn certificates_if_whole(typed: &Typed<'_>) -> (Option<TlsFiles>, Option<String>) {
    match certificates(typed) {
        Ok(files) => (files, None),
        Err(error) => (None, Some(format!("{error}: health is served without TLS"))),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::PROCESSES;

    /// What these words come to in every process that has the three flags.
    fn check(words: &[&str], files: Option<&TlsFiles>, warning: Option<&str>) {
        for row in PROCESSES {
            let typed = std::iter::once(&row.verb).chain(words);
            let matches = row.command().try_get_matches_from(typed);
            let matches = matches.unwrap_or_else(|error| panic!("{}: {error}", row.verb));
            let typed = Typed::new(&matches, row.flags().collect());
            let (found, told) = certificates_if_whole(&typed);
            assert_eq!(found.as_ref(), files, "{} {words:?}", row.verb);
            assert_eq!(told.as_deref(), warning, "{} {words:?}", row.verb);
        }
    }

    #[test]
    fn health_is_served_with_three_files_or_without_tls_and_of_a_part_that_is_said() {
        const CHAIN: &str = "--tls-cert-file=/tls.crt";
        const KEY: &str = "--tls-private-key-file=/tls.key";
        const AUTHORITY: &str = "--ca-cert-file=/ca.crt";
        let whole = TlsFiles {
            chain: "/tls.crt".into(),
            key: "/tls.key".into(),
            authority: "/ca.crt".into(),
        };
        check(&[], None, None);
        check(&[CHAIN, KEY, AUTHORITY], Some(&whole), None);
        for (words, given, missing) in [
            (
                &[CHAIN, KEY][..],
                "--tls-cert-file and --tls-private-key-file",
                "--ca-cert-file",
            ),
            (
                &[KEY, AUTHORITY],
                "--tls-private-key-file and --ca-cert-file",
                "--tls-cert-file",
            ),
            (
                &[AUTHORITY],
                "--ca-cert-file",
                "--tls-cert-file and --tls-private-key-file",
            ),
            (
                &[CHAIN, KEY, "--ca-cert-file="],
                "--tls-cert-file and --tls-private-key-file",
                "--ca-cert-file",
            ),
        ] {
            let told = format!(
                "{given}: {missing} must be given with it, or none of the three: health is served without TLS"
            );
            check(words, None, Some(&told));
        }
    }
}
