//! Rules that look at what is really used of nodes: who is asked, what becomes of the answers, and that a
//! log of it plays again.

mod world;

use api::kind::Kind;
use serde_json::json;
use world::World;
use world::planes::{self, asks, node_of, plane};
use world::segments::{played, segments};

const CONF: &str = "
actions: \"enqueue, allocate, backfill\"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: usage}]
metrics:
  type: prometheus
  address: http://prometheus:9090
  interval: 30s
";

/// A pod that wants a core.
fn pod(world: &mut World, name: &str) {
    planes::pod(world, name, 1, None);
}

/// What Prometheus says of the two.
fn used(values: [&str; 2]) -> Result<Vec<u8>, String> {
    let series = [("node-1", values[0]), ("node-2", values[1])];
    let series =
        series.map(|(node, value)| json!({ "metric": { "instance": node }, "value": [0, value] }));
    let body = json!({ "status": "success", "data": { "resultType": "vector", "result": series } });
    Ok(body.to_string().into_bytes())
}

fn say(world: &mut World, cpu: [&str; 2]) {
    world.told.extend([used(cpu), used(["0", "0"])]);
}

#[test]
fn a_pod_goes_where_less_is_used() {
    let mut world = plane(CONF, 2);
    say(&mut world, ["50", "10"]);
    world.pass_ms(1_000);
    assert_eq!(
        asks(&mut world),
        [
            "ask prometheus for cpu of nodes",
            "ask prometheus for memory of nodes"
        ]
    );
    pod(&mut world, "a");
    world.pass_ms(1_000);
    assert_eq!(node_of(&world, "a"), "node-2");
    // 30 seconds later it is the other way round, and node-2 takes nobody at all any more.
    say(&mut world, ["0", "90"]);
    world.pass_ms(30_000);
    pod(&mut world, "b");
    world.pass_ms(1_000);
    assert_eq!(node_of(&world, "b"), "node-1");
}

#[test]
fn who_never_answers_or_lies_holds_nobody_up() {
    let mut world = plane(CONF, 2);
    // The first question is never answered.
    world.pass_ms(1_000);
    pod(&mut world, "a");
    world.pass_ms(1_000);
    assert_eq!(node_of(&world, "a"), "node-1");
    // It is given up, and asked again; what node-1 uses is told as nonsense, and it counts as unknown.
    world.told.extend([used(["NaN", "20"]), used(["0", "0"])]);
    world.pass_ms(60_000);
    let metrics = world.driver.metrics();
    assert_eq!(metrics.values_refused, 1);
    assert!(metrics.asks_failed >= 1, "{metrics:?}");
    pod(&mut world, "b");
    world.pass_ms(1_000);
    assert_eq!(node_of(&world, "b"), "node-2");
}

/// Events about answers that do not count.
fn told(world: &World) -> Vec<String> {
    let told = world.events().into_iter();
    told.filter(|it| it.contains("InvalidMetrics")).collect()
}

#[test]
fn who_lies_is_told_once_for_each_lie() {
    let mut world = plane(CONF, 2);
    say(&mut world, ["1e308", "20"]);
    world.pass_ms(1_000);
    for _ in 0..3 {
        say(&mut world, ["1e308", "20"]);
        world.pass_ms(30_000);
    }
    let refused =
        "Namespace Warning InvalidMetrics: 1 measured values are refused: cpu of node-1 is";
    let much = format!("{refused} 1e308 %, more than there is");
    assert_eq!(told(&world), [much.as_str()]);
    say(&mut world, ["-3", "20"]);
    world.pass_ms(30_000);
    let little = format!("{refused} -3 %");
    assert_eq!(told(&world), [much.as_str(), little.as_str()]);
    // Where rules have their place they are told there, of an answer that is none, too.
    let system = json!({ "metadata": { "namespace": "" } });
    world.put_object(Kind::Namespace, "volcano-system", &system);
    world.told.push_back(Ok(b"not json".to_vec()));
    world.pass_ms(30_000);
    let last = told(&world).pop().unwrap_or_default();
    let expected = "ConfigMap Warning InvalidMetrics: prometheus does not say how much of nodes is used: \
                    its answer is not understood: ";
    assert!(last.starts_with(expected), "{last}");
}

#[test]
fn nobody_is_asked_what_no_rule_wants_to_know() {
    let mut world = plane(&CONF.replace("{name: usage}", "{name: nodeorder}"), 2);
    world.pass_ms(60_000);
    assert_eq!(asks(&mut world), [""; 0]);
    assert_eq!(world.driver.metrics().asks, 0);
}

#[test]
fn a_log_plays_again_without_anybody_to_ask() {
    let conf = CONF.replace("prometheus\n", "elasticsearch\n")
        + "  elasticsearch.username: me\n  elasticsearch.password: never-told\n";
    for conf in [CONF, &conf] {
        let mut world = plane(conf, 2);
        let now = world.now;
        world.driver.record(now);
        for (name, cpu) in [("a", ["50", "10"]), ("b", ["1", "95"]), ("c", ["-1", "2"])] {
            say(&mut world, cpu);
            world.pass_ms(31_000);
            pod(&mut world, name);
            world.pass_ms(1_000);
            let now = world.now;
            world.driver.handle_checkpoint(now);
            world.pass_ms(1_000);
        }
        let files = segments(&mut world);
        assert!(files.len() > 1, "it is checkpointed in between");
        for file in files {
            let text = String::from_utf8_lossy(&file);
            assert!(
                !text.contains("never-told") || conf == CONF,
                "no password is logged"
            );
            played(&file);
        }
    }
}
