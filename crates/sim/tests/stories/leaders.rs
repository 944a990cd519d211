//! Several processes want one Lease, and whoever has it writes one object, or deletes it, while they are paused, cut
//! off, killed, ended and their clocks set. What they saw must be explained by some order of events in
//! which each term has one holder and nobody writes after his successor.
//! `KATMAI_SIM_LEASES=10000` plays so many stories, `KATMAI_SIM_SEED=17` one.

mod history;
mod plane;

use std::collections::BTreeMap;

use crate::asked::{asked, print};
use history::{Deed, NOBODY, Op, Told, explain};
use plane::Plane;

/// Stories that are played unless more are asked for.
const STORIES: u64 = 20;
/// Everything goes wrong for so long, and nothing for so long after it.
const STORM_MS: i64 = 180_000;
const CALM_MS: i64 = 90_000;

/// Something goes wrong, with the leader more often than with others.
fn strike(plane: &mut Plane) {
    let who = match plane.draw(0, 2) {
        0 => plane.anybody(),
        _ => plane.leader(),
    };
    let ms = plane.draw(1_000, 45_000);
    let skew_ms = plane.draw(-600_000, 600_000);
    match plane.draw(0, 9) {
        0 | 1 => plane.pause(who, ms),
        // So long that another takes over.
        2..=4 => plane.mute(who, 15_000 + ms),
        5 => plane.cut(who, ms),
        6 => plane.set_clock(who, skew_ms),
        // Its clock is set while it stands still.
        7 => {
            plane.pause(who, ms);
            plane.set_clock(who, skew_ms);
        }
        8 => plane.kill(who),
        _ => plane.end(who),
    }
}

/// What a story came to.
#[derive(Default)]
struct Sum {
    deeds: usize,
    terms: usize,
    overdue: u64,
    removals: u64,
}

fn play(seed: u64) -> Result<Sum, String> {
    let mut plane = Plane::new(seed);
    let mut trouble_ms = plane.draw(5_000, 20_000);
    while plane.age_ms() < STORM_MS + CALM_MS {
        if plane.age_ms() >= STORM_MS {
            plane.heal();
        } else if plane.age_ms() >= trouble_ms {
            strike(&mut plane);
            trouble_ms = plane.age_ms() + plane.draw(5_000, 25_000);
        }
        plane.ask();
        let ms = plane.draw(200, 2_500);
        plane.run(ms);
    }
    // Nobody asks any more, and what was asked is answered.
    plane.ask_for_an_answer();
    plane.run(CALM_MS);
    let (answered, asked) = plane.read();
    if answered != asked {
        return Err(format!("{answered} is answered of {asked}"));
    }
    let mut holders = BTreeMap::new();
    for at in &plane.holdings {
        let last = holders.last_key_value().map_or(0, |(term, _)| *term);
        let holder = *holders.entry(at.term).or_insert(at.holder);
        if at.term < last || (holder != at.holder && at.holder != NOBODY) {
            return Err(format!("two holders of one term: {:#?}", plane.holdings));
        }
    }
    let sum = Sum {
        deeds: plane.ops.len(),
        terms: holders.len(),
        overdue: plane.overdue,
        removals: plane.removals,
    };
    explain(&plane.ops, plane.first).map(|()| sum)
}

/// S1.3, S1.7: whatever happens to them, a term has one holder, and nothing that a deposed leader sent takes
/// effect once its successor has written the same object, nor does it take the object away.
#[test]
fn s1_3_what_leaders_did_is_explained_by_one_order_in_which_each_term_writes_after_the_last() {
    let seeds = match asked("KATMAI_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..asked("KATMAI_SIM_LEASES").unwrap_or(STORIES),
    };
    let count = seeds.end - seeds.start;
    let mut whole = Sum::default();
    for seed in seeds {
        match play(seed) {
            Ok(sum) => {
                whole.deeds += sum.deeds;
                whole.terms += sum.terms;
                whole.overdue += sum.overdue;
                whole.removals += sum.removals;
            }
            Err(why) => panic!("KATMAI_SIM_SEED={seed}: {why}"),
        }
    }
    print(&format!(
        "{count} stories: {} deeds in {} terms; the object was deleted {} times; {} writes came after a successor's",
        whole.deeds, whole.terms, whole.removals, whole.overdue
    ));
    // Where nothing comes too late nothing is proved.
    assert!(count < STORIES || whole.overdue >= count / 3);
    assert!(count < STORIES || whole.terms as u64 >= count * 3);
    assert!(count < STORIES || whole.removals >= count * 10);
}

/// A deed of a life; it was sent at the first and told at the second of its times.
fn deed(who: u32, deed: Deed, [sent, told_at]: [u64; 2], told: Told) -> Op {
    Op {
        who,
        deed,
        sent,
        told_at,
        told,
    }
}

/// The first leader sends a write on the ground of revision 10 and is told this of it much later; the
/// second has written meanwhile, on the ground of `basis`.
fn two_leaders(told: Told, basis: u64) -> Result<(), String> {
    let hold = |holder, term| Deed::Hold { holder, term };
    let write = |term, basis| Deed::Write { term, basis };
    let told_at = match told {
        Told::Nothing => u64::MAX,
        _ => 9,
    };
    let ops = [
        deed(0, hold(0, 0), [1, 2], Told::Done(5)),
        deed(0, write(0, 10), [3, told_at], told),
        deed(1, hold(1, 1), [4, 5], Told::Done(20)),
        deed(1, write(1, basis), [6, 7], Told::Done(30)),
        deed(NOBODY, Deed::Read, [10, 11], Told::Done(30)),
    ];
    explain(&ops, 10)
}

#[test]
fn a_write_of_a_former_leader_is_explained_only_before_its_successors() {
    // It came first, whether its sender was told or not; or it was refused.
    assert_eq!(two_leaders(Told::Done(15), 15), Ok(()));
    assert_eq!(two_leaders(Told::Nothing, 15), Ok(()));
    assert_eq!(two_leaders(Told::Nothing, 10), Ok(()));
    assert_eq!(two_leaders(Told::Conflict, 10), Ok(()));
    // It took effect although its ground had gone.
    assert!(two_leaders(Told::Done(40), 10).is_err());
    // Nobody wrote what its successor's rests on.
    assert!(two_leaders(Told::Conflict, 15).is_err());
    assert!(two_leaders(Told::Done(15), 16).is_err());
}

#[test]
fn a_term_of_two_holders_and_a_write_of_an_earlier_term_are_not_explained() {
    let hold = |who, term, at: u64| {
        let deed_of = Deed::Hold { holder: who, term };
        deed(who, deed_of, [at, at + 1], Told::Done(at))
    };
    let twice = [hold(0, 0, 1), hold(1, 1, 3), hold(2, 1, 5)];
    assert!(explain(&twice, 10).is_err());
    assert_eq!(explain(&twice[..2], 10), Ok(()));
    // It has read what its successor wrote, and takes itself for the leader still.
    let write = |who, term, basis, at: u64| {
        let deed_of = Deed::Write { term, basis };
        deed(who, deed_of, [at, at + 1], Told::Done(basis + 10))
    };
    let late = [
        hold(0, 0, 1),
        hold(1, 1, 3),
        write(1, 1, 10, 5),
        write(0, 0, 20, 7),
    ];
    assert!(explain(&late, 10).is_err());
    assert_eq!(explain(&late[..3], 10), Ok(()));
}
