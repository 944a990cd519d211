//! The choice of cards on one node, for one task or for any of its shape.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    CORES_WHOLE, Card, CardAsk, CardFamily, CardLack, CardLoad, CardLoads, Cards, Division, GPU,
    Grant, Node, NodeId, Part, Phase, Slice, TaskId,
};

use super::{Lack, Policy, Uses, slices};
use crate::plugin::{Room, View};
use crate::plugins::nodeorder::POINT;

/// What is held of a node's cards, and by whom.
struct Standing {
    loads: CardLoads,
    holders: Vec<(TaskId, Vec<Grant>)>,
}

impl Standing {
    /// What the node's tasks hold; later, without those on their way out.
    fn of(view: View<'_>, row: &Node, room: Room) -> Standing {
        let mut standing = Standing {
            loads: row.cards.clone(),
            holders: Vec::new(),
        };
        for id in &row.tasks {
            let task = view.tables.task(*id);
            if task.grants.is_empty() {
                continue;
            }
            if room == Room::Later && task.phase == Phase::Releasing {
                let gives = |grant| standing.loads.give_back(grant);
                task.grants.iter().for_each(gives);
            } else {
                standing.holders.push((*id, task.grants.clone()));
            }
        }
        standing
    }

    fn hold(&mut self, task: TaskId, grants: Vec<Grant>) {
        grants.iter().for_each(|grant| self.loads.take(grant));
        self.holders.push((task, grants));
    }

    /// Gives each task that was promised room there what it will take.
    fn keep_promises(&mut self, view: View<'_>, row: &Node) -> Result<(), Lack> {
        for id in &row.promised {
            if let Some(ask) = view.tables.shape_of(*id).spec.cards.as_deref() {
                let grants = self.pick(view, row, ask, Some(*id))?;
                self.hold(*id, grants);
            }
        }
        Ok(())
    }

    /// What a task takes; nothing is held yet.
    fn pick(
        &self,
        view: View<'_>,
        row: &Node,
        ask: &CardAsk,
        who: Option<TaskId>,
    ) -> Result<Vec<Grant>, Lack> {
        let sharing = &view.config.devices;
        let shared = sharing.uses.filter(|uses| match uses {
            Uses::Memory => ask.memory > 0,
            Uses::Number => ask.number > 0,
            Uses::Virtual => false,
        });
        if shared.is_none() && !ask.parts.iter().any(|part| sharing.serves(part)) {
            return Ok(Vec::new());
        }
        let avoided = who.map_or_else(BTreeSet::new, |who| self.avoided(view, who, ask));
        let is_open = |card: &&Card| ask.accepts(card) && !avoided.contains(&card.id);
        let open: Vec<&Card> = row.spec.cards.list.iter().filter(is_open).collect();
        let why = match avoided.is_empty() {
            true => CardLack::Taken,
            false => CardLack::Avoided,
        };
        let mut grants = Vec::new();
        if let Some(uses) = shared {
            let lack = |why| Lack(CardFamily::Shared, why);
            if row.spec.cards.is_garbled(GPU) {
                return Err(lack(CardLack::Garbled));
            }
            let taken = match uses {
                Uses::Number => self.whole(&open, ask.number),
                Uses::Memory | Uses::Virtual => self.of_one(&open, ask.memory),
            };
            grants = taken.ok_or(lack(why))?;
        }
        self.add_parts(view, row, (ask, &open), &mut grants)
            .map_err(|(part, lack)| Lack::of_part(part, lack.unwrap_or(why)))?;
        Ok(grants)
    }

    /// What each container takes of the cards that are open to it; else which of them lacks what, if it
    /// is not that others have it.
    fn add_parts<'a>(
        &self,
        view: View<'_>,
        row: &Node,
        (ask, open): (&'a CardAsk, &[&Card]),
        grants: &mut Vec<Grant>,
    ) -> Result<(), (&'a Part, Option<CardLack>)> {
        let parts = ask.parts.iter().enumerate();
        let mut loads = self.loads.clone();
        for (at, part) in parts.filter(|(_, part)| view.config.devices.serves(part)) {
            if let Some(why) = never(ask, part, &row.spec.cards) {
                return Err((part, Some(why)));
            }
            // Upstream: an NPU serves one container of a pod.
            let is_free =
                |card: &Card| part.is_of_gpus() || grants.iter().all(|grant| grant.card != card.id);
            let is_open = |card: &&&Card| card.kind == part.kind && is_free(card);
            let open: Vec<&Card> = open.iter().filter(is_open).copied().collect();
            let taken = parts_of(view, (row, &loads), &open, (at, part)).ok_or((part, None))?;
            taken.iter().for_each(|grant| loads.take(grant));
            grants.extend(taken);
        }
        Ok(())
    }

    /// Cards on which somebody is with whom the task may not share one.
    fn avoided(&self, view: View<'_>, who: TaskId, ask: &CardAsk) -> BTreeSet<Arc<str>> {
        let rules: Vec<usize> = exclusive_rules(view, who).collect();
        let gang = view.tables.task(who).gang;
        let may_not = |other: TaskId| {
            let is_of_gang = ask.apart && gang.is_some() && view.tables.task(other).gang == gang;
            let mut theirs = exclusive_rules(view, other);
            is_of_gang || !rules.is_empty() && theirs.any(|rule| rules.contains(&rule))
        };
        let others = self.holders.iter().filter(|(other, _)| *other != who);
        let others = others.filter(|(other, _)| may_not(*other));
        others
            .flat_map(|(_, grants)| grants.iter().map(|grant| grant.card.clone()))
            .collect()
    }

    /// Memory of the first card that has enough of it.
    fn of_one(&self, open: &[&Card], memory: i64) -> Option<Vec<Grant>> {
        let has_room = |card: &&&Card| {
            let load = self.loads.of(&card.id);
            let free = |load: &CardLoad| card.memory.saturating_sub(load.memory);
            load.is_none_or(|load| load.owners == 0 && free(load) >= memory)
                && card.memory >= memory
        };
        let card = open.iter().find(has_room)?;
        Some(vec![Grant {
            part: 0,
            card: card.id.clone(),
            slice: None,
            memory,
            cores: 0,
            is_whole: false,
            ..Grant::default()
        }])
    }

    /// The first cards that nobody uses.
    fn whole(&self, open: &[&Card], number: i64) -> Option<Vec<Grant>> {
        let number = usize::try_from(number).ok()?;
        let idle = open.iter().filter(|card| self.loads.of(&card.id).is_none());
        let grants = idle.take(number).map(|card| Grant {
            part: 0,
            card: card.id.clone(),
            slice: None,
            memory: 0,
            cores: 0,
            is_whole: true,
            ..Grant::default()
        });
        let grants: Vec<Grant> = grants.collect();
        (grants.len() == number).then_some(grants)
    }
}

/// Why a part cannot be had of such cards, whoever holds them.
pub(super) fn never(ask: &CardAsk, part: &Part, cards: &Cards) -> Option<CardLack> {
    if cards.is_garbled(&part.kind) {
        Some(CardLack::Garbled)
    } else if part.is_of_gpus() && ask.only_slices && cards.division != Division::Slices {
        Some(CardLack::Slices)
    } else {
        part.is_split().then_some(CardLack::Split)
    }
}

/// For a container so many cards, each of them another one; the best ones come first.
fn parts_of(
    view: View<'_>,
    (row, loads): (&Node, &CardLoads),
    open: &[&Card],
    (at, part): (usize, &Part),
) -> Option<Vec<Grant>> {
    let wanted = usize::try_from(part.cards).ok()?;
    let place = u32::try_from(at).ok()?;
    let division = row.spec.cards.division;
    let cards = open.iter().enumerate().filter_map(|(index, card)| {
        let load = loads.of(&card.id).cloned().unwrap_or_default();
        let mut grant = fitted(card, &load, part, division)?;
        grant.part = place;
        let first = match view.config.devices.policy {
            Policy::Last => 0,
            Policy::Binpack => -load.memory,
            Policy::Spread => load.users,
        };
        Some((*card, (first, Reverse(index)), grant))
    });
    let mut cards: Vec<_> = cards.collect();
    if cards.len() < wanted {
        return None;
    }
    let mut networks: BTreeMap<i64, usize> = BTreeMap::new();
    for network in cards.iter().filter_map(|(card, ..)| card.network) {
        *networks.entry(network).or_default() += 1;
    }
    // Cards of a network that has most of them come first, so that they reach one another.
    cards.sort_by_key(|(card, order, _)| {
        let size = card.network.and_then(|it| networks.get(&it).copied());
        (Reverse(size), card.network, *order)
    });
    let grants = cards.into_iter().map(|(.., grant)| grant);
    Some(grants.take(wanted).collect())
}

/// Which share of the cards that are taken is of the network of which most are, in points; nothing where
/// one of them has none.
pub(super) fn closeness(cards: &Cards, grants: &[Grant]) -> i64 {
    let mut networks: BTreeMap<i64, i64> = BTreeMap::new();
    for grant in grants {
        let card = cards.list.iter().find(|card| card.id == grant.card);
        let Some(network) = card.and_then(|card| card.network) else {
            return 0;
        };
        *networks.entry(network).or_default() += 1;
    }
    let all: i64 = networks.values().sum();
    let most = networks.values().max().copied().unwrap_or(0);
    most.saturating_mul(POINT).checked_div(all).unwrap_or(0)
}

/// What a container gets of a card, if it has enough left.
fn fitted(card: &Card, load: &CardLoad, part: &Part, division: Division) -> Option<Grant> {
    let memory = part.memory.of(card.memory);
    let is_alone = part.cores >= CORES_WHOLE;
    let cores = load.cores.saturating_add(part.cores);
    let has_room = load.users < card.users_max
        && card.memory.saturating_sub(load.memory) >= memory
        && cores <= CORES_WHOLE
        && !(is_alone && load.users > 0)
        && !(part.cores == 0 && load.cores >= CORES_WHOLE);
    if !has_room {
        return None;
    }
    let slice: Option<Slice> = match division {
        Division::Soft => None,
        // A model that nobody knows is divided by whoever runs on it, as upstream has it.
        Division::Slices if card.geometries.is_empty() => None,
        Division::Slices => Some(slices::free(&card.geometries, load, memory)?),
    };
    Some(Grant {
        kind: card.kind.clone(),
        card: card.id.clone(),
        slice,
        memory,
        cores: part.cores,
        is_whole: is_alone,
        ..Grant::default()
    })
}

/// Which of the rules of keeping apart speak of the task.
pub(super) fn exclusive_rules(view: View<'_>, task: TaskId) -> impl Iterator<Item = usize> {
    let labels = &view.tables.task(task).labels;
    let rules = view.config.devices.exclusive.iter().enumerate();
    let speaks = |(at, rule): (usize, &BTreeMap<String, String>)| {
        let mut pairs = rule.iter();
        let all = pairs.all(|(key, value)| labels.get(key) == Some(value.as_str()));
        all.then_some(at)
    };
    rules.filter_map(speaks)
}

/// What the task, or any of its shape, takes on the node now; later, once the tasks on their way out are
/// gone and the promised ones have taken theirs. What is promised to others stays theirs.
pub(super) fn choose(
    view: View<'_>,
    ask: &CardAsk,
    node: NodeId,
    who: Option<TaskId>,
    room: Room,
) -> Result<Vec<Grant>, Lack> {
    let row = view.tables.node(node);
    let mut standing = Standing::of(view, row, room);
    if room == Room::Later {
        standing.keep_promises(view, row)?;
        return standing.pick(view, row, ask, who);
    }
    let grants = standing.pick(view, row, ask, who)?;
    let asks = |task: &&TaskId| view.tables.shape_of(**task).spec.cards.is_some();
    if row.promised.iter().any(|task| asks(&task)) {
        let mut later = Standing::of(view, row, Room::Later);
        grants.iter().for_each(|grant| later.loads.take(grant));
        if let Some(who) = who {
            later.holders.push((who, grants.clone()));
        }
        later.keep_promises(view, row)?;
    }
    Ok(grants)
}
