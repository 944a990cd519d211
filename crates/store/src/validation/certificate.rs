//! Requests for certificates. Nobody here signs them: whether a request is well signed is not looked
//! at, only whether it is one.

use std::collections::BTreeSet;

use api::names;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::spot::{Faults, Spot};
use super::{list, meta, text};

/// Shortest life of a certificate, in seconds.
const LIFE_SECONDS_MIN: i64 = 600;
/// Longest domain of a signer.
const DOMAIN_BYTES_MAX: i64 = 253;
/// Conditions that are never taken back.
const LASTING: &[&str] = &["Approved", "Denied", "Failed"];
const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Who changes a request, and so what may change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hand {
    Anybody,
    Approver,
    Signer,
}

/// Checks a new request.
pub(super) fn create(request: &Spot<'_, '_>, faults: &mut Faults) {
    whole(request, faults);
}

/// Checks a changed request.
pub(super) fn update(request: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    changed(request, old, Hand::Anybody, faults);
}

/// Checks a request that is approved or denied.
pub(super) fn approval(request: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    changed(request, old, Hand::Approver, faults);
}

/// Checks a request that is answered.
pub(super) fn status(request: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    changed(request, old, Hand::Signer, faults);
}

fn whole(request: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(request, |_| Vec::new(), faults);
    let spec = request.at("spec");
    let body = spec.at("request");
    if blocks(body.text(), "CERTIFICATE REQUEST").is_none_or(|count| count == 0) {
        faults.invalid(&body, "PEM block type must be CERTIFICATE REQUEST");
    }
    usages(&spec.at("usages"), faults);
    signer(&spec.at("signerName"), faults);
    let life = spec.at("expirationSeconds");
    if life
        .maybe()
        .is_some_and(|seconds| seconds < LIFE_SECONDS_MIN)
    {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        faults.invalid(&life, detail);
    }
    let status = request.at("status");
    conditions(&status.at("conditions"), faults);
    let certificate = status.at("certificate");
    if !certificate.is_empty() {
        let wrong = match blocks(certificate.text(), "CERTIFICATE") {
            None => "only CERTIFICATE PEM blocks are allowed",
            Some(0) => "must contain at least one CERTIFICATE PEM block",
            Some(_) => return,
        };
        faults.invalid_as(&certificate, "<certificate data>", wrong);
    }
}

/// How many PEM blocks of a kind stand in an encoded text; nothing where others stand there, too.
fn blocks(encoded: &str, kind: &str) -> Option<usize> {
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut count = 0;
    let mut rest = &*text;
    while let Some((_, more)) = rest.split_once("-----BEGIN ") {
        let (label, body) = more.split_once("-----")?;
        let (body, after) = body.split_once(&format!("-----END {label}-----"))?;
        let letters: String = body.split_whitespace().collect();
        if label != kind || STANDARD.decode(letters).is_err() {
            return None;
        }
        count += 1;
        rest = after;
    }
    Some(count)
}

fn usages(usages: &Spot<'_, '_>, faults: &mut Faults) {
    if usages.is_empty() {
        faults.required(usages, "");
    }
    for usage in usages.items().filter(|one| !USAGES.contains(&one.text())) {
        faults.not_supported(&usage, USAGES);
    }
    let mut seen = BTreeSet::new();
    for usage in usages.items().filter(|one| !seen.insert(one.text())) {
        faults.duplicate(&usage, usage.text());
    }
}

fn signer(at: &Spot<'_, '_>, faults: &mut Faults) {
    if at.is_empty() {
        return faults.required(at, "");
    }
    if at.text() == "kubernetes.io/legacy-unknown" {
        let detail = "the legacy signerName is not allowed via this API version";
        return faults.invalid(at, detail);
    }
    let Some((domain, path)) = at
        .text()
        .split_once('/')
        .filter(|(_, path)| !path.contains('/'))
    else {
        let detail =
            "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return faults.invalid(at, detail);
    };
    if domain.len() as i64 > DOMAIN_BYTES_MAX {
        faults.too_long(at, DOMAIN_BYTES_MAX);
    }
    labels(at, domain, names::check_label, faults);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        faults.invalid_as(at, domain, detail);
    }
    labels(at, path, names::check_subdomain, faults);
}

/// Tells of the first label that is none.
fn labels(at: &Spot<'_, '_>, part: &str, rule: meta::NameRule, faults: &mut Faults) {
    let mut wrong = part.split('.').map(|label| (label, rule(label)));
    if let Some((label, wrong)) = wrong.find(|(_, wrong)| !wrong.is_empty()) {
        let label = crate::field::go_quoted(label);
        for detail in wrong {
            faults.invalid_as(at, part, format!("validating label {label}: {detail}"));
        }
    }
}

fn conditions(all: &Spot<'_, '_>, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for condition in all.items() {
        let (kind, state) = (condition.at("type"), condition.at("status"));
        faults.need(&kind);
        let known: &[&str] = match LASTING.contains(&kind.text()) {
            true => &["True"],
            false => &["False", "True", "Unknown"],
        };
        faults.one_of(&state, known);
        let other = match kind.text() {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if seen.contains(other) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            faults.invalid_as(all, kind.text(), detail);
        }
        if !seen.insert(kind.text()) {
            faults.duplicate(&kind, kind.text());
        }
    }
}

fn changed(request: &Spot<'_, '_>, old: &Value, hand: Hand, faults: &mut Faults) {
    whole(request, faults);
    let status = request.at("status");
    let at = status.at("conditions");
    let of_kind = |status: &Value, kind: &str| -> Vec<Value> {
        let all = list(&status["conditions"]).iter();
        all.filter(|one| one["type"] == kind).cloned().collect()
    };
    let both = |kind: &str| (of_kind(&old["status"], kind), of_kind(status.value, kind));
    for kind in LASTING {
        let (before, now) = both(kind);
        if now.len() < before.len() {
            let detail = format!("updates may not remove a condition of type \"{kind}\"");
            faults.forbidden(&at, &detail);
        }
    }
    for kind in LASTING
        .iter()
        .filter(|kind| **kind != "Failed" && hand != Hand::Approver)
    {
        let (before, now) = both(kind);
        let deed = match now.len().cmp(&before.len()) {
            std::cmp::Ordering::Greater => "add",
            std::cmp::Ordering::Equal if now != before => "modify",
            _ => continue,
        };
        let detail = format!("updates may not {deed} a condition of type \"{kind}\"");
        faults.forbidden(&at, &detail);
    }
    let certificate = status.at("certificate");
    let was = text(&old["status"]["certificate"]);
    if certificate.text() != was {
        if hand != Hand::Signer {
            faults.forbidden(&certificate, "updates may not set certificate content");
        } else if !was.is_empty() {
            let detail = "updates may not modify existing certificate content";
            faults.forbidden(&certificate, detail);
        }
    }
    meta::update(request, old, faults);
}
