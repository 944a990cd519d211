use super::*;

const FILE: &str = "
nvidia:
  resourceCountName: volcano.sh/vgpu-number
  deviceSplitCount: 10
  gpuMemoryFactor: 2
  knownMigGeometries:
  - models: [ \"H20\" ]
    allowedGeometries:
      - group: whole
        geometries:
        - {name: 7g.96gb, memory: 98304, count: 1}
  - models: [ \"A30\", \"A31\" ]
    allowedGeometries:
      -
        - {name: 1g.6gb, memory: 6144, count: 4}
vnpus:
- chipName: 910B3
  commonWord: Ascend910B3
  resourceName: huawei.com/Ascend910B3
  resourceMemoryName: huawei.com/Ascend910B3-memory
  memoryAllocatable: 65536
  memoryCapacity: 65536
  aiCore: 20
  aiCPU: 7
  templates:
    - {name: vir10_3c_32g, memory: 32768, aiCore: 10, aiCPU: 3}
    - {name: vir05_1c_16g, memory: 16384, aiCore: 5, aiCPU: 1}
";

#[test]
fn a_file_takes_the_place_of_what_it_speaks_of() {
    let config = DeviceConfig::read(FILE).expect("it is understood");
    assert_eq!(config.gpu_memory_factor, 2);
    let models: Vec<&str> = config.gpus.iter().map(|row| &*row.models[0]).collect();
    assert_eq!(models, ["H20", "A30"]);
    assert_eq!(
        config.gpus[1].ways[0].group, "group1",
        "of a form of before"
    );
    let npus: Vec<&str> = config.npus.iter().map(|it| &*it.common_word).collect();
    assert_eq!(npus, ["Ascend910B3"]);
    let known = DeviceConfig::default();
    for silent in [
        "",
        "# nothing",
        "nvidia: {deviceSplitCount: 4}",
        "vnpus: []",
    ] {
        assert_eq!(DeviceConfig::read(silent), Ok(known.clone()), "{silent}");
    }
}

#[test]
fn what_is_shown_is_read_again_and_a_map_says_the_same_as_a_list() {
    let config = DeviceConfig::read(FILE).expect("it is understood");
    assert_eq!(DeviceConfig::of_value(&config.value()), Ok(config.clone()));
    let known = DeviceConfig::default();
    assert_eq!(DeviceConfig::of_value(&known.value()), Ok(known));
    let mut wrapped = config.value();
    wrapped["vnpus"] = json!({ "hamiVnpuCore": false, "configs": wrapped["vnpus"] });
    assert_eq!(DeviceConfig::of_value(&wrapped), Ok(config));
}

const RENAMED: &str = "
nvidia:
  resourceCountName: nvidia.com/gpu
  resourceMemoryName: nvidia.com/gpumem
  resourceMemoryPercentageName: nvidia.com/gpumem-percentage
  resourceCoreName: nvidia.com/gpucores
  resourcePriorityName: nvidia.com/priority
";

#[test]
fn resources_of_gpus_are_called_as_the_file_says_and_as_ever_where_it_is_silent() {
    let names = |text: &str| {
        let config = DeviceConfig::read(text).expect("it is understood");
        assert_eq!(DeviceConfig::of_value(&config.value()), Ok(config.clone()));
        let names = config.gpu_resources;
        [
            names.count,
            names.memory,
            names.memory_percentage,
            names.cores,
        ]
    };
    let ours = [
        "volcano.sh/vgpu-number",
        "volcano.sh/vgpu-memory",
        "volcano.sh/vgpu-memory-percentage",
        "volcano.sh/vgpu-cores",
    ];
    let theirs = [
        "nvidia.com/gpu",
        "nvidia.com/gpumem",
        "nvidia.com/gpumem-percentage",
        "nvidia.com/gpucores",
    ];
    assert_eq!(names(""), ours);
    assert_eq!(names("nvidia: {resourceCountName: \"\"}"), ours);
    assert_eq!(names(RENAMED), theirs);
    let one = names("nvidia: {resourceCoreName: x/cores}");
    assert_eq!(one, [ours[0], ours[1], ours[2], "x/cores"]);
}

#[test]
fn a_part_is_the_smallest_that_has_the_memory() {
    let config = DeviceConfig::read(FILE).expect("it is understood");
    let npu = &config.npus[0];
    for (memory, part) in [
        (1, Some((16_384, "vir05_1c_16g"))),
        (16_384, Some((16_384, "vir05_1c_16g"))),
        (16_385, Some((32_768, "vir10_3c_32g"))),
        (32_769, Some((65_536, ""))),
        (65_537, None),
    ] {
        assert_eq!(npu.part(memory), part, "{memory}");
    }
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_place() {
    let npu = |field: &str| {
        format!(
            "vnpus: [{{commonWord: A, resourceName: x/r, resourceMemoryName: x/m, memoryAllocatable: 1, \
             memoryCapacity: 1, {field}}}]"
        )
    };
    assert!(DeviceConfig::read(&npu("templates: []")).is_ok());
    let gpu = |way: &str| format!("nvidia: {{knownMigGeometries: [{{models: [A], {way}}}]}}");
    let many = format!("vnpus: [{}]", "{},".repeat(ROWS_MAX + 1));
    for (text, why) in [
        ("[]".to_owned(), "a map is wanted"),
        ("a: [".to_owned(), "line 1"),
        ("vnpus: 3".to_owned(), "vnpus: a list is wanted"),
        ("vnpus: [{}]".to_owned(), "vnpus[0]: commonWord"),
        (many, "so many are too many"),
        (npu("templates: [{memory: 3}]"), "vnpus[0]: its templates"),
        (
            npu("templates: [{name: a, memory: x}]"),
            "vnpus[0]: invalid type",
        ),
        (npu("memoryCapacity: 1"), "memoryCapacity"),
        (
            "nvidia: {gpuMemoryFactor: -1}".to_owned(),
            "gpuMemoryFactor",
        ),
        (
            gpu("allowedGeometries: [{group: a, geometries: [{memory: 1, count: 4000000000}]}]"),
            "knownMigGeometries[0]: its slices",
        ),
        (
            gpu("allowedGeometries: [{group: a-b, geometries: []}]"),
            "knownMigGeometries[0]: its groups",
        ),
        (gpu("allowedGeometries: [7]"), "knownMigGeometries[0]"),
        ("x".repeat(BYTES_MAX + 1), "bytes are too many"),
        (
            "nvidia: {resourceCountName: 3}".to_owned(),
            "resourceCountName: the name of a resource",
        ),
        (
            "nvidia: {resourceCountName: cpu}".to_owned(),
            "resourceCountName is no name of its own",
        ),
        (
            "nvidia: {resourceCoreName: volcano.sh/vgpu-memory}".to_owned(),
            "resourceCoreName is no name of its own",
        ),
        (
            npu("templates: []") + "\nnvidia: {resourceCoreName: x/r}",
            "vnpus[0]: resourceName",
        ),
    ] {
        let said = DeviceConfig::read(&text).expect_err("it is refused");
        assert!(said.contains(why), "{text:.60}: {said}");
    }
}

#[test]
fn a_map_of_npus_says_in_which_mode_they_are() {
    let read = |map: &str| DeviceConfig::read(&format!("vnpus: {map}"));
    for (map, mode) in [
        ("[]", NpuMode::Template),
        ("{}", NpuMode::Template),
        (
            "{hamiVnpuCore: false, hamiVnpuMode: null}",
            NpuMode::Template,
        ),
        ("{hamiVnpuCore: true}", NpuMode::HamiCore),
        (
            "{hamiVnpuCore: true, hamiVnpuMode: \"\"}",
            NpuMode::HamiCore,
        ),
        (
            "{hamiVnpuCore: true, hamiVnpuMode: template}",
            NpuMode::Template,
        ),
        ("{hamiVnpuMode: hami-core}", NpuMode::HamiCore),
        (
            "{hamiVnpuCore: false, hamiVnpuMode: \" hamiCore\"}",
            NpuMode::HamiCore,
        ),
        ("{hamiVnpuMode: enpu}", NpuMode::Enpu),
    ] {
        let config = read(map).expect("it is understood");
        assert_eq!(config.npu_mode, mode, "{map}");
        assert_eq!(config.npus, DeviceConfig::default().npus, "{map}");
        assert_eq!(DeviceConfig::of_value(&config.value()), Ok(config));
    }
    for (map, why) in [
        (
            "{hamiVnpuCore: \"true\"}",
            "vnpus.hamiVnpuCore: true or false",
        ),
        ("{hamiVnpuMode: true}", "vnpus.hamiVnpuMode: a word"),
        ("{hamiVnpuMode: enup}", "vnpus.hamiVnpuMode: template"),
    ] {
        let said = read(map).expect_err("it is refused");
        assert!(said.contains(why), "{map}: {said}");
    }
}

#[test]
fn cores_of_npus_are_called_as_the_file_says_or_after_the_npus() {
    let read = |cores: &str| {
        let kind = "commonWord: A, resourceName: x/a, resourceMemoryName: x/m";
        DeviceConfig::read(&format!(
            "vnpus: [{{{kind}, memoryAllocatable: 1, memoryCapacity: 1{cores}}}]"
        ))
    };
    for (cores, name) in [
        ("", "x/a-core"),
        (", resourceCoreName: \"\"", "x/a-core"),
        (", resourceCoreName: y/power", "y/power"),
    ] {
        let config = read(cores).expect("it is understood");
        assert_eq!(config.npus[0].by_card(), ["x/m", name]);
        assert_eq!(DeviceConfig::of_value(&config.value()), Ok(config));
    }
    for wrong in ["cpu", "x/m", "volcano.sh/vgpu-cores"] {
        let said = read(&format!(", resourceCoreName: {wrong}")).expect_err("it is refused");
        assert!(said.contains("vnpus[0].resourceCoreName"), "{said}");
    }
    let known = DeviceConfig::default();
    assert_eq!(
        known.npus[0].resource_core_name,
        "huawei.com/Ascend310P-core"
    );
}

#[test]
fn resources_of_two_kinds_are_not_one() {
    let kind = |name: &str, memory: &str| {
        format!(
            "{{commonWord: {name}, resourceName: x/{name}, resourceMemoryName: {memory}, \
             memoryAllocatable: 1, memoryCapacity: 1}}"
        )
    };
    for (memory, is_good) in [("x/m", false), ("memory", false), ("x/n", true)] {
        let text = format!("vnpus: [{}, {}]", kind("A", "x/m"), kind("B", memory));
        assert_eq!(DeviceConfig::read(&text).is_ok(), is_good, "{memory}");
    }
}
