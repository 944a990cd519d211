//! I10: one number for a state, by names and never by ids, so that two histories can be compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use model::{Phase, PodTerm, Tables};

/// The digest of everything that the world would see of the tables: who is where, in which state, and
/// what is used. Equal histories, however ordered or repeated, give equal digests.
pub fn digest(tables: &Tables) -> u64 {
    // FNV-1a, 64 bits: small, and the same everywhere.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in describe(tables).bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

/// What [`digest`] is made of, a line a row, sorted: for finding where two states differ.
pub fn describe(tables: &Tables) -> String {
    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    for (_, node) in tables.nodes() {
        lines.insert(
            format!("node {}", node.spec.name),
            amounts(tables, &[&node.spec.allocatable, &node.used]),
        );
        for (card, load) in node.cards.iter() {
            let name = format!("node {} card {card}", node.spec.name);
            lines.insert(name, format!("{load:?}"));
        }
    }
    for (_, task) in tables.tasks() {
        let node = task
            .node
            .and_then(|id| tables.find_node(id))
            .map_or("-", |node| &node.spec.name);
        let line = format!("{} {:?} {node} {}", task.uid, task.phase, task.gated);
        lines.insert(format!("task {}", task.key), line);
        let spec = &tables.shape(task.shape).spec;
        let wished = spec.preferred_pods.iter().map(|wish| &wish.term);
        let required = spec.pod_affinity.iter().chain(&spec.pod_anti_affinity);
        let terms: Vec<&PodTerm> = required.chain(wished).collect();
        // Of whom is over nobody asks any more where it may be.
        let is_over = matches!(task.phase, Phase::Succeeded | Phase::Failed);
        if !terms.is_empty() && !is_over {
            lines.insert(format!("task {} terms", task.key), format!("{terms:?}"));
        }
    }
    for (_, gang) in tables.gangs().filter(|(_, gang)| gang.known) {
        let line = format!(
            "{} {} {:?} {}",
            gang.spec.uid,
            gang.spec.queue,
            gang.phase(),
            gang.spec.min_member
        );
        lines.insert(format!("gang {}", gang.spec.key), line);
    }
    for (_, queue) in tables.queues().filter(|(_, queue)| queue.known) {
        let line = format!(
            "{:?} {}",
            queue.spec.state,
            amounts(tables, &[&queue.used, &queue.pending])
        );
        lines.insert(format!("queue {}", queue.spec.name), line);
    }
    for (_, domain) in tables.topology().domains() {
        let nodes = domain.nodes.iter().map(|id| &*tables.node(*id).spec.name);
        let nodes: BTreeSet<&str> = nodes.collect();
        let above = domain.parent.map(|id| &*tables.topology().domain(id).name);
        let line = format!("{} {above:?} {nodes:?}", domain.tier);
        lines.insert(format!("hyper-node {}", domain.name), line);
    }
    lines
        .into_iter()
        .map(|(name, line)| format!("{name} = {line}\n"))
        .collect()
}

/// Kinds by name: their numbers depend on the order in which they were met.
fn amounts(tables: &Tables, vectors: &[&model::Vector]) -> String {
    let mut text = String::new();
    for vector in vectors {
        let named: BTreeMap<_, _> = vector
            .entries()
            .map(|(kind, value)| (tables.kinds().name(kind).clone(), value))
            .collect();
        let _ = write!(text, "{named:?}");
    }
    text
}
