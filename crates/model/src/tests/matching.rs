//! Who matches what, against the rule said once more as plainly as can be.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::dice::Dice;
use super::{CASES, one};
use crate::attach::{Attached, attached};
use crate::volume::{FreeVolume, TakenVolume};
use crate::{
    Agreement, AttributeRule, Card, CardAsk, Cards, Counter, Device, DeviceRequest, Drawer, GPU,
    HostPort, Key, Labels, Making, Memory, NodeTerm, NpuDivision, NpuDivisionAsk, Operator, Part,
    PodTerm, Purpose, Requirement, Standing, Taint, TaintEffect, Toleration, TolerationEffect,
    Unmade, Values, VolumeAsk, VolumeLack, VolumeNeed, Wanted, Way, Whence, Zone, device_class,
    is_within, matches_all,
};

const KEYS: [&str; 3] = ["a", "b", "c"];
const VALUES: [&str; 6] = ["", "x", "1", "2", "3", "-4"];
const OPERATORS: [Operator; 6] = [
    Operator::DoesNotExist,
    Operator::Exists,
    Operator::Gt,
    Operator::In,
    Operator::Lt,
    Operator::NotIn,
];

fn some_labels(dice: &mut Dice) -> (BTreeMap<&'static str, &'static str>, Labels) {
    let pairs = (0..dice.roll(5)).map(|_| (*one(dice, &KEYS), *one(dice, &VALUES)));
    let pairs: Vec<(&str, &str)> = pairs.collect();
    (pairs.iter().copied().collect(), Labels::of(pairs))
}

fn requirement(dice: &mut Dice) -> Requirement {
    Requirement {
        key: (*one(dice, &KEYS)).into(),
        operator: *one(dice, &OPERATORS),
        values: (0..dice.roll(4)).map(|_| *one(dice, &VALUES)).collect(),
    }
}

fn meets(requirement: &Requirement, value: Option<&str>) -> bool {
    let listed: Vec<&str> = requirement.values.iter().map(|it| &**it).collect();
    let is_listed = value.is_some_and(|value| listed.contains(&value));
    let numbers = || -> Option<(i64, i64)> {
        let [bound] = listed[..] else { return None };
        Some((value?.parse().ok()?, bound.parse().ok()?))
    };
    match requirement.operator {
        Operator::DoesNotExist => value.is_none(),
        Operator::Exists => value.is_some(),
        Operator::Gt => numbers().is_some_and(|(mine, bound)| mine > bound),
        Operator::In => is_listed,
        Operator::Lt => numbers().is_some_and(|(mine, bound)| mine < bound),
        Operator::NotIn => !is_listed,
    }
}

#[test]
fn labels_meet_what_is_required_of_each() {
    for seed in 0..CASES {
        let dice = &mut Dice(seed);
        let (plain, labels) = some_labels(dice);
        assert!(labels.iter().eq(plain.clone()), "seed {seed}");
        for key in ["", "a", "b", "c", "d"] {
            assert_eq!(labels.get(key), plain.get(key).copied(), "seed {seed}");
        }
        let mut some = |most| -> Vec<Requirement> {
            let count = dice.roll(most);
            (0..count).map(|_| requirement(dice)).collect()
        };
        let (on_labels, on_names) = (some(3), some(2));
        let meets_all = |labels: &BTreeMap<&str, &str>| {
            let mut all = on_labels.iter();
            all.all(|it| meets(it, labels.get(&*it.key).copied()))
        };
        assert_eq!(matches_all(&on_labels, &labels), meets_all(&plain));
        let name = *one(dice, &VALUES);
        let is_named = on_names.iter().all(|it| meets(it, Some(name)));
        let says_something = on_labels.len() + on_names.len() > 0;
        let accepted = says_something && meets_all(&plain) && is_named;
        let namespaces = (0..dice.roll(3)).map(|_| Arc::from(*one(dice, &KEYS)));
        let namespaces: Vec<Arc<str>> = namespaces.collect();
        let term = PodTerm {
            topology_key: "zone".into(),
            selector: on_labels.clone(),
            namespaces: (dice.roll(2) == 0).then(|| namespaces.clone()),
        };
        let is_there = term.namespaces.is_none() || namespaces.contains(&"a".into());
        let selected = is_there && meets_all(&plain);
        assert_eq!(term.selects("a", &labels), selected, "seed {seed}");
        let term = NodeTerm {
            labels: on_labels.clone(),
            names: on_names,
        };
        assert_eq!(term.accepts(name, &labels), accepted, "seed {seed}");
    }
}

#[test]
fn a_toleration_covers_what_it_names_and_all_where_it_names_nothing() {
    let effects = [
        TaintEffect::NoExecute,
        TaintEffect::NoSchedule,
        TaintEffect::PreferNoSchedule,
    ];
    for seed in 0..CASES {
        let dice = &mut Dice(seed);
        let taint = Taint {
            key: (*one(dice, &KEYS)).into(),
            value: (*one(dice, &VALUES)).into(),
            effect: *one(dice, &effects),
        };
        let toleration = Toleration {
            key: (dice.roll(3) > 0).then(|| (*one(dice, &KEYS)).into()),
            value: (dice.roll(3) > 0).then(|| (*one(dice, &VALUES)).into()),
            effect: match dice.roll(3) {
                0 => TolerationEffect::Any,
                _ => TolerationEffect::Only(*one(dice, &effects)),
            },
        };
        let in_key = toleration.key.clone().unwrap_or(taint.key.clone());
        let in_value = toleration.value.clone().unwrap_or(taint.value.clone());
        let in_effect = match toleration.effect {
            TolerationEffect::Any => taint.effect,
            TolerationEffect::Only(effect) => effect,
        };
        let meant = Taint {
            key: in_key,
            value: in_value,
            effect: in_effect,
        };
        assert_eq!(toleration.covers(&taint), meant == taint, "seed {seed}");
    }
}

#[test]
fn two_ports_conflict_where_one_packet_could_mean_both() {
    let addresses = ["", "0.0.0.0", "::", "10.0.0.1", "10.0.0.2"];
    let port = |protocol: &str, address: &str, port| HostPort {
        protocol: protocol.into(),
        address: address.into(),
        port,
    };
    for (at, mine) in addresses.iter().enumerate() {
        for (other, theirs) in addresses.iter().enumerate() {
            let here = port("TCP", mine, 80);
            let meets = at < 3 || other < 3 || at == other;
            assert_eq!(here.conflicts(&port("TCP", theirs, 80)), meets);
            assert!(!here.conflicts(&port("UDP", theirs, 80)));
            assert!(!here.conflicts(&port("TCP", theirs, 81)));
        }
    }
}

#[test]
fn a_card_is_accepted_for_its_model_its_id_and_its_health() {
    let card = |id: &str, kind: &str, model: &str, is_healthy| Card {
        id: id.into(),
        kind: kind.into(),
        model: model.into(),
        is_healthy,
        ..Card::default()
    };
    let words = |words: &[&str]| words.iter().map(|it| Arc::from(*it)).collect();
    let any = CardAsk::default();
    let models = |of: &[&str], not: &[&str]| CardAsk {
        models: words(of),
        models_not: words(not),
        ..CardAsk::default()
    };
    let ids = |of: &[&str], not: &[&str]| CardAsk {
        ids: words(of),
        ids_not: words(not),
        ..CardAsk::default()
    };
    let a100 = card("7", GPU, "Tesla a100", true);
    for (ask, is_accepted) in [
        (&any, true),
        (&models(&["V100", "A100"], &[]), true),
        (&models(&["V100"], &[]), false),
        (&models(&[], &["TESLA"]), false),
        (&models(&["A100"], &["V100"]), true),
        (&models(&["A100"], &["A100"]), false),
        (&ids(&["6", "7"], &[]), true),
        (&ids(&["6"], &[]), false),
        (&ids(&[], &["7"]), false),
        (&ids(&[], &["6"]), true),
    ] {
        assert_eq!(ask.accepts(&a100), is_accepted, "{ask:?}");
        // What is said of GPUs is not said of other kinds.
        assert!(ask.accepts(&card("7", "npu", "Tesla a100", true)));
        assert!(!ask.accepts(&card("7", "npu", "Tesla a100", false)));
        assert!(!ask.accepts(&card("7", GPU, "Tesla a100", false)));
    }
    let cards = Cards {
        garbled: words(&["npu"]),
        ..Cards::default()
    };
    assert!(cards.is_garbled("npu") && !cards.is_garbled(GPU));
    assert_eq!(Memory::Mib(7).of(100), 7);
    assert_eq!(Memory::Percent(25).of(1_001), 250);
    let whole = Part::of_gpus(2, Memory::Mib(1), 0);
    let npus = |cards, template: &str| Part {
        kind: "npu".into(),
        template: template.into(),
        is_partial: !template.is_empty(),
        cards,
        ..whole.clone()
    };
    assert!(whole.is_of_gpus() && !npus(2, "").is_of_gpus());
    let split = [(2, "quarter"), (1, "quarter"), (2, "")].map(|(it, of)| npus(it, of).is_split());
    assert_eq!(split, [true, false, false]);
    use NpuDivision::{Foreign, Soft, Templates};
    let part = npus(1, "quarter");
    for (ask, of_part, of_whole) in [
        (
            NpuDivisionAsk::Any,
            [true, false, false],
            [true, true, false],
        ),
        (
            NpuDivisionAsk::Only(Templates),
            [true, false, false],
            [true, false, false],
        ),
        (
            NpuDivisionAsk::Only(Soft),
            [false, true, false],
            [false, true, false],
        ),
        (NpuDivisionAsk::Unknown, [false; 3], [false; 3]),
    ] {
        let served = |part: &Part| [Templates, Soft, Foreign].map(|it| ask.accepts(part, it));
        assert_eq!(served(&part), of_part, "{ask:?}");
        assert_eq!(served(&npus(1, "")), of_whole, "{ask:?}");
        let ask = CardAsk {
            npu_division: ask,
            ..CardAsk::default()
        };
        assert_eq!(ask.has_soft_npus(), of_part[1]);
    }
}

#[test]
fn a_rule_of_a_claim_binds_the_requests_that_it_names() {
    let way = |name: &str| Way {
        name: name.into(),
        selectors: Vec::new(),
        wanted: Wanted::All,
        is_admin: false,
        tolerations: Vec::new(),
        amounts: Vec::new(),
    };
    let request = DeviceRequest {
        name: "gpu".into(),
        ways: vec![way("large"), way("small")],
        resource: None,
    };
    for (named, binds) in [
        (&[] as &[&str], [true, true]),
        (&["gpu"], [true, true]),
        (&["gpu/large"], [true, false]),
        (&["gpu/small", "nic"], [false, true]),
        (&["nic", "gpu"], [true, true]),
        (&["nic"], [false, false]),
        (&["nic/large"], [false, false]),
        (&["large"], [false, false]),
    ] {
        let rule = AttributeRule {
            attribute: "a".into(),
            values: Agreement::Same,
            requests: named.iter().map(|it| Arc::from(*it)).collect(),
        };
        let found = [0, 1].map(|at| rule.binds(&request, &request.ways[at]));
        assert_eq!(found, binds, "{named:?}");
    }
    let purpose = Purpose {
        claim: 1,
        request: 2,
        way: 255,
    };
    assert_eq!(Purpose::of(purpose.part()), purpose);
    let drawer = |device: &str, amount| Drawer {
        device: device.into(),
        amount,
        standing: Standing::Free,
        is_shared: false,
    };
    let counter = Counter {
        whole: 10,
        drawers: vec![drawer("a", 3), drawer("b", 4), drawer("c", 5)],
    };
    assert_eq!(counter.left(|it| *it.device != *"b"), 2);
    assert_eq!(counter.left(|_| true), -2);
    assert_eq!(Device::default().standing, Standing::Free);
}

#[test]
fn a_kind_is_of_a_class_where_its_name_says_so() {
    for (kind, class) in [
        ("deviceclass/gpu", Some(("", "gpu"))),
        ("memory.deviceclass/gpu", Some(("memory", "gpu"))),
        ("a.b.deviceclass/gpu", Some(("a.b", "gpu"))),
        ("memorydeviceclass/gpu", None),
        ("nvidia.com/gpu", None),
        ("cpu", None),
    ] {
        assert_eq!(device_class(kind), class, "{kind}");
    }
}

fn volume() -> FreeVolume {
    FreeVolume {
        name: "v".into(),
        class: "fast".into(),
        size: 10,
        modes: vec!["rwo".into(), "rox".into()],
        form: "block".into(),
        attributes: "gold".into(),
        labels: Labels::of([("a", "1")]),
        whence: Whence::default(),
        attach: None,
    }
}

fn ask() -> VolumeAsk {
    VolumeAsk {
        size: 10,
        class: "fast".into(),
        modes: vec!["rox".into()],
        form: "block".into(),
        attributes: "gold".into(),
        labels: vec![Requirement::equals("a", "1")],
        claim: None,
        count: 1,
        making: Making::Never,
    }
}

#[test]
fn a_volume_serves_who_asks_for_no_more_than_it_is() {
    assert!(ask().accepts(&volume()));
    let changes: [fn(&mut VolumeAsk); 6] = [
        |it| it.size = 11,
        |it| it.class = "slow".into(),
        |it| it.modes.push("rwx".into()),
        |it| it.form = "files".into(),
        |it| it.attributes = "".into(),
        |it| it.labels.push(Requirement::equals("b", "1")),
    ];
    for change in changes {
        let mut other = ask();
        change(&mut other);
        assert!(!other.accepts(&volume()), "{other:?}");
        assert!(!ask().is_alike(&other), "{other:?}");
    }
    let of_count = |count| VolumeAsk { count, ..ask() };
    assert!(ask().is_alike(&of_count(2)));
    let named = VolumeAsk {
        claim: Some(Key::default()),
        ..ask()
    };
    assert!(!named.is_alike(&named.clone()), "a claim is itself alone");
}

#[test]
fn a_volume_is_in_its_zones_where_nodes_tell_of_any() {
    let (zone, old) = (crate::ZONE_LABELS[0], crate::ZONE_LABELS[1]);
    let in_zone = |key: &str, newer: Option<&str>| Zone {
        key: key.into(),
        newer: newer.map(Arc::from),
        values: Values::from_iter(["z1", "z2"]),
    };
    let of = |pairs: &[(&str, &str)]| Labels::of(pairs.iter().copied());
    let older = [in_zone(old, Some(zone))];
    let both = [in_zone(zone, None), in_zone("rack", None)];
    for (zones, labels, is_there) in [
        (&[] as &[Zone], of(&[(zone, "z9")]), true),
        (&older, of(&[(old, "z1")]), true),
        (&older, of(&[(old, "z3"), (zone, "z1")]), false),
        (&older, of(&[(zone, "z2")]), true),
        (&older, of(&[(zone, "z3")]), false),
        (&older, of(&[("rack", "z3")]), true),
        (&both, of(&[(zone, "z1"), ("rack", "z2")]), true),
        (&both, of(&[(zone, "z1"), ("rack", "z3")]), false),
        (&both, of(&[(zone, "z1")]), false),
    ] {
        assert_eq!(is_within(zones, &labels), is_there, "{zones:?} {labels:?}");
        let whence = Whence {
            nodes: Some(vec![NodeTerm {
                names: vec![Requirement::equals("metadata.name", "n")],
                ..NodeTerm::default()
            }]),
            zones: zones.to_vec(),
        };
        assert_eq!(whence.accepts("n", &labels), is_there);
        assert!(!whence.accepts("m", &labels) && !whence.is_everywhere());
        let anywhere = Whence {
            nodes: None,
            zones: zones.to_vec(),
        };
        assert_eq!(anywhere.accepts("m", &labels), is_there);
        assert_eq!(anywhere.is_everywhere(), zones.is_empty());
    }
}

#[test]
fn a_need_of_a_volume_says_what_it_takes() {
    let attach = || (Arc::from("driver"), Arc::from("handle"));
    let first = |unmade, ask: Option<VolumeAsk>| VolumeNeed::FirstConsumer {
        topology: None,
        unmade,
        ask: ask.map(Arc::new),
    };
    let bound = |attach| VolumeNeed::Bound {
        affinity: None,
        zones: Vec::new(),
        attach,
    };
    let own = || Unmade::Own("driver".into(), 3);
    let waits = VolumeNeed::Waits {
        claim: "c".into(),
        why: VolumeLack::Unbound,
    };
    let driver: Arc<str> = "driver".into();
    let (handle, other) = (attach(), (Arc::from("other"), Arc::from("free")));
    let taken = |need, attach: Option<&(Arc<str>, Arc<str>)>| TakenVolume {
        need,
        claim: None,
        volume: "v".into(),
        attach: attach.cloned(),
    };
    let (one, unmade) = (Attached::One, |count| Attached::Unmade(&driver, count));
    let csi = || vec![taken(0, Some(&other))];
    let local = || vec![taken(0, None)];
    let elsewhere = || vec![taken(1, Some(&other))];
    for (need, given, takes) in [
        (bound(Some(attach())), vec![], vec![one(&handle)]),
        // It is bound by now, whatever it was given.
        (bound(Some(attach())), csi(), vec![one(&handle)]),
        (bound(None), vec![], vec![]),
        (
            first(Some(Unmade::Shared(attach())), None),
            vec![],
            vec![one(&handle)],
        ),
        (
            first(Some(Unmade::Shared(attach())), None),
            csi(),
            vec![one(&other)],
        ),
        (first(Some(Unmade::Shared(attach())), None), local(), vec![]),
        (first(Some(own()), None), vec![], vec![unmade(3)]),
        (
            first(Some(own()), None),
            csi(),
            vec![one(&other), unmade(2)],
        ),
        (first(Some(own()), None), local(), vec![unmade(2)]),
        (
            first(Some(own()), None),
            [local(), local(), local()].concat(),
            vec![],
        ),
        (first(Some(own()), None), elsewhere(), vec![unmade(3)]),
        (first(None, None), vec![], vec![]),
        (first(None, None), csi(), vec![one(&other)]),
        (VolumeNeed::Alone, csi(), vec![]),
        (waits.clone(), csi(), vec![]),
    ] {
        let found: Vec<Attached<'_>> = attached(std::slice::from_ref(&need), &given).collect();
        assert_eq!(found, takes, "{need:?} {given:?}");
    }
    for (need, asks) in [
        (first(Some(own()), Some(ask())), true),
        (first(None, Some(ask())), true),
        (first(None, None), false),
        (bound(None), false),
        (VolumeNeed::Alone, false),
        (waits, false),
    ] {
        assert_eq!(need.ask(), asks.then(ask).as_ref(), "{need:?}");
    }
}
