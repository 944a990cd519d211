//! `katmai webhooks` (vc-webhook-manager).

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context;

use super::flag::{Group, Takes, kept, ours};
use super::typed::Typed;
use super::{Row, doors, rows};
use crate::gates::Gates;
use crate::start::{Outcome, Printed, Start, WebhooksRequest};
use crate::verbs::serving::names;

/// The webhooks.
pub(super) const WEBHOOKS: Row = Row {
    verb: "webhooks",
    upstream: "vc-webhook-manager",
    about: "Review what is written to a cluster, as its webhooks",
    after: "\
Registrations that are there are kept and get our authorities; where --webhook-service-name or --webhook-url says where
we are found, missing ones are made. Without files for TLS a certificate is made, kept in a Secret that all replicas
share, and renewed in time.",
    groups: &[
        DOOR,
        RULES,
        rows::CONNECTION,
        rows::SLOW,
        rows::HEALTH,
        rows::LOGGING,
    ],
    read: |typed| Ok(Outcome::Start(Box::new(Start::Webhooks(request(typed)?)))),
};

const DOOR: Group = Group {
    title: "Where it serves",
    flags: &[
        kept("port", Takes::Whole(1, 65_535), "8443", "Port to serve at"),
        kept(
            "listen-address",
            Takes::Text,
            "",
            "Address to serve at; all of this machine where it is empty",
        ),
        kept(
            "webhook-namespace",
            Takes::Text,
            "",
            "Namespace of the Service and of the Secret of the certificate; not reviewed itself",
        ),
        kept(
            "webhook-service-name",
            Takes::Text,
            "",
            "Service by which the API server finds us",
        ),
        kept(
            "webhook-url",
            Takes::Text,
            "",
            "URL by which the API server finds us, instead of a Service",
        ),
        kept(
            "graceful-shutdown-time",
            Takes::Duration,
            "30s",
            "How long requests may take to end when we do",
        ),
        ours(
            "print",
            Takes::OneOf(&["", "registrations", "policies"]),
            "",
            "Print what would be registered, as JSON for kubectl apply, and end",
        ),
    ],
};

const RULES: Group = Group {
    title: "What it judges",
    flags: &[
        kept(
            "enabled-admission",
            Takes::Texts,
            "",
            "Paths to serve, such as /jobs/mutate; all where none is named",
        ),
        kept(
            "admission-conf",
            Takes::Text,
            "",
            "File of resource groups: what pods of some namespaces, or with some annotations, get",
        ),
        kept(
            "scheduler-name",
            Takes::Texts,
            "volcano",
            "Name by which pods ask for gangs and queues; may be given several times",
        ),
        kept(
            "max-queue-depth",
            Takes::Whole(1, 1 << 20),
            "5",
            "Deepest place of a queue",
        ),
        kept(
            "enable-root-queue-protection",
            Takes::Switch,
            "true",
            "Keep the amounts of the root queue as they are",
        ),
        kept(
            "enable-queue-allocated-pods-check",
            Takes::Switch,
            "false",
            "Keep queues whose pods run from being deleted",
        ),
        ours(
            "allow-plugin-keys",
            Takes::Switch,
            "false",
            "Let arguments of job plugins hold private keys, as upstream",
        ),
        ours(
            "refuse-new-queues",
            Takes::Switch,
            "false",
            "Refuse jobs of a queue that no controller has opened yet, as upstream",
        ),
        kept(
            "feature-gates",
            Takes::Texts,
            "",
            "Feature gates, as NAME=true or NAME=false; SchedulingGatesQueueAdmission and PodLevelResources count",
        ),
    ],
};

fn request(typed: &Typed<'_>) -> anyhow::Result<WebhooksRequest> {
    let some = |name: &str| Some(typed.text(name).to_owned()).filter(|text| !text.is_empty());
    let whole = |name: &str| usize::try_from(typed.whole(name)).unwrap_or(usize::MAX);
    let gates = Gates::of_webhooks(&typed.texts("feature-gates"))?;
    let port = u16::try_from(typed.whole("port")).unwrap_or_default();
    Ok(WebhooksRequest {
        connection: super::connection(typed),
        print: match typed.text("print") {
            "registrations" => Some(Printed::Registrations),
            "policies" => Some(Printed::Policies),
            _ => None,
        },
        address: SocketAddr::new(ip(typed.text("listen-address"))?, port),
        namespace: some("webhook-namespace"),
        service_name: some("webhook-service-name"),
        url: some("webhook-url"),
        tls: doors::certificates(typed)?,
        farewell: typed.duration("graceful-shutdown-time"),
        health: doors::health(typed)?,
        paths: typed
            .texts("enabled-admission")
            .into_iter()
            .map(str::to_owned)
            .collect(),
        admission_conf: some("admission-conf").map(PathBuf::from),
        scheduler_names: names("scheduler-name", &typed.texts("scheduler-name"))?,
        queue_depth_max: whole("max-queue-depth"),
        keeps_root: typed.switch("enable-root-queue-protection"),
        keeps_full_queues: typed.switch("enable-queue-allocated-pods-check"),
        allows_plugin_keys: typed.switch("allow-plugin-keys"),
        refuses_new_queues: typed.switch("refuse-new-queues"),
        queue_gates: gates.opens_queue_gates,
        passes_pod_level: gates.passes_pod_level,
        verbosity: typed.whole("v"),
    })
}

fn ip(text: &str) -> anyhow::Result<IpAddr> {
    match text.trim_matches(['[', ']']) {
        "" => Ok(Ipv6Addr::UNSPECIFIED.into()),
        host => host
            .parse()
            .with_context(|| format!("--listen-address: {text:?} is no IP address")),
    }
}
