//! Whom an explanation names: somebody else only where whoever tells it can leave that out, as a holder or
//! as tasks that would have to end. A failure prints its seed.

use std::collections::BTreeMap;

use engine::{Explanation, Remedy};
use model::{Key, Tables};

use crate::explained::waiting;
use crate::explained_kinds::{THEMES, Theme, script_of};
use crate::laws;

const PORTS: Theme = Theme {
    rules: |_| Vec::new(),
    node: |_, _| String::new(),
    gang: |dice| {
        let port = dice.pick(&["port=80", "port=80", "port=81", ""]);
        (String::new(), port.to_owned())
    },
};

const SLOTS: Theme = Theme {
    rules: |_| Vec::new(),
    node: |_, _| "limit=csi:1".to_owned(),
    gang: |dice| {
        let volume = dice.pick(&["makes=csi:1", "makes=csi:1", ""]);
        (String::new(), volume.to_owned())
    },
};

/// How the namespace and the gangs of the other tenant are called: nothing else has such names.
const NAMESPACE: &str = "rival";
const NAME: &str = "secret";

/// Every second gang is of another tenant.
fn of_two_tenants(line: &str) -> String {
    let words = line.split(' ').map(|word| {
        let gang = word.strip_prefix("a/g");
        let (number, rest) = match gang.map(|it| it.split_at(digits(it))) {
            Some((number, rest)) if !number.is_empty() => (number, rest),
            _ => return word.to_owned(),
        };
        match number.parse::<u64>() {
            Ok(at) if at % 2 == 1 => format!("{NAMESPACE}/{NAME}{number}{rest}"),
            _ => word.to_owned(),
        }
    });
    words.collect::<Vec<String>>().join(" ")
}

fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len())
}

/// All that is told of it when those who are named as holders, or as tasks that would have to end, are left
/// out.
fn rest_of(found: &Explanation) -> String {
    let mut text = format!("{:?} {:?}", found.phase, found.reason);
    if let Some(reason) = &found.reason {
        text.push_str(&reason.sentence());
    }
    for holder in &found.holders {
        text.push_str(&format!(
            "{} {:?} {}",
            holder.tasks, holder.node, holder.holds
        ));
    }
    let refusals = found.nodes.iter().flat_map(|(_, refusals)| refusals);
    for (refusal, _) in refusals {
        text.push_str(&format!("{refusal:?} {}", refusal.words()));
    }
    text.push_str(&format!("{:?}", found.notes));
    for fix in &found.fixes {
        match &fix.remedy {
            Remedy::EndTasks { tasks } | Remedy::Ungate { tasks } => {
                text.push_str(&format!("{} tasks", tasks.len()));
            }
            remedy => text.push_str(&format!("{remedy:?}")),
        }
    }
    text
}

/// How often somebody else was named where it may be.
fn named(found: &Explanation) -> usize {
    let is_other = |key: &Key| *key.namespace == *NAMESPACE;
    let holders = found.holders.iter().filter(|it| is_other(&it.who)).count();
    let tasks = found.fixes.iter().map(|fix| match &fix.remedy {
        Remedy::EndTasks { tasks } => tasks.iter().filter(|task| is_other(task)).count(),
        _ => 0,
    });
    holders + tasks.sum::<usize>()
}

fn is_of_other(tables: &Tables, gang: model::GangId) -> bool {
    *tables.gang(gang).spec.key.namespace == *NAMESPACE
}

#[test]
fn another_tenant_is_named_only_where_that_can_be_left_out() {
    let mut times: BTreeMap<usize, usize> = BTreeMap::new();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let themes: Vec<&Theme> = THEMES.iter().chain([&PORTS, &SLOTS]).collect();
    for seed in 0..30 * themes.len() as u64 {
        let at = seed as usize % themes.len();
        let lines = script_of(themes[at], seed);
        let lines: Vec<String> = lines.iter().map(|line| of_two_tenants(line)).collect();
        let mut world = laws::played(lines.clone());
        for gang in waiting(&world) {
            if is_of_other(&world.tables, gang) {
                continue;
            }
            let found = engine::explain(&world.engine, &mut world.tables, gang, world.now);
            let text = rest_of(&found);
            assert!(
                !text.contains(NAMESPACE) && !text.contains(NAME),
                "seed {seed}: {text}\n{}",
                lines.join("\n")
            );
            *times.entry(at).or_default() += named(&found);
            if named(&found) > 0 {
                let of = found.reason.as_ref().map(|reason| format!("{reason:?}"));
                *reasons.entry(of.unwrap_or_default()).or_default() += 1;
            }
        }
    }
    eprintln!("{times:?}");
    for at in 0..themes.len() {
        let times = times.get(&at).copied().unwrap_or_default();
        assert!(times > 0, "theme {at}: nobody else was in the way");
    }
    // Room that is kept for a gang, what a queue may have, cards, devices, cpus, ports and attach slots.
    for kind in [
        "WaitsForDrain",
        "NodeGroupFull",
        "family: Virtual, why: Taken",
        "family: Shared, why: Taken",
        "family: Npu, why: Taken",
        "Devices { why: Taken }",
        "Numa { why: Taken",
        "Ports",
        "VolumeLimit",
    ] {
        let times = reasons.iter().filter(|(reason, _)| reason.contains(kind));
        assert!(times.count() > 0, "nobody was named for {kind}");
    }
}
