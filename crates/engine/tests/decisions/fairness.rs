//! Laws of who is served at last, on seeded random clusters. A failure prints its seed.

use engine::{Engine, Settings};
use model::{Phase, Priority, Tables};

use crate::dice::Dice;
use crate::fixture::World;
use crate::laws::{play, script};

/// How many of a gang's tasks have a node.
fn placed(world: &World, name: &str) -> usize {
    let tasks = world.tables.tasks();
    let own = tasks.filter(|(_, task)| task.key.to_string().starts_with(name));
    own.filter(|(_, task)| task.phase.is_allocated()).count()
}

/// Small gangs of one task that fill so many slots come and go for ever, and one large gang waits that would
/// fit alone.
struct Rivals<'a> {
    /// How many small ones run at a time.
    slots: u64,
    /// What a task of them asks for.
    small: &'a str,
    /// What a task of the large one asks for.
    large: &'a str,
    /// How many tasks that has.
    tasks: u64,
    /// What else is said of it.
    words: &'a str,
}

/// I7: once its time is over the large gang starts as soon as those that ran then have ended, each of them
/// once.
fn starts_at_last(world: &mut World, dice: &mut Dice, rivals: &Rivals<'_>) {
    let come = |at: u64| format!("gang a/s{at}x minres=none : 1 x {}", rivals.small);
    let slots = rivals.slots;
    let mut small: Vec<u64> = (0..slots).collect();
    small.iter().for_each(|at| world.perform(&come(*at)));
    world.perform("cycle");
    world.perform("run a/");
    let (tasks, large, words) = (rivals.tasks, rivals.large, rivals.words);
    // Where its tasks differ they are told one by one.
    let large = match large.contains(" x ") {
        true => (*large).to_owned(),
        false => format!("{tasks} x {large}"),
    };
    world.perform(&format!("gang a/big minres=none {words} : {large}"));
    world.perform("cycle");
    world.perform("wait 3601s");
    // Who ends is drawn: until everybody has, who ran then, takes some rounds.
    let rounds = 6 * slots;
    for round in 0..=rounds {
        if placed(world, "a/big-") > 0 {
            break;
        }
        assert!(round < rounds, "{}", world.said);
        world.perform("cycle");
        // One ends and another comes, so that there is never room for more than one of them. Instead of who
        // has not started whoever runs for the longest ends.
        let is_on = |at: &usize| placed(world, &format!("a/s{}x-", small[*at])) > 0;
        let drawn = dice.roll(small.len() as u64) as usize;
        let at = Some(drawn).filter(is_on);
        let at = at.or_else(|| (0..small.len()).find(is_on));
        let at = at.unwrap_or_else(|| panic!("nobody holds the room: {}", world.said));
        let gone = small.remove(at);
        world.perform(&format!("delete a/s{gone}x-"));
        small.push(slots + round);
        world.perform(&come(slots + round));
        world.perform("cycle");
    }
    assert_eq!(placed(world, "a/big-"), tasks as usize);
}

#[test]
fn nobody_is_passed_for_ever() {
    for seed in 0..60 {
        eprintln!("seed {seed}");
        let mut dice = Dice(seed);
        let mut world = World::new();
        let (nodes, cpu) = (1 + dice.roll(4), 2 + dice.roll(3));
        world.perform("argument gang starvation-bound=1h");
        if dice.roll(2) == 0 {
            world.perform("actions enqueue allocate backfill reclaim preempt");
            // Else who has the smaller share drives out who has just started, and so on for ever.
            world.perform("off drf enablePreemptable");
        }
        for node in 0..nodes {
            world.perform(&format!("node n{node} cpu={cpu}"));
        }
        let large = format!("cpu={}", 1 + dice.roll(cpu));
        let rivals = Rivals {
            slots: nodes * cpu,
            small: "cpu=1",
            large: &large,
            tasks: 1 + dice.roll(nodes),
            words: "",
        };
        starts_at_last(&mut world, &mut dice, &rivals);
    }
}

#[test]
fn no_pod_without_a_group_is_passed_for_ever() {
    for seed in 0..60 {
        eprintln!("seed {seed}");
        let mut dice = Dice(seed);
        let mut world = World::new();
        let (nodes, cpu) = (1 + dice.roll(4), 2 + dice.roll(3));
        world.perform("argument gang starvation-bound=1h");
        for node in 0..nodes {
            world.perform(&format!("node n{node} cpu={cpu}"));
        }
        let large = format!("cpu={}", 2 + dice.roll(cpu - 1));
        let rivals = Rivals {
            slots: nodes * cpu,
            small: "cpu=1",
            large: &large,
            tasks: 1,
            words: ["lone", "agent"][usize::from(seed % 2 == 1)],
        };
        starts_at_last(&mut world, &mut dice, &rivals);
    }
}

#[test]
fn nobody_that_must_be_close_together_is_passed_for_ever() {
    for seed in 0..60 {
        eprintln!("seed {seed}");
        let mut dice = Dice(seed);
        let mut world = World::new();
        let (racks, cpu) = (1 + dice.roll(3), 1 + dice.roll(3));
        world.perform("argument gang starvation-bound=1h");
        for rack in 0..racks {
            for node in 0..2 {
                world.perform(&format!("node n{rack}{node} cpu={cpu}"));
            }
            world.perform(&format!("hypernode s{rack} tier=1 nodes=n{rack}0,n{rack}1"));
        }
        let rivals = Rivals {
            slots: racks * 2 * cpu,
            small: "cpu=1",
            large: "cpu=1",
            tasks: 1 + dice.roll(2 * cpu),
            words: "tier=1",
        };
        starts_at_last(&mut world, &mut dice, &rivals);
    }
}

#[test]
fn nobody_is_passed_for_ever_whose_groups_must_each_be_close_together() {
    for seed in 0..200 {
        eprintln!("seed {seed}");
        let mut dice = Dice(seed);
        let mut world = World::new();
        let (racks, cpu) = (1 + dice.roll(3), 1 + dice.roll(3));
        world.perform("argument gang starvation-bound=1h");
        for rack in 0..racks {
            for node in 0..2 {
                world.perform(&format!("node n{rack}{node} cpu={cpu}"));
            }
            world.perform(&format!("hypernode s{rack} tier=1 nodes=n{rack}0,n{rack}1"));
        }
        world.perform("hypernode top tier=2 below-starting=s");
        // Groups of two sizes; of each rack one has all, or one size has several in each.
        let sizes = [1 + dice.roll(2 * cpu), 1 + dice.roll(2 * cpu)];
        let counts = match dice.roll(2) {
            0 => [1 + dice.roll(racks * (2 * cpu / sizes[0])), 0],
            _ => {
                let first = 1 + dice.roll(racks);
                [first, dice.roll(racks - first + 1)]
            }
        };
        let (mut large, mut words) = (Vec::new(), dice.pick(&["", "tier=2"]).to_string());
        for (rule, (size, count)) in ["part", "team"].iter().zip(sizes.into_iter().zip(counts)) {
            words.push_str(&format!(" groups={rule}/{size}/{count}/{rule}/1"));
            let of_group = |at: u64| format!("{size} x cpu=1 label={rule}:p{at}");
            large.extend((0..count).map(of_group));
        }
        let grouped = sizes[0] * counts[0] + sizes[1] * counts[1];
        // Those of none go where there is room beside the groups.
        let loose = dice.roll(racks * 2 * cpu - grouped + 1);
        large.extend((loose > 0).then(|| format!("{loose} x cpu=1")));
        let rivals = Rivals {
            slots: racks * 2 * cpu,
            small: "cpu=1",
            large: &large.join(" + "),
            tasks: grouped + loose,
            words: &words,
        };
        starts_at_last(&mut world, &mut dice, &rivals);
    }
}

#[test]
fn nobody_is_passed_for_ever_for_what_is_not_an_amount() {
    // Host ports, cards of which each task has one, cpus of one NUMA node, and who is at a distance to others.
    for seed in 0..120 {
        eprintln!("seed {seed}");
        let mut dice = Dice(seed);
        let mut world = World::new();
        let nodes = 1 + dice.roll(4);
        let (rules, has, wish) = match seed % 4 {
            0 => ("", "", "cpu=1 port=80"),
            3 => ("", "", "cpu=1 label=x:y apart=x:y"),
            1 => ("deviceshare VGPUEnable", "vgpu=1:8000", "cpu=1 vgpu=1:6000"),
            _ => (
                "numa-aware",
                "numa=2x4 policy=single-numa-node",
                "cpu=3 pin=3 policy=single-numa-node",
            ),
        };
        world.perform(rules);
        world.perform("argument gang starvation-bound=1h");
        for node in 0..nodes {
            world.perform(&format!("node n{node} cpu=8 {has}"));
        }
        let (a_node, tasks) = match seed % 4 {
            2 => (2, 1 + dice.roll(2 * nodes)),
            _ => (1, 1 + dice.roll(nodes)),
        };
        let rivals = Rivals {
            slots: nodes * a_node,
            small: wish,
            large: wish,
            tasks,
            words: "",
        };
        starts_at_last(&mut world, &mut dice, &rivals);
    }
}

#[test]
fn nobody_is_passed_for_ever_whose_tasks_claim_devices_or_volumes_of_their_own() {
    // A device for each task; a free volume that only its node reaches, or an attach slot for one to be made.
    for seed in 0..90 {
        eprintln!("seed {seed}");
        let mut dice = Dice(seed);
        let mut world = World::new();
        world.perform("argument gang starvation-bound=1h");
        let (nodes, a_node) = (1 + dice.roll(3), 1 + dice.roll(2));
        let way = ["claim=1", "finds=local:5", "makes-where-room=fast:5"][seed as usize % 3];
        for node in 0..nodes {
            let devices = (0..a_node).map(|at| format!(" device=g{at}:1"));
            let devices: String = devices.filter(|_| way == "claim=1").collect();
            world.perform(&format!("node n{node} cpu={a_node} {devices}"));
            for volume in 0..2 * a_node {
                world.perform(&format!(
                    "volume v{node}{volume} class=local size=5 on=host:n{node}"
                ));
            }
        }
        world.perform("storage s class=fast largest=9");
        let tasks = 1 + dice.roll(nodes * a_node);
        // Each volume is a claim by itself, which has a name that nobody else names.
        let with_claim = |at: u64| match way {
            "claim=1" => format!("1 x cpu=1 {way}"),
            way => format!("1 x cpu=1 {way}:c{at}"),
        };
        let large: Vec<String> = (0..tasks).map(with_claim).collect();
        let rivals = Rivals {
            slots: nodes * a_node,
            small: if way == "claim=1" {
                "cpu=1 claim=1"
            } else {
                "cpu=1"
            },
            large: &large.join(" + "),
            tasks,
            words: "",
        };
        starts_at_last(&mut world, &mut dice, &rivals);
    }
}

#[test]
fn nobody_is_passed_for_ever_whose_tasks_share_a_claim() {
    // They go to one node, which has the volume; others are everywhere.
    for seed in 0..60 {
        eprintln!("seed {seed}");
        let mut dice = Dice(seed);
        let mut world = World::new();
        world.perform("argument gang starvation-bound=1h");
        let (nodes, cpu) = (1 + dice.roll(3), 2 + dice.roll(3));
        for node in 0..nodes {
            world.perform(&format!("node n{node} cpu={cpu}"));
        }
        let home = dice.roll(nodes);
        world.perform(&format!("volume v class=local size=5 on=host:n{home}"));
        world.perform("storage s class=fast largest=9");
        let way = dice.pick(&["finds=local:5:c0", "makes-where-room=fast:5:c0"]);
        let rivals = Rivals {
            slots: nodes * cpu,
            small: "cpu=1",
            large: &format!("cpu=1 {way}"),
            tasks: 2 + dice.roll(cpu - 1),
            words: "",
        };
        starts_at_last(&mut world, &mut dice, &rivals);
    }
}

#[test]
fn nobody_is_passed_for_ever_who_needs_a_zone_without_others() {
    for seed in 0..60 {
        eprintln!("seed {seed}");
        let mut dice = Dice(seed);
        let mut world = World::new();
        world.perform("argument gang starvation-bound=1h");
        let in_a_zone = 1 + dice.roll(3);
        for node in 0..2 * in_a_zone {
            world.perform(&format!("node n{node} cpu=4 label=zone:z{}", node % 2));
        }
        // Either the large one keeps away from the others, or these from it.
        let (small, large) = match dice.roll(2) {
            0 => ("label=x:small", "label=x:big apart=x:small~key:zone"),
            _ => ("label=x:small apart=x:big~key:zone", "label=x:big"),
        };
        let rivals = Rivals {
            slots: 2 * in_a_zone,
            small: &format!("cpu=3 {small}"),
            large: &format!("cpu=1 {large}"),
            tasks: 1 + dice.roll(in_a_zone),
            words: "",
        };
        starts_at_last(&mut world, &mut dice, &rivals);
    }
}

#[test]
fn nobody_is_passed_for_ever_whose_tasks_must_be_near_one_another_or_spread() {
    for seed in 0..90 {
        eprintln!("seed {seed}");
        let mut dice = Dice(seed);
        let mut world = World::new();
        world.perform("argument gang starvation-bound=1h");
        let in_a_zone = 1 + dice.roll(3);
        for node in 0..2 * in_a_zone {
            world.perform(&format!("node n{node} cpu=4 label=zone:z{}", node % 2));
        }
        // In one zone; as many in one as in the other; or on one node.
        let (large, tasks) = match seed % 3 {
            0 => ("near=x:big~key:zone", 1 + dice.roll(in_a_zone)),
            1 => ("spread=x:big~key:zone~skew:1", 1 + dice.roll(2 * in_a_zone)),
            _ => ("near=x:big~key:host", 1),
        };
        let rivals = Rivals {
            slots: 2 * in_a_zone,
            small: "cpu=3 label=x:small",
            large: &format!("cpu=3 label=x:big {large}"),
            tasks,
            words: "",
        };
        starts_at_last(&mut world, &mut dice, &rivals);
    }
}

#[test]
fn nobody_is_passed_for_ever_in_a_group_of_nodes() {
    // Its queue uses one of two groups of nodes, the small ones both; a limit leaves it all of its group.
    for seed in 0..60 {
        eprintln!("seed {seed}");
        let mut dice = Dice(seed);
        let mut world = World::new();
        world.perform("tiers priority gang / predicates nodegroup nodeorder");
        world.perform("argument gang starvation-bound=1h");
        let (nodes, cpu) = (1 + dice.roll(3), 2 + dice.roll(3));
        for node in 0..nodes {
            world.perform(&format!("node n{node} cpu={cpu} group=g1"));
            world.perform(&format!("node m{node} cpu={cpu} group=g2"));
        }
        world.perform("queue default groups=g1,g2");
        let limit = dice.pick(&["", "at-most=g1:cpu:100"]);
        world.perform(&format!("queue q groups=g1 {limit}"));
        let rivals = Rivals {
            slots: 2 * nodes * cpu,
            small: "cpu=1",
            large: &format!("cpu={cpu}"),
            tasks: 1 + dice.roll(nodes),
            words: "queue=q",
        };
        starts_at_last(&mut world, &mut dice, &rivals);
    }
}

#[test]
fn who_fits_alone_is_placed_once_it_is_alone() {
    let mut seen = 0;
    for seed in 0..150 {
        let mut world = World::new();
        let lines = script(seed);
        lines.iter().for_each(|line| play(&mut world, line));
        let waiting: Vec<String> = (world.tables.gangs())
            .filter(|(_, gang)| gang.known && gang.count(Phase::Pending) > 0)
            .filter(|(_, gang)| gang.settled() == 0 && gang.count(Phase::Failed) == 0)
            .map(|(_, gang)| gang.spec.key.name.to_string())
            .filter(|name| {
                let touched = |line: &String| line.contains(&format!(" a/{name}-"));
                // Of one that was evicted there are fewer tasks than alone: nobody makes them anew.
                let pods = format!("a/{name}-");
                let told = |line: &str| line.starts_with(&pods) && line.contains(" is evicted ");
                !lines.iter().any(touched) && !world.said.lines().any(told)
            })
            .collect();
        for name in waiting.into_iter().take(2) {
            // The same gang, alone from the start.
            let is_ours = |line: &String| {
                !line.starts_with("gang ") || line.starts_with(&format!("gang a/{name} "))
            };
            let is_rule = |line: &String| {
                ["node", "queue", "class", "actions", "off", "gang"]
                    .iter()
                    .any(|word| line.starts_with(word))
            };
            let mut alone = World::new();
            for line in lines.iter().filter(|line| is_ours(line) && is_rule(line)) {
                alone.perform(line);
            }
            alone.perform("cycle");
            let mut world = World::new();
            lines.iter().for_each(|line| play(&mut world, line));
            let others: Vec<String> = (world.tables.gangs())
                .filter(|(_, gang)| *gang.spec.key.name != *name)
                .map(|(_, gang)| gang.spec.key.to_string())
                .collect();
            for other in others {
                world.perform(&format!("delete {other}-"));
                world.perform(&format!("drop gang {other}"));
            }
            world.perform("wait 5s");
            world.perform("cycle");
            let prefix = format!("a/{name}-");
            seen += usize::from(placed(&alone, &prefix) > 0);
            assert!(
                placed(&world, &prefix) >= placed(&alone, &prefix),
                "seed {seed}: {name}\n{}",
                world.said
            );
        }
    }
    assert!(seen > 20, "only {seen} waited that fit alone");
}

#[test]
fn who_starts_from_nothing_finds_nothing_to_do_at_rest() {
    // I19, incremental equals from scratch: an engine that has seen nothing of what happened, with tables
    // that are fed what there is now, places nobody and evicts nobody where ours is at rest.
    let mut kept = 0;
    for seed in 0..300 {
        let mut world = World::new();
        eprintln!("seed {seed}");
        let mut lines = script(seed);
        // What was decided and not carried out is no row either.
        lines.retain(|line| line != "cycle once" && !line.starts_with("refuse"));
        lines.iter().for_each(|line| play(&mut world, line));
        world.perform("wait 5s");
        world.perform("cycle");
        let mut tables = Tables::new();
        tables.put_priority(Priority {
            name: "high".into(),
            value: 1000,
            global_default: false,
        });
        world.rows().iter().for_each(|row| row(&mut tables));
        let settings: Settings = world.engine.settings().clone();
        let mut engine = Engine::new(settings).expect("known actions").0;
        let plan = engine.cycle(&mut tables, world.now);
        let placed: Vec<_> = plan
            .places
            .iter()
            .map(|row| &tables.task(row.task).key)
            .collect();
        assert_eq!(
            placed,
            Vec::<&model::Key>::new(),
            "seed {seed} {lines:#?}\n{}",
            world.said
        );
        assert_eq!(plan.evictions, [], "seed {seed}\n{}", world.said);
        assert_eq!(promises(&tables), promises(&world.tables), "seed {seed}");
        kept += promises(&tables).len();
    }
    assert!(kept > 0, "somebody is promised room");
}

/// Who is promised room where.
fn promises(tables: &Tables) -> Vec<String> {
    let promised = tables
        .tasks()
        .filter(|(_, task)| task.phase == Phase::Pipelined);
    let lines = promised.filter_map(|(_, task)| {
        Some(format!(
            "{} on {}",
            task.key,
            tables.node(task.node?).spec.name
        ))
    });
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines
}
