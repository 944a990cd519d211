//! Which Lease is to be held before anything is decided.
//!
//! Upstream computes a scheduler's lease from its names before it has read them, so that schedulers of
//! different names fight over one; here it is a function of what was typed (S1.1).

use anyhow::bail;
use api::names::check_subdomain;
use api::sum::Sum;
use driver::ElectionSettings;

use super::typed::Typed;
use crate::console;

/// The flag of old, which still names the namespace.
const OLD_NAMESPACE: &str = "lock-object-namespace";
/// The one thing that is held.
const LOCK: &str = "leases";
const NAMESPACE: &str = "leader-elect-resource-namespace";
const NAME: &str = "leader-elect-resource-name";
/// So much of an odd name stays: with its sum it is short enough for an object's.
const PLAIN_MAX: usize = 200;

/// What the flags ask for; `None` where nobody else decides. `names` are the Leases where none was
/// named, held for what `serves` says; `identity` is nobody else's.
///
/// Of the namespaces the new flag holds before the old one, and that before the default (S1.4).
pub(super) fn election(
    typed: &Typed<'_>,
    names: &[Box<str>],
    serves: &str,
    identity: &str,
) -> anyhow::Result<Option<ElectionSettings>> {
    if !typed.switch("leader-elect") {
        return Ok(None);
    }
    let lock = typed.text("leader-elect-resource-lock");
    if lock != LOCK {
        console::complain(&format!(
            "warning: --leader-elect-resource-lock={lock} has no effect: a Lease is held, as Volcano's schedulers do whatever is said"
        ));
    }
    let old = typed.text(OLD_NAMESPACE);
    let namespace = match typed.is_given(NAMESPACE) || old.is_empty() {
        true => typed.text(NAMESPACE),
        false => old,
    };
    let name = typed.text(NAME);
    let named = Some(name).filter(|name| !name.is_empty());
    for (flag, name) in std::iter::once((NAMESPACE, namespace)).chain(named.map(|it| (NAME, it))) {
        if let Some(complaint) = check_subdomain(name).first() {
            bail!("--{flag} {name:?}: {complaint}");
        }
    }
    let names: Vec<String> = match named {
        Some(name) => vec![name.to_owned()],
        None => names.iter().map(|name| lease_of(name)).collect(),
    };
    let names = names.iter().map(String::as_str);
    let millis = |flag: &str| i64::try_from(typed.duration(flag).as_millis()).unwrap_or(i64::MAX);
    let settings = ElectionSettings {
        lease_ms: millis("leader-elect-lease-duration"),
        renew_ms: millis("leader-elect-renew-deadline"),
        retry_ms: millis("leader-elect-retry-period"),
        ..ElectionSettings::of_names(namespace, names, serves, identity)
    };
    match settings.problem() {
        Some(problem) => bail!("--leader-elect-…: {problem}"),
        None => Ok(Some(settings)),
    }
}

/// The Lease of a scheduler: called like it where an object can be. Pods may name any text as theirs; of one
/// that cannot be an object's name what can stays, with a sum behind it that tells it from others.
fn lease_of(scheduler: &str) -> String {
    if check_subdomain(scheduler).is_empty() {
        return scheduler.to_owned();
    }
    let plain = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_alphanumeric() => c,
        _ => '-',
    };
    let plain: String = scheduler.chars().take(PLAIN_MAX).map(plain).collect();
    let mut sum = Sum::default();
    sum.bytes(scheduler.as_bytes());
    let sum = sum.value();
    match plain.trim_matches('-') {
        "" => format!("scheduler-{sum:016x}"),
        plain => format!("{plain}-{sum:016x}"),
    }
}
