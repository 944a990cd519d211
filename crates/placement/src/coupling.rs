//! Rules in which a node's worth depends on other nodes or on the pods elsewhere: pod affinity and
//! anti-affinity, topology spread, and the scores that are normalised over all candidates.
//!
//! The list: inter-pod affinity (predicate and score), existing pods' anti-affinity (predicate),
//! topology spread (predicate and score), preferred node affinity (score), avoided taints (score).
//! Points of `numa-aware`, which are in proportion to other nodes alone, are kept with the index (`widths`).
//! Cards that may not be shared with certain others are one of them, too (`deviceshare`).
//! A task that none of them concerns never comes here.
//!
//! Pods elsewhere speak of domains, not of nodes, and where they are is kept from task to task
//! (`census`). So what they say is found out for each domain once, and of nodes of which the same is said
//! only the best need be compared (`feasibility::classes`).

mod census;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{GangId, NodeId, PodTerm, Refusal, ShapeId, ShapeSpec, Spread, Tables, Task, TaskId};

use crate::arguments::Switched;
use crate::feasibility::{Index, Wish};
use crate::plugin::{Room, Score, View};
use crate::plugins::deviceshare;
use crate::plugins::nodeorder::POINT;

pub(crate) use census::{Census, Crowd, Look, Spot, is_meant_by_all};

use census::{Column, Sums, Tally};

/// Whether other pods decide where this task may run.
pub(crate) fn concerns(view: View<'_>, task: TaskId) -> bool {
    if view.tables.shape_of(task).spec.is_coupled() || deviceshare::concerns(view, task) {
        return true;
    }
    let row = view.tables.task(task);
    let speaks = |term: &PodTerm| term.selects(&row.key.namespace, &row.labels);
    let mut shapes = view.tables.coupled_shapes().keys();
    shapes.any(|shape| {
        let spec = &view.tables.shape(*shape).spec;
        spec.pod_anti_affinity.iter().any(speaks) || attractions(spec).any(|(term, _)| speaks(term))
    })
}

/// A shape, and those of pods that have their places and keep a task of it away from them. What is elsewhere
/// tells tasks of one lot apart only by what they ask of it themselves.
pub(crate) type Lot = (ShapeId, Vec<ShapeId>);

/// The task's lot.
pub(crate) fn lot(tables: &Tables, task: TaskId) -> Lot {
    let row = tables.task(task);
    let placed = tables.coupled_shapes().keys();
    let avoids = |shape: &&ShapeId| keeps_away(tables, **shape, row);
    (row.shape, placed.filter(avoids).copied().collect())
}

/// Whether the anti-affinity of a shape speaks of the task.
fn keeps_away(tables: &Tables, shape: ShapeId, row: &Task) -> bool {
    let mut terms = tables.shape(shape).spec.pod_anti_affinity.iter();
    terms.any(|term| term.selects(&row.key.namespace, &row.labels))
}

/// Whether pods that have their places keep tasks of the gang away from them that wait for room for one of
/// these shapes. Of shapes that are coupled themselves nothing is asked: whatever becomes of others may help
/// these.
pub fn is_kept_away(tables: &Tables, gang: GangId, shapes: &BTreeSet<ShapeId>) -> bool {
    let placed = tables.coupled_shapes().keys().copied();
    let shy: Vec<ShapeId> = placed
        .filter(|shape| !tables.shape(*shape).spec.pod_anti_affinity.is_empty())
        .collect();
    if shy.is_empty() {
        return false;
    }
    let is_meant =
        |row: &Task| shapes.contains(&row.shape) && !tables.shape(row.shape).spec.is_coupled();
    let tasks = tables.gang(gang).tasks.iter().map(|id| tables.task(*id));
    let mut waiting = tasks.filter(|row| row.phase.is_waiting() && is_meant(row));
    waiting.any(|row| shy.iter().any(|shape| keeps_away(tables, *shape, row)))
}

/// What a pod's wishes mean to the others, with their weights. What it requires draws nobody: Kubernetes
/// gives that a weight of its own, which Volcano leaves at 0.
fn attractions(spec: &ShapeSpec) -> impl Iterator<Item = (&PodTerm, i64)> {
    let preferred = spec.preferred_pods.iter();
    preferred.map(|wish| (&wish.term, i64::from(wish.weight)))
}

/// What the number of a crowd's pods in a domain means to the task.
#[derive(Clone, Copy, Debug)]
enum Rule<'a> {
    /// It must be near one of them by each of its terms, unless it may be the first.
    Near,
    /// It must not be near any of them.
    Apart,
    /// None of them bears it.
    Unwelcome,
    /// It likes to be near each of them so much, less than not at all where that is negative.
    Drawn(i64),
    /// The same for each of them who likes it near.
    DrawnBack(i64),
    /// They and it are to be spread evenly.
    Even {
        spread: &'a Spread,
        /// Its place among those of the pod.
        at: usize,
        /// Whether the task is one of them.
        is_one: bool,
    },
}

/// One question about where others are.
pub(crate) struct Ask<'a> {
    /// By domains of this key.
    pub(crate) key: &'a Arc<str>,
    /// Of whom.
    pub(crate) crowd: Crowd,
    rule: Rule<'a>,
}

/// All that the task and the pods that are there say of each other.
fn asks<'a>(view: View<'a>, task: TaskId) -> Vec<Ask<'a>> {
    let tables = view.tables;
    let row = tables.task(task);
    let shape = tables.shape_of(task);
    let own = |term: &'a PodTerm, rule| Ask {
        key: &term.topology_key,
        crowd: Crowd::Spoken(term.clone()),
        rule,
    };
    let mut asks = Vec::new();
    let has_predicate = view.config.predicates.pod_affinity == Switched::On;
    if has_predicate {
        let (near, apart) = (&shape.spec.pod_affinity, &shape.spec.pod_anti_affinity);
        asks.extend(near.iter().map(|term| Ask {
            key: &term.topology_key,
            crowd: Crowd::near(near),
            rule: Rule::Near,
        }));
        asks.extend(apart.iter().map(|term| own(term, Rule::Apart)));
    }
    for wish in &shape.spec.preferred_pods {
        asks.push(own(&wish.term, Rule::Drawn(i64::from(wish.weight))));
    }
    let speaks = |term: &PodTerm| term.selects(&row.key.namespace, &row.labels);
    for id in tables.coupled_shapes().keys() {
        let spec = &tables.shape(*id).spec;
        let apart = spec.pod_anti_affinity.iter().filter(|_| has_predicate);
        let apart = apart.map(|term| (term, Rule::Unwelcome));
        let drawn = attractions(spec).map(|(term, weight)| (term, Rule::DrawnBack(weight)));
        let said = apart.chain(drawn).filter(|(term, _)| speaks(term));
        asks.extend(said.map(|(term, rule)| Ask {
            key: &term.topology_key,
            crowd: Crowd::of_shape(tables, *id),
            rule,
        }));
    }
    // Wishes are points, whatever is refused.
    let refuses = view.config.predicates.spread == Switched::On;
    let spreads = shape.spec.spread.iter().enumerate();
    let spreads = spreads.filter(|(_, spread)| refuses || !spread.required);
    asks.extend(spreads.map(|(at, spread)| Ask {
        key: &spread.topology_key,
        crowd: Crowd::of_spread(spread, shape),
        rule: Rule::Even {
            spread,
            at,
            is_one: model::matches_all(&spread.selector, &row.labels),
        },
    }));
    asks
}

/// The same; `None` where each node is a case of its own, whatever its domains are.
pub(crate) fn asks_by_domain<'a>(view: View<'a>, task: TaskId) -> Option<Vec<Ask<'a>>> {
    (!deviceshare::concerns(view, task)).then(|| asks(view, task))
}

/// Why the pods elsewhere forbid a node, in the order in which that is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Bar {
    Affinity,
    AntiAffinity,
    ExistingAntiAffinity,
    /// The spread of this place: of several kube-scheduler tells the pod's first, whatever is wrong with it.
    Spread(usize, Uneven),
}

/// What is wrong with a spread on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Uneven {
    /// It is in no domain.
    NoLabel,
    /// One more would be too many.
    Full,
}

impl Bar {
    fn refusal(self) -> Refusal {
        match self {
            Bar::Affinity => Refusal::PodAffinity,
            Bar::AntiAffinity => Refusal::PodAntiAffinity,
            Bar::ExistingAntiAffinity => Refusal::ExistingAntiAffinity,
            Bar::Spread(_, Uneven::NoLabel) => Refusal::SpreadLabel,
            Bar::Spread(_, Uneven::Full) => Refusal::Spread,
        }
    }
}

/// What is said of every node of a domain, or of all that are in none.
#[derive(Clone, Copy, Debug, Default)]
struct Verdict {
    bar: Option<Bar>,
    attraction: i64,
    crowd: i64,
    /// Whether a spread that is only wished for knows no domain here.
    is_unspread: bool,
}

impl Verdict {
    fn forbid(&mut self, bar: Bar) {
        self.bar = Some(self.bar.map_or(bar, |before| before.min(bar)));
    }
}

/// What is said of the domains of one key.
#[derive(Debug)]
struct Partition {
    key: Arc<str>,
    /// The domain of each node.
    domains: Arc<Vec<u32>>,
    /// The domains of which something is asked, in order, if not of all.
    asked: Option<Vec<u32>>,
    verdicts: Vec<Verdict>,
    outside: Verdict,
}

impl Partition {
    /// Nothing yet, of all domains or of those of some nodes.
    fn of(key: &Arc<str>, column: &Column, only: Option<&[NodeId]>) -> Partition {
        let domains = column.domains().clone();
        let asked = only.map(|nodes| {
            let asked = nodes
                .iter()
                .filter_map(|node| census::domain(&domains, *node));
            asked.collect::<BTreeSet<u32>>().into_iter().collect()
        });
        let count = asked.as_ref().map_or(column.count(), Vec::len);
        Partition {
            key: key.clone(),
            domains,
            asked,
            verdicts: vec![Verdict::default(); count],
            outside: Verdict::default(),
        }
    }

    fn verdict(&self, node: NodeId) -> &Verdict {
        let Some(domain) = census::domain(&self.domains, node) else {
            return &self.outside;
        };
        let at = match &self.asked {
            None => domain as usize,
            Some(asked) => asked
                .binary_search(&domain)
                .expect("only what was asked is told"),
        };
        &self.verdicts[at]
    }

    /// Tells each domain how many of a crowd are there.
    fn tell(&mut self, tally: &Tally, mut hear: impl FnMut(&mut Verdict, Sums)) {
        if let Some(asked) = &self.asked {
            for (domain, verdict) in asked.iter().zip(&mut self.verdicts) {
                hear(verdict, tally.of(*domain));
            }
            return;
        }
        let mut sums = tally.sums.iter().peekable();
        for (domain, verdict) in (0..).zip(&mut self.verdicts) {
            let here = sums.next_if(|(at, _)| **at == domain);
            hear(verdict, here.map_or_else(Sums::default, |(_, sums)| *sums));
        }
    }

    fn apply(&mut self, rule: Rule<'_>, tally: &Tally, room: Room, may_be_first: bool) {
        match rule {
            Rule::Near => {
                self.outside.forbid(Bar::Affinity);
                self.tell(tally, |verdict, sums| {
                    if sums.present(room) == 0 && !may_be_first {
                        verdict.forbid(Bar::Affinity);
                    }
                });
            }
            Rule::Apart => self.tell(tally, |verdict, sums| {
                if sums.with_a_say(room) > 0 {
                    verdict.forbid(Bar::AntiAffinity);
                }
            }),
            Rule::Unwelcome => self.tell(tally, |verdict, sums| {
                if sums.with_a_say(room) > 0 {
                    verdict.forbid(Bar::ExistingAntiAffinity);
                }
            }),
            Rule::Drawn(weight) => self.tell(tally, |verdict, sums| {
                verdict.attraction += sums.present(room) * weight;
            }),
            Rule::DrawnBack(weight) => self.tell(tally, |verdict, sums| {
                verdict.attraction += sums.with_a_say(room) * weight;
            }),
            Rule::Even { spread, at, is_one } if spread.required => {
                self.outside.forbid(Bar::Spread(at, Uneven::NoLabel));
                let most = allowed(spread, tally, room) - i64::from(is_one);
                self.tell(tally, |verdict, sums| {
                    if sums.staying(room) > most {
                        verdict.forbid(Bar::Spread(at, Uneven::Full));
                    }
                });
            }
            Rule::Even { spread, .. } => {
                self.outside.is_unspread = true;
                self.tell(tally, |verdict, sums| {
                    if sums.nodes > 0 {
                        verdict.crowd += sums.staying(room) + i64::from(spread.max_skew) - 1;
                    }
                });
            }
        }
    }
}

/// How many pods a domain may hold: so many more than the emptiest one as the spread allows.
fn allowed(spread: &Spread, tally: &Tally, room: Room) -> i64 {
    let enough = tally.sums.len() >= spread.min_domains as usize;
    let least = tally.least(|sums| sums.staying(room));
    least.filter(|_| enough).unwrap_or(0) + i64::from(spread.max_skew)
}

/// What the pods elsewhere say of nodes for one task.
#[derive(Debug)]
pub(crate) struct Surroundings {
    partitions: Vec<Partition>,
    /// Set where it matters who else is on a card.
    cards: Option<(TaskId, Room)>,
}

impl Surroundings {
    /// What is said of all nodes.
    pub(crate) fn of(
        census: &mut Census,
        view: View<'_>,
        task: TaskId,
        room: Room,
    ) -> Surroundings {
        Surroundings::told(census, view, task, room, None)
    }

    /// What is said of some nodes.
    pub(crate) fn at(
        census: &mut Census,
        view: View<'_>,
        task: TaskId,
        nodes: &[NodeId],
        room: Room,
    ) -> Surroundings {
        Surroundings::told(census, view, task, room, Some(nodes))
    }

    fn told(
        census: &mut Census,
        view: View<'_>,
        task: TaskId,
        room: Room,
        only: Option<&[NodeId]>,
    ) -> Surroundings {
        census.begin();
        let asks = asks(view, task);
        let may_be_first = may_be_first(census, view, task, room, &asks);
        let mut partitions: Vec<Partition> = Vec::new();
        for ask in &asks {
            let (column, tally) = census.count(view.tables, ask.key, &ask.crowd);
            let known = partitions.iter().position(|it| it.key == *ask.key);
            let at = known.unwrap_or_else(|| {
                partitions.push(Partition::of(ask.key, column, only));
                partitions.len() - 1
            });
            partitions[at].apply(ask.rule, tally, room, may_be_first);
        }
        Surroundings {
            partitions,
            cards: deviceshare::concerns(view, task).then_some((task, room)),
        }
    }

    /// Whether the pods elsewhere forbid the node.
    pub(crate) fn refuses(&self, view: View<'_>, node: NodeId) -> Option<Refusal> {
        if let Some((task, room)) = self.cards
            && let Some(refusal) = deviceshare::refuses(view, task, node, room)
        {
            return Some(refusal);
        }
        let bars = self.partitions.iter().filter_map(|it| it.verdict(node).bar);
        bars.min().map(Bar::refusal)
    }

    /// The best candidate when scores are normalised over all of them; ties go to the lowest id, which
    /// comes first. `lean` gives further points for a node.
    pub(crate) fn best(
        &self,
        view: View<'_>,
        index: &Index,
        candidates: impl Iterator<Item = (NodeId, Score)>,
        lean: impl Fn(NodeId) -> Score,
    ) -> Option<NodeId> {
        let candidates: Vec<(NodeId, Score)> = candidates
            .filter(|(node, _)| self.refuses(view, *node).is_none())
            .map(|(node, score)| (node, score.saturating_add(lean(node))))
            .collect();
        let points = self.points(view, &candidates, |node| index.wish(node));
        let mut best: Option<(Score, NodeId)> = None;
        for ((node, _), score) in candidates.iter().zip(points) {
            if best.is_none_or(|(top, _)| score > top) {
                best = Some((score, *node));
            }
        }
        best.map(|(_, node)| node)
    }

    /// What each of these nodes is worth to the task beside the others: its own points, which are given, and
    /// those by what is wished of it and by what is said of it from elsewhere.
    pub(crate) fn points(
        &self,
        view: View<'_>,
        candidates: &[(NodeId, Score)],
        wish: impl Fn(NodeId) -> Wish,
    ) -> Vec<Score> {
        let weights = &view.config.nodeorder;
        let raw = |f: &dyn Fn(NodeId) -> i64| -> Vec<i64> {
            candidates.iter().map(|(node, _)| f(*node)).collect()
        };
        let columns = [
            (weights.node_affinity, upward(raw(&|n| wish(n).preferred))),
            (weights.taints, downward(raw(&|n| wish(n).avoided))),
            (
                weights.pod_affinity,
                between(raw(&|n| self.sum(n, |verdict| verdict.attraction))),
            ),
            (
                weights.spread,
                emptiest(candidates.iter().map(|(n, _)| self.crowd(*n)).collect()),
            ),
        ];
        let of = |at: usize| {
            columns
                .iter()
                .map(move |(weight, points)| weight * points[at])
        };
        let all = candidates.iter().enumerate();
        all.map(|(at, (_, local))| {
            let coupled: i64 = of(at).sum();
            local.saturating_add(coupled.saturating_mul(POINT))
        })
        .collect()
    }

    fn sum(&self, node: NodeId, of: impl Fn(&Verdict) -> i64) -> i64 {
        let partitions = self.partitions.iter();
        partitions.map(|it| of(it.verdict(node))).sum()
    }

    /// How crowded the node's domains are; none where one of them is lacking.
    fn crowd(&self, node: NodeId) -> Option<i64> {
        let mut verdicts = self.partitions.iter().map(|it| it.verdict(node));
        verdicts.try_fold(0, |sum, it| (!it.is_unspread).then_some(sum + it.crowd))
    }
}

/// Whether the task matches all its affinity terms itself and nobody else does yet.
fn may_be_first(
    census: &mut Census,
    view: View<'_>,
    task: TaskId,
    room: Room,
    asks: &[Ask<'_>],
) -> bool {
    let row = view.tables.task(task);
    let terms = &view.tables.shape_of(task).spec.pod_affinity;
    let mut near = asks.iter().filter(|ask| matches!(ask.rule, Rule::Near));
    is_meant_by_all(terms, row)
        && near.all(|ask| {
            let (_, tally) = census.count(view.tables, ask.key, &ask.crowd);
            tally.total.present(room) == 0
        })
}

/// Why the pods elsewhere forbid the node to the task, if they do.
pub(crate) fn refuses(
    census: &mut Census,
    view: View<'_>,
    task: TaskId,
    node: NodeId,
    room: Room,
) -> Option<Refusal> {
    if !concerns(view, task) {
        return None;
    }
    Surroundings::at(census, view, task, &[node], room).refuses(view, node)
}

/// 100 for the highest, in proportion for the others; all 0 where the highest is.
fn upward(raw: Vec<i64>) -> Vec<i64> {
    let max = raw.iter().copied().max().unwrap_or(0);
    raw.into_iter()
        .map(|value| if max == 0 { 0 } else { value * 100 / max })
        .collect()
}

/// 100 for none, 0 for the highest.
fn downward(raw: Vec<i64>) -> Vec<i64> {
    upward(raw).into_iter().map(|points| 100 - points).collect()
}

/// 0 for the lowest, 100 for the highest; all 0 where they are the same.
fn between(raw: Vec<i64>) -> Vec<i64> {
    let (min, max) = (
        raw.iter().copied().min().unwrap_or(0),
        raw.iter().copied().max().unwrap_or(0),
    );
    raw.into_iter()
        .map(|v| {
            if max == min {
                0
            } else {
                (v - min) * 100 / (max - min)
            }
        })
        .collect()
}

/// kube-scheduler's `100 × (max + min − value) / max`. It weighs domains by a logarithm of their
/// number, which only matters between several constraints; we weigh them alike. What lacks a value is left out
/// of both and is worth nothing.
fn emptiest(raw: Vec<Option<i64>>) -> Vec<i64> {
    let (min, max) = (
        raw.iter().flatten().copied().min().unwrap_or(0),
        raw.iter().flatten().copied().max().unwrap_or(0),
    );
    raw.into_iter()
        .map(|value| match value {
            None => 0,
            Some(_) if max == 0 => 100,
            Some(v) => (max + min - v) * 100 / max,
        })
        .collect()
}
