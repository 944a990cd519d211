//! Virtual GPUs whose resources a ConfigMap calls otherwise.

use api::volcano::device_config::DeviceConfig;

use super::*;

const NAMES: &str = "
nvidia:
  resourceCountName: nvidia.com/gpu
  resourceMemoryName: nvidia.com/gpumem
  resourceMemoryPercentageName: nvidia.com/gpumem-percentage
  resourceCoreName: nvidia.com/gpucores
";

/// What the tables say of the node's cards, of what the pod wants of cards and of its requests, and of
/// the least that the gang needs; read under the names of a ConfigMap.
fn read_as(config: &str, objects: &[(Kind, Value)]) -> [String; 4] {
    let mut rows = rows([CardFamily::Virtual].into());
    rows.put_device_config(DeviceConfig::read(config).expect("it is understood"));
    let (mut mirror, mut tables) = (Mirror::new(), Tables::new());
    for (kind, object) in objects {
        let change = mirror.apply(*kind, &object.to_string());
        let change = change.expect("the object is read").expect("it is news");
        rows.feed(&mirror, &change, &mut tables);
    }
    let kinds = tables.kinds();
    let named = |amounts: &model::Vector| {
        let names = amounts
            .entries()
            .map(|(kind, _)| kinds.name(kind).to_string());
        names.collect::<Vec<String>>().join(" ")
    };
    let spec = &tables.shape_of(task_of(&tables)).spec;
    let part = |part: &model::Part| format!("{} x {:?} {}", part.cards, part.memory, part.cores);
    let parts = spec.cards.iter().flat_map(|ask| ask.parts.iter().map(part));
    let gang = tables
        .gang_keyed(&Key::new("a", "g"))
        .expect("it has a row");
    let least = tables.gang(gang).spec.min_resources.as_ref();
    let cards = cards_of(&tables)
        .list
        .iter()
        .map(|card| card.id.to_string());
    [
        cards.collect::<Vec<String>>().join(" "),
        parts.collect::<Vec<String>>().join(" "),
        named(&spec.requests),
        least.map_or_else(String::new, named),
    ]
}

/// A node, a gang's least and a pod, whose virtual GPUs are called so.
fn objects(count: &str, memory: &str, percentage: &str, cores: &str) -> [(Kind, Value); 3] {
    let register =
        json!({ "volcano.sh/node-vgpu-register": "G,10,16000,NVIDIA-A100,true,hami-core:" });
    let node = node(
        register,
        json!({ count: "10", memory: "16000", cores: "100", "cpu": "8" }),
    );
    let (kind, mut group) = group();
    group["spec"]["minResources"] =
        json!({ count: "2", memory: "8000", percentage: "50", cores: "60" });
    let limits = json!({ count: "2", memory: "4000", cores: "30" });
    [node, (kind, group), pod(json!({}), "", &[limits])]
}

#[test]
fn what_a_config_map_calls_virtual_gpus_are_virtual_gpus() {
    let theirs = objects(
        "nvidia.com/gpu",
        "nvidia.com/gpumem",
        "nvidia.com/gpumem-percentage",
        "nvidia.com/gpucores",
    );
    let read = read_as(NAMES, &theirs);
    assert_eq!(
        read,
        ["G", "2 x Mib(4000) 30", "nvidia.com/gpu", "nvidia.com/gpu"]
    );
    // Without it they are resources like all others, on a node without virtual cards.
    let all = "nvidia.com/gpu nvidia.com/gpucores nvidia.com/gpumem";
    let [cards, parts, requests, least] = read_as("", &theirs);
    assert_eq!((&*cards, &*parts), ("", ""));
    let sorted = |text: &str| {
        let mut words: Vec<&str> = text.split(' ').collect();
        words.sort_unstable();
        words.join(" ")
    };
    assert_eq!(sorted(&requests), all);
    assert_eq!(
        sorted(&least),
        format!("{all} nvidia.com/gpumem-percentage")
    );
}

#[test]
fn a_percentage_has_its_own_name_and_counts_before_the_memory() {
    let [node, group, _] = objects("a/n", "a/m", "a/p", "a/c");
    let limits = json!({ "a/m": "4000", "a/p": "25" });
    let names = "nvidia: {resourceCountName: a/n, resourceMemoryName: a/m, \
                 resourceMemoryPercentageName: a/p, resourceCoreName: a/c}";
    let read = read_as(names, &[node, group, pod(json!({}), "", &[limits])]);
    assert_eq!(read, ["G", "1 x Percent(25) 0", "", "a/n"]);
}

#[test]
fn a_node_without_some_of_each_renamed_resource_has_no_virtual_gpus() {
    for lacking in ["nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"] {
        let [(kind, mut node), group, pod] = objects(
            "nvidia.com/gpu",
            "nvidia.com/gpumem",
            "nvidia.com/gpumem-percentage",
            "nvidia.com/gpucores",
        );
        node["status"]["allocatable"][lacking] = json!("0");
        let [cards, ..] = read_as(NAMES, &[(kind, node), group, pod]);
        assert_eq!(cards, "", "{lacking}");
    }
}
