//! Nodeorder: kube-scheduler's scores. Each is a whole number of points from 0 to 100, times a weight.

use model::{Kind, NodeId, Shape};

use crate::arguments::Asked;
use crate::plugin::{Plugin, Score, View};
use crate::plugins::millionths;
use crate::rules::Config;

/// The row. Scores that look at other nodes or pods (node affinity, taints, pod affinity, spread) are
/// normalised over all candidates and live in `coupling`.
pub const PLUGIN: Plugin = Plugin {
    name: "nodeorder",
    configure: Some(configure),
    score: Some(score),
    ..Plugin::NONE
};

/// One point.
pub(crate) const POINT: Score = 1_000_000;

/// How much each score counts. Image locality is left out: nothing tells which images a node has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights {
    least_requested: i64,
    most_requested: i64,
    balanced: i64,
    pub(crate) node_affinity: i64,
    pub(crate) pod_affinity: i64,
    pub(crate) taints: i64,
    pub(crate) spread: i64,
}

impl Weights {
    /// Nothing counts.
    pub(crate) const NONE: Weights = Weights {
        least_requested: 0,
        most_requested: 0,
        balanced: 0,
        node_affinity: 0,
        pod_affinity: 0,
        taints: 0,
        spread: 0,
    };
}

impl Default for Weights {
    fn default() -> Self {
        Weights {
            least_requested: 1,
            most_requested: 0,
            balanced: 1,
            node_affinity: 2,
            pod_affinity: 2,
            taints: 3,
            spread: 2,
        }
    }
}

fn configure(arguments: &mut Asked<'_>, config: &mut Config) {
    let defaults = Weights::default();
    config.nodeorder = Weights {
        least_requested: arguments.weight("leastrequested.weight", defaults.least_requested),
        most_requested: arguments.weight("mostrequested.weight", defaults.most_requested),
        balanced: arguments.weight("balancedresource.weight", defaults.balanced),
        node_affinity: arguments.weight("nodeaffinity.weight", defaults.node_affinity),
        pod_affinity: arguments.weight("podaffinity.weight", defaults.pod_affinity),
        taints: arguments.weight("tainttoleration.weight", defaults.taints),
        spread: arguments.weight("podtopologyspread.weight", defaults.spread),
    };
    arguments.without_effect(&["imagelocality.weight"]);
}

fn score(view: View<'_>, shape: &Shape, node: NodeId) -> Score {
    let weights = &view.config.nodeorder;
    let node = view.tables.node(node);
    let mut points = 0_i64;
    if weights.least_requested != 0 || weights.most_requested != 0 {
        let (mut least, mut most, mut count) = (0, 0, 0);
        for (at, kind) in [Kind::CPU, Kind::MEMORY].into_iter().enumerate() {
            let whole = node.spec.allocatable.get(kind);
            if whole <= 0 {
                continue;
            }
            count += 1;
            // Kubernetes: pods that request nothing still count as a little here.
            let wanted = node.used_nonzero[at].saturating_add(shape.nonzero[at]);
            if wanted <= whole {
                least += percent(whole - wanted, whole);
            }
            most += percent(wanted.min(whole), whole);
        }
        if count > 0 {
            points +=
                least / count * weights.least_requested + most / count * weights.most_requested;
        }
    }
    if weights.balanced != 0 {
        points += balanced(view, shape, node) * weights.balanced;
    }
    points.saturating_mul(POINT)
}

fn percent(part: i64, whole: i64) -> i64 {
    match part.checked_mul(100) {
        Some(scaled) => scaled / whole,
        None => part / (whole / 100).max(1),
    }
}

/// 100 × (1 − standard deviation of the used fractions), rounded down.
fn balanced(view: View<'_>, shape: &Shape, node: &model::Node) -> i64 {
    let gpu = view.tables.kinds().find("nvidia.com/gpu");
    let gpu = gpu.filter(|kind| shape.spec.requests.get(*kind) > 0);
    let mut fractions = [0_i64; 3];
    let mut count = 0;
    for kind in [Some(Kind::CPU), Some(Kind::MEMORY), gpu]
        .into_iter()
        .flatten()
    {
        let part = node
            .used
            .get(kind)
            .saturating_add(shape.spec.requests.get(kind));
        if let Some(fraction) = millionths(part, node.spec.allocatable.get(kind)) {
            fractions[count] = fraction.min(1_000_000);
            count += 1;
        }
    }
    let deviation = match count {
        2 => (fractions[0] - fractions[1]).abs() / 2,
        3 => {
            let mean = fractions.iter().sum::<i64>() / 3;
            (fractions
                .iter()
                .map(|f| (f - mean) * (f - mean))
                .sum::<i64>()
                / 3)
            .isqrt()
        }
        _ => 0,
    };
    (1_000_000 - deviation) / 10_000
}
