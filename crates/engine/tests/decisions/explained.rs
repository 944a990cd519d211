//! What an explanation promises, tried on seeded random clusters. A failure prints its seed.

use std::collections::BTreeMap;

use checker::{check, digest};
use engine::{Engine, Fix, Remedy};
use model::{GangId, GangPhase, Key, Kind, Verdict};

use crate::dice::Dice;
use crate::fixture::World;
use crate::told::as_told;

/// A cluster that is short of everything in turn, as a script.
fn script(seed: u64) -> Vec<String> {
    let mut dice = Dice(seed);
    // In every fourth cluster what volumes allow is short.
    let of_volumes = seed % 4 == 3;
    let limit = if of_volumes { "limit=csi:2" } else { "" };
    let mut lines = vec!["class high 1000".to_owned()];
    match dice.roll(4) {
        0 => lines.push("actions enqueue allocate backfill reclaim preempt".to_owned()),
        1 => lines
            .push("tiers priority gang conformance / drf predicates capacity nodeorder".to_owned()),
        _ => {}
    }
    lines.push(format!("queue gold weight=2 cap=cpu:{}", 2 + dice.roll(9)));
    lines.push(format!(
        "queue iron parent=gold cap=cpu:{}",
        1 + dice.roll(6)
    ));
    lines.push("queue shut state=Closed".to_owned());
    for node in 0..1 + dice.roll(6) {
        let extra = dice.pick(&[
            "",
            "label=zone:b",
            "taint=k:v:NoSchedule",
            "label=zone:a",
            "pods=3",
            "cordoned",
        ]);
        let cores = 1 + dice.roll(8);
        lines.push(format!("node n{node} cpu={cores} mem=8Gi {extra} {limit}"));
    }
    for at in 0..6 + dice.roll(12) {
        lines.push(gang(&mut dice, at, of_volumes));
        if dice.roll(3) > 0 {
            lines.push("cycle".to_owned());
        }
        if dice.roll(3) == 0 {
            lines.push(format!("run a/g{}-", dice.roll(at + 1)));
        }
    }
    lines.extend(["cycle", "wait 5s", "cycle"].map(str::to_owned));
    lines
}

fn gang(dice: &mut Dice, at: u64, of_volumes: bool) -> String {
    let queue = dice.pick(&["default", "default", "gold", "iron", "shut", "gone"]);
    let class = dice.pick(&["", "", "class=high"]);
    let count = 1 + dice.roll(5);
    let min = 1 + dice.roll(count);
    let wish = dice.pick(&[
        "",
        "",
        "",
        "tolerate=k",
        "select=zone:a",
        "port=80",
        "gated",
        "port=80",
        "port=80",
        "label=x:y apart=x:y",
        "label=x:y",
        "near=x:z",
        "label=s:t spread=s:t~key:zone",
        "label=s:t spread=s:t~key:zone",
        "claim-missing=c",
        "claim-unbound=c",
        "finds=local:5",
    ]);
    let wish = match of_volumes {
        true => dice.pick(&[
            "",
            "alone=c",
            "alone=c",
            "alone=c",
            "alone=d",
            "alone=d",
            "alone=e",
            "alone=e",
            "makes=csi:1",
            "makes=csi:1",
            "makes=csi:2",
            "shares=csi:s",
            "volume=csi:v",
            "volume=csi:w",
        ]),
        false => wish,
    };
    let minres = dice.pick(&["", "minres=none", "minres=none"]);
    let cpu = 1 + dice.roll(4);
    format!(
        "gang a/g{at} queue={queue} min={min} {class} {minres} : {count} x cpu={cpu} mem=1Gi {wish}"
    )
}

fn world(seed: u64) -> World {
    let mut world = World::new();
    for line in script(seed) {
        let target = line.strip_prefix("run ");
        if target.is_none_or(|prefix| world.has_pod_on_a_node(prefix)) {
            world.perform(&line);
        }
    }
    world
}

pub fn waiting(world: &World) -> Vec<GangId> {
    let gangs = world.tables.gangs().filter(|(_, gang)| gang.known);
    gangs
        .filter(|(_, gang)| matches!(gang.said, Verdict::Waits(_)))
        .map(|(id, _)| id)
        .collect()
}

/// Applies the fix to the unchanged state and decides as the engine does; by other settings as one that
/// begins. One that has started is helped only by what brings it more.
pub fn admits(world: &World, gang: GangId, fix: &Fix) -> bool {
    let mut tables = world.tables.clone();
    for change in &fix.changes {
        change.apply(&mut tables);
    }
    let mut engine = world.engine.clone();
    if let Some(settings) = &fix.settings {
        let (other, _) = Engine::new((**settings).clone()).expect("the actions are known");
        engine = other;
        let gangs: Vec<GangId> = tables.gangs().map(|(id, _)| id).collect();
        gangs.into_iter().for_each(|gang| tables.mark_gang(gang));
    }
    engine.cycle(&mut tables, fix.at.unwrap_or(world.now));
    let row = tables.gang(gang);
    match fix.only_enters {
        true => {
            let was = world.tables.gang(gang).phase();
            was == GangPhase::Pending && row.phase() != GangPhase::Pending
        }
        false => {
            let ready = tables.ready(gang);
            ready >= row.spec.min_member && ready > world.tables.ready(gang)
        }
    }
}

/// The remedy's name.
pub fn word_of(fix: &Fix) -> String {
    let named = format!("{:?}", fix.remedy);
    let word = named.split([' ', '{']).next();
    word.unwrap_or_default().to_owned()
}

#[test]
fn who_has_the_devices_of_a_queue_is_told_and_by_how_much_to_raise_its_ceiling() {
    let mut world = World::new();
    for line in [
        "tiers priority gang conformance / predicates capacity nodeorder",
        "node n1 cpu=8",
        "queue q cap=deviceclass/gpu:3",
        "gang a/x queue=q : 1 x cpu=1 counts=gpu:2",
        "gang a/y queue=q : 2 x cpu=1 counts=c1/gpu:2",
        "cycle",
    ] {
        world.perform(line);
    }
    let gang = world.tables.gang_keyed(&Key::new("a", "y"));
    let gang = gang.expect("it is there");
    let found = engine::explain(&world.engine, &mut world.tables, gang, world.now);
    let holders = found.holders.iter();
    let holders: Vec<String> = holders
        .map(|it| format!("{} holds {}", it.who, it.holds))
        .collect();
    assert_eq!(holders, ["a/x holds 2 deviceclass/gpu"]);
    let raised = found.fixes.iter().find_map(|fix| match &fix.remedy {
        Remedy::RaiseQueue { by, .. } => Some(by[0].to_string()),
        _ => None,
    });
    assert_eq!(raised.as_deref(), Some("1 deviceclass/gpu"));
}

/// What helps a gang that has started brings it one more task, whatever it waits for.
#[test]
fn a_gang_that_has_started_is_told_what_starts_the_next_of_its_tasks() {
    for (nodes, queue, remedy) in [
        (8, "queue q cap=cpu:2", "RaiseQueue"),
        (1, "queue q", "AddNodes"),
        (1, "queue q", "EndTasks"),
    ] {
        let mut world = World::new();
        world.perform("tiers priority gang conformance / predicates capacity nodeorder");
        for node in 0..nodes {
            world.perform(&format!("node n{node} cpu=2"));
        }
        let gang = "gang a/g queue=q min=1 : 5 x cpu=2";
        let lines: &[&str] = match remedy {
            "EndTasks" => &["node m0 cpu=2", "node m1 cpu=2", "gang a/b : 2 x cpu=2"],
            _ => &[],
        };
        let then = [queue, "cycle", gang, "cycle", "run a/g-"];
        for line in lines.iter().chain(&then) {
            world.perform(line);
        }
        if remedy == "EndTasks" {
            world.perform("run a/b-");
        }
        let gang = world.tables.gang_keyed(&Key::new("a", "g"));
        let gang = gang.expect("it is there");
        let found = engine::explain(&world.engine, &mut world.tables, gang, world.now);
        assert!(found.is_whole, "{found:?}");
        let fix = found.fixes.iter().find(|fix| word_of(fix) == remedy);
        let count = match &fix.expect("it helps").remedy {
            Remedy::RaiseQueue { by, .. } => by[0].to_string(),
            Remedy::AddNodes { count, .. } => count.to_string(),
            Remedy::EndTasks { tasks } => tasks.len().to_string(),
            other => panic!("another one: {other:?}"),
        };
        let least = match remedy {
            "RaiseQueue" => "2 cpu",
            _ => "1",
        };
        assert_eq!(count, least, "{remedy}");
    }
}

#[test]
fn who_is_in_the_way_of_a_rule_may_end() {
    for (there, wish) in [
        ("port=80", "port=80"),
        ("label=x:y", "apart=x:y"),
        ("label=x:z apart=x:y", "label=x:y"),
        ("alone=data", "alone=data"),
        ("volume=csi:v", "volume=csi:w"),
        ("makes=csi:1", "volume=csi:w"),
        ("volume=csi:v", "makes=csi:1"),
    ] {
        let mut world = World::new();
        let old = format!("gang a/old : 1 x cpu=1 {there}");
        let new = format!("gang a/new : 1 x cpu=1 {wish}");
        for line in [
            "node n1 cpu=8 limit=csi:1",
            &old,
            "cycle",
            "run a/old-",
            &new,
            "cycle",
        ] {
            world.perform(line);
        }
        let gang = world.tables.gang_keyed(&Key::new("a", "new"));
        let gang = gang.expect("it is there");
        let found = engine::explain(&world.engine, &mut world.tables, gang, world.now);
        let ended = found.fixes.iter().find_map(|fix| match &fix.remedy {
            Remedy::EndTasks { tasks } => Some(tasks.clone()),
            _ => None,
        });
        assert_eq!(
            ended,
            Some(vec![Key::new("a", "old-0")]),
            "{wish}: {found:?}"
        );
    }
}

#[test]
fn a_stated_fix_admits_the_gang() {
    let mut tried: BTreeMap<String, u32> = BTreeMap::new();
    let mut of_volumes = [0, 0];
    let mut explained = 0;
    for seed in 0..260 {
        let mut world = world(seed);
        for gang in waiting(&world) {
            let found = engine::explain(&world.engine, &mut world.tables, gang, world.now);
            explained += 1;
            for fix in &found.fixes {
                assert!(
                    admits(&world, gang, fix),
                    "seed {seed}: {:?} does not help {}, which waits for {:?}",
                    fix.remedy,
                    world.tables.gang(gang).spec.key,
                    found.reason
                );
                *tried.entry(word_of(fix)).or_default() += 1;
                for (times, word) in of_volumes.iter_mut().zip(["VolumeInUse", "VolumeLimit"]) {
                    let is_about = format!("{:?}", found.reason).contains(word);
                    let ends = matches!(fix.remedy, Remedy::EndTasks { .. });
                    *times += u32::from(is_about && ends);
                }
            }
        }
    }
    eprintln!("{explained} explained: {tried:?}, of volumes {of_volumes:?}");
    assert!(of_volumes.iter().all(|times| *times > 5), "{of_volumes:?}");
    for remedy in [
        "AddNodes",
        "BindClaim",
        "DropPodAffinity",
        "DropPorts",
        "DropSelector",
        "DropSpread",
        "EndTasks",
        "LowerMinimum",
        "OpenQueue",
        "RaiseQueue",
        "ReachVolumes",
        "Uncordon",
        "Ungate",
        "Untaint",
    ] {
        let times = tried.get(remedy).copied().unwrap_or_default();
        assert!(times > 5, "{remedy} was stated {times} times");
    }
}

/// A cluster that is short of memory, of which nothing is a whole number of anything.
fn short_of_memory(seed: u64) -> Vec<String> {
    let mut dice = Dice(seed);
    let plugin = dice.pick(&["proportion", "capacity"]);
    let bytes = |dice: &mut Dice| 200_000_000 + dice.roll(4_000_000_000);
    let mut lines = vec![
        format!("tiers priority gang / predicates {plugin} resourcequota nodeorder"),
        format!("queue q cap=mem:{}", bytes(&mut dice)),
        format!("queue r deserved=mem:{}", bytes(&mut dice)),
    ];
    let hard = bytes(&mut dice) * 2;
    let hard = match dice.roll(3) {
        0 => format!("mem:{hard}"),
        1 => format!("requests.mem:{hard}"),
        _ => format!("requests.mem:{hard},mem:{}", hard + dice.roll(300_000_000)),
    };
    lines.push(format!("quota a/quota hard={hard}"));
    lines.push("node n1 cpu=64 mem=64Gi".to_owned());
    for at in 0..6 {
        let count = 1 + dice.roll(3);
        let queue = dice.pick(&["q", "r", "default"]);
        let minres = dice.pick(&["", "minres=none"]);
        let each = bytes(&mut dice) / count;
        lines.push(format!(
            "gang a/g{at} queue={queue} min={count} {minres} : {count} x mem={each}"
        ));
        lines.push("cycle".to_owned());
    }
    lines
}

/// A tree of queues that allow too little, or are closed.
fn short_of_queues(seed: u64) -> Vec<String> {
    let mut dice = Dice(seed);
    let mut lines = match dice.roll(3) {
        0 => vec!["tiers priority gang / predicates proportion nodeorder".to_owned()],
        1 => vec!["tiers priority gang / predicates capacity nodeorder".to_owned()],
        _ => vec![
            "tiers priority gang / predicates capacity nodeorder".to_owned(),
            "on capacity enableHierarchy".to_owned(),
        ],
    };
    lines.push("queue root".to_owned());
    let mut deep = "root".to_owned();
    for at in 0..3 {
        let cap = match dice.roll(3) {
            0 => String::new(),
            _ => format!("cap=cpu:{}", 9 - 2 * at),
        };
        let deserved = match dice.roll(2) {
            0 => String::new(),
            _ => format!("deserved=cpu:{}", 7 - 2 * at),
        };
        let state = match seed % 3 {
            0 => dice.pick(&["", "state=Closed", "state=Closing"]),
            _ => "",
        };
        lines.push(format!(
            "queue q{at} parent={deep} {cap} {deserved} {state}"
        ));
        deep = format!("q{at}");
    }
    lines.push("queue side parent=q1 cap=cpu:2 deserved=cpu:1".to_owned());
    lines.push("node n1 cpu=40 mem=64Gi".to_owned());
    for at in 0..4 {
        let queue = dice.pick(&["q2", "q2", "side"]);
        let minres = dice.pick(&["", "minres=none"]);
        let cpu = 1 + dice.roll(5);
        lines.push(format!(
            "gang a/g{at} queue={queue} {minres} : 1 x cpu={cpu}"
        ));
        lines.push("cycle".to_owned());
    }
    lines
}

#[test]
fn the_words_of_a_remedy_admit_the_gang_and_the_api_takes_them() {
    let mut tried: BTreeMap<String, u32> = BTreeMap::new();
    let scripts = (0..120).map(|seed| (seed, short_of_memory(seed)));
    let scripts = scripts.chain((0..150).map(|seed| (seed, short_of_queues(seed))));
    for (seed, script) in scripts {
        let mut world = World::new();
        script.iter().for_each(|line| world.perform(line));
        for gang in waiting(&world) {
            let found = engine::explain(&world.engine, &mut world.tables, gang, world.now);
            for fix in &found.fixes {
                let Some(changes) = as_told(&world, &fix.remedy) else {
                    continue;
                };
                let changes = changes.unwrap_or_else(|why| {
                    panic!(
                        "seed {seed}: {:?} is refused: {why}\n{script:#?}",
                        fix.remedy
                    )
                });
                let told = Fix {
                    changes,
                    ..fix.clone()
                };
                assert!(
                    admits(&world, gang, &told),
                    "seed {seed}: {:?} does not help as it is told\n{script:#?}",
                    fix.remedy
                );
                let parts = match &fix.remedy {
                    Remedy::OpenQueue { above, .. } => above.len(),
                    Remedy::RaiseQueue { above, .. } => above.len(),
                    Remedy::RaiseQuota { by, .. } => by.len() - 1,
                    _ => 0,
                };
                let more = if parts > 0 { " and more" } else { "" };
                let word = format!("{}{more}", word_of(fix));
                *tried.entry(word).or_default() += 1;
            }
        }
    }
    for remedy in [
        "OpenQueue",
        "OpenQueue and more",
        "RaiseQueue",
        "RaiseQueue and more",
        "RaiseQuota",
        "RaiseQuota and more",
    ] {
        let times = tried.get(remedy).copied().unwrap_or_default();
        assert!(times > 5, "{remedy} was stated {times} times: {tried:?}");
    }
}

#[test]
fn an_explanation_leaves_the_tables_and_what_follows_as_they_were() {
    for seed in 0..60 {
        let mut world = world(seed);
        let untouched = world.tables.clone();
        let before = (
            digest(&untouched),
            untouched.tick(),
            untouched.news().clone(),
        );
        for gang in waiting(&world) {
            engine::explain(&world.engine, &mut world.tables, gang, world.now);
        }
        let tables = &world.tables;
        let after = (digest(tables), tables.tick(), tables.news().clone());
        assert_eq!(before, after, "seed {seed}");
        assert_eq!(check(tables), [], "seed {seed}");
        // Whatever comes next is decided as if nobody had asked.
        let decide = |mut tables: model::Tables| {
            let mut engine = world.engine.clone();
            for at in 0..3 {
                let cordoned: Vec<_> = tables.nodes().map(|(_, node)| node.spec.clone()).collect();
                for mut node in cordoned {
                    node.unschedulable = false;
                    node.allocatable.set(Kind::CPU, 4_000 + at * 1_000);
                    tables.put_node(node);
                }
                engine.cycle(&mut tables, world.now.plus_millis(at));
            }
            digest(&tables)
        };
        assert_eq!(decide(untouched), decide(tables.clone()), "seed {seed}");
    }
}
