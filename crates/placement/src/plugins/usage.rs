//! Usage: nodes are taken for what is really used of them, not for what is requested (A.6).
//!
//! What was measured lags behind what was placed: tasks that came to a node since then count with an
//! estimate of their use, until a measurement has them in it wholly.

use model::{Kind, Measured, Node, NodeId, Refusal, Shape, Task, Time};

use crate::arguments::Asked;
use crate::plugin::{Plugin, Score, View};
use crate::plugins::millionths;
use crate::rules::Config;

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "usage",
    looks_at_measures: true,
    configure: Some(configure),
    suits: Some(suits),
    score: Some(score),
    turned: Some(turned),
    turns_at: Some(turns_at),
    ..Plugin::NONE
};

/// A whole, in millionths.
const WHOLE: i64 = 1_000_000;

/// How much counts, and from where on a node is left alone.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    weight: i64,
    cpu: i64,
    memory: i64,
    /// More than this of a node's cpu may not be used, in millionths of it.
    cpu_most: i64,
    /// The same of memory.
    memory_most: i64,
    estimator: Estimator,
}

/// What a task uses that was not measured yet.
#[derive(Clone, Debug)]
struct Estimator {
    /// This part of its request, in millionths,
    request_ratio: i64,
    /// and this part of what its limit lets it use beyond that.
    burst_ratio: i64,
    /// From this use of a node on, in millionths, estimates are taken for larger than they are,
    risk_threshold: i64,
    /// so many times, in millionths.
    risk_factor: i64,
    /// What a task uses that requests nothing: cpu in thousandths, memory in bytes.
    best_effort: [i64; 2],
}

impl Default for Estimator {
    fn default() -> Self {
        Estimator {
            request_ratio: 700_000,
            burst_ratio: 0,
            risk_threshold: 600_000,
            risk_factor: 1_200_000,
            best_effort: [250, 200 << 20],
        }
    }
}

impl Setup {
    /// Whether an estimate may go beyond what a task requests: only then it matters what its limits are.
    pub(crate) fn wants_limits(&self) -> bool {
        let estimator = &self.estimator;
        let most = times(estimator.request_ratio, estimator.risk_factor);
        estimator.burst_ratio > 0 || most > WHOLE
    }
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            weight: 5,
            cpu: 1,
            memory: 1,
            cpu_most: 800_000,
            memory_most: 800_000,
            estimator: Estimator::default(),
        }
    }
}

impl Setup {
    /// How much of a node's cpu and memory may be used, in millionths of it.
    pub(crate) fn most(&self) -> [i64; 2] {
        [self.cpu_most, self.memory_most]
    }
}

fn configure(asked: &mut Asked<'_>, config: &mut Config) {
    let default = Setup::default();
    let per_cent =
        |asked: &mut Asked<'_>, key: &str| asked.millionths(key, 80 * WHOLE, 0, 100 * WHOLE) / 100;
    let most = asked.map("thresholds", |asked| {
        (per_cent(asked, "cpu"), per_cent(asked, "mem"))
    });
    let (cpu_most, memory_most) = most.unwrap_or((default.cpu_most, default.memory_most));
    let estimator = asked.map("estimator", estimator);
    config.usage = Setup {
        weight: asked.weight("usage.weight", default.weight),
        cpu: asked.weight("cpu.weight", default.cpu),
        memory: asked.weight("memory.weight", default.memory),
        cpu_most,
        memory_most,
        estimator: estimator.unwrap_or(default.estimator),
    };
}

fn estimator(asked: &mut Asked<'_>) -> Estimator {
    let default = Estimator::default();
    let [cpu, memory] = default.best_effort;
    Estimator {
        request_ratio: asked.millionths("request_ratio", default.request_ratio, 0, 10 * WHOLE),
        burst_ratio: asked.millionths("burst_ratio", default.burst_ratio, 0, WHOLE),
        risk_threshold: asked.millionths("risk_threshold", default.risk_threshold, 0, WHOLE),
        risk_factor: asked.millionths("risk_factor", default.risk_factor, WHOLE, 10 * WHOLE),
        best_effort: [
            asked.amount("be_cpu", 1_000, cpu),
            asked.amount("be_mem", 1, memory),
        ],
    }
}

fn suits(view: View<'_>, _: &Shape, node: NodeId) -> Option<Refusal> {
    let measured = view.tables.node(node).measured_at(view.state.now)?;
    let setup = &view.config.usage;
    let short = match measured {
        Measured { cpu, .. } if *cpu > setup.cpu_most => "cpu",
        Measured { memory, .. } if *memory > setup.memory_most => "memory",
        _ => return None,
    };
    Some(Refusal::Overused {
        resource: short.into(),
    })
}

/// ((1 − cpu)·wc + (1 − memory)·wm) / (wc + wm) × 100 × weight, of what is used and what is thought to be;
/// nothing for a node of which nothing is known.
fn score(view: View<'_>, _: &Shape, node: NodeId) -> Score {
    let node = view.tables.node(node);
    let Some(measured) = node.measured_at(view.state.now) else {
        return 0;
    };
    let setup = &view.config.usage;
    let [cpu, memory] = composite(view, node, measured);
    let Some(used) = weighed(setup, [cpu, memory]) else {
        return 0;
    };
    ((WHOLE - used) * 100).saturating_mul(setup.weight)
}

/// Cpu and memory as one; nothing where neither counts.
fn weighed(setup: &Setup, [cpu, memory]: [i64; 2]) -> Option<i64> {
    let sum = cpu * setup.cpu + memory * setup.memory;
    sum.checked_div(setup.cpu + setup.memory)
}

/// What was measured with what is thought of tasks that came since, in millionths of the node.
fn composite(view: View<'_>, node: &Node, measured: &Measured) -> [i64; 2] {
    let setup = &view.config.usage;
    let estimator = &setup.estimator;
    let tasks = node.tasks.iter().map(|task| view.tables.task(*task));
    let recent = tasks.filter(|task| came_after(task, measured.since));
    let shapes: Vec<&Shape> = recent.map(|task| view.tables.shape(task.shape)).collect();
    let with = |factor: i64| {
        let mut sums = [0_i64; 2];
        for shape in &shapes {
            for (sum, part) in sums.iter_mut().zip(estimate(estimator, shape, factor)) {
                *sum = sum.saturating_add(part);
            }
        }
        let kinds = [
            (Kind::CPU, measured.cpu, sums[0]),
            (Kind::MEMORY, measured.memory, sums[1]),
        ];
        kinds.map(|(kind, measured, sum)| {
            let whole = node.spec.allocatable.get(kind);
            let part = millionths(sum, whole).unwrap_or(WHOLE);
            measured.saturating_add(part).clamp(0, WHOLE)
        })
    };
    let plain = with(WHOLE);
    match weighed(setup, plain) {
        Some(used) if used >= estimator.risk_threshold => with(estimator.risk_factor),
        _ => plain,
    }
}

/// Whether a task is not, or not wholly, in what was measured since then. One whose node has not told
/// yet that it took it has just come.
fn came_after(task: &Task, since: Time) -> bool {
    task.started.is_none_or(|at| at > since)
}

/// Nobody is thought to use more than his limit, or than he requests where there is none.
fn estimate(estimator: &Estimator, shape: &Shape, factor: i64) -> [i64; 2] {
    let spec = &shape.spec;
    if spec.is_best_effort() {
        return estimator.best_effort.map(|part| times(part, factor));
    }
    let [cpu, memory] = spec.burst;
    [(Kind::CPU, cpu), (Kind::MEMORY, memory)].map(|(kind, burst)| {
        let request = spec.requests.get(kind);
        let beyond = times(burst, estimator.burst_ratio);
        let used = times(request, estimator.request_ratio).saturating_add(beyond);
        times(used, factor).min(request.saturating_add(burst))
    })
}

/// So many times a number, the factor in millionths.
fn times(number: i64, factor: i64) -> i64 {
    let product = i128::from(number) * i128::from(factor) / i128::from(WHOLE);
    i64::try_from(product).unwrap_or(i64::MAX)
}

/// Until when each measurement counts.
fn ends(view: View<'_>) -> impl Iterator<Item = (NodeId, Time)> {
    let nodes = view.tables.nodes();
    nodes.filter_map(|(id, node)| Some((id, node.measured.as_ref()?.until())))
}

fn turned(view: View<'_>, before: Time) -> Vec<NodeId> {
    let passed = ends(view).filter(|(_, end)| before < *end && *end <= view.state.now);
    passed.map(|(id, _)| id).collect()
}

fn turns_at(view: View<'_>) -> Option<Time> {
    let ends = ends(view).map(|(_, end)| end);
    ends.filter(|end| *end > view.state.now).min()
}
