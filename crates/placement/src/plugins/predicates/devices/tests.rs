//! The search against every assignment there is, on small cases.

use std::collections::BTreeSet;

use model::{AttributeRule, Counter, Dimension, Draw, Drawer, Passed, SelectorId, Steps};
use model::{Taint, TaintEffect, Toleration, TolerationEffect};

use super::*;
use crate::dice::Dice;

fn taint() -> Taint {
    Taint {
        key: "sick".into(),
        value: "".into(),
        effect: TaintEffect::NoSchedule,
    }
}

fn device(dice: &mut Dice, at: usize) -> Device {
    let mut device = Device {
        id: format!("d/p/{at}").into(),
        ..Device::default()
    };
    let mut passes = Passed::default();
    (0..2).filter(|_| !dice.one_in(3)).for_each(|selector| {
        passes.insert(SelectorId(selector * 70));
    });
    device.passes = passes;
    for name in ["board", "half"] {
        if !dice.one_in(5) {
            let value = dice.roll(2).to_string();
            device.attributes.insert(name.into(), value.into());
        }
    }
    if dice.one_in(5) {
        device.taints.push(taint());
    }
    let draws = ["slots", "memory"].into_iter().filter(|_| dice.one_in(4));
    let draws: Vec<&str> = draws.collect();
    let draws = draws.into_iter().map(|counter| Draw {
        counter: counter.into(),
        amount: 1 + i64::try_from(dice.roll(3)).expect("a small number"),
    });
    device.draws = draws.collect();
    if dice.one_in(2) {
        let step = 1 + i64::try_from(dice.roll(2)).expect("a small number");
        let dimension = |name: &str| Dimension {
            name: name.into(),
            whole: 5,
            unasked: (name == "n").then_some(1),
            steps: Steps::Range {
                min: 1,
                max: None,
                step: Some(step),
            },
            held: 0,
        };
        device.dimensions = [dimension("m"), dimension("n")].into();
        // One of them is enough: every way to share several of them out would be too many.
        device.is_parted = at == 0;
    }
    device
}

/// What the devices draw on.
fn counters(dice: &mut Dice, list: &[Device]) -> BTreeMap<Arc<str>, Counter> {
    let mut counters: BTreeMap<Arc<str>, Counter> = BTreeMap::new();
    for device in list {
        for draw in &*device.draws {
            let counter = counters.entry(draw.counter.clone()).or_default();
            counter.drawers.push(Drawer {
                device: device.id.clone(),
                amount: draw.amount,
                standing: device.standing,
                is_shared: device.is_shared,
            });
        }
    }
    for counter in counters.values_mut() {
        counter.whole = i64::try_from(dice.roll(6)).expect("a small number");
    }
    counters
}

fn way(dice: &mut Dice, name: usize) -> Way {
    let bears = Toleration {
        key: None,
        value: None,
        effect: TolerationEffect::Any,
    };
    Way {
        name: name.to_string().into(),
        selectors: (0..2)
            .filter(|_| dice.one_in(2))
            .map(|selector| SelectorId(selector * 70))
            .collect(),
        wanted: match dice.roll(5) {
            0 => Wanted::All,
            count => Wanted::Count(u32::try_from(count.min(2)).expect("a small number")),
        },
        is_admin: dice.one_in(5),
        tolerations: if dice.one_in(2) {
            vec![bears]
        } else {
            Vec::new()
        },
        amounts: match dice.roll(6) {
            0 => vec![Taking {
                dimension: "m".into(),
                amount: i64::try_from(dice.roll(5)).expect("a small number"),
            }],
            _ => Vec::new(),
        },
    }
}

/// What a way takes of each dimension of a device, written from the API's words: it is from 1 on in
/// steps, of `m` all there is where none is asked for and of `n` one.
fn portion_of(device: &Device, way: &Way) -> Option<[i64; 2]> {
    let asked = way.amounts.first().map(|it| it.amount);
    let Some(dimension) = device.dimensions.first() else {
        return asked.is_none().then_some([0, 0]);
    };
    let Steps::Range { step, .. } = dimension.steps else {
        panic!("devices here give in steps");
    };
    let mut given = asked.map_or(5, |_| 1);
    while given < asked.unwrap_or(0) {
        given += step.expect("a step");
    }
    (given <= 5).then_some([given, 1])
}

fn claim(dice: &mut Dice, at: usize) -> DeviceClaim {
    let requests = (0..=dice.roll(2)).map(|at| DeviceRequest {
        name: format!("r{at}").into(),
        ways: (0..=usize::from(dice.one_in(2)))
            .map(|name| way(dice, name))
            .collect(),
        resource: None,
    });
    let requests: Vec<DeviceRequest> = requests.collect();
    let names: [Vec<Arc<str>>; 3] = [
        Vec::new(),
        vec!["r0".into()],
        vec!["r0/1".into(), "r1".into()],
    ];
    let rules = ["board", "half"].into_iter().filter(|_| dice.one_in(3));
    let rules: Vec<&str> = rules.collect();
    let rules = rules.into_iter().map(|attribute| AttributeRule {
        attribute: attribute.into(),
        values: match dice.one_in(2) {
            true => Agreement::Same,
            false => Agreement::Distinct,
        },
        requests: names[usize::try_from(dice.roll(3)).expect("a small number")].clone(),
    });
    DeviceClaim {
        name: format!("c{at}").into(),
        shared: None,
        rules: rules.collect(),
        requests,
    }
}

/// Whether a set of devices for each request, in one way each, is what the claims ask for. Written
/// from the API's words, without the search.
fn is_right(
    devices: &Devices,
    held: &[usize],
    ask: &DeviceAsk,
    grants: &[(Purpose, usize)],
) -> bool {
    let mut owned: Vec<usize> = held.to_vec();
    let mut parts: Vec<(usize, [i64; 2])> = Vec::new();
    for (at, claim) in ask.claims.iter().enumerate() {
        let ours: Vec<&(Purpose, usize)> = grants
            .iter()
            .filter(|(purpose, _)| usize::from(purpose.claim) == at)
            .collect();
        let is_part = |purpose: &Purpose, at: usize| {
            let request = &claim.requests[usize::from(purpose.request)];
            devices.list[at].is_parted && !request.ways[usize::from(purpose.way)].is_admin
        };
        let alike = |a: &(Purpose, usize), b: &(Purpose, usize)| {
            a.1 == b.1 && !(is_part(&a.0, a.1) && is_part(&b.0, b.1))
        };
        let twice = |(at, one): (usize, &&(Purpose, usize))| {
            ours[at + 1..].iter().any(|other| alike(one, other))
        };
        if ours.iter().enumerate().any(twice) {
            return false;
        }
        for (index, request) in claim.requests.iter().enumerate() {
            let mine: Vec<&&(Purpose, usize)> = ours
                .iter()
                .filter(|(purpose, _)| usize::from(purpose.request) == index)
                .collect();
            let Some(first) = mine.first() else {
                return false;
            };
            let way = &request.ways[usize::from(first.0.way)];
            let matches =
                |device: &Device| way.selectors.iter().all(|s| device.passes.contains(*s));
            let all = devices.list.iter().filter(|device| matches(device)).count();
            let right = match way.wanted {
                Wanted::All => {
                    let each: BTreeSet<usize> = mine.iter().map(|(_, at)| *at).collect();
                    each.len() == all && mine.len() == all && !devices.is_partial
                }
                Wanted::Count(count) => mine.len() == count as usize,
            };
            let is_fit = |(purpose, at): &(Purpose, usize)| {
                let device = &devices.list[*at];
                purpose.way == first.0.way
                    && matches(device)
                    && (device.taints.is_empty() || !way.tolerations.is_empty())
                    && (way.is_admin || !owned.contains(at))
                    && (way.amounts.is_empty() && !device.is_parted
                        || portion_of(device, way).is_some())
            };
            if !right || !mine.iter().all(|one| is_fit(one)) {
                return false;
            }
            if !way.is_admin {
                let (split, whole): (Vec<usize>, Vec<usize>) = mine
                    .iter()
                    .map(|(_, at)| *at)
                    .partition(|at| devices.list[*at].is_parted);
                owned.extend(whole);
                let portion = |at: usize| Some((at, portion_of(&devices.list[at], way)?));
                parts.extend(split.into_iter().filter_map(portion));
            }
        }
        let holds = |rule: &AttributeRule| {
            let bound = ours.iter().filter(|(purpose, _)| {
                let request = &claim.requests[usize::from(purpose.request)];
                let way = &request.ways[usize::from(purpose.way)].name;
                let long = format!("{}/{way}", request.name);
                rule.requests.is_empty()
                    || rule.requests.contains(&request.name)
                    || rule.requests.iter().any(|name| **name == *long)
            });
            let values = bound.map(|(_, at)| devices.list[*at].attributes.get(&rule.attribute));
            let values: Vec<Option<&Arc<str>>> = values.collect();
            let different: BTreeSet<_> = values.iter().collect();
            let is_right = match rule.values {
                Agreement::Same => different.len() <= 1,
                Agreement::Distinct => different.len() == values.len(),
            };
            is_right && values.iter().all(Option::is_some)
        };
        if !claim.rules.iter().all(holds) {
            return false;
        }
    }
    let is_short = |at: usize| {
        let own = || parts.iter().filter(|(device, _)| *device == at);
        let sum = |dimension: usize| own().map(|(_, it)| it[dimension]).sum::<i64>();
        let is_whole = devices.list[at].dimensions.is_empty();
        !is_whole && (sum(0) > 5 || sum(1) > 5)
    };
    if (0..devices.list.len()).any(is_short) {
        return false;
    }
    let split: BTreeSet<usize> = parts.iter().map(|(at, _)| *at).collect();
    owned.extend(split);
    let draws_of = |at: &usize| devices.list[*at].draws.iter();
    devices.counters.iter().all(|(name, counter)| {
        // What others have beyond what there is does not concern who draws nothing.
        let drawn_by = |owned: &[usize]| -> i64 {
            let draws = owned.iter().flat_map(draws_of);
            let draws = draws.filter(|draw| draw.counter == *name);
            draws.map(|draw| draw.amount).sum()
        };
        drawn_by(&owned[held.len()..]) == 0 || drawn_by(&owned) <= counter.whole
    })
}

/// Every set of devices for every way of every request, one after the other.
fn any_is_right(
    devices: &Devices,
    held: &[usize],
    ask: &DeviceAsk,
    left: &[(u8, u8)],
    grants: &mut Vec<(Purpose, usize)>,
) -> bool {
    let Some(((claim, request), rest)) = left.split_first() else {
        return is_right(devices, held, ask, grants);
    };
    let ways = ask.claims[usize::from(*claim)].requests[usize::from(*request)]
        .ways
        .len();
    let purpose = |way: usize| Purpose {
        claim: *claim,
        request: *request,
        way: u8::try_from(way).expect("few ways"),
    };
    // The first device may be given in parts: two of them are tried, too.
    let again = [false, devices.list[0].is_parted];
    let sets = again
        .into_iter()
        .enumerate()
        .take_while(|(at, again)| *at == 0 || *again);
    let sets: Vec<(u32, bool)> = sets
        .flat_map(|(_, again)| (1_u32..1 << devices.list.len()).map(move |set| (set, again)))
        .filter(|(set, again)| !again || set & 1 != 0)
        .collect();
    (0..ways).any(|way| {
        sets.iter().any(|(set, again)| {
            let from = grants.len();
            let chosen = (0..devices.list.len()).filter(|at| set & (1 << at) != 0);
            let chosen = chosen.chain(again.then_some(0));
            grants.extend(chosen.map(|at| (purpose(way), at)));
            let found = any_is_right(devices, held, ask, rest, grants);
            grants.truncate(from);
            found
        })
    })
}

#[test]
fn the_search_finds_devices_exactly_where_there_is_an_assignment() {
    let (mut found, mut refused, mut in_parts) = (0, 0, 0);
    for seed in 0..1_800 {
        let mut dice = Dice(seed);
        let list: Vec<Device> = (0..=dice.roll(4) as usize)
            .map(|at| device(&mut dice, at))
            .collect();
        let devices = Devices {
            counters: counters(&mut dice, &list),
            list: list.into(),
            is_partial: dice.one_in(8),
            ..Devices::default()
        };
        let ask = DeviceAsk {
            claims: (0..=usize::from(dice.one_in(3)))
                .map(|at| claim(&mut dice, at))
                .collect(),
        };
        let left: Vec<(u8, u8)> = (0_u8..)
            .zip(&ask.claims)
            .flat_map(|(at, claim)| (0_u8..).zip(&claim.requests).map(move |(r, _)| (at, r)))
            .collect();
        if left.len() > 3 {
            continue;
        }
        let held: Vec<usize> = (0..devices.list.len()).filter(|_| dice.one_in(4)).collect();
        let mut loads = CardLoads::default();
        for at in &held {
            loads.take(&Grant {
                part: 0,
                card: devices.list[*at].id.clone(),
                slice: None,
                memory: 0,
                cores: 0,
                is_whole: true,
                ..Grant::default()
            });
        }
        let is_possible = any_is_right(&devices, &held, &ask, &left, &mut Vec::new());
        let nobody = CardLoads::default();
        match allocate(&devices, Holdings::Of(&loads, &nobody), &ask) {
            Ok(grants) => {
                found += 1;
                in_parts += usize::from(grants.iter().any(|grant| grant.portion.is_some()));
                let place = |grant: &Grant| {
                    let mut list = devices.list.iter();
                    list.position(|device| device.id == grant.card)
                };
                let chosen: Vec<(Purpose, usize)> = grants
                    .iter()
                    .map(|it| {
                        (
                            Purpose::of(it.part),
                            place(it).expect("a device of the node"),
                        )
                    })
                    .collect();
                assert!(
                    is_right(&devices, &held, &ask, &chosen),
                    "seed {seed}: {grants:?}"
                );
            }
            Err(why) => {
                refused += 1;
                assert!(
                    !is_possible,
                    "seed {seed}: {why:?} though there is an assignment"
                );
            }
        }
    }
    assert!(
        found > 250 && refused > 250 && in_parts > 40,
        "{found} found, {in_parts} in parts, {refused} refused"
    );
}

#[test]
fn a_search_that_takes_too_long_is_given_up() {
    // Forty devices of which each is another, and ten of one kind are wanted.
    let list = (0..40).map(|at| Device {
        id: format!("d/p/{at}").into(),
        attributes: [("board".into(), (at / 9).to_string().into())].into(),
        ..Device::default()
    });
    let devices = Devices {
        list: list.collect(),
        ..Devices::default()
    };
    let plain = |name: &str, count| DeviceRequest {
        name: name.into(),
        ways: vec![Way {
            name: "".into(),
            selectors: Vec::new(),
            wanted: Wanted::Count(count),
            is_admin: false,
            tolerations: Vec::new(),
            amounts: Vec::new(),
        }],
        resource: None,
    };
    let ask = DeviceAsk {
        claims: vec![DeviceClaim {
            name: "c".into(),
            shared: None,
            requests: vec![plain("any", 5), plain("of-one-board", 10)],
            rules: vec![AttributeRule {
                attribute: "board".into(),
                values: Agreement::Same,
                requests: vec!["of-one-board".into()],
            }],
        }],
    };
    let given = allocate(&devices, Holdings::None, &ask);
    assert_eq!(given, Err(DeviceLack::Unsolved));
}
