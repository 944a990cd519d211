//! What a process decides by, as it was typed.

use ::api::volcano::ShardingConf;
use controllers::{Peers, ServiceGate, SshRules};

use super::*;

/// A process that was typed so.
fn process(typed: &[&str]) -> Process {
    let typed = std::iter::once(&"katmai").chain(typed).map(Into::into);
    let cli::start::Outcome::Start(start) = cli::parse(typed.collect()) else {
        panic!("it is none");
    };
    match *start {
        cli::start::Start::Beside(process) => process,
        other => panic!("{other:?} is none beside a cluster"),
    }
}

/// Everything is taken apart, so that another setting has to be thought of here.
#[test]
fn controllers_step_by_what_was_typed() {
    let process = process(&[
        "controllers",
        "--controllers=queue-controller,sharding-controller",
        "--scheduler-name=a,b",
        "--native-groups",
        "--inherit-owner-annotations=false",
        "--ssh-plugin=upstream",
        "--service-gate=dns-answer",
        "--service-gate-deadline=7s",
        "--peers-image=peers",
        "--cluster-domain=example.org",
        "--cluster-dns=10.96.0.10",
        "--max-requeue-num=9",
        "--feature-gates=QueueCommandSync=false",
        "--scheduler-configs=mine:volcano:0.1:0.5:true:3:7",
        "--shard-sync-period=11s",
        "--sharding-configmap=map",
        "--sharding-configmap-namespace=ns",
        "--leader-elect-resource-name=lease",
    ]);
    assert_eq!(
        name_servers(&process),
        ["10.96.0.10:53".parse().expect("an address")]
    );
    let (settings, log, conf) = settings(&process).expect("it can be set up");
    assert!(log.is_none() && conf.is_none());
    let driver::Settings {
        controllers,
        controller_settings,
        engine,
        unwatched,
        limits,
        election,
        seed: _,
    } = settings;
    let rows = controllers.iter().map(|row| row.name);
    assert_eq!(Vec::from_iter(rows), ["queue", "sharding"]);
    assert!(engine.is_none());
    assert_eq!(unwatched, [Kind::Command]);
    let wanted = driver::Limits {
        failures_max: Some(9),
        gives_up: true,
        ..driver::Limits::default()
    };
    assert_eq!(limits, wanted);
    assert!(election.is_some());
    assert_eq!(election, process.election);
    let usual = controllers::Settings::default();
    let controllers::Settings {
        scheduler_names,
        native_groups,
        inherit_owner_annotations,
        discovery,
        sharding,
        service_gate,
        service_gate_deadline_ms,
        cluster_domain,
        peers,
        ssh,
        heard_since,
        // Nobody types these.
        volumes_directory: _,
        cluster_ca: _,
        first_status_ms: _,
        terminated_pods_max: _,
        writes_per_step_max: _,
        pods_ahead_max: _,
        service_accounts: _,
        tokens: _,
        words: _,
    } = controller_settings;
    assert_eq!(scheduler_names, ["a".into(), "b".into()]);
    assert!(native_groups && !inherit_owner_annotations);
    let Deciding::Controllers(wish) = &process.deciding else {
        panic!("controllers are wanted");
    };
    assert_eq!(discovery, wish.discovery);
    let ShardingConf {
        shards,
        period_ms,
        idle: _,
    } = sharding.conf;
    let shards = shards.iter().map(|shard| &*shard.name);
    assert_eq!(Vec::from_iter(shards), ["mine"]);
    assert_eq!(period_ms, Some(11_000));
    assert_eq!(sharding.config_map, ("ns".into(), "map".into()));
    assert_eq!(
        (service_gate, service_gate_deadline_ms),
        (ServiceGate::DnsAnswer, 7_000)
    );
    assert_eq!(&*cluster_domain, "example.org");
    let wanted = Peers {
        image: "peers".into(),
        is_usual: true,
    };
    assert_eq!((peers, ssh), (wanted, SshRules::Upstream));
    assert_ne!(
        heard_since, usual.heard_since,
        "nodes could not be heard before"
    );

    let on = self::process(&["controllers", "--max-requeue-num=-1"]);
    let (on, ..) = self::settings(&on).expect("it can be set up");
    assert_eq!(on.limits, driver::Limits::default(), "it tries for ever");
}

#[test]
fn a_scheduler_decides_by_what_was_typed() {
    const CONF: &str = "actions: allocate\ntiers: [{plugins: [{name: usage}]}]\n\
        metrics: {type: prometheus, address: \"http://one:9090\"}\n";
    let path = std::env::temp_dir().join(format!("katmai-told-{}.conf", std::process::id()));
    std::fs::write(&path, CONF).expect("it can be written");
    let file = format!("--scheduler-conf={}", path.display());
    let process = process(&[
        "scheduler",
        "--scheduler-name=a",
        "--agent-scheduler-name=b",
        "--node-selector=zone:a",
        "--scheduler-sharding-mode=soft",
        "--scheduler-sharding-name=mine",
        "--events-per-pod",
        "--native-groups",
        "--priority-class=false",
        "--feature-gates=SchedulingGatesQueueAdmission=true,DynamicResourceAllocation=false",
        "--decision-log-dir=/log",
        "--decision-log-hours=7",
        "--decision-log-max=9",
        &file,
    ]);
    let (settings, log, conf) = settings(&process).expect("it can be set up");
    std::fs::remove_file(&path).expect("it can be removed");
    let log = log.expect("it is logged");
    assert_eq!(log.directory, PathBuf::from("/log"));
    assert_eq!((log.keep_ms, log.bytes_max), (7 * 3_600_000, 9 << 20));
    let conf = conf.expect("it was read").conf;
    assert!(settings.controllers.is_empty());
    assert_eq!(settings.election, process.election);
    assert_eq!(settings.unwatched, [Kind::PriorityClass]);

    let Deciding::Scheduler { serving, .. } = process.deciding else {
        panic!("a scheduler is wanted");
    };
    let driver::EngineSettings {
        engine,
        scheduler_names,
        lone_scheduler_names,
        agent_scheduler_names,
        metrics,
        reach,
        native_groups,
        queue_gates,
        features,
        events,
        component,
        stopwatch: _,
        other: _,
    } = settings.engine.expect("it decides");
    let usual = Serving::default();
    assert_eq!(engine.settings().placement, conf.placement);
    assert_eq!(
        (scheduler_names, agent_scheduler_names),
        (vec!["a".into()], vec!["b".into()])
    );
    assert!(lone_scheduler_names.is_empty());
    assert_ne!(metrics, Default::default());
    assert_eq!(metrics, conf.metrics);
    assert_ne!(reach, usual.reach);
    assert_eq!(reach, serving.reach);
    assert!(native_groups && queue_gates);
    assert_ne!(features, usual.features);
    assert_eq!(features, serving.features);
    assert_ne!(events, usual.events);
    assert_eq!((events, &*component), (serving.events, "a"));
}
