//! Laws of cards, tried on seeded random clusters that have some. The fixture asks the checker after
//! every cycle (I2). A failure prints its seed.

use std::collections::BTreeSet;

use checker::{check, describe};
use model::{CardFamily, Grant, Phase, Tables, Trial};

use crate::dice::Dice;
use crate::fixture::World;
use crate::laws;

/// A cluster with cards and what happens to it, as a script.
fn script(seed: u64) -> Vec<String> {
    let mut dice = Dice(seed);
    let mut pick = |words: &[&str]| words[dice.roll(words.len() as u64) as usize].to_owned();
    let is_virtual = !seed.is_multiple_of(3);
    let mut lines = vec!["class high 1000".to_owned()];
    if pick(&["", "preempt"]) == "preempt" {
        lines.push("actions enqueue allocate backfill reclaim preempt".to_owned());
        lines.push("off gang enablePreemptable".to_owned());
    }
    lines.push(match is_virtual {
        true => format!(
            "deviceshare VGPUEnable {} {} {} {} {}",
            pick(&["", "AscendMindClusterVNPUEnable"]),
            pick(&["", "AscendHAMiVNPUEnable"]),
            pick(&["", "SchedulePolicy=binpack", "SchedulePolicy=spread"]),
            pick(&["", "ScheduleWeight=3"]),
            pick(&["", "GPUExclusiveRules=[app:x][app:y]"]),
        ),
        false => format!(
            "deviceshare {}",
            pick(&["GPUSharingEnable", "GPUNumberEnable"])
        ),
    });
    for node in 0..3 {
        lines.push(match is_virtual {
            true => format!(
                "node n{node} cpu=16 {} vgpu={}:{}:{} {} {} {}",
                pick(&["", "chips=2:8", "chips=1:10"]),
                pick(&["1", "2", "4"]),
                pick(&["8000", "24576"]),
                pick(&["2", "4"]),
                pick(&["", "model=NVIDIA-A30", "model=NVIDIA-A30 mig"]),
                pick(&["", "", "sick=0"]),
                pick(&[
                    "",
                    "npu=Ascend310P:2:21527:3",
                    "npu=Ascend310P:1:21527:3 npu=Ascend910B3:4:65536:1 network=2",
                    "npu=Ascend310P:2:21527:3 npu-mode=hami-core",
                    "npu=Ascend310P:1:21527:9 npu=Ascend910B3:2:65536:3 npu-mode=hami-core",
                ]),
            ),
            false => format!("node n{node} cpu=16 gpushare={}:8000", pick(&["1", "3"])),
        });
    }
    for at in 0..14 {
        let ask = match is_virtual {
            true => format!(
                "{} vgpu={}:{}:{} {} {} {}",
                pick(&[
                    "",
                    "",
                    "cores=1",
                    "cores=2 level=high",
                    "cores=4 dvpp=yes",
                    "cores=8",
                ]),
                pick(&["1", "1", "2"]),
                pick(&["2000", "6000", "50%"]),
                pick(&["0", "30", "100"]),
                pick(&["", "vgpu=1:3000"]),
                pick(&["", "", "cards-apart", "label=app:x", "use=A30"]),
                pick(&[
                    "",
                    "",
                    "npu=Ascend310P:1:6144:vir02 npu=Ascend310P:1:6144:vir02",
                    "npu=Ascend310P:1:21527",
                    "npu=Ascend910B3:2:65536",
                    "npu-soft=Ascend310P:1:7001:30 npu-soft=Ascend310P:1:5000:0",
                    "npu-soft=Ascend310P:1:100:60",
                    "npu-soft=Ascend310P:1:2000:100 npu-soft=Ascend910B3:1:65536:0:whole",
                ]),
            ),
            false => format!(
                "gpumem={} gpunum={}",
                pick(&["3000", "8000"]),
                pick(&["1", "2"])
            ),
        };
        let gang = format!(
            "gang a/g{at} min={} {} : 2 x cpu=1 {ask}",
            pick(&["1", "2"]),
            pick(&["", "class=high"]),
        );
        let other = pick(&["0", "1", "2", "3", "4", "5"]);
        lines.push(
            match &*pick(&[
                "gang", "gang", "gang", "run", "end", "delete", "release", "refuse", "settle",
            ]) {
                "gang" => gang,
                "delete" => format!("delete a/g{other}-0"),
                "refuse" => format!("refuse a/g{other}-1"),
                verb => format!("{verb} a/g{other}-"),
            },
        );
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
fn no_card_is_given_beyond_what_it_has() {
    let mut given = 0;
    for seed in 0..150 {
        eprintln!("seed {seed}");
        given += grants(&played(seed).tables);
    }
    assert!(given > 400, "only {given} parts of cards were given");
}

#[test]
fn an_npu_is_of_the_kind_that_is_wanted_and_serves_one_container_of_a_pod() {
    let mut given = 0;
    for seed in 0..100 {
        let world = played(seed);
        for (id, task) in world.tables.tasks() {
            let Some(ask) = world.tables.shape_of(id).spec.cards.as_deref() else {
                continue;
            };
            let mut ids = BTreeSet::new();
            let npus = task.grants.iter();
            for grant in npus.filter(|grant| CardFamily::Npu.has(&grant.kind)) {
                let part = &ask.parts[grant.part as usize];
                assert_eq!(part.kind, grant.kind, "seed {seed}: {}", task.key);
                assert!(ids.insert(&grant.card), "seed {seed}: {}", task.key);
                given += 1;
            }
        }
    }
    assert!(given > 40, "only {given} NPUs were given");
}

#[test]
fn npus_are_given_in_the_way_in_which_their_node_divides_them() {
    let (mut soft, mut others) = (0, 0);
    for seed in 0..180 {
        let world = played(seed);
        for (id, task) in world.tables.tasks() {
            let Some(ask) = world.tables.shape_of(id).spec.cards.as_deref() else {
                continue;
            };
            let Some(node) = task.node.map(|node| world.tables.node(node)) else {
                continue;
            };
            let division = node.spec.cards.npu_division;
            let npus = task.grants.iter();
            for grant in npus.filter(|grant| CardFamily::Npu.has(&grant.kind)) {
                let part = &ask.parts[grant.part as usize];
                let is_soft = ask.has_soft_npus();
                assert!(
                    ask.npu_division.accepts(part, division),
                    "seed {seed}: {}",
                    task.key
                );
                let said = (grant.memory, grant.cores);
                assert_eq!(said, (part.memory.of(0), part.cores), "seed {seed}");
                soft += i32::from(is_soft);
                others += i32::from(!is_soft);
            }
        }
    }
    assert!(
        soft > 20 && others > 20,
        "{soft} soft parts, {others} others"
    );
}

#[test]
fn tables_that_are_fed_anew_say_the_same_of_cards() {
    for seed in 0..80 {
        let world = played(seed);
        let mut tables = Tables::new();
        world.rows().iter().for_each(|row| row(&mut tables));
        let cards = |tables: &Tables| {
            let text = describe(tables);
            let lines = text.lines().filter(|line| line.contains(" card "));
            lines.map(str::to_owned).collect::<Vec<String>>()
        };
        let of_pods = |tables: &Tables| grants(tables);
        // A bind that was decided and not carried out is not known to the API.
        if (world.tables.tasks()).all(|(_, task)| task.phase != Phase::Binding) {
            assert_eq!(cards(&tables), cards(&world.tables), "seed {seed}");
            assert_eq!(of_pods(&tables), of_pods(&world.tables), "seed {seed}");
        }
        assert_eq!(check(&tables), [], "seed {seed}");
    }
}

#[test]
fn a_trial_that_is_rewound_gives_cards_back() {
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
            let grant = |part| Grant {
                part,
                card: format!("c{}", seed % 3).into(),
                slice: None,
                memory: 100,
                cores: 1,
                is_whole: seed.is_multiple_of(2),
                ..Grant::default()
            };
            if phase.is_waiting() {
                trial.place_with(task, node, vec![grant(0), grant(1)]);
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
