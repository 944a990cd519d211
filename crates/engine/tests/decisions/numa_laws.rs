//! Laws of NUMA nodes, tried on seeded random clusters. The fixture asks the checker after every cycle
//! (I2): no plan gives a cpu that somebody has. A failure prints its seed.

use checker::{check, describe};
use model::{Grant, NumaLayout, NumaPolicy, Phase, Tables, Trial, Units};

use crate::dice::Dice;
use crate::fixture::World;
use crate::laws;

/// A cluster with NUMA nodes and what happens to it, as a script.
fn script(seed: u64) -> Vec<String> {
    let mut dice = Dice(seed);
    let mut pick = |words: &[&str]| words[dice.roll(words.len() as u64) as usize].to_owned();
    let mut lines = vec!["class high 1000".to_owned()];
    if pick(&["", "preempt"]) == "preempt" {
        lines.push("actions enqueue allocate backfill reclaim preempt".to_owned());
        lines.push("off gang enablePreemptable".to_owned());
    }
    lines.push("numa-aware".to_owned());
    lines.push(format!(
        "argument numa-aware weight={}",
        pick(&["0", "1", "9"])
    ));
    let policies = ["best-effort", "restricted", "single-numa-node"];
    for node in 0..4 {
        lines.push(format!(
            "node n{node} cpu=16 numa={} {} {} {} policy={}",
            pick(&["1x8", "2x4", "2x6", "4x2"]),
            pick(&["", "smt"]),
            pick(&["", "one-socket", "gpus=0,0"]),
            pick(&["", "reserved=1", "open=0-4", "open=1-6"]),
            pick(&["best-effort", "restricted", "single-numa-node", "none"]),
        ));
    }
    for at in 0..14 {
        let cpus = pick(&["1", "2", "3", "4", "5"]);
        let gang = format!(
            "gang a/g{at} min={} {} : 2 x cpu={cpus} pin={cpus} {} {}",
            pick(&["1", "2"]),
            pick(&["", "class=high"]),
            pick(&["", "", "pin=1", "pin=1:1"]),
            match &*pick(&["", "named", "named"]) {
                "named" => format!("policy={}", pick(&policies)),
                none => none.to_owned(),
            },
        );
        let other = pick(&["0", "1", "2", "3", "4", "5"]);
        let verbs = [
            "gang", "gang", "gang", "run", "end", "delete", "release", "refuse", "told",
        ];
        lines.push(match &*pick(&verbs) {
            "gang" => gang,
            "delete" => format!("delete a/g{other}-0"),
            "refuse" => format!("refuse a/g{other}-1"),
            "told" => format!(
                "told a/g{other}-0 cpu:{}",
                pick(&["0-1", "2-4", "1,3,5", "0-3"])
            ),
            verb => format!("{verb} a/g{other}-"),
        });
        lines.push(pick(&["cycle", "cycle", "cycle once", "wait 1s"]));
    }
    lines.push("cycle".to_owned());
    lines
}

fn played(seed: u64) -> World {
    laws::played(script(seed))
}

fn grants(tables: &Tables) -> usize {
    tables.tasks().map(|(_, task)| task.grants.len()).sum()
}

#[test]
fn no_cpu_is_given_to_two() {
    let mut given = 0;
    for seed in 0..150 {
        eprintln!("seed {seed}");
        given += grants(&played(seed).tables);
    }
    assert!(given > 400, "only {given} sets of units were given");
}

#[test]
fn nobody_lies_against_the_policy_of_its_node() {
    let mut seen = 0;
    for seed in 0..200 {
        // What the script tells of a pod is whatever came to mind.
        let mut script = script(seed);
        script.retain(|line| !line.starts_with("told"));
        let world = laws::played(script);
        for (_, task) in world.tables.tasks() {
            let layout = task.node.map(|node| &world.tables.node(node).spec.numa);
            let Some(layout) = layout.and_then(Option::as_ref) else {
                continue;
            };
            let ask = world.tables.shape(task.shape).spec.numa.as_deref();
            let ask = ask.expect("each task of the script wants cpus");
            let Some(cpus) = task.grants.first() else {
                continue;
            };
            assert_eq!(cpus.units.len(), ask.total(NumaLayout::CPU), "seed {seed}");
            let is_single = NumaPolicy::of_word(&layout.policy) == NumaPolicy::SingleNumaNode;
            // Of several containers each lies for itself.
            if is_single && ask.parts.len() == 1 {
                let spread = layout.spread_of(NumaLayout::CPU, &cpus.units);
                assert_eq!(spread.len(), 1, "seed {seed}: {} on {spread:?}", task.key);
                seen += 1;
            }
        }
    }
    assert!(seen > 50, "only {seen} tasks lay on one NUMA node");
}

#[test]
fn tables_that_are_fed_anew_say_the_same_of_units() {
    for seed in 0..80 {
        let world = played(seed);
        let mut tables = Tables::new();
        world.rows().iter().for_each(|row| row(&mut tables));
        let loads = |tables: &Tables| {
            let text = describe(tables);
            let lines = text.lines().filter(|line| line.contains(" card "));
            lines.map(str::to_owned).collect::<Vec<String>>()
        };
        // A bind that was decided and not carried out is not known to the API.
        if (world.tables.tasks()).all(|(_, task)| task.phase != Phase::Binding) {
            assert_eq!(loads(&tables), loads(&world.tables), "seed {seed}");
        }
        assert_eq!(check(&tables), [], "seed {seed}");
    }
}

#[test]
fn a_trial_that_is_rewound_gives_units_back() {
    for seed in 0..80 {
        let mut world = played(seed);
        let before = describe(&world.tables);
        let tasks: Vec<_> = world
            .tables
            .tasks()
            .map(|(id, task)| (id, task.phase))
            .collect();
        let nodes: Vec<_> = world.tables.nodes().map(|(id, _)| id).collect();
        let mut dice = Dice(seed);
        let mut trial = Trial::begin(&mut world.tables);
        for (task, phase) in tasks {
            let mark = trial.mark();
            let node = nodes[dice.roll(nodes.len() as u64) as usize];
            let from = dice.roll(6) as u32;
            // They overlap with what others hold, as what a node gave may.
            let grant = |card: &str| Grant {
                card: card.into(),
                units: (from..from + 3).collect::<Units>(),
                ..Grant::default()
            };
            if phase.is_waiting() {
                trial.place_with(task, node, vec![grant("cpu"), grant("nvidia.com/gpu")]);
            } else if phase.is_allocated() {
                trial.evict(task, model::GangId(0), "preempt");
            }
            match dice.roll(3) {
                0 => trial.rewind(mark),
                1 if phase.is_allocated() => trial.spare(task),
                _ => {}
            }
        }
        drop(trial);
        assert_eq!(before, describe(&world.tables), "seed {seed}");
        assert_eq!(check(&world.tables), [], "seed {seed}");
    }
}

#[test]
fn at_rest_nothing_more_fits_and_no_work_is_done() {
    for seed in 0..40 {
        let mut world = played(seed);
        for line in ["wait 5s", "cycle", "wait 5s", "cycle"] {
            world.perform(line);
        }
        let work = world.engine.work();
        let plan = world.engine.cycle(&mut world.tables, world.now);
        assert!(checker::is_quiet(&plan), "seed {seed} (I20)");
        assert_eq!(work, world.engine.work(), "seed {seed}: work without news");
    }
}
