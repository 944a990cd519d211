//! How much is written for a pod: a count, not a time, so that no change can make a plane chatter
//! unnoticed. `KATMAI_SIM_GANGS=500 cargo test -p katmai-sim --release --test stories work -- --nocapture`
//! counts at the size of S2-500x20.

use crate::asked::{asked, print};
use crate::plane;
use api::kind::Kind;
use api::quantity::{Format, Quantity};
use serde_json::{Value, json};
use sim::{End, Settings, World};

/// Gangs of 20 pods, unless more are asked for.
const GANGS: u64 = 20;
const PODS: u64 = 20;

fn gangs() -> u64 {
    asked("KATMAI_SIM_GANGS").unwrap_or(GANGS)
}

fn gang(index: u64) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": { "name": format!("gang-{index}"), "namespace": "default" },
        "spec": {
            "minAvailable": PODS,
            "schedulerName": "volcano",
            "tasks": [{
                "name": "work",
                "replicas": PODS,
                "template": {
                    "metadata": { "annotations": { "katmai.dev/sim-duration": "10s" } },
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{
                            "name": "main",
                            "image": "busybox",
                            "resources": { "requests": { "cpu": "1" } },
                        }],
                    },
                },
            }],
        },
    })
}

fn world(gangs: u64) -> World {
    let mut settings = Settings::new(1);
    settings.nodes.nodes = u32::try_from(gangs * 2).expect("a cluster that can be counted");
    settings.nodes.cpu = Quantity::from_value(16, Format::DecimalSi);
    plane::world(settings)
}

/// S2-500x20: what a pod costs in writes, from its job's creation to its end.
#[test]
fn a_pod_of_a_gang_costs_few_writes() {
    let gangs = gangs();
    let mut world = world(gangs);
    for index in 0..gangs {
        world.create(1_000, Kind::VcJob, gang(index));
    }
    let end = world.run(400_000);
    assert_eq!(end, End::Quiet);
    assert_eq!(world.findings(), []);
    let pods = gangs * PODS;
    let counts = world.counts();
    // A new node becomes ready, and its taint is taken away: no pod's doing.
    let births = gangs * 2;
    let share = |who| (counts.of(who) - births) as f64 / pods as f64;
    let [driver, nodes] = ["driver", "node"].map(share);
    let notes = counts.notes_of("driver") as f64 / pods as f64;
    print(&format!(
        "{pods} pods: {driver:.2} writes of the driver a pod, {nodes:.2} of the nodes, {notes:.2} notes\n{}",
        counts.text()
    ));
    // A pod is created and bound; the rest is its share of what its gang and queue cost.
    assert!(
        driver <= 2.95,
        "{driver:.2} writes of the driver a pod\n{}",
        counts.text()
    );
    // It starts and ends.
    assert!(
        nodes <= 2.05,
        "{nodes:.2} writes of the nodes a pod\n{}",
        counts.text()
    );
    assert!(notes <= 1.0, "{notes:.2} notes a pod\n{}", counts.text());
}

/// A cluster without room is told of once, not again and again.
#[test]
fn a_gang_without_room_costs_no_writes_while_it_waits() {
    let mut world = world(1);
    let mut large = gang(0);
    large["spec"]["tasks"][0]["replicas"] = json!(100);
    large["spec"]["minAvailable"] = json!(100);
    world.create(1_000, Kind::VcJob, large);
    world.run(10_000);
    let revision = world.revision();
    assert_eq!(world.run(1_000_000), End::Quiet);
    assert_eq!(world.revision(), revision, "{}", world.transcript().text());
}
