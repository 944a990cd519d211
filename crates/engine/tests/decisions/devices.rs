//! The words of the fixture language that speak of claimed devices.

use std::sync::Arc;

use model::{
    Agreement, AttributeRule, Counter, Device, DeviceClaim, DeviceRequest, Devices, Dimension,
    Draw, Drawer, Key, Kind, Passed, SelectorId, ShapeSpec, Standing, Steps, Taint, TaintEffect,
    Taking, Toleration, TolerationEffect, Wanted, Way,
};

/// `device=ID:SELECTORS:ATTRIBUTES:MARK:DRAWS`: the selectors that it passes, `1,2`, or does not judge, `?3`;
/// its attributes, `board/a`; whether it is `sick` (tainted), `held` by a claim, `shared` by all nodes that
/// have one of that name, in `parts` or in `shared-parts`; and what it takes of counters, `slots/2,memory/40`.
/// `…:DIMENSIONS`: its capacity, `m/80` or `m/80/10/4-8-16`: 80, to whom asks for none 10, in these amounts;
/// `m/80-20/10/4..40+4`: 20 of it are held by claims, from 4 to 40 in steps of 4.
pub fn device(text: &str) -> Device {
    let mut parts = text.split(':');
    let mut next = || parts.next().unwrap_or("");
    let id = next();
    let mut passes = Passed::default();
    let mut unjudged = Passed::default();
    let (doubted, taken): (Vec<&str>, Vec<&str>) = next()
        .split(',')
        .partition(|number| number.starts_with('?'));
    let doubted = doubted.join(",").replace('?', "");
    selectors(&taken.join(",")).for_each(|selector| passes.insert(selector));
    selectors(&doubted).for_each(|selector| unjudged.insert(selector));
    let pairs = next().split(',').filter_map(|pair| pair.split_once('/'));
    let attributes = pairs.map(|(name, value)| (name.into(), value.into()));
    let attributes = attributes.collect();
    let mark = next();
    let taint = Taint {
        key: "sick".into(),
        value: "".into(),
        effect: TaintEffect::NoSchedule,
    };
    let draws = next().split(',').filter_map(|draw| draw.split_once('/'));
    let draws = draws.map(|(counter, amount)| Draw {
        counter: counter.into(),
        amount: amount.parse().expect("an amount"),
    });
    let draws = draws.collect();
    let dimensions: Vec<Dimension> = next().split(',').filter_map(dimension).collect();
    let is_parted = mark.ends_with("parts");
    let has_parts = is_parted && dimensions.iter().any(|it| it.held > 0);
    Device {
        id: id.into(),
        passes,
        unjudged,
        draws,
        standing: match mark {
            "held" => Standing::Held,
            _ if has_parts => Standing::Parted,
            _ => Standing::Free,
        },
        is_shared: mark.starts_with("shared"),
        is_parted,
        dimensions: dimensions.into(),
        attributes,
        taints: (mark == "sick").then_some(taint).into_iter().collect(),
    }
}

/// `m/80-20/10/4..40+4`
fn dimension(text: &str) -> Option<Dimension> {
    let mut parts = text.split('/');
    let name = parts.next().filter(|name| !name.is_empty())?;
    let whole = parts.next().expect("how much there is");
    let (whole, held) = whole.split_once('-').unwrap_or((whole, "0"));
    let number = |text: &str| text.parse::<i64>().expect("an amount");
    Some(Dimension {
        name: name.into(),
        whole: number(whole),
        held: number(held),
        unasked: parts.next().filter(|it| !it.is_empty()).map(number),
        steps: match parts.next() {
            None => Steps::Any,
            Some(steps) => match steps.split_once("..") {
                None => Steps::Values(steps.split('-').map(number).collect()),
                Some((min, rest)) => {
                    let (max, step) = rest.split_once('+').unwrap_or((rest, ""));
                    let some = |text: &str| (!text.is_empty()).then(|| number(text));
                    Steps::Range {
                        min: number(min),
                        max: some(max),
                        step: some(step),
                    }
                }
            },
        },
    })
}

/// The node's own devices bear its name. `counters` are how much there is of what they draw on.
pub fn of(node: &str, devices: &[Device], counters: &[(String, i64)]) -> Devices {
    let named = devices.iter().map(|device| Device {
        id: match device.is_shared {
            true => device.id.clone(),
            false => format!("{node}-{}", device.id).into(),
        },
        ..device.clone()
    });
    let list: Arc<[Device]> = named.collect();
    let drawers = |name: &str| {
        let draws = list.iter().flat_map(|device| {
            let draws = device.draws.iter().filter(|draw| *draw.counter == *name);
            draws.map(move |draw| Drawer {
                device: device.id.clone(),
                amount: draw.amount,
                standing: device.standing,
                is_shared: device.is_shared,
            })
        });
        draws.collect()
    };
    let counter = |(name, whole): &(String, i64)| {
        let drawers = drawers(name);
        let whole = *whole;
        (name.as_str().into(), Counter { whole, drawers })
    };
    Devices {
        counters: counters.iter().map(counter).collect(),
        list,
        ..Devices::default()
    }
}

/// `claim=…@NAME` is one that other tasks name, too.
pub fn wants((shape, claims): (&mut ShapeSpec, &mut Vec<Arc<str>>), value: &str) {
    let (text, name) = match value.split_once('@') {
        Some((text, name)) => (text, Some(name)),
        None => (value, None),
    };
    claims.extend(name.map(Arc::from));
    let ask = shape.devices.get_or_insert_default();
    Arc::make_mut(ask).claims.push(DeviceClaim {
        shared: name.map(|name| Key::new("a", name)),
        ..claim(text)
    });
}

/// `claim=WAY|WAY;WAY~ATTRIBUTE~!ATTRIBUTE`: requests after `;`, ways of one after `|`, and what all devices
/// of the claim have in common, or each has otherwise. A way is `2`, `2:1` (passing selector 1), `all`, `admin1` (looks after a device)
/// or `brave1` (bears taints); `1:1:m/8,n/2` wants so much of its capacity.
fn claim(text: &str) -> DeviceClaim {
    let mut parts = text.split('~');
    let requests = parts.next().unwrap_or_default().split(';').enumerate();
    let requests = requests.map(|(at, ways)| DeviceRequest {
        name: at.to_string().into(),
        ways: ways.split('|').enumerate().map(way).collect(),
        resource: None,
    });
    let requests = requests.collect();
    let rules = parts.map(|attribute| AttributeRule {
        attribute: attribute.trim_start_matches('!').into(),
        values: match attribute.starts_with('!') {
            true => Agreement::Distinct,
            false => Agreement::Same,
        },
        requests: Vec::new(),
    });
    DeviceClaim {
        name: "c".into(),
        shared: None,
        requests,
        rules: rules.collect(),
    }
}

/// `serves=RESOURCE:WAY`: what the task requests of a resource, from nodes that have it by their devices alone.
pub fn serving(resource: Kind, text: &str) -> DeviceClaim {
    let mut claim = claim(text);
    claim.name = "served".into();
    for request in &mut claim.requests {
        request.resource = Some(resource);
    }
    claim
}

fn way((at, text): (usize, &str)) -> Way {
    let (wanted, rest) = text.split_once(':').unwrap_or((text, ""));
    let (passing, amounts) = rest.split_once(':').unwrap_or((rest, ""));
    let amounts = amounts.split(',').filter_map(|it| it.split_once('/'));
    let amounts = amounts.map(|(dimension, amount)| Taking {
        dimension: dimension.into(),
        amount: amount.parse().expect("an amount"),
    });
    let bears = Toleration {
        key: None,
        value: None,
        effect: TolerationEffect::Any,
    };
    let is_brave = wanted.starts_with("brave");
    let number = wanted.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    Way {
        name: at.to_string().into(),
        selectors: selectors(passing).collect(),
        wanted: match wanted {
            "all" => Wanted::All,
            _ => Wanted::Count(number.parse().expect("a number of devices")),
        },
        is_admin: wanted.starts_with("admin"),
        amounts: amounts.collect(),
        tolerations: if is_brave { vec![bears] } else { Vec::new() },
    }
}

fn selectors(text: &str) -> impl Iterator<Item = SelectorId> {
    let numbers = text.split(',').filter(|number| !number.is_empty());
    numbers.map(|number| SelectorId(number.parse().expect("a selector")))
}
