//! Wishes brought together against every way to take one of each, and cpus against what they must be.

use model::{NumaLayout as Layout, NumaPolicy, NumaResource, Units};

use super::cpus;
use super::hints::{self, Hint, Nodes};
use crate::dice::Dice;

/// What a resource has on each NUMA node, what is free of it, and how much is wanted.
type Want = (Vec<Units>, Units, u32);

fn want(dice: &mut Dice, nodes: usize) -> Want {
    let mut next = 0;
    let mut free = Units::default();
    let mut by_node = Vec::new();
    for _ in 0..nodes {
        let size = dice.small(4);
        by_node.push((next..next + size).collect());
        for unit in next..next + size {
            if dice.small(3) > 0 {
                free.insert(unit);
            }
        }
        next += size;
    }
    (by_node, free, 1 + dice.small(5))
}

/// Each set in the order of its number: whether it could hold what is wanted, if at all.
fn wishes((by_node, free, count): &Want, nodes: usize) -> Vec<(Option<Nodes>, bool)> {
    let of = |set: Nodes, of: &dyn Fn(&Units) -> u32| -> u32 {
        let all = by_node.iter().enumerate();
        let there = all.filter(|(at, _)| set >> at & 1 == 1);
        there.map(|(_, units)| of(units)).sum()
    };
    let mut least = u32::try_from(nodes).unwrap_or(0);
    for set in 1..1 << nodes {
        if of(set, &Units::len) >= *count {
            least = least.min(set.count_ones());
        }
    }
    let fits = (1..1 << nodes).filter(|set| of(*set, &|units| units.shared(free)) >= *count);
    let wishes: Vec<_> = fits
        .map(|set: Nodes| (Some(set), set.count_ones() == least))
        .collect();
    match wishes.is_empty() {
        true => vec![(None, false)],
        false => wishes,
    }
}

/// The best of all ways to take one wish of each resource, one after the other.
fn one_by_one(policy: NumaPolicy, nodes: usize, wants: &[Want]) -> Hint {
    let all = hints::all(nodes);
    let mut ways = vec![(all, true)];
    for want in wants {
        let mut wishes = wishes(want, nodes);
        if policy == NumaPolicy::SingleNumaNode {
            let is_single = |set: &Option<Nodes>| set.is_none_or(|set| set.count_ones() == 1);
            wishes.retain(|(set, preferred)| *preferred && is_single(set));
        }
        let one = |(nodes, preferred): (Nodes, bool)| {
            let with = |(set, wish): &(Option<Nodes>, bool)| {
                (nodes & set.unwrap_or(all), preferred && *wish)
            };
            wishes.iter().map(with).collect::<Vec<_>>()
        };
        ways = ways.into_iter().flat_map(one).collect();
    }
    let mut best = (all, false);
    for (nodes, preferred) in ways {
        let narrower = (nodes.count_ones(), nodes) < (best.0.count_ones(), best.0);
        let is_better = match (preferred, best.1) {
            (true, false) => true,
            (false, true) => false,
            _ => narrower,
        };
        if nodes != 0 && is_better {
            best = (nodes, preferred);
        }
    }
    Hint {
        nodes: best.0,
        preferred: best.1,
    }
}

#[test]
fn wishes_are_brought_together_as_all_ways_say() {
    let (mut preferred, mut split) = (0, 0);
    for seed in 0..3_000 {
        let mut dice = Dice(seed);
        let nodes = 1 + dice.place(4);
        let wants: Vec<Want> = (0..dice.small(4)).map(|_| want(&mut dice, nodes)).collect();
        for policy in NumaPolicy::ALL {
            let asked = wants.iter().map(|(by_node, free, count)| {
                let by_node: &[Units] = by_node;
                (by_node, free, *count)
            });
            let found = hints::merged(policy, nodes, asked);
            assert_eq!(
                found,
                one_by_one(policy, nodes, &wants),
                "seed {seed} {policy:?}"
            );
            preferred += u32::from(found.preferred);
            split += u32::from(found.preferred && found.nodes.count_ones() > 1);
        }
    }
    assert!(
        preferred > 1_000 && split > 100,
        "{preferred} preferred, {split} on several"
    );
}

#[test]
fn eight_numa_nodes_and_two_resources_are_bounded() {
    let by_node: Vec<Units> = (0..8).map(|at| (at * 8..at * 8 + 8).collect()).collect();
    let all: Units = (0..64).collect();
    let one = || (&by_node[..], &all, 1);
    let hint = hints::merged(NumaPolicy::Restricted, 8, [one(), one()].into_iter());
    assert_eq!((hint.nodes, hint.preferred), (1, true));
}

/// So many sockets of NUMA nodes of cores of threads.
fn layout([sockets, nodes, cores, threads]: [u32; 4]) -> Layout {
    let of_node = cores * threads;
    let by_node: Vec<Units> = (0..sockets * nodes)
        .map(|node| (node * of_node..(node + 1) * of_node).collect())
        .collect();
    let of_socket = nodes * of_node;
    Layout {
        sockets: (0..sockets)
            .map(|at| (at * of_socket..(at + 1) * of_socket).collect())
            .collect(),
        cores: (0..sockets * nodes * cores)
            .map(|core| {
                let socket = (core / (nodes * cores)) as usize;
                (socket, (core * threads..(core + 1) * threads).collect())
            })
            .collect(),
        resources: vec![NumaResource {
            name: Layout::CPU.into(),
            open: (0..sockets * of_socket).collect(),
            by_node,
        }],
        nodes: (0..sockets * nodes).collect(),
        ..Layout::default()
    }
}

#[test]
fn cpus_are_free_as_many_as_wanted_and_break_no_more_cores_than_they_must() {
    for seed in 0..2_000 {
        let mut dice = Dice(seed);
        let layout = layout([
            1 + dice.small(2),
            1 + dice.small(2),
            1 + dice.small(4),
            1 + dice.small(2),
        ]);
        let all = layout
            .sockets
            .iter()
            .fold(Units::default(), |all, it| all.or(it));
        let free: Units = all.iter().filter(|_| dice.small(4) > 0).collect();
        let count = dice.small(all.len() + 2);
        let Some(taken) = cpus::take(&layout, &free, count) else {
            assert!(count > free.len(), "seed {seed}");
            continue;
        };
        assert_eq!(taken.len(), count, "seed {seed}");
        assert!(free.holds(&taken), "seed {seed}");
        let cores = || layout.cores.iter().map(|(_, core)| core);
        let size = cores().map(Units::len).max().unwrap_or(1);
        let whole = |of: &Units| cores().filter(|core| of.holds(core)).count();
        // As many whole cores as there are, or as are wanted; the rest comes of begun ones if it can.
        let possible = whole(&free).min((count / size) as usize);
        assert!(whole(&taken) >= possible, "seed {seed}: {taken} of {free}");
    }
}

#[test]
fn a_whole_socket_is_taken_before_parts_of_others() {
    let layout = layout([2, 2, 2, 2]);
    let take = |free: &str, count| {
        let free = Units::of_list(free).expect("it is a list");
        cpus::take(&layout, &free, count).map(|it| it.to_string())
    };
    assert_eq!(take("0-15", 8).as_deref(), Some("0-7"));
    assert_eq!(
        take("1-15", 8).as_deref(),
        Some("8-15"),
        "the first is begun"
    );
    assert_eq!(take("1-15", 4).as_deref(), Some("4-7"), "a whole NUMA node");
    assert_eq!(
        take("1-3,6-15", 2).as_deref(),
        Some("2-3"),
        "of the fuller socket"
    );
    assert_eq!(
        take("1,4-7,8-15", 1).as_deref(),
        Some("1"),
        "of the begun core"
    );
    assert_eq!(take("0-15", 17), None);
    assert_eq!(take("", 0).as_deref(), Some(""));
}
