//! Laws of what claims count for in queues, tried on seeded random clusters. The fixture asks the checker
//! after every cycle, which adds them up again (I3). A failure prints its seed.

use checker::check;
use model::Trial;

use crate::dice::Dice;
use crate::fixture::World;

/// Whether queues get other parents and claims other amounts meanwhile: then ceilings may be passed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weather {
    Calm,
    Stormy,
}

fn script(seed: u64, weather: Weather) -> Vec<String> {
    let mut dice = Dice(seed);
    let mut pick = |words: &[&str]| words[dice.roll(words.len() as u64) as usize].to_owned();
    let actions = pick(&[
        "allocate backfill",
        "allocate preempt",
        "allocate preempt reclaim",
    ]);
    let mut lines = vec![
        format!("actions enqueue {actions}"),
        "tiers priority gang conformance / predicates capacity nodeorder".to_owned(),
        "off gang enablePreemptable".to_owned(),
        "on capacity enableHierarchy".to_owned(),
        "class high 1000".to_owned(),
        "node n1 cpu=6".to_owned(),
        "node n2 cpu=6".to_owned(),
        "queue root".to_owned(),
        "queue eng parent=root cap=deviceclass/gpu:5".to_owned(),
    ];
    let leaf = |queue: String, parent: String| {
        format!("queue {queue} parent={parent} cap=deviceclass/gpu:4")
    };
    for queue in ["dev", "ops"] {
        lines.push(leaf(queue.to_owned(), "eng".to_owned()));
    }
    for at in 0..16 {
        let (queue, other) = (pick(&["dev", "ops"]), pick(&["0", "1", "2", "3", "4", "5"]));
        let (min, class) = (pick(&["1", "2"]), pick(&["", "class=high"]));
        let shared = match weather {
            Weather::Calm => pick(&["c1/gpu:2", "c2/gpu:1"]),
            Weather::Stormy => pick(&["c1/gpu:2", "c1/gpu:3", "c1/nic:1", "c2/gpu:1"]),
        };
        let counts = pick(&[
            "",
            "counts=gpu:1",
            "counts=gpu:2",
            "counts=SHARED",
            "counts=SHARED",
        ]);
        let counts = counts.replace("SHARED", &shared);
        lines.push(match &*pick(&["gang", "gang", "gang", "delete", "queue"]) {
            "delete" => format!("delete a/g{other}-{}", pick(&["0", "1", ""])),
            "queue" if weather == Weather::Stormy => leaf(queue, pick(&["eng", "root"])),
            _ => format!("gang a/g{at} queue={queue} min={min} {class} : 2 x cpu=1 {counts}"),
        });
        lines.push(pick(&["cycle", "cycle", "cycle once", "wait 1s"]));
    }
    lines.push("cycle".to_owned());
    lines
}

fn played(seed: u64, weather: Weather) -> World {
    let mut world = World::new();
    let lines = script(seed, weather);
    lines.iter().for_each(|line| world.perform(line));
    world
}

#[test]
fn no_queue_has_more_of_a_class_than_it_may() {
    let mut full = 0;
    for seed in 0..300 {
        let world = played(seed, Weather::Calm);
        for (id, queue) in world.tables.queues() {
            let taken = world.tables.classes_taken(id);
            for (kind, most) in queue.spec.capability.entries() {
                let taken = taken.map_or(0, |sum| sum.get(kind));
                let name = &queue.spec.name;
                assert!(taken <= most, "seed {seed}: {name} has {taken} of {most}");
                full += u32::from(taken == most);
            }
        }
    }
    assert!(
        full > 100,
        "{full} full queues are too few to prove anything"
    );
}

#[test]
fn what_claims_count_for_follows_queues_tasks_and_trials() {
    for seed in 0..200 {
        let mut world = played(seed, Weather::Stormy);
        let tables = &mut world.tables;
        let sums = |tables: &model::Tables| -> Vec<_> {
            let queues = tables.queues().map(|(id, _)| id);
            let both = queues.map(|id| {
                (
                    tables.classes_taken(id).cloned(),
                    tables.classes_held(id).cloned(),
                )
            });
            both.collect()
        };
        let before = sums(tables);
        let tasks: Vec<_> = tables.claimants().iter().copied().collect();
        let mut trial = Trial::begin(tables);
        for task in tasks {
            match trial.tables().task(task).phase {
                phase if phase.is_allocated() => {
                    if let Some(gang) = trial.tables().task(task).gang {
                        trial.evict(task, gang, "test");
                    }
                }
                model::Phase::Pending => {
                    let node = trial.tables().node_named("n1").expect("it is there");
                    trial.place(task, node);
                }
                _ => {}
            }
        }
        // The trial places whoever waits wherever there is no room: only sums count here.
        let mut found = check(trial.tables());
        found.retain(|it| it.invariant == "I3");
        assert_eq!(found, [], "seed {seed}, within the trial");
        drop(trial);
        assert_eq!(sums(&world.tables), before, "seed {seed}");
        assert_eq!(check(&world.tables), [], "seed {seed}");
    }
}
