//! What is known of cards where no ConfigMap says it.
//!
//! Source: the geometries that Volcano's chart delivers, NVIDIA's list of MIG profiles, and Volcano's
//! table of Ascend chips.

use super::{DeviceConfig, GpuConfig, GpuResources, NpuConfig, NpuMode, SliceSize, Template, Way};

/// Slices of one size: MiB, and how many there are.
type Size = (i64, u32);

/// Words of models, and their ways to divide themselves, which are called `group1`, `group2`, …
type Known = (&'static [&'static str], &'static [&'static [Size]]);

/// The most telling words first.
const GPUS: &[Known] = &[
    (&["A30"], &[&[(6_144, 4)], &[(12_288, 2)], &[(24_576, 1)]]),
    (
        &["A100-SXM4-40GB", "A100-40GB-PCIe", "A100-PCIE-40GB"],
        &[
            &[(5_120, 7)],
            &[(10_240, 3), (5_120, 1)],
            &[(20_480, 2)],
            &[(40_960, 1)],
        ],
    ),
    (
        &[
            "A100-SXM4-80GB",
            "A100-80GB-PCIe",
            "A100-PCIE-80GB",
            "A100 80GB PCIe",
        ],
        &[
            &[(10_240, 7)],
            &[(20_480, 3), (10_240, 1)],
            &[(40_960, 2)],
            &[(80_896, 1)],
        ],
    ),
];

impl Default for DeviceConfig {
    fn default() -> DeviceConfig {
        let size = |(memory, count): &Size| SliceSize {
            name: String::new(),
            memory: *memory,
            count: *count,
        };
        let way = |(at, sizes): (usize, &&[Size])| Way {
            group: format!("group{}", at + 1),
            sizes: sizes.iter().map(size).collect(),
        };
        let gpus = GPUS.iter().map(|(models, ways)| GpuConfig {
            models: models.iter().map(|&word| word.to_owned()).collect(),
            ways: ways.iter().enumerate().map(way).collect(),
        });
        DeviceConfig {
            gpu_resources: GpuResources::default(),
            gpus: gpus.collect(),
            gpu_memory_factor: 1,
            npus: vec![ascend_310p()],
            npu_mode: NpuMode::default(),
        }
    }
}

fn ascend_310p() -> NpuConfig {
    let templates = [("vir01", 3_072), ("vir02", 6_144), ("vir04", 12_288)];
    let template = |(name, memory): (&str, i64)| Template {
        name: name.to_owned(),
        memory,
    };
    NpuConfig {
        common_word: "Ascend310P".to_owned(),
        resource_name: "huawei.com/Ascend310P".to_owned(),
        resource_memory_name: "huawei.com/Ascend310P-memory".to_owned(),
        resource_core_name: "huawei.com/Ascend310P-core".to_owned(),
        memory_allocatable: 21_527,
        memory_capacity: 24_576,
        templates: templates.map(template).into(),
    }
}
