//! One incremental feasibility index per task shape, and where rules look at queues per what they say
//! of them: which nodes would take such a task now, and the best of them.
//!
//! An index is a tournament over the nodes. A change of one node costs one evaluation and one walk to
//! the root, so placing a task costs O(log nodes) while all scores are local to a node, and so much for
//! each class of nodes where they are coupled.
//!
//! The first task of a shape meets every node. What rules commonly ask of a node then stands beside that of
//! other nodes ([`model::Glance`]), and rows are read only for shapes that ask for more.

mod classes;
mod tournament;
mod wishes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{GangId, ImageMark, NodeId, Shape, ShapeId, TaskId, Time};

use crate::coupling::{self, Census, Surroundings};
use crate::domains::DomainSums;
use crate::footing::{Asker, Footing};
use crate::plugin::{Room, Score, View};
use crate::plugins::predicates::lacks;
use crate::plugins::{nodeorder, numa_aware};
use crate::rules::Rules;
use crate::widths::Widths;

use classes::Classes;
use tournament::Tournament;
use wishes::Wishes;

pub(crate) use wishes::Wish;

/// A node that does not take the shape.
pub(crate) const NEVER: Score = i64::MIN;

/// So much worse is a node of another scheduler: more than all scores together can make up for.
const FOREIGN: Score = 1 << 60;

/// The most entries (nodes × shapes) that are kept; the index that was used longest ago goes first.
pub const ENTRIES_MAX: usize = 4_000_000;

/// Indexes by who asks, kept from cycle to cycle.
#[derive(Clone, Debug, Default)]
pub struct Indexes {
    by_asker: BTreeMap<Asker, Index>,
    sums: DomainSums,
    census: Census,
    uses: u64,
    /// How many nodes were evaluated for a shape, ever.
    pub evaluated: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    footing: Option<Arc<Footing>>,
    serial: u64,
    /// As of when what somebody outside said was looked at.
    told: u64,
    /// As of when it was looked at how many nodes have which images.
    pictured: ImageMark,
    /// As of when it was looked at who has devices of claims that the shape shares with others.
    claimed: u64,
    cursor: u64,
    used: u64,
    tournament: Tournament,
    nature: Vec<Nature>,
    /// At which tick of its spec each node's nature was looked at.
    judged: Vec<u64>,
    wishes: Wishes,
    /// Of how many nodes something is wished.
    wished: u32,
    /// Set where a node's worth is in proportion to that of others.
    widths: Option<Box<Widths>>,
    /// How often all nodes were weighed anew by that.
    weighed: u64,
    /// Set once nodes were told apart by what is said of them from elsewhere.
    classes: Option<Classes>,
}

/// What does not change while the node's spec does not.
#[derive(Clone, Copy, Debug, Default)]
struct Nature {
    /// Which of the wishes is that of the node.
    wish: u32,
    suits: bool,
    /// Points for images that it has.
    images: u8,
}

/// The most shapes of a gang of which what is known is handed on.
const HANDED_ON_MAX: usize = 8;

impl Indexes {
    /// What is known for the waiting tasks of a gang, for somebody who goes on from there alone.
    pub fn of_gang(
        &self,
        rules: &Rules,
        tables: &model::Tables,
        gang: GangId,
        now: Time,
    ) -> Indexes {
        let state = crate::rules::State::at(now);
        let view = rules.view(tables, &state);
        let tasks = tables.gang(gang).tasks.iter();
        let waiting = tasks.filter(|task| tables.task(**task).phase.is_waiting());
        let mut by_asker = BTreeMap::new();
        let mut shapes = BTreeSet::new();
        for task in waiting {
            if shapes.len() == HANDED_ON_MAX || !shapes.insert(tables.task(*task).shape) {
                continue;
            }
            let asker = rules.asker(view, *task);
            if let Some(index) = self.by_asker.get(&asker) {
                by_asker.insert(asker, index.clone());
            }
        }
        Indexes {
            by_asker,
            ..Indexes::default()
        }
    }

    /// The index of those who ask, up to date with the tables.
    pub(crate) fn synced(&mut self, rules: &Rules, view: View<'_>, asker: &Asker) -> &Index {
        self.uses += 1;
        let uses = self.uses;
        let shape = view.tables.shape(asker.0);
        let span = view.tables.node_span();
        if !self.by_asker.contains_key(asker) {
            self.make_room(span);
            let index = Index {
                footing: asker.1.clone(),
                ..Index::default()
            };
            self.by_asker.insert(asker.clone(), index);
        }
        let index = self.by_asker.get_mut(asker);
        let index = index.expect("it was just put there");
        index.used = uses;
        let told = view.tables.opinions_tick(shape.serial);
        let is_told = std::mem::replace(&mut index.told, told) == told;
        let pictured = view.tables.image_mark(shape);
        let is_pictured = std::mem::replace(&mut index.pictured, pictured) == pictured;
        if !is_told || !is_pictured {
            index.forget_natures();
        }
        let claimed = claims_mark(view, shape);
        let is_claimed = std::mem::replace(&mut index.claimed, claimed) == claimed;
        let is_same = index.serial == shape.serial && is_told && is_pictured && is_claimed;
        let changed = if is_same && index.takes_in(span) {
            view.tables
                .changed_since(index.cursor)
                .filter(|changed| changed.len() < span)
        } else {
            None
        };
        match changed {
            Some(changed) => {
                for node in changed {
                    index.update(rules, view, shape, *node);
                }
                self.evaluated += changed.len() as u64;
            }
            None => {
                index.rebuild(rules, view, shape, span);
                self.evaluated += span as u64;
            }
        }
        index.cursor = view.tables.log_end();
        index
    }

    /// Which nodes suit whoever asks, by their numbers, whoever holds what there; `None` where nobody has
    /// looked yet.
    pub(crate) fn suiting(
        &mut self,
        rules: &Rules,
        view: View<'_>,
        asker: &Asker,
    ) -> Option<Vec<bool>> {
        self.by_asker.get(asker)?;
        let index = self.synced(rules, view, asker);
        Some(index.nature.iter().map(|nature| nature.suits).collect())
    }

    /// The nodes that would do for the task if nobody held anything; `None` where nobody has looked yet, or
    /// where it counts what its queue holds elsewhere.
    pub fn able(
        &mut self,
        rules: &Rules,
        tables: &model::Tables,
        task: TaskId,
        now: Time,
    ) -> Option<Vec<NodeId>> {
        if rules.looks_at_queues() {
            return None;
        }
        let state = crate::rules::State::at(now);
        let view = rules.view(tables, &state);
        let suiting = self.suiting(rules, view, &rules.asker(view, task))?;
        let ids = tables.nodes().map(|(id, _)| id);
        let suits = |id: &NodeId| suiting.get(id.index()).copied() == Some(true);
        Some(ids.filter(suits).collect())
    }

    /// What is held in each hyper-node, up to date with the tables.
    pub(crate) fn domain_sums(&mut self, tables: &model::Tables) -> &DomainSums {
        self.sums.sync(tables);
        &self.sums
    }

    /// The index of those who ask and the sums of the hyper-nodes, both up to date with the tables.
    pub(crate) fn synced_with_sums(
        &mut self,
        rules: &Rules,
        view: View<'_>,
        asker: &Asker,
    ) -> (&Index, &DomainSums) {
        self.sums.sync(view.tables);
        self.synced(rules, view, asker);
        (&self.by_asker[asker], &self.sums)
    }

    /// The best of all nodes for the task, by its own worth and by what is said of it from elsewhere.
    pub(crate) fn best(&mut self, rules: &Rules, view: View<'_>, task: TaskId) -> Option<NodeId> {
        let asker = rules.asker(view, task);
        let index = self.synced(rules, view, &asker);
        if index.wished == 0 && !coupling::concerns(view, task) {
            return index.best();
        }
        let index = self.by_asker.get_mut(&asker)?;
        let census = &mut self.census;
        let asks = coupling::asks_by_domain(view, task);
        let tops = asks.and_then(|asks| index.tops(view.tables, census, &asks));
        let Some(tops) = tops else {
            let around = Surroundings::of(census, view, task, Room::Now);
            return around.best(view, index, index.candidates(), |_| 0);
        };
        let nodes: Vec<NodeId> = tops.iter().map(|(node, _)| *node).collect();
        let around = Surroundings::at(census, view, task, &nodes, Room::Now);
        around.best(view, index, tops.into_iter(), |_| 0)
    }

    /// The index of those who ask, and what is said of nodes for the task from elsewhere, both up to date
    /// with the tables; of the latter nothing if all is said of nodes by themselves.
    pub(crate) fn synced_with_surroundings(
        &mut self,
        rules: &Rules,
        view: View<'_>,
        asker: &Asker,
        task: TaskId,
    ) -> (&Index, Option<Surroundings>) {
        self.synced(rules, view, asker);
        let index = &self.by_asker[asker];
        let is_coupled = index.wished > 0 || coupling::concerns(view, task);
        let census = &mut self.census;
        let around = is_coupled.then(|| Surroundings::of(census, view, task, Room::Now));
        (index, around)
    }

    /// Where which pods are, as far as somebody asked.
    pub(crate) fn census(&mut self) -> &mut Census {
        &mut self.census
    }

    fn make_room(&mut self, span: usize) {
        while (self.by_asker.len() + 1).saturating_mul(span) > ENTRIES_MAX {
            let oldest = self.by_asker.iter().min_by_key(|(_, index)| index.used);
            let Some(oldest) = oldest.map(|(asker, _)| asker.clone()) else {
                return;
            };
            self.by_asker.remove(&oldest);
        }
    }
}

impl Index {
    fn rebuild(&mut self, rules: &Rules, view: View<'_>, shape: &Shape, span: usize) {
        if self.serial != shape.serial {
            self.serial = shape.serial;
            self.forget_natures();
        }
        self.classes = None;
        self.tournament.begin(span);
        self.cover(span);
        let room = self.tournament.room();
        self.widths =
            numa_aware::weighed(view, shape).map(|weight| Box::new(Widths::of(weight, room)));
        for at in 0..span {
            let node = NodeId::from(at);
            let worth = self.evaluate(rules, view, shape, node);
            self.tournament.all_mut()[at] = worth;
            self.widen(view, shape, node, worth);
        }
        self.weigh();
        self.tournament.play();
    }

    /// Takes new nodes in, as many as there are together; whether there is room for them.
    fn takes_in(&mut self, span: usize) -> bool {
        let has_room = self.tournament.takes_in(span);
        if has_room {
            self.cover(span);
        }
        has_room
    }

    fn cover(&mut self, span: usize) {
        self.nature.resize(span, Nature::default());
        self.judged.resize(span, 0);
    }

    fn forget_natures(&mut self) {
        self.nature.clear();
        self.judged.clear();
        self.wishes = Wishes::default();
        self.wished = 0;
    }

    /// Takes in how wide a task would lie on a node that is worth so much by itself. Whether others are
    /// worth something else by that.
    fn widen(&mut self, view: View<'_>, shape: &Shape, node: NodeId, worth: Score) -> bool {
        let Some(widths) = &mut self.widths else {
            return false;
        };
        let row = (worth != NEVER).then(|| (worth, numa_aware::width(view, shape, node)));
        widths.put(node, row)
    }

    /// Weighs all nodes by how wide a task would lie there.
    fn weigh(&mut self) {
        let Some(widths) = &self.widths else {
            return;
        };
        self.weighed += 1;
        for (at, worth) in self.tournament.all_mut().iter_mut().enumerate() {
            *worth = widths.worth(NodeId::from(at)).unwrap_or(NEVER);
        }
    }

    fn update(&mut self, rules: &Rules, view: View<'_>, shape: &Shape, node: NodeId) {
        let worth = self.evaluate(rules, view, shape, node);
        if self.widen(view, shape, node, worth) {
            self.weigh();
            self.tournament.play();
            return;
        }
        let worth = match &self.widths {
            Some(widths) => widths.worth(node).unwrap_or(NEVER),
            None => worth,
        };
        self.tournament.set(node, worth);
    }

    fn evaluate(&mut self, rules: &Rules, view: View<'_>, shape: &Shape, id: NodeId) -> Score {
        let nature = &mut self.nature[id.index()];
        let judged = &mut self.judged[id.index()];
        let glance = view.tables.glance(id);
        if !glance.known {
            *judged = 0;
            self.wished -= u32::from(std::mem::take(nature).wish > 0);
            return NEVER;
        }
        if std::mem::replace(judged, glance.spec_tick) != glance.spec_tick {
            let refused = |footing: &Arc<Footing>| footing.of(&view.tables.node(id).spec).is_err();
            let is_refused = self.footing.as_ref().is_some_and(refused);
            let suits = !is_refused && rules.suits(view, shape, id).is_none();
            let wish = match suits {
                true => self.wishes.number(Wish::of(view, shape, id)),
                false => 0,
            };
            let images = match suits {
                true => nodeorder::image_points(view, shape, id),
                false => 0,
            };
            self.wished = self.wished + u32::from(wish > 0) - u32::from(nature.wish > 0);
            *nature = Nature {
                wish,
                suits,
                images,
            };
        }
        if !nature.suits
            || lacks(view, shape, id, Room::Now).is_some()
            || rules.has_room(view, shape, id, Room::Now).is_some()
        {
            return NEVER;
        }
        let images = nature.images;
        let score = rules.score(view, shape, id);
        let score = match images {
            0 => score,
            points => score.saturating_add(nodeorder::for_images(view, points)),
        };
        let footing = self.footing.as_ref();
        let score = footing.map_or(score, |it| {
            score.saturating_add(it.points(&view.tables.node(id).spec))
        });
        match glance.foreign {
            true => score.saturating_sub(FOREIGN),
            false => score,
        }
    }

    /// The best node, by node-local scores alone.
    pub(crate) fn best(&self) -> Option<NodeId> {
        self.tournament.best()
    }

    /// What the node is worth by itself.
    fn worth(&self, node: NodeId) -> Score {
        self.tournament.worth(node)
    }

    /// Whether the node would take the shape.
    pub(crate) fn takes(&self, node: NodeId) -> bool {
        self.worth(node) != NEVER
    }

    /// The best of some nodes, by node-local scores alone; the first one wins a tie.
    pub(crate) fn best_of(&self, nodes: &[NodeId]) -> Option<NodeId> {
        let mut best: Option<(Score, NodeId)> = None;
        for node in nodes {
            let score = self.worth(*node);
            if score != NEVER && best.is_none_or(|(most, _)| score > most) {
                best = Some((score, *node));
            }
        }
        best.map(|(_, node)| node)
    }

    /// Every node that would take the shape, with its local score, in order of id.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = (NodeId, Score)> {
        let all = self.tournament.all().iter().enumerate();
        all.filter(|(_, score)| **score != NEVER)
            .map(|(at, score)| (NodeId::from(at), *score))
    }

    /// The same of some nodes, in their order.
    pub(crate) fn candidates_in<'a>(
        &'a self,
        nodes: &'a [NodeId],
    ) -> impl Iterator<Item = (NodeId, Score)> + 'a {
        let all = nodes.iter().map(|node| (*node, self.worth(*node)));
        all.filter(|(_, score)| *score != NEVER)
    }

    /// What is wished of a node that takes the shape.
    pub(crate) fn wish(&self, node: NodeId) -> Wish {
        let nature = self.nature.get(node.index());
        nature.map_or_else(Wish::default, |nature| self.wishes.of(nature.wish))
    }
}

/// Whether a task of this shape may fit on the node now or once what is leaving has left, as far as
/// the node alone decides. For waking gangs that wait for room: it errs towards yes.
pub fn may_fit(
    rules: &Rules,
    tables: &model::Tables,
    shape: ShapeId,
    node: NodeId,
    now: Time,
) -> bool {
    let state = crate::rules::State::at(now);
    let view = rules.view(tables, &state);
    let (Some(shape), Some(row)) = (tables.find_shape(shape), tables.find_node(node)) else {
        return false;
    };
    row.known
        && lacks(view, shape, node, Room::Later).is_none()
        && rules.suits_by_itself(view, shape, node).is_none()
}

/// When something was last told of claims that a shape shares with others, if it does: once one of these has
/// devices, nodes are out of the question that do not reach them, and all others need none left.
fn claims_mark(view: View<'_>, shape: &Shape) -> u64 {
    match shares_devices(shape) {
        true => view.tables.device_claims_tick() + 1,
        false => 0,
    }
}

/// Whether a task of the shape waits for devices that it shares with others.
pub(crate) fn shares_devices(shape: &Shape) -> bool {
    let ask = shape.spec.devices.as_deref();
    ask.is_some_and(|ask| ask.shared().next().is_some())
}

/// Whether the node would take whoever asks now, as an index would say it.
pub(crate) fn takes_now(rules: &Rules, view: View<'_>, asker: &Asker, node: NodeId) -> bool {
    let shape = view.tables.shape(asker.0);
    let row = view.tables.find_node(node).filter(|row| row.known);
    let refused = |row: &model::Node| {
        let footing = asker.1.as_ref();
        footing.is_some_and(|footing| footing.of(&row.spec).is_err())
    };
    row.is_some_and(|row| !refused(row))
        && rules.suits(view, shape, node).is_none()
        && lacks(view, shape, node, Room::Now).is_none()
        && rules.has_room(view, shape, node, Room::Now).is_none()
}

/// Whether the node would take a task of the shape now, if nobody outside is asked.
pub(crate) fn could_take(rules: &Rules, view: View<'_>, shape: &Shape, node: NodeId) -> bool {
    rules.suits_by_itself(view, shape, node).is_none()
        && lacks(view, shape, node, Room::Now).is_none()
        && rules.has_room(view, shape, node, Room::Now).is_none()
}
