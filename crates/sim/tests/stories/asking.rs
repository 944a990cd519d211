//! Drivers that ask somebody beside the API.

use driver::{EngineSettings, Settings, scheduler_conf};
use engine::Engine;
use sim::Random;

/// Upstream's own rules, and beside them those that ask: what is used of nodes, and an extender.
const ASKING: &str = "
actions: \"enqueue, allocate, backfill\"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins:
  - {name: overcommit}
  - {name: drf}
  - {name: predicates}
  - {name: proportion}
  - {name: nodeorder}
  - {name: usage}
  - name: extender
    arguments:
      extender.urlPrefix: http://extender:8713
      extender.onSessionOpenVerb: open
      extender.onSessionCloseVerb: close
      extender.predicateVerb: predicate
      extender.prioritizeVerb: prioritize
      extender.jobEnqueueableVerb: enqueueable
      extender.jobEnqueuedVerb: enqueued
      extender.allocateFuncVerb: allocated
      extender.deallocateFuncVerb: deallocated
metrics: {type: prometheus, address: \"http://prometheus:9090\"}
";

/// Pods wait for the names of their peers for no longer than that: longer than is usual, so that a DNS
/// that is late by half a minute is waited for, whenever in that time they start.
const PATIENCE_MS: i64 = 120_000;

/// The same drivers; those of every fifth story ask DNS before they make pods, and their jobs' pods
/// wait for one another.
pub fn naming(seed: u64, mut drivers: Settings) -> Settings {
    if seed % 5 == 3 {
        let rules = &mut drivers.controller_settings;
        rules.service_gate = controllers::ServiceGate::DnsAnswer;
        rules.service_gate_deadline_ms = PATIENCE_MS;
        rules.peers.is_usual = true;
    }
    drivers
}

/// Plugins without which a story's parts would not end as it says: gangs whole, nodes that take what is
/// placed there, queues that get what is theirs.
const NEEDED: [&str; 2] = ["gang", "predicates"];
const OF_QUEUES: [&str; 2] = ["capacity", "proportion"];
/// Plugins that have a say in who goes first, who waits and which node is best.
const FURTHER: [&str; 14] = [
    "binpack",
    "cdp",
    "conformance",
    "deviceshare",
    "drf",
    "network-topology-aware",
    "nodeorder",
    "numa-aware",
    "overcommit",
    "pdb",
    "priority",
    "resource-strategy-fit",
    "sla",
    "task-topology",
];

/// The same drivers; the plugins of every fourth story and their tiers are drawn by lot.
fn ruled(seed: u64, drivers: Settings) -> Settings {
    let Some(engine) = drivers.engine.clone().filter(|_| seed % 4 == 1) else {
        return drivers;
    };
    let mut random = Random::new(seed);
    let mut draw = |sides: usize| usize::try_from(random.between(1, sides as i64)).unwrap_or(1);
    let mut left: Vec<&str> = NEEDED.into();
    left.push(OF_QUEUES[draw(2) - 1]);
    left.extend(FURTHER.iter().filter(|_| draw(3) > 1));
    let mut conf = "actions: \"enqueue, allocate, backfill\"\ntiers:\n".to_owned();
    let mut begins = true;
    while !left.is_empty() {
        if begins {
            conf.push_str("- plugins:\n");
        }
        let name = left.swap_remove(draw(left.len()) - 1);
        conf.push_str(&format!("  - {{name: {name}}}\n"));
        begins = draw(4) == 1;
    }
    with_tiers(&conf, engine, drivers)
}

/// The same drivers, by the tiers and the source of measures of a configuration.
fn with_tiers(conf: &str, engine: EngineSettings, drivers: Settings) -> Settings {
    let conf = scheduler_conf::read(conf.as_bytes()).accepted();
    let conf = conf.expect("it is understood");
    let mut rules = engine.engine.settings().clone();
    rules.placement.tiers = conf.placement.tiers;
    let (ruled, problems) = Engine::new(rules).expect("the rules are understood");
    assert!(problems.is_empty(), "{problems:?}");
    Settings {
        engine: Some(EngineSettings {
            engine: ruled,
            metrics: conf.metrics,
            ..engine
        }),
        ..drivers
    }
}

/// The same drivers; the rules of every fourth story ask, those of every fourth are drawn, and
/// [`naming`] has a say.
pub fn asking(seed: u64, drivers: Settings) -> Settings {
    let drivers = ruled(seed, naming(seed, drivers));
    let Some(engine) = drivers.engine.clone().filter(|_| seed % 4 == 2) else {
        return drivers;
    };
    with_tiers(ASKING, engine, drivers)
}
