//! The choice of cards on one node, for one task or for any of its shape.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    CORES_WHOLE, Card, CardAsk, CardFamily, CardLack, CardLoad, CardLoads, Cards, Division, GPU,
    Grant, Node, NodeId, Part, Phase, Slice, TaskId,
};

use super::{Lack, Policy, Uses, chips, slices};
use crate::plugin::{Room, View};
use crate::plugins::nodeorder::POINT;

/// What is held of a node's cards, and by whom.
struct Standing<'a> {
    view: View<'a>,
    row: &'a Node,
    room: Room,
    loads: Cow<'a, CardLoads>,
    /// Who is given some beside those who are there.
    added: Vec<(TaskId, Vec<Grant>)>,
}

impl<'a> Standing<'a> {
    /// What the node's tasks hold; later, without those on their way out.
    fn of(view: View<'a>, row: &'a Node, room: Room) -> Standing<'a> {
        let mut standing = Standing {
            view,
            row,
            room,
            loads: Cow::Borrowed(&row.cards),
            added: Vec::new(),
        };
        if room == Room::Later {
            let tasks = row.tasks.iter().map(|id| view.tables.task(*id));
            let leaving = tasks.filter(|task| task.phase == Phase::Releasing);
            for grant in leaving.flat_map(|task| &task.grants) {
                standing.loads.to_mut().give_back(grant);
            }
        }
        standing
    }

    /// Those who hold some there.
    fn holders(&self) -> impl Iterator<Item = (TaskId, &[Grant])> {
        let (view, room) = (self.view, self.room);
        let there = self.row.tasks.iter().filter_map(move |id| {
            let task = view.tables.task(*id);
            let is_gone = room == Room::Later && task.phase == Phase::Releasing;
            let holds = !task.grants.is_empty() && !is_gone;
            holds.then_some((*id, &task.grants[..]))
        });
        let added = self.added.iter();
        there.chain(added.map(|(id, grants)| (*id, &grants[..])))
    }

    fn hold(&mut self, task: TaskId, grants: Vec<Grant>) {
        for grant in &grants {
            self.loads.to_mut().take(grant);
        }
        self.added.push((task, grants));
    }

    /// Gives each task that was promised room there what it will take.
    fn keep_promises(&mut self) -> Result<(), Lack> {
        for id in &self.row.promised {
            if let Some(ask) = self.view.tables.shape_of(*id).spec.cards.as_deref() {
                let grants = self.pick(ask, Some(*id))?;
                self.hold(*id, grants);
            }
        }
        Ok(())
    }

    /// What a task takes; nothing is held yet.
    fn pick(&self, ask: &CardAsk, who: Option<TaskId>) -> Result<Vec<Grant>, Lack> {
        let (row, sharing) = (self.row, &self.view.config.devices);
        let shared = sharing.uses.filter(|uses| match uses {
            Uses::Memory => ask.memory > 0,
            Uses::Number => ask.number > 0,
            Uses::Virtual => false,
        });
        let chips = ask.chips.as_ref().filter(|_| sharing.chips);
        if shared.is_none() && chips.is_none() && !ask.parts.iter().any(|part| sharing.serves(part))
        {
            return Ok(Vec::new());
        }
        let avoided = who.map_or_else(BTreeSet::new, |who| self.avoided(who, ask));
        let is_open = |card: &&Card| ask.accepts(card) && !avoided.contains(&card.id);
        let open: Vec<&Card> = row.spec.cards.list.iter().filter(is_open).collect();
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
            grants = taken.ok_or(lack(CardLack::Taken))?;
        }
        let others_have_it = |part: &Part| match part.is_of_gpus() && !avoided.is_empty() {
            true => CardLack::Avoided,
            false => CardLack::Taken,
        };
        self.add_parts((ask, &open), &mut grants)
            .map_err(|(part, lack)| {
                Lack::of_part(part, lack.unwrap_or_else(|| others_have_it(part)))
            })?;
        if let Some(chips) = chips {
            let taken = chips::pick(chips, (&row.spec.cards, &self.loads), &open);
            let lack = |lack: Option<_>| Lack(CardFamily::Chip, lack.unwrap_or(CardLack::Taken));
            grants.extend(taken.map_err(lack)?);
        }
        Ok(grants)
    }

    /// What each container takes of the cards that are open to it; else which of them lacks what, if it
    /// is not that others have it.
    fn add_parts<'p>(
        &self,
        (ask, open): (&'p CardAsk, &[&Card]),
        grants: &mut Vec<Grant>,
    ) -> Result<(), (&'p Part, Option<CardLack>)> {
        let (view, row) = (self.view, self.row);
        let parts = ask.parts.iter().enumerate();
        let mut loads = Cow::Borrowed(&*self.loads);
        let mut parts = parts
            .filter(|(_, part)| view.config.devices.serves(part))
            .peekable();
        while let Some((at, part)) = parts.next() {
            if let Some(why) = never(ask, part, &row.spec.cards) {
                return Err((part, Some(why)));
            }
            // Upstream: an NPU serves one container of a pod.
            let is_free =
                |card: &Card| part.is_of_gpus() || grants.iter().all(|grant| grant.card != card.id);
            let is_open = |card: &&&Card| card.kind == part.kind && is_free(card);
            let open: Vec<&Card> = open.iter().filter(is_open).copied().collect();
            let taken = parts_of(view, (row, &loads), &open, (at, part)).ok_or((part, None))?;
            if parts.peek().is_some() {
                let loads = loads.to_mut();
                taken.iter().for_each(|grant| loads.take(grant));
            }
            grants.extend(taken);
        }
        Ok(())
    }

    /// Virtual GPUs on which somebody is with whom the task may not share one. Nobody avoids anybody on
    /// cards of other families.
    fn avoided(&self, who: TaskId, ask: &CardAsk) -> BTreeSet<Arc<str>> {
        let view = self.view;
        if view.config.devices.uses != Some(Uses::Virtual) {
            return BTreeSet::new();
        }
        // Upstream: who has a slice of a card is apart from the others on it by the hardware.
        let rules: Vec<usize> = match self.row.spec.cards.division {
            Division::Soft | Division::Served => exclusive_rules(view, who).collect(),
            Division::Slices => Vec::new(),
        };
        let gang = view.tables.task(who).gang.filter(|_| ask.apart);
        if rules.is_empty() && gang.is_none() {
            return BTreeSet::new();
        }
        let may_not = |other: TaskId| {
            let is_of_gang = gang.is_some() && view.tables.task(other).gang == gang;
            let mut theirs = exclusive_rules(view, other);
            is_of_gang || !rules.is_empty() && theirs.any(|rule| rules.contains(&rule))
        };
        let others = self.holders().filter(|(other, _)| *other != who);
        let others = others.filter(|(other, _)| may_not(*other));
        let of_gpus = others.flat_map(|(_, grants)| grants.iter().filter(|it| *it.kind == *GPU));
        of_gpus.map(|grant| grant.card.clone()).collect()
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
    } else if has_kind(cards, &part.kind) && !accepts_division(ask, part, cards) {
        Some(CardLack::Mode)
    } else {
        part.is_split().then_some(CardLack::Split)
    }
}

/// Whether cards that are divided as the node's are will do.
fn accepts_division(ask: &CardAsk, part: &Part, cards: &Cards) -> bool {
    match part.is_of_gpus() {
        true => ask.division.accepts(cards.division),
        false => ask.npu_division.accepts(part, cards.npu_division),
    }
}

fn has_kind(cards: &Cards, kind: &str) -> bool {
    cards.list.iter().any(|card| *card.kind == *kind)
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
    let none = CardLoad::default();
    let cards = open.iter().enumerate().filter_map(|(index, card)| {
        let load = loads.of(&card.id).unwrap_or(&none);
        let mut grant = fitted(card, load, part, division)?;
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
        Division::Soft | Division::Served => None,
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
        standing.keep_promises()?;
        return standing.pick(ask, who);
    }
    let grants = standing.pick(ask, who)?;
    let asks = |task: &&TaskId| view.tables.shape_of(**task).spec.cards.is_some();
    if row.promised.iter().any(|task| asks(&task)) {
        let mut later = Standing::of(view, row, Room::Later);
        for grant in &grants {
            later.loads.to_mut().take(grant);
        }
        if let Some(who) = who {
            later.added.push((who, grants.clone()));
        }
        later.keep_promises()?;
    }
    Ok(grants)
}
