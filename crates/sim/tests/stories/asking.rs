//! Drivers whose rules ask somebody beside the API.

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

/// The same drivers; those of every fourth story ask.
pub fn asking(seed: u64, drivers: Settings) -> Settings {
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
