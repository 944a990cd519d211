//! What each flag changes of what is started: one that counts and changes nothing would be ignored unseen.

use std::time::Duration;

use super::election::Written;
use super::*;
use crate::EXIT_FAILED;
use crate::start::{Printed, TlsFiles, WebhooksRequest};
use flag::Fate;

/// Flags as they are typed, each with another value than its default, and behind a space what it needs beside it.
type Lines = &'static [&'static str];

/// Of every process.
const EVERY: Lines = &[
    "--kubeconfig=/k",
    "--master=https://one:6443",
    "--v=3",
    "--version",
];
/// Where a process is asked how it is.
const HEALTH: Lines = &[
    "--enable-healthz",
    "--healthz-address=127.0.0.1:7 --enable-healthz",
    "--tls-cert-file=/chain --tls-cert-file=/c --tls-private-key-file=/k --ca-cert-file=/a",
    "--tls-private-key-file=/key --tls-cert-file=/c --tls-private-key-file=/k --ca-cert-file=/a",
    "--ca-cert-file=/authority --tls-cert-file=/c --tls-private-key-file=/k --ca-cert-file=/a",
];
/// Of those that decide.
const DECIDING: Lines = &[
    "--leader-elect=false",
    "--leader-elect-lease-duration=1m30s",
    "--leader-elect-renew-deadline=7s",
    "--leader-elect-retry-period=3s",
    "--leader-elect-resource-lock=endpoints",
    "--leader-elect-resource-namespace=mine",
    "--leader-elect-resource-name=one",
    "--lock-object-namespace=old",
    "--enable-metrics --listen-address=:8",
    "--listen-address=127.0.0.1:9 --enable-metrics",
];
const SCHEDULERS: Lines = &[
    "--scheduler-name=other",
    "--scheduler-sharding-name=mine",
    "--scheduler-conf=/conf",
    "--disable-default-scheduler-config",
    "--node-selector=zone:a",
    "--scheduler-sharding-mode=soft",
    "--feature-gates=SchedulingGatesQueueAdmission=true,QueueCommandSync=false,DynamicResourceAllocation=false",
    "--events-per-pod",
    "--cache-dumper=false",
    "--cache-dump-dir=/d",
    "--decision-log-dir=/log",
    "--decision-log-hours=7 --decision-log-dir=/log",
    "--decision-log-max=9 --decision-log-dir=/log",
    "--ask-address=127.0.0.1:8444",
    "--ask-service=ns/asked --ask-address=127.0.0.1:8444",
];
const GANGS: Lines = &[
    "--agent-scheduler-name=single",
    "--native-groups",
    "--default-queue=team",
    "--priority-class=false",
    "--check-config=/nowhere",
    "--strict",
    "--output=json",
];
const CONTROLLERS: Lines = &[
    "--controllers=sharding-controller",
    "--scheduler-name=other",
    "--native-groups",
    "--max-requeue-num=7",
    "--ssh-plugin=upstream",
    "--service-gate=dns-answer",
    "--service-gate-deadline=7s",
    "--peers-image=busybox",
    "--cluster-dns=10.96.0.10",
    "--cluster-domain=example.org",
    "--inherit-owner-annotations=false",
    "--feature-gates=QueueCommandSync=false,CronVolcanoJobSupport=false --controllers=queue-controller,cronjob-controller",
    "--scheduler-configs=mine:volcano:0.1:0.5:true:3:7",
    "--shard-sync-period=7s",
    "--enable-node-event-trigger=false --controllers=sharding-controller",
    "--sharding-configmap=mine",
    "--sharding-configmap-namespace=mine",
];
const HYPER_NODES: Lines = &["--feature-gates=QueueCommandSync=false"];
const WEBHOOKS: Lines = &[
    "--port=9443",
    "--listen-address=127.0.0.1",
    "--webhook-namespace=mine",
    "--webhook-service-name=hooks",
    "--webhook-url=https://hooks.example.org",
    "--graceful-shutdown-time=7s",
    "--print=policies",
    "--enabled-admission=/jobs/mutate",
    "--admission-conf=/groups",
    "--scheduler-name=other",
    "--max-queue-depth=7",
    "--enable-root-queue-protection=false",
    "--enable-queue-allocated-pods-check",
    "--allow-plugin-keys",
    "--refuse-new-queues",
    "--feature-gates=SchedulingGatesQueueAdmission=true,PodLevelResources=false",
];

/// What is typed of each process: all of its flags that are not without effect.
const TYPED: &[(&str, &[Lines])] = &[
    ("controllers", &[EVERY, HEALTH, DECIDING, CONTROLLERS]),
    (
        "hypernode-controller",
        &[EVERY, HEALTH, DECIDING, HYPER_NODES],
    ),
    ("agent-scheduler", &[EVERY, HEALTH, DECIDING, SCHEDULERS]),
    ("scheduler", &[EVERY, HEALTH, DECIDING, SCHEDULERS, GANGS]),
    ("webhooks", &[EVERY, HEALTH, WEBHOOKS]),
];

/// Flags that count and leave no trace in what is started, each with why.
const TRACELESS: &[(&str, &str)] = &[
    (
        "--leader-elect-resource-lock",
        "a Lease is held whatever is said, with a warning",
    ),
    (
        "hypernode-controller --feature-gates",
        "no gate is about what it does; one that there is not is refused",
    ),
];

/// What would be started, a line a value with the way to it; what would not, by its exit code.
fn started(typed: &[&str]) -> Vec<String> {
    let start = match outcome(typed) {
        Outcome::Start(start) => start,
        Outcome::Exit(code) => return vec![format!("ends: {code}")],
    };
    let text = match *start {
        Start::Beside(process) => format!("{process:#?}"),
        Start::Webhooks(request) => format!("{request:#?}"),
        other => panic!("{other:?} is no process"),
    };
    let lines = values(&text).into_iter();
    // It is another each time.
    lines
        .filter(|line| !line.starts_with("election.identity"))
        .collect()
}

/// The leaves of a value that was written with `{:#?}`, each as `way.to.it: value`; in lists and pairs the way is
/// a number.
fn values(text: &str) -> Vec<String> {
    // The way to it, and how many children without a name it had, where they are counted.
    let mut open: Vec<(String, Option<usize>)> = Vec::new();
    let mut values = Vec::new();
    for line in text.lines().map(str::trim) {
        if matches!(line.trim_end_matches(','), "}" | ")" | "]") {
            open.pop();
            continue;
        }
        let (name, rest) = match line.split_once(": ") {
            Some((name, rest)) if !name.contains('"') => (Some(name.to_owned()), rest),
            _ => (None, line),
        };
        let parent = open.last_mut();
        let way = parent.map_or(String::new(), |(way, children)| {
            let own = name.or_else(|| {
                let at = children.as_mut()?;
                *at += 1;
                Some((*at - 1).to_string())
            });
            let parts = [Some(way.clone()).filter(|it| !it.is_empty()), own];
            Vec::from_iter(parts.into_iter().flatten()).join(".")
        });
        match rest.chars().last() {
            Some('[') => open.push((way, Some(0))),
            Some('(') if rest == "(" => open.push((way, Some(0))),
            Some('{' | '(') => open.push((way, None)),
            _ => values.push(format!("{way}: {}", rest.trim_end_matches(','))),
        }
    }
    values
}

/// What of a process becomes otherwise by the flag of this line.
fn changed(verb: &str, line: &str) -> Vec<String> {
    let (flag, beside) = line.split_once(' ').unwrap_or((line, ""));
    let mut typed = vec!["katmai", verb];
    typed.extend(beside.split_whitespace());
    let without = started(&typed);
    typed.push(flag);
    let mut changed = started(&typed);
    changed.retain(|value| !without.contains(value));
    changed
}

fn all_of(verb: &str, lines: &[Lines]) -> String {
    let lines = lines.iter().copied().flatten();
    let told = lines.map(|line| {
        let values = changed(verb, line);
        let values = values.iter().map(|value| format!("\n    {value}"));
        format!("{line}{}\n", String::from_iter(values))
    });
    told.collect()
}

fn name_of(line: &str) -> &str {
    let end = line.find(['=', ' ']).unwrap_or(line.len());
    &line[..end]
}

/// A flag with another value than its default.
fn otherwise(flag: &Flag) -> String {
    let value = match flag.takes {
        flag::Takes::OneOf(words) => words[1],
        flag::Takes::Whole(..) => "7",
        flag::Takes::Rate => "7.5",
        flag::Takes::Duration => "7s",
        flag::Takes::Switch if flag.default == "true" => "false",
        flag::Takes::Switch => "true",
        flag::Takes::Text | flag::Takes::Texts => "other",
    };
    assert_ne!(value, flag.default, "{}", flag.name);
    format!("--{}={value}", flag.name)
}

#[test]
fn every_flag_that_counts_changes_what_is_started() {
    for row in PROCESSES {
        let verb = row.verb;
        let typed = TYPED.iter().find(|(of, _)| *of == verb);
        let (_, typed) = typed.unwrap_or_else(|| panic!("nothing is typed of {verb}"));
        let typed: Vec<&str> = typed.iter().copied().flatten().copied().collect();
        let counts = row
            .flags()
            .filter(|flag| !matches!(flag.fate, Fate::Ignored(_)));
        let mut counts: Vec<String> = counts.map(|flag| format!("--{}", flag.name)).collect();
        let mut names: Vec<&str> = typed.iter().map(|line| name_of(line)).collect();
        counts.sort_unstable();
        names.sort_unstable();
        assert_eq!(names, counts, "{verb}: a line for each flag that counts");
        for line in typed {
            let name = name_of(line);
            let of_process = format!("{verb} {name}");
            let mut traceless = TRACELESS.iter();
            let is_traceless = traceless.any(|(of, _)| *of == name || *of == of_process);
            let changed = changed(verb, line);
            assert_eq!(
                changed.is_empty(),
                is_traceless,
                "{verb} {line}: {changed:?}"
            );
        }
    }
}

#[test]
fn a_flag_without_effect_changes_nothing() {
    for row in PROCESSES {
        let verb = row.verb;
        let ignored = row
            .flags()
            .filter(|flag| matches!(flag.fate, Fate::Ignored(_)));
        for flag in ignored {
            let typed = otherwise(flag);
            let with = started(&["katmai", verb, &typed]);
            assert_eq!(with, started(&["katmai", verb]), "{verb} {typed}");
        }
    }
}

#[test]
fn what_processes_share_becomes_what_it_is_told_to_be() {
    for (verb, _) in TYPED.iter().filter(|(verb, _)| *verb != "webhooks") {
        let told = all_of(verb, &[EVERY, HEALTH, DECIDING]);
        assert_eq!(
            told,
            all_of("scheduler", &[EVERY, HEALTH, DECIDING]),
            "{verb}"
        );
    }
    insta::assert_snapshot!(all_of("scheduler", &[EVERY, HEALTH, DECIDING]), @r#"
    --kubeconfig=/k
        connection.kubeconfig: "/k"
    --master=https://one:6443
        connection.master: "https://one:6443"
    --v=3
        verbosity: 3
    --version
        ends: 0
    --enable-healthz
        doors.health: [::]:11251
    --healthz-address=127.0.0.1:7 --enable-healthz
        doors.health: 127.0.0.1:7
    --tls-cert-file=/chain --tls-cert-file=/c --tls-private-key-file=/k --ca-cert-file=/a
        doors.tls.chain: "/chain"
    --tls-private-key-file=/key --tls-cert-file=/c --tls-private-key-file=/k --ca-cert-file=/a
        doors.tls.key: "/key"
    --ca-cert-file=/authority --tls-cert-file=/c --tls-private-key-file=/k --ca-cert-file=/a
        doors.tls.authority: "/authority"
    --leader-elect=false
        election: None
    --leader-elect-lease-duration=1m30s
        election.lease_ms: 90000
    --leader-elect-renew-deadline=7s
        election.renew_ms: 7000
    --leader-elect-retry-period=3s
        election.retry_ms: 3000
    --leader-elect-resource-lock=endpoints
    --leader-elect-resource-namespace=mine
        election.namespace: "mine"
    --leader-elect-resource-name=one
        election.names.0: "one"
    --lock-object-namespace=old
        election.namespace: "old"
    --enable-metrics --listen-address=:8
        doors.metrics: [::]:8
    --listen-address=127.0.0.1:9 --enable-metrics
        doors.metrics: 127.0.0.1:9
    "#);
}

#[test]
fn a_scheduler_becomes_what_it_is_told_to_be() {
    insta::assert_snapshot!(all_of("scheduler", &[SCHEDULERS, GANGS]), @r#"
    --scheduler-name=other
        deciding.serving.scheduler_names.0: "other"
        election.names.0: "other"
        election.serves: "pods of other"
    --scheduler-sharding-name=mine
        deciding.serving.reach.shard: "mine"
    --scheduler-conf=/conf
        deciding.conf: "/conf"
    --disable-default-scheduler-config
        ends: 2
    --node-selector=zone:a
        deciding.serving.reach.selector.0.0: "zone"
        deciding.serving.reach.selector.0.1: "a"
        election.serves: "pods of volcano; on nodes of zone:a"
    --scheduler-sharding-mode=soft
        deciding.serving.reach.sharding: Soft
        election.serves: "pods of volcano; soft shard volcano"
    --feature-gates=SchedulingGatesQueueAdmission=true,QueueCommandSync=false,DynamicResourceAllocation=false
        deciding.serving.queue_gates: true
        deciding.serving.features.device_claims: false
        deciding.serving.unwatched.0: Command
    --events-per-pod
        deciding.serving.events: PerPod
    --cache-dumper=false
        deciding.dumps: None
    --cache-dump-dir=/d
        deciding.dumps: "/d"
    --decision-log-dir=/log
        deciding.decisions.directory: "/log"
        deciding.decisions.hours: 24
        deciding.decisions.mebibytes: 1024
    --decision-log-hours=7 --decision-log-dir=/log
        deciding.decisions.hours: 7
    --decision-log-max=9 --decision-log-dir=/log
        deciding.decisions.mebibytes: 9
    --ask-address=127.0.0.1:8444
        deciding.questions.address: 127.0.0.1:8444
        deciding.questions.service: None
        deciding.questions.tls: None
    --ask-service=ns/asked --ask-address=127.0.0.1:8444
        deciding.questions.service.namespace: "ns"
        deciding.questions.service.name: "asked"
        deciding.questions.service.port: 443
    --agent-scheduler-name=single
        deciding.serving.agent_scheduler_names.0: "single"
        election.names.0: "single"
        election.names.1: "volcano"
        election.serves: "pods of volcano; pods of single one by one"
    --native-groups
        deciding.serving.native_groups: true
    --default-queue=team
        deciding.default_queue: "team"
    --priority-class=false
        deciding.serving.unwatched.0: PriorityClass
    --check-config=/nowhere
        ends: 2
    --strict
        ends: 2
    --output=json
        ends: 2
    "#);
}

#[test]
fn a_scheduler_of_single_pods_becomes_what_it_is_told_to_be() {
    insta::assert_snapshot!(all_of("agent-scheduler", &[SCHEDULERS]), @r#"
    --scheduler-name=other
        deciding.serving.agent_scheduler_names.0: "other"
        election.names.0: "other"
        election.serves: "pods of other one by one"
    --scheduler-sharding-name=mine
        deciding.serving.reach.shard: "mine"
    --scheduler-conf=/conf
        deciding.conf: "/conf"
    --disable-default-scheduler-config
        ends: 2
    --node-selector=zone:a
        deciding.serving.reach.selector.0.0: "zone"
        deciding.serving.reach.selector.0.1: "a"
        election.serves: "pods of agent-scheduler one by one; on nodes of zone:a"
    --scheduler-sharding-mode=soft
        deciding.serving.reach.sharding: Soft
        election.serves: "pods of agent-scheduler one by one; soft shard agent-scheduler"
    --feature-gates=SchedulingGatesQueueAdmission=true,QueueCommandSync=false,DynamicResourceAllocation=false
        deciding.serving.queue_gates: true
        deciding.serving.features.device_claims: false
        deciding.serving.unwatched.0: Command
    --events-per-pod
        deciding.serving.events: PerPod
    --cache-dumper=false
        deciding.dumps: None
    --cache-dump-dir=/d
        deciding.dumps: "/d"
    --decision-log-dir=/log
        deciding.decisions.directory: "/log"
        deciding.decisions.hours: 24
        deciding.decisions.mebibytes: 1024
    --decision-log-hours=7 --decision-log-dir=/log
        deciding.decisions.hours: 7
    --decision-log-max=9 --decision-log-dir=/log
        deciding.decisions.mebibytes: 9
    --ask-address=127.0.0.1:8444
        deciding.questions.address: 127.0.0.1:8444
        deciding.questions.service: None
        deciding.questions.tls: None
    --ask-service=ns/asked --ask-address=127.0.0.1:8444
        deciding.questions.service.namespace: "ns"
        deciding.questions.service.name: "asked"
        deciding.questions.service.port: 443
    "#);
}

#[test]
fn controllers_become_what_they_are_told_to_be() {
    insta::assert_snapshot!(all_of("controllers", &[CONTROLLERS]), @r#"
    --controllers=sharding-controller
        deciding.rows.0: "sharding"
        election.serves: "sharding-controller of volcano"
    --scheduler-name=other
        deciding.scheduler_names.0: "other"
        election.serves: "controllers of other"
    --native-groups
        deciding.native_groups: true
    --max-requeue-num=7
        deciding.failures_max: 7
    --ssh-plugin=upstream
        deciding.upstream_ssh: true
    --service-gate=dns-answer
        deciding.meeting.gate: DnsAnswer
    --service-gate-deadline=7s
        deciding.meeting.deadline: 7s
    --peers-image=busybox
        deciding.meeting.peers_image: "busybox"
    --cluster-dns=10.96.0.10
        deciding.name_servers.0: 10.96.0.10:53
    --cluster-domain=example.org
        deciding.cluster_domain: "example.org"
    --inherit-owner-annotations=false
        deciding.inherit_owner_annotations: false
    --feature-gates=QueueCommandSync=false,CronVolcanoJobSupport=false --controllers=queue-controller,cronjob-controller
        deciding.rows.0: "queue"
        deciding.unwatched.0: Command
        election.serves: "queue-controller of volcano"
    --scheduler-configs=mine:volcano:0.1:0.5:true:3:7
        deciding.shards.shards.0.name: "mine"
        deciding.shards.shards.0.policies.0.rule.min: 10
        deciding.shards.shards.0.policies.0.rule.max: 50
        deciding.shards.shards.0.policies.1.rule.label: "node.volcano.sh/warmup"
        deciding.shards.shards.0.policies.1.rule.value: "true"
        deciding.shards.shards.0.policies.2.rule.max: 7
        deciding.shards.shards.0.policies.2.weight: 1000
    --shard-sync-period=7s
        deciding.shards.period_ms: 7000
    --enable-node-event-trigger=false --controllers=sharding-controller
        deciding.rows.0: "sharding_by_period"
    --sharding-configmap=mine
        deciding.sharding.1: "mine"
    --sharding-configmap-namespace=mine
        deciding.sharding.0: "mine"
    "#);
}

#[test]
fn webhooks_become_what_they_are_told_to_be() {
    insta::assert_snapshot!(all_of("webhooks", &[EVERY, HEALTH, WEBHOOKS]), @r#"
    --kubeconfig=/k
        connection.kubeconfig: "/k"
    --master=https://one:6443
        connection.master: "https://one:6443"
    --v=3
        verbosity: 3
    --version
        ends: 0
    --enable-healthz
        health: [::]:11251
    --healthz-address=127.0.0.1:7 --enable-healthz
        health: 127.0.0.1:7
    --tls-cert-file=/chain --tls-cert-file=/c --tls-private-key-file=/k --ca-cert-file=/a
        tls.chain: "/chain"
    --tls-private-key-file=/key --tls-cert-file=/c --tls-private-key-file=/k --ca-cert-file=/a
        tls.key: "/key"
    --ca-cert-file=/authority --tls-cert-file=/c --tls-private-key-file=/k --ca-cert-file=/a
        tls.authority: "/authority"
    --port=9443
        address: [::]:9443
    --listen-address=127.0.0.1
        address: 127.0.0.1:8443
    --webhook-namespace=mine
        namespace: "mine"
    --webhook-service-name=hooks
        service_name: "hooks"
    --webhook-url=https://hooks.example.org
        url: "https://hooks.example.org"
    --graceful-shutdown-time=7s
        farewell: 7s
    --print=policies
        print: Policies
    --enabled-admission=/jobs/mutate
        paths.0: "/jobs/mutate"
    --admission-conf=/groups
        admission_conf: "/groups"
    --scheduler-name=other
        scheduler_names.0: "other"
    --max-queue-depth=7
        queue_depth_max: 7
    --enable-root-queue-protection=false
        keeps_root: false
    --enable-queue-allocated-pods-check
        keeps_full_queues: true
    --allow-plugin-keys
        allows_plugin_keys: true
    --refuse-new-queues
        refuses_new_queues: true
    --feature-gates=SchedulingGatesQueueAdmission=true,PodLevelResources=false
        queue_gates: true
        passes_pod_level: true
    "#);
}

#[test]
fn webhooks_hear_all_of_it_at_once() {
    let lines = [EVERY, HEALTH, WEBHOOKS].into_iter().flatten();
    let flags = lines.filter_map(|line| line.split(' ').next());
    let flags = flags.filter(|flag| *flag != "--version");
    let typed = ["katmai", "webhooks"].into_iter().chain(flags);
    let Outcome::Start(start) = outcome(&Vec::from_iter(typed)) else {
        panic!("it is understood");
    };
    let Start::Webhooks(request) = *start else {
        panic!("it is about webhooks");
    };
    let wanted = WebhooksRequest {
        connection: Connection {
            kubeconfig: Some("/k".into()),
            master: Some("https://one:6443".into()),
        },
        print: Some(Printed::Policies),
        address: "127.0.0.1:9443".parse().expect("an address"),
        namespace: Some("mine".into()),
        service_name: Some("hooks".into()),
        url: Some("https://hooks.example.org".into()),
        tls: Some(TlsFiles {
            chain: "/chain".into(),
            key: "/key".into(),
            authority: "/authority".into(),
        }),
        farewell: Duration::from_secs(7),
        health: Some("127.0.0.1:7".parse().expect("an address")),
        paths: vec!["/jobs/mutate".into()],
        admission_conf: Some("/groups".into()),
        scheduler_names: vec!["other".into()],
        queue_depth_max: 7,
        keeps_root: false,
        keeps_full_queues: true,
        allows_plugin_keys: true,
        refuses_new_queues: true,
        queue_gates: true,
        passes_pod_level: true,
        verbosity: 3,
    };
    assert_eq!(request, wanted);
}

#[test]
fn a_configuration_that_is_looked_at_starts_nothing_and_a_warning_counts_where_it_is_said() {
    const WARNED: &str = "actions: allocate\ntiers: [{plugins: [{name: gagn}]}]\n";
    let file = Written::new("looked-at.conf", WARNED);
    let conf = format!("--check-config={}", file.0.display());
    for (beside, code) in [("--strict=false", EXIT_COMPLETE), ("--strict", EXIT_FAILED)] {
        let ends = started(&["katmai", "scheduler", &conf, beside]);
        assert_eq!(ends, [format!("ends: {code}")], "{beside}");
    }
}
