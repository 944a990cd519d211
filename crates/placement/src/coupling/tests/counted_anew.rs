//! The rules once more, in the plainest way: every node and every pod is looked at for each task.

use std::collections::BTreeMap;

use model::{
    Inclusion, NodeId, Phase, PodTerm, Refusal, Shape, Spread, Tables, TaintEffect, Task, TaskId,
};

use super::super::{between, downward, emptiest, upward};
use crate::arguments::Switched;
use crate::plugin::{Room, Score, View};
use crate::plugins::nodeorder::POINT;

type Domains = BTreeMap<String, i64>;

/// Where the pods are that a task's rules speak of, counted once per task.
pub(super) struct Anew<'a> {
    shape: &'a Shape,
    affinity: Vec<(&'a PodTerm, Domains)>,
    /// Whether the task itself matches all its affinity terms and nothing else does yet.
    first_of_its_kind: bool,
    anti_affinity: Vec<(&'a PodTerm, Domains)>,
    avoided: Vec<(&'a str, String)>,
    attraction: BTreeMap<(&'a str, String), i64>,
    spread: Vec<(&'a Spread, Domains, i64)>,
}

fn domain<'a>(tables: &'a Tables, node: NodeId, key: &str) -> Option<&'a str> {
    tables.node(node).spec.labels.get(key)
}

/// The tasks on nodes; later, without those on their way out and with the promised ones.
fn on_nodes(tables: &Tables, room: Room) -> impl Iterator<Item = (&Task, NodeId)> {
    tables.nodes().flat_map(move |(id, node)| {
        let promised = node.promised.iter().filter(move |_| room == Room::Later);
        let tasks = node.tasks.iter().chain(promised);
        let tasks = tasks.map(move |task| (tables.task(*task), id));
        tasks.filter(move |(task, _)| room == Room::Now || task.phase != Phase::Releasing)
    })
}

fn selected(tables: &Tables, term: &PodTerm, room: Room) -> Domains {
    let mut domains = Domains::new();
    for (task, node) in on_nodes(tables, room) {
        if let Some(value) = domain(tables, node, &term.topology_key)
            && term.selects(&task.key.namespace, &task.labels)
        {
            *domains.entry(value.to_owned()).or_default() += 1;
        }
    }
    domains
}

/// By the term's key, those of whom all the terms speak.
fn near(tables: &Tables, term: &PodTerm, terms: &[PodTerm], room: Room) -> Domains {
    let mut domains = Domains::new();
    for (task, node) in on_nodes(tables, room) {
        let speaks = |it: &PodTerm| it.selects(&task.key.namespace, &task.labels);
        if let Some(value) = domain(tables, node, &term.topology_key)
            && terms.iter().all(speaks)
        {
            *domains.entry(value.to_owned()).or_default() += 1;
        }
    }
    domains
}

/// The same as of the selected with the promised ones, now, too: a promise is kept.
fn with_a_say(tables: &Tables, term: &PodTerm, room: Room) -> Domains {
    let mut domains = selected(tables, term, room);
    let promised = tables
        .tasks()
        .filter(|(_, task)| task.phase == Phase::Pipelined);
    for (_, task) in promised.filter(|_| room == Room::Now) {
        let value = task
            .node
            .and_then(|node| domain(tables, node, &term.topology_key));
        if let Some(value) = value.filter(|_| term.selects(&task.key.namespace, &task.labels)) {
            *domains.entry(value.to_owned()).or_default() += 1;
        }
    }
    domains
}

impl<'a> Anew<'a> {
    pub(super) fn of(view: View<'a>, task: TaskId, room: Room) -> Anew<'a> {
        let tables = view.tables;
        let row = tables.task(task);
        let shape = tables.shape_of(task);
        let count = |terms: &'a [PodTerm]| -> Vec<(&'a PodTerm, Domains)> {
            terms
                .iter()
                .map(|term| (term, near(tables, term, terms, room)))
                .collect()
        };
        let pods = view.config.predicates.pod_affinity == Switched::On;
        let affinity = if pods {
            count(&shape.spec.pod_affinity)
        } else {
            Vec::new()
        };
        let matches_itself = |term: &PodTerm| term.selects(&row.key.namespace, &row.labels);
        let first_of_its_kind = affinity.iter().all(|(_, domains)| domains.is_empty())
            && shape.spec.pod_affinity.iter().all(matches_itself);
        let mut around = Anew {
            shape,
            affinity,
            first_of_its_kind,
            anti_affinity: if pods {
                let terms = shape.spec.pod_anti_affinity.iter();
                terms
                    .map(|term| (term, with_a_say(tables, term, room)))
                    .collect()
            } else {
                Vec::new()
            },
            avoided: Vec::new(),
            attraction: BTreeMap::new(),
            spread: Vec::new(),
        };
        for wish in &shape.spec.preferred_pods {
            for (value, n) in selected(tables, &wish.term, room) {
                *around
                    .attraction
                    .entry((&wish.term.topology_key, value))
                    .or_default() += n * i64::from(wish.weight);
            }
        }
        around.hear_the_others(tables, row, room);
        if !pods {
            around.avoided.clear();
        }
        // Wishes count whatever is refused.
        let refuses = view.config.predicates.spread == Switched::On;
        let spreads = shape.spec.spread.iter();
        around.spread = spreads
            .filter(|s| refuses || !s.required)
            .map(|s| spread_counts(tables, shape, row, s, room))
            .collect();
        around
    }

    /// What the pods that are there already say about this one.
    fn hear_the_others(&mut self, tables: &'a Tables, row: &Task, room: Room) {
        // A promise is kept: who comes now must suit whoever comes later.
        for (id, other) in tables.tasks() {
            let spec = &tables.shape_of(id).spec;
            let Some(node) = other.node else {
                continue;
            };
            if room == Room::Later && other.phase == Phase::Releasing {
                continue;
            }
            let here = |term: &PodTerm| domain(tables, node, &term.topology_key).map(str::to_owned);
            let speaks = |term: &&PodTerm| term.selects(&row.key.namespace, &row.labels);
            for term in spec.pod_anti_affinity.iter().filter(speaks) {
                if let Some(value) = here(term) {
                    self.avoided.push((&term.topology_key, value));
                }
            }
            let preferred = spec
                .preferred_pods
                .iter()
                .map(|wish| (&wish.term, i64::from(wish.weight)));
            for (term, weight) in preferred.filter(|(term, _)| speaks(term)) {
                if let Some(value) = here(term) {
                    *self
                        .attraction
                        .entry((&term.topology_key, value))
                        .or_default() += weight;
                }
            }
        }
    }

    /// Whether the pods elsewhere forbid the node.
    pub(super) fn refuses(&self, tables: &Tables, node: NodeId) -> Option<Refusal> {
        for (term, domains) in &self.affinity {
            match domain(tables, node, &term.topology_key) {
                None => return Some(Refusal::PodAffinity),
                Some(value) if domains.contains_key(value) || self.first_of_its_kind => {}
                Some(_) => return Some(Refusal::PodAffinity),
            }
        }
        for (term, domains) in &self.anti_affinity {
            if domain(tables, node, &term.topology_key).is_some_and(|v| domains.contains_key(v)) {
                return Some(Refusal::PodAntiAffinity);
            }
        }
        let avoided =
            |(key, value): &(&str, String)| domain(tables, node, key) == Some(value.as_str());
        if self.avoided.iter().any(avoided) {
            return Some(Refusal::ExistingAntiAffinity);
        }
        let required = || self.spread.iter().filter(|(spread, ..)| spread.required);
        if required().any(|(spread, ..)| domain(tables, node, &spread.topology_key).is_none()) {
            return Some(Refusal::SpreadLabel);
        }
        for (spread, domains, own) in required() {
            let value = domain(tables, node, &spread.topology_key)?;
            let enough = domains.len() >= spread.min_domains as usize;
            let least = if enough {
                domains.values().copied().min().unwrap_or(0)
            } else {
                0
            };
            let here = domains.get(value).copied().unwrap_or(0);
            if here + own - least > i64::from(spread.max_skew) {
                return Some(Refusal::Spread);
            }
        }
        None
    }

    /// The best candidate when scores are normalised over all of them; ties go to the lowest id.
    pub(super) fn best(
        &self,
        view: View<'_>,
        candidates: impl Iterator<Item = (NodeId, Score)>,
    ) -> Option<NodeId> {
        let candidates: Vec<(NodeId, Score)> = candidates
            .filter(|(node, _)| self.refuses(view.tables, *node).is_none())
            .collect();
        let weights = &view.config.nodeorder;
        let raw = |f: &dyn Fn(NodeId) -> i64| -> Vec<i64> {
            candidates.iter().map(|(node, _)| f(*node)).collect()
        };
        let columns = [
            (
                weights.node_affinity,
                upward(raw(&|n| preferred(view.tables, self.shape, n))),
            ),
            (
                weights.taints,
                downward(raw(&|n| avoided_taints(view.tables, self.shape, n))),
            ),
            (
                weights.pod_affinity,
                between(raw(&|n| self.attraction_of(view.tables, n))),
            ),
            (
                weights.spread,
                emptiest({
                    let nodes = candidates.iter().map(|(node, _)| *node);
                    nodes.map(|node| self.crowd(view.tables, node)).collect()
                }),
            ),
        ];
        let mut best: Option<(Score, NodeId)> = None;
        for (at, (node, local)) in candidates.iter().enumerate() {
            let coupled: i64 = columns
                .iter()
                .map(|(weight, points)| weight * points[at])
                .sum();
            let score = local.saturating_add(coupled.saturating_mul(POINT));
            if best.is_none_or(|(top, _)| score > top) {
                best = Some((score, *node));
            }
        }
        best.map(|(_, node)| node)
    }

    fn attraction_of(&self, tables: &Tables, node: NodeId) -> i64 {
        let here = self
            .attraction
            .iter()
            .filter(|((key, value), _)| domain(tables, node, key) == Some(value.as_str()));
        here.map(|(_, weight)| *weight).sum()
    }

    /// None where the node lacks a label by which it should be spread.
    fn crowd(&self, tables: &Tables, node: NodeId) -> Option<i64> {
        let wished = self.spread.iter().filter(|(spread, ..)| !spread.required);
        wished
            .map(|(spread, domains, _)| {
                let value = domain(tables, node, &spread.topology_key)?;
                let here = domains.get(value);
                Some(here.map_or(0, |n| n + i64::from(spread.max_skew) - 1))
            })
            .sum()
    }
}

fn spread_counts<'a>(
    tables: &Tables,
    shape: &Shape,
    row: &Task,
    spread: &'a Spread,
    room: Room,
) -> (&'a Spread, Domains, i64) {
    let mut domains = Domains::new();
    for (id, node) in tables.nodes() {
        // Kubernetes, nodeAffinityPolicy: only nodes that the pod selects make domains.
        let terms = shape.spec.node_affinity.as_deref();
        let selected = model::matches_all(&shape.spec.node_selector, &node.spec.labels)
            && terms.is_none_or(|t| {
                t.iter()
                    .any(|t| t.accepts(&node.spec.name, &node.spec.labels))
            });
        // And nodeTaintsPolicy: only those of which the pod bears all taints that keep pods off.
        let barred = node.spec.taints.iter().any(|taint| {
            taint.effect != TaintEffect::PreferNoSchedule
                && !shape.spec.tolerations.iter().any(|it| it.covers(taint))
        });
        // And kube-scheduler: only those in a domain of each spread of the same kind.
        let mut alike = shape.spec.spread.iter();
        let lacks_one = alike.any(|it| {
            it.required == spread.required && domain(tables, id, &it.topology_key).is_none()
        });
        let eligible = !lacks_one
            && (selected || spread.affinity == Inclusion::Ignore)
            && (!barred || spread.taints == Inclusion::Ignore);
        let Some(value) = domain(tables, id, &spread.topology_key).filter(|_| eligible) else {
            continue;
        };
        let promised = node.promised.iter().filter(|_| room == Room::Later);
        let pods = node.tasks.iter().chain(promised);
        let pods = pods.map(|task| tables.task(*task));
        let counted = pods.filter(|task| {
            task.phase != Phase::Releasing
                && task.key.namespace == spread.namespace
                && model::matches_all(&spread.selector, &task.labels)
        });
        *domains.entry(value.to_owned()).or_default() +=
            i64::try_from(counted.count()).unwrap_or(i64::MAX);
    }
    let own = i64::from(model::matches_all(&spread.selector, &row.labels));
    (spread, domains, own)
}

fn preferred(tables: &Tables, shape: &Shape, node: NodeId) -> i64 {
    let node = &tables.node(node).spec;
    let wishes = shape.spec.preferred_nodes.iter();
    wishes
        .filter(|w| w.term.accepts(&node.name, &node.labels))
        .map(|w| i64::from(w.weight))
        .sum()
}

fn avoided_taints(tables: &Tables, shape: &Shape, node: NodeId) -> i64 {
    let taints = tables.node(node).spec.taints.iter();
    let soft = taints.filter(|taint| taint.effect == TaintEffect::PreferNoSchedule);
    let open = soft.filter(|taint| !shape.spec.tolerations.iter().any(|t| t.covers(taint)));
    i64::try_from(open.count()).unwrap_or(i64::MAX)
}
