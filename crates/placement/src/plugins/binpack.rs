//! Binpack: the fuller node is the better one.

use model::{NodeId, Shape};

use crate::plugin::{Plugin, Score, View};
use crate::plugins::millionths;
use crate::rules::Config;
use crate::settings::Arguments;

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "binpack",
    configure: Some(configure),
    score: Some(score),
    ..Plugin::NONE
};

/// How much each resource counts.
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    whole: i64,
    cpu: i64,
    memory: i64,
    others: Vec<(String, i64)>,
}

impl Default for Weights {
    fn default() -> Self {
        Weights {
            whole: 1,
            cpu: 1,
            memory: 1,
            others: Vec::new(),
        }
    }
}

fn configure(arguments: &Arguments, config: &mut Config) {
    let weight = |key: &str| {
        let value = arguments.int(key, 1);
        if value < 0 { 1 } else { value }
    };
    let names = arguments
        .text("binpack.resources")
        .split(',')
        .map(str::trim);
    config.binpack = Weights {
        whole: arguments.int("binpack.weight", 1),
        cpu: weight("binpack.cpu"),
        memory: weight("binpack.memory"),
        others: names
            .filter(|name| !name.is_empty())
            .map(|name| {
                (
                    name.to_owned(),
                    weight(&format!("binpack.resources.{name}")),
                )
            })
            .collect(),
    };
}

/// Σ w·(request + used)/allocatable / Σ w × 100 × weight, over the requested resources that have a
/// weight; nothing if any of them would be beyond the node.
fn score(view: View<'_>, shape: &Shape, node: NodeId) -> Score {
    let weights = &view.config.binpack;
    let node = view.tables.node(node);
    let (mut sum, mut count) = (0_i64, 0_i64);
    for (kind, request) in shape.spec.requests.entries() {
        let weight = match kind {
            model::Kind::CPU => weights.cpu,
            model::Kind::MEMORY => weights.memory,
            kind => {
                let name = view.tables.kinds().name(kind);
                weights
                    .others
                    .iter()
                    .find(|(other, _)| **other == **name)
                    .map_or(0, |(_, w)| *w)
            }
        };
        if weight == 0 {
            continue;
        }
        let whole = node.spec.allocatable.get(kind);
        let part = request.saturating_add(node.used.get(kind));
        if part > whole {
            return 0;
        }
        sum = sum.saturating_add(millionths(part, whole).unwrap_or(0).saturating_mul(weight));
        count = count.saturating_add(weight);
    }
    if count == 0 {
        0
    } else {
        (sum / count)
            .saturating_mul(100)
            .saturating_mul(weights.whole)
    }
}
