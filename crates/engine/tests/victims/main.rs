//! Victims beside a search that tries every set of them. Little clusters, full of tasks that may be
//! evicted, and one gang that is more important than all of them: the engine must make room for it
//! whenever that can be done, at the lowest priorities, with as few victims as anybody could.
//!
//! `KATMAI_VICTIM_SEED=17 cargo test -p katmai-engine --test victims` looks at one seed only.

#[path = "../shared/dice.rs"]
mod dice;

use dice::Dice;
use engine::{Argument, Engine, Settings, Switch};
use model::{
    GangPhase, GangSpec, GangStatus, Key, Kind, NodeSpec, Phase, Priority, QueueSpec, QueueState,
    ShapeSpec, Tables, TaskSpec, Time, Vector,
};

const SEEDS: u64 = 3_000;

/// What a task asks for: cores and GPUs.
type Ask = [i64; 2];

/// A task that holds room: where, how much, how important.
#[derive(Clone, Copy, Debug)]
struct Held {
    node: usize,
    ask: Ask,
    priority: i32,
}

/// An amount below `sides`.
fn below(dice: &mut Dice, sides: u64) -> i64 {
    i64::try_from(dice.roll(sides)).expect("a small number")
}

#[derive(Clone, Debug)]
struct Instance {
    nodes: Vec<Ask>,
    held: Vec<Held>,
    gang: Vec<Ask>,
}

impl Instance {
    fn of(seed: u64) -> Instance {
        let mut dice = Dice(seed.wrapping_mul(0x5851_f42d_4c95_7f2d));
        let with_gpus = dice.roll(2) == 0;
        let priorities = [10, 20][..1 + dice.roll(2) as usize].to_vec();
        let node = |dice: &mut Dice| {
            [
                2 + below(dice, 7),
                if with_gpus { below(dice, 5) } else { 0 },
            ]
        };
        let nodes: Vec<Ask> = (0..1 + dice.roll(4)).map(|_| node(&mut dice)).collect();
        let mut free = nodes.clone();
        let mut held = Vec::new();
        for _ in 0..24 {
            let at = dice.roll(nodes.len() as u64) as usize;
            let gpus = if with_gpus { below(&mut dice, 3) } else { 0 };
            let ask = [1 + below(&mut dice, 4), gpus];
            if held.len() < 12 && (0..2).all(|k| ask[k] <= free[at][k]) {
                (0..2).for_each(|k| free[at][k] -= ask[k]);
                let priority = priorities[dice.roll(priorities.len() as u64) as usize];
                held.push(Held {
                    node: at,
                    ask,
                    priority,
                });
            }
        }
        let first = [
            1 + below(&mut dice, 6),
            if with_gpus { below(&mut dice, 4) } else { 0 },
        ];
        let other = [1 + below(&mut dice, 3), 0];
        let mixed = dice.roll(4) == 0;
        let count = 1 + dice.roll(4);
        let task = |at: u64| if mixed && at % 2 == 1 { other } else { first };
        let gang = (0..count).map(task).collect();
        Instance { nodes, held, gang }
    }

    /// Whether all tasks of the gang fit once these are gone.
    fn fits_without(&self, gone: u32) -> bool {
        let mut free = self.nodes.clone();
        for (at, held) in self.held.iter().enumerate() {
            if gone & (1 << at) == 0 {
                (0..2).for_each(|k| free[held.node][k] -= held.ask[k]);
            }
        }
        fits(&self.gang, &mut free)
    }

    /// The least possible: the highest priority among the victims, then how many.
    fn best(&self) -> Option<(i32, u32)> {
        let sets = 0..1_u32 << self.held.len();
        let able = sets.filter(|gone| self.fits_without(*gone));
        able.map(|gone| (self.worst(gone), gone.count_ones())).min()
    }

    fn worst(&self, gone: u32) -> i32 {
        let victims = self.held.iter().enumerate();
        let victims = victims.filter(|(at, _)| gone & (1 << at) != 0);
        victims
            .map(|(_, held)| held.priority)
            .max()
            .unwrap_or(i32::MIN)
    }
}

/// Tries every way to place the tasks.
fn fits(tasks: &[Ask], free: &mut [Ask]) -> bool {
    let [first, rest @ ..] = tasks else {
        return true;
    };
    for at in 0..free.len() {
        if (0..2).all(|k| first[k] <= free[at][k]) {
            (0..2).for_each(|k| free[at][k] -= first[k]);
            let does = fits(rest, free);
            (0..2).for_each(|k| free[at][k] += first[k]);
            if does {
                return true;
            }
        }
    }
    false
}

struct Stage {
    tables: Tables,
    gpu: Kind,
}

impl Stage {
    fn new(instance: &Instance) -> Stage {
        let mut tables = Tables::new();
        let gpu = tables.kind("nvidia.com/gpu");
        let mut stage = Stage { tables, gpu };
        stage.tables.put_queue(QueueSpec {
            name: "default".into(),
            weight: 1,
            state: QueueState::Open,
            ..QueueSpec::default()
        });
        for (name, value) in [("p10", 10), ("p20", 20), ("high", 1_000)] {
            stage.tables.put_priority(Priority {
                name: name.into(),
                value,
                global_default: false,
            });
        }
        for (at, node) in instance.nodes.iter().enumerate() {
            let mut allocatable = stage.amounts(node);
            allocatable.set(Kind::MEMORY, 64 << 30);
            allocatable.set(Kind::PODS, 110);
            stage.tables.put_node(NodeSpec {
                name: format!("n{at}").as_str().into(),
                allocatable,
                ..NodeSpec::default()
            });
        }
        for (at, held) in instance.held.iter().enumerate() {
            let class = format!("p{}", held.priority);
            let name = format!("held-{at}");
            stage.gang(&name, &class, 0, &[held.ask], Some(held.node));
        }
        let min = u32::try_from(instance.gang.len()).expect("a small gang");
        stage.gang("gang", "high", min, &instance.gang, None);
        stage
    }

    fn amounts(&self, ask: &Ask) -> Vector {
        Vector::of([(Kind::CPU, ask[0] * 1_000), (self.gpu, ask[1] * 1_000)])
    }

    fn gang(&mut self, name: &str, class: &str, min: u32, asks: &[Ask], on: Option<usize>) {
        let key = Key::new("a", name);
        self.tables.put_gang(GangSpec {
            key: key.clone(),
            uid: name.into(),
            queue: "default".into(),
            min_member: min,
            priority_class: Some(class.into()),
            status: GangStatus {
                phase: GangPhase::Inqueue,
                ..GangStatus::default()
            },
            ..GangSpec::default()
        });
        for (at, ask) in asks.iter().enumerate() {
            let requests = self.amounts(ask);
            self.tables.put_task(TaskSpec {
                key: Key::new("a", format!("{name}-{at}")),
                uid: format!("{name}-{at}").as_str().into(),
                gang: Some(key.clone()),
                index: u32::try_from(at).expect("a small gang"),
                shape: ShapeSpec {
                    requests,
                    ..ShapeSpec::default()
                },
                phase: on.map_or(Phase::Pending, |_| Phase::Running),
                node: on.map(|node| format!("n{node}").as_str().into()),
                ..TaskSpec::default()
            });
        }
    }
}

/// How preempt chooses nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    Cheapest,
    DryRuns,
}

fn engine(choice: Choice) -> Engine {
    let mut settings = Settings::default();
    let rows = &mut settings.placement.action_arguments;
    let arguments = &mut rows.entry("preempt".to_owned()).or_default().0;
    let is_dry = Argument::Flag(choice == Choice::DryRuns);
    arguments.insert("enableTopologyAwarePreemption".to_owned(), is_dry);
    settings.placement.actions.push("preempt".to_owned());
    for plugin in settings.placement.tiers.iter_mut().flatten() {
        if plugin.name == "gang" || plugin.name == "drf" {
            plugin.off.insert(Switch::Preemptable);
        }
    }
    Engine::new(settings).expect("known actions").0
}

/// What the engine did, beside what could be done.
#[derive(Debug)]
struct Found {
    victims: u32,
    best: u32,
}

/// Who is evicted, as a set; nothing where room cannot be made.
fn cleared(instance: &Instance, choice: Choice) -> Result<Option<u32>, String> {
    let mut stage = Stage::new(instance);
    let plan = engine(choice).cycle(&mut stage.tables, Time::from_micros(0));
    let wrong = checker::check_plan(&stage.tables, &plan);
    if !wrong.is_empty() {
        return Err(format!("{wrong:?}"));
    }
    let mut gone = 0_u32;
    for eviction in &plan.evictions {
        let name = &stage.tables.task(eviction.task).key.name;
        let at = name.trim_start_matches("held-").trim_end_matches("-0");
        gone |= 1 << at.parse::<u32>().expect("only held tasks are evicted");
    }
    let served = plan.places.len() + plan.nominations.len();
    let Some((worst, best)) = instance.best() else {
        return match gone {
            0 => Ok(None),
            _ => Err("somebody is evicted although it helps nobody".to_owned()),
        };
    };
    if served < instance.gang.len() {
        return Err(format!(
            "{best} victims of at most {worst} would do; none is evicted"
        ));
    }
    if !instance.fits_without(gone) {
        return Err("the victims are too few".to_owned());
    }
    for at in (0..instance.held.len()).filter(|at| gone & (1 << at) != 0) {
        if instance.fits_without(gone & !(1 << at)) {
            return Err(format!("held-{at} is evicted without need"));
        }
    }
    Ok(Some(gone))
}

fn play(instance: &Instance) -> Result<Option<Found>, String> {
    let Some((gone, (worst, best))) = cleared(instance, Choice::Cheapest)?.zip(instance.best())
    else {
        return Ok(None);
    };
    if instance.worst(gone) != worst {
        let found = instance.worst(gone);
        return Err(format!(
            "a victim of priority {found}, where {worst} would do"
        ));
    }
    let victims = gone.count_ones();
    Ok(Some(Found { victims, best }))
}

/// Without a rule about company, dry runs serve every gang that can be served, evict nobody in vain, and
/// without more victims than a few of a hundred.
#[test]
fn dry_runs_serve_whom_the_cheapest_room_serves() {
    let (mut victims, mut best) = (0, 0);
    for seed in 0..SEEDS {
        let instance = Instance::of(seed);
        let found = cleared(&instance, Choice::DryRuns);
        let gone = found.unwrap_or_else(|why| panic!("seed {seed}: {why}\n{instance:?}"));
        victims += gone.map_or(0, u32::count_ones);
        best += instance.best().map_or(0, |(_, best)| best);
    }
    assert!(
        victims * 100 <= best * 105,
        "{victims} victims, {best} would do"
    );
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a person may ask for another seed"
)]
fn victims_are_needed_and_few() {
    let asked = std::env::var("KATMAI_VICTIM_SEED").ok();
    let only = asked.map(|text| text.parse::<u64>().expect("a seed is a number"));
    let seeds = only.map_or(0..SEEDS, |seed| seed..seed + 1);
    let (mut victims, mut best, mut cleared) = (0, 0, 0);
    let mut wrong = Vec::new();
    for seed in seeds {
        let instance = Instance::of(seed);
        match play(&instance) {
            Ok(None) => {}
            Ok(Some(found)) => {
                victims += found.victims;
                best += found.best;
                cleared += u32::from(found.best > 0);
            }
            Err(why) => wrong.push(format!("seed {seed}: {why}\n{instance:?}")),
        }
    }
    let count = wrong.len();
    wrong.truncate(3);
    assert!(count == 0, "{count} seeds\n{}", wrong.join("\n"));
    // 3,339 beside 3,309 when this was written.
    assert!(
        victims * 100 <= best * 102,
        "{victims} victims in {cleared} clusters, where {best} would do"
    );
    assert!(
        only.is_some() || cleared > 1_000,
        "{cleared} clusters had to be cleared"
    );
}
