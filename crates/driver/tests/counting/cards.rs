//! What figures tell of virtual cards.

use api::kind::Kind;
use serde_json::json;

use crate::census;
use crate::world::World;
use crate::world::planes::plane;

const CONF: &str = "
actions: \"enqueue, allocate, backfill\"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - {name: predicates}
  - {name: capacity}
  - name: deviceshare
    arguments: {deviceshare.VGPUEnable: true}
";

/// Of each card how many share it, and how many MiB and percent they have; of its MiB in all.
type Card = (i64, i64, i64, i64);
/// What a pod has: MiB and percent.
type Held = (String, i64, i64);

fn told(world: &mut World) -> (Vec<Card>, Vec<Held>) {
    let figures = census(world).figures.expect("it decides");
    let cards = figures.cards.iter().map(|it| {
        assert_eq!((&*it.card, &*it.node), ("GPU-a", "node-1"));
        (it.users, it.memory, it.cores, it.memory_whole)
    });
    let grants = figures.grants.iter().map(|it| {
        assert_eq!((&*it.card, &*it.node), ("GPU-a", "node-1"));
        (it.pod.name.to_string(), it.memory, it.cores)
    });
    (cards.collect(), grants.collect())
}

#[test]
fn a_card_is_told_with_what_the_containers_of_a_pod_have_of_it() {
    let mut world = plane(CONF, 1);
    let node = json!({
        "metadata": { "annotations": { "volcano.sh/node-vgpu-register":
            "GPU-a,10,8000,NVIDIA-A100,true,hami-core:",
        }},
        "status": { "allocatable": {
            "volcano.sh/vgpu-number": "10", "volcano.sh/vgpu-memory": "8000",
            "volcano.sh/vgpu-cores": "100",
        }},
    });
    world.put_object(Kind::Node, "node-1", &node);
    world.pass_ms(2_000);
    let free = (vec![(0, 0, 0, 8_000)], vec![]);
    assert_eq!(told(&mut world), free);
    let group = json!({
        "spec": { "minMember": 1, "queue": "default" }, "status": { "phase": "Pending" },
    });
    world.put_object(Kind::PodGroup, "parts", &group);
    let container = |name: &str, memory: &str, cores: &str| {
        let amounts = json!({
            "volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": memory,
            "volcano.sh/vgpu-cores": cores,
        });
        json!({ "name": name, "resources": { "requests": amounts, "limits": amounts } })
    };
    let containers = [container("a", "1000", "10"), container("b", "2000", "20")];
    world.put_member("parts", "parts-0");
    let pod = json!({ "spec": { "containers": containers } });
    world.put_object(Kind::Pod, "parts-0", &pod);
    world.pass_ms(2_000);
    // Each part counts as one that shares the card; the pod has the sum.
    let held = ("parts-0".to_owned(), 3_000, 30);
    assert_eq!(told(&mut world), (vec![(2, 3_000, 30, 8_000)], vec![held]));
    // In its queue they count as well, in thousandths as all resources do.
    let figures = census(&mut world).figures.expect("it decides");
    let queue = figures.queues.iter().find(|it| &*it.name == "default");
    let queue = queue.expect("it has gangs");
    for amounts in [&queue.allocated, &queue.request] {
        for (name, value) in [("number", 2_000), ("memory", 3_000_000), ("cores", 30_000)] {
            let name = format!("volcano.sh/vgpu-{name}");
            let other = amounts.others.iter().find(|(it, _)| **it == *name);
            assert_eq!(other.map(|it| it.1), Some(value), "{name}");
        }
    }
    world.delete_object(Kind::Pod, "parts-0");
    world.pass_ms(2_000);
    assert_eq!(told(&mut world), free);
}
