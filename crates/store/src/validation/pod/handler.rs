//! Probes and life cycle hooks.

use api::names;

use super::Pod;
use crate::validation::format;
use crate::validation::spot::{Faults, Spot};

/// Handlers of probes, in the order in which they are looked at.
const PROBE_HANDLERS: &[&str] = &["exec", "httpGet", "tcpSocket", "grpc"];
/// Handlers of hooks.
const HOOK_HANDLERS: &[&str] = &["exec", "httpGet", "tcpSocket", "sleep"];

/// Checks the probes and hooks of a container.
pub(super) fn check(container: &Spot<'_, '_>, pod: &Pod<'_>, faults: &mut Faults) {
    let lifecycle = container.at("lifecycle");
    for hook in ["postStart", "preStop"] {
        let hook = lifecycle.at(hook);
        if hook.is_there() {
            handler(&hook, HOOK_HANDLERS, pod, faults);
        }
    }
    let signal = lifecycle.at("stopSignal");
    if signal.is_there() && pod.system.is_empty() {
        let detail = "may not be set for containers with empty `spec.os.name`";
        faults.forbidden(&signal, detail);
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let at = container.at(name);
        if at.is_there() {
            probe(&at, name, pod, faults);
        }
    }
}

fn probe(probe: &Spot<'_, '_>, name: &str, pod: &Pod<'_>, faults: &mut Faults) {
    handler(probe, PROBE_HANDLERS, pod, faults);
    let counts = [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ];
    faults.none_negative(probe, &counts);
    let grace = probe.at("terminationGracePeriodSeconds");
    if let Some(seconds) = grace.maybe().filter(|seconds| *seconds <= 0) {
        faults.invalid_as(&grace, seconds, "must be greater than 0");
    }
    if name == "readinessProbe" {
        if grace.is_there() {
            faults.invalid(&grace, "must not be set for readinessProbes");
        }
        return;
    }
    let successes = probe.at("successThreshold");
    if successes.number() != 1 {
        faults.invalid_as(&successes, successes.number(), "must be 1");
    }
}

fn handler(at: &Spot<'_, '_>, kinds: &[&str], pod: &Pod<'_>, faults: &mut Faults) {
    let mut count = 0;
    for kind in kinds {
        let action = at.at(kind);
        if !action.is_there() {
            continue;
        }
        count += 1;
        if count > 1 {
            faults.forbidden(&action, "may not specify more than 1 handler type");
            continue;
        }
        match *kind {
            "exec" => faults.need(&action.at("command")),
            "httpGet" => http_get(&action, faults),
            "grpc" => faults.port(&action.at("port")),
            "sleep" => sleep(&action, pod, faults),
            _ => port(&action.at("port"), faults),
        }
    }
    if count == 0 {
        faults.required(at, "must specify a handler type");
    }
}

fn http_get(action: &Spot<'_, '_>, faults: &mut Faults) {
    faults.need(&action.at("path"));
    port(&action.at("port"), faults);
    let scheme = action.at("scheme");
    if !matches!(scheme.text(), "HTTP" | "HTTPS") {
        faults.not_supported(&scheme, &["HTTP", "HTTPS"]);
    }
    let headers = action.at("httpHeaders");
    for header in headers.items() {
        faults.name_as(&headers, header.at("name").text(), format::header);
    }
}

/// A port's number or its name.
pub(crate) fn port(at: &Spot<'_, '_>, faults: &mut Faults) {
    if at.value.is_string() {
        faults.name(at, names::check_port_name);
    } else {
        faults.port(at);
    }
}

fn sleep(action: &Spot<'_, '_>, pod: &Pod<'_>, faults: &mut Faults) {
    let seconds = action.at("seconds").number();
    if let Some(grace) = pod.grace
        && !(0..=grace).contains(&seconds)
    {
        let detail =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        faults.invalid_as(action, seconds, detail);
    }
}
