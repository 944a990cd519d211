//! What an explanation promises where cards, devices, cpus of one's own, groups of nodes, zones, measured
//! use, the tree of queues or patience keep a gang waiting. A failure prints its seed.

use std::collections::BTreeMap;

use checker::{check, digest};

use crate::dice::Dice;
use crate::explained::{admits, waiting, word_of};
use crate::laws;

/// What is short in a cluster, and how a gang asks for it.
pub struct Theme {
    /// What comes before the nodes.
    pub rules: fn(&mut Dice) -> Vec<String>,
    /// What is added to a node of this number.
    pub node: fn(&mut Dice, u64) -> String,
    /// What is added to a gang's line, and what its tasks ask for.
    pub gang: fn(&mut Dice) -> (String, String),
}

pub const THEMES: [Theme; 11] = [
    VIRTUAL_CARDS,
    CARDS_APART,
    SHARED_CARDS,
    NPUS,
    DEVICES,
    PICKY_CLAIMS,
    NUMA,
    GROUPS,
    ZONES,
    USAGE,
    TREE,
];

fn one(text: &str) -> Vec<String> {
    vec![text.to_owned()]
}

const VIRTUAL_CARDS: Theme = Theme {
    rules: |_| one("deviceshare VGPUEnable"),
    node: |dice, _| {
        let cards = dice.pick(&["vgpu=1:16000:3", "vgpu=2:16000:3", "vgpu=2:24576:9 mig"]);
        let model = dice.pick(&["model=NVIDIA-A30", "model=NVIDIA-T4"]);
        format!("{cards} {model}")
    },
    gang: |dice| {
        let parts = dice.pick(&[
            "1:4000",
            "1:6000",
            "1:12000",
            "2:3000",
            "1:2000:100",
            "1:9000:60",
        ]);
        let wish = dice.pick(&[
            "",
            "",
            "",
            "use=T4",
            "nouse=T4",
            "use=H100",
            "use-id=n9-0",
            "card-mode=mig",
            "cards-apart",
        ]);
        (String::new(), format!("vgpu={parts} {wish}"))
    },
};

const CARDS_APART: Theme = Theme {
    rules: |_| one("deviceshare VGPUEnable"),
    node: |_, _| "vgpu=1:16000:9".to_owned(),
    gang: |dice| {
        let apart = dice.pick(&["", "cards-apart", "cards-apart"]);
        (String::new(), format!("vgpu=1:2000 {apart}"))
    },
};

const SHARED_CARDS: Theme = Theme {
    rules: |dice| {
        let way = dice.pick(&["GPUSharingEnable", "GPUNumberEnable"]);
        one(&format!("deviceshare {way}"))
    },
    node: |dice, _| {
        dice.pick(&["gpushare=1:8000", "gpushare=3:8000"])
            .to_owned()
    },
    gang: |dice| {
        let memory = dice.pick(&["3000", "5000", "8000"]);
        let number = dice.pick(&["1", "1", "2"]);
        (String::new(), format!("gpumem={memory} gpunum={number}"))
    },
};

const NPUS: Theme = Theme {
    rules: |_| one("deviceshare AscendHAMiVNPUEnable"),
    node: |dice, _| {
        let npus = dice.pick(&["npu=Ascend310P:1:21527:7", "npu=Ascend310P:2:21527:2"]);
        let mode = dice.pick(&["", "", "npu-mode=hami-core"]);
        format!("{npus} {mode}")
    },
    gang: |dice| {
        let part = dice.pick(&[
            "npu=Ascend310P:1:6144:vir02",
            "npu=Ascend310P:1:12288:vir04",
            "npu=Ascend310P:1:21527",
            "npu-soft=Ascend310P:1:5000:40",
        ]);
        (String::new(), part.to_owned())
    },
};

const DEVICES: Theme = Theme {
    rules: |_| Vec::new(),
    node: |dice, _| {
        let mut line = "counter=slots/3".to_owned();
        for device in 0..3 {
            let kind = dice.pick(&["1", "2", "1,2"]);
            let board = dice.pick(&["a", "b"]);
            let mark = dice.pick(&["", "", "", "sick", "held"]);
            let draws = dice.pick(&["", "slots/1", "slots/2"]);
            line.push_str(&format!(
                " device=g{device}:{kind}:board/{board}:{mark}:{draws}"
            ));
        }
        if dice.roll(2) == 0 {
            line.push_str(" device=p:3:board/a:parts::m/8");
        }
        if dice.roll(3) == 0 {
            line.push_str(" device=x0:1:board/a:shared device=x1:2:board/b:shared");
        }
        line
    },
    gang: |dice| {
        let claim = dice.pick(&[
            "1",
            "1:1",
            "1:2",
            "2~board",
            "3~board",
            "2:1~!board",
            "3~!board",
            "1:3:m/3",
            "1:3:m/5",
        ]);
        (String::new(), format!("claim={claim}"))
    },
};

/// Devices are there, but not such as claims want.
const PICKY_CLAIMS: Theme = Theme {
    rules: |_| Vec::new(),
    node: |dice, _| {
        let mark = dice.pick(&["sick", "sick", ""]);
        format!("device=g0:1:board/a device=g1:1:board/b device=g2:2::{mark}")
    },
    gang: |dice| {
        let claim = dice.pick(&["2:1~board", "2:1~!board", "1:2", "1:1"]);
        (String::new(), format!("claim={claim}"))
    },
};

const NUMA: Theme = Theme {
    rules: |_| one("numa-aware"),
    node: |dice, _| {
        let size = dice.pick(&["1x8", "2x4", "2x4", "4x2"]);
        let policy = dice.pick(&[
            "best-effort",
            "restricted",
            "single-numa-node",
            "single-numa-node",
        ]);
        format!("numa={size} policy={policy}")
    },
    gang: |dice| {
        let cpus = dice.pick(&["1", "2", "3", "4", "5"]);
        let policy = dice.pick(&[
            "",
            "policy=single-numa-node",
            "policy=restricted",
            "policy=best-effort",
        ]);
        (String::new(), format!("cpu={cpus} pin={cpus} {policy}"))
    },
};

const GROUPS: Theme = Theme {
    rules: |dice| {
        let mut lines = one("tiers priority gang / predicates nodegroup");
        for queue in ["default", "gold", "iron"] {
            let uses = dice.pick(&[
                "groups=g1",
                "groups=g1,g2",
                "groups=g2 never=g1",
                "likes=g1 avoids=g2",
            ]);
            let most = dice.pick(&[
                "",
                "at-most=g1:cpu:3",
                "at-most=g1:cpu:2 at-most=g2:cpu:4",
                "at-most=nonsense",
            ]);
            lines.push(format!("queue {queue} {uses} {most}"));
        }
        lines
    },
    node: |dice, _| {
        dice.pick(&["group=g1", "group=g1", "group=g2", ""])
            .to_owned()
    },
    gang: |dice| {
        let queue = dice.pick(&["default", "gold", "iron"]);
        (format!("queue={queue}"), String::new())
    },
};

const ZONES: Theme = Theme {
    rules: |dice| {
        let mut lines = one("tiers priority gang / tdm predicates nodeorder");
        lines.push("actions enqueue allocate".to_owned());
        let window = dice.pick(&["00:00-02:00", "02:00-06:00", "23:00-01:00"]);
        lines.push(format!("argument tdm tdm.revocable-zone.z={window}"));
        lines.push("argument tdm tdm.revocable-zone.y=03:00-04:00".to_owned());
        lines
    },
    node: |dice, _| {
        let zone = dice.pick(&["z", "z", "y", "x", ""]);
        match zone {
            "" => String::new(),
            zone => format!("label=volcano.sh/revocable-zone:{zone}"),
        }
    },
    gang: |dice| (String::new(), dice.pick(&["revocable", ""]).to_owned()),
};

const USAGE: Theme = Theme {
    rules: |_| {
        let mut lines = one("tiers priority gang / usage predicates");
        lines.push("argument usage thresholds>cpu=60".to_owned());
        lines
    },
    node: |_, _| String::new(),
    gang: |_| (String::new(), String::new()),
};

const TREE: Theme = Theme {
    rules: |dice| {
        let mut lines = one("tiers priority gang / predicates capacity");
        lines.push("on capacity enableHierarchy".to_owned());
        lines.push("queue root".to_owned());
        lines.push("queue default parent=root".to_owned());
        lines.push("queue gold parent=root".to_owned());
        lines.push(format!(
            "queue leaf parent=gold cap=cpu:{}",
            1 + dice.roll(6)
        ));
        let parent = dice.pick(&["missing", "missing", "root"]);
        lines.push(format!("queue iron parent={parent}"));
        lines
    },
    node: |_, _| String::new(),
    gang: |dice| {
        let queue = dice.pick(&["default", "gold", "leaf", "iron"]);
        let groups = dice.pick(&["", "", "groups=part/2/1/part", "groups=part/2/2/part"]);
        (format!("queue={queue} {groups}"), "label=part:x".to_owned())
    },
};

/// A cluster that is short of what the theme is about, as a script.
fn script(seed: u64) -> Vec<String> {
    let theme = &THEMES[usize::try_from(seed).expect("small") % THEMES.len()];
    script_of(theme, seed)
}

/// The same, of a theme.
pub fn script_of(theme: &Theme, seed: u64) -> Vec<String> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 5);
    let mut lines = vec!["class high 1000".to_owned()];
    lines.extend((theme.rules)(&mut dice));
    // In some clusters room is kept for whoever has waited for long.
    let has_patience = dice.roll(3) > 0;
    if !has_patience {
        lines.push("argument gang starvation-bound=1h".to_owned());
    }
    for node in 0..1 + dice.roll(4) {
        let cores = 2 + dice.roll(7);
        let more = (theme.node)(&mut dice, node);
        lines.push(format!("node n{node} cpu={cores} mem=8Gi {more}"));
        if dice.roll(2) == 0 {
            let (cpu, memory) = (dice.roll(101), dice.roll(101));
            lines.push(format!("measured n{node} cpu={cpu} mem={memory}"));
        }
    }
    for at in 0..5 + dice.roll(7) {
        let count = 1 + dice.roll(3);
        let min = match dice.roll(2) {
            0 => count,
            _ => 1 + dice.roll(count),
        };
        let class = dice.pick(&["", "", "class=high"]);
        let (head, asks) = (theme.gang)(&mut dice);
        let cpu = match asks.contains("cpu=") {
            true => String::new(),
            false => format!("cpu={}", 1 + dice.roll(3)),
        };
        // A sub-group has a colon of its own in its tasks' labels, so the tasks follow " : ".
        lines.push(format!(
            "gang a/g{at} min={min} {class} {head} minres=none : {count} x mem=1Gi {cpu} {asks}"
        ));
        if dice.roll(3) > 0 {
            lines.push("cycle".to_owned());
        }
        if dice.roll(2) == 0 {
            lines.push(format!("run a/g{}-", dice.roll(at + 1)));
        }
        if dice.roll(5) == 0 {
            lines.push(format!("release a/g{}-0", dice.roll(at + 1)));
        }
    }
    let pause = match has_patience {
        true => "wait 5s",
        false => "wait 3700s",
    };
    lines.extend(["cycle", pause, "cycle", "wait 2s", "cycle"].map(str::to_owned));
    lines
}

/// What others hold, as reasons have it.
const SHORT: [&str; 7] = [
    "Cards { family: Shared, why: Taken }",
    "Cards { family: Virtual, why: Taken }",
    "Cards { family: Npu, why: Taken }",
    "Devices { why: Taken }",
    "Numa { why: Taken",
    "NodeGroupFull",
    "WaitsForDrain",
];

#[test]
fn a_stated_fix_admits_the_gang_whatever_is_short() {
    let mut tried: BTreeMap<String, u32> = BTreeMap::new();
    let mut ended: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..990 {
        let mut world = laws::played(script(seed));
        for gang in waiting(&world) {
            let found = engine::explain(&world.engine, &mut world.tables, gang, world.now);
            for fix in &found.fixes {
                assert!(
                    admits(&world, gang, fix),
                    "seed {seed}: {:?} does not help {}, which waits for {:?}\n{}",
                    fix.remedy,
                    world.tables.gang(gang).spec.key,
                    found.reason,
                    script(seed).join("\n")
                );
                let word = word_of(fix);
                if word == "EndTasks" {
                    let of = format!("{:?}", found.reason);
                    for kind in SHORT {
                        *ended.entry(kind).or_default() += u32::from(of.contains(kind));
                    }
                }
                *tried.entry(word).or_default() += 1;
            }
        }
    }
    eprintln!("{tried:?}, of those who end {ended:?}");
    for remedy in [
        "AddNodes",
        "AwaitZone",
        "BearDeviceTaints",
        "BearLending",
        "DropCardIds",
        "DropCardModels",
        "DropCardMode",
        "DropCardsApart",
        "DropDeviceRules",
        "DropGroupLimits",
        "DropNumaPolicy",
        "EndTasks",
        "HangQueue",
        "JoinGroup",
        "LeaveZone",
        "LowerGroups",
        "LowerMinimum",
        "MoveToQueue",
        "RaiseGroupLimit",
        "RaiseThreshold",
        "ShrinkGroups",
        "UseGroup",
    ] {
        let times = tried.get(remedy).copied().unwrap_or_default();
        assert!(times > 2, "{remedy} was stated {times} times");
    }
    for (kind, times) in ended {
        assert!(
            times > 10,
            "of {kind} the end of tasks was stated {times} times"
        );
    }
}

#[test]
fn a_question_leaves_the_tables_as_they_were_whatever_is_short() {
    for seed in 0..180 {
        let mut world = laws::played(script(seed));
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
            for at in 1..4 {
                engine.cycle(&mut tables, world.now.plus_millis(at * 3_600_000));
            }
            digest(&tables)
        };
        assert_eq!(decide(untouched), decide(tables.clone()), "seed {seed}");
    }
}
