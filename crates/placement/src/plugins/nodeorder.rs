//! Nodeorder: kube-scheduler's scores. Each is a whole number of points from 0 to 100, times a weight.

use model::{Glance, Kind, NodeId, Shape};

use crate::arguments::Asked;
use crate::plugin::{Plugin, Score, View};
use crate::plugins::millionths;
use crate::rules::Config;

/// The row. Scores that look at other nodes or pods (node affinity, taints, pod affinity, spread) are
/// normalised over all candidates and live in `coupling`; points for images change with the node's spec and
/// with how many nodes have them, and are kept with the index (`feasibility`).
pub const PLUGIN: Plugin = Plugin {
    name: "nodeorder",
    configure: Some(configure),
    score: Some(score),
    ..Plugin::NONE
};

/// One point.
pub(crate) const POINT: Score = 1_000_000;

/// How much each score counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights {
    least_requested: i64,
    most_requested: i64,
    balanced: i64,
    pub(crate) node_affinity: i64,
    pub(crate) pod_affinity: i64,
    pub(crate) taints: i64,
    pub(crate) spread: i64,
    pub(crate) images: i64,
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
        images: 0,
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
            images: 1,
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
        images: arguments.weight("imagelocality.weight", defaults.images),
    };
}

fn score(view: View<'_>, shape: &Shape, node: NodeId) -> Score {
    let weights = &view.config.nodeorder;
    let glance = view.tables.glance(node);
    let mut points = requested(weights, shape, glance);
    if weights.balanced != 0 {
        points += balanced(view, shape, node, glance) * weights.balanced;
    }
    points.saturating_mul(POINT)
}

/// Points for how much of the node's cpu and memory is requested then, with their weights.
fn requested(weights: &Weights, shape: &Shape, node: &Glance) -> i64 {
    let (mut least, mut most, mut count) = (0, 0, 0);
    for (at, whole) in node.allocatable.into_iter().enumerate() {
        if whole <= 0 {
            continue;
        }
        count += 1;
        // Kubernetes: pods that request nothing still count as a little here.
        let wanted = node.used_nonzero[at].saturating_add(shape.nonzero[at]);
        if weights.least_requested != 0 && wanted <= whole {
            least += percent(whole - wanted, whole);
        }
        if weights.most_requested != 0 {
            most += percent(wanted.min(whole), whole);
        }
    }
    // Asked for every node: to divide by what is known is much cheaper.
    let mean = |sum: i64| match count {
        2 => sum / 2,
        _ => sum,
    };
    mean(least) * weights.least_requested + mean(most) * weights.most_requested
}

/// Fewer bytes of images are worth nothing.
const IMAGES_FROM: i64 = 23 << 20;

/// More bytes for each container are worth no more.
const IMAGES_UP_TO: i64 = 1_000 << 20;

/// Points, without their weight, for the images of the shape that the node has: by their bytes, each in
/// proportion to how many of the nodes have it, so that not all goes to the few that have it.
/// Source: kube-scheduler's ImageLocality.
pub(crate) fn image_points(view: View<'_>, shape: &Shape, node: NodeId) -> u8 {
    let wanted = &shape.spec.images;
    if wanted.is_empty() || view.config.nodeorder.images == 0 {
        return 0;
    }
    let there = &view.tables.node(node).spec.images;
    if there.is_empty() {
        return 0;
    }
    let all = i128::from(view.tables.node_count().max(1));
    let had = wanted.iter().filter_map(|name| {
        let at = there.binary_search_by(|(other, _)| other.cmp(name)).ok()?;
        let nodes = view.tables.nodes_with_image(name);
        Some(i128::from(there[at].1) * i128::from(nodes) / all)
    });
    let from = i128::from(IMAGES_FROM);
    let up_to = i128::try_from(wanted.len()).unwrap_or(1) * i128::from(IMAGES_UP_TO);
    let bytes = had.sum::<i128>().min(up_to) - from;
    u8::try_from((100 * bytes).max(0) / (up_to - from).max(1)).unwrap_or(100)
}

/// What so many points are worth.
pub(crate) fn for_images(view: View<'_>, points: u8) -> Score {
    let points = i64::from(points) * view.config.nodeorder.images;
    points.saturating_mul(POINT)
}

fn percent(part: i64, whole: i64) -> i64 {
    match part.checked_mul(100) {
        Some(scaled) => scaled / whole,
        None => part / (whole / 100).max(1),
    }
}

/// Points for a node whose kinds are used in more equal parts with the task than without it: 75 where that
/// changes nothing, from 50 for the worst change to 100 for the best. A task that requests none of these kinds
/// balances nothing.
/// Source: kube-scheduler's NodeResourcesBalancedAllocation (1.36).
fn balanced(view: View<'_>, shape: &Shape, node: NodeId, glance: &Glance) -> i64 {
    let requests = &shape.spec.requests;
    let gpu = requested_gpu(view, shape);
    if gpu.is_none() && requests.get(Kind::CPU) == 0 && requests.get(Kind::MEMORY) == 0 {
        return 0;
    }
    let (mut with, mut without) = ([0_i64; 3], [0_i64; 3]);
    let mut count = 0;
    let mut take = |kind, used: i64, whole| {
        let part = used.saturating_add(requests.get(kind));
        if let (Some(then), Some(now)) = (millionths(part, whole), millionths(used, whole)) {
            with[count] = then.min(1_000_000);
            without[count] = now.min(1_000_000);
            count += 1;
        }
    };
    for (at, kind) in [Kind::CPU, Kind::MEMORY].into_iter().enumerate() {
        take(kind, glance.used[at], glance.allocatable[at]);
    }
    if let Some(gpu) = gpu {
        let node = view.tables.node(node);
        take(gpu, node.used.get(gpu), node.spec.allocatable.get(gpu));
    }
    50 + (50 + evenness(&with[..count]) - evenness(&without[..count])) / 2
}

/// 100 × (1 − standard deviation of the fractions), rounded down.
fn evenness(fractions: &[i64]) -> i64 {
    let deviation = match *fractions {
        [one, other] => (one - other).abs() / 2,
        [one, other, third] => {
            let mean = (one + other + third) / 3;
            let squares = fractions.iter().map(|f| (f - mean) * (f - mean));
            (squares.sum::<i64>() / 3).isqrt()
        }
        _ => 0,
    };
    (1_000_000 - deviation) / 10_000
}

/// The kind of cards that the shape requests in Kubernetes' own way, if it does.
fn requested_gpu(view: View<'_>, shape: &Shape) -> Option<Kind> {
    let requests = &shape.spec.requests;
    // Most request nothing of the kind, and know it without looking for its name.
    if requests.amounts().len() <= Kind::PODS.index() + 1 {
        return None;
    }
    let gpu = view.tables.kinds().find("nvidia.com/gpu")?;
    (requests.get(gpu) > 0).then_some(gpu)
}
