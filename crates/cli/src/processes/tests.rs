//! What processes understand of what is typed.

use std::collections::{BTreeMap, BTreeSet};

use api::kind::Kind;

use super::*;
use crate::start::{Controllers, Meeting, ServiceGate};
use crate::verbs::{command, parse, program};
use crate::{EXIT_BAD_INPUT, EXIT_COMPLETE};

mod election;
mod heeded;

fn outcome(typed: &[&str]) -> Outcome {
    parse(typed.iter().map(OsString::from).collect())
}

fn process(typed: &[&str]) -> Process {
    let Outcome::Start(start) = outcome(typed) else {
        panic!("{typed:?} is not understood");
    };
    match *start {
        Start::Beside(process) => process,
        _ => panic!("{typed:?} is no process"),
    }
}

fn row(verb: &str) -> &'static Row {
    find(verb).expect("there is such a process")
}

fn warnings(verb: &str, typed: &[&str]) -> Vec<String> {
    let row = row(verb);
    let typed: Vec<&str> = [verb].iter().chain(typed).copied().collect();
    let matches = row.command().get_matches_from(typed);
    Typed::new(&matches, row.flags().collect()).warnings()
}

/// What the parser takes of a process, by the long names of its arguments: whether help says it, and its short
/// name. What has no long name is a mistake, but for words.
fn accepted(mut command: Command) -> BTreeMap<String, (bool, Option<char>)> {
    command.build();
    assert!(!command.has_subcommands());
    let mut accepted = BTreeMap::new();
    for argument in command.get_arguments() {
        let Some(name) = argument.get_long() else {
            assert_eq!(argument.get_id(), WORDS);
            continue;
        };
        let is_shown = !argument.is_hide_set() && !argument.is_hide_long_help_set();
        assert_eq!(argument.get_all_aliases(), None, "{name}");
        assert_eq!(argument.get_all_short_aliases(), None, "{name}");
        let twin = accepted.insert(name.to_owned(), (is_shown, argument.get_short()));
        assert_eq!(twin, None, "{name}");
    }
    accepted
}

/// What help tells of a process: each flag with its default.
fn told(row: &Row) -> BTreeMap<String, String> {
    let help = row.command().term_width(0).render_long_help().to_string();
    let mut told = BTreeMap::new();
    let mut last = None;
    for line in help.lines().map(str::trim) {
        if let Some((_, flag)) = line.split_once("--").filter(|_| line.starts_with('-')) {
            let name = flag.split([' ', '=', '[']).next();
            last = name.map(str::to_owned);
        }
        if let (Some(name), Some((_, default))) = (&last, line.rsplit_once("[default: ")) {
            told.insert(name.clone(), default.trim_end_matches(']').to_owned());
        }
    }
    told
}

/// S1.5: help lists every accepted flag with its default; what is accepted is asked of the parser itself.
#[test]
fn help_tells_each_flag_with_its_default_and_no_other() {
    for row in PROCESSES {
        let shown = |flag: &Flag| match flag.default {
            "" => "\"\"".to_owned(),
            some => some.to_owned(),
        };
        let rows: BTreeMap<String, String> = row
            .flags()
            .map(|flag| (flag.name.to_owned(), shown(flag)))
            .collect();
        let told = told(row);
        assert_eq!(told, rows, "{}", row.verb);

        // Help itself has no default.
        let short = |name: &str| match name {
            "help" => Some('h'),
            "output" => Some('o'),
            "v" => Some('v'),
            _ => None,
        };
        let names = rows.keys().map(String::as_str).chain(["help"]);
        let expected: BTreeMap<String, (bool, Option<char>)> = names
            .map(|name| (name.to_owned(), (true, short(name))))
            .collect();
        // As a verb, and under upstream's name.
        let mut whole = command();
        whole.build();
        let verb = whole.find_subcommand(row.verb).cloned();
        for parser in [verb, program(row.upstream)] {
            let parser = parser.expect("there is such a program");
            assert_eq!(accepted(parser), expected, "{}", row.verb);
        }
    }
}

/// Chapter 6 of Volcano's facts: every flag of upstream's binaries, with its default.
const UPSTREAM: &[(&str, &str)] = &[
    (
        "vc-scheduler",
        "master= kubeconfig= scheduler-name=volcano scheduler-conf= schedule-period=1s resync-period=0s \
         default-queue=default priority-class=true csi-storage=true kube-api-qps=2000 kube-api-burst=2000 \
         node-worker-threads=20 minimum-feasible-nodes=100 minimum-percentage-nodes-to-find=5 \
         percentage-nodes-to-find=0 plugins-dir= node-selector= ignored-provisioners= cache-dumper=true \
         cache-dump-dir=/tmp gate-removal-worker-num=5 resource-sync-timeout=60s \
         disable-default-scheduler-config=false scheduler-sharding-mode=none scheduler-sharding-name=volcano \
         enable-metrics=false enable-pprof=false listen-address=:8080 enable-healthz=false \
         healthz-address=:11251 ca-cert-file= tls-cert-file= tls-private-key-file=",
    ),
    (
        "vc-agent-scheduler",
        "master= kubeconfig= scheduler-name=agent-scheduler scheduler-conf= resync-period=0s csi-storage=true \
         kube-api-qps=2000 kube-api-burst=2000 node-worker-threads=20 minimum-feasible-nodes=100 \
         minimum-percentage-nodes-to-find=5 percentage-nodes-to-find=0 node-selector= cache-dumper=true \
         cache-dump-dir=/tmp resource-sync-timeout=60s disable-default-scheduler-config=false \
         scheduler-sharding-mode=none scheduler-sharding-name=agent-scheduler scheduler-worker-count=1 \
         enable-metrics=false listen-address=:8080 enable-healthz=false healthz-address=:11251 ca-cert-file= \
         tls-cert-file= tls-private-key-file=",
    ),
    (
        "vc-controller-manager",
        "master= kubeconfig= scheduler-name=volcano worker-threads=3 worker-threads-for-cronjob=3 \
         worker-threads-for-podgroup=5 worker-threads-for-gc=1 worker-threads-for-queue=5 max-requeue-num=15 \
         inherit-owner-annotations=true controllers=*,-sharding-controller kube-api-qps=50 kube-api-burst=100 \
         listen-address=:8081 enable-metrics=false enable-healthz=false healthz-address=:11251 ca-cert-file= \
         tls-cert-file= tls-private-key-file= shard-sync-period=60s \
         scheduler-configs=volcano:volcano:0.0:0.6:false:2:100,agent-scheduler:agent:0.7:1.0:true:2:100 \
         enable-node-event-trigger=true sharding-configmap=volcano-sharding-configmap \
         sharding-configmap-namespace=volcano-system",
    ),
    (
        "vc-hypernode-controller-manager",
        "kube-api-qps=50 kube-api-burst=100 enable-healthz=false healthz-address=:11251 \
         enable-metrics=false listen-address=:8081",
    ),
    (
        "vc-webhook-manager",
        "master= kubeconfig= port=8443 listen-address= enabled-admission= webhook-namespace= \
         webhook-service-name= webhook-url= admission-conf= scheduler-name=volcano kube-api-qps=50 \
         kube-api-burst=100 graceful-shutdown-time=30s enable-healthz=false healthz-address=:11251 \
         enable-queue-allocated-pods-check=false max-queue-depth=5 enable-root-queue-protection=true \
         tls-cert-file= tls-private-key-file= ca-cert-file=",
    ),
];

/// Flags of all of them.
const UPSTREAM_ALL: &str = "feature-gates= version=false v=0 vmodule= logtostderr=true \
    alsologtostderr=false stderrthreshold=INFO log-dir= log-file= log-file-max-size=1800 \
    log-flush-frequency=5s log-backtrace-at=:0 add-dir-header=false one-output=false skip-headers=false \
    skip-log-headers=false alsologtostderrthreshold=0 legacy-stderr-threshold-behavior=true";

/// Flags of those that are elected.
const UPSTREAM_ELECTED: &str = "leader-elect=true leader-elect-lease-duration=15s \
    leader-elect-renew-deadline=10s leader-elect-retry-period=2s leader-elect-resource-lock=leases \
    leader-elect-resource-namespace=volcano-system lock-object-namespace= leader-elect-resource-name=";

#[test]
fn every_flag_of_upstreams_is_understood_with_its_default_and_under_its_name() {
    for (binary, flags) in UPSTREAM {
        let row = called(binary).expect("upstream's binary is a process of ours");
        let known: BTreeMap<&str, &Flag> = row.flags().map(|flag| (flag.name, flag)).collect();
        let elected = match *binary {
            "vc-webhook-manager" => "",
            _ => UPSTREAM_ELECTED,
        };
        for (name, default) in [flags, UPSTREAM_ALL, elected]
            .iter()
            .flat_map(|flags| flags.split_whitespace())
            .filter_map(|flag| flag.split_once('='))
        {
            let flag = known.get(name);
            let flag = flag.unwrap_or_else(|| panic!("{binary} has no --{name}"));
            let named = name == "leader-elect-resource-name";
            assert!(
                flag.default == default || named,
                "{binary} --{name}={}",
                flag.default
            );
        }
        assert!(matches!(
            outcome(&[binary, "--version"]),
            Outcome::Exit(EXIT_COMPLETE)
        ));
    }
}

#[test]
fn what_does_not_do_what_it_does_upstream_is_said_once() {
    for row in PROCESSES {
        for flag in row.flags() {
            let value = match flag.takes {
                flag::Takes::OneOf(words) => words[0],
                flag::Takes::Whole(..) => "7",
                flag::Takes::Rate => "7.5",
                flag::Takes::Duration => "3s",
                flag::Takes::Switch => "true",
                flag::Takes::Text | flag::Takes::Texts => "x",
            };
            let typed = format!("--{}={value}", flag.name);
            let told = warnings(row.verb, &[&typed]);
            let is_told = matches!(flag.fate, flag::Fate::Mapped(_) | flag::Fate::Ignored(_));
            assert_eq!(
                told.len(),
                usize::from(is_told),
                "{} {typed}: {told:?}",
                row.verb
            );
        }
    }
}

#[test]
fn each_name_of_a_controller_switches_rows_of_its_own() {
    let chosen = |words: &[&str]| controllers::chosen(words).expect("the words are known");
    let all = chosen(&["*"]);
    let different: BTreeSet<&str> = all.iter().copied().collect();
    assert_eq!(different.len(), all.len(), "no row has two names: {all:?}");
    for (name, rows) in controllers::NAMES {
        assert_eq!(chosen(&[name]), *rows);
        let without = chosen(&["*", &format!("-{name}")]);
        let rest: Vec<&str> = all
            .iter()
            .filter(|row| !rows.contains(row))
            .copied()
            .collect();
        assert_eq!(without, rest, "without {name}");
    }
    assert_eq!(
        chosen(&["*", "-job-controller"])
            .iter()
            .filter(|row| **row == "vcjob")
            .count(),
        0
    );
    assert!(chosen(&["*", "-job-controller"]).contains(&"vcjob_expiry"));
}

#[test]
fn a_controller_is_named_once_and_is_there() {
    let chosen = |words: &[&str]| {
        let rows = controllers::chosen(words).map(|rows| rows.join(" "));
        rows.map_err(|why| why.to_string())
    };
    let twice = Err("--controllers: queue-controller is named twice".to_owned());
    for again in ["queue-controller", "+queue-controller", "-queue-controller"] {
        assert_eq!(chosen(&["*", again, "queue-controller"]), twice);
    }
    let unknown = "--controllers: there is no \"quota-controller\"; there are job-controller, \
        cronjob-controller, queue-controller, pg-controller, gc-controller, jobflow-controller, \
        jobtemplate-controller, hyperNode-controller, sharding-controller, colocation-config-controller";
    for word in ["quota-controller", "-quota-controller"] {
        assert_eq!(chosen(&["*", word]), Err(unknown.to_owned()));
    }
    assert!(chosen(&["*", "--queue-controller"]).is_err());
    // A name holds before the star, wherever that stands and how often.
    assert_eq!(chosen(&["+queue-controller"]), Ok("queue".to_owned()));
    assert_eq!(
        chosen(&["-queue-controller", "*"]),
        chosen(&["*", "-queue-controller", "*"])
    );
    let none = "--controllers: none of those that are named is built";
    assert_eq!(chosen(&["-queue-controller"]), Err(none.to_owned()));
}

#[test]
fn a_process_is_what_it_was_told_to_be() {
    let typed = [
        "/usr/bin/vc-controller-manager",
        "--kube_api_qps=5",
        "--master",
        "https://one:6443",
        "--controllers=*,-gc-controller,-queue-controller",
        "--feature-gates=QueueCommandSync=false",
        "--max-requeue-num=-1",
        "--enable-metrics",
        "--enable-healthz=true",
        "--healthz-address=127.0.0.1:7",
        "--leader-elect-lease-duration=1m30s",
        "-v=3",
    ];
    let process = process(&typed);
    let Deciding::Controllers(Controllers {
        rows,
        scheduler_names,
        native_groups: _,
        failures_max,
        unwatched,
        ..
    }) = process.deciding
    else {
        panic!("controllers are wanted");
    };
    assert!(
        rows.contains(&"vcjob") && !rows.contains(&"vcjob_expiry") && !rows.contains(&"queue"),
        "{rows:?}"
    );
    assert_eq!(scheduler_names, ["volcano".into()]);
    assert_eq!((failures_max, unwatched), (None, vec![Kind::Command]));
    let doors = process.doors;
    assert_eq!(
        doors.metrics,
        Some("[::]:8081".parse().expect("it is an address"))
    );
    assert_eq!(
        doors.health,
        Some("127.0.0.1:7".parse().expect("it is an address"))
    );
    assert_eq!(
        process.connection.master.as_deref(),
        Some("https://one:6443")
    );
    let election = process.election.expect("somebody else may decide");
    assert_eq!((election.lease_ms, process.verbosity), (90_000, 3));
    assert!(election.identity.contains('_'));
    let other = identity().expect("a word can be drawn");
    assert_ne!(*election.identity, *other);
}

/// What Volcano's chart types for its webhooks, under both names.
#[test]
fn webhooks_are_what_they_were_told_to_be() {
    let request = |typed: &[&str]| match outcome(typed) {
        Outcome::Start(start) => match *start {
            Start::Webhooks(request) => request,
            other => panic!("{other:?}"),
        },
        Outcome::Exit(code) => panic!("it ended with {code}"),
    };
    let typed = [
        "vc-webhook-manager",
        "--enabled-admission=/jobs/mutate,/jobs/validate",
        "--tls-cert-file=/admission.local.config/certificates/tls.crt",
        "--tls-private-key-file=/admission.local.config/certificates/tls.key",
        "--ca-cert-file=/admission.local.config/certificates/ca.crt",
        "--admission-conf=/admission.local.config/configmap/volcano-admission.conf",
        "--webhook-namespace=volcano-system",
        "--webhook-service-name=volcano-admission-service",
        "--enable-healthz=true",
        "--logtostderr",
        "--port=8443",
        "-v=4",
        "2>&1",
    ];
    let by_name = request(&typed);
    assert_eq!(by_name.paths, ["/jobs/mutate", "/jobs/validate"]);
    assert_eq!(by_name.address.to_string(), "[::]:8443");
    assert_eq!(by_name.health.map(|at| at.port()), Some(11251));
    assert!(by_name.tls.is_some() && by_name.keeps_root);
    let mut as_verb = vec!["katmai", "webhooks"];
    as_verb.extend(&typed[1..]);
    assert_eq!(request(&as_verb), by_name);
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_flag() {
    for wrong in [
        &["katmai", "scheduler", "--leader-elect-renew-deadline=20s"][..],
        &["katmai", "scheduler", "--leader-elect-resource-name=A_b"],
        &["katmai", "scheduler", "--disable-default-scheduler-config"],
        &[
            "katmai",
            "scheduler",
            "--scheduler-name=a",
            "--agent-scheduler-name=a",
        ],
        &["katmai", "scheduler", "--scheduler-name="],
        &["katmai", "hypernode-controller", "--kube-api-qps=0"],
        &["katmai", "hypernode-controller", "--kube-api-burst=-1"],
        &["katmai", "controllers", "--kube-api-qps=many"],
        &["katmai", "scheduler", "--strict"],
        &["katmai", "scheduler", "--schedule-period=soon"],
        &["katmai", "scheduler", "--scheduler-sharding-mode=half"],
        &[
            "katmai",
            "scheduler",
            "--enable-metrics",
            "--listen-address=nowhere",
        ],
        &[
            "katmai",
            "scheduler",
            "--enable-metrics",
            "--enable-healthz",
            "--healthz-address=:8080",
        ],
        &["katmai", "scheduler", "--feature-gates=Nonsense=true"],
        &["katmai", "controllers", "--controllers=nonsense"],
        &[
            "katmai",
            "controllers",
            "--controllers=+gc-controller,-gc-controller",
        ],
        &["katmai", "controllers", "--controllers="],
        &["katmai", "controllers", "--nonsense"],
        &["katmai", "webhooks", "--port=0"],
        &["katmai", "webhooks", "--port=65536"],
        &["katmai", "webhooks", "--listen-address=here"],
        &["katmai", "webhooks", "--graceful-shutdown-time=soon"],
        &["katmai", "webhooks", "--feature-gates=Some"],
        &[
            "katmai",
            "webhooks",
            "--feature-gates=QueueCommandSync=perhaps",
        ],
        &[
            "katmai",
            "webhooks",
            "--tls-cert-file=/a",
            "--tls-private-key-file=/b",
        ],
        &["katmai", "webhooks", "--ca-cert-file=/c"],
        &[
            "katmai",
            "scheduler",
            "--enable-metrics",
            "--enable-healthz",
            "--listen-address=:8081",
            "--healthz-address=127.0.0.1:8081",
        ],
        &["katmai", "webhooks", "--scheduler-name="],
        &["katmai", "webhooks", "--print=all"],
    ] {
        assert!(
            matches!(outcome(wrong), Outcome::Exit(EXIT_BAD_INPUT)),
            "{wrong:?}"
        );
    }
}

/// What upstream's parsers take, in words that manifests have.
#[test]
fn what_upstream_takes_ends_no_process() {
    for typed in [
        &["vc-scheduler", "--percentage-nodes-to-find=-1"][..],
        &["vc-scheduler", "--percentage-nodes-to-find=101"],
        &["vc-scheduler", "--minimum-percentage-nodes-to-find", "-1"],
        &["vc-agent-scheduler", "--minimum-feasible-nodes=-5"],
        &["vc-scheduler", "--kube-api-qps=-1", "--kube-api-burst=-1"],
        &["vc-controller-manager", "--kube-api-qps", "-1"],
        &["vc-controller-manager", "--kube-api-qps=0"],
        &["vc-scheduler", "--node-selector="],
        &["vc-scheduler", "--node-selector", ""],
        &["vc-scheduler", "--legacy_stderr_threshold_behavior=false"],
        &["vc-scheduler", "--alsologtostderrthreshold=WARNING"],
        &["vc-scheduler", "--scheduler-name", "-odd-"],
    ] {
        process(typed);
    }
    let rows = |typed: &[&str]| match process(typed).deciding {
        Deciding::Controllers(wish) => wish.rows,
        Deciding::Scheduler { .. } => panic!("controllers are wanted"),
    };
    let words = "-sharding-controller,*";
    assert_eq!(
        rows(&["vc-controller-manager", "--controllers", words]),
        rows(&["vc-controller-manager"])
    );
}

/// S2.3: the level of the gate, and who answers for names.
#[test]
fn controllers_are_told_what_pods_wait_for_and_whom_to_ask() {
    let told = |typed: &[&str]| {
        let typed = ["vc-controller-manager", "--master=https://one:6443"]
            .iter()
            .chain(typed);
        let typed: Vec<&str> = typed.copied().collect();
        match process(&typed).deciding {
            Deciding::Controllers(wish) => wish,
            Deciding::Scheduler { .. } => panic!("controllers are wanted"),
        }
    };
    let usual = told(&[]);
    assert_eq!(usual.meeting, Meeting::default());
    assert_eq!(
        (&*usual.cluster_domain, usual.name_servers),
        ("cluster.local", vec![])
    );
    let wish = told(&[
        "--service-gate=dns-answer",
        "--service-gate-deadline=10s",
        "--cluster-dns=10.96.0.10,[fd00::a]:5353",
        "--cluster-domain=example.org.",
    ]);
    assert_eq!(wish.meeting.gate, ServiceGate::DnsAnswer);
    assert_eq!(wish.meeting.deadline, std::time::Duration::from_secs(10));
    assert_eq!(&*wish.cluster_domain, "example.org");
    let servers: Vec<_> = wish.name_servers.iter().map(ToString::to_string).collect();
    assert_eq!(servers, ["10.96.0.10:53", "[fd00::a]:5353"]);
}

#[test]
fn flags_are_told_in_the_docs() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/flags.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, page::markdown(PROCESSES)).expect("the page can be written");
    }
    let page = std::fs::read_to_string(path).expect("there is such a page");
    assert_eq!(page, page::markdown(PROCESSES), "UPDATE=1 renews it");
}

#[test]
fn a_scheduler_is_asked_where_its_flags_say() {
    let asked = |typed: &[&str]| {
        let typed: Vec<&str> = ["katmai", "scheduler"]
            .iter()
            .chain(typed)
            .copied()
            .collect();
        match process(&typed).deciding {
            Deciding::Scheduler { questions, .. } => questions,
            Deciding::Controllers(_) => panic!("a scheduler is wanted"),
        }
    };
    assert_eq!(asked(&[]), None);
    let alone = asked(&["--ask-address=127.0.0.1:8444"]).expect("questions");
    assert_eq!(alone.address.to_string(), "127.0.0.1:8444");
    assert_eq!((alone.service, alone.tls), (None, None));
    for (typed, port) in [("ns/asked", 443), ("ns/asked:8444", 8_444)] {
        let service = format!("--ask-service={typed}");
        let service = asked(&["--ask-address=:8444", &service])
            .expect("questions")
            .service;
        let service = service.expect("a service");
        assert_eq!(
            (&*service.namespace, &*service.name, service.port),
            ("ns", "asked", port)
        );
    }
    for wrong in [
        &["--ask-service=ns/asked"][..],
        &["--ask-address=:1", "--ask-service=asked"],
        &["--ask-address=:1", "--ask-service=ns/"],
        &["--ask-address=:1", "--ask-service=ns/asked:0"],
        &["--ask-address=:1", "--ask-service=ns/asked:x"],
        &["--ask-address=1"],
    ] {
        let typed: Vec<&str> = ["katmai", "scheduler"]
            .iter()
            .chain(wrong)
            .copied()
            .collect();
        assert!(
            matches!(outcome(&typed), Outcome::Exit(EXIT_BAD_INPUT)),
            "{wrong:?}"
        );
    }
}

#[test]
fn groups_of_kubernetes_own_count_where_a_flag_says_so() {
    let native = |verb: &str, typed: &[&str]| {
        let typed: Vec<&str> = ["katmai", verb].iter().chain(typed).copied().collect();
        match process(&typed).deciding {
            Deciding::Scheduler { serving, .. } => serving.native_groups,
            Deciding::Controllers(wish) => wish.native_groups,
        }
    };
    for verb in ["scheduler", "controllers"] {
        assert!(!native(verb, &[]), "{verb}");
        assert!(native(verb, &["--native-groups"]), "{verb}");
    }
}

#[test]
fn a_scheduler_makes_the_queue_and_writes_the_files_that_its_flags_name() {
    let told = |typed: &[&str]| match process(typed).deciding {
        Deciding::Scheduler {
            default_queue,
            dumps,
            ..
        } => (default_queue.to_string(), dumps),
        Deciding::Controllers(_) => panic!("a scheduler is wanted"),
    };
    let tmp = Some(PathBuf::from("/tmp"));
    assert_eq!(told(&["vc-scheduler"]), ("default".into(), tmp.clone()));
    assert_eq!(told(&["vc-agent-scheduler"]), ("default".into(), tmp));
    let other = ["vc-scheduler", "--default-queue=x", "--cache-dump-dir=/d"];
    assert_eq!(told(&other), ("x".into(), Some(PathBuf::from("/d"))));
    let off = ["vc-agent-scheduler", "--cache-dumper=false"];
    assert_eq!(told(&off).1, None);
    let wrong = ["vc-scheduler", "--default-queue=A_b"];
    assert!(matches!(outcome(&wrong), Outcome::Exit(EXIT_BAD_INPUT)));
}

#[test]
fn nodes_are_divided_once_in_a_period_where_a_flag_says_so() {
    let rows = |typed: &[&str]| {
        let typed: Vec<&str> = ["vc-controller-manager", "--controllers=sharding-controller"]
            .iter()
            .chain(typed)
            .copied()
            .collect();
        match process(&typed).deciding {
            Deciding::Controllers(wish) => wish.rows,
            Deciding::Scheduler { .. } => panic!("controllers are wanted"),
        }
    };
    assert_eq!(rows(&[]), ["sharding"]);
    assert_eq!(
        rows(&["--enable-node-event-trigger=false"]),
        ["sharding_by_period"]
    );
}
