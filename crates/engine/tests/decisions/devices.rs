//! The words of the fixture language that speak of claimed devices.

use std::sync::Arc;

use model::{
    Agreement, AttributeRule, Counter, Device, DeviceClaim, DeviceRequest, Devices, Draw, Drawer,
    Passed, SelectorId, Standing, Taint, TaintEffect, Toleration, TolerationEffect, Wanted, Way,
};

/// `device=ID:SELECTORS:ATTRIBUTES:MARK:DRAWS`: the selectors that it passes, `1,2`, or does not judge, `?3`;
/// its attributes, `board/a`; whether it is `sick` (tainted), `held` by a claim, `shared` by all nodes that
/// have one of that name, or `uncounted`; and what it takes of counters, `slots/2,memory/40`.
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
    Device {
        id: id.into(),
        passes,
        unjudged,
        draws: draws.collect(),
        standing: match mark {
            "held" => Standing::Held,
            "uncounted" => Standing::Uncounted,
            _ => Standing::Free,
        },
        is_shared: mark == "shared",
        attributes,
        taints: (mark == "sick").then_some(taint).into_iter().collect(),
    }
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

/// `claim=WAY|WAY;WAY~ATTRIBUTE~!ATTRIBUTE`: requests after `;`, ways of one after `|`, and what all devices
/// of the claim have in common, or each has otherwise. A way is `2`, `2:1` (passing selector 1), `all`, `admin1` (looks after a device)
/// or `brave1` (bears taints).
pub fn claim(text: &str) -> DeviceClaim {
    let mut parts = text.split('~');
    let requests = parts.next().unwrap_or_default().split(';').enumerate();
    let requests = requests.map(|(at, ways)| DeviceRequest {
        name: at.to_string().into(),
        ways: ways.split('|').enumerate().map(way).collect(),
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
        requests,
        rules: rules.collect(),
    }
}

fn way((at, text): (usize, &str)) -> Way {
    let (wanted, passing) = text.split_once(':').unwrap_or((text, ""));
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
        tolerations: if is_brave { vec![bears] } else { Vec::new() },
    }
}

fn selectors(text: &str) -> impl Iterator<Item = SelectorId> {
    let numbers = text.split(',').filter(|number| !number.is_empty());
    numbers.map(|number| SelectorId(number.parse().expect("a selector")))
}
