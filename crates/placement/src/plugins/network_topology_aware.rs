//! Network-topology-aware: fuller hyper-nodes are the better ones (A.6).
//!
//! That tasks which must be close together stay in one hyper-node is their gang's rule, not this
//! plugin's: it holds without it, too.

use model::{DomainId, Kind, Shape, TaskId, Vector};

use crate::actions::bundles::DOMAINS_MAX;
use crate::arguments::{Asked, Switched};
use crate::domains::DomainSums;
use crate::plugin::{Plugin, Score, View};
use crate::plugins::millionths;
use crate::rules::Config;

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "network-topology-aware",
    configure: Some(configure),
    hyper_node_order: Some(hyper_node_order),
    domain_score: Some(domain_score),
    ..Plugin::NONE
};

/// A whole, in millionths.
const WHOLE: i64 = 1_000_000;

/// How much each resource counts, and how pods that need no closeness are treated.
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    whole: i64,
    cpu: i64,
    memory: i64,
    others: Vec<(String, i64)>,
    normal_pods: Switched,
    /// How many hyper-nodes are tried for a gang for which room is taken, at most.
    pub(crate) evicted: i64,
    /// How much less each tier counts than the one below it, in millionths.
    fading: i64,
}

impl Default for Weights {
    fn default() -> Self {
        Weights {
            whole: 1,
            cpu: 1,
            memory: 1,
            others: Vec::new(),
            normal_pods: Switched::On,
            evicted: DOMAINS_MAX,
            fading: 800_000,
        }
    }
}

fn configure(arguments: &mut Asked<'_>, config: &mut Config) {
    let prefix = "hypernode.binpack";
    let names = arguments.text("hypernode.binpack.resources").split(',');
    let names = names.map(str::trim).filter(|name| !name.is_empty());
    let mut weight_of =
        |name: &str| arguments.weight_or_default(&format!("{prefix}.resources.{name}"), 1);
    let others = names
        .map(|name| (name.to_owned(), weight_of(name)))
        .collect();
    config.network = Weights {
        whole: arguments.weight("weight", 1),
        cpu: arguments.weight_or_default("hypernode.binpack.cpu", 1),
        memory: arguments.weight_or_default("hypernode.binpack.memory", 1),
        others,
        normal_pods: arguments.flag("hypernode.binpack.normal-pod.enable", Switched::On),
        evicted: arguments.whole("hypernode.gradient.evict.max-hypernodes", 8, 1, DOMAINS_MAX),
        fading: arguments.millionths("hypernode.binpack.normal-pod.fading", 800_000, 0, 1_000_000),
    };
}

impl Weights {
    fn of(&self, view: View<'_>, kind: Kind) -> i64 {
        match kind {
            Kind::CPU => self.cpu,
            Kind::MEMORY => self.memory,
            kind => {
                let name = view.tables.kinds().name(kind);
                let mut others = self.others.iter();
                others
                    .find(|(other, _)| **other == **name)
                    .map_or(0, |(_, weight)| *weight)
            }
        }
    }
}

/// Σ w·(used + wanted)/allocatable / Σ w in millionths, over the wanted resources that have a weight;
/// nothing if any of them would be beyond the hyper-node.
fn fullness(view: View<'_>, sums: &DomainSums, domain: DomainId, wanted: &Vector) -> i64 {
    let (used, whole) = sums.of(domain);
    let (mut sum, mut count) = (0_i64, 0_i64);
    for (kind, wanted) in wanted.entries().filter(|(_, wanted)| *wanted > 0) {
        let weight = view.config.network.of(view, kind);
        if weight == 0 {
            continue;
        }
        let part = used.get(kind).saturating_add(wanted);
        if part > whole.get(kind) {
            return 0;
        }
        let share = millionths(part, whole.get(kind)).unwrap_or(0);
        sum = sum.saturating_add(share.saturating_mul(weight));
        count = count.saturating_add(weight);
    }
    if count == 0 { 0 } else { sum / count }
}

fn hyper_node_order(
    view: View<'_>,
    sums: &DomainSums,
    domain: DomainId,
    tasks: &[TaskId],
) -> Score {
    let mut wanted = Vector::ZERO;
    for task in tasks {
        wanted.add(&view.tables.shape_of(*task).spec.requests);
    }
    fullness(view, sums, domain, &wanted)
        .saturating_mul(100)
        .saturating_mul(view.config.network.whole)
}

/// What a pod that needs no closeness gets for a node: Σ fading^(t − 1)·s / Σ fading^(t − 1) over the tiers
/// t, where s is the fullness of the node's hyper-node of that tier, and all of it where it has none.
fn domain_score(view: View<'_>, sums: &DomainSums, domain: DomainId, shape: &Shape) -> Score {
    let weights = &view.config.network;
    if weights.normal_pods == Switched::Off {
        return 0;
    }
    let topology = view.tables.topology();
    let named = |id: &DomainId| topology.domain(*id).parent.is_some();
    let mut above = topology.up_from(domain).filter(named).peekable();
    let (mut sum, mut count) = (0_i64, 0_i64);
    for (tier, fade) in sums.tiers().zip(fading(sums.tiers(), weights.fading)) {
        let of_tier = above.next_if(|id| topology.domain(*id).tier == tier);
        let share = of_tier.map_or(WHOLE, |id| fullness(view, sums, id, &shape.spec.requests));
        sum += share * fade / WHOLE;
        count += fade;
    }
    let share = (sum * WHOLE).checked_div(count).unwrap_or(WHOLE);
    (share * 100).saturating_mul(weights.whole)
}

/// How much each tier counts beside the lowest one, in millionths.
fn fading(tiers: impl Iterator<Item = u32>, fading: i64) -> impl Iterator<Item = i64> {
    let (mut fade, mut last) = (WHOLE, None);
    tiers.map(move |tier| {
        let steps = tier - last.replace(tier).unwrap_or(tier);
        fade = fade * power(fading, steps) / WHOLE;
        fade
    })
}

/// A number of millionths so many times by itself.
fn power(mut base: i64, mut times: u32) -> i64 {
    let mut product = WHOLE;
    while times > 0 {
        if times % 2 == 1 {
            product = product * base / WHOLE;
        }
        base = base * base / WHOLE;
        times /= 2;
    }
    product
}
