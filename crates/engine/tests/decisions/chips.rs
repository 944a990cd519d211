//! The words of the fixture language that speak of chips.

use model::{
    CHIP, Card, CardAsk, Cards, ChipAsk, ChipPart, ChipSize, Chips, Dvpp, Grant, Template,
};

/// `cores=4 level=high dvpp=yes`: what a task wants of chips. Whether the word speaks of them.
pub fn wants(cards: &mut CardAsk, word: &str, value: &str) -> bool {
    if !matches!(word, "cores" | "level" | "dvpp") {
        return false;
    }
    let ask = cards.chips.get_or_insert(ChipAsk {
        cores: 0,
        is_high: false,
        dvpp: Some(Dvpp::Null),
    });
    match word {
        "cores" => ask.cores = value.parse().expect("a number"),
        "level" => ask.is_high = value == "high",
        _ => {
            ask.dvpp = match value {
                "yes" => Some(Dvpp::Yes),
                "no" => Some(Dvpp::No),
                "null" => Some(Dvpp::Null),
                _ => None,
            }
        }
    }
    true
}

/// `Ascend310P-0~vir01`, one that is made already `Ascend310P-0~vir01~GROUP`, or `Ascend310P-0~all`.
pub fn grant(text: &str) -> Option<Grant> {
    let (card, part) = text.split_once('~')?;
    let (template, group) = match part.split_once('~') {
        Some((template, group)) => (template, Some(group)),
        None => (part, None),
    };
    let chip = (template != "all").then(|| ChipPart {
        template: Template::named(template).expect("a template"),
        is_settled: group.is_some(),
        group: group.map(|group| group.parse().expect("a number")),
    });
    Some(Grant {
        kind: CHIP.into(),
        card: card.into(),
        is_whole: chip.is_none(),
        chip,
        ..Grant::default()
    })
}

/// The parts are made, in a virtual group if one is named.
pub fn settle(grants: &mut [Grant], group: Option<u32>) {
    for part in grants.iter_mut().filter_map(|grant| grant.chip.as_mut()) {
        part.is_settled = true;
        part.group = group;
    }
}

/// A node's `chips=COUNT:CORES`, `chips=untold`, `chips=apart` or `chips=garbled`.
pub fn add(cards: &mut Cards, words: &str, sick: &[String]) {
    let Some((count, cores)) = words.split_once(':') else {
        match words {
            "untold" => cards.chips = Chips::Untold,
            "apart" => cards.chips = Chips::SetApart,
            _ => cards.garbled.push(CHIP.into()),
        }
        return;
    };
    let number = |text: &str| text.parse().expect("a number");
    let (cores, cpus) = (number(cores), 7);
    cards.chips = Chips::Of(ChipSize { cores, cpus });
    let chip = |at: i64| Card {
        id: format!("Ascend310P-{at}").into(),
        kind: CHIP.into(),
        is_healthy: !sick.contains(&at.to_string()),
        users_max: i64::MAX,
        ..Card::default()
    };
    let others = cards.list.iter().cloned();
    cards.list = others.chain((0..number(count)).map(chip)).collect();
}
