//! How many nodes there are and what each has.

use std::collections::BTreeMap;

use api::core::ResourceList;
use api::quantity::{Format, Quantity};

use crate::stage::{STAGES, Stage};

/// A fleet's shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How many nodes; they are called `sim-node-0` and so on.
    pub nodes: u32,
    /// Nodes that somebody else makes and whose pods live here, too, by name.
    pub others: Vec<Box<str>>,
    /// What a node has of cpu.
    pub cpu: Quantity,
    /// What a node has of memory.
    pub memory: Quantity,
    /// How many pods a node takes.
    pub pods: u32,
    /// What else a node has, such as `nvidia.com/gpu`.
    pub extra: ResourceList,
    /// Labels of every node, besides its own.
    pub labels: BTreeMap<Box<str>, Box<str>>,
    /// Nodes are spread over so many zones in turn; 0 for no zone labels.
    pub zones: u32,
    /// What happens to pods, first match first.
    pub stages: Vec<Stage>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            nodes: 3,
            others: Vec::new(),
            cpu: Quantity::from_value(32, Format::DecimalSi),
            memory: Quantity::from_value(256 << 30, Format::BinarySi),
            pods: 110,
            extra: ResourceList::new(),
            labels: BTreeMap::new(),
            zones: 0,
            stages: STAGES.to_vec(),
        }
    }
}
