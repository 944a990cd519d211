//! Every order of things in a little world: a queue tree, three gangs, two nodes, and a process that
//! may die once. A bind may be done, refused, or done with its answer lost; news may come late; a
//! gang may end. At no moment may the tables be wrong, a node overfilled or a pod bound twice; and from
//! every moment on calm must lead to whole gangs, room that is used, and silence.

mod world;

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use world::{Budget, World};

/// How many different states were seen, how many of them after a crash, and how many steps led there.
#[derive(Debug, Default)]
struct Counts {
    states: usize,
    after_crash: usize,
    steps: usize,
}

fn mark(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.describe().hash(&mut hasher);
    hasher.finish()
}

fn explore(begin: World) -> Counts {
    let mut seen = BTreeSet::from([mark(&begin)]);
    let mut open = vec![begin];
    let mut counts = Counts::default();
    while let Some(world) = open.pop() {
        counts.states += 1;
        counts.after_crash += usize::from(world.budget.crashes == 0);
        world.clone().calm();
        for step in world.steps() {
            let mut next = world.clone();
            next.take(step);
            next.check();
            counts.steps += 1;
            if seen.insert(mark(&next)) {
                open.push(next);
            }
        }
    }
    counts
}

/// I1, I3, I4, I6, I20
#[test]
fn a_queue_tree_three_gangs_two_nodes_and_a_crash_in_every_order() {
    let budget = Budget {
        crashes: 1,
        refusals: 1,
        lost_answers: 1,
        ends: 1,
    };
    let counts = explore(World::new(budget));
    eprintln!("{counts:?}");
    assert!(counts.states > 1_000, "{counts:?}");
    assert!(counts.after_crash > 200, "{counts:?}");
}
