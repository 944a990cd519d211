//! Which chips of a node a task gets, or which part of one.
//!
//! Source: Volcano's way with MindCluster's device plugins. The chip with the least left comes first. While a
//! device plugin has parts to make that were given out, it could not tell these from parts of another size:
//! the node gives out that one size until then.

use std::collections::BTreeSet;

use model::{
    CHIP, Card, CardAsk, CardLack, CardLoads, Cards, ChipAsk, ChipLoad, ChipPart, ChipShare,
    ChipSize, Chips, Grant, Template,
};

use crate::plugin::Score;
use crate::plugins::nodeorder::POINT;

/// So many virtual groups a chip has.
const GROUPS_MAX: u32 = 4;

/// Points of a node all of whose cores are held, and what a lesser part costs.
const POINTS: Score = 8 * POINT;

/// Why nothing can be had of such cards, whoever holds them.
pub(super) fn never(ask: &CardAsk, chips: &ChipAsk, cards: &Cards) -> Option<CardLack> {
    let share = match share(chips, cards) {
        Ok((share, _)) => share,
        Err(why) => return Some(why),
    };
    let wanted = match share {
        ChipShare::Whole(count) => count,
        ChipShare::Part(_) => 1,
    };
    let good = cards.list.iter().filter(|card| *card.kind == *CHIP);
    let good = good.filter(|card| ask.accepts(card)).count();
    (good < wanted).then_some(CardLack::Few)
}

/// What is wanted of chips of the size that the node has.
fn share(chips: &ChipAsk, cards: &Cards) -> Result<(ChipShare, ChipSize), CardLack> {
    if cards.is_garbled(CHIP) {
        return Err(CardLack::Garbled);
    }
    let size = match cards.chips {
        Chips::Absent => return Err(CardLack::Few),
        Chips::Untold => return Err(CardLack::Untold),
        Chips::SetApart => return Err(CardLack::SetApart),
        Chips::Of(size) => size,
    };
    let share = chips.on(size).ok_or(match chips.dvpp {
        Some(_) => CardLack::Amount,
        None => CardLack::Dvpp,
    })?;
    Ok((share, size))
}

/// What the task takes of the cards that are open to it; else what lacks, if it is not that others have it.
pub(super) fn pick(
    chips: &ChipAsk,
    (cards, loads): (&Cards, &CardLoads),
    open: &[&Card],
) -> Result<Vec<Grant>, Option<CardLack>> {
    let (share, size) = share(chips, cards)?;
    let open: Vec<&Card> = open
        .iter()
        .copied()
        .filter(|it| *it.kind == *CHIP)
        .collect();
    match share {
        ChipShare::Whole(count) => {
            let idle = open.iter().filter(|card| loads.of(&card.id).is_none());
            let grants: Vec<Grant> = idle.take(count).map(|card| granted(card, None)).collect();
            (grants.len() == count).then_some(grants).ok_or(None)
        }
        ChipShare::Part(template) => part(template, size, loads, &open),
    }
}

/// The part, or where no chip has room for it the lesser one.
fn part(
    template: Template,
    size: ChipSize,
    loads: &CardLoads,
    open: &[&Card],
) -> Result<Vec<Grant>, Option<CardLack>> {
    let ways = [Some(template), template.lesser()];
    let found = ways.into_iter().flatten().find_map(|template| {
        let chip = fullest(template, size, loads, open)?;
        Some((chip, template))
    });
    let (card, template) = found.ok_or(None)?;
    if unsettled(loads).iter().any(|other| *other != template) {
        return Err(Some(CardLack::Unsettled));
    }
    let part = ChipPart {
        template,
        is_settled: false,
        group: None,
    };
    Ok(vec![granted(card, Some(part))])
}

fn granted(card: &Card, chip: Option<ChipPart>) -> Grant {
    Grant {
        kind: card.kind.clone(),
        card: card.id.clone(),
        is_whole: chip.is_none(),
        chip,
        ..Grant::default()
    }
}

/// Sizes of parts that were given out and are not made yet.
fn unsettled(loads: &CardLoads) -> BTreeSet<Template> {
    let loads = loads.iter().map(|(_, load)| &load.chip);
    loads.flat_map(|it| it.unsettled.keys().copied()).collect()
}

/// The chip with the least left that has room for the part.
fn fullest<'c>(
    template: Template,
    size: ChipSize,
    loads: &CardLoads,
    open: &[&'c Card],
) -> Option<&'c Card> {
    let none = ChipLoad::default();
    let mut best: Option<(ChipSize, &Card)> = None;
    for card in open {
        let load = loads.of(&card.id);
        if load.is_some_and(|load| load.owners > 0) {
            continue;
        }
        let load = load.map_or(&none, |load| &load.chip);
        let held = load.held();
        let left = ChipSize {
            cores: size.cores - held.cores,
            cpus: size.cpus - held.cpus,
        };
        let is_better = best.is_none_or(|(least, _)| left < least);
        if is_better && has_room(template, left, load) {
            best = Some((left, card));
        }
    }
    best.map(|(_, card)| card)
}

/// Whether the part goes on a chip with so much left, beside what is there.
fn has_room(template: Template, left: ChipSize, load: &ChipLoad) -> bool {
    let wanted = template.size();
    // In which group a part will be that is not made yet nobody knows: it may be one of its own.
    let unsettled: u32 = load.unsettled.values().sum();
    let groups = u32::try_from(load.groups.len()).unwrap_or(u32::MAX);
    let cores_max = match groups.saturating_add(unsettled) {
        GROUPS_MAX.. => 1,
        3 => 2,
        _ => i64::MAX,
    };
    wanted.cores <= left.cores
        && wanted.cpus <= left.cpus
        && wanted.cores <= cores_max
        && load.bears(template.dvpp())
}

/// Points of the node: eight times the share of its cores that is held, and eight less where a task gets
/// the lesser part.
pub(super) fn score(
    chips: &ChipAsk,
    (cards, loads): (&Cards, &CardLoads),
    grants: &[Grant],
) -> Score {
    let Ok((share, size)) = share(chips, cards) else {
        return 0;
    };
    let of_chips = cards.list.iter().filter(|card| *card.kind == *CHIP);
    let (mut all, mut held) = (0_i64, 0_i64);
    for card in of_chips {
        all = all.saturating_add(size.cores);
        let cores = loads.of(&card.id).map_or(0, |load| match load.owners {
            0 => load.chip.held().cores,
            _ => size.cores,
        });
        held = held.saturating_add(cores);
    }
    let points = POINTS.saturating_mul(held).checked_div(all).unwrap_or(0);
    let is_lesser = grants.iter().any(|grant| {
        let given = grant.chip.map(|part| ChipShare::Part(part.template));
        given.is_some_and(|given| given != share)
    });
    match is_lesser {
        true => points - POINTS,
        false => points,
    }
}
