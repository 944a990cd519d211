//! Binpack: the fuller node is the better one.

use model::{NodeId, Shape};

use crate::arguments::Asked;
use crate::plugin::{Plugin, Score, View};
use crate::plugins::millionths;
use crate::rules::Config;

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

fn configure(arguments: &mut Asked<'_>, config: &mut Config) {
    let names = arguments.text("binpack.resources").split(',');
    let names = names.map(str::trim).filter(|name| !name.is_empty());
    let mut weight_of =
        |name: &str| arguments.weight_or_default(&format!("binpack.resources.{name}"), 1);
    let others = names
        .map(|name| (name.to_owned(), weight_of(name)))
        .collect();
    config.binpack = Weights {
        whole: arguments.weight("binpack.weight", 1),
        cpu: arguments.weight_or_default("binpack.cpu", 1),
        memory: arguments.weight_or_default("binpack.memory", 1),
        others,
    };
}

/// Σ w·(request + used)/allocatable / Σ w × 100 × weight, over the requested resources that have a
/// weight; nothing if any of them would be beyond the node.
fn score(view: View<'_>, shape: &Shape, node: NodeId) -> Score {
    let weights = &view.config.binpack;
    let glance = view.tables.glance(node);
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
        let (used, whole) = glance.use_of(kind).unwrap_or_else(|| {
            let row = view.tables.node(node);
            (row.used.get(kind), row.spec.allocatable.get(kind))
        });
        let part = request.saturating_add(used);
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
