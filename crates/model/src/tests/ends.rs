//! Who is left alone and who is on his way out is what a walk over all tasks finds.

use super::dice::Dice;
use super::one;
use crate::{
    GangId, GangSpec, Key, NodeSpec, Phase, QueueSpec, Tables, Task, TaskId, TaskSpec, Time, Trial,
};

const NAMESPACES: [&str; 2] = ["a", "b"];

fn at(second: u64) -> Time {
    Time::from_micros(second as i64 * 1_000_000)
}

fn task(dice: &mut Dice) -> TaskSpec {
    let phases = [
        Phase::Pending,
        Phase::Bound,
        Phase::Running,
        Phase::Releasing,
        Phase::Failed,
    ];
    let name = format!("t{}", dice.roll(8));
    let phase = *one(dice, &phases);
    TaskSpec {
        key: Key::new(*one(dice, &NAMESPACES), name.as_str()),
        uid: name.into(),
        gang: Some(Key::new("a", "g")),
        phase,
        node: (phase != Phase::Pending).then(|| "n".into()),
        cooldown_ms: [0, 5_000, 9_000][dice.roll(3) as usize],
        scheduled: (dice.roll(3) == 0).then(|| at(dice.roll(20))),
        started: (dice.roll(3) > 0).then(|| at(dice.roll(20))),
        ..TaskSpec::default()
    }
}

/// What the tables say, beside what a walk says.
fn check(tables: &Tables, told: &str) {
    for now in (0..32).map(at) {
        let held = tables
            .tasks()
            .filter(|(_, task)| task.phase.is_allocated() && task.cooldown_ms > 0);
        let since = |task: &Task| task.scheduled.or(task.started);
        let ends = held.filter_map(|(_, task)| Some(since(task)?.plus_millis(task.cooldown_ms)));
        let next = ends.filter(|end| *end > now).min();
        assert_eq!(tables.next_cooled(now), next, "{told} at {now:?}");
    }
    for namespace in NAMESPACES {
        let all = tables.tasks().map(|(_, task)| task);
        let mut walked: Vec<&Key> = all
            .filter(|task| task.phase == Phase::Releasing && *task.key.namespace == *namespace)
            .map(|task| &task.key)
            .collect();
        let mut kept: Vec<&Key> = tables.leaving(namespace).map(|task| &task.key).collect();
        walked.sort();
        kept.sort();
        assert_eq!(kept, walked, "{told}");
    }
}

/// A few are sent away on a trial, which is looked at, and mostly taken back.
fn try_out(dice: &mut Dice, tables: &mut Tables, gang: GangId, told: &str) {
    let victims = tables
        .tasks()
        .filter(|(_, task)| task.phase == Phase::Running);
    let victims: Vec<TaskId> = victims.map(|(id, _)| id).take(2).collect();
    let mut trial = Trial::begin(tables);
    let mark = trial.mark();
    for victim in victims {
        trial.evict(victim, gang, "preempt");
        check(trial.tables(), told);
    }
    if dice.roll(4) > 0 {
        trial.rewind(mark);
        check(trial.tables(), told);
    }
    trial.finish(at(0));
}

#[test]
fn whoever_is_left_alone_or_leaves_is_known_without_a_walk() {
    for seed in 0..150 {
        let dice = &mut Dice(seed);
        let mut tables = Tables::default();
        tables.put_queue(QueueSpec::default());
        tables.put_node(NodeSpec {
            name: "n".into(),
            ..NodeSpec::default()
        });
        let gang = tables.put_gang(GangSpec {
            key: Key::new("a", "g"),
            ..GangSpec::default()
        });
        for step in 0..40 {
            let told = format!("seed {seed}, {step}");
            match dice.roll(8) {
                0 => {
                    let name = format!("t{}", dice.roll(8));
                    tables.remove_task(&Key::new(*one(dice, &NAMESPACES), name.as_str()));
                }
                1 => try_out(dice, &mut tables, gang, &told),
                _ => {
                    tables.put_task(task(dice));
                }
            }
            check(&tables, &told);
        }
    }
}
