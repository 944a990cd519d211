//! Drivers that ask somebody beside the API.

use driver::{EngineSettings, Settings, scheduler_conf};
use engine::Engine;

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

/// Pods wait for the names of their peers for no longer than that.
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

/// The same drivers; the rules of every fourth story ask, and [`naming`] has a say.
pub fn asking(seed: u64, drivers: Settings) -> Settings {
    let drivers = naming(seed, drivers);
    let Some(engine) = drivers.engine.clone().filter(|_| seed % 4 == 2) else {
        return drivers;
    };
    let conf = scheduler_conf::read(ASKING.as_bytes()).accepted();
    let conf = conf.expect("it is understood");
    let mut rules = engine.engine.settings().clone();
    rules.placement.tiers = conf.placement.tiers;
    let (asks, problems) = Engine::new(rules).expect("the rules are understood");
    assert!(problems.is_empty(), "{problems:?}");
    Settings {
        engine: Some(EngineSettings {
            engine: asks,
            metrics: conf.metrics,
            ..engine
        }),
        ..drivers
    }
}
