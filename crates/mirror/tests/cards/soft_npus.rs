//! Soft parts of NPUs: those that a library in each container divides.

use api::volcano::device_config::DeviceConfig;
use model::{NpuDivision, NpuDivisionAsk};

use super::*;

const NPUS: [CardFamily; 1] = [CardFamily::Npu];

/// One kind of NPUs, whose cores are called otherwise.
const RENAMED: &str = "
vnpus:
  hamiVnpuCore: true
  configs:
  - {commonWord: Ascend910B3, resourceName: huawei.com/Ascend910B3,
     resourceMemoryName: huawei.com/Ascend910B3-memory, resourceCoreName: huawei.com/Ascend910B3-power,
     memoryAllocatable: 65536, memoryCapacity: 65536}
";

fn rows_of(config: &str) -> Rows {
    let mut rows = rows(NPUS.into());
    rows.put_device_config(DeviceConfig::read(config).expect("it is understood"));
    rows
}

fn npu_limits(count: &str, mib: &str, cores: &str) -> Value {
    let amounts = [("", count), ("-memory", mib), ("-core", cores)];
    let said = amounts.iter().filter(|(_, amount)| !amount.is_empty());
    said.map(|(end, amount)| (format!("huawei.com/Ascend310P{end}"), json!(amount)))
        .collect()
}

#[test]
fn a_node_says_how_its_npus_are_divided_else_the_config_map_does() {
    let division = |config: &str, annotations: &Value| {
        let world = world_of(rows_of(config), &[node(annotations.clone(), json!({}))]);
        cards_of(&world.tables).npu_division
    };
    let core = |word: &str| json!({ "hami-vnpu-core": word });
    let enpu = json!({ "hami-vnpu-core": "false", "hami.io/enpu": "true" });
    use NpuDivision::{Foreign, Soft, Templates};
    for (config, silent) in [
        ("", Templates),
        ("vnpus: {hamiVnpuCore: true}", Soft),
        ("vnpus: {hamiVnpuMode: hamiCore}", Soft),
        (
            "vnpus: {hamiVnpuMode: template, hamiVnpuCore: true}",
            Templates,
        ),
        ("vnpus: {hamiVnpuMode: enpu}", Foreign),
    ] {
        assert_eq!(division(config, &json!({})), silent, "{config}");
        assert_eq!(division(config, &core("true")), Soft, "{config}");
        assert_eq!(division(config, &core("false")), Templates, "{config}");
        assert_eq!(division(config, &core("")), Templates, "{config}");
        assert_eq!(division(config, &enpu), Foreign, "{config}");
    }
}

/// How the pod's NPUs are to be divided, and `COUNT x MIB:CORES TEMPLATE`, with `in part` where that is no
/// whole one.
fn asked(mode: &str, limits: &Value) -> (NpuDivisionAsk, String) {
    let pod = pod(
        json!({ "huawei.com/vnpu-mode": mode }),
        "",
        std::slice::from_ref(limits),
    );
    let world = world(NPUS, &[pod]);
    let spec = world.tables.shape_of(task_of(&world.tables)).spec.clone();
    let ask = spec.cards.as_deref().expect("it wants some");
    let part = &ask.parts[0];
    let (count, memory, cores) = (part.cards, part.memory.of(0), part.cores);
    let words = format!("{count} x {memory}:{cores} {}", part.template);
    let words = words.trim_end().to_owned();
    let end = if part.is_partial { " in part" } else { "" };
    (ask.npu_division, words + end)
}

#[test]
fn a_container_gets_as_much_memory_and_as_many_cores_as_it_asks_for() {
    use NpuDivision::{Soft, Templates};
    use NpuDivisionAsk::{Any, Only, Unknown};
    for (mode, [count, mib, cores], division, part) in [
        (
            "hami-core",
            ["1", "5000", "30"],
            Only(Soft),
            "1 x 5000:30 in part",
        ),
        (
            " hami-core ",
            ["1", "5000", ""],
            Only(Soft),
            "1 x 5000:0 in part",
        ),
        (
            "hami-core",
            ["1", "", "30"],
            Only(Soft),
            "1 x 21527:30 in part",
        ),
        (
            "hami-core",
            ["", "5000", "30"],
            Only(Soft),
            "1 x 5000:30 in part",
        ),
        ("hami-core", ["2", "", ""], Only(Soft), "2 x 21527:0"),
        (
            "hami-core",
            ["2", "21527", "100"],
            Only(Soft),
            "2 x 21527:100",
        ),
        (
            "hami-core",
            ["1", "30000", "700"],
            Only(Soft),
            "1 x 30000:100",
        ),
        ("hami-core", ["1", "1", "-7"], Only(Soft), "1 x 1:0 in part"),
        ("", ["1", "5000", "0"], Any, "1 x 6144:0 vir02 in part"),
        ("", ["1", "5000", "1"], Only(Soft), "1 x 5000:1 in part"),
        (
            "template",
            ["1", "5000", ""],
            Only(Templates),
            "1 x 6144:0 vir02 in part",
        ),
        (
            "template",
            ["1", "5000", "1"],
            Unknown,
            "1 x 6144:0 vir02 in part",
        ),
        (
            "enpu",
            ["1", "5000", "1"],
            Unknown,
            "1 x 6144:0 vir02 in part",
        ),
        ("Hami-core", ["1", "", ""], Unknown, "1 x 21527:0"),
    ] {
        let limits = npu_limits(count, mib, cores);
        assert_eq!(
            asked(mode, &limits),
            (division, part.to_owned()),
            "{mode}: {limits}"
        );
    }
}

#[test]
fn cores_of_npus_are_in_no_sum_whatever_they_are_called() {
    let (kind, mut gang) = group();
    gang["spec"]["minResources"] = json!({
        "huawei.com/Ascend910B3": "2", "huawei.com/Ascend910B3-memory": "8000",
        "huawei.com/Ascend910B3-power": "60",
    });
    let limits = json!({
        "huawei.com/Ascend910B3": "1", "huawei.com/Ascend910B3-memory": "8000",
        "huawei.com/Ascend910B3-power": "30",
    });
    let world = world_of(
        rows_of(RENAMED),
        &[(kind, gang), pod(json!({}), "", &[limits])],
    );
    let names = |amounts: &model::Vector| {
        let kinds = world.tables.kinds();
        let names = amounts.entries();
        let names = names.map(|(kind, _)| kinds.name(kind).to_string());
        names.collect::<Vec<String>>()
    };
    let id = world.tables.gang_keyed(&Key::new("a", "g"));
    let gang = &world.tables.gang(id.expect("the gang has a row")).spec;
    let least = gang.min_resources.as_ref().expect("it says its minimum");
    assert_eq!(names(least), ["huawei.com/Ascend910B3"]);
    let spec = &world.tables.shape_of(task_of(&world.tables)).spec;
    assert_eq!(names(&spec.requests), ["huawei.com/Ascend910B3"]);
    let ask = spec.cards.as_deref().expect("it wants some");
    assert_eq!(ask.parts[0].cores, 30);
}

#[test]
fn a_pod_with_soft_parts_is_bound_with_its_memory_and_cores_and_known_by_them_after_a_restart() {
    let limits = [npu_limits("1", "5001", "30"), npu_limits("1", "700", "")];
    let npu = |part: u32, card: &str, memory: i64, cores: i64| Grant {
        kind: "Ascend310P".into(),
        ..grant(part, card, memory, cores)
    };
    let grants = vec![npu(0, "A", 5_001, 30), npu(1, "B", 700, 0)];
    let (binding, _) = bound(NPUS, &limits, grants.clone());
    let ids = "A,Ascend310P,5001,30:;B,Ascend310P,700,0:;";
    assert_eq!(
        binding["metadata"]["annotations"],
        json!({
            "hami.io/Ascend310P-devices-allocated": ids,
            "hami.io/Ascend310P-devices-to-allocate": ids,
            "hami.io/bind-phase": "allocating",
            "hami.io/bind-time": "1700000000",
            "hami.io/vgpu-node": "n1",
            "hami.io/vgpu-time": "1700000000",
            "huawei.com/Ascend310P":
                r#"[{"UUID":"A","memory":5001,"core":30},{"UUID":"B","memory":700}]"#,
            "huawei.com/vnpu-mode": "hami-core",
            "predicate-time": "1700000000",
        })
    );
    assert_eq!(read_again(NPUS, &limits, &binding), grants);
}
