//! `device-config.yaml`: which parts cards can be had in, as the device plugins' ConfigMap says it.
//!
//! Source: `specs/volcano.md`, section A.7. What only device plugins look at is not read. What the file
//! does not say stays as it is known: what resources of GPUs are called, the sizes of slices of some
//! GPUs, and one kind of NPUs.

mod known;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::card_keys::{
    VGPU_CORES, VGPU_MEMORY, VGPU_MEMORY_PERCENTAGE, VGPU_NUMBER, VNPU_MODE_HAMI_CORE,
    VNPU_MODE_TEMPLATE,
};
use crate::yaml::{Limits, first};

/// The key of the ConfigMap.
pub const DEVICE_CONFIG: &str = "device-config.yaml";
/// The ConfigMap's name where none is configured.
pub const DEVICE_CONFIG_NAME: &str = "volcano-vgpu-device-config";
/// The ConfigMap's namespace where none is configured.
pub const DEVICE_CONFIG_NAMESPACE: &str = "kube-system";

/// No ConfigMap holds more.
const BYTES_MAX: usize = 1 << 20;
const YAML: Limits = Limits {
    depth: 16,
    nodes: 20_000,
};
/// Models, ways to divide one, kinds, templates of one: of each so many at most.
const ROWS_MAX: usize = 128;
/// No card has so many slices.
const SLICES_MAX: u32 = 64;
/// No card has more MiB.
const MEMORY_MAX: i64 = 1 << 40;
/// No name is longer; annotations are made of it.
const NAME_MAX: usize = 40;

/// What is known of cards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceConfig {
    /// What the resources of virtual GPUs are called.
    pub gpu_resources: GpuResources,
    /// How GPUs divide themselves, the first row whose words are in a model's name.
    pub gpus: Vec<GpuConfig>,
    /// MiB in one unit in which memory of GPUs is counted.
    pub gpu_memory_factor: i64,
    /// Kinds of NPUs.
    pub npus: Vec<NpuConfig>,
    /// How NPUs are divided on nodes that do not say it themselves.
    pub npu_mode: NpuMode,
}

/// What the resources are called by which containers want virtual GPUs, and nodes have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuResources {
    /// How many.
    pub count: String,
    /// MiB of each of them.
    pub memory: String,
    /// Per cent of the memory of each of them.
    pub memory_percentage: String,
    /// Per cent of the cores of each of them.
    pub cores: String,
}

impl Default for GpuResources {
    fn default() -> GpuResources {
        GpuResources {
            count: VGPU_NUMBER.to_owned(),
            memory: VGPU_MEMORY.to_owned(),
            memory_percentage: VGPU_MEMORY_PERCENTAGE.to_owned(),
            cores: VGPU_CORES.to_owned(),
        }
    }
}

impl GpuResources {
    /// The keys of the file, each with its name.
    fn keyed(&mut self) -> [(&'static str, &mut String); 4] {
        [
            ("resourceCountName", &mut self.count),
            ("resourceMemoryName", &mut self.memory),
            ("resourceMemoryPercentageName", &mut self.memory_percentage),
            ("resourceCoreName", &mut self.cores),
        ]
    }

    /// Takes the names that the file tells.
    fn read(&mut self, nvidia: &Value) -> Result<(), String> {
        for (key, name) in self.keyed() {
            match &nvidia[key] {
                Value::Null => {}
                Value::String(told) if told.is_empty() => {}
                Value::String(told) => name.clone_from(told),
                _ => return Err(format!("{key}: the name of a resource is wanted")),
            }
        }
        Ok(())
    }

    /// What is counted card by card: of several cards each has so much.
    pub fn by_card(&self) -> [&str; 3] {
        [&self.cores, &self.memory, &self.memory_percentage]
    }
}

/// How GPUs of some models divide themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuConfig {
    /// Words, one of which is in the model's name.
    pub models: Vec<String>,
    /// The ways.
    #[serde(rename = "allowedGeometries")]
    pub ways: Vec<Way>,
}

/// A way to divide a GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// Its name.
    pub group: String,
    /// The slices.
    #[serde(rename = "geometries")]
    pub sizes: Vec<SliceSize>,
}

/// Slices of one size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceSize {
    /// Their name, such as `1g.5gb`.
    #[serde(default)]
    pub name: String,
    /// MiB of each.
    pub memory: i64,
    /// How many there are.
    pub count: u32,
}

/// A kind of NPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NpuConfig {
    /// Its name, of which annotations are made.
    pub common_word: String,
    /// The resource of which a container wants so many.
    pub resource_name: String,
    /// The resource by which it wants so much of one.
    pub resource_memory_name: String,
    /// The resource by which it wants so many percent of the cores of each.
    pub resource_core_name: String,
    /// MiB that a container has of a whole one.
    pub memory_allocatable: i64,
    /// MiB that a whole one has.
    pub memory_capacity: i64,
    /// The parts in which one can be had.
    pub templates: Vec<Template>,
}

/// A part of an NPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Template {
    /// Its name.
    pub name: String,
    /// Its MiB.
    pub memory: i64,
}

/// How the NPUs of a node are divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NpuMode {
    /// By themselves, in the parts that [`NpuConfig::templates`] lists.
    #[default]
    Template,
    /// By a library in each container, at any place.
    HamiCore,
    /// In a way of which only their device plugin knows.
    Enpu,
}

impl NpuMode {
    /// What a map of NPUs says of it: its newer key, else the older one.
    fn of_map(map: &Map<String, Value>) -> Result<NpuMode, String> {
        const MODE: &str = "hamiVnpuMode";
        const CORE: &str = "hamiVnpuCore";
        let word = match map.get(MODE) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(word)) => word.trim().to_lowercase(),
            Some(_) => return Err(format!("vnpus.{MODE}: a word is wanted")),
        };
        let core = match map.get(CORE) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(core)) => *core,
            Some(_) => return Err(format!("vnpus.{CORE}: true or false is wanted")),
        };
        match &*word {
            "" if core => Ok(NpuMode::HamiCore),
            "" | "template" => Ok(NpuMode::Template),
            VNPU_MODE_HAMI_CORE | "hamicore" => Ok(NpuMode::HamiCore),
            "enpu" => Ok(NpuMode::Enpu),
            _ => Err(format!(
                "vnpus.{MODE}: template, hami-core or enpu is wanted"
            )),
        }
    }

    /// The word for it in a file.
    fn word(self) -> &'static str {
        match self {
            NpuMode::Template => VNPU_MODE_TEMPLATE,
            NpuMode::HamiCore => VNPU_MODE_HAMI_CORE,
            NpuMode::Enpu => "enpu",
        }
    }
}

impl NpuConfig {
    /// The same with a name for what the file has none for.
    fn named(mut self) -> NpuConfig {
        if self.resource_core_name.is_empty() {
            self.resource_core_name = format!("{}-core", self.resource_name);
        }
        self
    }

    /// What is counted card by card: of several NPUs each has so much.
    pub fn by_card(&self) -> [&str; 2] {
        [&self.resource_memory_name, &self.resource_core_name]
    }

    /// What a container gets that wants so many MiB: the smallest part that has them, else the whole.
    /// How much that is, and the part's name; `None` where not even the whole has so much.
    pub fn part(&self, memory: i64) -> Option<(i64, &str)> {
        let parts = self.templates.iter().filter(|part| part.memory >= memory);
        match parts.min_by_key(|part| part.memory) {
            Some(part) => Some((part.memory, &part.name)),
            None if memory <= self.memory_capacity => Some((self.memory_allocatable, "")),
            None => None,
        }
    }
}

/// A way in either of the forms in which it is written.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Named(Way),
    /// Of before ways had names.
    Bare(Vec<SliceSize>),
}

impl DeviceConfig {
    /// Reads a file. It costs no more than a constant times its length.
    ///
    /// # Errors
    /// What is wrong with it: nothing of it counts then.
    pub fn read(text: &str) -> Result<DeviceConfig, String> {
        if text.len() > BYTES_MAX {
            let bytes = text.len();
            return Err(format!("{bytes} bytes are too many: {BYTES_MAX} are read"));
        }
        let told = |flaw: crate::yaml::Flaw| {
            let line = flaw.place.line;
            format!("line {line}: {} {}", flaw.field, flaw.message)
        };
        let (node, _) = first(text, YAML).map_err(told)?;
        match node {
            None => Ok(DeviceConfig::default()),
            Some(node) => DeviceConfig::of_value(&node.json().map_err(told)?),
        }
    }

    /// The same from JSON, such as [`DeviceConfig::value`] gives.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of_value(value: &Value) -> Result<DeviceConfig, String> {
        if !value.is_object() && !value.is_null() {
            return Err("a map is wanted at its top".to_owned());
        }
        let mut config = DeviceConfig::default();
        let nvidia = &value["nvidia"];
        config.gpu_resources.read(nvidia)?;
        let gpus: Vec<WrittenGpu> = rows(&nvidia["knownMigGeometries"], "knownMigGeometries")?;
        if !gpus.is_empty() {
            config.gpus = gpus.into_iter().map(WrittenGpu::named).collect();
        }
        if let Some(factor) = nvidia["gpuMemoryFactor"].as_i64().filter(|it| *it != 0) {
            config.gpu_memory_factor = factor;
        }
        // A list in files of before, a map with a list in others.
        let npus = match &value["vnpus"] {
            Value::Object(map) => {
                config.npu_mode = NpuMode::of_map(map)?;
                map.get("configs").unwrap_or(&Value::Null)
            }
            list => list,
        };
        let npus: Vec<NpuConfig> = rows(npus, "vnpus")?;
        if !npus.is_empty() {
            config.npus = npus.into_iter().map(NpuConfig::named).collect();
        }
        config.check()?;
        Ok(config)
    }

    /// As JSON, of which [`DeviceConfig::of_value`] makes the same again.
    pub fn value(&self) -> Value {
        let mut nvidia = json!({
            "gpuMemoryFactor": self.gpu_memory_factor,
            "knownMigGeometries": self.gpus,
        });
        for (key, name) in self.gpu_resources.clone().keyed() {
            nvidia[key] = json!(name);
        }
        let npus = match self.npu_mode {
            NpuMode::Template => json!(self.npus),
            mode => json!({ "hamiVnpuMode": mode.word(), "configs": self.npus }),
        };
        json!({ "nvidia": nvidia, "vnpus": npus })
    }

    /// Refuses what cannot be meant, or is beyond all bounds.
    fn check(&self) -> Result<(), String> {
        if !(1..=MEMORY_MAX).contains(&self.gpu_memory_factor) {
            return Err("gpuMemoryFactor is no number from 1".to_owned());
        }
        for (at, row) in self.gpus.iter().enumerate() {
            let wrong = |what: &str| Err(format!("knownMigGeometries[{at}]: {what}"));
            let mut groups = BTreeSet::new();
            if row.models.is_empty() || row.models.iter().any(String::is_empty) {
                return wrong("no model is named");
            }
            if row.models.len() > ROWS_MAX || row.ways.len() > ROWS_MAX {
                return wrong("so many are too many");
            }
            for way in &row.ways {
                let sizes = way.sizes.iter();
                let slices = sizes.fold(0_u32, |sum, size| sum.saturating_add(size.count));
                let mut sizes = way.sizes.iter();
                if !is_name(&way.group) || way.group.contains('-') || !groups.insert(&way.group) {
                    return wrong(
                        "its groups need names of their own, of letters, digits, . and _",
                    );
                }
                if slices > SLICES_MAX || sizes.any(|size| !is_memory(size.memory)) {
                    return wrong("its slices cannot be meant");
                }
            }
        }
        self.check_names()
    }

    /// No two resources have one name, nor two kinds.
    fn check_names(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        let mut resources = self.gpu_resources.clone();
        for (key, name) in resources.keyed() {
            if !is_resource(name) || !names.insert(&*name) {
                return Err(format!("{key} is no name of its own, such as volcano.sh/x"));
            }
        }
        for (at, npu) in self.npus.iter().enumerate() {
            let wrong = |what: &str| Err(format!("vnpus[{at}]: {what}"));
            let resources = [&npu.resource_name, &npu.resource_memory_name];
            if !is_name(&npu.common_word) || !names.insert(&npu.common_word) {
                return wrong("commonWord is no name of its own, of letters, digits, -, . and _");
            }
            let mut resources = resources.into_iter();
            if resources.any(|it| !is_resource(it) || !names.insert(it)) {
                return wrong("resourceName and resourceMemoryName are no names of its own");
            }
            let cores = &npu.resource_core_name;
            if !is_resource(cores) || !names.insert(cores) {
                return Err(format!(
                    "vnpus[{at}].resourceCoreName: {cores} is no name of its own"
                ));
            }
            let mut memory = [npu.memory_allocatable, npu.memory_capacity].into_iter();
            if memory.any(|it| !is_memory(it)) {
                return wrong("memoryAllocatable and memoryCapacity are wanted");
            }
            let is_good = |it: &Template| is_name(&it.name) && is_memory(it.memory);
            if npu.templates.len() > ROWS_MAX || !npu.templates.iter().all(is_good) {
                return wrong("its templates cannot be meant");
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct WrittenGpu {
    models: Vec<String>,
    #[serde(rename = "allowedGeometries")]
    ways: Vec<Written>,
}

impl WrittenGpu {
    fn named(self) -> GpuConfig {
        let ways = self
            .ways
            .into_iter()
            .enumerate()
            .map(|(at, way)| match way {
                Written::Named(way) => way,
                Written::Bare(sizes) => Way {
                    group: format!("group{}", at + 1),
                    sizes,
                },
            });
        GpuConfig {
            models: self.models,
            ways: ways.collect(),
        }
    }
}

/// The rows of a list; none where there is no list.
fn rows<T: DeserializeOwned>(value: &Value, field: &str) -> Result<Vec<T>, String> {
    let list = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) if list.len() <= ROWS_MAX => list,
        Value::Array(_) => return Err(format!("{field}: so many are too many")),
        _ => return Err(format!("{field}: a list is wanted")),
    };
    let rows = list.iter().enumerate().map(|(at, row)| {
        serde_json::from_value(row.clone()).map_err(|error| format!("{field}[{at}]: {error}"))
    });
    rows.collect()
}

/// Whether a resource can be called so: without a domain it would be Kubernetes' own.
fn is_resource(name: &str) -> bool {
    name.contains('/')
}

fn is_memory(mib: i64) -> bool {
    (1..=MEMORY_MAX).contains(&mib)
}

fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    !text.is_empty() && text.len() <= NAME_MAX && text.chars().all(is_plain)
}
