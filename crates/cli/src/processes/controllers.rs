//! `katmai controllers` (vc-controller-manager).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, bail};
use api::volcano::ShardingConf;

use super::flag::{Group, Takes, ignored, kept, ours};
use super::typed::Typed;
use super::{Row, rows};
use crate::gates::Gates;
use crate::start::{Controllers, Deciding, Meeting, ServiceGate};
use crate::verbs::serving::names;

const ONE_THREAD: &str = "a step takes microseconds, on one thread";
/// Upstream's names of controllers, and the rows that do their work here; none where it is not built.
pub(super) const NAMES: &[(&str, &[&str])] = &[
    ("job-controller", &["vcjob"]),
    ("cronjob-controller", &["vc_cron_job"]),
    ("queue-controller", &["queue"]),
    ("pg-controller", &["podgroup", "workload_group"]),
    ("gc-controller", &["vcjob_expiry"]),
    ("jobflow-controller", &["job_flow"]),
    ("jobtemplate-controller", &["job_template"]),
    ("hyperNode-controller", HYPER_NODES),
    ("sharding-controller", &[SHARDING]),
    ("colocation-config-controller", &["colocation"]),
];
/// Which of them run unless others are wished for.
const USUAL: &str = "*,-sharding-controller";
/// The row that divides nodes whenever one changes, and the one that does so once in a period.
const SHARDING: &str = "sharding";
const SHARDING_BY_PERIOD: &str = "sharding_by_period";
/// The rows that find hyper-nodes and count their nodes.
const HYPER_NODES: &[&str] = &["hyper_node_count", "hyper_node_label", "hyper_node_ufm"];
/// Where election's Lease is not named.
const LEASE: &str = "vc-controller-manager";
/// The same where hyper-nodes have a process of their own.
const ALONE_LEASE: &str = "vc-hypernode-controller-manager";

/// The controllers.
pub(super) const CONTROLLERS: Row = Row {
    verb: "controllers",
    upstream: "vc-controller-manager",
    about: "Keep jobs, queues and groups of a cluster as they should be",
    after: "",
    groups: &[
        OWN,
        rows::ELECTION,
        rows::CONNECTION,
        rows::SLOW,
        rows::HEALTH,
        rows::METRICS_8081,
        rows::LOGGING,
    ],
    read: |typed| {
        let scheduler_names = names("scheduler-name", &typed.texts("scheduler-name"))?;
        let gates = Gates::of_controllers(&typed.texts("feature-gates"))?;
        let mut rows = chosen(&typed.texts("controllers"))?;
        rows.retain(|row| !gates.without.contains(row));
        if !typed.switch("enable-node-event-trigger") {
            for row in rows.iter_mut().filter(|row| **row == SHARDING) {
                *row = SHARDING_BY_PERIOD;
            }
        }
        let serves = serves(&rows, &scheduler_names)?;
        let deciding = Deciding::Controllers(Controllers {
            rows,
            scheduler_names,
            native_groups: typed.switch("native-groups"),
            inherit_owner_annotations: typed.switch("inherit-owner-annotations"),
            upstream_ssh: typed.text("ssh-plugin") == "upstream",
            meeting: Meeting {
                gate: ServiceGate::of_word(typed.text("service-gate")),
                deadline: typed.duration("service-gate-deadline"),
                peers_image: Some(typed.text("peers-image"))
                    .filter(|it| !it.is_empty())
                    .map(Into::into),
            },
            cluster_domain: typed.text("cluster-domain").trim_matches('.').into(),
            name_servers: name_servers(&typed.texts("cluster-dns"))?,
            failures_max: u32::try_from(typed.whole("max-requeue-num")).ok(),
            unwatched: gates.unwatched,
            discovery: discovery(|name| std::env::var(name).ok()),
            shards: shards(typed)?,
            sharding: (
                typed.text("sharding-configmap-namespace").into(),
                typed.text("sharding-configmap").into(),
            ),
        });
        super::process(typed, "controllers", deciding, &[LEASE.into()], &serves)
    },
};

/// What the Lease is held for: for whom, and by which controllers where they are not those that run unless
/// others are wished for. Who waits for it and runs others would never run them.
fn serves(rows: &[&str], scheduler_names: &[Box<str>]) -> anyhow::Result<String> {
    let mut served = scheduler_names.to_vec();
    served.sort();
    let runs =
        |row: &str| rows.contains(&row) || row == SHARDING && rows.contains(&SHARDING_BY_PERIOD);
    let without = Gates::of_controllers(&[] as &[&str])?.without;
    let mut usual = chosen(&USUAL.split(',').collect::<Vec<_>>())?;
    usual.retain(|row| !without.contains(row));
    let mut all = NAMES.iter().flat_map(|(_, own)| *own);
    let which = match all.all(|row| runs(row) == usual.contains(row)) {
        true => "controllers".to_owned(),
        false => {
            let of_name = |(name, own): &(&'static str, &'static [&'static str])| {
                let mut run: Vec<&str> = own.iter().copied().filter(|row| runs(row)).collect();
                if run.len() == own.len() {
                    run = vec![*name];
                }
                run
            };
            NAMES
                .iter()
                .flat_map(of_name)
                .collect::<Vec<_>>()
                .join(", ")
        }
    };
    Ok(format!("{which} of {}", served.join(", ")))
}

/// Addresses, with or without a port.
fn name_servers(given: &[&str]) -> anyhow::Result<Vec<SocketAddr>> {
    let server = |text: &&str| {
        let with_port = text.parse::<SocketAddr>();
        let without = || text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 53));
        let read = with_port.or_else(|_| without());
        read.with_context(|| format!("--cluster-dns: expected IP or IP:PORT, got {text:?}"))
    };
    given.iter().map(server).collect()
}

/// Hyper-nodes alone, for clusters where they have a process of their own.
pub(super) const HYPER_NODES_ALONE: Row = Row {
    verb: "hypernode-controller",
    upstream: "vc-hypernode-controller-manager",
    about: "Find hyper-nodes of a cluster, and count their nodes",
    after: "Only one process may find them: start katmai controllers with --controllers=*,-hyperNode-controller,-sharding-controller beside it.",
    groups: &[
        ALONE,
        rows::ELECTION,
        rows::CONNECTION,
        rows::SLOW,
        rows::HEALTH,
        rows::METRICS_8081,
        rows::LOGGING,
    ],
    read: |typed| {
        // Upstream's process alone minds these.
        for (flag, is_positive) in [
            ("kube-api-qps", typed.rate("kube-api-qps") > 0.0),
            ("kube-api-burst", typed.whole("kube-api-burst") > 0),
        ] {
            if !is_positive {
                bail!("--{flag}: it must be greater than 0");
            }
        }
        Gates::of_controllers(&typed.texts("feature-gates"))?;
        let deciding = Deciding::Controllers(Controllers {
            rows: HYPER_NODES.to_vec(),
            scheduler_names: Vec::new(),
            native_groups: false,
            inherit_owner_annotations: true,
            upstream_ssh: false,
            meeting: Meeting::default(),
            cluster_domain: Box::default(),
            name_servers: Vec::new(),
            failures_max: None,
            unwatched: Vec::new(),
            discovery: discovery(|name| std::env::var(name).ok()),
            shards: ShardingConf::default(),
            sharding: (Box::default(), Box::default()),
        });
        let name = "hypernode-controller";
        super::process(typed, name, deciding, &[ALONE_LEASE.into()], "hyper-nodes")
    },
};

const ALONE: Group = Group {
    title: "What runs",
    flags: &[
        kept(
            "leader-elect-resource-name",
            Takes::Text,
            ALONE_LEASE,
            "Name of the Lease",
        ),
        kept(
            "feature-gates",
            Takes::Texts,
            "",
            "Feature gates, as NAME=true or NAME=false",
        ),
    ],
};

/// Among whom nodes are divided where no ConfigMap says it.
fn shards(typed: &Typed<'_>) -> anyhow::Result<ShardingConf> {
    let shards = ShardingConf::of_flags(&typed.texts("scheduler-configs"));
    let shards = shards.map_err(|why| anyhow::anyhow!("--scheduler-configs: {why}"))?;
    let period_ms = i64::try_from(typed.duration("shard-sync-period").as_millis());
    Ok(ShardingConf {
        period_ms: Some(period_ms.unwrap_or(i64::MAX).max(1_000)),
        ..shards
    })
}

/// The ConfigMap that says by which sources hyper-nodes are found: upstream's chart tells its release
/// and its namespace by these variables.
fn discovery(variable: impl Fn(&str) -> Option<String>) -> (Box<str>, Box<str>) {
    let said = |name: &str, otherwise: &str| {
        let said = variable(name).filter(|text| !text.is_empty());
        said.unwrap_or_else(|| otherwise.to_owned())
    };
    let namespace = said("KUBE_POD_NAMESPACE", "volcano-system");
    let release = said("HELM_RELEASE_NAME", "volcano");
    let name = format!("{release}-controller-configmap");
    (namespace.into(), name.into())
}

const OWN: Group = Group {
    title: "What runs",
    flags: &[
        kept(
            "controllers",
            Takes::Texts,
            USUAL,
            "Which controllers run: * for all, NAME or +NAME for one, -NAME for all but one",
        ),
        kept(
            "scheduler-name",
            Takes::Texts,
            "volcano",
            "Whose pods get groups; may be given several times",
        ),
        ours(
            "native-groups",
            Takes::Switch,
            "false",
            "Make no group for pods that are in one of Kubernetes' own (PodGroups of scheduling.k8s.io)",
        ),
        kept(
            "max-requeue-num",
            Takes::Whole(i64::MIN, i64::MAX),
            "15",
            "How often a step that fails is tried again, ever later; then it is told of, and tried when something about it changes; what passes by itself (an API that is away or too busy, a quota that is used up) is tried every 1,000 s, too. Below 0 there is no limit: it is tried every 1,000 s at last, and never told of",
        ),
        kept(
            "leader-elect-resource-name",
            Takes::Text,
            "vc-controller-manager",
            "Name of the Lease",
        ),
        ours(
            "ssh-plugin",
            Takes::OneOf(&["safe", "upstream"]),
            "safe",
            "Whose rules hold for the keys of jobs with the ssh plugin: ours (safe), or Volcano's, with RSA keys, keys in jobs and no host checked (upstream)",
        ),
        ours(
            "service-gate",
            Takes::OneOf(&ServiceGate::WORDS),
            "observed",
            "Pods of a job with the svc plugin wait until its Service was read back (observed; accepted is the same), an EndpointSlice of it (endpoint-slice), or an answer of DNS about it (dns-answer)",
        ),
        ours(
            "service-gate-deadline",
            Takes::Duration,
            "60s",
            "For so long; then they start without, and the job says what is missing",
        ),
        ours(
            "peers-image",
            Takes::Text,
            "",
            "Each of them has an init container of this image (a shell with getent or nslookup) that waits as long until DNS knows the others; without it only where the job says wait-for-peers",
        ),
        ours(
            "cluster-dns",
            Takes::Texts,
            "",
            "Who is asked for names of pods, as IP or IP:PORT, the first that answers; otherwise those in /etc/resolv.conf",
        ),
        ours(
            "cluster-domain",
            Takes::Text,
            "cluster.local",
            "The domain of those names",
        ),
        kept(
            "inherit-owner-annotations",
            Takes::Switch,
            "true",
            "Groups of pods have the annotations of the pods' owners",
        ),
        ignored(
            "worker-threads",
            Takes::Whole(0, 1 << 20),
            "3",
            "Threads for jobs",
            ONE_THREAD,
        ),
        ignored(
            "worker-threads-for-cronjob",
            Takes::Whole(0, 1 << 20),
            "3",
            "Threads for cron jobs",
            ONE_THREAD,
        ),
        ignored(
            "worker-threads-for-podgroup",
            Takes::Whole(0, 1 << 20),
            "5",
            "Threads for groups",
            ONE_THREAD,
        ),
        ignored(
            "worker-threads-for-gc",
            Takes::Whole(0, 1 << 20),
            "1",
            "Threads for jobs that have ended",
            ONE_THREAD,
        ),
        ignored(
            "worker-threads-for-queue",
            Takes::Whole(0, 1 << 20),
            "5",
            "Threads for queues",
            ONE_THREAD,
        ),
        kept(
            "feature-gates",
            Takes::Texts,
            "",
            "Feature gates, as NAME=true or NAME=false",
        ),
        kept(
            "scheduler-configs",
            Takes::Texts,
            "volcano:volcano:0.0:0.6:false:2:100,agent-scheduler:agent:0.7:1.0:true:2:100",
            "Schedulers that nodes are divided among, where no ConfigMap says it, as NAME:TYPE:MINUTIL:MAXUTIL:PREFERWARMUP:MINNODES:MAXNODES",
        ),
        kept(
            "shard-sync-period",
            Takes::Duration,
            "60s",
            "How often nodes are divided anew, where no ConfigMap says it",
        ),
        kept(
            "enable-node-event-trigger",
            Takes::Switch,
            "true",
            "Divide nodes anew when one comes, goes or changes; pods, and without it nodes, count once in a period",
        ),
        kept(
            "sharding-configmap",
            Takes::Text,
            "volcano-sharding-configmap",
            "ConfigMap of the sharding controller",
        ),
        kept(
            "sharding-configmap-namespace",
            Takes::Text,
            "volcano-system",
            "Its namespace",
        ),
    ],
};

/// The rows that are chosen, by what they are called here. As upstream: a name stands there once, with one sign or
/// none, and holds before `*`, wherever that stands. A name that there is not, which upstream passes over, would
/// leave out what its writer meant.
pub(super) fn chosen(words: &[&str]) -> anyhow::Result<Vec<&'static str>> {
    let mut wishes = BTreeMap::<&str, bool>::new();
    for word in words.iter().filter(|word| **word != "*") {
        let name = word.strip_prefix(['+', '-']).unwrap_or(word);
        if !NAMES.iter().any(|(known, _)| *known == name) {
            let all: Vec<&str> = NAMES.iter().map(|(known, _)| *known).collect();
            bail!(
                "--controllers: there is no {name:?}; there are {}",
                all.join(", ")
            );
        }
        if wishes.insert(name, !word.starts_with('-')).is_some() {
            bail!("--controllers: {name} is named twice");
        }
    }
    let runs = |name: &str| match wishes.get(name) {
        Some(is_wished) => *is_wished,
        None => words.contains(&"*"),
    };
    let mut rows: Vec<&'static str> = Vec::new();
    for (_, own) in NAMES.iter().filter(|(upstream, _)| runs(upstream)) {
        let new: Vec<&'static str> = own
            .iter()
            .copied()
            .filter(|row| !rows.contains(row))
            .collect();
        rows.extend(new);
    }
    if rows.is_empty() {
        bail!("--controllers: none of those that are named is built");
    }
    Ok(rows)
}
