//! The choice of cards on one node, for one task or for any of its shape.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    CORES_WHOLE, Card, CardAsk, CardLack, CardLoad, CardLoads, Division, Grant, Node, NodeId, Part,
    Phase, Slice, TaskId,
};

use super::{Policy, Uses, slices};
use crate::plugin::{Room, View};

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
    fn keep_promises(&mut self, view: View<'_>, row: &Node) -> Result<(), CardLack> {
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
    ) -> Result<Vec<Grant>, CardLack> {
        let Some(uses) = view.config.devices.uses else {
            return Ok(Vec::new());
        };
        let wanted = match uses {
            Uses::Memory => ask.memory > 0,
            Uses::Number => ask.number > 0,
            Uses::Virtual => !ask.parts.is_empty(),
        };
        if !wanted {
            return Ok(Vec::new());
        }
        if row.spec.cards.is_garbled {
            return Err(CardLack::Garbled);
        }
        if ask.only_slices && row.spec.cards.division != Division::Slices {
            return Err(CardLack::Slices);
        }
        let avoided = who.map_or_else(BTreeSet::new, |who| self.avoided(view, who, ask));
        let is_open = |card: &&Card| ask.accepts(card) && !avoided.contains(&card.id);
        let open: Vec<&Card> = row.spec.cards.list.iter().filter(is_open).collect();
        let grants = match uses {
            Uses::Memory => self.of_one(&open, ask.memory),
            Uses::Number => self.whole(&open, ask.number),
            Uses::Virtual => self.parts(view, row, &open, &ask.parts),
        };
        let why = if avoided.is_empty() {
            CardLack::Taken
        } else {
            CardLack::Avoided
        };
        grants.ok_or(why)
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

    /// For each container so many cards, each of them another one.
    fn parts(
        &self,
        view: View<'_>,
        row: &Node,
        open: &[&Card],
        parts: &[Part],
    ) -> Option<Vec<Grant>> {
        let mut loads = self.loads.clone();
        let mut grants = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let mut cards: Vec<(usize, &Card)> = open.iter().copied().enumerate().collect();
            let load = |card: &Card| loads.of(&card.id).cloned().unwrap_or_default();
            cards.sort_by_key(|(index, card)| {
                let load = load(card);
                let first = match view.config.devices.policy {
                    Policy::Last => 0,
                    Policy::Binpack => -load.memory,
                    Policy::Spread => load.users,
                };
                (first, Reverse(*index))
            });
            let mut left = usize::try_from(part.cards).ok()?;
            for (_, card) in cards {
                if left == 0 {
                    break;
                }
                let fitted = fitted(card, &load(card), part, row.spec.cards.division);
                if let Some(mut grant) = fitted {
                    grant.part = u32::try_from(at).ok()?;
                    grants.push(grant);
                    left -= 1;
                }
            }
            if left > 0 {
                return None;
            }
            let from = grants.iter().rposition(|grant| grant.part as usize != at);
            let new = &grants[from.map_or(0, |last| last + 1)..];
            new.iter().for_each(|grant| loads.take(grant));
        }
        Some(grants)
    }
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
        Division::Slices => match slices::ways(&card.model) {
            // A model that nobody knows is divided by whoever runs on it, as upstream has it.
            None => None,
            Some(ways) => Some(slices::free(ways, load, memory)?),
        },
    };
    Some(Grant {
        part: 0,
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
    let speaks = |(at, rule): (usize, &std::collections::BTreeMap<String, String>)| {
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
) -> Result<Vec<Grant>, CardLack> {
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
