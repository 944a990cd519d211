//! What virtual GPUs of a pod count for in its queue.

use super::*;

/// What the pod's cards count for, in words.
fn counts(world: &World) -> Vec<String> {
    let charges = &world.tables.task(task_of(&world.tables)).charges;
    assert!(charges.iter().all(|charge| charge.is_own), "{charges:?}");
    let amounts = charges.iter().flat_map(|charge| &charge.amounts);
    let words =
        amounts.map(|(kind, amount)| world.tables.kinds().amount(*kind, *amount).to_string());
    words.collect()
}

fn node_named(name: &str, register: &str) -> (Kind, Value) {
    let (kind, mut node) = virtual_node(register);
    node["metadata"]["name"] = json!(name);
    node["metadata"]["uid"] = json!(name);
    node["metadata"]["resourceVersion"] = json!(name.trim_start_matches('n'));
    (kind, node)
}

#[test]
fn a_pod_counts_for_what_each_of_its_cards_gives() {
    let amounts = [
        json!({ "volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-memory": "3000", "volcano.sh/vgpu-cores": "30" }),
        // One card where only memory is named; no cores are no amount.
        json!({ "volcano.sh/vgpu-memory": "500" }),
    ];
    let world = world(
        [CardFamily::Virtual],
        &[group(), pod(json!({}), "", &amounts)],
    );
    assert_eq!(
        counts(&world),
        ["6500 volcano.sh/vgpu-memory", "60 volcano.sh/vgpu-cores"]
    );
}

#[test]
fn a_pod_that_has_its_cards_counts_for_these() {
    let ids = "GPU-a,NVIDIA,2500,10:GPU-b,NVIDIA,2500,10:;GPU-a,NVIDIA,700,0:";
    let amounts = [
        json!({ "volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-memory-percentage": "10" }),
        json!({ "volcano.sh/vgpu-memory": "700" }),
    ];
    let annotations = json!({ "volcano.sh/vgpu-ids-new": ids });
    let objects = [group(), pod(annotations, "n1", &amounts)];
    let world = world([CardFamily::Virtual], &objects);
    assert_eq!(
        counts(&world),
        ["5700 volcano.sh/vgpu-memory", "20 volcano.sh/vgpu-cores"]
    );
}

#[test]
fn a_pod_on_a_node_that_was_given_no_cards_counts_for_none() {
    let amounts = json!({ "volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "3000" });
    let objects = [group(), pod(json!({}), "n1", &[amounts])];
    let world = world([CardFamily::Virtual], &objects);
    assert_eq!(counts(&world), Vec::<String>::new());
}

#[test]
fn a_part_of_any_card_counts_as_one_of_the_largest_that_will_do() {
    let small = node_named("n1", "a,10,8000,NVIDIA-T4,true,hami-core:");
    let small_too = node_named("n2", "a,10,8000,NVIDIA-T4,true,hami-core:");
    let large = node_named("n2", "b,10,80000,NVIDIA-A100,true,hami-core:");
    let all = json!({ "volcano.sh/vgpu-number": "2" });
    let half = json!({ "volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory-percentage": "50" });
    let told = |annotations: Value, amounts: &Value, nodes: [&(Kind, Value); 2]| {
        // Nodes that come later count, too.
        let mut objects = vec![group(), pod(annotations, "", std::slice::from_ref(amounts))];
        objects.extend(nodes.map(Clone::clone));
        counts(&world([CardFamily::Virtual], &objects))
    };
    let any = || json!({});
    let of_memory = |amount: &str| [format!("{amount} volcano.sh/vgpu-memory")];
    assert_eq!(told(any(), &all, [&small, &small_too]), of_memory("16000"));
    assert_eq!(told(any(), &all, [&small, &large]), of_memory("160000"));
    assert_eq!(told(any(), &half, [&small, &large]), of_memory("40000"));
    let only = json!({ "nvidia.com/use-gputype": "t4" });
    assert_eq!(told(only, &half, [&small, &large]), of_memory("4000"));
}

#[test]
fn the_largest_card_goes_with_its_node() {
    let mut rows = rows([CardFamily::Virtual].into());
    let (mut mirror, mut tables) = (Mirror::new(), Tables::new());
    let all = json!({ "volcano.sh/vgpu-number": "1" });
    let objects = [
        node_named("n1", "a,10,8000,NVIDIA-T4,true,hami-core:"),
        node_named("n2", "b,10,80000,NVIDIA-A100,true,hami-core:"),
        group(),
        pod(json!({}), "", &[all]),
    ];
    for (kind, object) in objects {
        let change = mirror.apply(kind, &object.to_string());
        let change = change.expect("the object is read").expect("it is news");
        rows.feed(&mirror, &change, &mut tables);
    }
    let (kind, mut node) = node_named("n2", "");
    node["metadata"]["resourceVersion"] = json!("3");
    let change = mirror.delete(kind, &node.to_string());
    let change = change.expect("the object is read").expect("it was there");
    rows.feed(&mirror, &change, &mut tables);
    let world = World { mirror, tables };
    assert_eq!(counts(&world), ["8000 volcano.sh/vgpu-memory"]);
}

#[test]
fn no_other_cards_count() {
    let amounts = json!({ "volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "3000" });
    let objects = [group(), pod(json!({}), "", &[amounts])];
    let off = world([CardFamily::Npu], &objects);
    assert_eq!(counts(&off), Vec::<String>::new());
    let npus = json!({ "huawei.com/Ascend310P": "1", "huawei.com/Ascend310P-memory": "3000" });
    let objects = [group(), pod(json!({}), "", &[npus])];
    let of_npus = world([CardFamily::Virtual, CardFamily::Npu], &objects);
    assert_eq!(counts(&of_npus), Vec::<String>::new());
}
