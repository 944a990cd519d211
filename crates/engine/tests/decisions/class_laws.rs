//! Laws of what claims count for in queues, tried on seeded random clusters. The fixture asks the checker
//! after every cycle, which adds them up again (I3). A failure prints its seed.

use checker::check;
use model::Trial;

use crate::dice::Dice;
use crate::explained::{admits, waiting, word_of};
use crate::explained_kinds::{Theme, script_of};
use crate::fixture::World;
use crate::laws;

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

/// A queue that is guaranteed some devices and fills the cluster; then others that deserve some take them back.
fn shares(seed: u64) -> Vec<String> {
    let mut dice = Dice(seed);
    let mut pick = |words: &[&str]| words[dice.roll(words.len() as u64) as usize].to_owned();
    let (guarantee, more) = (
        pick(&["1", "2", "3"]),
        pick(&["cpu:1", "deviceclass/gpu:1"]),
    );
    let mut lines = vec![
        "actions enqueue allocate reclaim".to_owned(),
        "tiers priority gang conformance / predicates capacity nodeorder".to_owned(),
        "off gang enableReclaimable".to_owned(),
        "node n1 cpu=4".to_owned(),
        format!("queue rich guarantee=deviceclass/gpu:{guarantee} deserved={more}"),
        "queue poor deserved=cpu:4,deviceclass/gpu:4".to_owned(),
    ];
    for at in 0..10 {
        let queue = if at < 4 { "rich" } else { "poor" };
        let count = pick(&["1", "2"]);
        let counts = pick(&[
            "",
            "counts=gpu:1",
            "counts=gpu:2",
            "counts=gpu:3",
            "counts=c1/gpu:2",
        ]);
        let gang = format!("gang a/g{at} queue={queue} min={count} minres=none");
        lines.push(format!("{gang} : {count} x cpu=1 {counts}"));
        lines.push("cycle".to_owned());
        // Only who runs is asked for room; who has to go does not run again.
        if at < 4 {
            lines.push("run a/".to_owned());
        }
    }
    lines
}

#[test]
fn nobody_is_brought_below_what_is_guaranteed_of_a_class() {
    let (mut given, mut kept) = (0, 0);
    for seed in 0..200 {
        let mut world = World::new();
        let held = |world: &World| -> Vec<(String, i64, i64)> {
            let gpu = world.tables.kinds().find("deviceclass/gpu");
            let of =
                |sum: Option<&model::Vector>| sum.zip(gpu).map_or(0, |(sum, gpu)| sum.get(gpu));
            let queues = world.tables.queues().filter(|(_, queue)| queue.known);
            let row = |(id, queue): (model::QueueId, &model::Queue)| {
                let guarantee = of(Some(&queue.spec.guarantee));
                let held = of(world.tables.classes_held(id));
                (queue.spec.name.to_string(), guarantee, held)
            };
            queues.map(row).collect()
        };
        for line in shares(seed) {
            let before = held(&world);
            world.perform(&line);
            if line != "cycle" {
                continue;
            }
            for ((name, guarantee, had), (_, _, has)) in before.into_iter().zip(held(&world)) {
                given += u32::from(has < had);
                kept += u32::from(has == guarantee && guarantee > 0);
                let floor = guarantee.min(had);
                assert!(
                    has >= floor,
                    "seed {seed}: {name} had {had}, has {has} of {guarantee}"
                );
            }
        }
    }
    assert!(given > 50, "devices were given back {given} times only");
    assert!(
        kept > 50,
        "just what is guaranteed was held {kept} times only"
    );
}

/// Queues of a tree that may have, deserve and are guaranteed some devices.
const CLASSES: Theme = Theme {
    rules: |dice| {
        let mut lines = vec![
            "actions enqueue allocate reclaim".to_owned(),
            "tiers priority gang conformance / predicates capacity nodeorder".to_owned(),
            "off gang enableReclaimable".to_owned(),
            "on capacity enableHierarchy".to_owned(),
            "queue root".to_owned(),
            format!(
                "queue eng parent=root cap=deviceclass/gpu:{}",
                2 + dice.roll(5)
            ),
        ];
        for queue in ["dev", "ops"] {
            let more = dice.pick(&[
                "",
                "cap=deviceclass/gpu:2",
                "deserved=deviceclass/gpu:2",
                "deserved=cpu:4,deviceclass/gpu:2 guarantee=deviceclass/gpu:1",
                "guarantee=deviceclass/gpu:2",
            ]);
            lines.push(format!("queue {queue} parent=eng {more}"));
        }
        lines
    },
    node: |_, _| String::new(),
    gang: |dice| {
        let queue = dice.pick(&["dev", "ops"]);
        let counts = dice.pick(&["", "counts=gpu:1", "counts=gpu:2", "counts=c1/gpu:2"]);
        (format!("queue={queue}"), counts.to_owned())
    },
};

#[test]
fn a_stated_fix_admits_the_gang_where_devices_of_a_class_are_shared() {
    let (mut raised, mut ended) = (0, 0);
    for seed in 0..120 {
        let script = script_of(&CLASSES, seed);
        let mut world = laws::played(script.clone());
        for gang in waiting(&world) {
            let found = engine::explain(&world.engine, &mut world.tables, gang, world.now);
            for fix in &found.fixes {
                assert!(
                    admits(&world, gang, fix),
                    "seed {seed}: {:?} does not help {:?}, which waits for {:?}\n{}",
                    fix.remedy,
                    world.tables.gang(gang).spec.key,
                    found.reason,
                    script.join("\n")
                );
                let of_class = format!("{:?}", found.reason).contains("deviceclass/gpu");
                match &*word_of(fix) {
                    "RaiseQueue" => raised += u32::from(of_class),
                    "EndTasks" => ended += u32::from(of_class),
                    _ => {}
                }
            }
        }
    }
    assert!(
        raised > 10,
        "a ceiling of a class was to be raised {raised} times"
    );
    assert!(ended > 10, "tasks with a class were to end {ended} times");
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
