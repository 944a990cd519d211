//! The words of the fixture language that speak of NUMA nodes.

use std::sync::Arc;

use model::{Grant, NumaAsk, NumaLayout, NumaPart, NumaResource, Units};

const GPU: &str = "nvidia.com/gpu";

/// `0-3,8`
fn list(text: &str) -> Units {
    Units::of_list(text).expect("a list of units")
}

/// `pin=2` or `pin=2:1` for each container, cpus and GPUs, and `policy=restricted`. Whether the word
/// speaks of NUMA nodes.
pub fn wants(ask: &mut NumaAsk, word: &str, value: &str) -> bool {
    match word {
        "pin" => {
            let (cpus, gpus) = value.split_once(':').unwrap_or((value, "0"));
            let count = |text: &str| text.parse::<u32>().expect("a number");
            let units = [(NumaLayout::CPU, count(cpus)), (GPU, count(gpus))];
            let units = units.into_iter().filter(|(_, count)| *count > 0);
            ask.parts.push(NumaPart {
                container: format!("c{}", ask.parts.len()).into(),
                units: units.map(|(name, count)| (name.into(), count)).collect(),
            });
        }
        "policy" => ask.policy = value.into(),
        _ => return false,
    }
    true
}

/// `cpu:0-3`
pub fn grant(text: &str) -> Grant {
    let (resource, units) = text.split_once(':').expect("resource:units");
    Grant {
        card: resource.into(),
        units: list(units),
        ..Grant::default()
    }
}

/// What a node's words say of its NUMA nodes: `numa=2x4` (NUMA nodes of so many cpus, each a socket),
/// `smt` (cores of two cpus), `one-socket`, `gpus=0,1` (the NUMA node of each), `policy=restricted`,
/// `unpinned`, `open=0-3`, `reserved=1`, `numa-garbled`.
pub struct OfNode {
    nodes: Option<(u32, u32)>,
    is_smt: bool,
    is_one_socket: bool,
    gpus: Vec<usize>,
    open: Option<Units>,
    layout: NumaLayout,
}

impl Default for OfNode {
    fn default() -> Self {
        OfNode {
            nodes: None,
            is_smt: false,
            is_one_socket: false,
            gpus: Vec::new(),
            open: None,
            layout: NumaLayout {
                pins_cpus: true,
                ..NumaLayout::default()
            },
        }
    }
}

impl OfNode {
    /// Whether the word speaks of NUMA nodes.
    pub fn hears(&mut self, word: &str, value: &str) -> bool {
        let count = |text: &str| text.parse::<u32>().expect("a number");
        match word {
            "numa" => {
                let (nodes, cpus) = value.split_once('x').expect("nodes x cpus");
                self.nodes = Some((count(nodes), count(cpus)));
            }
            "smt" => self.is_smt = true,
            "one-socket" => self.is_one_socket = true,
            "gpus" => {
                let nodes = value.split(',').map(|node| count(node) as usize);
                self.gpus = nodes.collect();
            }
            "policy" => self.layout.policy = value.into(),
            "unpinned" => self.layout.pins_cpus = false,
            "open" => self.open = Some(list(value)),
            "reserved" => self.layout.reserved_cpus = count(value),
            "numa-garbled" => self.layout.is_garbled = true,
            _ => return false,
        }
        true
    }

    /// How the node is laid out, if the words say it.
    pub fn layout(&self) -> Option<Arc<NumaLayout>> {
        let (nodes, cpus) = self.nodes?;
        let by_node: Vec<Units> = (0..nodes)
            .map(|node| (node * cpus..(node + 1) * cpus).collect())
            .collect();
        let sockets = match self.is_one_socket {
            true => vec![(0..nodes * cpus).collect()],
            false => by_node.clone(),
        };
        let threads = if self.is_smt { 2 } else { 1 };
        let cores = (0..nodes * cpus / threads).map(|core| {
            let units: Units = (core * threads..(core + 1) * threads).collect();
            let socket = sockets.iter().position(|all: &Units| all.holds(&units));
            (socket.expect("each core is on a socket"), units)
        });
        let open = self.open.clone();
        let mut resources = vec![NumaResource {
            name: NumaLayout::CPU.into(),
            open: open.unwrap_or_else(|| (0..nodes * cpus).collect()),
            by_node,
        }];
        if !self.gpus.is_empty() {
            let on = |node: usize| {
                let gpus = (0_u32..).zip(&self.gpus);
                gpus.filter(move |(_, at)| **at == node).map(|(gpu, _)| gpu)
            };
            resources.push(NumaResource {
                name: GPU.into(),
                by_node: (0..nodes as usize).map(|node| on(node).collect()).collect(),
                open: (0_u32..).zip(&self.gpus).map(|(gpu, _)| gpu).collect(),
            });
        }
        Some(Arc::new(NumaLayout {
            nodes: (0..nodes).collect(),
            cores: cores.collect(),
            sockets,
            resources,
            ..self.layout.clone()
        }))
    }
}
