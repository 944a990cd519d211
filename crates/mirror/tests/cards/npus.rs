//! NPUs in HAMi's form.

use api::volcano::device_config::DeviceConfig;

use super::*;

const NPUS: [CardFamily; 1] = [CardFamily::Npu];

fn npu_node(register: &str) -> (Kind, Value) {
    node(
        json!({ "hami.io/node-register-Ascend310P": register }),
        json!({ "huawei.com/Ascend310P": "14", "cpu": "8" }),
    )
}

fn npu_limits(count: &str, mib: &str) -> Value {
    json!({ "huawei.com/Ascend310P": count, "huawei.com/Ascend310P-memory": mib })
}

fn parts_of(limits: &[Value]) -> Vec<String> {
    let world = world(NPUS, &[pod(json!({}), "", limits)]);
    let spec = world.tables.shape_of(task_of(&world.tables)).spec.clone();
    let one = |part: &model::Part| {
        let memory = part.memory.of(0);
        format!("{} x {memory} {}", part.cards, part.template)
    };
    let parts = spec.cards.iter().flat_map(|ask| ask.parts.iter().map(one));
    parts.collect()
}

#[test]
fn a_node_tells_of_npus_of_the_kinds_that_it_has() {
    let register = r#"[
        {"id":"A","count":7,"devmem":21527,"devcore":8,"type":"Ascend310P","health":true,
         "custominfo":{"NetworkID":3}},
        {"id":"B","index":1,"count":7,"devmem":21527,"type":"Ascend310P","numa":1}]"#;
    let world = world(NPUS, &[npu_node(register)]);
    let told: Vec<String> = cards_of(&world.tables)
        .list
        .iter()
        .map(|it| {
            format!(
                "{} {} {} {} {} {:?}",
                it.kind, it.id, it.users_max, it.memory, it.is_healthy, it.network
            )
        })
        .collect();
    // Only kinds of 910 have networks.
    assert_eq!(
        told,
        [
            "Ascend310P A 7 21527 true None",
            "Ascend310P B 7 21527 false None"
        ]
    );
}

#[test]
fn a_register_of_a_kind_that_the_node_has_none_of_is_old() {
    let register = json!({ "hami.io/node-register-Ascend310P": "[{\"id\":\"A\"}]" });
    for amounts in [json!({}), json!({ "huawei.com/Ascend310P": "0" })] {
        let world = world(NPUS, &[node(register.clone(), amounts)]);
        assert_eq!(*cards_of(&world.tables), Cards::default());
    }
}

#[test]
fn a_register_of_npus_that_cannot_be_understood_is_no_npu_and_says_so() {
    let one = |id: &str, more: &str| format!("[{{\"id\":\"{id}\"{more}}}]");
    let many: Vec<String> = (0..2_000)
        .map(|at| format!("{{\"id\":\"{at}\"}}"))
        .collect();
    for register in [
        "A,7,21527,Ascend310P,true".to_owned(),
        "{}".to_owned(),
        "[7]".to_owned(),
        "[".repeat(100_000),
        one("", ""),
        one("a,b", ""),
        one("A", ",\"count\":-1"),
        one("A", ",\"devmem\":99999999999999"),
        one("A", ",\"count\":1e40"),
        "[{\"id\":\"A\"},{\"id\":\"A\"}]".to_owned(),
        format!("[{}]", many.join(",")),
    ] {
        let world = world(NPUS, &[npu_node(&register)]);
        let cards = cards_of(&world.tables);
        let is_garbled = cards.is_garbled("Ascend310P") && !cards.is_garbled(model::GPU);
        assert!(is_garbled && cards.list.is_empty(), "{register:.40}");
    }
}

#[test]
fn cards_of_two_families_stay_beside_one_another_when_one_is_garbled() {
    let annotations = json!({
        "volcano.sh/node-vgpu-register": "GPU-a,10,8000,NVIDIA,true,hami-core:",
        "hami.io/node-register-Ascend310P": "[{\"id\":\"GPU-a\"}]",
    });
    let amounts = json!({
        "volcano.sh/vgpu-number": "10", "volcano.sh/vgpu-cores": "100",
        "volcano.sh/vgpu-memory": "8000", "huawei.com/Ascend310P": "7",
    });
    let both = [CardFamily::Virtual, CardFamily::Npu];
    let world = world(both, &[node(annotations, amounts)]);
    let cards = cards_of(&world.tables);
    assert_eq!(cards.list.len(), 1, "one id is of one card");
    assert!(cards.is_garbled("Ascend310P") && !cards.is_garbled(model::GPU));
}

#[test]
fn a_container_gets_the_smallest_part_that_has_what_it_wants() {
    for (count, mib, part) in [
        ("1", "1", "1 x 3072 vir01"),
        ("1", "3072", "1 x 3072 vir01"),
        ("1", "3073", "1 x 6144 vir02"),
        ("1", "12289", "1 x 21527 "),
        ("1", "24576", "1 x 21527 "),
        ("1", "24577", "1 x 9223372036854775807 "),
        ("2", "4096", "2 x 6144 vir02"),
        ("2", "0", "2 x 21527 "),
    ] {
        assert_eq!(parts_of(&[npu_limits(count, mib)]), [part], "{count} {mib}");
    }
    let memory = json!({ "huawei.com/Ascend310P-memory": "4096" });
    assert_eq!(parts_of(&[memory]), ["1 x 6144 vir02"]);
    let count = json!({ "huawei.com/Ascend310P": "1" });
    assert_eq!(parts_of(&[count]), ["1 x 21527 "]);
    for nothing in ["0", "-1"] {
        assert!(parts_of(&[npu_limits(nothing, "4096")]).is_empty());
    }
    let count = json!({ "huawei.com/Ascend310P": "1", "huawei.com/Ascend310P-memory": "4096" });
    let world = world(NPUS, &[pod(json!({}), "", &[count])]);
    let spec = &world.tables.shape_of(task_of(&world.tables)).spec;
    assert_eq!(spec.requests.entries().count(), 1, "memory is in no sum");
}

#[test]
fn a_pod_with_npus_is_bound_in_hamis_words_and_known_by_them_after_a_restart() {
    let both = [CardFamily::Virtual, CardFamily::Npu];
    let limits = [
        npu_limits("1", "4096"),
        json!({ "volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "4000" }),
        json!({ "huawei.com/Ascend310P": "2" }),
    ];
    let npu = |part: u32, card: &str, memory: i64| Grant {
        kind: "Ascend310P".into(),
        ..grant(part, card, memory, 0)
    };
    let grants = vec![
        grant(0, "GPU-a", 4_000, 0),
        npu(1, "A", 6_144),
        npu(2, "C", 21_527),
        npu(2, "B", 21_527),
    ];
    let (binding, _) = bound(both, &limits, grants.clone());
    let ids = "A,Ascend310P,6144,0:;C,Ascend310P,21527,0:B,Ascend310P,21527,0:;";
    let gpus = "GPU-a,NVIDIA,4000,0:";
    assert_eq!(
        binding["metadata"]["annotations"],
        json!({
            "hami.io/Ascend310P-devices-allocated": ids,
            "hami.io/Ascend310P-devices-to-allocate": ids,
            "hami.io/bind-phase": "allocating",
            "hami.io/bind-time": "1700000000",
            "hami.io/vgpu-node": "n1",
            "hami.io/vgpu-time": "1700000000",
            "huawei.com/Ascend310P": r#"[{"UUID":"A","temp":"vir02"},{"UUID":"C","memory":21527},{"UUID":"B","memory":21527}]"#,
            "predicate-time": "1700000000",
            "volcano.sh/bind-phase": "allocating",
            "volcano.sh/bind-time": "1700000000",
            "volcano.sh/devices-to-allocate": gpus,
            "volcano.sh/vgpu-ids-new": gpus,
            "volcano.sh/vgpu-node": "n1",
            "volcano.sh/vgpu-time": "1700000000",
        })
    );
    assert_eq!(read_again(both, &limits, &binding), grants);
}

#[test]
fn what_a_config_map_says_counts_for_what_is_fed_after_it() {
    let text = "
nvidia:
  gpuMemoryFactor: 4
  knownMigGeometries:
  - models: [H20]
    allowedGeometries: [{group: seven, geometries: [{name: 1g, memory: 12288, count: 7}]}]
vnpus:
- commonWord: Ascend910B3
  resourceName: huawei.com/Ascend910B3
  resourceMemoryName: huawei.com/Ascend910B3-memory
  memoryAllocatable: 65536
  memoryCapacity: 65536
";
    let mut rows = rows([CardFamily::Virtual, CardFamily::Npu].into());
    rows.put_device_config(DeviceConfig::read(text).expect("it is understood"));
    let register = json!([
        { "id": "A", "count": 1, "devmem": 65536, "health": true, "custominfo": { "NetworkID": 0 } },
        { "id": "B", "count": 1, "devmem": 65536, "health": true, "custominfo": { "NetworkID": 1 } },
    ]);
    let (kind, object) = node(
        json!({
            "volcano.sh/node-vgpu-register": "G,7,24576,NVIDIA-H20,true,mig:",
            "hami.io/node-register-Ascend910B3": register.to_string(),
            "hami.io/node-register-Ascend310P": "[{\"id\":\"C\"}]",
        }),
        json!({
            "volcano.sh/vgpu-number": "7", "volcano.sh/vgpu-cores": "100",
            "volcano.sh/vgpu-memory": "24576", "huawei.com/Ascend910B3": "2",
            "huawei.com/Ascend310P": "2",
        }),
    );
    let (mut mirror, mut tables) = (Mirror::new(), Tables::new());
    let change = mirror.apply(kind, &object.to_string());
    let change = change.expect("the object is read").expect("it is news");
    rows.feed(&mirror, &change, &mut tables);
    let cards = &cards_of(&tables).list;
    let ids: Vec<&str> = cards.iter().map(|card| &*card.id).collect();
    assert_eq!(ids, ["G", "A", "B"], "nobody knows 310P any more");
    assert_eq!(&*cards[0].geometries[0].group, "seven");
    assert_eq!(
        cards[0].geometries[0].sizes,
        [(3_072, 7)],
        "in units of 4 MiB"
    );
    let networks: Vec<_> = cards.iter().map(|card| card.network).collect();
    assert_eq!(networks, [None, Some(0), Some(1)]);
}
