//! What nodes have too little left of that is no sum of amounts: cards, claimed devices, cpus that lie
//! together. Who holds it, and who has to end for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    Amount, Card, CardFamily, CardLack, CardLoad, Chips, DeviceLack, GangId, Grant, Kind, NoFit,
    Node, NodeId, NumaLack, NumaLayout, Refusal, Standing, Tables, Task, TaskId,
};
use placement::places_on;

use super::probe::Case;
use super::room::{self, Draft, cheapest, end, may_end};
use super::{Holder, Sums, most, queues};

/// The nodes whose tasks are told: those that come closest.
const NEAREST: usize = 3;
/// The most nodes on which it is sought who has to end.
const NODES_MAX: usize = 64;

/// The most waiting tasks for which places are counted on one node.
const ALIKE_MAX: usize = 64;

/// What is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scarce {
    /// Cards, or parts of them.
    Cards(CardFamily),
    /// Devices that are claimed, or parts of them.
    Devices,
    /// Cpus of which each is one task's own.
    Units,
}

impl Scarce {
    fn of(refusal: &Refusal) -> Option<Scarce> {
        match refusal {
            Refusal::Cards {
                family,
                why: CardLack::Avoided | CardLack::Taken,
            } => Some(Scarce::Cards(*family)),
            Refusal::Devices {
                why: DeviceLack::Taken,
            } => Some(Scarce::Devices),
            Refusal::Numa {
                why: NumaLack::Taken { .. },
            } => Some(Scarce::Units),
            _ => None,
        }
    }

    /// What is short on most nodes, if it is something of that kind.
    pub(super) fn most_common(no_fit: &NoFit) -> Option<Scarce> {
        let mut refusals = no_fit.refusals.iter();
        refusals.find_map(|(refusal, _)| Scarce::of(refusal))
    }

    /// How much of it a task holds on its node.
    fn held(self, node: &Node, task: &Task) -> Option<Amount> {
        let amount = match self {
            Scarce::Cards(family) => cards_of(node, task, family),
            Scarce::Devices => {
                let has = |grant: &&Grant| grant.is_whole || grant.portion.is_some();
                let is_one = |grant: &&Grant| is_device(node, &grant.card);
                let held = task.grants.iter().filter(has).filter(is_one);
                let devices: BTreeSet<&Arc<str>> = held.map(|grant| &grant.card).collect();
                Amount::pieces("devices", number(devices.len()))
            }
            Scarce::Units => {
                let cpus = (task.grants.iter()).filter(|grant| *grant.card == *NumaLayout::CPU);
                let count = cpus.map(|grant| i64::from(grant.units.len())).sum::<i64>();
                Amount {
                    kind: Kind::CPU,
                    name: NumaLayout::CPU.into(),
                    value: count.saturating_mul(1_000),
                }
            }
        };
        (amount.value > 0).then_some(amount)
    }

    /// How much of it nobody holds, to tell which nodes come closest.
    pub(super) fn left(self, tables: &Tables, node: &Node) -> i64 {
        match self {
            Scarce::Cards(family) => {
                let left = |card: &Card| match node.cards.of(&card.id) {
                    Some(load) if load.owners > 0 => 0,
                    load => left_of(node, card, load),
                };
                let cards = node.spec.cards.list.iter();
                let cards = cards.filter(|card| family.has(&card.kind));
                cards.map(left).fold(0, i64::saturating_add)
            }
            Scarce::Devices => {
                let is_had = |device: &model::Device| {
                    let loads = match device.is_shared {
                        true => tables.shared_loads(),
                        false => &node.cards,
                    };
                    loads.of(&device.id).is_some_and(CardLoad::is_had)
                };
                let free = node.spec.devices.list.iter();
                let free = free.filter(|it| it.standing == Standing::Free && !is_had(it));
                number(free.count())
            }
            Scarce::Units => {
                let layout = node.spec.numa.as_deref();
                let open = layout.and_then(NumaLayout::cpus).map(|cpus| &cpus.open);
                let held = node.cards.of(NumaLayout::CPU);
                let left = open.map_or(0, |open| match held {
                    Some(load) => open.without(load.units.held()).len(),
                    None => open.len(),
                });
                i64::from(left)
            }
        }
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn is_device(node: &Node, id: &str) -> bool {
    node.spec.devices.list.iter().any(|it| *it.id == *id)
}

/// What a task holds of cards: whole ones, or their memory. A device plugin may call the resources of
/// all but shared GPUs as it likes, so these go by what they are.
fn cards_of(node: &Node, task: &Task, family: CardFamily) -> Amount {
    let (mut whole, mut memory, mut kind) = (0_i64, 0_i64, None);
    for grant in task.grants.iter().filter(|it| family.has(&it.kind)) {
        let mut cards = node.spec.cards.list.iter();
        let Some(card) = cards.find(|it| it.id == grant.card && it.kind == grant.kind) else {
            continue;
        };
        kind = Some(&card.kind);
        match (family, grant.is_whole) {
            (CardFamily::Chip, _) => whole = whole.saturating_add(cores_of(node, grant)),
            (CardFamily::Shared, true) => whole += 1,
            // Nobody else may have any of it.
            (_, true) => memory = memory.saturating_add(card.memory),
            (_, false) => memory = memory.saturating_add(grant.memory),
        }
    }
    match (family, kind) {
        (CardFamily::Shared, _) if whole > 0 => Amount::pieces("volcano.sh/gpu-number", whole),
        (CardFamily::Shared, _) => Amount::pieces("volcano.sh/gpu-memory", memory),
        (CardFamily::Chip, _) => Amount::pieces("huawei.com/npu-core", whole),
        (CardFamily::Npu, Some(kind)) => Amount::pieces(format!("{kind} memory"), memory),
        (CardFamily::Npu | CardFamily::Virtual, _) => Amount::pieces("GPU memory", memory),
    }
}

/// What nobody holds of a card on which nobody is alone: its memory, or a chip's cores.
fn left_of(node: &Node, card: &Card, load: Option<&CardLoad>) -> i64 {
    let (whole, held) = match node.spec.cards.chips {
        Chips::Of(size) if CardFamily::Chip.has(&card.kind) => {
            (size.cores, load.map_or(0, |load| load.chip.held().cores))
        }
        _ => (card.memory, load.map_or(0, |load| load.memory)),
    };
    whole.saturating_sub(held).max(0)
}

/// How many cores of a chip somebody has.
fn cores_of(node: &Node, grant: &Grant) -> i64 {
    match (grant.chip, node.spec.cards.chips) {
        (Some(part), _) => part.template.size().cores,
        (None, Chips::Of(size)) => size.cores,
        (None, _) => 0,
    }
}

/// Who holds what is short on the able nodes that come closest, which stand first.
pub(super) fn holders(
    tables: &Tables,
    gang: GangId,
    scarce: Scarce,
    able: &[NodeId],
) -> Vec<Holder> {
    let mut sums = Sums::new();
    for id in able.iter().take(NEAREST) {
        add_all(&mut sums, tables, gang, (*id, scarce));
    }
    most(sums)
}

/// Adds what others hold of it on a node.
fn add_all(sums: &mut Sums, tables: &Tables, gang: GangId, (id, scarce): (NodeId, Scarce)) {
    let node = tables.node(id);
    let others = node.tasks.iter().map(|task| tables.task(*task));
    for task in others.filter(|task| task.gang != Some(gang)) {
        let Some(held) = scarce.held(node, task) else {
            continue;
        };
        let who = super::holders::who(tables, task);
        let none = || {
            (
                0,
                Amount {
                    value: 0,
                    ..held.clone()
                },
            )
        };
        let (tasks, amount) = sums
            .entry((who, Some(node.spec.name.clone())))
            .or_insert_with(none);
        *tasks += 1;
        amount.value = amount.value.saturating_add(held.value);
    }
}

/// Whether it is not also amounts that are short somewhere.
pub(super) fn is_all(no_fit: &NoFit) -> bool {
    let is_amount = |why: &Refusal| {
        matches!(
            why,
            Refusal::Insufficient { .. } | Refusal::OutOfProportion { .. } | Refusal::TooManyPods
        )
    };
    Scarce::most_common(no_fit).is_some() && !room::refuses(no_fit, is_amount)
}

/// Tasks of others are over that hold what is short: as few as help, of those that give so many more
/// places.
pub(super) fn cleared(case: &mut Case<'_, '_>, no_fit: &NoFit, missing: i64) -> Option<Draft> {
    let waiting = alike(case.tables, no_fit, Some(case.asked.gang));
    let steps = steps(case, no_fit, &waiting, missing)?;
    queues::fewest(case, steps.len(), &|tables, count| {
        end(tables, &steps[..count].concat())
    })
}

/// All that give so many more places, for tasks of others, too, who may come first.
pub(super) fn cleared_for_all(
    case: &mut Case<'_, '_>,
    no_fit: &NoFit,
    missing: i64,
) -> Option<Draft> {
    let mut waiting = alike(case.tables, no_fit, Some(case.asked.gang));
    waiting.extend(alike(case.tables, no_fit, None));
    let mut seen = BTreeSet::new();
    waiting.retain(|task| seen.insert(*task));
    let steps = steps(case, no_fit, &waiting, missing)?;
    (!steps.is_empty()).then(|| end(case.tables, &steps.concat()))
}

/// Tasks that wait and ask for the same, of the gang or of all.
fn alike(tables: &Tables, no_fit: &NoFit, gang: Option<GangId>) -> Vec<TaskId> {
    let Some(task) = room::task_of(tables, no_fit) else {
        return Vec::new();
    };
    let shape = tables.task(task).shape;
    let is_alike = |row: &Task| row.shape == shape && row.phase.is_waiting() && !row.gated;
    let alike: Vec<TaskId> = match gang {
        Some(gang) => {
            let tasks = tables.gang(gang).tasks.iter().copied();
            let tasks = tasks.filter(|task| is_alike(tables.task(*task)));
            tasks.take(ALIKE_MAX).collect()
        }
        None => {
            let tasks = tables.tasks().filter(|(_, row)| is_alike(row));
            tasks.map(|(id, _)| id).take(ALIKE_MAX).collect()
        }
    };
    alike
}

/// Who makes one more place each time, wherever that costs least.
fn steps(
    case: &mut Case<'_, '_>,
    no_fit: &NoFit,
    waiting: &[TaskId],
    missing: i64,
) -> Option<Vec<Vec<TaskId>>> {
    let scarce = Scarce::most_common(no_fit)?;
    let mut of_nodes = BTreeMap::new();
    let nodes: Vec<NodeId> = case.able.iter().copied().take(NODES_MAX).collect();
    for node in nodes {
        let mut steps = steps_on(case, (waiting, Some(scarce)), node, missing);
        // The last one is taken first.
        steps.reverse();
        if let Some(next) = steps.last() {
            of_nodes.insert((next.len(), node), steps);
        }
    }
    Some(cheapest(of_nodes, missing))
}

/// Which tasks make one more place each time on the node, the least important first, and of these who
/// holds most of what is short.
pub(super) fn steps_on(
    case: &mut Case<'_, '_>,
    (waiting, scarce): (&[TaskId], Option<Scarce>),
    id: NodeId,
    most: i64,
) -> Vec<Vec<TaskId>> {
    let mut rest = in_order(case, scarce, id);
    let (mut gone, mut steps) = (Vec::new(), Vec::new());
    let Some(mut before) = places(case, waiting, id, &gone) else {
        return steps;
    };
    let mut step: Vec<TaskId> = Vec::new();
    while number(steps.len()) < most
        && let Some(task) = rest.pop()
    {
        step.push(task);
        let with = |step: &[TaskId]| [&gone[..], step].concat();
        let Some(now) = places(case, waiting, id, &with(&step)) else {
            break;
        };
        if now <= before {
            continue;
        }
        // Who went and was not needed for this place stays.
        let mut at = 0;
        while step.len() > 1 && at < step.len() {
            let stays = step.remove(at);
            match places(case, waiting, id, &with(&step)) {
                Some(places) if places >= now => rest.push(stays),
                _ => {
                    step.insert(at, stays);
                    at += 1;
                }
            }
        }
        gone.extend(step.iter().copied());
        steps.push(std::mem::take(&mut step));
        // Those after the first cost nothing.
        steps.extend((before + 1..now).map(|_| Vec::new()));
        before = now;
    }
    steps.truncate(usize::try_from(most).unwrap_or(0));
    steps
}

/// Tasks that may end on the node; the last one is to go first.
fn in_order(case: &Case<'_, '_>, scarce: Option<Scarce>, id: NodeId) -> Vec<TaskId> {
    let tables = &*case.tables;
    let node = tables.node(id);
    let mut tasks: Vec<TaskId> = node.tasks.iter().copied().collect();
    tasks.retain(|task| may_end(case, *task));
    let holds = |task: &Task| {
        let held = scarce.and_then(|it| it.held(node, task));
        held.map_or(0, |held| held.value)
    };
    tasks.sort_by_key(|task| {
        let row = tables.task(*task);
        let stays = row.phase != model::Phase::Releasing;
        std::cmp::Reverse((stays, row.priority, -holds(row), *task))
    });
    tasks
}

/// How many of the waiting tasks would go to the node if these were over; `None` where no more may be
/// tried.
fn places(
    case: &mut Case<'_, '_>,
    waiting: &[TaskId],
    node: NodeId,
    over: &[TaskId],
) -> Option<usize> {
    case.tries_left = case.tries_left.checked_sub(1)?;
    let changes = end(case.tables, over).changes;
    let supposed = case.tables.suppose(&changes)?;
    let (rules, now) = (case.asked.engine.rules(), case.asked.now);
    let count = places_on(rules, case.tables, waiting, node, now);
    case.tables.put_back(supposed);
    Some(count)
}
