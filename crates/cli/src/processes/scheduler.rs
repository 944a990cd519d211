//! `katmai scheduler` (vc-scheduler) and `katmai agent-scheduler` (vc-agent-scheduler).

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::bail;
use api::kind::Kind;
use api::names::check_subdomain;
use api::volcano::DEFAULT_QUEUE;
use driver::Served;
use mirror::Events;

use super::flag::{Group, Takes, ignored, kept, ours};
use super::typed::Typed;
use super::{Row, doors, rows};
use crate::console;
use crate::gates::Gates;
use crate::scheduler_conf::{CheckRequest, Strictness, check};
use crate::start::{Deciding, Format, Outcome, Serving};
use crate::verbs::serving::{names, reach};

const ON_CHANGE: &str = "it decides as soon as something changes";
const EVERY_NODE: &str = "every node is looked at";
/// What upstream takes for how much to look at: below 1 it computes that itself.
const ANY: Takes = Takes::Whole(i32::MIN as i64, i32::MAX as i64);
const ONE_THREAD: &str = "a cycle takes milliseconds, on one thread";

/// The scheduler.
pub(super) const SCHEDULER: Row = Row {
    verb: "scheduler",
    upstream: "vc-scheduler",
    about: "Decide for a cluster where pods go, or check a configuration with --check-config",
    after: "\
With --check-config no cluster is asked. Each remark has the line, the field, and what to do. Errors refuse the
file, as they do in a running scheduler; warnings are about what does not count as it is written; notes are worth
knowing. Exit codes then: 0 it is accepted, 1 it is but --strict minds a warning, 2 it is refused or cannot be read.",
    groups: &[
        NAMES,
        HOW,
        OWN,
        CHECK,
        rows::LEASE_OF_NAMES,
        rows::ELECTION,
        rows::CONNECTION,
        rows::FAST,
        rows::HEALTH,
        rows::METRICS_8080,
        ASKED,
        rows::LOGGING,
    ],
    read: |typed| {
        if let Some(code) = checked(typed)? {
            return Ok(Outcome::Exit(code));
        }
        let serving = Serving {
            scheduler_names: names("scheduler-name", &typed.texts("scheduler-name"))?,
            agent_scheduler_names: names(
                "agent-scheduler-name",
                &typed.texts("agent-scheduler-name"),
            )?,
            native_groups: typed.switch("native-groups"),
            ..shared(typed)?
        };
        let mut serving = serving.unambiguous()?;
        if !typed.switch("priority-class") {
            serving.unwatched.push(Kind::PriorityClass);
        }
        let queue = typed.text("default-queue");
        if let Some(why) = check_subdomain(queue).first() {
            bail!("--default-queue: {queue:?} cannot be a queue: {why}");
        }
        begin(typed, "scheduler", serving, queue.into())
    },
};

/// The scheduler of single pods.
pub(super) const AGENT: Row = Row {
    verb: "agent-scheduler",
    upstream: "vc-agent-scheduler",
    about: "Decide for a cluster where single pods go, without gangs and queues",
    after: "The same engine as katmai scheduler, which serves both kinds at once with --agent-scheduler-name.",
    groups: &[
        AGENT_OWN,
        HOW,
        rows::LEASE_OF_NAMES,
        rows::ELECTION,
        rows::CONNECTION,
        rows::FAST,
        rows::HEALTH,
        rows::METRICS_8080,
        ASKED,
        rows::LOGGING,
    ],
    read: |typed| {
        let serving = Serving {
            scheduler_names: Vec::new(),
            agent_scheduler_names: names("scheduler-name", &[typed.text("scheduler-name")])?,
            ..shared(typed)?
        };
        begin(typed, "agent-scheduler", serving, DEFAULT_QUEUE.into())
    },
};

const ASKED: Group = Group {
    title: "What can be asked of it",
    flags: &[
        ours(
            "ask-address",
            Takes::Text,
            "",
            "Where katmai explain and kubectl get explanation are answered over HTTPS, as HOST:PORT; nowhere where it is empty",
        ),
        ours(
            "ask-service",
            Takes::Text,
            "",
            "Service by which the API server reaches that address, as NAMESPACE/NAME or NAMESPACE/NAME:PORT; it is told so by an APIService",
        ),
    ],
};

const CHECK: Group = Group {
    title: "A configuration, looked at",
    flags: &[
        ours(
            "check-config",
            Takes::Text,
            "",
            "Say what this volcano-scheduler.conf means and what is wrong with it (- for standard input), and end",
        ),
        ours(
            "strict",
            Takes::Switch,
            "false",
            "With --check-config: fail on warnings, too",
        ),
        ours(
            "output",
            Takes::OneOf(&["text", "json"]),
            "text",
            "With --check-config: how to write it",
        ),
    ],
};

const OWN: Group = Group {
    title: "How it decides",
    flags: &[
        ours(
            "native-groups",
            Takes::Switch,
            "false",
            "Place gangs of Kubernetes' own (PodGroups of scheduling.k8s.io), too",
        ),
        ignored(
            "schedule-period",
            Takes::Duration,
            "1s",
            "Time between two cycles",
            ON_CHANGE,
        ),
        kept(
            "default-queue",
            Takes::Text,
            "default",
            "Queue that is made beside root when the scheduler may decide, unless it is there; gangs that name none are in default, which webhooks and controllers give them",
        ),
        kept(
            "priority-class",
            Takes::Switch,
            "true",
            "Look at PriorityClasses",
        ),
        ignored(
            "plugins-dir",
            Takes::Text,
            "",
            "Directory of plugins as shared objects",
            "shared objects of Go cannot be loaded; the extender plugin asks a server",
        ),
        ignored(
            "gate-removal-worker-num",
            Takes::Whole(0, 1 << 20),
            "5",
            "Threads that open gates of pods",
            ONE_THREAD,
        ),
        ignored(
            "ignored-provisioners",
            Takes::Texts,
            "",
            "Provisioners whose volumes count against no limit of a node",
            "a driver that tells no limit in its CSINode has none",
        ),
        ignored(
            "enable-pprof",
            Takes::Switch,
            "false",
            "Serve profiles of Go",
            "profiles are taken with perf",
        ),
    ],
};

const NAMES: Group = Group {
    title: "Whom it serves",
    flags: &[
        kept(
            "scheduler-name",
            Takes::Texts,
            "volcano",
            "Name by which pods ask for gangs and queues; may be given several times",
        ),
        ours(
            "agent-scheduler-name",
            Takes::Texts,
            "",
            "Name by which pods ask to be placed one by one, without gangs and queues; may be given several times",
        ),
        kept(
            "scheduler-sharding-name",
            Takes::Text,
            "volcano",
            "The NodeShard that holds this scheduler's nodes",
        ),
    ],
};

const AGENT_OWN: Group = Group {
    title: "Whom it serves",
    flags: &[
        kept(
            "scheduler-name",
            Takes::Text,
            "agent-scheduler",
            "Name by which pods ask to be placed",
        ),
        ignored(
            "scheduler-worker-count",
            Takes::Whole(1, 1 << 20),
            "1",
            "Threads that place pods",
            ONE_THREAD,
        ),
        kept(
            "scheduler-sharding-name",
            Takes::Text,
            "agent-scheduler",
            "The NodeShard that holds this scheduler's nodes",
        ),
    ],
};

const HOW: Group = Group {
    title: "How it decides",
    flags: &[
        kept(
            "scheduler-conf",
            Takes::Text,
            "",
            "The scheduler's configuration (volcano-scheduler.conf), read again whenever it changes",
        ),
        kept(
            "disable-default-scheduler-config",
            Takes::Switch,
            "false",
            "Refuse to start without --scheduler-conf, instead of using the built-in configuration",
        ),
        kept(
            "node-selector",
            Takes::Texts,
            "",
            "Label of the nodes to use, as KEY:VALUE; may be given several times, one of them is enough",
        ),
        kept(
            "scheduler-sharding-mode",
            Takes::OneOf(&["none", "hard", "soft"]),
            "none",
            "What nodes of other shards are: none (there are no shards), hard (no nodes) or soft (the last choice)",
        ),
        kept(
            "feature-gates",
            Takes::Texts,
            "",
            "Feature gates, as NAME=true or NAME=false",
        ),
        ours(
            "events-per-pod",
            Takes::Switch,
            "false",
            "Write events for each pod of a gang, not only for the gang",
        ),
        ignored(
            "csi-storage",
            Takes::Switch,
            "true",
            "Look at the room of storage",
            "it is always looked at",
        ),
        ignored(
            "resync-period",
            Takes::Duration,
            "0s",
            "How often everything is listed anew",
            "what was watched is never doubted; a watch that ends is begun where it ended",
        ),
        ignored(
            "resource-sync-timeout",
            Takes::Duration,
            "60s",
            "How long to wait for the first lists",
            "nothing is decided before everything is listed",
        ),
        ignored(
            "node-worker-threads",
            Takes::Whole(0, 1 << 20),
            "20",
            "Threads that read nodes",
            ONE_THREAD,
        ),
        ignored(
            "minimum-feasible-nodes",
            ANY,
            "100",
            "How many nodes are found before the search ends",
            EVERY_NODE,
        ),
        ignored(
            "minimum-percentage-nodes-to-find",
            ANY,
            "5",
            "The least share of nodes that is looked at",
            EVERY_NODE,
        ),
        ignored(
            "percentage-nodes-to-find",
            ANY,
            "0",
            "The share of nodes that is looked at",
            EVERY_NODE,
        ),
        kept(
            "cache-dumper",
            Takes::Switch,
            "true",
            "Write what is known to a file on SIGUSR1, which katmai explain and whatif read with --dump, and its numbers to the log on SIGUSR2",
        ),
        kept(
            "cache-dump-dir",
            Takes::Text,
            "/tmp",
            "Directory of that file, snapshot-SECONDS.json",
        ),
        ours(
            "decision-log-dir",
            Takes::Text,
            "",
            "Log every decision, with what it was made of, below this directory",
        ),
        ours(
            "decision-log-hours",
            Takes::Whole(1, 24 * 366),
            "24",
            "What is older goes",
        ),
        ours(
            "decision-log-max",
            Takes::Whole(1, 1 << 20),
            "1024",
            "The oldest goes beyond so many MiB",
        ),
    ],
};

fn shared(typed: &Typed<'_>) -> anyhow::Result<Serving> {
    if std::env::var_os("BATCH_BIND_NUM").is_some() {
        console::complain(
            "warning: BATCH_BIND_NUM has no effect: what a cycle decided is written as soon as it is decided",
        );
    }
    let gates = Gates::of_schedulers(&typed.texts("feature-gates"))?;
    Ok(Serving {
        reach: reach(
            &typed.texts("node-selector"),
            typed.text("scheduler-sharding-mode"),
            typed.text("scheduler-sharding-name"),
        )?,
        queue_gates: gates.opens_queue_gates,
        features: gates.features,
        unwatched: gates.unwatched,
        events: match typed.switch("events-per-pod") {
            true => Events::PerPod,
            false => Events::PerGang,
        },
        ..Serving::default()
    })
}

/// The exit code where only a configuration was to be looked at.
fn checked(typed: &Typed<'_>) -> anyhow::Result<Option<u8>> {
    let path = typed.text("check-config");
    if path.is_empty() {
        for flag in ["strict", "output"] {
            if typed.is_given(flag) {
                bail!("--{flag} is about --check-config, which is not given");
            }
        }
        return Ok(None);
    }
    Ok(Some(check(&CheckRequest {
        path: path.into(),
        strictness: match typed.switch("strict") {
            true => Strictness::Strict,
            false => Strictness::Lenient,
        },
        format: match typed.text("output") {
            "json" => Format::Json,
            _ => Format::Text,
        },
    })))
}

fn begin(
    typed: &Typed<'_>,
    name: &'static str,
    serving: Serving,
    default_queue: Box<str>,
) -> anyhow::Result<Outcome> {
    let conf = Some(typed.text("scheduler-conf")).filter(|path| !path.is_empty());
    if conf.is_none() && typed.switch("disable-default-scheduler-config") {
        bail!("--disable-default-scheduler-config: there is no --scheduler-conf to decide by");
    }
    let all = (serving.scheduler_names.iter()).chain(&serving.agent_scheduler_names);
    let leases: BTreeSet<Box<str>> = all.cloned().collect();
    let leases = Vec::from_iter(leases);
    let served = Served {
        scheduler_names: &serving.scheduler_names,
        agent_scheduler_names: &serving.agent_scheduler_names,
        reach: &serving.reach,
    };
    let serves = served.to_string();
    let deciding = Deciding::Scheduler {
        serving,
        conf: conf.map(PathBuf::from),
        decisions: super::decisions(typed),
        questions: doors::questions(typed)?,
        default_queue,
        dumps: typed
            .switch("cache-dumper")
            .then(|| typed.text("cache-dump-dir").into()),
    };
    super::process(typed, name, deciding, &leases, &serves)
}
